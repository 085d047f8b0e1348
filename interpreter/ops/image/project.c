/* ImageProjectiveTransformV2 and V3: every output pixel samples the input at its projected coordinates. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/operand.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

enum outside { FILL, REFLECT, WRAP, NEAREST };

struct projection {
    const struct tare_tensor *images;
    struct tare_tensor *out;
    int64_t height, width, channels; /* of the input */
    enum outside outside;
    bool bilinear;
    float fill;
};

static float clamp(float x, int64_t size) {
    return x < 0 ? 0 : x > (float)(size - 1) ? (float)(size - 1) : x;
}

/* Reflects a coordinate: [abcd] extends to dcba|abcd|dcba. */
static float reflect(float x, int64_t size) {
    const float turn = 2 * (float)size;
    if (size <= 1) return 0;
    if (x < 0) {
        if (x < turn) x += turn * truncf(-x / turn);
        x = x < (float)-size ? x + turn : -x - 1;
    } else if (x > (float)(size - 1)) {
        x -= turn * truncf(x / turn);
        if (x >= (float)size) x = turn - x - 1;
    }
    return clamp(x, size);
}

/* Wraps a coordinate: [abcd] extends to abcd|abcd|abcd. TensorFlow counts periods of size - 1, which is off by one
 * pixel at the seam; this reproduces it. */
static float wrap(float x, int64_t size) {
    const float last = (float)(size - 1);
    if (size <= 1) return 0;
    if (x < 0)
        x += (float)size * (truncf(-x / last) + 1);
    else if (x > last)
        x -= (float)size * truncf(x / last);
    return clamp(x, size);
}

static float inside(const struct projection *p, float x, int64_t size) {
    switch (p->outside) {
    case REFLECT:
        return reflect(x, size);
    case WRAP:
        return wrap(x, size);
    case NEAREST:
        return clamp(x, size);
    default:
        return x;
    }
}

/* Returns an input pixel, or the fill value outside the image. Coordinates are integral. */
static double read_pixel(const struct projection *p, int64_t image, float y, float x, int64_t channel) {
    if (!(y >= 0 && y < (float)p->height && x >= 0 && x < (float)p->width)) return (double)p->fill;
    return tare_tensor_get_f64(p->images,
                               ((image * p->height + (int64_t)y) * p->width + (int64_t)x) * p->channels + channel);
}

static float between(const struct projection *p, int64_t image, float y, float x, int64_t channel) {
    const float top = floorf(y), left = floorf(x), bottom = top + 1, right = left + 1;
    const float upper = (right - x) * (float)read_pixel(p, image, top, left, channel) +
                        (x - left) * (float)read_pixel(p, image, top, right, channel);
    const float lower = (right - x) * (float)read_pixel(p, image, bottom, left, channel) +
                        (x - left) * (float)read_pixel(p, image, bottom, right, channel);
    return (bottom - y) * upper + (y - top) * lower;
}

/* Computes all channels of one output pixel. */
static void project_pixel(const struct projection *p, const float *t, int64_t image, int64_t row, int64_t column,
                          int64_t at) {
    const float scale = t[6] * (float)column + t[7] * (float)row + 1;
    const float from_x = (t[0] * (float)column + t[1] * (float)row + t[2]) / scale;
    const float from_y = (t[3] * (float)column + t[4] * (float)row + t[5]) / scale;
    const float x = inside(p, from_x, p->width), y = inside(p, from_y, p->height);
    for (int64_t c = 0; c < p->channels; c++) {
        double value = (double)p->fill;
        if (scale != 0 && isfinite(x) && isfinite(y))
            value = p->bilinear ? (double)between(p, image, y, x, c) : read_pixel(p, image, roundf(y), roundf(x), c);
        tare_tensor_set_f64(p->out, at + c, value);
    }
}

/* The fill value as a value of the images' dtype. */
static float fill_of(const struct tare_tensor *fill, int dtype) {
    const float value = TARE_CONST_DATA(float, fill)[0];
    if (dtype == TARE_DT_HALF) return tare_float_from_half(tare_half_from_float(value));
    if (dtype == TARE_DT_BFLOAT16) return tare_float_from_bfloat16(tare_bfloat16_from_float(value));
    return tare_dtype_is_floating(dtype) ? value : truncf(value);
}

static tare_status read_mode(struct projection *p, const struct tare_kernel *kernel) {
    static const struct {
        const char *name;
        enum outside outside;
    } modes[] = { { "CONSTANT", FILL }, { "REFLECT", REFLECT }, { "WRAP", WRAP }, { "NEAREST", NEAREST } };
    const char *rule = tare_node_string(kernel->node, "interpolation", "");
    const char *mode = tare_node_string(kernel->node, "fill_mode", "CONSTANT");
    size_t i = 0;
    while (i < 4 && strcmp(mode, modes[i].name) != 0)
        i++;
    if (i == 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Invalid fill mode %s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST", mode);
    p->outside = modes[i].outside;
    p->bilinear = strcmp(rule, "BILINEAR") == 0;
    if (!p->bilinear && strcmp(rule, "NEAREST") != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid interpolation %s. Supported types: NEAREST, BILINEAR", rule);
    if (kernel->n_inputs > 3) p->fill = fill_of(&kernel->inputs[3], kernel->inputs[0].dtype);
    return TARE_OK;
}

static tare_status infer_project(struct tare_infer *infer) {
    const struct tare_shape *images = &infer->inputs[0], *transforms = &infer->inputs[1];
    int64_t dims[TARE_MAX_RANK];
    int known;
    TARE_TRY(tare_operand_rank(infer, 0, "images", 4));
    TARE_TRY(tare_operand_rank(infer, 1, "transforms", 2));
    if (infer->n_inputs > 3) TARE_TRY(tare_operand_rank(infer, 3, "fill_value", 0));
    if (transforms->rank == 2 && transforms->dims[1] >= 0 && transforms->dims[1] != 8)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input transform should be num_images x 8 or 1 x 8");
    if (images->rank == 4 && transforms->rank == 2 && images->dims[0] >= 0 && transforms->dims[0] >= 0 &&
        transforms->dims[0] != 1 && transforms->dims[0] != images->dims[0])
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input transform should be num_images x 8 or 1 x 8");
    TARE_TRY(tare_operand_list(infer, 2, "output_shape", dims, &known));
    if (known >= 0 && (known != 2 || dims[0] <= 0 || dims[1] <= 0))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "output shape must be a 1-D Tensor of two positive elements");
    infer->outputs[0] = tare_operand_unknown_dims(4);
    if (images->rank == 4) {
        infer->outputs[0].dims[0] = images->dims[0];
        infer->outputs[0].dims[3] = images->dims[3];
    }
    for (int i = 0; known == 2 && i < 2; i++)
        infer->outputs[0].dims[1 + i] = dims[i];
    return TARE_OK;
}

static tare_status run_project(struct tare_kernel *kernel) {
    const struct tare_tensor *images = &kernel->inputs[0], *transforms = &kernel->inputs[1];
    struct projection p = { .images = images, .out = &kernel->outputs[0], .height = 0 };
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(read_mode(&p, kernel));
    p.height = images->shape.dims[1];
    p.width = images->shape.dims[2];
    p.channels = images->shape.dims[3];
    const struct tare_shape *shape = &p.out->shape;
    for (int64_t image = 0, at = 0; image < shape->dims[0] && p.channels; image++) {
        const float *t = TARE_CONST_DATA(float, transforms) + (transforms->shape.dims[0] == 1 ? 0 : image * 8);
        for (int64_t row = 0; row < shape->dims[1]; row++)
            for (int64_t column = 0; column < shape->dims[2]; column++, at += p.channels)
                project_pixel(&p, t, image, row, column, at);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_project[] = {
    { .name = "ImageProjectiveTransformV2", .infer = infer_project, .run = run_project },
    { .name = "ImageProjectiveTransformV3", .infer = infer_project, .run = run_project },
    { 0 },
};
