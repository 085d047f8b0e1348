/* tare dataset make: creates RepresentativeDataSample records from arrays, images and tf.Example records. */
#include "base/alloc.h"
#include "base/progress.h"
#include "cli/dataset/dataset.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "datasets/data_file.h"
#include "datasets/make.h"
#include "workflow/data_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CLASSES_SHOWN = 1000 };

struct make_options {
    struct tare_option_list files, inputs;
    struct tare_data_options records;
    const char *output, *labels;
    int64_t limit, max_bad;
    bool quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct make_options, "output", STRING, output), .letter = 'o', .placeholder = "OUT.tfrecord[.gz]",
      .help = "TFRecord file to write; compressed if the name ends in .gz", .flags = TARE_OPTION_REQUIRED },
    { TARE_OPTION(struct make_options, "input", LIST, inputs), .placeholder = "NAME=FILE.npy",
      .help = "array whose rows are the values of input NAME" },
    TARE_OPTION_NESTED_WITHOUT(struct make_options, records, tare_data_rows, TARE_MODEL_DATA_ROWS),
    { TARE_OPTION(struct make_options, "labels", STRING, labels), .placeholder = "FILE",
      .help = "labels of images, one \"PATH LABEL\" per line (default: names of the folders)" },
    { TARE_OPTION(struct make_options, "limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "write only the first N records (default: all)" },
    { TARE_OPTION(struct make_options, "max-bad", INT64, max_bad), .min = 0, .max = 1e15,
      .help = "skip up to N invalid records before failing (default: 0)" },
    { TARE_OPTION(struct make_options, "quiet", FLAG, quiet),
      .help = "suppress progress and summary on standard error" },
    TARE_LOG_OPTIONS(struct make_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct make_options, "FILE", files),
      .help = "TFRecord, NPZ (one array per input), NPY, CSV or image files, image folders, quoted patterns, or - "
              "for standard input",
      .flags = TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = {
    "tare dataset make arrays.npz -o samples.tfrecord",
    "tare dataset make --input image=images.npy --input label=labels.npy -o samples.tfrecord.gz",
    "tare dataset make photos/ --spec images.spec -o samples.tfrecord",
    "tare dataset make 'train-*.tfrecord' --spec examples.spec --limit 500 -o samples.tfrecord",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare dataset make",
    .summary =
        "Writes a TFRecord file of RepresentativeDataSample records, the input format of calibration, from "
        "arrays (row i of each array becomes record i), and with a DatasetSpec that maps features to inputs from "
        "image folders, CSV files and tf.Example records.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* Splits "NAME=FILE"; the parts are stored in `memory`. */
struct named_files {
    struct tare_arena memory;
    const char **names, **paths;
};

static tare_status cut_inputs(struct named_files *out, const struct tare_option_list *inputs) {
    TARE_TRY(tare_input_files_check(inputs));
    out->names = TARE_NEW_ARRAY(&out->memory, const char *, inputs->count + 1);
    out->paths = TARE_NEW_ARRAY(&out->memory, const char *, inputs->count + 1);
    if (!out->names || !out->paths) return TARE_NO_MEMORY;
    for (size_t i = 0; i < inputs->count; i++) {
        const char *text = inputs->items[i];
        out->paths[i] = tare_data_array_file(text);
        out->names[i] = tare_arena_strndup(&out->memory, text, (size_t)(out->paths[i] - text) - 1);
        if (!out->names[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status make_samples(struct tare_make_outcome *outcome, const struct make_options *options,
                                struct tare_progress *progress, int64_t *bad) {
    const struct tare_make_options common = { .limit = options->limit,
                                              .max_bad = options->max_bad,
                                              .on_bad = tare_dataset_print_bad,
                                              .on_bad_arg = bad,
                                              .progress = tare_dataset_advance,
                                              .progress_arg = progress,
                                              .interrupted = &tare_interrupted };
    struct named_files inputs = { 0 };
    tare_status status;
    if (options->inputs.count && options->files.count)
        return TARE_FAIL(TARE_USAGE, "FILE and --input are mutually exclusive");
    if (options->inputs.count && options->max_bad)
        return TARE_FAIL(TARE_USAGE, "--max-bad applies to FILE, not to --input");
    if (options->inputs.count && options->labels)
        return TARE_FAIL(TARE_USAGE, "--labels has no effect with --input (expected images or folders of images)");
    if (options->files.count)
        return tare_dataset_make(outcome, options->output, options->files.items, options->files.count,
                                 options->records.spec, options->labels, &common);
    if (!options->inputs.count) return TARE_FAIL(TARE_USAGE, "missing input (give FILE or --input NAME=FILE.npy)");
    status = cut_inputs(&inputs, &options->inputs);
    if (status == TARE_OK)
        status = tare_dataset_make_arrays(outcome, options->output, inputs.names, inputs.paths, options->inputs.count,
                                          options->records.spec, &common);
    tare_arena_free(&inputs.memory);
    return status;
}

/* Prints the class index assigned to each image folder. */
static void print_classes(const struct make_options *options) {
    for (size_t i = 0; i < options->files.count; i++) {
        struct tare_data_file *file;
        const char *const *classes;
        size_t count;
        if (strcmp(options->files.items[i], "-") == 0) continue;
        if (tare_data_file_open(&file, options->files.items[i], options->labels) != TARE_OK) {
            tare_error_clear(); /* a pattern */
            continue;
        }
        classes = tare_data_file_classes(file, &count);
        for (size_t k = 0; k < count && k < CLASSES_SHOWN; k++)
            fprintf(stderr, "class %zu: %s\n", k, classes[k]);
        tare_data_file_close(file);
    }
}

/* Labelled records serve the evaluation, which must not use the samples of the calibration. */
static void print_next(const struct make_options *options, bool labelled) {
    const struct tare_log log = tare_command_log(false);
    if (strcmp(options->output, "-") == 0) return;
    if (labelled)
        tare_hint(&log, "compare", "MODEL", "--data", "SAMPLES", "--eval", options->output, NULL);
    else
        tare_hint(&log, "calibrate", "MODEL", "--data", options->output, "-o", "MODEL.calib", NULL);
}

static tare_status run(int argc, char *const *argv) {
    const struct tare_log log = tare_command_log(true);
    struct make_options options = { 0 };
    struct tare_make_outcome outcome;
    struct tare_progress *progress;
    int64_t bad = 0;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_data_options_open(&options.records));
    progress = tare_progress_new(
        &(struct tare_progress_options){ .label = "writing", .unit = "records", .total = -1, .quiet = options.quiet });
    status = make_samples(&outcome, &options, progress, &bad);
    tare_progress_free(progress);
    if (options.quiet) tare_dataset_print_bad_count(bad); /* otherwise the summary has it */
    tare_data_options_warn(&log, options.records.spec);
    if (status != TARE_OK || options.quiet) goto done;
    print_classes(&options);
    fprintf(stderr, "%s: %" PRId64 " records", options.output, outcome.records);
    if (outcome.bad) fprintf(stderr, ", %" PRId64 " bad ones left out", outcome.bad);
    fputc('\n', stderr);
    print_next(&options, outcome.labelled);
done:
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_dataset_make_command = {
    .name = "make", .summary = "create records from arrays, images and tf.Example records", .run = run, .options = &set
};
