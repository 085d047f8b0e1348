/* Decides whether records may run as one batch: the result of each must not depend, to the last bit, on the others.
 *
 * The graph can rule it out (tare_batch_check_graph). Otherwise two records are run alone and as one batch, and what
 * the caller compares, outputs or activation statistics, must be the same (tare_batch_check_pair). Used by calibration
 * (calib/probe.c) and by evaluation (eval/record_batch.c). */
#ifndef TARE_INTERPRETER_BATCH_CHECK_H
#define TARE_INTERPRETER_BATCH_CHECK_H

#include "graph/model.h"
#include "interpreter/session.h"

/* *reason: why records of this signature must run one by one, a static text; NULL when the graph allows batches. A
 * model that changes state, a signature with an input whose first dimension is fixed, and data-dependent control flow
 * do not. */
tare_status tare_batch_check_graph(const char **reason, const struct tare_graph_model *model,
                                   const struct tare_signature *signature) TARE_WARN_UNUSED;

enum tare_batch_verdict {
    TARE_BATCH_UNDECIDED,   /* the pair is no evidence: equal values in an input, or shapes that cannot be joined */
    TARE_BATCH_INDEPENDENT, /* same bits alone and as a batch: records may run together */
    TARE_BATCH_DEPENDENT,   /* other bits, results that cannot be split by records, or a failure of the batch */
};

/* Runs the two records, pair[0] and pair[1] with n_feeds tensors each, alone and then as one batch, and compares.
 * Returns an error when a record fails alone. */
typedef tare_status (*tare_batch_trial_fn)(void *arg, enum tare_batch_verdict *verdict,
                                           const struct tare_tensor *const pair[2]);

/* Calls `trial` with the pair and, if that found no dependence, with the pair again after the floating-point inputs of
 * the second record were multiplied by -16: extremes that both records share by chance would hide a dependence. For a
 * model that fails on the changed values, only the first trial counts. Returns the errors of the first trial. */
tare_status tare_batch_check_pair(enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2],
                                  size_t n_feeds, tare_batch_trial_fn trial, void *arg) TARE_WARN_UNUSED;

/* The reason for one-by-one runs that a verdict means, a static text; NULL for TARE_BATCH_INDEPENDENT. */
const char *tare_batch_check_reason(enum tare_batch_verdict verdict);

#endif
