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

/* The first rows of R as matrix i of the output; what is below the diagonal of `a` are the reflectors of Q. */
static void put_r(struct tare_matrix_batch *b, int64_t i) {
    const size_t size = tare_dtype_size(b->call.dtype);
    const int64_t count = tare_matrices_of(&b->kernel->outputs[1].shape).rows, n = b->call.n;
    tare_transpose(b->buffer, b->call.a, size, n, b->call.m);
    for (int64_t row = 1; row < count; row++)
        memset((char *)b->buffer + (size_t)(row * n) * size, 0, (size_t)least(row, n) * size);
    tare_matrix_put(b, 1, i, b->buffer);
}

/* The call that computes Q, in place where R has as many columns. */
static tare_status open_q(struct tare_matrix_batch *b) {
    struct tare_lapack_call *q = TARE_NEW(b->kernel->scratch, struct tare_lapack_call);
    const int columns = (int)tare_matrices_of(&b->kernel->outputs[0].shape).columns;
    b->state = q;
    if (!q) return TARE_NO_MEMORY;
    *q = (struct tare_lapack_call){
        TARE_LAPACK_ORGQR, b->call.dtype, .m = b->call.m, .n = columns, .k = (int)least(b->call.m, b->call.n),
        .tau = b->call.tau
    };
    if (columns <= b->call.n) q->a = b->call.a;
    return tare_lapack_prepare(q, b->kernel->scratch);
}

static tare_status run_qr(struct tare_matrix_batch *b, int64_t i) {
    if (!b->state) TARE_TRY(open_q(b));
    struct tare_lapack_call *q = b->state;
    tare_lapack_run(&b->call);
    put_r(b, i);
    if (q->a != b->call.a) memcpy(q->a, b->call.a, (size_t)b->size * tare_dtype_size(q->dtype));
    tare_lapack_run(q);
    tare_matrix_put_columns(b, 0, i * q->m * q->n, q->a, q->m, q->n, false);
    return TARE_OK;
}

static const struct tare_matrix_op qr = { TARE_LAPACK_GEQRF, "mq qn", .by_columns = true, .run = run_qr };

/* ---- eigenvalues ---- */

/* Memory contains conj(A) for LAPACK, whose eigenvectors are conjugate. One output [n + 1, n] contains the values, then
 * the vectors. */
static tare_status run_hermitian(struct tare_matrix_batch *b, int64_t i) {
    const bool stacked = b->kernel->n_outputs == 1;
    const int64_t n = b->call.n, step = stacked ? b->size + n : n;
    if (tare_matrix_run_finite(b))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
    tare_matrix_write(&b->kernel->outputs[0], i * step, tare_lapack_real(b->call.dtype), b->call.s, n);
    if (b->vectors) tare_matrix_put_columns(b, !stacked, stacked ? i * step + n : i * b->size, b->call.a, n, n, true);
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
static void sort_values(struct value *values, const void *numbers, int dtype, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const tare_complex number = tare_lapack_at(numbers, dtype, k);
        const struct value value = { number, cimag(number) == 0 ? fabs(creal(number)) : cabs(number), k };
        int64_t at = k;
        for (; at > 0 && precedes(&value, &values[at - 1]); at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

/* Eigenvalues by ascending magnitude, and right eigenvectors of length one. */
static tare_status run_eig(struct tare_matrix_batch *b, int64_t i) {
    struct tare_lapack_call *c = &b->call;
    const struct tare_tensor *w = &b->kernel->outputs[0], *v = &b->kernel->outputs[1];
    const int dtype = tare_lapack_complex(c->dtype);
    const int64_t n = c->n;
    struct value *values = b->state ? b->state : TARE_NEW_ARRAY(b->kernel->scratch, struct value, (size_t)n);
    b->state = values;
    if (!values) return TARE_NO_MEMORY;
    if (tare_matrix_run_finite(b))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Eigen decomposition was not successful. The input might not be valid.");
    sort_values(values, c->joined_w, dtype, n);
    for (int64_t k = 0; k < n; k++) {
        tare_lapack_set(w->data, w->dtype, i * n + k, values[k].number);
        for (int64_t row = 0; b->vectors && row < n; row++)
            tare_lapack_set(v->data, v->dtype, (i * n + row) * n + k,
                            tare_lapack_at(c->joined_v, dtype, values[k].column * n + row));
    }
    return TARE_OK;
}

static const struct tare_matrix_op eigh_stacked = { TARE_LAPACK_SYEVD, "+n", .run = run_hermitian },
                                   eigh = { TARE_LAPACK_SYEVD, "n nn", .run = run_hermitian },
                                   eig = { TARE_LAPACK_GEEV, "n nn", "W V", true, run_eig };

/* ---- singular values ---- */

enum { S, U, V };

/* Sets output k of matrix i to the identity, the orthogonal factor of an empty matrix; or to NaN, whose bits may all be
 * ones. */
static void put_constant(struct tare_matrix_batch *b, size_t k, int64_t i, bool is_nan) {
    struct tare_tensor *out = &b->kernel->outputs[k];
    const int64_t count = out->elements / b->count, n = tare_matrices_of(&out->shape).columns;
    const size_t bytes = (size_t)count * tare_dtype_size(out->dtype);
    memset((char *)out->data + (size_t)i * bytes, is_nan ? 0xff : 0, bytes);
    for (int64_t at = 0; !is_nan && at < count; at += n + 1)
        tare_tensor_set_f64(out, i * count + at, 1);
}

static tare_status run_svd(struct tare_matrix_batch *b, int64_t i) {
    const int64_t m = b->call.m, n = b->call.n, columns = b->call.job == 'A' ? m : least(m, n);
    const int info = b->size ? tare_matrix_run_finite(b) : -1;
    if (info > 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the singular value decomposition did not converge");
    for (size_t k = b->size ? S : U; info < 0 && k <= V; k++)
        put_constant(b, k, i, b->size > 0);
    if (info < 0) return TARE_OK;
    tare_matrix_write(&b->kernel->outputs[S], i * least(m, n), tare_lapack_real(b->call.dtype), b->call.s, least(m, n));
    if (!b->vectors) return TARE_OK;
    tare_matrix_put_columns(b, U, i * m * columns, b->call.u, m, columns, false);
    tare_matrix_conjugate(b->call.v, b->call.dtype, b->kernel->outputs[V].elements / b->count);
    tare_matrix_put(b, V, i, b->call.v); /* Vᴴ by columns is conj(V) by rows */
    return TARE_OK;
}

static const struct tare_matrix_op svd = { TARE_LAPACK_GESDD, "p mq nQ", .by_columns = true, .run = run_svd };

const struct tare_op tare_ops_decompose[] = {
    TARE_MATRIX_OP("Qr", qr),
    TARE_MATRIX_OP("SelfAdjointEig", eigh_stacked),
    TARE_MATRIX_OP("BatchSelfAdjointEig", eigh_stacked),
    TARE_MATRIX_OP("SelfAdjointEigV2", eigh),
    TARE_MATRIX_OP("BatchSelfAdjointEigV2", eigh),
    TARE_MATRIX_OP("Eig", eig),
    TARE_MATRIX_OP("Svd", svd),
    TARE_MATRIX_OP("BatchSvd", svd),
    TARE_MATRIX_OP("XlaSelfAdjointEig", eigh),
    TARE_MATRIX_OP("XlaSvd", svd),
    { 0 },
};
