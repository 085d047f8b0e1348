/* What one calibration run observes. */
#include "calib/observed.h"

#include "calib/coverage.h"
#include "support/mini_model.h"

#include <string.h>

static struct tare_edge choose(struct tare_graph *graph, const char *name, struct tare_edge x) {
    int type = TARE_DT_FLOAT;
    struct tare_node *node = mini_open(graph, "If", name, 2, mini_bool(graph, name[0] == 'p' ? "q" : "p", true), x);
    mini_ok(tare_node_set_type_list(node, "Tout", &type, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "half"));
    mini_ok(tare_node_set_func(node, "else_branch", "half"));
    return mini_done(node);
}

/* y = If(If(x)) over Neg nodes of which neither the names nor the order of use are sorted. */
static struct tare_graph_model *small_model(struct tare_signature *signature, struct tare_binding *output) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *half = tare_model_add_function(model, "half");
    mini_return(half, "y", mini_node(half, "Neg", "neg", 1, mini_arg(half, "x", TARE_DT_FLOAT)));
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    for (const char *const *name = (const char *const[]){ "n10", "n9", "n11", "n1", NULL }; *name; name++)
        x = mini_node(model->main, "Neg", *name, 1, x);
    x = choose(model->main, "z_first", x);
    *output = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_scalar() };
    output->edge = choose(model->main, "p_last", x);
    *signature = (struct tare_signature){ "test", "", NULL, 0, output, 1, NULL };
    return model;
}

static void tensors_and_choices__are_sorted_as_in_a_calibration(void **state) {
    struct tare_signature signature;
    struct tare_binding output;
    struct tare_observed observed;
    struct tare_graph_model *model = small_model(&signature, &output);
    const char *const names[] = { "n1", "n10", "n11", "n9", "p_last", "x", "z_first", "neg", "x" };
    (void)state;
    mini_ok(tare_observed_make(&observed, &signature, NULL, NULL, NULL));
    assert_int_equal(observed.n_slots, 9);
    for (size_t i = 0; i < 9; i++) {
        const struct tare_observed_slot *slot = &observed.slots[i];
        assert_string_equal(slot->node->name, names[i]);
        assert_string_equal(slot->node->graph->name, i < 7 ? "" : "half");
        assert_int_equal(tare_observed_find(&observed, slot->node, 0), (int)i);
        assert_int_equal(tare_observed_find(&observed, slot->node, 1), -1);
    }
    assert_int_equal(observed.n_choices, 2);
    assert_string_equal(observed.choices[0]->name, "p_last");
    assert_string_equal(observed.choices[1]->name, "z_first");
    assert_int_equal(observed.n_sides, 4);
    tare_observed_free(&observed);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_and_choices__are_sorted_as_in_a_calibration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
