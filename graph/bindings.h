/* Which variable a resource edge stands for: function arguments are followed to what every call site passes. */
#ifndef TARE_GRAPH_BINDINGS_H
#define TARE_GRAPH_BINDINGS_H

#include "graph/model.h"

struct tare_bindings;

/* Looks at every call site of the model, and at what the object graph binds. The result is valid until a graph
 * changes. */
tare_status tare_bindings_new(struct tare_bindings **out, const struct tare_model *model);
void tare_bindings_free(struct tare_bindings *bindings);
/* The variable that an edge of dtype resource (or a reference edge of a VariableV2) always stands for, looking through
 * Identity; NULL when there is none, or when call sites pass several: *several says so (may be NULL). */
struct tare_variable *tare_bindings_variable(const struct tare_bindings *bindings, struct tare_edge edge,
                                             bool *several);
/* The shapes of the variables that a function's arguments stand for (NULL entries elsewhere), for
 * tare_graph_infer_shapes_of; arena memory, NULL when that is out. Borrows the variables. */
const struct tare_shape **tare_bindings_handles(const struct tare_bindings *bindings, struct tare_arena *arena,
                                                const struct tare_graph *graph);

#endif
