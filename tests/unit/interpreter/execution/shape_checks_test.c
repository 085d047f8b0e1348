/* Assertions that depend on shapes of feeds alone run once for the same shapes, and fail for every wrong one. */
#include "support/mini_model.h"

#include "base/arena.h"

#include <string.h>

struct checked {
    struct tare_graph_model *model;
    struct tare_edge x, y;
    struct tare_session *session;
};

/* main(x): y = f(x), whose Assert requires at most three rows; with `reads_data` an element of x decides as well. */
static void begin(struct checked *c, bool reads_data, bool returns_size) {
    const struct tare_session_options options = { .profile = true };
    c->model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(c->model, "f");
    const struct tare_edge in = mini_arg(f, "in", TARE_DT_FLOAT);
    struct tare_node *shape = mini_open(f, "Shape", "shape", 1, mini_node(f, "Identity", "same", 1, in));
    mini_ok(tare_node_set_type(shape, "out_type", TARE_DT_INT32));
    const struct tare_edge rows =
        mini_node(f, "GatherV2", "rows", 3, mini_done(shape), mini_int(f, "first", 0), mini_int(f, "axis", 0));
    struct tare_edge limit = mini_int(f, "limit", 3);
    if (reads_data) {
        struct tare_node *cast =
            mini_open(f, "Cast", "cast", 1, mini_node(f, "Max", "max", 2, in, mini_int(f, "all", 0)));
        mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_INT32));
        limit = mini_done(cast);
    }
    const struct tare_edge flag = mini_node(f, "LessEqual", "flag", 2, rows, limit);
    struct tare_node *check = mini_open(f, "Assert", "check", 2, flag, rows);
    const int types[] = { TARE_DT_INT32 };
    mini_ok(tare_node_set_type_list(check, "T", types, 1));
    mini_ok(tare_node_resolve(check));
    f->is_stateful = true;
    mini_ok(tare_graph_add_control_return(f, "check", check));
    mini_return(f, "out", returns_size ? rows : mini_node(f, "Neg", "neg", 1, in));
    c->x = mini_placeholder(c->model->main, "x", TARE_DT_FLOAT);
    c->y = mini_call(c->model->main, "StatefulPartitionedCall", "call", f, 1, c->x);
    mini_ok(tare_session_new(&c->session, c->model, &options));
}

static void end(struct checked *c) {
    tare_session_free(c->session);
    tare_model_free(c->model);
}

static tare_status run(struct checked *c, int rows, float value) {
    const struct tare_shape shape = { .rank = 1, .dims = { rows } };
    struct tare_tensor x, y;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < rows; i++)
        TARE_DATA(float, &x)[i] = value;
    const tare_status status = tare_session_run(c->session, &c->x, &x, 1, &c->y, &y, 1, NULL, 0);
    if (status == TARE_OK && y.dtype == TARE_DT_INT32) assert_int_equal(TARE_DATA(int32_t, &y)[0], rows);
    if (status == TARE_OK && y.dtype == TARE_DT_FLOAT) assert_float_equal(TARE_DATA(float, &y)[rows - 1], -value, 0);
    if (status == TARE_OK) tare_tensor_reset(&y);
    tare_tensor_reset(&x);
    return status;
}

static int calls_of(const struct checked *c, const char *name) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    int calls = 0;
    mini_ok(tare_session_profile(&rows, &count, &arena, c->session));
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].node->name, name) == 0) calls += (int)rows[i].calls;
    tare_arena_free(&arena);
    return calls;
}

static void checks__of_the_same_shapes_run_once(void **state) {
    struct checked c;
    (void)state;
    begin(&c, false, false);
    for (int i = 0; i < 5; i++)
        mini_ok(run(&c, 2, 7));
    assert_int_equal(calls_of(&c, "check"), 1);
    assert_int_equal(calls_of(&c, "shape"), 1);
    assert_int_equal(calls_of(&c, "neg"), 5);
    mini_ok(run(&c, 3, 7));
    assert_int_equal(calls_of(&c, "check"), 2);
    end(&c);
}

static void checks__fail_for_every_wrong_shape(void **state) {
    struct checked c;
    (void)state;
    begin(&c, false, false);
    mini_ok(run(&c, 2, 7));
    for (int i = 0; i < 2; i++) {
        mini_fails(run(&c, 4, 7), "assertion failed: [4]");
        mini_fails(run(&c, 4, 7), "assertion failed: [4]");
        mini_ok(run(&c, 2, 7));
        mini_ok(run(&c, 2, 7));
    }
    end(&c);
}

static void checks__of_data_run_always(void **state) {
    struct checked c;
    (void)state;
    begin(&c, true, false);
    mini_ok(run(&c, 2, 7));
    mini_ok(run(&c, 2, 2));
    mini_fails(run(&c, 2, 1), "assertion failed: [2]");
    mini_ok(run(&c, 2, 7));
    assert_int_equal(calls_of(&c, "check"), 4);
    end(&c);
}

static void checks__compute_what_is_returned(void **state) {
    struct checked c;
    (void)state;
    begin(&c, false, true);
    mini_ok(run(&c, 2, 7));
    mini_ok(run(&c, 2, 7));
    mini_ok(run(&c, 1, 7));
    mini_fails(run(&c, 5, 7), "assertion failed: [5]");
    assert_int_equal(calls_of(&c, "rows"), 4);
    assert_int_equal(calls_of(&c, "check"), 3);
    end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks__of_the_same_shapes_run_once),
        cmocka_unit_test(checks__fail_for_every_wrong_shape),
        cmocka_unit_test(checks__of_data_run_always),
        cmocka_unit_test(checks__compute_what_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
