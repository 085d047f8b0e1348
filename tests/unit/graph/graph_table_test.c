/* Values of graphs, by the number of the graph. */
#include "graph/graph_table.h"
#include "graph/calls.h"
#include "support/mini_model.h"

#include <stdio.h>

enum { FUNCTIONS = 300 };

static struct tare_graph *function(struct tare_graph_model *model, int number) {
    char name[32];
    snprintf(name, sizeof name, "f%d", number);
    struct tare_graph *graph = tare_model_add_function(model, name);
    assert_non_null(graph);
    return graph;
}

static void values__are_those_of_their_graphs(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph_table table = { 0 };
    struct tare_graph *functions[FUNCTIONS];
    static int values[FUNCTIONS];
    (void)state;
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i] = function(model, i);
    assert_null(tare_graph_table_get(&table, functions[0]));
    for (int i = FUNCTIONS - 1; i >= 0; i -= 3)
        assert_true(tare_graph_table_set(&table, functions[i], &values[i]));
    for (int i = 0; i < FUNCTIONS; i++)
        assert_ptr_equal(tare_graph_table_get(&table, functions[i]), i % 3 == 2 ? &values[i] : NULL);
    assert_null(tare_graph_table_get(&table, model->main));
    assert_true(tare_graph_table_set(&table, functions[2], &values[0]));
    assert_ptr_equal(tare_graph_table_get(&table, functions[2]), &values[0]);
    tare_graph_table_free(&table);
    assert_null(tare_graph_table_get(&table, functions[2]));
    tare_model_free(model);
}

static void functions__added_after_a_removal_have_no_value(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph_table table = { 0 };
    struct tare_graph *removed = function(model, 0);
    int value;
    (void)state;
    assert_true(tare_graph_table_set(&table, removed, &value));
    tare_model_remove_functions(model, (const bool[]){ false });
    assert_int_equal(model->n_functions, 0);
    assert_null(tare_graph_table_get(&table, function(model, 1)));
    tare_graph_table_free(&table);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values__are_those_of_their_graphs),
        cmocka_unit_test(functions__added_after_a_removal_have_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
