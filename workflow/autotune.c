/* Automatic choice of quantization settings by measurement.
 *
 * Every fourth sample is held out: ranges and Hessians of the candidates come from the other three quarters, and the
 * candidates are measured on the samples held out, so that a choice that fits only the samples it was calibrated with
 * is not preferred. A candidate replaces another one only if the paired test on these samples finds less noise. If they
 * have labels or expected values, a candidate that is significantly better by the measure of the task replaces another
 * one as well, and one that is worse by it never does. At the
 * end, choices that do not improve on the plain method are all reverted. The chosen model itself is then calibrated
 * with all samples.
 *
 * The SQNR is that of the worst output (tare_worst_sqnr_db).
 *
 * First, the settings of the whole model: each candidate algorithm and accuracy pass is measured on the whole model and
 * kept if the SQNR improves enough. Then, individual layers: a layer with a poor SQNR when
 * quantized alone, or with a large share of the total noise, gets an override of algorithm, method, granularity or bit
 * width, cheapest first. Overrides that do not improve the whole model are reverted. */
#include "workflow/autotune.h"
#include "workflow/calibrate.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "calib/algorithm.h"
#include "calib/quantization_error.h"
#include "convert/saved_model.h"
#include "eval/logits.h"
#include "eval/measure.h"
#include "eval/model_inputs.h"
#include "eval/model_set.h"
#include "eval/record_store.h"
#include "eval/significance.h"
#include "workflow/calibration_data.h"
#include "quant/recipe.h"

#include <math.h>
#include <string.h>

static const char *const algorithms[] = { "min_max", "percentile", "percentile:p=99.99", "mse", "entropy" };
static const char *const pass_lists[] = { "", "bias_correction", "gptq,bias_correction",
                                          "weight_clipping,gptq,bias_correction", "smooth_quant,gptq,bias_correction" };
enum { HELD_OUT = 4 }; /* one sample in so many */
enum { N_ALGORITHMS = sizeof algorithms / sizeof *algorithms, N_PASSES = sizeof pass_lists / sizeof *pass_lists };

static const double WORTH_ALGORITHM = 0.1; /* dB by which an algorithm must improve on the previous one of the list */
static const double WORTH_PASS = 0.5;      /* the same for passes, which may add operations */
/* SmoothQuant brings every channel close to the ends of the range, so that data beyond the samples' extremes are
 * clipped sooner. */
static const double WORTH_SMOOTHING = 3;
static const double WORTH_INPUT = 0.5;    /* for a per-layer algorithm, measured on the values of the layer's input */
static const double WORTH_EXCEPTION = 3;  /* half a bit, for the layer alone: for overrides that cost speed or size */
static const double POOR_DB = 15;         /* a layer with a lower SQNR alone is examined */
static const double LARGE_SHARE = 0.4;    /* so is a layer with at least this share of the total noise … */
static const double MOST_OF_NOISE = 0.95; /* if all layers together have less than POOR_DB: the largest contributors */
static const double FINE_DB = 40;         /* … unless its SQNR alone is at least this */
static const double HOPELESS_DB = 10;     /* a layer below this that no override improves stays float */
static const double MOST_P = 0.1;         /* of the paired test between two candidates */

struct choosing {
    struct tare_autotune *out;
    const struct tare_autotune_task *task;
    struct tare_autotune_layer *common; /* the layers before the search for exceptions */
    struct tare_runner_options runner;
    struct tare_record_store records;       /* of the runner */
    struct tare_comparison comparison;      /* the first row is the float model */
    struct tare_calibration *fit;           /* of the samples that are not held out; NULL: none are */
    size_t plain, best, last;               /* rows: without any choice, of the best candidate, of the last one */
    struct tare_comparison task_comparison; /* the same by labels or expected values, of the outputs as they are */
    size_t task_plain, task_best, task_last;
    const struct tare_autotune_layer *only; /* the only layer to quantize; NULL: all */
};

void tare_workflow_autotune_free(struct tare_autotune *automatic) {
    tare_arena_free(&automatic->arena);
    memset(automatic, 0, sizeof *automatic);
}

/* ---- measuring ---- */

static bool is_wanted(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct choosing *c = arg;
    return !c->only || (strcmp(c->only->node, op->name) == 0 && strcmp(c->only->function, graph->name) == 0);
}

/* The variant with the current choices: algorithm and passes of the model, and a rule for each override. */
static tare_status make_variant(struct tare_variant *out, struct choosing *c, struct tare_arena *arena) {
    struct tare_quant_recipe *recipe;
    struct tare_strbuf text = { 0 };
    tare_status status;
    *out = *c->task->variant;
    if (c->out->algorithm) TARE_TRY(tare_algorithm_parse(&out->options.setting.algorithm, c->out->algorithm));
    TARE_TRY(tare_quant_passes_parse(&out->options.passes, arena, c->out->passes));
    TARE_TRY(tare_quant_recipe_new(&recipe, arena));
    tare_workflow_autotune_recipe(&text, c->out);
    status = text.failed ? TARE_NO_MEMORY : tare_quant_recipe_read(recipe, tare_strbuf_text(&text), text.size, "auto");
    tare_strbuf_free(&text);
    out->options.recipe = recipe;
    return status;
}

/* The last model's row by the measure of the task. The first one shows whether the samples have data for a measure; the
 * default key of labels may be that of something else. */
static tare_status run_task(struct choosing *c, const struct tare_graph_model *model,
                            const struct tare_signature *signature) {
    const struct tare_autotune_task *task = c->task;
    const bool first = !c->task_comparison.n_rows, by_default = !task->target_key && !task->metric;
    struct tare_comparison_row *row;
    tare_status status =
        tare_comparison_add(&row, &c->task_comparison, model, signature, &c->runner, task->label ? task->label : "");
    if (first &&
        ((by_default && status == TARE_INVALID_ARGUMENT) || (task->may_lack_measure && status == TARE_NOT_FOUND))) {
        tare_error_clear();
        return TARE_OK;
    }
    TARE_TRY(status);
    c->task_last = c->task_comparison.n_rows - 1;
    if (first) c->out->measure = tare_measure_of(&c->task_comparison);
    if (first && c->out->measure->kind == TARE_MEASURE_SQNR) c->out->measure = NULL;
    return TARE_OK;
}

static double task_value(const struct choosing *c, size_t row) {
    return tare_measure_value(c->out->measure, tare_measured_of(&c->task_comparison, &c->task_comparison.rows[row]));
}

static tare_status run_model(double *db, struct choosing *c, struct tare_graph_model *model) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    const bool first = !c->comparison.n_rows, has_keys = c->task->label || c->task->target_key || c->task->metric;
    TARE_TRY(tare_pick_signature(&signature, model, c->task->signature));
    if (!c->only && (c->out->measure || (first && has_keys))) TARE_TRY(run_task(c, model, signature));
    TARE_TRY(tare_model_return_logits(model, signature->key));
    TARE_TRY(tare_comparison_add(&row, &c->comparison, model, signature, &c->runner, ""));
    c->last = c->comparison.n_rows - 1;
    *db = tare_worst_sqnr_db(NULL, &c->comparison, row->outputs);
    c->out->n_outputs = c->comparison.n_outputs;
    return TARE_OK;
}

/* The report's texts belong to the model. */
static tare_status note_layers(struct tare_autotune *out, const struct tare_quant_report *report) {
    out->layers = TARE_NEW_ARRAY(&out->arena, struct tare_autotune_layer, report->count + 1);
    if (!out->layers) return TARE_NO_MEMORY;
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_quant_outcome *o = &report->outcomes[i];
        struct tare_autotune_layer *layer = &out->layers[out->count];
        if (o->refused) continue;
        layer->function = tare_arena_strdup(&out->arena, o->function);
        layer->node = tare_arena_strdup(&out->arena, o->node);
        layer->op = tare_arena_strdup(&out->arena, o->op);
        layer->input_node = o->input_node ? tare_arena_strdup(&out->arena, o->input_node) : NULL;
        layer->input_output = o->input_output;
        layer->why = "";
        if (!layer->function || !layer->node || !layer->op) return TARE_NO_MEMORY;
        out->count++;
    }
    return TARE_OK;
}

/* `only`: the only layer to quantize; NULL: all. The first model determines the list of layers. */
static tare_status make(struct tare_graph_model **out, struct choosing *c, const struct tare_autotune_layer *only) {
    struct tare_quant_report report;
    struct tare_variant variant;
    struct tare_arena arena = { 0 };
    tare_status status;
    *out = NULL;
    c->only = only;
    TARE_CHECK(make_variant(&variant, c, &arena));
    variant.options.accepts = is_wanted;
    variant.options.accepts_arg = c;
    TARE_CHECK(tare_variant_source_make(out, &report, &arena, c->task->source, &variant,
                                        c->fit ? c->fit : c->task->calibration));
    if (!c->out->layers) status = note_layers(c->out, &report);
done:
    tare_arena_free(&arena);
    return status;
}

static tare_status measure(double *db, struct choosing *c, const struct tare_autotune_layer *only) {
    struct tare_graph_model *model;
    c->out->models++;
    tare_status status = make(&model, c, only);
    if (status == TARE_OK) status = run_model(db, c, model);
    tare_model_free(model);
    return status;
}

static tare_status measure_float(struct choosing *c) {
    struct tare_graph_model *model;
    double db;
    tare_status status;
    TARE_TRY(tare_saved_model_load(&model, c->task->source->model,
                                   &(struct tare_saved_model_options){ .ops = c->task->source->ops }));
    status = run_model(&db, c, model);
    tare_model_free(model);
    c->out->records = c->comparison.records;
    return status;
}

/* By the measure of the task: 1 if the last candidate is significantly better than another row, -1 if it is worse at
 * all, 0 otherwise. */
static int compare_by_task(const struct choosing *c, size_t other) {
    const struct tare_measure *measure = c->out->measure;
    const struct tare_comparison_row *rows = c->task_comparison.rows;
    const double gain = (task_value(c, c->task_last) - task_value(c, other)) * (measure->lower_is_better ? -1 : 1);
    if (gain < 0) return -1;
    if (!(gain > 0)) return 0;
    return tare_measure_p(measure, tare_measured_of(&c->task_comparison, &rows[c->task_last]),
                          tare_measured_of(&c->task_comparison, &rows[other])) < MOST_P;
}

/* Whether the last candidate, of `db`, has less noise than another row by `margin` decibels, and the paired test finds
 * the difference at the worst output of the other row. One sample allows no test. */
static bool improves(const struct choosing *c, double db, size_t other, double margin) {
    const struct tare_comparison_row *rows = c->comparison.rows;
    size_t worst;
    const double other_db = tare_worst_sqnr_db(&worst, &c->comparison, rows[other].outputs);
    const struct tare_metrics *a = &rows[c->last].outputs[worst], *b = &rows[other].outputs[worst];
    double p;
    if (c->out->measure) {
        const int task = compare_by_task(c, other == c->best ? c->task_best : c->task_plain);
        if (task) return task > 0;
    }
    if (!(db > other_db + margin)) return false;
    if (a->row_noise.count != b->row_noise.count) return false;
    p = tare_paired_mean_p(a->row_noise.values, b->row_noise.values, a->row_noise.count);
    return isnan(p) || p < MOST_P;
}

/* Makes the last candidate the best one. */
static void keep(struct choosing *c, double db) {
    c->out->db = db;
    c->best = c->last;
    c->task_best = c->task_last;
    if (c->out->measure) c->out->value = task_value(c, c->task_best);
}

/* ---- what holds for all layers ---- */

static tare_status choose_algorithm(struct choosing *c) {
    struct tare_autotune *out = c->out;
    const char *best = out->algorithm;
    for (size_t i = 0; i < N_ALGORITHMS; i++) {
        double db;
        if (strcmp(algorithms[i], best) == 0) continue;
        out->algorithm = algorithms[i];
        TARE_TRY(measure(&db, c, NULL));
        if (!improves(c, db, c->best, WORTH_ALGORITHM)) continue;
        keep(c, db);
        best = algorithms[i];
    }
    out->algorithm = best;
    return TARE_OK;
}

static tare_status choose_passes(struct choosing *c) {
    struct tare_autotune *out = c->out;
    const char *best = out->passes;
    for (size_t i = 1; i < N_PASSES; i++) {
        double db;
        out->passes = pass_lists[i];
        TARE_TRY(measure(&db, c, NULL));
        if (!improves(c, db, c->best, strstr(pass_lists[i], "smooth_quant") ? WORTH_SMOOTHING : WORTH_PASS)) continue;
        keep(c, db);
        best = pass_lists[i];
    }
    out->passes = best;
    return TARE_OK;
}

/* ---- an algorithm for each layer ---- */

/* SQNR of a layer's input quantized to the range of an algorithm; NaN if the input was not observed. */
static tare_status input_db(double *db, const struct choosing *c, const struct tare_autotune_layer *layer,
                            const char *algorithm) {
    struct tare_qscheme scheme = tare_qscheme_activation;
    const struct tare_calibration_tensor *tensor =
        layer->input_node ? tare_calibration_find(c->fit ? c->fit : c->task->calibration, layer->function,
                                                  layer->input_node, layer->input_output)
                          : NULL;
    struct tare_algorithm_choice choice;
    struct tare_range range;
    struct tare_bins bins;
    tare_status status;
    *db = NAN;
    scheme.symmetric = c->task->variant->options.setting.symmetric;
    if (!tensor) return TARE_OK;
    status = tare_bins_make(&bins, &tensor->statistics);
    if (status != TARE_OK) return tare_error_dismiss(status);
    status = tare_algorithm_parse(&choice, algorithm);
    if (status == TARE_OK) status = tare_algorithm_range_of_bins(&range, &choice, &tensor->statistics, &bins, &scheme);
    if (status == TARE_OK) *db = tare_range_quality_of(&range, &bins, &scheme).sqnr_db;
    tare_bins_free(&bins);
    return tare_error_dismiss(status);
}

/* *best: the best algorithm for the values of the layer's input, if it gains enough; NULL: the model's algorithm. */
static tare_status own_algorithm(const char **best, struct choosing *c, const struct tare_autotune_layer *layer,
                                 double *db, double *before) {
    *best = NULL;
    TARE_TRY(input_db(before, c, layer, c->out->algorithm));
    *db = *before + WORTH_INPUT;
    for (size_t i = 0; i < N_ALGORITHMS; i++) {
        double other;
        TARE_TRY(input_db(&other, c, layer, algorithms[i]));
        if (!(other > *db)) continue;
        *db = other;
        *best = algorithms[i];
    }
    return TARE_OK;
}

/* Applies all of them at once, and keeps them if the SQNR of the output improves. */
static tare_status choose_own_algorithms(struct choosing *c) {
    struct tare_autotune *out = c->out;
    bool any = false;
    double db;
    for (size_t i = 0; i < out->count; i++) {
        struct tare_autotune_layer *layer = &out->layers[i];
        double own, common;
        TARE_TRY(own_algorithm(&layer->algorithm, c, layer, &own, &common));
        if (!layer->algorithm) continue;
        any = true;
        layer->why =
            tare_arena_printf(&out->arena, "its input has %.1f dB so, %.1f by %s", own, common, out->algorithm);
        if (!layer->why) return TARE_NO_MEMORY;
    }
    if (!any) return TARE_OK;
    TARE_TRY(measure(&db, c, NULL));
    if (improves(c, db, c->best, WORTH_ALGORITHM)) {
        keep(c, db);
        return TARE_OK;
    }
    for (size_t i = 0; i < out->count; i++) {
        out->layers[i].algorithm = NULL;
        out->layers[i].why = "";
    }
    return TARE_OK;
}

/* ---- layers that do badly ---- */

static double noise_of(const struct tare_autotune_layer *layer) {
    return pow(10, -layer->alone_db / 10);
}

/* One override: takes the settings of `other` if the layer alone gains enough. */
static tare_status try_exception(bool *taken, struct choosing *c, struct tare_autotune_layer *layer,
                                 const struct tare_autotune_layer *other, const char *what) {
    const struct tare_autotune_layer before = *layer;
    double db;
    *layer = *other;
    TARE_TRY(measure(&db, c, layer));
    *taken = db > before.alone_db + WORTH_EXCEPTION;
    *layer = *taken ? *other : before;
    if (!*taken) return TARE_OK;
    layer->why = tare_arena_printf(&c->out->arena, "%s: %.1f dB alone, %.1f as all", what, db, before.alone_db);
    return layer->why ? TARE_OK : TARE_NO_MEMORY;
}

static bool can_widen(const struct choosing *c) {
    const struct tare_quant_options *options = &c->task->variant->options;
    return options->setting.method->takes_wide && options->op_set == TARE_OP_SET_XLA &&
           options->setting.activation_bits != 16;
}

/* From no cost at inference to the highest cost. */
static tare_status find_exception(struct choosing *c, struct tare_autotune_layer *layer) {
    const struct tare_quant_setting *setting = &c->task->variant->options.setting;
    struct tare_autotune_layer other = *layer;
    bool taken = false;
    for (size_t i = 0; setting->method->needs_ranges && !taken && i < N_ALGORITHMS; i++) {
        other.algorithm = algorithms[i];
        TARE_TRY(try_exception(&taken, c, layer, &other, algorithms[i]));
    }
    other = *layer;
    if (!taken && setting->granularity == TARE_PER_TENSOR) {
        other.granularity = "per_channel";
        TARE_TRY(try_exception(&taken, c, layer, &other, "a scale a channel"));
    }
    other = *layer;
    if (!taken && setting->bits == 4 && setting->method->takes_blocks && setting->granularity != TARE_PER_BLOCK) {
        other.granularity = "per_block:32";
        TARE_TRY(try_exception(&taken, c, layer, &other, "blocks of 32 rows"));
    }
    other = *layer;
    other.activation_bits = 16;
    if (!taken && can_widen(c)) TARE_TRY(try_exception(&taken, c, layer, &other, "activations of 16 bits"));
    other = *layer;
    other.bits = 8;
    if (!taken && setting->bits == 4) TARE_TRY(try_exception(&taken, c, layer, &other, "8 bits"));
    other.method = "weight_only";
    if (!taken && setting->method->integer_inputs)
        TARE_TRY(try_exception(&taken, c, layer, &other, "activations in float"));
    if (taken || !(layer->alone_db < HOPELESS_DB)) return TARE_OK;
    layer->method = "float";
    layer->why = tare_arena_printf(&c->out->arena, "%.1f dB alone, and nothing else helps", layer->alone_db);
    return layer->why ? TARE_OK : TARE_NO_MEMORY;
}

/* Number of layers with less noise than this one. */
static double noise_below(const struct tare_autotune *a, const struct tare_autotune_layer *layer) {
    double noise = 0;
    for (size_t i = 0; i < a->count; i++)
        if (noise_of(&a->layers[i]) < noise_of(layer)) noise += noise_of(&a->layers[i]);
    return noise;
}

static bool does_badly(const struct tare_autotune *a, const struct tare_autotune_layer *layer, double noise) {
    if (layer->alone_db < POOR_DB) return true;
    if (a->count > 2 && noise_of(layer) > LARGE_SHARE * noise && layer->alone_db < FINE_DB) return true;
    return a->db < POOR_DB && noise_below(a, layer) >= (1 - MOST_OF_NOISE) * noise;
}

static tare_status explain_as_all(struct choosing *c, struct tare_autotune_layer *layer, double noise) {
    if (!isfinite(layer->alone_db)) { /* no output depends on it */
        layer->why =
            tare_arena_printf(&c->out->arena, "%s%sas all: no error alone", layer->why, *layer->why ? "; else " : "");
        return layer->why ? TARE_OK : TARE_NO_MEMORY;
    }
    layer->why =
        tare_arena_printf(&c->out->arena, "%s%sas all: %.1f dB alone, %.0f %% of the noise", layer->why,
                          *layer->why ? "; else " : "", layer->alone_db, noise > 0 ? 100 * noise_of(layer) / noise : 0);
    return layer->why ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status make_alone(void *arg, struct tare_graph_model **out, size_t number) {
    struct choosing *c = arg;
    const struct tare_signature *signature;
    tare_status status = make(out, c, &c->out->layers[number]);
    if (status == TARE_OK) status = tare_pick_signature(&signature, *out, c->task->signature);
    if (status == TARE_OK) status = tare_model_return_logits(*out, signature->key);
    if (status == TARE_OK) return TARE_OK;
    tare_model_free(*out);
    *out = NULL;
    return status;
}

static void note_alone(void *arg, size_t number, const struct tare_metrics *outputs) {
    struct choosing *c = arg;
    c->out->layers[number].alone_db = tare_worst_sqnr_db(NULL, &c->comparison, outputs);
}

/* Each layer alone quantized. Dynamic models run completely, in batches in which each record has its own range. */
static tare_status measure_alone(struct choosing *c) {
    const struct tare_quant_method *method = c->task->variant->options.setting.method;
    const bool is_dynamic = method->integer_inputs && !method->needs_ranges;
    const struct tare_model_set set = { .count = c->out->count,
                                        .make = make_alone,
                                        .measured = note_alone,
                                        .arg = c,
                                        .comparison = &c->comparison,
                                        .signature = c->task->signature,
                                        .label = "",
                                        .runner = &c->runner,
                                        .memory = is_dynamic ? -1 : c->task->memory };
    struct tare_model_set_report report = { 0 };
    const struct tare_graph_model *model;
    const struct tare_signature *signature;
    TARE_TRY(tare_variant_source_prepared(&model, c->task->source));
    TARE_TRY(tare_pick_signature(&signature, model, c->task->signature));
    TARE_TRY(tare_session_state_ops(&report.whole, model, signature, NULL));
    c->out->models += (int)c->out->count;
    return tare_model_set_measure(&report, &set);
}

static tare_status choose_exceptions(struct choosing *c) {
    struct tare_autotune *out = c->out;
    double noise = 0;
    c->common = TARE_NEW_ARRAY(&out->arena, struct tare_autotune_layer, out->count + 1);
    if (!c->common) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->count; i++)
        c->common[i] = out->layers[i];
    TARE_TRY(measure_alone(c));
    for (size_t i = 0; i < out->count; i++)
        noise += noise_of(&out->layers[i]);
    for (size_t i = 0; i < out->count; i++) {
        struct tare_autotune_layer *layer = &out->layers[i];
        const char *before = layer->why;
        if (does_badly(out, layer, noise)) TARE_TRY(find_exception(c, layer));
        if (layer->why == before) TARE_TRY(explain_as_all(c, layer, noise));
    }
    return TARE_OK;
}

/* `common`: the layer before the search for exceptions. Its algorithm may be its own, which was confirmed before. */
static bool has_exception(const struct tare_autotune_layer *layer, const struct tare_autotune_layer *common) {
    return layer->method || layer->bits || layer->activation_bits || layer->granularity ||
           layer->algorithm != common->algorithm;
}

/* Reverts overrides that do not improve the whole model. */
static tare_status confirm(struct choosing *c) {
    struct tare_autotune *out = c->out;
    bool any = false;
    double db;
    for (size_t i = 0; i < out->count; i++)
        any |= has_exception(&out->layers[i], &c->common[i]);
    TARE_TRY(measure(&db, c, NULL));
    if (!any || improves(c, db, c->best, 0)) {
        if (any) keep(c, db);
        return TARE_OK;
    }
    for (size_t i = 0; i < out->count; i++) {
        struct tare_autotune_layer *layer = &out->layers[i];
        if (!has_exception(layer, &c->common[i])) continue;
        layer->algorithm = c->common[i].algorithm;
        layer->method = layer->granularity = NULL;
        layer->bits = layer->activation_bits = 0;
        layer->why = tare_arena_printf(&out->arena, "as all: alone an exception gains, but not in the whole");
        if (!layer->why) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* Reverts everything if the choices together do not improve on the plain method. */
static tare_status revert_to_plain(struct choosing *c, const char *algorithm) {
    struct tare_autotune *out = c->out;
    out->algorithm = algorithm;
    out->passes = "";
    out->db = out->plain_db;
    out->value = out->plain_value;
    for (size_t i = 0; i < out->count; i++) {
        struct tare_autotune_layer *layer = &out->layers[i];
        layer->algorithm = layer->method = layer->granularity = NULL;
        layer->bits = layer->activation_bits = 0;
        layer->why = tare_arena_printf(&out->arena, "as all: %.1f dB alone; no choice improves on the plain method",
                                       layer->alone_db);
        if (!layer->why) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status choose(struct choosing *c) {
    const bool ranges = c->task->variant->options.setting.method->needs_ranges;
    const char *algorithm = c->out->algorithm;
    TARE_TRY(measure_float(c));
    TARE_TRY(measure(&c->out->plain_db, c, NULL)); /* without any choice */
    c->plain = c->last;
    c->task_plain = c->task_last;
    keep(c, c->out->plain_db);
    c->out->plain_value = c->out->value;
    TARE_TRY(choose_passes(c));
    if (ranges) TARE_TRY(choose_algorithm(c));
    if (ranges) TARE_TRY(choose_own_algorithms(c));
    TARE_TRY(choose_exceptions(c));
    TARE_TRY(confirm(c));
    c->last = c->best;
    c->task_last = c->task_best;
    if (c->best != c->plain && !improves(c, c->out->db, c->plain, 0)) TARE_TRY(revert_to_plain(c, algorithm));
    return make_variant(&c->out->variant, c, &c->out->arena);
}

/* Calibrates with the samples that are not held out. Samples of a model with state belong together, and fewer than
 * HELD_OUT cannot be divided: then the candidates are measured on the samples that calibrated them. */
static tare_status hold_out(struct choosing *c, const struct tare_graph_model *model,
                            const struct tare_signature *signature) {
    const struct tare_autotune_task *task = c->task;
    const struct tare_calibrate_options options = { .signature = task->signature,
                                                    .data = task->data,
                                                    .n_data = task->n_data,
                                                    .spec = task->spec,
                                                    .threads = task->threads,
                                                    .shard = HELD_OUT - 1,
                                                    .shards = HELD_OUT,
                                                    .other_shards = true,
                                                    .channels = true,
                                                    .hessians = true,
                                                    .interrupted = task->interrupted };
    bool stateful;
    TARE_TRY(tare_session_state_ops(&stateful, model, signature, NULL));
    if (stateful || tare_calibration_signature_records(task->calibration, signature->key) < HELD_OUT) return TARE_OK;
    TARE_TRY(tare_workflow_calibrate(&c->fit, model, &options));
    if (tare_calibration_signature_records(c->fit, signature->key) < HELD_OUT - 1) { /* fewer than in the file */
        tare_calibration_free(c->fit);
        c->fit = NULL;
        return TARE_OK;
    }
    c->runner.shard = options.shard;
    c->runner.shards = options.shards;
    c->out->held_out = true;
    return TARE_OK;
}

/* Decodes the records once for all candidates, if they fit. A complete store has only those of the runner's shard. */
static void store_records(struct choosing *c) {
    tare_record_store_fill(&c->records, &c->runner, TARE_RECORD_STORE_BYTES);
    if (!c->records.complete) return;
    c->runner.records = &c->records;
    c->runner.shard = c->runner.shards = 0;
}

/* The files of the signature; the runner owns the memory of the groups. */
static tare_status find_samples(struct choosing *c, struct tare_data_groups *groups) {
    const struct tare_autotune_task *task = c->task;
    const struct tare_signature *signature;
    const struct tare_graph_model *model;
    TARE_TRY(tare_variant_source_prepared(&model, task->source));
    TARE_TRY(tare_pick_signature(&signature, model, task->signature));
    TARE_TRY(tare_data_groups_make(groups, model, task->data, task->n_data, signature));
    for (size_t i = 0; i < groups->count; i++)
        if (strcmp(groups->items[i].signature->key, signature->key) == 0)
            c->runner = (struct tare_runner_options){ .paths = (const char *const *)groups->items[i].files.names,
                                                      .n_paths = groups->items[i].files.count,
                                                      .spec = task->spec,
                                                      .limit = TARE_AUTOTUNE_RECORDS,
                                                      .batch = TARE_RUNNER_BATCH,
                                                      .interrupted = task->interrupted };
    if (!c->runner.n_paths) return TARE_FAIL(TARE_USAGE, "no samples of signature '%s'", signature->key);
    TARE_TRY(hold_out(c, model, signature));
    store_records(c);
    return TARE_OK;
}

tare_status tare_workflow_autotune_choose(struct tare_autotune *out, const struct tare_autotune_task *task) {
    const struct tare_progress_options progress = {
        .label = "choosing", .unit = "records", .total = -1, .quiet = task->quiet
    };
    const struct tare_quant_setting *setting = &task->variant->options.setting;
    struct choosing c = { .out = out,
                          .task = task,
                          .comparison = { .threads = task->threads },
                          .task_comparison = {
                              .threads = task->threads, .target_key = task->target_key, .metric = task->metric } };
    struct tare_data_groups groups = { 0 };
    tare_status status;
    *out = (struct tare_autotune){ .passes = "" };
    if (task->variant->options.recipe) return TARE_FAIL(TARE_USAGE, "--auto and --recipe are mutually exclusive");
    out->method = setting->method->name;
    if (setting->method->needs_ranges) out->algorithm = tare_variant_algorithm(&out->arena, task->variant);
    c.comparison.progress = tare_progress_new(&progress);
    status = find_samples(&c, &groups);
    if (status == TARE_OK) status = choose(&c);
    tare_progress_free(c.comparison.progress);
    tare_comparison_free(&c.comparison);
    tare_comparison_free(&c.task_comparison);
    tare_record_store_free(&c.records);
    tare_calibration_free(c.fit);
    tare_data_groups_free(&groups);
    out->variant.name = "auto";
    return tare_error_prefix(status, "auto");
}
