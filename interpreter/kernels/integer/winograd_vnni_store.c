/* Outputs of Winograd's algorithm with VNNI: the products of a tile become sums by A' (winograd_vnni.c explains the
 * matrices and why all of it is exact), which are stored or requantized. */
#include "interpreter/kernels/integer/winograd_vnni_tiles.h"

#if TARE_KERNELS_X86
enum { SIDE = TARE_WINOGRAD_SIDE, REACH = TARE_WINOGRAD_REACH, POSITIONS = TARE_WINOGRAD_POSITIONS };
enum { LANES = TARE_ROW_LANES };

/* A' m, where the elements of m are `step` vectors apart. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void add_up(__m512i to[SIDE], const __m512i *m, int64_t step) {
    const __m512i p = _mm512_add_epi32(m[step], m[2 * step]), q = _mm512_sub_epi32(m[step], m[2 * step]);
    const __m512i u = _mm512_add_epi32(m[3 * step], m[4 * step]), v = _mm512_sub_epi32(m[3 * step], m[4 * step]);
    const __m512i v2 = _mm512_add_epi32(v, v), last = _mm512_add_epi32(_mm512_add_epi32(v2, v2), m[5 * step]);
    to[0] = _mm512_add_epi32(_mm512_sub_epi32(m[0], p), u);
    to[1] = _mm512_sub_epi32(v2, q);
    to[2] = _mm512_sub_epi32(_mm512_slli_epi32(u, 2), p);
    to[3] = _mm512_sub_epi32(_mm512_add_epi32(last, last), q);
}

/* The sums of 16 output channels of a tile, of this pass and, unless NULL, of `before`; both two vectors apart. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void sums_of_tile(__m512i *to, const __m512i *products, int64_t step,
                                                        const __m512i *before) {
    const __m512i ninth = _mm512_set1_epi32(0x38e38e39); /* the inverse of 9 modulo 2^32 */
    __m512i lines[SIDE][REACH];
    TARE_UNROLL
    for (int w = 0; w < REACH; w++) {
        __m512i out[SIDE];
        add_up(out, products + w * step, REACH * step);
        TARE_UNROLL
        for (int h = 0; h < SIDE; h++)
            lines[h][w] = out[h];
    }
    TARE_UNROLL
    for (int h = 0; h < SIDE; h++) {
        __m512i out[SIDE];
        add_up(out, lines[h], 1);
        TARE_UNROLL
        for (int w = 0; w < SIDE; w++) {
            const int at = 2 * (SIDE * h + w);
            __m512i x = _mm512_srai_epi32(_mm512_mullo_epi32(out[w], ninth), 6);
            if (before) x = _mm512_add_epi32(x, before[at]);
            to[at] = x;
        }
    }
}

/* Where a tile's positions are in the block's output: the first one, and how many of each line and column exist. */
struct place {
    int64_t first;
    int64_t lines, columns;
};
static struct place place_of(const struct tare_winograd_run *r, int64_t t) {
    const struct tare_conv *conv = r->conv;
    const int64_t width = tare_winograd_tiles_of(conv->out[2]), height = tare_winograd_tiles_of(conv->out[1]),
                  line = r->line + t / width;
    const int64_t h = SIDE * (line % height), w = SIDE * (t % width);
    const int64_t begin = r->line / height * conv->out[1] + SIDE * (r->line % height);
    return (struct place){ .first = (line / height * conv->out[1] + h - begin) * conv->out[2] + w,
                           .lines = conv->out[1] - h < SIDE ? conv->out[1] - h : SIDE,
                           .columns = conv->out[2] - w < SIDE ? conv->out[2] - w : SIDE };
}

/* Stores the sums of a line of a tile, position by position, or converts them by the general function. */
static TARE_TARGET_AVX512 void store_line(const struct tare_winograd_run *r, const __m512i *sums, int64_t position,
                                          int64_t columns, int64_t column, struct tare_range_avx512 *seen) {
    for (int64_t i = 0; i < 2 * columns; i++) {
        const int64_t channel = column + i % 2 * LANES, at = (position + i / 2) * r->conv->out_channels + channel;
        if (r->requantize)
            tare_requantize_avx512(r->requantize, sums[i], r->element + at, channel, 0xffff, seen);
        else
            _mm512_storeu_si512(r->sums + at, sums[i]);
    }
}

/* Converts a line of a tile to bytes, two positions at a time. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_line_bytes(const struct tare_winograd_run *r,
                                                            const struct tare_quantizer *q, const __m512i offset[2],
                                                            const __m512i *sums, int64_t position, int64_t columns,
                                                            int64_t column, const bool is_unsigned) {
    const int64_t n = r->conv->out_channels;
    uint8_t *to = r->requantize->to + r->element + position * n + column;
    for (int64_t w = 0; w < columns; w += 2, sums += 4, to += 2 * n) {
        __m512i x[4];
        TARE_UNROLL
        for (int i = 0; i < 4; i++)
            x[i] = tare_rounded_result(q, _mm512_add_epi32(sums[i], offset[i % 2]), i % 2, NULL, 0);
        const __m512i bytes = tare_packed_bytes(q, x, is_unsigned);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(bytes));
        if (w + 1 < columns) _mm256_storeu_si256((__m256i *)(void *)(to + n), _mm512_extracti64x4_epi64(bytes, 1));
    }
}

/* The columns of a chunk of all tiles, as bytes. */
static TARE_TARGET_AVX512 void store_bytes(const struct tare_winograd_run *r, int64_t column, bool adds) {
    const struct tare_quantizer q = tare_quantizer_of(r->requantize, &r->bounds, column, 0xffff);
    const __m512i offset[2] = { _mm512_loadu_si512(r->requantize->offset + column),
                                _mm512_loadu_si512(r->requantize->offset + column + LANES) };
    const int64_t step = tare_winograd_product_step(r->tiles);
    const bool is_unsigned = r->bounds.high > INT8_MAX;
    for (int64_t t = 0; t < r->tiles; t++) {
        const struct place place = place_of(r, t);
        __m512i sums[2 * POSITIONS];
        for (int panel = 0; panel < 2; panel++)
            sums_of_tile(sums + panel, r->products + 2 * t + panel, step,
                         adds ? r->partial + 2 * POSITIONS * t + panel : NULL);
        for (int64_t h = 0; h < place.lines; h++) {
            const int64_t position = place.first + h * r->conv->out[2];
            if (is_unsigned)
                store_line_bytes(r, &q, offset, sums + 2 * SIDE * h, position, place.columns, column, true);
            else
                store_line_bytes(r, &q, offset, sums + 2 * SIDE * h, position, place.columns, column, false);
        }
    }
}

static TARE_TARGET_AVX512 void store_any(const struct tare_winograd_run *r, int64_t column, bool adds) {
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r->requantize);
    for (int64_t t = 0; t < r->tiles; t++) {
        const struct place place = place_of(r, t);
        __m512i sums[2 * POSITIONS];
        for (int panel = 0; panel < 2; panel++)
            sums_of_tile(sums + panel, r->products + 2 * t + panel, tare_winograd_product_step(r->tiles),
                         adds ? r->partial + 2 * POSITIONS * t + panel : NULL);
        for (int64_t h = 0; h < place.lines; h++)
            store_line(r, sums + 2 * SIDE * h, place.first + h * r->conv->out[2], place.columns, column, &seen);
    }
    tare_requantize_store_range_avx512(r->requantize, &seen);
}

/* The sums of a pass that is not the last. */
static TARE_TARGET_AVX512 void keep_sums(const struct tare_winograd_run *r, bool adds) {
    for (int64_t i = 0; i < 2 * r->tiles; i++) {
        __m512i *to = r->partial + i / 2 * 2 * POSITIONS + i % 2;
        sums_of_tile(to, r->products + i, tare_winograd_product_step(r->tiles), adds ? to : NULL);
    }
}

void tare_winograd_vnni_store(const struct tare_winograd_run *run, int64_t column, bool adds, bool is_last) {
    if (!is_last)
        keep_sums(run, adds);
    else
        (run->bounds.is_possible ? store_bytes : store_any)(run, column, adds);
}
#endif
