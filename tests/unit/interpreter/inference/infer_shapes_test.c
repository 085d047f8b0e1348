/* Shapes through a graph: nodes, values that shapes depend on, calls, loops, variables. */
#include "interpreter/inference/infer.h"
#include "interpreter/ops/builtin.h"
#include "graph/model.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        if ((expression) != TARE_OK) fail_msg("%s: %s", #expression, tare_error_text());                               \
    } while (0)

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
};

static int set_up(void **state) {
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    fixture.model = tare_model_new(tare_ops_builtin());
    *state = &fixture;
    return fixture.model ? 0 : -1;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    tare_model_free(fixture->model);
    tare_arena_free(&fixture->arena);
    return 0;
}

static struct tare_edge out(struct tare_node *node) {
    return (struct tare_edge){ node, 0 };
}

/* A node with up to four inputs (node NULL: none) and dtype attribute T, resolved. */
static struct tare_node *add(struct tare_graph *graph, const char *op, const char *name, int type,
                             const struct tare_edge inputs[4]) {
    struct tare_node *node = tare_graph_add(graph, op, name);
    assert_non_null(node);
    if (type) OK(tare_node_set_type(node, "T", type));
    for (int i = 0; i < 4 && inputs[i].node; i++)
        OK(tare_node_add_input(node, inputs[i]));
    return node;
}
#define INPUTS(...) ((const struct tare_edge[5]){ __VA_ARGS__ })

static struct tare_node *placeholder(struct tare_graph *graph, const char *name, int dtype, struct tare_shape shape) {
    struct tare_node *node = tare_graph_add(graph, "Placeholder", name);
    assert_non_null(node);
    OK(tare_node_set_type(node, "dtype", dtype));
    OK(tare_node_set_shape(node, "shape", &shape));
    OK(tare_node_resolve(node));
    return node;
}

static struct tare_node *ints(struct tare_graph *graph, const char *name, int count, const int32_t *values) {
    struct tare_shape shape = count < 0 ? tare_shape_scalar() : tare_shape_make(1, count);
    struct tare_tensor tensor;
    struct tare_node *node;
    OK(tare_tensor_from(&tensor, TARE_DT_INT32, &shape, values));
    node = tare_graph_add_const(graph, name, &tensor);
    tare_tensor_reset(&tensor);
    assert_non_null(node);
    return node;
}
#define INTS(graph, name, ...)                                                                                         \
    ints((graph), (name), (int)(sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)), (int32_t[]){ __VA_ARGS__ })

static void expect_shape(struct fixture *fixture, const struct tare_graph *graph, const struct tare_shape *args,
                         struct tare_node *node, const char *expected) {
    struct tare_shape **shapes;
    char text[TARE_SHAPE_TEXT_SIZE];
    OK(tare_graph_infer_shapes(&shapes, &fixture->arena, graph, args));
    assert_string_equal(tare_shape_text(text, &shapes[node->position][0]), expected);
}

static struct tare_node *identity(struct tare_graph *graph, const char *name, struct tare_node *input) {
    struct tare_node *node = add(graph, "Identity", name, TARE_DT_FLOAT, INPUTS(out(input)));
    OK(tare_node_resolve(node));
    return node;
}

static void placeholder__gives_its_shape_to_its_users(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 3));
    expect_shape(f, main, NULL, identity(main, "y", x), "[?,3]");
}

/* reshape(x, pack(shape(x)[0], 12)), as flatten layers are exported. */
static struct tare_node *flatten(struct tare_graph *graph, struct tare_node *x) {
    struct tare_node *shape = add(graph, "Shape", "shape", TARE_DT_FLOAT, INPUTS(out(x)));
    struct tare_node *slice, *pack, *reshape, *columns;
    int32_t twelve = 12;
    OK(tare_node_resolve(shape));
    slice = add(
        graph, "StridedSlice", "slice", TARE_DT_INT32,
        INPUTS(out(shape), out(INTS(graph, "begin", 0)), out(INTS(graph, "end", 1)), out(INTS(graph, "stride", 1))));
    OK(tare_node_set_type(slice, "Index", TARE_DT_INT32));
    OK(tare_node_set_int(slice, "shrink_axis_mask", 1));
    OK(tare_node_resolve(slice));
    columns = ints(graph, "columns", -1, &twelve);
    pack = add(graph, "Pack", "pack", TARE_DT_INT32, INPUTS(out(slice), out(columns)));
    OK(tare_node_set_int(pack, "N", 2));
    OK(tare_node_resolve(pack));
    reshape = add(graph, "Reshape", "reshape", TARE_DT_FLOAT, INPUTS(out(x), out(pack)));
    OK(tare_node_resolve(reshape));
    return reshape;
}

static void shape_arithmetic__is_followed_when_the_batch_is_known(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(3, 5, 4, 3));
    expect_shape(f, main, NULL, flatten(main, x), "[5,12]");
}

static void shape_arithmetic__keeps_the_known_dims_when_the_batch_is_open(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(3, -1, 4, 3));
    expect_shape(f, main, NULL, flatten(main, x), "[?,12]");
}

/* Sizes [n, 4, 2] of which n is a number that is not known, as exports of any batch have them in the body of a loop. */
static void slices__keep_the_sizes_that_are_known(void **state) {
    static const char *const ops[] = { "Slice", "XlaDynamicSlice", "XlaGather" };
    static const char dimensions[] = "\x0a\x03\x00\x01\x02\x1a\x01\x02"; /* offset_dims 0, 1, 2; start_index_map 2 */
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(3, -1, 4, 8));
    struct tare_node *n = placeholder(main, "n", TARE_DT_INT32, tare_shape_scalar());
    struct tare_node *begin = INTS(main, "begin", 0, 0, 3), *start = INTS(main, "start", 3);
    struct tare_node *sizes = add(
        main, "Pack", "sizes", TARE_DT_INT32,
        INPUTS(out(n), out(ints(main, "four", -1, (int32_t[]){ 4 })), out(ints(main, "two", -1, (int32_t[]){ 2 }))));
    OK(tare_node_set_int(sizes, "N", 3));
    OK(tare_node_resolve(sizes));
    for (size_t i = 0; i < 3; i++) {
        const bool gathers = i == 2;
        struct tare_node *y =
            add(main, ops[i], ops[i], TARE_DT_FLOAT, INPUTS(out(x), out(gathers ? start : begin), out(sizes)));
        OK(tare_node_set_type(y, i ? "Tindices" : "Index", TARE_DT_INT32));
        if (gathers) OK(tare_node_set_string(y, "dimension_numbers", dimensions, sizeof dimensions - 1));
        if (gathers) OK(tare_node_set_bool(y, "indices_are_sorted", true));
        OK(tare_node_resolve(y));
        expect_shape(f, main, NULL, y, "[?,4,2]");
    }
}

static void contradiction__names_the_node(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *a = placeholder(main, "a", TARE_DT_FLOAT, tare_shape_make(2, 5, 4));
    struct tare_node *reshape = add(main, "Reshape", "r", TARE_DT_FLOAT, INPUTS(out(a), out(INTS(main, "to", 3, 7))));
    struct tare_shape **shapes;
    OK(tare_node_resolve(reshape));
    assert_int_not_equal(tare_graph_infer_shapes(&shapes, &f->arena, main, NULL), TARE_OK);
    assert_non_null(strstr(tare_error_text(), "Reshape 'r'"));
}

static void wrong_arity__is_an_error_and_no_crash(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *a = placeholder(main, "a", TARE_DT_FLOAT, tare_shape_make(2, 5, 4));
    struct tare_node *reshape = add(main, "Reshape", "r", TARE_DT_FLOAT, INPUTS(out(a)));
    struct tare_shape **shapes;
    OK(tare_node_resolve(reshape));
    assert_int_equal(tare_graph_infer_shapes(&shapes, &f->arena, main, NULL), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(),
                        "Reshape 'r': NodeDef expected inputs 'float32, int32' do not match 1 inputs specified");
}

/* A function with one float argument and result: result = flatten(argument) or the argument itself. */
static struct tare_graph *function(struct fixture *f, const char *name, bool flat) {
    struct tare_graph *graph = tare_model_add_function(f->model, name);
    struct tare_node *x;
    assert_non_null(graph);
    x = tare_graph_add_arg(graph, "x", TARE_DT_FLOAT);
    assert_non_null(x);
    OK(tare_graph_add_return(graph, "y", TARE_DT_FLOAT, out(flat ? flatten(graph, x) : x)));
    return graph;
}

static struct tare_node *call(struct tare_graph *graph, const char *op, const char *name,
                              const struct tare_edge *inputs, const int *tin, size_t n_in) {
    struct tare_node *node = add(graph, op, name, 0, inputs);
    OK(tare_node_set_type_list(node, "Tin", tin, n_in));
    OK(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    return node;
}

static void call__takes_the_callees_shape(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(3, 2, 4, 3));
    struct tare_node *node = call(main, "PartitionedCall", "call", INPUTS(out(x)), (int[]){ TARE_DT_FLOAT }, 1);
    function(f, "flat", true);
    OK(tare_node_set_func(node, "f", "flat"));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[2,12]");
}

/* One function, called with constants that differ and with equal ones, in one inference. */
static void calls__of_one_function_have_the_shapes_of_their_arguments(void **state) {
    enum { CALLS = 60 };
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main, *callee = tare_model_add_function(f->model, "reshape");
    struct tare_node *x = tare_graph_add_arg(callee, "x", TARE_DT_FLOAT);
    struct tare_node *to = tare_graph_add_arg(callee, "to", TARE_DT_INT32), *calls[CALLS];
    struct tare_node *reshape = add(callee, "Reshape", "r", TARE_DT_FLOAT, INPUTS(out(x), out(to)));
    struct tare_node *given = placeholder(main, "given", TARE_DT_FLOAT, tare_shape_make(1, 60));
    OK(tare_node_resolve(reshape));
    OK(tare_graph_add_return(callee, "y", TARE_DT_FLOAT, out(reshape)));
    for (int i = 0; i < CALLS; i++) {
        char names[2][16];
        snprintf(names[0], sizeof names[0], "to%d", i);
        snprintf(names[1], sizeof names[1], "call%d", i);
        const int32_t rows = i % 6 + 1;
        struct tare_node *shape = INTS(main, names[0], rows, -1);
        calls[i] = call(main, "PartitionedCall", names[1], INPUTS(out(given), out(shape)),
                        (int[]){ TARE_DT_FLOAT, TARE_DT_INT32 }, 2);
        OK(tare_node_set_func(calls[i], "f", "reshape"));
        OK(tare_node_resolve(calls[i]));
    }
    for (int i = 0; i < CALLS; i++) {
        char expected[TARE_SHAPE_TEXT_SIZE];
        snprintf(expected, sizeof expected, "[%d,%d]", i % 6 + 1, 60 / (i % 6 + 1));
        expect_shape(f, main, NULL, calls[i], expected);
    }
}

/* 300 functions, each of which calls the next one. One inference that all graphs share has the shapes of separate ones,
 * for each shape of the argument. */
static void nested_calls__have_the_same_shapes_in_a_shared_inference(void **state) {
    enum { DEPTH = 300 };
    const struct tare_shape given[] = { tare_shape_make(3, 2, 4, 3), tare_shape_make(2, 5, 12) };
    const char *const expected[] = { "[2,12]", "[5,12]" };
    struct fixture *f = *state;
    struct tare_graph *graphs[DEPTH];
    struct tare_node *nodes[DEPTH];
    struct tare_inference *inference = tare_inference_new();
    char name[16], next[16], text[TARE_SHAPE_TEXT_SIZE];
    assert_non_null(inference);
    function(f, "f300", true);
    for (int i = DEPTH - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        graphs[i] = tare_model_add_function(f->model, name);
        assert_non_null(graphs[i]);
        struct tare_node *x = tare_graph_add_arg(graphs[i], "x", TARE_DT_FLOAT);
        nodes[i] = call(graphs[i], "PartitionedCall", "call", INPUTS(out(x)), (int[]){ TARE_DT_FLOAT }, 1);
        OK(tare_node_set_func(nodes[i], "f", next));
        OK(tare_node_resolve(nodes[i]));
        OK(tare_graph_add_return(graphs[i], "y", TARE_DT_FLOAT, out(nodes[i])));
    }
    for (int i = 0; i < DEPTH; i++)
        for (int k = 0; k < 2; k++) {
            struct tare_shape **shapes;
            OK(tare_graph_infer_shapes_with(inference, &shapes, &f->arena, graphs[i], &given[k], NULL));
            assert_string_equal(tare_shape_text(text, &shapes[nodes[i]->position][0]), expected[k]);
        }
    expect_shape(f, graphs[0], &given[0], nodes[0], expected[0]);
    tare_inference_free(inference);
}

static void tpu_call__leaves_the_ordinal_out(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    int32_t zero = 0;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(3, -1, 4, 3));
    struct tare_node *node = call(main, "TPUPartitionedCall", "call",
                                  INPUTS(out(x), out(ints(main, "ordinal", -1, &zero))), (int[]){ TARE_DT_FLOAT }, 1);
    function(f, "flat", true);
    OK(tare_node_set_func(node, "f", "flat"));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[?,12]");
}

static void batch_function__gives_the_callers_batch_back(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(3, 7, 4, 3));
    struct tare_node *node = call(main, "BatchFunction", "batch", INPUTS(out(x)), (int[]){ TARE_DT_FLOAT }, 1);
    OK(tare_node_set_type_list(node, "Tcaptured", NULL, 0));
    function(f, "flat", true);
    OK(tare_node_set_func(node, "f", "flat"));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[7,12]");
}

static void branches__keep_what_they_have_in_common(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(2, 12, 1));
    struct tare_node *pred = placeholder(main, "p", TARE_DT_BOOL, tare_shape_scalar());
    struct tare_node *node = call(main, "If", "if", INPUTS(out(pred), out(x)), (int[]){ TARE_DT_FLOAT }, 1);
    function(f, "flat", true); /* [12,1] stays 12 rows, of 12 columns: does not fit, says nothing */
    function(f, "same", false);
    OK(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
    OK(tare_node_set_func(node, "then_branch", "same"));
    OK(tare_node_set_func(node, "else_branch", "same"));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[12,1]");
    OK(tare_node_set_func(node, "else_branch", "flat"));
    expect_shape(f, main, NULL, node, "<unknown>");
}

/* body: x -> concat of x and x along axis 0, or x itself. */
static void add_loop_functions(struct fixture *f) {
    struct tare_graph *cond = tare_model_add_function(f->model, "cond");
    struct tare_graph *body = tare_model_add_function(f->model, "double");
    struct tare_node *x, *concat, *flag;
    struct tare_tensor yes;
    int32_t zero = 0;
    OK(tare_tensor_from(&yes, TARE_DT_BOOL, &(struct tare_shape){ .rank = 0 }, &(uint8_t){ 1 }));
    assert_non_null(tare_graph_add_arg(cond, "x", TARE_DT_FLOAT));
    flag = tare_graph_add_const(cond, "flag", &yes);
    tare_tensor_reset(&yes);
    OK(tare_graph_add_return(cond, "go", TARE_DT_BOOL, out(flag)));
    x = tare_graph_add_arg(body, "x", TARE_DT_FLOAT);
    concat = add(body, "ConcatV2", "concat", TARE_DT_FLOAT, INPUTS(out(x), out(x), out(ints(body, "axis", -1, &zero))));
    OK(tare_node_set_int(concat, "N", 2));
    OK(tare_node_resolve(concat));
    OK(tare_graph_add_return(body, "y", TARE_DT_FLOAT, out(concat)));
}

static void loop__opens_the_dims_that_the_body_changes(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(2, 2, 3));
    struct tare_node *node = add(main, "StatelessWhile", "while", 0, INPUTS(out(x)));
    add_loop_functions(f);
    function(f, "same", false);
    OK(tare_node_set_type_list(node, "T", (int[]){ TARE_DT_FLOAT }, 1));
    OK(tare_node_set_func(node, "body", "double"));
    OK(tare_node_set_func(node, "cond", "cond"));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[?,3]");
    OK(tare_node_set_func(node, "body", "same"));
    expect_shape(f, main, NULL, node, "[2,3]");
}

/* body of a loop: (x, size) -> (x broadcast to size, size) */
static struct tare_graph *add_sized_body(struct fixture *f) {
    struct tare_graph *body = tare_model_add_function(f->model, "sized");
    struct tare_node *x = tare_graph_add_arg(body, "x", TARE_DT_FLOAT),
                     *size = tare_graph_add_arg(body, "size", TARE_DT_INT32);
    struct tare_node *flat = add(body, "Reshape", "flat", TARE_DT_FLOAT, INPUTS(out(x), out(size)));
    OK(tare_node_resolve(flat));
    OK(tare_graph_add_return(body, "y", TARE_DT_FLOAT, out(flat)));
    struct tare_node *same = add(body, "Identity", "same", TARE_DT_INT32, INPUTS(out(size)));
    OK(tare_node_resolve(same));
    OK(tare_graph_add_return(body, "size", TARE_DT_INT32, out(same)));
    return body;
}

static void loop__keeps_the_values_that_its_body_hands_on(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main, *cond = tare_model_add_function(f->model, "two");
    struct tare_tensor yes;
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 3));
    struct tare_node *size = ints(main, "size", 2, (const int32_t[]){ 4, 3 });
    struct tare_node *node = add(main, "StatelessWhile", "while", 0, INPUTS(out(x), out(size)));
    add_sized_body(f);
    OK(tare_tensor_from(&yes, TARE_DT_BOOL, &(struct tare_shape){ .rank = 0 }, &(uint8_t){ 1 }));
    assert_non_null(tare_graph_add_arg(cond, "x", TARE_DT_FLOAT));
    assert_non_null(tare_graph_add_arg(cond, "size", TARE_DT_INT32));
    OK(tare_graph_add_return(cond, "go", TARE_DT_BOOL, out(tare_graph_add_const(cond, "flag", &yes))));
    tare_tensor_reset(&yes);
    OK(tare_node_set_type_list(node, "T", (int[]){ TARE_DT_FLOAT, TARE_DT_INT32 }, 2));
    OK(tare_node_set_func(node, "cond", "two"));
    OK(tare_node_set_func(node, "body", "sized"));
    OK(tare_node_resolve(node));
    /* what follows the loop knows the size that the loop hands on */
    struct tare_node *after =
        add(main, "Reshape", "after", TARE_DT_FLOAT, INPUTS(out(x), (struct tare_edge){ node, 1 }));
    OK(tare_node_resolve(after));
    expect_shape(f, main, NULL, after, "[4,3]");
}

static void branches__keep_a_value_that_all_of_them_return(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    const int types[] = { TARE_DT_FLOAT, TARE_DT_INT32 };
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 3));
    struct tare_node *pred = placeholder(main, "p", TARE_DT_BOOL, tare_shape_scalar());
    struct tare_node *size = ints(main, "size", 2, (const int32_t[]){ 4, 3 });
    struct tare_node *node = call(main, "StatelessIf", "if", INPUTS(out(pred), out(x), out(size)), types, 2);
    add_sized_body(f);
    OK(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
    OK(tare_node_set_type_list(node, "Tout", types, 2));
    OK(tare_node_set_func(node, "then_branch", "sized"));
    OK(tare_node_set_func(node, "else_branch", "sized"));
    OK(tare_node_resolve(node));
    struct tare_node *after =
        add(main, "Reshape", "after", TARE_DT_FLOAT, INPUTS(out(x), (struct tare_edge){ node, 1 }));
    OK(tare_node_resolve(after));
    expect_shape(f, main, NULL, after, "[4,3]");
}

static void arguments__take_the_given_values(void **state) {
    struct fixture *f = *state;
    struct tare_graph *graph = add_sized_body(f);
    const struct tare_shape args[] = { tare_shape_make(1, 12), tare_shape_make(1, 2) };
    const struct tare_tensor *values[] = {
        NULL, tare_node_tensor(ints(f->model->main, "size", 2, (const int32_t[]){ 4, 3 }), "value")
    };
    struct tare_shape **shapes;
    char text[TARE_SHAPE_TEXT_SIZE];
    const struct tare_node *flat = tare_graph_find(graph, "flat");
    OK(tare_graph_infer_shapes_given(&shapes, &f->arena, graph, args, values));
    assert_string_equal(tare_shape_text(text, &shapes[flat->position][0]), "[4,3]");
}

static void recursion__ends(void **state) {
    struct fixture *f = *state;
    struct tare_graph *graph = tare_model_add_function(f->model, "again"), *main = f->model->main;
    struct tare_node *x = tare_graph_add_arg(graph, "x", TARE_DT_FLOAT), *node, *outer;
    node = call(graph, "PartitionedCall", "inner", INPUTS(out(x)), (int[]){ TARE_DT_FLOAT }, 1);
    OK(tare_node_set_func(node, "f", "again"));
    OK(tare_node_resolve(node));
    OK(tare_graph_add_return(graph, "y", TARE_DT_FLOAT, out(node)));
    outer =
        call(main, "PartitionedCall", "outer",
             INPUTS(out(placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(1, 2)))), (int[]){ TARE_DT_FLOAT }, 1);
    OK(tare_node_set_func(outer, "f", "again"));
    OK(tare_node_resolve(outer));
    expect_shape(f, main, NULL, outer, "<unknown>");
}

static void variable__is_read_through_calls(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main, *graph = tare_model_add_function(f->model, "read");
    struct tare_shape shape = tare_shape_make(2, 3, 4);
    struct tare_node *handle = tare_graph_add(main, "VarHandleOp", "v"), *arg, *read, *node;
    OK(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    OK(tare_node_set_shape(handle, "shape", &shape));
    OK(tare_node_resolve(handle));
    arg = tare_graph_add_arg(graph, "handle", TARE_DT_RESOURCE);
    read = add(graph, "ReadVariableOp", "read", 0, INPUTS(out(arg)));
    OK(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    OK(tare_node_resolve(read));
    OK(tare_graph_add_return(graph, "value", TARE_DT_FLOAT, out(read)));
    node = call(main, "StatefulPartitionedCall", "call", INPUTS(out(handle)), (int[]){ TARE_DT_RESOURCE }, 1);
    OK(tare_node_set_func(node, "f", "read"));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[3,4]");
}

static void ops_without_inference__take_the_exporters_hint(void **state) {
    struct fixture *f = *state;
    struct tare_graph *main = f->model->main;
    struct tare_shape shape = tare_shape_make(2, -1, 9);
    struct tare_node *x = placeholder(main, "x", TARE_DT_FLOAT, tare_shape_make(2, 3, 3));
    struct tare_node *node = add(main, "RiscCeil", "ceil", TARE_DT_FLOAT, INPUTS(out(x)));
    OK(tare_node_set_shape_list(node, "_output_shapes", &shape, 1));
    OK(tare_node_resolve(node));
    expect_shape(f, main, NULL, node, "[?,9]");
}

static void arguments__take_the_given_shapes(void **state) {
    struct fixture *f = *state;
    struct tare_graph *graph = function(f, "flat", true);
    struct tare_shape args[] = { tare_shape_make(2, 6, 12) };
    expect_shape(f, graph, args, tare_graph_find(graph, "reshape"), "[6,12]");
    expect_shape(f, graph, NULL, tare_graph_find(graph, "reshape"), "[?,12]");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(placeholder__gives_its_shape_to_its_users),
        CASE(shape_arithmetic__is_followed_when_the_batch_is_known),
        CASE(shape_arithmetic__keeps_the_known_dims_when_the_batch_is_open),
        CASE(slices__keep_the_sizes_that_are_known),
        CASE(contradiction__names_the_node),
        CASE(wrong_arity__is_an_error_and_no_crash),
        CASE(call__takes_the_callees_shape),
        CASE(calls__of_one_function_have_the_shapes_of_their_arguments),
        CASE(tpu_call__leaves_the_ordinal_out),
        CASE(batch_function__gives_the_callers_batch_back),
        CASE(branches__keep_what_they_have_in_common),
        CASE(loop__opens_the_dims_that_the_body_changes),
        CASE(loop__keeps_the_values_that_its_body_hands_on),
        CASE(branches__keep_a_value_that_all_of_them_return),
        CASE(arguments__take_the_given_values),
        CASE(recursion__ends),
        CASE(variable__is_read_through_calls),
        CASE(ops_without_inference__take_the_exporters_hint),
        CASE(arguments__take_the_given_shapes),
        CASE(nested_calls__have_the_same_shapes_in_a_shared_inference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
