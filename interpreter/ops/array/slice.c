/* Slice, StridedSlice and the ops that write a slice (StridedSliceAssign, TensorStridedSliceUpdate) or compute its
 * gradient. */
#include "interpreter/inference/infer.h"
#include "interpreter/execution/variable.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/support/strided.h"

static tare_status slice_dim(int64_t *count, int d, int64_t dim, int64_t begin, int64_t size) {
    *count = size == -1 ? (dim < 0 ? -1 : dim - begin) : size;
    if (begin < 0 || (dim >= 0 && begin > dim))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected begin[%d] in [0, %lld], but got %lld", d, (long long)dim,
                         (long long)begin);
    if (size < -1 || (dim >= 0 && *count > dim - begin))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected size[%d] in [0, %lld], but got %lld", d,
                         (long long)(dim - begin), (long long)size);
    return TARE_OK;
}

static tare_status infer_slice(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    int64_t begins[TARE_MAX_RANK], sizes[TARE_MAX_RANK], begin_length, size_length;
    int n_begins, n_sizes, rank;
    TARE_TRY(tare_operand_vector(infer, 1, "begin", &begin_length));
    TARE_TRY(tare_operand_vector(infer, 2, "size", &size_length));
    TARE_TRY(tare_operand_list(infer, 1, "begin", begins, &n_begins));
    TARE_TRY(tare_operand_list(infer, 2, "size", sizes, &n_sizes));
    rank = in->rank != TARE_UNKNOWN_RANK                        ? in->rank
           : begin_length >= 0 && begin_length <= TARE_MAX_RANK ? (int)begin_length
           : size_length >= 0 && size_length <= TARE_MAX_RANK   ? (int)size_length
                                                                : -1;
    if (rank < 0) return TARE_OK;
    if ((begin_length >= 0 && begin_length != rank) || (size_length >= 0 && size_length != rank))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Expected begin and size arguments to be 1-D tensors of size %d, but got shapes [%lld] and "
                         "[%lld] instead.",
                         rank, (long long)begin_length, (long long)size_length);
    *out = tare_operand_unknown_dims(rank);
    for (int d = 0; d < rank; d++) {
        int64_t dim = in->rank == TARE_UNKNOWN_RANK ? TARE_UNKNOWN_DIM : in->dims[d];
        if (n_begins == rank && n_sizes == rank)
            TARE_TRY(slice_dim(&out->dims[d], d, dim, begins[d], sizes[d]));
        else if (n_sizes == rank && sizes[d] >= 0)
            out->dims[d] = sizes[d];
    }
    return TARE_OK;
}

/* Copies a box of the input to output 0 with the given shape; a range of the first axis shares memory instead. */
static tare_status take_box(struct tare_kernel *kernel, const int64_t *start, const int64_t *step,
                            const struct tare_shape *counts, const struct tare_shape *shape) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct tare_move move = { 0 };
    struct tare_tensor rows;
    int64_t from[TARE_MAX_RANK], to[TARE_MAX_RANK];
    bool rows_only = in->shape.rank > 0 && (!step || step[0] == 1 || counts->dims[0] <= 1);
    tare_status status;
    for (int d = 1; d < in->shape.rank; d++)
        if (counts->dims[d] != in->shape.dims[d] || (step && step[d] != 1 && counts->dims[d] > 1)) rows_only = false;
    if (rows_only && counts->dims[0] > 0) {
        TARE_TRY(tare_tensor_share_rows(&rows, in, start[0], counts->dims[0]));
        status = tare_tensor_share_as(&kernel->outputs[0], &rows, shape);
        tare_tensor_reset(&rows);
        return status;
    }
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, shape));
    if (!kernel->outputs[0].elements) return TARE_OK;
    tare_move_strides(from, &in->shape);
    tare_move_strides(to, counts);
    for (int d = 0; d < in->shape.rank; d++) {
        int64_t by = step && counts->dims[d] > 1 ? step[d] : 1;
        tare_move_dim(&move, counts->dims[d], from[d] * by, to[d]);
        move.from_offset += start[d] * from[d];
    }
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

static tare_status run_slice(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    int64_t start[TARE_MAX_RANK];
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (int d = 0; d < shapes[0].rank; d++)
        start[d] = tare_tensor_get_i64(&kernel->inputs[1], d);
    return take_box(kernel, start, NULL, &shapes[0], &shapes[0]);
}

static tare_status infer_strided_slice(struct tare_infer *infer) {
    struct tare_strided strided;
    int64_t length = -1, other;
    static const char *const names[] = { "begin", "end", "strides" };
    for (size_t i = 0; i < 3; i++) {
        TARE_TRY(tare_operand_vector(infer, i + 1, names[i], &other));
        if (length < 0) length = other;
    }
    TARE_TRY(tare_strided_make(&strided, infer->node, &infer->inputs[0], infer->input_values[1], infer->input_values[2],
                               infer->input_values[3], length));
    infer->outputs[0] = strided.result;
    return TARE_OK;
}

static tare_status strided_in(struct tare_strided *strided, const struct tare_kernel *kernel,
                              const struct tare_shape *whole) {
    if (kernel->inputs[3].shape.rank != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "strides has rank %d (expected 1)", kernel->inputs[3].shape.rank);
    return tare_strided_make(strided, kernel->node, whole, &kernel->inputs[1], &kernel->inputs[2], &kernel->inputs[3],
                             kernel->inputs[3].elements);
}

static tare_status strided_of(struct tare_strided *strided, const struct tare_kernel *kernel) {
    return strided_in(strided, kernel, &kernel->inputs[0].shape);
}

static tare_status run_strided_slice(struct tare_kernel *kernel) {
    struct tare_strided strided;
    TARE_TRY(strided_of(&strided, kernel));
    return take_box(kernel, strided.start, strided.step, &strided.counts, &strided.result);
}

/* into[begin:end:strides] = value, broadcast. */
static tare_status put_slice(struct tare_tensor *into, const struct tare_strided *strided,
                             const struct tare_tensor *value) {
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    const struct tare_shape *shape = &into->shape;
    struct tare_shape whole;
    struct tare_move move = { 0 };
    int64_t to[TARE_MAX_RANK], from[TARE_MAX_RANK];
    if (tare_shape_broadcast(&whole, &value->shape, &strided->result) != TARE_OK ||
        !tare_shape_equal(&whole, &strided->result))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "value of shape %s does not fill a slice of shape %s",
                         tare_shape_text(got, &value->shape), tare_shape_text(expected, &strided->result));
    tare_move_strides(to, shape);
    tare_move_strides(from, &value->shape);
    for (int d = 0; d < shape->rank; d++)
        move.to_offset += strided->start[d] * to[d];
    for (int r = 0; r < strided->result.rank; r++) {
        int d = strided->origin[r], back = r - strided->result.rank + value->shape.rank;
        int64_t step = d < 0 ? 0 : strided->counts.dims[d] > 1 ? strided->step[d] * to[d] : to[d];
        int64_t source = back >= 0 && value->shape.dims[back] != 1 ? from[back] : 0;
        tare_move_dim(&move, strided->result.dims[r], source, step);
    }
    return tare_move_apply(into, value, &move);
}

/* Returns a copy of the input with input[begin:end:strides] = value. */
static tare_status run_strided_slice_update(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct tare_strided strided;
    TARE_TRY(strided_of(&strided, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &in->shape));
    TARE_TRY(tare_move_run(&kernel->outputs[0], 0, in, 0, in->elements));
    return put_slice(&kernel->outputs[0], &strided, &kernel->inputs[4]);
}

/* Assigns to a slice of a variable in place. */
static tare_status run_strided_slice_assign(struct tare_kernel *kernel) {
    struct tare_variable_object *variable;
    struct tare_strided strided;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_variable_own(variable));
    if (variable->value.dtype != kernel->inputs[4].dtype)
        return TARE_FAIL(TARE_TYPE, "variable '%s' is %s, but the value is %s", variable->name,
                         tare_dtype_name(variable->value.dtype), tare_dtype_name(kernel->inputs[4].dtype));
    TARE_TRY(strided_in(&strided, kernel, &variable->value.shape));
    TARE_TRY(put_slice(&variable->value, &strided, &kernel->inputs[4]));
    return kernel->n_outputs ? tare_kernel_forward(kernel, 0, 0) : TARE_OK;
}

static tare_status infer_assign(struct tare_infer *infer) {
    if (infer->n_outputs) infer->outputs[0] = infer->inputs[0];
    return TARE_OK;
}

/* ---- StridedSliceGrad: zeros of the given shape with dy in the slice ---- */

static tare_status infer_slice_gradient(struct tare_infer *infer) {
    return tare_infer_shape_input(&infer->outputs[0], infer, 0);
}

static tare_status run_slice_gradient(struct tare_kernel *kernel) {
    struct tare_strided strided;
    TARE_TRY(tare_operand_output(kernel, 4));
    tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    TARE_TRY(tare_strided_make(&strided, kernel->node, &kernel->outputs[0].shape, &kernel->inputs[1],
                               &kernel->inputs[2], &kernel->inputs[3], kernel->inputs[1].elements));
    if (!tare_shape_equal(&strided.result, &kernel->inputs[4].shape)) {
        char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
        return TARE_FAIL(TARE_SHAPE, "shape of dy was %s instead of %s", tare_shape_text(got, &kernel->inputs[4].shape),
                         tare_shape_text(expected, &strided.result));
    }
    return put_slice(&kernel->outputs[0], &strided, &kernel->inputs[4]);
}

const struct tare_op tare_ops_slice[] = {
    { .name = "Slice",
      .infer = infer_slice,
      .run = run_slice,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "StridedSlice",
      .infer = infer_strided_slice,
      .run = run_strided_slice,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "TensorStridedSliceUpdate",
      .infer = tare_infer_same,
      .run = run_strided_slice_update,
      .flags = TARE_OP_MOVE },
    { .name = "StridedSliceGrad", .infer = infer_slice_gradient, .run = run_slice_gradient, .flags = TARE_OP_MOVE },
    { .name = "StridedSliceAssign",
      .infer = infer_assign,
      .run = run_strided_slice_assign,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceStridedSliceAssign",
      .infer = infer_assign,
      .run = run_strided_slice_assign,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { 0 },
};
