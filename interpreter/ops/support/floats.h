/* half and bfloat16 tensors computed in float: elements are converted exactly on input and rounded once
 * (bfloat16-rtne, half-rtne) on output. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_FLOATS_H
#define TARE_INTERPRETER_OPS_SUPPORT_FLOATS_H

#include "interpreter/kernel.h"

/* float, half or bfloat16 */
static inline bool tare_floats_dtype(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16;
}
/* The elements as floats: the tensor's own, or a converted copy in scratch. NULL: no memory. */
const float *tare_floats_in(struct tare_kernel *kernel, const struct tare_tensor *tensor);
/* Where to write output i, already created: its own memory for float, otherwise scratch. NULL: out of memory. */
float *tare_floats_out(struct tare_kernel *kernel, size_t i);
/* Rounds what was written to tare_floats_out into output i; nothing to do for float. */
void tare_floats_round(struct tare_kernel *kernel, size_t i, const float *values);

/* `count` elements of `dtype` (float, half, bfloat16, double, integers) to floats, and floats to float, half, bfloat16.
 */
void tare_floats_from(float *to, int dtype, const void *from, int64_t count);
void tare_floats_to(void *to, int dtype, const float *from, int64_t count);
/* The number of elements of start, start + delta, … before limit, each operation rounded to the dtype (RangeOp
 * in TensorFlow's sequence_ops.cc). The caller checks the signs, and that the number fits. */
double tare_floats_range(int dtype, double start, double limit, double delta);
/* Element i of such a range. */
double tare_floats_step(int dtype, double start, double delta, int64_t i);

#endif
