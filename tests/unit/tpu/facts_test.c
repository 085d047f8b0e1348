/* Estimates of the mean and the deviation of values: what is looked up, and outputs of calls and splits. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"
#include "tpu/exact/facts.h"

#include <math.h>

enum { ROWS = 50, COLUMNS = 8 };

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f;
    struct tare_arena arena;
    struct tare_value_facts *facts;
};

static struct net new_net(void) {
    struct net net = { .model = mini_model_new() };
    net.f = tare_model_add_function(net.model, "f");
    return net;
}

static void find(struct net *net) {
    mini_ok(tare_value_facts_find(&net->facts, &net->arena, net->model));
}

static void free_net(struct net *net) {
    tare_value_facts_free(net->facts);
    tare_arena_free(&net->arena);
    tare_model_free(net->model);
}

/* Normal numbers of the deviation 0.05; columns have the means `offset`, 2 `offset` … */
static struct tare_edge table(struct net *net, float offset) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)COLUMNS);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(TARE_DATA(float, &value), ROWS * COLUMNS, DRAW_NORMAL, 1);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        TARE_DATA(float, &value)[i] = 0.05F * TARE_DATA(float, &value)[i] + offset * (float)(1 + i % COLUMNS);
    node = tare_graph_add_const(net->f, "table", &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge vector(struct tare_graph *graph, const char *name, int n, const float *values) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)n);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < n; i++)
        TARE_DATA(float, &value)[i] = values[i];
    node = tare_graph_add_const(graph, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge look_up(struct net *net, const char *op, struct tare_edge from, struct tare_edge ids) {
    if (strcmp(op, "GatherV2") == 0) return mini_node(net->f, op, "row", 3, from, ids, mini_int(net->f, "axis", 0));
    if (strcmp(op, "GatherNd") == 0) return mini_node(net->f, op, "row", 2, from, ids);
    return mini_node(net->f, op, "row", 4, from, ids, mini_ints(net->f, "end", 2, (int32_t[]){ ROWS, COLUMNS }),
                     mini_ints(net->f, "step", 2, (int32_t[]){ 1, 1 }));
}

/* By Gather, GatherNd, and a slice from a computed position: the rows of a table differ, so that products of them may
 * be rounded. */
static void what_is_looked_up__varies_as_the_table_does(void **state) {
    static const char *const ops[] = { "GatherV2", "GatherNd", "StridedSlice" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct tare_bfloat16_options options = { .nodes = NULL };
        struct net net = new_net();
        const struct tare_edge ids = mini_arg(net.f, "ids", TARE_DT_INT32), from = table(&net, 0);
        const struct tare_edge row = look_up(&net, ops[i], from, ids);
        const struct tare_value_fact *fact;
        size_t changes = 0;
        mini_return(net.f, "y", mini_node(net.f, "MatMul", "product", 2, row, from));
        find(&net);
        fact = tare_value_fact(net.facts, row);
        if (!fact->varies || !fact->computed || fact->heavy || fabsf(fact->dev - 0.05F) > 0.01F)
            fail_msg("%s: dev %g (expected 0.05)", ops[i], (double)fact->dev);
        mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
        assert_int_equal(graph_node(net.f, "product")->output_dtypes[0], TARE_DT_BFLOAT16);
        free_net(&net);
    }
}

/* Columns of coordinates: what all rows have in common is no deviation. */
static void columns_of_a_table__have_a_mean_of_their_own(void **state) {
    struct net net = new_net();
    const struct tare_edge row = look_up(&net, "GatherV2", table(&net, 20), mini_arg(net.f, "ids", TARE_DT_INT32));
    const struct tare_value_fact *fact;
    (void)state;
    mini_return(net.f, "y", row);
    find(&net);
    fact = tare_value_fact(net.facts, row);
    assert_true(fact->heavy && fabsf(fact->dev - 0.05F) < 0.01F && fabsf(fact->mean - 90) < 1);
    free_net(&net);
}

/* Weights that pass through a loop say nothing about its state. */
static void results_of_a_loop__are_estimated_one_by_one(void **state) {
    struct net net = new_net();
    struct tare_graph *condition = tare_model_add_function(net.model, "cond"),
                      *body = tare_model_add_function(net.model, "body");
    struct tare_edge i, s, w, loop;
    struct tare_node *node;
    (void)state;
    i = mini_arg(condition, "i", TARE_DT_INT32);
    mini_arg(condition, "s", TARE_DT_FLOAT);
    mini_arg(condition, "w", TARE_DT_FLOAT);
    mini_return(condition, "go", mini_node(condition, "Less", "less", 2, i, mini_int(condition, "end", 9)));
    i = mini_arg(body, "i", TARE_DT_INT32);
    s = mini_arg(body, "s", TARE_DT_FLOAT);
    w = mini_arg(body, "w", TARE_DT_FLOAT);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "s", mini_node(body, "Tanh", "tanh", 1, mini_node(body, "MatMul", "product", 2, s, w)));
    mini_return(body, "w", w);
    node = mini_open(net.f, "StatelessWhile", "loop", 3, mini_int(net.f, "start", 0),
                     mini_arg(net.f, "x", TARE_DT_FLOAT), table(&net, 0));
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    loop = mini_done(node);
    mini_return(net.f, "y", mini_output(loop, 1));
    find(&net);
    assert_false(tare_value_fact(net.facts, mini_output(loop, 1))->heavy);
    assert_true(tare_value_fact(net.facts, mini_output(loop, 1))->dev > 0.1F);
    assert_false(tare_value_fact(net.facts, mini_output(loop, 2))->varies);
    free_net(&net);
}

/* Gates of a recurrent cell: the bias of one is large, that of another is not. */
static void parts_of_a_sum__have_their_part_of_a_bias(void **state) {
    struct net net = new_net();
    const struct tare_edge bias = vector(net.f, "bias", 8, (float[]){ 0, 0, 0, 0, 20, 20, 20, 20 });
    struct tare_edge x = mini_node(net.f, "MatMul", "product", 2, mini_arg(net.f, "x", TARE_DT_FLOAT),
                                   vector(net.f, "w", 8, (float[]){ 1, -1, 1, -1, 1, -1, 1, -1 }));
    struct tare_node *split;
    (void)state;
    x = mini_node(net.f, "Tanh", "tanh", 1, x);
    split = mini_open(net.f, "Split", "split", 2, mini_int(net.f, "axis", 1),
                      mini_node(net.f, "BiasAdd", "sum", 2, x, bias));
    mini_ok(tare_node_set_int(split, "num_split", 2));
    x = mini_done(split);
    mini_return(net.f, "y", x);
    mini_return(net.f, "z", mini_output(x, 1));
    find(&net);
    assert_false(tare_value_fact(net.facts, x)->heavy);
    assert_true(tare_value_fact(net.facts, mini_output(x, 1))->heavy);
    free_net(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_looked_up__varies_as_the_table_does),
                                        cmocka_unit_test(columns_of_a_table__have_a_mean_of_their_own),
                                        cmocka_unit_test(results_of_a_loop__are_estimated_one_by_one),
                                        cmocka_unit_test(parts_of_a_sum__have_their_part_of_a_bias) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
