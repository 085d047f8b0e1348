/* One task of a batch, run in its own process: a calibration that several jobs share, or a job. */
#ifndef TARE_CLI_BATCH_WORKER_H
#define TARE_CLI_BATCH_WORKER_H

#include "eval/jobs/job_key.h"
#include "eval/jobs/job_result.h"

#include <sys/types.h>

enum tare_task_state { TARE_TASK_WAITING, TARE_TASK_RUNNING, TARE_TASK_OVER };

struct tare_task {
    const char *name;
    const struct tare_job *job; /* for a calibration: any of the jobs that share it */
    bool is_calibration;
    struct tare_task *calibration; /* must finish first; NULL: none */
    const char *calibration_path;  /* written by a calibration, read by a job; NULL: none */
    bool takes_samples;            /* the job calibrates itself, as it needs more than a shared calibration has */
    const char *result_path, *log_path;
    const char *page_path;   /* of a rejected model that is not kept (cli/batch/page.h) */
    char key[TARE_KEY_SIZE]; /* "" if a file cannot be read: the task reports which */
    bool skip;               /* finished before */
    int rank;                /* that runs the task */
    bool foreign;            /* that is another one */
    enum tare_task_state state;
    struct tare_job_result result; /* after it has finished */
    int64_t memory;                /* estimated memory in bytes */
    int attempts;
    pid_t pid;
    double started;
};

/* Settings of a batch run. */
struct tare_batch_setup {
    const char *run; /* identifies the run under MPI; otherwise "" */
    bool overwrite;  /* existing outputs */
};

/* The command of a job, which writes to `folder`: its name, and its arguments. */
enum { TARE_BATCH_WORDS = 1024 };
struct tare_batch_command {
    const char *name, *items[TARE_BATCH_WORDS];
    int count;
};
void tare_batch_command_of(struct tare_batch_command *out, const struct tare_task *task, const char *folder);

/* Called in the child process: runs the task, writes its result file and exits. `parent` is the batch process; where it
 * has ended, the child exits without a result. */
_Noreturn void tare_batch_child(const struct tare_task *task, const struct tare_batch_setup *setup, pid_t parent);

#endif
