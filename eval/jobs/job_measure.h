/* Measures the model that a job wrote against the float model and checks the job's limits. */
#ifndef TARE_EVAL_JOBS_JOB_MEASURE_H
#define TARE_EVAL_JOBS_JOB_MEASURE_H

#include "convert/jobs.h"
#include "datasets/spec.h"
#include "eval/jobs/job_result.h"
#include "graph/op.h"

#include <signal.h>

/* Sets sizes and, with evaluation records, accuracy of the model in `folder`, which the job generated from job->model.
 * `spec`: of the job, for its records (NULL: none). `ops`: op registry for both models (NULL: the built-in ops). */
tare_status tare_job_measure(struct tare_job_result *result, const struct tare_job *job, const char *folder,
                             const struct tare_dataset_spec *spec, const struct tare_op_registry *ops,
                             const volatile sig_atomic_t *interrupted) TARE_WARN_UNUSED;
/* Returns true when the measured model violates a limit; `reason` is then one line with the limit and the measured
 * value. */
bool tare_job_breaks_limit(char reason[160], const struct tare_job_result *result,
                           const struct tare_job_limits *limits);

#endif
