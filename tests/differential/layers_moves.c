/* Layers that move, divide and join values, and those in another data format. */
#include "differential/network.h"

#include <math.h>
#include <string.h>

static struct tare_edge permute(struct network *n, struct tare_edge x, int rank, const int32_t *order) {
    return network_binary(n, "Transpose", x, network_ints(n, rank, order));
}

/* ---- channels first ---- */

static struct tare_edge format_first(struct tare_node *node) {
    mini_ok(tare_node_set_string(node, "data_format", "NCHW", 4));
    return mini_done(node);
}

static struct tare_edge first_conv(struct network *n, struct tare_edge x, int64_t stride, int64_t out) {
    const int64_t in = n->x.dims[3], strides[4] = { 1, 1, stride, stride };
    const struct tare_edge weight =
        network_random(n, tare_shape_make(4, (int64_t)3, (int64_t)3, in, out), 0.5 / sqrt((double)in));
    struct tare_node *node = mini_open(n->graph, "Conv2D", network_name(n, "first"), 2, x, weight);
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return format_first(node);
}

/* A convolution, bias and pooling of images with the channels first, between two transposes. */
static bool channels_first(struct network *n) {
    static const int32_t to[4] = { 0, 3, 1, 2 }, from[4] = { 0, 2, 3, 1 };
    const int64_t stride = network_between(n, 1, 2), out = network_channels(n);
    int64_t *d = n->x.dims;
    if (!network_spend(n, 9 * d[1] * d[2] * d[3] * out)) return false;
    struct tare_edge x = first_conv(n, permute(n, n->x.edge, 4, to), stride, out);
    if (network_rarely(n, 2)) {
        const struct tare_edge bias = network_random(n, tare_shape_make(1, out), 0.3);
        x = format_first(mini_open(n->graph, "BiasAdd", network_name(n, "bias"), 2, x, bias));
    } else {
        x = network_binary(n, "AddV2", x, network_random(n, tare_shape_make(3, out, (int64_t)1, (int64_t)1), 0.3));
    }
    if (network_rarely(n, 2)) x = network_unary(n, network_rarely(n, 2) ? "Relu" : "Relu6", x);
    if (network_rarely(n, 3)) {
        struct tare_node *node = mini_open(n->graph, "MaxPool", network_name(n, "pool"), 1, x);
        mini_ok(tare_node_set_int_list(node, "ksize", (const int64_t[]){ 1, 1, 3, 3 }, 4));
        mini_ok(tare_node_set_int_list(node, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
        mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
        x = format_first(node);
    }
    n->x.edge = permute(n, x, 4, from);
    d[1] = (d[1] + stride - 1) / stride, d[2] = (d[2] + stride - 1) / stride, d[3] = out;
    network_note(n, "channels first: conv 3x3 to %d stride %d", (int)out, (int)stride);
    return true;
}

/* ---- division and joining ---- */

/* Parts of the channels, some changed, joined in another order. */
static bool split(struct network *n) {
    const int axis = n->x.rank - 1;
    int64_t parts = network_between(n, 2, 4);
    while (n->x.dims[axis] % parts)
        parts--;
    if (parts < 2) return false;
    struct tare_node *node =
        mini_open(n->graph, "Split", network_name(n, "split"), 2,
                  mini_int(n->graph, network_name(n, "axis"), network_rarely(n, 2) ? axis : -1), n->x.edge);
    mini_ok(tare_node_set_int(node, "num_split", parts));
    const struct tare_edge all = mini_done(node);
    struct tare_edge edges[4] = { { 0 } };
    for (int i = 0; i < parts; i++) {
        edges[i] = mini_output(all, (int)((i + 1) % parts));
        if (network_rarely(n, 2)) edges[i] = network_follow(n, edges[i], 0);
    }
    struct tare_edge x = edges[0];
    for (int i = 1; i < parts; i++)
        x = mini_node(n->graph, "ConcatV2", network_name(n, "concat"), 3, x, edges[i],
                      mini_int(n->graph, network_name(n, "axis"), axis));
    n->x.edge = x;
    network_note(n, " split into %d and joined", (int)parts);
    return true;
}

static bool strided_slice(struct network *n) {
    int32_t begin[MOST_RANK] = { 0 }, end[MOST_RANK] = { 0 }, strides[MOST_RANK] = { 1, 1, 1, 1 };
    int64_t mask = 1, end_mask = 1;
    for (int axis = 1; axis < n->x.rank; axis++) {
        int64_t *dim = &n->x.dims[axis];
        strides[axis] = (int32_t)network_between(n, 1, *dim < 3 ? *dim : 3);
        if (network_rarely(n, 4)) {
            strides[axis] = -strides[axis];
            mask |= 1 << axis;
            end_mask |= 1 << axis;
            *dim = (*dim - 1) / -strides[axis] + 1;
        } else {
            begin[axis] = (int32_t)network_between(n, 0, (*dim - 1) / 2);
            end[axis] = (int32_t)*dim;
            *dim = (end[axis] - begin[axis] - 1) / strides[axis] + 1;
        }
    }
    struct tare_node *node =
        mini_open(n->graph, "StridedSlice", network_name(n, "strided"), 4, n->x.edge, network_ints(n, n->x.rank, begin),
                  network_ints(n, n->x.rank, end), network_ints(n, n->x.rank, strides));
    mini_ok(tare_node_set_int(node, "begin_mask", mask));
    mini_ok(tare_node_set_int(node, "end_mask", end_mask));
    n->x.edge = mini_done(node);
    network_note(n, "strided slice by %d %d %d", strides[1], strides[2], strides[3]);
    return true;
}

static bool reverse(struct network *n) {
    const int32_t axis[1] = { (int32_t)network_between(n, 1, n->x.rank - 1) };
    n->x.edge = network_binary(n, "ReverseV2", n->x.edge, network_ints(n, 1, axis));
    network_note(n, "reverse %d", axis[0]);
    return true;
}

static bool tile(struct network *n) {
    int32_t counts[MOST_RANK] = { 1, 1, 1, 1 };
    const int axis = (int)network_between(n, 1, n->x.rank - 1);
    if (n->x.dims[axis] > 40) return false;
    counts[axis] = 2;
    n->x.edge = network_binary(n, "Tile", n->x.edge, network_ints(n, n->x.rank, counts));
    n->x.dims[axis] *= 2;
    network_note(n, "tile %d", axis);
    return true;
}

static bool gather(struct network *n) {
    const int axis = n->x.rank - 1;
    int32_t indices[24];
    const int count = (int)network_between(n, 1, 24);
    for (int i = 0; i < count; i++)
        indices[i] = (int32_t)network_draw(n, (int)n->x.dims[axis]);
    n->x.edge = mini_node(n->graph, "GatherV2", network_name(n, "gather"), 3, n->x.edge,
                          network_ints(n, count, indices), mini_int(n->graph, network_name(n, "axis"), axis));
    n->x.dims[axis] = count;
    network_note(n, "gather %d", count);
    return true;
}

static bool depth_to_space(struct network *n) {
    if (n->x.dims[3] % 4 || n->x.dims[1] * n->x.dims[2] > 400) return false;
    struct tare_node *node = mini_open(n->graph, "DepthToSpace", network_name(n, "depth"), 1, n->x.edge);
    mini_ok(tare_node_set_int(node, "block_size", 2));
    n->x = (struct network_value){ mini_done(node), 4, { 0, 2 * n->x.dims[1], 2 * n->x.dims[2], n->x.dims[3] / 4 } };
    network_note(n, "DepthToSpace");
    return true;
}

/* ---- images ---- */

/* A dilated convolution in the form that older versions of TensorFlow write. */
static bool space_to_batch(struct network *n) {
    const struct network_value x = n->x;
    const int64_t out = network_channels(n), in = x.dims[3], rate = network_between(n, 2, 3);
    if (!network_spend(n, 16 * x.dims[1] * x.dims[2] * in * out)) return false;
    const int32_t block[2] = { (int32_t)rate, (int32_t)rate };
    int32_t pads[4], crops[4] = { 0 };
    for (int i = 0; i < 2; i++) {
        const int64_t whole = x.dims[1 + i] + 2 * rate;
        pads[2 * i] = (int32_t)rate;
        crops[2 * i + 1] = (int32_t)((rate - whole % rate) % rate);
        pads[2 * i + 1] = (int32_t)rate + crops[2 * i + 1];
    }
    struct tare_edge y = mini_node(n->graph, "SpaceToBatchND", network_name(n, "to_batch"), 3, x.edge,
                                   network_ints(n, 2, block), network_pairs(n, 2, pads));
    struct tare_node *node =
        mini_open(n->graph, "Conv2D", network_name(n, "inner"), 2, y,
                  network_random(n, tare_shape_make(4, (int64_t)3, (int64_t)3, in, out), 0.5 / sqrt((double)in)));
    mini_ok(tare_node_set_int_list(node, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(node, "padding", "VALID", 5));
    y = mini_node(n->graph, "BatchToSpaceND", network_name(n, "from_batch"), 3, mini_done(node),
                  network_ints(n, 2, block), network_pairs(n, 2, crops));
    network_note(n, "conv 3x3 to %d by batches, rate %d", (int)out, (int)rate);
    n->x = (struct network_value){ y, 4, { 0, x.dims[1], x.dims[2], out } };
    n->x.edge = network_follow(n, y, out);
    return true;
}

/* Products with weights for each channel, position or line of each image. */
static bool broadcast(struct network *n) {
    static const char *const ops[] = { "AddV2", "Sub", "Mul", "Maximum" }, *const reductions[] = { "Max", "Mean",
                                                                                                   "Sum" };
    static const int32_t axes[][2] = { { 1, 2 }, { 3, 3 }, { 1, 1 }, { 2, 3 }, { 2, 2 } };
    const int32_t *axis = axes[network_draw(n, 5)];
    const char *op = ops[network_draw(n, 4)], *reduction = reductions[network_draw(n, 3)];
    struct tare_node *node = mini_open(n->graph, reduction, network_name(n, reduction), 2, n->x.edge,
                                       network_ints(n, axis[0] == axis[1] ? 1 : 2, axis));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    struct tare_edge y = mini_done(node);
    if (network_rarely(n, 2)) y = network_unary(n, "Sigmoid", y);
    n->x.edge = network_rarely(n, 2) ? network_binary(n, op, n->x.edge, y) : network_binary(n, op, y, n->x.edge);
    network_note(n, "%s with the %s over %d %d", op, reduction, axis[0], axis[1]);
    n->x.edge = network_follow(n, n->x.edge, 0);
    return true;
}

const struct network_layer network_move_layers[] = {
    { .name = "channels_first", .rank = 4, .weight = 1, .add = channels_first },
    { .name = "split", .rank = 0, .weight = 1, .add = split },
    { .name = "strided_slice", .rank = 0, .weight = 1, .add = strided_slice, .needs_size = true },
    { .name = "reverse", .rank = 0, .weight = 1, .add = reverse },
    { .name = "tile", .rank = 0, .weight = 1, .add = tile },
    { .name = "gather", .rank = 0, .weight = 1, .add = gather },
    { .name = "depth_to_space", .rank = 4, .weight = 1, .add = depth_to_space },
    { .name = "space_to_batch", .rank = 4, .weight = 1, .add = space_to_batch, .needs_size = true },
    { .name = "broadcast", .rank = 4, .weight = 2, .add = broadcast },
    { 0 },
};
