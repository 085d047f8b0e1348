/* Reading operands that are axes, dims and counts. */
#include "interpreter/ops/support/operand.h"

tare_status tare_operand_rank(const struct tare_infer *infer, size_t i, const char *what, int rank) {
    int got = infer->inputs[i].rank;
    if (got != TARE_UNKNOWN_RANK && got != rank)
        return TARE_FAIL(TARE_SHAPE, "%s has rank %d (expected %d)", what, got, rank);
    return TARE_OK;
}

tare_status tare_operand_vector(const struct tare_infer *infer, size_t i, const char *what, int64_t *length) {
    TARE_TRY(tare_operand_rank(infer, i, what, 1));
    *length = infer->inputs[i].rank == 1 ? infer->inputs[i].dims[0] : -1;
    return TARE_OK;
}

tare_status tare_operand_list(const struct tare_infer *infer, size_t i, const char *what, int64_t values[TARE_MAX_RANK],
                              int *count) {
    const struct tare_tensor *value = infer->input_values[i];
    *count = -1;
    if (!value) return TARE_OK;
    if (value->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected at most %d)", what, (long long)value->elements,
                         TARE_MAX_RANK);
    *count = (int)value->elements;
    for (int k = 0; k < *count; k++)
        values[k] = tare_tensor_get_i64(value, k);
    return TARE_OK;
}

bool tare_operand_scalar(const struct tare_infer *infer, size_t i, int64_t *value) {
    const struct tare_tensor *tensor = infer->input_values[i];
    if (!tensor || tensor->elements != 1) return false;
    *value = tare_tensor_get_i64(tensor, 0);
    return true;
}

tare_status tare_operand_axis(int *out, int64_t axis, int rank) {
    *out = 0;
    if (axis < -rank || axis >= rank)
        return TARE_FAIL(TARE_SHAPE, "Expected dimension in the range [%d, %d), but got %lld", -rank, rank,
                         (long long)axis);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TARE_OK;
}

tare_status tare_operand_pack_axis(int *out, const struct tare_node *node, int rank) {
    int64_t axis = tare_node_int(node, "axis", 0);
    *out = 0;
    if (axis < -rank || axis >= rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis = %lld not in [%d, %d)", (long long)axis, -rank, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TARE_OK;
}

struct tare_shape tare_operand_unknown_dims(int rank) {
    struct tare_shape shape = { .rank = rank };
    for (int d = 0; d < rank; d++)
        shape.dims[d] = TARE_UNKNOWN_DIM;
    return shape;
}

struct tare_shape tare_operand_vector_shape(int64_t length) {
    struct tare_shape shape = { .rank = 1, .dims = { length } };
    return shape;
}

tare_status tare_operand_append(struct tare_shape *out, const struct tare_shape *shape, int first, int last) {
    if (out->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (shape->rank == TARE_UNKNOWN_RANK) {
        *out = tare_shape_unknown();
        return TARE_OK;
    }
    for (int d = first; d < last; d++) {
        if (out->rank == TARE_MAX_RANK)
            return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
        out->dims[out->rank++] = shape->dims[d];
    }
    return TARE_OK;
}

tare_status tare_operand_shapes(struct tare_kernel *kernel, struct tare_shape **shapes) {
    size_t n = kernel->n_inputs;
    struct tare_shape *inputs = TARE_NEW_ARRAY(kernel->scratch, struct tare_shape, n + kernel->n_outputs);
    const struct tare_tensor **values = TARE_NEW_ARRAY(kernel->scratch, const struct tare_tensor *, n);
    int *dtypes = TARE_NEW_ARRAY(kernel->scratch, int, n);
    struct tare_infer infer = { .node = kernel->node,
                                .n_inputs = n,
                                .input_dtypes = dtypes,
                                .inputs = inputs,
                                .input_values = values,
                                .n_outputs = kernel->n_outputs,
                                .arena = kernel->scratch };
    if (!inputs || !values || !dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        inputs[i] = kernel->inputs[i].shape;
        values[i] = &kernel->inputs[i];
        dtypes[i] = kernel->inputs[i].dtype;
    }
    infer.outputs = inputs + n;
    for (size_t i = 0; i < kernel->n_outputs; i++)
        infer.outputs[i] = tare_shape_unknown();
    *shapes = infer.outputs;
    return kernel->op->infer(&infer);
}

tare_status tare_operand_output(struct tare_kernel *kernel, size_t like) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    return tare_kernel_output(kernel, 0, kernel->inputs[like].dtype, &shapes[0]);
}
