/* Small dense matrices in complex double: what several linear algebra ops share. */
#include "interpreter/ops/linalg/matrix.h"

#include <complex.h>
#include <math.h>
#include <string.h>

tare_status tare_matrices_of(struct tare_matrices *out, const struct tare_tensor *tensor, const char *what) {
    const struct tare_shape *shape = &tensor->shape;
    if (shape->rank < 2) return TARE_FAIL(TARE_SHAPE, "%s must have rank >= 2, got rank %d", what, shape->rank);
    out->rows = shape->dims[shape->rank - 2];
    out->columns = shape->dims[shape->rank - 1];
    out->count = 1;
    for (int d = 0; d < shape->rank - 2; d++)
        if (__builtin_mul_overflow(out->count, shape->dims[d], &out->count))
            return TARE_FAIL(TARE_SHAPE, "%s has too many matrices", what);
    return TARE_OK;
}

void tare_matrix_load(tare_complex *to, const struct tare_tensor *from, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        to[i] = tare_tensor_get_c128(from, first + i);
}

void tare_matrix_store(struct tare_tensor *to, int64_t first, const tare_complex *from, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        tare_tensor_set_c128(to, first + i, from[i]);
}

void tare_matrix_adjoint(tare_complex *to, const tare_complex *from, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = conj(from[i * columns + j]);
}

void tare_matrix_product(tare_complex *to, const tare_complex *a, const tare_complex *b, int64_t m, int64_t k,
                         int64_t n) {
    for (int64_t i = 0; i < m * n; i++)
        to[i] = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                to[i * n + j] += a[i * k + p] * b[p * n + j];
}

/* ---- LU ---- */

static void swap_rows(tare_complex *a, int64_t n, int64_t i, int64_t j) {
    for (int64_t k = 0; k < n && i != j; k++) {
        const tare_complex moved = a[i * n + k];
        a[i * n + k] = a[j * n + k];
        a[j * n + k] = moved;
    }
}

void tare_matrix_lu(tare_complex *a, int64_t n, int64_t *order, int *sign) {
    *sign = 1;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t column = 0; column < n; column++) {
        int64_t pivot = column;
        for (int64_t i = column + 1; i < n; i++)
            if (cabs(a[i * n + column]) > cabs(a[pivot * n + column])) pivot = i;
        if (pivot != column) {
            const int64_t moved = order[column];
            order[column] = order[pivot];
            order[pivot] = moved;
            swap_rows(a, n, column, pivot);
            *sign = -*sign;
        }
        if (a[column * n + column] == 0) continue;
        for (int64_t i = column + 1; i < n; i++) {
            const tare_complex factor = a[i * n + column] /= a[column * n + column];
            for (int64_t k = column + 1; factor != 0 && k < n; k++)
                a[i * n + k] -= factor * a[column * n + k];
        }
    }
}

static void solve_lower(tare_complex *x, const tare_complex *a, int64_t n, int64_t columns, bool unit) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < columns; c++) {
            tare_complex sum = x[i * columns + c];
            for (int64_t k = 0; k < i; k++)
                sum -= a[i * n + k] * x[k * columns + c];
            x[i * columns + c] = unit ? sum : sum / a[i * n + i];
        }
}

static void solve_upper(tare_complex *x, const tare_complex *a, int64_t n, int64_t columns) {
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t c = 0; c < columns; c++) {
            tare_complex sum = x[i * columns + c];
            for (int64_t k = i + 1; k < n; k++)
                sum -= a[i * n + k] * x[k * columns + c];
            x[i * columns + c] = sum / a[i * n + i];
        }
}

static bool has_zero_on_diagonal(const tare_complex *a, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a[i * n + i] == 0) return true;
    return false;
}

bool tare_matrix_lu_solve(tare_complex *x, const tare_complex *lu, const int64_t *order, int64_t n, int64_t columns,
                          tare_complex *spare) {
    if (has_zero_on_diagonal(lu, n)) return false;
    memcpy(spare, x, (size_t)(n * columns) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        memcpy(x + i * columns, spare + order[i] * columns, (size_t)columns * sizeof *x);
    solve_lower(x, lu, n, columns, true);
    solve_upper(x, lu, n, columns);
    return true;
}

bool tare_matrix_triangular_solve(tare_complex *x, const tare_complex *a, int64_t n, int64_t columns, bool lower) {
    if (has_zero_on_diagonal(a, n)) return false;
    if (lower)
        solve_lower(x, a, n, columns, false);
    else
        solve_upper(x, a, n, columns);
    return true;
}

/* ---- Hermitian eigenvalues ---- */

/* Columns p and q of m [n, n] turned: m·J with J = [c, s·u; -s·conj(u), c]. */
static void turn_columns(tare_complex *m, int64_t n, int64_t p, int64_t q, double c, tare_complex su) {
    for (int64_t i = 0; i < n; i++) {
        const tare_complex x = m[i * n + p], y = m[i * n + q];
        m[i * n + p] = c * x - conj(su) * y;
        m[i * n + q] = su * x + c * y;
    }
}

static void turn_rows(tare_complex *m, int64_t n, int64_t p, int64_t q, double c, tare_complex su) {
    for (int64_t i = 0; i < n; i++) {
        const tare_complex x = m[p * n + i], y = m[q * n + i];
        m[p * n + i] = c * x - su * y;
        m[q * n + i] = conj(su) * x + c * y;
    }
}

/* The rotation that makes a[p][q] zero. */
static void rotate(tare_complex *a, tare_complex *v, int64_t n, int64_t p, int64_t q) {
    const tare_complex off = a[p * n + q];
    const double size = cabs(off), theta = (creal(a[q * n + q]) - creal(a[p * n + p])) / (2 * size);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1);
    const tare_complex su = t * c * (off / size);
    turn_columns(a, n, p, q, c, su);
    turn_rows(a, n, p, q, c, su);
    turn_columns(v, n, p, q, c, su);
    a[p * n + q] = a[q * n + p] = 0;
}

static void sort_eigen(double *values, tare_complex *v, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t least = i;
        for (int64_t k = i + 1; k < n; k++)
            if (values[k] < values[least]) least = k;
        if (least == i) continue;
        const double moved = values[i];
        values[i] = values[least];
        values[least] = moved;
        for (int64_t k = 0; k < n; k++) {
            const tare_complex element = v[k * n + i];
            v[k * n + i] = v[k * n + least];
            v[k * n + least] = element;
        }
    }
}

void tare_matrix_eigen(double *values, tare_complex *v, tare_complex *a, int64_t n) {
    enum { MOST_SWEEPS = 60 }; /* convergence is quadratic: ten are many */
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            if (j > i) a[i * n + j] = conj(a[j * n + i]);
            if (j == i) a[i * n + i] = creal(a[i * n + i]);
            v[i * n + j] = i == j;
            total += creal(a[i * n + j]) * creal(a[i * n + j]) + cimag(a[i * n + j]) * cimag(a[i * n + j]);
        }
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                const double size = cabs(a[p * n + q]);
                off += size * size;
                if (size > 0 && isfinite(size)) rotate(a, v, n, p, q);
            }
        if (!(off > total * 1e-34)) break;
    }
    for (int64_t i = 0; i < n; i++)
        values[i] = creal(a[i * n + i]);
    sort_eigen(values, v, n);
}

/* ---- shapes ---- */

tare_status tare_matrix_infer_dims(int64_t *rows, int64_t *columns, const struct tare_infer *infer, size_t i) {
    const struct tare_shape *shape = &infer->inputs[i];
    *rows = *columns = TARE_UNKNOWN_DIM;
    if (shape->rank < 0) return TARE_OK;
    if (shape->rank < 2) return TARE_FAIL(TARE_SHAPE, "input %zu must have rank >= 2, got rank %d", i, shape->rank);
    *rows = shape->dims[shape->rank - 2];
    *columns = shape->dims[shape->rank - 1];
    return TARE_OK;
}

tare_status tare_matrix_infer(struct tare_shape *out, const struct tare_infer *infer, size_t i, int64_t rows,
                              int64_t columns) {
    *out = infer->inputs[i];
    if (out->rank < 0) return TARE_OK;
    if (out->rank < 2) return TARE_FAIL(TARE_SHAPE, "input %zu must have rank >= 2, got rank %d", i, out->rank);
    out->dims[out->rank - 2] = rows;
    out->dims[out->rank - 1] = columns;
    return TARE_OK;
}

tare_status tare_matrix_infer_square(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    infer->outputs[0] = *input;
    if (input->rank < 0) return TARE_OK;
    if (input->rank < 2) return TARE_FAIL(TARE_SHAPE, "Input matrix must have rank >= 2, got rank %d", input->rank);
    int64_t *rows = &infer->outputs[0].dims[input->rank - 2], *columns = &infer->outputs[0].dims[input->rank - 1];
    if (*rows >= 0 && *columns >= 0 && *rows != *columns)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)", (long long)*rows,
                         (long long)*columns);
    if (*rows < 0) *rows = *columns;
    *columns = *rows;
    return TARE_OK;
}
