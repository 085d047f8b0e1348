/* The VNNI variant of int8 depthwise convolutions of 3×3 kernels with stride 1 or 2 and at least 16 channels.
 *
 * vpdpbusd sums the products of four adjacent bytes. Here these are four adjacent columns of one channel: the columns
 * are interleaved by two unpacking steps in registers, without a buffer. Such a lane contributes a line of the kernel
 * to one output column, with the weights w0 w1 w2 0, and with stride 1 to the next column as well, with 0 w0 w1 w2. A
 * tile is two output lines by two columns of 64 channels: 16 vectors of sums.
 *
 * Unpacking orders the channels of a vector by its 128-bit quarters: quarter q of vector v has channels 16 q + 4 v to
 * 16 q + 4 v + 3. The weights have the same order, and packing the sums to bytes restores the order of memory. Channels
 * that do not fill 64 bytes are computed for two tiles (32 channels) or four (16) at once, which are adjacent: each
 * half or quarter of a vector belongs to a tile.
 *
 * vpdpbusd requires unsigned inputs: 128 is added to them, and the sums start at -128 times the sum of the channel's
 * weights. */
#include "interpreter/kernels/integer/depthwise_lines.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { VECTOR = 64, VECTORS = 4, QUARTER = 16, SIZE = 3, LINES = 2, COLUMNS = 2, SHIFTS = 2, MOST_INPUTS = 5 };
/* A block of channels: the starts of the sums, then weights by kernel line, shift and vector. */
enum { BLOCK_BYTES = (1 + SIZE * SHIFTS) * VECTORS * VECTOR };

/* Channels of the block before which `left` channels are left; tiles that it is computed for at once. */
static int64_t block_channels(int64_t left) {
    return left >= 64 ? 64 : left >= 32 ? 32 : left >= QUARTER ? QUARTER : left;
}
static int block_parts(int64_t channels) {
    return channels == 64 ? 1 : channels == 32 ? 2 : 4;
}

/* ---- packing ---- */

static size_t packed_bytes(const struct tare_conv *conv) {
    size_t bytes = 0;
    for (int64_t left = conv->out_channels; left > 0; left -= block_channels(left))
        bytes += BLOCK_BYTES;
    return bytes;
}

/* The weights of channel `channel` as lane `lane` of vector `vector`. */
static void pack_lane(int8_t *block, const struct tare_conv *conv, const int8_t *filter, int64_t channel, int vector,
                      int lane) {
    int32_t sum = 0;
    for (int h = 0; h < SIZE; h++) {
        for (int w = 0; w < SIZE; w++) {
            const int8_t weight = filter[(h * SIZE + w) * conv->out_channels + channel];
            sum += weight;
            for (int shift = 0; shift < SHIFTS; shift++)
                block[((1 + h * SHIFTS + shift) * VECTORS + vector) * VECTOR + lane * 4 + w + shift] = weight;
        }
    }
    ((int32_t *)(void *)block)[vector * (VECTOR / 4) + lane] = -128 * sum;
}

static void pack(void *packed, const struct tare_conv *conv, const int8_t *filter) {
    int8_t *block = packed;
    memset(packed, 0, packed_bytes(conv));
    for (int64_t c = 0, channels; c < conv->out_channels; c += channels, block += BLOCK_BYTES) {
        channels = block_channels(conv->out_channels - c);
        for (int i = 0; i < VECTORS * VECTOR / 4; i++) {
            const int vector = i / (VECTOR / 4), lane = i % (VECTOR / 4);
            const int64_t channel = lane / 4 * QUARTER % (VECTOR / block_parts(channels)) + 4 * vector + lane % 4;
            if (channel < channels) pack_lane(block, conv, filter, c + channel, vector, lane);
        }
    }
}

/* ---- tiles ---- */

/* Requantization of a block to bytes whose bounds packing with saturation and the bytes' maximum and minimum compute:
 * they are integers, and no result is beyond the range of int32. */
struct bytes {
    __m512 scale[VECTORS];
    __m512i start[VECTORS]; /* of the sums, with the offsets */
    __m512 add;
    __m512i low, high;
    bool is_possible, is_signed;
};

/* Conversion of a block to floats, in the order of the sums; the requantization has no addend. */
struct reals {
    __m512 scale[VECTORS], bias[VECTORS];
    __m512i offset[VECTORS];
    __m512 low, high;
    bool is_possible, has_bias, has_sign;
};

/* Quantization of float results of a block, or only the extremes of their sums (tare_requantize_takes_sums). Sums start
 * with the offsets. */
struct quotients {
    struct tare_quotient_avx512 quotient;
    __m512 scale[VECTORS], bias[VECTORS];
    struct tare_sum_range_avx512 extremes[VECTORS];
    bool is_possible, is_stored;
};

/* One block of channels of the lines of a call. */
struct work {
    const struct tare_igemm_output *output;
    const struct tare_conv *conv;
    const int8_t *x;       /* the image, at the block's first channel */
    const char *packed;    /* the block's */
    int64_t line, channel; /* the call's first output line, the block's first channel */
    struct bytes bytes;
    struct reals reals;
    struct quotients quotients;
    struct tare_range_avx512 seen; /* of float results */
    __mmask16 mask;                /* channels of a quarter that exist */
    int8_t padding[VECTOR];
};

/* A tile, or the adjacent tiles that are computed together. */
struct tile {
    int64_t line, column; /* the first output position */
    const int8_t *x;      /* of its first tap; may be outside of the image */
    int64_t x_line;       /* bytes */
    int64_t first, end;   /* input lines that are inside, counted from x */
    int64_t low, high;    /* input columns that are inside, counted from x */
};

/* Inline assembly keeps the sums in registers, see gemm_int_avx512.c. Weights of two columns are loaded once. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, __m512i bytes, __m512i weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weights));
    return sum;
}
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_stored_products(__m512i sum, __m512i bytes, const __m512i *weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "m"(*weights));
    return sum;
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m128i load_quarter(const int8_t *from, __mmask16 mask, const bool whole) {
    return whole ? _mm_loadu_si128((const __m128i *)(const void *)from) : _mm_maskz_loadu_epi8(mask, from);
}

/* Input column `column` of the tile's line that begins at `line`; padding outside of the image. */
TARE_ALWAYS_INLINE const int8_t *input_at(const struct work *work, const struct tile *tile, const int8_t *line,
                                          int64_t column, const bool inside) {
    const int8_t *at = line + column * work->conv->in_channels;
    return inside || (column >= tile->low && column < tile->high) ? at : work->padding;
}

/* Column `column` of a line of the tiles as unsigned numbers, one tile in each of `parts` parts of a vector. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i load_inputs(const struct work *work, const struct tile *tile,
                                                        const int8_t *line, int64_t column, const int step,
                                                        const int parts, const bool inside, const bool whole) {
    const __m512i sign = _mm512_set1_epi8(-128);
    const int8_t *first = input_at(work, tile, line, column, inside);
    if (parts == 1) return _mm512_xor_si512(_mm512_loadu_si512(first), sign);
    const int8_t *second = input_at(work, tile, line, column + step, inside);
    if (parts == 2) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)first);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)second);
        return _mm512_xor_si512(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), sign);
    }
    const int8_t *third = input_at(work, tile, line, column + 2 * step, inside);
    const int8_t *fourth = input_at(work, tile, line, column + 3 * step, inside);
    __m512i x = _mm512_castsi128_si512(load_quarter(first, work->mask, whole));
    x = _mm512_inserti32x4(x, load_quarter(second, work->mask, whole), 1);
    x = _mm512_inserti32x4(x, load_quarter(third, work->mask, whole), 2);
    x = _mm512_inserti32x4(x, load_quarter(fourth, work->mask, whole), 3);
    return _mm512_xor_si512(x, sign);
}

struct pair {
    __m512i low, high;
};
TARE_ALWAYS_INLINE TARE_TARGET_VNNI struct pair pair_of(__m512i a, __m512i b) {
    return (struct pair){ _mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b) };
}

/* The lanes of four columns, of which `ab` and `cd` are pairs. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void join(__m512i lanes[VECTORS], struct pair ab, struct pair cd) {
    lanes[0] = _mm512_unpacklo_epi16(ab.low, cd.low);
    lanes[1] = _mm512_unpackhi_epi16(ab.low, cd.low);
    lanes[2] = _mm512_unpacklo_epi16(ab.high, cd.high);
    lanes[3] = _mm512_unpackhi_epi16(ab.high, cd.high);
}

/* The inputs of line `h` of the tile. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void load_line(__m512i x[MOST_INPUTS], const struct work *work,
                                                   const struct tile *tile, const int h, const int stride,
                                                   const int parts, const bool inside, const bool whole) {
    const bool has_line = inside || (h >= tile->first && h < tile->end);
    const __m512i padding = _mm512_xor_si512(_mm512_loadu_si512(work->padding), _mm512_set1_epi8(-128));
    TARE_UNROLL
    for (int j = 0; j < SIZE + stride; j++) {
        x[j] = padding;
        if (has_line)
            x[j] = load_inputs(work, tile, tile->x + h * tile->x_line, j, COLUMNS * stride, parts, inside, whole);
    }
}

/* What input line `h` of the tile contributes to its sums. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void add_line(__m512i sums[LINES][COLUMNS][VECTORS], const struct work *work,
                                                  const struct tile *tile, const int h, const int lines,
                                                  const int stride, const int parts, const bool inside,
                                                  const bool whole) {
    __m512i lanes[COLUMNS][VECTORS], x[MOST_INPUTS];
    load_line(x, work, tile, h, stride, parts, inside, whole);
    const struct pair ab = pair_of(x[0], x[1]), cd = pair_of(x[2], x[3]);
    join(lanes[0], ab, cd);
    if (stride == 2) join(lanes[1], cd, pair_of(x[4], x[4])); /* the fourth column has weights of zero */
    TARE_UNROLL
    for (int l = 0; l < lines; l++) {
        const int tap = h - l * stride;
        if (tap < 0 || tap >= SIZE) continue;
        const __m512i *weights = (const __m512i *)(const void *)work->packed + (1 + tap * SHIFTS) * VECTORS;
        TARE_UNROLL
        for (int i = 0; stride == 1 && i < COLUMNS * VECTORS; i++) {
            const int column = i / VECTORS, v = i % VECTORS;
            sums[l][column][v] = add_stored_products(sums[l][column][v], lanes[0][v], weights + i);
        }
        TARE_UNROLL
        for (int i = 0; stride == 2 && i < COLUMNS * VECTORS; i++) {
            const int column = i % COLUMNS, v = i / COLUMNS;
            sums[l][column][v] = add_products(sums[l][column][v], lanes[column][v], weights[v]);
        }
    }
}

/* ---- results ---- */

/* Stores 64 bytes of column `i` of a line of the tiles, which begin at output column `column`. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_bytes(const struct work *work, __m512i x, int64_t line, int64_t column,
                                                     const int parts, const bool whole) {
    const struct tare_conv *conv = work->conv;
    const int64_t position = (line - work->line) * conv->out[2] + column, left = conv->out[2] - column;
    uint8_t *to = work->output->requantize->to + work->output->element + position * conv->out_channels + work->channel;
    const int64_t step = COLUMNS * conv->out_channels;
    const __mmask16 mask = whole ? 0xffff : work->mask;
    if (left <= 0) return;
    if (parts == 1) {
        _mm512_storeu_si512(to, x);
    } else if (parts == 2) {
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(x));
        if (left > COLUMNS) _mm256_storeu_si256((__m256i *)(void *)(to + step), _mm512_extracti64x4_epi64(x, 1));
    } else {
        _mm_mask_storeu_epi8(to, mask, _mm512_castsi512_si128(x));
        if (left > COLUMNS) _mm_mask_storeu_epi8(to + step, mask, _mm512_extracti32x4_epi32(x, 1));
        if (left > 2 * COLUMNS) _mm_mask_storeu_epi8(to + 2 * step, mask, _mm512_extracti32x4_epi32(x, 2));
        if (left > 3 * COLUMNS) _mm_mask_storeu_epi8(to + 3 * step, mask, _mm512_extracti32x4_epi32(x, 3));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i requantize(const struct bytes *bytes, const __m512i sums[VECTORS]) {
    __m512i x[VECTORS];
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[v]), bytes->scale[v]);
        x[v] = _mm512_cvtps_epi32(_mm512_add_ps(real, bytes->add));
    }
    const __m512i low = _mm512_packs_epi32(x[0], x[1]), high = _mm512_packs_epi32(x[2], x[3]);
    if (bytes->is_signed)
        return _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(low, high), bytes->low), bytes->high);
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), bytes->low), bytes->high);
}

struct quarters {
    __m512i of[4];
};
/* The quarters of four vectors: 16 adjacent channels each. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI struct quarters quarters_of(const __m512i v[VECTORS]) {
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44), b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xee), d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    return (struct quarters){ { _mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd),
                                _mm512_shuffle_i32x4(c, d, 0x88), _mm512_shuffle_i32x4(c, d, 0xdd) } };
}

/* The floats of column `column` of a line, and prefetches those of the tiles that follow. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_floats(const struct work *work, const __m512i x[VECTORS], int64_t line,
                                                      int64_t column, const int parts) {
    const struct tare_conv *conv = work->conv;
    const int64_t position = (line - work->line) * conv->out[2] + column;
    float *to =
        work->output->requantize->real.floats + work->output->element + position * conv->out_channels + work->channel;
    const int64_t step = COLUMNS * conv->out_channels;
    const struct quarters quarters = quarters_of(x);
    TARE_UNROLL
    for (int q = 0; q < 4; q++) {
        float *at = to + q * parts / 4 * step + q * QUARTER % (VECTOR / parts);
        _mm512_storeu_si512(at, quarters.of[q]);
        __builtin_prefetch(at + parts * step, 1);
    }
}

/* Float results of the sums of column `column` of a line. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_reals(struct work *work, const __m512i sums[VECTORS], int64_t line,
                                                     int64_t column, const int parts) {
    const struct reals *reals = &work->reals;
    const struct tare_real_stage *real = &work->output->requantize->real;
    __m512i bits[VECTORS];
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const __m512i total = _mm512_add_epi32(sums[v], reals->offset[v]);
        __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(total), reals->scale[v]);
        if (reals->has_bias) x = _mm512_add_ps(x, reals->bias[v]);
        x = _mm512_min_ps(reals->high, _mm512_max_ps(reals->low, x));
        bits[v] = _mm512_castps_si512(x);
    }
    if (real->floats) store_floats(work, bits, line, column, parts);
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        work->seen.low = _mm512_min_epi32(work->seen.low, bits[v]);
        work->seen.high = _mm512_max_epi32(work->seen.high, bits[v]);
        if (reals->has_sign) work->seen.negative = _mm512_max_epu32(work->seen.negative, bits[v]);
    }
}

#define STORE_REALS(parts)                                                                                             \
    static TARE_TARGET_VNNI void store_reals_##parts(struct work *work, __m512i v0, __m512i v1, __m512i v2,            \
                                                     __m512i v3, int64_t line, int64_t column) {                       \
        const __m512i sums[] = { v0, v1, v2, v3 };                                                                     \
        store_reals(work, sums, line, column, parts);                                                                  \
    }
STORE_REALS(1)
STORE_REALS(2)
STORE_REALS(4)
#undef STORE_REALS

/* Any other result of the sums of column `column` of a line. */
static TARE_TARGET_VNNI void store_others(struct work *work, __m512i v0, __m512i v1, __m512i v2, __m512i v3,
                                          int64_t line, int64_t column, int parts) {
    const struct tare_conv *conv = work->conv;
    const struct tare_igemm_output *output = work->output;
    const __m512i sums[] = { v0, v1, v2, v3 };
    const struct quarters quarters = quarters_of(sums);
    for (int q = 0; q < 4; q++) {
        const int64_t at = column + q * parts / 4 * COLUMNS, channel = q * QUARTER % (VECTOR / parts);
        if (at >= conv->out[2]) break;
        const int64_t element =
            ((line - work->line) * conv->out[2] + at) * conv->out_channels + work->channel + channel;
        if (output->requantize)
            tare_requantize_avx512(output->requantize, quarters.of[q], output->element + element,
                                   output->column + work->channel + channel, work->mask, &work->seen);
        else
            _mm512_mask_storeu_epi32(output->sums + element, work->mask, quarters.of[q]);
    }
}

/* The lanes of the tiles whose column `column` is inside. */
TARE_ALWAYS_INLINE __mmask16 lanes_inside(const struct work *work, int64_t column, const int parts) {
    const int64_t left = (work->conv->out[2] - column + COLUMNS - 1) / COLUMNS;
    return left >= parts ? 0xffff : left <= 0 ? 0 : (__mmask16)((1 << left * (VECTOR / 4) / parts) - 1);
}

/* Adds the sums of a column of the tiles to the extremes. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void collect_column(struct quotients *quotients, const __m512i sums[VECTORS],
                                                        __mmask16 mask) {
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        struct tare_sum_range_avx512 *seen = &quotients->extremes[v];
        seen->low = _mm512_mask_min_epi32(seen->low, mask, seen->low, sums[v]);
        seen->high = _mm512_mask_max_epi32(seen->high, mask, seen->high, sums[v]);
    }
}

/* Adds the sums of tiles that are inside. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void collect_tile(struct quotients *quotients,
                                                      const __m512i sums[LINES][COLUMNS][VECTORS], const int lines) {
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        struct tare_sum_range_avx512 seen = { sums[0][0][v], sums[0][0][v] };
        TARE_UNROLL
        for (int i = 1; i < lines * COLUMNS; i++)
            tare_sum_range_add(&seen, sums[i / COLUMNS][i % COLUMNS][v]);
        quotients->extremes[v].low = _mm512_min_epi32(quotients->extremes[v].low, seen.low);
        quotients->extremes[v].high = _mm512_max_epi32(quotients->extremes[v].high, seen.high);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_quotients(const struct work *work, const __m512i sums[VECTORS],
                                                         int64_t line, int64_t column, const int parts) {
    const struct quotients *q = &work->quotients;
    __m512i x[VECTORS];
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++)
        x[v] = tare_sum_quotients_avx512(&q->quotient, q->scale[v], q->bias[v], sums[v]);
    store_bytes(work, tare_pack_quotients_avx512(&q->quotient, x), line, column, parts, true);
}

#define TAKE_SUMS(parts, lines)                                                                                        \
    static TARE_TARGET_VNNI __attribute__((noinline)) void take_sums_##parts##_##lines(                                \
        struct work *work, __m512i sums[LINES][COLUMNS][VECTORS], int64_t line, int64_t column) {                      \
        const bool has_range = work->output->requantize->real.sums;                                                    \
        const bool is_inside = column + COLUMNS * (parts) <= work->conv->out[2];                                       \
        if (has_range && is_inside) collect_tile(&work->quotients, sums, lines);                                       \
        TARE_UNROLL                                                                                                    \
        for (int i = 0; i < (lines)*COLUMNS; i++) {                                                                    \
            const __m512i *of_column = sums[i / COLUMNS][i % COLUMNS];                                                 \
            const int64_t at = column + i % COLUMNS;                                                                   \
            if (has_range && !is_inside) collect_column(&work->quotients, of_column, lanes_inside(work, at, parts));   \
            if (work->quotients.is_stored) store_quotients(work, of_column, line + i / COLUMNS, at, parts);            \
        }                                                                                                              \
    }
TAKE_SUMS(1, 1)
TAKE_SUMS(1, 2)
TAKE_SUMS(2, 1)
TAKE_SUMS(2, 2)
TAKE_SUMS(4, 1)
TAKE_SUMS(4, 2)
#undef TAKE_SUMS

/* The sums of tiles, from memory. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void take_sums(struct work *work, __m512i sums[LINES][COLUMNS][VECTORS],
                                                   const struct tile *tile, const int lines, const int parts) {
    static void (*const functions[][2])(struct work *, __m512i[LINES][COLUMNS][VECTORS], int64_t, int64_t) = {
        { take_sums_1_1, take_sums_1_2 }, { take_sums_2_1, take_sums_2_2 }, { take_sums_4_1, take_sums_4_2 }
    };
    __m512i stored[LINES][COLUMNS][VECTORS];
    TARE_UNROLL
    for (int i = 0; i < lines * COLUMNS * VECTORS; i++)
        stored[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS] =
            sums[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS];
    functions[parts / 2][lines - 1](work, stored, tile->line, tile->column);
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void run_tile(struct work *work, const struct tile *tile, const int lines,
                                                  const int stride, const int parts, const bool inside,
                                                  const bool whole) {
    __m512i sums[LINES][COLUMNS][VECTORS];
    TARE_UNROLL
    for (int i = 0; i < lines * COLUMNS * VECTORS; i++)
        sums[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS] = work->bytes.start[i % VECTORS];
    TARE_UNROLL
    for (int h = 0; h < SIZE + (lines - 1) * stride; h++)
        add_line(sums, work, tile, h, lines, stride, parts, inside, whole);
    if (whole && work->quotients.is_possible) {
        take_sums(work, sums, tile, lines, parts);
        return;
    }
    TARE_UNROLL
    for (int i = 0; i < lines * COLUMNS; i++) {
        const __m512i *of_column = sums[i / COLUMNS][i % COLUMNS];
        const int64_t line = tile->line + i / COLUMNS, column = tile->column + i % COLUMNS;
        if (work->bytes.is_possible)
            store_bytes(work, requantize(&work->bytes, of_column), line, column, parts, whole);
        else if (work->reals.is_possible && whole && column + (parts - 1) * COLUMNS < work->conv->out[2])
            (parts == 1   ? store_reals_1
             : parts == 2 ? store_reals_2
                          : store_reals_4)(work, of_column[0], of_column[1], of_column[2], of_column[3], line, column);
        else
            store_others(work, of_column[0], of_column[1], of_column[2], of_column[3], line, column, parts);
    }
}

/* Output lines [line, line + lines) of a block. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void run_lines(struct work *work, int64_t line, const int lines, const int stride,
                                                   const int parts, const bool whole) {
    const struct tare_conv *conv = work->conv;
    const int64_t width = COLUMNS * parts, top = line * stride - conv->pad[1];
    const int64_t reach = (width - 1) * stride + SIZE, height = (lines - 1) * stride + SIZE;
    struct tile tile = { .line = line,
                         .x = work->x + (top * conv->in[2] - conv->pad[2]) * conv->in_channels,
                         .x_line = conv->in[2] * conv->in_channels,
                         .first = -top,
                         .end = conv->in[1] - top,
                         .low = conv->pad[2],
                         .high = conv->in[2] + conv->pad[2] };
    const bool has_lines = tile.first <= 0 && tile.end >= height;
    for (; tile.column < conv->out[2]; tile.column += width) {
        if (whole && has_lines && tile.low <= 0 && tile.high >= reach && lines == LINES)
            run_tile(work, &tile, lines, stride, parts, true, whole);
        else
            run_tile(work, &tile, lines, stride, parts, false, whole);
        tile.x += width * stride * conv->in_channels;
        tile.low -= width * stride, tile.high -= width * stride;
    }
}

/* `count` output lines of a block. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void run_block(struct work *work, int64_t count, const int stride, const int parts,
                                                   const bool whole) {
    int64_t line = 0;
    for (; line + LINES <= count; line += LINES)
        run_lines(work, work->line + line, LINES, stride, parts, whole);
    if (line < count) run_lines(work, work->line + line, 1, stride, parts, whole);
}

#define BLOCK(stride, parts, name, whole)                                                                              \
    static TARE_TARGET_VNNI void block_##stride##_##name(struct work *work, int64_t count) {                           \
        run_block(work, count, stride, parts, whole);                                                                  \
    }
BLOCK(1, 1, 64, true)
BLOCK(1, 2, 32, true)
BLOCK(1, 4, 16, true)
BLOCK(1, 4, rest, false)
BLOCK(2, 1, 64, true)
BLOCK(2, 2, 32, true)
BLOCK(2, 4, 16, true)
BLOCK(2, 4, rest, false)
#undef BLOCK

/* ---- requantization of a block ---- */

/* Lanes of a vector by channel, in the order of the sums. */
static TARE_TARGET_VNNI __m512i ordered(const void *lanes, int vector, int64_t channels) {
    int32_t x[VECTOR / 4];
    for (int q = 0; q < 4; q++)
        memcpy(x + 4 * q, (const int32_t *)lanes + q * QUARTER % (VECTOR / block_parts(channels)) + 4 * vector, 16);
    return _mm512_loadu_si512(x);
}

static bool is_byte_bound(float x) {
    return x >= -128 && x <= 255 && x == (float)(int)x;
}

/* True if the bounds are those of a signed byte or of an unsigned one. */
static TARE_TARGET_VNNI bool has_bounds(struct bytes *bytes, const struct tare_quantize_stage *stage) {
    bytes->is_signed = stage->high <= 127;
    if (!is_byte_bound(stage->low) || !is_byte_bound(stage->high) || (!bytes->is_signed && stage->low < 0))
        return false;
    bytes->low = _mm512_set1_epi8((char)(int)stage->low);
    bytes->high = _mm512_set1_epi8((char)(int)stage->high);
    bytes->add = _mm512_set1_ps(stage->add);
    return stage->add > -0x1p29f && stage->add < 0x1p29f;
}

static TARE_TARGET_VNNI void prepare_reals(struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    struct reals *reals = &work->reals;
    const int64_t column = work->output->column + work->channel;
    reals->is_possible = r && r->is_real && !r->real.addend && !r->real.is_quantized && channels >= QUARTER &&
                         !work->quotients.is_possible;
    if (!reals->is_possible) return;
    reals->has_bias = r->real.bias;
    reals->has_sign = !(r->real.low >= 0);
    reals->low = _mm512_set1_ps(r->real.low), reals->high = _mm512_set1_ps(r->real.high);
    for (int v = 0; v < VECTORS; v++) {
        reals->offset[v] = ordered(r->offset + column, v, channels);
        reals->scale[v] = _mm512_castsi512_ps(ordered(r->scale + column, v, channels));
        if (r->real.bias) reals->bias[v] = _mm512_castsi512_ps(ordered(r->real.bias + column, v, channels));
    }
}

/* Sets the quantization and adds the offsets to the starts of the sums. */
static TARE_TARGET_VNNI void prepare_quotients(struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    struct quotients *q = &work->quotients;
    const int64_t column = work->output->column + work->channel;
    q->is_possible = tare_requantize_takes_sums(r) && channels >= QUARTER;
    if (!q->is_possible) return;
    q->quotient = tare_load_quotient_avx512(r);
    q->is_stored = r->real.is_quantized;
    for (int v = 0; v < VECTORS; v++) {
        work->bytes.start[v] = _mm512_add_epi32(work->bytes.start[v], ordered(r->offset + column, v, channels));
        q->scale[v] = _mm512_castsi512_ps(ordered(r->scale + column, v, channels));
        if (r->real.bias) q->bias[v] = _mm512_castsi512_ps(ordered(r->real.bias + column, v, channels));
        q->extremes[v].low = _mm512_set1_epi32(INT32_MAX);
        q->extremes[v].high = _mm512_set1_epi32(INT32_MIN);
    }
}

/* Adds the extremes of the block, without the offsets, to those of its columns. If a sum with its offset has wrapped,
 * one of the extremes has, which tare_sum_range_end finds. */
static TARE_TARGET_VNNI void store_extremes(const struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    const struct tare_sum_range_avx512 *of = work->quotients.extremes;
    const int64_t first = work->output->column + work->channel, width = VECTOR / block_parts(channels);
    const __m512i lows[] = { of[0].low, of[1].low, of[2].low, of[3].low };
    const __m512i highs[] = { of[0].high, of[1].high, of[2].high, of[3].high };
    const struct quarters low = quarters_of(lows), high = quarters_of(highs);
    for (int q = 0; q < 4; q++) {
        const int64_t column = first + q * QUARTER % width;
        const __m512i offset = _mm512_loadu_si512(r->offset + column);
        const __mmask16 any = _mm512_cmple_epi32_mask(low.of[q], high.of[q]);
        struct tare_sum_range_avx512 seen = tare_sum_range_load(r->real.sums, column, 0xffff);
        seen.low = _mm512_mask_min_epi32(seen.low, any, seen.low, _mm512_sub_epi32(low.of[q], offset));
        seen.high = _mm512_mask_max_epi32(seen.high, any, seen.high, _mm512_sub_epi32(high.of[q], offset));
        tare_sum_range_store(r->real.sums, column, 0xffff, &seen);
    }
}

static TARE_TARGET_VNNI void prepare(struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    struct bytes *bytes = &work->bytes;
    const __m512 most_sum = _mm512_set1_ps(SIZE * SIZE * 128 * 128), limit = _mm512_set1_ps(0x1p29f);
    bytes->is_possible = r && !r->is_real && !r->addend && has_bounds(bytes, &r->first);
    for (int v = 0; v < VECTORS; v++) {
        const __m512i start = _mm512_load_si512(work->packed + v * VECTOR);
        bytes->start[v] = start;
        if (!bytes->is_possible) continue;
        const int64_t column = work->output->column + work->channel;
        const __m512i offset = ordered(r->offset + column, v, channels);
        bytes->scale[v] = _mm512_castsi512_ps(ordered(r->scale + column, v, channels));
        bytes->start[v] = _mm512_add_epi32(start, offset);
        const __m512 most = _mm512_add_ps(_mm512_abs_ps(_mm512_cvtepi32_ps(offset)), most_sum);
        const __m512 result = _mm512_mul_ps(most, _mm512_abs_ps(bytes->scale[v]));
        bytes->is_possible = _mm512_cmp_ps_mask(result, limit, _CMP_LT_OQ) == 0xffff;
    }
    for (int v = 0; v < VECTORS && !bytes->is_possible; v++)
        bytes->start[v] = _mm512_load_si512(work->packed + v * VECTOR);
}

/* ---- the form ---- */

/* The sums of the lines fit in the second-level cache, if they are stored. */
static int64_t lines(const struct tare_conv *conv) {
    const int64_t most = (1 << 16) / (conv->out[2] * conv->out_channels);
    const int64_t parts = most > 0 ? (conv->out[1] + most - 1) / most : conv->out[1];
    const int64_t even = parts > 0 ? (conv->out[1] + parts - 1) / parts : 1;
    return even < LINES ? LINES : (even + LINES - 1) / LINES * LINES;
}

static TARE_TARGET_VNNI void run(const struct tare_igemm_output *output, const struct tare_conv *conv,
                                 const int8_t *image, int64_t line, int64_t count, const void *packed) {
    static void (*const blocks[][4])(struct work *, int64_t) = {
        { block_1_rest, block_1_16, block_1_32, block_1_64 },
        { block_2_rest, block_2_16, block_2_32, block_2_64 },
    };
    struct work work = { .output = output,
                         .conv = conv,
                         .packed = packed,
                         .line = line,
                         .seen = tare_requantize_range_avx512(output->requantize) };
    memset(work.padding, conv->pad_value, sizeof work.padding);
    for (int64_t channels; work.channel < conv->out_channels; work.channel += channels, work.packed += BLOCK_BYTES) {
        channels = block_channels(conv->out_channels - work.channel);
        work.x = image + work.channel;
        work.mask = channels < QUARTER ? (__mmask16)(0xffffu >> (QUARTER - channels)) : 0xffff;
        prepare(&work, channels);
        prepare_quotients(&work, channels);
        prepare_reals(&work, channels);
        blocks[conv->stride[2] - 1][channels == 64 ? 3 : channels == 32 ? 2 : channels == QUARTER](&work, count);
        if (work.quotients.is_possible && output->requantize->real.sums) store_extremes(&work, channels);
    }
    tare_requantize_store_range_avx512(output->requantize, &work.seen);
}

const struct tare_depthwise_form tare_depthwise_tiles_vnni = {
    .packed_bytes = packed_bytes, .pack = pack, .most_lines = lines, .run = run
};
#endif
