/* Share of pixels, or of tokens, that are right. Intervals: those of the mean share by example, as the positions of an
 * example are not independent. */
#include "eval/measure_row.h"

static bool has(const struct tare_metrics *m) {
    return m->positions.known;
}

static double value(const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    return 100 * tare_metrics_share(counts->right, counts->count);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    tare_mean_interval(low, high, &counts->shares);
    *low *= 100;
    *high *= 100;
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    const struct tare_position_counts *a = tare_positions_counts(&m->positions);
    const struct tare_position_counts *b = tare_positions_counts(&other->positions);
    tare_paired_means(out, &a->shares, &b->shares, tail);
    tare_paired_scale(out, -100);
}

static double chance(const struct tare_metrics *m) {
    double right, iou;
    tare_positions_constant(&right, &iou, &m->positions);
    return 100 * right;
}

const struct tare_measure_row tare_measure_pixel_accuracy = {
    .key = "pixel_accuracy",
    .measure = { "accuracy by position", "by position", " %", false, TARE_MEASURE_PIXEL_ACCURACY },
    .needs = "a label per position: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
    .chance = chance,
    .guess = "the same class everywhere",
};
