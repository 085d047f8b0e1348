/* Coefficient of determination. Its paired interval is that of the squared errors; it has no other. */
#include "eval/measure_row.h"

static bool has(const struct tare_metrics *m) {
    return m->expected.count > 0;
}

static double value(const struct tare_metrics *m) {
    return tare_metrics_r2(m);
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    tare_paired_means(out, &m->errors.squared, &other->errors.squared, tail);
    tare_paired_scale(out, 1 / tare_metrics_variance(m));
}

const struct tare_measure_row tare_measure_r2 = {
    .key = "r2",
    .measure = { "R²", "R²", "", false, TARE_MEASURE_R2 },
    .needs = "the value of each output element: --target",
    .has = has,
    .value = value,
    .paired = paired,
};
