/* The scan with AVX-512: 16 values per iteration; zeros and values that are not finite write no slot. */
#include "calib/scan.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

TARE_TARGET_AVX512 int tare_scan_avx512(struct tare_scan *scan, uint32_t *slots, const float *values, int count) {
    __m512 low = _mm512_set1_ps(scan->low), high = _mm512_set1_ps(scan->high);
    __m512d sum0 = _mm512_loadu_pd(scan->sums), sum1 = _mm512_loadu_pd(scan->sums + 8);
    __m512d square0 = _mm512_loadu_pd(scan->squares), square1 = _mm512_loadu_pd(scan->squares + 8);
    const __m512i magnitude_mask = _mm512_set1_epi32(0x7fffffff), limit = _mm512_set1_epi32(0x7f7fffff);
    int i = 0, used = 0, zeros = 0, not_finite = 0;
    for (; i + 16 <= count; i += 16) {
        __m512i bits = _mm512_loadu_si512(values + i);
        __m512i magnitude = _mm512_and_si512(bits, magnitude_mask);
        __mmask16 finite = _mm512_cmple_epi32_mask(magnitude, limit);
        __mmask16 zero = _mm512_testn_epi32_mask(bits, magnitude_mask);
        __mmask16 counted = finite & (__mmask16)~zero;
        low = _mm512_mask_min_ps(low, finite, low, _mm512_castsi512_ps(bits));
        high = _mm512_mask_max_ps(high, finite, high, _mm512_castsi512_ps(bits));
        zeros += __builtin_popcount(zero);
        not_finite += 16 - __builtin_popcount(finite);
        /* Compressing in a register and storing 16 is much faster than a compressing store; used + 16 never passes
         * i + 16. */
        _mm512_storeu_si512(slots + used,
                            _mm512_maskz_compress_epi32(counted, _mm512_srli_epi32(bits, TARE_SCAN_SHIFT)));
        used += __builtin_popcount(counted);
        __m512 kept = _mm512_castsi512_ps(_mm512_maskz_mov_epi32(counted, bits));
        __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(kept)), b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(kept, 1));
        sum0 = _mm512_add_pd(sum0, a);
        sum1 = _mm512_add_pd(sum1, b);
        square0 = _mm512_fmadd_pd(a, a, square0); /* the square of a float is exact in double: as multiply and add */
        square1 = _mm512_fmadd_pd(b, b, square1);
    }
    scan->low = _mm512_reduce_min_ps(low) + 0.0f; /* -0 becomes +0 */
    scan->high = _mm512_reduce_max_ps(high) + 0.0f;
    scan->zeros += zeros;
    scan->not_finite += not_finite;
    _mm512_storeu_pd(scan->sums, sum0);
    _mm512_storeu_pd(scan->sums + 8, sum1);
    _mm512_storeu_pd(scan->squares, square0);
    _mm512_storeu_pd(scan->squares + 8, square1);
    return used + tare_scan_plain(scan, slots + used, values + i, count - i);
}
#endif
