/* Ranges by record; see the header.
 *
 * A range is Reshape(x, [-1]) followed by Min or Max over axis 0. It is replaced by a reduction of x over all axes but
 * the first, shaped [batch, 1, …, 1] with the rank of x. Ops on single elements that use only such values and constants
 * (scales, zero points, their products with the vectors of a layer) then have the batch on their first axis as well,
 * and broadcast against x and against the layer's product. Any other use (a reshape, a call, a return of a function)
 * rules the model out. */
#include "eval/record_ranges.h"
#include "base/alloc.h"
#include "graph/clone.h"
#include "graph/emit.h"
#include "graph/op.h"
#include "interpreter/inference/model_shapes.h"

#include <string.h>

/* ---- ranges of a graph ---- */

/* True if the constant has the one integer `value`; with `rank` 1, as a vector. */
static bool is_one_integer(struct tare_edge edge, int64_t value, int rank) {
    const struct tare_tensor *constant = tare_edge_constant(edge);
    return constant && constant->elements == 1 && !tare_dtype_is_floating(constant->dtype) &&
           constant->shape.rank <= 1 && constant->shape.rank >= rank && tare_tensor_get_i64(constant, 0) == value;
}

/* Whether the node is the minimum or the maximum of all elements of the edge *x. */
static bool is_range(struct tare_edge *x, const struct tare_node *node) {
    const struct tare_node *flat;
    if (node->dead || (!tare_node_is(node, "Min") && !tare_node_is(node, "Max")) || node->n_inputs != 2) return false;
    flat = node->inputs[0].node;
    if (!tare_node_is(flat, "Reshape") || tare_edge_dtype(node->inputs[0]) != TARE_DT_FLOAT) return false;
    if (!is_one_integer(node->inputs[1], 0, 0) || !is_one_integer(flat->inputs[1], -1, 1)) return false;
    *x = flat->inputs[0];
    return true;
}

/* The reduction of x over all axes but the first, as [batch, 1, …, 1]. */
static struct tare_edge emit_reduction(struct tare_emit *emit, const struct tare_node *range, struct tare_edge x,
                                       int rank, size_t batch) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "keep_dims", TARE_EMIT_BOOL, true },
                                            { 0 } };
    struct tare_shape shape = { .rank = rank, .dims = { (int64_t)batch } };
    int32_t axes[TARE_MAX_RANK] = { 0 };
    for (int i = 1; i < rank; i++) {
        axes[i - 1] = i;
        shape.dims[i] = 1;
    }
    const struct tare_edge inputs[] = { x, tare_emit_vector(emit, "by_record/axes", rank - 1, axes) };
    return tare_emit_reshape(emit, "by_record/shape",
                             tare_emit_node(emit, range->op, "by_record/extreme", inputs, 2, attrs), &shape);
}

struct rewriting {
    const struct tare_model_shapes *shapes; /* before the first change; nodes keep their positions */
    struct tare_arena *arena;
    size_t batch;
    size_t n_ranges;
    bool refused;
};

static tare_status rewrite_range(struct rewriting *r, struct tare_node *range, struct tare_edge x) {
    struct tare_emit emit = { .graph = range->graph, .prefix = range->name };
    const int rank = tare_model_shape(r->shapes, x).rank;
    if (rank < 1) {
        r->refused = true;
        return TARE_OK;
    }
    const struct tare_edge reduction = emit_reduction(&emit, range, x, rank, r->batch);
    TARE_TRY(emit.status);
    tare_graph_replace_uses(range->graph, tare_node_output0(range), reduction, NULL);
    range->edit = reduction.node;
    r->n_ranges++;
    return TARE_OK;
}

/* ---- what is computed from ranges ---- */

/* Marks ops on single elements whose inputs are marked or constant; refuses other uses of marked values. */
static void follow_node(struct rewriting *r, bool *marked, const struct tare_node *node) {
    const struct tare_op *row = node->def ? node->def->row : NULL;
    bool uses = false, only = true;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_edge input = node->inputs[i];
        const bool is = input.node && !tare_node_is_arg(input.node) && marked[input.node->position];
        uses |= is;
        only &= is || tare_edge_constant(input);
    }
    if (!uses) return;
    if (!row || !(row->flags & TARE_OP_ELEMENTWISE) || row->flags & (TARE_OP_STATEFUL | TARE_OP_CONTROL))
        r->refused = true;
    marked[node->position] = only;
}

static tare_status follow(struct rewriting *r, const struct tare_graph *graph) {
    bool *marked = TARE_NEW_ARRAY(r->arena, bool, graph->n_nodes + 1);
    struct tare_node **order;
    if (!marked) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *made = graph->nodes[i]->edit;
        if (made) marked[made->position] = true;
    }
    TARE_TRY(tare_graph_order(&order, r->arena, graph));
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++)
        if (!marked[order[i]->position]) follow_node(r, marked, order[i]);
    for (size_t i = 0; i < graph->n_returns; i++) {
        const struct tare_edge edge = graph->returns[i].edge;
        if (edge.node && !tare_node_is_arg(edge.node) && marked[edge.node->position]) r->refused = true;
    }
    return TARE_OK;
}

static tare_status rewrite_graph(struct rewriting *r, struct tare_graph *graph) {
    const size_t n_nodes = graph->n_nodes, before = r->n_ranges;
    for (size_t i = 0; i < n_nodes; i++)
        graph->nodes[i]->edit = NULL;
    for (size_t i = 0; i < n_nodes && !r->refused; i++) {
        struct tare_edge x;
        if (is_range(&x, graph->nodes[i])) TARE_TRY(rewrite_range(r, graph->nodes[i], x));
    }
    if (r->n_ranges == before || r->refused) return TARE_OK;
    return follow(r, graph);
}

/* ---- the model ---- */

static bool has_range(const struct tare_graph *graph) {
    struct tare_edge x;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (is_range(&x, graph->nodes[i])) return true;
    return false;
}

static bool computes_ranges(const struct tare_graph_model *model) {
    bool found = has_range(model->main);
    for (size_t i = 0; i < model->n_functions && !found; i++)
        found = has_range(model->functions[i]);
    return found;
}

static tare_status rewrite(bool *done, struct tare_graph_model *model, size_t batch) {
    struct tare_arena arena = { 0 };
    struct tare_model_shapes *shapes = NULL;
    struct rewriting r = { .arena = &arena, .batch = batch };
    tare_status status = tare_model_shapes_new(&shapes, model);
    r.shapes = shapes;
    if (status == TARE_OK) status = rewrite_graph(&r, model->main);
    for (size_t i = 0; i < model->n_functions && status == TARE_OK && !r.refused; i++)
        status = rewrite_graph(&r, model->functions[i]);
    tare_model_shapes_free(shapes);
    tare_arena_free(&arena);
    *done = r.n_ranges && !r.refused;
    return status;
}

static tare_status open_session(struct tare_record_ranges *ranges, const char *key) {
    TARE_TRY(tare_record_edges_of(&ranges->edges, tare_model_find_signature(ranges->model, key)));
    return tare_session_new(&ranges->session, ranges->model, NULL);
}

tare_status tare_record_ranges_new(struct tare_record_ranges **out, const struct tare_graph_model *model,
                                   const struct tare_signature *signature, size_t batch) {
    struct tare_record_ranges *ranges;
    bool done = false;
    tare_status status;
    *out = NULL;
    if (!computes_ranges(model) || tare_model_find_signature(model, signature->key) != signature) return TARE_OK;
    ranges = tare_calloc(1, sizeof *ranges);
    if (!ranges) return TARE_NO_MEMORY;
    ranges->batch = batch;
    status = tare_model_clone(&ranges->model, model);
    if (status == TARE_OK) status = rewrite(&done, ranges->model, batch);
    if (status == TARE_OK && done) status = open_session(ranges, signature->key);
    if (status == TARE_OK && done)
        *out = ranges;
    else
        tare_record_ranges_free(ranges);
    return status;
}

void tare_record_ranges_free(struct tare_record_ranges *ranges) {
    if (!ranges) return;
    tare_session_free(ranges->session);
    tare_record_edges_free(&ranges->edges);
    tare_model_free(ranges->model);
    tare_free(ranges);
}

/* ---- runs ---- */

/* True if each record has one row in every input. */
static bool have_one_row(const struct tare_bound_record *records, size_t count, size_t n_feeds) {
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < n_feeds; i++)
            if (records[r].values[i].shape.rank < 1 || records[r].values[i].shape.dims[0] != 1) return false;
    return true;
}

/* `joined`: inputs, then outputs. */
static tare_status run_joined(bool *done, const struct tare_record_ranges *ranges, struct tare_bound_record *records,
                              size_t count, struct tare_bound_record *all, struct tare_tensor *joined) {
    const struct tare_record_edges *edges = &ranges->edges;
    struct tare_tensor *outputs = joined + edges->n_feeds;
    int64_t rows;
    bool fits;
    for (size_t r = 0; r < ranges->batch; r++)
        all[r] = records[r < count ? r : count - 1];
    TARE_TRY(tare_records_join(joined, &rows, &fits, all, ranges->batch, edges));
    if (!fits || rows != (int64_t)ranges->batch) return TARE_OK;
    const tare_status status = tare_session_run(ranges->session, edges->feeds, joined, edges->n_feeds, edges->fetches,
                                                outputs, edges->n_outputs, NULL, 0);
    if (status != TARE_OK) return tare_error_dismiss(status);
    if (!tare_records_can_split(outputs, rows, edges)) return TARE_OK;
    TARE_TRY(tare_records_split(records, count, outputs, edges));
    *done = true;
    return TARE_OK;
}

tare_status tare_record_ranges_run(bool *done, const struct tare_record_ranges *ranges,
                                   struct tare_bound_record *records, size_t count) {
    const size_t n_tensors = ranges->edges.n_feeds + ranges->edges.n_outputs;
    struct tare_bound_record *all;
    struct tare_tensor *joined;
    tare_status status;
    *done = false;
    if (!count || count > ranges->batch || !have_one_row(records, count, ranges->edges.n_feeds)) return TARE_OK;
    all = tare_calloc(ranges->batch, sizeof *all);
    joined = tare_calloc(n_tensors + 1, sizeof *joined);
    status = all && joined ? run_joined(done, ranges, records, count, all, joined) : TARE_NO_MEMORY;
    tare_tensors_reset(joined, n_tensors);
    tare_free(joined);
    tare_free(all);
    return status;
}
