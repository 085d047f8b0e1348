/* Readers and writers of data files. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/control.h"
#include "datasets/source.h"
#include "datasets/tfrecord.h"
#include "api/handles.h"

struct tare_reader_handle {
    struct tare_context_handle *context; /* may be NULL */
    uint64_t family;                     /* of the data files */
    struct tare_dataset_spec *spec;
    struct tare_source *source;
    struct tare_sample sample;
    tare_array *arrays; /* of the sample, in its arena */
    bool failed;        /* what follows a bad record would pass for the whole data */
};

struct tare_writer_handle {
    struct tare_tfrecord_writer *records;
};

static tare_status open_reader(tare_reader *reader, const char *const *paths, size_t n_paths, const char *spec) {
    struct tare_source_options options = { 0 };
    if (spec) TARE_TRY(tare_dataset_spec_load(&reader->spec, spec));
    options.spec = reader->spec;
    return tare_source_new(&reader->source, paths, n_paths, &options);
}

tare_status tare_reader_open(tare_reader **out, tare_context *context, const char *const *paths, size_t n_paths,
                             const char *spec) {
    tare_reader *reader = tare_calloc(1, sizeof *reader);
    tare_status status;
    tare_public_begin(context, 0);
    *out = NULL;
    if (!reader) return tare_public_end(TARE_NO_MEMORY);
    reader->context = context;
    reader->family = tare_public_family();
    status = open_reader(reader, paths, n_paths, spec);
    if (status == TARE_OK)
        *out = reader;
    else
        tare_reader_close(reader);
    return tare_public_end(status);
}

void tare_reader_close(tare_reader *reader) {
    if (!reader) return;
    tare_sample_reset(&reader->sample);
    tare_source_free(reader->source);
    tare_dataset_spec_free(reader->spec);
    tare_free(reader);
}

static tare_status read_next(tare_reader *reader, bool *end) {
    const volatile sig_atomic_t *interrupted = tare_public_interrupted(reader->context);
    struct tare_record where;
    TARE_TRY(tare_flag_check(interrupted));
    tare_sample_reset(&reader->sample);
    TARE_TRY(tare_source_next(&reader->sample, &where, end, reader->source, NULL, NULL));
    if (*end) return TARE_OK;
    reader->arrays = TARE_NEW_ARRAY(&reader->sample.arena, tare_array, reader->sample.count + 1);
    if (!reader->arrays) return TARE_NO_MEMORY;
    tare_public_arrays(reader->arrays, &reader->sample);
    return TARE_OK;
}

tare_status tare_reader_next(tare_reader *reader, const tare_array **arrays, size_t *count) {
    bool end = false;
    tare_status status;
    tare_public_begin(reader->context, reader->family);
    *arrays = NULL;
    *count = 0;
    status = reader->failed ? TARE_FAIL(TARE_INVALID_ARGUMENT, "the reader failed before (close it)")
                            : read_next(reader, &end);
    reader->failed = reader->failed || (status != TARE_OK && status != TARE_INTERRUPTED);
    if (status == TARE_OK && !end) {
        *arrays = reader->arrays;
        *count = reader->sample.count;
    }
    return tare_public_end(status);
}

tare_status tare_writer_open(tare_writer **out, const char *path) {
    tare_writer *writer = tare_calloc(1, sizeof *writer);
    tare_status status;
    tare_public_begin(NULL, 0);
    *out = NULL;
    if (!writer) return tare_public_end(TARE_NO_MEMORY);
    status = tare_tfrecord_create(&writer->records, path);
    if (status == TARE_OK)
        *out = writer;
    else
        tare_free(writer);
    return tare_public_end(status);
}

static tare_status write_sample(tare_writer *writer, const struct tare_sample *sample) {
    void *data;
    size_t size;
    tare_status status;
    TARE_TRY(tare_sample_encode(&data, &size, sample->keys, sample->values, sample->count));
    status = tare_tfrecord_write(writer->records, data, size);
    tare_free(data);
    return status;
}

tare_status tare_writer_add(tare_writer *writer, const tare_array *arrays, size_t count) {
    struct tare_sample sample;
    tare_status status;
    tare_public_begin(NULL, 0);
    status = tare_public_sample(&sample, arrays, count);
    if (status == TARE_OK) status = write_sample(writer, &sample);
    tare_sample_reset(&sample);
    return tare_public_end(status);
}

tare_status tare_writer_close(tare_writer *writer) {
    tare_status status;
    tare_public_begin(NULL, 0);
    status = tare_tfrecord_commit(writer->records);
    tare_free(writer);
    return tare_public_end(status);
}

void tare_writer_discard(tare_writer *writer) {
    if (!writer) return;
    tare_tfrecord_abort(writer->records);
    tare_free(writer);
}
