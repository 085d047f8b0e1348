/* The AVX-512 variants of products of few rows (gemv.h): 16 columns in a vector, four panels together, so that enough
 * independent sums hide the latency of the additions. */
#include "interpreter/kernels/integer/gemv.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { PANELS = TARE_GEMV_PANELS, PANEL = TARE_GEMV_PANEL, LINE = TARE_GEMV_LINE, AHEAD = 1024 };

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __mmask16 mask_of(const struct tare_gemv_part *part, int panel, int panels) {
    return panel == panels - 1 ? (__mmask16)(0xffffu >> (PANEL - part->columns)) : (__mmask16)0xffff;
}

/* ---- int8 rows ---- */

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_group(__m512i sum, const uint8_t *row, __m512i weights) {
    int32_t four;
    memcpy(&four, row, sizeof four);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(_mm512_set1_epi32(four)), "v"(weights)); /* see gemm_int_avx512.c */
    return sum;
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void int_panels(const struct tare_gemv_part *part, const int rows, const int panels,
                                                    const bool nibbles) {
    const __m512i low_half = _mm512_set1_epi8(15);
    __m512i sums[TARE_GEMV_MOST_ROWS][PANELS];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i excess = _mm512_set1_epi32(nibbles ? (int32_t)(8u * (uint32_t)part->row_sums[i]) : 0);
        TARE_UNROLL
        for (int p = 0; p < panels; p++)
            sums[i][p] = _mm512_sub_epi32(_mm512_loadu_si512(part->start + p * PANEL), excess);
    }
    for (int64_t line = 0; line < part->lines; line++) {
        TARE_UNROLL
        for (int p = 0; p < panels; p++) {
            const uint8_t *from = part->panels + p * part->panel_bytes + line * LINE;
            const __m512i weights = _mm512_loadu_si512(from);
            _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
            const __m512i first = nibbles ? _mm512_and_si512(weights, low_half) : weights;
            const __m512i second = _mm512_and_si512(_mm512_srli_epi16(weights, 4), low_half);
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                const uint8_t *row = part->rows + i * part->stride + line * (nibbles ? 8 : 4);
                sums[i][p] = add_group(sums[i][p], row, first);
                if (nibbles) sums[i][p] = add_group(sums[i][p], row + 4, second);
            }
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int p = 0; p < panels; p++)
            _mm512_mask_storeu_epi32(part->sums + i * part->ldc + p * PANEL, mask_of(part, p, panels), sums[i][p]);
    }
}

/* ---- float rows ---- */

/* Weight k of a group, of all columns: the k-th bytes of the lanes, or the low (group 1: high) halves of these, which
 * select one of 16 floats. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 weights_of(__m512i lanes, const int k, const bool nibbles,
                                                        const int group) {
    const __m512 halves = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    if (nibbles) return _mm512_permutexvar_ps(_mm512_srli_epi32(lanes, (unsigned)(8 * k + 4 * group)), halves);
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(lanes, (unsigned)(24 - 8 * k)), 24));
}

/* `count` k of a group from element `at` of the rows on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void add_real_group(__m512 sums[TARE_GEMV_MOST_ROWS][PANELS],
                                                          const struct tare_gemv_part *part, const int rows,
                                                          const int panels, const bool nibbles, const int group,
                                                          const __m512i lanes[PANELS], int64_t at, int64_t count) {
    TARE_UNROLL
    for (int k = 0; k < 4; k++) {
        if (k >= count) return;
        TARE_UNROLL
        for (int p = 0; p < panels; p++) {
            const __m512 weights = weights_of(lanes[p], k, nibbles, group);
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sums[i][p] =
                    _mm512_fmadd_ps(_mm512_set1_ps(part->real_rows[i * part->k + at + k]), weights, sums[i][p]);
        }
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void float_panels(const struct tare_gemv_part *part, const int rows,
                                                        const int panels, const bool nibbles) {
    const int64_t line_k = nibbles ? 8 : 4;
    __m512 sums[TARE_GEMV_MOST_ROWS][PANELS];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int p = 0; p < panels; p++)
            sums[i][p] = _mm512_setzero_ps();
    }
    for (int64_t line = 0; line < part->lines; line++) {
        const int64_t at = line * line_k, left = part->k - at;
        __m512i lanes[PANELS];
        TARE_UNROLL
        for (int p = 0; p < panels; p++) {
            const uint8_t *from = part->panels + p * part->panel_bytes + line * LINE;
            lanes[p] = _mm512_loadu_si512(from);
            _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
        }
        add_real_group(sums, part, rows, panels, nibbles, 0, lanes, at, left);
        if (nibbles) add_real_group(sums, part, rows, panels, nibbles, 1, lanes, at + 4, left - 4);
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int p = 0; p < panels; p++)
            _mm512_mask_storeu_ps(part->real + i * part->ldc + p * PANEL, mask_of(part, p, panels), sums[i][p]);
    }
}

#define ROWS(target, name, kind, rows)                                                                                 \
    static target void name##_##rows(const struct tare_gemv_part *part, int panels) {                                  \
        if (part->form == TARE_GEMV_NIBBLES && panels == PANELS)                                                       \
            kind(part, rows, PANELS, true);                                                                            \
        else if (part->form == TARE_GEMV_NIBBLES)                                                                      \
            kind(part, rows, 1, true);                                                                                 \
        else if (panels == PANELS)                                                                                     \
            kind(part, rows, PANELS, false);                                                                           \
        else                                                                                                           \
            kind(part, rows, 1, false);                                                                                \
    }
#define VARIANT(target, name, kind)                                                                                    \
    ROWS(target, name, kind, 1)                                                                                        \
    ROWS(target, name, kind, 2)                                                                                        \
    ROWS(target, name, kind, 3)                                                                                        \
    ROWS(target, name, kind, 4)                                                                                        \
    void name(const struct tare_gemv_part *part, int panels) {                                                         \
        static tare_gemv_part_function *const by_rows[] = { NULL, name##_1, name##_2, name##_3, name##_4 };            \
        by_rows[part->m](part, panels);                                                                                \
    }
VARIANT(TARE_TARGET_VNNI, tare_gemv_int_vnni, int_panels)
VARIANT(TARE_TARGET_AVX512, tare_gemv_float_avx512, float_panels)
#undef ROWS
#undef VARIANT
#endif
