/* Shape inference shared by op families. */
#include "interpreter/inference/infer.h"

tare_status tare_infer_same(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs && infer->n_inputs; i++)
        infer->outputs[i] = infer->inputs[0];
    return TARE_OK;
}

tare_status tare_infer_broadcast(struct tare_infer *infer) {
    struct tare_shape shape = tare_shape_scalar();
    for (size_t i = 0; i < infer->n_inputs; i++)
        TARE_TRY(tare_shape_broadcast(&shape, &shape, &infer->inputs[i]));
    if (infer->n_outputs) infer->outputs[0] = shape;
    return TARE_OK;
}

tare_status tare_infer_scalar(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = tare_shape_scalar();
    return TARE_OK;
}

tare_status tare_infer_want_rank(const struct tare_infer *infer, size_t i, int rank) {
    const struct tare_shape *shape = &infer->inputs[i];
    if (shape->rank < 0 || shape->rank == rank) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "input %zu has rank %d (expected %d)", i, shape->rank, rank);
}

static struct tare_shape unknown_dims(int rank) {
    struct tare_shape shape = { .rank = rank };
    for (int i = 0; i < rank; i++)
        shape.dims[i] = TARE_UNKNOWN_DIM;
    return shape;
}

tare_status tare_infer_shape_input(struct tare_shape *out, const struct tare_infer *infer, size_t i) {
    const struct tare_tensor *value = infer->input_values[i];
    const struct tare_shape *vector = &infer->inputs[i];
    int64_t dims[TARE_MAX_RANK];
    *out = tare_shape_unknown();
    if (!value) {
        if (vector->rank == 1 && vector->dims[0] >= 0 && vector->dims[0] <= TARE_MAX_RANK)
            *out = unknown_dims((int)vector->dims[0]);
        return TARE_OK;
    }
    if (value->shape.rank == 0 && tare_tensor_get_i64(value, 0) == -1) return TARE_OK; /* the scalar -1: unknown */
    if (value->shape.rank != 1)
        return TARE_FAIL(TARE_SHAPE, "input %zu is a shape of rank %d (expected 1)", i, value->shape.rank);
    if (value->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "input %zu is a shape of %lld dimensions (expected at most %d)", i,
                         (long long)value->elements, TARE_MAX_RANK);
    for (int64_t k = 0; k < value->elements; k++)
        dims[k] = tare_tensor_get_i64(value, k);
    return tare_shape_from_dims(out, (int)value->elements, dims);
}
