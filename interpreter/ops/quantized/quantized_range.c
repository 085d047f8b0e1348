/* Conversions of TensorFlow 1's quantized numbers (quantized_range.h; rule span-quantized in docs/numerics.md). */
#include "interpreter/ops/quantized/quantized_range.h"

#include "interpreter/ops/quantized/channels.h"

#include <math.h>

static double steps_of(int dtype) {
    return ldexp(1.0, (int)tare_dtype_size(dtype) * 8);
}

/* ---- one value ---- */

/* Rounds to the nearest integer; defined for any double. */
static int64_t whole(double x) {
    x = round(x);
    if (!(x > -0x1p62)) return -((int64_t)1 << 62); /* also NaN */
    return x > 0x1p62 ? (int64_t)1 << 62 : (int64_t)x;
}

/* The range that 2^bits steps of the span's size cover: one step more than max - min. */
static double extent(const struct tare_span *span) {
    const double steps = steps_of(span->dtype);
    return (double)(span->max - span->min) * (steps / (steps - 1.0));
}

int64_t tare_span_steps(const struct tare_span *span, float x) {
    int64_t lowest, highest;
    tare_quantized_limits(span->dtype, &lowest, &highest);
    if (span->min == span->max) return lowest;
    const double scale = steps_of(span->dtype) / extent(span);
    return whole((double)x * scale) - whole((double)span->min * scale) + lowest;
}

int32_t tare_span_quantize(const struct tare_span *span, float x) {
    int64_t lowest, highest, steps = tare_span_steps(span, x);
    tare_quantized_limits(span->dtype, &lowest, &highest);
    if (steps < lowest) steps = lowest;
    return (int32_t)(steps > highest ? highest : steps);
}

float tare_span_real(const struct tare_span *span, int32_t value) {
    int64_t lowest, highest;
    tare_quantized_limits(span->dtype, &lowest, &highest);
    if (span->min == span->max) return span->min;
    const double scale = extent(span) / steps_of(span->dtype);
    const float narrow = (float)scale;
    const double base = round((double)(span->min / narrow)) * (double)narrow;
    return (float)(base + ((double)value - (double)lowest) * scale);
}

static float step_of(const struct tare_span *span) {
    int64_t lowest, highest;
    tare_quantized_limits(span->dtype, &lowest, &highest);
    return (span->max - span->min) / (float)(highest - lowest);
}

struct tare_span tare_span_of_products(const struct tare_span *a, const struct tare_span *b, int dtype) {
    int64_t lowest, highest;
    const float step = step_of(a) * step_of(b);
    tare_quantized_limits(dtype, &lowest, &highest);
    return (struct tare_span){ dtype, step * (float)lowest, step * (float)highest };
}

/* ---- arrays ---- */

struct tare_span_reader tare_span_reader(const struct tare_span *span) {
    int64_t lowest, highest;
    struct tare_span_reader reader;
    tare_quantized_limits(span->dtype, &lowest, &highest);
    reader.scale = (float)((double)(span->max - span->min) / (steps_of(span->dtype) - 1.0));
    const float base = span->max == span->min ? span->min : roundf(span->min / reader.scale) * reader.scale;
    reader.base = base - (float)lowest * reader.scale;
    return reader;
}

struct tare_span_writer tare_span_writer(const struct tare_span *span) {
    int64_t lowest, highest;
    struct tare_span_writer writer = { 0 };
    tare_quantized_limits(span->dtype, &lowest, &highest);
    if (span->max != span->min) writer.scale = (float)((steps_of(span->dtype) - 1.0) / (double)(span->max - span->min));
    writer.shift = roundf(span->min * writer.scale) - (float)lowest;
    writer.low = (float)lowest;
    writer.high = span->dtype == TARE_DT_QINT32 ? 2147483520.0f : (float)highest; /* the largest float below 2^31 */
    return writer;
}

int32_t tare_span_write(const struct tare_span_writer *writer, float value) {
    const float steps = roundf(value * writer->scale) - writer->shift;
    if (!(steps > writer->low)) return (int32_t)writer->low;
    return (int32_t)(steps < writer->high ? steps : writer->high);
}

/* Fixed point with 16 fraction bits; the input integers are 32-bit fractions of its range. */
struct fixed_point {
    int64_t scale, shift;
};

static int64_t cut(double x) {
    if (!(fabs(x) < 0x1p62)) return x > 0 ? (int64_t)1 << 62 : -((int64_t)1 << 62);
    return (int64_t)x;
}

static struct fixed_point fixed_point_of(const struct tare_span *to, const struct tare_span *from) {
    const float range = from->max - from->min, expected = to->max - to->min;
    const float centre = (float)((double)(from->min + from->max) / 2.0);
    const float inverse = expected == 0 ? 0.0f : (float)(255.0 / (double)expected);
    struct fixed_point fixed = { .shift = 1 << 15 }; /* rounding */
    if (expected != 0) {
        fixed.scale = cut(255.0 * 65536 * (double)range / (double)expected);
        fixed.shift -= cut(65536 * ((double)to->min * 255.0) / (double)expected);
    }
    fixed.shift += cut((double)(centre * inverse * 65536.0f));
    return fixed;
}

static int32_t in_fixed_point(const struct fixed_point *fixed, int32_t value) {
    const __int128 scaled = ((__int128)value * fixed->scale) >> 32;
    const __int128 steps = (scaled + fixed->shift) >> 16;
    return steps < 0 ? 0 : steps > 255 ? 255 : (int32_t)steps;
}

void tare_span_requantize(struct tare_tensor *to, int64_t to_first, const struct tare_span *to_span,
                          const struct tare_tensor *from, int64_t from_first, const struct tare_span *from_span,
                          int64_t count) {
    if (from->dtype == TARE_DT_QINT32 && to->dtype == TARE_DT_QUINT8) {
        const struct fixed_point fixed = fixed_point_of(to_span, from_span);
        for (int64_t i = 0; i < count; i++)
            tare_quantized_set(to, to_first + i, in_fixed_point(&fixed, tare_quantized_get(from, from_first + i)));
        return;
    }
    const struct tare_span_reader reader = tare_span_reader(from_span);
    const struct tare_span_writer writer = tare_span_writer(to_span);
    for (int64_t i = 0; i < count; i++) {
        const float real = reader.base + (float)tare_quantized_get(from, from_first + i) * reader.scale;
        tare_quantized_set(to, to_first + i, tare_span_write(&writer, real));
    }
}

/* ---- operands ---- */

tare_status tare_span_operand(struct tare_span *span, const struct tare_kernel *kernel, size_t first, int dtype) {
    for (size_t i = first; i < first + 2; i++) {
        const struct tare_tensor *end = &kernel->inputs[i];
        if (end->elements != 1)
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected 1)", kernel->node->def->inputs[i].name,
                             (long long)end->elements);
    }
    *span = (struct tare_span){ dtype, TARE_CONST_DATA(float, &kernel->inputs[first])[0],
                                TARE_CONST_DATA(float, &kernel->inputs[first + 1])[0] };
    if (isfinite(span->min) && isfinite(span->max)) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "the range of %s is %g to %g", kernel->node->def->inputs[first].name,
                     (double)span->min, (double)span->max);
}

tare_status tare_span_proper(struct tare_span *span, const struct tare_kernel *kernel, size_t first, int dtype) {
    const struct tare_op_arg *args = kernel->node->def->inputs;
    TARE_TRY(tare_span_operand(span, kernel, first, dtype));
    if (span->max > span->min) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be larger than %s (got %g and %g)", args[first + 1].name,
                     args[first].name, (double)span->max, (double)span->min);
}

tare_status tare_span_outputs(struct tare_kernel *kernel, size_t first, const struct tare_span *span) {
    const struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, first, TARE_DT_FLOAT, &scalar));
    TARE_TRY(tare_kernel_output(kernel, first + 1, TARE_DT_FLOAT, &scalar));
    TARE_DATA(float, &kernel->outputs[first])[0] = span->min;
    TARE_DATA(float, &kernel->outputs[first + 1])[0] = span->max;
    return TARE_OK;
}

tare_status tare_span_dtypes(const struct tare_kernel *kernel, size_t n_inputs) {
    for (size_t i = 0; i < n_inputs; i++)
        if (tare_dtype_get(kernel->inputs[i].dtype)->class != TARE_CLASS_QUANTIZED)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s is %s (expected quantized integers)",
                             kernel->node->def->inputs[i].name, tare_dtype_name(kernel->inputs[i].dtype));
    return TARE_OK;
}

tare_status tare_span_infer(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = i ? tare_shape_scalar() : infer->inputs[0];
    return TARE_OK;
}
