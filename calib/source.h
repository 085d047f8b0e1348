/* Where calibration gets its samples: the interface that it wants. datasets and the command line fill it; this header
 * knows no file format. */
#ifndef TARE_CALIB_SOURCE_H
#define TARE_CALIB_SOURCE_H

#include "base/status.h"
#include "base/tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

/* Which record of the data a sample is. */
struct tare_record {
    int32_t file;   /* index into tare_sample_source.files */
    int64_t number; /* of the record in its file, from 0 */
    int64_t index;  /* of the record in the whole data set (all files one after the other, before any sharding), from 0;
                       convergence is told by it */
};

/* Samples of one signature. Every function is called by one thread at a time, not always the same one. */
struct tare_sample_source {
    void *arg;
    /* Names of the files, as the calibration file shall list them; no name twice. */
    const char *const *files;
    size_t n_files;
    /* Samples to come, -1 when that is not known; for progress only. */
    int64_t expected;
    /* Gives the next sample whose record is expected: one tensor for each feed of the signature, in the signature's
     * order (a dense input is one feed, a sparse one three: indices, values, dense_shape; a zeroed tensor is not fed),
     * the caller's to reset; and says which record it is. `expected(wanted_arg, record)` is false for records that need
     * not be decoded (they are done already). Each record comes at most once. *end is set, and nothing else, when there
     * are no more. On failure no tensor is the caller's; *record says where it happened when `record->number` is not -1
     * (the caller presets it). */
    tare_status (*next)(void *arg, struct tare_tensor *inputs, struct tare_record *record, bool *end,
                        bool (*expected)(void *wanted_arg, const struct tare_record *record), void *wanted_arg);
};

#endif
