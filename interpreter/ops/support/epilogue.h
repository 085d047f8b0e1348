/* Applying a fused epilogue (struct tare_epilogue) in a kernel's own pass. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_EPILOGUE_H
#define TARE_INTERPRETER_OPS_SUPPORT_EPILOGUE_H

#include "interpreter/kernels/gemm.h"
#include "interpreter/kernel.h"

/* If the kernel has an epilogue that fits output 0 (of which dtype and shape are set), fills `out`, marks it as applied
 * and returns `out`: output float32 or bfloat16, vectors with as many elements as the last dimension (the scale may be
 * a scalar), addend of the output's shape. Otherwise returns NULL, or for a bfloat16 output an epilogue that only
 * rounds the product. Vectors may be in the kernel's scratch memory. */
const struct tare_gemm_epilogue *tare_take_epilogue(struct tare_gemm_epilogue *out, struct tare_kernel *kernel);
/* Moves the addend to output 0 if nothing else uses it and the epilogue is simple, for a kernel that reads each element
 * of the addend before it stores the same element of the output, and stores nothing else there. It is in the cache
 * then, and less memory is used. */
void tare_add_in_place(struct tare_kernel *kernel, const struct tare_gemm_epilogue *epilogue);

#endif
