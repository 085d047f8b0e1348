/* One task of a batch, done in a process of its own: a calibration that several jobs share, or a job. */
#ifndef TARE_CLI_BATCH_WORKER_H
#define TARE_CLI_BATCH_WORKER_H

#include "eval/job_key.h"
#include "eval/job_result.h"

#include <sys/types.h>

enum tare_task_state { TARE_TASK_WAITING, TARE_TASK_RUNNING, TARE_TASK_OVER };

struct tare_task {
    const char *name;
    const struct tare_job *job; /* of a calibration: any of the jobs that share it */
    bool is_calibration;
    struct tare_task *calibration; /* that must be over before; NULL: none */
    const char *calibration_path;  /* that it writes, or that the job reads; NULL: none */
    const char *result_path, *log_path;
    char key[TARE_KEY_SIZE]; /* "" when a file cannot be read: the task will say which */
    bool skip;               /* finished before */
    bool foreign;            /* another rank does it */
    enum tare_task_state state;
    struct tare_job_result result; /* when it is over */
    int64_t memory;                /* bytes that it may need */
    int attempts;
    pid_t pid;
    double started;
};

/* How a batch runs. */
struct tare_batch_setup {
    const char *run; /* which run this is (MPI); "" */
    bool overwrite;  /* outputs that are there */
};

/* In the child: does the task, writes its result file, and ends the process. */
_Noreturn void tare_batch_child(const struct tare_task *task, const struct tare_batch_setup *setup);

#endif
