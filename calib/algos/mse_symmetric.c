/* mse_symmetric: like mse, over ranges symmetric about zero. */
#include "calib/algos/search.h"

static tare_status range(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme) {
    (void)statistics;
    (void)values;
    *out = tare_search_symmetric(bins, scheme);
    return TARE_OK;
}

static const char *const tensorflow_names[] = { "CALIBRATION_METHOD_HISTOGRAM_MSE_SYMMETRIC", NULL };
const struct tare_algorithm tare_algorithm_mse_symmetric = {
    .name = "mse_symmetric",
    .help = "the range -t to t with the least squared error on its integer grid",
    .tensorflow_names = tensorflow_names,
    .range = range,
};
