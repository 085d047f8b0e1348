/* The dtype of an edge, and the constant that it carries. */
#include "graph/graph.h"

#include <string.h>

int tare_edge_dtype(struct tare_edge edge) {
    if (!edge.node || edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs) return TARE_DT_INVALID;
    return tare_dtype_base(edge.node->output_dtypes[edge.index]);
}

const struct tare_tensor *tare_edge_constant(struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    while (node && strcmp(node->op, "Identity") == 0 && node->n_inputs == 1) {
        edge = node->inputs[0];
        node = edge.node;
    }
    return node && strcmp(node->op, "Const") == 0 ? tare_node_tensor(node, "value") : NULL;
}
