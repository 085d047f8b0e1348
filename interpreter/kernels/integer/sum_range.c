#include "interpreter/kernels/integer/sum_range.h"

#include "interpreter/kernels/integer/requantize.h"

#include <float.h>

#if TARE_KERNELS_X86
/* Adds the results of sums; returns the mask of those that wrap. */
static TARE_TARGET_AVX512 __mmask16 add_results(struct tare_range_avx512 *seen, const struct tare_requantize *r,
                                                int64_t column, __m512i sums, __mmask16 mask) {
    const __m512i offset = _mm512_maskz_loadu_epi32(mask, r->offset + column), total = _mm512_add_epi32(sums, offset);
    const __m512i wraps = _mm512_and_si512(_mm512_xor_si512(sums, total), _mm512_xor_si512(offset, total));
    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(total), _mm512_maskz_loadu_ps(mask, r->scale + column));
    if (r->real.bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, r->real.bias + column));
    x = _mm512_min_ps(_mm512_set1_ps(r->real.high), _mm512_max_ps(_mm512_set1_ps(r->real.low), x));
    tare_range_add_avx512(seen, x, mask);
    return _mm512_mask_cmplt_epi32_mask(mask, wraps, _mm512_setzero_si512());
}

static TARE_TARGET_AVX512 bool end_avx512(struct tare_value_range *range, const struct tare_sum_range *sums,
                                          const struct tare_requantize *r) {
    struct tare_range_avx512 seen = tare_range_load_avx512(range);
    __mmask16 failed = 0;
    for (int64_t c = 0; c < r->columns; c += 16) {
        const __mmask16 inside = (__mmask16)(0xffffu >> (r->columns - c < 16 ? 16 - (r->columns - c) : 0));
        const struct tare_sum_range_avx512 of = tare_sum_range_load(sums, c, inside);
        const __mmask16 mask = _mm512_mask_cmple_epi32_mask(inside, of.low, of.high);
        const __m512 scale = _mm512_maskz_loadu_ps(mask, r->scale + c);
        failed |= add_results(&seen, r, c, of.low, mask) | add_results(&seen, r, c, of.high, mask);
        failed |= mask & ~(_mm512_cmp_ps_mask(scale, _mm512_set1_ps(FLT_MIN), _CMP_GE_OQ) &
                           _mm512_cmp_ps_mask(scale, _mm512_set1_ps(FLT_MAX), _CMP_LE_OQ));
    }
    tare_range_store_avx512(range, &seen);
    return failed == 0;
}

/* ---- AVX2 ---- */

/* Adds the results of the mask's sums; returns the mask of those that wrap. */
static TARE_TARGET_AVX2 int add_results_avx2(struct tare_range_avx2 *seen, const struct tare_requantize *r,
                                             int64_t column, __m256i sums, __m256i mask) {
    const __m256i offset = _mm256_loadu_si256((const __m256i *)(const void *)(r->offset + column));
    const __m256i total = _mm256_add_epi32(sums, offset);
    const __m256i wraps = _mm256_and_si256(_mm256_xor_si256(sums, total), _mm256_xor_si256(offset, total));
    struct tare_range_avx2 with = *seen;
    __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(total), _mm256_loadu_ps(r->scale + column));
    if (r->real.bias) x = _mm256_add_ps(x, _mm256_loadu_ps(r->real.bias + column));
    x = _mm256_min_ps(_mm256_set1_ps(r->real.high), _mm256_max_ps(_mm256_set1_ps(r->real.low), x));
    tare_range_add_avx2(&with, x);
    seen->low = _mm256_blendv_epi8(seen->low, with.low, mask);
    seen->high = _mm256_blendv_epi8(seen->high, with.high, mask);
    seen->negative = _mm256_blendv_epi8(seen->negative, with.negative, mask);
    return _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_and_si256(mask, wraps)));
}

static TARE_TARGET_AVX2 bool end_avx2(struct tare_value_range *range, const struct tare_sum_range *sums,
                                      const struct tare_requantize *r) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    struct tare_range_avx2 seen = tare_range_load_avx2(range);
    int failed = 0;
    for (int64_t c = 0; c < r->columns; c += 8) { /* the arrays have 16 lanes more */
        const int left = r->columns - c < 8 ? (int)(r->columns - c) : 8;
        const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lane);
        const struct tare_sum_range_avx2 of = tare_sum_range_load_avx2(sums, c, inside);
        const __m256i mask = _mm256_andnot_si256(_mm256_cmpgt_epi32(of.low, of.high), inside);
        const __m256 scale = _mm256_loadu_ps(r->scale + c);
        const __m256 is_normal = _mm256_and_ps(_mm256_cmp_ps(scale, _mm256_set1_ps(FLT_MIN), _CMP_GE_OQ),
                                               _mm256_cmp_ps(scale, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ));
        failed |= add_results_avx2(&seen, r, c, of.low, mask) | add_results_avx2(&seen, r, c, of.high, mask);
        failed |= _mm256_movemask_ps(_mm256_andnot_ps(is_normal, _mm256_castsi256_ps(mask)));
    }
    tare_range_store_avx2(range, &seen);
    return failed == 0;
}
#endif

void tare_sum_range_begin(struct tare_sum_range *sums, int64_t columns) {
    for (int64_t i = 0; i < columns; i++)
        sums->low[i] = INT32_MAX, sums->high[i] = INT32_MIN;
}

void tare_sum_range_merge(struct tare_sum_range *sums, const struct tare_sum_range *other, int64_t columns) {
    for (int64_t i = 0; i < columns; i++) {
        if (other->low[i] < sums->low[i]) sums->low[i] = other->low[i];
        if (other->high[i] > sums->high[i]) sums->high[i] = other->high[i];
    }
}

bool tare_sum_range_end_at(enum tare_cpu_level level, struct tare_value_range *range, const struct tare_sum_range *sums,
                           const struct tare_requantize *requantize) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return end_avx512(range, sums, requantize);
    if (level >= TARE_CPU_AVX2) return end_avx2(range, sums, requantize);
#endif
    (void)level, (void)range, (void)sums, (void)requantize;
    return false;
}

bool tare_sum_range_end(struct tare_value_range *range, const struct tare_sum_range *sums,
                        const struct tare_requantize *requantize) {
    return tare_sum_range_end_at(tare_cpu_level(), range, sums, requantize);
}
