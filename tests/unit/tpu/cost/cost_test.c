/* Costs by op row, the report over a placed function, memory, and what chips make of it. */
#include "tpu/cost/cost.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "base/strbuf.h"
#include "tpu/cost/rows.h"
#include "tpu/cost/memory.h"

#include <math.h>
#include <string.h>

/* ---- rows ---- */

struct row {
    struct tare_graph_model *model;
    struct tare_node *node;
    struct tare_shape inputs[7], outputs[2];
    int dtypes[7];
};

static struct row new_row(const char *op) {
    struct row r = { .model = mini_model_new() };
    r.node = tare_graph_add(r.model->main, op, "node");
    assert_non_null(r.node);
    for (int i = 0; i < 7; i++) {
        r.inputs[i] = tare_shape_scalar();
        r.dtypes[i] = TARE_DT_FLOAT;
    }
    r.outputs[0] = r.outputs[1] = tare_shape_scalar();
    return r;
}

static struct tare_cost cost_of(struct row *r, size_t n_inputs) {
    static int float_output[] = { TARE_DT_FLOAT, TARE_DT_FLOAT };
    struct tare_infer infer = { .node = r->node,
                                .n_inputs = n_inputs,
                                .n_outputs = 1,
                                .input_dtypes = r->dtypes,
                                .inputs = r->inputs,
                                .outputs = r->outputs };
    struct tare_cost cost = { 0, 1e9 };
    r->node->output_dtypes = float_output;
    tare_tpu_op_cost(&infer, &cost);
    tare_model_free(r->model);
    return cost;
}

static void a_matrix_product__counts_rows_columns_and_depth(void **state) {
    struct row r = new_row("MatMul");
    (void)state;
    r.inputs[0] = tare_shape_make(2, 3, 5);
    r.inputs[1] = tare_shape_make(2, 5, 7);
    r.outputs[0] = tare_shape_make(2, 3, 7);
    assert_int_equal(cost_of(&r, 2).macs, 3 * 5 * 7);
}

static void an_xla_convolution__leaves_out_the_kernels_output_channel(void **state) {
    /* input batch 0, feature 3, spatial 1 2; kernel input 2, output 3, spatial 0 1; output as input */
    static const unsigned char numbers[] = { 0x40, 3, 0x18, 2, 0x20, 3, 0x32, 2, 0, 1,
                                             0x50, 3, 0x5a, 2, 1,    2, 0x62, 2, 1, 2 };
    struct row r = new_row("XlaConvV2");
    struct tare_cost cost;
    (void)state;
    mini_ok(tare_node_set_string(r.node, "dimension_numbers", numbers, sizeof numbers));
    r.inputs[0] = tare_shape_make(4, 1, 8, 8, 16);
    r.inputs[1] = tare_shape_make(4, 3, 3, 16, 32);
    r.outputs[0] = tare_shape_make(4, 1, 8, 8, 32);
    cost = cost_of(&r, 2);
    assert_int_equal(cost.macs, 8 * 8 * 32 * 3 * 3 * 16);
}

/* As Conv2DBackpropInput counts: each element of the input meets every tap and output channel once. */
static void a_spread_convolution__does_not_multiply_zeros(void **state) {
    /* as above, but kernel input 3, output 2 */
    static const unsigned char numbers[] = { 0x40, 3, 0x18, 3, 0x20, 2, 0x32, 2, 0, 1,
                                             0x50, 3, 0x5a, 2, 1,    2, 0x62, 2, 1, 2 };
    static const int32_t ones[] = { 1, 1 }, twos[] = { 2, 2 };
    struct row r = new_row("XlaConvV2");
    struct tare_graph *main = r.model->main;
    (void)state;
    mini_ok(tare_node_set_string(r.node, "dimension_numbers", numbers, sizeof numbers));
    for (int i = 0; i < 7; i++)
        mini_ok(tare_node_add_input(r.node, mini_ints(main, "window", 2, i == 4 ? twos : ones)));
    r.inputs[0] = tare_shape_make(4, 1, 8, 8, 32);
    r.inputs[1] = tare_shape_make(4, 3, 3, 16, 32);
    r.outputs[0] = tare_shape_make(4, 1, 16, 16, 16);
    assert_int_equal(cost_of(&r, 7).macs, 8 * 8 * 32 * 3 * 3 * 16);
}

static void an_xla_product__multiplies_the_contracted_sizes(void **state) {
    static const unsigned char numbers[] = { 0x0a, 1, 1, 0x12, 1, 0 }; /* lhs 1 with rhs 0 */
    struct row r = new_row("XlaDotV2");
    (void)state;
    mini_ok(tare_node_set_string(r.node, "dimension_numbers", numbers, sizeof numbers));
    r.inputs[0] = tare_shape_make(2, 6, 10);
    r.inputs[1] = tare_shape_make(2, 10, 4);
    r.outputs[0] = tare_shape_make(2, 6, 4);
    assert_int_equal(cost_of(&r, 2).macs, 6 * 10 * 4);
}

static void an_einsum__multiplies_the_contracted_sizes(void **state) {
    struct row r = new_row("Einsum");
    (void)state;
    mini_ok(tare_node_set_string(r.node, "equation", "b...cd,dce->b...e", strlen("b...cd,dce->b...e")));
    r.inputs[0] = tare_shape_make(5, 2, 7, 11, 3, 4);
    r.inputs[1] = tare_shape_make(3, 4, 3, 9);
    r.outputs[0] = tare_shape_make(4, 2, 7, 11, 9);
    assert_int_equal(cost_of(&r, 2).macs, 2 * 7 * 11 * 9 * 3 * 4);
}

static void a_gather__moves_its_rows_not_the_table(void **state) {
    struct row r = new_row("GatherV2");
    struct tare_cost cost;
    (void)state;
    r.inputs[0] = tare_shape_make(2, 1000000, 64);
    r.inputs[1] = tare_shape_make(1, 3);
    r.outputs[0] = tare_shape_make(2, 3, 64);
    r.dtypes[1] = r.dtypes[2] = TARE_DT_INT32;
    cost = cost_of(&r, 3);
    assert_int_equal(cost.macs, 0);
    assert_int_equal(cost.bytes, 2 * 3 * 64 * 4 + 3 * 4 + 4);
}

/* ---- a model ---- */

enum { ROWS = 10, COLUMNS = 20 };

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_binding in, out;
    struct tare_signature signature;
    struct tare_tpu_placed *placed;
};

/* y = x W on the TPU, W [10, 20] a variable, x [?, 10]. */
static void set_up(struct fixture *f) {
    struct tare_shape open = tare_shape_make(2, -1, ROWS), weights = tare_shape_make(2, ROWS, COLUMNS);
    struct tare_edge handle, x;
    struct tare_node *read, *placeholder;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, "f");
    handle = mini_arg(f->function, "handle", TARE_DT_RESOURCE);
    x = mini_arg(f->function, "x", TARE_DT_FLOAT);
    read = mini_open(f->function, "ReadVariableOp", "read", 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_return(f->function, "y", mini_node(f->function, "MatMul", "product", 2, x, mini_done(read)));
    placeholder = mini_open(f->model->main, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(placeholder, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(placeholder, "shape", &open));
    x = mini_done(placeholder);
    handle = mini_variable(f->model, "w", 0);
    f->model->variables[0].shape = weights;
    mini_ok(tare_node_set_shape(handle.node, "shape", &weights));
    f->in = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = open, .edge = x };
    f->out = (struct tare_binding){ .key = "y",
                                    .dtype = TARE_DT_FLOAT,
                                    .shape = tare_shape_make(2, -1, COLUMNS),
                                    .edge = mini_call(f->model->main, "StatefulPartitionedCall", "call", f->function, 2,
                                                      handle, x) };
    f->signature = (struct tare_signature){
        .key = "serving_default", .inputs = &f->in, .n_inputs = 1, .outputs = &f->out, .n_outputs = 1
    };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void place(struct fixture *f) {
    struct tare_tpu_function chosen = { f->function, NULL, "tpu_func" };
    mini_ok(tare_tpu_place(&f->placed, &f->arena, f->model, &chosen, 1, &(struct tare_tpu_place_options){ 0 }));
}

static void a_placed_function__gets_a_line_with_work_and_traffic(void **state) {
    struct tare_cost_report report;
    struct tare_strbuf text = { 0 };
    struct fixture f;
    (void)state;
    set_up(&f);
    place(&f);
    mini_ok(tare_cost_report(&report, &f.arena, f.model, f.placed, 1, 8));
    assert_int_equal(report.n_functions, 1);
    assert_int_equal(report.functions[0].macs, 8 * ROWS * COLUMNS); /* the variable's shape is known in the function */
    assert_int_equal(report.functions[0].cost, 2);                  /* 1,600 rounded up to thousands */
    assert_int_equal(report.functions[0].host_in, 8 * ROWS * 4);
    assert_int_equal(report.functions[0].host_out, 8 * COLUMNS * 4);
    assert_int_equal(report.cpu, 0);
    assert_int_equal(report.n_ops, 1);
    assert_string_equal(report.ops[0].op, "MatMul");
    assert_true(report.ops[0].on_tpu);
    tare_cost_report_print(&text, &report);
    assert_non_null(strstr(tare_strbuf_text(&text), "-------- Conversion Report --------\n"
                                                    "TPU cost of the model: 100.00% (2/2)\n"
                                                    "CPU cost of the model:  0.00% (0/2)\n\nCost breakdown\n"));
    assert_non_null(strstr(tare_strbuf_text(&text), "100.00    2       tpu_func\n"));
    tare_strbuf_free(&text);
    tear_down(&f);
}

/* Its intermediate tensor does not pass through memory. */
static void an_elementwise_op_after_a_product__costs_no_time(void **state) {
    struct tare_cost_report alone, fused;
    struct fixture f;
    (void)state;
    set_up(&f);
    place(&f);
    mini_ok(tare_cost_report(&alone, &f.arena, f.model, f.placed, 1, 8));
    struct tare_graph *placed = f.placed[0].replicated;
    tare_graph_set_return(placed, 0, mini_node(placed, "Relu", "relu", 1, placed->returns[0].edge));
    mini_ok(tare_cost_report(&fused, &f.arena, f.model, f.placed, 1, 8));
    assert_true(fused.functions[0].bytes > alone.functions[0].bytes);
    for (int c = 0; c < TARE_TPU_CHIPS; c++) {
        assert_true(alone.functions[0].seconds[c] > 0);
        assert_true(fused.functions[0].seconds[c] == alone.functions[0].seconds[c]);
    }
    tear_down(&f);
}

/* One alias of two concrete functions: a line for each, with its name. */
static void functions_of_one_alias__get_a_line_each(void **state) {
    struct tare_cost_report report;
    struct tare_strbuf text = { 0 };
    struct tare_graph *second;
    struct fixture f;
    (void)state;
    set_up(&f);
    second = tare_model_add_function(f.model, "__inference_second_2");
    mini_return(second, "y", mini_node(second, "Relu", "relu", 1, mini_arg(second, "x", TARE_DT_FLOAT)));
    const struct tare_tpu_function chosen[] = { { f.function, NULL, "twice" }, { second, NULL, "twice" } };
    mini_ok(tare_tpu_place(&f.placed, &f.arena, f.model, chosen, 2, &(struct tare_tpu_place_options){ 0 }));
    mini_ok(tare_cost_report(&report, &f.arena, f.model, f.placed, 2, 1));
    assert_int_equal(report.n_functions, 2);
    tare_cost_report_print(&text, &report);
    assert_non_null(strstr(tare_strbuf_text(&text), " twice (__inference_second_2)\n"));
    assert_non_null(strstr(tare_strbuf_text(&text), f.function->name));
    tare_strbuf_free(&text);
    tear_down(&f);
}

/* Row splits are one more than rows: a batch of one of each means no row, which the rows of x contradict in the loop.
 */
static void sizes_that_contradict_each_other__are_left_open(void **state) {
    const int32_t one = 1, rest = -1;
    struct tare_cost_report report;
    struct tare_graph *outer, *condition, *body;
    struct tare_edge i, x, rows, again;
    struct tare_node *loop;
    struct fixture f;
    (void)state;
    set_up(&f);
    condition = tare_model_add_function(f.model, "condition");
    i = mini_arg(condition, "i", TARE_DT_INT32);
    mini_arg(condition, "x", TARE_DT_FLOAT);
    mini_arg(condition, "rows", TARE_DT_INT32);
    mini_return(condition, "more", mini_node(condition, "Less", "less", 2, i, mini_int(condition, "limit", 3)));
    body = tare_model_add_function(f.model, "body");
    i = mini_arg(body, "i", TARE_DT_INT32);
    x = mini_arg(body, "x", TARE_DT_FLOAT);
    rows = mini_arg(body, "rows", TARE_DT_INT32);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "x",
                mini_node(body, "Select", "select", 3, mini_node(body, "Greater", "left", 2, rows, i), x, x));
    mini_return(body, "rows", rows);
    outer = tare_model_add_function(f.model, "outer");
    x = mini_arg(outer, "x", TARE_DT_FLOAT);
    rows = mini_node(outer, "Slice", "rest", 3, mini_arg(outer, "splits", TARE_DT_INT32),
                     mini_ints(outer, "one", 1, &one), mini_ints(outer, "all", 1, &rest));
    loop = mini_open(outer, "StatelessWhile", "loop", 3, mini_int(outer, "zero", 0), x, rows);
    mini_ok(tare_node_set_func(loop, "cond", "condition"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_ok(tare_node_set_type_list(loop, "T", (int[]){ TARE_DT_INT32, TARE_DT_FLOAT, TARE_DT_INT32 }, 3));
    mini_return(outer, "y", mini_output(mini_done(loop), 1));
    again = mini_placeholder(f.model->main, "splits", TARE_DT_INT32);
    f.out.edge = mini_call(f.model->main, "PartitionedCall", "outer", outer, 2, f.in.edge, again);
    const struct tare_shape open = tare_shape_make(1, -1);
    mini_ok(tare_node_set_shape(again.node, "shape", &open));
    mini_ok(tare_cost_report(&report, &f.arena, f.model, NULL, 0, 1));
    assert_int_equal(report.n_functions, 0);
    tear_down(&f);
}

/* "serve" and "serving_default" of one function: Keras writes a function for each. With another op they are two. */
static void one_function_of_two_signatures__is_one_line(void **state) {
    struct tare_cost_report report;
    struct fixture f;
    (void)state;
    for (int other = 0; other < 2; other++) {
        set_up(&f);
        struct tare_graph *twin = tare_model_add_function(f.model, "g");
        struct tare_edge handle = mini_arg(twin, "h", TARE_DT_RESOURCE), x = mini_arg(twin, "a", TARE_DT_FLOAT);
        struct tare_node *read = mini_open(twin, "ReadVariableOp", "r", 1, handle);
        mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
        struct tare_edge product = mini_node(twin, "MatMul", "p", 2, x, mini_done(read));
        mini_return(twin, "z", other ? mini_node(twin, "Relu", "relu", 1, product) : product);
        struct tare_node *placeholder = mini_open(f.model->main, "Placeholder", "serve_x", 0);
        mini_ok(tare_node_set_type(placeholder, "dtype", TARE_DT_FLOAT));
        mini_ok(tare_node_set_shape(placeholder, "shape", &f.in.shape));
        struct tare_binding in = f.in, out = f.out;
        in.edge = mini_done(placeholder);
        out.edge =
            mini_call(f.model->main, "StatefulPartitionedCall", "serve", twin, 2, f.out.edge.node->inputs[0], in.edge);
        struct tare_signature both[] = { f.signature, f.signature };
        both[1].key = "serve", both[1].inputs = &in, both[1].outputs = &out;
        f.model->signatures = both;
        f.model->n_signatures = 2;
        const struct tare_tpu_function chosen[] = { { f.function, NULL, "serving_default" }, { twin, NULL, "serve" } };
        mini_ok(tare_tpu_place(&f.placed, &f.arena, f.model, chosen, 2, &(struct tare_tpu_place_options){ 0 }));
        mini_ok(tare_cost_report(&report, &f.arena, f.model, f.placed, 2, 8));
        assert_int_equal(report.n_functions, other ? 2 : 1);
        assert_string_equal(report.functions[0].label, other ? "serving_default" : "serving_default, serve");
        assert_int_equal(report.functions[0].macs, 8 * ROWS * COLUMNS);
        assert_int_equal(report.tpu, other ? 2 + report.functions[1].cost : 2);
        tear_down(&f);
    }
}

/* Nothing was placed now: the computation is found by its TPUPartitionedCall. */
static void a_computation_that_was_there__gets_a_line_too(void **state) {
    struct tare_cost_report report;
    struct fixture f;
    (void)state;
    set_up(&f);
    place(&f);
    mini_ok(tare_cost_report(&report, &f.arena, f.model, NULL, 0, 1));
    assert_int_equal(report.n_functions, 1);
    assert_string_equal(report.functions[0].label, "tpu_fn_icv2_f");
    assert_int_equal(report.tpu, 1);
    tear_down(&f);
}

static void memory__is_variables_and_the_most_alive(void **state) {
    struct tare_tpu_memory memory;
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_ok(tare_tpu_memory(&memory, &f.arena, f.model, &f.function, 1, 4));
    assert_int_equal(memory.weights, ROWS * COLUMNS * 4);
    assert_int_equal(memory.activations, 4 * ROWS * 4 + 4 * COLUMNS * 4);
    tear_down(&f);
}

/* relu(relu(x)): one input and one output at a time, in addition to the argument. */
static void memory__of_a_tensor_ends_with_its_last_user(void **state) {
    struct tare_tpu_memory memory;
    struct fixture f;
    (void)state;
    set_up(&f);
    for (int i = 0; i < 5; i++)
        tare_graph_set_return(f.function, 0, mini_node(f.function, "Relu", "relu", 1, f.function->returns[0].edge));
    mini_ok(tare_tpu_memory(&memory, &f.arena, f.model, &f.function, 1, 1));
    assert_int_equal(memory.activations, ROWS * 4 + 2 * COLUMNS * 4);
    tear_down(&f);
}

/* ---- chips ---- */

static void a_chip__is_bound_by_work_or_by_memory(void **state) {
    const struct tare_tpu_chip *v5e = NULL;
    (void)state;
    for (int i = 0; i < TARE_TPU_CHIPS; i++)
        if (strcmp(tare_tpu_chips[i].name, "v5e") == 0) v5e = &tare_tpu_chips[i];
    assert_non_null(v5e);
    assert_true(v5e->hbm_bytes == 16e9);
    assert_true(fabs(tare_tpu_chip_seconds(v5e, 98.5e12, TARE_TPU_BFLOAT16, 1) - 1) < 1e-9); /* 197 TFLOPS */
    assert_true(fabs(tare_tpu_chip_seconds(v5e, 196.5e12, TARE_TPU_INT8, 1) - 1) < 1e-9);    /* 393 TOPS */
    assert_true(fabs(tare_tpu_chip_seconds(v5e, 98.5e12, TARE_TPU_FLOAT8, 1) - 1) < 1e-9);   /* has no units for it */
    assert_true(fabs(tare_tpu_chip_seconds(v5e, 1, TARE_TPU_BFLOAT16, 819e9) - 1) < 1e-9);   /* 819 GB/s */
}

static void chips__say_which_units_they_lack(void **state) {
    (void)state;
    for (int i = 0; i < TARE_TPU_CHIPS; i++) {
        const struct tare_tpu_chip *chip = &tare_tpu_chips[i];
        const bool float8 =
            strcmp(chip->name, "tpu7x") == 0 || strcmp(chip->name, "8i") == 0 || strcmp(chip->name, "8t") == 0;
        assert_int_equal(tare_tpu_chip_prefers_float8(chip), float8); /* v6e has the same rate for it as for bfloat16 */
        assert_int_equal(tare_tpu_chip_lacks(chip, true, false) != NULL, chip->int8_ops_second == 0);
        assert_int_equal(tare_tpu_chip_lacks(chip, false, true) != NULL, chip->fp8_ops_second == 0);
        assert_null(tare_tpu_chip_lacks(chip, false, false));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_product__counts_rows_columns_and_depth),
        cmocka_unit_test(an_xla_convolution__leaves_out_the_kernels_output_channel),
        cmocka_unit_test(a_spread_convolution__does_not_multiply_zeros),
        cmocka_unit_test(an_xla_product__multiplies_the_contracted_sizes),
        cmocka_unit_test(an_einsum__multiplies_the_contracted_sizes),
        cmocka_unit_test(a_gather__moves_its_rows_not_the_table),
        cmocka_unit_test(a_placed_function__gets_a_line_with_work_and_traffic),
        cmocka_unit_test(an_elementwise_op_after_a_product__costs_no_time),
        cmocka_unit_test(functions_of_one_alias__get_a_line_each),
        cmocka_unit_test(sizes_that_contradict_each_other__are_left_open),
        cmocka_unit_test(one_function_of_two_signatures__is_one_line),
        cmocka_unit_test(a_computation_that_was_there__gets_a_line_too),
        cmocka_unit_test(memory__is_variables_and_the_most_alive),
        cmocka_unit_test(memory__of_a_tensor_ends_with_its_last_user),
        cmocka_unit_test(a_chip__is_bound_by_work_or_by_memory),
        cmocka_unit_test(chips__say_which_units_they_lack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
