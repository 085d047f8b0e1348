/* Calls in the main graph become their bodies: same values, every edge within reach. */
#include "graph/inline.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

static struct tare_graph *function(struct tare_graph_model *model, const char *name) {
    struct tare_graph *graph = tare_model_add_function(model, name);
    assert_non_null(graph);
    return graph;
}

/* twice(x) = x + x; outer(x) = twice(x) + 1 */
static struct tare_graph_model *nested_model(struct tare_edge *x, struct tare_edge *y) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *twice = function(model, "twice"), *outer = function(model, "outer");
    struct tare_edge a = mini_arg(twice, "a", TARE_DT_FLOAT), b = mini_arg(outer, "b", TARE_DT_FLOAT);
    mini_return(twice, "r", mini_node(twice, "TestAdd", "sum", 2, a, a));
    mini_return(outer, "r",
                mini_node(outer, "TestAdd", "one_more", 2, mini_call(outer, "PartitionedCall", "inner", twice, 1, b),
                          mini_float(outer, "one", 1)));
    *x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    *y = mini_node(model->main, "Identity", "y", 1,
                   mini_call(model->main, "StatefulPartitionedCall", "call", outer, 1, *x));
    return model;
}

static double value_of(struct tare_graph_model *model, struct tare_edge x, double fed, struct tare_edge y) {
    struct tare_session *session = mini_session(model);
    double value = mini_number(session, x, fed, y);
    tare_session_free(session);
    return value;
}

static void nested_calls__become_nodes_named_by_their_way(void **state) {
    struct tare_edge x, y;
    struct tare_graph_model *model = nested_model(&x, &y);
    (void)state;
    mini_ok(tare_model_inline_calls(model));
    assert_null(tare_graph_find(model->main, "call"));
    assert_non_null(tare_graph_find(model->main, "call/inner/sum"));
    assert_string_equal(tare_graph_find(model->main, "y")->inputs[0].node->name, "call/one_more");
    assert_true(value_of(model, x, 3, y) == 7);
    tare_model_free(model);
}

static void an_edge_of_a_body__can_be_fed_and_fetched(void **state) {
    struct tare_edge x, y, sum;
    struct tare_graph_model *model = nested_model(&x, &y);
    (void)state;
    mini_ok(tare_model_inline_calls(model));
    sum = (struct tare_edge){ tare_graph_find(model->main, "call/inner/sum"), 0 };
    assert_true(value_of(model, x, 3, sum) == 6);
    assert_true(value_of(model, sum, 10, y) == 11); /* nothing before it runs: x is not fed */
    tare_model_free(model);
}

static void argument_that_is_returned__is_passed_through(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *same = function(model, "same");
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y;
    (void)state;
    mini_return(same, "r", mini_arg(same, "a", TARE_DT_FLOAT));
    y = mini_node(model->main, "Identity", "y", 1, mini_call(model->main, "PartitionedCall", "call", same, 1, x));
    mini_ok(tare_model_inline_calls(model));
    assert_ptr_equal(y.node->inputs[0].node, x.node);
    assert_true(value_of(model, x, 5, y) == 5);
    tare_model_free(model);
}

static void what_waits_for_a_call__waits_for_its_body(void **state) {
    struct tare_edge x, y, late;
    struct tare_graph_model *model = nested_model(&x, &y);
    (void)state;
    late = mini_node(model->main, "Identity", "late", 1, x);
    mini_ok(tare_node_add_control(late.node, tare_graph_find(model->main, "call")));
    mini_ok(tare_model_inline_calls(model));
    assert_int_equal(late.node->n_controls, 1);
    assert_string_equal(late.node->controls[0]->name, "call/one_more");
    tare_model_free(model);
}

static void calls_that_double_at_every_level__are_refused(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = function(model, "f0");
    struct tare_edge x;
    char name[16];
    (void)state;
    mini_return(inner, "r", mini_node(inner, "Identity", "i", 1, mini_arg(inner, "a", TARE_DT_FLOAT)));
    for (int level = 1; level <= 40; level++) {
        snprintf(name, sizeof name, "f%d", level);
        struct tare_graph *outer = function(model, name);
        struct tare_edge a = mini_arg(outer, "a", TARE_DT_FLOAT);
        struct tare_edge one = mini_call(outer, "PartitionedCall", "one", inner, 1, a);
        mini_return(outer, "r", mini_call(outer, "PartitionedCall", "two", inner, 1, one));
        inner = outer;
    }
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    mini_call(model->main, "PartitionedCall", "call", inner, 1, x);
    assert_int_equal(tare_model_inline_calls(model), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "more than 200000 nodes"));
    tare_error_clear();
    tare_model_free(model);
}

static bool is_named(void *arg, const struct tare_graph *callee) {
    return strcmp(callee->name, arg) == 0;
}

/* outer(x) waits for inner's effect and returns what inner returns; the clean function stays a call. */
static void a_functions_calls__give_way_with_their_effects(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = function(model, "inner"), *clean = function(model, "clean"),
                      *outer = function(model, "outer");
    struct tare_edge a = mini_arg(inner, "a", TARE_DT_FLOAT), x, y;
    struct tare_node *effect = mini_node(inner, "TestEffect", "effect", 1, a).node, *call, *after;
    size_t count;
    (void)state;
    mini_return(inner, "r", mini_node(inner, "TestAdd", "sum", 2, a, a));
    inner->control_returns = TARE_NEW(&model->arena, struct tare_control_return);
    inner->control_returns[inner->n_control_returns++] = (struct tare_control_return){ "effect", effect };
    a = mini_arg(clean, "a", TARE_DT_FLOAT);
    mini_return(clean, "r", mini_node(clean, "TestAdd", "twice", 2, a, a));
    a = mini_arg(outer, "a", TARE_DT_FLOAT);
    call = mini_call(outer, "StatefulPartitionedCall", "call", inner, 1, a).node;
    after = mini_node(outer, "TestEffect", "after", 1, a).node;
    mini_ok(tare_node_add_control(after, call));
    mini_return(outer, "r", (struct tare_edge){ call, 0 });
    mini_return(outer, "s", mini_call(outer, "PartitionedCall", "kept", clean, 1, a));
    outer->control_returns = TARE_NEW_ARRAY(&model->arena, struct tare_control_return, 2);
    outer->control_returns[outer->n_control_returns++] = (struct tare_control_return){ "call", call };
    outer->control_returns[outer->n_control_returns++] = (struct tare_control_return){ "after", after };
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    y = mini_call(model->main, "StatefulPartitionedCall", "main", outer, 1, x);
    mini_ok(tare_function_inline_calls(&count, outer, is_named, "inner"));
    assert_int_equal(count, 1);
    assert_null(tare_graph_find(outer, "call"));
    assert_non_null(tare_graph_find(outer, "kept"));
    assert_string_equal(outer->returns[0].edge.node->name, "call/sum");
    assert_int_equal(outer->n_control_returns, 2);
    assert_string_equal(outer->control_returns[0].node->name, "call/effect");
    assert_true(value_of(model, x, 3, y) == 6);
    const char *first = strstr(mini_log.order, "call/effect "), *second = strstr(mini_log.order, "after ");
    if (!first || !second || first > second) fail_msg("ran in the order %s", mini_log.order);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_calls__become_nodes_named_by_their_way),
        cmocka_unit_test(an_edge_of_a_body__can_be_fed_and_fetched),
        cmocka_unit_test(argument_that_is_returned__is_passed_through),
        cmocka_unit_test(what_waits_for_a_call__waits_for_its_body),
        cmocka_unit_test(calls_that_double_at_every_level__are_refused),
        cmocka_unit_test(a_functions_calls__give_way_with_their_effects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
