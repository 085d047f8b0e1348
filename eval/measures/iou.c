/* Intersection over union of masks: of the positive class with one score per pixel, otherwise the mean over the classes
 * that occur, of all pixels together. Intervals: those of the mean IoU by example. */
#include "eval/measure_row.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->positions.known && m->positions.mask && !m->positions.uncounted;
}

static double value(const struct tare_metrics *m) {
    return 100 * tare_positions_iou(&m->positions);
}

/* The interval of the mean over examples, moved to the value over all pixels. */
static void interval(double *low, double *high, const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    double mean = 0;
    for (size_t i = 0; i < counts->ious.count; i++)
        mean += tare_series_next(&counts->ious, i) / (double)counts->ious.count;
    tare_mean_interval(low, high, &counts->ious);
    *low = fmax(0, value(m) + 100 * (*low - mean));
    *high = fmin(100, value(m) + 100 * (*high - mean));
}

/* Likewise. */
static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    const struct tare_position_counts *a = tare_positions_counts(&m->positions);
    const struct tare_position_counts *b = tare_positions_counts(&other->positions);
    tare_paired_means(out, &a->ious, &b->ious, tail);
    tare_paired_scale(out, -100);
    const double moved = value(other) - value(m) - out->loss;
    out->loss += moved;
    out->low += moved;
    out->high += moved;
}

static double chance(const struct tare_metrics *m) {
    double right, iou;
    tare_positions_constant(&right, &iou, &m->positions);
    return 100 * iou;
}

const struct tare_measure_row tare_measure_iou = {
    .key = "iou",
    .measure = { "IoU", "IoU", " %", false, TARE_MEASURE_IOU },
    .needs = "a label per position, of at most 256 classes: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
    .chance = chance,
    .guess = "the same class everywhere",
};
