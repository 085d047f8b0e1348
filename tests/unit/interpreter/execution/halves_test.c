/* Products of 16-bit activations: the two int8 products of a quantized model, of the high and the low halves, are one
 * product of the activation where that is faster, with the bits of the separate ops at every CPU level. Graphs that
 * differ in one place from those of the quantizer keep their two products. */
#include "interpreter/kernels/integer/gemm_int.h"
#include "interpreter/ops/support/dims_wire.h"
#include "support/levels.h"
#include "support/quantized_layers.h"

#include <stdlib.h>
#include <string.h>

struct wide_layer {
    int64_t batch, size, channels, outputs, kernel, stride, pad;
    bool is_dot, low_first, requantizes;
    int bits, step, mask, half, zero; /* 0: those of the quantizer */
    bool has_other_weights;
};

static struct tare_edge number(struct tare_graph *g, const char *name, int value, int fallback) {
    return mini_int(g, name, value ? value : fallback);
}

static struct tare_edge int8_scalar(struct tare_graph *g, const char *name, int8_t value) {
    const struct tare_shape shape = tare_shape_make(0);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_INT8, &shape, &value));
    const struct tare_edge edge = { tare_graph_add_const(g, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge dot(struct tare_graph *g, const char *name, struct tare_edge x, struct tare_edge weight) {
    struct tare_dims_wire wire = { .size = 0 };
    struct tare_node *node = mini_open(g, "XlaDotV2", name, 2, x, weight);
    tare_dims_put_list(&wire, 1, (const int[]){ 1 }, 1);
    tare_dims_put_list(&wire, 2, (const int[]){ 0 }, 1);
    mini_ok(tare_node_set_type(node, "LhsT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "RhsT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "preferred_element_type", TARE_DT_INT32));
    mini_ok(tare_node_set_string(node, "dimension_numbers", (const char *)wire.bytes, wire.size));
    mini_ok(tare_node_set_string(node, "precision_config", "", 0));
    return mini_done(node);
}

static struct tare_edge product(struct tare_graph *g, const struct wide_layer *layer, const char *name,
                                struct tare_edge x, struct tare_edge weight, int64_t pad) {
    return layer->is_dot ? dot(g, name, x, weight)
                         : layers_conv(g, name, x, weight, (struct layers_window){ layer->stride, 1, 1, pad });
}

/* The sums as quant/methods/static.c writes them. */
static struct tare_edge sums(struct tare_graph *g, const struct wide_layer *layer, struct tare_edge x) {
    const struct tare_shape shape =
        layer->is_dot ? tare_shape_make(2, layer->channels, layer->outputs)
                      : tare_shape_make(4, layer->kernel, layer->kernel, layer->channels, layer->outputs);
    const struct tare_edge weight = layers_constant(g, "weight", TARE_DT_INT8, shape);
    const struct tare_edge other = layer->has_other_weights ? layers_constant(g, "other", TARE_DT_INT8, shape) : weight;
    const struct tare_edge wide = layers_cast(g, "wide", x, TARE_DT_INT32);
    struct tare_edge h = mini_node(g, "RightShift", "high", 2, wide, number(g, "bits", layer->bits, 8));
    struct tare_edge l = mini_node(g, "BitwiseAnd", "low", 2, wide, number(g, "mask", layer->mask, 255));
    h = layers_cast(g, "high_int8", h, TARE_DT_INT8);
    l = layers_cast(g, "low_int8", mini_node(g, "Sub", "centred", 2, l, number(g, "half", layer->half, 128)),
                    TARE_DT_INT8);
    if (layer->pad) l = layers_padded(g, "low", l, layer->pad, int8_scalar(g, "zero", (int8_t)(layer->zero - 128)));
    if (layer->low_first) {
        l = product(g, layer, "low_product", l, other, 0);
        h = product(g, layer, "high_product", h, weight, layer->pad);
    } else {
        h = product(g, layer, "high_product", h, weight, layer->pad);
        l = product(g, layer, "low_product", l, other, 0);
    }
    h = mini_node(g, "Mul", "scaled", 2, h, number(g, "step", layer->step, 256));
    return mini_node(g, "AddV2", "sums", 2, h, l);
}

static struct tare_edge build(struct tare_graph *g, const struct wide_layer *layer, struct tare_edge x) {
    const struct tare_shape vector = tare_shape_make(1, layer->outputs);
    struct tare_edge y = sums(g, layer, x);
    y = mini_node(g, "AddV2", "offset", 2, y, layers_constant(g, "offsets", TARE_DT_INT32, vector));
    y = mini_node(g, "Mul", "mul", 2, layers_cast(g, "real", y, TARE_DT_FLOAT), mini_float(g, "scale", 1e-5f));
    return layer->requantizes ? layers_requantized(g, "y", y) : y;
}

static struct tare_tensor activation(const struct wide_layer *layer) {
    const struct tare_shape image = tare_shape_make(4, layer->batch, layer->size, layer->size + 1, layer->channels);
    const struct tare_shape rows = tare_shape_make(2, layer->batch * layer->size, layer->channels);
    struct tare_tensor x = layers_random(TARE_DT_INT32, layer->is_dot ? rows : image), narrow;
    mini_ok(tare_tensor_new(&narrow, TARE_DT_INT16, &x.shape));
    for (int64_t i = 0; i < x.elements; i++) {
        const int32_t value = TARE_DATA(int32_t, &x)[i] * 2 + (int32_t)(i % 211);
        TARE_DATA(int16_t, &narrow)[i] = (int16_t)(i % 7 == 3 ? INT16_MIN : i % 7 == 5 ? INT16_MAX : value);
    }
    tare_tensor_reset(&x);
    return narrow;
}

/* `products` kernels run. */
static void check_layer(const struct wide_layer *layer, int64_t products) {
    const struct tare_session_options plain = { .use_reference_kernels = true }, fast = { .profile = true };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT16), y = build(model->main, layer, x);
    struct tare_tensor value = activation(layer);
    struct tare_session *sessions[2];
    mini_ok(tare_session_new(&sessions[0], model, &fast));
    mini_ok(tare_session_new(&sessions[1], model, &plain));
    for (int run = 1; run <= 2; run++) { /* the second uses packed weights */
        struct tare_tensor results[2];
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], &x, &value, 1, &y, &results[k], 1, NULL, 0));
        layers_assert_same(results[0], results[1]);
        assert_int_equal(layers_calls_of(sessions[0], layer->is_dot ? "XlaDotV2" : "XlaConvV2"), run * products);
    }
    tare_session_free(sessions[0]), tare_session_free(sessions[1]);
    tare_tensor_reset(&value);
    tare_model_free(model);
}

static const struct wide_layer usual = { 2, 7, 12, 20, 3, 1, 1, false, false, true, 0, 0, 0, 0, 0, false };

static void check_layers(void) {
    static const struct wide_layer layers[] = {
        { .batch = 1, .size = 7, .channels = 16, .outputs = 24, .kernel = 1, .stride = 1 },
        { .batch = 2, .size = 6, .channels = 33, .outputs = 19, .kernel = 1, .stride = 2, .low_first = true },
        { .batch = 2, .size = 8, .channels = 64, .outputs = 70, .kernel = 1, .stride = 1, .requantizes = true },
        { .batch = 1, .size = 9, .channels = 3, .outputs = 16, .kernel = 3, .stride = 2, .pad = 1 },
        { .batch = 1, .size = 9, .channels = 5, .outputs = 16, .kernel = 3, .stride = 1, .requantizes = true },
        { .batch = 1, .size = 6, .channels = 300, .outputs = 9, .kernel = 3, .stride = 1, .pad = 1, .low_first = true },
        { .batch = 1, .size = 5, .channels = 1, .outputs = 1, .kernel = 5, .stride = 1, .pad = 2, .requantizes = true },
        { .batch = 3, .size = 5, .channels = 65, .outputs = 33, .is_dot = true, .requantizes = true },
        { .batch = 1, .size = 1, .channels = 1280, .outputs = 1000, .is_dot = true, .low_first = true },
    };
    const int64_t joined = tare_igemm_is_pairs(tare_igemm_form_at(tare_cpu_level())) ? 1 : 2;
    check_layer(&usual, joined);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        check_layer(&layers[i], joined);
}

static void halves__one_product_at_every_level(void **unused) {
    (void)unused;
    levels_run("layers");
}

static void halves__other_graphs_keep_two_products(void **unused) {
    (void)unused;
    struct wide_layer other[7];
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        other[i] = usual;
    other[0].bits = 7, other[1].step = 128, other[2].mask = 127, other[3].half = 100, other[4].zero = 1;
    other[5].has_other_weights = true;
    other[6].pad = 0, other[6].kernel = 1, other[6].half = 1;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        check_layer(&other[i], 2);
}

/* A value that something else uses, too, is made. */
static void halves__a_half_that_is_a_result(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT16);
    struct tare_edge fetches[2] = { build(model->main, &usual, x) };
    for (size_t i = 0; i < model->main->n_nodes; i++)
        if (strcmp(model->main->nodes[i]->name, "wide") == 0)
            fetches[1] = (struct tare_edge){ model->main->nodes[i], 0 };
    struct tare_session *session = mini_session(model), *plain = layers_plain_session(model);
    struct tare_tensor value = activation(&usual), got[2], expected[2];
    mini_ok(tare_session_run(session, &x, &value, 1, fetches, got, 2, NULL, 0));
    mini_ok(tare_session_run(plain, &x, &value, 1, fetches, expected, 2, NULL, 0));
    for (int i = 0; i < 2; i++)
        layers_assert_same(got[i], expected[i]);
    tare_tensor_reset(&value);
    tare_session_free(session), tare_session_free(plain);
    tare_model_free(model);
}

/* Without examples no product has rows, and the steps run one by one. */
static void halves__no_examples(void **unused) {
    (void)unused;
    struct wide_layer empty = usual;
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT16), y = build(model->main, &usual, x);
    struct tare_session *session = mini_session(model), *plain = layers_plain_session(model);
    for (int i = 0; i < 4; i++) {
        struct tare_tensor value, got, expected;
        empty.batch = i % 2;
        value = activation(&empty);
        mini_ok(tare_session_run(session, &x, &value, 1, &y, &got, 1, NULL, 0));
        mini_ok(tare_session_run(plain, &x, &value, 1, &y, &expected, 1, NULL, 0));
        layers_assert_same(got, expected);
        tare_tensor_reset(&value);
    }
    tare_session_free(session), tare_session_free(plain);
    tare_model_free(model);
}

/* Threads divide the product by positions and by channels. */
static void halves__threads(void **unused) {
    (void)unused;
    static const struct wide_layer layers[] = {
        { .batch = 2, .size = 40, .channels = 64, .outputs = 70, .kernel = 1, .stride = 1 },
        { .batch = 1, .size = 30, .channels = 24, .outputs = 40, .kernel = 3, .stride = 1, .pad = 1 },
        { .batch = 1, .size = 2, .channels = 1280, .outputs = 1000, .is_dot = true, .requantizes = true },
    };
    const struct tare_session_options options = { .op_threads = 3 }, one = { 0 };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct tare_graph_model *model = mini_model_new();
        const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT16);
        const struct tare_edge y = build(model->main, &layers[i], x);
        struct tare_tensor value = activation(&layers[i]), results[2];
        for (int k = 0; k < 2; k++) {
            struct tare_session *session;
            mini_ok(tare_session_new(&session, model, k ? &one : &options));
            mini_ok(tare_session_run(session, &x, &value, 1, &y, &results[k], 1, NULL, 0));
            tare_session_free(session);
        }
        layers_assert_same(results[0], results[1]);
        tare_tensor_reset(&value);
        tare_model_free(model);
    }
}

static void layers(void **unused) {
    (void)unused;
    check_layers();
}

int main(int argc, char **argv) {
    const struct CMUnitTest one[] = { cmocka_unit_test(layers) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves__one_product_at_every_level),
        cmocka_unit_test(halves__other_graphs_keep_two_products),
        cmocka_unit_test(halves__a_half_that_is_a_result),
        cmocka_unit_test(halves__no_examples),
        cmocka_unit_test(halves__threads),
    };
    if (argc > 1 && strcmp(argv[1], "layers") == 0) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
