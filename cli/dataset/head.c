/* tare dataset head: prints the first records in readable form. */
#include "base/file.h"
#include "base/strbuf.h"
#include "cli/dataset/dataset.h"
#include "cli/log.h"
#include "cli/value_text.h"
#include "datasets/data_file.h"
#include "eval/report/json_text.h"
#include "workflow/data_options.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SHOWN = 60 };

struct head_options {
    struct tare_option_list files;
    struct tare_data_options records;
    const char *labels;
    int64_t limit;
    int values;
    bool json;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct head_options, "limit", INT64, limit), .letter = 'n', .fallback = "5", .min = 1, .max = 1e15,
      .help = "number of records to print per file" },
    { TARE_OPTION(struct head_options, "values", INT, values), .fallback = "8", .min = 0, .max = 1e9,
      .help = "number of elements to print per input" },
    TARE_OPTION_NESTED_WITHOUT(struct head_options, records, tare_data_rows, TARE_MODEL_DATA_ROWS),
    { TARE_OPTION(struct head_options, "labels", STRING, labels), .placeholder = "FILE",
      .help = "labels of images, one \"PATH LABEL\" per line (default: names of the folders)" },
    { TARE_OPTION(struct head_options, "json", FLAG, json), .help = "print JSON" },
    TARE_LOG_OPTIONS(struct head_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct head_options, "FILE", files),
      .help = "TFRecord, NPY, NPZ, CSV or image files, image folders, quoted patterns, or - for standard input",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare dataset head -n 2 samples.tfrecord.gz", NULL };
static const struct tare_option_set set = {
    .program = "tare dataset head",
    .summary = "Prints the first records of each file: keys, dtypes, shapes and first values. With --spec, prints the "
               "examples that the DatasetSpec creates from the records.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- values ---- */

static int64_t shown(const struct tare_tensor *value, const struct head_options *options) {
    return value->elements < options->values ? value->elements : options->values;
}

static bool is_real(const struct tare_tensor *value) {
    enum tare_dtype_class class = tare_dtype_get(value->dtype)->class;
    return class == TARE_CLASS_FLOAT || class == TARE_CLASS_SIGNED || class == TARE_CLASS_UNSIGNED ||
           class == TARE_CLASS_BOOL || class == TARE_CLASS_QUANTIZED;
}

static void print_text_value(struct tare_strbuf *out, const struct tare_str *text) {
    tare_strbuf_putc(out, '"');
    tare_strbuf_escape(out, text->data, text->size < TEXT_SHOWN ? text->size : TEXT_SHOWN);
    tare_strbuf_putc(out, '"');
    if (text->size > TEXT_SHOWN) tare_strbuf_printf(out, "… (%zu bytes)", text->size);
}

static void print_value(struct tare_strbuf *out, const char *key, const struct tare_tensor *value,
                        const struct head_options *options) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    int64_t count = shown(value, options);
    tare_strbuf_puts(out, "  ");
    tare_strbuf_put_visible(out, key);
    tare_strbuf_printf(out, " %s%s", tare_dtype_name(value->dtype), tare_shape_text(shape, &value->shape));
    for (int64_t i = 0; i < count; i++) {
        tare_strbuf_putc(out, ' ');
        if (value->dtype == TARE_DT_STRING)
            print_text_value(out, &TARE_CONST_DATA(struct tare_str, value)[i]);
        else
            tare_value_put(out, value, i, 7);
    }
    tare_strbuf_puts(out, count < value->elements ? " …\n" : "\n");
}

/* What JSON has no number for is a string: NaN and infinity, complex numbers, integers of more than 63 bits. */
static json_t *number_json(const struct tare_tensor *value, int64_t i) {
    double x;
    if (!is_real(value) || (value->dtype == TARE_DT_UINT64 && TARE_CONST_DATA(uint64_t, value)[i] > INT64_MAX)) {
        struct tare_strbuf text = { 0 };
        tare_value_put(&text, value, i, 9);
        json_t *out = tare_json_text(tare_strbuf_text(&text));
        tare_strbuf_free(&text);
        return out;
    }
    if (!tare_dtype_is_floating(value->dtype)) return json_integer((json_int_t)tare_tensor_get_i64(value, i));
    x = tare_tensor_get_f64(value, i);
    if (isnan(x)) return json_string("NaN");
    if (isinf(x)) return tare_json_text(x > 0 ? "Infinity" : "-Infinity");
    return json_real(x);
}

/* Of bytes that are not UTF-8 only the first. */
static json_t *text_json(const struct tare_str *text) {
    json_t *out = json_stringn(text->data, text->size);
    return out ? out : tare_json_text_of(text->data, text->size < TEXT_SHOWN ? text->size : TEXT_SHOWN);
}

static json_t *value_json(const struct tare_tensor *value, const struct head_options *options) {
    json_t *dims = json_array(), *values = json_array();
    int64_t count = shown(value, options);
    for (int i = 0; i < value->shape.rank; i++)
        json_array_append_new(dims, json_integer((json_int_t)value->shape.dims[i]));
    for (int64_t i = 0; i < count; i++) {
        if (value->dtype == TARE_DT_STRING)
            json_array_append_new(values, text_json(&TARE_CONST_DATA(struct tare_str, value)[i]));
        else
            json_array_append_new(values, number_json(value, i));
    }
    return json_pack("{s:o, s:o, s:o}", "dtype", tare_json_text(tare_dtype_name(value->dtype)), "shape", dims, "values",
                     values);
}

/* ---- records ---- */

static void print_record(const struct tare_sample *sample, const char *kind, const struct tare_data_record *record,
                         const struct head_options *options) {
    struct tare_strbuf out = { 0 };
    tare_strbuf_printf(&out, "record %" PRId64 " at %" PRId64, record->number, record->offset);
    if (record->data) tare_strbuf_printf(&out, ": %s of %zu bytes", kind, record->size);
    tare_strbuf_putc(&out, '\n');
    for (size_t i = 0; i < sample->count; i++)
        print_value(&out, sample->keys[i], &sample->values[i], options);
    tare_strbuf_print(&out, stdout);
    tare_strbuf_free(&out);
}

static json_t *record_json(const struct tare_sample *sample, const char *kind, const char *path,
                           const struct tare_data_record *record, const struct head_options *options) {
    json_t *inputs = json_object();
    for (size_t i = 0; i < sample->count; i++)
        tare_json_set(inputs, sample->keys[i], value_json(&sample->values[i], options));
    return json_pack("{s:o, s:I, s:I, s:o, s:o}", "file", tare_json_text(path), "record", (json_int_t)record->number,
                     "offset", (json_int_t)record->offset, "kind", tare_json_text(kind), "inputs", inputs);
}

static tare_status show_record(json_t *list, struct tare_data_file *file, const char *path,
                               const struct tare_data_record *record, const struct head_options *options) {
    const char *kind = "sample";
    struct tare_sample sample;
    tare_status status = options->records.spec ? tare_data_file_decode(&sample, file, record, options->records.spec)
                                               : tare_data_file_look(&sample, &kind, file, record);
    tare_error_prefix(status, "%s: record %lld at %lld", path, (long long)record->number, (long long)record->offset);
    if (status == TARE_OK && options->json)
        json_array_append_new(list, record_json(&sample, kind, path, record, options));
    else if (status == TARE_OK)
        print_record(&sample, kind, record, options);
    tare_sample_reset(&sample);
    return status;
}

static tare_status show_file(json_t *list, struct tare_data_file *file, const char *path,
                             const struct head_options *options) {
    int64_t count = 0;
    tare_status status;
    if (!options->json) printf("%s (%s)\n", path, tare_data_file_format(file));
    for (status = TARE_OK; count < options->limit && status == TARE_OK; count++) {
        struct tare_data_record record;
        bool end;
        status = tare_data_file_next(&record, &end, file);
        if (status != TARE_OK || end) break;
        status = show_record(list, file, path, &record, options);
    }
    if (status == TARE_OK && !count && options->limit > 0)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records (expected at least 1)", path);
    return status;
}

static tare_status show_files(const struct head_options *options) {
    struct tare_file_list files = { 0 };
    struct tare_data_file *file = NULL;
    json_t *list = options->json ? json_array() : NULL;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < options->files.count && status == TARE_OK; i++)
        status = tare_file_glob(&files, options->files.items[i]);
    if (status == TARE_OK) status = tare_data_files_check(&files);
    for (size_t i = 0; i < files.count && status == TARE_OK; i++) {
        status = tare_data_file_open_of(&file, &files, i, options->labels, file);
        if (status == TARE_OK) status = show_file(list, file, files.names[i], options);
    }
    tare_data_file_close(file);
    if (list && status == TARE_OK) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(list);
    tare_file_list_free(&files);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct head_options options = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_data_options_open(&options.records));
    status = show_files(&options);
done:
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_dataset_head = {
    .name = "head", .summary = "print the first records", .run = run, .options = &set
};
