/* What the parts of `tare batch` share: options, jobs and tasks of one run. */
#ifndef TARE_CLI_BATCH_BATCH_H
#define TARE_CLI_BATCH_BATCH_H

#include "base/arena.h"
#include "base/option.h"
#include "base/output_lock.h"
#include "cli/batch/presence.h"
#include "cli/batch/worker.h"
#include "cli/log.h"
#include "cli/ranks.h"
#include "convert/jobs.h"

struct tare_batch_settings {
    const char *jobs, *methods, *output_dir, *algorithm, *label, *signature, *calibration, *spec, *state, *report;
    struct tare_option_list data, evaluation, plugins;
    int processes, retries;
    int64_t limit, memory, max_size;
    double max_drop, min_sqnr, margin, max_time;
    int chip; /* as in struct tare_job_limits */
    int64_t chip_batch;
    bool resume, overwrite, dry_run, json, quiet, keep_rejected;
    struct tare_log_options logging;
};

struct tare_batch_run {
    const struct tare_batch_settings *options;
    struct tare_arena arena;
    struct tare_jobs jobs;
    struct tare_task *tasks; /* calibrations first, then the jobs in file order */
    size_t n_tasks, n_calibrations;
    const char *state, *version;  /* version: of the program and of its op libraries */
    struct tare_output_lock lock; /* of the state, on rank 0 */
    struct tare_ranks ranks;
    struct tare_batch_presence presence;
    double started;
};

/* --dry-run: prints each task with its memory and the time of its last run; `budget`: bytes for all processes. */
tare_status tare_batch_plan_print(struct tare_batch_run *b, int64_t budget) TARE_WARN_UNUSED;
/* Prints the results of all jobs and writes --report, for HTML with one page per model that was made. An error if a job
 * failed or was rejected. */
tare_status tare_batch_report_print(struct tare_batch_run *b) TARE_WARN_UNUSED;

#endif
