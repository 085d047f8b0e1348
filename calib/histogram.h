/* The floating-point histogram: each value is counted at its own upper bits (sign, exponent, first 9 mantissa bits),
 * 512 bins per octave, each 0.2 % wide or less. No range is chosen in advance and merging is integer addition, so any
 * grouping of the values yields the same counts. Zeros, NaN and infinities are counted separately. */
#ifndef TARE_CALIB_HISTOGRAM_H
#define TARE_CALIB_HISTOGRAM_H

#include "base/status.h"
#include "calib/scan.h"

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

/* What one worker has counted and not added to a histogram yet: a histogram may be that of many workers, of which one
 * at a time adds to it, and then briefly. */
struct tare_tally;
struct tare_tally *tare_tally_new(void); /* NULL: no memory. About 1 MiB */
void tare_tally_free(struct tare_tally *tally);
/* Uses another variant of the scan; for tests. */
void tare_tally_set_scan(struct tare_tally *tally, tare_scan_fn *scan);

enum { TARE_TALLY_RUN = 1 << 30 };
/* Fills an empty tally: first the approximate number of values to come, then runs of at most TARE_TALLY_RUN values
 * (each with its scan; a run that is not the last of its scan has a multiple of 16 values). */
void tare_tally_begin(struct tare_tally *tally, int64_t expected);
void tare_tally_add(struct tare_tally *tally, struct tare_scan *scan, const float *values, int64_t count);
/* The tally must be added to a histogram before more values are counted. */
bool tare_tally_is_full(const struct tare_tally *tally);
/* Values since begin that were NaN, and that were infinite. */
int64_t tare_tally_nans(const struct tare_tally *tally);
int64_t tare_tally_infinities(const struct tare_tally *tally);
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
