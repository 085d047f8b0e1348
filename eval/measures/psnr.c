/* Mean over the examples of the peak signal-to-noise ratio against expected images. Bootstrap. */
#include "eval/measure_row.h"
#include "eval/significance.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->images.n > 0;
}

static double value(const struct tare_metrics *m) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < m->images.n; i++) {
        if (isnan(m->images.psnr[i])) continue;
        sum += m->images.psnr[i];
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_mean_interval(low, high, m->images.psnr, m->images.n);
}

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    if (m->images.n != reference->images.n) return NAN;
    return tare_paired_mean_p(m->images.psnr, reference->images.psnr, m->images.n);
}

const struct tare_measure_row tare_measure_psnr = {
    .key = "psnr",
    .measure = { "PSNR", "PSNR", " dB", false, TARE_MEASURE_PSNR },
    .needs = "an image per example: --target",
    .has = has,
    .value = value,
    .interval = interval,
    .p = p,
};
