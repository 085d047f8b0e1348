/* Progress lines are printed by the thread that advances when one is due. */
#include "base/progress.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Seconds. */
static const double first_after = 2, bar_every = 0.1, line_every = 5;
enum { BAR = 24, TIME_TEXT = 24 };

struct tare_progress {
    struct tare_progress_options options;
    pthread_mutex_t lock; /* for printing; advance never waits for it */
    _Atomic int64_t done;
    _Atomic int64_t skipped; /* of these, done by an earlier run */
    double began;
    _Atomic double due;
    bool shown;
};

struct tare_progress *tare_progress_new(const struct tare_progress_options *options) {
    struct tare_progress *progress;
    if (options->quiet && !options->on_progress) return NULL;
    progress = tare_calloc(1, sizeof *progress);
    if (!progress) {
        tare_error_clear(); /* not a failure: there is no bar */
        return NULL;
    }
    progress->options = *options;
    if (!options->clock) progress->options.clock = tare_clock_seconds;
    if (!options->out) {
        progress->options.out = stderr;
        progress->options.terminal = isatty(STDERR_FILENO);
    }
    pthread_mutex_init(&progress->lock, NULL);
    progress->began = progress->options.clock();
    atomic_init(&progress->due, progress->began + (options->on_progress ? 0 : first_after));
    return progress;
}

static const char *time_text(char text[TIME_TEXT], double seconds) {
    long s = seconds < 0 ? 0 : seconds > 3.6e6 ? 3600000 : (long)(seconds + 0.5);
    if (s < 3600)
        snprintf(text, TIME_TEXT, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, TIME_TEXT, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

static void write_line(struct tare_progress *progress, double now, bool last) {
    const struct tare_progress_options *options = &progress->options;
    int64_t done = atomic_load(&progress->done);
    const int64_t counted = done - atomic_load(&progress->skipped);
    double passed = now - progress->began, rate = passed > 0 ? (double)counted / passed : 0;
    double part = options->total > 0 ? (double)done / (double)options->total : 0;
    char bar[BAR + 1], text[TIME_TEXT], left[TIME_TEXT + 16] = "";
    int full = (int)((part > 1 ? 1 : part) * BAR);

    if (options->on_progress) {
        options->on_progress(options->progress_arg, options->label, done, options->total);
        return;
    }
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    fprintf(options->out, "%s%s ", options->terminal ? "\r" : "", options->label);
    if (options->total > 0 && options->terminal) fprintf(options->out, "[%s] ", bar);
    fprintf(options->out, "%lld", (long long)done);
    if (options->total > 0) fprintf(options->out, "/%lld", (long long)options->total);
    if (last)
        snprintf(left, sizeof left, "in %s", time_text(text, passed));
    else if (options->total > 0 && rate > 0)
        snprintf(left, sizeof left, "%s left", time_text(text, (double)(options->total - done) / rate));
    else
        snprintf(left, sizeof left, "%s so far", time_text(text, passed));
    fprintf(options->out, " %s, %.*f/s, %s%s", options->unit,
            rate < 10    ? 2
            : rate < 100 ? 1
                         : 0,
            rate, left, options->terminal ? last ? "\033[K\n" : "\033[K" : "\n");
    fflush(options->out);
    progress->shown = true;
}

void tare_progress_set_total(struct tare_progress *progress, int64_t total) {
    if (!progress) return;
    pthread_mutex_lock(&progress->lock);
    progress->options.total = total;
    pthread_mutex_unlock(&progress->lock);
}

void tare_progress_advance(struct tare_progress *progress, int64_t count) {
    double now;
    if (!progress) return;
    atomic_fetch_add_explicit(&progress->done, count, memory_order_relaxed);
    now = progress->options.clock();
    if (now < atomic_load_explicit(&progress->due, memory_order_relaxed)) return;
    if (pthread_mutex_trylock(&progress->lock) != 0) return; /* another thread is printing */
    if (now >= atomic_load(&progress->due)) {
        write_line(progress, now, false);
        atomic_store(&progress->due,
                     now + (progress->options.terminal || progress->options.on_progress ? bar_every : line_every));
    }
    pthread_mutex_unlock(&progress->lock);
}

void tare_progress_skip(struct tare_progress *progress, int64_t count) {
    if (!progress) return;
    atomic_fetch_add(&progress->skipped, count);
    atomic_fetch_add(&progress->done, count);
}

void tare_progress_free(struct tare_progress *progress) {
    if (!progress) return;
    if (progress->shown || progress->options.on_progress) write_line(progress, progress->options.clock(), true);
    pthread_mutex_destroy(&progress->lock);
    tare_free(progress);
}
