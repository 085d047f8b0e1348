/* The samples of one or several files. */
#include "datasets/source.h"
#include "base/alloc.h"
#include "base/file.h"
#include "datasets/tfrecord.h"

#include <string.h>

struct tare_source {
    struct tare_source_options options;
    struct tare_file_list files;
    size_t file; /* being read, or to be opened next */
    struct tare_tfrecord_reader *reader;
    int64_t index; /* of the next record in the whole */
    int64_t given, bad;
};

tare_status tare_source_new(struct tare_source **out, const char *const *paths, size_t n_paths,
                            const struct tare_source_options *options) {
    struct tare_source *source = tare_calloc(1, sizeof *source);
    tare_status status = source ? TARE_OK : TARE_NO_MEMORY;
    *out = NULL;
    if (source && options) source->options = *options;
    for (size_t i = 0; i < n_paths && status == TARE_OK; i++) {
        if (strcmp(paths[i], "-") == 0)
            status = tare_file_list_add(&source->files, "-") ? TARE_OK : TARE_NO_MEMORY;
        else
            status = tare_file_glob(&source->files, paths[i]);
    }
    if (status == TARE_OK && !source->files.count) status = TARE_FAIL(TARE_NOT_FOUND, "no data files");
    if (status == TARE_OK) /* a wrong path is told before any work is done */
        status = tare_tfrecord_open(&source->reader, source->files.names[0]);
    if (status == TARE_OK)
        *out = source;
    else
        tare_source_free(source);
    return status;
}

void tare_source_free(struct tare_source *source) {
    if (!source) return;
    tare_tfrecord_close(source->reader);
    tare_file_list_free(&source->files);
    tare_free(source);
}

const char *const *tare_source_files(const struct tare_source *source, size_t *count) {
    *count = source->files.count;
    return (const char *const *)source->files.names;
}

/* Notes a bad record; the failure itself when there are too many or nothing can follow. */
static tare_status pass_over(struct tare_source *source, tare_status status, bool can_go_on) {
    if (!can_go_on || source->bad >= source->options.max_bad) return status;
    source->bad++;
    if (source->options.on_bad) source->options.on_bad(source->options.on_bad_arg, tare_error_text());
    tare_error_clear();
    return TARE_OK;
}

static tare_status open_next_file(struct tare_source *source) {
    tare_tfrecord_close(source->reader);
    source->reader = NULL;
    if (++source->file >= source->files.count) return TARE_OK;
    return tare_tfrecord_open(&source->reader, source->files.names[source->file]);
}

/* The next whole record; *end behind the last file. */
static tare_status next_record(struct tare_tfrecord *record, bool *end, struct tare_source *source) {
    *end = false;
    while (source->reader) {
        bool file_end;
        tare_status status = tare_tfrecord_next(record, &file_end, source->reader);
        if (status != TARE_OK) {
            bool can_skip = tare_tfrecord_can_skip(source->reader);
            TARE_TRY(pass_over(source, status, status == TARE_CORRUPT));
            source->index++;
            if (!can_skip) TARE_TRY(open_next_file(source));
            continue;
        }
        if (!file_end) return TARE_OK;
        TARE_TRY(open_next_file(source));
    }
    *end = true;
    return TARE_OK;
}

static bool in_shard(const struct tare_source *source, int64_t index) {
    return source->options.shards <= 0 || index % source->options.shards == source->options.shard;
}

tare_status tare_source_next(struct tare_sample *out, struct tare_provenance *where, bool *end,
                             struct tare_source *source,
                             bool (*wanted)(void *arg, const struct tare_provenance *where), void *arg) {
    struct tare_tfrecord record;
    memset(out, 0, sizeof *out);
    for (;;) {
        tare_status status;
        if (source->options.limit > 0 && source->given >= source->options.limit) {
            *end = true;
            return TARE_OK;
        }
        TARE_TRY(next_record(&record, end, source));
        if (*end) return TARE_OK;
        *where = (struct tare_provenance){ (int32_t)source->file, record.number, source->index++, record.offset };
        if (!in_shard(source, where->index)) continue;
        source->given++;
        if (wanted && !wanted(arg, where)) continue;
        status = tare_sample_decode(out, record.data, record.size);
        if (status == TARE_OK) return TARE_OK;
        tare_sample_reset(out);
        status = tare_error_prefix(status, "%s: record %lld at byte %lld", source->files.names[source->file],
                                   (long long)record.number, (long long)record.offset);
        TARE_TRY(pass_over(source, status, status != TARE_NO_MEMORY));
    }
}
