/* Energy of the float outputs over that of the difference from them. It needs no labels and has no test. */
#include "eval/measure_row.h"

static bool has(const struct tare_metrics *m) {
    (void)m;
    return true;
}

static double value(const struct tare_metrics *m) {
    return tare_metrics_sqnr_db(m);
}

const struct tare_measure_row tare_measure_sqnr = {
    .key = "sqnr",
    .measure = { "SQNR", "SQNR", " dB", false, TARE_MEASURE_SQNR },
    .needs = "a numeric output",
    .has = has,
    .value = value,
};
