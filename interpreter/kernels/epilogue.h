/* Vector forms of simple and bounded epilogues (struct tare_gemm_epilogue), which the AVX-512 kernels compute in
 * registers; epilogue_v8.h has those of eight lanes. */
#ifndef TARE_INTERPRETER_KERNELS_EPILOGUE_H
#define TARE_INTERPRETER_KERNELS_EPILOGUE_H

#include "interpreter/kernels/bfloat16_lanes.h"
#include "interpreter/kernels/gemm.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

/* The product with the scale, which is the first step. Separate, so that it is tested for once a tile. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_epilogue_scale_avx512(const struct tare_gemm_epilogue *epilogue,
                                                                        __m512 x, int64_t column, __mmask16 mask) {
    return _mm512_mul_ps(x, _mm512_maskz_loadu_ps(mask, epilogue->scale + column));
}

/* The steps after the scale. `at`: the elements' index in the addend, `column` in the bias. Of max and min the second
 * operand is the result where they are equal or one is NaN. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_epilogue_in_avx512(const struct tare_gemm_epilogue *epilogue,
                                                                     __m512 x, int64_t at, int64_t column,
                                                                     __mmask16 mask) {
    if (epilogue->bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, epilogue->bias + column));
    if (epilogue->addend) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, epilogue->addend + at));
    if (!epilogue->relu) return x;
    return _mm512_min_ps(_mm512_set1_ps(epilogue->limit), _mm512_max_ps(_mm512_setzero_ps(), x));
}

/* ---- bounded epilogues: rounding as epilogue.c explains ---- */

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_bounded_avx512(__m512 x) {
    return _mm512_fmsub_ps(x, _mm512_set1_ps(65536), _mm512_mul_ps(x, _mm512_set1_ps(65535)));
}

/* True if no sum is beyond the bound or NaN, of the first `live` of `rows` vectors. The squares are added up in two
 * chains. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 bool tare_sums_are_bounded_avx512(const __m512 *sums, const int rows,
                                                                        const int step, int64_t live) {
    const float most = TARE_EPILOGUE_MOST;
    __m512 squares[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= live) break;
        squares[i % 2] = _mm512_fmadd_ps(sums[i * step], sums[i * step], squares[i % 2]);
    }
    const __m512 both = _mm512_add_ps(squares[0], squares[1]);
    return _mm512_cmp_ps_mask(both, _mm512_set1_ps(most * most), _CMP_LT_OQ) == 0xffff;
}

/* True if a bounded epilogue may round these sums as above. Otherwise the caller stores them, and tare_epilogue_avx512
 * (or _avx2) computes the epilogue in memory: as its last call, so that no sums are kept across it. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 bool tare_may_round_avx512(const struct tare_gemm_epilogue *e, const __m512 *sums,
                                                                 const int rows, const int step, int64_t live) {
    return e->is_certain || tare_sums_are_bounded_avx512(sums, rows, step, live);
}

/* The steps after the product, with vectors of columns; the addend and the clamp follow. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_bounded_vectors_avx512(const struct tare_gemm_epilogue *e, __m512 *x,
                                                                       const int rows, const int step, int64_t live,
                                                                       int64_t column, __mmask16 mask) {
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= live) break;
        x[i * step] = tare_bounded_avx512(x[i * step]);
    }
    if (e->bias) {
        const __m512 bias = _mm512_maskz_loadu_ps(mask, e->bias + column);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            if (i >= live) break;
            x[i * step] = tare_bounded_avx512(_mm512_add_ps(x[i * step], bias));
        }
    }
    if (!e->mean) return;
    const __m512 mean = _mm512_maskz_loadu_ps(mask, e->mean + column);
    const __m512 factor = _mm512_maskz_loadu_ps(mask, e->factor + column);
    const __m512 offset = _mm512_maskz_loadu_ps(mask, e->offset + column);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= live) break;
        const __m512 scaled = _mm512_mul_ps(_mm512_sub_ps(x[i * step], mean), factor);
        x[i * step] = tare_bounded_avx512(_mm512_add_ps(scaled, offset));
    }
}

/* Adds the addend. Only sums beyond the bound are rounded by integer operations. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_bounded_addend_avx512(const struct tare_gemm_epilogue *e, __m512 *x,
                                                                      const int rows, const int step, int64_t live,
                                                                      int64_t ldc, int64_t at, __mmask16 mask) {
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= live) break;
        const __m256i halves = _mm256_maskz_loadu_epi16(mask, e->addend_bfloat16 + at + i * ldc);
        const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
        x[i * step] = _mm512_add_ps(x[i * step], _mm512_castsi512_ps(bits));
    }
    const bool is_bounded = tare_sums_are_bounded_avx512(x, rows, step, live);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= live) break;
        x[i * step] =
            is_bounded ? tare_bounded_avx512(x[i * step]) : tare_canonical_avx512(tare_rounded_avx512(x[i * step]));
    }
}

/* Stores the first `live` of `rows` vectors of bfloat16 values in rows of ldc elements. Narrowing one vector takes
 * three operations, two at a time as many together. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_store_bfloat16_rows_avx512(uint16_t *to, int64_t ldc, const __m512 *x,
                                                                           const int rows, const int step, int64_t live,
                                                                           __mmask16 mask) {
    static const uint16_t even_then_odd[32] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                                1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 };
    const __m512i order = _mm512_loadu_si512(even_then_odd);
    TARE_UNROLL
    for (int i = 0; i < rows; i += 2) {
        if (i >= live) break;
        const __m512i first = _mm512_srli_epi32(_mm512_castps_si512(x[i * step]), 16);
        if (i + 1 >= rows || i + 1 >= live) {
            _mm256_mask_storeu_epi16(to + i * ldc, mask, _mm512_cvtepi32_epi16(first));
            break;
        }
        const __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_castps_si512(x[(i + 1) * step]));
        const __m512i halves = _mm512_permutexvar_epi16(order, both);
        _mm256_mask_storeu_epi16(to + i * ldc, mask, _mm512_castsi512_si256(halves));
        _mm256_mask_storeu_epi16(to + (i + 1) * ldc, mask, _mm512_extracti64x4_epi64(halves, 1));
    }
}

/* tare_epilogue_bounded_avx512 without pairs. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_epilogue_vectors_avx512(const struct tare_gemm_epilogue *e, __m512 *x,
                                                                        const int rows, const int step, int64_t live,
                                                                        float *c, int64_t ldc, int64_t at,
                                                                        int64_t column, __mmask16 mask) {
    tare_bounded_vectors_avx512(e, x, rows, step, live, column, mask);
    if (e->addend_bfloat16) tare_bounded_addend_avx512(e, x, rows, step, live, ldc, at, mask);
    if (e->relu) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            if (i >= live) break;
            x[i * step] = _mm512_max_ps(_mm512_setzero_ps(), x[i * step]);
        }
    }
    if (e->relu && e->limit < INFINITY) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            if (i >= live) break;
            x[i * step] = _mm512_min_ps(_mm512_set1_ps(e->limit), x[i * step]);
        }
    }
    if (e->to) {
        tare_store_bfloat16_rows_avx512(e->to + at, ldc, x, rows, step, live, mask);
        return;
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (i >= live) break;
        _mm512_mask_storeu_ps(c + i * ldc, mask, x[i * step]);
    }
}

/* A bounded epilogue of the first `live` of `rows` vectors of sums, x[i * step], of the same columns, which
 * tare_may_round_avx512 has tested. `c`: where the first one belongs, element `at` of C, whose column is `column`.
 * `may_pair`: an output of eight columns is computed two rows at a time. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_epilogue_bounded_avx512(const struct tare_gemm_epilogue *e, __m512 *x,
                                                                        const int rows, const int step, int64_t live,
                                                                        float *c, int64_t ldc, int64_t at,
                                                                        int64_t column, __mmask16 mask,
                                                                        const bool may_pair) {
    if (!may_pair || !e->is_repeated || mask != 0xff || ldc != 8 || live % 2 != 0) {
        tare_epilogue_vectors_avx512(e, x, rows, step, live, c, ldc, at, column, mask);
        return;
    }
    __m512 pairs[8];
    TARE_UNROLL
    for (int i = 0; i < rows / 2; i++)
        pairs[i] = _mm512_insertf32x8(x[2 * i * step], _mm512_castps512_ps256(x[(2 * i + 1) * step]), 1);
    tare_epilogue_vectors_avx512(e, pairs, rows / 2, 1, live / 2, c, 16, at, column, 0xffff);
}
#endif

#endif
