/* Views and checks of the three tensors of a sparse tensor. */
#include "interpreter/ops/sparse/sparse_rows.h"

#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/operand.h"

#include <stdio.h>

tare_status tare_sparse_make(struct tare_sparse *out, const struct tare_tensor *indices,
                             const struct tare_tensor *values, const struct tare_tensor *shape) {
    if (indices->shape.rank != 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices must be a matrix, got rank %d", indices->shape.rank);
    if (values && (values->shape.rank != 1 || values->elements != indices->shape.dims[0]))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "values must be a vector of %lld elements (got %lld)",
                         (long long)indices->shape.dims[0], (long long)values->elements);
    if (shape->shape.rank != 1 || shape->elements != indices->shape.dims[1])
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shape must be a vector of %lld elements (got %lld)",
                         (long long)indices->shape.dims[1], (long long)shape->elements);
    if (shape->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "a sparse tensor of rank %lld (expected at most %d)", (long long)shape->elements,
                         TARE_MAX_RANK);
    *out = (struct tare_sparse){ indices, values, shape, indices->shape.dims[0], (int)shape->elements, { 0 } };
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = tare_index_at(shape, d);
        if (out->dims[d] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shape[%d] = %lld is negative", d, (long long)out->dims[d]);
    }
    return TARE_OK;
}

int64_t tare_sparse_index(const struct tare_sparse *sparse, int64_t row, int d) {
    return tare_index_at(sparse->indices, row * sparse->rank + d);
}

static const char *row_text(char text[TARE_INDEX_TEXT_SIZE], const struct tare_sparse *sparse, int64_t row) {
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < sparse->rank && used < TARE_INDEX_TEXT_SIZE; d++)
        used += (size_t)snprintf(text + used, TARE_INDEX_TEXT_SIZE - used, "%s%lld", d ? "," : "",
                                 (long long)tare_sparse_index(sparse, row, d));
    return text;
}

tare_status tare_sparse_check(const struct tare_sparse *sparse, bool ordered) {
    char text[TARE_INDEX_TEXT_SIZE], shape[TARE_SHAPE_TEXT_SIZE];
    for (int64_t row = 0; row < sparse->count; row++) {
        int order = row == 0 ? 1 : 0;
        for (int d = 0; d < sparse->rank; d++) {
            int64_t index = tare_sparse_index(sparse, row, d);
            if (index < 0 || index >= sparse->dims[d]) {
                struct tare_shape dense;
                TARE_TRY(tare_shape_from_dims(&dense, sparse->rank, sparse->dims));
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices[%lld] = [%s] is out of bounds: need 0 <= index < %s",
                                 (long long)row, row_text(text, sparse, row), tare_shape_text(shape, &dense));
            }
            if (order == 0) {
                int64_t before = tare_sparse_index(sparse, row - 1, d);
                order = index > before ? 1 : index < before ? -1 : 0;
            }
        }
        if (ordered && order <= 0 && sparse->rank > 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices[%lld] = [%s] is %s", (long long)row,
                             row_text(text, sparse, row),
                             order == 0 ? "repeated" : "out of order. Many sparse ops require sorted indices.");
    }
    return TARE_OK;
}

tare_status tare_sparse_infer(const struct tare_infer *infer, size_t indices, size_t values, size_t shape,
                              int64_t *count, int64_t *rank) {
    int64_t length;
    TARE_TRY(tare_operand_rank(infer, indices, "indices", 2));
    TARE_TRY(tare_operand_rank(infer, values, "values", 1));
    TARE_TRY(tare_operand_vector(infer, shape, "dense_shape", &length));
    *count = infer->inputs[indices].rank == 2 ? infer->inputs[indices].dims[0] : -1;
    *rank = infer->inputs[indices].rank == 2 ? infer->inputs[indices].dims[1] : -1;
    if (*rank >= 0 && length >= 0 && *rank != length)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shape must be a vector of %lld elements (got %lld)",
                         (long long)*rank, (long long)length);
    if (*rank < 0) *rank = length;
    if (*count < 0 && infer->inputs[values].rank == 1) *count = infer->inputs[values].dims[0];
    return TARE_OK;
}
