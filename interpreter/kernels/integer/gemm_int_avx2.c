/* The AVX2 variant of the integer product: pairs, tiles of up to 6 rows by one panel. */
#include "interpreter/kernels/integer/gemm_int.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 6 };

/* A tile of the output: `columns` of the panel are inside, those of the masks. */
struct target {
    const struct tare_igemm_output *c;
    int columns;
    __m256i last[2];
};

/* Stores 8 columns of a row from column `column` of the tile on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_sums(const struct target *to, int64_t row, const int column,
                                                    __m256i sums, struct tare_range_avx2 *seen) {
    const struct tare_igemm_output *c = to->c;
    const int64_t at = row * c->stride + column;
    if (!c->requantize)
        _mm256_maskstore_epi32(c->sums + at, to->last[column / 8], sums);
    else if (to->columns >= column + 8)
        tare_requantize_avx2(c->requantize, sums, c->element + at, c->column + column, 8, seen);
    else if (to->columns > column)
        tare_requantize_avx2(c->requantize, sums, c->element + at, c->column + column, to->columns - column, seen);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tile(const struct target *to, const char *a, int64_t a_stride, const char *b,
                                              const struct tare_igemm_segments *segments, const int32_t *start,
                                              const int rows) {
    const struct tare_igemm_output *c = to->c;
    __m256i sum[MAX_ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            sum[i][j] = _mm256_maskload_epi32((start ? start : c->sums + i * c->stride) + j * 8, to->last[j]);
    }
    for (int64_t s = 0; s < segments->count; s++, a += segments->step) {
        for (int64_t g = 0; g < segments->groups; g++, b += 64) {
            const __m256i low = _mm256_loadu_si256((const __m256i *)(b));
            const __m256i high = _mm256_loadu_si256((const __m256i *)(b + 32));
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                int32_t group;
                memcpy(&group, a + i * a_stride + g * 4, sizeof group);
                const __m256i x = _mm256_set1_epi32(group);
                sum[i][0] = _mm256_add_epi32(sum[i][0], _mm256_madd_epi16(x, low));
                sum[i][1] = _mm256_add_epi32(sum[i][1], _mm256_madd_epi16(x, high));
            }
        }
    }
    struct tare_range_avx2 seen = tare_requantize_range_avx2(c->requantize);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        store_sums(to, i, 0, sum[i][0], &seen);
        store_sums(to, i, 8, sum[i][1], &seen);
    }
    tare_requantize_store_range_avx2(c->requantize, &seen);
}

static TARE_TARGET_AVX2 void some_rows(const struct target *to, const char *a, int64_t a_stride, const char *b,
                                       const struct tare_igemm_segments *segments, const int32_t *start, int64_t rows) {
    switch (rows) {
    case 1:
        tile(to, a, a_stride, b, segments, start, 1);
        break;
    case 2:
        tile(to, a, a_stride, b, segments, start, 2);
        break;
    case 3:
        tile(to, a, a_stride, b, segments, start, 3);
        break;
    case 4:
        tile(to, a, a_stride, b, segments, start, 4);
        break;
    case 5:
        tile(to, a, a_stride, b, segments, start, 5);
        break;
    default:
        tile(to, a, a_stride, b, segments, start, 6);
        break;
    }
}

TARE_TARGET_AVX2 void tare_igemm_pairs_avx2(const struct tare_igemm_output *c, const void *a, int64_t a_stride,
                                            const void *panels, int64_t panel_stride, int64_t rows, int64_t n,
                                            const struct tare_igemm_segments *segments, const int32_t *start) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int64_t tile_count = (rows + MAX_ROWS - 1) / MAX_ROWS;
    for (int64_t column = 0; column < n; column += 16) {
        const int columns = (int)(n - column < 16 ? n - column : 16);
        const char *panel = (const char *)panels + column / 16 * panel_stride;
        int64_t row = 0;
        for (int64_t t = 0; t < tile_count; t++) {
            const int64_t end = (t + 1) * rows / tile_count;
            const struct tare_igemm_output part = tare_igemm_output_at(c, row, column);
            const struct target to = { .c = &part,
                                       .columns = columns,
                                       .last = { _mm256_cmpgt_epi32(_mm256_set1_epi32(columns), lane),
                                                 _mm256_cmpgt_epi32(_mm256_set1_epi32(columns - 8), lane) } };
            some_rows(&to, (const char *)a + row * a_stride, a_stride, panel, segments, !start ? NULL : start + column,
                      end - row);
            row = end;
        }
    }
}
#endif
