/* ScatterNd and the TensorScatter ops: writes slices by index. Updates with duplicate indices are applied in index
 * order, so the result is deterministic. */
#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "base/tensor/number.h"

#include <string.h>

enum combine { COMBINE_SET, COMBINE_ADD, COMBINE_SUB, COMBINE_MAX, COMBINE_MIN };

#define COMBINE(name, type, wide)                                                                                      \
    static void combine_##name(void *to, const void *from, int64_t n, enum combine how) {                              \
        type *a = to;                                                                                                  \
        const type *b = from;                                                                                          \
        switch (how) {                                                                                                 \
        case COMBINE_ADD:                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                            \
                a[i] = (type)((wide)a[i] + (wide)b[i]);                                                                \
            break;                                                                                                     \
        case COMBINE_SUB:                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                            \
                a[i] = (type)((wide)a[i] - (wide)b[i]);                                                                \
            break;                                                                                                     \
        case COMBINE_MAX:                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                            \
                a[i] = a[i] < b[i] ? b[i] : a[i];                                                                      \
            break;                                                                                                     \
        default:                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                            \
                a[i] = b[i] < a[i] ? b[i] : a[i];                                                                      \
            break;                                                                                                     \
        }                                                                                                              \
    }
COMBINE(float, float, float)
COMBINE(double, double, double)
COMBINE(i8, int8_t, uint32_t)
COMBINE(u8, uint8_t, uint32_t)
COMBINE(i16, int16_t, uint32_t)
COMBINE(u16, uint16_t, uint32_t)
COMBINE(i32, int32_t, uint32_t)
COMBINE(u32, uint32_t, uint32_t)
COMBINE(i64, int64_t, uint64_t)
COMBINE(u64, uint64_t, uint64_t)
#undef COMBINE

static void combine_small(void *to, const void *from, int64_t n, enum combine how, bool is_half) {
    uint16_t *a = to;
    const uint16_t *b = from;
    for (int64_t i = 0; i < n; i++) {
        float x = is_half ? tare_float_from_half(a[i]) : tare_float_from_bfloat16(a[i]);
        float y = is_half ? tare_float_from_half(b[i]) : tare_float_from_bfloat16(b[i]);
        combine_float(&x, &y, 1, how);
        a[i] = is_half ? tare_half_from_float(x) : tare_bfloat16_from_float(x);
    }
}

static tare_status combine(struct tare_tensor *out, int64_t to, const struct tare_tensor *in, int64_t from, int64_t n,
                           enum combine how) {
    size_t size = tare_dtype_size(in->dtype);
    void *a = (char *)out->data + (size_t)to * size;
    const void *b = (const char *)in->data + (size_t)from * size;
    if (how == COMBINE_SET) return tare_move_run(out, to, in, from, n);
    switch (in->dtype) {
    case TARE_DT_FLOAT:
        combine_float(a, b, n, how);
        break;
    case TARE_DT_DOUBLE:
        combine_double(a, b, n, how);
        break;
    case TARE_DT_HALF:
        combine_small(a, b, n, how, true);
        break;
    case TARE_DT_BFLOAT16:
        combine_small(a, b, n, how, false);
        break;
    case TARE_DT_COMPLEX64:
        combine_float(a, b, 2 * n, how);
        break;
    case TARE_DT_COMPLEX128:
        combine_double(a, b, 2 * n, how);
        break;
    case TARE_DT_INT8:
        combine_i8(a, b, n, how);
        break;
    case TARE_DT_UINT8:
        combine_u8(a, b, n, how);
        break;
    case TARE_DT_INT16:
        combine_i16(a, b, n, how);
        break;
    case TARE_DT_UINT16:
        combine_u16(a, b, n, how);
        break;
    case TARE_DT_INT32:
        combine_i32(a, b, n, how);
        break;
    case TARE_DT_UINT32:
        combine_u32(a, b, n, how);
        break;
    case TARE_DT_INT64:
        combine_i64(a, b, n, how);
        break;
    case TARE_DT_UINT64:
        combine_u64(a, b, n, how);
        break;
    case TARE_DT_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)a)[i] = how == COMBINE_MIN ? ((uint8_t *)a)[i] & ((const uint8_t *)b)[i]
                                                   : ((uint8_t *)a)[i] | ((const uint8_t *)b)[i];
        break;
    default:
        return TARE_FAIL(TARE_TYPE, "no arithmetic on %s", tare_dtype_name(in->dtype));
    }
    return TARE_OK;
}

/* Requires updates.shape == indices.shape[:-1] + shape[depth:]. */
static tare_status check_updates(const struct tare_shape *indices, const struct tare_shape *updates,
                                 const struct tare_shape *shape) {
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE], c[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape expected = { .rank = 0 };
    int64_t depth;
    if (indices->rank == 0 || shape->rank == 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be at least a vector",
                         indices->rank == 0 ? "indices" : "output");
    if (indices->rank < 0 || updates->rank < 0 || shape->rank < 0) return TARE_OK;
    depth = indices->dims[indices->rank - 1];
    if (depth < 0) return TARE_OK;
    if (depth > shape->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "The inner-most dimension of indices (%lld) must not be greater than "
                         "the rank of the output (%d)",
                         (long long)depth, shape->rank);
    TARE_TRY(tare_operand_append(&expected, indices, 0, indices->rank - 1));
    TARE_TRY(tare_operand_append(&expected, shape, (int)depth, shape->rank));
    if (!tare_shape_compatible(&expected, updates))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Dimensions of indices %s, updates %s and output %s do not fit: updates must have shape "
                         "indices.shape[:-1] + output.shape[%lld:]",
                         tare_shape_text(a, indices), tare_shape_text(b, updates), tare_shape_text(c, shape),
                         (long long)depth);
    return TARE_OK;
}

static tare_status scatter(struct tare_kernel *kernel, const struct tare_tensor *indices,
                           const struct tare_tensor *updates, enum combine how) {
    struct tare_tensor *out = &kernel->outputs[0];
    struct tare_tuples tuples;
    TARE_TRY(check_updates(&indices->shape, &updates->shape, &out->shape));
    tare_tuples_make(&tuples, indices, &out->shape);
    for (int64_t k = 0; k < tuples.count; k++) {
        int64_t row = tare_tuples_row(&tuples, k);
        if (row >= 0)
            TARE_TRY(combine(out, row * tuples.inner, updates, k * tuples.inner, tuples.inner, how));
        else if (!tare_index_ignores_bad(kernel->node))
            return tare_tuples_fault(&tuples, k, "shape");
    }
    return TARE_OK;
}

static tare_status infer_scatter_nd(struct tare_infer *infer) {
    int64_t dims[TARE_MAX_RANK], length;
    int count;
    TARE_TRY(tare_operand_vector(infer, 2, "shape", &length));
    TARE_TRY(tare_operand_list(infer, 2, "shape", dims, &count));
    if (count >= 0) {
        TARE_TRY(tare_shape_from_dims(&infer->outputs[0], count, dims));
        for (int d = 0; d < count; d++)
            if (dims[d] < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "shape has a negative dimension %d", d);
    } else if (length >= 0 && length <= TARE_MAX_RANK) {
        infer->outputs[0] = tare_operand_unknown_dims((int)length);
    }
    return check_updates(&infer->inputs[0], &infer->inputs[1], &infer->outputs[0]);
}

static tare_status run_scatter_nd(struct tare_kernel *kernel) {
    const struct tare_tensor *updates = &kernel->inputs[1];
    bool adds = updates->dtype != TARE_DT_STRING && updates->dtype != TARE_DT_VARIANT;
    TARE_TRY(tare_operand_output(kernel, 1));
    tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    return scatter(kernel, &kernel->inputs[0], updates, adds ? COMBINE_ADD : COMBINE_SET);
}

static tare_status infer_tensor_scatter(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[0];
    return check_updates(&infer->inputs[1], &infer->inputs[2], &infer->inputs[0]);
}

static tare_status run_tensor_scatter(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    const enum combine *how = kernel->op->aux;
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &in->shape));
    TARE_TRY(tare_move_run(&kernel->outputs[0], 0, in, 0, in->elements));
    return scatter(kernel, &kernel->inputs[1], &kernel->inputs[2], *how);
}

static const enum combine set = COMBINE_SET, add = COMBINE_ADD, sub = COMBINE_SUB, max = COMBINE_MAX, min = COMBINE_MIN;

#define TENSOR_SCATTER(op_name, how)                                                                                   \
    { .name = op_name, .infer = infer_tensor_scatter, .run = run_tensor_scatter, .aux = &how }

const struct tare_op tare_ops_scatter[] = {
    { .name = "ScatterNd", .infer = infer_scatter_nd, .run = run_scatter_nd },
    TENSOR_SCATTER("TensorScatterAdd", add),
    TENSOR_SCATTER("TensorScatterMax", max),
    TENSOR_SCATTER("TensorScatterMin", min),
    TENSOR_SCATTER("TensorScatterSub", sub),
    TENSOR_SCATTER("TensorScatterUpdate", set),
    { 0 },
};
#undef TENSOR_SCATTER
