/* Measures a set of models that share most of their computation against the float model of a comparison: those of a
 * sensitivity measurement, and candidates of a search. They run together through eval/prefix_cache/prefix_cache.h, each
 * from the first layer at which it differs from the models before it. Models that keep state or whose outputs cannot be
 * split by records run one after another, completely. The figures are the same in both cases. */
#ifndef TARE_EVAL_MODEL_SET_H
#define TARE_EVAL_MODEL_SET_H

#include "eval/comparison.h"

struct tare_model_set {
    size_t count;
    /* Builds model number `number`; the caller frees it. May be called several times for a model and must return the
     * same one. */
    tare_status (*make)(void *arg, struct tare_graph_model **out, size_t number);
    /* Passes the figures of a model, by output. Called once for each model, in their order. */
    void (*measured)(void *arg, size_t number, const struct tare_metrics *outputs);
    const bool *is_silent; /* by model: it runs only for the activations that others share with it; NULL: none is */
    void *arg;
    struct tare_comparison *comparison; /* its first row is the float model on the same records */
    const char *signature, *label;
    const struct tare_runner_options *runner;
    int64_t memory; /* bytes for activations that are kept and fed to later models; 0: one gigabyte; negative: every
                       model runs completely */
};

struct tare_model_set_report {
    bool whole;                             /* set: the models run completely; set by the measurement if they had to */
    int64_t kept_bytes, nodes, whole_nodes; /* of struct tare_prefix_cache_report: the maximum and sums so far */
};

/* `report` is updated, so that several measurements share one. Models that run completely become rows of the
 * comparison. */
tare_status tare_model_set_measure(struct tare_model_set_report *report,
                                   const struct tare_model_set *set) TARE_WARN_UNUSED;

#endif
