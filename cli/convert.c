/* tare convert: the complete pipeline, with the flags and the options message of the Cloud TPU inference converter. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "quant/fake_quant.h"
#include "cli/dry_run.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "cli/quant_report.h"
#include "convert/origin.h"
#include "convert/saved_model.h"
#include "convert/stablehlo/emit/export.h"
#include "convert/stablehlo/keep.h"
#include "workflow/check/report.h"
#include "workflow/convert.h"
#include "workflow/convert_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct convert_options {
    const char *model, *out; /* positional: the same as input and output */
    const char *input, *output, *text, *file, *report, *tags;
    struct tare_quantize_request how;
    const char *float_model;
    int functions, bfloat16, module; /* module: one more than the container; 0: a SavedModel as usual */
    bool keep_module, check, dry_run, allow_incompatible, allow_dependent_rows, allow_missing, bfloat16_outputs,
        overwrite, json, quiet;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

enum { CHECKED_OPS = 5 }; /* that --check lists */
enum { FUNCTIONS_DEFAULT, FUNCTIONS_NAMED, FUNCTIONS_AUTO };
static const char *const function_choices[] = { "default", "named", "auto", NULL };
static const char *const bfloat16_choices[] = { "checked", "analysis", "all", NULL }; /* enum tare_bf16_extent */

static const char *const module_choices[] = { "no", "mlirbc", "jax", "saved_model", NULL }; /* as of tare export */

static const struct tare_option rows[] = {
    { TARE_OPTION(struct convert_options, "input_model_dir", STRING, input), .placeholder = "DIR",
      .help = "SavedModel to convert; the same as MODEL" },
    { TARE_OPTION(struct convert_options, "output_model_dir", STRING, output), .placeholder = "DIR",
      .help = "output directory; the same as OUT (required unless --dry-run)" },
    { TARE_OPTION(struct convert_options, "float", STRING, float_model), .placeholder = "DIR",
      .help = "float model that a quantized MODEL was made from, for the command that compares them" },
    { TARE_OPTION(struct convert_options, "converter_options_string", STRING, text), .placeholder = "TEXT",
      .help = "ConverterOptions in protobuf text format" },
    { TARE_OPTION(struct convert_options, "converter_options_file", STRING, file), .placeholder = "FILE",
      .help = "read ConverterOptions in protobuf text format from FILE" },
    { TARE_OPTION(struct convert_options, "tpu_functions", CHOICE, functions), .choices = function_choices,
      .fallback = "default",
      .help = "functions to place on the TPU: those named in the options, or auto to find them and to keep unsupported "
              "parts on the CPU; default: auto if no options are given, or they name no function and the model has no "
              "aliases" },
    { TARE_OPTION(struct convert_options, "report", STRING, report), .placeholder = "FILE.json",
      .help = "also write the Conversion Report as JSON" },
    TARE_OPTION_NESTED(struct convert_options, how, tare_quantize_rows),
    { TARE_OPTION(struct convert_options, "tags", STRING, tags), .placeholder = "TAG,…",
      .fallback_text = "serve,tpu, which servers with TPUs look for; those of MODEL if nothing is placed on the TPU",
      .help = "tags of the converted model" },
    { TARE_OPTION(struct convert_options, "keep-module", FLAG, keep_module),
      .help = "keep StableHLO modules (XlaCallModule ops) unchanged inside the TPU functions instead of replacing them "
              "by TensorFlow ops; not with quantization or sharding, and without bfloat16" },
    { TARE_OPTION(struct convert_options, "stablehlo", CHOICE, module), .choices = module_choices, .fallback = "no",
      .help = "write the converted model as a StableHLO module for --batch examples, as tare export --container does" },
    { TARE_OPTION(struct convert_options, "check", FLAG, check),
      .help = "compile the converted model as tare check does, for the chip of --for (default: v5e) and --batch, and "
              "write nothing if the compiler rejects it" },
    { TARE_OPTION(struct convert_options, "dry-run", FLAG, dry_run),
      .help = "run all checks and print the reports, but do not write the model" },
    { TARE_OPTION(struct convert_options, "allow-incompatible", FLAG, allow_incompatible),
      .help = "convert functions that the TPU compiler rejects, with a warning for each reason" },
    { TARE_OPTION(struct convert_options, "allow-dependent-rows", FLAG, allow_dependent_rows),
      .help = "batch functions whose results for a request depend on the requests that are batched with it, with a "
              "warning" },
    { TARE_OPTION(struct convert_options, "bfloat16", CHOICE, bfloat16), .choices = bfloat16_choices,
      .fallback = "checked",
      .help = "values to round: those that the analysis finds safe, checked with the representative data if there are "
              "any; the same without a check; or all but integers, ranks and final probabilities" },
    { TARE_OPTION(struct convert_options, "bfloat16-outputs", FLAG, bfloat16_outputs),
      .help = "also round final probabilities and their logits to bfloat16 (default: float32)" },
    { TARE_OPTION(struct convert_options, "overwrite", FLAG, overwrite),
      .help = "replace an existing output directory" },
    { TARE_OPTION(struct convert_options, "quiet", FLAG, quiet),
      .help = "suppress progress and the quantization report on standard error" },
    TARE_MISSING_VARIABLES_OPTION(struct convert_options),
    { TARE_OPTION(struct convert_options, "json", FLAG, json), .help = "print the Conversion Report as JSON" },
    TARE_PLUGIN_OPTION(struct convert_options),
    TARE_LOG_OPTIONS(struct convert_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct convert_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module" },
    { TARE_ARGUMENT(struct convert_options, "OUT", out), .help = "output directory" },
    { 0 },
};
static const char *const examples[] = {
    "tare convert my_model my_tpu_model",
    "tare convert my_model my_tpu_model --data samples.tfrecord.gz --method int8",
    "tare convert --input_model_dir=my_model --output_model_dir=my_tpu_model --converter_options_string='tpu_functions "
    "{ function_alias: \"tpu_func\" }'",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare convert",
    .summary = "Converts a TensorFlow 2 SavedModel for Cloud TPU inference: quantizes it if requested, places the "
               "selected functions on the TPU, and prints the Conversion Report.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* Options of a quantization request it without quantization_options, which override them. */
static tare_status parse_options(struct tare_converter_options *out, struct tare_arena *arena,
                                 const struct convert_options *options, const char *text, size_t size) {
    const struct tare_quant_plan *plan = &options->how.plan;
    TARE_TRY(tare_converter_options_parse(out, arena, text, size, plan));
    out->keeps_variables |= plan->keep_variables || options->keep_module;
    if (!tare_workflow_quantize_requested(&options->how)) return TARE_OK;
    return tare_converter_options_quantize(out, arena, plan);
}

static tare_status read_options(struct tare_converter_options *out, struct tare_arena *arena,
                                const struct convert_options *options) {
    char *data = NULL;
    size_t size = 0;
    tare_status status;
    if (options->text && options->file)
        return TARE_FAIL(TARE_USAGE, "--converter_options_string and --converter_options_file are mutually exclusive");
    if (!options->file) {
        const char *text = options->text ? options->text : "";
        return parse_options(out, arena, options, text, strlen(text));
    }
    TARE_TRY(tare_file_read(&data, &size, options->file));
    status = parse_options(out, arena, options, data, size);
    tare_free(data);
    return tare_error_prefix(status, "%s", options->file);
}

/* MODEL and OUT are the same as --input_model_dir and --output_model_dir. */
static tare_status join_arguments(struct convert_options *options) {
    if ((options->model && options->input) || (options->out && options->output))
        return TARE_FAIL(TARE_USAGE, "MODEL OUT and --input_model_dir, --output_model_dir are mutually exclusive");
    if (options->model) options->input = options->model;
    if (options->out) options->output = options->out;
    if (!options->input) return TARE_FAIL(TARE_USAGE, "missing option '--input_model_dir' (or argument MODEL)");
    if (!options->output && !options->dry_run)
        return TARE_FAIL(TARE_USAGE, "--output_model_dir is missing (or give OUT, or --dry-run)");
    return TARE_OK;
}

/* On the standard output, unless JSON is printed there, and line by line in the log file. */
static void print_report(const struct tare_conversion *conversion, bool json) {
    struct tare_strbuf text = { 0 };
    char *next = NULL;
    tare_cost_report_print(&text, &conversion->cost);
    if (!json) tare_strbuf_print(&text, stdout);
    for (char *line = text.size ? strtok_r(text.data, "\n", &next) : NULL; line; line = strtok_r(NULL, "\n", &next))
        tare_command_log_to_file(TARE_LOG_NOTE, line);
    tare_strbuf_free(&text);
}

/* Steps of the progress display: loading, the steps of workflow/convert.h, writing. */
enum { STEPS = TARE_WORKFLOW_CONVERT_STEPS + 2 };

static void advance(void *progress) {
    tare_progress_advance(progress, 1);
}

static tare_status write_report(const char *path, const struct tare_converted *converted,
                                const struct tare_converter_options *converter) {
    char *text;
    tare_status status;
    TARE_TRY(tare_convert_report_json(&text, &converted->conversion, converter, converted->prepared,
                                      &converted->checked, tare_command_warnings()));
    status = tare_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* A model that was quantized before is not what to compare with. */
static void print_written(const struct tare_log *log, const struct convert_options *options, bool is_float) {
    char *origin = NULL;
    const bool known = is_float || tare_origin_of(&origin, options->input) == TARE_OK;
    const char *reference = options->float_model ? options->float_model
                            : is_float           ? options->input
                            : origin             ? origin
                                                 : "FLOAT_MODEL";
    tare_note(log, "wrote %s", options->output);
    if (!options->module && known)
        tare_hint(log, "compare", reference, "--with", options->output, "--eval", "EVAL.tfrecord", NULL);
    tare_free(origin);
}

/* On standard error: what was found by measuring, also after a failure, and the result for each op. */
static void print_quantized(const struct tare_converted *converted) {
    struct tare_strbuf text = { 0 };
    tare_workflow_quantize_tables(&text, &converted->quantized);
    tare_strbuf_print(&text, stderr);
    tare_strbuf_free(&text);
    if (converted->was_quantized) tare_print_quant_report(&converted->quantized.report, &converted->quantized.layers);
}

/* Says what the model costs on the chip; a model that the compiler rejects is not written. */
static tare_status check_costs(struct tare_graph_model *model, const struct convert_options *options) {
    struct tare_check_request request;
    struct tare_check check = { 0 };
    struct tare_strbuf text = { 0 };
    tare_status status;
    TARE_TRY(tare_options_defaults(&request, tare_check_rows));
    if (options->how.chip) request.chip = options->how.chip - 1;
    request.batch = options->how.batch;
    request.signature = options->how.signature;
    status = tare_workflow_check(&check, model, &request, NULL);
    if (status == TARE_OK) status = tare_check_refuse(&check, options->input);
    if (status == TARE_OK) tare_check_put(&text, &check, options->input, &request, CHECKED_OPS);
    tare_strbuf_print(&text, options->json ? stderr : stdout);
    tare_strbuf_free(&text);
    tare_check_free(&check);
    return status;
}

static tare_status write_model(struct tare_graph_model *model, const struct convert_options *options,
                               const struct tare_converted *converted) {
    const struct tare_export_options export = { .overwrite = options->overwrite };
    const struct tare_shlo_export_options module = { .signature = options->how.signature,
                                                     .batch = options->how.batch,
                                                     .vhlo_version = TARE_SHLO_EXPORT_VERSION,
                                                     .container = (enum tare_shlo_container)(options->module - 1) };
    const struct tare_log log = tare_command_log(true);
    struct tare_shlo_exported_summary summary;
    if (options->dry_run) return TARE_OK;
    if (options->module) return tare_shlo_export_model(&summary, model, options->output, &module);
    TARE_TRY(tare_saved_model_export(model, options->output, &export));
    return tare_command_warn_of_written(options->output, options->input, model, converted->was_quantized, &log);
}

static tare_status print_reports(const struct tare_converted *converted, const struct tare_converter_options *converter,
                                 const struct convert_options *options) {
    print_report(&converted->conversion, options->json);
    if (options->json) TARE_TRY(write_report("-", converted, converter));
    return options->report ? write_report(options->report, converted, converter) : TARE_OK;
}

static tare_status convert(struct tare_graph_model *model, struct tare_arena *arena,
                           const struct tare_converter_options *converter, const struct convert_options *options,
                           struct tare_progress *progress) {
    const struct tare_log log = tare_command_log(options->quiet);
    const struct tare_convert_options converting = { .converter = converter,
                                                     .quantize = { .request = &options->how,
                                                                   .path = options->input,
                                                                   .ops = tare_command_registry(),
                                                                   .log = &log,
                                                                   .quiet = options->quiet,
                                                                   .without_layers = options->quiet,
                                                                   .interrupted = &tare_interrupted },
                                                     .step = advance,
                                                     .step_arg = progress };
    const bool is_float = !tare_quant_has_integer_weights(model);
    struct tare_converted converted = { 0 };
    tare_status status = tare_workflow_convert_run(&converted, arena, model, &converting);
    if (!options->quiet) print_quantized(&converted);
    tare_workflow_convert_log(&log, &converted, converter, status);
    if (status == TARE_OK && options->check) status = check_costs(model, options);
    if (status == TARE_OK) status = write_model(model, options, &converted);
    tare_progress_advance(progress, 1);
    if (status == TARE_OK) status = print_reports(&converted, converter, options);
    if (status == TARE_OK && options->dry_run && !options->quiet) tare_dry_run_took();
    if (status == TARE_OK && !options->dry_run) print_written(&log, options, is_float);
    tare_workflow_quantized_free(&converted.quantized);
    return status;
}

static tare_status check_usage(const struct convert_options *options, const struct tare_converter_options *converter) {
    if (converter->automatic && converter->n_functions)
        return TARE_FAIL(TARE_USAGE, "--tpu_functions auto and tpu_functions in the options are mutually exclusive");
    if (options->keep_module) TARE_TRY(tare_shlo_check_keeping(converter));
    const struct tare_quantize_request *how = &options->how;
    if ((how->calibration || how->data.count) && converter->quantization.n_datasets)
        return TARE_FAIL(TARE_USAGE, "--%s and representative_datasets are mutually exclusive",
                         how->calibration ? "calibration" : "data");
    if (converter->has_quantization && !converter->quantization.n_datasets)
        TARE_TRY(tare_workflow_quantize_check_samples(how, &converter->quantization.plan));
    const bool is_file = options->module && options->module - 1 != TARE_SHLO_SAVED_MODEL;
    if (options->dry_run) return TARE_OK;
    return is_file ? tare_command_check_file_output(options->output)
                   : tare_command_check_model_output(options->output, options->input, options->overwrite);
}

/* Finds functions automatically if none are named, unless the model has aliases that the given options could have
 * named. */
static tare_status choose_functions(struct tare_converter_options *converter, const struct convert_options *options,
                                    struct tare_arena *arena, struct tare_graph_model *model) {
    const struct tare_log log = tare_command_log(options->quiet);
    if (options->functions != FUNCTIONS_DEFAULT) return TARE_OK;
    if ((options->text || options->file) && model->n_aliases) return TARE_OK;
    TARE_TRY(tare_workflow_convert_find_functions(converter, arena, model));
    if (converter->automatic)
        tare_note(&log, "no tpu_functions are named: finding them automatically (--tpu_functions auto)");
    return TARE_OK;
}

/* Loads the MetaGraph with the tags of quantization_options if they are given, otherwise the default one. */
static tare_status load(struct tare_graph_model **out, const struct convert_options *options,
                        const struct tare_converter_options *converter) {
    const struct tare_quantization *quantization = &converter->quantization;
    const struct tare_saved_model_options loading = { .ops = tare_command_registry(),
                                                      .tags = quantization->tags,
                                                      .n_tags = quantization->n_tags };
    struct tare_strbuf tags = { 0 };
    tare_status status;
    if (!converter->has_quantization || !quantization->n_tags) return tare_command_load(out, options->input);
    status = tare_saved_model_load(out, options->input, &loading);
    for (size_t i = 0; i < quantization->n_tags; i++)
        tare_strbuf_printf(&tags, "%s'%s'", i ? ", " : "", quantization->tags[i]);
    if (status == TARE_NOT_FOUND)
        status = tare_error_prefix(status, "Failed to retrieve MetaGraphDef with tags {%s} from a SavedModel in %s.",
                                   tare_strbuf_text(&tags), options->input);
    tare_strbuf_free(&tags);
    return status;
}

/* The model with its StableHLO modules, which bfloat16 would not reach. */
static tare_status load_keeping(struct tare_graph_model **out, const struct convert_options *options,
                                struct tare_converter_options *converter) {
    const struct tare_saved_model_options keeping = { .ops = tare_command_registry(), .keep_modules = true };
    const struct tare_log log = tare_command_log(options->quiet);
    TARE_TRY(tare_saved_model_load(out, options->input, &keeping));
    TARE_TRY(tare_shlo_check_kept(*out));
    if (converter->bfloat16) tare_note(&log, "the computation stays float32: --keep-module keeps modules as they are");
    converter->bfloat16 = false;
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct convert_options options = { 0 };
    struct tare_converter_options converter;
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = NULL;
    struct tare_progress *progress = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(join_arguments(&options));
    TARE_CHECK(tare_workflow_quantize_open(&options.how, &arena));
    TARE_CHECK(read_options(&converter, &arena, &options));
    converter.tags = options.tags;
    converter.allow_incompatible |= options.allow_incompatible;
    converter.allows_dependent_rows = options.allow_dependent_rows;
    converter.rounds_outputs = options.bfloat16_outputs;
    converter.extent = (enum tare_bf16_extent)options.bfloat16;
    converter.automatic = options.functions == FUNCTIONS_AUTO;
    TARE_CHECK(check_usage(&options, &converter));
    progress = tare_progress_new(&(struct tare_progress_options){
        .label = "converting", .unit = "steps", .total = STEPS, .quiet = options.quiet });
    TARE_CHECK(options.keep_module ? load_keeping(&model, &options, &converter) : load(&model, &options, &converter));
    TARE_CHECK(tare_command_check_values(model, options.allow_missing));
    TARE_CHECK(choose_functions(&converter, &options, &arena, model));
    tare_progress_advance(progress, 1);
    status = convert(model, &arena, &converter, &options, progress);
done:
    tare_progress_free(progress);
    tare_model_free(model);
    tare_workflow_quantize_close(&options.how);
    tare_arena_free(&arena);
    tare_options_free(&options, &set);
    return status;
}

static tare_status needs(struct tare_quantize_needs *out, int argc, char *const *argv) {
    struct convert_options options = { 0 };
    struct tare_converter_options converter;
    struct tare_option_outcome outcome;
    struct tare_arena arena = { 0 };
    tare_status status;
    TARE_CHECK(tare_options_parse(&options, &outcome, &set, argc, argv));
    TARE_CHECK(tare_workflow_quantize_open(&options.how, &arena));
    TARE_CHECK(read_options(&converter, &arena, &options));
    if (converter.has_quantization) *out = tare_workflow_quantize_needs(&options.how, &converter.quantization.plan);
done:
    tare_workflow_quantize_close(&options.how);
    tare_arena_free(&arena);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_convert = { .name = "convert",
                                                   .summary = "convert a SavedModel for Cloud TPU inference",
                                                   .run = run,
                                                   .needs = needs,
                                                   .options = &set };
