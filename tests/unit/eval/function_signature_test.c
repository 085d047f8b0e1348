/* Functions called by name: which concrete function it is, and what it captured. */
#include "eval/function_signature.h"

#include "support/mini_model.h"

#include <string.h>

static void declare_shape(struct tare_node *arg, const struct tare_shape *shape) {
    mini_ok(tare_node_set_shape_list(arg, "_output_shapes", shape, 1));
}

/* NAME(x: dtype shape) { return x } under the alias. */
static struct tare_graph *add_function(struct tare_graph_model *model, const char *name, const char *alias, int dtype,
                                       struct tare_shape shape) {
    struct tare_graph *f = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(f, "x", dtype);
    declare_shape(x.node, &shape);
    mini_return(f, "y", mini_node(f, "Identity", "same", 1, x));
    struct tare_alias *grown =
        tare_arena_extend(&model->arena, model->aliases, model->n_aliases, 1, sizeof *model->aliases);
    assert_non_null(grown);
    grown[model->n_aliases++] = (struct tare_alias){ f->name, alias };
    model->aliases = grown;
    return f;
}

static tare_status pick(struct tare_graph **out, const struct tare_graph_model *model, const char *name, int dtype,
                        struct tare_shape shape) {
    const char *const keys[] = { "x" };
    struct tare_tensor x;
    mini_ok(tare_tensor_new(&x, dtype, &shape));
    if (dtype != TARE_DT_STRING) memset(x.data, 0, (size_t)x.elements * tare_dtype_size(dtype));
    const struct tare_call_arguments arguments = { .keys = keys, .values = &x, .count = 1 };
    *out = NULL;
    tare_status status = tare_function_pick(out, model, name, &arguments);
    tare_tensor_reset(&x);
    return status;
}

static void polymorphic__is_picked_by_dtype_and_shape(void **state) {
    struct tare_graph *got;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *floats = add_function(model, "__inference_f_1", "f", TARE_DT_FLOAT, tare_shape_make(1, -1LL));
    struct tare_graph *ints = add_function(model, "__inference_f_2", "f", TARE_DT_INT32, tare_shape_make(1, -1LL));
    struct tare_graph *pair = add_function(model, "__inference_f_3", "f", TARE_DT_FLOAT, tare_shape_make(1, 2LL));
    struct tare_graph *matrix =
        add_function(model, "__inference_f_4", "f", TARE_DT_FLOAT, tare_shape_make(2, -1LL, -1LL));
    mini_ok(pick(&got, model, "f", TARE_DT_FLOAT, tare_shape_make(1, 3LL)));
    assert_ptr_equal(got, floats);
    mini_ok(pick(&got, model, "f", TARE_DT_INT32, tare_shape_make(1, 3LL)));
    assert_ptr_equal(got, ints);
    mini_ok(pick(&got, model, "f", TARE_DT_FLOAT, tare_shape_make(1, 2LL))); /* both fit: the stricter one */
    assert_ptr_equal(got, pair);
    mini_ok(pick(&got, model, "f", TARE_DT_FLOAT, tare_shape_make(2, 3LL, 1LL)));
    assert_ptr_equal(got, matrix);
    mini_ok(pick(&got, model, "__inference_f_1", TARE_DT_FLOAT, tare_shape_make(1, 2LL))); /* its own name is exact */
    assert_ptr_equal(got, floats);
    tare_model_free(model);
}

static int argument_dtype(const struct tare_graph_model *model, const char *name, const char *argument) {
    int dtype = -1;
    mini_ok(tare_function_argument_dtype(&dtype, model, name, argument));
    return dtype;
}

static void argument__has_a_dtype_if_all_functions_of_the_name_agree(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    add_function(model, "__inference_f_1", "f", TARE_DT_FLOAT, tare_shape_make(1, -1LL));
    add_function(model, "__inference_f_2", "f", TARE_DT_FLOAT, tare_shape_make(1, 2LL));
    add_function(model, "__inference_g_3", "g", TARE_DT_FLOAT, tare_shape_make(1, 2LL));
    add_function(model, "__inference_g_4", "g", TARE_DT_INT32, tare_shape_make(1, 2LL));
    assert_int_equal(argument_dtype(model, "f", "x"), TARE_DT_FLOAT);
    assert_int_equal(argument_dtype(model, "f", "y"), 0);
    assert_int_equal(argument_dtype(model, "g", "x"), 0);
    assert_int_equal(argument_dtype(model, "__inference_g_4", "x"), TARE_DT_INT32);
    assert_int_equal(argument_dtype(model, "h", "x"), 0);
    tare_model_free(model);
}

static void polymorphic__without_a_match_lists_the_candidates(void **state) {
    struct tare_graph *got;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    add_function(model, "__inference_f_1", "f", TARE_DT_FLOAT, tare_shape_make(1, -1LL));
    add_function(model, "__inference_f_2", "f", TARE_DT_INT32, tare_shape_make(2, -1LL, 4LL));
    mini_fails(pick(&got, model, "f", TARE_DT_STRING, tare_shape_make(1, 2LL)),
               "no matching concrete function of 'f' (got (x: string[2]), the candidates are "
               "__inference_f_1(x: float32[?]); __inference_f_2(x: int32[?,4]))");
    assert_null(got);
    tare_model_free(model);
}

static void polymorphic__with_equal_matches_is_ambiguous(void **state) {
    struct tare_graph *got;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    add_function(model, "__inference_f_1", "f", TARE_DT_FLOAT, tare_shape_make(2, -1LL, 4LL));
    add_function(model, "__inference_f_2", "f", TARE_DT_FLOAT, tare_shape_make(2, 3LL, -1LL));
    add_function(model, "__inference_f_3", "f", TARE_DT_FLOAT, tare_shape_unknown());
    mini_fails(pick(&got, model, "f", TARE_DT_FLOAT, tare_shape_make(2, 3LL, 4LL)),
               "ambiguous call of 'f' (got (x: float32[3,4]), the candidates are "
               "__inference_f_1(x: float32[?,4]); __inference_f_2(x: float32[3,?]))");
    tare_model_free(model);
}

static void argument__of_a_wrong_dtype_is_told_as_for_a_concrete_function(void **state) {
    struct tare_graph *got;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    add_function(model, "__inference_print_element_20", "print_element", TARE_DT_STRING, tare_shape_scalar());
    mini_fails(pick(&got, model, "print_element", TARE_DT_INT32, tare_shape_scalar()),
               "cannot compute __inference_print_element_20 as input #0(zero-based) was expected to be a string tensor "
               "but is a int32 tensor (Python inputs incompatible with input_signature)");
    mini_fails(
        pick(&got, model, "print_element", TARE_DT_STRING, tare_shape_make(1, 3LL)),
        "as input #0(zero-based) was expected to have shape [] but has shape [3] (Python inputs incompatible with "
        "input_signature)");
    const struct tare_call_arguments none = { 0 };
    mini_fails(tare_function_pick(&got, model, "print_element", &none), "input #0(zero-based), 'x', is missing");
    const struct tare_tensor text = { .dtype = TARE_DT_STRING };
    const struct tare_call_arguments misspelled = { .keys = (const char *[]){ "y" }, .values = &text, .count = 1 };
    mini_fails(tare_function_pick(&got, model, "print_element", &misspelled),
               "cannot compute __inference_print_element_20 as input #0(zero-based), 'x', is missing (expected "
               "__inference_print_element_20(x: string[]), got (y: string[]))");
    tare_model_free(model);
}

static void argument__that_is_fed_back_may_be_missing(void **state) {
    const char *pairs[] = { "y=x" };
    const struct tare_feedback feedback = { .pairs = { .items = pairs, .count = 1 } };
    const struct tare_call_arguments given = { .feedback = &feedback };
    struct tare_graph *got;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = add_function(model, "__inference_step_1", "step", TARE_DT_FLOAT, tare_shape_make(1, 2LL));
    mini_ok(tare_function_pick(&got, model, "step", &given));
    assert_ptr_equal(got, f);
    mini_fails(pick(&got, model, "step", TARE_DT_INT32, tare_shape_make(1, 2LL)), "expected to be a float tensor");
    tare_model_free(model);
}

static void name__may_be_that_of_the_program(void **state) {
    struct tare_graph *got;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f =
        add_function(model, "__inference_embed_text_7", "other", TARE_DT_FLOAT, tare_shape_unknown());
    mini_ok(pick(&got, model, "embed_text", TARE_DT_FLOAT, tare_shape_scalar()));
    assert_ptr_equal(got, f);
    mini_fails(pick(&got, model, "embed", TARE_DT_FLOAT, tare_shape_scalar()),
               "there is no function 'embed' (the model has other)");
    mini_fails(pick(&got, model, "embed_text_7x", TARE_DT_FLOAT, tare_shape_scalar()), "there is no function");
    tare_model_free(model);
}

/* add(x, v) { v.assign_add(x); return v } with v captured. */
static struct tare_graph *add_counter(struct tare_graph_model *model, const int *object) {
    struct tare_graph *f = tare_model_add_function(model, "__inference_add_9");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), v = mini_arg(f, "v", TARE_DT_RESOURCE);
    struct tare_shape scalar = tare_shape_scalar();
    declare_shape(x.node, &scalar);
    struct tare_edge add = mini_node(f, "AssignAddVariableOp", "add", 2, v, x);
    struct tare_node *read = mini_open(f, "ReadVariableOp", "read", 1, v);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_add_control(read, add.node));
    mini_return(f, "y", mini_done(read));
    model->concretes = TARE_NEW(&model->arena, struct tare_concrete);
    assert_non_null(model->concretes);
    model->concretes[0] = (struct tare_concrete){ .graph = f, .bound = (int *)(uintptr_t)object, .n_bound = 1 };
    model->n_concretes = 1;
    return f;
}

static void signature__binds_captured_variables_that_keep_their_state(void **state) {
    static const int object = 5;
    const struct tare_signature *signature;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    mini_variable(model, "v", 10);
    model->variables[0].object_id = object;
    struct tare_graph *f = add_counter(model, &object);
    mini_ok(tare_function_signature(&signature, model, f));
    assert_int_equal(signature->n_inputs, 1);
    assert_string_equal(signature->inputs[0].key, "x");
    assert_int_equal(signature->n_outputs, 1);
    assert_string_equal(signature->outputs[0].key, "y");
    struct tare_session *session = mini_session(model);
    for (int i = 1; i <= 3; i++)
        assert_float_equal(mini_number(session, signature->inputs[0].edge, 1, signature->outputs[0].edge), 10 + i, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void signature__takes_other_captures_from_calls_of_the_same_object(void **state) {
    static const int object = 5;
    const struct tare_signature *signature;
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge v = mini_variable(model, "v", 10);
    model->variables[0].object_id = 99; /* not found by its number, but by the call */
    struct tare_graph *f = add_counter(model, &object);
    mini_fails(tare_function_signature(&signature, model, f),
               "function __inference_add_9: the captured argument 'v' (object 5) is nowhere in the main graph");
    mini_call(model->main, "StatefulPartitionedCall", "call", f, 2, mini_float(model->main, "one", 1), v);
    mini_ok(tare_function_signature(&signature, model, f));
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, signature->inputs[0].edge, 2, signature->outputs[0].edge), 12, 0);
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polymorphic__is_picked_by_dtype_and_shape),
        cmocka_unit_test(polymorphic__without_a_match_lists_the_candidates),
        cmocka_unit_test(polymorphic__with_equal_matches_is_ambiguous),
        cmocka_unit_test(argument__has_a_dtype_if_all_functions_of_the_name_agree),
        cmocka_unit_test(argument__of_a_wrong_dtype_is_told_as_for_a_concrete_function),
        cmocka_unit_test(argument__that_is_fed_back_may_be_missing),
        cmocka_unit_test(name__may_be_that_of_the_program),
        cmocka_unit_test(signature__binds_captured_variables_that_keep_their_state),
        cmocka_unit_test(signature__takes_other_captures_from_calls_of_the_same_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
