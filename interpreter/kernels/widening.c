/* Magnitudes of bfloat16 values are compared as integers: without the sign bit, the bits have the order of the values,
 * and those of NaNs are larger than those of infinity. */
#include "interpreter/kernels/widening.h"

#include "base/tensor/number.h"

#include <math.h>

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif

enum { MAGNITUDE = 0x7fff, INFINITE = 0x7f80 };

static uint16_t widen_plain(float *to, const uint16_t *from, int64_t count) {
    uint16_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint16_t magnitude = from[i] & MAGNITUDE;
        to[i] = tare_float_from_bfloat16(from[i]);
        if (magnitude > most) most = magnitude;
    }
    return most;
}

#if TARE_KERNELS_X86
static uint16_t larger(uint16_t x, uint16_t y) {
    return x > y ? x : y;
}

static uint16_t largest(const uint16_t *values, int count) {
    uint16_t most = 0;
    for (int i = 0; i < count; i++)
        most = larger(most, values[i]);
    return most;
}

static TARE_TARGET_AVX512 uint16_t widen_avx512(float *to, const uint16_t *from, int64_t count) {
    __m512i most = _mm512_setzero_si512();
    uint16_t values[32];
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m512i first = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(from + i)));
        const __m512i second =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(from + i + 16)));
        const __m512i both = _mm512_loadu_si512(from + i);
        _mm512_storeu_si512(to + i, _mm512_slli_epi32(first, 16));
        _mm512_storeu_si512(to + i + 16, _mm512_slli_epi32(second, 16));
        most = _mm512_max_epu16(most, _mm512_and_si512(both, _mm512_set1_epi16(MAGNITUDE)));
    }
    _mm512_storeu_si512(values, most);
    return larger(largest(values, 32), widen_plain(to + i, from + i, count - i));
}

static TARE_TARGET_AVX2 uint16_t widen_avx2(float *to, const uint16_t *from, int64_t count) {
    __m256i most = _mm256_setzero_si256();
    uint16_t values[16];
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        const __m256i first = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(both));
        const __m256i second = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(both, 1));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_slli_epi32(first, 16));
        _mm256_storeu_si256((__m256i *)(void *)(to + i + 8), _mm256_slli_epi32(second, 16));
        most = _mm256_max_epu16(most, _mm256_and_si256(both, _mm256_set1_epi16(MAGNITUDE)));
    }
    _mm256_storeu_si256((__m256i *)(void *)values, most);
    return larger(largest(values, 16), widen_plain(to + i, from + i, count - i));
}
#endif

static uint16_t widen(enum tare_cpu_level level, float *to, const uint16_t *from, int64_t count) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return widen_avx512(to, from, count);
    if (level >= TARE_CPU_AVX2) return widen_avx2(to, from, count);
#endif
    (void)level;
    return widen_plain(to, from, count);
}

float tare_widen_at(enum tare_cpu_level level, float *to, const uint16_t *from, int64_t count, float most) {
    const uint16_t bits = widen(level, to, from, count);
    const float found = bits > INFINITE ? INFINITY : tare_float_from_bfloat16(bits);
    return found > most ? found : most;
}
