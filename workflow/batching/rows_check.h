/* Whether requests that a converted model batches depend on each other, by running it. */
#ifndef TARE_WORKFLOW_BATCHING_ROWS_CHECK_H
#define TARE_WORKFLOW_BATCHING_ROWS_CHECK_H

#include "tpu/batching.h"
#include "workflow/requests.h"

struct tare_rows_check {
    const struct tare_quantize_request *samples; /* their first two records are tried; NULL: there are none */
    bool allows;                                 /* what would be an error is a warning */
};

/* Runs two requests through the batchers (eval/served_batches.h), alone and in one batch: the first two records of the
 * samples, if there are any, then two drawn rows (interpreter/batch_check.h). TARE_UNSUPPORTED where the numbers of an
 * output differ by more than a tenth of the largest, or where the batch fails. Smaller differences, and a node that
 * mixes rows (result->mixing) where numbers do not show it, are warnings. Models that keep state, and those that fail
 * on drawn values (texts that are parsed, sizes that nothing tells), are not run. */
tare_status tare_workflow_check_rows(struct tare_batching_result *result, struct tare_arena *arena,
                                     const struct tare_graph_model *model,
                                     const struct tare_rows_check *options) TARE_WARN_UNUSED;

#endif
