/* What the signatures compute, each computation once: Keras exports one function as "serve" and "serving_default". */
#ifndef TARE_TPU_COST_SERVED_H
#define TARE_TPU_COST_SERVED_H

#include "graph/model.h"

/* Whether two functions have the same ops with the same attributes, connected alike; names do not count, nor attributes
 * that begin with "_". */
bool tare_functions_are_alike(const struct tare_graph *a, const struct tare_graph *b);
/* The nodes of the main graph that the signatures' outputs need: savers and initialisers do not run in a request. A
 * signature that passes the same to a function like that of an earlier signature is left out. Arena memory. */
tare_status tare_mark_served(bool **out, struct tare_arena *arena,
                             const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif
