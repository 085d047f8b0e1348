/* percentile: clips a share of the values at both ends. */
#include "calib/algos/rows.h"

#include <math.h>

enum { MIN_PERCENTILE, MAX_PERCENTILE, P };

/* The quantile at `share`: this share of the values is below it, by linear interpolation inside the bin. */
static double quantile(const struct tare_bins *bins, double share) {
    double target = share * tare_bins_total(bins);
    size_t low = 0, high = bins->count - 1; /* first bin at whose upper end the count is at least the target */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bins->counts[middle + 1] < target) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct tare_histogram_bin *bin = &bins->bins[low];
    double part = (target - bins->counts[low]) / (double)bin->count;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return bin->low + part * (bin->high - bin->low);
}

/* Number of values below `end` (`include`: or at it); a bin that straddles it counts in proportion. */
static double count_below(const struct tare_bins *bins, double end, bool include) {
    size_t low = 0, high = bins->count; /* first bin that ends at or above */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bins->bins[middle].high < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == bins->count || bins->bins[low].low > end) return bins->counts[low];
    const struct tare_histogram_bin *bin = &bins->bins[low];
    double width = bin->high - bin->low, part = width > 0 ? (end - bin->low) / width : include;
    return bins->counts[low] + part * (double)bin->count;
}

/* The quantile of the magnitudes at `share`. */
static double magnitude_quantile(const struct tare_bins *bins, double share) {
    double low = 0, high = fmax(fabs(bins->low), fabs(bins->high)), target = share * tare_bins_total(bins);
    for (int i = 0; i < 100; i++) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high) break;
        if (count_below(bins, middle, true) - count_below(bins, -middle, false) < target) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

static tare_status range(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme) {
    (void)statistics;
    double from = values[MIN_PERCENTILE], to = values[MAX_PERCENTILE];
    if (values[P] > 0) {
        to = values[P];
        from = 100 - to;
    }
    if (from >= to)
        return TARE_FAIL(TARE_USAGE, "algorithm 'percentile': min_percentile is not below max_percentile (%g, %g)",
                         from, to);
    if (scheme->symmetric) {
        out->high = magnitude_quantile(bins, (to - from) / 100);
        out->low = -out->high;
        return TARE_OK;
    }
    out->low = fmax(bins->low, quantile(bins, from / 100));
    out->high = fmin(bins->high, quantile(bins, to / 100));
    return TARE_OK;
}

static const char *const tensorflow_names[] = { "CALIBRATION_METHOD_HISTOGRAM_PERCENTILE", NULL };
const struct tare_algorithm tare_algorithm_percentile = {
    .name = "percentile",
    .help = "cuts a share of the values off at both ends; when symmetric, the same share by magnitude",
    .parameters = {
        [MIN_PERCENTILE] = { "min_percentile", 0.001, 0, 100, "percent of the values that lie below the range" },
        [MAX_PERCENTILE] = { "max_percentile", 99.999, 0, 100, "percent of the values below its upper end" },
        [P] = { "p", 0, 50, 100, "short for max_percentile=p,min_percentile=100-p" },
    },
    .tensorflow_names = tensorflow_names,
    .range = range,
};
