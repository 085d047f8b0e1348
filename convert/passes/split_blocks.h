/* Stacks of which an iteration of a loop uses several entries (jax.lax.scan with unroll): one stack for each. */
#ifndef TARE_CONVERT_PASSES_SPLIT_BLOCKS_H
#define TARE_CONVERT_PASSES_SPLIT_BLOCKS_H

#include "graph/graph.h"

/* Splits a constant [n, u, …] of which a block [1, u, …] is chosen, and of the block entries at constant places, into
 * constants [n, 1, …]: together they have no more elements, and each layer of an iteration has a stack of its own,
 * which quantization may change by itself. Counts the blocks. */
tare_status tare_split_blocks(struct tare_graph *graph, size_t *changes) TARE_WARN_UNUSED;

#endif
