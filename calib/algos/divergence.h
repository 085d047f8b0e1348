/* The divergence of a distribution from what integer codes can represent of it, for algorithm entropy (entropy.c). */
#ifndef TARE_CALIB_ALGOS_DIVERGENCE_H
#define TARE_CALIB_ALGOS_DIVERGENCE_H

#include "calib/bins.h"

enum {
    TARE_MOST_HALF_BINS = 4096, /* bins on each side of zero, before merging */
    TARE_MOST_LINEAR_BINS = 2 * TARE_MOST_HALF_BINS,
};

/* Bins of equal width on both sides of zero. */
struct tare_linear_bins {
    int half; /* bins on each side of zero */
    double n[TARE_MOST_LINEAR_BINS];
    double count[TARE_MOST_LINEAR_BINS + 1], entropy[TARE_MOST_LINEAR_BINS + 1],
        filled[TARE_MOST_LINEAR_BINS + 1]; /* prefix sums */
    double total, width;
    double log_filled[TARE_MOST_LINEAR_BINS + 1]; /* by the number of nonempty bins of a code */
};

/* Resamples the counts of a histogram (zeros excluded) to bins of equal width up to the magnitude `reach`, which are
 * merged in pairs until there is evidence for each one. `out` is zeroed. */
void tare_linear_bins_make(struct tare_linear_bins *out, const struct tare_histogram_bin *bins, size_t count,
                           double reach);

enum { TARE_LOG_BITS = 10 };

/* Of the mantissas 1 + k / 2^TARE_LOG_BITS. */
struct tare_log_table {
    struct {
        double reciprocal, log;
    } entries[1 << TARE_LOG_BITS];
};

void tare_log_table_fill(struct tare_log_table *table);

/* Bound of the error of an approximate divergence, and of rounding in tare_divergence_bound. */
#define TARE_DIVERGENCE_ERROR 1e-8
/* Divergence of the range from … to-1 (at least two bins) represented by `codes` codes, with exact logarithms if
 * `table` is NULL. */
double tare_divergence(const struct tare_linear_bins *linear, int from, int to, int codes,
                       const struct tare_log_table *table);
/* A bound of the same divergence from below, in constant time. */
double tare_divergence_bound(const struct tare_linear_bins *linear, int from, int to, int codes);

#endif
