/* Coefficient of determination. Its test is that of the squared errors; it has no interval. */
#include "eval/measure_row.h"
#include "eval/significance.h"

#include <math.h>

static bool has(const struct tare_metrics *m) {
    return m->expected_elements > 0;
}

static double value(const struct tare_metrics *m) {
    return tare_metrics_r2(m);
}

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    if (m->errors.count != reference->errors.count) return NAN;
    return tare_paired_mean_p(m->errors.squared, reference->errors.squared, m->errors.count);
}

const struct tare_measure_row tare_measure_r2 = {
    .key = "r2",
    .measure = { "R²", "R²", "", false, TARE_MEASURE_R2 },
    .needs = "the value of each output element: --target",
    .has = has,
    .value = value,
    .p = p,
};
