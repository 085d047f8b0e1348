/* Lists of uses (tare_node.uses) for the files of graph/ that change edges. */
#ifndef TARE_GRAPH_USES_H
#define TARE_GRAPH_USES_H

#include "graph/model.h"

/* Gives a new node empty lists, in a graph that has lists. */
tare_status tare_node_start_uses(struct tare_node *node);
/* Gives each output a list of its own, in a graph that has lists: after the number of outputs was set. */
tare_status tare_node_index_outputs(struct tare_node *node);
/* Removes the uses by a node's inputs from all lists: for a node that leaves the graph. */
void tare_node_drop_uses(struct tare_node *node);

#endif
