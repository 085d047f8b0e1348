/* Uses of nodes by the signatures of a model. */
#ifndef TARE_GRAPH_SIGNATURE_USES_H
#define TARE_GRAPH_SIGNATURE_USES_H

#include "graph/model.h"

/* Calls `visit` for each edge of the main graph that a signature refers to. */
void tare_model_each_signature_edge(struct tare_graph_model *model, void (*visit)(void *arg, struct tare_edge *edge),
                                    void *arg);
/* The number of edges of signatures that are `edge`. */
size_t tare_signatures_count_uses(struct tare_graph_model *model, struct tare_edge edge);
/* Replaces them by `to`; returns their number. */
size_t tare_signatures_replace_uses(struct tare_graph_model *model, struct tare_edge from, struct tare_edge to);
/* Replaces each edge of signatures that is output i of the node by to[i]. */
void tare_signatures_replace_outputs(struct tare_graph_model *model, const struct tare_node *node,
                                     const struct tare_edge *to);

#endif
