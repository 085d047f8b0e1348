/* Scales and zero points are recognised by what they are computed from and what they are used for. */
#include "tpu/exact/range_values.h"

#include "support/mini_model.h"

static struct tare_edge extreme(struct tare_graph *graph, const char *op, struct tare_edge x) {
    return mini_node(graph, op, op, 2, x, mini_ints(graph, "axes", 1, (int32_t[]){ 0 }));
}

static struct tare_edge cast(struct tare_edge x, int to) {
    struct tare_node *node = mini_open(x.node->graph, "Cast", "cast", 1, x);
    mini_ok(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(node, "DstT", to));
    return mini_done(node);
}

/* zp = int32(127 - max(x) / ((max(x) - min(x)) / 255)) */
static struct tare_edge zero_point(struct tare_graph *graph, struct tare_edge x) {
    const struct tare_edge high = extreme(graph, "Max", x), low = extreme(graph, "Min", x);
    const struct tare_edge range = mini_node(graph, "Sub", "range", 2, high, low);
    const struct tare_edge scale = mini_node(graph, "RealDiv", "scale", 2, range, mini_float(graph, "codes", 255));
    const struct tare_edge z = mini_node(graph, "RealDiv", "z", 2, high, scale);
    assert_true(tare_is_range_value(scale));
    return cast(mini_node(graph, "Sub", "zp", 2, mini_float(graph, "qmax", 127), z), TARE_DT_INT32);
}

static bool is_zero_point(struct tare_edge z) {
    mini_ok(tare_graph_index_uses(z.node->graph));
    return tare_is_zero_point(z.node);
}

static void a_zero_point__is_added_before_a_narrow_cast(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = model->main;
    const struct tare_edge x = mini_placeholder(graph, "x", TARE_DT_FLOAT), z = zero_point(graph, x);
    (void)state;
    cast(mini_node(graph, "Floor", "floor", 1, mini_node(graph, "AddV2", "add", 2, x, cast(z, TARE_DT_FLOAT))),
         TARE_DT_INT8);
    assert_true(is_zero_point(z));
    tare_model_free(model);
}

static void an_index__from_extremes_is_not(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = model->main;
    const struct tare_edge x = mini_placeholder(graph, "x", TARE_DT_FLOAT), z = zero_point(graph, x);
    (void)state;
    mini_node(graph, "GatherV2", "gather", 3, x, z, mini_int(graph, "axis", 0));
    mini_node(graph, "AddV2", "add", 2, x, cast(z, TARE_DT_FLOAT));
    assert_false(is_zero_point(z));
    tare_model_free(model);
}

static void a_tensor__is_not_a_range_value(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = model->main;
    const struct tare_edge x = mini_placeholder(graph, "x", TARE_DT_FLOAT);
    const struct tare_edge scaled = mini_node(graph, "RealDiv", "scaled", 2, x, extreme(graph, "Max", x));
    const struct tare_edge two = mini_float(graph, "two", 2);
    (void)state;
    assert_false(tare_is_range_value(x));
    assert_false(tare_is_range_value(scaled));
    assert_false(tare_is_range_value(two));
    cast(mini_node(graph, "AddV2", "add", 2, x, cast(cast(scaled, TARE_DT_INT32), TARE_DT_FLOAT)), TARE_DT_INT8);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zero_point__is_added_before_a_narrow_cast),
        cmocka_unit_test(an_index__from_extremes_is_not),
        cmocka_unit_test(a_tensor__is_not_a_range_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
