/* The interface through which calibration reads its samples, implemented by datasets and the command line. It does not
 * depend on file formats. */
#ifndef TARE_CALIB_SOURCE_H
#define TARE_CALIB_SOURCE_H

#include "base/record.h"
#include "base/status.h"
#include "base/tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

/* Samples of one signature. Every function is called by one thread at a time, not always the same one. */
struct tare_sample_source {
    void *arg;
    /* Names of the files, as listed in the calibration file; no duplicates. */
    const char *const *files;
    size_t n_files;
    /* Number of samples to come, -1 if unknown; for progress only. */
    int64_t remaining;
    /* Returns the next sample whose record is wanted, and its record: one tensor for each input of the signature, in
     * the signature's order (a zeroed tensor is not fed), which the caller resets. `wanted(wanted_arg, record)` is
     * false for records that need not be decoded because they are already done; `wanted` may be NULL. Each record is
     * returned at most once. At the end, only *end is set. On failure the caller owns no tensor; *record is where it
     * happened unless `record->number` is -1 (preset by the caller). */
    tare_status (*next)(void *arg, struct tare_tensor *inputs, struct tare_record *record, bool *end,
                        bool (*wanted)(void *wanted_arg, const struct tare_record *record), void *wanted_arg);
};

#endif
