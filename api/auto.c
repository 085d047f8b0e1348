/* tare_model_auto. */
#include "base/strbuf.h"
#include "workflow/auto.h"
#include "workflow/option_text.h"
#include "api/handles.h"

struct auto_values {
    struct tare_auto_request how;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct auto_values, how, tare_auto_rows),
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_auto", .options = rows };

static tare_status describe(char **json, const struct tare_compare_job *comparison) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_comparison_json(&text, &comparison->result);
    if (status == TARE_OK) status = tare_public_text(json, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status run(char **report, const struct tare_auto_task *task, struct tare_auto_request *request) {
    struct tare_auto_job job;
    tare_status status = tare_workflow_auto_open(&job, request, task);
    if (status == TARE_OK) status = tare_workflow_auto_run(&job);
    if (status == TARE_OK && report) status = describe(report, &job.comparison);
    tare_workflow_auto_close(&job);
    return status;
}

static tare_status make(char **report, const tare_model *model, const char *directory, const char *const *paths,
                        size_t n_paths, const char *options) {
    const struct tare_context_handle *context = model->context;
    const struct tare_log log = tare_public_log(context);
    struct tare_auto_task task = { .output = directory,
                                   .ops = tare_public_ops(context),
                                   .data = paths,
                                   .n_data = n_paths,
                                   .threads = context ? context->threads : 0,
                                   .quiet = true,
                                   .on_progress = tare_public_progress(context),
                                   .progress_arg = (void *)(uintptr_t)context,
                                   .log = &log,
                                   .build_log = &log,
                                   .interrupted = tare_public_interrupted(context) };
    struct auto_values values = { 0 };
    struct tare_arena arena = { 0 };
    tare_status status;
    if (report) *report = NULL;
    if (!n_paths) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no data files");
    TARE_CHECK(tare_option_text_read(&values, &arena, &set, options));
    TARE_CHECK(tare_public_path(&task.model, model));
    task.model_name = tare_public_report_name(model);
    status = run(report, &task, &values.how);
done:
    if (status != TARE_OK && report) {
        tare_text_free(*report);
        *report = NULL;
    }
    tare_data_options_close(&values.how.records);
    tare_options_free(&values, &set);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_model_auto(char **report, const tare_model *model, const char *directory, const char *const *paths,
                            size_t n_paths, const char *options) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(make(report, model, directory, paths, n_paths, options));
}
