/* Warnings and notes on their way to the user. A library function that may have something to say takes a log; NULL
 * means that nobody listens. Failures are not logged: they are a status and a text (base/status.h). */
#ifndef TARE_BASE_LOG_H
#define TARE_BASE_LOG_H

#include "base/status.h"

#include <stdbool.h>

enum tare_log_level {
    TARE_LOG_WARNING, /* the result may not be what the user wants */
    TARE_LOG_NOTE,    /* what was done, in a line */
    TARE_LOG_DETAIL,  /* for --verbose */
};

struct tare_log {
    enum tare_log_level most; /* what is more detailed than this is dropped */
    void (*write)(void *arg, enum tare_log_level level, const char *text); /* called from any thread */
    void *arg;
};

/* Lines on standard error: "tare: warning: …", "tare: …". quiet leaves warnings only, verbose adds details. */
struct tare_log tare_log_stderr(int quiet, int verbose);

/* Whether standard error is a terminal that shows colors, and NO_COLOR is not set. */
bool tare_log_colors(void);

void tare_log_write(const struct tare_log *log, enum tare_log_level level, const char *format, ...) TARE_PRINTF(3, 4);
#define tare_warn(log, ...) tare_log_write((log), TARE_LOG_WARNING, __VA_ARGS__)
#define tare_note(log, ...) tare_log_write((log), TARE_LOG_NOTE, __VA_ARGS__)

#endif
