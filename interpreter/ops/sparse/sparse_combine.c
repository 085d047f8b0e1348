/* SparseConcat, SparseSplit, SparseAdd, SparseSparseMaximum, SparseSparseMinimum and SparseTensorDenseAdd. */
#include "base/alloc.h"
#include "interpreter/ops/support/accumulate.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void sparse_shapes(struct tare_shape *out, size_t step, int64_t count, int64_t rank) {
    out[0] = tare_operand_unknown_dims(2);
    out[0].dims[0] = count;
    out[0].dims[1] = rank;
    out[step] = tare_operand_vector_shape(count);
    out[2 * step] = tare_operand_vector_shape(rank);
}

/* Allocates outputs first, first + step and first + 2 * step: indices (uninitialized), values, and the dense shape. */
static tare_status make_sparse(struct tare_kernel *kernel, size_t first, size_t step, int dtype, int64_t count,
                               int rank, const int64_t *dims) {
    struct tare_shape matrix = tare_shape_make(2, count, (int64_t)rank), vector = tare_operand_vector_shape(count);
    struct tare_shape dense = tare_operand_vector_shape(rank);
    TARE_TRY(tare_kernel_output(kernel, first, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, first + step, dtype, &vector));
    TARE_TRY(tare_kernel_output(kernel, first + 2 * step, TARE_DT_INT64, &dense));
    if (rank) memcpy(kernel->outputs[first + 2 * step].data, dims, (size_t)rank * sizeof *dims);
    return TARE_OK;
}

/* ---- SparseConcat ---- */

/* One entry of an operand with its position in the result. */
struct entry {
    int64_t at[TARE_MAX_RANK];
    int rank;
    size_t operand;
    int64_t row, order; /* order: index among all entries, which breaks ties */
};

static int by_place(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    for (int d = 0; d < x->rank; d++)
        if (x->at[d] != y->at[d]) return x->at[d] < y->at[d] ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static tare_status infer_concat(struct tare_infer *infer) {
    const size_t n = infer->n_inputs / 3;
    int64_t total = 0, rank = -1;
    for (size_t i = 0; i < n; i++) {
        int64_t count, own;
        TARE_TRY(tare_sparse_infer(infer, i, n + i, 2 * n + i, &count, &own));
        total = total < 0 || count < 0 ? -1 : total + count;
        if (rank >= 0 && own >= 0 && rank != own)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Ranks of all input tensors must match: expected %lld but got %lld at position %zu",
                             (long long)rank, (long long)own, i);
        if (own >= 0) rank = own;
    }
    sparse_shapes(infer->outputs, 1, total, rank);
    return TARE_OK;
}

static tare_status concat_shape(int64_t dims[TARE_MAX_RANK], int64_t *offsets, const struct tare_sparse *operands,
                                size_t n, int axis) {
    memcpy(dims, operands[0].dims, sizeof operands[0].dims);
    dims[axis] = 0;
    for (size_t i = 0; i < n; i++) {
        for (int d = 0; d < operands[0].rank; d++)
            if (d != axis && operands[i].dims[d] != dims[d])
                return TARE_FAIL(TARE_INVALID_ARGUMENT,
                                 "Input shapes must match: expected %lld for dimension %d but got %lld at position %zu",
                                 (long long)dims[d], d, (long long)operands[i].dims[d], i);
        offsets[i] = dims[axis];
        if (!tare_add_i64(&dims[axis], dims[axis], operands[i].dims[axis]))
            return TARE_FAIL(TARE_SHAPE, "dimension %d of the result is too large", axis);
    }
    return TARE_OK;
}

static void list_entries(struct entry *out, const struct tare_sparse *operands, size_t n, const int64_t *offsets,
                         int axis) {
    int64_t order = 0;
    for (size_t i = 0; i < n; i++)
        for (int64_t row = 0; row < operands[i].count; row++, order++) {
            struct entry *entry = &out[order];
            *entry = (struct entry){ .rank = operands[i].rank, .operand = i, .row = row, .order = order };
            for (int d = 0; d < entry->rank; d++)
                entry->at[d] = tare_sparse_index(&operands[i], row, d) + (d == axis ? offsets[i] : 0);
        }
}

static tare_status run_concat(struct tare_kernel *kernel) {
    const size_t n = kernel->n_inputs / 3;
    struct tare_sparse *operands = TARE_NEW_ARRAY(kernel->scratch, struct tare_sparse, n);
    int64_t *offsets = TARE_NEW_ARRAY(kernel->scratch, int64_t, n), dims[TARE_MAX_RANK], total = 0;
    struct entry *entries;
    int axis, rank;
    if (!operands || !offsets) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        TARE_TRY(
            tare_sparse_make(&operands[i], &kernel->inputs[i], &kernel->inputs[n + i], &kernel->inputs[2 * n + i]));
        TARE_TRY(tare_sparse_check(&operands[i], false));
        if (operands[i].rank != operands[0].rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Ranks of all input tensors must match: expected %d but got %d at position %zu",
                             operands[0].rank, operands[i].rank, i);
        total += operands[i].count;
    }
    rank = operands[0].rank;
    TARE_TRY(tare_operand_axis(&axis, tare_node_int(kernel->node, "concat_dim", 0), rank));
    TARE_TRY(concat_shape(dims, offsets, operands, n, axis));
    entries = TARE_NEW_ARRAY(kernel->scratch, struct entry, (size_t)total + 1);
    if (!entries) return TARE_NO_MEMORY;
    list_entries(entries, operands, n, offsets, axis);
    qsort(entries, (size_t)total, sizeof *entries, by_place);
    TARE_TRY(make_sparse(kernel, 0, 1, kernel->inputs[n].dtype, total, rank, dims));
    for (int64_t i = 0; i < total; i++) {
        memcpy(TARE_DATA(int64_t, &kernel->outputs[0]) + i * rank, entries[i].at, (size_t)rank * sizeof(int64_t));
        TARE_TRY(tare_move_run(&kernel->outputs[1], i, operands[entries[i].operand].values, entries[i].row, 1));
    }
    return TARE_OK;
}

/* ---- SparseSplit ---- */

/* A dimension split into `parts` pieces; if the division has a remainder, the first pieces are longer by one. */
struct pieces {
    int64_t size, longer;
};

static int64_t piece_of(const struct pieces *pieces, int64_t at) {
    const int64_t head = pieces->longer * (pieces->size + 1);
    return at < head ? at / (pieces->size + 1) : pieces->longer + (at - head) / pieces->size;
}

static int64_t piece_start(const struct pieces *pieces, int64_t k) {
    return k * pieces->size + (k < pieces->longer ? k : pieces->longer);
}

static tare_status infer_split(struct tare_infer *infer) {
    const size_t parts = infer->n_outputs / 3;
    int64_t count, rank;
    TARE_TRY(tare_operand_rank(infer, 0, "split_dim", 0));
    TARE_TRY(tare_sparse_infer(infer, 1, 2, 3, &count, &rank));
    for (size_t k = 0; k < parts; k++)
        sparse_shapes(infer->outputs + k, parts, -1, rank);
    return TARE_OK;
}

static tare_status count_pieces(int64_t *counts, const struct tare_sparse *sparse, const struct pieces *pieces,
                                int axis) {
    TARE_TRY(tare_sparse_check(sparse, false));
    for (int64_t row = 0; row < sparse->count; row++)
        counts[piece_of(pieces, tare_sparse_index(sparse, row, axis))]++;
    return TARE_OK;
}

static tare_status run_sparse_split(struct tare_kernel *kernel) {
    const size_t parts = kernel->n_outputs / 3;
    int64_t *counts = TARE_NEW_ARRAY(kernel->scratch, int64_t, parts), dims[TARE_MAX_RANK];
    struct tare_sparse sparse;
    struct pieces pieces;
    int axis;
    if (!counts) return TARE_NO_MEMORY;
    if (kernel->inputs[0].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "split_dim has %lld elements (expected 1)", (long long)kernel->inputs[0].elements);
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[1], &kernel->inputs[2], &kernel->inputs[3]));
    TARE_TRY(tare_operand_axis(&axis, tare_tensor_get_i64(&kernel->inputs[0], 0), sparse.rank));
    if ((int64_t)parts > sparse.dims[axis])
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Input num_split should be between 1 and the splitting dimension size (%lld), got %zu",
                         (long long)sparse.dims[axis], parts);
    pieces = (struct pieces){ sparse.dims[axis] / (int64_t)parts, sparse.dims[axis] % (int64_t)parts };
    TARE_TRY(count_pieces(counts, &sparse, &pieces, axis));
    memcpy(dims, sparse.dims, sizeof dims);
    for (size_t k = 0; k < parts; k++) {
        dims[axis] = pieces.size + ((int64_t)k < pieces.longer);
        TARE_TRY(make_sparse(kernel, k, parts, sparse.values->dtype, counts[k], sparse.rank, dims));
        counts[k] = 0;
    }
    for (int64_t row = 0; row < sparse.count; row++) {
        const int64_t k = piece_of(&pieces, tare_sparse_index(&sparse, row, axis)), at = counts[k]++;
        int64_t *index = TARE_DATA(int64_t, &kernel->outputs[k]) + at * sparse.rank;
        for (int d = 0; d < sparse.rank; d++)
            index[d] = tare_sparse_index(&sparse, row, d) - (d == axis ? piece_start(&pieces, k) : 0);
        TARE_TRY(tare_move_run(&kernel->outputs[(size_t)k + parts], at, sparse.values, row, 1));
    }
    return TARE_OK;
}

/* ---- SparseAdd, SparseSparseMaximum, SparseSparseMinimum ---- */

/* Two operands of one shape, both in row-major order, traversed together. */
struct pair {
    struct tare_sparse a, b;
    int64_t i, j;
};

static tare_status read_pair(struct pair *pair, const struct tare_kernel *kernel) {
    const struct tare_tensor *in = kernel->inputs;
    *pair = (struct pair){ 0 };
    TARE_TRY(tare_sparse_make(&pair->a, &in[0], &in[1], &in[2]));
    TARE_TRY(tare_sparse_make(&pair->b, &in[3], &in[4], &in[5]));
    if (pair->a.rank != pair->b.rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Ranks of input tensors must match, but saw ranks: %d and %d",
                         pair->a.rank, pair->b.rank);
    for (int d = 0; d < pair->a.rank; d++)
        if (pair->a.dims[d] != pair->b.dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input shapes must match: got %lld and %lld for dimension %d",
                             (long long)pair->a.dims[d], (long long)pair->b.dims[d], d);
    TARE_TRY(tare_sparse_check(&pair->a, true));
    return tare_sparse_check(&pair->b, true);
}

/* Advances to the next position that occurs in either operand: *a and *b are the entries there, -1 for none. Returns
 * false at the end. */
static bool next_place(struct pair *pair, int64_t *a, int64_t *b) {
    int order = 0;
    const bool more_a = pair->i < pair->a.count, more_b = pair->j < pair->b.count;
    if (!more_a && !more_b) return false;
    for (int d = 0; more_a && more_b && d < pair->a.rank && !order; d++) {
        const int64_t x = tare_sparse_index(&pair->a, pair->i, d), y = tare_sparse_index(&pair->b, pair->j, d);
        order = (x > y) - (x < y);
    }
    if (!more_a) order = 1;
    if (!more_b) order = -1;
    *a = order <= 0 ? pair->i++ : -1;
    *b = order >= 0 ? pair->j++ : -1;
    return true;
}

static const void *element(const struct tare_tensor *values, int64_t row) {
    return (const char *)values->data + (size_t)row * tare_dtype_size(values->dtype);
}

/* Combines the values of both operands at a position; with `with_zero` a missing value is zero. */
static tare_status combine(void *out, const struct pair *pair, int64_t a, int64_t b, enum tare_accumulate how,
                           bool with_zero) {
    const struct tare_tensor *x = pair->a.values, *y = pair->b.values;
    const size_t size = tare_dtype_size(x->dtype);
    memset(out, 0, size);
    if (a >= 0) memcpy(out, element(x, a), size);
    if (b < 0 && !with_zero) return TARE_OK;
    if (a < 0 && !with_zero) {
        memcpy(out, element(y, b), size);
        return TARE_OK;
    }
    const uint64_t zero[2] = { 0 };
    return tare_accumulate(how, x->dtype, out, b >= 0 ? element(y, b) : (const void *)zero, 1, false);
}

/* One entry of the result and the entries it is computed from. */
struct joint {
    int64_t a, b;
    uint64_t value[2];
};

static tare_status join(struct joint **out, int64_t *count, struct tare_kernel *kernel, struct pair *pair,
                        enum tare_accumulate how, bool with_zero) {
    struct joint *joints =
        TARE_NEW_ARRAY(kernel->scratch, struct joint, (size_t)pair->a.count + (size_t)pair->b.count + 1);
    int64_t a, b;
    if (!joints) return TARE_NO_MEMORY;
    *count = 0;
    while (next_place(pair, &a, &b)) {
        struct joint *joint = &joints[(*count)++];
        joint->a = a;
        joint->b = b;
        TARE_TRY(combine(joint->value, pair, a, b, how, with_zero));
    }
    *out = joints;
    return TARE_OK;
}

static tare_status write_joints(struct tare_kernel *kernel, const struct pair *pair, const struct joint *joints,
                                int64_t count) {
    const int rank = pair->a.rank;
    const size_t size = tare_dtype_size(pair->a.values->dtype);
    struct tare_shape matrix = tare_shape_make(2, count, (int64_t)rank), vector = tare_operand_vector_shape(count);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, 1, pair->a.values->dtype, &vector));
    for (int64_t i = 0; i < count; i++) {
        const struct tare_sparse *from = joints[i].a >= 0 ? &pair->a : &pair->b;
        for (int d = 0; d < rank; d++)
            TARE_DATA(int64_t, &kernel->outputs[0])
        [i * rank + d] = tare_sparse_index(from, joints[i].a >= 0 ? joints[i].a : joints[i].b, d);
        memcpy((char *)kernel->outputs[1].data + (size_t)i * size, joints[i].value, size);
    }
    return TARE_OK;
}

static double magnitude(const void *value, int dtype) {
    struct tare_shape scalar = tare_shape_scalar();
    const struct tare_tensor view = {
        .dtype = dtype, .shape = scalar, .elements = 1, .data = (void *)(uintptr_t)value
    };
    if (dtype == TARE_DT_COMPLEX64) return hypot((double)((const float *)value)[0], (double)((const float *)value)[1]);
    if (dtype == TARE_DT_COMPLEX128) return hypot(((const double *)value)[0], ((const double *)value)[1]);
    return fabs(tare_tensor_get_f64(&view, 0));
}

/* Sums of two values below the threshold are dropped; so is NaN, because it compares false. A value that only one
 * operand has is kept as it is. */
static tare_status run_sparse_add(struct tare_kernel *kernel) {
    struct joint *joints;
    struct pair pair;
    int64_t count, kept = 0;
    struct tare_shape dense;
    if (kernel->inputs[6].elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "The magnitude threshold must be a scalar");
    const double threshold = tare_tensor_get_f64(&kernel->inputs[6], 0);
    TARE_TRY(read_pair(&pair, kernel));
    TARE_TRY(join(&joints, &count, kernel, &pair, TARE_ACCUMULATE_ADD, false));
    for (int64_t i = 0; i < count; i++)
        if (joints[i].a < 0 || joints[i].b < 0 || threshold <= magnitude(joints[i].value, pair.a.values->dtype))
            joints[kept++] = joints[i];
    TARE_TRY(write_joints(kernel, &pair, joints, kept));
    dense = tare_operand_vector_shape(pair.a.rank);
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &dense));
    if (pair.a.rank) memcpy(kernel->outputs[2].data, pair.a.dims, (size_t)pair.a.rank * sizeof(int64_t));
    return TARE_OK;
}

static tare_status run_extreme(struct tare_kernel *kernel) {
    const enum tare_accumulate *how = kernel->op->aux;
    struct joint *joints;
    struct pair pair;
    int64_t count;
    TARE_TRY(read_pair(&pair, kernel));
    TARE_TRY(join(&joints, &count, kernel, &pair, *how, true));
    return write_joints(kernel, &pair, joints, count);
}

static tare_status infer_pair(struct tare_infer *infer) {
    int64_t count, rank, other;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    TARE_TRY(tare_sparse_infer(infer, 3, 4, 5, &count, &other));
    if (rank >= 0 && other >= 0 && rank != other)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Ranks of input tensors must match, but saw ranks: %lld and %lld",
                         (long long)rank, (long long)other);
    if (rank < 0) rank = other;
    if (infer->n_inputs > 6) TARE_TRY(tare_operand_rank(infer, 6, "thresh", 0));
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(-1);
    if (infer->n_outputs > 2) infer->outputs[2] = tare_operand_vector_shape(rank);
    return TARE_OK;
}

/* ---- SparseTensorDenseAdd ---- */

static tare_status infer_dense_add(struct tare_infer *infer) {
    int64_t count, rank;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    infer->outputs[0] = infer->inputs[3];
    if (rank >= 0 && infer->inputs[3].rank >= 0 && rank != infer->inputs[3].rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Two operands have different dimensions; received: %lld and %d",
                         (long long)rank, infer->inputs[3].rank);
    return TARE_OK;
}

static tare_status run_dense_add(struct tare_kernel *kernel) {
    const struct tare_tensor *dense = &kernel->inputs[3];
    struct tare_tensor *out = &kernel->outputs[0];
    const size_t size = tare_dtype_size(dense->dtype);
    struct tare_sparse sparse;
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_operand_output(kernel, 3));
    for (int d = 0; d < sparse.rank; d++)
        if (sparse.dims[d] != dense->shape.dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Dimension %d does not equal (no broadcasting is supported): %lld and %lld", d,
                             (long long)sparse.dims[d], (long long)dense->shape.dims[d]);
    TARE_TRY(tare_sparse_check(&sparse, false));
    TARE_TRY(tare_move_run(out, 0, dense, 0, dense->elements));
    for (int64_t row = 0; row < sparse.count; row++) {
        int64_t at = 0;
        for (int d = 0; d < sparse.rank; d++)
            at = at * sparse.dims[d] + tare_sparse_index(&sparse, row, d);
        TARE_TRY(tare_accumulate(TARE_ACCUMULATE_ADD, dense->dtype, (char *)out->data + (size_t)at * size,
                                 element(sparse.values, row), 1, false));
    }
    return TARE_OK;
}

static const enum tare_accumulate maximum = TARE_ACCUMULATE_MAX, minimum = TARE_ACCUMULATE_MIN;

#define REALS "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
#define NUMBERS "{" REALS ", complex64, complex128}"
#define PAIR "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"

const struct tare_op tare_ops_sparse_combine[] = {
    { .name = "SparseAdd",
      .inputs = PAIR ", thresh: Treal",
      .outputs = "sum_indices: int64, sum_values: T, sum_shape: int64",
      .attrs = "T: " NUMBERS "; Treal: {" REALS "}",
      .infer = infer_pair,
      .run = run_sparse_add },
    { .name = "SparseConcat", .infer = infer_concat, .run = run_concat },
    { .name = "SparseSparseMaximum", .infer = infer_pair, .run = run_extreme, .aux = &maximum },
    { .name = "SparseSparseMinimum",
      .inputs = PAIR,
      .outputs = "output_indices: int64, output_values: T",
      .attrs = "T: {" REALS "}",
      .infer = infer_pair,
      .run = run_extreme,
      .aux = &minimum },
    { .name = "SparseSplit", .infer = infer_split, .run = run_sparse_split },
    { .name = "SparseTensorDenseAdd",
      .inputs = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
      .outputs = "output: T",
      .attrs = "T: " NUMBERS "; Tindices: {int32, int64}",
      .infer = infer_dense_add,
      .run = run_dense_add },
    { 0 },
};
