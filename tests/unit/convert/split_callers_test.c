/* Functions that are called with different variables, before and after the pass: same results, a function for each
 * caller. */
#include "support/diagonal.h"

#include "convert/pass.h"

/* f(x, w) = x * w, where w is a handle */
static struct tare_graph *product(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "f");
    const struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), w = mini_arg(f, "w", TARE_DT_RESOURCE);
    struct tare_node *read = mini_open(f, "ReadVariableOp", "read", 1, w);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_return(f, "y", mini_node(f, "MatMul", "product", 2, x, mini_done(read)));
    return f;
}

static struct tare_edge call(struct tare_graph *graph, const char *name, const struct tare_graph *f, struct tare_edge x,
                             struct tare_edge w) {
    return mini_call(graph, "StatefulPartitionedCall", name, f, 2, x, w);
}

static size_t run_pass(const struct tare_pass *pass, struct tare_graph_model *model) {
    size_t changes = 0;
    mini_ok(pass->run(model, &changes));
    return changes;
}

static bool multiplies_by_a_constant(const struct tare_graph *f) {
    return tare_edge_constant(tare_graph_find(f, "product")->inputs[1]) != NULL;
}

static void callers_with_different_weights__get_a_function_each(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *f = product(model);
    (void)state;
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    const struct tare_edge first = call(model->main, "first", f, x, diagonal_variable(model, "a", DIAGONAL_SIDE, 2));
    const struct tare_edge y = call(model->main, "second", f, first, diagonal_variable(model, "b", DIAGONAL_SIDE, 5));
    assert_int_equal(run_pass(&tare_pass_split_callers, model), 2);
    const struct tare_graph *f1 = tare_node_function(first.node, "f"), *f2 = tare_node_function(y.node, "f");
    assert_true(f1 != f2 && f1 != f && f2 != f);
    assert_string_equal(f1->copied_from, "f");
    run_pass(&tare_pass_freeze, model);
    assert_true(multiplies_by_a_constant(f1) && multiplies_by_a_constant(f2));
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 10);
    tare_model_free(model);
}

/* g(x, a, b) = f(f(x, a), b), called with two pairs of variables: f gets four callers. */
static void nested_callers__get_a_function_each(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *f = product(model);
    struct tare_graph *g = tare_model_add_function(model, "g");
    (void)state;
    struct tare_edge x = mini_arg(g, "x", TARE_DT_FLOAT), a = mini_arg(g, "a", TARE_DT_RESOURCE);
    mini_return(g, "y", call(g, "outer", f, call(g, "inner", f, x, a), mini_arg(g, "b", TARE_DT_RESOURCE)));
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    a = diagonal_variable(model, "a", DIAGONAL_SIDE, 2);
    const struct tare_edge b = diagonal_variable(model, "b", DIAGONAL_SIDE, 3);
    const struct tare_edge first = mini_call(model->main, "StatefulPartitionedCall", "first", g, 3, x, a, b);
    const struct tare_edge y = mini_call(model->main, "StatefulPartitionedCall", "second", g, 3, first, b, a);
    run_pass(&tare_pass_split_callers, model);
    run_pass(&tare_pass_freeze, model);
    size_t constant = 0;
    for (size_t i = 0; i < model->n_functions; i++)
        if (tare_graph_find(model->functions[i], "product")) constant += multiplies_by_a_constant(model->functions[i]);
    assert_int_equal(constant, 4);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 36);
    tare_model_free(model);
}

static void callers_with_one_weight__share_the_function(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *f = product(model);
    (void)state;
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT),
                           w = diagonal_variable(model, "w", DIAGONAL_SIDE, 2);
    const struct tare_edge y = call(model->main, "second", f, call(model->main, "first", f, x, w), w);
    assert_int_equal(run_pass(&tare_pass_split_callers, model), 0);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 4);
    tare_model_free(model);
}

static void small_weights__are_not_worth_a_copy(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *f = product(model);
    (void)state;
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    const struct tare_edge first = call(model->main, "first", f, x, diagonal_variable(model, "a", 4, 2));
    const struct tare_edge y = call(model->main, "second", f, first, diagonal_variable(model, "b", 4, 5));
    assert_int_equal(run_pass(&tare_pass_split_callers, model), 0);
    assert_true(diagonal_answer(model, x, y, 4) == 10);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_with_different_weights__get_a_function_each),
        cmocka_unit_test(nested_callers__get_a_function_each),
        cmocka_unit_test(callers_with_one_weight__share_the_function),
        cmocka_unit_test(small_weights__are_not_worth_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
