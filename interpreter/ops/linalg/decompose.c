/* Qr, SelfAdjointEig, Eig and Svd by LAPACK in the tensor's own precision (half in float, small matrices in double).
 * Signs and phases of eigenvectors and singular vectors are not determined by the matrix, so they may differ from
 * another program's. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- QR ---- */

static tare_status infer_qr(struct tare_infer *infer) {
    int64_t rows, columns;
    const bool full = tare_node_bool(infer->node, "full_matrices", false);
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    const int64_t small = rows >= 0 && columns >= 0 ? least(rows, columns) : TARE_UNKNOWN_DIM;
    TARE_TRY(tare_matrix_infer(&infer->outputs[0], infer, 0, rows, full ? rows : small));
    return tare_matrix_infer(&infer->outputs[1], infer, 0, full ? rows : small, columns);
}

/* The first rows of R as matrix `i` of the output; what is below the diagonal of `a` are the reflectors of Q. */
static void put_r(struct tare_matrix_batch *b, int64_t i, int64_t count) {
    const int64_t n = b->call.n, size = count * n;
    char *rows =
        count < b->call.m ? b->buffer : tare_matrix_room(&b->kernel->outputs[1], b->call.type, i * size, b->buffer);
    tare_matrix_transpose(rows, b->call.a, b->call.type, n, b->call.m);
    for (int64_t row = 1; row < count; row++)
        memset(rows + (size_t)(row * n) * tare_lapack_size(b->call.type), 0,
               (size_t)least(row, n) * tare_lapack_size(b->call.type));
    tare_matrix_put(b, 1, i, rows);
}

static tare_status run_qr(struct tare_kernel *kernel) {
    struct tare_matrix_batch b = { .call = { .routine = TARE_LAPACK_GEQRF } };
    TARE_TRY(tare_matrix_open_batch(&b, kernel));
    if (b.count == 0) return TARE_OK;
    const int m = b.call.m, columns = (int)tare_matrices_of(&kernel->outputs[0]).columns;
    struct tare_lapack_call form = { TARE_LAPACK_ORGQR,
                                     b.call.type,
                                     .m = m,
                                     .n = columns,
                                     .k = (int)least(m, b.call.n),
                                     .a = columns <= b.call.n ? b.call.a : NULL,
                                     .tau = b.call.tau };
    TARE_TRY(tare_lapack_prepare(&form, kernel->scratch));
    for (int64_t i = 0; i < b.count; i++) {
        tare_matrix_next_by_columns(&b, i);
        tare_small_lapack_run(&b.call);
        put_r(&b, i, tare_matrices_of(&kernel->outputs[1]).rows);
        if (form.a != b.call.a) memcpy(form.a, b.call.a, (size_t)b.size * tare_lapack_size(form.type));
        tare_small_lapack_run(&form);
        tare_matrix_store(&kernel->outputs[0], i * m * columns, form.type, form.a, m, columns, false, b.buffer);
    }
    return TARE_OK;
}

/* ---- eigenvalues ---- */

/* A row's aux: the outputs, and the attribute that requests vectors. */
struct eigen {
    bool stacked;        /* one output [n + 1, n]: the values, then the vectors */
    const char *vectors; /* NULL: always */
};
static const struct eigen eig_stacked = { .stacked = true }, eig = { .vectors = "compute_v" }, eig_always = { 0 };

static bool wants_vectors(const struct tare_node *node, const struct eigen *form) {
    return !form->vectors || tare_node_bool(node, form->vectors, true);
}

static tare_status infer_eigen(struct tare_infer *infer) {
    const struct eigen *form = infer->node->def->row->aux;
    TARE_TRY(tare_matrix_infer_square(infer));
    struct tare_shape *values = &infer->outputs[0];
    if (values->rank < 0) return TARE_OK;
    if (form->stacked) {
        if (values->dims[values->rank - 2] >= 0) values->dims[values->rank - 2]++;
        return TARE_OK;
    }
    infer->outputs[1] = wants_vectors(infer->node, form) ? *values : tare_shape_make(1, (int64_t)0);
    values->rank--;
    return TARE_OK;
}

/* Memory contains conj(A) for LAPACK, whose eigenvectors are conjugate and whose triangles are exchanged. */
static tare_status run_hermitian(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    const bool lower = tare_node_bool(kernel->node, "lower", true), vectors = wants_vectors(kernel->node, form);
    struct tare_matrix_batch b = { .call = { .routine = TARE_LAPACK_SYEVD, .uplo = lower ? 'U' : 'L' } };
    b.call.job = vectors ? 'V' : 'N';
    TARE_TRY(tare_matrix_open_batch(&b, kernel));
    const int64_t n = b.call.n, step = form->stacked ? b.size + n : n;
    for (int64_t i = 0; i < b.count; i++) {
        tare_matrix_next(&b, i);
        if (!tare_matrix_run_finite(&b) || b.call.info)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
        tare_matrix_put_reals(&b, i * step, b.call.s, n);
        if (vectors)
            tare_matrix_store(&kernel->outputs[form->stacked ? 0 : 1], form->stacked ? i * step + n : i * b.size,
                              b.call.type, b.call.a, n, n, true, b.buffer);
    }
    return TARE_OK;
}

/* One eigenvalue of a general matrix and its column in LAPACK's result. */
struct value {
    tare_complex number;
    double magnitude;
    int64_t column;
};

/* By magnitude; of a conjugate pair, whose magnitudes may differ by roundings, the positive imaginary part is first. */
static bool precedes(const struct value *x, const struct value *y) {
    const double difference = x->magnitude - y->magnitude;
    if (fabs(difference) > 2 * DBL_EPSILON * y->magnitude) return difference < 0;
    return cimag(x->number) > cimag(y->number);
}

/* Otherwise equal ones stay in the order of geev. */
static void sort_values(struct value *values, const struct tare_lapack_call *c) {
    for (int64_t k = 0; k < c->n; k++) {
        const tare_complex number = tare_matrix_eigenvalue(c, k);
        const struct value value = { number, cimag(number) == 0 ? fabs(creal(number)) : cabs(number), k };
        int64_t at = k;
        for (; at > 0 && precedes(&value, &values[at - 1]); at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

static void put(struct tare_tensor *to, int64_t i, tare_complex x) {
    tare_matrix_set(to->data, tare_matrix_type(to->dtype), i, x);
}

/* Eigenvalues by ascending magnitude, and right eigenvectors of length one. */
static tare_status run_eig(struct tare_kernel *kernel) {
    const bool vectors = wants_vectors(kernel->node, kernel->op->aux);
    struct tare_matrix_batch b = { .call = { TARE_LAPACK_GEEV, .left = 'N', .job = vectors ? 'V' : 'N' } };
    TARE_TRY(tare_matrix_open_batch(&b, kernel));
    const int64_t n = b.call.n;
    struct value *values = TARE_NEW_ARRAY(kernel->scratch, struct value, (size_t)n + 1);
    if (!values) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < b.count; i++) {
        tare_matrix_next_by_columns(&b, i);
        if (!tare_matrix_run_finite(&b) || b.call.info)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Eigen decomposition was not successful. The input might not be valid.");
        sort_values(values, &b.call);
        for (int64_t k = 0; k < n; k++) {
            put(&kernel->outputs[0], i * n + k, values[k].number);
            for (int64_t row = 0; vectors && row < n; row++)
                put(&kernel->outputs[1], (i * n + row) * n + k,
                    tare_matrix_eigenvector(&b.call, b.call.v, values[k].column, row));
        }
    }
    return TARE_OK;
}

/* ---- singular values ---- */

enum { S, U, V };
static const struct eigen svd = { .vectors = "compute_uv" }, svd_always = { 0 };

static tare_status infer_svd(struct tare_infer *infer) {
    const struct eigen *form = infer->node->def->row->aux;
    int64_t rows, columns;
    const bool full = tare_node_bool(infer->node, "full_matrices", false);
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    const int64_t small = rows >= 0 && columns >= 0 ? least(rows, columns) : TARE_UNKNOWN_DIM;
    TARE_TRY(tare_matrix_infer(&infer->outputs[S], infer, 0, rows, small));
    struct tare_shape *values = &infer->outputs[S];
    if (values->rank > 0) {
        values->dims[values->rank - 2] = small;
        values->rank--;
    }
    if (!wants_vectors(infer->node, form)) {
        infer->outputs[U] = infer->outputs[V] = tare_shape_make(1, 0);
        return TARE_OK;
    }
    TARE_TRY(tare_matrix_infer(&infer->outputs[U], infer, 0, rows, full ? rows : small));
    return tare_matrix_infer(&infer->outputs[V], infer, 0, columns, full ? columns : small);
}

/* For an input that is not finite, all elements of the outputs are NaN, whose bits may all be ones. */
static void put_nan(const struct tare_matrix_batch *b, int64_t i) {
    for (size_t k = 0; k < 3; k++) {
        const struct tare_tensor *out = &b->kernel->outputs[k];
        const size_t bytes = (size_t)(out->elements / b->count) * tare_dtype_size(out->dtype);
        memset((char *)out->data + (size_t)i * bytes, 0xff, bytes);
    }
}

/* The orthogonal factors of an empty matrix. */
static void put_identities(const struct tare_kernel *kernel) {
    for (size_t k = U; k <= V; k++) {
        const struct tare_shape *shape = &kernel->outputs[k].shape;
        const int64_t n = shape->dims[shape->rank - 1];
        for (int64_t at = 0; at < kernel->outputs[k].elements; at++)
            tare_tensor_set_f64(&kernel->outputs[k], at, at % (n * n) % (n + 1) == 0);
    }
}

static tare_status run_svd(struct tare_kernel *kernel) {
    const bool vectors = wants_vectors(kernel->node, kernel->op->aux);
    struct tare_matrix_batch b = { .call = { .routine = TARE_LAPACK_GESDD, .job = 'N' } };
    if (vectors) b.call.job = tare_node_bool(kernel->node, "full_matrices", false) ? 'A' : 'S';
    TARE_TRY(tare_matrix_open_batch(&b, kernel));
    const int64_t m = b.call.m, n = b.call.n, columns = b.call.job == 'A' ? m : least(m, n);
    if (b.size == 0) put_identities(kernel);
    for (int64_t i = 0; b.size && i < b.count; i++) {
        tare_matrix_next_by_columns(&b, i);
        if (!tare_matrix_run_finite(&b)) {
            put_nan(&b, i);
            continue;
        }
        if (b.call.info) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the singular value decomposition did not converge");
        tare_matrix_put_reals(&b, i * least(m, n), b.call.s, least(m, n));
        if (!vectors) continue;
        tare_matrix_store(&kernel->outputs[U], i * m * columns, b.call.type, b.call.u, m, columns, false, b.buffer);
        tare_matrix_conjugate(b.call.v, b.call.type, kernel->outputs[V].elements / b.count);
        tare_matrix_put(&b, V, i, b.call.v); /* Vᴴ by columns is conj(V) by rows */
    }
    return TARE_OK;
}

#define TYPES "T: {double, float, half, complex64, complex128}"
#define PLAIN "T: {double, float}"
#define EIGEN(op, out, spec, form)                                                                                     \
    {                                                                                                                  \
        .name = op, .inputs = "input: T", .outputs = out, .attrs = spec, .infer = infer_eigen, .run = run_hermitian,   \
        .aux = &form                                                                                                   \
    }
#define SVD(op, spec, form)                                                                                            \
    {                                                                                                                  \
        .name = op, .inputs = "input: T", .outputs = "s: T, u: T, v: T", .attrs = spec, .infer = infer_svd,            \
        .run = run_svd, .aux = &form                                                                                   \
    }
#define UV "compute_uv: bool = true; full_matrices: bool = false; "

const struct tare_op tare_ops_decompose[] = {
    { .name = "Qr",
      .inputs = "input: T",
      .outputs = "q: T, r: T",
      .attrs = "full_matrices: bool = false; " TYPES,
      .infer = infer_qr,
      .run = run_qr },
    EIGEN("SelfAdjointEig", "output: T", "T: {double, float, half}", eig_stacked),
    EIGEN("BatchSelfAdjointEig", "output: T", PLAIN, eig_stacked),
    EIGEN("SelfAdjointEigV2", "e: T, v: T", "compute_v: bool = true; " TYPES, eig),
    EIGEN("BatchSelfAdjointEigV2", "e: T, v: T", "compute_v: bool = true; " PLAIN, eig),
    { .name = "Eig",
      .inputs = "input: T",
      .outputs = "e: Tout, v: Tout",
      .attrs = "compute_v: bool = true; T: {float, double, complex64, complex128}; Tout: {complex64, complex128}",
      .infer = infer_eigen,
      .run = run_eig,
      .aux = &eig },
    SVD("Svd", UV TYPES, svd),
    SVD("BatchSvd", UV "T: {double, float, complex64, complex128}", svd),
    { .name = "XlaSelfAdjointEig",
      .inputs = "a: T",
      .outputs = "w: T, v: T",
      .attrs = "lower: bool; max_iter: int; epsilon: float; T: numbertype",
      .infer = infer_eigen,
      .run = run_hermitian,
      .aux = &eig_always },
    { .name = "XlaSvd",
      .inputs = "a: T",
      .outputs = "s: T, u: T, v: T",
      .attrs = "max_iter: int; epsilon: float; precision_config: string; T: numbertype",
      .infer = infer_svd,
      .run = run_svd,
      .aux = &svd_always },
    { 0 },
};
