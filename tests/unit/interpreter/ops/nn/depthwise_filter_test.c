/* Filters of depthwise convolutions that are not aligned as vectors are, as in the bytes of a file, or that change. */
#include "support/mini_model.h"

#include <string.h>

enum { CHANNELS = 20, TAPS = 9, SIZE = 5 };

static void fill(float *to, int count, float factor) {
    for (int i = 0; i < count; i++)
        to[i] = factor * (float)(i % 13 - 6);
}

static struct tare_edge add_convolution(struct tare_graph *graph, const char *name, struct tare_edge x,
                                        struct tare_edge filter) {
    static const int64_t ones[] = { 1, 1, 1, 1 };
    struct tare_node *node = mini_open(graph, "DepthwiseConv2dNative", name, 2, x, filter);
    mini_ok(tare_node_set_int_list(node, "strides", ones, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return mini_done(node);
}

/* The output for a filter of size × size taps at `at`, which is not copied. */
static struct tare_tensor run(struct tare_session *session, const struct tare_edge *feeds, struct tare_edge fetch,
                              const float *at, int64_t size) {
    const struct tare_shape image = { .rank = 4, .dims = { 1, SIZE, SIZE, CHANNELS } };
    const struct tare_shape shape = { .rank = 4, .dims = { size, size, CHANNELS, 1 } };
    struct tare_tensor values[2], result;
    mini_ok(tare_tensor_new(&values[0], TARE_DT_FLOAT, &image));
    fill(values[0].data, SIZE * SIZE * CHANNELS, 0.37f);
    mini_ok(tare_tensor_wrap(&values[1], TARE_DT_FLOAT, &shape, at, NULL, NULL));
    mini_ok(tare_session_run(session, feeds, values, 2, &fetch, &result, 1, NULL, 0));
    tare_tensor_reset(&values[0]);
    tare_tensor_reset(&values[1]);
    return result;
}

static void filter__may_begin_at_any_address(void **state) {
    static _Alignas(64) float aligned[CHANNELS * TAPS], others[3][CHANNELS * TAPS + 16];
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    const struct tare_edge filter = mini_placeholder(model->main, "filter", TARE_DT_FLOAT), feeds[] = { x, filter };
    const struct tare_edge y = add_convolution(model->main, "depthwise", x, filter);
    struct tare_session *session = mini_session(model);
    (void)state;
    for (int i = 0; i < 3; i++) { /* more different filters than a node keeps */
        float *other = others[i] + 1 + 2 * i;
        fill(aligned, CHANNELS * TAPS, 0.21f + (float)i);
        memcpy(other, aligned, sizeof aligned);
        struct tare_tensor expected = run(session, feeds, y, aligned, 3);
        struct tare_tensor got = run(session, feeds, y, other, 3);
        assert_int_not_equal((uintptr_t)other % 64, 0);
        assert_int_equal(got.elements, SIZE * SIZE * CHANNELS);
        assert_memory_equal(got.data, expected.data, tare_tensor_bytes(&expected));
        tare_tensor_reset(&expected);
        tare_tensor_reset(&got);
    }
    tare_session_free(session);
    tare_model_free(model);
}

/* Two convolutions, which run together. */
static void filter__may_change_its_size(void **state) {
    static _Alignas(64) float taps[CHANNELS * 25];
    static const int64_t sizes[] = { 3, 5, 3, 1 };
    const struct tare_session_options plain = { .use_reference_kernels = true };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    const struct tare_edge filter = mini_placeholder(model->main, "filter", TARE_DT_FLOAT), feeds[] = { x, filter };
    const struct tare_edge y =
        add_convolution(model->main, "second", add_convolution(model->main, "first", x, filter), filter);
    struct tare_session *session = mini_session(model), *reference;
    (void)state;
    mini_ok(tare_session_new(&reference, model, &plain));
    fill(taps, CHANNELS * 25, 0.21f);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tare_tensor expected = run(reference, feeds, y, taps, sizes[i]);
        struct tare_tensor got = run(session, feeds, y, taps, sizes[i]);
        assert_memory_equal(got.data, expected.data, tare_tensor_bytes(&expected));
        tare_tensor_reset(&expected);
        tare_tensor_reset(&got);
    }
    tare_session_free(reference);
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter__may_begin_at_any_address),
        cmocka_unit_test(filter__may_change_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
