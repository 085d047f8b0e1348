/* Names of the functions of the op set TF: numbered in the order of the layers, without those that the model has. */
#include "support/quantized_model.h"

#include "quant/quantize.h"

#include <stdio.h>

enum { WIDTH = 8, LAYERS = 4 };

static bool has_function(const struct quantized_model *m, int number) {
    char name[64];
    snprintf(name, sizeof name, "quantized_matmul_float_output_fn_%d", number);
    return tare_model_find_function(m->model, name) != NULL;
}

static void op_set_tf__numbers_its_functions(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_static,
                                             .min_elements = 1,
                                             .op_set = TARE_OP_SET_TF };
    struct quantized_model m;
    struct tare_graph *taken;
    (void)state;
    quantized_model_begin(&m, 16, WIDTH, 1, 3);
    struct tare_edge y = m.in;
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        y = mini_node(m.graph, "Tanh", "y", 1,
                      mini_node(m.graph, "MatMul", "layer", 2, y,
                                quantized_model_weight(&m, name, WIDTH, WIDTH, 1, 1, (uint64_t)i + 5)));
    }
    quantized_model_return(&m, y);
    taken = tare_model_add_function(m.model, "quantized_matmul_float_output_fn_1");
    assert_non_null(taken);
    quantized_model_quantize(&m, &options, "");
    assert_int_equal(m.report.quantized, LAYERS);
    for (int i = 0; i <= LAYERS; i++)
        if (!has_function(&m, i)) fail_msg("no function %d", i);
    assert_false(has_function(&m, LAYERS + 1));
    assert_ptr_equal(tare_model_find_function(m.model, "quantized_matmul_float_output_fn_1"), taken);
    assert_int_equal(taken->n_args, 0); /* as it was */
    quantized_model_end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(op_set_tf__numbers_its_functions) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
