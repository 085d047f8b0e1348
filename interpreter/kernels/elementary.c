/* The polynomials are weighted least-maximum fits (Lawson's iteration in extended precision), relative error below 5e-9
 * before rounding. Written without branches, so that the compiler makes vector code of any width from one body; built
 * with -O3 -fno-trapping-math, which changes no result. */
#include "interpreter/kernels/elementary.h"

#include <math.h>
#include <string.h>

TARE_ALWAYS_INLINE float power_of_two(int32_t exponent) {
    const uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* exp(x) = 2^k exp(r), |r| <= log(2)/2. Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits; 2^k
 * is multiplied in halves, so that results below the normal range are rounded once. */
TARE_ALWAYS_INLINE float exp_one(float x) {
    const float magic = 0x1.8p23f;
    float t = x > 89.0f ? 89.0f : x;
    t = t < -104.0f ? -104.0f : t;
    const float shifted = t * 0x1.715476p0f + magic;
    const float k = shifted - magic;
    float r = t - k * 0x1.63p-1f; /* nine bits: k times it is exact */
    r = r - k * -0x1.bd0106p-13f;
    float p = 0x1.9f081p-13f;
    p = p * r + 0x1.6d8dbp-10f;
    p = p * r + 0x1.111272p-7f;
    p = p * r + 0x1.55548ep-5f;
    p = p * r + 0x1.555554p-3f;
    p = p * r + 0.5f;
    const float y = 1.0f + (r + r * r * p);
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    const int32_t whole = (int32_t)(((bits & 0x1ffu) ^ 0x100u) - 0x100u); /* low nine bits with their sign */
    const int32_t half = whole >> 1;
    return y * power_of_two(half) * power_of_two(whole - half);
}

TARE_ALWAYS_INLINE float tanh_one(float x) {
    const float a = fabsf(x), u = a * a;
    float p = -0x1.75da22p-8f;
    p = p * u + 0x1.5224f6p-6f;
    p = p * u + -0x1.b83c1cp-5f;
    p = p * u + 0x1.110726p-3f;
    p = p * u + -0x1.555532p-2f;
    const float near = a + a * u * p;
    const float far = 1.0f - 2.0f / (exp_one(2.0f * a) + 1.0f);
    return copysignf(a < 0.625f ? near : far, x);
}

/* exp of a negative number only: no overflow, and small results keep their digits. */
TARE_ALWAYS_INLINE float sigmoid_one(float x) {
    const float z = exp_one(-fabsf(x));
    const float top = x < 0.0f ? z : 1.0f;
    return top / (1.0f + z);
}

TARE_ALWAYS_INLINE float erf_one(float x) {
    const float size = fabsf(x);
    const float a = size > 3.95f ? 3.95f : size; /* from 3.92 on the result is 1 */
    const float u = a * a;
    float p = 0x1.496a3p-14f;
    p = p * u + -0x1.a3f7p-11f;
    p = p * u + 0x1.5405b2p-8f;
    p = p * u + -0x1.b7f90ep-6f;
    p = p * u + 0x1.ce2cf8p-4f;
    p = p * u + -0x1.81273ep-2f;
    p = p * u + 0x1.06eba8p-3f; /* the slope 2 / sqrt(pi) less 1 */
    const float near = a + a * p;
    float q = 0x1.6c066cp-16f; /* -log(erfc(a)) */
    q = q * a + -0x1.ceeadp-12f;
    q = q * a + 0x1.1398fp-8f;
    q = q * a + -0x1.9d0bcep-6f;
    q = q * a + 0x1.bc18ccp-4f;
    q = q * a + 0x1.4434fp-1f;
    q = q * a + 0x1.212c2cp+0f;
    q = q * a + -0x1.8b3e2ap-13f;
    const float far = 1.0f - exp_one(-q);
    return copysignf(a < 1.0f ? near : far, x);
}

#define LOOP(name, function, target)                                                                                   \
    static target void name(float *to, const float *from, int64_t count) {                                             \
        TARE_INDEPENDENT                                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = function(from[i]);                                                                                 \
    }
#define LOOPS(level, target)                                                                                           \
    LOOP(exp_##level, exp_one, target)                                                                                 \
    LOOP(tanh_##level, tanh_one, target)                                                                               \
    LOOP(sigmoid_##level, sigmoid_one, target)                                                                         \
    LOOP(erf_##level, erf_one, target)                                                                                 \
    static void (*const level##_loops[])(float *, const float *, int64_t) = {                                          \
        [TARE_ELEMENTARY_EXP] = exp_##level,                                                                           \
        [TARE_ELEMENTARY_TANH] = tanh_##level,                                                                         \
        [TARE_ELEMENTARY_SIGMOID] = sigmoid_##level,                                                                   \
        [TARE_ELEMENTARY_ERF] = erf_##level,                                                                           \
    };

LOOPS(plain, )
#if TARE_KERNELS_X86
LOOPS(avx2, TARE_TARGET_AVX2)
LOOPS(avx512, TARE_TARGET_AVX512)
#endif
#undef LOOPS
#undef LOOP

void tare_elementary_at(enum tare_cpu_level level, enum tare_elementary function, float *to, const float *from,
                        int64_t count) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) {
        avx512_loops[function](to, from, count);
        return;
    }
    if (level >= TARE_CPU_AVX2) {
        avx2_loops[function](to, from, count);
        return;
    }
#endif
    (void)level;
    plain_loops[function](to, from, count);
}

void tare_exp_floats(float *to, const float *from, int64_t count) {
    tare_elementary_at(tare_cpu_level(), TARE_ELEMENTARY_EXP, to, from, count);
}
void tare_tanh_floats(float *to, const float *from, int64_t count) {
    tare_elementary_at(tare_cpu_level(), TARE_ELEMENTARY_TANH, to, from, count);
}
void tare_sigmoid_floats(float *to, const float *from, int64_t count) {
    tare_elementary_at(tare_cpu_level(), TARE_ELEMENTARY_SIGMOID, to, from, count);
}
void tare_erf_floats(float *to, const float *from, int64_t count) {
    tare_elementary_at(tare_cpu_level(), TARE_ELEMENTARY_ERF, to, from, count);
}
