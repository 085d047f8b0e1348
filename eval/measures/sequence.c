/* Share of sequences whose tokens are all right. */
#include "eval/measure_row.h"

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

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    const struct tare_position_counts *a = tare_positions_counts(&m->positions);
    const struct tare_position_counts *b = tare_positions_counts(&other->positions);
    int64_t gained = 0, lost = 0;
    for (size_t i = 0; i < a->shares.count && a->shares.count == b->shares.count; i++) {
        const bool right = tare_series_next(&a->shares, i) >= 1, other_right = tare_series_next(&b->shares, i) >= 1;
        gained += right && !other_right;
        lost += !right && other_right;
    }
    tare_paired_shares(out, gained, lost, a->shares.count == b->shares.count ? a->examples : 0, tail);
    tare_paired_scale(out, 100);
}

static double chance(const struct tare_metrics *m) {
    (void)m;
    return 0;
}

const struct tare_measure_row tare_measure_sequence = {
    .key = "sequence",
    .measure = { "sequence accuracy", "sequences", " %", false, TARE_MEASURE_SEQUENCE },
    .needs = "a label per position: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
    .chance = chance,
    .guess = "one sequence for all",
};
