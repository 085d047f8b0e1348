/* Functions that attributes refer to are found whatever way the attribute was set. */
#include "graph/attr.h"
#include "support/mini_model.h"

static tare_status count(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    (void)node;
    assert_non_null(callee);
    ++*(int *)arg;
    return TARE_OK;
}

static int functions_of(const struct tare_node *node) {
    int found = 0;
    mini_ok(tare_node_each_function(node, count, &found));
    return found;
}

static void functions_of_attributes__are_visited(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *branches[2] = { tare_model_add_function(model, "one"), tare_model_add_function(model, "two") };
    struct tare_node *node = tare_graph_add(model->main, "NoOp", "plain");
    struct tare_node *single = tare_graph_add(model->main, "NoOp", "single");
    struct tare_node *list = tare_graph_add(model->main, "NoOp", "list");
    struct tare_node *copy = tare_graph_add(model->main, "NoOp", "copy");
    (void)state;
    mini_ok(tare_node_set_int(node, "_n", 1));
    mini_ok(tare_node_set_func(single, "_f", "two"));
    mini_ok(tare_node_set_func_list(list, "_branches", branches, 2));
    mini_ok(tare_node_copy_attrs(copy, list));
    assert_int_equal(functions_of(node), 0);
    assert_int_equal(functions_of(single), 1);
    assert_int_equal(functions_of(list), 2);
    assert_int_equal(functions_of(copy), 2);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_attributes__are_visited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
