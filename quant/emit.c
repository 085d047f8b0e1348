/* Building the nodes of a quantized graph. */
#include "quant/emit.h"
#include "graph/model.h"
#include "graph/op.h"

#include <string.h>

static struct tare_edge failed(struct tare_emit *emit, tare_status status) {
    if (emit->status == TARE_OK) emit->status = status;
    return (struct tare_edge){ NULL, 0 };
}

static const char *full_name(struct tare_emit *emit, const char *name) {
    return tare_arena_printf(&emit->graph->model->arena, "%s/%s", emit->prefix, name);
}

struct tare_edge tare_emit_const(struct tare_emit *emit, const char *name, const struct tare_tensor *value) {
    const char *full = full_name(emit, name);
    struct tare_node *node;
    if (emit->status != TARE_OK) return (struct tare_edge){ NULL, 0 };
    node = full ? tare_graph_add_const(emit->graph, full, value) : NULL;
    return node ? (struct tare_edge){ node, 0 } : failed(emit, TARE_NO_MEMORY);
}

static struct tare_edge emit_values(struct tare_emit *emit, const char *name, int dtype, const struct tare_shape *shape,
                                    const void *values) {
    struct tare_tensor tensor;
    struct tare_edge edge;
    tare_status status = tare_tensor_from(&tensor, dtype, shape, values);
    if (status != TARE_OK) return failed(emit, status);
    edge = tare_emit_const(emit, name, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_emit_f32(struct tare_emit *emit, const char *name, float value) {
    struct tare_shape scalar = tare_shape_scalar();
    return emit_values(emit, name, TARE_DT_FLOAT, &scalar, &value);
}

struct tare_edge tare_emit_i32(struct tare_emit *emit, const char *name, int32_t value) {
    struct tare_shape scalar = tare_shape_scalar();
    return emit_values(emit, name, TARE_DT_INT32, &scalar, &value);
}

struct tare_edge tare_emit_floats(struct tare_emit *emit, const char *name, const double *values, int64_t count) {
    struct tare_shape shape = { .rank = count == 1 ? 0 : 1, .dims = { count } };
    struct tare_tensor tensor;
    struct tare_edge edge;
    tare_status status = tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape);
    if (status != TARE_OK) return failed(emit, status);
    for (int64_t i = 0; i < count; i++) TARE_DATA(float, &tensor)[i] = (float)values[i];
    edge = tare_emit_const(emit, name, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_emit_ints(struct tare_emit *emit, const char *name, int rank, const int64_t *dims,
                                const int32_t *values) {
    struct tare_shape shape;
    tare_status status = tare_shape_from_dims(&shape, rank, dims);
    if (status != TARE_OK) return failed(emit, status);
    return emit_values(emit, name, TARE_DT_INT32, &shape, values);
}

static struct tare_edge finish(struct tare_emit *emit, struct tare_node *node, tare_status status) {
    if (status == TARE_OK) status = tare_node_resolve(node);
    return status == TARE_OK ? (struct tare_edge){ node, 0 } : failed(emit, status);
}

static struct tare_node *start(struct tare_emit *emit, const char *op, const char *name) {
    const char *full = full_name(emit, name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, op, full) : NULL;
    if (!node) failed(emit, TARE_NO_MEMORY);
    return node;
}

struct tare_edge tare_emit_unary(struct tare_emit *emit, const char *op, const char *name, struct tare_edge x) {
    struct tare_node *node = start(emit, op, name);
    tare_status status;
    if (!node) return (struct tare_edge){ NULL, 0 };
    status = tare_node_add_input(node, x);
    if (status == TARE_OK) status = tare_node_set_type(node, "T", tare_edge_dtype(x));
    return finish(emit, node, status);
}

struct tare_edge tare_emit_binary(struct tare_emit *emit, const char *op, const char *name, struct tare_edge x,
                                  struct tare_edge y) {
    struct tare_node *node = start(emit, op, name);
    tare_status status;
    if (!node) return (struct tare_edge){ NULL, 0 };
    status = tare_node_add_input(node, x);
    if (status == TARE_OK) status = tare_node_add_input(node, y);
    if (status == TARE_OK) status = tare_node_set_type(node, "T", tare_edge_dtype(x));
    return finish(emit, node, status);
}

struct tare_edge tare_emit_cast(struct tare_emit *emit, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = start(emit, "Cast", name);
    tare_status status;
    if (!node) return (struct tare_edge){ NULL, 0 };
    status = tare_node_add_input(node, x);
    if (status == TARE_OK) status = tare_node_set_type(node, "SrcT", tare_edge_dtype(x));
    if (status == TARE_OK) status = tare_node_set_type(node, "DstT", dtype);
    if (status == TARE_OK) status = tare_node_set_bool(node, "Truncate", false);
    return finish(emit, node, status);
}

struct tare_edge tare_emit_quantize(struct tare_emit *emit, struct tare_edge x, const struct tare_qparams *params) {
    struct tare_edge y =
        tare_emit_binary(emit, "Div", "quantize/div", x, tare_emit_f32(emit, "quantize/scale", (float)params->scale));
    y = tare_emit_binary(emit, "AddV2", "quantize/add", y,
                         tare_emit_f32(emit, "quantize/zero_point", (float)params->zero_point));
    y = tare_emit_binary(emit, "Maximum", "quantize/maximum", y,
                         tare_emit_f32(emit, "quantize/qmin", (float)params->qmin));
    y = tare_emit_binary(emit, "Minimum", "quantize/minimum", y,
                         tare_emit_f32(emit, "quantize/qmax", (float)params->qmax));
    y = tare_emit_unary(emit, "Round", "quantize/round", y);
    return tare_emit_cast(emit, "quantize/cast", y, params->qmax > 127 ? TARE_DT_INT16 : TARE_DT_INT8);
}

struct tare_edge tare_emit_dequantize(struct tare_emit *emit, struct tare_edge q, const struct tare_qparams *params) {
    struct tare_edge y = tare_emit_cast(emit, "dequantize/widen", q, TARE_DT_INT32);
    y = tare_emit_binary(emit, "Sub", "dequantize/sub", y,
                         tare_emit_i32(emit, "dequantize/zero_point", params->zero_point));
    y = tare_emit_cast(emit, "dequantize/cast", y, TARE_DT_FLOAT);
    return tare_emit_binary(emit, "Mul", "dequantize/mul", y,
                            tare_emit_f32(emit, "dequantize/scale", (float)params->scale));
}
