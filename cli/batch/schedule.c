/* Starts the processes of a batch within the limits of processes and memory, and collects their results. */
#include "cli/batch/schedule.h"
#include "base/control.h"
#include "base/file.h"
#include "base/format.h"
#include "base/progress.h"
#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- ends ---- */

static void finish(struct tare_batch_schedule *s, struct tare_task *task) {
    task->state = TARE_TASK_OVER;
    if (!task->is_calibration && !task->foreign) tare_progress_advance(s->progress, 1);
}

static tare_status fail(struct tare_batch_schedule *s, struct tare_arena *arena, struct tare_task *task,
                        const char *reason) {
    task->result = tare_job_result_new(task->name);
    task->result.reason = tare_arena_strdup(arena, reason);
    task->result.run = s->setup.run;
    task->result.attempts = task->attempts;
    finish(s, task);
    return task->result.reason ? tare_job_result_save(&task->result, task->result_path) : TARE_NO_MEMORY;
}

static tare_status on_signal_end(struct tare_batch_schedule *s, struct tare_arena *arena, struct tare_task *task,
                                 int number) {
    char reason[160];
    if (tare_interrupted) {
        task->state = TARE_TASK_WAITING; /* stopped together with this process; a resumed run repeats it */
        return TARE_OK;
    }
    if (task->attempts <= s->retries) {
        task->state = TARE_TASK_WAITING;
        return TARE_OK;
    }
    snprintf(reason, sizeof reason, "its process ended by signal %d (%s) at attempt %d", number, strsignal(number),
             task->attempts);
    return fail(s, arena, task, reason);
}

/* A process that exits normally has written its result file. */
static tare_status on_exit_status(struct tare_batch_schedule *s, struct tare_arena *arena, struct tare_task *task,
                                  int code) {
    char reason[160];
    if (code == 130) {
        task->state = TARE_TASK_WAITING;
        return TARE_OK;
    }
    if (tare_job_result_load(&task->result, arena, task->result_path) == TARE_OK) {
        finish(s, task);
        return TARE_OK;
    }
    tare_error_clear();
    snprintf(reason, sizeof reason, "its process ended with %d and left no result", code);
    return fail(s, arena, task, reason);
}

static tare_status collect(struct tare_batch_schedule *s, struct tare_arena *arena, pid_t pid, int status) {
    for (size_t i = 0; i < s->count; i++) {
        struct tare_task *task = &s->tasks[i];
        if (task->state != TARE_TASK_RUNNING || task->pid != pid) continue;
        if (WIFSIGNALED(status)) return on_signal_end(s, arena, task, WTERMSIG(status));
        return on_exit_status(s, arena, task, WEXITSTATUS(status));
    }
    return TARE_OK;
}

/* ---- starts ---- */

static tare_status start(struct tare_batch_schedule *s, struct tare_task *task) {
    tare_status status = tare_file_remove_tree(task->result_path);
    if (status != TARE_OK) return status;
    fflush(NULL);
    task->attempts++;
    const pid_t parent = getpid();
    task->pid = fork();
    if (task->pid == 0) tare_batch_child(task, &s->setup, parent);
    if (task->pid < 0) return TARE_FAIL(TARE_NO_MEMORY, "cannot start a process: %s", tare_system_error(errno));
    task->state = TARE_TASK_RUNNING;
    return TARE_OK;
}

struct load {
    int processes;
    int64_t memory;
    bool waiting; /* some task has not run yet */
};

static struct load load_of(const struct tare_batch_schedule *s) {
    struct load load = { 0 };
    for (size_t i = 0; i < s->count; i++) {
        const struct tare_task *task = &s->tasks[i];
        load.waiting |= task->state == TARE_TASK_WAITING;
        if (task->state != TARE_TASK_RUNNING) continue;
        load.processes++;
        load.memory += task->memory;
    }
    return load;
}

static bool fits(const struct tare_batch_schedule *s, const struct load *load, const struct tare_task *task) {
    return load->processes == 0 || (load->processes < s->processes && load->memory + task->memory <= s->memory);
}

/* Starts the tasks that fit, in order. A task that waits for memory is overtaken by smaller ones. */
static tare_status start_ready(struct tare_batch_schedule *s, struct tare_arena *arena) {
    for (size_t i = 0; i < s->count; i++) {
        struct tare_task *task = &s->tasks[i];
        const struct load load = load_of(s);
        if (task->state != TARE_TASK_WAITING) continue;
        if (task->skip || task->foreign) {
            finish(s, task);
        } else if (task->calibration && task->calibration->state != TARE_TASK_OVER) {
            continue;
        } else if (task->calibration && task->calibration->result.outcome != TARE_JOB_DONE) {
            char reason[512];
            snprintf(reason, sizeof reason, "calibration: %s", task->calibration->result.reason);
            TARE_TRY(fail(s, arena, task, reason));
        } else if (fits(s, &load, task)) {
            TARE_TRY(start(s, task));
        }
    }
    return TARE_OK;
}

/* ---- the loop ---- */

/* The processes share our process group, so that Ctrl-C reaches them; SIGTERM is forwarded. */
static void stop_all(const struct tare_batch_schedule *s) {
    for (size_t i = 0; i < s->count; i++)
        if (s->tasks[i].state == TARE_TASK_RUNNING) kill(s->tasks[i].pid, SIGTERM);
}

/* Waits for one process to exit; wakes up periodically to check for an interruption. */
static tare_status wait_for_one(struct tare_batch_schedule *s, struct tare_arena *arena, bool *stopped) {
    const struct timespec nap = { .tv_nsec = 5000000 };
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) return collect(s, arena, pid, status);
        if (pid < 0 && errno != EINTR)
            return TARE_FAIL(TARE_INTERNAL, "waiting for a process: %s", tare_system_error(errno));
        if (tare_interrupted && !*stopped) {
            stop_all(s);
            *stopped = true;
        }
        tare_batch_presence_tell(s->presence);
        nanosleep(&nap, NULL);
    }
}

tare_status tare_batch_schedule_run(struct tare_batch_schedule *s, struct tare_arena *arena) {
    bool stopped = false;
    tare_status status = TARE_OK;
    for (;;) {
        struct load load;
        if (!tare_interrupted && status == TARE_OK) status = start_ready(s, arena);
        load = load_of(s);
        if (load.processes == 0 && (!load.waiting || tare_interrupted || status != TARE_OK)) break;
        if (load.processes > 0) {
            tare_status waited = wait_for_one(s, arena, &stopped);
            if (status == TARE_OK) status = waited;
        }
    }
    if (status == TARE_OK && tare_interrupted)
        return TARE_FAIL(TARE_INTERRUPTED, "%s (continue with --resume)", tare_control_reason());
    return status;
}
