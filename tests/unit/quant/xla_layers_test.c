/* Layers that are XlaDotV2, XlaDot, XlaConvV2, XlaConv and Conv2DBackpropInput: in every order of dimensions they are
 * quantized to the integers of the same layer as MatMul or Conv2D, by every method, granularity and with GPTQ. */
#include "support/quantized_model.h"

#include "convert/pass.h"
#include "interpreter/kernels/permute.h"
#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

enum { ROWS = 128, IN = 24, OUT = 16 };

static const struct tare_quant_setting settings[] = {
    { .method = &tare_method_static },
    { .method = &tare_method_static, .granularity = TARE_PER_TENSOR },
    { .method = &tare_method_static, .bits = 4 },
    { .method = &tare_method_static, .activation_bits = 16 },
    { .method = &tare_method_dynamic },
    { .method = &tare_method_weight_only },
    { .method = &tare_method_weight_only, .bits = 4, .granularity = TARE_PER_BLOCK, .block = 32 },
    { .method = &tare_method_weight_only, .granularity = TARE_PER_TENSOR },
    { .method = &tare_method_static, .format = TARE_FORMAT_E4M3 },
    { .method = &tare_method_dynamic, .format = TARE_FORMAT_E5M2 },
    { .method = &tare_method_weight_only, .format = TARE_FORMAT_E4M3, .granularity = TARE_PER_BLOCK, .block = 32 },
};

/* One way of writing a layer. */
struct form {
    const char *name;
    void (*build)(struct quantized_model *m, const void *arg);
    const void *arg;
};

static struct tare_tensor outputs_of(const struct form *form, const struct tare_quant_setting *setting,
                                     const char *passes, enum tare_quant_op_set op_set) {
    const struct tare_quant_plan options = {
        .setting = *setting, .min_elements = 1, .op_set = op_set, .depthwise = true
    };
    struct quantized_model m;
    struct tare_tensor out;
    form->build(&m, form->arg);
    if (passes) {
        quantized_model_quantize(&m, &options, passes);
        if (m.report.quantized != 1)
            fail_msg("%s: %s", form->name, m.report.count ? m.report.outcomes[0].refused : "no layer is found");
    }
    out = quantized_model_run(&m);
    quantized_model_end(&m);
    return out;
}

/* All forms have the outputs of the first one, in float and quantized. */
static void check_in(enum tare_quant_op_set op_set, const struct form *forms, size_t count) {
    static const char *const passes[] = { NULL, "", "gptq", "gptq,bias_correction" };
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        if (!tare_quant_method_in(settings[s].method, op_set, (int)settings[s].format)) continue;
        if (op_set != TARE_OP_SET_XLA && settings[s].activation_bits) continue;
        for (size_t p = s ? 1 : 0; p < 4; p++) {
            struct tare_tensor expected = outputs_of(&forms[0], &settings[s], passes[p], op_set);
            for (size_t i = 1; i < count; i++) {
                struct tare_tensor got = outputs_of(&forms[i], &settings[s], passes[p], op_set);
                const double loss = quantized_model_loss(&got, &expected);
                if (!(loss < (p == 3 ? 1e-5 : 1e-10))) /* corrections are means, summed in another order */
                    fail_msg("%s, %s, op set %s, setting %zu%s%s: loss %g", forms[i].name, settings[s].method->name,
                             tare_quant_op_set_names[op_set], s, passes[p] ? ", quantized, " : "",
                             passes[p] ? passes[p] : "", loss);
                tare_tensor_reset(&got);
            }
            tare_tensor_reset(&expected);
        }
    }
}

static void check_forms(const struct form *forms, size_t count) {
    for (enum tare_quant_op_set op_set = TARE_OP_SET_XLA; op_set <= TARE_OP_SET_TF; op_set++)
        check_in(op_set, forms, count);
}

/* ---- tensors ---- */

/* Normal numbers as if the tensor had the axes order[0], order[1] … of `shape`. */
static struct tare_edge permuted_weight(struct quantized_model *m, const struct tare_shape *shape, const int *order) {
    struct tare_shape moved = *shape;
    struct tare_tensor plain, tensor;
    uint64_t seed = 77;
    for (int i = 0; i < shape->rank; i++)
        moved.dims[i] = shape->dims[order[i]];
    mini_ok(tare_tensor_new(&plain, TARE_DT_FLOAT, shape));
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &moved));
    for (int64_t i = 0; i < plain.elements; i++)
        TARE_DATA(float, &plain)[i] = quantized_model_normal(&seed);
    tare_permute(tensor.data, plain.data, sizeof(float), shape->rank, shape->dims, order);
    const struct tare_edge edge = { tare_graph_add_const(m->graph, "w", &tensor), 0 };
    tare_tensor_reset(&plain);
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge permuted(struct quantized_model *m, struct tare_edge x, int rank, const int *order) {
    int32_t axes[TARE_MAX_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = order[i];
    return mini_node(m->graph, "Transpose", "moved", 2, x, mini_ints(m->graph, "order", rank, axes));
}

/* ---- products ---- */

struct dot {
    const char *op;
    int rank;       /* of the activation: 2, or 3 with the contracted axes 4 and 6 */
    int x_order[3]; /* of its axes: batch, then the contracted ones */
    bool weight_first;
    int w_order[3]; /* of the weight's axes: contracted, then the output */
};

static int find(const int *order, int count, int axis) {
    int at = 0;
    while (at < count - 1 && order[at] != axis)
        at++;
    return at;
}

static struct tare_node *open_dot(struct quantized_model *m, const char *op, struct tare_edge a, struct tare_edge b) {
    struct tare_node *node = mini_open(m->graph, op, "dot", 2, a, b);
    if (strcmp(op, "XlaDotV2") == 0) {
        mini_ok(tare_node_set_type(node, "LhsT", TARE_DT_FLOAT));
        mini_ok(tare_node_set_type(node, "RhsT", TARE_DT_FLOAT));
        mini_ok(tare_node_set_type(node, "preferred_element_type", TARE_DT_FLOAT));
    }
    mini_ok(tare_node_set_string(node, "precision_config", "", 0));
    return node;
}

static void build_dot(struct quantized_model *m, const void *arg) {
    const struct dot *d = arg;
    const int swap[] = { 1, 0 }, n = d->rank - 1;
    const int32_t split[] = { -1, 4, 6 };
    const struct tare_shape shape = d->rank == 2 ? tare_shape_make(2, IN, OUT) : tare_shape_make(3, 4, 6, OUT);
    struct tare_dims_wire wire = { .size = 0 };
    int of_x[2], of_w[2];
    quantized_model_begin(m, ROWS, IN, 1, 91);
    struct tare_edge x = m->in;
    if (d->rank == 3) x = mini_node(m->graph, "Reshape", "split", 2, x, mini_ints(m->graph, "shape", 3, split));
    x = permuted(m, x, d->rank, d->x_order);
    const struct tare_edge w = permuted_weight(m, &shape, d->w_order);
    for (int i = 0; i < n; i++) {
        of_x[i] = find(d->x_order, d->rank, i + 1);
        of_w[i] = find(d->w_order, d->rank, i);
    }
    tare_dims_put_list(&wire, 1, d->weight_first ? of_w : of_x, n);
    tare_dims_put_list(&wire, 2, d->weight_first ? of_x : of_w, n);
    struct tare_node *node = d->weight_first ? open_dot(m, d->op, w, x) : open_dot(m, d->op, x, w);
    mini_ok(tare_node_set_string(node, "dimension_numbers", wire.bytes, wire.size));
    const struct tare_edge y = mini_done(node);
    quantized_model_return(m, d->weight_first ? permuted(m, y, 2, swap) : y);
}

static void build_matmul(struct quantized_model *m, const void *arg) {
    const int plain[] = { 0, 1 };
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    (void)arg;
    quantized_model_begin(m, ROWS, IN, 1, 91);
    quantized_model_return(m, mini_node(m->graph, "MatMul", "dot", 2, m->in, permuted_weight(m, &shape, plain)));
}

/* The transposed layer, whose first operand is the weight. */
static void build_weight_first(struct quantized_model *m, const void *arg) {
    const int swap[] = { 1, 0 }, *transposed = arg;
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    const int order[] = { transposed[0] ? 0 : 1, transposed[0] ? 1 : 0 };
    quantized_model_begin(m, ROWS, IN, 1, 91);
    const struct tare_edge w = permuted_weight(m, &shape, order);
    struct tare_node *node =
        mini_open(m->graph, "MatMul", "dot", 2, w, transposed[1] ? m->in : permuted(m, m->in, 2, swap));
    mini_ok(tare_node_set_bool(node, "transpose_a", transposed[0]));
    mini_ok(tare_node_set_bool(node, "transpose_b", transposed[1]));
    quantized_model_return(m, permuted(m, mini_done(node), 2, swap));
}

static void build_batch_weight_first(struct quantized_model *m, const void *arg) {
    const int swap[] = { 1, 0 }, *adjoint = arg;
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    const int order[] = { adjoint[0] ? 0 : 1, adjoint[0] ? 1 : 0 };
    quantized_model_begin(m, ROWS, IN, 1, 91);
    const struct tare_edge w = permuted_weight(m, &shape, order);
    struct tare_edge x = permuted(m, m->in, 2, swap); /* of known rank */
    if (adjoint[1]) x = permuted(m, x, 2, swap);
    struct tare_node *node = mini_open(m->graph, "BatchMatMulV2", "dot", 2, w, x);
    mini_ok(tare_node_set_bool(node, "adj_x", adjoint[0]));
    mini_ok(tare_node_set_bool(node, "adj_y", adjoint[1]));
    quantized_model_return(m, permuted(m, mini_done(node), 2, swap));
}

static void products__with_the_weight_first_have_the_integers_of_a_matmul(void **state) {
    static const int transposed[][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
    struct form forms[5] = { { "MatMul", build_matmul, NULL } };
    (void)state;
    for (size_t i = 0; i < 4; i++)
        forms[i + 1] = (struct form){ "MatMul with the weight first", build_weight_first, transposed[i] };
    check_forms(forms, 5);
}

static void batch_products__with_the_weight_first_have_the_integers_of_a_matmul(void **state) {
    static const int adjoint[][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
    const struct form plain = { "MatMul", build_matmul, NULL };
    (void)state;
    for (size_t i = 0; i < 4 * sizeof settings / sizeof *settings; i++) {
        const struct form form = { "BatchMatMulV2 with the weight first", build_batch_weight_first, adjoint[i % 4] };
        const struct tare_quant_setting *setting = &settings[i / 4];
        struct tare_tensor expected = outputs_of(&plain, setting, "", TARE_OP_SET_XLA);
        struct tare_tensor got = outputs_of(&form, setting, "", TARE_OP_SET_XLA);
        assert_true(quantized_model_loss(&got, &expected) < 1e-10);
        tare_tensor_reset(&expected);
        tare_tensor_reset(&got);
    }
}

static void products__of_any_dimension_numbers_have_the_integers_of_a_matmul(void **state) {
    static const struct dot dots[] = {
        { "XlaDotV2", 2, { 0, 1 }, false, { 0, 1 } },       { "XlaDot", 2, { 1, 0 }, false, { 1, 0 } },
        { "XlaDotV2", 2, { 0, 1 }, true, { 0, 1 } },        { "XlaDot", 2, { 1, 0 }, true, { 1, 0 } },
        { "XlaDotV2", 3, { 0, 1, 2 }, false, { 2, 0, 1 } }, { "XlaDotV2", 3, { 1, 0, 2 }, false, { 0, 1, 2 } },
        { "XlaDot", 3, { 1, 2, 0 }, true, { 0, 2, 1 } },
    };
    struct form forms[8] = { { "MatMul", build_matmul, NULL } };
    (void)state;
    for (size_t i = 0; i < 7; i++)
        forms[i + 1] = (struct form){ dots[i].op, build_dot, &dots[i] };
    check_forms(forms, 8);
}

/* ---- convolutions ---- */

struct conv {
    const char *op; /* NULL: Conv2D of the padded input */
    int spatial;    /* 2, or 1: images of one line */
    int x_order[4], w_order[4], y_order[4];
    int64_t window[2][4]; /* of each spatial dimension: stride, low, high, base dilation */
    int groups;
    bool of_batch; /* the groups are groups of the batch */
};

static struct tare_edge longs(struct quantized_model *m, const char *name, int rank, int64_t rows, int64_t columns,
                              const int64_t *values) {
    struct tare_shape shape = { .rank = rank, .dims = { rows, columns } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_INT64, &shape, values));
    const struct tare_edge edge = { tare_graph_add_const(m->graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

/* The images: [ROWS, 24] as 2 x 3 with 4 channels, or as lines of 6. */
static struct tare_edge images(struct quantized_model *m, int spatial) {
    const int32_t plane[] = { -1, 2, 3, 4 }, line[] = { -1, 6, 4 };
    quantized_model_begin(m, ROWS, IN, 1, 93);
    const struct tare_edge x = mini_node(m->graph, "Relu", "relu", 1, m->in);
    return mini_node(m->graph, "Reshape", "image", 2, x,
                     mini_ints(m->graph, "shape", spatial + 2, spatial == 2 ? plane : line));
}

static struct tare_shape filter_shape(const struct conv *c) {
    return c->spatial == 2 ? tare_shape_make(4, 2, 2, 4 / c->groups, OUT) : tare_shape_make(3, 3, 4 / c->groups, OUT);
}

/* Padding, cutting and inserting zeros first, then a Conv2D without padding. */
static void build_conv2d(struct quantized_model *m, const void *arg) {
    const struct conv *c = arg;
    const int plain[] = { 0, 1, 2, 3 };
    struct tare_shape shape = filter_shape(c);
    int64_t parts[3][4] = { { 0 } }, strides[4] = { 1, 1, 1, 1 };
    struct tare_edge x = images(m, c->spatial), w;
    for (int i = 0; i < c->spatial; i++) {
        strides[i + 3 - c->spatial] = c->window[i][0];
        parts[0][i + 1] = c->window[i][1];
        parts[1][i + 1] = c->window[i][2];
        parts[2][i + 1] = c->window[i][3] - 1;
    }
    const int n = c->spatial + 2;
    x = mini_node(m->graph, "XlaPad", "padded", 5, x, mini_float(m->graph, "zero", 0),
                  longs(m, "low", 1, n, 0, parts[0]), longs(m, "high", 1, n, 0, parts[1]),
                  longs(m, "between", 1, n, 0, parts[2]));
    w = permuted_weight(m, &shape, plain);
    if (c->spatial == 1) {
        const int32_t whole[] = { 1, 3, (int32_t)shape.dims[1], OUT };
        x = mini_node(m->graph, "ExpandDims", "lines", 2, x, mini_int(m->graph, "one", 1));
        w = mini_node(m->graph, "Reshape", "filter", 2, w, mini_ints(m->graph, "whole", 4, whole));
        struct tare_tensor same;
        const struct tare_shape four = tare_shape_make(4, 1, 3, (int)shape.dims[1], OUT);
        mini_ok(tare_tensor_share_as(&same, tare_node_tensor(w.node->inputs[0].node, "value"), &four));
        w = (struct tare_edge){ tare_graph_add_const(m->graph, "w4", &same), 0 };
        tare_tensor_reset(&same);
    }
    struct tare_node *conv = mini_open(m->graph, "Conv2D", "conv", 2, x, w);
    mini_ok(tare_node_set_string(conv, "padding", "VALID", 5));
    mini_ok(tare_node_set_int_list(conv, "strides", strides, 4));
    quantized_model_return(m, mini_done(conv));
}

static void set_dims(struct tare_conv_dims *dims, const struct conv *c) {
    const int n = c->spatial + 2;
    *dims = (struct tare_conv_dims){ .spatial = c->spatial,
                                     .input_batch = find(c->x_order, n, 0),
                                     .input_feature = find(c->x_order, n, n - 1),
                                     .kernel_input = find(c->w_order, n, c->spatial),
                                     .kernel_output = find(c->w_order, n, n - 1),
                                     .output_batch = find(c->y_order, n, 0),
                                     .output_feature = find(c->y_order, n, n - 1) };
    for (int i = 0; i < c->spatial; i++) {
        dims->input_spatial[i] = find(c->x_order, n, i + 1);
        dims->kernel_spatial[i] = find(c->w_order, n, i);
        dims->output_spatial[i] = find(c->y_order, n, i + 1);
    }
}

/* [n, 2, 3, groups * channels] as [groups * n, 2, 3, channels]. */
static struct tare_edge batch_groups(struct quantized_model *m, struct tare_edge x, int groups) {
    const int32_t split[] = { -1, 2, 3, groups, 4 / groups }, joined[] = { -1, 2, 3, 4 / groups };
    const int order[] = { 3, 0, 1, 2, 4 };
    x = mini_node(m->graph, "Reshape", "groups", 2, x, mini_ints(m->graph, "split", 5, split));
    return mini_node(m->graph, "Reshape", "joined", 2, permuted(m, x, 5, order),
                     mini_ints(m->graph, "joined", 4, joined));
}

static void build_xla_conv(struct quantized_model *m, const void *arg) {
    const struct conv *c = arg;
    const struct tare_shape shape = filter_shape(c);
    const int n = c->spatial + 2;
    int64_t strides[2], pads[4], bases[2], ones[] = { 1, 1 };
    const int64_t groups = c->of_batch ? 1 : c->groups;
    struct tare_dims_wire wire = { .size = 0 };
    struct tare_conv_dims dims;
    int back[4];
    for (int i = 0; i < c->spatial; i++) {
        strides[i] = c->window[i][0];
        pads[2 * i] = c->window[i][1];
        pads[2 * i + 1] = c->window[i][2];
        bases[i] = c->window[i][3];
    }
    struct tare_edge x = images(m, c->spatial);
    if (c->of_batch) x = batch_groups(m, x, c->groups);
    x = permuted(m, x, n, c->x_order);
    struct tare_node *conv =
        mini_open(m->graph, c->op, "conv", 7, x, permuted_weight(m, &shape, c->w_order),
                  longs(m, "strides", 1, c->spatial, 0, strides), longs(m, "pads", 2, c->spatial, 2, pads),
                  longs(m, "bases", 1, c->spatial, 0, bases), longs(m, "dilations", 1, c->spatial, 0, ones),
                  longs(m, "groups", 0, 0, 0, &groups));
    set_dims(&dims, c);
    tare_conv_dims_write(&wire, &dims, TARE_CONV_XLA);
    mini_ok(tare_node_set_type(conv, "Tindices", TARE_DT_INT64));
    if (strcmp(c->op, "XlaConvV2") == 0) {
        mini_ok(tare_node_set_type(conv, "LhsT", TARE_DT_FLOAT));
        mini_ok(tare_node_set_type(conv, "RhsT", TARE_DT_FLOAT));
        mini_ok(tare_node_set_type(conv, "preferred_element_type", TARE_DT_FLOAT));
        mini_ok(tare_node_set_int(conv, "batch_group_count", c->of_batch ? c->groups : 1));
    }
    mini_ok(tare_node_set_string(conv, "precision_config", "", 0));
    mini_ok(tare_node_set_string(conv, "dimension_numbers", wire.bytes, wire.size));
    const struct tare_edge y = mini_done(conv);
    for (int i = 0; i < n; i++)
        back[i] = find(c->y_order, n, i);
    quantized_model_return(m, permuted(m, y, n, back));
}

/* Forms of a convolution, of which the first is a Conv2D. */
static void set_forms(struct form forms[4], const struct conv *convs, size_t count) {
    forms[0] = (struct form){ "Conv2D", build_conv2d, &convs[0] };
    for (size_t i = 0; i < count; i++)
        forms[i + 1] = (struct form){ convs[i].op, build_xla_conv, &convs[i] };
}

static void check_conv(const struct conv *convs, size_t count) {
    struct form forms[4];
    set_forms(forms, convs, count);
    check_forms(forms, count + 1);
}

#define CHANNELS_LAST                                                                                                  \
    { 0, 1, 2, 3 }, { 0, 1, 2, 3 }, {                                                                                  \
        0, 1, 2, 3                                                                                                     \
    }
#define CHANNELS_FIRST                                                                                                 \
    { 0, 3, 1, 2 }, { 3, 2, 0, 1 }, {                                                                                  \
        0, 3, 1, 2                                                                                                     \
    }
#define MIXED                                                                                                          \
    { 1, 0, 3, 2 }, { 0, 3, 1, 2 }, {                                                                                  \
        3, 2, 1, 0                                                                                                     \
    }

static void convolutions__of_any_order_have_the_integers_of_a_conv2d(void **state) {
    const struct conv convs[] = {
        { "XlaConvV2", 2, CHANNELS_LAST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 1, false },
        { "XlaConv", 2, CHANNELS_FIRST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 1, false },
        { "XlaConvV2", 2, MIXED, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 1, false },
    };
    (void)state;
    check_conv(convs, 3);
}

/* What a transposed convolution is: zeros between the elements. */
static void convolutions__with_gaps_pad_by_the_zero_point(void **state) {
    const struct conv convs[] = {
        { "XlaConvV2", 2, CHANNELS_LAST, { { 1, 1, 1, 2 }, { 2, 2, 1, 3 } }, 1, false },
        { "XlaConv", 2, CHANNELS_FIRST, { { 1, 1, 1, 2 }, { 2, 2, 1, 3 } }, 1, false },
    };
    struct form forms[4];
    (void)state;
    set_forms(forms, convs, 2);
    check_in(TARE_OP_SET_XLA, forms, 3);
    check_in(TARE_OP_SET_UNIFORM_QUANTIZED, forms, 3);
}

/* An image of one element: Conv2D, or XlaConvV2 with the arguments of a convolution. */
static void build_one_place(struct quantized_model *m, const void *arg) {
    const char *op = arg;
    const int plain[] = { 0, 1, 2, 3 };
    const int32_t image[] = { -1, 1, 1, IN }, flat[] = { -1, OUT };
    const int64_t strides[] = { 1, 2, 2, 1 }, ones[] = { 1, 1 }, pads[4] = { 0 }, groups = 1;
    const struct tare_shape shape = tare_shape_make(4, 1, 1, IN, OUT);
    const struct conv dims_of = {
        .spatial = 2, .x_order = { 0, 1, 2, 3 }, .w_order = { 0, 1, 2, 3 }, .y_order = { 0, 1, 2, 3 }
    };
    struct tare_dims_wire wire = { .size = 0 };
    struct tare_conv_dims dims;
    struct tare_node *conv;
    quantized_model_begin(m, ROWS, IN, 1, 91);
    const struct tare_edge x =
        mini_node(m->graph, "Reshape", "image", 2, m->in, mini_ints(m->graph, "shape", 4, image));
    const struct tare_edge w = permuted_weight(m, &shape, plain);
    if (strcmp(op, "Conv2D") == 0) {
        conv = mini_open(m->graph, op, "conv", 2, x, w);
        mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
        mini_ok(tare_node_set_int_list(conv, "strides", strides, 4));
    } else {
        conv = mini_open(m->graph, op, "conv", 7, x, w, longs(m, "strides", 1, 2, 0, ones),
                         longs(m, "pads", 2, 2, 2, pads), longs(m, "bases", 1, 2, 0, ones),
                         longs(m, "dilations", 1, 2, 0, ones), longs(m, "groups", 0, 0, 0, &groups));
        set_dims(&dims, &dims_of);
        tare_conv_dims_write(&wire, &dims, TARE_CONV_XLA);
        mini_ok(tare_node_set_type(conv, "Tindices", TARE_DT_INT64));
        mini_ok(tare_node_set_string(conv, "precision_config", "", 0));
        mini_ok(tare_node_set_string(conv, "dimension_numbers", wire.bytes, wire.size));
    }
    quantized_model_return(
        m, mini_node(m->graph, "Reshape", "flat", 2, mini_done(conv), mini_ints(m->graph, "flat", 2, flat)));
}

static bool has_op(const struct tare_graph *graph, const char *op) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_node_is(graph->nodes[i], op)) return true;
    return false;
}

/* XLA on CPUs computes int8 convolutions of such images incorrectly. */
static void convolutions__of_one_element_are_products(void **state) {
    const struct form forms[] = { { "MatMul", build_matmul, NULL },
                                  { "Conv2D", build_one_place, "Conv2D" },
                                  { "XlaConv", build_one_place, "XlaConv" } };
    (void)state;
    check_in(TARE_OP_SET_XLA, forms, 3);
    for (size_t i = 1; i < 3; i++) {
        const struct tare_quant_plan options = { .setting = settings[0], .min_elements = 1 };
        struct quantized_model m;
        forms[i].build(&m, forms[i].arg);
        quantized_model_quantize(&m, &options, "");
        assert_true(has_op(m.graph, "XlaDotV2"));
        assert_false(has_op(m.graph, "XlaConvV2"));
        quantized_model_end(&m);
    }
}

/* ---- transposed convolutions ---- */

/* The convolution that it is, without strides of its own, and the op's attributes. */
struct transposed {
    struct conv conv;
    const char *padding;
    int64_t strides[2], explicit_low;
    int32_t sizes[2]; /* of the result */
    int32_t channels; /* of the result; 0: OUT */
    bool open_height; /* computed from the number of records */
};

/* permuted_weight of [2, 2, in, out] with the last two axes exchanged, both spatial axes reversed. */
static struct tare_edge reversed_weight(struct quantized_model *m, const struct conv *c) {
    const int exchanged[] = { 0, 1, 3, 2 };
    const struct tare_shape shape = filter_shape(c);
    const struct tare_edge w = permuted_weight(m, &shape, exchanged);
    const struct tare_tensor *plain = tare_node_tensor(w.node, "value");
    const int64_t tap = plain->elements / 4;
    struct tare_tensor reversed;
    mini_ok(tare_tensor_new(&reversed, TARE_DT_FLOAT, &plain->shape));
    for (int64_t i = 0; i < 4; i++)
        memcpy(TARE_DATA(float, &reversed) + i * tap, TARE_CONST_DATA(float, plain) + (3 - i) * tap,
               (size_t)tap * sizeof(float));
    const struct tare_edge edge = { tare_graph_add_const(m->graph, "reversed", &reversed), 0 };
    tare_tensor_reset(&reversed);
    return edge;
}

/* As Keras exports it: only the batch of the sizes is not constant. */
static struct tare_edge open_sizes(struct quantized_model *m, struct tare_edge x, const struct transposed *t) {
    const struct tare_edge batch = mini_node(
        m->graph, "Gather", "batch", 2, mini_node(m->graph, "Shape", "shape", 1, x), mini_int(m->graph, "first", 0));
    struct tare_edge height = mini_int(m->graph, "height", t->sizes[0]);
    if (t->open_height) {
        const struct tare_edge none = mini_node(m->graph, "Sub", "none", 2, batch, batch);
        height = mini_node(m->graph, "AddV2", "open_height", 2, height, none);
    }
    return mini_node(m->graph, "Pack", "sizes", 4, batch, height, mini_int(m->graph, "width", t->sizes[1]),
                     mini_int(m->graph, "channels", t->channels ? t->channels : OUT));
}

static void build_transposed(struct quantized_model *m, const void *arg) {
    const struct transposed *t = arg;
    const int64_t strides[] = { 1, t->strides[0], t->strides[1], 1 };
    const int64_t pads[] = { 0, 0, t->explicit_low, 0, t->explicit_low, 0, 0, 0 };
    const struct tare_edge x = images(m, 2);
    struct tare_node *node =
        mini_open(m->graph, "Conv2DBackpropInput", "conv", 3, open_sizes(m, x, t), reversed_weight(m, &t->conv), x);
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", t->padding, strlen(t->padding)));
    if (t->explicit_low) mini_ok(tare_node_set_int_list(node, "explicit_paddings", pads, 8));
    quantized_model_return(m, mini_done(node));
}

static const struct transposed transposed_convs[] = {
    { .conv = { .spatial = 2, .groups = 1, .window = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } } },
      .padding = "VALID",
      .strides = { 1, 1 },
      .sizes = { 3, 4 } },
    { .conv = { .spatial = 2, .groups = 1, .window = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 } } },
      .padding = "VALID",
      .strides = { 2, 2 },
      .sizes = { 4, 6 } },
    { .conv = { .spatial = 2, .groups = 1, .window = { { 1, 1, 1, 2 }, { 1, 1, 2, 3 } } },
      .padding = "VALID",
      .strides = { 2, 3 },
      .sizes = { 4, 9 } },
    { .conv = { .spatial = 2, .groups = 1, .window = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 } } },
      .padding = "SAME",
      .strides = { 2, 2 },
      .sizes = { 4, 6 } },
    { .conv = { .spatial = 2, .groups = 1, .window = { { 1, 1, 0, 2 }, { 1, 1, 0, 2 } } },
      .padding = "SAME",
      .strides = { 2, 2 },
      .sizes = { 3, 5 } },
    { .conv = { .spatial = 2, .groups = 1, .window = { { 1, 0, 1, 2 }, { 1, 0, 1, 2 } } },
      .padding = "EXPLICIT",
      .strides = { 2, 2 },
      .explicit_low = 1,
      .sizes = { 3, 5 } },
};

enum { TRANSPOSED_CONVS = sizeof transposed_convs / sizeof *transposed_convs };

static void transposed_convolutions__have_the_integers_of_a_conv2d(void **state) {
    (void)state;
    for (size_t i = 0; i < TRANSPOSED_CONVS; i++) {
        const struct transposed *t = &transposed_convs[i];
        const struct form forms[] = { { "Conv2D", build_conv2d, &t->conv },
                                      { "Conv2DBackpropInput", build_transposed, t } };
        check_in(TARE_OP_SET_XLA, forms, 2);
        check_in(TARE_OP_SET_UNIFORM_QUANTIZED, forms, 2);
        if (t->strides[0] == 1) check_in(TARE_OP_SET_TF, forms, 2);
    }
}

static void quantize_transposed(struct quantized_model *m, const struct transposed *t,
                                const struct tare_quant_plan *options) {
    build_transposed(m, t);
    quantized_model_quantize(m, options, "");
}

/* The zero point, not 0, is between the elements. With a zero point of 0 the convolution inserts the zeros itself. */
static void transposed_convolutions__pad_by_the_zero_point(void **state) {
    struct tare_quant_plan options = { .setting = settings[0], .min_elements = 1 };
    struct quantized_model m;
    (void)state;
    quantize_transposed(&m, &transposed_convs[1], &options);
    assert_int_equal(m.report.outcomes[0].n_weight_scales, OUT);
    assert_int_equal(quantized_model_count(&m, "Conv2DBackpropInput"), 0);
    assert_int_equal(quantized_model_count(&m, "XlaConvV2"), 1);
    assert_int_equal(quantized_model_count(&m, "XlaPad"), 1);
    quantized_model_end(&m);
    options.setting.symmetric = true;
    quantize_transposed(&m, &transposed_convs[1], &options);
    assert_int_equal(quantized_model_count(&m, "XlaConvV2"), 1);
    assert_int_equal(quantized_model_count(&m, "XlaPad"), 0);
    quantized_model_end(&m);
}

/* A product whose activation has a zero point: number of int32 additions and subtractions of its sums. */
static void expect_constants(bool has_bias, int additions, int subtractions) {
    const struct tare_quant_plan options = { .setting = settings[0], .min_elements = 1 };
    struct quantized_model m;
    quantized_model_begin(&m, ROWS, IN, 1, 5);
    struct tare_edge y =
        mini_node(m.graph, "MatMul", "layer", 2, m.in, quantized_model_weight(&m, "w", IN, OUT, 1, 1, 7));
    if (has_bias) y = mini_node(m.graph, "BiasAdd", "bias", 2, y, quantized_model_weight(&m, "b", 0, OUT, 1, 1, 9));
    quantized_model_return(&m, y);
    quantized_model_quantize(&m, &options, "");
    assert_int_not_equal(m.report.outcomes[0].input.zero_point, 0);
    assert_int_equal(quantized_model_count(&m, "Sub"), subtractions);
    assert_int_equal(quantized_model_count(&m, "AddV2"), 1 + additions); /* one adds the zero point of the input */
    quantized_model_end(&m);
}

static void bias_and_zero_point__are_one_constant(void **state) {
    (void)state;
    expect_constants(true, 1, 0);
    expect_constants(false, 0, 1);
}

static void transposed_convolutions__that_have_no_form_stay_float(void **state) {
    static const struct {
        enum tare_quant_op_set op_set;
        int32_t channels;
        bool open_height;
        const char *reason;
    } cases[] = {
        { TARE_OP_SET_TF, OUT, false,
          "the op set TF has no convolution that inserts zeros between elements or cuts off elements" },
        { TARE_OP_SET_XLA, 2 * OUT, false, "transposed convolutions in groups are not quantized" },
        { TARE_OP_SET_XLA, OUT, true, "a transposed convolution needs images of known sizes" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tare_quant_plan options = { .setting = settings[0], .op_set = cases[i].op_set, .min_elements = 1 };
        struct transposed t = transposed_convs[1];
        struct quantized_model m;
        t.channels = cases[i].channels;
        t.open_height = cases[i].open_height;
        quantize_transposed(&m, &t, &options);
        assert_string_equal(m.report.outcomes[0].refused, cases[i].reason);
        assert_int_equal(quantized_model_count(&m, "Conv2DBackpropInput"), 1);
        quantized_model_end(&m);
    }
}

/* As DepthwiseConv2dNative does: the op is that of another order of dimensions. */
static void depthwise_convolutions__stay_float_unless_requested(void **state) {
    const struct conv conv = { "XlaConvV2", 2, CHANNELS_FIRST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 4, false };
    struct tare_quant_plan options = { .setting = settings[0], .min_elements = 1 };
    struct quantized_model m;
    (void)state;
    build_xla_conv(&m, &conv);
    quantized_model_quantize(&m, &options, "");
    assert_string_equal(m.report.outcomes[0].refused,
                        "DepthwiseConv2D doesn't get any benefit of quantization in XLA.");
    quantized_model_end(&m);
    options.depthwise = true;
    build_xla_conv(&m, &conv);
    quantized_model_quantize(&m, &options, "");
    assert_int_equal(m.report.quantized, 1);
    quantized_model_end(&m);
}

static void convolutions__with_gaps_stay_float_in_the_op_set_tf(void **state) {
    const struct conv conv = { "XlaConvV2", 2, CHANNELS_LAST, { { 1, 1, 1, 2 }, { 2, 2, 1, 3 } }, 1, false };
    const struct tare_quant_plan options = { .setting = settings[0], .op_set = TARE_OP_SET_TF, .min_elements = 1 };
    struct quantized_model m;
    (void)state;
    build_xla_conv(&m, &conv);
    quantized_model_quantize(&m, &options, "");
    assert_int_equal(m.report.quantized, 0);
    assert_string_equal(m.report.outcomes[0].refused,
                        "the op set TF has no convolution that inserts zeros between elements or cuts off elements");
    quantized_model_end(&m);
}

/* Negative padding: a Conv2D would have seen other extremes. */
static void convolutions__that_cut_off_elements_stay_close_to_float(void **state) {
    const struct conv conv = { "XlaConvV2", 2, MIXED, { { 1, 1, 1, 1 }, { 1, -1, 1, 2 } }, 1, false };
    const struct form plain = { "Conv2D", build_conv2d, &conv }, form = { "XlaConvV2", build_xla_conv, &conv };
    struct tare_tensor expected = outputs_of(&plain, &settings[0], NULL, TARE_OP_SET_XLA);
    (void)state;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        struct tare_tensor got = outputs_of(&form, &settings[s], "", TARE_OP_SET_XLA);
        const double most = settings[s].bits == 4                    ? 0.03
                            : settings[s].format == TARE_FORMAT_E5M2 ? 8e-3
                            : settings[s].format == TARE_FORMAT_E4M3 ? 2e-3
                                                                     : 1e-3;
        const double loss = quantized_model_loss(&got, &expected);
        if (!(loss < most)) fail_msg("setting %zu: loss %g", s, loss);
        tare_tensor_reset(&got);
    }
    tare_tensor_reset(&expected);
}

static void convolutions__in_groups_and_of_lines(void **state) {
    const struct conv groups[] = { { "XlaConvV2", 2, CHANNELS_FIRST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 2, false },
                                   { "XlaConvV2", 2, CHANNELS_LAST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 2, false } };
    const struct conv lines[] = {
        { "XlaConvV2", 1, { 0, 1, 2 }, { 0, 1, 2 }, { 0, 1, 2 }, { { 2, 1, 1, 1 } }, 1, false },
        { "XlaConv", 1, { 0, 2, 1 }, { 2, 1, 0 }, { 0, 2, 1 }, { { 2, 1, 1, 1 } }, 1, false }
    };
    (void)state;
    check_conv(groups, 2);
    check_conv(lines, 2);
}

/* As preparation leaves it. */
static void build_split_conv(struct quantized_model *m, const void *arg) {
    size_t changes = 0;
    build_xla_conv(m, arg);
    mini_ok(tare_pass_split_batch_groups.run(m->model, &changes));
    assert_int_equal(changes, 1);
}

static void convolutions__in_groups_of_the_batch(void **state) {
    const struct conv convs[] = {
        { "XlaConvV2", 2, CHANNELS_LAST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 2, true },
        { "XlaConvV2", 2, CHANNELS_FIRST, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 4, true },
        { "XlaConvV2", 2, MIXED, { { 1, 0, 1, 1 }, { 1, 0, 1, 1 } }, 2, true },
    };
    (void)state;
    for (size_t i = 0; i < 3; i++)
        check_forms(
            (const struct form[]){ { "Conv2D", build_conv2d, &convs[i] }, { "split", build_split_conv, &convs[i] } },
            2);
}

static void convolutions__in_groups_of_the_batch_are_computed_by_the_op(void **state) {
    const struct conv conv = { "XlaConvV2", 2, MIXED, { { 1, 1, 1, 1 }, { 2, 0, 1, 1 } }, 2, true };
    const struct form forms[] = { { "Conv2D", build_conv2d, &conv }, { "XlaConvV2", build_xla_conv, &conv } };
    (void)state;
    struct tare_tensor expected = outputs_of(&forms[0], &settings[0], NULL, TARE_OP_SET_XLA);
    struct tare_tensor got = outputs_of(&forms[1], &settings[0], NULL, TARE_OP_SET_XLA);
    assert_true(quantized_model_loss(&got, &expected) < 1e-12);
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products__of_any_dimension_numbers_have_the_integers_of_a_matmul),
        cmocka_unit_test(products__with_the_weight_first_have_the_integers_of_a_matmul),
        cmocka_unit_test(batch_products__with_the_weight_first_have_the_integers_of_a_matmul),
        cmocka_unit_test(convolutions__of_any_order_have_the_integers_of_a_conv2d),
        cmocka_unit_test(convolutions__with_gaps_pad_by_the_zero_point),
        cmocka_unit_test(convolutions__of_one_element_are_products),
        cmocka_unit_test(transposed_convolutions__have_the_integers_of_a_conv2d),
        cmocka_unit_test(transposed_convolutions__pad_by_the_zero_point),
        cmocka_unit_test(bias_and_zero_point__are_one_constant),
        cmocka_unit_test(transposed_convolutions__that_have_no_form_stay_float),
        cmocka_unit_test(depthwise_convolutions__stay_float_unless_requested),
        cmocka_unit_test(convolutions__with_gaps_stay_float_in_the_op_set_tf),
        cmocka_unit_test(convolutions__that_cut_off_elements_stay_close_to_float),
        cmocka_unit_test(convolutions__in_groups_and_of_lines),
        cmocka_unit_test(convolutions__in_groups_of_the_batch),
        cmocka_unit_test(convolutions__in_groups_of_the_batch_are_computed_by_the_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
