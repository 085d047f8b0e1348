/* Concat, ConcatV2, ConcatOffset, Pack and ParallelConcat: joins tensors along an existing or a new axis. */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

/* Finds the input that contains the axis and the first of the tensors. */
static void concat_operands(const struct tare_node *node, size_t n_inputs, size_t *axis, size_t *first) {
    bool axis_is_first = strcmp(node->op, "Concat") == 0; /* in ConcatV2 the axis is the last input */
    *axis = axis_is_first ? 0 : n_inputs - 1;
    *first = axis_is_first ? 1 : 0;
}

static tare_status concat_axis(int *out, int64_t axis, int rank) {
    *out = 0;
    if (axis < -rank || axis >= rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld", -rank,
                         rank, (long long)axis);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TARE_OK;
}

/* Adds the shape of part `i` to `all` along `axis`; the shape of part 0 is for the error text. */
static tare_status join(struct tare_shape *all, const struct tare_shape *parts, size_t i, int axis) {
    const struct tare_shape blank = tare_operand_unknown_dims(all->rank);
    const struct tare_shape *part = parts[i].rank == TARE_UNKNOWN_RANK ? &blank : &parts[i];
    char first[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    if (part->rank != all->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%zu] = %s",
                         tare_shape_text(first, &parts[0]), i, tare_shape_text(got, part));
    for (int d = 0; d < all->rank; d++) {
        int64_t a = all->dims[d], b = part->dims[d];
        if (d == axis) {
            if (a >= 0 && b >= 0 && !tare_add_i64(&all->dims[d], a, b))
                return TARE_FAIL(TARE_SHAPE, "the concatenated dimension is too large");
            if (a < 0 || b < 0) all->dims[d] = TARE_UNKNOWN_DIM;
        } else if (a >= 0 && b >= 0 && a != b) {
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %s vs. shape[%zu] = %s",
                             d, tare_shape_text(first, &parts[0]), i, tare_shape_text(got, part));
        } else if (a < 0) {
            all->dims[d] = b;
        }
    }
    return TARE_OK;
}

static tare_status infer_concat(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    size_t axis_input, first;
    int64_t value;
    int axis, rank = TARE_UNKNOWN_RANK;
    if (infer->n_inputs < 2) return TARE_FAIL(TARE_INVALID_ARGUMENT, "needs an axis and at least one tensor");
    concat_operands(infer->node, infer->n_inputs, &axis_input, &first);
    for (size_t i = first; i < first + infer->n_inputs - 1; i++)
        if (infer->inputs[i].rank != TARE_UNKNOWN_RANK && rank == TARE_UNKNOWN_RANK) rank = infer->inputs[i].rank;
    if (rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (!tare_operand_scalar(infer, axis_input, &value)) {
        if (infer->input_values[axis_input])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Concat dim tensor should be a scalar integer");
        *out = tare_operand_unknown_dims(rank);
        return TARE_OK;
    }
    TARE_TRY(concat_axis(&axis, value, rank));
    *out = infer->inputs[first].rank == TARE_UNKNOWN_RANK ? tare_operand_unknown_dims(rank) : infer->inputs[first];
    for (size_t i = 1; i < infer->n_inputs - 1; i++)
        TARE_TRY(join(out, infer->inputs + first, i, axis));
    return TARE_OK;
}

/* Interleaves blocks: writes, for each of `outer` rows, the next `blocks[i]` elements of each part i. */
static tare_status interleave(struct tare_tensor *out, const struct tare_tensor *parts, size_t n, int64_t outer) {
    int64_t whole = outer ? out->elements / outer : 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t block = outer ? parts[i].elements / outer : 0;
        struct tare_move move = { .to_offset = at };
        tare_move_dim(&move, outer, block, whole);
        tare_move_dim(&move, block, 1, 1);
        TARE_TRY(tare_move_apply(out, &parts[i], &move));
        at += block;
    }
    return TARE_OK;
}

static tare_status run_concat(struct tare_kernel *kernel) {
    size_t axis_input, first;
    int axis;
    concat_operands(kernel->node, kernel->n_inputs, &axis_input, &first);
    TARE_TRY(tare_operand_output(kernel, first));
    TARE_TRY(concat_axis(&axis, tare_tensor_get_i64(&kernel->inputs[axis_input], 0), kernel->outputs[0].shape.rank));
    return interleave(&kernel->outputs[0], kernel->inputs + first, kernel->n_inputs - 1,
                      tare_move_product(&kernel->outputs[0].shape, 0, axis));
}

/* Computes the offset of each part in the concatenation: zero except along the axis. */
static tare_status run_concat_offset(struct tare_kernel *kernel) {
    int64_t rank = kernel->inputs[1].elements, axis = tare_tensor_get_i64(&kernel->inputs[0], 0), at = 0;
    if (kernel->inputs[0].elements != 1 || kernel->inputs[1].shape.rank != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Concat dim tensor should be a scalar integer, and shapes vectors");
    if (axis < -rank || axis >= rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Concat dim is out of range: %lld vs. %lld", (long long)axis,
                         (long long)rank);
    if (axis < 0) axis += rank;
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        const struct tare_tensor *shape = &kernel->inputs[i + 1];
        if (shape->shape.rank != 1 || shape->elements != rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu should contain %lld elements, but got %lld", i,
                             (long long)rank, (long long)shape->elements);
        for (int64_t d = 0; d < rank; d++)
            if (d != axis && tare_tensor_get_i64(shape, d) != tare_tensor_get_i64(&kernel->inputs[1], d))
                return TARE_FAIL(TARE_INVALID_ARGUMENT,
                                 "All dimensions except %lld must match. Input %zu has a different dimension %lld",
                                 (long long)axis, i, (long long)d);
        TARE_TRY(tare_kernel_output(kernel, i, shape->dtype, &shape->shape));
        tare_move_zero(&kernel->outputs[i], 0, rank);
        if (shape->dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, &kernel->outputs[i])[axis] = (int32_t)at;
        else
            TARE_DATA(int64_t, &kernel->outputs[i])[axis] = at;
        if (!tare_add_i64(&at, at, tare_tensor_get_i64(shape, axis)))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the concatenated dimension is too large");
    }
    return TARE_OK;
}

static tare_status infer_concat_offset(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = infer->inputs[i + 1];
    return TARE_OK;
}

static tare_status infer_pack(struct tare_infer *infer) {
    struct tare_shape all = tare_shape_unknown(), *out = &infer->outputs[0];
    char first[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    int axis;
    for (size_t i = 0; i < infer->n_inputs; i++) {
        struct tare_shape merged;
        if (tare_shape_merge(&merged, &all, &infer->inputs[i]) != TARE_OK)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Shapes of all inputs must match: values[0].shape = %s != "
                             "values[%zu].shape = %s",
                             tare_shape_text(first, &all), i, tare_shape_text(got, &infer->inputs[i]));
        all = merged;
    }
    if (all.rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (all.rank == TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
    TARE_TRY(tare_operand_pack_axis(&axis, infer->node, all.rank + 1));
    out->rank = 0;
    TARE_TRY(tare_operand_append(out, &all, 0, axis));
    out->dims[out->rank++] = (int64_t)infer->n_inputs;
    return tare_operand_append(out, &all, axis, all.rank);
}

static tare_status run_pack(struct tare_kernel *kernel) {
    int axis;
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(tare_operand_pack_axis(&axis, kernel->node, kernel->outputs[0].shape.rank));
    return interleave(&kernel->outputs[0], kernel->inputs, kernel->n_inputs,
                      tare_move_product(&kernel->outputs[0].shape, 0, axis));
}

const struct tare_op tare_ops_concat[] = {
    { .name = "Concat",
      .infer = infer_concat,
      .run = run_concat,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "ConcatOffset", .infer = infer_concat_offset, .run = run_concat_offset },
    { .name = "ConcatV2",
      .infer = infer_concat,
      .run = run_concat,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Pack", .infer = infer_pack, .run = run_pack, .flags = TARE_OP_MOVE, .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
