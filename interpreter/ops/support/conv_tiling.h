/* Consecutive convolutions and paddings that run together (interpreter/kernels/tiling.h). */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_CONV_TILING_H
#define TARE_INTERPRETER_OPS_SUPPORT_CONV_TILING_H

#include "interpreter/kernels/tiling.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/weights.h"

/* tare_op.run_tiled of convolutions and paddings, of float or bfloat16. A bfloat16 convolution may also run alone, so
 * that its input and output are converted tile by tile. */
size_t tare_run_tiled(struct tare_kernel *kernels, size_t count);
/* The geometry of a stage that copies the lines of an image of `shape` [batch, height, width, channels]. */
struct tare_conv tare_stage_copying_conv(const struct tare_shape *shape);
/* Sets the epilogue of a convolution stage whose output has the shape; false if the kernel's does not fit. */
bool tare_stage_epilogue(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                         const struct tare_shape *shape);
/* Sets the bounds of a stage with epilogue and weights. They are computed once for weights that are cached and an
 * epilogue that is kept. */
void tare_stage_bounds(struct tare_tiling_stage *stage, const struct tare_kernel *kernel,
                       const struct tare_weights *weights);

#endif
