/* Qr, SelfAdjointEig and Svd by LAPACK in the tensor's own precision (half in float). Signs and phases of eigenvectors
 * and singular vectors are not determined by the matrix, so they may differ from another program's. */
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

/* One matrix A [m, n] and the first `columns` columns of Q. `a` is column-major for LAPACK and has the columns of both;
 * `rows` is row-major, for tensors of another dtype. */
struct qr {
    int64_t m, n, columns;
    enum tare_lapack_type type;
    struct tare_lapack_work work;
    void *rows, *a, *tau;
};

static tare_status open_qr(struct qr *s, struct tare_kernel *kernel) {
    const int64_t wide = s->n > s->columns ? s->n : s->columns;
    TARE_TRY(tare_matrix_open(s->m, wide));
    TARE_TRY(tare_lapack_qr_open(&s->work, s->type, (int)s->m, (int)s->n, (int)s->columns, kernel->scratch));
    const bool in_place = tare_matrix_in_place(&kernel->inputs[0], s->type, 0) != NULL;
    s->rows = tare_matrix_new(kernel->scratch, s->type, in_place ? 0 : s->m * wide);
    s->a = tare_matrix_new(kernel->scratch, s->type, s->m * wide);
    s->tau = tare_matrix_new(kernel->scratch, s->type, least(s->m, s->n));
    return s->rows && s->a && s->tau ? TARE_OK : TARE_NO_MEMORY;
}

/* Matrix `i` of the input to `a`, column-major. */
static void read_qr(struct qr *s, const struct tare_tensor *from, int64_t i) {
    const int64_t size = s->m * s->n;
    const void *rows = tare_matrix_in_place(from, s->type, i * size);
    if (!rows) tare_matrix_read(s->rows, s->type, from, i * size, size);
    tare_matrix_transpose(s->a, rows ? rows : s->rows, s->type, s->m, s->n, false);
}

/* Q as matrix `i` of the output. */
static void put_q(struct qr *s, struct tare_tensor *to, int64_t i) {
    const int64_t size = s->m * s->columns;
    void *rows = tare_matrix_in_place(to, s->type, i * size);
    tare_matrix_transpose(rows ? rows : s->rows, s->a, s->type, s->columns, s->m, false);
    if (!rows) tare_matrix_write(to, i * size, s->type, s->rows, size);
}

/* In tiles, as tare_matrix_transpose. */
#define TRANSPOSE_UPPER(type)                                                                                          \
    for (int64_t first = 0; first < s->n; first += TILE)                                                               \
        for (int64_t i = 0; i < rows && i < first + TILE; i++)                                                         \
            for (int64_t j = i > first ? i : first; j < s->n && j < first + TILE; j++)                                 \
                ((type *)to)[i * s->n + j] = ((const type *)s->a)[j * s->m + i];

/* to [columns, n] = R; what is below the diagonal of `a` are the reflectors of Q. */
static void take_r(const struct qr *s, void *to) {
    enum { TILE = 8 };
    const int64_t rows = least(s->columns, s->n);
    const size_t size = tare_lapack_size(s->type);
    for (int64_t i = 0; i < s->columns; i++)
        memset((char *)to + (size_t)(i * s->n) * size, 0, (size_t)least(i, s->n) * size);
    switch (tare_lapack_size(s->type)) {
    case 4:
        TRANSPOSE_UPPER(float)
        break;
    case 8:
        TRANSPOSE_UPPER(double)
        break;
    default:
        TRANSPOSE_UPPER(tare_complex)
        break;
    }
}
#undef TRANSPOSE_UPPER

static void put_r(struct qr *s, struct tare_tensor *to, int64_t i) {
    const int64_t size = s->columns * s->n;
    void *rows = tare_matrix_in_place(to, s->type, i * size);
    take_r(s, rows ? rows : s->rows);
    if (!rows) tare_matrix_write(to, i * size, s->type, s->rows, size);
}

static tare_status run_qr(struct tare_kernel *kernel) {
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    if (kernel->outputs[0].elements == 0 && kernel->outputs[1].elements == 0) return TARE_OK;
    struct qr s = { .m = input.rows, .n = input.columns, .type = tare_matrix_type(kernel->inputs[0].dtype) };
    s.columns = tare_matrices_of(&kernel->outputs[0]).columns;
    if (s.n == 0) return set_identity(&kernel->outputs[0], s.m);
    TARE_TRY(open_qr(&s, kernel));
    for (int64_t i = 0; i < input.count; i++) {
        read_qr(&s, &kernel->inputs[0], i);
        tare_lapack_geqrf(&s.work, s.a, s.tau);
        put_r(&s, &kernel->outputs[1], i);
        tare_lapack_orgqr(&s.work, s.a, s.tau);
        put_q(&s, &kernel->outputs[0], i);
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
static tare_status eigen_of(const struct tare_lapack_work *work, void *a, void *values, bool lower) {
    const int64_t size = (int64_t)work->n * work->n;
    if (!tare_matrix_is_finite(a, work->type, size) || tare_lapack_syevd(work, lower, a, values))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
    tare_matrix_conjugate(a, work->type, size);
    return TARE_OK;
}

static tare_status run_eigen(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    const enum tare_lapack_type type = tare_matrix_type(kernel->inputs[0].dtype);
    struct tare_lapack_work work;
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    const int64_t n = input.rows, size = n * n;
    if (n == 0 || input.count == 0) return TARE_OK;
    const bool lower = tare_node_bool(kernel->node, "lower", true); /* the triangle that is read */
    const bool vectors = form->stacked || kernel->outputs[1].elements;
    TARE_TRY(tare_matrix_open(n, n));
    TARE_TRY(tare_lapack_eigh_open(&work, type, (int)n, vectors ? 'V' : 'N', kernel->scratch));
    void *a = tare_matrix_new(kernel->scratch, type, size), *v = tare_matrix_new(kernel->scratch, type, size);
    void *values = tare_matrix_new(kernel->scratch, type, n);
    if (!a || !v || !values) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < input.count; i++) {
        const int64_t step = form->stacked ? size + n : n;
        tare_matrix_read(a, type, &kernel->inputs[0], i * size, size);
        TARE_TRY(eigen_of(&work, a, values, lower));
        write_reals(&kernel->outputs[0], i * step, type, values, n);
        if (!vectors) continue;
        tare_matrix_transpose(v, a, type, n, n, false);
        tare_matrix_write(&kernel->outputs[form->stacked ? 0 : 1], form->stacked ? i * step + n : i * size, type, v,
                          size);
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

/* One matrix A [rows, columns]. In memory LAPACK sees Aᵀ = conj(V)·diag(s)·Uᵀ, so its left vectors are conj(V) and its
 * right ones, in memory, U. */
struct svd {
    int64_t rows, columns, u_columns, v_columns;
    enum tare_lapack_type type;
    struct tare_lapack_work work;
    void *a, *s, *u, *v, *v_rows;
};

static tare_status open_svd(struct svd *s, struct tare_kernel *kernel, char job) {
    const int64_t most = s->rows > s->columns ? s->rows : s->columns;
    TARE_TRY(tare_matrix_open(most, job == 'A' ? most : least(s->rows, s->columns)));
    TARE_TRY(tare_lapack_svd_open(&s->work, s->type, (int)s->columns, (int)s->rows, job, kernel->scratch));
    s->a = tare_matrix_new(kernel->scratch, s->type, s->rows * s->columns);
    s->s = tare_matrix_new(kernel->scratch, s->type, least(s->rows, s->columns));
    s->u = tare_matrix_new(kernel->scratch, s->type, s->rows * s->u_columns);
    s->v = tare_matrix_new(kernel->scratch, s->type, s->columns * s->v_columns);
    s->v_rows = tare_matrix_new(kernel->scratch, s->type, s->columns * s->v_columns);
    return s->a && s->s && s->u && s->v && s->v_rows ? TARE_OK : TARE_NO_MEMORY;
}

/* Stores matrix `i` of the outputs; all are NaN for an input that is not finite. */
static tare_status put_svd(struct tare_kernel *kernel, struct svd *s, int64_t i, bool vectors, bool finite) {
    const int64_t small = least(s->rows, s->columns), u_size = s->rows * s->u_columns;
    const int64_t v_size = s->columns * s->v_columns;
    if (finite && tare_lapack_gesdd(&s->work, s->a, s->s, s->v, s->u))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the singular value decomposition did not converge");
    if (finite) {
        write_reals(&kernel->outputs[S], i * small, s->type, s->s, small);
        if (!vectors) return TARE_OK;
        tare_matrix_transpose(s->v_rows, s->v, s->type, s->v_columns, s->columns, true);
        tare_matrix_write(&kernel->outputs[U], i * u_size, s->type, s->u, u_size);
        tare_matrix_write(&kernel->outputs[V], i * v_size, s->type, s->v_rows, v_size);
        return TARE_OK;
    }
    const int64_t sizes[] = { small, vectors ? u_size : 0, vectors ? v_size : 0 };
    for (size_t k = 0; k < 3; k++)
        for (int64_t at = 0; at < sizes[k]; at++)
            tare_tensor_set_f64(&kernel->outputs[k], i * sizes[k] + at, NAN);
    return TARE_OK;
}

static tare_status run_svd(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    const bool full = tare_node_bool(kernel->node, "full_matrices", false);
    const bool vectors = !form->vectors || tare_node_bool(kernel->node, form->vectors, true);
    struct tare_matrices input;
    TARE_TRY(tare_matrix_outputs(kernel, &input));
    struct svd s = { .rows = input.rows, .columns = input.columns, .type = tare_matrix_type(kernel->inputs[0].dtype) };
    const int64_t size = s.rows * s.columns, small = least(s.rows, s.columns);
    s.u_columns = !vectors ? 0 : full ? s.rows : small;
    s.v_columns = !vectors ? 0 : full ? s.columns : small;
    if (kernel->outputs[S].elements + kernel->outputs[U].elements + kernel->outputs[V].elements == 0) return TARE_OK;
    if (size == 0) {
        TARE_TRY(set_identity(&kernel->outputs[U], s.u_columns));
        return set_identity(&kernel->outputs[V], s.v_columns);
    }
    TARE_TRY(open_svd(&s, kernel, !vectors ? 'N' : full ? 'A' : 'S'));
    for (int64_t i = 0; i < input.count; i++) {
        tare_matrix_read(s.a, s.type, &kernel->inputs[0], i * size, size);
        TARE_TRY(put_svd(kernel, &s, i, vectors, tare_matrix_is_finite(s.a, s.type, size)));
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
