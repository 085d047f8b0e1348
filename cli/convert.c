/* tare convert: the whole pipeline, with the flags and the options message of the Cloud TPU inference converter. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/convert_report.h"
#include "cli/plugins.h"
#include "cli/quantizing.h"
#include "convert/saved_model.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

struct convert_options {
    const char *input, *output, *text, *file, *report, *calibration;
    bool dry_run, allow_incompatible, overwrite, quiet;
    struct tare_option_list plugins;
};

static const struct tare_option rows[] = {
    { .name = "input_model_dir", .kind = TARE_OPTION_STRING, .offset = offsetof(struct convert_options, input),
      .placeholder = "DIR", .help = "SavedModel to convert", .flags = TARE_OPTION_REQUIRED },
    { .name = "output_model_dir", .kind = TARE_OPTION_STRING, .offset = offsetof(struct convert_options, output),
      .placeholder = "DIR", .help = "directory to write (needed unless --dry-run)" },
    { .name = "converter_options_string", .kind = TARE_OPTION_STRING, .offset = offsetof(struct convert_options, text),
      .placeholder = "TEXT", .help = "ConverterOptions in text format" },
    { .name = "converter_options_file", .kind = TARE_OPTION_STRING, .offset = offsetof(struct convert_options, file),
      .placeholder = "FILE", .help = "the same from a file" },
    { .name = "report", .kind = TARE_OPTION_STRING, .offset = offsetof(struct convert_options, report),
      .placeholder = "FILE.json", .help = "write the Conversion Report as JSON, too" },
    { .name = "calibration", .kind = TARE_OPTION_STRING, .offset = offsetof(struct convert_options, calibration),
      .placeholder = "FILE.calib", .help = "quantize with these statistics instead of representative_datasets" },
    { .name = "dry-run", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct convert_options, dry_run),
      .help = "do everything but write the model: checks and reports" },
    { .name = "allow_incompatible", .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct convert_options, allow_incompatible),
      .help = "convert functions that a TPU would refuse, with a warning for each reason" },
    { .name = "overwrite", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct convert_options, overwrite),
      .help = "replace an existing output directory" },
    { .name = "quiet", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct convert_options, quiet),
      .help = "no quantization report on standard error" },
    TARE_PLUGIN_OPTION(struct convert_options),
    { 0 },
};
static const char *const examples[] = {
    "tare convert --input_model_dir=my_model --output_model_dir=my_tpu_model --converter_options_string='tpu_functions { "
    "function_alias: \"tpu_func\" }'",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare convert",
    .summary = "Converts a TensorFlow 2 SavedModel for Cloud TPU inference: quantizes it when the options ask for it, puts "
               "the chosen functions on the TPU, and prints the Conversion Report.",
    .options = rows,
    .examples = examples,
};

static tare_status read_options(struct tare_converter_options *out, struct tare_arena *arena,
                                const struct convert_options *options) {
    char *data = NULL;
    size_t size = 0;
    tare_status status;
    if (options->text && options->file)
        return TARE_FAIL(TARE_USAGE, "give --converter_options_string or --converter_options_file, not both");
    if (!options->file)
        return tare_converter_options_parse(out, arena, options->text ? options->text : "",
                                            options->text ? strlen(options->text) : 0);
    TARE_TRY(tare_file_read(&data, &size, options->file));
    status = tare_converter_options_parse(out, arena, data, size);
    tare_free(data);
    return tare_error_prefix(status, "%s", options->file);
}

/* A path as the options have it: their text stands between single quotes in the shell, so that "${FILE}" comes through. */
static tare_status expand(struct tare_strbuf *out, const char *path) {
    while (*path) {
        const char *end = path[0] == '$' && path[1] == '{' ? strchr(path, '}') : NULL;
        const char *value;
        char name[128];
        if (!end || (size_t)(end - path) >= sizeof name) {
            tare_strbuf_printf(out, "%c", *path++);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(end - path - 2), path + 2);
        value = getenv(name);
        if (!value)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "tfrecord_file_path: the environment has no variable %s", name);
        tare_strbuf_puts(out, value);
        path = end + 1;
    }
    return TARE_OK;
}

static tare_status calibrate_dataset(struct tare_calibration **out, const struct tare_model *model,
                                     const struct tare_dataset_file *dataset) {
    struct tare_strbuf path = { 0 };
    const char *text;
    tare_status status = expand(&path, dataset->path);
    text = tare_strbuf_text(&path);
    if (status == TARE_OK)
        status = tare_calibrate_files(out, model, &(struct tare_calibrating_options){
                                                      .signature = dataset->signature, .data = &text, .n_data = 1 });
    tare_strbuf_free(&path);
    return status;
}

/* Every signature with samples is calibrated; what they count is added up. */
static tare_status calibrate(struct tare_calibration **out, const struct tare_model *model,
                             const struct tare_quantization *quantization, const char *file) {
    if (file) return tare_calibration_load_for(out, model, file);
    if (!quantization->n_datasets)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "When `representative_dataset` is not provided, the model should be trained with "
                         "quantization-aware training (QAT). (representative_datasets has no entry for '%s')",
                         quantization->signatures[0]);
    for (size_t i = 0; i < quantization->n_datasets; i++) {
        struct tare_calibration *calibration;
        tare_status status;
        TARE_TRY(calibrate_dataset(&calibration, model, &quantization->datasets[i]));
        if (!*out) {
            *out = calibration;
            continue;
        }
        status = tare_calibration_merge(*out, calibration);
        tare_calibration_free(calibration);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status quantize(struct tare_model *model, struct tare_arena *arena,
                            const struct tare_quantization *quantization, const struct convert_options *options) {
    struct tare_calibrated_ranges calibrated = { 0 };
    struct tare_quant_ranges ranges = { 0 };
    struct tare_quant_report report;
    tare_status status;
    if (quantization->warning) fprintf(stderr, "warning: %s\n", quantization->warning);
    TARE_TRY(tare_algorithm_parse(&calibrated.algorithm, quantization->algorithm));
    calibrated.symmetric = quantization->options.setting.symmetric;
    if (tare_quant_needs_ranges(&quantization->options)) {
        TARE_CHECK(calibrate(&calibrated.calibration, model, quantization, options->calibration));
        ranges = tare_ranges_of(&calibrated);
    }
    TARE_CHECK(tare_pipeline_quantize(&report, arena, model, quantization, &ranges));
    for (size_t i = 0; i < report.n_unused_rules; i++)
        fprintf(stderr, "warning: %s: the rule matches no layer\n", report.unused_rules[i]);
    if (!options->quiet) tare_print_quant_report(&report);
done:
    tare_calibration_free(calibrated.calibration);
    return status;
}

/* What is the only reason of a failure stands in its text. */
static void print_findings(const struct tare_conversion *conversion, tare_status status) {
    size_t errors = 0;
    for (size_t i = 0; i < conversion->n_findings; i++) errors += tare_tpu_finding_is_error(conversion->findings[i].kind);
    if (status != TARE_OK && errors < 2) return;
    for (size_t i = 0; i < conversion->n_findings; i++) {
        bool error = status != TARE_OK && tare_tpu_finding_is_error(conversion->findings[i].kind);
        fprintf(stderr, "%s: %s\n", error ? "error" : "warning", conversion->findings[i].text);
    }
}

static void print_notes(const struct tare_conversion *conversion) {
    const struct tare_tpu_existing *existing = &conversion->existing;
    if (existing->tpu_calls)
        fprintf(stderr, "note: the model has been converted for TPU before: %zu TPUPartitionedCall (%s) stay as they are\n",
                existing->tpu_calls, existing->first);
    for (size_t i = 0; i < conversion->composites.count; i++) {
        const struct tare_composite *composite = &conversion->composites.items[i];
        fprintf(stderr, "note: function %s (%s) %s%s\n", composite->function, composite->implements,
                composite->reason ? "stays composite: " : "was fused", composite->reason ? composite->reason : "");
    }
    for (size_t i = 0; i < conversion->batching.n_notes; i++)
        fprintf(stderr, "note: %s\n", conversion->batching.notes[i]);
    if (conversion->dropped.assertions)
        fprintf(stderr, "note: %zu assertions left the TPU functions, as they would at compilation\n",
                conversion->dropped.assertions);
}

static void print_report(const struct tare_conversion *conversion) {
    struct tare_strbuf text = { 0 };
    tare_cost_report_print(&text, &conversion->cost);
    fputs(tare_strbuf_text(&text), stdout);
    tare_strbuf_free(&text);
}

/* Steps of the work as a person waits for them. */
enum { STEPS = 5 };

static tare_status convert(struct tare_model *model, struct tare_arena *arena,
                           const struct tare_converter_options *converter, const struct convert_options *options,
                           struct tare_progress *progress) {
    struct tare_export_options export = { .overwrite = options->overwrite };
    struct tare_pass_count prepared[TARE_PIPELINE_STEPS];
    struct tare_tpu_memory before;
    struct tare_conversion conversion;
    tare_status status;
    TARE_TRY(tare_pipeline_memory(&before, arena, model, converter));
    if (converter->has_quantization) {
        model->keep_variables_from = converter->quantization.keeps_variables ? 1 : 0;
        TARE_TRY(tare_pipeline_prepare(model, prepared));
        tare_progress_advance(progress, 1);
        TARE_TRY(quantize(model, arena, &converter->quantization, options));
    }
    tare_progress_advance(progress, converter->has_quantization ? 1 : 2);
    status = tare_pipeline_place(&conversion, arena, model, converter);
    print_findings(&conversion, status);
    if (status != TARE_OK) return status;
    conversion.before = before;
    tare_progress_advance(progress, 1);
    if (!options->quiet) print_notes(&conversion);
    if (!options->dry_run) TARE_TRY(tare_saved_model_export(model, options->output, &export));
    tare_progress_advance(progress, 1);
    print_report(&conversion);
    return options->report ? tare_convert_report_write(options->report, &conversion, converter,
                                                       converter->has_quantization ? prepared : NULL)
                           : TARE_OK;
}

static tare_status check_usage(const struct convert_options *options, const struct tare_converter_options *converter) {
    if (!options->output && !options->dry_run)
        return TARE_FAIL(TARE_USAGE, "--output_model_dir is missing (or give --dry-run)");
    if (options->calibration && !converter->has_quantization)
        return TARE_FAIL(TARE_USAGE, "--calibration needs quantization_options in external_feature_configs");
    if (options->calibration && converter->quantization.n_datasets)
        return TARE_FAIL(TARE_USAGE, "--calibration and representative_datasets exclude each other");
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct convert_options options;
    struct tare_converter_options converter;
    struct tare_arena arena = { 0 };
    struct tare_model *model = NULL;
    struct tare_progress *progress = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(read_options(&converter, &arena, &options));
    converter.allow_incompatible = options.allow_incompatible;
    TARE_CHECK(check_usage(&options, &converter));
    progress = tare_progress_new(&(struct tare_progress_options){
        .label = "converting", .unit = "steps", .total = STEPS, .quiet = options.quiet });
    TARE_CHECK(tare_command_load(&model, options.input));
    tare_progress_advance(progress, 1);
    status = convert(model, &arena, &converter, &options, progress);
done:
    tare_progress_free(progress);
    tare_model_free(model);
    tare_arena_free(&arena);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_convert = {
    .name = "convert", .summary = "convert a SavedModel for Cloud TPU inference", .run = run, .options = &set
};
