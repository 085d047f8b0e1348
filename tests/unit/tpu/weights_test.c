/* Means by weights of one sign: of the rows of a table, of inputs. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <math.h>

enum { WIDTH = 32 };

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f;
    struct tare_edge x;
};

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

/* WIDTH rows of normal numbers, whose columns have the mean and twice the mean by turns. */
static struct tare_edge table(struct net *net, const char *name, int columns, double mean) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)columns);
    struct tare_tensor value;
    struct tare_node *node;
    float *w;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    w = TARE_DATA(float, &value);
    draw_fill(w, (size_t)value.elements, DRAW_NORMAL, 7);
    for (int64_t i = 0; i < value.elements; i++)
        w[i] += (float)(mean * (double)(1 + i % columns % 2));
    node = tare_graph_add_const(net->f, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge product(struct net *net, const char *name, struct tare_edge x) {
    return bi(net, "MatMul", name, x, table(net, tare_arena_printf(&net->model->arena, "%s_w", name), WIDTH, 0));
}

static struct tare_edge logits(struct net *net) {
    return product(net, "logits", un(net, "Relu", "hidden", product(net, "layer", net->x)));
}

static struct tare_edge sum(struct net *net, const char *name, struct tare_edge x, bool keeps) {
    struct tare_node *node = mini_open(net->f, "Sum", name, 2, x,
                                       mini_int(net->f, tare_arena_printf(&net->model->arena, "%s_axis", name), 1));
    mini_ok(tare_node_set_bool(node, "keep_dims", keeps));
    return mini_done(node);
}

static struct tare_edge softmax(struct net *net, struct tare_edge x, bool written) {
    if (!written) return un(net, "Softmax", "weights", x);
    x = un(net, "Exp", "exp", x);
    return bi(net, "RealDiv", "weights", x, sum(net, "sum", x, true));
}

static void convert(struct net *net, struct tare_edge y) {
    const struct tare_bfloat16_options options = { 0 };
    size_t changes = 0;
    mini_return(net->f, "y", y);
    mini_ok(tare_tpu_bfloat16(net->model, &net->f, 1, &options, &changes));
    graph_check_dtypes(net->model);
}

static void assert_product(const struct net *net, const char *name, int dtype) {
    const struct tare_node *node = graph_node(net->f, name);
    assert_int_equal(tare_edge_dtype(node->inputs[0]), dtype);
    assert_int_equal(tare_edge_dtype(node->inputs[1]), dtype);
}

/* Prices of bins, positions of cells: one part in 512 of a price is more than what varies. The layers that choose are
 * bfloat16, and so is a product with a table of mean 0. */
static void mean_of_rows_with_a_large_mean__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        const bool large = form < 2;
        struct net net = new_net();
        struct tare_edge rows = table(&net, "table", 2, large ? 1000 : 0);
        convert(&net, bi(&net, "MatMul", "mean", softmax(&net, logits(&net), form % 2), rows));
        assert_product(&net, "mean", large ? TARE_DT_FLOAT : TARE_DT_BFLOAT16);
        if (large)
            assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(net.f, "weights"), 0 }), TARE_DT_FLOAT);
        assert_product(&net, "logits", TARE_DT_BFLOAT16);
        assert_product(&net, "layer", TARE_DT_BFLOAT16);
        tare_model_free(net.model);
    }
}

/* The same as a sum of products, with a layer after it. */
static void sum_of_weighted_rows__is_a_large_factor(void **state) {
    struct net net = new_net();
    struct tare_edge y = bi(&net, "Mul", "weighted", softmax(&net, logits(&net), false), table(&net, "table", 1, 1000));
    (void)state;
    convert(&net, un(&net, "Tanh", "tanh", product(&net, "after", sum(&net, "mean", y, true))));
    assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(net.f, "weighted"), 0 }), TARE_DT_FLOAT);
    assert_product(&net, "after", TARE_DT_FLOAT);
    assert_product(&net, "logits", TARE_DT_BFLOAT16);
    tare_model_free(net.model);
}

/* Attention over prices, and kernel regression, whose weights are divided by their sum afterwards. Of values that a
 * layer computes, attention is bfloat16. */
static void mean_of_inputs_by_computed_weights__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = new_net();
        struct tare_edge weights = logits(&net), values = mini_arg(net.f, "values", TARE_DT_FLOAT);
        weights = form == 1 ? un(&net, "Exp", "weights", un(&net, "Neg", "negative", weights))
                            : softmax(&net, weights, false);
        if (form == 2) values = product(&net, "values_layer", values);
        convert(&net, bi(&net, "BatchMatMulV2", "mean", weights, values));
        assert_product(&net, "mean", form == 2 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_product(&net, "layer", TARE_DT_BFLOAT16);
        if (form == 0) assert_product(&net, "logits", TARE_DT_BFLOAT16);
        tare_model_free(net.model);
    }
}

/* A moving average, bilinear enlargement: of inputs, and of linear functions of them, but not of what an activation
 * leaves of them. */
static void mean_of_inputs_by_constants_of_one_sign__multiplies_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = new_net();
        struct tare_edge x = form ? product(&net, "before", net.x) : net.x;
        if (form == 2) x = un(&net, "Relu", "relu", x);
        x = bi(&net, "MatMul", "mean", x, table(&net, "window", 2, 10));
        convert(&net, product(&net, "after", un(&net, "Tanh", "tanh", x)));
        assert_product(&net, "mean", form == 2 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        if (form) assert_product(&net, "before", form == 2 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_product(&net, "after", TARE_DT_BFLOAT16);
        tare_model_free(net.model);
    }
}

/* A forecast as the sum of two linear functions of inputs, or of one and of what a network adds. One layer alone is
 * bfloat16. */
static void linear_terms_of_outputs__multiply_in_float32(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        struct net net = new_net();
        struct tare_edge y = product(&net, "linear", net.x), other = net.x;
        if (form) other = un(&net, "Tanh", "tanh", product(&net, "layer", other));
        if (form < 2) y = bi(&net, "AddV2", "sum", y, product(&net, "other", other));
        convert(&net, bi(&net, "AddV2", "bias", y, mini_float(net.f, "offset", 0.5F)));
        assert_product(&net, "linear", form < 2 ? TARE_DT_FLOAT : TARE_DT_BFLOAT16);
        if (form < 2) assert_product(&net, "other", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tare_model_free(net.model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_rows_with_a_large_mean__multiplies_in_float32),
        cmocka_unit_test(sum_of_weighted_rows__is_a_large_factor),
        cmocka_unit_test(mean_of_inputs_by_computed_weights__multiplies_in_float32),
        cmocka_unit_test(mean_of_inputs_by_constants_of_one_sign__multiplies_in_float32),
        cmocka_unit_test(linear_terms_of_outputs__multiply_in_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
