/* Vectors of eight floats: a register of AVX2, or two of NEON. Kernels that are written with them are compiled for
 * both. Of max and min the second operand is the result where they are equal or one is NaN, as on x86-64. A mask
 * selects the first lanes. */
#ifndef TARE_INTERPRETER_KERNELS_SIMD_V8_H
#define TARE_INTERPRETER_KERNELS_SIMD_V8_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>
#include <string.h>

#if TARE_KERNELS_X86
#include "interpreter/kernels/simd/avx2.h"

#define TARE_KERNELS_V8 1
#define TARE_TARGET_V8 TARE_TARGET_AVX2
typedef __m256 tare_v8;
typedef __m256i tare_m8, tare_i8; /* a mask; eight int32 */

#define TARE_V8(type, name, parameters, expression)                                                                    \
    TARE_ALWAYS_INLINE TARE_TARGET_AVX2 type tare_v8_##name parameters {                                               \
        return expression;                                                                                             \
    }
TARE_V8(tare_v8, set, (float x), _mm256_set1_ps(x))
TARE_V8(tare_v8, load, (const float *from), _mm256_loadu_ps(from))
TARE_V8(void, store, (float *to, tare_v8 x), _mm256_storeu_ps(to, x))
TARE_V8(tare_v8, load_lanes, (const float *from, tare_m8 mask), _mm256_maskload_ps(from, mask))
TARE_V8(void, store_lanes, (float *to, tare_v8 x, tare_m8 mask), _mm256_maskstore_ps(to, mask, x))
TARE_V8(tare_v8, add, (tare_v8 x, tare_v8 y), _mm256_add_ps(x, y))
TARE_V8(tare_v8, sub, (tare_v8 x, tare_v8 y), _mm256_sub_ps(x, y))
TARE_V8(tare_v8, mul, (tare_v8 x, tare_v8 y), _mm256_mul_ps(x, y))
TARE_V8(tare_v8, max, (tare_v8 x, tare_v8 y), _mm256_max_ps(x, y))
TARE_V8(tare_v8, min, (tare_v8 x, tare_v8 y), _mm256_min_ps(x, y))
/* x y + z, rounded once */
TARE_V8(tare_v8, fma, (tare_v8 x, tare_v8 y, tare_v8 z), _mm256_fmadd_ps(x, y, z))
/* x - y z, rounded once */
TARE_V8(tare_v8, sub_product, (tare_v8 x, tare_v8 y, tare_v8 z), _mm256_fnmadd_ps(y, z, x))
TARE_V8(tare_v8, div, (tare_v8 x, tare_v8 y), _mm256_div_ps(x, y))
TARE_V8(tare_v8, abs, (tare_v8 x), _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x))
TARE_V8(tare_v8, negative_abs, (tare_v8 x), _mm256_or_ps(_mm256_set1_ps(-0.0f), x))
TARE_V8(tare_v8, neg, (tare_v8 x), _mm256_xor_ps(_mm256_set1_ps(-0.0f), x))
TARE_V8(tare_v8, with_sign, (tare_v8 x, tare_v8 of),
        _mm256_or_ps(tare_v8_abs(x), _mm256_and_ps(_mm256_set1_ps(-0.0f), of)))
/* x < y ? then : otherwise */
TARE_V8(tare_v8, if_less, (tare_v8 x, tare_v8 y, tare_v8 then, tare_v8 otherwise),
        _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(x, y, _CMP_LT_OQ)))
TARE_V8(tare_i8, set_int, (int32_t x), _mm256_set1_epi32(x))
TARE_V8(tare_i8, add_int, (tare_i8 x, tare_i8 y), _mm256_add_epi32(x, y))
TARE_V8(tare_i8, sub_int, (tare_i8 x, tare_i8 y), _mm256_sub_epi32(x, y))
TARE_V8(tare_i8, shift_left, (tare_i8 x, const int count), _mm256_slli_epi32(x, count))
TARE_V8(tare_i8, shift_right, (tare_i8 x, const int count), _mm256_srai_epi32(x, count))
TARE_V8(tare_i8, bits, (tare_v8 x), _mm256_castps_si256(x))
TARE_V8(tare_v8, of_bits, (tare_i8 x), _mm256_castsi256_ps(x))
/* No lane is `most` or more, or NaN. */
TARE_V8(bool, is_below, (tare_v8 x, float most),
        _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(most), _CMP_LT_OQ)) == 0xff)
TARE_V8(tare_m8, first, (int64_t count), tare_lanes_avx2(count))
TARE_V8(tare_m8, all, (void), _mm256_set1_epi32(-1))
TARE_V8(int, lanes, (tare_m8 mask), __builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask))))
#undef TARE_V8

#elif defined(__aarch64__)
#include <arm_neon.h>

#define TARE_KERNELS_V8 1
#define TARE_TARGET_V8
typedef struct {
    float32x4_t low, high;
} tare_v8;
typedef struct {
    int32x4_t low, high;
} tare_i8;
typedef struct {
    int count;
} tare_m8;

#define TARE_V8(name, parameters, half_of_low, half_of_high)                                                           \
    TARE_ALWAYS_INLINE tare_v8 tare_v8_##name parameters {                                                             \
        return (tare_v8){ half_of_low, half_of_high };                                                                 \
    }
#define TARE_I8(name, parameters, half_of_low, half_of_high)                                                           \
    TARE_ALWAYS_INLINE tare_i8 tare_v8_##name parameters {                                                             \
        return (tare_i8){ half_of_low, half_of_high };                                                                 \
    }
TARE_V8(set, (float x), vdupq_n_f32(x), vdupq_n_f32(x))
TARE_V8(load, (const float *from), vld1q_f32(from), vld1q_f32(from + 4))
TARE_V8(add, (tare_v8 x, tare_v8 y), vaddq_f32(x.low, y.low), vaddq_f32(x.high, y.high))
TARE_V8(sub, (tare_v8 x, tare_v8 y), vsubq_f32(x.low, y.low), vsubq_f32(x.high, y.high))
TARE_V8(mul, (tare_v8 x, tare_v8 y), vmulq_f32(x.low, y.low), vmulq_f32(x.high, y.high))
TARE_V8(max, (tare_v8 x, tare_v8 y), vbslq_f32(vcgtq_f32(x.low, y.low), x.low, y.low),
        vbslq_f32(vcgtq_f32(x.high, y.high), x.high, y.high))
TARE_V8(min, (tare_v8 x, tare_v8 y), vbslq_f32(vcltq_f32(x.low, y.low), x.low, y.low),
        vbslq_f32(vcltq_f32(x.high, y.high), x.high, y.high))
TARE_V8(fma, (tare_v8 x, tare_v8 y, tare_v8 z), vfmaq_f32(z.low, x.low, y.low), vfmaq_f32(z.high, x.high, y.high))
TARE_V8(sub_product, (tare_v8 x, tare_v8 y, tare_v8 z), vfmsq_f32(x.low, y.low, z.low),
        vfmsq_f32(x.high, y.high, z.high))
TARE_V8(div, (tare_v8 x, tare_v8 y), vdivq_f32(x.low, y.low), vdivq_f32(x.high, y.high))
TARE_V8(abs, (tare_v8 x), vabsq_f32(x.low), vabsq_f32(x.high))
TARE_V8(negative_abs, (tare_v8 x), vnegq_f32(vabsq_f32(x.low)), vnegq_f32(vabsq_f32(x.high)))
TARE_V8(neg, (tare_v8 x), vnegq_f32(x.low), vnegq_f32(x.high))
TARE_V8(with_sign, (tare_v8 x, tare_v8 of), vbslq_f32(vdupq_n_u32(1u << 31), of.low, x.low),
        vbslq_f32(vdupq_n_u32(1u << 31), of.high, x.high))
TARE_V8(if_less, (tare_v8 x, tare_v8 y, tare_v8 then, tare_v8 otherwise),
        vbslq_f32(vcltq_f32(x.low, y.low), then.low, otherwise.low),
        vbslq_f32(vcltq_f32(x.high, y.high), then.high, otherwise.high))
TARE_V8(of_bits, (tare_i8 x), vreinterpretq_f32_s32(x.low), vreinterpretq_f32_s32(x.high))
TARE_I8(bits, (tare_v8 x), vreinterpretq_s32_f32(x.low), vreinterpretq_s32_f32(x.high))
TARE_I8(set_int, (int32_t x), vdupq_n_s32(x), vdupq_n_s32(x))
TARE_I8(add_int, (tare_i8 x, tare_i8 y), vaddq_s32(x.low, y.low), vaddq_s32(x.high, y.high))
TARE_I8(sub_int, (tare_i8 x, tare_i8 y), vsubq_s32(x.low, y.low), vsubq_s32(x.high, y.high))
TARE_I8(shift_left, (tare_i8 x, const int count), vshlq_s32(x.low, vdupq_n_s32(count)),
        vshlq_s32(x.high, vdupq_n_s32(count)))
TARE_I8(shift_right, (tare_i8 x, const int count), vshlq_s32(x.low, vdupq_n_s32(-count)),
        vshlq_s32(x.high, vdupq_n_s32(-count)))
#undef TARE_I8
#undef TARE_V8

TARE_ALWAYS_INLINE void tare_v8_store(float *to, tare_v8 x) {
    vst1q_f32(to, x.low);
    vst1q_f32(to + 4, x.high);
}
TARE_ALWAYS_INLINE bool tare_v8_is_below(tare_v8 x, float most) {
    const uint32x4_t low = vcltq_f32(x.low, vdupq_n_f32(most)), high = vcltq_f32(x.high, vdupq_n_f32(most));
    return vminvq_u32(vandq_u32(low, high)) != 0;
}
TARE_ALWAYS_INLINE tare_m8 tare_v8_first(int64_t count) {
    return (tare_m8){ count >= 8 ? 8 : count > 0 ? (int)count : 0 };
}
TARE_ALWAYS_INLINE tare_m8 tare_v8_all(void) {
    return (tare_m8){ 8 };
}
TARE_ALWAYS_INLINE int tare_v8_lanes(tare_m8 mask) {
    return mask.count;
}
TARE_ALWAYS_INLINE tare_v8 tare_v8_load_lanes(const float *from, tare_m8 mask) {
    float lanes[8] = { 0 };
    if (mask.count == 8) return tare_v8_load(from);
    memcpy(lanes, from, (size_t)mask.count * sizeof *from);
    return tare_v8_load(lanes);
}
TARE_ALWAYS_INLINE void tare_v8_store_lanes(float *to, tare_v8 x, tare_m8 mask) {
    float lanes[8];
    tare_v8_store(mask.count == 8 ? to : lanes, x);
    if (mask.count < 8) memcpy(to, lanes, (size_t)mask.count * sizeof *to);
}
#else
#define TARE_KERNELS_V8 0
#endif

#if TARE_KERNELS_V8
/* The lowest level with these kernels, which all higher ones of the machine have. */
#define TARE_CPU_V8 TARE_CPU_NEON

/* The first `count` lanes, which `mask` selects; at least 8 are all. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 tare_v8_load_first(const float *from, tare_m8 mask, int64_t count) {
    return count >= 8 ? tare_v8_load(from) : tare_v8_load_lanes(from, mask);
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void tare_v8_store_first(float *to, tare_v8 x, tare_m8 mask, int64_t count) {
    if (count >= 8)
        tare_v8_store(to, x);
    else
        tare_v8_store_lanes(to, x, mask);
}
#endif

#endif
