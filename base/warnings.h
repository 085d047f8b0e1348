/* Warnings that are kept for a report, which then says what the log said. */
#ifndef TARE_BASE_WARNINGS_H
#define TARE_BASE_WARNINGS_H

#include "base/log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Zero it to start. Any thread may add to it; it must not move once a log keeps warnings in it. */
struct tare_warnings {
    const char **texts; /* in the order in which they came, each once */
    size_t count, capacity;
    struct tare_log next; /* that gets all messages */
    pthread_mutex_t lock;
    bool failed; /* a warning is missing, for lack of memory */
};

/* A log that passes all messages on to `next` (NULL: to none) and keeps the warnings. A warning that is kept already is
 * not passed on, nor one that is kept after a name: "TEXT" after "static: TEXT". */
struct tare_log tare_warnings_log(struct tare_warnings *out, const struct tare_log *next);
/* Keeps a warning. Returns whether it is new. */
bool tare_warnings_keep(struct tare_warnings *out, const char *text);
/* A log that keeps warnings and shows nothing. */
struct tare_log tare_warnings_silent(struct tare_warnings *out);
void tare_warnings_free(struct tare_warnings *warnings);

#endif
