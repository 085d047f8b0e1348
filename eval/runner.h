/* Runs one signature of one model over the samples of files, in order, in batches, and hands each record's outputs on. */
#ifndef TARE_EVAL_RUNNER_H
#define TARE_EVAL_RUNNER_H

#include "datasets/source.h"
#include "graph/session.h"

#include <signal.h>

/* One record's outputs, in the order of the signature's; borrowed. `sample` holds the record itself. */
typedef tare_status (*tare_record_fn)(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                                      const struct tare_tensor *outputs);

struct tare_runner_options {
    const char *const *paths;
    size_t n_paths;
    int64_t limit; /* 0: all */
    int batch;     /* samples put together on axis 0 where the signature leaves it open; 0: 1 */
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* Runs all records through `session`. Outputs are split again by the samples' rows; outputs that do not have the batch
 * on axis 0 make a batch be run sample by sample. */
tare_status tare_run_records(struct tare_session *session, const struct tare_signature *signature,
                             const struct tare_runner_options *options, tare_record_fn fn, void *arg);

#endif
