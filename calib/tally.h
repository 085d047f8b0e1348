/* What one worker has counted and not added to a histogram yet: a histogram may be that of many workers, of which one
 * at a time adds to it, and then briefly. */
#ifndef TARE_CALIB_TALLY_H
#define TARE_CALIB_TALLY_H

#include "calib/histogram.h"
#include "calib/scan.h"

/* Of one thread. The fields are for calib/tally.c and calib/histogram.c. */
struct tare_tally {
    uint32_t *counts; /* TARE_SCAN_SLOTS, all zero while the tally is empty or not flat */
    uint32_t *slots;  /* of the values so far, or, when flat, of one block */
    tare_scan_fn *scan;
    bool flat;
    int n_slots;
    int64_t pending;                      /* values in counts */
    void *counters[TARE_HISTOGRAM_PAGES]; /* of a histogram's pages, while slots are counted in it; else NULL */
    int64_t zeros, nans, positive_infinities, negative_infinities;
    /* Of the pending values: whether some may have the sign, and the largest as bits without sign. */
    uint32_t largest;
    bool has_sign[2];
};

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
/* No values since begin. */
void tare_tally_empty(struct tare_tally *tally);

#endif
