/* Weights packed once into a kernel's own form. A node caches them while its input is the same tensor, as for constants
 * and read variables, but not activations; after a few different tensors the node stops caching. */
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

/* The packed form of `tensor` if it is cached, otherwise NULL. `key` identifies everything else that the form depends
 * on (groups of a convolution): a form cached under another key is not found. */
void *tare_weights_find(const struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key);
/* `size` bytes, aligned to 64, to pack `tensor` into: cached in the node, or in `scratch` if the node has stopped
 * caching. NULL: out of memory. */
void *tare_weights_make(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key, size_t size,
                        struct tare_arena *scratch);
void tare_weights_reset(struct tare_weights *weights);

#endif
