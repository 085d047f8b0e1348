/* Four rows of 16 int8 weights as packed for products with four k a group: 16 groups of the four values of a column. */
#ifndef TARE_INTERPRETER_KERNELS_PACK_FOUR_ROWS_H
#define TARE_INTERPRETER_KERNELS_PACK_FOUR_ROWS_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>

enum { TARE_QUAD_COLUMNS = 16, TARE_QUAD_ROWS = 4 };

#if TARE_KERNELS_X86
#include <emmintrin.h>

TARE_ALWAYS_INLINE __m128i tare_quad_row(const int8_t *b) {
    return _mm_loadu_si128((const __m128i *)(const void *)b);
}

/* Writes 64 bytes. */
TARE_ALWAYS_INLINE void tare_quad_interleave(void *to, const int8_t *b, int64_t row_stride) {
    const __m128i rows[TARE_QUAD_ROWS] = { tare_quad_row(b), tare_quad_row(b + row_stride),
                                           tare_quad_row(b + 2 * row_stride), tare_quad_row(b + 3 * row_stride) };
    const __m128i low[2] = { _mm_unpacklo_epi8(rows[0], rows[1]), _mm_unpacklo_epi8(rows[2], rows[3]) };
    const __m128i high[2] = { _mm_unpackhi_epi8(rows[0], rows[1]), _mm_unpackhi_epi8(rows[2], rows[3]) };
    __m128i *out = to;
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low[0], low[1]));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low[0], low[1]));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high[0], high[1]));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high[0], high[1]));
}
#else
static inline void tare_quad_interleave(void *to, const int8_t *b, int64_t row_stride) {
    int8_t *out = to;
    for (int64_t j = 0; j < TARE_QUAD_COLUMNS; j++)
        for (int64_t i = 0; i < TARE_QUAD_ROWS; i++)
            *out++ = b[i * row_stride + j];
}
#endif

/* The same, and adds the values of each column to its sum. */
static inline void tare_quad_pack(void *to, uint32_t sums[TARE_QUAD_COLUMNS], const int8_t *b, int64_t row_stride) {
    tare_quad_interleave(to, b, row_stride);
    for (int i = 0; i < TARE_QUAD_ROWS; i++, b += row_stride)
        for (int j = 0; j < TARE_QUAD_COLUMNS; j++)
            sums[j] += (uint32_t)b[j];
}

#endif
