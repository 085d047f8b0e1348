/* Helpers of the linear algebra ops (matrix.h). Row-major matrices are column-major transposes to LAPACK. */
#include "interpreter/ops/linalg/matrix.h"

#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

struct tare_matrices tare_matrices_of(const struct tare_shape *shape) {
    const int64_t *end = shape->dims + shape->rank;
    return shape->rank < 2 ? (struct tare_matrices){ TARE_UNKNOWN_DIM, TARE_UNKNOWN_DIM }
                           : (struct tare_matrices){ end[-2], end[-1] };
}

int tare_matrix_dtype(int dtype) {
    return dtype == TARE_DT_DOUBLE || tare_dtype_is_complex(dtype) ? dtype : TARE_DT_FLOAT;
}

int tare_matrix_dtype_for(int dtype, int64_t rows, int64_t columns) {
    enum { MOST_IN_DOUBLE = 8 };
    if (rows > MOST_IN_DOUBLE || columns > MOST_IN_DOUBLE) return tare_matrix_dtype(dtype);
    return tare_dtype_is_complex(dtype) ? TARE_DT_COMPLEX128 : TARE_DT_DOUBLE;
}

tare_status tare_matrix_open(int64_t rows, int64_t columns) {
    int64_t size;
    if (rows > INT32_MAX / 8 || columns > INT32_MAX / 8 || __builtin_mul_overflow(rows, columns, &size))
        return TARE_FAIL(TARE_UNSUPPORTED, "a matrix of %lld x %lld is too large", (long long)rows, (long long)columns);
    return tare_lapack_open();
}

/* Whether a tensor contains the floats, or pairs of floats, of elements that are computed in double. */
static bool is_narrow(int dtype, const struct tare_tensor *tensor) {
    return (dtype == TARE_DT_DOUBLE && tensor->dtype == TARE_DT_FLOAT) ||
           (dtype == TARE_DT_COMPLEX128 && tensor->dtype == TARE_DT_COMPLEX64);
}

static int64_t parts_of(int dtype, int64_t count) {
    return tare_dtype_is_complex(dtype) ? 2 * count : count;
}

void tare_matrix_read(void *to, int dtype, const struct tare_tensor *from, int64_t first, int64_t count) {
    if (from->dtype == dtype) {
        const size_t size = tare_dtype_size(dtype);
        memcpy(to, (const char *)from->data + (size_t)first * size, (size_t)count * size);
    } else if (is_narrow(dtype, from)) {
        const int64_t parts = parts_of(dtype, count);
        const float *floats = (const float *)from->data + parts_of(dtype, first);
        for (int64_t i = 0; i < parts; i++)
            ((double *)to)[i] = (double)floats[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            tare_lapack_set(to, dtype, i, tare_tensor_get_c128(from, first + i));
    }
}

void tare_matrix_write(struct tare_tensor *to, int64_t first, int dtype, const void *from, int64_t count) {
    if (to->dtype == dtype) {
        const size_t size = tare_dtype_size(dtype);
        memcpy((char *)to->data + (size_t)first * size, from, (size_t)count * size);
    } else if (is_narrow(dtype, to)) {
        const int64_t parts = parts_of(dtype, count);
        float *floats = (float *)to->data + parts_of(dtype, first);
        for (int64_t i = 0; i < parts; i++)
            floats[i] = (float)((const double *)from)[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            tare_tensor_set_c128(to, first + i, tare_lapack_at(from, dtype, i));
    }
}

void tare_matrix_conjugate(void *x, int dtype, int64_t count) {
    for (int64_t i = 0; i < count && tare_dtype_is_complex(dtype); i++)
        tare_lapack_set(x, dtype, i, conj(tare_lapack_at(x, dtype, i)));
}

void tare_matrix_set_identity(void *x, int dtype, int64_t n) {
    memset(x, 0, (size_t)(n * n) * tare_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++)
        tare_lapack_set(x, dtype, i * n + i, 1);
}

bool tare_matrix_is_finite(const void *x, int dtype, int64_t count) {
    bool finite = true;
    for (int64_t i = 0; i < count; i++) /* a difference of infinities is NaN */
        finite &= tare_lapack_at(x, dtype, i) - tare_lapack_at(x, dtype, i) == 0;
    return finite;
}

tare_status tare_matrix_not_invertible(const char *what) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s is not invertible.", what);
}

bool tare_matrix_is_singular(const void *a, int dtype, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (tare_lapack_at(a, dtype, i * n + i) == 0) return true;
    return false;
}

void tare_matrix_order(int *order, int rows, const int *pivots, int count) {
    for (int row = 0; row < rows; row++)
        order[row] = row;
    for (int row = 0; row < count; row++) {
        const int other = pivots[row] - 1, moved = order[row];
        order[row] = order[other];
        order[other] = moved;
    }
}

/* Exchanges lines i and pivots[i] - 1 of x [n, columns], in reverse order if `backward`. */
static void exchange(const struct tare_lapack_call *lu, char *x, int64_t columns, bool backward) {
    const size_t line = (size_t)columns * tare_dtype_size(lu->dtype);
    for (int k = 0; k < lu->n; k++) {
        const int i = backward ? lu->n - 1 - k : k, other = ((const int *)lu->pivots)[i] - 1;
        if (other != i) tare_lapack_swap(lu->dtype, (int)columns, x + (size_t)i * line, x + (size_t)other * line, 1);
    }
}

/* In memory, Aᵀ = P·L·U for LAPACK, and x is xᵀ: xᵀ·P·L·U = bᵀ, or xᵀ·Uᴴ·Lᴴ·Pᵀ = bᵀ for the adjoint. */
bool tare_matrix_solve(struct tare_lapack_call *lu, void *x, int64_t columns, bool adjoint) {
    tare_lapack_run(lu);
    if (tare_matrix_is_singular(lu->a, lu->dtype, lu->n)) return false;
    if (adjoint) exchange(lu, x, columns, false);
    const int rows = (int)columns, n = lu->n;
    tare_lapack_trsm(lu->dtype, adjoint ? "RLCU" : "RUNN", rows, n, lu->a, n, x, rows);
    tare_lapack_trsm(lu->dtype, adjoint ? "RUCN" : "RLNU", rows, n, lu->a, n, x, rows);
    if (!adjoint) exchange(lu, x, columns, true);
    return true;
}

/* ---- ops ---- */

static bool wants_vectors(const struct tare_node *node) {
    return tare_node_bool(node, "compute_v", true) && tare_node_bool(node, "compute_uv", true);
}

/* The dimension that a character of tare_matrix_op.shapes describes. */
static int64_t dimension_of(char c, int64_t m, int64_t n, bool full) {
    const int64_t least = m < 0 || n < 0 ? TARE_UNKNOWN_DIM : m < n ? m : n;
    if (c == '+') return n < 0 ? n : n + 1;
    if (c == 'm' || (c == 'q' && full)) return m;
    return c == 'n' || (c == 'Q' && full) ? n : least;
}

tare_status tare_matrix_infer_square(struct tare_matrices *matrix) {
    if (matrix->rows < 0) matrix->rows = matrix->columns;
    if (matrix->columns < 0) matrix->columns = matrix->rows;
    if (matrix->rows == matrix->columns) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)", (long long)matrix->rows,
                     (long long)matrix->columns);
}

tare_status tare_matrix_infer(struct tare_infer *infer) {
    const struct tare_matrix_op *op = infer->node->def->row->aux;
    const struct tare_shape *input = &infer->inputs[0];
    const bool full = tare_node_bool(infer->node, "full_matrices", false), vectors = wants_vectors(infer->node);
    const char *c = op->shapes;
    if (input->rank >= 0 && input->rank < 2)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must have rank >= 2, got rank %d", input->rank);
    struct tare_matrices matrix = tare_matrices_of(input);
    if (!strchr(op->shapes, 'm')) TARE_TRY(tare_matrix_infer_square(&matrix));
    for (size_t k = 0; k < infer->n_outputs; k++, c += *c == ' ') {
        struct tare_shape *out = &infer->outputs[k];
        *out = k > 0 && !vectors ? tare_shape_make(1, (int64_t)0) : *input;
        if (out->rank < 2) continue;
        for (out->rank -= 2; *c && *c != ' '; c++)
            out->dims[out->rank++] = dimension_of(*c, matrix.rows, matrix.columns, full);
    }
    return TARE_OK;
}

static tare_status create_outputs(struct tare_kernel *kernel, int64_t *elements) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        TARE_TRY(tare_kernel_output(kernel, i, tare_dtype_base(kernel->node->output_dtypes[i]), &shapes[i]));
        *elements += kernel->outputs[i].elements;
    }
    return TARE_OK;
}

/* LAPACK sees conj(A) of a Hermitian matrix that is not loaded by columns, whose triangles are exchanged. */
static void read_options(struct tare_matrix_batch *b, const struct tare_matrix_op *op) {
    const struct tare_node *node = b->kernel->node;
    const char vectors = op->routine != TARE_LAPACK_GESDD               ? 'V'
                         : tare_node_bool(node, "full_matrices", false) ? 'A'
                                                                        : 'S';
    b->vectors = wants_vectors(node);
    b->adjoint = tare_node_bool(node, "adjoint", false);
    b->call.routine = op->routine;
    b->call.uplo = tare_node_bool(node, "lower", true) ? 'U' : 'L';
    b->call.left = 'N';
    b->call.job = b->vectors ? vectors : 'N';
}

/* Prepares the call for matrices of input 0 in the dtype in which they are computed. */
static tare_status open_batch(struct tare_matrix_batch *b, const struct tare_matrix_op *op) {
    const struct tare_tensor *input = &b->kernel->inputs[0];
    const struct tare_matrices matrix = tare_matrices_of(&input->shape);
    TARE_TRY(tare_matrix_open(matrix.rows, matrix.columns));
    b->count = 1, b->size = matrix.rows * matrix.columns;
    for (int d = 0; d < input->shape.rank - 2; d++)
        b->count *= input->shape.dims[d];
    int64_t elements = b->size;
    for (size_t i = 0; i < b->kernel->n_outputs; i++)
        if (b->kernel->outputs[i].elements / b->count > elements) elements = b->kernel->outputs[i].elements / b->count;
    b->call.m = (int)matrix.rows, b->call.n = (int)matrix.columns;
    b->call.dtype = tare_matrix_dtype_for(input->dtype, matrix.rows, matrix.columns);
    b->buffer = tare_lapack_new(b->kernel->scratch, b->call.dtype, elements);
    if (!b->buffer) return TARE_NO_MEMORY;
    read_options(b, op);
    TARE_TRY(tare_lapack_prepare(&b->call, b->kernel->scratch));
    return tare_lapack_allocate(&b->call, op->arrays ? op->arrays : "", b->kernel->scratch);
}

static void load(struct tare_matrix_batch *b, const struct tare_matrix_op *op, int64_t i) {
    const struct tare_lapack_call *c = &b->call;
    tare_matrix_read(op->by_columns ? b->buffer : c->a, c->dtype, &b->kernel->inputs[0], i * b->size, b->size);
    if (op->by_columns) tare_transpose(c->a, b->buffer, tare_dtype_size(c->dtype), c->m, c->n);
}

tare_status tare_matrix_run(struct tare_kernel *kernel) {
    const struct tare_matrix_op *op = kernel->op->aux;
    struct tare_matrix_batch b = { .kernel = kernel };
    int64_t elements = 0;
    TARE_TRY(create_outputs(kernel, &elements));
    if (elements == 0) return TARE_OK;
    TARE_TRY(open_batch(&b, op));
    for (int64_t i = 0; i < b.count; i++) {
        load(&b, op, i);
        TARE_TRY(op->run(&b, i));
    }
    return TARE_OK;
}

int tare_matrix_run_finite(struct tare_matrix_batch *b) {
    if (!tare_matrix_is_finite(b->call.a, b->call.dtype, b->size)) return -1;
    return tare_lapack_run(&b->call);
}

void tare_matrix_put_columns(struct tare_matrix_batch *b, size_t k, int64_t first, const void *from, int64_t rows,
                             int64_t columns, bool conjugate) {
    const int dtype = b->call.dtype;
    tare_transpose(b->buffer, from, tare_dtype_size(dtype), columns, rows);
    if (conjugate) tare_matrix_conjugate(b->buffer, dtype, rows * columns);
    tare_matrix_write(&b->kernel->outputs[k], first, dtype, b->buffer, rows * columns);
}

void tare_matrix_put(struct tare_matrix_batch *b, size_t k, int64_t i, const void *from) {
    const int64_t count = b->kernel->outputs[k].elements / b->count;
    tare_matrix_write(&b->kernel->outputs[k], i * count, b->call.dtype, from, count);
}
