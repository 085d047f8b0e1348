/* tare quantize: quantization alone, without the TPU rewrite. */
#include "cli/command.h"
#include "cli/plugins.h"
#include "cli/quantizing.h"
#include "convert/saved_model.h"

#include <stdio.h>
#include <string.h>

struct quantize_options {
    const char *model, *output, *signature, *calibration, *algorithm;
    struct tare_option_list data;
    int method, weights;
    int64_t limit;
    bool depthwise, overwrite, quiet;
    struct tare_option_list plugins;
};

static const char *const methods[] = { "static", "dynamic", "weight_only", NULL };
static const char *const granularities[] = { "per_channel", "per_tensor", NULL };

static const struct tare_option rows[] = {
    { .name = "method", .kind = TARE_OPTION_CHOICE, .offset = offsetof(struct quantize_options, method),
      .fallback = "static", .choices = methods, .help = "what to quantize, and when" },
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct quantize_options, data), .placeholder = "FILE",
      .help = "representative samples to calibrate with (static)" },
    { .name = "calibration", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, calibration),
      .placeholder = "FILE", .help = "what 'tare calibrate' counted, in place of --data" },
    { .name = "algorithm", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, algorithm),
      .fallback = "min_max", .placeholder = "A",
      .help = "how ranges follow from what was counted: min_max, average_min_max, percentile[:p=99.99], entropy, mse, …" },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, signature),
      .placeholder = "S", .help = "signature that the samples belong to (default serving_default)" },
    { .name = "weights", .kind = TARE_OPTION_CHOICE, .offset = offsetof(struct quantize_options, weights),
      .fallback = "per_channel", .choices = granularities, .help = "one scale an output channel, or one a weight" },
    { .name = "depthwise", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, depthwise),
      .help = "quantize depthwise convolutions, too (a TPU gains nothing by it)" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct quantize_options, limit), .min = 0,
      .max = 1e15, .help = "samples to calibrate with (default all)" },
    { .name = "overwrite", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, overwrite),
      .help = "replace an existing output directory" },
    { .name = "quiet", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, quiet),
      .help = "no report on standard error" },
    TARE_PLUGIN_OPTION(struct quantize_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct quantize_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { .name = "OUT", .offset = offsetof(struct quantize_options, output), .help = "directory to write",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare quantize my_model my_model_int8 --data samples.tfrecord.gz", NULL };
static const struct tare_option_set set = {
    .program = "tare quantize",
    .summary = "Quantizes a SavedModel and writes it as one that still runs on a CPU. Weights become int8 with one scale an "
               "output channel; activations get scales from the samples.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status calibrate(struct tare_calibration **out, const struct tare_model *model,
                             const struct quantize_options *options) {
    if (options->calibration && options->data.count)
        return TARE_FAIL(TARE_USAGE, "--calibration and --data exclude each other");
    if (options->calibration) return tare_calibration_load_for(out, model, options->calibration);
    if (!options->data.count)
        return TARE_FAIL(TARE_USAGE, "--method static needs samples: give --data FILE or --calibration FILE");
    return tare_calibrate_files(out, model, options->signature, options->data.items, options->data.count, options->limit);
}

static tare_status quantize(struct tare_model *model, struct tare_arena *arena, const struct quantize_options *options) {
    struct tare_quantization quantization = {
        .options = { .setting = { .method = tare_quant_method_find(methods[options->method]),
                                  .granularity = options->weights == 0 ? TARE_PER_CHANNEL : TARE_PER_TENSOR },
                     .depthwise = options->depthwise }
    };
    struct tare_calibrated_ranges calibrated = { 0 };
    struct tare_quant_ranges ranges = { 0 };
    struct tare_quant_report report;
    tare_status status;
    TARE_TRY(tare_algorithm_parse(&calibrated.algorithm, options->algorithm));
    if (quantization.options.setting.method->needs_ranges) {
        TARE_TRY(calibrate(&calibrated.calibration, model, options));
        ranges = tare_ranges_of(&calibrated);
    }
    status = tare_pipeline_quantize(&report, arena, model, &quantization, &ranges);
    if (status == TARE_OK && !options->quiet) tare_print_quant_report(&report);
    tare_calibration_free(calibrated.calibration);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct quantize_options options;
    struct tare_export_options export = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_command_load_prepared(&model, options.model));
    TARE_CHECK(quantize(model, &arena, &options));
    export.overwrite = options.overwrite;
    status = tare_saved_model_export(model, options.output, &export);
done:
    tare_model_free(model);
    tare_arena_free(&arena);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_quantize = {
    .name = "quantize", .summary = "quantize a SavedModel, without the TPU rewrite", .run = run, .options = &set
};
