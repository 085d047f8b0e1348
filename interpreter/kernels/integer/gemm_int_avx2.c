/* The AVX2 and AVX-VNNI variants of the integer product: tiles of up to 6 rows by one panel. They differ in the
 * instructions that add the products of a group. */
#include "interpreter/kernels/integer/avx_vnni.h"
#include "interpreter/kernels/integer/gemm_int_block.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 6, AHEAD = 2048 }; /* bytes of a panel that are prefetched */
enum step { STEP_PAIRS, STEP_PAIRS_AVX_VNNI, STEP_QUADS_AVX_VNNI };

/* sum += the products of one group: x holds the row's 4 bytes in every lane. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i add_group(__m256i sum, __m256i x, __m256i weights, const enum step step) {
    if (step == STEP_QUADS_AVX_VNNI) return tare_add_quads_avx_vnni(sum, x, weights);
    if (step == STEP_PAIRS_AVX_VNNI) return tare_add_pairs_avx_vnni(sum, x, weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, weights));
}

/* A tile of the output: `columns` of the panel are inside, those of the masks. */
struct target {
    const struct tare_igemm_output *c;
    int columns;
    __m256i last[2];
};

/* A tile with addends or float results, or of a panel's first columns. */
static __attribute__((noinline)) TARE_TARGET_AVX2 void requantize_any(const struct target *to,
                                                                      const __m256i sum[MAX_ROWS][2], int rows) {
    const struct tare_igemm_output *c = to->c;
    const struct tare_requantize copy = *c->requantize;
    struct tare_range_avx2 seen = tare_requantize_range_avx2(&copy);
    for (int i = 0; i < rows; i++) {
        for (int column = 0; column < to->columns; column += 8) {
            const int64_t at = c->element + i * c->stride + column;
            if (to->columns - column >= 8)
                tare_requantize_avx2(&copy, sum[i][column / 8], at, c->column + column, 8, &seen);
            else
                tare_requantize_avx2(&copy, sum[i][column / 8], at, c->column + column, to->columns - column, &seen);
        }
    }
    tare_requantize_store_range_avx2(&copy, &seen);
}

/* Requantizes a tile, whose 16 columns are stored together. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void requantize_tile(const struct target *to, __m256i sum[MAX_ROWS][2],
                                                         const int rows) {
    const struct tare_igemm_output *c = to->c;
    if (!tare_requantize_is_bytes(c->requantize) || to->columns < 16) {
        __m256i copy[MAX_ROWS][2]; /* `sum` itself stays in registers */
        TARE_UNROLL
        for (int i = 0; i < 2 * rows; i++)
            copy[i / 2][i % 2] = sum[i / 2][i % 2];
        requantize_any(to, (const __m256i(*)[2])copy, rows);
        return;
    }
    const __m256i mask = _mm256_set1_epi32(0xff), order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    /* a copy, because a store of bytes may change the original as far as the compiler knows */
    const struct tare_requantize r = *c->requantize;
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256i low = _mm256_and_si256(mask, tare_requantize_bytes_avx2(&r, sum[i][0], c->column));
        const __m256i high = _mm256_and_si256(mask, tare_requantize_bytes_avx2(&r, sum[i][1], c->column + 8));
        const __m256i halves = _mm256_packus_epi32(low, high), bytes = _mm256_packus_epi16(halves, halves);
        const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, order);
        _mm_storeu_si128((__m128i *)(void *)(r.to + c->element + i * c->stride), _mm256_castsi256_si128(ordered));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tile(const struct target *to, const char *a, int64_t a_stride, const char *b,
                                              const struct tare_igemm_segments *segments, const int32_t *start,
                                              const int rows, const enum step step) {
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
            _mm_prefetch(b + AHEAD, _MM_HINT_T0);
            const __m256i low = _mm256_loadu_si256((const __m256i *)(b));
            const __m256i high = _mm256_loadu_si256((const __m256i *)(b + 32));
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                int32_t group;
                memcpy(&group, a + i * a_stride + g * 4, sizeof group);
                const __m256i x = _mm256_set1_epi32(group);
                sum[i][0] = add_group(sum[i][0], x, low, step);
                sum[i][1] = add_group(sum[i][1], x, high, step);
            }
        }
    }
    if (c->requantize) {
        requantize_tile(to, sum, rows);
        return;
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        _mm256_maskstore_epi32(c->sums + i * c->stride, to->last[0], sum[i][0]);
        _mm256_maskstore_epi32(c->sums + i * c->stride + 8, to->last[1], sum[i][1]);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void some_rows(const struct target *to, const char *a, int64_t a_stride,
                                                   const char *b, const struct tare_igemm_segments *segments,
                                                   const int32_t *start, int64_t rows, const enum step step) {
    switch (rows) {
    case 1:
        tile(to, a, a_stride, b, segments, start, 1, step);
        break;
    case 2:
        tile(to, a, a_stride, b, segments, start, 2, step);
        break;
    case 3:
        tile(to, a, a_stride, b, segments, start, 3, step);
        break;
    case 4:
        tile(to, a, a_stride, b, segments, start, 4, step);
        break;
    case 5:
        tile(to, a, a_stride, b, segments, start, 5, step);
        break;
    default:
        tile(to, a, a_stride, b, segments, start, 6, step);
        break;
    }
}

typedef void rows_function(const struct target *to, const char *a, int64_t a_stride, const char *b,
                           const struct tare_igemm_segments *segments, const int32_t *start, int64_t rows);
#define ROWS(name, step)                                                                                               \
    static TARE_TARGET_AVX2 void name(const struct target *to, const char *a, int64_t a_stride, const char *b,         \
                                      const struct tare_igemm_segments *segments, const int32_t *start,                \
                                      int64_t rows) {                                                                  \
        some_rows(to, a, a_stride, b, segments, start, rows, step);                                                    \
    }
ROWS(rows_pairs, STEP_PAIRS)
ROWS(rows_pairs_avx_vnni, STEP_PAIRS_AVX_VNNI)
ROWS(rows_quads_avx_vnni, STEP_QUADS_AVX_VNNI)
#undef ROWS

static TARE_TARGET_AVX2 void run_tiles(rows_function *run_rows, const struct tare_igemm_output *c, const void *a,
                                       int64_t a_stride, const void *panels, int64_t panel_stride, int64_t rows,
                                       int64_t n, const struct tare_igemm_segments *segments, const int32_t *start) {
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
            run_rows(&to, (const char *)a + row * a_stride, a_stride, panel, segments, !start ? NULL : start + column,
                     end - row);
            row = end;
        }
    }
}

#define BLOCK(name, run_rows)                                                                                          \
    void name(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,                  \
              int64_t panel_stride, int64_t rows, int64_t n, const struct tare_igemm_segments *segments,               \
              const int32_t *start) {                                                                                  \
        run_tiles(run_rows, c, a, a_stride, panels, panel_stride, rows, n, segments, start);                           \
    }
BLOCK(tare_igemm_pairs_avx2, rows_pairs)
BLOCK(tare_igemm_pairs_avx_vnni, rows_pairs_avx_vnni)
BLOCK(tare_igemm_quads_avx_vnni, rows_quads_avx_vnni)
#undef BLOCK
#endif
