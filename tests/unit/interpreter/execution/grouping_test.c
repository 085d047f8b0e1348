/* Groups of element-wise steps: a quantized layer that runs as one pass has the bits of the separate ops, over shapes,
 * paddings, groups, strides, dilations and extreme values, at every CPU level of the machine; observers still receive
 * the intermediate values, and operands that fit no expression run op by op. */
#include "interpreter/ops/support/dims_wire.h"
#include "support/levels.h"
#include "support/quantized_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t seed = 5;
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static struct tare_tensor random_tensor(int dtype, struct tare_shape shape) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, dtype, &shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        const int byte = (int)(next() & 0xff) - 128;
        if (dtype == TARE_DT_UINT8) TARE_DATA(uint8_t, &tensor)[i] = (uint8_t)(next() & 7 ? 255 : byte + 128);
        if (dtype == TARE_DT_INT8) TARE_DATA(int8_t, &tensor)[i] = (int8_t)(next() & 3 ? byte : byte < 0 ? -128 : 127);
        if (dtype == TARE_DT_INT32) TARE_DATA(int32_t, &tensor)[i] = byte * 1000;
        if (dtype == TARE_DT_FLOAT) TARE_DATA(float, &tensor)[i] = (float)byte / 40;
    }
    return tensor;
}

static struct tare_edge constant(struct tare_graph *g, const char *name, int dtype, struct tare_shape shape) {
    struct tare_tensor value = random_tensor(dtype, shape);
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

/* ---- quantized layers ---- */

/* Geometry of a convolution and what follows it. */
struct layer {
    int64_t batch, size, channels, outputs, kernel, stride, dilation, groups, pad;
    int zero_point;
    /* int8 output; Relu; residual addition of an int8 tensor, or of a float one before a float bias */
    bool requantizes, clamps, adds;
};

/* With the zero point around the images, as the quantizer pads. */
static struct tare_edge product(struct tare_graph *g, const struct layer *layer, struct tare_edge x) {
    const struct tare_shape scalar = tare_shape_make(0);
    const struct tare_shape shape =
        tare_shape_make(4, layer->kernel, layer->kernel, layer->channels / layer->groups, layer->outputs);
    const int8_t zero_point = (int8_t)layer->zero_point;
    struct tare_tensor zero;
    mini_ok(tare_tensor_from(&zero, TARE_DT_INT8, &scalar, &zero_point));
    if (layer->pad > 0)
        x = layers_padded(g, "around", x, layer->pad, (struct tare_edge){ tare_graph_add_const(g, "zero", &zero), 0 });
    tare_tensor_reset(&zero);
    return layers_conv(g, "product", x, constant(g, "weight", TARE_DT_INT8, shape),
                       (struct layers_window){ layer->stride, layer->dilation, layer->groups, 0 });
}

static struct tare_edge requantized(struct tare_graph *g, const struct layer *layer, struct tare_edge y,
                                    const char *prefix) {
    char names[6][32];
    for (int i = 0; i < 6; i++)
        snprintf(names[i], sizeof names[i], "%s%d", prefix, i);
    y = mini_node(g, "AddV2", names[0], 2, y, mini_float(g, names[1], (float)layer->zero_point));
    y = mini_node(g, "Maximum", names[2], 2, y, mini_float(g, names[3], layer->clamps ? -5 : -128));
    y = mini_node(g, "Minimum", names[4], 2, y, mini_float(g, names[5], 127));
    return layers_cast(g, strcmp(prefix, "a") == 0 ? "narrow_a" : "narrow_b",
                       mini_node(g, "Round", strcmp(prefix, "a") == 0 ? "round_a" : "round_b", 1, y), TARE_DT_INT8);
}

/* (bytes - zero point) * scale */
static struct tare_edge real(struct tare_graph *g, const char *name, struct tare_edge x, int zero_point, float scale) {
    char names[4][32];
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "%s%d", name, i);
    x = layers_cast(g, names[0], x, TARE_DT_INT32);
    x = mini_node(g, "Sub", names[1], 2, x, mini_int(g, names[2], zero_point));
    snprintf(names[0], sizeof names[0], "%s_float", name);
    return mini_node(g, "Mul", names[3], 2, layers_cast(g, names[0], x, TARE_DT_FLOAT), mini_float(g, name, scale));
}

/* What follows the scale of a layer with a float output. */
static struct tare_edge with_floats(struct tare_graph *g, const struct layer *layer, struct tare_edge y,
                                    struct tare_edge x) {
    const struct tare_shape vector = tare_shape_make(1, layer->outputs);
    if (layer->adds) { /* numbers of many bits, so that the order of additions matters */
        const struct tare_edge small = mini_node(g, "Mul", "small", 2, layers_cast(g, "wide", x, TARE_DT_FLOAT),
                                                 mini_float(g, "seventieth", 1 / 70.0f));
        y = mini_node(g, "AddV2", "sum", 2, y, mini_node(g, "Square", "square", 1, small));
    }
    if (layer->clamps || layer->adds)
        y = mini_node(g, "BiasAdd", "bias2", 2, y, constant(g, "b", TARE_DT_FLOAT, vector));
    return layer->clamps ? mini_node(g, "Relu6", "relu6", 1, y) : y;
}

static struct tare_edge build(struct tare_graph *g, const struct layer *layer, struct tare_edge x) {
    const struct tare_shape vector = tare_shape_make(1, layer->outputs);
    struct tare_edge y = product(g, layer, x);
    y = mini_node(g, "Sub", "sub_offset", 2, y, constant(g, "offset", TARE_DT_INT32, vector));
    y = mini_node(g, "AddV2", "add_bias", 2, y, constant(g, "bias", TARE_DT_INT32, vector));
    y = mini_node(g, "Mul", "mul", 2, layers_cast(g, "cast", y, TARE_DT_FLOAT),
                  constant(g, "scale", TARE_DT_FLOAT, vector));
    if (!layer->requantizes) return with_floats(g, layer, y, x);
    y = requantized(g, layer, y, "a");
    if (!layer->adds) return y;
    y = mini_node(g, "AddV2", "sum", 2, real(g, "left", y, 3, 0.5f), real(g, "right", x, -2, 0.25f));
    return mini_node(g, "Maximum", "relu", 2, requantized(g, layer, y, "b"),
                     constant(g, "least", TARE_DT_INT8, tare_shape_make(0)));
}

static void assert_same(const struct tare_tensor *got, const struct tare_tensor *expected) {
    assert_int_equal(got->dtype, expected->dtype);
    assert_true(tare_shape_equal(&got->shape, &expected->shape));
    assert_memory_equal(got->data, expected->data, tare_tensor_bytes(expected));
}

static void run(const struct tare_graph_model *model, const struct tare_session_options *options, struct tare_edge x,
                const struct tare_tensor *value, struct tare_edge fetch, struct tare_tensor *out) {
    struct tare_session *session;
    mini_ok(tare_session_new(&session, model, options));
    for (int i = 0; i < 2; i++) { /* the second run uses packed weights */
        if (i) tare_tensor_reset(out);
        mini_ok(tare_session_run(session, &x, value, 1, &fetch, out, 1, NULL, 0));
    }
    tare_session_free(session);
}

/* Runs of one session with inputs of different batch sizes, whose results depend on operands bound by earlier runs. */
static void check_batches(const struct tare_graph_model *model, const struct layer *layer, struct tare_edge x,
                          struct tare_edge y) {
    const struct tare_session_options plain = { .use_reference_kernels = true }, fast = { 0 };
    static const int64_t batches[] = { 1, 2, 2, 1 };
    struct tare_session *sessions[2];
    mini_ok(tare_session_new(&sessions[0], model, &fast));
    mini_ok(tare_session_new(&sessions[1], model, &plain));
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct tare_tensor results[2];
        struct tare_tensor value =
            random_tensor(TARE_DT_INT8, tare_shape_make(4, batches[i], layer->size, layer->size + 1, layer->channels));
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], &x, &value, 1, &y, &results[k], 1, NULL, 0));
        assert_same(&results[0], &results[1]);
        tare_tensor_reset(&results[0]), tare_tensor_reset(&results[1]), tare_tensor_reset(&value);
    }
    tare_session_free(sessions[0]), tare_session_free(sessions[1]);
}

static void check_layer(const struct layer *layer) {
    const struct tare_session_options plain = { .use_reference_kernels = true }, fast = { 0 };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_INT8);
    const struct tare_edge y = build(model->main, layer, x);
    struct tare_tensor value =
        random_tensor(TARE_DT_INT8, tare_shape_make(4, layer->batch, layer->size, layer->size + 1, layer->channels));
    struct tare_tensor got, expected;
    run(model, &fast, x, &value, y, &got);
    run(model, &plain, x, &value, y, &expected);
    assert_same(&got, &expected);
    check_batches(model, layer, x, y);
    tare_tensor_reset(&got), tare_tensor_reset(&expected), tare_tensor_reset(&value);
    tare_model_free(model);
}

static void check_layers(void) {
    static const struct layer layers[] = {
        { 1, 5, 3, 16, 3, 1, 1, 1, 1, -7, true, false, false },  /* a first layer */
        { 2, 9, 1, 8, 3, 2, 1, 1, 1, 12, true, true, false },    /* one channel */
        { 1, 7, 16, 16, 3, 1, 1, 1, 1, -128, true, true, true }, /* a residual block */
        { 3, 6, 20, 20, 3, 1, 1, 1, 1, 127, true, false, true }, /* channels that do not fill a vector */
        { 2, 6, 64, 70, 1, 1, 1, 1, 0, 5, true, true, false },   /* pointwise */
        { 1, 6, 8, 300, 1, 2, 1, 1, 0, 5, false, false, false }, /* a float output */
        { 1, 8, 12, 24, 3, 1, 2, 1, 2, 9, false, true, false },  /* dilated, with a float bias and Relu6 */
        { 2, 7, 12, 24, 3, 1, 1, 3, 1, -3, true, false, false }, /* groups */
        { 2, 9, 16, 16, 3, 1, 1, 16, 1, -9, true, true, true },  /* depthwise */
        { 1, 12, 21, 21, 3, 2, 1, 21, 1, 100, true, true, false },
        { 1, 11, 40, 40, 5, 1, 1, 40, 2, 1, true, false, false },
        { 1, 12, 96, 96, 5, 2, 1, 96, 2, -1, true, true, false },
        { 1, 13, 24, 24, 3, 1, 2, 24, 2, 0, true, false, false },
        { 1, 9, 4, 8, 3, 1, 1, 4, 1, 8, true, true, false },    /* two outputs per channel */
        { 1, 7, 300, 40, 3, 1, 1, 1, 1, 4, true, true, false }, /* more than one block of a patch */
        { 1, 1, 2000, 10, 1, 1, 1, 1, 0, 0, false, false, false },
        { 1, 28, 16, 130, 3, 1, 1, 1, 1, 4, true, true, false }, /* more than one block of rows */
        { 2, 10, 8, 8, 3, 1, 1, 8, 1, -4, true, true, true },    /* two positions in a vector */
        { 1, 9, 4, 4, 5, 1, 1, 4, 2, 11, true, false, false },
        { 1, 9, 2, 2, 3, 2, 1, 2, 1, 11, true, false, false },
        { 1, 8, 48, 48, 7, 1, 1, 48, 3, 2, true, true, true },
        { 1, 5, 130, 130, 3, 1, 1, 130, 1, 2, true, false, true },
        { 1, 6, 33, 33, 1, 1, 1, 1, 0, -1, true, true, true },  /* a pointwise residual block */
        { 1, 7, 16, 16, 3, 1, 1, 1, 1, -7, false, true, true }, /* a float addend, then a bias */
        { 2, 6, 64, 64, 1, 1, 1, 1, 0, 5, false, false, true },
        { 3, 6, 20, 20, 3, 1, 1, 1, 1, 127, false, true, true },
        { 2, 9, 40, 40, 3, 1, 1, 40, 1, -9, false, false, true },
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        check_layer(&layers[i]);
}

static void grouping__quantized_layers_at_every_level(void **unused) {
    (void)unused;
    levels_run("layers");
}

/* ---- other graphs ---- */

/* One session whose steps are grouped, one that checks every value and therefore runs each op by itself. */
static void compare(struct tare_graph_model *model, struct tare_edge x, struct tare_shape shape,
                    struct tare_edge fetch) {
    const struct tare_session_options alone = { .check_numerics = true }, fast = { 0 };
    struct tare_tensor value = random_tensor(tare_edge_dtype(x), shape), got, expected;
    run(model, &fast, x, &value, fetch, &got);
    run(model, &alone, x, &value, fetch, &expected);
    assert_same(&got, &expected);
    tare_tensor_reset(&got), tare_tensor_reset(&expected), tare_tensor_reset(&value);
    tare_model_free(model);
}

static void grouping__quantization_of_floats(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(g, "Div", "div", 2, x, mini_float(g, "scale", 0.03f));
    y = mini_node(g, "AddV2", "add", 2, y, mini_float(g, "zero_point", -3));
    y = mini_node(g, "Minimum", "low", 2, mini_float(g, "most", 127), y);
    y = mini_node(g, "Maximum", "high", 2, mini_float(g, "least", -128), y);
    y = layers_cast(g, "narrow", mini_node(g, "Floor", "floor", 1, y), TARE_DT_INT8);
    compare(model, x, tare_shape_make(2, (int64_t)7, (int64_t)33), y);
}

/* The quantization of windows' means, of values of `dtype`, in which they are rounded before it, or of bytes. */
static struct tare_graph_model *quantized_means(struct tare_edge *x, struct tare_edge *y, int from, int dtype,
                                                const char *format, int64_t size) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    *x = mini_placeholder(g, "x", from);
    struct tare_edge values = *x;
    if (dtype != from) values = layers_cast(g, "values", *x, dtype);
    struct tare_node *average = mini_open(g, "AvgPool", "average", 1, values);
    const bool is_first = strcmp(format, "NCHW") == 0;
    const int64_t sizes[] = { 1, is_first ? 1 : size, size, is_first ? size : 1 };
    const int64_t stride = size / 2 + 1, strides[] = { 1, is_first ? 1 : stride, stride, is_first ? stride : 1 };
    mini_ok(tare_node_set_int_list(average, "ksize", sizes, 4));
    mini_ok(tare_node_set_int_list(average, "strides", strides, 4));
    mini_ok(tare_node_set_string(average, "padding", "SAME", 4));
    mini_ok(tare_node_set_string(average, "data_format", format, strlen(format)));
    struct tare_edge means = mini_done(average);
    if (dtype != TARE_DT_FLOAT) means = layers_cast(g, "means", means, TARE_DT_FLOAT);
    *y = mini_node(g, "Mul", "mul", 2, means, mini_float(g, "scale", 30));
    *y = mini_node(g, "AddV2", "add", 2, *y, mini_float(g, "zero_point", -3));
    *y = mini_node(g, "Minimum", "low", 2, *y, mini_float(g, "most", 127));
    *y = mini_node(g, "Maximum", "high", 2, *y, mini_float(g, "least", -128));
    *y = layers_cast(g, "narrow", mini_node(g, "Round", "round", 1, *y), TARE_DT_INT8);
    return model;
}

static void assert_runs_without(const struct tare_graph_model *model, struct tare_edge x, struct tare_shape shape,
                                struct tare_edge y, const char *name) {
    const struct tare_session_options options = { .profile = true };
    struct tare_session *session;
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    struct tare_tensor value = random_tensor(tare_edge_dtype(x), shape), out;
    mini_ok(tare_session_new(&session, model, &options));
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0));
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        assert_string_not_equal(rows[i].node->name, name);
    tare_tensor_reset(&value), tare_tensor_reset(&out);
    tare_arena_free(&arena);
    tare_session_free(session);
}

/* Integers end no group: the float values of the integers of one activation are added to another one. */
static void grouping__a_sum_with_quantized_values(void **unused) {
    (void)unused;
    const struct tare_shape shape = tare_shape_make(2, (int64_t)7, (int64_t)33);
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    const struct tare_edge other = mini_node(g, "Softmax", "other", 1, x);
    struct tare_edge y = mini_node(g, "Div", "div", 2, x, mini_float(g, "scale", 0.03f));
    y = mini_node(g, "Minimum", "low", 2, mini_float(g, "most", 127), mini_node(g, "Round", "round", 1, y));
    y = mini_node(g, "Maximum", "high", 2, mini_float(g, "least", -128), y);
    y = layers_cast(g, "wide", layers_cast(g, "narrow", y, TARE_DT_INT8), TARE_DT_FLOAT);
    y = mini_node(g, "AddV2", "sum", 2, mini_node(g, "Mul", "real", 2, y, mini_float(g, "back", 0.03f)), other);
    assert_runs_without(model, x, shape, y, "real");
    compare(model, x, shape, y);
}

static void grouping__means_are_quantized_in_their_own_step(void **unused) {
    (void)unused;
    const struct tare_shape shape = tare_shape_make(4, (int64_t)2, (int64_t)9, (int64_t)33, (int64_t)35);
    static const int dtypes[] = { TARE_DT_FLOAT, TARE_DT_BFLOAT16, TARE_DT_HALF };
    for (int i = 0; i < 6; i++) {
        struct tare_edge x, y;
        struct tare_graph_model *model =
            quantized_means(&x, &y, TARE_DT_FLOAT, dtypes[i / 2], i % 2 ? "NCHW" : "NHWC", 3);
        if (dtypes[i / 2] != TARE_DT_HALF) assert_runs_without(model, x, shape, y, "narrow");
        compare(model, x, shape, y);
    }
}

/* The floats of bytes are not made. */
static void grouping__means_of_bytes(void **unused) {
    (void)unused;
    enum { LARGE = 400 }; /* sums of floats are not exact */
    for (int i = 0; i < 8; i++) {
        const int64_t size = i / 4 ? LARGE : 3;
        const bool is_first = i % 2;
        struct tare_edge x, y;
        struct tare_graph_model *model = quantized_means(&x, &y, i / 2 % 2 ? TARE_DT_INT8 : TARE_DT_UINT8,
                                                         TARE_DT_FLOAT, is_first ? "NCHW" : "NHWC", size);
        const struct tare_shape shape = tare_shape_make(4, (int64_t)2, is_first ? (int64_t)3 : size + 2, size + 2,
                                                        is_first ? size + 2 : (int64_t)3);
        if (size == LARGE) y = (struct tare_edge){ tare_graph_find(model->main, "mul"), 0 };
        assert_runs_without(model, x, shape, y, "values");
        compare(model, x, shape, y);
    }
}

static void grouping__means_beside_another_reader_of_the_floats(void **unused) {
    (void)unused;
    struct tare_edge x, y;
    struct tare_graph_model *model = quantized_means(&x, &y, TARE_DT_INT8, TARE_DT_FLOAT, "NHWC", 3);
    const struct tare_edge floats = { tare_graph_find(model->main, "values"), 0 };
    const struct tare_edge other = mini_node(model->main, "Softplus", "other", 1, floats);
    y = mini_node(model->main, "AddV2", "sum", 2, other, layers_cast(model->main, "wide", y, TARE_DT_FLOAT));
    compare(model, x, tare_shape_make(4, (int64_t)2, (int64_t)1, (int64_t)1, (int64_t)40), y);
}

static struct tare_edge quantized_ratio(struct tare_graph *g, struct tare_edge y) {
    y = mini_node(g, "Div", "div", 2, y, mini_float(g, "scale", 0.02f));
    y = mini_node(g, "AddV2", "add", 2, mini_node(g, "Round", "round", 1, y), mini_float(g, "zero_point", -3));
    y = mini_node(g, "Maximum", "low", 2, y, mini_float(g, "least", -128));
    y = mini_node(g, "Minimum", "high", 2, y, mini_float(g, "most", 127));
    return layers_cast(g, "narrow", y, TARE_DT_INT8);
}

/* x sigmoid(x) and 0.5 x erfc(-x / sqrt(2)), and the quantization after them, are one pass. */
static void grouping__activations_of_their_own_argument(void **unused) {
    (void)unused;
    for (int i = 0; i < 4; i++) {
        const bool is_gelu = i / 2;
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        const struct tare_shape shape = tare_shape_make(2, (int64_t)70, (int64_t)33);
        const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_edge y = is_gelu ? mini_node(g, "Mul", "ratio", 2, mini_node(g, "Neg", "neg", 1, x),
                                                 mini_float(g, "root", 0.70710678f))
                                     : x;
        y = mini_node(g, is_gelu ? "Erfc" : "Sigmoid", "function", 1, y);
        const struct tare_edge half = is_gelu ? mini_node(g, "Mul", "half", 2, x, mini_float(g, "h", 0.5f)) : x;
        y = i % 2 ? mini_node(g, "Mul", "activation", 2, y, half) : mini_node(g, "Mul", "activation", 2, half, y);
        if (i % 2) y = quantized_ratio(g, y);
        assert_runs_without(model, x, shape, y, "function");
        compare(model, x, shape, y);
    }
}

/* Sigmoid, or as much of it as is linear: a step of as many values as the layer's, not those of the gate. */
static struct tare_edge gate(struct tare_graph *g, struct tare_edge y, bool is_hard) {
    if (!is_hard) return mini_node(g, "Sigmoid", "gate", 1, y);
    y = mini_node(g, "AddV2", "half", 2, y, mini_float(g, "three", 3));
    return mini_node(g, "Mul", "gate", 2, mini_node(g, "Relu6", "clamped", 1, y), mini_float(g, "sixth", 1 / 6.0f));
}

/* A function of fewer values than the next step has, for each channel of each record: that step is a pass of its own,
 * with the quantization. */
static void grouping__gates(void **unused) {
    (void)unused;
    for (int i = 0; i < 4; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        const int64_t batch = i / 2 ? 3 : 1;
        const struct tare_shape shape = tare_shape_make(4, batch, (int64_t)5, (int64_t)1, (int64_t)40);
        const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        const struct tare_edge scale = mini_float(g, "factor", 3), relu = mini_node(g, "Relu", "relu", 1, x);
        struct tare_node *mean = mini_open(g, "Max", "squeeze", 2, relu, mini_int(g, "axis", 1));
        mini_ok(tare_node_set_bool(mean, "keep_dims", true));
        struct tare_edge y = mini_node(g, "Mul", "scaled", 2, mini_done(mean), scale);
        y = mini_node(g, "Mul", "gated", 2, relu, gate(g, y, i % 2));
        y = quantized_ratio(g, y);
        assert_runs_without(model, x, shape, y, "div");
        compare(model, x, shape, y);
    }
}

static void grouping__bfloat16_is_rounded_after_every_op(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = layers_cast(g, "narrow", x, TARE_DT_BFLOAT16);
    const struct tare_edge b =
        layers_cast(g, "b16", constant(g, "b", TARE_DT_FLOAT, tare_shape_make(1, (int64_t)33)), TARE_DT_BFLOAT16);
    y = mini_node(g, "BiasAdd", "bias", 2, y, b);
    y = mini_node(g, "Mul", "mul", 2, y, b);
    y = mini_node(g, "Sub", "sub", 2, b, y);
    y = layers_cast(g, "wide", mini_node(g, "Relu", "relu", 1, y), TARE_DT_FLOAT);
    compare(model, x, tare_shape_make(2, (int64_t)7, (int64_t)33), y);
}

/* An operand with fewer elements than the result that is only cast: a scale for each row, for each column, of all. */
static void grouping__casts_of_scales(void **unused) {
    static const int32_t axes[][3] = { { 2 }, { 0, 1 }, { 0, 1, 2 } };
    const struct tare_shape shape = tare_shape_make(3, (int64_t)2, (int64_t)50, (int64_t)16);
    (void)unused;
    for (int i = 0; i < 3; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_INT8);
        const struct tare_edge real = layers_cast(g, "real", x, TARE_DT_FLOAT);
        const struct tare_edge narrow = layers_cast(g, "narrow", x, TARE_DT_BFLOAT16);
        struct tare_node *max = mini_open(g, "Max", "scales", 2, narrow, mini_ints(g, "axes", i + 1, axes[i]));
        mini_ok(tare_node_set_bool(max, "keep_dims", i == 0));
        const struct tare_edge scale = layers_cast(g, "wide", mini_done(max), TARE_DT_FLOAT);
        const struct tare_edge y = mini_node(g, "Mul", "scaled", 2, real, scale);
        assert_runs_without(model, x, shape, y, "wide");
        compare(model, x, shape, y);
    }
}

/* A product whose last dimension is not the number of its columns: the weights have two free dimensions. */
static void grouping__product_of_higher_rank(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_dims_wire wire = { .size = 0 };
    const int lhs[] = { 1 }, rhs[] = { 0 };
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_INT8);
    const struct tare_edge weight =
        constant(g, "weight", TARE_DT_INT8, tare_shape_make(3, (int64_t)12, (int64_t)5, (int64_t)6));
    const struct tare_shape vector = tare_shape_make(1, (int64_t)6);
    struct tare_node *node = mini_open(g, "XlaDotV2", "product", 2, x, weight);
    tare_dims_put_list(&wire, 1, lhs, 1);
    tare_dims_put_list(&wire, 2, rhs, 1);
    mini_ok(tare_node_set_type(node, "LhsT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "RhsT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "preferred_element_type", TARE_DT_INT32));
    mini_ok(tare_node_set_string(node, "dimension_numbers", (const char *)wire.bytes, wire.size));
    mini_ok(tare_node_set_string(node, "precision_config", "", 0));
    struct tare_edge y = mini_done(node);
    const struct layer layer = { .zero_point = -3 };
    y = mini_node(g, "Sub", "offset", 2, y, constant(g, "offsets", TARE_DT_INT32, vector));
    y = mini_node(g, "Mul", "mul", 2, layers_cast(g, "cast", y, TARE_DT_FLOAT),
                  constant(g, "scale", TARE_DT_FLOAT, vector));
    compare(model, x, tare_shape_make(2, (int64_t)7, (int64_t)12), requantized(g, &layer, y, "a"));
}

/* A transposed convolution as the quantizer writes it, with the zero point between the elements: the product includes
 * the padding unless it crops. */
static void check_transposed(int zero_point, int32_t low) {
    const int32_t before[] = { 0, low, 1, 0 }, behind[] = { 0, 1, 0, 0 }, between[] = { 0, 1, 1, 0 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_INT8);
    struct tare_tensor zero = mini_scalar(TARE_DT_INT8, zero_point);
    const struct tare_edge value = { tare_graph_add_const(g, "zero", &zero), 0 };
    const struct layer layer = { .zero_point = -3 };
    tare_tensor_reset(&zero);
    struct tare_node *pad = mini_open(g, "XlaPad", "pad", 5, x, value, mini_ints(g, "before", 4, before),
                                      mini_ints(g, "behind", 4, behind), mini_ints(g, "between", 4, between));
    mini_ok(tare_node_set_type(pad, "T", TARE_DT_INT8));
    mini_ok(tare_node_set_type(pad, "Tindices", TARE_DT_INT32));
    struct tare_edge y = layers_conv(
        g, "product", mini_done(pad),
        constant(g, "weight", TARE_DT_INT8, tare_shape_make(4, (int64_t)3, (int64_t)3, (int64_t)12, (int64_t)20)),
        (struct layers_window){ 1, 1, 1, 0 });
    y = mini_node(g, "AddV2", "bias", 2, y, constant(g, "b", TARE_DT_INT32, tare_shape_make(1, (int64_t)20)));
    y = mini_node(g, "Mul", "mul", 2, layers_cast(g, "cast", y, TARE_DT_FLOAT), mini_float(g, "scale", 0.002f));
    y = requantized(g, &layer, y, "a");
    const struct tare_shape shape = tare_shape_make(4, (int64_t)2, (int64_t)9, (int64_t)10, (int64_t)12);
    if (low >= 0) assert_runs_without(model, x, shape, y, "pad");
    compare(model, x, shape, y);
}

static void grouping__transposed_convolutions(void **unused) {
    (void)unused;
    check_transposed(7, 2);
    check_transposed(0, 1);
    check_transposed(-128, 2);
    check_transposed(5, -1);
}

/* Broadcasting of another kind, an operand of higher rank, and one that is computed after the first step. */
static void grouping__other_operands_run_op_by_op(void **unused) {
    (void)unused;
    static const int64_t first[] = { 1, 4, 4 }, second[] = { 1, 1, 3 };
    for (int i = 0; i < 3; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_shape shape = tare_shape_make(2, first[i], second[i]);
        if (i == 0) shape = tare_shape_make(3, (int64_t)5, (int64_t)4, (int64_t)3);
        if (i == 1) shape = tare_shape_make(2, (int64_t)4, (int64_t)1);
        struct tare_edge y = mini_node(g, "Relu", "relu", 1, x);
        y = mini_node(g, "Mul", "mul", 2, y, constant(g, "other", TARE_DT_FLOAT, shape));
        y = mini_node(g, "AddV2", "sum", 2, mini_node(g, "Relu6", "relu6", 1, x), y);
        compare(model, x, tare_shape_make(2, (int64_t)4, (int64_t)3), y);
    }
}

struct seen {
    char names[256];
};
static bool wants(void *arg, const struct tare_node *node, size_t output) {
    (void)arg, (void)output;
    return strcmp(node->name, "add") == 0;
}
static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct seen *seen = arg;
    (void)output;
    assert_int_equal(value->elements, 6);
    strcat(seen->names, node->name);
    return TARE_OK;
}

static void grouping__observers_receive_intermediate_values(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(g, "AddV2", "add", 2, x, mini_float(g, "one", 1));
    y = mini_node(g, "Relu", "relu", 1, mini_node(g, "Mul", "mul", 2, y, y));
    y = mini_node(g, "Relu6", "relu6", 1, mini_node(g, "Sub", "sub", 2, y, mini_float(g, "two", 2)));
    struct tare_session *session = mini_session(model);
    struct tare_tensor value = random_tensor(TARE_DT_FLOAT, tare_shape_make(2, (int64_t)2, (int64_t)3)), before, after;
    struct seen seen = { "" };
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &before, 1, NULL, 0));
    tare_session_observe(session, see, wants, &seen);
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &after, 1, NULL, 0));
    assert_string_equal(seen.names, "add");
    assert_same(&after, &before);
    tare_tensor_reset(&before), tare_tensor_reset(&after), tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

static void grouping__identities_alone_pass_their_input_on(void **unused) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_tensor x = random_tensor(TARE_DT_FLOAT, tare_shape_make(1, 64)), out[2];
    const struct tare_edge fed = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_edge fetches[2] = { mini_node(model->main, "Sqrt", "root", 1, fed) };
    (void)unused;
    fetches[1] = mini_node(model->main, "Identity", "i", 1, fetches[0]);
    fetches[1] = mini_node(model->main, "Identity", "j", 1, fetches[1]);
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &fed, &x, 1, fetches, out, 2, NULL, 0));
    assert_ptr_equal(out[0].data, out[1].data);
    for (int i = 0; i < 2; i++)
        tare_tensor_reset(&out[i]);
    tare_tensor_reset(&x);
    tare_session_free(session);
    tare_model_free(model);
}

static void grouping__bias_of_a_wrong_shape_is_the_ops_own_error(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    const struct tare_edge bias = constant(g, "b", TARE_DT_FLOAT, tare_shape_make(1, (int64_t)1));
    const struct tare_edge y = mini_node(g, "BiasAdd", "bias", 2, mini_node(g, "Relu", "relu", 1, x), bias);
    const struct tare_edge fetch = mini_node(g, "Relu6", "relu6", 1, y);
    struct tare_session *session = mini_session(model);
    struct tare_tensor value = random_tensor(TARE_DT_FLOAT, tare_shape_make(2, (int64_t)2, (int64_t)3)), out;
    mini_fails(tare_session_run(session, &x, &value, 1, &fetch, &out, 1, NULL, 0), "bias (BiasAdd): bias has 1");
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

static void layers(void **unused) {
    (void)unused;
    check_layers();
}

int main(int argc, char **argv) {
    const struct CMUnitTest one[] = { cmocka_unit_test(layers) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grouping__quantized_layers_at_every_level),
        cmocka_unit_test(grouping__quantization_of_floats),
        cmocka_unit_test(grouping__a_sum_with_quantized_values),
        cmocka_unit_test(grouping__means_are_quantized_in_their_own_step),
        cmocka_unit_test(grouping__means_of_bytes),
        cmocka_unit_test(grouping__means_beside_another_reader_of_the_floats),
        cmocka_unit_test(grouping__activations_of_their_own_argument),
        cmocka_unit_test(grouping__gates),
        cmocka_unit_test(grouping__bfloat16_is_rounded_after_every_op),
        cmocka_unit_test(grouping__casts_of_scales),
        cmocka_unit_test(grouping__product_of_higher_rank),
        cmocka_unit_test(grouping__transposed_convolutions),
        cmocka_unit_test(grouping__other_operands_run_op_by_op),
        cmocka_unit_test(grouping__observers_receive_intermediate_values),
        cmocka_unit_test(grouping__identities_alone_pass_their_input_on),
        cmocka_unit_test(grouping__bias_of_a_wrong_shape_is_the_ops_own_error),
    };
    if (argc > 1 && strcmp(argv[1], "layers") == 0) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
