/* Layers of functions, reductions, products of several axes and transposed convolutions. */
#include "differential/network.h"

#include <math.h>
#include <string.h>

static struct tare_edge number(struct network *n, float value) {
    return mini_float(n->graph, network_name(n, "number"), value);
}

static struct tare_edge reduce(struct network *n, const char *op, struct tare_edge x, int32_t axis, bool keeps) {
    struct tare_node *node = mini_open(n->graph, op, network_name(n, op), 2, x, network_ints(n, 1, &axis));
    mini_ok(tare_node_set_bool(node, "keep_dims", keeps));
    return mini_done(node);
}

/* ---- functions ---- */

static bool function(struct network *n) {
    static const char *const ops[] = { "Softplus", "Selu", "Exp",   "Neg",        "Abs",     "Square", "Softsign",
                                       "Sin",      "Cos",  "Floor", "Round",      "Atan",    "Sign",   "Erf",
                                       "Expm1",    "Tanh", "Ceil",  "LogSoftmax", "Softmax", "Erfc",   "Asinh" };
    static const char *const positive[] = { "Log", "Sqrt", "Rsqrt", "Log1p", "Reciprocal", "Digamma", "Lgamma" };
    struct tare_edge x = n->x.edge;
    if (network_rarely(n, 4)) {
        const char *op = positive[network_draw(n, sizeof positive / sizeof *positive)];
        x = network_binary(n, "AddV2", network_unary(n, "Abs", x), number(n, 0.125f));
        n->x.edge = network_unary(n, op, x);
        network_note(n, "%s", op);
        return true;
    }
    const char *op = ops[network_draw(n, sizeof ops / sizeof *ops)];
    n->rounds |=
        strcmp(op, "Floor") == 0 || strcmp(op, "Round") == 0 || strcmp(op, "Sign") == 0 || strcmp(op, "Ceil") == 0;
    if (op[0] == 'E') x = network_binary(n, "Minimum", x, number(n, 4));
    n->x.edge = network_unary(n, op, x);
    network_note(n, "%s", op);
    return true;
}

/* Both operands are one value, which an op in place must not overwrite before it is read twice. */
static bool same_twice(struct network *n) {
    static const char *const ops[] = { "AddV2", "Mul", "Sub", "Maximum", "SquaredDifference", "DivNoNan" };
    const char *op = ops[network_draw(n, 6)];
    const struct tare_edge x = network_rarely(n, 2) ? network_unary(n, "Identity", n->x.edge) : n->x.edge;
    n->x.edge = network_binary(n, op, x, n->x.edge);
    if (network_rarely(n, 2)) n->x.edge = network_binary(n, "AddV2", n->x.edge, x);
    network_note(n, "%s with itself", op);
    return true;
}

static bool divide(struct network *n) {
    static const char *const ops[] = { "RealDiv", "Pow", "FloorDiv", "FloorMod", "Atan2", "Div" };
    const char *op = ops[network_draw(n, 6)];
    const struct network_value *other = network_same(n, n->x.rank);
    const struct tare_edge y =
        other ? network_binary(n, "AddV2", network_unary(n, "Abs", other->edge), number(n, 0.5f)) : number(n, 1.75f);
    const struct tare_edge x = strcmp(op, "Pow") == 0 ? network_unary(n, "Sigmoid", n->x.edge) : n->x.edge;
    n->x.edge = network_binary(n, op, x, y);
    n->rounds |= op[0] == 'F';
    network_note(n, "%s", op);
    return true;
}

/* ---- along an axis ---- */

static bool l2_normalize(struct network *n) {
    const struct tare_edge sum = reduce(n, "Sum", network_unary(n, "Square", n->x.edge), -1, true);
    const struct tare_edge norm = network_unary(n, "Rsqrt", network_binary(n, "Maximum", sum, number(n, 1e-12f)));
    n->x.edge = network_binary(n, "Mul", n->x.edge, norm);
    network_note(n, "L2 normalization");
    return true;
}

static bool reduction(struct network *n) {
    static const char *const ops[] = { "Max", "Min", "Sum", "Prod", "Mean" };
    const char *op = ops[network_draw(n, 5)];
    const int axis = (int)network_between(n, 1, n->x.rank - 1);
    const bool keeps = n->x.rank == 2 || network_rarely(n, 2);
    n->x.edge = reduce(n, op, n->x.edge, axis, keeps);
    n->x.dims[axis] = 1;
    if (!keeps) {
        for (int i = axis; i + 1 < n->x.rank; i++)
            n->x.dims[i] = n->x.dims[i + 1];
        n->x.dims[--n->x.rank] = 0;
    }
    network_note(n, "%s over axis %d%s", op, axis, keeps ? "" : ", which is removed");
    return true;
}

static bool cumsum(struct network *n) {
    struct tare_node *node =
        mini_open(n->graph, "Cumsum", network_name(n, "cumsum"), 2, n->x.edge,
                  mini_int(n->graph, network_name(n, "axis"), (int32_t)network_between(n, 1, n->x.rank - 1)));
    mini_ok(tare_node_set_bool(node, "exclusive", network_rarely(n, 2)));
    mini_ok(tare_node_set_bool(node, "reverse", network_rarely(n, 2)));
    n->x.edge = mini_done(node);
    network_note(n, "cumsum");
    return true;
}

static bool top_k(struct network *n) {
    int64_t *last = &n->x.dims[n->x.rank - 1];
    const int32_t k = (int32_t)network_between(n, 1, *last < 12 ? *last : 12);
    n->x.edge = network_binary(n, "TopKV2", n->x.edge, mini_int(n->graph, network_name(n, "k"), k));
    *last = k;
    network_note(n, "top %d", k);
    return true;
}

static bool local_response(struct network *n) {
    struct tare_node *node = mini_open(n->graph, "LRN", network_name(n, "lrn"), 1, n->x.edge);
    mini_ok(tare_node_set_int(node, "depth_radius", network_between(n, 1, 5)));
    n->x.edge = mini_done(node);
    network_note(n, "LRN");
    return true;
}

/* ---- products ---- */

static struct tare_edge heads_of(struct network *n, struct tare_edge x, int64_t heads, int64_t width) {
    static const int32_t order[4] = { 0, 2, 1, 3 };
    const int64_t dims[4] = { 0, n->x.dims[1], heads, width }, in = n->x.dims[2];
    if (network_rarely(n, 2)) {
        const struct tare_edge w = network_random(n, tare_shape_make(3, in, heads, width), 1 / sqrt((double)in));
        struct tare_node *node = mini_open(n->graph, "Einsum", network_name(n, "einsum"), 2, x, w);
        mini_ok(tare_node_set_string(node, "equation", "abc,cde->abde", 13));
        x = mini_done(node);
        x = network_binary(n, "AddV2", x, network_random(n, tare_shape_make(2, heads, width), 0.2));
    } else {
        const struct tare_edge w = network_random(n, tare_shape_make(2, in, heads * width), 1 / sqrt((double)in));
        x = network_binary(n, "BatchMatMulV2", x, w);
        if (network_rarely(n, 2))
            x = network_binary(n, "BiasAdd", x, network_random(n, tare_shape_make(1, heads * width), 0.2));
        x = network_reshape(n, x, 4, dims);
    }
    return network_binary(n, "Transpose", x, network_ints(n, 4, order));
}

static bool heads(struct network *n) {
    static const int32_t order[4] = { 0, 2, 1, 3 };
    const int64_t heads = network_between(n, 1, 4), width = network_between(n, 1, 24), steps = n->x.dims[1];
    const int64_t all = heads * width, dims[3] = { 0, steps, all };
    if (!network_spend(n, 3 * steps * n->x.dims[2] * all + 2 * steps * steps * all)) return false;
    struct tare_edge q = heads_of(n, n->x.edge, heads, width), k = heads_of(n, n->x.edge, heads, width);
    const struct tare_edge v = heads_of(n, n->x.edge, heads, width);
    if (network_rarely(n, 2)) q = network_binary(n, "Mul", q, number(n, 1 / sqrtf((float)width)));
    struct tare_node *node = mini_open(n->graph, "BatchMatMulV2", network_name(n, "scores"), 2, q, k);
    mini_ok(tare_node_set_bool(node, "adj_y", true));
    struct tare_edge y = network_binary(n, "BatchMatMulV2", network_unary(n, "Softmax", mini_done(node)), v);
    y = network_reshape(n, network_binary(n, "Transpose", y, network_ints(n, 4, order)), 3, dims);
    network_note(n, "attention with %d heads of %d", (int)heads, (int)width);
    n->x = (struct network_value){ network_follow(n, y, all), 3, { 0, steps, all } };
    return true;
}

/* The shape of the output has the batch of the input. */
static struct tare_edge shape_like(struct network *n, const int64_t *dims) {
    const int32_t zero[1] = { 0 }, one[1] = { 1 };
    const int32_t rest[3] = { (int32_t)dims[1], (int32_t)dims[2], (int32_t)dims[3] };
    const struct tare_edge batch =
        mini_node(n->graph, "Slice", network_name(n, "batch"), 3, network_unary(n, "Shape", n->x.edge),
                  network_ints(n, 1, zero), network_ints(n, 1, one));
    return mini_node(n->graph, "ConcatV2", network_name(n, "shape"), 3, batch, network_ints(n, 3, rest),
                     mini_int(n->graph, network_name(n, "axis"), 0));
}

static bool transposed_conv(struct network *n) {
    const int64_t kernel = network_between(n, 1, 4), stride = network_between(n, 1, 3), in = n->x.dims[3];
    const int64_t out = network_channels(n), dims[4] = { 0, n->x.dims[1] * stride, n->x.dims[2] * stride, out };
    if (dims[1] * dims[2] > 2000 || !network_spend(n, kernel * kernel * in * dims[1] * dims[2] * out)) return false;
    struct tare_node *node = mini_open(
        n->graph, "Conv2DBackpropInput", network_name(n, "transposed"), 3, shape_like(n, dims),
        network_random(n, tare_shape_make(4, kernel, kernel, out, in), 1 / sqrt((double)(in * kernel))), n->x.edge);
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int_list(node, "strides", (const int64_t[]){ 1, stride, stride, 1 }, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    network_note(n, "transposed conv %dx%d to %d stride %d", (int)kernel, (int)kernel, (int)out, (int)stride);
    n->x.edge = mini_done(node);
    memcpy(n->x.dims, dims, sizeof dims);
    n->x.edge = network_follow(n, n->x.edge, out);
    return true;
}

/* Two convolutions of one value, added: a residual block whose shortcut is a convolution. */
static bool added_convs(struct network *n) {
    const struct network_value x = n->x;
    const int64_t out = network_channels(n);
    network_note(n, "sum of ");
    if (!network_pointwise(n, out)) return false;
    const struct network_value left = n->x;
    n->x = x;
    network_note(n, " and ");
    if (!network_pointwise(n, out)) {
        n->x = left;
        return true;
    }
    n->x.edge = network_rarely(n, 2) ? network_binary(n, "AddV2", n->x.edge, left.edge)
                                     : mini_node(n->graph, "AddN", network_name(n, "sum"), 2, left.edge, n->x.edge);
    n->x.edge = network_follow(n, n->x.edge, 0);
    return true;
}

const struct network_layer network_math_layers[] = {
    { .name = "function", .rank = 0, .weight = 2, .add = function },
    { .name = "same_twice", .rank = 0, .weight = 1, .add = same_twice },
    { .name = "divide", .rank = 0, .weight = 1, .add = divide },
    { .name = "l2_normalize", .rank = 0, .weight = 1, .add = l2_normalize },
    { .name = "reduction", .rank = 0, .weight = 1, .add = reduction },
    { .name = "cumsum", .rank = 0, .weight = 1, .add = cumsum },
    { .name = "top_k", .rank = 0, .weight = 1, .add = top_k },
    { .name = "local_response", .rank = 4, .weight = 1, .add = local_response },
    { .name = "heads", .rank = 3, .weight = 3, .add = heads, .needs_size = true },
    { .name = "transposed_conv", .rank = 4, .weight = 1, .add = transposed_conv, .needs_size = true },
    { .name = "added_convs", .rank = 4, .weight = 2, .add = added_convs },
    { 0 },
};
