/* How far a long piece of work is: a bar with count, rate and time left on a terminal, a plain line every five seconds
 * elsewhere, nothing in the first two seconds. Counting is cheap and may be done by many threads. */
#ifndef TARE_BASE_PROGRESS_H
#define TARE_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tare_progress;

struct tare_progress_options {
    const char *label; /* "calibrating"; must live as long as the progress */
    const char *unit;  /* "records" */
    int64_t total;     /* -1: not known */
    bool quiet;
    FILE *out;             /* NULL: standard error */
    bool terminal;         /* with `out` given: draw a bar */
    double (*clock)(void); /* seconds; NULL: the system's. For tests */
    /* Told instead of a line being written, ten times a second and at the end, one call at a time; `quiet` does not
     * count then. NULL: not. */
    void (*on_progress)(void *arg, const char *label, int64_t done, int64_t total);
    void *progress_arg;
};

/* NULL when memory is out or quiet: all functions take NULL and do nothing. */
struct tare_progress *tare_progress_new(const struct tare_progress_options *options);
/* Says how much there is when it is found out while the work goes on. */
void tare_progress_set_total(struct tare_progress *progress, int64_t total);
void tare_progress_advance(struct tare_progress *progress, int64_t count);
/* Counts units that an earlier run has done: they are part of the count, but not of the rate and the time left. */
void tare_progress_skip(struct tare_progress *progress, int64_t count);
/* Takes the bar away (leaves a last line when anything was shown) and releases it. */
void tare_progress_free(struct tare_progress *progress);

#endif
