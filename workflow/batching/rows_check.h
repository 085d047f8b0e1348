/* Whether the rows of a request that a converted model batches depend on the rows of others, by running it. */
#ifndef TARE_WORKFLOW_BATCHING_ROWS_CHECK_H
#define TARE_WORKFLOW_BATCHING_ROWS_CHECK_H

#include "graph/model.h"
#include "tpu/batching.h"

/* Runs each signature that calls a batcher on two drawn rows, alone and as one batch (interpreter/batch_check.h), and
 * adds a warning to the result where the outputs differ: for what tpu/batching_rows.c does not recognise. Models that
 * keep state, and those that fail on drawn values (texts that are parsed, sizes that nothing tells), are left out.
 * Errors: no memory, and an interrupted run. */
tare_status tare_workflow_check_rows(struct tare_batching_result *result, struct tare_arena *arena,
                                     const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif
