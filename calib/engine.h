/* Calibration: runs samples through a signature and collects statistics of the observed tensors.
 *
 * The statistics do not depend on threads, batch size, order or interruptions: they are exact (calib/statistics.h), and
 * records are batched only after a check that batching does not change the result. */
#ifndef TARE_CALIB_ENGINE_H
#define TARE_CALIB_ENGINE_H

#include "base/log.h"
#include "calib/calibration.h"
#include "calib/observed.h"
#include "calib/source.h"
#include "interpreter/session.h"

#include <signal.h>

/* Seconds between a save that took `took` seconds, with the workers waiting, and the next: those that the user
 * requests, or 5 to 300, so that saving takes at most 1 % of the time. */
double tare_calibration_pause(double autosave_seconds, double took);

struct tare_calibration_options {
    int threads;   /* 0: one per processor */
    int batch;     /* records to concatenate on axis 0 if the signature leaves it open and results do not change; 0:
                      automatic (few if tensors are large) */
    int64_t limit; /* records of this signature, including those counted before a resume; 0: all. Set it here and not in
                      the source, which does not count records that it need not decode */
    /* Which tensors; NULL: every floating tensor that is not a constant. */
    bool (*accepts)(void *arg, const struct tare_node *node, size_t output);
    tare_counter_fn counter; /* of a tensor, for statistics by entry (calib/observed.h); NULL: none has one */
    void *accepts_arg;
    /* Where the state is saved every few seconds and when interrupted; NULL: nowhere. */
    const char *state_path;
    const char *task;        /* description of the task; must be the same in a resumed run */
    double autosave_seconds; /* between two saves; 0: tare_calibration_pause */
    /* Gets a warning if the state cannot be saved during the run: the run continues, the previous state stays, and the
     * next save tries again. NULL: none. */
    const struct tare_log *log;
    /* Called from time to time, by one thread at a time, with the number of records counted by this run. */
    void (*progress)(void *arg, int64_t records);
    void *progress_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
    /* Accumulates these Hessians instead of statistics, in a second pass, one record at a time. NULL: statistics. */
    const struct tare_feedback *feedback; /* state between records, which then run in order; NULL: none */
    struct tare_hessians *hessians;
};

/* Summary of a run. */
struct tare_calibration_outcome {
    int64_t records; /* counted by this run */
    int threads;     /* used */
    bool stateful;   /* the outputs for a record may depend on earlier records: one worker, one record at a time, no
                        saved state */
    int batch;       /* used */
    const char *batch_reason;    /* why it is 1 although more was requested; NULL otherwise. A static string */
    double seconds, run_seconds; /* wall time; time in the interpreter and statistics, all threads together */
};

/* Runs the samples of `source` through `signature` and adds their statistics to `calibration`, whose fingerprint must
 * be the model's. May be called for several signatures one after another. Records that the calibration already counts
 * are skipped (TARE_UNSUPPORTED for a stateful model, whose state is lost by then). Errors name file and record.
 * TARE_INTERRUPTED: stopped between records; the calibration contains the records done and, with state_path, is saved.
 * TARE_IO: another process uses the state file.
 * After any other failure the calibration is unusable; the saved state remains valid. */
tare_status tare_calibration_run(struct tare_calibration *calibration, struct tare_calibration_outcome *outcome,
                                 const struct tare_graph_model *model, const struct tare_signature *signature,
                                 const struct tare_sample_source *source,
                                 const struct tare_calibration_options *options) TARE_WARN_UNUSED;

/* Saves the calibration as the state of a run of `task`. The file is not locked; tare_calibration_run locks it while it
 * runs. */
tare_status tare_calibration_save_state(struct tare_calibration *calibration, const char *state_path,
                                        const char *task) TARE_WARN_UNUSED;
/* Reads a saved state to resume from. TARE_NOT_FOUND if there is none; TARE_INVALID_ARGUMENT if it belongs to another
 * model or task. */
tare_status tare_calibration_resume(struct tare_calibration **out, const char *state_path,
                                    const uint64_t fingerprint[2], const char *settings, bool channels,
                                    const char *task) TARE_WARN_UNUSED;

/* Upper bound in bytes on the statistics of a run, whatever the data and the number of workers. With `channels`, an
 * unknown last dimension counts as the longest that is kept. *tensors: number of observed tensors. */
tare_status tare_calibration_bound(size_t *bytes, size_t *tensors, const struct tare_graph_model *model,
                                   const struct tare_signature *signature,
                                   const struct tare_calibration_options *options, bool channels) TARE_WARN_UNUSED;

#endif
