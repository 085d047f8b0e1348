/* Folding of constants: results that are the same are stored once; calls of functions are computed. */
#include "convert/pass.h"
#include "support/mini_model.h"

#include <string.h>

enum { COUNT = 512 };

static struct tare_edge numbers(struct tare_graph *graph, const char *name, float first) {
    const struct tare_shape shape = tare_shape_make(1, COUNT);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < COUNT; i++)
        TARE_DATA(float, &value)[i] = first + (float)i;
    const struct tare_edge edge = { tare_graph_add_const(graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

/* The input number `i` of the sums, after folding. */
static const struct tare_node *addend(const struct tare_graph *graph, const char *sum) {
    return tare_graph_find(graph, sum)->inputs[1].node;
}

static void fold_constants__equal_results_are_one_constant(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), first = numbers(g, "first", 0);
    const struct tare_edge second = numbers(g, "second", 1);
    size_t changes = 0;
    (void)state;
    const struct tare_edge a = mini_node(g, "Neg", "a", 1, first), b = mini_node(g, "Neg", "b", 1, first);
    const struct tare_edge c = mini_node(g, "Neg", "c", 1, second);
    struct tare_edge y = mini_node(g, "AddV2", "with_a", 2, x, a);
    y = mini_node(g, "AddV2", "with_b", 2, y, b);
    y = mini_node(g, "AddV2", "with_c", 2, y, c);
    mini_ok(tare_pass_fold_constants.run(model, &changes));
    assert_int_equal(changes, 3);
    assert_string_equal(addend(g, "with_a")->op, "Const");
    assert_ptr_equal(addend(g, "with_a"), addend(g, "with_b"));
    assert_ptr_not_equal(addend(g, "with_a"), addend(g, "with_c"));
    assert_true(TARE_CONST_DATA(float, tare_node_tensor(addend(g, "with_c"), "value"))[2] == -3);
    tare_model_free(model);
}

/* ---- calls ---- */

/* name(x) = x + step, by an op that TestAdd or TestEffect is. */
static struct tare_graph *adder(struct tare_graph_model *model, const char *name, float step, bool has_effect) {
    struct tare_graph *f = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    if (has_effect) x = mini_node(f, "TestEffect", "effect", 1, x);
    mini_return(f, "y", mini_node(f, "TestAdd", "sum", 2, x, mini_float(f, "step", step)));
    return f;
}

/* What is added to x at the end of a graph that adds `value`, after folding; the node itself if it is no constant. */
static const struct tare_node *folded(struct tare_graph_model *model, struct tare_edge value) {
    size_t changes = 0;
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    (void)mini_node(model->main, "AddV2", "end", 2, x, value);
    mini_ok(tare_pass_fold_constants.run(model, &changes));
    return addend(model->main, "end");
}

static void assert_folded_to(const struct tare_node *node, float expected) {
    assert_string_equal(node->op, "Const");
    assert_float_equal(TARE_CONST_DATA(float, tare_node_tensor(node, "value"))[0], expected, 0);
}

static void calls__of_constants_are_computed(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = adder(model, "inner", 2, false), *outer = tare_model_add_function(model, "outer");
    (void)state;
    const struct tare_edge arg = mini_arg(outer, "x", TARE_DT_FLOAT);
    mini_return(outer, "y", mini_call(outer, "PartitionedCall", "call", inner, 1, arg));
    const struct tare_edge y =
        mini_call(model->main, "StatefulPartitionedCall", "call", outer, 1, mini_float(model->main, "c", 3));
    assert_folded_to(folded(model, y), 5);
    tare_model_free(model);
}

static void calls__with_effects_stay(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = adder(model, "f", 2, true);
    (void)state;
    const struct tare_edge y = mini_call(model->main, "PartitionedCall", "call", f, 1, mini_float(model->main, "c", 3));
    assert_string_equal(folded(model, y)->op, "PartitionedCall");
    tare_model_free(model);
}

static void branches__of_constants_are_computed(void **state) {
    for (int taken = 0; taken < 2; taken++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *then = adder(model, "then", 2, false), *otherwise = adder(model, "otherwise", 4, false);
        (void)state;
        struct tare_node *node = mini_open(model->main, "StatelessIf", "if", 2, mini_bool(model->main, "b", taken),
                                           mini_float(model->main, "c", 3));
        mini_ok(tare_node_set_func(node, "then_branch", then->name));
        mini_ok(tare_node_set_func(node, "else_branch", otherwise->name));
        mini_ok(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
        mini_ok(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
        assert_folded_to(folded(model, mini_done(node)), taken ? 5 : 7);
        tare_model_free(model);
    }
}

/* Adds 2 until the limit is reached. */
static struct tare_edge loop(struct tare_graph_model *model, float limit) {
    struct tare_graph *body = adder(model, "body", 2, false), *condition = tare_model_add_function(model, "condition");
    const struct tare_edge x = mini_arg(condition, "x", TARE_DT_FLOAT);
    mini_return(condition, "less",
                mini_node(condition, "TestLess", "less", 2, x, mini_float(condition, "limit", limit)));
    struct tare_node *node = mini_open(model->main, "StatelessWhile", "loop", 1, mini_float(model->main, "c", 3));
    mini_ok(tare_node_set_func(node, "cond", condition->name));
    mini_ok(tare_node_set_func(node, "body", body->name));
    mini_ok(tare_node_set_type_list(node, "T", (int[]){ TARE_DT_FLOAT }, 1));
    return mini_done(node);
}

static void loops__of_constants_are_computed(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    assert_folded_to(folded(model, loop(model, 10)), 11);
    tare_model_free(model);
}

/* 3 + 2 + 2 … stays below the limit where a step is half a unit in the last place: the loop has no end. */
static void loops__without_end_stay(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    assert_string_equal(folded(model, loop(model, 1e30f))->op, "StatelessWhile");
    tare_model_free(model);
}

/* ---- entries of stacks ---- */

/* An entry of a stack of two rows by a number of the model. */
static struct tare_edge entry(struct tare_graph *graph, const float *values) {
    const struct tare_shape shape = tare_shape_make(2, 2, 3);
    struct tare_tensor stack;
    mini_ok(tare_tensor_from(&stack, TARE_DT_FLOAT, &shape, values));
    struct tare_node *pack = mini_open(graph, "Pack", "begin", 2, mini_placeholder(graph, "number", TARE_DT_INT32),
                                       mini_int(graph, "zero", 0));
    const struct tare_edge edge = { tare_graph_add_const(graph, "stack", &stack), 0 }, begin = mini_done(pack);
    tare_tensor_reset(&stack);
    struct tare_node *slice = mini_open(graph, "XlaDynamicSlice", "entry", 3, edge, begin,
                                        mini_ints(graph, "sizes", 2, (const int32_t[]){ 1, 3 }));
    mini_ok(tare_node_set_type(slice, "Tindices", TARE_DT_INT32));
    return mini_done(slice);
}

static void entries__that_are_equal_need_no_choice(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    const struct tare_node *node = folded(model, entry(model->main, (const float[]){ 4, 5, 6, 4, 5, 6 }));
    assert_string_equal(node->op, "Const");
    const struct tare_tensor *value = tare_node_tensor(node, "value");
    assert_int_equal(value->elements, 3);
    assert_float_equal(TARE_CONST_DATA(float, value)[2], 6, 0);
    tare_model_free(model);
}

static void entries__that_differ_are_chosen(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    const struct tare_node *node = folded(model, entry(model->main, (const float[]){ 4, 5, 6, 4, 5, 7 }));
    assert_string_equal(node->op, "XlaDynamicSlice");
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_constants__equal_results_are_one_constant),
        cmocka_unit_test(calls__of_constants_are_computed),
        cmocka_unit_test(calls__with_effects_stay),
        cmocka_unit_test(branches__of_constants_are_computed),
        cmocka_unit_test(loops__of_constants_are_computed),
        cmocka_unit_test(loops__without_end_stay),
        cmocka_unit_test(entries__that_are_equal_need_no_choice),
        cmocka_unit_test(entries__that_differ_are_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
