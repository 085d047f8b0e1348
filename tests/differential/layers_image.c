/* Layers of images that are not convolutions. */
#include "differential/network.h"

#include <stdio.h>
#include <string.h>

/* ---- padding ---- */

static struct tare_edge mirror_pad(struct network *n, struct tare_edge pads) {
    const char *mode = network_rarely(n, 2) ? "REFLECT" : "SYMMETRIC";
    struct tare_node *node = mini_open(n->graph, "MirrorPad", network_name(n, "mirror"), 2, n->x.edge, pads);
    mini_ok(tare_node_set_string(node, "mode", mode, strlen(mode)));
    return mini_done(node);
}

static bool pad(struct network *n) {
    const bool is_mirror = network_rarely(n, 5), pads_channels = network_rarely(n, 6);
    int32_t pads[8] = { 0 };
    for (int axis = 1; axis < 3 + pads_channels; axis++)
        for (int side = 0; side < 2; side++) {
            const int64_t most = is_mirror ? n->x.dims[axis] - 1 : network_rarely(n, 5) ? 8 : 2;
            pads[2 * axis + side] = (int32_t)network_between(n, 0, most < 8 ? most : 8);
        }
    struct tare_edge edge = network_pairs(n, 4, pads);
    if (is_mirror)
        edge = mirror_pad(n, edge);
    else if (network_rarely(n, 2))
        edge = network_binary(n, "Pad", n->x.edge, edge);
    else
        edge = mini_node(n->graph, "PadV2", network_name(n, "pad"), 3, n->x.edge, edge,
                         mini_float(n->graph, network_name(n, "value"), network_rarely(n, 2) ? 0 : -1.5f));
    for (int axis = 1; axis < 4; axis++)
        n->x.dims[axis] += pads[2 * axis] + pads[2 * axis + 1];
    n->x.edge = edge;
    network_note(n, "%s %d %d %d %d %d %d", edge.node->op, pads[2], pads[3], pads[4], pads[5], pads[6], pads[7]);
    return true;
}

/* A padding and a convolution, which fast paths join. */
static bool padded_conv(struct network *n) {
    pad(n);
    network_note(n, ", ");
    network_conv(n);
    return true;
}

/* ---- pooling ---- */

static bool pool(struct network *n) {
    const char *op = network_rarely(n, 2) ? "MaxPool" : "AvgPool", *padding = network_rarely(n, 2) ? "SAME" : "VALID";
    int64_t size[4] = { 1, 1, 1, 1 }, strides[4] = { 1, 1, 1, 1 }, out[4] = { 0, 0, 0, n->x.dims[3] };
    for (int axis = 1; axis < 3; axis++) {
        size[axis] = axis == 2 && !network_rarely(n, 6) ? size[1] : network_between(n, 1, 5);
        strides[axis] = axis == 2 && !network_rarely(n, 6) ? strides[1] : network_between(n, 1, 3);
        const int64_t rest = n->x.dims[axis] - size[axis];
        if (padding[0] == 'V' && rest < 0) return false;
        out[axis] = (padding[0] == 'V' ? rest : n->x.dims[axis] - 1) / strides[axis] + 1;
    }
    struct tare_node *node = mini_open(n->graph, op, network_name(n, "pool"), 1, n->x.edge);
    mini_ok(tare_node_set_int_list(node, "ksize", size, 4));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", padding, strlen(padding)));
    n->x.edge = mini_done(node);
    memcpy(n->x.dims, out, sizeof out);
    network_note(n, "%s %dx%d stride %d %d %s", op, (int)size[1], (int)size[2], (int)strides[1], (int)strides[2],
                 padding);
    return true;
}

static bool mean(struct network *n) {
    static const int32_t axes[2] = { 1, 2 };
    const bool keeps = network_rarely(n, 2);
    struct tare_node *node =
        mini_open(n->graph, "Mean", network_name(n, "mean"), 2, n->x.edge, network_ints(n, 2, axes));
    mini_ok(tare_node_set_bool(node, "keep_dims", keeps));
    n->x = keeps ? (struct network_value){ mini_done(node), 4, { 0, 1, 1, n->x.dims[3] } }
                 : (struct network_value){ mini_done(node), 2, { 0, n->x.dims[3] } };
    network_note(n, "Mean%s", keeps ? " with its dims" : "");
    return true;
}

/* ---- several values ---- */

static bool residual(struct network *n) {
    const struct network_value x = n->x;
    network_note(n, "residual: ");
    if (!network_conv(n)) return false;
    const struct network_value *other = network_same(n, 4);
    if (memcmp(n->x.dims, x.dims, sizeof x.dims) == 0) other = &x;
    if (!other) {
        network_note(n, " without addition");
        return true;
    }
    n->x.edge = network_rarely(n, 2) ? network_binary(n, "AddV2", n->x.edge, other->edge)
                                     : network_binary(n, "AddV2", other->edge, n->x.edge);
    n->x.edge = network_follow(n, n->x.edge, 0);
    return true;
}

/* Two convolutions of one value, joined: by a sum, or along the channels. */
static bool branches(struct network *n) {
    const struct network_value x = n->x;
    network_note(n, "branches: ");
    if (!network_pointwise(n, network_between(n, 1, 24))) return false;
    const struct network_value left = n->x;
    n->x = x;
    network_note(n, " and ");
    if (network_rarely(n, 2) ? !pool(n) : !network_conv(n)) network_note(n, "nothing");
    if (memcmp(&left.dims[1], &n->x.dims[1], 2 * sizeof *left.dims) != 0) return true;
    struct tare_edge joined = mini_node(n->graph, "ConcatV2", network_name(n, "concat"), 3, left.edge, n->x.edge,
                                        mini_int(n->graph, network_name(n, "axis"), network_rarely(n, 2) ? 3 : -1));
    n->x.edge = joined;
    n->x.dims[3] += left.dims[3];
    network_note(n, ", joined");
    return true;
}

static bool concat(struct network *n) {
    const struct network_value *other = network_same(n, n->x.rank - 1);
    if (!other) return false;
    n->x.edge = mini_node(n->graph, "ConcatV2", network_name(n, "concat"), 3, other->edge, n->x.edge,
                          mini_int(n->graph, network_name(n, "axis"), n->x.rank - 1));
    n->x.dims[n->x.rank - 1] += other->dims[n->x.rank - 1];
    network_note(n, "concat");
    return true;
}

/* ---- moves ---- */

static bool transpose(struct network *n) {
    static const int32_t swapped[4] = { 0, 2, 1, 3 };
    n->x.edge = network_binary(n, "Transpose", n->x.edge, network_ints(n, 4, swapped));
    const int64_t height = n->x.dims[1];
    n->x.dims[1] = n->x.dims[2];
    n->x.dims[2] = height;
    network_note(n, "transpose");
    return true;
}

static bool slice(struct network *n) {
    int32_t begin[4] = { 0 }, size[4] = { -1, -1, -1, -1 };
    for (int axis = 1; axis < n->x.rank; axis++) {
        begin[axis] = (int32_t)network_between(n, 0, n->x.dims[axis] - 1);
        size[axis] = (int32_t)network_between(n, 1, n->x.dims[axis] - begin[axis]);
        n->x.dims[axis] = size[axis];
    }
    n->x.edge = mini_node(n->graph, "Slice", network_name(n, "slice"), 3, n->x.edge, network_ints(n, n->x.rank, begin),
                          network_ints(n, n->x.rank, size));
    network_note(n, "slice to %d %d %d", size[1], size[2], size[3]);
    return true;
}

static bool reshape(struct network *n) {
    const int64_t *d = n->x.dims;
    const struct network_value shapes[] = { { { 0 }, 4, { 0, d[2], d[1], d[3] } },
                                            { { 0 }, 4, { 0, 1, d[1] * d[2], d[3] } },
                                            { { 0 }, 3, { 0, d[1] * d[2], d[3] } },
                                            { { 0 }, 2, { 0, d[1] * d[2] * d[3] } } };
    struct network_value to = shapes[network_draw(n, sizeof shapes / sizeof *shapes)];
    to.edge = network_reshape(n, n->x.edge, to.rank, to.dims);
    n->x = to;
    network_note(n, "reshape to rank %d", to.rank);
    return true;
}

static bool resize(struct network *n) {
    const int32_t size[2] = { (int32_t)network_between(n, 1, 24), (int32_t)network_between(n, 1, 24) };
    const char *op = network_rarely(n, 2) ? "ResizeNearestNeighbor" : "ResizeBilinear";
    n->x.edge = network_binary(n, op, n->x.edge, network_ints(n, 2, size));
    n->x.dims[1] = size[0];
    n->x.dims[2] = size[1];
    network_note(n, "%s to %d %d", op, size[0], size[1]);
    return true;
}

static bool space_to_depth(struct network *n) {
    if (n->x.dims[1] % 2 || n->x.dims[2] % 2 || n->x.dims[3] > 40) return false;
    struct tare_node *node = mini_open(n->graph, "SpaceToDepth", network_name(n, "blocks"), 1, n->x.edge);
    mini_ok(tare_node_set_int(node, "block_size", 2));
    n->x = (struct network_value){ mini_done(node), 4, { 0, n->x.dims[1] / 2, n->x.dims[2] / 2, 4 * n->x.dims[3] } };
    network_note(n, "SpaceToDepth");
    return true;
}

const struct network_layer network_image_layers[] = {
    { .name = "pad", .rank = 4, .weight = 2, .add = pad },
    { .name = "padded_conv", .rank = 4, .weight = 4, .add = padded_conv },
    { .name = "pool", .rank = 4, .weight = 3, .add = pool },
    { .name = "mean", .rank = 4, .weight = 1, .add = mean },
    { .name = "residual", .rank = 4, .weight = 4, .add = residual },
    { .name = "branches", .rank = 4, .weight = 3, .add = branches },
    { .name = "concat", .rank = 0, .weight = 1, .add = concat },
    { .name = "transpose", .rank = 4, .weight = 1, .add = transpose },
    { .name = "slice", .rank = 4, .weight = 1, .add = slice, .needs_size = true },
    { .name = "reshape", .rank = 4, .weight = 1, .add = reshape, .needs_size = true },
    { .name = "resize", .rank = 4, .weight = 1, .add = resize },
    { .name = "space_to_depth", .rank = 4, .weight = 1, .add = space_to_depth },
    { 0 },
};
