/* The smallest and largest of the float values that a pass computes, for example the range of an activation that is
 * quantized dynamically: each kernel adds what is in its registers, so that no later pass reads the values for it.
 *
 * The extremes are those of the values' bits, compared as integers: of floats without sign bit the order is the same,
 * and of those with sign bit it is reversed. NaN has larger bits than infinity, so it is found in the result. */
#ifndef TARE_INTERPRETER_KERNELS_VALUE_RANGE_H
#define TARE_INTERPRETER_KERNELS_VALUE_RANGE_H

#include "interpreter/kernels/cpu.h"

#include <stdbool.h>
#include <stdint.h>

enum { TARE_RANGE_LANES = 16 };
struct tare_value_range {
    int32_t low[TARE_RANGE_LANES], high[TARE_RANGE_LANES]; /* smallest and largest bits as signed integers */
    /* Largest bits as unsigned integers. A kernel whose values are not negative need not update them: a sign bit, as of
     * -0, is found in `low`, and tare_value_range_end then returns false. */
    uint32_t negative[TARE_RANGE_LANES];
};

/* No values yet. */
void tare_value_range_begin(struct tare_value_range *range);
/* Adds `count` values; every level has the same result. */
void tare_value_range_add(struct tare_value_range *range, const float *values, int64_t count);
void tare_value_range_add_at(enum tare_cpu_level level, struct tare_value_range *range, const float *values,
                             int64_t count);
/* Adds the values of another range. */
void tare_value_range_merge(struct tare_value_range *range, const struct tare_value_range *other);
/* The smallest and largest value. False if there is none, one is NaN, or the sign of a zero among them depends on the
 * order of comparisons. */
bool tare_value_range_end(float *low, float *high, const struct tare_value_range *range);

#if TARE_KERNELS_X86
#include <immintrin.h>

struct tare_range_avx512 {
    __m512i low, high, negative;
};

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 struct tare_range_avx512
tare_range_load_avx512(const struct tare_value_range *range) {
    return (struct tare_range_avx512){ _mm512_loadu_si512(range->low), _mm512_loadu_si512(range->high),
                                       _mm512_loadu_si512(range->negative) };
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_range_store_avx512(struct tare_value_range *range,
                                                                   const struct tare_range_avx512 *seen) {
    _mm512_storeu_si512(range->low, seen->low);
    _mm512_storeu_si512(range->high, seen->high);
    _mm512_storeu_si512(range->negative, seen->negative);
}
/* Adds the mask's lanes. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_range_add_avx512(struct tare_range_avx512 *seen, __m512 x,
                                                                 __mmask16 mask) {
    const __m512i bits = _mm512_castps_si512(x);
    seen->low = _mm512_mask_min_epi32(seen->low, mask, seen->low, bits);
    seen->high = _mm512_mask_max_epi32(seen->high, mask, seen->high, bits);
    seen->negative = _mm512_mask_max_epu32(seen->negative, mask, seen->negative, bits);
}

struct tare_range_avx2 {
    __m256i low, high, negative;
};

/* The first 8 lanes. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 struct tare_range_avx2 tare_range_load_avx2(const struct tare_value_range *range) {
    return (struct tare_range_avx2){ _mm256_loadu_si256((const __m256i *)(const void *)range->low),
                                     _mm256_loadu_si256((const __m256i *)(const void *)range->high),
                                     _mm256_loadu_si256((const __m256i *)(const void *)range->negative) };
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_range_store_avx2(struct tare_value_range *range,
                                                               const struct tare_range_avx2 *seen) {
    _mm256_storeu_si256((__m256i *)(void *)range->low, seen->low);
    _mm256_storeu_si256((__m256i *)(void *)range->high, seen->high);
    _mm256_storeu_si256((__m256i *)(void *)range->negative, seen->negative);
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_range_add_avx2(struct tare_range_avx2 *seen, __m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    seen->low = _mm256_min_epi32(seen->low, bits);
    seen->high = _mm256_max_epi32(seen->high, bits);
    seen->negative = _mm256_max_epu32(seen->negative, bits);
}
#endif

#endif
