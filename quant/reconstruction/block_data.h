/* The tensors at the ends of a block in the float model, for the kept samples. */
#ifndef TARE_QUANT_RECONSTRUCTION_BLOCK_DATA_H
#define TARE_QUANT_RECONSTRUCTION_BLOCK_DATA_H

#include "quant/reconstruction/block.h"

struct tare_block_sample {
    struct tare_tensor *inputs, *outputs; /* of the block */
    struct tare_tensor quantized; /* the first input as the blocks before it compute it with quantized layers; no dtype:
                                     not known */
};

struct tare_block_data {
    struct tare_block_sample *samples; /* in the order of the records */
    size_t count;
    size_t n_inputs, n_outputs;
};

/* Runs the kept samples, as many as take at most 256 MiB at the ends of the block. Samples that do not reach the block
 * are left out. *reason: why its tensors cannot be used; NULL: they can. Free *out in any case. */
tare_status tare_block_data_observe(struct tare_block_data *out, const char **reason,
                                    const struct tare_quant_work *work, const struct tare_block *block,
                                    int threads) TARE_WARN_UNUSED;
void tare_block_data_free(struct tare_block_data *data);

#endif
