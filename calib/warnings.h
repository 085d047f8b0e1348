/* What a user should know about a calibration before relying on it: branches that no record took, NaN, too few records,
 * one record that alone makes a range wide, tensors that never change. */
#ifndef TARE_CALIB_WARNINGS_H
#define TARE_CALIB_WARNINGS_H

#include "base/arena.h"
#include "calib/calibration.h"

enum {
    TARE_WARNING_FEW_RECORDS = 200,    /* fewer records of a signature are worth a word */
    TARE_WARNING_OUTLIER_RECORDS = 10, /* among fewer, one record sets the range in the nature of things */
};
/* A record alone sets a range when the range would be this part of its width, or less, without the record. */
extern const double tare_warning_outlier_share;

/* One warning, about one or more tensors where it is about tensors. */
struct tare_calibration_warning {
    /* "unfinished", "bad_records", "no_records", "unreached_side", "unreached_function", "unreached_tensor", "nan",
     * "infinity", "outlier", "few_records", "constant" */
    const char *kind;
    const char *text; /* one sentence without full stop */
    const struct tare_calibration_tensor **tensors;
    size_t n_tensors;
    int32_t input;  /* -1: about no record; else index into the calibration's inputs */
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

/* The range of the finite values of all records but the one that an end of the range hangs on: the one of the two whose
 * absence makes the range narrower. False when fewer than two records had finite values. */
struct tare_range_without {
    double low, high;
    double share; /* of the width with all records, each with zero in it */
    int32_t input;
    int64_t record; /* that is left out */
};
bool tare_statistics_range_without(struct tare_range_without *out, const struct tare_statistics *statistics);

#endif
