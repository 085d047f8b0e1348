/* QR iterations with explicit shifts by rotations (Golub and Van Loan, "Matrix Computations", 7.5), as EISPACK's
 * comqr2: H - shift = G·R and H := R·G + shift, until the subdiagonal is zero. The shift is the eigenvalue of the last
 * 2 by 2 block that is nearer to its last element. LAPACK's iteration (lahqr) calls a routine per element pair, which
 * takes 2.5 times as long at 4 x 4. */
#include "interpreter/kernels/small_lapack.h"

#include <complex.h>
#include <float.h>
#include <math.h>

/* Below 1e-140, squares are not accurate; such numbers count as zero. */
static const double smallest_square = 1e-280;

/* [c s; -conj(s) c] maps (f, g) to (r, 0). */
struct rotation {
    double c;
    double complex s;
};

static double square_of(double complex x) {
    return creal(x) * creal(x) + cimag(x) * cimag(x);
}
static double size_of(double complex x) {
    return fabs(creal(x)) + fabs(cimag(x));
}

static double complex quotient(double complex x, double complex y) {
    return x * conj(y) * (1 / square_of(y));
}

static double complex root_of(double complex x) {
    const double major = sqrt((sqrt(square_of(x)) + fabs(creal(x))) / 2);
    if (major == 0) return 0;
    const double minor = cimag(x) / (2 * major);
    return creal(x) >= 0 ? __builtin_complex(major, minor) : __builtin_complex(fabs(minor), copysign(major, cimag(x)));
}

/* The rotation, and r in place of f. */
static struct rotation rotation_of(double complex *f, double complex g) {
    const double f_square = square_of(*f), square = f_square + square_of(g), length = sqrt(square);
    if (square < smallest_square) return (struct rotation){ 1, 0 };
    if (f_square < smallest_square) {
        *f = length;
        return (struct rotation){ 0, conj(g) * (1 / length) };
    }
    const double f_length = sqrt(f_square);
    const double complex direction = *f * (1 / f_length);
    *f = length * direction;
    return (struct rotation){ f_length / length, direction * conj(g) * (1 / length) };
}

/* (x, y) := (c·x + s·y, c·y - conj(s)·x) for `count` pairs whose elements are `step` apart. */
static void rotate(double c, double complex s, double complex *x, double complex *y, int count, int step) {
    for (; count > 0; count--, x += step, y += step) {
        const double complex old = *x;
        *x = c * old + s * *y;
        *y = c * *y - conj(s) * old;
    }
}

/* The shift for rows and columns up to `end`; every tenth one is another, because a cycle is possible. */
static double complex shift_of(int n, const double complex *h, int end, int step) {
    const double complex *last = &h[(end - 1) * n + end - 1], *before = last - n - 1; /* on the diagonal */
    if (step % 10 == 9) return *last + 0.75 * size_of(last[-n]);
    const double complex half = 0.5 * (*before - *last), product = last[-1] * before[1];
    const double complex root = root_of(product + half * half);
    const double complex larger = square_of(half + root) > square_of(half - root) ? half + root : half - root;
    return square_of(larger) < smallest_square ? *last : *last - quotient(product, larger);
}

/* One step in rows and columns start … end - 1. */
static void step_of(int n, double complex *h, double complex *q, int start, int end, double complex shift) {
    struct rotation rotations[TARE_SMALL_MOST];
    for (int i = start; i < end; i++)
        h[i * n + i] -= shift;
    for (int k = start; k + 1 < end; k++) {
        double complex *diagonal = &h[k * n + k];
        rotations[k] = rotation_of(diagonal, diagonal[1]);
        diagonal[1] = 0;
        rotate(rotations[k].c, rotations[k].s, diagonal + n, diagonal + n + 1, n - 1 - k, n);
    }
    for (int k = start; k + 1 < end; k++) {
        const double complex s = conj(rotations[k].s);
        rotate(rotations[k].c, s, &h[k * n], &h[(k + 1) * n], k + 2, 1);
        rotate(rotations[k].c, s, &q[k * n], &q[(k + 1) * n], n, 1);
    }
    for (int i = start; i < end; i++)
        h[i * n + i] += shift;
}

/* Whether the element before the diagonal of a row counts as zero. */
static bool is_negligible(int n, const double complex *h, int row) {
    const double complex *diagonal = &h[row * n + row];
    return size_of(diagonal[-n]) <= DBL_EPSILON * (size_of(diagonal[-n - 1]) + size_of(*diagonal));
}

bool tare_small_schur(int n, int low, int high, double complex *h, double complex *q) {
    enum { MOST_STEPS = 30 };
    for (int end = high, step = 0; end > low + 1; step++) {
        int start = end - 1;
        while (start > low && !is_negligible(n, h, start))
            start--;
        if (start > low) h[(start - 1) * n + start] = 0;
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

/* Solves (H - H_kk) x = 0 with x_k = 1 from the last row up; equal eigenvalues are separated by a rounding error. */
static void solve_column(int n, const double complex *h, int k, double smallest, double complex *x) {
    double most = 1;
    x[k] = 1;
    for (int i = k - 1; i >= 0; i--) {
        double complex sum = 0, difference = h[k * n + k] - h[i * n + i];
        for (int j = i + 1; j <= k; j++)
            sum += h[j * n + i] * x[j];
        if (size_of(difference) < smallest) difference = smallest;
        x[i] = quotient(sum, difference);
        most = fmax(most, size_of(x[i]));
    }
    for (int i = 0; i <= k; i++)
        x[i] *= 1 / most;
}

void tare_small_schur_vectors(int n, const double complex *h, double complex *q) {
    double complex x[TARE_SMALL_MOST];
    double norm = 0;
    for (int i = 0; i < n * n; i++)
        norm = fmax(norm, size_of(h[i]));
    for (int k = n - 1; k >= 0; k--) {
        solve_column(n, h, k, norm > 0 ? DBL_EPSILON * norm : 1, x);
        for (int i = 0; i < n; i++) { /* column k of the product; those before it are still Q */
            double complex sum = 0;
            for (int j = 0; j <= k; j++)
                sum += q[j * n + i] * x[j];
            q[k * n + i] = sum;
        }
    }
}
