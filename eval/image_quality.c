/* PSNR and SSIM by a Gaussian window, channel by channel. */
#include "eval/image_quality.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { WINDOW = 11, MOST_CHANNELS = 4 };
static const double EXACT_DB = 100;

bool tare_is_images(const struct tare_tensor *value, int64_t rows) {
    const struct tare_shape *shape = &value->shape;
    if (!tare_dtype_is_floating(value->dtype) || (shape->rank != 3 && shape->rank != 4) || shape->dims[0] != rows)
        return false;
    return shape->dims[1] > 1 && shape->dims[2] > 1 && (shape->rank == 3 || shape->dims[3] <= MOST_CHANNELS);
}

/* One image of two tensors with the same elements. */
struct pair {
    const struct tare_tensor *value, *expected;
    int64_t first, height, width, channels;
    double peak;
    double level; /* of the expected image: subtracted from what is squared, so that variances keep their digits */
};

static double peak_of(const struct pair *p) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = p->first; i < p->first + p->height * p->width * p->channels; i++) {
        const double x = tare_tensor_get_f64(p->expected, i);
        low = fmin(low, x);
        high = fmax(high, x);
    }
    if (p->expected->dtype == TARE_DT_UINT8) return 255;
    if (low >= 0 && high <= 1) return 1;
    if (low >= -1 && high <= 1) return 2;
    return low >= 0 && high <= 255 ? 255 : high - low;
}

/* The first finite element of the expected image. */
static double level_of(const struct pair *p) {
    const int64_t end = p->first + p->height * p->width * p->channels;
    for (int64_t i = p->first; i < end; i++) {
        const double x = tare_tensor_get_f64(p->expected, i);
        if (isfinite(x)) return x;
    }
    return 0;
}

/* Over the elements that have finite differences: a target is NaN where it is not known. NaN without any, and for a
 * constant image outside of the known ranges, which has no peak. */
static double psnr_of(const struct pair *p) {
    const int64_t elements = p->height * p->width * p->channels;
    int64_t count = 0;
    double squares = 0;
    for (int64_t i = p->first; i < p->first + elements; i++) {
        const double d = tare_tensor_get_f64(p->value, i) - tare_tensor_get_f64(p->expected, i);
        if (!isfinite(d)) continue;
        squares += d * d;
        count++;
    }
    if (!count || !(p->peak > 0)) return NAN;
    return squares > 0 ? fmin(EXACT_DB, 10 * log10(p->peak * p->peak * (double)count / squares)) : EXACT_DB;
}

/* ---- SSIM ---- */

enum { MEAN_X, MEAN_Y, XX, YY, XY, MAPS };

/* Weighted sums of WINDOW values that are `step` apart, for `count` starts. */
static void blur(double *to, const double *from, const double *weights, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int64_t k = 0; k < WINDOW; k++)
            sum += weights[k] * from[i + k * step];
        to[i] = sum;
    }
}

/* One of the products of both images, less their level, at a position. */
static double product(const struct pair *p, int map, int64_t at) {
    const double x = tare_tensor_get_f64(p->value, at) - p->level, y = tare_tensor_get_f64(p->expected, at) - p->level;
    const double products[MAPS] = { x, y, x * x, y * y, x * y };
    return products[map];
}

/* Local means of one product at every position of the window: lines first, then columns. */
static void local_means(double *out, double *room, const struct pair *p, int64_t channel, int map,
                        const double *weights) {
    const int64_t height = p->height, width = p->width, columns = width - WINDOW + 1;
    double *plane = room, *rows = room + height * width;
    for (int64_t i = 0; i < height * width; i++)
        plane[i] = product(p, map, p->first + i * p->channels + channel);
    for (int64_t line = 0; line < height; line++)
        blur(&rows[line * columns], &plane[line * width], weights, columns, 1);
    blur(out, rows, weights, (height - WINDOW + 1) * columns, columns);
}

static double similarity(const double *const maps[MAPS], int64_t at, const struct pair *p) {
    const double c1 = 1e-4 * p->peak * p->peak, c2 = 9e-4 * p->peak * p->peak;
    const double own_x = maps[MEAN_X][at], own_y = maps[MEAN_Y][at], x = own_x + p->level, y = own_y + p->level;
    const double xx = maps[XX][at] - own_x * own_x, yy = maps[YY][at] - own_y * own_y;
    const double xy = maps[XY][at] - own_x * own_y;
    return (2 * x * y + c1) * (2 * xy + c2) / ((x * x + y * y + c1) * (xx + yy + c2));
}

static void make_weights(double *weights) {
    double sum = 0;
    for (int k = 0; k < WINDOW; k++)
        sum += weights[k] = exp(-(k - WINDOW / 2) * (k - WINDOW / 2) / (2 * 1.5 * 1.5));
    for (int k = 0; k < WINDOW; k++)
        weights[k] /= sum;
}

static tare_status ssim_of(double *out, const struct pair *p) {
    const int64_t lines = p->height - WINDOW + 1, columns = p->width - WINDOW + 1, positions = lines * columns;
    const size_t plane = (size_t)(p->height * p->width);
    double weights[WINDOW], sum = 0, *room;
    const double *maps[MAPS];
    *out = NAN;
    if (lines < 1 || columns < 1) return TARE_OK;
    if (!(room = tare_calloc((MAPS + 2) * plane, sizeof *room))) return TARE_NO_MEMORY;
    make_weights(weights);
    for (int64_t c = 0; c < p->channels; c++) {
        for (int map = 0; map < MAPS; map++) {
            double *into = room + (size_t)(map + 2) * plane;
            local_means(into, room, p, c, map, weights);
            maps[map] = into;
        }
        for (int64_t i = 0; i < positions; i++)
            sum += similarity(maps, i, p);
    }
    *out = sum / (double)(positions * p->channels);
    tare_free(room);
    return TARE_OK;
}

/* ---- examples ---- */

tare_status tare_image_quality_add(struct tare_image_quality *q, const struct tare_tensor *value,
                                   const struct tare_tensor *expected, int64_t rows) {
    const struct tare_shape *shape = &value->shape;
    struct pair p = { .value = value,
                      .expected = expected,
                      .height = shape->dims[1],
                      .width = shape->dims[2],
                      .channels = shape->rank == 4 ? shape->dims[3] : 1 };
    for (int64_t r = 0; r < rows; r++) {
        p.first = r * p.height * p.width * p.channels;
        p.peak = peak_of(&p);
        p.level = level_of(&p);
        double ssim;
        TARE_TRY(ssim_of(&ssim, &p));
        TARE_TRY(tare_series_add(&q->psnr, psnr_of(&p)));
        TARE_TRY(tare_series_add(&q->ssim, ssim));
    }
    return TARE_OK;
}

void tare_image_quality_reset(struct tare_image_quality *q) {
    tare_series_reset(&q->psnr);
    tare_series_reset(&q->ssim);
}
