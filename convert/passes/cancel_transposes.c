/* Cancels pairs of transposes. Models from channels-first frameworks have a Transpose around every convolution, with
 * activations, additions and pads between them.
 *
 * A Transpose of a Transpose is merged into one, or removed where the two are inverse. A region is a connected set of
 * ops that are independent of the axis order (elementwise ops, pads, concatenations) and whose inputs come from
 * Transposes with one permutation. The region can compute on the inputs of those Transposes if its outputs are permuted
 * back; this is done when it removes more Transposes than it adds. Elements are only moved: results are bit-identical.
 */
#include "convert/pass.h"
#include "base/alloc.h"
#include "graph/graphs.h"
#include "interpreter/kernels/permute.h"
#include "graph/op.h"

#include <string.h>

/* An axis order; rank 0: none. */
struct order {
    int rank, axes[TARE_MAX_RANK];
};

static bool same_order(const struct order *a, const struct order *b) {
    return a->rank == b->rank && memcmp(a->axes, b->axes, (size_t)a->rank * sizeof *a->axes) == 0;
}

static struct order inverse_of(const struct order *order) {
    struct order inverse = { .rank = order->rank };
    for (int i = 0; i < order->rank; i++)
        inverse.axes[order->axes[i]] = i;
    return inverse;
}

/* The order of a Transpose by a constant; none for any other node, or if the Transpose has control inputs. */
static struct order order_of(const struct tare_node *node) {
    const struct order none = { 0 };
    struct order order = { 0 };
    bool seen[TARE_MAX_RANK] = { false };
    const struct tare_tensor *perm;
    if (node->dead || node->n_controls || strcmp(node->op, "Transpose") != 0 || node->n_inputs != 2) return none;
    perm = tare_edge_constant(node->inputs[1]);
    if (!perm || perm->shape.rank != 1 || perm->elements < 1 || perm->elements > TARE_MAX_RANK) return none;
    order.rank = (int)perm->elements;
    for (int i = 0; i < order.rank; i++) {
        int64_t axis = tare_tensor_get_i64(perm, i);
        if (axis < 0) axis += order.rank;
        if (axis < 0 || axis >= order.rank || seen[axis]) return none;
        seen[axis] = true;
        order.axes[i] = (int)axis;
    }
    return order;
}

static tare_status add_ints(struct tare_edge *out, struct tare_graph *graph, const char *name, const int *values,
                            struct tare_shape shape) {
    struct tare_tensor tensor;
    struct tare_node *node;
    TARE_TRY(tare_tensor_new(&tensor, TARE_DT_INT32, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(int32_t, &tensor)[i] = values[i];
    node = tare_graph_add_const(graph, name, &tensor);
    tare_tensor_reset(&tensor);
    *out = tare_node_output0(node);
    return node ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- transposes of transposes ---- */

static tare_status compose(struct tare_graph *graph, struct tare_node *node, size_t *changes) {
    const struct order order = order_of(node), before = order.rank ? order_of(node->inputs[0].node) : order;
    struct order both = { .rank = order.rank };
    struct tare_edge perm;
    bool identity = true;
    if (!order.rank || before.rank != order.rank) return TARE_OK;
    for (int i = 0; i < order.rank; i++) {
        both.axes[i] = before.axes[order.axes[i]];
        identity &= both.axes[i] == i;
    }
    ++*changes;
    if (identity) {
        tare_graph_replace_uses(graph, tare_node_output0(node), node->inputs[0].node->inputs[0], NULL);
        tare_node_remove(node);
        return TARE_OK;
    }
    TARE_TRY(add_ints(&perm, graph, "perm", both.axes, tare_shape_make(1, (int64_t)both.rank)));
    tare_node_set_input(node, 1, perm);
    TARE_TRY(tare_node_set_type(node, "Tperm", TARE_DT_INT32));
    tare_node_set_input(node, 0, node->inputs[0].node->inputs[0]);
    return tare_node_resolve(node);
}

/* ---- ops that may be part of a region ---- */

/* Inputs [0, data) are data; the inputs after them are parameters (axes, paddings) and must be constants. */
struct member {
    const char *op;
    int data; /* -1: all but the last */
};
static const struct member members[] = {
    { "Relu", 1 },    { "Relu6", 1 },    { "LeakyRelu", 1 }, { "Elu", 1 },       { "Selu", 1 },      { "Sigmoid", 1 },
    { "Tanh", 1 },    { "Softplus", 1 }, { "Softsign", 1 },  { "Exp", 1 },       { "Neg", 1 },       { "Abs", 1 },
    { "Square", 1 },  { "Sqrt", 1 },     { "Rsqrt", 1 },     { "Erf", 1 },       { "Identity", 1 },  { "AddV2", 2 },
    { "Add", 2 },     { "Sub", 2 },      { "Mul", 2 },       { "Div", 2 },       { "RealDiv", 2 },   { "Maximum", 2 },
    { "Minimum", 2 }, { "Pad", 1 },      { "PadV2", 1 },     { "MirrorPad", 1 }, { "ConcatV2", -1 },
};

static int data_inputs(const struct tare_node *node) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strcmp(members[i].op, node->op) != 0 || node->n_outputs != 1) continue;
        const int data = members[i].data < 0 ? (int)node->n_inputs - 1 : members[i].data;
        for (size_t k = (size_t)data; k < node->n_inputs; k++)
            if (!tare_edge_constant(node->inputs[k])) return 0;
        return data;
    }
    return 0;
}

struct regions {
    struct tare_graph *graph;
    struct tare_arena arena;
    size_t n_nodes;             /* when the search began */
    bool *candidate;            /* by node position */
    int *of;                    /* region of a candidate: the position of one of its nodes */
    struct tare_node **members; /* candidates, region by region */
    size_t *first;              /* by region: its first member; the region's last is before the next one's first */
    int *seen;                  /* by node position: 1 + the region for which it was counted */
};

static bool is_in(const struct regions *r, const struct tare_node *node, int region) {
    return !tare_node_is_arg(node) && node->position < r->n_nodes && r->candidate[node->position] &&
           r->of[node->position] == region;
}
static bool is_candidate(const struct regions *r, const struct tare_node *node) {
    return !tare_node_is_arg(node) && r->candidate[node->position];
}

/* Every data input comes from a Transpose, a candidate or a constant, and not all from constants. */
static bool may_stay(const struct regions *r, const struct tare_node *node) {
    const int data = data_inputs(node);
    int moved = 0;
    for (int i = 0; i < data; i++) {
        const struct tare_node *from = node->inputs[i].node;
        if (tare_edge_constant(node->inputs[i])) continue;
        if (!is_candidate(r, from) && !order_of(from).rank) return false;
        moved++;
    }
    return moved > 0;
}

static int find(const struct regions *r, int at) {
    while (r->of[at] != at)
        at = r->of[at] = r->of[r->of[at]];
    return at;
}

/* Sorts the candidates by region, with a counting sort. */
static tare_status list_members(struct regions *r) {
    size_t *place = TARE_NEW_ARRAY(&r->arena, size_t, r->n_nodes + 2);
    r->members = TARE_NEW_ARRAY(&r->arena, struct tare_node *, r->n_nodes + 1);
    r->first = TARE_NEW_ARRAY(&r->arena, size_t, r->n_nodes + 2);
    r->seen = TARE_NEW_ARRAY(&r->arena, int, r->n_nodes + 1);
    if (!place || !r->members || !r->first || !r->seen) return TARE_NO_MEMORY;
    for (size_t i = 0; i < r->n_nodes; i++)
        if (r->candidate[i]) r->first[r->of[i] + 1]++;
    for (size_t i = 0; i <= r->n_nodes; i++)
        place[i + 1] = r->first[i + 1] += r->first[i];
    for (size_t i = 0; i < r->n_nodes; i++)
        if (r->candidate[i]) r->members[place[r->of[i]]++] = r->graph->nodes[i];
    return TARE_OK;
}

static tare_status find_regions(struct regions *r) {
    struct tare_graph *graph = r->graph;
    r->n_nodes = graph->n_nodes;
    r->candidate = TARE_NEW_ARRAY(&r->arena, bool, r->n_nodes + 1);
    r->of = TARE_NEW_ARRAY(&r->arena, int, r->n_nodes + 1);
    if (!r->candidate || !r->of) return TARE_NO_MEMORY;
    for (size_t i = 0; i < r->n_nodes; i++) {
        r->candidate[i] = !graph->nodes[i]->dead && data_inputs(graph->nodes[i]) > 0;
        r->of[i] = (int)i;
    }
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < r->n_nodes; i++) {
            if (!r->candidate[i] || may_stay(r, graph->nodes[i])) continue;
            r->candidate[i] = false;
            again = true;
        }
    }
    for (size_t i = 0; i < r->n_nodes; i++) {
        const int data = r->candidate[i] ? data_inputs(graph->nodes[i]) : 0;
        for (int k = 0; k < data; k++) {
            const struct tare_node *from = graph->nodes[i]->inputs[k].node;
            if (is_candidate(r, from)) r->of[find(r, (int)i)] = find(r, (int)from->position);
        }
    }
    for (size_t i = 0; i < r->n_nodes; i++)
        r->of[i] = find(r, (int)i);
    return list_members(r);
}

/* ---- whether it pays ---- */

/* Uses of an edge by the region's data inputs. */
static size_t uses_inside(const struct regions *r, struct tare_edge edge, int region) {
    size_t uses = 0;
    for (size_t i = r->first[region]; i < r->first[region + 1]; i++) {
        const struct tare_node *node = r->members[i];
        for (int k = 0, data = data_inputs(node); k < data; k++)
            uses += tare_edge_equal(node->inputs[k], edge);
    }
    return uses;
}

/* The one permutation of the Transposes that feed the region; none if they differ, if one of them transposes an
 * output of the region itself, or if a constant is incompatible. */
static struct order order_into(const struct regions *r, int region) {
    struct order order = { 0 };
    for (size_t i = r->first[region]; i < r->first[region + 1]; i++) {
        const struct tare_node *node = r->members[i];
        for (int k = 0, data = data_inputs(node); k < data; k++) {
            const struct order own = order_of(node->inputs[k].node);
            if (!own.rank) continue;
            if (order.rank && !same_order(&order, &own)) return (struct order){ 0 };
            if (is_in(r, node->inputs[k].node->inputs[0].node, region)) return (struct order){ 0 };
            order = own;
        }
    }
    for (size_t i = r->first[region]; i < r->first[region + 1] && order.rank; i++) {
        const struct tare_node *node = r->members[i];
        for (size_t k = 0; k < node->n_inputs; k++) {
            const struct tare_tensor *constant = tare_edge_constant(node->inputs[k]);
            if (constant && (int)k < data_inputs(node) && constant->shape.rank > order.rank) order.rank = 0;
            if (constant && strstr(node->op, "Pad") && k == 1 &&
                (constant->shape.rank != 2 || constant->shape.dims[0] != order.rank || constant->shape.dims[1] != 2))
                order.rank = 0;
        }
    }
    return order;
}

static bool is_back(const struct tare_node *node, const struct order *order) {
    const struct order own = order_of(node), back = inverse_of(order);
    return own.rank && same_order(&own, &back);
}

/* Uses of a node's result that need the original order: all except the region's and the inverse Transposes. */
static size_t uses_outside(const struct regions *r, struct tare_node *node, int region, const struct order *order,
                           size_t *back) {
    size_t uses = tare_graph_count_uses(r->graph, tare_node_output0(node), NULL) -
                  uses_inside(r, tare_node_output0(node), region);
    *back = 0;
    for (size_t i = 0; i < r->graph->n_nodes; i++) {
        const struct tare_node *user = r->graph->nodes[i];
        if (!user->dead && user->n_inputs && tare_edge_equal(user->inputs[0], tare_node_output0(node)) &&
            is_back(user, order))
            ++*back;
    }
    return uses - *back;
}

/* Input Transposes of the node that only the region uses, each counted once. */
static size_t needed_inside(const struct regions *r, const struct tare_node *node, int region) {
    size_t count = 0;
    for (int k = 0, data = data_inputs(node); k < data; k++) {
        const struct tare_node *from = node->inputs[k].node;
        if (!order_of(from).rank || from->position >= r->n_nodes || r->seen[from->position] == region + 1) continue;
        r->seen[from->position] = region + 1;
        count += uses_inside(r, node->inputs[k], region) == tare_graph_count_uses(r->graph, node->inputs[k], NULL);
    }
    return count;
}

static bool pays(const struct regions *r, int region, const struct order *order) {
    size_t gone = 0, added = 0;
    for (size_t i = r->first[region]; i < r->first[region + 1]; i++) {
        struct tare_node *node = r->members[i];
        size_t back;
        gone += needed_inside(r, node, region);
        added += uses_outside(r, node, region, order, &back) > 0;
        gone += back;
    }
    return gone > added;
}

/* ---- turning a region ---- */

/* A constant operand of the region in the order of axes before the Transposes. */
static tare_status turn_operand(struct tare_edge *edge, struct tare_graph *graph, const struct order *order) {
    const struct tare_tensor *value = tare_edge_constant(*edge);
    const struct order back = inverse_of(order);
    const int missing = order->rank - value->shape.rank;
    struct tare_tensor whole, turned;
    struct tare_shape shape = { .rank = order->rank };
    int64_t dims[TARE_MAX_RANK];
    struct tare_node *node;
    tare_status status;
    if (value->elements == 1) return TARE_OK;
    TARE_TRY(tare_tensor_copy(&whole, value));
    for (int i = 0; i < order->rank; i++)
        dims[i] = i < missing ? 1 : value->shape.dims[i - missing];
    for (int i = 0; i < order->rank; i++)
        shape.dims[i] = dims[back.axes[i]];
    status = tare_tensor_new(&turned, value->dtype, &shape);
    if (status == TARE_OK) {
        tare_permute(turned.data, whole.data, tare_dtype_size(value->dtype), order->rank, dims, back.axes);
        node = tare_graph_add_const(graph, edge->node->name, &turned);
        tare_tensor_reset(&turned);
        *edge = tare_node_output0(node);
        status = node ? TARE_OK : TARE_NO_MEMORY;
    }
    tare_tensor_reset(&whole);
    return status;
}

/* Rows of paddings, or the axis of a concatenation. */
static tare_status turn_parameters(struct tare_node *node, const struct order *order) {
    const bool is_pad = strstr(node->op, "Pad");
    const size_t at = is_pad ? 1 : node->n_inputs - 1;
    const struct tare_tensor *value = tare_edge_constant(node->inputs[at]);
    struct tare_edge parameter;
    int rows[2 * TARE_MAX_RANK];
    if (is_pad) {
        for (int i = 0; i < 2 * order->rank; i++)
            rows[2 * order->axes[i / 2] + i % 2] = (int)tare_tensor_get_i64(value, i);
        TARE_TRY(tare_node_set_type(node, "Tpaddings", TARE_DT_INT32));
        TARE_TRY(
            add_ints(&parameter, node->graph, "paddings", rows, tare_shape_make(2, (int64_t)order->rank, (int64_t)2)));
        tare_node_set_input(node, at, parameter);
    } else if (strcmp(node->op, "ConcatV2") == 0) {
        const int64_t axis = tare_tensor_get_i64(value, 0);
        rows[0] = order->axes[axis < 0 ? axis + order->rank : axis];
        TARE_TRY(tare_node_set_type(node, "Tidx", TARE_DT_INT32));
        TARE_TRY(add_ints(&parameter, node->graph, "axis", rows, tare_shape_make(0)));
        tare_node_set_input(node, at, parameter);
    }
    return TARE_OK;
}

/* Adds a Transpose of the result for users that need the original order. */
static tare_status keep_result(const struct regions *r, struct tare_node *node, int region, const struct order *order) {
    struct tare_node *transpose;
    struct tare_edge perm;
    TARE_TRY(add_ints(&perm, r->graph, "perm", order->axes, tare_shape_make(1, (int64_t)order->rank)));
    transpose = tare_graph_add(r->graph, "Transpose", "transpose");
    if (!transpose) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(transpose, tare_node_output0(node)));
    TARE_TRY(tare_node_add_input(transpose, perm));
    TARE_TRY(tare_node_set_type(transpose, "T", tare_edge_dtype(tare_node_output0(node))));
    TARE_TRY(tare_node_set_type(transpose, "Tperm", TARE_DT_INT32));
    TARE_TRY(tare_node_resolve(transpose));
    tare_graph_replace_uses(r->graph, tare_node_output0(node), tare_node_output0(transpose), transpose);
    for (size_t i = 0; i < r->n_nodes; i++) { /* but the Transposes back and the region itself */
        struct tare_node *user = r->graph->nodes[i];
        const int data = user->dead ? 0 : is_back(user, order) ? 1 : is_in(r, user, region) ? data_inputs(user) : 0;
        for (int k = 0; k < data; k++)
            if (tare_edge_equal(user->inputs[k], tare_node_output0(transpose)))
                tare_node_set_input(user, (size_t)k, tare_node_output0(node));
    }
    return TARE_OK;
}

static tare_status turn_result(const struct regions *r, struct tare_node *node, int region, const struct order *order) {
    size_t back;
    if (uses_outside(r, node, region, order, &back) > 0) TARE_TRY(keep_result(r, node, region, order));
    for (size_t i = 0; i < r->n_nodes && back > 0; i++) {
        struct tare_node *user = r->graph->nodes[i];
        if (user->dead || !user->n_inputs || !tare_edge_equal(user->inputs[0], tare_node_output0(node)) ||
            !is_back(user, order))
            continue;
        tare_graph_replace_uses(r->graph, tare_node_output0(user), tare_node_output0(node), NULL);
        tare_node_remove(user);
    }
    return TARE_OK;
}

static tare_status turn(const struct regions *r, int region, const struct order *order) {
    /* Results first: uses are recognised by the original edges. */
    for (size_t i = r->first[region]; i < r->first[region + 1]; i++)
        TARE_TRY(turn_result(r, r->members[i], region, order));
    for (size_t i = r->first[region]; i < r->first[region + 1]; i++) {
        struct tare_node *node = r->members[i];
        const int data = data_inputs(node);
        for (int k = 0; k < data; k++) {
            struct tare_edge input = node->inputs[k];
            if (tare_edge_constant(input))
                TARE_TRY(turn_operand(&input, r->graph, order));
            else if (!is_in(r, input.node, region))
                input = input.node->inputs[0];
            tare_node_set_input(node, (size_t)k, input);
        }
        TARE_TRY(turn_parameters(node, order));
        tare_node_remove_attr(node, "_output_shapes");
        TARE_TRY(tare_node_resolve(node));
    }
    return TARE_OK;
}

/* ---- the pass ---- */

static tare_status turn_regions(struct tare_graph *graph, size_t *changes) {
    struct regions r = { .graph = graph };
    tare_status status = find_regions(&r);
    for (size_t i = 0; i < r.n_nodes && status == TARE_OK; i++) {
        if (!r.candidate[i] || r.of[i] != (int)i) continue;
        const struct order order = order_into(&r, (int)i);
        if (!order.rank || !pays(&r, (int)i, &order)) continue;
        status = turn(&r, (int)i, &order);
        ++*changes;
    }
    tare_arena_free(&r.arena);
    return status;
}

static tare_status run_graph(struct tare_graph *graph, size_t *changes) {
    size_t before, transposes = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        transposes += order_of(graph->nodes[i]).rank > 0;
    if (transposes < 2) return TARE_OK;
    do {
        before = *changes;
        for (size_t i = 0, n = graph->n_nodes; i < n; i++)
            TARE_TRY(compose(graph, graph->nodes[i], changes));
        TARE_TRY(turn_regions(graph, changes));
        if (graph == graph->model->main) /* what else of it is needed the prune pass knows */
            tare_graph_sweep(graph);
        else
            TARE_TRY(tare_graph_remove_unreachable(graph, NULL));
    } while (*changes > before);
    return TARE_OK;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(run_graph(tare_model_graph(model, i), changes));
    return TARE_OK;
}

const struct tare_pass tare_pass_cancel_transposes = {
    .name = "cancel_transposes",
    .help = "compute between inverse transposes in the order of axes before them",
    .run = run,
};
