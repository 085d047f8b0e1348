/* exp and log in double without branches, from which the loops of elementary.c and the functions of elementary_double.c
 * are made: below 1 ulp each. */
#ifndef TARE_INTERPRETER_KERNELS_ELEMENTARY_STEPS_H
#define TARE_INTERPRETER_KERNELS_ELEMENTARY_STEPS_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>
#include <string.h>

#define TARE_LN2_HIGH 0x1.62e42fefp-1 /* 33 bits: multiplied by an exponent it is exact */
#define TARE_LN2_LOW 0x1.473de6af278edp-34

/* exp(x) - 1 - x for |x| <= log(2) / 2: Taylor's series, whose rest is below 2^-62 */
TARE_ALWAYS_INLINE double tare_exp_series(double x) {
    double p = 1.0 / 87178291200;
    p = p * x + 1.0 / 6227020800;
    p = p * x + 1.0 / 479001600;
    p = p * x + 1.0 / 39916800;
    p = p * x + 1.0 / 3628800;
    p = p * x + 1.0 / 362880;
    p = p * x + 1.0 / 40320;
    p = p * x + 1.0 / 5040;
    p = p * x + 1.0 / 720;
    p = p * x + 1.0 / 120;
    p = p * x + 1.0 / 24;
    p = p * x + 1.0 / 6;
    p = p * x + 0.5;
    return x * x * p;
}

/* exp(x) for -708 <= x <= 709. Adding 1.5 * 2^52 rounds to an integer, which is then in the low bits. */
TARE_ALWAYS_INLINE double tare_exp_steps(double x) {
    const double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52, k = shifted - 0x1.8p52;
    const double r = (x - k * TARE_LN2_HIGH) - k * TARE_LN2_LOW;
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return (1 + (r + tare_exp_series(r))) * scale;
}

/* log(x) of a normal positive x. With x = 2^k m, m from sqrt(1/2) to sqrt(2), f = m - 1 and s = f / (2 + f):
 * log(m) = f - (f^2 / 2 - s (f^2 / 2 + 2 s^2 / 3 + 2 s^4 / 5 + ...)). */
TARE_ALWAYS_INLINE double tare_log_steps(double x) {
    const uint64_t root = 0x3fe6a09e667f3bcd, fraction = 0x000fffffffffffff; /* sqrt(1/2) */
    uint64_t bits, whole;
    double m, k;
    memcpy(&bits, &x, sizeof bits);
    bits += ((uint64_t)1024 << 52) - root;
    whole = bits >> 52 | 0x4330000000000000; /* 2^52 + 1024 + k */
    bits = (bits & fraction) + root;
    memcpy(&m, &bits, sizeof m);
    memcpy(&k, &whole, sizeof k);
    k -= 0x1p52 + 1024;
    const double f = m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double r = 2.0 / 21;
    r = r * z + 2.0 / 19;
    r = r * z + 2.0 / 17;
    r = r * z + 2.0 / 15;
    r = r * z + 2.0 / 13;
    r = r * z + 2.0 / 11;
    r = r * z + 2.0 / 9;
    r = r * z + 2.0 / 7;
    r = r * z + 2.0 / 5;
    r = r * z + 2.0 / 3;
    return k * TARE_LN2_HIGH - ((half - (s * (half + r * z) + k * TARE_LN2_LOW)) - f);
}

#endif
