/* Models with transposes before and after the pass: the same bits from fewer of them. */
#include "support/mini_model.h"

#include "convert/pass.h"

#include <math.h>
#include <string.h>

static const int32_t to_last[4] = { 0, 2, 3, 1 }, to_first[4] = { 0, 3, 1, 2 };

static struct tare_tensor random_tensor(struct tare_shape shape, unsigned seed) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        TARE_DATA(float, &tensor)[i] = ldexpf((float)(int32_t)seed, -29);
    }
    return tensor;
}

static struct tare_edge constant(struct tare_graph *g, const char *name, struct tare_shape shape) {
    struct tare_tensor value = random_tensor(shape, 3);
    struct tare_edge edge = { tare_graph_add_const(g, name, &value), 0 };
    tare_tensor_reset(&value);
    assert_non_null(edge.node);
    return edge;
}

static struct tare_edge turned(struct tare_graph *g, const char *name, struct tare_edge x, const int32_t order[4]) {
    return mini_node(g, "Transpose", name, 2, x, mini_ints(g, "perm", 4, order));
}

/* Channels-first around a channels-last convolution of 4 channels, as exporters write it. */
static struct tare_edge conv(struct tare_graph *g, const char *name, struct tare_edge x) {
    static const int64_t strides[4] = { 1, 1, 1, 1 };
    struct tare_node *node =
        mini_open(g, "Conv2D", name, 2, turned(g, "in", x, to_last),
                  constant(g, "filter", tare_shape_make(4, (int64_t)3, (int64_t)3, (int64_t)4, (int64_t)4)));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return turned(g, "out", mini_done(node), to_first);
}

static struct tare_edge pad(struct tare_graph *g, struct tare_edge x) {
    static const int32_t rows[8] = { 0, 0, 0, 0, 1, 2, 0, 3 };
    struct tare_shape shape = tare_shape_make(2, (int64_t)4, (int64_t)2);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_INT32, &shape));
    memcpy(value.data, rows, sizeof rows);
    struct tare_edge paddings = { tare_graph_add_const(g, "rows", &value), 0 };
    tare_tensor_reset(&value);
    return mini_node(g, "Pad", "pad", 2, x, paddings);
}

enum { MOST_NODES = 200 };

/* Transposes that a node needs. */
static int count_transposes(const struct tare_node *node, bool seen[MOST_NODES]) {
    assert_in_range(node->position, 0, MOST_NODES - 1);
    if (seen[node->position]) return 0;
    seen[node->position] = true;
    int found = strcmp(node->op, "Transpose") == 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        found += count_transposes(node->inputs[i].node, seen);
    return found;
}

static struct tare_tensor answer(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y) {
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = random_tensor(tare_shape_make(4, (int64_t)2, (int64_t)4, (int64_t)5, (int64_t)6), 8),
                       result;
    mini_ok(tare_session_run(session, &x, &fed, 1, &y, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    return result;
}

/* Runs the pass on a model whose result `y` is behind an Identity, and checks the answer and how many Transposes the
 * result needs afterwards. */
static void check(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y, int expected) {
    struct tare_edge result = mini_node(model->main, "TestEffect", "result", 1, y);
    struct tare_tensor before = answer(model, x, result), after;
    size_t changes = 0;
    bool seen[MOST_NODES] = { false };
    mini_ok(tare_pass_cancel_transposes.run(model, &changes));
    assert_int_equal(count_transposes(result.node, seen), expected);
    after = answer(model, x, result);
    assert_true(tare_shape_equal(&before.shape, &after.shape));
    for (int64_t i = 0; i < before.elements; i++)
        if (memcmp(TARE_DATA(float, &before) + i, TARE_DATA(float, &after) + i, sizeof(float)) != 0)
            fail_msg("element %lld is %.9g (expected %.9g)", (long long)i, (double)TARE_DATA(float, &after)[i],
                     (double)TARE_DATA(float, &before)[i]);
    tare_tensor_reset(&before);
    tare_tensor_reset(&after);
    changes = 0;
    mini_ok(tare_pass_cancel_transposes.run(model, &changes));
    assert_int_equal(changes, 0); /* nothing is left to do */
    tare_model_free(model);
}

static void inverse_pair__goes(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    check(model, x, conv(model->main, "b", conv(model->main, "a", x)), 2);
}

static void two_transposes__become_one(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    check(model, x, turned(model->main, "b", turned(model->main, "a", x, to_last), to_last), 1);
}

static void region__elementwise_pad_and_operands(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), y = conv(g, "a", x);
    y = mini_node(g, "AddV2", "bias", 2, y, constant(g, "b", tare_shape_make(3, (int64_t)4, (int64_t)1, (int64_t)1)));
    y = mini_node(g, "Mul", "plane", 2, constant(g, "p", tare_shape_make(2, (int64_t)5, (int64_t)6)), y);
    y = mini_node(g, "Maximum", "clip", 2, mini_node(g, "Minimum", "low", 2, y, mini_float(g, "six", 6)),
                  mini_float(g, "zero", 0));
    check(model, x, conv(g, "b", pad(g, y)), 2);
}

static void region__residual_block_and_concatenation(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), a = conv(g, "a", x);
    struct tare_edge sum = mini_node(g, "AddV2", "sum", 2, conv(g, "b", mini_node(g, "Relu", "relu", 1, a)), a);
    struct tare_node *both = mini_open(g, "ConcatV2", "both", 3, sum, a, mini_int(g, "axis", -3));
    struct tare_edge wide = mini_done(both);
    check(model, x, turned(g, "last", wide, to_last), 1);
}

/* The result is also used as it was: as many transposes would come as go. */
static void region__that_would_not_pay_stays(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    check(model, x, mini_node(g, "Relu", "relu", 1, conv(g, "a", x)), 2);
}

static void region__with_another_use_keeps_one_transpose(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(g, "Relu", "relu", 1, conv(g, "a", x));
    struct tare_edge z = mini_node(g, "TestEffect", "seen", 1, y);
    check(model, x, mini_node(g, "TestAdd", "end", 2, conv(g, "b", y), z), 3);
}

static void transpose_with_a_control__stays(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), a = turned(g, "a", x, to_last);
    struct tare_edge b = turned(g, "b", a, to_first);
    mini_ok(tare_node_add_control(b.node, mini_node(g, "TestEffect", "effect", 1, x).node));
    check(model, x, b, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_pair__goes),
        cmocka_unit_test(two_transposes__become_one),
        cmocka_unit_test(region__elementwise_pad_and_operands),
        cmocka_unit_test(region__residual_block_and_concatenation),
        cmocka_unit_test(region__that_would_not_pay_stays),
        cmocka_unit_test(region__with_another_use_keeps_one_transpose),
        cmocka_unit_test(transpose_with_a_control__stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
