/* Share of sequences whose tokens are all right. McNemar's exact test. */
#include "eval/measure_row.h"
#include "eval/significance.h"

static bool has(const struct tare_metrics *m) {
    return m->positions.known && !m->positions.mask;
}

static double value(const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    return 100 * tare_metrics_share(counts->whole, counts->examples);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    tare_share_interval(low, high, counts->whole, counts->examples);
    *low *= 100;
    *high *= 100;
}

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    const struct tare_position_counts *counts = tare_positions_counts(&m->positions);
    (void)reference;
    return tare_paired_p(counts->gained, counts->lost);
}

const struct tare_measure_row tare_measure_sequence = {
    .key = "sequence",
    .measure = { "sequence accuracy", "sequences", " %", false, TARE_MEASURE_SEQUENCE },
    .needs = "a label per position: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .p = p,
};
