/* Files of a data set. */
#include "datasets/data_file.h"
#include "base/alloc.h"
#include "base/file.h"
#include "datasets/array_file.h"
#include "datasets/picture_folder.h"
#include "datasets/record_kind.h"
#include "datasets/stream.h"
#include "datasets/tfrecord.h"
#include "base/image/picture.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 12 };

enum format { TFRECORD, NPY, NPZ, PICTURES };

struct tare_data_file {
    enum format format;
    struct tare_tfrecord_reader *reader;
    struct tare_array_file *arrays;
    struct tare_picture_folder *pictures;
    int64_t count, next; /* records of the other formats */
    char compression[8], name[32];
};

/* A TFRecord's length may look like another format's mark; its checksum decides. */
static enum format format_of_bytes(const uint8_t *head, size_t size) {
    if (tare_tfrecord_is_header(head, size)) return TFRECORD;
    if (size >= 6 && memcmp(head, "\x93NUMPY", 6) == 0) return NPY;
    if (size >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0)) return NPZ;
    if (tare_picture_format_of((struct tare_str){ (const char *)head, size }) != TARE_PICTURE_ANY) return PICTURES;
    return TFRECORD;
}

/* Plain NPY and NPZ files are mapped; compressed ones and those in pipes are read whole. */
static tare_status open_arrays(struct tare_data_file *file, const char *path, struct tare_stream *stream) {
    bool is_plain = strcmp(tare_stream_compression(stream), "none") == 0;
    uint8_t *bytes;
    size_t size;
    if (is_plain && strcmp(path, "-") != 0 && tare_file_kind_of(path) == TARE_FILE_REGULAR)
        return tare_array_file_open(&file->arrays, path);
    TARE_TRY(tare_stream_take_all(&bytes, &size, stream));
    if (tare_stream_is_cut(stream)) {
        tare_free(bytes);
        return TARE_FAIL(TARE_CORRUPT, "%s: the compressed data ends early", path);
    }
    return tare_array_file_open_bytes(&file->arrays, path, bytes, size);
}

static tare_status open_pictures(struct tare_data_file *file, const char *path, const char *labels) {
    file->format = PICTURES;
    if (strcmp(path, "-") == 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "standard input holds a picture (expected its file, or a folder of them)");
    TARE_TRY(tare_picture_folder_open(&file->pictures, path, labels));
    file->count = tare_picture_folder_count(file->pictures);
    return TARE_OK;
}

/* Takes over the stream. */
static tare_status open_stream(struct tare_data_file *file, const char *path, const char *labels,
                               struct tare_stream *stream) {
    const uint8_t *head;
    size_t size;
    tare_status status = tare_stream_peek(&head, &size, stream, HEAD_SIZE);
    /* Damaged from the start: the reader of records will say so. */
    file->format = status == TARE_OK ? format_of_bytes(head, size) : TFRECORD;
    snprintf(file->compression, sizeof file->compression, "%s", tare_stream_compression(stream));
    if (status == TARE_NO_MEMORY || status == TARE_IO) {
        tare_stream_close(stream);
        return status;
    }
    tare_error_clear();
    if (file->format == TFRECORD) return tare_tfrecord_open_stream(&file->reader, path, stream);
    status = file->format == PICTURES ? open_pictures(file, path, labels) : open_arrays(file, path, stream);
    tare_stream_close(stream);
    if (status == TARE_OK && file->arrays) file->count = tare_array_file_rows(file->arrays);
    return status;
}

static tare_status open_file(struct tare_data_file *file, const char *path, const char *labels,
                             struct tare_stream_memory *memory) {
    struct tare_stream *stream;
    if (strcmp(path, "-") != 0 && tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
        return open_pictures(file, path, labels);
    TARE_TRY(tare_stream_open_in(&stream, path, tare_tfrecord_is_header, memory));
    return open_stream(file, path, labels, stream);
}

static void name_format(struct tare_data_file *file) {
    static const char *const names[] = { "TFRecord", "NPY", "NPZ", "pictures" };
    if (!file->compression[0] || strcmp(file->compression, "none") == 0)
        snprintf(file->name, sizeof file->name, "%s", names[file->format]);
    else
        snprintf(file->name, sizeof file->name, "%s, %s", names[file->format], file->compression);
}

static tare_status open_in(struct tare_data_file **out, const char *path, const char *labels,
                           struct tare_stream_memory *memory) {
    struct tare_data_file *file = tare_calloc(1, sizeof *file);
    tare_status status;
    if (!file) return TARE_NO_MEMORY;
    status = open_file(file, path, labels, memory);
    if (status == TARE_OK) {
        name_format(file);
        *out = file;
    } else {
        tare_data_file_close(file);
    }
    return status;
}

static void close_keeping(struct tare_data_file *file, struct tare_stream_memory *memory) {
    if (!file) return;
    tare_tfrecord_close_keeping(file->reader, memory);
    tare_array_file_close(file->arrays);
    tare_picture_folder_close(file->pictures);
    tare_free(file);
}

tare_status tare_data_file_open_next(struct tare_data_file **out, const char *path, const char *labels,
                                     struct tare_data_file *before) {
    struct tare_stream_memory memory = { 0 };
    tare_status status;
    *out = NULL;
    close_keeping(before, &memory);
    status = open_in(out, path, labels, &memory);
    tare_stream_memory_free(&memory); /* nothing, unless no stream was opened */
    return status;
}

tare_status tare_data_file_open(struct tare_data_file **out, const char *path, const char *labels) {
    return tare_data_file_open_next(out, path, labels, NULL);
}

tare_status tare_data_file_join(struct tare_data_file **out, const char *const *names, const char *const *paths,
                                size_t count) {
    struct tare_data_file *file = tare_calloc(1, sizeof *file);
    tare_status status;
    *out = NULL;
    if (!file) return TARE_NO_MEMORY;
    file->format = NPY;
    status = tare_array_file_join(&file->arrays, names, paths, count);
    if (status == TARE_OK) {
        file->count = tare_array_file_rows(file->arrays);
        name_format(file);
        *out = file;
    } else {
        tare_data_file_close(file);
    }
    return status;
}

void tare_data_file_close(struct tare_data_file *file) {
    struct tare_stream_memory memory = { 0 };
    close_keeping(file, &memory);
    tare_stream_memory_free(&memory);
}

const char *tare_data_file_format(const struct tare_data_file *file) {
    return file->name;
}

const char *const *tare_data_file_classes(const struct tare_data_file *file, size_t *count) {
    *count = 0;
    return file->pictures ? tare_picture_folder_classes(file->pictures, count) : NULL;
}

/* ---- records ---- */

tare_status tare_data_file_next(struct tare_data_record *out, bool *end, struct tare_data_file *file) {
    struct tare_tfrecord record;
    if (file->format != TFRECORD) {
        *end = file->next >= file->count;
        if (!*end) tare_data_file_position(out, file);
        file->next++;
        return TARE_OK;
    }
    TARE_TRY(tare_tfrecord_next(&record, end, file->reader));
    if (!*end) *out = (struct tare_data_record){ record.number, record.offset, record.data, record.size };
    return TARE_OK;
}

bool tare_data_file_is_cut(const struct tare_data_file *file) {
    return file->format == TFRECORD && tare_tfrecord_is_cut(file->reader);
}

void tare_data_file_position(struct tare_data_record *out, const struct tare_data_file *file) {
    *out = (struct tare_data_record){ .number = file->next };
    if (file->format == TFRECORD)
        tare_tfrecord_position(&out->number, &out->offset, file->reader);
    else if (file->arrays && file->next < file->count)
        out->offset = tare_array_file_offset(file->arrays, file->next);
}

/* ---- samples ---- */

/* A record of another kind may look like a sample without inputs, or like a broken one: say what it is. */
static tare_status decode_sample(struct tare_sample *out, const void *data, size_t size) {
    tare_status status = tare_sample_decode(out, data, size);
    enum tare_record_kind kind;
    if (status == TARE_NO_MEMORY || (status == TARE_OK && out->count)) return status;
    kind = tare_record_kind_of(data, size);
    if (kind == TARE_RECORD_EXAMPLE || kind == TARE_RECORD_SEQUENCE_EXAMPLE)
        return TARE_FAIL(
            TARE_TYPE,
            "it is a %s (expected a %s, or --spec FILE that says which feature becomes which input; 'tare dataset info "
            "--draft-spec FILE' makes a first one)",
            tare_record_kind_name(kind), tare_record_kind_name(TARE_RECORD_SAMPLE));
    return status;
}

static tare_status apply_spec(struct tare_sample *out, struct tare_features *features,
                              const struct tare_dataset_spec *spec, tare_status status) {
    if (status == TARE_OK) status = tare_dataset_spec_apply(out, spec, features);
    tare_features_reset(features);
    return status;
}

static tare_status decode_row(struct tare_sample *out, const struct tare_array_file *arrays, int64_t row,
                              const struct tare_dataset_spec *spec) {
    struct tare_features features = { 0 };
    struct tare_sample sample;
    tare_status status;
    if (!spec) return tare_array_file_sample(out, arrays, row);
    status = tare_array_file_sample(&sample, arrays, row);
    if (status == TARE_OK) status = tare_features_of_sample(&features, &sample);
    tare_sample_reset(&sample);
    return apply_spec(out, &features, spec, status);
}

static tare_status decode_picture(struct tare_sample *out, const struct tare_picture_folder *pictures, int64_t i,
                                  const struct tare_dataset_spec *spec) {
    struct tare_features features = { 0 };
    tare_status status;
    if (!spec)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s: a picture (expected also --spec FILE that says how it becomes an "
                         "input, from feature image/encoded: see docs/dataset-spec.md)",
                         tare_picture_folder_name(pictures, i));
    status = tare_picture_folder_read(&features, pictures, i);
    return tare_error_prefix(apply_spec(out, &features, spec, status), "%s", tare_picture_folder_name(pictures, i));
}

tare_status tare_data_file_decode(struct tare_sample *out, const struct tare_data_file *file,
                                  const struct tare_data_record *record, const struct tare_dataset_spec *spec) {
    memset(out, 0, sizeof *out);
    if (file->arrays) return decode_row(out, file->arrays, record->number, spec);
    if (file->pictures) return decode_picture(out, file->pictures, record->number, spec);
    if (spec) return tare_dataset_spec_decode(out, spec, record->data, record->size);
    return decode_sample(out, record->data, record->size);
}

static tare_status show_features(struct tare_sample *out, struct tare_features *features, tare_status status) {
    if (status == TARE_OK) status = tare_features_to_sample(out, features);
    tare_features_reset(features);
    return status;
}

tare_status tare_data_file_look(struct tare_sample *out, const char **kind, const struct tare_data_file *file,
                                const struct tare_data_record *record) {
    struct tare_features features = { 0 };
    enum tare_record_kind record_kind;
    memset(out, 0, sizeof *out);
    *kind = file->arrays ? "arrays" : "picture";
    if (file->arrays) return tare_array_file_sample(out, file->arrays, record->number);
    if (file->pictures)
        return show_features(out, &features, tare_picture_folder_read(&features, file->pictures, record->number));
    record_kind = tare_record_kind_of(record->data, record->size);
    *kind = tare_record_kind_name(record_kind);
    if (record_kind == TARE_RECORD_EXAMPLE || record_kind == TARE_RECORD_SEQUENCE_EXAMPLE)
        return show_features(out, &features, tare_features_decode(&features, record->data, record->size));
    if (record_kind == TARE_RECORD_OTHER)
        return show_features(out, &features, tare_features_add_bytes(&features, "(bytes)", record->data, record->size));
    return tare_sample_decode(out, record->data, record->size);
}
