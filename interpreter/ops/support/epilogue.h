/* Applying a fused epilogue (struct tare_epilogue) in a kernel's own pass. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_EPILOGUE_H
#define TARE_INTERPRETER_OPS_SUPPORT_EPILOGUE_H

#include "interpreter/kernels/gemm.h"
#include "interpreter/kernel.h"

/* If the kernel has an epilogue that fits output 0 (already allocated), fills `out`, marks it as applied and returns
 * `out`: output float32, bias with as many elements as the last dimension, addend of the output's shape. Else NULL. */
const struct tare_gemm_epilogue *tare_take_epilogue(struct tare_gemm_epilogue *out, struct tare_kernel *kernel);

#endif
