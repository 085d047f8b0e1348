/* Cameras: parts of a product that are divided by another part of it. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f;
};

static struct tare_edge product(struct net *net, const char *name, struct tare_edge x, int from, int to) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)from, (int64_t)to);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(TARE_DATA(float, &value), (size_t)value.elements, DRAW_NORMAL, 3);
    node = tare_graph_add_const(net->f, tare_arena_printf(&net->model->arena, "%s_w", name), &value);
    tare_tensor_reset(&value);
    return mini_node(net->f, "MatMul", name, 2, x, (struct tare_edge){ node, 0 });
}

static struct tare_edge columns(struct net *net, const char *name, struct tare_edge x, int from, int to) {
    const char *begin = tare_arena_printf(&net->model->arena, "%s_begin", name);
    const char *size = tare_arena_printf(&net->model->arena, "%s_size", name);
    return mini_node(net->f, "Slice", name, 3, x, mini_ints(net->f, begin, 2, (int32_t[]){ 0, from }),
                     mini_ints(net->f, size, 2, (int32_t[]){ -1, to - from }));
}

/* (x, y) / z, (x, y) · 1 / z, (x, y) · (1 / max(z, ε)) of K (R X + t), where a network computes X. */
static struct net projection(int form, int width) {
    struct net net = { .model = mini_model_new() };
    const struct tare_bfloat16_options options = { 0 };
    struct tare_edge x, p, z;
    size_t changes = 0;
    net.f = tare_model_add_function(net.model, "f");
    x = product(&net, "layer", mini_arg(net.f, "x", TARE_DT_FLOAT), 8, 32);
    x = product(&net, "points", mini_node(net.f, "Relu", "hidden", 1, x), 32, width);
    x = mini_node(net.f, "Softplus", "positive", 1, x);
    x = product(&net, "turned", x, width, width);
    x = mini_node(net.f, "AddV2", "moved", 2, x, mini_float(net.f, "t", 0.1F));
    x = product(&net, "camera", x, width, width);
    p = columns(&net, "p", x, 0, 2);
    z = columns(&net, "z", x, 2, 3);
    if (form == 2) z = mini_node(net.f, "Maximum", "limited", 2, z, mini_float(net.f, "epsilon", 0.01F));
    if (form == 1) z = mini_node(net.f, "Reciprocal", "inverse", 1, z);
    if (form == 2) z = mini_node(net.f, "RealDiv", "inverse", 2, mini_float(net.f, "one", 1), z);
    mini_return(net.f, "y", mini_node(net.f, form ? "Mul" : "RealDiv", "pixels", 2, p, z));
    mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
    graph_check_dtypes(net.model);
    return net;
}

static bool is_float32(const struct net *net, const char *node) {
    return tare_edge_dtype((struct tare_edge){ graph_node(net->f, node), 0 }) == TARE_DT_FLOAT;
}

static void matrices_of_a_camera__are_float32_after_computed_points(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = projection(form, 3);
        assert_true(is_float32(&net, "camera"));
        assert_true(is_float32(&net, "turned"));
        assert_false(is_float32(&net, "points"));
        assert_false(is_float32(&net, "layer"));
        tare_model_free(net.model);
    }
}

/* A layer of 32 units whose outputs are divided by one of them. */
static void large_matrices_of_computed_values__are_rounded(void **state) {
    struct net net = projection(0, 32);
    (void)state;
    assert_false(is_float32(&net, "camera"));
    assert_false(is_float32(&net, "turned"));
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(matrices_of_a_camera__are_float32_after_computed_points),
                                        cmocka_unit_test(large_matrices_of_computed_values__are_rounded) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
