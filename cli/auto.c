/* tare auto: calibrates, compares, decides, builds, verifies and reports, by the calls of the single commands. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "eval/verdict.h"
#include "workflow/compare.h"

#include <stdio.h>
#include <string.h>

struct auto_options {
    const char *model, *output;
    struct tare_option_list data, eval;
    struct tare_data_options records;
    const char *label, *target_key, *signature;
    int metric;
    double margin;
    bool tpu, overwrite, quiet;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

#define ROW(row_name, row_kind, member) TARE_OPTION(struct auto_options, row_name, row_kind, member)
static const struct tare_option rows[] = {
    { ROW("data", LIST, data), .placeholder = "FILE",
      .help = "representative samples for calibration: TFRecord files or quoted patterns" },
    { ROW("eval", LIST, eval), .placeholder = "FILE",
      .help = "labelled records to compare the models on (default: the samples)" },
    TARE_OPTION_NESTED(struct auto_options, records, tare_data_rows),
    { ROW("tpu", FLAG, tpu), .help = "write a model converted for Cloud TPU, which computes in bfloat16" },
    { ROW("label", STRING, label), .fallback = "label", .placeholder = "KEY",
      .help = "record key of the expected class index, or of the expected value of the output of that name" },
    { ROW("target", STRING, target_key), .placeholder = "KEY",
      .help = "record key of the expected values of the first output, for regression" },
    { ROW("metric", CHOICE, metric), .fallback = "auto", .choices = tare_metric_names,
      .help = "measure for the recommendation; auto follows from labels and expected values" },
    TARE_MARGIN_OPTION(struct auto_options, margin, NULL),
    { ROW("signature", STRING, signature), .placeholder = "S", .help = "signature to run (default: serving_default)" },
    { ROW("overwrite", FLAG, overwrite), .help = "replace an existing output directory" },
    { ROW("quiet", FLAG, quiet), .help = "suppress progress and the steps on standard error" },
    TARE_PLUGIN_OPTION(struct auto_options),
    TARE_LOG_OPTIONS(struct auto_options),
    { 0 },
};
#undef ROW
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct auto_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct auto_options, "OUT", output),
      .help = "output directory; OUT.recipe gets the plan and OUT.html the report", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare auto my_model my_model_int8 --data samples.tfrecord.gz --eval labelled.tfrecord.gz",
    "tare auto my_model my_tpu_model --data samples.tfrecord.gz --tpu",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare auto",
    .summary = "Compares ways to quantize a model and builds the one that the measurement supports: calibrates with "
               "the samples, measures the float model, static, weight_only and automatically chosen settings, builds "
               "the recommended model, and checks that its outputs are those that were measured. Prints the command "
               "of each step. Writes nothing if no model is recommended.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* A run of the command. */
struct run {
    const struct auto_options *options;
    struct tare_arena arena;
    struct tare_log log;
    char *recipe, *report;
    const struct tare_option_list *eval; /* --eval, else --data */
};

/* ---- comparing ---- */

static struct tare_compare_task task_of(const struct run *run) {
    const struct auto_options *options = run->options;
    return (struct tare_compare_task){ .model = options->model,
                                       .log = &run->log,
                                       .ops = tare_command_registry(),
                                       .data = run->eval->items,
                                       .n_data = run->eval->count,
                                       .calibration_data = options->data.items,
                                       .n_calibration_data = options->data.count,
                                       .spec = options->records.spec,
                                       .spec_path = options->records.spec_path,
                                       .quiet = options->quiet,
                                       .interrupted = &tare_interrupted };
}

static tare_status request_of(struct tare_compare_request *out, const struct auto_options *options) {
    *out = (struct tare_compare_request){ 0 };
    TARE_TRY(tare_options_defaults(out, tare_compare_rows));
    out->label = options->label;
    out->target_key = options->target_key;
    out->metric = options->metric;
    out->margin = options->margin;
    out->signature = options->signature;
    return TARE_OK;
}

static void put_list(struct tare_strbuf *out, const char *option, const struct tare_option_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        tare_strbuf_printf(out, " --%s ", option);
        tare_strbuf_shell_word(out, list->items[i]);
    }
}

static void put_value(struct tare_strbuf *out, const char *option, const char *value) {
    const struct tare_option_list one = { .items = &value, .count = value ? 1 : 0 };
    put_list(out, option, &one);
}

/* Prints the command that does the same as the step. */
static void print_compare(const struct run *run, const struct tare_compare_request *how) {
    const struct auto_options *options = run->options;
    struct tare_strbuf text = { 0 };
    tare_strbuf_shell_word(&text, options->model);
    put_list(&text, "data", run->eval);
    put_list(&text, how->with.count ? "with" : "calibration-data", how->with.count ? &how->with : &options->data);
    put_value(&text, "spec", options->records.spec_path);
    put_value(&text, "methods", how->methods);
    if (strcmp(options->label, "label") != 0) put_value(&text, "label", options->label);
    put_value(&text, "target", options->target_key);
    if (options->metric) put_value(&text, "metric", tare_metric_names[options->metric]);
    if (how->margin != TARE_MARGIN) tare_strbuf_printf(&text, " --margin %g", how->margin);
    put_value(&text, "signature", options->signature);
    if (how->automatic) tare_strbuf_puts(&text, " --auto");
    put_value(&text, "report", how->with.count ? NULL : run->report);
    tare_note(&run->log, "step: tare compare %s", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

static tare_status write_text(const char *path, struct tare_strbuf *text) {
    const tare_status status =
        text->failed ? TARE_NO_MEMORY : tare_file_write(path, tare_strbuf_text(text), text->size);
    tare_strbuf_free(text);
    return status;
}

static tare_status report(const struct run *run, struct tare_compare_job *c) {
    struct tare_strbuf text = { 0 };
    c->result.text_width = tare_command_width(stdout);
    tare_comparison_table(&text, &c->result);
    if (c->failure == TARE_OK) tare_workflow_autotune_table(&text, &c->automatic);
    tare_comparison_verdict(&text, &c->result);
    tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    tare_comparison_html(&text, &c->result);
    return write_text(run->report, &text);
}

/* What is to be built: strings of the arena. */
struct choice {
    const char *plan;    /* NULL: nothing is quantized */
    const char *answers; /* hash of the outputs that were measured */
    bool samples;
};

/* A model that failed is listed in the report; the others may still be built. */
static tare_status take(struct choice *out, struct run *run, const struct tare_compare_job *c) {
    const struct tare_comparison_row *row = tare_verdict_of(&c->result).row;
    if (!row || c->failure == TARE_INTERRUPTED || c->failure == TARE_NO_MEMORY)
        TARE_TRY(tare_workflow_compare_failure(c));
    if (!row)
        return TARE_FAIL(TARE_NOT_FOUND, "no model is recommended, so that nothing is written (see %s)", run->report);
    out->plan = row->plan ? tare_arena_strdup(&run->arena, row->plan) : NULL;
    out->answers = tare_arena_strdup(&run->arena, row->answers);
    out->samples = row->plan && strstr(row->convert, " --data ");
    return out->answers && (out->plan || !row->plan) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status compare(struct choice *out, struct run *run) {
    const struct tare_compare_task task = task_of(run);
    struct tare_compare_request how;
    struct tare_compare_job c = { 0 };
    tare_status status;
    TARE_TRY(request_of(&how, run->options));
    how.automatic = true;
    how.methods = run->options->tpu ? "static+bfloat16,weight_only+bfloat16,bfloat16" : "static,weight_only";
    print_compare(run, &how);
    TARE_CHECK(tare_workflow_compare_open(&c, &how, &task));
    TARE_CHECK(tare_workflow_compare_run(&c));
    TARE_CHECK(report(run, &c));
    status = take(out, run, &c);
done:
    tare_workflow_compare_close(&c);
    return status;
}

/* ---- building ---- */

enum { MOST_WORDS = 1024 };

struct words {
    const char *items[MOST_WORDS];
    int count;
};

static void add(struct words *words, const char *word) {
    if (words->count < MOST_WORDS) words->items[words->count++] = word;
}

static void add_value(struct words *words, const char *option, const char *value) {
    if (value) add(words, option);
    if (value) add(words, value);
}

static tare_status build(const struct run *run, const struct choice *choice) {
    const struct auto_options *options = run->options;
    const char *const command = options->tpu ? "convert" : "quantize";
    struct words words = { .count = 0 };
    struct tare_strbuf text = { 0 };
    add(&words, options->model);
    add(&words, options->output);
    for (size_t i = 0; choice->samples && i < options->data.count; i++)
        add_value(&words, "--data", options->data.items[i]);
    if (choice->samples) add_value(&words, "--spec", options->records.spec_path);
    if (choice->samples) add_value(&words, "--signature", options->signature);
    if (choice->plan) add_value(&words, "--recipe", run->recipe);
    if (options->tpu) add_value(&words, "--bfloat16", "analysis"); /* as it was measured */
    if (options->overwrite) add(&words, "--overwrite");
    if (words.count == MOST_WORDS) return TARE_FAIL(TARE_USAGE, "more than %d words in a command", MOST_WORDS - 1);
    for (int i = 0; i < words.count; i++) {
        tare_strbuf_putc(&text, ' ');
        tare_strbuf_shell_word(&text, words.items[i]);
    }
    tare_note(&run->log, "step: tare %s%s", command, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    add(&words, "--quiet");
    return tare_command_do(command, words.count, (char *const *)(uintptr_t)words.items);
}

/* ---- verifying ---- */

static tare_status verify(const struct run *run, const struct choice *choice) {
    struct tare_compare_task task = task_of(run);
    const char *const output = run->options->output;
    struct tare_compare_request how;
    struct tare_compare_job c = { 0 };
    tare_status status;
    TARE_TRY(request_of(&how, run->options));
    how.with = (struct tare_option_list){ .items = (const char **)(uintptr_t)&output, .count = 1 };
    task.n_calibration_data = 0;
    print_compare(run, &how);
    TARE_CHECK(tare_workflow_compare_open(&c, &how, &task));
    TARE_CHECK(tare_workflow_compare_run(&c));
    TARE_CHECK(tare_workflow_compare_failure(&c));
    if (strcmp(c.result.rows[1].answers, choice->answers) != 0)
        status = TARE_FAIL(TARE_INTERNAL, "%s: its outputs are not those that were measured", output);
done:
    tare_workflow_compare_close(&c);
    return status;
}

/* ---- the command ---- */

/* "OUT.recipe", without a slash at the end of OUT. */
static char *beside(const char *output, const char *suffix) {
    size_t size = strlen(output);
    char *path;
    while (size > 1 && output[size - 1] == '/')
        size--;
    path = tare_malloc(size + strlen(suffix) + 1);
    if (path) sprintf(path, "%.*s%s", (int)size, output, suffix);
    return path;
}

static tare_status check(struct run *run) {
    const struct auto_options *options = run->options;
    if (!options->data.count) return TARE_FAIL(TARE_USAGE, "missing option '--data'");
    run->recipe = beside(options->output, ".recipe");
    run->report = beside(options->output, ".html");
    if (!run->recipe || !run->report) return TARE_NO_MEMORY;
    TARE_TRY(tare_command_check_model_output(options->output, options->model, options->overwrite));
    TARE_TRY(tare_command_check_file_apart(run->recipe, options->data.items, options->data.count));
    return tare_command_check_file_apart(run->report, options->data.items, options->data.count);
}

static tare_status write_plan(const struct run *run, const struct choice *choice) {
    struct tare_strbuf text = { 0 };
    if (!choice->plan) return TARE_OK;
    tare_strbuf_puts(&text, choice->plan);
    return write_text(run->recipe, &text);
}

static tare_status run(int argc, char *const *argv) {
    struct auto_options options = { 0 };
    struct run run = { .options = &options };
    struct choice choice = { .plan = NULL };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    run.log = tare_command_log(options.quiet);
    run.eval = options.eval.count ? &options.eval : &options.data;
    TARE_CHECK(check(&run));
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(compare(&choice, &run));
    TARE_CHECK(write_plan(&run, &choice));
    TARE_CHECK(build(&run, &choice));
    TARE_CHECK(verify(&run, &choice));
    printf("wrote %s, whose outputs are those that were measured; %s%s%s\n", options.output,
           choice.plan ? run.recipe : "", choice.plan ? ": the plan; " : "", run.report);
done:
    tare_free(run.recipe);
    tare_free(run.report);
    tare_arena_free(&run.arena);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_auto = {
    .name = "auto", .summary = "compare, choose and build a quantized model in one step", .run = run, .options = &set
};
