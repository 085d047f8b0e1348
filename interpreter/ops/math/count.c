/* Histograms of integers (Bincount, DenseBincount, SparseBincount, RaggedBincount) and BoostedTreesBucketize. */
#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

/* ---- Bincount, DenseBincount, SparseBincount, RaggedBincount ---- */

/* Adds the weight of value i (1 without weights) to a bin; with binary_output sets the bin to 1. */
static void add_to_bin(struct tare_tensor *bins, int64_t bin, const struct tare_tensor *weights, int64_t i,
                       bool binary) {
    bool weighted = weights->elements > 0 && !binary;
    switch (bins->dtype) {
    case TARE_DT_FLOAT: {
        float *to = &TARE_DATA(float, bins)[bin];
        *to = binary ? 1 : *to + (weighted ? TARE_CONST_DATA(float, weights)[i] : 1);
        break;
    }
    case TARE_DT_DOUBLE: {
        double *to = &TARE_DATA(double, bins)[bin];
        *to = binary ? 1 : *to + (weighted ? TARE_CONST_DATA(double, weights)[i] : 1);
        break;
    }
    case TARE_DT_INT32: {
        uint32_t *to = &TARE_DATA(uint32_t, bins)[bin];
        *to = binary ? 1 : *to + (weighted ? TARE_CONST_DATA(uint32_t, weights)[i] : 1);
        break;
    }
    default: {
        uint64_t *to = &TARE_DATA(uint64_t, bins)[bin];
        *to = binary ? 1 : *to + (weighted ? TARE_CONST_DATA(uint64_t, weights)[i] : 1);
        break;
    }
    }
}

/* Index of the input `size`, which follows the values. */
static size_t size_input(const struct tare_infer *infer) {
    return infer->n_inputs - 2;
}

static tare_status infer_bincount(struct tare_infer *infer) {
    const struct tare_shape *first = &infer->inputs[0];
    bool rows = false;
    int64_t size = -1, batch = -1;
    TARE_TRY(tare_operand_rank(infer, size_input(infer), "size", 0));
    if (tare_operand_scalar(infer, size_input(infer), &size) && size < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "size (%lld) must be non-negative", (long long)size);
    if (strcmp(infer->node->op, "DenseBincount") == 0) {
        if (first->rank > 2)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Shape must be at most rank 2 but is rank %d", first->rank);
        if (first->rank < 0) return TARE_OK;
        rows = first->rank == 2;
        if (rows) batch = first->dims[0];
    } else if (infer->n_inputs == 5) { /* SparseBincount */
        int64_t dims[TARE_MAX_RANK], length;
        int count;
        TARE_TRY(tare_operand_vector(infer, 2, "dense_shape", &length));
        TARE_TRY(tare_operand_list(infer, 2, "dense_shape", dims, &count));
        if (length < 0) return TARE_OK;
        if (length < 1 || length > 2) return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shape must have 1 or 2 elements");
        rows = length == 2;
        if (rows && count == 2) batch = dims[0];
        if (batch < -1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shape is negative");
    } else if (infer->n_inputs == 4) { /* RaggedBincount */
        TARE_TRY(tare_operand_vector(infer, 0, "splits", &batch));
        if (batch == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Splits must be non-empty");
        if (batch > 0) batch--;
        rows = true;
    }
    infer->outputs[0] = tare_operand_vector_shape(rows ? batch : size);
    if (rows) infer->outputs[0].dims[infer->outputs[0].rank++] = size;
    return TARE_OK;
}

/* Finds the row that value i belongs to. */
static tare_status bin_row(int64_t *row, const struct tare_kernel *kernel, int64_t i) {
    const struct tare_shape *out = &kernel->outputs[0].shape;
    *row = 0;
    if (out->rank < 2) return TARE_OK;
    if (kernel->n_inputs == 5) {
        *row = tare_index_at(&kernel->inputs[0], 2 * i);
        if (*row < 0 || *row >= out->dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Index out of bound. row %lld is not in [0, %lld)", (long long)*row,
                             (long long)out->dims[0]);
    } else if (kernel->n_inputs == 4) {
        int64_t low = 0, high = out->dims[0] - 1;
        while (low < high) { /* the last row that starts at or before i */
            int64_t middle = low + (high - low + 1) / 2;
            if (tare_index_at(&kernel->inputs[0], middle) <= i)
                low = middle;
            else
                high = middle - 1;
        }
        *row = low;
    } else {
        *row = i / kernel->inputs[0].shape.dims[1];
    }
    return TARE_OK;
}

/* Values greater than or equal to `size` are ignored, as in TensorFlow. */
static tare_status run_bincount(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[kernel->n_inputs < 4 ? 0 : 1];
    const struct tare_tensor *weights = &kernel->inputs[kernel->n_inputs - 1];
    struct tare_tensor *out = &kernel->outputs[0];
    bool binary = tare_node_bool(kernel->node, "binary_output", false);
    int64_t size;
    if (weights->elements && weights->elements != values->elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "weights must have no elements or as many as the values: %lld vs. %lld",
                         (long long)weights->elements, (long long)values->elements);
    TARE_TRY(tare_operand_output(kernel, kernel->n_inputs - 1));
    if (kernel->n_inputs == 4) TARE_TRY(tare_text_check_splits(&kernel->inputs[0], values->elements));
    if (kernel->n_inputs == 5 &&
        (kernel->inputs[0].shape.rank != 2 || kernel->inputs[0].shape.dims[0] != values->elements ||
         kernel->inputs[0].shape.dims[1] != kernel->inputs[2].elements))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices do not match the values and the dense shape");
    size = out->shape.dims[out->shape.rank - 1];
    tare_move_zero(out, 0, out->elements);
    for (int64_t i = 0; i < values->elements; i++) {
        int64_t value = tare_index_at(values, i), row;
        if (value < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input must be non-negative (got %lld)", (long long)value);
        TARE_TRY(bin_row(&row, kernel, i));
        if (value < size) add_to_bin(out, row * size + value, weights, i, binary);
    }
    return TARE_OK;
}

/* ---- BoostedTreesBucketize ---- */

static tare_status infer_bucketize(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++) {
        TARE_TRY(tare_operand_rank(infer, i, "float_values", 1));
        TARE_TRY(tare_operand_rank(infer, infer->n_outputs + i, "bucket_boundaries", 1));
        infer->outputs[i] = infer->inputs[i];
    }
    return TARE_OK;
}

/* The bucket is the index of the first boundary that is not less than the value; values above all boundaries belong
 * to the last bucket. */
static tare_status run_bucketize(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t f = 0; f < kernel->n_outputs; f++) {
        const struct tare_tensor *values = &kernel->inputs[f], *bounds = &kernel->inputs[kernel->n_outputs + f];
        if (values->elements && !bounds->elements)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "bucket_boundaries of feature %zu is empty", f);
        TARE_TRY(tare_kernel_output(kernel, f, TARE_DT_INT32, &shapes[f]));
        for (int64_t i = 0; i < values->elements; i++) {
            int64_t low = 0, high = bounds->elements;
            while (low < high) {
                int64_t middle = low + (high - low) / 2;
                if (TARE_CONST_DATA(float, bounds)[middle] < TARE_CONST_DATA(float, values)[i])
                    low = middle + 1;
                else
                    high = middle;
            }
            TARE_DATA(int32_t, &kernel->outputs[f])[i] = (int32_t)(low == bounds->elements ? low - 1 : low);
        }
    }
    return TARE_OK;
}

#define BINCOUNT(op_name)                                                                                              \
    { .name = op_name, .infer = infer_bincount, .run = run_bincount }

const struct tare_op tare_ops_count[] = {
    { .name = "Bincount", .infer = infer_bincount, .run = run_bincount },
    { .name = "BoostedTreesBucketize", .infer = infer_bucketize, .run = run_bucketize },
    BINCOUNT("DenseBincount"),
    BINCOUNT("RaggedBincount"),
    BINCOUNT("SparseBincount"),
    { 0 },
};
#undef BINCOUNT
