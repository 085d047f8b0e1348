/* Every allocation of a session's life fails once: each time a status and a text come back, and nothing leaks (which
 * the sanitizers see). */
#include "support/mini_model.h"

#include "base/alloc.h"

#include <string.h>

/* x += v.read() while x < 4, each x put on a list; then the list as a tensor, through a call. A TF1 loop beside it. */
static struct tare_edge build(struct tare_graph_model *model) {
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_graph *f = tare_model_add_function(model, "f"), *g = model->main;
    struct tare_edge x = mini_arg(cond, "x", TARE_DT_FLOAT);
    mini_arg(cond, "list", TARE_DT_VARIANT);
    mini_arg(cond, "v", TARE_DT_RESOURCE);
    mini_return(cond, "again", mini_node(cond, "TestLess", "less", 2, x, mini_float(cond, "limit", 4)));

    x = mini_arg(body, "x", TARE_DT_FLOAT);
    struct tare_edge list = mini_arg(body, "list", TARE_DT_VARIANT), v = mini_arg(body, "v", TARE_DT_RESOURCE);
    struct tare_node *read = mini_open(body, "ReadVariableOp", "read", 1, v);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    struct tare_edge next = mini_node(body, "TestAdd", "next", 2, x, mini_done(read));
    mini_node(body, "AssignAddVariableOp", "grow", 2, v, mini_float(body, "zero", 0));
    mini_return(body, "x", next);
    mini_return(body, "list", mini_node(body, "TensorListPushBack", "push", 2, list, next));
    mini_return(body, "v", v);

    x = mini_arg(f, "x", TARE_DT_FLOAT);
    v = mini_arg(f, "v", TARE_DT_RESOURCE);
    struct tare_edge shape = mini_ints(f, "shape", 0, NULL);
    struct tare_node *empty = mini_open(f, "EmptyTensorList", "empty", 2, shape, mini_int(f, "most", -1));
    mini_ok(tare_node_set_type(empty, "element_dtype", TARE_DT_FLOAT));
    struct tare_node *loop = mini_open(f, "While", "loop", 3, x, mini_done(empty), v);
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    struct tare_node *stack = mini_open(f, "TensorListStack", "stack", 2, mini_output(mini_done(loop), 1), shape);
    mini_ok(tare_node_set_type(stack, "element_dtype", TARE_DT_FLOAT));
    mini_return(f, "y", mini_done(stack));

    struct tare_edge one = mini_variable(model, "one", 1), p = mini_placeholder(g, "p", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(g, "StatefulPartitionedCall", "y", f, 2, p, one);
    struct tare_node *enter = mini_open(g, "Enter", "enter", 1, y);
    mini_ok(tare_node_set_string(enter, "frame_name", "frame", 5));
    struct tare_edge entered = mini_done(enter);
    struct tare_edge merge = mini_node(g, "Merge", "merge", 2, entered, entered);
    struct tare_edge never = mini_node(g, "TestLess", "never", 2, merge, merge);
    struct tare_edge s = mini_node(g, "Switch", "switch", 2, merge, mini_node(g, "LoopCond", "again", 1, never));
    tare_node_set_input(merge.node, 1, mini_node(g, "NextIteration", "next", 1, mini_output(s, 1)));
    return mini_node(g, "Exit", "exit", 1, mini_output(s, 0));
}

static tare_status live(const struct tare_graph_model *model, struct tare_edge fetch) {
    struct tare_edge feed = { tare_graph_find(model->main, "p"), 0 };
    struct tare_session *session;
    struct tare_tensor fed = { 0 }, result;
    tare_status status = tare_session_new(&session, model, NULL);
    if (status != TARE_OK) return status;
    status = tare_tensor_scalar_f32(&fed, 0);
    if (status == TARE_OK) status = tare_session_run(session, &feed, &fed, 1, &fetch, &result, 1, NULL, 0);
    if (status == TARE_OK) {
        const float expected[4] = { 1, 2, 3, 4 };
        assert_int_equal(result.elements, 4);
        assert_memory_equal(result.data, expected, sizeof expected);
        tare_tensor_reset(&result);
    }
    tare_tensor_reset(&fed);
    tare_session_free(session);
    return status;
}

static void session__survives_every_allocation_failing(void **state) {
    (void)state;
    enum { MORE_THAN_IT_TAKES = 5000 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge fetch = build(model);
    int failures = 0;
    mini_ok(live(model, fetch));
    for (int n = 1; n < MORE_THAN_IT_TAKES; n++) {
        tare_status status;
        bool all_done;
        tare_error_clear();
        tare_alloc_fail_at(n);
        status = live(model, fetch);
        all_done = tare_alloc_count() < n;
        tare_alloc_fail_at(0);
        if (all_done) break;
        if (status == TARE_OK) fail_msg("allocation %d failed and nobody noticed", n);
        failures++;
        if (!*tare_error_text()) fail_msg("allocation %d: a failure without text", n);
    }
    print_message("%d allocations failed\n", failures);
    assert_in_range(failures, 50, MORE_THAN_IT_TAKES - 2);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(session__survives_every_allocation_failing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
