/* Arguments that nothing uses: they are removed from functions, loops and branches, with the attributes that follow
 * them. */
#include "support/mini_model.h"

#include "graph/calls.h"
#include "graph/clone.h"

#include <stdio.h>
#include <string.h>

/* Gives the function an attribute _input_shapes of vectors, argument i of size i + 1. */
static void set_input_shapes(struct tare_graph *function) {
    struct tare_arena *arena = &function->model->arena;
    struct tare_attr *attr = TARE_NEW(arena, struct tare_attr);
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, function->n_args + 1);
    assert_true(attr && shapes);
    *attr = (struct tare_attr){ .name = "_input_shapes",
                                .kind = TARE_ATTR_SHAPE,
                                .is_list = true,
                                .count = function->n_args,
                                .origin = "the file's value" };
    attr->items = TARE_NEW_ARRAY(arena, union tare_attr_item, function->n_args + 1);
    assert_non_null(attr->items);
    for (size_t i = 0; i < function->n_args; i++) {
        shapes[i] = tare_shape_make(1, (int64_t)i + 1);
        attr->items[i].shape = &shapes[i];
    }
    function->attrs = attr;
    function->n_attrs = function->attrs_capacity = 1;
}

static int64_t listed_size(const struct tare_graph *function, size_t i) {
    const struct tare_attr *attr = tare_graph_find_attr(function, "_input_shapes");
    assert_non_null(attr);
    assert_true(i < attr->count);
    return attr->items[i].shape->dims[0];
}

static struct tare_edge handle(struct tare_graph_model *model, const char *name) {
    struct tare_node *node = mini_open(model->main, "VarHandleOp", name, 0);
    const struct tare_shape scalar = tare_shape_scalar();
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &scalar));
    return mini_done(node);
}

static size_t remove_unused(struct tare_graph_model *model) {
    size_t removed = 0;
    mini_ok(tare_model_remove_unused_args(&removed, model));
    return removed;
}

static void removed_argument__takes_its_shape_along(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *copy;
    (void)state;
    mini_arg(f, "unused", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "Identity", "y", 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    mini_arg(f, "last", TARE_DT_FLOAT);
    set_input_shapes(f);
    mini_ok(tare_function_clone(&copy, f, "copy"));
    mini_ok(tare_function_remove_args(f, (bool[]){ true, false, false }, NULL));
    assert_int_equal(tare_graph_find_attr(f, "_input_shapes")->count, 2);
    assert_int_equal(listed_size(f, 0), 2);
    assert_int_equal(listed_size(f, 1), 3);
    assert_null(tare_graph_find_attr(f, "_input_shapes")->origin); /* or the file's value would be written */
    assert_int_equal(tare_graph_find_attr(copy, "_input_shapes")->count, 3);
    tare_model_free(model);
}

static void dropped_shapes__stay_with_other_functions(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *copy;
    (void)state;
    mini_return(f, "y", mini_node(f, "Identity", "y", 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    set_input_shapes(f);
    mini_ok(tare_function_clone(&copy, f, "copy"));
    mini_ok(tare_graph_drop_arg_shapes(copy));
    assert_null(tare_graph_find_attr(copy, "_input_shapes"));
    assert_true(copy->arg_shapes_void);
    assert_int_equal(listed_size(f, 0), 1);
    assert_false(f->arg_shapes_void);
    tare_model_free(model);
}

/* while (i < 3) i++, carrying `value` of the given dtype that neither function reads. */
static struct tare_node *counting_loop(struct tare_graph *graph, const char *name, struct tare_edge start,
                                       struct tare_edge value) {
    struct tare_graph_model *model = graph->model;
    char text[64];
    struct tare_graph *cond, *body;
    snprintf(text, sizeof text, "%s_cond", name);
    cond = tare_model_add_function(model, tare_arena_strdup(&model->arena, text));
    snprintf(text, sizeof text, "%s_body", name);
    body = tare_model_add_function(model, tare_arena_strdup(&model->arena, text));
    mini_arg(cond, "carried", tare_edge_dtype(value));
    mini_return(cond, "more",
                mini_node(cond, "Less", "less", 2, mini_arg(cond, "i", TARE_DT_INT32), mini_int(cond, "three", 3)));
    mini_return(body, "carried", mini_arg(body, "carried", tare_edge_dtype(value)));
    mini_return(body, "i",
                mini_node(body, "AddV2", "next", 2, mini_arg(body, "i", TARE_DT_INT32), mini_int(body, "one", 1)));
    struct tare_node *loop = mini_open(graph, "While", name, 2, value, start);
    mini_ok(tare_node_set_func(loop, "cond", cond->name));
    mini_ok(tare_node_set_func(loop, "body", body->name));
    mini_done(loop);
    return loop;
}

/* Its gradient in TensorFlow takes argument 1 for the most iterations. */
static void loop_of_a_model_that_is_trained__keeps_its_arguments(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge w = handle(model, "w");
    struct tare_node *loop = counting_loop(model->main, "loop", mini_int(model->main, "start", 0), w);
    (void)state;
    model->keep_gradients = true;
    assert_int_equal(remove_unused(model), 0);
    assert_int_equal(loop->n_inputs, 2);
    model->keep_gradients = false;
    assert_int_equal(remove_unused(model), 1);
    tare_model_free(model);
}

static void loop_in_a_branch_in_a_call__lets_the_variable_go(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *yes = tare_model_add_function(model, "yes"),
                      *no = tare_model_add_function(model, "no");
    (void)state;
    struct tare_edge w = mini_arg(yes, "w", TARE_DT_RESOURCE);
    struct tare_node *loop = counting_loop(yes, "loop", mini_arg(yes, "i", TARE_DT_INT32), w);
    mini_return(yes, "i", (struct tare_edge){ loop, 1 });
    mini_arg(no, "w", TARE_DT_RESOURCE);
    mini_return(no, "i", mini_node(no, "Identity", "same", 1, mini_arg(no, "i", TARE_DT_INT32)));
    struct tare_edge c = mini_arg(f, "c", TARE_DT_BOOL), outer = mini_arg(f, "w", TARE_DT_RESOURCE);
    struct tare_node *branch = mini_open(f, "If", "branch", 3, c, outer, mini_arg(f, "i", TARE_DT_INT32));
    mini_ok(tare_node_set_func(branch, "then_branch", "yes"));
    mini_ok(tare_node_set_func(branch, "else_branch", "no"));
    mini_ok(tare_node_set_type_list(branch, "Tin", (int[]){ TARE_DT_RESOURCE, TARE_DT_INT32 }, 2));
    mini_ok(tare_node_set_type_list(branch, "Tout", (int[]){ TARE_DT_INT32 }, 1));
    mini_done(branch);
    mini_return(f, "i", (struct tare_edge){ branch, 0 });
    struct tare_edge variable = handle(model, "v");
    struct tare_edge y = mini_call(model->main, "StatefulPartitionedCall", "call", f, 3,
                                   mini_placeholder(model->main, "c", TARE_DT_BOOL), variable,
                                   mini_placeholder(model->main, "i", TARE_DT_INT32));
    set_input_shapes(f);
    assert_true(remove_unused(model) >= 3); /* of the loop, the branches, the call */
    assert_int_equal(loop->n_inputs, 1);
    assert_int_equal(loop->n_outputs, 1);
    assert_int_equal(yes->returns[0].edge.index, 0);
    assert_int_equal(branch->n_inputs, 2);
    assert_int_equal(tare_node_find_attr(branch, "Tin")->count, 1);
    assert_int_equal(no->n_args, 1);
    assert_int_equal(y.node->n_inputs, 2);
    assert_int_equal(tare_graph_count_uses(model->main, variable, NULL), 0);
    assert_int_equal(tare_graph_find_attr(f, "_input_shapes")->count, 2);
    assert_int_equal(listed_size(f, 1), 3); /* that of i */
    assert_int_equal(remove_unused(model), 0);
    tare_model_free(model);
}

static void output_of_a_carried_value__becomes_the_input(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *loop = counting_loop(model->main, "loop", mini_int(model->main, "zero", 0), x);
    struct tare_edge y = mini_node(model->main, "Identity", "y", 1, (struct tare_edge){ loop, 0 });
    assert_int_equal(remove_unused(model), 1);
    assert_ptr_equal(y.node->inputs[0].node, x.node);
    tare_model_free(model);
}

static void functions_that_two_loops_share__keep_their_arguments(void **state) {
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), zero = mini_int(model->main, "zero", 0);
    struct tare_node *loop = counting_loop(model->main, "loop", zero, x);
    struct tare_node *second = mini_open(model->main, "While", "second", 2, x, zero);
    mini_ok(tare_node_set_func(second, "cond", "loop_cond"));
    mini_ok(tare_node_set_func(second, "body", "loop_body"));
    mini_done(second);
    assert_int_equal(remove_unused(model), 0);
    assert_int_equal(loop->n_inputs, 2);
    tare_model_free(model);
}

static void argument_of_an_aliased_function__stays(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_alias alias = { "f", "serve" };
    (void)state;
    mini_arg(f, "unused", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "Identity", "y", 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    model->aliases = &alias;
    model->n_aliases = 1;
    assert_int_equal(remove_unused(model), 0);
    assert_int_equal(f->n_args, 2);
    model->n_aliases = 0;
    assert_int_equal(remove_unused(model), 1);
    tare_model_free(model);
}

static size_t bytes_of(const struct tare_graph_model *model) {
    return model->arena.bytes + model->nodes.bytes + model->names.bytes + model->outputs.bytes;
}

/* f(x, w0, w1, …) of which only x is used, called by the main graph. Returns the bytes that removing the others takes.
 */
static size_t bytes_to_remove(size_t count) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_node *call =
        mini_open(model->main, "StatefulPartitionedCall", "call", 1, mini_placeholder(model->main, "x", TARE_DT_FLOAT));
    int *dtypes = TARE_NEW_ARRAY(&model->arena, int, count + 1), out = TARE_DT_FLOAT;
    assert_non_null(dtypes);
    dtypes[0] = TARE_DT_FLOAT;
    mini_return(f, "y", mini_node(f, "Identity", "y", 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    struct tare_edge variable = handle(model, "v");
    for (size_t i = 1; i <= count; i++) {
        mini_arg(f, "w", dtypes[i] = TARE_DT_RESOURCE);
        mini_ok(tare_node_add_input(call, variable));
    }
    mini_ok(tare_node_set_type_list(call, "Tin", dtypes, count + 1));
    mini_ok(tare_node_set_type_list(call, "Tout", &out, 1));
    mini_ok(tare_node_set_func(call, "f", "f"));
    mini_done(call);
    const size_t before = bytes_of(model);
    assert_int_equal(remove_unused(model), count);
    assert_int_equal(f->n_args, 1);
    assert_int_equal(call->n_inputs, 1);
    assert_int_equal(tare_graph_count_uses(model->main, variable, NULL), 0);
    const size_t bytes = bytes_of(model) - before;
    tare_model_free(model);
    return bytes;
}

static void arguments_removed_together__take_memory_in_their_number(void **state) {
    const size_t few = bytes_to_remove(100), many = bytes_to_remove(1600);
    (void)state;
    assert_in_range(many, 0, 20 * few);
}

/* Functions f0 … of which each passes the handle to the next one; nothing reads it. */
static void a_handle_passed_through_nested_calls__is_removed_from_all(void **state) {
    enum { DEPTH = 600 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *next = NULL;
    (void)state;
    for (int i = 0; i < DEPTH; i++) {
        struct tare_graph *f = tare_model_add_function(model, tare_arena_printf(&model->arena, "f%d", i));
        struct tare_edge w = mini_arg(f, "w", TARE_DT_RESOURCE), x = mini_arg(f, "x", TARE_DT_FLOAT);
        mini_return(f, "y",
                    next ? mini_call(f, "PartitionedCall", "call", next, 2, w, x)
                         : mini_node(f, "Identity", "y", 1, x));
        next = f;
    }
    struct tare_edge variable = handle(model, "v");
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "call", next, 2, variable,
                                   mini_placeholder(model->main, "x", TARE_DT_FLOAT));
    assert_int_equal(remove_unused(model), DEPTH);
    assert_int_equal(y.node->n_inputs, 1);
    assert_int_equal(model->functions[0]->n_args, 1);
    tare_model_free(model);
}

/* The attribute refers to the function directly until the function is removed or replaced. */
static void a_call__finds_its_function_until_it_is_removed(void **state) {
    struct tare_graph_model *model = mini_model_new(), *copy;
    struct tare_graph *f = tare_model_add_function(model, "f"), *g = tare_model_add_function(model, "g"), *again;
    (void)state;
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", x);
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *call = mini_call(model->main, "PartitionedCall", "call", f, 1, x).node;
    assert_ptr_equal(tare_node_function(call, "f"), f);
    mini_ok(tare_model_clone(&copy, model));
    assert_ptr_equal(tare_node_function(tare_graph_find(copy->main, "call"), "f"), tare_model_find_function(copy, "f"));
    tare_model_free(copy);
    tare_model_remove_functions(model, (const bool[]){ false, true });
    assert_null(tare_node_function(call, "f"));
    again = tare_model_add_function(model, "f");
    assert_ptr_equal(tare_node_function(call, "f"), again);
    mini_ok(tare_node_set_func(call, "f", "g"));
    assert_ptr_equal(tare_node_function(call, "f"), g);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call__finds_its_function_until_it_is_removed),
        cmocka_unit_test(removed_argument__takes_its_shape_along),
        cmocka_unit_test(dropped_shapes__stay_with_other_functions),
        cmocka_unit_test(loop_of_a_model_that_is_trained__keeps_its_arguments),
        cmocka_unit_test(loop_in_a_branch_in_a_call__lets_the_variable_go),
        cmocka_unit_test(output_of_a_carried_value__becomes_the_input),
        cmocka_unit_test(functions_that_two_loops_share__keep_their_arguments),
        cmocka_unit_test(argument_of_an_aliased_function__stays),
        cmocka_unit_test(arguments_removed_together__take_memory_in_their_number),
        cmocka_unit_test(a_handle_passed_through_nested_calls__is_removed_from_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
