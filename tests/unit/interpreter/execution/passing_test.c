/* Steps that only pass on a value, perhaps with another shape: results from run to run. */
#include "support/mini_model.h"

#include "base/arena.h"

#include <string.h>

struct passed {
    struct tare_graph_model *model;
    struct tare_edge x, y;
    struct tare_session *session;
};

/* y = f(x) of the function's output; its Neg shows that the value arrives, and may be computed in its place. */
static struct tare_graph *begin(struct passed *p, struct tare_edge *in) {
    p->model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(p->model, "f");
    *in = mini_arg(f, "in", TARE_DT_FLOAT);
    return f;
}

static void open_session(struct passed *p, struct tare_graph *f, struct tare_edge out, bool profile) {
    const struct tare_session_options options = { .profile = profile };
    mini_return(f, "out", out);
    p->x = mini_placeholder(p->model->main, "x", TARE_DT_FLOAT);
    p->y = mini_call(p->model->main, "PartitionedCall", "call", f, 1, p->x);
    mini_ok(tare_session_new(&p->session, p->model, &options));
}

static void end(struct passed *p) {
    tare_session_free(p->session);
    tare_model_free(p->model);
}

/* Runs with rows × columns values first, first + 1 … */
static tare_status run(struct passed *p, int rows, int columns, float first, struct tare_tensor *y) {
    const struct tare_shape shape = { .rank = 2, .dims = { rows, columns } };
    struct tare_tensor x;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < rows * columns; i++)
        TARE_DATA(float, &x)[i] = first + (float)i;
    const tare_status status = tare_session_run(p->session, &p->x, &x, 1, &p->y, y, 1, NULL, 0);
    for (int i = 0; i < rows * columns; i++) /* the caller's tensor stays as it is */
        assert_float_equal(TARE_DATA(float, &x)[i], first + (float)i, 0);
    tare_tensor_reset(&x);
    return status;
}

static void assert_result(struct passed *p, int rows, int columns, float first, float factor, int rank,
                          const int64_t *dims) {
    struct tare_tensor y;
    mini_ok(run(p, rows, columns, first, &y));
    assert_int_equal(y.shape.rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(y.shape.dims[i], dims[i]);
    for (int i = 0; i < rows * columns; i++)
        assert_float_equal(TARE_DATA(float, &y)[i], factor * (first + (float)i), 0);
    tare_tensor_reset(&y);
}

static void reshape__has_the_shape_of_each_input(void **state) {
    struct passed p;
    struct tare_edge in;
    const int32_t pairs[] = { -1, 2 };
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    const struct tare_edge same = mini_node(f, "Identity", "same", 1, in);
    const struct tare_edge halves = mini_node(f, "Reshape", "pairs", 2, same, mini_ints(f, "shape", 2, pairs));
    open_session(&p, f, mini_node(f, "Neg", "neg", 1, halves), false);
    for (int i = 0; i < 3; i++) {
        assert_result(&p, 2, 3, 1, -1, 2, (const int64_t[]){ 3, 2 });
        assert_result(&p, 2, 3, 9, -1, 2, (const int64_t[]){ 3, 2 });
        assert_result(&p, 4, 2, 5, -1, 2, (const int64_t[]){ 4, 2 });
        assert_result(&p, 3, 2, 5, -1, 2, (const int64_t[]){ 3, 2 });
    }
    end(&p);
}

static void reshape__fails_for_every_wrong_shape(void **state) {
    struct passed p;
    struct tare_edge in;
    struct tare_tensor y;
    const int32_t six[] = { 6 };
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    open_session(&p, f, mini_node(f, "Reshape", "six", 2, in, mini_ints(f, "shape", 1, six)), false);
    for (int i = 0; i < 3; i++) {
        assert_result(&p, 2, 3, 1, 1, 1, (const int64_t[]){ 6 });
        assert_result(&p, 2, 3, 4, 1, 1, (const int64_t[]){ 6 });
        mini_fails(run(&p, 2, 4, 1, &y), "Input to reshape is a tensor with 8 values");
        mini_fails(run(&p, 2, 4, 1, &y), "Input to reshape is a tensor with 8 values");
    }
    end(&p);
}

static void reshape__of_a_computed_shape_follows_it(void **state) {
    struct passed p;
    struct tare_edge in;
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    struct tare_node *cast = mini_open(f, "Cast", "cast", 1, mini_node(f, "Max", "max", 2, in, mini_int(f, "all", 0)));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_INT32));
    open_session(&p, f, mini_node(f, "Reshape", "computed", 2, in, mini_done(cast)), false);
    for (int i = 0; i < 3; i++) { /* one row of two columns: their values are the shape */
        assert_result(&p, 1, 2, 1, 1, 2, (const int64_t[]){ 1, 2 });
        struct tare_tensor y;
        mini_fails(run(&p, 1, 2, 2, &y), "Input to reshape is a tensor with 2 values");
    }
    end(&p);
}

static void value__used_again_is_kept(void **state) {
    struct passed p;
    struct tare_edge in;
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    const struct tare_edge neg = mini_node(f, "Neg", "neg", 1, in), same = mini_node(f, "Identity", "same", 1, neg);
    const struct tare_edge sum = mini_node(f, "AddV2", "sum", 2, mini_node(f, "Neg", "back", 1, same), neg);
    open_session(&p, f, mini_node(f, "Sub", "difference", 2, sum, same), false); /* (x - x) + x */
    for (int i = 0; i < 3; i++)
        assert_result(&p, 2, 2, (float)i, 1, 2, (const int64_t[]){ 2, 2 });
    end(&p);
}

static void result__may_be_the_input(void **state) {
    struct passed p;
    struct tare_edge in;
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    open_session(&p, f, mini_node(f, "Identity", "same", 1, mini_node(f, "StopGradient", "stop", 1, in)), false);
    for (int i = 0; i < 3; i++)
        assert_result(&p, 2, 2, (float)i, 1, 2, (const int64_t[]){ 2, 2 });
    end(&p);
}

static tare_status count_value(void *arg, const struct tare_node *node, size_t output,
                               const struct tare_tensor *value) {
    (void)output, (void)value;
    *(int *)arg += strcmp(node->name, "same") == 0;
    return TARE_OK;
}

static void observer__sees_each_value(void **state) {
    struct passed p;
    struct tare_edge in;
    int count = 0;
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    open_session(&p, f, mini_node(f, "Neg", "neg", 1, mini_node(f, "Identity", "same", 1, in)), false);
    assert_result(&p, 1, 2, 3, -1, 2, (const int64_t[]){ 1, 2 });
    tare_session_observe(p.session, count_value, NULL, &count);
    assert_result(&p, 1, 2, 3, -1, 2, (const int64_t[]){ 1, 2 });
    assert_result(&p, 1, 2, 4, -1, 2, (const int64_t[]){ 1, 2 });
    assert_int_equal(count, 2);
    end(&p);
}

static int calls_of(const struct passed *p, const char *name) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    int calls = 0;
    mini_ok(tare_session_profile(&rows, &count, &arena, p->session));
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].node->name, name) == 0) calls += (int)rows[i].calls;
    tare_arena_free(&arena);
    return calls;
}

static void ops__without_inputs_and_effects_run_once(void **state) {
    struct passed p;
    struct tare_edge in;
    (void)state;
    struct tare_graph *f = begin(&p, &in);
    struct tare_node *core = mini_open(f, "TPUOrdinalSelector", "core", 0);
    mini_ok(tare_node_resolve(core));
    const struct tare_edge shape = mini_node(f, "ZerosLike", "zeros", 1, (struct tare_edge){ core, 0 });
    struct tare_node *cast = mini_open(f, "Cast", "cast", 1, shape);
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    open_session(&p, f, mini_node(f, "AddV2", "sum", 2, in, mini_done(cast)), true);
    for (int i = 0; i < 3; i++)
        assert_result(&p, 1, 2, (float)i, 1, 2, (const int64_t[]){ 1, 2 });
    assert_int_equal(calls_of(&p, "core"), 1);
    assert_int_equal(calls_of(&p, "sum"), 3);
    end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape__has_the_shape_of_each_input),
        cmocka_unit_test(reshape__fails_for_every_wrong_shape),
        cmocka_unit_test(reshape__of_a_computed_shape_follows_it),
        cmocka_unit_test(value__used_again_is_kept),
        cmocka_unit_test(result__may_be_the_input),
        cmocka_unit_test(observer__sees_each_value),
        cmocka_unit_test(ops__without_inputs_and_effects_run_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
