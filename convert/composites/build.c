/* Helpers with which the rows of composite functions check signatures and build bodies. */
#include "convert/composites/build.h"
#include "base/format.h"
#include "graph/definitions/opdef.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- checking ---- */

const struct tare_attr *tare_composing_attr(const struct tare_composing *c, const char *name) {
    for (size_t i = 0; i < c->n_attrs; i++)
        if (strcmp(c->attrs[i].name, name) == 0) return &c->attrs[i];
    return NULL;
}

tare_status tare_composing_decline(struct tare_composing *c, const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    tare_format_va(text, sizeof text, format, values);
    va_end(values);
    c->reason = tare_arena_printf(c->arena, "%s", text);
    return c->reason ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_composing_want(struct tare_composing *c, size_t n_args, size_t n_returns) {
    if (c->reason || (c->graph->n_args == n_args && c->graph->n_returns == n_returns)) return TARE_OK;
    return tare_composing_decline(c, "it has %zu arguments and %zu results (expected %zu and %zu)", c->graph->n_args,
                                  c->graph->n_returns, n_args, n_returns);
}

tare_status tare_composing_verify(const struct tare_composing *c, size_t n_args, size_t n_returns) {
    if (c->graph->n_args == n_args && c->graph->n_returns == n_returns) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "a composite '%s' has %zu arguments and %zu results, this one %zu and %zu: correct its "
                     "experimental_implements",
                     c->name, n_args, n_returns, c->graph->n_args, c->graph->n_returns);
}

struct tare_shape tare_composing_shape(const struct tare_composing *c, size_t arg) {
    return tare_model_shape(c->shapes, tare_composing_arg(c, arg));
}

tare_status tare_composing_expect_arg(struct tare_composing *c, size_t i, int dtype, int rank) {
    const struct tare_node *arg;
    struct tare_shape shape;
    char text[TARE_SHAPE_TEXT_SIZE];
    if (c->reason) return TARE_OK;
    arg = c->graph->args[i];
    shape = tare_composing_shape(c, i);
    if (dtype && arg->output_dtypes[0] != dtype)
        return tare_composing_decline(c, "argument '%s' is %s (expected %s)", arg->name,
                                      tare_dtype_name(arg->output_dtypes[0]), tare_dtype_name(dtype));
    if (rank >= 0 && shape.rank != rank)
        return tare_composing_decline(c, "argument '%s' has shape %s (expected %d dimensions)", arg->name,
                                      tare_shape_text(text, &shape), rank);
    return TARE_OK;
}

struct tare_edge tare_composing_arg(const struct tare_composing *c, size_t i) {
    return (struct tare_edge){ c->graph->args[i], 0 };
}

/* ---- building ---- */

tare_status tare_composing_node(struct tare_node **out, struct tare_composing *c, const char *op, const char *name,
                                size_t n, const struct tare_edge *inputs) {
    *out = tare_graph_add(c->graph, op, name);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        TARE_TRY(tare_node_add_input(*out, inputs[i]));
    return tare_opdef_set_input_attrs(*out);
}

tare_status tare_composing_op(struct tare_edge *out, struct tare_composing *c, const char *op, const char *name,
                              size_t n, const struct tare_edge *inputs) {
    struct tare_node *node;
    TARE_TRY(tare_composing_node(&node, c, op, name, n, inputs));
    *out = (struct tare_edge){ node, 0 };
    return tare_node_resolve(node);
}

static tare_status constant(struct tare_edge *out, struct tare_composing *c, const char *name, int dtype,
                            const struct tare_shape *shape, const void *values) {
    struct tare_tensor tensor;
    TARE_TRY(tare_tensor_from(&tensor, dtype, shape, values));
    *out = (struct tare_edge){ tare_graph_add_const(c->graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return out->node ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_composing_ints(struct tare_edge *out, struct tare_composing *c, const char *name, size_t n,
                                const int32_t *values) {
    struct tare_shape shape = tare_shape_make(1, (int64_t)n);
    return constant(out, c, name, TARE_DT_INT32, &shape, values);
}

tare_status tare_composing_int(struct tare_edge *out, struct tare_composing *c, const char *name, int32_t value) {
    struct tare_shape scalar = tare_shape_scalar();
    return constant(out, c, name, TARE_DT_INT32, &scalar, &value);
}

tare_status tare_composing_float(struct tare_edge *out, struct tare_composing *c, const char *name, float value) {
    struct tare_shape scalar = tare_shape_scalar();
    return constant(out, c, name, TARE_DT_FLOAT, &scalar, &value);
}
