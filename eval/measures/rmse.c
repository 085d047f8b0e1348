/* Root of the mean squared error against expected values. Bootstrap of the squared errors by example. */
#include "eval/measure_row.h"
#include "eval/significance.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->expected_elements > 0;
}

static double value(const struct tare_metrics *m) {
    return sqrt(m->expected_squared_error / (double)m->expected_elements);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_mean_interval(low, high, m->errors.squared, m->errors.count);
    *low = sqrt(fmax(0, *low));
    *high = sqrt(*high);
}

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    if (m->errors.count != reference->errors.count) return NAN;
    return tare_paired_mean_p(m->errors.squared, reference->errors.squared, m->errors.count);
}

const struct tare_measure_row tare_measure_rmse = {
    .key = "rmse",
    .measure = { "root mean squared error", "RMSE", "", true, TARE_MEASURE_RMSE },
    .needs = "the value of each output element: --target",
    .has = has,
    .value = value,
    .interval = interval,
    .p = p,
};
