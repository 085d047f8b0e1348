/* Measuring a made model against the float one, and holding it against the job's limits. */
#ifndef TARE_EVAL_JOB_MEASURE_H
#define TARE_EVAL_JOB_MEASURE_H

#include "convert/jobs.h"
#include "eval/job_result.h"
#include "graph/op.h"

#include <signal.h>

/* Fills in sizes and, with evaluation records, accuracy of the model in `folder`, which the job made of job->model.
 * `ops`: what the models are opened with (NULL: the built-in ops). */
tare_status tare_job_measure(struct tare_job_result *result, const struct tare_job *job, const char *folder,
                             const struct tare_op_registry *ops,
                             const volatile sig_atomic_t *interrupted) TARE_WARN_UNUSED;
/* Which limit the measured model breaks, by how much; false when it keeps to all. `reason` gets one line. */
bool tare_job_breaks_limit(char reason[160], const struct tare_job_result *result,
                           const struct tare_job_limits *limits);

#endif
