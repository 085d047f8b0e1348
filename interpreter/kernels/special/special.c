#include "interpreter/kernels/special/special.h"
#include "interpreter/kernels/elementary_double.h"

#include <math.h>

/* Asymptotic series with Bernoulli numbers: log x - 1/2x - sum B_2k / (2k x^2k). From 10 on, eight terms reach double.
 */
static double digamma_large(double x) {
    static const double terms[] = { 1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                    1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160 };
    const double square = 1 / (x * x);
    double sum = 0;
    for (int i = (int)(sizeof terms / sizeof *terms); i-- > 0;)
        sum = (sum + terms[i]) * square;
    return tare_log(x) - 0.5 / x - sum;
}

/* The recurrence psi(x) = psi(x + 1) - 1/x leads to where the series is good. At the root near 1.4616 the error is
 * absolute, 1e-15. */
static double digamma_positive(double x) {
    double below = 0;
    while (x < 10) {
        below += 1 / x;
        x += 1;
    }
    return digamma_large(x) - below;
}

double tare_digamma(double x) {
    if (x == 0) return copysign(INFINITY, -x);
    if (x > 0) return isinf(x) ? x : digamma_positive(x);
    if (isnan(x) || floor(x) == x) return NAN;
    /* reflection; the remainder keeps the argument of tan small and exact */
    const double part = x - rint(x);
    return digamma_positive(1 - x) - M_PI / tare_tan(M_PI * part);
}

/* Inverse of erfc on (0, 1]: a closed form good to 2e-3 (Winitzki), then Halley's steps, each of which triples the
 * number of good digits. */
static double erfcinv_upper(double q) {
    const double a = 0.147, logarithm = tare_log(q * (2 - q));
    const double middle = 2 / (M_PI * a) + logarithm / 2;
    double w = sqrt(sqrt(middle * middle - logarithm / a) - middle);
    for (int step = 0; step < 3; step++) {
        const double error = erfc(w) - q;
        const double slope = -M_2_SQRTPI * tare_exp(-w * w);
        if (slope == 0) break;
        const double newton = error / slope;
        w -= newton / (1 + w * newton);
    }
    return w;
}

static double erfinv_centre(double x) {
    double w = x * 0.88622692545275801365; /* sqrt(pi) / 2: the slope at 0 */
    for (int step = 0; step < 4; step++) {
        const double newton = (erf(w) - x) / (M_2_SQRTPI * tare_exp(-w * w));
        w -= newton / (1 + w * newton);
    }
    return w;
}

double tare_erfinv(double x) {
    const double size = fabs(x);
    if (!(size <= 1)) return NAN;
    if (size == 1) return copysign(INFINITY, x);
    if (size <= 0.5) return x == 0 ? x : erfinv_centre(x);
    return copysign(erfcinv_upper(1 - size), x);
}

double tare_ndtri(double p) {
    if (!(p >= 0 && p <= 1)) return NAN;
    if (p == 0) return -INFINITY;
    if (p == 1) return INFINITY;
    if (p > 0.25 && p < 0.75) return M_SQRT2 * tare_erfinv(2 * p - 1); /* 2p - 1 is exact here */
    return p < 0.5 ? -M_SQRT2 * erfcinv_upper(2 * p) : M_SQRT2 * erfcinv_upper(2 * (1 - p));
}

double tare_lgamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}
