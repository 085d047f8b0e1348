/* Situations in which the public converter's bfloat16 pass is known (docs/converter.md, "Version 2"): branches of Case,
 * functions that are called as ops, flows of TensorArrays, casts outside of the function, and the boundary with scope
 * ALL. */
#include "graph/calls.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <string.h>

static size_t convert(struct tare_graph_model *model, struct tare_graph *graph) {
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, &graph, 1, &options, &changes));
    graph_check_dtypes(model);
    return changes;
}

static int dtype_of(const struct tare_graph *graph, const char *name) {
    return tare_edge_dtype((struct tare_edge){ graph_node(graph, name), 0 });
}

/* y = op(x · x) */
static struct tare_graph *body(struct tare_graph_model *model, const char *name, const char *op) {
    struct tare_graph *f = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, op, "op", 1, mini_node(f, "MatMul", "product", 2, x, x)));
    return f;
}

static void branches_of_case__are_converted_with_the_op(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *branches[2];
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    const struct tare_edge index = mini_arg(f, "index", TARE_DT_INT32);
    struct tare_node *node;
    struct tare_call_site site;
    (void)state;
    branches[0] = body(model, "a", "Relu");
    branches[1] = body(model, "b", "Tanh");
    x = mini_node(f, "MatMul", "before", 2, x, x);
    node = mini_open(f, "StatelessCase", "choice", 2, index, x);
    mini_ok(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func_list(node, "branches", branches, 2));
    x = mini_done(node);
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, x, x));
    assert_true(convert(model, f) > 0);
    assert_int_equal(dtype_of(f, "choice"), TARE_DT_BFLOAT16);
    mini_ok(tare_call_site(&site, &model->arena, graph_node(f, "choice")));
    assert_int_equal(site.n_callees, 2);
    for (size_t i = 0; i < site.n_callees; i++) {
        assert_int_equal(dtype_of(site.callees[i], "product"), TARE_DT_BFLOAT16);
        assert_int_equal(site.callees[i]->returns[0].dtype, TARE_DT_BFLOAT16);
    }
    tare_model_free(model);
}

/* Its flow, a scalar that orders reads and writes, is float32 by definition. */
static void the_flow_of_a_tensor_array__stays_consistent(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), flow, y;
    struct tare_node *array = mini_open(f, "TensorArrayV3", "array", 1, mini_int(f, "size", 1)), *write, *read;
    (void)state;
    mini_ok(tare_node_set_type(array, "dtype", TARE_DT_FLOAT));
    y = mini_done(array);
    x = mini_node(f, "MatMul", "before", 2, x, x);
    write = mini_open(f, "TensorArrayWriteV3", "write", 4, y, mini_int(f, "at", 0), x, mini_output(y, 1));
    mini_ok(tare_node_set_type(write, "T", TARE_DT_FLOAT));
    flow = mini_done(write);
    read = mini_open(f, "TensorArrayReadV3", "read", 3, y, mini_int(f, "from", 0), flow);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    y = mini_done(read);
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, y, y));
    assert_true(convert(model, f) > 0); /* graph_check_dtypes: the array and what is written and read agree */
    assert_int_equal(dtype_of(f, "write"), TARE_DT_FLOAT);
    assert_int_equal(tare_node_type(array, "dtype", 0), tare_node_type(write, "T", 0));
    assert_int_equal(tare_node_type(array, "dtype", 0), tare_node_type(read, "dtype", 0));
    assert_int_equal(dtype_of(f, "before"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* A cast to bfloat16 on the CPU does not need the digits of the function's result. */
static void a_result_that_the_cpu_casts_to_bfloat16__may_be_rounded(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = body(model, "f", "Relu"), *serve = tare_model_add_function(model, "serve");
    struct tare_node *cast =
        mini_open(serve, "Cast", "cast", 1,
                  mini_call(serve, "PartitionedCall", "call", f, 1, mini_arg(serve, "x", TARE_DT_FLOAT)));
    (void)state;
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_BFLOAT16));
    mini_return(serve, "y", mini_done(cast));
    assert_true(convert(model, f) > 0);
    assert_int_equal(dtype_of(f, "product"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* Its arguments, results and body become bfloat16 together with the values around it. */
static void a_function_that_is_called_as_an_op__is_converted(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *callee = body(model, "callee", "Relu");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_call_site site;
    (void)state;
    x = mini_node(f, "MatMul", "before", 2, x, x);
    x = mini_node(f, "callee", "as_op", 1, x);
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, x, x));
    assert_true(convert(model, f) > 0);
    mini_ok(tare_call_site(&site, &model->arena, graph_node(f, "as_op")));
    assert_int_equal(site.n_callees, 1);
    assert_true(site.callees[0] == callee || strcmp(site.callees[0]->name, "callee_bfloat16") == 0);
    assert_int_equal(dtype_of(site.callees[0], "product"), TARE_DT_BFLOAT16);
    assert_int_equal(site.callees[0]->returns[0].dtype, TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "as_op"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* With scope ALL, a function that is placed keeps the dtypes of its arguments and results, which its callers in other
 * programs know: values cross as float32, by casts that change none. */
static void a_placed_function__keeps_its_signature_when_its_caller_is_converted(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *placed = body(model, "placed", "Relu"), *serve = tare_model_add_function(model, "serve");
    struct tare_graph *const graphs[] = { placed, serve };
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
    struct tare_edge x = mini_arg(serve, "x", TARE_DT_FLOAT);
    size_t changes = 0;
    (void)state;
    x = mini_node(serve, "MatMul", "before", 2, x, x);
    x = mini_call(serve, "PartitionedCall", "call", placed, 1, x);
    mini_return(serve, "y", mini_node(serve, "MatMul", "after", 2, x, x));
    mini_ok(tare_tpu_bfloat16(model, graphs, 2, &options, &changes));
    graph_check_dtypes(model);
    assert_int_equal(dtype_of(serve, "before"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(serve, "after"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(placed, "product"), TARE_DT_BFLOAT16);
    assert_int_equal(placed->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(placed->returns[0].dtype, TARE_DT_FLOAT);
    assert_string_equal(graph_node(serve, "call")->inputs[0].node->op, "Cast");
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_of_case__are_converted_with_the_op),
        cmocka_unit_test(the_flow_of_a_tensor_array__stays_consistent),
        cmocka_unit_test(a_result_that_the_cpu_casts_to_bfloat16__may_be_rounded),
        cmocka_unit_test(a_function_that_is_called_as_an_op__is_converted),
        cmocka_unit_test(a_placed_function__keeps_its_signature_when_its_caller_is_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
