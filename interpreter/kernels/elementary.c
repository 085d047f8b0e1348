/* Loops over the functions of simd/functions.h: with vectors of eight lanes, and of one lane, of which the compiler
 * makes vector code; built with -O3 -fno-trapping-math, which changes no result. */
#include "interpreter/kernels/elementary.h"
#include "interpreter/kernels/elementary_steps.h"
#include "interpreter/kernels/simd/functions_v8.h"
#include "interpreter/kernels/simd/v1.h"

#include <math.h>
#include <string.h>

#define VEC float
#define IVEC int32_t
#define V(name) tare_v1_##name
#define FUNCTION(name) name##_one
#define TARGET
#include "interpreter/kernels/simd/functions.h"
#undef VEC
#undef IVEC
#undef V
#undef FUNCTION
#undef TARGET

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

#define LOOP(name, function, target)                                                                                   \
    static target void name(float *to, const float *from, int64_t count) {                                             \
        TARE_INDEPENDENT                                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = function(from[i]);                                                                                 \
    }
#define LOGARITHMS(level, target)                                                                                      \
    LOOP(log_##level, log_one, target)                                                                                 \
    LOOP(log1p_##level, log1p_one, target)
#define OTHERS(level, target)                                                                                          \
    LOOP(exp_##level, exp_one, target)                                                                                 \
    LOOP(expm1_##level, expm1_one, target)                                                                             \
    LOOP(tanh_##level, tanh_one, target)                                                                               \
    LOOP(sigmoid_##level, sigmoid_one, target)                                                                         \
    LOOP(erf_##level, erf_one, target)                                                                                 \
    LOOP(erfc_##level, erfc_one, target)
TARE_EVERY_FORM(LOGARITHMS)
OTHERS(plain, )
#if TARE_KERNELS_X86
OTHERS(avx512, TARE_TARGET_AVX512)
#endif
#undef LOGARITHMS
#undef OTHERS
#undef LOOP

#if TARE_KERNELS_V8
#define LOOP(name)                                                                                                     \
    static TARE_TARGET_V8 void name##_v8(float *to, const float *from, int64_t count) {                                \
        int64_t i = 0;                                                                                                 \
        for (; i + 8 <= count; i += 8)                                                                                 \
            tare_v8_store(to + i, tare_##name##_v8(tare_v8_load(from + i)));                                           \
        const tare_m8 rest = tare_v8_first(count - i);                                                                 \
        if (i < count) tare_v8_store_lanes(to + i, tare_##name##_v8(tare_v8_load_lanes(from + i, rest)), rest);        \
    }
LOOP(exp)
LOOP(expm1)
LOOP(tanh)
LOOP(sigmoid)
LOOP(erf)
LOOP(erfc)
#undef LOOP
#endif

typedef void loop(float *to, const float *from, int64_t count);
#define LOOPS(level, of_logarithms)                                                                                    \
    static loop *const loops_##level[] = {                                                                             \
        [TARE_ELEMENTARY_EXP] = exp_##level,         [TARE_ELEMENTARY_EXPM1] = expm1_##level,                          \
        [TARE_ELEMENTARY_LOG] = log_##of_logarithms, [TARE_ELEMENTARY_LOG1P] = log1p_##of_logarithms,                  \
        [TARE_ELEMENTARY_TANH] = tanh_##level,       [TARE_ELEMENTARY_SIGMOID] = sigmoid_##level,                      \
        [TARE_ELEMENTARY_ERF] = erf_##level,         [TARE_ELEMENTARY_ERFC] = erfc_##level,                            \
    };
LOOPS(plain, plain)
#if TARE_KERNELS_X86
LOOPS(v8, avx2)
LOOPS(avx512, avx512)
#elif TARE_KERNELS_V8
LOOPS(v8, plain)
#endif
#undef LOOPS

static loop *const *loops_of(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return loops_avx512;
#endif
#if TARE_KERNELS_V8
    if (level >= TARE_CPU_V8) return loops_v8;
#endif
    (void)level;
    return loops_plain;
}

void tare_elementary_at(enum tare_cpu_level level, enum tare_elementary function, float *to, const float *from,
                        int64_t count) {
    loops_of(level)[function](to, from, count);
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
