/* The AVX2 variant of int8 depthwise convolutions of 3×3 and 5×5 kernels with stride 1 or 2 and at least 8 channels.
 *
 * vpmaddwd sums the products of two adjacent 16-bit integers, which is exact for widened bytes. Most of these pairs are
 * two adjacent lines of a column: such a lane contributes two taps of a column of the kernel to up to two output
 * columns and two output lines, whose kernels have these lines in common. The line that is left (stride 1: the first
 * line of the upper output line, the last one of the lower) is paired by columns, from an even column on. Such a lane
 * contributes two taps of the line to an output column, with stride 1 shifted by one for the odd column; taps outside
 * of the kernel have weights of zero. So 3×3 taps take 5 products of pairs, 5×5 taps 13.
 *
 * The input lines of a block of channels are widened once, with the padding around them, to lines of 16 lanes a column
 * in scratch memory. If the block has at most 8 channels, a column is widened together with the one half a line further
 * on, and the tiles of both halves are computed at once. */
#include "interpreter/kernels/integer/depthwise_lines.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

#define TARGET TARE_TARGET_AVX2
typedef __m256i vec;
typedef __m256 vec_float;
typedef int vec_mask; /* number of channels */
enum { LANES = 8, VECTORS = 2 };

#define FUNCTION(type, name, parameters, result)                                                                       \
    TARE_ALWAYS_INLINE TARGET type name parameters {                                                                   \
        return result;                                                                                                 \
    }
FUNCTION(vec, load_vec, (const void *from), _mm256_loadu_si256((const __m256i *)from))
FUNCTION(vec, add_ints, (vec x, vec y), _mm256_add_epi32(x, y))
FUNCTION(vec, set_bytes, (int x), _mm256_set1_epi8((char)x))
FUNCTION(vec, max_bytes, (vec x, vec y), _mm256_max_epi8(x, y))
FUNCTION(vec, min_bytes, (vec x, vec y), _mm256_min_epi8(x, y))
FUNCTION(vec, max_unsigned, (vec x, vec y), _mm256_max_epu8(x, y))
FUNCTION(vec, min_unsigned, (vec x, vec y), _mm256_min_epu8(x, y))
FUNCTION(vec, packed_words, (vec x, vec y), _mm256_packs_epi32(x, y))
FUNCTION(vec, packed_bytes_of, (vec x, vec y), _mm256_packs_epi16(x, y))
FUNCTION(vec, packed_unsigned, (vec x, vec y), _mm256_packus_epi16(x, y))
FUNCTION(vec, rounded, (vec_float x), _mm256_cvtps_epi32(x))
FUNCTION(vec_float, to_floats, (vec x), _mm256_cvtepi32_ps(x))
FUNCTION(vec_float, as_floats, (vec x), _mm256_castsi256_ps(x))
FUNCTION(vec_float, set_floats, (float x), _mm256_set1_ps(x))
FUNCTION(vec_float, add_floats, (vec_float x, vec_float y), _mm256_add_ps(x, y))
FUNCTION(vec_float, mul_floats, (vec_float x, vec_float y), _mm256_mul_ps(x, y))
FUNCTION(vec_float, abs_floats, (vec_float x), _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x))
FUNCTION(bool, are_below, (vec_float x, float limit),
         _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(limit), _CMP_LT_OQ)) == 0xff)
FUNCTION(vec_mask, mask_of, (int64_t channels), (int)channels)
#undef FUNCTION

/* Conversion of a block of whole units to floats that are stored, by unit; the requantization has no addend. */
struct reals {
    vec offset[VECTORS];
    vec_float scale[VECTORS], bias[VECTORS], low, high;
    bool is_possible, has_bias;
};

struct results {
    struct reals reals;
    struct tare_range_avx2 seen; /* of float results */
    bool is_padded;              /* whole blocks need only widen what is inside */
};

#include "interpreter/kernels/integer/depthwise_blocks.h"

/* ---- packing: pairs of kernel lines by first line and column; single lines by line, shift and pair of columns ---- */

enum { SHIFTS = 2 };

TARE_ALWAYS_INLINE int pairs_of(int size) {
    return (size + 1) / 2;
}
/* Vectors of weights before those of the pair of kernel lines `h` and h + 1 at kernel column w. */
TARE_ALWAYS_INLINE int pair_at(int size, int h, int w) {
    return (1 + h * size + w) * VECTORS;
}
/* Vectors before those of kernel line h at columns 2 * pair - shift and 2 * pair + 1 - shift. */
TARE_ALWAYS_INLINE int single_at(int size, int h, int shift, int pair) {
    return pair_at(size, size - 1, 0) + ((h * SHIFTS + shift) * pairs_of(size) + pair) * VECTORS;
}

static int64_t block_bytes(const struct tare_conv *conv) {
    const int size = (int)conv->kernel[2];
    return (int64_t)single_at(size, size, 0, 0) * VECTOR_BYTES;
}

static void pack_lane(int8_t *block, const struct tare_conv *conv, const int8_t *filter, int64_t channel, int vector,
                      int lane) {
    const int size = (int)conv->kernel[2];
    int16_t *lanes = (int16_t *)(void *)block + vector * 2 * LANES + lane * 2;
    for (int h = 0; h < size; h++) {
        for (int w = 0; w < size; w++) {
            const int16_t weight = filter[(h * size + w) * conv->out_channels + channel];
            if (h + 1 < size) lanes[pair_at(size, h, w) * 2 * LANES] = weight;
            if (h > 0) lanes[pair_at(size, h - 1, w) * 2 * LANES + 1] = weight;
            for (int shift = 0; shift < SHIFTS; shift++)
                lanes[single_at(size, h, shift, (w + shift) / 2) * 2 * LANES + (w + shift) % 2] = weight;
        }
    }
}

/* ---- widened input ---- */

/* Output columns of a tile's part, of several parts a multiple of COLUMNS; widened columns of a line. */
static int64_t part_columns(const struct tare_conv *conv, int parts) {
    if (parts == 1) return conv->out[2];
    return (conv->out[2] + COLUMNS * parts - 1) / (COLUMNS * parts) * COLUMNS;
}
static int64_t widened_columns(const struct tare_conv *conv, int parts) {
    return (part_columns(conv, parts) - 1) * conv->stride[2] + conv->kernel[2];
}
/* Input lines of `count` output lines. */
static int64_t widened_lines(const struct tare_conv *conv, int64_t count) {
    return (count - 1) * conv->stride[1] + conv->kernel[1];
}

TARE_ALWAYS_INLINE int64_t within(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x < high ? x : high;
}

/* 8 bytes of a unit; those beyond its channels have any value. */
static TARGET __m128i load_unit(const struct work *work, const int8_t *from) {
    int64_t eight = 0;
    memcpy(&eight, from, (size_t)within(work->end - from, 0, LANES));
    return _mm_cvtsi64_si128(eight);
}

/* A column of an input line of a unit; padding outside of it. */
static TARGET __m128i load_column(const struct work *work, const int8_t *line, int64_t column) {
    if (column < 0 || column >= work->conv->in[2]) return _mm_set1_epi8(work->padding[0]);
    return load_unit(work, line + column * work->conv->in_channels);
}

/* Columns [i, end) of a line of a unit, each with the one `columns` columns further on. */
static TARGET void widen_units(vec *to, const struct work *work, const int8_t *line, int64_t i, int64_t end,
                               int64_t columns) {
    for (; i < end; i++) {
        const int64_t column = i - work->conv->pad[2];
        const __m128i first = load_column(work, line, column), second = load_column(work, line, column + columns);
        _mm256_store_si256(to + i, _mm256_cvtepi8_epi16(_mm_unpacklo_epi64(first, second)));
    }
}

/* A line of a unit and the columns half a line further on. */
static TARGET void widen_halves(vec *to, const struct work *work, const int8_t *line, int64_t columns) {
    const struct tare_conv *conv = work->conv;
    const int64_t step = conv->in_channels, next = work->part_columns * conv->stride[2];
    const int64_t left = within(conv->pad[2], 0, columns); /* the columns from here on are inside */
    int64_t i = left, end = within(conv->pad[2] + conv->in[2] - next, left, columns);
    if (work->mask < LANES && end > left) end--; /* 8 bytes may be too many for the last column */
    widen_units(to, work, line, 0, left, next);
    const int8_t *from = line + (i - conv->pad[2]) * step, *second = from + next * step;
    for (; i < end; i++, from += step, second += step) {
        const __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)from);
        const __m128 both = _mm_loadh_pi(_mm_castsi128_ps(first), (const __m64 *)(const void *)second);
        _mm256_store_si256(to + i, _mm256_cvtepi8_epi16(_mm_castps_si128(both)));
    }
    widen_units(to, work, line, end, columns, next);
}

TARE_ALWAYS_INLINE TARGET vec widened(const int8_t *from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The columns of a line that are inside. */
static TARGET void widen_line(vec *to, const struct work *work, const int8_t *line, int64_t columns) {
    const struct tare_conv *conv = work->conv;
    const int64_t step = conv->in_channels, first = within(conv->pad[2], 0, columns);
    const int64_t end = within(conv->pad[2] + conv->in[2], 0, columns);
    const int8_t *from = line + (first - conv->pad[2]) * step;
    int64_t i = first;
    for (; i + 4 <= end; i += 4, from += 4 * step) {
        _mm256_store_si256(to + i, widened(from));
        _mm256_store_si256(to + i + 1, widened(from + step));
        _mm256_store_si256(to + i + 2, widened(from + 2 * step));
        _mm256_store_si256(to + i + 3, widened(from + 3 * step));
    }
    for (; i < end; i++, from += step)
        _mm256_store_si256(to + i, widened(from));
}

static TARGET void fill(vec *to, int64_t i, int64_t end, vec padding) {
    for (; i < end; i++)
        _mm256_store_si256(to + i, padding);
}

/* The lines and columns around the input, the same for all whole blocks. */
static TARGET void pad_lines(const struct work *work, int64_t count, int64_t columns) {
    const struct tare_conv *conv = work->conv;
    const int64_t left = within(conv->pad[2], 0, columns), end = within(conv->pad[2] + conv->in[2], 0, columns);
    const vec padding = _mm256_set1_epi16(conv->pad_value);
    vec *to = work->scratch;
    for (int64_t i = 0; i < widened_lines(conv, count); i++, to += columns) {
        const int64_t h = work->line * conv->stride[1] - conv->pad[1] + i;
        const bool is_inside = h >= 0 && h < conv->in[1];
        fill(to, 0, is_inside ? left : columns, padding);
        fill(to, is_inside ? end : columns, columns, padding);
    }
}

/* Widens the input of `count` output lines. */
static TARGET void widen(struct work *work, int64_t count, int parts) {
    const struct tare_conv *conv = work->conv;
    const int64_t columns = widened_columns(conv, parts), line = conv->in[2] * conv->in_channels;
    vec *to = work->scratch;
    if (parts == 1 && !work->results.is_padded) pad_lines(work, count, columns);
    work->results.is_padded = parts == 1;
    for (int64_t i = 0; i < widened_lines(conv, count); i++, to += columns) {
        const int64_t h = work->line * conv->stride[1] - conv->pad[1] + i;
        const bool is_inside = h >= 0 && h < conv->in[1];
        if (is_inside && parts == 1)
            widen_line(to, work, work->x + h * line, columns);
        else if (is_inside)
            widen_halves(to, work, work->x + h * line, columns);
        else if (parts > 1)
            fill(to, 0, columns, _mm256_set1_epi16(conv->pad_value));
    }
}

/* ---- tiles ---- */

/* Inline assembly keeps the sums in registers, see gemm_int_avx512.c. */
TARE_ALWAYS_INLINE TARGET vec add_products(vec sum, vec lanes, const vec *weights) {
    vec products;
    __asm__("vpmaddwd %2, %1, %0" : "=x"(products) : "x"(lanes), "m"(*weights));
    __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products));
    return sum;
}

/* What the compiler knows of a tile: its output lines and columns, the kernel. */
struct shape {
    int lines, columns, size, stride;
};

/* Adds a pair of input lines, whose first columns are `x` and `next`. `line`: the number of the first one in the tile.
 */
TARE_ALWAYS_INLINE TARGET void add_pair(vec sums[LINES][COLUMNS][VECTORS], const vec *weights, const vec *x,
                                        const vec *next, const int line, const struct shape shape) {
    TARE_UNROLL
    for (int j = 0; j < shape.size + (shape.columns - 1) * shape.stride; j++) {
        const vec first = x[j], second = next[j];
        const vec lanes[VECTORS] = { _mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second) };
        TARE_UNROLL
        for (int i = 0; i < shape.lines * COLUMNS * VECTORS; i++) {
            const int l = i / (COLUMNS * VECTORS), column = i / VECTORS % COLUMNS, v = i % VECTORS;
            const int h = line - l * shape.stride, w = j - column * shape.stride;
            if (h < 0 || h + 1 >= shape.size || w < 0 || w >= shape.size || column >= shape.columns) continue;
            sums[l][column][v] = add_products(sums[l][column][v], lanes[v], weights + pair_at(shape.size, h, w) + v);
        }
    }
}

/* Adds one input line. */
TARE_ALWAYS_INLINE TARGET void add_single(vec sums[LINES][COLUMNS][VECTORS], const vec *weights, const vec *x,
                                          const int line, const struct shape shape) {
    const int columns = shape.size + (shape.columns - 1) * shape.stride, pairs = pairs_of(shape.size);
    TARE_UNROLL
    for (int p = 0; 2 * p < columns; p++) {
        const vec first = x[2 * p], second = 2 * p + 1 < columns ? x[2 * p + 1] : first;
        const vec lanes[VECTORS] = { _mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second) };
        TARE_UNROLL
        for (int i = 0; i < shape.lines * COLUMNS * VECTORS; i++) {
            const int l = i / (COLUMNS * VECTORS), column = i / VECTORS % COLUMNS, v = i % VECTORS;
            const int h = line - l * shape.stride, shift = column * shape.stride % SHIFTS;
            const int pair = p - column * shape.stride / 2;
            if (h < 0 || h >= shape.size || pair < 0 || pair >= pairs || column >= shape.columns) continue;
            const vec *at = weights + single_at(shape.size, h, shift, pair) + v;
            sums[l][column][v] = add_products(sums[l][column][v], lanes[v], at);
        }
    }
}

/* A pointer whose sums with constants the compiler does not keep in registers, of which there are too few. */
TARE_ALWAYS_INLINE const vec *opaque(const vec *x) {
    __asm__("" : "+r"(x));
    return x;
}

/* True if input line `line` of a tile is not one of a pair. */
TARE_ALWAYS_INLINE bool is_single(const int line, const int size, const int stride) {
    return stride == 1 ? line == 0 || line == size : line == size - 1;
}

/* The sums of a tile, whose input begins at `x`. */
TARE_ALWAYS_INLINE TARGET void compute_sums(vec sums[LINES][COLUMNS][VECTORS], const struct work *work, const vec *x,
                                            int64_t x_line, const struct shape shape) {
    const vec *weights = opaque((const vec *)(const void *)work->packed);
    bool is_second = false;
    TARE_UNROLL
    for (int i = 0; i < shape.lines * COLUMNS * VECTORS; i++)
        sums[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS] = work->start[i % VECTORS];
    TARE_UNROLL
    for (int h = 0; h < shape.size + (shape.lines - 1) * shape.stride; h++, x = opaque(x + x_line)) {
        if (is_single(h, shape.size, shape.stride)) {
            add_single(sums, weights, x, h, shape);
        } else {
            if (!is_second) add_pair(sums, weights, x, opaque(x + x_line), h, shape);
            is_second = !is_second;
        }
    }
}

/* ---- results ---- */

static TARGET void open_results(struct work *work) {
    work->results.seen = tare_requantize_range_avx2(work->output->requantize);
    work->results.is_padded = false;
}
static TARGET void prepare_results(struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    struct reals *reals = &work->results.reals;
    reals->is_possible = r && r->is_real && r->real.range && !r->real.addend && channels >= LANES;
    if (!reals->is_possible) return;
    reals->has_bias = r->real.bias;
    reals->low = set_floats(r->real.low), reals->high = set_floats(r->real.high);
    for (int u = 0; u < VECTORS; u++) {
        const int64_t column = work->output->column + work->channel + first_channel(u, 0, channels);
        reals->offset[u] = load_vec(r->offset + column);
        reals->scale[u] = _mm256_loadu_ps(r->scale + column);
        reals->bias[u] = r->real.bias ? _mm256_loadu_ps(r->real.bias + column) : reals->scale[u];
    }
}
TARE_ALWAYS_INLINE TARGET struct units units_of(const vec sums[VECTORS]) {
    return (struct units){ { _mm256_permute2x128_si256(sums[0], sums[1], 0x20),
                             _mm256_permute2x128_si256(sums[0], sums[1], 0x31) } };
}

static TARGET void complete_results(const struct work *work) {
    tare_requantize_store_range_avx2(work->output->requantize, &work->results.seen);
}

/* Where a line of the tiles stores its bytes: copies, because a store of bytes may change the originals as far as the
 * compiler knows. */
struct place {
    uint8_t *to;          /* of the tile's first column */
    int64_t step, left;   /* bytes from column to column; columns from the tile's first on */
    int64_t part_columns; /* see struct work */
    size_t channels;      /* of a half block */
};

/* The bytes of both columns of a line of the tiles. */
TARE_ALWAYS_INLINE TARGET void store_bytes(const struct place *place, vec x, const int parts) {
    uint8_t *to = place->to;
    if (parts == 1) {
        const vec ordered = _mm256_permute4x64_epi64(x, 0xd8);
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(ordered));
        if (place->left > 1)
            _mm_storeu_si128((__m128i *)(void *)(to + place->step), _mm256_extracti128_si256(ordered, 1));
        return;
    }
    const int64_t eights[] = { _mm256_extract_epi64(x, 0), _mm256_extract_epi64(x, 1), _mm256_extract_epi64(x, 2),
                               _mm256_extract_epi64(x, 3) };
    TARE_UNROLL
    for (int i = 0; i < COLUMNS * VECTORS; i++) {
        const int64_t at = i % COLUMNS + i / COLUMNS * place->part_columns;
        if (at >= place->left) continue;
        if (place->channels == LANES)
            memcpy(to + at * place->step, &eights[i], LANES);
        else
            memcpy(to + at * place->step, &eights[i], place->channels);
    }
}

TARE_ALWAYS_INLINE TARGET void store_unit(struct work *work, vec sums, int64_t element, int64_t column) {
    const struct tare_igemm_output *output = work->output;
    if (output->requantize)
        tare_requantize_avx2(output->requantize, sums, output->element + element, column, work->mask,
                             &work->results.seen);
    else
        tare_store_ints_avx2(output->sums + element, sums, work->mask);
}

/* Stores the floats of a tile, unless a part of it is outside, and adds them to the range. */
TARE_ALWAYS_INLINE TARGET void store_reals(struct work *work, const vec sums[LINES][COLUMNS][VECTORS], int64_t line,
                                           int64_t column, const int lines, const int columns, const int parts) {
    const struct reals *reals = &work->results.reals;
    const int64_t step = work->conv->out_channels, y_line = work->conv->out[2] * step;
    float *to = work->output->requantize->real.floats + work->output->element + element_at(work, line, column);
    struct tare_range_avx2 seen = work->results.seen;
    TARE_UNROLL
    for (int i = 0; i < lines * columns * VECTORS; i++) {
        const int l = i / (columns * VECTORS), c = i / VECTORS % columns, u = i % VECTORS;
        const int64_t further = c + (parts == 1 ? 0 : u * work->part_columns);
        if (parts > 1 && column + further >= work->conv->out[2]) continue;
        vec_float x = mul_floats(to_floats(add_ints(units_of(sums[l][c]).of[u], reals->offset[u])), reals->scale[u]);
        if (reals->has_bias) x = add_floats(x, reals->bias[u]);
        x = _mm256_min_ps(reals->high, _mm256_max_ps(reals->low, x));
        _mm256_storeu_ps(to + l * y_line + further * step + (parts == 1 ? u * LANES : 0), x);
        tare_range_add_avx2(&seen, x);
    }
    work->results.seen = seen;
}

#define STORE_REALS(parts, lines, columns)                                                                             \
    static TARGET __attribute__((noinline)) void store_reals_##parts##_##lines##_##columns(                            \
        struct work *work, const vec sums[LINES][COLUMNS][VECTORS], int64_t line, int64_t column) {                    \
        store_reals(work, sums, line, column, lines, columns, parts);                                                  \
    }
STORE_REALS(1, 1, 1)
STORE_REALS(1, 1, 2)
STORE_REALS(1, 2, 1)
STORE_REALS(1, 2, 2)
STORE_REALS(2, 1, 1)
STORE_REALS(2, 1, 2)
STORE_REALS(2, 2, 1)
STORE_REALS(2, 2, 2)
#undef STORE_REALS

/* Results of a tile other than bytes. */
static TARGET void store_tile(struct work *work, const vec sums[LINES][COLUMNS][VECTORS], int64_t line, int64_t column,
                              int lines, int columns, int parts) {
    static void (*const reals[2][LINES][COLUMNS])(struct work *, const vec[LINES][COLUMNS][VECTORS], int64_t,
                                                  int64_t) = {
        { { store_reals_1_1_1, store_reals_1_1_2 }, { store_reals_1_2_1, store_reals_1_2_2 } },
        { { store_reals_2_1_1, store_reals_2_1_2 }, { store_reals_2_2_1, store_reals_2_2_2 } },
    };
    if (work->results.reals.is_possible) {
        reals[parts - 1][lines - 1][columns - 1](work, sums, line, column);
        return;
    }
    for (int i = 0; i < lines * columns; i++)
        store_any(work, sums[i / columns][i % columns], line + i / columns, column + i % columns, parts);
}

/* ---- lines ---- */

/* A tile to bytes; y_line: bytes from output line to output line. */
TARE_ALWAYS_INLINE TARGET void run_bytes_tile(struct work *work, struct place place, int64_t y_line, const vec *x,
                                              int64_t x_line, const struct shape shape, const int parts) {
    vec sums[LINES][COLUMNS][VECTORS];
    compute_sums(sums, work, x, x_line, shape);
    TARE_UNROLL
    for (int l = 0; l < shape.lines; l++, place.to += y_line) {
        const vec *first = sums[l][0], *last = sums[l][shape.columns - 1];
        store_bytes(&place, requantize(&work->bytes, first[0], first[1], last[0], last[1]), parts);
    }
}

/* Output lines [line, line + lines) of the call, whose widened input begins at `x`, to bytes. */
TARE_ALWAYS_INLINE TARGET void run_bytes(struct work *work, int64_t line, const vec *x, const struct shape shape,
                                         const int parts) {
    const struct tare_conv *conv = work->conv;
    const int64_t x_line = widened_columns(conv, parts), y_line = conv->out[2] * conv->out_channels;
    const struct shape narrow = { shape.lines, 1, shape.size, shape.stride };
    struct place place = { .to = work->output->requantize->to + work->output->element +
                                 element_at(work, work->line + line, 0),
                           .step = conv->out_channels,
                           .left = conv->out[2],
                           .part_columns = work->part_columns,
                           .channels = (size_t)work->mask };
    int64_t left = work->part_columns;
    for (; left >= COLUMNS; left -= COLUMNS, x += COLUMNS * shape.stride) {
        run_bytes_tile(work, place, y_line, x, x_line, shape, parts);
        place.to += COLUMNS * place.step;
        place.left -= COLUMNS;
    }
    if (parts == 1 && left > 0) run_bytes_tile(work, place, y_line, x, x_line, narrow, parts);
}

TARE_ALWAYS_INLINE TARGET void run_others_tile(struct work *work, int64_t line, int64_t column, const vec *x,
                                               int64_t x_line, const struct shape shape, const int parts) {
    vec sums[LINES][COLUMNS][VECTORS], stored[LINES][COLUMNS][VECTORS]; /* `sums` itself stays in registers */
    compute_sums(sums, work, x, x_line, shape);
    TARE_UNROLL
    for (int i = 0; i < shape.lines * COLUMNS * VECTORS; i++)
        stored[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS] =
            sums[i / (COLUMNS * VECTORS)][i / VECTORS % COLUMNS][i % VECTORS];
    store_tile(work, (const vec(*)[COLUMNS][VECTORS])stored, work->line + line, column, shape.lines, shape.columns,
               parts);
}

/* The same to other results. */
TARE_ALWAYS_INLINE TARGET void run_others(struct work *work, int64_t line, const vec *x, const struct shape shape,
                                          const int parts) {
    const int64_t x_line = widened_columns(work->conv, parts);
    const struct shape narrow = { shape.lines, 1, shape.size, shape.stride };
    int64_t column = 0;
    for (; column + COLUMNS <= work->part_columns; column += COLUMNS, x += COLUMNS * shape.stride)
        run_others_tile(work, line, column, x, x_line, shape, parts);
    if (parts == 1 && column < work->part_columns) run_others_tile(work, line, column, x, x_line, narrow, parts);
}

TARE_ALWAYS_INLINE TARGET void run_lines(struct work *work, int64_t line, const vec *x, const struct shape shape,
                                         const int parts) {
    if (work->bytes.is_possible)
        run_bytes(work, line, x, shape, parts);
    else
        run_others(work, line, x, shape, parts);
}

/* `count` output lines of a block. */
TARE_ALWAYS_INLINE TARGET void run_block(struct work *work, int64_t count, const int size, const int stride,
                                         const int parts) {
    const struct shape both = { LINES, COLUMNS, size, stride }, one = { 1, COLUMNS, size, stride };
    const vec *x = work->scratch;
    const int64_t step = widened_columns(work->conv, parts) * stride;
    int64_t line = 0;
    work->part_columns = part_columns(work->conv, parts);
    widen(work, count, parts);
    for (; line + LINES <= count; line += LINES)
        run_lines(work, line, x + line * step, both, parts);
    if (line < count) run_lines(work, line, x + line * step, one, parts);
}

/* ---- the form ---- */

#define BLOCK_KERNELS(size, stride)                                                                                    \
    static TARGET void block_##size##_##stride##_whole(struct work *work, int64_t count) {                             \
        run_block(work, count, size, stride, 1);                                                                       \
    }                                                                                                                  \
    static TARGET void block_##size##_##stride##_half(struct work *work, int64_t count) {                              \
        run_block(work, count, size, stride, 2);                                                                       \
    }
BLOCK_KERNELS(3, 1)
BLOCK_KERNELS(3, 2)
BLOCK_KERNELS(5, 1)
BLOCK_KERNELS(5, 2)

static void (*kernel_of(const struct tare_conv *conv, int64_t channels))(struct work *work, int64_t count) {
    static void (*const kernels[][2][2])(struct work *, int64_t) = {
        { { block_3_1_half, block_3_1_whole }, { block_3_2_half, block_3_2_whole } },
        { { block_5_1_half, block_5_1_whole }, { block_5_2_half, block_5_2_whole } },
    };
    return kernels[conv->kernel[2] == 5][conv->stride[2] - 1][channels == BLOCK];
}

/* Widened columns of a line of any block: a half block may have more than a whole one. */
static int64_t most_columns(const struct tare_conv *conv) {
    const int64_t whole = widened_columns(conv, 1), half = widened_columns(conv, VECTORS);
    return whole > half ? whole : half;
}

/* The widened input of the lines takes half of the first-level cache. */
static int64_t lines(const struct tare_conv *conv) {
    const int64_t most = (16 << 10) / (most_columns(conv) * VECTOR_BYTES);
    return even_lines(conv, (most - conv->kernel[1]) / conv->stride[1] + 1);
}

static size_t scratch_bytes(const struct tare_conv *conv) {
    return (size_t)(widened_lines(conv, lines(conv)) * most_columns(conv) * VECTOR_BYTES);
}

const struct tare_depthwise_form tare_depthwise_tiles_int8_avx2 = {
    .packed_bytes = packed_bytes, .pack = pack, .most_lines = lines, .run = run, .scratch_bytes = scratch_bytes
};
#endif
