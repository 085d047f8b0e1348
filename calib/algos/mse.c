/* mse: the range whose integer grid, including the zero point, has the smallest squared error on the histogram.
 *
 * The error of one range is exact on the histogram and takes one binary search per code (calib/quantization_error.c),
 * so hundreds of ranges are compared in milliseconds. The search is described in calib/algos/search.c. */
#include "calib/algos/search.h"

static tare_status range(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme) {
    (void)statistics;
    (void)values;
    *out = scheme->symmetric ? tare_search_symmetric(bins, scheme) : tare_search_range(bins, scheme);
    return TARE_OK;
}

static const char *const tensorflow_names[] = { "CALIBRATION_METHOD_HISTOGRAM_MSE_BRUTEFORCE",
                                                "CALIBRATION_METHOD_HISTOGRAM_MSE_MAX_FREQUENCY", NULL };
const struct tare_algorithm tare_algorithm_mse = {
    .name = "mse",
    .help = "the range with the least squared error on its integer grid",
    .tensorflow_names = tensorflow_names,
    .range = range,
};
