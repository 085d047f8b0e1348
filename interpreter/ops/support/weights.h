/* Weights brought into a kernel's own form once. A node keeps them as long as the same tensor comes in: constants and
 * read variables do, activations do not, and after a few different tensors the node stops keeping. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_WEIGHTS_H
#define TARE_INTERPRETER_OPS_SUPPORT_WEIGHTS_H

#include "base/arena.h"
#include "base/tensor/tensor.h"

struct tare_weights {
    struct tare_tensor
        source; /* a share: while it is held, no other tensor can have its address or change its values */
    void *packed;
    int64_t key;
    int changes; /* times that another tensor came */
};

/* The packed form of `tensor` if it is kept, else NULL. `key` identifies everything else that the form depends on
 * (groups of a convolution): a form kept under another key is not found. */
void *tare_weights_find(const struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key);
/* `size` bytes, aligned to 64, to pack `tensor` into: kept with the node, or in `scratch` once the node's weights
 * turned out to change. NULL: no memory. */
void *tare_weights_make(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key, size_t size,
                        struct tare_arena *scratch);
void tare_weights_reset(struct tare_weights *weights);

#endif
