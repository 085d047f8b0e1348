/* Tiled execution: convolutions and paddings run together give the bits of the separate ops, and
 * observers still receive the intermediate values. */
#include "support/mini_model.h"

#include "graph/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 44, C = 6, INNER = 40, MOST_SEEN = 16 }; /* large enough that tiles are made */

static struct tare_tensor random_tensor(struct tare_shape shape, unsigned seed) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        TARE_DATA(float, &tensor)[i] = ldexpf((float)(int32_t)seed / 2147483648.0f, (int)(seed >> 8 & 3));
    }
    return tensor;
}

static struct tare_edge constant(struct tare_graph *g, const char *of, const char *what, struct tare_shape shape) {
    char name[60];
    snprintf(name, sizeof name, "%s_%s", of, what);
    struct tare_tensor value = random_tensor(shape, (unsigned)strlen(name) * 77u + (unsigned)name[0]);
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

/* A convolution of in to out channels with bias and Relu6; depthwise where out is 0. */
static struct tare_edge conv(struct tare_graph *g, const char *name, struct tare_edge x, int64_t kernel, int64_t in,
                             int64_t out, int64_t stride, const char *padding) {
    const int64_t strides[4] = { 1, stride, stride, 1 };
    const struct tare_shape shape = tare_shape_make(4, kernel, kernel, in, out ? out : (int64_t)1);
    char text[40];
    struct tare_node *node =
        mini_open(g, out ? "Conv2D" : "DepthwiseConv2dNative", name, 2, x, constant(g, name, "filter", shape));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", padding, strlen(padding)));
    x = mini_done(node);
    snprintf(text, sizeof text, "%s_bias", name);
    x = mini_node(g, "BiasAdd", text, 2, x, constant(g, name, "b", tare_shape_make(1, out ? out : in)));
    snprintf(text, sizeof text, "%s_relu", name);
    return mini_node(g, "Relu6", text, 1, x);
}

/* Expansion, padding, depthwise with the stride, projection; with stride 1 the input is added. */
static struct tare_edge block(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    static const int32_t pads[8] = { 0, 0, 1, 1, 1, 1, 0, 0 }, dims[2] = { 4, 2 };
    struct tare_edge y = conv(g, "expand", x, 1, C, INNER, 1, "SAME");
    struct tare_edge paddings =
        mini_node(g, "Reshape", "paddings", 2, mini_ints(g, "pads", 8, pads), mini_ints(g, "dims", 2, dims));
    struct tare_node *pad = mini_open(g, "Pad", "pad", 2, y, paddings);
    y = conv(g, "depthwise", mini_done(pad), 3, INNER, 0, stride, "VALID");
    y = conv(g, "project", y, 1, INNER, C, 1, "SAME");
    return stride == 1 ? mini_node(g, "AddV2", "sum", 2, y, x) : y;
}

struct seen {
    const char *only; /* node to look at; NULL: all */
    char names[MOST_SEEN][32];
    double sums[MOST_SEEN];
    int count;
};

static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    const struct seen *seen = arg;
    (void)output;
    return tare_dtype_base(node->output_dtypes[0]) == TARE_DT_FLOAT && node->n_inputs > 0 &&
           (!seen->only || strcmp(seen->only, node->name) == 0);
}

static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct seen *seen = arg;
    (void)output;
    assert_in_range(seen->count, 0, MOST_SEEN - 1);
    snprintf(seen->names[seen->count], sizeof *seen->names, "%s", node->name);
    for (int64_t i = 0; i < value->elements; i++)
        seen->sums[seen->count] += (double)TARE_CONST_DATA(float, value)[i] * (double)(i % 7);
    seen->count++;
    return TARE_OK;
}

static struct tare_tensor run(struct tare_session *session, struct tare_edge x, struct tare_edge fetch, int64_t batch) {
    struct tare_tensor value = random_tensor(tare_shape_make(4, batch, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C), 9), y;
    mini_ok(tare_session_run(session, &x, &value, 1, &fetch, &y, 1, NULL, 0));
    tare_tensor_reset(&value);
    return y;
}

static void assert_same(struct tare_tensor got, struct tare_tensor expected) {
    assert_true(tare_shape_equal(&got.shape, &expected.shape));
    for (int64_t i = 0; i < got.elements; i++) {
        const float a = TARE_CONST_DATA(float, &got)[i], b = TARE_CONST_DATA(float, &expected)[i];
        if (memcmp(&a, &b, sizeof a) != 0)
            fail_msg("element %lld is %.9g (expected %.9g)", (long long)i, (double)a, (double)b);
    }
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

/* Calls of a node that a profile of the session counts. */
static int64_t calls_of(const struct tare_session *session, const char *name) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    int64_t calls = 0;
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].node->name, name) == 0) calls = rows[i].calls;
    tare_arena_free(&arena);
    return calls;
}

static void tiling__a_block_runs_as_one_and_gives_what_its_ops_give(void **unused) {
    (void)unused;
    const struct tare_session_options profiled = { .profile = true },
                                      alone = { .check_numerics = true, .profile = true };
    for (int64_t stride = 1; stride <= 2; stride++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = block(model->main, x, stride);
        struct tare_session *session, *plain;
        mini_ok(tare_session_new(&session, model, &profiled));
        mini_ok(tare_session_new(&plain, model, &alone));
        for (int64_t batch = 1; batch <= 3; batch += 2)
            assert_same(run(session, x, y, batch), run(plain, x, y, batch));
        assert_int_equal(calls_of(session, "expand"), 2);
        assert_int_equal(calls_of(session, "project"), 0);
        assert_int_equal(calls_of(plain, "project"), 2);
        tare_session_free(session);
        tare_session_free(plain);
        tare_model_free(model);
    }
}

/* A sample has the same bits whatever lies beside it. */
static void tiling__a_sample_is_the_same_in_any_batch(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = block(model->main, x, 1);
    struct tare_session *session = mini_session(model);
    struct tare_tensor all = run(session, x, y, 5), one = run(session, x, y, 1);
    assert_memory_equal(all.data, one.data, tare_tensor_bytes(&one));
    tare_tensor_reset(&all);
    tare_tensor_reset(&one);
    tare_session_free(session);
    tare_model_free(model);
}

/* What runs together is kept from one run to the next, and must not be used for other shapes or threads. */
static void tiling__what_was_chosen_before_does_not_matter(void **unused) {
    (void)unused;
    static const struct {
        int64_t batch;
        int threads;
    } runs[] = { { 1, 1 }, { 4, 1 }, { 4, 2 }, { 1, 2 }, { 2, 3 }, { 3, 3 }, { 5, 1 }, { 1, 1 }, { 2, 2 }, { 4, 1 } };
    const struct tare_session_options alone = { .check_numerics = true };
    for (int64_t stride = 1; stride <= 2; stride++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = block(model->main, x, stride);
        struct tare_session *session = mini_session(model), *plain;
        mini_ok(tare_session_new(&plain, model, &alone));
        for (int round = 0; round < 2; round++) {
            for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
                tare_session_set_op_threads(session, runs[i].threads);
                assert_same(run(session, x, y, runs[i].batch), run(plain, x, y, runs[i].batch));
            }
        }
        tare_session_free(session);
        tare_session_free(plain);
        tare_model_free(model);
    }
}

/* Inputs that are constants are kept from one run to the next, others are those of the run. */
static void tiling__a_filter_that_is_fed_is_that_of_the_run(void **unused) {
    (void)unused;
    const struct tare_session_options profiled = { .profile = true }, alone = { .check_numerics = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const int64_t strides[4] = { 1, 1, 1, 1 };
    struct tare_edge feeds[2] = { mini_placeholder(g, "x", TARE_DT_FLOAT), mini_placeholder(g, "f", TARE_DT_FLOAT) };
    struct tare_node *node =
        mini_open(g, "Conv2D", "second", 2, conv(g, "first", feeds[0], 3, C, INNER, 1, "SAME"), feeds[1]);
    struct tare_session *session, *plain;
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    const struct tare_edge y = mini_done(node);
    mini_ok(tare_session_new(&session, model, &profiled));
    mini_ok(tare_session_new(&plain, model, &alone));
    for (unsigned i = 0; i < 3; i++) {
        struct tare_tensor values[2], got, expected;
        values[0] = random_tensor(tare_shape_make(4, (int64_t)1, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C), 9);
        values[1] = random_tensor(tare_shape_make(4, (int64_t)1, (int64_t)1, (int64_t)INNER, (int64_t)C), 5 + i);
        mini_ok(tare_session_run(session, feeds, values, 2, &y, &got, 1, NULL, 0));
        mini_ok(tare_session_run(plain, feeds, values, 2, &y, &expected, 1, NULL, 0));
        assert_same(got, expected);
        tare_tensor_reset(&values[0]);
        tare_tensor_reset(&values[1]);
    }
    assert_int_equal(calls_of(session, "second"), 0);
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* One session: nobody looks, one looks at this and that, all, nobody again. */
static void tiling__observers_see_every_value(void **unused) {
    (void)unused;
    static const char *const looked_at[] = { "expand", "expand_relu", "pad", "depthwise_bias", "project_relu", "sum" };
    enum { N = sizeof looked_at / sizeof *looked_at };
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = block(model->main, x, 1);
    struct tare_session *session = mini_session(model);
    struct tare_tensor first = run(session, x, y, 2), observed;
    struct seen all = { 0 }, one[N] = { { 0 } };
    tare_session_observe(session, see, accepts, &all);
    observed = run(session, x, y, 2);
    tare_tensor_reset(&observed);
    for (int i = 0; i <= N; i++) {
        struct tare_tensor share;
        if (i < N) one[i].only = looked_at[i];
        tare_session_observe(session, i < N ? see : NULL, accepts, i < N ? &one[i] : NULL);
        tare_tensor_share(&share, &first);
        assert_same(run(session, x, y, 2), share);
        if (i == N) break;
        assert_int_equal(one[i].count, 1);
        for (int k = 0; k < all.count; k++) {
            if (strcmp(all.names[k], looked_at[i]) == 0) assert_true(all.sums[k] == one[i].sums[0]);
        }
    }
    assert_true(all.count >= 11);
    tare_tensor_reset(&first);
    tare_session_free(session);
    tare_model_free(model);
}

/* A value that two read, and one that is a result, is made whole. */
static void tiling__what_others_need_is_made(void **unused) {
    (void)unused;
    const struct tare_session_options alone = { .check_numerics = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = conv(g, "first", x, 3, C, INNER, 1, "SAME"), z = conv(g, "second", y, 3, INNER, 0, 1, "SAME");
    struct tare_edge sum = mini_node(g, "AddV2", "sum", 2, z, y), fetches[2] = { sum, z };
    struct tare_session *session = mini_session(model), *plain;
    mini_ok(tare_session_new(&plain, model, &alone));
    for (int i = 0; i < 2; i++)
        assert_same(run(session, x, fetches[i], 2), run(plain, x, fetches[i], 2));
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

/* The fault names the node that has it, as when the ops run one by one. */
static void tiling__a_fault_names_its_node(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = conv(g, "first", x, 3, C, INNER, 1, "SAME");
    y = conv(g, "second", y, 1, INNER + 1, 8, 1, "SAME");
    struct tare_session *session = mini_session(model);
    struct tare_tensor value =
                           random_tensor(tare_shape_make(4, (int64_t)1, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C), 9),
                       out;
    mini_fails(tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0), "second (Conv2D): ");
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiling__a_block_runs_as_one_and_gives_what_its_ops_give),
        cmocka_unit_test(tiling__a_sample_is_the_same_in_any_batch),
        cmocka_unit_test(tiling__what_was_chosen_before_does_not_matter),
        cmocka_unit_test(tiling__a_filter_that_is_fed_is_that_of_the_run),
        cmocka_unit_test(tiling__observers_see_every_value),
        cmocka_unit_test(tiling__what_others_need_is_made),
        cmocka_unit_test(tiling__a_fault_names_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
