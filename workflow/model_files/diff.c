/* Differences of two models, of arrays or of reports. */
#include "workflow/model_files/diff.h"
#include "base/file.h"
#include "convert/model_hint.h"
#include "eval/array_diff.h"
#include "eval/model_diff.h"
#include "eval/report/report_diff.h"

enum { SHOWN_WEIGHTS = 20 };

tare_status tare_workflow_diff_kind(enum tare_diff_kind *out, const char *first, const char *second) {
    const bool arrays[] = { tare_array_diff_is_arrays(first), tare_array_diff_is_arrays(second) };
    if ((arrays[0] && tare_is_saved_model_folder(second)) || (arrays[1] && tare_is_saved_model_folder(first)))
        return TARE_FAIL(TARE_USAGE, "%s and %s: a SavedModel and arrays (expected two of one kind)", first, second);
    if (arrays[0] || arrays[1])
        *out = TARE_DIFF_ARRAYS;
    else if (tare_file_kind_of(first) == TARE_FILE_REGULAR && tare_file_kind_of(second) == TARE_FILE_REGULAR)
        *out = TARE_DIFF_REPORTS;
    else
        *out = TARE_DIFF_MODELS;
    return TARE_OK;
}

tare_status tare_workflow_diff_models(struct tare_diff_texts *out, const struct tare_diff_request *request,
                                      const struct tare_graph_model *first, const char *first_name,
                                      const struct tare_graph_model *second, const char *second_name) {
    struct tare_model_diff diff = { 0 };
    tare_status status;
    TARE_CHECK(tare_model_diff_make(&diff, first, first_name, second, second_name));
    diff.text_width = request->text_width;
    if (request->text) tare_model_diff_text(&out->text, &diff, request->all ? 0 : SHOWN_WEIGHTS);
    if (request->html) tare_model_diff_html(&out->html, &diff);
    if (request->json) status = tare_model_diff_json(&out->json, &diff);
done:
    tare_model_diff_free(&diff);
    return status;
}

static tare_status diff_arrays(struct tare_diff_texts *out, const struct tare_diff_request *request, const char *first,
                               const char *second) {
    struct tare_array_diff diff = { 0 };
    tare_status status;
    TARE_CHECK(tare_array_diff_make(&diff, first, second));
    diff.text_width = request->text_width;
    if (request->text) tare_array_diff_text(&out->text, &diff);
    if (request->html) tare_array_diff_html(&out->html, &diff);
    if (request->json) status = tare_array_diff_json(&out->json, &diff);
done:
    tare_array_diff_free(&diff);
    return status;
}

tare_status tare_workflow_diff_files(struct tare_diff_texts *out, const struct tare_diff_request *request,
                                     enum tare_diff_kind kind, const char *first, const char *second) {
    if (kind == TARE_DIFF_ARRAYS) return diff_arrays(out, request, first, second);
    if (request->text) TARE_TRY(tare_report_diff_text(&out->text, first, second));
    if (request->html) TARE_TRY(tare_report_diff_html(&out->html, first, second));
    return request->json ? tare_report_diff_json(&out->json, first, second) : TARE_OK;
}

void tare_diff_texts_free(struct tare_diff_texts *texts) {
    tare_strbuf_free(&texts->text);
    tare_strbuf_free(&texts->json);
    tare_strbuf_free(&texts->html);
}
