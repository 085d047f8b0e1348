/* Small differences of products: distances, also of unit vectors, covariances, and angles that a product computes from
 * inputs. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <string.h>

enum { WIDTH = 8 };

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f;
};

static struct net new_net(void) {
    struct net net = { .model = mini_model_new() };
    net.f = tare_model_add_function(net.model, "f");
    return net;
}

static struct tare_edge weights(struct net *net, const char *name) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)WIDTH);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(TARE_DATA(float, &value), WIDTH * WIDTH, DRAW_NORMAL, 3);
    node = tare_graph_add_const(net->f, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge product(struct net *net, const char *name, struct tare_edge x) {
    const char *w = tare_arena_printf(&net->model->arena, "%s_w", name);
    return mini_node(net->f, "MatMul", name, 2, x, weights(net, w));
}

/* x · rsqrt(max(sum(x²), ε)), as tf.math.l2_normalize writes it. */
static struct tare_edge unit(struct net *net, struct tare_edge x) {
    struct tare_edge sum = mini_node(net->f, "Square", "square", 1, x);
    struct tare_node *node = mini_open(net->f, "Sum", "sum", 2, sum, mini_int(net->f, "axis", 1));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    sum = mini_node(net->f, "Maximum", "most", 2, mini_done(node), mini_float(net->f, "epsilon", 1e-12F));
    return mini_node(net->f, "Mul", "unit", 2, x, mini_node(net->f, "Rsqrt", "rsqrt", 1, sum));
}

static struct tare_edge embedding(struct net *net) {
    struct tare_edge x =
        mini_node(net->f, "Relu", "hidden", 1, product(net, "layer", mini_arg(net->f, "x", TARE_DT_FLOAT)));
    return product(net, "embedding", x);
}

static void convert(struct net *net, struct tare_edge y) {
    const struct tare_bfloat16_options options = { 0 };
    size_t changes = 0;
    mini_return(net->f, "y", product(net, "last", y));
    mini_ok(tare_tpu_bfloat16(net->model, &net->f, 1, &options, &changes));
    graph_check_dtypes(net->model);
}

static bool is_float32(const struct net *net, const char *node) {
    return tare_edge_dtype((struct tare_edge){ graph_node(net->f, node), 0 }) == TARE_DT_FLOAT;
}

/* 1 − a·b of near vectors is 0.001, which the rounding of a would change by as much. Layers before the embedding and
 * after the distance are bfloat16. */
static void distances_of_unit_vectors__and_what_is_normalized_stay_float32(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = new_net();
        struct tare_edge y = product(&net, "cosine", unit(&net, embedding(&net)));
        if (form == 0) y = mini_node(net.f, "Sub", "distance", 2, mini_float(net.f, "one", 1), y);
        if (form == 1) y = mini_node(net.f, "Mul", "twice", 2, y, mini_float(net.f, "two", 2));
        if (form == 1) y = mini_node(net.f, "Sub", "distance", 2, mini_float(net.f, "two_", 2), y);
        if (form == 2)
            y = mini_node(net.f, "Acos", "distance", 1,
                          mini_node(net.f, "Minimum", "limited", 2, y, mini_float(net.f, "one", 1)));
        convert(&net, y);
        assert_true(is_float32(&net, "cosine"));
        assert_true(is_float32(&net, "unit"));
        assert_true(is_float32(&net, "embedding"));
        assert_false(is_float32(&net, "layer"));
        assert_false(is_float32(&net, "last"));
        tare_model_free(net.model);
    }
}

/* Similarities are scores like others. */
static void similarities_of_unit_vectors__are_rounded(void **state) {
    struct net net = new_net();
    struct tare_edge y = product(&net, "cosine", unit(&net, embedding(&net)));
    (void)state;
    convert(&net, mini_node(net.f, "Mul", "scaled", 2, y, mini_float(net.f, "scale", 20)));
    assert_false(is_float32(&net, "cosine"));
    assert_false(is_float32(&net, "embedding"));
    tare_model_free(net.model);
}

/* Small frequencies times positions of any size. */
static void an_angle_that_is_a_product_of_inputs__takes_them_unrounded(void **state) {
    struct net net = new_net();
    struct tare_edge x = product(&net, "angle", mini_arg(net.f, "position", TARE_DT_FLOAT));
    (void)state;
    convert(&net, mini_node(net.f, "Sin", "wave", 1, x));
    assert_true(is_float32(&net, "angle"));
    assert_true(tare_node_is_arg(graph_node(net.f, "angle")->inputs[0].node));
    assert_int_equal(tare_edge_dtype((struct tare_edge){ net.f->args[0], 0 }), TARE_DT_FLOAT);
    assert_false(is_float32(&net, "last"));
    tare_model_free(net.model);
}

static struct tare_edge einsum(struct net *net, const char *name, const char *equation, struct tare_edge x,
                               struct tare_edge y) {
    struct tare_node *node = mini_open(net->f, "Einsum", name, 2, x, y);
    mini_ok(tare_node_set_string(node, "equation", equation, strlen(equation)));
    return mini_done(node);
}

static struct tare_edge mean(struct net *net, const char *name, struct tare_edge x) {
    struct tare_node *node = mini_open(net->f, "Mean", name, 2, x,
                                       mini_int(net->f, tare_arena_printf(&net->model->arena, "%s_axis", name), 0));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    return mini_done(node);
}

/* |x|² − 2 x·c + …, with |x|² as a product of x with itself; |x|² as the diagonal of x · xᵀ. */
static void squares_that_are_products__are_terms_of_distances(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct net net = new_net();
        const struct tare_edge x = embedding(&net);
        struct tare_edge square, cross;
        if (form == 0) {
            square = einsum(&net, "square", "bi,bi->b", x, x);
            cross = product(&net, "cross", x);
        } else {
            cross = einsum(&net, "cross", "bi,ci->bc", x, x);
            square = mini_node(net.f, "MatrixDiagPart", "diagonal", 1, cross);
        }
        cross = mini_node(net.f, "Mul", "twice", 2, cross, mini_float(net.f, "two", 2));
        convert(&net, mini_node(net.f, "Sub", "distance", 2, square, cross));
        assert_true(is_float32(&net, "cross"));
        assert_true(form == 1 || is_float32(&net, "square"));
        assert_false(is_float32(&net, "embedding"));
        assert_false(is_float32(&net, "last"));
        tare_model_free(net.model);
    }
}

/* A norm and a product of one value that are not terms of one sum are rounded. */
static void a_product_of_a_value_with_itself__is_rounded(void **state) {
    struct net net = new_net();
    const struct tare_edge x = embedding(&net), square = einsum(&net, "square", "bi,bi->b", x, x);
    (void)state;
    convert(&net, mini_node(net.f, "Mul", "scaled", 2, square, product(&net, "cross", x)));
    assert_false(is_float32(&net, "square"));
    assert_false(is_float32(&net, "cross"));
    tare_model_free(net.model);
}

/* E[x · xᵀ] − m · mᵀ. */
static void products_of_a_covariance__stay_float32(void **state) {
    struct net net = new_net();
    const struct tare_edge x = embedding(&net), m = mean(&net, "mean", x);
    struct tare_edge squares = einsum(&net, "squares", "bi,bj->ij", x, x),
                     outer = einsum(&net, "outer", "bi,bj->ij", m, m);
    (void)state;
    squares = mini_node(net.f, "RealDiv", "mean_of_squares", 2, squares, mini_float(net.f, "count", 64));
    convert(&net, mini_node(net.f, "Sub", "covariance", 2, squares, outer));
    assert_true(is_float32(&net, "squares"));
    assert_true(is_float32(&net, "outer"));
    assert_false(is_float32(&net, "embedding"));
    assert_false(is_float32(&net, "last"));
    tare_model_free(net.model);
}

/* The real part of exp(i θ). */
static struct tare_edge wave(struct net *net, struct tare_edge angle) {
    const struct tare_edge zero = mini_node(net->f, "ZerosLike", "zeros", 1, angle);
    struct tare_node *node = mini_open(net->f, "Complex", "complex", 2, zero, angle);
    mini_ok(tare_node_set_type(node, "Tout", TARE_DT_COMPLEX64));
    node = mini_open(net->f, "Real", "real", 1, mini_node(net->f, "Exp", "exp", 1, mini_done(node)));
    mini_ok(tare_node_set_type(node, "Tout", TARE_DT_FLOAT));
    return mini_done(node);
}

/* The product of inputs is float32; that of what was complex is not: a wave is no input, and has no mean. */
static void a_complex_angle_that_is_a_product_of_inputs__takes_them_unrounded(void **state) {
    struct net net = new_net();
    (void)state;
    convert(&net, wave(&net, product(&net, "angle", mini_arg(net.f, "position", TARE_DT_FLOAT))));
    assert_true(is_float32(&net, "angle"));
    assert_true(tare_node_is_arg(graph_node(net.f, "angle")->inputs[0].node));
    assert_false(is_float32(&net, "last"));
    tare_model_free(net.model);
}

/* At most 1: rounding it costs as little as that of an activation. */
static void a_small_computed_complex_angle__is_a_bfloat16_product(void **state) {
    struct net net = new_net();
    struct tare_edge x = mini_node(net.f, "Relu", "hidden", 1, mini_arg(net.f, "x", TARE_DT_FLOAT));
    (void)state;
    convert(&net, wave(&net, mini_node(net.f, "Tanh", "limited", 1, product(&net, "angle", x))));
    assert_false(is_float32(&net, "angle"));
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_of_unit_vectors__and_what_is_normalized_stay_float32),
        cmocka_unit_test(similarities_of_unit_vectors__are_rounded),
        cmocka_unit_test(squares_that_are_products__are_terms_of_distances),
        cmocka_unit_test(a_product_of_a_value_with_itself__is_rounded),
        cmocka_unit_test(products_of_a_covariance__stay_float32),
        cmocka_unit_test(an_angle_that_is_a_product_of_inputs__takes_them_unrounded),
        cmocka_unit_test(a_complex_angle_that_is_a_product_of_inputs__takes_them_unrounded),
        cmocka_unit_test(a_small_computed_complex_angle__is_a_bfloat16_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
