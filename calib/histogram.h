/* The floating-point histogram: each value is counted at its own upper bits (sign, exponent, first 9 mantissa bits),
 * 512 bins per octave, each 0.2 % wide or less. No range is chosen in advance and merging is integer addition, so any
 * grouping of the values yields the same counts. Zeros, NaN and infinities are counted separately. */
#ifndef TARE_CALIB_HISTOGRAM_H
#define TARE_CALIB_HISTOGRAM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TARE_HISTOGRAM_BINS = 512,  /* a page: the values of one sign and exponent */
    TARE_HISTOGRAM_PAGES = 512, /* by sign and exponent (the upper 9 bits of a float): 0 … 255 positive */
    TARE_HISTOGRAM_PAGE_HEAD = 8,
    TARE_HISTOGRAM_PAGE_BYTES = TARE_HISTOGRAM_PAGE_HEAD + TARE_HISTOGRAM_BINS * (int)sizeof(int64_t),
    /* Pages that may contain counts (exponent 255 is infinity and NaN), with the list of pages. */
    TARE_HISTOGRAM_MAX_BYTES =
        (TARE_HISTOGRAM_PAGES - 2) * TARE_HISTOGRAM_PAGE_BYTES + TARE_HISTOGRAM_PAGES * (int)sizeof(void *),
};

struct tare_histogram_page;

/* Zero it to start. */
struct tare_histogram {
    struct tare_histogram_page **pages; /* those with values, in ascending order */
    int n_pages, capacity;
    /* Bytes of each counter (0 without pages, 1, 2, 4 or 8), as the counts require: models have many tensors, most of
     * which have few values. No counter exceeds `bound`. */
    int width;
    int64_t bound;
    int64_t counted; /* values in the pages */
    int64_t zeros, nans, positive_infinities, negative_infinities;
};

struct tare_tally; /* calib/tally.h */
/* Adds the tally's counts to the histogram and empties the tally, also after running out of memory. */
tare_status tare_histogram_take(struct tare_histogram *histogram, struct tare_tally *tally) TARE_WARN_UNUSED;

/* Adds another's counts; TARE_INVALID_ARGUMENT, and no change, when they are more than can be counted. */
tare_status tare_histogram_merge(struct tare_histogram *histogram, const struct tare_histogram *other) TARE_WARN_UNUSED;
/* Adds the counts of one page, of which none may overflow. */
tare_status tare_histogram_add_page(struct tare_histogram *histogram, int page,
                                    const int64_t counts[TARE_HISTOGRAM_BINS]) TARE_WARN_UNUSED;
/* The number of page i of `pages`, and its counts. */
int tare_histogram_read_page(int64_t counts[TARE_HISTOGRAM_BINS], const struct tare_histogram *histogram, int i);
/* Releases the memory; leaves a zeroed histogram. */
void tare_histogram_reset(struct tare_histogram *histogram);
/* The same counts. */
bool tare_histogram_equal(const struct tare_histogram *a, const struct tare_histogram *b);
/* Finite values, zeros included. */
int64_t tare_histogram_finite(const struct tare_histogram *histogram);
size_t tare_histogram_bytes(const struct tare_histogram *histogram);

/* One bin with its values' bounds: every value counted is in [low, high], and no value of another bin is inside. */
struct tare_histogram_bin {
    double low, high;
    int64_t count;
};
/* The bounds of bin `bin` of page `page`: the smallest and the largest float there. */
struct tare_histogram_bin tare_histogram_bounds(int page, int bin);
/* The bins with counts, in ascending order of value, zero as a separate bin [0, 0]. The caller frees *bins with
 * tare_free (NULL if there is none). */
tare_status tare_histogram_list(struct tare_histogram_bin **bins, size_t *count,
                                const struct tare_histogram *histogram) TARE_WARN_UNUSED;

#endif
