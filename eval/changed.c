/* Keeps the clearest changes of a model, with a picture of each. */
#include "eval/changed.h"
#include "base/image/codec.h"
#include "eval/metrics.h"

#include <math.h>
#include <string.h>

enum { LARGEST_PICTURE = 64, LARGEST_IMAGE = 4096, SMALLEST_IMAGE = 4 };

/* ---- pictures ---- */

/* One image of an input: [rows, height, width, channels], [height, width, channels], or [rows, height, width]. */
struct image {
    const struct tare_tensor *tensor;
    int64_t first, height, width, channels;
};

static bool is_side(int64_t size) {
    return size >= SMALLEST_IMAGE && size <= LARGEST_IMAGE;
}

/* Whether example `row` of the input is an image. */
static bool find_image(struct image *out, const struct tare_tensor *input, int64_t examples, int64_t row) {
    const struct tare_shape *shape = &input->shape;
    const int batched = shape->rank > 2 && shape->dims[0] == examples && !(shape->rank == 3 && shape->dims[2] <= 3);
    const int64_t *dims = shape->dims + batched;
    const int rank = shape->rank - batched;
    if (!tare_dtype_is_floating(input->dtype) && !tare_dtype_is_integer(input->dtype)) return false;
    if (rank < 2 || rank > 3 || (!batched && examples != 1)) return false;
    *out = (struct image){ input, 0, dims[0], dims[1], rank == 3 ? dims[2] : 1 };
    if (!is_side(out->height) || !is_side(out->width) || (out->channels != 1 && out->channels != 3)) return false;
    out->first = batched ? row * (input->elements / examples) : 0;
    return true;
}

static const char *put_base64(struct tare_arena *arena, const struct tare_strbuf *bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = TARE_NEW_ARRAY(arena, char, (bytes->size + 2) / 3 * 4 + 1), *at = text;
    if (!text) return NULL;
    for (size_t i = 0; i < bytes->size; i += 3) {
        const size_t left = bytes->size - i;
        const uint32_t word = (uint32_t)(unsigned char)bytes->data[i] << 16 |
                              (left > 1 ? (uint32_t)(unsigned char)bytes->data[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)(unsigned char)bytes->data[i + 2] : 0);
        *at++ = digits[word >> 18];
        *at++ = digits[word >> 12 & 63];
        *at++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[word & 63] : '=';
    }
    *at = '\0';
    return text;
}

/* The image with its values from the smallest to the largest, at most 64 pixels high and wide. */
static tare_status draw(struct tare_changed_example *example, struct tare_arena *arena, const struct image *image) {
    uint8_t pixels[LARGEST_PICTURE * LARGEST_PICTURE * 3];
    const int64_t longest = image->height > image->width ? image->height : image->width;
    const int64_t step = (longest + LARGEST_PICTURE - 1) / LARGEST_PICTURE;
    const int64_t height = (image->height + step - 1) / step, width = (image->width + step - 1) / step;
    double low = INFINITY, high = -INFINITY;
    struct tare_strbuf png = { 0 };
    tare_status status;
    for (int64_t i = 0; i < image->height * image->width * image->channels; i++) {
        const double value = tare_tensor_get_f64(image->tensor, image->first + i);
        if (!isfinite(value)) continue;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < image->channels; c++) {
                const int64_t at = ((y * step) * image->width + x * step) * image->channels + c;
                const double value = tare_tensor_get_f64(image->tensor, image->first + at);
                const double share = high > low && isfinite(value) ? (value - low) / (high - low) : 0;
                pixels[(y * width + x) * image->channels + c] = (uint8_t)lround(255 * share);
            }
    status = tare_png_encode(&png, pixels, height, width, (int)image->channels, false, 9);
    if (status == TARE_OK && !(example->picture = put_base64(arena, &png))) status = TARE_NO_MEMORY;
    example->picture_height = (int)height;
    example->picture_width = (int)width;
    tare_strbuf_free(&png);
    return status;
}

static tare_status draw_input(struct tare_changed_example *example, struct tare_arena *arena,
                              const struct tare_sample *sample, int64_t examples) {
    struct image image;
    for (size_t i = 0; i < sample->count; i++)
        if (find_image(&image, &sample->values[i], examples, example->row)) return draw(example, arena, &image);
    return TARE_OK;
}

/* ---- examples ---- */

/* The place of an example among those that are kept; TARE_CHANGED_KEPT: it is not one of them. */
static size_t place_of(const struct tare_changed *changed, double from_margin) {
    size_t place = changed->count;
    while (place && changed->examples[place - 1].from_margin < from_margin)
        place--;
    return place;
}

static tare_status keep(struct tare_changed *changed, struct tare_arena *arena, struct tare_changed_example *example,
                        const struct tare_sample *sample, int64_t examples) {
    const size_t place = place_of(changed, example->from_margin);
    if (place == TARE_CHANGED_KEPT) return TARE_OK;
    if (!changed->examples) changed->examples = TARE_NEW_ARRAY(arena, struct tare_changed_example, TARE_CHANGED_KEPT);
    if (!changed->examples) return TARE_NO_MEMORY;
    TARE_TRY(draw_input(example, arena, sample, examples));
    if (changed->count < TARE_CHANGED_KEPT) changed->count++;
    memmove(&changed->examples[place + 1], &changed->examples[place],
            (changed->count - 1 - place) * sizeof *changed->examples);
    changed->examples[place] = *example;
    return TARE_OK;
}

tare_status tare_changed_add(struct tare_changed *changed, struct tare_arena *arena, const struct tare_sample *sample,
                             const struct tare_tensor *output, const struct tare_tensor *reference, int64_t examples,
                             const int64_t *labels, int64_t record) {
    if (output->elements != reference->elements) return TARE_OK;
    for (int64_t r = 0; r < examples; r++) {
        struct tare_changed_example example = { .record = record, .row = r, .label = labels ? labels[r] : -1 };
        if (!tare_metrics_prediction(&example.from, &example.from_margin, reference, examples, r) ||
            !tare_metrics_prediction(&example.to, &example.margin, output, examples, r))
            return TARE_OK;
        if (example.from == example.to) continue;
        changed->total++;
        TARE_TRY(keep(changed, arena, &example, sample, examples));
    }
    return TARE_OK;
}
