/* Powers of two by Cooley and Tukey's butterflies; other lengths as a convolution with a chirp (Bluestein), which is
 * done by a power of two. */
#include "base/control.h"
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/kernels/fourier.h"

#include <complex.h>
#include <math.h>
#include <string.h>

typedef _Complex double complex128;

struct tare_fourier {
    int64_t n, m;       /* length; power of two that works: n itself, or at least 2n - 1 */
    complex128 *roots;  /* exp(-2 pi i k / m), k < m / 2 */
    complex128 *chirp;  /* exp(-pi i k^2 / n), k < n; NULL for a power of two */
    complex128 *filter; /* transform of the chirp's conjugate, both ways around */
    complex128 *work;
};

/* exp(-2 pi i k / n), exact at the quarters. */
static complex128 root_of_unity(int64_t k, int64_t n) {
    const double angle = -2 * M_PI * ((double)k / (double)n);
    if (4 * k % n == 0) {
        static const double re[] = { 1, 0, -1, 0 }, im[] = { 0, -1, 0, 1 };
        return __builtin_complex(re[4 * k / n % 4], im[4 * k / n % 4]);
    }
    return __builtin_complex(tare_cos(angle), tare_sin(angle));
}

static void swap_by_reversed_bits(complex128 *x, int64_t m) {
    for (int64_t i = 1, j = 0; i < m; i++) {
        int64_t bit = m >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            const complex128 moved = x[i];
            x[i] = x[j];
            x[j] = moved;
        }
    }
}

static complex128 times(complex128 a, complex128 b) {
    return __builtin_complex(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static void transform_power_of_two(const struct tare_fourier *fourier, complex128 *x) {
    const int64_t m = fourier->m;
    swap_by_reversed_bits(x, m);
    for (int64_t half = 1; half < m && !tare_control_is_stopped(); half *= 2) {
        const int64_t step = m / (2 * half);
        for (int64_t first = 0; first < m; first += 2 * half) {
            for (int64_t k = 0; k < half; k++) {
                const complex128 low = x[first + k], high = times(x[first + k + half], fourier->roots[k * step]);
                x[first + k] = low + high;
                x[first + k + half] = low - high;
            }
        }
    }
}

static void make_filter(struct tare_fourier *fourier) {
    const int64_t n = fourier->n, m = fourier->m;
    for (int64_t k = 0; k < n; k++) {
        /* the angle repeats after 2n; k^2 mod 2n stays exact */
        fourier->chirp[k] = root_of_unity((int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
    }
    fourier->filter[0] = conj(fourier->chirp[0]);
    for (int64_t k = 1; k < n; k++)
        fourier->filter[k] = fourier->filter[m - k] = conj(fourier->chirp[k]);
    transform_power_of_two(fourier, fourier->filter);
}

struct tare_fourier *tare_fourier_new(struct tare_arena *arena, int64_t n) {
    struct tare_fourier *fourier = TARE_NEW(arena, struct tare_fourier);
    if (!fourier || n > INT64_MAX / 64) return NULL;
    const bool is_power = (n & (n - 1)) == 0;
    fourier->n = n;
    fourier->m = 1;
    while (fourier->m < (is_power ? n : 2 * n - 1))
        fourier->m *= 2;
    fourier->roots = TARE_NEW_ARRAY(arena, complex128, (size_t)(fourier->m / 2 + 1));
    if (!fourier->roots) return NULL;
    for (int64_t k = 0; k < fourier->m / 2; k++)
        fourier->roots[k] = root_of_unity(k, fourier->m);
    if (is_power) return fourier;
    fourier->chirp = TARE_NEW_ARRAY(arena, complex128, (size_t)n);
    fourier->filter = TARE_NEW_ARRAY(arena, complex128, (size_t)fourier->m);
    fourier->work = TARE_NEW_ARRAY(arena, complex128, (size_t)fourier->m);
    if (!fourier->chirp || !fourier->filter || !fourier->work) return NULL;
    make_filter(fourier);
    return fourier;
}

static void transform_by_chirp(struct tare_fourier *fourier, complex128 *x) {
    const int64_t n = fourier->n, m = fourier->m;
    complex128 *work = fourier->work;
    memset(work, 0, (size_t)m * sizeof *work);
    for (int64_t k = 0; k < n; k++)
        work[k] = times(x[k], fourier->chirp[k]);
    transform_power_of_two(fourier, work);
    for (int64_t k = 0; k < m; k++)
        work[k] = conj(times(work[k], fourier->filter[k])); /* conjugated: the next transform is the inverse */
    transform_power_of_two(fourier, work);
    for (int64_t k = 0; k < n; k++)
        x[k] = times(conj(work[k]) / (double)m, fourier->chirp[k]);
}

void tare_fourier_run(struct tare_fourier *fourier, _Complex double *x, bool inverse) {
    for (int64_t k = 0; inverse && k < fourier->n; k++)
        x[k] = conj(x[k]);
    if (!fourier->chirp)
        transform_power_of_two(fourier, x);
    else
        transform_by_chirp(fourier, x);
    for (int64_t k = 0; inverse && k < fourier->n; k++)
        x[k] = conj(x[k]) / (double)fourier->n;
}
