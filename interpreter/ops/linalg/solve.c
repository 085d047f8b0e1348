/* Determinants, LU, linear systems and least squares by LAPACK in the tensor's own precision (half and bfloat16 in
 * float; small matrices and normal equations in double). */
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/linalg/product.h"
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

/* The determinant; or its sign (phase) and the logarithm of its magnitude. */
static void put_determinant(struct tare_kernel *kernel, int64_t at, const struct tare_lapack_call *lu) {
    const bool by_logarithm = kernel->n_outputs > 1;
    tare_complex product = 1;
    double logarithm = 0;
    for (int64_t i = 0; i < lu->n; i++) {
        const tare_complex x = factor_at(lu, i);
        product *= !by_logarithm ? x : x == 0 ? 0 : x / cabs(x);
        if (by_logarithm) logarithm += log(cabs(x));
    }
    tare_tensor_set_c128(&kernel->outputs[0], at, product);
    if (by_logarithm) tare_tensor_set_f64(&kernel->outputs[1], at, logarithm);
}

static tare_status run_determinant(struct tare_kernel *kernel) {
    struct tare_matrix_batch b = { .call = { .routine = TARE_LAPACK_GETRF } };
    TARE_TRY(tare_matrix_open_batch(&b, kernel));
    for (int64_t i = 0; i < b.count; i++) {
        tare_matrix_next(&b, i);
        tare_small_lapack_run(&b.call); /* of the transpose: the same determinant */
        put_determinant(kernel, i, &b.call);
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
    tare_matrix_exchange(lu_at(lu, 0, begin), lu->type, 1, end - begin, lu->n, lu->pivots, first, last, false);
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
    struct tare_matrix_batch b = { .call = { .routine = TARE_LAPACK_GETRF } };
    struct tare_lapack_call *lu = &b.call;
    TARE_TRY(tare_matrix_open_batch(&b, kernel));
    int *order = TARE_NEW_ARRAY(kernel->scratch, int, (size_t)lu->n + 1);
    if (!order) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < b.count; i++) {
        tare_matrix_next_by_columns(&b, i);
        if (!tare_small_lapack_try(lu))
            lu->info = tare_lapack_is_complex(lu->type) ? !factor_complex(lu, 0, lu->n) : tare_lapack_run(lu);
        if (lu->info) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
        tare_matrix_order(order, lu->n, lu->pivots, lu->n);
        for (int64_t k = 0; k < lu->n; k++)
            tare_tensor_set_i64(&kernel->outputs[1], i * lu->n + k, order[k]);
        tare_matrix_store(&kernel->outputs[0], i * b.size, lu->type, lu->a, lu->n, lu->n, false, b.buffer);
    }
    return TARE_OK;
}

/* ---- A x = b ---- */

/* A row's aux. */
struct solver {
    bool triangular, banded, broadcast, least_squares;
};
static const struct solver dense = { 0 }, triangular = { .triangular = true, .broadcast = true },
                           old_triangular = { .triangular = true }, least_squares = { .least_squares = true },
                           banded = { .triangular = true, .banded = true, .broadcast = true };

/* The dimensions before the last two of both inputs are equal or broadcast. */
static tare_status infer_solve(struct tare_infer *infer) {
    const struct solver *solver = infer->node->def->row->aux;
    struct tare_shape *out = &infer->outputs[0], a = infer->inputs[0], b = infer->inputs[1];
    int64_t rows, columns, right_rows, right_columns;
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    TARE_TRY(tare_matrix_infer_dims(&right_rows, &right_columns, infer, 1));
    if (!solver->banded && !solver->least_squares) {
        if (rows >= 0 && columns >= 0 && rows != columns)
            return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)", (long long)rows,
                             (long long)columns);
        columns = columns < 0 ? rows : columns;
    }
    const int64_t left = solver->least_squares ? rows : columns;
    if (left >= 0 && right_rows >= 0 && left != right_rows)
        return TARE_FAIL(TARE_SHAPE, "Input matrix and rhs are incompatible: %lld %s and %lld rows", (long long)left,
                         solver->least_squares ? "rows" : "columns", (long long)right_rows);
    if (a.rank < 0 || b.rank < 0) return TARE_OK;
    a.rank -= 2, b.rank -= 2;
    TARE_TRY(solver->broadcast ? tare_shape_broadcast(out, &a, &b) : tare_shape_merge(out, &a, &b));
    if (out->rank > TARE_MAX_RANK - 2) return TARE_FAIL(TARE_SHAPE, "the result has too many dims");
    out->dims[out->rank++] = columns < 0 && !solver->least_squares ? right_rows : columns;
    out->dims[out->rank++] = right_columns;
    return TARE_OK;
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

/* Systems of n equations; x is row-major. */
struct system {
    const struct solver *solver;
    bool lower, adjoint;
    struct tare_matrices left, right;
    struct tare_lapack_call lu; /* its `a` is also that of a triangular system */
    void *bands, *x;
};

/* False: singular. Memory contains Aᵀ and xᵀ for LAPACK: A x = b is xᵀ·Aᵀ = bᵀ, and Aᴴ x = b is xᵀ·(Aᵀ)ᴴ = bᵀ. */
static bool solve_triangular(struct system *s) {
    const char form[] = { 'R', s->lower ? 'U' : 'L', s->adjoint ? 'C' : 'N', 'N' };
    if (tare_matrix_is_singular(s->lu.a, s->lu.type, s->lu.n)) return false;
    tare_small_trsm(s->lu.type, form, (int)s->right.columns, s->lu.n, s->lu.a, s->x);
    return true;
}

/* The matrix and the right-hand sides begin at the elements `left` and `right` of the inputs. */
static tare_status solve_one(struct system *s, const struct tare_tensor *inputs, int64_t left, int64_t right) {
    const int64_t n = s->lu.n, size = s->left.rows * n, width = n * s->right.columns;
    const enum tare_lapack_type type = s->lu.type;
    tare_matrix_read(s->solver->banded ? s->bands : s->lu.a, type, &inputs[0], left, size);
    tare_matrix_read(s->x, type, &inputs[1], right, width);
    if (s->solver->banded) expand_bands(s->lu.a, s->bands, s->left.rows, n, s->lower, tare_lapack_size(type));
    if (s->solver->triangular ? solve_triangular(s) : tare_matrix_solve(&s->lu, s->x, s->right.columns, s->adjoint))
        return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix is not invertible.");
}

static tare_status open_system(struct system *s, struct tare_kernel *kernel) {
    s->left = tare_matrices_of(&kernel->inputs[0]);
    s->right = tare_matrices_of(&kernel->inputs[1]);
    const int64_t n = s->left.columns;
    if (s->solver->banded && s->left.rows < 1) return TARE_FAIL(TARE_SHAPE, "bands must have at least one row");
    if (s->solver->banded && s->left.rows > n)
        return TARE_FAIL(TARE_SHAPE, "the number of bands is %lld (expected at most the %lld columns)",
                         (long long)s->left.rows, (long long)n);
    TARE_TRY(tare_matrix_open(n, n));
    TARE_TRY(tare_matrix_open(n, s->right.columns));
    s->lu = (struct tare_lapack_call){ TARE_LAPACK_GETRF, tare_matrix_type_for(kernel->inputs[0].dtype, n, n),
                                       .m = (int)n, .n = (int)n };
    s->bands = tare_matrix_new(kernel->scratch, s->lu.type, s->solver->banded ? s->left.rows * n : 0);
    s->x = tare_matrix_new(kernel->scratch, s->lu.type, n * s->right.columns);
    return s->bands && s->x ? tare_lapack_prepare(&s->lu, kernel->scratch) : TARE_NO_MEMORY;
}

static tare_status run_solve(struct tare_kernel *kernel) {
    struct system s = { .solver = kernel->op->aux,
                        .lower = tare_node_bool(kernel->node, "lower", true),
                        .adjoint = tare_node_bool(kernel->node, "adjoint", false) };
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_operand_output(kernel, 0));
    if (out->elements == 0) return TARE_OK;
    TARE_TRY(open_system(&s, kernel));
    const int64_t size = s.right.rows * s.right.columns, count = out->elements / size;
    const struct tare_shape *left = &kernel->inputs[0].shape, *right = &kernel->inputs[1].shape;
    const int64_t *a_first = tare_product_offsets(kernel->scratch, count, &out->shape, left);
    const int64_t *b_first = tare_product_offsets(kernel->scratch, count, &out->shape, right);
    if (!a_first || !b_first) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        TARE_TRY(solve_one(&s, kernel->inputs, a_first[i], b_first[i]));
        tare_matrix_write(out, i * size, s.lu.type, s.x, size);
    }
    return TARE_OK;
}

/* ---- least squares: with `fast` by the normal equations and their Cholesky factor, as in TensorFlow, (AᴴA + l·1)⁻¹ Aᴴ
 * b or Aᴴ (AAᴴ + l·1)⁻¹ b for more columns than rows, in double because they square the condition number; otherwise by
 * a complete orthogonal factorization in the tensor's own precision ---- */

/* Memory contains Aᵀ [n, m], bᵀ [k, m] and xᵀ [k, n] for LAPACK. */
struct least_squares {
    int m, n, k, small, most; /* A is [m, n], b [m, k]; small and most are those of m and n */
    bool fast;
    double l2;
    enum tare_lapack_type type;
    void *a, *b, *x;              /* b and x have `most` rows, of which m and n are used */
    struct tare_lapack_call call; /* potrf of the normal equations, or gelsy of A and b, column-major */
};

/* xᵀ from bᵀ. The factor of the Hermitian matrix, in memory U of Gᵀ = UᴴU, solves y Gᵀ = c. */
static tare_status solve_normal_equations(struct least_squares *s) {
    const int m = s->m, n = s->n, k = s->k, small = s->small;
    const enum tare_lapack_type type = s->type;
    void *gram = s->call.a, *y = m >= n ? s->x : s->b;
    tare_small_gemm(type, m >= n ? "NC" : "CN", small, small, s->most, s->a, s->a, gram);
    for (int64_t i = 0; i < small; i++)
        tare_matrix_set(gram, type, i * small + i, tare_matrix_at(gram, type, i * small + i) + s->l2);
    if (m >= n) tare_small_gemm(type, "NC", k, n, m, s->b, s->a, s->x);
    if (tare_small_lapack_run(&s->call) || tare_matrix_is_singular(gram, type, small))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix was rank deficient or ill-conditioned.");
    tare_small_trsm(type, "RUNN", k, small, gram, y);
    tare_small_trsm(type, "RUCN", k, small, gram, y);
    if (m < n) tare_small_gemm(type, "NC", k, n, m, s->b, s->a, s->x);
    return TARE_OK;
}

/* xᵀ as the solution of least norm, which exists for every rank. */
static tare_status solve_by_qr(struct least_squares *s) {
    tare_matrix_transpose(s->call.a, s->a, s->type, s->m, s->n);
    tare_matrix_transpose(s->call.b, s->b, s->type, s->most, s->k);
    memset(s->call.order, 0, (size_t)s->n * sizeof(int)); /* columns may be exchanged */
    if (tare_small_lapack_run(&s->call)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the least squares solution failed");
    tare_matrix_transpose(s->x, s->call.b, s->type, s->k, s->most);
    return TARE_OK;
}

static tare_status open_least_squares(struct least_squares *s, struct tare_kernel *kernel) {
    const struct tare_matrices left = tare_matrices_of(&kernel->inputs[0]);
    const struct tare_matrices right = tare_matrices_of(&kernel->inputs[1]);
    const int64_t most = left.rows > left.columns ? left.rows : left.columns;
    struct tare_arena *memory = kernel->scratch;
    TARE_TRY(tare_matrix_open(left.rows, left.columns));
    TARE_TRY(tare_matrix_open(most, right.columns));
    s->m = (int)left.rows, s->n = (int)left.columns, s->k = (int)right.columns;
    s->small = s->m < s->n ? s->m : s->n, s->most = (int)most;
    s->type = tare_matrix_type(kernel->inputs[0].dtype); /* its rounding errors determine the rank */
    if (s->fast) s->type = tare_lapack_is_complex(s->type) ? TARE_LAPACK_Z : TARE_LAPACK_D;
    s->a = tare_matrix_new(memory, s->type, left.rows * left.columns);
    s->b = tare_matrix_new(memory, s->type, most * right.columns);
    s->x = tare_matrix_new(memory, s->type, most * right.columns);
    if (!s->a || !s->b || !s->x) return TARE_NO_MEMORY;
    s->call = s->fast
                  ? (struct tare_lapack_call){ TARE_LAPACK_POTRF, s->type, .m = s->small, .n = s->small, .uplo = 'U' }
                  : (struct tare_lapack_call){ TARE_LAPACK_GELSY, s->type, .m = s->m, .n = s->n, .k = s->k };
    TARE_TRY(tare_lapack_prepare(&s->call, memory));
    if (!s->fast) tare_matrix_set(s->call.rcond, s->type, 0, tare_matrix_epsilon(s->type) * s->small);
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
    struct tare_tensor *out = &kernel->outputs[0];
    if (out->elements == 0) return TARE_OK;
    const struct tare_matrices matrix = tare_matrices_of(out);
    const int64_t n = matrix.rows, k = matrix.columns, size = n * k;
    struct tare_lapack_call call = { TARE_LAPACK_GTSV, tare_matrix_type_for(out->dtype, n, n), .m = (int)n, .n = (int)n,
                                     .k = (int)k };
    TARE_TRY(tare_matrix_open(n, k));
    TARE_TRY(tare_lapack_prepare(&call, kernel->scratch));
    void *x = tare_matrix_new(kernel->scratch, call.type, size), *diagonals[] = { call.du, call.d, call.dl };
    if (!x) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < out->elements / size; i++) {
        for (int64_t r = 0; r < 3; r++)
            tare_matrix_read(diagonals[r], call.type, &kernel->inputs[0], (i * 3 + r) * n, n);
        tare_matrix_load(call.b, call.type, &kernel->inputs[1], i * size, n, k, x);
        if (tare_lapack_run(&call)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
        tare_matrix_store(out, i * size, call.type, call.b, n, k, false, x);
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
        .attrs = types "; fast: bool = true", .infer = infer_solve, .run = run_least_squares, .aux = &least_squares    \
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
