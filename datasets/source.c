/* The samples of one or several files. Reading makes a sequence of items; they are used at once, or by a thread put
 * into a queue from which they are used later. */
#include "datasets/source.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/thread.h"
#include "datasets/tfrecord.h"

#include <string.h>

enum item_kind { SAMPLE, BAD, END, FAILURE };

struct item {
    enum item_kind kind;
    tare_status status; /* of BAD and FAILURE, whose text is the thread's error text … */
    char *text;         /* … or, when it comes through the queue, this */
    struct tare_sample sample;
    struct tare_provenance where;
};

struct tare_source {
    struct tare_source_options options;
    struct tare_file_list files;
    /* the reading side */
    size_t file; /* being read, or to be opened next */
    struct tare_tfrecord_reader *reader;
    int64_t index; /* of the next record in the whole */
    int64_t given, bad;
    /* the using side */
    int64_t told; /* bad records noted */
    bool over;
    struct tare_queue *queue;
    struct tare_thread *thread;
};

/* What next asks before a record is decoded. */
struct filter {
    bool (*wanted)(void *arg, const struct tare_provenance *where);
    void *arg;
};

static tare_status default_decode(void *arg, struct tare_sample *out, const void *data, size_t size) {
    (void)arg;
    return tare_sample_decode(out, data, size);
}

static tare_status add_files(struct tare_source *source, const char *const *paths, size_t n_paths) {
    for (size_t i = 0; i < n_paths; i++) {
        if (strcmp(paths[i], "-") != 0)
            TARE_TRY(tare_file_glob(&source->files, paths[i]));
        else if (!tare_file_list_add(&source->files, "-"))
            return TARE_NO_MEMORY;
    }
    if (!source->files.count) return TARE_FAIL(TARE_NOT_FOUND, "no data files");
    for (size_t i = 0; i < source->files.count; i++) {
        const char *name = source->files.names[i];
        if (strcmp(name, "-") != 0 && tare_file_kind_of(name) == TARE_FILE_NONE)
            return TARE_FAIL(TARE_NOT_FOUND, "cannot open '%s': No such file or directory", name);
    }
    return TARE_OK;
}

tare_status tare_source_new(struct tare_source **out, const char *const *paths, size_t n_paths,
                            const struct tare_source_options *options) {
    struct tare_source *source;
    tare_status status;
    *out = NULL;
    if (options && options->shards > 0 && (options->shard < 0 || options->shard >= options->shards))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "shard %lld (wanted 0 to %lld)", (long long)options->shard,
                         (long long)options->shards - 1);
    source = tare_calloc(1, sizeof *source);
    if (!source) return TARE_NO_MEMORY;
    if (options) source->options = *options;
    if (!source->options.decode) source->options.decode = default_decode;
    status = add_files(source, paths, n_paths);
    if (status == TARE_OK) status = tare_tfrecord_open(&source->reader, source->files.names[0]);
    if (status == TARE_OK)
        *out = source;
    else
        tare_source_free(source);
    return status;
}

const char *const *tare_source_files(const struct tare_source *source, size_t *count) {
    *count = source->files.count;
    return (const char *const *)source->files.names;
}

int64_t tare_source_bad(const struct tare_source *source) {
    return source->told;
}

/* ---- reading ---- */

static void make_end(struct item *item) {
    item->kind = END;
}

static void make_failure(struct item *item, tare_status status) {
    item->kind = FAILURE;
    item->status = status;
}

/* A record that cannot be used: passed over while there are not too many. */
static void make_bad(struct item *item, struct tare_source *source, tare_status status, bool can_go_on) {
    make_failure(item, status);
    if (!can_go_on || source->bad >= source->options.max_bad) return;
    source->bad++;
    item->kind = BAD;
}

static tare_status open_next_file(struct tare_source *source) {
    tare_tfrecord_close(source->reader);
    source->reader = NULL;
    if (++source->file >= source->files.count) return TARE_OK;
    return tare_tfrecord_open(&source->reader, source->files.names[source->file]);
}

/* The next whole record; false when the item says what came instead. */
static bool read_record(struct tare_tfrecord *record, struct item *item, struct tare_source *source) {
    while (source->reader) {
        bool file_end;
        tare_status status = tare_tfrecord_next(record, &file_end, source->reader);
        if (status != TARE_OK) {
            source->index++;
            make_bad(item, source, status, status == TARE_CORRUPT);
            return false;
        }
        if (!file_end) return true;
        status = open_next_file(source);
        if (status != TARE_OK) {
            make_failure(item, status);
            return false;
        }
    }
    make_end(item);
    return false;
}

static void decode(struct item *item, struct tare_source *source, const struct tare_tfrecord *record) {
    const struct tare_source_options *options = &source->options;
    tare_status status = options->decode(options->decode_arg, &item->sample, record->data, record->size);
    item->kind = SAMPLE;
    if (status == TARE_OK) return;
    tare_sample_reset(&item->sample);
    source->given--;
    status = tare_error_prefix(status, "%s: record %lld at %lld", source->files.names[source->file],
                               (long long)record->number, (long long)record->offset);
    make_bad(item, source, status, status != TARE_NO_MEMORY);
}

static void read_item(struct item *item, struct tare_source *source, const struct filter *filter) {
    const struct tare_source_options *options = &source->options;
    memset(item, 0, sizeof *item);
    for (;;) {
        struct tare_tfrecord record;
        if (options->limit > 0 && source->given >= options->limit) {
            make_end(item);
            return;
        }
        if (!read_record(&record, item, source)) return;
        item->where = (struct tare_provenance){ (int32_t)source->file, record.number, source->index++, record.offset };
        if (options->shards > 0 && item->where.index % options->shards != options->shard) continue;
        source->given++;
        if (filter->wanted && !filter->wanted(filter->arg, &item->where)) continue;
        decode(item, source, &record);
        return;
    }
}

/* ---- ahead ---- */

static void free_item(struct item *item) {
    tare_sample_reset(&item->sample);
    tare_free(item->text);
    tare_free(item);
}

/* The reading thread. What fails here is told to next through the queue. */
static tare_status read_ahead(void *arg) {
    struct tare_source *source = arg;
    struct filter all = { NULL, NULL };
    enum item_kind kind = SAMPLE;
    while (kind == SAMPLE || kind == BAD) {
        struct item *item = tare_calloc(1, sizeof *item);
        if (!item) break;
        read_item(item, source, &all);
        kind = item->kind;
        if (kind == BAD || kind == FAILURE) {
            item->text = tare_strdup(tare_error_text());
            tare_error_clear();
        }
        if (tare_queue_push(source->queue, item)) continue;
        free_item(item); /* nobody takes it any more */
        return TARE_OK;
    }
    tare_queue_close(source->queue);
    return TARE_OK;
}

static tare_status start_ahead(struct tare_source *source) {
    if (!source->options.prefetch || source->queue) return TARE_OK;
    source->queue = tare_queue_new(source->options.prefetch);
    if (!source->queue) return TARE_NO_MEMORY;
    source->thread = tare_thread_start(read_ahead, source);
    return source->thread ? TARE_OK : TARE_INTERNAL;
}

static void take_item(struct item *item, struct tare_source *source) {
    void *taken;
    memset(item, 0, sizeof *item);
    if (!tare_queue_pop(source->queue, &taken)) {
        make_failure(item, TARE_FAIL(TARE_NO_MEMORY, "out of memory for reading ahead"));
        return;
    }
    *item = *(struct item *)taken;
    tare_free(taken);
    if (item->kind == BAD || item->kind == FAILURE)
        tare_error_set(item->text ? item->text : tare_status_name(item->status));
    tare_free(item->text);
    item->text = NULL;
}

void tare_source_free(struct tare_source *source) {
    void *item;
    if (!source) return;
    if (source->queue) {
        tare_queue_close(source->queue);
        (void)tare_thread_join(source->thread);
        while (tare_queue_pop(source->queue, &item))
            free_item(item);
        tare_queue_free(source->queue);
    }
    tare_tfrecord_close(source->reader);
    tare_file_list_free(&source->files);
    tare_free(source);
}

/* ---- using ---- */

static void note_bad(struct tare_source *source) {
    source->told++;
    if (source->options.on_bad) source->options.on_bad(source->options.on_bad_arg, tare_error_text());
    tare_error_clear();
}

tare_status tare_source_next(struct tare_sample *out, struct tare_provenance *where, bool *end,
                             struct tare_source *source, bool (*wanted)(void *arg, const struct tare_provenance *where),
                             void *arg) {
    struct filter filter = { wanted, arg };
    struct item item;
    memset(out, 0, sizeof *out);
    *end = source->over;
    if (source->over) return TARE_OK;
    TARE_TRY(start_ahead(source));
    for (;;) {
        if (source->queue)
            take_item(&item, source);
        else
            read_item(&item, source, &filter);
        if (item.kind == BAD) {
            note_bad(source);
        } else if (item.kind != SAMPLE) {
            source->over = true;
            *end = item.kind == END;
            return item.kind == END ? TARE_OK : item.status;
        } else if (source->queue && wanted && !wanted(arg, &item.where)) {
            tare_sample_reset(&item.sample);
        } else {
            *out = item.sample;
            *where = item.where;
            return TARE_OK;
        }
    }
}
