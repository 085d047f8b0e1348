/* tare calibrate: runs samples and writes what was counted to a calibration file. */
#include "calib/file.h"
#include "cli/calibrating.h"
#include "cli/calibration_warnings.h"
#include "cli/command.h"
#include "cli/data_options.h"
#include "cli/plugins.h"

#include <inttypes.h>
#include <stdio.h>

struct calibrate_options {
    const char *model, *output, *signature;
    struct tare_option_list data;
    struct tare_data_options records;
    int64_t limit;
    bool quiet;
    struct tare_option_list plugins;
};

static const struct tare_option rows[] = {
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct calibrate_options, data), .placeholder = "FILE",
      .help = "representative samples; may be given several times", .flags = TARE_OPTION_REQUIRED },
    TARE_DATA_OPTIONS(struct calibrate_options, records),
    { .name = "output", .letter = 'o', .kind = TARE_OPTION_STRING, .offset = offsetof(struct calibrate_options, output),
      .placeholder = "FILE", .help = "calibration file to write", .flags = TARE_OPTION_REQUIRED },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct calibrate_options, signature),
      .placeholder = "S", .help = "signature that the samples belong to (default serving_default)" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct calibrate_options, limit), .min = 0,
      .max = 1e15, .help = "samples to run (default all)" },
    { .name = "quiet", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct calibrate_options, quiet),
      .help = "no summary on standard error" },
    TARE_PLUGIN_OPTION(struct calibrate_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct calibrate_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare calibrate my_model --data samples.tfrecord.gz -o my_model.calib",
    "tare quantize my_model my_model_int8 --calibration my_model.calib --algorithm percentile", NULL,
};
static const struct tare_option_set set = {
    .program = "tare calibrate",
    .summary = "Runs samples through a model and counts the values of every tensor that quantization asks for. The file "
               "serves every algorithm: changing it does not run the model again.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status run(int argc, char *const *argv) {
    struct calibrate_options options = { 0 };
    struct tare_calibrating_options calibrating;
    struct tare_calibration *calibration = NULL;
    struct tare_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(tare_command_load_prepared(&model, options.model));
    calibrating = (struct tare_calibrating_options){ .signature = options.signature, .data = options.data.items,
                                                     .n_data = options.data.count, .limit = options.limit,
                                                     .spec = options.records.spec, .progress = !options.quiet };
    TARE_CHECK(tare_calibrate_files(&calibration, model, &calibrating));
    TARE_CHECK(tare_calibration_save(calibration, options.output));
    if (!options.quiet)
        fprintf(stderr, "%" PRId64 " records, %zu tensors: %s\n", tare_calibration_records(calibration),
                calibration->n_tensors, options.output);
    status = tare_print_calibration_warnings(calibration);
done:
    tare_calibration_free(calibration);
    tare_model_free(model);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_calibrate = {
    .name = "calibrate", .summary = "count the values of a model's tensors over samples", .run = run, .options = &set
};
