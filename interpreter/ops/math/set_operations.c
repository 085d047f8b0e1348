/* Set operations on the rows of dense and sparse tensors: difference, intersection, union and size. The elements of
 * each row are sorted and deduplicated first; results are sparse tensors in row-major order. */
#include "base/alloc.h"
#include "base/ascii.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "interpreter/ops/string/text.h"

#include <stdlib.h>
#include <string.h>

enum operation { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION };

/* One operand: the elements of `values` and the row of each (the flat index of all dimensions except the last). */
struct operand {
    const struct tare_tensor *values;
    struct tare_shape shape;
    struct member {
        int64_t row, at;
    } * members; /* sorted by row, then by value; deduplicated */
    int64_t count;
};

static int compare_values(const struct tare_tensor *a, int64_t i, const struct tare_tensor *b, int64_t j) {
    if (a->dtype == TARE_DT_STRING) {
        struct tare_str x = tare_text_at(a, i), y = tare_text_at(b, j);
        size_t shared = x.size < y.size ? x.size : y.size;
        int order = shared ? memcmp(x.data, y.data, shared) : 0;
        return order ? order : (x.size > y.size) - (x.size < y.size);
    } else {
        int64_t x = tare_tensor_get_i64(a, i), y = tare_tensor_get_i64(b, j);
        return (x > y) - (x < y);
    }
}

static int compare_members(const void *a, const void *b, void *values) {
    const struct member *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return compare_values(values, x->at, values, y->at);
}

static void sort_members(struct operand *operand) {
    int64_t kept = 0;
    qsort_r(operand->members, (size_t)operand->count, sizeof *operand->members, compare_members,
            (void *)operand->values);
    for (int64_t i = 0; i < operand->count; i++)
        if (!kept || compare_members(&operand->members[kept - 1], &operand->members[i], (void *)operand->values) != 0)
            operand->members[kept++] = operand->members[i];
    operand->count = kept;
}

static tare_status read_dense(struct operand *out, struct tare_arena *arena, const struct tare_tensor *dense) {
    int64_t width;
    *out = (struct operand){ dense, dense->shape, NULL, dense->elements };
    if (dense->shape.rank < 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Shape rank %d < 2 (set operands have rows)", dense->shape.rank);
    width = dense->shape.dims[dense->shape.rank - 1];
    out->members = TARE_NEW_ARRAY(arena, struct member, (size_t)out->count + 1);
    if (!out->members) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < out->count; i++)
        out->members[i] = (struct member){ i / width, i };
    sort_members(out);
    return TARE_OK;
}

static tare_status read_sparse(struct operand *out, struct tare_arena *arena, const struct tare_tensor *parts,
                               bool validate) {
    struct tare_sparse sparse;
    int64_t rows = 1;
    TARE_TRY(tare_sparse_make(&sparse, &parts[0], &parts[1], &parts[2]));
    TARE_TRY(tare_sparse_check(&sparse, validate));
    if (sparse.rank < 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Shape rank %d < 2 (set operands have rows)", sparse.rank);
    *out = (struct operand){ &parts[1], { 0 }, NULL, sparse.count };
    TARE_TRY(tare_shape_from_dims(&out->shape, sparse.rank, sparse.dims));
    for (int d = 0; d + 1 < sparse.rank; d++)
        if (!tare_mul_i64(&rows, rows, sparse.dims[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the dense shape has too many rows");
    out->members = TARE_NEW_ARRAY(arena, struct member, (size_t)out->count + 1);
    if (!out->members) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < sparse.count; i++) {
        int64_t row = 0;
        for (int d = 0; d + 1 < sparse.rank; d++)
            row = row * sparse.dims[d] + tare_sparse_index(&sparse, i, d);
        out->members[i] = (struct member){ row, i };
    }
    sort_members(out);
    return TARE_OK;
}

static tare_status read_operation(enum operation *out, const struct tare_node *node) {
    static const char *const names[] = { "a-b", "b-a", "intersection", "union" };
    const char *name = tare_node_string(node, "set_operation", "");
    *out = UNION;
    for (int i = 0; i < 4; i++)
        if (tare_same_letters(name, names[i])) {
            *out = (enum operation)i;
            return TARE_OK;
        }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid set_operation %s.", name);
}

/* One element of the result and the operand that it comes from. */
struct result {
    int64_t row, at;
    bool second;
};

static bool expected(enum operation operation, bool in_a, bool in_b) {
    switch (operation) {
    case A_MINUS_B:
        return in_a && !in_b;
    case B_MINUS_A:
        return in_b && !in_a;
    case INTERSECTION:
        return in_a && in_b;
    default:
        return true;
    }
}

/* Merges the two sorted lists by the set operation. */
static int64_t merge(struct result *out, const struct operand *a, const struct operand *b, enum operation operation) {
    int64_t i = 0, j = 0, count = 0;
    while (i < a->count || j < b->count) {
        const struct member *x = i < a->count ? &a->members[i] : NULL, *y = j < b->count ? &b->members[j] : NULL;
        int order = !x                 ? 1
                    : !y               ? -1
                    : x->row != y->row ? (x->row < y->row ? -1 : 1)
                                       : compare_values(a->values, x->at, b->values, y->at);
        if (expected(operation, order <= 0, order >= 0))
            out[count++] =
                order <= 0 ? (struct result){ x->row, x->at, false } : (struct result){ y->row, y->at, true };
        i += order <= 0;
        j += order >= 0;
    }
    return count;
}

static tare_status write_results(struct tare_kernel *kernel, const struct operand *a, const struct operand *b,
                                 const struct result *results, int64_t count) {
    int rank = a->shape.rank;
    struct tare_shape matrix = tare_shape_make(2, 0, rank), vector = tare_operand_vector_shape(count);
    struct tare_shape dims = tare_operand_vector_shape(rank);
    int64_t number = 0, widest = 0, *to;
    matrix.dims[0] = count;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, 1, a->values->dtype, &vector));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &dims));
    to = TARE_DATA(int64_t, &kernel->outputs[0]);
    for (int64_t i = 0; i < count; i++) {
        int64_t left = results[i].row;
        number = i && results[i - 1].row == results[i].row ? number + 1 : 0;
        if (number + 1 > widest) widest = number + 1;
        for (int d = rank - 2; d >= 0; d--) {
            to[i * rank + d] = left % a->shape.dims[d];
            left /= a->shape.dims[d];
        }
        to[i * rank + rank - 1] = number;
        TARE_TRY(tare_move_run(&kernel->outputs[1], i, results[i].second ? b->values : a->values, results[i].at, 1));
    }
    for (int d = 0; d < rank; d++)
        TARE_DATA(int64_t, &kernel->outputs[2])[d] = d + 1 < rank ? a->shape.dims[d] : widest;
    return TARE_OK;
}

static tare_status infer_set(struct tare_infer *infer) {
    const struct tare_shape *first = &infer->inputs[0];
    int64_t rank = first->rank;
    if (infer->n_inputs == 6) rank = first->rank == 2 ? first->dims[1] : -1; /* the indices of a sparse operand */
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = rank;
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(rank);
    return TARE_OK;
}

static tare_status run_set(struct tare_kernel *kernel) {
    bool sparse_first = kernel->n_inputs == 6, sparse_second = kernel->n_inputs > 2;
    bool validate = tare_node_bool(kernel->node, "validate_indices", true);
    const struct tare_tensor *second = &kernel->inputs[sparse_first ? 3 : 1];
    enum operation operation;
    struct operand a, b;
    struct result *results;
    int64_t count;
    TARE_TRY(read_operation(&operation, kernel->node));
    TARE_TRY(sparse_first ? read_sparse(&a, kernel->scratch, kernel->inputs, validate)
                          : read_dense(&a, kernel->scratch, &kernel->inputs[0]));
    TARE_TRY(sparse_second ? read_sparse(&b, kernel->scratch, second, validate)
                           : read_dense(&b, kernel->scratch, second));
    if (a.shape.rank != b.shape.rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Ranks do not match: first %d, second %d", a.shape.rank, b.shape.rank);
    for (int d = 0; d + 1 < a.shape.rank; d++)
        if (a.shape.dims[d] != b.shape.dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Mismatched group dimension %d: %lld vs. %lld", d,
                             (long long)a.shape.dims[d], (long long)b.shape.dims[d]);
    results = TARE_NEW_ARRAY(kernel->scratch, struct result, (size_t)(a.count + b.count) + 1);
    if (!results) return TARE_NO_MEMORY;
    count = merge(results, &a, &b, operation);
    return write_results(kernel, &a, &b, results, count);
}

/* ---- SetSize ---- */

static tare_status infer_set_size(struct tare_infer *infer) {
    int64_t dims[TARE_MAX_RANK], length;
    int count;
    TARE_TRY(tare_operand_vector(infer, 2, "set_shape", &length));
    TARE_TRY(tare_operand_list(infer, 2, "set_shape", dims, &count));
    if (count > 0) return tare_shape_from_dims(&infer->outputs[0], count - 1, dims);
    if (length > 0 && length <= TARE_MAX_RANK) infer->outputs[0] = tare_operand_unknown_dims((int)length - 1);
    return TARE_OK;
}

/* Counts the distinct elements of each row. */
static tare_status run_set_size(struct tare_kernel *kernel) {
    struct operand set;
    TARE_TRY(
        read_sparse(&set, kernel->scratch, kernel->inputs, tare_node_bool(kernel->node, "validate_indices", true)));
    struct tare_shape shape = set.shape;
    shape.rank--;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &shape));
    tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    for (int64_t i = 0; i < set.count; i++)
        TARE_DATA(int32_t, &kernel->outputs[0])[set.members[i].row]++;
    return TARE_OK;
}

#define SET(op_name)                                                                                                   \
    { .name = op_name, .infer = infer_set, .run = run_set }

const struct tare_op tare_ops_set_operations[] = {
    SET("DenseToDenseSetOperation"),
    SET("DenseToSparseSetOperation"),
    SET("SparseToSparseSetOperation"),
    { .name = "SetSize", .infer = infer_set_size, .run = run_set_size },
    { 0 },
};
#undef SET
