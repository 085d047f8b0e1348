/* MatrixInverse and Cholesky by LAPACK in the tensor's own precision; MatrixExponential, MatrixLogarithm and
 * MatrixSquareRoot in complex double with LAPACK's factorizations and products, rounded once; Cross. */
#include "base/arena.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* Checks that input 0 is a batch of square matrices and creates output 0 of the same shape. */
static tare_status open_square(struct tare_kernel *kernel, int64_t *n) {
    const struct tare_shape *shape = &kernel->inputs[0].shape;
    if (shape->rank < 2) return TARE_FAIL(TARE_SHAPE, "Input matrix must have rank >= 2, got rank %d", shape->rank);
    *n = shape->dims[shape->rank - 1];
    if (shape->dims[shape->rank - 2] != *n)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)",
                         (long long)shape->dims[shape->rank - 2], (long long)*n);
    TARE_TRY(tare_matrix_open(*n, *n));
    return tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, shape);
}

/* ---- functions of matrices, in complex double ---- */

/* One matrix [n, n] and its result. */
struct work {
    int64_t n;
    tare_complex *a, *result;
    struct tare_arena *scratch; /* reset after each matrix */
};

/* Calls `run` for each matrix of the batch; the result starts as the identity. */
static tare_status each_matrix(struct tare_kernel *kernel, tare_status (*run)(struct work *work)) {
    const struct tare_tensor *input = &kernel->inputs[0];
    int64_t n;
    TARE_TRY(open_square(kernel, &n));
    if (input->elements == 0) return TARE_OK;
    struct tare_arena scratch = { 0 };
    struct work work = { .n = n, .scratch = &scratch };
    tare_status status = TARE_OK;
    work.a = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(n * n) + TARE_LAPACK_SLACK);
    work.result = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(n * n) + TARE_LAPACK_SLACK);
    if (!work.a || !work.result) return TARE_NO_MEMORY;
    for (int64_t first = 0; status == TARE_OK && first < input->elements; first += n * n) {
        tare_matrix_load(work.a, input, first, n * n);
        for (int64_t i = 0; i < n * n; i++)
            work.result[i] = i / n == i % n;
        status = run(&work);
        tare_matrix_store(&kernel->outputs[0], first, work.result, n * n);
        tare_arena_reset(&scratch);
    }
    tare_arena_free(&scratch);
    return status;
}

static tare_complex *new_matrix(const struct work *work) {
    return TARE_NEW_ARRAY(work->scratch, tare_complex, (size_t)(work->n * work->n) + TARE_LAPACK_SLACK);
}

/* x = a⁻¹ b, where x may be b; `a` is overwritten. */
static tare_status divide(struct work *work, tare_complex *x, tare_complex *a, const tare_complex *b) {
    const int64_t n = work->n;
    tare_complex *spare = new_matrix(work);
    int *pivots = TARE_NEW_ARRAY(work->scratch, int, (size_t)n);
    if (!spare || !pivots) return TARE_NO_MEMORY;
    if (x != b) memcpy(x, b, (size_t)(n * n) * sizeof *x);
    return tare_matrix_solve(x, a, n, n, spare, pivots) ? TARE_OK
                                                        : TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
}

/* Exponential: scaling and squaring with the diagonal Padé approximant of order 13 (Higham, 2005) of a / 2^s. */

static double one_norm(const tare_complex *a, int64_t n) {
    double norm = 0;
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += cabs(a[i * n + c]);
        if (!(sum <= norm)) norm = sum; /* also NaN */
    }
    return norm;
}

/* The sums of even and odd powers of the scaled matrix: exp = (even - odd)⁻¹ (even + odd). */
static tare_status exponential_of(struct work *work) {
    enum { ORDER = 13, MOST_SQUARINGS = 1100 };
    const int64_t n = work->n, size = n * n;
    tare_complex *power = new_matrix(work), *next = new_matrix(work), *low = new_matrix(work), *up = new_matrix(work);
    if (!power || !next || !low || !up) return TARE_NO_MEMORY;
    const double norm = one_norm(work->a, n);
    int squarings = 0;
    if (!isfinite(norm)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the matrix contains values that are not finite");
    while (squarings < MOST_SQUARINGS && ldexp(norm, -squarings) > 1)
        squarings++;
    double factor = 1;
    for (int64_t i = 0; i < size; i++) {
        work->a[i] *= ldexp(1, -squarings);
        power[i] = low[i] = up[i] = work->result[i];
    }
    for (int k = 1; k <= ORDER; k++) {
        factor *= (double)(ORDER - k + 1) / ((double)k * (2 * ORDER - k + 1));
        tare_matrix_product(next, power, work->a, n, n, n);
        memcpy(power, next, (size_t)size * sizeof *power);
        for (int64_t i = 0; i < size; i++) {
            up[i] += factor * power[i];
            low[i] += (k % 2 ? -factor : factor) * power[i];
        }
    }
    TARE_TRY(divide(work, work->result, low, up));
    for (; squarings > 0; squarings--) {
        tare_matrix_product(next, work->result, work->result, n, n, n);
        memcpy(work->result, next, (size_t)size * sizeof *next);
    }
    return TARE_OK;
}

static tare_status run_exponential(struct tare_kernel *kernel) {
    return each_matrix(kernel, exponential_of);
}

/* ---- principal square root and logarithm ---- */

/* Replaces a with its principal square root by the Denman-Beavers iteration: y = (y + z⁻¹) / 2, z = (z + y⁻¹) / 2,
 * starting at y = a, z = 1. */
static tare_status take_root(struct work *work, tare_complex *a) {
    enum { MOST_STEPS = 100 };
    const int64_t n = work->n, size = n * n;
    tare_complex *z = new_matrix(work), *unit = new_matrix(work), *old_y = new_matrix(work), *old_z = new_matrix(work);
    tare_complex *inverse_y = new_matrix(work), *inverse_z = new_matrix(work);
    if (!z || !unit || !old_y || !old_z || !inverse_y || !inverse_z) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < size; i++)
        z[i] = unit[i] = i / n == i % n;
    for (int step = 0; step < MOST_STEPS; step++) {
        double change = 0, whole = 0;
        memcpy(old_y, a, (size_t)size * sizeof *a);
        memcpy(old_z, z, (size_t)size * sizeof *a);
        TARE_TRY(divide(work, inverse_y, old_y, unit));
        TARE_TRY(divide(work, inverse_z, old_z, unit));
        for (int64_t i = 0; i < size; i++) {
            const tare_complex y = (a[i] + inverse_z[i]) / 2;
            change += cabs(y - a[i]);
            whole += cabs(y);
            z[i] = (z[i] + inverse_y[i]) / 2;
            a[i] = y;
        }
        if (!(change > whole * 1e-15)) break;
    }
    return TARE_OK;
}

static tare_status root_of(struct work *work) {
    memcpy(work->result, work->a, (size_t)(work->n * work->n) * sizeof *work->a);
    return take_root(work, work->result);
}

static tare_status run_root(struct tare_kernel *kernel) {
    return each_matrix(kernel, root_of);
}

/* Inverse scaling and squaring: takes square roots until the matrix is close to the identity, then sums the series of
 * log = 2 artanh((a - 1)(a + 1)⁻¹) and doubles the result once per root. */
static tare_status logarithm_of(struct work *work) {
    enum { MOST_ROOTS = 60, TERMS = 12 };
    const int64_t n = work->n, size = n * n;
    tare_complex *x = new_matrix(work), *square = new_matrix(work), *power = new_matrix(work), *next = new_matrix(work);
    if (!x || !square || !power || !next) return TARE_NO_MEMORY;
    int roots = 0;
    for (; roots < MOST_ROOTS; roots++) {
        for (int64_t i = 0; i < size; i++)
            x[i] = work->a[i] - (i / n == i % n);
        if (one_norm(x, n) < 0.25) break;
        TARE_TRY(take_root(work, work->a));
    }
    for (int64_t i = 0; i < size; i++)
        next[i] = work->a[i] + (i / n == i % n);
    TARE_TRY(divide(work, x, next, x)); /* (a - 1) and (a + 1)⁻¹ commute */
    tare_matrix_product(square, x, x, n, n, n);
    memcpy(power, x, (size_t)size * sizeof *x);
    memcpy(work->result, x, (size_t)size * sizeof *x);
    for (int k = 1; k < TERMS; k++) {
        tare_matrix_product(next, power, square, n, n, n);
        memcpy(power, next, (size_t)size * sizeof *power);
        for (int64_t i = 0; i < size; i++)
            work->result[i] += power[i] / (2 * k + 1);
    }
    for (int64_t i = 0; i < size; i++)
        work->result[i] *= ldexp(2, roots);
    return TARE_OK;
}

static tare_status run_logarithm(struct tare_kernel *kernel) {
    return each_matrix(kernel, logarithm_of);
}

/* ---- inverse and Cholesky factor, in the tensor's own precision ---- */

/* x = A⁻¹, or A⁻ᴴ, as the solution for the identity, which is what TensorFlow computes. Memory contains Aᵀ for LAPACK:
 * (Aᵀ)⁻¹ in memory is A⁻¹, and conj(A)⁻¹ in memory is A⁻ᴴ. */
static tare_status invert(void *x, void *a, int *pivots, enum tare_lapack_type type, int64_t n, bool adjoint) {
    tare_lapack_getrf(type, (int)n, a, pivots);
    if (tare_matrix_is_singular(a, type, n)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
    memset(x, 0, (size_t)(n * n) * tare_lapack_size(type));
    for (int64_t i = 0; i < n; i++)
        tare_matrix_set_one(x, type, i * n + i);
    tare_lapack_getrs(type, adjoint ? 'T' : 'N', (int)n, (int)n, a, pivots, x);
    if (adjoint) tare_matrix_conjugate(x, type, n * n);
    return TARE_OK;
}

static tare_status run_inverse(struct tare_kernel *kernel) {
    const bool adjoint = tare_node_bool(kernel->node, "adjoint", false);
    const enum tare_lapack_type type = tare_matrix_type(kernel->inputs[0].dtype);
    int64_t n;
    TARE_TRY(open_square(kernel, &n));
    if (kernel->inputs[0].elements == 0) return TARE_OK;
    void *a = tare_matrix_new(kernel->scratch, type, n * n), *x = tare_matrix_new(kernel->scratch, type, n * n);
    int *pivots = TARE_NEW_ARRAY(kernel->scratch, int, (size_t)n);
    if (!a || !x || !pivots) return TARE_NO_MEMORY;
    for (int64_t first = 0; first < kernel->inputs[0].elements; first += n * n) {
        tare_matrix_read(a, type, &kernel->inputs[0], first, n * n);
        TARE_TRY(invert(x, a, pivots, type, n, adjoint));
        tare_matrix_write(&kernel->outputs[0], first, type, x, n * n);
    }
    return TARE_OK;
}

/* Reads the lower triangle. In memory that is the upper triangle of conj(A) = UᴴU, so A = L·Lᴴ with L = Uᵀ, which in
 * memory is L again. */
static tare_status factor(void *a, enum tare_lapack_type type, int64_t n) {
    const size_t size = tare_lapack_size(type);
    const int info = tare_lapack_potrf(type, true, (int)n, a);
    for (int64_t i = 0; i < n; i++) {
        if (info || !(creal(tare_matrix_at(a, type, i * n + i)) > 0)) /* NaN, which OpenBLAS accepts */
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Cholesky decomposition was not successful. The input might not be valid.");
        memset((char *)a + (size_t)(i * n + i + 1) * size, 0, (size_t)(n - 1 - i) * size);
    }
    return TARE_OK;
}

static tare_status run_cholesky(struct tare_kernel *kernel) {
    const enum tare_lapack_type type = tare_matrix_type(kernel->inputs[0].dtype);
    int64_t n;
    TARE_TRY(open_square(kernel, &n));
    if (kernel->inputs[0].elements == 0) return TARE_OK;
    void *a = tare_matrix_new(kernel->scratch, type, n * n);
    if (!a) return TARE_NO_MEMORY;
    for (int64_t first = 0; first < kernel->inputs[0].elements; first += n * n) {
        tare_matrix_read(a, type, &kernel->inputs[0], first, n * n);
        TARE_TRY(factor(a, type, n));
        tare_matrix_write(&kernel->outputs[0], first, type, a, n * n);
    }
    return TARE_OK;
}

/* ---- Cross ---- */

static tare_status infer_cross(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_shape_merge(out, &infer->inputs[0], &infer->inputs[1]));
    if (out->rank < 0) return TARE_OK;
    if (out->rank < 1) return TARE_FAIL(TARE_SHAPE, "Input must be at least 1D");
    if (out->dims[out->rank - 1] >= 0 && out->dims[out->rank - 1] != 3)
        return TARE_FAIL(TARE_SHAPE, "Cross-products are only defined for 3-element vectors.");
    out->dims[out->rank - 1] = 3;
    return TARE_OK;
}

#define CROSS(type, load, store)                                                                                       \
    do {                                                                                                               \
        const type *x = kernel->inputs[0].data, *y = kernel->inputs[1].data;                                           \
        type *to = kernel->outputs[0].data;                                                                            \
        for (int64_t i = 0; i < count; i += 3) {                                                                       \
            for (int k = 0; k < 3; k++) {                                                                              \
                const int p = (k + 1) % 3, q = (k + 2) % 3;                                                            \
                to[i + k] = (type)store(load(x[i + p]) * load(y[i + q]) - load(x[i + q]) * load(y[i + p]));            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#define SAME(value) (value)

static tare_status cross(struct tare_kernel *kernel, int64_t count) {
    const int dtype = kernel->inputs[0].dtype;
    switch (dtype) {
    case TARE_DT_FLOAT:
        CROSS(float, SAME, SAME);
        return TARE_OK;
    case TARE_DT_DOUBLE:
        CROSS(double, SAME, SAME);
        return TARE_OK;
    case TARE_DT_HALF:
        CROSS(uint16_t, tare_float_from_half, tare_half_from_float);
        return TARE_OK;
    case TARE_DT_BFLOAT16:
        CROSS(uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float);
        return TARE_OK;
    default:
        break;
    }
    switch (tare_dtype_size(dtype)) { /* integers wrap */
    case 1:
        CROSS(uint8_t, (uint32_t), SAME);
        return TARE_OK;
    case 2:
        CROSS(uint16_t, (uint32_t), SAME);
        return TARE_OK;
    case 4:
        CROSS(uint32_t, SAME, SAME);
        return TARE_OK;
    default:
        CROSS(uint64_t, SAME, SAME);
        return TARE_OK;
    }
}
#undef CROSS
#undef SAME

static tare_status run_cross(struct tare_kernel *kernel) {
    const struct tare_shape *a = &kernel->inputs[0].shape, *b = &kernel->inputs[1].shape;
    char left[TARE_SHAPE_TEXT_SIZE], right[TARE_SHAPE_TEXT_SIZE];
    if (!tare_shape_equal(a, b))
        return TARE_FAIL(TARE_SHAPE, "Both inputs must be of same shape: %s vs. %s", tare_shape_text(left, a),
                         tare_shape_text(right, b));
    if (a->rank < 1 || a->dims[a->rank - 1] != 3)
        return TARE_FAIL(TARE_SHAPE, "Cross-products are only defined for 3-element vectors.");
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, a));
    return cross(kernel, kernel->inputs[0].elements);
}

#define SQUARE_TYPES "T: {double, float, half, complex64, complex128}"

#define PLAIN_TYPES "T: {double, float}"
#define SQUARE(op, spec, kernel)                                                                                       \
    {                                                                                                                  \
        .name = op, .inputs = "input: T", .outputs = "output: T", .attrs = spec, .infer = tare_matrix_infer_square,    \
        .run = kernel                                                                                                  \
    }

const struct tare_op tare_ops_linalg[] = {
    SQUARE("MatrixInverse", "adjoint: bool = false; " SQUARE_TYPES, run_inverse),
    SQUARE("BatchMatrixInverse", "adjoint: bool = false; " PLAIN_TYPES, run_inverse),
    SQUARE("MatrixExponential", SQUARE_TYPES, run_exponential),
    SQUARE("MatrixLogarithm", "T: {complex64, complex128}", run_logarithm),
    SQUARE("MatrixSquareRoot", SQUARE_TYPES, run_root),
    SQUARE("Cholesky", SQUARE_TYPES, run_cholesky),
    SQUARE("BatchCholesky", PLAIN_TYPES, run_cholesky),
    { .name = "Cross",
      .inputs = "a: T, b: T",
      .outputs = "product: T",
      .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
      .infer = infer_cross,
      .run = run_cross },
    { 0 },
};
