/* tare_model_auto: what it writes, logs and reports, and what it refuses before it works. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const samples = GLYPHS "calibration.tfrecord.gz";
static const char *const evaluation = "eval=" GLYPHS "eval.tfrecord.gz";

/* What the callbacks of the context have received. */
struct heard {
    tare_context *context;
    char steps[256]; /* the commands of the steps: "compare quantize compare " */
    int64_t reports; /* of progress */
    int cancels;     /* the first report of progress cancels the call */
};

static void on_log(void *arg, enum tare_log_level level, const char *text) {
    struct heard *heard = arg;
    const size_t size = strlen(heard->steps);
    char command[32];
    if (level == TARE_LOG_NOTE && sscanf(text, "step: tare %31s", command) == 1)
        snprintf(heard->steps + size, sizeof heard->steps - size, "%s ", command);
}

static void on_progress(void *arg, const char *what, int64_t done, int64_t total) {
    struct heard *heard = arg;
    (void)what;
    (void)done;
    (void)total;
    heard->reports++;
    if (heard->cancels) tare_context_cancel(heard->context, 1);
}

static tare_model *open_glyphs(struct heard *heard) {
    tare_model *model;
    OK(tare_context_open(&heard->context));
    tare_context_on_log(heard->context, TARE_LOG_NOTE, on_log, heard);
    tare_context_on_progress(heard->context, on_progress, heard);
    OK(tare_model_open(&model, heard->context, GLYPHS "saved_model"));
    return model;
}

static void close_all(const struct heard *heard, tare_model *model) {
    tare_model_close(model);
    tare_context_close(heard->context);
}

static int exists(const char *name) {
    return access(temp_path(name), F_OK) == 0;
}

static const char *options_with(const char *more) {
    static char text[4096];
    snprintf(text, sizeof text, "%s %s", evaluation, more);
    return text;
}

static void auto__writes_what_was_measured_and_the_plan_beside_it(void **state) {
    struct heard heard = { 0 };
    tare_model *model = open_glyphs(&heard), *made;
    char *json;
    (void)state;
    OK(tare_model_auto(&json, model, temp_path("int8"), &samples, 1, evaluation));
    assert_string_equal(heard.steps, "compare quantize compare ");
    assert_true(heard.reports > 0);
    assert_non_null(strstr(json, "\"records\": 1000"));
    assert_non_null(strstr(json, "\"recommended\": true"));
    tare_text_free(json);
    assert_true(exists("int8.recipe"));
    assert_true(exists("int8.html"));
    OK(tare_model_open(&made, heard.context, temp_path("int8")));
    assert_true(tare_model_weight_size(made) < tare_model_weight_size(model) / 2);
    tare_model_close(made);
    REFUSED(tare_model_auto(&json, model, temp_path("int8"), &samples, 1, evaluation), TARE_ERROR_INVALID_ARGUMENT,
            "already exists");
    assert_null(json);
    assert_string_equal(heard.steps, "compare quantize compare "); /* refused before any work */
    close_all(&heard, model);
}

static void auto_for_tpu__converts_and_replaces(void **state) {
    struct heard heard = { 0 };
    tare_model *model = open_glyphs(&heard), *same, *made;
    char *json;
    (void)state;
    OK(tare_model_write(model, temp_path("tpu"), 0));
    OK(tare_model_quantize(&same, model, "float", NULL, NULL));
    OK(tare_model_auto(&json, same, temp_path("tpu"), &samples, 1, options_with("tpu overwrite")));
    assert_non_null(strstr(json, "\"model\": \"model\"")); /* has no path */
    assert_non_null(strstr(json, "tare convert MODEL "));
    tare_text_free(json);
    tare_model_close(same);
    assert_string_equal(heard.steps, "compare convert compare ");
    OK(tare_model_open(&made, heard.context, temp_path("tpu")));
    OK(tare_model_describe(&json, made));
    assert_non_null(strstr(json, "\"TPUPartitionedCall\""));
    tare_text_free(json);
    tare_model_close(made);
    close_all(&heard, model);
}

static void auto__refuses_wrong_arguments_and_writes_nothing_when_cancelled(void **state) {
    struct heard heard = { .cancels = 1 };
    tare_model *model = open_glyphs(&heard);
    const char *const missing = temp_path("missing.tfrecord");
    (void)state;
    REFUSED(tare_model_auto(NULL, model, temp_path("none"), NULL, 0, NULL), TARE_ERROR_INVALID_ARGUMENT,
            "no data files");
    REFUSED(tare_model_auto(NULL, model, temp_path("none"), &samples, 1, "margn=1"), TARE_ERROR_USAGE,
            "did you mean '--margin'?");
    REFUSED(tare_model_auto(NULL, model, temp_path("none"), &missing, 1, NULL), TARE_ERROR_NOT_FOUND,
            "missing.tfrecord");
    REFUSED(tare_model_auto(NULL, model, temp_path("none"), &samples, 1, evaluation), TARE_ERROR_INTERRUPTED,
            "interrupted");
    assert_false(exists("none"));
    assert_false(exists("none.recipe"));
    close_all(&heard, model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto__writes_what_was_measured_and_the_plan_beside_it),
        cmocka_unit_test(auto_for_tpu__converts_and_replaces),
        cmocka_unit_test(auto__refuses_wrong_arguments_and_writes_nothing_when_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
