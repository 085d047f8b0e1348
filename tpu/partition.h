/* Partitions a function around the nodes that a TPU does not support: before them, and after them. */
#ifndef TARE_TPU_PARTITION_H
#define TARE_TPU_PARTITION_H

#include "graph/model.h"

enum tare_tpu_place { TARE_TPU_BEFORE, TARE_TPU_AFTER, TARE_TPU_PLACES };

struct tare_tpu_partition {
    const struct tare_graph *graph;
    const bool *bad;                /* by position: nodes that must stay off the TPU */
    bool *reached[TARE_TPU_PLACES]; /* by position: leads to a bad node; depends on one. By data or control edges. */
};

/* Fills `reached`; arena memory. */
tare_status tare_tpu_partition_find(struct tare_tpu_partition *parts, struct tare_arena *arena);
/* The node is on that side only. */
bool tare_tpu_partition_has(const struct tare_tpu_partition *parts, const struct tare_node *node,
                            enum tare_tpu_place place);

#endif
