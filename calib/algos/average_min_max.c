/* average_min_max: the mean over samples of each sample's minimum (maximum). A sample is one record in one execution of
 * the node, whatever the batch size. The sums of minima and maxima are exact (base/exact_sum.h) and rounded once here,
 * so the range does not depend on threads, batches or the order of the records. */
#include "calib/algos/rows.h"

static tare_status range(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme) {
    (void)values;
    (void)scheme;
    double samples = (double)statistics->finite_samples;
    out->low = tare_exact_sum_value(&statistics->sum_of_minima) / samples;
    out->high = tare_exact_sum_value(&statistics->sum_of_maxima) / samples;
    /* The division rounds; the exact mean is between the extremes. */
    if (out->low < bins->low) out->low = bins->low;
    if (out->high > bins->high) out->high = bins->high;
    if (out->low > out->high) out->low = out->high;
    return TARE_OK;
}

static const char *const tensorflow_names[] = { "CALIBRATION_METHOD_AVERAGE_MIN_MAX", NULL };
const struct tare_algorithm tare_algorithm_average_min_max = {
    .name = "average_min_max",
    .help = "the mean over records of each record's least and greatest value",
    .tensorflow_names = tensorflow_names,
    .range = range,
    .of_extremes = true,
};
