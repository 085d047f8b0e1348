/* The polynomials are weighted least-maximum fits (Lawson's iteration in extended precision), relative error below 5e-9
 * before rounding. Written without branches, so that the compiler makes vector code of any width from one body; built
 * with -O3 -fno-trapping-math, which changes no result. */
#include "interpreter/kernels/elementary.h"
#include "interpreter/kernels/elementary_steps.h"

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
#define EXP_MAGIC 0x1.8p23f
#define EXP_PER_LOG 0x1.715476p0f
#define EXP_LOG_HIGH 0x1.63p-1f /* nine bits: k times it is exact */
#define EXP_LOG_LOW -0x1.bd0106p-13f

/* exp(r) - 1 */
TARE_ALWAYS_INLINE float expm1_reduced(float r) {
    float p = 0x1.9f081p-13f;
    p = p * r + 0x1.6d8dbp-10f;
    p = p * r + 0x1.111272p-7f;
    p = p * r + 0x1.55548ep-5f;
    p = p * r + 0x1.555554p-3f;
    p = p * r + 0.5f;
    return r + r * r * p;
}

/* The low nine bits with their sign. */
TARE_ALWAYS_INLINE int32_t low_bits(float shifted) {
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (int32_t)(((bits & 0x1ffu) ^ 0x100u) - 0x100u);
}

/* factor * 2^k exp(r), k in the low bits of `shifted` */
TARE_ALWAYS_INLINE float exp_reduced(float r, float shifted, float factor) {
    const float y = (1.0f + expm1_reduced(r)) * factor;
    const int32_t whole = low_bits(shifted), half = whole >> 1;
    return y * power_of_two(half) * power_of_two(whole - half);
}

TARE_ALWAYS_INLINE float exp_one(float x) {
    float t = x > 89.0f ? 89.0f : x;
    t = t < -104.0f ? -104.0f : t;
    const float shifted = t * EXP_PER_LOG + EXP_MAGIC;
    const float k = shifted - EXP_MAGIC;
    float r = t - k * EXP_LOG_HIGH;
    r = r - k * EXP_LOG_LOW;
    return exp_reduced(r, shifted, 1.0f);
}

/* 2^k (exp(r) - 1) + (2^k - 1), by 2^(k - 1), as 2^128 is not a float. */
TARE_ALWAYS_INLINE float expm1_one(float x) {
    float t = x > 89.0f ? 89.0f : x;
    t = t < -20.0f ? -20.0f : t;
    const float shifted = t * EXP_PER_LOG + EXP_MAGIC;
    const float k = shifted - EXP_MAGIC;
    float r = t - k * EXP_LOG_HIGH;
    r = r - k * EXP_LOG_LOW;
    const float scale = power_of_two(low_bits(shifted) - 1);
    return copysignf(2.0f * (scale * expm1_reduced(r) + (scale - 0.5f)), x);
}

TARE_ALWAYS_INLINE float log_one(float x) {
    const float y = (float)tare_log_steps(x > 0.0f ? (double)x : 1.0);
    const float low = x == 0.0f ? -INFINITY : NAN;
    return x > 0.0f ? x < INFINITY ? y : x : low;
}

/* The digits that 1 + x loses are added to the logarithm. */
TARE_ALWAYS_INLINE float log1p_one(float x) {
    const double z = (double)(x > -1.0f ? x : 0.0f), sum = 1.0 + z;
    const float y = (float)(tare_log_steps(sum) + (z - (sum - 1.0)) / sum);
    const float low = x == -1.0f ? -INFINITY : NAN;
    return x > -1.0f ? x < INFINITY ? copysignf(y, x) : x : low;
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

/* erf(a), 0 <= a < 1 */
TARE_ALWAYS_INLINE float erf_near(float a) {
    const float u = a * a;
    float p = 0x1.496a3p-14f;
    p = p * u + -0x1.a3f7p-11f;
    p = p * u + 0x1.5405b2p-8f;
    p = p * u + -0x1.b7f90ep-6f;
    p = p * u + 0x1.ce2cf8p-4f;
    p = p * u + -0x1.81273ep-2f;
    p = p * u + 0x1.06eba8p-3f; /* the slope 2 / sqrt(pi) less 1 */
    return a + a * p;
}

TARE_ALWAYS_INLINE float erf_one(float x) {
    const float size = fabsf(x);
    const float a = size > 3.95f ? 3.95f : size; /* from 3.92 on the result is 1 */
    float q = 0x1.6c066cp-16f;                   /* -log(erfc(a)) */
    q = q * a + -0x1.ceeadp-12f;
    q = q * a + 0x1.1398fp-8f;
    q = q * a + -0x1.9d0bcep-6f;
    q = q * a + 0x1.bc18ccp-4f;
    q = q * a + 0x1.4434fp-1f;
    q = q * a + 0x1.212c2cp+0f;
    q = q * a + -0x1.8b3e2ap-13f;
    const float far = 1.0f - exp_one(-q);
    return copysignf(a < 1.0f ? erf_near(a) : far, x);
}

/* erfc(a) = exp(-a^2) f(a) / (1 + 2 a), where f is a polynomial in (a - 2) / (a + 2). a^2 is the exact square of its
 * leading twelve bits and a rest, of which exp takes both. */
TARE_ALWAYS_INLINE float erfc_one(float x) {
    const float size = fabsf(x);
    const float a = size > 10.5f ? 10.5f : size; /* from 10.1 on the result is 0 */
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    bits &= 0xfffff000u;
    float head;
    memcpy(&head, &bits, sizeof head);
    const float shifted = a * a * -EXP_PER_LOG + EXP_MAGIC;
    const float k = shifted - EXP_MAGIC;
    float r = -(head * head) - k * EXP_LOG_HIGH;
    r = r - k * EXP_LOG_LOW;
    r = r - (a - head) * (a + head);
    const float q = (a - 2.0f) / (a + 2.0f);
    float p = -0x1.ac9bdcp-12f;
    p = p * q + -0x1.44a9ccp-10f;
    p = p * q + 0x1.5b0e3ap-10f;
    p = p * q + 0x1.1b334cp-7f;
    p = p * q + -0x1.083f62p-7f;
    p = p * q + -0x1.bc13cep-5f;
    p = p * q + 0x1.4ffc9cp-3f;
    p = p * q + -0x1.5407f8p-3f;
    p = p * q + -0x1.7bf61ep-4f;
    p = p * q + 0x1.46e80ep+0f;
    const float upper = exp_reduced(r, shifted, p / (1.0f + 2.0f * a));
    const float far = x < 0.0f ? 2.0f - upper : upper;
    return a < 0.5f ? 1.0f - copysignf(erf_near(a), x) : far;
}

#define LOOP(name, function, target)                                                                                   \
    static target void name(float *to, const float *from, int64_t count) {                                             \
        TARE_INDEPENDENT                                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = function(from[i]);                                                                                 \
    }
#define LOOPS(level, target)                                                                                           \
    LOOP(exp_##level, exp_one, target)                                                                                 \
    LOOP(expm1_##level, expm1_one, target)                                                                             \
    LOOP(log_##level, log_one, target)                                                                                 \
    LOOP(log1p_##level, log1p_one, target)                                                                             \
    LOOP(tanh_##level, tanh_one, target)                                                                               \
    LOOP(sigmoid_##level, sigmoid_one, target)                                                                         \
    LOOP(erf_##level, erf_one, target)                                                                                 \
    LOOP(erfc_##level, erfc_one, target)                                                                               \
    static void (*const loops_##level[])(float *, const float *, int64_t) = {                                          \
        [TARE_ELEMENTARY_EXP] = exp_##level,   [TARE_ELEMENTARY_EXPM1] = expm1_##level,                                \
        [TARE_ELEMENTARY_LOG] = log_##level,   [TARE_ELEMENTARY_LOG1P] = log1p_##level,                                \
        [TARE_ELEMENTARY_TANH] = tanh_##level, [TARE_ELEMENTARY_SIGMOID] = sigmoid_##level,                            \
        [TARE_ELEMENTARY_ERF] = erf_##level,   [TARE_ELEMENTARY_ERFC] = erfc_##level,                                  \
    };

TARE_EVERY_FORM(LOOPS)
#undef LOOPS
#undef LOOP

void tare_elementary_at(enum tare_cpu_level level, enum tare_elementary function, float *to, const float *from,
                        int64_t count) {
    TARE_FORM(level, loops)[function](to, from, count);
}

#define FUNCTION(name, function)                                                                                       \
    void name(float *to, const float *from, int64_t count) {                                                           \
        tare_elementary_at(tare_cpu_level(), function, to, from, count);                                               \
    }
FUNCTION(tare_exp_floats, TARE_ELEMENTARY_EXP)
FUNCTION(tare_expm1_floats, TARE_ELEMENTARY_EXPM1)
FUNCTION(tare_log_floats, TARE_ELEMENTARY_LOG)
FUNCTION(tare_log1p_floats, TARE_ELEMENTARY_LOG1P)
FUNCTION(tare_tanh_floats, TARE_ELEMENTARY_TANH)
FUNCTION(tare_sigmoid_floats, TARE_ELEMENTARY_SIGMOID)
FUNCTION(tare_erf_floats, TARE_ELEMENTARY_ERF)
FUNCTION(tare_erfc_floats, TARE_ELEMENTARY_ERFC)
