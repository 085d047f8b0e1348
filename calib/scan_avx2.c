/* The scan with AVX2: 16 values a turn. */
#include "calib/scan.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

struct state {
    __m256i low, high, smallest, largest, zeros, not_finite;
    __m256d sums[4], squares[4];
};

TARE_TARGET_AVX2 TARE_ALWAYS_INLINE void step(struct state *s, int half, uint32_t *slots, const float *values) {
    const __m256i magnitude_mask = _mm256_set1_epi32(0x7fffffff), limit = _mm256_set1_epi32(0x7f7fffff);
    __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(values));
    __m256i magnitude = _mm256_and_si256(bits, magnitude_mask);
    __m256i infinite = _mm256_cmpgt_epi32(magnitude, limit);
    __m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
    __m256i key = _mm256_xor_si256(bits, _mm256_srli_epi32(_mm256_srai_epi32(bits, 31), 1));
    s->low = _mm256_min_epi32(s->low, _mm256_blendv_epi8(key, _mm256_set1_epi32(INT32_MAX), infinite));
    s->high = _mm256_max_epi32(s->high, _mm256_blendv_epi8(key, _mm256_set1_epi32(INT32_MIN), infinite));
    s->zeros = _mm256_sub_epi32(s->zeros, zero);
    s->not_finite = _mm256_sub_epi32(s->not_finite, infinite);
    __m256i left_out = _mm256_or_si256(zero, infinite);
    s->smallest = _mm256_min_epu32(s->smallest, _mm256_or_si256(magnitude, left_out));
    s->largest = _mm256_max_epu32(s->largest, _mm256_andnot_si256(left_out, magnitude));

    const __m256i spread =
        _mm256_add_epi32(_mm256_set1_epi32(TARE_SCAN_NO_SLOT + 16 * half), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i slot = _mm256_blendv_epi8(_mm256_srli_epi32(bits, TARE_SCAN_SHIFT), spread, left_out);
    _mm256_storeu_si256((__m256i *)slots, slot);

    __m256 finite = _mm256_castsi256_ps(_mm256_andnot_si256(infinite, bits));
    __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(finite)), b = _mm256_cvtps_pd(_mm256_extractf128_ps(finite, 1));
    s->sums[2 * half] = _mm256_add_pd(s->sums[2 * half], a);
    s->sums[2 * half + 1] = _mm256_add_pd(s->sums[2 * half + 1], b);
    /* The square of a float is exact in double: as multiply and add. */
    s->squares[2 * half] = _mm256_fmadd_pd(a, a, s->squares[2 * half]);
    s->squares[2 * half + 1] = _mm256_fmadd_pd(b, b, s->squares[2 * half + 1]);
}

TARE_TARGET_AVX2 static void load_state(struct state *s, const struct tare_scan *scan) {
    s->low = _mm256_set1_epi32(scan->low);
    s->high = _mm256_set1_epi32(scan->high);
    s->smallest = _mm256_set1_epi32((int32_t)scan->smallest);
    s->largest = _mm256_set1_epi32((int32_t)scan->largest);
    s->zeros = s->not_finite = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        s->sums[i] = _mm256_loadu_pd(scan->sums + 4 * i);
        s->squares[i] = _mm256_loadu_pd(scan->squares + 4 * i);
    }
}

TARE_TARGET_AVX2 static void store_state(struct tare_scan *scan, const struct state *s) {
    union {
        __m256i v[6];
        int32_t i[6][8];
        uint32_t u[6][8];
    } out = { { s->low, s->high, s->smallest, s->largest, s->zeros, s->not_finite } };
    for (int i = 0; i < 8; i++) {
        if (out.i[0][i] < scan->low) scan->low = out.i[0][i];
        if (out.i[1][i] > scan->high) scan->high = out.i[1][i];
        if (out.u[2][i] < scan->smallest) scan->smallest = out.u[2][i];
        if (out.u[3][i] > scan->largest) scan->largest = out.u[3][i];
        scan->zeros += out.u[4][i];
        scan->not_finite += out.u[5][i];
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_pd(scan->sums + 4 * i, s->sums[i]);
        _mm256_storeu_pd(scan->squares + 4 * i, s->squares[i]);
    }
}

TARE_TARGET_AVX2 int tare_scan_avx2(struct tare_scan *scan, uint32_t *slots, const float *values, int count) {
    struct state s;
    load_state(&s, scan);
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        step(&s, 0, slots + i, values + i);
        step(&s, 1, slots + i + 8, values + i + 8);
    }
    store_state(scan, &s);
    return i + tare_scan_plain(scan, slots + i, values + i, count - i);
}
#endif
