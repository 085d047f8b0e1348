/* Layers in functions: calls, loops and branches. */
#include "differential/network.h"

#include <string.h>

enum { MOST_DEPTH = 2, MOST_STEPS = 3 };

/* A function of a value like n->x that computes some layers; n->x becomes its result, without an edge. */
static struct tare_graph *make_function(struct network *n, int layers) {
    struct tare_graph *const outer = n->graph;
    struct network_value earlier[MOST_EARLIER];
    const int n_earlier = n->n_earlier;
    memcpy(earlier, n->earlier, sizeof earlier);
    struct tare_graph *f = n->graph = tare_model_add_function(n->model, network_name(n, "function"));
    assert_non_null(f);
    const struct tare_edge x = n->x.edge = mini_arg(f, "x", TARE_DT_FLOAT);
    n->n_earlier = 0; /* those are values of the caller */
    n->depth++;
    network_add_layers(n, layers);
    n->depth--;
    n->n_earlier = n_earlier;
    memcpy(n->earlier, earlier, sizeof earlier);
    mini_return(f, "y", n->x.edge.node == x.node ? network_unary(n, "Identity", x) : n->x.edge);
    n->graph = outer;
    return f;
}

static bool call(struct network *n) {
    if (n->depth == MOST_DEPTH) return false;
    const struct tare_edge x = n->x.edge;
    const char *op = network_rarely(n, 2) ? "PartitionedCall" : "StatefulPartitionedCall";
    network_note(n, "%s of (", op);
    const struct tare_graph *f = make_function(n, (int)network_between(n, 1, 3));
    n->x.edge = mini_call(n->graph, op, network_name(n, "call"), f, 1, x);
    network_note(n, ")");
    return true;
}

/* The same function for two values. */
static bool call_twice(struct network *n) {
    const struct network_value x = n->x, *other = network_same(n, n->x.rank);
    if (!other || n->depth == MOST_DEPTH) return false;
    const struct tare_edge second = other->edge;
    network_note(n, "two calls of (");
    const struct tare_graph *f = make_function(n, (int)network_between(n, 1, 2));
    const struct tare_edge y = mini_call(n->graph, "PartitionedCall", network_name(n, "call"), f, 1, x.edge);
    n->x.edge =
        network_binary(n, "AddV2", y, mini_call(n->graph, "PartitionedCall", network_name(n, "call"), f, 1, second));
    network_note(n, "), added");
    return true;
}

static struct tare_graph *make_condition(struct network *n, int steps) {
    struct tare_graph *f = tare_model_add_function(n->model, network_name(n, "condition"));
    assert_non_null(f);
    const struct tare_edge i = mini_arg(f, "i", TARE_DT_INT32);
    mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "again", mini_node(f, "Less", "less", 2, i, mini_int(f, "steps", steps)));
    return f;
}

/* Steps of a function, whose results have its argument's shape. */
static bool loop(struct network *n) {
    static const int types[2] = { TARE_DT_INT32, TARE_DT_FLOAT };
    const struct network_value x = n->x;
    const int steps = (int)network_between(n, 0, MOST_STEPS);
    if (n->depth == MOST_DEPTH) return false;
    network_note(n, "%d steps of (", steps);
    struct tare_graph *const step = make_function(n, (int)network_between(n, 1, 2)), *const outer = n->graph;
    const bool fits = n->x.rank == x.rank && memcmp(n->x.dims, x.dims, sizeof x.dims) == 0;
    struct tare_graph *body = n->graph = tare_model_add_function(n->model, network_name(n, "body"));
    const struct tare_edge i = mini_arg(body, "i", TARE_DT_INT32), v = mini_arg(body, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(body, "PartitionedCall", "call", step, 1, v);
    if (!fits) y = network_unary(n, "Tanh", v);
    mini_return(body, "i", mini_node(body, "AddV2", "next", 2, i, mini_int(body, "one", 1)));
    mini_return(body, "x", y);
    n->graph = outer;
    struct tare_node *node =
        mini_open(n->graph, network_rarely(n, 2) ? "While" : "StatelessWhile", network_name(n, "loop"), 2,
                  mini_int(n->graph, network_name(n, "zero"), 0), x.edge);
    mini_ok(tare_node_set_type_list(node, "T", types, 2));
    mini_ok(tare_node_set_func(node, "cond", make_condition(n, steps)->name));
    mini_ok(tare_node_set_func(node, "body", body->name));
    n->x = x;
    n->x.edge = mini_output(mini_done(node), 1);
    network_note(n, fits ? ")" : "), of which Tanh alone");
    return true;
}

/* One of two functions, by the sum of all examples. */
static bool branch(struct network *n) {
    const struct network_value x = n->x;
    const int32_t axes[MOST_RANK] = { 0, 1, 2, 3 };
    if (n->depth == MOST_DEPTH) return false;
    network_note(n, "either (");
    const struct tare_graph *yes = make_function(n, (int)network_between(n, 1, 2));
    const struct network_value y = n->x;
    n->x = x;
    network_note(n, ") or (");
    const struct tare_graph *no = make_function(n, 1);
    if (n->x.rank != y.rank || memcmp(n->x.dims, y.dims, sizeof y.dims) != 0) no = yes;
    const struct tare_edge sum = network_binary(n, "Sum", x.edge, network_ints(n, x.rank, axes));
    const struct tare_edge condition = network_binary(n, "Less", sum, mini_float(n->graph, network_name(n, "zero"), 0));
    struct tare_node *node = mini_open(n->graph, network_rarely(n, 2) ? "If" : "StatelessIf", network_name(n, "branch"),
                                       2, condition, x.edge);
    mini_ok(tare_node_set_type_list(node, "Tout", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(node, "then_branch", yes->name));
    mini_ok(tare_node_set_func(node, "else_branch", no->name));
    n->x = y;
    n->x.edge = mini_done(node);
    n->mixes = true;
    network_note(n, ")");
    return true;
}

const struct network_layer network_call_layers[] = {
    { .name = "call", .rank = 0, .weight = 1, .add = call },
    { .name = "call_twice", .rank = 0, .weight = 1, .add = call_twice },
    { .name = "loop", .rank = 0, .weight = 1, .add = loop },
    { .name = "branch", .rank = 0, .weight = 1, .add = branch },
    { 0 },
};
