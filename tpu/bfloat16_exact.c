/* Which float arithmetic belongs to integers: quantization before an integer, dequantization behind an integer product.
 */
#include "tpu/bfloat16_internal.h"

#include <string.h>

struct marker {
    const struct tare_graph *graph;
    bool *exact;
    struct tare_node **stack;
    size_t depth, capacity;
    struct tare_arena *arena;
};

static tare_status push(struct marker *marker, struct tare_node *node) {
    if (tare_node_is_arg(node) || strcmp(node->op, "Const") == 0 || marker->exact[node->position]) return TARE_OK;
    marker->exact[node->position] = true;
    marker->stack[marker->depth++] = node; /* each node at most once: the stack has room */
    return TARE_OK;
}

/* ---- before an integer ---- */

/* Arithmetic that an integer may be the end of. A scale that is computed (from the minimum and maximum of a tensor) is
 * a part of it, the tensor itself is not. */
static bool is_before_integer(const struct tare_node *node) {
    static const char *const ops[] = { "Round",       "Rint",     "Floor",    "Ceil",       "Maximum",  "Minimum",
                                       "ClipByValue", "AddV2",    "Add",      "Sub",        "Mul",      "Div",
                                       "RealDiv",     "Neg",      "Abs",      "Identity",   "Min",      "Max",
                                       "Reshape",     "Squeeze",  "Cast",     "ExpandDims", "SelectV2", "Select",
                                       "DivNoNan",    "FloorDiv", "FloorMod", "Sign",       "Fill",     "Range",
                                       NULL };
    return tare_op_is_one_of(node->op, ops);
}

static bool casts_to_integer(const struct tare_node *node) {
    if (strcmp(node->op, "Cast") != 0) return false;
    return tare_node_type(node, "SrcT", 0) == TARE_DT_FLOAT && tare_dtype_is_integer(tare_node_type(node, "DstT", 0));
}

static tare_status mark_before(struct marker *marker, struct tare_node *cast) {
    TARE_TRY(push(marker, cast));
    while (marker->depth) {
        struct tare_node *node = marker->stack[--marker->depth];
        bool ends = strcmp(node->op, "Min") == 0 || strcmp(node->op, "Max") == 0;
        bool scales = strcmp(node->op, "Div") == 0 || strcmp(node->op, "RealDiv") == 0;
        if (ends) continue;
        for (size_t i = scales ? 1 : 0; i < node->n_inputs; i++) {
            struct tare_node *before = node->inputs[i].node;
            if (tare_edge_dtype(node->inputs[i]) != TARE_DT_FLOAT || !is_before_integer(before)) continue;
            TARE_TRY(push(marker, before));
        }
    }
    return TARE_OK;
}

/* ---- behind an integer ---- */

static bool is_integer_product(const struct tare_node *node) {
    static const char *const ops[] = { "XlaDotV2",        "XlaConvV2",           "Conv2D", "MatMul",
                                       "BatchMatMulV2",   "BatchMatMulV3",       "Einsum", "DepthwiseConv2dNative",
                                       "QuantizedMatMul", "UniformQuantizedDot", NULL };
    return tare_op_is_one_of(node->op, ops);
}

/* The integer at this edge holds a quantized value or a sum of them: int8 and narrower, or int32 that comes from such.
 */
static bool is_quantized(struct tare_edge edge) {
    static const char *const passing[] = { "AddV2",   "Add",       "Sub",      "BiasAdd", "Identity",
                                           "Reshape", "Transpose", "Cast",     "Pad",     "PadV2",
                                           "Maximum", "Minimum",   "ConcatV2", "MaxPool", NULL };
    for (int steps = 0; steps < 32; steps++) {
        int dtype = tare_edge_dtype(edge);
        if (dtype == TARE_DT_INT8 || dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4 || dtype == TARE_DT_QINT8)
            return true;
        if (dtype != TARE_DT_INT32) return false;
        if (is_integer_product(edge.node)) return true;
        if (!tare_op_is_one_of(edge.node->op, passing) || !edge.node->n_inputs) return false;
        edge = edge.node->inputs[0];
    }
    return false;
}

static bool dequantizes(const struct tare_node *node) {
    return strcmp(node->op, "Cast") == 0 && node->n_inputs && tare_node_type(node, "DstT", 0) == TARE_DT_FLOAT &&
           is_quantized(node->inputs[0]);
}

/* Node `user` continues the arithmetic on `from`, and what else it takes is constant or exact itself (a scale). */
static bool continues(const struct marker *marker, const struct tare_node *user, const struct tare_node *from) {
    static const char *const ops[] = { "Mul",   "Sub",  "AddV2", "Add", "Maximum", "Minimum",     "BiasAdd",
                                       "Round", "Relu", "Relu6", "Div", "RealDiv", "ClipByValue", NULL };
    bool uses = false;
    if (!tare_op_is_one_of(user->op, ops)) return false;
    for (size_t i = 0; i < user->n_inputs; i++) {
        const struct tare_node *before = user->inputs[i].node;
        if (before == from)
            uses = true;
        else if (!tare_edge_constant(user->inputs[i]) && (tare_node_is_arg(before) || !marker->exact[before->position]))
            return false;
    }
    return uses;
}

/* Marks what follows, in rounds: a node counts once all that it takes is marked. */
static tare_status mark_behind(struct marker *marker) {
    const struct tare_graph *graph = marker->graph;
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_node *node = graph->nodes[i];
            if (node->dead || marker->exact[i]) continue;
            for (size_t k = 0; k < node->n_inputs && !marker->exact[i]; k++) {
                const struct tare_node *before = node->inputs[k].node;
                if (tare_node_is_arg(before) || !marker->exact[before->position]) continue;
                if (tare_edge_dtype(node->inputs[k]) != TARE_DT_FLOAT || !continues(marker, node, before)) continue;
                marker->exact[i] = changed = true;
            }
        }
    }
    return TARE_OK;
}

tare_status tare_bf16_mark_exact(bool **exact, struct tare_arena *arena, const struct tare_graph *graph) {
    struct marker marker = { .graph = graph, .arena = arena };
    marker.exact = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    marker.stack = TARE_NEW_ARRAY(arena, struct tare_node *, graph->n_nodes + 1);
    if (!marker.exact || !marker.stack) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && dequantizes(graph->nodes[i])) marker.exact[i] = true;
    TARE_TRY(mark_behind(&marker));
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && casts_to_integer(graph->nodes[i]))
            TARE_TRY(mark_before(&marker, graph->nodes[i]));
    *exact = marker.exact;
    return TARE_OK;
}
