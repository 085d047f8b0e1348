/* Assignments of a value that was read from the same variable, directly or through a call, and those that stay. */
#include "graph/self_assignments.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *top;
    struct tare_edge handle, value; /* in top: of the variable, and what is read from it */
    struct tare_binding out;
    struct tare_signature signature;
};

static struct tare_edge assign(struct tare_graph *graph, const char *name, struct tare_edge handle,
                               struct tare_edge value) {
    struct tare_node *node = mini_open(graph, "AssignVariableOp", name, 2, handle, value);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

static void set_up(struct fixture *f) {
    struct tare_node *read;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->top = tare_model_add_function(f->model, "top");
    f->handle = mini_arg(f->top, "v", TARE_DT_RESOURCE);
    read = mini_open(f->top, "ReadVariableOp", "read", 1, f->handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    f->value = mini_done(read);
    mini_return(f->top, "y", f->value);
}

/* A signature that calls `top` with a variable; *removed assignments. */
static size_t removed_of(struct fixture *f) {
    struct tare_graph *main = f->model->main;
    size_t removed = 0;
    f->out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT };
    f->out.edge = mini_call(main, "StatefulPartitionedCall", "call", f->top, 1, mini_variable(f->model, "v", 2));
    f->signature = (struct tare_signature){ .key = "serving_default", .outputs = &f->out, .n_outputs = 1 };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
    mini_ok(tare_model_remove_self_assignments(f->model, &removed));
    return removed;
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
}

static void value_that_was_read__is_not_assigned(void **state) {
    struct fixture f;
    struct tare_edge last;
    (void)state;
    set_up(&f);
    assign(f.top, "assign", f.handle, mini_node(f.top, "Identity", "same", 1, f.value));
    last = mini_node(f.top, "Identity", "last", 1, f.value);
    mini_ok(tare_node_add_control(last.node, tare_graph_find(f.top, "assign")));
    assert_int_equal(removed_of(&f), 1);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 0);
    assert_ptr_equal(last.node->controls[0], graph_only(f.top, "NoOp"));
    tear_down(&f);
}

static void value_that_a_function_returns_unchanged__is_not_assigned(void **state) {
    struct fixture f;
    struct tare_graph *network;
    struct tare_edge call;
    (void)state;
    set_up(&f);
    network = tare_model_add_function(f.model, "network");
    mini_return(network, "state", mini_node(network, "Identity", "same", 1, mini_arg(network, "state", TARE_DT_FLOAT)));
    call = mini_call(f.top, "PartitionedCall", "network", network, 1, f.value);
    assign(f.top, "assign", f.handle, call);
    assert_int_equal(removed_of(&f), 1);
    tear_down(&f);
}

static void other_values__are_assigned(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assign(f.top, "assign", f.handle, mini_node(f.top, "Tanh", "changed", 1, f.value));
    assert_int_equal(removed_of(&f), 0);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 1);
    tear_down(&f);
}

/* v = read, then another value, then what was read first: the last assignment restores it. */
static void variable_that_is_written_otherwise__keeps_its_assignments(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assign(f.top, "other", f.handle, mini_float(f.top, "five", 5));
    assign(f.top, "back", f.handle, f.value);
    assert_int_equal(removed_of(&f), 0);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 2);
    tear_down(&f);
}

/* ---- states of seed generators ---- */

/* Assignments removed where `top` adds `increment` to the variable of this name in a function that it calls. */
static size_t dropped_of(struct fixture *f, const char *name, bool from_input) {
    struct tare_graph *network = tare_model_add_function(f->model, "network");
    struct tare_edge state = mini_arg(network, "state", TARE_DT_FLOAT);
    struct tare_edge increment = mini_arg(network, "increment", TARE_DT_FLOAT);
    struct tare_edge outside = from_input ? mini_arg(f->top, "x", TARE_DT_FLOAT) : mini_float(f->top, "one", 1);
    struct tare_edge call, both;
    struct tare_dropped_seeds dropped;
    mini_return(network, "next", mini_node(network, "AddV2", "add", 2, state, increment));
    call = mini_call(f->top, "PartitionedCall", "network", network, 2, f->value, outside);
    both = mini_node(f->top, "IdentityN", "both", 2, outside, call);
    both.index = 1;
    assign(f->top, "assign", f->handle, both);
    f->out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT };
    f->out.edge = from_input ? mini_call(f->model->main, "StatefulPartitionedCall", "call", f->top, 2,
                                         mini_variable(f->model, name, 2), mini_float(f->model->main, "two", 2))
                             : mini_call(f->model->main, "StatefulPartitionedCall", "call", f->top, 1,
                                         mini_variable(f->model, name, 2));
    f->signature = (struct tare_signature){ .key = "serving_default", .outputs = &f->out, .n_outputs = 1 };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
    mini_ok(tare_model_drop_seed_states(&dropped, f->model));
    if (dropped.count) assert_string_equal(dropped.first, name);
    return dropped.count;
}

static void next_state_of_a_seed_generator__is_not_assigned(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(dropped_of(&f, "layer/seed_generator_state", false), 1);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 0);
    tear_down(&f);
}

static void next_state_of_a_counter__is_assigned(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(dropped_of(&f, "counter", false), 0);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 1);
    tear_down(&f);
}

/* It is what the caller says: two requests may draw different numbers. */
static void seed_from_an_input__is_assigned(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(dropped_of(&f, "seed_generator_state", true), 0);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 1);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_that_was_read__is_not_assigned),
        cmocka_unit_test(value_that_a_function_returns_unchanged__is_not_assigned),
        cmocka_unit_test(other_values__are_assigned),
        cmocka_unit_test(variable_that_is_written_otherwise__keeps_its_assignments),
        cmocka_unit_test(next_state_of_a_seed_generator__is_not_assigned),
        cmocka_unit_test(next_state_of_a_counter__is_assigned),
        cmocka_unit_test(seed_from_an_input__is_assigned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
