/* Assignments that give a variable the value that it has. */
#ifndef TARE_GRAPH_SELF_ASSIGNMENTS_H
#define TARE_GRAPH_SELF_ASSIGNMENTS_H

#include "graph/model.h"

/* Removes the assignments of a value that was read from the same variable, if nothing else that signatures or aliases
 * reach writes the variable: functions that were exported from a framework without variables return the state that they
 * were given (Keras on JAX: moving averages, seeds of layers that draw nothing at inference). An assignment becomes a
 * NoOp, so that what waits for it still waits. Adds their number to *removed (NULL: not counted). */
tare_status tare_model_remove_self_assignments(struct tare_graph_model *model, size_t *removed) TARE_WARN_UNUSED;

#endif
