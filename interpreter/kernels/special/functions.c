#include "interpreter/kernels/special/functions.h"
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/kernels/special/special.h"

#include <complex.h>
#include <float.h>
#include <math.h>

static const double euler = 0.57721566490153286060651209008240243;

/* ---- Bessel functions ---- */

/* sum (x²/4)^k / (k! (k + order)!): all terms have one sign. */
static double i_series(double x, int order) {
    const double step = x * x / 4;
    double term = 1, sum = 1;
    for (int k = 1; k < 500 && term > sum * DBL_EPSILON / 4; k++) {
        term *= step / ((double)k * (k + order));
        sum += term;
    }
    return order ? sum * x / 2 : sum;
}

/* The same times exp(-x) for large x: 1 / sqrt(2 pi x) times a series in 1 / x, up to its least term. */
static double i_asymptotic(double x, int order) {
    const double mu = 4.0 * order;
    double term = 1, sum = 1;
    for (int k = 1; k < 100; k++) {
        const double odd = 2 * k - 1, next = -term * (mu - odd * odd) / (k * 8 * x);
        if (fabs(next) >= fabs(term) || fabs(next) < DBL_EPSILON / 8) break;
        sum += term = next;
    }
    return sum / sqrt(2 * M_PI * x);
}

enum { I_CROSSOVER = 30 };

static double i_scaled(double x, int order) {
    if (isnan(x)) return x;
    const double size = fabs(x);
    if (isinf(x)) return 0;
    const double y = size < I_CROSSOVER ? i_series(size, order) * tare_exp(-size) : i_asymptotic(size, order);
    return order && x < 0 ? -y : y;
}

static double i_plain(double x, int order) {
    if (isnan(x)) return x;
    const double size = fabs(x);
    double y = INFINITY;
    if (size < I_CROSSOVER)
        y = i_series(size, order);
    else if (!isinf(size)) /* in two steps: exp alone overflows first */
        y = i_asymptotic(size, order) * tare_exp(size / 2) * tare_exp(size / 2);
    return order && x < 0 ? -y : y;
}

double tare_bessel_i0(double x) {
    return i_plain(x, 0);
}
double tare_bessel_i1(double x) {
    return i_plain(x, 1);
}
double tare_bessel_i0_scaled(double x) {
    return i_scaled(x, 0);
}
double tare_bessel_i1_scaled(double x) {
    return i_scaled(x, 1);
}

/* ---- integrals ---- */

/* A sum over odd n of exp(-(x - n h)²) / n (Rybicki): exact to exp(-(pi / 2h)²). */
double tare_dawson(double x) {
    const double h = 0.2, size = fabs(x);
    double sum = 0;
    if (isnan(x)) return x;
    if (size < 0.2) {
        double term = x;
        for (int k = 0; k < 20; k++) {
            sum += term;
            term *= -2 * x * x / (2 * k + 3);
        }
        return sum;
    }
    if (size > 1e8) return 0.5 / x;
    const double nearest = 2 * rint(size / (2 * h)), rest = size - nearest * h;
    for (int n = -35; n <= 35; n += 2) {
        const double at = rest - n * h;
        sum += tare_exp(-at * at) / (n + nearest);
    }
    return copysign(sum / sqrt(M_PI), x);
}

double tare_expint(double x) {
    double term = 1, sum = 0;
    if (isnan(x) || x < 0) return NAN;
    if (x == 0) return -INFINITY;
    if (x < 40) {
        for (int k = 1; k < 300; k++) {
            term *= x / k;
            sum += term / k;
            if (term / k < sum * DBL_EPSILON / 8) break;
        }
        return euler + tare_log(x) + sum;
    }
    for (int k = 1; k < 60; k++) {
        sum += term;
        if (term * k / x >= term || term < DBL_EPSILON / 8) break;
        term *= k / x;
    }
    return sum * (tare_exp(x / 2) / x) * tare_exp(x / 2);
}

/* C + iS for x > 0. */
static double complex fresnel(double x) {
    const double turn = M_PI / 2 * x * x;
    if (x < 1.6) { /* the power series of both at once: x (i turn)^k / (k! (2k + 1)) */
        double complex term = x, sum = 0;
        for (int k = 0; k < 60; k++) {
            sum += term / (2 * k + 1);
            term *= I * turn / (k + 1);
        }
        return sum;
    }
    if (x > 1e8) return 0.5 + 0.5 * I;
    /* erfc's continued fraction (modified Lentz) at (1 - i) x sqrt(pi) / 2 */
    double complex b = 1 - 2 * I * turn, c = 1e300, d = 1 / b, h = d;
    for (int k = 1; k < 200; k++) {
        const double a = -(2.0 * k - 1) * (2 * k);
        b += 4;
        d = 1 / (a * d + b);
        c = b + a / c;
        const double complex change = c * d;
        h *= change;
        if (fabs(creal(change) - 1) + fabs(cimag(change)) < DBL_EPSILON) break;
    }
    const double quarter = fmod(x, 2) * fmod(x, 2); /* x² modulo 4 would do; reduced for large x */
    const double phase = x < 1e5 ? turn : M_PI / 2 * quarter;
    h *= (1 - I) * x;
    return (0.5 + 0.5 * I) * (1 - (tare_cos(phase) + I * tare_sin(phase)) * h);
}

double tare_fresnel_cos(double x) {
    return isnan(x) ? x : x == 0 ? 0 : copysign(creal(fresnel(fabs(x))), x);
}
double tare_fresnel_sin(double x) {
    return isnan(x) ? x : x == 0 ? 0 : copysign(cimag(fresnel(fabs(x))), x);
}

/* sum w^k / k² for |w| <= 1/2 */
static double dilogarithm_series(double w) {
    double term = w, sum = 0;
    for (int k = 1; k < 80; k++) {
        sum += term / ((double)k * k);
        term *= w;
    }
    return sum;
}

double tare_spence(double x) {
    if (isnan(x) || x < 0) return NAN;
    if (x == 0) return M_PI * M_PI / 6;
    if (isinf(x)) return -INFINITY;
    if (x > 1.5) {
        const double logarithm = tare_log(x);
        return -tare_spence(1 / x) - logarithm * logarithm / 2;
    }
    if (x >= 0.5) return dilogarithm_series(1 - x);
    return M_PI * M_PI / 6 - tare_log(x) * tare_log1p(-x) - dilogarithm_series(x);
}

/* ---- incomplete gamma and beta ---- */

/* x^a exp(-x) / gamma(a), without the loss of a large difference where x is near a. */
static double gamma_factor(double a, double x) {
    if (a < 20) return tare_exp(a * tare_log(x) - x - tare_lgamma(a));
    const double away = (x - a) / a;
    const double part = fabs(away) < 0.5 ? a * (tare_log1p(away) - away) : a * tare_log(x / a) - (x - a);
    /* Stirling: log gamma(a) = (a - 1/2) log a - a + log(2 pi) / 2 + 1/12a - 1/360a³ + 1/1260a⁵ - 1/1680a⁷ */
    const double r = 1 / a, r2 = r * r;
    const double rest = r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 * (1.0 / 1680 - r2 / 1188))));
    return tare_exp(part - rest) * sqrt(a / (2 * M_PI));
}

static double lower_series(double a, double x) {
    double term = 1 / a, sum = term;
    for (int k = 1; k < 100000 && term > sum * DBL_EPSILON / 4; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum * gamma_factor(a, x);
}

static double upper_fraction(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int k = 1; k < 100000; k++) {
        const double an = -k * (k - a);
        b += 2;
        d = an * d + b;
        if (fabs(d) < 1e-300) d = 1e-300;
        c = b + an / c;
        if (fabs(c) < 1e-300) c = 1e-300;
        d = 1 / d;
        h *= c * d;
        if (fabs(c * d - 1) < DBL_EPSILON) break;
    }
    return h * gamma_factor(a, x);
}

double tare_igamma(double a, double x) {
    if (isnan(a) || isnan(x) || a <= 0 || x < 0) return NAN;
    if (x == 0) return 0;
    if (isinf(a)) return isinf(x) ? NAN : 0;
    if (isinf(x)) return 1;
    return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double tare_igammac(double a, double x) {
    if (isnan(a) || isnan(x) || a <= 0 || x < 0) return NAN;
    if (x == 0) return 1;
    if (isinf(a)) return isinf(x) ? NAN : 1;
    if (isinf(x)) return 0;
    return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    if (fabs(d) < 1e-300) d = 1e-300;
    d = 1 / d;
    double h = d;
    for (int k = 1; k < 100000; k++) {
        for (int odd = 0; odd < 2; odd++) {
            const double factor = odd ? -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
                                      : k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
            d = 1 + factor * d;
            if (fabs(d) < 1e-300) d = 1e-300;
            c = 1 + factor / c;
            if (fabs(c) < 1e-300) c = 1e-300;
            d = 1 / d;
            h *= c * d;
        }
        if (fabs(c * d - 1) < DBL_EPSILON) break;
    }
    return h;
}

double tare_betainc(double a, double b, double x) {
    if (isnan(a) || isnan(b) || isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1) return NAN;
    if (x == 0 || x == 1) return x;
    const double factor =
        tare_exp(tare_lgamma(a + b) - tare_lgamma(a) - tare_lgamma(b) + a * tare_log(x) + b * tare_log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
    return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

/* ---- zeta ---- */

/* Terms up to q + 9, then the sum formula of Euler and Maclaurin. */
double tare_zeta(double x, double q) {
    static const double bernoulli[] = { 1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                        -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330 };
    if (isnan(x) || isnan(q) || x < 1) return NAN;
    if (x == 1) return INFINITY;
    if (q <= 0) {
        if (q == floor(q)) return INFINITY;
        if (x != floor(x)) return NAN;
    }
    double sum = 0, at = q;
    while (at < 9 || at < q + 9) {
        const double term = tare_pow(at, -x);
        sum += term;
        if (at > 0 && term < sum * DBL_EPSILON / 64) return sum;
        at += 1;
        if (at > 1e15) break;
    }
    const double power = tare_pow(at, -x);
    sum += at * power / (x - 1) + power / 2;
    double factor = x * power / at; /* x (x + 1) … / at^(x + 2k - 1) over (2k)! */
    double factorial = 2;
    for (int k = 0; k < 10; k++) {
        const double term = bernoulli[k] * factor / factorial;
        sum += term;
        if (fabs(term) < fabs(sum) * DBL_EPSILON / 8) break;
        factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (at * at);
        factorial *= (2.0 * k + 3) * (2 * k + 4);
    }
    return sum;
}

double tare_polygamma(double n, double x) {
    if (isnan(n) || isnan(x) || n < 0 || n != floor(n)) return NAN;
    if (n == 0) return tare_digamma(x);
    const double size = tare_exp(tare_lgamma(n + 1)) * tare_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -size : size;
}
