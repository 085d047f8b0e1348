/* SparseCross, SparseCrossV2 and SparseCrossHashed: feature crosses. Each row yields all combinations of one value
 * from each column, as a string or as a hash. */
#include "base/alloc.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/string/hash64.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "interpreter/ops/string/text.h"

#include <inttypes.h>
#include <string.h>

/* Limits on rows that a dense_shape requests without values, and on combinations, whose number is a product; larger
 * requests are treated as errors. */
enum { MOST_ROWS = 1 << 26, MOST_COMBINATIONS = 1 << 28 };

/* A column; the values of each row are contiguous. */
struct column {
    const struct tare_tensor *values;
    int64_t *starts; /* batch + 1 row starts of a sparse column; NULL: dense with `width` values per row */
    int64_t width;
};

struct cross {
    struct tare_kernel *kernel;
    size_t n_sparse, n_columns;
    struct column *columns;
    int64_t batch;
    int64_t *pick;              /* for each column, the value chosen for the current combination */
    struct tare_tensor *values; /* the output that receives the combinations */
    /* for hashes */
    uint64_t start, key[2];
    int64_t buckets;
    bool keyed, strong;
    /* for strings */
    struct tare_str separator;
};

/* ---- columns ---- */

/* Computes where the entries of each row start in the column. */
static tare_status find_starts(struct cross *cross, size_t i, const struct tare_sparse *sparse) {
    struct column *column = &cross->columns[i];
    column->starts = TARE_NEW_ARRAY(cross->kernel->scratch, int64_t, (size_t)cross->batch + 1);
    if (!column->starts) return TARE_NO_MEMORY;
    for (int64_t entry = 0, row = 0; entry < sparse->count; entry++) {
        const int64_t own = tare_sparse_index(sparse, entry, 0);
        if (own < row) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the entries of column %zu are not in order", i);
        row = own;
        column->starts[row + 1]++;
    }
    for (int64_t row = 0; row < cross->batch; row++)
        column->starts[row + 1] += column->starts[row];
    return TARE_OK;
}

static tare_status read_sparse(struct cross *cross, size_t i) {
    const struct tare_tensor *in = cross->kernel->inputs;
    struct column *column = &cross->columns[i];
    struct tare_sparse sparse;
    TARE_TRY(tare_sparse_make(&sparse, &in[i], &in[cross->n_sparse + i], &in[2 * cross->n_sparse + i]));
    if (sparse.rank != 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected D2 of index to be 2 got %d at position %zu", sparse.rank, i);
    if (i == 0) cross->batch = sparse.dims[0];
    if (cross->batch > MOST_ROWS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a batch of %lld rows (expected at most %d)", (long long)cross->batch,
                         MOST_ROWS);
    if (sparse.dims[0] != cross->batch)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected batch size %lld got %lld at position %zu",
                         (long long)cross->batch, (long long)sparse.dims[0], i);
    TARE_TRY(tare_sparse_check(&sparse, false));
    column->values = sparse.values;
    return find_starts(cross, i, &sparse);
}

static tare_status read_dense(struct cross *cross, size_t i) {
    const struct tare_tensor *values = &cross->kernel->inputs[2 * cross->n_sparse + i];
    if (values->shape.rank != 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Dense inputs should be a matrix but received rank %d at position %zu",
                         values->shape.rank, i - cross->n_sparse);
    if (i == 0) cross->batch = values->shape.dims[0];
    if (values->shape.dims[0] != cross->batch)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected batch size %lld got %lld at dense position %zu",
                         (long long)cross->batch, (long long)values->shape.dims[0], i - cross->n_sparse);
    cross->columns[i] = (struct column){ values, NULL, values->shape.dims[1] };
    return TARE_OK;
}

static tare_status read_columns(struct cross *cross, struct tare_kernel *kernel, size_t n_more) {
    cross->kernel = kernel;
    cross->n_sparse = (size_t)tare_node_int(kernel->node, "N", 0);
    cross->n_columns = kernel->n_inputs - n_more - 2 * cross->n_sparse;
    if (!cross->n_columns) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no columns to cross");
    cross->columns = TARE_NEW_ARRAY(kernel->scratch, struct column, cross->n_columns);
    cross->pick = TARE_NEW_ARRAY(kernel->scratch, int64_t, cross->n_columns);
    if (!cross->columns || !cross->pick) return TARE_NO_MEMORY;
    for (size_t i = 0; i < cross->n_columns; i++)
        TARE_TRY(i < cross->n_sparse ? read_sparse(cross, i) : read_dense(cross, i));
    return TARE_OK;
}

static int64_t width_of(const struct column *column, int64_t row) {
    return column->starts ? column->starts[row + 1] - column->starts[row] : column->width;
}

static int64_t value_place(const struct column *column, int64_t row, int64_t pick) {
    return (column->starts ? column->starts[row] : row * column->width) + pick;
}

/* ---- combinations ---- */

static tare_status count_row(int64_t *count, const struct cross *cross, int64_t row) {
    *count = 1;
    for (size_t i = 0; i < cross->n_columns; i++)
        if (!tare_mul_i64(count, *count, width_of(&cross->columns[i], row)))
            return TARE_FAIL(TARE_SHAPE, "row %lld has too many combinations", (long long)row);
    return TARE_OK;
}

/* Advances to the next combination; the last column varies fastest. */
static void next_combination(struct cross *cross, int64_t row) {
    for (size_t i = cross->n_columns; i-- > 0;) {
        if (++cross->pick[i] < width_of(&cross->columns[i], row)) return;
        cross->pick[i] = 0;
    }
}

/* The hash of a value: for a string its fingerprint; an integer is used as is, except in SparseCrossHashed, which
 * reads four of its bytes (TensorFlow uses the size of the dtype's enum value instead of the size of the element; this
 * reproduces it), unless it is of a dense column and the hash is the weak one. */
static uint64_t feature_hash(const struct cross *cross, const struct column *column, int64_t at) {
    const bool is_text = column->values->dtype == TARE_DT_STRING;
    const struct tare_str text =
        is_text ? tare_text_at(column->values, at)
                : (struct tare_str){ (const char *)&TARE_CONST_DATA(int64_t, column->values)[at], 4 };
    if (!is_text && (!cross->keyed || (!cross->strong && !column->starts)))
        return (uint64_t)TARE_CONST_DATA(int64_t, column->values)[at];
    return cross->strong ? tare_siphash24(text.data, text.size, cross->key[0], cross->key[1])
                         : tare_fingerprint64(text.data, text.size);
}

static int64_t hash_combination(const struct cross *cross, int64_t row) {
    uint64_t hash = cross->start;
    for (size_t i = 0; i < cross->n_columns; i++) {
        const struct column *column = &cross->columns[i];
        const uint64_t own = feature_hash(cross, column, value_place(column, row, cross->pick[i]));
        hash = cross->keyed && i == 0 ? own : tare_fingerprint_concat64(hash, own);
    }
    return (int64_t)(hash % (cross->buckets > 0 ? (uint64_t)cross->buckets : (uint64_t)INT64_MAX));
}

static tare_status join_combination(const struct cross *cross, int64_t row, int64_t at) {
    struct tare_strbuf text = { 0 };
    for (size_t i = 0; i < cross->n_columns; i++) {
        const struct column *column = &cross->columns[i];
        const int64_t place = value_place(column, row, cross->pick[i]);
        if (i) tare_strbuf_append(&text, cross->separator.data, cross->separator.size);
        if (column->values->dtype == TARE_DT_STRING) {
            const struct tare_str own = tare_text_at(column->values, place);
            tare_strbuf_append(&text, own.data, own.size);
        } else {
            tare_strbuf_printf(&text, "%" PRId64, TARE_CONST_DATA(int64_t, column->values)[place]);
        }
    }
    const tare_status status = tare_text_store(cross->values, at, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status write_row(struct cross *cross, int64_t row, int64_t first, int64_t count) {
    memset(cross->pick, 0, cross->n_columns * sizeof *cross->pick);
    for (int64_t k = 0; k < count; k++) {
        if (cross->values->dtype == TARE_DT_STRING)
            TARE_TRY(join_combination(cross, row, first + k));
        else
            TARE_DATA(int64_t, cross->values)[first + k] = hash_combination(cross, row);
        next_combination(cross, row);
    }
    return TARE_OK;
}

/* Counts the combinations of all rows and of the row with the most combinations. */
static tare_status count_all(int64_t *total, int64_t *widest, const struct cross *cross) {
    *total = *widest = 0;
    for (int64_t row = 0; row < cross->batch; row++) {
        int64_t count;
        TARE_TRY(count_row(&count, cross, row));
        if (count > *widest) *widest = count;
        if (!tare_add_i64(total, *total, count) || *total > MOST_COMBINATIONS)
            return TARE_FAIL(TARE_SHAPE, "at least %lld combinations in rows 0 to %lld (expected at most %d)",
                             (long long)(*total > count ? *total : count), (long long)row, MOST_COMBINATIONS);
    }
    return TARE_OK;
}

static tare_status write_all(struct cross *cross) {
    struct tare_kernel *kernel = cross->kernel;
    struct tare_shape matrix, vector, pair = tare_operand_vector_shape(2);
    int64_t total, widest, count;
    TARE_TRY(count_all(&total, &widest, cross));
    matrix = tare_shape_make(2, total, (int64_t)2);
    vector = tare_operand_vector_shape(total);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, 1, kernel->node->output_dtypes[1], &vector));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &pair));
    TARE_DATA(int64_t, &kernel->outputs[2])[0] = cross->batch;
    TARE_DATA(int64_t, &kernel->outputs[2])[1] = widest;
    cross->values = &kernel->outputs[1];
    total = 0;
    for (int64_t row = 0; row < cross->batch; row++, total += count) {
        TARE_TRY(count_row(&count, cross, row));
        TARE_TRY(write_row(cross, row, total, count));
        for (int64_t k = 0; k < count; k++) {
            TARE_DATA(int64_t, &kernel->outputs[0])[2 * (total + k)] = row;
            TARE_DATA(int64_t, &kernel->outputs[0])[2 * (total + k) + 1] = k;
        }
    }
    return TARE_OK;
}

/* ---- the three kinds of columns; rows of a ragged result ---- */

static tare_status set_batch(struct cross *cross, size_t i, int64_t batch) {
    if (i == 0) cross->batch = batch;
    if (batch != cross->batch)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "inputs must all have the same batch dimension size (got %lld and %lld)",
                         (long long)cross->batch, (long long)batch);
    if (batch <= MOST_ROWS) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "a batch of %lld rows (expected at most %d)", (long long)batch, MOST_ROWS);
}

static tare_status ragged_column(struct cross *cross, size_t i, const struct tare_tensor *values,
                                 const struct tare_tensor *splits) {
    struct column *column = &cross->columns[i];
    if (values->shape.rank != 1 || splits->shape.rank != 1 || splits->elements < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "tf.ragged.cross only supports inputs with rank=2.");
    TARE_TRY(set_batch(cross, i, splits->elements - 1));
    column->values = values;
    column->starts = TARE_NEW_ARRAY(cross->kernel->scratch, int64_t, (size_t)splits->elements);
    if (!column->starts) return TARE_NO_MEMORY;
    for (int64_t k = 0; k < splits->elements; k++) {
        column->starts[k] = tare_index_at(splits, k);
        if (column->starts[k] < (k ? column->starts[k - 1] : 0) || (k == 0 && column->starts[0] != 0))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Invalid ragged splits: they must start at 0 and must not decrease");
    }
    if (column->starts[cross->batch] == values->elements) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid ragged splits: they end with %lld (expected %lld)",
                     (long long)column->starts[cross->batch], (long long)values->elements);
}

/* Orders the entries by row; entries after the last row are dropped. */
static tare_status sparse_column(struct cross *cross, size_t i, const struct tare_tensor *const parts[3]) {
    struct column *column = &cross->columns[i];
    struct tare_sparse sparse;
    TARE_TRY(tare_sparse_make(&sparse, parts[0], parts[1], parts[2]));
    if (sparse.rank != 2) return TARE_FAIL(TARE_INVALID_ARGUMENT, "tf.ragged.cross only supports inputs with rank=2.");
    TARE_TRY(set_batch(cross, i, sparse.dims[0]));
    TARE_TRY(tare_sparse_check(&sparse, false));
    column->values = parts[1];
    return find_starts(cross, i, &sparse);
}

/* The first operand of each kind. */
struct kinds {
    size_t ragged, n_ragged, sparse, n_sparse, dense, n_dense;
};

static tare_status kinds_of(struct kinds *kinds, const struct tare_kernel *kernel) {
    const struct tare_attr *ragged = tare_node_list(kernel->node, "ragged_values_types");
    const struct tare_attr *splits = tare_node_list(kernel->node, "ragged_splits_types");
    const struct tare_attr *sparse = tare_node_list(kernel->node, "sparse_values_types");
    *kinds = (struct kinds){ .n_ragged = ragged ? ragged->count : 0,
                             .n_sparse = (size_t)tare_node_int(kernel->node, "Nsparse", 0) };
    if (kinds->n_ragged != (splits ? splits->count : 0) || kinds->n_sparse != (sparse ? sparse->count : 0))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "values, splits and indices must have the same length");
    kinds->sparse = 2 * kinds->n_ragged;
    kinds->dense = kinds->sparse + 3 * kinds->n_sparse;
    kinds->n_dense = kernel->n_inputs - kinds->dense;
    return TARE_OK;
}

/* Adds the columns in the order given by input_order: R, S or D. */
static tare_status mixed_columns(struct cross *cross, const struct kinds *kinds, const char *order) {
    const struct tare_tensor *in = cross->kernel->inputs;
    size_t ragged = 0, sparse = 0, dense = 0;
    for (size_t i = 0; i < cross->n_columns; i++) {
        if (order[i] == 'R' && ragged < kinds->n_ragged) {
            TARE_TRY(ragged_column(cross, i, &in[ragged], &in[kinds->n_ragged + ragged]));
            ragged++;
        } else if (order[i] == 'S' && sparse < kinds->n_sparse) {
            const struct tare_tensor *first = &in[kinds->sparse + sparse++];
            const struct tare_tensor *parts[3] = { first, first + kinds->n_sparse, first + 2 * kinds->n_sparse };
            TARE_TRY(sparse_column(cross, i, parts));
        } else if (order[i] == 'D' && dense < kinds->n_dense) {
            const struct tare_tensor *values = &in[kinds->dense + dense++];
            if (values->shape.rank != 2)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "tf.ragged.cross only supports inputs with rank=2.");
            TARE_TRY(set_batch(cross, i, values->shape.dims[0]));
            cross->columns[i] = (struct column){ values, NULL, values->shape.dims[1] };
        } else {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid value for input_order: '%s'", order);
        }
    }
    return TARE_OK;
}

static tare_status run_ragged(struct tare_kernel *kernel) {
    const char *order = tare_node_string(kernel->node, "input_order", "");
    struct cross cross = { .kernel = kernel,
                           .separator = { "_X_", 3 },
                           .start = (uint64_t)tare_node_int(kernel->node, "hash_key", 0),
                           .buckets = tare_node_int(kernel->node, "num_buckets", 0) };
    struct kinds kinds;
    int64_t total, widest, at = 0;
    TARE_TRY(kinds_of(&kinds, kernel));
    cross.n_columns = kinds.n_ragged + kinds.n_sparse + kinds.n_dense;
    if (!cross.n_columns) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no columns to cross");
    if (strlen(order) != cross.n_columns) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid length for input_order");
    if (tare_node_bool(kernel->node, "hashed_output", false) != (kernel->node->output_dtypes[0] == TARE_DT_INT64))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "hashes are int64, crosses without hash are strings");
    cross.columns = TARE_NEW_ARRAY(kernel->scratch, struct column, cross.n_columns);
    cross.pick = TARE_NEW_ARRAY(kernel->scratch, int64_t, cross.n_columns);
    if (!cross.columns || !cross.pick) return TARE_NO_MEMORY;
    TARE_TRY(mixed_columns(&cross, &kinds, order));
    TARE_TRY(count_all(&total, &widest, &cross));
    const struct tare_shape values = tare_operand_vector_shape(total),
                            splits = tare_operand_vector_shape(cross.batch + 1);
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->node->output_dtypes[0], &values));
    TARE_TRY(tare_kernel_output(kernel, 1, kernel->node->output_dtypes[1], &splits));
    cross.values = &kernel->outputs[0];
    tare_tensor_set_i64(&kernel->outputs[1], 0, 0);
    for (int64_t row = 0; row < cross.batch; row++) {
        int64_t count;
        TARE_TRY(count_row(&count, &cross, row));
        TARE_TRY(write_row(&cross, row, at, count));
        at += count;
        tare_tensor_set_i64(&kernel->outputs[1], row + 1, at);
    }
    return TARE_OK;
}

static tare_status infer_ragged(struct tare_infer *infer) {
    infer->outputs[0] = infer->outputs[1] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

/* ---- the three ops ---- */

static tare_status run_first(struct tare_kernel *kernel) {
    const bool hashed = tare_node_bool(kernel->node, "hashed_output", false);
    struct cross cross = { .separator = { "_X_", 3 },
                           .start = (uint64_t)tare_node_int(kernel->node, "hash_key", 0),
                           .buckets = tare_node_int(kernel->node, "num_buckets", 0) };
    if (hashed != (kernel->node->output_dtypes[1] == TARE_DT_INT64))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "hashes are int64, crosses without hash are strings");
    TARE_TRY(read_columns(&cross, kernel, 0));
    return write_all(&cross);
}

static tare_status run_texts(struct tare_kernel *kernel) {
    const struct tare_tensor *separator = &kernel->inputs[kernel->n_inputs - 1];
    struct cross cross = { 0 };
    if (separator->elements != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input sep should be a scalar.");
    cross.separator = tare_text_at(separator, 0);
    TARE_TRY(read_columns(&cross, kernel, 1));
    return write_all(&cross);
}

static tare_status run_hashes(struct tare_kernel *kernel) {
    const struct tare_tensor *more = &kernel->inputs[kernel->n_inputs - 3]; /* num_buckets, strong_hash, salt */
    struct cross cross = { .keyed = true };
    if (more[0].elements != 1 || more[1].elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input num_buckets and strong_hash should be scalars.");
    if (more[2].elements != 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input \"salt\" must have length 2 but has length %lld",
                         (long long)more[2].elements);
    cross.buckets = TARE_CONST_DATA(int64_t, &more[0])[0];
    cross.strong = TARE_CONST_DATA(bool, &more[1])[0];
    memcpy(cross.key, more[2].data, sizeof cross.key);
    TARE_TRY(read_columns(&cross, kernel, 3));
    return write_all(&cross);
}

static tare_status infer_cross(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_make(2, (int64_t)-1, (int64_t)2);
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(2);
    return TARE_OK;
}

const struct tare_op tare_ops_sparse_cross[] = {
    { .name = "SparseCross", .infer = infer_cross, .run = run_first },
    { .name = "SparseCrossHashed", .infer = infer_cross, .run = run_hashes },
    { .name = "SparseCrossV2", .infer = infer_cross, .run = run_texts },
    { .name = "RaggedCross", .infer = infer_ragged, .run = run_ragged },
    { 0 },
};
