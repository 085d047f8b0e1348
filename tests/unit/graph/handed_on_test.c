/* Which inputs the results of loops, branches and calls are. */
#include "graph/handed_on.h"

#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

/* A function of two numbers that returns them, or the sum of both instead of one. */
static struct tare_graph *add_pair(struct tare_graph_model *model, const char *name, int first, int second, bool sums) {
    struct tare_graph *function = tare_model_add_function(model, name);
    const struct tare_edge args[] = { mini_arg(function, "a", TARE_DT_INT32), mini_arg(function, "b", TARE_DT_INT32) };
    const struct tare_edge same = mini_node(function, "Identity", "same", 1, args[first]);
    const struct tare_edge sum = mini_node(function, "TestAdd", "sum", 2, args[0], args[1]);
    mini_return(function, "x", same);
    mini_return(function, "y", sums ? sum : args[second]);
    return function;
}

static const int two_types[] = { TARE_DT_INT32, TARE_DT_INT32 };

/* A loop over two variables with this body, whose condition is no matter here. */
static struct tare_node *add_loop(struct tare_graph *graph, const char *body, struct tare_edge a, struct tare_edge b) {
    if (!tare_model_find_function(graph->model, "condition")) {
        struct tare_graph *condition = tare_model_add_function(graph->model, "condition");
        mini_arg(condition, "a", TARE_DT_INT32);
        mini_arg(condition, "b", TARE_DT_INT32);
        mini_return(condition, "more", mini_bool(condition, "no", false));
    }
    struct tare_node *loop = mini_open(graph, "StatelessWhile", "loop", 2, a, b);
    mini_ok(tare_node_set_type_list(loop, "T", two_types, 2));
    mini_ok(tare_node_set_func(loop, "cond", "condition"));
    mini_ok(tare_node_set_func(loop, "body", body));
    mini_done(loop);
    return loop;
}

static struct tare_node *add_if(struct tare_graph *graph, const char *then_branch, const char *else_branch,
                                struct tare_edge a, struct tare_edge b) {
    struct tare_node *node = mini_open(graph, "StatelessIf", "if", 3, mini_bool(graph, "p", true), a, b);
    mini_ok(tare_node_set_type_list(node, "Tin", two_types, 2));
    mini_ok(tare_node_set_type_list(node, "Tout", two_types, 2));
    mini_ok(tare_node_set_func(node, "then_branch", then_branch));
    mini_ok(tare_node_set_func(node, "else_branch", else_branch));
    mini_done(node);
    return node;
}

static void a_loop__keeps_what_its_body_returns_unchanged(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge a = mini_int(model->main, "a", 1), b = mini_int(model->main, "b", 2);
    (void)state;
    const struct tare_graph *body = add_pair(model, "body", 0, 1, true);
    assert_true(tare_loop_keeps(body, 0));
    assert_false(tare_loop_keeps(body, 1));
    const struct tare_node *loop = add_loop(model->main, "body", a, b);
    assert_int_equal(tare_call_hands_on(loop, 0), 0);
    assert_true(tare_call_hands_on(loop, 1) == SIZE_MAX);
    const struct tare_graph *swap = add_pair(model, "swap", 1, 0, false);
    assert_false(tare_loop_keeps(swap, 0));
    tare_model_free(model);
}

static void branches__hand_on_what_all_of_them_return(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge a = mini_int(model->main, "a", 1), b = mini_int(model->main, "b", 2);
    (void)state;
    add_pair(model, "second", 1, 1, false);
    add_pair(model, "both", 1, 0, false);
    const struct tare_node *node = add_if(model->main, "second", "both", a, b);
    assert_int_equal(tare_call_hands_on(node, 0), 2); /* after the condition */
    assert_true(tare_call_hands_on(node, 1) == SIZE_MAX);
    assert_true(tare_call_hands_on(a.node, 0) == SIZE_MAX);
    tare_model_free(model);
}

/* body: a loop in a branch in a loop */
static void a_loop__keeps_what_the_calls_of_its_body_hand_on(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *branch = tare_model_add_function(model, "branch"),
                      *outer = tare_model_add_function(model, "outer");
    (void)state;
    add_pair(model, "inner", 0, 1, true);
    add_pair(model, "other", 0, 1, true);
    struct tare_edge a = mini_arg(branch, "a", TARE_DT_INT32), b = mini_arg(branch, "b", TARE_DT_INT32);
    struct tare_node *node = add_loop(branch, "inner", a, b);
    mini_return(branch, "x", (struct tare_edge){ node, 0 });
    mini_return(branch, "y", (struct tare_edge){ node, 1 });
    a = mini_arg(outer, "a", TARE_DT_INT32), b = mini_arg(outer, "b", TARE_DT_INT32);
    node = add_if(outer, "branch", "other", a, b);
    mini_return(outer, "x", (struct tare_edge){ node, 0 });
    mini_return(outer, "y", (struct tare_edge){ node, 1 });
    assert_true(tare_loop_keeps(outer, 0));
    assert_false(tare_loop_keeps(outer, 1));
    tare_model_free(model);
}

/* Each of 40 functions chooses between two calls of the next. */
static void branches__in_branches_without_end_are_given_up(void **state) {
    struct tare_graph_model *model = mini_model_new();
    char name[16], next[16] = "f0";
    (void)state;
    add_pair(model, next, 0, 1, false);
    for (int i = 1; i < 40; i++) {
        struct tare_graph *function;
        snprintf(name, sizeof name, "f%d", i);
        function = tare_model_add_function(model, name);
        const struct tare_edge a = mini_arg(function, "a", TARE_DT_INT32), b = mini_arg(function, "b", TARE_DT_INT32);
        struct tare_node *node = add_if(function, next, next, a, b);
        mini_return(function, "x", (struct tare_edge){ node, 0 });
        mini_return(function, "y", (struct tare_edge){ node, 1 });
        memcpy(next, name, sizeof next);
    }
    assert_false(tare_loop_keeps(tare_model_find_function(model, "f39"), 0));
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop__keeps_what_its_body_returns_unchanged),
        cmocka_unit_test(branches__hand_on_what_all_of_them_return),
        cmocka_unit_test(a_loop__keeps_what_the_calls_of_its_body_hand_on),
        cmocka_unit_test(branches__in_branches_without_end_are_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
