/* Float convolutions with XlaConvV2 that run together have the bits of single ones, whatever shapes and window
 * parameters the runs before had. */
#include "support/quantized_layers.h"

enum { CHANNELS = 16, RUNS = 6 };

/* Two layers; `second` gets the node of the second one. */
static struct tare_edge network(struct tare_graph *g, struct tare_edge x, struct tare_node **second) {
    const struct tare_shape one = tare_shape_make(4, (int64_t)1, (int64_t)1, (int64_t)CHANNELS, (int64_t)CHANNELS);
    const struct tare_shape nine = tare_shape_make(4, (int64_t)3, (int64_t)3, (int64_t)1, (int64_t)CHANNELS);
    const struct tare_edge first =
        layers_conv(g, "first", x, layers_constant(g, "one", TARE_DT_FLOAT, one), (struct layers_window){ 1, 1, 1, 0 });
    const struct tare_edge y = layers_conv(g, "second", first, layers_constant(g, "nine", TARE_DT_FLOAT, nine),
                                           (struct layers_window){ 1, 1, CHANNELS, 1 });
    *second = y.node;
    return y;
}

static struct tare_tensor run(struct tare_session *session, const struct tare_edge *feeds, size_t count,
                              struct tare_edge y, int64_t size, int32_t stride) {
    const struct tare_shape pair = tare_shape_make(1, (int64_t)2);
    const int32_t strides[2] = { stride, stride };
    struct tare_tensor values[2], out;
    layers_seed = 7;
    values[0] = layers_random(TARE_DT_FLOAT, tare_shape_make(4, (int64_t)1, size, size + 1, (int64_t)CHANNELS));
    mini_ok(tare_tensor_from(&values[1], TARE_DT_INT32, &pair, strides));
    mini_ok(tare_session_run(session, feeds, values, count, &y, &out, 1, NULL, 0));
    for (int i = 0; i < 2; i++)
        tare_tensor_reset(&values[i]);
    return out;
}

static void check(bool strides_are_fed) {
    static const int64_t sizes[RUNS] = { 24, 24, 9, 24, 24, 24 };
    static const int32_t strides[RUNS] = { 1, 1, 1, 2, 1, 2 };
    const struct tare_session_options options = { .profile = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *second;
    struct tare_edge feeds[2] = { mini_placeholder(model->main, "x", TARE_DT_FLOAT),
                                  mini_placeholder(model->main, "strides", TARE_DT_INT32) };
    const struct tare_edge y = network(model->main, feeds[0], &second);
    if (strides_are_fed) tare_node_set_input(second, 2, feeds[1]);
    struct tare_session *session, *plain = layers_plain_session(model);
    mini_ok(tare_session_new(&session, model, &options));
    for (int i = 0; i < RUNS; i++) {
        const int64_t before = layers_calls_of(session, "XlaConvV2");
        const size_t count = strides_are_fed ? 2 : 1;
        layers_assert_same(run(session, feeds, count, y, sizes[i], strides[i]),
                           run(plain, feeds, count, y, sizes[i], strides[i]));
        assert_int_equal(layers_calls_of(session, "XlaConvV2") - before, 1); /* both in one */
    }
    tare_session_free(session);
    tare_session_free(plain);
    tare_model_free(model);
}

static void stage__images_of_other_sizes(void **unused) {
    (void)unused;
    check(false);
}

static void stage__other_strides(void **unused) {
    (void)unused;
    check(true);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(stage__images_of_other_sizes),
                                        cmocka_unit_test(stage__other_strides) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
