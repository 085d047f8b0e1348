/* tare dataset export: writes the images of records as PNG files, in a folder for each label. */
#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "base/image/codec.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "cli/dataset/dataset.h"
#include "cli/log.h"
#include "datasets/label.h"
#include "datasets/source.h"
#include "workflow/data_options.h"
#include "workflow/evaluation_data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct export_options {
    struct tare_option_list files;
    struct tare_data_options records;
    const char *output, *image, *label;
    int64_t limit;
    bool quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct export_options, "output", STRING, output), .letter = 'o', .placeholder = "FOLDER",
      .help = "folder to write, with one folder of PNG files for each label", .flags = TARE_OPTION_REQUIRED },
    { TARE_OPTION(struct export_options, "image", STRING, image), .placeholder = "KEY",
      .help = "record key of the image (default: the first value with the shape of one)" },
    { TARE_OPTION(struct export_options, "label", STRING, label), .fallback = "label", .placeholder = "KEY",
      .help = "record key of the class index; without it the files are in FOLDER itself" },
    { TARE_OPTION(struct export_options, "limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "write only the first N images (default: all)" },
    TARE_OPTION_NESTED_WITHOUT(struct export_options, records, tare_data_rows, TARE_MODEL_DATA_ROWS),
    { TARE_OPTION(struct export_options, "quiet", FLAG, quiet), .help = "suppress the summary on standard error" },
    TARE_LOG_OPTIONS(struct export_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct export_options, "FILE", files),
      .help = "TFRecord, NPY, NPZ, CSV or image files, image folders, or quoted patterns",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare dataset export eval.tfrecord.gz -o images", NULL };
static const struct tare_option_set set = {
    .program = "tare dataset export",
    .summary =
        "Writes the images of records as PNG files, FOLDER/LABEL/NUMBER.png. The values of all images are from 0 "
        "to 1, from -1 to 1, or from 0 to 255.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* What all images have in common, found by a first reading. */
struct survey {
    int64_t count, largest_label; /* largest_label -1: no labels */
    double low, high;
};

struct image {
    const struct tare_tensor *value;
    int64_t height, width, channels;
};

/* Height, width and 1 or 3 channels, perhaps after an axis of one sample. */
static bool is_image(struct image *out, const struct tare_tensor *value) {
    const struct tare_shape *shape = &value->shape;
    const int first = shape->rank - 3;
    const enum tare_dtype_class class = tare_dtype_get(value->dtype)->class;
    if (first < 0 || first > 1 || (first == 1 && shape->dims[0] != 1) || !value->elements) return false;
    *out = (struct image){ value, shape->dims[first], shape->dims[first + 1], shape->dims[first + 2] };
    return (out->channels == 1 || out->channels == 3) &&
           (class == TARE_CLASS_FLOAT || class == TARE_CLASS_UNSIGNED || class == TARE_CLASS_SIGNED);
}

static tare_status find_image(struct image *out, const struct tare_sample *sample, const char *key) {
    for (size_t i = 0; i < sample->count; i++)
        if ((!key || strcmp(sample->keys[i], key) == 0) && is_image(out, &sample->values[i])) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND,
                     "no image in %s (expected [height, width, 1 or 3] with or without an axis of size 1 in front)",
                     key ? key : "any key");
}

/* -1: the record has no label. */
static tare_status find_label(int64_t *out, const struct tare_sample *sample, const char *key) {
    *out = -1;
    return tare_sample_find(sample, key) ? tare_label_class(out, sample, key, 0, 1) : TARE_OK;
}

static tare_status look(struct survey *s, const struct image *image, int64_t label) {
    for (int64_t i = 0; i < image->value->elements; i++) {
        const double x = tare_tensor_get_f64(image->value, i);
        s->low = fmin(s->low, x);
        s->high = fmax(s->high, x);
        if (!isfinite(x)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a pixel is not finite");
    }
    if (label > s->largest_label) s->largest_label = label;
    return TARE_OK;
}

static const char *scale_text(const struct survey *s) {
    return s->low < 0 ? "-1 to 1" : s->high <= 1 ? "0 to 1" : "0 to 255";
}

static tare_status check_scale(const struct survey *s) {
    if (s->low >= -1 && s->high <= (s->low < 0 ? 1 : 255)) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "the images have values from %g to %g (expected 0 to 1, -1 to 1 or 0 to 255; scale them in a "
                     "DatasetSpec)",
                     s->low, s->high);
}

/* Names of labels have the same number of digits, so that folders in the order of their names are numbered as the
 * labels. */
static char *file_name(const char *folder, const struct survey *s, int64_t label, int64_t number) {
    char digits[24];
    struct tare_strbuf text = { 0 };
    const int width = snprintf(digits, sizeof digits, "%" PRId64, s->largest_label);
    tare_strbuf_puts(&text, folder);
    if (label >= 0) tare_strbuf_printf(&text, "/%0*" PRId64, width, label);
    tare_strbuf_printf(&text, "/%06" PRId64 ".png", number);
    char *name = text.failed ? NULL : tare_strdup(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return name;
}

static tare_status write_image(const char *folder, const struct survey *s, const struct image *image, int64_t label,
                               int64_t number) {
    const double shift = s->low < 0 ? 1 : 0, factor = s->low < 0 ? 127.5 : s->high <= 1 ? 255 : 1;
    uint8_t *pixels = tare_malloc((size_t)image->value->elements);
    char *path = file_name(folder, s, label, number), *parent = path ? tare_path_folder(path) : NULL;
    struct tare_strbuf png = { 0 };
    tare_status status = pixels && parent ? tare_file_make_folders(parent, NULL) : TARE_NO_MEMORY;
    for (int64_t i = 0; i < image->value->elements && status == TARE_OK; i++)
        pixels[i] = (uint8_t)lround((tare_tensor_get_f64(image->value, i) + shift) * factor);
    if (status == TARE_OK)
        status = tare_png_encode(&png, pixels, image->height, image->width, (int)image->channels, false, 9);
    if (status == TARE_OK) status = tare_file_write(path, tare_strbuf_text(&png), png.size);
    tare_strbuf_free(&png);
    tare_free(parent);
    tare_free(path);
    tare_free(pixels);
    return status;
}

/* Reads all records; `folder` NULL: looks at them, otherwise writes them. */
static tare_status each_record(struct survey *s, const struct export_options *options, const char *folder) {
    const struct tare_source_options reading = { .limit = options->limit, .spec = options->records.spec };
    struct tare_source *source;
    bool end = false;
    tare_status status = tare_source_new(&source, options->files.items, options->files.count, &reading);
    s->count = 0;
    while (status == TARE_OK && !end) {
        struct tare_record where;
        struct tare_sample sample = { 0 };
        struct image image;
        int64_t label;
        status = tare_flag_check(&tare_interrupted);
        if (status == TARE_OK) status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
        if (status == TARE_OK && !end) {
            status = find_image(&image, &sample, options->image);
            if (status == TARE_OK) status = find_label(&label, &sample, options->label);
            if (status == TARE_OK)
                status = folder ? write_image(folder, s, &image, label, s->count) : look(s, &image, label);
            status = tare_error_prefix(status, "record %" PRId64, where.number);
            s->count++;
        }
        tare_sample_reset(&sample);
    }
    tare_source_free(source);
    return status;
}

static tare_status export(struct survey *s, const struct export_options *options) {
    struct tare_output_dir folder = { 0 };
    tare_status status;
    *s = (struct survey){ .largest_label = -1, .low = INFINITY, .high = -INFINITY };
    TARE_TRY(each_record(s, options, NULL));
    TARE_TRY(check_scale(s));
    TARE_TRY(tare_output_dir_begin(&folder, options->output, NULL));
    status = each_record(s, options, folder.temporary);
    if (status == TARE_OK) return tare_output_dir_commit(&folder);
    tare_output_dir_abort(&folder);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    const struct tare_log log = tare_command_log(true);
    struct export_options options = { 0 };
    struct survey survey;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(tare_workflow_keep_expected(options.records.spec, options.label, NULL));
    status = export(&survey, &options);
    tare_data_options_warn(&log, options.records.spec);
    if (status == TARE_OK && !options.quiet)
        fprintf(stderr, "%s: %" PRId64 " images, whose values were from %s\n", options.output, survey.count,
                scale_text(&survey));
done:
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_dataset_export = {
    .name = "export", .summary = "write the images of records as PNG files", .run = run, .options = &set
};
