/* Quantized layers in the interpreter against an independent integer evaluation (tests/golden/quantized.py), bit for
 * bit; scales and zero points against the same script. */
#include "support/attrs_text.h"
#include "support/golden.h"
#include "support/mini_model.h"

#include "base/arena.h"
#include "base/strbuf.h"
#include "quant/quantize.h"

#include <string.h>

enum { X, WEIGHT, BIAS, NUMBERS, SECOND };                                     /* inputs of a case */
enum { METHOD, ACTIVATION, BITS, PER_TENSOR, TWO_INPUTS, HAS_SECOND, RANGES }; /* its numbers */

struct layer_model {
    struct tare_graph_model *model;
    struct tare_edge feeds[2];     /* of the main graph */
    struct tare_edge x[2], middle; /* of the function: what is calibrated */
    struct tare_edge y;
    const double *numbers;
    bool ranges_of_outputs; /* the last output has one, too, which nothing goes beyond */
    struct tare_opspec_memory memory;
};

static double number(const struct op_case *test, int i) {
    return tare_tensor_get_f64(&test->inputs[NUMBERS], i);
}

static struct tare_edge constant(struct tare_graph *graph, const char *name, const struct tare_tensor *value) {
    return (struct tare_edge){ tare_graph_add_const(graph, name, value), 0 };
}

static struct tare_edge behind(struct tare_graph *graph, const struct op_case *test, struct tare_edge y) {
    static const char *const activations[] = { NULL, "Relu", "Relu6" };
    const char *activation = activations[(int)number(test, ACTIVATION)];
    if (test->inputs[BIAS].elements)
        y = mini_node(graph, "BiasAdd", "bias", 2, y, constant(graph, "b", &test->inputs[BIAS]));
    return activation ? mini_node(graph, activation, "activation", 1, y) : y;
}

static struct tare_edge second_layer(struct tare_graph *graph, const struct tare_tensor *weight, struct tare_edge x) {
    if (weight->shape.rank != 4) return mini_node(graph, "BatchMatMulV2", "second", 2, x, constant(graph, "v", weight));
    struct tare_node *conv = mini_open(graph, "Conv2D", "second", 2, x, constant(graph, "v", weight));
    mini_ok(tare_node_set_int_list(conv, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(conv, "padding", "VALID", 5));
    return mini_done(conv);
}

/* The shape of an image with sizes that only the running model knows. */
static struct tare_shape open_shape(const struct tare_shape *shape) {
    struct tare_shape open = *shape;
    for (int i = 0; i < open.rank - 1; i++)
        open.dims[i] = -1;
    return open;
}

/* f(x, z) = op(x, w) with what is behind it; an Einsum may have its weight in front. */
static void make(struct layer_model *m, const struct op_case *test, bool open) {
    const bool two = number(test, TWO_INPUTS) != 0;
    m->model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(m->model, "f");
    for (int i = 0; i < 1 + two; i++) {
        m->x[i] = mini_arg(f, i ? "z" : "x", test->inputs[i].dtype);
        m->feeds[i] = mini_placeholder(m->model->main, i ? "in2" : "in", test->inputs[i].dtype);
        const struct tare_shape shape = open ? open_shape(&test->inputs[i].shape) : test->inputs[i].shape;
        mini_ok(tare_node_set_shape(m->feeds[i].node, "shape", &shape));
    }
    struct tare_edge w = two ? m->x[1] : constant(f, "w", &test->inputs[WEIGHT]);
    const char *equation = test->attrs ? strstr(test->attrs, "equation: '") : NULL;
    /* in equations whose first operand has as many labels as the weight has axes and the second has the activation's */
    const bool first = equation &&
                       (int)(strchr(equation + 11, ',') - (equation + 11)) == test->inputs[WEIGHT].shape.rank &&
                       test->inputs[WEIGHT].shape.rank < test->inputs[X].shape.rank;
    struct tare_node *op = mini_open(f, test->op, "layer", 2, first ? w : m->x[0], first ? m->x[0] : w);
    mini_ok(attrs_from_text(op, &m->memory, test->attrs));
    m->y = m->middle = behind(f, test, mini_done(op));
    if (number(test, HAS_SECOND)) m->y = second_layer(f, &test->inputs[SECOND], m->middle);
    mini_return(f, "y", m->y);
    m->y = two ? mini_call(m->model->main, "PartitionedCall", "call", f, 2, m->feeds[0], m->feeds[1])
               : mini_call(m->model->main, "PartitionedCall", "call", f, 1, m->feeds[0]);
    m->numbers = TARE_CONST_DATA(double, &test->inputs[NUMBERS]);
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    const struct layer_model *m = arg;
    const struct tare_edge known[] = { m->x[0], m->x[1], m->middle };
    for (int i = 0; i < 3; i++) {
        if (edge.node != known[i].node || edge.index != known[i].index) continue;
        *low = m->numbers[RANGES + 2 * i];
        *high = m->numbers[RANGES + 2 * i + 1];
        *found = true;
        if (i < 2 || m->numbers[HAS_SECOND] != 0) return TARE_OK;
    }
    *low = -1e9;
    *high = 1e9;
    *found = m->ranges_of_outputs;
    return TARE_OK;
}

enum { WHOLE_RANGE = 1, ROW_RANGES = 4 }; /* of dynamic range */
static const struct tare_quant_method *const methods[] = {
    &tare_method_static, &tare_method_dynamic, &tare_method_static, &tare_method_weight_only, &tare_method_dynamic,
};

/* False when the op set has no form for the case. */
static bool quantize(struct layer_model *m, const struct op_case *test, struct tare_arena *arena,
                     enum tare_quant_op_set op_set) {
    const struct tare_quant_ranges ranges = { .find = find, .arg = m };
    const struct tare_quant_plan options = {
        .setting = { .method = methods[(int)number(test, METHOD)],
                     .bits = (int)number(test, BITS),
                     .activation_bits = number(test, METHOD) == 2 ? 16 : 8,
                     .granularity = number(test, PER_TENSOR) != 0 ? TARE_PER_TENSOR : TARE_PER_CHANNEL },
        .op_set = op_set,
        .depthwise = true,
        .two_inputs = true,
        .min_elements = 1,
    };
    struct tare_quant_report report;
    mini_ok(tare_quantize(&report, arena, m->model, &ranges, &options));
    if (report.outcomes[0].refused && strstr(report.outcomes[0].refused, "the op set TF")) return false;
    if (report.quantized != 1 + (size_t)(number(test, HAS_SECOND) != 0))
        fail_msg("%s (%s): %s", test->where, test->attrs, report.outcomes[0].refused);
    return true;
}

static size_t count_op(const struct tare_graph_model *model, const char *op) {
    const struct tare_graph *graph = model->functions[0];
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        count += strcmp(graph->nodes[i]->op, op) == 0;
    return count;
}

static size_t applied; /* cases that the op set at hand has a form for */

static bool check(const struct op_case *test, bool open, enum tare_quant_op_set op_set) {
    const size_t n_feeds = number(test, TWO_INPUTS) != 0 ? 2 : 1;
    struct layer_model m = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_strbuf why = { 0 };
    struct tare_tensor result = { 0 };
    bool same = true;
    make(&m, test, open);
    m.ranges_of_outputs = op_set == TARE_OP_SET_TF && !open;
    if (!quantize(&m, test, &arena, op_set)) goto done;
    assert_int_equal(count_op(m.model, test->op), 0);
    if (number(test, HAS_SECOND) && op_set == TARE_OP_SET_XLA) /* the first layer's output exists as int8 alone */
        assert_int_equal(count_op(m.model, "Div"), 1);
    if (op_set == TARE_OP_SET_TF) { /* each layer is one call, each activation from outside another */
        const size_t quantizations = number(test, METHOD) == 1 ? 0 : number(test, TWO_INPUTS) != 0 ? 2 : 1;
        assert_int_equal(count_op(m.model, "PartitionedCall"), quantizations + 1 + (number(test, HAS_SECOND) != 0));
    }
    applied++;
    struct tare_session *session = mini_session(m.model);
    mini_ok(tare_session_run(session, m.feeds, test->inputs, n_feeds, &m.y, &result, 1, NULL, 0));
    same = tensors_agree(&why, &result, &test->outputs[0], (struct tolerance){ 0 });
    if (!same) print_error("%s: %s {%s}: %s\n", test->where, test->op, test->attrs, tare_strbuf_text(&why));
    tare_session_free(session);
done:
    tare_strbuf_free(&why);
    tare_tensor_reset(&result);
    tare_model_free(m.model);
    tare_opspec_memory_free(&m.memory);
    tare_arena_free(&arena);
    return same;
}

static struct golden_file *file;

static int open_file(void **state) {
    (void)state;
    return golden_open(&file, TARE_SOURCE_DIR "/tests/golden/quantized.bin") == TARE_OK ? 0 : -1;
}

static int close_file(void **state) {
    (void)state;
    golden_close(file);
    return 0;
}

static void layers__equal_the_integer_evaluation(void **state) {
    size_t by_row = 0, wrong = 0;
    (void)state;
    for (size_t i = 0; i < golden_count(file); i++) {
        struct op_case test = { 0 };
        mini_ok(golden_read(&test, file, i));
        if (strcmp(golden_op(file, i), "parameters") != 0 && number(&test, METHOD) != WHOLE_RANGE) {
            wrong += !check(&test, false, TARE_OP_SET_XLA);
            by_row += number(&test, METHOD) == ROW_RANGES;
            /* two unknown sizes are taken to be the same */
            if (strstr(golden_op(file, i), "Conv") ||
                (strstr(golden_op(file, i), "Batch") && !number(&test, TWO_INPUTS)))
                wrong += !check(&test, true, TARE_OP_SET_XLA);
        }
        op_case_reset(&test);
    }
    assert_true(by_row > 50);
    assert_int_equal(wrong, 0);
}

/* The same integers by calls of functions. What the last layer clamps its real output to lies far out; where the output
 * was not calibrated, at what the layer chose. */
static void layers_of_op_set_tf__equal_the_integer_evaluation(void **state) {
    size_t wrong = 0, skipped = 0;
    (void)state;
    applied = 0;
    for (size_t i = 0; i + 1 < golden_count(file); i++) {
        struct op_case test = { 0 };
        mini_ok(golden_read(&test, file, i));
        if (number(&test, METHOD) >= 2) /* has no form there */
            skipped++;
        else
            wrong += !check(&test, false, TARE_OP_SET_TF) +
                     (!number(&test, TWO_INPUTS) && !check(&test, true, TARE_OP_SET_TF));
        op_case_reset(&test);
    }
    assert_int_equal(wrong, 0);
    assert_true(applied > 800 && skipped > 0);
}

static void parameters__equal_the_formulas(void **state) {
    struct op_case test = { 0 };
    (void)state;
    mini_ok(golden_read(&test, file, golden_count(file) - 1));
    assert_string_equal(golden_op(file, golden_count(file) - 1), "parameters");
    for (int64_t i = 0; i < test.inputs[0].shape.dims[0]; i++) {
        const double *range = &TARE_CONST_DATA(double, &test.inputs[0])[2 * i];
        const double *expected = &TARE_CONST_DATA(double, &test.outputs[0])[2 * i];
        struct tare_qparams got;
        mini_ok(tare_qparams_from_range(&got, range[0], range[1], &tare_qscheme_activation));
        if (got.scale != expected[0] || got.zero_point != (int32_t)expected[1])
            fail_msg("[%.17g, %.17g]: scale %.17g, zero point %d (expected %.17g, %g)", range[0], range[1], got.scale,
                     got.zero_point, expected[0], expected[1]);
    }
    op_case_reset(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers__equal_the_integer_evaluation),
        cmocka_unit_test(layers_of_op_set_tf__equal_the_integer_evaluation),
        cmocka_unit_test(parameters__equal_the_formulas),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
