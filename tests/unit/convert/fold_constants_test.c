/* Folding of constants: results that are the same are stored once. */
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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(fold_constants__equal_results_are_one_constant) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
