/* The form of variables' handles in TPU functions, and what placement changes in callers. */
#include "tpu/callers.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/placement.h"

#include <string.h>

static struct tare_attr must_compile(void) {
    static union tare_attr_item yes = { .b = true };
    return (struct tare_attr){ .name = "_XlaMustCompile", .kind = TARE_ATTR_BOOL, .count = 1, .items = &yes };
}

/* main calls outer(x) = inner(x), which calls f(x, v) = x * v; f is placed. All are to be compiled by XLA. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *f, *inner, *outer, *other;
    struct tare_edge y;
    struct tare_tpu_placed *placed;
    struct tare_attr attrs[4];
    size_t changes;
};

static struct tare_graph *add_caller(struct fixture *f, const char *name, const char *op, struct tare_graph *callee) {
    struct tare_graph *graph = tare_model_add_function(f->model, name);
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), v = mini_arg(graph, "v", TARE_DT_RESOURCE);
    struct tare_edge y = mini_call(graph, op, "call", callee, 2, x, v);
    mini_ok(tare_node_set_bool(y.node, "_XlaMustCompile", true));
    mini_return(graph, "y", y);
    return graph;
}

static void set_up(struct fixture *f) {
    struct tare_tpu_function function;
    struct tare_edge x, handle;
    struct tare_node *read;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->f = tare_model_add_function(f->model, "f");
    x = mini_arg(f->f, "x", TARE_DT_FLOAT);
    handle = mini_arg(f->f, "v", TARE_DT_RESOURCE);
    read = mini_open(f->f, "ReadVariableOp", "read", 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_return(f->f, "y", mini_node(f->f, "Mul", "mul", 2, x, mini_done(read)));
    f->inner = add_caller(f, "inner", "PartitionedCall", f->f);
    f->outer = add_caller(f, "outer", "StatefulPartitionedCall", f->inner);
    f->other = tare_model_add_function(f->model, "other");
    mini_return(f->other, "y", mini_node(f->other, "Relu", "relu", 1, mini_arg(f->other, "x", TARE_DT_FLOAT)));
    for (size_t i = 0; i < 4; i++) {
        struct tare_graph *graphs[] = { f->f, f->inner, f->outer, f->other };
        f->attrs[i] = must_compile();
        graphs[i]->attrs = &f->attrs[i];
        graphs[i]->n_attrs = graphs[i]->attrs_capacity = 1;
    }
    function = (struct tare_tpu_function){ f->f, NULL, "f" };
    mini_ok(tare_tpu_place(&f->placed, &f->arena, f->model, &function, 1, &(struct tare_tpu_place_options){ 0 }));
    mini_ok(tare_tpu_adapt_callers(f->model, &f->changes));
    graph_check_dtypes(f->model);
}

static void tear_down(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void handles_of_variables__reach_the_cluster_directly(void **state) {
    const struct tare_graph *body;
    const struct tare_node *read;
    struct fixture f;
    (void)state;
    set_up(&f);
    body = f.placed[0].replicated;
    read = graph_node(body, "read");
    assert_ptr_equal(read->inputs[0].node, body->args[1]);
    assert_string_equal(read->controls[0]->op, "TPUReplicateMetadata");
    assert_int_equal(graph_count(body, "TPUReplicatedInput"), 1); /* of x */
    tear_down(&f);
}

static void callers_of_tpu_functions__are_stateful(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_true(f.inner->is_stateful);
    assert_true(f.outer->is_stateful);
    assert_false(f.other->is_stateful);
    assert_int_equal(graph_count(f.inner, "StatefulPartitionedCall"), 1);
    assert_int_equal(graph_count(f.inner, "PartitionedCall"), 0);
    tear_down(&f);
}

static void requests_to_be_compiled_by_xla__end_above_tpu_calls(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    const struct tare_graph *graphs[] = { f.f, f.inner, f.outer, f.placed[0].replicated };
    for (size_t i = 0; i < 4; i++)
        assert_null(tare_graph_find_attr(graphs[i], "_XlaMustCompile"));
    for (size_t i = 0; i < 3; i++)
        assert_true(graphs[i]->must_not_jit);
    assert_null(tare_node_find_attr(graph_node(f.inner, "call"), "_XlaMustCompile"));
    assert_null(tare_node_find_attr(graph_node(f.outer, "call"), "_XlaMustCompile"));
    assert_non_null(tare_graph_find_attr(f.other, "_XlaMustCompile")); /* reaches no TPU call */
    assert_false(f.other->must_not_jit);
    tear_down(&f);
}

static void a_loop_around_a_tpu_call__becomes_stateful(void **state) {
    struct tare_graph *f, *condition, *body;
    struct tare_edge start, loop;
    struct tare_node *node;
    struct tare_graph_model *model = mini_model_new();
    size_t changes = 0;
    (void)state;
    f = tare_model_add_function(model, "f");
    node = mini_open(f, "TPUOrdinalSelector", "selector", 0);
    mini_return(f, "y", mini_done(node));
    condition = tare_model_add_function(model, "condition");
    mini_return(condition, "go",
                mini_node(condition, "Less", "less", 2, mini_arg(condition, "i", TARE_DT_INT32),
                          mini_int(condition, "three", 3)));
    body = tare_model_add_function(model, "body");
    mini_arg(body, "i", TARE_DT_INT32);
    node = mini_open(body, "TPUPartitionedCall", "call", 1, mini_int(body, "ordinal", 0));
    mini_ok(tare_node_set_func(node, "f", "f"));
    mini_ok(tare_node_set_type_list(node, "Tin", NULL, 0));
    mini_ok(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_INT32 }, 1));
    mini_return(body, "i", mini_done(node));
    start = mini_int(model->main, "start", 0);
    node = mini_open(model->main, "StatelessWhile", "loop", 1, start);
    mini_ok(tare_node_set_func(node, "cond", "condition"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    mini_ok(tare_node_set_type_list(node, "T", (int[]){ TARE_DT_INT32 }, 1));
    loop = mini_done(node);
    mini_ok(tare_tpu_adapt_callers(model, &changes));
    assert_string_equal(loop.node->op, "While");
    assert_true(body->is_stateful);
    assert_false(condition->is_stateful);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_variables__reach_the_cluster_directly),
        cmocka_unit_test(callers_of_tpu_functions__are_stateful),
        cmocka_unit_test(requests_to_be_compiled_by_xla__end_above_tpu_calls),
        cmocka_unit_test(a_loop_around_a_tpu_call__becomes_stateful),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
