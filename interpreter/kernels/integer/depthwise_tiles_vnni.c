/* The VNNI variant of int8 depthwise convolutions of 3×3 kernels with stride 1 or 2 and at least 16 channels.
 *
 * vpdpbusd sums the products of four adjacent bytes. Here these are four adjacent columns of one channel: the columns
 * are interleaved by two unpacking steps. Such a lane contributes a line of the kernel to one output column, with the
 * weights w0 w1 w2 0, and with stride 1 to the next column as well, with 0 w0 w1 w2. A tile has 16 vectors of sums.
 *
 * vpdpbusd requires unsigned inputs: 128 is added to them, and the sums start at -128 times the sum of the channel's
 * weights. */
#include "interpreter/kernels/integer/depthwise_lines.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

#define TARGET TARE_TARGET_VNNI
typedef __m512i vec;
typedef __m512 vec_float;
typedef __mmask16 vec_mask;
enum { LANES = 16, VECTORS = 4, SIZE = 3, SHIFTS = 2, MOST_INPUTS = 5 };

#define FUNCTION(type, name, parameters, result)                                                                       \
    TARE_ALWAYS_INLINE TARGET type name parameters {                                                                   \
        return result;                                                                                                 \
    }
FUNCTION(vec, load_vec, (const void *from), _mm512_loadu_si512(from))
FUNCTION(vec, add_ints, (vec x, vec y), _mm512_add_epi32(x, y))
FUNCTION(vec, set_bytes, (int x), _mm512_set1_epi8((char)x))
FUNCTION(vec, max_bytes, (vec x, vec y), _mm512_max_epi8(x, y))
FUNCTION(vec, min_bytes, (vec x, vec y), _mm512_min_epi8(x, y))
FUNCTION(vec, max_unsigned, (vec x, vec y), _mm512_max_epu8(x, y))
FUNCTION(vec, min_unsigned, (vec x, vec y), _mm512_min_epu8(x, y))
FUNCTION(vec, packed_words, (vec x, vec y), _mm512_packs_epi32(x, y))
FUNCTION(vec, packed_bytes_of, (vec x, vec y), _mm512_packs_epi16(x, y))
FUNCTION(vec, packed_unsigned, (vec x, vec y), _mm512_packus_epi16(x, y))
FUNCTION(vec, rounded, (vec_float x), _mm512_cvtps_epi32(x))
FUNCTION(vec_float, to_floats, (vec x), _mm512_cvtepi32_ps(x))
FUNCTION(vec_float, as_floats, (vec x), _mm512_castsi512_ps(x))
FUNCTION(vec_float, set_floats, (float x), _mm512_set1_ps(x))
FUNCTION(vec_float, add_floats, (vec_float x, vec_float y), _mm512_add_ps(x, y))
FUNCTION(vec_float, mul_floats, (vec_float x, vec_float y), _mm512_mul_ps(x, y))
FUNCTION(vec_float, abs_floats, (vec_float x), _mm512_abs_ps(x))
FUNCTION(bool, are_below, (vec_float x, float limit),
         _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_LT_OQ) == 0xffff)
FUNCTION(vec_mask, mask_of, (int64_t channels), (vec_mask)(0xffffu >> (LANES - channels)))
#undef FUNCTION

/* Conversion of a block to floats, in the order of the sums; the requantization has no addend. */
struct reals {
    vec_float scale[VECTORS], bias[VECTORS];
    vec offset[VECTORS];
    vec_float low, high;
    bool is_possible, has_bias, has_sign;
};

struct results {
    struct reals reals;
    struct tare_range_avx512 seen; /* of float results */
};

#include "interpreter/kernels/integer/depthwise_blocks.h"

/* ---- packing: by kernel line, shift and vector ---- */

static int64_t block_bytes(const struct tare_conv *conv) {
    (void)conv;
    return (1 + SIZE * SHIFTS) * VECTORS * VECTOR_BYTES;
}

static void pack_lane(int8_t *block, const struct tare_conv *conv, const int8_t *filter, int64_t channel, int vector,
                      int lane) {
    int32_t sum = 0;
    for (int h = 0; h < SIZE; h++) {
        for (int w = 0; w < SIZE; w++) {
            const int8_t weight = filter[(h * SIZE + w) * conv->out_channels + channel];
            sum += weight;
            for (int shift = 0; shift < SHIFTS; shift++)
                block[((1 + h * SHIFTS + shift) * VECTORS + vector) * VECTOR_BYTES + lane * 4 + w + shift] = weight;
        }
    }
    ((int32_t *)(void *)block)[vector * LANES + lane] = -128 * sum;
}

/* ---- tiles ---- */

/* A tile, or the adjacent tiles that are computed together. */
struct tile {
    int64_t line, column; /* the first output position */
    const int8_t *x;      /* of its first tap; may be outside of the image */
    int64_t x_line;       /* bytes */
    int64_t first, end;   /* input lines that are inside, counted from x */
    int64_t low, high;    /* input columns that are inside, counted from x */
};

/* Input column `column` of the tile's line that begins at `line`; padding outside of the image. */
TARE_ALWAYS_INLINE const int8_t *input_at(const struct work *work, const struct tile *tile, const int8_t *line,
                                          int64_t column, const bool inside) {
    const int8_t *at = line + column * work->conv->in_channels;
    return inside || (column >= tile->low && column < tile->high) ? at : work->padding;
}

/* Inline assembly keeps the sums in registers, see gemm_int_avx512.c. Weights of two columns are loaded once. */
TARE_ALWAYS_INLINE TARGET vec add_products(vec sum, vec bytes, vec weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weights));
    return sum;
}
TARE_ALWAYS_INLINE TARGET vec add_stored_products(vec sum, vec bytes, const vec *weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "m"(*weights));
    return sum;
}

TARE_ALWAYS_INLINE TARGET __m128i load_quarter(const int8_t *from, vec_mask mask, const bool whole) {
    return whole ? _mm_loadu_si128((const __m128i *)(const void *)from) : _mm_maskz_loadu_epi8(mask, from);
}

/* Column `column` of a line of the tiles as unsigned numbers, one tile in each of `parts` parts of a vector. */
TARE_ALWAYS_INLINE TARGET vec load_inputs(const struct work *work, const struct tile *tile, const int8_t *line,
                                          int64_t column, const int step, const int parts, const bool inside,
                                          const bool whole) {
    const vec sign = _mm512_set1_epi8(-128);
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
    vec x = _mm512_castsi128_si512(load_quarter(first, work->mask, whole));
    x = _mm512_inserti32x4(x, load_quarter(second, work->mask, whole), 1);
    x = _mm512_inserti32x4(x, load_quarter(third, work->mask, whole), 2);
    x = _mm512_inserti32x4(x, load_quarter(fourth, work->mask, whole), 3);
    return _mm512_xor_si512(x, sign);
}

struct pair {
    vec low, high;
};
TARE_ALWAYS_INLINE TARGET struct pair pair_of(vec a, vec b) {
    return (struct pair){ _mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b) };
}

/* The lanes of four columns, of which `ab` and `cd` are pairs. */
TARE_ALWAYS_INLINE TARGET void join(vec lanes[VECTORS], struct pair ab, struct pair cd) {
    lanes[0] = _mm512_unpacklo_epi16(ab.low, cd.low);
    lanes[1] = _mm512_unpackhi_epi16(ab.low, cd.low);
    lanes[2] = _mm512_unpacklo_epi16(ab.high, cd.high);
    lanes[3] = _mm512_unpackhi_epi16(ab.high, cd.high);
}

/* The inputs of line `h` of the tile. */
TARE_ALWAYS_INLINE TARGET void load_line(vec x[MOST_INPUTS], const struct work *work, const struct tile *tile,
                                         const int h, const int stride, const int parts, const bool inside,
                                         const bool whole) {
    const bool has_line = inside || (h >= tile->first && h < tile->end);
    const vec padding = _mm512_xor_si512(_mm512_loadu_si512(work->padding), _mm512_set1_epi8(-128));
    TARE_UNROLL
    for (int j = 0; j < SIZE + stride; j++) {
        x[j] = padding;
        if (has_line)
            x[j] = load_inputs(work, tile, tile->x + h * tile->x_line, j, COLUMNS * stride, parts, inside, whole);
    }
}

/* What input line `h` of the tile contributes to its sums. */
TARE_ALWAYS_INLINE TARGET void add_line(vec sums[LINES][COLUMNS][VECTORS], const struct work *work,
                                        const struct tile *tile, const int h, const int lines, const int stride,
                                        const int parts, const bool inside, const bool whole) {
    vec lanes[COLUMNS][VECTORS], x[MOST_INPUTS];
    load_line(x, work, tile, h, stride, parts, inside, whole);
    const struct pair ab = pair_of(x[0], x[1]), cd = pair_of(x[2], x[3]);
    join(lanes[0], ab, cd);
    if (stride == 2) join(lanes[1], cd, pair_of(x[4], x[4])); /* the fourth column has weights of zero */
    TARE_UNROLL
    for (int l = 0; l < lines; l++) {
        const int tap = h - l * stride;
        if (tap < 0 || tap >= SIZE) continue;
        const vec *weights = (const vec *)(const void *)work->packed + (1 + tap * SHIFTS) * VECTORS;
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
TARE_ALWAYS_INLINE TARGET void store_bytes(const struct work *work, vec x, int64_t line, int64_t column,
                                           const int parts, const bool whole) {
    const struct tare_conv *conv = work->conv;
    const int64_t position = (line - work->line) * conv->out[2] + column, left = conv->out[2] - column;
    uint8_t *to = work->output->requantize->to + work->output->element + position * conv->out_channels + work->channel;
    const int64_t step = COLUMNS * conv->out_channels;
    const vec_mask mask = whole ? 0xffff : work->mask;
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

TARE_ALWAYS_INLINE TARGET struct units units_of(const vec v[VECTORS]) {
    const vec a = _mm512_shuffle_i32x4(v[0], v[1], 0x44), b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const vec c = _mm512_shuffle_i32x4(v[0], v[1], 0xee), d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    return (struct units){ { _mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd),
                             _mm512_shuffle_i32x4(c, d, 0x88), _mm512_shuffle_i32x4(c, d, 0xdd) } };
}

/* The floats of column `column` of a line, and prefetches those of the tiles that follow. */
TARE_ALWAYS_INLINE TARGET void store_floats(const struct work *work, const vec x[VECTORS], int64_t line, int64_t column,
                                            const int parts) {
    const struct tare_conv *conv = work->conv;
    const int64_t position = (line - work->line) * conv->out[2] + column;
    float *to =
        work->output->requantize->real.floats + work->output->element + position * conv->out_channels + work->channel;
    const int64_t step = COLUMNS * conv->out_channels;
    const struct units units = units_of(x);
    TARE_UNROLL
    for (int q = 0; q < 4; q++) {
        float *at = to + q * parts / 4 * step + q * LANES % (BLOCK / parts);
        _mm512_storeu_si512(at, units.of[q]);
        __builtin_prefetch(at + parts * step, 1);
    }
}

/* Float results of the sums of column `column` of a line. */
TARE_ALWAYS_INLINE TARGET void store_reals(struct work *work, const vec sums[VECTORS], int64_t line, int64_t column,
                                           const int parts) {
    const struct reals *reals = &work->results.reals;
    vec bits[VECTORS];
    TARE_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const vec total = _mm512_add_epi32(sums[v], reals->offset[v]);
        vec_float x = _mm512_mul_ps(_mm512_cvtepi32_ps(total), reals->scale[v]);
        if (reals->has_bias) x = _mm512_add_ps(x, reals->bias[v]);
        x = _mm512_min_ps(reals->high, _mm512_max_ps(reals->low, x));
        bits[v] = _mm512_castps_si512(x);
    }
    store_floats(work, bits, line, column, parts);
    struct tare_range_avx512 *seen = &work->results.seen; /* in memory: adding one by one would wait for each other */
    const vec low = _mm512_min_epi32(_mm512_min_epi32(bits[0], bits[1]), _mm512_min_epi32(bits[2], bits[3]));
    const vec high = _mm512_max_epi32(_mm512_max_epi32(bits[0], bits[1]), _mm512_max_epi32(bits[2], bits[3]));
    seen->low = _mm512_min_epi32(seen->low, low);
    seen->high = _mm512_max_epi32(seen->high, high);
    if (!reals->has_sign) return;
    const vec negative = _mm512_max_epu32(_mm512_max_epu32(bits[0], bits[1]), _mm512_max_epu32(bits[2], bits[3]));
    seen->negative = _mm512_max_epu32(seen->negative, negative);
}

#define STORE_REALS(parts)                                                                                             \
    static TARGET void store_reals_##parts(struct work *work, vec v0, vec v1, vec v2, vec v3, int64_t line,            \
                                           int64_t column) {                                                           \
        const vec sums[] = { v0, v1, v2, v3 };                                                                         \
        store_reals(work, sums, line, column, parts);                                                                  \
    }
STORE_REALS(1)
STORE_REALS(2)
STORE_REALS(4)
#undef STORE_REALS

TARE_ALWAYS_INLINE TARGET void store_unit(struct work *work, vec sums, int64_t element, int64_t column) {
    const struct tare_igemm_output *output = work->output;
    if (output->requantize)
        tare_requantize_avx512(output->requantize, sums, output->element + element, column, work->mask,
                               &work->results.seen);
    else
        _mm512_mask_storeu_epi32(output->sums + element, work->mask, sums);
}

static TARGET void store_others(struct work *work, vec v0, vec v1, vec v2, vec v3, int64_t line, int64_t column,
                                int parts) {
    const vec sums[] = { v0, v1, v2, v3 };
    store_any(work, sums, line, column, parts);
}

TARE_ALWAYS_INLINE TARGET void finish(struct work *work, vec sums[LINES][COLUMNS][VECTORS], const struct tile *tile,
                                      const int lines, const int parts, const bool whole) {
    TARE_UNROLL
    for (int i = 0; i < lines * COLUMNS; i++) {
        const vec *s = sums[i / COLUMNS][i % COLUMNS];
        const int64_t line = tile->line + i / COLUMNS, column = tile->column + i % COLUMNS;
        if (work->bytes.is_possible)
            store_bytes(work, requantize(&work->bytes, s[0], s[1], s[2], s[3]), line, column, parts, whole);
        else if (work->results.reals.is_possible && whole && column + (parts - 1) * COLUMNS < work->conv->out[2])
            (parts == 1   ? store_reals_1
             : parts == 2 ? store_reals_2
                          : store_reals_4)(work, s[0], s[1], s[2], s[3], line, column);
        else
            store_others(work, s[0], s[1], s[2], s[3], line, column, parts);
    }
}

TARE_ALWAYS_INLINE TARGET void run_tile(struct work *work, const struct tile *tile, const int lines, const int stride,
                                        const int parts, const bool inside, const bool whole) {
    vec sums[LINES][COLUMNS][VECTORS];
    TARE_UNROLL
    for (int i = 0; i < lines * COLUMNS * VECTORS; i++)
        sums[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS] = work->start[i % VECTORS];
    TARE_UNROLL
    for (int h = 0; h < SIZE + (lines - 1) * stride; h++)
        add_line(sums, work, tile, h, lines, stride, parts, inside, whole);
    finish(work, sums, tile, lines, parts, whole);
}

/* Output lines [line, line + lines) of a block. */
TARE_ALWAYS_INLINE TARGET void run_lines(struct work *work, int64_t line, const int lines, const int stride,
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
TARE_ALWAYS_INLINE TARGET void run_block(struct work *work, int64_t count, const int stride, const int parts,
                                         const bool whole) {
    int64_t line = 0;
    for (; line + LINES <= count; line += LINES)
        run_lines(work, work->line + line, LINES, stride, parts, whole);
    if (line < count) run_lines(work, work->line + line, 1, stride, parts, whole);
}

#define BLOCK_KERNEL(stride, parts, name, whole)                                                                       \
    static TARGET void block_##stride##_##name(struct work *work, int64_t count) {                                     \
        run_block(work, count, stride, parts, whole);                                                                  \
    }

/* ---- results of a block ---- */

static TARGET void open_results(struct work *work) {
    work->results.seen = tare_requantize_range_avx512(work->output->requantize);
}
static TARGET void complete_results(const struct work *work) {
    tare_requantize_store_range_avx512(work->output->requantize, &work->results.seen);
}

static TARGET void prepare_results(struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    struct reals *reals = &work->results.reals;
    const int64_t column = work->output->column + work->channel;
    reals->is_possible = r && r->is_real && !r->real.addend && channels >= LANES;
    if (!reals->is_possible) return;
    reals->has_bias = r->real.bias;
    reals->has_sign = !(r->real.low >= 0);
    reals->low = _mm512_set1_ps(r->real.low), reals->high = _mm512_set1_ps(r->real.high);
    const struct units offset = ordered(r->offset + column, channels), scale = ordered(r->scale + column, channels);
    const struct units bias = r->real.bias ? ordered(r->real.bias + column, channels) : scale;
    for (int v = 0; v < VECTORS; v++) {
        reals->offset[v] = offset.of[v];
        reals->scale[v] = as_floats(scale.of[v]), reals->bias[v] = as_floats(bias.of[v]);
    }
}

/* ---- the form ---- */

#define BLOCK_KERNELS(stride)                                                                                          \
    BLOCK_KERNEL(stride, 1, 64, true)                                                                                  \
    BLOCK_KERNEL(stride, 2, 32, true)                                                                                  \
    BLOCK_KERNEL(stride, 4, 16, true)                                                                                  \
    BLOCK_KERNEL(stride, 4, rest, false)
BLOCK_KERNELS(1)
BLOCK_KERNELS(2)

static void (*kernel_of(const struct tare_conv *conv, int64_t channels))(struct work *work, int64_t count) {
    static void (*const kernels[][4])(struct work *, int64_t) = {
        { block_1_rest, block_1_16, block_1_32, block_1_64 },
        { block_2_rest, block_2_16, block_2_32, block_2_64 },
    };
    return kernels[conv->stride[2] - 1][channels == BLOCK ? 3 : channels / LANES];
}

/* The sums of the lines fit in the second-level cache, if they are stored. */
static int64_t lines(const struct tare_conv *conv) {
    return even_lines(conv, (1 << 16) / (conv->out[2] * conv->out_channels));
}

const struct tare_depthwise_form tare_depthwise_tiles_int8_vnni = {
    .packed_bytes = packed_bytes, .pack = pack, .most_lines = lines, .run = run
};
#endif
