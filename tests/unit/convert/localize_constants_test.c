/* Constants that call sites pass, before and after the pass: same results, constants where they are used, fewer
 * arguments. */
#include "convert/passes/copies.h"
#include "support/diagonal.h"

#include "convert/pass.h"

static struct tare_edge weight(struct tare_graph *graph, const char *name, float value) {
    struct tare_tensor tensor = diagonal(DIAGONAL_SIDE, value);
    struct tare_edge edge = { tare_graph_add_const(graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static size_t run_pass(struct tare_graph_model *model) {
    size_t changes = 0;
    mini_ok(tare_pass_localize_constants.run(model, &changes));
    return changes;
}

static void same_constant__goes_into_the_function(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = diagonal_product(model, "f");
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), w = weight(model->main, "w", 3);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "first", f, 2, x, w);
    y = mini_call(model->main, "PartitionedCall", "second", f, 2, y, w);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 9);
    assert_int_equal(run_pass(model), 1);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 9);
    assert_int_equal(f->n_args, 1);
    assert_non_null(tare_edge_constant(tare_graph_find(f, "product")->inputs[1]));
    tare_model_free(model);
}

/* As in a function that TensorFlow has frozen: its results wait for the identities that reads of variables became. */
static void waiting_for_a_constant__keeps_no_argument(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = diagonal_product(model, "f");
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), w = weight(model->main, "w", 3);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "call", f, 2, x, w);
    mini_ok(tare_node_add_control(tare_graph_find(f, "product"), f->args[0]));
    mini_ok(tare_node_add_control(tare_graph_find(f, "product"), f->args[1]));
    run_pass(model);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 3);
    assert_int_equal(f->n_args, 1);
    assert_int_equal(tare_graph_find(f, "product")->n_controls, 1); /* what varies is waited for */
    tare_model_free(model);
}

static void other_weights__get_a_copy_of_the_function_each(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = diagonal_product(model, "f");
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "first", f, 2, x, weight(model->main, "a", 2));
    y = mini_call(model->main, "PartitionedCall", "second", f, 2, y, weight(model->main, "b", 5));
    run_pass(model);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 10);
    struct tare_graph *first = tare_node_function(tare_graph_find(model->main, "first"), "f");
    struct tare_graph *second = tare_node_function(tare_graph_find(model->main, "second"), "f");
    assert_ptr_not_equal(first, second);
    assert_non_null(tare_edge_constant(tare_graph_find(first, "product")->inputs[1]));
    assert_non_null(tare_edge_constant(tare_graph_find(second, "product")->inputs[1]));
    tare_model_free(model);
}

/* Matrices from 64 elements on, such as a 3 x 3 convolution of 3 channels; vectors are mostly biases and scales. */
static void other_weights__are_those_of_layers(void **state) {
    (void)state;
    static const struct {
        int dtype, rank;
        int64_t rows, columns;
        bool is_weight;
    } cases[] = { { TARE_DT_FLOAT, 2, 8, 8, true },     { TARE_DT_HALF, 2, 8, 8, true },
                  { TARE_DT_INT32, 2, 8, 8, false },    { TARE_DT_FLOAT, 2, 7, 9, false },
                  { TARE_DT_FLOAT, 1, 1023, 1, false }, { TARE_DT_FLOAT, 1, 1024, 1, true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tare_tensor weight = { .dtype = cases[i].dtype,
                                            .elements = cases[i].rows * cases[i].columns,
                                            .shape = { .rank = cases[i].rank,
                                                       .dims = { cases[i].rows, cases[i].columns } } };
        assert_int_equal(tare_is_worth_copying(&weight), cases[i].is_weight);
    }
}

/* g(x, w) = f(f(x, w), w) */
static struct tare_graph *nested_product(struct tare_graph_model *model) {
    struct tare_graph *f = diagonal_product(model, "f"), *g = tare_model_add_function(model, "g");
    struct tare_edge x = mini_arg(g, "x", TARE_DT_FLOAT), w = mini_arg(g, "w", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(g, "PartitionedCall", "inner", f, 2, x, w);
    mini_return(g, "y", mini_call(g, "PartitionedCall", "again", f, 2, y, w));
    return g;
}

/* The caller gets its weights as arguments, too: they are constants only once they were moved into it. */
static void other_weights__reach_functions_of_the_copies(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = nested_product(model);
    (void)state;
    struct tare_graph *h = tare_model_add_function(model, "h");
    struct tare_edge x = mini_arg(h, "x", TARE_DT_FLOAT), a = mini_arg(h, "a", TARE_DT_FLOAT),
                     b = mini_arg(h, "b", TARE_DT_FLOAT);
    x = mini_call(h, "PartitionedCall", "first", g, 2, x, a);
    mini_return(h, "y", mini_call(h, "PartitionedCall", "second", g, 2, x, b));
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "h", h, 3, x, weight(model->main, "a", 2),
                                   weight(model->main, "b", 5));
    run_pass(model);
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 100);
    for (int i = 0; i < 2; i++) {
        const struct tare_graph *copy = tare_node_function(tare_graph_find(h, i ? "second" : "first"), "f");
        const struct tare_graph *inner = tare_node_function(tare_graph_find(copy, "again"), "f");
        assert_non_null(tare_edge_constant(tare_graph_find(inner, "product")->inputs[1]));
    }
    tare_model_free(model);
}

static void text__stays_where_a_loader_replaces_it(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    (void)state;
    mini_return(f, "y", mini_node(f, "Identity", "y", 1, mini_arg(f, "path", TARE_DT_STRING)));
    mini_call(model->main, "PartitionedCall", "call", f, 1,
              mini_strings(model->main, "asset", 1, (const char *const[]){ "vocabulary.txt" }));
    assert_int_equal(run_pass(model), 0);
    assert_int_equal(f->n_args, 1);
    tare_model_free(model);
}

static void argument_that_varies__stays(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = diagonal_product(model, "f");
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT),
                     w = mini_placeholder(model->main, "w", TARE_DT_FLOAT);
    mini_call(model->main, "PartitionedCall", "call", f, 2, x, w);
    assert_int_equal(run_pass(model), 0);
    assert_int_equal(f->n_args, 2);
    tare_model_free(model);
}

/* for (i = 0; i < 3; i++) x = x * w, with w (and the limit) carried through every step; returns i too. */
static struct tare_node *loop_model(struct tare_graph_model *model, struct tare_edge x, bool changes_weight) {
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_edge i = mini_arg(cond, "i", TARE_DT_INT32), limit;
    mini_arg(cond, "w", TARE_DT_FLOAT);
    mini_arg(cond, "x", TARE_DT_FLOAT);
    limit = mini_arg(cond, "limit", TARE_DT_INT32);
    mini_return(cond, "more", mini_node(cond, "Less", "less", 2, i, limit));
    i = mini_arg(body, "i", TARE_DT_INT32);
    struct tare_edge w = mini_arg(body, "w", TARE_DT_FLOAT), y = mini_arg(body, "x", TARE_DT_FLOAT);
    limit = mini_arg(body, "limit", TARE_DT_INT32);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "w", changes_weight ? mini_node(body, "AddV2", "grow", 2, w, w) : w);
    mini_return(body, "x", mini_node(body, "MatMul", "product", 2, y, w));
    mini_return(body, "limit", limit);
    struct tare_edge zero = mini_int(model->main, "zero", 0), three = mini_int(model->main, "three", 3);
    struct tare_node *loop = mini_open(model->main, "While", "loop", 4, zero, weight(model->main, "w", 2), x, three);
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_done(loop);
    return loop;
}

static void loop__carries_no_constant(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *loop = loop_model(model, x, false);
    struct tare_edge y = mini_node(model->main, "Identity", "y", 1, (struct tare_edge){ loop, 2 });
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 8);
    run_pass(model);
    assert_int_equal(loop->n_inputs, 2); /* i and x */
    assert_int_equal(loop->n_outputs, 2);
    assert_int_equal(y.node->inputs[0].index, 1);
    assert_non_null(tare_edge_constant(tare_graph_find(tare_model_find_function(model, "body"), "product")->inputs[1]));
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 8);
    tare_model_free(model);
}

static void loop__weight_that_changes_stays(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *loop = loop_model(model, x, true);
    struct tare_edge y = mini_node(model->main, "Identity", "y", 1, (struct tare_edge){ loop, 2 });
    run_pass(model);
    assert_null(tare_edge_constant(tare_graph_find(tare_model_find_function(model, "body"), "product")->inputs[1]));
    assert_true(diagonal_answer(model, x, y, DIAGONAL_SIDE) == 2 * 4 * 8);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_constant__goes_into_the_function),
        cmocka_unit_test(waiting_for_a_constant__keeps_no_argument),
        cmocka_unit_test(other_weights__get_a_copy_of_the_function_each),
        cmocka_unit_test(other_weights__are_those_of_layers),
        cmocka_unit_test(other_weights__reach_functions_of_the_copies),
        cmocka_unit_test(text__stays_where_a_loader_replaces_it),
        cmocka_unit_test(argument_that_varies__stays),
        cmocka_unit_test(loop__carries_no_constant),
        cmocka_unit_test(loop__weight_that_changes_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
