/* Nodes moved into a function of their own: the same values, and effects in the same order. */
#include "graph/outline.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *outer, *inner;
    struct tare_edge x, y;
};

/* outer(x): a = x + 1, b = a + a, c = b + x; y = c. */
static void set_up(struct fixture *f) {
    struct tare_edge x, a, b;
    f->model = mini_model_new();
    f->outer = tare_model_add_function(f->model, "outer");
    x = mini_arg(f->outer, "x", TARE_DT_FLOAT);
    a = mini_node(f->outer, "TestAdd", "a", 2, x, mini_float(f->outer, "one", 1));
    b = mini_node(f->outer, "TestAdd", "Scope/b", 2, a, a);
    mini_return(f->outer, "y", mini_node(f->outer, "TestAdd", "c", 2, b, x));
    f->x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    f->y = mini_call(f->model->main, "StatefulPartitionedCall", "call", f->outer, 1, f->x);
}

static void outline(struct fixture *f, int n, const char *const *names) {
    bool chosen[16] = { false };
    for (int i = 0; i < n; i++)
        chosen[graph_node(f->outer, names[i])->position] = true;
    mini_ok(tare_graph_outline(&f->inner, f->outer, chosen, "inner"));
    graph_check_dtypes(f->model);
}

static double value(const struct fixture *f, double x) {
    struct tare_session *session = mini_session(f->model);
    double y = mini_number(session, f->x, x, f->y);
    tare_session_free(session);
    return y;
}

static void what_goes_in__becomes_arguments_and_constants_go_along(void **state) {
    struct fixture f;
    struct tare_node *call;
    (void)state;
    set_up(&f);
    outline(&f, 2, (const char *const[]){ "a", "Scope/b" });
    call = graph_only(f.outer, "StatefulPartitionedCall");
    assert_int_equal(call->n_inputs, 1); /* x, though two nodes took it before */
    assert_int_equal(f.inner->n_args, 1);
    assert_string_equal(f.inner->args[0]->name, "x");
    assert_int_equal(graph_count(f.inner, "Const"), 1);
    assert_int_equal(f.inner->n_returns, 1); /* b; nobody outside uses a */
    assert_null(tare_graph_find(f.outer, "a"));
    assert_true(value(&f, 3) == 11);
    tare_model_free(f.model);
}

static void the_call__has_a_valid_name_though_the_function_has_none(void **state) {
    const bool chosen[16] = { true, true, true, true };
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_ok(tare_graph_outline(&f.inner, f.outer, chosen, "__inference_<lambda>_6_tpu"));
    assert_string_equal(graph_only(f.outer, "StatefulPartitionedCall")->name, "inference__lambda__6_tpu");
    assert_true(value(&f, 3) == 11);
    tare_model_free(f.model);
}

static void a_result_of_the_graph__is_returned_by_the_call(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    outline(&f, 1, (const char *const[]){ "c" });
    assert_int_equal(f.inner->n_args, 2);
    assert_string_equal(f.inner->args[0]->name, "scope_b"); /* as names of arguments may be */
    assert_string_equal(f.outer->returns[0].edge.node->op, "StatefulPartitionedCall");
    assert_true(value(&f, 3) == 11);
    tare_model_free(f.model);
}

static void effects__keep_their_order(void **state) {
    struct fixture f;
    struct tare_node *before, *during, *after, *call;
    (void)state;
    set_up(&f);
    const struct tare_edge x = { f.outer->args[0], 0 };
    before = mini_node(f.outer, "TestEffect", "before", 1, x).node;
    during = mini_node(f.outer, "TestEffect", "during", 1, x).node;
    after = mini_node(f.outer, "TestEffect", "after", 1, x).node;
    mini_ok(tare_node_add_control(during, before));
    mini_ok(tare_node_add_control(after, during));
    mini_ok(tare_node_add_control(after, graph_node(f.outer, "a")));
    outline(&f, 2, (const char *const[]){ "a", "during" });
    call = graph_only(f.outer, "StatefulPartitionedCall");
    assert_int_equal(call->n_controls, 1);
    assert_ptr_equal(call->controls[0], before);
    assert_int_equal(after->n_controls, 1); /* once, for both */
    assert_ptr_equal(after->controls[0], call);
    assert_int_equal(f.inner->n_control_returns, 2);
    assert_true(value(&f, 3) == 11);
    const char *first = strstr(mini_log.order, "before "), *second = strstr(mini_log.order, "during ");
    if (!first || !second || first > second || !strstr(second, "after "))
        fail_msg("ran in the order %s", mini_log.order);
    tare_model_free(f.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in__becomes_arguments_and_constants_go_along),
        cmocka_unit_test(the_call__has_a_valid_name_though_the_function_has_none),
        cmocka_unit_test(a_result_of_the_graph__is_returned_by_the_call),
        cmocka_unit_test(effects__keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
