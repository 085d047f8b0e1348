/* A `pair` is an unevaluated sum, whose second part is small. fma() is exactly rounded with and without an instruction
 * for it. Arguments outside a function's domain, infinities and NaN go to the C library, whose results are exact there.
 */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/kernels/elementary_steps.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct pair {
    double high, low;
};

/* ---- exp, expm1 ---- */

static double power_of_two(int64_t exponent) {
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* x = k log(2) + r */
static int64_t reduce_by_log2(struct pair x, struct pair *r) {
    const double k = x.high * 0x1.71547652b82fep+0 + 0x1.8p52 - 0x1.8p52;
    const double rest = x.high - k * TARE_LN2_HIGH, low = x.low - k * TARE_LN2_LOW;
    r->high = rest + low;
    r->low = (rest - r->high) + low;
    return (int64_t)k;
}

/* exp(r) - 1 - r.high */
static double exp_rest(struct pair r) {
    return tare_exp_series(r.high) + r.low * (1 + r.high);
}

static double exp_of_pair(struct pair x) {
    struct pair r;
    const int64_t k = reduce_by_log2(x, &r), half = k >> 1; /* in halves: subnormal results */
    return (1 + (r.high + exp_rest(r))) * power_of_two(half) * power_of_two(k - half);
}

/* The magnitude, where the result is neither 0 nor infinite. */
static double limited(double x) {
    return x > 710 ? 710 : x < -746 ? -746 : x;
}

double tare_exp(double x) {
    return isnan(x) ? x : exp_of_pair((struct pair){ limited(x), 0 });
}

/* 2^k exp(r) - 1 = 2^k (exp(r) - 1) + (2^k - 1); k - 1 is used, as 2^1024 is not a double. */
double tare_expm1(double x) {
    if (isnan(x) || x == 0) return x;
    struct pair r;
    const int64_t k = reduce_by_log2((struct pair){ x > 710 ? 710 : x < -40 ? -40 : x, 0 }, &r);
    const double rest = exp_rest(r), y = r.high + rest, y_low = (r.high - y) + rest;
    const double scale = power_of_two(k - 1), less = scale - 0.5, sum = scale * y + less;
    const double larger = fabs(less) > fabs(scale * y) ? less : scale * y, smaller = larger == less ? scale * y : less;
    return k == 0 ? y : 2 * (sum + ((larger - sum) + smaller + scale * y_low));
}

double tare_sigmoid(double x) {
    const double e = tare_exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* ---- log, log1p, pow ---- */

/* log(x) of a positive finite x. With x = 2^e m, m near 1, and s = (m - 1) / (m + 1):
 * log(m) = 2 s (1 + s^2 (1/3 + s^2 / 5 + ...)). */
static struct pair log_of(double x) {
    int exponent;
    double m = frexp(x, &exponent);
    if (m < M_SQRT1_2) {
        m *= 2;
        exponent--;
    }
    const double n = m - 1, d = m + 1, d_low = m > 1 ? 1 - (d - m) : m - (d - 1);
    const double s = n / d, s_low = (fma(-s, d, n) - s * d_low) / d;
    const double u = s * s, u_low = fma(s, s, -u) + 2 * s * s_low;
    double q = 1.0 / 27;
    for (int i = 25; i >= 5; i -= 2)
        q = q * u + 1.0 / i;
    const double third = 1.0 / 3, v = u * q, t = third + v, t_low = (third - t) + v + 0x1.5555555555555p-56;
    const double w = u * t, w_low = fma(u, t, -w) + u * t_low + u_low * t;
    const double p = 2 * s * w, p_low = fma(2 * s, w, -p) + 2 * s * w_low + 2 * s_low * w;
    const double head = 2 * s + p, head_low = (2 * s - head) + p + 2 * s_low + p_low;
    const double whole = exponent * TARE_LN2_HIGH, sum = whole + head;
    const double sum_low = (exponent == 0 ? 0 : (whole - sum) + head) + head_low + exponent * TARE_LN2_LOW;
    const double high = sum + sum_low;
    return (struct pair){ high, (sum - high) + sum_low };
}

double tare_log(double x) {
    if (!(x > 0 && x < INFINITY)) return log(x);
    return x < 0x1p-1022 ? tare_log_steps(x * 0x1p64) - 64 * M_LN2 : tare_log_steps(x);
}

double tare_log1p(double x) {
    if (!(x > -1 && x < INFINITY)) return log1p(x);
    if (fabs(x) < 0x1p-30) return x - x * x / 2;
    const double sum = 1 + x, rest = fabs(x) > 1 ? 1 - (sum - x) : x - (sum - 1);
    return tare_log_steps(sum) + rest / sum;
}

double tare_pow(double x, double y) {
    if (!isfinite(x) || !isfinite(y) || x == 0 || x == 1 || y == 0) return pow(x, y);
    if (x < 0 && y != trunc(y)) return pow(x, y); /* NaN */
    const struct pair l = log_of(fabs(x));
    struct pair p = { y * l.high, 0 };
    if (limited(p.high) == p.high)
        p.low = fma(y, l.high, -p.high) + y * l.low;
    else
        p.high = limited(p.high);
    const double size = exp_of_pair(p);
    return x < 0 && fmod(y, 2) != 0 ? -size : size;
}

/* The product in double has 2^-46 of the result at most; the exponents of squares, cubes and roots are frequent. */
float tare_pow_float(float x, float y) {
    if (y == 2) return x * x;
    if (y == 3) return (float)((double)x * (double)x * (double)x);
    if (!(x > 0 && x < INFINITY && isfinite(y))) return (float)tare_pow((double)x, (double)y);
    if (y == 0.5f) return sqrtf(x);
    const double p = (double)y * tare_log_steps((double)x);
    return (float)tare_exp_steps(p > 100 ? 100 : p < -110 ? -110 : p);
}

/* ---- sin, cos, tan ---- */

static const struct pair HALF_PI = { 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54 };

/* 64 zeros, then the binary digits of 2 / pi. */
static const uint64_t two_per_pi[20] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

static uint64_t digits_from(int bit) {
    const uint64_t *at = two_per_pi + bit / 64;
    return bit % 64 == 0 ? at[0] : at[0] << bit % 64 | at[1] >> (64 - bit % 64);
}

/* x = (4 n + quadrant) pi / 2 + r for a finite x >= 0. The product of x with 192 digits of 2 / pi, from those on that
 * contribute to the quadrant, has 190 digits of the fraction (Payne and Hanek). */
static int reduce_by_half_pi(double x, struct pair *r) {
    __extension__ typedef unsigned __int128 wide;
    *r = (struct pair){ x, 0 };
    if (x <= M_PI_4) return 0;
    int exponent;
    const uint64_t m = (uint64_t)(frexp(x, &exponent) * 0x1p53);
    const int first = exponent + 9;
    const wide low = (wide)m * digits_from(first + 128);
    const wide middle = (wide)m * digits_from(first + 64) + (low >> 64);
    const uint64_t top = m * digits_from(first) + (uint64_t)(middle >> 64);
    wide fraction = (wide)top << 66 | (wide)(uint64_t)middle << 2 | (uint64_t)low >> 62;
    const bool above = fraction >> 127 != 0;
    if (above) fraction = -fraction;
    int shift = 0;
    for (; fraction >> 127 == 0; shift++)
        fraction <<= 1;
    const double scale = power_of_two(-shift) * (above ? -1 : 1);
    const double high = (double)(uint64_t)(fraction >> 75) * 0x1p-53;
    const double low_part = (double)((uint64_t)(fraction >> 22) & 0x1fffffffffffff) * 0x1p-106;
    const double y = high * HALF_PI.high;
    const double y_low = fma(high, HALF_PI.high, -y) + high * HALF_PI.low + low_part * HALF_PI.high;
    const double sum = y + y_low;
    *r = (struct pair){ scale * sum, scale * ((y - sum) + y_low) };
    return (int)(top >> 62) + above;
}

/* Taylor's series for |r| <= pi / 4. */
static double sin_near(struct pair r) {
    const double x = r.high, u = x * x;
    double p = -1.0 / 121645100408832000;
    p = p * u + 1.0 / 355687428096000;
    p = p * u - 1.0 / 1307674368000;
    p = p * u + 1.0 / 6227020800;
    p = p * u - 1.0 / 39916800;
    p = p * u + 1.0 / 362880;
    p = p * u - 1.0 / 5040;
    p = p * u + 1.0 / 120;
    p = p * u - 1.0 / 6;
    return x + (x * u * p + r.low * (1 - 0.5 * u));
}

static double cos_near(struct pair r) {
    const double x = r.high, u = x * x, half = 0.5 * u, y = 1 - half;
    double p = -1.0 / 6402373705728000;
    p = p * u + 1.0 / 20922789888000;
    p = p * u - 1.0 / 87178291200;
    p = p * u + 1.0 / 479001600;
    p = p * u - 1.0 / 3628800;
    p = p * u + 1.0 / 40320;
    p = p * u - 1.0 / 720;
    p = p * u + 1.0 / 24;
    return y + (((1 - y) - half) + (u * u * p - x * r.low));
}

/* A multiple of pi / 2 in three parts, of which the first two are exact, unless cancellation leaves few digits. */
static int reduce(double x, struct pair *r) {
    const double k = x * M_2_PI + 0x1.8p52 - 0x1.8p52;
    const double head = x - k * 0x1.921fb544p+0, middle = k * 0x1.0b4611a6p-34, low = k * 0x1.3198a2e037073p-69;
    const double sum = head - middle, sum_low = ((head - sum) - middle) - low;
    if (x > 0x1p20 || fabs(sum) < 0x1p-20) return reduce_by_half_pi(x, r);
    r->high = sum + sum_low;
    r->low = (sum - r->high) + sum_low;
    return (int)k;
}

double tare_sin(double x) {
    if (!isfinite(x) || x == 0) return sin(x);
    struct pair r;
    const int quadrant = reduce(fabs(x), &r);
    const double y = quadrant & 1 ? cos_near(r) : sin_near(r);
    return (quadrant >> 1 & 1) != (x < 0) ? -y : y;
}

double tare_cos(double x) {
    if (!isfinite(x)) return cos(x);
    struct pair r;
    const int quadrant = reduce(fabs(x), &r) + 1;
    const double y = quadrant & 1 ? cos_near(r) : sin_near(r);
    return quadrant >> 1 & 1 ? -y : y;
}

double tare_tan(double x) {
    if (!isfinite(x) || x == 0) return tan(x);
    struct pair r;
    const int quadrant = reduce(fabs(x), &r);
    const double s = sin_near(r), c = cos_near(r), y = quadrant & 1 ? -c / s : s / c;
    return x < 0 ? -y : y;
}

/* ---- inverse trigonometric functions ---- */

/* atan(i / 8) */
static const struct pair arcs[9] = {
    { 0, 0 },
    { 0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59 },
    { 0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57 },
    { 0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56 },
    { 0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56 },
    { 0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58 },
    { 0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56 },
    { 0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56 },
    { 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55 },
};

/* atan(y / x) for 0 <= y <= x, x > 0: the nearest i / 8 and the arc between, of at most 1 / 16. */
static struct pair arc(double y, double x) {
    const double scale = x > 0x1p900 ? 0x1p-200 : x < 0x1p-700 ? 0x1p200 : 1;
    const double b = x * scale, a = y * scale;
    const int i = (int)(a / b * 8 + 0.5);
    const double c = i / 8.0, t = fma(-c, b, a) / fma(c, a, b), u = t * t;
    double p = -1.0 / 15;
    for (int k = 13; k >= 3; k -= 2)
        p = p * u + (k % 4 == 1 ? 1.0 : -1.0) / k;
    const double rest = arcs[i].low + t * u * p, near = t + rest;
    const double high = arcs[i].high + near;
    return (struct pair){ high, (arcs[i].high - high) + near + ((t - near) + rest) };
}

double tare_atan2(double y, double x) {
    if (!isfinite(x) || !isfinite(y) || x == 0 || y == 0) return atan2(y, x);
    const double a = fabs(y), b = fabs(x);
    struct pair angle = a <= b ? arc(a, b) : arc(b, a);
    if (a > b) angle = (struct pair){ HALF_PI.high - angle.high, HALF_PI.low - angle.low };
    const double acute = angle.high + angle.low;
    return copysign(x > 0 ? acute : 2 * HALF_PI.high - (acute - 2 * HALF_PI.low), y);
}

double tare_atan(double x) {
    return tare_atan2(x, 1);
}

double tare_asin(double x) {
    return fabs(x) <= 1 ? tare_atan2(x, sqrt((1 - x) * (1 + x))) : asin(x);
}

double tare_acos(double x) {
    return fabs(x) <= 1 ? tare_atan2(sqrt((1 - x) * (1 + x)), x) : acos(x);
}

/* ---- hyperbolic functions ---- */

double tare_sinh(double x) {
    const double a = fabs(x);
    if (a > 700) {
        const double root = tare_exp(a / 2);
        return copysign(root / 2 * root, x);
    }
    const double t = tare_expm1(a);
    return copysign((t + t / (t + 1)) / 2, x);
}

double tare_cosh(double x) {
    const double a = fabs(x), root = tare_exp(a > 700 ? a / 2 : a);
    return a > 700 ? root / 2 * root : root / 2 + 0.5 / root;
}

double tare_tanh(double x) {
    const double a = fabs(x), t = tare_expm1(a > 1 ? 2 * a : -2 * a);
    return copysign(a > 1 ? 1 - 2 / (t + 2) : -t / (t + 2), x);
}

double tare_asinh(double x) {
    const double a = fabs(x);
    if (!(a < 0x1p28)) return copysign(tare_log(a) + M_LN2, x);
    return copysign(tare_log1p(a + a * a / (1 + sqrt(a * a + 1))), x);
}

double tare_acosh(double x) {
    const double t = x - 1;
    return x < 1 ? acosh(x) : x < 0x1p28 ? tare_log1p(t + sqrt(2 * t + t * t)) : tare_log(x) + M_LN2;
}

double tare_atanh(double x) {
    const double a = fabs(x);
    if (!(a < 1)) return atanh(x);
    return copysign(0.5 * tare_log1p(a < 0.5 ? 2 * a + 2 * a * a / (1 - a) : 2 * a / (1 - a)), x);
}
