/* Values that a function derives from constants and shapes alone. */
#ifndef TARE_TPU_SPLIT_DERIVED_H
#define TARE_TPU_SPLIT_DERIVED_H

#include "graph/model.h"

/* Marks the nodes (by position; arena memory) whose outputs depend on constants and on shapes only. The CPU computes
 * them for itself: from the TPU they would come with every request, and float32 ones possibly rounded. */
tare_status tare_split_find_derived(bool **out, struct tare_arena *arena, const struct tare_graph *graph);

/* Before the nodes that `chosen` marks are outlined: adds copies of the derived nodes among them that others use as
 * well; the copies stay outside. A shape of a tensor that only the chosen nodes know is left alone. Positions of
 * existing nodes do not change. */
tare_status tare_split_copy_derived(struct tare_graph *graph, const bool *chosen, struct tare_arena *arena);

#endif
