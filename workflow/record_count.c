/* A thread that reads the files to their end, unless the run ends before. */
#include "workflow/record_count.h"
#include "base/alloc.h"
#include "base/thread.h"
#include "datasets/data_file.h"

#include <stdatomic.h>

struct tare_record_counter {
    const char *const *paths;
    size_t n_paths;
    struct tare_source_options options;
    struct tare_progress *progress;
    struct tare_thread *thread;
    atomic_bool stop;
    int64_t total;
};

/* Counts every record without decoding any; the first request for a record ends the count. */
static bool ends_count(void *arg, const struct tare_record *where) {
    struct tare_record_counter *counter = arg;
    (void)where;
    counter->total++;
    return atomic_load(&counter->stop);
}

static tare_status count(void *arg) {
    struct tare_record_counter *counter = arg;
    struct tare_source *source = NULL;
    struct tare_sample sample;
    struct tare_record where;
    bool end = false;
    tare_status status = tare_source_new(&source, counter->paths, counter->n_paths, &counter->options);
    if (status == TARE_OK) status = tare_source_next(&sample, &where, &end, source, ends_count, counter);
    if (status == TARE_OK && !end) tare_sample_reset(&sample);
    if (status == TARE_OK && end) tare_progress_set_total(counter->progress, counter->total);
    tare_source_free(source);
    tare_error_clear(); /* the run itself reports the error */
    return TARE_OK;
}

struct tare_record_counter *tare_record_counter_start(const char *const *paths, size_t n_paths,
                                                      const struct tare_source_options *options,
                                                      struct tare_progress *progress) {
    if (!progress || tare_data_read_once(paths, n_paths)) return NULL;
    struct tare_record_counter *counter = tare_calloc(1, sizeof *counter);
    if (!counter) {
        tare_error_clear(); /* continue without the time left */
        return NULL;
    }
    *counter =
        (struct tare_record_counter){ .paths = paths, .n_paths = n_paths, .options = *options, .progress = progress };
    counter->options.prefetch = 0;
    counter->options.on_bad = NULL;
    counter->thread = tare_thread_start(count, counter);
    if (!counter->thread) tare_error_clear();
    return counter;
}

void tare_record_counter_end(struct tare_record_counter *counter) {
    if (!counter) return;
    atomic_store(&counter->stop, true);
    if (tare_thread_join(counter->thread) != TARE_OK) tare_error_clear(); /* count does not fail itself */
    tare_free(counter);
}
