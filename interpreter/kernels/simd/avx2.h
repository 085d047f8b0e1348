/* Loads and stores of the first lanes of a vector with AVX2. A masked store of a whole vector takes about 40
 * micro-operations on Zen 1 to Zen 4, so that whole vectors take plain ones. */
#ifndef TARE_INTERPRETER_KERNELS_SIMD_AVX2_H
#define TARE_INTERPRETER_KERNELS_SIMD_AVX2_H

#include "interpreter/kernels/cpu.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

enum { TARE_LANES_AVX2 = 8 };

/* All ones in the first `count` lanes; none if `count` is not positive. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_lanes_avx2(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first `count` lanes, which `mask` selects; at least 8 are all. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_load_avx2(const float *from, __m256i mask, int64_t count) {
    return count >= TARE_LANES_AVX2 ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_store_avx2(float *to, __m256 x, __m256i mask, int64_t count) {
    if (count >= TARE_LANES_AVX2)
        _mm256_storeu_ps(to, x);
    else
        _mm256_maskstore_ps(to, mask, x);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_store_ints_avx2(int32_t *to, __m256i x, int64_t count) {
    if (count >= TARE_LANES_AVX2)
        _mm256_storeu_si256((__m256i *)(void *)to, x);
    else
        _mm256_maskstore_epi32(to, tare_lanes_avx2(count), x);
}
#endif

#endif
