/* Progress display: a bar with count, rate and time left on a terminal, otherwise a line every five seconds; nothing in
 * the first two seconds. Advancing is cheap and thread-safe. */
#ifndef TARE_BASE_PROGRESS_H
#define TARE_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tare_progress;

struct tare_progress_options {
    const char *label; /* "calibrating"; must outlive the progress */
    const char *unit;  /* "records" */
    int64_t total;     /* -1: not known */
    bool quiet;
    FILE *out;             /* NULL: standard error */
    bool terminal;         /* with `out` given: draw a bar */
    double (*clock)(void); /* seconds; NULL: the monotonic clock. For tests */
    /* Called instead of printing, ten times per second and at the end, never concurrently, even if `quiet`. NULL:
     * print. */
    void (*on_progress)(void *arg, const char *label, int64_t done, int64_t total);
    void *progress_arg;
};

/* NULL if quiet or out of memory: all functions accept NULL and do nothing. */
struct tare_progress *tare_progress_new(const struct tare_progress_options *options);
/* Sets the total if it becomes known later. */
void tare_progress_set_total(struct tare_progress *progress, int64_t total);
void tare_progress_advance(struct tare_progress *progress, int64_t count);
/* Counts units that an earlier run has done: they are part of the count, but not of the rate and the time left. */
void tare_progress_skip(struct tare_progress *progress, int64_t count);
/* Removes the bar, prints a final line if anything was displayed, and frees the progress. */
void tare_progress_free(struct tare_progress *progress);

#endif
