/* MatrixInverse, Cholesky, MatrixExponential, MatrixLogarithm and MatrixSquareRoot by LAPACK in the tensor's own
 * precision (half in float, small matrices in double); Cross. */
#include "base/arena.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* Creates the output; *n: the rows and columns of a matrix. */
static tare_status open_square(struct tare_kernel *kernel, int64_t *n) {
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    *n = input.rows;
    return tare_matrix_open(*n, *n);
}

/* ---- solutions with the LU factors. In memory LAPACK sees Aᵀ and computes with it ---- */

struct inverse {
    struct tare_lapack_call lu, solve; /* b of `solve` is the right-hand side and the result; a of both is the matrix */
};

/* For matrices [n, n] with as many right-hand sides; `trans` as that of getrs. */
static tare_status open_inverse(struct inverse *inverse, struct tare_kernel *kernel, int64_t n, char trans) {
    TARE_TRY(tare_matrix_open_lu(&inverse->lu, kernel, n));
    inverse->solve = (struct tare_lapack_call){ TARE_LAPACK_GETRS,  inverse->lu.type,
                                                .m = (int)n,        .n = (int)n,
                                                .k = (int)n,        .trans = trans,
                                                .a = inverse->lu.a, .pivots = inverse->lu.pivots };
    return tare_lapack_prepare(&inverse->solve, kernel->scratch);
}

static tare_status solve(struct inverse *inverse) {
    tare_small_lapack_run(&inverse->lu);
    if (tare_matrix_is_singular(inverse->lu.a, inverse->lu.type, inverse->lu.n))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input is not invertible.");
    tare_small_lapack_run(&inverse->solve);
    return TARE_OK;
}

/* x = A⁻¹, or A⁻ᴴ, as the solution for the identity, which is what TensorFlow computes. Memory contains Aᵀ for LAPACK:
 * (Aᵀ)⁻¹ in memory is A⁻¹, and conj(A)⁻¹ in memory is A⁻ᴴ. */
static tare_status run_inverse(struct tare_kernel *kernel) {
    const bool adjoint = tare_node_bool(kernel->node, "adjoint", false);
    struct inverse s;
    int64_t n;
    TARE_TRY(open_square(kernel, &n));
    if (kernel->inputs[0].elements == 0) return TARE_OK;
    TARE_TRY(open_inverse(&s, kernel, n, adjoint ? 'T' : 'N'));
    for (int64_t first = 0; first < kernel->inputs[0].elements; first += n * n) {
        tare_matrix_read(s.lu.a, s.lu.type, &kernel->inputs[0], first, n * n);
        tare_matrix_set_identity(s.solve.b, s.lu.type, n);
        TARE_TRY(solve(&s));
        if (adjoint) tare_matrix_conjugate(s.solve.b, s.lu.type, n * n);
        tare_matrix_write(&kernel->outputs[0], first, s.lu.type, s.solve.b, n * n);
    }
    return TARE_OK;
}

/* ---- functions of matrices. A function of Aᵀ, which LAPACK sees, is the transpose of the function of A, and functions
 * of one matrix commute; so nothing is transposed ---- */

/* One matrix [n, n] and its result. */
struct work {
    int n, size; /* n * n elements */
    enum tare_lapack_type type;
    void *a, *result;
    struct inverse inverse;
    struct tare_arena *scratch; /* reset after each matrix */
};

static void *new_matrix(const struct work *work) {
    return tare_matrix_new(work->scratch, work->type, work->size);
}
static void copy(const struct work *work, void *to, const void *from) {
    memcpy(to, from, (size_t)work->size * tare_lapack_size(work->type));
}
/* to = a · b */
static void multiply(const struct work *work, void *to, const void *a, const void *b) {
    const int n = work->n;
    tare_lapack_gemm(work->type, "NN", n, n, n, a, n, b, n, 1, to, n);
}
/* y += factor · x */
static void add(const struct work *work, void *y, double factor, const void *x) {
    tare_lapack_axpy(work->type, work->size, factor, x, y);
}
/* x = a⁻¹ x for an x that commutes with a. */
static tare_status divide(struct work *work, void *x, const void *a) {
    copy(work, work->inverse.lu.a, a);
    copy(work, work->inverse.solve.b, x);
    TARE_TRY(solve(&work->inverse));
    copy(work, x, work->inverse.solve.b);
    return TARE_OK;
}

/* Calls `run` for each matrix of the batch; the result starts as the identity. */
static tare_status each_matrix(struct tare_kernel *kernel, tare_status (*run)(struct work *work)) {
    const struct tare_tensor *input = &kernel->inputs[0];
    int64_t n;
    TARE_TRY(open_square(kernel, &n));
    if (input->elements == 0) return TARE_OK;
    if (n * n > INT32_MAX) return TARE_FAIL(TARE_UNSUPPORTED, "a matrix of %lld rows is too large", (long long)n);
    struct tare_arena scratch = { 0 };
    struct work work = { (int)n, (int)(n * n), .type = tare_matrix_type_for(input->dtype, n, n), .scratch = &scratch };
    tare_status status = open_inverse(&work.inverse, kernel, n, 'N');
    work.a = tare_matrix_new(kernel->scratch, work.type, work.size);
    work.result = tare_matrix_new(kernel->scratch, work.type, work.size);
    if (!work.a || !work.result) return TARE_NO_MEMORY;
    for (int64_t first = 0; status == TARE_OK && first < input->elements; first += n * n) {
        tare_matrix_read(work.a, work.type, input, first, n * n);
        tare_matrix_set_identity(work.result, work.type, n);
        status = run(&work);
        tare_matrix_write(&kernel->outputs[0], first, work.type, work.result, n * n);
        tare_arena_reset(&scratch);
    }
    tare_arena_free(&scratch);
    return status;
}

/* Exponential: scaling and squaring with the diagonal Padé approximant of order 13 (Higham, 2005) of a / 2^s. */

/* The largest sum of magnitudes of a row, or NaN. */
static double norm_of(const struct work *work, const void *a) {
    double norm = 0;
    for (int64_t row = 0; row < work->n; row++) {
        double sum = 0;
        for (int64_t i = 0; i < work->n; i++)
            sum += cabs(tare_matrix_at(a, work->type, row * work->n + i));
        if (!(sum <= norm)) norm = sum; /* also NaN */
    }
    return norm;
}

/* The sums of even and odd powers of the scaled matrix: exp = (even - odd)⁻¹ (even + odd). */
static tare_status exponential_of(struct work *work) {
    enum { ORDER = 13, MOST_SQUARINGS = 1100 };
    void *power = new_matrix(work), *next = new_matrix(work), *low = new_matrix(work), *up = work->result;
    if (!power || !next || !low) return TARE_NO_MEMORY;
    const double norm = norm_of(work, work->a);
    int squarings = 0;
    if (!isfinite(norm)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the matrix contains values that are not finite");
    while (squarings < MOST_SQUARINGS && ldexp(norm, -squarings) > 1)
        squarings++;
    double factor = 1;
    tare_lapack_scal(work->type, work->size, ldexp(1, -squarings), work->a);
    copy(work, power, up);
    copy(work, low, up);
    for (int k = 1; k <= ORDER; k++) {
        factor *= (double)(ORDER - k + 1) / ((double)k * (2 * ORDER - k + 1));
        multiply(work, next, power, work->a);
        copy(work, power, next);
        add(work, up, factor, power);
        add(work, low, k % 2 ? -factor : factor, power);
    }
    TARE_TRY(divide(work, work->result, low));
    for (; squarings > 0; squarings--) {
        multiply(work, next, work->result, work->result);
        copy(work, work->result, next);
    }
    return TARE_OK;
}

static tare_status run_exponential(struct tare_kernel *kernel) {
    return each_matrix(kernel, exponential_of);
}

/* ---- principal square root and logarithm ---- */

/* Replaces a with its principal square root by the Denman-Beavers iteration: y = (y + z⁻¹) / 2, z = (z + y⁻¹) / 2,
 * starting at y = a, z = 1, until y changes by rounding errors only. */
static tare_status take_root(struct work *work, void *a) {
    enum { MOST_STEPS = 100 };
    void *z = new_matrix(work), *change = new_matrix(work);
    void *inverse_y = new_matrix(work), *inverse_z = new_matrix(work);
    if (!z || !change || !inverse_y || !inverse_z) return TARE_NO_MEMORY;
    tare_matrix_set_identity(z, work->type, work->n);
    for (int step = 0; step < MOST_STEPS; step++) {
        tare_matrix_set_identity(inverse_y, work->type, work->n);
        tare_matrix_set_identity(inverse_z, work->type, work->n);
        TARE_TRY(divide(work, inverse_y, a));
        TARE_TRY(divide(work, inverse_z, z));
        copy(work, change, inverse_z);
        add(work, change, -1, a); /* twice the change of y */
        add(work, a, 0.5, change);
        tare_lapack_scal(work->type, work->size, 0.5, z);
        add(work, z, 0.5, inverse_y);
        if (!(norm_of(work, change) > norm_of(work, a) * 8 * tare_matrix_epsilon(work->type))) break;
    }
    return TARE_OK;
}

static tare_status root_of(struct work *work) {
    copy(work, work->result, work->a);
    return take_root(work, work->result);
}

static tare_status run_root(struct tare_kernel *kernel) {
    return each_matrix(kernel, root_of);
}

/* Inverse scaling and squaring: takes square roots until the matrix is close to the identity, then sums the series of
 * log = 2 artanh((a - 1)(a + 1)⁻¹) and doubles the result once per root. */
static tare_status logarithm_of(struct work *work) {
    enum { MOST_ROOTS = 60, TERMS = 12 };
    void *x = new_matrix(work), *square = new_matrix(work), *power = new_matrix(work), *next = new_matrix(work);
    if (!x || !square || !power || !next) return TARE_NO_MEMORY;
    int roots = 0;
    for (; roots < MOST_ROOTS; roots++) {
        copy(work, x, work->a);
        add(work, x, -1, work->result); /* the identity */
        if (norm_of(work, x) < 0.25) break;
        TARE_TRY(take_root(work, work->a));
    }
    add(work, work->a, 1, work->result);
    TARE_TRY(divide(work, x, work->a));
    multiply(work, square, x, x);
    copy(work, power, x);
    copy(work, work->result, x);
    for (int k = 1; k < TERMS; k++) {
        multiply(work, next, power, square);
        copy(work, power, next);
        add(work, work->result, 1.0 / (2 * k + 1), power);
    }
    tare_lapack_scal(work->type, work->size, ldexp(2, roots), work->result);
    return TARE_OK;
}

static tare_status run_logarithm(struct tare_kernel *kernel) {
    return each_matrix(kernel, logarithm_of);
}

/* ---- Cholesky factor ---- */

/* False also for NaN, which OpenBLAS accepts. */
static bool has_positive_diagonal(const void *a, enum tare_lapack_type type, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(creal(tare_matrix_at(a, type, i * (n + 1))) > 0)) return false;
    return true;
}

/* Reads the lower triangle. In memory that is the upper triangle of conj(A) = UᴴU, so A = L·Lᴴ with L = Uᵀ, which in
 * memory is L again. Large matrices are read and written row by row up to the diagonal. */
static tare_status factor(struct tare_kernel *kernel, struct tare_lapack_call *c, int64_t first) {
    const int64_t n = c->n;
    const bool by_rows = n >= 32;
    const size_t size = tare_lapack_size(c->type), out_size = tare_dtype_size(kernel->outputs[0].dtype);
    char *a = c->a, *out = (char *)kernel->outputs[0].data + (size_t)first * out_size;
    if (!by_rows) tare_matrix_read(a, c->type, &kernel->inputs[0], first, n * n);
    for (int64_t i = 0; by_rows && i < n; i++)
        tare_matrix_read(a + (size_t)(i * n) * size, c->type, &kernel->inputs[0], first + i * n, i + 1);
    if (tare_small_lapack_run(c) || !has_positive_diagonal(a, c->type, n))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Cholesky decomposition was not successful. The input might not be valid.");
    if (!by_rows) tare_matrix_write(&kernel->outputs[0], first, c->type, a, n * n);
    for (int64_t i = 0; i < n; i++) {
        const size_t diagonal = (size_t)(i * n + i + 1);
        if (by_rows) tare_matrix_write(&kernel->outputs[0], first + i * n, c->type, a + (size_t)(i * n) * size, i + 1);
        memset(out + diagonal * out_size, 0, (size_t)(n - 1 - i) * out_size);
    }
    return TARE_OK;
}

static tare_status run_cholesky(struct tare_kernel *kernel) {
    int64_t n;
    TARE_TRY(open_square(kernel, &n));
    if (kernel->inputs[0].elements == 0) return TARE_OK;
    struct tare_lapack_call call = { TARE_LAPACK_POTRF, tare_matrix_type_for(kernel->inputs[0].dtype, n, n),
                                     .m = (int)n, .n = (int)n, .uplo = 'U' };
    const size_t size = tare_lapack_size(call.type), bytes = (size_t)(n * n) * size, slack = TARE_LAPACK_SLACK * size;
    call.a = tare_arena_alloc(kernel->scratch, bytes + slack); /* half of a large matrix is not used */
    if (!call.a) return TARE_NO_MEMORY;
    memset((char *)call.a + bytes, 0, slack);
    TARE_TRY(tare_lapack_prepare(&call, kernel->scratch));
    for (int64_t first = 0; first < kernel->inputs[0].elements; first += n * n)
        TARE_TRY(factor(kernel, &call, first));
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
