/* Resizing images. Each rule is a list of weights per new row and column; columns are resized first, then rows. */
#include "base/image/image.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { PIL_UNIT = 1 << 22 };

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

/* ---- rules: the weight of a pixel at a distance, in pixels, within the radius ---- */

static double triangle(double x) {
    return 1 - x;
}
static double keys_cubic(double x) {
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return ((-0.5 * x + 2.5) * x - 4) * x + 2;
}
static double mitchell_cubic(double x) {
    if (x < 1) return (7.0 / 6 * x - 2) * x * x + 8.0 / 9;
    return ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9;
}
static double lanczos(double x, double radius) {
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : radius * sin(pi * x) * sin(pi * x / radius) / (pi * pi * x * x);
}
static double lanczos3(double x) {
    return lanczos(x, 3);
}
static double lanczos5(double x) {
    return lanczos(x, 5);
}
static double gaussian(double x) {
    return exp(-2 * x * x);
}

static const struct rule {
    double radius; /* 0: not a function of the distance */
    double (*weight)(double distance);
} rules[] = {
    [TARE_RESIZE_BILINEAR] = { 1, triangle },   [TARE_RESIZE_NEAREST] = { 0, NULL },
    [TARE_RESIZE_AREA] = { 0, NULL },           [TARE_RESIZE_BICUBIC] = { 2, keys_cubic },
    [TARE_RESIZE_LANCZOS3] = { 3, lanczos3 },   [TARE_RESIZE_LANCZOS5] = { 5, lanczos5 },
    [TARE_RESIZE_GAUSSIAN] = { 1.5, gaussian }, [TARE_RESIZE_MITCHELL] = { 2, mitchell_cubic },
};

/* Sets the weights of the old pixels within `reach` of `centre`, normalized to sum 1. `rule` NULL: the area that a
 * pixel shares with [centre - reach, centre + reach]; otherwise by the distance of the centers, in units of `width`. */
static void spread(struct taps *taps, int64_t i, int64_t size, double centre, double reach, const struct rule *rule,
                   double width) {
    const int64_t from = clamp(floor(centre - reach), size), to = clamp(ceil(centre + reach) - 1, size);
    double *weights = taps->weights + (size_t)i * taps->most, sum = 0;
    taps->first[i] = from;
    taps->count[i] = to - from + 1;
    for (int64_t j = from; j <= to; j++) {
        double weight;
        if (rule) {
            const double distance = fabs((double)j + 0.5 - centre) / width;
            weight = distance < rule->radius ? rule->weight(distance) : 0;
        } else {
            weight = fmax(fmin((double)j + 1, centre + reach) - fmax((double)j, centre - reach), 0);
        }
        sum += weights[j - from] = weight;
    }
    for (int64_t j = from; j <= to; j++)
        weights[j - from] /= sum;
}

/* TensorFlow computes where the pixels are in float. Its bicubic takes weights from a table of 1024 steps a pixel. */
static void fill_weighted(struct taps *taps, int64_t new_size, int64_t size, const struct tare_resize *how) {
    const struct rule *rule = &rules[how->rule];
    const float inverse = 1 / ((float)new_size / (float)size);
    const double scale = how->pil ? (double)size / (double)new_size : (double)inverse;
    const double width = how->antialias || how->pil ? fmax(scale, 1) : 1;
    for (int64_t i = 0; i < new_size; i++) {
        double centre = how->pil ? ((double)i + 0.5) * scale : (double)(((float)i + 0.5F) * inverse);
        if (how->rule == TARE_RESIZE_BICUBIC && !how->pil && !how->antialias) {
            const float place = ((float)i + 0.5F) * ((float)size / (float)new_size) - 0.5F, below = floorf(place);
            centre = (double)below + rint((double)((place - below) * 1024)) / 1024 + 0.5;
        }
        spread(taps, i, size, centre, rule->radius * width, rule, width);
    }
}

/* New pixels are in the middle between old ones, and beyond the border the outermost pixel is repeated. */
static void fill_linear(struct taps *taps, int64_t new_size, int64_t size) {
    for (int64_t i = 0; i < new_size; i++) {
        const double place = ((double)i + 0.5) * ((double)size / (double)new_size) - 0.5, below = floor(place);
        double *weights = taps->weights + (size_t)i * taps->most;
        taps->first[i] = clamp(below, size);
        taps->count[i] = below >= 0 && below + 1 < (double)size ? 2 : 1;
        weights[1] = place - below;
        weights[0] = taps->count[i] == 2 ? 1 - weights[1] : 1;
    }
}

/* TensorFlow multiplies in float, PIL adds up in double: at times just below an integer. */
static void fill_nearest(struct taps *taps, int64_t new_size, int64_t size, bool pil) {
    const double step = (double)size / (double)new_size;
    double sum = step / 2;
    for (int64_t i = 0; i < new_size; i++, sum += step) {
        const float product = ((float)i + 0.5F) * ((float)size / (float)new_size);
        taps->first[i] = clamp(floor(pil ? sum : (double)product), size);
        taps->count[i] = 1;
        taps->weights[(size_t)i * taps->most] = 1;
    }
}

static void fill_area(struct taps *taps, int64_t new_size, int64_t size) {
    const double scale = (double)size / (double)new_size;
    for (int64_t i = 0; i < new_size; i++)
        spread(taps, i, size, ((double)i + 0.5) * scale, scale / 2, NULL, 1);
}

static void fill_taps(struct taps *taps, int64_t new_size, int64_t size, const struct tare_resize *how) {
    if (how->rule == TARE_RESIZE_NEAREST)
        fill_nearest(taps, new_size, size, how->pil);
    else if (how->rule == TARE_RESIZE_AREA)
        fill_area(taps, new_size, size);
    else if (how->rule == TARE_RESIZE_BILINEAR && !how->antialias && !how->pil)
        fill_linear(taps, new_size, size);
    else
        fill_weighted(taps, new_size, size, how);
}

static tare_status make_taps(struct taps *taps, int64_t new_size, int64_t size, const struct tare_resize *how) {
    const double reach = fmax(rules[how->rule].radius, 1) * fmax((double)size / (double)new_size, 1);
    memset(taps, 0, sizeof *taps);
    taps->most = (size_t)fmin(2 * reach + 4, (double)size + 2);
    taps->first = tare_calloc((size_t)new_size, sizeof *taps->first);
    taps->count = tare_calloc((size_t)new_size, sizeof *taps->count);
    taps->weights = tare_calloc((size_t)new_size, taps->most * sizeof *taps->weights);
    if (!taps->first || !taps->count || !taps->weights) return TARE_NO_MEMORY;
    fill_taps(taps, new_size, size, how);
    for (size_t i = 0; how->pil && i < (size_t)new_size * taps->most; i++)
        taps->weights[i] = round(taps->weights[i] * PIL_UNIT);
    return TARE_OK;
}

/* ---- sums ---- */

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

/* PIL's pass: the weights are in units of 2^-22, the sum is rounded half up to a byte. out[lines][new size][inner] of
 * from[lines][old size][inner]. */
static void resize_bytes(uint8_t *out, const uint8_t *from, const struct taps *taps, int64_t lines, int64_t size,
                         int64_t new_size, int64_t inner) {
    for (int64_t line = 0; line < lines; line++, from += size * inner) {
        for (int64_t i = 0; i < new_size; i++) {
            const double *weights = taps->weights + (size_t)i * taps->most;
            for (int64_t c = 0; c < inner; c++) {
                double sum = 0; /* of integers below 2^53: exact */
                for (int64_t k = 0; k < taps->count[i]; k++)
                    sum += weights[k] * from[(taps->first[i] + k) * inner + c];
                *out++ = (uint8_t)fmin(fmax(floor(sum / PIL_UNIT + 0.5), 0), UINT8_MAX);
            }
        }
    }
}

tare_status tare_image_resize(struct tare_tensor *image, int64_t height, int64_t width, const struct tare_resize *how) {
    const int dtype = how->pil ? TARE_DT_UINT8 : TARE_DT_FLOAT;
    const int64_t channels = image->shape.dims[2], row = width * channels;
    const struct tare_shape shape = { .rank = 3, .dims = { height, width, channels } };
    const struct tare_shape between = { .rank = 3, .dims = { image->shape.dims[0], width, channels } };
    struct tare_tensor rows = { 0 }, out = { 0 };
    struct taps across = { 0 }, down = { 0 };
    tare_status status;
    if (height < 1 || width < 1 || image->elements == 0)
        return TARE_FAIL(TARE_SHAPE, "an image cannot be resized to %lld x %lld", (long long)height, (long long)width);
    if (how->pil && image->dtype != TARE_DT_UINT8)
        return TARE_FAIL(TARE_TYPE, "PIL resizes an image of bytes (expected no step before that makes it %s)",
                         tare_dtype_name(image->dtype));
    if (how->pil && channels > 3)
        return TARE_FAIL(TARE_UNSUPPORTED, "PIL weights colors by alpha (expected channels: 1 or 3)");
    TARE_CHECK(make_taps(&across, width, image->shape.dims[1], how));
    TARE_CHECK(make_taps(&down, height, image->shape.dims[0], how));
    TARE_CHECK(tare_tensor_new(&rows, dtype, &between));
    TARE_CHECK(tare_tensor_new(&out, dtype, &shape));
    if (how->pil) {
        resize_bytes(rows.data, image->data, &across, between.dims[0], image->shape.dims[1], width, channels);
        resize_bytes(out.data, rows.data, &down, 1, between.dims[0], height, row);
    } else {
        for (int64_t y = 0; y < between.dims[0]; y++)
            resize_row(TARE_DATA(float, &rows) + y * row, image, y, &across, width);
        resize_columns(out.data, rows.data, &down, height, row);
    }
    tare_tensor_reset(image);
    *image = out;
done:
    if (status != TARE_OK) tare_tensor_reset(&out);
    tare_tensor_reset(&rows);
    free_taps(&across);
    free_taps(&down);
    return status;
}
