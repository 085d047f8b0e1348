/* What the compatibility check finds, and what it lets pass. */
#include "tpu/compatibility.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/compatibility_internal.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *graph;
    struct tare_tpu_finding *found;
    size_t count;
};

static void set_up(struct fixture *f) {
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->graph = tare_model_add_function(f->model, "f");
}

static void check(struct fixture *f) {
    mini_ok(tare_tpu_check(&f->found, &f->count, &f->arena, f->model, &f->graph, 1));
}

static void tear_down(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void expect(const struct fixture *f, enum tare_tpu_finding_kind kind, const char *part) {
    for (size_t i = 0; i < f->count; i++)
        if (f->found[i].kind == kind && strstr(f->found[i].text, part)) return;
    fail_msg("no finding with '%s' among %zu (the first: '%s')", part, f->count, f->count ? f->found[0].text : "");
}

static void the_table__is_sorted(void **state) {
    (void)state;
    assert_true(tare_n_xla_ops > 500);
    for (size_t i = 1; i < tare_n_xla_ops; i++)
        if (strcmp(tare_xla_ops[i - 1].name, tare_xla_ops[i].name) >= 0)
            fail_msg("%s is listed before %s", tare_xla_ops[i - 1].name, tare_xla_ops[i].name);
}

static struct tare_edge custom_call(struct tare_graph *graph, struct tare_edge x, const char *target) {
    const int dtypes[] = { TARE_DT_FLOAT };
    struct tare_node *node = mini_open(graph, "XlaCustomCallV2", "custom", 1, x);
    mini_ok(tare_node_set_string(node, "call_target_name", target, strlen(target)));
    mini_ok(tare_node_set_string(node, "backend_config", "", 0));
    mini_ok(tare_node_set_bool(node, "has_side_effect", false));
    mini_ok(tare_node_set_type_list(node, "operand_dtypes", dtypes, 1));
    mini_ok(tare_node_set_type_list(node, "result_dtypes", dtypes, 1));
    mini_ok(tare_node_set_shape_list(node, "result_shapes", NULL, 0));
    mini_done(node);
    return (struct tare_edge){ node, 0 };
}

/* TensorFlow has no CPU kernel for the op: it is found in what a signature runs there, and not in what XLA compiles. */
static void custom_calls_on_the_cpu__are_found(void **state) {
    static const struct {
        const char *call, *target, *remedy; /* no remedy: nothing is found */
    } cases[] = { { "PartitionedCall", "lapack_sgetrf_ffi", "(export the model with platforms=(\"tpu\",))" },
                  { "PartitionedCall", "LuDecomposition", "(place the function that has it on the TPU)" },
                  { "PartitionedCall, compiled", "lapack_sgetrf_ffi", NULL },
                  { "TPUPartitionedCall", "LuDecomposition", NULL } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        struct tare_binding y = { .key = "y", .dtype = TARE_DT_FLOAT };
        struct tare_signature signature = { .key = "serving_default", .outputs = &y, .n_outputs = 1 };
        set_up(&f);
        mini_return(f.graph, "y", custom_call(f.graph, mini_arg(f.graph, "x", TARE_DT_FLOAT), cases[i].target));
        const struct tare_edge x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
        if (strncmp(cases[i].call, "TPU", 3) == 0)
            y.edge = mini_call(f.model->main, cases[i].call, "call", f.graph, 2, x, mini_int(f.model->main, "core", 0));
        else
            y.edge = mini_call(f.model->main, "PartitionedCall", "call", f.graph, 1, x);
        if (strstr(cases[i].call, "compiled")) mini_ok(tare_node_set_bool(y.edge.node, "_XlaMustCompile", true));
        mini_ok(tare_tpu_check_left(&f.found, &f.count, &f.arena, f.model));
        assert_int_equal(f.count, 0); /* no signature needs it */
        f.model->signatures = &signature;
        f.model->n_signatures = 1;
        mini_ok(tare_tpu_check_left(&f.found, &f.count, &f.arena, f.model));
        assert_int_equal(f.count, cases[i].remedy ? 1 : 0);
        if (f.count) {
            expect(&f, TARE_TPU_NO_CPU_KERNEL, cases[i].target);
            expect(&f, TARE_TPU_NO_CPU_KERNEL, "node 'custom' in function f stays on the CPU");
            expect(&f, TARE_TPU_NO_CPU_KERNEL, cases[i].remedy);
        }
        f.model->n_signatures = 0;
        tear_down(&f);
    }
}

/* The op is compiled where the compiler knows the target. */
static void custom_calls_of_lapack__are_not_compiled(void **state) {
    static const char *const targets[] = { "LuDecomposition", "lapack_sgetrf_ffi" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        set_up(&f);
        struct tare_edge x = { tare_graph_add_arg(f.graph, "x", TARE_DT_FLOAT), 0 };
        custom_call(f.graph, x, targets[i]);
        check(&f);
        if (i)
            expect(&f, TARE_TPU_NOT_COMPILABLE, "XlaCustomCallV2");
        else
            assert_int_equal(f.count, 0);
        tear_down(&f);
    }
}

/* XLA rejects these ops with one scale per channel ("failed to legalize operation"), and compiles them with one. */
static void quantized_ops__are_compiled_with_one_scale(void **state) {
    static const struct {
        const char *op, *axis;
    } cases[] = { { "UniformQuantizedDot", "rhs_quantization_axis" },
                  { "UniformQuantizedAdd", "lhs_quantization_axis" },
                  { "UniformQuantizedClipByValue", "quantization_axis" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int axis = -1; axis < 2; axis++) {
            struct fixture f;
            struct tare_edge inputs[8];
            const int n = strcmp(cases[i].op, "UniformQuantizedClipByValue") == 0 ? 5 : 8;
            set_up(&f);
            struct tare_node *node = tare_graph_add(f.graph, cases[i].op, "product");
            for (int k = 0; k < n; k++) {
                const bool is_scale = n == 8 ? k == 2 || k == 4 || k == 6 : k == 3;
                const bool is_value = n == 8 ? k < 2 : k < 3;
                char name[8] = { 'x', (char)('0' + k) };
                inputs[k] = is_value   ? mini_arg(f.graph, name, TARE_DT_QINT8)
                            : is_scale ? mini_float(f.graph, name, 0.5F)
                                       : mini_int(f.graph, name, 0);
                mini_ok(tare_node_add_input(node, inputs[k]));
            }
            mini_ok(tare_node_set_type(node, strstr(cases[i].op, "Dot") ? "Tin" : "T", TARE_DT_QINT8));
            if (strstr(cases[i].op, "Dot")) mini_ok(tare_node_set_type(node, "Tout", TARE_DT_QINT32));
            mini_ok(tare_node_set_int(node, cases[i].axis, axis));
            mini_ok(tare_node_resolve(node));
            check(&f);
            if (axis >= 0)
                expect(&f, TARE_TPU_NOT_COMPILABLE, "isn't compilable for TPU device with one scale per channel");
            assert_int_equal(f.count, axis >= 0);
            tear_down(&f);
        }
}

static void plain_arithmetic__passes(void **state) {
    struct fixture f;
    struct tare_edge x, shape;
    (void)state;
    set_up(&f);
    x = mini_arg(f.graph, "x", TARE_DT_FLOAT);
    shape = mini_node(f.graph, "Shape", "shape", 1, x); /* known when the program is compiled */
    x = mini_node(f.graph, "Reshape", "reshape", 2, mini_node(f.graph, "Relu", "relu", 1, x), shape);
    mini_return(f.graph, "y", x);
    check(&f);
    assert_int_equal(f.count, 0);
    tear_down(&f);
}

/* Transposed convolutions of decoders; the table once lacked them. */
static void gradients_of_convolutions__are_compiled_with_sizes_that_are_known(void **state) {
    static const char *const input[] = { "Conv2DBackpropInput", "Conv3DBackpropInputV2",
                                         "DepthwiseConv2dNativeBackpropInput" };
    (void)state;
    for (size_t k = 0; k < sizeof input / sizeof *input; k++) {
        const struct tare_xla_op *found = tare_tpu_find_op(input[k]);
        if (!found) fail_msg("%s is not in the table", input[k]);
        assert_string_equal(found->constants, "input_sizes");
    }
}

static void an_op_without_kernel__is_named_in_the_runtimes_words(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_return(f.graph, "y", mini_node(f.graph, "StringToNumber", "parse", 1, mini_arg(f.graph, "x", TARE_DT_STRING)));
    check(&f);
    expect(&f, TARE_TPU_NOT_COMPILABLE,
           "'tf.StringToNumber' op isn't compilable for TPU device. (node 'parse' in function f");
    expect(&f, TARE_TPU_BAD_BOUNDARY, "parameter 'x' of TPU function f is string");
    assert_int_equal(f.count, 2);
    tear_down(&f);
}

/* A loop's body takes and returns the handles of its variables: it cannot be placed without the loop. */
static void a_handle__is_a_parameter_but_not_a_return(void **state) {
    struct fixture f;
    struct tare_edge handle;
    (void)state;
    set_up(&f);
    handle = mini_arg(f.graph, "handle", TARE_DT_RESOURCE);
    mini_return(f.graph, "variable", mini_node(f.graph, "Identity", "same", 1, handle));
    check(&f);
    expect(&f, TARE_TPU_BAD_BOUNDARY, "return 'variable' of TPU function f is resource");
    assert_int_equal(f.count, 1);
    tear_down(&f);
}

static void a_dynamic_shape__names_its_node(void **state) {
    struct fixture f;
    struct tare_graph *inner;
    struct tare_edge x, n;
    (void)state;
    set_up(&f);
    inner = tare_model_add_function(f.model, "inner");
    x = mini_arg(inner, "x", TARE_DT_FLOAT);
    n = mini_arg(inner, "n", TARE_DT_INT32);
    mini_return(inner, "y", mini_node(inner, "Reshape", "reshape", 2, x, n));
    x = mini_arg(f.graph, "x", TARE_DT_FLOAT);
    mini_return(
        f.graph, "fixed",
        mini_call(f.graph, "PartitionedCall", "good", inner, 2, x, mini_ints(f.graph, "size", 1, (int32_t[]){ -1 })));
    check(&f);
    assert_int_equal(f.count, 0);
    n = mini_arg(f.graph, "n", TARE_DT_INT32);
    mini_return(f.graph, "open", mini_call(f.graph, "PartitionedCall", "bad", inner, 2, x, n));
    check(&f);
    assert_int_equal(f.count, 1);
    expect(&f, TARE_TPU_NOT_CONSTANT,
           "input 'shape' of node 'reshape' (Reshape) in function inner must be a compile-time "
           "constant, but 'n' (_Arg)");
    tear_down(&f);
}

/* The dense shape of a SparseTensor that is passed to the function. */
static void a_sparse_parameter_that_is_made_dense__names_the_remedy(void **state) {
    struct fixture f;
    struct tare_edge indices, shape, values;
    (void)state;
    set_up(&f);
    indices = mini_arg(f.graph, "indices", TARE_DT_INT64);
    values = mini_arg(f.graph, "values", TARE_DT_FLOAT);
    shape = mini_arg(f.graph, "dense_shape", TARE_DT_INT64);
    mini_return(
        f.graph, "y",
        mini_node(f.graph, "SparseToDense", "dense", 4, indices, shape, values, mini_float(f.graph, "zero", 0)));
    check(&f);
    assert_int_equal(f.count, 1);
    expect(&f, TARE_TPU_NOT_CONSTANT,
           "but 'dense_shape' (_Arg) makes it dynamic (call tf.sparse.to_dense on the CPU and pass the dense tensor to "
           "the TPU function)");
    tear_down(&f);
}

/* Version 2 of the converter takes what is read for a constant; the compiler has no value of a variable. */
static void a_shape_in_a_variable__is_no_constant(void **state) {
    struct fixture f;
    struct tare_node *read;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_arg(f.graph, "x", TARE_DT_FLOAT);
    read = mini_open(f.graph, "ReadVariableOp", "read", 1, mini_arg(f.graph, "v", TARE_DT_RESOURCE));
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_INT32));
    mini_return(f.graph, "y", mini_node(f.graph, "Reshape", "reshape", 2, x, mini_done(read)));
    check(&f);
    expect(&f, TARE_TPU_NOT_CONSTANT, "but 'read' (ReadVariableOp)");
    assert_int_equal(f.count, 1);
    tear_down(&f);
}

static void written_variables_and_float64__are_found(void **state) {
    struct fixture f;
    struct tare_node *assign;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_arg(f.graph, "x", TARE_DT_DOUBLE);
    assign = mini_open(f.graph, "AssignVariableOp", "assign", 2, mini_arg(f.graph, "v", TARE_DT_RESOURCE), x);
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_DOUBLE));
    mini_done(assign);
    mini_return(f.graph, "y", mini_node(f.graph, "Exp", "exp", 1, x));
    check(&f);
    expect(&f, TARE_TPU_ASSIGNS, "node 'assign' (AssignVariableOp) in function f writes a variable");
    expect(&f, TARE_TPU_SLOW_TYPE, "node 'exp'");
    assert_int_equal(f.count, 2);
    tear_down(&f);
}

static void float64__is_one_warning(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_node(f.graph, "Exp", "exp", 1, mini_arg(f.graph, "x", TARE_DT_DOUBLE));
    mini_return(f.graph, "y", mini_node(f.graph, "Tanh", "tanh", 1, mini_node(f.graph, "Sqrt", "sqrt", 1, x)));
    check(&f);
    assert_int_equal(f.count, 1);
    expect(&f, TARE_TPU_SLOW_TYPE, "node 'exp' (Exp) in function f and 2 others (use float32)");
    tear_down(&f);
}

static void a_type_that_the_kernel_lacks__is_found(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_node(f.graph, "CheckNumerics", "fine", 1, mini_arg(f.graph, "z", TARE_DT_FLOAT));
    x = mini_node(f.graph, "ApproxTopK", "top", 1, x);
    check(&f);
    assert_int_equal(f.count, 0);
    mini_ok(tare_node_set_type(x.node, "T", TARE_DT_DOUBLE));
    check(&f);
    expect(&f, TARE_TPU_BAD_TYPE,
           "'tf.ApproxTopK' op isn't compilable for TPU device with these types (expected T={DT_FLOAT");
    tear_down(&f);
}

static void a_custom_op_and_sparse_ops__get_their_own_advice(void **state) {
    struct fixture f;
    struct tare_node *node;
    (void)state;
    set_up(&f);
    node = tare_graph_add(f.graph, "MyCompany>Tokenize", "tokens");
    assert_non_null(node);
    mini_node(f.graph, "SparseReshape", "sparse", 3, mini_arg(f.graph, "a", TARE_DT_INT64),
              mini_arg(f.graph, "b", TARE_DT_INT64), mini_arg(f.graph, "c", TARE_DT_INT64));
    check(&f);
    expect(&f, TARE_TPU_NOT_COMPILABLE, "(node 'tokens' in function f; it is a custom op without definition");
    expect(&f, TARE_TPU_NOT_COMPILABLE, "(node 'sparse' in function f; call tf.sparse.to_dense on the CPU");
    assert_int_equal(f.count, 2);
    tear_down(&f);
}

static void a_string_variable__is_found(void **state) {
    struct fixture f;
    struct tare_node *read;
    (void)state;
    set_up(&f);
    read = mini_open(f.graph, "ReadVariableOp", "read", 1, mini_arg(f.graph, "v", TARE_DT_RESOURCE));
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_STRING));
    mini_done(read);
    check(&f);
    expect(&f, TARE_TPU_BAD_TYPE, "node 'read' (ReadVariableOp) in function f reads a string variable");
    assert_int_equal(f.count, 1);
    tear_down(&f);
}

static void a_sparse_input_of_a_signature__is_found(void **state) {
    struct fixture f;
    const struct tare_composite_tensor words = { "words", "SparseTensor" };
    struct tare_binding in = { .key = "words.indices", .whole = &words }, out = { .key = "y" };
    struct tare_signature signature = {
        .key = "serving_default", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1
    };
    (void)state;
    set_up(&f);
    mini_return(f.graph, "y", mini_node(f.graph, "Relu", "relu", 1, mini_arg(f.graph, "x", TARE_DT_FLOAT)));
    out.edge = mini_call(f.model->main, "PartitionedCall", "call", f.graph, 1,
                         mini_placeholder(f.model->main, "x", TARE_DT_FLOAT));
    f.model->signatures = &signature;
    f.model->n_signatures = 1;
    check(&f);
    expect(&f, TARE_TPU_BAD_BOUNDARY, "input 'words' of signature serving_default is a SparseTensor");
    assert_int_equal(f.count, 1);
    f.model->n_signatures = 0;
    tear_down(&f);
}

static void hybrid_products__name_the_op_set_that_is_compiled(void **state) {
    struct fixture f;
    struct tare_edge x, weight, scales, zeros;
    struct tare_node *node;
    (void)state;
    set_up(&f);
    x = mini_arg(f.graph, "x", TARE_DT_FLOAT);
    weight = mini_arg(f.graph, "weight", TARE_DT_QINT8);
    scales = mini_float(f.graph, "scales", 1);
    zeros = mini_int(f.graph, "zeros", 0);
    node = mini_open(f.graph, "UniformQuantizedDotHybrid", "product", 4, x, weight, scales, zeros);
    mini_ok(tare_node_set_type(node, "Tlhs", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(node, "Trhs", TARE_DT_QINT8));
    mini_ok(tare_node_set_type(node, "Tout", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int(node, "rhs_quantization_min_val", -128));
    mini_ok(tare_node_set_int(node, "rhs_quantization_max_val", 127));
    mini_return(f.graph, "y", mini_done(node));
    check(&f);
    expect(&f, TARE_TPU_NOT_COMPILABLE, "(node 'product' in function f; quantize the float model with the op set xla");
    tear_down(&f);
}

static void only_what_cannot_run__is_an_error(void **state) {
    (void)state;
    assert_true(tare_tpu_finding_is_error(TARE_TPU_NOT_COMPILABLE));
    assert_true(tare_tpu_finding_is_error(TARE_TPU_NOT_CONSTANT));
    assert_true(tare_tpu_finding_is_error(TARE_TPU_BAD_BOUNDARY));
    assert_false(tare_tpu_finding_is_error(TARE_TPU_SLOW_TYPE));
    assert_false(tare_tpu_finding_is_error(TARE_TPU_ASSIGNS));
    assert_false(tare_tpu_finding_is_error(TARE_TPU_STALE_VARIABLE));
}

static struct tare_edge read_variable(struct tare_graph *graph, const char *name, struct tare_edge handle) {
    struct tare_node *read = mini_open(graph, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    return mini_done(read);
}

/* A function that adds one to v, and returns it. */
static struct tare_graph *counter(struct tare_graph_model *model) {
    struct tare_graph *graph = tare_model_add_function(model, "count");
    struct tare_edge v = mini_arg(graph, "v", TARE_DT_RESOURCE);
    struct tare_node *assign = mini_open(graph, "AssignAddVariableOp", "add", 2, v, mini_float(graph, "one", 1));
    mini_ok(tare_node_set_type(assign, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_resolve(assign));
    mini_return(graph, "y", read_variable(graph, "counted", v));
    return graph;
}

/* One signature reads v and w, another writes v: the TPU would use the v of its first request for ever. */
static void reads_of_what_the_cpu_writes__are_found(void **state) {
    struct fixture f;
    struct tare_binding outs[2] = { { .key = "y" }, { .key = "count" } };
    struct tare_signature signatures[2] = { { .key = "serve", .outputs = &outs[0], .n_outputs = 1 },
                                            { .key = "count", .outputs = &outs[1], .n_outputs = 1 } };
    struct tare_graph *both[2];
    struct tare_edge v, w, read;
    (void)state;
    set_up(&f);
    v = mini_variable(f.model, "v", 2);
    w = mini_variable(f.model, "w", 3);
    read = read_variable(f.graph, "read_v", mini_arg(f.graph, "v", TARE_DT_RESOURCE));
    mini_return(f.graph, "y",
                mini_node(f.graph, "Mul", "mul", 2, read,
                          read_variable(f.graph, "read_w", mini_arg(f.graph, "w", TARE_DT_RESOURCE))));
    both[0] = f.graph;
    both[1] = counter(f.model);
    outs[0].edge = mini_call(f.model->main, "StatefulPartitionedCall", "serve", f.graph, 2, v, w);
    outs[1].edge = mini_call(f.model->main, "StatefulPartitionedCall", "count_up", both[1], 1, v);
    f.model->signatures = signatures;
    f.model->n_signatures = 1; /* the counter is not served: a training function, for example */
    check(&f);
    assert_int_equal(f.count, 0);
    f.model->n_signatures = 2;
    check(&f);
    assert_int_equal(f.count, 1);
    expect(&f, TARE_TPU_STALE_VARIABLE,
           "node 'read_v' (ReadVariableOp) in function f reads a variable that node 'add' (AssignAddVariableOp) in "
           "function count writes");
    mini_ok(tare_tpu_check(&f.found, &f.count, &f.arena, f.model, both, 2)); /* both use the TPU's copy */
    assert_int_equal(f.count, 1);
    expect(&f, TARE_TPU_ASSIGNS, "node 'add'");
    f.model->n_signatures = 0;
    tear_down(&f);
}

static void messages_of_assertions__pass(void **state) {
    static const char *const words[] = { "wrong" };
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_node(f.graph, "Assert", "assert", 2, mini_arg(f.graph, "ok", TARE_DT_BOOL),
              mini_strings(f.graph, "text", 1, words));
    check(&f);
    assert_int_equal(f.count, 0);
    tear_down(&f);
}

/* A chain of calls in one function: each argument is dynamic because the first one is. */
static size_t bytes_to_check_calls(int count) {
    struct fixture f;
    set_up(&f);
    struct tare_graph *callee = tare_model_add_function(f.model, "callee");
    struct tare_edge x = mini_arg(f.graph, "chained", TARE_DT_FLOAT);
    mini_return(callee, "y", mini_node(callee, "Relu", "relu", 1, mini_arg(callee, "x", TARE_DT_FLOAT)));
    for (int i = 0; i < count; i++)
        x = mini_call(f.graph, "PartitionedCall", "call", callee, 1, x);
    mini_return(f.graph, "z", x);
    check(&f);
    assert_int_equal(f.count, 0);
    const size_t bytes = f.arena.bytes;
    tear_down(&f);
    return bytes;
}

static void a_chain_of_calls__is_followed_once(void **state) {
    const size_t few = bytes_to_check_calls(100), many = bytes_to_check_calls(1600);
    (void)state;
    assert_in_range(many, 0, 20 * few);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table__is_sorted),
        cmocka_unit_test(custom_calls_of_lapack__are_not_compiled),
        cmocka_unit_test(custom_calls_on_the_cpu__are_found),
        cmocka_unit_test(quantized_ops__are_compiled_with_one_scale),
        cmocka_unit_test(plain_arithmetic__passes),
        cmocka_unit_test(gradients_of_convolutions__are_compiled_with_sizes_that_are_known),
        cmocka_unit_test(an_op_without_kernel__is_named_in_the_runtimes_words),
        cmocka_unit_test(a_handle__is_a_parameter_but_not_a_return),
        cmocka_unit_test(a_dynamic_shape__names_its_node),
        cmocka_unit_test(a_shape_in_a_variable__is_no_constant),
        cmocka_unit_test(a_sparse_parameter_that_is_made_dense__names_the_remedy),
        cmocka_unit_test(written_variables_and_float64__are_found),
        cmocka_unit_test(float64__is_one_warning),
        cmocka_unit_test(a_type_that_the_kernel_lacks__is_found),
        cmocka_unit_test(a_custom_op_and_sparse_ops__get_their_own_advice),
        cmocka_unit_test(a_string_variable__is_found),
        cmocka_unit_test(a_sparse_input_of_a_signature__is_found),
        cmocka_unit_test(hybrid_products__name_the_op_set_that_is_compiled),
        cmocka_unit_test(only_what_cannot_run__is_an_error),
        cmocka_unit_test(reads_of_what_the_cpu_writes__are_found),
        cmocka_unit_test(messages_of_assertions__pass),
        cmocka_unit_test(a_chain_of_calls__is_followed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
