/* Properties of the op of a node, from its row. */
#ifndef TARE_GRAPH_FLAGS_H
#define TARE_GRAPH_FLAGS_H

#include "graph/op.h"

/* Whether the row has one of the flags (enum tare_op_flag); false for an op without a row. */
static inline bool tare_node_has_flag(const struct tare_node *node, unsigned flags) {
    return node->def && node->def->row && node->def->row->flags & flags;
}

#endif
