/* The VNNI variant of depthwise lines (depthwise_lines.c): four rows of bytes in a lane, 16 lanes in a vector. */
#include "interpreter/kernels/integer/depthwise_lines.h"
#include "interpreter/kernels/integer/requantize_rows.h"

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

/* tare_requantize_avx512 to bytes without an addend, whose operands are loaded once a line. */
struct bytes {
    uint8_t *to;
    __m512i offset;
    __m512 scale, add, low, high;
};
TARE_ALWAYS_INLINE TARE_TARGET_VNNI struct bytes bytes_of(const struct tare_igemm_output *output) {
    const struct tare_requantize *r = output->requantize;
    return (struct bytes){ r->to + output->element,
                           _mm512_loadu_si512(r->offset + output->column),
                           _mm512_loadu_ps(r->scale + output->column),
                           _mm512_set1_ps(r->first.add),
                           _mm512_set1_ps(r->first.low),
                           _mm512_set1_ps(r->first.high) };
}
/* `sums` with the offset. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_bytes(const struct bytes *bytes, int64_t at, __m512i sums, int lanes) {
    const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), bytes->scale);
    const __m512 x = _mm512_min_ps(bytes->high, _mm512_max_ps(bytes->low, _mm512_add_ps(real, bytes->add)));
    const __m512i rounded = _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (lanes == LANES)
        _mm_storeu_si128((__m128i *)(void *)(bytes->to + at), _mm512_cvtepi32_epi8(rounded));
    else
        _mm_mask_storeu_epi8(bytes->to + at, (__mmask16)(0xffffu >> (LANES - lanes)), _mm512_cvtepi32_epi8(rounded));
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i sums_at(const char *x, const struct tare_depthwise_walk *walk, __m512i sums,
                                                    const __m512i *weights, const int groups, const int taps) {
    TARE_UNROLL
    for (int i = 0; i < groups * taps; i++)
        sums = add_products(sums, x + i / taps * walk->group_step + i % taps * walk->tap_step, weights[i]);
    return sums;
}

/* Float results without an addend, whose operands are loaded once a line. `first`: the start with the offset. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void walk_reals(const struct tare_igemm_output *output,
                                                    const struct tare_depthwise_walk *walk, __m512i first,
                                                    const __m512i *weights, const int groups, const int taps,
                                                    const bool has_sign) {
    const struct tare_requantize *r = output->requantize;
    const __mmask16 all[] = { 0xffff, 0 }, inside = (__mmask16)(0xffffu >> (LANES - walk->inside)),
                    last = (__mmask16)(0xffffu >> (LANES - walk->last));
    struct tare_real_columns columns = tare_real_columns_of(r, output->column, all, 1);
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r);
    float *to = r->real.floats + output->element;
    const char *x = walk->x;
    columns.offset[0] = _mm512_setzero_si512();
    for (int64_t p = 0; p < walk->count; p++, x += walk->step) {
        const __mmask16 mask = p == walk->count - 1 ? last : inside;
        const __m512 real = tare_real_lanes(&columns, 0, sums_at(x, walk, first, weights, groups, taps), NULL);
        tare_store_floats(to + p * walk->out_step, real, mask, mask == 0xffff);
        tare_add_to_range(&seen, real, mask, mask == 0xffff, has_sign);
    }
    tare_requantize_store_range_avx512(r, &seen);
}

/* The weights of kernels of known size stay in registers. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void walk_known(const struct tare_igemm_output *output,
                                                    const struct tare_depthwise_walk *walk, const int groups,
                                                    const int taps) {
    enum { MOST = 10 };
    const struct tare_requantize *r = output->requantize;
    const __m512i start = _mm512_load_si512(walk->start);
    const char *x = walk->x;
    __m512i weights[MOST];
    TARE_UNROLL
    for (int i = 0; i < groups * taps; i++)
        weights[i] = _mm512_load_si512(walk->weights + i * VECTOR);
    if (r && !r->is_real && !r->addend) {
        const struct bytes bytes = bytes_of(output);
        const __m512i first = _mm512_add_epi32(start, bytes.offset);
        for (int64_t p = 0; p < walk->count; p++, x += walk->step)
            store_bytes(&bytes, p * walk->out_step, sums_at(x, walk, first, weights, groups, taps),
                        p == walk->count - 1 ? walk->last : walk->inside);
        return;
    }
    if (r && r->is_real && !r->real.addend) {
        const __m512i first = _mm512_add_epi32(start, _mm512_loadu_si512(r->offset + output->column));
        if (r->real.low >= 0)
            walk_reals(output, walk, first, weights, groups, taps, false);
        else
            walk_reals(output, walk, first, weights, groups, taps, true);
        return;
    }
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r);
    for (int64_t p = 0; p < walk->count; p++, x += walk->step)
        store_sums(output, p * walk->out_step, sums_at(x, walk, start, weights, groups, taps),
                   p == walk->count - 1 ? walk->last : walk->inside, &seen);
    tare_requantize_store_range_avx512(r, &seen);
}

static TARE_TARGET_VNNI void walk_1_3(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    walk_known(output, walk, 1, 3);
}
static TARE_TARGET_VNNI void walk_2_5(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk) {
    walk_known(output, walk, 2, 5);
}

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
