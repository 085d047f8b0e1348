/* Weights packed once into a kernel's own form. A node caches them while its input is the same tensor, as for constants
 * and read variables, but not activations; after a few different tensors the node stops caching. Sessions of one model
 * share the packed form: the kernel that packs first publishes it, and the same node in other sessions finds it. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_WEIGHTS_H
#define TARE_INTERPRETER_OPS_SUPPORT_WEIGHTS_H

#include "base/arena.h"
#include "base/tensor/tensor.h"

struct tare_shared_weights;

struct tare_weights {
    /* Identifies the form in all sessions of the model: the node; NULL: not shared. Kernels with several weights set
     * different addresses inside the node. Set when the kernel is prepared. */
    const void *owner;
    struct tare_tensor
        source; /* a share: while it is held, no other tensor can have its address or change its values */
    void *packed;
    int64_t key;
    int changes;                        /* times that another tensor came */
    struct tare_shared_weights *shared; /* that `packed` belongs to; NULL: it belongs to this node alone */
};

/* The packed form of `tensor` if it is cached or another session has published it, otherwise NULL. `key` identifies
 * everything else that the form depends on (groups of a convolution): a form cached under another key is not found. */
void *tare_weights_find(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key);
/* `size` bytes, aligned to 64, to pack `tensor` into: cached in the node, or in `scratch` if the node has stopped
 * caching. NULL: out of memory. */
void *tare_weights_make(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key, size_t size,
                        struct tare_arena *scratch);
/* Publishes what was packed into `packed` (from tare_weights_make; `weights` NULL: nothing to do). Returns the form to
 * use from now on: that of another session if it was published meanwhile. The packed bytes must not change any more. */
void *tare_weights_publish(struct tare_weights *weights, void *packed);
void tare_weights_reset(struct tare_weights *weights);

#endif
