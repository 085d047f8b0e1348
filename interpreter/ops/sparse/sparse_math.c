/* Arithmetic on sparse operands: SparseSegmentSum, Mean and SqrtN with gradients, SparseDenseCwise. */
#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

/* ---- SparseSegmentSum, Mean, SqrtN ---- */

static tare_status infer_segment(struct tare_infer *infer) {
    const struct tare_shape *data = &infer->inputs[0];
    int64_t indices, segments, rows = -1;
    TARE_TRY(tare_operand_vector(infer, 1, "indices", &indices));
    TARE_TRY(tare_operand_vector(infer, 2, "segment_ids", &segments));
    if (indices >= 0 && segments >= 0 && indices != segments)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment_ids and indices should have same size.");
    if (data->rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "data must be at least a vector");
    if (infer->n_inputs > 3) {
        TARE_TRY(tare_operand_rank(infer, 3, "num_segments", 0));
        if (tare_operand_scalar(infer, 3, &rows) && rows < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment ids must be >= 0");
    } else if (infer->input_values[2]) {
        const struct tare_tensor *ids = infer->input_values[2];
        const int64_t last = ids->elements ? tare_index_at(ids, ids->elements - 1) : -1;
        rows = last < INT32_MAX ? last + 1 : -1;
        if (rows < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment ids must be >= 0");
    }
    if (data->rank < 0) return TARE_OK;
    infer->outputs[0] = *data;
    infer->outputs[0].dims[0] = rows;
    return TARE_OK;
}

/* A sum of reals, or of integers modulo 2^64. */
union sum {
    double real;
    uint64_t whole;
};

/* Adds row `from` of data to `n` sums. */
static void add_row(union sum *sums, const struct tare_tensor *data, int64_t from, int64_t n) {
    const bool is_real = tare_dtype_is_floating(data->dtype);
    for (int64_t i = 0; i < n && is_real; i++)
        sums[i].real += tare_tensor_get_f64(data, from + i);
    for (int64_t i = 0; i < n && !is_real; i++)
        sums[i].whole += (uint64_t)tare_tensor_get_i64(data, from + i);
}

static void store_row(struct tare_tensor *out, int64_t to, const union sum *sums, int64_t n, double divisor) {
    const bool is_real = tare_dtype_is_floating(out->dtype);
    for (int64_t i = 0; i < n && is_real; i++)
        tare_tensor_set_f64(out, to + i, sums[i].real / divisor);
    for (int64_t i = 0; i < n && !is_real; i++)
        tare_tensor_set_i64(out, to + i, (int64_t)sums[i].whole);
}

/* Adds the rows of a segment in index order. A segment without rows is zero. */
static tare_status run_segment(struct tare_kernel *kernel) {
    const struct tare_tensor *data = &kernel->inputs[0], *indices = &kernel->inputs[1], *ids = &kernel->inputs[2];
    bool mean = strncmp(kernel->node->op, "SparseSegmentMean", 17) == 0;
    bool root = strncmp(kernel->node->op, "SparseSegmentSqrtN", 18) == 0;
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t inner, limit = data->shape.dims[0], last = 0;
    union sum *sums;
    TARE_TRY(tare_operand_output(kernel, 0));
    tare_move_zero(out, 0, out->elements);
    if (ids->elements == 0) return TARE_OK;
    inner = tare_move_product(&data->shape, 1, data->shape.rank);
    sums = TARE_NEW_ARRAY(kernel->scratch, union sum, (size_t)inner + 1);
    if (!sums) return TARE_NO_MEMORY;
    for (int64_t i = 0, end; i < ids->elements; i = end) {
        int64_t id = tare_index_at(ids, i);
        if (id < last || (kernel->n_inputs == 3 && id >= out->shape.dims[0]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment ids are not increasing");
        if (id >= out->shape.dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment ids must be < num_segments: %lld is not in [0, %lld)",
                             (long long)id, (long long)out->shape.dims[0]);
        last = id;
        memset(sums, 0, (size_t)inner * sizeof *sums);
        for (end = i; end < ids->elements && tare_index_at(ids, end) == id; end++) {
            int64_t row = tare_index_at(indices, end);
            if (row < 0 || row >= limit)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "Bad: indices[%lld] == %lld out of range [0, %lld)",
                                 (long long)end, (long long)row, (long long)limit);
            add_row(sums, data, row * inner, inner);
        }
        store_row(out, id * inner, sums, inner, mean ? (double)(end - i) : root ? sqrt((double)(end - i)) : 1);
    }
    return TARE_OK;
}

/* ---- gradients: each row receives the gradient of the segment it was added to ---- */

static tare_status infer_segment_gradient(struct tare_infer *infer) {
    int64_t rows = -1;
    TARE_TRY(tare_operand_rank(infer, 3, "output_dim0", 0));
    if (tare_operand_scalar(infer, 3, &rows) && rows < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "output_dim0 is %lld", (long long)rows);
    if (infer->inputs[0].rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "grad must be at least a vector");
    if (infer->inputs[0].rank < 0) return TARE_OK;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[0] = rows;
    return TARE_OK;
}

static tare_status run_segment_gradient(struct tare_kernel *kernel) {
    const struct tare_tensor *grad = &kernel->inputs[0], *indices = &kernel->inputs[1], *ids = &kernel->inputs[2];
    const bool mean = strcmp(kernel->node->op, "SparseSegmentMeanGrad") == 0;
    const bool root = strcmp(kernel->node->op, "SparseSegmentSqrtNGrad") == 0;
    struct tare_tensor *out = &kernel->outputs[0];
    if (indices->shape.rank != 1 || ids->shape.rank != 1 || indices->elements != ids->elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment_ids and indices should have same size.");
    TARE_TRY(tare_operand_output(kernel, 0));
    const int64_t segments = grad->shape.dims[0], rows = out->shape.dims[0];
    const int64_t inner = tare_move_product(&grad->shape, 1, grad->shape.rank);
    int64_t *counts = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)segments + 1);
    double *sums = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)out->elements + 1);
    if (!counts || !sums) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < ids->elements; i++) {
        const int64_t id = tare_index_at(ids, i), row = tare_index_at(indices, i);
        if (id < 0 || id >= segments) return tare_index_fault("segment_ids", ids, i, id, segments);
        if (row < 0 || row >= rows) return tare_index_fault("indices", indices, i, row, rows);
        counts[id]++;
    }
    for (int64_t i = 0; i < ids->elements; i++) {
        const int64_t id = tare_index_at(ids, i), row = tare_index_at(indices, i);
        const double scale = mean ? 1.0 / (double)counts[id] : root ? 1.0 / sqrt((double)counts[id]) : 1;
        for (int64_t k = 0; k < inner; k++)
            sums[row * inner + k] += scale * tare_tensor_get_f64(grad, id * inner + k);
    }
    for (int64_t i = 0; i < out->elements; i++)
        tare_tensor_set_f64(out, i, sums[i]);
    return TARE_OK;
}

/* ---- SparseDenseCwise ---- */

static tare_status infer_cwise(struct tare_infer *infer) {
    int64_t count, rank;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    if (rank >= 0 && infer->inputs[3].rank > rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "SparseDenseBinaryOpShared broadcasts dense to sparse only; got a dense "
                         "rank of %d against %lld",
                         infer->inputs[3].rank, (long long)rank);
    infer->outputs[0] = tare_operand_vector_shape(count);
    return TARE_OK;
}

#define COMBINE(type)                                                                                                  \
    do {                                                                                                               \
        type x = TARE_CONST_DATA(type, a.values)[i], y = TARE_CONST_DATA(type, dense)[at];                             \
        TARE_DATA(type, out)[i] = how == 'M' ? x * y : how == 'A' ? x + y : x / y;                                     \
    } while (0)

/* Multiplies, adds or divides each value with the dense element at its position (dense is broadcast to the sparse
 * shape). */
static tare_status run_cwise(struct tare_kernel *kernel) {
    const struct tare_tensor *dense = &kernel->inputs[3];
    char how = kernel->node->op[16]; /* the letter after "SparseDenseCwise" */
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t strides[TARE_MAX_RANK];
    struct tare_sparse a;
    TARE_TRY(tare_sparse_make(&a, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_operand_output(kernel, 1));
    TARE_TRY(tare_sparse_check(&a, false));
    tare_move_strides(strides, &dense->shape);
    for (int d = 0; d < dense->shape.rank; d++) {
        int64_t dim = a.dims[d + a.rank - dense->shape.rank];
        if (dense->shape.dims[d] != 1 && dense->shape.dims[d] != dim)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense dimension %d is %lld (expected 1 or %lld)", d,
                             (long long)dense->shape.dims[d], (long long)dim);
    }
    for (int64_t i = 0; i < a.count; i++) {
        int64_t at = 0;
        for (int d = 0; d < dense->shape.rank; d++)
            if (dense->shape.dims[d] != 1) at += tare_sparse_index(&a, i, d + a.rank - dense->shape.rank) * strides[d];
        switch (dense->dtype) {
        case TARE_DT_FLOAT:
            COMBINE(float);
            break;
        case TARE_DT_DOUBLE:
            COMBINE(double);
            break;
        case TARE_DT_INT32:
        case TARE_DT_INT64: {
            int64_t x = tare_tensor_get_i64(a.values, i), y = tare_tensor_get_i64(dense, at), z;
            if (how == 'D' && (y == 0 || (y == -1 && x == INT64_MIN)))
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "Integer division by zero");
            z = how == 'M'   ? (int64_t)((uint64_t)x * (uint64_t)y)
                : how == 'A' ? (int64_t)((uint64_t)x + (uint64_t)y)
                             : x / y;
            if (dense->dtype == TARE_DT_INT32)
                TARE_DATA(int32_t, out)[i] = (int32_t)z;
            else
                TARE_DATA(int64_t, out)[i] = z;
            break;
        }
        default:
            return TARE_FAIL(TARE_TYPE, "no sparse arithmetic on %s", tare_dtype_name(dense->dtype));
        }
    }
    return TARE_OK;
}
#undef COMBINE

#define SEGMENT(op_name)                                                                                               \
    { .name = op_name, .infer = infer_segment, .run = run_segment }, {                                                 \
        .name = op_name "WithNumSegments", .infer = infer_segment, .run = run_segment                                  \
    }
#define SEGMENT_GRADIENT(op_name)                                                                                      \
    { .name = op_name, .infer = infer_segment_gradient, .run = run_segment_gradient }
#define CWISE(op_name)                                                                                                 \
    {                                                                                                                  \
        .name = op_name, .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T",                       \
        .outputs = "output: T", .attrs = "T: {float, double, int32, int64}", .infer = infer_cwise, .run = run_cwise    \
    }

const struct tare_op tare_ops_sparse_math[] = {
    CWISE("SparseDenseCwiseAdd"),
    CWISE("SparseDenseCwiseDiv"),
    CWISE("SparseDenseCwiseMul"),
    SEGMENT("SparseSegmentMean"),
    SEGMENT_GRADIENT("SparseSegmentMeanGrad"),
    SEGMENT_GRADIENT("SparseSegmentSqrtNGrad"),
    SEGMENT_GRADIENT("SparseSegmentSumGrad"),
    SEGMENT("SparseSegmentSqrtN"),
    SEGMENT("SparseSegmentSum"),
    { 0 },
};
#undef SEGMENT
#undef CWISE
