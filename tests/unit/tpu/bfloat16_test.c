/* bfloat16 inside functions: what becomes bfloat16, what stays, and where the casts are. */
#include "tpu/bfloat16.h"
#include "graph/calls.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

static const struct tare_bfloat16_options defaults = { .rounds_magnitudes = true };

static struct tare_graph *function(struct tare_graph_model *model, const char *name) {
    struct tare_graph *graph = tare_model_add_function(model, name);
    assert_non_null(graph);
    return graph;
}

static size_t convert(struct tare_graph_model *model, struct tare_graph *graph,
                      const struct tare_bfloat16_options *options) {
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, &graph, 1, options, &changes));
    graph_check_dtypes(model);
    return changes;
}

static int dtype_of(const struct tare_graph *graph, const char *name) {
    return tare_edge_dtype((struct tare_edge){ graph_node(graph, name), 0 });
}

#define assert_dtype(graph, name, expected)                                                                            \
    do {                                                                                                               \
        int got_ = dtype_of(graph, name);                                                                              \
        if (got_ != (expected))                                                                                        \
            fail_msg("'%s' is %s (expected %s)", name, tare_dtype_name(got_), tare_dtype_name(expected));              \
    } while (0)

static struct tare_edge cast(struct tare_graph *graph, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(graph, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* relu(x * 3 + 1) */
static struct tare_graph *affine(struct tare_graph_model *model, const char *name) {
    struct tare_graph *graph = function(model, name);
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(graph, "Mul", "mul", 2, x, mini_float(graph, "three", 3));
    y = mini_node(graph, "AddV2", "add", 2, y, mini_float(graph, "one", 1));
    mini_return(graph, "y", mini_node(graph, "Relu", "relu", 1, y));
    return graph;
}

static void arithmetic__is_bfloat16_with_casts_at_the_boundary_only(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = affine(model, "f");
    (void)state;
    assert_true(convert(model, graph, &defaults) > 0);
    assert_dtype(graph, "mul", TARE_DT_BFLOAT16);
    assert_dtype(graph, "add", TARE_DT_BFLOAT16);
    assert_dtype(graph, "relu", TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2);
    assert_int_equal(graph_count(graph, "Const"), 2);
    assert_null(tare_graph_find(graph, "three"));
    assert_int_equal(graph->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(graph->returns[0].dtype, TARE_DT_FLOAT);
    tare_model_free(model);
}

static struct tare_edge list_node(struct tare_graph *graph, const char *op, int n, struct tare_edge a,
                                  struct tare_edge b, struct tare_edge c) {
    struct tare_node *node = mini_open(graph, op, op, n, a, b, c);
    mini_ok(tare_node_set_type(node, "element_dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

/* The list is made from constants alone, which are arithmetic that stays float32; its elements are computed values. */
static void lists__have_the_dtype_of_their_elements(void **state) {
    static const int32_t sizes[] = { 2, 2 };
    const struct tare_bfloat16_options analysis = { 0 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    const struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), none = { 0 };
    const struct tare_edge product = mini_node(graph, "MatMul", "product", 2, x, x);
    const struct tare_edge shape = mini_ints(graph, "shape", 2, sizes), one = mini_int(graph, "one", 1);
    (void)state;
    struct tare_edge list = list_node(graph, "TensorListReserve", 2, shape, one, none);
    list = list_node(graph, "TensorListSetItem", 3, list, mini_int(graph, "zero", 0), product);
    list = list_node(graph, "TensorListStack", 2, list, shape, none);
    mini_return(graph, "y", mini_node(graph, "BatchMatMulV2", "last", 2, list, list));
    convert(model, graph, &analysis);
    const int dtype = tare_node_type(graph_node(graph, "TensorListReserve"), "element_dtype", 0);
    assert_int_equal(dtype, tare_node_type(graph_node(graph, "TensorListSetItem"), "element_dtype", 0));
    assert_int_equal(dtype, tare_node_type(graph_node(graph, "TensorListStack"), "element_dtype", 0));
    assert_int_equal(dtype, TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void constants__round_to_nearest_even_and_stay_finite(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    const struct tare_tensor *value;
    (void)state;
    x = mini_node(graph, "Mul", "mul", 2, x, mini_float(graph, "third", 1.0f / 3));
    x = mini_node(graph, "Maximum", "max", 2, x, mini_float(graph, "lowest", -3.4028235e38f));
    x = mini_node(graph, "Minimum", "min", 2, x, mini_float(graph, "infinite", INFINITY));
    mini_return(graph, "y", x);
    convert(model, graph, &defaults);
    value = tare_edge_constant(graph_node(graph, "mul")->inputs[1]);
    assert_int_equal(TARE_CONST_DATA(uint16_t, value)[0], 0x3eab);
    value = tare_edge_constant(graph_node(graph, "max")->inputs[1]);
    assert_int_equal(TARE_CONST_DATA(uint16_t, value)[0], 0xff7f);
    value = tare_edge_constant(graph_node(graph, "min")->inputs[1]);
    assert_int_equal(TARE_CONST_DATA(uint16_t, value)[0], 0x7f80);
    tare_model_free(model);
}

static void variables__are_cast_after_their_read(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), handle = mini_arg(graph, "handle", TARE_DT_RESOURCE);
    struct tare_node *read = mini_open(graph, "ReadVariableOp", "read", 1, handle);
    (void)state;
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_return(graph, "y", mini_node(graph, "Mul", "mul", 2, x, mini_done(read)));
    convert(model, graph, &defaults);
    assert_dtype(graph, "read", TARE_DT_FLOAT);
    assert_dtype(graph, "mul", TARE_DT_BFLOAT16);
    assert_string_equal(graph_node(graph, "mul")->inputs[1].node->op, "Cast");
    assert_ptr_equal(graph_node(graph, "mul")->inputs[1].node->inputs[0].node, graph_node(graph, "read"));
    tare_model_free(model);
}

static void an_argument_that_is_only_moved__stays_exact(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    x = mini_node(graph, "Reshape", "reshape", 2, x, mini_ints(graph, "shape", 1, (int32_t[]){ -1 }));
    mini_return(graph, "y", mini_node(graph, "Identity", "identity", 1, x));
    assert_int_equal(convert(model, graph, &defaults), 0);
    assert_dtype(graph, "reshape", TARE_DT_FLOAT);
    assert_int_equal(graph_count(graph, "Cast"), 0);
    tare_model_free(model);
}

static void moves_between_products__are_bfloat16(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), y;
    (void)state;
    y = mini_node(graph, "Reshape", "before", 2, x, mini_ints(graph, "shape", 1, (int32_t[]){ -1 }));
    y = mini_node(graph, "Mul", "mul", 2, y, y);
    y = mini_node(graph, "Identity", "between", 1, y);
    y = mini_node(graph, "Exp", "exp", 1, y);
    y = mini_node(graph, "Identity", "after", 1, y);
    mini_return(graph, "y", y);
    convert(model, graph, &defaults);
    assert_dtype(graph, "before", TARE_DT_BFLOAT16);
    assert_dtype(graph, "between", TARE_DT_BFLOAT16);
    assert_dtype(graph, "after", TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2);
    assert_dtype(graph, "shape", TARE_DT_INT32);
    tare_model_free(model);
}

static void an_op_without_bfloat16__is_cast_around(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    x = mini_node(graph, "Exp", "exp", 1, x);
    x = mini_node(graph, "Zeta", "zeta", 2, x, mini_float(graph, "q", 2)); /* T: {float, double} */
    x = mini_node(graph, "Relu", "relu", 1, x);
    mini_return(graph, "y", x);
    convert(model, graph, &defaults);
    assert_dtype(graph, "exp", TARE_DT_BFLOAT16);
    assert_dtype(graph, "zeta", TARE_DT_FLOAT);
    assert_dtype(graph, "relu", TARE_DT_BFLOAT16);
    assert_dtype(graph, "q", TARE_DT_FLOAT);
    assert_int_equal(graph_count(graph, "Cast"), 4);
    tare_model_free(model);
}

/* A dropout's mask would be another one. */
static void random_numbers__are_those_of_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    struct tare_node *draw;
    (void)state;
    draw = mini_open(graph, "StatelessRandomUniform", "draw", 2, mini_ints(graph, "shape", 1, (int32_t[]){ 4 }),
                     mini_ints(graph, "seed", 2, (int32_t[]){ 1, 2 }));
    mini_ok(tare_node_set_type(draw, "dtype", TARE_DT_FLOAT));
    mini_return(graph, "y", mini_node(graph, "Mul", "mul", 2, x, mini_done(draw)));
    convert(model, graph, &defaults);
    assert_dtype(graph, "draw", TARE_DT_FLOAT);
    assert_dtype(graph, "mul", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void the_filterlist__keeps_ops_in_float32(void **state) {
    static const char *const names[] = { "AddV2" }, *const wrong[] = { "AddV7" };
    struct tare_bfloat16_options options = { .rounds_magnitudes = true, .float_ops = names, .n_float_ops = 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = affine(model, "f");
    size_t changes = 0;
    (void)state;
    options.float_ops = wrong;
    mini_fails(tare_tpu_bfloat16(model, &graph, 1, &options, &changes), "filterlist names \"AddV7\"");
    options.float_ops = names;
    convert(model, graph, &options);
    assert_dtype(graph, "mul", TARE_DT_BFLOAT16);
    assert_dtype(graph, "add", TARE_DT_FLOAT);
    assert_dtype(graph, "one", TARE_DT_FLOAT);
    assert_dtype(graph, "relu", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* The ops of the public converter's list whose definitions allow bfloat16, between two that compute in it. */
static void ops_of_the_public_list__stay_float32(void **state) {
    static const char *const ops[] = { "ResizeBilinear", "ResizeArea", "SparseMatMul", "SparseSegmentSqrtN",
                                       "FusedBatchNormV3" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *graph = function(model, "f");
        struct tare_edge x = mini_node(graph, "Exp", "exp", 1, mini_arg(graph, "x", TARE_DT_FLOAT));
        const struct tare_edge ints = mini_ints(graph, "ints", 2, (int32_t[]){ 4, 4 }), s = mini_float(graph, "s", 2);
        struct tare_node *node = i < 2    ? mini_open(graph, ops[i], "op", 2, x, ints)
                                 : i == 2 ? mini_open(graph, ops[i], "op", 2, x, x)
                                 : i == 3 ? mini_open(graph, ops[i], "op", 3, x, ints, ints)
                                          : mini_open(graph, ops[i], "op", 5, x, s, s, s, s);
        (void)state;
        if (i == 4) mini_ok(tare_node_set_bool(node, "is_training", false));
        mini_return(graph, "y", mini_node(graph, "Relu", "relu", 1, mini_done(node)));
        convert(model, graph, &defaults);
        for (int attr = 0; attr < 4; attr++)
            if (tare_node_type(node, (const char *const[]){ "T", "U", "Ta", "Tb" }[attr], 0) == TARE_DT_BFLOAT16)
                fail_msg("%s is converted", ops[i]);
        assert_dtype(graph, "exp", TARE_DT_BFLOAT16);
        assert_dtype(graph, "relu", TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
}

/* Each as the only op between two that compute in bfloat16; TensorFlow refuses it in bfloat16 at the first request. */
static void ops_without_a_kernel_of_tensorflow__stay_float32(void **state) {
    static const struct {
        const char *op;
        int inputs;
    } ops[] = { { "Lgamma", 1 }, { "Digamma", 1 }, { "Diag", 1 }, { "Erfinv", 1 }, { "Ndtri", 1 }, { "Igamma", 2 } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *graph = function(model, "f");
        const struct tare_edge x = mini_node(graph, "Exp", "exp", 1, mini_arg(graph, "x", TARE_DT_FLOAT));
        const struct tare_edge y = mini_node(graph, ops[i].op, "op", ops[i].inputs, x, x);
        (void)state;
        mini_return(graph, "y", mini_node(graph, "Relu", "relu", 1, y));
        convert(model, graph, &defaults);
        if (tare_node_type(y.node, "T", 0) != TARE_DT_FLOAT) fail_msg("%s is converted", ops[i].op);
        assert_dtype(graph, "exp", TARE_DT_BFLOAT16);
        assert_dtype(graph, "relu", TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
}

/* Quantize, integer product, dequantize: float32 between the integers and the float tensors, bfloat16 outside. */
static void quantization_arithmetic__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT), y;
    (void)state;
    y = mini_node(graph, "Relu", "before", 1, x);
    y = mini_node(graph, "Div", "div", 2, y, mini_float(graph, "scale", 0.1f));
    y = mini_node(graph, "AddV2", "shift", 2, y, mini_float(graph, "zero", 3));
    y = mini_node(graph, "Round", "round", 1, y);
    y = cast(graph, "narrow", y, TARE_DT_INT8);
    y = cast(graph, "widen", y, TARE_DT_INT32);
    y = cast(graph, "back", y, TARE_DT_FLOAT);
    y = mini_node(graph, "Mul", "rescale", 2, y, mini_float(graph, "scale2", 0.01f));
    y = mini_node(graph, "Exp", "after", 1, y);
    mini_return(graph, "y", y);
    convert(model, graph, &defaults);
    assert_dtype(graph, "before", TARE_DT_BFLOAT16);
    assert_dtype(graph, "div", TARE_DT_FLOAT);
    assert_dtype(graph, "shift", TARE_DT_FLOAT);
    assert_dtype(graph, "round", TARE_DT_FLOAT);
    assert_dtype(graph, "back", TARE_DT_FLOAT);
    assert_dtype(graph, "rescale", TARE_DT_FLOAT);
    assert_dtype(graph, "scale2", TARE_DT_FLOAT);
    assert_dtype(graph, "after", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void integers_in_and_out__of_plain_code(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge bytes = mini_arg(graph, "bytes", TARE_DT_UINT8), x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    /* an image becomes bfloat16 at once; an index that is computed in float stays exact */
    mini_return(graph, "image", mini_node(graph, "Exp", "exp", 1, cast(graph, "image", bytes, TARE_DT_FLOAT)));
    x = mini_node(graph, "Mul", "mul", 2, x, mini_float(graph, "size", 1000));
    mini_return(graph, "index", cast(graph, "index", x, TARE_DT_INT32));
    convert(model, graph, &defaults);
    assert_dtype(graph, "image", TARE_DT_BFLOAT16);
    assert_dtype(graph, "mul", TARE_DT_FLOAT);
    assert_dtype(graph, "index", TARE_DT_INT32);
    tare_model_free(model);
}

static void an_inner_function__changes_its_signature(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = affine(model, "inner"), *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    x = mini_node(graph, "Exp", "exp", 1, x);
    x = mini_call(graph, "PartitionedCall", "call", inner, 1, x);
    mini_return(graph, "y", mini_node(graph, "Exp", "exp2", 1, x));
    convert(model, graph, &defaults);
    assert_int_equal(inner->args[0]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(inner->returns[0].dtype, TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(inner, "Cast"), 0);
    assert_int_equal(graph_count(graph, "Cast"), 2);
    tare_model_free(model);
}

static void an_inner_function_that_others_call__is_copied(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = affine(model, "inner"), *graph = function(model, "f"), *other = function(model, "other");
    (void)state;
    mini_return(graph, "y", mini_call(graph, "PartitionedCall", "call", inner, 1, mini_arg(graph, "x", TARE_DT_FLOAT)));
    mini_return(other, "y", mini_call(other, "PartitionedCall", "call", inner, 1, mini_arg(other, "x", TARE_DT_FLOAT)));
    convert(model, graph, &defaults);
    assert_string_equal(tare_node_function(graph_node(graph, "call"), "f")->name, "inner_bfloat16");
    assert_ptr_equal(tare_node_function(graph_node(other, "call"), "f"), inner);
    assert_dtype(inner, "mul", TARE_DT_FLOAT);
    assert_dtype(tare_model_find_function(model, "inner_bfloat16"), "mul", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* A loader that calls it by its alias gets float32; who calls it on the TPU gets its body in bfloat16, without casts.
 */
static void an_inner_function_with_an_alias__becomes_a_shell(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = affine(model, "inner"), *graph = function(model, "f"), *body;
    struct tare_alias alias = { "inner", "kept" };
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    model->aliases = &alias;
    model->n_aliases = 1;
    x = mini_node(graph, "Exp", "exp", 1, x);
    x = mini_call(graph, "PartitionedCall", "call", inner, 1, x);
    mini_return(graph, "y", mini_node(graph, "Exp", "exp2", 1, x));
    convert(model, graph, &defaults);
    body = tare_node_function(graph_node(graph, "call"), "f");
    assert_string_equal(body->name, "inner_bfloat16");
    assert_int_equal(body->args[0]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2); /* x in, y out */
    assert_int_equal(graph_count(body, "Cast"), 0);
    assert_int_equal(inner->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(inner->returns[0].dtype, TARE_DT_FLOAT);
    assert_ptr_equal(tare_node_function(graph_only(inner, "PartitionedCall"), "f"), body);
    assert_int_equal(graph_count(inner, "Cast"), 2);
    model->n_aliases = 0;
    tare_model_free(model);
}

/* A method of the object graph stays, though nothing calls it by its name any longer. */
static void an_inner_function_of_the_object_graph__is_not_removed(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = affine(model, "inner"), *graph = function(model, "f");
    struct tare_concrete concrete = { .graph = inner };
    struct tare_alias alias = { "f", "placed" };
    bool *live;
    (void)state;
    model->concretes = &concrete;
    model->n_concretes = model->n_aliases = 1;
    model->aliases = &alias;
    mini_return(graph, "y", mini_call(graph, "PartitionedCall", "call", inner, 1, mini_arg(graph, "x", TARE_DT_FLOAT)));
    convert(model, graph, &defaults);
    mini_ok(tare_model_reachable_functions(&live, &model->arena, model, true));
    tare_model_remove_functions(model, live);
    assert_ptr_equal(tare_model_find_function(model, "inner"), inner);
    assert_int_equal(inner->returns[0].dtype, TARE_DT_FLOAT);
    assert_int_equal(model->n_concretes, 1);
    model->n_concretes = model->n_aliases = 0;
    tare_model_free(model);
}

/* for (i = 0; i < 3; i++) x *= 2, in functions cond, body and f */
static void doubling_loop(struct tare_graph_model *model) {
    struct tare_graph *condition = function(model, "cond"), *body = function(model, "body"),
                      *graph = function(model, "f");
    struct tare_edge i, x;
    struct tare_node *loop;
    i = mini_arg(condition, "i", TARE_DT_INT32);
    mini_arg(condition, "x", TARE_DT_FLOAT);
    mini_return(condition, "go", mini_node(condition, "Less", "less", 2, i, mini_int(condition, "end", 3)));
    i = mini_arg(body, "i", TARE_DT_INT32);
    x = mini_arg(body, "x", TARE_DT_FLOAT);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "x", mini_node(body, "Mul", "mul", 2, x, mini_float(body, "two", 2)));
    x = mini_arg(graph, "x", TARE_DT_FLOAT);
    loop = mini_open(graph, "StatelessWhile", "loop", 2, mini_int(graph, "start", 0), x);
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_return(graph, "y", mini_output(mini_done(loop), 1));
}

static void a_loop__carries_bfloat16(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *condition, *body;
    struct tare_graph *graph;
    (void)state;
    doubling_loop(model);
    condition = tare_model_find_function(model, "cond");
    body = tare_model_find_function(model, "body");
    graph = tare_model_find_function(model, "f");
    convert(model, graph, &defaults);
    assert_int_equal(body->args[1]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(condition->args[1]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(condition->args[0]->output_dtypes[0], TARE_DT_INT32);
    assert_dtype(body, "mul", TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2);
    tare_model_free(model);
}

/* The body is placed on the TPU and keeps its dtypes: the condition, which gets the same values, keeps them too. */
static void a_loop_around_a_chosen_function__carries_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *chosen[2];
    const struct tare_graph *condition;
    size_t changes = 0;
    (void)state;
    doubling_loop(model);
    condition = tare_model_find_function(model, "cond");
    chosen[0] = tare_model_find_function(model, "body");
    chosen[1] = tare_model_find_function(model, "f");
    mini_ok(tare_tpu_bfloat16(model, chosen, 2, &defaults, &changes));
    graph_check_dtypes(model);
    assert_int_equal(condition->args[1]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(chosen[0]->args[1]->output_dtypes[0], TARE_DT_FLOAT);
    assert_dtype(chosen[0], "mul", TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(chosen[1], "Cast"), 0);
    tare_model_free(model);
}

static void bfloat16_in_the_input__is_refused_unless_asked_for(void **state) {
    struct tare_bfloat16_options options = { .rounds_magnitudes = true, .skip_safety_checks = true };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    size_t changes = 0;
    (void)state;
    x = mini_node(graph, "Exp", "exp", 1, cast(graph, "down", x, TARE_DT_BFLOAT16));
    x = mini_node(graph, "Relu", "relu", 1, cast(graph, "up", x, TARE_DT_FLOAT));
    mini_return(graph, "y", x);
    mini_fails(tare_tpu_bfloat16(model, &graph, 1, &defaults, &changes),
               "function f: node 'exp' (Exp) is bfloat16 already");
    convert(model, graph, &options);
    assert_dtype(graph, "relu", TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2); /* the pair in the middle is gone */
    tare_model_free(model);
}

/* A cast to bfloat16 between ops of the filterlist, which stay float32, is one that the model's author wants. */
static void casts_that_round__stay(void **state) {
    static const char *const names[] = { "Exp" };
    const struct tare_bfloat16_options options = {
        .rounds_magnitudes = true, .skip_safety_checks = true, .float_ops = names, .n_float_ops = 1
    };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_node(graph, "Exp", "first", 1, mini_arg(graph, "x", TARE_DT_FLOAT));
    (void)state;
    x = cast(graph, "up", cast(graph, "down", x, TARE_DT_BFLOAT16), TARE_DT_FLOAT);
    mini_return(graph, "y", mini_node(graph, "Exp", "second", 1, x));
    convert(model, graph, &options);
    assert_int_equal(graph_count(graph, "Cast"), 2);
    assert_dtype(graph, "second", TARE_DT_FLOAT);
    assert_int_equal(tare_edge_dtype(graph_node(graph, "second")->inputs[0].node->inputs[0]), TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* Casts alone are no computation in bfloat16. */
static void casts_to_bfloat16_and_back__are_no_bfloat16_model(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    x = cast(graph, "up", cast(graph, "down", x, TARE_DT_BFLOAT16), TARE_DT_FLOAT);
    mini_return(graph, "y", mini_node(graph, "Exp", "exp", 1, x));
    convert(model, graph, &defaults);
    assert_dtype(graph, "exp", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void the_main_graph__keeps_signature_dtypes(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_binding in = { .key = "x", .dtype = TARE_DT_FLOAT }, out = { .key = "y", .dtype = TARE_DT_FLOAT };
    struct tare_signature signature = {
        .key = "serving_default", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1
    };
    struct tare_session *session;
    (void)state;
    in.edge = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    out.edge = mini_node(model->main, "Mul", "mul", 2, in.edge, mini_float(model->main, "third", 1.0f / 3));
    model->signatures = &signature;
    model->n_signatures = 1;
    convert(model, model->main, &defaults);
    assert_dtype(model->main, "mul", TARE_DT_BFLOAT16);
    assert_string_equal(out.edge.node->op, "Cast");
    assert_int_equal(tare_edge_dtype(in.edge), TARE_DT_FLOAT);
    session = mini_session(model);
    assert_float_equal((float)mini_number(session, in.edge, 3, out.edge), 1.0, 0.01);
    tare_session_free(session);
    model->n_signatures = 0;
    tare_model_free(model);
}

/* Both inner functions run on the CPU as well, and one calls the other: the CPU's stay float32, in either order. */
static void shared_functions_that_call_each_other__both_get_copies(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *top = tare_model_add_function(model, "top"), *inner = tare_model_add_function(model, "inner");
    struct tare_graph *middle = tare_model_add_function(model, "middle");
    struct tare_edge x = mini_arg(inner, "x", TARE_DT_FLOAT), y;
    (void)state;
    mini_return(inner, "y", mini_node(inner, "Mul", "mul", 2, x, x));
    x = mini_arg(middle, "x", TARE_DT_FLOAT);
    mini_return(middle, "y", mini_call(middle, "PartitionedCall", "down", inner, 1, x));
    x = mini_arg(top, "x", TARE_DT_FLOAT);
    y = mini_call(top, "PartitionedCall", "first", inner, 1, x);
    mini_return(top, "y", mini_call(top, "PartitionedCall", "second", middle, 1, y));
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    mini_call(model->main, "PartitionedCall", "cpu_middle", middle, 1, x);
    mini_call(model->main, "PartitionedCall", "cpu_inner", inner, 1, x);
    convert(model, top, &defaults);
    assert_ptr_equal(tare_node_function(graph_node(middle, "down"), "f"), inner);
    assert_int_equal(inner->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    graph_check_dtypes(model);
    tare_model_free(model);
}

/* Moves before and after the arithmetic follow it, in a time that grows with the length: each node is visited again
 * only when a neighbour changes. */
static void long_chains_of_moves__follow_the_arithmetic_between_them(void **state) {
    enum { MOVES = 20000 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    for (int i = 0; i < MOVES; i++)
        x = mini_node(graph, "Identity", "before", 1, x);
    x = mini_node(graph, "Mul", "mul", 2, x, mini_float(graph, "three", 3));
    for (int i = 0; i < MOVES; i++)
        x = mini_node(graph, "Identity", "after", 1, x);
    mini_return(graph, "y", x);
    convert(model, graph, &defaults);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (tare_node_is(graph->nodes[i], "Identity"))
            assert_int_equal(graph->nodes[i]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(graph_count(graph, "Cast"), 2);
    tare_model_free(model);
}

/* A move with one user in float32 stays float32, also when the other user becomes bfloat16. */
static void a_move_with_a_float_user__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = function(model, "f");
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    x = mini_node(graph, "Identity", "shared", 1, x);
    mini_return(graph, "moved", mini_node(graph, "Identity", "moved", 1, x));
    x = mini_node(graph, "Identity", "alone", 1, x);
    mini_return(graph, "y", mini_node(graph, "Mul", "mul", 2, x, mini_float(graph, "three", 3)));
    convert(model, graph, &defaults);
    assert_dtype(graph, "shared", TARE_DT_FLOAT);
    assert_dtype(graph, "moved", TARE_DT_FLOAT);
    assert_dtype(graph, "alone", TARE_DT_BFLOAT16);
    assert_dtype(graph, "mul", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_chains_of_moves__follow_the_arithmetic_between_them),
        cmocka_unit_test(a_move_with_a_float_user__stays_float32),
        cmocka_unit_test(arithmetic__is_bfloat16_with_casts_at_the_boundary_only),
        cmocka_unit_test(lists__have_the_dtype_of_their_elements),
        cmocka_unit_test(constants__round_to_nearest_even_and_stay_finite),
        cmocka_unit_test(variables__are_cast_after_their_read),
        cmocka_unit_test(an_argument_that_is_only_moved__stays_exact),
        cmocka_unit_test(moves_between_products__are_bfloat16),
        cmocka_unit_test(an_op_without_bfloat16__is_cast_around),
        cmocka_unit_test(random_numbers__are_those_of_float32),
        cmocka_unit_test(the_filterlist__keeps_ops_in_float32),
        cmocka_unit_test(ops_of_the_public_list__stay_float32),
        cmocka_unit_test(ops_without_a_kernel_of_tensorflow__stay_float32),
        cmocka_unit_test(quantization_arithmetic__stays_float32),
        cmocka_unit_test(integers_in_and_out__of_plain_code),
        cmocka_unit_test(an_inner_function__changes_its_signature),
        cmocka_unit_test(an_inner_function_that_others_call__is_copied),
        cmocka_unit_test(an_inner_function_with_an_alias__becomes_a_shell),
        cmocka_unit_test(an_inner_function_of_the_object_graph__is_not_removed),
        cmocka_unit_test(a_loop__carries_bfloat16),
        cmocka_unit_test(a_loop_around_a_chosen_function__carries_float32),
        cmocka_unit_test(bfloat16_in_the_input__is_refused_unless_asked_for),
        cmocka_unit_test(casts_that_round__stay),
        cmocka_unit_test(casts_to_bfloat16_and_back__are_no_bfloat16_model),
        cmocka_unit_test(the_main_graph__keeps_signature_dtypes),
        cmocka_unit_test(shared_functions_that_call_each_other__both_get_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
