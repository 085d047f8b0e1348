/* Resource variables: edges carry the handle; ReadVariableOp and the Assign ops access the value. */
#include "interpreter/ops/state/assign.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/array/gather.h"

#include <string.h>

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

/* The declared shape if the handle comes directly from its node; unknown for function arguments. */
static struct tare_shape declared_shape(const struct tare_infer *infer) {
    struct tare_edge edge = infer->node->inputs[0];
    struct tare_shape shape = tare_shape_unknown();
    while (edge.node && strcmp(edge.node->op, "Identity") == 0 && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    if (edge.node && strcmp(edge.node->op, "VarHandleOp") == 0) tare_node_shape(edge.node, "shape", &shape);
    return shape;
}

static tare_status infer_read(struct tare_infer *infer) {
    infer->outputs[0] = declared_shape(infer);
    return TARE_OK;
}

static tare_status infer_shape(struct tare_infer *infer) {
    struct tare_shape shape = declared_shape(infer);
    infer->outputs[0] = tare_shape_make(1, shape.rank < 0 ? -1 : shape.rank);
    return TARE_OK;
}

static tare_status infer_gather(struct tare_infer *infer) {
    struct tare_shape shape = declared_shape(infer);
    int64_t batch_dims = tare_node_int(infer->node, "batch_dims", 0);
    int64_t axis = batch_dims < 0 && infer->inputs[1].rank >= 0 ? batch_dims + infer->inputs[1].rank : batch_dims;
    return tare_gather_shape(&infer->outputs[0], &shape, &infer->inputs[1], axis, batch_dims);
}

static tare_status infer_gather_nd(struct tare_infer *infer) {
    struct tare_shape shape = declared_shape(infer), *out = &infer->outputs[0];
    const struct tare_shape *indices = &infer->inputs[1];
    int64_t depth = indices->rank > 0 ? indices->dims[indices->rank - 1] : -1;
    if (shape.rank < 0 || depth < 0 || depth > shape.rank || indices->rank - 1 + shape.rank - depth > TARE_MAX_RANK)
        return TARE_OK;
    *out = *indices;
    out->rank--;
    for (int d = (int)depth; d < shape.rank; d++)
        out->dims[out->rank++] = shape.dims[d];
    return TARE_OK;
}

static tare_status run_handle(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_assign_declared(&variable, kernel));
    return tare_handle_new(&kernel->outputs[0], &variable->object);
}

static tare_status run_read(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    return tare_variable_read(&kernel->outputs[0], variable);
}

static tare_status run_assign(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    return tare_assign_value(variable, &kernel->inputs[1], tare_node_bool(kernel->node, "validate_shape", false));
}

struct change {
    int how;
};
static const struct change changes[] = {
    [TARE_ACCUMULATE_ADD] = { TARE_ACCUMULATE_ADD }, [TARE_ACCUMULATE_SUB] = { TARE_ACCUMULATE_SUB },
    [TARE_ACCUMULATE_MUL] = { TARE_ACCUMULATE_MUL }, [TARE_ACCUMULATE_DIV] = { TARE_ACCUMULATE_DIV },
    [TARE_ACCUMULATE_MIN] = { TARE_ACCUMULATE_MIN }, [TARE_ACCUMULATE_MAX] = { TARE_ACCUMULATE_MAX },
};
static const struct change replacement = { TARE_ASSIGN_SET };

static tare_status run_accumulate(struct tare_kernel *kernel) {
    const struct change *change = kernel->op->aux;
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    return tare_assign_accumulate(variable, &kernel->inputs[1], (enum tare_accumulate)change->how);
}

static tare_status run_scatter(struct tare_kernel *kernel) {
    const struct change *change = kernel->op->aux;
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    return tare_assign_rows(variable, &kernel->inputs[1], &kernel->inputs[2], change->how);
}

static tare_status run_scatter_nd(struct tare_kernel *kernel) {
    const struct change *change = kernel->op->aux;
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    return tare_assign_tuples(variable, &kernel->inputs[1], &kernel->inputs[2], change->how);
}

static tare_status run_shape(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    struct tare_tensor value;
    struct tare_shape vector;
    int dtype = tare_node_type(kernel->node, "out_type", TARE_DT_INT32);
    tare_status status;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_variable_read(&value, variable));
    vector = tare_shape_make(1, value.shape.rank);
    status = tare_kernel_output(kernel, 0, dtype, &vector);
    for (int d = 0; d < value.shape.rank && status == TARE_OK; d++) {
        if (dtype == TARE_DT_INT64)
            TARE_DATA(int64_t, &kernel->outputs[0])[d] = value.shape.dims[d];
        else
            TARE_DATA(int32_t, &kernel->outputs[0])[d] = (int32_t)value.shape.dims[d];
    }
    tare_tensor_reset(&value);
    return status;
}

static tare_status run_gather(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    int64_t batch_dims = tare_node_int(kernel->node, "batch_dims", 0);
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    if (!variable->value.dtype)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "variable '%s' is not initialised", variable->name);
    return tare_gather(kernel, 0, &variable->value, &kernel->inputs[1],
                       batch_dims < 0 ? batch_dims + kernel->inputs[1].shape.rank : batch_dims, batch_dims);
}

static tare_status run_gather_nd(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    if (!variable->value.dtype)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "variable '%s' is not initialised", variable->name);
    return tare_gather_nd(kernel, 0, &variable->value, &kernel->inputs[1], false);
}

/* var -= alpha * delta */
static tare_status run_descend(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    struct tare_tensor step;
    tare_status status;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    if (kernel->inputs[1].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "alpha has %lld elements (expected 1)", (long long)kernel->inputs[1].elements);
    TARE_TRY(tare_tensor_copy(&step, &kernel->inputs[2]));
    status = tare_accumulate(TARE_ACCUMULATE_MUL, step.dtype, step.data, kernel->inputs[1].data, step.elements, true);
    if (status == TARE_OK) status = tare_assign_accumulate(variable, &step, TARE_ACCUMULATE_SUB);
    tare_tensor_reset(&step);
    return status;
}

/* Clears the value; the name remains declared. */
static tare_status run_destroy(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    if (tare_variable_from_handle(&variable, &kernel->inputs[0]) == TARE_OK) tare_tensor_reset(&variable->value);
    tare_error_clear();
    return TARE_OK;
}

static tare_status run_nothing(struct tare_kernel *kernel) {
    (void)kernel;
    return TARE_OK;
}

#define ACCUMULATE(op, change_how)                                                                                     \
    {                                                                                                                  \
        .name = op, .infer = infer_nothing, .run = run_accumulate, .aux = &changes[change_how],                        \
        .flags = TARE_OP_STATEFUL | TARE_OP_WRITES                                                                     \
    }
#define SCATTER(op, change_how)                                                                                        \
    {                                                                                                                  \
        .name = op, .infer = infer_nothing, .run = run_scatter, .aux = change_how,                                     \
        .flags = TARE_OP_STATEFUL | TARE_OP_WRITES                                                                     \
    }
#define SCATTER_ND(op, change_how)                                                                                     \
    {                                                                                                                  \
        .name = op, .infer = infer_nothing, .run = run_scatter_nd, .aux = change_how,                                  \
        .flags = TARE_OP_STATEFUL | TARE_OP_WRITES                                                                     \
    }

const struct tare_op tare_ops_variable[] = {
    { .name = "VarHandleOp", .infer = tare_infer_scalar, .run = run_handle, .flags = TARE_OP_STATEFUL },
    { .name = "ReadVariableOp", .infer = infer_read, .run = run_read, .flags = TARE_OP_STATEFUL },
    { .name = "AssignVariableOp",
      .infer = infer_nothing,
      .run = run_assign,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    ACCUMULATE("AssignAddVariableOp", TARE_ACCUMULATE_ADD),
    ACCUMULATE("AssignSubVariableOp", TARE_ACCUMULATE_SUB),
    { .name = "VarIsInitializedOp",
      .infer = tare_infer_scalar,
      .run = tare_assign_is_initialized,
      .flags = TARE_OP_STATEFUL },
    { .name = "VariableShape", .infer = infer_shape, .run = run_shape, .flags = TARE_OP_STATEFUL },
    { .name = "ResourceGather", .infer = infer_gather, .run = run_gather, .flags = TARE_OP_STATEFUL },
    { .name = "ResourceGatherNd", .infer = infer_gather_nd, .run = run_gather_nd, .flags = TARE_OP_STATEFUL },
    { .name = "ResourceApplyGradientDescent",
      .infer = infer_nothing,
      .run = run_descend,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "DestroyResourceOp",
      .infer = infer_nothing,
      .run = run_destroy,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "DisableCopyOnRead", .infer = infer_nothing, .run = run_nothing, .flags = TARE_OP_STATEFUL },
    SCATTER("ResourceScatterUpdate", &replacement),
    SCATTER("ResourceScatterAdd", &changes[TARE_ACCUMULATE_ADD]),
    SCATTER("ResourceScatterSub", &changes[TARE_ACCUMULATE_SUB]),
    SCATTER("ResourceScatterMul", &changes[TARE_ACCUMULATE_MUL]),
    SCATTER("ResourceScatterDiv", &changes[TARE_ACCUMULATE_DIV]),
    SCATTER("ResourceScatterMin", &changes[TARE_ACCUMULATE_MIN]),
    SCATTER("ResourceScatterMax", &changes[TARE_ACCUMULATE_MAX]),
    SCATTER_ND("ResourceScatterNdUpdate", &replacement),
    SCATTER_ND("ResourceScatterNdAdd", &changes[TARE_ACCUMULATE_ADD]),
    SCATTER_ND("ResourceScatterNdSub", &changes[TARE_ACCUMULATE_SUB]),
    SCATTER_ND("ResourceScatterNdMin", &changes[TARE_ACCUMULATE_MIN]),
    SCATTER_ND("ResourceScatterNdMax", &changes[TARE_ACCUMULATE_MAX]),
    { .name = "ResourceCountUpTo",
      .infer = tare_infer_scalar,
      .run = tare_assign_count,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { 0 },
};
