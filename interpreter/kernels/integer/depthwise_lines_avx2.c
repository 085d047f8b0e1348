/* The AVX2 and AVX-VNNI variants of depthwise lines (depthwise_lines.c), 8 lanes in a vector. AVX2: two rows of 16-bit
 * integers in a lane; vpmaddwd is exact for bytes widened to 16 bits. AVX-VNNI: four rows of bytes. */
#include "interpreter/kernels/integer/avx_vnni.h"
#include "interpreter/kernels/integer/depthwise_lines.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { LANES = 8, VECTOR = 32, PIECE = 16, BYTE_PIECE = 32 }; /* pieces: elements that are interleaved together */

/* `count` elements (1 to 16) of a row from element `at` on, as 16-bit integers. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load_row(const int8_t *row, int64_t at, int64_t count, __m256i padding) {
    int8_t rest[PIECE] = { 0 };
    if (!row) return padding;
    if (count >= PIECE) return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(row + at)));
    memcpy(rest, row + at, (size_t)count);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)rest));
}

static TARE_TARGET_AVX2 void interleave_pairs(char *to, const int8_t *const rows[TARE_DEPTHWISE_MOST_ROWS],
                                              int64_t count, int8_t pad_value) {
    const __m256i padding = _mm256_set1_epi16(pad_value);
    for (int64_t at = 0; at < count; at += PIECE, to += 2 * VECTOR) {
        const __m256i a = load_row(rows[0], at, count - at, padding), b = load_row(rows[1], at, count - at, padding);
        const __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(to + VECTOR), _mm256_permute2x128_si256(low, high, 0x31));
    }
}

/* `count` elements (1 or more, of which 32 are used) of a row from element `at` on as unsigned numbers, ordered so that
 * unpacking yields consecutive elements. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load_bytes(const int8_t *row, int64_t at, int64_t count, __m256i padding) {
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    int8_t rest[BYTE_PIECE] = { 0 };
    if (!row) return padding;
    if (count < BYTE_PIECE) memcpy(rest, row + at, (size_t)count);
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(count < BYTE_PIECE ? rest : row + at));
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(x, _mm256_set1_epi8(-128)), order);
}

static TARE_TARGET_AVX2 void interleave_quads(char *to, const int8_t *const rows[TARE_DEPTHWISE_MOST_ROWS],
                                              int64_t count, int8_t pad_value) {
    const __m256i padding = _mm256_set1_epi8((char)(pad_value ^ -128));
    for (int64_t at = 0; at < count; at += BYTE_PIECE, to += 4 * VECTOR) {
        const int64_t left = count - at;
        const __m256i a = load_bytes(rows[0], at, left, padding), b = load_bytes(rows[1], at, left, padding);
        const __m256i c = load_bytes(rows[2], at, left, padding), d = load_bytes(rows[3], at, left, padding);
        const __m256i ab = _mm256_unpacklo_epi8(a, b), cd = _mm256_unpacklo_epi8(c, d);
        const __m256i ab_high = _mm256_unpackhi_epi8(a, b), cd_high = _mm256_unpackhi_epi8(c, d);
        __m256i *vectors = (__m256i *)(void *)to;
        _mm256_storeu_si256(vectors, _mm256_unpacklo_epi16(ab, cd));
        _mm256_storeu_si256(vectors + 1, _mm256_unpackhi_epi16(ab, cd));
        _mm256_storeu_si256(vectors + 2, _mm256_unpacklo_epi16(ab_high, cd_high));
        _mm256_storeu_si256(vectors + 3, _mm256_unpackhi_epi16(ab_high, cd_high));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

/* What a line needs to store its sums: copies, because a store of bytes may change the originals as far as the compiler
 * knows. */
enum store { STORE_SUMS, STORE_BYTES, STORE_ANY }; /* BYTES: see tare_requantize_is_bytes */
struct target {
    enum store store;
    struct tare_requantize requantize;
    int32_t *sums;
    int64_t element, column;
    struct tare_range_avx2 seen;
};

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 struct target target_of(const struct tare_igemm_output *output,
                                                            const enum store store) {
    struct target to = { .store = store, .sums = output->sums, .element = output->element, .column = output->column };
    if (store != STORE_SUMS) to.requantize = *output->requantize;
    if (store == STORE_ANY) to.seen = tare_requantize_range_avx2(output->requantize);
    return to;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_sums(struct target *to, int64_t at, __m256i sums, int lanes) {
    if (to->store == STORE_SUMS)
        tare_store_ints_avx2(to->sums + at, sums, lanes);
    else if (to->store == STORE_BYTES)
        tare_store_bytes_avx2(to->requantize.to + to->element + at,
                              tare_requantize_bytes_avx2(&to->requantize, sums, to->column), lanes);
    else if (lanes == LANES)
        tare_requantize_avx2(&to->requantize, sums, to->element + at, to->column, LANES, &to->seen);
    else
        tare_requantize_avx2(&to->requantize, sums, to->element + at, to->column, lanes, &to->seen);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i add_products(__m256i sums, const char *x, __m256i weights,
                                                         const bool quads) {
    if (quads) return tare_add_quads_avx_vnni(sums, load(x), weights);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(load(x), weights));
}

/* A line with kernels of `groups` × `taps`, whose weights stay in registers. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void walk_known(struct target *to, const struct tare_depthwise_walk walk,
                                                    const int groups, const int taps, const bool quads) {
    enum { MOST_PRODUCTS = 10 };
    const int products = groups * taps;
    const __m256i start = load(walk.start);
    const char *x = walk.x;
    __m256i weights[MOST_PRODUCTS];
    TARE_UNROLL
    for (int i = 0; i < products; i++)
        weights[i] = load(walk.weights + i * VECTOR);
    for (int64_t p = 0; p < walk.count; p++, x += walk.step) {
        __m256i sums = quads ? add_products(start, x, weights[0], true) : _mm256_madd_epi16(load(x), weights[0]);
        TARE_UNROLL
        for (int i = 1; i < products; i++)
            sums = add_products(sums, x + i / taps * walk.group_step + i % taps * walk.tap_step, weights[i], quads);
        store_sums(to, p * walk.out_step, sums, p == walk.count - 1 ? walk.last : walk.inside);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void walk_any(struct target *to, const struct tare_depthwise_walk walk,
                                                  const bool quads) {
    const char *x = walk.x;
    for (int64_t p = 0; p < walk.count; p++, x += walk.step) {
        __m256i sums = load(walk.start);
        const char *weights = walk.weights;
        for (int64_t group = 0; group < walk.groups; group++) {
            for (int64_t tap = 0; tap < walk.taps; tap++, weights += VECTOR)
                sums = add_products(sums, x + group * walk.group_step + tap * walk.tap_step, load(weights), quads);
        }
        store_sums(to, p * walk.out_step, sums, p == walk.count - 1 ? walk.last : walk.inside);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void walk_line(const struct tare_igemm_output *output,
                                                   const struct tare_depthwise_walk *walk, const enum store store,
                                                   const bool quads) {
    struct target to = target_of(output, store);
    if (!quads && walk->groups == 2 && walk->taps == 3)
        walk_known(&to, *walk, 2, 3, quads);
    else if (quads && walk->groups == 1 && walk->taps == 3)
        walk_known(&to, *walk, 1, 3, quads);
    else if (quads && walk->groups == 2 && walk->taps == 5)
        walk_known(&to, *walk, 2, 5, quads);
    else
        walk_any(&to, *walk, quads);
    if (store == STORE_ANY) tare_requantize_store_range_avx2(output->requantize, &to.seen);
}

static TARE_TARGET_AVX2 void walk_pairs(const struct tare_igemm_output *output,
                                        const struct tare_depthwise_walk *walk) {
    if (!output->requantize)
        walk_line(output, walk, STORE_SUMS, false);
    else if (tare_requantize_is_bytes(output->requantize))
        walk_line(output, walk, STORE_BYTES, false);
    else
        walk_line(output, walk, STORE_ANY, false);
}

static TARE_TARGET_AVX2 void walk_quads(const struct tare_igemm_output *output,
                                        const struct tare_depthwise_walk *walk) {
    if (!output->requantize)
        walk_line(output, walk, STORE_SUMS, true);
    else if (tare_requantize_is_bytes(output->requantize))
        walk_line(output, walk, STORE_BYTES, true);
    else
        walk_line(output, walk, STORE_ANY, true);
}

const struct tare_depthwise_form tare_depthwise_avx2 = {
    .rows = 2, .lanes = LANES, .interleave = interleave_pairs, .walk = walk_pairs
};
const struct tare_depthwise_form tare_depthwise_avx_vnni = {
    .rows = 4, .lanes = LANES, .interleave = interleave_quads, .walk = walk_quads
};
#endif
