/* A block as a model of its own, with its weights as inputs: the block's outputs with quantized activations, their
 * squared errors, and the derivatives of the loss with respect to the weights. */
#ifndef TARE_QUANT_RECONSTRUCTION_BLOCK_MODEL_H
#define TARE_QUANT_RECONSTRUCTION_BLOCK_MODEL_H

#include "quant/reconstruction/block.h"

struct tare_block_model {
    struct tare_graph_model *model;
    /* Placeholders, to be fed. */
    struct tare_edge *inputs;  /* by input of the block */
    struct tare_edge *targets; /* by output: the float block's */
    struct tare_edge *shares;  /* by output, a scalar: weight of its squared error in the loss */
    struct tare_edge *weights; /* by layer: float32, in the shape of the op's operand */
    struct tare_edge drop;     /* a scalar: probability that an element of an activation is not quantized */
    struct tare_edge seed;     /* int64 [2] of the draws */
    /* Results. */
    struct tare_edge *outputs;   /* by output; node NULL: not float32 */
    struct tare_edge *errors;    /* by output: sum of squared differences from the target */
    struct tare_edge *gradients; /* by layer, of Σ shares * errors / 2; node NULL: not trained */
    size_t n_outputs;            /* of the block */
    bool runs;                   /* everything but the gradients exists */
};

/* `trains` is by layer. *reason: why the block has no such model, or no gradients, arena text; NULL: it has. */
tare_status tare_block_model_new(struct tare_block_model *out, const char **reason, struct tare_arena *arena,
                                 const struct tare_quant_work *work, const struct tare_block *block,
                                 const bool *trains) TARE_WARN_UNUSED;
void tare_block_model_free(struct tare_block_model *model);

#endif
