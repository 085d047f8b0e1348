/* Runs one signature of one model over the records of files, in order and in batches, and passes each record's outputs
 * to a callback. */
#ifndef TARE_EVAL_RUNNER_H
#define TARE_EVAL_RUNNER_H

#include "datasets/source.h"
#include "interpreter/feedback.h"
#include "interpreter/session.h"

#include <signal.h>

/* Called with one record's outputs in the order of the signature; borrowed. `sample` is the record itself. */
typedef tare_status (*tare_record_fn)(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                                      const struct tare_tensor *outputs);

struct tare_record_store; /* eval/record_store.h */

/* The default of evaluations; fewer where the activations are large (eval/record_batch.h). */
enum { TARE_RUNNER_BATCH = 64 };

struct tare_runner_options {
    const char *const *paths;
    size_t n_paths;
    int64_t rows;          /* records that the model takes at a time (eval/model_inputs.h); 0: as the files show */
    int64_t limit;         /* 0: all */
    int64_t shard, shards; /* runs record i of the data if i mod shards == shard; shards 0: all */
    bool (*takes)(void *arg, const char *file,
                  const struct tare_record *where); /* chooses records of files; NULL: all */
    void *takes_arg;
    const struct tare_dataset_spec *spec; /* converts records to samples; NULL: records are samples */
    /* The same records, decoded, with at least `limit` of them (eval/record_store.h); NULL, or a store that is not
     * complete: the files are read. */
    const struct tare_record_store *records;
    const struct tare_feedback *feedback; /* state between records, which then run one by one; NULL: none */
    int batch; /* records joined on axis 0, if that changes no bit of the outputs (interpreter/batch_check.h); 0: 1 */
    const volatile sig_atomic_t *interrupted; /* NULL: never */
    /* Called by a worker before it runs a batch, with file and number of the first record. NULL: not called. */
    void (*begin)(void *arg, const char *file, int64_t record);
    void *begin_arg;
};

/* Sets options->rows, unless it is known. */
tare_status tare_runner_find_rows(struct tare_runner_options *options,
                                  const struct tare_signature *signature) TARE_WARN_UNUSED;
/* Runs all records through `session`. The outputs of a batch are split by the records' rows; if an output does not have
 * the batch on axis 0, the records run one by one. Errors name file and record. */
tare_status tare_run_records(struct tare_session *session, const struct tare_signature *signature,
                             const struct tare_runner_options *options, tare_record_fn fn, void *arg);
/* The same on `count` threads with one session each, all of one model. `fn` is called by one thread at a time, in the
 * order of the records. Batch k runs on session k modulo count, so the outputs of a model with state do not depend on
 * timing, and those of other models do not depend on `count`. With fewer batches than threads, each session runs its
 * ops on several threads; with feedback, all records run on the first session. Returns the first failure in the order
 * of the records. */
tare_status tare_run_records_on(struct tare_session *const *sessions, int count, const struct tare_signature *signature,
                                const struct tare_runner_options *options, tare_record_fn fn, void *arg);

/* The batch size that leaves two batches to each of `threads` workers, at most options->batch; the number of records is
 * known from the store or from the limit. */
size_t tare_runner_most_batch(const struct tare_runner_options *options, int threads);

/* Makes `count` sessions of one model in parallel; release *out with tare_sessions_free. */
tare_status tare_sessions_new(struct tare_session ***out, int count, const struct tare_graph_model *model,
                              const struct tare_session_options *options);
void tare_sessions_free(struct tare_session **sessions, int count); /* NULL is fine */

#endif
