/* Float convolutions whose result a consumer takes (tare_kernel.consumer), some output lines at a time. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_FLOAT_ROWS_H
#define TARE_INTERPRETER_OPS_SUPPORT_FLOAT_ROWS_H

#include "interpreter/kernel.h"
#include "interpreter/kernels/conv.h"

/* Computes the convolution in blocks that fit in the second-level cache and passes them to kernel->consumer. `weights`:
 * packed, or the filter of a depthwise convolution. TARE_NO_MEMORY. */
tare_status tare_float_rows_conv(struct tare_kernel *kernel, const struct tare_conv *conv, const float *input,
                                 const float *weights);

#endif
