/* Share of labelled rows that are right: by class, or of one score at its threshold. McNemar's exact test. */
#include "eval/measure_row.h"
#include "eval/significance.h"

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

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    (void)reference;
    return tare_paired_p(m->gained, m->lost);
}

const struct tare_measure_row tare_measure_top1 = {
    .key = "top1",
    .measure = { "top-1", "top-1", " %", false, TARE_MEASURE_TOP1 },
    .needs = "an integer label per example: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .p = p,
};
