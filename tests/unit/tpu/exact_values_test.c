/* Which float values stay float32 because they become integers, are compared with integers, are ordered, or are final
 * probabilities; followed through arithmetic, calls, branches and loops. */
#include "interpreter/session.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <string.h>

static struct tare_bf16_kept_list kept;

static void convert_with(struct tare_graph_model *model, struct tare_graph *graph, bool rounds_outputs) {
    size_t changes = 0;
    kept = (struct tare_bf16_kept_list){ .arena = &model->arena };
    const struct tare_bfloat16_options options = { .rounds_outputs = rounds_outputs,
                                                   .rounds_magnitudes = true,
                                                   .kept = &kept };
    mini_ok(tare_tpu_bfloat16(model, &graph, 1, &options, &changes));
    graph_check_dtypes(model);
}

static void convert(struct tare_graph_model *model, struct tare_graph *graph) {
    convert_with(model, graph, false);
}

static const char *reason_of(const char *node) {
    for (size_t i = 0; i < kept.count; i++)
        if (strcmp(kept.items[i].node, node) == 0) return kept.items[i].reason;
    return "";
}

static void assert_dtype(const struct tare_graph *graph, const char *name, int dtype) {
    const struct tare_edge edge = { graph_node(graph, name), 0 };
    if (tare_edge_dtype(edge) != dtype)
        fail_msg("%s is %s (expected %s)", name, tare_dtype_name(tare_edge_dtype(edge)), tare_dtype_name(dtype));
}

static struct tare_edge cast(struct tare_graph *graph, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(graph, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    mini_ok(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    return mini_done(node);
}

/* table[cast(inner(ids))], with inner(x) = max(x, 0) + 1 as a function of its own: a text model with float ids. */
static struct tare_graph *text_model(struct tare_graph_model *model) {
    struct tare_graph *inner = tare_model_add_function(model, "inner"), *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(inner, "x", TARE_DT_FLOAT), ids, y;
    struct tare_shape shape = tare_shape_make(1, 4096);
    struct tare_tensor table;
    struct tare_node *gather;
    mini_return(inner, "y",
                mini_node(inner, "AddV2", "add", 2,
                          mini_node(inner, "Maximum", "clip", 2, x, mini_float(inner, "zero", 0)),
                          mini_float(inner, "one", 1)));
    ids = cast(f, "ids", mini_call(f, "PartitionedCall", "call", inner, 1, mini_arg(f, "x", TARE_DT_FLOAT)),
               TARE_DT_INT32);
    mini_ok(tare_tensor_new(&table, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < 4096; i++)
        TARE_DATA(float, &table)[i] = (float)(i % 128); /* exact in bfloat16 */
    gather = mini_open(f, "GatherV2", "gather", 3, (struct tare_edge){ tare_graph_add_const(f, "table", &table), 0 },
                       ids, mini_int(f, "axis", 0));
    tare_tensor_reset(&table);
    mini_ok(tare_node_set_type(gather, "Tparams", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(gather, "Tindices", TARE_DT_INT32));
    mini_ok(tare_node_set_type(gather, "Taxis", TARE_DT_INT32));
    y = mini_node(f, "Mul", "mul", 2, mini_done(gather), mini_float(f, "two", 2));
    mini_return(f, "y", y);
    return f;
}

static void identifiers_that_arrive_as_floats__read_the_right_row(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = text_model(model), *inner;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "serve", f, 1, x);
    struct tare_session *session;
    (void)state;
    convert(model, f);
    inner = tare_node_function(graph_node(f, "call"), "f");
    assert_int_equal(inner->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(inner->returns[0].dtype, TARE_DT_FLOAT);
    assert_dtype(inner, "add", TARE_DT_FLOAT);
    assert_dtype(f, "mul", TARE_DT_BFLOAT16); /* what was read may be rounded */
    assert_string_equal(reason_of("x"), "becomes an integer (Cast 'ids' in f)");
    session = mini_session(model);
    assert_true(mini_number(session, x, 1000, y) == 2.0 * (1001 % 128)); /* 1001 is 1000 in bfloat16 */
    tare_session_free(session);
    tare_model_free(model);
}

/* for i in 3: x += step, with x as index afterwards: argument, return and output of the loop stay float32; the other
 * loop variable does not. */
static void a_loop_variable_that_becomes_an_index__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"),
                      *condition = tare_model_add_function(model, "condition"),
                      *body = tare_model_add_function(model, "body");
    struct tare_edge in[3], loop;
    struct tare_node *node;
    (void)state;
    for (int g = 0; g < 2; g++) {
        struct tare_graph *graph = g ? body : condition;
        in[0] = mini_arg(graph, "i", TARE_DT_INT32);
        in[1] = mini_arg(graph, "position", TARE_DT_FLOAT);
        in[2] = mini_arg(graph, "state", TARE_DT_FLOAT);
        if (g) break;
        mini_return(graph, "go", mini_node(graph, "Less", "less", 2, in[0], mini_int(graph, "three", 3)));
    }
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, in[0], mini_int(body, "one", 1)));
    mini_return(body, "position", mini_node(body, "AddV2", "step", 2, in[1], mini_float(body, "width", 257)));
    mini_return(body, "state", mini_node(body, "Tanh", "tanh", 1, in[2]));
    node = mini_open(f, "StatelessWhile", "loop", 3, mini_int(f, "start", 0), mini_arg(f, "position", TARE_DT_FLOAT),
                     mini_arg(f, "state", TARE_DT_FLOAT));
    mini_ok(tare_node_set_func(node, "cond", "condition"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    mini_ok(tare_node_set_type_list(node, "T", (int[]){ TARE_DT_INT32, TARE_DT_FLOAT, TARE_DT_FLOAT }, 3));
    loop = mini_done(node);
    mini_return(f, "index", cast(f, "index", mini_output(loop, 1), TARE_DT_INT64));
    mini_return(f, "state", mini_output(loop, 2));
    mini_call(model->main, "PartitionedCall", "serve", f, 2, mini_placeholder(model->main, "p", TARE_DT_FLOAT),
              mini_placeholder(model->main, "s", TARE_DT_FLOAT));
    convert(model, f);
    assert_int_equal(body->args[1]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(condition->args[1]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(body->returns[1].dtype, TARE_DT_FLOAT);
    assert_dtype(body, "step", TARE_DT_FLOAT);
    assert_int_equal(body->args[2]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_dtype(body, "tanh", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

static void both_branches__keep_what_one_turns_into_an_index(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *yes = tare_model_add_function(model, "yes"),
                      *no = tare_model_add_function(model, "no");
    struct tare_node *node;
    struct tare_edge x;
    (void)state;
    mini_return(yes, "y",
                cast(yes, "index", mini_node(yes, "Neg", "neg", 1, mini_arg(yes, "x", TARE_DT_FLOAT)), TARE_DT_INT32));
    x = mini_arg(no, "x", TARE_DT_FLOAT);
    mini_return(no, "y", mini_int(no, "seven", 7));
    x = mini_node(f, "Mul", "scaled", 2, mini_arg(f, "x", TARE_DT_FLOAT), mini_float(f, "size", 1000));
    node = mini_open(f, "StatelessIf", "if", 2, mini_bool(f, "which", true), x);
    mini_ok(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
    mini_ok(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_INT32 }, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "yes"));
    mini_ok(tare_node_set_func(node, "else_branch", "no"));
    mini_return(f, "y", mini_done(node));
    mini_call(model->main, "PartitionedCall", "serve", f, 1, mini_placeholder(model->main, "x", TARE_DT_FLOAT));
    convert(model, f);
    assert_int_equal(yes->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(no->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_dtype(f, "scaled", TARE_DT_FLOAT);
    tare_model_free(model);
}

static void comparisons_with_integers__take_inputs_exactly(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), y = mini_arg(f, "y", TARE_DT_FLOAT), product;
    (void)state;
    mini_return(f, "known",
                mini_node(f, "Equal", "equal", 2, mini_node(f, "Abs", "abs", 1, x), mini_float(f, "id", 300)));
    mini_return(f, "positive",
                mini_node(f, "Greater", "sign", 2, mini_node(f, "Neg", "neg", 1, y),
                          mini_float(f, "zero", 0))); /* rounding keeps the sign */
    product = mini_node(f, "MatMul", "product", 2, mini_arg(f, "a", TARE_DT_FLOAT), mini_arg(f, "b", TARE_DT_FLOAT));
    mini_return(f, "above", mini_node(f, "Less", "threshold", 2, product, mini_float(f, "three", 3)));
    convert(model, f);
    assert_dtype(f, "abs", TARE_DT_FLOAT);
    assert_dtype(f, "neg", TARE_DT_BFLOAT16);
    assert_dtype(f, "product", TARE_DT_BFLOAT16); /* a threshold of activations */
    assert_string_equal(reason_of("abs"), "is compared with integers (Equal 'equal' in f)");
    tare_model_free(model);
}

static void comparisons_with_rounded_values__take_inputs_exactly(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), arg = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y;
    struct tare_session *session;
    (void)state;
    mini_return(
        f, "whole",
        cast(f, "number", mini_node(f, "Equal", "equal", 2, mini_node(f, "Floor", "floor", 1, x), x), TARE_DT_FLOAT));
    y = mini_call(model->main, "PartitionedCall", "serve", f, 1, arg);
    convert(model, f);
    assert_string_equal(reason_of("x"), "is compared with integers (Equal 'equal' in f)");
    session = mini_session(model);
    assert_true(mini_number(session, arg, 300.5, y) == 0); /* 300.5 is 300 in bfloat16 */
    assert_true(mini_number(session, arg, 300, y) == 1);
    tare_session_free(session);
    tare_model_free(model);
}

static void remainders_of_inputs__are_exact(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), arg = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y;
    struct tare_session *session;
    (void)state;
    mini_return(f, "hour", mini_node(f, "FloorMod", "hour", 2, x, mini_float(f, "day", 24)));
    y = mini_call(model->main, "PartitionedCall", "serve", f, 1, arg);
    convert(model, f);
    assert_string_equal(reason_of("hour"), "is divided to a quotient or remainder (FloorMod 'hour' in f)");
    session = mini_session(model);
    assert_true(mini_number(session, arg, 1001, y) == 17); /* 1001 is 1000 in bfloat16 */
    tare_session_free(session);
    tare_model_free(model);
}

static void remainders_of_activations__are_rounded(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge product;
    (void)state;
    product = mini_node(f, "MatMul", "product", 2, mini_arg(f, "a", TARE_DT_FLOAT), mini_arg(f, "b", TARE_DT_FLOAT));
    mini_return(f, "phase", mini_node(f, "FloorMod", "phase", 2, product, mini_float(f, "turn", 6.25f)));
    convert(model, f);
    assert_dtype(f, "phase", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* The function on the CPU makes bins of what the converted one returns. */
static void results_that_the_cpu_makes_integers_of__stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *cpu = tare_model_add_function(model, "cpu");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), call;
    struct tare_node *bins;
    (void)state;
    mini_return(f, "binned", mini_node(f, "Mul", "scaled", 2, x, mini_float(f, "third", 1.0f / 3)));
    mini_return(f, "free", mini_node(f, "Tanh", "tanh", 1, x));
    call = mini_call(cpu, "PartitionedCall", "call", f, 1, mini_arg(cpu, "x", TARE_DT_FLOAT));
    bins = mini_open(cpu, "Bucketize", "bins", 1, call);
    mini_ok(tare_node_set_type(bins, "T", TARE_DT_FLOAT));
    static union tare_attr_item boundary = { .f = 0.5f };
    bins->attrs = TARE_NEW_ARRAY(&model->arena, struct tare_attr, 4);
    bins->attrs[0] = (struct tare_attr){
        .name = "T", .kind = TARE_ATTR_TYPE, .count = 1, .items = TARE_NEW(&model->arena, union tare_attr_item)
    };
    bins->attrs[0].items[0].type = TARE_DT_FLOAT;
    bins->attrs[1] = (struct tare_attr){
        .name = "boundaries", .kind = TARE_ATTR_FLOAT, .is_list = true, .count = 1, .items = &boundary
    };
    bins->n_attrs = 2;
    bins->attrs_capacity = 4;
    mini_return(cpu, "bin", mini_done(bins));
    mini_return(cpu, "free", mini_output(call, 1));
    convert(model, f);
    assert_dtype(f, "scaled", TARE_DT_FLOAT);
    assert_dtype(f, "tanh", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* inner(x) = softmax(x w + b); f returns it as it is. Its first layer is free. */
static void final_probabilities_and_their_logits__stay_float32(void **state) {
    (void)state;
    for (int rounds = 0; rounds < 2; rounds++) {
        const int last = rounds ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT;
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *inner = tare_model_add_function(model, "inner"), *f = tare_model_add_function(model, "f");
        struct tare_edge w = mini_arg(inner, "w", TARE_DT_FLOAT), y = mini_arg(inner, "x", TARE_DT_FLOAT);
        y = mini_node(inner, "Tanh", "hidden", 1, mini_node(inner, "MatMul", "first", 2, y, w));
        y = mini_node(inner, "BiasAdd", "bias", 2, mini_node(inner, "MatMul", "second", 2, y, w),
                      mini_arg(inner, "b", TARE_DT_FLOAT));
        mini_return(inner, "y", mini_node(inner, "Softmax", "softmax", 1, y));
        y = mini_call(f, "PartitionedCall", "call", inner, 3, mini_arg(f, "w", TARE_DT_FLOAT),
                      mini_arg(f, "x", TARE_DT_FLOAT), mini_arg(f, "b", TARE_DT_FLOAT));
        mini_return(f, "y", mini_node(f, "Identity", "identity", 1, y));
        mini_call(model->main, "PartitionedCall", "serve", f, 3, mini_placeholder(model->main, "w", TARE_DT_FLOAT),
                  mini_placeholder(model->main, "x", TARE_DT_FLOAT), mini_placeholder(model->main, "b", TARE_DT_FLOAT));
        convert_with(model, f, rounds);
        assert_dtype(inner, "softmax", last);
        assert_dtype(inner, "bias", last);
        assert_dtype(inner, "second", last);
        assert_int_equal(inner->returns[0].dtype, last);
        assert_dtype(inner, "first", TARE_DT_BFLOAT16);
        assert_dtype(inner, "hidden", TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
}

static void a_softmax_inside__is_rounded(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    (void)state;
    mini_return(f, "y", mini_node(f, "MatMul", "mixed", 2, mini_node(f, "Softmax", "attention", 1, x), x));
    convert(model, f);
    assert_dtype(f, "attention", TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* product -> bias -> relu -> product: all bfloat16. x · sigmoid(x) of a product: the sigmoid and the product of both,
 * between which nothing is stored, are float32; what both read is bfloat16. */
static void values_that_pass_from_one_op_to_another__stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), y;
    const struct tare_bfloat16_options analysis = { .kept = &kept };
    size_t changes = 0;
    (void)state;
    y = mini_node(f, "MatMul", "first", 2, x, mini_float(f, "w", 0.5F));
    y = mini_node(f, "BiasAdd", "bias", 2, y,
                  mini_node(f, "Reshape", "vector", 2, x, mini_ints(f, "s", 1, (int32_t[]){ -1 })));
    y = mini_node(f, "Relu", "relu", 1, y);
    y = mini_node(f, "MatMul", "second", 2, y, x);
    y = mini_node(f, "Mul", "swish", 2, y, mini_node(f, "Sigmoid", "gate", 1, y));
    y = mini_node(f, "MatMul", "third", 2, y, x);
    mini_return(f, "y", mini_node(f, "MatMul", "last", 2, mini_node(f, "Relu", "alone", 1, y), x));
    kept = (struct tare_bf16_kept_list){ .arena = &model->arena };
    mini_ok(tare_tpu_bfloat16(model, &f, 1, &analysis, &changes));
    graph_check_dtypes(model);
    for (int i = 0; i < 7; i++) {
        static const char *const rounded[] = { "first", "bias", "relu", "second", "third", "alone", "last" };
        assert_dtype(f, rounded[i], TARE_DT_BFLOAT16);
    }
    assert_dtype(f, "gate", TARE_DT_FLOAT);
    assert_dtype(f, "swish", TARE_DT_FLOAT);
    assert_string_equal(reason_of("gate"), "is read by one op only (Mul 'swish' in f)");
    tare_model_free(model);
}

/* The bias before a swish: its two readers are float32. Before an activation that one product reads, it is not. */
static void arithmetic_before_float32__stays_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), w = mini_float(f, "w", 0.5F), vector, y;
    const struct tare_bfloat16_options analysis = { .kept = &kept };
    size_t changes = 0;
    (void)state;
    vector = mini_node(f, "Reshape", "vector", 2, x, mini_ints(f, "s", 1, (int32_t[]){ -1 }));
    y = mini_node(f, "BiasAdd", "bias", 2, mini_node(f, "MatMul", "first", 2, x, w), vector);
    y = mini_node(f, "Mul", "swish", 2, y, mini_node(f, "Sigmoid", "gate", 1, y));
    y = mini_node(f, "BiasAdd", "other", 2, mini_node(f, "MatMul", "second", 2, y, x), vector);
    y = mini_node(f, "MatMul", "third", 2, mini_node(f, "Relu", "relu", 1, y), x);
    mini_return(f, "y", mini_node(f, "MatMul", "last", 2, y, x));
    kept = (struct tare_bf16_kept_list){ .arena = &model->arena };
    mini_ok(tare_tpu_bfloat16(model, &f, 1, &analysis, &changes));
    graph_check_dtypes(model);
    for (int i = 0; i < 5; i++) {
        static const char *const rounded[] = { "first", "second", "other", "relu", "third" };
        assert_dtype(f, rounded[i], TARE_DT_BFLOAT16);
    }
    assert_dtype(f, "bias", TARE_DT_FLOAT);
    assert_string_equal(reason_of("bias"), "is read by one op only (Mul 'swish' in f)");
    tare_model_free(model);
}

/* A layer that is a function: s + g(s) · w of a residual sum s. Neither s nor the new sum is rounded where it passes
 * from one function to the other; what a product alone reads is. */
static void float32_between_functions__is_not_rounded(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *g = tare_model_add_function(model, "g");
    struct tare_edge w = mini_float(g, "w", 0.5F), s = mini_arg(g, "s", TARE_DT_FLOAT),
                     t = mini_arg(g, "t", TARE_DT_FLOAT), x, y;
    const struct tare_bfloat16_options analysis = { 0 };
    size_t changes = 0;
    (void)state;
    y = mini_node(g, "MatMul", "inside", 2, mini_node(g, "MatMul", "of_t", 2, t, w), w);
    mini_return(g, "sum", mini_node(g, "AddV2", "sum", 2, s, y));
    mini_return(g, "product", y);
    x = mini_arg(f, "x", TARE_DT_FLOAT);
    x = mini_node(f, "AddV2", "first", 2, mini_node(f, "MatMul", "a", 2, x, x), mini_node(f, "MatMul", "b", 2, x, x));
    y = mini_call(f, "PartitionedCall", "call", g, 2, x, x);
    y = mini_node(f, "AddV2", "second", 2, y, mini_node(f, "MatMul", "c", 2, mini_output(y, 1), x));
    mini_return(f, "y", mini_node(f, "MatMul", "last", 2, y, x));
    mini_ok(tare_tpu_bfloat16(model, &f, 1, &analysis, &changes));
    graph_check_dtypes(model);
    g = model->functions[1];
    assert_int_equal(g->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(g->args[1]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(g->returns[0].dtype, TARE_DT_FLOAT);
    assert_int_equal(g->returns[1].dtype, TARE_DT_BFLOAT16);
    tare_model_free(model);
}

/* x + relu(x · w) · w, which others read: the sum is float32, the products are not; a bias is not a residual. */
static void sums_of_residual_networks__stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge w = mini_float(f, "w", 0.5F), x, y;
    const struct tare_bfloat16_options analysis = { .kept = &kept };
    size_t changes = 0;
    (void)state;
    x = mini_node(f, "MatMul", "embed", 2, mini_arg(f, "x", TARE_DT_FLOAT), w);
    y = mini_node(f, "MatMul", "up", 2, x, w);
    y = mini_node(f, "AddV2", "bias", 2, y, mini_float(f, "b", 0.5F));
    y = mini_node(f, "MatMul", "down", 2, mini_node(f, "Relu", "relu", 1, y), w);
    y = mini_node(f, "AddV2", "sum", 2, x, y);
    x = mini_node(f, "MatMul", "next", 2, y, w);
    mini_return(f, "y", mini_node(f, "MatMul", "last", 2, mini_node(f, "Mul", "gate", 2, x, y), w));
    kept = (struct tare_bf16_kept_list){ .arena = &model->arena };
    mini_ok(tare_tpu_bfloat16(model, &f, 1, &analysis, &changes));
    graph_check_dtypes(model);
    for (int i = 0; i < 5; i++) {
        static const char *const rounded[] = { "embed", "up", "bias", "down", "next" };
        assert_dtype(f, rounded[i], TARE_DT_BFLOAT16);
    }
    assert_dtype(f, "sum", TARE_DT_FLOAT);
    assert_string_equal(reason_of("sum"), "is a residual sum (AddV2 'sum' in f)");
    tare_model_free(model);
}

/* A probability of 0.5004 is above 0.5. What is compared with zero keeps its sign. */
static void comparisons_of_results__read_them_unrounded(void **state) {
    const struct tare_bfloat16_options analysis = { 0 };
    (void)state;
    for (int form = 0; form < 2; form++) {
        size_t changes = 0;
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *f = tare_model_add_function(model, "f");
        struct tare_edge x = mini_node(f, "MatMul", "first", 2, mini_arg(f, "x", TARE_DT_FLOAT), mini_float(f, "w", 2)),
                         hit;
        x = mini_node(f, "Sigmoid", "score", 1, mini_node(f, "MatMul", "layer", 2, x, mini_float(f, "v", 2)));
        hit = mini_node(f, "Greater", "hit", 2, x, mini_float(f, "threshold", form ? 0 : 0.5F));
        mini_return(f, "y",
                    mini_node(f, "MatMul", "last", 2, cast(f, "mask", hit, TARE_DT_FLOAT), mini_float(f, "u", 2)));
        mini_ok(tare_tpu_bfloat16(model, &f, 1, &analysis, &changes));
        graph_check_dtypes(model);
        assert_dtype(f, "score", form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_int_equal(tare_edge_dtype(graph_node(f, "hit")->inputs[0]), form ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        assert_int_equal(tare_edge_dtype(graph_node(f, "layer")->inputs[0]), TARE_DT_BFLOAT16);
        tare_model_free(model);
    }
}

/* One layer alone: its inputs are unrounded as well, also where the function is called. */
static void operands_of_inputs__are_unrounded_where_the_product_is(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *outer = tare_model_add_function(model, "outer"), *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    (void)state;
    x = mini_node(f, "MatMul", "logits", 2, x, mini_float(f, "w", 0.5F));
    mini_return(f, "p", mini_node(f, "Sigmoid", "p", 1, x));
    mini_return(outer, "p",
                mini_call(outer, "StatefulPartitionedCall", "call", f, 1, mini_arg(outer, "x", TARE_DT_FLOAT)));
    convert(model, outer);
    assert_int_equal(tare_edge_dtype((struct tare_edge){ model->functions[1]->args[0], 0 }), TARE_DT_FLOAT);
    tare_model_free(model);
}

static void logits_that_are_ordered__stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_node *arg;
    (void)state;
    x = mini_node(f, "MatMul", "layer", 2, x, mini_float(f, "w", 0.5F));
    x = mini_node(f, "MatMul", "logits", 2, mini_node(f, "Tanh", "hidden", 1, x), mini_float(f, "v", 0.5F));
    arg = mini_open(f, "ArgMax", "class", 2, x, mini_int(f, "axis", 1));
    mini_ok(tare_node_set_type(arg, "T", TARE_DT_FLOAT));
    mini_return(f, "class", mini_done(arg));
    convert(model, f);
    assert_dtype(f, "logits", TARE_DT_FLOAT);
    assert_dtype(f, "hidden", TARE_DT_BFLOAT16);
    assert_string_equal(reason_of("logits"), "is ordered by value (ArgMax 'class' in f)");
    tare_model_free(model);
}

/* Whether a larger value comes first, as JAX sorts rows together with their positions. */
static const struct tare_graph *comparator(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "larger");
    const struct tare_edge a = mini_arg(f, "a", TARE_DT_FLOAT), b = mini_arg(f, "b", TARE_DT_FLOAT);
    mini_arg(f, "i", TARE_DT_INT32);
    mini_arg(f, "j", TARE_DT_INT32);
    mini_return(f, "first", mini_node(f, "Greater", "greater", 2, a, b));
    return f;
}

/* The probabilities of experts, ordered by an op that calls a function: the logits decide. */
static void logits_of_probabilities_that_a_function_orders__stay_float32(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *larger = comparator(model);
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_node *sort;
    (void)state;
    x = mini_node(f, "MatMul", "logits", 2, x, mini_float(f, "w", 0.5F));
    x = mini_node(f, "Softmax", "experts", 1, x);
    sort =
        mini_open(f, "XlaVariadicSort", "sort", 3, x, mini_arg(f, "positions", TARE_DT_INT32), mini_int(f, "axis", 1));
    mini_ok(tare_node_set_func(sort, "comparator", larger->name));
    mini_ok(tare_node_set_bool(sort, "is_stable", true));
    mini_ok(tare_node_set_type_list(sort, "T", (int[]){ TARE_DT_FLOAT, TARE_DT_INT32 }, 2));
    mini_return(f, "order", mini_output(mini_done(sort), 1));
    convert(model, f);
    assert_dtype(f, "experts", TARE_DT_FLOAT);
    assert_dtype(f, "logits", TARE_DT_FLOAT);
    assert_string_equal(reason_of("logits"), "is ordered by value (XlaVariadicSort 'sort' in f)");
    tare_model_free(model);
}

/* The largest value of each row and its position, as JAX's argmax reduces both. */
static void a_reduction_to_a_position__orders_values(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *larger = tare_model_add_function(model, "larger"), *f = tare_model_add_function(model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_node *best;
    (void)state;
    for (int i = 0; i < 4; i++)
        mini_arg(larger, (const char *const[]){ "a", "i", "b", "j" }[i], i % 2 ? TARE_DT_INT32 : TARE_DT_FLOAT);
    mini_return(larger, "value", (struct tare_edge){ larger->args[0], 0 });
    mini_return(larger, "position", (struct tare_edge){ larger->args[1], 0 });
    x = mini_node(f, "MatMul", "logits", 2, x, mini_float(f, "w", 0.5F));
    best = mini_open(f, "XlaVariadicReduceV2", "best", 4, x, mini_arg(f, "positions", TARE_DT_INT32),
                     mini_float(f, "low", -1e30F), mini_int(f, "none", 0));
    mini_ok(tare_node_set_func(best, "reducer", larger->name));
    mini_ok(tare_node_set_type_list(best, "T", (int[]){ TARE_DT_FLOAT, TARE_DT_INT32 }, 2));
    mini_ok(tare_node_set_int_list(best, "dimensions_to_reduce", (int64_t[]){ 1 }, 1));
    mini_return(f, "position", mini_output(mini_done(best), 1));
    convert(model, f);
    assert_dtype(f, "logits", TARE_DT_FLOAT);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_of_probabilities_that_a_function_orders__stay_float32),
        cmocka_unit_test(a_reduction_to_a_position__orders_values),
        cmocka_unit_test(identifiers_that_arrive_as_floats__read_the_right_row),
        cmocka_unit_test(a_loop_variable_that_becomes_an_index__stays_float32),
        cmocka_unit_test(both_branches__keep_what_one_turns_into_an_index),
        cmocka_unit_test(comparisons_with_integers__take_inputs_exactly),
        cmocka_unit_test(comparisons_with_rounded_values__take_inputs_exactly),
        cmocka_unit_test(remainders_of_inputs__are_exact),
        cmocka_unit_test(remainders_of_activations__are_rounded),
        cmocka_unit_test(results_that_the_cpu_makes_integers_of__stay_float32),
        cmocka_unit_test(final_probabilities_and_their_logits__stay_float32),
        cmocka_unit_test(a_softmax_inside__is_rounded),
        cmocka_unit_test(values_that_pass_from_one_op_to_another__stay_float32),
        cmocka_unit_test(arithmetic_before_float32__stays_float32),
        cmocka_unit_test(float32_between_functions__is_not_rounded),
        cmocka_unit_test(sums_of_residual_networks__stay_float32),
        cmocka_unit_test(comparisons_of_results__read_them_unrounded),
        cmocka_unit_test(operands_of_inputs__are_unrounded_where_the_product_is),
        cmocka_unit_test(logits_that_are_ordered__stay_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
