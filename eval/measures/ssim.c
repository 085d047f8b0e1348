/* Mean structural similarity to expected images. Intervals by example. */
#include "eval/measure_row.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->images.ssim.count > 0 && !isnan(m->images.ssim.values[0]);
}

static double value(const struct tare_metrics *m) {
    double sum = 0;
    for (size_t i = 0; i < m->images.ssim.count; i++)
        sum += tare_series_next(&m->images.ssim, i);
    return sum / (double)m->images.ssim.count;
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_mean_interval(low, high, &m->images.ssim);
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    tare_paired_means(out, &m->images.ssim, &other->images.ssim, tail);
    tare_paired_scale(out, -1);
}

const struct tare_measure_row tare_measure_ssim = {
    .key = "ssim",
    .measure = { "SSIM", "SSIM", "", false, TARE_MEASURE_SSIM },
    .needs = "an image per example: --target",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
};
