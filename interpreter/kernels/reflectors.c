/* Each function is compiled once per type from one body with a constant type. */
#include "interpreter/kernels/reflectors.h"

#include "interpreter/kernels/small_number.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- elements ---- */

/* Elements `step` apart. */
struct vector {
    void *data;
    int64_t step;
};

TARE_ALWAYS_INLINE struct tare_number get(enum tare_lapack_type type, const void *x, int64_t i) {
    switch (type) {
    case TARE_LAPACK_S:
        return (struct tare_number){ (double)((const float *)x)[i], 0 };
    case TARE_LAPACK_D:
        return (struct tare_number){ ((const double *)x)[i], 0 };
    case TARE_LAPACK_C:
        return (struct tare_number){ (double)((const float *)x)[2 * i], (double)((const float *)x)[2 * i + 1] };
    default:
        return (struct tare_number){ ((const double *)x)[2 * i], ((const double *)x)[2 * i + 1] };
    }
}

TARE_ALWAYS_INLINE void put(enum tare_lapack_type type, void *x, int64_t i, struct tare_number value) {
    switch (type) {
    case TARE_LAPACK_S:
        ((float *)x)[i] = (float)value.re;
        break;
    case TARE_LAPACK_D:
        ((double *)x)[i] = value.re;
        break;
    case TARE_LAPACK_C:
        ((float *)x)[2 * i] = (float)value.re;
        ((float *)x)[2 * i + 1] = (float)value.im;
        break;
    default:
        ((double *)x)[2 * i] = value.re;
        ((double *)x)[2 * i + 1] = value.im;
        break;
    }
}

TARE_ALWAYS_INLINE void put_real(enum tare_lapack_type type, void *x, int64_t i, double value) {
    put(tare_lapack_real_size(type) == 4 ? TARE_LAPACK_S : TARE_LAPACK_D, x, i, (struct tare_number){ value, 0 });
}

TARE_ALWAYS_INLINE struct vector at(enum tare_lapack_type type, const void *x, int64_t i, int64_t step) {
    return (struct vector){ (char *)x + i * (int64_t)tare_lapack_size(type), step };
}

/* sum + sign · x · y */
TARE_ALWAYS_INLINE struct tare_number add_product(enum tare_lapack_type type, struct tare_number sum, double sign,
                                                  struct tare_number x, struct tare_number y) {
    if (!tare_lapack_is_complex(type)) return (struct tare_number){ sum.re + sign * x.re * y.re, 0 };
    return (struct tare_number){ sum.re + sign * (x.re * y.re - x.im * y.im),
                                 sum.im + sign * (x.re * y.im + x.im * y.re) };
}

/* ---- one reflector ---- */

/* The H with Hᴴ x = (beta, 0 …); x becomes beta and the elements of v. Returns beta. What is below 1e-140 counts as
 * zero, because its square would not be accurate. */
TARE_ALWAYS_INLINE double reflect(enum tare_lapack_type type, int count, struct vector x, struct tare_number *tau) {
    static const double smallest = 1e-280;
    const struct tare_number alpha = get(type, x.data, 0);
    double sum = alpha.im * alpha.im;
    for (int i = 1; i < count; i++) {
        const struct tare_number value = get(type, x.data, i * x.step);
        sum += value.re * value.re + value.im * value.im;
    }
    *tau = (struct tare_number){ 0, 0 };
    double beta = alpha.re;
    if (sum >= smallest) {
        beta = -copysign(sqrt(alpha.re * alpha.re + sum), alpha.re);
        *tau = (struct tare_number){ (beta - alpha.re) / beta, -alpha.im / beta };
        const double re = alpha.re - beta, scale = 1 / (re * re + alpha.im * alpha.im);
        const struct tare_number inverse = { re * scale, -alpha.im * scale };
        for (int i = 1; i < count; i++)
            put(type, x.data, i * x.step,
                add_product(type, (struct tare_number){ 0, 0 }, 1, get(type, x.data, i * x.step), inverse));
    }
    put(type, x.data, 0, (struct tare_number){ beta, 0 });
    return beta;
}

/* c -= tau · v · (vᴴ c) for `lines` vectors c, which are `line_step` apart: columns for H from the left, and rows, with
 * `conjugated` v, for H from the right. */
TARE_ALWAYS_INLINE void apply(enum tare_lapack_type type, struct tare_number tau, int count, struct vector v,
                              bool conjugated, struct vector c, int lines, int64_t line_step) {
    if (tau.re == 0 && tau.im == 0) return;
    for (int line = 0; line < lines; line++) {
        void *x = at(type, c.data, line * line_step, 0).data;
        struct tare_number sum = get(type, x, 0), elements[TARE_REFLECTORS_MOST];
        for (int i = 1; i < count; i++) {
            elements[i] = get(type, v.data, i * v.step);
            if (conjugated) elements[i] = tare_number_conjugate(elements[i]);
            sum = add_product(type, sum, 1, tare_number_conjugate(elements[i]), get(type, x, i * c.step));
        }
        sum = add_product(type, (struct tare_number){ 0, 0 }, 1, tau, sum);
        put(type, x, 0, (struct tare_number){ get(type, x, 0).re - sum.re, get(type, x, 0).im - sum.im });
        for (int i = 1; i < count; i++)
            put(type, x, i * c.step, add_product(type, get(type, x, i * c.step), -1, elements[i], sum));
    }
}

/* ---- reductions ---- */

TARE_ALWAYS_INLINE void qr(enum tare_lapack_type type, int m, int n, void *a, void *tau) {
    for (int i = 0; i < m && i < n; i++) {
        struct tare_number factor;
        const struct vector v = at(type, a, i * m + i, 1);
        reflect(type, m - i, v, &factor);
        apply(type, tare_number_conjugate(factor), m - i, v, false, at(type, v.data, m, 1), n - 1 - i, m);
        put(type, tau, i, factor);
    }
}

/* Reflector i is applied to the columns after it; then its own column of the product is computed. */
TARE_ALWAYS_INLINE void form(enum tare_lapack_type type, int m, int columns, int count, void *a, const void *tau) {
    for (int j = count; j < columns; j++)
        for (int i = 0; i < m; i++)
            put(type, a, j * m + i, (struct tare_number){ i == j, 0 });
    for (int i = count - 1; i >= 0; i--) {
        const struct tare_number factor = get(type, tau, i), minus = { -factor.re, -factor.im };
        const struct vector v = at(type, a, i * m + i, 1);
        apply(type, factor, m - i, v, false, at(type, v.data, m, 1), columns - 1 - i, m);
        for (int k = 1; k < m - i; k++)
            put(type, v.data, k, add_product(type, (struct tare_number){ 0, 0 }, 1, minus, get(type, v.data, k)));
        put(type, v.data, 0, (struct tare_number){ 1 - factor.re, -factor.im });
        for (int k = 0; k < i; k++)
            put(type, a, i * m + k, (struct tare_number){ 0, 0 });
    }
}

TARE_ALWAYS_INLINE void set_identity(enum tare_lapack_type type, int n, void *a) {
    for (int i = 0; i < n * n; i++)
        put(type, a, i, (struct tare_number){ i % (n + 1) == 0, 0 });
}

/* Eliminates row i after the element next to the diagonal, from the right. Returns that element. */
TARE_ALWAYS_INLINE double reduce_row(enum tare_lapack_type type, int m, int n, int i, void *a,
                                     struct tare_number *tau) {
    const struct vector v = at(type, a, (i + 1) * m + i, m);
    for (int k = 0; k < n - 1 - i; k++)
        put(type, v.data, k * v.step, tare_number_conjugate(get(type, v.data, k * v.step)));
    const double beta = reflect(type, n - 1 - i, v, tau);
    apply(type, *tau, n - 1 - i, v, true, at(type, v.data, 1, m), m - 1 - i, 1);
    return beta;
}

TARE_ALWAYS_INLINE void bidiagonal(enum tare_lapack_type type, int m, int n, void *a, void *diagonal, void *off,
                                   void *tau, void *vh) {
    struct tare_number right[TARE_REFLECTORS_MOST];
    for (int i = 0; i < n; i++) {
        struct tare_number left;
        const struct vector v = at(type, a, i * m + i, 1);
        put_real(type, diagonal, i, reflect(type, m - i, v, &left));
        apply(type, tare_number_conjugate(left), m - i, v, false, at(type, v.data, m, 1), n - 1 - i, m);
        put(type, tau, i, left);
        if (i + 1 < n) put_real(type, off, i, reduce_row(type, m, n, i, a, &right[i]));
    }
    if (!vh) return;
    set_identity(type, n, vh);
    for (int i = n - 2; i >= 0; i--) /* Pᴴ = … G(1)ᴴ·G(0)ᴴ */
        apply(type, tare_number_conjugate(right[i]), n - 1 - i, at(type, a, (i + 1) * m + i, m), true,
              at(type, vh, (i + 1) * n + i + 1, n), n - 1 - i, 1);
}

TARE_ALWAYS_INLINE void hessenberg(enum tare_lapack_type type, int n, int low, int high, void *a, void *q) {
    struct tare_number tau[TARE_REFLECTORS_MOST];
    for (int i = low; i + 1 < high; i++) {
        const struct vector v = at(type, a, i * n + i + 1, 1);
        const int count = high - 1 - i;
        reflect(type, count, v, &tau[i]);
        apply(type, tau[i], count, v, true, at(type, a, (i + 1) * n, n), high, 1);
        apply(type, tare_number_conjugate(tau[i]), count, v, false, at(type, v.data, n, 1), n - 1 - i, n);
    }
    if (q) set_identity(type, n, q);
    for (int i = high - 2; q && i >= low; i--)
        apply(type, tau[i], high - 1 - i, at(type, a, i * n + i + 1, 1), false, at(type, q, (i + 1) * n + i + 1, 1),
              high - 1 - i, n);
    for (int j = 0; j < n; j++)
        for (int i = j + 2; i < n; i++)
            put(type, a, j * n + i, (struct tare_number){ 0, 0 });
}

/* ---- the four types ---- */

#define FOR_TYPE(call)                                                                                                 \
    switch (type) {                                                                                                    \
    case TARE_LAPACK_S:                                                                                                \
        call(TARE_LAPACK_S);                                                                                           \
        break;                                                                                                         \
    case TARE_LAPACK_D:                                                                                                \
        call(TARE_LAPACK_D);                                                                                           \
        break;                                                                                                         \
    case TARE_LAPACK_C:                                                                                                \
        call(TARE_LAPACK_C);                                                                                           \
        break;                                                                                                         \
    default:                                                                                                           \
        call(TARE_LAPACK_Z);                                                                                           \
        break;                                                                                                         \
    }

bool tare_reflectors_fit(enum tare_lapack_type type, int m, int n, const void *a) {
    const bool narrow = tare_lapack_real_size(type) == 4;
    const int parts = m * n * (tare_lapack_is_complex(type) ? 2 : 1);
    const double most = narrow ? 1e10 : 1e60, least = narrow ? 1e-10 : 1e-60;
    double largest = 0;
    if (m > TARE_REFLECTORS_MOST || n > TARE_REFLECTORS_MOST) return false;
    for (int i = 0; i < parts; i++) {
        const double x = fabs(narrow ? (double)((const float *)a)[i] : ((const double *)a)[i]);
        if (!(x <= most)) return false; /* also NaN */
        largest = x > largest ? x : largest;
    }
    return largest == 0 || largest >= least;
}

void tare_reflectors_qr(enum tare_lapack_type type, int m, int n, void *a, void *tau) {
#define CALL(t) qr(t, m, n, a, tau)
    FOR_TYPE(CALL)
#undef CALL
}

void tare_reflectors_form(enum tare_lapack_type type, int m, int columns, int count, void *a, const void *tau) {
#define CALL(t) form(t, m, columns, count, a, tau)
    FOR_TYPE(CALL)
#undef CALL
}

void tare_reflectors_bidiagonal(enum tare_lapack_type type, int m, int n, void *a, void *diagonal, void *off, void *tau,
                                void *vh) {
#define CALL(t) bidiagonal(t, m, n, a, diagonal, off, tau, vh)
    FOR_TYPE(CALL)
#undef CALL
}

void tare_reflectors_hessenberg(enum tare_lapack_type type, int n, int low, int high, void *a, void *q) {
#define CALL(t) hessenberg(t, n, low, high, a, q)
    FOR_TYPE(CALL)
#undef CALL
}
