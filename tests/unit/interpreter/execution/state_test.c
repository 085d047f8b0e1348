/* Variables: of resources and of references, between runs and between sessions. */
#include "support/mini_model.h"

#include "base/thread.h"

#include <string.h>

static const struct tare_edge none = { NULL, 0 };

/* next() { v.assign_add(1); return v } */
static struct tare_graph *add_counter(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "next");
    struct tare_edge v = mini_arg(f, "v", TARE_DT_RESOURCE);
    struct tare_node *add = mini_open(f, "AssignAddVariableOp", "add", 2, v, mini_float(f, "one", 1));
    mini_done(add);
    struct tare_node *read = mini_open(f, "ReadVariableOp", "read", 1, v);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_add_control(read, add));
    mini_return(f, "y", mini_done(read));
    return f;
}

static void variable__counts_from_call_to_call(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = add_counter(model);
    struct tare_edge v = mini_variable(model, "v", 0);
    struct tare_edge y = mini_call(model->main, "StatefulPartitionedCall", "y", f, 1, v);
    struct tare_session *a = mini_session(model), *b = mini_session(model);
    for (int i = 1; i <= 3; i++)
        assert_float_equal(mini_number(a, none, 0, y), i, 0);
    assert_float_equal(mini_number(b, none, 0, y), 1, 0); /* another session has its own */
    assert_float_equal(TARE_DATA(float, &model->variables[0].value)[0], 0, 0);
    tare_session_free(a);
    tare_session_free(b);
    tare_model_free(model);
}

struct side_by_side {
    const struct tare_graph_model *model;
    struct tare_edge fetch;
    double last[4];
};

static tare_status count_to_fifty(void *arg, int worker) {
    struct side_by_side *work = arg;
    struct tare_session *session;
    tare_status status = tare_session_new(&session, work->model, NULL);
    for (int i = 0; i < 50 && status == TARE_OK; i++) {
        struct tare_tensor result;
        status = tare_session_run(session, NULL, NULL, 0, &work->fetch, &result, 1, NULL, 0);
        if (status != TARE_OK) break;
        work->last[worker] = TARE_DATA(float, &result)[0];
        tare_tensor_reset(&result);
    }
    tare_session_free(session);
    return status;
}

static void sessions__run_side_by_side_on_one_model(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = add_counter(model);
    struct tare_edge v = mini_variable(model, "v", 0);
    struct side_by_side work = { model, mini_call(model->main, "StatefulPartitionedCall", "y", f, 1, v), { 0 } };
    mini_ok(tare_threads_run(4, count_to_fifty, &work));
    for (int i = 0; i < 4; i++)
        assert_float_equal(work.last[i], 50, 0);
    assert_float_equal(TARE_DATA(float, &model->variables[0].value)[0], 0, 0);
    tare_model_free(model);
}

static struct tare_edge read_variable(struct tare_graph *g, const char *name, struct tare_edge handle) {
    struct tare_node *node = mini_open(g, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

static void variable__value_read_before_an_assignment_stays(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge v = mini_variable(model, "v", 1);
    struct tare_edge before = read_variable(g, "before", v);
    struct tare_edge add = mini_node(g, "AssignAddVariableOp", "add", 2, v, mini_float(g, "c", 5));
    mini_ok(tare_node_add_control(add.node, before.node));
    struct tare_edge after = read_variable(g, "after", v);
    mini_ok(tare_node_add_control(after.node, add.node));
    struct tare_session *session = mini_session(model);
    struct tare_edge fetches[2] = { before, after };
    struct tare_tensor results[2];
    for (int i = 0; i < 2; i++) {
        mini_ok(tare_session_run(session, NULL, NULL, 0, fetches, results, 2, NULL, 0));
        assert_float_equal(TARE_DATA(float, &results[0])[0], 1 + 5 * i, 0);
        assert_float_equal(TARE_DATA(float, &results[1])[0], 6 + 5 * i, 0);
        tare_tensor_reset(&results[0]);
        tare_tensor_reset(&results[1]);
    }
    tare_session_free(session);
    tare_model_free(model);
}

static void variable__of_one_name_are_told_apart_by_node(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge a = mini_variable(model, "total", 1), b = mini_variable(model, "other", 2);
    mini_ok(tare_node_set_string(b.node, "shared_name", "total", 5));
    model->variables[1].shared_name = "total";
    struct tare_edge x = read_variable(g, "x", a), y = read_variable(g, "y", b);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, none, 0, x), 1, 0);
    assert_float_equal(mini_number(session, none, 0, y), 2, 0);
    assert_non_null(tare_session_find_resource(session, "variable", "total"));
    tare_session_free(session);
    tare_model_free(model);
}

static void variable__without_value_cannot_be_read(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge v = mini_variable(model, "v", 1);
    tare_tensor_reset(&model->variables[0].value);
    struct tare_edge y = read_variable(g, "y", v);
    struct tare_edge is = mini_node(g, "VarIsInitializedOp", "is", 1, v);
    struct tare_node *set = mini_open(g, "AssignVariableOp", "set", 2, v, mini_float(g, "c", 9));
    mini_done(set);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    assert_float_equal(mini_number(session, none, 0, is), 0, 0);
    mini_fails(tare_session_run(session, NULL, NULL, 0, &y, &result, 1, NULL, 0),
               "y (ReadVariableOp): variable 'v' is not initialised");
    mini_ok(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &set, 1));
    assert_float_equal(mini_number(session, none, 0, y), 9, 0);
    tare_session_free(session);
    model->init_node = set; /* a main op sets it before anything runs */
    session = mini_session(model);
    assert_float_equal(mini_number(session, none, 0, y), 9, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void variable__rows_are_gathered_and_scattered(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge v = mini_variable(model, "v", 0);
    struct tare_shape shape = tare_shape_make(2, 3, 2);
    float values[6] = { 1, 2, 3, 4, 5, 6 };
    tare_tensor_reset(&model->variables[0].value);
    mini_ok(tare_tensor_from(&model->variables[0].value, TARE_DT_FLOAT, &shape, values));
    int32_t rows[2] = { 2, 0 };
    struct tare_edge at = mini_ints(g, "at", 2, rows);
    struct tare_node *gather = mini_open(g, "ResourceGather", "gather", 2, v, at);
    mini_ok(tare_node_set_type(gather, "dtype", TARE_DT_FLOAT));
    struct tare_edge got = mini_done(gather);
    struct tare_edge scatter = mini_node(g, "ResourceScatterAdd", "scatter", 3, v, at, mini_float(g, "ten", 10));
    struct tare_session *session = mini_session(model);
    struct tare_tensor result = mini_run(session, none, 0, got);
    float expected[4] = { 5, 6, 1, 2 };
    assert_memory_equal(result.data, expected, sizeof expected);
    tare_tensor_reset(&result);
    mini_ok(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &scatter.node, 1));
    result = mini_run(session, none, 0, got);
    for (int i = 0; i < 4; i++)
        assert_float_equal(TARE_DATA(float, &result)[i], expected[i] + 10, 0);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- references ---- */

static struct tare_edge reference_variable(struct tare_graph_model *model, const char *name, float value) {
    struct tare_node *node = mini_open(model->main, "VariableV2", name, 0);
    struct tare_shape scalar = tare_shape_scalar();
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &scalar));
    struct tare_variable *variable = TARE_NEW(&model->arena, struct tare_variable);
    *variable = (struct tare_variable){
        .node = node, .shared_name = node->name, .dtype = TARE_DT_FLOAT, .shape = scalar, .object_id = -1
    };
    variable->value = mini_scalar(TARE_DT_FLOAT, value);
    model->variables = variable;
    model->n_variables = 1;
    return mini_done(node);
}

static void reference__is_read_where_a_value_is_taken(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge v = reference_variable(model, "v", 1), one = mini_float(g, "one", 1);
    struct tare_edge before = mini_node(g, "TestAdd", "before", 2, v, one);
    struct tare_edge add = mini_node(g, "AssignAdd", "add", 2, v, one);
    mini_ok(tare_node_add_control(add.node, before.node));
    struct tare_edge after = mini_node(g, "TestAdd", "after", 2, v, one);
    mini_ok(tare_node_add_control(after.node, add.node));
    struct tare_session *session = mini_session(model);
    struct tare_edge fetches[3] = { before, after, v };
    struct tare_tensor results[3];
    mini_ok(tare_session_run(session, NULL, NULL, 0, fetches, results, 3, NULL, 0));
    assert_float_equal(TARE_DATA(float, &results[0])[0], 2, 0);
    assert_float_equal(TARE_DATA(float, &results[1])[0], 3, 0);
    assert_float_equal(TARE_DATA(float, &results[2])[0], 2, 0); /* a fetched reference is read at the end */
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&results[i]);
    assert_float_equal(mini_number(session, v, 40, before), 41, 0); /* fed in the reference's place */
    assert_float_equal(TARE_DATA(float, &model->variables[0].value)[0], 1, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void reference__is_wanted_by_an_assignment(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge v = reference_variable(model, "v", 1);
    struct tare_edge copy = mini_node(g, "Identity", "copy", 1, v);
    struct tare_edge bad = mini_node(g, "AssignAdd", "bad", 2, copy, copy);
    struct tare_edge set = mini_node(g, "Assign", "set", 2, v, mini_float(g, "c", 7));
    struct tare_edge is = mini_node(g, "IsVariableInitialized", "is", 1, v);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    mini_fails(tare_session_run(session, NULL, NULL, 0, &bad, &result, 1, NULL, 0),
               "input 0 is a value (expected a reference");
    assert_float_equal(mini_number(session, none, 0, set), 7, 0);
    assert_float_equal(mini_number(session, none, 0, copy), 7, 0);
    assert_float_equal(mini_number(session, none, 0, is), 1, 0);
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variable__counts_from_call_to_call),
        cmocka_unit_test(sessions__run_side_by_side_on_one_model),
        cmocka_unit_test(variable__value_read_before_an_assignment_stays),
        cmocka_unit_test(variable__of_one_name_are_told_apart_by_node),
        cmocka_unit_test(variable__without_value_cannot_be_read),
        cmocka_unit_test(variable__rows_are_gathered_and_scattered),
        cmocka_unit_test(reference__is_read_where_a_value_is_taken),
        cmocka_unit_test(reference__is_wanted_by_an_assignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
