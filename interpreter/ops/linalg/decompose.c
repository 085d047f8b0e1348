/* Decompositions of matrices, and functions of square ones, in complex double, rounded once. Signs and phases of
 * eigenvectors and singular vectors are not determined by the matrix: they may differ from another program's. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- QR: Householder's reflections ---- */

static tare_status infer_qr(struct tare_infer *infer) {
    int64_t rows, columns;
    const bool full = tare_node_bool(infer->node, "full_matrices", false);
    TARE_TRY(tare_matrix_infer_dims(&rows, &columns, infer, 0));
    const int64_t small = rows >= 0 && columns >= 0 ? least(rows, columns) : TARE_UNKNOWN_DIM;
    TARE_TRY(tare_matrix_infer(&infer->outputs[0], infer, 0, rows, full ? rows : small));
    return tare_matrix_infer(&infer->outputs[1], infer, 0, full ? rows : small, columns);
}

/* Column `at` of r [m, n] below its diagonal becomes zero; v gets the reflection's vector (v[at] = 1) and the result is
 * its factor: H = 1 - tau v vᴴ. */
static tare_complex reflect(tare_complex *v, tare_complex *r, int64_t m, int64_t n, int64_t at) {
    const tare_complex alpha = r[at * n + at];
    double tail = 0;
    for (int64_t i = at + 1; i < m; i++)
        tail += creal(r[i * n + at] * conj(r[i * n + at]));
    if (tail == 0 && cimag(alpha) == 0) return 0;
    double beta = sqrt(creal(alpha * conj(alpha)) + tail);
    if (creal(alpha) >= 0) beta = -beta;
    for (int64_t i = at + 1; i < m; i++)
        v[i] = r[i * n + at] / (alpha - beta);
    v[at] = 1;
    return (beta - alpha) / beta;
}

/* rows [m, n] = (1 - tau v vᴴ) rows, from column `first` on. */
static void apply_reflection(tare_complex *rows, const tare_complex *v, tare_complex tau, int64_t m, int64_t n,
                             int64_t at, int64_t first) {
    for (int64_t c = first; c < n; c++) {
        tare_complex sum = 0;
        for (int64_t i = at; i < m; i++)
            sum += conj(v[i]) * rows[i * n + c];
        sum *= tau;
        for (int64_t i = at; i < m; i++)
            rows[i * n + c] -= v[i] * sum;
    }
}

struct qr {
    int64_t m, n, wide; /* columns of q */
    tare_complex *r, *q, *vectors, *tau;
};

/* r [m, n] becomes R; q [m, wide] becomes Q. */
static void factor_qr(struct qr *s) {
    const int64_t steps = least(s->m, s->n);
    for (int64_t k = 0; k < steps; k++) {
        tare_complex *v = s->vectors + k * s->m;
        s->tau[k] = reflect(v, s->r, s->m, s->n, k);
        if (s->tau[k] == 0) continue;
        apply_reflection(s->r, v, conj(s->tau[k]), s->m, s->n, k, k);
        for (int64_t i = k + 1; i < s->m; i++)
            s->r[i * s->n + k] = 0;
    }
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t c = 0; c < s->wide; c++)
            s->q[i * s->wide + c] = i == c;
    for (int64_t k = steps - 1; k >= 0; k--)
        if (s->tau[k] != 0) apply_reflection(s->q, s->vectors + k * s->m, s->tau[k], s->m, s->wide, k, 0);
}

static tare_status run_qr(struct tare_kernel *kernel) {
    struct tare_matrices input;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_matrices_of(&input, &kernel->inputs[0], "input"));
    for (size_t i = 0; i < 2; i++)
        TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[0].dtype, &shapes[i]));
    struct qr s = { .m = input.rows, .n = input.columns };
    const int64_t small = least(s.m, s.n), size = s.m * s.n;
    s.wide = shapes[0].dims[shapes[0].rank - 1];
    s.r = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size + 1);
    s.q = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(s.m * s.wide) + 1);
    s.vectors = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(small * s.m) + 1);
    s.tau = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)small + 1);
    if (!s.r || !s.q || !s.vectors || !s.tau) return TARE_NO_MEMORY;
    const int64_t r_size = (s.wide == s.m ? s.m : small) * s.n;
    for (int64_t i = 0; (kernel->outputs[0].elements || kernel->outputs[1].elements) && i < input.count; i++) {
        tare_matrix_load(s.r, &kernel->inputs[0], i * size, size);
        factor_qr(&s);
        tare_matrix_store(&kernel->outputs[0], i * s.m * s.wide, s.q, s.m * s.wide);
        tare_matrix_store(&kernel->outputs[1], i * r_size, s.r, r_size);
    }
    return TARE_OK;
}

/* ---- eigenvalues of Hermitian matrices ---- */

/* A row's aux: what comes out, and how it is asked for. */
struct eigen {
    bool stacked;        /* one output [n + 1, n]: the values, then the vectors */
    const char *vectors; /* attribute that asks for vectors; NULL: always */
};
static const struct eigen eig_stacked = { .stacked = true }, eig = { .vectors = "compute_v" }, eig_always = { 0 };

static tare_status infer_eigen(struct tare_infer *infer) {
    const struct eigen *form = infer->node->def->row->aux;
    struct tare_shape square;
    struct tare_infer inner = *infer;
    inner.outputs = &square;
    TARE_TRY(tare_matrix_infer_square(&inner));
    if (square.rank < 0) return TARE_OK;
    infer->outputs[0] = square;
    if (form->stacked) {
        int64_t *rows = &infer->outputs[0].dims[square.rank - 2];
        if (*rows >= 0) ++*rows;
        return TARE_OK;
    }
    infer->outputs[0].rank--;
    infer->outputs[1] =
        form->vectors && !tare_node_bool(infer->node, form->vectors, true) ? tare_shape_make(1, 0) : square;
    return TARE_OK;
}

static tare_status run_eigen(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    struct tare_matrices input;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_matrices_of(&input, &kernel->inputs[0], "input"));
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[0].dtype, &shapes[i]));
    const int64_t n = input.rows, size = n * n;
    const bool upper = !tare_node_bool(kernel->node, "lower", true); /* the triangle that is read */
    tare_complex *a = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size + 1);
    tare_complex *v = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size + 1);
    double *values = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)n + 1);
    if (!a || !v || !values) return TARE_NO_MEMORY;
    for (int64_t i = 0; n && i < input.count; i++) {
        tare_matrix_load(upper ? v : a, &kernel->inputs[0], i * size, size);
        if (upper) tare_matrix_adjoint(a, v, n, n);
        tare_matrix_eigen(values, v, a, n);
        for (int64_t k = 0; k < n; k++)
            tare_tensor_set_f64(&kernel->outputs[0], form->stacked ? i * (size + n) + k : i * n + k, values[k]);
        if (form->stacked)
            tare_matrix_store(&kernel->outputs[0], i * (size + n) + n, v, size);
        else if (kernel->outputs[1].elements)
            tare_matrix_store(&kernel->outputs[1], i * size, v, size);
    }
    return TARE_OK;
}

/* ---- singular values: columns made orthogonal by rotations from the right ---- */

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

struct svd {
    int64_t m, n; /* of the matrix as it is worked: m >= n */
    tare_complex *a, *v, *basis, *spare;
    double *values;
};

/* Columns p and q of a (and of v) become orthogonal; whether they were not. */
static bool orthogonalize(struct svd *s, int64_t p, int64_t q) {
    double pp = 0, qq = 0;
    tare_complex pq = 0;
    for (int64_t i = 0; i < s->m; i++) {
        const tare_complex x = s->a[i * s->n + p], y = s->a[i * s->n + q];
        pp += creal(x * conj(x));
        qq += creal(y * conj(y));
        pq += conj(x) * y;
    }
    const double size = cabs(pq);
    if (!(size > 1e-15 * sqrt(pp) * sqrt(qq)) || !isfinite(size)) return false;
    const double theta = (qq - pp) / (2 * size);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1);
    const tare_complex su = t * c * (pq / size);
    tare_complex *const both[] = { s->a, s->v };
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < (k == 0 ? s->m : s->n); i++) {
            tare_complex *row = both[k] + i * s->n;
            const tare_complex x = row[p], y = row[q];
            row[p] = c * x - conj(su) * y;
            row[q] = su * x + c * y;
        }
    return true;
}

/* Greatest value first. */
static void sort_values(struct svd *s) {
    for (int64_t i = 0; i < s->n; i++) {
        int64_t best = i;
        for (int64_t k = i + 1; k < s->n; k++)
            if (s->values[k] > s->values[best]) best = k;
        const double moved = s->values[i];
        s->values[i] = s->values[best];
        s->values[best] = moved;
        for (int64_t r = 0; best != i && r < s->m + s->n; r++) {
            tare_complex *row = r < s->m ? s->a + r * s->n : s->v + (r - s->m) * s->n;
            const tare_complex element = row[i];
            row[i] = row[best];
            row[best] = element;
        }
    }
}

/* Columns of basis [rows, wide] from `have` on: unit vectors made orthogonal to those in front. */
static void complete(tare_complex *basis, int64_t rows, int64_t wide, int64_t have, tare_complex *spare) {
    for (int64_t unit = 0; have < wide && unit < rows; unit++) {
        double norm = 0;
        for (int64_t i = 0; i < rows; i++)
            spare[i] = i == unit;
        for (int pass = 0; pass < 2; pass++) /* the second takes off what rounding left */
            for (int64_t c = 0; c < have; c++) {
                tare_complex part = 0;
                for (int64_t i = 0; i < rows; i++)
                    part += conj(basis[i * wide + c]) * spare[i];
                for (int64_t i = 0; i < rows; i++)
                    spare[i] -= part * basis[i * wide + c];
            }
        for (int64_t i = 0; i < rows; i++)
            norm += creal(spare[i] * conj(spare[i]));
        if (norm < 0.5 / (double)rows) continue; /* one unit vector has at least this much outside of the rest */
        for (int64_t i = 0; i < rows; i++)
            basis[i * wide + have] = spare[i] / sqrt(norm);
        have++;
    }
}

static void decompose(struct svd *s) {
    enum { MOST_SWEEPS = 60 };
    for (int64_t i = 0; i < s->n * s->n; i++)
        s->v[i] = i / s->n == i % s->n;
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        bool turned = false;
        for (int64_t p = 0; p < s->n; p++)
            for (int64_t q = p + 1; q < s->n; q++)
                turned |= orthogonalize(s, p, q);
        if (!turned) break;
    }
    for (int64_t c = 0; c < s->n; c++) {
        double sum = 0;
        for (int64_t i = 0; i < s->m; i++)
            sum += creal(s->a[i * s->n + c] * conj(s->a[i * s->n + c]));
        s->values[c] = sqrt(sum);
    }
    sort_values(s);
}

/* The left vectors as columns of basis [m, wide]: columns of a over their lengths, completed where a length is nothing.
 */
static void left_vectors(struct svd *s, int64_t wide) {
    int64_t have = 0;
    while (have < s->n && have < wide && s->values[have] > s->values[0] * 1e-14)
        have++;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t c = 0; c < have; c++)
            s->basis[i * wide + c] = s->a[i * s->n + c] / s->values[c];
    complete(s->basis, s->m, wide, have, s->spare);
}

static void put_vectors(struct tare_kernel *kernel, struct svd *s, int64_t index, bool turned, bool full) {
    struct tare_tensor *left = &kernel->outputs[turned ? V : U], *right = &kernel->outputs[turned ? U : V];
    const int64_t wide = full ? s->m : s->n;
    left_vectors(s, wide);
    tare_matrix_store(left, index * s->m * wide, s->basis, s->m * wide);
    tare_matrix_store(right, index * s->n * s->n, s->v, s->n * s->n);
}

static tare_status open_svd(struct svd *s, struct tare_kernel *kernel, bool full) {
    int64_t square = 0;
    if (full && __builtin_mul_overflow(s->m, s->m, &square)) return TARE_NO_MEMORY;
    const size_t size = (size_t)(s->m * s->n);
    s->a = TARE_NEW_ARRAY(kernel->scratch, tare_complex, size + 1);
    s->v = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)(s->n * s->n) + 1);
    s->basis = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (full ? (size_t)square : size) + 1);
    s->spare = TARE_NEW_ARRAY(kernel->scratch, tare_complex, size + (size_t)s->m + 1);
    s->values = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)s->n + 1);
    return s->a && s->v && s->basis && s->spare && s->values ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status run_svd(struct tare_kernel *kernel) {
    const struct eigen *form = kernel->op->aux;
    const bool full = tare_node_bool(kernel->node, "full_matrices", false);
    const bool vectors = !form->vectors || tare_node_bool(kernel->node, form->vectors, true);
    struct tare_matrices input;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_matrices_of(&input, &kernel->inputs[0], "input"));
    for (size_t i = 0; i < 3; i++)
        TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[0].dtype, &shapes[i]));
    const bool turned = input.rows < input.columns; /* the adjoint is worked, and u and v change places */
    const int64_t size = input.rows * input.columns;
    struct svd s = { .m = turned ? input.columns : input.rows, .n = turned ? input.rows : input.columns };
    if (kernel->outputs[S].elements + kernel->outputs[U].elements + kernel->outputs[V].elements == 0) return TARE_OK;
    TARE_TRY(open_svd(&s, kernel, full));
    for (int64_t i = 0; i < input.count; i++) {
        tare_matrix_load(turned ? s.spare : s.a, &kernel->inputs[0], i * size, size);
        if (turned) tare_matrix_adjoint(s.a, s.spare, input.rows, input.columns);
        decompose(&s);
        for (int64_t k = 0; k < s.n; k++)
            tare_tensor_set_f64(&kernel->outputs[S], i * s.n + k, s.values[k]);
        if (vectors) put_vectors(kernel, &s, i, turned, full);
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
