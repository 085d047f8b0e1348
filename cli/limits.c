/* --max-memory limits the heap (base/alloc.h). --max-seconds sets a timer whose signal cancels the command as Ctrl-C
 * does, but with its own message, and so does the signal of the processor time limit (ulimit -t); a command that has
 * not stopped five seconds later is ended. */
#include "cli/limits.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/memory_size.h"
#include "base/strbuf.h"
#include "cli/interrupted.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static tare_status read_size(size_t *bytes, const char *text) {
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        { "", 1 },      { "B", 1 },        { "kB", 1e3 },     { "MB", 1e6 },     { "GB", 1e9 },
        { "TB", 1e12 }, { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 },
    };
    char *end;
    const double value = tare_read_double(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text; i++) {
        const double size = value * units[i].factor;
        if (strcmp(end, units[i].unit) != 0 || !(size >= 1) || size > 0x1p62) continue;
        *bytes = (size_t)size;
        return TARE_OK;
    }
    return TARE_FAIL(TARE_USAGE, "--max-memory is '%s' (expected a size such as 500MB, 8GB or 2GiB)", text);
}

/* The end of a command that did not stop in time; what it wrote so far is as after a kill. */
static void on_end(int number) {
    static const char text[] = "tare: error: the time limit has passed, and the command did not stop in 5 s: ended\n";
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

/* The kernel sends SIGXCPU every second from the limit on: only the first one counts. */
static void on_limit(int number) {
    if (!tare_interrupted) tare_interrupted = number == SIGXCPU ? TARE_STOP_PROCESSOR : TARE_STOP_TIME;
    signal(SIGXCPU, SIG_IGN);
    signal(SIGALRM, on_end);
    alarm(5);
}

static void catch_limit(int number) {
    const struct sigaction action = { .sa_handler = on_limit };
    sigaction(number, &action, NULL);
}

static tare_status set_time(const char *text) {
    char *end;
    const double seconds = tare_read_double(text, &end);
    struct itimerval timer = { 0 };
    if (end == text || *end || !(seconds > 0) || seconds > 1e9)
        return TARE_FAIL(TARE_USAGE, "--max-seconds is '%s' (expected a positive number of seconds)", text);
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6);
    if (!timer.it_value.tv_sec && !timer.it_value.tv_usec) timer.it_value.tv_usec = 1;
    catch_limit(SIGALRM);
    setitimer(ITIMER_REAL, &timer, NULL);
    return TARE_OK;
}

/* The value of argument *i if it is the option `name`, as "--name value" or "--name=value", otherwise NULL. *i then is
 * the last word of the option. */
static tare_status option_value(const char **value, const char *name, int *i, int argc, char *const *argv) {
    const char *at = argv[*i];
    *value = NULL;
    if (strncmp(at, "--", 2) != 0) return TARE_OK;
    for (at += 2; *name && (*at == *name || (*at == '_' && *name == '-')); at++)
        name++;
    if (*name || (*at && *at != '=')) return TARE_OK;
    if (!*at && *i + 1 >= argc) return TARE_FAIL(TARE_USAGE, "option '--%s' needs a value", argv[*i] + 2);
    *value = *at ? at + 1 : argv[++*i];
    return TARE_OK;
}

tare_status tare_limits_apply(int *argc, char **argv) {
    size_t bytes = tare_memory_bytes();
    int kept = 0, i = 0;
    catch_limit(SIGXCPU);
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        const int first = i;
        const char *memory, *seconds = NULL;
        TARE_TRY(option_value(&memory, "max-memory", &i, *argc, argv));
        if (!memory) TARE_TRY(option_value(&seconds, "max-seconds", &i, *argc, argv));
        if (memory) TARE_TRY(read_size(&bytes, memory));
        if (seconds) TARE_TRY(set_time(seconds));
        if (!memory && !seconds) argv[kept++] = argv[first];
    }
    for (; i < *argc; i++)
        argv[kept++] = argv[i];
    argv[kept] = NULL;
    *argc = kept;
    tare_alloc_set_limit(bytes);
    return TARE_OK;
}

const struct tare_option tare_limits_rows[] = {
    { .name = "max-memory",
      .kind = TARE_OPTION_STRING,
      .placeholder = "SIZE",
      .help = "fail instead of using more heap memory: 500MB, 8GB, 2GiB (default: the memory of the machine or "
              "container)" },
    { .name = "max-seconds",
      .kind = TARE_OPTION_STRING,
      .placeholder = "N",
      .help = "stop after N seconds, as Ctrl-C does" },
    { 0 },
};
