/* Layer-by-layer sensitivity. With n quantized layers, 3 n + 1 models are measured against float: each layer quantized
 * alone, all layers but one, and, in order of their noise alone, the worst 1, 2, … n layers kept in float. */
#include "eval/sensitivity.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "eval/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tare_sensitivity_free(struct tare_sensitivity *sensitivity) {
    tare_arena_free(&sensitivity->arena);
    memset(sensitivity, 0, sizeof *sensitivity);
}

const struct tare_sensitive_layer *tare_sensitivity_find(const struct tare_sensitivity *sensitivity,
                                                         const struct tare_explanation *layer) {
    for (size_t i = 0; sensitivity && i < sensitivity->count; i++) {
        const struct tare_sensitive_layer *found = &sensitivity->layers[i];
        if (strcmp(found->node, layer->node) == 0 && strcmp(found->function, layer->function) == 0) return found;
    }
    return NULL;
}

double tare_layer_db(const struct tare_sensitivity *sensitivity, const struct tare_explanation *layer) {
    const struct tare_sensitive_layer *measured = tare_sensitivity_find(sensitivity, layer);
    return measured && !isnan(measured->alone.sqnr_db) ? measured->alone.sqnr_db : tare_explanation_db(layer);
}

/* ---- which layers are quantized ---- */

struct choice {
    const struct tare_sensitive_layer *layers;
    size_t count;
    enum { ALL, ONLY, BUT, AFTER } how; /* only layer `at`; all but it; all after it */
    size_t at;
};

static bool chosen(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct choice *choice = arg;
    for (size_t i = 0; i < choice->count; i++) {
        if (strcmp(choice->layers[i].node, op->name) != 0 || strcmp(choice->layers[i].function, graph->name) != 0)
            continue;
        return choice->how == ONLY ? i == choice->at : choice->how == BUT ? i != choice->at : i > choice->at;
    }
    return false;
}

/* ---- models ---- */

struct measuring {
    struct tare_sensitivity *out;
    const struct tare_sensitivity_task *task;
    struct tare_evaluation evaluation; /* the task's, on its records */
    struct tare_comparison comparison;
};

/* Builds the model of a choice; `report` (may be NULL) is arena memory. */
static tare_status make(struct tare_graph_model **out, struct measuring *m, struct choice *choice,
                        struct tare_quant_report *report, struct tare_arena *arena) {
    struct tare_variant variant = *m->task->variant;
    struct tare_quant_report ignored;
    if (choice->how != ALL) {
        variant.plan.accepts = chosen;
        variant.plan.accepts_arg = choice;
    }
    return tare_variant_source_make(out, report ? report : &ignored, arena, m->evaluation.source, &variant,
                                    m->evaluation.calibration);
}

static double score_of(const struct tare_measure *measure, const struct tare_metrics *m,
                       const struct tare_metrics *reference) {
    const double value = tare_measure_value(measure, m);
    if (measure->lower_is_better) return -value / tare_measure_value(measure, reference);
    return *measure->unit ? value / 100 : value;
}

struct tare_sensitivity_figures tare_sensitivity_figures_of(const struct tare_comparison *c,
                                                            const struct tare_metrics *outputs) {
    const struct tare_metrics *m = &outputs[tare_measured_output(c)], *reference = tare_measured_of(c, &c->rows[0]);
    const struct tare_measure *measure = tare_measure_of(c);
    struct tare_sensitivity_figures f = { tare_worst_sqnr_db(NULL, c, outputs), NAN, NAN, NAN, NAN, NAN };
    if (m->labelled) f.top1 = (double)m->top1 / (double)m->labelled;
    if (m->ranked) f.agreement = (double)m->agree / (double)m->ranked;
    if (m->expected.count) f.mae = m->expected_error / (double)m->expected.count;
    if (tare_measure_is_tested(measure)) {
        f.score = score_of(measure, m, reference);
        f.value = tare_measure_value(measure, m);
    }
    return f;
}

static tare_status measure_float(struct measuring *m) {
    struct tare_comparison_row *row;
    TARE_TRY(tare_evaluate_float(&row, &m->comparison, &m->evaluation, m->task->known));
    m->out->float_model = tare_sensitivity_figures_of(&m->comparison, row->outputs);
    m->out->records = m->comparison.records;
    m->out->n_outputs = m->comparison.n_outputs;
    return TARE_OK;
}

/* The settings of a layer that a recipe changed; NULL when out of memory. */
static const char *setting_text(struct tare_arena *arena, const struct tare_quant_setting *setting,
                                const struct tare_quant_setting *common) {
    struct tare_strbuf text = { 0 };
    const char *copy;
    if (!tare_algorithm_equal(&setting->algorithm, &common->algorithm)) {
        tare_strbuf_puts(&text, " algorithm=");
        tare_algorithm_print(&text, &setting->algorithm);
    }
    if (setting->granularity != common->granularity || setting->block != common->block) {
        tare_strbuf_puts(&text, " granularity=");
        tare_quant_granularity_put(&text, setting);
    }
    copy = text.failed ? NULL : tare_arena_strdup(arena, text.size ? tare_strbuf_text(&text) : "");
    tare_strbuf_free(&text);
    return copy;
}

static tare_status add_layers(struct measuring *m, const struct tare_quant_report *report) {
    struct tare_sensitivity *out = m->out;
    out->layers = TARE_NEW_ARRAY(&out->arena, struct tare_sensitive_layer, report->count + 1);
    if (!out->layers) return TARE_NO_MEMORY;
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_quant_outcome *o = &report->outcomes[i];
        struct tare_sensitive_layer *layer = &out->layers[out->count];
        if (o->refused) continue;
        layer->function = tare_arena_strdup(&out->arena, o->function);
        layer->node = tare_arena_strdup(&out->arena, o->node);
        layer->op = tare_arena_strdup(&out->arena, o->op);
        layer->weight_elements = o->weight_elements;
        layer->setting = setting_text(&out->arena, &o->setting, &m->task->variant->plan.setting);
        if (!layer->function || !layer->node || !layer->op || !layer->setting) return TARE_NO_MEMORY;
        out->count++;
    }
    return TARE_OK;
}

static tare_status find_layers(struct measuring *m) {
    struct choice all = { .how = ALL };
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = NULL;
    tare_status status = make(&model, m, &all, &report, &arena);
    if (status == TARE_OK) status = add_layers(m, &report);
    tare_model_free(model);
    tare_arena_free(&arena);
    return status;
}

static tare_status measure(struct tare_sensitivity_figures *out, struct measuring *m, struct choice *choice) {
    struct tare_comparison_row *row;
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = NULL;
    tare_status status = make(&model, m, choice, NULL, &arena);
    if (status == TARE_OK) status = tare_evaluate(&row, &m->comparison, model, &m->evaluation);
    if (status == TARE_OK) *out = tare_sensitivity_figures_of(&m->comparison, row->outputs);
    tare_model_free(model);
    tare_arena_free(&arena);
    return status;
}

/* ---- the order of work ---- */

static int by_loss(const void *a, const void *b) {
    const struct tare_sensitive_layer *x = a, *y = b;
    int order;
    if (x->alone.sqnr_db < y->alone.sqnr_db) return -1;
    if (x->alone.sqnr_db > y->alone.sqnr_db) return 1;
    order = strcmp(x->function, y->function);
    return order ? order : strcmp(x->node, y->node);
}

static tare_status measure_layers(struct measuring *m) {
    struct tare_sensitivity *out = m->out;
    struct choice choice = { .layers = out->layers, .count = out->count, .how = ONLY };
    for (choice.at = 0; choice.at < out->count; choice.at++)
        TARE_TRY(measure(&out->layers[choice.at].alone, m, &choice));
    if (m->task->alone_only) return TARE_OK;
    TARE_TRY(measure(&out->all, m, &(struct choice){ .how = ALL }));
    choice.how = BUT;
    for (choice.at = 0; choice.at < out->count; choice.at++)
        TARE_TRY(measure(&out->layers[choice.at].restored, m, &choice));
    qsort(out->layers, out->count, sizeof *out->layers, by_loss);
    choice.how = AFTER;
    for (choice.at = 0; choice.at < out->count; choice.at++)
        TARE_TRY(measure(&out->layers[choice.at].kept, m, &choice));
    return TARE_OK;
}

tare_status tare_sensitivity_measure(struct tare_sensitivity *out, const struct tare_sensitivity_task *task) {
    struct measuring m = { .out = out, .task = task, .evaluation = *task->evaluation };
    struct tare_progress_options progress = { .label = "sensitivity", .unit = "records", .quiet = m.evaluation.quiet };
    const double start = tare_clock_seconds();
    tare_status status;
    int64_t *limit = &m.evaluation.records.limit;
    if (task->limit && (!*limit || *limit > task->limit)) *limit = task->limit;
    memset(out, 0, sizeof *out);
    out->method = task->variant->name;
    status = tare_variant_texts(&out->algorithm, &out->granularity, &out->arena, task->variant);
    if (status == TARE_OK) status = measure_float(&m);
    if (status == TARE_OK) status = find_layers(&m);
    if (status == TARE_OK) {
        progress.total = (task->alone_only ? (int64_t)out->count : 3 * (int64_t)out->count + 1) * out->records;
        m.comparison.progress = tare_progress_new(&progress);
        status = measure_layers(&m);
        tare_progress_free(m.comparison.progress);
    }
    tare_comparison_free(&m.comparison);
    out->seconds = tare_clock_seconds() - start;
    return tare_error_prefix(status, "sensitivity");
}
