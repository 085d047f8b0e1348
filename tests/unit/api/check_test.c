/* tare_model_check: the compiler's report, the estimate without it, and what it refuses. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char *checked(const char *options) {
    static char kept[1 << 16];
    tare_model *model;
    char *report;
    OK(tare_model_open(&model, NULL, GLYPHS "saved_model"));
    OK(tare_model_check(&report, model, options));
    snprintf(kept, sizeof kept, "%s", report);
    tare_text_free(report);
    tare_model_close(model);
    return kept;
}

static void report__is_the_compilers(void **state) {
    const char *path = temp_path("compiler"), *json;
    FILE *file = fopen(path, "w");
    (void)state;
    assert_non_null(file);
    fputs("#!/bin/sh\necho '{\"ok\": true, \"compiler\": \"fake '$1'\", \"cycles\": 123, \"products\": {}, \"memory\": "
          "{}, "
          "\"ops\": []}'\n",
          file);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    setenv("TARE_TPU_COMPILER", path, 1);
    json = checked("chip=v6e batch=32");
    assert_non_null(strstr(json, "\"compiler\": \"fake v6e\""));
    assert_non_null(strstr(json, "\"cycles\": 123"));
    assert_non_null(strstr(json, "\"batch\": 32"));
    assert_non_null(strstr(checked("estimate"), "\"compiler\": null"));
    char options[256], text[1 << 16];
    snprintf(options, sizeof options, "chip=v6e page=%s", temp_path("page.html"));
    checked(options);
    file = fopen(temp_path("page.html"), "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, "compiles for a Cloud TPU v6e with fake v6e"));
}

static void without_compiler__is_the_estimate(void **state) {
    (void)state;
    setenv("TARE_TPU_COMPILER", "/does/not/exist", 1);
    assert_non_null(
        strstr(checked(NULL), "\"estimated_because\": \"the command of TARE_TPU_COMPILER does not exist\""));
}

static void unknown_options__are_refused(void **state) {
    tare_model *model;
    char *report;
    (void)state;
    OK(tare_model_open(&model, NULL, GLYPHS "saved_model"));
    REFUSED(tare_model_check(&report, model, "chips=v6e"), TARE_ERROR_USAGE, "chip");
    assert_null(report);
    REFUSED(tare_model_check(&report, model, "signature=none estimate"), TARE_ERROR_NOT_FOUND, "none");
    REFUSED(tare_model_check(&report, model, "signature=none estimate shape=image"), TARE_ERROR_USAGE,
            "--shape image:");
    tare_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report__is_the_compilers),
        cmocka_unit_test(without_compiler__is_the_estimate),
        cmocka_unit_test(unknown_options__are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
