/* Activations of 16 bits: chosen where int8 would leave the output of a layer too noisy. */
#include "support/quantized_model.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 200, IN = 8, SCORES = 6 };

struct result {
    int bits; /* of the activation */
    double loss;
    size_t warnings;
    char warning[200]; /* the last one */
};

/* The signature returns y as `outputs` numbers per example. */
static void add_signature(struct quantized_model *m) {
    struct tare_binding *bindings = TARE_NEW_ARRAY(&m->model->arena, struct tare_binding, 2);
    struct tare_signature *signature = TARE_NEW(&m->model->arena, struct tare_signature);
    bindings[0] = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .edge = m->x };
    bindings[1] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = m->y };
    bindings[0].shape = bindings[1].shape = tare_shape_unknown();
    *signature = (struct tare_signature){ "serving_default", "", &bindings[0], 1, &bindings[1], 1, NULL };
    m->model->signatures = signature;
    m->model->n_signatures = 1;
}

/* y = x W with column c of x reaching spread^c times as far as the first and rows of W that undo it; `op` (NULL: none)
 * follows. */
static struct result quantize_after(const char *passes, double spread, int outputs, const char *op,
                                    int activation_bits) {
    const struct tare_quant_plan options = {
        .setting = { .method = &tare_method_static, .activation_bits = activation_bits }, .warns = true
    };
    struct quantized_model m;
    struct tare_tensor expected, got;
    struct tare_edge y;
    struct result result;
    quantized_model_begin(&m, ROWS, IN, spread, 3);
    y = mini_node(m.graph, "MatMul", "layer", 2, m.in, quantized_model_weight(&m, "w", IN, outputs, 1, spread, 4));
    if (op) y = mini_node(m.graph, op, "last", 1, y);
    quantized_model_return(&m, mini_node(m.graph, "Identity", "copy", 1, y));
    add_signature(&m);
    expected = quantized_model_run(&m);
    quantized_model_quantize(&m, &options, passes);
    got = quantized_model_run(&m);
    assert_int_equal(m.report.quantized, 1);
    result = (struct result){ .bits = m.report.outcomes[0].setting.activation_bits == 16 ? 16 : 8,
                              .loss = quantized_model_loss(&got, &expected),
                              .warnings = m.report.n_warnings };
    if (result.warnings) snprintf(result.warning, sizeof result.warning, "%s", m.report.warnings[result.warnings - 1]);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    quantized_model_end(&m);
    return result;
}

static struct result quantize(double spread, int outputs, const char *op, int activation_bits) {
    return quantize_after("", spread, outputs, op, activation_bits);
}

static void channels_of_different_scales__need_16_bits(void **state) {
    const struct result narrow = quantize(0.5, SCORES, NULL, 8), wide = quantize(0.5, SCORES, NULL, 0);
    (void)state;
    assert_int_equal(narrow.bits, 8);
    assert_int_equal(wide.bits, 16);
    if (!(wide.loss < narrow.loss / 3)) /* the rest is the error of the weights */
        fail_msg("loss %.3g with 16 bits, %.3g with 8", wide.loss, narrow.loss);
}

static void a_layer_that_keeps_8_bits_and_is_noisy__has_a_warning(void **state) {
    (void)state;
    assert_int_equal(quantize(0.5, SCORES, NULL, 8).warnings, 1);
    assert_non_null(strstr(quantize(0.5, SCORES, NULL, 8).warning, "use activation_bits=16 in a recipe rule"));
    assert_int_equal(quantize(0.5, SCORES, NULL, 0).warnings, 0);
    assert_int_equal(quantize(1, SCORES, NULL, 8).warnings, 0);
}

static void a_layer_for_which_16_bits_are_too_few__has_a_warning(void **state) {
    const struct result result = quantize(0.03, SCORES, NULL, 0);
    (void)state;
    assert_int_equal(result.bits, 16);
    assert_int_equal(result.warnings, 1);
    assert_non_null(strstr(result.warning, "use --passes smooth_quant, or --auto"));
    if (!(result.loss > 0.01)) fail_msg("the warning is wrong: the loss is %.3g", result.loss);
}

/* The bits are chosen for the activation whose channels smooth_quant has divided, and so is the warning. */
static void channels_that_a_pass_makes_alike__need_8_bits(void **state) {
    const struct result narrow = quantize(0.5, SCORES, NULL, 8),
                        smooth = quantize_after("smooth_quant", 0.5, SCORES, NULL, 0),
                        kept = quantize_after("smooth_quant", 0.5, SCORES, NULL, 8);
    (void)state;
    assert_int_equal(smooth.bits, 8);
    assert_int_equal(smooth.warnings, 0);
    assert_int_equal(kept.warnings, 0);
    if (!(smooth.loss < narrow.loss / 3)) fail_msg("loss %.3g, %.3g without the pass", smooth.loss, narrow.loss);
}

/* With the range of the divided activation. */
static void channels_that_a_pass_divides_too_little__have_16_bits(void **state) {
    const struct result kept = quantize_after("smooth_quant:alpha=0.1", 0.5, 1, NULL, 8),
                        wide = quantize_after("smooth_quant:alpha=0.1", 0.5, 1, NULL, 0);
    (void)state;
    assert_int_equal(wide.bits, 16);
    if (!(wide.loss < kept.loss)) fail_msg("loss %.3g with 16 bits, %.3g with 8", wide.loss, kept.loss);
}

static int bits_of(const struct quantized_model *m, const char *layer) {
    for (size_t i = 0; i < m->report.count; i++)
        if (strcmp(m->report.outcomes[i].node, layer) == 0)
            return m->report.outcomes[i].setting.activation_bits == 16 ? 16 : 8;
    fail_msg("no layer %s", layer);
    return 0;
}

/* Blocks of one form: what one layer needs, the others get, as they would under a loop. Not those of other sizes, or of
 * another kind of activation. */
static void repeated_layers__have_the_same_bits(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_static };
    struct quantized_model m;
    (void)state;
    quantized_model_begin(&m, ROWS, IN, 0.5, 3);
    struct tare_edge even = mini_node(m.graph, "MatMul", "first", 2, m.in,
                                      quantized_model_weight(&m, "w0", IN, IN, 1, 0.5, 4)); /* alike in all channels */
    struct tare_edge x = mini_node(m.graph, "Relu", "relu", 1, even), in = mini_node(m.graph, "Relu", "of_in", 1, m.in);
    const struct tare_edge needs =
        mini_node(m.graph, "MatMul", "needs", 2, in, quantized_model_weight(&m, "w1", IN, SCORES, 1, 0.5, 5));
    const struct tare_edge alike =
        mini_node(m.graph, "MatMul", "alike", 2, x, quantized_model_weight(&m, "w2", IN, SCORES, 1, 1, 6));
    const struct tare_edge wider =
        mini_node(m.graph, "MatMul", "wider", 2, x, quantized_model_weight(&m, "w3", IN, 2 * SCORES, 1, 1, 7));
    const struct tare_edge bounded =
        mini_node(m.graph, "MatMul", "bounded", 2, mini_node(m.graph, "Tanh", "tanh", 1, even),
                  quantized_model_weight(&m, "w4", IN, SCORES, 1, 1, 8));
    const struct tare_edge sum =
        mini_node(m.graph, "AddV2", "sum", 2, mini_node(m.graph, "AddV2", "two", 2, needs, alike), bounded);
    quantized_model_return(&m, mini_node(m.graph, "ConcatV2", "all", 3, sum, wider, mini_int(m.graph, "axis", 1)));
    add_signature(&m);
    quantized_model_quantize(&m, &options, "");
    assert_int_equal(bits_of(&m, "needs"), 16);
    assert_int_equal(bits_of(&m, "alike"), 16);
    assert_int_equal(bits_of(&m, "wider"), 8);
    assert_int_equal(bits_of(&m, "bounded"), 8);
    quantized_model_end(&m);
}

static void bits_on_request__stay(void **state) {
    (void)state;
    assert_int_equal(quantize(0.5, SCORES, NULL, 8).bits, 8);
    assert_int_equal(quantize(1, SCORES, NULL, 16).bits, 16);
}

/* About 33 dB: enough for scores and probabilities, too little for a number. */
static void a_number__tolerates_less_noise_than_scores(void **state) {
    (void)state;
    assert_int_equal(quantize(0.8, SCORES, NULL, 0).bits, 8);
    assert_int_equal(quantize(0.8, 1, NULL, 0).bits, 16);
    assert_int_equal(quantize(0.8, 1, "Sigmoid", 0).bits, 8);
}

/* y = x W for 64 heads of two numbers each, which Einsum keeps apart: a stack of products has the noise of one. */
static void products_in_batches__have_the_noise_of_one(void **state) {
    enum { HEADS = 64, OF_HEAD = 2, OUT = 3 };
    static const int32_t split[] = { -1, HEADS, OF_HEAD };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static, .warns = true };
    const struct tare_shape shape = tare_shape_make(3, HEADS, OF_HEAD, OUT);
    struct quantized_model m;
    struct tare_tensor w;
    uint64_t seed = 9;
    (void)state;
    quantized_model_begin(&m, ROWS, HEADS * OF_HEAD, 1, 3);
    mini_ok(tare_tensor_new(&w, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < w.elements; i++)
        TARE_DATA(float, &w)[i] = quantized_model_normal(&seed);
    const struct tare_edge weight = { tare_graph_add_const(m.graph, "w", &w), 0 };
    struct tare_node *node =
        mini_open(m.graph, "Einsum", "heads", 2,
                  mini_node(m.graph, "Reshape", "split", 2, m.in, mini_ints(m.graph, "shape", 3, split)), weight);
    mini_ok(tare_node_set_string(node, "equation", "bhi,hio->bho", 12));
    mini_ok(tare_node_set_int(node, "N", 2));
    quantized_model_return(&m, mini_done(node));
    add_signature(&m);
    quantized_model_quantize(&m, &options, "");
    assert_int_equal(m.report.quantized, 1);
    assert_int_not_equal(m.report.outcomes[0].setting.activation_bits, 16);
    assert_int_equal(m.report.n_warnings, 0);
    tare_tensor_reset(&w);
    quantized_model_end(&m);
}

/* An output of one axis is a number for each example only if that axis is the inputs' first one. */
static int bits_of_scores(bool has_batch) {
    static const int32_t no_batch[] = { SCORES };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static };
    struct quantized_model m;
    quantized_model_begin(&m, ROWS, IN, 0.8, 3);
    struct tare_edge y =
        mini_node(m.graph, "MatMul", "layer", 2, m.in, quantized_model_weight(&m, "w", IN, SCORES, 1, 0.8, 4));
    quantized_model_return(&m, mini_node(m.graph, "Identity", "copy", 1, y));
    add_signature(&m);
    struct tare_binding *x = &m.model->signatures[0].inputs[0], *scores = &m.model->signatures[0].outputs[0];
    scores->edge =
        mini_node(m.y.node->graph, "Reshape", "flat", 2, m.y, mini_ints(m.y.node->graph, "flat/shape", 1, no_batch));
    x->edge = (struct tare_edge){ 0 };
    x->shape = has_batch ? tare_shape_make(2, SCORES, IN) : tare_shape_make(1, IN);
    quantized_model_quantize(&m, &options, "");
    const int bits = m.report.outcomes[0].setting.activation_bits == 16 ? 16 : 8;
    quantized_model_end(&m);
    return bits;
}

static void scores_without_an_axis_of_examples__are_no_number(void **state) {
    (void)state;
    assert_int_equal(bits_of_scores(true), 16);
    assert_int_equal(bits_of_scores(false), 8);
}

static void enlarge(struct tare_tensor *values, float factor) {
    for (int64_t i = 0; i < values->elements; i++)
        TARE_DATA(float, values)[i] *= factor;
}

/* y = x W with activations of 16 bits: the bits of them that are headroom, and the loss for values three times as large
 * as those of the samples. */
static int headroom(double *loss, double spread) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static, .activation_bits = 16 } };
    struct quantized_model m;
    quantized_model_begin(&m, ROWS, IN, spread, 3);
    quantized_model_return(
        &m, mini_node(m.graph, "MatMul", "layer", 2, m.in, quantized_model_weight(&m, "w", IN, SCORES, 1, spread, 4)));
    add_signature(&m);
    struct tare_tensor expected = quantized_model_run(&m);
    quantized_model_quantize(&m, &options, "");
    enlarge(&expected, 3);
    enlarge(&m.samples, 3);
    struct tare_tensor got = quantized_model_run(&m);
    *loss = quantized_model_loss(&got, &expected);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    const int bits = m.report.outcomes[0].setting.headroom;
    quantized_model_end(&m);
    return bits;
}

static void range_headroom__takes_in_values_that_no_sample_has(void **state) {
    double loss;
    (void)state;
    assert_int_equal(headroom(&loss, 1), 2);
    if (!(loss < 1e-4)) fail_msg("loss %.3g", loss);
}

static void range_headroom__none_where_16_bits_are_needed(void **state) {
    double loss;
    (void)state;
    assert_int_equal(headroom(&loss, 0.4), 0);
    if (!(loss > 1e-3)) fail_msg("loss %.3g: nothing was clipped", loss);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_of_different_scales__need_16_bits),
        cmocka_unit_test(a_layer_that_keeps_8_bits_and_is_noisy__has_a_warning),
        cmocka_unit_test(a_layer_for_which_16_bits_are_too_few__has_a_warning),
        cmocka_unit_test(channels_that_a_pass_makes_alike__need_8_bits),
        cmocka_unit_test(channels_that_a_pass_divides_too_little__have_16_bits),
        cmocka_unit_test(repeated_layers__have_the_same_bits),
        cmocka_unit_test(bits_on_request__stay),
        cmocka_unit_test(a_number__tolerates_less_noise_than_scores),
        cmocka_unit_test(products_in_batches__have_the_noise_of_one),
        cmocka_unit_test(scores_without_an_axis_of_examples__are_no_number),
        cmocka_unit_test(range_headroom__takes_in_values_that_no_sample_has),
        cmocka_unit_test(range_headroom__none_where_16_bits_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
