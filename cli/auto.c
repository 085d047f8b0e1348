/* tare auto: calibrates, compares, decides, builds, verifies and reports (workflow/auto.h). */
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "eval/verdict.h"
#include "workflow/auto.h"

#include <stdio.h>

struct auto_options {
    const char *model, *output;
    struct tare_option_list data;
    struct tare_auto_request how;
    bool quiet;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct auto_options, "data", LIST, data), .placeholder = "FILE",
      .help = "representative samples for calibration: TFRecord files or quoted patterns" },
    TARE_OPTION_NESTED(struct auto_options, how, tare_auto_rows),
    { TARE_OPTION(struct auto_options, "quiet", FLAG, quiet),
      .help = "suppress progress and the steps on standard error" },
    TARE_PLUGIN_OPTION(struct auto_options),
    TARE_LOG_OPTIONS(struct auto_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct auto_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct auto_options, "OUT", output),
      .help = "output directory; OUT.recipe gets the plan, OUT.html the report, and OUT.spec a DatasetSpec if the "
              "records need one and --spec is not given",
      .beside = ".recipe .html .spec", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare auto my_model my_model_int8 --data samples.tfrecord.gz --eval labelled.tfrecord.gz",
    "tare auto my_model my_tpu_model --data samples.tfrecord.gz --tpu --for v6e --batch 32",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare auto",
    .summary = "Compares ways to quantize a model and builds the one that the measurement supports: calibrates with "
               "the samples, measures the float model, static, weight_only and automatically chosen settings, builds "
               "the recommended model, and checks that its outputs are those that were measured. Prints the command "
               "of each step. Writes nothing if no model is recommended; with --for, none that is slower than float on "
               "the chip.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status print_comparison(void *arg, struct tare_compare_job *c) {
    struct tare_strbuf text = { 0 };
    (void)arg;
    c->result.text_width = tare_command_width(stdout);
    tare_comparison_table(&text, &c->result);
    if (c->failure == TARE_OK) tare_workflow_autotune_table(&text, &c->automatic);
    tare_comparison_verdict(&text, &c->result);
    if (!tare_verdict_of(&c->result).row) tare_hint_put_next(&text, c->result.next);
    tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return TARE_OK;
}

static tare_status print_built(void *arg, const struct tare_auto_built *built) {
    const struct auto_options *options = arg;
    struct tare_strbuf text = { 0 };
    TARE_TRY(
        tare_command_warn_of_written(options->output, options->model, built->model, built->was_quantized, built->log));
    if (built->conversion) tare_cost_report_print(&text, &built->conversion->cost);
    tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return TARE_OK;
}

static tare_status check_outputs(const struct auto_options *options, const struct tare_auto_job *job) {
    TARE_TRY(tare_command_check_model_output(options->output, options->model, options->how.overwrite));
    TARE_TRY(tare_command_check_file_apart(job->recipe, options->data.items, options->data.count));
    TARE_TRY(tare_command_check_file_apart(job->spec, options->data.items, options->data.count));
    return tare_command_check_file_apart(job->report, options->data.items, options->data.count);
}

static tare_status run_job(struct auto_options *options) {
    const struct tare_log log = tare_command_log(options->quiet), build_log = tare_command_log(true);
    const struct tare_auto_task task = { .model = options->model,
                                         .output = options->output,
                                         .ops = tare_command_registry(),
                                         .data = options->data.items,
                                         .n_data = options->data.count,
                                         .quiet = options->quiet,
                                         .log = &log,
                                         .build_log = &build_log,
                                         .interrupted = &tare_interrupted,
                                         .on_compared = print_comparison,
                                         .on_built = print_built,
                                         .arg = options };
    struct tare_auto_job job;
    tare_status status;
    TARE_CHECK(tare_workflow_auto_open(&job, &options->how, &task));
    TARE_CHECK(check_outputs(options, &job));
    TARE_CHECK(tare_workflow_auto_run(&job));
    printf("wrote %s, whose outputs are those that were measured; %s%s%s\n", options->output,
           job.plan ? job.recipe : "", job.plan ? ": the plan; " : "", job.report);
done:
    tare_workflow_auto_close(&job);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct auto_options options = { 0 };
    bool done;
    tare_status status = tare_command_parse(&options, &done, &set, argc, argv);
    if (status == TARE_OK && !done) status = run_job(&options);
    tare_data_options_close(&options.how.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_auto = {
    .name = "auto", .summary = "compare, choose and build a quantized model in one step", .run = run, .options = &set
};
