/* tare dataset split: splits TFRecord files, and samples created from other data. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "cli/dataset/dataset.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "datasets/data_file.h"
#include "datasets/make.h"
#include "workflow/data_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct split_options {
    struct tare_option_list files;
    struct tare_data_options records;
    const char *prefix, *model, *counts, *fractions, *names, *seed, *labels;
    int parts;
    int64_t limit, max_bad;
    bool gzip, quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct split_options, "output", STRING, prefix), .letter = 'o', .placeholder = "PREFIX",
      .help = "prefix of the output files: PREFIX-00000-of-00003.tfrecord …, or PREFIX-NAME.tfrecord with --names",
      .beside = "-*.tfrecord -*.tfrecord.gz", .flags = TARE_OPTION_REQUIRED },
    { TARE_OPTION(struct split_options, "parts", INT, parts), .min = 0, .max = 512,
      .help = "split into N parts of equal size" },
    { TARE_OPTION(struct split_options, "count", STRING, counts), .placeholder = "N,…",
      .help = "number of records of each part; the remaining records form another part" },
    { TARE_OPTION(struct split_options, "fraction", STRING, fractions), .placeholder = "F,…",
      .help = "fraction of the records in each part, as 0.8,0.1; the remaining records form another part" },
    { TARE_OPTION(struct split_options, "seed", STRING, seed), .placeholder = "N",
      .help = "assign records to parts at random, reproducibly for the same N (default: in order)" },
    { TARE_OPTION(struct split_options, "model", STRING, model), .placeholder = "MODEL",
      .help = "SavedModel that the data is for, for the command that calibrates it" },
    { TARE_OPTION(struct split_options, "names", STRING, names), .placeholder = "A,…",
      .help = "names of the parts, as train,test" },
    TARE_OPTION_NESTED_WITHOUT(struct split_options, records, tare_data_rows, TARE_MODEL_DATA_ROWS),
    { TARE_OPTION(struct split_options, "labels", STRING, labels), .placeholder = "FILE",
      .help = "labels of images, one \"PATH LABEL\" per line (default: names of the folders)" },
    { TARE_OPTION(struct split_options, "gzip", FLAG, gzip),
      .help = "compress the parts with gzip and append .gz to their names" },
    { TARE_OPTION(struct split_options, "limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "use only the first N records (default: all)" },
    { TARE_OPTION(struct split_options, "max-bad", INT64, max_bad), .min = 0, .max = 1e15,
      .help = "skip up to N invalid records before failing (default: 0)" },
    { TARE_OPTION(struct split_options, "quiet", FLAG, quiet), .help = "suppress progress on standard error" },
    TARE_LOG_OPTIONS(struct split_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct split_options, "FILE", files),
      .help = "TFRecord files with any records, or quoted patterns; also arrays, CSV files and image folders, most of "
              "them with --spec",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = {
    "tare dataset split all.tfrecord --fraction 0.8 --names calibration,evaluation --seed 1 -o data/set",
    "tare dataset split 'train-*.tfrecord.gz' --parts 16 -o shards/train",
    "tare dataset split photos/ --spec photos.spec --fraction 0.7 --names calibration,evaluation --seed 1 -o photos",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare dataset split",
    .summary =
        "Splits data into parts. Records of TFRecord files are copied unchanged and keep their order. With --spec, "
        "and from other files, samples are created first, as by 'tare dataset make'. Prints the number of "
        "records in each part.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status parse_seed(uint64_t *out, const char *text) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return TARE_FAIL(TARE_USAGE, "--seed %s: expected an integer from 0 to 18446744073709551615", text);
    return TARE_OK;
}

/* ---- data that becomes samples first ---- */

/* Whether samples must be created: records of other files cannot be copied. */
static tare_status needs_samples(bool *out, const struct split_options *options) {
    struct tare_file_list files = { 0 };
    tare_status status = TARE_OK;
    *out = options->records.spec || options->labels;
    for (size_t i = 0; i < options->files.count && !*out; i++)
        if (strcmp(options->files.items[i], "-") != 0) TARE_CHECK(tare_file_glob(&files, options->files.items[i]));
    for (size_t i = 0; i < files.count && !*out; i++) {
        struct tare_data_file *file;
        TARE_CHECK(tare_data_file_open(&file, files.names[i], NULL));
        *out = strncmp(tare_data_file_format(file), "TFRecord", 8) != 0;
        tare_data_file_close(file);
    }
done:
    tare_file_list_free(&files);
    return status;
}

/* A temporary file next to the parts, for the samples. It is deleted while it is open, so that a killed process leaves
 * nothing; its path is then below /proc/self/fd. Where /proc is not mounted it keeps its name until it is closed. */
struct sample_file {
    char *path;
    bool named;
    int fd;
};

static tare_status open_sample_file(struct sample_file *out, const char *prefix) {
    char deleted[64];
    out->path = tare_malloc(strlen(prefix) + sizeof deleted + sizeof ".samples-XXXXXX");
    if (!out->path) return TARE_NO_MEMORY;
    sprintf(out->path, "%s.samples-XXXXXX", prefix);
    out->fd = mkstemp(out->path);
    out->named = out->fd >= 0;
    if (out->fd < 0) return TARE_FAIL(TARE_IO, "cannot create '%s-…': %s", prefix, tare_system_error(errno));
    snprintf(deleted, sizeof deleted, "/proc/self/fd/%d", out->fd);
    if (access(deleted, R_OK | W_OK) != 0) return TARE_OK;
    unlink(out->path);
    strcpy(out->path, deleted);
    out->named = false;
    return TARE_OK;
}

/* An error of the file of samples names the parts instead, which are what the user knows. */
static tare_status name_parts(tare_status status, const struct sample_file *file, const char *prefix) {
    char *text = status == TARE_OK ? NULL : tare_strdup(tare_error_text());
    const char *found = text && file->path ? strstr(text, file->path) : NULL;
    if (found) tare_fail(status, "%.*s%s-…%s", (int)(found - text), text, prefix, found + strlen(file->path));
    tare_free(text);
    return status;
}

static tare_status split_samples(struct tare_split_outcome *outcome, const struct split_options *options,
                                 struct tare_split_options *split) {
    const struct tare_make_options making = split->common;
    struct sample_file file = { .fd = -1 };
    struct tare_file_list origin = { 0 };
    struct tare_make_outcome made;
    tare_status status;
    for (size_t i = 0; i < options->files.count; i++)
        if (strcmp(options->files.items[i], "-") != 0) TARE_CHECK(tare_file_glob(&origin, options->files.items[i]));
    split->origin = &origin;
    TARE_CHECK(open_sample_file(&file, options->prefix));
    TARE_CHECK(tare_dataset_make(&made, file.path, options->files.items, options->files.count, options->records.spec,
                                 options->labels, &making));
    split->common.limit = split->common.max_bad = 0;
    split->common.progress = NULL;
    status = tare_dataset_split(outcome, options->prefix, (const char *const[]){ file.path }, 1, split);
done:
    status = name_parts(status, &file, options->prefix);
    split->origin = NULL;
    tare_file_list_free(&origin);
    if (file.named) unlink(file.path);
    if (file.fd >= 0) close(file.fd);
    tare_free(file.path);
    return status;
}

/* ---- the command ---- */

static tare_status split_files(struct tare_split_outcome *outcome, const struct split_options *options,
                               struct tare_split_options *split) {
    bool samples;
    TARE_TRY(needs_samples(&samples, options));
    if (samples) return split_samples(outcome, options, split);
    return tare_dataset_split(outcome, options->prefix, options->files.items, options->files.count, split);
}

static tare_status check_prefix(const char *prefix) {
    struct tare_strbuf name = { 0 };
    tare_strbuf_printf(&name, "%s-…", prefix);
    const tare_status status = name.failed ? TARE_NO_MEMORY : tare_command_check_file_output(tare_strbuf_text(&name));
    tare_strbuf_free(&name);
    return status;
}

static tare_status read_options(struct tare_split_options *split, struct split_options *options) {
    if ((options->parts != 0) + (options->counts != NULL) + (options->fractions != NULL) != 1)
        return TARE_FAIL(TARE_USAGE, "expected exactly one of --parts, --count and --fraction");
    if (!*options->prefix || strcmp(options->prefix, "-") == 0)
        return TARE_FAIL(TARE_USAGE, "--output '%s': expected a prefix of file names", options->prefix);
    TARE_TRY(check_prefix(options->prefix));
    if (options->seed) TARE_TRY(parse_seed(&split->seed, options->seed));
    split->shuffle = options->seed;
    split->parts = options->parts;
    split->counts = options->counts;
    split->fractions = options->fractions;
    split->names = options->names;
    split->compress = options->gzip;
    split->common.limit = options->limit;
    split->common.max_bad = options->max_bad;
    return tare_data_options_open(&options->records);
}

/* The first part is taken for calibration. */
static void print_parts(const struct tare_split_outcome *outcome, const struct split_options *options) {
    const struct tare_log log = tare_command_log(options->quiet);
    char *calibration = NULL;
    for (size_t i = 0; i < outcome->count; i++)
        printf("%s %" PRId64 "\n", outcome->parts[i].path, outcome->parts[i].records);
    for (size_t i = 0; i < outcome->count; i++)
        if (!outcome->parts[i].records) tare_warn(&log, "%s has no records", outcome->parts[i].path);
    if (options->model) tare_hint_name(&calibration, options->model, ".calib");
    if (outcome->count == 2 && outcome->parts[0].records)
        tare_hint(&log, "calibrate", options->model ? options->model : "MODEL", "--data", outcome->parts[0].path, "-o",
                  calibration ? calibration : "MODEL.calib", NULL);
    tare_free(calibration);
}

static tare_status run(int argc, char *const *argv) {
    struct split_options options = { 0 };
    int64_t bad = 0;
    struct tare_split_options split = { .common = { .on_bad = tare_dataset_print_bad,
                                                    .on_bad_arg = &bad,
                                                    .progress = tare_dataset_advance,
                                                    .interrupted = &tare_interrupted } };
    struct tare_split_outcome outcome = { 0 };
    struct tare_progress *progress;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(read_options(&split, &options));
    progress = tare_progress_new(&(struct tare_progress_options){
        .label = "counting and copying", .unit = "records", .total = -1, .quiet = options.quiet });
    split.common.progress_arg = progress;
    status = split_files(&outcome, &options, &split);
    tare_progress_free(progress);
    tare_dataset_print_bad_count(bad);
    if (status == TARE_OK) print_parts(&outcome, &options);
done:
    tare_split_outcome_free(&outcome);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_dataset_split_command = {
    .name = "split", .summary = "split records by count or fraction, in order or at random", .run = run, .options = &set
};
