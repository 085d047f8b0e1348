/* Qr, SelfAdjointEig and Svd by LAPACK in the tensor's own precision (half in float; small matrices of Qr and Svd in
 * double). Signs and phases of eigenvectors and singular vectors are not determined by the matrix, so they may differ
 * from another program's. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"

#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Sets every matrix [n, n] of the batch to the identity: the orthogonal factor of an empty matrix. */
static tare_status set_identity(struct tare_tensor *tensor, int64_t n) {
    for (int64_t i = 0; i < tensor->elements; i++)
        tare_tensor_set_f64(tensor, i, i % (n * n) % (n + 1) == 0);
    return TARE_OK;
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

/* One matrix A [m, n] and the first `columns` columns of Q. Both calls have the same `a`, which is column-major and has
 * the columns of both; `rows` is row-major. */
struct qr {
    int64_t m, n, columns;
    enum tare_lapack_type type;
    struct tare_lapack_call factor, form;
    void *rows;
};

static tare_status open_qr(struct qr *s, struct tare_kernel *kernel) {
    const int64_t wide = s->n > s->columns ? s->n : s->columns;
    TARE_TRY(tare_matrix_open(s->m, wide));
    void *a = tare_matrix_new(kernel->scratch, s->type, s->m * wide);
    s->rows = tare_matrix_new(kernel->scratch, s->type, s->m * wide);
    if (!a || !s->rows) return TARE_NO_MEMORY;
    s->factor = (struct tare_lapack_call){ TARE_LAPACK_GEQRF, s->type, .m = (int)s->m, .n = (int)s->n, .a = a };
    TARE_TRY(tare_lapack_prepare(&s->factor, kernel->scratch));
    s->form =
        (struct tare_lapack_call){ TARE_LAPACK_ORGQR,           s->type, .m = (int)s->m,      .n = (int)s->columns,
                                   .k = (int)least(s->m, s->n), .a = a,  .tau = s->factor.tau };
    return tare_lapack_prepare(&s->form, kernel->scratch);
}

/* R [columns, n] as matrix `i` of the output; what is below the diagonal of `a` are the reflectors of Q. */
static void put_r(struct qr *s, struct tare_tensor *to, int64_t i) {
    const int64_t size = s->columns * s->n;
    char *rows = s->columns < s->m ? s->rows : tare_matrix_room(to, s->type, i * size, s->rows);
    tare_matrix_transpose(rows, s->factor.a, s->type, s->n, s->m, false);
    for (int64_t row = 1; row < s->columns; row++)
        memset(rows + (size_t)(row * s->n) * tare_lapack_size(s->type), 0,
               (size_t)least(row, s->n) * tare_lapack_size(s->type));
    tare_matrix_write(to, i * size, s->type, rows, size);
}

static tare_status run_qr(struct tare_kernel *kernel) {
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    if (kernel->outputs[0].elements == 0 && kernel->outputs[1].elements == 0) return TARE_OK;
    struct qr s = { .m = input.rows, .n = input.columns };
    s.columns = tare_matrices_of(&kernel->outputs[0]).columns;
    s.type = tare_matrix_type_for(kernel->inputs[0].dtype, s.m, s.n);
    if (s.n == 0) return set_identity(&kernel->outputs[0], s.m);
    TARE_TRY(open_qr(&s, kernel));
    for (int64_t i = 0; i < input.count; i++) {
        tare_matrix_load(s.factor.a, s.type, &kernel->inputs[0], i * s.m * s.n, s.m, s.n, s.rows);
        tare_small_lapack_run(&s.factor);
        put_r(&s, &kernel->outputs[1], i);
        tare_small_lapack_run(&s.form);
        tare_matrix_store(&kernel->outputs[0], i * s.m * s.columns, s.type, s.form.a, s.m, s.columns, s.rows);
    }
    return TARE_OK;
}

/* ---- eigenvalues of Hermitian matrices ---- */

/* A row's aux: the outputs, and the attribute that requests vectors. */
struct eigen {
    bool stacked;        /* one output [n + 1, n]: the values, then the vectors */
    const char *vectors; /* NULL: always */
};
static const struct eigen eig_stacked = { .stacked = true }, eig = { .vectors = "compute_v" }, eig_always = { 0 };

static tare_status infer_eigen(struct tare_infer *infer) {
    const struct eigen *form = infer->node->def->row->aux;
    if (!form->stacked) return tare_matrix_infer_eigen(infer, form->vectors);
    TARE_TRY(tare_matrix_infer_square(infer));
    const int rank = infer->outputs[0].rank;
    if (rank > 0 && infer->outputs[0].dims[rank - 2] >= 0) infer->outputs[0].dims[rank - 2]++;
    return TARE_OK;
}

/* `count` real numbers of the type's precision to elements first … of the tensor. */
static void write_reals(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                        int64_t count) {
    for (int64_t i = 0; i < count; i++)
        tare_tensor_set_f64(to, first + i,
                            tare_lapack_real_size(type) == 4 ? (double)((const float *)from)[i]
                                                             : ((const double *)from)[i]);
}

/* One matrix: `a` becomes its eigenvectors in rows. In memory LAPACK sees conj(A), whose eigenvectors are conjugate and
 * whose triangles are exchanged. */
static tare_status eigen_of(struct tare_lapack_call *call) {
    const int64_t size = (int64_t)call->n * call->n;
    if (!tare_matrix_is_finite(call->a, call->type, size) || tare_small_lapack_run(call))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
    tare_matrix_conjugate(call->a, call->type, size);
    return TARE_OK;
}

static tare_status run_eigen(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    const int64_t n = input.rows, size = n * n, step = form->stacked ? size + n : n;
    const enum tare_lapack_type type = tare_matrix_type(kernel->inputs[0].dtype);
    if (n == 0 || input.count == 0) return TARE_OK;
    const bool lower = tare_node_bool(kernel->node, "lower", true); /* the triangle that is read */
    const bool vectors = form->stacked || kernel->outputs[1].elements;
    struct tare_lapack_call call = {
        TARE_LAPACK_SYEVD, type, .m = (int)n, .n = (int)n, .uplo = lower ? 'U' : 'L', .job = vectors ? 'V' : 'N'
    };
    TARE_TRY(tare_matrix_open(n, n));
    TARE_TRY(tare_lapack_prepare(&call, kernel->scratch));
    void *v = tare_matrix_new(kernel->scratch, type, size);
    if (!v) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < input.count; i++) {
        tare_matrix_read(call.a, type, &kernel->inputs[0], i * size, size);
        TARE_TRY(eigen_of(&call));
        write_reals(&kernel->outputs[0], i * step, type, call.s, n);
        if (!vectors) continue;
        tare_matrix_store(&kernel->outputs[form->stacked ? 0 : 1], form->stacked ? i * step + n : i * size, type,
                          call.a, n, n, v);
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
    if (form->vectors && !tare_node_bool(infer->node, form->vectors, true)) {
        infer->outputs[U] = infer->outputs[V] = tare_shape_make(1, 0);
        return TARE_OK;
    }
    TARE_TRY(tare_matrix_infer(&infer->outputs[U], infer, 0, rows, full ? rows : small));
    return tare_matrix_infer(&infer->outputs[V], infer, 0, columns, full ? columns : small);
}

/* Matrices A [rows, columns]. In memory LAPACK sees Aᵀ = conj(V)·diag(s)·Uᵀ, so its left vectors are conj(V) and its
 * right ones, in memory, U. */
struct svd {
    bool vectors;
    int64_t sizes[3]; /* of s, u and v */
    struct tare_lapack_call call;
    void *v; /* row-major */
};

/* Stores matrix `i` of the outputs; all are NaN for an input that is not finite. */
static tare_status put_svd(struct tare_kernel *kernel, struct svd *s, int64_t i, bool finite) {
    struct tare_lapack_call *call = &s->call;
    const int64_t columns = call->m;
    for (size_t k = 0; !finite && k < 3; k++)
        for (int64_t at = 0; at < s->sizes[k]; at++)
            tare_tensor_set_f64(&kernel->outputs[k], i * s->sizes[k] + at, NAN);
    if (!finite) return TARE_OK;
    if (tare_small_lapack_run(call))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the singular value decomposition did not converge");
    write_reals(&kernel->outputs[S], i * s->sizes[S], call->type, call->s, s->sizes[S]);
    if (!s->vectors) return TARE_OK;
    tare_matrix_transpose(s->v, call->u, call->type, s->sizes[V] / columns, columns, true);
    tare_matrix_write(&kernel->outputs[U], i * s->sizes[U], call->type, call->v, s->sizes[U]);
    tare_matrix_write(&kernel->outputs[V], i * s->sizes[V], call->type, s->v, s->sizes[V]);
    return TARE_OK;
}

static tare_status run_svd(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    const bool full = tare_node_bool(kernel->node, "full_matrices", false);
    struct svd s = { .vectors = !form->vectors || tare_node_bool(kernel->node, form->vectors, true) };
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    const int64_t rows = input.rows, columns = input.columns, size = rows * columns, small = least(rows, columns);
    const int64_t u_columns = !s.vectors ? 0 : full ? rows : small, v_columns = !s.vectors ? 0 : full ? columns : small;
    const enum tare_lapack_type type = tare_matrix_type_for(kernel->inputs[0].dtype, rows, columns);
    if (kernel->outputs[S].elements + kernel->outputs[U].elements + kernel->outputs[V].elements == 0) return TARE_OK;
    if (size == 0) {
        TARE_TRY(set_identity(&kernel->outputs[U], u_columns));
        return set_identity(&kernel->outputs[V], v_columns);
    }
    TARE_TRY(tare_matrix_open(rows + columns - small, full ? rows + columns - small : small));
    s.sizes[S] = small, s.sizes[U] = rows * u_columns, s.sizes[V] = columns * v_columns;
    s.call = (struct tare_lapack_call){ TARE_LAPACK_GESDD, type, .m = (int)columns, .n = (int)rows,
                                        .job = !s.vectors ? 'N'
                                               : full     ? 'A'
                                                          : 'S' };
    s.v = tare_matrix_new(kernel->scratch, type, s.sizes[V]);
    if (!s.v) return TARE_NO_MEMORY;
    TARE_TRY(tare_lapack_prepare(&s.call, kernel->scratch));
    for (int64_t i = 0; i < input.count; i++) {
        tare_matrix_read(s.call.a, type, &kernel->inputs[0], i * size, size);
        TARE_TRY(put_svd(kernel, &s, i, tare_matrix_is_finite(s.call.a, type, size)));
    }
    return TARE_OK;
}

#define TYPES "T: {double, float, half, complex64, complex128}"
#define PLAIN "T: {double, float}"
#define EIGEN(op, out, spec, form)                                                                                     \
    {                                                                                                                  \
        .name = op, .inputs = "input: T", .outputs = out, .attrs = spec, .infer = infer_eigen, .run = run_eigen,       \
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
    SVD("Svd", UV TYPES, svd),
    SVD("BatchSvd", UV "T: {double, float, complex64, complex128}", svd),
    { .name = "XlaSelfAdjointEig",
      .inputs = "a: T",
      .outputs = "w: T, v: T",
      .attrs = "lower: bool; max_iter: int; epsilon: float; T: numbertype",
      .infer = infer_eigen,
      .run = run_eigen,
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
