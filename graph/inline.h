/* Inlining: replacing calls by the bodies of the functions. */
#ifndef TARE_GRAPH_INLINE_H
#define TARE_GRAPH_INLINE_H

#include "graph/model.h"

/* Inlines PartitionedCall, StatefulPartitionedCall and calls by op name in the main graph, recursively, so that one
 * plan of the main graph contains every node and any edge can be fed or fetched (interpreter/session.h). For a copy of
 * a model that is only run, never written. A node N of a body called by C is named C/N. Functions called by If, Case,
 * While and other ops are not inlined. A fetched value has the same bits as before; a node of a body runs only when a
 * fetch or target depends on it, not for its side effect as in a function. TARE_UNSUPPORTED, with the model of no
 * further use, when the main graph would get more than 200,000 nodes. */
tare_status tare_model_inline_calls(struct tare_graph_model *model) TARE_WARN_UNUSED;
/* The same after the calls are inlined, for what BatchFunction and, with `tpu`, TPUPartitionedCall call: the
 * computation of a converted model without its placement. */
tare_status tare_model_inline_placed(struct tare_graph_model *model, bool tpu) TARE_WARN_UNUSED;
/* The name that an inlined node had in its function, if the calls on the way have the names of their ops: for reports.
 */
const char *tare_inlined_name(const char *name);
/* The same for the calls in one function whose callee `accepts` accepts; the function keeps its side effects. *count:
 * the number of inlined calls. The model must not be recursive. */
tare_status tare_function_inline_calls(size_t *count, struct tare_graph *function,
                                       bool (*accepts)(void *arg, const struct tare_graph *callee),
                                       void *arg) TARE_WARN_UNUSED;

#endif
