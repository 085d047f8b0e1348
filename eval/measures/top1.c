/* Share of labelled rows that are right: by class, or of one score at its threshold. */
#include "eval/measure_row.h"

static bool has(const struct tare_metrics *m) {
    return m->labelled > 0;
}

static double value(const struct tare_metrics *m) {
    return 100 * tare_metrics_share(m->top1, m->labelled);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_share_interval(low, high, m->top1, m->labelled);
    *low *= 100;
    *high *= 100;
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    const size_t count = m->judged.count == other->judged.count ? m->judged.count : 0;
    int64_t gained = 0, lost = 0;
    for (size_t i = 0; i < count; i++) {
        gained += tare_metrics_is_right(m, i) && !tare_metrics_is_right(other, i);
        lost += !tare_metrics_is_right(m, i) && tare_metrics_is_right(other, i);
    }
    tare_paired_shares(out, gained, lost, (int64_t)count, tail);
    tare_paired_scale(out, 100);
}

static double chance(const struct tare_metrics *m) {
    return 100 * tare_metrics_majority(m);
}

const struct tare_measure_row tare_measure_top1 = {
    .key = "top1",
    .measure = { "top-1", "top-1", " %", false, TARE_MEASURE_TOP1 },
    .needs = "an integer label per example: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
    .chance = chance,
    .guess = "the most frequent label for all",
};
