/* Files of a data set: detection of the format, and the same operations for each. */
#include "datasets/data_file.h"
#include "base/alloc.h"
#include "base/ascii.h"
#include "base/file.h"
#include "datasets/array_file.h"
#include "datasets/csv_file.h"
#include "datasets/data_folder.h"
#include "datasets/foreign_file.h"
#include "datasets/image_folder.h"
#include "datasets/record_kind.h"
#include "datasets/stream.h"
#include "datasets/tfrecord.h"
#include "base/image/image.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 16, TEXT_HEAD_SIZE = 4096 };

enum format { TFRECORD, NPY, NPZ, IMAGES, CSV };

struct tare_data_file {
    enum format format;
    struct tare_tfrecord_reader *reader;
    struct tare_array_file *arrays;
    struct tare_image_folder *images;
    struct tare_csv_file *table;
    struct tare_csv_columns *columns; /* of all CSV files of the data set; NULL: this one is the only file */
    int64_t count, next;              /* records of the other formats */
    char compression[8], name[32];
};

/* The length of a TFRecord may look like the signature of another format; its checksum decides. */
static enum format format_of_bytes(const uint8_t *head, size_t size) {
    if (tare_tfrecord_is_header(head, size)) return TFRECORD;
    if (size >= 6 && memcmp(head, "\x93NUMPY", 6) == 0) return NPY;
    if (size >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0)) return NPZ;
    if (tare_image_format_of((struct tare_str){ (const char *)head, size }) != TARE_IMAGE_ANY) return IMAGES;
    return TFRECORD;
}

/* Uncompressed NPY and NPZ files are mapped; others are read into memory. */
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

static tare_status open_images(struct tare_data_file *file, const char *path, const char *labels) {
    file->format = IMAGES;
    if (strcmp(path, "-") == 0)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "an image on standard input is not supported (pass its file, or a folder of images)");
    TARE_TRY(tare_image_folder_open(&file->images, path, labels));
    file->count = tare_image_folder_count(file->images);
    return TARE_OK;
}

static bool has_csv_name(const char *path) {
    size_t size = strlen(path);
    if (size > 3 && tare_same_letters(path + size - 3, ".gz")) size -= 3;
    return size > 4 &&
           (tare_same_letters_n(path + size - 4, ".csv", 4) || tare_same_letters_n(path + size - 4, ".tsv", 4));
}

/* What is neither a TFRecord nor of another known format: a CSV file, by its name or its text; else an error that names
 * a format of other programs, or none, so that the reader of TFRecords reports the damage. */
static tare_status recognize_rest(enum format *format, const char *path, struct tare_stream *stream) {
    const uint8_t *head;
    size_t size;
    TARE_TRY(tare_stream_peek(&head, &size, stream, TEXT_HEAD_SIZE));
    if (tare_tfrecord_is_header(head, size)) return TARE_OK;
    TARE_TRY(tare_foreign_file_check(path, head, size));
    if (has_csv_name(path) || tare_csv_is_start(head, size)) *format = CSV;
    return TARE_OK;
}

static tare_status open_table(struct tare_data_file *file, const char *path, struct tare_stream *stream) {
    uint8_t *bytes;
    size_t size;
    TARE_TRY(tare_stream_take_all(&bytes, &size, stream));
    if (tare_stream_is_cut(stream)) {
        tare_free(bytes);
        return TARE_FAIL(TARE_CORRUPT, "%s: the compressed data ends early", path);
    }
    TARE_TRY(tare_csv_file_open(&file->table, path, bytes, size));
    file->count = tare_csv_file_rows(file->table);
    return TARE_OK;
}

/* Takes ownership of the stream. */
static tare_status open_stream(struct tare_data_file *file, const char *path, const char *labels,
                               struct tare_stream *stream) {
    const uint8_t *head;
    size_t size;
    tare_status status = tare_stream_peek(&head, &size, stream, HEAD_SIZE);
    /* Damage at the start is reported by the reader of TFRecords. */
    file->format = status == TARE_OK ? format_of_bytes(head, size) : TFRECORD;
    if (status == TARE_OK && file->format == TFRECORD) status = recognize_rest(&file->format, path, stream);
    snprintf(file->compression, sizeof file->compression, "%s", tare_stream_compression(stream));
    if (status == TARE_NO_MEMORY || status == TARE_IO || status == TARE_UNSUPPORTED) {
        tare_stream_close(stream);
        return status;
    }
    tare_error_clear();
    if (file->format == TFRECORD) return tare_tfrecord_open_stream(&file->reader, path, stream);
    status = file->format == IMAGES ? open_images(file, path, labels)
             : file->format == CSV  ? open_table(file, path, stream)
                                    : open_arrays(file, path, stream);
    tare_stream_close(stream);
    if (status == TARE_OK && file->arrays) file->count = tare_array_file_rows(file->arrays);
    return status;
}

const char *tare_data_read_once(const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(paths[i], "-") == 0 || tare_file_kind_of(paths[i]) == TARE_FILE_OTHER) return paths[i];
    return NULL;
}

bool tare_data_is_arrays(const char *path) {
    return strncmp(path, TARE_DATA_ARRAYS, strlen(TARE_DATA_ARRAYS)) == 0;
}

const char *tare_data_array_file(const char *item) {
    const size_t size = strcspn(item, ",");
    char *text = tare_strdup(item); /* without memory the first sign counts */
    const char *file = NULL;
    if (text) text[size] = '\0';
    for (size_t at = size; at-- > 0;)
        if (item[at] == '=') file = item + at + 1;
    for (size_t at = 0; text && at < size; at++) {
        if (item[at] != '=' || tare_file_kind_of(text + at + 1) == TARE_FILE_NONE) continue;
        file = item + at + 1;
        break;
    }
    tare_free(text);
    return file;
}

const char *tare_data_arrays_name(size_t *length, const char *path, size_t i) {
    const char *item = path + strlen(TARE_DATA_ARRAYS);
    for (; i > 0 && item; i--) {
        item = strchr(item, ',');
        if (item) item++;
    }
    if (item) *length = (size_t)(tare_data_array_file(item) - item) - 1;
    return item;
}

tare_status tare_data_files_add(struct tare_file_list *files, const char *path) {
    struct tare_file_list found = { 0 };
    tare_status status = TARE_OK;
    if (strcmp(path, "-") == 0 || tare_data_is_arrays(path))
        return tare_file_list_add(files, path) ? TARE_OK : TARE_NO_MEMORY;
    TARE_CHECK(tare_file_glob(&found, path));
    for (size_t i = 0; i < found.count; i++) {
        const char *name = found.names[i];
        if (tare_file_kind_of(name) == TARE_FILE_DIRECTORY)
            TARE_CHECK(tare_data_folder_add(files, name));
        else if (!tare_file_list_add(files, name))
            TARE_CHECK(TARE_NO_MEMORY);
    }
done:
    tare_file_list_free(&found);
    return status;
}

tare_status tare_data_files_check(const struct tare_file_list *files) {
    size_t inputs = 0;
    for (size_t i = 0; i < files->count; i++)
        inputs += strcmp(files->names[i], "-") == 0;
    return inputs > 1 ? TARE_FAIL(TARE_USAGE, "-: standard input can be read only once (given %zu times)", inputs)
                      : TARE_OK;
}

/* Splits "NAME=FILE,NAME=FILE", which it modifies, and joins the files. */
static tare_status join_listed(struct tare_data_file *file, char *list) {
    size_t count = 1, at = 0;
    for (const char *c = list; *c; c++)
        count += *c == ',';
    const char **names = tare_calloc(2 * count, sizeof *names);
    tare_status status = names ? TARE_OK : TARE_NO_MEMORY;
    for (char *item = list, *next; item && status == TARE_OK; item = next, at++) {
        next = strchr(item, ',');
        if (next) *next++ = '\0';
        char *path = (char *)(uintptr_t)tare_data_array_file(item);
        if (!path) {
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' (expected NAME=FILE.npy)", item);
        } else {
            path[-1] = '\0';
            names[at] = item;
            names[count + at] = path;
        }
    }
    if (status == TARE_OK) status = tare_array_file_join(&file->arrays, names, names + count, at);
    tare_free(names);
    return status;
}

static tare_status open_listed(struct tare_data_file *file, const char *path) {
    char *list = tare_strdup(path + strlen(TARE_DATA_ARRAYS));
    const tare_status status = list ? join_listed(file, list) : TARE_NO_MEMORY;
    tare_free(list);
    TARE_TRY(status);
    file->format = NPY;
    file->count = tare_array_file_rows(file->arrays);
    return TARE_OK;
}

static tare_status open_file(struct tare_data_file *file, const char *path, const char *labels,
                             struct tare_stream_memory *memory) {
    struct tare_stream *stream;
    if (tare_data_is_arrays(path)) return open_listed(file, path);
    if (strcmp(path, "-") != 0 && tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
        return open_images(file, path, labels);
    TARE_TRY(tare_stream_open_in(&stream, path, tare_tfrecord_is_header, memory));
    return open_stream(file, path, labels, stream);
}

static void name_format(struct tare_data_file *file) {
    static const char *const names[] = { "TFRecord", "NPY", "NPZ", "images", "CSV" };
    if (!file->compression[0] || strcmp(file->compression, "none") == 0)
        snprintf(file->name, sizeof file->name, "%s", names[file->format]);
    else
        snprintf(file->name, sizeof file->name, "%s, %s", names[file->format], file->compression);
}

static tare_status check_labels(const struct tare_data_file *file, const char *path, const char *labels) {
    if (!labels || file->format == IMAGES) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "--labels has no effect for %s, %s (expected images or folders of images)", path,
                     file->name);
}

static tare_status open_in(struct tare_data_file **out, const char *path, const char *labels,
                           struct tare_stream_memory *memory) {
    struct tare_data_file *file = tare_calloc(1, sizeof *file);
    tare_status status;
    if (!file) return TARE_NO_MEMORY;
    status = open_file(file, path, labels, memory);
    if (status == TARE_OK) {
        name_format(file);
        status = check_labels(file, path, labels);
    }
    if (status == TARE_OK)
        *out = file;
    else
        tare_data_file_close(file);
    return status;
}

static void close_keeping(struct tare_data_file *file, struct tare_stream_memory *memory) {
    if (!file) return;
    tare_tfrecord_close_keeping(file->reader, memory);
    tare_array_file_close(file->arrays);
    tare_image_folder_close(file->images);
    tare_csv_file_close(file->table);
    tare_csv_columns_free(file->columns);
    tare_free(file);
}

tare_status tare_data_file_open(struct tare_data_file **out, const char *path, const char *labels) {
    struct tare_stream_memory memory = { 0 };
    *out = NULL;
    const tare_status status = open_in(out, path, labels, &memory);
    tare_stream_memory_free(&memory); /* empty unless no stream was opened */
    return status;
}

/* Adds the columns of a CSV file that can be read twice. Another file has none, nor has one that cannot be read, which
 * is reported in its turn. */
static tare_status add_columns(struct tare_csv_columns *columns, const char *path) {
    struct tare_data_file *file;
    if (strcmp(path, "-") == 0 || tare_file_kind_of(path) != TARE_FILE_REGULAR) return TARE_OK;
    tare_status status = tare_data_file_open(&file, path, NULL);
    if (status == TARE_NO_MEMORY) return status;
    tare_error_clear();
    if (status == TARE_OK && file->table)
        status = tare_csv_columns_add(columns, file->table);
    else
        status = TARE_OK;
    tare_data_file_close(file);
    return status;
}

/* The columns of the first CSV file, which has the index i, and of all later ones. */
static tare_status unite_columns(struct tare_data_file *first, const struct tare_file_list *files, size_t i) {
    first->columns = tare_csv_columns_new();
    if (!first->columns) return TARE_NO_MEMORY;
    TARE_TRY(tare_csv_columns_add(first->columns, first->table));
    while (++i < files->count)
        TARE_TRY(add_columns(first->columns, files->names[i]));
    return TARE_OK;
}

tare_status tare_data_file_open_of(struct tare_data_file **out, const struct tare_file_list *files, size_t i,
                                   const char *labels, struct tare_data_file *before) {
    struct tare_csv_columns *columns = before ? before->columns : NULL;
    struct tare_stream_memory memory = { 0 };
    struct tare_data_file *file = NULL;
    tare_status status;
    *out = NULL;
    if (before) before->columns = NULL;
    close_keeping(before, &memory);
    status = open_in(&file, files->names[i], labels, &memory);
    tare_stream_memory_free(&memory);
    if (status != TARE_OK) {
        tare_csv_columns_free(columns);
        return status;
    }
    file->columns = columns;
    if (file->table && !file->columns) status = unite_columns(file, files, i);
    if (status == TARE_OK && file->table && file->columns) status = tare_csv_file_share(file->table, file->columns);
    if (status == TARE_OK)
        *out = file;
    else
        tare_data_file_close(file);
    return status;
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
    return file->images ? tare_image_folder_classes(file->images, count) : NULL;
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
    else if (file->table)
        out->offset = tare_csv_file_offset(file->table, file->next);
}

/* ---- samples ---- */

/* A record of another kind may decode to a sample without inputs, or fail to decode: the error names its kind. */
static tare_status decode_sample(struct tare_sample *out, const void *data, size_t size) {
    tare_status status = tare_sample_decode(out, data, size);
    enum tare_record_kind kind;
    if (status == TARE_NO_MEMORY || (status == TARE_OK && out->count)) return status;
    kind = tare_record_kind_of(data, size);
    if (kind == TARE_RECORD_EXAMPLE || kind == TARE_RECORD_SEQUENCE_EXAMPLE)
        return TARE_FAIL(TARE_TYPE,
                         "it is a %s (expected a %s, or --spec FILE that maps features to inputs; 'tare dataset info "
                         "--draft-spec FILE "
                         "--model MODEL' drafts one)",
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

static tare_status decode_image(struct tare_sample *out, const struct tare_image_folder *images, int64_t i,
                                const struct tare_dataset_spec *spec) {
    struct tare_features features = { 0 };
    tare_status status;
    if (!spec)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s: an image (expected also --spec FILE that maps feature image/encoded to an "
                         "input, see docs/dataset-spec.md)",
                         tare_image_folder_name(images, i));
    status = tare_image_folder_read(&features, images, i);
    return tare_error_prefix(apply_spec(out, &features, spec, status), "%s", tare_image_folder_name(images, i));
}

static tare_status decode_table_row(struct tare_sample *out, const struct tare_csv_file *table, int64_t row,
                                    const struct tare_dataset_spec *spec) {
    struct tare_features features;
    tare_status status;
    if (!spec)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "a CSV row (expected also --spec FILE that maps columns to inputs; 'tare dataset info "
                         "FILE.csv --draft-spec SPEC --model MODEL' drafts one)");
    status = tare_csv_file_read(&features, table, row);
    return apply_spec(out, &features, spec, status);
}

tare_status tare_data_file_decode(struct tare_sample *out, const struct tare_data_file *file,
                                  const struct tare_data_record *record, const struct tare_dataset_spec *spec) {
    memset(out, 0, sizeof *out);
    if (file->arrays) return decode_row(out, file->arrays, record->number, spec);
    if (file->images) return decode_image(out, file->images, record->number, spec);
    if (file->table) return decode_table_row(out, file->table, record->number, spec);
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
    *kind = file->arrays ? "arrays" : file->table ? "CSV row" : "image";
    if (file->arrays) return tare_array_file_sample(out, file->arrays, record->number);
    if (file->images)
        return show_features(out, &features, tare_image_folder_read(&features, file->images, record->number));
    if (file->table) return show_features(out, &features, tare_csv_file_read(&features, file->table, record->number));
    record_kind = tare_record_kind_of(record->data, record->size);
    *kind = tare_record_kind_name(record_kind);
    if (record_kind == TARE_RECORD_EXAMPLE || record_kind == TARE_RECORD_SEQUENCE_EXAMPLE)
        return show_features(out, &features, tare_features_decode(&features, record->data, record->size));
    if (record_kind == TARE_RECORD_OTHER)
        return show_features(out, &features, tare_features_add_bytes(&features, "(bytes)", record->data, record->size));
    return tare_sample_decode(out, record->data, record->size);
}
