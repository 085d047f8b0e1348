/* The dtypes of inner functions, which their callers and the functions that keep float32 determine. */
#include "tpu/bfloat16.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

/* placed(x) = x x: it keeps float32, as a function on the TPU with an alias. */
static struct tare_graph *placed_in(struct tare_graph_model *model) {
    struct tare_graph *graph = tare_model_add_function(model, "placed");
    const struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    mini_return(graph, "y", mini_node(graph, "MatMul", "product", 2, x, x));
    return graph;
}

/* A function that calls `callee` on the Identity of x, and returns the Identity of the result. */
static struct tare_graph *caller_of(struct tare_graph_model *model, const char *name, const struct tare_graph *callee) {
    struct tare_graph *graph = tare_model_add_function(model, name);
    struct tare_edge x = mini_node(graph, "Identity", "handed_down", 1, mini_arg(graph, "x", TARE_DT_FLOAT));
    x = mini_call(graph, "PartitionedCall", "call", callee, 1, x);
    mini_return(graph, "y", mini_node(graph, "Identity", "handed_up", 1, x));
    return graph;
}

static void convert(struct tare_graph_model *model, struct tare_graph *placed, struct tare_graph *outer) {
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
    struct tare_graph *const graphs[] = { placed, outer };
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, graphs, 2, &options, &changes));
    graph_check_dtypes(model);
}

static void check_signature(const struct tare_graph *graph, int argument, int result) {
    if (graph->args[0]->output_dtypes[0] != argument || graph->returns[0].dtype != result)
        fail_msg("%s is a function of %s that returns %s (expected %s, %s)", graph->name,
                 tare_dtype_name(graph->args[0]->output_dtypes[0]), tare_dtype_name(graph->returns[0].dtype),
                 tare_dtype_name(argument), tare_dtype_name(result));
}

/* As bfloat16, a value would be cast before the outer call, back for the placed function, and once more in it. */
static void values_that_are_only_handed_on__are_cast_once(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *placed = placed_in(model), *inner = caller_of(model, "inner", placed);
    struct tare_graph *middle = caller_of(model, "middle", inner), *outer = caller_of(model, "outer", middle);
    (void)state;
    convert(model, placed, outer);
    check_signature(inner, TARE_DT_FLOAT, TARE_DT_FLOAT);
    check_signature(middle, TARE_DT_FLOAT, TARE_DT_FLOAT);
    assert_int_equal(graph_count(inner, "Cast") + graph_count(middle, "Cast") + graph_count(outer, "Cast"), 0);
    assert_int_equal(graph_count(placed, "Cast"), 2);
    tare_model_free(model);
}

/* What is computed with is bfloat16, and cast where the placed function is called. */
static void values_that_are_computed_with__are_bfloat16(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *placed = placed_in(model), *inner = tare_model_add_function(model, "inner");
    struct tare_edge x = mini_arg(inner, "x", TARE_DT_FLOAT), y;
    (void)state;
    y = mini_call(inner, "PartitionedCall", "call", placed, 1, x);
    mini_return(inner, "y", mini_node(inner, "MatMul", "sum", 2, x, y));
    convert(model, placed, caller_of(model, "outer", inner));
    check_signature(inner, TARE_DT_BFLOAT16, TARE_DT_BFLOAT16);
    check_signature(placed, TARE_DT_FLOAT, TARE_DT_FLOAT);
    tare_model_free(model);
}

/* One branch hands its argument on, the other one computes: both have the same dtypes. */
static void branches__agree(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *placed = placed_in(model), *handing = caller_of(model, "handing", placed);
    struct tare_graph *computing = tare_model_add_function(model, "computing");
    struct tare_graph *outer = tare_model_add_function(model, "outer");
    const struct tare_edge x = mini_arg(outer, "x", TARE_DT_FLOAT), c = mini_arg(outer, "c", TARE_DT_BOOL);
    const struct tare_edge a = mini_arg(computing, "x", TARE_DT_FLOAT);
    struct tare_node *branch;
    (void)state;
    mini_return(computing, "y", mini_node(computing, "MatMul", "product", 2, a, a));
    branch = mini_open(outer, "StatelessIf", "if", 2, c, x);
    mini_ok(tare_node_set_type_list(branch, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(branch, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(branch, "then_branch", handing->name));
    mini_ok(tare_node_set_func(branch, "else_branch", computing->name));
    mini_return(outer, "y", mini_done(branch));
    convert(model, placed, outer);
    check_signature(handing, TARE_DT_BFLOAT16, TARE_DT_BFLOAT16);
    check_signature(computing, TARE_DT_BFLOAT16, TARE_DT_BFLOAT16);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_only_handed_on__are_cast_once),
        cmocka_unit_test(values_that_are_computed_with__are_bfloat16),
        cmocka_unit_test(branches__agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
