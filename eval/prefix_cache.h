/* Runs models that have most of their computation in common over the same records, each only from where it differs:
 * what an earlier model computed as well (eval/edge_keys.h) is kept and fed, in the middle of the graph, instead of
 * computed again. Answers have the same bits as those of the whole model, whatever the threads, batches and memory. */
#ifndef TARE_EVAL_PREFIX_CACHE_H
#define TARE_EVAL_PREFIX_CACHE_H

#include "eval/runner.h"

struct tare_prefix_cache_task {
    size_t n_models;
    /* Makes model `model`, the caller's to free; may be asked for several times, and makes the same model each time. */
    tare_status (*make)(void *arg, struct tare_model **out, size_t model);
    /* A record's outputs of a model, in the order of the records for each model; borrowed. */
    tare_status (*record)(void *arg, size_t model, const struct tare_sample *sample, const struct tare_tensor *outputs);
    void *arg;
    const char *signature; /* NULL: the default one */
    const struct tare_runner_options *runner;
    int threads;
    int64_t memory; /* bytes that values and models which are kept may take; records are run in parts that fit, and what
                       does not fit at all is computed again. 0: nothing is kept, whole models run */
};

struct tare_prefix_cache_report {
    bool unsuited; /* outputs that cannot be split, or a graph that cannot be inlined: nothing of use was handed on */
    int64_t kept_bytes;         /* most that kept values took */
    int64_t nodes, whole_nodes; /* that ran, records counted, and that would have run had every model run as a whole */
    size_t parts;               /* of the records */
};

/* Models with state (tare_session_state_ops) are not for this. */
tare_status tare_prefix_cache_run(struct tare_prefix_cache_report *out,
                                  const struct tare_prefix_cache_task *task) TARE_WARN_UNUSED;

#endif
