/* Warnings about a calibration: branches that no record took, NaN, too few records, ranges set by a single record,
 * tensors with a single value. */
#ifndef TARE_CALIB_WARNINGS_H
#define TARE_CALIB_WARNINGS_H

#include "base/arena.h"
#include "calib/calibration.h"

enum {
    TARE_WARNING_FEW_RECORDS = 200,    /* fewer records of a signature are worth a word */
    TARE_WARNING_OUTLIER_RECORDS = 10, /* among fewer, one record sets the range in the nature of things */
};
/* A single record sets a range if the range without it has at most this share of the width. */
extern const double tare_warning_outlier_share;

/* One warning, about one or more tensors where it is about tensors. */
struct tare_calibration_warning {
    /* "unfinished", "bad_records", "no_records", "unreached_side", "unreached_function", "unreached_tensor", "nan",
     * "infinity", "outlier", "few_records", "constant" */
    const char *kind;
    const char *text; /* one sentence without full stop */
    const struct tare_calibration_tensor **tensors;
    size_t n_tensors;
    int32_t input;  /* -1: not about a record; otherwise index into the calibration's inputs */
    int64_t record; /* of that input */
};

/* Zero it to start. */
struct tare_calibration_warning_list {
    struct tare_arena arena;
    struct tare_calibration_warning *items;
    size_t count, capacity;
};

/* Lists the warnings, the gravest first. They borrow from the calibration. End with
 * tare_calibration_warning_list_free, also after a failure (TARE_NO_MEMORY). */
tare_status tare_calibration_warnings(struct tare_calibration_warning_list *out,
                                      const struct tare_calibration *calibration) TARE_WARN_UNUSED;
void tare_calibration_warning_list_free(struct tare_calibration_warning_list *list);

/* The range of the finite values without one record: the one that sets the minimum or the maximum, whichever removal
 * makes the range narrower. False if fewer than two records have finite values. */
struct tare_range_without {
    double low, high;
    double share; /* of the width with all records, each with zero in it */
    int32_t input;
    int64_t record; /* that is left out */
};
bool tare_statistics_range_without(struct tare_range_without *out, const struct tare_statistics *statistics);

#endif
