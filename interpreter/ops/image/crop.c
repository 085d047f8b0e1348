/* CropAndResize (boxes of several sizes resampled to one size) and ScaleAndTranslate (scaling and translation with a
 * choice of kernels). Images are [batch, height, width, channels]. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"

#include "base/alloc.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- CropAndResize ---- */

struct crops {
    int64_t batch, height, width, channels, boxes, out_height, out_width;
    bool nearest;
    float outside;
    const float *image;
};

/* Source coordinate of output row (column) `at` of a crop: the box is normalized to 0 … size - 1. */
static float crop_place(float first, float last, int64_t at, int64_t size, int64_t out) {
    const float most = (float)(size - 1);
    if (out <= 1) return 0.5f * (first + last) * most;
    return first * most + (float)at * ((last - first) * most / (float)(out - 1));
}

static void crop_pixel(float *to, const struct crops *crops, const float *image, float y, float x) {
    const int64_t line = crops->width * crops->channels, channels = crops->channels;
    if (crops->nearest) {
        memcpy(to, image + (int64_t)roundf(y) * line + (int64_t)roundf(x) * channels, (size_t)channels * sizeof *to);
        return;
    }
    const float *top = image + (int64_t)floorf(y) * line, *bottom = image + (int64_t)ceilf(y) * line;
    const int64_t left = (int64_t)floorf(x) * channels, right = (int64_t)ceilf(x) * channels;
    const float lerp_y = y - floorf(y), lerp_x = x - floorf(x);
    for (int64_t c = 0; c < channels; c++) {
        const float upper = top[left + c] + (top[right + c] - top[left + c]) * lerp_x;
        const float lower = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * lerp_x;
        to[c] = upper + (lower - upper) * lerp_y;
    }
}

static void crop_box(float *to, const struct crops *crops, const float *box, int64_t image) {
    const float *from = crops->image + image * crops->height * crops->width * crops->channels;
    for (int64_t i = 0; i < crops->out_height; i++) {
        const float y = crop_place(box[0], box[2], i, crops->height, crops->out_height);
        for (int64_t j = 0; j < crops->out_width; j++, to += crops->channels) {
            const float x = crop_place(box[1], box[3], j, crops->width, crops->out_width);
            if (y >= 0 && y <= (float)(crops->height - 1) && x >= 0 && x <= (float)(crops->width - 1)) {
                crop_pixel(to, crops, from, y, x);
                continue;
            }
            for (int64_t c = 0; c < crops->channels; c++)
                to[c] = crops->outside;
        }
    }
}

static tare_status crop_size(int64_t size[2], const struct tare_tensor *tensor) {
    if (tensor->shape.rank != 1 || tensor->elements != 2)
        return TARE_FAIL(TARE_SHAPE, "crop_size has %lld elements (expected 2)", (long long)tensor->elements);
    for (int i = 0; i < 2; i++) {
        size[i] = tare_tensor_get_i64(tensor, i);
        if (size[i] <= 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "crop_size contains %lld (expected positive numbers)",
                             (long long)size[i]);
    }
    return TARE_OK;
}

static tare_status check_crop_shapes(const struct tare_shape *image, const struct tare_shape *boxes,
                                     const struct tare_shape *index) {
    if (image->rank >= 0 && image->rank != 4)
        return TARE_FAIL(TARE_SHAPE, "image has rank %d (expected 4)", image->rank);
    if (boxes->rank >= 0 && (boxes->rank != 2 || (boxes->dims[1] >= 0 && boxes->dims[1] != 4)))
        return TARE_FAIL(TARE_SHAPE, "boxes must be [boxes, 4]");
    if (index->rank >= 0 && index->rank != 1)
        return TARE_FAIL(TARE_SHAPE, "box_ind has rank %d (expected 1)", index->rank);
    return TARE_OK;
}

static tare_status infer_crop(struct tare_infer *infer) {
    struct tare_shape out = tare_shape_make(4, -1, -1, -1, -1);
    int64_t size[2] = { 0 };
    TARE_TRY(check_crop_shapes(&infer->inputs[0], &infer->inputs[1], &infer->inputs[2]));
    if (infer->inputs[0].rank == 4) out.dims[3] = infer->inputs[0].dims[3];
    if (infer->inputs[1].rank == 2) out.dims[0] = infer->inputs[1].dims[0];
    if (infer->input_values[3]) {
        TARE_TRY(crop_size(size, infer->input_values[3]));
        out.dims[1] = size[0];
        out.dims[2] = size[1];
    }
    infer->outputs[0] = out;
    return TARE_OK;
}

static tare_status run_crop(struct tare_kernel *kernel) {
    const struct tare_tensor *image = &kernel->inputs[0], *boxes = &kernel->inputs[1], *index = &kernel->inputs[2];
    int64_t size[2] = { 0 };
    TARE_TRY(check_crop_shapes(&image->shape, &boxes->shape, &index->shape));
    TARE_TRY(crop_size(size, &kernel->inputs[3]));
    struct crops crops = {
        .batch = image->shape.dims[0],
        .height = image->shape.dims[1],
        .width = image->shape.dims[2],
        .channels = image->shape.dims[3],
        .boxes = boxes->shape.dims[0],
        .out_height = size[0],
        .out_width = size[1],
        .nearest = strcmp(tare_node_string(kernel->node, "method", "bilinear"), "nearest") == 0,
        .outside = tare_node_float(kernel->node, "extrapolation_value", 0),
    };
    if (index->elements != crops.boxes)
        return TARE_FAIL(TARE_SHAPE, "box_ind has %lld elements (expected %lld)", (long long)index->elements,
                         (long long)crops.boxes);
    const struct tare_shape shape = { .rank = 4, .dims = { crops.boxes, size[0], size[1], crops.channels } };
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &shape));
    crops.image = tare_floats_in(kernel, image);
    if (!crops.image) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < crops.boxes; i++) {
        const int64_t at = tare_tensor_get_i64(index, i);
        if (at < 0 || at >= crops.batch)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "box_ind[%lld] is %lld (expected 0 to %lld)", (long long)i,
                             (long long)at, (long long)crops.batch - 1);
        crop_box((float *)kernel->outputs[0].data + i * size[0] * size[1] * crops.channels, &crops,
                 TARE_CONST_DATA(float, boxes) + 4 * i, at);
    }
    return TARE_OK;
}

/* ---- ScaleAndTranslate ---- */

static float sine(float x) {
    return (float)tare_sin((double)x);
}

static float lanczos(float x, float radius) {
    const float pi = 3.14159265358979323846f;
    if (x > radius) return 0;
    if (x <= 1e-3f) return 1;
    return radius * sine(pi * x) * sine(pi * x / radius) / (pi * pi * x * x);
}
static float lanczos1(float x) {
    return lanczos(x, 1);
}
static float lanczos3(float x) {
    return lanczos(x, 3);
}
static float lanczos5(float x) {
    return lanczos(x, 5);
}
static float gaussian(float x) {
    return x >= 1.5f ? 0 : (float)tare_exp((double)(-x * x / (2 * 0.5f * 0.5f)));
}
static float box(float x) {
    return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}
static float triangle(float x) {
    return x < 1 ? 1 - x : 0;
}
static float keys_cubic(float x) {
    if (x >= 2) return 0;
    if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
    return (1.5f * x - 2.5f) * x * x + 1;
}
static float mitchell_cubic(float x) {
    if (x >= 2) return 0;
    if (x >= 1) return ((-7.0f / 18.0f * x + 2) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
    return (7.0f / 6.0f * x - 2) * x * x + 8.0f / 9.0f;
}

struct window_function {
    const char *name;
    float radius;
    float (*weight)(float distance);
};
static const struct window_function window_functions[] = {
    { "lanczos1", 1, lanczos1 },
    { "lanczos3", 3, lanczos3 },
    { "lanczos5", 5, lanczos5 },
    { "gaussian", 1.5f, gaussian },
    { "box", 1, box },
    { "triangle", 1, triangle },
    { "keyscubic", 2, keys_cubic },
    { "mitchellcubic", 2, mitchell_cubic },
};

static tare_status window_function_of(const struct window_function **out, const char *name) {
    for (size_t i = 0; i < sizeof window_functions / sizeof *window_functions; i++) {
        *out = &window_functions[i];
        if (strcmp(name, window_functions[i].name) == 0) return TARE_OK;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "kernel_type '%s'", name);
}

/* Input positions [first, first + count) and their weights for one output position. */
struct span {
    int64_t first, count;
    float *weights;
};

static tare_status make_spans(struct span *spans, struct tare_arena *arena, int64_t in, int64_t out, float scale,
                              float translation, bool antialias, const struct window_function *function) {
    const float inverse = 1.0f / scale, shift = -inverse * translation;
    const float kernel_scale = antialias && inverse > 1 ? inverse : 1;
    const float reach = function->radius * kernel_scale;
    for (int64_t i = 0; i < out; i++) {
        const float place = ((float)i + 0.5f) * inverse + shift;
        spans[i] = (struct span){ 0 };
        if (!(place >= 0 && place <= (float)in)) continue;
        int64_t first = (int64_t)ceilf(place - reach - 0.5f), last = (int64_t)floorf(place + reach - 0.5f);
        first = first < 0 ? 0 : first >= in ? in - 1 : first;
        last = last < 0 ? 0 : last >= in ? in - 1 : last;
        spans[i].first = first;
        spans[i].count = last - first + 1;
        spans[i].weights = TARE_NEW_ARRAY(arena, float, (size_t)(spans[i].count > 0 ? spans[i].count : 1));
        if (!spans[i].weights) return TARE_NO_MEMORY;
        float sum = 0;
        for (int64_t j = 0; j < spans[i].count; j++) {
            spans[i].weights[j] = function->weight(fabsf(((float)(first + j) + 0.5f - place) / kernel_scale));
            sum += spans[i].weights[j];
        }
        for (int64_t j = 0; fabsf(sum) >= 1000.0f * FLT_MIN && j < spans[i].count; j++)
            spans[i].weights[j] *= 1.0f / sum;
    }
    return TARE_OK;
}

/* to[o][i] += weight · from[source][i] over arrays [lines, inner]. */
static void gather_spans(float *to, const float *from, const struct span *spans, int64_t out, int64_t inner) {
    for (int64_t o = 0; o < out; o++, to += inner) {
        memset(to, 0, (size_t)inner * sizeof *to);
        for (int64_t j = 0; j < spans[o].count; j++) {
            const float *line = from + (spans[o].first + j) * inner;
            for (int64_t i = 0; i < inner; i++)
                to[i] += line[i] * spans[o].weights[j];
        }
    }
}

static tare_status infer_translate(struct tare_infer *infer) {
    const struct tare_shape *images = &infer->inputs[0];
    struct tare_shape out = tare_shape_make(4, -1, -1, -1, -1);
    int64_t size[2] = { 0 };
    if (images->rank >= 0 && images->rank != 4)
        return TARE_FAIL(TARE_SHAPE, "images has rank %d (expected 4)", images->rank);
    if (images->rank == 4) {
        out.dims[0] = images->dims[0];
        out.dims[3] = images->dims[3];
    }
    if (infer->input_values[1]) {
        TARE_TRY(crop_size(size, infer->input_values[1]));
        out.dims[1] = size[0];
        out.dims[2] = size[1];
    }
    infer->outputs[0] = out;
    return TARE_OK;
}

static tare_status translate_images(struct tare_kernel *kernel, const float *from, const struct tare_shape *in,
                                    const struct tare_shape *out, struct span *const spans[2]) {
    const int64_t channels = in->dims[3], in_line = in->dims[2] * channels, out_line = out->dims[2] * channels;
    float *rows = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)(out->dims[1] * in_line));
    float *to = kernel->outputs[0].data;
    if (!rows) return TARE_NO_MEMORY;
    for (int64_t b = 0; b < in->dims[0]; b++, from += in->dims[1] * in_line) {
        gather_spans(rows, from, spans[0], out->dims[1], in_line);
        for (int64_t y = 0; y < out->dims[1]; y++, to += out_line)
            gather_spans(to, rows + y * in_line, spans[1], out->dims[2], channels);
    }
    return TARE_OK;
}

static tare_status run_translate(struct tare_kernel *kernel) {
    const struct tare_tensor *images = &kernel->inputs[0];
    const struct window_function *function;
    int64_t size[2] = { 0 };
    TARE_TRY(window_function_of(&function, tare_node_string(kernel->node, "kernel_type", "lanczos3")));
    TARE_TRY(crop_size(size, &kernel->inputs[1]));
    if (images->shape.rank != 4) return TARE_FAIL(TARE_SHAPE, "images has rank %d (expected 4)", images->shape.rank);
    if (kernel->inputs[2].elements != 2 || kernel->inputs[3].elements != 2)
        return TARE_FAIL(TARE_SHAPE, "scale and translation must have 2 elements");
    struct tare_shape shape = images->shape;
    shape.dims[1] = size[0];
    shape.dims[2] = size[1];
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    if (images->elements == 0) return TARE_FAIL(TARE_SHAPE, "empty images");
    const float *scale = kernel->inputs[2].data, *translation = kernel->inputs[3].data;
    struct span *spans[2];
    for (int i = 0; i < 2; i++) {
        if (!(scale[i] > 0) || !isfinite(scale[i]) || !isfinite(translation[i]) || !isfinite(1.0f / scale[i]) ||
            1.0f / scale[i] > 1e9f)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "scale %g, translation %g", (double)scale[i],
                             (double)translation[i]);
        spans[i] = TARE_NEW_ARRAY(kernel->scratch, struct span, (size_t)size[i]);
        if (!spans[i]) return TARE_NO_MEMORY;
        TARE_TRY(make_spans(spans[i], kernel->scratch, images->shape.dims[i + 1], size[i], scale[i], translation[i],
                            tare_node_bool(kernel->node, "antialias", true), function));
    }
    const float *from = tare_floats_in(kernel, images);
    if (!from) return TARE_NO_MEMORY;
    return translate_images(kernel, from, &images->shape, &shape, spans);
}

const struct tare_op tare_ops_crop[] = {
    { .name = "CropAndResize", .infer = infer_crop, .run = run_crop },
    { .name = "ScaleAndTranslate", .infer = infer_translate, .run = run_translate },
    { 0 },
};
