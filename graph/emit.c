/* Building nodes one by one. */
#include "graph/emit.h"
#include "graph/model.h"
#include "graph/op.h"
#include "base/tensor/number.h"

#include <stdio.h>

static struct tare_edge failed(struct tare_emit *emit, tare_status status) {
    if (emit->status == TARE_OK) emit->status = status;
    return (struct tare_edge){ NULL, 0 };
}

static const char *full_name(struct tare_emit *emit, const char *name) {
    return tare_arena_printf(&emit->graph->model->arena, "%s/%s", emit->prefix, name);
}

struct tare_edge tare_emit_resolved(struct tare_emit *emit, struct tare_node *node) {
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(node);
    return (struct tare_edge){ node, 0 };
}

/* ---- constants ---- */

struct tare_edge tare_emit_const(struct tare_emit *emit, const char *name, const struct tare_tensor *value) {
    const char *full = full_name(emit, name);
    struct tare_node *node;
    if (emit->status != TARE_OK) return (struct tare_edge){ NULL, 0 };
    node = full ? tare_graph_add_const(emit->graph, full, value) : NULL;
    return node ? (struct tare_edge){ node, 0 } : failed(emit, TARE_NO_MEMORY);
}

static struct tare_edge emit_values(struct tare_emit *emit, const char *name, int dtype, const struct tare_shape *shape,
                                    const void *values) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor tensor;
    struct tare_edge edge;
    tare_status status = tare_tensor_from(&tensor, dtype, shape ? shape : &scalar, values);
    if (status != TARE_OK) return failed(emit, status);
    edge = tare_emit_const(emit, name, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_emit_f32(struct tare_emit *emit, const char *name, float value) {
    return emit_values(emit, name, TARE_DT_FLOAT, NULL, &value);
}

struct tare_edge tare_emit_i32(struct tare_emit *emit, const char *name, int32_t value) {
    return emit_values(emit, name, TARE_DT_INT32, NULL, &value);
}

struct tare_edge tare_emit_i8(struct tare_emit *emit, const char *name, int8_t value) {
    return emit_values(emit, name, TARE_DT_INT8, NULL, &value);
}

struct tare_edge tare_emit_number(struct tare_emit *emit, const char *name, int dtype, int64_t value) {
    const union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        uint16_t bits;
    } numbers[] = { { .i8 = (int8_t)value },
                    { .i16 = (int16_t)value },
                    { .i32 = (int32_t)value },
                    { .i64 = value },
                    { .f32 = (float)value },
                    { .bits = tare_bfloat16_from_double(value) },
                    { .bits = tare_half_from_double(value) } };
    static const int dtypes[] = { TARE_DT_INT8,  TARE_DT_INT16,    TARE_DT_INT32, TARE_DT_INT64,
                                  TARE_DT_FLOAT, TARE_DT_BFLOAT16, TARE_DT_HALF };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i] == dtype) return emit_values(emit, name, dtype, NULL, &numbers[i]);
    return failed(emit, emit->status == TARE_OK ? TARE_FAIL(TARE_INTERNAL, "%s: no constants of dtype %d", name, dtype)
                                                : emit->status);
}

struct tare_edge tare_emit_floats(struct tare_emit *emit, const char *name, const struct tare_shape *shape,
                                  const double *values) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor tensor;
    struct tare_edge edge;
    tare_status status = tare_tensor_new(&tensor, TARE_DT_FLOAT, shape ? shape : &scalar);
    if (status != TARE_OK) return failed(emit, status);
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = (float)values[i];
    edge = tare_emit_const(emit, name, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_emit_ints(struct tare_emit *emit, const char *name, const struct tare_shape *shape,
                                const int32_t *values) {
    return emit_values(emit, name, TARE_DT_INT32, shape, values);
}

struct tare_edge tare_emit_longs(struct tare_emit *emit, const char *name, const struct tare_shape *shape,
                                 const int64_t *values) {
    return emit_values(emit, name, TARE_DT_INT64, shape, values);
}

struct tare_edge tare_emit_vector(struct tare_emit *emit, const char *name, int64_t count, const int32_t *values) {
    const struct tare_shape shape = { .rank = 1, .dims = { count } };
    return emit_values(emit, name, TARE_DT_INT32, &shape, values);
}

/* ---- nodes ---- */

static tare_status set_attr(struct tare_node *node, const struct tare_emit_attr *attr) {
    switch (attr->kind) {
    case TARE_EMIT_INT:
        return tare_node_set_int(node, attr->name, attr->value);
    case TARE_EMIT_BOOL:
        return tare_node_set_bool(node, attr->name, attr->value != 0);
    default:
        return tare_node_set_type(node, attr->name, (int)attr->value);
    }
}

struct tare_edge tare_emit_node(struct tare_emit *emit, const char *op, const char *name,
                                const struct tare_edge *inputs, size_t n_inputs, const struct tare_emit_attr *attrs) {
    const char *full = full_name(emit, name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, op, full) : NULL;
    tare_status status = node ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs && status == TARE_OK; i++)
        status = tare_node_add_input(node, inputs[i]);
    if (status == TARE_OK && !attrs) status = tare_node_set_type(node, "T", tare_edge_dtype(inputs[0]));
    for (; attrs && attrs->name && status == TARE_OK; attrs++)
        status = set_attr(node, attrs);
    if (status == TARE_OK) status = tare_node_resolve(node);
    return status == TARE_OK ? (struct tare_edge){ node, 0 } : failed(emit, status);
}

struct tare_edge tare_emit_unary(struct tare_emit *emit, const char *op, const char *name, struct tare_edge x) {
    return tare_emit_node(emit, op, name, &x, 1, NULL);
}

struct tare_edge tare_emit_binary(struct tare_emit *emit, const char *op, const char *name, struct tare_edge x,
                                  struct tare_edge y) {
    const struct tare_edge inputs[] = { x, y };
    return tare_emit_node(emit, op, name, inputs, 2, NULL);
}

struct tare_edge tare_emit_cast(struct tare_emit *emit, const char *name, struct tare_edge x, int dtype) {
    const struct tare_emit_attr attrs[] = { { "SrcT", TARE_EMIT_TYPE,
                                              emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "DstT", TARE_EMIT_TYPE, dtype },
                                            { "Truncate", TARE_EMIT_BOOL, false },
                                            { 0 } };
    return tare_emit_node(emit, "Cast", name, &x, 1, attrs);
}

struct tare_edge tare_emit_float(struct tare_emit *emit, const char *name, struct tare_edge x) {
    if (emit->status != TARE_OK || tare_edge_dtype(x) == TARE_DT_FLOAT) return x;
    return tare_emit_cast(emit, name, x, TARE_DT_FLOAT);
}

struct tare_edge tare_emit_reshape(struct tare_emit *emit, const char *name, struct tare_edge x,
                                   const struct tare_shape *shape) {
    int32_t dims[TARE_MAX_RANK];
    char constant[64];
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "Tshape", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    struct tare_edge inputs[2] = { x };
    for (int i = 0; i < shape->rank; i++)
        dims[i] = (int32_t)shape->dims[i];
    snprintf(constant, sizeof constant, "%s/shape", name);
    inputs[1] = tare_emit_vector(emit, constant, shape->rank, dims);
    return tare_emit_node(emit, "Reshape", name, inputs, 2, attrs);
}
