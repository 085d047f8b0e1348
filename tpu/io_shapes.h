/* The form in which tensors cross between host and TPU. */
#ifndef TARE_TPU_IO_SHAPES_H
#define TARE_TPU_IO_SHAPES_H

#include "tpu/placement.h"

struct tare_io_shapes_result {
    size_t inputs, outputs; /* that cross as vectors */
    size_t narrowed;        /* that cross as bfloat16 */
};

/* After placement, for every placed function: a float32 tensor that the TPU uses or computes as bfloat16 crosses as
 * bfloat16. With `flattens` a tensor whose last two dimensions would be padded to tiles of 8 x 128 on the TPU crosses
 * as a vector, with X/flatten/Reshape on one side and X/recover/Reshape on the other: only tensors of rank 2 or more
 * whose dimensions beyond the first are known, and not sharded ones. Values do not change. */
tare_status tare_tpu_io_shapes(struct tare_io_shapes_result *out, struct tare_graph_model *model,
                               const struct tare_tpu_placed *placed, size_t n_placed, bool flattens);

#endif
