/* Factorizations and Jacobi iterations of our own (small_factors.h), where LAPACK is slow at 4 x 4. Eigenvalues of
 * general matrices are those of a Hessenberg matrix, by our own iteration for complex types and by LAPACK's for real
 * ones, which calls no BLAS; the eigenvectors of the Schur form are LAPACK's. */
#include "interpreter/kernels/small_lapack.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 60 }; /* convergence is quadratic: six are usual */

static double square_of(double complex x) {
    return creal(x) * creal(x) + cimag(x) * cimag(x);
}
/* Whether neither a square of a magnitude nor its reciprocal lost bits or overflowed. */
static bool is_accurate(double square) {
    return square > 1e-280 && square < 1e280;
}
static double modulus_of(double complex x) {
    const double square = square_of(x);
    return is_accurate(square) ? sqrt(square) : cabs(x);
}
static double complex inverse_of(double complex x) {
    const double square = square_of(x), modulus = modulus_of(x);
    return is_accurate(square) ? conj(x) * (1 / square) : conj(x) / modulus / modulus;
}

/* For the templates below: a real number has no imaginary part to compute with. */
#define CONJ(x) _Generic((x), double complex : conj(x), default : (x))
#define SQUARE(x) _Generic((x), double complex : square_of(x), default : (x) * (x))
#define MODULUS(x) _Generic((x), double complex : modulus_of, default : fabs)(x)
#define INVERSE(x) _Generic((x), double complex : inverse_of(x), default : 1 / (x))

#define NUMBER double
#define NAME(function) function##_real
#include "interpreter/kernels/small_factors.h"
#undef NUMBER
#undef NAME
#define NUMBER double complex
#define NAME(function) function##_complex
#include "interpreter/kernels/small_factors.h"

/* Runs a function for a dtype. */
#define RUN(dtype, function, ...)                                                                                      \
    (tare_dtype_is_complex(dtype) ? function##_complex(__VA_ARGS__) : function##_real(__VA_ARGS__))

static bool is_small(int dtype, int n) {
    return tare_lapack_real(dtype) == TARE_DT_DOUBLE && n <= TARE_SMALL_MOST;
}

/* Whether squares of the elements of a, which are finite, can neither overflow nor all underflow. */
static bool has_squares(const struct tare_lapack_call *c) {
    const double *a = c->a;
    double largest = 0;
    bool fits = true;
    const int parts = c->m * c->n * (tare_dtype_is_complex(c->dtype) ? 2 : 1);
    for (int i = 0; i < parts; i++) {
        const double x = fabs(a[i]);
        fits &= x <= 1e60; /* not NaN */
        largest = x > largest ? x : largest;
    }
    return fits && (largest == 0 || largest >= 1e-60);
}

/* ---- eigenvalues of a complex Hessenberg matrix: QR iterations with explicit shifts (Golub and Van Loan, "Matrix
 * Computations", 7.5): H - shift = Q·R and H := R·Q + shift, with a product Q of reflectors of two elements, until the
 * subdiagonal is zero. The shift is the eigenvalue of the last 2 by 2 block that is nearer to its last element.
 * LAPACK's iteration (lahqr) takes longer at 4 x 4 than all other parts of geev together ---- */

/* Below 1e-140, squares are not accurate; such numbers count as zero. */
static const double smallest_square = 1e-280;

static double size_of(double complex x) {
    return fabs(creal(x)) + fabs(cimag(x));
}

/* The shift for rows and columns up to `end`; every tenth one is another, because a cycle is possible. */
static double complex shift_of(int n, const double complex *h, int end, int step) {
    const double complex *last = &h[(end - 1) * n + end - 1], *before = last - n - 1; /* on the diagonal */
    if (step % 10 == 9) return *last + 0.75 * size_of(last[-n]);
    const double complex half = 0.5 * (*before - *last), product = last[-1] * before[1];
    const double complex root = csqrt(product + half * half);
    const double complex larger = square_of(half + root) > square_of(half - root) ? half + root : half - root;
    return square_of(larger) < smallest_square ? *last : *last - product * inverse_of(larger);
}

/* One step in rows and columns start … end - 1. */
static void step_of(int n, double complex *h, double complex *q, int start, int end, double complex shift) {
    double complex tau[TARE_SMALL_MOST], v[TARE_SMALL_MOST][2];
    for (int i = start; i < end; i++)
        h[i * n + i] -= shift;
    for (int k = start; k + 1 < end; k++) {
        double complex *diagonal = &h[k * n + k];
        reflect_complex(2, diagonal, &tau[k]);
        v[k][1] = diagonal[1];
        diagonal[1] = 0;
        apply_complex(conj(tau[k]), 2, v[k], false, diagonal + n, 1, n - 1 - k, n);
    }
    for (int k = start; k + 1 < end; k++) {
        apply_complex(tau[k], 2, v[k], true, &h[k * n], n, k + 2, 1);
        apply_complex(tau[k], 2, v[k], true, &q[k * n], n, n, 1);
    }
    for (int i = start; i < end; i++)
        h[i * n + i] += shift;
}

/* Whether the element before the diagonal of a row counts as zero. */
static bool is_negligible(int n, const double complex *h, int row) {
    const double complex *diagonal = &h[row * n + row];
    return size_of(diagonal[-n]) <= DBL_EPSILON * (size_of(diagonal[-n - 1]) + size_of(*diagonal));
}

/* Eigenvalues of a Hessenberg matrix h: h becomes the Schur form, whose diagonal they are, and q of A = Q·H·Qᴴ that of
 * the Schur form. False: no convergence. */
static bool schur(int n, double complex *h, double complex *q) {
    enum { MOST_STEPS = 30 };
    for (int end = n, step = 0; end > 1; step++) {
        int start = end - 1;
        while (start > 0 && !is_negligible(n, h, start))
            start--;
        if (start > 0) h[(start - 1) * n + start] = 0;
        if (start == end - 1) {
            end--;
            step = -1;
            continue;
        }
        if (step == MOST_STEPS) return false;
        step_of(n, h, q, start, end, shift_of(n, h, end, step));
    }
    return true;
}

/* ---- eigenvalues of general matrices ---- */

/* Scales x, whose largest element trevc made about 1, to length one, and rotates it so that its largest element is
 * real, as geev does. */
static void normalize(int n, double complex *x) {
    double sum = 0;
    int pivot = 0;
    for (int k = 0; k < n; k++) {
        sum += square_of(x[k]);
        if (square_of(x[k]) > square_of(x[pivot])) pivot = k;
    }
    const double complex factor = conj(x[pivot]) * (1 / sqrt(sum * square_of(x[pivot])));
    for (int k = 0; k < n; k++)
        x[k] = k == pivot ? creal(x[k] * factor) : x[k] * factor;
}

/* [a b; c e] has the eigenvalues e + q and a - q with the vectors (q, c) and (-b, q) for q = d ± sqrt(d² + bc), d = (a
 * - e) / 2, with the sign that adds magnitudes. A conjugate pair of a real matrix is exactly conjugate. */
static bool geev_of_2(struct tare_lapack_call *call) {
    const bool is_complex = tare_dtype_is_complex(call->dtype);
    double complex m[4], *w = call->joined_w, *v = call->joined_v;
    for (int i = 0; i < 4; i++)
        m[i] = tare_lapack_at(call->a, call->dtype, i);
    const double complex a = m[0], c = m[1], b = m[2], e = m[3], d = 0.5 * (a - e), root = csqrt(d * d + b * c);
    const double complex q = d + (creal(conj(d) * root) >= 0 ? root : -root);
    w[0] = e + q, w[1] = !is_complex && cimag(q) != 0 ? conj(e + q) : a - q;
    v[0] = q == 0 && c == 0 ? 1 : q, v[1] = c;
    v[2] = -b, v[3] = q == 0 && b == 0 ? 1 : q;
    if (!is_complex && cimag(q) != 0) v[2] = conj(v[0]), v[3] = conj(v[1]);
    normalize(2, v);
    normalize(2, v + 2);
    return true;
}

/* Runs another routine of LAPACK on the arrays of the call. */
static bool run_as(enum tare_lapack_routine routine, const struct tare_lapack_call *c) {
    struct tare_lapack_call part = *c;
    part.routine = routine;
    return tare_lapack_run(&part) == 0;
}

/* Real types in real arithmetic, so that conjugate eigenvalues and vectors are exactly conjugate. */
static bool general_geev(struct tare_lapack_call *c) {
    const bool is_complex = tare_dtype_is_complex(c->dtype);
    const int n = c->n;
    RUN(c->dtype, hessenberg, n, c->a, c->v);
    if (!(is_complex ? schur(n, c->a, c->v) : run_as(TARE_LAPACK_LAHQR, c))) return false;
    for (int i = 0; is_complex && i < n; i++)
        ((double complex *)c->w)[i] = ((double complex *)c->a)[i * (n + 1)];
    if (c->job == 'V') run_as(TARE_LAPACK_TREVC, c);
    if (!is_complex) tare_lapack_join(c);
    for (int j = 0; c->job == 'V' && j < n; j++)
        normalize(n, (double complex *)c->joined_v + j * n);
    return true;
}

static bool small_geev(struct tare_lapack_call *c) {
    double complex copy[TARE_SMALL_MOST * TARE_SMALL_MOST]; /* LAPACK has further means to converge */
    const size_t bytes = (size_t)(c->n * c->n) * tare_dtype_size(c->dtype);
    if (c->left == 'V') return false;
    if (c->n == 2) return geev_of_2(c);
    memcpy(copy, c->a, bytes);
    if (general_geev(c)) return true;
    memcpy(c->a, copy, bytes);
    return false;
}

/* ---- choice ---- */

bool tare_small_lapack_try(struct tare_lapack_call *c) {
    int *info = c->info;
    *info = 0;
    if (!is_small(c->dtype, c->m > c->n ? c->m : c->n)) return false;
    switch (c->routine) {
    case TARE_LAPACK_POTRF:
        if (c->uplo != 'U') return false;
        *info = RUN(c->dtype, potrf, c->n, c->a);
        return true;
    case TARE_LAPACK_GETRF:
        *info = RUN(c->dtype, getrf, c->n, c->a, c->pivots);
        return true;
    case TARE_LAPACK_GEQRF:
        if (!has_squares(c)) return false;
        RUN(c->dtype, geqrf, c->m, c->n, c->a, c->tau);
        return true;
    case TARE_LAPACK_ORGQR:
        RUN(c->dtype, orgqr, c->m, c->n, c->k, c->a, c->tau);
        return true;
    case TARE_LAPACK_SYEVD:
        if (c->n != 2 || !has_squares(c)) return false;
        RUN(c->dtype, syevd_of_2, c->uplo == 'U', c->a, c->s);
        return true;
    case TARE_LAPACK_GESDD:
        if (c->m < c->n || !has_squares(c)) return false;
        RUN(c->dtype, gesdd, c->m, c->n, c->job == 'N' ? 0 : c->job == 'A' ? c->m : c->n, c->a, c->s, c->u, c->v);
        return true;
    case TARE_LAPACK_GEEV:
        return has_squares(c) && small_geev(c);
    default:
        return false;
    }
}

int tare_small_lapack_run(struct tare_lapack_call *c) {
    return tare_small_lapack_try(c) ? *(int *)c->info : tare_lapack_run(c);
}

void tare_small_trsm(int dtype, const char *form, int rows, int n, const void *a, void *b) {
    if (is_small(dtype, n))
        RUN(dtype, trsm, form, rows, n, a, b);
    else
        tare_lapack_trsm(dtype, form, rows, n, a, n, b, rows);
}
