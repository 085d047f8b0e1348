/* Variables that are read or assigned through a handle which may be that of several. */
#include "support/mini_model.h"

#include "convert/pass.h"

/* update(h): h += 1 */
static struct tare_graph *update(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "update");
    const struct tare_edge handle = mini_arg(f, "h", TARE_DT_RESOURCE);
    struct tare_node *add = mini_open(f, "AssignAddVariableOp", "add", 2, handle, mini_float(f, "one", 1)), *read;
    mini_ok(tare_node_set_type(add, "dtype", TARE_DT_FLOAT));
    mini_done(add);
    read = mini_open(f, "ReadVariableOp", "read", 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_add_control(read, add));
    mini_return(f, "y", mini_done(read));
    f->is_stateful = true;
    return f;
}

/* The value of a variable, after a node. */
static struct tare_edge read_after(struct tare_graph *graph, const char *name, struct tare_edge handle,
                                   struct tare_node *before) {
    struct tare_node *read = mini_open(graph, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    if (before) mini_ok(tare_node_add_control(read, before));
    return mini_done(read);
}

static void freeze(struct tare_graph_model *model) {
    size_t changes = 0;
    mini_ok(tare_pass_freeze.run(model, &changes));
}

static double answer(const struct tare_graph_model *model, struct tare_edge fetch) {
    struct tare_session *session = mini_session(model);
    const double number = mini_number(session, (struct tare_edge){ NULL, 0 }, 0, fetch);
    tare_session_free(session);
    return number;
}

static void variables__that_a_function_of_several_updates_stay(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *f = update(model);
    (void)state;
    const struct tare_edge a = mini_variable(model, "a", 10), b = mini_variable(model, "b", 20);
    struct tare_node *first = mini_call(model->main, "StatefulPartitionedCall", "first", f, 1, a).node;
    struct tare_node *second = mini_call(model->main, "StatefulPartitionedCall", "second", f, 1, b).node;
    const struct tare_edge y = mini_node(model->main, "AddV2", "y", 2, read_after(model->main, "read_a", a, first),
                                         read_after(model->main, "read_b", b, second));
    freeze(model);
    assert_true(answer(model, y) == 32);
    tare_model_free(model);
}

/* pick(a, b) = a, or b */
static struct tare_graph *pick(struct tare_graph_model *model, const char *name, int which) {
    struct tare_graph *f = tare_model_add_function(model, name);
    const struct tare_edge handles[] = { mini_arg(f, "a", TARE_DT_RESOURCE), mini_arg(f, "b", TARE_DT_RESOURCE) };
    mini_return(f, "y", handles[which]);
    return f;
}

static void variables__whose_handle_a_function_returns_stay_if_it_is_assigned(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    const struct tare_edge a = mini_variable(model, "a", 10), b = mini_variable(model, "b", 20);
    const struct tare_graph *f = pick(model, "second", 1);
    const struct tare_edge handle = mini_call(model->main, "PartitionedCall", "call", f, 2, a, b);
    struct tare_node *add =
        mini_open(model->main, "AssignAddVariableOp", "add", 2, handle, mini_float(model->main, "one", 1));
    mini_ok(tare_node_set_type(add, "dtype", TARE_DT_FLOAT));
    mini_done(add);
    const struct tare_edge y = mini_node(model->main, "AddV2", "y", 2, read_after(model->main, "read_a", a, add),
                                         read_after(model->main, "read_b", b, add));
    freeze(model);
    assert_true(answer(model, y) == 31);
    assert_string_equal(y.node->inputs[0].node->op, "Const"); /* a is not among those that may be assigned */
    tare_model_free(model);
}

/* read(h) = the value of h */
static struct tare_graph *reader(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "reader");
    mini_return(f, "y", read_after(f, "read", mini_arg(f, "h", TARE_DT_RESOURCE), NULL));
    return f;
}

/* Of the two calls of `reader`, one passes a handle that another function returned. */
static void handles_that_a_function_returned__are_not_those_of_other_calls(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    const struct tare_edge a = mini_variable(model, "a", 10), b = mini_variable(model, "b", 20);
    const struct tare_graph *f = reader(model);
    const struct tare_edge handle =
        mini_call(model->main, "PartitionedCall", "picked", pick(model, "second", 1), 2, a, b);
    const struct tare_edge y =
        mini_node(model->main, "Sub", "y", 2, mini_call(model->main, "StatefulPartitionedCall", "first", f, 1, a),
                  mini_call(model->main, "StatefulPartitionedCall", "second", f, 1, handle));
    freeze(model);
    assert_true(answer(model, y) == -10);
    tare_model_free(model);
}

/* body(i, sum, a, b) = i + 1, sum * 2 + a, b, a */
static struct tare_graph *swapping_body(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "body");
    const struct tare_edge i = mini_arg(f, "i", TARE_DT_INT32), sum = mini_arg(f, "sum", TARE_DT_FLOAT),
                           a = mini_arg(f, "a", TARE_DT_RESOURCE), b = mini_arg(f, "b", TARE_DT_RESOURCE);
    mini_return(f, "i", mini_node(f, "AddV2", "next", 2, i, mini_int(f, "one", 1)));
    mini_return(f, "sum",
                mini_node(f, "AddV2", "add", 2, mini_node(f, "Mul", "mul", 2, sum, mini_float(f, "two", 2)),
                          read_after(f, "read", a, NULL)));
    mini_return(f, "a", b);
    mini_return(f, "b", a);
    f->is_stateful = true;
    return f;
}

static void loops_that_exchange_variables__read_both(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *condition = tare_model_add_function(model, "condition");
    (void)state;
    mini_return(condition, "go",
                mini_node(condition, "Less", "less", 2, mini_arg(condition, "i", TARE_DT_INT32),
                          mini_int(condition, "limit", 3)));
    mini_arg(condition, "sum", TARE_DT_FLOAT);
    mini_arg(condition, "a", TARE_DT_RESOURCE);
    mini_arg(condition, "b", TARE_DT_RESOURCE);
    swapping_body(model);
    struct tare_node *loop =
        mini_open(model->main, "While", "loop", 4, mini_int(model->main, "zero", 0),
                  mini_float(model->main, "start", 0), mini_variable(model, "a", 1), mini_variable(model, "b", 10));
    const int dtypes[] = { TARE_DT_INT32, TARE_DT_FLOAT, TARE_DT_RESOURCE, TARE_DT_RESOURCE };
    mini_ok(tare_node_set_type_list(loop, "T", dtypes, 4));
    mini_ok(tare_node_set_func(loop, "cond", "condition"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    const struct tare_edge y = mini_node(model->main, "Identity", "y", 1, mini_output(mini_done(loop), 1));
    freeze(model);
    assert_true(answer(model, y) == (1 * 2 + 10) * 2 + 1);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables__that_a_function_of_several_updates_stay),
        cmocka_unit_test(variables__whose_handle_a_function_returns_stay_if_it_is_assigned),
        cmocka_unit_test(handles_that_a_function_returned__are_not_those_of_other_calls),
        cmocka_unit_test(loops_that_exchange_variables__read_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
