/* Candidates of an automatic choice: made from the current choices, run, and compared with each other. */
#include "workflow/autotune/measure.h"
#include "base/strbuf.h"
#include "calib/algorithm.h"
#include "convert/saved_model.h"
#include "eval/logits.h"
#include "eval/measure.h"
#include "eval/model_inputs.h"
#include "quant/recipe.h"

#include <math.h>
#include <string.h>

static const double TAIL = 0.05; /* of the paired comparison of two candidates */

static bool is_wanted(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct tare_autotune_search *c = arg;
    return !c->only || (strcmp(c->only->node, op->name) == 0 && strcmp(c->only->function, graph->name) == 0);
}

tare_status tare_autotune_variant(struct tare_variant *out, struct tare_autotune_search *c, struct tare_arena *arena) {
    struct tare_quant_plan *plan = &out->plan;
    struct tare_quant_recipe *recipe;
    struct tare_strbuf text = { 0 };
    tare_status status;
    *out = *c->task->variant;
    if (c->out->algorithm) TARE_TRY(tare_algorithm_parse(&plan->setting.algorithm, c->out->algorithm));
    plan->pass_names = *c->out->passes ? c->out->passes : NULL;
    plan->passes = NULL;
    TARE_TRY(tare_quant_recipe_new(&recipe, arena));
    tare_workflow_autotune_rules(&text, c->out);
    status = text.failed ? TARE_NO_MEMORY : tare_quant_recipe_read(recipe, tare_strbuf_text(&text), text.size, "auto");
    tare_strbuf_free(&text);
    plan->recipe = recipe;
    return status == TARE_OK ? tare_quant_plan_open(plan, arena) : status;
}

/* The last model's row by the measure of the task. The first one shows whether the samples have data for a measure; the
 * default key of labels may be that of something else. */
static tare_status run_task(struct tare_autotune_search *c, const struct tare_graph_model *model) {
    const bool first = !c->task_comparison.n_rows, by_default = !c->evaluation.target_key && !c->evaluation.metric;
    struct tare_comparison_row *row;
    tare_status status = tare_evaluate(&row, &c->task_comparison, model, &c->evaluation);
    if (first &&
        ((by_default && status == TARE_INVALID_ARGUMENT) || (c->task->may_lack_measure && status == TARE_NOT_FOUND))) {
        tare_error_clear();
        return TARE_OK;
    }
    TARE_TRY(status);
    c->task_last = c->task_comparison.n_rows - 1;
    if (first) c->out->measure = tare_measure_of(&c->task_comparison);
    if (first && c->out->measure->kind == TARE_MEASURE_SQNR) c->out->measure = NULL;
    return TARE_OK;
}

static double task_value(const struct tare_autotune_search *c, size_t row) {
    return tare_measure_value(c->out->measure, tare_measured_of(&c->task_comparison, &c->task_comparison.rows[row]));
}

static tare_status run_model(double *db, struct tare_autotune_search *c, struct tare_graph_model *model) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    const struct tare_evaluation *evaluation = &c->evaluation;
    const bool first = !c->comparison.n_rows,
               has_keys = evaluation->label || evaluation->target_key || evaluation->metric;
    if (!c->only && (c->out->measure || (first && has_keys))) TARE_TRY(run_task(c, model));
    TARE_TRY(tare_pick_signature(&signature, model, evaluation->signature));
    TARE_TRY(tare_model_return_logits(model, signature->key));
    TARE_TRY(tare_evaluate(&row, &c->comparison, model, &c->plain_outputs));
    c->last = c->comparison.n_rows - 1;
    *db = tare_worst_sqnr_db(NULL, &c->comparison, row->outputs);
    c->out->n_outputs = c->comparison.n_outputs;
    return TARE_OK;
}

/* The report's texts belong to the model. */
static tare_status add_layers(struct tare_autotune *out, const struct tare_quant_report *report) {
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

tare_status tare_autotune_model(struct tare_graph_model **out, struct tare_autotune_search *c,
                                const struct tare_autotune_layer *only) {
    struct tare_quant_report report;
    struct tare_variant variant;
    struct tare_arena arena = { 0 };
    tare_status status;
    *out = NULL;
    c->only = only;
    TARE_CHECK(tare_autotune_variant(&variant, c, &arena));
    variant.plan.accepts = is_wanted;
    variant.plan.accepts_arg = c;
    TARE_CHECK(tare_variant_source_make(out, &report, &arena, c->evaluation.source, &variant,
                                        c->fit ? c->fit : c->evaluation.calibration));
    if (!c->out->layers) status = add_layers(c->out, &report);
done:
    tare_arena_free(&arena);
    return status;
}

tare_status tare_autotune_measure(double *db, struct tare_autotune_search *c, const struct tare_autotune_layer *only) {
    struct tare_graph_model *model;
    c->out->models++;
    tare_status status = tare_autotune_model(&model, c, only);
    if (status == TARE_OK) status = run_model(db, c, model);
    tare_model_free(model);
    return status;
}

tare_status tare_autotune_measure_float(struct tare_autotune_search *c) {
    struct tare_graph_model *model;
    double db;
    tare_status status;
    const struct tare_variant_source *source = c->evaluation.source;
    TARE_TRY(tare_saved_model_load(&model, source->model, &(struct tare_saved_model_options){ .ops = source->ops }));
    status = run_model(&db, c, model);
    tare_model_free(model);
    c->out->records = c->comparison.records;
    return status;
}

/* By the measure of the task: 1 if the last candidate is significantly better than another row, -1 if it is worse at
 * all, 0 otherwise. */
static int compare_by_task(const struct tare_autotune_search *c, size_t other) {
    const struct tare_measure *measure = c->out->measure;
    const struct tare_comparison_row *rows = c->task_comparison.rows;
    struct tare_paired paired;
    const double gain = (task_value(c, c->task_last) - task_value(c, other)) * (measure->lower_is_better ? -1 : 1);
    if (gain < 0) return -1;
    if (!(gain > 0)) return 0;
    tare_measure_paired(&paired, measure, tare_measured_of(&c->task_comparison, &rows[c->task_last]),
                        tare_measured_of(&c->task_comparison, &rows[other]), TAIL);
    return paired.high < 0;
}

bool tare_autotune_improves(const struct tare_autotune_search *c, double db, size_t other, double margin) {
    const struct tare_comparison_row *rows = c->comparison.rows;
    size_t worst;
    const double other_db = tare_worst_sqnr_db(&worst, &c->comparison, rows[other].outputs);
    const struct tare_metrics *a = &rows[c->last].outputs[worst], *b = &rows[other].outputs[worst];
    struct tare_paired noise;
    if (c->out->measure) {
        const int task = compare_by_task(c, other == c->best ? c->task_best : c->task_plain);
        if (task) return task > 0;
    }
    if (!(db > other_db + margin)) return false;
    if (a->row_noise.count != b->row_noise.count) return false;
    tare_paired_means(&noise, &a->row_noise, &b->row_noise, TAIL);
    return isnan(noise.high) || noise.high < 0; /* with few samples the decibels decide */
}

void tare_autotune_keep(struct tare_autotune_search *c, double db) {
    c->out->db = db;
    c->best = c->last;
    c->task_best = c->task_last;
    if (c->out->measure) c->out->value = task_value(c, c->task_best);
}

void tare_autotune_take_loss(struct tare_autotune_search *c) {
    const struct tare_comparison_row *rows = c->task_comparison.rows;
    const struct tare_measure *measure = c->out->measure;
    struct tare_paired paired;
    c->out->least_loss = NAN;
    if (!measure) return;
    const struct tare_metrics *reference = tare_measured_of(&c->task_comparison, &rows[0]);
    tare_measure_paired(&paired, measure, tare_measured_of(&c->task_comparison, &rows[c->task_best]), reference,
                        TARE_TAIL_95);
    c->out->least_loss = paired.low / tare_measure_point(measure, reference);
}
