/* Sections: a batch that runs some records at a time gives the bits of the whole batch, over kinds of blocks, strides,
 * batch sizes and threads; observers still receive every value of the whole batch, and the peak memory is smaller. */
#include "base/memory_size.h"
#include "base/clock.h"
#include "base/control.h"
#include "interpreter/execution/sections.h"
#include "interpreter/execution/state.h"
#include "support/quantized_layers.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { SIZE = 24, C = 32, INNER = 96 }; /* large enough that sections are divided */

/* ---- networks ---- */

static struct tare_edge real(struct tare_graph *g, const char *name, struct tare_edge x) {
    x = mini_node(g, "Sub", layers_name(name, "s"), 2, layers_cast(g, layers_name(name, "wide"), x, TARE_DT_INT32),
                  mini_int(g, layers_name(name, "z"), -3));
    return mini_node(g, "Mul", layers_name(name, "m"), 2, layers_cast(g, layers_name(name, "f"), x, TARE_DT_FLOAT),
                     mini_float(g, layers_name(name, "unit"), 0.5f));
}

/* Expansion, depthwise, projection and, with stride 1, a residual addition. */
static struct tare_edge int8_block(struct tare_graph *g, const char *prefix, struct tare_edge x, int64_t stride) {
    char names[4][16];
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "%s%d", prefix, i);
    const struct layers_layer layers[3] = { { names[0], C, INNER, 1, 1 },
                                            { names[1], INNER, 0, 3, stride },
                                            { names[2], INNER, C, 1, 1 } };
    struct tare_edge y = x;
    for (int i = 0; i < 3; i++)
        y = layers_int8(g, &layers[i], y);
    if (stride > 1) return y;
    const struct tare_edge left = real(g, layers_name(names[3], "left"), y);
    const struct tare_edge right = real(g, layers_name(names[3], "right"), x);
    const struct tare_edge sum = mini_node(g, "AddV2", layers_name(names[3], "sum"), 2, left, right);
    return layers_requantized(g, names[3], sum);
}

/* Two blocks between a float input and a float output. */
static struct tare_edge int8_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    const struct layers_layer last = { "last", C, 8, 1, 1 };
    struct tare_edge y = layers_requantized(g, "input", mini_node(g, "Div", "div", 2, x, mini_float(g, "step", 0.01f)));
    y = int8_block(g, "a", y, 1);
    y = int8_block(g, "b", y, stride);
    return layers_real(g, &last, y);
}

/* Int8 expansion, float depthwise, int8 projection: as quantized without --depthwise. */
static struct tare_edge mixed_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    const struct layers_layer expand = { "expand", C, INNER, 1, 1 }, project = { "project", INNER, C, 1, 1 };
    struct tare_edge y = layers_requantized(g, "input", mini_node(g, "Div", "div", 2, x, mini_float(g, "step", 0.01f)));
    y = mini_node(g, "Relu6", "expand_relu", 1, layers_real(g, &expand, y));
    y = layers_float(g, "depthwise", y, 3, INNER, 0, stride);
    y = layers_requantized(g, "middle", mini_node(g, "Div", "div2", 2, y, mini_float(g, "step2", 0.02f)));
    y = mini_node(g, "AddV2", "sum", 2, layers_real(g, &project, y), mini_float(g, "one", 1));
    return layers_float(g, "last", y, 1, C, C, 1);
}

/* Two branches whose sum is pooled: more than one value is used later at every step between. */
static struct tare_edge float_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    static const int64_t sizes[4] = { 1, 2, 2, 1 };
    struct tare_edge a = layers_float(g, "a", x, 3, C, INNER, stride);
    a = layers_float(g, "a2", a, 1, INNER, C, 1);
    struct tare_edge b = layers_float(g, "b", x, 5, C, 0, stride);
    b = layers_float(g, "b2", b, 1, C, C, 1);
    struct tare_node *pool = mini_open(g, "MaxPool", "pool", 1, mini_node(g, "AddV2", "sum", 2, a, b));
    mini_ok(tare_node_set_int_list(pool, "strides", sizes, 4));
    mini_ok(tare_node_set_int_list(pool, "ksize", sizes, 4));
    mini_ok(tare_node_set_string(pool, "padding", "VALID", 5));
    return layers_float(g, "last", mini_done(pool), 3, C, C, 1);
}

static struct tare_edge concat(struct tare_graph *g, const char *name, struct tare_edge a, struct tare_edge b,
                               int32_t axis) {
    struct tare_node *node = mini_open(g, "ConcatV2", name, 3, a, b, mini_int(g, layers_name(name, "axis"), axis));
    mini_ok(tare_node_set_int(node, "N", 2));
    return mini_done(node);
}

static struct tare_edge mean(struct tare_graph *g, struct tare_edge x, int32_t first, int32_t second) {
    struct tare_node *node = mini_open(g, "Mean", "mean", 2, x, mini_ints(g, "axes", 2, (int32_t[]){ first, second }));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    return mini_done(node);
}

/* Without the first line and column. */
static struct tare_edge cropped(struct tare_graph *g, struct tare_edge x, int32_t first_record) {
    const struct tare_edge begin = mini_ints(g, "begin", 4, (int32_t[]){ first_record, 1, 1, 0 });
    const struct tare_edge end = mini_ints(g, "end", 4, (int32_t[]){ 0, 0, 0, 0 });
    const struct tare_edge strides = mini_ints(g, "strides", 4, (int32_t[]){ 1, 1, 1, 1 });
    struct tare_node *node = mini_open(g, "StridedSlice", "crop", 4, x, begin, end, strides);
    mini_ok(tare_node_set_int(node, "begin_mask", first_record ? 8 : 9));
    mini_ok(tare_node_set_int(node, "end_mask", 15));
    return mini_done(node);
}

/* Concatenations, a slice and a gate of means. */
static struct tare_edge dense_network(struct tare_graph *g, struct tare_edge x, int64_t stride) {
    (void)stride;
    const struct tare_edge a = layers_float(g, "a", x, 3, C, C, 1);
    struct tare_edge y = concat(g, "dense", a, layers_float(g, "b", a, 3, C, C, 1), 3);
    y = cropped(g, layers_float(g, "c", y, 1, 2 * C, C, 1), 0);
    y = concat(g, "dense2", y, mini_node(g, "Mul", "gated", 2, y, mean(g, y, 1, -2)), -1);
    return layers_float(g, "last", y, 3, 2 * C, C, 1);
}

/* The mean of all records, a slice of some, and records one after another: none of them is of one record alone. */
static struct tare_edge mixing_network(struct tare_graph *g, struct tare_edge x, int64_t kind) {
    struct tare_edge y = layers_float(g, "a", x, 3, C, C, 1);
    if (kind == 0) y = mini_node(g, "Mul", "gated", 2, y, mean(g, y, 0, 1));
    if (kind == 1) y = concat(g, "twice", y, y, 0);
    if (kind == 2) y = cropped(g, concat(g, "twice", y, y, -4), 1);
    return layers_float(g, "last", layers_float(g, "b", y, 3, C, C, 1), 3, C, C, 1);
}

/* ---- running ---- */

static struct tare_tensor run(struct tare_session *session, struct tare_edge x, struct tare_edge y, int64_t batch) {
    struct tare_tensor value, out;
    layers_seed = 7;
    value = layers_random(TARE_DT_FLOAT, tare_shape_make(4, batch, (int64_t)SIZE, (int64_t)SIZE + 1, (int64_t)C));
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &out, 1, NULL, 0));
    tare_tensor_reset(&value);
    return out;
}

typedef struct tare_edge network(struct tare_graph *g, struct tare_edge x, int64_t stride);

/* Three runs of each batch: the first measures. `op`: of which more kernels run than in whole batches, if the section
 * is divided. */
static void check_batches(network *build, const char *op, int64_t stride, int threads, bool divides) {
    static const int64_t batches[] = { 32, 1, 29, 2 };
    const struct tare_session_options options = { .profile = true, .op_threads = threads };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = build(model->main, x, stride);
    struct tare_session *session, *plain = layers_plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct tare_tensor expected = run(plain, x, y, batches[i]);
        int64_t calls[3] = { 0 };
        for (int k = 0; k < 3; k++) {
            struct tare_tensor share;
            calls[k] = layers_calls_of(session, op);
            tare_tensor_share(&share, &expected);
            layers_assert_same(run(session, x, y, batches[i]), share);
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
static void sections__concatenations_slices_and_means(void **unused) {
    (void)unused;
    check_batches(dense_network, "ConcatV2", 1, 1, true);
    for (int64_t kind = 0; kind < 3; kind++)
        check_batches(mixing_network, kind ? "ConcatV2" : "Mean", kind, 1, false);
}

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
    layers_seed = 7;
    struct tare_tensor value =
        layers_random(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE + 1, (int64_t)C));
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
    layers_assert_same(run(session, x, y, 16), expected);
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
}

static volatile sig_atomic_t cancelled;
static void cancel(int number) {
    (void)number;
    cancelled = TARE_STOP_INTERRUPTED;
}

/* A run that is cancelled after `us` microseconds, unless it ends before. */
static tare_status run_for(int64_t us, struct tare_session *session, struct tare_edge x,
                           const struct tare_tensor *value, struct tare_edge y, struct tare_tensor *out) {
    struct tare_control control = { .cancelled = &cancelled };
    const struct itimerval timer = { .it_value = { us / 1000000, us % 1000000 } }, none = { 0 };
    *out = (struct tare_tensor){ 0 };
    cancelled = TARE_STOP_NONE;
    signal(SIGALRM, cancel);
    tare_control_set(&control);
    setitimer(ITIMER_REAL, &timer, NULL);
    const tare_status status = tare_session_run(session, &x, value, 1, &y, out, 1, NULL, 0);
    setitimer(ITIMER_REAL, &none, NULL);
    tare_control_set(NULL);
    return status;
}

/* Runs that are cancelled after any share of their time end with the right bits, or fail and leave nothing behind. */
static void sections__cancelled_runs(void **unused) {
    (void)unused;
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = int8_network(model->main, x, 1);
    struct tare_session *session = mini_session(model);
    struct tare_tensor expected = run(session, x, y, 16), out;
    int64_t us = INT64_MAX; /* of one run: the least, since other programs may interrupt some */
    for (int i = 0; i < 5; i++) {
        const int64_t began = tare_clock_ns();
        layers_assert_same(run(session, x, y, 16), run(session, x, y, 16));
        const int64_t took = (tare_clock_ns() - began) / 2000 + 1;
        us = took < us ? took : us;
    }
    const size_t bytes = tare_buffer_pool_bytes(session->pool);
    layers_seed = 7;
    struct tare_tensor value =
        layers_random(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE + 1, (int64_t)C));
    int interrupted = 0;
    for (int i = 0; i < 24; i++) {
        const tare_status status = run_for(1 + us * i / 20, session, x, &value, y, &out);
        assert_true(status == TARE_OK || status == TARE_INTERRUPTED);
        interrupted += status != TARE_OK;
        if (status == TARE_OK) assert_memory_equal(out.data, expected.data, tare_tensor_bytes(&expected));
        tare_tensor_reset(&out);
        assert_int_equal(tare_buffer_pool_bytes(session->pool), bytes);
    }
    assert_true(interrupted > 3);
    layers_assert_same(run(session, x, y, 16), expected);
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
            layers_assert_same(run(session, x, y, 16), share);
        }
        assert_int_equal(seen.count, 2);
        assert_int_equal(seen.records, 16);
        tare_session_observe(session, NULL, NULL, NULL);
        layers_assert_same(run(session, x, y, 16), before);
    }
    tare_session_free(session);
    tare_model_free(model);
}

/* The records that a section of one piece with values of 0.9 MiB a record runs at a time; 0: all. */
static int64_t records_with(int64_t weights) {
    struct tare_section_piece piece = { .most_live = 8 * 900 * 1024, .made = 64 << 20, .weights = weights };
    struct tare_section_part part = { 0 };
    struct tare_section section = { .pieces = &piece, .n_pieces = 1, .parts = &part };
    tare_section_choose(&section, 8, 1 << 20);
    return section.n_parts ? part.records : 0;
}

/* Weights that are read for each few records cost more than values that do not stay in the cache. */
static void sections__weights(void **unused) {
    (void)unused;
    assert_int_equal(records_with(0), 1);
    assert_int_equal(records_with(1 << 18), 1);
    assert_int_equal(records_with(1 << 20), 4);
    assert_int_equal(records_with(4 << 20), 0);
}

/* A constant with a value for each record is not the same for a part of the batch. */
static void sections__operands_with_records(void **unused) {
    (void)unused;
    const struct tare_session_options options = { .profile = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = layers_float(g, "first", x, 3, C, INNER, 1);
    y = mini_node(g, "Mul", "scaled", 2, y,
                  layers_constant(g, "by_record", TARE_DT_FLOAT,
                                  tare_shape_make(4, (int64_t)16, (int64_t)1, (int64_t)1, (int64_t)1)));
    y = layers_float(g, "second", y, 3, INNER, C, 1);
    struct tare_session *session, *plain = layers_plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    for (int i = 0; i < 3; i++)
        layers_assert_same(run(session, x, y, 16), run(plain, x, y, 16));
    assert_int_equal(layers_calls_of(session, "Mul"), 3);
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
    struct tare_edge y = layers_float(g, "first", feeds[0], 3, C, INNER, 1);
    y = layers_float(g, "second", mini_node(g, "Mul", "mul", 2, y, feeds[1]), 3, INNER, C, 1);
    struct tare_session *sessions[2] = { mini_session(model), layers_plain_session(model) };
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct tare_tensor results[2], values[2];
        values[0] =
            layers_random(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C));
        values[1] =
            layers_random(TARE_DT_FLOAT, tare_shape_make(4, records[i], (int64_t)1, (int64_t)1, (int64_t)INNER));
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], feeds, values, 2, &y, &results[k], 1, NULL, 0));
        layers_assert_same(results[0], results[1]);
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
    const struct tare_edge a = layers_float(g, "a", x, 3, C, INNER, 1), b = layers_float(g, "b", a, 3, INNER, C, 1);
    const struct tare_edge c = layers_float(g, "c", b, 3, C, C, 1);
    const struct tare_edge sums = mini_node(g, "Softmax", "softmax", 1, b);
    struct tare_edge fetches[4] = { c, a, sums, x };
    struct tare_session *sessions[2] = { mini_session(model), layers_plain_session(model) };
    for (int i = 0; i < 3; i++) {
        struct tare_tensor results[2][4], value;
        value = layers_random(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)16, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C));
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], &x, &value, 1, fetches, results[k], 4, NULL, 0));
        for (int k = 0; k < 4; k++)
            layers_assert_same(results[0][k], results[1][k]);
        tare_tensor_reset(&value);
    }
    tare_session_free(sessions[0]);
    tare_session_free(sessions[1]);
    tare_model_free(model);
}

int main(void) {
    tare_cache_set_bytes(2 << 20); /* on any machine */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections__int8_blocks),
        cmocka_unit_test(sections__int8_and_float_layers),
        cmocka_unit_test(sections__float_branches),
        cmocka_unit_test(sections__concatenations_slices_and_means),
        cmocka_unit_test(sections__need_less_memory),
        cmocka_unit_test(sections__memory_limit),
        cmocka_unit_test(sections__cancelled_runs),
        cmocka_unit_test(sections__observers_see_whole_batches),
        cmocka_unit_test(sections__operands_with_records),
        cmocka_unit_test(sections__weights),
        cmocka_unit_test(sections__inputs_of_other_batches),
        cmocka_unit_test(sections__values_that_are_used_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
