/* Determinants, LU, linear systems and least squares by LAPACK in the tensor's own precision (half and bfloat16 in
 * float; small matrices and normal equations in double). */
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* ---- determinants ---- */

static tare_status infer_determinant(struct tare_infer *infer) {
    struct tare_infer square = *infer;
    struct tare_shape shape;
    square.outputs = &shape;
    TARE_TRY(tare_matrix_infer_square(&square));
    if (shape.rank < 0) return TARE_OK;
    shape.rank -= 2;
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = shape;
    return TARE_OK;
}

/* Element i of the diagonal of U, with the sign that exchanging rows contributes. */
static tare_complex factor_at(const struct tare_lapack_call *lu, int64_t i) {
    const tare_complex x = tare_matrix_at(lu->a, lu->type, i * (lu->n + 1));
    return ((const int *)lu->pivots)[i] == i + 1 ? x : -x;
}

static void put_determinant(struct tare_kernel *kernel, int64_t at, const struct tare_lapack_call *lu) {
    tare_complex product = 1;
    for (int64_t i = 0; i < lu->n; i++)
        product *= factor_at(lu, i);
    tare_tensor_set_c128(&kernel->outputs[0], at, product);
}

/* The sign (phase) of the determinant and the logarithm of its magnitude. */
static void put_log_determinant(struct tare_kernel *kernel, int64_t at, const struct tare_lapack_call *lu) {
    tare_complex phase = 1;
    double logarithm = 0;
    for (int64_t i = 0; i < lu->n; i++) {
        const tare_complex x = factor_at(lu, i);
        phase *= x == 0 ? 0 : x / cabs(x);
        logarithm += log(cabs(x));
    }
    tare_tensor_set_c128(&kernel->outputs[0], at, phase);
    tare_tensor_set_f64(&kernel->outputs[1], at, logarithm);
}

static tare_status run_determinant(struct tare_kernel *kernel) {
    struct tare_matrices m;
    struct tare_lapack_call lu;
    TARE_TRY(tare_matrix_outputs(kernel, &m));
    TARE_TRY(tare_matrix_open_lu(&lu, kernel, m.rows));
    const int64_t size = m.rows * m.rows;
    for (int64_t i = 0; i < kernel->outputs[0].elements; i++) {
        tare_matrix_read(lu.a, lu.type, &kernel->inputs[0], i * size, size);
        if (size) tare_small_lapack_run(&lu); /* of the transpose: the same determinant */
        (kernel->n_outputs > 1 ? put_log_determinant : put_determinant)(kernel, i, &lu);
    }
    return TARE_OK;
}

/* ---- LU ---- */

static tare_status infer_lu(struct tare_infer *infer) {
    TARE_TRY(tare_matrix_infer_square(infer));
    infer->outputs[1] = infer->outputs[0];
    if (infer->outputs[1].rank > 0) infer->outputs[1].rank--;
    return TARE_OK;
}

/* LU of a complex matrix: LAPACK chooses complex pivots by |re| + |im|, TensorFlow by the modulus, which yields another
 * P; so the recursion of getrf is repeated here with the other pivots. */

static char *lu_at(const struct tare_lapack_call *lu, int row, int column) {
    return (char *)lu->a + ((size_t)column * (size_t)lu->n + (size_t)row) * tare_lapack_size(lu->type);
}

/* Exchanges rows as pivots first … last - 1 require, in columns begin … end - 1. */
static void exchange_rows(const struct tare_lapack_call *lu, int first, int last, int begin, int end) {
    const size_t size = tare_lapack_size(lu->type);
    char moved[16];
    for (int column = begin; column < end; column++)
        for (int row = first; row < last; row++) {
            char *x = lu_at(lu, row, column), *y = lu_at(lu, ((const int *)lu->pivots)[row] - 1, column);
            memcpy(moved, x, size);
            memmove(x, y, size);
            memcpy(y, moved, size);
        }
}

/* Finds the pivot of a column and divides what is below it. False: all are zero. */
static bool factor_column(const struct tare_lapack_call *lu, int column) {
    char *x = lu_at(lu, 0, column);
    int pivot = column;
    for (int row = column + 1; row < lu->n; row++)
        if (cabs(tare_matrix_at(x, lu->type, row)) > cabs(tare_matrix_at(x, lu->type, pivot))) pivot = row;
    ((int *)lu->pivots)[column] = pivot + 1;
    exchange_rows(lu, column, column + 1, column, column + 1);
    const tare_complex divisor = tare_matrix_at(x, lu->type, column);
    for (int row = column + 1; row < lu->n && divisor != 0; row++)
        tare_matrix_set(x, lu->type, row, tare_matrix_at(x, lu->type, row) / divisor);
    return divisor != 0;
}

/* Factors `count` columns from `first` on, from the row of that number on: the left half, its effect on the right half,
 * the right half. */
static bool factor_complex(const struct tare_lapack_call *lu, int first, int count) {
    if (count == 1) return factor_column(lu, first);
    const int n = lu->n, middle = first + count / 2, end = first + count, left = middle - first, right = end - middle;
    if (!factor_complex(lu, first, left)) return false;
    exchange_rows(lu, first, middle, middle, end);
    tare_lapack_trsm(lu->type, "LLNU", left, right, lu_at(lu, first, first), n, lu_at(lu, first, middle), n);
    tare_lapack_gemm(lu->type, "NN", n - middle, right, left, lu_at(lu, middle, first), n, lu_at(lu, first, middle), n,
                     -1, lu_at(lu, middle, middle), n);
    if (!factor_complex(lu, middle, right)) return false;
    exchange_rows(lu, middle, end, first, middle);
    return true;
}

static tare_status run_lu(struct tare_kernel *kernel) {
    struct tare_matrices m;
    struct tare_lapack_call lu;
    TARE_TRY(tare_matrix_outputs(kernel, &m));
    TARE_TRY(tare_matrix_open_lu(&lu, kernel, m.rows));
    const int64_t n = m.rows, size = n * n;
    void *rows = tare_matrix_new(kernel->scratch, lu.type, size);
    int *order = TARE_NEW_ARRAY(kernel->scratch, int, (size_t)n + 1);
    if (!rows || !order) return TARE_NO_MEMORY;
    for (int64_t i = 0; n && i < m.count; i++) {
        tare_matrix_load(lu.a, lu.type, &kernel->inputs[0], i * size, n, n, rows);
        if (tare_lapack_is_complex(lu.type) ? !factor_complex(&lu, 0, lu.n) : tare_small_lapack_run(&lu))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
        tare_matrix_order(order, lu.n, lu.pivots, lu.n);
        for (int64_t k = 0; k < n; k++)
            tare_tensor_set_i64(&kernel->outputs[1], i * n + k, order[k]);
        tare_matrix_store(&kernel->outputs[0], i * size, lu.type, lu.a, n, n, rows);
    }
    return TARE_OK;
}

/* ---- A x = b ---- */

/* A row's aux. */
struct solver {
    bool triangular, banded, broadcast;
};
static const struct solver dense = { 0 }, triangular = { .triangular = true, .broadcast = true },
                           old_triangular = { .triangular = true }, banded = { .banded = true, .broadcast = true };

/* The dimensions before the last two of both inputs, equal or broadcast. */
static tare_status infer_batch(struct tare_shape *out, const struct tare_infer *infer, bool broadcast) {
    struct tare_shape a = infer->inputs[0], b = infer->inputs[1];
    *out = tare_shape_unknown();
    if (a.rank < 0 || b.rank < 0) return TARE_OK;
    a.rank -= 2;
    b.rank -= 2;
    return broadcast ? tare_shape_broadcast(out, &a, &b) : tare_shape_merge(out, &a, &b);
}

static tare_status infer_solve(struct tare_infer *infer) {
    const struct solver *solver = infer->node->def->row->aux;
    int64_t rows, columns, right_rows, right_columns;
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    TARE_TRY(tare_matrix_infer_dims(&right_rows, &right_columns, infer, 1));
    if (!solver->banded && rows >= 0 && columns >= 0 && rows != columns)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)", (long long)rows,
                         (long long)columns);
    if (columns < 0 && !solver->banded) columns = rows;
    if (columns >= 0 && right_rows >= 0 && columns != right_rows)
        return TARE_FAIL(TARE_SHAPE, "Input matrix and rhs are incompatible: %lld columns and %lld rows",
                         (long long)columns, (long long)right_rows);
    TARE_TRY(infer_batch(out, infer, solver->broadcast));
    if (out->rank < 0) return TARE_OK;
    if (out->rank > TARE_MAX_RANK - 2) return TARE_FAIL(TARE_SHAPE, "the result has too many dims");
    out->dims[out->rank++] = columns < 0 ? right_rows : columns;
    out->dims[out->rank++] = right_columns;
    return TARE_OK;
}

/* Index of the input matrix for matrix `i` of the output; dimensions of 1 are broadcast. */
static int64_t matrix_at(const struct tare_shape *input, const struct tare_shape *output, int64_t i) {
    int64_t at = 0, step = 1;
    for (int back = 3; back <= output->rank; back++) {
        const int64_t dim = output->dims[output->rank - back], k = i % dim;
        i /= dim;
        if (back > input->rank) continue;
        const int64_t own = input->dims[input->rank - back];
        at += own == 1 ? 0 : k * step;
        step *= own;
    }
    return at;
}

/* Expands a triangular matrix stored as its diagonals: the main one is the first row of a lower matrix, the last of an
 * upper one. */
static void expand_bands(char *a, const char *bands, int64_t n_bands, int64_t n, bool lower, size_t size) {
    memset(a, 0, (size_t)(n * n) * size);
    for (int64_t band = 0; band < n_bands; band++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t off = lower ? band : n_bands - 1 - band, column = lower ? j - off : j + off;
            if (column >= 0 && column < n)
                memcpy(a + (size_t)(j * n + column) * size, bands + (size_t)(band * n + j) * size, size);
        }
}

/* Systems of n equations; `a` of the LU factors is also that of a triangular system, and b of the solution with them
 * is the transpose of x [n, columns]. */
struct system {
    const struct solver *solver;
    bool lower, adjoint;
    struct tare_matrices left, right;
    int64_t n;
    enum tare_lapack_type type;
    struct tare_lapack_call lu, solve;
    void *bands, *x;
};

/* Memory contains Aᵀ and xᵀ for LAPACK: A x = b is xᵀ·Aᵀ = bᵀ, and Aᴴ x = b is xᵀ·(Aᵀ)ᴴ = bᵀ. */
static void solve_triangular(struct system *s) {
    const char form[] = { 'R', s->lower ? 'U' : 'L', s->adjoint ? 'C' : 'N', 'N' };
    const int columns = (int)s->right.columns;
    tare_lapack_trsm(s->type, form, columns, (int)s->n, s->lu.a, (int)s->n, s->x, columns);
}

/* The factors are those of Aᵀ, so its transpose is solved for; Aᴴ x = b as conj(Aᵀ) x = b with everything conjugated.
 */
static void solve_dense(struct system *s) {
    tare_matrix_transpose(s->solve.b, s->x, s->type, s->n, s->right.columns, s->adjoint);
    tare_small_lapack_run(&s->solve);
    tare_matrix_transpose(s->x, s->solve.b, s->type, s->right.columns, s->n, s->adjoint);
}

static tare_status solve_one(struct system *s, const struct tare_tensor *inputs, int64_t left, int64_t right) {
    const int64_t n = s->n, size = s->left.rows * s->left.columns, width = n * s->right.columns;
    const bool is_triangular = s->solver->triangular || s->solver->banded;
    tare_matrix_read(s->solver->banded ? s->bands : s->lu.a, s->type, &inputs[0], left * size, size);
    tare_matrix_read(s->x, s->type, &inputs[1], right * width, width);
    if (s->solver->banded) expand_bands(s->lu.a, s->bands, s->left.rows, n, s->lower, tare_lapack_size(s->type));
    if (!is_triangular) tare_small_lapack_run(&s->lu);
    if (tare_matrix_is_singular(s->lu.a, s->type, n))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix is not invertible.");
    (is_triangular ? solve_triangular : solve_dense)(s);
    return TARE_OK;
}

static tare_status open_system(struct system *s, struct tare_kernel *kernel) {
    s->left = tare_matrices_of(&kernel->inputs[0]);
    s->right = tare_matrices_of(&kernel->inputs[1]);
    s->n = s->left.columns;
    if (s->solver->banded && s->left.rows < 1) return TARE_FAIL(TARE_SHAPE, "bands must have at least one row");
    if (s->solver->banded && s->left.rows > s->n)
        return TARE_FAIL(TARE_SHAPE, "the number of bands is %lld (expected at most the %lld columns)",
                         (long long)s->left.rows, (long long)s->n);
    TARE_TRY(tare_matrix_open_lu(&s->lu, kernel, s->n));
    TARE_TRY(tare_matrix_open(s->n, s->right.columns));
    s->type = s->lu.type;
    s->solve = (struct tare_lapack_call){ TARE_LAPACK_GETRS,
                                          s->type,
                                          .m = (int)s->n,
                                          .n = (int)s->n,
                                          .k = (int)s->right.columns,
                                          .trans = s->adjoint ? 'N' : 'T',
                                          .a = s->lu.a,
                                          .pivots = s->lu.pivots };
    s->bands = tare_matrix_new(kernel->scratch, s->type, s->solver->banded ? s->left.rows * s->n : 0);
    s->x = tare_matrix_new(kernel->scratch, s->type, s->n * s->right.columns);
    return s->bands && s->x ? tare_lapack_prepare(&s->solve, kernel->scratch) : TARE_NO_MEMORY;
}

static tare_status run_solve(struct tare_kernel *kernel) {
    struct system s = { .solver = kernel->op->aux,
                        .lower = tare_node_bool(kernel->node, "lower", true),
                        .adjoint = tare_node_bool(kernel->node, "adjoint", false) };
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_operand_output(kernel, 0));
    if (out->elements == 0) return TARE_OK;
    TARE_TRY(open_system(&s, kernel));
    const int64_t size = s.n * s.right.columns;
    for (int64_t i = 0; i < out->elements / size; i++) {
        TARE_TRY(solve_one(&s, kernel->inputs, matrix_at(&kernel->inputs[0].shape, &out->shape, i),
                           matrix_at(&kernel->inputs[1].shape, &out->shape, i)));
        tare_matrix_write(out, i * size, s.type, s.x, size);
    }
    return TARE_OK;
}

/* ---- least squares: with `fast` by the normal equations and their Cholesky factor, as in TensorFlow, (AᴴA + l·1)⁻¹ Aᴴ
 * b or Aᴴ (AAᴴ + l·1)⁻¹ b for more columns than rows, in double because they square the condition number; otherwise by
 * a complete orthogonal factorization in the tensor's own precision ---- */

static tare_status infer_least_squares(struct tare_infer *infer) {
    int64_t rows, columns, right_rows, right_columns;
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    TARE_TRY(tare_matrix_infer_dims(&right_rows, &right_columns, infer, 1));
    if (rows >= 0 && right_rows >= 0 && rows != right_rows)
        return TARE_FAIL(TARE_SHAPE, "Input matrix and rhs are incompatible: %lld and %lld rows", (long long)rows,
                         (long long)right_rows);
    TARE_TRY(infer_batch(out, infer, false));
    if (out->rank < 0) return TARE_OK;
    out->dims[out->rank++] = columns;
    out->dims[out->rank++] = right_columns;
    return TARE_OK;
}

/* Memory contains Aᵀ [n, m], bᵀ [k, m] and xᵀ [k, n] for LAPACK. */
struct least_squares {
    int m, n, k, small; /* A is [m, n], b [m, k]; small = min(m, n) */
    bool fast;
    double l2;
    enum tare_lapack_type type;
    void *a, *b, *x;
    struct tare_lapack_call call; /* potrf of the normal equations, or gelsy of A and b, column-major */
    void *columns;                /* b or x with its own number of rows, column-major */
};

/* xᵀ from bᵀ. The factor of the Hermitian matrix, in memory U of Gᵀ = UᴴU, solves y Gᵀ = c. */
static tare_status solve_normal_equations(struct least_squares *s) {
    const int m = s->m, n = s->n, k = s->k, small = s->small;
    const enum tare_lapack_type type = s->type;
    void *gram = s->call.a, *y = m >= n ? s->x : s->b;
    tare_lapack_gemm(type, m >= n ? "NC" : "CN", small, small, m >= n ? m : n, s->a, n, s->a, n, 1, gram, small);
    for (int64_t i = 0; i < small; i++)
        tare_matrix_add_real(gram, type, i * small + i, s->l2);
    if (m >= n) tare_lapack_gemm(type, "NC", k, n, m, s->b, k, s->a, n, 1, s->x, k);
    if (tare_small_lapack_run(&s->call) || tare_matrix_is_singular(gram, type, small))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix was rank deficient or ill-conditioned.");
    tare_lapack_trsm(type, "RUNN", k, small, gram, small, y, k);
    tare_lapack_trsm(type, "RUCN", k, small, gram, small, y, k);
    if (m < n) tare_lapack_gemm(type, "NC", k, n, m, s->b, k, s->a, n, 1, s->x, k);
    return TARE_OK;
}

/* xᵀ as the solution of least norm, which exists for every rank. b and x of the call have max(m, n) rows. */
static tare_status solve_by_qr(struct least_squares *s) {
    const int64_t m = s->m, n = s->n, k = s->k, most = m > n ? m : n;
    const size_t size = tare_lapack_size(s->type);
    char *b = s->call.b, *columns = s->columns;
    tare_matrix_transpose(s->call.a, s->a, s->type, m, n, false);
    tare_matrix_transpose(columns, s->b, s->type, m, k, false);
    for (int64_t c = 0; c < k; c++)
        memcpy(b + (size_t)(c * most) * size, columns + (size_t)(c * m) * size, (size_t)m * size);
    memset(s->call.order, 0, (size_t)n * sizeof(int)); /* columns may be exchanged */
    if (tare_small_lapack_run(&s->call)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the least squares solution failed");
    for (int64_t c = 0; c < k; c++)
        memcpy(columns + (size_t)(c * n) * size, b + (size_t)(c * most) * size, (size_t)n * size);
    tare_matrix_transpose(s->x, columns, s->type, k, n, false);
    return TARE_OK;
}

static tare_status open_least_squares(struct least_squares *s, struct tare_kernel *kernel) {
    const struct tare_matrices left = tare_matrices_of(&kernel->inputs[0]);
    const struct tare_matrices right = tare_matrices_of(&kernel->inputs[1]);
    struct tare_arena *memory = kernel->scratch;
    TARE_TRY(tare_matrix_open(left.rows, left.columns));
    const int64_t most = left.rows > left.columns ? left.rows : left.columns;
    TARE_TRY(tare_matrix_open(most, right.columns));
    s->m = (int)left.rows, s->n = (int)left.columns, s->k = (int)right.columns;
    s->small = s->m < s->n ? s->m : s->n;
    s->type = tare_matrix_type(kernel->inputs[0].dtype); /* its rounding errors determine the rank */
    if (s->fast) s->type = tare_lapack_is_complex(s->type) ? TARE_LAPACK_Z : TARE_LAPACK_D;
    s->a = tare_matrix_new(memory, s->type, left.rows * left.columns);
    s->b = tare_matrix_new(memory, s->type, left.rows * right.columns);
    s->x = tare_matrix_new(memory, s->type, left.columns * right.columns);
    s->columns = tare_matrix_new(memory, s->type, most * right.columns);
    if (!s->a || !s->b || !s->x || !s->columns) return TARE_NO_MEMORY;
    s->call = s->fast
                  ? (struct tare_lapack_call){ TARE_LAPACK_POTRF, s->type, .m = s->small, .n = s->small, .uplo = 'U' }
                  : (struct tare_lapack_call){ TARE_LAPACK_GELSY, s->type, .m = s->m, .n = s->n, .k = s->k };
    TARE_TRY(tare_lapack_prepare(&s->call, memory));
    if (!s->fast) tare_matrix_add_real(s->call.rcond, s->type, 0, tare_matrix_epsilon(s->type) * s->small);
    return TARE_OK;
}

static tare_status run_least_squares(struct tare_kernel *kernel) {
    struct least_squares s = { .fast = tare_node_bool(kernel->node, "fast", true) };
    if (kernel->inputs[2].elements != 1) return TARE_FAIL(TARE_SHAPE, "l2_regularizer must be a scalar");
    s.l2 = s.fast ? tare_tensor_get_f64(&kernel->inputs[2], 0) : 0;
    if (s.l2 < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "l2_regularizer is %g (expected >= 0)", s.l2);
    TARE_TRY(tare_operand_output(kernel, 0));
    struct tare_tensor *out = &kernel->outputs[0];
    if (out->elements == 0) return TARE_OK;
    if (kernel->inputs[0].elements == 0) {
        memset(out->data, 0, (size_t)out->elements * tare_dtype_size(out->dtype));
        return TARE_OK;
    }
    TARE_TRY(open_least_squares(&s, kernel));
    const int64_t a_size = (int64_t)s.m * s.n, b_size = (int64_t)s.m * s.k, x_size = (int64_t)s.n * s.k;
    for (int64_t i = 0; i < out->elements / x_size; i++) {
        tare_matrix_read(s.a, s.type, &kernel->inputs[0], i * a_size, a_size);
        tare_matrix_read(s.b, s.type, &kernel->inputs[1], i * b_size, b_size);
        TARE_TRY(s.fast ? solve_normal_equations(&s) : solve_by_qr(&s));
        tare_matrix_write(out, i * x_size, s.type, s.x, x_size);
    }
    return TARE_OK;
}

/* ---- tridiagonal systems: superdiagonal (last element unused), diagonal, subdiagonal (first element unused) ---- */

static tare_status infer_tridiagonal_solve(struct tare_infer *infer) {
    int64_t rows, columns;
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    if (rows >= 0 && rows != 3) return TARE_FAIL(TARE_SHAPE, "Expected 3 diagonals got %lld", (long long)rows);
    struct tare_shape left = infer->inputs[0], *out = &infer->outputs[0];
    *out = infer->inputs[1];
    if (out->rank < 0 || left.rank < 0) return TARE_OK;
    if (out->rank < 2 || out->rank != left.rank)
        return TARE_FAIL(TARE_SHAPE, "diagonals have rank %d, rhs %d (expected the same)", left.rank, out->rank);
    left.dims[left.rank - 2] = columns;
    left.dims[left.rank - 1] = out->dims[out->rank - 1];
    return tare_shape_merge(out, out, &left);
}

/* Rows are always exchanged where that is more accurate: without `partial_pivoting` TensorFlow only omits that. */
static tare_status run_tridiagonal_solve(struct tare_kernel *kernel) {
    TARE_TRY(tare_operand_output(kernel, 0));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const struct tare_matrices left = tare_matrices_of(&kernel->inputs[0]);
    const struct tare_matrices right = tare_matrices_of(&kernel->inputs[1]);
    const int64_t n = left.columns, k = right.columns, size = n * k;
    struct tare_lapack_call call = { TARE_LAPACK_GTSV, tare_matrix_type_for(kernel->inputs[0].dtype, n, n), .m = (int)n,
                                     .n = (int)n, .k = (int)k };
    TARE_TRY(tare_matrix_open(n, k));
    TARE_TRY(tare_lapack_prepare(&call, kernel->scratch));
    void *x = tare_matrix_new(kernel->scratch, call.type, size);
    if (!x) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < left.count; i++) {
        tare_matrix_read(call.du, call.type, &kernel->inputs[0], i * 3 * n, n);
        tare_matrix_read(call.d, call.type, &kernel->inputs[0], (i * 3 + 1) * n, n);
        tare_matrix_read(call.dl, call.type, &kernel->inputs[0], (i * 3 + 2) * n, n);
        tare_matrix_load(call.b, call.type, &kernel->inputs[1], i * size, n, k, x);
        if (tare_small_lapack_run(&call)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
        tare_matrix_store(&kernel->outputs[0], i * size, call.type, call.b, n, k, x);
    }
    return TARE_OK;
}

static tare_status infer_tridiagonal_product(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    *out = infer->inputs[3];
    if (out->rank >= 0 && out->rank < 2)
        return TARE_FAIL(TARE_SHAPE, "rhs must have rank >= 2, got rank %d", out->rank);
    for (size_t i = 0; i < 3 && out->rank >= 0; i++) {
        struct tare_shape expected = *out, merged;
        expected.dims[expected.rank - 1] = out->dims[out->rank - 2];
        expected.dims[expected.rank - 2] = 1;
        TARE_TRY(tare_shape_merge(&merged, &infer->inputs[i], &expected));
    }
    return TARE_OK;
}

static tare_status run_tridiagonal_product(struct tare_kernel *kernel) {
    TARE_TRY(tare_operand_output(kernel, 3));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const struct tare_matrices right = tare_matrices_of(&kernel->inputs[3]);
    const int64_t n = right.rows, k = right.columns;
    for (int64_t at = 0; at < kernel->outputs[0].elements; at++) {
        const int64_t row = at / k % n, diagonal = at / k; /* row in its matrix, row in the batch */
        tare_complex sum =
            tare_tensor_get_c128(&kernel->inputs[1], diagonal) * tare_tensor_get_c128(&kernel->inputs[3], at);
        if (row + 1 < n)
            sum +=
                tare_tensor_get_c128(&kernel->inputs[0], diagonal) * tare_tensor_get_c128(&kernel->inputs[3], at + k);
        if (row > 0)
            sum +=
                tare_tensor_get_c128(&kernel->inputs[2], diagonal) * tare_tensor_get_c128(&kernel->inputs[3], at - k);
        tare_tensor_set_c128(&kernel->outputs[0], at, sum);
    }
    return TARE_OK;
}

#define TYPES "T: {double, float, half, complex64, complex128}"
#define PLAIN "T: {double, float}"
#define SYSTEM(op, spec, kind)                                                                                         \
    {                                                                                                                  \
        .name = op, .inputs = "matrix: T, rhs: T", .outputs = "output: T", .attrs = spec, .infer = infer_solve,        \
        .run = run_solve, .aux = &kind                                                                                 \
    }
#define DETERMINANT(op, out, types)                                                                                    \
    {                                                                                                                  \
        .name = op, .inputs = "input: T", .outputs = out, .attrs = types, .infer = infer_determinant,                  \
        .run = run_determinant                                                                                         \
    }
#define LEAST_SQUARES(op, types)                                                                                       \
    {                                                                                                                  \
        .name = op, .inputs = "matrix: T, rhs: T, l2_regularizer: double", .outputs = "output: T",                     \
        .attrs = types "; fast: bool = true", .infer = infer_least_squares, .run = run_least_squares                   \
    }

const struct tare_op tare_ops_solve[] = {
    DETERMINANT("MatrixDeterminant", "output: T", "T: {half, float, double, complex64, complex128}"),
    DETERMINANT("LogMatrixDeterminant", "sign: T, log_abs_determinant: T",
                "T: {half, float, double, complex64, complex128}"),
    DETERMINANT("BatchMatrixDeterminant", "output: T", "T: {float, double, complex64, complex128}"),
    { .name = "Lu",
      .inputs = "input: T",
      .outputs = "lu: T, p: output_idx_type",
      .attrs = TYPES "; output_idx_type: {int32, int64} = DT_INT32",
      .infer = infer_lu,
      .run = run_lu },
    SYSTEM("MatrixSolve", "adjoint: bool = false; " TYPES, dense),
    SYSTEM("BatchMatrixSolve", "adjoint: bool = false; " PLAIN, dense),
    SYSTEM("MatrixTriangularSolve",
           "lower: bool = true; adjoint: bool = false; T: {bfloat16, double, float, half, complex64, complex128}",
           triangular),
    SYSTEM("BatchMatrixTriangularSolve", "lower: bool = true; adjoint: bool = false; " PLAIN, old_triangular),
    SYSTEM("BandedTriangularSolve", "lower: bool = true; adjoint: bool = false; " TYPES, banded),
    LEAST_SQUARES("MatrixSolveLs", TYPES),
    LEAST_SQUARES("BatchMatrixSolveLs", PLAIN),
    { .name = "TridiagonalSolve",
      .inputs = "diagonals: T, rhs: T",
      .outputs = "output: T",
      .attrs = "partial_pivoting: bool = true; perturb_singular: bool = false; T: {double, float, complex64, "
               "complex128}",
      .infer = infer_tridiagonal_solve,
      .run = run_tridiagonal_solve },
    { .name = "TridiagonalMatMul",
      .inputs = "superdiag: T, maindiag: T, subdiag: T, rhs: T",
      .outputs = "output: T",
      .attrs = "T: {double, float, complex64, complex128}",
      .infer = infer_tridiagonal_product,
      .run = run_tridiagonal_product },
    { 0 },
};
