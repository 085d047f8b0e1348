/* Mean over the examples of the peak signal-to-noise ratio against expected images. Intervals by example. */
#include "eval/measure_row.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->images.psnr.count > 0;
}

static double value(const struct tare_metrics *m) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < m->images.psnr.count; i++) {
        const double psnr = tare_series_next(&m->images.psnr, i);
        if (isnan(psnr)) continue;
        sum += psnr;
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_mean_interval(low, high, &m->images.psnr);
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    tare_paired_means(out, &m->images.psnr, &other->images.psnr, tail);
    tare_paired_scale(out, -1);
}

const struct tare_measure_row tare_measure_psnr = {
    .key = "psnr",
    .measure = { "PSNR", "PSNR", " dB", false, TARE_MEASURE_PSNR },
    .needs = "an image per example: --target",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
};
