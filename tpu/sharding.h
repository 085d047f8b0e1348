/* Splitting the batch between the cores that share one replica. */
#ifndef TARE_TPU_SHARDING_H
#define TARE_TPU_SHARDING_H

#include "tpu/placement.h"

/* After placement and I/O shapes: marks every input of the placed functions whose first dimension divides by `cores`
 * with an XlaSharding that splits it between them: because it is known, or because it is open and `open_divides` says
 * so of every batch that will come. Other inputs of open size stay whole on every core, which is always right (a batch
 * that does not divide would fail); the compiler spreads what it can from the rest. Adds the number of marked inputs to
 * *count. */
tare_status tare_tpu_shard_inputs(struct tare_model *model, const struct tare_tpu_placed *placed, size_t n_placed,
                                  int cores, bool open_divides, size_t *count);

#endif
