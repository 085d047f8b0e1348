/* The VNNI variant of depthwise lines (depthwise_lines.c): four rows of bytes in a lane, 16 lanes in a vector. */
#include "interpreter/kernels/integer/depthwise_lines.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

enum { LANES = 16, VECTOR = 64 };

/* Bytes [at, at + 64) of a row as unsigned numbers, ordered so that unpacking yields consecutive elements. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i load_row(const int8_t *row, int64_t at, __mmask64 mask, __m512i padding) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    if (!row) return padding;
    const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, row + at), _mm512_set1_epi8(-128));
    return _mm512_permutexvar_epi32(order, x);
}

static TARE_TARGET_VNNI void interleave(char *to, const int8_t *const rows[TARE_DEPTHWISE_MOST_ROWS], int64_t count,
                                        int8_t pad_value) {
    const __m512i padding = _mm512_set1_epi8((char)(pad_value ^ -128));
    for (int64_t at = 0; at < count; at += VECTOR, to += 4 * VECTOR) {
        const __mmask64 mask = count - at >= VECTOR ? ~(__mmask64)0 : ~(__mmask64)0 >> (VECTOR - (count - at));
        const __m512i a = load_row(rows[0], at, mask, padding), b = load_row(rows[1], at, mask, padding);
        const __m512i c = load_row(rows[2], at, mask, padding), d = load_row(rows[3], at, mask, padding);
        const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
        const __m512i ab_high = _mm512_unpackhi_epi8(a, b), cd_high = _mm512_unpackhi_epi8(c, d);
        _mm512_storeu_si512(to, _mm512_unpacklo_epi16(ab, cd));
        _mm512_storeu_si512(to + VECTOR, _mm512_unpackhi_epi16(ab, cd));
        _mm512_storeu_si512(to + 2 * VECTOR, _mm512_unpacklo_epi16(ab_high, cd_high));
        _mm512_storeu_si512(to + 3 * VECTOR, _mm512_unpackhi_epi16(ab_high, cd_high));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, const void *x, __m512i weights) {
    const __m512i bytes = _mm512_loadu_si512(x);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weights)); /* see gemm_int_avx512.c */
    return sum;
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_sums(const struct tare_igemm_output *output, int64_t at, __m512i sums,
                                                    int lanes, struct tare_range_avx512 *seen) {
    const __mmask16 mask = (__mmask16)(0xffffu >> (LANES - lanes));
    if (output->requantize)
        tare_requantize_avx512(output->requantize, sums, output->element + at, output->column, mask, seen);
    else
        _mm512_mask_storeu_epi32(output->sums + at, mask, sums);
}

/* The weights of kernels of known size stay in registers. */
#define WALK(name, GROUPS, TAPS)                                                                                       \
    static TARE_TARGET_VNNI void name(const struct tare_igemm_output *output,                                          \
                                      const struct tare_depthwise_walk *walk) {                                        \
        const __m512i start = _mm512_load_si512(walk->start);                                                          \
        struct tare_range_avx512 seen = tare_requantize_range_avx512(output->requantize);                              \
        const char *x = walk->x;                                                                                       \
        __m512i weights[GROUPS * TAPS];                                                                                \
        TARE_UNROLL                                                                                                    \
        for (int i = 0; i < GROUPS * TAPS; i++)                                                                        \
            weights[i] = _mm512_load_si512(walk->weights + i * VECTOR);                                                \
        for (int64_t p = 0; p < walk->count; p++, x += walk->step) {                                                   \
            __m512i sums = start;                                                                                      \
            TARE_UNROLL                                                                                                \
            for (int i = 0; i < GROUPS * TAPS; i++)                                                                    \
                sums = add_products(sums, x + i / TAPS * walk->group_step + i % TAPS * walk->tap_step, weights[i]);    \
            store_sums(output, p * walk->out_step, sums, p == walk->count - 1 ? walk->last : walk->inside, &seen);     \
        }                                                                                                              \
        tare_requantize_store_range_avx512(output->requantize, &seen);                                                 \
    }
WALK(walk_1_3, 1, 3)
WALK(walk_2_5, 2, 5)
#undef WALK

static TARE_TARGET_VNNI void walk_any(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    struct tare_range_avx512 seen = tare_requantize_range_avx512(output->requantize);
    const char *x = walk->x;
    for (int64_t p = 0; p < walk->count; p++, x += walk->step) {
        __m512i sums = _mm512_load_si512(walk->start);
        const char *weights = walk->weights;
        for (int64_t group = 0; group < walk->groups; group++) {
            for (int64_t tap = 0; tap < walk->taps; tap++, weights += VECTOR)
                sums =
                    add_products(sums, x + group * walk->group_step + tap * walk->tap_step, _mm512_load_si512(weights));
        }
        store_sums(output, p * walk->out_step, sums, p == walk->count - 1 ? walk->last : walk->inside, &seen);
    }
    tare_requantize_store_range_avx512(output->requantize, &seen);
}

static void walk_line(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    if (walk->groups == 1 && walk->taps == 3)
        walk_1_3(output, walk);
    else if (walk->groups == 2 && walk->taps == 5)
        walk_2_5(output, walk);
    else
        walk_any(output, walk);
}

const struct tare_depthwise_form tare_depthwise_vnni = {
    .rows = 4, .lanes = LANES, .interleave = interleave, .walk = walk_line
};
#endif
