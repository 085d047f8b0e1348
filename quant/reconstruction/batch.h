/* Running the model of a block over many samples on several threads. Samples are divided into chunks whose number does
 * not depend on the threads, and results are added in the order of the chunks: they have the same bits for any number
 * of threads. */
#ifndef TARE_QUANT_RECONSTRUCTION_BATCH_H
#define TARE_QUANT_RECONSTRUCTION_BATCH_H

#include "base/tensor/tensor.h"
#include "quant/reconstruction/block_data.h"
#include "quant/reconstruction/block_model.h"

struct tare_block_batches;

/* Everything is borrowed. The layers have their integers and scales. */
tare_status tare_block_batches_open(struct tare_block_batches **out, const struct tare_block *block,
                                    const struct tare_block_model *model, struct tare_block_data *data,
                                    int threads) TARE_WARN_UNUSED;
void tare_block_batches_close(struct tare_block_batches *batches); /* NULL is fine */

/* Takes the weights of the layers from their integers and scales; sets one of them to other values (arranged). */
tare_status tare_block_batches_dequantize(struct tare_block_batches *batches) TARE_WARN_UNUSED;
tare_status tare_block_batches_set_weight(struct tare_block_batches *batches, size_t layer,
                                          const struct tare_tensor *arranged) TARE_WARN_UNUSED;

/* What to run. */
struct tare_block_batch {
    const size_t *samples; /* indices into the data */
    size_t count;
    double drop;      /* probability that an element of an activation is not quantized */
    int64_t seed;     /* of the draws */
    bool float_input; /* odd samples begin with the float model's input, the others with that of quantized blocks */
};

/* The squared error of the block's outputs, each relative to the energy of its target. */
tare_status tare_block_batches_error(double *error, struct tare_block_batches *batches,
                                     const struct tare_block_batch *batch) TARE_WARN_UNUSED;
/* The derivatives of that error with respect to the weights: by layer, arranged, zeroed where a layer is not trained;
 * the caller resets them. */
tare_status tare_block_batches_gradients(struct tare_tensor *gradients, struct tare_block_batches *batches,
                                         const struct tare_block_batch *batch) TARE_WARN_UNUSED;
/* The block's first output for every sample, with quantized weights and activations: outputs[i] of sample i, which the
 * caller resets. */
tare_status tare_block_batches_outputs(struct tare_tensor *outputs,
                                       struct tare_block_batches *batches) TARE_WARN_UNUSED;

#endif
