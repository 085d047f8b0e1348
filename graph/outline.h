/* Outlining: moving nodes of a graph into a new function. */
#ifndef TARE_GRAPH_OUTLINE_H
#define TARE_GRAPH_OUTLINE_H

#include "graph/model.h"

/* Moves the nodes marked in `chosen` (by position) into a new function `name` and replaces them by one
 * StatefulPartitionedCall. Constants that they read are copied; other tensors from outside, including variable handles,
 * become arguments, each once; outputs used outside become returns. Control inputs on a moved node become control
 * inputs on the call, which gets all control inputs of the moved nodes. No path may lead from a chosen node through
 * other nodes back to a chosen node. Values keep their bits. */
tare_status tare_graph_outline(struct tare_graph **out, struct tare_graph *graph, const bool *chosen, const char *name);

#endif
