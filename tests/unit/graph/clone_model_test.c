/* Clones of models: the same computation, in memory of its own. */
#include "graph/clone.h"
#include "calib/fingerprint.h"
#include "convert/prepared_model.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "support/models.h"

#include <stdio.h>
#include <string.h>

/* y = f(x) + v with f(x) = -x, a signature, and a stand-in inside f. */
static struct tare_graph_model *small_model(struct tare_signature *signature, struct tare_binding bindings[2]) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge neg = mini_node(f, "Neg", "neg", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    mini_return(f, "y", neg);
    mini_ok(tare_model_add_stand_in(model, neg.node, "before"));
    struct tare_edge v = mini_variable(model, "v", 5);
    struct tare_node *read = mini_open(model->main, "ReadVariableOp", "read", 1, v);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    bindings[0] = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_scalar() };
    bindings[1] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_scalar() };
    bindings[0].edge = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    bindings[1].edge =
        mini_node(model->main, "AddV2", "y", 2,
                  mini_call(model->main, "PartitionedCall", "call", f, 1, bindings[0].edge), mini_done(read));
    *signature = (struct tare_signature){ "test", "", &bindings[0], 1, &bindings[1], 1, NULL };
    model->signatures = signature;
    model->n_signatures = 1;
    return model;
}

static double run(const struct tare_graph_model *model, double x) {
    struct tare_session *session = mini_session(model);
    const double y = mini_number(session, model->signatures[0].inputs[0].edge, x, model->signatures[0].outputs[0].edge);
    tare_session_free(session);
    return y;
}

static void clone__runs_and_changes_on_its_own(void **state) {
    struct tare_signature signature;
    struct tare_binding bindings[2];
    struct tare_graph_model *model = small_model(&signature, bindings), *clone;
    (void)state;
    mini_ok(tare_model_clone(&clone, model));
    struct tare_graph *f = tare_model_find_function(clone, "f");
    struct tare_node *neg = graph_only(f, "Neg");
    assert_true(run(clone, 2) == 3);
    assert_ptr_equal(clone->signatures[0].outputs[0].edge.node->graph, clone->main);
    assert_ptr_equal(clone->variables[0].node->graph, clone->main);
    assert_ptr_equal(clone->stand_ins[0].node, neg);
    assert_string_equal(clone->stand_ins[0].original, "before");
    mini_ok(tare_model_add_stand_in(clone, neg, "later")); /* known: changed in its place */
    assert_int_equal(clone->n_stand_ins, 1);
    assert_string_equal(clone->stand_ins[0].original, "later");
    assert_string_equal(model->stand_ins[0].original, "before");
    tare_graph_set_return(f, 0, mini_node(f, "Abs", "abs", 1, neg->inputs[0]));
    tare_node_remove(neg);
    tare_graph_sweep(f);
    assert_true(run(clone, -2) == 7);
    assert_true(run(model, -2) == 7);
    assert_true(run(clone, 2) == 7);
    assert_true(run(model, 2) == 3);
    tare_model_free(clone);
    assert_true(run(model, 2) == 3);
    tare_model_free(model);
}

/* The list grows after numbers of stand-ins that are powers of two only; a clone may begin with any number. */
static void clone__takes_more_stand_ins(void **state) {
    enum { BEFORE = 5, AFTER = 12 };
    struct tare_graph_model *model = mini_model_new(), *clone;
    struct tare_edge nodes[AFTER];
    char text[16];
    (void)state;
    for (int i = 0; i < AFTER; i++) {
        snprintf(text, sizeof text, "c%d", i);
        nodes[i] = mini_float(model->main, text, 1);
        if (i < BEFORE) mini_ok(tare_model_add_stand_in(model, nodes[i].node, "before"));
    }
    mini_ok(tare_model_clone(&clone, model));
    char *other = tare_arena_calloc(&clone->arena, 1, 256);
    assert_non_null(other);
    for (int i = BEFORE; i < AFTER; i++)
        mini_ok(tare_model_add_stand_in(clone, tare_graph_find(clone->main, nodes[i].node->name), "later"));
    for (int i = 0; i < 256; i++)
        assert_int_equal(other[i], 0);
    assert_int_equal(clone->n_stand_ins, AFTER);
    for (int i = 0; i < AFTER; i++) {
        assert_string_equal(clone->stand_ins[i].node->name, nodes[i].node->name);
        assert_string_equal(clone->stand_ins[i].original, i < BEFORE ? "before" : "later");
    }
    tare_model_free(clone);
    tare_model_free(model);
}

static void clone__of_a_prepared_model_has_its_fingerprint(void **state) {
    struct tare_file_list names = models_list();
    size_t compared = 0;
    (void)state;
    for (size_t i = 0; i < names.count; i++) {
        struct tare_graph_model *model, *clone;
        uint64_t expected[2], got[2];
        const tare_status status = tare_load_prepared(&model, models_path(names.names[i]));
        if (status != TARE_OK) { /* one of the damaged models */
            tare_error_clear();
            continue;
        }
        mini_ok(tare_model_clone(&clone, model));
        for (size_t k = 0; k < model->n_variables; k++) /* handles of frozen variables are removed, not cloned */
            if (model->variables[k].node && model->variables[k].node->dead) model->variables[k].node = NULL;
        mini_ok(tare_model_fingerprint(expected, model));
        mini_ok(tare_model_fingerprint(got, clone));
        if (memcmp(expected, got, sizeof got) != 0) fail_msg("%s: another fingerprint", names.names[i]);
        tare_model_free(clone);
        tare_model_free(model);
        compared++;
    }
    assert_true(compared >= 50);
    tare_file_list_free(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clone__runs_and_changes_on_its_own),
        cmocka_unit_test(clone__takes_more_stand_ins),
        cmocka_unit_test(clone__of_a_prepared_model_has_its_fingerprint),
    };
    if (!models_folder()) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
