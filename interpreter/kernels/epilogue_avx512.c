/* The AVX-512 variant of general epilogues: lanes hold columns, whose vectors are loaded once for all rows. */
#include "interpreter/kernels/gemm.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <math.h>

/* Operands of 16 columns; those of absent steps are not used. */
struct vectors {
    __m512 scale, bias, mean, factor, offset;
};

enum { LANES = 16 };

/* NaN becomes 0x7fc00000 or 0xffc00000, with its sign. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 canonical(__m512 x) {
    const __m512i sign = _mm512_set1_epi32(INT32_MIN), nan = _mm512_set1_epi32(0x7fc00000);
    const __m512i signed_nan = _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), nan, 0xea);
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castsi512_ps(signed_nan));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 load(const float *from, int64_t column, __mmask16 mask,
                                                  const bool rounds) {
    if (!from) return _mm512_setzero_ps();
    const __m512 x = _mm512_maskz_loadu_ps(mask, from + column);
    return rounds ? canonical(x) : x;
}

/* bfloat16-rtne, as a float whose low half is zero; a NaN stays as it is, since its low half is zero already. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 rounded(__m512 x, const bool rounds) {
    if (!rounds) return x;
    const __m512i bits = _mm512_castps_si512(x);
    const __mmask16 is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << 16));
    __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    sum = _mm512_mask_add_epi32(sum, is_odd, sum, _mm512_set1_epi32(1));
    return _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32((int32_t)0xffff0000)));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 apply(const struct tare_gemm_epilogue *e, const struct vectors *v,
                                                   __m512 x, int64_t at, __mmask16 mask, const bool rounds) {
    x = rounded(x, rounds);
    if (e->scale) x = rounded(_mm512_mul_ps(x, v->scale), rounds);
    if (e->bias) x = rounded(_mm512_add_ps(x, v->bias), rounds);
    if (e->mean) x = rounded(_mm512_add_ps(_mm512_mul_ps(_mm512_sub_ps(x, v->mean), v->factor), v->offset), rounds);
    if (e->addend) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, e->addend + at));
    if (e->addend_bfloat16) {
        const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, e->addend_bfloat16 + at));
        x = rounded(_mm512_add_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))), rounds);
    }
    if (e->relu) x = _mm512_max_ps(_mm512_setzero_ps(), x);
    return e->relu && e->limit < INFINITY ? _mm512_min_ps(_mm512_set1_ps(e->limit), x) : x;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store(const struct tare_gemm_epilogue *e, float *c, int64_t at, __m512 x,
                                                 __mmask16 mask) {
    if (!e->to) {
        _mm512_mask_storeu_ps(c, mask, x);
        return;
    }
    const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(canonical(x)), 16);
    _mm256_mask_storeu_epi16(e->to + at, mask, _mm512_cvtepi32_epi16(bits));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void run(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc,
                                               int64_t rows, int64_t columns, int64_t at, int64_t column,
                                               const bool rounds) {
    const struct tare_gemm_epilogue e = *epilogue;
    for (int64_t j = 0; j < columns; j += LANES) {
        const __mmask16 mask = columns - j >= LANES ? 0xffff : (__mmask16)(0xffffu >> (LANES - (columns - j)));
        const struct vectors v = { load(e.scale, column + j, mask, rounds), load(e.bias, column + j, mask, rounds),
                                   load(e.mean, column + j, mask, rounds), load(e.factor, column + j, mask, rounds),
                                   load(e.offset, column + j, mask, rounds) };
        for (int64_t i = 0; i < rows; i++) {
            const int64_t k = i * ldc + j;
            const __m512 x = apply(&e, &v, _mm512_maskz_loadu_ps(mask, c + k), at + k, mask, rounds);
            store(&e, c + k, at + k, x, mask);
        }
    }
}

static TARE_TARGET_AVX512 void run_any(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc, int64_t rows,
                                       int64_t columns, int64_t at, int64_t column) {
    if (epilogue->rounds)
        run(epilogue, c, ldc, rows, columns, at, column, true);
    else
        run(epilogue, c, ldc, rows, columns, at, column, false);
}

/* `from` at `column`, repeated to fill a vector. */
static const float *repeated(float to[LANES], const float *from, int64_t column, int64_t columns) {
    for (int64_t i = 0; from && i < LANES; i++)
        to[i] = from[column + i % columns];
    return from ? to : NULL;
}

/* Contiguous rows of a few columns, several of which fill a vector. */
static void run_narrow(const struct tare_gemm_epilogue *epilogue, float *c, int64_t rows, int64_t columns, int64_t at,
                       int64_t column) {
    const int64_t elements = rows * columns, whole = elements / LANES;
    float vectors[5][LANES];
    struct tare_gemm_epilogue e = *epilogue;
    e.scale = repeated(vectors[0], e.scale, column, columns);
    e.bias = repeated(vectors[1], e.bias, column, columns);
    e.mean = repeated(vectors[2], e.mean, column, columns);
    e.factor = repeated(vectors[3], e.factor, column, columns);
    e.offset = repeated(vectors[4], e.offset, column, columns);
    run_any(&e, c, LANES, whole, LANES, at, 0);
    const int64_t rest = elements - whole * LANES;
    if (rest > 0) run_any(&e, c + whole * LANES, LANES, 1, rest, at + whole * LANES, 0);
}

void tare_epilogue_avx512(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc, int64_t rows,
                          int64_t columns, int64_t at, int64_t column) {
    if (columns == ldc && columns < LANES && LANES % columns == 0 && rows > 1)
        run_narrow(epilogue, c, rows, columns, at, column);
    else
        run_any(epilogue, c, ldc, rows, columns, at, column);
}
#endif
