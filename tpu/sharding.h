/* Splitting the batch between the cores that share one replica. */
#ifndef TARE_TPU_SHARDING_H
#define TARE_TPU_SHARDING_H

#include "tpu/placement.h"

/* After placement and before I/O shapes: splits inputs of the placed functions between the cores, by an XlaSharding
 * directly after their TPUReplicatedInput: the arguments that sharding->splits names, along the dimension that it
 * names; of functions without any there, every input whose first dimension is divisible by the number of cores. That
 * dimension must be known, or `open_divides` must be set: every future batch is divisible. Other inputs of open size
 * are sent whole to every core, which is always correct (a batch that is not divisible would fail); the compiler
 * propagates the sharding to the other tensors. Adds the number of marked inputs to *count. TARE_INVALID_ARGUMENT for
 * an argument that cannot be split as it is named. */
tare_status tare_tpu_shard_inputs(size_t *count, struct tare_arena *arena, struct tare_graph_model *model,
                                  const struct tare_tpu_placed *placed, size_t n_placed,
                                  const struct tare_tpu_sharding *sharding, bool open_divides) TARE_WARN_UNUSED;

#endif
