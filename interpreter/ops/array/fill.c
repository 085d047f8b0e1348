/* Tensors generated from a few values: Fill, Empty, Range, LinSpace, OneHot, ZerosLike and OnesLike. */
#include "base/alloc.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "base/tensor/number.h"

static tare_status infer_fill(struct tare_infer *infer) {
    int64_t dims[TARE_MAX_RANK], length;
    int count;
    TARE_TRY(tare_operand_vector(infer, 0, "dims", &length));
    if (infer->n_inputs > 1 && infer->inputs[1].rank > 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "value must be a scalar, got rank %d", infer->inputs[1].rank);
    TARE_TRY(tare_operand_list(infer, 0, "dims", dims, &count));
    if (count < 0) {
        if (length >= 0 && length <= TARE_MAX_RANK) infer->outputs[0] = tare_operand_unknown_dims((int)length);
        return TARE_OK;
    }
    for (int d = 0; d < count; d++)
        if (dims[d] < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)dims[d]);
    return tare_shape_from_dims(&infer->outputs[0], count, dims);
}

static tare_status run_fill(struct tare_kernel *kernel) {
    TARE_TRY(tare_operand_output(kernel, 1));
    return tare_move_fill(&kernel->outputs[0], 0, kernel->outputs[0].elements, &kernel->inputs[1], 0);
}

/* TensorFlow leaves this memory uninitialized; it is zeroed here so that runs are repeatable. */
static tare_status run_empty(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(kernel->node, "dtype", TARE_DT_FLOAT), &shapes[0]));
    tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    return TARE_OK;
}

static tare_status run_zeros_like(struct tare_kernel *kernel) {
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, &kernel->inputs[0].shape));
    tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    return TARE_OK;
}

static tare_status run_ones_like(struct tare_kernel *kernel) {
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, &kernel->inputs[0].shape));
    if (!out->elements) return TARE_OK;
    tare_tensor_set_f64(out, 0, 1);
    return tare_move_fill(out, 1, out->elements - 1, out, 0);
}

/* Computes the number of elements of start, start + delta, … before limit. */
static tare_status range_count(int64_t *count, const struct tare_tensor *const *operands) {
    const struct tare_tensor *start = operands[0], *limit = operands[1], *delta = operands[2];
    if (!tare_dtype_is_floating(start->dtype)) {
        int64_t from = tare_tensor_get_i64(start, 0), to = tare_tensor_get_i64(limit, 0),
                by = tare_tensor_get_i64(delta, 0);
        uint64_t span, step;
        if (by == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires delta != 0: 0");
        if (by > 0 ? from > to : from < to)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires start %s limit when delta %s 0: %lld/%lld",
                             by > 0 ? "<=" : ">=", by > 0 ? ">" : "<", (long long)from, (long long)to);
        span = by > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
        step = by > 0 ? (uint64_t)by : -(uint64_t)by;
        if (span / step >= (uint64_t)INT64_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires ((limit - start) / delta) <= 9223372036854775807");
        *count = (int64_t)(span / step + (span % step != 0));
    } else {
        double from = tare_tensor_get_f64(start, 0), to = tare_tensor_get_f64(limit, 0),
               by = tare_tensor_get_f64(delta, 0), size;
        if (by == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires delta != 0: 0");
        if (by > 0 ? from > to : from < to)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires start %s limit when delta %s 0: %g/%g",
                             by > 0 ? "<=" : ">=", by > 0 ? ">" : "<", from, to);
        size = tare_floats_range(start->dtype, from, to, by);
        if (!(size < 0x1p63))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires ((limit - start) / delta) <= 9223372036854775807");
        *count = (int64_t)size;
    }
    return TARE_OK;
}

static tare_status infer_range(struct tare_infer *infer) {
    static const char *const names[] = { "start", "limit", "delta" };
    int64_t count = -1;
    bool known = true;
    for (size_t i = 0; i < 3; i++) {
        if (infer->inputs[i].rank > 0 && !(infer->input_values[i] && infer->input_values[i]->elements == 1))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be a scalar, not rank %d", names[i],
                             infer->inputs[i].rank);
        known = known && infer->input_values[i] && infer->input_values[i]->elements == 1;
    }
    if (known) TARE_TRY(range_count(&count, infer->input_values));
    infer->outputs[0] = tare_operand_vector_shape(count);
    return TARE_OK;
}

/* Reals are start + i * delta, each operation rounded to the dtype, as in TensorFlow. */
static tare_status run_range(struct tare_kernel *kernel) {
    struct tare_tensor *out = &kernel->outputs[0];
    const struct tare_tensor *start = &kernel->inputs[0], *delta = &kernel->inputs[2];
    TARE_TRY(tare_operand_output(kernel, 0));
    if (tare_dtype_is_floating(out->dtype)) {
        const double from = tare_tensor_get_f64(start, 0), by = tare_tensor_get_f64(delta, 0);
        for (int64_t i = 0; i < out->elements; i++)
            tare_tensor_set_f64(out, i, tare_floats_step(out->dtype, from, by, i));
    } else {
        uint64_t at = (uint64_t)tare_tensor_get_i64(start, 0), by = (uint64_t)tare_tensor_get_i64(delta, 0);
        for (int64_t i = 0; i < out->elements; i++, at += by) {
            switch (tare_dtype_size(out->dtype)) {
            case 1:
                TARE_DATA(uint8_t, out)[i] = (uint8_t)at;
                break;
            case 2:
                TARE_DATA(uint16_t, out)[i] = (uint16_t)at;
                break;
            case 4:
                TARE_DATA(uint32_t, out)[i] = (uint32_t)at;
                break;
            default:
                TARE_DATA(uint64_t, out)[i] = at;
                break;
            }
        }
    }
    return TARE_OK;
}

static tare_status infer_lin_space(struct tare_infer *infer) {
    int64_t count = -1;
    for (size_t i = 0; i < 3; i++)
        TARE_TRY(tare_operand_rank(infer, i, i == 0 ? "start" : i == 1 ? "stop" : "num", 0));
    if (tare_operand_scalar(infer, 2, &count) && count <= 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)count);
    infer->outputs[0] = tare_operand_vector_shape(count);
    return TARE_OK;
}

/* Computes start + step * i in the dtype; the last element is exactly stop. */
static tare_status run_lin_space(struct tare_kernel *kernel) {
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_operand_output(kernel, 0)); /* the three inputs are scalars */
    const double start = tare_tensor_get_f64(&kernel->inputs[0], 0), stop = tare_tensor_get_f64(&kernel->inputs[1], 0);
    const int64_t last = out->elements - 1;
    for (int64_t i = 0; i <= last; i++) {
        double value = start;
        if (out->dtype == TARE_DT_DOUBLE)
            value = start + (last ? (stop - start) / (double)last : 0) * (double)i;
        else
            value = (float)start + (last ? ((float)stop - (float)start) / (float)last : 0) * (float)i;
        tare_tensor_set_f64(out, i, i == last && last ? stop : value);
    }
    return TARE_OK;
}

static tare_status one_hot_axis(int *axis, const struct tare_node *node, int rank) {
    int64_t value = tare_node_int(node, "axis", -1);
    *axis = 0;
    if (value < -1 || value > rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected axis to be -1 or between [0, %d).  But received: %lld",
                         rank + 1, (long long)value);
    *axis = value == -1 ? rank : (int)value;
    return TARE_OK;
}

static tare_status infer_one_hot(struct tare_infer *infer) {
    static const char *const names[] = { "indices", "depth", "on_value", "off_value" };
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    int64_t depth = -1;
    int axis;
    for (size_t i = 1; i < 4; i++)
        TARE_TRY(tare_operand_rank(infer, i, names[i], 0));
    if (tare_operand_scalar(infer, 1, &depth) && depth < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "depth must be non-negative, got: %lld", (long long)depth);
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (in->rank == TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
    TARE_TRY(one_hot_axis(&axis, infer->node, in->rank));
    out->rank = 0;
    TARE_TRY(tare_operand_append(out, in, 0, axis));
    out->dims[out->rank++] = depth;
    return tare_operand_append(out, in, axis, in->rank);
}

/* An index outside [0, depth) yields off_value for the whole row. */
static tare_status run_one_hot(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t inner, depth;
    int axis;
    TARE_TRY(tare_operand_output(kernel, 2));
    TARE_TRY(one_hot_axis(&axis, kernel->node, in->shape.rank));
    inner = tare_move_product(&in->shape, axis, in->shape.rank);
    depth = out->shape.dims[axis];
    TARE_TRY(tare_move_fill(out, 0, out->elements, &kernel->inputs[3], 0));
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t index = tare_tensor_get_i64(in, i);
        if (index >= 0 && index < depth)
            TARE_TRY(tare_move_run(out, (i / inner * depth + index) * inner + i % inner, &kernel->inputs[2], 0, 1));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_fill[] = {
    { .name = "Empty", .infer = infer_fill, .run = run_empty, .flags = TARE_OP_CREATE },
    { .name = "Fill", .infer = infer_fill, .run = run_fill, .flags = TARE_OP_MOVE },
    { .name = "LinSpace", .infer = infer_lin_space, .run = run_lin_space, .flags = TARE_OP_FLOAT32 | TARE_OP_DISCRETE },
    { .name = "OneHot", .infer = infer_one_hot, .run = run_one_hot, .flags = TARE_OP_CREATE },
    { .name = "OnesLike", .infer = tare_infer_same, .run = run_ones_like, .flags = TARE_OP_CREATE },
    { .name = "Range", .infer = infer_range, .run = run_range, .flags = TARE_OP_FLOAT32 | TARE_OP_DISCRETE },
    { .name = "ZerosLike", .infer = tare_infer_same, .run = run_zeros_like, .flags = TARE_OP_CREATE },
    { 0 },
};
