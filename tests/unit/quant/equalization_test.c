/* Equalization through a depthwise layer that stays float, and why it changes nothing where it does. */
#include "support/quantized_model.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 200, CHANNELS = 8, OUT = 6 };

static struct tare_edge constant(struct quantized_model *m, const char *name, const struct tare_shape *shape,
                                 double size, double spread, uint64_t seed) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < value.elements; i++) /* channel c: size * spread^c */
        TARE_DATA(float, &value)
    [i] = (float)(size * pow(spread, (double)(i * CHANNELS / value.elements))) *
          (0.5f + fabsf(quantized_model_normal(&seed)));
    const struct tare_edge edge = { tare_graph_add_const(m->graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

static struct tare_edge conv(struct quantized_model *m, const char *op, const char *name, struct tare_edge x,
                             struct tare_edge w) {
    struct tare_node *node = mini_open(m->graph, op, name, 2, x, w);
    mini_ok(tare_node_set_int_list(node, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return mini_done(node);
}

/* A depthwise layer whose channels have scales that the pointwise layer after it undoes; `op` is between them. The
 * pointwise layer is static with 8 bits. */
static double loss_of(const char *op, const char *passes, char note[256]) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static, .activation_bits = 8 },
                                             .min_elements = 1 };
    const struct tare_shape kernel = tare_shape_make(4, 1, 1, CHANNELS, 1), bias = tare_shape_make(1, CHANNELS),
                            pointwise = tare_shape_make(4, 1, 1, CHANNELS, OUT);
    const int32_t image[] = { ROWS, 1, 1, CHANNELS }, flat[] = { ROWS, OUT };
    struct tare_tensor expected, got;
    struct quantized_model m;
    double loss;
    quantized_model_begin(&m, ROWS, CHANNELS, 1, 3);
    struct tare_edge y = mini_node(m.graph, "Reshape", "image", 2, m.in, mini_ints(m.graph, "shape", 4, image));
    y = conv(&m, "DepthwiseConv2dNative", "depthwise", y, constant(&m, "k", &kernel, 1, 0.3, 4));
    y = mini_node(m.graph, "BiasAdd", "bias", 2, y, constant(&m, "b", &bias, 0.3, 0.3, 5));
    y = mini_node(m.graph, op, "between", 1, y);
    y = conv(&m, "Conv2D", "pointwise", y, constant(&m, "w", &pointwise, 1, 1 / 0.3, 6));
    quantized_model_return(&m, mini_node(m.graph, "Reshape", "y", 2, y, mini_ints(m.graph, "flat", 2, flat)));
    expected = quantized_model_run(&m);
    quantized_model_quantize(&m, &options, passes);
    got = quantized_model_run(&m);
    assert_int_equal(m.report.quantized, 1);
    assert_int_equal(quantized_model_count(&m, "DepthwiseConv2dNative"), 1);
    loss = quantized_model_loss(&got, &expected);
    snprintf(note, 256, "%s", m.report.n_notes ? m.report.notes[0] : "");
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    quantized_model_end(&m);
    return loss;
}

static void a_depthwise_layer_in_float__takes_the_division(void **state) {
    char note[256];
    const double plain = loss_of("Relu", "", note), equalized = loss_of("Relu", "equalization", note);
    (void)state;
    if (!(equalized < plain / 20)) fail_msg("loss %.3g, equalized %.3g", plain, equalized);
    assert_string_equal(note, "");
}

static void a_pass_that_changes_nothing__has_a_note(void **state) {
    char note[256];
    const double plain = loss_of("Relu6", "", note), relu6 = loss_of("Relu6", "equalization", note);
    (void)state;
    assert_true(plain == relu6);
    assert_string_equal(note, "pass equalization changes nothing: Relu6 follows layer 'depthwise' (only Relu keeps "
                              "scales)");
    loss_of("Tanh", "equalization", note);
    assert_string_equal(note, "pass equalization changes nothing: the output of layer 'depthwise' goes to Tanh "
                              "'between' (expected another layer)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_depthwise_layer_in_float__takes_the_division),
        cmocka_unit_test(a_pass_that_changes_nothing__has_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
