/* Cholesky factors and Householder reductions of our own (small_reflectors.h), eigenvalues of a Hessenberg matrix too
 * (small_schur.c); singular values of a bidiagonal matrix by LAPACK's routine, which calls little of BLAS. */
#include "interpreter/kernels/small_lapack.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#define NUMBER double
#define NAME(function) function##_real
#define CONJ(x) (x)
#define SQUARE(x) ((x) * (x))
#include "interpreter/kernels/small_reflectors.h"
#undef NUMBER
#undef NAME
#undef CONJ
#undef SQUARE
#define NUMBER double complex
#define NAME(function) function##_complex
#define CONJ(x) conj(x)
#define SQUARE(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#include "interpreter/kernels/small_reflectors.h"

/* Runs a function for the type of the call. */
#define RUN(call, function, ...)                                                                                       \
    (tare_lapack_is_complex((call)->type) ? function##_complex(__VA_ARGS__) : function##_real(__VA_ARGS__))
#define CALL(routine, type, parameters, ...) ((void(*) parameters)tare_lapack_function_of(routine, type))(__VA_ARGS__)
typedef const void *in;
typedef void *out;

/* Whether a is small, in double, and such that squares of the elements, which are finite, cannot overflow; nor does
 * LAPACK have to scale such a matrix before iterations. */
static bool fits(const struct tare_lapack_call *c) {
    const double *a = c->a;
    double largest = 0;
    if (tare_lapack_real_size(c->type) == 4 || c->m > TARE_SMALL_MOST || c->n > TARE_SMALL_MOST) return false;
    const int parts = c->m * c->n * (tare_lapack_is_complex(c->type) ? 2 : 1);
    for (int i = 0; i < parts; i++) {
        const double x = fabs(a[i]);
        if (!(x <= 1e60)) return false; /* also NaN */
        largest = x > largest ? x : largest;
    }
    return largest == 0 || largest >= 1e-60;
}

/* ---- Cholesky, QR and singular values ---- */

/* These functions require `fits`. False: not computed, a is unchanged. */

static bool small_potrf(struct tare_lapack_call *c) {
    if (c->uplo != 'U') return false;
    c->info = RUN(c, potrf, c->n, c->a);
    return true;
}

static bool small_geqrf(struct tare_lapack_call *c) {
    RUN(c, geqrf, c->m, c->n, c->a, c->tau);
    return true;
}

static bool small_orgqr(struct tare_lapack_call *c) {
    RUN(c, orgqr, c->m, c->n, c->k, c->a, c->tau);
    return true;
}

static bool small_gesdd(struct tare_lapack_call *c) {
    const bool vectors = c->job != 'N';
    const int columns = vectors ? c->n : 0, rows = vectors ? c->m : 0, none = 0;
    double off[TARE_SMALL_MOST], tau[2 * TARE_SMALL_MOST], work[4 * TARE_SMALL_MOST], unused[2];
    if (c->m < c->n) return false;
    RUN(c, bidiagonal, c->m, c->n, c->a, c->s, off, (void *)tau, c->v);
    if (vectors) {
        memcpy(c->u, c->a, (size_t)(c->m * c->n) * tare_lapack_size(c->type));
        RUN(c, orgqr, c->m, c->job == 'A' ? c->m : c->n, c->n, c->u, (void *)tau);
    }
    CALL(TARE_LAPACK_BDSQR, c->type, (in, in, in, in, in, out, out, out, in, out, in, out, in, out, int *, size_t), "U",
         &c->n, &columns, &rows, &none, c->s, off, c->v, &c->n, c->u, &c->m, unused, &c->m, work, &c->info, 1);
    return true;
}

/* ---- eigenvalues ---- */

/* a [n, n] = Q·H·Qᴴ with H of Hessenberg form in a, zeros included. Rows and columns outside low … high - 1 are
 * triangular already. */
static void hessenberg(int n, int low, int high, double complex *a, double complex *q) {
    double complex tau[TARE_SMALL_MOST];
    for (int i = low; i + 1 < high; i++) {
        double complex *v = a + i * n + i + 1;
        const int count = high - 1 - i;
        reflect_complex(count, v, 1, &tau[i]);
        apply_complex(tau[i], count, v, 1, true, a + (i + 1) * n, n, high, 1);
        apply_complex(conj(tau[i]), count, v, 1, false, v + n, 1, n - 1 - i, n);
    }
    set_identity_complex(n, q);
    for (int i = high - 2; i >= low; i--) {
        double complex *v = a + i * n + i + 1;
        apply_complex(tau[i], high - 1 - i, v, 1, false, q + (i + 1) * n + i + 1, 1, high - 1 - i, n);
        for (int k = 1; k < high - 1 - i; k++)
            v[k] = 0;
    }
}

/* Scales each column to length one, and rotates it so that its largest element is real, as geev does. */
static void normalize_columns(int n, double complex *v) {
    for (int j = 0; j < n; j++, v += n) {
        double largest = 0, sum = 0, most = 0;
        int pivot = 0;
        for (int k = 0; k < n; k++)
            largest = fmax(largest, fmax(fabs(creal(v[k])), fabs(cimag(v[k]))));
        for (int k = 0; k < n; k++) {
            v[k] *= 1 / largest; /* squares neither overflow nor underflow */
            sum += SQUARE(v[k]);
            if (SQUARE(v[k]) > most) most = SQUARE(v[k]), pivot = k;
        }
        const double complex factor = conj(v[pivot]) / sqrt(sum * most);
        for (int k = 0; k < n; k++)
            v[k] = k == pivot ? creal(v[k] * factor) : v[k] * factor;
    }
}

/* Balances the matrix, and computes eigenvalues and vectors of the result. */
static bool solve(struct tare_lapack_call *c) {
    const int n = c->n;
    double scale[TARE_SMALL_MOST];
    double complex *a = c->a, *w = c->w;
    CALL(TARE_LAPACK_GEBAL, c->type, (in, in, out, in, int *, int *, out, int *, size_t), "B", &n, a, &n, &c->low,
         &c->high, scale, &c->info, 1);
    if (!fits(c)) return false;
    hessenberg(n, c->low - 1, c->high, a, c->v);
    if (!tare_small_schur(n, c->low - 1, c->high, a, c->v)) return false;
    for (int i = 0; i < n; i++)
        w[i] = a[i * n + i];
    if (c->job != 'V') return true;
    tare_small_schur_vectors(n, a, c->v);
    CALL(TARE_LAPACK_GEBAK, c->type, (in, in, in, in, in, in, in, out, in, int *, size_t, size_t), "B", "R", &n,
         &c->low, &c->high, scale, &n, c->v, &n, &c->info, 1, 1);
    normalize_columns(n, c->v);
    return true;
}

static bool small_geev(struct tare_lapack_call *c) {
    double complex copy[TARE_SMALL_MOST * TARE_SMALL_MOST]; /* geev has further means to converge */
    const size_t bytes = (size_t)(c->n * c->n) * sizeof *copy;
    if (c->left == 'V' || !tare_lapack_is_complex(c->type)) return false;
    memcpy(copy, c->a, bytes);
    if (solve(c)) return true;
    memcpy(c->a, copy, bytes);
    return false;
}

/* ---- choice ---- */

int tare_small_lapack_run(struct tare_lapack_call *c) {
    static bool (*const functions[TARE_LAPACK_CALLS])(struct tare_lapack_call *) = {
        [TARE_LAPACK_POTRF] = small_potrf, [TARE_LAPACK_GEQRF] = small_geqrf, [TARE_LAPACK_ORGQR] = small_orgqr,
        [TARE_LAPACK_GESDD] = small_gesdd, [TARE_LAPACK_GEEV] = small_geev,
    };
    c->info = 0;
    if (functions[c->routine] && fits(c) && functions[c->routine](c)) return c->info;
    return tare_lapack_run(c);
}
