/* Split, SplitV and Unpack: one tensor into several along an axis. */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

static tare_status infer_unpack(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape part = { .rank = 0 };
    int axis;
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    TARE_TRY(tare_operand_pack_axis(&axis, infer->node, in->rank));
    if (in->dims[axis] >= 0 && in->dims[axis] != (int64_t)infer->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input shape axis %d must equal %zu, got shape %lld", axis,
                         infer->n_outputs, (long long)in->dims[axis]);
    TARE_TRY(tare_operand_append(&part, in, 0, axis));
    TARE_TRY(tare_operand_append(&part, in, axis + 1, in->rank));
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = part;
    return TARE_OK;
}

/* Copies to output i the box that begins at `at` on `axis`; a range of the first axis shares memory instead. */
static tare_status take_part(struct tare_kernel *kernel, const struct tare_tensor *in, size_t i, int axis, int64_t at,
                             int64_t count, const struct tare_shape *shape) {
    int64_t outer = tare_move_product(&in->shape, 0, axis),
            inner = tare_move_product(&in->shape, axis + 1, in->shape.rank);
    struct tare_move move = { .from_offset = at * inner };
    if (axis == 0 && count * inner > 0) {
        struct tare_tensor rows;
        tare_status status;
        TARE_TRY(tare_tensor_share_rows(&rows, in, at, count));
        status = tare_tensor_share_as(&kernel->outputs[i], &rows, shape);
        tare_tensor_reset(&rows);
        return status;
    }
    TARE_TRY(tare_kernel_output(kernel, i, in->dtype, shape));
    tare_move_dim(&move, outer, in->shape.dims[axis] * inner, count * inner);
    tare_move_dim(&move, count * inner, 1, 1);
    return tare_move_apply(&kernel->outputs[i], in, &move);
}

static tare_status run_unpack(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    int axis;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_operand_pack_axis(&axis, kernel->node, kernel->inputs[0].shape.rank));
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(take_part(kernel, &kernel->inputs[0], i, axis, (int64_t)i, 1, &shapes[i]));
    return TARE_OK;
}

static tare_status split_axis(int *axis, int64_t value, int rank) {
    *axis = 0;
    if (value < -rank || value >= rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "-input rank(-%d) <= split_dim < input rank (%d), but got %lld", rank,
                         rank, (long long)value);
    *axis = (int)(value < 0 ? value + rank : value);
    return TARE_OK;
}

static tare_status infer_split(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[1];
    int64_t value, parts = (int64_t)infer->n_outputs;
    struct tare_shape part = *in;
    int axis;
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (tare_operand_scalar(infer, 0, &value)) {
        TARE_TRY(split_axis(&axis, value, in->rank));
        if (in->dims[axis] >= 0 && in->dims[axis] % parts)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Number of ways to split should evenly divide the split dimension, but got split_dim %d "
                             "(size = %lld) and num_split %lld",
                             axis, (long long)in->dims[axis], (long long)parts);
        if (in->dims[axis] >= 0) part.dims[axis] /= parts;
    } else {
        if (infer->input_values[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "split_dim must be a scalar but has rank %d",
                             infer->inputs[0].rank);
        part = tare_operand_unknown_dims(in->rank);
    }
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = part;
    return TARE_OK;
}

static tare_status run_split(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[1];
    struct tare_shape *shapes;
    int axis;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(split_axis(&axis, tare_tensor_get_i64(&kernel->inputs[0], 0), in->shape.rank));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        int64_t count = shapes[i].dims[axis];
        TARE_TRY(take_part(kernel, in, i, axis, (int64_t)i * count, count, &shapes[i]));
    }
    return TARE_OK;
}

/* Reads the sizes of the parts; one of them may be -1 and receives the remainder. A part of unknown size is -1. */
static tare_status split_sizes(struct tare_infer *infer, int axis) {
    const struct tare_tensor *sizes = infer->input_values[1];
    int64_t dim = infer->inputs[0].dims[axis], sum = 0, open = -1;
    if (sizes->elements != (int64_t)infer->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "size of the split_tensor must be equal to num_split, but got %lld and "
                         "%zu",
                         (long long)sizes->elements, infer->n_outputs);
    for (int64_t i = 0; i < sizes->elements; i++) {
        int64_t size = tare_tensor_get_i64(sizes, i);
        infer->outputs[i] = infer->inputs[0];
        infer->outputs[i].dims[axis] = size;
        if (size == -1) {
            if (open >= 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "There can only be one -1 in the input.");
            open = i;
        } else if (size < 0 || !tare_add_i64(&sum, sum, size)) {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Split size at index %lld must be >= 0. Got: %lld", (long long)i,
                             (long long)size);
        }
    }
    if (dim < 0) return TARE_OK;
    if (open >= 0 ? sum > dim : sum != dim)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Determined shape must either match input shape along split_dim exactly if fully specified, "
                         "or be less than the size of the input along split_dim if not fully specified. Got: %lld",
                         (long long)sum);
    if (open >= 0) infer->outputs[open].dims[axis] = dim - sum;
    return TARE_OK;
}

static tare_status infer_split_v(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    int64_t value;
    int axis;
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (infer->input_values[1] && tare_operand_scalar(infer, 2, &value)) {
        TARE_TRY(split_axis(&axis, value, in->rank));
        return split_sizes(infer, axis);
    }
    if (infer->input_values[2] && infer->input_values[2]->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "split_dim must be a scalar");
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = tare_operand_unknown_dims(in->rank);
    return TARE_OK;
}

static tare_status run_split_v(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct tare_shape *shapes;
    int64_t at = 0;
    int axis;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(split_axis(&axis, tare_tensor_get_i64(&kernel->inputs[2], 0), in->shape.rank));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        TARE_TRY(take_part(kernel, in, i, axis, at, shapes[i].dims[axis], &shapes[i]));
        at += shapes[i].dims[axis];
    }
    return TARE_OK;
}

const struct tare_op tare_ops_split[] = {
    { .name = "Split",
      .infer = infer_split,
      .run = run_split,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "SplitV",
      .infer = infer_split_v,
      .run = run_split_v,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Unpack",
      .infer = infer_unpack,
      .run = run_unpack,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
