/* Element-wise layers, also those that follow convolutions and products. */
#include "differential/network.h"

#include <string.h>

static struct tare_edge number(struct network *n, float value) {
    return mini_float(n->graph, network_name(n, "number"), value);
}

/* ---- activation functions ---- */

static struct tare_edge none(struct network *n, struct tare_edge x) {
    (void)n;
    return x;
}

static struct tare_edge relu(struct network *n, struct tare_edge x) {
    return network_unary(n, "Relu", x);
}

static struct tare_edge relu6(struct network *n, struct tare_edge x) {
    return network_unary(n, "Relu6", x);
}

static struct tare_edge leaky_relu(struct network *n, struct tare_edge x) {
    struct tare_node *node = mini_open(n->graph, "LeakyRelu", network_name(n, "leaky"), 1, x);
    mini_ok(tare_node_set_float(node, "alpha", 0.1f));
    return mini_done(node);
}

static struct tare_edge clamp(struct network *n, struct tare_edge x) {
    x = network_binary(n, "Minimum", x, number(n, 2.5f));
    return network_binary(n, "Maximum", x, number(n, network_rarely(n, 2) ? 0 : -0.7f));
}

static struct tare_edge sigmoid(struct network *n, struct tare_edge x) {
    return network_unary(n, "Sigmoid", x);
}

static struct tare_edge swish(struct network *n, struct tare_edge x) {
    return network_binary(n, "Mul", x, network_unary(n, "Sigmoid", x));
}

static struct tare_edge hard_swish(struct network *n, struct tare_edge x) {
    const struct tare_edge gate = network_unary(n, "Relu6", network_binary(n, "AddV2", x, number(n, 3)));
    return network_binary(n, "Mul", x, network_binary(n, "Mul", gate, number(n, 1 / 6.0f)));
}

static struct tare_edge gelu(struct network *n, struct tare_edge x) {
    const struct tare_edge erf = network_unary(n, "Erf", network_binary(n, "Mul", x, number(n, 0.70710678f)));
    const struct tare_edge half = network_binary(n, "Mul", x, number(n, 0.5f));
    return network_binary(n, "Mul", half, network_binary(n, "AddV2", erf, number(n, 1)));
}

static struct tare_edge tanh_of(struct network *n, struct tare_edge x) {
    return network_unary(n, "Tanh", x);
}

static struct tare_edge elu(struct network *n, struct tare_edge x) {
    return network_unary(n, "Elu", x);
}

static struct tare_edge identity(struct network *n, struct tare_edge x) {
    return network_unary(n, "Identity", x);
}

static const struct function {
    const char *name;
    int weight;
    struct tare_edge (*add)(struct network *n, struct tare_edge x);
} functions[] = {
    { "", 6, none },       { "relu", 4, relu },       { "relu6", 4, relu6 }, { "leaky", 2, leaky_relu },
    { "clamp", 2, clamp }, { "sigmoid", 1, sigmoid }, { "swish", 1, swish }, { "hard swish", 1, hard_swish },
    { "gelu", 1, gelu },   { "tanh", 1, tanh_of },    { "elu", 1, elu },     { "identity", 1, identity },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static struct tare_edge activate(struct network *n, struct tare_edge x) {
    int sum = 0;
    for (int i = 0; i < FUNCTIONS; i++)
        sum += functions[i].weight;
    int at = network_draw(n, sum), chosen = 0;
    while ((at -= functions[chosen].weight) >= 0)
        chosen++;
    if (*functions[chosen].name) network_note(n, " %s", functions[chosen].name);
    return functions[chosen].add(n, x);
}

/* ---- biases and normalizations ---- */

static struct tare_edge norm(struct network *n, struct tare_edge x, int64_t channels) {
    const struct tare_shape shape = tare_shape_make(1, channels);
    const struct tare_edge variance = network_unary(n, "Exp", network_random(n, shape, 0.3));
    const struct tare_edge scale = network_random(n, shape, 1), offset = network_random(n, shape, 0.2),
                           mean = network_random(n, shape, 0.2);
    struct tare_node *node =
        mini_open(n->graph, "FusedBatchNormV3", network_name(n, "norm"), 5, x, scale, offset, mean, variance);
    mini_ok(tare_node_set_type(node, "U", TARE_DT_FLOAT));
    mini_ok(tare_node_set_bool(node, "is_training", false));
    return mini_done(node);
}

struct tare_edge network_follow(struct network *n, struct tare_edge x, int64_t channels) {
    const struct tare_shape shape = tare_shape_make(1, channels);
    const int kind = channels ? network_draw(n, 8) : 7;
    if (kind < 5) {
        x = network_binary(n, kind == 4 ? "AddV2" : "BiasAdd", x, network_random(n, shape, 0.3));
        network_note(n, " bias");
    } else if (kind == 5 && n->x.rank == 4) {
        x = norm(n, x, channels);
        network_note(n, " norm");
    } else if (kind == 6) {
        x = network_binary(n, "Mul", x, network_random(n, shape, 1));
        network_note(n, " scale");
    }
    return activate(n, x);
}

/* ---- layers ---- */

static bool activation(struct network *n) {
    network_note(n, "activation");
    n->x.edge = activate(n, n->x.edge);
    return true;
}

static bool vector(struct network *n) {
    static const char *const ops[] = { "AddV2", "Sub", "Mul", "Maximum", "Minimum" };
    const char *op = ops[network_draw(n, 5)];
    const struct tare_edge operand = network_random(n, tare_shape_make(1, n->x.dims[n->x.rank - 1]), 1);
    n->x.edge =
        network_rarely(n, 2) ? network_binary(n, op, n->x.edge, operand) : network_binary(n, op, operand, n->x.edge);
    network_note(n, "%s of a vector", op);
    return true;
}

static bool combine(struct network *n) {
    static const char *const ops[] = { "AddV2", "Sub", "Mul", "Maximum" };
    const char *op = ops[network_draw(n, 4)];
    const struct network_value *other = network_same(n, n->x.rank);
    if (!other) return false;
    n->x.edge = network_binary(n, op, n->x.edge, other->edge);
    network_note(n, "%s of an earlier value", op);
    return true;
}

const struct network_layer network_elementwise_layers[] = {
    { .name = "activation", .rank = 0, .weight = 1, .add = activation },
    { .name = "vector", .rank = 0, .weight = 1, .add = vector },
    { .name = "combine", .rank = 0, .weight = 2, .add = combine },
    { 0 },
};
