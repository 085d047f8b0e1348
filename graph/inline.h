/* Calls of functions replaced by the functions' bodies. */
#ifndef TARE_GRAPH_INLINE_H
#define TARE_GRAPH_INLINE_H

#include "graph/model.h"

/* Puts bodies in the place of the main graph's PartitionedCall, StatefulPartitionedCall and calls by op name, and of
 * those in these bodies in turn, so that one plan of the main graph holds every node and any edge can be fed or fetched
 * (interpreter/session.h). For a copy of a model that is only run: the result is not written. A node N of a body called
 * by C is named C/N. Functions that If, Case, While and others name stay calls. A fetched value has the same bits as
 * before; a body's node runs when a fetch or target needs it and not, as in a function, for its effect alone.
 * TARE_UNSUPPORTED, with the model of no further use, when the main graph would get more than 200,000 nodes. */
tare_status tare_model_inline_calls(struct tare_model *model) TARE_WARN_UNUSED;
/* The same for one function, which keeps its effects, and for the calls whose callee `wants`; *count is their number.
 * The model has no recursion. */
tare_status tare_function_inline_calls(size_t *count, struct tare_graph *function,
                                       bool (*wants)(void *arg, const struct tare_graph *callee),
                                       void *arg) TARE_WARN_UNUSED;

#endif
