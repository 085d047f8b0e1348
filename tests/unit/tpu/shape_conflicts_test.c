/* Loops that change shapes, branches of different ranks, lists that grow: what XLA rejects or, for lists, drops. */
#include "support/mini_model.h"
#include "tpu/compatibility.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *graph; /* called with x: float[?,8] */
    struct tare_edge x;
    struct tare_arena arena;
    struct tare_tpu_finding *found;
    size_t count;
};

static void set_up(struct fixture *f) {
    *f = (struct fixture){ .model = mini_model_new() };
    f->graph = tare_model_add_function(f->model, "f");
    f->x = mini_arg(f->graph, "x", TARE_DT_FLOAT);
}

static void tear_down(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

/* Calls the function; other arguments than x are scalars. */
static void call(struct fixture *f) {
    const struct tare_shape shape = tare_shape_make(2, -1, 8), scalar = tare_shape_scalar();
    struct tare_edge fed[2] = { { 0 } };
    for (size_t i = 0; i < f->graph->n_args; i++) {
        fed[i] = mini_placeholder(f->model->main, f->graph->args[i]->name, f->graph->args[i]->output_dtypes[0]);
        mini_ok(tare_node_set_shape(fed[i].node, "shape", i ? &scalar : &shape));
    }
    mini_call(f->model->main, "PartitionedCall", "call", f->graph, (int)f->graph->n_args, fed[0], fed[1]);
}

/* One finding with this text, or none. */
static void expect(struct fixture *f, const char *part) {
    call(f);
    mini_ok(tare_tpu_check(&f->found, &f->count, &f->arena, f->model, &f->graph, 1));
    if (!part && f->count) fail_msg("a finding: %s", f->found[0].text);
    if (!part) return;
    assert_int_equal(f->count, 1);
    assert_int_equal(f->found[0].kind, TARE_TPU_BAD_SHAPE);
    assert_true(tare_tpu_finding_is_error(f->found[0].kind));
    if (!strstr(f->found[0].text, part)) fail_msg("no '%s' in: %s", part, f->found[0].text);
}

/* A function of x. */
static struct tare_graph *function(struct fixture *f, const char *name, const char *op) {
    struct tare_graph *graph = tare_model_add_function(f->model, name);
    struct tare_edge x = mini_arg(graph, "rows", TARE_DT_FLOAT), zero = mini_int(graph, "zero", 0);
    if (strcmp(op, "ConcatV2") == 0)
        x = mini_node(graph, op, "y", 3, x, x, zero);
    else if (strcmp(op, "Sum") == 0)
        x = mini_node(graph, op, "y", 2, x, zero);
    else if (strcmp(op, "Slice") == 0)
        x = mini_node(graph, op, "y", 3, x, mini_ints(graph, "begin", 2, (int32_t[]){ 0, 0 }),
                      mini_ints(graph, "size", 2, (int32_t[]){ 1, -1 }));
    else
        x = mini_node(graph, op, "y", 1, x);
    mini_return(graph, "y", x);
    return graph;
}

/* while flag: x = body(x) */
static void add_loop(struct fixture *f, const char *op) {
    struct tare_graph *cond = tare_model_add_function(f->model, "cond");
    struct tare_node *node = mini_open(f->graph, "StatelessWhile", "loop", 1, f->x);
    mini_arg(cond, "rows", TARE_DT_FLOAT);
    mini_return(cond, "go", mini_bool(cond, "flag", true));
    function(f, "body", op);
    mini_ok(tare_node_set_type_list(node, "T", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    mini_return(f->graph, "y", mini_done(node));
}

static void loop__keeps_the_shapes_of_its_variables(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    add_loop(&f, "ConcatV2");
    expect(&f,
           "loop 'loop' (StatelessWhile) in function f changes the shape of 'rows', for example from [5,8] to [10,8]");
    tear_down(&f);
    set_up(&f);
    add_loop(&f, "Slice"); /* only a batch of one would keep it */
    expect(&f, "from [5,8] to [1,8]");
    tear_down(&f);
    set_up(&f);
    add_loop(&f, "Relu"); /* open, and the same in every iteration */
    expect(&f, NULL);
    tear_down(&f);
}

static void add_branches(struct fixture *f, const char *op, struct tare_edge index, const char *a, const char *b) {
    struct tare_node *node = mini_open(f->graph, op, "choice", 2, index, f->x);
    struct tare_graph *const branches[] = { function(f, "a", a), function(f, "b", b) };
    const bool is_case = strstr(op, "Case");
    mini_ok(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    if (is_case) {
        mini_ok(tare_node_set_func_list(node, "branches", branches, 2));
    } else {
        mini_ok(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
        mini_ok(tare_node_set_func(node, "then_branch", branches[0]->name));
        mini_ok(tare_node_set_func(node, "else_branch", branches[1]->name));
    }
    mini_return(f->graph, "y", mini_done(node));
}

/* XLA pads branches of one rank to the larger shape. */
static void branches__return_tensors_of_one_rank(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    add_branches(&f, "StatelessIf", mini_bool(f.graph, "flag", true), "Sum", "Relu");
    expect(&f, "the branches of 'choice' (StatelessIf) in function f return tensors of different ranks");
    tear_down(&f);
    set_up(&f);
    add_branches(&f, "StatelessIf", mini_bool(f.graph, "flag", true), "Slice", "Relu");
    expect(&f, NULL);
    tear_down(&f);
}

/* Of the branches of Case, a constant index leaves one; If is compiled with both. */
static void branches__of_a_known_case_may_differ(void **state) {
    struct fixture f;
    struct tare_edge rows;
    (void)state;
    set_up(&f);
    rows = mini_node(f.graph, "Rank", "rank", 1, f.x);
    add_branches(&f, "StatelessCase", rows, "Sum", "Relu");
    expect(&f, NULL);
    tear_down(&f);
    set_up(&f);
    rows = mini_arg(f.graph, "index", TARE_DT_INT32);
    add_branches(&f, "StatelessCase", rows, "Sum", "Relu");
    expect(&f, "of different ranks");
    tear_down(&f);
}

static void list__has_its_size_from_the_beginning(void **state) {
    static const struct {
        const char *op;
        int32_t size;
        const char *expected;
    } cases[] = {
        { "TensorListReserve", 0, "node 'list' (TensorListReserve) in function f makes an empty list that grows" },
        { "TensorListReserve", 4, NULL },
        { "EmptyTensorList", -1, "node 'list' (EmptyTensorList) in function f makes an empty list that grows" },
        { "EmptyTensorList", 4, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        set_up(&f);
        struct tare_node *node =
            mini_open(f.graph, cases[i].op, "list", 2, mini_ints(f.graph, "shape", 2, (int32_t[]){ -1, 8 }),
                      mini_int(f.graph, "size", cases[i].size));
        mini_ok(tare_node_set_type(node, "element_dtype", TARE_DT_FLOAT));
        mini_ok(tare_node_set_type(node, "shape_type", TARE_DT_INT32));
        mini_done(node);
        expect(&f, cases[i].expected);
        tear_down(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop__keeps_the_shapes_of_its_variables),
        cmocka_unit_test(branches__return_tensors_of_one_rank),
        cmocka_unit_test(branches__of_a_known_case_may_differ),
        cmocka_unit_test(list__has_its_size_from_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
