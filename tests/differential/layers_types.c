/* Layers whose values have other dtypes than float: casts, integers, and quantization that a model has of its own. */
#include "differential/network.h"

#include <stdio.h>
#include <string.h>

static struct tare_edge cast(struct network *n, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(n->graph, "Cast", network_name(n, "cast"), 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

static struct tare_edge number(struct network *n, float value) {
    return mini_float(n->graph, network_name(n, "number"), value);
}

/* An operand of the dtype: one number, or one for each channel. */
static struct tare_edge operand(struct network *n, int dtype, double size) {
    struct tare_shape shape = tare_shape_make(1, n->x.dims[n->x.rank - 1]);
    if (network_rarely(n, 3)) shape = network_rarely(n, 2) ? tare_shape_scalar() : tare_shape_make(1, (int64_t)1);
    return cast(n, network_random(n, shape, size), dtype);
}

/* ---- arithmetic in a dtype ---- */

static const struct type {
    const char *name;
    int dtype;
    bool is_integer;
} types[] = {
    { "half", TARE_DT_HALF, false },  { "double", TARE_DT_DOUBLE, false }, { "bfloat16", TARE_DT_BFLOAT16, false },
    { "int8", TARE_DT_INT8, true },   { "uint8", TARE_DT_UINT8, true },    { "int16", TARE_DT_INT16, true },
    { "int32", TARE_DT_INT32, true }, { "int64", TARE_DT_INT64, true },
};

static struct tare_edge step_of(struct network *n, const struct type *type, struct tare_edge x,
                                struct tare_edge first) {
    static const char *const ops[] = { "AddV2", "Sub", "Mul", "Maximum", "Minimum" };
    const char *op = ops[network_draw(n, 5)];
    if (!type->is_integer && network_rarely(n, 4)) return network_unary(n, network_rarely(n, 2) ? "Relu" : "Floor", x);
    const struct tare_edge y = network_rarely(n, 3) ? first : operand(n, type->dtype, type->is_integer ? 20 : 1);
    network_note(n, " %s", op);
    return network_rarely(n, 3) ? network_binary(n, op, y, x) : network_binary(n, op, x, y);
}

static bool typed(struct network *n) {
    const struct type *type = &types[network_draw(n, sizeof types / sizeof *types)];
    struct tare_edge x = n->x.edge;
    network_note(n, "in %s:", type->name);
    if (type->is_integer) x = network_binary(n, "Mul", x, number(n, 9));
    const struct tare_edge first = x = cast(n, x, type->dtype);
    for (int i = network_draw(n, 4); i >= 0; i--)
        x = step_of(n, type, x, first);
    if (network_rarely(n, 4)) x = cast(n, x, types[network_draw(n, sizeof types / sizeof *types)].dtype);
    x = cast(n, x, TARE_DT_FLOAT);
    n->x.edge = type->is_integer ? network_binary(n, "Mul", x, number(n, 0.1f)) : x;
    n->rounds = true;
    return true;
}

/* ---- quantization ---- */

/* round(x / scale) + zero point, limited, as a small integer, and back. */
static struct tare_edge by_steps(struct network *n, struct tare_edge x, int dtype) {
    const float low = dtype == TARE_DT_UINT8 ? 0 : -128, high = dtype == TARE_DT_UINT8 ? 255 : 127;
    const struct tare_edge zero = number(n, (float)network_between(n, -20, 20));
    x = network_rarely(n, 2) ? network_binary(n, "Mul", x, number(n, 31))
                             : network_binary(n, "Div", x, number(n, 0.04f));
    x = network_unary(n, "Round", network_binary(n, "AddV2", x, zero));
    x = network_binary(n, "Maximum", network_binary(n, "Minimum", x, number(n, high)), number(n, low));
    x = cast(n, cast(n, x, dtype), TARE_DT_FLOAT);
    return network_binary(n, "Mul", network_binary(n, "Sub", x, zero), number(n, 0.04f));
}

static struct tare_edge fake(struct network *n, struct tare_edge x) {
    struct tare_node *node = mini_open(n->graph, "FakeQuantWithMinMaxVars", network_name(n, "fake"), 3, x,
                                       number(n, network_rarely(n, 3) ? 0 : -3.1f), number(n, 2.7f));
    mini_ok(tare_node_set_int(node, "num_bits", network_rarely(n, 3) ? 4 : 8));
    mini_ok(tare_node_set_bool(node, "narrow_range", network_rarely(n, 2)));
    return mini_done(node);
}

static bool quantized(struct network *n) {
    const int kind = network_draw(n, 4);
    n->x.edge = kind < 2    ? by_steps(n, n->x.edge, kind ? TARE_DT_INT8 : TARE_DT_UINT8)
                : kind == 2 ? by_steps(n, n->x.edge, TARE_DT_INT16)
                            : fake(n, n->x.edge);
    network_note(n, kind == 3 ? "fake quantization" : "quantization by steps");
    n->rounds = true;
    return true;
}

/* ---- values ---- */

/* All equal, mostly zeros, tiny or large: ranges of calibration have no width, or scales are extreme. */
static bool extreme(struct network *n) {
    static const float factors[] = { 0, 1e-30f, 1e-6f, 300, 1e15f };
    const int kind = network_draw(n, 7);
    network_note(n, "extreme values %d", kind);
    if (kind < 5)
        n->x.edge = network_binary(n, "Mul", n->x.edge, number(n, factors[kind]));
    else
        n->x.edge = network_unary(n, "Relu", network_binary(n, "Sub", n->x.edge, number(n, kind == 5 ? 20 : 2)));
    if (kind == 3 || kind == 4) n->x.edge = network_unary(n, "Tanh", n->x.edge);
    if (kind == 1) n->x.edge = network_binary(n, "AddV2", n->x.edge, number(n, 1e-30f));
    return true;
}

/* Comparisons choose between values. */
static bool select_values(struct network *n) {
    static const char *const ops[] = { "Less", "GreaterEqual", "Equal", "NotEqual" };
    const struct network_value *other = network_same(n, n->x.rank);
    const struct tare_edge y = other ? other->edge : network_unary(n, "Neg", n->x.edge);
    const char *op = ops[network_draw(n, 4)];
    const struct tare_edge condition = network_binary(n, op, n->x.edge, network_rarely(n, 2) ? y : number(n, 0));
    n->x.edge = mini_node(n->graph, "SelectV2", network_name(n, "select"), 3, condition, n->x.edge,
                          network_rarely(n, 2) ? y : number(n, -0.25f));
    network_note(n, "select by %s", op);
    n->rounds = true;
    return true;
}

const struct network_layer network_type_layers[] = {
    { .name = "typed", .rank = 0, .weight = 2, .add = typed },
    { .name = "quantized", .rank = 0, .weight = 1, .add = quantized },
    { .name = "extreme", .rank = 0, .weight = 1, .add = extreme },
    { .name = "select_values", .rank = 0, .weight = 1, .add = select_values },
    { 0 },
};
