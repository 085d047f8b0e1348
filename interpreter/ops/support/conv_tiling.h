/* Convolutions and paddings in a row that run together (interpreter/kernels/tiling.h). */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_CONV_TILING_H
#define TARE_INTERPRETER_OPS_SUPPORT_CONV_TILING_H

#include "interpreter/kernels/tiling.h"
#include "interpreter/kernel.h"

/* The rows' `strip`. */
size_t tare_run_strip(struct tare_kernel *kernels, size_t count);

/* Makes a stage of one execution whose input 0 has *shape, which becomes the output's; batch 1. The finish goes to
 * `room` and refers to the kernel's tensors. False: the execution is nothing for a strip; an error may be set. */
bool tare_conv_stage(struct tare_strip_stage *stage, struct tare_gemm_finish *room, struct tare_kernel *kernel,
                     struct tare_shape *shape);
bool tare_pad_stage(struct tare_strip_stage *stage, struct tare_kernel *kernel, struct tare_shape *shape);

#endif
