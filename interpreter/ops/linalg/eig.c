/* Eigenvalues and right eigenvectors of matrices that need not be Hermitian, in complex double: Householder's way to
 * Hessenberg form, then the QR iteration with Wilkinson's shifts to Schur's, whose vectors follow by substitution. */
#include "base/alloc.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 60 }; /* an eigenvalue; a few are usual */

/* t = adjoint(q) · a · q; all [n, n]. */
struct schur {
    tare_complex *t, *q;
    int64_t n;
};

static double size_of(tare_complex z) {
    return fabs(creal(z)) + fabs(cimag(z));
}

/* ---- Hessenberg form ---- */

/* Rows and columns k + 1 … of t, and columns of q, are reflected by 1 - 2 v v*, v of length one. */
static void reflect(const struct schur *s, const tare_complex *v, int64_t k) {
    const int64_t n = s->n;
    for (int64_t j = k; j < n; j++) {
        tare_complex dot = 0;
        for (int64_t i = k + 1; i < n; i++)
            dot += conj(v[i]) * s->t[i * n + j];
        for (int64_t i = k + 1; i < n; i++)
            s->t[i * n + j] -= 2 * v[i] * dot;
    }
    for (int which = 0; which < 2; which++) {
        tare_complex *m = which ? s->q : s->t;
        for (int64_t i = 0; i < n; i++) {
            tare_complex dot = 0;
            for (int64_t j = k + 1; j < n; j++)
                dot += m[i * n + j] * v[j];
            for (int64_t j = k + 1; j < n; j++)
                m[i * n + j] -= 2 * dot * conj(v[j]);
        }
    }
}

static void to_hessenberg(const struct schur *s, tare_complex *v) {
    const int64_t n = s->n;
    for (int64_t k = 0; k + 2 < n; k++) {
        double below = 0, norm = 0;
        for (int64_t i = k + 1; i < n; i++) {
            v[i] = s->t[i * n + k];
            norm = hypot(norm, cabs(v[i]));
            if (i > k + 1) below += size_of(v[i]);
        }
        if (below == 0) continue;
        const double first = cabs(v[k + 1]);
        v[k + 1] += first > 0 ? v[k + 1] / first * norm : norm;
        double length = 0;
        for (int64_t i = k + 1; i < n; i++)
            length = hypot(length, cabs(v[i]));
        for (int64_t i = k + 1; i < n; i++)
            v[i] /= length;
        reflect(s, v, k);
        for (int64_t i = k + 2; i < n; i++)
            s->t[i * n + k] = 0;
    }
}

/* ---- Schur form ---- */

/* The eigenvalue of the last two rows and columns of the block that lies nearer to its corner. */
static tare_complex shift_of(const struct schur *s, int64_t last) {
    const int64_t n = s->n;
    const tare_complex a = s->t[(last - 1) * n + last - 1], b = s->t[(last - 1) * n + last];
    const tare_complex c = s->t[last * n + last - 1], d = s->t[last * n + last];
    const tare_complex half = (a - d) / 2, root = csqrt(half * half + b * c);
    const tare_complex x = d + half + root, y = d + half - root;
    return cabs(x - d) < cabs(y - d) ? x : y;
}

/* Rows i and i + 1 from column `from` on become (c x + s y, c y - conj(s) x): c real. */
struct rotation {
    double c;
    tare_complex s;
};

static struct rotation rotation_of(tare_complex x, tare_complex y) {
    const double norm = hypot(cabs(x), cabs(y)), first = cabs(x);
    if (norm == 0) return (struct rotation){ 1, 0 };
    if (first == 0) return (struct rotation){ 0, conj(y) / norm };
    return (struct rotation){ first / norm, x / first * conj(y) / norm };
}

static void rotate_rows(const struct schur *s, struct rotation r, int64_t i, int64_t from) {
    for (int64_t j = from; j < s->n; j++) {
        tare_complex *x = &s->t[i * s->n + j], *y = x + s->n;
        const tare_complex top = r.c * *x + r.s * *y;
        *y = r.c * *y - conj(r.s) * *x;
        *x = top;
    }
}

static void rotate_columns(tare_complex *m, int64_t n, struct rotation r, int64_t i, int64_t rows) {
    for (int64_t k = 0; k < rows; k++) {
        tare_complex *x = &m[k * n + i], *y = x + 1;
        const tare_complex left = r.c * *x + conj(r.s) * *y;
        *y = r.c * *y - r.s * *x;
        *x = left;
    }
}

/* One step with a shift on rows first … last. */
static void sweep(const struct schur *s, int64_t first, int64_t last, tare_complex shift, struct rotation *rotations) {
    const int64_t n = s->n;
    for (int64_t i = first; i <= last; i++)
        s->t[i * n + i] -= shift;
    for (int64_t i = first; i < last; i++) {
        rotations[i] = rotation_of(s->t[i * n + i], s->t[(i + 1) * n + i]);
        rotate_rows(s, rotations[i], i, i);
    }
    for (int64_t i = first; i < last; i++) {
        rotate_columns(s->t, n, rotations[i], i, (i + 2 <= last ? i + 2 : last) + 1);
        rotate_columns(s->q, n, rotations[i], i, n);
    }
    for (int64_t i = first; i <= last; i++)
        s->t[i * n + i] += shift;
}

static bool to_schur(const struct schur *s, struct rotation *rotations) {
    const int64_t n = s->n;
    int sweeps = 0;
    for (int64_t last = n - 1; last > 0;) {
        int64_t first = last;
        while (first > 0) {
            tare_complex *below = &s->t[first * n + first - 1];
            double near = size_of(s->t[first * n + first]) + size_of(s->t[(first - 1) * n + first - 1]);
            if (near == 0) near = 1;
            if (size_of(*below) <= DBL_EPSILON * near) {
                *below = 0;
                break;
            }
            first--;
        }
        if (first == last) {
            last--;
            sweeps = 0;
            continue;
        }
        if (++sweeps > MOST_SWEEPS) return false;
        /* now and then another shift, for matrices that the usual one leaves as they are */
        const tare_complex shift =
            sweeps % 10 == 0 ? cabs(s->t[last * n + last - 1]) + s->t[last * n + last] : shift_of(s, last);
        sweep(s, first, last, shift, rotations);
    }
    return true;
}

/* ---- vectors ---- */

/* Column k of v: q times the vector of t's eigenvalue k, of length one. `x` has room for n. */
static void vector_of(tare_complex *v, const struct schur *s, int64_t k, tare_complex *x, double smallest) {
    const int64_t n = s->n;
    double length = 0;
    x[k] = 1;
    for (int64_t i = k - 1; i >= 0; i--) {
        tare_complex sum = 0, gap = s->t[k * n + k] - s->t[i * n + i];
        for (int64_t j = i + 1; j <= k; j++)
            sum += s->t[i * n + j] * x[j];
        if (cabs(gap) < smallest) gap = smallest;
        x[i] = sum / gap;
    }
    for (int64_t i = 0; i < n; i++) {
        tare_complex sum = 0;
        for (int64_t j = 0; j <= k; j++)
            sum += s->q[i * n + j] * x[j];
        v[i * n + k] = sum;
        length = hypot(length, cabs(sum));
    }
    for (int64_t i = 0; i < n && length > 0; i++)
        v[i * n + k] /= length;
}

/* By rising magnitude, as TensorFlow has them; columns of v follow. */
static void sort(tare_complex *values, tare_complex *v, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t least = i;
        for (int64_t k = i + 1; k < n; k++)
            if (cabs(values[k]) < cabs(values[least])) least = k;
        if (least == i) continue;
        const tare_complex value = values[i];
        values[i] = values[least];
        values[least] = value;
        for (int64_t row = 0; v && row < n; row++) {
            const tare_complex part = v[row * n + i];
            v[row * n + i] = v[row * n + least];
            v[row * n + least] = part;
        }
    }
}

struct work {
    struct schur schur;
    tare_complex *values, *vectors, *spare;
    struct rotation *rotations;
};

static tare_status decompose(struct work *w, bool vectors) {
    const int64_t n = w->schur.n;
    double largest = 0;
    memset(w->schur.q, 0, (size_t)(n * n) * sizeof *w->schur.q);
    for (int64_t i = 0; i < n * n; i++) {
        if (!isfinite(creal(w->schur.t[i])) || !isfinite(cimag(w->schur.t[i])))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Eigen decomposition was not successful. The input might not be valid.");
        if (size_of(w->schur.t[i]) > largest) largest = size_of(w->schur.t[i]);
    }
    for (int64_t i = 0; i < n; i++)
        w->schur.q[i * n + i] = 1;
    to_hessenberg(&w->schur, w->spare);
    if (!to_schur(&w->schur, w->rotations))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Eigen decomposition was not successful: no end after %d sweeps",
                         MOST_SWEEPS);
    for (int64_t k = 0; k < n; k++) {
        w->values[k] = w->schur.t[k * n + k];
        if (vectors) vector_of(w->vectors, &w->schur, k, w->spare, fmax(DBL_EPSILON * largest, DBL_MIN));
    }
    sort(w->values, vectors ? w->vectors : NULL, n);
    return TARE_OK;
}

/* ---- the op ---- */

static tare_status infer_eig(struct tare_infer *infer) {
    struct tare_shape square;
    struct tare_infer inner = *infer;
    inner.outputs = &square;
    square = tare_shape_unknown();
    TARE_TRY(tare_matrix_infer_square(&inner));
    if (square.rank < 0) return TARE_OK;
    infer->outputs[0] = square;
    infer->outputs[0].rank--;
    infer->outputs[1] = tare_node_bool(infer->node, "compute_v", true) ? square : tare_shape_make(1, (int64_t)0);
    return TARE_OK;
}

static tare_status run_eig(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const bool vectors = tare_node_bool(kernel->node, "compute_v", true);
    const int to = tare_dtype_base(kernel->node->output_dtypes[0]);
    struct tare_matrices m;
    struct tare_shape values, none = tare_shape_make(1, (int64_t)0);
    TARE_TRY(tare_matrices_of(&m, input, "input"));
    if (m.rows != m.columns)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld by %lld)", (long long)m.rows,
                         (long long)m.columns);
    values = input->shape;
    values.rank--;
    TARE_TRY(tare_kernel_output(kernel, 0, to, &values));
    TARE_TRY(tare_kernel_output(kernel, 1, to, vectors ? &input->shape : &none));
    const int64_t n = m.rows, size = n * n;
    struct work w = { .schur = { .n = n } };
    w.schur.t = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size);
    w.schur.q = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size);
    w.vectors = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)size);
    w.values = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)n);
    w.spare = TARE_NEW_ARRAY(kernel->scratch, tare_complex, (size_t)n);
    w.rotations = TARE_NEW_ARRAY(kernel->scratch, struct rotation, (size_t)n);
    if (!w.schur.t || !w.schur.q || !w.vectors || !w.values || !w.spare || !w.rotations) return TARE_NO_MEMORY;
    for (int64_t i = 0; n > 0 && i < m.count; i++) {
        tare_matrix_load(w.schur.t, input, i * size, size);
        TARE_TRY(decompose(&w, vectors));
        tare_matrix_store(&kernel->outputs[0], i * n, w.values, n);
        if (vectors) tare_matrix_store(&kernel->outputs[1], i * size, w.vectors, size);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_eig[] = {
    { .name = "Eig",
      .inputs = "input: T",
      .outputs = "e: Tout, v: Tout",
      .attrs = "compute_v: bool = true; T: {float, double, complex64, complex128}; Tout: {complex64, complex128}",
      .infer = infer_eig,
      .run = run_eig },
    { 0 },
};
