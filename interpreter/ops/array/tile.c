/* Tile, BroadcastTo, and the shape arithmetic of broadcasting as ops (BroadcastArgs, BroadcastGradientArgs). */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

static tare_status infer_tile(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    int64_t multiples[TARE_MAX_RANK], length;
    int count;
    TARE_TRY(tare_operand_vector(infer, 1, "multiples", &length));
    TARE_TRY(tare_operand_list(infer, 1, "multiples", multiples, &count));
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (length >= 0 && length != in->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Expected multiples argument to be a vector of length %d but got "
                         "length %lld",
                         in->rank, (long long)length);
    *out = tare_operand_unknown_dims(in->rank);
    for (int d = 0; d < count; d++) {
        if (multiples[d] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected multiples[%d] >= 0, but got %lld", d,
                             (long long)multiples[d]);
        if (in->dims[d] >= 0 && !tare_mul_i64(&out->dims[d], in->dims[d], multiples[d]))
            return TARE_FAIL(TARE_SHAPE, "dimension %d of the result is too large", d);
    }
    return TARE_OK;
}

static tare_status run_tile(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t from[TARE_MAX_RANK], to[TARE_MAX_RANK];
    struct tare_move move = { 0 };
    TARE_TRY(tare_operand_output(kernel, 0));
    tare_move_strides(from, &in->shape);
    tare_move_strides(to, &kernel->outputs[0].shape);
    if (!kernel->outputs[0].elements) return TARE_OK;
    for (int d = 0; d < in->shape.rank; d++) {
        int64_t dim = in->shape.dims[d];
        tare_move_dim(&move, kernel->outputs[0].shape.dims[d] / dim, 0, dim * to[d]);
        tare_move_dim(&move, dim, from[d], to[d]);
    }
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

static tare_status infer_broadcast_to(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape out = tare_shape_unknown();
    int64_t length;
    int count;
    TARE_TRY(tare_operand_vector(infer, 1, "shape", &length));
    TARE_TRY(tare_operand_list(infer, 1, "shape", out.dims, &count));
    if (count < 0) {
        if (length >= 0 && length <= TARE_MAX_RANK) infer->outputs[0] = tare_operand_unknown_dims((int)length);
        return TARE_OK;
    }
    out.rank = count;
    for (int d = 0; d < count; d++)
        if (out.dims[d] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)out.dims[d]);
    for (int d = 0; d < in->rank; d++) {
        int at = d + count - in->rank;
        if (at < 0 || (in->dims[d] >= 0 && in->dims[d] != 1 && in->dims[d] != out.dims[at]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", tare_shape_text(got, in),
                             tare_shape_text(expected, &out));
    }
    infer->outputs[0] = out;
    return TARE_OK;
}

static tare_status run_broadcast_to(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t from[TARE_MAX_RANK], to[TARE_MAX_RANK];
    struct tare_move move = { 0 };
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (tare_shape_equal(&shapes[0], &in->shape)) return tare_kernel_forward(kernel, 0, 0);
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &shapes[0]));
    tare_move_strides(from, &in->shape);
    tare_move_strides(to, &shapes[0]);
    for (int d = 0; d < shapes[0].rank; d++) {
        int back = d - shapes[0].rank + in->shape.rank;
        tare_move_dim(&move, shapes[0].dims[d], back >= 0 && in->shape.dims[back] != 1 ? from[back] : 0, to[d]);
    }
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

static tare_status shape_operand(struct tare_shape *out, const struct tare_tensor *tensor) {
    int64_t dims[TARE_MAX_RANK];
    if (tensor->shape.rank != 1 || tensor->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a shape must be a vector of at most %d elements", TARE_MAX_RANK);
    for (int64_t d = 0; d < tensor->elements; d++)
        dims[d] = tare_tensor_get_i64(tensor, d);
    return tare_shape_from_dims(out, (int)tensor->elements, dims);
}

static tare_status write_list(struct tare_kernel *kernel, size_t i, const int64_t *values, int count) {
    struct tare_shape shape = tare_operand_vector_shape(count);
    TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[0].dtype, &shape));
    for (int d = 0; d < count; d++) {
        if (kernel->inputs[0].dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, &kernel->outputs[i])[d] = (int32_t)values[d];
        else
            TARE_DATA(int64_t, &kernel->outputs[i])[d] = values[d];
    }
    return TARE_OK;
}

static tare_status infer_vectors(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

static tare_status run_broadcast_args(struct tare_kernel *kernel) {
    struct tare_shape a, b, both;
    TARE_TRY(shape_operand(&a, &kernel->inputs[0]));
    TARE_TRY(shape_operand(&b, &kernel->inputs[1]));
    TARE_TRY(tare_shape_broadcast(&both, &a, &b));
    return write_list(kernel, 0, both.dims, both.rank);
}

/* Returns the axes along which each side was broadcast; a gradient is summed over them. Axes where both sides have
 * one element are listed for both, as in TensorFlow. */
static tare_status run_broadcast_gradient_args(struct tare_kernel *kernel) {
    struct tare_shape sides[2], both;
    for (int i = 0; i < 2; i++)
        TARE_TRY(shape_operand(&sides[i], &kernel->inputs[i]));
    TARE_TRY(tare_shape_broadcast(&both, &sides[0], &sides[1]));
    for (int i = 0; i < 2; i++) {
        int64_t axes[TARE_MAX_RANK];
        int count = 0;
        for (int d = 0; d < both.rank && !tare_shape_equal(&sides[0], &sides[1]); d++) {
            int mine = d - both.rank + sides[i].rank;
            if (mine < 0 || sides[i].dims[mine] == 1) axes[count++] = d;
        }
        TARE_TRY(write_list(kernel, (size_t)i, axes, count));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_tile[] = {
    { .name = "BroadcastArgs", .infer = infer_vectors, .run = run_broadcast_args },
    { .name = "BroadcastGradientArgs", .infer = infer_vectors, .run = run_broadcast_gradient_args },
    { .name = "BroadcastTo",
      .infer = infer_broadcast_to,
      .run = run_broadcast_to,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Tile", .infer = infer_tile, .run = run_tile, .flags = TARE_OP_MOVE, .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
