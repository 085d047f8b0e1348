/* Convolutions with data_format NCHW: quantized as they are, with the values of their channels-last form. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <string.h>

enum { IN = 3, OUT = 4, HEIGHT = 5, WIDTH = 6 };

struct network {
    struct tare_graph_model *model;
    struct tare_graph *function;
    struct tare_edge x, y;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static struct tare_edge constant(struct tare_graph *graph, const char *name, const struct tare_shape *shape) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)(i * 31 % 17 - 8) / 8;
    const struct tare_edge edge = { tare_graph_add_const(graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

/* relu(conv(x) + b) of an image whose size is known only at run time where `open`. */
static void build(struct network *n, const char *padding, int64_t stride, bool open) {
    const struct tare_shape filter = tare_shape_make(4, 3, 3, IN, OUT), vector = tare_shape_make(1, OUT);
    const struct tare_shape image = tare_shape_make(4, 1, IN, open ? -1 : HEIGHT, open ? -1 : WIDTH);
    *n = (struct network){ .model = mini_model_new() };
    struct tare_graph *g = n->function = tare_model_add_function(n->model, "f");
    const struct tare_edge x = mini_arg(g, "x", TARE_DT_FLOAT);
    struct tare_node *conv = mini_open(g, "Conv2D", "conv", 2, x, constant(g, "w", &filter));
    mini_ok(tare_node_set_int_list(conv, "strides", (const int64_t[]){ 1, 1, stride, stride }, 4));
    mini_ok(tare_node_set_string(conv, "padding", padding, strlen(padding)));
    mini_ok(tare_node_set_string(conv, "data_format", "NCHW", 4));
    struct tare_node *bias = mini_open(g, "BiasAdd", "bias", 2, mini_done(conv), constant(g, "b", &vector));
    mini_ok(tare_node_set_string(bias, "data_format", "NCHW", 4));
    mini_return(g, "y", mini_node(g, "Relu", "relu", 1, mini_done(bias)));
    n->x = mini_placeholder(n->model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(n->x.node, "shape", &image));
    n->y = mini_call(n->model->main, "PartitionedCall", "call", g, 1, n->x);
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)arg;
    (void)edge;
    (void)setting;
    *low = -1;
    *high = 2;
    *found = true;
    return TARE_OK;
}

static struct tare_tensor answer(struct network *n) {
    const struct tare_shape shape = tare_shape_make(4, 1, IN, HEIGHT, WIDTH);
    struct tare_tensor x, y;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] = (float)(i * 7 % 13) / 13 * 3 - 1;
    struct tare_session *session = mini_session(n->model);
    mini_ok(tare_session_run(session, &n->x, &x, 1, &n->y, &y, 1, NULL, 0));
    tare_tensor_reset(&x);
    tare_session_free(session);
    tare_model_free(n->model);
    tare_arena_free(&n->arena);
    return y;
}

static void check(const struct tare_quant_method *method, const char *padding, int64_t stride, bool open) {
    const struct tare_quant_ranges ranges = { .find = find };
    const struct tare_quant_plan plan = { .setting.method = method, .min_elements = 1 };
    struct network plain, quantized;
    build(&plain, padding, stride, open);
    build(&quantized, padding, stride, open);
    mini_ok(tare_quantize(&quantized.report, &quantized.arena, quantized.model, &ranges, &plan));
    if (quantized.report.outcomes[0].refused) fail_msg("%s", quantized.report.outcomes[0].refused);
    for (size_t i = 0; i < quantized.function->n_nodes; i++)
        assert_string_not_equal(quantized.function->nodes[i]->op, "Conv2D");
    struct tare_tensor expected = answer(&plain), got = answer(&quantized);
    assert_true(tare_shape_equal(&expected.shape, &got.shape));
    for (int64_t i = 0; i < expected.elements; i++)
        assert_float_equal(TARE_DATA(float, &got)[i], TARE_DATA(float, &expected)[i], 0.15);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
}

static void channels_first__is_quantized_by_every_method(void **state) {
    static const struct tare_quant_method *const methods[] = { &tare_method_weight_only, &tare_method_dynamic,
                                                               &tare_method_static };
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        check(methods[i], "VALID", 1, false);
        check(methods[i], "SAME", 1, true);
        check(methods[i], "SAME", 2, false);
        check(methods[i], "SAME", 2, true);
    }
}

static void other_op_sets__have_channels_last(void **state) {
    const struct tare_quant_plan plan = { .setting.method = &tare_method_dynamic,
                                          .op_set = TARE_OP_SET_TF,
                                          .min_elements = 1 };
    struct network n;
    (void)state;
    build(&n, "VALID", 1, false);
    mini_ok(tare_quantize(&n.report, &n.arena, n.model, NULL, &plan));
    assert_string_equal(n.report.outcomes[0].refused, "data_format must be NHWC");
    tare_model_free(n.model);
    tare_arena_free(&n.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_first__is_quantized_by_every_method),
        cmocka_unit_test(other_op_sets__have_channels_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
