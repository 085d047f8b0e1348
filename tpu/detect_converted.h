/* TPU and batching ops in the input model: it was converted before. */
#ifndef TARE_TPU_DETECT_CONVERTED_H
#define TARE_TPU_DETECT_CONVERTED_H

#include "graph/model.h"

struct tare_tpu_converted {
    size_t tpu_calls;  /* TPUPartitionedCall nodes */
    size_t batchers;   /* BatchFunction nodes */
    const char *first; /* function that the first TPUPartitionedCall runs; NULL without one */
};

/* Counts the ops that signatures and aliases reach; arena memory is for scratch. */
tare_status tare_tpu_detect_converted(struct tare_tpu_converted *out, struct tare_arena *arena,
                                      const struct tare_graph_model *model);
/* TARE_INVALID_ARGUMENT when one of the functions to place, or a function that it calls, is already on the TPU or
 * contains a batcher.
 */
tare_status tare_tpu_refuse_converted(struct tare_arena *arena, struct tare_graph *const *functions, size_t count);

#endif
