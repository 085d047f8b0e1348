/* Running programs from tests. */
#include "support/process.h"
#include "support/temp.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void redirect(const char *path, int to) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, to) < 0) _exit(126);
    close(fd);
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t used = 0, got;
    assert_non_null(file);
    do {
        text = realloc(text, used + 65537);
        assert_non_null(text);
        got = fread(text + used, 1, 65536, file);
        used += got;
    } while (got);
    fclose(file);
    text[used] = '\0';
    *size = used;
    return text;
}

static double seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

void process_run(struct process *process, const char *const *argv) {
    char out[1024], err[1024];
    struct rusage usage;
    size_t size;
    int status;
    pid_t child;
    snprintf(out, sizeof out, "%s", temp_path("process.out"));
    snprintf(err, sizeof err, "%s", temp_path("process.err"));
    child = fork();
    if (child == 0) {
        redirect(out, 1);
        redirect(err, 2);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    process->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    process->cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    process->peak_bytes = (size_t)usage.ru_maxrss * 1024;
    process->out = read_file(out, &process->out_size);
    process->err = read_file(err, &size);
    if (process->status == 127) fail_msg("%s cannot be started", argv[0]);
}

void process_free(struct process *process) {
    free(process->out);
    free(process->err);
    memset(process, 0, sizeof *process);
}

const char *process_tare(void) {
    const char *program = getenv("TARE_PROGRAM");
    if (!program || !*program) fail_msg("TARE_PROGRAM is not set");
    return program;
}
