/* tare_model_diff and tare_diff. */
#include "api/handles.h"
#include "convert/saved_model.h"
#include "workflow/model_files/diff.h"
#include "workflow/option_text.h"

struct diff_values {
    bool html, text, all;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct diff_values, "html", FLAG, html), .help = "a page instead of JSON" },
    { TARE_OPTION(struct diff_values, "text", FLAG, text), .help = "tables instead of JSON" },
    { TARE_OPTION(struct diff_values, "all", FLAG, all), .needs = "text",
      .help = "list every weight and number that differs" },
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_diff", .options = rows };

static tare_status read_options(struct tare_diff_request *out, struct tare_arena *arena, const char *text) {
    struct diff_values values;
    TARE_TRY(tare_option_text_read(&values, arena, &set, text));
    if (values.html && values.text) return TARE_FAIL(TARE_USAGE, "html and text exclude each other");
    *out = (struct tare_diff_request){
        .text = values.text, .html = values.html, .json = !values.text && !values.html, .all = values.all
    };
    return TARE_OK;
}

static tare_status hand_out(char **out, const struct tare_diff_request *request, const struct tare_diff_texts *texts) {
    return tare_public_text(out, request->html ? &texts->html : request->text ? &texts->text : &texts->json);
}

/* ---- of handles ---- */

static tare_status diff_models(char **out, const tare_model *first, const tare_model *second, const char *options) {
    struct tare_diff_request request;
    struct tare_diff_texts texts = { 0 };
    struct tare_arena arena = { 0 };
    tare_status status;
    *out = NULL;
    TARE_CHECK(read_options(&request, &arena, options));
    TARE_CHECK(tare_public_index(first));
    TARE_CHECK(tare_public_index(second));
    TARE_CHECK(tare_workflow_diff_models(&texts, &request, first->model, tare_public_name(first, "first"),
                                         second->model, tare_public_name(second, "second")));
    status = hand_out(out, &request, &texts);
done:
    tare_diff_texts_free(&texts);
    tare_arena_free(&arena);
    return status;
}

/* A file of the second model that became shorter is of another family than the call's. */
static tare_status check_files(const tare_model *model) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(TARE_OK);
}

tare_status tare_model_diff(char **text, const tare_model *first, const tare_model *second, const char *options) {
    tare_public_begin(first->context, first->family);
    tare_status status = diff_models(text, first, second, options);
    if (status == TARE_OK) status = check_files(second);
    if (status != TARE_OK) {
        tare_text_free(*text);
        *text = NULL;
    }
    return tare_public_end(status);
}

/* ---- of paths ---- */

static tare_status diff_folders(struct tare_diff_texts *texts, const struct tare_diff_request *request,
                                const struct tare_saved_model_options *open, const char *first, const char *second) {
    struct tare_graph_model *models[2] = { NULL, NULL };
    tare_status status = tare_saved_model_load(&models[0], first, open);
    if (status == TARE_OK) status = tare_saved_model_load(&models[1], second, open);
    if (status == TARE_OK) status = tare_workflow_diff_models(texts, request, models[0], first, models[1], second);
    tare_model_free(models[0]);
    tare_model_free(models[1]);
    return status;
}

static tare_status diff_paths(char **out, const struct tare_context_handle *context, const char *first,
                              const char *second, const char *options) {
    const struct tare_saved_model_options open = { .ops = tare_public_ops(context) };
    struct tare_diff_request request;
    struct tare_diff_texts texts = { 0 };
    struct tare_arena arena = { 0 };
    enum tare_diff_kind kind;
    tare_status status;
    *out = NULL;
    TARE_CHECK(read_options(&request, &arena, options));
    TARE_CHECK(tare_workflow_diff_kind(&kind, first, second));
    TARE_CHECK(kind == TARE_DIFF_MODELS ? diff_folders(&texts, &request, &open, first, second)
                                        : tare_workflow_diff_files(&texts, &request, kind, first, second));
    status = hand_out(out, &request, &texts);
done:
    tare_diff_texts_free(&texts);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_diff(char **text, tare_context *context, const char *first, const char *second, const char *options) {
    tare_public_begin(context, 0);
    return tare_public_end(diff_paths(text, context, first, second, options));
}
