/* MatrixInverse, Cholesky, MatrixExponential, MatrixLogarithm and MatrixSquareRoot by LAPACK in the tensor's own
 * precision (half in float, small matrices in double); Cross. */
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/linalg/product.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* A⁻¹, or A⁻ᴴ, as the solution for the identity, which is what TensorFlow computes. */
static tare_status run_inverse(struct tare_matrix_batch *b, int64_t i) {
    tare_matrix_set_identity(b->buffer, b->call.dtype, b->call.n);
    if (!tare_matrix_solve(&b->call, b->buffer, b->call.n, b->adjoint)) return tare_matrix_not_invertible("Input");
    tare_matrix_put(b, 0, i, b->buffer);
    return TARE_OK;
}

static const struct tare_matrix_op inverse_op = { TARE_LAPACK_GETRF, "nn", .run = run_inverse };

/* ---- functions of matrices. A function of Aᵀ, which LAPACK sees, is the transpose of the function of A, and functions
 * of one matrix commute; so nothing is transposed ---- */

/* One matrix [n, n] and its result, which starts as the identity. */
struct work {
    int n;
    int64_t parts; /* numbers in a matrix: its elements, or their real and imaginary parts */
    int dtype;
    void *a, *result, *spare[4];
    struct tare_lapack_call *lu;
    struct tare_lapack_call schur; /* of square roots, with two complex matrices; not prepared yet: a is NULL */
    void *wide[2];
    struct tare_arena *memory;
};

static void copy(const struct work *work, void *to, const void *from) {
    memcpy(to, from, (size_t)work->parts * tare_dtype_size(tare_lapack_real(work->dtype)));
}

/* *x = *x · b; *room is the other one of two buffers, which change places. */
static void multiply(const struct work *work, void **x, const void *b, void **room) {
    void *product = *room;
    const int n = work->n;
    tare_lapack_gemm(work->dtype, "NN", n, n, n, *x, n, b, n, 1, product, n);
    *room = *x;
    *x = product;
}

/* y = y_factor · y + x_factor · x */
static void combine(const struct work *work, void *y, double y_factor, double x_factor, const void *x) {
    const int64_t parts = work->parts;
    if (tare_lapack_real(work->dtype) == TARE_DT_FLOAT)
        for (int64_t i = 0; i < parts; i++)
            ((float *)y)[i] = (float)y_factor * ((float *)y)[i] + (float)x_factor * ((const float *)x)[i];
    else
        for (int64_t i = 0; i < parts; i++)
            ((double *)y)[i] = y_factor * ((double *)y)[i] + x_factor * ((const double *)x)[i];
}

/* x = a⁻¹ x for an x that commutes with a; false if a is singular. */
static bool divide(struct work *work, void *x, const void *a) {
    copy(work, work->lu->a, a);
    return tare_matrix_solve(work->lu, x, work->n, false);
}

/* x = a⁻¹ */
static bool invert(struct work *work, void *x, const void *a) {
    tare_matrix_set_identity(x, work->dtype, work->n);
    return divide(work, x, a);
}

/* The largest sum of magnitudes, of real and imaginary parts, in a row; or NaN. */
static double norm_of(const struct work *work, const void *a) {
    double norm = 0, sum = 0;
    for (int64_t i = 0; i < (int64_t)work->n * work->n; i++) {
        const tare_complex x = tare_lapack_at(a, work->dtype, i);
        sum = (i % work->n == 0 ? 0 : sum) + fabs(creal(x)) + fabs(cimag(x));
        if (sum > norm || isnan(sum)) norm = sum;
    }
    return norm;
}

/* Exponential: scaling and squaring with the diagonal Padé approximant of order 13 (Higham, 2005) of a / 2^s: from the
 * sums of even and odd powers, exp = (even - odd)⁻¹ (even + odd). */
static tare_status exponential_of(struct work *work) {
    enum { ORDER = 13, MOST_SQUARINGS = 1100 };
    void *power = work->spare[0], *next = work->spare[1], *low = work->spare[2];
    const double norm = norm_of(work, work->a);
    int squarings = 0;
    if (!isfinite(norm)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the matrix contains values that are not finite");
    while (squarings < MOST_SQUARINGS && ldexp(norm, -squarings) > 1)
        squarings++;
    double factor = 1;
    combine(work, work->a, ldexp(1, -squarings), 0, work->a);
    copy(work, power, work->result);
    copy(work, low, work->result);
    for (int k = 1; k <= ORDER; k++) {
        factor *= (double)(ORDER - k + 1) / ((double)k * (2 * ORDER - k + 1));
        multiply(work, &power, work->a, &next);
        combine(work, work->result, 1, factor, power);
        combine(work, low, 1, k % 2 ? -factor : factor, power);
    }
    if (!divide(work, work->result, low)) return tare_matrix_not_invertible("Input");
    for (; squarings > 0; squarings--)
        multiply(work, &work->result, work->result, &work->spare[3]);
    return TARE_OK;
}

/* True if a² is `original` but for rounding errors. */
static bool is_root(struct work *work, const void *a, const void *original, double epsilon) {
    enum { ERRORS = 4 };
    void *square = work->spare[0], *room = work->spare[1];
    copy(work, square, a);
    multiply(work, &square, a, &room);
    combine(work, square, 1, -1, original);
    return norm_of(work, square) <= ERRORS * (8 + work->n) * epsilon * pow(norm_of(work, a), 2);
}

/* Replaces a with its principal square root by the Denman-Beavers iteration: y = (y + z⁻¹) / 2, z = (z + y⁻¹) / 2,
 * starting at y = a, z = 1, until y changes by rounding errors only. False if it does not converge to a root: an
 * eigenvalue is zero or on the negative real axis. */
static bool iterate_root(struct work *work, void *a, const void *original) {
    enum { MOST_STEPS = 100 };
    const double epsilon = tare_lapack_real(work->dtype) == TARE_DT_FLOAT ? (double)FLT_EPSILON : DBL_EPSILON;
    void *z = work->spare[0], *inverse = work->spare[1], *change = work->spare[2];
    tare_matrix_set_identity(z, work->dtype, work->n);
    for (int step = 0; step < MOST_STEPS; step++) {
        if (!invert(work, inverse, a) || !invert(work, change, z)) return false;
        combine(work, change, 1, -1, a); /* twice the change of y */
        combine(work, a, 1, 0.5, change);
        combine(work, z, 0.5, 0.5, inverse);
        const double moved = norm_of(work, change);
        if (isnan(moved)) return true; /* so is the root */
        if (moved <= norm_of(work, a) * (8 + work->n) * epsilon) return is_root(work, a, original, epsilon);
    }
    return false;
}

/* The principal root. Parts of at most `none` are rounding errors; without that of the imaginary part, roots of
 * negative numbers would have the one or the other sign, and sums of two of them could be near zero. */
static tare_complex root_of_number(tare_complex x, double none) {
    if (cabs(x) <= none) return 0;
    return csqrt(fabs(cimag(x)) <= none ? (tare_complex)creal(x) : x);
}

/* Replaces the upper triangular t, column by column, with its square root r: r r = t (Björck and Hammarling, 1983). */
static void take_triangular_root(tare_complex *t, int n, double none) {
    for (int column = 0; column < n; column++) {
        tare_complex *to = t + (size_t)column * (size_t)n;
        to[column] = root_of_number(to[column], none);
        for (int row = column - 1; row >= 0; row--) {
            tare_complex sum = to[row];
            const tare_complex both = t[row + row * n] + to[column];
            for (int k = row + 1; k < column; k++)
                sum -= t[row + k * n] * to[k];
            to[row] = sum == 0 || (both == 0 && cabs(sum) <= none) ? 0 : sum / both;
        }
    }
}

/* The result v · r · vᴴ. A real matrix whose root has an imaginary part has no real principal root: NaN, as in
 * TensorFlow. */
static void put_root(const struct work *work, void *a, const tare_complex *root) {
    const int64_t count = (int64_t)work->n * work->n;
    double real = 0, imaginary = 0;
    for (int64_t i = 0; i < count; i++) {
        real = fmax(real, fabs(creal(root[i])));
        imaginary = fmax(imaginary, fabs(cimag(root[i])));
    }
    const bool is_real = tare_dtype_is_complex(work->dtype) || imaginary <= sqrt(DBL_EPSILON) * real;
    for (int64_t i = 0; i < count; i++)
        tare_lapack_set(a, work->dtype, i, is_real ? root[i] : (tare_complex)NAN);
}

/* Prepares the Schur form, and room for two matrices. */
static tare_status open_schur(struct work *work) {
    const int n = work->n;
    if (work->schur.a) return TARE_OK;
    work->schur = (struct tare_lapack_call){
        .routine = TARE_LAPACK_GEES, .dtype = TARE_DT_COMPLEX128, .m = n, .n = n, .job = 'V'
    };
    for (int i = 0; i < 2; i++)
        if (!(work->wide[i] = tare_lapack_new(work->memory, TARE_DT_COMPLEX128, (int64_t)n * n))) return TARE_NO_MEMORY;
    return tare_lapack_prepare(&work->schur, work->memory);
}

/* The same by the Schur form, in complex double, for any eigenvalues. */
static tare_status take_schur_root(struct work *work, void *a, const void *original) {
    const int n = work->n;
    struct tare_lapack_call *schur = &work->schur;
    TARE_TRY(open_schur(work));
    tare_complex *t = schur->a, *product = work->wide[0], *root = work->wide[1];
    for (int64_t i = 0; i < (int64_t)n * n; i++)
        t[i] = tare_lapack_at(original, work->dtype, i);
    if (tare_lapack_run(schur) != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the eigenvalues of the matrix were not found");
    const double none = norm_of(work, original) * n * DBL_EPSILON;
    take_triangular_root(t, n, none);
    tare_lapack_gemm(TARE_DT_COMPLEX128, "NN", n, n, n, schur->v, n, t, n, 1, product, n);
    tare_lapack_gemm(TARE_DT_COMPLEX128, "NC", n, n, n, product, n, schur->v, n, 1, root, n);
    if (!tare_matrix_is_finite(root, TARE_DT_COMPLEX128, (int64_t)n * n))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "the matrix has no square root (it is singular and not diagonalizable)");
    put_root(work, a, root);
    return TARE_OK;
}

static tare_status take_root(struct work *work, void *a) {
    void *original = work->spare[3];
    copy(work, original, a);
    return iterate_root(work, a, original) ? TARE_OK : take_schur_root(work, a, original);
}

static tare_status root_of(struct work *work) {
    copy(work, work->result, work->a);
    return take_root(work, work->result);
}

/* Principal logarithm, by inverse scaling and squaring: takes square roots until the matrix is close to the identity,
 * then sums the series of log = 2 artanh((a - 1)(a + 1)⁻¹) and doubles the result once per root. */
static tare_status logarithm_of(struct work *work) {
    enum { MOST_ROOTS = 60, TERMS = 12 };
    void *x = work->spare[0], *square = work->spare[1], *power = work->spare[2], *next = work->spare[3];
    int roots = 0;
    for (; roots < MOST_ROOTS; roots++) {
        copy(work, x, work->a);
        combine(work, x, 1, -1, work->result); /* the identity */
        if (!(norm_of(work, x) >= 0.25)) break;
        TARE_TRY(take_root(work, work->a));
    }
    combine(work, work->a, 1, 1, work->result);
    if (roots == MOST_ROOTS || !divide(work, x, work->a)) return tare_matrix_not_invertible("Input");
    copy(work, square, x);
    multiply(work, &square, x, &next);
    copy(work, power, x);
    copy(work, work->result, x);
    for (int k = 1; k < TERMS; k++) {
        multiply(work, &power, square, &next);
        combine(work, work->result, 1, 1.0 / (2 * k + 1), power);
    }
    combine(work, work->result, ldexp(2, roots), 0, work->result);
    return TARE_OK;
}

static struct work *open_work(struct tare_matrix_batch *b) {
    struct work *work = TARE_NEW(b->kernel->scratch, struct work);
    if (!work) return NULL;
    *work = (struct work){ b->call.n, tare_dtype_is_complex(b->call.dtype) ? 2 * b->size : b->size, b->call.dtype,
                           .lu = &b->call, .memory = b->kernel->scratch };
    void **matrices[] = { &work->a, &work->result, &work->spare[0], &work->spare[1], &work->spare[2], &work->spare[3] };
    for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++)
        if (!(*matrices[k] = tare_lapack_new(b->kernel->scratch, work->dtype, b->size))) return NULL;
    return work;
}

/* A row's aux. */
struct function {
    struct tare_matrix_op op;
    tare_status (*of)(struct work *work);
};

static tare_status run_function(struct tare_matrix_batch *b, int64_t i) {
    const struct function *function = b->kernel->op->aux;
    struct work *work = b->state = b->state ? b->state : open_work(b);
    if (!work) return TARE_NO_MEMORY;
    copy(work, work->a, b->call.a);
    tare_matrix_set_identity(work->result, work->dtype, work->n);
    TARE_TRY(function->of(work));
    tare_matrix_put(b, 0, i, work->result);
    return TARE_OK;
}

#define FUNCTION                                                                                                       \
    { TARE_LAPACK_GETRF, "nn", .run = run_function }
static const struct function exponential = { FUNCTION, exponential_of }, root = { FUNCTION, root_of },
                             logarithm = { FUNCTION, logarithm_of };

/* ---- Cholesky factor ---- */

/* The lower triangle is in memory the upper triangle of conj(A) = UᴴU, so A = L·Lᴴ with L = Uᵀ, which in memory is L
 * again. OpenBLAS accepts NaN, which reaches the last element of the diagonal. */
static tare_status run_cholesky(struct tare_matrix_batch *b, int64_t i) {
    const struct tare_tensor *out = &b->kernel->outputs[0];
    const size_t size = tare_dtype_size(out->dtype);
    const int64_t n = b->call.n;
    if (tare_lapack_run(&b->call) || isnan(creal(tare_lapack_at(b->call.a, b->call.dtype, b->size - 1))))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Cholesky decomposition was not successful. The input might not be valid.");
    tare_matrix_put(b, 0, i, b->call.a);
    for (int64_t row = 0; row < n; row++)
        memset((char *)out->data + (size_t)(i * b->size + row * n + row + 1) * size, 0, (size_t)(n - 1 - row) * size);
    return TARE_OK;
}

static const struct tare_matrix_op cholesky = { TARE_LAPACK_POTRF, "nn", .run = run_cholesky };

/* ---- Cross ---- */

static tare_status infer_cross(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_error_prefix(tare_shape_merge(out, &infer->inputs[0], &infer->inputs[1]),
                               "Both inputs must be of same shape"));
    if (out->rank < 0) return TARE_OK;
    if (out->rank < 1) return TARE_FAIL(TARE_SHAPE, "Input must be at least 1D");
    if (out->dims[out->rank - 1] >= 0 && out->dims[out->rank - 1] != 3)
        return TARE_FAIL(TARE_SHAPE, "Cross-products are only defined for 3-element vectors.");
    out->dims[out->rank - 1] = 3;
    return TARE_OK;
}

#define CROSS(dtype, type)                                                                                             \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const int64_t p = i / 3 * 3 + (i + 1) % 3, q = i / 3 * 3 + (i + 2) % 3;                                    \
            ((type *)to)[i] =                                                                                          \
                ((const type *)x)[p] * ((const type *)y)[q] - ((const type *)x)[q] * ((const type *)y)[p];             \
        }                                                                                                              \
        break

/* In the dtypes of products; integers wrap. */
static tare_status run_cross(struct tare_kernel *kernel) {
    TARE_TRY(tare_operand_output(kernel, 0));
    const int64_t count = kernel->outputs[0].elements;
    const int dtype = tare_product_dtype(kernel->inputs[0].dtype);
    const void *x = tare_product_operand(kernel, &kernel->inputs[0], dtype);
    const void *y = tare_product_operand(kernel, &kernel->inputs[1], dtype);
    void *to = tare_product_room(kernel, 0);
    if (!x || !y || (!to && count > 0)) return TARE_NO_MEMORY;
    switch (dtype) {
        CROSS(TARE_DT_FLOAT, float);
        CROSS(TARE_DT_DOUBLE, double);
        CROSS(TARE_DT_INT64, uint64_t);
    }
    tare_product_store(kernel, 0, to);
    return TARE_OK;
}
#undef CROSS

#define ROW(op, form) TARE_MATRIX_OP(op, form)

const struct tare_op tare_ops_linalg[] = {
    ROW("MatrixInverse", inverse_op),
    ROW("BatchMatrixInverse", inverse_op),
    ROW("MatrixExponential", exponential),
    ROW("MatrixLogarithm", logarithm),
    ROW("MatrixSquareRoot", root),
    ROW("Cholesky", cholesky),
    ROW("BatchCholesky", cholesky),
    { .name = "Cross", .infer = infer_cross, .run = run_cross },
    { 0 },
};
