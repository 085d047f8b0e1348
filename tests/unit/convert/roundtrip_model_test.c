/* The long way round: every function of every real model into the IR and back gives the same messages. */
#include "base/file.h"
#include "convert/export/export.h"
#include "convert/saved_model.h"
#include "convert/source.h"
#include "proto/message.h"
#include "base/alloc.h"
#include "support/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *models;

static bool same_bytes(const ProtobufCMessage *a, const ProtobufCMessage *b) {
    uint8_t *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    bool same = tare_message_pack(&x, &nx, a) == TARE_OK && tare_message_pack(&y, &ny, b) == TARE_OK && nx == ny &&
                memcmp(x, y, nx) == 0;
    tare_free(x);
    tare_free(y);
    return same;
}

/* True when the model's graph comes back the same; models that are broken on purpose do not open. */
static bool round_trip(const char *path, int *opened) {
    struct tare_arena arena = { 0 };
    const Tensorflow__GraphDef *origin;
    Tensorflow__GraphDef *def;
    struct tare_graph_model *model;
    bool same = false;
    if (tare_saved_model_load(&model, path, NULL) != TARE_OK) return true;
    ++*opened;
    origin = tare_source_of(model)->meta->graph_def;
    if (tare_export_graph_def(&def, &arena, model, origin) == TARE_OK) {
        same = true;
        for (size_t i = 0; origin->library && i < origin->library->n_function; i++)
            if (!same_bytes(&def->library->function[i]->base, &origin->library->function[i]->base)) {
                print_error("%s: function %s changed\n", path, origin->library->function[i]->signature->name);
                same = false;
            }
        for (size_t i = 0; i < origin->n_node; i++)
            if (!same_bytes(&def->node[i]->base, &origin->node[i]->base)) {
                print_error("%s: node %s changed\n", path, origin->node[i]->name);
                same = false;
            }
    } else {
        print_error("%s: %s\n", path, tare_error_text());
    }
    tare_model_free(model);
    tare_arena_free(&arena);
    return same;
}

static void round_trip__every_model_comes_back_the_same(void **state) {
    struct tare_file_list names = { 0 };
    int opened = 0, failed = 0;
    (void)state;
    assert_int_equal(tare_file_list(&names, models), TARE_OK);
    for (size_t i = 0; i < names.count; i++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", models, names.names[i]);
        failed += !round_trip(path, &opened);
    }
    tare_file_list_free(&names);
    assert_int_equal(failed, 0);
    assert_true(opened > 80);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(round_trip__every_model_comes_back_the_same) };
    models = test_data("models");
    if (!models) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
