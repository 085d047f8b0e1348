/* The steps of `tare auto`: compares, decides, builds, verifies and reports. */
#include "workflow/auto.h"
#include "workflow/auto_spec.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "convert/saved_model.h"
#include "eval/verdict.h"
#include "tpu/chips.h"

#include <stdio.h>
#include <string.h>

#define TARE_ROW_STRUCT struct tare_auto_request
const struct tare_option tare_auto_rows[] = {
    { TARE_ROW("eval", LIST, eval), .placeholder = "FILE",
      .help = "labelled records to compare the models on (default: the samples)" },
    TARE_OPTION_NESTED(struct tare_auto_request, records, tare_data_rows),
    { TARE_ROW("tpu", FLAG, tpu), .help = "write a model converted for Cloud TPU, which computes in bfloat16" },
    { TARE_ROW("for", CHOICE, chip), .fallback = "any", .choices = tare_tpu_target_names,
      .help = "build the fastest model within the margin on this Cloud TPU chip, instead of the smallest one: by "
              "Google's compiler where it is installed (tare check), otherwise by the estimate" },
    { TARE_ROW("batch", INT64, batch), .fallback = "8", .min = 1, .max = 65536, .needs = "for",
      .help = "batch size on the chip" },
    { TARE_ROW("label", STRING, label), .fallback = "label", .placeholder = "KEY",
      .help = "record key of the expected class index, or of the expected value of the output of that name" },
    { TARE_ROW("target", STRING, target_key), .placeholder = "KEY",
      .help = "record key of the expected values of the first output, for regression" },
    { TARE_ROW("metric", CHOICE, metric), .fallback = "auto", .choices = tare_metric_names,
      .help = "measure for the recommendation; auto follows from labels and expected values" },
    TARE_MARGIN_OPTION(struct tare_auto_request, margin, NULL),
    { TARE_ROW("signature", STRING, signature), .placeholder = "S",
      .help = "signature to run (default: serving_default)" },
    { TARE_ROW("overwrite", FLAG, overwrite), .help = "replace an existing output directory" },
    { 0 },
};
#undef TARE_ROW_STRUCT

/* ---- comparing ---- */

static struct tare_option_list samples_of(const struct tare_auto_job *job) {
    return (struct tare_option_list){ .items = (const char **)(uintptr_t)job->task->data, .count = job->task->n_data };
}

static struct tare_option_list evaluation_of(const struct tare_auto_job *job) {
    return job->request->eval.count ? job->request->eval : samples_of(job);
}

static struct tare_compare_task compare_task(const struct tare_auto_job *job) {
    const struct tare_auto_task *task = job->task;
    const struct tare_option_list records = evaluation_of(job);
    return (struct tare_compare_task){ .model = task->model,
                                       .model_name = task->model_name,
                                       .log = task->log,
                                       .ops = task->ops,
                                       .data = records.items,
                                       .n_data = records.count,
                                       .calibration_data = task->data,
                                       .n_calibration_data = task->n_data,
                                       .spec = job->request->records.spec,
                                       .spec_path = job->request->records.spec_path,
                                       .feedback = &job->request->records.feedback,
                                       .output = task->output,
                                       .tpu = job->request->tpu,
                                       .quiet = task->quiet,
                                       .on_progress = task->on_progress,
                                       .progress_arg = task->progress_arg,
                                       .interrupted = task->interrupted };
}

static tare_status compare_request(struct tare_compare_request *out, const struct tare_auto_job *job) {
    const struct tare_auto_request *request = job->request;
    *out = (struct tare_compare_request){ 0 };
    TARE_TRY(tare_options_defaults(out, tare_compare_rows));
    out->label = request->label;
    out->target_key = request->target_key;
    out->metric = request->metric;
    out->margin = request->margin;
    out->signature = request->signature;
    out->threads = job->task->threads;
    if (request->chip) {
        out->chip = request->chip - 1;
        out->chip_batch = request->batch;
    }
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

/* Logs the command that does the same as the step. */
static void log_compare(const struct tare_auto_job *job, const struct tare_compare_request *how) {
    const struct tare_auto_request *request = job->request;
    const struct tare_option_list samples = samples_of(job), records = evaluation_of(job);
    struct tare_strbuf text = { 0 };
    tare_strbuf_shell_word(&text, tare_workflow_model_word(job->task->model, job->task->model_name));
    put_list(&text, how->with.count ? "with" : "data", how->with.count ? &how->with : &samples);
    put_list(&text, "eval", &records);
    put_value(&text, "spec", request->records.spec_path);
    tare_feedback_put(&text, &request->records.feedback);
    put_value(&text, "methods", how->methods);
    if (strcmp(request->label, "label") != 0) put_value(&text, "label", request->label);
    put_value(&text, "target", request->target_key);
    if (request->metric) put_value(&text, "metric", tare_metric_names[request->metric]);
    if (how->margin != TARE_MARGIN) tare_strbuf_printf(&text, " --margin %g", how->margin);
    put_value(&text, "signature", request->signature);
    if (how->automatic) tare_strbuf_puts(&text, " --auto");
    if (how->compile)
        tare_strbuf_printf(&text, " --chip %s --chip-batch %lld --compile", tare_tpu_chip_names[how->chip],
                           (long long)how->chip_batch);
    put_value(&text, "report", how->with.count ? NULL : job->report);
    tare_note(job->task->log, "step: tare compare %s", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

static tare_status write_text(const char *path, struct tare_strbuf *text) {
    const tare_status status =
        text->failed ? TARE_NO_MEMORY : tare_file_write(path, tare_strbuf_text(text), text->size);
    tare_strbuf_free(text);
    return status;
}

static tare_status report(const struct tare_auto_job *job) {
    struct tare_strbuf text = { 0 };
    tare_comparison_html(&text, &job->comparison.result);
    return write_text(job->report, &text);
}

/* Decides what is to be built. A model that failed is listed in the report; the others may still be built. */
static tare_status decide(struct tare_auto_job *job) {
    const struct tare_compare_job *c = &job->comparison;
    const struct tare_verdict verdict = tare_verdict_of(&c->result);
    const struct tare_comparison_row *row = verdict.row;
    if (!row || c->failure == TARE_INTERRUPTED || c->failure == TARE_NO_MEMORY)
        TARE_TRY(tare_workflow_compare_failure(c));
    if (!row)
        return TARE_FAIL(TARE_NOT_FOUND, "no model is recommended, so that nothing is written: %s (see %s)",
                         tare_verdict_remedy(&verdict), job->report);
    job->plan = row->plan ? tare_arena_strdup(&job->arena, row->plan) : NULL;
    job->answers = tare_arena_strdup(&job->arena, row->answers);
    job->uses_samples = row->plan && strstr(row->quantize ? row->quantize : row->convert, " --data ");
    return job->answers && (job->plan || !row->plan) ? TARE_OK : TARE_NO_MEMORY;
}

/* A chip that multiplies float8 faster than integers gets float8, as by compare. */
static const char *methods_of(const struct tare_auto_request *request) {
    if (request->chip && tare_tpu_chip_prefers_float8(&tare_tpu_chips[request->chip - 1]))
        return request->tpu ? "fp8+bfloat16,weight_only+bfloat16,bfloat16" : "fp8,weight_only";
    return request->tpu ? "static+bfloat16,weight_only+bfloat16,bfloat16" : "static,weight_only";
}

/* The result stays, for the report. */
static tare_status compare(struct tare_auto_job *job) {
    struct tare_compare_job *c = &job->comparison;
    job->compare_task = compare_task(job);
    TARE_TRY(compare_request(&job->comparing, job));
    job->comparing.automatic = true;
    job->comparing.methods = methods_of(job->request);
    job->comparing.compile = job->request->chip;
    log_compare(job, &job->comparing);
    TARE_TRY(tare_workflow_compare_open(c, &job->comparing, &job->compare_task));
    TARE_TRY(tare_workflow_compare_run(c));
    if (job->task->on_compared) TARE_TRY(job->task->on_compared(job->task->arg, c));
    TARE_TRY(report(job));
    TARE_TRY(decide(job));
    tare_workflow_compare_release(c);
    return TARE_OK;
}

/* ---- building ---- */

struct build_values {
    struct tare_quantize_request how;
};

static const struct tare_option build_rows[] = {
    TARE_OPTION_NESTED(struct build_values, how, tare_quantize_rows),
    { 0 },
};
static const struct tare_option_set build_set = { .program = "tare auto", .options = build_rows };

struct words {
    char **items;
    int count;
};

static void add_value(struct words *words, const char *option, const char *value) {
    if (!value) return;
    words->items[words->count++] = (char *)(uintptr_t)option;
    words->items[words->count++] = (char *)(uintptr_t)value;
}

/* The options of the quantization, from which it is read, and with which its command is logged. */
static tare_status list_words(struct words *out, struct tare_auto_job *job) {
    const struct tare_auto_task *task = job->task;
    const struct tare_feedback *feedback = &job->request->records.feedback;
    *out =
        (struct words){ .items = TARE_NEW_ARRAY(&job->arena, char *, 2 * (task->n_data + feedback->pairs.count) + 8) };
    if (!out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; job->uses_samples && i < task->n_data; i++)
        add_value(out, "--data", task->data[i]);
    if (job->uses_samples) add_value(out, "--spec", job->request->records.spec_path);
    for (size_t i = 0; job->uses_samples && i < feedback->pairs.count; i++)
        add_value(out, "--feedback", feedback->pairs.items[i]);
    if (job->uses_samples && feedback->pairs.count) add_value(out, "--sequence", feedback->sequence);
    if (job->uses_samples) add_value(out, "--signature", job->request->signature);
    if (job->plan) add_value(out, "--recipe", job->recipe);
    return TARE_OK;
}

static void log_build(const struct tare_auto_job *job, const struct words *words) {
    const struct tare_auto_request *request = job->request;
    struct tare_strbuf text = { 0 };
    tare_strbuf_shell_word(&text, tare_workflow_model_word(job->task->model, job->task->model_name));
    tare_strbuf_putc(&text, ' ');
    tare_strbuf_shell_word(&text, job->task->output);
    for (int i = 0; i < words->count; i++) {
        tare_strbuf_putc(&text, ' ');
        tare_strbuf_shell_word(&text, words->items[i]);
    }
    if (request->tpu) tare_strbuf_puts(&text, " --bfloat16 analysis");
    if (request->overwrite) tare_strbuf_puts(&text, " --overwrite");
    tare_note(job->task->log, "step: tare %s %s", request->tpu ? "convert" : "quantize", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

static tare_status write_model(const struct tare_auto_job *job, const struct tare_auto_built *built) {
    const struct tare_auto_task *task = job->task;
    const struct tare_export_options options = { .overwrite = job->request->overwrite };
    TARE_TRY(tare_saved_model_export(built->model, task->output, &options));
    return task->on_built ? task->on_built(task->arg, built) : TARE_OK;
}

static tare_status quantize(struct tare_auto_job *job, struct tare_graph_model *model,
                            const struct tare_quantize_task *task) {
    struct tare_quantized quantized = { 0 };
    tare_status status = tare_workflow_quantize(&quantized, &job->arena, model, task);
    if (status == TARE_OK) {
        tare_workflow_quantize_log(task->log, &quantized);
        status =
            write_model(job, &(struct tare_auto_built){ .model = model,
                                                        .log = task->log,
                                                        .was_quantized = !task->request->allow_unquantized &&
                                                                         tare_quant_plan_quantizes(&quantized.plan) });
    }
    tare_workflow_quantized_free(&quantized);
    return status;
}

/* Values are rounded to bfloat16 as they were when the model was measured. */
static tare_status read_converter(struct tare_converter_options *out, struct tare_auto_job *job,
                                  const struct tare_graph_model *model, const struct tare_quantize_request *how) {
    TARE_TRY(tare_converter_options_parse(out, &job->arena, "", 0, &how->plan));
    if (tare_workflow_quantize_requested(how)) TARE_TRY(tare_converter_options_quantize(out, &job->arena, &how->plan));
    out->extent = TARE_BF16_ANALYSIS;
    return tare_workflow_convert_find_functions(out, &job->arena, model);
}

static tare_status convert(struct tare_auto_job *job, struct tare_graph_model *model,
                           const struct tare_quantize_task *task) {
    struct tare_converter_options converter;
    const struct tare_convert_options options = { .converter = &converter, .quantize = *task };
    struct tare_converted converted = { 0 };
    tare_status status;
    TARE_TRY(read_converter(&converter, job, model, task->request));
    status = tare_workflow_convert_run(&converted, &job->arena, model, &options);
    tare_workflow_convert_log(task->log, &converted, &converter, status);
    if (status == TARE_OK)
        status = write_model(job, &(struct tare_auto_built){ .model = model,
                                                             .conversion = &converted.conversion,
                                                             .log = task->log,
                                                             .was_quantized = converted.was_quantized });
    tare_workflow_quantized_free(&converted.quantized);
    return status;
}

static tare_status build(struct tare_auto_job *job) {
    const struct tare_auto_task *task = job->task;
    const struct tare_saved_model_options loading = { .ops = task->ops };
    struct build_values values = { 0 };
    const struct tare_quantize_task quantizing = { .request = &values.how,
                                                   .path = task->model,
                                                   .ops = task->ops,
                                                   .log = &job->build_log,
                                                   .quiet = true,
                                                   .speed_is_known = job->request->chip,
                                                   .without_layers = true,
                                                   .interrupted = task->interrupted };
    struct tare_option_outcome outcome;
    struct tare_graph_model *model = NULL;
    struct words words;
    tare_status status;
    job->build_log = tare_warnings_log(&job->comparison.result.warnings, task->build_log);
    TARE_TRY(list_words(&words, job));
    log_build(job, &words);
    TARE_CHECK(tare_options_parse(&values, &outcome, &build_set, words.count, words.items));
    TARE_CHECK(tare_workflow_quantize_open(&values.how, &job->arena));
    TARE_CHECK(tare_saved_model_load(&model, task->model, &loading));
    TARE_CHECK(tare_saved_model_check_values(model, false, &job->build_log));
    status = job->request->tpu ? convert(job, model, &quantizing) : quantize(job, model, &quantizing);
done:
    tare_model_free(model);
    tare_workflow_quantize_close(&values.how);
    tare_options_free(&values, &build_set);
    return status;
}

/* ---- verifying ---- */

static tare_status verify(struct tare_auto_job *job) {
    struct tare_compare_task task = compare_task(job);
    const char *output = job->task->output;
    struct tare_compare_request how;
    struct tare_compare_job c = { 0 };
    tare_status status;
    TARE_TRY(compare_request(&how, job));
    how.with = (struct tare_option_list){ .items = &output, .count = 1 };
    task.n_calibration_data = 0;
    job->log = tare_warnings_log(&job->comparison.result.warnings, job->task->log);
    task.log = &job->log;
    log_compare(job, &how);
    TARE_CHECK(tare_workflow_compare_open(&c, &how, &task));
    TARE_CHECK(tare_workflow_compare_run(&c));
    TARE_CHECK(tare_workflow_compare_failure(&c));
    if (strcmp(c.result.rows[1].answers, job->answers) != 0)
        status = TARE_FAIL(TARE_INTERNAL, "%s: its outputs are not those that were measured", output);
done:
    tare_workflow_compare_close(&c);
    return status;
}

/* ---- the run ---- */

/* "OUT.recipe", without a slash at the end of OUT. */
static const char *beside(struct tare_arena *arena, const char *output, const char *suffix) {
    size_t size = strlen(output);
    while (size > 1 && output[size - 1] == '/')
        size--;
    return tare_arena_printf(arena, "%.*s%s", (int)size, output, suffix);
}

tare_status tare_workflow_auto_open(struct tare_auto_job *out, struct tare_auto_request *request,
                                    const struct tare_auto_task *task) {
    *out = (struct tare_auto_job){ .request = request, .task = task };
    if (!task->n_data) return TARE_FAIL(TARE_USAGE, "missing option '--data'");
    out->recipe = beside(&out->arena, task->output, ".recipe");
    out->report = beside(&out->arena, task->output, ".html");
    out->spec = beside(&out->arena, task->output, ".spec");
    if (!out->recipe || !out->report || !out->spec) return TARE_NO_MEMORY;
    return tare_data_options_open(&request->records);
}

/* What would fail only when the model is written. */
static tare_status check_outputs(const struct tare_auto_job *job) {
    const struct tare_auto_task *task = job->task;
    struct tare_output_rules rules;
    tare_saved_model_output_rules(&rules, task->model, job->request->overwrite);
    TARE_TRY(tare_output_dir_check(task->output, &rules));
    TARE_TRY(tare_output_check_all_apart(job->recipe, task->data, task->n_data));
    TARE_TRY(tare_output_check_all_apart(job->spec, task->data, task->n_data));
    return tare_output_check_all_apart(job->report, task->data, task->n_data);
}

static tare_status write_plan(const struct tare_auto_job *job) {
    struct tare_strbuf text = { 0 };
    if (!job->plan) return TARE_OK;
    tare_strbuf_puts(&text, job->plan);
    return write_text(job->recipe, &text);
}

/* Beside the report, which gets the warnings of these steps, too. */
static tare_status write_results(struct tare_auto_job *job) {
    const struct tare_warnings *warnings = &job->comparison.result.warnings;
    const size_t reported = warnings->count;
    TARE_TRY(write_plan(job));
    TARE_TRY(build(job));
    TARE_TRY(verify(job));
    if (warnings->failed) return TARE_NO_MEMORY;
    return warnings->count > reported ? report(job) : TARE_OK;
}

tare_status tare_workflow_auto_run(struct tare_auto_job *job) {
    TARE_TRY(check_outputs(job));
    TARE_TRY(tare_workflow_auto_find_spec(job));
    TARE_TRY(compare(job));
    const tare_status status = write_results(job);
    if (status == TARE_OK || status == TARE_INTERRUPTED || status == TARE_NO_MEMORY) return status;
    return TARE_FAIL(status, "what was written is complete, but then: %s", tare_error_text());
}

void tare_workflow_auto_close(struct tare_auto_job *job) {
    tare_workflow_compare_close(&job->comparison);
    tare_arena_free(&job->arena);
}
