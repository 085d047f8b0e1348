/* SparseReduceSum, SparseReduceMax, their sparse-output variants, and SparseSoftmax. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/support/accumulate.h"
#include "interpreter/ops/support/axes.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "base/tensor/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An entry and its group: its position with 0 for the reduced dimensions. */
struct member {
    int64_t group[TARE_MAX_RANK];
    int rank;
    int64_t row;
};

static int by_group(const void *a, const void *b) {
    const struct member *x = a, *y = b;
    for (int d = 0; d < x->rank; d++)
        if (x->group[d] != y->group[d]) return x->group[d] < y->group[d] ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

struct reduction {
    struct tare_sparse sparse;
    bool reduced[TARE_MAX_RANK];
    struct tare_shape out; /* of the dense result */
    struct member *members;
};

static bool same_group(const struct reduction *r, int64_t i, int64_t k) {
    return memcmp(r->members[i].group, r->members[k].group, sizeof r->members[i].group) == 0;
}

/* Without axes all dimensions are reduced. */
static tare_status read_axes(struct reduction *r, const struct tare_tensor *axes) {
    if (axes->shape.rank > 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "reduction_axes must be a scalar or a vector");
    memset(r->reduced, 0, sizeof r->reduced);
    for (int d = 0; d < r->sparse.rank && !axes->elements; d++)
        r->reduced[d] = true;
    return axes->elements ? tare_axes_read(r->reduced, axes, r->sparse.rank) : TARE_OK;
}

static tare_status prepare(struct reduction *r, struct tare_kernel *kernel) {
    struct tare_shape dense;
    TARE_TRY(tare_sparse_make(&r->sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_sparse_check(&r->sparse, false));
    TARE_TRY(read_axes(r, &kernel->inputs[3]));
    TARE_TRY(tare_shape_from_dims(&dense, r->sparse.rank, r->sparse.dims));
    tare_axes_shape(&r->out, &dense, r->reduced, tare_node_bool(kernel->node, "keep_dims", false));
    r->members = TARE_NEW_ARRAY(kernel->scratch, struct member, (size_t)r->sparse.count + 1);
    if (!r->members) return TARE_NO_MEMORY;
    for (int64_t row = 0; row < r->sparse.count; row++) {
        r->members[row] = (struct member){ .rank = r->sparse.rank, .row = row };
        for (int d = 0; d < r->sparse.rank; d++)
            if (!r->reduced[d]) r->members[row].group[d] = tare_sparse_index(&r->sparse, row, d);
    }
    qsort(r->members, (size_t)r->sparse.count, sizeof *r->members, by_group);
    return TARE_OK;
}

/* Reduces members first … end - 1 to element `at` of `out`, in input order. */
static tare_status reduce_group(const struct reduction *r, int64_t first, int64_t end, struct tare_tensor *out,
                                int64_t at, enum tare_accumulate how) {
    const struct tare_tensor *values = r->sparse.values;
    const size_t size = tare_dtype_size(values->dtype);
    char *to = (char *)out->data + (size_t)at * size;
    memcpy(to, (const char *)values->data + (size_t)r->members[first].row * size, size);
    for (int64_t i = first + 1; i < end; i++)
        TARE_TRY(tare_accumulate(how, values->dtype, to, (const char *)values->data + (size_t)r->members[i].row * size,
                                 1, false));
    return TARE_OK;
}

static int64_t end_of_group(const struct reduction *r, int64_t first) {
    int64_t end = first + 1;
    while (end < r->sparse.count && same_group(r, first, end))
        end++;
    return end;
}

/* Positions without entries are zero, also for a maximum. */
static tare_status run_dense(struct tare_kernel *kernel) {
    const enum tare_accumulate *how = kernel->op->aux;
    struct reduction r;
    TARE_TRY(prepare(&r, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, r.sparse.values->dtype, &r.out));
    tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    for (int64_t first = 0, end; first < r.sparse.count; first = end) {
        int64_t at = 0;
        for (int d = 0; d < r.sparse.rank; d++)
            if (!r.reduced[d]) at = at * r.sparse.dims[d] + r.members[first].group[d];
        end = end_of_group(&r, first);
        TARE_TRY(reduce_group(&r, first, end, &kernel->outputs[0], at, *how));
    }
    return TARE_OK;
}

static tare_status run_sparse(struct tare_kernel *kernel) {
    const enum tare_accumulate *how = kernel->op->aux;
    const bool keep = tare_node_bool(kernel->node, "keep_dims", false);
    struct reduction r;
    struct tare_shape matrix, vector, dense;
    int64_t groups = 0, *to;
    TARE_TRY(prepare(&r, kernel));
    for (int64_t first = 0; first < r.sparse.count; first = end_of_group(&r, first))
        groups++;
    matrix = tare_shape_make(2, groups, (int64_t)r.out.rank);
    vector = tare_operand_vector_shape(groups);
    dense = tare_operand_vector_shape(r.out.rank);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, 1, r.sparse.values->dtype, &vector));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &dense));
    if (r.out.rank) memcpy(kernel->outputs[2].data, r.out.dims, (size_t)r.out.rank * sizeof(int64_t));
    to = kernel->outputs[0].data;
    for (int64_t first = 0, end, k = 0; first < r.sparse.count; first = end, k++) {
        for (int d = 0; d < r.sparse.rank; d++)
            if (keep || !r.reduced[d]) *to++ = r.members[first].group[d];
        end = end_of_group(&r, first);
        TARE_TRY(reduce_group(&r, first, end, &kernel->outputs[1], k, *how));
    }
    return TARE_OK;
}

/* The shape of the dense result if the input's shape and the axes are known. */
static tare_status reduced_shape(struct tare_shape *out, const struct tare_infer *infer, int64_t rank) {
    struct reduction r = { .sparse = { .rank = (int)rank } };
    int64_t dims[TARE_MAX_RANK];
    struct tare_shape dense;
    int known;
    *out = tare_shape_unknown();
    TARE_TRY(tare_operand_list(infer, 2, "input_shape", dims, &known));
    if (rank < 0 || rank > TARE_MAX_RANK || !infer->input_values[3]) return TARE_OK;
    TARE_TRY(read_axes(&r, infer->input_values[3]));
    dense = tare_operand_unknown_dims((int)rank);
    if (known == rank) TARE_TRY(tare_shape_from_dims(&dense, known, dims));
    tare_axes_shape(out, &dense, r.reduced, tare_node_bool(infer->node, "keep_dims", false));
    return TARE_OK;
}

static tare_status infer_dense(struct tare_infer *infer) {
    int64_t count, rank;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    return reduced_shape(&infer->outputs[0], infer, rank);
}

static tare_status infer_sparse(struct tare_infer *infer) {
    int64_t count, rank;
    struct tare_shape out;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    TARE_TRY(reduced_shape(&out, infer, rank));
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[1] = out.rank;
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(out.rank);
    return TARE_OK;
}

/* ---- SparseSoftmax ---- */

static tare_status infer_softmax(struct tare_infer *infer) {
    int64_t count, rank;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    infer->outputs[0] = tare_operand_vector_shape(count);
    return TARE_OK;
}

/* Entries first … end - 1 form one row; missing entries count as -infinity. */
static void softmax_row(struct tare_tensor *out, const struct tare_tensor *values, int64_t first, int64_t end) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = first; i < end; i++)
        most = fmax(most, tare_tensor_get_f64(values, i));
    for (int64_t i = first; i < end; i++)
        sum += tare_exp(tare_tensor_get_f64(values, i) - most);
    for (int64_t i = first; i < end; i++)
        tare_tensor_set_f64(out, i, tare_exp(tare_tensor_get_f64(values, i) - most) / sum);
}

static tare_status run_softmax(struct tare_kernel *kernel) {
    struct tare_sparse sparse;
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    if (sparse.rank < 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input sparse tensor should have a rank of at least 2 (got %d)",
                         sparse.rank);
    TARE_TRY(tare_sparse_check(&sparse, true));
    TARE_TRY(tare_operand_output(kernel, 1));
    for (int64_t first = 0, end; first < sparse.count; first = end) {
        bool same = true;
        for (end = first + 1; end < sparse.count && same; end += same)
            for (int d = 0; d + 1 < sparse.rank; d++)
                same = same && tare_sparse_index(&sparse, end, d) == tare_sparse_index(&sparse, first, d);
        softmax_row(&kernel->outputs[0], sparse.values, first, end);
    }
    return TARE_OK;
}

static const enum tare_accumulate sum = TARE_ACCUMULATE_ADD, most = TARE_ACCUMULATE_MAX;

/* TensorFlow has kernels for fewer types than its definition allows. */
#define INPUTS "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32"
#define ATTRS                                                                                                          \
    "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "   \
    "uint64, complex64, complex128}"

const struct tare_op tare_ops_sparse_reduce[] = {
    { .name = "SparseReduceMax", .infer = infer_dense, .run = run_dense, .aux = &most },
    { .name = "SparseReduceMaxSparse", .infer = infer_sparse, .run = run_sparse, .aux = &most },
    { .name = "SparseReduceSum",
      .inputs = INPUTS,
      .outputs = "output: T",
      .attrs = ATTRS,
      .infer = infer_dense,
      .run = run_dense,
      .aux = &sum },
    { .name = "SparseReduceSumSparse",
      .inputs = INPUTS,
      .outputs = "output_indices: int64, output_values: T, output_shape: int64",
      .attrs = ATTRS,
      .infer = infer_sparse,
      .run = run_sparse,
      .aux = &sum },
    { .name = "SparseSoftmax", .infer = infer_softmax, .run = run_softmax },
    { 0 },
};
