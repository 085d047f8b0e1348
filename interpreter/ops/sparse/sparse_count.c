/* DenseCountSparseOutput, SparseCountSparseOutput and RaggedCountSparseOutput: counts the values of each row; the
 * result is a sparse tensor. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "interpreter/ops/string/text.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* One value with its row and weight; after merging, one entry of the result. */
struct counted {
    int64_t row, value;
    double weight;
};

struct counting {
    const struct tare_tensor *values, *weights;
    int64_t rows, least, most;
    bool flat, binary; /* flat: a single row, and the result has no row dimension */
    struct counted *items;
    int64_t count, greatest;
};

static tare_status infer_counts(struct tare_infer *infer) {
    int64_t rank = TARE_UNKNOWN_DIM;
    if (infer->n_inputs == 2 && infer->inputs[0].rank >= 0) rank = infer->inputs[0].rank;
    if (infer->n_inputs == 3) rank = 2; /* ragged */
    if (infer->n_inputs == 4 && infer->inputs[2].rank == 1) rank = infer->inputs[2].dims[0];
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(rank);
    return TARE_OK;
}

static tare_status open_counting(struct counting *c, struct tare_kernel *kernel, size_t values, size_t weights) {
    *c = (struct counting){ .values = &kernel->inputs[values],
                            .weights = &kernel->inputs[weights],
                            .rows = 1,
                            .least = tare_node_int(kernel->node, "minlength", -1),
                            .most = tare_node_int(kernel->node, "maxlength", -1),
                            .binary = tare_node_bool(kernel->node, "binary_output", false) };
    if (c->weights->elements == 0)
        c->weights = NULL;
    else if (!tare_shape_equal(&c->weights->shape, &c->values->shape))
        return TARE_FAIL(TARE_SHAPE, "Weights and values must have the same shape");
    c->items = TARE_NEW_ARRAY(kernel->scratch, struct counted, (size_t)c->values->elements + 1);
    return c->items ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_value(struct counting *c, int64_t row, int64_t i) {
    const int64_t value = tare_tensor_get_i64(c->values, i);
    if (value < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input values must all be non-negative (got %lld)", (long long)value);
    if (c->most > 0 && value >= c->most) return TARE_OK;
    c->items[c->count++] = (struct counted){ row, value, c->weights ? tare_tensor_get_f64(c->weights, i) : 1 };
    if (value > c->greatest) c->greatest = value;
    return TARE_OK;
}

static int by_place(const void *a, const void *b) {
    const struct counted *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* Merges equal values of a row. Weights are summed in double, which is exact for integers below 2^53. */
static void merge(struct counting *c) {
    int64_t kept = 0;
    qsort(c->items, (size_t)c->count, sizeof *c->items, by_place);
    for (int64_t i = 0; i < c->count; i++) {
        if (kept && by_place(&c->items[kept - 1], &c->items[i]) == 0)
            c->items[kept - 1].weight += c->items[i].weight;
        else
            c->items[kept++] = c->items[i];
    }
    c->count = kept;
}

static tare_status put_counts(struct tare_kernel *kernel, struct counting *c) {
    const int rank = c->flat ? 1 : 2;
    struct tare_shape indices = tare_shape_make(2, 0, rank), vector = tare_operand_vector_shape(0);
    struct tare_shape dims = tare_operand_vector_shape(rank);
    merge(c);
    indices.dims[0] = vector.dims[0] = c->count;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &indices));
    TARE_TRY(tare_kernel_output(kernel, 1, kernel->node->output_dtypes[1], &vector));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &dims));
    for (int64_t i = 0; i < c->count; i++) {
        if (!c->flat) TARE_DATA(int64_t, &kernel->outputs[0])[2 * i] = c->items[i].row;
        TARE_DATA(int64_t, &kernel->outputs[0])[rank * i + rank - 1] = c->items[i].value;
        tare_tensor_set_f64(&kernel->outputs[1], i, c->binary ? 1 : c->items[i].weight);
    }
    if (!c->flat) TARE_DATA(int64_t, &kernel->outputs[2])[0] = c->rows;
    const int64_t seen = c->greatest == INT64_MAX ? INT64_MAX : c->greatest + 1;
    TARE_DATA(int64_t, &kernel->outputs[2])[rank - 1] = c->most > 0 ? c->most : seen > c->least ? seen : c->least;
    return TARE_OK;
}

static tare_status run_dense(struct tare_kernel *kernel) {
    struct counting c;
    TARE_TRY(open_counting(&c, kernel, 0, 1));
    const struct tare_shape *shape = &c.values->shape;
    if (shape->rank != 1 && shape->rank != 2)
        return TARE_FAIL(TARE_SHAPE, "Input must be a 1 or 2-dimensional tensor. Got rank %d", shape->rank);
    c.flat = shape->rank == 1;
    c.rows = c.flat ? 1 : shape->dims[0];
    for (int64_t i = 0; i < c.values->elements; i++)
        TARE_TRY(add_value(&c, c.flat ? 0 : i / shape->dims[1], i));
    return put_counts(kernel, &c);
}

static tare_status run_sparse(struct tare_kernel *kernel) {
    struct tare_sparse sparse;
    struct counting c;
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_sparse_check(&sparse, false));
    TARE_TRY(open_counting(&c, kernel, 1, 3));
    if (sparse.rank != 1 && sparse.rank != 2)
        return TARE_FAIL(TARE_SHAPE, "Input must be a 1 or 2-dimensional tensor. Got rank %d", sparse.rank);
    c.flat = sparse.rank == 1;
    c.rows = c.flat ? 1 : sparse.dims[0];
    for (int64_t i = 0; i < sparse.count; i++)
        TARE_TRY(add_value(&c, c.flat ? 0 : tare_sparse_index(&sparse, i, 0), i));
    return put_counts(kernel, &c);
}

static tare_status run_ragged(struct tare_kernel *kernel) {
    const struct tare_tensor *splits = &kernel->inputs[0];
    struct counting c;
    TARE_TRY(open_counting(&c, kernel, 1, 2));
    if (splits->shape.rank != 1 || splits->elements < 1)
        return TARE_FAIL(TARE_SHAPE, "Must provide at least 2 elements for the splits argument");
    TARE_TRY(tare_text_check_splits(splits, c.values->elements));
    c.rows = splits->elements - 1;
    for (int64_t row = 0; row < c.rows; row++)
        for (int64_t i = tare_tensor_get_i64(splits, row); i < tare_tensor_get_i64(splits, row + 1); i++)
            TARE_TRY(add_value(&c, row, i));
    return put_counts(kernel, &c);
}

const struct tare_op tare_ops_sparse_count[] = {
    { .name = "DenseCountSparseOutput", .infer = infer_counts, .run = run_dense },
    { .name = "SparseCountSparseOutput", .infer = infer_counts, .run = run_sparse },
    { .name = "RaggedCountSparseOutput", .infer = infer_counts, .run = run_ragged },
    { 0 },
};
