/* Running the tasks of a batch in processes, as many at once as threads and memory allow. */
#ifndef TARE_CLI_BATCH_SCHEDULE_H
#define TARE_CLI_BATCH_SCHEDULE_H

#include "cli/batch_worker.h"

struct tare_progress;

struct tare_batch_schedule {
    struct tare_task *tasks;
    size_t count;
    int processes;  /* at once */
    int64_t memory; /* bytes that all together may need; one task alone always runs */
    int retries;    /* of a task whose process was killed or crashed */
    struct tare_progress *progress;
    struct tare_batch_setup setup;
};

/* Runs all tasks that are not to be skipped; what became of each is in its result. A process that ends by a signal is
 * one failed task. TARE_INTERRUPTED after SIGINT or SIGTERM: the processes have ended, finished tasks keep their
 * results. */
tare_status tare_batch_schedule_run(struct tare_batch_schedule *schedule, struct tare_arena *arena) TARE_WARN_UNUSED;

#endif
