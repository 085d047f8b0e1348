/* Float ops in quantize and dequantize chains that must stay float32: scaling and rounding before a cast to 8 bits or
 * fewer, scaling, offset and activation after an integer product. Wider integers are handled in
 * tpu/exact/values.c. */
#include "tpu/bfloat16_internal.h"
#include "graph/flags.h"
#include "tpu/exact/range_values.h"

#include <string.h>

static bool has_role(const struct tare_node *node, enum tare_quant_role role) {
    return node->def && node->def->row && node->def->row->quant == role;
}

struct marker {
    const struct tare_graph *graph;
    bool *exact;
    struct tare_node **stack;
    size_t depth, capacity;
    struct tare_arena *arena;
};

static tare_status push(struct marker *marker, struct tare_node *node) {
    if (tare_node_is(node, "_Arg") || tare_node_is(node, "Const") || marker->exact[node->position]) return TARE_OK;
    marker->exact[node->position] = true;
    marker->stack[marker->depth++] = node; /* each node at most once: the stack has room */
    return TARE_OK;
}

/* ---- before an integer ---- */

static bool ends_scale(const struct tare_node *node) {
    return tare_node_is(node, "Min") || tare_node_is(node, "Max");
}

/* Arithmetic of a quantization. It includes a computed scale (from the minimum and maximum of a tensor), but not the
 * tensor itself. */
static bool is_before_integer(const struct tare_node *node) {
    return tare_node_has_flag(node, TARE_OP_ARITHMETIC | TARE_OP_MOVE | TARE_OP_CREATE) || ends_scale(node) ||
           tare_node_is(node, "Cast");
}

static bool casts_to_integer(const struct tare_node *node) {
    if (!tare_node_is(node, "Cast") || !node->n_inputs) return false;
    return tare_node_type(node, "SrcT", 0) == TARE_DT_FLOAT && tare_dtype_is_integer(tare_node_type(node, "DstT", 0));
}

static tare_status mark_before(struct marker *marker, struct tare_node *cast) {
    TARE_TRY(push(marker, cast));
    while (marker->depth) {
        struct tare_node *node = marker->stack[--marker->depth];
        bool scales = tare_node_is(node, "Div") || tare_node_is(node, "RealDiv");
        if (ends_scale(node)) continue;
        for (size_t i = 0; i < node->n_inputs; i++) {
            if (scales && i == 0 && !tare_is_range_value(node->inputs[0])) continue; /* the tensor */
            struct tare_node *before = node->inputs[i].node;
            if (tare_edge_dtype(node->inputs[i]) != TARE_DT_FLOAT || !is_before_integer(before)) continue;
            TARE_TRY(push(marker, before));
        }
    }
    return TARE_OK;
}

/* ---- after an integer ---- */

static bool passes_integers(const struct tare_node *node) {
    return tare_node_has_flag(node, TARE_OP_ARITHMETIC | TARE_OP_MOVE) || has_role(node, TARE_QUANT_BIAS) ||
           has_role(node, TARE_QUANT_PASS_THROUGH) || tare_node_is(node, "Cast");
}

/* The integer at this edge is a quantized value or a sum of them: int8 or narrower, or an int32 computed from them.
 */
static bool is_quantized(struct tare_edge edge) {
    for (int steps = 0; steps < 32; steps++) {
        int dtype = tare_edge_dtype(edge);
        if (dtype == TARE_DT_INT8 || dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4 || dtype == TARE_DT_QINT8)
            return true;
        if (dtype != TARE_DT_INT32) return false;
        if (tare_node_has_flag(edge.node, TARE_OP_PRODUCT)) return true;
        if (!passes_integers(edge.node) || !edge.node->n_inputs) return false;
        edge = edge.node->inputs[0];
    }
    return false;
}

static bool dequantizes(const struct tare_node *node) {
    return tare_node_is(node, "Cast") && node->n_inputs && tare_node_type(node, "DstT", 0) == TARE_DT_FLOAT &&
           is_quantized(node->inputs[0]);
}

/* Node `user` continues the arithmetic on `from`, and its other operands are constant or exact themselves (a scale). */
static bool continues(const struct marker *marker, const struct tare_node *user, const struct tare_node *from) {
    bool uses = false;
    if (!tare_node_has_flag(user, TARE_OP_ARITHMETIC) && !has_role(user, TARE_QUANT_BIAS) &&
        !has_role(user, TARE_QUANT_ACTIVATION))
        return false;
    for (size_t i = 0; i < user->n_inputs; i++) {
        const struct tare_node *before = user->inputs[i].node;
        if (before == from)
            uses = true;
        else if (!tare_edge_constant(user->inputs[i]) &&
                 (tare_node_is(before, "_Arg") || !marker->exact[before->position]))
            return false;
    }
    return uses;
}

/* Marks the nodes after them, in rounds: a node is marked once all its operands are. */
static tare_status mark_after(struct marker *marker) {
    const struct tare_graph *graph = marker->graph;
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_node *node = graph->nodes[i];
            if (node->dead || marker->exact[i]) continue;
            for (size_t k = 0; k < node->n_inputs && !marker->exact[i]; k++) {
                const struct tare_node *before = node->inputs[k].node;
                if (tare_node_is(before, "_Arg") || !marker->exact[before->position]) continue;
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
    TARE_TRY(mark_after(&marker));
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && casts_to_integer(graph->nodes[i]))
            TARE_TRY(mark_before(&marker, graph->nodes[i]));
    *exact = marker.exact;
    return TARE_OK;
}
