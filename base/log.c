/* Log messages are formatted here and passed to the log's write function. */
#include "base/log.h"
#include "base/format.h"
#include "base/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ERROR "error: "

bool tare_log_colors_on(FILE *stream) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(stream == stdout ? STDOUT_FILENO : fileno(stream)) && !(no_color && *no_color) && term &&
           strcmp(term, "dumb") != 0;
}

/* What precedes a text: "error: " in its place if the text begins with it, "warning: " or nothing. */
static const char *label_of(enum tare_log_level level, bool error, bool color) {
    if (error) return color ? "\033[31merror:\033[0m " : "error: ";
    if (level != TARE_LOG_WARNING) return "";
    return color ? "\033[33mwarning:\033[0m " : "warning: ";
}

static void write_stderr(void *arg, enum tare_log_level level, const char *text) {
    /* A progress bar may occupy the line. One call per line keeps the lines of several threads apart. */
    const bool terminal = isatty(STDERR_FILENO), error = strncmp(text, ERROR, strlen(ERROR)) == 0;
    (void)arg;
    fprintf(stderr, "%stare: %s%s\n", terminal ? "\r\033[K" : "", label_of(level, error, tare_log_colors_on(stderr)),
            error ? text + strlen(ERROR) : text);
}

struct tare_log tare_log_stderr(int quiet, int verbose) {
    return (struct tare_log){ quiet     ? TARE_LOG_WARNING
                              : verbose ? TARE_LOG_DETAIL
                                        : TARE_LOG_NOTE,
                              write_stderr, NULL };
}

void tare_log_write(const struct tare_log *log, enum tare_log_level level, const char *format, ...) {
    char text[4096], line[4096];
    va_list args;
    if (!log || !log->write || level > log->most) return;
    va_start(args, format);
    tare_format_va(text, sizeof text, format, args);
    va_end(args);
    log->write(log->arg, level, tare_visible_line(line, sizeof line, text)); /* names in it may contain anything */
}
