/* Runs models that share most of their computation over the same records, each model only from the edges at which it
 * differs: values that an earlier model computed, too (eval/prefix_cache/edge_keys.h), are kept and fed into the middle
 * of the graph. Outputs have the same bits as those of complete runs, for any number of threads, batch size and memory
 * budget.
 */
#ifndef TARE_EVAL_PREFIX_CACHE_H
#define TARE_EVAL_PREFIX_CACHE_H

#include "eval/runner.h"

struct tare_prefix_cache_task {
    size_t n_models;
    /* Builds model number `model`; the caller frees it. May be called several times for a model and must return the
     * same one. */
    tare_status (*make)(void *arg, struct tare_graph_model **out, size_t model);
    /* Called with the outputs of a record (borrowed), for each model in the order of the records. */
    tare_status (*record)(void *arg, size_t model, const struct tare_sample *sample, const struct tare_tensor *outputs);
    void *arg;
    const char *signature; /* NULL: the default signature */
    const struct tare_runner_options *runner;
    int threads;
    int64_t memory; /* budget in bytes for kept values and models; records run in parts that fit, and values that never
                       fit are computed again. 0: every model runs completely */
    bool costly_only; /* keep only values that a product, a loop or another op computes whose time exceeds that of
                         copying a value; elementwise ops, reductions and movements of elements are not such ops */
    /* By model: its outputs depend on the other records of a batch. With this array the models are unsuited, before any
     * record is run, if only some of them do: the others are faster in batches. NULL: all run one by one then. */
    bool *dependent;
    double *seconds; /* by model: the time of its runs is added; NULL: not measured */
};

struct tare_prefix_cache_report {
    bool unsuited; /* true: outputs cannot be split by records, a graph cannot be inlined, or `dependent`; the results
                      are not usable */
    int64_t kept_bytes;         /* peak bytes of kept values */
    int64_t nodes, whole_nodes; /* nodes that ran, summed over records, and nodes that complete runs would have run */
    size_t parts;               /* number of records */
};

/* Finds the models that share so much that running them together is worth it, without running any: shares[i] of model
 * number i. Sets none where the costs of the shared ops (eval/prefix_cache/prefix_cache_plan.c) are below a tenth of
 * those of all models that share, because keeping and feeding values takes time as well, and where a graph cannot be
 * inlined. */
tare_status tare_prefix_cache_find_shared(bool *shares, const struct tare_prefix_cache_task *task) TARE_WARN_UNUSED;
/* The models must not keep state (tare_session_state_ops). */
tare_status tare_prefix_cache_run(struct tare_prefix_cache_report *out,
                                  const struct tare_prefix_cache_task *task) TARE_WARN_UNUSED;

#endif
