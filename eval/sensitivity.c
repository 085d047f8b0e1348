/* Layer-by-layer sensitivity. With n quantized layers, 3 n + 1 models are measured against float: each layer quantized
 * alone, all layers but one, and, in order of their noise alone, the worst 1, 2, … n layers kept in float. Consecutive
 * models differ in few layers, so they run as a set (eval/model_set.h), which computes only what differs. */
#include "eval/sensitivity.h"
#include "base/clock.h"
#include "base/progress.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"
#include "base/strbuf.h"
#include "eval/measure.h"
#include "eval/model_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tare_sensitivity_free(struct tare_sensitivity *sensitivity) {
    tare_arena_free(&sensitivity->arena);
    memset(sensitivity, 0, sizeof *sensitivity);
}

/* ---- which layers are quantized ---- */

struct choice {
    const struct tare_sensitive_layer *layers;
    size_t count;
    enum { ALL, NONE, ONLY, BUT, AFTER } how; /* only layer `at`; all but it; all after it */
    size_t at;
};

static bool expected(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct choice *choice = arg;
    if (choice->how == NONE) return false;
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
    struct tare_comparison comparison;
};

/* Builds the model of a choice; `report` (may be NULL) is arena memory. */
static tare_status make(struct tare_graph_model **out, struct measuring *m, struct choice *choice,
                        struct tare_quant_report *report, struct tare_arena *arena) {
    struct tare_variant variant = *m->task->variant;
    struct tare_quant_report ignored;
    if (choice->how != ALL) {
        variant.plan.accepts = expected;
        variant.plan.accepts_arg = choice;
    }
    return tare_variant_source_make(out, report ? report : &ignored, arena, m->task->source, &variant,
                                    m->task->calibration);
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
    if (m->expected_elements) f.mae = m->expected_error / (double)m->expected_elements;
    if (tare_measure_is_tested(measure)) {
        f.score = score_of(measure, m, reference);
        f.value = tare_measure_value(measure, m);
    }
    return f;
}

/* The model as loaded, without preparation. */
static tare_status run_float(struct tare_comparison_row **row, bool *stateful, struct measuring *m) {
    const struct tare_sensitivity_task *task = m->task;
    const struct tare_signature *signature;
    struct tare_graph_model *model;
    tare_status status;
    TARE_TRY(tare_saved_model_load(&model, task->source->model,
                                   &(struct tare_saved_model_options){ .ops = task->source->ops }));
    TARE_CHECK(tare_pick_signature(&signature, model, task->signature));
    TARE_CHECK(tare_comparison_add(row, &m->comparison, model, signature, task->runner, task->label));
    status = tare_session_state_ops(stateful, model, signature, NULL);
done:
    tare_model_free(model);
    return status;
}

static tare_status take_float(struct tare_comparison_row **row, bool *stateful, struct measuring *m) {
    const struct tare_sensitivity_task *task = m->task;
    const struct tare_signature *signature;
    const struct tare_graph_model *model;
    TARE_TRY(tare_variant_source_prepared(&model, task->source));
    TARE_TRY(tare_pick_signature(&signature, model, task->signature));
    TARE_TRY(tare_session_state_ops(stateful, model, signature, NULL));
    return tare_comparison_add_known(row, &m->comparison, task->known, signature, task->runner, task->label);
}

static tare_status measure_float(struct measuring *m) {
    struct tare_comparison_row *row;
    bool stateful;
    TARE_TRY(m->task->known ? take_float(&row, &stateful, m) : run_float(&row, &stateful, m));
    m->out->float_model = tare_sensitivity_figures_of(&m->comparison, row->outputs);
    m->out->records = m->comparison.records;
    m->out->n_outputs = m->comparison.n_outputs;
    m->out->whole |= stateful;
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
        if (setting->granularity == TARE_PER_BLOCK)
            tare_strbuf_printf(&text, " granularity=per_block:%lld", (long long)setting->block);
        else
            tare_strbuf_printf(&text, " granularity=%s",
                               setting->granularity == TARE_PER_TENSOR ? "per_tensor" : "per_channel");
    }
    copy = text.failed ? NULL : tare_arena_strdup(arena, text.size ? tare_strbuf_text(&text) : "");
    tare_strbuf_free(&text);
    return copy;
}

static tare_status note_layers(struct measuring *m, const struct tare_quant_report *report) {
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
    if (status == TARE_OK) status = note_layers(m, &report);
    tare_model_free(model);
    tare_arena_free(&arena);
    return status;
}

/* ---- measuring several models ---- */

/* The models of a set and the places of their figures (NULL: the model is silent). */
struct probes {
    struct measuring *m;
    struct choice *choices;
    struct tare_sensitivity_figures **figures;
    bool *is_silent;
    size_t count;
};

static tare_status make_probe(void *arg, struct tare_graph_model **out, size_t number) {
    struct probes *probes = arg;
    struct tare_arena arena = { 0 };
    tare_status status = make(out, probes->m, &probes->choices[number], NULL, &arena);
    tare_arena_free(&arena);
    return status;
}

static void note_figures(void *arg, size_t number, const struct tare_metrics *outputs) {
    const struct probes *probes = arg;
    *probes->figures[number] = tare_sensitivity_figures_of(&probes->m->comparison, outputs);
}

static tare_status measure(struct probes *probes) {
    const struct tare_sensitivity_task *task = probes->m->task;
    struct tare_sensitivity *out = probes->m->out;
    const struct tare_model_set set = { .count = probes->count,
                                        .make = make_probe,
                                        .measured = note_figures,
                                        .is_silent = probes->is_silent,
                                        .arg = probes,
                                        .comparison = &probes->m->comparison,
                                        .signature = task->signature,
                                        .label = task->label,
                                        .runner = task->runner,
                                        .memory = task->memory };
    struct tare_model_set_report report = { out->whole, out->kept_bytes, out->run_nodes, out->whole_nodes };
    const tare_status status = tare_model_set_measure(&report, &set);
    out->whole = report.whole;
    out->kept_bytes = report.kept_bytes;
    out->run_nodes = report.nodes;
    out->whole_nodes = report.whole_nodes;
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

static void add_probe(struct probes *probes, const struct choice *from, int how, size_t at,
                      struct tare_sensitivity_figures *figures) {
    const size_t number = probes->count++;
    probes->choices[number] = *from;
    probes->choices[number].how = how;
    probes->choices[number].at = at;
    probes->figures[number] = figures;
    probes->is_silent[number] = !figures;
}

static tare_status open_probes(struct probes *probes, struct tare_arena *arena, size_t most) {
    probes->choices = TARE_NEW_ARRAY(arena, struct choice, most);
    probes->figures = TARE_NEW_ARRAY(arena, struct tare_sensitivity_figures *, most);
    probes->is_silent = TARE_NEW_ARRAY(arena, bool, most);
    return probes->choices && probes->figures && probes->is_silent ? TARE_OK : TARE_NO_MEMORY;
}

/* Models that share most with each other follow each other: a layer alone shares with the float model, all but one with
 * the quantized model, and k worst layers in float with k - 1. */
static tare_status measure_layers(struct measuring *m) {
    struct tare_sensitivity *out = m->out;
    const struct choice choice = { .layers = out->layers, .count = out->count };
    struct tare_arena arena = { 0 };
    struct probes probes = { .m = m };
    tare_status status = open_probes(&probes, &arena, 2 * out->count + 2);
    if (status != TARE_OK) goto done;
    add_probe(&probes, &choice, NONE, 0, NULL);
    for (size_t i = 0; i < out->count; i++)
        add_probe(&probes, &choice, ONLY, i, &out->layers[i].alone);
    if (m->task->alone_only) {
        status = measure(&probes);
        goto done;
    }
    add_probe(&probes, &choice, ALL, 0, &out->all);
    for (size_t i = 0; i < out->count; i++)
        add_probe(&probes, &choice, BUT, i, &out->layers[i].restored);
    TARE_CHECK(measure(&probes));
    qsort(out->layers, out->count, sizeof *out->layers, by_loss);
    probes.count = 0;
    add_probe(&probes, &choice, NONE, 0, NULL);
    for (size_t i = 0; i < out->count; i++)
        add_probe(&probes, &choice, AFTER, i, &out->layers[i].kept);
    status = measure(&probes);
done:
    tare_arena_free(&arena);
    return status;
}

tare_status tare_sensitivity_measure(struct tare_sensitivity *out, const struct tare_sensitivity_task *task) {
    struct measuring m = { .out = out,
                           .task = task,
                           .comparison = {
                               .threads = task->threads, .target_key = task->target_key, .metric = task->metric } };
    struct tare_progress_options progress = { .label = "sensitivity", .unit = "records", .quiet = task->quiet };
    const double start = tare_clock_seconds();
    tare_status status;
    memset(out, 0, sizeof *out);
    out->method = task->variant->name;
    out->algorithm = tare_variant_algorithm(&out->arena, task->variant);
    out->granularity = tare_variant_granularity(&out->arena, task->variant);
    status = measure_float(&m);
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
