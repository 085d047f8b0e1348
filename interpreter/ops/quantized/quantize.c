/* TensorFlow's quantization ops: fake quantization with nudged ranges, QuantizeV2 and Dequantize in their modes, and
 * QuantizeAndDequantize. Arithmetic is in float with the same steps as in TensorFlow. */
#include "interpreter/ops/quantized/channels.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"

#include "base/tensor/number.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- fake quantization ---- */

/* Rule fake-quant-nudge: the range is shifted so that zero is one of the steps. */
struct nudged {
    float low, high, scale, inverse, zero; /* zero: the step that represents 0.0 */
    bool empty;                            /* the range 0 … 0: all outputs are 0 */
};

static struct nudged nudge(float low, float high, int64_t bits, bool narrow) {
    const float first = narrow ? 1.0f : 0.0f, last = (float)(((int64_t)1 << bits) - 1);
    struct nudged range = { .empty = low == 0 && high == 0 };
    range.scale = (high - low) / (last - first);
    const float from_low = first - low / range.scale;
    const float zero_point = from_low < first ? first : from_low > last ? last : roundf(from_low);
    range.low = (first - zero_point) * range.scale;
    range.high = (last - zero_point) * range.scale;
    range.inverse = 1.0f / range.scale;
    range.zero = floorf(-range.low * range.inverse + 0.5f);
    return range;
}

static float fake_quantize(float x, const struct nudged *range) {
    if (range->empty) return 0;
    float clamped = x < range->high ? x : range->high;
    clamped = clamped > range->low ? clamped : range->low;
    return floorf((clamped - range->low) * range->inverse - range->zero + 0.5f) * range->scale;
}

static tare_status fake_bits(int64_t *bits, bool *narrow, const struct tare_node *node) {
    *bits = tare_node_int(node, "num_bits", 8);
    *narrow = tare_node_bool(node, "narrow_range", false);
    if (*bits < 2 || *bits > 16)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_bits is %lld (expected 2 to 16)", (long long)*bits);
    return TARE_OK;
}

static tare_status run_fake_args(struct tare_kernel *kernel) {
    int64_t bits;
    bool narrow;
    const float low = tare_node_float(kernel->node, "min", -6), high = tare_node_float(kernel->node, "max", 6);
    TARE_TRY(fake_bits(&bits, &narrow, kernel->node));
    if (!(low < high)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "min is %g, max %g", (double)low, (double)high);
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    const struct nudged range = nudge(low, high, bits, narrow);
    const float *x = kernel->inputs[0].data;
    float *y = kernel->outputs[0].data;
    for (int64_t i = 0; i < kernel->inputs[0].elements; i++)
        y[i] = fake_quantize(x[i], &range);
    return TARE_OK;
}

/* min and max are scalars, or have one entry per position of the last axis. */
static tare_status run_fake_vars(struct tare_kernel *kernel, bool per_channel) {
    const struct tare_tensor *inputs = kernel->inputs;
    struct tare_channels channels;
    int64_t bits;
    bool narrow;
    TARE_TRY(fake_bits(&bits, &narrow, kernel->node));
    if (per_channel && inputs[0].shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "inputs is a scalar");
    TARE_TRY(tare_channels_of(&channels, &inputs[0].shape, per_channel ? inputs[0].shape.rank - 1 : -1));
    for (int i = 1; i < 3; i++) {
        if (inputs[i].elements != channels.count)
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %lld)", i == 1 ? "min" : "max",
                             (long long)inputs[i].elements, (long long)channels.count);
    }
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    const float *x = inputs[0].data, *low = inputs[1].data, *high = inputs[2].data;
    float *y = kernel->outputs[0].data;
    struct nudged *ranges = TARE_NEW_ARRAY(kernel->scratch, struct nudged, (size_t)channels.count);
    if (!ranges) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < channels.count; c++)
        ranges[c] = nudge(low[c], high[c], bits, narrow);
    for (int64_t i = 0; i < inputs[0].elements; i++)
        y[i] = fake_quantize(x[i], &ranges[tare_channels_at(&channels, i)]);
    return TARE_OK;
}

static tare_status run_fake_vars_tensor(struct tare_kernel *kernel) {
    return run_fake_vars(kernel, false);
}
static tare_status run_fake_vars_channels(struct tare_kernel *kernel) {
    return run_fake_vars(kernel, true);
}

/* ---- QuantizeV2 and Dequantize ---- */

enum mode { MIN_COMBINED, MIN_FIRST, SCALED };

static tare_status mode_of(enum mode *mode, const struct tare_node *node) {
    static const char *const names[] = { "MIN_COMBINED", "MIN_FIRST", "SCALED" };
    const char *name = tare_node_string(node, "mode", "MIN_COMBINED");
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *mode = (enum mode)i;
        return TARE_OK;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "mode '%s'", name);
}

/* The parameters of one channel. */
struct quantizer {
    enum mode mode;
    bool half_even, is_signed, narrow;
    int64_t lowest, highest; /* of the dtype */
    float low, high;         /* range */
    float scale;             /* steps per unit */
    float half_range;
    float low_steps; /* MIN_FIRST: the low end of the range in steps */
};

static float clamp_float(float x, float low, float high) {
    x = x < high ? x : high;
    return x > low ? x : low;
}

static void set_quantizer(struct quantizer *q, float low, float high, float least_range) {
    const float steps = (float)((double)q->highest - (double)q->lowest);
    q->low = low < 0 ? low : 0;
    const float widest = fmaxf(1.0f, fmaxf(fabsf(low), fabsf(high))) * least_range;
    q->high = fmaxf(0, fmaxf(high, q->low + widest));
    q->half_range = q->is_signed ? ((float)q->highest - (float)q->lowest + 1) / 2.0f : 0;
    if (q->mode == MIN_COMBINED) {
        q->scale = (float)((double)steps / (double)(q->high - q->low));
    } else if (q->mode == SCALED) {
        const float first = (float)(q->lowest + (q->narrow && q->is_signed ? 1 : 0)), last = (float)q->highest;
        const float from_low = first * q->low > 0 ? first / q->low : FLT_MAX;
        const float from_high = last * q->high > 0 ? last / q->high : FLT_MAX;
        q->scale = from_low < from_high ? from_low : from_high;
        q->low = first / q->scale;
        q->high = last / q->scale;
    } else {
        const double count = (double)q->highest - (double)q->lowest + 1;
        const double range = ((double)q->high - (double)q->low) * (count / (count - 1.0));
        q->scale = (float)(q->high == q->low ? 0 : count / range);
        q->low_steps = roundf(q->low * q->scale);
    }
}

static int32_t quantize(float x, const struct quantizer *q) {
    float steps;
    if (q->mode == MIN_FIRST) {
        steps = roundf(x * q->scale) - q->low_steps + (float)q->lowest;
    } else {
        x = clamp_float(x, q->low, q->high);
        if (q->mode == SCALED)
            steps = q->half_even ? tare_round_half_even_f(x * q->scale) : roundf(x * q->scale);
        else if (q->is_signed)
            steps = roundf((x - q->low) * q->scale - q->half_range);
        else
            steps = truncf((x - q->low) * q->scale + 0.5f);
    }
    if (!(steps > (float)q->lowest)) return (int32_t)q->lowest;
    return steps >= (float)q->highest ? (int32_t)q->highest : (int32_t)steps;
}

static tare_status check_ranges(const struct tare_kernel *kernel, const struct tare_channels *channels) {
    for (int i = 1; i < 3; i++) {
        if (kernel->inputs[i].elements != channels->count)
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %lld)", i == 1 ? "min_range" : "max_range",
                             (long long)kernel->inputs[i].elements, (long long)channels->count);
    }
    return TARE_OK;
}

static tare_status range_outputs(struct tare_kernel *kernel, const struct tare_channels *channels, int64_t axis) {
    const struct tare_shape shape =
        axis < 0 ? tare_shape_scalar() : (struct tare_shape){ .rank = 1, .dims = { channels->count } };
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_FLOAT, &shape));
    return tare_kernel_output(kernel, 2, TARE_DT_FLOAT, &shape);
}

static tare_status run_quantize(struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    const struct tare_tensor *input = &kernel->inputs[0];
    const int64_t axis = tare_node_int(node, "axis", -1);
    const int dtype = tare_node_type(node, "T", TARE_DT_QUINT8);
    const float *lows = kernel->inputs[1].data, *highs = kernel->inputs[2].data;
    const float least = tare_node_float(node, "ensure_minimum_range", 0.01f);
    struct quantizer quantizer = { .narrow = tare_node_bool(node, "narrow_range", false) };
    struct tare_channels channels;
    TARE_TRY(mode_of(&quantizer.mode, node));
    quantizer.half_even = strcmp(tare_node_string(node, "round_mode", ""), "HALF_TO_EVEN") == 0;
    tare_quantized_limits(dtype, &quantizer.lowest, &quantizer.highest);
    quantizer.is_signed = quantizer.lowest < 0;
    TARE_TRY(tare_channels_of(&channels, &input->shape, axis));
    TARE_TRY(check_ranges(kernel, &channels));
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &input->shape));
    TARE_TRY(range_outputs(kernel, &channels, axis));
    for (int64_t c = 0; c < channels.count; c++) {
        if (highs[c] < lows[c])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "max_range %g is below min_range %g", (double)highs[c],
                             (double)lows[c]);
        set_quantizer(&quantizer, lows[c], highs[c], least);
        TARE_DATA(float, &kernel->outputs[1])[c] = quantizer.low;
        TARE_DATA(float, &kernel->outputs[2])[c] = quantizer.high;
        for (int64_t o = 0; o < channels.outer; o++) {
            const int64_t first = (o * channels.count + c) * channels.inner;
            for (int64_t i = first; i < first + channels.inner; i++)
                tare_quantized_set(&kernel->outputs[0], i, quantize(TARE_CONST_DATA(float, input)[i], &quantizer));
        }
    }
    return TARE_OK;
}

/* value = (q + shift) * scale + base */
struct dequantizer {
    float shift, scale, base;
};

static struct dequantizer set_dequantizer(enum mode mode, int dtype, bool narrow, float low, float high) {
    int64_t lowest, highest;
    tare_quantized_limits(dtype, &lowest, &highest);
    struct dequantizer d = { 0 };
    if (mode == SCALED) {
        const float from_high = high / (float)highest;
        d.scale = lowest == 0 ? from_high : fmaxf(low / (float)(lowest + (narrow ? 1 : 0)), from_high);
        return d;
    }
    d.scale = (high - low) / ((float)highest - (float)lowest);
    d.shift = lowest == 0 ? 0 : ((float)highest - (float)lowest + 1) / 2.0f;
    d.base = low;
    if (mode == MIN_FIRST) {
        d.scale = (float)(((double)high - (double)low) / ((double)highest - (double)lowest));
        d.shift = -(float)lowest;
        d.base = high == low ? low : roundf(low / d.scale) * d.scale;
    }
    return d;
}

static tare_status run_dequantize(struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    const struct tare_tensor *input = &kernel->inputs[0];
    const float *lows = kernel->inputs[1].data, *highs = kernel->inputs[2].data;
    const bool narrow = tare_node_bool(node, "narrow_range", false);
    struct tare_channels channels;
    enum mode mode;
    TARE_TRY(mode_of(&mode, node));
    TARE_TRY(tare_channels_of(&channels, &input->shape, tare_node_int(node, "axis", -1)));
    TARE_TRY(check_ranges(kernel, &channels));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(node, "dtype", TARE_DT_FLOAT), &input->shape));
    if (input->elements == 0) return TARE_OK;
    struct dequantizer *rows = TARE_NEW_ARRAY(kernel->scratch, struct dequantizer, (size_t)channels.count);
    float *y = tare_floats_out(kernel, 0);
    if (!rows || !y) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < channels.count; c++)
        rows[c] = set_dequantizer(mode, input->dtype, narrow, lows[c], highs[c]);
    for (int64_t i = 0; i < input->elements; i++) {
        const struct dequantizer *d = &rows[tare_channels_at(&channels, i)];
        y[i] = ((float)tare_quantized_get(input, i) + d->shift) * d->scale + d->base;
    }
    tare_floats_round(kernel, 0, y);
    return TARE_OK;
}

static tare_status infer_quantize(struct tare_infer *infer) {
    const int64_t axis = tare_node_int(infer->node, "axis", -1);
    const struct tare_shape *input = &infer->inputs[0];
    infer->outputs[0] = *input;
    for (size_t i = 1; i < infer->n_outputs; i++) {
        if (axis < 0)
            infer->outputs[i] = tare_shape_scalar();
        else if (input->rank > axis)
            infer->outputs[i] = (struct tare_shape){ .rank = 1, .dims = { input->dims[axis] } };
    }
    return TARE_OK;
}

/* ---- quantize and dequantize ---- */

struct round_trip {
    bool is_signed, narrow, range_given, half_up;
    int64_t bits;
};

struct round_trip_range {
    double low, high, scale, inverse;
};

/* Rounds an intermediate result to T's precision: double if `is_double`, otherwise float. */
static double in_type(double x, bool is_double) {
    return is_double ? x : (double)(float)x;
}

static struct round_trip_range round_trip_range(const struct round_trip *how, double low, double high, bool is_double) {
    const double half = (double)((int64_t)1 << (how->bits - 1));
    const double first = !how->is_signed ? 0 : how->narrow ? 1 - half : -half;
    const double last = how->is_signed ? half - 1 : 2 * half - 1, most = is_double ? DBL_MAX : (double)FLT_MAX;
    struct round_trip_range range = { .low = low, .high = high };
    const double from_low = first * low > 0 ? in_type(first / low, is_double) : most;
    const double from_high = last * high > 0 ? in_type(last / high, is_double) : most;
    if (from_low < from_high) {
        range.scale = from_low;
        range.inverse = in_type(low / first, is_double);
        range.high = in_type(last * range.inverse, is_double);
    } else {
        range.scale = from_high;
        range.inverse = in_type(high / last, is_double);
        range.low = in_type(first * range.inverse, is_double);
    }
    return range;
}

static double round_trip(double x, const struct round_trip *how, const struct round_trip_range *range, bool is_double) {
    if (how->range_given) {
        x = x < range->high ? x : range->high;
        x = x > range->low ? x : range->low;
    }
    const double steps = in_type(x * range->scale, is_double);
    const double rounded = how->half_up ? floor(in_type(steps + 0.5, is_double)) : tare_round_half_even(steps);
    return in_type(rounded * range->inverse, is_double);
}

static tare_status round_trip_attrs(struct round_trip *how, const struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    *how = (struct round_trip){
        .is_signed = tare_node_bool(node, "signed_input", true),
        .narrow = tare_node_bool(node, "narrow_range", false),
        .range_given = tare_node_bool(node, "range_given", false),
        .half_up = strcmp(tare_node_string(node, "round_mode", "HALF_TO_EVEN"), "HALF_UP") == 0,
        .bits = tare_node_int(node, "num_bits", 8),
    };
    if (kernel->n_inputs > 3) {
        if (kernel->inputs[3].elements != 1) return TARE_FAIL(TARE_SHAPE, "num_bits is not a scalar");
        how->bits = tare_tensor_get_i64(&kernel->inputs[3], 0);
    }
    if (how->bits < 1 || how->bits > (how->is_signed ? 62 : 61))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_bits is %lld", (long long)how->bits);
    return TARE_OK;
}

/* Measures the channel's range if none is given. */
static void measure(const struct tare_tensor *input, const struct tare_channels *channels, int64_t channel, double *low,
                    double *high) {
    const int64_t inner = channels->inner;
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t o = 0; o < channels->outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            const double x = tare_tensor_get_f64(input, (o * channels->count + channel) * inner + i);
            if (x < *low) *low = x;
            if (x > *high) *high = x;
        }
    }
}

static void set_real(struct tare_tensor *tensor, int64_t i, double value) {
    const float narrow = (float)value;
    if (tensor->dtype == TARE_DT_DOUBLE)
        TARE_DATA(double, tensor)[i] = value;
    else
        tare_floats_to((char *)tensor->data + (size_t)i * tare_dtype_size(tensor->dtype), tensor->dtype, &narrow, 1);
}

static tare_status run_round_trip(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const bool is_double = input->dtype == TARE_DT_DOUBLE;
    const int64_t axis = tare_node_int(kernel->node, "axis", -1);
    struct round_trip how;
    struct tare_channels channels;
    TARE_TRY(round_trip_attrs(&how, kernel));
    TARE_TRY(tare_channels_of(&channels, &input->shape, axis));
    if (how.range_given) TARE_TRY(check_ranges(kernel, &channels));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    if (input->elements == 0) return TARE_OK;
    struct round_trip_range *ranges = TARE_NEW_ARRAY(kernel->scratch, struct round_trip_range, (size_t)channels.count);
    if (!ranges) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < channels.count; c++) {
        double low, high;
        if (how.range_given) {
            low = tare_tensor_get_f64(&kernel->inputs[1], c);
            high = tare_tensor_get_f64(&kernel->inputs[2], c);
            if (!(low <= high))
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "input_min %g is above input_max %g", low, high);
        } else {
            measure(input, &channels, c, &low, &high);
        }
        ranges[c] = round_trip_range(&how, low, high, is_double);
    }
    for (int64_t i = 0; i < input->elements; i++)
        set_real(&kernel->outputs[0], i,
                 round_trip(tare_tensor_get_f64(input, i), &how, &ranges[tare_channels_at(&channels, i)], is_double));
    return TARE_OK;
}

const struct tare_op tare_ops_quantize[] = {
    { .name = "FakeQuantWithMinMaxArgs", .infer = tare_infer_same, .run = run_fake_args, .flags = TARE_OP_ELEMENTWISE },
    { .name = "FakeQuantWithMinMaxVars", .infer = tare_infer_same, .run = run_fake_vars_tensor },
    { .name = "FakeQuantWithMinMaxVarsPerChannel", .infer = tare_infer_same, .run = run_fake_vars_channels },
    { .name = "QuantizeV2", .infer = infer_quantize, .run = run_quantize },
    { .name = "Dequantize", .infer = tare_infer_same, .run = run_dequantize, .flags = TARE_OP_FLOAT32 },
    { .name = "QuantizeAndDequantizeV2", .infer = tare_infer_same, .run = run_round_trip, .flags = TARE_OP_FLOAT32 },
    { .name = "QuantizeAndDequantizeV3", .infer = tare_infer_same, .run = run_round_trip, .flags = TARE_OP_FLOAT32 },
    { .name = "QuantizeAndDequantizeV4", .infer = tare_infer_same, .run = run_round_trip, .flags = TARE_OP_FLOAT32 },
    { 0 },
};
