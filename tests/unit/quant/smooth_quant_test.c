/* SmoothQuant: the factors, what becomes of the weights, and where the division goes. */
#include "support/quantized_model.h"
#include "quant/recipe.h"

#include <math.h>
#include <string.h>

enum { ROWS = 200, IN = 16, MIDDLE = 16, OUT = 8 };

static const struct tare_quant_plan plain_static = { .setting = { .method = &tare_method_static } };
static const struct tare_quant_plan plain_dynamic = { .setting = { .method = &tare_method_dynamic },
                                                      .min_elements = 1 };

/* How x gets to the product. */
enum shape { BARE, NORMALIZED, BEHIND_LAYER, BEHIND_ONE_NUMBER };

/* Channel c of what the last product reads reaches 1.6^c times as far as the first. */
static void build(struct quantized_model *m, enum shape shape) {
    struct tare_graph *graph;
    struct tare_edge y, z;
    quantized_model_begin(m, ROWS, IN, shape == BARE || shape == BEHIND_ONE_NUMBER ? 1.6 : 1, 3);
    graph = m->graph;
    y = m->in;
    if (shape == NORMALIZED) { /* gamma is used twice, as where a LayerNorm is written out */
        struct tare_edge gamma = quantized_model_weight(m, "gamma", 0, IN, 1, 1, 5);
        for (int c = 0; c < IN; c++)
            TARE_DATA(float, (struct tare_tensor *)(uintptr_t)tare_edge_constant(gamma))[c] = (float)pow(1.6, c);
        y = mini_node(graph, "Mul", "scaled", 2, y, gamma);
        z = mini_node(graph, "Mul", "shift", 2, gamma, mini_float(graph, "mean", 0.25f));
        z = mini_node(graph, "Sub", "beta", 2, quantized_model_weight(m, "b", 0, IN, 1, 1, 6), z);
        y = mini_node(graph, "AddV2", "normal", 2, y, z);
    }
    if (shape == BEHIND_LAYER) {
        struct tare_edge w = quantized_model_weight(m, "w0", IN, MIDDLE, 1, 1, 7);
        for (int i = 0; i < IN * MIDDLE; i++)
            TARE_DATA(float, (struct tare_tensor *)(uintptr_t)tare_edge_constant(w))[i] *= (float)pow(1.6, i % MIDDLE);
        y = mini_node(graph, "MatMul", "first", 2, y, w);
        y = mini_node(graph, "BiasAdd", "bias", 2, y, quantized_model_weight(m, "b0", 0, MIDDLE, 1, 1, 8));
        y = mini_node(graph, "Relu", "relu", 1, y);
    }
    if (shape == BEHIND_ONE_NUMBER) {
        const struct tare_shape all = tare_shape_make(2, ROWS, IN);
        struct tare_tensor twos;
        mini_ok(tare_tensor_new(&twos, TARE_DT_FLOAT, &all));
        for (int64_t i = 0; i < twos.elements; i++)
            TARE_DATA(float, &twos)[i] = 2;
        y = mini_node(graph, "Mul", "doubled", 2, y,
                      (struct tare_edge){ tare_graph_add_const(graph, "twos", &twos), 0 });
        tare_tensor_reset(&twos);
    }
    z = mini_node(graph, "MatMul", "left", 2, y, quantized_model_weight(m, "w1", IN, OUT, 1, 1.6, 9));
    y = mini_node(graph, "MatMul", "right", 2, y, quantized_model_weight(m, "w2", IN, OUT, 2, 1.6, 10));
    quantized_model_return(m, mini_node(graph, "AddV2", "y", 2, z, y));
}

static double loss_of(enum shape shape, const struct tare_quant_plan *options, const char *passes, int *muls) {
    struct quantized_model m;
    struct tare_tensor expected, got;
    double loss;
    build(&m, shape);
    expected = quantized_model_run(&m);
    quantized_model_quantize(&m, options, passes);
    got = quantized_model_run(&m);
    loss = quantized_model_loss(&got, &expected);
    *muls = quantized_model_count(&m, "Mul");
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    quantized_model_end(&m);
    return loss;
}

/* With activations of 8 bits: without the pass they would be 16. */
static void compare(enum shape shape, const struct tare_quant_plan *options, int extra_muls) {
    struct tare_quant_plan narrow = *options;
    int before, after;
    narrow.setting.activation_bits = narrow.setting.method == &tare_method_static ? 8 : 0;
    const double plain = loss_of(shape, &narrow, "", &before), smooth = loss_of(shape, &narrow, "smooth_quant", &after);
    if (!(smooth < plain / 20)) fail_msg("loss %g, smoothed %g", plain, smooth);
    assert_int_equal(after - before, extra_muls);
}

static void an_activation_from_outside__is_multiplied_once_for_all_its_layers(void **state) {
    (void)state;
    compare(BARE, &plain_static, 1);
    compare(BARE, &plain_dynamic, 1);
}

static void constants_before_the_activation__take_the_division(void **state) {
    (void)state;
    compare(NORMALIZED, &plain_static, 0);
    compare(NORMALIZED, &plain_dynamic, 0);
}

/* It is one number in the file, and would be ROWS numbers a channel. */
static void one_number_for_all__stays_one(void **state) {
    (void)state;
    compare(BEHIND_ONE_NUMBER, &plain_static, 1);
}

static void a_static_layer_before_the_activation__takes_the_division(void **state) {
    (void)state;
    compare(BEHIND_LAYER, &plain_static, 1);  /* that of the first layer's own activation */
    compare(BEHIND_LAYER, &plain_dynamic, 1); /* whose bias is a constant of the sum behind it */
}

/* A rule leaves the layer before the activation in float: what it computes is divided by a product of its own. */
static void a_float_layer_before_the_activation__stays(void **state) {
    static const char rule[] = "name=first -> float";
    struct tare_arena arena = { 0 };
    struct tare_quant_recipe *recipe;
    struct tare_quant_plan options = plain_static;
    (void)state;
    mini_ok(tare_quant_recipe_new(&recipe, &arena));
    mini_ok(tare_quant_recipe_read(recipe, rule, strlen(rule), "rule"));
    options.recipe = recipe;
    compare(BEHIND_LAYER, &options, 1);
    tare_arena_free(&arena);
}

static void weight_only__is_left_alone(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_weight_only }, .min_elements = 1 };
    int before, after;
    const double plain = loss_of(BARE, &options, "", &before), smooth = loss_of(BARE, &options, "smooth_quant", &after);
    (void)state;
    assert_true(plain == smooth);
    assert_int_equal(before, after);
}

/* The factors by the formula: greatest magnitudes over the samples, and over the weights of both layers. */
static void factors_by_hand(double *s, struct quantized_model *m, double alpha) {
    const float *w1 = TARE_CONST_DATA(float, tare_edge_constant(tare_graph_find(m->graph, "left")->inputs[1]));
    const float *w2 = TARE_CONST_DATA(float, tare_edge_constant(tare_graph_find(m->graph, "right")->inputs[1]));
    for (int c = 0; c < IN; c++) {
        double x = 0, w = 0;
        for (int r = 0; r < ROWS; r++)
            x = fmax(x, fabs((double)TARE_DATA(float, &m->samples)[r * IN + c]));
        for (int k = 0; k < OUT; k++)
            w = fmax(w, fmax(fabs((double)w1[c * OUT + k]), fabs((double)w2[c * OUT + k])));
        s[c] = pow(x, alpha) / pow(w, 1 - alpha);
    }
}

static void factors__are_those_of_the_formula(void **state) {
    const char *const passes[] = { "smooth_quant", "smooth_quant:alpha=0.8", "smooth_quant:alpha=0" };
    const double alphas[] = { 0.5, 0.8, 0 };
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct quantized_model m;
        const struct tare_node *mul;
        double s[IN];
        build(&m, BARE);
        factors_by_hand(s, &m, alphas[i]);
        quantized_model_quantize(&m, &plain_static, passes[i]);
        mul = tare_graph_find(m.graph, "left/smooth");
        assert_non_null(mul);
        for (int c = 0; c < IN; c++) {
            const double got = tare_tensor_get_f64(tare_edge_constant(mul->inputs[1]), c);
            if (!(fabs(got * s[c] - 1) < 1e-6))
                fail_msg("alpha %g, channel %d: 1/s is %g, expected %g", alphas[i], c, got, 1 / s[c]);
        }
        quantized_model_end(&m);
    }
}

/* A channel that no sample shows counts as the median channel, so that ordinary values of it are not clipped. */
static void a_channel_that_is_always_zero__counts_as_the_median(void **state) {
    struct quantized_model m;
    const struct tare_node *mul;
    double reach[IN], s[IN];
    (void)state;
    build(&m, BARE);
    for (int r = 0; r < ROWS; r++)
        TARE_DATA(float, &m.samples)[r * IN] = 0;
    factors_by_hand(reach, &m, 1); /* greatest magnitudes of the channels: 0, then ascending */
    factors_by_hand(s, &m, 0);     /* 1 / greatest magnitudes of the weights */
    quantized_model_quantize(&m, &plain_static, "smooth_quant");
    mul = tare_graph_find(m.graph, "left/smooth");
    assert_non_null(mul);
    assert_float_equal(tare_tensor_get_f64(tare_edge_constant(mul->inputs[1]), 0),
                       1 / sqrt(reach[1 + (IN - 1) / 2] * s[0]), 1e-4);
    quantized_model_end(&m);
}

static void alpha__is_checked(void **state) {
    struct tare_arena arena = { 0 };
    const struct tare_quant_pass *const *passes;
    (void)state;
    mini_fails(tare_quant_passes_parse(&passes, &arena, "smooth_quant:alpha=1.5"),
               "alpha is '1.5' (expected a number from 0 to 1)");
    mini_fails(tare_quant_passes_parse(&passes, &arena, "smooth_quant:beta=1"), "smooth_quant has no parameter 'beta'");
    mini_ok(tare_quant_passes_parse(&passes, &arena, "bias_correction,smooth_quant:alpha=0.25"));
    assert_true(passes[0]->parameters[0].value == 0.25);
    assert_ptr_equal(passes[1], &tare_quant_pass_bias_correction);
    tare_arena_free(&arena);
}

/* Means of the divided activation: the correction must not undo the division. */
static void bias_correction__knows_of_the_division(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static, .bits = 4 } };
    int muls;
    const double smooth = loss_of(NORMALIZED, &options, "smooth_quant", &muls);
    const double corrected = loss_of(NORMALIZED, &options, "smooth_quant,bias_correction", &muls);
    (void)state;
    if (!(corrected < smooth)) fail_msg("loss %g, corrected %g", smooth, corrected);
}

/* [ROWS, 16] as [ROWS / 4, 4, 16] into an op whose weight meets the last axis. */
static void build_product(struct quantized_model *m, const char *op) {
    const int32_t cube[] = { -1, 4, IN }, image[] = { -1, 2, 2, IN };
    const int64_t ones[] = { 1, 1, 1, 1 };
    const bool conv = strcmp(op, "Conv2D") == 0;
    struct tare_edge x, w;
    struct tare_node *node;
    quantized_model_begin(m, ROWS, IN, 1.6, 3);
    x = mini_node(m->graph, "Reshape", "parts", 2, m->in,
                  mini_ints(m->graph, "shape", conv ? 4 : 3, conv ? image : cube));
    w = quantized_model_weight(m, "w", IN, OUT, 1, 1.6, 9);
    if (conv) {
        const int32_t filter[] = { 1, 1, IN, OUT };
        struct tare_tensor kernel;
        const struct tare_shape shape = { .rank = 4, .dims = { filter[0], filter[1], filter[2], filter[3] } };
        mini_ok(tare_tensor_share_as(&kernel, tare_edge_constant(w), &shape));
        w = (struct tare_edge){ tare_graph_add_const(m->graph, "filter", &kernel), 0 };
        tare_tensor_reset(&kernel);
    }
    node = mini_open(m->graph, op, "product", 2, x, w);
    if (strcmp(op, "Einsum") == 0) mini_ok(tare_node_set_string(node, "equation", "abc,cd->abd", 11));
    if (conv) {
        mini_ok(tare_node_set_string(node, "padding", "VALID", 5));
        mini_ok(tare_node_set_int_list(node, "strides", ones, 4));
    }
    quantized_model_return(m, mini_done(node));
}

static double product_loss(const char *op, const char *passes) {
    struct quantized_model m;
    struct tare_tensor expected, got;
    double loss;
    build_product(&m, op);
    expected = quantized_model_run(&m);
    quantized_model_quantize(&m, &plain_static, passes);
    assert_int_equal(m.report.quantized, 1);
    got = quantized_model_run(&m);
    loss = quantized_model_loss(&got, &expected);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    quantized_model_end(&m);
    return loss;
}

static void products_of_every_kind__are_smoothed(void **state) {
    static const char *const ops[] = { "Einsum", "BatchMatMulV2", "Conv2D" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const double plain = product_loss(ops[i], ""), smooth = product_loss(ops[i], "smooth_quant");
        const double rounded = product_loss(ops[i], "smooth_quant,gptq");
        if (!(smooth < plain / 20)) fail_msg("%s: loss %g, smoothed %g", ops[i], plain, smooth);
        if (!(rounded < 1.05 * smooth)) fail_msg("%s: smoothed %g, with gptq %g", ops[i], smooth, rounded);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_activation_from_outside__is_multiplied_once_for_all_its_layers),
        cmocka_unit_test(constants_before_the_activation__take_the_division),
        cmocka_unit_test(one_number_for_all__stays_one),
        cmocka_unit_test(a_static_layer_before_the_activation__takes_the_division),
        cmocka_unit_test(products_of_every_kind__are_smoothed),
        cmocka_unit_test(a_float_layer_before_the_activation__stays),
        cmocka_unit_test(weight_only__is_left_alone),
        cmocka_unit_test(factors__are_those_of_the_formula),
        cmocka_unit_test(a_channel_that_is_always_zero__counts_as_the_median),
        cmocka_unit_test(alpha__is_checked),
        cmocka_unit_test(bias_correction__knows_of_the_division),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
