/* Which variable a resource edge refers to: function arguments are traced to the values passed at every call site. */
#ifndef TARE_GRAPH_BINDINGS_H
#define TARE_GRAPH_BINDINGS_H

#include "graph/model.h"

struct tare_bindings;

/* Traces every call site of the model and the bindings of the object graph. The result is valid until a graph changes.
 */
tare_status tare_bindings_new(struct tare_bindings **out, const struct tare_graph_model *model);
void tare_bindings_free(struct tare_bindings *bindings);
/* The variable that an edge of dtype resource (or a reference edge of a VariableV2) always refers to, looking through
 * Identity; NULL when there is none, or when call sites pass different ones (*several is then true; may be NULL). */
struct tare_variable *tare_bindings_variable(const struct tare_bindings *bindings, struct tare_edge edge,
                                             bool *several);
/* Whether a handle for which tare_bindings_variable finds no variable may be that of this one: a function that uses an
 * argument gets this variable and others in it, or a call or loop returns the handle. */
bool tare_bindings_is_mixed(const struct tare_bindings *bindings, const struct tare_variable *variable);
/* The shapes of the variables that a function's arguments refer to (NULL entries for other arguments), for
 * tare_graph_infer_shapes_of. Arena memory that borrows the variables; NULL when out of memory. */
const struct tare_shape **tare_bindings_handles(const struct tare_bindings *bindings, struct tare_arena *arena,
                                                const struct tare_graph *graph);

#endif
