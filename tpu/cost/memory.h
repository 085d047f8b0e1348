/* Estimates the TPU memory that functions need. */
#ifndef TARE_TPU_MEMORY_H
#define TARE_TPU_MEMORY_H

#include "graph/model.h"

struct tare_tpu_memory {
    double weights;     /* bytes of constants and of variables, each once */
    double activations; /* most bytes alive at one time, the arguments of the functions included */
};

/* Adds up the functions and those that they call, as they are now; activations are those of the function that needs
 * most, with every open first dimension of its arguments as `batch`, run node after node and each tensor freed after
 * its last use. Tensors that a compiler would fuse away are counted. Arena memory is for scratch. */
tare_status tare_tpu_memory(struct tare_tpu_memory *out, struct tare_arena *arena, const struct tare_graph_model *model,
                            struct tare_graph *const *functions, size_t count, int64_t batch);

#endif
