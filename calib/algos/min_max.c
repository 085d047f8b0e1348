/* min_max: the exact minimum and maximum. */
#include "calib/algos/rows.h"

static tare_status range(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme) {
    (void)statistics;
    (void)values;
    (void)scheme;
    out->low = bins->low;
    out->high = bins->high;
    return TARE_OK;
}

static const char *const tensorflow_names[] = { "CALIBRATION_METHOD_UNSPECIFIED", "CALIBRATION_METHOD_MIN_MAX", NULL };
const struct tare_algorithm tare_algorithm_min_max = {
    .name = "min_max",
    .help = "the exact least and greatest value",
    .tensorflow_names = tensorflow_names,
    .range = range,
    .of_extremes = true,
};
