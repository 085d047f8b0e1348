/* Runs a command and kills it, with all its children, when it is about to make its N-th system call that changes files:
 *
 *   kill_at_call COUNT_FILE N [--no-exchange] COMMAND [ARGUMENT]…
 *
 * N 0: not at all. The number of such calls is written to COUNT_FILE, and the exit status is the command's, 137 after a
 * kill, 77 where tracing is not possible. Counted are calls that create, write, rename, remove, sync or lock files, of
 * all threads and child processes; between two of them nothing changes on disk, so that the kills at 1 … all try every
 * state. With --no-exchange, renameat2 fails with EINVAL, as on file systems without it.
 *
 * PTRACE_GET_SYSCALL_INFO tells the number and the arguments; registers are changed for --no-exchange only (x86-64). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, KILLED = 137, MOST_TASKS = 256 };

struct trace {
    long at, count;
    bool no_exchange;
    pid_t command;
    pid_t tasks[MOST_TASKS]; /* processes and threads, 0: free */
    int status;
};

static void fail(const char *what) {
    perror(what);
    exit(SKIPPED);
}

static bool changes_files(const struct __ptrace_syscall_info *info) {
    switch (info->entry.nr) {
    case SYS_openat:
        return info->entry.args[2] & (O_CREAT | O_TRUNC);
#ifdef SYS_open
    case SYS_open:
        return info->entry.args[1] & (O_CREAT | O_TRUNC);
    case SYS_mkdir:
    case SYS_rename:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_chmod:
#endif
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_copy_file_range:
    case SYS_sendfile:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_mkdirat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_linkat:
    case SYS_symlinkat:
    case SYS_fchmod:
    case SYS_fchmodat:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_flock:
        return true;
    default:
        return false;
    }
}

/* ---- tasks ---- */

static void add_task(struct trace *trace, pid_t task) {
    for (int i = 0; i < MOST_TASKS; i++)
        if (trace->tasks[i] == task) return;
    for (int i = 0; i < MOST_TASKS; i++)
        if (!trace->tasks[i]) {
            trace->tasks[i] = task;
            return;
        }
    fail("too many tasks");
}

/* A child that was forked a moment ago is not in the list; it stops before its first instruction and is reported. */
static void kill_all(const struct trace *trace) {
    int status;
    pid_t task;
    for (int i = 0; i < MOST_TASKS; i++)
        if (trace->tasks[i]) kill(trace->tasks[i], SIGKILL);
    while ((task = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR)
        if (task > 0 && WIFSTOPPED(status)) kill(task, SIGKILL);
}

/* ---- system calls ---- */

#ifdef __x86_64__
/* At the entry the call is replaced by none, at the exit the result is set. */
static void refuse_call(pid_t task, bool entry) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, task, NULL, &registers) != 0) fail("PTRACE_GETREGS");
    if (entry)
        registers.orig_rax = (unsigned long long)-1;
    else
        registers.rax = (unsigned long long)-EINVAL;
    if (ptrace(PTRACE_SETREGS, task, NULL, &registers) != 0) fail("PTRACE_SETREGS");
}
#else
static void refuse_call(pid_t task, bool entry) {
    (void)task, (void)entry;
    exit(SKIPPED);
}
#endif

/* A stop at the entry or the exit of a system call; true if everything is to be killed now. */
static bool on_call(struct trace *trace, pid_t task, pid_t *refused) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof info, &info) <= 0) return false;
    if (info.op == PTRACE_SYSCALL_INFO_EXIT && *refused == task) {
        refuse_call(task, false);
        *refused = 0;
    }
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_files(&info)) return false;
    trace->count++;
    if (trace->count == trace->at) return true;
    if (trace->no_exchange && info.entry.nr == SYS_renameat2) {
        refuse_call(task, true);
        *refused = task;
    }
    return false;
}

static void follow(struct trace *trace) {
    pid_t refused = 0;
    for (;;) {
        int status, deliver = 0;
        const pid_t task = waitpid(-1, &status, __WALL);
        if (task < 0 && errno == EINTR) continue;
        if (task < 0) return;
        add_task(trace, task);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            for (int i = 0; i < MOST_TASKS; i++)
                if (trace->tasks[i] == task) trace->tasks[i] = 0;
            if (task == trace->command)
                trace->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            if (on_call(trace, task, &refused)) {
                kill_all(trace);
                trace->status = KILLED;
                return;
            }
        } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
            deliver = WSTOPSIG(status); /* a signal of the program's own */
        }
        ptrace(PTRACE_SYSCALL, task, NULL, (void *)(long)deliver);
    }
}

static void start(struct trace *trace, char **command) {
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int status;
    trace->command = fork();
    if (trace->command < 0) fail("fork");
    if (trace->command == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) fail("PTRACE_TRACEME");
        raise(SIGSTOP);
        execvp(*command, command);
        fail(*command);
    }
    if (waitpid(trace->command, &status, 0) < 0 || !WIFSTOPPED(status)) exit(SKIPPED);
    if (ptrace(PTRACE_SETOPTIONS, trace->command, NULL, (void *)options) != 0) fail("PTRACE_SETOPTIONS");
    add_task(trace, trace->command);
    if (ptrace(PTRACE_SYSCALL, trace->command, NULL, NULL) != 0) fail("PTRACE_SYSCALL");
}

int main(int argc, char **argv) {
    struct trace trace = { 0 };
    int first = 3;
    FILE *file;
    if (argc > first && strcmp(argv[first], "--no-exchange") == 0) {
        trace.no_exchange = true;
        first++;
    }
    if (argc <= first) {
        fprintf(stderr, "usage: kill_at_call COUNT_FILE N [--no-exchange] COMMAND [ARGUMENT]…\n");
        return 2;
    }
    trace.at = atol(argv[2]);
    start(&trace, argv + first);
    follow(&trace);
    file = fopen(argv[1], "w");
    if (!file || fprintf(file, "%ld\n", trace.count) < 0 || fclose(file) != 0) fail(argv[1]);
    return trace.status;
}
