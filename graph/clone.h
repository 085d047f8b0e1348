/* Copying functions and models. */
#ifndef TARE_GRAPH_CLONE_H
#define TARE_GRAPH_CLONE_H

#include "graph/model.h"

/* A new function `name` with the arguments, nodes, returns and attributes of `from` (values shared). Its
 * body_of is that of `from`, or the name of it. */
tare_status tare_function_clone(struct tare_graph **out, const struct tare_graph *from, const char *name);
/* Gives a PartitionedCall or StatefulPartitionedCall a function of its own, with an unused name: a copy of the function
 * that it shared with other callers. The copy's copied_from is the name of the first original. */
tare_status tare_call_copy_function(struct tare_node *call);
/* A model with the graphs, signatures, variables and tables of `from`, for passes that change it and for sessions. It
 * shares constants, strings and the values of attributes with `from`, which must outlive it and must not change, and
 * does not own the files of `from`. Reads `from` only, so that several threads may clone it. NULL in *out after a
 * failure. */
tare_status tare_model_clone(struct tare_graph_model **out, const struct tare_graph_model *from) TARE_WARN_UNUSED;
/* Moves the body of `from` into a new function `name`: afterwards `from` has its arguments and returns (whose edges
 * must be set again) but no nodes. The new function has its own arguments. */
tare_status tare_function_move_body(struct tare_graph **out, struct tare_graph *from, const char *name);

#endif
