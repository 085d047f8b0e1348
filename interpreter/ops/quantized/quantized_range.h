/* TensorFlow 1's quantized numbers: the integers of a tensor span [min, max], both ends included, and zero is not
 * necessarily a step. There are two conversions, single values in double and whole arrays in float, which round
 * differently; each op uses the one that TensorFlow's kernel uses. */
#ifndef TARE_INTERPRETER_OPS_QUANTIZED_QUANTIZED_RANGE_H
#define TARE_INTERPRETER_OPS_QUANTIZED_QUANTIZED_RANGE_H

#include "interpreter/kernel.h"

struct tare_span {
    int dtype; /* qint8, quint8, qint16, quint16, qint32 */
    float min, max;
};

/* ---- one value, in double ---- */

/* Converts `x` to steps without clamping to the dtype; the lowest step if the range is empty. */
int64_t tare_span_steps(const struct tare_span *span, float x);
/* The same, clamped to the dtype. */
int32_t tare_span_quantize(const struct tare_span *span, float x);
float tare_span_real(const struct tare_span *span, int32_t value);
/* The range of products of two spans' integers, zero points subtracted, as integers of `dtype`. */
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
/* Converts `count` integers from one span to another; qint32 to quint8 in fixed point. */
void tare_span_requantize(struct tare_tensor *to, int64_t to_first, const struct tare_span *to_span,
                          const struct tare_tensor *from, int64_t from_first, const struct tare_span *from_span,
                          int64_t count);

/* ---- operands ---- */

/* Reads a span of integers of `dtype`: input `first` is the minimum and the next one the maximum; scalars (or one
 * element), finite. */
tare_status tare_span_operand(struct tare_span *span, const struct tare_kernel *kernel, size_t first, int dtype);
/* The same, but returns TARE_INVALID_ARGUMENT unless max > min. */
tare_status tare_span_proper(struct tare_span *span, const struct tare_kernel *kernel, size_t first, int dtype);
/* Writes the ends of the span as scalars to outputs `first` and first + 1. */
tare_status tare_span_outputs(struct tare_kernel *kernel, size_t first, const struct tare_span *span);
/* TARE_UNSUPPORTED unless the dtypes are integers of at most 32 bits. */
tare_status tare_span_dtypes(const struct tare_kernel *kernel, size_t n_inputs);

/* Shapes of an op whose output 0 has the shape of input 0 and is followed by its range, two scalars. */
tare_status tare_span_infer(struct tare_infer *infer);

#define TARE_SPAN_DTYPES "{qint8, quint8, qint32, qint16, quint16}"
#define TARE_SPAN_OP(op, in, out, spec, shapes, kernel)                                                                \
    { .name = op, .inputs = in, .outputs = out, .attrs = spec, .infer = shapes, .run = kernel }

#endif
