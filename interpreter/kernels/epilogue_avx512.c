/* The AVX-512 variant of general epilogues: lanes hold columns, whose vectors are loaded once for all rows. */
#include "interpreter/kernels/bfloat16_lanes.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/simd/pointwise.h"

#include <math.h>

#if TARE_KERNELS_X86
/* Operands of 16 columns; those of absent steps are not used. */
struct vectors {
    __m512 scale, bias, mean, factor, offset;
};

enum { LANES = 16 };

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 load(const float *from, int64_t column, __mmask16 mask) {
    return from ? _mm512_maskz_loadu_ps(mask, from + column) : _mm512_setzero_ps();
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 rounded(__m512 x, const bool rounds) {
    return rounds ? tare_rounded_avx512(x) : x;
}

/* The steps of a form of the loop; ANY: those of the epilogue. */
enum { ANY = -1, BIAS = 1, NORM = 2, ADDEND = 4, TO = 8, FORMS = 16 };

TARE_ALWAYS_INLINE bool has(const int form, int part, const void *operand) {
    return form == ANY ? operand != NULL : (form & part) != 0;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 apply(const struct tare_gemm_epilogue *e, const struct vectors *v,
                                                   __m512 x, int64_t at, __mmask16 mask, bool is_limited,
                                                   const bool rounds, const int form) {
    x = rounded(x, rounds);
    if (form == ANY && e->scale) x = rounded(_mm512_mul_ps(x, v->scale), rounds);
    if (has(form, BIAS, e->bias)) x = rounded(_mm512_add_ps(x, v->bias), rounds);
    if (has(form, NORM, e->mean))
        x = rounded(_mm512_add_ps(_mm512_mul_ps(_mm512_sub_ps(x, v->mean), v->factor), v->offset), rounds);
    if (form == ANY && e->addend) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, e->addend + at));
    if (has(form, ADDEND, e->addend_bfloat16)) {
        const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, e->addend_bfloat16 + at));
        x = rounded(_mm512_add_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))), rounds);
    }
    if (e->relu) x = _mm512_max_ps(_mm512_setzero_ps(), x);
    return is_limited ? _mm512_min_ps(_mm512_set1_ps(e->limit), x) : x;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store(const struct tare_gemm_epilogue *e, float *c, int64_t at, __m512 x,
                                                 __mmask16 mask, const int form) {
    if (!has(form, TO, e->to)) {
        _mm512_mask_storeu_ps(c, mask, x);
        return;
    }
    const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(tare_canonical_avx512(x)), 16);
    _mm256_mask_storeu_epi16(e->to + at, mask, _mm512_cvtepi32_epi16(bits));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void run(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc,
                                               int64_t rows, int64_t columns, int64_t at, int64_t column,
                                               const bool rounds, const int form) {
    const struct tare_gemm_epilogue e = *epilogue;
    const bool is_limited = e.relu && e.limit < INFINITY;
    for (int64_t j = 0; j < columns; j += LANES) {
        const __mmask16 mask = columns - j >= LANES ? 0xffff : (__mmask16)(0xffffu >> (LANES - (columns - j)));
        const struct vectors v = { load(form == ANY ? e.scale : NULL, column + j, mask),
                                   load(has(form, BIAS, e.bias) ? e.bias : NULL, column + j, mask),
                                   load(has(form, NORM, e.mean) ? e.mean : NULL, column + j, mask),
                                   load(has(form, NORM, e.mean) ? e.factor : NULL, column + j, mask),
                                   load(has(form, NORM, e.mean) ? e.offset : NULL, column + j, mask) };
        for (int64_t i = 0; i < rows; i++) {
            const int64_t k = i * ldc + j;
            const __m512 x = apply(&e, &v, _mm512_maskz_loadu_ps(mask, c + k), at + k, mask, is_limited, rounds, form);
            store(&e, c + k, at + k, x, mask, form);
        }
    }
}

#define FORM(i)                                                                                                        \
    static TARE_TARGET_AVX512 void run_##i(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc,           \
                                           int64_t rows, int64_t columns, int64_t at, int64_t column) {                \
        run(epilogue, c, ldc, rows, columns, at, column, true, i);                                                     \
    }
FORM(0)
FORM(1)
FORM(2)
FORM(3)
FORM(4)
FORM(5)
FORM(6)
FORM(7)
FORM(8)
FORM(9)
FORM(10)
FORM(11)
FORM(12)
FORM(13)
FORM(14)
FORM(15)
#undef FORM

static TARE_TARGET_AVX512 void run_any(const struct tare_gemm_epilogue *e, float *c, int64_t ldc, int64_t rows,
                                       int64_t columns, int64_t at, int64_t column) {
    static tare_epilogue_function *const forms[FORMS] = {
        run_0, run_1, run_2,  run_3,  run_4,  run_5,  run_6,  run_7,
        run_8, run_9, run_10, run_11, run_12, run_13, run_14, run_15
    };
    const int form = (e->bias ? BIAS : 0) | (e->mean ? NORM : 0) | (e->addend_bfloat16 ? ADDEND : 0) | (e->to ? TO : 0);
    if (!e->rounds)
        run(e, c, ldc, rows, columns, at, column, false, ANY);
    else if (e->scale)
        run(e, c, ldc, rows, columns, at, column, true, ANY);
    else
        forms[form](e, c, ldc, rows, columns, at, column);
}

/* `from` at `column`, repeated to fill a vector: `columns` is a power of two. */
static TARE_TARGET_AVX512 const float *repeated(float to[LANES], const float *from, int64_t column, int64_t columns) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i wrapped = _mm512_and_si512(lanes, _mm512_set1_epi32((int)columns - 1));
    if (!from) return NULL;
    const __m512 x = _mm512_maskz_loadu_ps((__mmask16)((1u << columns) - 1), from + column);
    _mm512_storeu_ps(to, _mm512_permutexvar_ps(wrapped, x));
    return to;
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
    if (epilogue->activation) tare_pointwise_rows_at(TARE_CPU_AVX512, epilogue->activation, c, ldc, rows, columns);
}
#endif
