/* Values of kept variables that call sites pass, before and after the pass: same results, reads where they are used. */
#include "support/diagonal.h"

#include "convert/pass.h"
#include "graph/bindings.h"

/* The value of a kept variable: `value` times the unit matrix. */
static struct tare_edge weight(struct tare_graph_model *model, const char *name, float value) {
    struct tare_node *read =
        mini_open(model->main, "ReadVariableOp", "read", 1, diagonal_variable(model, name, DIAGONAL_SIDE, value));
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    return mini_node(model->main, "Identity", "value", 1, mini_done(read));
}

static void run_passes(struct tare_graph_model *model) {
    size_t changes = 0;
    model->keep_variables_from = 1;
    mini_ok(tare_pass_freeze.run(model, &changes));
    mini_ok(tare_pass_localize_variables.run(model, &changes));
}

/* Name of the variable that the weight of a function's product always is. */
static const char *weight_of(const struct tare_graph *function) {
    struct tare_edge w = tare_graph_find(function, "product")->inputs[1];
    struct tare_bindings *bindings;
    const struct tare_variable *variable;
    assert_string_equal(w.node->op, "ReadVariableOp");
    mini_ok(tare_bindings_new(&bindings, function->model));
    variable = tare_bindings_variable(bindings, w.node->inputs[0], NULL);
    tare_bindings_free(bindings);
    assert_non_null(variable);
    return variable->node->name;
}

static void same_variable__is_read_in_the_function(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = diagonal_product(model, "f");
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), w = weight(model, "w", 3);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "first", f, 2, x, w);
    y = mini_call(model->main, "StatefulPartitionedCall", "second", f, 2, y, w);
    run_passes(model);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 9);
    assert_int_equal(f->n_args, 2); /* x and the handle */
    assert_string_equal(weight_of(f), "w");
    assert_true(f->is_stateful);
    assert_string_equal(tare_graph_find(model->main, "first")->op, "StatefulPartitionedCall");
    tare_model_free(model);
}

/* h(x, a, b) calls g twice, which calls f twice; main passes two variables. */
static void other_variables__get_copies_at_any_depth(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = diagonal_product(model, "f"), *g = tare_model_add_function(model, "g"),
                      *h = tare_model_add_function(model, "h");
    (void)state;
    struct tare_edge x = mini_arg(g, "x", TARE_DT_FLOAT), a = mini_arg(g, "w", TARE_DT_FLOAT), b;
    x = mini_call(g, "PartitionedCall", "inner", f, 2, x, a);
    mini_return(g, "y", mini_call(g, "PartitionedCall", "again", f, 2, x, a));
    x = mini_arg(h, "x", TARE_DT_FLOAT), a = mini_arg(h, "a", TARE_DT_FLOAT), b = mini_arg(h, "b", TARE_DT_FLOAT);
    x = mini_call(h, "PartitionedCall", "first", g, 2, x, a);
    mini_return(h, "y", mini_call(h, "PartitionedCall", "second", g, 2, x, b));
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    a = weight(model, "a", 2);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "h", h, 3, x, a, weight(model, "b", 5));
    run_passes(model);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 100);
    for (int i = 0; i < 2; i++) {
        const struct tare_graph *copy = tare_node_function(tare_graph_find(h, i ? "second" : "first"), "f");
        assert_string_equal(weight_of(tare_node_function(tare_graph_find(copy, "again"), "f")), i ? "b" : "a");
    }
    tare_model_free(model);
}

static void branches__read_what_they_use(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *yes = diagonal_product(model, "yes"), *no = tare_model_add_function(model, "no");
    (void)state;
    mini_return(no, "y", mini_arg(no, "x", TARE_DT_FLOAT));
    mini_arg(no, "w", TARE_DT_FLOAT);
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *branch =
        mini_open(model->main, "StatelessIf", "if", 3, mini_bool(model->main, "true", true), x, weight(model, "w", 4));
    mini_ok(tare_node_set_func(branch, "then_branch", "yes"));
    mini_ok(tare_node_set_func(branch, "else_branch", "no"));
    mini_ok(tare_node_set_type_list(branch, "Tout", (const int[]){ TARE_DT_FLOAT }, 1));
    struct tare_edge y = mini_done(branch);
    run_passes(model);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 4);
    assert_string_equal(weight_of(yes), "w");
    assert_int_equal(no->n_args, yes->n_args);
    assert_string_equal(branch->op, "If");
    tare_model_free(model);
}

/* for (i = 0; i < 3; i++) x = x * w, with w carried through every step. */
static struct tare_node *loop_model(struct tare_graph_model *model, struct tare_edge x, bool changes_weight) {
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_edge i = mini_arg(cond, "i", TARE_DT_INT32);
    mini_arg(cond, "w", TARE_DT_FLOAT);
    mini_arg(cond, "x", TARE_DT_FLOAT);
    mini_return(cond, "more", mini_node(cond, "Less", "less", 2, i, mini_int(cond, "limit", 3)));
    i = mini_arg(body, "i", TARE_DT_INT32);
    struct tare_edge w = mini_arg(body, "w", TARE_DT_FLOAT), y = mini_arg(body, "x", TARE_DT_FLOAT);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "w", changes_weight ? mini_node(body, "AddV2", "grow", 2, w, w) : w);
    mini_return(body, "x", mini_node(body, "MatMul", "product", 2, y, w));
    struct tare_edge zero = mini_int(model->main, "zero", 0);
    struct tare_node *loop = mini_open(model->main, "StatelessWhile", "loop", 3, zero, weight(model, "w", 2), x);
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_done(loop);
    return loop;
}

static void loop__carries_the_handle(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *loop = loop_model(model, x, false);
    struct tare_edge y = mini_node(model->main, "Identity", "y", 1, (struct tare_edge){ loop, 2 });
    run_passes(model);
    assert_int_equal(loop->n_inputs, 3); /* i, x and the handle */
    assert_string_equal(loop->op, "While");
    assert_string_equal(weight_of(tare_model_find_function(model, "body")), "w");
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 8);
    tare_model_free(model);
}

static void loop__weight_that_changes_stays(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *loop = loop_model(model, x, true);
    struct tare_edge y = mini_node(model->main, "Identity", "y", 1, (struct tare_edge){ loop, 2 });
    run_passes(model);
    assert_string_equal(loop->op, "StatelessWhile");
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 2 * 4 * 8);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_variable__is_read_in_the_function),
        cmocka_unit_test(other_variables__get_copies_at_any_depth),
        cmocka_unit_test(branches__read_what_they_use),
        cmocka_unit_test(loop__carries_the_handle),
        cmocka_unit_test(loop__weight_that_changes_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
