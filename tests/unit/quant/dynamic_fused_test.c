/* Dynamic range quantization as it is executed: groups of ops, with the range of each activation collected where the
 * activation is computed, products that run twice instead of storing large activations, and products that guess the
 * quantization of activations that reach both bounds of Relu6, have the bits of the ops run one by one, at every CPU
 * level of the machine, on one thread and on three, for dense, depthwise and pointwise convolutions, products and
 * residual additions, weights of 8 and 4 bits, per channel and per tensor, and for activations of all signs and of
 * special values. */
#include "support/levels.h"
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint32_t seed = 7;
static float next(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

static struct tare_edge weight(struct tare_graph *g, const char *name, struct tare_shape shape) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = next();
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

/* ---- the network ---- */

enum network { CONVOLUTIONS, PRODUCTS, CLAMPED, LARGE, N_NETWORKS };
enum { SIDE = 130 }; /* of the images of LARGE: with 16 channels, an activation has more than 1 MiB as floats */
struct form {
    int bits;
    enum tare_quant_granularity granularity;
    int64_t channels; /* of the convolutions; columns of the products */
};

static struct tare_edge conv(struct tare_graph *g, const char *op, const char *name, struct tare_edge x,
                             struct tare_shape filter, int64_t stride) {
    const int64_t strides[] = { 1, stride, stride, 1 };
    char label[32];
    snprintf(label, sizeof label, "%s/w", name);
    struct tare_node *node = mini_open(g, op, name, 2, x, weight(g, label, filter));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    const struct tare_edge y = mini_done(node);
    const bool is_depthwise = strcmp(op, "Conv2D") != 0;
    snprintf(label, sizeof label, "%s/bias", name);
    char constant[40];
    snprintf(constant, sizeof constant, "%s/b", name);
    return mini_node(g, "BiasAdd", label, 2, y,
                     weight(g, constant, tare_shape_make(1, is_depthwise ? filter.dims[2] : filter.dims[3])));
}

static struct tare_edge convolutions(struct tare_graph *g, struct tare_edge x, int64_t n) {
    const int64_t three = 3, one = 1;
    x = mini_node(g, "Relu", "relu1", 1, conv(g, "Conv2D", "first", x, tare_shape_make(4, three, three, three, n), 2));
    const struct tare_edge shortcut = x;
    x = conv(g, "DepthwiseConv2dNative", "depthwise", x, tare_shape_make(4, three, three, n, one), 1);
    x = mini_node(g, "Relu6", "relu2", 1, x);
    x = conv(g, "Conv2D", "pointwise", x, tare_shape_make(4, one, one, n, n), 1);
    x = mini_node(g, "Relu", "relu3", 1, mini_node(g, "AddV2", "residual", 2, shortcut, x));
    return conv(g, "Conv2D", "last", x, tare_shape_make(4, three, three, n, (int64_t)5), 1);
}

/* A dense and a depthwise convolution whose results are only quantized. */
static struct tare_edge large(struct tare_graph *g, struct tare_edge x, int64_t n) {
    const int64_t three = 3, one = 1;
    x = mini_node(g, "Relu", "relu1", 1, conv(g, "Conv2D", "first", x, tare_shape_make(4, three, three, three, n), 1));
    x = conv(g, "DepthwiseConv2dNative", "depthwise", x, tare_shape_make(4, three, three, n, one), 1);
    return conv(g, "Conv2D", "last", x, tare_shape_make(4, one, one, n, three), 1);
}

/* Convolutions whose results are clamped and only quantized. */
static struct tare_edge clamped(struct tare_graph *g, struct tare_edge x, int64_t n) {
    const int64_t three = 3, one = 1;
    x = mini_node(g, "Relu6", "relu1", 1, conv(g, "Conv2D", "first", x, tare_shape_make(4, three, three, three, n), 1));
    x = conv(g, "DepthwiseConv2dNative", "depthwise", x, tare_shape_make(4, three, three, n, one), 1);
    x = mini_node(g, "Relu6", "relu2", 1, x);
    x = mini_node(g, "Relu6", "relu3", 1, conv(g, "Conv2D", "middle", x, tare_shape_make(4, one, one, n, n), 1));
    return conv(g, "Conv2D", "last", x, tare_shape_make(4, three, three, n, three), 2);
}

static struct tare_edge products(struct tare_graph *g, struct tare_edge x, int64_t n) {
    x = mini_node(g, "MatMul", "first", 2, x, weight(g, "first/w", tare_shape_make(2, (int64_t)33, n)));
    x = mini_node(g, "BiasAdd", "bias1", 2, x, weight(g, "first/b", tare_shape_make(1, n)));
    x = mini_node(g, "Neg", "negative", 1, x); /* computed by another kernel, which collects no range */
    x = mini_node(g, "MatMul", "second", 2, x, weight(g, "second/w", tare_shape_make(2, n, n)));
    x = mini_node(g, "MatMul", "third", 2, x, weight(g, "third/w", tare_shape_make(2, n, (int64_t)17)));
    return mini_node(g, "Relu", "relu", 1, x);
}

static struct tare_shape input_shape(enum network network, int64_t batch) {
    if (network == PRODUCTS) return tare_shape_make(2, batch, (int64_t)33);
    if (network == LARGE) return tare_shape_make(4, batch, (int64_t)SIDE, (int64_t)SIDE, (int64_t)3);
    return tare_shape_make(4, batch, (int64_t)9, (int64_t)10, (int64_t)3);
}

struct quantized {
    struct tare_graph_model *model;
    struct tare_edge x, y;
};

static void build(struct quantized *q, enum network network, const struct form *form) {
    const struct tare_quant_plan options = {
        .setting = { .method = &tare_method_dynamic, .bits = form->bits, .granularity = form->granularity },
        .depthwise = true,
        .min_elements = 1
    };
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    q->model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(q->model, "f");
    const struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    static struct tare_edge (*const functions[N_NETWORKS])(struct tare_graph *, struct tare_edge,
                                                           int64_t) = { convolutions, products, clamped, large };
    static const size_t layers[N_NETWORKS] = { 4, 3, 4, 3 };
    const struct tare_shape shape = input_shape(network, -1);
    q->x = mini_placeholder(q->model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(q->x.node, "shape", &shape));
    mini_return(f, "y", functions[network](f, x, form->channels));
    q->y = mini_call(q->model->main, "PartitionedCall", "call", f, 1, q->x);
    mini_ok(tare_quantize(&report, &arena, q->model, NULL, &options));
    assert_int_equal(report.quantized, layers[network]);
    tare_arena_free(&arena);
}

/* ---- runs ---- */

enum values { ANY, POSITIVE, NEGATIVE, ZEROS, BOTH_ZEROS, TINY, HUGE_VALUES, N_VALUES };

static struct tare_tensor input(enum network network, int64_t batch, enum values values) {
    static const float factors[N_VALUES] = { 1, 1, 1, 0, 0, 1e-38f, 1e37f };
    const struct tare_shape shape = input_shape(network, batch);
    struct tare_tensor x;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < x.elements; i++) {
        float value = next() * factors[values];
        if (values == POSITIVE || values == ZEROS) value = fabsf(value);
        if (values == NEGATIVE) value = -fabsf(value) - 0.01f;
        TARE_DATA(float, &x)[i] = value;
    }
    return x;
}

/* Some inputs are too small for their activations to reach the upper bound of the clamp. */
static struct tare_tensor clamped_input(int round) {
    struct tare_tensor x = input(CLAMPED, 1, ANY);
    const float factor = round % 7 == 5 || round == 16 ? 0.01f : 30;
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] *= factor;
    return x;
}

static tare_status look(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)node, (void)output, (void)value;
    ++*(int *)arg;
    return TARE_OK;
}

/* Sessions on one thread, with reference kernels, and on several threads. */
enum { FAST, PLAIN, DIVIDED, N_SESSIONS };

static void check_run(const struct quantized *q, struct tare_session *const sessions[N_SESSIONS],
                      struct tare_tensor *value) {
    struct tare_tensor results[N_SESSIONS];
    for (int i = 0; i < N_SESSIONS; i++)
        mini_ok(tare_session_run(sessions[i], &q->x, value, 1, &q->y, &results[i], 1, NULL, 0));
    for (int i = 0; i < N_SESSIONS; i++) {
        assert_true(tare_shape_equal(&results[i].shape, &results[PLAIN].shape));
        assert_memory_equal(results[i].data, results[PLAIN].data, tare_tensor_bytes(&results[PLAIN]));
    }
    for (int i = 0; i < N_SESSIONS; i++)
        tare_tensor_reset(&results[i]);
}

/* The same session with different batches and values, and while an observer requests every value, which separates all
 * steps. */
static void check_network(enum network network, const struct form *form) {
    const struct tare_session_options options[N_SESSIONS] = {
        [PLAIN] = { .use_reference_kernels = true }, [DIVIDED] = { .op_threads = 3 }
    };
    struct tare_session *sessions[N_SESSIONS];
    struct quantized q;
    int observed = 0;
    build(&q, network, form);
    for (int i = 0; i < N_SESSIONS; i++)
        mini_ok(tare_session_new(&sessions[i], q.model, &options[i]));
    for (int round = 0; round < 3 * N_VALUES; round++) {
        const int64_t batch = network == LARGE ? 1 : round / 3 % 2 + 1;
        struct tare_tensor value =
            network == CLAMPED ? clamped_input(round) : input(network, batch, (enum values)(round % N_VALUES));
        const int before = observed;
        if (round == N_VALUES) tare_session_observe(sessions[FAST], look, NULL, &observed);
        if (round == 2 * N_VALUES) tare_session_observe(sessions[FAST], NULL, NULL, NULL);
        check_run(&q, sessions, &value);
        assert_int_equal(observed > before, round >= N_VALUES && round < 2 * N_VALUES);
        tare_tensor_reset(&value);
    }
    for (int i = 0; i < N_SESSIONS; i++)
        tare_session_free(sessions[i]);
    tare_model_free(q.model);
}

static void networks(void **unused) {
    (void)unused;
    static const struct form forms[] = {
        { 8, TARE_PER_CHANNEL, 16 }, { 8, TARE_PER_TENSOR, 40 },   { 4, TARE_PER_CHANNEL, 21 },
        { 4, TARE_PER_TENSOR, 8 },   { 8, TARE_PER_CHANNEL, 116 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int network = 0; network < N_NETWORKS; network++)
            if (network == CLAMPED || (network == LARGE ? i == 0 : i < 4))
                check_network((enum network)network, &forms[i]);
}

static void dynamic__groups_have_the_bits_of_the_ops_at_every_level(void **unused) {
    (void)unused;
    levels_run("networks");
}

int main(int argc, char **argv) {
    const struct CMUnitTest one[] = { cmocka_unit_test(networks) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dynamic__groups_have_the_bits_of_the_ops_at_every_level),
    };
    if (argc > 1 && strcmp(argv[1], "networks") == 0) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
