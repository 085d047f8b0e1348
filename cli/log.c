/* The log of the process, like its standard error: opened by tare_command_parse, closed by tare_main. */
#include "cli/log.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/strbuf.h"
#include "include/tare/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

const struct tare_option tare_log_rows[] = {
    { TARE_OPTION(struct tare_log_options, "verbose", FLAG, verbose), .letter = 'v',
      .help = "also print details: what is loaded, time and memory" },
    { TARE_OPTION(struct tare_log_options, "log-file", STRING, file), .placeholder = "FILE",
      .help = "append all messages to FILE, with time and level, also those that --quiet suppresses" },
    { 0 },
};

static struct {
    const char *path;
    int file;          /* -1: none */
    _Atomic int error; /* of the first write that failed, after which nothing is written */
    bool verbose;
    double start;
    struct tare_warnings warnings;
} state = { .file = -1 };

/* ---- the file ---- */

static const char *level_name(enum tare_log_level level) {
    return level == TARE_LOG_WARNING ? "warning" : level == TARE_LOG_NOTE ? "note" : "detail";
}

/* One write per line, so that lines of several processes with one file are not mixed. A full disk does not end the
 * work: tare_command_log_close reports it. */
static void write_line(const struct tare_strbuf *line) {
    const char *text = tare_strbuf_text(line);
    for (size_t done = 0; done < line->size && !state.error;) {
        const ssize_t written = write(state.file, text + done, line->size - done);
        if (written > 0) done += (size_t)written;
        if (written < 0 && errno != EINTR) state.error = errno;
    }
}

static void append(const char *level, const char *text) {
    struct tare_strbuf line = { 0 };
    char when[32] = "";
    struct tm date;
    const time_t now = time(NULL);
    if (state.file < 0) return;
    if (gmtime_r(&now, &date)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &date);
    tare_strbuf_printf(&line, "%s %ld %s: %s\n", when, (long)getpid(), level, text);
    if (line.failed)
        state.error = ENOMEM;
    else
        write_line(&line);
    tare_strbuf_free(&line);
}

void tare_command_log_to_file(enum tare_log_level level, const char *text) {
    append(level_name(level), text);
}

/* ---- messages ---- */

/* `arg`: the most detailed level that standard error shows. */
static void write_both(void *arg, enum tare_log_level level, const char *text) {
    const struct tare_log terminal = tare_log_stderr(0, 1);
    if (level == TARE_LOG_WARNING && !tare_warnings_keep(&state.warnings, text)) return;
    append(level_name(level), text);
    if (level > (enum tare_log_level)(intptr_t)arg) return;
    fflush(stdout); /* where both are one file, their order is that of the work */
    terminal.write(terminal.arg, level, text);
}

struct tare_log tare_command_log(bool quiet) {
    const enum tare_log_level most = state.verbose ? TARE_LOG_DETAIL : quiet ? TARE_LOG_WARNING : TARE_LOG_NOTE;
    return (struct tare_log){ state.file >= 0 ? TARE_LOG_DETAIL : most, write_both, (void *)(intptr_t)most };
}

const struct tare_warnings *tare_command_warnings(void) {
    return &state.warnings;
}

/* ---- opening and closing ---- */

static tare_status open_file(const char *path) {
    state.path = path;
    state.file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (state.file >= 0) return TARE_OK;
    return tare_file_error("cannot create", path);
}

static void log_command(const char *program, int argc, char *const *argv) {
    const struct tare_log log = tare_command_log(true);
    struct tare_strbuf line = { 0 };
    tare_strbuf_printf(&line, "tare %s: %s", TARE_VERSION, program);
    for (int i = 0; i < argc; i++)
        tare_strbuf_printf(&line, " %s", argv[i]);
    if (!line.failed) tare_detail(&log, "%s", tare_strbuf_text(&line));
    tare_strbuf_free(&line);
}

/* The error is reported once. */
static int reset_error(void) {
    const int error = state.error;
    state.error = 0;
    if (error && state.file >= 0) {
        close(state.file);
        state.file = -1;
    }
    return error;
}

tare_status tare_command_log_open(const void *values, const struct tare_option_set *set, int argc, char *const *argv) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        const char *value = (const char *)values + walk.offset;
        if (strcmp(row->name, "verbose") == 0) state.verbose = *(const bool *)value;
        if (strcmp(row->name, "log-file") != 0 || !*(const char *const *)value) continue;
        TARE_TRY(open_file(*(const char *const *)value));
    }
    state.start = tare_clock_seconds();
    log_command(set->program, argc, argv);
    if (!state.error) return TARE_OK;
    return TARE_FAIL(TARE_IO, "--log-file %s: cannot be written: %s", state.path, tare_system_error(reset_error()));
}

static double seconds_of(const struct timeval *t) {
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

/* A log that is not complete makes a command that succeeded fail. */
static int close_file(int exit_status) {
    int error = reset_error();
    if (state.file >= 0 && close(state.file) != 0) error = errno;
    state.file = -1;
    if (!error) return exit_status;
    fprintf(stderr, "tare: %s--log-file %s: cannot be written: %s (%s)\n", exit_status ? "warning: " : "", state.path,
            tare_system_error(error),
            exit_status ? "the log is incomplete" : "the work is done, but its log is incomplete");
    return exit_status ? exit_status : 1;
}

int tare_command_log_close(int exit_status, const char *text) {
    const struct tare_log log = tare_command_log(true);
    struct rusage usage;
    if (text) append("error", text);
    if (state.start > 0 && getrusage(RUSAGE_SELF, &usage) == 0)
        tare_detail(&log, "exit status %d after %.2f s, %.2f s of processor time, at most %.1f MB of memory",
                    exit_status, tare_clock_seconds() - state.start,
                    seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime), (double)usage.ru_maxrss * 1024 / 1e6);
    exit_status = close_file(exit_status);
    tare_warnings_free(&state.warnings);
    state.start = 0;
    state.verbose = false;
    return exit_status;
}
