/* Share of pixels, or of tokens, that are right. Interval and test: bootstrap of the share by example, as the positions
 * of an example are not independent. */
#include "eval/measure_row.h"
#include "eval/significance.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->positions.known;
}

static double value(const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    return 100 * tare_metrics_share(counts->right, counts->count);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    tare_mean_interval(low, high, counts->shares, counts->n);
    *low *= 100;
    *high *= 100;
}

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    const struct tare_position_counts *a = tare_positions_counts(&m->positions);
    const struct tare_position_counts *b = tare_positions_counts(&reference->positions);
    return a->n == b->n ? tare_paired_mean_p(a->shares, b->shares, a->n) : NAN;
}

const struct tare_measure_row tare_measure_pixel_accuracy = {
    .key = "pixel_accuracy",
    .measure = { "accuracy by position", "by position", " %", false, TARE_MEASURE_PIXEL_ACCURACY },
    .needs = "a label per position: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .p = p,
};
