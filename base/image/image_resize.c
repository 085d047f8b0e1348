/* Resizing images. Each rule is a list of weights per new row and column; columns are resized first, then rows. */
#include "base/image/image.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* The weights of one axis: new pixel i is computed from old pixels first[i] … first[i] + count[i] - 1. */
struct taps {
    int64_t *first, *count;
    double *weights; /* `most` per new pixel */
    size_t most;
};

static void free_taps(struct taps *taps) {
    tare_free(taps->first);
    tare_free(taps->count);
    tare_free(taps->weights);
}

static int64_t clamp(double x, int64_t size) {
    if (!(x > 0)) return 0;
    return x < (double)size ? (int64_t)x : size - 1;
}

/* Sets the weights of old pixels `from` … `to` (inside the image), normalized to sum to 1. */
static void spread(struct taps *taps, int64_t i, int64_t from, int64_t to, double centre, double half_width,
                   enum tare_resize_rule rule) {
    double *weights = taps->weights + (size_t)i * taps->most, sum = 0;
    taps->first[i] = from;
    taps->count[i] = to - from + 1;
    for (int64_t j = from; j <= to; j++) {
        double weight;
        if (rule == TARE_RESIZE_AREA)
            weight = fmin((double)j + 1, centre + half_width) - fmax((double)j, centre - half_width);
        else
            weight = 1 - fabs((double)j + 0.5 - centre) / half_width;
        sum += weights[j - from] = fmax(weight, 0);
    }
    for (int64_t j = from; j <= to; j++)
        weights[j - from] /= sum;
}

static void fill_taps(struct taps *taps, int64_t new_size, int64_t size, enum tare_resize_rule rule) {
    double scale = (double)size / (double)new_size;
    for (int64_t i = 0; i < new_size; i++) {
        double centre = ((double)i + 0.5) * scale, below = floor(centre - 0.5);
        double half_width = rule == TARE_RESIZE_AREA ? scale / 2 : fmax(scale, 1);
        double *weights = taps->weights + (size_t)i * taps->most;
        switch (rule) {
        case TARE_RESIZE_NEAREST: /* in float, as TensorFlow: the position is at times just below an integer */
            taps->first[i] = clamp((double)floorf(((float)i + 0.5F) * ((float)size / (float)new_size)), size);
            taps->count[i] = 1;
            weights[0] = 1;
            break;
        case TARE_RESIZE_BILINEAR: /* beyond the border the outermost pixel is repeated */
            taps->first[i] = clamp(below, size);
            taps->count[i] = below >= 0 && below + 1 < (double)size ? 2 : 1;
            weights[1] = centre - 0.5 - below;
            weights[0] = taps->count[i] == 2 ? 1 - weights[1] : 1;
            break;
        default:
            spread(taps, i, clamp(floor(centre - half_width), size), clamp(ceil(centre + half_width) - 1, size), centre,
                   half_width, rule);
        }
    }
}

static tare_status make_taps(struct taps *taps, int64_t new_size, int64_t size, enum tare_resize_rule rule) {
    double most =
        rule == TARE_RESIZE_AREA || rule == TARE_RESIZE_ANTIALIAS ? 2 * ((double)size / (double)new_size) + 4 : 2;
    memset(taps, 0, sizeof *taps);
    taps->most = (size_t)fmin(most, (double)size + 2);
    taps->first = tare_calloc((size_t)new_size, sizeof *taps->first);
    taps->count = tare_calloc((size_t)new_size, sizeof *taps->count);
    taps->weights = tare_calloc((size_t)new_size, taps->most * sizeof *taps->weights);
    if (!taps->first || !taps->count || !taps->weights) return TARE_NO_MEMORY;
    fill_taps(taps, new_size, size, rule);
    return TARE_OK;
}

/* Resizes one row to the new width. */
static void resize_row(float *out, const struct tare_tensor *image, int64_t y, const struct taps *taps, int64_t width) {
    int64_t channels = image->shape.dims[2], row = y * image->shape.dims[1] * channels;
    const uint8_t *bytes = TARE_CONST_DATA(uint8_t, image);
    const float *floats = TARE_CONST_DATA(float, image);
    bool is_float = image->dtype == TARE_DT_FLOAT;
    for (int64_t x = 0; x < width; x++) {
        const double *weights = taps->weights + (size_t)x * taps->most;
        for (int64_t c = 0; c < channels; c++) {
            int64_t at = row + taps->first[x] * channels + c;
            double sum = 0;
            for (int64_t k = 0; k < taps->count[x]; k++, at += channels)
                sum += weights[k] * (is_float ? (double)floats[at] : (double)bytes[at]);
            *out++ = (float)sum;
        }
    }
}

static void resize_columns(float *out, const float *rows, const struct taps *taps, int64_t height, int64_t row) {
    for (int64_t y = 0; y < height; y++, out += row) {
        const double *weights = taps->weights + (size_t)y * taps->most;
        const float *from = rows + taps->first[y] * row;
        for (int64_t i = 0; i < row; i++) {
            double sum = 0;
            for (int64_t k = 0; k < taps->count[y]; k++)
                sum += weights[k] * (double)from[k * row + i];
            out[i] = (float)sum;
        }
    }
}

tare_status tare_image_resize(struct tare_tensor *image, int64_t height, int64_t width, enum tare_resize_rule rule) {
    const struct tare_shape shape = { .rank = 3, .dims = { height, width, image->shape.dims[2] } };
    const struct tare_shape between = { .rank = 3, .dims = { image->shape.dims[0], width, shape.dims[2] } };
    struct tare_tensor rows = { 0 }, out = { 0 };
    struct taps across = { 0 }, down = { 0 };
    tare_status status;
    if (height < 1 || width < 1 || image->elements == 0)
        return TARE_FAIL(TARE_SHAPE, "an image cannot be resized to %lld x %lld", (long long)height, (long long)width);
    TARE_CHECK(make_taps(&across, width, image->shape.dims[1], rule));
    TARE_CHECK(make_taps(&down, height, image->shape.dims[0], rule));
    TARE_CHECK(tare_tensor_new(&rows, TARE_DT_FLOAT, &between));
    TARE_CHECK(tare_tensor_new(&out, TARE_DT_FLOAT, &shape));
    for (int64_t y = 0; y < between.dims[0]; y++)
        resize_row(TARE_DATA(float, &rows) + y * width * shape.dims[2], image, y, &across, width);
    resize_columns(out.data, rows.data, &down, height, width * shape.dims[2]);
    tare_tensor_reset(image);
    *image = out;
done:
    if (status != TARE_OK) tare_tensor_reset(&out);
    tare_tensor_reset(&rows);
    free_taps(&across);
    free_taps(&down);
    return status;
}
