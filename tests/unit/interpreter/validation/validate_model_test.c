/* Models that other people's TensorFlow wrote: the validator finds no fault but the known ones, and shapes of every
 * function can be inferred. */
#include "convert/saved_model.h"
#include "interpreter/inference/infer.h"
#include "interpreter/validation/validate.h"
#include "support/models.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Models with faults of their own, and the words that all of these hold. */
static const struct {
    const char *model, *words;
} known[] = {
    { "scisharp-example1", "has no value in the checkpoint" }, /* exported without its checkpoint */
    { "serving-half-three", "tensor has string, declared float32" },
    { "tf-batchfunction", "BatchFunction" }, /* a graph made to crash TensorFlow */
    { "tf-bert1", "has no value in the checkpoint" },
    { "tf-bert2", "has no value in the checkpoint" },
};

static const char *known_words(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].model, name) == 0) return known[i].words;
    return NULL;
}

static size_t report_faults(const char *name, const struct tare_graph_model *model) {
    struct tare_faults faults = { 0 };
    const char *words = known_words(name);
    size_t unexpected = 0;
    assert_int_equal(tare_model_validate(&faults, model, NULL), TARE_OK);
    for (size_t i = 0; i < faults.count; i++) {
        if (words && strstr(faults.items[i], words)) continue;
        print_error("%s: %s\n", name, faults.items[i]);
        unexpected++;
    }
    if (words && !faults.count) {
        print_error("%s: no fault was found (expected: %s)\n", name, words);
        unexpected++;
    }
    tare_faults_free(&faults);
    return unexpected;
}

static size_t report_shapes(const char *name, const struct tare_graph_model *model) {
    struct tare_arena arena = { 0 };
    size_t unexpected = 0;
    for (size_t i = 0; i <= model->n_functions; i++) {
        const struct tare_graph *graph = i ? model->functions[i - 1] : model->main;
        struct tare_shape **shapes;
        if (tare_graph_infer_shapes(&shapes, &arena, graph, NULL) == TARE_OK || known_words(name)) continue;
        print_error("%s: %s: %s\n", name, graph->name, tare_error_text());
        unexpected++;
    }
    tare_arena_free(&arena);
    return unexpected;
}

static void real_models__are_sound_and_their_shapes_are_inferred(void **state) {
    const char *root = *state;
    size_t seen = 0, unexpected = 0;
    struct dirent *entry;
    DIR *folder = opendir(root);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char path[1024];
        struct tare_graph_model *model;
        if (*entry->d_name == '.') continue;
        snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
        if (tare_saved_model_load(&model, path, NULL) != TARE_OK) continue; /* the importer's tests speak of these */
        unexpected += report_faults(entry->d_name, model);
        unexpected += report_shapes(entry->d_name, model);
        tare_model_free(model);
        seen++;
    }
    closedir(folder);
    if (seen < 50) fail_msg("%zu models were read (expected at least 50)", seen);
    assert_int_equal(unexpected, 0);
}

int main(void) {
    const char *root = test_data("models");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(real_models__are_sound_and_their_shapes_are_inferred, (void *)root),
    };
    return root ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}
