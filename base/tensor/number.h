/* Number formats and rounding rules. Each rule has a name, which docs/numerics.md explains and tests use. */
#ifndef TARE_BASE_TENSOR_NUMBER_H
#define TARE_BASE_TENSOR_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tare_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float tare_float_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* bfloat16-rtne: round to nearest, ties to even; NaN becomes 0x7fc0 or 0xffc0; finite values may round to infinity. */
static inline uint16_t tare_bfloat16_from_float(float x) {
    uint32_t bits = tare_float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 31) ? 0xffc0 : 0x7fc0;
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
static inline float tare_float_from_bfloat16(uint16_t x) {
    return tare_float_from_bits((uint32_t)x << 16);
}

/* half-rtne: IEEE binary16, ties to even, overflow to infinity, NaN quiet. */
uint16_t tare_half_from_float(float x);
float tare_float_from_half(uint16_t x);

/* round-to-odd: a value between two floats becomes the one with an odd last bit, so that a second rounding to half or
 * bfloat16 has the result of a single one. */
static inline float tare_float_to_odd(double x) {
    const float nearest = (float)x;
    uint32_t bits = tare_float_bits(nearest);
    if (isnan(x) || (double)nearest == x) return nearest;
    if (fabs((double)nearest) > fabs(x)) bits--;
    return tare_float_from_bits(bits | 1);
}
static inline uint16_t tare_half_from_double(double x) {
    return tare_half_from_float(tare_float_to_odd(x));
}
static inline uint16_t tare_bfloat16_from_double(double x) {
    return tare_bfloat16_from_float(tare_float_to_odd(x));
}

/* round-half-even and round-half-away-from-zero, independent of the floating-point environment. */
static inline float tare_round_half_even_f(float x) {
    return __builtin_rintf(x);
}
static inline double tare_round_half_even(double x) {
    return __builtin_rint(x);
}
static inline double tare_round_half_away(double x) {
    return __builtin_round(x);
}

#endif
