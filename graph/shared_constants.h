/* Constants with the same bits become one. */
#ifndef TARE_GRAPH_SHARED_CONSTANTS_H
#define TARE_GRAPH_SHARED_CONSTANTS_H

#include "graph/graph.h"

/* Users of a constant of 64 bytes or more use the first one of the graph with its dtype, shape and bits. The others
 * stay, without users. */
tare_status tare_graph_share_constants(struct tare_graph *graph) TARE_WARN_UNUSED;

#endif
