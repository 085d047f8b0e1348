/* tare_model_export and tare_model_unwrap. */
#include "api/handles.h"
#include "convert/prepared_model.h"
#include "workflow/model_files/export.h"
#include "workflow/option_text.h"

struct export_values {
    struct tare_export_request how;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct export_values, how, tare_export_rows),
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_export", .options = rows };

static tare_status export_model(const tare_model *model, const char *path, const char *options) {
    const struct tare_log log = tare_public_log(model->context);
    struct export_values values = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_graph_model *prepared = NULL;
    const char *source;
    tare_status status;
    TARE_CHECK(tare_option_text_read(&values, &arena, &set, options));
    TARE_CHECK(tare_workflow_export_check(&values.how, path));
    TARE_CHECK(tare_public_path(&source, model));
    TARE_CHECK(tare_load_prepared_with(&prepared, source, tare_public_ops(model->context)));
    status = tare_workflow_export(prepared, path, &values.how, &log);
done:
    tare_model_free(prepared);
    tare_options_free(&values, &set);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_model_export(const tare_model *model, const char *path, const char *options) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(export_model(model, path, options));
}

tare_status tare_model_unwrap(const tare_model *model, const char *directory, unsigned flags) {
    const struct tare_log log = tare_public_log(model->context);
    bool overwrite;
    tare_public_begin(model->context, model->family);
    tare_status status = tare_public_write_flags(&overwrite, flags);
    if (status == TARE_OK) status = tare_public_check_values(model);
    if (status == TARE_OK) status = tare_workflow_unwrap(model->model, directory, overwrite, &log);
    return tare_public_end(status);
}
