/* DrawBoundingBoxes: draws the outlines of boxes into images. */
#include "interpreter/ops/families.h"
#include "interpreter/kernel.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 4 };

/* Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia (TensorFlow's default color table). */
static const float default_colors[][DEPTH] = {
    { 1, 1, 0, 1 },       { 0, 0, 1, 1 },    { 1, 0, 0, 1 },    { 0, 1, 0, 1 }, { 0.5f, 0, 0.5f, 1 },
    { 0.5f, 0.5f, 0, 1 }, { 0.5f, 0, 0, 1 }, { 0, 0, 0.5f, 1 }, { 0, 1, 1, 1 }, { 1, 0, 1, 1 },
};

struct palette {
    const float *colors;
    int64_t count, depth;
    bool gray; /* the first component of every color is 1 */
};

struct image {
    struct tare_tensor *tensor;
    int64_t first, height, width, depth;
};

static void set_pixel(const struct image *image, int64_t row, int64_t column, const struct palette *palette,
                      int64_t color) {
    for (int64_t c = 0; c < image->depth; c++) {
        const float part = palette->gray && c == 0 ? 1 : palette->colors[color * palette->depth + c];
        tare_tensor_set_f64(image->tensor, image->first + (row * image->width + column) * image->depth + c,
                            (double)part);
    }
}

static int64_t pixel_at(float place, int64_t size) {
    const float at = place * (float)(size - 1);
    if (!(at > -0x1p40f)) return -(INT64_C(1) << 40); /* also NaN */
    return at < 0x1p40f ? (int64_t)at : INT64_C(1) << 40;
}

static void draw_box(const struct image *image, const float box[4], const struct palette *palette, int64_t color) {
    const int64_t top = pixel_at(box[0], image->height), bottom = pixel_at(box[2], image->height);
    const int64_t left = pixel_at(box[1], image->width), right = pixel_at(box[3], image->width);
    if (top > bottom || left > right || top >= image->height || bottom < 0 || left >= image->width || right < 0) return;
    const int64_t first_row = top < 0 ? 0 : top, last_row = bottom < image->height ? bottom : image->height - 1;
    const int64_t first_column = left < 0 ? 0 : left, last_column = right < image->width ? right : image->width - 1;
    for (int64_t i = first_column; i <= last_column; i++) {
        if (top >= 0) set_pixel(image, top, i, palette, color);
        if (bottom < image->height) set_pixel(image, bottom, i, palette, color);
    }
    for (int64_t i = first_row; i <= last_row; i++) {
        if (left >= 0) set_pixel(image, i, left, palette, color);
        if (right < image->width) set_pixel(image, i, right, palette, color);
    }
}

static tare_status infer_draw(struct tare_infer *infer) {
    if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank != 4)
        return TARE_FAIL(TARE_SHAPE, "The rank of the images should be 4");
    if (infer->inputs[1].rank >= 0 && infer->inputs[1].rank != 3)
        return TARE_FAIL(TARE_SHAPE, "The rank of the boxes tensor should be 3");
    infer->outputs[0] = infer->inputs[0];
    return TARE_OK;
}

static tare_status palette_of(struct palette *palette, const struct tare_kernel *kernel, int64_t depth) {
    *palette = (struct palette){ default_colors[0], sizeof default_colors / sizeof *default_colors, DEPTH, depth == 1 };
    if (kernel->n_inputs < 3 || kernel->inputs[2].elements == 0) return TARE_OK;
    const struct tare_tensor *colors = &kernel->inputs[2];
    if (colors->shape.rank != 2)
        return TARE_FAIL(TARE_SHAPE, "colors must be a 2-D matrix, got rank %d", colors->shape.rank);
    if (colors->shape.dims[1] < depth)
        return TARE_FAIL(TARE_SHAPE, "colors have %lld channels (expected at least the images' %lld)",
                         (long long)colors->shape.dims[1], (long long)depth);
    palette->gray = false;
    palette->colors = colors->data;
    palette->count = colors->shape.dims[0];
    palette->depth = colors->shape.dims[1];
    return TARE_OK;
}

static tare_status run_draw(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0], *boxes = &kernel->inputs[1];
    struct palette palette;
    if (input->shape.rank != 4) return TARE_FAIL(TARE_SHAPE, "The rank of the images should be 4");
    if (boxes->shape.rank != 3 || boxes->shape.dims[2] != 4)
        return TARE_FAIL(TARE_SHAPE, "boxes must be [batch, boxes, 4], got rank %d", boxes->shape.rank);
    const int64_t batch = input->shape.dims[0], depth = input->shape.dims[3];
    if (boxes->shape.dims[0] != batch)
        return TARE_FAIL(TARE_SHAPE, "The batch sizes should be the same: %lld and %lld", (long long)batch,
                         (long long)boxes->shape.dims[0]);
    if (depth != 1 && depth != 3 && depth != 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), not %lld", (long long)depth);
    TARE_TRY(palette_of(&palette, kernel, depth));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    if (input->elements == 0) return TARE_OK;
    memcpy(kernel->outputs[0].data, input->data, tare_tensor_bytes(input));
    for (int64_t b = 0; b < batch; b++) {
        const struct image image = { &kernel->outputs[0], b * (input->elements / batch), input->shape.dims[1],
                                     input->shape.dims[2], depth };
        for (int64_t i = 0; i < boxes->shape.dims[1]; i++)
            draw_box(&image, TARE_CONST_DATA(float, boxes) + (b * boxes->shape.dims[1] + i) * 4, &palette,
                     i % palette.count);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_draw[] = {
    { .name = "DrawBoundingBoxes", .infer = infer_draw, .run = run_draw },
    { .name = "DrawBoundingBoxesV2", .infer = infer_draw, .run = run_draw },
    { 0 },
};
