#include "support/quantized_layers.h"

#include "interpreter/ops/support/dims_wire.h"

#include <stdio.h>
#include <string.h>

uint32_t layers_seed = 5;
static uint32_t next(void) {
    layers_seed = layers_seed * 1664525u + 1013904223u;
    return layers_seed >> 8;
}

struct tare_tensor layers_random(int dtype, struct tare_shape shape) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, dtype, &shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        const int byte = (int)(next() & 0xff) - 128;
        if (dtype == TARE_DT_INT8) TARE_DATA(int8_t, &tensor)[i] = (int8_t)byte;
        if (dtype == TARE_DT_INT32) TARE_DATA(int32_t, &tensor)[i] = byte * 100;
        if (dtype == TARE_DT_FLOAT) TARE_DATA(float, &tensor)[i] = (float)byte / 128;
    }
    return tensor;
}

const char *layers_name(const char *prefix, const char *what) {
    static char names[8][64];
    static int count;
    char *name = names[count++ % 8];
    snprintf(name, sizeof names[0], "%s_%s", prefix, what);
    return name;
}

struct tare_edge layers_constant(struct tare_graph *g, const char *name, int dtype, struct tare_shape shape) {
    struct tare_tensor value = layers_random(dtype, shape);
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

struct tare_edge layers_cast(struct tare_graph *g, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(g, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* ---- convolutions ---- */

static void set_conv(struct tare_node *node, int input, int filter) {
    const struct tare_conv_dims dims = { .spatial = 2,
                                         .input_feature = 3,
                                         .kernel_input = 2,
                                         .kernel_output = 3,
                                         .output_feature = 3,
                                         .kernel_spatial = { 0, 1 },
                                         .input_spatial = { 1, 2 },
                                         .output_spatial = { 1, 2 } };
    struct tare_dims_wire wire = { .size = 0 };
    tare_conv_dims_write(&wire, &dims, TARE_CONV_XLA);
    mini_ok(tare_node_set_type(node, "LhsT", input));
    mini_ok(tare_node_set_type(node, "RhsT", filter));
    mini_ok(tare_node_set_type(node, "Tindices", TARE_DT_INT32));
    mini_ok(tare_node_set_type(node, "preferred_element_type", input == TARE_DT_INT8 ? TARE_DT_INT32 : input));
    mini_ok(tare_node_set_string(node, "dimension_numbers", (const char *)wire.bytes, wire.size));
    mini_ok(tare_node_set_string(node, "precision_config", "", 0));
}

static struct tare_edge matrix(struct tare_graph *g, const char *name, int64_t rows, const int32_t *values) {
    const struct tare_shape shape = tare_shape_make(2, rows, (int64_t)2);
    struct tare_tensor value;
    mini_ok(tare_tensor_from(&value, TARE_DT_INT32, &shape, values));
    struct tare_node *node = tare_graph_add_const(g, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge pair(struct tare_graph *g, const char *name, const char *what, int64_t value) {
    const int32_t values[2] = { (int32_t)value, (int32_t)value };
    return mini_ints(g, layers_name(name, what), 2, values);
}

struct tare_edge layers_conv(struct tare_graph *g, const char *name, struct tare_edge x, struct tare_edge filter,
                             struct layers_window window) {
    const int32_t p = (int32_t)window.pad, pads[4] = { p, p, p, p };
    struct tare_node *node = mini_open(g, "XlaConvV2", name, 7, x, filter, pair(g, name, "strides", window.stride),
                                       matrix(g, layers_name(name, "padding"), 2, pads), pair(g, name, "lhs", 1),
                                       pair(g, name, "rhs", window.dilation),
                                       mini_int(g, layers_name(name, "groups"), (int32_t)window.groups));
    set_conv(node, tare_edge_dtype(x), tare_edge_dtype(filter));
    return mini_done(node);
}

struct tare_edge layers_padded(struct tare_graph *g, const char *name, struct tare_edge x, int64_t pad,
                               struct tare_edge value) {
    const int32_t p = (int32_t)pad, around[8] = { 0, 0, p, p, p, p, 0, 0 };
    struct tare_node *node =
        mini_open(g, "PadV2", layers_name(name, "pad"), 3, x, matrix(g, layers_name(name, "around"), 4, around), value);
    mini_ok(tare_node_set_type(node, "T", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(node, "Tpaddings", TARE_DT_INT32));
    return mini_done(node);
}

/* ---- int8 layers ---- */

static struct tare_edge product(struct tare_graph *g, const struct layers_layer *layer, struct tare_edge x) {
    const int64_t outputs = layer->outputs ? layer->outputs : layer->inputs;
    const struct tare_shape scalar = tare_shape_make(0);
    const struct tare_shape shape =
        tare_shape_make(4, layer->kernel, layer->kernel, layer->outputs ? layer->inputs : (int64_t)1, outputs);
    const char *name = layer->name;
    if (layer->kernel > 1)
        x = layers_padded(g, name, x, 1, layers_constant(g, layers_name(name, "zero"), TARE_DT_INT8, scalar));
    return layers_conv(g, name, x, layers_constant(g, layers_name(name, "weight"), TARE_DT_INT8, shape),
                       (struct layers_window){ layer->stride, 1, layer->outputs ? 1 : layer->inputs, 0 });
}

struct tare_edge layers_requantized(struct tare_graph *g, const char *name, struct tare_edge y) {
    y = mini_node(g, "AddV2", layers_name(name, "add"), 2, y, mini_float(g, layers_name(name, "zero_point"), -3));
    y = mini_node(g, "Maximum", layers_name(name, "maximum"), 2, y, mini_float(g, layers_name(name, "low"), -128));
    y = mini_node(g, "Minimum", layers_name(name, "minimum"), 2, y, mini_float(g, layers_name(name, "high"), 127));
    return layers_cast(g, layers_name(name, "int8"), mini_node(g, "Round", layers_name(name, "round"), 1, y),
                       TARE_DT_INT8);
}

struct tare_edge layers_real(struct tare_graph *g, const struct layers_layer *layer, struct tare_edge x) {
    const struct tare_shape vector = tare_shape_make(1, layer->outputs ? layer->outputs : layer->inputs);
    struct tare_edge y = product(g, layer, x);
    const char *name = layer->name;
    y = mini_node(g, "Sub", layers_name(name, "sub"), 2, y,
                  layers_constant(g, layers_name(name, "offset"), TARE_DT_INT32, vector));
    y = layers_cast(g, layers_name(name, "real"), y, TARE_DT_FLOAT);
    return mini_node(g, "Mul", layers_name(name, "mul"), 2, y, mini_float(g, layers_name(name, "scale"), 0.003f));
}

struct tare_edge layers_int8(struct tare_graph *g, const struct layers_layer *layer, struct tare_edge x) {
    return layers_requantized(g, layer->name, layers_real(g, layer, x));
}

/* ---- float layers ---- */

struct tare_edge layers_float(struct tare_graph *g, const char *name, struct tare_edge x, int64_t kernel, int64_t in,
                              int64_t out, int64_t stride) {
    const int64_t strides[4] = { 1, stride, stride, 1 };
    const struct tare_shape shape = tare_shape_make(4, kernel, kernel, in, out ? out : (int64_t)1);
    struct tare_node *node = mini_open(g, out ? "Conv2D" : "DepthwiseConv2dNative", name, 2, x,
                                       layers_constant(g, layers_name(name, "filter"), TARE_DT_FLOAT, shape));
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    x = mini_node(g, "BiasAdd", layers_name(name, "bias"), 2, mini_done(node),
                  layers_constant(g, layers_name(name, "b"), TARE_DT_FLOAT, tare_shape_make(1, out ? out : in)));
    return mini_node(g, "Relu6", layers_name(name, "relu"), 1, x);
}

void layers_assert_same(struct tare_tensor got, struct tare_tensor expected) {
    assert_true(tare_shape_equal(&got.shape, &expected.shape));
    assert_memory_equal(got.data, expected.data, tare_tensor_bytes(&expected));
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

/* Calls of the kernels of one op that a profile of the session counts. */
int64_t layers_calls_of(const struct tare_session *session, const char *op) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    int64_t calls = 0;
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].node->op, op) == 0) calls += rows[i].calls;
    tare_arena_free(&arena);
    return calls;
}

static tare_status ignore(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)arg, (void)node, (void)output, (void)value;
    return TARE_OK;
}

/* A session that runs the steps one by one, since every value is observed. */
struct tare_session *layers_plain_session(const struct tare_graph_model *model) {
    struct tare_session *session = mini_session(model);
    tare_session_observe(session, ignore, NULL, NULL);
    return session;
}
