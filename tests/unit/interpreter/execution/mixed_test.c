/* Mixed tilings: an int8 pointwise layer, a float depthwise one and the quantization after it run line by line, with
 * the bits of whole images, over sizes, kernels, strides and batches; observers still receive every value. With
 * parameters that follow from the range of the whole result, the quantization runs after the others. */
#include "interpreter/execution/state.h"
#include "support/quantized_layers.h"

#include <string.h>

enum { C = 8, INNER = 48, SIZE = 96 };

struct image {
    int64_t batch, height, width, kernel, stride;
    bool is_tiled;     /* the lines are divided */
    int32_t behind[2]; /* zeros that a Pad adds after height and width, one less in front of them; 0: no Pad */
};

static struct tare_edge extreme_of_images(struct tare_graph *g, const char *op, struct tare_edge y) {
    const struct tare_edge axes = mini_ints(g, "axes", 3, (int32_t[]){ 1, 2, 3 });
    struct tare_node *node = mini_open(g, op, op, 2, y, axes);
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    return mini_done(node);
}

/* The step between integers that fits the range of each image of y. */
static struct tare_edge step_of_range(struct tare_graph *g, struct tare_edge y) {
    const struct tare_edge low = extreme_of_images(g, "Min", y), high = extreme_of_images(g, "Max", y);
    const struct tare_edge range = mini_node(g, "Sub", "range", 2, high, low);
    const struct tare_edge step = mini_node(g, "Div", "range_step", 2, range, mini_float(g, "steps", 255));
    return mini_node(g, "Maximum", "step", 2, step, mini_float(g, "least_step", 1e-6f));
}

static struct tare_edge padded(struct tare_graph *g, struct tare_edge y, const int32_t behind[2]) {
    const int32_t rows[8] = { 0, 0, behind[0] - 1, behind[0], behind[1] - 1, behind[1], 0, 0 };
    const struct tare_shape shape = tare_shape_make(2, (int64_t)4, (int64_t)2);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_INT32, &shape));
    memcpy(value.data, rows, sizeof rows);
    const struct tare_edge paddings = { tare_graph_add_const(g, "paddings", &value), 0 };
    tare_tensor_reset(&value);
    return mini_node(g, "Pad", "pad", 2, y, paddings);
}

/* What follows the depthwise layer: a quantization, one whose scale follows from the range of the layer's result, or a
 * product with the mean of each channel. In the last one, swish comes before the depthwise layer. */
enum kind { STATIC, DYNAMIC, GATED, KINDS };

static struct tare_edge gated(struct tare_graph *g, struct tare_edge y) {
    struct tare_node *node = mini_open(g, "Mean", "gate", 2, y, mini_ints(g, "spatial", 2, (int32_t[]){ 1, 2 }));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    return mini_node(g, "Mul", "gated", 2, y, mini_done(node));
}

static struct tare_edge network(struct tare_graph *g, struct tare_edge x, const struct image *image, enum kind kind) {
    const struct layers_layer expand = { "expand", C, INNER, 1, 1 }, project = { "project", INNER, C, 1, 1 };
    struct tare_edge y = mini_node(g, "Relu6", "expand_relu", 1, layers_real(g, &expand, x));
    if (kind == GATED) y = mini_node(g, "Mul", "swish", 2, y, mini_node(g, "Sigmoid", "sigmoid", 1, y));
    if (image->behind[0] > 0) y = padded(g, y, image->behind);
    y = layers_float(g, "depthwise", y, image->kernel, INNER, 0, image->stride);
    if (kind == GATED) y = gated(g, y);
    const struct tare_edge step = kind == DYNAMIC ? step_of_range(g, y) : mini_float(g, "step", 0.02f);
    y = layers_requantized(g, "middle", mini_node(g, "Div", "div", 2, y, step));
    return layers_real(g, &project, y);
}

static struct tare_tensor run(struct tare_session *session, struct tare_edge x, struct tare_edge y,
                              const struct image *image) {
    struct tare_tensor value, out;
    layers_seed = 7;
    value = layers_random(TARE_DT_INT8, tare_shape_make(4, image->batch, image->height, image->width, (int64_t)C));
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0));
    tare_tensor_reset(&value);
    return out;
}

static void check(const struct image *image, enum kind kind, int threads) {
    const struct tare_session_options options = { .profile = true, .op_threads = threads };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT8),
                           y = network(model->main, x, image, kind);
    struct tare_session *session, *plain = layers_plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    for (int i = 0; i < 2; i++)
        layers_assert_same(run(session, x, y, image), run(plain, x, y, image));
    const int64_t calls = layers_calls_of(session, "XlaConvV2");
    const bool is_tiled = image->is_tiled && threads == 1;
    if (image->batch == 1 && (is_tiled ? calls <= 4 : calls != 4))
        fail_msg("%lld x %lld: %lld calls", (long long)image->height, (long long)image->width, (long long)calls);
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

static void mixed__images_of_many_shapes(void **unused) {
    (void)unused;
    static const struct image images[] = {
        { 1, 96, 96, 3, 1, true, { 0, 0 } },  { 1, 96, 97, 3, 2, true, { 0, 0 } },
        { 2, 90, 100, 3, 1, true, { 0, 0 } }, { 1, 95, 80, 3, 2, true, { 0, 0 } },
        { 1, 96, 96, 5, 1, true, { 0, 0 } },  { 1, 98, 90, 5, 2, true, { 0, 0 } },
        { 1, 96, 70, 7, 3, true, { 0, 0 } },  { 3, 85, 75, 3, 2, true, { 0, 0 } },
        { 1, 97, 96, 3, 1, false, { 0, 0 } }, { 1, 36, 36, 3, 1, false, { 0, 0 } },
        { 1, 40, 40, 3, 1, true, { 0, 0 } },  { 1, 96, 1500, 3, 2, false, { 0, 0 } },
        { 1, 96, 96, 1, 1, true, { 0, 0 } },  { 1, 96, 96, 3, 2, true, { 1, 1 } },
        { 2, 96, 90, 3, 1, true, { 2, 1 } },  { 1, 95, 96, 5, 2, true, { 2, 3 } },
        { 1, 36, 36, 3, 2, false, { 1, 2 } },
    };
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        for (int k = 0; k < 2 * KINDS; k++)
            check(&images[i], (enum kind)(k / 2), 1 + k % 2);
}

/* The float result of a pointwise layer of 16-bit activations, as the quantizer writes it. */
static struct tare_edge wide_layer(struct tare_graph *g, const char *name, struct tare_edge x, int64_t in,
                                   int64_t out) {
    const struct layers_window window = { 1, 1, 1, 0 };
    const struct tare_edge weight = layers_constant(g, layers_name(name, "weight"), TARE_DT_INT8,
                                                    tare_shape_make(4, (int64_t)1, (int64_t)1, in, out));
    const struct tare_edge wide = layers_cast(g, layers_name(name, "wide"), x, TARE_DT_INT32);
    struct tare_edge h, l;
    h = mini_node(g, "RightShift", layers_name(name, "high"), 2, wide, mini_int(g, layers_name(name, "bits"), 8));
    l = mini_node(g, "BitwiseAnd", layers_name(name, "low"), 2, wide, mini_int(g, layers_name(name, "mask"), 255));
    l = mini_node(g, "Sub", layers_name(name, "centre"), 2, l, mini_int(g, layers_name(name, "half"), 128));
    h = layers_cast(g, layers_name(name, "high_int8"), h, TARE_DT_INT8);
    l = layers_cast(g, layers_name(name, "low_int8"), l, TARE_DT_INT8);
    h = layers_conv(g, layers_name(name, "of_high"), h, weight, window);
    l = layers_conv(g, layers_name(name, "of_low"), l, weight, window);
    h = mini_node(g, "Mul", layers_name(name, "scaled"), 2, h, mini_int(g, layers_name(name, "step"), 256));
    h = layers_cast(g, layers_name(name, "real"), mini_node(g, "AddV2", layers_name(name, "sums"), 2, h, l),
                    TARE_DT_FLOAT);
    return mini_node(g, "Mul", layers_name(name, "mul"), 2, h, mini_float(g, layers_name(name, "scale"), 1e-5f));
}

/* The layers before and behind the depthwise one have 16-bit activations. */
static void mixed__activations_of_16_bits(void **unused) {
    (void)unused;
    const struct image image = { 1, 96, 96, 3, 2, true, { 0, 0 } };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_INT8);
    const struct tare_edge spread =
        mini_node(g, "Mul", "spread", 2, layers_cast(g, "bytes", x, TARE_DT_FLOAT), mini_float(g, "most", 250.7f));
    struct tare_edge y = layers_cast(g, "x16", mini_node(g, "Round", "rounded", 1, spread), TARE_DT_INT16);
    y = mini_node(g, "Relu6", "expand_relu", 1, wide_layer(g, "expand", y, C, INNER));
    y = layers_float(g, "depthwise", y, image.kernel, INNER, 0, image.stride);
    y = mini_node(g, "Div", "div", 2, y, mini_float(g, "unit", 0.0002f));
    y = layers_cast(g, "y16", mini_node(g, "Round", "round", 1, y), TARE_DT_INT16);
    y = wide_layer(g, "project", y, INNER, C);
    struct tare_session *session = mini_session(model), *plain = layers_plain_session(model);
    for (int i = 0; i < 2; i++)
        layers_assert_same(run(session, x, y, &image), run(plain, x, y, &image));
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

static void check_changes(enum kind kind) {
    static const struct image images[] = { { 1, 96, 96, 3, 2, true, { 0, 0 } },
                                           { 1, 97, 96, 3, 2, false, { 0, 0 } },
                                           { 2, 96, 96, 3, 2, true, { 0, 0 } },
                                           { 1, 10, 10, 3, 2, false, { 0, 0 } },
                                           { 1, 100, 96, 3, 2, true, { 0, 0 } } };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT8),
                           y = network(model->main, x, images, kind);
    struct tare_session *session = mini_session(model), *plain = layers_plain_session(model);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        layers_assert_same(run(session, x, y, &images[i]), run(plain, x, y, &images[i]));
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* One session with images of other sizes, of which one is not divided; ranges of earlier runs are not used. */
static void mixed__images_change(void **unused) {
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++)
        check_changes((enum kind)kind);
}

/* Zeros of a Pad do not become padding where a bias of -0 keeps the sign of a sum that is zero. */
static void mixed__bias_of_minus_zero(void **unused) {
    (void)unused;
    const struct image image = { 1, SIZE, SIZE, 3, 2, false, { 1, 1 } };
    const struct tare_session_options options = { .profile = true };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT8),
                           y = network(model->main, x, &image, GATED);
    const struct tare_tensor *bias = tare_node_tensor(tare_graph_find(model->main, "depthwise_b"), "value");
    ((float *)bias->data)[INNER - 1] = -0.0f;
    struct tare_session *session, *plain = layers_plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    layers_assert_same(run(session, x, y, &image), run(plain, x, y, &image));
    assert_int_equal(layers_calls_of(session, "XlaConvV2"), 2);
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

struct seen {
    const char *only;
    int count;
};
static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    (void)output;
    return strcmp(node->name, ((struct seen *)arg)->only) == 0;
}
static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)node, (void)output;
    assert_true(value->elements > 0);
    ((struct seen *)arg)->count++;
    return TARE_OK;
}

static void check_observers(const char *const *names, size_t count, enum kind kind) {
    const struct image image = { 1, SIZE, SIZE, 3, 2, true, { kind == GATED, kind == GATED } };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT8),
                           y = network(model->main, x, &image, kind);
    struct tare_session *session = mini_session(model);
    for (size_t i = 0; i < count; i++) {
        struct seen seen = { .only = names[i] };
        struct tare_tensor before = run(session, x, y, &image), share;
        tare_session_observe(session, see, accepts, &seen);
        tare_tensor_share(&share, &before);
        layers_assert_same(run(session, x, y, &image), share);
        if (seen.count != 1) fail_msg("%s: %d values", names[i], seen.count);
        tare_session_observe(session, NULL, NULL, NULL);
        layers_assert_same(run(session, x, y, &image), before);
    }
    tare_session_free(session);
    tare_model_free(model);
}

static void mixed__observers_see_every_value(void **unused) {
    (void)unused;
    static const char *const names[] = { "expand",
                                         "expand_mul",
                                         "expand_relu",
                                         "depthwise",
                                         "depthwise_bias",
                                         "depthwise_relu",
                                         "middle_round",
                                         "middle_int8",
                                         "project",
                                         /* of a range */ "Min",
                                         "Max",
                                         "range_step" };
    static const char *const of_gates[] = { "expand_mul", "expand_relu", "sigmoid",        "swish",
                                            "pad",        "depthwise",   "depthwise_relu", "gate",
                                            "gated",      "middle_int8", "project" };
    check_observers(names, 9, STATIC);
    check_observers(names, sizeof names / sizeof *names, DYNAMIC);
    check_observers(of_gates, sizeof of_gates / sizeof *of_gates, GATED);
}

/* Less memory than whole images; with too little, a run fails, leaves nothing behind, and the next one succeeds. */
static void mixed__memory(void **unused) {
    (void)unused;
    const struct image image = { 2, SIZE, SIZE, 3, 1, true, { 0, 0 } };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT8),
                           y = network(model->main, x, &image, STATIC);
    struct tare_session *session = mini_session(model), *plain = layers_plain_session(model);
    struct tare_tensor expected = run(session, x, y, &image), other = run(plain, x, y, &image);
    assert_true(tare_buffer_pool_watch(session->pool) < tare_buffer_pool_watch(plain->pool) / 2);
    const size_t bytes = tare_buffer_pool_bytes(session->pool);
    int failed = 0;
    layers_seed = 7;
    struct tare_tensor value =
        layers_random(TARE_DT_INT8, tare_shape_make(4, image.batch, image.height, image.width, (int64_t)C));
    for (size_t limit = 1 << 16; limit < 1 << 23; limit += 1 << 17) {
        struct tare_tensor out = { 0 };
        tare_buffer_pool_limit(session->pool, limit);
        if (tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0) != TARE_OK) {
            failed++;
            assert_int_equal(tare_buffer_pool_bytes(session->pool), bytes);
            continue;
        }
        assert_memory_equal(out.data, expected.data, tare_tensor_bytes(&expected));
        tare_tensor_reset(&out);
    }
    assert_in_range(failed, 4, 60);
    tare_buffer_pool_limit(session->pool, 0);
    layers_assert_same(run(session, x, y, &image), expected);
    tare_tensor_reset(&value);
    tare_tensor_reset(&other);
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* A float result that another step uses is stored, and a depthwise result that is fetched, too. */
static void mixed__values_that_are_used_elsewhere(void **unused) {
    (void)unused;
    const struct image image = { 1, SIZE, SIZE, 3, 1, true, { 0, 0 } };
    const struct layers_layer expand = { "expand", C, INNER, 1, 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_INT8);
    const struct tare_edge a = mini_node(g, "Relu6", "a_relu", 1, layers_real(g, &expand, x));
    const struct tare_edge b = layers_float(g, "depthwise", a, 3, INNER, 0, 1);
    const struct tare_edge c =
        layers_requantized(g, "middle", mini_node(g, "Div", "div", 2, b, mini_float(g, "step", 0.02f)));
    const struct tare_edge all[3] = { a, b, c };
    struct tare_session *session = mini_session(model), *plain = layers_plain_session(model);
    layers_seed = 7;
    struct tare_tensor value =
        layers_random(TARE_DT_INT8, tare_shape_make(4, image.batch, image.height, image.width, (int64_t)C));
    for (int first = 0; first < 3; first++) {
        const struct tare_edge fetches[2] = { all[first], c };
        struct tare_tensor results[2][2];
        mini_ok(tare_session_run(session, &x, &value, 1, fetches, results[0], 2, NULL, 0));
        mini_ok(tare_session_run(plain, &x, &value, 1, fetches, results[1], 2, NULL, 0));
        for (int k = 0; k < 2; k++)
            layers_assert_same(results[0][k], results[1][k]);
    }
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed__images_of_many_shapes),
        cmocka_unit_test(mixed__activations_of_16_bits),
        cmocka_unit_test(mixed__images_change),
        cmocka_unit_test(mixed__bias_of_minus_zero),
        cmocka_unit_test(mixed__observers_see_every_value),
        cmocka_unit_test(mixed__memory),
        cmocka_unit_test(mixed__values_that_are_used_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
