/* Running the models of a comparison. */
#include "eval/comparison.h"
#include "base/alloc.h"
#include "graph/calls.h"

#include <string.h>
#include <time.h>

void tare_comparison_free(struct tare_comparison *comparison) {
    for (size_t r = 0; r < comparison->n_reference; r++) {
        for (size_t i = 0; i < comparison->n_outputs; i++) tare_tensor_reset(&comparison->reference[r][i]);
        tare_free(comparison->reference[r]);
    }
    tare_free(comparison->reference);
    tare_free(comparison->rows);
    tare_arena_free(&comparison->arena);
    memset(comparison, 0, sizeof *comparison);
}

/* ---- sizes ---- */

static int64_t constant_bytes(const struct tare_graph *graph) {
    int64_t total = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const struct tare_tensor *value =
            node->dead || strcmp(node->op, "Const") != 0 ? NULL : tare_node_tensor(node, "value");
        if (value && value->dtype != TARE_DT_STRING)
            total += (int64_t)(value->splat ? tare_dtype_size(value->dtype) : tare_tensor_bytes(value));
    }
    return total;
}

int64_t tare_model_weight_bytes(const struct tare_model *model) {
    struct tare_arena arena = { 0 };
    int64_t total = constant_bytes(model->main);
    bool *live;
    if (tare_model_reachable_functions(&live, &arena, model, false) == TARE_OK)
        for (size_t i = 0; i < model->n_functions; i++)
            if (live[i]) total += constant_bytes(model->functions[i]);
    for (size_t i = 0; i < model->n_variables; i++)
        if (!model->variables[i].removed) total += (int64_t)tare_tensor_bytes(&model->variables[i].value);
    tare_arena_free(&arena);
    return total;
}

/* ---- records ---- */

struct pass {
    struct tare_comparison *comparison;
    struct tare_comparison_row *row;
    const char *label;
    bool is_reference;
    int64_t record;
};

static tare_status keep_reference(struct tare_comparison *c, const struct tare_tensor *outputs) {
    struct tare_tensor *kept = tare_calloc(c->n_outputs + 1, sizeof *kept);
    if (!kept) return TARE_NO_MEMORY;
    if (!TARE_GROW(c->reference, c->n_reference, c->reference_capacity)) {
        tare_free(kept);
        return TARE_NO_MEMORY;
    }
    c->reference[c->n_reference++] = kept;
    for (size_t i = 0; i < c->n_outputs; i++) TARE_TRY(tare_tensor_copy(&kept[i], &outputs[i]));
    return TARE_OK;
}

static tare_status on_record(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                             const struct tare_tensor *outputs) {
    struct pass *pass = arg;
    struct tare_comparison *c = pass->comparison;
    int64_t label = -1;
    (void)where;
    if (tare_sample_find(sample, pass->label)) TARE_TRY(tare_sample_label(&label, sample, pass->label));
    if (pass->is_reference) TARE_TRY(keep_reference(c, outputs));
    for (size_t i = 0; i < c->n_outputs; i++)
        tare_metrics_add(&pass->row->outputs[i], &outputs[i], &c->reference[pass->record][i], label, pass->record);
    pass->record++;
    return TARE_OK;
}

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tare_status name_outputs(struct tare_comparison *c, const struct tare_signature *signature) {
    c->n_outputs = signature->n_outputs;
    c->output_keys = TARE_NEW_ARRAY(&c->arena, const char *, c->n_outputs + 1);
    if (!c->output_keys) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->n_outputs; i++) {
        c->output_keys[i] = tare_arena_strdup(&c->arena, signature->outputs[i].key);
        if (!c->output_keys[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

tare_status tare_comparison_add(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                const struct tare_model *model, const struct tare_signature *signature,
                                const struct tare_runner_options *options, const char *label) {
    struct pass pass = { .comparison = comparison, .label = label, .is_reference = comparison->n_rows == 0 };
    struct tare_session *session;
    double start;
    tare_status status;
    if (pass.is_reference) TARE_TRY(name_outputs(comparison, signature));
    if (!TARE_GROW(comparison->rows, comparison->n_rows, comparison->capacity)) return TARE_NO_MEMORY;
    pass.row = &comparison->rows[comparison->n_rows];
    memset(pass.row, 0, sizeof *pass.row);
    pass.row->outputs = TARE_NEW_ARRAY(&comparison->arena, struct tare_metrics, comparison->n_outputs + 1);
    if (!pass.row->outputs) return TARE_NO_MEMORY;
    TARE_TRY(tare_session_new(&session, model, NULL));
    start = now_seconds();
    status = tare_run_records(session, signature, options, on_record, &pass);
    pass.row->seconds = now_seconds() - start;
    tare_session_free(session);
    TARE_TRY(status);
    pass.row->size_bytes = tare_model_weight_bytes(model);
    comparison->records = pass.record;
    comparison->n_rows++;
    *out = pass.row;
    return TARE_OK;
}
