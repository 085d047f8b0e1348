/* tare quantize: quantizes a model without the TPU rewrite. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "cli/quant_report.h"
#include "eval/report/quant_report.h"
#include "cli/report_file.h"
#include "convert/saved_model.h"
#include "eval/comparison.h"
#include "eval/model_inputs.h"
#include "workflow/autotune.h"
#include "workflow/calibrate.h"
#include "workflow/data_options.h"
#include "workflow/evaluation_data.h"
#include "workflow/quantize.h"
#include "quant/fake_quant.h"
#include "workflow/mixed_precision_search.h"
#include "quant/recipe.h"

#include <stdio.h>
#include <string.h>

struct quantize_options {
    const char *model, *output, *signature, *calibration;
    struct tare_quantize_request how;
    struct tare_mixed_precision_request target;
    const char *label, *target_key, *write_recipe;
    struct tare_option_list data, eval;
    struct tare_data_options records;
    struct tare_option_list plugins;
    int64_t limit;
    int metric; /* 0: inferred, else 1 + enum tare_measure_kind */
    bool automatic, overwrite, dry_run, json, quiet, allow_missing, allow_unquantized;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct quantize_options, how, tare_quantize_rows),
    { .name = "data",
      .kind = TARE_OPTION_LIST,
      .offset = offsetof(struct quantize_options, data),
      .placeholder = "FILE",
      .help = "representative samples for calibration: TFRecord files or quoted patterns" },
    TARE_OPTION_NESTED(struct quantize_options, records, tare_data_rows),
    { .name = "calibration",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct quantize_options, calibration),
      .placeholder = "FILE",
      .help = "calibration file written by 'tare calibrate', instead of --data" },
    { .name = "signature",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct quantize_options, signature),
      .placeholder = "S",
      .help = "signature that the samples belong to (default: serving_default)" },
    { .name = "limit",
      .kind = TARE_OPTION_INT64,
      .offset = offsetof(struct quantize_options, limit),
      .min = 0,
      .max = 1e15,
      .needs = "data input",
      .help = "calibrate with only the first N records (default: all)" },
    { .name = "auto",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct quantize_options, automatic),
      .help = "choose algorithm, accuracy passes and per-layer overrides automatically by measuring SQNR on the "
              "samples, and "
              "the task's measure if they have labels or expected values (--label, --target, --metric)" },
    TARE_OPTION_NESTED(struct quantize_options, target, tare_mixed_precision_rows),
    { .name = "eval",
      .kind = TARE_OPTION_LIST,
      .offset = offsetof(struct quantize_options, eval),
      .placeholder = "FILE",
      .needs = "max-drop min-sqnr max-mae max-size",
      .help = "records to evaluate a target (--max-drop, --min-sqnr) with" },
    { .name = "label",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct quantize_options, label),
      .fallback = "label",
      .placeholder = "KEY",
      .needs = "eval auto",
      .help = "key of the class index in the records of --eval, and of --data for --auto" },
    { .name = "target",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct quantize_options, target_key),
      .placeholder = "KEY",
      .needs = "eval auto",
      .help =
          "key of the expected values in the records of --eval, for regression: --max-mae, and --max-drop in percent" },
    { .name = "metric",
      .kind = TARE_OPTION_CHOICE,
      .offset = offsetof(struct quantize_options, metric),
      .choices = tare_metric_names,
      .fallback = "auto",
      .needs = "eval auto",
      .help = "measure that --max-drop applies to; auto: inferred from the labels or expected values" },
    { .name = "write-recipe",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct quantize_options, write_recipe),
      .placeholder = "FILE",
      .help = "also write the recipe that --auto or a target search produced" },
    { .name = "dry-run",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct quantize_options, dry_run),
      .help = "quantize and report, but do not write the model" },
    { .name = "json",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct quantize_options, json),
      .help = "print the result for each layer as JSON" },
    { .name = "overwrite",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct quantize_options, overwrite),
      .help = "replace an existing output directory" },
    { .name = "quiet",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct quantize_options, quiet),
      .help = "suppress progress and the report on standard error" },
    { .name = "allow-unquantized",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct quantize_options, allow_unquantized),
      .help = "write the model even if no op could be quantized" },
    TARE_MISSING_VARIABLES_OPTION(struct quantize_options),
    TARE_PLUGIN_OPTION(struct quantize_options),
    TARE_LOG_OPTIONS(struct quantize_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL",
      .offset = offsetof(struct quantize_options, model),
      .help = "SavedModel directory, or a file of a StableHLO module",
      .flags = TARE_OPTION_REQUIRED },
    { .name = "OUT",
      .offset = offsetof(struct quantize_options, output),
      .help = "output directory",
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

static void warn_of_unused_samples(const struct quantize_options *options) {
    const struct tare_log log = tare_command_log(true);
    if (options->data.count || options->calibration)
        tare_warn(&log, "--%s is not used: neither the method nor a rule of the recipe needs activation ranges",
                  options->data.count ? "data" : "calibration");
}

/* Calibrates, if a method, rule or pass needs statistics; otherwise *out stays NULL. */
static tare_status calibrate(struct tare_calibration **out, const struct tare_graph_model *model,
                             const struct quantize_options *options, const struct tare_quant_options *quantizing) {
    const bool hessians = options->automatic || tare_workflow_quantize_needs_hessians(quantizing);
    bool channels;
    if (!tare_workflow_quantize_needs_samples(quantizing, &channels) && !options->automatic) {
        warn_of_unused_samples(options);
        return TARE_OK;
    }
    if (options->calibration && options->data.count && !hessians)
        return TARE_FAIL(TARE_USAGE, "--calibration and --data are mutually exclusive");
    if (!options->calibration && !options->data.count && !channels && !hessians && tare_quant_is_trained(model))
        return TARE_OK;
    if (!options->calibration && !options->data.count)
        return TARE_FAIL(TARE_USAGE, "%s needs representative samples (give --data FILE or --calibration FILE)",
                         options->automatic     ? "--auto"
                         : channels || hessians ? "an accuracy pass"
                                                : "static quantization");
    const struct tare_calibrate_options job_options = { .signature = options->signature,
                                                        .data = options->data.items,
                                                        .n_data = options->data.count,
                                                        .limit = options->limit,
                                                        .spec = options->records.spec,
                                                        .progress = !options->quiet,
                                                        .channels = channels || options->automatic,
                                                        .hessians = hessians,
                                                        .interrupted = &tare_interrupted };
    TARE_TRY(tare_workflow_calibrate_from(out, model, options->calibration, &job_options));
    const struct tare_log log = tare_command_log(true);
    return options->data.count ? tare_workflow_calibrate_log(&log, *out) : TARE_OK;
}

/* ---- what is found by measuring ---- */

/* The quantization as a variant of comparisons. */
static struct tare_variant variant_of(const struct tare_quant_options *quantizing) {
    const struct tare_quant_method *method = quantizing->setting.method;
    return (struct tare_variant){ .name = method ? method->name : "float", .options = *quantizing };
}

/* Prints the table of choices to standard error, applies them to the quantization and appends the recipe to `rules`. */
static tare_status choose(struct tare_quant_options *quantizing, struct tare_strbuf *rules, struct tare_arena *arena,
                          const struct quantize_options *options, struct tare_calibration *calibration) {
    const struct tare_variant variant = variant_of(quantizing);
    struct tare_variant_source source = { .model = options->model, .ops = tare_command_registry() };
    const struct tare_autotune_task task = { .source = &source,
                                             .variant = &variant,
                                             .calibration = calibration,
                                             .signature = options->signature,
                                             .data = options->data.items,
                                             .n_data = options->data.count,
                                             .spec = options->records.spec,
                                             .label = options->label,
                                             .target_key = options->target_key,
                                             .metric = options->metric,
                                             .interrupted = &tare_interrupted,
                                             .threads = tare_cpu_count(),
                                             .quiet = options->quiet };
    struct tare_quant_recipe *recipe;
    struct tare_autotune automatic;
    struct tare_strbuf text = { 0 };
    tare_status status;
    TARE_CHECK(tare_workflow_autotune_choose(&automatic, &task));
    tare_workflow_autotune_table(&text, &automatic);
    if (!options->quiet) tare_strbuf_print(&text, stderr);
    tare_workflow_autotune_recipe(rules, &automatic);
    TARE_CHECK(tare_quant_recipe_new(&recipe, arena));
    TARE_CHECK(tare_quant_recipe_read(recipe, tare_strbuf_text(rules), rules->size, "auto"));
    quantizing->recipe = recipe;
    TARE_CHECK(tare_quant_passes_parse(&quantizing->passes, arena, automatic.passes));
    if (automatic.algorithm) status = tare_algorithm_parse(&quantizing->setting.algorithm, automatic.algorithm);
done:
    tare_strbuf_free(&text);
    tare_workflow_autotune_free(&automatic);
    tare_variant_source_close(&source);
    return status;
}

static tare_status add_rules(struct tare_quant_options *quantizing, struct tare_arena *arena,
                             const struct tare_strbuf *text) {
    struct tare_quant_recipe *rules = (struct tare_quant_recipe *)(uintptr_t)quantizing->recipe;
    if (!rules) TARE_TRY(tare_quant_recipe_new(&rules, arena));
    quantizing->recipe = rules;
    return tare_quant_recipe_read(rules, tare_strbuf_text(text), text->size, "target");
}

/* Prints the table to standard error and adds the chosen mix to the rules of the quantization. */
static tare_status take_mix(struct tare_quant_options *quantizing, struct tare_strbuf *rules, struct tare_arena *arena,
                            const struct quantize_options *options, const struct tare_mixed_precision *targeting) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    tare_target_table(&text, &targeting->result);
    if (!options->quiet) tare_strbuf_print(&text, stderr);
    tare_strbuf_free(&text);
    TARE_TRY(tare_workflow_mixed_precision_check(targeting));
    tare_target_recipe(&text, &targeting->result);
    status = add_rules(quantizing, arena, &text);
    tare_strbuf_puts(rules, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return status;
}

/* Searches for the precision of each layer and adds a rule for each that has not the given one. */
static tare_status search_target(struct tare_quant_options *quantizing, struct tare_strbuf *rules,
                                 struct tare_arena *arena, const struct quantize_options *options,
                                 struct tare_calibration *calibration) {
    enum { SENSITIVITY_RECORDS = 200 };
    const struct tare_runner_options runner = { .paths = options->eval.items,
                                                .n_paths = options->eval.count,
                                                .spec = options->records.spec,
                                                .batch = TARE_RUNNER_BATCH,
                                                .interrupted = &tare_interrupted };
    const struct tare_variant variant = variant_of(quantizing);
    struct tare_variant_source source = { .model = options->model, .ops = tare_command_registry() };
    const struct tare_mixed_precision_task task = { .options = &options->target,
                                                    .source = &source,
                                                    .variant = &variant,
                                                    .calibration = calibration,
                                                    .signature = options->signature,
                                                    .label = options->label,
                                                    .target_key = options->target_key,
                                                    .metric = options->metric,
                                                    .runner = &runner,
                                                    .sensitivity_limit = SENSITIVITY_RECORDS,
                                                    .threads = tare_cpu_count(),
                                                    .quiet = options->quiet };
    struct tare_mixed_precision targeting;
    tare_status status = tare_workflow_mixed_precision_run(&targeting, &task, NULL);
    if (status == TARE_OK) status = take_mix(quantizing, rules, arena, options, &targeting);
    tare_workflow_mixed_precision_close(&targeting);
    tare_variant_source_close(&source);
    return status;
}

static tare_status check_measuring(const struct quantize_options *options) {
    if (tare_workflow_mixed_precision_requested(&options->target) && !options->eval.count)
        return TARE_FAIL(
            TARE_USAGE,
            "a target (--max-drop, --min-sqnr, --max-mae, --max-size) needs evaluation records (give --eval FILE)");
    if (options->automatic && !options->data.count)
        return TARE_FAIL(TARE_USAGE, "--auto needs representative samples (give --data FILE)");
    if (options->write_recipe && !options->automatic && !tare_workflow_mixed_precision_requested(&options->target))
        return TARE_FAIL(TARE_USAGE,
                         "--write-recipe requires --auto or a target (--max-drop, --min-sqnr, --max-mae, --max-size)");
    return TARE_OK;
}

/* Determines per-layer rules by measurement: first --auto, then the target search. */
static tare_status find_rules(struct tare_quant_options *quantizing, struct tare_arena *arena,
                              const struct quantize_options *options, struct tare_calibration *calibration) {
    const struct tare_quantize_samples samples = { .data = options->data.items,
                                                   .n_data = options->data.count,
                                                   .calibration = options->calibration,
                                                   .spec = options->records.spec_path,
                                                   .signature = options->signature,
                                                   .limit = options->limit };
    struct tare_strbuf rules = { 0 };
    const struct tare_variant variant = variant_of(quantizing);
    tare_status status = TARE_OK;
    tare_workflow_quantize_command(&rules, arena, &variant, &samples, options->automatic);
    if (options->automatic) status = choose(quantizing, &rules, arena, options, calibration);
    if (status == TARE_OK && tare_workflow_mixed_precision_requested(&options->target))
        status = search_target(quantizing, &rules, arena, options, calibration);
    if (status == TARE_OK && options->write_recipe) status = tare_report_write(options->write_recipe, &rules);
    tare_strbuf_free(&rules);
    return status;
}

static struct tare_evaluation_data evaluation_of(const struct quantize_options *options,
                                                 const struct tare_graph_model *model,
                                                 const struct tare_calibration *calibration) {
    return (struct tare_evaluation_data){ .model = model,
                                          .signature = options->signature,
                                          .paths = options->eval.items,
                                          .n_paths = options->eval.count,
                                          .spec = options->records.spec,
                                          .label = options->label,
                                          .calibration = calibration,
                                          .interrupted = &tare_interrupted };
}

/* Before any work: a misspelled --label would leave the SQNR as the measure. The samples of --auto need no labels. */
static tare_status check_label(const struct quantize_options *options, const struct tare_graph_model *model) {
    const struct tare_evaluation_data data = evaluation_of(options, model, NULL);
    return options->eval.count ? tare_workflow_check_label(&data) : TARE_OK;
}

/* Warns of evaluation records that the calibration has seen. */
static tare_status check_leakage(const struct quantize_options *options, const struct tare_graph_model *model,
                                 const struct tare_calibration *calibration) {
    const struct tare_log log = tare_command_log(true);
    const struct tare_evaluation_data data = evaluation_of(options, model, calibration);
    struct tare_leakage leakage;
    TARE_TRY(tare_workflow_find_leakage(&leakage, &data));
    tare_workflow_warn_of_leakage(&log, &leakage);
    return TARE_OK;
}

/* The result of the quantization, for reports. */
struct quantized {
    struct tare_quant_report report;
    struct tare_explanation_list layers;
};

static tare_status quantize(struct quantized *out, struct tare_graph_model *model, struct tare_arena *arena,
                            const struct quantize_options *options, struct tare_quant_options *quantizing) {
    const struct tare_log log = tare_command_log(true);
    struct tare_calibration *calibration = NULL;
    tare_status status;
    TARE_TRY(check_measuring(options));
    TARE_TRY(check_label(options, model));
    TARE_TRY(calibrate(&calibration, model, options, quantizing));
    status = options->eval.count ? check_leakage(options, model, calibration) : TARE_OK;
    if (status == TARE_OK) status = find_rules(quantizing, arena, options, calibration);
    if (status == TARE_OK) status = tare_workflow_quantize_run(&out->report, arena, model, quantizing, calibration);
    if (status == TARE_OK) status = tare_explain(&out->layers, arena, &out->report, calibration, false);
    for (size_t i = 0; status == TARE_OK && i < out->report.n_unused_rules; i++)
        tare_warn(&log, "%s: rule matches no layer", out->report.unused_rules[i]);
    for (size_t i = 0; status == TARE_OK && !options->json && i < out->report.n_warnings; i++)
        tare_warn(&log, "%s", out->report.warnings[i]);
    if (status == TARE_OK && !options->quiet && !options->json) tare_print_quant_report(&out->report, &out->layers);
    tare_calibration_free(calibration);
    return status;
}

static tare_status print_json(const struct quantized *quantized, int64_t float_bytes,
                              const struct tare_graph_model *model) {
    struct tare_strbuf text = { 0 };
    int64_t bytes;
    tare_status status;
    TARE_TRY(tare_model_weight_bytes(&bytes, model));
    status = tare_quant_report_json(&text, &quantized->report, &quantized->layers, float_bytes, bytes);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

/* Sizes of the weights before and after. */
static tare_status print_plan(const struct quantize_options *options, int64_t float_bytes,
                              const struct tare_graph_model *model) {
    int64_t bytes;
    TARE_TRY(tare_model_weight_bytes(&bytes, model));
    printf("would write %s: weights %.3f MB, %.1f%% of the float model's %.3f MB\n", options->output,
           (double)bytes / 1e6, float_bytes ? 100 * (double)bytes / (double)float_bytes : 100,
           (double)float_bytes / 1e6);
    return TARE_OK;
}

/* Method float without a recipe requests no quantization. */
static bool asks_to_quantize(const struct quantize_options *options) {
    return !options->allow_unquantized && (options->how.layers.recipe || strcmp(options->how.method, "float") != 0);
}

/* Checks before any work what would fail at the end. */
static tare_status check_outputs(const struct quantize_options *options) {
    if (!options->dry_run)
        TARE_TRY(tare_command_check_model_output(options->output, options->model, options->overwrite));
    TARE_TRY(tare_command_check_file_apart(options->write_recipe, options->data.items, options->data.count));
    TARE_TRY(tare_command_check_file_apart(options->write_recipe, options->eval.items, options->eval.count));
    return tare_command_check_file_apart(options->write_recipe, &options->calibration, 1);
}

static void print_written(const struct quantize_options *options, bool converts) {
    const struct tare_log log = tare_command_log(options->quiet);
    char *output;
    tare_note(&log, "wrote %s", options->output);
    if (!converts) return;
    tare_hint_name(&output, options->output, "_tpu");
    if (output) tare_hint(&log, "tare", "convert", options->output, output, NULL);
    tare_free(output);
}

static tare_status run(int argc, char *const *argv) {
    struct quantize_options options = { 0 };
    struct tare_quant_options quantizing;
    struct quantized quantized = { 0 };
    struct tare_export_options export = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = NULL;
    const struct tare_signature *signature;
    int64_t float_bytes;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_workflow_quantize_read(&quantizing, &arena, &options.how));
    quantizing.quiet = options.quiet;
    TARE_CHECK(check_outputs(&options));
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(tare_command_load(&model, options.model));
    TARE_CHECK(tare_command_check_values(model, options.model, options.allow_missing));
    if (options.signature) TARE_CHECK(tare_pick_signature(&signature, model, options.signature));
    TARE_CHECK(tare_model_weight_bytes(&float_bytes, model));
    TARE_CHECK(tare_error_prefix(tare_workflow_quantize_prepare(model, &quantizing), "%s", options.model));
    TARE_CHECK(quantize(&quantized, model, &arena, &options, &quantizing));
    if (asks_to_quantize(&options)) TARE_CHECK(tare_workflow_quantize_check(&quantized.report));
    if (options.json) TARE_CHECK(print_json(&quantized, float_bytes, model));
    if (options.dry_run) {
        if (!options.json) TARE_CHECK(print_plan(&options, float_bytes, model));
        if (!options.quiet && !options.json) tare_dry_run_took();
        goto done;
    }
    export.overwrite = options.overwrite;
    TARE_CHECK(tare_saved_model_export(model, options.output, &export));
    TARE_CHECK(tare_command_warn_of_written(options.output, options.model, model, asks_to_quantize(&options)));
    if (!options.quiet) print_written(&options, !tare_saved_model_is_tf1(model));
done:
    tare_model_free(model);
    tare_arena_free(&arena);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_quantize = {
    .name = "quantize", .summary = "quantize a SavedModel without the TPU rewrite", .run = run, .options = &set
};
