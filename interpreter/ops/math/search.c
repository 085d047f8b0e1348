/* Positions of elements: Where, LowerBound, UpperBound, SearchSorted and UnravelIndex. */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

static tare_status infer_where(struct tare_infer *infer) {
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = infer->inputs[0].rank;
    return TARE_OK;
}

static inline bool bytes_not_zero(const unsigned char *bytes, size_t size) {
    unsigned char any = 0;
    for (size_t k = 0; k < size; k++)
        any |= bytes[k];
    return any != 0;
}

/* Whether the element is non-zero: -0 is zero, NaN is not. */
static bool is_true(const struct tare_tensor *tensor, int64_t i) {
    size_t size = tare_dtype_size(tensor->dtype);
    const unsigned char *bytes = (const unsigned char *)tensor->data + (size_t)i * size;
    switch (tensor->dtype) {
    case TARE_DT_COMPLEX64:
        return TARE_CONST_DATA(float, tensor)[2 * i] != 0 || TARE_CONST_DATA(float, tensor)[2 * i + 1] != 0;
    case TARE_DT_COMPLEX128:
        return TARE_CONST_DATA(double, tensor)[2 * i] != 0 || TARE_CONST_DATA(double, tensor)[2 * i + 1] != 0;
    case TARE_DT_FLOAT:
    case TARE_DT_DOUBLE:
    case TARE_DT_HALF:
    case TARE_DT_BFLOAT16:
        return tare_tensor_get_f64(tensor, i) != 0;
    default:
        return bytes_not_zero(bytes, size);
    }
}

static tare_status run_where(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t count = 0, strides[TARE_MAX_RANK], *to;
    int rank = in->shape.rank;
    struct tare_shape shape;
    for (int64_t i = 0; i < in->elements; i++)
        count += is_true(in, i);
    shape = tare_shape_make(2, 0, rank);
    shape.dims[0] = count;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shape));
    tare_move_strides(strides, &in->shape);
    to = TARE_DATA(int64_t, &kernel->outputs[0]);
    for (int64_t i = 0; i < in->elements; i++) {
        if (!is_true(in, i)) continue;
        for (int d = 0; d < rank; d++)
            *to++ = i / strides[d] % in->shape.dims[d];
    }
    return TARE_OK;
}

static tare_status infer_bound(struct tare_infer *infer) {
    const struct tare_shape *sorted = &infer->inputs[0], *values = &infer->inputs[1];
    TARE_TRY(tare_operand_rank(infer, 0, "sorted_inputs", 2));
    TARE_TRY(tare_operand_rank(infer, 1, "values", 2));
    if (sorted->rank == 2 && values->rank == 2 && sorted->dims[0] >= 0 && values->dims[0] >= 0 &&
        sorted->dims[0] != values->dims[0])
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Leading dim_size of both tensors must match.");
    infer->outputs[0] = values->rank == 2 ? *values : tare_operand_unknown_dims(2);
    return TARE_OK;
}

/* a[i] < b[j] in the order of the dtype. */
static bool less(const struct tare_tensor *a, int64_t i, const struct tare_tensor *b, int64_t j) {
    if (a->dtype == TARE_DT_STRING) {
        const struct tare_str *x = &TARE_CONST_DATA(struct tare_str, a)[i],
                              *y = &TARE_CONST_DATA(struct tare_str, b)[j];
        size_t shared = x->size < y->size ? x->size : y->size;
        int order = shared ? memcmp(x->data, y->data, shared) : 0;
        return order ? order < 0 : x->size < y->size;
    }
    if (tare_dtype_is_floating(a->dtype)) return tare_tensor_get_f64(a, i) < tare_tensor_get_f64(b, j);
    if (a->dtype == TARE_DT_UINT64) return TARE_CONST_DATA(uint64_t, a)[i] < TARE_CONST_DATA(uint64_t, b)[j];
    return tare_tensor_get_i64(a, i) < tare_tensor_get_i64(b, j);
}

static tare_status run_bound(struct tare_kernel *kernel) {
    const struct tare_tensor *sorted = &kernel->inputs[0], *values = &kernel->inputs[1];
    int dtype = tare_node_type(kernel->node, "out_type", TARE_DT_INT32);
    bool upper = kernel->node->op[0] == 'U';
    struct tare_tensor *out = &kernel->outputs[0];
    struct tare_shape *shapes;
    if (tare_dtype_get(sorted->dtype)->class == TARE_CLASS_COMPLEX || sorted->dtype == TARE_DT_VARIANT ||
        sorted->dtype == TARE_DT_RESOURCE)
        return TARE_FAIL(TARE_TYPE, "%s is not an ordered dtype", tare_dtype_name(sorted->dtype));
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shapes[0]));
    for (int64_t i = 0; i < values->elements; i++) {
        int64_t row = i / values->shape.dims[1] * sorted->shape.dims[1], low = 0, high = sorted->shape.dims[1];
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (upper ? !less(values, i, sorted, row + middle) : less(sorted, row + middle, values, i))
                low = middle + 1;
            else
                high = middle;
        }
        if (dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, out)[i] = (int32_t)low;
        else
            TARE_DATA(int64_t, out)[i] = low;
    }
    return TARE_OK;
}

static tare_status infer_unravel(struct tare_infer *infer) {
    int64_t length;
    TARE_TRY(tare_operand_vector(infer, 1, "dims", &length));
    if (infer->inputs[0].rank > 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "The indices can only be scalar or vector");
    if (infer->inputs[0].rank == TARE_UNKNOWN_RANK) return TARE_OK;
    infer->outputs[0] = tare_operand_vector_shape(length);
    return tare_operand_append(&infer->outputs[0], &infer->inputs[0], 0, infer->inputs[0].rank);
}

/* Converts flat indices to coordinates, one column per index. */
static tare_status run_unravel(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0], *dims = &kernel->inputs[1];
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t all = 1;
    TARE_TRY(tare_operand_output(kernel, 0));
    for (int64_t d = 0; d < dims->elements; d++)
        if (tare_tensor_get_i64(dims, d) <= 0 || !tare_mul_i64(&all, all, tare_tensor_get_i64(dims, d)))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input dims cannot contain a dim of %lld",
                             (long long)tare_tensor_get_i64(dims, d));
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t left = tare_tensor_get_i64(in, i);
        if (left < 0 || left >= all) return TARE_FAIL(TARE_INVALID_ARGUMENT, "index is out of bound as with dims");
        for (int64_t d = dims->elements - 1; d >= 0; d--) {
            int64_t dim = tare_tensor_get_i64(dims, d);
            if (out->dtype == TARE_DT_INT32)
                TARE_DATA(int32_t, out)[d * in->elements + i] = (int32_t)(left % dim);
            else
                TARE_DATA(int64_t, out)[d * in->elements + i] = left % dim;
            left /= dim;
        }
    }
    return TARE_OK;
}

const struct tare_op tare_ops_search[] = {
    { .name = "LowerBound", .infer = infer_bound, .run = run_bound, .flags = TARE_OP_DISCRETE },
    { .name = "UnravelIndex", .infer = infer_unravel, .run = run_unravel },
    { .name = "UpperBound", .infer = infer_bound, .run = run_bound, .flags = TARE_OP_DISCRETE },
    { .name = "Where", .infer = infer_where, .run = run_where },
    { 0 },
};
