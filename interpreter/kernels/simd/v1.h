/* The vocabulary of v8.h for one float: loops over it are vectorized by the compiler, and are the portable kernels. */
#ifndef TARE_INTERPRETER_KERNELS_SIMD_V1_H
#define TARE_INTERPRETER_KERNELS_SIMD_V1_H

#include "interpreter/kernels/cpu.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define TARE_V1(type, name, parameters, expression)                                                                    \
    TARE_ALWAYS_INLINE type tare_v1_##name parameters {                                                                \
        return expression;                                                                                             \
    }
TARE_V1(float, set, (float x), x)
TARE_V1(float, add, (float x, float y), x + y)
TARE_V1(float, sub, (float x, float y), x - y)
TARE_V1(float, mul, (float x, float y), x *y)
TARE_V1(float, div, (float x, float y), x / y)
TARE_V1(float, max, (float x, float y), x > y ? x : y)
TARE_V1(float, min, (float x, float y), x < y ? x : y)
TARE_V1(float, fma, (float x, float y, float z), fmaf(x, y, z))
TARE_V1(float, sub_product, (float x, float y, float z), fmaf(-y, z, x))
TARE_V1(float, abs, (float x), fabsf(x))
TARE_V1(float, negative_abs, (float x), -fabsf(x))
TARE_V1(float, with_sign, (float x, float of), copysignf(x, of))
TARE_V1(float, if_less, (float x, float y, float then, float otherwise), x < y ? then : otherwise)
TARE_V1(int32_t, set_int, (int32_t x), x)
TARE_V1(int32_t, add_int, (int32_t x, int32_t y), (int32_t)((uint32_t)x + (uint32_t)y))
TARE_V1(int32_t, sub_int, (int32_t x, int32_t y), (int32_t)((uint32_t)x - (uint32_t)y))
TARE_V1(int32_t, shift_left, (int32_t x, const int count), (int32_t)((uint32_t)x << count))
TARE_V1(int32_t, shift_right, (int32_t x, const int count), x >> count)
#undef TARE_V1

TARE_ALWAYS_INLINE int32_t tare_v1_bits(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
TARE_ALWAYS_INLINE float tare_v1_of_bits(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
