/* Which models go different ways for different values of their inputs. */
#include "graph/data_dependence.h"

#include "support/mini_model.h"

struct fixture {
    struct tare_graph_model *model;
    struct tare_edge x; /* the signature's input */
};

static struct fixture open_fixture(void) {
    struct fixture f = { .model = mini_model_new() };
    f.x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
    return f;
}

static void expect(const struct fixture *f, bool expected) {
    struct tare_binding input = { .key = "x", .dtype = TARE_DT_FLOAT, .edge = f->x };
    const struct tare_signature signature = { "test", "", &input, 1, NULL, 0, NULL };
    bool dependent = !expected;
    mini_ok(tare_signature_is_data_dependent(&dependent, &signature));
    assert_int_equal(dependent, expected);
    tare_model_free(f->model);
}

static void add_unary(struct tare_graph_model *model, const char *name) {
    struct tare_graph *function = tare_model_add_function(model, name);
    mini_return(function, "y", mini_arg(function, "x", TARE_DT_FLOAT));
}

static void add_if(struct fixture *f, struct tare_edge predicate) {
    const int types[] = { TARE_DT_FLOAT };
    add_unary(f->model, "then");
    add_unary(f->model, "else");
    struct tare_node *node = mini_open(f->model->main, "StatelessIf", "if", 2, predicate, f->x);
    mini_ok(tare_node_set_type_list(node, "Tout", types, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "then"));
    mini_ok(tare_node_set_func(node, "else_branch", "else"));
    mini_done(node);
}

static void a_branch__is_data_dependent_by_a_comparison_of_the_input(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    add_if(&f, mini_node(f.model->main, "TestLess", "less", 2, f.x, mini_float(f.model->main, "c", 1)));
    expect(&f, true);
}

static void a_branch__is_not_data_dependent_by_a_constant_or_a_rank(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    add_if(&f, mini_bool(f.model->main, "p", true));
    expect(&f, false);
    f = open_fixture();
    struct tare_edge rank = mini_node(f.model->main, "Rank", "rank", 1, f.x);
    add_if(&f, mini_node(f.model->main, "TestLess", "less", 2, rank, mini_int(f.model->main, "two", 2)));
    expect(&f, false);
}

/* if (size(x) < 64): true for one record, false for a large batch */
static void a_branch__is_data_dependent_by_the_size_of_the_batch(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct tare_edge size = mini_node(f.model->main, "Size", "size", 1, f.x);
    add_if(&f, mini_node(f.model->main, "TestLess", "less", 2, size, mini_int(f.model->main, "most", 64)));
    expect(&f, true);
}

/* The predicate is computed two calls down. */
static void a_branch__is_data_dependent_through_functions(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct tare_graph *inner = tare_model_add_function(f.model, "inner"),
                      *outer = tare_model_add_function(f.model, "outer");
    struct tare_edge x = mini_arg(inner, "x", TARE_DT_FLOAT);
    mini_return(inner, "less", mini_node(inner, "TestLess", "less", 2, x, mini_float(inner, "c", 1)));
    x = mini_arg(outer, "x", TARE_DT_FLOAT);
    mini_return(outer, "less", mini_call(outer, "PartitionedCall", "call", inner, 1, x));
    add_if(&f, mini_call(f.model->main, "StatefulPartitionedCall", "call", outer, 1, f.x));
    expect(&f, true);
}

/* while (a < limit) a += step */
static void add_while(struct fixture *f, struct tare_edge a, struct tare_edge step) {
    struct tare_graph *cond = tare_model_add_function(f->model, "cond"),
                      *body = tare_model_add_function(f->model, "body");
    struct tare_edge x = mini_arg(cond, "a", TARE_DT_FLOAT);
    mini_arg(cond, "step", TARE_DT_FLOAT);
    mini_return(cond, "again", mini_node(cond, "TestLess", "less", 2, x, mini_float(cond, "limit", 10)));
    x = mini_arg(body, "a", TARE_DT_FLOAT);
    struct tare_edge s = mini_arg(body, "step", TARE_DT_FLOAT);
    mini_return(body, "a", mini_node(body, "TestAdd", "add", 2, x, s));
    mini_return(body, "step", s);
    struct tare_node *node = mini_open(f->model->main, "While", "while", 2, a, step);
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    mini_done(node);
}

static void a_loop__is_data_dependent_by_what_goes_round(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    add_while(&f, mini_float(f.model->main, "a", 0), f.x); /* only after the first round */
    expect(&f, true);
}

static void a_loop__that_counts_is_not_data_dependent(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    add_while(&f, mini_float(f.model->main, "a", 0), mini_float(f.model->main, "one", 1));
    expect(&f, false);
}

static void a_loop__over_the_batch_is_not_data_dependent(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    add_while(&f, mini_float(f.model->main, "a", 0), mini_node(f.model->main, "Size", "size", 1, f.x));
    expect(&f, false);
}

static void a_switch_of_a_frozen_graph__is_data_dependent_by_its_predicate(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct tare_edge less = mini_node(f.model->main, "TestLess", "less", 2, f.x, mini_float(f.model->main, "c", 1));
    mini_node(f.model->main, "Switch", "switch", 2, mini_float(f.model->main, "v", 2), less);
    expect(&f, true);
    f = open_fixture();
    mini_node(f.model->main, "Switch", "switch", 2, f.x, mini_bool(f.model->main, "p", false));
    expect(&f, false);
}

static bool batches(bool is_component, int rank, int64_t first, bool unknown_rank) {
    static const struct tare_composite_tensor whole = { "y", "SparseTensor" };
    struct tare_binding inputs[2] = { { .key = "x" }, { .key = "y", .whole = is_component ? &whole : NULL } };
    const struct tare_signature signature = { "test", "", inputs, 2, NULL, 0, NULL };
    inputs[0].shape = tare_shape_make(2, -1, 3);
    inputs[1].shape = (struct tare_shape){ .rank = rank, .dims = { first } };
    return tare_signature_batches(&signature, unknown_rank);
}

static void a_signature__batches_when_every_input_leaves_its_first_dimension_open(void **state) {
    (void)state;
    const struct tare_signature none = { "test", "", NULL, 0, NULL, 0, NULL };
    assert_true(batches(false, 1, -1, false));
    assert_false(batches(false, 1, 8, true));
    assert_false(batches(false, 0, 0, true));
    assert_false(batches(true, 2, -1, true));
    assert_false(batches(false, TARE_UNKNOWN_RANK, 0, false));
    assert_true(batches(false, TARE_UNKNOWN_RANK, 0, true));
    assert_false(tare_signature_batches(&none, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch__is_data_dependent_by_a_comparison_of_the_input),
        cmocka_unit_test(a_branch__is_not_data_dependent_by_a_constant_or_a_rank),
        cmocka_unit_test(a_branch__is_data_dependent_by_the_size_of_the_batch),
        cmocka_unit_test(a_loop__over_the_batch_is_not_data_dependent),
        cmocka_unit_test(a_branch__is_data_dependent_through_functions),
        cmocka_unit_test(a_loop__is_data_dependent_by_what_goes_round),
        cmocka_unit_test(a_loop__that_counts_is_not_data_dependent),
        cmocka_unit_test(a_signature__batches_when_every_input_leaves_its_first_dimension_open),
        cmocka_unit_test(a_switch_of_a_frozen_graph__is_data_dependent_by_its_predicate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
