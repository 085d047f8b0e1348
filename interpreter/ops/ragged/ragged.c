/* RaggedRange, RaggedGather and RaggedTensorToSparse. A ragged tensor consists of values and nested row splits. */
#include "base/alloc.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"
#include "base/tensor/number.h"

#include <string.h>

/* ---- RaggedRange ---- */

static tare_status infer_range(struct tare_infer *infer) {
    int64_t rows = -1;
    for (size_t i = 0; i < 3; i++) {
        if (infer->inputs[i].rank > 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "starts, limits and deltas must be scalars or vectors");
        if (infer->inputs[i].rank != 1 || infer->inputs[i].dims[0] < 0) continue;
        if (rows >= 0 && rows != infer->inputs[i].dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "starts, limits, and deltas must have the same shape");
        rows = infer->inputs[i].dims[0];
    }
    if (infer->inputs[0].rank == 0 && infer->inputs[1].rank == 0 && infer->inputs[2].rank == 0) rows = 1;
    infer->outputs[0] = tare_operand_vector_shape(rows < 0 ? -1 : rows + 1);
    infer->outputs[1] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

/* Number of elements of one row. */
static tare_status range_size(int64_t *size, const struct tare_tensor *start, const struct tare_tensor *limit,
                              const struct tare_tensor *delta, int64_t a, int64_t b, int64_t c) {
    *size = 0;
    if (tare_dtype_is_floating(start->dtype)) {
        const double from = tare_tensor_get_f64(start, a), to = tare_tensor_get_f64(limit, b);
        const double by = tare_tensor_get_f64(delta, c), count = tare_floats_range(start->dtype, from, to, by);
        if (by == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires delta != 0");
        if (by > 0 ? to < from : to > from) return TARE_OK;
        if (!(count < 0x1p53))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires ((limit - start) / delta) <= 9007199254740992");
        *size = (int64_t)count;
    } else {
        int64_t by = tare_tensor_get_i64(delta, c), from = tare_tensor_get_i64(start, a),
                to = tare_tensor_get_i64(limit, b);
        uint64_t span = by > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
        uint64_t step = by > 0 ? (uint64_t)by : -(uint64_t)by;
        if (by == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Requires delta != 0");
        if (by > 0 ? from >= to : from <= to)
            *size = 0;
        else if (span / step >= (uint64_t)INT64_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the range is too large");
        else
            *size = (int64_t)(span / step + (span % step != 0));
    }
    return TARE_OK;
}

static void write_range(struct tare_tensor *out, int64_t at, int64_t size, const struct tare_kernel *kernel, int64_t a,
                        int64_t c) {
    const struct tare_tensor *start = &kernel->inputs[0], *delta = &kernel->inputs[2];
    float real = (float)tare_tensor_get_f64(start, a), by = (float)tare_tensor_get_f64(delta, c);
    double wide = tare_tensor_get_f64(start, a), wide_by = tare_tensor_get_f64(delta, c);
    uint64_t whole = (uint64_t)tare_tensor_get_i64(start, a), whole_by = (uint64_t)tare_tensor_get_i64(delta, c);
    for (int64_t i = at; i < at + size; i++) {
        switch (out->dtype) {
        case TARE_DT_FLOAT:
            TARE_DATA(float, out)[i] = real;
            break;
        case TARE_DT_DOUBLE:
            TARE_DATA(double, out)[i] = wide;
            break;
        case TARE_DT_BFLOAT16: {
            uint16_t bits = tare_bfloat16_from_float(real);
            TARE_DATA(uint16_t, out)[i] = bits;
            real = tare_float_from_bfloat16(bits);
            break;
        }
        case TARE_DT_INT32:
            TARE_DATA(uint32_t, out)[i] = (uint32_t)whole;
            break;
        default:
            TARE_DATA(uint64_t, out)[i] = whole;
            break;
        }
        real += by;
        wide += wide_by;
        whole += whole_by;
    }
}

static tare_status run_range(struct tare_kernel *kernel) {
    const struct tare_tensor *in = kernel->inputs;
    struct tare_shape *shapes, values;
    int64_t total = 0, rows;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    rows = shapes[0].dims[0] - 1;
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(kernel->node, "Tsplits", TARE_DT_INT64), &shapes[0]));
    tare_text_set_index(&kernel->outputs[0], 0, 0);
    for (int64_t i = 0; i < rows; i++) {
        int64_t size;
        TARE_TRY(range_size(&size, &in[0], &in[1], &in[2], in[0].shape.rank ? i : 0, in[1].shape.rank ? i : 0,
                            in[2].shape.rank ? i : 0));
        if (!tare_add_i64(&total, total, size)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the ranges are too large");
        tare_text_set_index(&kernel->outputs[0], i + 1, total);
    }
    values = tare_operand_vector_shape(total);
    TARE_TRY(tare_kernel_output(kernel, 1, in[0].dtype, &values));
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = tare_index_at(&kernel->outputs[0], i), end = tare_index_at(&kernel->outputs[0], i + 1);
        write_range(&kernel->outputs[1], at, end - at, kernel, in[0].shape.rank ? i : 0, in[2].shape.rank ? i : 0);
    }
    return TARE_OK;
}

/* ---- RaggedGather ---- */

static tare_status infer_gather(struct tare_infer *infer) {
    size_t levels = infer->n_outputs - 1;
    const struct tare_shape *values = &infer->inputs[infer->n_inputs - 2];
    const struct tare_shape *indices = &infer->inputs[infer->n_inputs - 1];
    if (values->rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "params.rank must be nonzero");
    for (size_t i = 0; i < levels; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    if (indices->rank >= 0 && (size_t)indices->rank + infer->n_inputs - 3 != levels)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "OUTPUT_RAGGED_RANK is %zu (expected %zu)", levels,
                         (size_t)indices->rank + infer->n_inputs - 3);
    infer->outputs[levels] = *values;
    if (values->rank > 0) infer->outputs[levels].dims[0] = -1;
    return TARE_OK;
}

/* Row ranges of one level: rows first … last-1. */
struct span {
    int64_t first, last;
};

/* Computes the ranges of the next inner level. */
static void descend(const struct tare_tensor *splits, struct span *spans, int64_t n_spans) {
    for (int64_t i = 0; i < n_spans; i++)
        spans[i] = (struct span){ tare_index_at(splits, spans[i].first), tare_index_at(splits, spans[i].last) };
}

/* Writes output level `level`: the lengths of the rows in `spans`. */
static tare_status write_level(struct tare_kernel *kernel, size_t level, const struct tare_tensor *splits,
                               const struct span *spans, int64_t n_spans) {
    struct tare_shape shape;
    struct tare_tensor *out = &kernel->outputs[level];
    int64_t rows = 0, total = 0, at = 0;
    for (int64_t i = 0; i < n_spans; i++)
        rows += spans[i].last - spans[i].first;
    shape = tare_operand_vector_shape(rows + 1);
    TARE_TRY(tare_kernel_output(kernel, level, splits->dtype, &shape));
    tare_text_set_index(out, at++, 0);
    for (int64_t i = 0; i < n_spans; i++) {
        for (int64_t row = spans[i].first; row < spans[i].last; row++) {
            total += tare_index_at(splits, row + 1) - tare_index_at(splits, row);
            tare_text_set_index(out, at++, total);
        }
    }
    return TARE_OK;
}

static tare_status run_gather(struct tare_kernel *kernel) {
    size_t nested = kernel->n_inputs - 2, level = 0;
    const struct tare_tensor *values = &kernel->inputs[nested], *indices = &kernel->inputs[nested + 1];
    struct tare_tensor *out = &kernel->outputs[kernel->n_outputs - 1];
    struct span *spans = TARE_NEW_ARRAY(kernel->scratch, struct span, (size_t)indices->elements + 1);
    struct tare_shape *shapes, shape = values->shape;
    int64_t inner, total = 0, limit, at = 0;
    if (!spans) return TARE_NO_MEMORY;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t i = 0; i < nested; i++) {
        int64_t below = i + 1 < nested ? kernel->inputs[i + 1].elements - 1 : values->shape.dims[0];
        TARE_TRY(tare_text_check_splits(&kernel->inputs[i], below));
    }
    for (int d = 1; d < indices->shape.rank; d++, level++) { /* uniform rows of the inner dimensions of indices */
        int64_t rows = tare_move_product(&indices->shape, 0, d);
        struct tare_shape uniform = tare_operand_vector_shape(rows + 1);
        TARE_TRY(tare_kernel_output(kernel, level, kernel->inputs[0].dtype, &uniform));
        for (int64_t i = 0; i <= rows; i++)
            tare_text_set_index(&kernel->outputs[level], i, i * indices->shape.dims[d]);
    }
    limit = kernel->inputs[0].elements - 1;
    for (int64_t i = 0; i < indices->elements; i++) {
        int64_t index = tare_index_at(indices, i);
        if (index < 0 || index >= limit) return tare_index_fault("indices", indices, i, index, limit);
        spans[i] = (struct span){ index, index + 1 };
    }
    for (size_t i = 0; i < nested; i++) { /* a single row has no splits of its own */
        if (i || indices->shape.rank)
            TARE_TRY(write_level(kernel, level++, &kernel->inputs[i], spans, indices->elements));
        descend(&kernel->inputs[i], spans, indices->elements);
    }
    for (int64_t i = 0; i < indices->elements; i++)
        total += spans[i].last - spans[i].first;
    shape.dims[0] = total;
    inner = tare_move_product(&shape, 1, shape.rank);
    TARE_TRY(tare_kernel_output(kernel, kernel->n_outputs - 1, values->dtype, &shape));
    for (int64_t i = 0; i < indices->elements; i++) {
        int64_t rows = spans[i].last - spans[i].first;
        TARE_TRY(tare_move_run(out, at * inner, values, spans[i].first * inner, rows * inner));
        at += rows;
    }
    return TARE_OK;
}

/* ---- RaggedTensorToSparse ---- */

static tare_status infer_to_sparse(struct tare_infer *infer) {
    size_t nested = infer->n_inputs - 1;
    const struct tare_shape *values = &infer->inputs[nested];
    int64_t rank = values->rank < 0 ? -1 : values->rank + (int64_t)nested, elements = -1;
    if (values->rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "rt_dense_values must be at least a vector");
    if (rank > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "a sparse tensor of rank %lld", (long long)rank);
    if (tare_shape_is_known(values)) TARE_TRY(tare_shape_elements(&elements, values));
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[0] = elements;
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(elements);
    infer->outputs[2] = tare_operand_vector_shape(rank);
    return TARE_OK;
}

/* Coordinates of one value: walks up the nested splits; cursors[i] is the row of level i that contains it. */
static tare_status run_to_sparse(struct tare_kernel *kernel) {
    size_t nested = kernel->n_inputs - 1;
    const struct tare_tensor *values = &kernel->inputs[nested];
    int64_t cursors[TARE_MAX_RANK] = { 0 }, strides[TARE_MAX_RANK], *to, *dims, inner;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t i = 0; i < nested; i++)
        TARE_TRY(tare_text_check_splits(&kernel->inputs[i],
                                        i + 1 < nested ? kernel->inputs[i + 1].elements - 1 : values->shape.dims[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &shapes[2]));
    TARE_TRY(tare_kernel_forward_as(kernel, 1, nested, &shapes[1]));
    dims = TARE_DATA(int64_t, &kernel->outputs[2]);
    dims[0] = kernel->inputs[0].elements - 1;
    for (size_t i = 0; i < nested; i++) {
        dims[i + 1] = 0;
        for (int64_t row = 0; row + 1 < kernel->inputs[i].elements; row++) {
            int64_t width = tare_index_at(&kernel->inputs[i], row + 1) - tare_index_at(&kernel->inputs[i], row);
            if (width > dims[i + 1]) dims[i + 1] = width;
        }
    }
    for (int d = 1; d < values->shape.rank; d++)
        dims[nested + (size_t)d] = values->shape.dims[d];
    tare_move_strides(strides, &values->shape);
    inner = tare_move_product(&values->shape, 1, values->shape.rank);
    to = TARE_DATA(int64_t, &kernel->outputs[0]);
    for (int64_t i = 0; i < values->elements; i++) {
        int64_t item = i / inner;
        for (size_t level = nested; level-- > 0;) {
            const struct tare_tensor *splits = &kernel->inputs[level];
            while (tare_index_at(splits, cursors[level] + 1) <= item)
                cursors[level]++;
            to[level + 1] = item - tare_index_at(splits, cursors[level]);
            item = cursors[level];
        }
        to[0] = item;
        for (int d = 1; d < values->shape.rank; d++)
            to[nested + (size_t)d] = i / strides[d] % values->shape.dims[d];
        to += nested + (size_t)values->shape.rank;
    }
    return TARE_OK;
}

const struct tare_op tare_ops_ragged[] = {
    { .name = "RaggedGather", .infer = infer_gather, .run = run_gather },
    { .name = "RaggedRange", .infer = infer_range, .run = run_range },
    { .name = "RaggedTensorToSparse", .infer = infer_to_sparse, .run = run_to_sparse },
    { 0 },
};
