/* Weight-only quantization of one product whose weights are integers with 127 in every column: scale 1, nothing is
 * lost. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <string.h>

enum { K = 3, N = 2 };
static const float weights[K * N] = { 127, -127, 5, 0, -64, 33 };

struct product {
    struct tare_graph_model *model;
    struct tare_graph *function;
    struct tare_edge x, y;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static void product_quantize(struct product *p, int64_t min_elements) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = min_elements };
    struct tare_shape shape = { .rank = 2, .dims = { K, N } };
    struct tare_tensor w;
    memset(p, 0, sizeof *p);
    p->model = mini_model_new();
    p->function = tare_model_add_function(p->model, "f");
    struct tare_edge x = mini_arg(p->function, "x", TARE_DT_FLOAT);
    mini_ok(tare_tensor_from(&w, TARE_DT_FLOAT, &shape, weights));
    struct tare_edge c = { tare_graph_add_const(p->function, "w", &w), 0 };
    tare_tensor_reset(&w);
    mini_return(p->function, "y", mini_node(p->function, "MatMul", "product", 2, x, c));
    p->x = mini_placeholder(p->model->main, "in", TARE_DT_FLOAT);
    p->y = mini_call(p->model->main, "PartitionedCall", "call", p->function, 1, p->x);
    mini_ok(tare_quantize(&p->report, &p->arena, p->model, NULL, &options));
}

static void product_free(struct product *p) {
    tare_model_free(p->model);
    tare_arena_free(&p->arena);
}

static size_t count_op(const struct tare_graph *graph, const char *op) {
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        count += strcmp(graph->nodes[i]->op, op) == 0;
    return count;
}

static void matmul__becomes_xla_dot_with_int8_weight(void **state) {
    struct product p;
    (void)state;
    product_quantize(&p, 1);
    assert_int_equal(p.report.quantized, 1);
    assert_int_equal(count_op(p.function, "MatMul"), 0);
    assert_int_equal(count_op(p.function, "XlaDotV2"), 1);
    assert_true(p.report.outcomes[0].weight_scale_max == 1);
    for (size_t i = 0; i < p.function->n_nodes; i++) {
        const struct tare_node *node = p.function->nodes[i];
        if (strcmp(node->op, "XlaDotV2") != 0) continue;
        assert_int_equal(tare_edge_dtype(node->inputs[0]), TARE_DT_FLOAT);
        assert_int_equal(tare_edge_dtype(node->inputs[1]), TARE_DT_INT8);
        const struct tare_tensor *w = tare_edge_constant(node->inputs[1]);
        for (int j = 0; j < K * N; j++)
            assert_int_equal(TARE_CONST_DATA(int8_t, w)[j], (int)weights[j]);
    }
    product_free(&p);
}

static void matmul__keeps_its_product(void **state) {
    const float x[K] = { 0.5f, -2, 3 }; /* every product and sum is exact in float32 */
    struct tare_shape shape = { .rank = 2, .dims = { 1, K } };
    struct tare_tensor fed, result;
    struct product p;
    (void)state;
    product_quantize(&p, 1);
    mini_ok(tare_tensor_from(&fed, TARE_DT_FLOAT, &shape, x));
    struct tare_session *session = mini_session(p.model);
    mini_ok(tare_session_run(session, &p.x, &fed, 1, &p.y, &result, 1, NULL, 0));
    for (int n = 0; n < N; n++) {
        float expected = 0;
        for (int k = 0; k < K; k++)
            expected += x[k] * weights[k * N + n];
        assert_float_equal(TARE_DATA(float, &result)[n], expected, 0);
    }
    tare_tensor_reset(&fed);
    tare_tensor_reset(&result);
    tare_session_free(session);
    product_free(&p);
}

static void min_elements__default_leaves_small_weights(void **state) {
    struct product p;
    (void)state;
    product_quantize(&p, 0);
    assert_int_equal(p.report.count, 1);
    assert_int_equal(p.report.quantized, 0);
    assert_string_equal(p.report.outcomes[0].refused,
                        "the weight has too few elements (tare quantize --min-elements 1 quantizes it)");
    assert_int_equal(count_op(p.function, "MatMul"), 1);
    product_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul__becomes_xla_dot_with_int8_weight),
        cmocka_unit_test(matmul__keeps_its_product),
        cmocka_unit_test(min_elements__default_leaves_small_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
