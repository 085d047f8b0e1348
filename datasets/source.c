/* The samples of one or several files. Reading produces a sequence of items, which are consumed immediately, or, with
 * prefetch, produced by a thread and passed through a queue. */
#include "datasets/source.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "datasets/data_file.h"
#include "datasets/foreign_file.h"
#include "datasets/joined_sample.h"
#include "datasets/sequence.h"

#include <string.h>

enum item_kind { SAMPLE, BAD, END, FAILURE };

struct item {
    enum item_kind kind;
    tare_status status;          /* of BAD and FAILURE; the error text is that of the thread … */
    char *text;                  /* … or, for an item from the queue, this */
    enum tare_bad_reason reason; /* of BAD */
    struct tare_sample sample;
    struct tare_record where;
};

struct tare_source {
    struct tare_source_options options;
    struct tare_file_list files;
    /* producer */
    size_t file; /* being read, or to be opened next */
    struct tare_data_file *reader;
    char *classes;          /* of folders of images, one name a line; NULL: none so far */
    size_t first_of_images; /* the file that they are of */
    int64_t index;          /* of the next record in the data set, whatever options.rows */
    /* consumer */
    int64_t given; /* number of samples, and of records that the caller skipped */
    struct tare_sequences sequences;
    struct tare_arena notes;
    struct tare_bad_record *bad;
    size_t n_bad, bad_capacity;
    bool over;
    struct tare_queue *queue;
    struct tare_thread *thread;
};

/* The caller's filter, applied before a record is decoded. */
struct filter {
    bool (*wanted)(void *arg, const struct tare_record *where);
    void *arg;
};

static tare_status decode_record(struct tare_sample *out, const struct tare_source *source,
                                 const struct tare_data_record *record) {
    const struct tare_source_options *options = &source->options;
    if (options->decode && record->data) return options->decode(options->decode_arg, out, record->data, record->size);
    return tare_data_file_decode(out, source->reader, record, options->spec);
}

static tare_status add_files(struct tare_source *source, const char *const *paths, size_t n_paths) {
    for (size_t i = 0; i < n_paths; i++) {
        TARE_TRY(tare_foreign_path_check(paths[i]));
        TARE_TRY(tare_data_files_add(&source->files, paths[i]));
    }
    if (!source->files.count) return TARE_FAIL(TARE_NOT_FOUND, "no data files");
    TARE_TRY(tare_data_files_check(&source->files));
    for (size_t i = 0; i < source->files.count; i++) {
        const char *name = source->files.names[i];
        if (strcmp(name, "-") != 0 && !tare_data_is_arrays(name) && tare_file_kind_of(name) == TARE_FILE_NONE)
            return TARE_FAIL(TARE_NOT_FOUND, "cannot open '%s': No such file or directory", name);
    }
    return TARE_OK;
}

/* Folders of images number their classes by name, each its own: in two folders one number must not be of two classes.
 */
static tare_status check_classes(struct tare_source *source) {
    struct tare_strbuf text = { 0 };
    size_t count;
    const char *const *classes = tare_data_file_classes(source->reader, &count);
    tare_status status = TARE_OK;
    if (!count) return TARE_OK;
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(&text, "%s\n", classes[i]);
    if (source->classes && strcmp(source->classes, tare_strbuf_text(&text)) != 0)
        status =
            TARE_FAIL(TARE_INVALID_ARGUMENT,
                      "%s: other classes than %s, whose numbers they would share (put the folders of all classes into "
                      "one folder, or list the images with numbers in --labels)",
                      source->files.names[source->file], source->files.names[source->first_of_images]);
    if (!source->classes) {
        source->first_of_images = source->file;
        source->classes = tare_strdup(tare_strbuf_text(&text));
        if (!source->classes) status = TARE_NO_MEMORY;
    }
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_source_new(struct tare_source **out, const char *const *paths, size_t n_paths,
                            const struct tare_source_options *options) {
    struct tare_source *source;
    tare_status status;
    *out = NULL;
    if (options && options->shards > 0 && (options->shard < 0 || options->shard >= options->shards))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "shard %lld (expected 0 to %lld)", (long long)options->shard,
                         (long long)options->shards - 1);
    source = tare_calloc(1, sizeof *source);
    if (!source) return TARE_NO_MEMORY;
    if (options) source->options = *options;
    status = add_files(source, paths, n_paths);
    if (status == TARE_OK)
        status = tare_data_file_open_of(&source->reader, &source->files, 0, source->options.labels, NULL);
    if (status == TARE_OK) status = check_classes(source);
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

/* ---- reading ---- */

static void make_failure(struct item *item, tare_status status) {
    item->kind = FAILURE;
    item->status = status;
}

static void make_bad(struct item *item, tare_status status, enum tare_bad_reason reason) {
    make_failure(item, status);
    item->kind = BAD;
    item->reason = reason;
}

static bool is_mine(const struct tare_source *source, const struct tare_record *where) {
    const struct tare_source_options *options = &source->options;
    if (options->takes && !options->takes(options->takes_arg, source->files.names[where->file], where)) return false;
    return options->shards <= 0 || (where->index % options->shards == options->shard) != options->other_shards;
}

static tare_status open_next_file(struct tare_source *source) {
    struct tare_data_file *before = source->reader;
    source->reader = NULL;
    if (++source->file < source->files.count) {
        TARE_TRY(tare_data_file_open_of(&source->reader, &source->files, source->file, source->options.labels, before));
        return check_classes(source);
    }
    tare_data_file_close(before);
    return TARE_OK;
}

static int64_t rows_of(const struct tare_source *source) {
    return source->options.rows > 1 ? source->options.rows : 1;
}

/* Reads the next intact record; false if `item` is an error or the end instead. */
static bool read_record(struct tare_data_record *record, struct item *item, struct tare_source *source) {
    const int64_t rows = rows_of(source), stop = source->options.stop * rows;
    while (source->reader && (stop <= 0 || source->index < stop)) {
        bool file_end;
        tare_status status;
        item->where.file = (int32_t)source->file;
        item->where.index = source->index / rows;
        tare_data_file_position(record, source->reader);
        item->where.number = record->number;
        item->where.offset = record->offset;
        status = tare_data_file_next(record, &file_end, source->reader);
        if (status == TARE_CORRUPT) {
            make_bad(item, status, tare_data_file_is_cut(source->reader) ? TARE_BAD_TRUNCATED : TARE_BAD_CORRUPT);
            source->index++;
            if (is_mine(source, &item->where)) return false;
            tare_error_clear();
            continue;
        }
        if (status == TARE_OK && !file_end) {
            source->index++;
            return true;
        }
        if (status == TARE_OK) status = open_next_file(source);
        if (status == TARE_OK) continue;
        make_failure(item, status);
        return false;
    }
    item->kind = END;
    return false;
}

static void decode(struct item *item, struct tare_source *source, const struct tare_data_record *record) {
    tare_status status = decode_record(&item->sample, source, record);
    item->kind = SAMPLE;
    if (status == TARE_OK) return;
    tare_sample_reset(&item->sample);
    tare_error_prefix(status, "%s: record %lld at %lld", source->files.names[source->file], (long long)record->number,
                      (long long)record->offset);
    if (status == TARE_NO_MEMORY)
        make_failure(item, status);
    else
        make_bad(item, status, TARE_BAD_UNDECODABLE);
}

/* The other rows of the sample whose first record was read; `rows` NULL: without decoding them. After a bad record the
 * rest is passed over. */
static void read_rest(struct item *item, struct tare_sample *rows, struct tare_source *source) {
    const int64_t count = rows_of(source);
    for (int64_t r = 1; source->index % count; r++) {
        const struct tare_record first = item->where;
        struct tare_data_record record;
        struct item row = { 0 };
        const bool found = read_record(&record, &row, source);
        if (found && rows && item->kind == SAMPLE) {
            decode(&row, source, &record);
            rows[r] = row.sample;
        }
        if (row.kind == END)
            make_failure(&row,
                         TARE_FAIL(TARE_SHAPE,
                                   "%s: the model takes %lld rows at a time, and the last time has %lld "
                                   "(expected a multiple of %lld)",
                                   source->files.names[first.file], (long long)count, (long long)r, (long long)count));
        if (row.kind != SAMPLE && item->kind == SAMPLE) {
            *item = row;
            item->where = first;
        }
        if (row.kind == FAILURE) return;
    }
}

/* Joins the sample of the first record with those of the other rows. */
static void join_rows(struct item *item, struct tare_source *source) {
    const size_t count = (size_t)rows_of(source);
    struct tare_sample *rows = tare_calloc(count, sizeof *rows), joined = { 0 };
    tare_status status = TARE_NO_MEMORY;
    if (rows) {
        rows[0] = item->sample;
        item->sample = (struct tare_sample){ 0 };
        read_rest(item, rows, source);
        status = item->kind == SAMPLE ? tare_sample_join(&joined, rows, count) : TARE_OK;
        for (size_t r = 0; r < count; r++)
            tare_sample_reset(&rows[r]);
        tare_free(rows);
    }
    if (status == TARE_SHAPE) {
        tare_error_prefix(status, "%s: record %lld", source->files.names[item->where.file],
                          (long long)item->where.number);
        make_bad(item, status, TARE_BAD_UNDECODABLE);
    } else if (status != TARE_OK) {
        make_failure(item, status);
    }
    if (item->kind == SAMPLE) item->sample = joined;
}

/* `filter` NULL: every record is decoded. */
static void read_item(struct item *item, struct tare_source *source, const struct filter *filter) {
    memset(item, 0, sizeof *item);
    for (;;) {
        struct tare_data_record record;
        if (!read_record(&record, item, source)) {
            if (item->kind == BAD && rows_of(source) > 1) read_rest(item, NULL, source);
            return;
        }
        const bool mine = is_mine(source, &item->where);
        if (mine && (!filter || !filter->wanted || filter->wanted(filter->arg, &item->where))) {
            decode(item, source, &record);
            if (rows_of(source) > 1) join_rows(item, source);
            return;
        }
        if (rows_of(source) > 1) read_rest(item, NULL, source);
        if (item->kind == FAILURE) return;
        item->kind = SAMPLE;
        if (!mine) continue;
        source->given++;
        if (source->options.limit > 0 && source->given >= source->options.limit) {
            item->kind = END;
            return;
        }
    }
}

/* ---- prefetch ---- */

static void free_item(struct item *item) {
    tare_sample_reset(&item->sample);
    tare_free(item->text);
    tare_free(item);
}

/* The prefetch thread. Failures are passed through the queue. */
static tare_status read_ahead(void *arg) {
    struct tare_source *source = arg;
    enum item_kind kind = SAMPLE;
    while (kind == SAMPLE || kind == BAD) {
        struct item *item = tare_calloc(1, sizeof *item);
        if (!item) break;
        read_item(item, source, NULL);
        kind = item->kind;
        if (kind == BAD || kind == FAILURE) {
            item->text = tare_strdup(tare_error_text());
            tare_error_clear();
        }
        if (tare_queue_push(source->queue, item)) continue;
        free_item(item); /* the consumer has closed the queue */
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

static void next_item(struct item *item, struct tare_source *source) {
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
    tare_data_file_close(source->reader);
    tare_file_list_free(&source->files);
    tare_sequences_free(&source->sequences);
    tare_arena_free(&source->notes);
    tare_free(source->classes);
    tare_free(source->bad);
    tare_free(source);
}

/* ---- consuming ---- */

/* Handles a bad record, described by the error text: notes it if another one is allowed, otherwise returns the status.
 */
static tare_status pass_over(struct tare_source *source, const struct tare_record *where, tare_status status,
                             enum tare_bad_reason reason) {
    const char *text;
    if ((int64_t)source->n_bad >= source->options.max_bad) return status;
    text = tare_arena_strdup(&source->notes, tare_error_text());
    if (!text || !TARE_GROW(source->bad, source->n_bad, source->bad_capacity)) return TARE_NO_MEMORY;
    source->bad[source->n_bad++] = (struct tare_bad_record){ *where, reason, status, text };
    if (source->options.on_bad) source->options.on_bad(source->options.on_bad_arg, text);
    tare_error_clear();
    return TARE_OK;
}

tare_status tare_source_refuse(struct tare_source *source, const struct tare_record *where, tare_status status) {
    tare_error_prefix(status, "%s: record %lld at %lld", source->files.names[where->file], (long long)where->number,
                      (long long)where->offset);
    return pass_over(source, where, status, TARE_BAD_REFUSED);
}

const struct tare_bad_record *tare_source_bad_records(const struct tare_source *source, size_t *count) {
    *count = source->n_bad;
    return source->bad;
}

int64_t tare_source_bad(const struct tare_source *source) {
    return (int64_t)source->n_bad;
}

const char *tare_bad_reason_name(enum tare_bad_reason reason) {
    static const char *const names[] = { "corrupt", "truncated", "undecodable", "refused" };
    return names[reason];
}

/* The next sample; *end after the last. Samples from the queue are not filtered yet. */
static tare_status next_sample(struct item *item, bool *end, struct tare_source *source, const struct filter *filter) {
    for (;;) {
        *end = source->options.limit > 0 && source->given >= source->options.limit;
        if (*end) return TARE_OK;
        if (source->queue)
            next_item(item, source);
        else
            read_item(item, source, filter);
        if (item->kind == FAILURE) return item->status;
        *end = item->kind == END;
        if (*end) return TARE_OK;
        if (item->kind == BAD) {
            TARE_TRY(pass_over(source, &item->where, item->status, item->reason));
            continue;
        }
        source->given++;
        if (!source->queue || !filter->wanted || filter->wanted(filter->arg, &item->where)) return TARE_OK;
        tare_sample_reset(&item->sample);
    }
}

static tare_status number_sequence(struct item *item, struct tare_source *source) {
    const char *key = source->options.sequence;
    tare_status status;
    if (!key) return TARE_OK;
    status = tare_sequences_number(&item->where, &source->sequences, &item->sample, key);
    if (status != TARE_OK) tare_sample_reset(&item->sample);
    return tare_error_prefix(status, "%s: record %lld", source->files.names[item->where.file],
                             (long long)item->where.number);
}

tare_status tare_source_next(struct tare_sample *out, struct tare_record *where, bool *end, struct tare_source *source,
                             bool (*wanted)(void *arg, const struct tare_record *where), void *arg) {
    const struct filter filter = { wanted, arg };
    struct item item;
    tare_status status;
    memset(out, 0, sizeof *out);
    *end = source->over;
    if (source->over) return TARE_OK;
    TARE_TRY(start_ahead(source));
    status = next_sample(&item, end, source, &filter);
    if (status == TARE_OK && !*end) status = number_sequence(&item, source);
    source->over = status != TARE_OK || *end;
    if (source->over) return status;
    *out = item.sample;
    *where = item.where;
    return TARE_OK;
}
