/* Taking on what a chain of ops does to a kernel's output next (struct tare_finish). */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_EPILOGUE_H
#define TARE_INTERPRETER_OPS_SUPPORT_EPILOGUE_H

#include "interpreter/kernels/gemm.h"
#include "interpreter/kernel.h"

/* Fills `out` and marks the kernel's finish as applied, when there is one and it fits output 0, which was made:
 * float32, a bias of as many elements as the last dimension, an addend of the output's shape. NULL otherwise. */
const struct tare_gemm_finish *tare_take_finish(struct tare_gemm_finish *out, struct tare_kernel *kernel);

#endif
