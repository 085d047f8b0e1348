#include "interpreter/kernels/integer/sum_range.h"

#include "interpreter/kernels/integer/requantize.h"

#include <float.h>

#if TARE_KERNELS_X86
static TARE_TARGET_AVX512 void begin_avx512(struct tare_sum_range *sums, int64_t columns) {
    const struct tare_sum_range_avx512 none = { _mm512_set1_epi32(INT32_MAX), _mm512_set1_epi32(INT32_MIN) };
    for (int64_t c = 0; c < columns; c += 16)
        tare_sum_range_store(sums, c, (__mmask16)(0xffffu >> (columns - c < 16 ? 16 - (columns - c) : 0)), &none);
}

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
#endif

void tare_sum_range_begin(struct tare_sum_range *sums, int64_t columns) {
#if TARE_KERNELS_X86
    begin_avx512(sums, columns);
#else
    (void)sums, (void)columns;
#endif
}

void tare_sum_range_merge(struct tare_sum_range *sums, const struct tare_sum_range *other, int64_t columns) {
    for (int64_t i = 0; i < columns; i++) {
        if (other->low[i] < sums->low[i]) sums->low[i] = other->low[i];
        if (other->high[i] > sums->high[i]) sums->high[i] = other->high[i];
    }
}

bool tare_sum_range_end(struct tare_value_range *range, const struct tare_sum_range *sums,
                        const struct tare_requantize *requantize) {
#if TARE_KERNELS_X86
    return end_avx512(range, sums, requantize);
#else
    (void)range, (void)sums, (void)requantize;
    return false;
#endif
}
