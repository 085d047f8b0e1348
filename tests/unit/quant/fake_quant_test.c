/* Models trained with quantization: ranges come from their FakeQuant ops, which the integers make superfluous; the
 * answer is that of the same layers without them, quantized by the same ranges. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/fake_quant.h"
#include "quant/quantize.h"

#include <string.h>

enum { WIDTH = 6 };

static const double LOWS[] = { -1.25, 0 }, HIGHS[] = { 2, 3.5 }; /* of the input, of what is between the layers */

static struct tare_edge constant(struct tare_graph *f, const char *name, int rows, int first) {
    struct tare_shape shape = tare_shape_make(rows ? 2 : 1, WIDTH, WIDTH);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = (float)((i + first) * 7919 % 2003 - 1001) / 900.0f;
    struct tare_edge edge = { tare_graph_add_const(f, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge fake(struct tare_graph *f, struct tare_edge x, int which, int bits) {
    struct tare_node *node;
    if (which == 0) {
        node = mini_open(f, "FakeQuantWithMinMaxArgs", "fake_args", 1, x);
        mini_ok(tare_node_set_float(node, "min", (float)LOWS[0]));
        mini_ok(tare_node_set_float(node, "max", (float)HIGHS[0]));
    } else {
        node = mini_open(f, "FakeQuantWithMinMaxVars", "fake_vars", 3, x, mini_float(f, "low", (float)LOWS[1]),
                         mini_float(f, "high", (float)HIGHS[1]));
    }
    mini_ok(tare_node_set_int(node, "num_bits", bits));
    return mini_done(node);
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    const int which = strcmp(edge.node->op, "Relu") == 0;
    (void)arg;
    *low = LOWS[which];
    *high = HIGHS[which];
    *found = which || tare_node_is_arg(edge.node);
    return TARE_OK;
}

/* The input, before and after its FakeQuant. */
static tare_status find_input(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                              double *low, double *high) {
    (void)arg, (void)edge, (void)setting;
    *low = LOWS[1];
    *high = HIGHS[1];
    *found = true;
    return TARE_OK;
}

/* x -> MatMul, BiasAdd, Relu -> MatMul, with FakeQuants of `bits` bits in front of the layers (0: without). */
static struct tare_tensor answer(int bits, const struct tare_quant_ranges *ranges, size_t *quantized, size_t *fakes) {
    const struct tare_shape shape = tare_shape_make(2, 2, WIDTH);
    const struct tare_quant_plan options = { .setting.method = &tare_method_static };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_tensor fed, result;
    struct tare_edge y = mini_arg(f, "x", TARE_DT_FLOAT);
    if (bits) y = fake(f, y, 0, bits);
    y = mini_node(f, "MatMul", "first", 2, y, constant(f, "w1", WIDTH, 3));
    y = mini_node(f, "Relu", "relu", 1, mini_node(f, "BiasAdd", "bias", 2, y, constant(f, "b", 0, 11)));
    if (bits) y = fake(f, y, 1, bits);
    mini_return(f, "y", mini_node(f, "MatMul", "second", 2, y, constant(f, "w2", WIDTH, 29)));
    struct tare_edge in = mini_placeholder(model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(in.node, "shape", &shape));
    y = mini_call(model->main, "PartitionedCall", "call", f, 1, in);
    assert_true(tare_quant_is_trained(model) == (bits != 0));
    mini_ok(tare_quantize(&report, &arena, model, ranges, &options));
    *quantized = report.quantized;
    *fakes = 0;
    for (size_t n = 0; n < f->n_nodes; n++)
        *fakes += strncmp(f->nodes[n]->op, "FakeQuant", 9) == 0;
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < fed.elements; i++)
        TARE_DATA(float, &fed)[i] = (float)(i * 61 % 127) * 0.03f - 1.5f;
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &in, &fed, 1, &y, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
    return result;
}

static void ranges__come_from_fake_quants(void **state) {
    const struct tare_quant_ranges ranges = { .find = find };
    size_t quantized, fakes;
    (void)state;
    struct tare_tensor expected = answer(0, &ranges, &quantized, &fakes);
    assert_int_equal(quantized, 2);
    struct tare_tensor got = answer(8, NULL, &quantized, &fakes);
    assert_int_equal(quantized, 2);
    assert_int_equal(fakes, 0);
    assert_memory_equal(got.data, expected.data, tare_tensor_bytes(&expected));
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

static void other_bit_widths__do_not_set_int8_ranges(void **state) {
    size_t quantized, fakes;
    (void)state;
    struct tare_tensor got = answer(4, NULL, &quantized, &fakes);
    assert_int_equal(quantized, 0);
    assert_int_equal(fakes, 2);
    tare_tensor_reset(&got);
}

/* x -> FakeQuant of [0, 3.5] -> MatMul, for x from -1.5 to 2.3; without a method as it is. */
static struct tare_tensor limited(const struct tare_quant_setting *setting, int bits, size_t *fakes) {
    const struct tare_shape shape = tare_shape_make(2, 2, WIDTH);
    const struct tare_quant_plan options = { .setting = *setting };
    const struct tare_quant_ranges ranges = { .find = find_input };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_tensor fed, result;
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(x.node, "shape", &shape));
    struct tare_edge y = fake(f, mini_arg(f, "v", TARE_DT_FLOAT), 1, bits);
    mini_return(f, "y", mini_node(f, "MatMul", "product", 2, y, constant(f, "w", WIDTH, 3)));
    y = mini_call(model->main, "PartitionedCall", "call", f, 1, x);
    if (setting->method) mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
    if (setting->method) assert_int_equal(report.quantized, 1);
    *fakes = 0;
    for (size_t n = 0; n < f->n_nodes; n++)
        *fakes += strncmp(f->nodes[n]->op, "FakeQuant", 9) == 0;
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < fed.elements; i++)
        TARE_DATA(float, &fed)[i] = (float)(i * 61 % 127) * 0.03f - 1.5f;
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &x, &fed, 1, &y, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
    return result;
}

static void compare_limited(const struct tare_quant_setting *setting, int bits, size_t expected_fakes) {
    size_t fakes;
    struct tare_tensor expected = limited(&(struct tare_quant_setting){ 0 }, bits, &fakes);
    struct tare_tensor got = limited(setting, bits, &fakes);
    assert_int_equal(fakes, expected_fakes);
    for (int64_t i = 0; i < expected.elements; i++)
        assert_float_equal(TARE_DATA(float, &got)[i], TARE_DATA(float, &expected)[i], 0.06);
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

static void a_fake_quant__limits_integers_of_a_wider_range(void **state) {
    (void)state;
    compare_limited(&(struct tare_quant_setting){ .method = &tare_method_static }, 8, 0);
    compare_limited(&(struct tare_quant_setting){ .method = &tare_method_static, .symmetric = true }, 8, 0);
    compare_limited(&(struct tare_quant_setting){ .method = &tare_method_static, .activation_bits = 16 }, 8, 0);
}

static void a_fake_quant_of_few_bits__still_rounds(void **state) {
    (void)state;
    compare_limited(&(struct tare_quant_setting){ .method = &tare_method_static }, 4, 1);
}

/* x [2, 2, WIDTH] -> FakeQuant -> ops that preserve values -> MatMul; `after`: the FakeQuant follows the ops. */
static size_t quantized_through(const char *const *ops, int n_ops, bool after, const char **refused) {
    const int32_t flat[] = { 4, WIDTH }, order[] = { 0, 1 }, none[] = { 0, 0, 0, 0 };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_edge y = mini_arg(f, "x", TARE_DT_FLOAT);
    static char reason[256];
    if (!after) y = fake(f, y, 0, 8);
    for (int i = 0; i < n_ops; i++) {
        const bool is_pad = strcmp(ops[i], "Pad") == 0;
        const struct tare_shape pads = tare_shape_make(2, (int64_t)2, (int64_t)2);
        struct tare_tensor zeros;
        struct tare_edge how;
        if (is_pad) {
            mini_ok(tare_tensor_from(&zeros, TARE_DT_INT32, &pads, none));
            how = (struct tare_edge){ tare_graph_add_const(f, "pads", &zeros), 0 };
            tare_tensor_reset(&zeros);
        } else {
            how = mini_ints(f, "how", 2, strcmp(ops[i], "Transpose") == 0 ? order : flat);
        }
        y = strcmp(ops[i], "Identity") == 0 || strcmp(ops[i], "Abs") == 0 ? mini_node(f, ops[i], ops[i], 1, y)
                                                                          : mini_node(f, ops[i], ops[i], 2, y, how);
    }
    if (after) {
        fake(f, mini_node(f, "Identity", "copy", 1, y), 0, 8);
    }
    mini_return(f, "y", mini_node(f, "MatMul", "product", 2, y, constant(f, "w", WIDTH, 3)));
    mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
    const char *text = report.outcomes[0].refused;
    strncpy(reason, text ? text : "", sizeof reason - 1);
    *refused = reason;
    tare_model_free(model);
    tare_arena_free(&arena);
    return report.quantized;
}

static void ranges__are_found_through_ops_that_preserve_values(void **state) {
    const char *const ops[] = { "Reshape", "Transpose", "Identity", "Pad" };
    const char *refused;
    (void)state;
    for (int after = 0; after < 2; after++)
        for (int n = 0; n <= 4; n++)
            if (quantized_through(ops, n, after, &refused) != 1)
                fail_msg("%d ops, FakeQuant %s them: %s", n, after ? "after" : "before", refused);
}

static void ranges__do_not_pass_ops_that_change_values(void **state) {
    const char *const ops[] = { "Reshape", "Abs" };
    const char *refused;
    (void)state;
    assert_int_equal(quantized_through(ops, 2, false, &refused), 0);
    assert_string_equal(refused, "no FakeQuant range and no samples");
}

/* One tensor with many users, in a model with a FakeQuant elsewhere. */
static void an_edge_without_fake_quant__is_searched_once(void **state) {
    enum { USERS = 500 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_arena arena = { 0 };
    struct tare_quant_fakes fakes;
    double low, high;
    bool found;
    (void)state;
    for (int i = 0; i < USERS; i++)
        mini_node(f, "Relu", "y", 1, x);
    struct tare_edge elsewhere = mini_arg(f, "elsewhere", TARE_DT_FLOAT);
    fake(f, elsewhere, 0, 8);
    tare_quant_fakes_open(&fakes, &arena, model);
    for (int i = 0; i < USERS; i++) {
        mini_ok(tare_quant_fake_range(&found, &low, &high, &fakes, x));
        assert_false(found);
    }
    assert_int_equal(fakes.visits, USERS);
    mini_ok(tare_quant_fake_range(&found, &low, &high, &fakes, elsewhere));
    assert_true(found);
    assert_true(low == LOWS[0] && high == HIGHS[0]);
    tare_quant_fakes_close(&fakes);
    tare_arena_free(&arena);
    tare_model_free(model);
}

/* x is read by FakeQuants of two ranges, one of them behind a Reshape: a layer that reads x itself has values of both.
 */
static void several_fake_quants_of_an_activation__are_covered(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_arena arena = { 0 };
    struct tare_quant_fakes fakes;
    double low, high;
    bool found;
    (void)state;
    fake(f, x, 0, 8);
    fake(f, mini_node(f, "Reshape", "flat", 2, x, mini_ints(f, "shape", 1, (const int32_t[]){ -1 })), 1, 8);
    tare_quant_fakes_open(&fakes, &arena, model);
    for (int i = 0; i < 2; i++) { /* searched, and known */
        mini_ok(tare_quant_fake_range(&found, &low, &high, &fakes, x));
        assert_true(found);
        assert_true(low == LOWS[0] && high == HIGHS[1]);
    }
    tare_quant_fakes_close(&fakes);
    tare_arena_free(&arena);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges__are_found_through_ops_that_preserve_values),
        cmocka_unit_test(ranges__do_not_pass_ops_that_change_values),
        cmocka_unit_test(ranges__come_from_fake_quants),
        cmocka_unit_test(a_fake_quant__limits_integers_of_a_wider_range),
        cmocka_unit_test(a_fake_quant_of_few_bits__still_rounds),
        cmocka_unit_test(other_bit_widths__do_not_set_int8_ranges),
        cmocka_unit_test(an_edge_without_fake_quant__is_searched_once),
        cmocka_unit_test(several_fake_quants_of_an_activation__are_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
