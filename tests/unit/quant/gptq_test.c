/* GPTQ as a pass: what it gains on layers with inputs that hang together, with which methods and grids, and what it
 * leaves alone. */
#include "support/quantized_model.h"

#include <math.h>
#include <string.h>

enum { ROWS = 512, IN = 24, MIDDLE = 48, OUT = 16 };

/* Sixteen numbers mixed into forty-eight, then ReLU: the second product's inputs are far from independent. */
static void build(struct quantized_model *m) {
    struct tare_edge y;
    quantized_model_begin(m, ROWS, IN, 1, 21);
    y = mini_node(m->graph, "MatMul", "first", 2, m->in, quantized_model_weight(m, "w1", IN, MIDDLE, 0.3, 1, 22));
    y = mini_node(m->graph, "BiasAdd", "bias", 2, y, quantized_model_weight(m, "b1", 0, MIDDLE, 0.3, 1, 23));
    y = mini_node(m->graph, "Relu", "relu", 1, y);
    y = mini_node(m->graph, "MatMul", "second", 2, y, quantized_model_weight(m, "w2", MIDDLE, OUT, 1, 1, 24));
    quantized_model_return(m, y);
}

/* The same through windows of 2 x 2 with padding: [ROWS, 24] as images of 2 x 3 with 4 channels. */
static void build_convolution(struct quantized_model *m) {
    const int32_t image[] = { -1, 2, 3, 4 };
    const int64_t ones[] = { 1, 1, 1, 1 };
    struct tare_edge x, w;
    struct tare_node *conv;
    struct tare_tensor filter;
    const struct tare_shape shape = tare_shape_make(4, 2, 2, 4, 16);
    uint64_t seed = 33;
    quantized_model_begin(m, ROWS, IN, 1, 31);
    x = mini_node(m->graph, "Reshape", "image", 2, m->in, mini_ints(m->graph, "shape", 4, image));
    x = mini_node(m->graph, "Relu", "relu", 1, x);
    mini_ok(tare_tensor_new(&filter, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < filter.elements; i++)
        TARE_DATA(float, &filter)[i] = quantized_model_normal(&seed);
    w = (struct tare_edge){ tare_graph_add_const(m->graph, "w", &filter), 0 };
    tare_tensor_reset(&filter);
    conv = mini_open(m->graph, "Conv2D", "conv", 2, x, w);
    mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
    mini_ok(tare_node_set_int_list(conv, "strides", ones, 4));
    quantized_model_return(m, mini_done(conv));
}

/* Numbers between -1 and 1, so that all Hessians of a model count in the same steps. */
static struct tare_edge bounded(struct quantized_model *m) {
    quantized_model_begin(m, ROWS, IN, 1, 41);
    struct tare_edge x =
        mini_node(m->graph, "MatMul", "mixed", 2, m->in, quantized_model_weight(m, "w0", IN, IN, 0.5, 1, 42));
    return mini_node(m->graph, "Tanh", "tanh", 1, x);
}

enum { CHANNELS = 4 };

/* A convolution in groups of images of 2 x 3 with four channels; or what one group of it is by itself. */
struct grouped {
    const char *op;
    struct tare_shape filter;
    int groups;
};

static void build_convolution_of(struct quantized_model *m, const struct grouped *of, int group) {
    const int each = CHANNELS / of->groups,
              columns = (int)(of->filter.dims[3] * (of->filter.dims[2] == CHANNELS ? CHANNELS : 1)) / of->groups;
    const int32_t image[] = { -1, 2, 3, CHANNELS }, begin[] = { 0, 0, 0, group * each }, size[] = { -1, 2, 3, each };
    const int64_t ones[] = { 1, 1, 1, 1 };
    struct tare_shape shape = of->filter;
    struct tare_edge x = bounded(m);
    struct tare_tensor filter;
    struct tare_node *conv;
    x = mini_node(m->graph, "Reshape", "image", 2, x, mini_ints(m->graph, "shape", 4, image));
    if (group >= 0) {
        x = mini_node(m->graph, "Slice", "part", 3, x, mini_ints(m->graph, "begin", 4, begin),
                      mini_ints(m->graph, "size", 4, size));
        shape.dims[2] = each;
        shape.dims[3] = columns;
    }
    mini_ok(tare_tensor_new(&filter, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < filter.elements; i++) { /* rows of all groups' columns */
        uint64_t seed =
            (uint64_t)(group < 0 ? i : i / columns * columns * of->groups + group * columns + i % columns) * 977 + 5;
        TARE_DATA(float, &filter)[i] = quantized_model_normal(&seed);
    }
    conv = mini_open(m->graph, group < 0 ? of->op : "Conv2D", "conv", 2, x,
                     (struct tare_edge){ tare_graph_add_const(m->graph, "w", &filter), 0 });
    tare_tensor_reset(&filter);
    mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
    mini_ok(tare_node_set_int_list(conv, "strides", ones, 4));
    quantized_model_return(m, mini_done(conv));
}

static const struct tare_tensor *filter_of(const struct quantized_model *m) {
    for (size_t i = 0; i < m->graph->n_nodes; i++)
        if (strcmp(m->graph->nodes[i]->op, "XlaConvV2") == 0) return tare_edge_constant(m->graph->nodes[i]->inputs[1]);
    fail_msg("the convolution was not quantized");
    return NULL;
}

static struct tare_edge half(struct quantized_model *m, struct tare_edge x, int first) {
    const int32_t begin[] = { 0, first * IN / 2 }, size[] = { -1, IN / 2 };
    return mini_node(m->graph, "Slice", "half", 3, x, mini_ints(m->graph, "begin", 2, begin),
                     mini_ints(m->graph, "size", 2, size));
}

/* One weight for both halves of the rows' numbers; and for rows of half as many. */
static void build_shared(struct quantized_model *m) {
    struct tare_edge x = bounded(m), w = quantized_model_weight(m, "w", IN / 2, OUT, 1, 1, 43);
    struct tare_edge a = mini_node(m->graph, "MatMul", "a", 2, half(m, x, 0), w),
                     b = mini_node(m->graph, "MatMul", "b", 2, half(m, x, 1), w);
    quantized_model_return(m, mini_node(m->graph, "AddV2", "sum", 2, a, b));
}

static void build_stacked(struct quantized_model *m) {
    const int32_t rows[] = { -1, IN / 2 };
    struct tare_edge x = bounded(m);
    x = mini_node(m->graph, "Reshape", "stacked", 2, x, mini_ints(m->graph, "shape", 2, rows));
    quantized_model_return(
        m, mini_node(m->graph, "MatMul", "a", 2, x, quantized_model_weight(m, "w", IN / 2, OUT, 1, 1, 43)));
}

static double loss_of(void (*make)(struct quantized_model *m), const struct tare_quant_setting *setting,
                      const char *passes) {
    const struct tare_quant_plan options = { .setting = *setting, .min_elements = 1, .depthwise = true };
    struct quantized_model m;
    struct tare_tensor expected, got;
    double loss;
    make(&m);
    expected = quantized_model_run(&m);
    quantized_model_quantize(&m, &options, passes);
    got = quantized_model_run(&m);
    loss = quantized_model_loss(&got, &expected);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    quantized_model_end(&m);
    return loss;
}

static void check_gain(void (*make)(struct quantized_model *m), const struct tare_quant_setting *setting,
                       const char *passes, double gain) {
    const double nearest = loss_of(make, setting, ""), better = loss_of(make, setting, passes);
    if (!(better < nearest / gain)) fail_msg("%s: loss %g, with %s %g", setting->method->name, nearest, passes, better);
}

static const struct tare_quant_setting four_bits[] = {
    { .method = &tare_method_weight_only, .bits = 4 },
    { .method = &tare_method_weight_only, .bits = 4, .granularity = TARE_PER_TENSOR },
    { .method = &tare_method_weight_only, .bits = 4, .granularity = TARE_PER_BLOCK, .block = 32 },
    { .method = &tare_method_static, .bits = 4 },
    { .method = &tare_method_dynamic, .bits = 4 },
};

static void products__lose_less_than_by_rounding_to_nearest(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof four_bits / sizeof *four_bits; i++)
        check_gain(build, &four_bits[i], "gptq", 1.3);
    check_gain(build, &four_bits[0], "gptq:act_order=false", 1.3);
    check_gain(build, &four_bits[0], "gptq:damp=0.1", 1.3);
}

static void convolutions__gain_by_what_their_windows_see(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_gain(build_convolution, &four_bits[i], "gptq", 1.1);
}

/* Each group of a convolution is one of its own. */
static void groups__get_the_integers_of_convolutions_of_their_own(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_weight_only },
                                             .min_elements = 1,
                                             .depthwise = true };
    const struct grouped cases[] = { { "Conv2D", tare_shape_make(4, 2, 2, 2, 6), 2 },
                                     { "DepthwiseConv2dNative", tare_shape_make(4, 2, 3, CHANNELS, 3), CHANNELS } };
    const char *const passes[] = { "gptq", "gptq,bias_correction" };
    (void)state;
    for (int c = 0; c < 4; c++) {
        const struct grouped *of = &cases[c % 2];
        struct quantized_model all, one;
        size_t differ = 0;
        build_convolution_of(&all, of, -1);
        quantized_model_quantize(&all, &options, passes[c / 2]);
        const struct tare_tensor *whole = filter_of(&all);
        for (int group = 0; group < of->groups; group++) {
            build_convolution_of(&one, of, group);
            quantized_model_quantize(&one, &options, passes[c / 2]);
            const struct tare_tensor *part = filter_of(&one);
            const int64_t columns = part->shape.dims[3];
            assert_int_equal(part->elements * of->groups, whole->elements);
            for (int64_t i = 0; i < part->elements; i++)
                differ +=
                    TARE_CONST_DATA(int8_t, part)[i] !=
                    TARE_CONST_DATA(int8_t, whole)[i / columns * columns * of->groups + group * columns + i % columns];
            quantized_model_end(&one);
        }
        quantized_model_end(&all);
        if (differ) fail_msg("%s, %s: %zu integers differ", of->op, passes[c / 2], differ);
    }
}

/* The integers of the weight of layer `a`, and how many products read them. */
static const struct tare_tensor *integers_of(const struct quantized_model *m, int *readers) {
    const struct tare_node *made = NULL;
    *readers = 0;
    for (size_t i = 0; i < m->graph->n_nodes; i++) {
        const struct tare_node *node = m->graph->nodes[i];
        if (strcmp(node->op, "XlaDotV2") != 0 || node->name[0] == 'm') continue;
        if (node->name[0] == 'a') made = node->inputs[1].node;
        ++*readers;
    }
    for (size_t i = 0; i < m->graph->n_nodes; i++) {
        const struct tare_node *node = m->graph->nodes[i];
        if (strcmp(node->op, "XlaDotV2") == 0 && node->name[0] != 'm') assert_ptr_equal(node->inputs[1].node, made);
    }
    return tare_edge_constant((struct tare_edge){ (struct tare_node *)(uintptr_t)made, 0 });
}

static void layers_of_one_weight__get_the_integers_of_all_their_samples(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_weight_only }, .min_elements = 1 };
    const char *const passes[] = { "gptq", "weight_clipping,gptq:damp=0.1" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct quantized_model shared, stacked;
        int readers;
        build_shared(&shared);
        build_stacked(&stacked);
        quantized_model_quantize(&shared, &options, passes[i]);
        quantized_model_quantize(&stacked, &options, passes[i]);
        const struct tare_tensor *a = integers_of(&shared, &readers);
        assert_int_equal(readers, 2);
        const struct tare_tensor *b = integers_of(&stacked, &readers);
        assert_int_equal(readers, 1);
        assert_true(tare_tensor_same_bits(a, b));
        quantized_model_end(&shared);
        quantized_model_end(&stacked);
    }
}

static void eight_bits__gain_as_well(void **state) {
    const struct tare_quant_setting eight = { .method = &tare_method_weight_only };
    (void)state;
    check_gain(build, &eight, "gptq", 1.3);
}

enum { FEW = 16, INPUTS = 64 };

static void build_wide(struct quantized_model *m) {
    quantized_model_begin(m, FEW, INPUTS, 1, 51);
    quantized_model_return(
        m, mini_node(m->graph, "MatMul", "a", 2, m->in, quantized_model_weight(m, "w", INPUTS, OUT, 1, 1, 52)));
}

/* The output for other samples than those that calibrated the model. */
static struct tare_tensor run_others(struct quantized_model *m) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, INPUTS);
    uint64_t seed = 53;
    tare_tensor_reset(&m->samples);
    mini_ok(tare_tensor_new(&m->samples, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < m->samples.elements; i++)
        TARE_DATA(float, &m->samples)[i] = quantized_model_normal(&seed);
    return quantized_model_run(m);
}

/* With fewer samples than inputs, most directions of the error cost nothing on the samples, but they do on others. */
static void few_samples__are_not_fitted(void **state) {
    const struct tare_quant_plan options = { .setting = four_bits[0], .min_elements = 1 };
    const char *const passes[] = { NULL, "", "gptq" };
    struct tare_tensor outputs[3];
    double nearest, compensated;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct quantized_model m;
        build_wide(&m);
        if (passes[i]) quantized_model_quantize(&m, &options, passes[i]);
        outputs[i] = run_others(&m);
        quantized_model_end(&m);
    }
    nearest = quantized_model_loss(&outputs[1], &outputs[0]);
    compensated = quantized_model_loss(&outputs[2], &outputs[0]);
    if (!(compensated < 1.1 * nearest)) fail_msg("loss %g, with gptq %g", nearest, compensated);
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&outputs[i]);
}

static void other_passes__go_with_it(void **state) {
    (void)state;
    check_gain(build, &four_bits[0], "gptq,bias_correction", 1.3);
    check_gain(build, &four_bits[0], "weight_clipping,gptq,bias_correction", 1.3);
    check_gain(build, &four_bits[3], "smooth_quant,gptq", 1.1);
    check_gain(build, &four_bits[3], "equalization,gptq", 1.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products__lose_less_than_by_rounding_to_nearest),
        cmocka_unit_test(convolutions__gain_by_what_their_windows_see),
        cmocka_unit_test(groups__get_the_integers_of_convolutions_of_their_own),
        cmocka_unit_test(layers_of_one_weight__get_the_integers_of_all_their_samples),
        cmocka_unit_test(eight_bits__gain_as_well),
        cmocka_unit_test(few_samples__are_not_fitted),
        cmocka_unit_test(other_passes__go_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
