/* A model does not change: describing and writing it return the same bytes as often as they are called. On the models
 * of the repository, and those of the test data if there are any. */
#include "include/tare/tare.h"

#include "base/alloc.h"
#include "base/file.h"
#include "support/api_check.h"
#include "support/folders.h"
#include "support/models.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a model is, seen from outside. */
struct view {
    char *json;
    int64_t weights;
};

static struct view look(const tare_model *model) {
    struct view view = { .weights = tare_model_weight_size(model) };
    OK(tare_model_describe(&view.json, model));
    return view;
}

static bool same_views(const char *name, struct view *a, struct view *b) {
    const bool same = a->weights == b->weights && strcmp(a->json, b->json) == 0;
    if (a->weights != b->weights)
        print_error("%s: weight size %lld, then %lld\n", name, (long long)a->weights, (long long)b->weights);
    if (strcmp(a->json, b->json) != 0) print_error("%s: another description\n", name);
    tare_text_free(a->json);
    tare_text_free(b->json);
    return same;
}

/* Models that cannot be written (their values are not in the file) fail twice with the same text. */
static bool writes_twice(const tare_model *model) {
    const char *first = temp_path("first"), *second = temp_path("second");
    char text[1024];
    if (tare_model_write(model, first, TARE_WRITE_OVERWRITE) == TARE_OK) {
        OK(tare_model_write(model, second, TARE_WRITE_OVERWRITE));
        return same_folders(first, second);
    }
    snprintf(text, sizeof text, "%s", tare_error_text() + strlen(first));
    return tare_model_write(model, second, TARE_WRITE_OVERWRITE) != TARE_OK &&
           strcmp(text, tare_error_text() + strlen(second)) == 0;
}

static bool stays(const char *name, const tare_model *model) {
    struct view before = look(model);
    const bool written = writes_twice(model);
    struct view after = look(model);
    if (!written) print_error("%s: the second write differs\n", name);
    return same_views(name, &before, &after) && written;
}

/* The number of models below a folder; those that are broken on purpose do not open. */
static int try_folder(const char *folder, int *failed) {
    struct tare_file_list names = { 0 };
    int opened = 0;
    assert_int_equal(tare_file_list(&names, folder), TARE_OK);
    for (size_t i = 0; i < names.count; i++) {
        char *path = tare_path_join(folder, names.names[i]);
        tare_model *model;
        if (tare_model_open(&model, NULL, path) == TARE_OK) {
            opened++;
            *failed += !stays(path, model);
            tare_model_close(model);
        }
        tare_free(path);
    }
    tare_file_list_free(&names);
    return opened;
}

static void opened_model__does_not_change(void **state) {
    int failed = 0;
    (void)state;
    assert_true(try_folder(TARE_SOURCE_DIR "/tests/models", &failed) >= 1);
    assert_true(try_folder(GLYPHS, &failed) >= 1);
    assert_true(try_folder(TARE_SOURCE_DIR "/tests/golden/saved_models", &failed) >= 3);
    if (models_folder()) assert_true(try_folder(models_folder(), &failed) > 50);
    assert_int_equal(failed, 0);
}

static void module_file__does_not_change(void **state) {
    static const char *const folder = TARE_SOURCE_DIR "/tests/golden/stablehlo";
    int failed = 0;
    (void)state;
    assert_true(try_folder(folder, &failed) >= 1);
    assert_int_equal(failed, 0);
}

static void quantized_model__does_not_change(void **state) {
    static const char *const samples = GLYPHS "calibration.tfrecord.gz";
    tare_calibration *calibration;
    tare_model *model, *quantized;
    (void)state;
    OK(tare_model_open(&model, NULL, GLYPHS "saved_model"));
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "limit=20"));
    OK(tare_model_quantize(&quantized, model, "static", calibration, NULL));
    assert_true(stays("quantized", quantized));
    assert_true(stays("original", model));
    tare_model_close(quantized);
    tare_model_close(model);
    tare_calibration_close(calibration);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_model__does_not_change),
        cmocka_unit_test(module_file__does_not_change),
        cmocka_unit_test(quantized_model__does_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
