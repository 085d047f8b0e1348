/* Which sides the nodes that choose have. */
#include "calib/coverage.h"

#include "support/mini_model.h"

#include <string.h>

static void add_function(struct tare_graph_model *model, const char *name, bool is_condition) {
    struct tare_graph *f = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", is_condition ? mini_node(f, "TestLess", "less", 2, x, mini_float(f, "limit", 4)) : x);
}

static struct tare_graph_model *make_model(void) {
    struct tare_graph_model *model = mini_model_new();
    const char *const names[] = { "a", "b", "c" };
    for (int i = 0; i < 3; i++)
        add_function(model, names[i], false);
    add_function(model, "again", true);
    return model;
}

static void assert_side(const struct tare_coverage *coverage, size_t at, const char *function, const char *node,
                        const char *side, const char *target) {
    char text[TARE_COVERAGE_SIDE_TEXT];
    assert_true(at < coverage->count);
    const struct tare_coverage_side *got = &coverage->sides[at];
    assert_string_equal(got->function, function);
    assert_string_equal(got->node, node);
    assert_string_equal(tare_coverage_side_text(text, got), side);
    assert_string_equal(got->target, target);
}

static struct tare_node *open_choice(struct tare_graph *graph, const char *op, const char *name, struct tare_edge first,
                                     struct tare_edge x) {
    int type = TARE_DT_FLOAT;
    struct tare_node *node = mini_open(graph, op, name, 2, first, x);
    mini_ok(tare_node_set_type_list(node, "Tout", &type, 1));
    return node;
}

static void nodes__have_their_sides_in_order(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model();
    struct tare_graph *g = model->main, *f = tare_model_find_function(model, "a");
    struct tare_edge x = mini_float(g, "x", 5), p = mini_bool(g, "p", true);
    struct tare_coverage coverage = { 0 };

    struct tare_node *choice = open_choice(g, "If", "z_if", p, x);
    mini_ok(tare_node_set_func(choice, "else_branch", "b"));
    mini_ok(tare_node_set_func(choice, "then_branch", "c")); /* attributes have no order */
    mini_ok(tare_coverage_add_node(&coverage, choice));

    struct tare_node *loop = mini_open(g, "StatelessWhile", "loop", 1, x);
    mini_ok(tare_node_set_func(loop, "body", "a"));
    mini_ok(tare_node_set_func(loop, "cond", "again"));
    mini_ok(tare_coverage_add_node(&coverage, loop));

    struct tare_node *inner = open_choice(f, "StatelessIf", "inner", mini_bool(f, "q", false), mini_float(f, "v", 1));
    mini_ok(tare_node_set_func(inner, "then_branch", "b"));
    mini_ok(tare_node_set_func(inner, "else_branch", "b"));
    mini_ok(tare_coverage_add_node(&coverage, inner));
    mini_ok(tare_coverage_add_node(&coverage, choice)); /* known */
    mini_ok(tare_coverage_add_node(&coverage, x.node)); /* chooses nothing */
    mini_ok(tare_coverage_add_node(&coverage, mini_call(g, "PartitionedCall", "call", f, 1, x).node));

    assert_true(tare_coverage_side_count(choice) == 2 && tare_coverage_side_count(loop) == 2);
    assert_true(tare_coverage_side_count(x.node) == 0);
    assert_int_equal(coverage.count, 6);
    assert_side(&coverage, 0, "", "loop", "condition", "again");
    assert_side(&coverage, 1, "", "loop", "body", "a");
    assert_side(&coverage, 2, "", "z_if", "then", "c");
    assert_side(&coverage, 3, "", "z_if", "else", "b");
    assert_side(&coverage, 4, "a", "inner", "then", "b");
    assert_side(&coverage, 5, "a", "inner", "else", "b");
    tare_coverage_free(&coverage);
    tare_model_free(model);
}

static void case__has_a_side_a_branch(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model();
    struct tare_graph *g = model->main;
    struct tare_coverage coverage = { 0 };
    struct tare_node *node = open_choice(g, "Case", "case", mini_int(g, "index", 1), mini_float(g, "x", 5));
    mini_ok(tare_node_set_func(node, "branches", "c"));
    /* a list of functions has no setter of its own: the attribute is widened by hand */
    struct tare_attr *attr = (struct tare_attr *)(uintptr_t)tare_node_find_attr(node, "branches");
    union tare_attr_item *items = tare_arena_calloc(&model->arena, 3, sizeof *items);
    const char *const names[] = { "c", "a", "c" };
    for (int k = 0; k < 3; k++)
        items[k].func.name = names[k];
    attr->is_list = true;
    attr->count = 3;
    attr->items = items;
    mini_ok(tare_coverage_add_node(&coverage, node));
    assert_int_equal(tare_coverage_side_count(node), 3);
    assert_int_equal(coverage.count, 3);
    assert_side(&coverage, 0, "", "case", "branch 0", "c");
    assert_side(&coverage, 1, "", "case", "branch 1", "a");
    assert_side(&coverage, 2, "", "case", "branch 2", "c");
    tare_coverage_free(&coverage);
    tare_model_free(model);
}

static void merge__joins_and_keeps_the_order(void **state) {
    (void)state;
    struct tare_coverage one = { 0 }, other = { 0 };
    mini_ok(tare_coverage_add(&one, "", "b", "If", 1, "x"));
    mini_ok(tare_coverage_add(&one, "f", "a", "Case", 10, "y"));
    mini_ok(tare_coverage_add(&other, "", "b", "If", 0, "z"));
    mini_ok(tare_coverage_add(&other, "", "b", "If", 1, "x"));
    mini_ok(tare_coverage_add(&other, "f", "a", "Case", 9, "y"));
    tare_coverage_count(&one, "", "b", 1, 3);
    tare_coverage_count(&other, "", "b", 1, 4);
    tare_coverage_count(&other, "f", "a", 9, INT64_MAX);
    tare_coverage_count(&other, "f", "a", 8, 1); /* is not there */
    mini_ok(tare_coverage_merge(&one, &other));
    assert_int_equal(one.count, 4);
    assert_side(&one, 0, "", "b", "then", "z");
    assert_side(&one, 1, "", "b", "else", "x");
    assert_side(&one, 2, "f", "a", "branch 9", "y");
    assert_side(&one, 3, "f", "a", "branch 10", "y");
    assert_true(one.sides[0].records == 0 && one.sides[1].records == 7 && one.sides[3].records == 0);
    tare_coverage_count(&one, "f", "a", 9, 1);
    assert_true(one.sides[2].records == INT64_MAX);
    tare_coverage_free(&one);
    tare_coverage_free(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes__have_their_sides_in_order),
        cmocka_unit_test(case__has_a_side_a_branch),
        cmocka_unit_test(merge__joins_and_keeps_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
