/* Whether the rows of a batch depend on each other. The axis of the rows is followed forward from the inputs, with the
 * shapes for a batch of TARE_ROWS: a prime number, so that an axis into which a Reshape merges them is recognised. A
 * node that computes along this axis (a reduction, a softmax, a running sum, a normalization in training mode, a
 * product) or selects from it mixes the rows of different requests. What is not known is not followed, and not
 * reported. */
#include "graph/calls.h"
#include "graph/flags.h"
#include "graph/op.h"
#include "interpreter/inference/infer.h"
#include "tpu/batching_internal.h"
#include "tpu/batching_rows.h"

#include <string.h>

enum { NONE = TARE_NO_AXIS, DEEPEST = 16 };

const struct tare_shape *tare_row_shape(const struct tare_row_frame *f, struct tare_edge edge) {
    return tare_node_is_arg(edge.node) ? &f->args[edge.node->position] : &f->shapes[edge.node->position][edge.index];
}

int tare_row_axis(const struct tare_row_frame *f, struct tare_edge edge) {
    const int axis =
        tare_node_is_arg(edge.node) ? f->arg_axes[edge.node->position] : f->axes[edge.node->position][edge.index];
    return axis < tare_row_shape(f, edge)->rank ? axis : NONE;
}

/* Whether all that is computed from the node is its product with 0, as models write to keep an input in use. */
static bool is_cancelled(const struct tare_row_frame *f, const struct tare_node *node) {
    struct tare_node *user = NULL;
    if (node->n_outputs != 1) return false;
    if (tare_graph_count_uses_to(f->graph, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 }, 2, &user) != 1)
        return false;
    if (!user || !tare_op_is_one_of(user->op, (const char *const[]){ "Mul", "MulNoNan", NULL })) return false;
    const struct tare_tensor *factor = tare_edge_constant(user->inputs[user->inputs[0].node == node]);
    for (int64_t k = 0; factor && k < factor->elements; k++)
        if (tare_tensor_get_f64(factor, k) != 0) return false;
    return factor != NULL;
}

void tare_row_mixes(const struct tare_row_frame *f, const struct tare_node *node, const char *what) {
    if (f->rows->found || is_cancelled(f, node)) return;
    f->rows->found = node;
    f->rows->what = what;
}

bool tare_row_axes(const struct tare_node *node, size_t i, int rank, bool *is_axis) {
    const struct tare_tensor *value = i < node->n_inputs ? tare_edge_constant(node->inputs[i]) : NULL;
    memset(is_axis, 0, TARE_MAX_RANK * sizeof *is_axis);
    for (int64_t k = 0; value && k < value->elements; k++) {
        const int64_t axis = tare_tensor_get_i64(value, k);
        if (axis < -rank || axis >= rank) return false;
        is_axis[axis < 0 ? axis + rank : axis] = true;
    }
    return value != NULL;
}

/* ---- ops ---- */

static int after_reduction(const struct tare_row_frame *f, const struct tare_node *node, int axis, int rank) {
    bool reduced[TARE_MAX_RANK];
    int before = 0;
    if (!tare_row_axes(node, 1, rank, reduced)) return NONE;
    if (reduced[axis]) {
        tare_row_mixes(f, node, "reduces over the rows");
        return NONE;
    }
    for (int d = 0; d < axis; d++)
        before += reduced[d];
    return tare_node_bool(node, "keep_dims", false) ? axis : axis - before;
}

/* The axis of the output that contains the rows: the one after as many elements. */
static int after_reshape(const struct tare_shape *from, const struct tare_shape *to, int axis) {
    int64_t before = 1, passed = 1;
    for (int d = 0; d < axis; d++)
        before *= from->dims[d];
    for (int d = 0; d < to->rank; d++) {
        if (to->dims[d] <= 0 || passed > before) return NONE;
        if (passed == before && to->dims[d] % TARE_ROWS == 0) return d;
        passed *= to->dims[d];
    }
    return NONE;
}

/* Along which axis an op computes that takes it as input `i` (a constant) or attribute; the last by default. */
static bool runs_along(const struct tare_node *node, size_t i, int rank, int axis) {
    bool along[TARE_MAX_RANK];
    if (i == 0) return axis == rank - 1;
    return tare_row_axes(node, i, rank, along) && along[axis];
}

static const struct {
    const char *op, *what;
    size_t input; /* of the axis; 0: the last */
} along[] = {
    { "Softmax", "normalizes over the rows", 0 },
    { "LogSoftmax", "normalizes over the rows", 0 },
    { "Cumsum", "accumulates over the rows", 1 },
    { "Cumprod", "accumulates over the rows", 1 },
    { "ReverseV2", "reverses the rows", 1 },
    { "TopKV2", "ranks the rows", 0 },
    { "TopK", "ranks the rows", 0 },
    { "ArgMax", "ranks the rows", 1 },
    { "ArgMin", "ranks the rows", 1 },
    { "Roll", "shifts the rows", 2 },
    { "CumulativeLogsumexp", "accumulates over the rows", 1 },
};

/* Normalizations in training mode compute statistics of everything but the channels. */
static bool normalizes_rows(const struct tare_node *node, int rank, int axis) {
    const char *format = tare_node_string(node, "data_format", "NHWC");
    if (strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) != 0) return false;
    return tare_node_bool(node, "is_training", true) && axis != (strncmp(format, "NC", 2) == 0 ? 1 : rank - 1);
}

static int after_product(const struct tare_row_frame *f, const struct tare_node *node) {
    const int a = tare_row_axis(f, node->inputs[0]), b = tare_row_axis(f, node->inputs[1]);
    const int ra = tare_row_shape(f, node->inputs[0])->rank, rb = tare_row_shape(f, node->inputs[1])->rank;
    const bool ta = tare_node_bool(node, "transpose_a", false) || tare_node_bool(node, "adj_x", false);
    const bool tb = tare_node_bool(node, "transpose_b", false) || tare_node_bool(node, "adj_y", false);
    if ((a != NONE && a == (ta ? ra - 2 : ra - 1)) || (b != NONE && b == (tb ? rb - 1 : rb - 2)) ||
        (a != NONE && a >= ra - 2 && b != NONE && b >= rb - 2)) {
        tare_row_mixes(f, node, "multiplies rows with each other");
        return NONE;
    }
    if (a != NONE) return a < ra - 2 ? a + (rb > ra ? rb - ra : 0) : ra - 2 + (rb > ra ? rb - ra : 0);
    if (b == NONE) return NONE;
    return b < rb - 2 ? b + (ra > rb ? ra - rb : 0) : rb - 1 + (ra > rb ? ra - rb : 0);
}

/* Operands are aligned at their last axes; rows on two of them are pairs of rows. */
static int after_elementwise(const struct tare_row_frame *f, const struct tare_node *node, int rank) {
    int out = NONE;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const int axis = tare_row_axis(f, node->inputs[i]), own = tare_row_shape(f, node->inputs[i])->rank;
        if (axis == NONE) continue;
        if (out != NONE && out != axis + rank - own) {
            tare_row_mixes(f, node, "combines rows with each other");
            return NONE;
        }
        out = axis + rank - own;
    }
    return out;
}

static int after_transpose(const struct tare_node *node, int axis) {
    const struct tare_tensor *order = tare_edge_constant(node->inputs[1]);
    for (int64_t d = 0; order && d < order->elements; d++)
        if (tare_tensor_get_i64(order, d) == axis) return (int)d;
    return NONE;
}

/* Any of the tensors that are joined may be the one with rows. */
static int after_joining(const struct tare_row_frame *f, const struct tare_node *node, int rank) {
    const bool packs = tare_node_is(node, "Pack");
    const size_t count = node->n_inputs - !packs;
    bool joined[TARE_MAX_RANK];
    int axis = NONE, packed = packs ? (int)tare_node_int(node, "axis", 0) : 0;
    packed += packed < 0 ? rank : 0;
    if (!packs && !tare_row_axes(node, count, rank, joined)) return NONE;
    for (size_t i = 0; i < count && axis == NONE; i++)
        axis = tare_row_axis(f, node->inputs[i]);
    if (axis == NONE || (!packs && joined[axis])) return NONE;
    return packs ? axis + (axis >= packed) : axis;
}

static int after(const struct tare_row_frame *f, const struct tare_node *node, int output) {
    const struct tare_shape *from = node->n_inputs ? tare_row_shape(f, node->inputs[0]) : NULL;
    const struct tare_shape *to = &f->shapes[node->position][output];
    const int axis = from ? tare_row_axis(f, node->inputs[0]) : NONE, rank = from ? from->rank : 0;
    static const char *const products[] = { "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", NULL };
    static const char *const joins[] = { "ConcatV2", "Pack", NULL };
    int by_index;
    if (to->rank < 0 || tare_node_has_flag(node, TARE_OP_SHAPE_ONLY)) return NONE;
    if (tare_op_is_one_of(node->op, products)) return after_product(f, node);
    if (tare_row_after_index(&by_index, f, node)) return by_index;
    if (tare_node_has_flag(node, TARE_OP_ELEMENTWISE)) return after_elementwise(f, node, to->rank);
    if (tare_op_is_one_of(node->op, joins)) return after_joining(f, node, to->rank);
    if (axis == NONE) return NONE;
    for (size_t i = 0; i < sizeof along / sizeof *along; i++) {
        if (strcmp(node->op, along[i].op) != 0 || !runs_along(node, along[i].input, rank, axis)) continue;
        tare_row_mixes(f, node, along[i].what);
        return NONE;
    }
    if (normalizes_rows(node, rank, axis)) {
        tare_row_mixes(f, node, "normalizes over the rows");
        return NONE;
    }
    if (tare_node_is(node, "Transpose")) return after_transpose(node, axis);
    if (tare_op_is_one_of(node->op, (const char *const[]){ "Reshape", "ExpandDims", "Squeeze", NULL }))
        return after_reshape(from, to, axis);
    if (tare_node_has_flag(node, TARE_OP_REDUCE) && strstr(node->op, "Segment") == NULL)
        return after_reduction(f, node, axis, rank);
    return axis < to->rank && to->dims[axis] == from->dims[axis] ? axis : NONE;
}

/* ---- graphs ---- */

static tare_status follow(struct tare_rows *rows, const struct tare_graph *graph, const struct tare_shape *args,
                          const int *arg_axes, int **returns);

/* A function that is called, with the shapes and axes of its arguments. */
static tare_status follow_call(const struct tare_row_frame *f, const struct tare_node *node,
                               const struct tare_call_site *site) {
    const struct tare_graph *callee = site->callees[0];
    struct tare_shape *args = TARE_NEW_ARRAY(f->rows->arena, struct tare_shape, callee->n_args + 1);
    int *axes = TARE_NEW_ARRAY(f->rows->arena, int, callee->n_args + 1), *returns;
    if (!args || !axes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < callee->n_args && i < site->n_args; i++) {
        args[i] = *tare_row_shape(f, node->inputs[site->first + i]);
        axes[i] = tare_row_axis(f, node->inputs[site->first + i]);
    }
    TARE_TRY(follow(f->rows, callee, args, axes, &returns));
    for (size_t i = 0; returns && i < node->n_outputs && i < callee->n_returns; i++)
        f->axes[node->position][i] = returns[i];
    return TARE_OK;
}

static tare_status follow_node(const struct tare_row_frame *f, const struct tare_node *node) {
    struct tare_call_site site;
    f->axes[node->position] = TARE_NEW_ARRAY(f->rows->arena, int, node->n_outputs + 1);
    if (!f->axes[node->position]) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_outputs; i++)
        f->axes[node->position][i] = NONE;
    TARE_TRY(tare_call_site(&site, f->rows->arena, node));
    if (site.kind == TARE_CALL_PLAIN || site.kind == TARE_CALL_TPU) return follow_call(f, node, &site);
    if (site.kind != TARE_CALL_NONE && !tare_node_is(node, "XlaScatter"))
        return TARE_OK; /* which calls what it adds by */
    for (size_t i = 0; i < node->n_outputs; i++)
        f->axes[node->position][i] = after(f, node, (int)i);
    return TARE_OK;
}

/* *returns: the axes of the function's results; NULL where its shapes cannot be inferred. */
static tare_status follow(struct tare_rows *rows, const struct tare_graph *graph, const struct tare_shape *args,
                          const int *arg_axes, int **returns) {
    struct tare_row_frame f = { .rows = rows, .graph = graph, .args = args, .arg_axes = (int *)(uintptr_t)arg_axes };
    const struct tare_shape **handles = tare_bindings_handles(rows->bindings, rows->arena, graph);
    struct tare_node **order;
    tare_status status;
    *returns = NULL;
    if (!handles) return TARE_NO_MEMORY;
    if (rows->depth == DEEPEST) return TARE_OK;
    status = tare_graph_infer_shapes_of(&f.shapes, rows->arena, graph, args, handles);
    if (status != TARE_OK) return tare_error_dismiss(status);
    f.axes = TARE_NEW_ARRAY(rows->arena, int *, graph->n_nodes + 1);
    *returns = TARE_NEW_ARRAY(rows->arena, int, graph->n_returns + 1);
    if (!f.axes || !*returns) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, rows->arena, graph));
    rows->depth++;
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++)
        if (!order[i]->dead) TARE_TRY(follow_node(&f, order[i]));
    for (size_t i = 0; i < graph->n_returns; i++)
        (*returns)[i] = graph->returns[i].edge.node ? tare_row_axis(&f, graph->returns[i].edge) : NONE;
    rows->depth--;
    return TARE_OK;
}

tare_status tare_batch_find_mixing(struct tare_batching_result *out, struct tare_arena *arena,
                                   const struct tare_graph *function, const bool *captured,
                                   const struct tare_model_shapes *shapes) {
    struct tare_rows rows = { .arena = arena };
    struct tare_shape *args = TARE_NEW_ARRAY(arena, struct tare_shape, function->n_args + 1);
    int *axes = TARE_NEW_ARRAY(arena, int, function->n_args + 1), *returns;
    tare_status status;
    if (!args || !axes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        args[i] = tare_model_shape(shapes, (struct tare_edge){ function->args[i], 0 });
        axes[i] = !captured[i] && args[i].rank > 0 ? 0 : NONE;
        if (axes[i] == 0) args[i].dims[0] = TARE_ROWS;
    }
    TARE_TRY(tare_bindings_new(&rows.bindings, function->model));
    status = follow(&rows, function, args, axes, &returns);
    tare_bindings_free(rows.bindings);
    TARE_TRY(status);
    if (!rows.found) return TARE_OK;
    if (out->mixing) return TARE_OK;
    out->mixing = tare_arena_printf(arena, "function %s: node '%s' (%s) %s", function->name, rows.found->name,
                                    rows.found->op, rows.what);
    return out->mixing ? TARE_OK : TARE_NO_MEMORY;
}
