/* Which variables become bfloat16, and that results do not change by it. */
#include "tpu/bfloat16.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "base/tensor/number.h"

#include <string.h>

static const struct tare_bfloat16_options defaults = { .rounds_magnitudes = true };
static const float third = 1.0f / 3; /* 0x3eaaaaab: rounds up to 0x3eab */

/* x in the main graph, given to a call of `function` with the handles; y is what the signature returns. */
static void serve(struct tare_graph_model *model, const struct tare_graph *function, int n,
                  const struct tare_edge *handles) {
    struct tare_signature *grown = tare_arena_extend(&model->arena, model->signatures, model->n_signatures, 1,
                                                     sizeof *grown),
                          *s;
    struct tare_edge in[3] = { mini_placeholder(model->main, "x", TARE_DT_FLOAT) }, call;
    assert_non_null(grown);
    for (int i = 0; i < n; i++)
        in[i + 1] = handles[i];
    call = mini_call(model->main, "StatefulPartitionedCall", function->name, function, n + 1, in[0], in[1], in[2]);
    model->signatures = grown;
    s = &grown[model->n_signatures++];
    s->key = function->name;
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    s->n_inputs = s->n_outputs = 1;
    *s->inputs = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .edge = in[0] };
    *s->outputs = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = call };
}

static struct tare_edge read(struct tare_graph *graph, const char *name, struct tare_edge handle) {
    struct tare_node *node = mini_open(graph, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

/* y = op(x, read of the second argument) */
static struct tare_graph *binary(struct tare_graph_model *model, const char *name, const char *op) {
    struct tare_graph *graph = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), handle = mini_arg(graph, "handle", TARE_DT_RESOURCE);
    mini_return(graph, "y", mini_node(graph, op, "op", 2, x, read(graph, "read", handle)));
    return graph;
}

static void convert(struct tare_graph_model *model, struct tare_graph *graph,
                    const struct tare_bfloat16_options *options) {
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, &graph, 1, options, &changes));
    graph_check_dtypes(model);
}

static double answer(const struct tare_graph_model *model, size_t signature, double x) {
    struct tare_session *session = mini_session(model);
    const struct tare_signature *s = &model->signatures[signature];
    double y = mini_number(session, s->inputs[0].edge, x, s->outputs[0].edge);
    tare_session_free(session);
    return y;
}

static void assert_variable(const struct tare_graph_model *model, size_t i, int dtype) {
    const struct tare_variable *v = &model->variables[i];
    int handle = tare_node_type(v->node, "dtype", 0);
    if (v->dtype != dtype || v->value.dtype != dtype || handle != dtype)
        fail_msg("variable %s is %s, its value %s, its handle %s (expected %s)", v->shared_name,
                 tare_dtype_name(v->dtype), tare_dtype_name(v->value.dtype), tare_dtype_name(handle),
                 tare_dtype_name(dtype));
}

static void read_as_bfloat16_only__holds_bfloat16(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = binary(model, "f", "Mul");
    (void)state;
    serve(model, graph, 1, &handle);
    convert(model, graph, &defaults);
    assert_variable(model, 0, TARE_DT_BFLOAT16);
    assert_int_equal(TARE_CONST_DATA(uint16_t, &model->variables[0].value)[0], 0x3eab);
    assert_true(model->retyped);
    assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(graph, "read"), 0 }), TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2); /* x in, y out; none after the read */
    assert_true(answer(model, 0, 2) == 2.0 * (double)tare_float_from_bfloat16(0x3eab)); /* exact */
    tare_model_free(model);
}

static void read_as_float32_elsewhere__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *tpu = binary(model, "on_tpu", "Mul"), *cpu = binary(model, "on_cpu", "AddV2");
    (void)state;
    serve(model, tpu, 1, &handle);
    serve(model, cpu, 1, &handle);
    convert(model, tpu, &defaults);
    assert_variable(model, 0, TARE_DT_FLOAT);
    assert_false(model->retyped);
    assert_int_equal(graph_count(tpu, "Cast"), 3);
    assert_true(answer(model, 1, 0) == (double)third);
    tare_model_free(model);
}

/* Through IdentityN the handle is no longer known; the function that gets it is also called with another variable. */
static void a_handle_behind_an_op__keeps_all_variables_of_the_function_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge v = mini_variable(model, "v", third), w = mini_variable(model, "w", 2);
    struct tare_graph *inner = binary(model, "inner", "Mul"), *outer = tare_model_add_function(model, "outer");
    const struct tare_edge x = mini_arg(outer, "x", TARE_DT_FLOAT), first = mini_arg(outer, "v", TARE_DT_RESOURCE);
    struct tare_node *same = mini_open(outer, "IdentityN", "same", 1, mini_arg(outer, "w", TARE_DT_RESOURCE));
    (void)state;
    mini_ok(tare_node_set_type_list(same, "T", (int[]){ TARE_DT_RESOURCE }, 1));
    const struct tare_edge once = mini_call(outer, "StatefulPartitionedCall", "once", inner, 2, x, first);
    mini_return(outer, "y", mini_call(outer, "StatefulPartitionedCall", "twice", inner, 2, once, mini_done(same)));
    serve(model, outer, 2, (struct tare_edge[]){ v, w });
    convert(model, outer, &defaults);
    assert_variable(model, 0, TARE_DT_FLOAT);
    assert_variable(model, 1, TARE_DT_FLOAT);
    assert_true(answer(model, 0, 3) == 2);
    tare_model_free(model);
}

static void the_savers_read__does_not_count(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = binary(model, "f", "Mul");
    (void)state;
    serve(model, graph, 1, &handle);
    mini_node(model->main, "Neg", "saved", 1,
              read(model->main, "v/Read/ReadVariableOp", handle)); /* no signature needs it */
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, &graph, 1, &defaults, &changes));
    assert_variable(model, 0, TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* With scope ALL the main graph and the functions that its signatures call are converted, but not the saver. */
static void the_savers_function__is_not_converted_with_the_main_graph(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = binary(model, "f", "Mul"),
                      *save = tare_model_add_function(model, "__inference__traced_save");
    struct tare_graph *main = model->main;
    size_t changes = 0;
    (void)state;
    mini_return(save, "x",
                mini_node(save, "Neg", "saved", 1, read(save, "read", mini_arg(save, "v", TARE_DT_RESOURCE))));
    serve(model, graph, 1, &handle);
    mini_call(main, "StatefulPartitionedCall", "save", save, 1, handle);
    mini_ok(tare_tpu_bfloat16(model, &main, 1, &defaults, &changes));
    assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(save, "saved"), 0 }), TARE_DT_FLOAT);
    assert_variable(model, 0, TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* Keras exports: the saver reads variables in the main graph and passes the values to a function, Keras 3 also assigns
 * from such a read. With scope ALL the main graph is converted as well; only what signatures need is. */
static void with_scope_all__the_savers_reads_stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third), saved;
    struct tare_graph *graph = binary(model, "f", "Mul"), *save = tare_model_add_function(model, "traced_save");
    struct tare_node *assign;
    size_t changes = 0;
    (void)state;
    serve(model, graph, 1, &handle);
    mini_return(save, "y", mini_node(save, "Neg", "neg", 1, mini_arg(save, "value", TARE_DT_FLOAT)));
    saved = read(model->main, "v/Read/ReadVariableOp", handle);
    mini_call(model->main, "StatefulPartitionedCall", "save_call", save, 1, saved);
    assign = mini_open(model->main, "AssignVariableOp", "v/Assign", 2, handle,
                       mini_node(model->main, "Relu", "initial", 1, saved));
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_resolve(assign));
    mini_ok(tare_tpu_bfloat16(model, (struct tare_graph *[]){ graph, model->main }, 2, &defaults, &changes));
    graph_check_dtypes(model);
    assert_variable(model, 0, TARE_DT_BFLOAT16);
    assert_int_equal(tare_edge_dtype(saved), TARE_DT_FLOAT);
    assert_int_equal(save->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_true(answer(model, 0, 2) == 2.0 * (double)tare_float_from_bfloat16(0x3eab));
    tare_model_free(model);
}

static void an_op_of_the_filterlist__keeps_its_variable(void **state) {
    static const char *const ops[] = { "Mul" };
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true, .float_ops = ops, .n_float_ops = 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = binary(model, "f", "Mul");
    (void)state;
    serve(model, graph, 1, &handle);
    convert(model, graph, &options);
    assert_variable(model, 0, TARE_DT_FLOAT);
    tare_model_free(model);
}

static void a_written_variable__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = binary(model, "f", "Mul");
    struct tare_node *assign = mini_open(graph, "AssignAddVariableOp", "assign", 2,
                                         (struct tare_edge){ graph->args[1], 0 }, mini_float(graph, "one", 1));
    (void)state;
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_FLOAT));
    mini_done(assign);
    serve(model, graph, 1, &handle);
    convert(model, graph, &defaults);
    assert_variable(model, 0, TARE_DT_FLOAT);
    tare_model_free(model);
}

/* What the CPU adds to is not on the TPU, but the same variable. */
static void a_variable_that_the_cpu_writes__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *tpu = binary(model, "on_tpu", "Mul"), *cpu = tare_model_add_function(model, "on_cpu");
    const struct tare_edge x = mini_arg(cpu, "x", TARE_DT_FLOAT), v = mini_arg(cpu, "v", TARE_DT_RESOURCE);
    struct tare_node *assign = mini_open(cpu, "AssignAddVariableOp", "assign", 2, v, x);
    (void)state;
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_FLOAT));
    mini_done(assign);
    mini_return(cpu, "y", x);
    serve(model, tpu, 1, &handle);
    serve(model, cpu, 1, &handle);
    convert(model, tpu, &defaults);
    assert_variable(model, 0, TARE_DT_FLOAT);
    assert_int_equal(tare_edge_dtype((struct tare_edge){ graph_node(tpu, "op"), 0 }), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void a_value_beyond_the_range__becomes_the_largest(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", -3.4028235e38f);
    struct tare_graph *graph = binary(model, "f", "Mul");
    (void)state;
    serve(model, graph, 1, &handle);
    convert(model, graph, &defaults);
    assert_variable(model, 0, TARE_DT_BFLOAT16);
    assert_int_equal(TARE_CONST_DATA(uint16_t, &model->variables[0].value)[0], 0xff7f);
    tare_model_free(model);
}

static void a_read_that_is_returned__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = binary(model, "f", "Mul");
    (void)state;
    mini_return(graph, "weight", (struct tare_edge){ graph_node(graph, "read"), 0 });
    serve(model, graph, 1, &handle);
    convert(model, graph, &defaults);
    assert_variable(model, 0, TARE_DT_FLOAT);
    tare_model_free(model);
}

/* One function reads, now this variable, now that one: both change, or none. */
static void variables_of_one_reader__change_together(void **state) {
    for (int other = 0; other < 2; other++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_edge handles[] = { mini_variable(model, "v", third), mini_variable(model, "w", 2 * third) };
        struct tare_graph *inner = binary(model, "inner", "Mul"), *outer = tare_model_add_function(model, "outer"),
                          *plain;
        struct tare_edge x = mini_arg(outer, "x", TARE_DT_FLOAT), v = mini_arg(outer, "v", TARE_DT_RESOURCE);
        struct tare_edge w = mini_arg(outer, "w", TARE_DT_RESOURCE);
        x = mini_call(outer, "PartitionedCall", "first", inner, 2, x, v);
        mini_return(outer, "y", mini_call(outer, "PartitionedCall", "second", inner, 2, x, w));
        serve(model, outer, 2, handles);
        if (other) { /* the CPU reads the second variable */
            plain = binary(model, "plain", "AddV2");
            serve(model, plain, 1, &handles[1]);
        }
        convert(model, outer, &defaults);
        assert_variable(model, 0, other ? TARE_DT_FLOAT : TARE_DT_BFLOAT16);
        assert_variable(model, 1, other ? TARE_DT_FLOAT : TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
    (void)state;
}

static void a_handle_in_a_loop__is_followed(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge handle = mini_variable(model, "v", third);
    struct tare_graph *graph = tare_model_add_function(model, "f");
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_edge i = mini_arg(cond, "i", TARE_DT_INT32), x;
    struct tare_node *loop;
    (void)state;
    mini_arg(cond, "x", TARE_DT_FLOAT);
    mini_arg(cond, "v", TARE_DT_RESOURCE);
    mini_return(cond, "more", mini_node(cond, "Less", "less", 2, i, mini_int(cond, "limit", 2)));
    i = mini_arg(body, "i", TARE_DT_INT32);
    x = mini_arg(body, "x", TARE_DT_FLOAT);
    mini_arg(body, "v", TARE_DT_RESOURCE);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "x",
                mini_node(body, "Mul", "mul", 2, x, read(body, "read", (struct tare_edge){ body->args[2], 0 })));
    mini_return(body, "v", (struct tare_edge){ body->args[2], 0 });
    x = mini_arg(graph, "x", TARE_DT_FLOAT);
    loop = mini_open(graph, "While", "loop", 3, mini_int(graph, "zero", 0), x, mini_arg(graph, "v", TARE_DT_RESOURCE));
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_ok(tare_node_set_type_list(loop, "T", (int[]){ TARE_DT_INT32, TARE_DT_FLOAT, TARE_DT_RESOURCE }, 3));
    mini_return(graph, "y", mini_output(mini_done(loop), 1));
    serve(model, graph, 1, &handle);
    convert(model, graph, &defaults);
    assert_variable(model, 0, TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(body, "Cast"), 0);
    assert_true(answer(model, 0, 4) > 0.4 && answer(model, 0, 4) < 0.5);
    tare_model_free(model);
}

static void gather(int expected, double result, const struct tare_bfloat16_options *options) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_shape shape = tare_shape_make(2, 3, 1);
    struct tare_node *variable = mini_open(model->main, "VarHandleOp", "table", 0), *gather;
    struct tare_graph *graph = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), table = mini_arg(graph, "table", TARE_DT_RESOURCE),
                     handle;
    struct tare_tensor value;
    mini_ok(tare_node_set_type(variable, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(variable, "shape", &shape));
    handle = mini_done(variable);
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, (float[]){ 1, third, 3 }));
    mini_add_variable(model, variable, value);
    gather = mini_open(graph, "ResourceGather", "gather", 2, table, mini_ints(graph, "ids", 1, (int32_t[]){ 1 }));
    mini_ok(tare_node_set_type(gather, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(gather, "Tindices", TARE_DT_INT32));
    mini_return(graph, "y", mini_node(graph, "Mul", "mul", 2, x, mini_done(gather)));
    serve(model, graph, 1, &handle);
    convert(model, graph, options);
    assert_variable(model, 0, expected);
    assert_true(answer(model, 0, 2) == result);
    tare_model_free(model);
}

static void an_embedding_table__is_gathered_as_bfloat16(void **state) {
    static const char *const ops[] = { "ResourceGather" };
    const struct tare_bfloat16_options filtered = { .rounds_magnitudes = true, .float_ops = ops, .n_float_ops = 1 };
    const double rounded = (double)tare_float_from_bfloat16(0x3eab);
    (void)state;
    gather(TARE_DT_BFLOAT16, 2 * rounded, &defaults);
    gather(TARE_DT_FLOAT, 2 * rounded, &filtered); /* the product is bfloat16 */
}

/* As a converter that casts on restore: VarHandleOp in the filterlist. */
static void variables_of_the_filterlist__stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    const char *ops[] = { "VarHandleOp" };
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true, .float_ops = ops, .n_float_ops = 1 };
    struct tare_edge handle = mini_arg(f, "handle", TARE_DT_RESOURCE), x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_node *read = mini_open(f, "ReadVariableOp", "read", 1, handle);
    size_t changes = 0;
    (void)state;
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_return(f, "y", mini_node(f, "Mul", "mul", 2, x, mini_done(read)));
    mini_call(model->main, "StatefulPartitionedCall", "call", f, 2, mini_variable(model, "v", 3),
              mini_placeholder(model->main, "x", TARE_DT_FLOAT));
    mini_ok(tare_tpu_bfloat16(model, &f, 1, &options, &changes));
    assert_int_equal(graph_node(f, "mul")->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(graph_node(f, "read")->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(model->variables[0].dtype, TARE_DT_FLOAT);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_as_bfloat16_only__holds_bfloat16),
        cmocka_unit_test(read_as_float32_elsewhere__stays_float32),
        cmocka_unit_test(a_handle_behind_an_op__keeps_all_variables_of_the_function_float32),
        cmocka_unit_test(the_savers_read__does_not_count),
        cmocka_unit_test(the_savers_function__is_not_converted_with_the_main_graph),
        cmocka_unit_test(with_scope_all__the_savers_reads_stay_float32),
        cmocka_unit_test(an_op_of_the_filterlist__keeps_its_variable),
        cmocka_unit_test(a_written_variable__stays_float32),
        cmocka_unit_test(a_variable_that_the_cpu_writes__stays_float32),
        cmocka_unit_test(a_value_beyond_the_range__becomes_the_largest),
        cmocka_unit_test(a_read_that_is_returned__stays_float32),
        cmocka_unit_test(variables_of_one_reader__change_together),
        cmocka_unit_test(a_handle_in_a_loop__is_followed),
        cmocka_unit_test(an_embedding_table__is_gathered_as_bfloat16),
        cmocka_unit_test(variables_of_the_filterlist__stay_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
