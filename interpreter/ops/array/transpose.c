/* Transpose, ConjugateTranspose, Reverse, ReverseV2, ReverseSequence and Roll: rearranges elements along axes. */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

static tare_status infer_transpose(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    int64_t perm[TARE_MAX_RANK], length;
    bool seen[TARE_MAX_RANK] = { false };
    int count;
    TARE_TRY(tare_operand_vector(infer, 1, "perm", &length));
    TARE_TRY(tare_operand_list(infer, 1, "perm", perm, &count));
    if (in->rank != TARE_UNKNOWN_RANK && length >= 0 && length != in->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "transpose expects a vector of size %d. But input(1) is a vector of size %lld", in->rank,
                         (long long)length);
    if (in->rank == TARE_UNKNOWN_RANK && (length < 0 || length > TARE_MAX_RANK)) return TARE_OK;
    *out = tare_operand_unknown_dims(in->rank == TARE_UNKNOWN_RANK ? (int)length : in->rank);
    if (count < 0) return TARE_OK;
    for (int d = 0; d < count; d++) {
        int64_t axis = perm[d] < 0 ? perm[d] + count : perm[d];
        if (axis < 0 || axis >= count)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld is out of range [0 .. %d)", (long long)perm[d], count);
        if (seen[axis]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "perm contains axis %lld twice", (long long)axis);
        seen[axis] = true;
        if (in->rank != TARE_UNKNOWN_RANK) out->dims[d] = in->dims[axis];
    }
    return TARE_OK;
}

static tare_status transpose(struct tare_kernel *kernel, bool *moved) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t strides[TARE_MAX_RANK], last = -1;
    struct tare_move move = { 0 };
    struct tare_shape *shapes;
    *moved = false;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    tare_move_strides(strides, &in->shape);
    for (int d = 0; d < in->shape.rank; d++) {
        int64_t axis = tare_tensor_get_i64(&kernel->inputs[1], d);
        if (axis < 0) axis += in->shape.rank;
        tare_move_dim(&move, in->shape.dims[axis], strides[axis], 0);
        if (in->shape.dims[axis] == 1) continue;
        if (axis < last) *moved = true;
        last = axis;
    }
    if (!*moved) return tare_kernel_forward_as(kernel, 0, 0, &shapes[0]);
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &shapes[0]));
    tare_move_strides(move.to, &shapes[0]);
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

static tare_status run_transpose(struct tare_kernel *kernel) {
    bool moved;
    return transpose(kernel, &moved);
}

static tare_status run_conjugate_transpose(struct tare_kernel *kernel) {
    struct tare_tensor *out = &kernel->outputs[0];
    bool moved;
    TARE_TRY(transpose(kernel, &moved));
    if (out->dtype != TARE_DT_COMPLEX64 && out->dtype != TARE_DT_COMPLEX128) return TARE_OK;
    if (!moved) {
        struct tare_shape shape = out->shape;
        tare_tensor_reset(out);
        TARE_TRY(tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, &shape));
        TARE_TRY(tare_move_run(out, 0, &kernel->inputs[0], 0, out->elements));
    }
    for (int64_t i = 0; i < out->elements; i++) {
        if (out->dtype == TARE_DT_COMPLEX64)
            TARE_DATA(float, out)[2 * i + 1] = -TARE_DATA(float, out)[2 * i + 1];
        else
            TARE_DATA(double, out)[2 * i + 1] = -TARE_DATA(double, out)[2 * i + 1];
    }
    return TARE_OK;
}

/* Input 1 of ReverseV2 lists the axes; that of Reverse has one boolean per axis. */
static tare_status reversed_axes(bool reversed[TARE_MAX_RANK], const struct tare_shape *in,
                                 const struct tare_tensor *which) {
    for (int d = 0; d < TARE_MAX_RANK; d++)
        reversed[d] = false;
    if (which->dtype == TARE_DT_BOOL) {
        if (which->elements != in->rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "'dims' must have same number of values as 'tensor' has "
                             "dimensions. 'tensor' has %d'dims' has %lld values",
                             in->rank, (long long)which->elements);
        for (int d = 0; d < in->rank; d++)
            reversed[d] = tare_tensor_get_i64(which, d) != 0;
        return TARE_OK;
    }
    for (int64_t i = 0; i < which->elements; i++) {
        int64_t axis = tare_tensor_get_i64(which, i), at = axis < 0 ? axis + in->rank : axis;
        if (at < 0 || at >= in->rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "'axis'[%lld] = %lld is out of valid range [0, %d]", (long long)i,
                             (long long)axis, in->rank - 1);
        if (reversed[at]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis %lld specified more than once.", (long long)at);
        reversed[at] = true;
    }
    return TARE_OK;
}

static tare_status infer_reverse(struct tare_infer *infer) {
    bool reversed[TARE_MAX_RANK];
    int64_t length;
    TARE_TRY(tare_operand_vector(infer, 1, infer->input_dtypes[1] == TARE_DT_BOOL ? "dims" : "axis", &length));
    if (infer->input_values[1] && infer->inputs[0].rank != TARE_UNKNOWN_RANK)
        TARE_TRY(reversed_axes(reversed, &infer->inputs[0], infer->input_values[1]));
    infer->outputs[0] = infer->inputs[0];
    return TARE_OK;
}

static tare_status run_reverse(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t strides[TARE_MAX_RANK];
    bool reversed[TARE_MAX_RANK];
    struct tare_move move = { 0 };
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(reversed_axes(reversed, &in->shape, &kernel->inputs[1]));
    tare_move_strides(strides, &in->shape);
    for (int d = 0; d < in->shape.rank; d++) {
        tare_move_dim(&move, in->shape.dims[d], reversed[d] ? -strides[d] : strides[d], strides[d]);
        if (reversed[d]) move.from_offset += (in->shape.dims[d] - 1) * strides[d];
    }
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

static tare_status infer_reverse_sequence(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0], *lengths = &infer->inputs[1];
    int sequence, batch;
    TARE_TRY(tare_operand_rank(infer, 1, "seq_lengths", 1));
    infer->outputs[0] = *in;
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    TARE_TRY(tare_operand_axis(&sequence, tare_node_int(infer->node, "seq_dim", 0), in->rank));
    TARE_TRY(tare_operand_axis(&batch, tare_node_int(infer->node, "batch_dim", 0), in->rank));
    if (sequence == batch) return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_dim == seq_dim == %d", sequence);
    if (lengths->rank == 1 && lengths->dims[0] >= 0 && in->dims[batch] >= 0 && lengths->dims[0] != in->dims[batch])
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Length of seq_lengths != input.dims(%d), (%lld vs. %lld)", batch,
                         (long long)lengths->dims[0], (long long)in->dims[batch]);
    return TARE_OK;
}

/* Reverses the first seq_lengths[b] steps of each batch entry and copies the others. */
static tare_status run_reverse_sequence(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t strides[TARE_MAX_RANK];
    int sequence, batch;
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(tare_operand_axis(&sequence, tare_node_int(kernel->node, "seq_dim", 0), in->shape.rank));
    TARE_TRY(tare_operand_axis(&batch, tare_node_int(kernel->node, "batch_dim", 0), in->shape.rank));
    tare_move_strides(strides, &in->shape);
    for (int64_t b = 0; b < in->shape.dims[batch]; b++) {
        int64_t length = tare_tensor_get_i64(&kernel->inputs[1], b), steps = in->shape.dims[sequence];
        if (length < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "seq_lens(%lld) < 0", (long long)b);
        if (length > steps)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "seq_lens(%lld) > input.dims(%d)", (long long)b, sequence);
        for (int part = 0; part < 2; part++) {
            int64_t stride = strides[sequence], start = b * strides[batch];
            struct tare_move move = { .from_offset = start + (part ? length : length - 1) * stride,
                                      .to_offset = start + (part ? length : 0) * stride };
            for (int d = 0; d < in->shape.rank; d++) {
                int64_t dim = d == batch ? 1 : d != sequence ? in->shape.dims[d] : part ? steps - length : length;
                tare_move_dim(&move, dim, d == sequence && !part ? -strides[d] : strides[d], strides[d]);
            }
            TARE_TRY(tare_move_apply(&kernel->outputs[0], in, &move));
        }
    }
    return TARE_OK;
}

static tare_status roll_shifts(int64_t shifts[TARE_MAX_RANK], const struct tare_kernel *kernel) {
    const struct tare_shape *in = &kernel->inputs[0].shape;
    const struct tare_tensor *shift = &kernel->inputs[1], *axes = &kernel->inputs[2];
    if (in->rank < 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "input must be 1-D or higher");
    if (shift->shape.rank > 1 || axes->shape.rank > 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "shift and axis must be scalars or 1-D vectors");
    if (shift->elements != axes->elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "shift and axis must have the same size");
    for (int d = 0; d < in->rank; d++)
        shifts[d] = 0;
    for (int64_t i = 0; i < axes->elements; i++) {
        int64_t axis = tare_tensor_get_i64(axes, i), by = tare_tensor_get_i64(shift, i);
        if (axis < -in->rank || axis >= in->rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis %lld is out of range", (long long)axis);
        if (axis < 0) axis += in->rank;
        if (in->dims[axis] <= 0) continue;
        shifts[axis] = (shifts[axis] + by % in->dims[axis] + in->dims[axis]) % in->dims[axis];
    }
    return TARE_OK;
}

/* Each rolled axis splits into two runs, so 2^axes blocks are copied. */
static tare_status run_roll(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t shifts[TARE_MAX_RANK], strides[TARE_MAX_RANK];
    int rank = in->shape.rank;
    TARE_TRY(roll_shifts(shifts, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &in->shape));
    tare_move_strides(strides, &in->shape);
    for (unsigned block = 0; block < 1u << rank; block++) {
        struct tare_move move = { 0 };
        bool used = true;
        for (int d = 0; d < rank; d++) {
            bool tail = block >> d & 1; /* the elements that wrap around to the front */
            int64_t keep = in->shape.dims[d] - shifts[d];
            if (tail && !shifts[d]) used = false;
            tare_move_dim(&move, tail ? shifts[d] : keep, strides[d], strides[d]);
            move.from_offset += tail ? keep * strides[d] : 0;
            move.to_offset += tail ? 0 : shifts[d] * strides[d];
        }
        if (used) TARE_TRY(tare_move_apply(&kernel->outputs[0], in, &move));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_transpose[] = {
    { .name = "ConjugateTranspose", .infer = infer_transpose, .run = run_conjugate_transpose },
    { .name = "Reverse",
      .infer = infer_reverse,
      .run = run_reverse,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "ReverseSequence",
      .infer = infer_reverse_sequence,
      .run = run_reverse_sequence,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "ReverseV2",
      .infer = infer_reverse,
      .run = run_reverse,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Roll",
      .infer = tare_infer_same,
      .run = run_roll,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Transpose",
      .infer = infer_transpose,
      .run = run_transpose,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
