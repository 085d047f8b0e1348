/* Sums and operands of four rows fit in the 16 registers while they are multiplied and while they are converted, so
 * nothing is stored in between, and one loop computes all rows: with few products per sum, calls and loops around each
 * tile take as many instructions as the products. */
#include "interpreter/kernels/integer/gemm_int_packed_avx2.h"

#if TARE_KERNELS_X86
#include <string.h>

enum { ROWS = TARE_PACKED_ROWS, GROUP = 64, LANES = 8, UNROLLED = 8, AHEAD = 2048 /* bytes of a panel */ };

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i integers_at(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

/* Adds the products of a group of k. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void add_group(__m256i sum[ROWS][2], const char *a, int64_t a_stride,
                                                   const char *weights) {
    const __m256i first = integers_at(weights), second = integers_at(weights + GROUP / 2);
    _mm_prefetch(weights + AHEAD, _MM_HINT_T0); /* large weights are not in the cache */
    TARE_UNROLL
    for (int row = 0; row < ROWS; row++) {
        int32_t group;
        memcpy(&group, a + row * a_stride, sizeof group);
        const __m256i x = _mm256_set1_epi32(group);
        sum[row][0] = tare_kept_integers_avx2(_mm256_add_epi32(sum[row][0], _mm256_madd_epi16(x, first)));
        sum[row][1] = tare_kept_integers_avx2(_mm256_add_epi32(sum[row][1], _mm256_madd_epi16(x, second)));
    }
}

/* The sums of four rows. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void multiply(__m256i sum[ROWS][2], const struct tare_packed_tiles *t,
                                                  const char *a) {
    const char *weights = t->weights;
    TARE_UNROLL
    for (int i = 0; i < 2 * ROWS; i++)
        sum[i / 2][i % 2] = integers_at(t->start + i % 2 * LANES);
    for (int64_t s = 0; s < t->segments.count; s++, a += t->segments.step - 4 * t->segments.groups) {
        int64_t left = t->segments.groups;
        for (; left >= UNROLLED; left -= UNROLLED, a += 4 * UNROLLED, weights += GROUP * UNROLLED) {
            TARE_UNROLL
            for (int g = 0; g < UNROLLED; g++)
                add_group(sum, a + 4 * g, t->a_stride, weights + g * GROUP);
        }
        for (; left > 0; left--, a += 4, weights += GROUP)
            add_group(sum, a, t->a_stride, weights);
    }
}

/* Converts two rows. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store(const struct tare_packed_tiles *t, __m256i sum[2][2], uint8_t *to,
                                               const char *addend, const bool is_unsigned, const bool has_addend) {
    const float *const scale[] = { t->scale, t->scale + LANES, t->scale, t->scale + LANES };
    const char *addends[4] = { NULL };
    __m256i x[] = { sum[0][0], sum[0][1], sum[1][0], sum[1][1] };
    TARE_UNROLL
    for (int i = 0; has_addend && i < 4; i++)
        addends[i] = addend + i / 2 * t->stride + i % 2 * LANES;
    tare_packing_results_avx2(x, t->packing, scale, addends, has_addend, is_unsigned);
    const __m256i bytes = tare_pack_avx2(t->packing, x, is_unsigned);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(bytes));
    _mm_storeu_si128((__m128i *)(void *)(to + t->stride), _mm256_extracti128_si256(bytes, 1));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void run(const struct tare_packed_tiles *tiles, int64_t rows,
                                             const bool is_unsigned, const bool has_addend) {
    const struct tare_packed_tiles t = *tiles;
    const char *a = t.a, *addend = t.addend;
    uint8_t *to = t.to;
    for (; rows > 0; rows -= ROWS, a += ROWS * t.a_stride) {
        __m256i sum[ROWS][2];
        multiply(sum, &t, a);
        TARE_UNROLL
        for (int row = 0; row < ROWS; row += 2, to += 2 * t.stride) {
            store(&t, sum + row, to, addend, is_unsigned, has_addend);
            if (has_addend) addend += 2 * t.stride;
        }
    }
}

#define RUN(name, is_unsigned, has_addend)                                                                             \
    static TARE_TARGET_AVX2 void name(const struct tare_packed_tiles *tiles, int64_t rows) {                           \
        run(tiles, rows, is_unsigned, has_addend);                                                                     \
    }
RUN(run_int8, false, false)
RUN(run_int8_addend, false, true)
RUN(run_uint8, true, false)
RUN(run_uint8_addend, true, true)
#undef RUN

void tare_packed_tiles_run(const struct tare_packed_tiles *tiles, int64_t rows) {
    if (tiles->packing->is_signed)
        (tiles->addend ? run_int8_addend : run_int8)(tiles, rows);
    else
        (tiles->addend ? run_uint8_addend : run_uint8)(tiles, rows);
}
#endif
