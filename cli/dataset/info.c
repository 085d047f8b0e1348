/* tare dataset info: summarizes data sets. */
#include "base/alloc.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "base/text_table.h"
#include "cli/dataset/dataset.h"
#include "calib/warnings.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "datasets/survey.h"
#include "eval/report/json_text.h"
#include "workflow/data_options.h"
#include "workflow/spec_draft.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

struct info_options {
    struct tare_option_list files;
    struct tare_data_options records;
    const char *labels, *draft, *model, *signature;
    int64_t limit;
    bool json, quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED_WITHOUT(struct info_options, records, tare_data_rows, TARE_MODEL_DATA_ROWS),
    { TARE_OPTION(struct info_options, "labels", STRING, labels), .placeholder = "FILE",
      .help = "labels of images, one \"PATH LABEL\" per line (default: names of the folders)" },
    { TARE_OPTION(struct info_options, "draft-spec", STRING, draft), .placeholder = "FILE",
      .help = "also write a draft DatasetSpec for these records to FILE (not with --spec)" },
    { TARE_OPTION(struct info_options, "model", STRING, model), .placeholder = "MODEL", .needs = "draft-spec",
      .help = "SavedModel whose inputs the draft is for" },
    { TARE_OPTION(struct info_options, "signature", STRING, signature), .placeholder = "KEY", .needs = "model",
      .help = "signature of --model (default serving_default, or the only one)" },
    { TARE_OPTION(struct info_options, "limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "read only the first N records (default: all)" },
    { TARE_OPTION(struct info_options, "json", FLAG, json), .help = "print JSON" },
    { TARE_OPTION(struct info_options, "quiet", FLAG, quiet), .help = "suppress progress on standard error" },
    TARE_LOG_OPTIONS(struct info_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct info_options, "FILE", files),
      .help = "TFRecord, NPY, NPZ, CSV or image files, image folders, quoted patterns, or - for standard input",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare dataset info samples.tfrecord.gz",
                                        "tare dataset info train.tfrecord --draft-spec train.spec --model my_model",
                                        "tare dataset info 'train-*.tfrecord' --spec images.spec --json", NULL };
static const struct tare_option_set set = {
    .program = "tare dataset info",
    .summary = "Reads whole data sets and reports the number of records, keys with dtypes, shapes and value ranges, "
               "duplicate records, constant inputs, NaN, and invalid records. With --spec, reports on the examples "
               "that the DatasetSpec creates. Exit status 1 if a record is invalid.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- text ---- */

static bool has_range(const struct tare_survey_key *key) {
    return key->least <= key->most;
}

static void print_files(const struct tare_survey *survey, struct tare_strbuf *out) {
    static const struct tare_text_table_column columns[] = {
        { "file", true, true },    { "format", true, true }, { "records", false, true },
        { "bytes", false, false }, { "bad", false, false },  { NULL, false, false },
    };
    struct tare_text_table *table = tare_text_table_new(columns);
    for (size_t i = 0; i < survey->n_files; i++) {
        const struct tare_survey_file *file = &survey->files[i];
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", file->path);
        tare_text_table_cell(table, "%s", file->format);
        tare_text_table_cell(table, "%" PRId64, file->records);
        if (file->bytes >= 0)
            tare_text_table_cell(table, "%" PRId64, file->bytes);
        else
            tare_text_table_skip(table);
        if (file->bad) tare_text_table_cell(table, "%" PRId64, file->bad);
    }
    tare_text_table_print(out, table);
    tare_text_table_free(table);
}

/* Prints findings that the user should check. */
static void key_notes(char *out, size_t size, const struct tare_survey *survey, const struct tare_survey_key *key) {
    int used = 0;
    out[0] = '\0';
#define NOTE(...)                                                                                                      \
    do {                                                                                                               \
        if ((size_t)used < size) used += snprintf(out + used, size - (size_t)used, "%s", used ? ", " : "");            \
        if ((size_t)used < size) used += snprintf(out + used, size - (size_t)used, __VA_ARGS__);                       \
    } while (0)
    if (key->mixed) NOTE("other dtypes too");
    if (key->records < survey->records) NOTE("in %" PRId64 " record%s", key->records, key->records == 1 ? "" : "s");
    if (key->constant) NOTE("the same in every record");
    if (key->nan || key->infinite)
        NOTE("%" PRId64 " NaN, %" PRId64 " infinite: first in record %" PRId64 " of %s", key->nan, key->infinite,
             key->first_nan.number, survey->files[key->first_nan.file].path);
    if (key->images) NOTE("%" PRId64 " image files", key->images);
    if (key->rotated) NOTE("%" PRId64 " with EXIF rotation", key->rotated);
#undef NOTE
}

static void print_keys(const struct tare_survey *survey, struct tare_strbuf *out) {
    static const struct tare_text_table_column columns[] = {
        { "key", true, true },   { "dtype", true, true },   { "shape", true, true },  { "min", false, false },
        { "max", false, false }, { "zeros", false, false }, { "notes", true, false }, { NULL, false, false },
    };
    struct tare_text_table *table = tare_text_table_new(columns);
    char shape[TARE_SHAPE_TEXT_SIZE], notes[512];
    for (size_t i = 0; i < survey->n_keys; i++) {
        const struct tare_survey_key *key = &survey->keys[i];
        bool text = key->dtype == TARE_DT_STRING;
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", key->name);
        tare_text_table_cell(table, "%s", tare_dtype_name(key->dtype));
        tare_text_table_cell(table, "%s", tare_shape_text(shape, &key->shape));
        if (text && key->elements) {
            tare_text_table_cell(table, "%zu bytes", key->shortest);
            tare_text_table_cell(table, "%zu bytes", key->longest);
            tare_text_table_skip(table);
        } else if (has_range(key)) {
            tare_text_table_cell(table, "%.7g", key->least);
            tare_text_table_cell(table, "%.7g", key->most);
            tare_text_table_cell(table, "%.3g%%", 100.0 * (double)key->zeros / (double)key->elements);
        } else {
            for (int k = 0; k < 3; k++)
                tare_text_table_skip(table);
        }
        key_notes(notes, sizeof notes, survey, key);
        if (*notes) tare_text_table_cell(table, "%s", notes);
    }
    tare_text_table_print(out, table);
    tare_text_table_free(table);
}

static void print_text(const struct tare_survey *survey, struct tare_strbuf *out) {
    print_files(survey, out);
    tare_strbuf_printf(out, "\n%" PRId64 " record%s%s%s%s\n", survey->records, survey->records == 1 ? "" : "s",
                       survey->kind ? " (" : "", survey->kind ? survey->kind : "", survey->kind ? ")" : "");
    if (survey->n_keys) {
        tare_strbuf_putc(out, '\n');
        print_keys(survey, out);
    }
    if (survey->duplicates)
        tare_strbuf_printf(out, "\n%" PRId64 " record%s an earlier one:\n", survey->duplicates,
                           survey->duplicates == 1 ? " equals" : "s equal");
    for (int64_t i = 0; i < survey->duplicates && i < TARE_SURVEY_LISTED; i++) {
        const struct tare_survey_duplicate *pair = &survey->listed[i];
        tare_strbuf_printf(out, "  record %" PRId64 " of %s = record %" PRId64 " of %s\n", pair->at.number,
                           survey->files[pair->at.file].path, pair->first.number, survey->files[pair->first.file].path);
    }
    if (survey->duplicates > TARE_SURVEY_LISTED) tare_strbuf_puts(out, "  …\n");
    if (survey->bad) tare_strbuf_printf(out, "\n%" PRId64 " bad record%s:\n", survey->bad, survey->bad == 1 ? "" : "s");
    for (int64_t i = 0; i < survey->bad && i < TARE_SURVEY_LISTED; i++)
        tare_strbuf_printf(out, "  %s\n", survey->bad_texts[i]);
    if (survey->bad > TARE_SURVEY_LISTED) tare_strbuf_puts(out, "  …\n");
}

/* ---- JSON ---- */

static json_t *place_json(const struct tare_survey *survey, const struct tare_survey_place *place) {
    return json_pack("{s:o, s:I}", "file", tare_json_text(survey->files[place->file].path), "record",
                     (json_int_t)place->number);
}

static json_t *shape_json(const struct tare_shape *shape) {
    json_t *dims = shape->rank < 0 ? json_null() : json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer((json_int_t)shape->dims[i]));
    return dims;
}

static json_t *key_json(const struct tare_survey *survey, const struct tare_survey_key *key) {
    json_t *out = json_pack("{s:o, s:o, s:b, s:o, s:I, s:I, s:b}", "name", tare_json_text(key->name), "dtype",
                            tare_json_text(tare_dtype_name(key->dtype)), "mixed", key->mixed, "shape",
                            shape_json(&key->shape), "records", (json_int_t)key->records, "elements",
                            (json_int_t)key->elements, "constant", key->constant);
    if (key->dtype == TARE_DT_STRING) {
        if (key->elements) {
            json_object_set_new(out, "min_bytes", json_integer((json_int_t)key->shortest));
            json_object_set_new(out, "max_bytes", json_integer((json_int_t)key->longest));
        }
        json_object_set_new(out, "images", json_integer((json_int_t)key->images));
        json_object_set_new(out, "rotated", json_integer((json_int_t)key->rotated));
        return out;
    }
    if (has_range(key)) {
        json_object_set_new(out, "min", json_real(key->least));
        json_object_set_new(out, "max", json_real(key->most));
    }
    json_object_set_new(out, "zeros", json_integer((json_int_t)key->zeros));
    json_object_set_new(out, "nan", json_integer((json_int_t)key->nan));
    json_object_set_new(out, "infinite", json_integer((json_int_t)key->infinite));
    if (key->nan || key->infinite) json_object_set_new(out, "first_nan", place_json(survey, &key->first_nan));
    return out;
}

static json_t *survey_json(const struct tare_survey *survey) {
    json_t *files = json_array(), *keys = json_array(), *duplicates = json_array(), *bad = json_array();
    for (size_t i = 0; i < survey->n_files; i++) {
        const struct tare_survey_file *file = &survey->files[i];
        json_t *entry =
            json_pack("{s:o, s:o, s:I, s:I}", "path", tare_json_text(file->path), "format",
                      tare_json_text(file->format), "records", (json_int_t)file->records, "bad", (json_int_t)file->bad);
        if (file->bytes >= 0) json_object_set_new(entry, "bytes", json_integer((json_int_t)file->bytes));
        json_array_append_new(files, entry);
    }
    for (size_t i = 0; i < survey->n_keys; i++)
        json_array_append_new(keys, key_json(survey, &survey->keys[i]));
    for (int64_t i = 0; i < survey->duplicates && i < TARE_SURVEY_LISTED; i++)
        json_array_append_new(duplicates, json_pack("{s:o, s:o}", "at", place_json(survey, &survey->listed[i].at),
                                                    "first", place_json(survey, &survey->listed[i].first)));
    for (int64_t i = 0; i < survey->bad && i < TARE_SURVEY_LISTED; i++)
        json_array_append_new(bad, tare_json_text(survey->bad_texts[i]));
    return json_pack("{s:I, s:o, s:o, s:o, s:I, s:o, s:I, s:o}", "records", (json_int_t)survey->records, "kind",
                     tare_json_text(survey->kind), "files", files, "keys", keys, "duplicates",
                     (json_int_t)survey->duplicates, "duplicate_records", duplicates, "bad", (json_int_t)survey->bad,
                     "bad_records", bad);
}

static tare_status print_survey(const struct tare_survey *survey, bool json) {
    struct tare_strbuf out = { 0 };
    json_t *document;
    tare_status status = TARE_OK;
    if (json) {
        document = survey_json(survey);
        if (!document || json_dumpf(document, stdout, JSON_INDENT(2)) != 0)
            status = TARE_FAIL(TARE_NO_MEMORY, "out of memory for JSON (or a name is not UTF-8)");
        json_decref(document);
        putchar('\n');
        return status;
    }
    print_text(survey, &out);
    status = tare_strbuf_status(&out);
    tare_strbuf_print(&out, stdout);
    tare_strbuf_free(&out);
    return status;
}

/* Appends a draft for the inputs of a signature of the model. */
static tare_status draft_for_model(struct tare_strbuf *text, const struct tare_survey *survey, const char *path,
                                   const char *key) {
    const struct tare_log log = tare_command_log(true);
    struct tare_spec_draft_found found;
    const tare_status status =
        tare_workflow_draft_spec(text, &found, survey, path, key, &(struct tare_spec_draft_options){ 0 });
    tare_strbuf_free(&found.summary);
    if (status == TARE_OK && found.missing)
        tare_warn(&log, "some inputs of %s have no feature in the data: edit the draft", path);
    return status;
}

static tare_status write_draft(const struct tare_survey *survey, const struct info_options *options) {
    struct tare_strbuf text = { 0 };
    const char *path = options->draft;
    tare_status status = TARE_OK;
    if (options->model)
        status = draft_for_model(&text, survey, options->model, options->signature);
    else
        tare_dataset_spec_draft(&text, survey);
    if (status != TARE_OK) {
        tare_strbuf_free(&text);
        return status;
    }
    status = tare_strbuf_status(&text);
    if (status == TARE_OK) status = tare_file_write(path, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return status;
}

/* Calibration needs a few hundred records, however many there are; the evaluation is the more precise the more it has.
 */
static int64_t advised_samples(int64_t records) {
    enum { MOST = 300 };
    const int64_t half = records / 2, third = records / 3;
    const int64_t least = half < TARE_WARNING_FEW_RECORDS ? half : TARE_WARNING_FEW_RECORDS;
    const int64_t advised = third > least ? third : least;
    return advised < 1 ? 1 : advised < MOST ? advised : MOST;
}

/* The draft serves calibration and evaluation, which need different records. */
static void print_next(const struct info_options *options, int64_t records) {
    const struct tare_log log = tare_command_log(options->quiet);
    char samples[32];
    const char *const first[] = { "dataset", "split" }, *const last[] = { "--count", samples,
                                                                          "--names", "calibration,evaluation",
                                                                          "--seed",  "1",
                                                                          "-o",      NULL },
                      *const parts[] = { "-calibration.tfrecord", "-evaluation.tfrecord", NULL };
    const struct tare_option_list *files = &options->files;
    const char **words = tare_calloc(files->count + 20, sizeof *words);
    size_t count = 0;
    char *prefix = NULL;
    snprintf(samples, sizeof samples, "%" PRId64, advised_samples(records));
    tare_note(&log, "wrote %s (check its comments, above all the scale of the inputs)", options->draft);
    tare_hint_prefix(&prefix, options->model ? options->model : files->items[0], parts);
    if (words && prefix) {
        for (size_t i = 0; i < 2; i++)
            words[count++] = first[i];
        for (size_t i = 0; i < files->count; i++) /* standard input cannot be split */
            words[count++] = strcmp(files->items[i], "-") == 0 ? "DATA" : files->items[i];
        if (options->labels) words[count++] = "--labels", words[count++] = options->labels;
        words[count++] = "--spec", words[count++] = options->draft;
        if (options->model) words[count++] = "--model", words[count++] = options->model;
        for (size_t i = 0; last[i]; i++)
            words[count++] = last[i];
        words[count] = prefix;
        tare_hint_words(&log, words);
    }
    tare_free(words);
    tare_free(prefix);
}

static tare_status run(int argc, char *const *argv) {
    struct info_options options = { 0 };
    struct tare_survey_options survey_options = { .interrupted = &tare_interrupted, .progress = tare_dataset_advance };
    struct tare_survey survey = { 0 };
    struct tare_progress *progress = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    if (options.draft && options.records.spec_path) {
        status = TARE_FAIL(TARE_USAGE, "--spec and --draft-spec are mutually exclusive");
        goto done;
    }
    if (options.draft && strcmp(options.draft, "-") == 0) {
        status = TARE_FAIL(TARE_USAGE, "--draft-spec -: standard output has the summary (expected a file)");
        goto done;
    }
    TARE_CHECK(tare_data_options_open(&options.records));
    progress = tare_progress_new(
        &(struct tare_progress_options){ .label = "reading", .unit = "records", .total = -1, .quiet = options.quiet });
    survey_options.spec = options.records.spec;
    survey_options.labels = options.labels;
    survey_options.limit = options.limit;
    survey_options.progress_arg = progress;
    status = tare_survey_files(&survey, options.files.items, options.files.count, &survey_options);
    tare_progress_free(progress);
    if (status == TARE_OK && options.draft && survey.records) status = write_draft(&survey, &options);
    if (status == TARE_OK) status = print_survey(&survey, options.json);
    if (status == TARE_OK) {
        const struct tare_log log = tare_command_log(options.quiet);
        tare_data_options_warn(&log, options.records.spec);
    }
    if (status == TARE_OK && !survey.records && !survey.bad)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records (expected at least 1)", options.files.items[0]);
    if (status == TARE_OK && options.draft) print_next(&options, survey.records);
    if (status == TARE_OK && survey.bad)
        status = survey.bad == 1 ? TARE_FAIL(TARE_CORRUPT, "%s", survey.bad_texts[0])
                                 : TARE_FAIL(TARE_CORRUPT, "%" PRId64 " invalid records; the first: %s", survey.bad,
                                             survey.bad_texts[0]);
done:
    tare_survey_free(&survey);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_dataset_info = {
    .name = "info", .summary = "summarize records, keys, dtypes, shapes and problems", .run = run, .options = &set
};
