/* Consecutive convolutions and paddings that run together (interpreter/kernels/tiling.h). */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_CONV_TILING_H
#define TARE_INTERPRETER_OPS_SUPPORT_CONV_TILING_H

#include "interpreter/kernels/tiling.h"
#include "interpreter/kernel.h"

/* tare_op.run_tiled of convolutions and paddings. */
size_t tare_run_tiled(struct tare_kernel *kernels, size_t count);

/* Creates the stage of one execution whose input 0 has *shape, which is set to the output's shape; batch 1. The
 * epilogue is written to `room` and refers to the kernel's tensors. False: the execution cannot be tiled; an error may
 * be set. */
bool tare_conv_stage(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                     struct tare_shape *shape);
bool tare_pad_stage(struct tare_tiling_stage *stage, struct tare_kernel *kernel, struct tare_shape *shape);

#endif
