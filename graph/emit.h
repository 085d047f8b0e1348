/* Building the nodes of a rewritten graph. Every function adds one node (or a few) and returns its output. The first
 * failure is kept in `status`, so that rewrites read as formulas and check it once. */
#ifndef TARE_GRAPH_EMIT_H
#define TARE_GRAPH_EMIT_H

#include "graph/graph.h"

struct tare_emit {
    struct tare_graph *graph;
    const char *prefix; /* of node names: the name of the op that is rewritten */
    tare_status status; /* first failure; edges made after it are not usable */
};

/* An attribute of the node to add; an array of them ends with a NULL name. */
struct tare_emit_attr {
    const char *name;
    enum { TARE_EMIT_TYPE, TARE_EMIT_INT, TARE_EMIT_BOOL } kind;
    int64_t value;
};

struct tare_edge tare_emit_f32(struct tare_emit *emit, const char *name, float value);
struct tare_edge tare_emit_i32(struct tare_emit *emit, const char *name, int32_t value);
struct tare_edge tare_emit_i8(struct tare_emit *emit, const char *name, int8_t value);
/* A whole number as a scalar of int8, int16, int32, int64, float32, bfloat16 or half. */
struct tare_edge tare_emit_number(struct tare_emit *emit, const char *name, int dtype, int64_t value);
struct tare_edge tare_emit_const(struct tare_emit *emit, const char *name, const struct tare_tensor *value);
/* Floats of a shape (float32 roundings of `values`); a scalar when the shape is NULL. */
struct tare_edge tare_emit_floats(struct tare_emit *emit, const char *name, const struct tare_shape *shape,
                                  const double *values);
/* int32 and int64 values of a shape. */
struct tare_edge tare_emit_ints(struct tare_emit *emit, const char *name, const struct tare_shape *shape,
                                const int32_t *values);
struct tare_edge tare_emit_longs(struct tare_emit *emit, const char *name, const struct tare_shape *shape,
                                 const int64_t *values);
/* An int32 vector. */
struct tare_edge tare_emit_vector(struct tare_emit *emit, const char *name, int64_t count, const int32_t *values);
/* Any node; attributes NULL: T of the first input. */
struct tare_edge tare_emit_node(struct tare_emit *emit, const char *op, const char *name,
                                const struct tare_edge *inputs, size_t n_inputs, const struct tare_emit_attr *attrs);
/* Output 0 of a node that is complete. */
struct tare_edge tare_emit_resolved(struct tare_emit *emit, struct tare_node *node);
struct tare_edge tare_emit_unary(struct tare_emit *emit, const char *op, const char *name, struct tare_edge x);
struct tare_edge tare_emit_binary(struct tare_emit *emit, const char *op, const char *name, struct tare_edge x,
                                  struct tare_edge y);
struct tare_edge tare_emit_cast(struct tare_emit *emit, const char *name, struct tare_edge x, int dtype);
/* x as float32: x itself, or a Cast of a narrower float. */
struct tare_edge tare_emit_float(struct tare_emit *emit, const char *name, struct tare_edge x);
struct tare_edge tare_emit_reshape(struct tare_emit *emit, const char *name, struct tare_edge x,
                                   const struct tare_shape *shape);

/* Moves the control edges of the users of a node, and the control returns of its graph, to another node. */
void tare_graph_replace_controls(struct tare_node *from, struct tare_node *to);

#endif
