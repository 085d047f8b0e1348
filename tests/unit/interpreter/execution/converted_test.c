/* Models converted to bfloat16 and models with int8 weights: fused and tiled steps have the bits of the ops run one by
 * one by their reference kernels, at every CPU level of the machine; observers still receive every value. */
#include "support/levels.h"
#include "support/quantized_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 9, IN = 5, C = 24 };

static uint32_t seed = 5;
static float next_float(void) {
    seed = seed * 1664525u + 1013904223u;
    return ldexpf((float)(int32_t)seed / 2147483648.0f, (int)(seed >> 8 & 3));
}

static struct tare_edge constant(struct tare_graph *g, const char *of, const char *what, int dtype,
                                 struct tare_shape shape, bool is_positive) {
    char name[60];
    snprintf(name, sizeof name, "%s_%s", of, what);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, dtype, &shape));
    for (int64_t i = 0; i < value.elements; i++) {
        const float x = next_float();
        tare_tensor_set_f64(&value, i, dtype == TARE_DT_INT8 ? floorf(x * 15) : is_positive ? 0.25f + fabsf(x) : x);
    }
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge vector(struct tare_graph *g, const char *of, const char *what, int dtype, int64_t count) {
    return constant(g, of, what, dtype, tare_shape_make(1, count), strcmp(what, "variance") == 0);
}

static struct tare_edge named(struct tare_graph *g, const char *of, const char *op, struct tare_edge x,
                              struct tare_edge y) {
    char name[60];
    snprintf(name, sizeof name, "%s_%s", of, op);
    return y.node ? mini_node(g, op, name, 2, x, y) : mini_node(g, op, name, 1, x);
}

/* ---- layers ---- */

/* What follows a convolution, in this order; RELU and RELU6 together: clip_by_value to [0, 2.5]. */
enum { BIAS = 1, NORM = 2, ADD = 4, RELU = 8, RELU6 = 16, PARTS = 32 };

static struct tare_edge norm(struct tare_graph *g, const char *of, struct tare_edge x, int64_t channels) {
    char name[60];
    snprintf(name, sizeof name, "%s_norm", of);
    const int dtype = TARE_DT_FLOAT;
    struct tare_node *node = mini_open(g, "FusedBatchNormV3", name, 5, x, vector(g, of, "scale", dtype, channels),
                                       vector(g, of, "offset", dtype, channels), vector(g, of, "mean", dtype, channels),
                                       vector(g, of, "variance", dtype, channels));
    mini_ok(tare_node_set_type(node, "U", TARE_DT_FLOAT));
    mini_ok(tare_node_set_bool(node, "is_training", false));
    return mini_done(node);
}

static struct tare_edge clipped(struct tare_graph *g, const char *of, struct tare_edge y) {
    static const struct {
        const char *op;
        float value;
    } steps[] = { { "Minimum", 2.5f }, { "Maximum", 0 } };
    char names[2][60];
    for (int i = 0; i < 2; i++) {
        struct tare_tensor limit;
        const struct tare_shape scalar = tare_shape_scalar();
        mini_ok(tare_tensor_new(&limit, tare_edge_dtype(y), &scalar));
        tare_tensor_set_f64(&limit, 0, (double)steps[i].value);
        snprintf(names[0], sizeof names[0], "%s_limit%d", of, i);
        snprintf(names[1], sizeof names[1], "%s_clip%d", of, i);
        struct tare_node *node = tare_graph_add_const(g, names[0], &limit);
        tare_tensor_reset(&limit);
        y = mini_node(g, steps[i].op, names[1], 2, y, (struct tare_edge){ node, 0 });
    }
    return y;
}

static struct tare_edge follow(struct tare_graph *g, const char *of, struct tare_edge y, struct tare_edge addend,
                               int64_t channels, int parts) {
    const struct tare_edge none = { NULL, 0 };
    if (parts & BIAS) y = named(g, of, "BiasAdd", y, vector(g, of, "b", tare_edge_dtype(y), channels));
    if (parts & NORM) y = norm(g, of, y, channels);
    if (parts & ADD) y = named(g, of, "AddV2", y, addend);
    if ((parts & RELU) && (parts & RELU6)) return clipped(g, of, y);
    if (parts & RELU) return named(g, of, "Relu", y, none);
    return parts & RELU6 ? named(g, of, "Relu6", y, none) : y;
}

/* A convolution in the dtype of x, from in to out channels; depthwise where out is 0. */
static struct tare_edge conv(struct tare_graph *g, const char *name, struct tare_edge x, int64_t kernel, int64_t in,
                             int64_t out) {
    static const int64_t strides[4] = { 1, 1, 1, 1 };
    const struct tare_edge filter = constant(g, name, "filter", tare_edge_dtype(x),
                                             tare_shape_make(4, kernel, kernel, in, out ? out : (int64_t)1), false);
    struct tare_node *node = mini_open(g, out ? "Conv2D" : "DepthwiseConv2dNative", name, 2, x, filter);
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return mini_done(node);
}

/* A convolution of floats with int8 weights and what multiplies the sums with their scales. */
static struct tare_edge int8_conv(struct tare_graph *g, const char *name, struct tare_edge x, int64_t kernel,
                                  int64_t in, int64_t out, bool per_channel) {
    const int64_t outputs = out ? out : in, groups = out ? 1 : in;
    const struct tare_edge filter =
        constant(g, name, "filter", TARE_DT_INT8, tare_shape_make(4, kernel, kernel, in / groups, outputs), false);
    const struct tare_edge y = layers_conv(g, name, x, filter, (struct layers_window){ 1, 1, groups, kernel / 2 });
    const struct tare_edge scale =
        per_channel ? vector(g, name, "s", TARE_DT_FLOAT, outputs) : mini_float(g, layers_name(name, "scale"), 0.03f);
    return mini_node(g, "Mul", layers_name(name, "Mul"), 2, y, scale);
}

/* ---- comparison ---- */

struct seen {
    double sum;
    int count;
};
static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    (void)arg, (void)output;
    return strcmp(node->op, "Cast") != 0;
}
static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct seen *seen = arg;
    (void)node, (void)output;
    for (int64_t i = 0; i < value->elements; i++)
        seen->sum += tare_tensor_get_f64(value, i) * (double)(i % 7);
    seen->count++;
    return TARE_OK;
}

static struct tare_tensor run(struct tare_session *session, struct tare_edge x, struct tare_edge fetch, int64_t batch) {
    const struct tare_shape shape = tare_shape_make(4, batch, (int64_t)SIZE, (int64_t)SIZE, (int64_t)IN);
    struct tare_tensor value, result;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    seed = 77;
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = next_float();
    mini_ok(tare_session_run(session, &x, &value, 1, &fetch, &result, 1, NULL, 0));
    tare_tensor_reset(&value);
    return result;
}

static void assert_same(const struct tare_tensor *got, const struct tare_tensor *expected, const char *what) {
    assert_true(tare_shape_equal(&got->shape, &expected->shape));
    for (int64_t i = 0; i < got->elements; i++) {
        const float a = TARE_CONST_DATA(float, got)[i], b = TARE_CONST_DATA(float, expected)[i];
        if (memcmp(&a, &b, sizeof a) != 0)
            fail_msg("%s: element %lld is %.9g (expected %.9g)", what, (long long)i, (double)a, (double)b);
    }
}

/* Fused; by reference kernels; and while an observer requests all values, of which it gets the same as from those. */
static void compare(struct tare_graph_model *model, struct tare_edge x, struct tare_edge fetch, const char *what) {
    const struct tare_session_options reference = { .use_reference_kernels = true };
    struct tare_session *session = mini_session(model), *plain;
    mini_ok(tare_session_new(&plain, model, &reference));
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        struct tare_tensor got = run(session, x, fetch, batch), expected = run(plain, x, fetch, batch);
        assert_same(&got, &expected, what);
        tare_tensor_reset(&got);
        struct seen seen = { 0, 0 }, all = { 0, 0 };
        tare_session_observe(session, see, accepts, &seen);
        tare_session_observe(plain, see, accepts, &all);
        got = run(session, x, fetch, batch);
        assert_same(&got, &expected, what);
        tare_tensor_reset(&got), tare_tensor_reset(&expected);
        got = run(plain, x, fetch, batch);
        tare_tensor_reset(&got);
        assert_int_equal(seen.count, all.count);
        if (seen.sum != all.sum) fail_msg("%s: the observed values differ", what);
        tare_session_observe(session, NULL, NULL, NULL);
        tare_session_observe(plain, NULL, NULL, NULL);
    }
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* ---- networks ---- */

/* First convolution, expansion, depthwise, projection with a residual addition, each followed by `parts`. */
static void check_bfloat16(int parts) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), none = { NULL, 0 };
    struct tare_edge first = conv(g, "first", layers_cast(g, "narrow", x, TARE_DT_BFLOAT16), 3, IN, C);
    first = follow(g, "first", first, none, C, parts & ~ADD);
    struct tare_edge y = follow(g, "expand", conv(g, "expand", first, 1, C, 2 * C), none, 2 * C, parts & ~ADD);
    y = follow(g, "depthwise", conv(g, "depthwise", y, 3, 2 * C, 0), none, 2 * C, parts & ~ADD);
    y = follow(g, "project", conv(g, "project", y, 1, 2 * C, C), first, C, parts);
    char what[40];
    snprintf(what, sizeof what, "bfloat16, parts %d", parts);
    compare(model, x, layers_cast(g, "wide", y, TARE_DT_FLOAT), what);
}

static void check_int8_weights(bool per_channel) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), none = { NULL, 0 };
    struct tare_edge first = int8_conv(g, "first", x, 3, IN, C, per_channel);
    first = follow(g, "first", first, none, C, BIAS | RELU6);
    struct tare_edge y =
        follow(g, "expand", int8_conv(g, "expand", first, 1, C, 2 * C, per_channel), none, 2 * C, BIAS | RELU6);
    y = follow(g, "depthwise", int8_conv(g, "depthwise", y, 3, 2 * C, 0, per_channel), none, 2 * C, BIAS | RELU6);
    y = follow(g, "project", int8_conv(g, "project", y, 1, 2 * C, C, per_channel), first, C, BIAS | ADD);
    compare(model, x, y, per_channel ? "int8 weights per channel" : "int8 weights per tensor");
}

/* One convolution, so that nothing is tiled with it, and a product. */
static void check_alone(int parts) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    const struct tare_edge narrow = layers_cast(g, "narrow", x, TARE_DT_BFLOAT16);
    struct tare_edge y = follow(g, "conv", conv(g, "conv", narrow, 3, IN, IN), narrow, IN, parts);
    const int32_t dims[2] = { -1, IN };
    y = mini_node(g, "Reshape", "rows", 2, y, mini_ints(g, "dims", 2, dims));
    y = mini_node(g, "MatMul", "product", 2, y,
                  constant(g, "product", "weight", TARE_DT_BFLOAT16, tare_shape_make(2, (int64_t)IN, (int64_t)C), 0));
    y = named(g, "product", "BiasAdd", y, vector(g, "product", "b", TARE_DT_BFLOAT16, C));
    compare(model, x, layers_cast(g, "wide", y, TARE_DT_FLOAT), "one convolution");
}

static void check_all(void) {
    for (int parts = 0; parts < PARTS; parts++) {
        check_bfloat16(parts);
        check_alone(parts);
    }
    check_int8_weights(true);
    check_int8_weights(false);
}

static void converted__bits_of_the_ops_at_every_level(void **unused) {
    (void)unused;
    levels_run("networks");
}

/* Intermediate values are not made: one row of the profile counts for the whole. */
static void converted__bfloat16_layers_run_together(void **unused) {
    (void)unused;
    const struct tare_session_options profiled = { .profile = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), none = { NULL, 0 };
    struct tare_edge y = conv(g, "first", layers_cast(g, "narrow", x, TARE_DT_BFLOAT16), 3, IN, C);
    y = follow(g, "second", conv(g, "second", follow(g, "first", y, none, C, BIAS | NORM | RELU), 3, C, 0), none, C,
               BIAS | NORM | RELU);
    struct tare_session *session;
    struct tare_profile_row *rows;
    struct tare_arena arena = { 0 };
    size_t count;
    mini_ok(tare_session_new(&session, model, &profiled));
    struct tare_tensor result = run(session, x, layers_cast(g, "wide", y, TARE_DT_FLOAT), 1);
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    for (size_t i = 0; i < count; i++)
        if (rows[i].calls > 0 && strncmp(rows[i].node->name, "second", 6) == 0 &&
            strcmp(rows[i].node->op, "Const") != 0)
            fail_msg("%s ran by itself", rows[i].node->name);
    assert_true(count > 0);
    tare_tensor_reset(&result);
    tare_arena_free(&arena);
    tare_session_free(session);
    tare_model_free(model);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "networks") == 0) {
        check_all();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converted__bits_of_the_ops_at_every_level),
        cmocka_unit_test(converted__bfloat16_layers_run_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
