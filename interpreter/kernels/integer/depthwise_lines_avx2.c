/* The AVX2 variant of depthwise lines (depthwise_lines.c): two rows of 16-bit integers in a lane, 8 lanes in a vector.
 * vpmaddwd is exact for bytes widened to 16 bits. */
#include "interpreter/kernels/integer/depthwise_lines.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { LANES = 8, VECTOR = 32, PIECE = 16 }; /* PIECE: elements that are interleaved together */

/* `count` elements (1 to 16) of a row from element `at` on, as 16-bit integers. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load_row(const int8_t *row, int64_t at, int64_t count, __m256i padding) {
    int8_t rest[PIECE] = { 0 };
    if (!row) return padding;
    if (count >= PIECE) return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(row + at)));
    memcpy(rest, row + at, (size_t)count);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)rest));
}

static TARE_TARGET_AVX2 void interleave(char *to, const int8_t *const rows[TARE_DEPTHWISE_MOST_ROWS], int64_t count,
                                        int8_t pad_value) {
    const __m256i padding = _mm256_set1_epi16(pad_value);
    for (int64_t at = 0; at < count; at += PIECE, to += 2 * VECTOR) {
        const __m256i a = load_row(rows[0], at, count - at, padding), b = load_row(rows[1], at, count - at, padding);
        const __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(to + VECTOR), _mm256_permute2x128_si256(low, high, 0x31));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_sums(const struct tare_igemm_output *output, int64_t at, __m256i sums,
                                                    int lanes, struct tare_range_avx2 *seen) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    if (!output->requantize)
        _mm256_maskstore_epi32(output->sums + at, _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), lane), sums);
    else if (lanes == LANES)
        tare_requantize_avx2(output->requantize, sums, output->element + at, output->column, LANES, seen);
    else
        tare_requantize_avx2(output->requantize, sums, output->element + at, output->column, lanes, seen);
}

/* 3×3 kernels: the weights stay in registers. */
static TARE_TARGET_AVX2 void walk_2_3(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    enum { TAPS = 3, PRODUCTS = 6 };
    struct tare_range_avx2 seen = tare_requantize_range_avx2(output->requantize);
    const char *x = walk->x;
    __m256i weights[PRODUCTS];
    TARE_UNROLL
    for (int i = 0; i < PRODUCTS; i++)
        weights[i] = load(walk->weights + i * VECTOR);
    for (int64_t p = 0; p < walk->count; p++, x += walk->step) {
        __m256i sums = _mm256_madd_epi16(load(x), weights[0]);
        TARE_UNROLL
        for (int i = 1; i < PRODUCTS; i++)
            sums = _mm256_add_epi32(
                sums, _mm256_madd_epi16(load(x + i / TAPS * walk->group_step + i % TAPS * walk->tap_step), weights[i]));
        store_sums(output, p * walk->out_step, sums, p == walk->count - 1 ? walk->last : walk->inside, &seen);
    }
    tare_requantize_store_range_avx2(output->requantize, &seen);
}

static TARE_TARGET_AVX2 void walk_any(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    struct tare_range_avx2 seen = tare_requantize_range_avx2(output->requantize);
    const char *x = walk->x;
    for (int64_t p = 0; p < walk->count; p++, x += walk->step) {
        __m256i sums = _mm256_setzero_si256();
        const char *weights = walk->weights;
        for (int64_t group = 0; group < walk->groups; group++) {
            for (int64_t tap = 0; tap < walk->taps; tap++, weights += VECTOR)
                sums = _mm256_add_epi32(
                    sums, _mm256_madd_epi16(load(x + group * walk->group_step + tap * walk->tap_step), load(weights)));
        }
        store_sums(output, p * walk->out_step, sums, p == walk->count - 1 ? walk->last : walk->inside, &seen);
    }
    tare_requantize_store_range_avx2(output->requantize, &seen);
}

static void walk_line(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    if (walk->groups == 2 && walk->taps == 3)
        walk_2_3(output, walk);
    else
        walk_any(output, walk);
}

const struct tare_depthwise_form tare_depthwise_avx2 = {
    .rows = 2, .lanes = LANES, .interleave = interleave, .walk = walk_line
};
#endif
