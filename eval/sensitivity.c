/* Measuring layer by layer. */
#include "eval/sensitivity.h"
#include "base/alloc.h"
#include "base/progress.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"

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
    enum { ONLY, BUT, AFTER } how; /* layer `at` only; all but it; those behind it */
    size_t at;
};

static bool wanted(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct choice *choice = arg;
    for (size_t i = 0; i < choice->count; i++) {
        if (strcmp(choice->layers[i].node, op->name) != 0 || strcmp(choice->layers[i].function, graph->name) != 0) continue;
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

static struct tare_sensitivity_figures figures_of(const struct tare_metrics *m) {
    struct tare_sensitivity_figures f = { tare_metrics_sqnr_db(m), NAN, NAN };
    if (m->labelled) f.top1 = (double)m->top1 / (double)m->labelled;
    if (m->ranked) f.agreement = (double)m->agree / (double)m->ranked;
    return f;
}

static tare_status measure_model(struct tare_sensitivity_figures *out, struct measuring *m, const struct tare_model *model) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    TARE_TRY(tare_pick_signature(&signature, model, m->task->signature));
    TARE_TRY(tare_comparison_add(&row, &m->comparison, model, signature, m->task->runner, m->task->label));
    *out = figures_of(&row->outputs[0]);
    return TARE_OK;
}

static tare_status measure_float(struct measuring *m) {
    struct tare_model *model;
    tare_status status;
    TARE_TRY(tare_saved_model_load(&model, m->task->model, &(struct tare_saved_model_options){ .ops = m->task->ops }));
    status = measure_model(&m->out->float_model, m, model);
    tare_model_free(model);
    m->out->records = m->comparison.records;
    return status;
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
        if (!layer->function || !layer->node || !layer->op) return TARE_NO_MEMORY;
        out->count++;
    }
    return TARE_OK;
}

/* `choice` NULL: all layers, which are noted. */
static tare_status measure(struct tare_sensitivity_figures *out, struct measuring *m, struct choice *choice) {
    struct tare_variant variant = *m->task->variant;
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_model *model;
    tare_status status;
    if (choice) {
        variant.quantization.options.wants = wanted;
        variant.quantization.options.wants_arg = choice;
    }
    TARE_TRY(tare_load_prepared_with(&model, m->task->model, m->task->ops));
    status = tare_variant_apply(&report, &arena, model, &variant, m->task->calibration);
    if (status == TARE_OK && !choice) status = note_layers(m, &report);
    if (status == TARE_OK) status = measure_model(out, m, model);
    tare_model_free(model);
    tare_arena_free(&arena);
    return status;
}

/* ---- the order of work ---- */

static int by_loss(const void *a, const void *b) {
    const struct tare_sensitive_layer *x = a, *y = b;
    int order;
    if (x->alone.sqnr_db != y->alone.sqnr_db) return x->alone.sqnr_db < y->alone.sqnr_db ? -1 : 1;
    order = strcmp(x->function, y->function);
    return order ? order : strcmp(x->node, y->node);
}

static tare_status measure_layers(struct measuring *m) {
    struct tare_sensitivity *out = m->out;
    struct choice choice = { .layers = out->layers, .count = out->count };
    for (choice.at = 0; choice.at < out->count; choice.at++) {
        choice.how = ONLY;
        TARE_TRY(measure(&out->layers[choice.at].alone, m, &choice));
        choice.how = BUT;
        TARE_TRY(measure(&out->layers[choice.at].restored, m, &choice));
    }
    qsort(out->layers, out->count, sizeof *out->layers, by_loss);
    choice.how = AFTER;
    for (choice.at = 0; choice.at < out->count; choice.at++) TARE_TRY(measure(&out->layers[choice.at].kept, m, &choice));
    return TARE_OK;
}

tare_status tare_sensitivity_measure(struct tare_sensitivity *out, const struct tare_sensitivity_task *task) {
    struct measuring m = { .out = out, .task = task, .comparison = { .threads = task->threads } };
    struct tare_progress_options progress = { .label = "sensitivity", .unit = "records", .quiet = task->quiet };
    tare_status status;
    memset(out, 0, sizeof *out);
    out->method = task->variant->method;
    out->algorithm = task->variant->algorithm;
    out->granularity = task->variant->granularity;
    status = measure_float(&m);
    if (status == TARE_OK) status = measure(&out->all, &m, NULL);
    if (status == TARE_OK) {
        progress.total = 3 * (int64_t)out->count * out->records;
        m.comparison.progress = tare_progress_new(&progress);
        status = measure_layers(&m);
        tare_progress_free(m.comparison.progress);
    }
    tare_comparison_free(&m.comparison);
    return tare_error_prefix(status, "sensitivity");
}
