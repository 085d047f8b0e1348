/* Normalizations by their own mean, after a product of inputs. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

enum { WIDTH = 16 };

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f;
    int axis; /* of means */
};

static struct net new_net(void) {
    struct net net = { .model = mini_model_new() };
    net.f = tare_model_add_function(net.model, "f");
    return net;
}

static struct tare_edge bi(struct net *net, const char *op, const char *name, struct tare_edge x, struct tare_edge y) {
    return mini_node(net->f, op, name, 2, x, y);
}

static struct tare_edge product(struct net *net, const char *name, struct tare_edge x) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)WIDTH);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(TARE_DATA(float, &value), WIDTH * WIDTH, DRAW_NORMAL, 3);
    node = tare_graph_add_const(net->f, tare_arena_printf(&net->model->arena, "%s_w", name), &value);
    tare_tensor_reset(&value);
    return bi(net, "MatMul", name, x, (struct tare_edge){ node, 0 });
}

static struct tare_edge mean(struct net *net, const char *name, struct tare_edge x) {
    struct tare_node *node =
        mini_open(net->f, "Mean", name, 2, x,
                  mini_int(net->f, tare_arena_printf(&net->model->arena, "%s_axis", name), net->axis));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    return mini_done(node);
}

/* (x − mean(x)) / sqrt(variance + ε), with the variance as E[(x − mean)²] or as E[x²] − E[x]². */
static struct tare_edge norm(struct net *net, struct tare_edge x, bool squares) {
    const struct tare_edge m = mean(net, "mean", x);
    struct tare_edge v;
    if (squares) {
        v = mean(net, "mean_of_squares", mini_node(net->f, "Square", "square", 1, x));
        v = bi(net, "Sub", "variance", v, mini_node(net->f, "Square", "squared_mean", 1, m));
    } else {
        v = mean(net, "variance", bi(net, "SquaredDifference", "squares", x, m));
    }
    v = mini_node(net->f, "Rsqrt", "rsqrt", 1, bi(net, "AddV2", "more", v, mini_float(net->f, "epsilon", 1e-5F)));
    if (!squares) return bi(net, "Mul", "normalized", bi(net, "Sub", "difference", x, m), v);
    return bi(net, "Sub", "normalized", bi(net, "Mul", "scaled", x, v), bi(net, "Mul", "scaled_mean", m, v));
}

static void convert(struct net *net, struct tare_edge y) {
    const struct tare_bfloat16_options options = { 0 };
    size_t changes = 0;
    mini_return(net->f, "y", product(net, "last", mini_node(net->f, "Relu", "relu", 1, y)));
    mini_ok(tare_tpu_bfloat16(net->model, &net->f, 1, &options, &changes));
    graph_check_dtypes(net->model);
}

static bool is_float32(const struct net *net, const char *node) {
    return tare_edge_dtype((struct tare_edge){ graph_node(net->f, node), 0 }) == TARE_DT_FLOAT;
}

/* Temperatures near 285: the norm removes what rounding them is relative to. Also after an activation. */
static void a_product_of_inputs_that_is_normalized__takes_them_unrounded(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        struct net net = new_net();
        struct tare_edge x = product(&net, "layer", mini_arg(net.f, "x", TARE_DT_FLOAT));
        if (form > 1) x = mini_node(net.f, "LeakyRelu", "activation", 1, x);
        convert(&net, norm(&net, x, form % 2 == 1));
        assert_true(is_float32(&net, "layer"));
        assert_true(tare_node_is_arg(graph_node(net.f, "layer")->inputs[0].node));
        assert_false(is_float32(&net, "last"));
        tare_model_free(net.model);
    }
}

/* A layer norm: the mean of the inputs stays in each channel. */
static void a_mean_over_channels__removes_no_mean_of_inputs(void **state) {
    static const int axes[] = { -1, 1 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct net net = new_net();
        net.axis = axes[i];
        convert(&net, norm(&net, product(&net, "layer", mini_arg(net.f, "x", TARE_DT_FLOAT)), false));
        assert_false(is_float32(&net, "layer"));
        tare_model_free(net.model);
    }
}

/* x / 127.5 − 1: the mean is removed before. */
static void a_product_of_centered_inputs__is_rounded(void **state) {
    struct net net = new_net();
    struct tare_edge x = mini_arg(net.f, "x", TARE_DT_FLOAT);
    (void)state;
    x = bi(&net, "Mul", "scaled_input", x, mini_float(net.f, "scale", 1 / 127.5F));
    x = bi(&net, "Sub", "centered", x, mini_float(net.f, "one", 1));
    convert(&net, norm(&net, product(&net, "layer", x), false));
    assert_false(is_float32(&net, "layer"));
    tare_model_free(net.model);
}

/* Products that are added to others, or that follow an activation, are no products of inputs alone. */
static void norms_of_deeper_layers__leave_their_products(void **state) {
    struct net net = new_net();
    struct tare_edge x = product(&net, "patches", mini_arg(net.f, "x", TARE_DT_FLOAT)), y;
    (void)state;
    y = product(&net, "block", mini_node(net.f, "Relu", "hidden", 1, x));
    convert(&net, norm(&net, bi(&net, "AddV2", "residual", x, y), false));
    assert_false(is_float32(&net, "patches"));
    assert_false(is_float32(&net, "block"));
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_inputs_that_is_normalized__takes_them_unrounded),
        cmocka_unit_test(a_mean_over_channels__removes_no_mean_of_inputs),
        cmocka_unit_test(a_product_of_centered_inputs__is_rounded),
        cmocka_unit_test(norms_of_deeper_layers__leave_their_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
