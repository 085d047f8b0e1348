/* Assignments that run because the op of an output waits for them, when a pass replaces that op. */
#include "support/mini_model.h"

#include "convert/pass.h"

struct fixture {
    struct tare_graph_model *model;
    struct tare_edge count;
    struct tare_node *add;
    struct tare_signature signature;
    struct tare_binding outputs[2];
};

/* count += 1 */
static void set_up(struct fixture *f) {
    *f = (struct fixture){ .model = mini_model_new() };
    f->count = mini_variable(f->model, "count", 0);
    f->add = mini_open(f->model->main, "AssignAddVariableOp", "add", 2, f->count, mini_float(f->model->main, "one", 1));
    mini_ok(tare_node_set_type(f->add, "dtype", TARE_DT_FLOAT));
    mini_done(f->add);
    f->signature = (struct tare_signature){ .key = "serving_default", .outputs = f->outputs };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void returns(struct fixture *f, const char *key, struct tare_edge edge) {
    f->outputs[f->signature.n_outputs++] = (struct tare_binding){ .key = key, .dtype = TARE_DT_FLOAT, .edge = edge };
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
}

static struct tare_edge read(struct fixture *f, const char *name, struct tare_edge handle, struct tare_node *before) {
    struct tare_node *node = mini_open(f->model->main, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    if (before) mini_ok(tare_node_add_control(node, before));
    return mini_done(node);
}

static size_t run_pass(const struct fixture *f, const struct tare_pass *pass) {
    size_t changes = 0;
    mini_ok(pass->run(f->model, &changes));
    return changes;
}

static void outputs__assign_what_a_frozen_read_waited_for(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    const struct tare_edge weight = mini_variable(f.model, "weight", 3);
    returns(&f, "y", mini_node(f.model->main, "Neg", "y", 1, read(&f, "read", weight, f.add)));
    returns(&f, "count", read(&f, "read_count", f.count, NULL));
    assert_int_equal(run_pass(&f, &tare_pass_keep_effects), 1); /* the count waits for nothing */
    run_pass(&f, &tare_pass_prune);
    run_pass(&f, &tare_pass_freeze);
    struct tare_session *session = mini_session(f.model);
    assert_true(mini_number(session, (struct tare_edge){ NULL, 0 }, 0, f.outputs[0].edge) == -3);
    assert_true(mini_number(session, (struct tare_edge){ NULL, 0 }, 0, f.outputs[1].edge) == 1);
    tare_session_free(session);
    tear_down(&f);
}

/* body(i, x, h) = i + 1, x, h, and h += 1 */
static void add_loop_functions(struct tare_graph_model *model) {
    struct tare_graph *condition = tare_model_add_function(model, "condition");
    struct tare_graph *body = tare_model_add_function(model, "body");
    const struct tare_edge i = mini_arg(body, "i", TARE_DT_INT32), x = mini_arg(body, "x", TARE_DT_FLOAT),
                           h = mini_arg(body, "h", TARE_DT_RESOURCE);
    struct tare_node *add = mini_open(body, "AssignAddVariableOp", "add", 2, h, mini_float(body, "one", 1));
    mini_return(condition, "go",
                mini_node(condition, "Less", "less", 2, mini_arg(condition, "i", TARE_DT_INT32),
                          mini_int(condition, "limit", 3)));
    mini_arg(condition, "x", TARE_DT_FLOAT);
    mini_arg(condition, "h", TARE_DT_RESOURCE);
    mini_ok(tare_node_set_type(add, "dtype", TARE_DT_FLOAT));
    mini_done(add);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "step", 1)));
    mini_return(body, "x", x);
    mini_return(body, "h", h);
    body->is_stateful = true;
}

/* The output uses a value that the loop carries unchanged, and gets it without the loop. */
static void outputs__assign_what_a_loop_did_that_they_used(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    add_loop_functions(f.model);
    struct tare_graph *main = f.model->main;
    struct tare_node *loop =
        mini_open(main, "While", "loop", 3, mini_int(main, "zero", 0), mini_float(main, "five", 5), f.count);
    mini_ok(tare_node_set_type_list(loop, "T", (int[]){ TARE_DT_INT32, TARE_DT_FLOAT, TARE_DT_RESOURCE }, 3));
    mini_ok(tare_node_set_func(loop, "cond", "condition"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    returns(&f, "y", mini_node(main, "Neg", "y", 1, mini_output(mini_done(loop), 1)));
    returns(&f, "count", read(&f, "read_count", f.count, NULL));
    run_pass(&f, &tare_pass_keep_effects);
    run_pass(&f, &tare_pass_prune);
    run_pass(&f, &tare_pass_freeze);
    run_pass(&f, &tare_pass_prune);
    struct tare_session *session = mini_session(f.model);
    assert_true(mini_number(session, (struct tare_edge){ NULL, 0 }, 0, f.outputs[0].edge) == -5);
    assert_true(mini_number(session, (struct tare_edge){ NULL, 0 }, 0, f.outputs[1].edge) == 3);
    tare_session_free(session);
    tear_down(&f);
}

/* Assignments to variables of TensorFlow 1 are not declared stateful: they take a reference. */
static void outputs__wait_for_assignments_by_reference(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    struct tare_graph *main = f.model->main;
    struct tare_node *variable = mini_open(main, "VariableV2", "old", 0), *assign, *y;
    mini_ok(tare_node_set_type(variable, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(variable, "shape", &(struct tare_shape){ 0 }));
    assign = mini_node(main, "AssignAdd", "assign", 2, mini_done(variable), mini_float(main, "two", 2)).node;
    y = mini_open(main, "Neg", "y", 1, mini_float(main, "three", 3));
    mini_ok(tare_node_add_control(y, assign));
    returns(&f, "y", mini_done(y));
    assert_int_equal(run_pass(&f, &tare_pass_keep_effects), 1);
    assert_int_equal(f.outputs[0].edge.node->n_controls, 1);
    assert_ptr_equal(f.outputs[0].edge.node->controls[0], assign);
    tear_down(&f);
}

static void outputs_that_wait_for_no_assignment__stay(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    const struct tare_edge other = read(&f, "other", f.count, NULL);
    struct tare_node *y = mini_open(f.model->main, "Neg", "y", 1, read(&f, "read", f.count, NULL));
    mini_ok(tare_node_add_control(y, other.node));
    returns(&f, "y", mini_done(y));
    assert_int_equal(run_pass(&f, &tare_pass_keep_effects), 0);
    assert_ptr_equal(f.outputs[0].edge.node, y);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs__assign_what_a_frozen_read_waited_for),
        cmocka_unit_test(outputs__assign_what_a_loop_did_that_they_used),
        cmocka_unit_test(outputs__wait_for_assignments_by_reference),
        cmocka_unit_test(outputs_that_wait_for_no_assignment__stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
