/* Two rows of drawn numbers are enough: what a row's result depends on besides the row shows in its bits. */
#include "workflow/batching/rows_check.h"
#include "base/alloc.h"
#include "eval/records.h"
#include "graph/data_dependence.h"
#include "interpreter/session.h"
#include "tpu/closure.h"

enum { OPEN_SIZE = 8 }; /* of dimensions that the signature leaves open */

static bool has_batcher(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_node_is(graph->nodes[i], "BatchFunction")) return true;
    return false;
}

/* Whether an output of the signature is a result of a function that has, or calls one that has, a batcher. */
static tare_status is_batched(bool *batched, struct tare_arena *arena, const struct tare_signature *signature) {
    *batched = false;
    for (size_t i = 0; i < signature->n_outputs && !*batched; i++) {
        const struct tare_node *node = signature->outputs[i].edge.node;
        struct tare_tpu_closure below;
        struct tare_graph *function;
        while (node && tare_node_is(node, "Identity") && node->n_inputs)
            node = node->inputs[0].node;
        function = node ? tare_node_function(node, "f") : NULL;
        if (!function) continue;
        TARE_TRY(tare_tpu_closure(&below, arena, &function, 1));
        for (size_t k = 0; k < below.count; k++)
            *batched |= has_batcher(below.members[k].graph);
    }
    return TARE_OK;
}

/* Between -2 and 2, and other numbers for other rows, places and inputs. */
static double drawn(size_t input, int row, int64_t place) {
    const uint64_t x = ((uint64_t)place * 2 + (uint64_t)row + (uint64_t)input * 7919 + 1) * 0x9E3779B97F4A7C15ULL;
    return (double)(x >> 40) / (1 << 22) - 2;
}

static tare_status draw_input(struct tare_tensor *out, const struct tare_binding *binding, size_t input, int row) {
    struct tare_shape shape = binding->shape;
    shape.dims[0] = 1;
    for (int d = 1; d < shape.rank; d++)
        if (shape.dims[d] < 0) shape.dims[d] = OPEN_SIZE;
    TARE_TRY(tare_tensor_new(out, tare_dtype_base(binding->dtype), &shape));
    for (int64_t i = 0; i < out->elements; i++) {
        const double value = drawn(input, row, i);
        if (tare_dtype_is_floating(out->dtype))
            tare_tensor_set_f64(out, i, value);
        else if (out->dtype == TARE_DT_STRING)
            TARE_TRY(tare_tensor_set_string(out, i, row ? "b" : "a", 1));
        else
            tare_tensor_set_i64(out, i, (i + row + (value > 0)) % 2); /* identifiers that every table has */
    }
    return TARE_OK;
}

static tare_status draw_rows(struct tare_bound_record *two, const struct tare_signature_edges *edges) {
    for (int row = 0; row < 2; row++) {
        two[row].values = tare_calloc(edges->n_feeds + edges->n_outputs + 1, sizeof *two[row].values);
        if (!two[row].values) return TARE_NO_MEMORY;
        two[row].outputs = two[row].values + edges->n_feeds;
        for (size_t i = 0; i < edges->n_feeds; i++)
            TARE_TRY(draw_input(&two[row].values[i], &edges->signature->inputs[i], i, row));
    }
    return TARE_OK;
}

static tare_status run_two(enum tare_batch_verdict *verdict, const struct tare_graph_model *model,
                           const struct tare_signature *signature) {
    const struct tare_session_options plain = { .seed = 1 };
    struct tare_signature_edges edges = { 0 };
    struct tare_bound_record two[2] = { 0 };
    struct tare_session *session = NULL;
    tare_status status;
    TARE_CHECK(tare_signature_edges_of(&edges, signature));
    TARE_CHECK(tare_session_new(&session, model, &plain));
    TARE_CHECK(draw_rows(two, &edges));
    status = tare_records_check_pair(verdict, session, &edges, two);
done:
    for (int row = 0; row < 2; row++)
        tare_record_reset(&two[row], &edges);
    tare_session_free(session);
    tare_signature_edges_free(&edges);
    return status;
}

static tare_status check_signature(struct tare_batching_result *result, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_signature *signature) {
    enum tare_batch_verdict verdict = TARE_BATCH_UNDECIDED;
    const char *one_by_one;
    bool batched;
    if (!tare_signature_batches(signature, false)) return TARE_OK; /* a rank is not known */
    TARE_TRY(is_batched(&batched, arena, signature));
    if (!batched) return TARE_OK;
    TARE_TRY(tare_batch_check_graph(&one_by_one, model, signature));
    if (one_by_one) return TARE_OK;
    TARE_TRY(tare_error_dismiss(run_two(&verdict, model, signature)));
    if (verdict != TARE_BATCH_DEPENDENT) return TARE_OK;
    return tare_batch_add_warning(
        result, arena,
        tare_arena_printf(arena,
                          "batching of signature %s: two rows give other numbers as a batch than alone: the results of "
                          "a request depend on the requests that are batched with it, and on the padding (compute each "
                          "row by itself, or do not batch the function)",
                          signature->key));
}

tare_status tare_workflow_check_rows(struct tare_batching_result *result, struct tare_arena *arena,
                                     const struct tare_graph_model *model) {
    if (!result->inserted && !result->updated) return TARE_OK;
    for (size_t i = 0; i < model->n_signatures && !result->n_warnings; i++)
        TARE_TRY(check_signature(result, arena, model, &model->signatures[i]));
    return TARE_OK;
}
