/* Products that stay float32 because what is computed from them is a small difference, or a ratio, of their results. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 8 };

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f;
    struct tare_edge x;
};

enum weights { ANY_SIGN, ONE_SIGN, ZERO_SUM };

static struct net new_net(void) {
    struct net net = { .model = mini_model_new() };
    net.f = tare_model_add_function(net.model, "f");
    net.x = mini_arg(net.f, "x", TARE_DT_FLOAT);
    return net;
}

static struct tare_edge un(struct net *net, const char *op, const char *name, struct tare_edge x) {
    return mini_node(net->f, op, name, 1, x);
}

static struct tare_edge bi(struct net *net, const char *op, const char *name, struct tare_edge x, struct tare_edge y) {
    return mini_node(net->f, op, name, 2, x, y);
}

static struct tare_edge weights(struct net *net, const char *name, enum weights kind, uint64_t seed) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)WIDTH);
    struct tare_tensor value;
    struct tare_node *node;
    float *w;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    w = TARE_DATA(float, &value);
    draw_fill(w, WIDTH * WIDTH, DRAW_NORMAL, seed);
    for (int i = 0; i < WIDTH * WIDTH && kind == ONE_SIGN; i++)
        w[i] = fabsf(w[i]);
    for (int column = 0; column < WIDTH && kind == ZERO_SUM; column++) {
        double sum = 0;
        for (int row = 1; row < WIDTH; row++)
            sum += (double)w[row * WIDTH + column];
        w[column] = (float)-sum;
    }
    node = tare_graph_add_const(net->f, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge product(struct net *net, const char *name, struct tare_edge x, enum weights kind) {
    const char *w = tare_arena_printf(&net->model->arena, "%s_w", name);
    return bi(net, "MatMul", name, x, weights(net, w, kind, strlen(name)));
}

static struct tare_edge row(struct net *net, const char *name, struct tare_edge x, int at) {
    return mini_node(net->f, "GatherV2", name, 3, x,
                     mini_int(net->f, tare_arena_printf(&net->model->arena, "%s_at", name), at),
                     mini_int(net->f, tare_arena_printf(&net->model->arena, "%s_axis", name), 1));
}

static void convert(struct net *net, struct tare_edge y) {
    const struct tare_bfloat16_options options = { 0 };
    size_t changes = 0;
    mini_return(net->f, "y", product(net, "after", y, ANY_SIGN));
    mini_ok(tare_tpu_bfloat16(net->model, &net->f, 1, &options, &changes));
    graph_check_dtypes(net->model);
    assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(net->f, "after"), 0 }), TARE_DT_BFLOAT16);
}

/* The dtype that the product multiplies in. */
static void assert_product(const struct net *net, const char *name, int dtype) {
    const struct tare_node *node = graph_node(net->f, name);
    assert_int_equal(tare_edge_dtype(node->inputs[0]), dtype);
    assert_int_equal(tare_edge_dtype(node->inputs[1]), dtype);
}

/* Two blurs of one image; with learned weights, two layers are subtracted. */
static void difference_of_weighted_means__multiplies_in_float32(void **state) {
    (void)state;
    for (int kind = ANY_SIGN; kind <= ONE_SIGN; kind++) {
        struct net net = new_net();
        struct tare_edge y = product(&net, "narrow", net.x, (enum weights)kind);
        convert(&net, bi(&net, "Sub", "difference", y, product(&net, "wide", net.x, (enum weights)kind)));
        assert_product(&net, "narrow", kind == ONE_SIGN ? TARE_DT_FLOAT : TARE_DT_BFLOAT16);
        assert_product(&net, "wide", kind == ONE_SIGN ? TARE_DT_FLOAT : TARE_DT_BFLOAT16);
        tare_model_free(net.model);
    }
}

/* E[x²] − E[x]² of computed values in a window, as measures of similarity have it; layers before them are bfloat16. */
static void variance_in_a_window__keeps_what_is_weighed(void **state) {
    struct net net = new_net();
    struct tare_edge first = un(&net, "Relu", "first", product(&net, "layer", net.x, ANY_SIGN));
    struct tare_edge x = un(&net, "Relu", "relu", product(&net, "last", first, ANY_SIGN));
    struct tare_edge mean = product(&net, "mean", x, ONE_SIGN);
    struct tare_edge squares = product(&net, "squares", un(&net, "Square", "square", x), ONE_SIGN);
    (void)state;
    convert(&net, bi(&net, "Sub", "variance", squares, un(&net, "Square", "squared", mean)));
    assert_product(&net, "mean", TARE_DT_FLOAT);
    assert_product(&net, "squares", TARE_DT_FLOAT);
    assert_product(&net, "layer", TARE_DT_BFLOAT16);
    tare_model_free(net.model);
}

/* A window that the model computes as a softmax. */
/* Σ w h² − (Σ w h)²: the softmax w is float32, from logits of a bfloat16 product. In other sums it may be rounded. */
static void variance_by_weights__keeps_the_weights(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct net net = new_net();
        struct tare_edge h = un(&net, "Tanh", "h", product(&net, "layer", net.x, ANY_SIGN)), mean, y;
        struct tare_edge w = un(&net, "Softmax", "weights", product(&net, "logits", h, ANY_SIGN));
        const struct tare_edge axis = mini_int(net.f, "axis", 0);
        mean = bi(&net, "Sum", "mean", bi(&net, "Mul", "weighted", w, h), axis);
        y = bi(&net, "Sum", "squares", bi(&net, "Mul", "weighted_square", w, un(&net, "Square", "h2", h)), axis);
        convert(&net, bi(&net, "Sub", "variance", y, form ? mean : un(&net, "Square", "mean2", mean)));
        assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(net.f, "weights"), 0 }),
                         form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_product(&net, "logits", TARE_DT_BFLOAT16);
        tare_model_free(net.model);
    }
}

static void computed_weights__may_be_known_to_be_positive(void **state) {
    struct net net = new_net();
    struct tare_edge window = un(&net, "Softmax", "window", weights(&net, "numbers", ANY_SIGN, 1));
    (void)state;
    convert(&net, bi(&net, "Sub", "sharp", net.x, bi(&net, "MatMul", "blur", net.x, window)));
    assert_product(&net, "blur", TARE_DT_FLOAT);
    tare_model_free(net.model);
}

static void filter_of_inputs_that_keeps_or_removes_their_mean__multiplies_in_float32(void **state) {
    (void)state;
    for (int kind = ANY_SIGN; kind <= ZERO_SUM; kind++) {
        struct net net = new_net();
        convert(&net, un(&net, "Abs", "edges", product(&net, "filter", net.x, (enum weights)kind)));
        assert_product(&net, "filter", kind == ANY_SIGN ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* Divergences and ratios: of two networks, and with an input. What is chosen by its log-probability alone is not. */
static void difference_of_log_probabilities__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = new_net();
        struct tare_edge p = un(&net, "LogSoftmax", "p", product(&net, "logits", net.x, ANY_SIGN)), y = p;
        if (form == 0)
            y = bi(&net, "Sub", "d", p, un(&net, "LogSoftmax", "q", product(&net, "others", net.x, ANY_SIGN)));
        if (form == 1) y = bi(&net, "Sub", "d", row(&net, "chosen", p, 2), mini_arg(net.f, "old", TARE_DT_FLOAT));
        convert(&net, un(&net, "Tanh", "tanh", y));
        assert_product(&net, "logits", form == 2 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* log p − log q and log(p / q) of Softmax, with limits; the entropy p · log p of one is not a difference. */
static void difference_of_logarithms_of_probabilities__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = new_net();
        struct tare_edge p = un(&net, "Softmax", "p", product(&net, "logits", net.x, ANY_SIGN)), q, y;
        q = un(&net, "Softmax", "q", product(&net, "others", net.x, ANY_SIGN));
        p = bi(&net, "AddV2", "more", p, mini_float(net.f, "epsilon", 1e-8F));
        q = bi(&net, "Maximum", "limited", q, mini_float(net.f, "least", 1e-8F));
        if (form == 1) {
            y = un(&net, "Log", "d", bi(&net, "RealDiv", "ratio", p, q));
        } else {
            y = un(&net, "Log", "log_p", p);
            y = form == 0 ? bi(&net, "Sub", "d", y, un(&net, "Log", "log_q", q)) : bi(&net, "Mul", "entropy", p, y);
        }
        convert(&net, un(&net, "Tanh", "tanh", y));
        assert_product(&net, "logits", form == 2 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_product(&net, "others", form == 2 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* Pixels of a camera; the quotient of two layers is one like others. */
static void projection__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct net net = new_net();
        struct tare_edge y = product(&net, "camera", net.x, ANY_SIGN);
        struct tare_edge z = form ? product(&net, "other", net.x, ANY_SIGN) : y;
        convert(&net, bi(&net, "RealDiv", "pixel", row(&net, "u", y, 0), row(&net, "z", z, 2)));
        assert_product(&net, "camera", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* log(M · (F x)²); a norm of a layer, without the logarithm, is not one. */
static void spectrum__multiplies_in_float32_before_a_logarithm(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct net net = new_net();
        struct tare_edge power = un(&net, "Square", "power", product(&net, "transform", net.x, ANY_SIGN));
        struct tare_edge bands = product(&net, "bands", power, ONE_SIGN);
        convert(&net, un(&net, form ? "Sqrt" : "Log", "scale", bands));
        assert_product(&net, "transform", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_product(&net, "bands", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* One layer applied to two inputs; with other weights, it is the difference of two layers. */
static void difference_of_one_product_of_two_inputs__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct net net = new_net();
        struct tare_edge w = weights(&net, "w", ANY_SIGN, 1), other = form ? weights(&net, "w2", ANY_SIGN, 2) : w;
        struct tare_edge a = bi(&net, "MatMul", "a", net.x, w);
        convert(&net, bi(&net, "Sub", "d", a, bi(&net, "MatMul", "b", mini_arg(net.f, "x2", TARE_DT_FLOAT), other)));
        assert_product(&net, "a", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_product(&net, "b", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* A Laplacian times features that have a mean; after a layer, they are those of a network. */
static void product_of_inputs_with_inputs__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct net net = new_net();
        struct tare_edge features = mini_arg(net.f, "features", TARE_DT_FLOAT);
        if (form) features = product(&net, "layer", features, ANY_SIGN);
        convert(&net, un(&net, "Tanh", "tanh", bi(&net, "MatMul", "graph", net.x, features)));
        assert_product(&net, "graph", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

/* XᵀX of inputs, which rounding makes indefinite. */
static void matrix_that_is_solved__multiplies_in_float32(void **state) {
    struct net net = new_net();
    struct tare_node *node = mini_open(net.f, "MatMul", "gram", 2, net.x, net.x);
    (void)state;
    mini_ok(tare_node_set_bool(node, "transpose_a", true));
    convert(&net, un(&net, "Cholesky", "root", mini_done(node)));
    assert_product(&net, "gram", TARE_DT_FLOAT);
    tare_model_free(net.model);
}

/* A phase of 300 rotations. */
static void parts_of_complex_numbers__are_not_rounded(void **state) {
    struct net net = new_net();
    struct tare_edge phase = bi(&net, "Mul", "phase", net.x, mini_float(net.f, "turn", 6.2831853F));
    struct tare_edge z = bi(&net, "Complex", "z", phase, net.x);
    (void)state;
    convert(&net, un(&net, "ComplexAbs", "size", z));
    assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(net.f, "phase"), 0 }), TARE_DT_FLOAT);
    assert_int_equal(tare_edge_dtype((struct tare_edge){ net.f->args[0], 0 }), TARE_DT_FLOAT);
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(difference_of_weighted_means__multiplies_in_float32),
        cmocka_unit_test(variance_in_a_window__keeps_what_is_weighed),
        cmocka_unit_test(variance_by_weights__keeps_the_weights),
        cmocka_unit_test(computed_weights__may_be_known_to_be_positive),
        cmocka_unit_test(filter_of_inputs_that_keeps_or_removes_their_mean__multiplies_in_float32),
        cmocka_unit_test(difference_of_log_probabilities__multiplies_in_float32),
        cmocka_unit_test(difference_of_logarithms_of_probabilities__multiplies_in_float32),
        cmocka_unit_test(projection__multiplies_in_float32),
        cmocka_unit_test(spectrum__multiplies_in_float32_before_a_logarithm),
        cmocka_unit_test(difference_of_one_product_of_two_inputs__multiplies_in_float32),
        cmocka_unit_test(product_of_inputs_with_inputs__multiplies_in_float32),
        cmocka_unit_test(matrix_that_is_solved__multiplies_in_float32),
        cmocka_unit_test(parts_of_complex_numbers__are_not_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
