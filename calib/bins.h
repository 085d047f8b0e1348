/* A histogram in the form that calibration algorithms use: bins in ascending order of value, with prefix sums. */
#ifndef TARE_CALIB_BINS_H
#define TARE_CALIB_BINS_H

#include "calib/statistics.h"

struct tare_bins {
    size_t count;
    struct tare_histogram_bin *bins; /* ascending; zero is a bin of its own; the outermost are cut to low and high */
    double *centers;                 /* followed by infinity */
    /* Prefix sums with count + 1 entries: entry i is over bins 0 … i-1. Values, value, value squared, at centres. */
    double *counts, *sums, *squares;
    double low, high; /* exact extremes of the finite values */
    /* Number of bins below a value's own, by the page of its sign and exponent: before[page] + below[…] if the page
     * contains bins; `below` has TARE_HISTOGRAM_BINS entries for each such page. */
    uint32_t before[TARE_HISTOGRAM_PAGES];
    int16_t place[TARE_HISTOGRAM_PAGES]; /* of the page in `below`; -1: the page contains no bin */
    uint16_t *below;
    uint32_t negative; /* bins of negative values */
};

/* TARE_NOT_FOUND when no finite value was seen. */
tare_status tare_bins_make(struct tare_bins *out, const struct tare_statistics *statistics) TARE_WARN_UNUSED;
void tare_bins_free(struct tare_bins *bins);
/* The number of bins whose centre is below `value`; in constant time. */
size_t tare_bins_below(const struct tare_bins *bins, double value);
static inline double tare_bins_total(const struct tare_bins *bins) {
    return bins->counts[bins->count];
}

#endif
