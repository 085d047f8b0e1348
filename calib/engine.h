/* Calibration: samples run through a signature, observed tensors counted into a calibration.
 *
 * The numbers do not depend on threads, batch, order or interruptions: what is counted is exact (calib/statistics.h),
 * and records run together only where that was seen to change nothing. */
#ifndef TARE_CALIB_ENGINE_H
#define TARE_CALIB_ENGINE_H

#include "calib/calibration.h"
#include "calib/source.h"
#include "interpreter/session.h"

#include <signal.h>

struct tare_calibration_options {
    int threads;   /* 0: one a processor */
    int batch;     /* records put together on axis 0 where the signature leaves it open and that changes nothing; 0: as
                      many as pay (few where tensors are large) */
    int64_t limit; /* records of this signature, those counted before a resume among them; 0: all. To be given here and
                      not to the source, which does not count what it need not decode */
    /* Which tensors; NULL: every floating tensor that is not a constant. */
    bool (*wants)(void *arg, const struct tare_node *node, size_t output);
    void *wants_arg;
    /* Where the state is saved every few seconds and when interrupted; NULL: nowhere. */
    const char *state_path;
    const char *task;        /* what this run was asked to do; a resumed run must have been asked the same */
    double autosave_seconds; /* 0: 5 */
    /* Called now and then by one thread at a time: records counted by this run. */
    void (*progress)(void *arg, int64_t records);
    void *progress_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
    /* Counts these and no statistics: a second look, at what they want, one record at a time. NULL: statistics. */
    struct tare_hessians *hessians;
};

/* How a run went. */
struct tare_calibration_outcome {
    int64_t records; /* counted by this run */
    int threads;     /* that were used */
    bool stateful;   /* the answer to a record may depend on those before it: one worker, one record at a time, no saved
                        state */
    int batch;       /* that was used */
    const char *batch_reason;    /* why it is 1 though more was asked for; NULL otherwise. A static text */
    double seconds, run_seconds; /* wall time; time in the interpreter and statistics, all threads together */
};

/* Runs the samples of `source` through `signature` and adds what they give to `calibration`, which is the model's
 * (fingerprint). May be called for several signatures one after the other. Records that the calibration has counted are
 * passed over (TARE_UNSUPPORTED for a model with state, which is lost by then). Errors name file and record.
 * TARE_INTERRUPTED: stopped between records; what was done is in the calibration and, with state_path, saved. After any
 * other failure the calibration is of no more use; the saved state is. */
tare_status tare_calibration_run(struct tare_calibration *calibration, struct tare_calibration_outcome *outcome,
                                 const struct tare_model *model, const struct tare_signature *signature,
                                 const struct tare_sample_source *source,
                                 const struct tare_calibration_options *options) TARE_WARN_UNUSED;

/* Saves the calibration as the state of a run that was asked to do `task`. */
tare_status tare_calibration_save_state(struct tare_calibration *calibration, const char *state_path,
                                        const char *task) TARE_WARN_UNUSED;
/* Reads a saved state to go on from. TARE_NOT_FOUND when there is none; TARE_INVALID_ARGUMENT when it is of another
 * model or was asked to do something else. */
tare_status tare_calibration_resume(struct tare_calibration **out, const char *state_path,
                                    const uint64_t fingerprint[2], const char *settings, bool channels,
                                    const char *task) TARE_WARN_UNUSED;

/* The most bytes that the statistics of a run can take, whatever the data and the number of workers. With `channels` a
 * last dimension that is not known counts as the longest that is kept. *tensors: how many are observed. */
tare_status tare_calibration_bound(size_t *bytes, size_t *tensors, const struct tare_model *model,
                                   const struct tare_signature *signature,
                                   const struct tare_calibration_options *options, bool channels) TARE_WARN_UNUSED;

#endif
