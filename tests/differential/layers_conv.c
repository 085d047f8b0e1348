/* Convolutions: dense, grouped and depthwise, with the paddings, strides and dilations that TensorFlow allows. */
#include "differential/network.h"

#include <math.h>
#include <string.h>

/* Sizes by axis: height, width. */
struct window {
    int64_t kernel[2], stride[2], dilation[2], pad[2][2];
    const char *padding;
    int64_t out[2];
};

static int64_t reach(const struct window *w, int axis) {
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

static bool set_outputs(struct window *w, const int64_t *in) {
    for (int i = 0; i < 2; i++) {
        const int64_t rest = in[i] + w->pad[i][0] + w->pad[i][1] - reach(w, i);
        w->out[i] = strcmp(w->padding, "SAME") == 0 ? (in[i] + w->stride[i] - 1) / w->stride[i]
                    : rest < 0                      ? 0
                                                    : rest / w->stride[i] + 1;
        if (w->out[i] < 1) return false;
    }
    return true;
}

static int64_t draw_kernel(struct network *n) {
    static const int64_t kernels[] = { 1, 1, 3, 3, 3, 5, 7, 2, 4 };
    return kernels[network_draw(n, sizeof kernels / sizeof *kernels)];
}

/* Paddings are small, larger than kernels, or larger than most images: parts of the output then depend on no input. */
enum { MOST_PADS = 8 };
static const int64_t most_pads[MOST_PADS] = { 1, 1, 2, 2, 2, 9, 9, 24 };

static bool draw_window(struct network *n, struct window *w, bool is_square) {
    *w = (struct window){ .padding = network_rarely(n, 3) ? "VALID" : network_rarely(n, 3) ? "EXPLICIT" : "SAME" };
    const bool is_dilated = network_rarely(n, 6), has_stride = network_rarely(n, 3), differs = network_rarely(n, 8);
    for (int i = 0; i < 2; i++) {
        const bool same = i == 1 && !differs;
        w->kernel[i] = same ? w->kernel[0] : draw_kernel(n);
        w->stride[i] = i == 1 && (is_square || same) ? w->stride[0] : has_stride ? network_between(n, 1, 3) : 1;
        w->dilation[i] = same ? w->dilation[0] : is_dilated ? network_between(n, 1, 3) : 1;
        for (int side = 0; side < 2 && strcmp(w->padding, "EXPLICIT") == 0; side++)
            w->pad[i][side] = network_between(n, 0, most_pads[network_draw(n, MOST_PADS)]);
    }
    return set_outputs(w, &n->x.dims[1]);
}

static void set_window(struct tare_node *node, const struct window *w) {
    const int64_t strides[4] = { 1, w->stride[0], w->stride[1], 1 };
    const int64_t dilations[4] = { 1, w->dilation[0], w->dilation[1], 1 };
    const int64_t pads[8] = { 0, 0, w->pad[0][0], w->pad[0][1], w->pad[1][0], w->pad[1][1], 0, 0 };
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_int_list(node, "dilations", dilations, 4));
    mini_ok(tare_node_set_string(node, "padding", w->padding, strlen(w->padding)));
    if (strcmp(w->padding, "EXPLICIT") == 0) mini_ok(tare_node_set_int_list(node, "explicit_paddings", pads, 8));
}

static void note_window(struct network *n, const char *op, const struct window *w, int64_t out, int64_t groups) {
    network_note(n, "%s %dx%d to %d", op, (int)w->kernel[0], (int)w->kernel[1], (int)out);
    if (groups > 1) network_note(n, " groups %d", (int)groups);
    if (w->stride[0] > 1 || w->stride[1] > 1) network_note(n, " stride %d %d", (int)w->stride[0], (int)w->stride[1]);
    if (w->dilation[0] > 1 || w->dilation[1] > 1)
        network_note(n, " dilation %d %d", (int)w->dilation[0], (int)w->dilation[1]);
    network_note(n, " %s", w->padding);
    if (strcmp(w->padding, "EXPLICIT") == 0)
        network_note(n, " %d %d %d %d", (int)w->pad[0][0], (int)w->pad[0][1], (int)w->pad[1][0], (int)w->pad[1][1]);
}

static bool add_conv(struct network *n, const struct window *w, int64_t out, int64_t groups) {
    const int64_t in = n->x.dims[3] / groups, taps = w->kernel[0] * w->kernel[1] * in;
    if (!network_spend(n, w->out[0] * w->out[1] * out * taps)) return false;
    struct tare_node *node =
        mini_open(n->graph, "Conv2D", network_name(n, "conv"), 2, n->x.edge,
                  network_random(n, tare_shape_make(4, w->kernel[0], w->kernel[1], in, out), 1.4 / sqrt((double)taps)));
    set_window(node, w);
    note_window(n, "conv", w, out, groups);
    n->x = (struct network_value){ network_follow(n, mini_done(node), out), 4, { 0, w->out[0], w->out[1], out } };
    return true;
}

static int64_t draw_groups(struct network *n, int64_t channels) {
    if (!network_rarely(n, 8)) return 1;
    const int64_t groups = network_between(n, 1, channels < 12 ? channels : 12);
    return channels % groups == 0 ? groups : channels;
}

bool network_conv(struct network *n) {
    struct window w;
    const int64_t groups = draw_groups(n, n->x.dims[3]);
    const int64_t each = (network_channels(n) + groups - 1) / groups;
    return draw_window(n, &w, false) && add_conv(n, &w, each * groups, groups);
}

bool network_pointwise(struct network *n, int64_t out) {
    struct window w = { { 1, 1 }, { 1, 1 }, { 1, 1 }, { { 0 } }, "SAME", { 0 } };
    return set_outputs(&w, &n->x.dims[1]) && add_conv(n, &w, out, 1);
}

static bool depthwise(struct network *n) {
    const int64_t in = n->x.dims[3], multiplier = network_rarely(n, 4) ? network_between(n, 2, 3) : 1;
    struct window w;
    if (!draw_window(n, &w, true)) return false;
    if (w.stride[0] > 1) w.dilation[0] = w.dilation[1] = 1; /* TensorFlow has only one of the two */
    if (!set_outputs(&w, &n->x.dims[1])) return false;
    const int64_t taps = w.kernel[0] * w.kernel[1];
    if (!network_spend(n, w.out[0] * w.out[1] * in * multiplier * taps)) return false;
    struct tare_node *node = mini_open(
        n->graph, "DepthwiseConv2dNative", network_name(n, "depthwise"), 2, n->x.edge,
        network_random(n, tare_shape_make(4, w.kernel[0], w.kernel[1], in, multiplier), 1.4 / sqrt((double)taps)));
    set_window(node, &w);
    note_window(n, "depthwise", &w, in * multiplier, 1);
    n->x = (struct network_value){ network_follow(n, mini_done(node), in * multiplier),
                                   4,
                                   { 0, w.out[0], w.out[1], in * multiplier } };
    return true;
}

/* A 3x3 convolution between channels that fill vectors, which kernels of few multiplications take. */
static bool blocks_conv(struct network *n) {
    const struct window w = { { 3, 3 }, { 1, 1 }, { 1, 1 }, { { 0 } }, "SAME", { n->x.dims[1], n->x.dims[2] } };
    const int64_t unit = network_rarely(n, 2) ? 64 : 16, in = unit * network_between(n, 1, 64 / unit);
    if (n->x.dims[3] != in && !network_pointwise(n, in)) return false;
    network_note(n, ", ");
    add_conv(n, &w, unit * network_between(n, 1, 64 / unit), 1);
    return true;
}

/* Expansion, depthwise and projection, with the input added where the shape is the same. */
static bool inverted_residual(struct network *n) {
    const struct network_value x = n->x;
    const int64_t inner = network_channels(n), out = network_rarely(n, 2) ? x.dims[3] : network_channels(n);
    network_note(n, "block of ");
    if (!network_pointwise(n, inner)) return false;
    network_note(n, ", ");
    if (!depthwise(n)) return true;
    network_note(n, ", ");
    if (!network_pointwise(n, out)) return true;
    if (memcmp(n->x.dims, x.dims, sizeof x.dims) == 0) {
        network_note(n, ", added to its input");
        n->x.edge = network_rarely(n, 2) ? network_binary(n, "AddV2", n->x.edge, x.edge)
                                         : network_binary(n, "AddV2", x.edge, n->x.edge);
        n->x.edge = network_follow(n, n->x.edge, 0);
    }
    return true;
}

/* The weights of channels from their means. */
static bool squeeze_and_excite(struct network *n) {
    const struct network_value x = n->x;
    const int32_t axes[2] = { 1, 2 };
    struct tare_node *mean = mini_open(n->graph, "Mean", network_name(n, "mean"), 2, x.edge, network_ints(n, 2, axes));
    mini_ok(tare_node_set_bool(mean, "keep_dims", true));
    n->x = (struct network_value){ mini_done(mean), 4, { 0, 1, 1, x.dims[3] } };
    network_note(n, "squeeze and excite: ");
    if (network_pointwise(n, network_between(n, 1, 16))) network_note(n, ", ");
    if (!network_pointwise(n, x.dims[3])) {
        n->x = x;
        return true;
    }
    const struct tare_edge scale = network_unary(n, "Sigmoid", n->x.edge);
    n->x = x;
    n->x.edge = network_binary(n, "Mul", x.edge, scale);
    return true;
}

const struct network_layer network_conv_layers[] = {
    { .name = "conv", .rank = 4, .weight = 10, .add = network_conv },
    { .name = "depthwise", .rank = 4, .weight = 6, .add = depthwise },
    { .name = "inverted_residual", .rank = 4, .weight = 5, .add = inverted_residual },
    { .name = "blocks_conv", .rank = 4, .weight = 2, .add = blocks_conv },
    { .name = "squeeze_and_excite", .rank = 4, .weight = 1, .add = squeeze_and_excite },
    { 0 },
};
