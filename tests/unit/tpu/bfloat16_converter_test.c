/* Situations in which the public converter's bfloat16 pass is known (docs/converter.md, "Version 2"): branches,
 * functions that are called as ops or twice, flows of TensorArrays, its list of ops, operands of float32 ops, other
 * float types, the main graph, and the boundary with scope ALL. */
#include "graph/calls.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <string.h>

static size_t convert(struct tare_graph_model *model, struct tare_graph *graph) {
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, &graph, 1, &options, &changes));
    graph_check_dtypes(model);
    return changes;
}

static int dtype_of(const struct tare_graph *graph, const char *name) {
    return tare_edge_dtype((struct tare_edge){ graph_node(graph, name), 0 });
}

/* y = op(x · x) */
static struct tare_graph *body(struct tare_graph_model *model, const char *name, const char *op) {
    struct tare_graph *f = tare_model_add_function(model, name);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, op, "op", 1, mini_node(f, "MatMul", "product", 2, x, x)));
    return f;
}

/* f(x, which) = y(op(y)) with the product y before and after a choice between two functions. */
static void choose(const char *op, const char *const *attrs, int dtype) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    const struct tare_edge which = mini_arg(f, "which", dtype);
    struct tare_graph *branches[2] = { body(model, "a", "Relu"), body(model, "b", "Tanh") };
    struct tare_node *node;
    struct tare_call_site site;
    x = mini_node(f, "MatMul", "before", 2, x, x);
    node = mini_open(f, op, "choice", 2, which, x);
    mini_ok(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    if (!attrs) mini_ok(tare_node_set_func_list(node, "branches", branches, 2));
    for (int i = 0; attrs && i < 2; i++)
        mini_ok(tare_node_set_func(node, attrs[i], branches[i]->name));
    x = mini_done(node);
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, x, x));
    assert_true(convert(model, f) > 0);
    assert_int_equal(dtype_of(f, "choice"), TARE_DT_BFLOAT16);
    mini_ok(tare_call_site(&site, &model->arena, graph_node(f, "choice")));
    assert_int_equal(site.n_callees, 2);
    for (size_t i = 0; i < site.n_callees; i++) {
        assert_int_equal(dtype_of(site.callees[i], "product"), TARE_DT_BFLOAT16);
        assert_int_equal(site.callees[i]->returns[0].dtype, TARE_DT_BFLOAT16);
    }
    tare_model_free(model);
}

static void branches__are_converted_with_the_op(void **state) {
    static const char *const attrs[] = { "then_branch", "else_branch" };
    (void)state;
    choose("StatelessCase", NULL, TARE_DT_INT32);
    choose("StatelessIf", attrs, TARE_DT_BOOL);
}

/* `value` written to an array of float32 and read again, with the flow that orders both, a scalar of float32. */
static struct tare_edge write(struct tare_graph *f, struct tare_edge array, struct tare_edge flow,
                              struct tare_edge value) {
    struct tare_node *node = mini_open(f, "TensorArrayWriteV3", "write", 4, array, mini_int(f, "at", 0), value, flow);
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    return mini_done(node);
}

static struct tare_edge read(struct tare_graph *f, struct tare_edge array, struct tare_edge flow) {
    struct tare_node *node = mini_open(f, "TensorArrayReadV3", "read", 3, array, mini_int(f, "from", 0), flow);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

static struct tare_edge array_of_one(struct tare_graph *f) {
    struct tare_node *array = mini_open(f, "TensorArrayV3", "array", 1, mini_int(f, "size", 1));
    mini_ok(tare_node_set_type(array, "dtype", TARE_DT_FLOAT));
    return mini_done(array);
}

static void expect_array(const struct tare_graph *f, const struct tare_graph *writer) {
    assert_int_equal(tare_node_type(graph_node(f, "array"), "dtype", 0), TARE_DT_FLOAT);
    assert_int_equal(tare_node_type(graph_node(writer, "write"), "T", 0), TARE_DT_FLOAT);
    assert_int_equal(tare_node_type(graph_node(f, "read"), "dtype", 0), TARE_DT_FLOAT);
    assert_int_equal(dtype_of(writer, "write"), TARE_DT_FLOAT); /* the flow, by definition */
    assert_int_equal(dtype_of(f, "before"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
}

static void the_flow_of_a_tensor_array__stays_consistent(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    const struct tare_edge array = array_of_one(f);
    (void)state;
    x = mini_node(f, "MatMul", "before", 2, x, x);
    x = read(f, array, write(f, array, mini_output(array, 1), x));
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, x, x));
    assert_true(convert(model, f) > 0); /* graph_check_dtypes: what is written and read has the dtypes of the ops */
    expect_array(f, f);
    tare_model_free(model);
}

/* A loop writes into the array: of what it carries, the flow may change its dtype by casts around it, which nothing
 * computes with, and the array and what is written and read agree. */
static void the_flow_through_a_loop__stays_consistent(void **state) {
    enum { COUNT, ARRAY, FLOW, VALUE, CARRIED };
    static const char *const names[] = { "count", "array", "flow", "value" };
    static const int dtypes[] = { TARE_DT_INT32, TARE_DT_RESOURCE, TARE_DT_FLOAT, TARE_DT_FLOAT };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"),
                      *graphs[] = { tare_model_add_function(model, "cond"), tare_model_add_function(model, "body") };
    struct tare_edge in[2][CARRIED], x = mini_arg(f, "x", TARE_DT_FLOAT);
    const struct tare_edge array = array_of_one(f);
    struct tare_node *loop;
    (void)state;
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < CARRIED; i++)
            in[g][i] = mini_arg(graphs[g], names[i], dtypes[i]);
    mini_return(graphs[0], "go", mini_node(graphs[0], "Less", "less", 2, in[0][COUNT], mini_int(graphs[0], "end", 1)));
    mini_return(graphs[1], "count",
                mini_node(graphs[1], "AddV2", "next", 2, in[1][COUNT], mini_int(graphs[1], "one", 1)));
    mini_return(graphs[1], "array", in[1][ARRAY]);
    mini_return(graphs[1], "flow", write(graphs[1], in[1][ARRAY], in[1][FLOW], in[1][VALUE]));
    mini_return(graphs[1], "value", mini_node(graphs[1], "MatMul", "step", 2, in[1][VALUE], in[1][VALUE]));
    x = mini_node(f, "MatMul", "before", 2, x, x);
    loop = mini_open(f, "StatelessWhile", "loop", 4, mini_int(f, "start", 0), array, mini_output(array, 1), x);
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_ok(tare_node_set_type_list(loop, "T", dtypes, CARRIED));
    x = mini_done(loop);
    x = read(f, array, mini_output(x, FLOW));
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, x, x));
    assert_true(convert(model, f) > 0);
    expect_array(f, graphs[1]);
    assert_int_equal(dtype_of(graphs[1], "step"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* Ops of its list that have no bfloat16 by their definitions, between two that compute in it. */
static void ops_of_the_list__are_cast_around(void **state) {
    static const struct {
        const char *op;
        int inputs;
    } ops[] = { { "FakeQuantWithMinMaxVars", 3 }, { "FusedBatchNorm", 5 }, { "Qr", 1 }, { "MatrixSolve", 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *f = tare_model_add_function(model, "f");
        const struct tare_edge x = mini_node(f, "Exp", "before", 1, mini_arg(f, "x", TARE_DT_FLOAT));
        const struct tare_edge y = mini_node(f, ops[i].op, "op", ops[i].inputs, x, x, x, x, x);
        mini_return(f, "y", mini_node(f, "Relu", "after", 1, y));
        convert(model, f);
        assert_int_equal(dtype_of(f, "op"), TARE_DT_FLOAT);
        assert_int_equal(dtype_of(f, "before"), TARE_DT_BFLOAT16);
        assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
}

/* f(x, q) = Relu(op(Exp(x))), where the op has inputs of other types, too. */
static void expect_float32(struct tare_graph_model *model, struct tare_graph *f, struct tare_node *op) {
    mini_return(f, "y", mini_node(f, "Relu", "after", 1, mini_done(op)));
    convert(model, f);
    assert_int_equal(dtype_of(f, "op"), TARE_DT_FLOAT);
    assert_int_equal(dtype_of(f, "before"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void dequantize__is_cast_around(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    const struct tare_edge x = mini_node(f, "Exp", "before", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    struct tare_node *op = mini_open(f, "Dequantize", "op", 3, mini_arg(f, "q", TARE_DT_QUINT8), x, x);
    (void)state;
    expect_float32(model, f, op);
}

static void xla_reduce__is_cast_around(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *sum = tare_model_add_function(model, "sum");
    const struct tare_edge x = mini_node(f, "Exp", "before", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    struct tare_node *op = mini_open(f, "XlaReduce", "op", 2, x, mini_float(f, "zero", 0));
    (void)state;
    mini_return(
        sum, "sum",
        mini_node(sum, "AddV2", "add", 2, mini_arg(sum, "a", TARE_DT_FLOAT), mini_arg(sum, "b", TARE_DT_FLOAT)));
    mini_ok(tare_node_set_func(op, "reducer", "sum"));
    mini_ok(tare_node_set_int_list(op, "dimensions_to_reduce", (const int64_t[]){ 0 }, 1));
    expect_float32(model, f, op);
}

/* The spectrum is complex64, whose parts come back as float32. */
static void rfft__is_cast_around(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    const struct tare_edge x = mini_node(f, "Exp", "before", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    const struct tare_edge spectrum = mini_node(f, "RFFT", "rfft", 2, x, mini_arg(f, "length", TARE_DT_INT32));
    (void)state;
    expect_float32(model, f, mini_open(f, "ComplexAbs", "op", 1, spectrum));
}

/* Constants and what becomes a float from an integer are not rounded on the way to an op of the filterlist; two of them
 * that read one bfloat16 tensor share its cast. */
static void operands_of_float32_ops__are_exact_and_share_a_cast(void **state) {
    static const char *const ops[] = { "Atan2" };
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true, .float_ops = ops, .n_float_ops = 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    const struct tare_edge x = mini_node(f, "Exp", "before", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    struct tare_node *number = mini_open(f, "Cast", "number", 1, mini_arg(f, "n", TARE_DT_INT32));
    struct tare_edge a, b;
    size_t changes = 0;
    (void)state;
    mini_ok(tare_node_set_type(number, "DstT", TARE_DT_FLOAT));
    a = mini_node(f, "Atan2", "a", 2, x, mini_float(f, "third", 1.0f / 3));
    b = mini_node(f, "Atan2", "b", 2, x, mini_done(number));
    mini_return(f, "a", mini_node(f, "Relu", "after_a", 1, a));
    mini_return(f, "b", mini_node(f, "Relu", "after_b", 1, b));
    mini_ok(tare_tpu_bfloat16(model, &f, 1, &options, &changes));
    graph_check_dtypes(model);
    assert_int_equal(dtype_of(f, "before"), TARE_DT_BFLOAT16);
    assert_string_equal(a.node->inputs[0].node->op, "Cast");
    assert_ptr_equal(a.node->inputs[0].node, b.node->inputs[0].node);
    assert_true(TARE_CONST_DATA(float, tare_edge_constant(a.node->inputs[1]))[0] == 1.0f / 3);
    assert_ptr_equal(b.node->inputs[1].node, graph_node(f, "number"));
    assert_int_equal(tare_edge_dtype(b.node->inputs[1]), TARE_DT_FLOAT);
    assert_int_equal(dtype_of(f, "after_a"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* A rounded value may fall into another bucket. */
static void values_that_decide_a_bucket__are_float32(void **state) {
    static union tare_attr_item bound = { .f = 0.5f };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    const struct tare_edge x = mini_node(f, "Tanh", "tanh", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    struct tare_node *bins = mini_open(f, "Bucketize", "bins", 1, x);
    (void)state;
    bins->attrs = tare_arena_extend(&model->arena, bins->attrs, bins->n_attrs, 1, sizeof *bins->attrs);
    bins->attrs[bins->n_attrs++] = (struct tare_attr){
        .name = "boundaries", .kind = TARE_ATTR_FLOAT, .is_list = true, .count = 1, .items = &bound
    };
    bins->attrs_capacity = bins->n_attrs;
    mini_return(f, "bin", mini_done(bins));
    mini_return(f, "y", mini_node(f, "Exp", "exp", 1, mini_arg(f, "z", TARE_DT_FLOAT)));
    convert(model, f);
    assert_int_equal(dtype_of(f, "tanh"), TARE_DT_FLOAT);
    assert_int_equal(tare_edge_dtype(bins->inputs[0]), TARE_DT_FLOAT);
    assert_ptr_equal(bins->inputs[0].node, graph_node(f, "tanh"));
    assert_int_equal(dtype_of(f, "exp"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* What is float16 or float64 stays, and meets bfloat16 by its own cast. */
static void other_float_types__stay(void **state) {
    static const int dtypes[] = { TARE_DT_HALF, TARE_DT_DOUBLE };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *f = tare_model_add_function(model, "f");
        const struct tare_edge y = mini_node(f, "Exp", "other", 1, mini_arg(f, "x", dtypes[i]));
        struct tare_node *cast = mini_open(f, "Cast", "cast", 1, y);
        mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
        mini_return(f, "y", mini_node(f, "Exp", "after", 1, mini_done(cast)));
        convert(model, f);
        assert_int_equal(dtype_of(f, "other"), dtypes[i]);
        assert_int_equal(dtype_of(f, "cast"), TARE_DT_BFLOAT16);
        assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
}

/* A cast to bfloat16 on the CPU does not need the digits of the function's result. */
static void a_result_that_the_cpu_casts_to_bfloat16__may_be_rounded(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = body(model, "f", "Relu"), *serve = tare_model_add_function(model, "serve");
    struct tare_node *cast =
        mini_open(serve, "Cast", "cast", 1,
                  mini_call(serve, "PartitionedCall", "call", f, 1, mini_arg(serve, "x", TARE_DT_FLOAT)));
    (void)state;
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_BFLOAT16));
    mini_return(serve, "y", mini_done(cast));
    assert_true(convert(model, f) > 0);
    assert_int_equal(dtype_of(f, "product"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* Its arguments, results and body become bfloat16 together with the values around it. */
static void a_function_that_is_called_as_an_op__is_converted(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *callee = body(model, "callee", "Relu");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_call_site site;
    (void)state;
    x = mini_node(f, "MatMul", "before", 2, x, x);
    x = mini_node(f, "callee", "as_op", 1, x);
    mini_return(f, "y", mini_node(f, "MatMul", "after", 2, x, x));
    assert_true(convert(model, f) > 0);
    mini_ok(tare_call_site(&site, &model->arena, graph_node(f, "as_op")));
    assert_int_equal(site.n_callees, 1);
    assert_true(site.callees[0] == callee || strcmp(site.callees[0]->name, "callee_bfloat16") == 0);
    assert_int_equal(dtype_of(site.callees[0], "product"), TARE_DT_BFLOAT16);
    assert_int_equal(site.callees[0]->returns[0].dtype, TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "as_op"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(f, "after"), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void a_function_that_is_called_twice__is_written_once(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *callee = body(model, "callee", "Relu");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    const struct tare_graph *called;
    const size_t before = model->n_functions;
    (void)state;
    x = mini_call(f, "PartitionedCall", "first", callee, 1, x);
    mini_return(f, "y", mini_call(f, "PartitionedCall", "second", callee, 1, x));
    assert_true(convert(model, f) > 0);
    called = tare_node_function(graph_node(f, "first"), "f");
    assert_ptr_equal(tare_node_function(graph_node(f, "second"), "f"), called);
    assert_int_equal(dtype_of(called, "product"), TARE_DT_BFLOAT16);
    assert_int_equal(model->n_functions, before);
    tare_model_free(model);
}

/* v + x + y + float(z) in the main graph: the signature keeps its dtypes, the variable does not. An input that is
 * bfloat16 already is refused. */
static void the_main_graph__is_converted_between_the_dtypes_of_its_signature(void **state) {
    static const char *const keys[] = { "x", "y", "z" };
    (void)state;
    for (int already = 0; already < 2; already++) {
        struct tare_graph_model *model = mini_model_new();
        const int dtypes[] = { already ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT, TARE_DT_FLOAT, TARE_DT_INT32 };
        struct tare_binding in[3], out = { .key = "sum", .dtype = TARE_DT_FLOAT };
        struct tare_signature signature = {
            .key = "serving_default", .inputs = in, .n_inputs = 3, .outputs = &out, .n_outputs = 1
        };
        const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
        struct tare_node *node = mini_open(model->main, "ReadVariableOp", "read", 1, mini_variable(model, "v", 0.5f));
        struct tare_edge sum;
        size_t changes = 0;
        mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
        sum = mini_done(node);
        for (int i = 0; i < 3; i++) {
            in[i] = (struct tare_binding){ .key = keys[i],
                                           .dtype = dtypes[i],
                                           .edge = mini_placeholder(model->main, keys[i], dtypes[i]) };
            node = mini_open(model->main, "Cast", "cast", 1, in[i].edge);
            mini_ok(tare_node_set_type(node, "DstT", TARE_DT_FLOAT));
            sum = mini_node(model->main, "AddV2", "add", 2, sum, mini_done(node));
        }
        out.edge = sum;
        model->signatures = &signature;
        model->n_signatures = 1;
        if (already)
            mini_fails(tare_tpu_bfloat16(model, &model->main, 1, &options, &changes),
                       "node 'x' (Placeholder) is bfloat16 already");
        else {
            assert_true(convert(model, model->main) > 0);
            assert_int_equal(tare_edge_dtype(sum), TARE_DT_BFLOAT16);
            assert_int_equal(tare_edge_dtype(out.edge), TARE_DT_FLOAT);
            for (int i = 0; i < 3; i++)
                assert_int_equal(tare_edge_dtype(in[i].edge), dtypes[i]);
            assert_int_equal(model->variables[0].dtype, TARE_DT_BFLOAT16);
        }
        model->n_signatures = 0;
        tare_model_free(model);
    }
}

/* With scope ALL, a function that is placed keeps the dtypes of its arguments and results, which its callers in other
 * programs know: values cross as float32, by casts that change none. */
static void a_placed_function__keeps_its_signature_when_its_caller_is_converted(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *placed = body(model, "placed", "Relu"), *serve = tare_model_add_function(model, "serve");
    struct tare_graph *const graphs[] = { placed, serve };
    const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
    struct tare_edge x = mini_arg(serve, "x", TARE_DT_FLOAT);
    size_t changes = 0;
    (void)state;
    x = mini_node(serve, "MatMul", "before", 2, x, x);
    x = mini_call(serve, "PartitionedCall", "call", placed, 1, x);
    mini_return(serve, "y", mini_node(serve, "MatMul", "after", 2, x, x));
    mini_ok(tare_tpu_bfloat16(model, graphs, 2, &options, &changes));
    graph_check_dtypes(model);
    assert_int_equal(dtype_of(serve, "before"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(serve, "after"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(placed, "product"), TARE_DT_BFLOAT16);
    assert_int_equal(placed->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(placed->returns[0].dtype, TARE_DT_FLOAT);
    assert_string_equal(graph_node(serve, "call")->inputs[0].node->op, "Cast");
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches__are_converted_with_the_op),
        cmocka_unit_test(the_flow_of_a_tensor_array__stays_consistent),
        cmocka_unit_test(the_flow_through_a_loop__stays_consistent),
        cmocka_unit_test(ops_of_the_list__are_cast_around),
        cmocka_unit_test(dequantize__is_cast_around),
        cmocka_unit_test(xla_reduce__is_cast_around),
        cmocka_unit_test(rfft__is_cast_around),
        cmocka_unit_test(operands_of_float32_ops__are_exact_and_share_a_cast),
        cmocka_unit_test(values_that_decide_a_bucket__are_float32),
        cmocka_unit_test(other_float_types__stay),
        cmocka_unit_test(a_result_that_the_cpu_casts_to_bfloat16__may_be_rounded),
        cmocka_unit_test(a_function_that_is_called_as_an_op__is_converted),
        cmocka_unit_test(a_function_that_is_called_twice__is_written_once),
        cmocka_unit_test(the_main_graph__is_converted_between_the_dtypes_of_its_signature),
        cmocka_unit_test(a_placed_function__keeps_its_signature_when_its_caller_is_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
