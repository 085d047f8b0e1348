/* Assignments that give a variable a value that it alone determines. */
#ifndef TARE_GRAPH_SELF_ASSIGNMENTS_H
#define TARE_GRAPH_SELF_ASSIGNMENTS_H

#include "graph/model.h"

/* Removes the assignments of a value that was read from the same variable, if nothing else that signatures or aliases
 * reach writes the variable: functions that were exported from a framework without variables return the state that they
 * were given (Keras on JAX: moving averages, seeds of layers that draw nothing at inference). An assignment becomes a
 * NoOp, so that what waits for it still waits. Adds their number to *removed (NULL: not counted). */
tare_status tare_model_remove_self_assignments(struct tare_graph_model *model, size_t *removed) TARE_WARN_UNUSED;

struct tare_dropped_seeds {
    size_t count;      /* assignments */
    const char *first; /* shared name of the variable of one */
};

/* Removes the assignments that advance the states of Keras's seed generators (`seed_generator_state`, whose next value
 * depends on nothing else), unless something else that signatures or aliases reach writes them. A TPU function cannot
 * write a variable; without them, each request draws the same random numbers. */
tare_status tare_model_drop_seed_states(struct tare_dropped_seeds *out,
                                        struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif
