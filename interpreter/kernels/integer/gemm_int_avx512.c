/* The AVX-512 variants of the product of int16 rows: tiles of up to 12 rows by 2 panels. */
#include "interpreter/kernels/integer/gemm_int_block.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 12 };

/* sum += the products of one group: x holds the row's 4 bytes in every lane. */
#define STEP_FUNCTION(name, target, expression)                                                                        \
    TARE_ALWAYS_INLINE target __m512i name(__m512i sum, __m512i x, __m512i weights) {                                  \
        return expression;                                                                                             \
    }
STEP_FUNCTION(step_madd, TARE_TARGET_AVX512, _mm512_add_epi32(sum, _mm512_madd_epi16(x, weights)))
#undef STEP_FUNCTION
/* The VNNI instruction as assembly: with its intrinsic, gcc 12 copies the sums between registers and memory. */
#define STEP_ASSEMBLY(name, instruction)                                                                               \
    TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i name(__m512i sum, __m512i x, __m512i weights) {                        \
        __asm__(instruction " %2, %1, %0" : "+v"(sum) : "v"(x), "v"(weights));                                         \
        return sum;                                                                                                    \
    }
STEP_ASSEMBLY(step_pairs, "vpdpwssd")
#undef STEP_ASSEMBLY

typedef void tile_function(const struct tare_igemm_output *c, const char *a, int64_t a_stride, const char *b,
                           int64_t panel_stride, const struct tare_igemm_segments *segments, const int32_t *start,
                           __mmask16 last);

/* Stores 16 columns of row `row`, of which the mask's are inside, from column `column` of the output on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_sums(const struct tare_igemm_output *c, int64_t row, int64_t column,
                                                      __m512i sums, __mmask16 mask, struct tare_range_avx512 *seen) {
    const int64_t at = row * c->stride + column;
    if (c->requantize)
        tare_requantize_avx512(c->requantize, sums, c->element + at, c->column + column, mask, seen);
    else
        _mm512_mask_storeu_epi32(c->sums + at, mask, sums);
}

/* Rows of a float result and of its addend, one of which is prefetched in each step of k: the stores would wait for
 * memory at the end of the tile. */
struct ahead {
    const float *to, *addend;
    int64_t left;
};
TARE_ALWAYS_INLINE struct ahead rows_ahead(const struct tare_igemm_output *c, int rows) {
    const struct tare_real_stage *real = c->requantize ? &c->requantize->real : NULL;
    if (!real || !real->floats) return (struct ahead){ .left = 0 };
    return (struct ahead){ real->floats + c->element, (real->addend ? real->addend : real->floats) + c->element, rows };
}
TARE_ALWAYS_INLINE void prefetch_row(struct ahead *ahead, int64_t stride) {
    if (ahead->left == 0) return;
    __builtin_prefetch(ahead->to, 1);
    __builtin_prefetch(ahead->to + 16, 1);
    __builtin_prefetch(ahead->addend);
    __builtin_prefetch(ahead->addend + 16);
    ahead->to += stride;
    ahead->addend += stride;
    ahead->left--;
}

/* Adds the products of group g of k. */
#define GROUP(accumulate)                                                                                              \
    __m512i weights[2];                                                                                                \
    TARE_UNROLL                                                                                                        \
    for (int j = 0; j < panels; j++)                                                                                   \
        weights[j] = _mm512_loadu_si512(b + j * panel_stride);                                                         \
    TARE_UNROLL                                                                                                        \
    for (int i = 0; i < rows; i++) {                                                                                   \
        int32_t group;                                                                                                 \
        memcpy(&group, a + i * a_stride + g * 4, sizeof group);                                                        \
        const __m512i x = _mm512_set1_epi32(group);                                                                    \
        TARE_UNROLL                                                                                                    \
        for (int j = 0; j < panels; j++)                                                                               \
            sum[i][j] = accumulate(sum[i][j], x, weights[j]);                                                          \
    }

#define TILE_BODY(accumulate)                                                                                          \
    __m512i sum[MAX_ROWS][2];                                                                                          \
    TARE_UNROLL                                                                                                        \
    for (int i = 0; i < rows; i++) {                                                                                   \
        TARE_UNROLL                                                                                                    \
        for (int j = 0; j < panels; j++) {                                                                             \
            const __mmask16 mask = j == panels - 1 ? last : (__mmask16)0xffff;                                         \
            sum[i][j] = _mm512_maskz_loadu_epi32(mask, (start ? start : c->sums + i * c->stride) + j * 16);            \
        }                                                                                                              \
    }                                                                                                                  \
    struct ahead ahead = rows_ahead(c, rows);                                                                          \
    for (int64_t s = 0; s < segments->count; s++, a += segments->step) {                                               \
        int64_t g = 0;                                                                                                 \
        for (; g < segments->groups && ahead.left > 0; g++, b += 64) {                                                 \
            prefetch_row(&ahead, c->stride);                                                                           \
            GROUP(accumulate)                                                                                          \
        }                                                                                                              \
        for (; g < segments->groups; g++, b += 64) {                                                                   \
            GROUP(accumulate)                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    struct tare_range_avx512 seen = tare_requantize_range_avx512(c->requantize);                                       \
    TARE_UNROLL                                                                                                        \
    for (int i = 0; i < rows; i++) {                                                                                   \
        TARE_UNROLL                                                                                                    \
        for (int j = 0; j < panels; j++)                                                                               \
            store_sums(c, i, j * 16, sum[i][j], j == panels - 1 ? last : (__mmask16)0xffff, &seen);                    \
    }                                                                                                                  \
    tare_requantize_store_range_avx512(c->requantize, &seen);

#define TILE(kind, target, r, p)                                                                                       \
    static target void tile_##kind##_##r##_##p(                                                                        \
        const struct tare_igemm_output *c, const char *a, int64_t a_stride, const char *b, int64_t panel_stride,       \
        const struct tare_igemm_segments *segments, const int32_t *start, __mmask16 last) {                            \
        enum { rows = r, panels = p };                                                                                 \
        TILE_BODY(step_##kind)                                                                                         \
    }
#define TILE_PAIR(kind, target, r) TILE(kind, target, r, 1) TILE(kind, target, r, 2)
#define ENTRY(kind, r)                                                                                                 \
    { tile_##kind##_##r##_1, tile_##kind##_##r##_2 }
/* clang-format off */
#define TILES(kind, target)                                                                  \
    TILE_PAIR(kind, target, 1) TILE_PAIR(kind, target, 2) TILE_PAIR(kind, target, 3)         \
    TILE_PAIR(kind, target, 4) TILE_PAIR(kind, target, 5) TILE_PAIR(kind, target, 6)         \
    TILE_PAIR(kind, target, 7) TILE_PAIR(kind, target, 8) TILE_PAIR(kind, target, 9)         \
    TILE_PAIR(kind, target, 10) TILE_PAIR(kind, target, 11) TILE_PAIR(kind, target, 12)      \
    static tile_function *const tiles_##kind[MAX_ROWS + 1][2] = {                            \
        { NULL },        ENTRY(kind, 1),  ENTRY(kind, 2),  ENTRY(kind, 3), ENTRY(kind, 4),   \
        ENTRY(kind, 5),  ENTRY(kind, 6),  ENTRY(kind, 7),  ENTRY(kind, 8), ENTRY(kind, 9),   \
        ENTRY(kind, 10), ENTRY(kind, 11), ENTRY(kind, 12),                                   \
    };
/* clang-format on */
TILES(pairs, TARE_TARGET_VNNI)
TILES(madd, TARE_TARGET_AVX512)
#undef TILE
#undef TILE_PAIR
#undef TILE_BODY
#undef GROUP
#undef TILES
#undef ENTRY

static void run_tiles(tile_function *const tiles[MAX_ROWS + 1][2], const struct tare_igemm_output *c, const void *a,
                      int64_t a_stride, const void *panels, int64_t panel_stride, int64_t rows, int64_t n,
                      const struct tare_igemm_segments *segments, const int32_t *start) {
    const int64_t tile_count = (rows + MAX_ROWS - 1) / MAX_ROWS;
    for (int64_t column = 0; column < n; column += 32) {
        const int64_t width = n - column > 16 ? 32 : 16, columns = n - column < width ? n - column : width;
        const __mmask16 last = (__mmask16)(0xffffu >> (width - columns));
        int64_t row = 0;
        for (int64_t t = 0; t < tile_count; t++) {
            const int64_t end = (t + 1) * rows / tile_count;
            const struct tare_igemm_output to = tare_igemm_output_at(c, row, column);
            tiles[end - row][width / 32](&to, (const char *)a + row * a_stride, a_stride,
                                         (const char *)panels + column / 16 * panel_stride, panel_stride, segments,
                                         !start ? NULL : start + column, last);
            row = end;
        }
    }
}

#define BLOCK(name, kind)                                                                                              \
    void name(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,                  \
              int64_t panel_stride, int64_t rows, int64_t n, const struct tare_igemm_segments *segments,               \
              const int32_t *start) {                                                                                  \
        run_tiles(tiles_##kind, c, a, a_stride, panels, panel_stride, rows, n, segments, start);                       \
    }
BLOCK(tare_igemm_pairs_vnni, pairs)
BLOCK(tare_igemm_pairs_avx512, madd)
#undef BLOCK
#endif
