/* Statistics of one observed tensor: exact, mergeable, independent of the order of the records. A calibration
 * algorithm chooses the range from them later (calib/algorithm.h). */
#ifndef TARE_CALIB_STATISTICS_H
#define TARE_CALIB_STATISTICS_H

#include "base/exact_sum.h"
#include "calib/histogram.h"
#include "base/tensor/tensor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a value came from. */
struct tare_place {
    int32_t input;  /* index into the calibration's sorted list of inputs */
    int64_t record; /* number in that file */
    int64_t index;  /* of the record in the whole data set */
};

/* An extreme value of one record. */
struct tare_extreme {
    float value;
    int32_t input;
    int64_t record;
};

enum {
    /* Bucket 0: record index 0; bucket k: indexes 2^(k-1) … 2^k - 1. */
    TARE_STATISTICS_BUCKETS = 48,
    /* A last axis longer than this has no per-channel statistics. */
    TARE_STATISTICS_MAX_CHANNELS = 65536,
};

/* What callers of const statistics store with them, in a list that is freed with the statistics. */
struct tare_stored_result {
    struct tare_stored_result *next;
};

/* Zero-initialize, except per_channel. A sample is one record in one execution of the node: a tensor in the body of
 * a loop has several samples per record. */
struct tare_statistics {
    struct tare_histogram histogram; /* also counts zeros, NaN and infinities */
    int64_t samples;
    int64_t finite_samples; /* samples with a finite value: those that have a minimum and a maximum */
    /* Minimum and maximum of the finite values and the records in which they occur; [1]: the runner-up among the other
     * records. The first record (by input, then number) wins a tie. n_extremes: number of records in both lists. */
    struct tare_extreme lowest[2], highest[2];
    int n_extremes;
    /* Sums over the finite values. Within a sample, values are summed in double, value i in lane i mod 16, and the
     * lanes in a fixed order; the samples' sums are added exactly. Grouping samples differently (threads, batches,
     * merged files) therefore yields the same bits. */
    struct tare_exact_sum sum, sum_of_squares;
    /* Over the samples that have finite values. */
    struct tare_exact_sum sum_of_minima, sum_of_maxima;
    bool has_nan, has_infinity;
    struct tare_place first_nan, first_infinity; /* the first record, by input and number, that contains one */
    /* Extremes of the records of each bucket, where one with finite values was seen. For how ranges grow with the
     * number of records. */
    float bucket_low[TARE_STATISTICS_BUCKETS], bucket_high[TARE_STATISTICS_BUCKETS];
    bool bucket_used[TARE_STATISTICS_BUCKETS];

    bool per_channel;
    int64_t channels; /* length of the last axis; 0: no values yet; -1: the length varies or cannot be kept */
    float *channel_low, *channel_high;  /* +inf and -inf where a channel has no finite value */
    struct tare_exact_sum *channel_sum; /* sums: in value order within a sample, exact over samples */
    double *channel_sample;             /* scratch: the sums of the current sample */

    /* Not part of the statistics: ranges that algorithms have found (calib/algorithm.c), errors of parameters
     * (calib/range_error.c). */
    struct tare_stored_result *ranges, *errors;
};

/* How the records of a batch are laid out in an observed tensor. */
enum tare_batch_layout {
    TARE_BATCH_SPLIT,  /* axis 0 in equal shares, one per record */
    TARE_BATCH_SHARED, /* the tensor does not depend on the records: each record counts all of it */
};

/* Adds one execution's value for `count` records. Floating-point dtypes only (otherwise TARE_TYPE); doubles are
 * rounded to float. TARE_SHAPE if the records do not divide axis 0. On failure the statistics contain part of the
 * value. */
tare_status tare_statistics_add(struct tare_statistics *statistics, struct tare_tally *tally,
                                const struct tare_tensor *value, const struct tare_place *places, int64_t count,
                                enum tare_batch_layout layout) TARE_WARN_UNUSED;
/* The same for statistics shared by several threads, each with its own tally; `lock` is the statistics', and is held
 * only while a tally is merged (with per-channel statistics: throughout). */
tare_status tare_statistics_add_shared(struct tare_statistics *statistics, pthread_mutex_t *lock,
                                       struct tare_tally *tally, const struct tare_tensor *value,
                                       const struct tare_place *places, int64_t count,
                                       enum tare_batch_layout layout) TARE_WARN_UNUSED;
/* Adds the statistics of `other`; `inputs` maps its input indexes to those of `statistics` (ascending; NULL:
 * identity). */
tare_status tare_statistics_merge(struct tare_statistics *statistics, const struct tare_statistics *other,
                                  const int32_t *inputs) TARE_WARN_UNUSED;
/* Changes input indexes by an ascending map. */
void tare_statistics_renumber(struct tare_statistics *statistics, const int32_t *inputs);
/* Releases the memory; leaves zeroed statistics. */
void tare_statistics_reset(struct tare_statistics *statistics);

/* The same counts, sums, extremes and places. */
bool tare_statistics_equal(const struct tare_statistics *a, const struct tare_statistics *b);
/* Values seen, with NaN and infinities. */
int64_t tare_statistics_elements(const struct tare_statistics *statistics);
/* Exact minimum and maximum of the finite values; false if there are none. */
bool tare_statistics_extremes(double *low, double *high, const struct tare_statistics *statistics);
/* The same over the records with index < 2^power. */
bool tare_statistics_extremes_until(double *low, double *high, const struct tare_statistics *statistics, int power);
/* Bytes in use; and their upper bound for any data. */
size_t tare_statistics_bytes(const struct tare_statistics *statistics);
size_t tare_statistics_bound(int64_t channels);

#endif
