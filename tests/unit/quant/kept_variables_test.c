/* Weights in variables: read through ops that keep the numbers (the filter of a Conv1D), and by reads of other kinds.
 */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <string.h>

enum { TAPS = 3, IN = 8, OUT = 16, LENGTH = 6 };

/* Not on a grid of 127 steps, which quantization would keep. */
static float weight_at(int i) {
    return (float)(i * 7919 % 100003 - 50000) / 48611;
}

struct network {
    struct tare_graph_model *model;
    struct tare_edge x, y;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static struct tare_edge read_variable_of(struct tare_graph_model *model, const struct tare_shape *shape) {
    struct tare_node *handle = mini_open(model->main, "VarHandleOp", "kernel", 0), *read;
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, shape));
    for (int i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = weight_at(i);
    mini_ok(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(handle, "shape", shape));
    read = mini_open(model->main, "ReadVariableOp", "read", 1, mini_done(handle));
    mini_add_variable(model, handle, value);
    model->variables[0].constant = true;
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    return mini_done(read);
}

static struct tare_edge read_variable(struct tare_graph_model *model) {
    const struct tare_shape shape = tare_shape_make(3, TAPS, IN, OUT);
    return read_variable_of(model, &shape);
}

static struct tare_edge read_in(struct tare_graph *graph, const char *name, struct tare_edge handle) {
    struct tare_node *read = mini_open(graph, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    return mini_done(read);
}

/* Conv1D as TensorFlow has it: an axis of one element is inserted before the length. */
static void build(struct network *n, const char *shaper) {
    const struct tare_shape image = tare_shape_make(4, 1, 1, LENGTH, IN);
    const int64_t ones[] = { 1, 1, 1, 1 };
    const int32_t filter[] = { 1, TAPS, -1, OUT };
    memset(n, 0, sizeof *n);
    n->model = mini_model_new();
    struct tare_graph *g = n->model->main;
    struct tare_edge w = read_variable(n->model);
    n->x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(n->x.node, "shape", &image));
    if (strcmp(shaper, "ExpandDims") == 0)
        w = mini_node(g, "ExpandDims", "shaped", 2, w, mini_int(g, "axis", 0));
    else
        w = mini_node(g, shaper, "shaped", 2, w, mini_ints(g, "dims", 4, filter));
    struct tare_node *conv = mini_open(g, "Conv2D", "conv", 2, n->x, w);
    mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
    mini_ok(tare_node_set_int_list(conv, "strides", ones, 4));
    n->y = mini_node(g, "Identity", "y", 1, mini_done(conv));
}

/* A filter [1, TAPS, OUT, IN]. */
static void build_transposed(struct network *n) {
    const struct tare_shape image = tare_shape_make(4, 1, 1, LENGTH, IN), filter = tare_shape_make(4, 1, TAPS, OUT, IN);
    const int64_t strides[] = { 1, 1, 2, 1 };
    const int32_t sizes[] = { 1, 1, 2 * LENGTH, OUT };
    memset(n, 0, sizeof *n);
    n->model = mini_model_new();
    struct tare_graph *g = n->model->main;
    const struct tare_edge w = read_variable_of(n->model, &filter);
    n->x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(n->x.node, "shape", &image));
    struct tare_node *up = mini_open(g, "Conv2DBackpropInput", "up", 3, mini_ints(g, "sizes", 4, sizes), w, n->x);
    mini_ok(tare_node_set_type(up, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_string(up, "padding", "SAME", 4));
    mini_ok(tare_node_set_int_list(up, "strides", strides, 4));
    n->y = mini_node(g, "Identity", "y", 1, mini_done(up));
}

static void filters__are_found_through_ops_that_change_their_shape(void **state) {
    const char *const shapers[] = { "ExpandDims", "Reshape" };
    (void)state;
    for (int s = 0; s < 2; s++) {
        const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
        struct network n;
        build(&n, shapers[s]);
        mini_ok(tare_quantize(&n.report, &n.arena, n.model, NULL, &options));
        if (n.report.quantized != 1) fail_msg("%s: %s", shapers[s], n.report.outcomes[0].refused);
        const struct tare_tensor *q = &n.model->variables[0].value;
        assert_int_equal(q->dtype, TARE_DT_INT8);
        assert_int_equal(q->shape.rank, 4); /* as the layer takes it */
        assert_int_equal(q->shape.dims[1], TAPS);
        for (int c = 0; c < OUT; c++) {
            double most = 0;
            for (int r = 0; r < TAPS * IN; r++)
                most = fmax(most, fabs((double)weight_at(r * OUT + c)));
            for (int r = 0; r < TAPS * IN; r++)
                assert_int_equal(TARE_CONST_DATA(int8_t, q)[r * OUT + c],
                                 (int)round(weight_at(r * OUT + c) / (most / 127)));
        }
        for (size_t i = 0; i < n.model->main->n_nodes; i++)
            if (!n.model->main->nodes[i]->dead) assert_string_not_equal(n.model->main->nodes[i]->name, "shaped");
        tare_model_free(n.model);
        tare_arena_free(&n.arena);
    }
}

/* The taps are reversed, and the last two axes exchanged; scales belong to the third axis. */
static void filters_of_transposed_convolutions__are_stored_reversed(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    struct network n;
    (void)state;
    build_transposed(&n);
    mini_ok(tare_quantize(&n.report, &n.arena, n.model, NULL, &options));
    if (n.report.quantized != 1) fail_msg("%s", n.report.outcomes[0].refused);
    const struct tare_tensor *q = &n.model->variables[0].value;
    assert_int_equal(q->shape.dims[2], IN);
    assert_int_equal(q->shape.dims[3], OUT);
    for (int c = 0; c < OUT; c++) {
        double most = 0;
        for (int tap = 0; tap < TAPS; tap++)
            for (int i = 0; i < IN; i++)
                most = fmax(most, fabs((double)weight_at((tap * OUT + c) * IN + i)));
        for (int tap = 0; tap < TAPS; tap++)
            for (int i = 0; i < IN; i++)
                assert_int_equal(TARE_CONST_DATA(int8_t, q)[((TAPS - 1 - tap) * IN + i) * OUT + c],
                                 (int)round(weight_at((tap * OUT + c) * IN + i) / (most / 127)));
    }
    tare_model_free(n.model);
    tare_arena_free(&n.arena);
}

/* As Keras exports a loop: the outer function reads the weight for control edges alone, here directly and through an
 * Identity, and the inner function has the layer. */
static void nest(struct network *n) {
    const struct tare_shape image = tare_shape_make(4, 1, 1, LENGTH, IN);
    const int64_t ones[] = { 1, 1, 1, 1 };
    memset(n, 0, sizeof *n);
    n->model = mini_model_new();
    struct tare_graph *inner = tare_model_add_function(n->model, "inner");
    struct tare_graph *outer = tare_model_add_function(n->model, "outer");
    const struct tare_edge unused = read_variable(n->model), handle = unused.node->inputs[0];
    struct tare_edge x = mini_arg(inner, "x", TARE_DT_FLOAT), kernel = mini_arg(inner, "kernel", TARE_DT_RESOURCE);
    struct tare_edge w =
        mini_node(inner, "ExpandDims", "shaped", 2, read_in(inner, "read", kernel), mini_int(inner, "axis", 0));
    struct tare_node *conv = mini_open(inner, "Conv2D", "conv", 2, x, w);
    mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
    mini_ok(tare_node_set_int_list(conv, "strides", ones, 4));
    mini_return(inner, "y", mini_done(conv));
    x = mini_arg(outer, "x", TARE_DT_FLOAT);
    kernel = mini_arg(outer, "kernel", TARE_DT_RESOURCE);
    const struct tare_edge read = read_in(outer, "outer/read", kernel);
    const struct tare_edge copy = mini_node(outer, "Identity", "outer/copy", 1, read);
    const struct tare_edge y =
        mini_node(outer, "Identity", "y", 1, mini_call(outer, "PartitionedCall", "call", inner, 2, x, kernel));
    mini_ok(tare_node_add_control(y.node, read.node));
    mini_ok(tare_node_add_control(y.node, copy.node));
    mini_return(outer, "y", y);
    n->x = mini_placeholder(n->model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(n->x.node, "shape", &image));
    n->y = mini_call(n->model->main, "PartitionedCall", "call", outer, 2, n->x, handle);
}

static int count_reads(const struct tare_graph *graph, int dtype) {
    int count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (!node->dead && (strcmp(node->op, "ReadVariableOp") == 0 || strcmp(node->name, "outer/copy") == 0))
            count += node->output_dtypes[0] == dtype;
    }
    return count;
}

static void reads_for_control_edges__get_the_dtype_of_the_integers(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    const struct tare_shape shape = tare_shape_make(4, 1, 1, LENGTH, IN);
    struct tare_tensor fed, result;
    struct network n;
    (void)state;
    nest(&n);
    mini_ok(tare_quantize(&n.report, &n.arena, n.model, NULL, &options));
    if (n.report.quantized != 1) fail_msg("%s", n.report.outcomes[0].refused);
    assert_int_equal(count_reads(n.model->functions[0], TARE_DT_INT8), 1);
    assert_int_equal(count_reads(n.model->functions[1], TARE_DT_INT8), 2); /* the read and its Identity */
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < LENGTH * IN; i++)
        TARE_DATA(float, &fed)[i] = 1;
    struct tare_session *session = mini_session(n.model);
    mini_ok(tare_session_run(session, &n.x, &fed, 1, &n.y, &result, 1, NULL, 0));
    double sum = 0; /* the first element in the middle is the sum of the weights of channel 0 */
    for (int i = 0; i < TAPS * IN; i++)
        sum += (double)weight_at(i * OUT);
    assert_true(fabs((double)TARE_CONST_DATA(float, &result)[OUT] - sum) < 0.2);
    tare_session_free(session);
    tare_tensor_reset(&fed);
    tare_tensor_reset(&result);
    tare_model_free(n.model);
    tare_arena_free(&n.arena);
}

/* VariableShape would report the shape of the arranged integers, and ResourceGather would expect float32. */
static void variables__that_other_ops_read_stay_float(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    struct network n;
    (void)state;
    build(&n, "ExpandDims");
    mini_node(n.model->main, "VariableShape", "shape", 1, (struct tare_edge){ n.model->variables[0].node, 0 });
    mini_ok(tare_quantize(&n.report, &n.arena, n.model, NULL, &options));
    assert_int_equal(n.report.quantized, 0);
    assert_string_equal(n.report.outcomes[0].refused, "its weight is a variable that other ops read as well");
    assert_int_equal(n.model->variables[0].value.dtype, TARE_DT_FLOAT);
    tare_model_free(n.model);
    tare_arena_free(&n.arena);
}

/* size(w) = the size of its value */
static struct tare_graph *size_of_value(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "size");
    mini_return(f, "y", mini_node(f, "Size", "size", 1, read_in(f, "read", mini_arg(f, "w", TARE_DT_RESOURCE))));
    return f;
}

static void assert_stays_float(struct network *n) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    mini_ok(tare_quantize(&n->report, &n->arena, n->model, NULL, &options));
    assert_int_equal(n->report.quantized, 0);
    assert_string_equal(n->report.outcomes[0].refused, "its weight is a variable that other ops read as well");
    tare_model_free(n->model);
    tare_arena_free(&n->arena);
}

/* The read in the function is that of no certain variable. */
static void variables__that_a_function_reads_as_one_of_several_stay_float(void **state) {
    struct network n;
    (void)state;
    build(&n, "ExpandDims");
    const struct tare_graph *f = size_of_value(n.model);
    mini_call(n.model->main, "PartitionedCall", "first", f, 1, tare_node_output0(n.model->variables[0].node));
    mini_call(n.model->main, "PartitionedCall", "second", f, 1, mini_variable(n.model, "other", 1));
    assert_stays_float(&n);
}

static void variables__whose_handle_a_function_returns_stay_float(void **state) {
    struct network n;
    (void)state;
    build(&n, "ExpandDims");
    struct tare_graph *f = tare_model_add_function(n.model, "same");
    mini_return(f, "y", mini_arg(f, "w", TARE_DT_RESOURCE));
    const struct tare_edge handle =
        mini_call(n.model->main, "PartitionedCall", "call", f, 1, tare_node_output0(n.model->variables[0].node));
    mini_node(n.model->main, "Size", "size", 1, read_in(n.model->main, "other", handle));
    assert_stays_float(&n);
}

/* The op itself would read the integers as its filter. */
static void nodes_that_wait_for_a_layer__wait_for_its_operands(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    struct network n;
    (void)state;
    build(&n, "ExpandDims");
    struct tare_node *conv = tare_graph_find(n.model->main, "conv"), *done;
    const struct tare_edge waits = mini_node(n.model->main, "NoOp", "earlier", 0);
    mini_ok(tare_node_add_control(conv, waits.node));
    done = mini_open(n.model->main, "NoOp", "done", 0);
    mini_ok(tare_node_add_control(done, conv));
    mini_done(done);
    mini_ok(tare_node_add_control(n.y.node, done));
    mini_ok(tare_quantize(&n.report, &n.arena, n.model, NULL, &options));
    assert_int_equal(n.report.quantized, 1);
    for (size_t i = 0; i < n.model->main->n_nodes; i++)
        assert_string_not_equal(n.model->main->nodes[i]->op, "Conv2D");
    bool waits_for_input = false, waits_for_earlier = false;
    for (size_t i = 0; i < done->n_controls; i++) {
        waits_for_input |= done->controls[i] == n.x.node;
        waits_for_earlier |= done->controls[i] == waits.node;
    }
    assert_true(waits_for_input && waits_for_earlier);
    tare_model_free(n.model);
    tare_arena_free(&n.arena);
}

/* With lists of what all earlier layers waited for, the control inputs would be as many as the square of the layers. */
static void layers_that_wait_for_one_another__get_few_control_inputs(void **state) {
    enum { LAYERS = 40 };
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), w = read_variable_of(model, &shape);
    struct tare_node *before = NULL, *last;
    (void)state;
    for (size_t i = 0; i < LAYERS; i++) {
        struct tare_node *product = mini_open(g, "MatMul", "product", 2, x, w);
        if (before) mini_ok(tare_node_add_control(product, before));
        before = mini_done(product).node;
    }
    last = mini_node(g, "NoOp", "last", 0).node;
    mini_ok(tare_node_add_control(last, before));
    mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
    assert_int_equal(report.quantized, LAYERS);
    assert_in_range(last->n_controls, 2, 4);
    tare_model_free(model);
    tare_arena_free(&arena);
}

/* An embedding whose transpose or itself is also a product's weight: the table has scales for entries, the product for
 * columns, and the variable has one value. */
static void table_and_product__do_not_share_a_variable(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    const struct tare_shape shape = tare_shape_make(2, IN, OUT), row = tare_shape_make(2, 1, IN);
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge w = read_variable_of(model, &shape);
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    (void)state;
    mini_ok(tare_node_set_shape(x.node, "shape", &row));
    mini_node(g, "GatherV2", "lookup", 3, w, mini_int(g, "entry", 1), mini_int(g, "axis", 0));
    mini_node(g, "MatMul", "product", 2, x, w);
    mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
    assert_int_equal(report.count, 2);
    assert_int_equal(report.quantized, 0);
    for (size_t i = 0; i < report.count; i++)
        assert_string_equal(report.outcomes[i].refused,
                            "its weight is a variable that another layer reads as other integers or in float");
    tare_model_free(model);
    tare_arena_free(&arena);
}

static struct tare_edge cast_to(struct tare_graph_model *model, int dtype, struct tare_edge x) {
    struct tare_node *cast = mini_open(model->main, "Cast", tare_dtype_name(dtype), 1, x);
    mini_ok(tare_node_set_type(cast, "SrcT", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(cast, "DstT", dtype));
    return mini_done(cast);
}

/* As if it were frozen it would be a constant, and the reason says how it becomes one, also of float8 values. */
static void weights__computed_from_a_kept_variable_stay_float(void **state) {
    const struct tare_quant_method *const methods[] = { &tare_method_static, &tare_method_weight_only };
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    const int32_t order[] = { 1, 0 };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct tare_quant_plan options = { .setting.method = methods[i], .min_elements = 1 };
        struct tare_graph_model *model = mini_model_new();
        struct tare_arena arena = { 0 };
        struct tare_quant_report report;
        struct tare_edge w = read_variable_of(model, &shape);
        w = mini_node(model->main, "Transpose", "turned", 2, w, mini_ints(model->main, "order", 2, order));
        if (i == 1) w = cast_to(model, TARE_DT_FLOAT, cast_to(model, TARE_DT_FLOAT8_E4M3FN, w));
        w = mini_node(model->main, "Mul", "scaled", 2, w, mini_float(model->main, "two", 2));
        mini_node(model->main, "MatMul", "product", 2, mini_placeholder(model->main, "x", TARE_DT_FLOAT), w);
        mini_node(model->main, "MatMul", "other", 2, w, mini_placeholder(model->main, "z", TARE_DT_FLOAT));
        mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
        assert_int_equal(report.count, 2);
        assert_string_equal(report.outcomes[0].refused,
                            "its weight is computed from a kept variable (omit --keep-variables)");
        assert_null(strstr(report.outcomes[1].refused, "variable"));
        tare_arena_free(&arena);
        tare_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_for_control_edges__get_the_dtype_of_the_integers),
        cmocka_unit_test(variables__that_other_ops_read_stay_float),
        cmocka_unit_test(variables__that_a_function_reads_as_one_of_several_stay_float),
        cmocka_unit_test(variables__whose_handle_a_function_returns_stay_float),
        cmocka_unit_test(nodes_that_wait_for_a_layer__wait_for_its_operands),
        cmocka_unit_test(layers_that_wait_for_one_another__get_few_control_inputs),
        cmocka_unit_test(weights__computed_from_a_kept_variable_stay_float),
        cmocka_unit_test(table_and_product__do_not_share_a_variable),
        cmocka_unit_test(filters__are_found_through_ops_that_change_their_shape),
        cmocka_unit_test(filters_of_transposed_convolutions__are_stored_reversed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
