/* TensorFlow 1's quantized numbers: a tensor's integers span [min, max], both ends included, and zero need not be a
 * step. Two ways of converting: one value at a time in double, and whole arrays in float; they round differently, and
 * each op is bound to one of them. */
#ifndef TARE_INTERPRETER_OPS_QUANTIZED_QUANTIZED_RANGE_H
#define TARE_INTERPRETER_OPS_QUANTIZED_QUANTIZED_RANGE_H

#include "interpreter/kernel.h"

struct tare_span {
    int dtype; /* qint8, quint8, qint16, quint16, qint32 */
    float min, max;
};

/* ---- one value, in double ---- */

/* What `x` is in steps, not held to the dtype's limits; the lowest step when the range is empty. */
int64_t tare_span_steps(const struct tare_span *span, float x);
/* The same within the limits. */
int32_t tare_span_quantize(const struct tare_span *span, float x);
float tare_span_real(const struct tare_span *span, int32_t value);
/* The range of products of two spans' integers, zero points taken off, as integers of `dtype`. */
struct tare_span tare_span_of_products(const struct tare_span *a, const struct tare_span *b, int dtype);

/* ---- arrays, in float ---- */

struct tare_span_reader {
    float scale, base; /* value = base + q * scale */
};
struct tare_span_writer {
    float scale, shift, low, high; /* q = clamp(round(value * scale) - shift) */
};
struct tare_span_reader tare_span_reader(const struct tare_span *span);
struct tare_span_writer tare_span_writer(const struct tare_span *span);
int32_t tare_span_write(const struct tare_span_writer *writer, float value);
/* `count` integers from one span to another; qint32 to quint8 in fixed point. */
void tare_span_requantize(struct tare_tensor *to, int64_t to_first, const struct tare_span *to_span,
                          const struct tare_tensor *from, int64_t from_first, const struct tare_span *from_span,
                          int64_t count);

/* ---- operands ---- */

/* Input `first` is the minimum and the next one the maximum of integers of `dtype`: scalars (or one element), finite.
 */
tare_status tare_span_operand(struct tare_span *span, const struct tare_kernel *kernel, size_t first, int dtype);
/* As tare_span_operand; TARE_INVALID_ARGUMENT unless max > min. */
tare_status tare_span_proper(struct tare_span *span, const struct tare_kernel *kernel, size_t first, int dtype);
/* Outputs `first` and the next one: the ends as scalars. */
tare_status tare_span_outputs(struct tare_kernel *kernel, size_t first, const struct tare_span *span);
/* TARE_UNSUPPORTED unless the dtypes are integers of at most 32 bits. */
tare_status tare_span_dtypes(const struct tare_kernel *kernel, size_t n_inputs);

#endif
