/* Shapes as values (Shape, ShapeN, Size, Rank) and reshaping without a copy (Reshape, ExpandDims, Squeeze,
 * EnsureShape), and InvertPermutation. */
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

static void write_integer(struct tare_tensor *out, int64_t i, int64_t value) {
    if (out->dtype == TARE_DT_INT32)
        TARE_DATA(int32_t, out)[i] = (int32_t)value;
    else
        TARE_DATA(int64_t, out)[i] = value;
}

static tare_status check_fits(int dtype, int64_t value, const char *what) {
    if (dtype == TARE_DT_INT32 && value > INT32_MAX)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s %lld does not fit in int32: use out_type int64", what,
                         (long long)value);
    return TARE_OK;
}

static tare_status infer_shape(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] =
            tare_operand_vector_shape(infer->inputs[i].rank); /* an unknown rank and an unknown dimension are both -1 */
    return TARE_OK;
}

static tare_status run_shape(struct tare_kernel *kernel) {
    int dtype = tare_node_type(kernel->node, "out_type", TARE_DT_INT32);
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        const struct tare_shape *in = &kernel->inputs[i].shape;
        struct tare_shape shape = tare_shape_make(1, in->rank);
        TARE_TRY(tare_kernel_output(kernel, i, dtype, &shape));
        for (int d = 0; d < in->rank; d++) {
            TARE_TRY(check_fits(dtype, in->dims[d], "dimension"));
            write_integer(&kernel->outputs[i], d, in->dims[d]);
        }
    }
    return TARE_OK;
}

static tare_status run_size(struct tare_kernel *kernel) {
    int dtype = tare_node_type(kernel->node, "out_type", TARE_DT_INT32);
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(check_fits(dtype, kernel->inputs[0].elements, "size"));
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &scalar));
    write_integer(&kernel->outputs[0], 0, kernel->inputs[0].elements);
    return TARE_OK;
}

static tare_status run_rank(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &scalar));
    write_integer(&kernel->outputs[0], 0, kernel->inputs[0].shape.rank);
    return TARE_OK;
}

/* Computes the product of the requested dimensions and finds the one that is -1 (*open; -1: none). */
static tare_status check_requested(const int64_t *dims, int rank, int *open, int64_t *product) {
    *open = -1;
    *product = 1;
    for (int d = 0; d < rank; d++) {
        if (dims[d] == -1) {
            if (*open >= 0)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only one input size may be -1, not both %d and %d", *open, d);
            *open = d;
        } else if (dims[d] < 0) {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Size %d must be non-negative, not %lld", d, (long long)dims[d]);
        } else if (!tare_mul_i64(product, *product, dims[d])) {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the requested shape has too many elements");
        }
    }
    return TARE_OK;
}

static tare_status infer_reshape(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    int64_t length, product, elements;
    int count, open;
    TARE_TRY(tare_operand_vector(infer, 1, "shape", &length));
    if (length > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "shape has %lld elements (expected at most %d)", (long long)length, TARE_MAX_RANK);
    TARE_TRY(tare_operand_list(infer, 1, "shape", out->dims, &count));
    if (count < 0) {
        if (length >= 0) *out = tare_operand_unknown_dims((int)length);
        return TARE_OK;
    }
    out->rank = count;
    TARE_TRY(check_requested(out->dims, count, &open, &product));
    if (!tare_shape_is_known(&infer->inputs[0])) return TARE_OK;
    TARE_TRY(tare_shape_elements(&elements, &infer->inputs[0]));
    if (open >= 0 && product == 0) {
        if (elements == 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "reshape cannot infer the missing input size for an empty tensor "
                                                    "unless all specified input sizes are non-zero");
    } else if (open >= 0) {
        if (elements % product)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Input to reshape is a tensor with %lld values, but the requested shape requires a "
                             "multiple of %lld",
                             (long long)elements, (long long)product);
        out->dims[open] = elements / product;
        product = elements;
    }
    if (product != elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Input to reshape is a tensor with %lld values, but the requested shape has %lld",
                         (long long)elements, (long long)product);
    return TARE_OK;
}

static tare_status run_as_inferred(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    return tare_kernel_forward_as(kernel, 0, 0, &shapes[0]);
}

static tare_status infer_expand_dims(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    const struct tare_shape *in = &infer->inputs[0];
    int64_t axis, position;
    if (infer->input_values[1] && infer->input_values[1]->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "'dim' must be a tensor with a single value");
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (in->rank == TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
    if (!tare_operand_scalar(infer, 1, &axis)) {
        *out = tare_operand_unknown_dims(in->rank + 1);
        return TARE_OK;
    }
    position = axis < 0 ? axis + in->rank + 1 : axis;
    if (position < 0 || position > in->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Tried to expand dim index %lld for tensor with %d dimensions",
                         (long long)axis, in->rank);
    out->rank = 0;
    TARE_TRY(tare_operand_append(out, in, 0, (int)position));
    out->dims[out->rank++] = 1;
    return tare_operand_append(out, in, (int)position, in->rank);
}

static tare_status infer_squeeze(struct tare_infer *infer) {
    const struct tare_attr *attr = tare_node_list(infer->node, "squeeze_dims");
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    bool expected[TARE_MAX_RANK] = { false };
    size_t count = attr ? attr->count : 0;
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = attr->items[i].i;
        if (axis < -in->rank || axis >= in->rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Tried to squeeze dim index %lld for tensor with %d dimensions",
                             (long long)axis, in->rank);
        expected[axis < 0 ? axis + in->rank : axis] = true;
    }
    out->rank = 0;
    for (int d = 0; d < in->rank; d++) {
        if (count && expected[d] && in->dims[d] != 1 && in->dims[d] != TARE_UNKNOWN_DIM)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Can not squeeze dim[%d], expected a dimension of 1, got %lld", d,
                             (long long)in->dims[d]);
        if (!count && in->dims[d] == TARE_UNKNOWN_DIM) {
            *out = tare_shape_unknown();
            return TARE_OK;
        }
        if (count ? !expected[d] : in->dims[d] != 1) out->dims[out->rank++] = in->dims[d];
    }
    return TARE_OK;
}

static tare_status infer_ensure_shape(struct tare_infer *infer) {
    struct tare_shape expected;
    char got_text[TARE_SHAPE_TEXT_SIZE], expected_text[TARE_SHAPE_TEXT_SIZE];
    if (!tare_node_shape(infer->node, "shape", &expected)) expected = tare_shape_unknown();
    if (!tare_shape_compatible(&infer->inputs[0], &expected))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Shape of tensor input %s is not compatible with expected shape %s.",
                         tare_shape_text(got_text, &infer->inputs[0]), tare_shape_text(expected_text, &expected));
    return tare_shape_merge(&infer->outputs[0], &infer->inputs[0], &expected);
}

static tare_status infer_vector_same(struct tare_infer *infer) {
    int64_t length;
    TARE_TRY(tare_operand_vector(infer, 0, "x", &length));
    infer->outputs[0] = tare_operand_vector_shape(length);
    return TARE_OK;
}

static tare_status run_invert_permutation(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    TARE_TRY(tare_operand_output(kernel, 0));
    for (int64_t i = 0; i < in->elements; i++)
        write_integer(&kernel->outputs[0], i, -1);
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t d = tare_tensor_get_i64(in, i);
        if (d < 0 || d >= in->elements)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld is not between 0 and %lld", (long long)d,
                             (long long)in->elements);
        if (tare_tensor_get_i64(&kernel->outputs[0], d) != -1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld is duplicated in the input.", (long long)d);
        write_integer(&kernel->outputs[0], d, i);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_shape[] = {
    { .name = "EnsureShape",
      .infer = infer_ensure_shape,
      .run = run_as_inferred,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "ExpandDims",
      .infer = infer_expand_dims,
      .run = run_as_inferred,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "InvertPermutation", .infer = infer_vector_same, .run = run_invert_permutation },
    { .name = "Rank", .infer = tare_infer_scalar, .run = run_rank, .flags = TARE_OP_SHAPE_ONLY },
    { .name = "Reshape",
      .infer = infer_reshape,
      .run = run_as_inferred,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Shape", .infer = infer_shape, .run = run_shape, .flags = TARE_OP_SHAPE_ONLY },
    { .name = "ShapeN", .infer = infer_shape, .run = run_shape, .flags = TARE_OP_SHAPE_ONLY },
    { .name = "Size", .infer = tare_infer_scalar, .run = run_size, .flags = TARE_OP_SHAPE_ONLY },
    { .name = "Squeeze",
      .infer = infer_squeeze,
      .run = run_as_inferred,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
