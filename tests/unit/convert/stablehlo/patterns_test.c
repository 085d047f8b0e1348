/* Compositions of StableHLO ops that become one TensorFlow op: the ops of the imported graph, and the results, which
 * the module itself compares with those of numpy (tests/golden/stablehlo.py). */
#include "support/graph_check.h"
#include "support/mini_model.h"

#include "base/alloc.h"
#include "base/file.h"
#include "convert/pass.h"
#include "convert/saved_model.h"

#include <stdio.h>
#include <string.h>

static struct tare_graph_model *load(void) {
    struct tare_graph_model *model;
    size_t changes = 0;
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/stablehlo/patterns.mlirbc", TARE_SOURCE_DIR);
    mini_ok(tare_saved_model_load(&model, path, NULL));
    assert_null(model->module_error);
    mini_ok(tare_pass_prune.run(model, &changes));
    return model;
}

static void patterns__compute_what_numpy_does(void **state) {
    struct tare_graph_model *model = load();
    struct tare_session *session = mini_session(model);
    struct tare_tensor input, output;
    struct tare_shape shape = tare_shape_make(4, 2, 6, 6, 4);
    char path[512], *data;
    size_t size;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/stablehlo/patterns.f32", TARE_SOURCE_DIR);
    mini_ok(tare_file_read(&data, &size, path));
    assert_int_equal(size, 2 * 6 * 6 * 4 * sizeof(float));
    mini_ok(tare_tensor_from(&input, TARE_DT_FLOAT, &shape, data));
    mini_ok(tare_session_run_signature(session, &model->signatures[0], &input, &output));
    tare_tensor_reset(&input);
    tare_tensor_reset(&output);
    tare_free(data);
    tare_session_free(session);
    tare_model_free(model);
}

/* Each once for the composition that matches, none for the one that is almost the same; those stay what they were. */
static void patterns__are_one_op_each(void **state) {
    static const struct {
        const char *op;
        int count;
    } expected[] = { { "Softmax", 1 }, { "LogSoftmax", 1 }, { "MaxPool", 3 },         { "AvgPool", 3 },
                     { "Mean", 2 },    { "Relu6", 1 },      { "XlaReduceWindow", 3 }, { "FusedBatchNormV3", 1 },
                     { "Squeeze", 1 }, { "XlaGather", 3 } };
    struct tare_graph_model *model = load();
    const struct tare_graph *graph = tare_model_find_function(model, "stablehlo_main");
    (void)state;
    assert_non_null(graph);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if ((int)graph_count(graph, expected[i].op) != expected[i].count)
            fail_msg("%d nodes of %s (expected %d)", (int)graph_count(graph, expected[i].op), expected[i].op,
                     expected[i].count);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns__compute_what_numpy_does),
        cmocka_unit_test(patterns__are_one_op_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
