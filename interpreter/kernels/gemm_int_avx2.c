/* The AVX2 variant of the integer product: pairs, tiles of up to 6 rows by one panel. */
#include "interpreter/kernels/gemm_int.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 6 };

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tile(int32_t *c, int64_t ldc, const char *a, int64_t a_stride, const char *b,
                                              const struct tare_igemm_segments *segments, const int32_t *start,
                                              const __m256i last[2], const int rows) {
    __m256i sum[MAX_ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            sum[i][j] = _mm256_maskload_epi32((start ? start : c + i * ldc) + j * 8, last[j]);
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
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            _mm256_maskstore_epi32(c + i * ldc + j * 8, last[j], sum[i][j]);
    }
}

static TARE_TARGET_AVX2 void some_rows(int32_t *c, int64_t ldc, const char *a, int64_t a_stride, const char *b,
                                       const struct tare_igemm_segments *segments, const int32_t *start,
                                       const __m256i last[2], int64_t rows) {
    switch (rows) {
    case 1:
        tile(c, ldc, a, a_stride, b, segments, start, last, 1);
        break;
    case 2:
        tile(c, ldc, a, a_stride, b, segments, start, last, 2);
        break;
    case 3:
        tile(c, ldc, a, a_stride, b, segments, start, last, 3);
        break;
    case 4:
        tile(c, ldc, a, a_stride, b, segments, start, last, 4);
        break;
    case 5:
        tile(c, ldc, a, a_stride, b, segments, start, last, 5);
        break;
    default:
        tile(c, ldc, a, a_stride, b, segments, start, last, 6);
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
        const __m256i last[2] = { _mm256_cmpgt_epi32(_mm256_set1_epi32(columns), lane),
                                  _mm256_cmpgt_epi32(_mm256_set1_epi32(columns - 8), lane) };
        int64_t row = 0;
        for (int64_t t = 0; t < tile_count; t++) {
            const int64_t end = (t + 1) * rows / tile_count;
            some_rows(c->sums + row * c->stride + column, c->stride, (const char *)a + row * a_stride, a_stride,
                      (const char *)panels + column / 16 * panel_stride, segments, !start ? NULL : start + column, last,
                      end - row);
            row = end;
        }
    }
}
#endif
