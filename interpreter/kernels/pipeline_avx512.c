/* The AVX-512 variant of pipelines. */
#include "interpreter/kernels/pipeline.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

#define TARGET TARE_TARGET_AVX512
#define LEVEL TARE_CPU_AVX512
#define RUN tare_pipeline_avx512
typedef __m512 vec;
typedef __m512i ivec;
enum { LANES = 16, VECTORS = 4 };

#define FUNCTION(type, name, parameters, expression)                                                                   \
    TARE_ALWAYS_INLINE TARGET type name parameters {                                                                   \
        return expression;                                                                                             \
    }
FUNCTION(vec, as_vec, (ivec x), _mm512_castsi512_ps(x))
FUNCTION(ivec, as_ivec, (vec x), _mm512_castps_si512(x))
FUNCTION(vec, set_vec, (float x), _mm512_set1_ps(x))
FUNCTION(ivec, set_int, (int32_t x), _mm512_set1_epi32(x))
FUNCTION(vec, load_vec, (const float *from), _mm512_loadu_ps(from))
FUNCTION(ivec, load_int8, (const int8_t *from), _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)))
FUNCTION(ivec, load_uint8, (const uint8_t *from), _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from)))
FUNCTION(ivec, load_int16, (const int16_t *from), _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)from)))
FUNCTION(ivec, load_uint16, (const uint16_t *from), _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)))
FUNCTION(void, store_vec, (float *to, vec x), _mm512_storeu_ps(to, x))
FUNCTION(void, store_low_halves, (uint16_t * to, ivec x), _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(x)))
FUNCTION(ivec, shift_left_16, (ivec x), _mm512_slli_epi32(x, 16))
FUNCTION(ivec, shift_right_16, (ivec x), _mm512_srli_epi32(x, 16))
FUNCTION(ivec, sign_extend, (ivec x, unsigned bits), _mm512_srai_epi32(_mm512_slli_epi32(x, bits), bits))
FUNCTION(ivec, and_int, (ivec x, ivec y), _mm512_and_si512(x, y))
/* the sign bit of x, and y */
FUNCTION(ivec, sign_or, (ivec x, ivec y), _mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN), x, y, 0xea))
FUNCTION(ivec, xor_int, (ivec x, ivec y), _mm512_xor_si512(x, y))
FUNCTION(ivec, add_int, (ivec x, ivec y), _mm512_add_epi32(x, y))
FUNCTION(ivec, sub_int, (ivec x, ivec y), _mm512_sub_epi32(x, y))
FUNCTION(ivec, mul_int, (ivec x, ivec y), _mm512_mullo_epi32(x, y))
FUNCTION(ivec, max_int, (ivec x, ivec y), _mm512_max_epi32(x, y))
FUNCTION(ivec, min_int, (ivec x, ivec y), _mm512_min_epi32(x, y))
FUNCTION(vec, int_to_float, (ivec x), _mm512_cvtepi32_ps(x))
FUNCTION(ivec, float_to_int, (vec x), _mm512_cvttps_epi32(x))
FUNCTION(ivec, round_to_int, (vec x), _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
FUNCTION(ivec, floor_to_int, (vec x), _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
FUNCTION(vec, add_vec, (vec x, vec y), _mm512_add_ps(x, y))
FUNCTION(vec, sub_vec, (vec x, vec y), _mm512_sub_ps(x, y))
FUNCTION(vec, mul_vec, (vec x, vec y), _mm512_mul_ps(x, y))
FUNCTION(vec, div_vec, (vec x, vec y), _mm512_div_ps(x, y))
/* x - y z, and x y + z, rounded once */
FUNCTION(vec, fused_sub_from, (vec y, vec z, vec x), _mm512_fnmadd_ps(y, z, x))
FUNCTION(vec, fused_add, (vec x, vec y, vec z), _mm512_fmadd_ps(x, y, z))
FUNCTION(vec, max_vec, (vec x, vec y), _mm512_max_ps(x, y))
FUNCTION(vec, min_vec, (vec x, vec y), _mm512_min_ps(x, y))
FUNCTION(vec, round_vec, (vec x), _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
FUNCTION(vec, floor_vec, (vec x), _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
FUNCTION(vec, select_nan, (vec x, vec nan, vec other),
         _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), other, nan))
FUNCTION(bool, is_any_nan, (vec x, vec y), _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) != 0)
/* Bits and 0x7fff or, if bit 16 is set, 0x8000: the pair (bit 16, 0x7fff), multiplied with ones and summed. */
FUNCTION(ivec, add_rounding, (ivec x),
         _mm512_add_epi32(x, _mm512_madd_epi16(_mm512_ternarylogic_epi32(x, _mm512_set1_epi32(1 << 16),
                                                                         _mm512_set1_epi32(0x7fff), 0xea),
                                               _mm512_set1_epi16(1))))
typedef struct tare_range_avx512 range_lanes;
FUNCTION(range_lanes, range_load, (const struct tare_value_range *range), tare_range_load_avx512(range))
FUNCTION(void, range_add, (range_lanes * seen, vec x), tare_range_add_avx512(seen, x, 0xffff))
FUNCTION(void, range_store, (struct tare_value_range * range, const range_lanes *seen),
         tare_range_store_avx512(range, seen))
#undef FUNCTION

/* The high halves of x, then those of y. */
TARE_ALWAYS_INLINE TARGET ivec high_halves(ivec x, ivec y) {
    static const uint16_t odd[32] = { 1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63 };
    return _mm512_permutex2var_epi16(x, _mm512_loadu_si512(odd), y);
}
TARE_ALWAYS_INLINE TARGET void store_high_halves(uint16_t *to, ivec x, ivec y) {
    _mm512_storeu_si512(to, high_halves(x, y));
}

/* The low bytes of 32-bit lanes. Packing saturates, so the upper bits are cleared before it. */
TARE_ALWAYS_INLINE TARGET void store_bytes(uint8_t *to, const ivec x[VECTORS]) {
    const ivec low = set_int(0xff), order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const ivec first = _mm512_packs_epi32(and_int(x[0], low), and_int(x[1], low)),
               second = _mm512_packs_epi32(and_int(x[2], low), and_int(x[3], low));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second)));
}
/* The lanes as signed bytes, saturated. */
TARE_ALWAYS_INLINE TARGET void store_saturated(int8_t *to, const ivec x[VECTORS]) {
    const ivec order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const ivec bytes = _mm512_packs_epi16(_mm512_packs_epi32(x[0], x[1]), _mm512_packs_epi32(x[2], x[3]));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, bytes));
}

#include "interpreter/kernels/pipeline_loop.h"
#endif
