/* Root of the mean squared error against expected values. Intervals of the squared errors by example. */
#include "eval/measure_row.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->expected.count > 0;
}

static double value(const struct tare_metrics *m) {
    return sqrt(m->expected_squared_error / (double)m->expected.count);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_mean_interval(low, high, &m->errors.squared);
    *low = sqrt(fmax(0, *low));
    *high = sqrt(*high);
}

static double root(double reference, double more) {
    return sqrt(fmax(0, reference * reference + more)) - reference;
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    const double reference = value(other);
    tare_paired_means(out, &m->errors.squared, &other->errors.squared, tail);
    if (reference > 0) out->spread /= 2 * reference;
    out->loss = root(reference, out->loss);
    if (!isnan(out->low)) out->low = root(reference, out->low); /* fmax would lose the NaN */
    if (!isnan(out->high)) out->high = root(reference, out->high);
}

static double chance(const struct tare_metrics *m) {
    return sqrt(tare_metrics_variance(m));
}

const struct tare_measure_row tare_measure_rmse = {
    .key = "rmse",
    .measure = { "root mean squared error", "RMSE", "", true, TARE_MEASURE_RMSE },
    .needs = "the value of each output element: --target",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
    .chance = chance,
    .guess = "the mean of the expected values",
};
