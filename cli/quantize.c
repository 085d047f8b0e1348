/* tare quantize: quantization alone, without the TPU rewrite. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/data_options.h"
#include "cli/plugins.h"
#include "cli/quantizing.h"
#include "convert/saved_model.h"
#include "eval/comparison.h"
#include "quant/recipe.h"

#include <stdio.h>
#include <string.h>

struct quantize_options {
    const char *model, *output, *method, *granularity, *recipe, *signature, *calibration, *algorithm, *passes;
    struct tare_option_list data;
    struct tare_data_options records;
    struct tare_option_list plugins;
    int bits, op_set;
    int64_t limit, min_elements;
    bool depthwise, two_inputs, integer_adds, symmetric, full_range, keep_variables, overwrite, dry_run, quiet;
};

static const char *const op_sets[] = { "xla", "uniform_quantized", NULL }; /* in the order of tare_quant_op_set */

static const struct tare_option rows[] = {
    { .name = "method", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, method),
      .fallback = "static", .placeholder = "M",
      .help = "static (int8 weights and activations), dynamic (activations while the model runs) or weight_only; float: only "
              "what the recipe says" },
    { .name = "bits", .kind = TARE_OPTION_INT, .offset = offsetof(struct quantize_options, bits), .fallback = "8", .min = 4,
      .max = 8, .help = "of weights, 8 or 4; 4 are packed two to a byte" },
    { .name = "granularity", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, granularity),
      .fallback = "per_channel", .placeholder = "G",
      .help = "what shares a scale of weights: per_tensor, per_channel, or per_block:N (32, 64, 128 or 256 input rows; "
              "weight_only)" },
    { .name = "full_range", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, full_range),
      .help = "weights may use -128 (-8 of 4 bits), not only -127 … 127" },
    { .name = "algorithm", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, algorithm),
      .fallback = "min_max", .placeholder = "A",
      .help = "how ranges follow from what was counted: min_max, average_min_max, percentile[:p=99.99], entropy, mse, …" },
    { .name = "passes", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, passes),
      .placeholder = "P,…", .help = "accuracy passes: equalization, weight_clipping, bias_correction" },
    { .name = "op_set", .kind = TARE_OPTION_CHOICE, .offset = offsetof(struct quantize_options, op_set), .fallback = "xla",
      .choices = op_sets, .help = "ops of the quantized graph: XlaConvV2 and XlaDotV2, or the UniformQuantized ones" },
    { .name = "symmetric", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, symmetric),
      .help = "ranges of activations reach as far below zero as above it" },
    { .name = "depthwise", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, depthwise),
      .help = "quantize depthwise convolutions, too (a TPU gains nothing by it)" },
    { .name = "two_inputs", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, two_inputs),
      .help = "quantize products of two activations, as in attention (static)" },
    { .name = "integer_adds", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, integer_adds),
      .help = "residual sums between static layers are sums of int8, with the scale of the sum" },
    { .name = "min_elements", .kind = TARE_OPTION_INT64, .offset = offsetof(struct quantize_options, min_elements), .min = 0,
      .max = 1e15, .help = "smallest weight to quantize (default: 1024 for weight_only, dynamic and tables, else all)" },
    { .name = "recipe", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, recipe),
      .placeholder = "FILE", .help = "rules for single layers, a line each: op=MatMul name=.*dense.* -> weight_only bits=4" },
    { .name = "keep_variables", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, keep_variables),
      .help = "weights stay variables of the checkpoint (large models keep them of themselves)" },
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct quantize_options, data), .placeholder = "FILE",
      .help = "representative samples to calibrate with (static)" },
    TARE_DATA_OPTIONS(struct quantize_options, records),
    { .name = "calibration", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, calibration),
      .placeholder = "FILE", .help = "what 'tare calibrate' counted, in place of --data" },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct quantize_options, signature),
      .placeholder = "S", .help = "signature that the samples belong to (default serving_default)" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct quantize_options, limit), .min = 0,
      .max = 1e15, .help = "samples to calibrate with (default all)" },
    { .name = "dry-run", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct quantize_options, dry_run),
      .help = "quantize, say what would be written, and write nothing" },
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
static const char *const examples[] = {
    "tare quantize my_model my_model_int8 --data samples.tfrecord.gz",
    "tare quantize my_model my_model_int4 --method weight_only --bits 4 --granularity per_block:64",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare quantize",
    .summary = "Quantizes a SavedModel and writes it as one that still runs on a CPU. Weights become int8 with one scale an "
               "output channel; activations get scales from the samples. A recipe says otherwise of single layers.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status calibrate(struct tare_calibration **out, const struct tare_model *model,
                             const struct quantize_options *options, const struct tare_quant_pass *const *passes) {
    if (options->calibration && options->data.count)
        return TARE_FAIL(TARE_USAGE, "--calibration and --data exclude each other");
    if (options->calibration) return tare_calibration_load_for(out, model, options->calibration);
    if (!options->data.count)
        return TARE_FAIL(TARE_USAGE, "--method static needs samples: give --data FILE or --calibration FILE");
    const struct tare_calibrating_options calibrating = { .signature = options->signature, .data = options->data.items,
                                                          .n_data = options->data.count, .limit = options->limit,
                                                          .spec = options->records.spec, .progress = !options->quiet,
                                                          .channels = tare_quant_passes_need_channels(passes) };
    return tare_calibrate_files(out, model, &calibrating);
}

/* ---- what is wanted ---- */

static tare_status find_method(const struct tare_quant_method **out, const char *name) {
    const char *known[16] = { "float" };
    const char *nearest;
    *out = tare_quant_method_find(name);
    if (*out || strcmp(name, "float") == 0) return TARE_OK;
    for (size_t i = 0; tare_quant_methods[i] && i < 14; i++) known[i + 1] = tare_quant_methods[i]->name;
    nearest = tare_nearest_name(name, known);
    return TARE_FAIL(TARE_USAGE, "--method: there is no '%s' (%s%s)", name, nearest ? "did you mean " : "known: static, dynamic, weight_only, float",
                     nearest ? nearest : "");
}

static tare_status read_recipe(struct tare_quant_recipe **out, struct tare_arena *arena, const char *path) {
    char *data = NULL;
    size_t size = 0;
    tare_status status;
    TARE_TRY(tare_file_read(&data, &size, path));
    status = tare_quant_recipe_new(out, arena);
    if (status == TARE_OK) status = tare_quant_recipe_read(*out, data, size, path);
    tare_free(data);
    return status;
}

static tare_status read_options(struct tare_quant_options *out, struct tare_arena *arena,
                                const struct quantize_options *options) {
    struct tare_quant_recipe *recipe = NULL;
    unsigned sets = 0;
    *out = (struct tare_quant_options){
        .setting = { .bits = options->bits, .symmetric = options->symmetric, .full_range = options->full_range },
        .op_set = (enum tare_quant_op_set)options->op_set,
        .depthwise = options->depthwise,
        .two_inputs = options->two_inputs,
        .integer_adds = options->integer_adds,
        .min_elements = options->min_elements,
    };
    TARE_TRY(find_method(&out->setting.method, options->method));
    TARE_TRY(tare_quant_setting_read(&out->setting, &sets, "granularity", options->granularity));
    if (options->bits != 8 && options->bits != 4)
        return TARE_FAIL(TARE_USAGE, "--bits %d (wanted 8 or 4)", options->bits);
    TARE_TRY(tare_quant_check_setting(&out->setting));
    if (options->recipe) TARE_TRY(read_recipe(&recipe, arena, options->recipe));
    out->recipe = recipe;
    if (options->passes) TARE_TRY(tare_error_prefix(tare_quant_passes_parse(&out->passes, arena, options->passes), "--passes"));
    return TARE_OK;
}

static tare_status quantize(struct tare_model *model, struct tare_arena *arena, const struct quantize_options *options,
                            const struct tare_quantization *quantization) {
    struct tare_calibrated_ranges calibrated = { 0 };
    struct tare_quant_ranges ranges = { 0 };
    struct tare_quant_report report;
    tare_status status;
    TARE_TRY(tare_algorithm_parse(&calibrated.algorithm, options->algorithm));
    calibrated.symmetric = quantization->options.setting.symmetric;
    if (tare_quant_needs_ranges(&quantization->options) || tare_quant_passes_need_channels(quantization->options.passes)) {
        TARE_TRY(calibrate(&calibrated.calibration, model, options, quantization->options.passes));
        ranges = tare_ranges_of(&calibrated);
    }
    status = tare_calibration_check_passes(calibrated.calibration, quantization->options.passes);
    if (status == TARE_OK) status = tare_pipeline_quantize(&report, arena, model, quantization, &ranges);
    for (size_t i = 0; status == TARE_OK && i < report.n_unused_rules; i++)
        fprintf(stderr, "tare: warning: %s: the rule matches no layer\n", report.unused_rules[i]);
    if (status == TARE_OK && !options->quiet) tare_print_quant_report(&report);
    tare_calibration_free(calibrated.calibration);
    return status;
}

/* Sizes of the weights before and after. */
static void print_plan(const struct quantize_options *options, int64_t float_bytes, const struct tare_model *model) {
    const int64_t bytes = tare_model_weight_bytes(model);
    printf("would write %s: weights %.3f MB, %.1f%% of the float model's %.3f MB\n", options->output, (double)bytes / 1e6,
           float_bytes ? 100 * (double)bytes / (double)float_bytes : 100, (double)float_bytes / 1e6);
}

static tare_status run(int argc, char *const *argv) {
    struct quantize_options options = { 0 };
    struct tare_quantization quantization = { 0 };
    struct tare_export_options export = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_model *model = NULL;
    int64_t float_bytes;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(read_options(&quantization.options, &arena, &options));
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(tare_command_load(&model, options.model));
    model->keep_variables_from = options.keep_variables ? 1 : 0;
    TARE_CHECK(tare_error_prefix(tare_pipeline_prepare(model, NULL), "%s", options.model));
    float_bytes = tare_model_weight_bytes(model);
    TARE_CHECK(quantize(model, &arena, &options, &quantization));
    if (options.dry_run) {
        print_plan(&options, float_bytes, model);
        goto done;
    }
    export.overwrite = options.overwrite;
    status = tare_saved_model_export(model, options.output, &export);
done:
    tare_model_free(model);
    tare_arena_free(&arena);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_quantize = {
    .name = "quantize", .summary = "quantize a SavedModel, without the TPU rewrite", .run = run, .options = &set
};
