/* RaggedTensorToTensor: converts a ragged tensor, whose rows are described by splits or by the row of each value, to
 * a dense one. Values outside the shape are dropped; missing elements get the default. */
#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

enum partition { FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS };

/* Limits on the rows and padding that the operands can request without values; larger requests are treated as
 * errors. */
enum { MOST_ROWS = 1 << 26, MOST_ELEMENTS = 1 << 30 };

/* The partition tensors of a node, outermost first. */
struct partitions {
    const struct tare_tensor *tensors;
    enum partition types[TARE_MAX_RANK + 1];
    size_t count;
    bool has_first;  /* the first one is FIRST_DIM_SIZE */
    int ragged_rank; /* number of levels */
};

static tare_status read_types(struct partitions *out, const struct tare_node *node) {
    const struct tare_attr *types = tare_node_list(node, "row_partition_types");
    out->count = (size_t)tare_node_int(node, "num_row_partition_tensors", 0);
    if (!types || types->count != out->count || out->count == 0 || out->count > TARE_MAX_RANK)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "row_partition_types must have one entry for each partition tensor");
    for (size_t i = 0; i < out->count; i++) {
        const char *name = types->items[i].s.data;
        if (strcmp(name, "FIRST_DIM_SIZE") == 0 && i == 0)
            out->types[i] = FIRST_DIM_SIZE;
        else if (strcmp(name, "VALUE_ROWIDS") == 0 && i > 0)
            out->types[i] = VALUE_ROWIDS;
        else if (strcmp(name, "ROW_SPLITS") == 0)
            out->types[i] = ROW_SPLITS;
        else
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unsupported row partition type '%s' at %zu", name, i);
    }
    out->has_first = out->types[0] == FIRST_DIM_SIZE;
    out->ragged_rank = (int)out->count - out->has_first;
    if (out->ragged_rank == 0 || (out->has_first && out->types[1] != VALUE_ROWIDS))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "FIRST_DIM_SIZE must be followed by VALUE_ROWIDS");
    return TARE_OK;
}

/* Rows that the outermost splits describe. */
static int64_t rows_of_splits(const struct tare_infer *infer, const struct partitions *partitions) {
    const struct tare_shape *splits = &infer->inputs[3];
    const bool is_known = partitions->types[0] == ROW_SPLITS && splits->rank == 1 && splits->dims[0] > 0;
    return is_known ? splits->dims[0] - 1 : TARE_UNKNOWN_DIM;
}

static tare_status infer_dense(struct tare_infer *infer) {
    struct partitions partitions;
    const struct tare_shape *values = &infer->inputs[1], *fallback = &infer->inputs[2];
    struct tare_shape *out = &infer->outputs[0];
    int64_t dims[TARE_MAX_RANK];
    int count, rank;
    TARE_TRY(read_types(&partitions, infer->node));
    if (values->rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "values must be at least a vector");
    if (infer->inputs[0].rank > 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "shape must be a scalar or a vector");
    if (values->rank < 0) return TARE_OK;
    rank = partitions.ragged_rank + values->rank;
    if (fallback->rank >= values->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "default_value has rank %d (expected less than the %d of values)",
                         fallback->rank, values->rank);
    if (rank > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
    *out = tare_operand_unknown_dims(partitions.ragged_rank + 1);
    TARE_TRY(tare_operand_append(out, values, 1, values->rank));
    TARE_TRY(tare_operand_list(infer, 0, "shape", dims, &count));
    if (count < 0) {
        if (infer->inputs[0].rank == 1) *out = tare_operand_unknown_dims(rank);
        return TARE_OK;
    }
    out->dims[0] = rows_of_splits(infer, &partitions);
    if (infer->inputs[0].rank == 0) {
        if (dims[0] != -1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a scalar shape must be -1");
        return TARE_OK;
    }
    if (count != rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "rt_input.shape and shape=%d elements are incompatible: rt_input.rank "
                         "= %d",
                         count, rank);
    for (int d = 0; d < rank; d++) {
        if (dims[d] < -1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "shape[%d] = %lld", d, (long long)dims[d]);
        if (d > partitions.ragged_rank && dims[d] >= 0 && out->dims[d] >= 0 && dims[d] != out->dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "shape[%d] = %lld does not match the values' dimension %lld", d,
                             (long long)dims[d], (long long)out->dims[d]);
        if (dims[d] >= 0) out->dims[d] = dims[d];
    }
    return TARE_OK;
}

/* Checks level `level` over `rows` rows and determines its widest row and its number of values. */
static tare_status measure(const struct partitions *partitions, int level, int64_t rows, int64_t *widest,
                           int64_t *values) {
    size_t at = (size_t)level + partitions->has_first;
    const struct tare_tensor *tensor = &partitions->tensors[at];
    int64_t width = 0;
    *widest = *values = 0;
    if (tensor->shape.rank != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "row partitions must be vectors");
    if (partitions->types[at] == ROW_SPLITS) {
        if (tensor->elements != rows + 1 || tare_index_at(tensor, 0) != 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "row splits of level %d must have %lld elements and begin with 0",
                             level, (long long)rows + 1);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t begin = tare_index_at(tensor, i), end = tare_index_at(tensor, i + 1);
            if (end < begin) return TARE_FAIL(TARE_INVALID_ARGUMENT, "row splits must be sorted in ascending order");
            if (end - begin > *widest) *widest = end - begin; /* begin is not negative: they ascend from 0 */
        }
        *values = tare_index_at(tensor, rows);
        return TARE_OK;
    }
    *values = tensor->elements;
    for (int64_t i = 0; i < tensor->elements; i++) {
        int64_t row = tare_index_at(tensor, i), before = i ? tare_index_at(tensor, i - 1) : 0;
        if (row < before || row < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "value rowids must be sorted");
        if (row >= rows)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "value rowid %lld is not in [0, %lld)", (long long)row,
                             (long long)rows);
        width = i && row == before ? width + 1 : 1;
        if (width > *widest) *widest = width;
    }
    return TARE_OK;
}

/* Computes places[v] of a level from those of its rows: row * width + position in the row, -1 outside. */
static void descend(int64_t *places, int64_t n, const int64_t *rows, const struct tare_tensor *tensor,
                    enum partition type, int64_t width) {
    int64_t row = 0, number = 0, before = -1;
    for (int64_t v = 0; v < n; v++, number++) {
        if (type == ROW_SPLITS) {
            while (tare_index_at(tensor, row + 1) <= v)
                row++;
            number = v - tare_index_at(tensor, row);
        } else {
            row = tare_index_at(tensor, v);
            if (row != before) number = 0;
            before = row;
        }
        places[v] = rows[row] < 0 || number >= width ? -1 : rows[row] * width + number;
    }
}

/* Determines the leading dimensions of the result: dimensions that `shape` leaves open follow from the rows.
 * *places: the output row of each value. */
static tare_status lay_out(struct tare_kernel *kernel, const struct partitions *partitions, struct tare_shape *shape,
                           int64_t **places) {
    int64_t rows = partitions->types[0] == ROW_SPLITS ? partitions->tensors[0].elements - 1 : 0;
    int64_t *above;
    *places = NULL;
    if (partitions->has_first && partitions->tensors[0].elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "FIRST_DIM_SIZE must be a scalar");
    if (partitions->has_first) rows = tare_index_at(&partitions->tensors[0], 0);
    if (rows < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the number of rows is negative");
    if (rows > MOST_ROWS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld rows (expected at most %d)", (long long)rows, MOST_ROWS);
    if (shape->dims[0] < 0) shape->dims[0] = rows;
    above = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)rows + 1);
    if (!above) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < rows; i++)
        above[i] = i < shape->dims[0] ? i : -1;
    for (int level = 0; level < partitions->ragged_rank; level++) {
        size_t at = (size_t)level + partitions->has_first;
        int64_t widest, values, elements, *here;
        TARE_TRY(measure(partitions, level, rows, &widest, &values));
        if (shape->dims[level + 1] < 0) shape->dims[level + 1] = widest;
        elements = 1;
        for (int d = 0; d <= level + 1; d++)
            if (!tare_mul_i64(&elements, elements, shape->dims[d]))
                return TARE_FAIL(TARE_SHAPE, "the result has too many elements");
        if (level + 1 == partitions->ragged_rank && values != kernel->inputs[1].shape.dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the rows contain %lld values (got %lld)", (long long)values,
                             (long long)kernel->inputs[1].shape.dims[0]);
        here = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)values + 1);
        if (!here) return TARE_NO_MEMORY;
        descend(here, values, above, &partitions->tensors[at], partitions->types[at], shape->dims[level + 1]);
        above = here;
        rows = values;
    }
    *places = above;
    return TARE_OK;
}

static tare_status fill_default(struct tare_kernel *kernel, int64_t inner) {
    const struct tare_tensor *values = &kernel->inputs[1], *fallback = &kernel->inputs[2];
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t from[TARE_MAX_RANK], to[TARE_MAX_RANK];
    struct tare_move move = { 0 };
    if (fallback->elements == 1) return tare_move_fill(out, 0, out->elements, fallback, 0);
    if (!out->elements) return TARE_OK;
    tare_move_strides(from, &fallback->shape);
    tare_move_strides(to, &values->shape);
    tare_move_dim(&move, out->elements / inner, 0, inner);
    for (int d = 1; d < values->shape.rank; d++) {
        int back = d - values->shape.rank + fallback->shape.rank;
        int64_t dim = back >= 0 ? fallback->shape.dims[back] : 1;
        if (dim != 1 && dim != values->shape.dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "default_value cannot be broadcast to an element of values");
        tare_move_dim(&move, values->shape.dims[d], dim == 1 ? 0 : from[back], to[d]);
    }
    return tare_move_apply(out, fallback, &move);
}

static tare_status check_size(const struct tare_shape *shape) {
    char text[TARE_SHAPE_TEXT_SIZE];
    int64_t elements;
    TARE_TRY(tare_shape_elements(&elements, shape));
    if (elements <= MOST_ELEMENTS) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "the result would have shape %s, %lld elements (expected at most %d)",
                     tare_shape_text(text, shape), (long long)elements, MOST_ELEMENTS);
}

static tare_status run_dense(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[1];
    struct partitions partitions = { .tensors = kernel->inputs + 3 };
    struct tare_shape *shapes;
    int64_t *places, inner;
    TARE_TRY(read_types(&partitions, kernel->node));
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(lay_out(kernel, &partitions, &shapes[0], &places));
    TARE_TRY(check_size(&shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, values->dtype, &shapes[0]));
    inner = tare_move_product(&values->shape, 1, values->shape.rank);
    TARE_TRY(fill_default(kernel, inner));
    for (int64_t v = 0; v < values->shape.dims[0]; v++)
        if (places[v] >= 0) TARE_TRY(tare_move_run(&kernel->outputs[0], places[v] * inner, values, v * inner, inner));
    return TARE_OK;
}

const struct tare_op tare_ops_ragged_dense[] = {
    { .name = "RaggedTensorToTensor", .infer = infer_dense, .run = run_dense },
    { 0 },
};
