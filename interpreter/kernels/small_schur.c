/* QR iterations with explicit shifts by rotations (Golub and Van Loan, "Matrix Computations", 7.5), as EISPACK's
 * comqr2: H - shift = G·R and H := R·G + shift, until the subdiagonal is zero. The shift is the eigenvalue of the last
 * 2 by 2 block that is nearer to its last element. */
#include "interpreter/kernels/small_schur.h"

#include "interpreter/kernels/reflectors.h"

#include <math.h>

static const struct tare_number zero = { 0, 0 };

/* [c s; -conj(s) c] maps (f, g) to (r, 0). */
struct rotation {
    double c;
    struct tare_number s;
};

static double size_of(struct tare_number x) {
    return fabs(x.re) + fabs(x.im);
}

static struct tare_number sum_of(struct tare_number x, double sign, struct tare_number y) {
    return (struct tare_number){ x.re + sign * y.re, x.im + sign * y.im };
}

static struct tare_number root_of(struct tare_number x) {
    const double major = sqrt((sqrt(tare_number_square(x)) + fabs(x.re)) / 2);
    if (major == 0) return zero;
    const double minor = x.im / (2 * major);
    return x.re >= 0 ? (struct tare_number){ major, minor }
                     : (struct tare_number){ fabs(minor), copysign(major, x.im) };
}

/* The rotation, and r in place of f. Numbers below 1e-140 count as zero, because their squares are not accurate. */
static struct rotation rotation_of(struct tare_number *f, struct tare_number g) {
    static const double smallest = 1e-280;
    const double f_square = tare_number_square(*f), square = f_square + tare_number_square(g);
    if (square < smallest) return (struct rotation){ 1, zero };
    const double length = sqrt(square);
    if (f_square < smallest) {
        *f = (struct tare_number){ length, 0 };
        return (struct rotation){ 0, tare_number_scale(1 / length, tare_number_conjugate(g)) };
    }
    const double f_length = sqrt(f_square);
    const struct tare_number direction = tare_number_scale(1 / f_length, *f);
    *f = tare_number_scale(length, direction);
    return (struct rotation){ f_length / length,
                              tare_number_scale(1 / length,
                                                tare_number_add_product(zero, direction, tare_number_conjugate(g))) };
}

/* (x, y) := (c·x + s·y, c·y - conj(s)·x) for `count` pairs whose elements are `step` apart. */
static void rotate(double c, struct tare_number s, struct tare_number *x, struct tare_number *y, int count, int step) {
    for (; count > 0; count--, x += step, y += step) {
        const double x_re = x->re, x_im = x->im, y_re = y->re, y_im = y->im;
        x->re = c * x_re + (s.re * y_re - s.im * y_im);
        x->im = c * x_im + (s.re * y_im + s.im * y_re);
        y->re = c * y_re - (s.re * x_re + s.im * x_im);
        y->im = c * y_im - (s.re * x_im - s.im * x_re);
    }
}

static struct tare_number *at(const struct tare_small_schur *p, int row, int column) {
    return &p->h[column * p->n + row];
}

/* The shift for rows and columns up to `end`; every tenth one is another, because a cycle is possible. */
static struct tare_number shift_of(const struct tare_small_schur *p, int end, int step) {
    const struct tare_number last = *at(p, end - 1, end - 1), below = *at(p, end - 1, end - 2);
    if (step % 10 == 9) return (struct tare_number){ last.re + 0.75 * size_of(below), last.im };
    const struct tare_number half = tare_number_scale(0.5, sum_of(*at(p, end - 2, end - 2), -1, last));
    const struct tare_number product = tare_number_add_product(zero, *at(p, end - 2, end - 1), below);
    const struct tare_number root = root_of(tare_number_add_product(product, half, half));
    const struct tare_number plus = sum_of(half, 1, root), minus = sum_of(half, -1, root);
    const struct tare_number larger = tare_number_square(plus) > tare_number_square(minus) ? plus : minus;
    if (tare_number_square(larger) < 1e-280) return last;
    return sum_of(last, -1, tare_number_quotient(product, larger));
}

/* One step in rows and columns start … end - 1. */
static void step_of(const struct tare_small_schur *p, int start, int end, struct tare_number shift) {
    struct rotation rotations[TARE_REFLECTORS_MOST];
    for (int i = start; i < end; i++)
        *at(p, i, i) = sum_of(*at(p, i, i), -1, shift);
    for (int k = start; k + 1 < end; k++) {
        rotations[k] = rotation_of(at(p, k, k), *at(p, k + 1, k));
        *at(p, k + 1, k) = zero;
        rotate(rotations[k].c, rotations[k].s, at(p, k, k + 1), at(p, k + 1, k + 1), p->n - 1 - k, p->n);
    }
    for (int k = start; k + 1 < end; k++) {
        const struct tare_number s = tare_number_conjugate(rotations[k].s);
        rotate(rotations[k].c, s, at(p, 0, k), at(p, 0, k + 1), k + 2, 1);
        if (p->q) rotate(rotations[k].c, s, &p->q[k * p->n], &p->q[(k + 1) * p->n], p->n, 1);
    }
    for (int i = start; i < end; i++)
        *at(p, i, i) = sum_of(*at(p, i, i), 1, shift);
}

static bool is_negligible(const struct tare_small_schur *p, int row) {
    const double around = size_of(*at(p, row - 1, row - 1)) + size_of(*at(p, row, row));
    return size_of(*at(p, row, row - 1)) <= p->epsilon * around;
}

bool tare_small_schur(const struct tare_small_schur *p) {
    enum { MOST_STEPS = 30 };
    for (int end = p->high, step = 0; end > p->low + 1; step++) {
        int start = end - 1;
        while (start > p->low && !is_negligible(p, start))
            start--;
        if (start > p->low) *at(p, start, start - 1) = zero;
        if (start == end - 1) {
            end--;
            step = -1;
            continue;
        }
        if (step == MOST_STEPS) return false;
        step_of(p, start, end, shift_of(p, end, step));
    }
    return true;
}

/* Solves (H - H_kk) x = 0 with x_k = 1 from the last row up; equal eigenvalues are separated by a rounding error. */
static void solve_column(const struct tare_small_schur *p, int k, double smallest, struct tare_number *x) {
    double most = 1;
    x[k] = (struct tare_number){ 1, 0 };
    for (int i = k - 1; i >= 0; i--) {
        struct tare_number sum = zero, difference = sum_of(*at(p, k, k), -1, *at(p, i, i));
        for (int j = i + 1; j <= k; j++)
            sum = tare_number_add_product(sum, *at(p, i, j), x[j]);
        if (size_of(difference) < smallest) difference = (struct tare_number){ smallest, 0 };
        x[i] = tare_number_quotient(sum, difference);
        most = fmax(most, size_of(x[i]));
    }
    for (int i = 0; i <= k; i++)
        x[i] = tare_number_scale(1 / most, x[i]);
}

void tare_small_schur_vectors(const struct tare_small_schur *p) {
    struct tare_number x[TARE_REFLECTORS_MOST];
    double norm = 0;
    for (int i = 0; i < p->n * p->n; i++)
        norm = fmax(norm, size_of(p->h[i]));
    for (int k = p->n - 1; k >= 0; k--) {
        solve_column(p, k, norm > 0 ? p->epsilon * norm : 1, x);
        for (int i = 0; i < p->n; i++) { /* column k of the product; those before it are still Q */
            struct tare_number sum = zero;
            for (int j = 0; j <= k; j++)
                sum = tare_number_add_product(sum, p->q[j * p->n + i], x[j]);
            p->q[k * p->n + i] = sum;
        }
    }
}
