/* The AVX2 variant of general epilogues: lanes hold columns, whose vectors are loaded once for all rows. */
#include "interpreter/kernels/bfloat16_lanes.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/simd/avx2.h"

#include <math.h>

#if TARE_KERNELS_X86

enum { LANES = 8 };

/* Operands of 8 columns; those of absent steps are not used. */
struct vectors {
    __m256 scale, bias, mean, factor, offset;
};

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 load(const float *from, int64_t column, __m256i mask) {
    return from ? _mm256_maskload_ps(from + column, mask) : _mm256_setzero_ps();
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 rounded(__m256 x, const bool rounds) {
    return rounds ? tare_rounded_avx2(x) : x;
}

/* `count`: columns of the vector, at most 8. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 apply(const struct tare_gemm_epilogue *e, const struct vectors *v, __m256 x,
                                                 int64_t at, __m256i mask, int64_t count, const bool rounds) {
    x = rounded(x, rounds);
    if (e->scale) x = rounded(_mm256_mul_ps(x, v->scale), rounds);
    if (e->bias) x = rounded(_mm256_add_ps(x, v->bias), rounds);
    if (e->mean) x = rounded(_mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(x, v->mean), v->factor), v->offset), rounds);
    if (e->addend) x = _mm256_add_ps(x, _mm256_maskload_ps(e->addend + at, mask));
    if (e->addend_bfloat16)
        x = rounded(_mm256_add_ps(x, tare_load_bfloat16_avx2(e->addend_bfloat16 + at, count)), rounds);
    if (e->relu) x = _mm256_max_ps(_mm256_setzero_ps(), x);
    return e->relu && e->limit < INFINITY ? _mm256_min_ps(_mm256_set1_ps(e->limit), x) : x;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store(const struct tare_gemm_epilogue *e, float *c, int64_t at, __m256 x,
                                               __m256i mask, int64_t count) {
    if (!e->to) {
        tare_store_avx2(c, x, mask, count);
        return;
    }
    tare_store_bfloat16_avx2(e->to + at, tare_canonical_avx2(x), count);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void run(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc,
                                             int64_t rows, int64_t columns, int64_t at, int64_t column,
                                             const bool rounds) {
    const struct tare_gemm_epilogue e = *epilogue;
    for (int64_t j = 0; j < columns; j += LANES) {
        const int64_t count = columns - j < LANES ? columns - j : LANES;
        const __m256i mask = tare_lanes_avx2(count);
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
