/* The AVX2 variant of pipelines. */
#include "interpreter/kernels/pipeline.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

#define TARGET TARE_TARGET_AVX2
#define LEVEL TARE_CPU_AVX2
#define RUN tare_pipeline_avx2
typedef __m256 vec;
typedef __m256i ivec;
enum { LANES = 8, VECTORS = 4 };

#define FUNCTION(type, name, parameters, expression)                                                                   \
    TARE_ALWAYS_INLINE TARGET type name parameters {                                                                   \
        return expression;                                                                                             \
    }
FUNCTION(vec, as_vec, (ivec x), _mm256_castsi256_ps(x))
FUNCTION(ivec, as_ivec, (vec x), _mm256_castps_si256(x))
FUNCTION(vec, set_vec, (float x), _mm256_set1_ps(x))
FUNCTION(ivec, set_int, (int32_t x), _mm256_set1_epi32(x))
FUNCTION(vec, load_vec, (const float *from), _mm256_loadu_ps(from))
FUNCTION(ivec, load_int8, (const int8_t *from), _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from)))
FUNCTION(ivec, load_uint8, (const uint8_t *from), _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from)))
FUNCTION(ivec, load_int16, (const int16_t *from), _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)from)))
FUNCTION(ivec, load_uint16, (const uint16_t *from), _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)))
FUNCTION(void, store_vec, (float *to, vec x), _mm256_storeu_ps(to, x))
FUNCTION(ivec, shift_left_16, (ivec x), _mm256_slli_epi32(x, 16))
FUNCTION(ivec, shift_right_16, (ivec x), _mm256_srli_epi32(x, 16))
FUNCTION(ivec, sign_extend, (ivec x, int bits), _mm256_srai_epi32(_mm256_slli_epi32(x, bits), bits))
FUNCTION(ivec, and_int, (ivec x, ivec y), _mm256_and_si256(x, y))
/* the sign bit of x, and y */
FUNCTION(ivec, sign_or, (ivec x, ivec y), _mm256_or_si256(_mm256_and_si256(x, _mm256_set1_epi32(INT32_MIN)), y))
FUNCTION(ivec, xor_int, (ivec x, ivec y), _mm256_xor_si256(x, y))
FUNCTION(ivec, add_int, (ivec x, ivec y), _mm256_add_epi32(x, y))
FUNCTION(ivec, sub_int, (ivec x, ivec y), _mm256_sub_epi32(x, y))
FUNCTION(ivec, mul_int, (ivec x, ivec y), _mm256_mullo_epi32(x, y))
FUNCTION(ivec, max_int, (ivec x, ivec y), _mm256_max_epi32(x, y))
FUNCTION(ivec, min_int, (ivec x, ivec y), _mm256_min_epi32(x, y))
FUNCTION(vec, int_to_float, (ivec x), _mm256_cvtepi32_ps(x))
FUNCTION(ivec, float_to_int, (vec x), _mm256_cvttps_epi32(x))
FUNCTION(vec, add_vec, (vec x, vec y), _mm256_add_ps(x, y))
FUNCTION(vec, sub_vec, (vec x, vec y), _mm256_sub_ps(x, y))
FUNCTION(vec, mul_vec, (vec x, vec y), _mm256_mul_ps(x, y))
FUNCTION(vec, div_vec, (vec x, vec y), _mm256_div_ps(x, y))
/* x - y z, and x y + z, rounded once */
FUNCTION(vec, fused_sub_from, (vec y, vec z, vec x), _mm256_fnmadd_ps(y, z, x))
FUNCTION(vec, fused_add, (vec x, vec y, vec z), _mm256_fmadd_ps(x, y, z))
FUNCTION(vec, max_vec, (vec x, vec y), _mm256_max_ps(x, y))
FUNCTION(vec, min_vec, (vec x, vec y), _mm256_min_ps(x, y))
FUNCTION(vec, round_vec, (vec x), _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
FUNCTION(vec, floor_vec, (vec x), _mm256_floor_ps(x))
FUNCTION(ivec, round_to_int, (vec x), float_to_int(round_vec(x)))
FUNCTION(ivec, floor_to_int, (vec x), float_to_int(floor_vec(x)))
FUNCTION(vec, select_nan, (vec x, vec nan, vec other), _mm256_blendv_ps(other, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
FUNCTION(bool, is_any_nan, (vec x, vec y), _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q)) != 0)
/* Bits and 0x7fff or, if bit 16 is set, 0x8000. */
FUNCTION(ivec, add_rounding, (ivec x),
         _mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)),
                          _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1))))
typedef struct tare_range_avx2 range_lanes;
FUNCTION(range_lanes, range_load, (const struct tare_value_range *range), tare_range_load_avx2(range))
FUNCTION(void, range_add, (range_lanes * seen, vec x), tare_range_add_avx2(seen, x))
FUNCTION(void, range_store, (struct tare_value_range * range, const range_lanes *seen),
         tare_range_store_avx2(range, seen))
#undef FUNCTION

/* The high halves of x, then those of y. Packing works on 128-bit lanes: x, y, x, y. */
TARE_ALWAYS_INLINE TARGET void store_high_halves(uint16_t *to, ivec x, ivec y) {
    const ivec halves = _mm256_packus_epi32(_mm256_srli_epi32(x, 16), _mm256_srli_epi32(y, 16));
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute4x64_epi64(halves, 0xd8));
}

/* The low halves of 32-bit lanes. Packing saturates, so the upper bits are cleared before it. */
TARE_ALWAYS_INLINE TARGET __m128i low_halves(ivec x) {
    const ivec cleared = and_int(x, set_int(0xffff));
    return _mm_packus_epi32(_mm256_castsi256_si128(cleared), _mm256_extracti128_si256(cleared, 1));
}
TARE_ALWAYS_INLINE TARGET void store_low_halves(uint16_t *to, ivec x) {
    _mm_storeu_si128((__m128i *)to, low_halves(x));
}
/* Packing saturates, so the upper bits are cleared before it; it works on 128-bit lanes. */
TARE_ALWAYS_INLINE TARGET void store_bytes(uint8_t *to, const ivec x[VECTORS]) {
    const ivec low = set_int(0xff), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const ivec first = _mm256_packs_epi32(and_int(x[0], low), and_int(x[1], low)),
               second = _mm256_packs_epi32(and_int(x[2], low), and_int(x[3], low));
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order));
}
/* The lanes as signed bytes, saturated. */
TARE_ALWAYS_INLINE TARGET void store_saturated(int8_t *to, const ivec x[VECTORS]) {
    const ivec order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const ivec bytes = _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(bytes, order));
}

#include "interpreter/kernels/pipeline_loop.h"
#endif
