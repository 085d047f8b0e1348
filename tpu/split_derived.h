/* Values that a function derives only from constants, shapes and variables. */
#ifndef TARE_TPU_SPLIT_DERIVED_H
#define TARE_TPU_SPLIT_DERIVED_H

#include "graph/model.h"

/* Marks the nodes (by position; arena memory) whose outputs depend on constants, shapes and variables only, which
 * nothing writes where a part for the TPU reads them. The CPU computes its own copies: the TPU would transfer them in
 * every request, possibly round float32 ones, and could not split them between requests that were batched. */
tare_status tare_split_find_derived(bool **out, struct tare_arena *arena, const struct tare_graph *graph);

/* Before the nodes that `chosen` marks are outlined: adds copies of the derived nodes among them that others use as
 * well; the copies stay outside. A shape of a tensor that only the chosen nodes compute is not copied. Positions of
 * existing nodes do not change. */
tare_status tare_split_copy_derived(struct tare_graph *graph, const bool *chosen, struct tare_arena *arena);

#endif
