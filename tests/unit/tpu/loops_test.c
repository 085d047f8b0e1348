/* States of loops that stay float32 between iterations, because rounding them would add up. */
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

enum { WIDTH = 8, STATES = 2 };

/* y = (loop over a, b, which begin with x W)'s states · W, in TPU function f. */
struct net {
    struct tare_graph_model *model;
    struct tare_graph *f, *condition, *body;
    struct tare_edge states[STATES];
};

static struct tare_edge product(struct tare_graph *graph, const char *name, struct tare_edge x) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)WIDTH);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(TARE_DATA(float, &value), WIDTH * WIDTH, DRAW_NORMAL, 1);
    node = tare_graph_add_const(graph, tare_arena_printf(&graph->model->arena, "%s_w", name), &value);
    tare_tensor_reset(&value);
    return mini_node(graph, "MatMul", name, 2, x, (struct tare_edge){ node, 0 });
}

/* The arguments i, a and b of the condition and the body. */
static void new_net(struct net *net) {
    net->model = mini_model_new();
    net->f = tare_model_add_function(net->model, "f");
    net->condition = tare_model_add_function(net->model, "condition");
    net->body = tare_model_add_function(net->model, "body");
    for (int g = 0; g < 2; g++) {
        struct tare_graph *graph = g ? net->body : net->condition;
        struct tare_edge i = mini_arg(graph, "i", TARE_DT_INT32);
        net->states[0] = mini_arg(graph, "a", TARE_DT_FLOAT);
        net->states[1] = mini_arg(graph, "b", TARE_DT_FLOAT);
        if (g)
            mini_return(graph, "i", mini_node(graph, "AddV2", "next", 2, i, mini_int(graph, "one", 1)));
        else
            mini_return(graph, "go", mini_node(graph, "Less", "less", 2, i, mini_int(graph, "end", 200)));
    }
}

static void convert(struct net *net, struct tare_edge a, struct tare_edge b) {
    const struct tare_bfloat16_options options = { 0 };
    struct tare_node *loop;
    struct tare_edge x = product(net->f, "before", mini_arg(net->f, "x", TARE_DT_FLOAT)), y;
    size_t changes = 0;
    mini_return(net->body, "a", a);
    mini_return(net->body, "b", b);
    loop = mini_open(net->f, "StatelessWhile", "loop", 3, mini_int(net->f, "start", 0), x, x);
    mini_ok(tare_node_set_func(loop, "cond", "condition"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    y = mini_done(loop);
    mini_return(net->f, "y", product(net->f, "after_a", mini_output(y, 1)));
    mini_return(net->f, "z", product(net->f, "after_b", mini_output(y, 2)));
    mini_ok(tare_tpu_bfloat16(net->model, &net->f, 1, &options, &changes));
    graph_check_dtypes(net->model);
}

static int dtype_of(const struct tare_graph *graph, const char *name) {
    return tare_edge_dtype((struct tare_edge){ graph_node(graph, name), 0 });
}

static void assert_states(const struct net *net, int a, int b) {
    const int expected[STATES] = { a, b };
    for (int i = 0; i < STATES; i++) {
        assert_int_equal(net->body->args[1 + i]->output_dtypes[0], expected[i]);
        assert_int_equal(net->condition->args[1 + i]->output_dtypes[0], expected[i]);
        assert_int_equal(net->body->returns[1 + i].dtype, expected[i]);
    }
}

/* a += 0.005 tanh(a W), b = tanh(b W): the product before the sum is bfloat16, and so is a state that a product takes.
 */
static void a_state_that_a_loop_adds_to__stays_float32(void **state) {
    struct net net;
    struct tare_edge a, b;
    (void)state;
    new_net(&net);
    a = mini_node(net.body, "Tanh", "tanh_a", 1, product(net.body, "of_a", net.states[0]));
    a = mini_node(net.body, "Mul", "change", 2, a, mini_float(net.body, "step", 0.005F));
    a = mini_node(net.body, "AddV2", "sum", 2, net.states[0], a);
    b = mini_node(net.body, "Tanh", "tanh_b", 1, product(net.body, "of_b", net.states[1]));
    convert(&net, a, b);
    assert_states(&net, TARE_DT_FLOAT, TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(net.body, "sum"), TARE_DT_FLOAT);
    assert_int_equal(dtype_of(net.body, "of_a"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(net.f, "before"), TARE_DT_BFLOAT16);
    assert_int_equal(dtype_of(net.f, "after_a"), TARE_DT_BFLOAT16);
    tare_model_free(net.model);
}

/* a, b = b, tanh(b W) + 0.9 a: what b was is added two iterations later. */
static void a_state_that_becomes_another_one__stays_float32(void **state) {
    struct net net;
    struct tare_edge next;
    (void)state;
    new_net(&net);
    next = mini_node(net.body, "Mul", "decay", 2, net.states[0], mini_float(net.body, "q", 0.9F));
    next = mini_node(net.body, "AddV2", "sum", 2,
                     mini_node(net.body, "Tanh", "tanh", 1, product(net.body, "of_b", net.states[1])), next);
    convert(&net, net.states[1], next);
    assert_states(&net, TARE_DT_FLOAT, TARE_DT_FLOAT);
    tare_model_free(net.model);
}

/* a = g(a), with the sum in g; b is one of two values, not a sum of them. */
static void functions_in_a_loop__are_followed(void **state) {
    struct net net;
    struct tare_graph *g;
    struct tare_edge x, b;
    (void)state;
    new_net(&net);
    g = tare_model_add_function(net.model, "g");
    x = mini_arg(g, "x", TARE_DT_FLOAT);
    mini_return(g, "y", mini_node(g, "AddV2", "sum", 2, x, mini_node(g, "Tanh", "tanh", 1, product(g, "of_x", x))));
    x = product(net.body, "of_b", net.states[1]);
    b = mini_node(net.body, "SelectV2", "select", 3, mini_bool(net.body, "which", true), x, net.states[1]);
    convert(&net, mini_call(net.body, "PartitionedCall", "call", g, 1, net.states[0]), b);
    assert_states(&net, TARE_DT_FLOAT, TARE_DT_BFLOAT16);
    assert_int_equal(g->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(dtype_of(g, "of_x"), TARE_DT_BFLOAT16);
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_state_that_a_loop_adds_to__stays_float32),
                                        cmocka_unit_test(a_state_that_becomes_another_one__stays_float32),
                                        cmocka_unit_test(functions_in_a_loop__are_followed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
