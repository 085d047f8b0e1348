/* Adapts the callers of TPU functions and batchers. */
#ifndef TARE_TPU_CALLERS_H
#define TARE_TPU_CALLERS_H

#include "graph/model.h"

/* After placement and batching. Every function that reaches a TPUPartitionedCall becomes stateful, and so do the calls,
 * branches and loops on the way: a runtime may merge or prune stateless ones. Every function that reaches a
 * TPUPartitionedCall or a BatchFunction loses the request to be compiled by XLA (_XlaMustCompile, also on the calls on
 * the way), and is marked `must_not_jit`: XLA has a kernel for neither op, so that each request would fail. Functions
 * that run inside a TPU computation or a batch keep their attributes. Adds the functions and nodes that changed to
 * *changes. */
tare_status tare_tpu_adapt_callers(struct tare_graph_model *model, size_t *changes);

#endif
