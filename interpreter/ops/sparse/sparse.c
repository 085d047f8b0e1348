/* Conversions of sparse tensors: SparseToDense, SparseReshape, SparseReorder, SparseSlice, SparseFillEmptyRows and
 * its ragged variant and gradient. */
#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"

#include <stdlib.h>

/* ---- SparseToDense ---- */

static tare_status infer_to_dense(struct tare_infer *infer) {
    int64_t dims[TARE_MAX_RANK], length;
    int count;
    if (infer->inputs[0].rank > 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "sparse_indices should be a scalar, vector, or matrix, got rank %d",
                         infer->inputs[0].rank);
    TARE_TRY(tare_operand_vector(infer, 1, "output_shape", &length));
    if (infer->inputs[2].rank > 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "sparse_values should be a scalar or a vector");
    TARE_TRY(tare_operand_rank(infer, 3, "default_value", 0));
    TARE_TRY(tare_operand_list(infer, 1, "output_shape", dims, &count));
    if (count < 0) {
        if (length >= 0 && length <= TARE_MAX_RANK) infer->outputs[0] = tare_operand_unknown_dims((int)length);
        return TARE_OK;
    }
    for (int d = 0; d < count; d++)
        if (dims[d] < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "output_shape[%d] is negative", d);
    return tare_shape_from_dims(&infer->outputs[0], count, dims);
}

/* sparse_indices has two shorter forms: a scalar is a single row, a vector is a column. */
static tare_status run_to_dense(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[2], *indices = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    struct tare_tensor matrix = *indices; /* a view without a reference of its own */
    struct tare_sparse sparse;
    TARE_TRY(tare_operand_output(kernel, 3));
    if (matrix.shape.rank < 2) matrix.shape = tare_shape_make(2, 0, 1);
    if (indices->shape.rank < 2) matrix.shape.dims[0] = indices->elements;
    TARE_TRY(tare_sparse_make(&sparse, &matrix, NULL, &kernel->inputs[1]));
    if (values->shape.rank == 1 && values->elements != sparse.count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "sparse_values has %lld elements (expected %lld, one for each index)",
                         (long long)values->elements, (long long)sparse.count);
    TARE_TRY(tare_sparse_check(&sparse, tare_node_bool(kernel->node, "validate_indices", true)));
    TARE_TRY(tare_move_fill(out, 0, out->elements, &kernel->inputs[3], 0));
    for (int64_t row = 0; row < sparse.count; row++) {
        int64_t at = 0;
        for (int d = 0; d < sparse.rank; d++)
            at = at * sparse.dims[d] + tare_sparse_index(&sparse, row, d);
        TARE_TRY(tare_move_run(out, at, values, values->shape.rank ? row : 0, 1));
    }
    return TARE_OK;
}

/* ---- SparseReshape ---- */

/* Computes the new dimensions with -1 resolved. */
static tare_status new_dims(int64_t dims[TARE_MAX_RANK], int *rank, int64_t elements,
                            const struct tare_tensor *expected) {
    int64_t product = 1;
    int open = -1;
    *rank = 0;
    if (expected->shape.rank != 1 || expected->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Target shape should be a vector of at most %d elements",
                         TARE_MAX_RANK);
    *rank = (int)expected->elements;
    for (int d = 0; d < *rank; d++) {
        dims[d] = tare_index_at(expected, d);
        if (dims[d] == -1 && open >= 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "only one output dimension may be -1, not both %d and %d", open, d);
        if (dims[d] == -1)
            open = d;
        else if (dims[d] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "size %d must be non-negative, not %lld", d, (long long)dims[d]);
        else if (!tare_mul_i64(&product, product, dims[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the requested shape has too many elements");
    }
    if (open >= 0) {
        if (product == 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "reshape cannot infer the missing input size for an empty tensor unless all specified "
                             "input sizes are non-zero");
        if (elements % product)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Input to reshape is a SparseTensor with %lld dense values, but the requested shape "
                             "requires a multiple of %lld",
                             (long long)elements, (long long)product);
        dims[open] = elements / product;
        product = elements;
    }
    if (product != elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Input to reshape is a tensor with %lld dense values, but the requested shape has %lld",
                         (long long)elements, (long long)product);
    return TARE_OK;
}

static tare_status infer_reshape(struct tare_infer *infer) {
    int64_t in_rank, out_rank;
    TARE_TRY(tare_operand_rank(infer, 0, "input_indices", 2));
    TARE_TRY(tare_operand_vector(infer, 1, "input_shape", &in_rank));
    TARE_TRY(tare_operand_vector(infer, 2, "new_shape", &out_rank));
    infer->outputs[0] = tare_operand_unknown_dims(2);
    if (infer->inputs[0].rank == 2) infer->outputs[0].dims[0] = infer->inputs[0].dims[0];
    infer->outputs[0].dims[1] = out_rank;
    infer->outputs[1] = tare_operand_vector_shape(out_rank);
    return TARE_OK;
}

static tare_status run_reshape(struct tare_kernel *kernel) {
    int64_t dims[TARE_MAX_RANK], elements = 1, *to;
    struct tare_shape *shapes;
    struct tare_sparse sparse;
    int rank;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], NULL, &kernel->inputs[1]));
    for (int d = 0; d < sparse.rank; d++)
        if (!tare_mul_i64(&elements, elements, sparse.dims[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the input shape has too many elements");
    TARE_TRY(new_dims(dims, &rank, elements, &kernel->inputs[2]));
    TARE_TRY(tare_sparse_check(&sparse, false));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT64, &shapes[1]));
    for (int d = 0; d < rank; d++)
        TARE_DATA(int64_t, &kernel->outputs[1])[d] = dims[d];
    to = TARE_DATA(int64_t, &kernel->outputs[0]);
    for (int64_t row = 0; row < sparse.count; row++, to += rank) {
        int64_t at = 0;
        for (int d = 0; d < sparse.rank; d++)
            at = at * sparse.dims[d] + tare_sparse_index(&sparse, row, d);
        for (int d = rank - 1; d >= 0; d--) {
            to[d] = at % dims[d];
            at /= dims[d];
        }
    }
    return TARE_OK;
}

/* ---- SparseFillEmptyRows ---- */

enum { MOST_ROWS = 1 << 26 }; /* limit on rows that dense_shape alone can request */

static tare_status infer_fill_rows(struct tare_infer *infer) {
    int64_t count, rank, dims[TARE_MAX_RANK];
    int known;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    TARE_TRY(tare_operand_rank(infer, 3, "default_value", 0));
    TARE_TRY(tare_operand_list(infer, 2, "dense_shape", dims, &known));
    if (rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Dense shape cannot be empty.");
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(known > 0 && dims[0] >= 0 ? dims[0] : -1);
    infer->outputs[3] = tare_operand_vector_shape(count);
    return TARE_OK;
}

/* Groups the entries by row, stable within a row; `starts[r]` is the position of the first entry of row r. */
static tare_status count_rows(int64_t *starts, int64_t *total, const struct tare_sparse *sparse) {
    for (int64_t i = 0; i < sparse->count; i++) {
        int64_t row = tare_sparse_index(sparse, i, 0);
        if (row < 0 || row >= sparse->dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices(%lld, 0) is invalid: %lld >= %lld", (long long)i,
                             (long long)row, (long long)sparse->dims[0]);
        starts[row]++;
    }
    *total = 0;
    for (int64_t row = 0; row < sparse->dims[0]; row++) {
        int64_t entries = starts[row] ? starts[row] : 1;
        starts[row] = *total;
        *total += entries;
    }
    return TARE_OK;
}

static tare_status run_fill_rows(struct tare_kernel *kernel) {
    struct tare_tensor *out = kernel->outputs;
    struct tare_sparse sparse;
    struct tare_shape *shapes;
    int64_t *starts, total = 0, *to;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    if (sparse.dims[0] > MOST_ROWS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld rows (expected at most %d)", (long long)sparse.dims[0],
                         MOST_ROWS);
    starts = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)sparse.dims[0] + 1);
    if (!starts) return TARE_NO_MEMORY;
    TARE_TRY(count_rows(starts, &total, &sparse));
    shapes[0].dims[0] = shapes[1].dims[0] = total;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, sparse.values->dtype, &shapes[1]));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_BOOL, &shapes[2]));
    TARE_TRY(tare_kernel_output(kernel, 3, TARE_DT_INT64, &shapes[3]));
    tare_move_zero(&out[0], 0, out[0].elements);
    TARE_TRY(tare_move_fill(&out[1], 0, total, &kernel->inputs[3], 0));
    to = TARE_DATA(int64_t, &out[0]);
    for (int64_t row = 0; row < sparse.dims[0]; row++) {
        TARE_DATA(uint8_t, &out[2])[row] = 1;
        to[starts[row] * sparse.rank] = row;
    }
    for (int64_t i = 0; i < sparse.count; i++) {
        int64_t row = tare_sparse_index(&sparse, i, 0), at = starts[row]++;
        TARE_DATA(uint8_t, &out[2])[row] = 0;
        TARE_DATA(int64_t, &out[3])[i] = at;
        TARE_TRY(tare_move_run(&out[0], at * sparse.rank, sparse.indices, i * sparse.rank, sparse.rank));
        TARE_TRY(tare_move_run(&out[1], at, sparse.values, i, 1));
    }
    return TARE_OK;
}

/* ---- RaggedFillEmptyRows: the same for values with a row index each ---- */

static tare_status infer_fill_ragged(struct tare_infer *infer) {
    int64_t rowids, values, rows = -1;
    TARE_TRY(tare_operand_vector(infer, 0, "value_rowids", &rowids));
    TARE_TRY(tare_operand_vector(infer, 1, "values", &values));
    TARE_TRY(tare_operand_rank(infer, 2, "nrows", 0));
    TARE_TRY(tare_operand_rank(infer, 3, "default_value", 0));
    if (rowids >= 0 && values >= 0 && rowids != values)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "values has %lld elements, value_rowids %lld", (long long)values,
                         (long long)rowids);
    if (!tare_operand_scalar(infer, 2, &rows) || rows < 0) rows = -1;
    infer->outputs[0] = infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(rows);
    infer->outputs[3] = tare_operand_vector_shape(rowids >= 0 ? rowids : values);
    return TARE_OK;
}

static tare_status run_fill_ragged(struct tare_kernel *kernel) {
    const struct tare_tensor *rowids = &kernel->inputs[0], *values = &kernel->inputs[1];
    struct tare_tensor *out = kernel->outputs;
    struct tare_shape *shapes;
    int64_t rows, total = 0, before = 0;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    rows = TARE_CONST_DATA(int64_t, &kernel->inputs[2])[0];
    if (rows < 0 || rows > MOST_ROWS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "nrows is %lld (expected 0 to %d)", (long long)rows, MOST_ROWS);
    int64_t *starts = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)rows + 1);
    if (!starts) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < rowids->elements; i++) {
        const int64_t row = TARE_CONST_DATA(int64_t, rowids)[i];
        if (row < before || row >= rows)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "value_rowids(%lld) is %lld (expected %lld to %lld)", (long long)i,
                             (long long)row, (long long)before, (long long)rows - 1);
        before = row;
        starts[row]++;
    }
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_BOOL, &shapes[2]));
    for (int64_t row = 0; row < rows; row++) {
        const int64_t entries = starts[row];
        TARE_DATA(uint8_t, &out[2])[row] = entries == 0;
        starts[row] = total;
        total += entries ? entries : 1;
    }
    shapes[0] = tare_operand_vector_shape(total);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, values->dtype, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 3, TARE_DT_INT64, &shapes[3]));
    TARE_TRY(tare_move_fill(&out[1], 0, total, &kernel->inputs[3], 0));
    for (int64_t row = 0; row < rows; row++)
        TARE_DATA(int64_t, &out[0])[starts[row]] = row;
    for (int64_t i = 0; i < rowids->elements; i++) {
        const int64_t row = TARE_CONST_DATA(int64_t, rowids)[i], at = starts[row]++;
        TARE_DATA(int64_t, &out[0])[at] = row;
        TARE_DATA(int64_t, &out[3])[i] = at;
        TARE_TRY(tare_move_run(&out[1], at, values, i, 1));
    }
    return TARE_OK;
}

/* ---- the gradient of both: each value gets its own gradient, the default value the remainder ---- */

static tare_status infer_fill_gradient(struct tare_infer *infer) {
    int64_t count, all;
    TARE_TRY(tare_operand_vector(infer, 0, "reverse_index_map", &count));
    TARE_TRY(tare_operand_vector(infer, 1, "grad_values", &all));
    infer->outputs[0] = tare_operand_vector_shape(count);
    infer->outputs[1] = tare_shape_scalar();
    return TARE_OK;
}

static tare_status run_fill_gradient(struct tare_kernel *kernel) {
    const struct tare_tensor *map = &kernel->inputs[0], *grads = &kernel->inputs[1];
    const enum tare_dtype_class class = tare_dtype_get(grads->dtype)->class;
    struct tare_shape *shapes;
    double sum = 0;
    uint64_t bits = 0;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (class != TARE_CLASS_FLOAT && class != TARE_CLASS_SIGNED && class != TARE_CLASS_UNSIGNED)
        return TARE_FAIL(TARE_UNSUPPORTED, "gradients of %s", tare_dtype_name(grads->dtype));
    TARE_TRY(tare_kernel_output(kernel, 0, grads->dtype, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, grads->dtype, &shapes[1]));
    bool *taken = TARE_NEW_ARRAY(kernel->scratch, bool, (size_t)grads->elements + 1);
    if (!taken) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < map->elements; i++) {
        const int64_t at = TARE_CONST_DATA(int64_t, map)[i];
        if (at < 0 || at >= grads->elements)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Elements in reverse index must be in [0, %lld) but got %lld",
                             (long long)grads->elements, (long long)at);
        taken[at] = true;
        TARE_TRY(tare_move_run(&kernel->outputs[0], i, grads, at, 1));
    }
    for (int64_t i = 0; i < grads->elements; i++) {
        if (taken[i]) continue;
        if (class == TARE_CLASS_FLOAT)
            sum += tare_tensor_get_f64(grads, i);
        else
            bits += (uint64_t)tare_tensor_get_i64(grads, i);
    }
    if (class == TARE_CLASS_FLOAT)
        tare_tensor_set_f64(&kernel->outputs[1], 0, sum);
    else
        tare_tensor_set_i64(&kernel->outputs[1], 0, (int64_t)bits);
    return TARE_OK;
}

/* ---- SparseReorder ---- */

static tare_status infer_reorder(struct tare_infer *infer) {
    int64_t count, rank;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[0] = count;
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(count);
    return TARE_OK;
}

struct place {
    int64_t flat, entry;
};

static int by_place(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->flat != y->flat) return x->flat < y->flat ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static tare_status run_reorder(struct tare_kernel *kernel) {
    struct tare_sparse sparse;
    struct place *places;
    int64_t all = 1;
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_sparse_check(&sparse, false));
    for (int d = 0; d < sparse.rank; d++)
        if (!tare_mul_i64(&all, all, sparse.dims[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the dense shape has too many elements");
    places = TARE_NEW_ARRAY(kernel->scratch, struct place, (size_t)sparse.count + 1);
    if (!places) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < sparse.count; i++) {
        places[i].entry = i;
        for (int d = 0; d < sparse.rank; d++)
            places[i].flat = places[i].flat * sparse.dims[d] + tare_sparse_index(&sparse, i, d);
    }
    qsort(places, (size_t)sparse.count, sizeof *places, by_place);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &sparse.indices->shape));
    TARE_TRY(tare_kernel_output(kernel, 1, sparse.values->dtype, &sparse.values->shape));
    for (int64_t i = 0; i < sparse.count; i++) {
        TARE_TRY(tare_move_run(&kernel->outputs[0], i * sparse.rank, sparse.indices, places[i].entry * sparse.rank,
                               sparse.rank));
        TARE_TRY(tare_move_run(&kernel->outputs[1], i, sparse.values, places[i].entry, 1));
    }
    return TARE_OK;
}

/* ---- SparseSlice ---- */

static tare_status infer_sparse_slice(struct tare_infer *infer) {
    int64_t count, rank, length;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    for (size_t i = 3; i < 5; i++) {
        TARE_TRY(tare_operand_vector(infer, i, i == 3 ? "start" : "size", &length));
        if (rank >= 0 && length >= 0 && rank != length)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected %s to be a vector of length %lld but got length %lld",
                             i == 3 ? "start" : "size", (long long)rank, (long long)length);
        if (rank < 0) rank = length;
    }
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(rank);
    return TARE_OK;
}

static tare_status run_sparse_slice(struct tare_kernel *kernel) {
    const struct tare_tensor *start = &kernel->inputs[3], *size = &kernel->inputs[4];
    int64_t *kept, count = 0;
    struct tare_sparse sparse;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &shapes[2]));
    for (int d = 0; d < sparse.rank; d++) {
        const int64_t from = tare_index_at(start, d), expected = tare_index_at(size, d);
        if (from < 0 || expected < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "start[%d] and size[%d] must be non-negative", d, d);
        const int64_t rest = sparse.dims[d] - from;
        TARE_DATA(int64_t, &kernel->outputs[2])[d] = rest < 0 ? 0 : rest < expected ? rest : expected;
    }
    kept = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)sparse.count + 1);
    if (!kept) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < sparse.count; i++) {
        bool inside = true;
        for (int d = 0; d < sparse.rank; d++) {
            int64_t at = tare_sparse_index(&sparse, i, d), from = tare_index_at(start, d);
            if (at < from || at - from >= TARE_DATA(int64_t, &kernel->outputs[2])[d]) inside = false;
        }
        if (inside) kept[count++] = i;
    }
    shapes[0].dims[0] = shapes[1].dims[0] = count;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, sparse.values->dtype, &shapes[1]));
    for (int64_t i = 0; i < count; i++) {
        for (int d = 0; d < sparse.rank; d++)
            TARE_DATA(int64_t, &kernel->outputs[0])
        [i * sparse.rank + d] = tare_sparse_index(&sparse, kept[i], d) - tare_index_at(start, d);
        TARE_TRY(tare_move_run(&kernel->outputs[1], i, sparse.values, kept[i], 1));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_sparse[] = {
    { .name = "SparseFillEmptyRows", .infer = infer_fill_rows, .run = run_fill_rows },
    { .name = "RaggedFillEmptyRows", .infer = infer_fill_ragged, .run = run_fill_ragged },
    { .name = "SparseFillEmptyRowsGrad", .infer = infer_fill_gradient, .run = run_fill_gradient },
    { .name = "RaggedFillEmptyRowsGrad", .infer = infer_fill_gradient, .run = run_fill_gradient },
    { .name = "SparseReorder", .infer = infer_reorder, .run = run_reorder },
    { .name = "SparseReshape", .infer = infer_reshape, .run = run_reshape },
    { .name = "SparseSlice", .infer = infer_sparse_slice, .run = run_sparse_slice },
    { .name = "SparseToDense", .infer = infer_to_dense, .run = run_to_dense },
    { 0 },
};
