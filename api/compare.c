/* Comparisons: tare_comparison_open and its reports, and tare_model_compare. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "calib/fingerprint.h"
#include "convert/prepared_model.h"
#include "eval/report/node_data.h"
#include "workflow/compare.h"
#include "workflow/data_options.h"
#include "workflow/option_text.h"
#include "api/handles.h"

#include <math.h>

struct compare_values {
    struct tare_compare_request how;
    struct tare_data_options records;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct compare_values, how, tare_compare_rows),
    TARE_OPTION_NESTED(struct compare_values, records, tare_data_rows),
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_compare", .options = rows };

/* Statistics are matched to tensors by name: those of another model could match by chance. */
static tare_status check_calibration(const tare_model *model, const char *path,
                                     const struct tare_calibration *calibration) {
    struct tare_graph_model *prepared;
    tare_status status;
    if (!calibration) return TARE_OK;
    TARE_TRY(tare_load_prepared_with(&prepared, path, tare_public_ops(model->context)));
    status = tare_public_check_calibration(calibration, prepared);
    tare_model_free(prepared);
    return status;
}

/* ---- metrics of the caller ---- */

/* Passes records and outputs to the caller's metric as arrays. */
struct metric {
    const tare_metric *of;
    struct tare_custom_metric custom;
    tare_array *arrays; /* outputs, then the record */
    size_t capacity;
};

static tare_status metric_failure(const struct metric *metric, tare_status status) {
    return status == TARE_OK
               ? TARE_OK
               : TARE_FAIL(status, "metric %s: the callback failed (%s)", metric->of->name, tare_status_name(status));
}

static tare_status begin_metric(void *arg) {
    const struct metric *metric = arg;
    return metric->of->begin ? metric_failure(metric, metric->of->begin(metric->of->arg)) : TARE_OK;
}

static tare_status add_to_metric(void *arg, const struct tare_comparison *comparison, const struct tare_sample *sample,
                                 const struct tare_tensor *outputs) {
    struct metric *metric = arg;
    const size_t n_outputs = comparison->n_outputs, count = n_outputs + sample->count;
    if (count > metric->capacity) {
        tare_array *grown = tare_realloc(metric->arrays, count, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        metric->arrays = grown;
        metric->capacity = count;
    }
    for (size_t i = 0; i < n_outputs; i++)
        tare_public_array(&metric->arrays[i], comparison->output_keys[i], &outputs[i]);
    tare_public_arrays(metric->arrays + n_outputs, sample);
    return metric_failure(metric, metric->of->record(metric->of->arg, metric->arrays, n_outputs,
                                                     metric->arrays + n_outputs, sample->count));
}

static tare_status end_metric(void *arg, double *value) {
    const struct metric *metric = arg;
    *value = NAN;
    return metric_failure(metric, metric->of->end(metric->of->arg, value));
}

/* Reports use the name after the call. */
static tare_status use_metric(struct metric *out, struct tare_arena *arena, const tare_metric *metric) {
    const char *name;
    TARE_TRY(TARE_PUBLIC_CHECK_STRUCT(tare_metric, metric));
    if (!metric->name || !metric->record || !metric->end)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "tare_metric: name, record and end must be set");
    name = tare_arena_strdup(arena, metric->name);
    if (!name) return TARE_NO_MEMORY;
    out->of = metric;
    out->custom = (struct tare_custom_metric){ .name = name,
                                               .lower_is_better = metric->lower_is_better != 0,
                                               .begin = begin_metric,
                                               .record = add_to_metric,
                                               .end = end_metric,
                                               .arg = out };
    return TARE_OK;
}

/* ---- comparisons ---- */

/* Records of the task: the caller's paths, or a file with the caller's records. */
struct data {
    const char **paths;
    size_t count;
    const char *name; /* of the caller's records; NULL: paths */
    struct tare_public_spool spool;
};

struct tare_comparison_handle {
    struct tare_arena arena; /* strings of options and task */
    struct compare_values values;
    struct tare_log log;
    struct tare_compare_task task;
    struct tare_compare_job job;
    struct metric metric;
    struct data data, samples;
    struct tare_calibration *calibration; /* as it was when the comparison began; NULL: none */
};

static tare_status use_paths(struct data *out, struct tare_arena *arena, const char *const *paths, size_t n_paths) {
    out->paths = TARE_NEW_ARRAY(arena, const char *, n_paths + 1);
    if (!out->paths) return TARE_NO_MEMORY;
    for (; out->count < n_paths; out->count++) {
        out->paths[out->count] = tare_arena_strdup(arena, paths[out->count]);
        if (!out->paths[out->count]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status use_records(struct data *out, struct tare_arena *arena, const tare_records *records,
                               const struct tare_context_handle *context) {
    TARE_TRY(tare_public_check_records(records));
    out->name = tare_arena_strdup(arena, records->name ? records->name : "memory");
    if (!out->name) return TARE_NO_MEMORY;
    TARE_TRY(tare_error_prefix(tare_public_spool_write(&out->spool, records, out->name, context), "%s", out->name));
    return use_paths(out, arena, (const char *const *)&out->spool.path, 1);
}

/* Sets evaluation data and samples of the task. */
static tare_status use_data(tare_comparison *c, const struct tare_context_handle *context,
                            const tare_comparison_task *task) {
    if ((task->records && task->n_paths) || (task->sample_records && task->n_samples))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "paths and records exclude each other");
    if (!task->records && !task->n_paths) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no data files");
    if (task->calibration && (task->sample_records || task->n_samples))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a calibration and samples exclude each other");
    TARE_TRY(task->records ? use_records(&c->data, &c->arena, task->records, context)
                           : use_paths(&c->data, &c->arena, task->paths, task->n_paths));
    TARE_TRY(task->sample_records ? use_records(&c->samples, &c->arena, task->sample_records, context)
                                  : use_paths(&c->samples, &c->arena, task->samples, task->n_samples));
    c->task.data = c->data.paths;
    c->task.n_data = c->data.count;
    c->task.data_name = c->data.name;
    c->task.calibration_data = c->samples.paths;
    c->task.n_calibration_data = c->samples.count;
    c->task.calibration_data_name = c->samples.name;
    return TARE_OK;
}

static tare_status use_settings(tare_comparison *c, const tare_model *model, const tare_comparison_task *task) {
    const struct tare_context_handle *context = model->context;
    const char *path, *name;
    TARE_TRY(TARE_PUBLIC_CHECK_STRUCT(tare_comparison_task, task));
    TARE_TRY(tare_option_text_read(&c->values, &c->arena, &set, task->options));
    TARE_TRY(tare_data_options_open(&c->values.records));
    TARE_TRY(tare_public_path(&path, model));
    c->calibration = tare_public_contents(task->calibration);
    TARE_TRY(check_calibration(model, path, c->calibration));
    if (task->metric) TARE_TRY(use_metric(&c->metric, &c->arena, task->metric));
    if (!c->values.how.threads && context) c->values.how.threads = context->threads;
    c->log = tare_public_log(context);
    name = tare_public_report_name(model);
    if (name && !(name = tare_arena_strdup(&c->arena, name))) return TARE_NO_MEMORY;
    c->task = (struct tare_compare_task){ .model = tare_arena_strdup(&c->arena, path),
                                          .model_name = name,
                                          .ops = tare_public_ops(context),
                                          .metric = task->metric ? &c->metric.custom : NULL,
                                          .calibration = c->calibration,
                                          .spec = c->values.records.spec,
                                          .spec_path = c->values.records.spec_path,
                                          .feedback = &c->values.records.feedback,
                                          .quiet = true,
                                          .on_progress = tare_public_progress(context),
                                          .progress_arg = (void *)(uintptr_t)context,
                                          .log = &c->log,
                                          .interrupted = tare_public_interrupted(context) };
    return c->task.model ? use_data(c, context, task) : TARE_NO_MEMORY;
}

static tare_status run(tare_comparison *c, const tare_model *model, const tare_comparison_task *task) {
    TARE_TRY(use_settings(c, model, task));
    TARE_TRY(tare_workflow_compare_open(&c->job, &c->values.how, &c->task));
    TARE_TRY(tare_workflow_compare_run(&c->job));
    return tare_workflow_compare_failure(&c->job);
}

static tare_status open_comparison(tare_comparison **out, const tare_model *model, const tare_comparison_task *task) {
    tare_comparison *c = tare_calloc(1, sizeof *c);
    tare_status status;
    *out = NULL;
    if (!c) return TARE_NO_MEMORY;
    status = run(c, model, task);
    tare_public_spool_remove(&c->data.spool);
    tare_public_spool_remove(&c->samples.spool);
    if (status == TARE_OK)
        *out = c;
    else
        tare_comparison_close(c);
    return status;
}

tare_status tare_comparison_open(tare_comparison **out, const tare_model *model, const tare_comparison_task *task) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(open_comparison(out, model, task));
}

void tare_comparison_close(tare_comparison *c) {
    if (!c) return;
    tare_workflow_compare_close(&c->job);
    tare_data_options_close(&c->values.records);
    tare_options_free(&c->values, &set);
    tare_calibration_free(c->calibration);
    tare_free(c->metric.arrays);
    tare_arena_free(&c->arena);
    tare_free(c);
}

/* ---- reports ---- */

static void put_text(struct tare_strbuf *out, const struct tare_compare_job *job) {
    tare_comparison_table(out, &job->result);
    if (job->options->automatic) tare_workflow_autotune_table(out, &job->automatic);
    tare_comparison_verdict(out, &job->result);
    for (size_t i = 0; i < job->result.warnings.count; i++)
        tare_strbuf_printf(out, "warning: %s\n", job->result.warnings.texts[i]);
}

static tare_status report(char **out, const tare_comparison *c, int format) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    *out = NULL;
    switch (format) {
    case TARE_COMPARISON_JSON:
        status = tare_comparison_json(&text, &c->job.result);
        break;
    case TARE_COMPARISON_HTML:
        tare_comparison_html(&text, &c->job.result);
        break;
    case TARE_COMPARISON_CSV:
        tare_comparison_csv(&text, &c->job.result);
        break;
    case TARE_COMPARISON_TEXT:
        put_text(&text, &c->job);
        break;
    case TARE_COMPARISON_NODE_DATA:
        status = tare_comparison_node_data(&text, &c->job.result);
        break;
    default:
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "unknown format %d", format);
    }
    if (status == TARE_OK) status = tare_public_text(out, &text);
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_comparison_report(char **text, const tare_comparison *comparison, int format) {
    tare_public_begin(NULL, 0);
    return tare_public_end(report(text, comparison, format));
}

static tare_status compare(char **json, const tare_model *model, const tare_comparison_task *task) {
    tare_comparison *comparison;
    tare_status status;
    *json = NULL;
    TARE_TRY(open_comparison(&comparison, model, task));
    status = report(json, comparison, TARE_COMPARISON_JSON);
    tare_comparison_close(comparison);
    return status;
}

tare_status tare_model_compare(char **json, const tare_model *model, const char *const *paths, size_t n_paths,
                               const tare_calibration *calibration, const char *options) {
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = paths, .n_paths = n_paths, .calibration = calibration, .options = options
    };
    tare_public_begin(model->context, model->family);
    return tare_public_end(compare(json, model, &task));
}
