/* tare quantize: quantizes a model without the TPU rewrite. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "cli/quant_report.h"
#include "cli/report_file.h"
#include "convert/saved_model.h"
#include "eval/report/composites.h"
#include "eval/report/quant_report.h"
#include "workflow/quantize.h"

#include <stdio.h>

struct quantize_options {
    const char *model, *output, *report;
    struct tare_quantize_request how;
    struct tare_option_list plugins;
    bool overwrite, dry_run, json, quiet, allow_missing;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct quantize_options, how, tare_quantize_rows),
    { TARE_OPTION(struct quantize_options, "dry-run", FLAG, dry_run),
      .help = "quantize and report, but do not write the model" },
    { TARE_OPTION(struct quantize_options, "json", FLAG, json), .help = "print the result for each layer as JSON" },
    { TARE_OPTION(struct quantize_options, "report", STRING, report), .placeholder = "FILE.json",
      .help = "also write what --json prints" },
    { TARE_OPTION(struct quantize_options, "overwrite", FLAG, overwrite),
      .help = "replace an existing output directory" },
    { TARE_OPTION(struct quantize_options, "quiet", FLAG, quiet),
      .help = "suppress progress and the report on standard error" },
    TARE_MISSING_VARIABLES_OPTION(struct quantize_options),
    TARE_PLUGIN_OPTION(struct quantize_options),
    TARE_LOG_OPTIONS(struct quantize_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct quantize_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct quantize_options, "OUT", output), .help = "output directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare quantize my_model my_model_int8 --data samples.tfrecord.gz",
    "tare quantize my_model my_model_int4 --method weight_only --bits 4 --granularity per_block:64",
    "tare quantize my_model my_model_int8 --data samples.tfrecord.gz --auto --write-recipe chosen.txt",
    "tare quantize my_model my_model_mixed --data samples.tfrecord.gz --eval labelled.tfrecord.gz --max-drop 0.5",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare quantize",
    .summary = "Quantizes a SavedModel and writes a model that still runs on a CPU. By default weights become int8 "
               "with one scale per output channel, and activations get scales from the samples. A recipe overrides the "
               "settings of individual layers.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* After the model is written, whose warnings it has, too. */
static tare_status print_json(const struct quantize_options *options, const struct tare_quantized *quantized) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    if (!options->json && !options->report) return TARE_OK;
    status = tare_quant_report_json(&text, &quantized->report, &quantized->layers, quantized->float_bytes,
                                    quantized->bytes, &quantized->composites, tare_command_warnings());
    if (status == TARE_OK && options->json) tare_strbuf_print(&text, stdout);
    if (status == TARE_OK && options->report) status = tare_report_write(options->report, &text);
    tare_strbuf_free(&text);
    return status;
}

/* Sizes of the weights before and after. */
static void print_plan(const struct quantize_options *options, const struct tare_quantized *quantized) {
    const double before = (double)quantized->float_bytes, after = (double)quantized->bytes;
    printf("would write %s: weights %.3f MB, %.1f%% of the float model's %.3f MB\n", options->output, after / 1e6,
           before > 0 ? 100 * after / before : 100, before / 1e6);
}

/* On standard error: what was found by measuring, also after a failure, and the result for each op. */
static void print_result(const struct quantize_options *options, const struct tare_quantized *quantized,
                         tare_status status) {
    const struct tare_log log = tare_command_log(options->quiet || options->json);
    struct tare_strbuf text = { 0 };
    tare_workflow_quantize_tables(&text, quantized);
    if (!options->quiet) tare_strbuf_print(&text, stderr);
    tare_strbuf_free(&text);
    if (status != TARE_OK) return;
    tare_workflow_quantize_log(&log, quantized);
    tare_composites_log(&log, &quantized->composites);
    if (!options->quiet && !options->json) tare_print_quant_report(&quantized->report, &quantized->layers);
}

static void print_written(const struct quantize_options *options, bool converts) {
    const struct tare_log log = tare_command_log(options->quiet);
    char *output;
    tare_note(&log, "wrote %s", options->output);
    if (!converts) return;
    tare_hint_name(&output, options->output, "_tpu");
    if (output) tare_hint(&log, "convert", options->output, output, NULL);
    tare_free(output);
}

static tare_status write_model(const struct quantize_options *options, struct tare_graph_model *model,
                               const struct tare_quantized *quantized) {
    const struct tare_export_options export = { .overwrite = options->overwrite };
    const struct tare_log log = tare_command_log(true);
    const bool quantizes = quantized->report.quantized > 0 && !options->how.allow_unquantized &&
                           tare_quant_plan_quantizes(&quantized->plan);
    TARE_TRY(tare_saved_model_export(model, options->output, &export));
    TARE_TRY(tare_command_warn_of_written(options->output, options->model, model, quantizes, &log));
    if (!options->quiet) print_written(options, !tare_saved_model_is_tf1(model));
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    const struct tare_log log = tare_command_log(true);
    struct quantize_options options = { 0 };
    struct tare_quantized quantized = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_workflow_quantize_open(&options.how, &arena));
    TARE_CHECK(tare_workflow_quantize_check_samples(&options.how, &options.how.plan));
    if (!options.dry_run) TARE_CHECK(tare_command_check_model_output(options.output, options.model, options.overwrite));
    TARE_CHECK(tare_command_load(&model, options.model));
    TARE_CHECK(tare_command_check_values(model, options.allow_missing));
    status = tare_workflow_quantize(
        &quantized, &arena, model,
        &(struct tare_quantize_task){ .request = &options.how,
                                      .path = options.model,
                                      .ops = tare_command_registry(),
                                      .log = &log,
                                      .quiet = options.quiet,
                                      .without_layers = options.quiet && !options.json && !options.report,
                                      .interrupted = &tare_interrupted });
    print_result(&options, &quantized, status);
    TARE_CHECK(status);
    if (!options.dry_run) TARE_CHECK(write_model(&options, model, &quantized));
    TARE_CHECK(print_json(&options, &quantized));
    if (options.dry_run && !options.json) print_plan(&options, &quantized);
    if (options.dry_run && !options.json && !options.quiet) tare_dry_run_took();
done:
    tare_workflow_quantized_free(&quantized);
    tare_model_free(model);
    tare_workflow_quantize_close(&options.how);
    tare_arena_free(&arena);
    tare_options_free(&options, &set);
    return status;
}

static tare_status needs(struct tare_quantize_needs *out, int argc, char *const *argv) {
    struct quantize_options options = { 0 };
    struct tare_option_outcome outcome;
    struct tare_arena arena = { 0 };
    tare_status status;
    TARE_CHECK(tare_options_parse(&options, &outcome, &set, argc, argv));
    TARE_CHECK(tare_workflow_quantize_open(&options.how, &arena));
    *out = tare_workflow_quantize_needs(&options.how, &options.how.plan);
done:
    tare_workflow_quantize_close(&options.how);
    tare_arena_free(&arena);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_quantize = { .name = "quantize",
                                                    .summary = "quantize a SavedModel without the TPU rewrite",
                                                    .run = run,
                                                    .needs = needs,
                                                    .options = &set };
