/* The AVX2 variant of general epilogues: lanes hold columns, whose vectors are loaded once for all rows. */
#include "interpreter/kernels/gemm.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { LANES = 8 };

/* Operands of 8 columns; those of absent steps are not used. */
struct vectors {
    __m256 scale, bias, mean, factor, offset;
};

/* NaN becomes 0x7fc00000 or 0xffc00000, with its sign. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 canonical(__m256 x) {
    const __m256 sign = _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN)));
    const __m256 nan = _mm256_or_ps(sign, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
    return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 load(const float *from, int64_t column, __m256i mask) {
    return from ? _mm256_maskload_ps(from + column, mask) : _mm256_setzero_ps();
}

/* bfloat16-rtne, as a float whose low half is zero; a NaN stays as it is, since its low half is zero already. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 rounded(__m256 x, const bool rounds) {
    if (!rounds) return x;
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32((int32_t)0xffff0000)));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 load_bfloat16(const uint16_t *from, int64_t count) {
    __m128i halves = _mm_setzero_si128();
    if (count >= LANES)
        halves = _mm_loadu_si128((const __m128i *)(const void *)from);
    else
        memcpy(&halves, from, (size_t)count * sizeof *from);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* `count`: columns of the vector, at most 8. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 apply(const struct tare_gemm_epilogue *e, const struct vectors *v, __m256 x,
                                                 int64_t at, __m256i mask, int64_t count, const bool rounds) {
    x = rounded(x, rounds);
    if (e->scale) x = rounded(_mm256_mul_ps(x, v->scale), rounds);
    if (e->bias) x = rounded(_mm256_add_ps(x, v->bias), rounds);
    if (e->mean) x = rounded(_mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(x, v->mean), v->factor), v->offset), rounds);
    if (e->addend) x = _mm256_add_ps(x, _mm256_maskload_ps(e->addend + at, mask));
    if (e->addend_bfloat16) x = rounded(_mm256_add_ps(x, load_bfloat16(e->addend_bfloat16 + at, count)), rounds);
    if (e->relu) x = _mm256_max_ps(_mm256_setzero_ps(), x);
    return e->relu && e->limit < INFINITY ? _mm256_min_ps(_mm256_set1_ps(e->limit), x) : x;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store(const struct tare_gemm_epilogue *e, float *c, int64_t at, __m256 x,
                                               __m256i mask, int64_t count) {
    if (!e->to) {
        _mm256_maskstore_ps(c, mask, x);
        return;
    }
    const __m256i bits = _mm256_srli_epi32(_mm256_castps_si256(canonical(x)), 16);
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    if (count >= LANES)
        _mm_storeu_si128((__m128i *)(void *)(e->to + at), halves);
    else
        memcpy(e->to + at, &halves, (size_t)count * sizeof *e->to);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void run(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc,
                                             int64_t rows, int64_t columns, int64_t at, int64_t column,
                                             const bool rounds) {
    const struct tare_gemm_epilogue e = *epilogue;
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int64_t j = 0; j < columns; j += LANES) {
        const int64_t count = columns - j < LANES ? columns - j : LANES;
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
        const struct vectors v = { load(e.scale, column + j, mask), load(e.bias, column + j, mask),
                                   load(e.mean, column + j, mask), load(e.factor, column + j, mask),
                                   load(e.offset, column + j, mask) };
        for (int64_t i = 0; i < rows; i++) {
            const int64_t k = i * ldc + j;
            const __m256 x = apply(&e, &v, _mm256_maskload_ps(c + k, mask), at + k, mask, count, rounds);
            store(&e, c + k, at + k, x, mask, count);
        }
    }
}

TARE_TARGET_AVX2 void tare_epilogue_avx2(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc, int64_t rows,
                                         int64_t columns, int64_t at, int64_t column) {
    if (epilogue->rounds)
        run(epilogue, c, ldc, rows, columns, at, column, true);
    else
        run(epilogue, c, ldc, rows, columns, at, column, false);
}
#endif
