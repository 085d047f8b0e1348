/* Int8 convolutions of one session have the bits of the reference kernels in a new one at every CPU level, whatever
 * batches, sizes, strides and paddings the runs before had: geometry and kernel are kept from run to run. */
#include "support/levels.h"
#include "support/quantized_layers.h"

#include <string.h>

enum { CHANNELS = 64, RUNS = 8 };

/* Of a run. With stride 1 and 64 channels some levels use Winograd's algorithm, for which short lines are too few at
 * others. */
struct geometry {
    int64_t batch, size;
    int32_t stride, pad;
};
static const struct geometry geometries[RUNS] = { { 1, 24, 1, 1 }, { 1, 24, 1, 1 }, { 1, 5, 1, 1 }, { 3, 24, 1, 1 },
                                                  { 3, 24, 2, 1 }, { 1, 24, 1, 0 }, { 1, 5, 2, 3 }, { 1, 24, 1, 1 } };

struct network {
    struct tare_edge feeds[3]; /* images, strides, paddings */
    size_t count;              /* of the feeds */
    struct tare_edge y;
};

static struct tare_tensor run(struct tare_session *session, const struct network *of, const struct geometry *run) {
    const struct tare_shape pair = tare_shape_make(1, (int64_t)2), square = tare_shape_make(2, (int64_t)2, (int64_t)2);
    const int32_t strides[2] = { run->stride, run->stride }, pads[4] = { run->pad, run->pad, run->pad, run->pad };
    struct tare_tensor values[3], out;
    layers_seed = 7;
    values[0] =
        layers_random(TARE_DT_INT8, tare_shape_make(4, run->batch, run->size, run->size + 1, (int64_t)CHANNELS));
    mini_ok(tare_tensor_from(&values[1], TARE_DT_INT32, &pair, strides));
    mini_ok(tare_tensor_from(&values[2], TARE_DT_INT32, &square, pads));
    mini_ok(tare_session_run(session, of->feeds, values, of->count, &of->y, &out, 1, NULL, 0));
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&values[i]);
    return out;
}

static void check(struct tare_graph_model *model, const struct network *network) {
    const struct tare_session_options options = { .use_reference_kernels = true };
    struct tare_session *session = mini_session(model);
    for (int i = 0; i < RUNS; i++) {
        struct tare_session *reference;
        mini_ok(tare_session_new(&reference, model, &options));
        layers_assert_same(run(session, network, &geometries[i]), run(reference, network, &geometries[i]));
        tare_session_free(reference);
    }
    tare_session_free(session);
    tare_model_free(model);
}

/* Sums, with strides and paddings that are fed. */
static void check_sums(bool is_depthwise) {
    const struct tare_shape shape =
        tare_shape_make(4, (int64_t)3, (int64_t)3, (int64_t)(is_depthwise ? 1 : CHANNELS), (int64_t)CHANNELS);
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct network network = { .feeds = { mini_placeholder(g, "x", TARE_DT_INT8),
                                          mini_placeholder(g, "strides", TARE_DT_INT32),
                                          mini_placeholder(g, "paddings", TARE_DT_INT32) },
                               .count = 3 };
    network.y = layers_conv(g, "conv", network.feeds[0], layers_constant(g, "filter", TARE_DT_INT8, shape),
                            (struct layers_window){ 1, 1, is_depthwise ? CHANNELS : 1, 1 });
    tare_node_set_input(network.y.node, 2, network.feeds[1]);
    tare_node_set_input(network.y.node, 3, network.feeds[2]);
    check(model, &network);
}

/* A padding, the convolution and its quantization, which run as one; then a convolution without padding. */
static void check_layers(bool is_depthwise) {
    struct tare_graph_model *model = mini_model_new();
    struct network network = { .feeds = { mini_placeholder(model->main, "x", TARE_DT_INT8) }, .count = 1 };
    const struct layers_layer padded = { "padded", CHANNELS, is_depthwise ? 0 : CHANNELS, 3, 1 },
                              pointwise = { "pointwise", CHANNELS, 32, 1, 2 };
    network.y = layers_int8(model->main, &pointwise, layers_int8(model->main, &padded, network.feeds[0]));
    check(model, &network);
}

static void convolutions(void **unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        check_sums(i);
        check_layers(i);
    }
}

static void conv__other_shapes_and_windows_than_before_at_every_level(void **unused) {
    (void)unused;
    levels_run("convolutions");
}

int main(int argc, char **argv) {
    const struct CMUnitTest one[] = { cmocka_unit_test(convolutions) };
    const struct CMUnitTest tests[] = { cmocka_unit_test(conv__other_shapes_and_windows_than_before_at_every_level) };
    if (argc > 1 && strcmp(argv[1], "convolutions") == 0) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
