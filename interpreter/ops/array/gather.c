/* Gather, GatherV2 and GatherNd: copies slices selected by indices. */
#include "interpreter/ops/array/gather.h"

#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

static tare_status gather_axes(int *axis, int *batch, int params_rank, int indices_rank, int64_t requested_axis,
                               int64_t batch_dims) {
    int64_t from_front = batch_dims < 0 ? batch_dims + indices_rank : batch_dims;
    if (from_front < 0 || from_front > indices_rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected batch_dims in the range [%d, %d], but got %lld",
                         -indices_rank, indices_rank, (long long)batch_dims);
    if (from_front >= params_rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_dims (%lld) must be less than rank(params) (%d).",
                         (long long)from_front, params_rank);
    TARE_TRY(tare_operand_axis(axis, requested_axis, params_rank));
    if (*axis < from_front)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_dims (%lld) must be less than or equal to axis (%d).",
                         (long long)from_front, *axis);
    *batch = (int)from_front;
    return TARE_OK;
}

tare_status tare_gather_shape(struct tare_shape *out, const struct tare_shape *params, const struct tare_shape *indices,
                              int64_t requested_axis, int64_t batch_dims) {
    int axis, batch;
    *out = tare_shape_unknown();
    if (params->rank == TARE_UNKNOWN_RANK || indices->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    TARE_TRY(gather_axes(&axis, &batch, params->rank, indices->rank, requested_axis, batch_dims));
    for (int d = 0; d < batch; d++)
        if (params->dims[d] >= 0 && indices->dims[d] >= 0 && params->dims[d] != indices->dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld",
                             d, (long long)params->dims[d], d, (long long)indices->dims[d]);
    out->rank = 0;
    TARE_TRY(tare_operand_append(out, params, 0, axis));
    TARE_TRY(tare_operand_append(out, indices, batch, indices->rank));
    return tare_operand_append(out, params, axis + 1, params->rank);
}

tare_status tare_gather(struct tare_kernel *kernel, size_t i, const struct tare_tensor *params,
                        const struct tare_tensor *indices, int64_t requested_axis, int64_t batch_dims) {
    struct tare_shape shape;
    struct tare_tensor *out = &kernel->outputs[i];
    int64_t batches, outer, limit, inner, n, at = 0;
    int axis, batch;
    TARE_TRY(tare_gather_shape(&shape, &params->shape, &indices->shape, requested_axis, batch_dims));
    TARE_TRY(gather_axes(&axis, &batch, params->shape.rank, indices->shape.rank, requested_axis, batch_dims));
    TARE_TRY(tare_kernel_output(kernel, i, params->dtype, &shape));
    batches = tare_move_product(&params->shape, 0, batch);
    outer = tare_move_product(&params->shape, batch, axis);
    limit = params->shape.dims[axis];
    inner = tare_move_product(&params->shape, axis + 1, params->shape.rank);
    n = tare_move_product(&indices->shape, batch, indices->shape.rank);
    for (int64_t k = 0; k < indices->elements; k++) {
        int64_t index = tare_index_at(indices, k);
        if (index < 0 || index >= limit) return tare_index_fault("indices", indices, k, index, limit);
    }
    for (int64_t b = 0; out->elements && b < batches; b++)
        for (int64_t o = 0; o < outer; o++) {
            int64_t row = (b * outer + o) * limit;
            for (int64_t k = 0; k < n; k++, at += inner) {
                int64_t index = tare_index_at(indices, b * n + k);
                TARE_TRY(tare_move_run(out, at, params, (row + index) * inner, inner));
            }
        }
    return TARE_OK;
}

static tare_status infer_gather(struct tare_infer *infer) {
    int64_t axis = 0, batch_dims = tare_node_int(infer->node, "batch_dims", 0);
    const struct tare_shape *params = &infer->inputs[0], *indices = &infer->inputs[1];
    if (infer->n_inputs > 2 && !tare_operand_scalar(infer, 2, &axis)) {
        if (infer->input_values[2]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis must be scalar");
        if (params->rank > 0 && indices->rank >= 0 && batch_dims >= 0 &&
            params->rank - 1 + indices->rank - batch_dims <= TARE_MAX_RANK && indices->rank >= batch_dims)
            infer->outputs[0] = tare_operand_unknown_dims((int)(params->rank - 1 + indices->rank - batch_dims));
        return TARE_OK;
    }
    return tare_gather_shape(&infer->outputs[0], params, indices, axis, batch_dims);
}

static tare_status run_gather(struct tare_kernel *kernel) {
    const struct tare_tensor *axis = kernel->n_inputs > 2 ? &kernel->inputs[2] : NULL;
    if (axis && axis->elements != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis must be scalar");
    return tare_gather(kernel, 0, &kernel->inputs[0], &kernel->inputs[1], axis ? tare_tensor_get_i64(axis, 0) : 0,
                       tare_node_int(kernel->node, "batch_dims", 0));
}

static tare_status gather_nd_shape(struct tare_shape *out, const struct tare_shape *params,
                                   const struct tare_shape *indices) {
    int64_t depth;
    *out = tare_shape_unknown();
    if (indices->rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices must be at least a vector");
    if (params->rank == TARE_UNKNOWN_RANK || indices->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    depth = indices->dims[indices->rank - 1];
    if (depth < 0) return TARE_OK;
    if (depth > params->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "index innermost dimension length must be <= params rank; saw: %lld "
                         "vs. %d",
                         (long long)depth, params->rank);
    out->rank = 0;
    TARE_TRY(tare_operand_append(out, indices, 0, indices->rank - 1));
    return tare_operand_append(out, params, (int)depth, params->rank);
}

tare_status tare_gather_nd(struct tare_kernel *kernel, size_t i, const struct tare_tensor *params,
                           const struct tare_tensor *indices, bool ignore_bad) {
    struct tare_shape shape;
    struct tare_tuples tuples;
    TARE_TRY(gather_nd_shape(&shape, &params->shape, &indices->shape));
    TARE_TRY(tare_kernel_output(kernel, i, params->dtype, &shape));
    tare_tuples_make(&tuples, indices, &params->shape);
    if (tuples.count && tuples.inner && !params->elements && !ignore_bad)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requested more than 0 entries, but params is empty.");
    for (int64_t k = 0; k < tuples.count; k++) {
        int64_t row = tare_tuples_row(&tuples, k);
        if (row >= 0)
            TARE_TRY(tare_move_run(&kernel->outputs[i], k * tuples.inner, params, row * tuples.inner, tuples.inner));
        else if (ignore_bad)
            tare_move_zero(&kernel->outputs[i], k * tuples.inner, tuples.inner);
        else
            return tare_tuples_fault(&tuples, k, "param shape");
    }
    return TARE_OK;
}

static tare_status infer_gather_nd(struct tare_infer *infer) {
    return gather_nd_shape(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1]);
}

static tare_status run_gather_nd(struct tare_kernel *kernel) {
    return tare_gather_nd(kernel, 0, &kernel->inputs[0], &kernel->inputs[1], tare_index_ignores_bad(kernel->node));
}

const struct tare_op tare_ops_gather[] = {
    { .name = "Gather",
      .infer = infer_gather,
      .run = run_gather,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "GatherNd",
      .infer = infer_gather_nd,
      .run = run_gather_nd,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "GatherV2",
      .infer = infer_gather,
      .run = run_gather,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_WEIGHTED },
    { 0 },
};
