/* Determinants, LU, linear systems and least squares by LAPACK in the tensor's own precision (half and bfloat16 in
 * float; small matrices and normal equations in double). */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/linalg/product.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- determinants ---- */

/* Element i of the diagonal of U, with the sign that exchanging rows contributes. */
static tare_complex factor_at(const struct tare_lapack_call *lu, int64_t i) {
    const tare_complex x = tare_lapack_at(lu->a, lu->dtype, i * (lu->n + 1));
    return ((const int *)lu->pivots)[i] == i + 1 ? x : -x;
}

/* The determinant, which the transpose has, too; or its sign (phase) and the logarithm of its magnitude. */
static tare_status run_determinant(struct tare_matrix_batch *b, int64_t at) {
    const bool by_logarithm = b->kernel->n_outputs > 1;
    tare_complex product = 1;
    double logarithm = 0;
    tare_lapack_run(&b->call);
    for (int64_t i = 0; i < b->call.n; i++) {
        const tare_complex x = factor_at(&b->call, i);
        product *= !by_logarithm ? x : x == 0 ? 0 : x / cabs(x);
        if (by_logarithm) logarithm += tare_log(cabs(x));
    }
    tare_tensor_set_c128(&b->kernel->outputs[0], at, product);
    if (by_logarithm) tare_tensor_set_f64(&b->kernel->outputs[1], at, logarithm);
    return TARE_OK;
}

static const struct tare_matrix_op determinant = { TARE_LAPACK_GETRF, "", .run = run_determinant },
                                   log_determinant = { TARE_LAPACK_GETRF, " ", .run = run_determinant };

/* ---- LU ---- */

/* LU of a complex matrix: LAPACK chooses complex pivots by |re| + |im|, TensorFlow by the modulus, which yields another
 * P; so the recursion of getrf is repeated here with the other pivots. */

static char *lu_at(const struct tare_lapack_call *lu, int row, int column) {
    return (char *)lu->a + ((size_t)column * (size_t)lu->n + (size_t)row) * tare_dtype_size(lu->dtype);
}

/* Finds the pivot of a column, exchanges its row and divides what is below it. False: all are zero. */
static bool factor_column(const struct tare_lapack_call *lu, int column) {
    char *x = lu_at(lu, 0, column);
    int pivot = column;
    for (int row = column + 1; row < lu->n; row++)
        if (cabs(tare_lapack_at(x, lu->dtype, row)) > cabs(tare_lapack_at(x, lu->dtype, pivot))) pivot = row;
    ((int *)lu->pivots)[column] = pivot + 1;
    if (pivot != column) tare_lapack_swap(lu->dtype, lu->n, lu_at(lu, column, 0), lu_at(lu, pivot, 0), lu->n);
    const tare_complex divisor = tare_lapack_at(x, lu->dtype, column);
    for (int row = column + 1; row < lu->n && divisor != 0; row++)
        tare_lapack_set(x, lu->dtype, row, tare_lapack_at(x, lu->dtype, row) / divisor);
    return divisor != 0;
}

/* Factors `count` columns from `first` on, from the row of that number on: the left half, its effect on the right half,
 * the right half. */
static bool factor_complex(const struct tare_lapack_call *lu, int first, int count) {
    if (count == 1) return factor_column(lu, first);
    const int n = lu->n, left = count / 2, right = count - left, middle = first + left;
    if (!factor_complex(lu, first, left)) return false;
    tare_lapack_trsm(lu->dtype, "LLNU", left, right, lu_at(lu, first, first), n, lu_at(lu, first, middle), n);
    tare_lapack_gemm(lu->dtype, "NN", n - middle, right, left, lu_at(lu, middle, first), n, lu_at(lu, first, middle), n,
                     -1, lu_at(lu, middle, middle), n);
    return factor_complex(lu, middle, right);
}

static tare_status run_lu(struct tare_matrix_batch *b, int64_t i) {
    struct tare_lapack_call *lu = &b->call;
    const bool fails = tare_dtype_is_complex(lu->dtype) ? !factor_complex(lu, 0, lu->n) : tare_lapack_run(lu);
    if (fails) return tare_matrix_not_invertible("Input");
    tare_matrix_order(lu->order, lu->n, lu->pivots, lu->n);
    for (int64_t k = 0; k < lu->n; k++)
        tare_tensor_set_i64(&b->kernel->outputs[1], i * lu->n + k, ((const int *)lu->order)[k]);
    tare_matrix_put_columns(b, 0, i * b->size, lu->a, lu->n, lu->n, false);
    return TARE_OK;
}

static const struct tare_matrix_op lu = { TARE_LAPACK_GETRF, "nn n", .arrays = "order", .by_columns = true,
                                          .run = run_lu };

/* ---- A x = b: systems of equations, and least squares ---- */

struct system;

/* A row's aux. */
struct solver {
    enum { SQUARE, BANDS, THREE_DIAGONALS, ANY } form; /* of A */
    enum tare_lapack_routine routine;
    tare_status (*solve)(struct system *system);
    bool broadcast; /* the dimensions before the last two broadcast; otherwise they must be equal */
};

/* Checks A, or its diagonals in rows; unknown dimensions of a square one are set. */
static tare_status infer_matrix(struct tare_matrices *a, const struct solver *solver) {
    const long long rows = a->rows, columns = a->columns;
    if (solver->form == SQUARE) return tare_matrix_infer_square(a);
    if (solver->form == THREE_DIAGONALS && rows >= 0 && rows != 3)
        return TARE_FAIL(TARE_SHAPE, "Expected 3 diagonals got %lld", rows);
    if (solver->form == BANDS && rows >= 0 && columns > 0 && (rows < 1 || rows > columns))
        return TARE_FAIL(TARE_SHAPE, "the number of bands is %lld (expected 1 to %lld, the columns)", rows, columns);
    return TARE_OK;
}

static tare_status infer_solve(struct tare_infer *infer) {
    const struct solver *solver = infer->node->def->row->aux;
    const bool by_rows = solver->form == ANY;
    struct tare_shape *out = &infer->outputs[0], a = infer->inputs[0], b = infer->inputs[1];
    struct tare_matrices left = tare_matrices_of(&a), right = tare_matrices_of(&b);
    for (size_t i = 0; i < 2; i++)
        if (infer->inputs[i].rank >= 0 && infer->inputs[i].rank < 2)
            return TARE_FAIL(TARE_SHAPE, "input %zu must have rank >= 2, got rank %d", i, infer->inputs[i].rank);
    TARE_TRY(infer_matrix(&left, solver));
    const int64_t equations = by_rows ? left.rows : left.columns;
    if (equations >= 0 && right.rows >= 0 && equations != right.rows)
        return TARE_FAIL(TARE_SHAPE, "Input matrix and rhs are incompatible: %lld %s and %lld rows",
                         (long long)equations, by_rows ? "rows" : "columns", (long long)right.rows);
    if (a.rank < 0 || b.rank < 0) return TARE_OK;
    a.rank -= 2, b.rank -= 2;
    TARE_TRY(solver->broadcast ? tare_shape_broadcast(out, &a, &b) : tare_shape_merge(out, &a, &b));
    if (out->rank > TARE_MAX_RANK - 2) return TARE_FAIL(TARE_SHAPE, "the result has too many dims");
    out->dims[out->rank++] = left.columns < 0 && !by_rows ? right.rows : left.columns;
    out->dims[out->rank++] = right.columns;
    return TARE_OK;
}

/* A batch of systems. Matrices are row-major, so LAPACK sees aᵀ, bᵀ and xᵀ. */
struct system {
    const struct solver *solver;
    bool lower, adjoint;
    double l2;
    int m, n, k, most; /* a is [m, n], b [n, k] or for least squares [m, k], x [n, k]; most: of m and n */
    int dtype;
    void *a, *b, *x; /* b and x have room for [most, k]; x is b except by the normal equations */
    struct tare_lapack_call call;
};

static tare_status solve_dense(struct system *s) {
    return tare_matrix_solve(&s->call, s->x, s->k, s->adjoint) ? TARE_OK : tare_matrix_not_invertible("Input matrix");
}

/* A x = b is xᵀ·Aᵀ = bᵀ, and Aᴴ x = b is xᵀ·(Aᵀ)ᴴ = bᵀ. */
static tare_status solve_triangular(struct system *s) {
    const char form[] = { 'R', s->lower ? 'U' : 'L', s->adjoint ? 'C' : 'N', 'N' };
    if (tare_matrix_is_singular(s->call.a, s->dtype, s->n)) return tare_matrix_not_invertible("Input matrix");
    tare_lapack_trsm(s->dtype, form, s->k, s->n, s->call.a, s->n, s->x, s->k);
    return TARE_OK;
}

/* Expands a triangular matrix stored as its diagonals: the main one is the first row of a lower matrix, the last of an
 * upper one. */
static tare_status solve_banded(struct system *s) {
    const size_t size = tare_dtype_size(s->dtype);
    const int64_t n = s->n;
    memset(s->call.a, 0, (size_t)(n * n) * size);
    for (int64_t band = 0; band < s->m; band++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t off = s->lower ? band : s->m - 1 - band, column = s->lower ? j - off : j + off;
            if (column >= 0 && column < n)
                memcpy((char *)s->call.a + (size_t)(j * n + column) * size,
                       (const char *)s->a + (size_t)(band * n + j) * size, size);
        }
    return solve_triangular(s);
}

/* Rows are always exchanged where that is more accurate: without `partial_pivoting` TensorFlow only omits that. */
static tare_status solve_tridiagonal(struct system *s) {
    const size_t size = tare_dtype_size(s->dtype);
    tare_transpose(s->call.b, s->b, size, s->n, s->k);
    if (tare_lapack_run(&s->call)) return tare_matrix_not_invertible("Input");
    tare_transpose(s->x, s->call.b, size, s->k, s->n);
    return TARE_OK;
}

/* As TensorFlow: (AᴴA + l·1)⁻¹ Aᴴ b, or Aᴴ (AAᴴ + l·1)⁻¹ b for more columns than rows, in double because the normal
 * equations square the condition number. The factor of the Hermitian matrix, in memory U of Gᵀ = UᴴU, solves y Gᵀ = c.
 */
static tare_status solve_normal_equations(struct system *s) {
    const int m = s->m, n = s->n, k = s->k, small = s->call.n, dtype = s->dtype;
    void *gram = s->call.a, *y = m >= n ? s->x : s->b;
    tare_lapack_gemm(dtype, m >= n ? "NC" : "CN", small, small, s->most, s->a, n, s->a, n, 1, gram, small);
    for (int64_t i = 0; i < small; i++)
        tare_lapack_set(gram, dtype, i * small + i, tare_lapack_at(gram, dtype, i * small + i) + s->l2);
    if (m >= n) tare_lapack_gemm(dtype, "NC", k, n, m, s->b, k, s->a, n, 1, s->x, k);
    if (tare_lapack_run(&s->call) || tare_matrix_is_singular(gram, dtype, small))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix was rank deficient or ill-conditioned.");
    tare_lapack_trsm(dtype, "RUNN", k, small, gram, small, y, k);
    tare_lapack_trsm(dtype, "RUCN", k, small, gram, small, y, k);
    if (m < n) tare_lapack_gemm(dtype, "NC", k, n, m, s->b, k, s->a, n, 1, s->x, k);
    return TARE_OK;
}

/* The solution of least norm, which exists for every rank, by a complete orthogonal factorization. */
static tare_status solve_by_qr(struct system *s) {
    const size_t size = tare_dtype_size(s->dtype);
    tare_transpose(s->call.a, s->a, size, s->m, s->n);
    tare_transpose(s->call.b, s->b, size, s->most, s->k);
    memset(s->call.order, 0, (size_t)s->n * sizeof(int)); /* columns may be exchanged */
    if (tare_lapack_run(&s->call)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the least squares solution failed");
    tare_transpose(s->x, s->call.b, size, s->k, s->most);
    return TARE_OK;
}

static const struct solver dense = { SQUARE, TARE_LAPACK_GETRF, solve_dense, false },
                           triangular = { SQUARE, TARE_LAPACK_TRSM, solve_triangular, true },
                           old_triangular = { SQUARE, TARE_LAPACK_TRSM, solve_triangular, false },
                           banded = { BANDS, TARE_LAPACK_TRSM, solve_banded, true },
                           tridiagonal = { THREE_DIAGONALS, TARE_LAPACK_GTSV, solve_tridiagonal, false },
                           normal_equations = { ANY, TARE_LAPACK_POTRF, solve_normal_equations, false },
                           least_squares = { ANY, TARE_LAPACK_GELSY, solve_by_qr, false };

/* Prepares the call for A: in place where it is square, or its superdiagonal, diagonal and subdiagonal. */
static tare_status prepare(struct system *s, struct tare_arena *memory) {
    const size_t line = (size_t)s->n * tare_dtype_size(s->dtype);
    const int small = s->m < s->n ? s->m : s->n;
    struct tare_lapack_call *c = &s->call;
    *c = (struct tare_lapack_call){ s->solver->routine, s->dtype, s->n, s->n, s->k, .rows = s->n, .uplo = 'U' };
    if (c->routine == TARE_LAPACK_TRSM) c->b = s->b;
    if (s->solver->form == SQUARE) c->a = s->a;
    if (s->solver->form == THREE_DIAGONALS) c->du = s->a, c->d = (char *)s->a + line, c->dl = (char *)s->a + 2 * line;
    if (s->solver->form == ANY) c->m = s->m, c->rows = s->most;
    if (c->routine == TARE_LAPACK_POTRF) c->m = c->n = small;
    TARE_TRY(tare_lapack_prepare(c, memory));
    if (c->rcond)
        tare_lapack_set(c->rcond, s->dtype, 0,
                        small * (tare_lapack_real(s->dtype) == TARE_DT_FLOAT ? (double)FLT_EPSILON : DBL_EPSILON));
    return TARE_OK;
}

static tare_status open_system(struct system *s, struct tare_kernel *kernel) {
    const struct tare_matrices left = tare_matrices_of(&kernel->inputs[0].shape);
    const struct tare_matrices right = tare_matrices_of(&kernel->inputs[1].shape);
    const int64_t most = left.rows > left.columns ? left.rows : left.columns;
    const int dtype = kernel->inputs[0].dtype;
    TARE_TRY(tare_matrix_open(most, most > right.columns ? most : right.columns));
    s->m = (int)left.rows, s->n = (int)left.columns, s->k = (int)right.columns, s->most = (int)most;
    s->dtype = tare_matrix_dtype_for(dtype, left.columns, left.columns);
    if (s->solver == &normal_equations) s->dtype = tare_matrix_dtype_for(dtype, 1, 1);
    if (s->solver == &least_squares) s->dtype = tare_matrix_dtype(dtype);
    s->a = tare_lapack_new(kernel->scratch, s->dtype, left.rows * left.columns);
    s->b = tare_lapack_new(kernel->scratch, s->dtype, most * right.columns);
    s->x = s->solver == &normal_equations ? tare_lapack_new(kernel->scratch, s->dtype, most * right.columns) : s->b;
    return s->a && s->b && s->x ? prepare(s, kernel->scratch) : TARE_NO_MEMORY;
}

static tare_status read_options(struct system *s, const struct tare_kernel *kernel) {
    s->solver = kernel->op->aux;
    s->lower = tare_node_bool(kernel->node, "lower", true);
    s->adjoint = tare_node_bool(kernel->node, "adjoint", false);
    if (s->solver->form != ANY) return TARE_OK;
    if (kernel->inputs[2].elements != 1) return TARE_FAIL(TARE_SHAPE, "l2_regularizer must be a scalar");
    if (!tare_node_bool(kernel->node, "fast", true)) return TARE_OK;
    s->solver = &normal_equations;
    s->l2 = tare_tensor_get_f64(&kernel->inputs[2], 0);
    return s->l2 < 0 ? TARE_FAIL(TARE_INVALID_ARGUMENT, "l2_regularizer is %g (expected >= 0)", s->l2) : TARE_OK;
}

static tare_status run_solve(struct tare_kernel *kernel) {
    struct system s = { 0 };
    struct tare_tensor *out = &kernel->outputs[0];
    const struct tare_tensor *a = &kernel->inputs[0], *b = &kernel->inputs[1];
    TARE_TRY(read_options(&s, kernel));
    TARE_TRY(tare_operand_output(kernel, 0));
    if (out->elements == 0) return TARE_OK;
    if (a->elements == 0) { /* no equations */
        memset(out->data, 0, (size_t)out->elements * tare_dtype_size(out->dtype));
        return TARE_OK;
    }
    TARE_TRY(open_system(&s, kernel));
    const struct tare_matrices right = tare_matrices_of(&b->shape);
    const int64_t size = (int64_t)s.n * s.k, count = out->elements / size;
    const int64_t *a_first = tare_product_offsets(kernel->scratch, count, &out->shape, &a->shape);
    const int64_t *b_first = tare_product_offsets(kernel->scratch, count, &out->shape, &b->shape);
    if (!a_first || !b_first) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        tare_matrix_read(s.a, s.dtype, a, a_first[i], (int64_t)s.m * s.n);
        tare_matrix_read(s.b, s.dtype, b, b_first[i], right.rows * right.columns);
        TARE_TRY(s.solver->solve(&s));
        tare_matrix_write(out, i * size, s.dtype, s.x, size);
    }
    return TARE_OK;
}

/* ---- product with a tridiagonal matrix ---- */

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
    const struct tare_matrices right = tare_matrices_of(&kernel->inputs[3].shape);
    const int64_t n = right.rows, k = right.columns;
    for (int64_t at = 0; at < kernel->outputs[0].elements; at++) {
        const int64_t row = at / k % n;
        tare_complex sum = 0;
        for (int d = 0; d < 3; d++) { /* superdiagonal, diagonal, subdiagonal */
            const int64_t other = row + 1 - d;
            if (other >= 0 && other < n)
                sum += tare_tensor_get_c128(&kernel->inputs[d], at / k) *
                       tare_tensor_get_c128(&kernel->inputs[3], at + (1 - d) * k);
        }
        tare_tensor_set_c128(&kernel->outputs[0], at, sum);
    }
    return TARE_OK;
}

#define SYSTEM(op, kind)                                                                                               \
    { .name = op, .infer = infer_solve, .run = run_solve, .aux = &kind }

/* In the order of TensorFlow's registration, which differs from TARE_MATRIX_TYPES. */

const struct tare_op tare_ops_solve[] = {
    TARE_MATRIX_OP("MatrixDeterminant", determinant),
    TARE_MATRIX_OP("LogMatrixDeterminant", log_determinant),
    TARE_MATRIX_OP("BatchMatrixDeterminant", determinant),
    TARE_MATRIX_OP("Lu", lu),
    SYSTEM("MatrixSolve", dense),
    SYSTEM("BatchMatrixSolve", dense),
    SYSTEM("MatrixTriangularSolve", triangular),
    SYSTEM("BatchMatrixTriangularSolve", old_triangular),
    SYSTEM("BandedTriangularSolve", banded),
    SYSTEM("MatrixSolveLs", least_squares),
    SYSTEM("BatchMatrixSolveLs", least_squares),
    SYSTEM("TridiagonalSolve", tridiagonal),
    { .name = "TridiagonalMatMul", .infer = infer_tridiagonal_product, .run = run_tridiagonal_product },
    { 0 },
};
