/* TensorFlow 1's ops that convert quantized tensors to another range, and find the range of the values that occur: with
 * one range, or one for each channel (interpreter/ops/quantized/quantized_range.h). */
#include "interpreter/ops/families.h"
#include "interpreter/ops/quantized/quantized_range.h"
#include "interpreter/ops/quantized/channels.h"
#include "interpreter/ops/support/operand.h"

#include <float.h>
#include <math.h>

/* The range of the values that occur, with its lower end at 0 or below. */
static struct tare_span used_span(const struct tare_tensor *input, const struct tare_span *span) {
    int64_t lowest, highest;
    tare_quantized_limits(input->dtype, &lowest, &highest);
    int32_t least = (int32_t)highest, most = (int32_t)lowest;
    for (int64_t i = 0; i < input->elements; i++) {
        const int32_t value = tare_quantized_get(input, i);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    const float min = tare_span_real(span, least);
    return (struct tare_span){ TARE_DT_QUINT8, min < 0 ? min : 0, tare_span_real(span, most) };
}

static tare_status run_used_range(struct tare_kernel *kernel) {
    struct tare_span span;
    TARE_TRY(tare_span_operand(&span, kernel, 1, kernel->inputs[0].dtype));
    const struct tare_span used = used_span(&kernel->inputs[0], &span);
    return tare_span_outputs(kernel, 0, &used);
}

static tare_status to_span(struct tare_kernel *kernel, const struct tare_span *from, struct tare_span *expected) {
    const struct tare_tensor *input = &kernel->inputs[0];
    expected->dtype = tare_dtype_base(kernel->node->output_dtypes[0]);
    TARE_TRY(tare_kernel_output(kernel, 0, expected->dtype, &input->shape));
    TARE_TRY(tare_span_outputs(kernel, 1, expected));
    tare_span_requantize(&kernel->outputs[0], 0, expected, input, 0, from, input->elements);
    return TARE_OK;
}

static tare_status run_requantize(struct tare_kernel *kernel) {
    struct tare_span span, expected;
    TARE_TRY(tare_span_operand(&span, kernel, 1, kernel->inputs[0].dtype));
    TARE_TRY(tare_span_operand(&expected, kernel, 3, kernel->inputs[0].dtype));
    if (expected.min > 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "requested_output_min must be <= 0, but got %g", (double)expected.min);
    if (expected.max < expected.min)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "requested_output_max must be >= requested_output_min, but got %g and %g",
                         (double)expected.max, (double)expected.min);
    return to_span(kernel, &span, &expected);
}

static tare_status run_shrink(struct tare_kernel *kernel) {
    struct tare_span span;
    TARE_TRY(tare_span_operand(&span, kernel, 1, kernel->inputs[0].dtype));
    struct tare_span used = used_span(&kernel->inputs[0], &span);
    return to_span(kernel, &span, &used);
}

/* ---- per-channel ranges along the last axis; 32-bit integers represent value / 2^31 of the larger end ---- */

struct ends {
    int64_t depth;
    const float *min, *max;
};

static tare_status read_ends(struct ends *ends, const struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    if (input->dtype != TARE_DT_QINT32)
        return TARE_FAIL(TARE_UNSUPPORTED, "input is %s (expected qint32)", tare_dtype_name(input->dtype));
    if (input->shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "input is a scalar");
    ends->depth = input->shape.dims[input->shape.rank - 1];
    for (size_t i = 1; i < 3; i++)
        if (kernel->inputs[i].elements != ends->depth)
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %lld)", i == 1 ? "input_min" : "input_max",
                             (long long)kernel->inputs[i].elements, (long long)ends->depth);
    ends->min = kernel->inputs[1].data;
    ends->max = kernel->inputs[2].data;
    return TARE_OK;
}

static float larger_end(const struct ends *ends, int64_t c) {
    return fmaxf(fabsf(ends->min[c]), fabsf(ends->max[c]));
}

static tare_status run_used_range_channels(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_span used = { .max = FLT_MIN };
    struct ends ends;
    bool negative = false;
    TARE_TRY(read_ends(&ends, kernel));
    for (int64_t c = 0; c < ends.depth; c++) {
        int64_t least = 0, most = 0;
        for (int64_t i = c; i < input->elements; i += ends.depth) {
            const int32_t value = TARE_CONST_DATA(int32_t, input)[i];
            least = i == c || value < least ? value : least;
            most = i == c || value > most ? value : most;
        }
        negative = negative || least < 0;
        const int64_t largest = -least > most ? -least : most;
        used.max = fmaxf(used.max, larger_end(&ends, c) * (float)largest / 0x1p31f);
    }
    used.max = fminf(used.max, tare_node_float(kernel->node, "clip_value_max", 0));
    used.min = negative ? -used.max : 0;
    return tare_span_outputs(kernel, 0, &used);
}

static tare_status run_requantize_channels(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const int dtype = tare_dtype_base(kernel->node->output_dtypes[0]);
    struct tare_span expected;
    struct ends ends;
    int64_t lowest, highest;
    TARE_TRY(read_ends(&ends, kernel));
    TARE_TRY(tare_span_operand(&expected, kernel, 3, dtype));
    if (dtype != TARE_DT_QINT8 && dtype != TARE_DT_QUINT8)
        return TARE_FAIL(TARE_UNSUPPORTED, "out_type is %s (expected qint8 or quint8)", tare_dtype_name(dtype));
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &input->shape));
    TARE_TRY(tare_span_outputs(kernel, 1, &expected));
    tare_quantized_limits(dtype, &lowest, &highest);
    const float most = fmaxf(fabsf(expected.min), fabsf(expected.max));
    for (int64_t i = 0; i < input->elements; i++) {
        const float scale = (float)highest * (larger_end(&ends, i % ends.depth) / most / 0x1p31f);
        const float steps = rintf((float)TARE_CONST_DATA(int32_t, input)[i] * scale);
        const bool is_low = !(steps > (float)lowest);
        tare_quantized_set(&kernel->outputs[0], i,
                           (int32_t)(is_low                   ? lowest
                                     : steps < (float)highest ? (int64_t)steps
                                                              : highest));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_requantization[] = {
    TARE_SPAN_OP("RequantizationRange", "input: Tinput, input_min: float, input_max: float",
                 "output_min: float, output_max: float", "Tinput: " TARE_SPAN_DTYPES, tare_infer_scalar,
                 run_used_range),
    TARE_SPAN_OP("RequantizationRangePerChannel", "input: T, input_min: float, input_max: float",
                 "output_min: float, output_max: float", "T: " TARE_SPAN_DTYPES " = DT_QINT32; clip_value_max: float",
                 tare_infer_scalar, run_used_range_channels),
    TARE_SPAN_OP(
        "Requantize",
        "input: Tinput, input_min: float, input_max: float, requested_output_min: float, requested_output_max: float",
        "output: out_type, output_min: float, output_max: float",
        "Tinput: " TARE_SPAN_DTYPES "; out_type: " TARE_SPAN_DTYPES, tare_span_infer, run_requantize),
    TARE_SPAN_OP(
        "RequantizePerChannel",
        "input: T, input_min: float, input_max: float, requested_output_min: float, requested_output_max: float",
        "output: out_type, output_min: float, output_max: float",
        "T: " TARE_SPAN_DTYPES " = DT_QINT32; out_type: " TARE_SPAN_DTYPES " = DT_QUINT8", tare_span_infer,
        run_requantize_channels),
    TARE_SPAN_OP("QuantizeDownAndShrinkRange", "input: Tinput, input_min: float, input_max: float",
                 "output: out_type, output_min: float, output_max: float",
                 "Tinput: " TARE_SPAN_DTYPES "; out_type: " TARE_SPAN_DTYPES, tare_span_infer, run_shrink),
    { 0 },
};
