/* tare compare: compares the float model with quantized models on the same records. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/report_file.h"
#include "eval/report/node_data.h"
#include "workflow/compare.h"
#include "workflow/data_options.h"

#include <stdio.h>
#include <string.h>

struct compare_options {
    const char *model, *calibration, *report, *recipe, *node_data;
    struct tare_compare_request how;
    struct tare_option_list data, eval, calibration_data;
    struct tare_data_options records;
    struct tare_input_files inputs;
    int worst;
    bool explain, json, quiet, dry_run, wide;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct compare_options, "data", LIST, data), .placeholder = "FILE",
      .help = "representative samples for methods that need activation ranges; without --eval: records to evaluate "
              "with" },
    { TARE_OPTION(struct compare_options, "eval", LIST, eval), .placeholder = "FILE",
      .help = "records to evaluate with, labelled or not" },
    TARE_OPTION_NESTED(struct compare_options, inputs, tare_input_rows),
    TARE_OPTION_NESTED(struct compare_options, records, tare_data_rows),
    { TARE_OPTION(struct compare_options, "calibration-data", LIST, calibration_data), .placeholder = "FILE",
      .help = "the samples of --data where there is no --eval", .flags = TARE_OPTION_HIDDEN },
    { TARE_OPTION(struct compare_options, "calibration", STRING, calibration), .placeholder = "FILE.calib",
      .help = "calibration file of this model, instead of --data" },
    TARE_OPTION_NESTED(struct compare_options, how, tare_compare_rows),
    { TARE_OPTION(struct compare_options, "explain", FLAG, explain),
      .help = "also print the error of each layer under the first quantizing method, with remedies" },
    { TARE_OPTION(struct compare_options, "write-recipe", STRING, recipe), .placeholder = "FILE",
      .help = "write a recipe that keeps the worst layers, or those found for a target, in float (for tare quantize "
              "--recipe)" },
    { TARE_OPTION(struct compare_options, "worst", INT, worst), .fallback = "1", .min = 1, .max = 1000000,
      .needs = "write-recipe", .help = "number of layers that the recipe keeps in float" },
    { TARE_OPTION(struct compare_options, "json", FLAG, json), .help = "print JSON" },
    { TARE_OPTION(struct compare_options, "report", STRING, report), .placeholder = "FILE",
      .help = "also write a report to FILE (.html, .json or .csv)" },
    { TARE_OPTION(struct compare_options, "node-data", STRING, node_data), .placeholder = "FILE.json",
      .help = "also write the error of each layer for Model Explorer" },
    { TARE_OPTION(struct compare_options, "dry-run", FLAG, dry_run),
      .help = "print what would be run and written, with an estimate of the time" },
    { TARE_OPTION(struct compare_options, "quiet", FLAG, quiet), .help = "suppress progress on standard error" },
    { TARE_OPTION(struct compare_options, "wide", FLAG, wide),
      .help = "print all figures of all outputs (default: measure, size and time of the first output, in 80 columns)" },
    TARE_PLUGIN_OPTION(struct compare_options),
    TARE_LOG_OPTIONS(struct compare_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct compare_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare compare my_model --data samples.tfrecord.gz --eval eval.tfrecord.gz --report compare.html",
    "tare compare my_model --calibration my_model.calib --eval eval.tfrecord.gz --methods static,weight_only,bfloat16 "
    "--algorithms min_max,percentile:p=99.9,entropy,mse",
    "tare compare my_model --with my_tpu_model --eval eval.tfrecord.gz",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare compare",
    .summary = "Runs the float model and each quantized model on the same records and prints their accuracy and size. "
               "--with compares converted or quantized models that already exist.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* No recipe is written if no mix reaches the target. */
static tare_status write_recipe(struct tare_compare_job *c, const struct compare_options *options) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    if (!options->recipe || (c->result.target && !c->result.target->chosen)) return TARE_OK;
    TARE_TRY(tare_workflow_compare_recipe(&text, c, (size_t)options->worst));
    status = tare_report_write(options->recipe, &text);
    tare_strbuf_free(&text);
    return status == TARE_OK ? tare_workflow_compare_add_file(c, "recipe", options->recipe) : status;
}

static tare_status write_report(const struct tare_comparison *result, const char *path) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    switch (tare_report_kind(path)) {
    case TARE_REPORT_HTML:
        tare_comparison_html(&text, result);
        break;
    case TARE_REPORT_CSV:
        tare_comparison_csv(&text, result);
        break;
    default:
        status = tare_comparison_json(&text, result);
    }
    if (status == TARE_OK) status = tare_report_write(path, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status write_node_data(const struct tare_comparison *result, const char *path) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_comparison_node_data(&text, result);
    if (status == TARE_OK) status = tare_report_write(path, &text);
    tare_strbuf_free(&text);
    return tare_error_prefix(status, "--node-data");
}

/* The recommendation is bold on a terminal. */
static void print_verdict(struct tare_strbuf *text, const struct tare_comparison *result) {
    const bool bold = tare_log_colors_on(stdout);
    if (bold) tare_strbuf_puts(text, "\033[1m");
    tare_comparison_verdict(text, result);
    if (bold) tare_strbuf_puts(text, "\033[0m");
}

static void print_tables(struct tare_strbuf *text, const struct tare_compare_job *c, bool explain) {
    tare_comparison_table(text, &c->result);
    if (c->options->automatic && c->failure == TARE_OK) tare_workflow_autotune_table(text, &c->automatic);
    if (explain) {
        tare_strbuf_printf(text, "\nlayers of %s\n", tare_workflow_compare_first_quantizing(c)->name);
        tare_explanations_table(text, &c->result.explanations, c->result.text_width);
    }
    print_verdict(text, &c->result);
    tare_hint_put_next(text, c->result.next);
}

static tare_status print_result(const struct tare_compare_job *c, const struct compare_options *options) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (options->json)
        status = tare_comparison_json(&text, &c->result);
    else
        print_tables(&text, c, options->explain);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

static struct tare_compare_task task_of(const struct compare_options *options, const struct tare_log *log) {
    return (struct tare_compare_task){ .model = options->model,
                                       .log = log,
                                       .ops = tare_command_registry(),
                                       .data = options->data.items,
                                       .n_data = options->data.count,
                                       .calibration_data = options->calibration_data.items,
                                       .n_calibration_data = options->calibration_data.count,
                                       .calibration_file = options->calibration,
                                       .spec = options->records.spec,
                                       .spec_path = options->records.spec_path,
                                       .feedback = &options->records.feedback,
                                       .quiet = options->quiet,
                                       .without_layers = !options->explain && !options->json && !options->report &&
                                                         !options->node_data,
                                       .interrupted = &tare_interrupted };
}

static tare_status print_plan(struct tare_compare_job *c, const struct compare_options *options) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_workflow_compare_plan(&text, c);
    if (status == TARE_OK) {
        if (options->report || options->recipe)
            tare_strbuf_printf(&text, "would write %s%s%s\n", options->report ? options->report : "",
                               options->report && options->recipe ? " and " : "",
                               options->recipe ? options->recipe : "");
        tare_strbuf_print(&text, stdout);
    }
    tare_strbuf_free(&text);
    return status;
}

/* With --eval, the records of --data are samples. */
static tare_status assign_records(struct compare_options *o) {
    if (!o->eval.count) return tare_input_files_add(&o->data, &o->inputs);
    if (o->inputs.given.count) return TARE_FAIL(TARE_USAGE, "--eval and --input are mutually exclusive");
    if (o->data.count && o->calibration_data.count)
        return TARE_FAIL(TARE_USAGE, "--data (with --eval) and --calibration-data are mutually exclusive");
    if (o->data.count) {
        tare_free(o->calibration_data.items);
        o->calibration_data = o->data;
    }
    o->data = o->eval;
    o->eval = (struct tare_option_list){ 0 };
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    const struct tare_log log = tare_command_log(true);
    struct compare_options options = { 0 };
    struct tare_compare_job c = { 0 };
    struct tare_compare_task task;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(assign_records(&options));
    TARE_CHECK(tare_report_check(options.report));
    TARE_CHECK(tare_data_options_open(&options.records));
    options.how.sensitivity |=
        options.recipe && !options.how.automatic && !tare_workflow_mixed_precision_requested(&options.how.target);
    task = task_of(&options, &log);
    TARE_CHECK(tare_workflow_compare_open(&c, &options.how, &task));
    if (options.explain && !tare_workflow_compare_first_quantizing(&c))
        TARE_CHECK(TARE_FAIL(TARE_USAGE, "--explain requires a quantizing method"));
    if (options.dry_run) {
        status = print_plan(&c, &options);
        goto done;
    }
    TARE_CHECK(tare_workflow_compare_run(&c));
    c.result.text_width = tare_command_width(stdout);
    c.result.wide = options.wide;
    if (c.failure == TARE_OK) TARE_CHECK(write_recipe(&c, &options)); /* first, because the report contains its hash */
    TARE_CHECK(print_result(&c, &options));
    if (options.report) TARE_CHECK(write_report(&c.result, options.report));
    if (options.node_data) TARE_CHECK(write_node_data(&c.result, options.node_data));
    if (c.result.target) TARE_CHECK(tare_workflow_mixed_precision_check(&c.targeting));
    status = tare_workflow_compare_failure(&c);
done:
    tare_workflow_compare_close(&c);
    tare_data_options_close(&options.records);
    tare_input_files_free(&options.inputs);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_compare = {
    .name = "compare", .summary = "compare the accuracy of quantization methods", .run = run, .options = &set
};
