/* Splitting the batch between the cores that share one replica. */
#ifndef TARE_TPU_SHARDING_H
#define TARE_TPU_SHARDING_H

#include "tpu/placement.h"

/* After placement and before I/O shapes: marks every input of the placed functions whose first dimension is divisible
 * by `cores` with an XlaSharding, directly after its TPUReplicatedInput, that splits it between them. The dimension
 * must be known, or `open_divides` must be set: every future batch is divisible. Other inputs of open size are sent
 * whole to every core, which is always correct (a batch that is not divisible would fail); the compiler propagates the
 * sharding to the other tensors. Adds the number of marked inputs to *count. */
tare_status tare_tpu_shard_inputs(struct tare_graph_model *model, const struct tare_tpu_placed *placed, size_t n_placed,
                                  int cores, bool open_divides, size_t *count);

#endif
