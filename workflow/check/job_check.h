/* The limits of a batch job on a Cloud TPU chip: that its model compiles, fits, and is fast enough. */
#ifndef TARE_WORKFLOW_CHECK_JOB_CHECK_H
#define TARE_WORKFLOW_CHECK_JOB_CHECK_H

#include "convert/jobs.h"
#include "eval/jobs/job_result.h"
#include "graph/op.h"

/* Sets the figures of the model in `folder`, and with max_time those of job->model, on the chip of the job's limits.
 * *reason becomes the limit that is violated, one line in arena memory; NULL: none, or there is no chip. `ops`: op
 * registry for both models (NULL: the built-in ops). */
tare_status tare_check_job(const char **reason, struct tare_job_result *result, struct tare_arena *arena,
                           const struct tare_job *job, const char *folder,
                           const struct tare_op_registry *ops) TARE_WARN_UNUSED;

#endif
