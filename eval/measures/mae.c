/* Mean absolute error against expected values. Intervals by example. */
#include "eval/measure_row.h"

static bool has(const struct tare_metrics *m) {
    return m->expected.count > 0;
}

static double value(const struct tare_metrics *m) {
    return m->expected_error / (double)m->expected.count;
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_mean_interval(low, high, &m->errors.absolute);
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    tare_paired_means(out, &m->errors.absolute, &other->errors.absolute, tail);
}

const struct tare_measure_row tare_measure_mae = {
    .key = "mae",
    .measure = { "mean absolute error", "MAE", "", true, TARE_MEASURE_MAE },
    .needs = "the value of each output element: --target",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
};
