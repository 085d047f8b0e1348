/* What a model costs on a TPU. */
#include "api/handles.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "eval/report/json_text.h"
#include "workflow/check/report.h"
#include "workflow/option_text.h"

struct check_values {
    struct tare_check_request how;
    const char *page;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct check_values, how, tare_check_rows),
    { TARE_OPTION(struct check_values, "page", STRING, page), .placeholder = "FILE",
      .help = "also write an HTML page" },
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_check", .options = rows };

static tare_status describe(char **json, const struct tare_check *check, const char *name,
                            const struct tare_check_request *request) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_json_write(&text, tare_check_json(check, name, request));
    if (status == TARE_OK) status = tare_public_text(json, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status write_page(const struct check_values *values, const struct tare_check *check, const char *name) {
    struct tare_strbuf text = { 0 };
    if (!values->page) return TARE_OK;
    tare_check_html(&text, &values->how, check, name, NULL, NULL);
    const tare_status status =
        text.failed ? TARE_NO_MEMORY : tare_file_write(values->page, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_model_check(char **report, const tare_model *model, const char *options) {
    struct check_values values = { 0 };
    struct tare_check check = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_graph_model *copy = NULL;
    const char *name = tare_public_name(model, "model");
    tare_status status;
    tare_public_begin(model->context, model->family);
    *report = NULL;
    TARE_CHECK(tare_option_text_read(&values, &arena, &set, options));
    TARE_CHECK(tare_workflow_check_open(&values.how));
    TARE_CHECK(tare_public_load(&copy, model));
    TARE_CHECK(tare_workflow_check(&check, copy, &values.how, NULL));
    TARE_CHECK(write_page(&values, &check, name));
    status = describe(report, &check, name, &values.how);
done:
    tare_check_free(&check);
    tare_model_free(copy);
    tare_options_free(&values, &set);
    tare_arena_free(&arena);
    return tare_public_end(status);
}
