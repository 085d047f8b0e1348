/* Vectors of floats that are rounded to bfloat16, or loaded from and stored as bfloat16. */
#ifndef TARE_INTERPRETER_KERNELS_BFLOAT16_LANES_H
#define TARE_INTERPRETER_KERNELS_BFLOAT16_LANES_H

#include "interpreter/kernels/simd/v8.h"

#include <stdint.h>

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

/* bfloat16-rtne, as a float whose low half is zero; a NaN stays as it is, since its low half is zero already. The pairs
 * (bit 16, 0x7fff) of 16-bit numbers are multiplied with ones and summed: what rounding adds to the bits. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_rounded_avx512(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i pairs = /* (bits & first) | second */
        _mm512_ternarylogic_epi32(bits, _mm512_set1_epi32(1 << 16), _mm512_set1_epi32(0x7fff), 0xea);
    const __m512i sum = _mm512_add_epi32(bits, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    return _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32((int32_t)0xffff0000)));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_rounded_v8(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32((int32_t)0xffff0000)));
}

/* NaN becomes 0x7fc00000 or 0xffc00000, with its sign. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_canonical_avx512(__m512 x) {
    const __m512i sign = _mm512_set1_epi32(INT32_MIN), nan = _mm512_set1_epi32(0x7fc00000);
    const __m512i signed_nan = _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), nan, 0xea);
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castsi512_ps(signed_nan));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_canonical_v8(__m256 x) {
    const __m256 sign = _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN)));
    const __m256 nan = _mm256_or_ps(sign, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
    return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* The first `count` of 8 elements. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_load_bfloat16_v8(const uint16_t *from, int64_t count) {
    __m128i halves = _mm_setzero_si128();
    if (count == 8)
        halves = _mm_loadu_si128((const __m128i *)(const void *)from);
    else
        memcpy(&halves, from, (size_t)count * sizeof *from);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_store_bfloat16_v8(uint16_t *to, __m256 x, int64_t count) {
    const __m256i bits = _mm256_srli_epi32(_mm256_castps_si256(x), 16);
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    if (count == 8)
        _mm_storeu_si128((__m128i *)(void *)to, halves);
    else
        memcpy(to, &halves, (size_t)count * sizeof *to);
}

#elif TARE_KERNELS_V8
TARE_ALWAYS_INLINE float32x4_t tare_rounded_half(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t sum = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    return vreinterpretq_f32_u32(vandq_u32(sum, vdupq_n_u32(0xffff0000)));
}
TARE_ALWAYS_INLINE tare_v8 tare_rounded_v8(tare_v8 x) {
    return (tare_v8){ tare_rounded_half(x.low), tare_rounded_half(x.high) };
}

TARE_ALWAYS_INLINE float32x4_t tare_canonical_half(float32x4_t x) {
    const uint32x4_t nan = vbslq_u32(vdupq_n_u32(0x80000000), vreinterpretq_u32_f32(x), vdupq_n_u32(0x7fc00000));
    return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(nan));
}
TARE_ALWAYS_INLINE tare_v8 tare_canonical_v8(tare_v8 x) {
    return (tare_v8){ tare_canonical_half(x.low), tare_canonical_half(x.high) };
}

TARE_ALWAYS_INLINE tare_v8 tare_load_bfloat16_v8(const uint16_t *from, int64_t count) {
    uint16_t lanes[8] = { 0 };
    if (count < 8) memcpy(lanes, from, (size_t)count * sizeof *from);
    const uint16x8_t halves = vld1q_u16(count < 8 ? lanes : from);
    return (tare_v8){ vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)),
                      vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(halves), 16)) };
}

TARE_ALWAYS_INLINE void tare_store_bfloat16_v8(uint16_t *to, tare_v8 x, int64_t count) {
    const uint16x8_t halves =
        vcombine_u16(vshrn_n_u32(vreinterpretq_u32_f32(x.low), 16), vshrn_n_u32(vreinterpretq_u32_f32(x.high), 16));
    uint16_t lanes[8];
    vst1q_u16(count < 8 ? lanes : to, halves);
    if (count < 8) memcpy(to, lanes, (size_t)count * sizeof *to);
}
#endif

#endif
