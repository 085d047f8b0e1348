/* Automatic choice of quantization settings by measurement.
 *
 * Every fourth sample is held out: ranges and Hessians of the candidates come from the other three quarters, and the
 * candidates are measured on the samples held out, so that a choice that fits only the samples it was calibrated with
 * is not preferred. A candidate replaces another one only if the 90 % interval of their difference on these samples is
 * below it. If they have labels or expected values, a candidate that is significantly better by the measure of the task
 * replaces another one as well, and one that is worse by it never does. At the end, choices that do not improve on the
 * plain method are all reverted. The chosen model itself is then calibrated with all samples.
 *
 * The SQNR is that of the worst output (tare_worst_sqnr_db).
 *
 * First, the settings of the whole model: each candidate algorithm and accuracy pass is measured on the whole model and
 * kept if the SQNR improves enough; where the result is still poor, activations of 16 bits in all layers. Then,
 * individual layers: a layer with a poor SQNR when
 * quantized alone, or with a large share of the total noise, gets an override of algorithm, method, granularity or bit
 * width, cheapest first. Overrides that do not improve the whole model are reverted. */
#include "workflow/autotune/autotune.h"
#include "workflow/autotune/measure.h"
#include "workflow/calibrate.h"
#include "base/progress.h"
#include "calib/algorithm.h"
#include "calib/quantization_error.h"
#include "eval/logits.h"
#include "eval/measure.h"
#include "eval/model_inputs.h"
#include "workflow/calibration_data.h"

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
static const double POOR_DB = 15;         /* a layer with a lower SQNR alone is examined */
static const double LARGE_SHARE = 0.4;    /* so is a layer with at least this share of the total noise … */
static const double MOST_OF_NOISE = 0.95; /* if all layers together have less than POOR_DB: the largest contributors */
static const double FINE_DB = 40;         /* … unless its SQNR alone is at least this */
static const double HOPELESS_DB = 10;     /* a layer below this that no override improves stays float */

void tare_workflow_autotune_free(struct tare_autotune *automatic) {
    tare_arena_free(&automatic->arena);
    memset(automatic, 0, sizeof *automatic);
}

/* Whether an algorithm is a candidate: float8 has none that compare integers. */
static tare_status is_candidate(bool *out, const struct tare_autotune_search *c, const char *algorithm) {
    struct tare_algorithm_choice choice;
    TARE_TRY(tare_algorithm_parse(&choice, algorithm));
    *out = !c->task->variant->plan.setting.format || !choice.row->of_integers;
    return TARE_OK;
}

/* ---- what holds for all layers ---- */

static tare_status choose_algorithm(struct tare_autotune_search *c) {
    struct tare_autotune *out = c->out;
    const char *best = out->algorithm;
    for (size_t i = 0; i < N_ALGORITHMS; i++) {
        double db;
        bool fits;
        TARE_TRY(is_candidate(&fits, c, algorithms[i]));
        if (!fits || strcmp(algorithms[i], best) == 0) continue;
        out->algorithm = algorithms[i];
        TARE_TRY(tare_autotune_measure(&db, c, NULL));
        if (!tare_autotune_improves(c, db, c->best, WORTH_ALGORITHM)) continue;
        tare_autotune_keep(c, db);
        best = algorithms[i];
    }
    out->algorithm = best;
    return TARE_OK;
}

static tare_status choose_passes(struct tare_autotune_search *c) {
    struct tare_autotune *out = c->out;
    const char *best = out->passes;
    for (size_t i = 1; i < N_PASSES; i++) {
        double db;
        out->passes = pass_lists[i];
        TARE_TRY(tare_autotune_measure(&db, c, NULL));
        if (!tare_autotune_improves(c, db, c->best,
                                    strstr(pass_lists[i], "smooth_quant") ? WORTH_SMOOTHING : WORTH_PASS))
            continue;
        tare_autotune_keep(c, db);
        best = pass_lists[i];
    }
    out->passes = best;
    return TARE_OK;
}

/* ---- an algorithm for each layer ---- */

/* SQNR of a layer's input quantized to the range of an algorithm; NaN if the input was not observed. */
static tare_status input_db(double *db, const struct tare_autotune_search *c, const struct tare_autotune_layer *layer,
                            const char *algorithm) {
    struct tare_qscheme scheme = tare_qscheme_activation;
    const struct tare_calibration_tensor *tensor =
        layer->input_node ? tare_calibration_find(c->fit ? c->fit : c->evaluation.calibration, layer->function,
                                                  layer->input_node, layer->input_output)
                          : NULL;
    struct tare_algorithm_choice choice;
    struct tare_range range;
    struct tare_bins bins;
    tare_status status;
    *db = NAN;
    scheme.symmetric = c->task->variant->plan.setting.symmetric;
    scheme.format = c->task->variant->plan.setting.format;
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
static tare_status own_algorithm(const char **best, struct tare_autotune_search *c,
                                 const struct tare_autotune_layer *layer, double *db, double *before) {
    *best = NULL;
    TARE_TRY(input_db(before, c, layer, c->out->algorithm));
    *db = *before + WORTH_INPUT;
    for (size_t i = 0; i < N_ALGORITHMS; i++) {
        double other;
        bool fits;
        TARE_TRY(is_candidate(&fits, c, algorithms[i]));
        if (fits) TARE_TRY(input_db(&other, c, layer, algorithms[i]));
        if (!fits || !(other > *db)) continue;
        *db = other;
        *best = algorithms[i];
    }
    return TARE_OK;
}

/* Applies all of them at once, and keeps them if the SQNR of the output improves. */
static tare_status choose_own_algorithms(struct tare_autotune_search *c) {
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
    TARE_TRY(tare_autotune_measure(&db, c, NULL));
    if (tare_autotune_improves(c, db, c->best, WORTH_ALGORITHM)) {
        tare_autotune_keep(c, db);
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
static tare_status try_exception(bool *taken, struct tare_autotune_search *c, struct tare_autotune_layer *layer,
                                 const struct tare_autotune_layer *other, const char *what) {
    const struct tare_autotune_layer before = *layer;
    double db;
    *layer = *other;
    TARE_TRY(tare_autotune_measure(&db, c, layer));
    *taken = db > before.alone_db + TARE_WORTH_EXCEPTION_DB;
    *layer = *taken ? *other : before;
    if (!*taken) return TARE_OK;
    layer->why = tare_arena_printf(&c->out->arena, "%s: %.1f dB alone, %.1f as all", what, db, before.alone_db);
    return layer->why ? TARE_OK : TARE_NO_MEMORY;
}

/* From no cost at inference to the highest cost. */
static tare_status find_exception(struct tare_autotune_search *c, struct tare_autotune_layer *layer) {
    const struct tare_quant_setting *setting = &c->task->variant->plan.setting;
    struct tare_autotune_layer other = *layer;
    bool taken = false;
    for (size_t i = 0; setting->method->needs_ranges && !taken && i < N_ALGORITHMS; i++) {
        bool fits;
        TARE_TRY(is_candidate(&fits, c, algorithms[i]));
        if (!fits) continue;
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
    if (!taken && tare_autotune_can_widen(c))
        TARE_TRY(try_exception(&taken, c, layer, &other, "activations of 16 bits"));
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

/* The noise of all layers with less noise than this one. */
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

static tare_status explain_as_all(struct tare_autotune_search *c, struct tare_autotune_layer *layer, double noise) {
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

/* Each layer alone quantized. */
static tare_status measure_alone(struct tare_autotune_search *c, struct tare_autotune_layer *layer) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    struct tare_graph_model *model = NULL;
    tare_status status;
    TARE_CHECK(tare_autotune_model(&model, c, layer));
    TARE_CHECK(tare_pick_signature(&signature, model, c->evaluation.signature));
    TARE_CHECK(tare_model_return_logits(model, signature->key));
    TARE_CHECK(tare_evaluate(&row, &c->comparison, model, &c->plain_outputs));
    layer->alone_db = tare_worst_sqnr_db(NULL, &c->comparison, row->outputs);
done:
    tare_model_free(model);
    return status;
}

static tare_status choose_exceptions(struct tare_autotune_search *c) {
    struct tare_autotune *out = c->out;
    double noise = 0;
    c->common = TARE_NEW_ARRAY(&out->arena, struct tare_autotune_layer, out->count + 1);
    if (!c->common) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->count; i++)
        c->common[i] = out->layers[i];
    out->models += (int)out->count;
    for (size_t i = 0; i < out->count; i++)
        TARE_TRY(measure_alone(c, &out->layers[i]));
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
    return layer->method || layer->bits || layer->granularity || layer->activation_bits != common->activation_bits ||
           layer->algorithm != common->algorithm;
}

/* Reverts overrides that do not improve the whole model. */
static tare_status confirm(struct tare_autotune_search *c) {
    struct tare_autotune *out = c->out;
    bool any = false;
    double db;
    for (size_t i = 0; i < out->count; i++)
        any |= has_exception(&out->layers[i], &c->common[i]);
    TARE_TRY(tare_autotune_measure(&db, c, NULL));
    if (!any || tare_autotune_improves(c, db, c->best, 0)) {
        if (any) tare_autotune_keep(c, db);
        return TARE_OK;
    }
    for (size_t i = 0; i < out->count; i++) {
        struct tare_autotune_layer *layer = &out->layers[i];
        if (!has_exception(layer, &c->common[i])) continue;
        layer->algorithm = c->common[i].algorithm;
        layer->activation_bits = c->common[i].activation_bits;
        layer->method = layer->granularity = NULL;
        layer->bits = 0;
        layer->why = tare_arena_printf(&out->arena, "as all: alone an exception gains, but not in the whole");
        if (!layer->why) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* Reverts everything if the choices together do not improve on the plain method. */
static tare_status revert_to_plain(struct tare_autotune_search *c, const char *algorithm) {
    struct tare_autotune *out = c->out;
    out->algorithm = algorithm;
    out->passes = "";
    out->db = out->plain_db;
    out->value = out->plain_value;
    c->task_best = c->task_plain;
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

static tare_status choose(struct tare_autotune_search *c) {
    const bool ranges = c->task->variant->plan.setting.method->needs_ranges;
    const char *algorithm = c->out->algorithm;
    TARE_TRY(tare_autotune_measure_float(c));
    TARE_TRY(tare_autotune_measure(&c->out->plain_db, c, NULL)); /* without any choice */
    c->plain = c->last;
    c->task_plain = c->task_last;
    tare_autotune_keep(c, c->out->plain_db);
    c->out->plain_value = c->out->value;
    TARE_TRY(choose_passes(c));
    if (ranges) TARE_TRY(choose_algorithm(c));
    if (ranges) TARE_TRY(choose_own_algorithms(c));
    TARE_TRY(tare_autotune_choose_width(c));
    TARE_TRY(choose_exceptions(c));
    TARE_TRY(confirm(c));
    c->last = c->best;
    c->task_last = c->task_best;
    if (c->best != c->plain && !tare_autotune_improves(c, c->out->db, c->plain, 0))
        TARE_TRY(revert_to_plain(c, algorithm));
    tare_autotune_take_loss(c);
    return tare_autotune_variant(&c->out->variant, c, &c->out->arena);
}

/* Calibrates with the samples that are not held out. Samples of a model with state belong together, and fewer than
 * HELD_OUT cannot be divided: then the candidates are measured on the samples that calibrated them. */
static tare_status hold_out(struct tare_autotune_search *c, const struct tare_graph_model *model,
                            const struct tare_signature *signature) {
    const struct tare_autotune_task *task = c->task;
    struct tare_runner_options *records = &c->evaluation.records;
    const struct tare_calibrate_options options = { .signature = c->evaluation.signature,
                                                    .data = task->data,
                                                    .n_data = task->n_data,
                                                    .spec = records->spec,
                                                    .threads = c->evaluation.threads,
                                                    .shard = HELD_OUT - 1,
                                                    .shards = HELD_OUT,
                                                    .other_shards = true,
                                                    .channels = true,
                                                    .hessians = true,
                                                    .interrupted = records->interrupted };
    bool stateful;
    TARE_TRY(tare_session_state_ops(&stateful, model, signature, NULL));
    stateful |= tare_feedback_is_given(records->feedback);
    if (stateful || tare_calibration_signature_records(c->evaluation.calibration, signature->key) < HELD_OUT)
        return TARE_OK;
    TARE_TRY(tare_workflow_calibrate(&c->fit, model, &options));
    if (tare_calibration_signature_records(c->fit, signature->key) < HELD_OUT - 1) { /* fewer than in the file */
        tare_calibration_free(c->fit);
        c->fit = NULL;
        return TARE_OK;
    }
    records->shard = options.shard;
    records->shards = options.shards;
    c->out->held_out = true;
    return TARE_OK;
}

/* Decodes the records once for all candidates, if they fit. A complete store has only those of the shard. */
static void store_records(struct tare_autotune_search *c) {
    struct tare_runner_options *records = &c->evaluation.records;
    tare_record_store_fill(&c->records, records, TARE_RECORD_STORE_BYTES);
    if (!c->records.complete) return;
    records->records = &c->records;
    records->shard = records->shards = 0;
}

/* The files of the signature, in the memory of the groups. */
static tare_status find_samples(struct tare_autotune_search *c, struct tare_data_groups *groups) {
    struct tare_runner_options *records = &c->evaluation.records;
    const struct tare_signature *signature;
    const struct tare_graph_model *model;
    TARE_TRY(tare_variant_source_prepared(&model, c->evaluation.source));
    TARE_TRY(tare_pick_signature(&signature, model, c->evaluation.signature));
    TARE_TRY(tare_data_groups_make(groups, model, c->task->data, c->task->n_data, signature));
    *records = (struct tare_runner_options){ .spec = records->spec,
                                             .feedback = records->feedback,
                                             .limit = TARE_AUTOTUNE_RECORDS,
                                             .batch = TARE_RUNNER_BATCH,
                                             .interrupted = records->interrupted };
    for (size_t i = 0; i < groups->count; i++)
        if (strcmp(groups->items[i].signature->key, signature->key) == 0) {
            records->paths = (const char *const *)groups->items[i].files.names;
            records->n_paths = groups->items[i].files.count;
        }
    if (!records->n_paths) return TARE_FAIL(TARE_USAGE, "no samples of signature '%s'", signature->key);
    TARE_TRY(tare_runner_find_rows(records, signature));
    TARE_TRY(hold_out(c, model, signature));
    store_records(c);
    c->plain_outputs = c->evaluation;
    c->plain_outputs.label = c->plain_outputs.target_key = NULL;
    c->plain_outputs.metric = 0;
    return TARE_OK;
}

tare_status tare_workflow_autotune_choose(struct tare_autotune *out, const struct tare_autotune_task *task) {
    const struct tare_progress_options progress = {
        .label = "choosing", .unit = "records", .total = -1, .quiet = task->evaluation->quiet
    };
    const struct tare_quant_setting *setting = &task->variant->plan.setting;
    struct tare_autotune_search c = { .out = out, .task = task, .evaluation = *task->evaluation };
    struct tare_data_groups groups = { 0 };
    const char *granularity;
    tare_status status;
    *out = (struct tare_autotune){ .passes = "" };
    if (task->variant->plan.recipe || task->variant->plan.recipe_file)
        return TARE_FAIL(TARE_USAGE,
                         "--auto and --recipe (or --rule) are mutually exclusive: auto chooses the layers itself");
    out->method = setting->method->name;
    TARE_TRY(tare_error_prefix(tare_variant_texts(&out->algorithm, &granularity, &out->arena, task->variant), "auto"));
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
