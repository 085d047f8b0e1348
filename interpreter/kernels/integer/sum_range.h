/* The range of the float results of an int8 product from its int32 sums. A result depends on its sum and its column
 * only, monotonically, so the extremes of a column's sums yield those of its results: two operations for a vector of
 * sums instead of the conversion. */
#ifndef TARE_INTERPRETER_KERNELS_SUM_RANGE_H
#define TARE_INTERPRETER_KERNELS_SUM_RANGE_H

#include "interpreter/kernels/value_range.h"

#include <stdbool.h>
#include <stdint.h>

struct tare_requantize;

/* By column: the least and the greatest sum so far; the least is greater than the greatest if there is none. */
struct tare_sum_range {
    int32_t *low, *high;
};

/* No sums yet. */
void tare_sum_range_begin(struct tare_sum_range *sums, int64_t columns);
/* Adds the sums of another range of as many columns. */
void tare_sum_range_merge(struct tare_sum_range *sums, const struct tare_sum_range *other, int64_t columns);
/* Adds the smallest and the largest result of each column to `range`. False if they do not follow from the extremes: a
 * sum with its offset wraps, or a scale is not positive and normal, so that a result could be -0. Requires AVX2 and a
 * requantization with float results and without addend. */
bool tare_sum_range_end(struct tare_value_range *range, const struct tare_sum_range *sums,
                        const struct tare_requantize *requantize);
bool tare_sum_range_end_at(enum tare_cpu_level level, struct tare_value_range *range, const struct tare_sum_range *sums,
                           const struct tare_requantize *requantize);

#if TARE_KERNELS_X86
struct tare_sum_range_avx512 {
    __m512i low, high;
};
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 struct tare_sum_range_avx512
tare_sum_range_load(const struct tare_sum_range *sums, int64_t column, __mmask16 mask) {
    return (struct tare_sum_range_avx512){ _mm512_maskz_loadu_epi32(mask, sums->low + column),
                                           _mm512_maskz_loadu_epi32(mask, sums->high + column) };
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_sum_range_store(struct tare_sum_range *sums, int64_t column,
                                                                __mmask16 mask,
                                                                const struct tare_sum_range_avx512 *seen) {
    _mm512_mask_storeu_epi32(sums->low + column, mask, seen->low);
    _mm512_mask_storeu_epi32(sums->high + column, mask, seen->high);
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_sum_range_add(struct tare_sum_range_avx512 *seen, __m512i sums) {
    seen->low = _mm512_min_epi32(seen->low, sums);
    seen->high = _mm512_max_epi32(seen->high, sums);
}

struct tare_sum_range_avx2 {
    __m256i low, high;
};
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 struct tare_sum_range_avx2
tare_sum_range_load_avx2(const struct tare_sum_range *sums, int64_t column, __m256i mask) {
    return (struct tare_sum_range_avx2){ _mm256_maskload_epi32(sums->low + column, mask),
                                         _mm256_maskload_epi32(sums->high + column, mask) };
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_sum_range_store_avx2(struct tare_sum_range *sums, int64_t column,
                                                                   __m256i mask,
                                                                   const struct tare_sum_range_avx2 *seen) {
    _mm256_maskstore_epi32(sums->low + column, mask, seen->low);
    _mm256_maskstore_epi32(sums->high + column, mask, seen->high);
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_sum_range_add_avx2(struct tare_sum_range_avx2 *seen, __m256i sums) {
    seen->low = _mm256_min_epi32(seen->low, sums);
    seen->high = _mm256_max_epi32(seen->high, sums);
}
#endif

#endif
