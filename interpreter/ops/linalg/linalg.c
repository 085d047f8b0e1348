/* Functions of square matrices (inverse, exponential, logarithm, root), Cholesky factor, cross product. Matrices are
 * worked in complex double, whatever their dtype, and rounded once. */
#include "base/arena.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* What the work on one matrix [n, n] has: the matrix, where the result goes, and memory. */
struct work {
    int64_t n;
    tare_complex *a, *result;
    struct tare_arena *scratch; /* emptied after the matrix */
};

/* Runs `work` on each matrix of the batch; the result starts as the unit matrix. */
static tare_status each_matrix(struct tare_kernel *kernel, tare_status (*run)(struct work *work), bool adjoint) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_shape *shape = &input->shape;
    if (shape->rank < 2) return TARE_FAIL(TARE_SHAPE, "Input matrix must have rank >= 2, got rank %d", shape->rank);
    const int64_t n = shape->dims[shape->rank - 1];
    if (shape->dims[shape->rank - 2] != n)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)",
                         (long long)shape->dims[shape->rank - 2], (long long)n);
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, shape));
    if (input->elements == 0) return TARE_OK;
    struct tare_arena scratch = { 0 };
    struct work work = { .n = n, .scratch = &scratch };
    tare_status status = TARE_OK;
    work.a = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(n * n));
    work.result = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(n * n));
    if (!work.a || !work.result) return TARE_NO_MEMORY;
    for (int64_t first = 0; status == TARE_OK && first < input->elements; first += n * n) {
        for (int64_t i = 0; i < n * n; i++) {
            const int64_t from = adjoint ? i % n * n + i / n : i;
            const tare_complex x = tare_tensor_get_c128(input, first + from);
            work.a[i] = adjoint ? conj(x) : x;
            work.result[i] = i / n == i % n;
        }
        status = run(&work);
        tare_matrix_store(&kernel->outputs[0], first, work.result, n * n);
        tare_arena_reset(&scratch);
    }
    tare_arena_free(&scratch);
    return status;
}

static tare_complex *new_matrix(const struct work *work) {
    return TARE_NEW_ARRAY(work->scratch, tare_complex, (size_t)(work->n * work->n));
}

/* x = a⁻¹ b, for x that may be b; uses `a` up. */
static tare_status divide(struct work *work, tare_complex *x, tare_complex *a, const tare_complex *b) {
    const int64_t n = work->n;
    tare_complex *spare = new_matrix(work);
    int64_t *order = TARE_NEW_ARRAY(work->scratch, int64_t, (size_t)n);
    int sign;
    if (!spare || !order) return TARE_NO_MEMORY;
    if (x != b) memcpy(x, b, (size_t)(n * n) * sizeof *x);
    tare_matrix_lu(a, n, order, &sign);
    return tare_matrix_lu_solve(x, a, order, n, n, spare)
               ? TARE_OK
               : TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
}

static tare_status inverse_of(struct work *work) {
    return divide(work, work->result, work->a, work->result);
}

static tare_status run_inverse(struct tare_kernel *kernel) {
    return each_matrix(kernel, inverse_of, tare_node_bool(kernel->node, "adjoint", false));
}

/* ---- exponential: a quotient of polynomials of a / 2^s, squared s times ---- */

static double greatest_column_sum(const tare_complex *a, int64_t n) {
    double greatest = 0;
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += cabs(a[i * n + c]);
        if (!(sum <= greatest)) greatest = sum;
    }
    return greatest;
}

/* Sums of even and of odd powers of the scaled matrix: exp = (even - odd)⁻¹ (even + odd). */
static tare_status exponential_of(struct work *work) {
    enum { ORDER = 13, MOST_SQUARINGS = 1100 };
    const int64_t n = work->n, size = n * n;
    tare_complex *power = new_matrix(work), *next = new_matrix(work), *low = new_matrix(work), *up = new_matrix(work);
    if (!power || !next || !low || !up) return TARE_NO_MEMORY;
    const double norm = greatest_column_sum(work->a, n);
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
    return each_matrix(kernel, exponential_of, false);
}

/* ---- principal square root and logarithm ---- */

/* a becomes its root by Denman and Beavers' iteration: y = (y + z⁻¹) / 2, z = (z + y⁻¹) / 2 from y = a, z = 1. */
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
    return each_matrix(kernel, root_of, false);
}

/* Roots until the matrix is near 1, then log = 2 artanh((a - 1)(a + 1)⁻¹) as a series, doubled as often. */
static tare_status logarithm_of(struct work *work) {
    enum { MOST_ROOTS = 60, TERMS = 12 };
    const int64_t n = work->n, size = n * n;
    tare_complex *x = new_matrix(work), *square = new_matrix(work), *power = new_matrix(work), *next = new_matrix(work);
    if (!x || !square || !power || !next) return TARE_NO_MEMORY;
    int roots = 0;
    for (; roots < MOST_ROOTS; roots++) {
        for (int64_t i = 0; i < size; i++)
            x[i] = work->a[i] - (i / n == i % n);
        if (greatest_column_sum(x, n) < 0.25) break;
        TARE_TRY(take_root(work, work->a));
    }
    for (int64_t i = 0; i < size; i++)
        next[i] = work->a[i] + (i / n == i % n);
    TARE_TRY(divide(work, x, next, x)); /* the two commute */
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
    return each_matrix(kernel, logarithm_of, false);
}

/* ---- Cholesky: reads the lower triangle ---- */

static tare_status cholesky_of(struct work *work) {
    const int64_t n = work->n;
    const tare_complex *a = work->a;
    tare_complex *b = work->result;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            tare_complex sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++)
                sum -= b[i * n + k] * conj(b[j * n + k]);
            if (i == j && !(creal(sum) > 0))
                return TARE_FAIL(TARE_INVALID_ARGUMENT,
                                 "Cholesky decomposition was not successful. The input might not be valid.");
            b[i * n + j] = i == j ? sqrt(creal(sum)) : sum / b[j * n + j];
        }
        for (int64_t j = i + 1; j < n; j++)
            b[i * n + j] = 0;
    }
    return TARE_OK;
}

static tare_status run_cholesky(struct tare_kernel *kernel) {
    return each_matrix(kernel, cholesky_of, false);
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
