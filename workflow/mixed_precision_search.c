/* Runs the mixed-precision search (eval/target.h) on a model: the sensitivity of its layers to each precision first,
 * then whole mixes as the search requests them. */
#include "workflow/mixed_precision_search.h"
#include "base/format.h"
#include "workflow/precision_levels.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "eval/model_inputs.h"
#include "eval/measure.h"
#include "eval/record_store.h"
#include "quant/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool tare_workflow_mixed_precision_requested(const struct tare_mixed_precision_request *options) {
    return options->max_drop || options->min_sqnr || options->max_mae || options->max_size;
}

struct targeting {
    const struct tare_mixed_precision_task *task;
    const struct tare_sensitivity *steps;
    struct tare_evaluation evaluation; /* the task's, with a store of the records */
    struct tare_comparison comparison; /* the first row is the float model */
    const size_t *kept;                /* steps of the current mix */
    size_t n_kept;
};

/* ---- models ---- */

static const struct tare_sensitive_layer *step_of(const struct targeting *t, const struct tare_graph *graph,
                                                  const struct tare_node *op) {
    return tare_target_step(t->steps, t->kept, t->n_kept, graph->name, op->name);
}

static bool is_quantized(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct tare_sensitive_layer *step = step_of(arg, graph, op);
    return !step || step->quantized;
}

static void set_bits(void *arg, const struct tare_graph *graph, const struct tare_node *op,
                     struct tare_quant_setting *setting) {
    const struct tare_sensitive_layer *step = step_of(arg, graph, op);
    if (!step || !step->quantized) return;
    if (step->bits) setting->bits = step->bits;
    if (step->activation_bits) setting->activation_bits = step->activation_bits;
}

/* The model of a mix. */
static tare_status make_mix(struct tare_graph_model **out, struct targeting *t, const size_t *kept, size_t n_kept) {
    struct tare_variant variant = *t->task->variant;
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    tare_status status;
    t->kept = kept;
    t->n_kept = n_kept;
    variant.plan.accepts = is_quantized;
    variant.plan.accepts_arg = t;
    variant.plan.adjust = set_bits;
    variant.plan.adjust_arg = t;
    status = tare_variant_source_make(out, &report, &arena, t->evaluation.source, &variant, t->evaluation.calibration);
    tare_arena_free(&arena);
    return status;
}

static tare_status size_of(void *arg, int64_t *bytes, const size_t *kept, size_t n_kept) {
    struct tare_graph_model *model;
    TARE_TRY(make_mix(&model, arg, kept, n_kept));
    const tare_status status = tare_model_weight_bytes(bytes, model);
    tare_model_free(model);
    return status;
}

static tare_status measure(void *arg, struct tare_target_point *point) {
    struct targeting *t = arg;
    struct tare_comparison_row *row;
    struct tare_graph_model *model;
    tare_status status;
    TARE_TRY(make_mix(&model, t, point->kept, point->n_kept));
    status = tare_evaluate(&row, &t->comparison, model, &t->evaluation);
    tare_model_free(model);
    TARE_TRY(status);
    point->size_bytes = row->size_bytes;
    point->figures = tare_sensitivity_figures_of(&t->comparison, row->outputs);
    return TARE_OK;
}

static tare_status measure_float(struct tare_sensitivity_figures *out, int64_t *bytes, struct targeting *t) {
    struct tare_comparison_row *row;
    TARE_TRY(tare_evaluate_float(&row, &t->comparison, &t->evaluation, t->task->known));
    *out = tare_sensitivity_figures_of(&t->comparison, row->outputs);
    *bytes = row->size_bytes;
    return TARE_OK;
}

/* ---- targets ---- */

static tare_status read_number(double *out, const char *name, const char *text) {
    char *end;
    *out = tare_read_double(text, &end);
    if (end != text && !*end && isfinite(*out)) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "--%s is '%s' (expected a number)", name, text);
}

static tare_status read_target(struct tare_target *out, const struct tare_mixed_precision_request *options,
                               int64_t float_bytes) {
    *out = (struct tare_target){ .max_drop = INFINITY, .min_sqnr_db = -INFINITY };
    if (options->max_drop) TARE_TRY(read_number(&out->max_drop, "max-drop", options->max_drop));
    if (options->min_sqnr) TARE_TRY(read_number(&out->min_sqnr_db, "min-sqnr", options->min_sqnr));
    if (options->max_mae) {
        TARE_TRY(read_number(&out->max_mae, "max-mae", options->max_mae));
        if (!(out->max_mae > 0))
            return TARE_FAIL(TARE_USAGE, "--max-mae is '%s' (expected a positive number)", options->max_mae);
    }
    if (options->max_size)
        TARE_TRY(
            tare_error_prefix(tare_target_read_size(&out->max_bytes, options->max_size, float_bytes), "--max-size"));
    return TARE_OK;
}

tare_status tare_workflow_mixed_precision_open(const struct tare_mixed_precision_request *options) {
    const int64_t any_bytes = INT32_MAX; /* of the float model, which is not known yet */
    struct tare_target target;
    return read_target(&target, options, any_bytes);
}

/* The sensitivity of the variant, then the steps to higher precisions. */
static tare_status measure_steps(struct tare_mixed_precision *out, const struct targeting *t) {
    const struct tare_sensitivity_task sensitivity = { .evaluation = &t->evaluation,
                                                       .variant = t->task->variant,
                                                       .known = &t->comparison,
                                                       .limit = t->task->sensitivity_limit };
    TARE_TRY(tare_sensitivity_measure(&out->sensitivity, &sensitivity));
    return tare_workflow_precision_steps(&out->steps, &out->sensitivity, &sensitivity);
}

static void begin_progress(struct targeting *t) {
    const struct tare_progress_options progress = {
        .label = "target", .unit = "records", .total = -1, .quiet = t->evaluation.quiet
    };
    t->comparison.progress = tare_progress_new(&progress);
}

static void end_progress(struct targeting *t) {
    tare_progress_free(t->comparison.progress);
    t->comparison.progress = NULL;
}

/* The float model, whose outputs serve all measurements, then the steps, then the mixes. */
static tare_status search_mix(struct tare_mixed_precision *out, struct targeting *t) {
    struct tare_sensitivity_figures figures;
    struct tare_target target;
    struct tare_target_task search = {
        .target = &target, .sensitivity = &out->steps, .size = size_of, .measure = measure, .arg = t
    };
    int64_t bytes;
    tare_status status;
    begin_progress(t);
    status = measure_float(&figures, &bytes, t);
    end_progress(t);
    TARE_TRY(status);
    TARE_TRY(read_target(&target, t->task->options, bytes));
    TARE_TRY(measure_steps(out, t));
    search.float_score = figures.score;
    search.float_mae = figures.mae;
    search.measured = tare_measure_of(&t->comparison);
    begin_progress(t);
    status = tare_target_search(&out->result, &search);
    end_progress(t);
    return status;
}

static tare_status find_rows(struct tare_evaluation *evaluation) {
    const struct tare_signature *signature;
    const struct tare_graph_model *model;
    TARE_TRY(tare_variant_source_prepared(&model, evaluation->source));
    TARE_TRY(tare_pick_signature(&signature, model, evaluation->signature));
    return tare_runner_find_rows(&evaluation->records, signature);
}

tare_status tare_workflow_mixed_precision_run(struct tare_mixed_precision *out,
                                              const struct tare_mixed_precision_task *task) {
    struct tare_record_store records = { 0 };
    struct targeting t = { .task = task, .steps = &out->steps, .evaluation = *task->evaluation };
    tare_status status;
    *out = (struct tare_mixed_precision){ .result = { .chosen = NULL } };
    if (!t.evaluation.records.records) {
        TARE_TRY(find_rows(&t.evaluation));
        tare_record_store_fill(&records, &t.evaluation.records, TARE_RECORD_STORE_BYTES);
        t.evaluation.records.records = &records;
    }
    status = search_mix(out, &t);
    tare_comparison_free(&t.comparison);
    tare_record_store_free(&records);
    return status;
}

void tare_workflow_mixed_precision_close(struct tare_mixed_precision *targeting) {
    tare_target_free(&targeting->result);
    tare_sensitivity_free(&targeting->steps);
    tare_sensitivity_free(&targeting->sensitivity);
}

tare_status tare_workflow_mixed_precision_check(const struct tare_mixed_precision *targeting) {
    if (targeting->result.chosen) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "no mix of %s and more exact layers meets the target (best: %s)",
                     targeting->sensitivity.method, targeting->result.best);
}

tare_status tare_workflow_mixed_precision_apply(struct tare_quant_plan *plan, struct tare_arena *arena,
                                                const struct tare_mixed_precision *targeting) {
    struct tare_strbuf text = { 0 };
    tare_target_recipe(&text, &targeting->result);
    return tare_quant_recipe_extend(plan, arena, &text, "target");
}
