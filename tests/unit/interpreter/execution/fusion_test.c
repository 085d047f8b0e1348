/* Operator fusion: the fused result has the bits of the separate ops, and observers still
 * receive the intermediate values. */
#include "support/mini_model.h"

#include "graph/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { C = 5, MOST_SEEN = 16 };

static float next_float(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return ldexpf((float)(int32_t)*seed / 2147483648.0f, (int)(*seed >> 8 & 3));
}

static struct tare_tensor random_tensor(struct tare_shape shape, unsigned seed) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = next_float(&seed);
    return tensor;
}

static struct tare_edge constant(struct tare_graph *g, const char *name, struct tare_shape shape, unsigned seed) {
    struct tare_tensor value = random_tensor(shape, seed);
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge conv(struct tare_graph *g, const char *op, const char *name, struct tare_edge x,
                             unsigned seed) {
    static const int64_t strides[4] = { 1, 1, 1, 1 };
    const bool depthwise = op[0] == 'D';
    char filter[40];
    snprintf(filter, sizeof filter, "%s_filter", name);
    const struct tare_shape shape =
        tare_shape_make(4, (int64_t)3, (int64_t)3, (int64_t)C, (int64_t)(depthwise ? 1 : C));
    struct tare_node *node = mini_open(g, op, name, 2, x, constant(g, filter, shape, seed));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return mini_done(node);
}

static struct tare_shape channels(void) {
    return tare_shape_make(1, (int64_t)C);
}

struct seen {
    const char *only; /* node to look at; NULL: all */
    char names[MOST_SEEN][32];
    float sums[MOST_SEEN];
    int count;
};

static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    const struct seen *seen = arg;
    (void)output;
    return !seen->only || strcmp(seen->only, node->name) == 0;
}

static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct seen *seen = arg;
    (void)output;
    assert_in_range(seen->count, 0, MOST_SEEN - 1);
    snprintf(seen->names[seen->count], sizeof *seen->names, "%s", node->name);
    for (int64_t i = 0; i < value->elements; i++)
        seen->sums[seen->count] += TARE_CONST_DATA(float, value)[i] * (float)(i % 7);
    seen->count++;
    return TARE_OK;
}

static void run(struct tare_session *session, struct tare_edge x, struct tare_edge fetch, int64_t batch,
                struct tare_tensor *result) {
    struct tare_tensor value = random_tensor(tare_shape_make(4, batch, (int64_t)6, (int64_t)7, (int64_t)C), 9);
    mini_ok(tare_session_run(session, &x, &value, 1, &fetch, result, 1, NULL, 0));
    tare_tensor_reset(&value);
}

static void assert_same(const struct tare_tensor *got, const struct tare_tensor *expected) {
    assert_true(tare_shape_equal(&got->shape, &expected->shape));
    for (int64_t i = 0; i < got->elements; i++) {
        const float a = TARE_CONST_DATA(float, got)[i], b = TARE_CONST_DATA(float, expected)[i];
        if (memcmp(&a, &b, sizeof a) != 0)
            fail_msg("element %lld is %.9g (expected %.9g)", (long long)i, (double)a, (double)b);
    }
}

/* Two sessions, one of which runs every step by itself, in batches of 1 and 3. */
static void compare(struct tare_graph_model *model, struct tare_edge x, struct tare_edge fetch) {
    const struct tare_session_options alone = { .check_numerics = true };
    struct tare_session *session = mini_session(model), *plain;
    mini_ok(tare_session_new(&plain, model, &alone));
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        struct tare_tensor got, expected;
        run(session, x, fetch, batch, &got);
        run(plain, x, fetch, batch, &expected);
        assert_same(&got, &expected);
        tare_tensor_reset(&got);
        tare_tensor_reset(&expected);
    }
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* Fails if a node ran by itself. */
static void assert_fused(const struct tare_graph_model *model, struct tare_edge x, struct tare_edge fetch,
                         const struct tare_node *const *nodes, size_t n_nodes) {
    const struct tare_session_options profiled = { .profile = true };
    struct tare_session *session;
    struct tare_profile_row *rows;
    struct tare_arena arena = { 0 };
    struct tare_tensor result;
    size_t count;
    mini_ok(tare_session_new(&session, model, &profiled));
    run(session, x, fetch, 1, &result);
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    for (size_t i = 0; i < count; i++) {
        for (size_t n = 0; n < n_nodes; n++)
            if (rows[i].node == nodes[n])
                fail_msg("%s ran by itself %lld times", rows[i].node->name, (long long)rows[i].calls);
    }
    assert_true(count > 0);
    tare_tensor_reset(&result);
    tare_arena_free(&arena);
    tare_session_free(session);
}

static void fusion__convolutions_with_bias_and_relu(void **state) {
    (void)state;
    static const char *const ops[] = { "Conv2D", "DepthwiseConv2dNative" }, *const relus[] = { "Relu", "Relu6" };
    for (int i = 0; i < 4; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_edge y = conv(g, ops[i & 1], "conv", x, 3);
        y = mini_node(g, "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
        compare(model, x, mini_node(g, relus[i >> 1], "relu", 1, y));
    }
}

/* Identity after the clamp (dropout at inference) is part of the fusion, a bias after it is not. */
static void fusion__identity_after_relu(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(g, "Relu6", "relu", 1, conv(g, "Conv2D", "conv", x, 3));
    y = mini_node(g, "Identity", "dropout", 1, y);
    y = mini_node(g, "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
    compare(model, x, mini_node(g, "Relu", "relu2", 1, y));
}

static void fusion__residual_block(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_edge y = mini_node(g, "Relu", "relu1", 1, conv(g, "Conv2D", "conv1", x, 3));
        y = mini_node(g, "AddV2", "bias2", 2, conv(g, "Conv2D", "conv2", y, 4), constant(g, "b", channels(), 5));
        y = order ? mini_node(g, "AddV2", "sum", 2, x, y) : mini_node(g, "AddV2", "sum", 2, y, x);
        compare(model, x, mini_node(g, "Relu", "relu2", 1, y));
    }
}

/* The addend of a residual block is also the convolution's input, or is used between the convolution and the addition,
 * or after it, or returned: its memory must not be reused. */
static void fusion__addends_that_are_used_again(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), a = mini_node(g, "Relu", "a", 1, x);
        struct tare_edge y = conv(g, "Conv2D", "conv", i == 0 ? a : x, 3), between = i == 1 ? y : x;
        if (i == 1) between = mini_node(g, "Tanh", "between", 1, a);
        y = mini_node(g, "AddV2", "sum", 2, y, a);
        if (i == 1) y = mini_node(g, "Mul", "product", 2, y, between);
        if (i == 2) y = mini_node(g, "Mul", "product", 2, y, a);
        if (i == 3) y = mini_node(g, "Sub", "difference", 2, mini_node(g, "Identity", "alias", 1, a), y);
        if (i == 4) y = mini_node(g, "ConcatV2", "both", 3, y, a, mini_int(g, "axis", 3));
        compare(model, x, y);
    }
}

struct places {
    const void *a, *sum;
};

static tare_status note_place(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct places *places = arg;
    (void)output;
    if (strcmp(node->name, "a") == 0) places->a = value->data;
    if (strcmp(node->name, "sum") == 0) places->sum = value->data;
    return TARE_OK;
}

static bool accepts_places(void *arg, const struct tare_node *node, size_t output) {
    (void)arg, (void)output;
    return strcmp(node->name, "a") == 0 || strcmp(node->name, "sum") == 0;
}

static void fusion__sum_in_the_memory_of_its_addend(void **state) {
    (void)state;
    for (int used_again = 0; used_again < 2; used_again++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), a = mini_node(g, "Relu", "a", 1, x);
        struct tare_edge y = mini_node(g, "AddV2", "sum", 2, conv(g, "Conv2D", "conv", x, 3), a);
        if (used_again) y = mini_node(g, "Mul", "product", 2, y, a);
        struct tare_session *session = mini_session(model);
        struct places places = { 0 };
        struct tare_tensor result;
        tare_session_observe(session, note_place, accepts_places, &places);
        run(session, x, y, 2, &result);
        assert_non_null(places.a);
        assert_int_equal(places.a == places.sum, !used_again);
        tare_tensor_reset(&result);
        tare_session_free(session);
        tare_model_free(model);
    }
}

/* An epilogue adds one tensor: the second addition runs as an op of its own. */
static void fusion__two_residual_additions(void **state) {
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_edge first = mini_node(g, "Relu", "first", 1, x), second = mini_node(g, "Relu6", "second", 1, x);
        struct tare_edge y = mini_node(g, "AddV2", "sum1", 2, conv(g, "Conv2D", "conv", x, 3), swap ? second : first);
        compare(model, x, mini_node(g, "AddV2", "sum2", 2, y, swap ? first : second));
    }
}

/* The other operand is broadcast, is no vector, or is made later: the ops run by themselves. */
/* The value of a new variable of the channels. */
static struct tare_edge read_variable(struct tare_graph_model *model, const char *name, unsigned seed) {
    const struct tare_shape shape = channels();
    char read[40];
    struct tare_node *node = mini_open(model->main, "VarHandleOp", name, 0);
    snprintf(read, sizeof read, "%s_value", name);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    mini_add_variable(model, node, random_tensor(shape, seed));
    node = mini_open(model->main, "ReadVariableOp", read, 1, mini_done(node));
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

/* A batch normalization as Keras writes it, whose factor and summand are computed after the convolution in the file. */
static void fusion__normalization_by_variables(void **state) {
    (void)state;
    static const char *const ops[] = { "Conv2D", "DepthwiseConv2dNative" };
    for (int i = 0; i < 2; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_edge y = conv(g, ops[i], "conv", x, 3);
        struct tare_edge square = mini_node(g, "Square", "square", 1, read_variable(model, "deviation", 4));
        struct tare_edge factor = mini_node(g, "Rsqrt", "rsqrt", 1, square);
        struct tare_edge summand;
        const struct tare_node *fused[3];
        factor = mini_node(g, "Mul", "factor", 2, factor, read_variable(model, "gamma", 5));
        y = mini_node(g, "Mul", "scaled", 2, y, factor);
        fused[0] = y.node;
        summand = mini_node(g, "Mul", "shift", 2, read_variable(model, "mean", 6), factor);
        summand = mini_node(g, "Sub", "summand", 2, read_variable(model, "beta", 7), summand);
        y = mini_node(g, "AddV2", "normalized", 2, y, summand);
        fused[1] = y.node;
        y = mini_node(g, "Relu6", "relu", 1, y);
        fused[2] = y.node;
        assert_fused(model, x, y, fused, 3);
        compare(model, x, y);
    }
}

/* The variable is changed before it is read: it is not read earlier. */
static void fusion__parameters_of_changed_variables(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = conv(g, "Conv2D", "conv", x, 3), beta = read_variable(model, "beta", 7);
    struct tare_node *assign =
        mini_open(g, "AssignVariableOp", "assign", 2, beta.node->inputs[0], constant(g, "other", channels(), 8));
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_FLOAT));
    mini_done(assign);
    struct tare_node *read = mini_open(g, "ReadVariableOp", "again", 1, beta.node->inputs[0]);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_add_control(read, assign));
    compare(model, x, mini_node(g, "AddV2", "sum", 2, y, mini_done(read)));
}

/* The order of a graph that changes a variable at its end stays as it was: the summand, computed from another variable
 * after the convolution, is not joined to it. */
static void fusion__parameters_before_a_changed_variable(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = conv(g, "Conv2D", "conv", x, 3), handle = read_variable(model, "count", 7).node->inputs[0];
    y = mini_node(g, "BiasAdd", "sum", 2, y, mini_node(g, "Square", "square", 1, read_variable(model, "beta", 9)));
    struct tare_node *assign =
        mini_open(g, "AssignVariableOp", "assign", 2, handle, constant(g, "other", channels(), 8));
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_add_control(assign, y.node));
    mini_done(assign);
    y = mini_node(g, "Identity", "result", 1, y);
    mini_ok(tare_node_add_control(y.node, assign));
    compare(model, x, y);
}

static void fusion__what_does_not_fit_runs_alone(void **state) {
    (void)state;
    const struct tare_shape one = tare_shape_make(1, (int64_t)1);
    const struct tare_shape line = tare_shape_make(4, (int64_t)1, (int64_t)1, (int64_t)7, (int64_t)C);
    for (int i = 0; i < 4; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), y = conv(g, "Conv2D", "conv", x, 3), other = y;
        if (i == 0) other = constant(g, "one", one, 4);
        if (i == 1) other = constant(g, "line", line, 4);
        if (i == 2) other = conv(g, "Conv2D", "second", x, 5);
        compare(model, x, mini_node(g, "Relu", "relu", 1, mini_node(g, "AddV2", "sum", 2, y, other)));
    }
}

static void fusion__product_with_bias(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    static const int32_t two[2] = { -1, C };
    struct tare_edge rows = mini_node(g, "Reshape", "rows", 2, x, mini_ints(g, "dims", 2, two));
    struct tare_edge y =
        mini_node(g, "MatMul", "product", 2, rows, constant(g, "w", tare_shape_make(2, (int64_t)C, (int64_t)C), 3));
    y = mini_node(g, "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
    compare(model, x, mini_node(g, "Relu6", "relu", 1, y));
}

/* A dense layer of sequences: the product's rows are reshaped before the bias. */
static struct tare_edge dense(struct tare_graph *g, struct tare_edge x, int last, struct tare_edge *reshaped) {
    static const int32_t rows[2] = { -1, C };
    const int32_t dims[3] = { -1, 7, last };
    struct tare_edge y = mini_node(g, "Reshape", "rows", 2, x, mini_ints(g, "rows_dims", 2, rows));
    y = mini_node(g, "MatMul", "product", 2, y, constant(g, "w", tare_shape_make(2, (int64_t)C, (int64_t)C), 3));
    return *reshaped = mini_node(g, "Reshape", "reshaped", 2, y, mini_ints(g, "dims", 3, dims));
}

static void fusion__product_reshaped_before_its_bias(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), reshaped, bias, y;
        y = dense(g, x, i == 4 ? 1 : C, &reshaped);
        bias = y = mini_node(g, i == 4 ? "AddV2" : "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
        if (i == 0) y = mini_node(g, "Relu", "relu", 1, y);
        if (i == 1) y = mini_node(g, "Mul", "swish", 2, y, mini_node(g, "Sigmoid", "gate", 1, y));
        if (i == 2) y = mini_node(g, "Sub", "used_again", 2, mini_node(g, "Relu", "relu", 1, y), reshaped);
        if (i == 3) y = mini_node(g, "Reshape", "flat", 2, y, mini_ints(g, "flat_dims", 1, (int32_t[]){ -1 }));
        if (i == 5) y = mini_node(g, "Tanh", "tanh", 1, mini_node(g, "AddV2", "sum", 2, y, reshaped));
        const struct tare_node *const fused[] = { bias.node, y.node };
        if (i < 2) assert_fused(model, x, y, fused, 2);
        compare(model, x, y);
    }
}

static void fusion__product_reshaped_to_other_columns_has_no_bias(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), reshaped, y;
    y = mini_node(g, "BiasAdd", "bias", 2, dense(g, x, 1, &reshaped), constant(g, "b", channels(), 4));
    struct tare_session *session = mini_session(model);
    struct tare_tensor value = random_tensor(tare_shape_make(4, (int64_t)1, (int64_t)6, (int64_t)7, (int64_t)C), 9);
    struct tare_tensor result;
    mini_fails(tare_session_run(session, &x, &value, 1, &y, &result, 1, NULL, 0), "bias (BiasAdd): bias has");
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

static void fusion__bias_of_a_wrong_shape_is_the_ops_own_error(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge bias = constant(g, "b", tare_shape_make(2, (int64_t)1, (int64_t)C), 4);
    struct tare_edge fetch = mini_node(g, "BiasAdd", "bias", 2, conv(g, "Conv2D", "conv", x, 3), bias);
    struct tare_session *session = mini_session(model);
    struct tare_tensor value = random_tensor(tare_shape_make(4, (int64_t)1, (int64_t)4, (int64_t)4, (int64_t)C), 9), y;
    mini_fails(tare_session_run(session, &x, &value, 1, &fetch, &y, 1, NULL, 0), "bias (BiasAdd): bias has rank 2");
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

/* One session: nobody looks, one looks at the end, one between, nobody again. */
static void fusion__observers_see_every_value(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = conv(g, "Conv2D", "conv", x, 3);
    y = mini_node(g, "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
    y = mini_node(g, "Relu", "relu", 1, y);
    struct tare_session *session = mini_session(model);
    struct seen all = { 0 }, last = { .only = "relu" }, between = { .only = "bias" };
    struct seen *const observers[] = { NULL, &last, &between, &all, NULL };
    struct tare_tensor first = { 0 };
    for (int i = 0; i < 5; i++) {
        struct tare_tensor result;
        tare_session_observe(session, observers[i] ? see : NULL, accepts, observers[i]);
        run(session, x, y, 2, &result);
        if (i == 0)
            tare_tensor_share(&first, &result);
        else
            assert_same(&result, &first);
        tare_tensor_reset(&result);
    }
    tare_tensor_reset(&first);
    assert_int_equal(last.count, 1);
    assert_int_equal(between.count, 1);
    for (int i = 0; i < all.count; i++) {
        if (strcmp(all.names[i], "relu") == 0) assert_float_equal(all.sums[i], last.sums[0], 0);
        if (strcmp(all.names[i], "bias") == 0) assert_float_equal(all.sums[i], between.sums[0], 0);
    }
    assert_true(all.count >= 4);
    tare_session_free(session);
    tare_model_free(model);
}

static void fusion__profile_counts_the_whole_at_the_first_node(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), y = conv(g, "Conv2D", "conv", x, 3);
    y = mini_node(g, "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
    const struct tare_edge relu = mini_node(g, "Relu", "relu", 1, y);
    y = mini_node(g, "Identity", "dropout", 1, relu);
    const struct tare_node *const fused[] = { relu.node, y.node };
    assert_fused(model, x, y, fused, 2);
    tare_model_free(model);
}

/* Two convolutions whose biases come after both in the file: the second one adds the result of the first. */
static void fusion__sum_of_two_branches(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    const struct tare_edge first = conv(g, "Conv2D", "conv1", x, 3), second = conv(g, "Conv2D", "conv2", x, 4);
    const struct tare_edge bias1 = mini_node(g, "BiasAdd", "bias1", 2, first, constant(g, "b1", channels(), 5));
    const struct tare_edge relu1 = mini_node(g, "Relu6", "relu1", 1, bias1);
    const struct tare_edge bias2 = mini_node(g, "BiasAdd", "bias2", 2, second, constant(g, "b2", channels(), 6));
    const struct tare_edge sum = mini_node(g, "AddV2", "sum", 2, relu1, bias2);
    const struct tare_edge relu2 = mini_node(g, "Relu", "relu2", 1, sum);
    const struct tare_node *const fused[] = { bias1.node, relu1.node, bias2.node, sum.node, relu2.node };
    assert_fused(model, x, relu2, fused, 5);
    compare(model, x, relu2);
}

static struct tare_edge number(struct tare_graph *g, const char *name, float value) {
    struct tare_tensor tensor;
    const struct tare_shape scalar = tare_shape_make(0);
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &scalar));
    *TARE_DATA(float, &tensor) = value;
    struct tare_node *node = tare_graph_add_const(g, name, &tensor);
    tare_tensor_reset(&tensor);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

enum { FORMS = 8 };

/* Forms of activations that exporters write. */
static struct tare_edge activation(struct tare_graph *g, int form, struct tare_edge x) {
    const struct tare_edge half = number(g, "half", 0.5f), root = number(g, "root", 0x1.6a09e6p-1f);
    struct tare_edge y;
    switch (form) {
    case 0: /* swish */
        return mini_node(g, "Mul", "a_last", 2, x, mini_node(g, "Sigmoid", "a1", 1, x));
    case 1: /* GELU by erfc */
        y = mini_node(g, "Mul", "a1", 2, mini_node(g, "Neg", "a2", 1, x), root);
        return mini_node(g, "Mul", "a_last", 2, mini_node(g, "Mul", "a3", 2, half, x),
                         mini_node(g, "Erfc", "a4", 1, y));
    case 2: /* GELU by erf */
        y = mini_node(g, "Erf", "a1", 1, mini_node(g, "RealDiv", "a2", 2, x, number(g, "two", 0x1.6a09e6p0f)));
        y = mini_node(g, "AddV2", "a3", 2, number(g, "one", 1), y);
        return mini_node(g, "Mul", "a_last", 2, mini_node(g, "Mul", "a4", 2, x, half), y);
    case 3: /* GELU by tanh */
        y = mini_node(g, "Mul", "a1", 2, mini_node(g, "Mul", "a2", 2, x, x), x);
        y = mini_node(g, "AddV2", "a3", 2, x, mini_node(g, "Mul", "a4", 2, y, number(g, "cubic", 0.044715f)));
        y = mini_node(g, "Tanh", "a5", 1, mini_node(g, "Mul", "a6", 2, y, root));
        y = mini_node(g, "AddV2", "a7", 2, number(g, "one", 1), y);
        return mini_node(g, "Mul", "a_last", 2, mini_node(g, "Mul", "a8", 2, x, half), y);
    case 4: /* hard swish */
        y = mini_node(g, "Relu6", "a1", 1, mini_node(g, "AddV2", "a2", 2, x, number(g, "three", 3)));
        return mini_node(g, "Mul", "a_last", 2, x, mini_node(g, "Mul", "a3", 2, y, root));
    case 5: /* swish with a factor, and one at the end */
    case 6:
        y = mini_node(g, "Mul", "a1", 2, number(g, "beta", 1), x);
        y = mini_node(g, "Mul", "a2", 2, x, mini_node(g, "Sigmoid", "a3", 1, y));
        return form == 5 ? y : mini_node(g, "Mul", "a_last", 2, y, number(g, "beta_again", 1));
    default:
        return mini_node(g, "Tanh", "a_last", 1, x);
    }
}

/* Nothing of an activation runs by itself, and its bits are those of the steps. */
static void fusion__activations(void **state) {
    (void)state;
    for (int i = 0; i < 2 * FORMS; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
        struct tare_edge y = conv(g, i % 2 ? "DepthwiseConv2dNative" : "Conv2D", "conv", x, 3);
        y = mini_node(g, "BiasAdd", "bias", 2, y, constant(g, "b", channels(), 4));
        const struct tare_node *fused[20];
        size_t count = 0;
        y = activation(g, i / 2, y);
        for (size_t n = 0; n < g->n_nodes && count < 20; n++)
            if (strncmp(g->nodes[n]->name, "a", 1) == 0) fused[count++] = g->nodes[n];
        assert_true(count >= (i / 2 == FORMS - 1 ? 1 : 2));
        y = conv(g, "Conv2D", "next", y, 5);
        assert_fused(model, x, y, fused, count);
        compare(model, x, y);
    }
}

static tare_status keep(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct tare_tensor *kept = arg;
    (void)node;
    (void)output;
    tare_tensor_share(kept, value);
    return TARE_OK;
}

static bool accepts_bias(void *arg, const struct tare_node *node, size_t output) {
    (void)arg;
    (void)output;
    return strcmp(node->name, "bias") == 0;
}

/* An activation after an observed argument replaces its values, unless the observer keeps them. */
static void fusion__activation_whose_argument_is_kept(void **state) {
    (void)state;
    struct seen seen = { .only = "bias" };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), c = conv(g, "Conv2D", "conv", x, 3),
                           bias = mini_node(g, "BiasAdd", "bias", 2, c, constant(g, "b", channels(), 4)),
                           y = activation(g, 0, bias);
    struct tare_session *session = mini_session(model);
    struct tare_tensor expected, expected_bias, got, kept;
    run(session, x, y, 2, &expected);
    run(session, x, bias, 2, &expected_bias);
    tare_session_observe(session, see, accepts, &seen);
    run(session, x, y, 2, &got);
    assert_same(&got, &expected);
    tare_tensor_reset(&got);
    tare_session_observe(session, keep, accepts_bias, &kept);
    run(session, x, y, 2, &got);
    assert_same(&got, &expected);
    assert_same(&kept, &expected_bias);
    tare_tensor_reset(&got);
    tare_tensor_reset(&kept);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&expected_bias);
    assert_int_equal(seen.count, 1);
    tare_session_free(session);
    tare_model_free(model);
}

/* A value inside of the activation, or its argument, is used elsewhere too, or is a result; a constant is a vector. */
static void fusion__activations_that_do_not_fit(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = model->main;
        struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), y = conv(g, "Conv2D", "conv", x, 3);
        const struct tare_edge gate = mini_node(g, "Sigmoid", "gate", 1, y);
        struct tare_edge z = mini_node(g, "Mul", "swish", 2, y, gate);
        if (i == 0) z = mini_node(g, "ConcatV2", "both", 3, z, y, mini_int(g, "axis", 3));
        if (i == 1) z = mini_node(g, "ConcatV2", "both", 3, z, gate, mini_int(g, "axis", 3));
        if (i == 2) z = mini_node(g, "Mul", "scaled", 2, z, constant(g, "scale", channels(), 6));
        compare(model, x, i == 3 ? gate : z);
    }
}

/* A step without outputs uses the argument. */
static void fusion__activation_whose_argument_is_asserted(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), y = conv(g, "Conv2D", "conv", x, 3);
    struct tare_node *assertion = mini_node(g, "Assert", "assert", 2, mini_bool(g, "ok", true), y).node;
    const struct tare_edge swish = mini_node(g, "Mul", "swish", 2, y, mini_node(g, "Sigmoid", "gate", 1, y));
    struct tare_session *session = mini_session(model), *plain = mini_session(model);
    struct tare_tensor value = random_tensor(tare_shape_make(4, (int64_t)1, (int64_t)6, (int64_t)7, (int64_t)C), 9);
    struct tare_tensor got, expected;
    mini_ok(tare_session_run(session, &x, &value, 1, &swish, &got, 1, &assertion, 1));
    run(plain, x, swish, 1, &expected);
    assert_same(&got, &expected);
    tare_tensor_reset(&got), tare_tensor_reset(&expected), tare_tensor_reset(&value);
    tare_session_free(session), tare_session_free(plain);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fusion__activation_whose_argument_is_asserted),
        cmocka_unit_test(fusion__activation_whose_argument_is_kept),
        cmocka_unit_test(fusion__activations),
        cmocka_unit_test(fusion__activations_that_do_not_fit),
        cmocka_unit_test(fusion__convolutions_with_bias_and_relu),
        cmocka_unit_test(fusion__identity_after_relu),
        cmocka_unit_test(fusion__residual_block),
        cmocka_unit_test(fusion__addends_that_are_used_again),
        cmocka_unit_test(fusion__sum_in_the_memory_of_its_addend),
        cmocka_unit_test(fusion__two_residual_additions),
        cmocka_unit_test(fusion__normalization_by_variables),
        cmocka_unit_test(fusion__parameters_of_changed_variables),
        cmocka_unit_test(fusion__parameters_before_a_changed_variable),
        cmocka_unit_test(fusion__what_does_not_fit_runs_alone),
        cmocka_unit_test(fusion__product_with_bias),
        cmocka_unit_test(fusion__product_reshaped_before_its_bias),
        cmocka_unit_test(fusion__product_reshaped_to_other_columns_has_no_bias),
        cmocka_unit_test(fusion__bias_of_a_wrong_shape_is_the_ops_own_error),
        cmocka_unit_test(fusion__observers_see_every_value),
        cmocka_unit_test(fusion__profile_counts_the_whole_at_the_first_node),
        cmocka_unit_test(fusion__sum_of_two_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
