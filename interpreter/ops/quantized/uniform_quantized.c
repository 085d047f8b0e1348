/* The UniformQuantize ops. Integer results are scaled by a 31-bit multiplier and a shift (rule
 * requantize-fixed-point: one rounding, half up), as in TensorFlow's kernels. */
#include "base/clamp.h"
#include "interpreter/ops/quantized/channels.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/xla/general_conv.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- fixed-point scaling ---- */

struct multiplier {
    int32_t value;
    int shift;
};

static tare_status set_multiplier(struct multiplier *out, double scale) {
    if (!isfinite(scale) || scale <= 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "scales contains %g (expected a positive number)", scale);
    int64_t value = (int64_t)round(frexp(scale, &out->shift) * 2147483648.0);
    if (value == 2147483648LL) {
        value /= 2;
        out->shift++;
    }
    if (out->shift < -31) out->shift = 0, value = 0;
    if (out->shift > 30) out->shift = 30, value = INT32_MAX;
    out->value = (int32_t)value;
    return TARE_OK;
}

static int32_t scaled(int32_t x, struct multiplier multiplier) {
    const int shift = 31 - multiplier.shift;
    const int64_t sum = (int64_t)x * multiplier.value + ((int64_t)1 << (shift - 1));
    return (int32_t)tare_clamp(sum >> shift, INT32_MIN, INT32_MAX);
}

/* ---- quantization parameters ---- */

struct parameters {
    struct tare_channels channels;
    int64_t lowest, highest;
    const float *scales;
    const int32_t *zero_points;
    bool is_scalar; /* one entry for all channels */
};

/* Reads the attributes prefix + quantization_axis, …_min_val and …_max_val; scales and zero points are inputs
 * `first` and `first` + 1. */
static tare_status parameters_of(struct parameters *out, const struct tare_kernel *kernel, const char *prefix,
                                 size_t first, const struct tare_shape *shape) {
    char name[64];
    const struct tare_tensor *scales = &kernel->inputs[first], *zero_points = &kernel->inputs[first + 1];
    snprintf(name, sizeof name, "%squantization_axis", prefix);
    const int64_t axis = tare_node_int(kernel->node, name, -1);
    TARE_TRY(tare_channels_of(&out->channels, shape, axis));
    snprintf(name, sizeof name, "%squantization_min_val", prefix);
    out->lowest = tare_node_int(kernel->node, name, INT32_MIN);
    snprintf(name, sizeof name, "%squantization_max_val", prefix);
    out->highest = tare_node_int(kernel->node, name, INT32_MAX);
    out->is_scalar = axis < 0;
    if (scales->elements != out->channels.count || zero_points->elements != out->channels.count)
        return TARE_FAIL(TARE_SHAPE, "%lld %sscales and %lld zero points (expected %lld)", (long long)scales->elements,
                         prefix, (long long)zero_points->elements, (long long)out->channels.count);
    out->scales = scales->data;
    out->zero_points = zero_points->data;
    for (int64_t i = 0; i < scales->elements; i++) {
        if (!(out->scales[i] > 0))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%sscale %g (expected a positive number)", prefix,
                             (double)out->scales[i]);
    }
    return TARE_OK;
}

static float scale_at(const struct parameters *p, int64_t channel) {
    return p->scales[p->is_scalar ? 0 : channel];
}
static int32_t zero_at(const struct parameters *p, int64_t channel) {
    return p->zero_points[p->is_scalar ? 0 : channel];
}

/* ---- element-wise ---- */

/* floor(x / scale + 1/2) + zero point, with 1 / scale rounded to float first; NaN becomes the lowest value. */
static int32_t quantize(float x, float scale, int32_t zero_point, int64_t lowest, int64_t highest) {
    const float steps = floorf(x * (1.0f / scale) + 0.5f);
    if (!(steps > -2147483648.0f)) return (int32_t)tare_clamp((int64_t)INT32_MIN + zero_point, lowest, highest);
    const int64_t whole = steps >= 2147483648.0f ? INT32_MAX : (int64_t)steps;
    return (int32_t)tare_clamp(whole + zero_point, lowest, highest);
}

static tare_status run_uniform_quantize(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct parameters p;
    TARE_TRY(parameters_of(&p, kernel, "", 1, &input->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(kernel->node, "Tout", TARE_DT_QINT8), &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const int64_t c = tare_channels_at(&p.channels, i);
        tare_quantized_set(
            &kernel->outputs[0], i,
            quantize(TARE_CONST_DATA(float, input)[i], scale_at(&p, c), zero_at(&p, c), p.lowest, p.highest));
    }
    return TARE_OK;
}

static int32_t subtract(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

static tare_status run_uniform_dequantize(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct parameters p;
    TARE_TRY(parameters_of(&p, kernel, "", 1, &input->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const int64_t c = tare_channels_at(&p.channels, i);
        TARE_DATA(float, &kernel->outputs[0])
        [i] = (float)subtract(tare_quantized_get(input, i), zero_at(&p, c)) * scale_at(&p, c);
    }
    return TARE_OK;
}

/* Computes the multipliers from one quantization to another, with one entry per channel of whichever is per channel. */
static tare_status multipliers_between(struct multiplier **out, struct tare_channels *channels,
                                       struct tare_arena *scratch, const struct parameters *from,
                                       const struct parameters *to) {
    if (!from->is_scalar && !to->is_scalar && from->channels.count != to->channels.count)
        return TARE_FAIL(TARE_SHAPE, "both operands are per channel, but with different numbers of channels");
    *channels = from->is_scalar ? to->channels : from->channels;
    *out = TARE_NEW_ARRAY(scratch, struct multiplier, (size_t)channels->count);
    if (!*out) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < channels->count; c++)
        TARE_TRY(set_multiplier(*out + c, (double)scale_at(from, c) / (double)scale_at(to, c)));
    return TARE_OK;
}

static tare_status run_uniform_requantize(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct parameters from, to;
    struct multiplier *multipliers;
    struct tare_channels channels;
    TARE_TRY(parameters_of(&from, kernel, "input_", 1, &input->shape));
    TARE_TRY(parameters_of(&to, kernel, "output_", 3, &input->shape));
    TARE_TRY(multipliers_between(&multipliers, &channels, kernel->scratch, &from, &to));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(kernel->node, "Tout", TARE_DT_QINT8), &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const int64_t c = tare_channels_at(&channels, i);
        const int32_t x = scaled(subtract(tare_quantized_get(input, i), zero_at(&from, c)), multipliers[c]);
        tare_quantized_set(&kernel->outputs[0], i,
                           (int32_t)tare_clamp((int64_t)x + zero_at(&to, c), to.lowest, to.highest));
    }
    return TARE_OK;
}

/* min and max have the layout of the scales. */
static tare_status run_uniform_clip(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct parameters p;
    TARE_TRY(parameters_of(&p, kernel, "", 3, &input->shape));
    for (int i = 1; i < 3; i++) {
        if (kernel->inputs[i].elements != p.channels.count)
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %lld)", i == 1 ? "min" : "max",
                             (long long)kernel->inputs[i].elements, (long long)p.channels.count);
    }
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const int64_t c = tare_channels_at(&p.channels, i);
        const int32_t x = tare_quantized_get(input, i), low = tare_quantized_get(&kernel->inputs[1], c);
        const int32_t high = tare_quantized_get(&kernel->inputs[2], c);
        const int32_t below = x < high ? x : high;
        tare_quantized_set(&kernel->outputs[0], i, below > low ? below : low);
    }
    return TARE_OK;
}

/* ---- addition ---- */

static int32_t wrapping_add(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* Operand index for output position `i` under broadcasting. */
static int64_t broadcast_place(const struct tare_shape *output, const struct tare_shape *operand, int64_t i) {
    int64_t place = 0, step = 1;
    for (int axis = output->rank - 1; axis >= 0; axis--) {
        const int64_t at = i % output->dims[axis];
        i /= output->dims[axis];
        const int own = axis - (output->rank - operand->rank);
        if (own < 0) continue;
        if (operand->dims[own] != 1) place += at * step;
        step *= operand->dims[own];
    }
    return place;
}

/* Finds the output channel of position i if the output is per channel and the operand per tensor. */
static tare_status run_uniform_add(struct tare_kernel *kernel) {
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    struct parameters left, right, to;
    struct multiplier *multipliers[2];
    struct tare_channels channels[2];
    struct tare_shape shape;
    TARE_TRY(tare_shape_broadcast(&shape, &lhs->shape, &rhs->shape));
    TARE_TRY(parameters_of(&left, kernel, "lhs_", 2, &lhs->shape));
    TARE_TRY(parameters_of(&right, kernel, "rhs_", 4, &rhs->shape));
    TARE_TRY(parameters_of(&to, kernel, "output_", 6, &shape));
    TARE_TRY(multipliers_between(&multipliers[0], &channels[0], kernel->scratch, &left, &to));
    TARE_TRY(multipliers_between(&multipliers[1], &channels[1], kernel->scratch, &right, &to));
    TARE_TRY(tare_kernel_output(kernel, 0, lhs->dtype, &shape));
    for (int64_t i = 0; i < kernel->outputs[0].elements; i++) {
        const int64_t a = broadcast_place(&shape, &lhs->shape, i), b = broadcast_place(&shape, &rhs->shape, i);
        const int64_t c = tare_channels_at(&to.channels, i);
        const int64_t ca = left.is_scalar ? c : tare_channels_at(&left.channels, a);
        const int64_t cb = right.is_scalar ? c : tare_channels_at(&right.channels, b);
        const int32_t x = scaled(subtract(tare_quantized_get(lhs, a), zero_at(&left, ca)), multipliers[0][ca]);
        const int32_t y = scaled(subtract(tare_quantized_get(rhs, b), zero_at(&right, cb)), multipliers[1][cb]);
        const int32_t sum = wrapping_add(wrapping_add(x, y), zero_at(&to, c));
        tare_quantized_set(&kernel->outputs[0], i, (int32_t)tare_clamp(sum, to.lowest, to.highest));
    }
    return TARE_OK;
}

static tare_status infer_add(struct tare_infer *infer) {
    if (infer->inputs[0].rank < 0 || infer->inputs[1].rank < 0) return TARE_OK;
    return tare_shape_broadcast(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1]);
}

/* ---- products and convolutions ----
 *
 * Both are convolutions of channels-last arrays (a product has one position and one tap per row). The left operand
 * is int32 with its zero point subtracted, so that padding is zero; the zero points of the right operand are
 * subtracted as well. */

struct uniform_sum {
    struct tare_general_conv general;
    bool is_dot, hybrid;
    const struct tare_tensor *lhs, *rhs;
    struct parameters right;
    float *image_scales; /* hybrid: scale of each image (row) */
};

static tare_status list_or(int64_t *values, const struct tare_node *node, const char *name, int count, int64_t fill) {
    const struct tare_attr *attr = tare_node_list(node, name);
    for (int i = 0; i < count; i++)
        values[i] = fill;
    if (!attr || attr->count == 0) return TARE_OK;
    if (attr->count != (size_t)count || attr->kind != TARE_ATTR_INT)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has %zu entries (expected %d)", name, attr->count, count);
    for (int i = 0; i < count; i++)
        values[i] = attr->items[i].i;
    return TARE_OK;
}

static tare_status conv_geometry(struct tare_general_conv *general, const struct tare_node *node,
                                 const struct tare_shape *lhs, const struct tare_shape *rhs) {
    struct tare_conv_dims dims;
    struct tare_conv_windows windows = { .groups = tare_node_int(node, "feature_group_count", 1) };
    const char *padding = tare_node_string(node, "padding", "VALID");
    int64_t pads[2 * TARE_MOST_SPATIAL];
    if (lhs->rank < 3 || rhs->rank != lhs->rank)
        return TARE_FAIL(TARE_SHAPE, "operands have ranks %d and %d (expected the same, at least 3)", lhs->rank,
                         rhs->rank);
    if (tare_node_int(node, "batch_group_count", 1) != 1) return TARE_FAIL(TARE_UNSUPPORTED, "batch groups");
    TARE_TRY(tare_conv_dims_read(&dims, node, "dimension_numbers", lhs->rank, TARE_CONV_UNIFORM));
    TARE_TRY(list_or(windows.stride, node, "window_strides", dims.spatial, 1));
    TARE_TRY(list_or(windows.lhs_dilation, node, "lhs_dilation", dims.spatial, 1));
    TARE_TRY(list_or(windows.rhs_dilation, node, "rhs_dilation", dims.spatial, 1));
    TARE_TRY(list_or(pads, node, "explicit_padding", 2 * dims.spatial, 0));
    for (int i = 0; i < dims.spatial; i++) {
        if (windows.stride[i] < 1 || windows.lhs_dilation[i] < 1 || windows.rhs_dilation[i] < 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "strides and dilations must be positive");
        if (strcmp(padding, "SAME") == 0)
            tare_conv_same_padding(windows.pad[i], lhs->dims[dims.input_spatial[i]], rhs->dims[dims.kernel_spatial[i]],
                                   windows.stride[i], windows.lhs_dilation[i], windows.rhs_dilation[i]);
        else
            memcpy(windows.pad[i], &pads[2 * i], sizeof windows.pad[i]);
    }
    return tare_general_conv_set(general, &dims, &windows, lhs, rhs);
}

/* [m, k] times [k, n] as m images of one position. */
static tare_status dot_geometry(struct tare_general_conv *general, const struct tare_shape *lhs,
                                const struct tare_shape *rhs) {
    static const struct tare_conv_dims dims = { .input_feature = 1, .kernel_output = 1, .output_feature = 1 };
    static const struct tare_conv_windows windows = { .groups = 1 };
    if (lhs->rank != 2 || rhs->rank != 2 || lhs->dims[1] != rhs->dims[0]) {
        char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
        return TARE_FAIL(TARE_SHAPE, "%s times %s", tare_shape_text(a, lhs), tare_shape_text(b, rhs));
    }
    return tare_general_conv_set(general, &dims, &windows, lhs, rhs);
}

static int64_t image_size(const struct tare_conv *conv) {
    return conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;
}

/* Quantizes one image to -128 … 127 by its own range and stores it with the zero point subtracted. */
static float quantize_image(int32_t *to, const float *from, int64_t count) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        if (from[i] < low) low = from[i];
        if (from[i] > high) high = from[i];
    }
    const double scale = ((double)high - (double)low) / 255.0;
    if (low == high || (float)scale == 0 || !isfinite((float)(1.0 / scale))) {
        memset(to, 0, (size_t)count * sizeof *to);
        return 1;
    }
    const double from_low = -128.0 - low / scale, from_high = 127.0 - high / scale;
    const bool low_is_closer = 128.0 + fabs(low / scale) < 127.0 + fabs(high / scale);
    const double zero = low_is_closer ? from_low : from_high;
    const int32_t zero_point = (int32_t)tare_clamp((int64_t)round(zero), -128, 127);
    for (int64_t i = 0; i < count; i++)
        to[i] = quantize(from[i], (float)scale, zero_point, -128, 127) - zero_point;
    return (float)scale;
}

/* The left operand, channels-last, as int32 without zero points. */
static tare_status left_values(struct tare_kernel *kernel, int32_t **out, struct uniform_sum *sum) {
    const struct tare_conv *conv = &sum->general.conv;
    const void *data = tare_in_order(kernel->scratch, sum->lhs->data, tare_dtype_size(sum->lhs->dtype),
                                     &sum->lhs->shape, sum->general.lhs_order);
    int32_t *values = TARE_NEW_ARRAY(kernel->scratch, int32_t, (size_t)sum->lhs->elements);
    sum->image_scales = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)conv->batch);
    if (!data || !values || !sum->image_scales) return TARE_NO_MEMORY;
    *out = values;
    const int64_t size = image_size(conv);
    if (sum->hybrid) {
        for (int64_t b = 0; b < conv->batch; b++)
            sum->image_scales[b] = quantize_image(values + b * size, (const float *)data + b * size, size);
        return TARE_OK;
    }
    struct parameters left;
    TARE_TRY(parameters_of(&left, kernel, "lhs_", 2, &sum->lhs->shape));
    if (!left.is_scalar) return TARE_FAIL(TARE_UNSUPPORTED, "lhs_quantization_axis (expected -1)");
    for (int64_t i = 0; i < sum->lhs->elements; i++)
        values[i] = subtract(((const int8_t *)data)[i], left.zero_points[0]);
    return TARE_OK;
}

/* The right operand in the kernel's layout as int32 without zero points. */
static tare_status right_values(struct tare_kernel *kernel, int32_t **out, struct uniform_sum *sum) {
    const struct tare_general_conv *general = &sum->general;
    const int64_t n = general->conv.out_channels;
    const int8_t *data = tare_in_order(kernel->scratch, sum->rhs->data, 1, &sum->rhs->shape, general->rhs_order);
    int32_t *values = TARE_NEW_ARRAY(kernel->scratch, int32_t, (size_t)sum->rhs->elements);
    if (!data || !values) return TARE_NO_MEMORY;
    TARE_TRY(parameters_of(&sum->right, kernel, "rhs_", sum->hybrid ? 2 : 4, &sum->rhs->shape));
    if (!sum->right.is_scalar && sum->right.channels.count != n)
        return TARE_FAIL(TARE_UNSUPPORTED, "rhs_quantization_axis is not the output channels");
    for (int64_t i = 0; i < sum->rhs->elements; i++)
        values[i] = subtract(data[i], zero_at(&sum->right, i % n));
    *out = values;
    return TARE_OK;
}

/* Converts sums in channels-last order to outputs, in place: floats for hybrid ops, otherwise requantized integers. */
static tare_status finish(struct tare_kernel *kernel, int32_t *sums, const struct uniform_sum *sum, int64_t count) {
    const int64_t n = sum->general.conv.out_channels;
    const int64_t image = count / (sum->general.conv.batch > 0 ? sum->general.conv.batch : 1);
    if (sum->hybrid) {
        for (int64_t i = 0; i < count; i++) {
            const float value = (float)sums[i] * sum->image_scales[i / image] * scale_at(&sum->right, i % n);
            memcpy(&sums[i], &value, sizeof value);
        }
        return TARE_OK;
    }
    struct parameters left, to;
    TARE_TRY(parameters_of(&left, kernel, "lhs_", 2, &sum->lhs->shape));
    TARE_TRY(parameters_of(&to, kernel, "output_", 6, &sum->general.output));
    struct multiplier *multipliers = TARE_NEW_ARRAY(kernel->scratch, struct multiplier, (size_t)n);
    if (!multipliers) return TARE_NO_MEMORY;
    if (!to.is_scalar && to.channels.count != n)
        return TARE_FAIL(TARE_UNSUPPORTED, "output_quantization_axis is not the channels");
    for (int64_t c = 0; c < n; c++)
        TARE_TRY(set_multiplier(&multipliers[c],
                                (double)left.scales[0] * (double)scale_at(&sum->right, c) / (double)scale_at(&to, c)));
    for (int64_t i = 0; i < count; i++)
        sums[i] = (int32_t)tare_clamp((int64_t)scaled(sums[i], multipliers[i % n]) + zero_at(&to, i % n), to.lowest,
                                      to.highest);
    return TARE_OK;
}

static tare_status run_sum(struct tare_kernel *kernel, bool is_dot, bool plain) {
    struct uniform_sum sum = { .is_dot = is_dot, .lhs = &kernel->inputs[0], .rhs = &kernel->inputs[1] };
    int32_t *lhs = NULL, *rhs = NULL;
    sum.hybrid = sum.lhs->dtype == TARE_DT_FLOAT;
    TARE_TRY(is_dot ? dot_geometry(&sum.general, &sum.lhs->shape, &sum.rhs->shape)
                    : conv_geometry(&sum.general, kernel->node, &sum.lhs->shape, &sum.rhs->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, sum.hybrid ? TARE_DT_FLOAT : TARE_DT_QINT32, &sum.general.output));
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    TARE_TRY(left_values(kernel, &lhs, &sum));
    TARE_TRY(right_values(kernel, &rhs, &sum));
    const bool stored = tare_general_conv_is_stored(&sum.general);
    int32_t *sums = stored ? output->data : TARE_NEW_ARRAY(kernel->scratch, int32_t, (size_t)output->elements);
    if (!sums) return TARE_NO_MEMORY;
    const struct tare_exact exact = { .lhs_dtype = TARE_DT_INT32,
                                      .rhs_dtype = TARE_DT_INT32,
                                      .lhs = lhs,
                                      .rhs = rhs,
                                      .scratch = kernel->scratch,
                                      .threads = tare_session_op_pool(kernel->session),
                                      .plain = plain };
    if (sum.lhs->elements == 0)
        memset(sums, 0, (size_t)output->elements * sizeof *sums);
    else
        TARE_TRY(tare_exact_conv(sums, &exact, &sum.general.conv));
    TARE_TRY(finish(kernel, sums, &sum, output->elements));
    tare_general_conv_store(&sum.general, output->data, sums, sizeof *sums);
    return TARE_OK;
}

static tare_status run_dot(struct tare_kernel *kernel) {
    return run_sum(kernel, true, false);
}
static tare_status reference_dot(struct tare_kernel *kernel) {
    return run_sum(kernel, true, true);
}
static tare_status run_conv(struct tare_kernel *kernel) {
    return run_sum(kernel, false, false);
}
static tare_status reference_conv(struct tare_kernel *kernel) {
    return run_sum(kernel, false, true);
}

static tare_status infer_dot(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_make(2, -1, -1);
    for (int i = 0; i < 2; i++) {
        if (infer->inputs[i].rank < 0) continue;
        if (infer->inputs[i].rank != 2)
            return TARE_FAIL(TARE_SHAPE, "operand %d has rank %d (expected 2)", i, infer->inputs[i].rank);
        infer->outputs[0].dims[i] = infer->inputs[i].dims[i];
    }
    return TARE_OK;
}

static tare_status infer_conv(struct tare_infer *infer) {
    struct tare_general_conv general;
    struct tare_conv_dims dims;
    struct tare_shape lhs = infer->inputs[0];
    if (lhs.rank < 3 || !tare_shape_is_known(&infer->inputs[1])) return TARE_OK;
    TARE_TRY(tare_conv_dims_read(&dims, infer->node, "dimension_numbers", lhs.rank, TARE_CONV_UNIFORM));
    if (lhs.dims[dims.input_batch] < 0) lhs.dims[dims.input_batch] = 1; /* restored to unknown below */
    if (!tare_shape_is_known(&lhs)) {
        infer->outputs[0] = lhs;
        for (int i = 0; i < lhs.rank; i++)
            infer->outputs[0].dims[i] = -1;
        return TARE_OK;
    }
    TARE_TRY(conv_geometry(&general, infer->node, &lhs, &infer->inputs[1]));
    infer->outputs[0] = general.output;
    infer->outputs[0].dims[dims.output_batch] = infer->inputs[0].dims[dims.input_batch];
    return TARE_OK;
}

const struct tare_op tare_ops_uniform_quantized[] = {
    { .name = "UniformQuantize", .infer = tare_infer_same, .run = run_uniform_quantize },
    { .name = "UniformDequantize", .infer = tare_infer_same, .run = run_uniform_dequantize },
    { .name = "UniformRequantize", .infer = tare_infer_same, .run = run_uniform_requantize },
    { .name = "UniformQuantizedAdd", .infer = infer_add, .run = run_uniform_add },
    { .name = "UniformQuantizedClipByValue", .infer = tare_infer_same, .run = run_uniform_clip },
    { .name = "UniformQuantizedDot",
      .infer = infer_dot,
      .run = run_dot,
      .reference = reference_dot,
      .flags = TARE_OP_PRODUCT },
    { .name = "UniformQuantizedDotHybrid",
      .infer = infer_dot,
      .run = run_dot,
      .reference = reference_dot,
      .flags = TARE_OP_PRODUCT },
    { .name = "UniformQuantizedConvolution",
      .infer = infer_conv,
      .run = run_conv,
      .reference = reference_conv,
      .flags = TARE_OP_PRODUCT },
    { .name = "UniformQuantizedConvolutionHybrid",
      .infer = infer_conv,
      .run = run_conv,
      .reference = reference_conv,
      .flags = TARE_OP_PRODUCT },
    { 0 },
};
