/* Suggested functions: the largest that the TPU runs whole, and where the others are to be split. */
#include "tpu/suggest.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *top;
    struct tare_binding out;
    struct tare_signature signature;
    struct tare_tpu_suggestions found;
};

static void set_up(struct fixture *f) {
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->top = tare_model_add_function(f->model, "top");
}

/* A signature over `top` with one argument. */
static void suggest(struct fixture *f) {
    struct tare_edge x = mini_placeholder(f->model->main, "x", f->top->args[0]->output_dtypes[0]);
    f->out =
        (struct tare_binding){ .key = "y", .edge = mini_call(f->model->main, "PartitionedCall", "call", f->top, 1, x) };
    f->signature = (struct tare_signature){ .key = "serving_default", .outputs = &f->out, .n_outputs = 1 };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
    mini_ok(tare_tpu_suggest(&f->found, &f->arena, f->model));
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = f->model->n_aliases = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static struct tare_graph *dense(struct fixture *f, const char *name) {
    struct tare_graph *graph = tare_model_add_function(f->model, name);
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    mini_return(graph, "y", mini_node(graph, "Relu", "relu", 1, mini_node(graph, "MatMul", "matmul", 2, x, x)));
    return graph;
}

static void expect_remark(const struct fixture *f, const char *part) {
    for (size_t i = 0; i < f->found.n_remarks; i++)
        if (strstr(f->found.remarks[i].text, part)) return;
    fail_msg("no remark with '%s' among %zu (the first: '%s')", part, f->found.n_remarks,
             f->found.n_remarks ? f->found.remarks[0].text : "");
}

static void a_clean_model__is_suggested_whole(void **state) {
    struct fixture f;
    struct tare_graph *inner;
    (void)state;
    set_up(&f);
    inner = dense(&f, "inner");
    mini_return(f.top, "y", mini_call(f.top, "PartitionedCall", "call", inner, 1, mini_arg(f.top, "x", TARE_DT_FLOAT)));
    suggest(&f);
    assert_int_equal(f.found.count, 1);
    assert_ptr_equal(f.found.items[0].function, f.top); /* not what it calls */
    assert_int_equal(f.found.items[0].ops, 2);
    assert_int_equal(f.found.ops, 2);
    assert_int_equal(f.found.n_remarks, 0);
    tear_down(&f);
}

/* class LanguageModel: strings first, then the network in a function of its own. */
static void strings_at_the_beginning__leave_the_inner_function(void **state) {
    struct tare_alias alias = { "bert", "tpu_func" };
    struct fixture f;
    struct tare_graph *bert;
    struct tare_edge words;
    (void)state;
    set_up(&f);
    bert = dense(&f, "bert");
    f.model->aliases = &alias;
    f.model->n_aliases = 1;
    words = mini_node(f.top, "StringToNumber", "preprocess", 1, mini_arg(f.top, "input_string", TARE_DT_STRING));
    words = mini_node(f.top, "Sqrt", "scale", 1, words);
    mini_return(f.top, "y", mini_call(f.top, "PartitionedCall", "call", bert, 1, words));
    suggest(&f);
    assert_int_equal(f.found.count, 1);
    assert_ptr_equal(f.found.items[0].function, bert);
    assert_string_equal(f.found.items[0].alias, "tpu_func");
    assert_int_equal(f.found.covered, 2);
    assert_int_equal(f.found.ops, 4);
    expect_remark(&f, "1 thing the TPU cannot do, at the beginning: move what comes after it (1 op; takes "
                      "'preprocess' float32) into a function of its own");
    tear_down(&f);
}

static void strings_in_the_middle__ask_for_three_parts(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_node(f.top, "Sqrt", "first", 1, mini_arg(f.top, "x", TARE_DT_FLOAT));
    x = mini_node(f.top, "StringToNumber", "parse", 1, mini_node(f.top, "AsString", "print", 1, x));
    mini_return(f.top, "y", mini_node(f.top, "Exp", "last", 1, x));
    suggest(&f);
    assert_int_equal(f.found.count, 0);
    expect_remark(&f, "in the middle: split the function into three, and put the first (1 op; returns 'first' float32) "
                      "and the last (1 op; takes 'parse' float32) on the TPU");
    tear_down(&f);
}

static void strings_at_the_end__ask_for_what_comes_before(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_node(f.top, "Sqrt", "first", 1, mini_arg(f.top, "x", TARE_DT_FLOAT));
    mini_return(f.top, "y", mini_node(f.top, "AsString", "print", 1, x));
    suggest(&f);
    expect_remark(&f,
                  "at the end: return what comes before it (1 op; returns 'first' float32) from a function of its own");
    tear_down(&f);
}

/* Both functions are clean, but one runs inside the other. */
static void a_function_inside_another__is_not_suggested_besides(void **state) {
    struct fixture f;
    struct tare_graph *small, *large;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    small = dense(&f, "small");
    large = tare_model_add_function(f.model, "large");
    x = mini_arg(large, "x", TARE_DT_FLOAT);
    mini_return(large, "y",
                mini_node(large, "Exp", "exp", 1, mini_call(large, "PartitionedCall", "call", small, 1, x)));
    x = mini_node(f.top, "StringToNumber", "parse", 1, mini_arg(f.top, "s", TARE_DT_STRING));
    x = mini_call(f.top, "PartitionedCall", "first", small, 1, x);
    mini_return(f.top, "y", mini_call(f.top, "PartitionedCall", "second", large, 1, x));
    suggest(&f);
    assert_int_equal(f.found.count, 1);
    assert_ptr_equal(f.found.items[0].function, large);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_model__is_suggested_whole),
        cmocka_unit_test(strings_at_the_beginning__leave_the_inner_function),
        cmocka_unit_test(strings_in_the_middle__ask_for_three_parts),
        cmocka_unit_test(strings_at_the_end__ask_for_what_comes_before),
        cmocka_unit_test(a_function_inside_another__is_not_suggested_besides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
