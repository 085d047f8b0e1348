/* Blocks of a graph: parts whose layers are rounded together. A block is a residual block, or a part between two points
 * where a single tensor carries all data, found from the edges of the graph alone. */
#ifndef TARE_QUANT_RECONSTRUCTION_BLOCK_H
#define TARE_QUANT_RECONSTRUCTION_BLOCK_H

#include "quant/layer.h"

struct tare_block {
    const struct tare_graph *graph;
    struct tare_edge *inputs; /* that carry data into it: one; at the beginning of the graph, all that it reads from
                                 nodes before its layers */
    size_t n_inputs;
    struct tare_edge *outputs; /* one, except at the end of the graph */
    size_t n_outputs;
    struct tare_quant_layer **layers; /* quantized ones with weights that are not tables, in order of execution */
    size_t n_layers;
};

struct tare_block_list {
    struct tare_block *blocks; /* in order of execution within each graph; arena memory */
    size_t count;
};

/* Finds the blocks with layers of all graphs; of the main graph, those of each signature, to which its samples belong.
 */
tare_status tare_quant_find_blocks(struct tare_block_list *out, struct tare_arena *arena,
                                   const struct tare_quant_work *work) TARE_WARN_UNUSED;

#endif
