/* Shape inference over a whole graph: each node in order, with the values of small integer tensors that are known. */
#include "base/alloc.h"
#include "graph/calls.h"
#include "graph/evaluate.h"
#include "graph/op.h"

#include <string.h>

enum { LARGEST_VALUE = 64, DEEPEST_CALL = 64 };

struct inference {
    struct tare_arena *arena;
    const struct tare_graph *graph;
    const struct tare_shape *args; /* NULL: nothing is known */
    struct tare_shape **shapes;    /* [position][output] */
    struct tare_tensor **values;   /* [position][output]; dtype INVALID: not known */
    int depth;
};

static tare_status infer_graph(struct tare_shape ***out, struct tare_arena *arena, const struct tare_graph *graph,
                               const struct tare_shape *args, int depth);

static bool is_arg(const struct tare_node *node) { return strcmp(node->op, "_Arg") == 0; }

static struct tare_shape shape_of(const struct inference *inf, struct tare_edge edge) {
    if (is_arg(edge.node)) return inf->args ? inf->args[edge.node->position] : tare_shape_unknown();
    return inf->shapes[edge.node->position] ? inf->shapes[edge.node->position][edge.index] : tare_shape_unknown();
}

static const struct tare_tensor *value_of(const struct inference *inf, struct tare_edge edge) {
    const struct tare_tensor *value;
    if (is_arg(edge.node)) return NULL;
    if (strcmp(edge.node->op, "Const") == 0) {
        value = tare_node_tensor(edge.node, "value");
        return value && !value->splat ? value : NULL;
    }
    value = inf->values[edge.node->position] ? &inf->values[edge.node->position][edge.index] : NULL;
    return value && value->dtype != TARE_DT_INVALID ? value : NULL;
}

/* ---- calls ---- */

static tare_status infer_call(struct inference *inf, const struct tare_node *node, const struct tare_call_site *site) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct tare_shape *args = TARE_NEW_ARRAY(inf->arena, struct tare_shape, callee->n_args + 1), **inner;
        if (!args) return TARE_NO_MEMORY;
        if (site->kind == TARE_CALL_LOOP || inf->depth >= DEEPEST_CALL) return TARE_OK;
        for (size_t i = 0; i < callee->n_args; i++)
            args[i] = i < site->n_args ? shape_of(inf, node->inputs[site->first + i]) : tare_shape_unknown();
        TARE_TRY(infer_graph(&inner, inf->arena, callee, args, inf->depth + 1));
        for (size_t i = 0; i < node->n_outputs && i < callee->n_returns; i++) {
            struct tare_edge edge = callee->returns[i].edge;
            struct tare_shape got = is_arg(edge.node) ? args[edge.node->position]
                                                      : inner[edge.node->position][edge.index];
            struct tare_shape *known = &inf->shapes[node->position][i];
            if (c == 0)
                *known = got;
            else if (!tare_shape_equal(known, &got))
                *known = tare_shape_unknown(); /* branches differ */
        }
    }
    return TARE_OK;
}

/* ---- values ---- */

static bool is_small_integer(int dtype, const struct tare_shape *shape) {
    int64_t count;
    if (dtype != TARE_DT_INT32 && dtype != TARE_DT_INT64 && dtype != TARE_DT_BOOL) return false;
    if (!tare_shape_is_known(shape) || tare_shape_elements(&count, shape) != TARE_OK) return false;
    return count <= LARGEST_VALUE;
}

/* The shape of a known shape is a value, whatever the elements are. */
static tare_status value_of_shape(struct inference *inf, const struct tare_node *node) {
    struct tare_shape shape = shape_of(inf, node->inputs[0]), out = { .rank = 1 };
    bool wide = node->output_dtypes[0] == TARE_DT_INT64;
    struct tare_tensor *value = &inf->values[node->position][0];
    if (!tare_shape_is_known(&shape)) return TARE_OK;
    out.dims[0] = shape.rank;
    TARE_TRY(tare_tensor_new(value, node->output_dtypes[0], &out));
    for (int i = 0; i < shape.rank; i++) {
        if (wide)
            TARE_DATA(int64_t, value)[i] = shape.dims[i];
        else
            TARE_DATA(int32_t, value)[i] = (int32_t)shape.dims[i];
    }
    return TARE_OK;
}

static tare_status propagate_value(struct inference *inf, const struct tare_node *node) {
    struct tare_tensor *inputs;
    bool known = node->n_inputs > 0 && tare_node_is_pure(node);
    if (strcmp(node->op, "Shape") == 0) return value_of_shape(inf, node);
    for (size_t i = 0; i < node->n_outputs && known; i++)
        known = is_small_integer(node->output_dtypes[i], &inf->shapes[node->position][i]);
    for (size_t i = 0; i < node->n_inputs && known; i++) known = value_of(inf, node->inputs[i]) != NULL;
    if (!known) return TARE_OK;
    inputs = TARE_NEW_ARRAY(inf->arena, struct tare_tensor, node->n_inputs);
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) inputs[i] = *value_of(inf, node->inputs[i]); /* borrowed */
    if (tare_node_evaluate(node, inputs, inf->values[node->position]) != TARE_OK) tare_error_clear();
    return TARE_OK;
}

/* ---- nodes ---- */

static tare_status infer_node(struct inference *inf, const struct tare_node *node) {
    struct tare_infer infer = { .node = node, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs,
                                .arena = inf->arena };
    struct tare_shape *inputs = TARE_NEW_ARRAY(inf->arena, struct tare_shape, node->n_inputs + 1);
    const struct tare_tensor **values = TARE_NEW_ARRAY(inf->arena, const struct tare_tensor *, node->n_inputs + 1);
    int *dtypes = TARE_NEW_ARRAY(inf->arena, int, node->n_inputs + 1);
    struct tare_call_site site;
    if (!inputs || !values || !dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) {
        inputs[i] = shape_of(inf, node->inputs[i]);
        values[i] = value_of(inf, node->inputs[i]);
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
    }
    infer.inputs = inputs;
    infer.input_values = values;
    infer.input_dtypes = dtypes;
    infer.outputs = inf->shapes[node->position];
    TARE_TRY(tare_call_site(&site, inf->arena, node));
    if (site.kind != TARE_CALL_NONE) return infer_call(inf, node, &site);
    if (node->def && node->def->row && node->def->row->infer) TARE_TRY(node->def->row->infer(&infer));
    return propagate_value(inf, node);
}

static tare_status make_room(struct inference *inf) {
    const struct tare_graph *graph = inf->graph;
    inf->shapes = TARE_NEW_ARRAY(inf->arena, struct tare_shape *, graph->n_nodes + 1);
    inf->values = TARE_NEW_ARRAY(inf->arena, struct tare_tensor *, graph->n_nodes + 1);
    if (!inf->shapes || !inf->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        size_t count = graph->nodes[i]->n_outputs;
        inf->shapes[i] = TARE_NEW_ARRAY(inf->arena, struct tare_shape, count + 1);
        inf->values[i] = TARE_NEW_ARRAY(inf->arena, struct tare_tensor, count + 1);
        if (!inf->shapes[i] || !inf->values[i]) return TARE_NO_MEMORY;
        for (size_t k = 0; k < count; k++) inf->shapes[i][k] = tare_shape_unknown();
    }
    return TARE_OK;
}

static tare_status infer_graph(struct tare_shape ***out, struct tare_arena *arena, const struct tare_graph *graph,
                               const struct tare_shape *args, int depth) {
    struct inference inf = { .arena = arena, .graph = graph, .args = args, .depth = depth };
    struct tare_node **order;
    tare_status status;
    TARE_TRY(make_room(&inf));
    status = tare_graph_order(&order, arena, graph);
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK && order[i]; i++)
        status = tare_error_prefix(infer_node(&inf, order[i]), "%s (%s)", order[i]->name, order[i]->op);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_outputs; k++) tare_tensor_reset(&inf.values[i][k]);
    *out = inf.shapes;
    return status;
}

tare_status tare_graph_infer_shapes(struct tare_shape ***out, struct tare_arena *arena, const struct tare_graph *graph,
                                    const struct tare_shape *args) {
    return infer_graph(out, arena, graph, args, 0);
}
