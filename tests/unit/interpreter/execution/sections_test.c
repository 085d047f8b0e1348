/* Sections: a batch that runs some records at a time gives the bits of the whole batch, over kinds of blocks, strides,
 * batch sizes and threads; observers still receive every value of the whole batch, and the peak memory is smaller. */
#include "interpreter/execution/state.h"
#include "interpreter/ops/support/dims_wire.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

enum { SIZE = 24, C = 32, INNER = 96 }; /* large enough that sections are divided */

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
        if (dtype == TARE_DT_INT8) TARE_DATA(int8_t, &tensor)[i] = (int8_t)byte;
        if (dtype == TARE_DT_INT32) TARE_DATA(int32_t, &tensor)[i] = byte * 100;
        if (dtype == TARE_DT_FLOAT) TARE_DATA(float, &tensor)[i] = (float)byte / 128;
    }
    return tensor;
}

static const char *name_of(const char *prefix, const char *what) {
    static char names[8][64];
    static int count;
    char *name = names[count++ % 8];
    snprintf(name, sizeof names[0], "%s_%s", prefix, what);
    return name;
}

static struct tare_edge constant(struct tare_graph *g, const char *name, int dtype, struct tare_shape shape) {
    struct tare_tensor value = random_tensor(dtype, shape);
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge cast(struct tare_graph *g, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(g, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* ---- int8 layers ---- */

/* A layer of `outputs` channels; depthwise for 0. */
struct layer {
    const char *name;
    int64_t inputs, outputs, kernel, stride;
};

static void set_conv(struct tare_node *node) {
    const struct tare_conv_dims dims = { .spatial = 2,
                                         .input_feature = 3,
                                         .kernel_input = 2,
                                         .kernel_output = 3,
                                         .output_feature = 3,
                                         .kernel_spatial = { 0, 1 },
                                         .input_spatial = { 1, 2 },
                                         .output_spatial = { 1, 2 } };
    struct tare_dims_wire wire = { .size = 0 };
    tare_conv_dims_write(&wire, &dims, TARE_CONV_XLA);
    mini_ok(tare_node_set_type(node, "LhsT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "RhsT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "Tindices", TARE_DT_INT32));
    mini_ok(tare_node_set_type(node, "preferred_element_type", TARE_DT_INT32));
    mini_ok(tare_node_set_string(node, "dimension_numbers", (const char *)wire.bytes, wire.size));
    mini_ok(tare_node_set_string(node, "precision_config", "", 0));
}

static struct tare_edge matrix(struct tare_graph *g, const char *name, int64_t rows, const int32_t *values) {
    const struct tare_shape shape = tare_shape_make(2, rows, (int64_t)2);
    struct tare_tensor value;
    mini_ok(tare_tensor_from(&value, TARE_DT_INT32, &shape, values));
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge padded(struct tare_graph *g, const struct layer *layer, struct tare_edge x) {
    static const int32_t around[8] = { 0, 0, 1, 1, 1, 1, 0, 0 };
    const struct tare_shape scalar = tare_shape_make(0);
    if (layer->kernel == 1) return x;
    struct tare_node *node =
        mini_open(g, "PadV2", name_of(layer->name, "pad"), 3, x, matrix(g, name_of(layer->name, "around"), 4, around),
                  constant(g, name_of(layer->name, "zero"), TARE_DT_INT8, scalar));
    mini_ok(tare_node_set_type(node, "T", TARE_DT_INT8));
    mini_ok(tare_node_set_type(node, "Tpaddings", TARE_DT_INT32));
    return mini_done(node);
}

static struct tare_edge product(struct tare_graph *g, const struct layer *layer, struct tare_edge x) {
    static const int32_t none[4] = { 0 };
    const int32_t strides[2] = { (int32_t)layer->stride, (int32_t)layer->stride }, ones[2] = { 1, 1 };
    const int64_t outputs = layer->outputs ? layer->outputs : layer->inputs;
    const struct tare_shape shape =
        tare_shape_make(4, layer->kernel, layer->kernel, layer->outputs ? layer->inputs : (int64_t)1, outputs);
    const char *name = layer->name;
    struct tare_node *node =
        mini_open(g, "XlaConvV2", name, 7, x, constant(g, name_of(name, "weight"), TARE_DT_INT8, shape),
                  mini_ints(g, name_of(name, "strides"), 2, strides), matrix(g, name_of(name, "padding"), 2, none),
                  mini_ints(g, name_of(name, "lhs"), 2, ones), mini_ints(g, name_of(name, "rhs"), 2, ones),
                  mini_int(g, name_of(name, "groups"), layer->outputs ? 1 : (int32_t)layer->inputs));
    set_conv(node);
    return mini_done(node);
}

static struct tare_edge requantized(struct tare_graph *g, const char *name, struct tare_edge y) {
    y = mini_node(g, "AddV2", name_of(name, "add"), 2, y, mini_float(g, name_of(name, "zero_point"), -3));
    y = mini_node(g, "Maximum", name_of(name, "maximum"), 2, y, mini_float(g, name_of(name, "low"), -128));
    y = mini_node(g, "Minimum", name_of(name, "minimum"), 2, y, mini_float(g, name_of(name, "high"), 127));
    return cast(g, name_of(name, "int8"), mini_node(g, "Round", name_of(name, "round"), 1, y), TARE_DT_INT8);
}

static struct tare_edge real_layer(struct tare_graph *g, const struct layer *layer, struct tare_edge x) {
    const struct tare_shape vector = tare_shape_make(1, layer->outputs ? layer->outputs : layer->inputs);
    struct tare_edge y = product(g, layer, padded(g, layer, x));
    const char *name = layer->name;
    y = mini_node(g, "Sub", name_of(name, "sub"), 2, y, constant(g, name_of(name, "offset"), TARE_DT_INT32, vector));
    y = cast(g, name_of(name, "real"), y, TARE_DT_FLOAT);
    return mini_node(g, "Mul", name_of(name, "mul"), 2, y, mini_float(g, name_of(name, "scale"), 0.003f));
}

static struct tare_edge int8_layer(struct tare_graph *g, const struct layer *layer, struct tare_edge x) {
    return requantized(g, layer->name, real_layer(g, layer, x));
}

static struct tare_edge real(struct tare_graph *g, const char *name, struct tare_edge x) {
    x = mini_node(g, "Sub", name_of(name, "s"), 2, cast(g, name_of(name, "wide"), x, TARE_DT_INT32),
                  mini_int(g, name_of(name, "z"), -3));
    return mini_node(g, "Mul", name_of(name, "m"), 2, cast(g, name_of(name, "f"), x, TARE_DT_FLOAT),
                     mini_float(g, name_of(name, "unit"), 0.5f));
}

/* Expansion, depthwise, projection and, with stride 1, a residual addition. */
static struct tare_edge int8_block(struct tare_graph *g, const char *prefix, struct tare_edge x, int64_t stride) {
    char names[4][16];
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "%s%d", prefix, i);
    const struct layer layers[3] = { { names[0], C, INNER, 1, 1 },
                                     { names[1], INNER, 0, 3, stride },
                                     { names[2], INNER, C, 1, 1 } };
    struct tare_edge y = x;
    for (int i = 0; i < 3; i++)
        y = int8_layer(g, &layers[i], y);
    if (stride > 1) return y;
    struct tare_edge sum = mini_node(g, "AddV2", name_of(names[3], "sum"), 2, real(g, name_of(names[3], "left"), y),
                                     real(g, name_of(names[3], "right"), x));
    return requantized(g, names[3], sum);
}

/* Two blocks between a float input and a float output. */
static struct tare_edge int8_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    const struct layer last = { "last", C, 8, 1, 1 };
    struct tare_edge y = requantized(g, "input", mini_node(g, "Div", "div", 2, x, mini_float(g, "step", 0.01f)));
    y = int8_block(g, "a", y, 1);
    y = int8_block(g, "b", y, stride);
    return real_layer(g, &last, y);
}

/* ---- float layers ---- */

static struct tare_edge float_layer(struct tare_graph *g, const char *name, struct tare_edge x, int64_t kernel,
                                    int64_t in, int64_t out, int64_t stride) {
    const int64_t strides[4] = { 1, stride, stride, 1 };
    const struct tare_shape shape = tare_shape_make(4, kernel, kernel, in, out ? out : (int64_t)1);
    struct tare_node *node = mini_open(g, out ? "Conv2D" : "DepthwiseConv2dNative", name, 2, x,
                                       constant(g, name_of(name, "filter"), TARE_DT_FLOAT, shape));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    x = mini_node(g, "BiasAdd", name_of(name, "bias"), 2, mini_done(node),
                  constant(g, name_of(name, "b"), TARE_DT_FLOAT, tare_shape_make(1, out ? out : in)));
    return mini_node(g, "Relu6", name_of(name, "relu"), 1, x);
}

/* Int8 expansion, float depthwise, int8 projection: as quantized without --depthwise. */
static struct tare_edge mixed_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    const struct layer expand = { "expand", C, INNER, 1, 1 }, project = { "project", INNER, C, 1, 1 };
    struct tare_edge y = requantized(g, "input", mini_node(g, "Div", "div", 2, x, mini_float(g, "step", 0.01f)));
    y = mini_node(g, "Relu6", "expand_relu", 1, real_layer(g, &expand, y));
    y = float_layer(g, "depthwise", y, 3, INNER, 0, stride);
    y = requantized(g, "middle", mini_node(g, "Div", "div2", 2, y, mini_float(g, "step2", 0.02f)));
    y = mini_node(g, "AddV2", "sum", 2, real_layer(g, &project, y), mini_float(g, "one", 1));
    return float_layer(g, "last", y, 1, C, C, 1);
}

/* Two branches whose sum is pooled: more than one value is used later at every step between. */
static struct tare_edge float_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    static const int64_t sizes[4] = { 1, 2, 2, 1 };
    struct tare_edge a = float_layer(g, "a", x, 3, C, INNER, stride);
    a = float_layer(g, "a2", a, 1, INNER, C, 1);
    struct tare_edge b = float_layer(g, "b", x, 5, C, 0, stride);
    b = float_layer(g, "b2", b, 1, C, C, 1);
    struct tare_node *pool = mini_open(g, "MaxPool", "pool", 1, mini_node(g, "AddV2", "sum", 2, a, b));
    mini_ok(tare_node_set_int_list(pool, "strides", sizes, 4));
    mini_ok(tare_node_set_int_list(pool, "ksize", sizes, 4));
    mini_ok(tare_node_set_string(pool, "padding", "VALID", 5));
    return float_layer(g, "last", mini_done(pool), 3, C, C, 1);
}

/* ---- running ---- */

static struct tare_tensor run(struct tare_session *session, struct tare_edge x, struct tare_edge y, int64_t batch) {
    struct tare_tensor value, out;
    seed = 7;
    value = random_tensor(TARE_DT_FLOAT, tare_shape_make(4, batch, (int64_t)SIZE, (int64_t)SIZE + 1, (int64_t)C));
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0));
    tare_tensor_reset(&value);
    return out;
}

static void assert_same(struct tare_tensor got, struct tare_tensor expected) {
    assert_true(tare_shape_equal(&got.shape, &expected.shape));
    assert_memory_equal(got.data, expected.data, tare_tensor_bytes(&expected));
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

/* Calls of the kernels of one op that a profile of the session counts. */
static int64_t calls_of(const struct tare_session *session, const char *op) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    int64_t calls = 0;
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].node->op, op) == 0) calls += rows[i].calls;
    tare_arena_free(&arena);
    return calls;
}

static tare_status ignore(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)arg, (void)node, (void)output, (void)value;
    return TARE_OK;
}

/* A session that runs the steps one by one, since every value is observed. */
static struct tare_session *plain_session(const struct tare_graph_model *model) {
    struct tare_session *session = mini_session(model);
    tare_session_observe(session, ignore, NULL, NULL);
    return session;
}

typedef struct tare_edge network(struct tare_graph *g, struct tare_edge x, int64_t stride);

/* Three runs of each batch: the first measures. `op`: of which more kernels run than in whole batches, if the section
 * is divided. */
static void check_batches(network *build, const char *op, int64_t stride, int threads, bool divides) {
    static const int64_t batches[] = { 32, 1, 29, 2 };
    const struct tare_session_options options = { .profile = true, .op_threads = threads };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = build(model->main, x, stride);
    struct tare_session *session, *plain = plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct tare_tensor expected = run(plain, x, y, batches[i]);
        int64_t calls[3] = { 0 };
        for (int k = 0; k < 3; k++) {
            struct tare_tensor share;
            calls[k] = calls_of(session, op);
            tare_tensor_share(&share, &expected);
            assert_same(run(session, x, y, batches[i]), share);
        }
        tare_tensor_reset(&expected);
        const int64_t first = calls[1] - calls[0], second = calls[2] - calls[1];
        if (batches[i] > 2 ? divides && second <= first : second != first)
            fail_msg("batch %lld: %lld calls, then %lld", (long long)batches[i], (long long)first, (long long)second);
    }
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

static void sections__int8_blocks(void **unused) {
    (void)unused;
    for (int64_t stride = 1; stride <= 2; stride++)
        check_batches(int8_network, "XlaConvV2", stride, 1, true);
    check_batches(int8_network, "XlaConvV2", 1, 2, false);
}

static void sections__int8_and_float_layers(void **unused) {
    (void)unused;
    for (int64_t stride = 1; stride <= 2; stride++)
        check_batches(mixed_network, "XlaConvV2", stride, 1, true);
    check_batches(mixed_network, "XlaConvV2", 2, 2, true);
}

static void sections__float_branches(void **unused) {
    (void)unused;
    for (int64_t stride = 1; stride <= 2; stride++)
        check_batches(float_network, "MaxPool", stride, 1, stride == 1);
}

/* The peak of a run in parts is below that of the whole batch. */
static void sections__need_less_memory(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = int8_network(model->main, x, 1);
    struct tare_session *session = mini_session(model);
    size_t peaks[2];
    for (int i = 0; i < 2; i++) {
        tare_buffer_pool_watch(session->pool);
        struct tare_tensor out = run(session, x, y, 16);
        peaks[i] = tare_buffer_pool_watch(session->pool);
        tare_tensor_reset(&out);
    }
    assert_true(peaks[1] < peaks[0]);
    tare_session_free(session);
    tare_model_free(model);
}

/* A run that exceeds the memory limit in any part fails and leaves nothing behind. */
static void sections__memory_limit(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = int8_network(model->main, x, 1);
    struct tare_session *session = mini_session(model);
    struct tare_tensor expected = run(session, x, y, 16);
    seed = 7;
    struct tare_tensor value =
        random_tensor(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE + 1, (int64_t)C));
    int failed = 0;
    const size_t bytes = tare_buffer_pool_bytes(session->pool);
    for (size_t limit = 1 << 17; limit < 1 << 23; limit += 1 << 18) {
        struct tare_tensor out = { 0 };
        tare_buffer_pool_limit(session->pool, limit);
        const tare_status status = tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0);
        failed += status != TARE_OK;
        if (status != TARE_OK) continue;
        assert_memory_equal(out.data, expected.data, tare_tensor_bytes(&expected));
        tare_tensor_reset(&out);
    }
    assert_in_range(failed, 4, 31);
    assert_int_equal(tare_buffer_pool_bytes(session->pool), bytes);
    tare_buffer_pool_limit(session->pool, 0);
    assert_same(run(session, x, y, 16), expected);
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

struct seen {
    const char *only;
    int count;
    int64_t records;
};
static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    (void)output;
    return strcmp(node->name, ((struct seen *)arg)->only) == 0;
}
static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct seen *seen = arg;
    (void)node, (void)output;
    seen->count++;
    seen->records = value->shape.dims[0];
    return TARE_OK;
}

static void sections__observers_see_whole_batches(void **unused) {
    (void)unused;
    static const char *const names[] = { "a0_int8", "a1_pad", "a3_sum", "b0", "last_mul", "div" };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = int8_network(model->main, x, 2);
    struct tare_session *session = mini_session(model);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct seen seen = { .only = names[i] };
        struct tare_tensor before = run(session, x, y, 16);
        for (int k = 0; k < 2; k++) {
            struct tare_tensor share;
            tare_session_observe(session, see, accepts, &seen);
            tare_tensor_share(&share, &before);
            assert_same(run(session, x, y, 16), share);
        }
        assert_int_equal(seen.count, 2);
        assert_int_equal(seen.records, 16);
        tare_session_observe(session, NULL, NULL, NULL);
        assert_same(run(session, x, y, 16), before);
    }
    tare_session_free(session);
    tare_model_free(model);
}

/* A constant with a value for each record is not the same for a part of the batch. */
static void sections__operands_with_records(void **unused) {
    (void)unused;
    const struct tare_session_options options = { .profile = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = float_layer(g, "first", x, 3, C, INNER, 1);
    y = mini_node(
        g, "Mul", "scaled", 2, y,
        constant(g, "by_record", TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)1, (int64_t)1, (int64_t)1)));
    y = float_layer(g, "second", y, 3, INNER, C, 1);
    struct tare_session *session, *plain = plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    for (int i = 0; i < 3; i++)
        assert_same(run(session, x, y, 16), run(plain, x, y, 16));
    assert_int_equal(calls_of(session, "Mul"), 3);
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* The second input of one session has a value for each record, then one for all, then for each again. */
static void sections__inputs_of_other_batches(void **unused) {
    (void)unused;
    static const int64_t records[] = { 16, 16, 1, 16 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge feeds[2] = { mini_placeholder(g, "x", TARE_DT_FLOAT),
                                        mini_placeholder(g, "scale", TARE_DT_FLOAT) };
    struct tare_edge y = float_layer(g, "first", feeds[0], 3, C, INNER, 1);
    y = float_layer(g, "second", mini_node(g, "Mul", "mul", 2, y, feeds[1]), 3, INNER, C, 1);
    struct tare_session *sessions[2] = { mini_session(model), plain_session(model) };
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct tare_tensor results[2], values[2];
        values[0] =
            random_tensor(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C));
        values[1] =
            random_tensor(TARE_DT_FLOAT, tare_shape_make(4, records[i], (int64_t)1, (int64_t)1, (int64_t)INNER));
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], feeds, values, 2, &y, &results[k], 1, NULL, 0));
        assert_same(results[0], results[1]);
        tare_tensor_reset(&values[0]), tare_tensor_reset(&values[1]);
    }
    tare_session_free(sessions[0]);
    tare_session_free(sessions[1]);
    tare_model_free(model);
}

/* Values inside of a section that are results as well, or that later steps use. */
static void sections__values_that_are_used_later(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    const struct tare_edge a = float_layer(g, "a", x, 3, C, INNER, 1), b = float_layer(g, "b", a, 3, INNER, C, 1);
    const struct tare_edge c = float_layer(g, "c", b, 3, C, C, 1);
    const struct tare_edge sums = mini_node(g, "Softmax", "softmax", 1, b);
    struct tare_edge fetches[4] = { c, a, sums, x };
    struct tare_session *sessions[2] = { mini_session(model), plain_session(model) };
    for (int i = 0; i < 3; i++) {
        struct tare_tensor results[2][4], value;
        value = random_tensor(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C));
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], &x, &value, 1, fetches, results[k], 4, NULL, 0));
        for (int k = 0; k < 4; k++)
            assert_same(results[0][k], results[1][k]);
        tare_tensor_reset(&value);
    }
    tare_session_free(sessions[0]);
    tare_session_free(sessions[1]);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections__int8_blocks),
        cmocka_unit_test(sections__int8_and_float_layers),
        cmocka_unit_test(sections__float_branches),
        cmocka_unit_test(sections__need_less_memory),
        cmocka_unit_test(sections__memory_limit),
        cmocka_unit_test(sections__observers_see_whole_batches),
        cmocka_unit_test(sections__operands_with_records),
        cmocka_unit_test(sections__inputs_of_other_batches),
        cmocka_unit_test(sections__values_that_are_used_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
