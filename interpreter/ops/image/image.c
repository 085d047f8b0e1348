/* Color conversion (RGBToHSV, HSVToRGB), hue, saturation and contrast adjustment, and ExtractImagePatches. */
#include "interpreter/kernels/conv.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/window.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* ---- color conversion: pixels of three channels, computed in double so that one implementation serves all dtypes
 * ---- */

static void rgb_to_hsv(double out[3], const double rgb[3]) {
    const double r = rgb[0], g = rgb[1], b = rgb[2];
    const double value = fmax(r, fmax(g, b)), range = value - fmin(r, fmin(g, b));
    const double sixth = 1.0 / (6.0 * range);
    double hue = 0;
    if (range > 0) {
        if (r == value)
            hue = sixth * (g - b);
        else if (g == value)
            hue = sixth * (b - r) + 2.0 / 6.0;
        else
            hue = sixth * (r - g) + 4.0 / 6.0;
    }
    out[0] = hue < 0 ? hue + 1 : hue;
    out[1] = value > 0 ? range / value : 0;
    out[2] = value;
}

static double unit(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static void hsv_to_rgb(double out[3], const double hsv[3]) {
    const double h = hsv[0] * 6, s = hsv[1], v = hsv[2];
    const double pure[3] = { unit(fabs(h - 3) - 1), unit(2 - fabs(h - 2)), unit(2 - fabs(h - 4)) };
    for (int i = 0; i < 3; i++)
        out[i] = (1 - s + s * pure[i]) * v;
}

typedef void colour_function(double out[3], const double in[3]);

/* A row's aux. */
struct colours {
    colour_function *convert;
};
static const struct colours to_hsv = { rgb_to_hsv }, to_rgb = { hsv_to_rgb };

static tare_status check_pixels(const struct tare_shape *shape) {
    if (shape->rank >= 0 &&
        (shape->rank < 1 || (shape->dims[shape->rank - 1] >= 0 && shape->dims[shape->rank - 1] != 3)))
        return TARE_FAIL(TARE_SHAPE, "images must have 3 channels");
    return TARE_OK;
}

static tare_status infer_colours(struct tare_infer *infer) {
    TARE_TRY(check_pixels(&infer->inputs[0]));
    return tare_infer_same(infer);
}

static tare_status run_colours(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct colours *colours = kernel->op->aux;
    TARE_TRY(check_pixels(&input->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    struct tare_tensor *output = &kernel->outputs[0];
    for (int64_t i = 0; i < input->elements; i += 3) {
        double in[3], out[3];
        for (int k = 0; k < 3; k++)
            in[k] = tare_tensor_get_f64(input, i + k);
        colours->convert(out, in);
        if (input->dtype == TARE_DT_DOUBLE) {
            memcpy(TARE_DATA(double, output) + i, out, sizeof out);
            continue;
        }
        const float narrow[3] = { (float)out[0], (float)out[1], (float)out[2] };
        tare_floats_to((char *)output->data + (size_t)i * tare_dtype_size(input->dtype), input->dtype, narrow, 3);
    }
    return TARE_OK;
}

/* ---- hue and saturation, adjusted in HSV ---- */

static void shift_hue(double hsv[3], double delta) {
    const double hue = hsv[0] + delta;
    hsv[0] = hue - floor(hue);
}

static void scale_saturation(double hsv[3], double scale) {
    hsv[1] = unit(hsv[1] * scale);
}

/* A row's aux. */
struct adjustment {
    void (*change)(double hsv[3], double by);
};
static const struct adjustment hue = { shift_hue }, saturation = { scale_saturation };

static tare_status infer_adjust(struct tare_infer *infer) {
    if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank < 3)
        return TARE_FAIL(TARE_SHAPE, "input must be at least 3-D, got rank %d", infer->inputs[0].rank);
    if (infer->inputs[1].rank > 0) return TARE_FAIL(TARE_SHAPE, "the amount must be a scalar");
    return infer_colours(infer);
}

static tare_status run_adjust(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct adjustment *adjustment = kernel->op->aux;
    if (input->shape.rank < 3)
        return TARE_FAIL(TARE_SHAPE, "input must be at least 3-D, got rank %d", input->shape.rank);
    if (kernel->inputs[1].shape.rank > 0) return TARE_FAIL(TARE_SHAPE, "the amount must be a scalar");
    TARE_TRY(check_pixels(&input->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    const double by = (double)TARE_CONST_DATA(float, &kernel->inputs[1])[0];
    for (int64_t i = 0; i < input->elements; i += 3) {
        double rgb[3], hsv[3];
        for (int k = 0; k < 3; k++)
            rgb[k] = tare_tensor_get_f64(input, i + k);
        rgb_to_hsv(hsv, rgb);
        adjustment->change(hsv, by);
        hsv_to_rgb(rgb, hsv);
        const float narrow[3] = { (float)rgb[0], (float)rgb[1], (float)rgb[2] };
        tare_floats_to((char *)kernel->outputs[0].data + (size_t)i * tare_dtype_size(input->dtype), input->dtype,
                       narrow, 3);
    }
    return TARE_OK;
}

/* ---- contrast ---- */

static tare_status check_contrast(const struct tare_shape *images, const struct tare_shape *factor) {
    if (images->rank >= 0 && images->rank < 3)
        return TARE_FAIL(TARE_SHAPE, "images has rank %d (expected at least 3)", images->rank);
    if (factor->rank > 0) return TARE_FAIL(TARE_SHAPE, "contrast_factor is not a scalar");
    return TARE_OK;
}

static tare_status infer_contrast(struct tare_infer *infer) {
    TARE_TRY(check_contrast(&infer->inputs[0], &infer->inputs[1]));
    return tare_infer_same(infer);
}

/* Scales the distance of each value from the mean of its channel over the image. Means are summed in double. */
static tare_status run_contrast(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_shape *shape = &input->shape;
    TARE_TRY(check_contrast(shape, &kernel->inputs[1].shape));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, shape));
    if (input->elements == 0) return TARE_OK;
    const float factor = TARE_CONST_DATA(float, &kernel->inputs[1])[0];
    const int64_t channels = shape->dims[shape->rank - 1];
    const int64_t pixels = shape->dims[shape->rank - 2] * shape->dims[shape->rank - 3];
    const float *from = tare_floats_in(kernel, input);
    float *to = tare_floats_out(kernel, 0);
    if (!from || !to) return TARE_NO_MEMORY;
    for (int64_t first = 0; first < input->elements; first += pixels * channels) {
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t i = 0; i < pixels; i++)
                sum += (double)from[first + i * channels + c];
            const float mean = (float)(sum / (double)pixels);
            for (int64_t i = 0; i < pixels; i++)
                to[first + i * channels + c] = (from[first + i * channels + c] - mean) * factor + mean;
        }
    }
    tare_floats_round(kernel, 0, to);
    return TARE_OK;
}

/* ---- patches ---- */

static tare_status spatial_pair(int64_t out[3], const struct tare_node *node, const char *name) {
    const struct tare_attr *attr = tare_node_list(node, name);
    if (!attr || attr->kind != TARE_ATTR_INT || attr->count != 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must have 4 entries", name);
    if (attr->items[0].i != 1 || attr->items[3].i != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s along batch or channels", name);
    for (int i = 1; i < 3; i++) {
        out[i] = attr->items[i].i;
        if (out[i] < 1 || out[i] > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s contains %lld", name, (long long)out[i]);
    }
    out[0] = 1;
    return TARE_OK;
}

/* Patches are the matrix that a convolution by matrix product gathers. */
static tare_status patches_geometry(struct tare_conv *conv, struct tare_shape *out, const struct tare_node *node,
                                    const struct tare_shape *images) {
    struct tare_window window = { .spatial = 2 };
    if (images->rank != 4) return TARE_FAIL(TARE_SHAPE, "images has rank %d (expected 4)", images->rank);
    if (strcmp(tare_node_string(node, "padding", "VALID"), "SAME") == 0) window.padding = TARE_PAD_SAME;
    *conv = (struct tare_conv){ .batch = images->dims[0],
                                .in = { 1, images->dims[1], images->dims[2] },
                                .in_channels = images->dims[3],
                                .out = { 1, 0, 0 },
                                .out_channels = 1,
                                .base_dilation = { 1, 1, 1 },
                                .groups = 1 };
    TARE_TRY(spatial_pair(conv->kernel, node, "ksizes"));
    TARE_TRY(spatial_pair(conv->stride, node, "strides"));
    TARE_TRY(spatial_pair(conv->dilation, node, "rates"));
    memcpy(window.stride, conv->stride, sizeof window.stride);
    memcpy(window.dilation, conv->dilation, sizeof window.dilation);
    *out = tare_shape_make(4, -1, -1, -1, -1);
    out->dims[0] = images->dims[0];
    for (int i = 1; i < 3; i++) {
        if (images->dims[i] < 0) continue;
        TARE_TRY(tare_window_output(&conv->out[i], &conv->pad[i], &window, i, images->dims[i], conv->kernel[i]));
        out->dims[i] = conv->out[i];
    }
    int64_t patch;
    if (images->dims[3] >= 0) {
        if (!tare_mul_i64(&patch, conv->kernel[1], conv->kernel[2]) ||
            !tare_mul_i64(&out->dims[3], patch, images->dims[3]))
            return TARE_FAIL(TARE_SHAPE, "patches too large");
    }
    return TARE_OK;
}

static tare_status infer_patches(struct tare_infer *infer) {
    struct tare_conv conv;
    if (infer->inputs[0].rank < 0) return TARE_OK;
    return patches_geometry(&conv, &infer->outputs[0], infer->node, &infer->inputs[0]);
}

static tare_status run_patches(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_conv conv;
    struct tare_shape shape;
    TARE_TRY(patches_geometry(&conv, &shape, kernel->node, &input->shape));
    TARE_TRY(tare_conv_check(&conv));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const struct tare_conv_patches patches = { &conv, input->data, 0, tare_dtype_size(input->dtype) };
    const int64_t patch = tare_conv_patch(&conv);
    tare_conv_gather(&patches, kernel->outputs[0].data, patch, 0, tare_conv_rows(&conv), 0, patch);
    return TARE_OK;
}

const struct tare_op tare_ops_image[] = {
    { .name = "AdjustContrastv2", .infer = infer_contrast, .run = run_contrast },
    { .name = "AdjustHue", .infer = infer_adjust, .run = run_adjust, .aux = &hue },
    { .name = "AdjustSaturation", .infer = infer_adjust, .run = run_adjust, .aux = &saturation },
    { .name = "RGBToHSV", .infer = infer_colours, .run = run_colours, .aux = &to_hsv },
    { .name = "HSVToRGB", .infer = infer_colours, .run = run_colours, .aux = &to_rgb },
    { .name = "ExtractImagePatches", .infer = infer_patches, .run = run_patches, .flags = TARE_OP_MOVE },
    { 0 },
};
