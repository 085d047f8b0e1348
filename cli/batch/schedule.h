/* Runs the tasks of a batch in processes, limited by a number of processes and by memory. */
#ifndef TARE_CLI_BATCH_SCHEDULE_H
#define TARE_CLI_BATCH_SCHEDULE_H

#include "cli/batch/presence.h"
#include "cli/batch/worker.h"

struct tare_progress;

struct tare_batch_schedule {
    struct tare_task *tasks;
    size_t count;
    int processes;  /* at a time */
    int64_t memory; /* bytes for all running tasks together; a single task always runs */
    int retries;    /* for a task whose process was killed or crashed */
    struct tare_progress *progress;
    struct tare_batch_setup setup;
    struct tare_batch_presence *presence; /* told while tasks run */
};

/* Runs all tasks that are not skipped and stores the result of each. A process killed by a signal counts as a failed
 * task. Returns TARE_INTERRUPTED after SIGINT or SIGTERM: all processes have exited, and finished tasks keep their
 * results. */
tare_status tare_batch_schedule_run(struct tare_batch_schedule *schedule, struct tare_arena *arena) TARE_WARN_UNUSED;

#endif
