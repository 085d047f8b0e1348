/* Conditionals and loops, over functions and in TF1's form. */
#include "support/mini_model.h"

#include <string.h>

static const struct tare_edge none = { NULL, 0 };

static struct tare_graph *unary(struct tare_graph_model *model, const char *name, const char *op, float value) {
    struct tare_graph *f = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, op, name, 2, x, mini_float(f, "c", value)));
    return f;
}

static void set_out(struct tare_node *node, size_t n) {
    int types[4] = { TARE_DT_FLOAT, TARE_DT_FLOAT, TARE_DT_FLOAT, TARE_DT_FLOAT };
    mini_ok(tare_node_set_type_list(node, "Tout", types, n));
}

static void if__runs_one_branch(void **state) {
    (void)state;
    for (int stateless = 0; stateless < 2; stateless++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *plus1 = unary(model, "plus1", "TestAdd", 1), *plus10 = unary(model, "plus10", "TestAdd", 10);
        struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_BOOL), x = mini_float(model->main, "x", 5);
        struct tare_node *node = mini_open(model->main, stateless ? "StatelessIf" : "If", "if", 2, p, x);
        set_out(node, 1);
        mini_ok(tare_node_set_func(node, "then_branch", "plus1"));
        mini_ok(tare_node_set_func(node, "else_branch", "plus10"));
        struct tare_edge y = mini_done(node);
        struct tare_session *session = mini_session(model);
        assert_float_equal(mini_number(session, p, 1, y), 6, 0);
        assert_float_equal(mini_number(session, p, 0, y), 15, 0);
        assert_float_equal(mini_number(session, p, 0, y), 15, 0);
        assert_int_equal(tare_session_function_runs(session, plus1), 1);
        assert_int_equal(tare_session_function_runs(session, plus10), 2);
        assert_int_equal(tare_session_side_runs(session, node, 0), 1);
        assert_int_equal(tare_session_side_runs(session, node, 1), 2);
        assert_int_equal(tare_session_side_runs(session, node, 2), 0);
        tare_session_free(session);
        tare_model_free(model);
    }
}

static void case__takes_the_last_branch_for_an_index_outside(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    unary(model, "b0", "TestAdd", 1);
    unary(model, "b1", "TestAdd", 2);
    unary(model, "b2", "TestAdd", 3);
    struct tare_edge i = mini_placeholder(model->main, "i", TARE_DT_INT32), x = mini_float(model->main, "x", 0);
    struct tare_node *node = mini_open(model->main, "Case", "case", 2, i, x);
    set_out(node, 1);
    mini_ok(tare_node_set_func(node, "branches", "b0"));
    /* a list of functions has no setter of its own: the attribute is widened by hand */
    struct tare_attr *attr = (struct tare_attr *)tare_node_find_attr(node, "branches");
    union tare_attr_item *items = tare_arena_calloc(&model->arena, 3, sizeof *items);
    const char *names[] = { "b0", "b1", "b2" };
    for (int k = 0; k < 3; k++)
        items[k].func.name = names[k];
    attr->is_list = true;
    attr->count = 3;
    attr->items = items;
    struct tare_edge y = mini_done(node);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, i, 0, y), 1, 0);
    assert_float_equal(mini_number(session, i, 1, y), 2, 0);
    assert_float_equal(mini_number(session, i, 2, y), 3, 0);
    assert_float_equal(mini_number(session, i, 7, y), 3, 0);
    assert_float_equal(mini_number(session, i, -1, y), 3, 0);
    const int64_t sides[] = { 1, 1, 3 };
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(tare_session_side_runs(session, node, k), sides[k]);
    tare_session_free(session);
    tare_model_free(model);
}

/* while (x < limit) x += 1, limit going round with it */
static void add_loop_functions(struct tare_graph_model *model) {
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_edge x = mini_arg(cond, "x", TARE_DT_FLOAT), limit = mini_arg(cond, "limit", TARE_DT_FLOAT);
    mini_return(cond, "again", mini_node(cond, "TestLess", "less", 2, x, limit));
    x = mini_arg(body, "x", TARE_DT_FLOAT);
    limit = mini_arg(body, "limit", TARE_DT_FLOAT);
    mini_return(body, "x", mini_node(body, "TestAdd", "step", 2, x, mini_float(body, "one", 1)));
    mini_return(body, "limit", limit);
}

static void while__runs_until_the_condition_fails(void **state) {
    (void)state;
    for (int stateless = 0; stateless < 2; stateless++) {
        struct tare_graph_model *model = mini_model_new();
        add_loop_functions(model);
        struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT),
                         limit = mini_float(model->main, "limit", 10);
        struct tare_node *node = mini_open(model->main, stateless ? "StatelessWhile" : "While", "while", 2, x, limit);
        mini_ok(tare_node_set_func(node, "cond", "cond"));
        mini_ok(tare_node_set_func(node, "body", "body"));
        struct tare_edge y = mini_done(node);
        struct tare_session *session = mini_session(model);
        assert_float_equal(mini_number(session, x, 2.5, y), 10.5, 0);
        assert_float_equal(mini_number(session, x, 11, y), 11, 0); /* never entered */
        assert_float_equal(mini_number(session, x, 0, mini_output(y, 1)), 10, 0);
        assert_int_equal(tare_session_function_runs(session, tare_model_find_function(model, "body")), 18);
        assert_int_equal(tare_session_side_runs(session, node, 1), 18);
        assert_int_equal(tare_session_side_runs(session, node, 0), 18 + 3); /* once more for each loop */
        assert_int_equal(mini_log.reused, 7 + 9); /* all but the first step of each loop wrote in place */
        tare_session_free(session);
        tare_model_free(model);
    }
}

static void while__passes_a_fault_on_and_leaks_nothing(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_edge x = mini_arg(cond, "x", TARE_DT_FLOAT);
    mini_return(cond, "again", mini_node(cond, "TestLess", "less", 2, x, mini_float(cond, "c", 100)));
    x = mini_arg(body, "x", TARE_DT_FLOAT);
    mini_return(body, "x", mini_node(body, "TestFail", "bad", 1, x));
    struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_FLOAT);
    struct tare_node *node = mini_open(model->main, "While", "while", 1, p);
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    struct tare_edge y = mini_done(node);
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 1), result;
    mini_fails(tare_session_run(session, &p, &fed, 1, &y, &result, 1, NULL, 0), "body/bad (TestFail): it was asked to");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- TF1 ---- */

/* cond(p, x + 1, x + 10) with a constant on the true side that only a control input ties to its branch */
static void switch__leaves_one_side_out(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge p = mini_placeholder(g, "p", TARE_DT_BOOL), x = mini_float(g, "x", 5);
    struct tare_edge s = mini_node(g, "Switch", "switch", 2, x, p);
    struct tare_edge pivot = mini_node(g, "Switch", "pivot_switch", 2, p, p);
    struct tare_edge taken = mini_node(g, "Identity", "taken", 1, mini_output(pivot, 1));
    struct tare_edge one = mini_float(g, "one", 1);
    mini_ok(tare_node_add_control(one.node, taken.node));
    struct tare_edge ten = mini_float(g, "ten", 10);
    struct tare_edge no = mini_node(g, "TestAdd", "no", 2, mini_output(s, 0), ten);
    struct tare_edge merge = mini_node(g, "Merge", "merge", 2, no, one);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, p, 0, merge), 15, 0);
    assert_float_equal(mini_number(session, p, 0, mini_output(merge, 1)), 0, 0);
    assert_float_equal(mini_number(session, p, 1, merge), 1, 0);
    assert_float_equal(mini_number(session, p, 1, mini_output(merge, 1)), 1, 0);
    struct tare_tensor fed = mini_scalar(TARE_DT_BOOL, 1), result;
    mini_fails(tare_session_run(session, &p, &fed, 1, &no, &result, 1, NULL, 0), "branch that was not taken");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static struct tare_edge enter(struct tare_graph *g, const char *name, struct tare_edge x, const char *frame,
                              bool constant) {
    struct tare_node *node = mini_open(g, "Enter", name, 1, x);
    mini_ok(tare_node_set_string(node, "frame_name", frame, strlen(frame)));
    mini_ok(tare_node_set_bool(node, "is_constant", constant));
    return mini_done(node);
}

struct loop {
    struct tare_edge merge, body, exit, cond;
};

/* The head of while (x < limit): Merge, LoopCond, Switch, Exit; close_loop ties the body's end to it. */
static struct loop open_loop(struct tare_graph *g, const char *stem, struct tare_edge entered, struct tare_edge limit) {
    struct loop loop;
    char name[64];
#define NAME(part) (strcpy(name, stem), strcat(name, part))
    loop.merge = mini_node(g, "Merge", NAME("/merge"), 2, entered, entered); /* the second is replaced */
    loop.cond =
        mini_node(g, "LoopCond", NAME("/cond"), 1, mini_node(g, "TestLess", NAME("/less"), 2, loop.merge, limit));
    struct tare_edge s = mini_node(g, "Switch", NAME("/switch"), 2, loop.merge, loop.cond);
    loop.exit = mini_node(g, "Exit", NAME("/exit"), 1, mini_output(s, 0));
    loop.body = mini_node(g, "Identity", NAME("/body"), 1, mini_output(s, 1));
#undef NAME
    return loop;
}

static void close_loop(struct tare_graph *g, const char *name, const struct loop *loop, struct tare_edge next) {
    tare_node_set_input(loop->merge.node, 1, mini_node(g, "NextIteration", name, 1, next));
}

static void frames__count_in_a_loop(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), ten = mini_float(g, "ten", 10);
    struct loop loop = open_loop(g, "w", enter(g, "e", x, "f", false), enter(g, "l", ten, "f", true));
    struct tare_edge one = mini_float(g, "one", 1);
    mini_ok(tare_node_add_control(one.node, loop.body.node));
    close_loop(g, "next", &loop, mini_node(g, "TestAdd", "step", 2, loop.body, one));
    struct tare_edge after = mini_node(g, "TestAdd", "after", 2, loop.exit, loop.exit);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, x, 2.5, after), 21, 0);
    assert_float_equal(mini_number(session, x, 50, after), 100, 0);
    assert_float_equal(mini_number(session, x, 9, loop.exit), 10, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void frames__follow_each_other(void **state) {
    static const char *const names[][2] = { { "a", "a_limit" }, { "b", "b_limit" }, { "c", "c_limit" } };
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), y = x, one = mini_float(g, "one", 1);
    for (int i = 0; i < 3; i++) { /* while (y < 10 (i + 1)) y += 1 */
        const char *frame = names[i][0];
        const struct tare_edge limit = mini_float(g, "limit", 10.0f * (float)(i + 1));
        struct loop loop =
            open_loop(g, frame, enter(g, "e", y, frame, false), enter(g, names[i][1], limit, frame, true));
        close_loop(g, "next", &loop,
                   mini_node(g, "TestAdd", "step", 2, loop.body, enter(g, "one_in", one, frame, true)));
        y = loop.exit;
    }
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, x, 2.5, y), 30.5, 0);
    assert_float_equal(mini_number(session, x, 19.25, y), 30.25, 0);
    assert_float_equal(mini_number(session, x, 50, y), 50, 0);
    tare_session_free(session);
    tare_model_free(model);
}

/* i = 0; while (i < n) { j = 0; while (j < i) j += 1; i += 1; total += j } */
static void nest(const char *inner) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge n = mini_placeholder(g, "n", TARE_DT_FLOAT), zero = mini_float(g, "zero", 0);
    struct tare_edge outer_one = enter(g, "one_in", mini_float(g, "one", 1), "outer", true);
    struct tare_edge outer_zero = enter(g, "zero_in", zero, "outer", true);
    struct loop i = open_loop(g, "i", enter(g, "ei", zero, "outer", false), enter(g, "en", n, "outer", true));
    struct tare_edge total = mini_node(g, "Merge", "total", 2, enter(g, "et", zero, "outer", false), outer_zero);
    struct tare_edge total_switch = mini_node(g, "Switch", "total_switch", 2, total, i.cond);
    struct tare_edge total_exit = mini_node(g, "Exit", "total_exit", 1, mini_output(total_switch, 0));
    struct loop j = open_loop(g, "j", enter(g, "ej", outer_zero, inner, false), enter(g, "eji", i.body, inner, true));
    struct tare_edge inner_one = enter(g, "one_in_in", outer_one, inner, true);
    close_loop(g, "next_j", &j, mini_node(g, "TestAdd", "j_step", 2, j.body, inner_one));
    close_loop(g, "next_i", &i, mini_node(g, "TestAdd", "i_step", 2, i.body, outer_one));
    tare_node_set_input(total.node, 1,
                        mini_node(g, "NextIteration", "next_total", 1,
                                  mini_node(g, "TestAdd", "sum", 2, mini_output(total_switch, 1), j.exit)));
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, n, 5, total_exit), 0 + 1 + 2 + 3 + 4, 0);
    assert_float_equal(mini_number(session, n, 0, total_exit), 0, 0);
    assert_float_equal(mini_number(session, n, 1, total_exit), 0, 0);
    tare_session_free(session);
    tare_model_free(model);
}

/* A frame is another one than its parent, also if both have one name. */
static void frames__nest(void **state) {
    (void)state;
    nest("inner");
    nest("outer");
}

/* A loop on the branch not taken: its Exit is dead, the Merge behind takes the other side. */
static void frames__on_a_branch_not_taken(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge p = mini_placeholder(g, "p", TARE_DT_BOOL), x = mini_float(g, "x", 3),
                     ten = mini_float(g, "ten", 10);
    struct tare_edge s = mini_node(g, "Switch", "s", 2, x, p);
    struct tare_edge live_ten = mini_node(g, "Switch", "st", 2, ten, p);
    struct loop loop = open_loop(g, "w", enter(g, "e", mini_output(s, 1), "f", false),
                                 enter(g, "l", mini_output(live_ten, 1), "f", true));
    struct tare_edge one = mini_float(g, "one", 1);
    mini_ok(tare_node_add_control(one.node, loop.body.node));
    close_loop(g, "next", &loop, mini_node(g, "TestAdd", "step", 2, loop.body, one));
    struct tare_edge merge = mini_node(g, "Merge", "merge", 2, mini_output(s, 0), loop.exit);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, p, 1, merge), 10, 0);
    assert_float_equal(mini_number(session, p, 0, merge), 3, 0);
    assert_float_equal(mini_number(session, p, 1, merge), 10, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void frames__faults_inside_leak_nothing(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), ten = mini_float(g, "ten", 10);
    struct loop loop = open_loop(g, "w", enter(g, "e", x, "f", false), enter(g, "l", ten, "f", true));
    close_loop(g, "next", &loop, mini_node(g, "TestFail", "bad", 1, loop.body));
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 1), result;
    mini_fails(tare_session_run(session, &x, &fed, 1, &loop.exit, &result, 1, NULL, 0), "bad (TestFail)");
    struct tare_edge inside = loop.body;
    mini_fails(tare_session_run(session, &x, &fed, 1, &inside, &result, 1, NULL, 0), "inside a loop");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void merge__with_a_back_edge_but_no_frame_still_ends(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_float(g, "x", 1);
    struct tare_edge merge = mini_node(g, "Merge", "m", 2, x, x);
    tare_node_set_input(merge.node, 1, mini_node(g, "NextIteration", "n", 1, merge));
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, none, 0, merge), 1, 0);
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(if__runs_one_branch),
        cmocka_unit_test(case__takes_the_last_branch_for_an_index_outside),
        cmocka_unit_test(while__runs_until_the_condition_fails),
        cmocka_unit_test(while__passes_a_fault_on_and_leaks_nothing),
        cmocka_unit_test(switch__leaves_one_side_out),
        cmocka_unit_test(frames__count_in_a_loop),
        cmocka_unit_test(frames__follow_each_other),
        cmocka_unit_test(frames__nest),
        cmocka_unit_test(frames__on_a_branch_not_taken),
        cmocka_unit_test(frames__faults_inside_leak_nothing),
        cmocka_unit_test(merge__with_a_back_edge_but_no_frame_still_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
