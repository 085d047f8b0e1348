/* The AVX2 and AVX-VNNI variants of products of few rows (gemv.h). */
#include "interpreter/kernels/integer/avx_vnni.h"
#include "interpreter/kernels/integer/gemv.h"
#include "interpreter/kernels/simd/avx2.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { PANEL = TARE_GEMV_PANEL, LINE = TARE_GEMV_LINE, AHEAD = 1024 };
/* Two panels together, so that enough independent chains hide the latency of the additions; each has two halves. */
enum { TOGETHER = 2, HALVES = 2 * TOGETHER };

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

/* ---- int8 rows ---- */

/* Four k of eight columns with nibbles: unsigned bytes times at most 15, of which two fit 16 bits. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i add_nibbles(__m256i sum, const uint8_t *row, __m256i weights) {
    int32_t four;
    memcpy(&four, row, sizeof four);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(four), weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void nibble_panel(const struct tare_gemv_part *part, const int rows,
                                                      const uint8_t *panel, __m256i sums[TARE_GEMV_MOST_ROWS][2]) {
    const __m256i low_half = _mm256_set1_epi8(15);
    for (int64_t line = 0; line < part->lines; line++, panel += LINE) {
        _mm_prefetch((const char *)panel + AHEAD, _MM_HINT_T0);
        TARE_UNROLL
        for (int half = 0; half < 2; half++) {
            const __m256i weights = load(panel + 32 * half), first = _mm256_and_si256(weights, low_half);
            const __m256i second = _mm256_and_si256(_mm256_srli_epi16(weights, 4), low_half);
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                const uint8_t *row = part->rows + i * part->stride + line * 8;
                sums[i][half] = add_nibbles(add_nibbles(sums[i][half], row, first), row + 4, second);
            }
        }
    }
}

/* Four k of a row as 16-bit integers, repeated. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i four_of(const uint8_t *row) {
    int32_t four;
    memcpy(&four, row, sizeof four);
    return _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
}

/* Bytes widened to 16 bits: lanes 2 j and 2 j + 1 of `quarters` are partial sums of column j of a quarter panel. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void byte_panel(const struct tare_gemv_part *part, const int rows,
                                                    const uint8_t *panel, __m256i sums[TARE_GEMV_MOST_ROWS][2]) {
    __m256i quarters[TARE_GEMV_MOST_ROWS][4];
    TARE_UNROLL
    for (int i = 0; i < 4 * rows; i++)
        quarters[i / 4][i % 4] = _mm256_setzero_si256();
    for (int64_t line = 0; line < part->lines; line++, panel += LINE) {
        _mm_prefetch((const char *)panel + AHEAD, _MM_HINT_T0);
        TARE_UNROLL
        for (int q = 0; q < 4; q++) {
            const __m256i weights = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(panel + 16 * q)));
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                quarters[i][q] = _mm256_add_epi32(
                    quarters[i][q], _mm256_madd_epi16(four_of(part->rows + i * part->stride + line * 4), weights));
        }
    }
    TARE_UNROLL
    for (int i = 0; i < 2 * rows; i++) {
        const __m256i both = _mm256_hadd_epi32(quarters[i / 2][2 * (i % 2)], quarters[i / 2][2 * (i % 2) + 1]);
        sums[i / 2][i % 2] = _mm256_add_epi32(sums[i / 2][i % 2], _mm256_permute4x64_epi64(both, 0xd8));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void int_panel(const struct tare_gemv_part *part, const int rows, int p,
                                                   int columns) {
    const bool nibbles = part->form == TARE_GEMV_NIBBLES;
    __m256i sums[TARE_GEMV_MOST_ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < 2 * rows; i++) {
        const int32_t excess = nibbles ? (int32_t)(8u * (uint32_t)part->row_sums[i / 2]) : 0;
        sums[i / 2][i % 2] = _mm256_sub_epi32(load(part->start + p * PANEL + 8 * (i % 2)), _mm256_set1_epi32(excess));
    }
    if (nibbles)
        nibble_panel(part, rows, part->panels + p * part->panel_bytes, sums);
    else
        byte_panel(part, rows, part->panels + p * part->panel_bytes, sums);
    TARE_UNROLL
    for (int i = 0; i < 2 * rows; i++)
        tare_store_ints_avx2(part->sums + i / 2 * part->ldc + p * PANEL + 8 * (i % 2), sums[i / 2][i % 2],
                             columns - 8 * (i % 2));
}

/* ---- int8 rows, AVX-VNNI ---- */

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i add_quads(__m256i sum, const uint8_t *row, __m256i weights) {
    int32_t four;
    memcpy(&four, row, sizeof four);
    return tare_add_quads_avx_vnni(sum, _mm256_set1_epi32(four), weights);
}

/* Panels p …, half a panel each; the last one has `columns`. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void quad_panels(const struct tare_gemv_part *part, const int rows,
                                                     const int halves, const bool nibbles, int p, int columns) {
    const __m256i low_half = _mm256_set1_epi8(15);
    const uint8_t *panel = part->panels + p * part->panel_bytes;
    __m256i sums[TARE_GEMV_MOST_ROWS][HALVES];
    TARE_UNROLL
    for (int i = 0; i < halves * rows; i++) {
        const int32_t excess = nibbles ? (int32_t)(8u * (uint32_t)part->row_sums[i / halves]) : 0;
        sums[i / halves][i % halves] =
            _mm256_sub_epi32(load(part->start + p * PANEL + 8 * (i % halves)), _mm256_set1_epi32(excess));
    }
    for (int64_t line = 0; line < part->lines; line++, panel += LINE) {
        TARE_UNROLL
        for (int h = 0; h < halves; h++) {
            const uint8_t *from = panel + h / 2 * part->panel_bytes + h % 2 * 32;
            if (h % 2 == 0) _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
            const __m256i weights = load(from), first = nibbles ? _mm256_and_si256(weights, low_half) : weights;
            const __m256i second = _mm256_and_si256(_mm256_srli_epi16(weights, 4), low_half);
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                const uint8_t *row = part->rows + i * part->stride + line * (nibbles ? 8 : 4);
                sums[i][h] = add_quads(sums[i][h], row, first);
                if (nibbles) sums[i][h] = add_quads(sums[i][h], row + 4, second);
            }
        }
    }
    TARE_UNROLL
    for (int i = 0; i < halves * rows; i++) {
        const int h = i % halves;
        tare_store_ints_avx2(part->sums + i / halves * part->ldc + p * PANEL + 8 * h, sums[i / halves][h],
                             (h < halves - 2 ? PANEL : columns) - 8 * (h % 2));
    }
}

/* ---- float rows ---- */

/* Weight k of a group, of eight columns: the k-th bytes of the lanes, or the low (group 1: high) halves of these, with
 * their sign bits in place. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 weights_of(__m256i lanes, const int k, const bool nibbles, const int group) {
    const int bits = nibbles ? 4 : 8, unused = 32 - bits - 8 * k - 4 * group;
    const __m256i high = unused == 0 ? lanes : _mm256_slli_epi32(lanes, unused);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(high, 32 - bits));
}

/* `count` k of a group from element `at` of the rows on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void add_real_group(__m256 sums[TARE_GEMV_MOST_ROWS][HALVES],
                                                        const struct tare_gemv_part *part, const int rows,
                                                        const int halves, const bool nibbles, const int group,
                                                        const __m256i lanes[HALVES], int64_t at, int64_t count) {
    TARE_UNROLL
    for (int k = 0; k < 4; k++) {
        if (k >= count) return;
        TARE_UNROLL
        for (int h = 0; h < halves; h++) {
            const __m256 weights = weights_of(lanes[h], k, nibbles, group);
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sums[i][h] =
                    _mm256_fmadd_ps(_mm256_set1_ps(part->real_rows[i * part->k + at + k]), weights, sums[i][h]);
        }
    }
}

/* Panels p …, half a panel each; the last one has `columns`. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void real_panels(const struct tare_gemv_part *part, const int rows,
                                                     const int halves, const bool nibbles, int p, int columns) {
    const __m256i sign_bits = _mm256_set1_epi8((char)0x88); /* halves are the weight plus 8 */
    const int groups = nibbles ? 2 : 1;
    const uint8_t *first = part->panels + p * part->panel_bytes;
    __m256 sums[TARE_GEMV_MOST_ROWS][HALVES];
    TARE_UNROLL
    for (int i = 0; i < halves * rows; i++)
        sums[i / halves][i % halves] = _mm256_setzero_ps();
    for (int64_t line = 0; line < part->lines; line++) {
        const int64_t at = line * groups * 4, left = part->k - at;
        __m256i lanes[HALVES];
        TARE_UNROLL
        for (int h = 0; h < halves; h++) {
            const uint8_t *from = first + h / 2 * part->panel_bytes + line * LINE + h % 2 * 32;
            if (h % 2 == 0) _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
            lanes[h] = nibbles ? _mm256_xor_si256(load(from), sign_bits) : load(from);
        }
        add_real_group(sums, part, rows, halves, nibbles, 0, lanes, at, left);
        if (nibbles) add_real_group(sums, part, rows, halves, nibbles, 1, lanes, at + 4, left - 4);
    }
    TARE_UNROLL
    for (int i = 0; i < halves * rows; i++) {
        const int h = i % halves;
        const int count = (h < halves - 2 ? PANEL : columns) - 8 * (h % 2);
        tare_store_avx2(part->real + i / halves * part->ldc + p * PANEL + 8 * h, sums[i / halves][h],
                        tare_lanes_avx2(count), count);
    }
}

/* One panel, or two for few rows: the sums of more would not fit the registers. */
#define PANELS(name, run)                                                                                              \
    TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void name(const struct tare_gemv_part *part, const int rows, int panels) {     \
        const bool nibbles = part->form == TARE_GEMV_NIBBLES;                                                          \
        int p = 0;                                                                                                     \
        for (; rows <= 2 && p + TOGETHER <= panels; p += TOGETHER) {                                                   \
            const int columns = p + TOGETHER == panels ? part->columns : PANEL;                                        \
            if (nibbles)                                                                                               \
                run(part, rows, HALVES, true, p, columns);                                                             \
            else                                                                                                       \
                run(part, rows, HALVES, false, p, columns);                                                            \
        }                                                                                                              \
        for (; p < panels; p++) {                                                                                      \
            const int columns = p == panels - 1 ? part->columns : PANEL;                                               \
            if (nibbles)                                                                                               \
                run(part, rows, 2, true, p, columns);                                                                  \
            else                                                                                                       \
                run(part, rows, 2, false, p, columns);                                                                 \
        }                                                                                                              \
    }
PANELS(float_panels, real_panels)
PANELS(int_panels_avx_vnni, quad_panels)
#undef PANELS

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void int_panels(const struct tare_gemv_part *part, const int rows, int panels) {
    for (int p = 0; p < panels; p++)
        int_panel(part, rows, p, p == panels - 1 ? part->columns : PANEL);
}

#define ROWS(name, kind, rows)                                                                                         \
    static TARE_TARGET_AVX2 void name##_##rows(const struct tare_gemv_part *part, int panels) {                        \
        kind(part, rows, panels);                                                                                      \
    }
#define VARIANT(name, kind)                                                                                            \
    ROWS(name, kind, 1)                                                                                                \
    ROWS(name, kind, 2)                                                                                                \
    ROWS(name, kind, 3)                                                                                                \
    ROWS(name, kind, 4)                                                                                                \
    void name(const struct tare_gemv_part *part, int panels) {                                                         \
        static tare_gemv_part_function *const by_rows[] = { NULL, name##_1, name##_2, name##_3, name##_4 };            \
        by_rows[part->m](part, panels);                                                                                \
    }
VARIANT(tare_gemv_int_avx2, int_panels)
VARIANT(tare_gemv_int_avx_vnni, int_panels_avx_vnni)
VARIANT(tare_gemv_float_avx2, float_panels)
#undef ROWS
#undef VARIANT
#endif
