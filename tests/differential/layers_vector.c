/* Layers of vectors and sequences: products, attention, recurrent cells. */
#include "differential/network.h"

#include <math.h>
#include <string.h>

bool network_dense(struct network *n, int64_t units) {
    const int64_t in = n->x.dims[1];
    const bool is_transposed = network_rarely(n, 4);
    if (!network_spend(n, in * units)) return false;
    const struct tare_shape shape = is_transposed ? tare_shape_make(2, units, in) : tare_shape_make(2, in, units);
    struct tare_node *node = mini_open(n->graph, "MatMul", network_name(n, "dense"), 2, n->x.edge,
                                       network_random(n, shape, 1.4 / sqrt((double)in)));
    mini_ok(tare_node_set_bool(node, "transpose_b", is_transposed));
    network_note(n, "dense %d to %d", (int)in, (int)units);
    n->x = (struct network_value){ network_follow(n, mini_done(node), units), 2, { 0, units } };
    return true;
}

static bool dense(struct network *n) {
    return network_dense(n, network_rarely(n, 4) ? network_between(n, 1, 300) : network_between(n, 1, 70));
}

/* Two layers of which the second one has more weights than caches hold. */
static bool wide_dense(struct network *n) {
    enum { LEAST = 1000, MOST = 1150, WORK = 1 << 21 };
    if (n->work < WORK || n->x.dims[1] > 300 || !network_dense(n, network_between(n, LEAST, MOST))) return false;
    network_note(n, ", ");
    network_dense(n, network_between(n, LEAST, MOST));
    return true;
}

static bool residual_dense(struct network *n) {
    const struct network_value x = n->x;
    network_note(n, "residual: ");
    if (!network_dense(n, x.dims[1])) return false;
    n->x.edge = network_follow(n, network_binary(n, "AddV2", n->x.edge, x.edge), 0);
    return true;
}

static bool softmax(struct network *n) {
    n->x.edge = network_unary(n, "Softmax", n->x.edge);
    network_note(n, "softmax");
    return true;
}

static bool normalize(struct network *n) {
    const int32_t axis[1] = { -1 };
    struct tare_node *node =
        mini_open(n->graph, "Mean", network_name(n, "mean"), 2, n->x.edge, network_ints(n, 1, axis));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    const struct tare_edge mean = mini_done(node);
    const struct tare_edge square = network_binary(n, "SquaredDifference", n->x.edge, mean);
    node = mini_open(n->graph, "Mean", network_name(n, "variance"), 2, square, network_ints(n, 1, axis));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    const struct tare_edge variance =
        network_binary(n, "AddV2", mini_done(node), mini_float(n->graph, network_name(n, "epsilon"), 1e-3f));
    const struct tare_edge scale = network_unary(n, "Rsqrt", variance);
    n->x.edge = network_binary(n, "Mul", network_binary(n, "Sub", n->x.edge, mean), scale);
    network_note(n, "layer normalization");
    return true;
}

/* Vectors become images or sequences. */
static bool unfold(struct network *n) {
    const int64_t width = n->x.dims[1];
    struct network_value to = network_rarely(n, 2) ? (struct network_value){ { 0 }, 3, { 0, 1, width } }
                                                   : (struct network_value){ { 0 }, 4, { 0, 1, 1, width } };
    for (int64_t parts = 8; parts > 1; parts--)
        if (width % parts == 0 && to.dims[1] == 1) to.dims[1] = parts, to.dims[to.rank - 1] /= parts;
    to.edge = network_reshape(n, n->x.edge, to.rank, to.dims);
    n->x = to;
    network_note(n, "reshape to rank %d", to.rank);
    return true;
}

/* One step of an LSTM whose state is the input. */
static bool lstm(struct network *n) {
    const int64_t in = n->x.dims[1];
    if (in > 64 || !network_spend(n, 8 * in * in)) return false;
    struct tare_edge z[4];
    for (int i = 0; i < 4; i++) {
        const double size = 1 / sqrt((double)in);
        const struct tare_edge kernel = network_random(n, tare_shape_make(2, in, in), size);
        z[i] = network_binary(n, "MatMul", n->x.edge, kernel);
        z[i] = network_binary(n, "BiasAdd", z[i], network_random(n, tare_shape_make(1, in), 0.1));
        z[i] = network_unary(n, i == 2 ? "Tanh" : "Sigmoid", z[i]);
    }
    const struct tare_edge state =
        network_binary(n, "AddV2", network_binary(n, "Mul", z[0], n->x.edge), network_binary(n, "Mul", z[1], z[2]));
    n->x.edge = network_binary(n, "Mul", z[3], network_unary(n, "Tanh", state));
    network_note(n, "lstm");
    return true;
}

/* ---- sequences ---- */

static bool steps_dense(struct network *n) {
    const int64_t steps = n->x.dims[1], in = n->x.dims[2], units = network_channels(n);
    if (!network_spend(n, steps * in * units)) return false;
    const struct tare_edge weight = network_random(n, tare_shape_make(2, in, units), 1.4 / sqrt((double)in));
    struct tare_edge y;
    if (network_rarely(n, 2)) {
        y = network_binary(n, "BatchMatMulV2", n->x.edge, weight);
    } else {
        const int64_t flat[2] = { 0, in }, deep[3] = { 0, steps, units };
        y = network_binary(n, "MatMul", network_reshape(n, n->x.edge, 2, flat), weight);
        y = network_reshape(n, y, 3, deep);
    }
    network_note(n, "dense %d to %d of each step", (int)in, (int)units);
    n->x = (struct network_value){ network_follow(n, y, units), 3, { 0, steps, units } };
    return true;
}

static struct tare_edge product(struct network *n, struct tare_edge x, struct tare_edge y, bool transposes) {
    struct tare_node *node = mini_open(n->graph, "BatchMatMulV2", network_name(n, "product"), 2, x, y);
    mini_ok(tare_node_set_bool(node, "adj_y", transposes));
    return mini_done(node);
}

static bool attention(struct network *n) {
    const int64_t steps = n->x.dims[1], width = n->x.dims[2];
    if (!network_spend(n, 2 * steps * steps * width + 2 * steps * width * width)) return false;
    const struct tare_shape shape = tare_shape_make(2, width, width);
    const struct tare_edge query =
        network_binary(n, "BatchMatMulV2", n->x.edge, network_random(n, shape, 1 / sqrt((double)width)));
    const struct tare_edge key =
        network_binary(n, "BatchMatMulV2", n->x.edge, network_random(n, shape, 1 / sqrt((double)width)));
    const struct tare_edge scale = mini_float(n->graph, network_name(n, "scale"), 1 / sqrtf((float)width));
    const struct tare_edge scores = network_binary(n, "Mul", product(n, query, key, true), scale);
    n->x.edge = product(n, network_unary(n, "Softmax", scores), n->x.edge, false);
    network_note(n, "attention");
    return true;
}

static bool conv1d(struct network *n) {
    const struct network_value x = n->x;
    const int64_t image[4] = { 0, 1, x.dims[1], x.dims[2] };
    n->x = (struct network_value){ network_reshape(n, x.edge, 4, image), 4, { 0, 1, x.dims[1], x.dims[2] } };
    network_note(n, "along the steps: ");
    if (!network_conv(n)) {
        n->x = x;
        return false;
    }
    const int64_t steps = n->x.dims[1] * n->x.dims[2], sequence[3] = { 0, steps, n->x.dims[3] };
    n->x = (struct network_value){ network_reshape(n, n->x.edge, 3, sequence), 3, { 0, steps, n->x.dims[3] } };
    return true;
}

static bool steps_mean(struct network *n) {
    const int32_t axis[1] = { 1 };
    n->x = (struct network_value){ network_binary(n, "Mean", n->x.edge, network_ints(n, 1, axis)),
                                   2,
                                   { 0, n->x.dims[2] } };
    network_note(n, "Mean of the steps");
    return true;
}

static bool flatten(struct network *n) {
    const int64_t dims[2] = { 0, n->x.dims[1] * n->x.dims[2] };
    n->x = (struct network_value){ network_reshape(n, n->x.edge, 2, dims), 2, { 0, dims[1] } };
    network_note(n, "flatten");
    return true;
}

static bool transpose_steps(struct network *n) {
    static const int32_t swapped[3] = { 0, 2, 1 };
    n->x = (struct network_value){ network_binary(n, "Transpose", n->x.edge, network_ints(n, 3, swapped)),
                                   3,
                                   { 0, n->x.dims[2], n->x.dims[1] } };
    network_note(n, "transpose");
    return true;
}

const struct network_layer network_vector_layers[] = {
    { .name = "dense", .rank = 2, .weight = 6, .add = dense },
    { .name = "residual_dense", .rank = 2, .weight = 2, .add = residual_dense },
    { .name = "wide_dense", .rank = 2, .weight = 1, .add = wide_dense },
    { .name = "softmax", .rank = 0, .weight = 1, .add = softmax },
    { .name = "normalize", .rank = 0, .weight = 1, .add = normalize },
    { .name = "unfold", .rank = 2, .weight = 1, .add = unfold, .needs_size = true },
    { .name = "lstm", .rank = 2, .weight = 1, .add = lstm },
    { .name = "steps_dense", .rank = 3, .weight = 4, .add = steps_dense, .needs_size = true },
    { .name = "attention", .rank = 3, .weight = 2, .add = attention },
    { .name = "conv1d", .rank = 3, .weight = 3, .add = conv1d, .needs_size = true },
    { .name = "steps_mean", .rank = 3, .weight = 1, .add = steps_mean },
    { .name = "flatten", .rank = 3, .weight = 1, .add = flatten, .needs_size = true },
    { .name = "transpose_steps", .rank = 3, .weight = 1, .add = transpose_steps },
    { 0 },
};
