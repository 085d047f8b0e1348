/* Runs one signature of one model over the samples of files, in order, in batches, and hands each record's outputs on.
 */
#ifndef TARE_EVAL_RUNNER_H
#define TARE_EVAL_RUNNER_H

#include "datasets/source.h"
#include "interpreter/session.h"

#include <signal.h>

/* One record's outputs, in the order of the signature's; borrowed. `sample` holds the record itself. */
typedef tare_status (*tare_record_fn)(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                                      const struct tare_tensor *outputs);

struct tare_runner_options {
    const char *const *paths;
    size_t n_paths;
    int64_t limit;                        /* 0: all */
    const struct tare_dataset_spec *spec; /* what records become; NULL: they are samples */
    int batch; /* samples put together on axis 0 where that changes no bit of the answers (interpreter/batch_check.h);
                  0: 1 */
    const volatile sig_atomic_t *interrupted; /* NULL: never */
    /* Called by the worker that is about to run a batch; file and record of its first sample. NULL: not. */
    void (*begin)(void *arg, const char *file, int64_t record);
    void *begin_arg;
};

/* Runs all records through `session`. Outputs are split again by the samples' rows; outputs that do not have the batch
 * on axis 0 make a batch be run sample by sample. Errors name file and record. */
tare_status tare_run_records(struct tare_session *session, const struct tare_signature *signature,
                             const struct tare_runner_options *options, tare_record_fn fn, void *arg);
/* The same on `count` threads with a session each, all of one model. `fn` is called by one thread at a time and in the
 * order of the records; batch k runs on session k modulo count, so that the answers of a model with state do not depend
 * on timing, and those of any other not on `count`. The first failure in the order of the records comes back. */
tare_status tare_run_records_on(struct tare_session *const *sessions, int count, const struct tare_signature *signature,
                                const struct tare_runner_options *options, tare_record_fn fn, void *arg);

/* `count` sessions of one model, made side by side; *out is ended by tare_sessions_free. */
tare_status tare_sessions_new(struct tare_session ***out, int count, const struct tare_model *model,
                              const struct tare_session_options *options);
void tare_sessions_free(struct tare_session **sessions, int count); /* NULL is fine */

#endif
