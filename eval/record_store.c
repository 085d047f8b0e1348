/* Decoded records in temporary files. A decoded sample may keep the bytes that it was decoded from, so the store copies
 * its tensors; runs receive views of them. */
#include "eval/record_store.h"
#include "base/control.h"
#include "base/alloc.h"
#include "eval/series.h"

#include <string.h>

enum { RECORDS_IN_MEMORY = 4096 }; /* of the list of records, while it is read */

/* ---- filling ---- */

static bool same_keys(const struct tare_stored_record *record, const struct tare_sample *sample) {
    if (record->n_values != sample->count) return false;
    for (size_t i = 0; i < sample->count; i++)
        if (strcmp(record->keys[i], sample->keys[i]) != 0) return false;
    return true;
}

/* The keys of the last record if they are the same, otherwise a copy. */
static tare_status keep_keys(const char ***out, struct tare_record_store *store, const struct tare_sample *sample) {
    const struct tare_stored_record *last = store->count ? &store->records[store->count - 1] : NULL;
    *out = last ? last->keys : NULL;
    if (last && same_keys(last, sample)) return TARE_OK;
    *out = TARE_NEW_ARRAY(&store->arena, const char *, sample->count + 1);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < sample->count; i++)
        if (!((*out)[i] = tare_arena_strdup(&store->arena, sample->keys[i]))) return TARE_NO_MEMORY;
    return TARE_OK;
}

static tare_status add(struct tare_record_store *store, const struct tare_sample *sample,
                       const struct tare_record *where) {
    const char **keys;
    TARE_TRY(keep_keys(&keys, store, sample));
    TARE_TRY(TARE_SPILL_GROW(store->records, store->count, store->capacity));
    store->values.n_outputs = sample->count;
    TARE_TRY(tare_reference_store_add(&store->values, sample->values));
    store->records[store->count++] = (struct tare_stored_record){ keys, sample->count, *where };
    return TARE_OK;
}

static tare_status copy_names(struct tare_record_store *store, const struct tare_source *source) {
    size_t count;
    const char *const *files = tare_source_files(source, &count);
    store->files = TARE_NEW_ARRAY(&store->arena, char *, count + 1);
    if (!store->files) return TARE_NO_MEMORY;
    for (; store->n_files < count; store->n_files++)
        if (!(store->files[store->n_files] = tare_arena_strdup(&store->arena, files[store->n_files])))
            return TARE_NO_MEMORY;
    return TARE_OK;
}

/* Sets *fits to false when the records need more than `most` bytes. */
static tare_status read_all(struct tare_record_store *store, bool *fits, struct tare_record_reader *reader,
                            const struct tare_runner_options *options, size_t most) {
    for (bool end = false; !end;) {
        struct tare_sample sample;
        struct tare_record where;
        tare_status status;
        TARE_TRY(tare_flag_check(options->interrupted));
        TARE_TRY(tare_record_reader_next(&sample, &where, &end, reader));
        if (end) break;
        status = add(store, &sample, &where);
        tare_sample_reset(&sample);
        TARE_TRY(status);
        *fits = store->values.bytes + store->arena.bytes + store->count * sizeof *store->records <= most;
        if (!*fits) return TARE_OK;
    }
    return copy_names(store, reader->source);
}

static bool is_standard_input(const struct tare_runner_options *options) {
    for (size_t i = 0; i < options->n_paths; i++)
        if (strcmp(options->paths[i], "-") == 0) return true;
    return false;
}

void tare_record_store_fill(struct tare_record_store *store, const struct tare_runner_options *options, size_t most) {
    struct tare_runner_options from_files = *options;
    struct tare_record_reader reader;
    bool fits = true;
    tare_status status;
    if (is_standard_input(options)) return;
    from_files.records = NULL;
    status = tare_record_reader_open(&reader, &from_files);
    if (status == TARE_OK) status = read_all(store, &fits, &reader, options, most);
    tare_record_reader_close(&reader);
    store->complete = status == TARE_OK && fits;
    if (store->complete) return;
    tare_record_store_free(store);
    tare_error_clear();
}

void tare_record_store_free(struct tare_record_store *store) {
    tare_spill_free(store->records, store->capacity, sizeof *store->records);
    tare_reference_store_free(&store->values);
    tare_arena_free(&store->arena);
    *store = (struct tare_record_store){ 0 };
}

/* ---- reading ---- */

tare_status tare_record_reader_open(struct tare_record_reader *out, const struct tare_runner_options *options) {
    const struct tare_source_options source = { .rows = options->rows,
                                                .limit = options->limit,
                                                .shard = options->shard,
                                                .shards = options->shards,
                                                .takes = options->takes,
                                                .takes_arg = options->takes_arg,
                                                .sequence = options->feedback ? options->feedback->sequence : NULL,
                                                .spec = options->spec };
    const struct tare_record_store *store = options->records;
    size_t n_files;
    *out = (struct tare_record_reader){ 0 };
    if (store && store->complete && !options->shards) {
        out->store = store;
        out->end = store->count;
        if (options->limit && options->limit < (int64_t)store->count) out->end = (size_t)options->limit;
        out->files = (const char *const *)store->files;
        return TARE_OK;
    }
    TARE_TRY(tare_source_new(&out->source, options->paths, options->n_paths, &source));
    out->files = tare_source_files(out->source, &n_files);
    return TARE_OK;
}

static tare_status view_of(struct tare_sample *out, const struct tare_record_store *store, size_t record) {
    const struct tare_tensor *values = tare_reference_store_get(&store->values, (int64_t)record);
    const size_t count = store->records[record].n_values;
    *out = (struct tare_sample){ .keys = store->records[record].keys };
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, count + 1);
    if (!out->values) return TARE_NO_MEMORY;
    for (; out->count < count; out->count++)
        tare_tensor_share(&out->values[out->count], &values[out->count]);
    return TARE_OK;
}

tare_status tare_record_reader_next(struct tare_sample *out, struct tare_record *where, bool *end,
                                    struct tare_record_reader *reader) {
    const struct tare_record_store *store = reader->store;
    if (!store) return tare_source_next(out, where, end, reader->source, NULL, NULL);
    *end = reader->next == reader->end;
    if (*end) return TARE_OK;
    if (reader->next % RECORDS_IN_MEMORY == 0)
        tare_spill_forget(store->records, store->capacity, sizeof *store->records);
    *where = store->records[reader->next].where;
    return view_of(out, store, reader->next++);
}

void tare_record_reader_close(struct tare_record_reader *reader) {
    tare_source_free(reader->source);
    *reader = (struct tare_record_reader){ 0 };
}
