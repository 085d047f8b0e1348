/* Runs a comparison: calibrates once if a variant needs it, measures float and every variant over the same records,
 * then the optional layer sensitivity or target search, and records the provenance of the figures. A variant that fails
 * becomes a row with its error; the finished rows are kept. */
#include "workflow/array_names.h"
#include "workflow/compare_internal.h"
#include "workflow/evaluation_data.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "convert/origin.h"
#include "convert/saved_model.h"
#include "eval/measure.h"
#include "eval/model_inputs.h"
#include "eval/report/node_data.h"
#include "quant/fake_quant.h"
#include "workflow/calibrate.h"
#include "workflow/data_options.h"
#include "workflow/check/compiled_row.h"
#include "workflow/check/fastest.h"
#include "tpu/chips.h"

#include <jansson.h>

#include <string.h>

/* ---- calibration ---- */

static bool needs_calibration(const struct tare_compare_job *c) {
    return c->options->automatic || tare_variants_calibrate(&c->variants);
}

static tare_status calibrate_prepared(struct tare_compare_job *c, const struct tare_graph_model *model) {
    const struct tare_compare_task *task = c->task;
    const struct tare_calibrate_options options = { .signature = c->options->signature,
                                                    .data = task->calibration_data,
                                                    .n_data = task->n_calibration_data,
                                                    .spec = task->spec,
                                                    .feedback = task->feedback,
                                                    .threads = c->options->threads,
                                                    .channels = c->options->automatic ||
                                                                tare_variants_need_channels(&c->variants),
                                                    .hessians = tare_workflow_compare_needs_hessians(c),
                                                    .on_progress = task->on_progress,
                                                    .progress_arg = task->progress_arg,
                                                    .interrupted = task->interrupted };
    c->result.calibrations += !task->calibration_file;
    TARE_TRY(tare_workflow_calibrate_from(&c->evaluation.calibration, model, task->calibration_file, &options));
    if (task->calibration_data_name)
        TARE_TRY(tare_calibration_name_inputs(c->evaluation.calibration, task->calibration_data_name));
    return tare_workflow_calibrate_log(&c->log, c->evaluation.calibration);
}

/* Calibrates once for all methods and algorithms. */
static tare_status calibrate(struct tare_compare_job *c) {
    const struct tare_log silent = tare_warnings_silent(&c->result.warnings);
    const struct tare_graph_model *model;
    if (!needs_calibration(c)) return TARE_OK;
    if (c->task->calibration) {
        c->result.calibration = c->evaluation.calibration = c->task->calibration;
        return tare_workflow_calibrate_log(&silent, c->task->calibration); /* the caller knows them */
    }
    TARE_TRY(tare_variant_source_prepared(&model, &c->source));
    c->owns_calibration = true;
    TARE_TRY(calibrate_prepared(c, model));
    c->result.calibration = c->evaluation.calibration;
    return TARE_OK;
}

/* ---- models ---- */

const struct tare_variant *tare_workflow_compare_first_quantizing(const struct tare_compare_job *c) {
    for (size_t i = 0; i < c->variants.count; i++)
        if (c->variants.variants[i].plan.setting.method && !c->variants.variants[i].refused)
            return &c->variants.variants[i];
    return NULL;
}

/* Layers of 16 bits that neither the plan nor a rule of it requests. */
static int64_t count_widened(const struct tare_quant_report *report, const struct tare_variant *variant) {
    int64_t count = 0;
    if (variant->plan.setting.activation_bits) return 0;
    for (size_t i = 0; i < report->count; i++)
        count += !report->outcomes[i].refused && report->outcomes[i].setting.activation_bits == 16;
    return count;
}

/* Convolutions with weights of 8 or 4 bits and float inputs: the compiler of a TPU folds the weights to bfloat16.
 * *bytes: what they take more there. */
static int64_t count_folded(double *bytes, const struct tare_quant_report *report) {
    int64_t count = 0;
    *bytes = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_quant_outcome *o = &report->outcomes[i];
        if (o->refused || strcmp(o->method, "weight_only") != 0 || !strstr(o->op, "Conv")) continue;
        *bytes += (double)o->weight_elements * (2 - o->bits / 8.0);
        count++;
    }
    return count;
}

/* The model that `tare convert` writes by default of a variant before it. */
static bool is_companion(const struct tare_compare_job *c, const struct tare_variant *variant) {
    return c->has_companion && variant->bfloat16;
}

static tare_status add_row(struct tare_compare_job *c, struct tare_graph_model *model,
                           const struct tare_variant *variant, const struct tare_quant_report *report) {
    const bool first = variant->plan.setting.method && variant == tare_workflow_compare_first_quantizing(c);
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    double more;
    TARE_TRY(tare_pick_signature(&signature, model, c->options->signature));
    if (!c->result.signature) c->result.signature = tare_arena_strdup(&c->result.arena, signature->key);
    if (!c->result.signature) return TARE_NO_MEMORY;
    TARE_TRY(tare_comparison_add(&row, &c->result, model, signature, &c->evaluation));
    row->method = variant->name;
    TARE_TRY(tare_variant_texts(&row->algorithm, &row->granularity, &c->result.arena, variant));
    row->named_granularity = variant->sets_granularity;
    row->weight_bits = variant->plan.setting.method ? variant->plan.setting.bits : 0;
    row->quantized = (int64_t)report->quantized;
    row->quantizable = (int64_t)report->count;
    row->widened = count_widened(report, variant);
    row->companion = is_companion(c, variant);
    TARE_TRY(tare_workflow_compare_commands(row, c, variant));
    row->folded = count_folded(&more, report);
    if (first) c->result.slowest_of = variant->name;
    if (c->options->compile)
        TARE_TRY(tare_check_compile_row(row, &c->result, model, c->options->signature, c->compiled));
    TARE_TRY(tare_comparison_estimate(row, &c->result, model, signature, first));
    row->hbm_bytes += more;
    return TARE_OK;
}

/* Estimates the float model in the form that the other rows are quantized from: a loop that preparation unrolls would
 * otherwise count once in the float row and with all its iterations in the others. */
static tare_status estimate_prepared(struct tare_compare_job *c, struct tare_comparison_row *row) {
    const struct tare_signature *signature;
    struct tare_graph_model *model;
    tare_status status;
    TARE_TRY(tare_variant_source_clone(&model, &c->source));
    status = tare_pick_signature(&signature, model, c->options->signature);
    if (status == TARE_OK) status = tare_comparison_estimate(row, &c->result, model, signature, false);
    tare_model_free(model);
    return status;
}

/* The model as loaded, without preparation. */
static tare_status compare_float(struct tare_compare_job *c) {
    const struct tare_quant_report none = { 0 };
    TARE_TRY(tare_node_places_find(&c->result, c->loaded));
    TARE_TRY(add_row(c, c->loaded, &c->variants.variants[0], &none));
    if (!c->options->metric && tare_measure_of(&c->result)->kind == TARE_MEASURE_SQNR)
        TARE_TRY(tare_workflow_warn_of_unread_label(&c->log, c->loaded, &c->evaluation));
    tare_model_free(c->loaded);
    c->loaded = NULL;
    TARE_TRY(estimate_prepared(c, &c->result.rows[0]));
    tare_workflow_warn_of_nan(&c->log, &c->result);
    tare_workflow_warn_of_labels(&c->log, tare_measured_of(&c->result, &c->result.rows[0]));
    return TARE_OK;
}

/* The reports explain the layers of the first quantizing variant. */
static tare_status explain(struct tare_compare_job *c, const struct tare_variant *variant,
                           const struct tare_quant_report *report) {
    const struct tare_graph_model *prepared;
    const struct tare_signature *signature;
    struct tare_comparison *result = &c->result;
    if (c->task->without_layers || variant != tare_workflow_compare_first_quantizing(c)) return TARE_OK;
    TARE_TRY(tare_explain(&result->explanations, &result->arena, report, c->evaluation.calibration, true));
    TARE_TRY(tare_variant_source_prepared(&prepared, &c->source));
    TARE_TRY(tare_pick_signature(&signature, prepared, c->options->signature));
    TARE_TRY(tare_network_make(&result->network, &result->arena, prepared, signature, &result->explanations));
    for (size_t i = 0; i < result->n_costs; i++)
        tare_network_add_cost(&result->network, result->costs[i].node, result->costs[i].seconds);
    return TARE_OK;
}

/* Layers of the last row that lose more than they need to: the first ones in the log, all in the reports. */
static tare_status add_warnings(struct tare_compare_job *c, const struct tare_quant_report *report) {
    enum { SHOWN = 3 };
    const struct tare_log silent = tare_warnings_silent(&c->result.warnings);
    struct tare_strbuf name = { 0 };
    tare_comparison_put_name(&name, &c->result.rows[c->result.n_rows - 1]);
    for (size_t i = 0; i < report->n_warnings; i++)
        tare_warn(i < SHOWN ? &c->log : &silent, "%s: %s", tare_strbuf_text(&name), report->warnings[i]);
    if (report->n_warnings > SHOWN)
        tare_warn(c->task->log, "%s: %zu more layers like these (--report FILE lists them)", tare_strbuf_text(&name),
                  report->n_warnings - SHOWN);
    const tare_status status = tare_strbuf_status(&name);
    tare_strbuf_free(&name);
    return status;
}

/* A variant that quantizes nothing is float again, and no command builds it. */
static tare_status check_quantized(bool *skipped, struct tare_compare_job *c, const struct tare_variant *variant,
                                   const struct tare_quant_report *report) {
    *skipped = false;
    if (!tare_quant_plan_quantizes(&variant->plan)) return TARE_OK;
    const tare_status status = tare_workflow_quantize_check(report);
    if (status != TARE_UNSUPPORTED) return status;
    *skipped = true;
    TARE_TRY(tare_workflow_compare_skip(c, variant, tare_error_text()));
    tare_error_clear();
    return TARE_OK;
}

static tare_status compare_variant(struct tare_compare_job *c, const struct tare_variant *variant) {
    struct tare_variant warning = *variant;
    struct tare_graph_model *model;
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    bool skipped = false;
    tare_status status;
    warning.plan.warns = true;
    warning.plan.quiet = c->task->quiet;
    warning.plan.threads = c->evaluation.threads;
    status = tare_variant_source_make(&model, &report, &arena, &c->source, &warning, c->evaluation.calibration);
    if (status == TARE_OK) {
        status = check_quantized(&skipped, c, variant, &report);
        if (status == TARE_OK && !skipped) status = add_row(c, model, variant, &report);
        if (status == TARE_OK && !skipped) status = add_warnings(c, &report);
        if (status == TARE_OK) status = explain(c, variant, &report);
        tare_model_free(model);
    }
    tare_arena_free(&arena);
    return tare_error_prefix(status, "%s", variant->name);
}

/* The first quantizing variant with only the layers that become faster, by the compiler if it is asked: no row unless
 * they are some of its layers. */
static tare_status compare_fastest(struct tare_compare_job *c) {
    const struct tare_variant *first = tare_workflow_compare_first_quantizing(c);
    struct tare_fastest_task choosing = { .calibration = c->evaluation.calibration,
                                          .signature = c->options->signature,
                                          .chip = c->options->chip,
                                          .batch = c->options->chip_batch,
                                          .estimates = !c->options->compile,
                                          .known = c->compiled };
    struct tare_fastest fastest;
    struct tare_variant variant;
    if (!first) return TARE_OK;
    variant = *first;
    variant.name = "fastest";
    choosing.plan = &variant.plan;
    TARE_TRY(tare_variant_source_prepared(&choosing.model, &c->source));
    TARE_TRY(tare_error_dismiss(tare_workflow_fastest(&fastest, &c->result.arena, &choosing)));
    if (!fastest.chip || !fastest.n_float || fastest.n_float == fastest.n_layers) return TARE_OK;
    TARE_TRY(tare_workflow_fastest_apply(&variant.plan, &c->result.arena, &fastest));
    return compare_variant(c, &variant);
}

/* Chooses settings on the calibration samples, then measures them like the other variants. */
static tare_status compare_automatic(struct tare_compare_job *c) {
    const struct tare_autotune_task automatic = { .evaluation = &c->evaluation,
                                                  .data = c->task->calibration_data,
                                                  .n_data = c->task->n_calibration_data,
                                                  .variant = tare_workflow_compare_first_quantizing(c),
                                                  .may_lack_measure = true };
    TARE_TRY(tare_workflow_autotune_choose(&c->automatic, &automatic));
    return compare_variant(c, &c->automatic.variant);
}

static struct tare_progress *new_progress(const struct tare_compare_job *c, int64_t total) {
    const struct tare_progress_options options = { .label = "comparing",
                                                   .unit = "records",
                                                   .total = total,
                                                   .quiet = c->task->quiet,
                                                   .on_progress = c->task->on_progress,
                                                   .progress_arg = c->task->progress_arg };
    return tare_progress_new(&options);
}

tare_status tare_workflow_compare_check_keys(const struct tare_compare_job *c, const struct tare_graph_model *model) {
    struct tare_array_readers readers = { .spec = c->task->spec,
                                          .label = c->options->label,
                                          .target = c->options->target_key,
                                          .sequence = c->task->feedback ? c->task->feedback->sequence : NULL };
    TARE_TRY(tare_pick_signature(&readers.signature, model, c->options->signature));
    TARE_TRY(tare_feedback_check(c->task->feedback, readers.signature));
    TARE_TRY(tare_workflow_check_array_names(c->task->data, c->task->n_data, &readers));
    return tare_workflow_check_label(&c->evaluation);
}

/* "float" in the results is the model that was given, which should be one. */
static void warn_of_quantized(const struct tare_compare_job *c) {
    char *origin;
    if (!tare_quant_has_integer_weights(c->loaded)) return;
    if (tare_origin_of(&origin, c->task->model) != TARE_OK) return; /* no memory: the command ends with that */
    tare_warn(&c->log, "'%s' is quantized: the others are compared with it, not with the float model (%s%s)",
              c->result.model, origin ? "made from " : "expected the model that it was made from",
              origin ? origin : "");
    tare_free(origin);
}

/* Models whose numbers the chip of the estimates has no units for. */
static void warn_of_units(const struct tare_compare_job *c) {
    const struct tare_tpu_chip *chip = &tare_tpu_chips[c->options->chip];
    double integers = 0, float8 = 0;
    for (size_t i = 0; i < c->result.n_rows; i++) {
        integers += c->result.rows[i].integer_macs > 0;
        float8 += c->result.rows[i].float8_macs > 0;
    }
    const char *lacks = tare_tpu_chip_lacks(chip, integers > 0, float8 > 0);
    if (lacks) tare_warn(&c->log, "a Cloud TPU %s %s", chip->name, lacks);
}

/* The recommendation follows from the estimate, or leaves out a model. */
static void warn_of_not_compiled(const struct tare_compare_job *c) {
    if (!c->result.not_compiled) return;
    if (c->result.compiler)
        tare_warn(&c->log, "--compile: a model has no cycles: %s", c->result.not_compiled);
    else
        tare_warn(&c->log, "--compile: estimated: %s", c->result.not_compiled);
}

/* Looks for records that the calibration has seen. */
static tare_status check_leakage(struct tare_compare_job *c) {
    struct tare_leakage leakage = { 0 };
    if (!c->evaluation.calibration) return TARE_OK;
    TARE_TRY(tare_workflow_find_leakage(&leakage, c->loaded, &c->evaluation));
    tare_workflow_warn_of_leakage(&c->log, &leakage);
    c->result.leakage_compared = leakage.records;
    c->result.leakage_shared = leakage.shared;
    return TARE_OK;
}

/* Keeps the first failure, which tare_workflow_compare_failure returns after the reports. */
static tare_status keep_failure(const char **text, struct tare_compare_job *c, tare_status status) {
    *text = tare_arena_strdup(&c->result.arena, tare_error_text());
    if (!*text) return TARE_NO_MEMORY;
    if (c->failure == TARE_OK) {
        c->failure = status;
        c->failure_text = *text;
    }
    tare_error_clear();
    return TARE_OK;
}

/* After an interruption, or without memory, no further model is tried. */
static bool stops(const struct tare_compare_job *c) {
    return c->failure == TARE_INTERRUPTED || c->failure == TARE_NO_MEMORY;
}

/* The text after "NAME: ". */
static const char *without_prefix(const char *text, const char *name) {
    const size_t size = strlen(name);
    return strncmp(text, name, size) == 0 && strncmp(text + size, ": ", 2) == 0 ? text + size + 2 : text;
}

static tare_status list_failure(struct tare_compare_job *c, const struct tare_variant *variant, tare_status status) {
    const char *text;
    TARE_TRY(keep_failure(&text, c, status));
    return tare_workflow_compare_skip(c, variant, without_prefix(text, variant->name));
}

/* A model that fails is listed with its error. */
static tare_status compare_variants(struct tare_compare_job *c) {
    for (size_t i = 1; i < c->variants.count && !stops(c); i++) {
        struct tare_variant *variant = &c->variants.variants[i];
        const tare_status status = variant->refused ? TARE_OK : compare_variant(c, variant);
        const char *text = tare_error_text();
        if (status == TARE_OK) continue;
        if (status == TARE_UNSUPPORTED && is_companion(c, variant))
            TARE_TRY(tare_workflow_compare_skip(c, variant,
                                                without_prefix(text, variant->name))); /* the user did not request it */
        else
            TARE_TRY(list_failure(c, variant, status));
        tare_error_clear();
    }
    return TARE_OK;
}

static tare_status compare_given(struct tare_compare_job *c) {
    for (size_t i = 0; i < c->options->with.count && !stops(c); i++) {
        const tare_status status = tare_workflow_compare_run_given(c, i);
        const char *text;
        if (status == TARE_OK) continue;
        TARE_TRY(keep_failure(&text, c, status));
        TARE_TRY(
            tare_comparison_skip(&c->result, c->given[i], NULL, NULL, without_prefix(text, c->options->with.items[i])));
    }
    return TARE_OK;
}

/* The run of the float model counts the records. */
static tare_status compare_all(struct tare_compare_job *c) {
    const struct tare_signature *signature;
    size_t models;
    tare_status status;
    TARE_TRY(
        tare_saved_model_load(&c->loaded, c->task->model, &(struct tare_saved_model_options){ .ops = c->task->ops }));
    c->can_convert = tare_pipeline_can_place(c->loaded);
    warn_of_quantized(c);
    TARE_TRY(tare_workflow_compare_check_keys(c, c->loaded));
    TARE_TRY(calibrate(c));
    TARE_TRY(check_leakage(c));
    TARE_TRY(tare_pick_signature(&signature, c->loaded, c->options->signature));
    TARE_TRY(tare_runner_find_rows(&c->evaluation.records, signature));
    tare_record_store_fill(&c->records, &c->evaluation.records, TARE_RECORD_STORE_BYTES);
    c->result.progress = new_progress(c, c->options->limit ? c->options->limit : -1);
    status = compare_float(c);
    tare_progress_free(c->result.progress);
    c->result.progress = NULL;
    if (status == TARE_OK && c->result.records == 0)
        status =
            TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records to evaluate with (expected at least 1)", c->task->data[0]);
    TARE_TRY(status);
    models = c->variants.count - 1 - c->result.n_skipped + c->options->with.count;
    c->result.progress = new_progress(c, c->result.records * (int64_t)models);
    status = compare_given(c);
    if (status == TARE_OK) status = compare_variants(c);
    tare_progress_free(c->result.progress);
    c->result.progress = NULL;
    warn_of_units(c);
    return status;
}

static tare_status measure_sensitivity(struct tare_compare_job *c) {
    const struct tare_sensitivity_task task = { .evaluation = &c->evaluation,
                                                .variant = tare_workflow_compare_first_quantizing(c),
                                                .known = &c->result,
                                                .limit = c->options->sensitivity_limit };
    TARE_TRY(tare_sensitivity_measure(&c->sensitivity, &task));
    c->result.sensitivity = &c->sensitivity;
    return TARE_OK;
}

/* The search measures the sensitivity by which it orders the layers. */
static tare_status search_target(struct tare_compare_job *c) {
    const struct tare_compare_request *options = c->options;
    const struct tare_mixed_precision_task task = { .options = &options->target,
                                                    .evaluation = &c->evaluation,
                                                    .variant = options->automatic
                                                                   ? &c->automatic.variant
                                                                   : tare_workflow_compare_first_quantizing(c),
                                                    .known = &c->result,
                                                    .sensitivity_limit = options->sensitivity_limit };
    TARE_TRY(tare_workflow_mixed_precision_run(&c->targeting, &task));
    if (options->sensitivity) c->result.sensitivity = &c->targeting.sensitivity;
    c->result.target = &c->targeting.result;
    return TARE_OK;
}

/* ---- all of it ---- */

static const char *algorithm_of(struct tare_arena *arena, const struct tare_quant_plan *plan) {
    struct tare_strbuf text = { 0 };
    tare_algorithm_print(&text, &plan->setting.algorithm);
    const char *copy = text.failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return copy;
}

/* The plan of all variants, and what they vary: as requested, otherwise as the recipe has it, otherwise the default. */
static tare_status list_variants(struct tare_compare_job *c) {
    const struct tare_compare_request *options = c->options;
    struct tare_arena *arena = &c->result.arena;
    c->plan = options->plan;
    TARE_TRY(tare_quant_plan_open(&c->plan, arena));
    c->methods = options->methods         ? options->methods
                 : c->plan.setting.method ? c->plan.setting.method->name
                 : options->with.count    ? "float"
                 : tare_tpu_chip_prefers_float8(&tare_tpu_chips[options->chip])
                     ? "float,fp8,fp8+bfloat16,weight_only"
                     : "float,static,static+bfloat16,weight_only";
    c->has_companion = !options->methods && !c->plan.setting.method && !options->with.count;
    c->algorithms = options->algorithms ? options->algorithms : algorithm_of(arena, &c->plan);
    if (!c->algorithms) return TARE_NO_MEMORY;
    return tare_variants_parse(&c->variants, arena, c->methods, c->algorithms, options->granularities, &c->plan);
}

static tare_status choose_rest(struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    if (tare_feedback_is_given(task->feedback))
        return TARE_FAIL(TARE_USAGE, "--feedback and --rest are mutually exclusive: the records that are left do not "
                                     "follow each other (expected --data with files that were not calibrated with)");
    TARE_TRY(tare_unused_records_open(&c->rest, task->calibration, task->calibration_file, c->options->signature,
                                      task->data, task->n_data));
    c->evaluation.records.takes = tare_unused_records_take;
    c->evaluation.records.takes_arg = &c->rest;
    return TARE_OK;
}

tare_status tare_workflow_compare_open(struct tare_compare_job *out, const struct tare_compare_request *options,
                                       const struct tare_compare_task *task) {
    *out = (struct tare_compare_job){ .options = options, .task = task };
    out->log = tare_warnings_log(&out->result.warnings, task->log);
    if (options->compile && !(out->compiled = json_object())) return TARE_NO_MEMORY;
    TARE_TRY(list_variants(out));
    TARE_TRY(tare_workflow_compare_check(out));
    TARE_TRY(tare_workflow_mixed_precision_open(&options->target));
    if (tare_workflow_mixed_precision_requested(&options->target) && !tare_workflow_compare_first_quantizing(out))
        return TARE_FAIL(TARE_USAGE, "a target requires a quantizing method");
    if (options->automatic && !tare_workflow_compare_first_quantizing(out))
        return TARE_FAIL(TARE_USAGE, "--auto requires a quantizing method");
    if (options->sensitivity && !tare_workflow_compare_first_quantizing(out))
        return TARE_FAIL(TARE_USAGE, "--sensitivity requires a quantizing method");
    TARE_TRY(tare_workflow_keep_expected(task->spec, options->label, options->target_key));
    out->source = (struct tare_variant_source){ .model = task->model, .ops = task->ops };
    out->evaluation = (struct tare_evaluation){ .source = &out->source,
                                                .signature = options->signature,
                                                .records = { .paths = task->data,
                                                             .n_paths = task->n_data,
                                                             .limit = options->limit,
                                                             .spec = task->spec,
                                                             .feedback = task->feedback,
                                                             .records = &out->records,
                                                             .batch = options->batch,
                                                             .interrupted = task->interrupted },
                                                .label = options->label,
                                                .target_key = options->target_key,
                                                .metric = options->metric,
                                                .threads = options->threads ? options->threads : tare_cpu_count(),
                                                .quiet = task->quiet };
    if (options->rest) TARE_TRY(choose_rest(out));
    out->result.keeps_changed = true;
    out->result.chip = options->chip;
    out->result.margin = options->margin;
    out->result.chip_batch = options->chip_batch;
    out->result.by_time = options->compile;
    out->result.model = task->model_name ? task->model_name : task->model;
    out->result.data = task->data_name ? task->data_name : task->data[0];
    return task->metric ? tare_measure_set_custom(&out->result, task->metric) : TARE_OK;
}

/* What is measured after the variants, if requested. */
static tare_status measure_more(struct tare_compare_job *c) {
    if (c->options->automatic) TARE_TRY(compare_automatic(c));
    TARE_TRY(compare_fastest(c));
    if (tare_workflow_mixed_precision_requested(&c->options->target)) return search_target(c);
    return c->options->sensitivity ? measure_sensitivity(c) : TARE_OK;
}

tare_status tare_workflow_compare_run(struct tare_compare_job *c) {
    const double start = tare_clock_seconds();
    TARE_TRY(compare_all(c));
    if (c->failure == TARE_OK) TARE_TRY(measure_more(c));
    warn_of_not_compiled(c);
    tare_data_options_warn(&c->log, c->task->spec);
    if (c->result.warnings.failed) return TARE_NO_MEMORY;
    TARE_TRY(tare_workflow_compare_next(c));
    return tare_workflow_compare_describe(c, tare_clock_seconds() - start);
}

tare_status tare_workflow_compare_failure(const struct tare_compare_job *c) {
    if (c->failure != TARE_OK) tare_error_set(c->failure_text);
    return c->failure;
}

void tare_workflow_compare_release(struct tare_compare_job *c) {
    tare_record_store_free(&c->records);
    tare_variant_source_close(&c->source);
}

void tare_workflow_compare_close(struct tare_compare_job *c) {
    if (c->owns_calibration) tare_calibration_free(c->evaluation.calibration);
    tare_unused_records_close(&c->rest);
    tare_sensitivity_free(&c->sensitivity);
    tare_workflow_mixed_precision_close(&c->targeting);
    tare_workflow_autotune_free(&c->automatic);
    tare_comparison_free(&c->result);
    tare_workflow_compare_release(c);
    tare_model_free(c->loaded);
    json_decref(c->compiled);
}
