/* Determinants, LU and linear systems by LAPACK in the tensor's own precision (half and bfloat16 in float); least
 * squares through the normal equations and tridiagonal systems in complex double, rounded once. */
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

/* The determinant of one factored matrix, or its sign (phase) and the logarithm of its magnitude. */
static void put_determinant(struct tare_kernel *kernel, int64_t at, const void *lu, const int *pivots, int64_t n) {
    const enum tare_lapack_type type = tare_matrix_type(kernel->inputs[0].dtype);
    tare_complex product = 1, phase = 1;
    double logarithm = 0;
    for (int64_t i = 0; i < n; i++) {
        const tare_complex x = tare_matrix_at(lu, type, i * n + i), factor = pivots[i] == i + 1 ? x : -x;
        product *= factor;
        phase *= x == 0 ? 0 : factor / cabs(x);
        logarithm += log(cabs(x));
    }
    tare_tensor_set_c128(&kernel->outputs[0], at, kernel->n_outputs > 1 ? phase : product);
    if (kernel->n_outputs > 1) tare_tensor_set_f64(&kernel->outputs[1], at, logarithm);
}

static tare_status run_determinant(struct tare_kernel *kernel) {
    const enum tare_lapack_type type = tare_matrix_type(kernel->inputs[0].dtype);
    struct tare_matrices m;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_matrices_of(&m, &kernel->inputs[0], "input"));
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[0].dtype, &shapes[i]));
    const int64_t n = m.rows;
    TARE_TRY(tare_matrix_open(n, n));
    void *a = tare_matrix_new(kernel->scratch, type, n * n);
    int *pivots = TARE_NEW_ARRAY(kernel->scratch, int, (size_t)n + 1);
    if (!a || !pivots) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < kernel->outputs[0].elements; i++) {
        tare_matrix_read(a, type, &kernel->inputs[0], i * n * n, n * n);
        if (n) tare_lapack_getrf(type, (int)n, a, pivots); /* of the transpose: the same determinant */
        put_determinant(kernel, i, a, pivots, n);
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

/* A = P·L·U of a complex matrix in place, row-major; pivots as LAPACK's. LAPACK chooses complex pivots by |re| + |im|,
 * TensorFlow by the modulus, which yields another P. Stops at a zero pivot and returns false. */
static bool factor_complex(tare_complex *a, int *pivots, int64_t n) {
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t i = c + 1; i < n; i++)
            if (cabs(a[i * n + c]) > cabs(a[pivot * n + c])) pivot = i;
        pivots[c] = (int)pivot + 1;
        for (int64_t k = 0; pivot != c && k < n; k++) {
            const tare_complex moved = a[c * n + k];
            a[c * n + k] = a[pivot * n + k];
            a[pivot * n + k] = moved;
        }
        if (a[c * n + c] == 0) return false;
        for (int64_t i = c + 1; i < n; i++) {
            const tare_complex factor = a[i * n + c] /= a[c * n + c];
            for (int64_t k = c + 1; factor != 0 && k < n; k++)
                a[i * n + k] -= factor * a[c * n + k];
        }
    }
    return true;
}

/* One matrix: read from the input, factored, and left in `rows`, row-major. */
static bool lu_of(void *rows, void *a, int *pivots, enum tare_lapack_type type, int64_t n) {
    if (tare_lapack_is_complex(type)) return factor_complex(rows, pivots, n);
    tare_matrix_transpose(a, rows, type, n, n, false);
    if (tare_lapack_getrf(type, (int)n, a, pivots)) return false;
    tare_matrix_transpose(rows, a, type, n, n, false);
    return true;
}

/* Writes P as the row order that the exchanges produce. */
static void put_order(struct tare_tensor *to, int64_t first, const int *pivots, int *order, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        order[k] = (int)k;
    for (int64_t k = 0; k < n; k++) {
        const int moved = order[k];
        order[k] = order[pivots[k] - 1];
        order[pivots[k] - 1] = moved;
    }
    for (int64_t k = 0; k < n; k++)
        tare_tensor_set_i64(to, first + k, order[k]);
}

static tare_status run_lu(struct tare_kernel *kernel) {
    const enum tare_lapack_type own = tare_matrix_type(kernel->inputs[0].dtype);
    const enum tare_lapack_type type = tare_lapack_is_complex(own) ? TARE_LAPACK_Z : own;
    struct tare_matrices m;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_matrices_of(&m, &kernel->inputs[0], "input"));
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, kernel->node->output_dtypes[1], &shapes[1]));
    const int64_t n = m.rows, size = n * n;
    TARE_TRY(tare_matrix_open(n, n));
    void *rows = tare_matrix_new(kernel->scratch, type, size), *a = tare_matrix_new(kernel->scratch, type, size);
    int *pivots = TARE_NEW_ARRAY(kernel->scratch, int, 2 * (size_t)n + 1);
    if (!rows || !a || !pivots) return TARE_NO_MEMORY;
    for (int64_t i = 0; n && i < m.count; i++) {
        tare_matrix_read(rows, type, &kernel->inputs[0], i * size, size);
        if (!lu_of(rows, a, pivots, type, n)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
        put_order(&kernel->outputs[1], i * n, pivots, pivots + n, n);
        tare_matrix_write(&kernel->outputs[0], i * size, type, rows, size);
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

/* One system: a [n, n], x and its transpose [n, columns]. */
struct system {
    const struct solver *solver;
    bool lower, adjoint;
    struct tare_matrices left, right;
    int64_t n;
    enum tare_lapack_type type;
    void *a, *bands, *x, *columns;
    int *pivots;
};

/* Memory contains Aᵀ and xᵀ for LAPACK: A x = b is xᵀ·Aᵀ = bᵀ, and Aᴴ x = b is xᵀ·(Aᵀ)ᴴ = bᵀ. */
static void solve_triangular(struct system *s) {
    tare_lapack_trsm_right(s->type, s->lower, s->adjoint ? 'C' : 'N', (int)s->right.columns, (int)s->n, s->a, s->x);
}

/* The factors are those of Aᵀ, so its transpose is solved for; Aᴴ x = b as conj(Aᵀ) x = b with everything conjugated.
 */
static void solve_dense(struct system *s) {
    const int64_t n = s->n, k = s->right.columns;
    tare_matrix_transpose(s->columns, s->x, s->type, n, k, s->adjoint);
    tare_lapack_getrs(s->type, s->adjoint ? 'N' : 'T', (int)n, (int)k, s->a, s->pivots, s->columns);
    tare_matrix_transpose(s->x, s->columns, s->type, k, n, s->adjoint);
}

static tare_status solve_one(struct system *s, const struct tare_tensor *inputs, int64_t left, int64_t right) {
    const int64_t n = s->n, size = s->left.rows * s->left.columns, width = n * s->right.columns;
    const bool is_triangular = s->solver->triangular || s->solver->banded;
    tare_matrix_read(s->solver->banded ? s->bands : s->a, s->type, &inputs[0], left * size, size);
    tare_matrix_read(s->x, s->type, &inputs[1], right * width, width);
    if (s->solver->banded) expand_bands(s->a, s->bands, s->left.rows, n, s->lower, tare_lapack_size(s->type));
    if (!is_triangular) tare_lapack_getrf(s->type, (int)n, s->a, s->pivots);
    if (tare_matrix_is_singular(s->a, s->type, n))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix is not invertible.");
    if (is_triangular)
        solve_triangular(s);
    else
        solve_dense(s);
    return TARE_OK;
}

static tare_status open_system(struct system *s, struct tare_kernel *kernel) {
    TARE_TRY(tare_matrices_of(&s->left, &kernel->inputs[0], "matrix"));
    TARE_TRY(tare_matrices_of(&s->right, &kernel->inputs[1], "rhs"));
    s->n = s->left.columns;
    s->type = tare_matrix_type(kernel->inputs[0].dtype);
    if (s->solver->banded && s->left.rows < 1) return TARE_FAIL(TARE_SHAPE, "bands must have at least one row");
    if (s->solver->banded && s->left.rows > s->n)
        return TARE_FAIL(TARE_SHAPE, "the number of bands is %lld (expected at most the %lld columns)",
                         (long long)s->left.rows, (long long)s->n);
    TARE_TRY(tare_matrix_open(s->n, s->n));
    TARE_TRY(tare_matrix_open(s->n, s->right.columns));
    s->a = tare_matrix_new(kernel->scratch, s->type, s->n * s->n);
    s->bands = tare_matrix_new(kernel->scratch, s->type, s->solver->banded ? s->left.rows * s->n : 0);
    s->x = tare_matrix_new(kernel->scratch, s->type, s->n * s->right.columns);
    s->columns = tare_matrix_new(kernel->scratch, s->type, s->n * s->right.columns);
    s->pivots = TARE_NEW_ARRAY(kernel->scratch, int, (size_t)s->n + 1);
    return s->a && s->bands && s->x && s->columns && s->pivots ? TARE_OK : TARE_NO_MEMORY;
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

/* ---- least squares by the normal equations, as TensorFlow's `fast` does: (AᴴA + l·1)⁻¹ Aᴴ b, or Aᴴ (AAᴴ + l·1)⁻¹ b
 * for more columns than rows ---- */

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

struct least_squares {
    int64_t m, n, k, small; /* A is [m, n], b [m, k]; small = min(m, n) */
    double l2;
    tare_complex *a, *adjoint, *gram, *b, *x, *spare;
    int *pivots;
};

static tare_status least_squares_one(struct least_squares *s) {
    const int64_t m = s->m, n = s->n, k = s->k;
    tare_matrix_adjoint(s->adjoint, s->a, m, n);
    if (m >= n)
        tare_matrix_product(s->gram, s->adjoint, s->a, n, m, n);
    else
        tare_matrix_product(s->gram, s->a, s->adjoint, m, n, m);
    for (int64_t i = 0; i < s->small; i++)
        s->gram[i * s->small + i] += s->l2;
    if (m >= n) tare_matrix_product(s->x, s->adjoint, s->b, n, m, k);
    if (!tare_matrix_solve(m >= n ? s->x : s->b, s->gram, s->small, k, s->spare, s->pivots))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input matrix was rank deficient or ill-conditioned.");
    if (m < n) tare_matrix_product(s->x, s->adjoint, s->b, n, m, k);
    return TARE_OK;
}

static tare_status run_least_squares(struct tare_kernel *kernel) {
    struct tare_matrices left, right;
    struct least_squares s;
    if (kernel->inputs[2].elements != 1) return TARE_FAIL(TARE_SHAPE, "l2_regularizer must be a scalar");
    s.l2 = tare_node_bool(kernel->node, "fast", true) ? tare_tensor_get_f64(&kernel->inputs[2], 0) : 0;
    if (s.l2 < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "l2_regularizer is %g (expected >= 0)", s.l2);
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(tare_matrices_of(&left, &kernel->inputs[0], "matrix"));
    TARE_TRY(tare_matrices_of(&right, &kernel->inputs[1], "rhs"));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(tare_matrix_open(left.rows, left.columns));
    s.m = left.rows, s.n = left.columns, s.k = right.columns, s.small = s.m < s.n ? s.m : s.n;
    const size_t size = (size_t)(s.m * s.n), wide = (size_t)((s.m + s.n) * s.k);
    s.a = TARE_NEW_ARRAY(kernel->scratch, tare_complex, size + 1);
    s.adjoint = TARE_NEW_ARRAY(kernel->scratch, tare_complex, size + 1);
    s.gram = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(s.small * s.small) + TARE_LAPACK_SLACK);
    s.b = TARE_NEW_ARRAY(kernel->scratch, tare_complex, wide + 1);
    s.x = TARE_NEW_ARRAY(kernel->scratch, tare_complex, wide + 1);
    s.spare = TARE_NEW_ARRAY(kernel->scratch, tare_complex, wide + 1);
    s.pivots = TARE_NEW_ARRAY(kernel->scratch, int, (size_t)s.small + 1);
    if (!s.a || !s.adjoint || !s.gram || !s.b || !s.x || !s.spare || !s.pivots) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < left.count; i++) {
        tare_matrix_load(s.a, &kernel->inputs[0], i * s.m * s.n, s.m * s.n);
        tare_matrix_load(s.b, &kernel->inputs[1], i * s.m * s.k, s.m * s.k);
        TARE_TRY(least_squares_one(&s));
        tare_matrix_store(&kernel->outputs[0], i * s.n * s.k, s.x, s.n * s.k);
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

/* Gaussian elimination; exchanging adjacent rows fills in a second superdiagonal. */
struct tridiagonal {
    int64_t n, columns;
    tare_complex *d, *main, *above, *second; /* the diagonals of the input, and the rows of U */
    tare_complex *x;
};

static tare_status eliminate(struct tridiagonal *t, bool pivoting) {
    const int64_t n = t->n, k = t->columns;
    for (int64_t i = 0; i < n; i++) {
        t->above[i] = i + 1 < n ? t->d[i] : 0;
        t->main[i] = t->d[n + i];
        t->second[i] = 0;
    }
    for (int64_t i = 0; i + 1 < n; i++) {
        tare_complex below = t->d[2 * n + i + 1];
        if (pivoting && cabs(below) > cabs(t->main[i])) {
            const tare_complex main = t->main[i], above = t->above[i];
            t->main[i] = below, t->above[i] = t->main[i + 1], t->second[i] = t->above[i + 1];
            below = main, t->main[i + 1] = above, t->above[i + 1] = 0;
            for (int64_t c = 0; c < k; c++) {
                const tare_complex moved = t->x[i * k + c];
                t->x[i * k + c] = t->x[(i + 1) * k + c];
                t->x[(i + 1) * k + c] = moved;
            }
        }
        if (t->main[i] == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
        const tare_complex factor = below / t->main[i];
        t->main[i + 1] -= factor * t->above[i];
        t->above[i + 1] -= factor * t->second[i];
        for (int64_t c = 0; c < k; c++)
            t->x[(i + 1) * k + c] -= factor * t->x[i * k + c];
    }
    if (t->main[n - 1] == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
    return TARE_OK;
}

static void substitute(struct tridiagonal *t) {
    const int64_t n = t->n, k = t->columns;
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t c = 0; c < k; c++) {
            tare_complex sum = t->x[i * k + c];
            if (i + 1 < n) sum -= t->above[i] * t->x[(i + 1) * k + c];
            if (i + 2 < n) sum -= t->second[i] * t->x[(i + 2) * k + c];
            t->x[i * k + c] = sum / t->main[i];
        }
}

static tare_status run_tridiagonal_solve(struct tare_kernel *kernel) {
    struct tare_matrices left, right;
    struct tridiagonal t;
    TARE_TRY(tare_operand_output(kernel, 0));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(tare_matrices_of(&left, &kernel->inputs[0], "diagonals"));
    TARE_TRY(tare_matrices_of(&right, &kernel->inputs[1], "rhs"));
    t.n = left.columns, t.columns = right.columns;
    const int64_t size = t.n * t.columns;
    t.d = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)t.n * 6);
    t.x = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size);
    if (!t.d || !t.x) return TARE_NO_MEMORY;
    t.main = t.d + 3 * t.n, t.above = t.main + t.n, t.second = t.above + t.n;
    for (int64_t i = 0; i < left.count; i++) {
        tare_matrix_load(t.d, &kernel->inputs[0], i * 3 * t.n, 3 * t.n);
        tare_matrix_load(t.x, &kernel->inputs[1], i * size, size);
        TARE_TRY(eliminate(&t, tare_node_bool(kernel->node, "partial_pivoting", true)));
        substitute(&t);
        tare_matrix_store(&kernel->outputs[0], i * size, t.x, size);
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
    struct tare_matrices right;
    TARE_TRY(tare_operand_output(kernel, 3));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(tare_matrices_of(&right, &kernel->inputs[3], "rhs"));
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
