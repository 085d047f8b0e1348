/* tare_validate. */
#include "api/handles.h"
#include "base/strbuf.h"
#include "convert/validation/validate.h"
#include "workflow/model_files/validation_json.h"

static tare_status validate(char **report, int *valid, const struct tare_context_handle *context, const char *directory,
                            const char *tags) {
    struct tare_saved_model_options options = { .ops = tare_public_ops(context) };
    struct tare_faults faults = { 0 };
    struct tare_strbuf text = { 0 };
    struct tare_arena arena = { 0 };
    tare_status status;
    *report = NULL;
    if (tags) TARE_CHECK(tare_public_tags(&options, &arena, tags));
    TARE_CHECK(tare_saved_model_validate(&faults, directory, &options));
    TARE_CHECK(tare_workflow_validation_json(&text, directory, &faults));
    TARE_CHECK(tare_public_text(report, &text));
    if (valid) *valid = faults.count == 0;
done:
    tare_strbuf_free(&text);
    tare_faults_free(&faults);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_validate(char **report, int *valid, tare_context *context, const char *directory, const char *tags) {
    tare_public_begin(context, 0);
    if (valid) *valid = 0;
    return tare_public_end(validate(report, valid, context, directory, tags));
}
