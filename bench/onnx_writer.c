/* Writes a signature of a SavedModel as an ONNX file (opset 13), so that another runtime can be measured with the same
 * weights:
 *
 *   onnx_writer MODEL OUT.onnx [SAMPLES.npy]
 *
 * With SAMPLES.npy, an int8 model in QDQ form (onnx_quantize.h) is written, and the random examples whose ranges it
 * has.
 *
 * The prepared model is written: what tare itself runs. Arrays of four dimensions lie channels-first from the first
 * convolution on, as exporters and ONNX Runtime want them; one Transpose stands behind the input. For the ops of
 * convolutional networks with one input and one output; anything else is refused by name. */
#include "convert/prepared_model.h"
#include "onnx_quantize.h"

#include <stdio.h>
#include <string.h>

/* A tensor of the ONNX graph: its name, the shape it has in TensorFlow, and whether it is channels-first there. */
struct value {
    const char *name;
    struct tare_shape shape;
    bool channels_first;
    bool on_grid;                   /* `name` is what a DequantizeLinear returns */
    const struct tare_node *source; /* the node whose range it has */
    const char **quantized;         /* name of the dequantized form, NULL until it is needed; shared by copies */
};

/* A graph that is being written: the main one, or the body of a call. */
struct scope {
    const struct tare_graph *graph;
    struct tare_shape **shapes;
    struct value *done; /* by node position: output 0 */
    const struct value *args;
};

struct writer {
    struct tare_arena arena;
    struct onnx_graph graph;
    struct value input;
    struct tare_node *fed;
    const char *samples; /* NULL: float model */
    struct onnx_ranges ranges;
};

static tare_status write_edge(struct writer *w, const struct scope *scope, struct tare_edge edge, struct value *out);

static tare_status write_input(struct writer *w, const struct scope *scope, const struct tare_node *node, size_t i,
                               struct value *out) {
    if (i >= node->n_inputs) return TARE_FAIL(TARE_INTERNAL, "input %zu is missing", i);
    return write_edge(w, scope, node->inputs[i], out);
}

/* ---- grids ---- */

/* Inserts QuantizeLinear and DequantizeLinear after `x`; nothing in a float model. */
static tare_status put_on_grid(struct writer *w, struct value *x) {
    struct onnx_grid grid;
    if (!w->samples) return TARE_OK;
    TARE_TRY(onnx_grid_of(&grid, &w->ranges, x->source));
    x->name = onnx_quantized(&w->graph, x->name, &grid);
    x->on_grid = true;
    return TARE_OK;
}

/* Input i of a quantized op: its dequantized form, which all quantized users share. */
static tare_status write_quantized_input(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                         size_t i, struct value *out) {
    TARE_TRY(write_input(w, scope, node, i, out));
    if (!w->samples || out->on_grid) return TARE_OK;
    const char **shared = out->quantized;
    if (!*shared) {
        TARE_TRY(put_on_grid(w, out));
        *shared = out->name;
    }
    out->name = *shared;
    out->on_grid = true;
    return TARE_OK;
}

static tare_status start_value(struct writer *w, struct value *out, const struct tare_node *source) {
    out->source = source;
    out->quantized = TARE_NEW(&w->arena, const char *);
    return out->quantized ? TARE_OK : TARE_NO_MEMORY;
}

/* The constant behind input i. */
static tare_status constant_input(const struct tare_node *node, size_t i, const struct tare_tensor **out) {
    *out = i < node->n_inputs ? tare_edge_constant(node->inputs[i]) : NULL;
    return *out ? TARE_OK : TARE_FAIL(TARE_UNSUPPORTED, "input %zu is not constant", i);
}

/* ---- layouts ---- */

static tare_status transpose(struct writer *w, struct value *x, bool channels_first) {
    static const int64_t orders[2][4] = { { 0, 2, 3, 1 }, { 0, 3, 1, 2 } };
    if (x->shape.rank != 4 || x->channels_first == channels_first) return TARE_OK;
    const struct onnx_attr attrs[] = { { .name = "perm", .ints = orders[channels_first], .count = 4 } };
    x->name = onnx_node(&w->graph, "Transpose", (const char *[]){ x->name }, 1, attrs, 1);
    x->channels_first = channels_first;
    return x->on_grid ? put_on_grid(w, x) : TARE_OK;
}

/* The elements of a weight in an array of shape `dims`; steps[i] is the distance of neighbours on its axis i. NULL: out
 * of memory. */
static const float *permuted(struct writer *w, const struct tare_tensor *weight, const int64_t dims[4],
                             const int64_t steps[4]) {
    float *values = tare_arena_alloc(&w->arena, (size_t)weight->elements * sizeof(float)), *to = values;
    if (!values) return NULL;
    for (int64_t a = 0; a < dims[0]; a++)
        for (int64_t b = 0; b < dims[1]; b++)
            for (int64_t c = 0; c < dims[2]; c++)
                for (int64_t d = 0; d < dims[3]; d++)
                    *to++ = TARE_DATA(float, weight)[a * steps[0] + b * steps[1] + c * steps[2] + d * steps[3]];
    return values;
}

/* Names of weight and bias of a product: floats, or the dequantized forms of integers. `axis`: of the output channels.
 * bias may be NULL. */
static tare_status write_weights(struct writer *w, const struct value *x, const float *weight, const int64_t *dims,
                                 int64_t rank, int64_t axis, const struct tare_tensor *bias, const char *names[2]) {
    const int64_t channels = dims[axis];
    const float *biases = bias ? TARE_DATA(float, bias) : NULL;
    if (!weight) return TARE_NO_MEMORY;
    if (bias && bias->elements != channels) return TARE_FAIL(TARE_UNSUPPORTED, "a bias that is not per channel");
    if (!w->samples) {
        names[0] = onnx_floats(&w->graph, weight, dims, rank);
        names[1] = bias ? onnx_floats(&w->graph, biases, &channels, 1) : NULL;
        return TARE_OK;
    }
    struct onnx_grid grid;
    float *scales = TARE_NEW_ARRAY(&w->arena, float, (size_t)channels);
    if (!scales) return TARE_NO_MEMORY;
    TARE_TRY(onnx_grid_of(&grid, &w->ranges, x->source));
    names[0] = onnx_quantized_weight(&w->graph, weight, dims, rank, axis, scales);
    names[1] = bias ? onnx_quantized_bias(&w->graph, biases, channels, grid.scale, scales) : NULL;
    return names[0] && (!bias || names[1]) ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- windows ---- */

static int64_t list_at(const struct tare_node *node, const char *name, size_t i) {
    const struct tare_attr *list = tare_node_list(node, name);
    return list && i < list->count ? list->items[i].i : 1;
}

struct window {
    int64_t size[2], strides[2], dilations[2], pads[4]; /* ONNX: all beginnings, then all ends */
};

static tare_status window_of(struct window *window, const struct tare_node *node, const struct tare_shape *in,
                             const struct tare_shape *out) {
    const char *padding = tare_node_string(node, "padding", "VALID");
    if (strcmp(tare_node_string(node, "data_format", "NHWC"), "NHWC") != 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "channels-first windows");
    for (size_t i = 0; i < 2; i++) {
        window->strides[i] = list_at(node, "strides", i + 1);
        window->dilations[i] = list_at(node, "dilations", i + 1);
        const int64_t reach = (window->size[i] - 1) * window->dilations[i] + 1;
        int64_t total = (out->dims[i + 1] - 1) * window->strides[i] + reach - in->dims[i + 1];
        window->pads[i] = window->pads[i + 2] = 0;
        if (strcmp(padding, "EXPLICIT") == 0) {
            window->pads[i] = list_at(node, "explicit_paddings", 2 * i + 2);
            window->pads[i + 2] = list_at(node, "explicit_paddings", 2 * i + 3);
        } else if (strcmp(padding, "SAME") == 0 && total > 0) {
            window->pads[i] = total / 2;
            window->pads[i + 2] = total - total / 2;
        }
    }
    return TARE_OK;
}

static tare_status write_conv(struct writer *w, const struct scope *scope, const struct tare_node *node,
                              const struct tare_tensor *bias, struct value *out) {
    const struct tare_tensor *filter;
    const bool depthwise = strcmp(node->op, "DepthwiseConv2dNative") == 0;
    struct window window;
    struct value x;
    TARE_TRY(write_quantized_input(w, scope, node, 0, &x));
    TARE_TRY(constant_input(node, 1, &filter));
    const int64_t *f = filter->shape.dims;
    const int64_t outputs = depthwise ? f[2] * f[3] : f[3], inputs = depthwise ? 1 : f[2];
    const int64_t dims[4] = { outputs, inputs, f[0], f[1] };
    const int64_t steps[4] = { 1, f[3], f[1] * f[2] * f[3], f[2] * f[3] };
    window.size[0] = f[0], window.size[1] = f[1];
    TARE_TRY(window_of(&window, node, &x.shape, &out->shape));
    TARE_TRY(transpose(w, &x, true));
    const struct onnx_attr attrs[] = {
        { .name = "kernel_shape", .ints = window.size, .count = 2 },
        { .name = "strides", .ints = window.strides, .count = 2 },
        { .name = "dilations", .ints = window.dilations, .count = 2 },
        { .name = "pads", .ints = window.pads, .count = 4 },
        { .name = "group", .i = x.shape.dims[3] / inputs },
    };
    const char *operands[3] = { x.name };
    TARE_TRY(write_weights(w, &x, permuted(w, filter, dims, steps), dims, 4, 0, bias, &operands[1]));
    out->name = onnx_node(&w->graph, "Conv", operands, bias ? 3 : 2, attrs, 5);
    out->channels_first = true;
    return TARE_OK;
}

static tare_status write_matmul(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                const struct tare_tensor *bias, struct value *out) {
    const bool transposed = tare_node_bool(node, "transpose_b", false);
    const struct tare_tensor *weight;
    struct value x;
    TARE_TRY(write_quantized_input(w, scope, node, 0, &x));
    TARE_TRY(constant_input(node, 1, &weight));
    const struct onnx_attr attrs[] = { { .name = "transA", .i = tare_node_bool(node, "transpose_a", false) },
                                       { .name = "transB", .i = transposed } };
    const char *inputs[3] = { x.name };
    TARE_TRY(write_weights(w, &x, TARE_DATA(float, weight), weight->shape.dims, 2, !transposed, bias, &inputs[1]));
    out->name = onnx_node(&w->graph, "Gemm", inputs, bias ? 3 : 2, attrs, 2);
    return TARE_OK;
}

/* A product with weights, and the bias that its user adds; NULL: none. */
static tare_status write_product(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                 const struct tare_tensor *bias, struct value *out) {
    return strcmp(node->op, "MatMul") == 0 ? write_matmul(w, scope, node, bias, out)
                                           : write_conv(w, scope, node, bias, out);
}

static tare_status write_product_alone(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                       struct value *out) {
    return write_product(w, scope, node, NULL, out);
}

static tare_status write_pool(struct writer *w, const struct scope *scope, const struct tare_node *node,
                              struct value *out) {
    const bool mean = strcmp(node->op, "AvgPool") == 0;
    struct window window = { .size = { list_at(node, "ksize", 1), list_at(node, "ksize", 2) } };
    struct value x;
    TARE_TRY(write_quantized_input(w, scope, node, 0, &x));
    TARE_TRY(window_of(&window, node, &x.shape, &out->shape));
    TARE_TRY(transpose(w, &x, true));
    const struct onnx_attr attrs[] = { { .name = "kernel_shape", .ints = window.size, .count = 2 },
                                       { .name = "strides", .ints = window.strides, .count = 2 },
                                       { .name = "pads", .ints = window.pads, .count = 4 } };
    out->name = onnx_node(&w->graph, mean ? "AveragePool" : "MaxPool", (const char *[]){ x.name }, 1, attrs, 3);
    if (!mean) out->source = x.source;
    out->channels_first = true;
    return TARE_OK;
}

/* ---- the rest ---- */

static tare_status write_unary(struct writer *w, const struct scope *scope, const struct tare_node *node,
                               struct value *out) {
    const struct onnx_attr last = { .name = "axis", .i = -1 };
    struct value x;
    TARE_TRY(write_input(w, scope, node, 0, &x));
    const bool softmax = strcmp(node->op, "Softmax") == 0;
    if (softmax) TARE_TRY(transpose(w, &x, false));
    out->name = onnx_node(&w->graph, node->op, (const char *[]){ x.name }, 1, &last, softmax);
    out->channels_first = x.channels_first;
    return TARE_OK;
}

static tare_status write_identity(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                  struct value *out) {
    return write_input(w, scope, node, 0, out);
}

static tare_status write_relu6(struct writer *w, const struct scope *scope, const struct tare_node *node,
                               struct value *out) {
    const float low = 0, high = 6;
    struct value x;
    TARE_TRY(write_input(w, scope, node, 0, &x));
    const char *inputs[3] = { x.name, onnx_floats(&w->graph, &low, NULL, 0), onnx_floats(&w->graph, &high, NULL, 0) };
    out->name = onnx_node(&w->graph, "Clip", inputs, 3, NULL, 0);
    out->channels_first = x.channels_first;
    return TARE_OK;
}

/* A constant of one value a channel (or one in all) beside x. */
static tare_status write_operand(struct writer *w, const struct value *x, const struct tare_tensor *constant,
                                 const char **name) {
    int64_t dims[3] = { constant->elements, 1, 1 };
    if (constant->dtype != TARE_DT_FLOAT || constant->shape.rank > 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "a constant operand of rank %d", constant->shape.rank);
    *name = onnx_floats(&w->graph, TARE_DATA(float, constant), dims,
                        constant->shape.rank == 0 ? 0
                        : x->channels_first       ? 3
                                                  : 1);
    return TARE_OK;
}

/* The node adds a value per channel to a product, which ONNX does in one op. */
static bool is_bias(const struct tare_node *node) {
    static const char *const products[] = { "Conv2D", "DepthwiseConv2dNative", "MatMul" };
    const struct tare_tensor *constant = tare_edge_constant(node->inputs[1]);
    if (!constant || constant->dtype != TARE_DT_FLOAT || constant->shape.rank != 1 || strcmp(node->op, "Mul") == 0)
        return false;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(products[i], node->inputs[0].node->op) == 0) return true;
    return false;
}

static tare_status write_binary(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                struct value *out) {
    static const char *const names[][2] = {
        { "BiasAdd", "Add" }, { "AddV2", "Add" }, { "Add", "Add" }, { "Mul", "Mul" }
    };
    const struct tare_tensor *constant = tare_edge_constant(node->inputs[1]);
    const char *op = NULL, *second;
    struct value x, y;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(names[i][0], node->op) == 0) op = names[i][1];
    if (is_bias(node)) return write_product(w, scope, node->inputs[0].node, constant, out);
    TARE_TRY(constant ? write_input(w, scope, node, 0, &x) : write_quantized_input(w, scope, node, 0, &x));
    if (constant) {
        TARE_TRY(write_operand(w, &x, constant, &second));
    } else {
        TARE_TRY(write_quantized_input(w, scope, node, 1, &y));
        if (x.shape.rank != y.shape.rank) return TARE_FAIL(TARE_UNSUPPORTED, "operands of different rank");
        TARE_TRY(transpose(w, &y, x.channels_first));
        second = y.name;
    }
    out->name = onnx_node(&w->graph, op, (const char *[]){ x.name, second }, 2, NULL, 0);
    out->channels_first = x.channels_first;
    return TARE_OK;
}

static tare_status reshape_to(struct writer *w, const char *x, struct value *out) {
    int64_t dims[TARE_MAX_RANK];
    const int64_t rank = out->shape.rank;
    memcpy(dims, out->shape.dims, sizeof dims);
    dims[0] = -1; /* the batch */
    out->name = onnx_node(&w->graph, "Reshape", (const char *[]){ x, onnx_ints(&w->graph, dims, rank) }, 2, NULL, 0);
    out->channels_first = false;
    return TARE_OK;
}

static tare_status write_mean(struct writer *w, const struct scope *scope, const struct tare_node *node,
                              struct value *out) {
    const struct tare_tensor *axes;
    struct value x;
    TARE_TRY(write_quantized_input(w, scope, node, 0, &x));
    TARE_TRY(constant_input(node, 1, &axes));
    if (x.shape.rank != 4 || axes->elements != 2 || tare_tensor_get_i64(axes, 0) != 1 ||
        tare_tensor_get_i64(axes, 1) != 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "a mean over other axes than height and width");
    TARE_TRY(transpose(w, &x, true));
    struct value mean = *out;
    mean.name = onnx_node(&w->graph, "GlobalAveragePool", (const char *[]){ x.name }, 1, NULL, 0);
    TARE_TRY(put_on_grid(w, &mean));
    return reshape_to(w, mean.name, out);
}

static tare_status write_reshape(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                 struct value *out) {
    struct value x;
    TARE_TRY(write_quantized_input(w, scope, node, 0, &x));
    if (x.shape.rank == 4 && (x.shape.dims[1] > 1 || x.shape.dims[2] > 1)) TARE_TRY(transpose(w, &x, false));
    out->source = x.source;
    return reshape_to(w, x.name, out);
}

typedef tare_status write_function(struct writer *w, const struct scope *scope, const struct tare_node *node,
                                   struct value *out);

static const struct {
    const char *op;
    write_function *write;
} writers[] = {
    { "Conv2D", write_product_alone },
    { "DepthwiseConv2dNative", write_product_alone },
    { "MaxPool", write_pool },
    { "AvgPool", write_pool },
    { "Relu", write_unary },
    { "Sigmoid", write_unary },
    { "Tanh", write_unary },
    { "Softmax", write_unary },
    { "Relu6", write_relu6 },
    { "Identity", write_identity },
    { "BiasAdd", write_binary },
    { "AddV2", write_binary },
    { "Add", write_binary },
    { "Mul", write_binary },
    { "Mean", write_mean },
    { "Reshape", write_reshape },
    { "Squeeze", write_reshape },
    { "MatMul", write_product_alone },
};

/* ---- graphs ---- */

/* The value of a call: its body's return, written with the call's inputs as arguments. */
static tare_status write_call(struct writer *w, const struct scope *scope, struct tare_edge edge, struct value *out) {
    const struct tare_graph *body = tare_node_function(edge.node, "f");
    if (!body || (size_t)edge.index >= body->n_returns) return TARE_FAIL(TARE_UNSUPPORTED, "a call of no function");
    struct value *args = TARE_NEW_ARRAY(&w->arena, struct value, body->n_args + 1);
    struct tare_shape *shapes = TARE_NEW_ARRAY(&w->arena, struct tare_shape, body->n_args + 1);
    struct scope inner = { .graph = body, .args = args };
    inner.done = TARE_NEW_ARRAY(&w->arena, struct value, body->n_nodes + 1);
    if (!args || !shapes || !inner.done) return TARE_NO_MEMORY;
    for (size_t i = 0; i < body->n_args; i++) {
        shapes[i] = tare_shape_unknown();
        if (tare_edge_dtype(edge.node->inputs[i]) != TARE_DT_FLOAT) continue; /* a handle that nothing reads any more */
        TARE_TRY(write_input(w, scope, edge.node, i, &args[i]));
        shapes[i] = args[i].shape;
    }
    TARE_TRY(tare_graph_infer_shapes(&inner.shapes, &w->arena, body, shapes));
    return write_edge(w, &inner, body->returns[edge.index].edge, out);
}

static tare_status write_node(struct writer *w, const struct scope *scope, struct tare_edge edge, struct value *out) {
    if (strcmp(edge.node->op, "StatefulPartitionedCall") == 0 || strcmp(edge.node->op, "PartitionedCall") == 0)
        return write_call(w, scope, edge, out);
    out->shape = scope->shapes[edge.node->position][edge.index];
    if (!tare_shape_is_known(&out->shape)) return TARE_FAIL(TARE_UNSUPPORTED, "the shape is not known");
    TARE_TRY(start_value(w, out, edge.node));
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (strcmp(writers[i].op, edge.node->op) == 0) return writers[i].write(w, scope, edge.node, out);
    return TARE_FAIL(TARE_UNSUPPORTED, "no ONNX form");
}

static tare_status write_edge(struct writer *w, const struct scope *scope, struct tare_edge edge, struct value *out) {
    struct value *done = &scope->done[edge.node->position];
    if (tare_node_is_arg(edge.node)) {
        *out = scope->args[edge.node->position];
        return TARE_OK;
    }
    if (edge.node == w->fed) {
        *out = w->input;
        return TARE_OK;
    }
    if (edge.index != 0) return TARE_FAIL(TARE_UNSUPPORTED, "%s: more than one output", edge.node->name);
    if (!done->name) {
        const tare_status status = write_node(w, scope, edge, done);
        if (status != TARE_OK) return tare_error_prefix(status, "%s (%s)", edge.node->name, edge.node->op);
    }
    *out = *done;
    return TARE_OK;
}

/* Writes the samples and collects the ranges of all tensors over them. */
static tare_status observe(struct writer *w, const struct tare_graph_model *model,
                           const struct tare_signature *signature, struct tare_shape shape) {
    struct tare_tensor samples = { 0 };
    w->ranges.arena = &w->arena;
    tare_status status = onnx_random_samples(&samples, shape);
    if (status == TARE_OK) status = tare_npy_write(w->samples, &samples);
    if (status == TARE_OK) status = onnx_collect_ranges(&w->ranges, model, signature, &samples);
    tare_tensor_reset(&samples);
    return status;
}

static tare_status write_model(struct writer *w, const struct tare_graph_model *model, const char *path) {
    const struct tare_signature *signature;
    struct scope scope = { .graph = model->main };
    struct value result;
    TARE_TRY(tare_pick_signature(&signature, model, NULL));
    if (signature->n_inputs != 1 || signature->n_outputs != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "more than one input or output");
    const struct tare_binding *feed = &signature->inputs[0];
    struct tare_shape shape = feed->shape;
    w->fed = feed->edge.node;
    if (w->samples) TARE_TRY(observe(w, model, signature, shape));
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = 1;
    w->input = (struct value){ .name = feed->key, .shape = shape };
    TARE_TRY(start_value(w, &w->input, w->fed));
    TARE_TRY(tare_node_set_shape(w->fed, "shape", &shape));
    TARE_TRY(tare_graph_infer_shapes(&scope.shapes, &w->arena, model->main, NULL));
    scope.done = TARE_NEW_ARRAY(&w->arena, struct value, model->main->n_nodes + 1);
    if (!scope.done) return TARE_NO_MEMORY;
    TARE_TRY(write_edge(w, &scope, signature->outputs[0].edge, &result));
    TARE_TRY(transpose(w, &result, false));
    return onnx_finish(&w->graph, path, feed->key, &shape, result.name, &result.shape);
}

int main(int argc, char **argv) {
    struct writer w = { 0 };
    struct tare_graph_model *model = NULL;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: onnx_writer MODEL OUT.onnx [SAMPLES.npy]\n");
        return 2;
    }
    w.graph.arena = &w.arena;
    w.samples = argc > 3 ? argv[3] : NULL;
    tare_status status = tare_load_prepared(&model, argv[1]);
    if (status == TARE_OK) status = write_model(&w, model, argv[2]);
    if (status != TARE_OK) fprintf(stderr, "onnx_writer: %s\n", tare_error_text());
    onnx_free(&w.graph);
    tare_arena_free(&w.arena);
    tare_model_free(model);
    return status != TARE_OK;
}
