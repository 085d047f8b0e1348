/* Log messages: warnings and notes for the user. Functions that may log take a struct tare_log; NULL discards all
 * messages. Failures are not logged: they are a status and a text (base/status.h). */
#ifndef TARE_BASE_LOG_H
#define TARE_BASE_LOG_H

#include "base/status.h"
#include "include/tare/log.h" /* enum tare_log_level */

#include <stdbool.h>
#include <stdio.h>

struct tare_log {
    enum tare_log_level most;                                              /* more detailed messages are discarded */
    void (*write)(void *arg, enum tare_log_level level, const char *text); /* may be called on any thread */
    void *arg;
};

/* What the user requested of a log. */
struct tare_log_options {
    const char *file; /* NULL: none */
    bool verbose;
};

/* A log that prints lines to standard error: "tare: warning: …", "tare: …", and "tare: error: …" for a text that begins
 * with "error: ". `quiet` prints only warnings and errors, `verbose` also details. */
struct tare_log tare_log_stderr(int quiet, int verbose);

/* Whether the stream is a terminal that shows colors, and NO_COLOR is not set. */
bool tare_log_colors_on(FILE *stream);

void tare_log_write(const struct tare_log *log, enum tare_log_level level, const char *format, ...) TARE_PRINTF(3, 4);
#define tare_warn(log, ...) tare_log_write((log), TARE_LOG_WARNING, __VA_ARGS__)
#define tare_note(log, ...) tare_log_write((log), TARE_LOG_NOTE, __VA_ARGS__)
#define tare_detail(log, ...) tare_log_write((log), TARE_LOG_DETAIL, __VA_ARGS__)

#endif
