/* Weights that constants determine and folding leaves: integers times scales. */
#include "quant/layers/widened_weight.h"
#include "support/mini_model.h"

enum { ROWS = 300, COLUMNS = 400 };

/* Code r, c is (r + c) mod 100. */
static struct tare_edge codes(struct tare_graph *graph) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_INT8, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(int8_t, &value)[i] = (int8_t)((i / COLUMNS + i % COLUMNS) % 100);
    const struct tare_edge edge = { tare_graph_add_const(graph, "codes", &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

static struct tare_edge as_float(struct tare_graph *graph, struct tare_edge x) {
    struct tare_node *cast = mini_open(graph, "Cast", "cast", 1, x);
    mini_ok(tare_node_set_type(cast, "SrcT", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    return mini_done(cast);
}

static void weight__is_codes_times_scales(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_tensor weight = { 0 };
    (void)state;
    const struct tare_edge cast = as_float(g, codes(g));
    mini_ok(tare_quant_widened_weight(&weight, mini_node(g, "Mul", "scaled", 2, cast, mini_float(g, "scale", 0.5f))));
    assert_int_equal(weight.elements, ROWS * COLUMNS);
    for (int64_t i = 0; i < weight.elements; i++)
        assert_float_equal(TARE_DATA(float, &weight)[i], (double)((i / COLUMNS + i % COLUMNS) % 100) / 2, 0);
    tare_tensor_reset(&weight);
    tare_model_free(model);
}

/* Its integers would be larger than the constants by far. */
static void weight__is_not_a_number_in_many_places(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_tensor weight = { 0 };
    (void)state;
    const struct tare_edge size = mini_ints(g, "size", 2, (const int32_t[]){ ROWS, COLUMNS });
    mini_ok(tare_quant_widened_weight(&weight, mini_node(g, "Fill", "fill", 2, size, mini_float(g, "one", 1))));
    assert_int_equal(weight.dtype, TARE_DT_INVALID);
    tare_model_free(model);
}

static void weight__is_not_computed_from_inputs(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_tensor weight = { 0 };
    (void)state;
    const struct tare_edge cast = as_float(g, codes(g)), x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    mini_ok(tare_quant_widened_weight(&weight, mini_node(g, "Mul", "scaled", 2, cast, x)));
    assert_int_equal(weight.dtype, TARE_DT_INVALID);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weight__is_codes_times_scales),
        cmocka_unit_test(weight__is_not_a_number_in_many_places),
        cmocka_unit_test(weight__is_not_computed_from_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
