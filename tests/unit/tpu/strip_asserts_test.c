/* What leaves TPU functions because compilation would drop it, and who keeps it. */
#include "tpu/strip_asserts.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/detect_converted.h"

#include <string.h>

static const char *const words[] = { "wrong" };

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *inner, *chosen;
    struct tare_tpu_stripped dropped;
};

/* chosen(x) = inner(x); inner has an assertion and a product with a control input from it. */
static void set_up(struct fixture *f) {
    struct tare_edge x, assertion, product;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->inner = tare_model_add_function(f->model, "inner");
    x = mini_arg(f->inner, "x", TARE_DT_FLOAT);
    assertion = mini_node(f->inner, "Assert", "assert", 2, mini_bool(f->inner, "ok", true),
                          mini_strings(f->inner, "text", 1, words));
    mini_ok(tare_node_add_control(assertion.node, mini_node(f->inner, "TestEffect", "before", 1, x).node));
    product = mini_node(f->inner, "Mul", "mul", 2, x, x);
    mini_ok(tare_node_add_control(product.node, assertion.node));
    mini_return(f->inner, "y", product);
    f->chosen = tare_model_add_function(f->model, "chosen");
    x = mini_arg(f->chosen, "x", TARE_DT_FLOAT);
    mini_return(f->chosen, "y", mini_call(f->chosen, "PartitionedCall", "call", f->inner, 1, x));
}

static void drop(struct fixture *f) {
    mini_ok(tare_tpu_strip_asserts(&f->dropped, &f->arena, &f->chosen, 1));
}

static void tear_down(struct fixture *f) {
    f->model->n_aliases = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void an_assertion__leaves_with_its_message(void **state) {
    struct fixture f;
    struct tare_node *mul;
    (void)state;
    set_up(&f);
    drop(&f);
    assert_int_equal(f.dropped.assertions, 1);
    assert_int_equal(f.dropped.copies, 0);
    assert_int_equal(graph_count(f.inner, "Assert"), 0);
    assert_int_equal(graph_count(f.inner, "Const"), 0);
    mul = graph_node(f.inner, "mul");
    assert_int_equal(mul->n_controls, 1);
    assert_string_equal(mul->controls[0]->name, "before"); /* the order of effects stays */
    tear_down(&f);
}

static void functions_that_the_cpu_calls__keep_theirs(void **state) {
    struct fixture f;
    struct tare_edge x;
    struct tare_graph *used;
    (void)state;
    set_up(&f);
    x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
    mini_call(f.model->main, "PartitionedCall", "on_cpu", f.inner, 1, x);
    drop(&f);
    assert_int_equal(f.dropped.copies, 1);
    assert_int_equal(graph_count(f.inner, "Assert"), 1);
    used = tare_node_function(graph_node(f.chosen, "call"), "f");
    assert_non_null(used);
    assert_ptr_not_equal(used, f.inner);
    assert_int_equal(graph_count(used, "Assert"), 0);
    assert_ptr_equal(tare_node_function(graph_node(f.model->main, "on_cpu"), "f"), f.inner);
    graph_check_dtypes(f.model);
    tear_down(&f);
}

/* The middle function has no assertion itself, but what it calls must be another function on the TPU. */
static void a_shared_caller__is_copied_too(void **state) {
    struct fixture f;
    struct tare_graph *middle;
    struct tare_alias alias;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    middle = tare_model_add_function(f.model, "middle");
    x = mini_arg(middle, "x", TARE_DT_FLOAT);
    mini_return(middle, "y", mini_call(middle, "PartitionedCall", "down", f.inner, 1, x));
    mini_ok(tare_node_set_func(graph_node(f.chosen, "call"), "f", "middle"));
    alias = (struct tare_alias){ "middle", "for_loaders" };
    f.model->aliases = &alias;
    f.model->n_aliases = 1;
    drop(&f);
    assert_int_equal(f.dropped.copies, 2);
    assert_ptr_equal(tare_node_function(graph_node(middle, "down"), "f"), f.inner);
    assert_int_equal(graph_count(f.inner, "Assert"), 1);
    tear_down(&f);
}

static void handles_of_lists__are_passed_on_directly(void **state) {
    struct fixture f;
    struct tare_edge list;
    struct tare_node *node;
    (void)state;
    set_up(&f);
    list = mini_arg(f.chosen, "list", TARE_DT_VARIANT);
    node = mini_node(f.chosen, "Identity", "same", 1, list).node;
    mini_return(f.chosen, "list_out", (struct tare_edge){ node, 0 });
    drop(&f);
    assert_int_equal(f.dropped.identities, 1);
    assert_int_equal(graph_count(f.chosen, "Identity"), 0);
    assert_ptr_equal(f.chosen->returns[1].edge.node, list.node);
    tear_down(&f);
}

static void what_is_on_the_tpu__is_recognised(void **state) {
    struct fixture f;
    struct tare_tpu_converted existing;
    struct tare_node *call;
    (void)state;
    set_up(&f);
    call = mini_open(f.inner, "TPUPartitionedCall", "on_tpu", 0);
    mini_ok(tare_node_set_func(call, "f", "chosen"));
    mini_fails(tare_tpu_refuse_converted(&f.arena, &f.chosen, 1),
               "function chosen is on the TPU already (node 'on_tpu' (TPUPartitionedCall) in inner)");
    call->op = "BatchFunction";
    mini_fails(tare_tpu_refuse_converted(&f.arena, &f.chosen, 1),
               "function chosen cannot go to the TPU: node 'on_tpu' (BatchFunction) in inner batches requests");
    mini_ok(tare_tpu_detect_converted(&existing, &f.arena, f.model));
    assert_int_equal(existing.batchers, 0); /* no signature reaches it */
    tare_node_remove(call);
    mini_ok(tare_tpu_refuse_converted(&f.arena, &f.chosen, 1));
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assertion__leaves_with_its_message),
        cmocka_unit_test(functions_that_the_cpu_calls__keep_theirs),
        cmocka_unit_test(a_shared_caller__is_copied_too),
        cmocka_unit_test(handles_of_lists__are_passed_on_directly),
        cmocka_unit_test(what_is_on_the_tpu__is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
