/* Folding: what the model computes stays the same, and whose value each node has is known. */
#include "convert/pass.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

enum { IN = 3, OUT = 4 };

struct network {
    struct tare_graph_model *model;
    struct tare_edge x, y;
};

static struct tare_edge vector(struct tare_graph *graph, const char *name, int count, double first, double step) {
    const struct tare_shape shape = tare_shape_make(1, count);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < count; i++)
        TARE_DATA(float, &value)[i] = (float)(first + step * i);
    const struct tare_edge edge = { tare_graph_add_const(graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

static struct tare_edge matrix(struct tare_graph *graph, const char *name) {
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < IN * OUT; i++)
        TARE_DATA(float, &value)[i] = (float)(i * 5 % 7 - 3);
    const struct tare_edge edge = { tare_graph_add_const(graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

/* y = (x w [+ b]) * m [+ a], which is then asked for by Identity. */
static struct network build(bool bias, bool addend) {
    struct network n = { .model = mini_model_new() };
    struct tare_graph *g = n.model->main;
    n.x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    n.y = mini_node(g, "MatMul", "product", 2, n.x, matrix(g, "w"));
    if (bias) n.y = mini_node(g, "BiasAdd", "bias", 2, n.y, vector(g, "b", OUT, 1, 0.5));
    n.y = mini_node(g, "Mul", "norm/mul", 2, n.y, vector(g, "m", OUT, 0.5, 0.25));
    if (addend) n.y = mini_node(g, "AddV2", "norm/add", 2, n.y, vector(g, "a", OUT, -2, 1));
    n.y = mini_node(g, "Identity", "y", 1, n.y);
    return n;
}

static struct tare_tensor answer(const struct network *n) {
    const float values[IN] = { 1, -2, 0.5f };
    const struct tare_shape shape = tare_shape_make(2, 1, IN);
    struct tare_session *session = mini_session(n->model);
    struct tare_tensor x, y;
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_session_run(session, &n->x, &x, 1, &n->y, &y, 1, NULL, 0));
    tare_tensor_reset(&x);
    tare_session_free(session);
    return y;
}

static const char *original(const struct tare_graph_model *model, const char *name) {
    for (size_t i = 0; i < model->n_stand_ins; i++)
        if (strcmp(model->stand_ins[i].node->name, name) == 0) return model->stand_ins[i].original;
    return NULL;
}

static void factors_and_terms__become_weights_and_bias(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct network plain = build(i & 1, i & 2), folded = build(i & 1, i & 2);
        size_t changes = 0;
        mini_ok(tare_pass_fold_batch_norm.run(folded.model, &changes));
        assert_int_equal(changes, 1 + (i & 2) / 2);
        struct tare_tensor a = answer(&plain), b = answer(&folded);
        for (int c = 0; c < OUT; c++)
            assert_float_equal(TARE_DATA(float, &a)[c], TARE_DATA(float, &b)[c], 1e-6);
        tare_tensor_reset(&a);
        tare_tensor_reset(&b);
        tare_model_free(plain.model);
        tare_model_free(folded.model);
    }
}

/* Whoever has statistics of the folded model finds the values of the model as it was by these names. */
static void stand_ins__name_the_node_whose_value_they_have(void **state) {
    static const struct {
        bool bias, addend;
        const char *product, *behind, *of_behind; /* the nodes that the product and the bias after it replace */
    } expected[] = {
        { false, false, "norm/mul", NULL, NULL },
        { true, false, "", "bias", "norm/mul" },
        { false, true, "norm/mul", "product/bias", "norm/add" },
        { true, true, "", "bias", "norm/add" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct network n = build(expected[i].bias, expected[i].addend);
        size_t changes = 0;
        mini_ok(tare_pass_fold_batch_norm.run(n.model, &changes));
        const char *product = original(n.model, "product");
        if (!product || strcmp(product, expected[i].product) != 0)
            fail_msg("case %zu: the product replaces '%s' (expected '%s')", i, product ? product : "itself",
                     expected[i].product);
        if (expected[i].behind) assert_string_equal(original(n.model, expected[i].behind), expected[i].of_behind);
        tare_model_free(n.model);
    }
}

/* ---- transposed convolutions ---- */

/* A filter [1, 2, OUT, IN] on images [1, 1, 1, IN], in groups of one input if `groups` is IN, and the product with
 * `factors` factors; 0: a scalar. */
static struct network build_transposed(int groups, int factors) {
    const struct tare_shape shape = tare_shape_make(4, 1, 2, OUT, IN);
    const int64_t ones[] = { 1, 1, 1, 1 };
    const int32_t sizes[] = { 1, 1, 2, OUT * groups }, image[] = { 1, 1, 1, IN }, flat[] = { 1, 2 * OUT * groups };
    struct network n = { .model = mini_model_new() };
    struct tare_graph *g = n.model->main;
    struct tare_tensor filter;
    mini_ok(tare_tensor_new(&filter, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < filter.elements; i++)
        TARE_DATA(float, &filter)[i] = (float)(i * 5 % 7 - 3);
    n.x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    n.y = mini_node(g, "Reshape", "image", 2, n.x, mini_ints(g, "image/shape", 4, image));
    struct tare_node *up = mini_open(g, "Conv2DBackpropInput", "up", 3, mini_ints(g, "sizes", 4, sizes),
                                     (struct tare_edge){ tare_graph_add_const(g, "filter", &filter), 0 }, n.y);
    mini_ok(tare_node_set_type(up, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int_list(up, "strides", ones, 4));
    mini_ok(tare_node_set_string(up, "padding", "VALID", 5));
    n.y = mini_done(up);
    n.y = mini_node(g, "AddV2", "add", 2, n.y, factors ? vector(g, "m", factors, 0.5, 0.25) : mini_float(g, "m", 0.5f));
    n.y = mini_node(g, "Mul", "mul", 2, n.y, factors ? vector(g, "a", factors, -2, 1.25) : mini_float(g, "a", 0.5f));
    n.y = mini_node(g, "Reshape", "y", 2, n.y, mini_ints(g, "flat", 2, flat));
    tare_tensor_reset(&filter);
    return n;
}

/* The output channels are the third axis of the filter; of groups, the filter has those of one. */
static void transposed_convolutions__have_factors_on_their_third_axis(void **state) {
    static const struct {
        int groups, factors, changes;
    } cases[] = { { 1, OUT, 2 }, { 1, 0, 0 }, { IN, OUT * IN, 0 }, { IN, 0, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network plain = build_transposed(cases[i].groups, cases[i].factors);
        struct network folded = build_transposed(cases[i].groups, cases[i].factors);
        size_t changes = 0;
        mini_ok(tare_pass_fold_batch_norm.run(folded.model, &changes));
        assert_int_equal(changes, cases[i].changes);
        struct tare_tensor a = answer(&plain), b = answer(&folded);
        assert_int_equal(a.elements, b.elements);
        for (int c = 0; c < a.elements; c++)
            assert_float_equal(TARE_DATA(float, &a)[c], TARE_DATA(float, &b)[c], 1e-5);
        tare_tensor_reset(&a);
        tare_tensor_reset(&b);
        tare_model_free(plain.model);
        tare_model_free(folded.model);
    }
}

/* ---- dilated convolutions between SpaceToBatchND and BatchToSpaceND ---- */

enum { SIZE = 6, CHANNELS = 2 };

static struct network build_dilated(bool bias_behind) {
    struct network n = { .model = mini_model_new() };
    struct tare_graph *g = n.model->main;
    const struct tare_shape shape = tare_shape_make(4, 3, 3, CHANNELS, OUT);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)(i * 5 % 7 - 3);
    const struct tare_edge filter = { tare_graph_add_const(g, "w", &value), 0 };
    tare_tensor_reset(&value);
    const struct tare_edge blocks = mini_ints(g, "blocks", 2, (const int32_t[]){ 2, 2 }),
                           pairs = mini_ints(g, "pairs", 2, (const int32_t[]){ 2, 2 });
    const struct tare_edge paddings =
        mini_node(g, "Reshape", "paddings", 2, mini_ints(g, "pads", 4, (const int32_t[]){ 2, 2, 2, 2 }), pairs);
    struct tare_tensor none;
    const struct tare_shape square = tare_shape_make(2, 2, 2);
    mini_ok(tare_tensor_from(&none, TARE_DT_INT32, &square, (const int32_t[4]){ 0 }));
    const struct tare_edge crops = { tare_graph_add_const(g, "crops", &none), 0 };
    tare_tensor_reset(&none);
    n.x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_node *conv =
        mini_open(g, "Conv2D", "conv", 2, mini_node(g, "SpaceToBatchND", "to_batch", 3, n.x, blocks, paddings), filter);
    mini_ok(tare_node_set_int_list(conv, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(conv, "padding", "VALID", 5));
    n.y = mini_node(g, "BatchToSpaceND", "to_space", 3, mini_done(conv), blocks, crops);
    if (bias_behind) n.y = mini_node(g, "BiasAdd", "bias", 2, n.y, vector(g, "b", OUT, 1, 0.5));
    n.y = mini_node(g, "Mul", "norm/mul", 2, n.y, vector(g, "m", OUT, 0.5, 0.25));
    n.y = mini_node(g, "AddV2", "norm/add", 2, n.y, vector(g, "a", OUT, -2, 1));
    n.y = mini_node(g, "Identity", "y", 1, n.y);
    return n;
}

static struct tare_tensor answer_image(const struct network *n) {
    const struct tare_shape shape = tare_shape_make(4, 1, SIZE, SIZE, CHANNELS);
    struct tare_session *session = mini_session(n->model);
    struct tare_tensor x, y;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] = (float)(i * 3 % 11 - 5);
    mini_ok(tare_session_run(session, &n->x, &x, 1, &n->y, &y, 1, NULL, 0));
    tare_tensor_reset(&x);
    tare_session_free(session);
    return y;
}

static void dilated_convolutions__are_folded_through_batch_to_space(void **state) {
    (void)state;
    for (int bias = 0; bias < 2; bias++) {
        struct network plain = build_dilated(bias), folded = build_dilated(bias);
        size_t changes = 0;
        mini_ok(tare_pass_fold_batch_norm.run(folded.model, &changes));
        assert_int_equal(changes, 2 + bias);
        assert_string_equal(folded.y.node->inputs[0].node->op, "BatchToSpaceND");
        assert_string_equal(folded.y.node->inputs[0].node->inputs[0].node->op, "BiasAdd");
        assert_string_equal(original(folded.model, "to_space"), "norm/add");
        struct tare_tensor a = answer_image(&plain), b = answer_image(&folded);
        assert_int_equal(a.elements, SIZE * SIZE * OUT);
        for (int64_t i = 0; i < a.elements; i++)
            assert_float_equal(TARE_DATA(float, &a)[i], TARE_DATA(float, &b)[i], 1e-4);
        tare_tensor_reset(&a);
        tare_tensor_reset(&b);
        tare_model_free(plain.model);
        tare_model_free(folded.model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_and_terms__become_weights_and_bias),
        cmocka_unit_test(stand_ins__name_the_node_whose_value_they_have),
        cmocka_unit_test(dilated_convolutions__are_folded_through_batch_to_space),
        cmocka_unit_test(transposed_convolutions__have_factors_on_their_third_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
