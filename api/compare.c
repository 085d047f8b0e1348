/* tare_model_compare. */
#include "base/strbuf.h"
#include "calib/fingerprint.h"
#include "convert/prepared.h"
#include "workflow/compare.h"
#include "workflow/data_options.h"
#include "workflow/option_text.h"
#include "api/handles.h"

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
static tare_status check_calibration(const tare_model *model, const char *path, const tare_calibration *calibration) {
    struct tare_graph_model *prepared;
    tare_status status;
    if (!calibration) return TARE_OK;
    TARE_TRY(tare_load_prepared_with(&prepared, path, tare_public_ops(model->context)));
    status = tare_public_check_calibration(calibration, prepared);
    tare_model_free(prepared);
    return status;
}

static tare_status run(struct tare_strbuf *text, const struct tare_compare_request *how,
                       const struct tare_compare_task *task) {
    struct tare_compare_job comparing;
    tare_status status;
    TARE_CHECK(tare_workflow_compare_open(&comparing, how, task));
    TARE_CHECK(tare_workflow_compare_run(&comparing));
    TARE_CHECK(tare_workflow_compare_failure(&comparing));
    status = tare_comparison_json(text, &comparing.result);
done:
    tare_workflow_compare_close(&comparing);
    return status;
}

tare_status tare_model_compare(char **json, const tare_model *model, const char *const *paths, size_t n_paths,
                               const tare_calibration *calibration, const char *options) {
    const struct tare_context_handle *context = model->context;
    struct compare_values values = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_strbuf text = { 0 };
    const char *path;
    tare_status status;
    tare_public_begin();
    *json = NULL;
    TARE_CHECK(tare_option_text_read(&values, &arena, &set, options));
    TARE_CHECK(tare_data_options_open(&values.records));
    if (!n_paths) TARE_CHECK(TARE_FAIL(TARE_INVALID_ARGUMENT, "no data files"));
    TARE_CHECK(tare_public_path(&path, model));
    TARE_CHECK(check_calibration(model, path, calibration));
    if (!values.how.threads && context) values.how.threads = context->threads;
    const struct tare_compare_task task = { .model = path,
                                            .ops = tare_public_ops(context),
                                            .data = paths,
                                            .n_data = n_paths,
                                            .calibration = calibration ? calibration->calibration : NULL,
                                            .spec = values.records.spec,
                                            .quiet = true,
                                            .on_progress = context ? context->progress : NULL,
                                            .progress_arg = context ? context->progress_arg : NULL,
                                            .interrupted = tare_public_interrupted(context) };
    TARE_CHECK(run(&text, &values.how, &task));
    status = tare_public_text(json, &text);
done:
    tare_strbuf_free(&text);
    tare_data_options_close(&values.records);
    tare_options_free(&values, &set);
    tare_arena_free(&arena);
    return tare_public_end(status);
}
