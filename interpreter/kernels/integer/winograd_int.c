/* Int8 convolutions of 3×3 taps by Winograd's algorithm F(2×2, 3×3) (Lavin and Gray, "Fast Algorithms for Convolutional
 * Neural Networks", 2016), which needs 16 instead of 36 multiplications for four output positions.
 *
 * A tile is 2×2 output positions and the 4×4 input positions d that they depend on. With the 3×3 weights g of an input
 * and an output channel, the four sums are A' [(G g G') ∘ (B' d B)] A, where
 *
 *   B' = 1  0 -1  0     G = 1    0    0     A' = 1  1  1  0
 *        0  1  1  0         1/2  1/2  1/2        0  1 -1 -1
 *        0 -1  1  0         1/2 -1/2  1/2
 *        0  1  0 -1         0    0    1
 *
 * The sums over input channels are matrix products, one for each of the 16 elements: rows are tiles.
 *
 * All of it is exact in integers: with 2 G instead of G, weights are at most 9 · 128 and inputs at most 4 · 128, so
 * both fit 16 bits. The results are then four times the sums, which int32 holds for up to MOST_CHANNELS input channels
 * (9 · 128 · 128 · MOST_CHANNELS < 2^29), and shifting by two bits is exact, although intermediate sums may wrap. */
#include "interpreter/kernels/integer/winograd_int.h"

#include "base/alloc.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif
#include <string.h>

enum {
    LANES = 16,    /* channels of a vector of 16-bit integers */
    ELEMENTS = 16, /* of a transformed tile: matrix products */
    CHUNK = 64,    /* output channels that are computed together */
    LEAST_CHANNELS = 32,
    MOST_CHANNELS = 3640,
    BLOCK_TILES = 48,
    ALIGNMENT = 64,
};

bool tare_winograd_int_is_for(enum tare_igemm_form form, const struct tare_conv *conv) {
    return form == TARE_IGEMM_PAIRS && conv->groups == 1 && conv->kernel[0] == 1 && conv->kernel[1] == 3 &&
           conv->kernel[2] == 3 && conv->stride[1] == 1 && conv->stride[2] == 1 && conv->dilation[1] == 1 &&
           conv->dilation[2] == 1 && conv->in_channels >= LEAST_CHANNELS && conv->in_channels <= MOST_CHANNELS &&
           conv->in_channels % LANES == 0 && conv->out_channels >= LEAST_CHANNELS && conv->out_channels % LANES == 0;
}

/* ---- sizes ---- */

static int64_t tiles_of(int64_t positions) {
    return (positions + 1) / 2;
}
/* Lines of tiles that are computed together. */
static int64_t block_lines(const struct tare_conv *conv) {
    const int64_t width = tiles_of(conv->out[2]), most = width >= BLOCK_TILES ? 1 : BLOCK_TILES / width;
    return most < tiles_of(conv->out[1]) ? most : tiles_of(conv->out[1]);
}
static int64_t block_tiles(const struct tare_conv *conv) {
    return block_lines(conv) * tiles_of(conv->out[2]);
}
static int64_t chunk_columns(const struct tare_conv *conv, int64_t chunk) {
    const int64_t left = conv->out_channels - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}
static int64_t chunk_count(const struct tare_conv *conv) {
    return (conv->out_channels + CHUNK - 1) / CHUNK;
}
static size_t matrix_bytes(const struct tare_conv *conv, int64_t chunk) {
    return tare_igemm_packed_bytes(TARE_IGEMM_PAIRS, conv->in_channels, chunk_columns(conv, chunk));
}

size_t tare_winograd_int_packed_bytes(const struct tare_conv *conv) {
    size_t bytes = 0;
    if (conv->out_channels > INT64_MAX / 128) return 0;
    for (int64_t chunk = 0; chunk < chunk_count(conv); chunk++)
        bytes += ELEMENTS * matrix_bytes(conv, chunk);
    return bytes;
}

int64_t tare_winograd_int_sums(const struct tare_conv *conv) {
    return conv->out[2] == 0 ? 0 : 2 * block_lines(conv) * conv->out[2] * conv->out_channels;
}

/* The parts of the scratch memory: a position of padding, transformed inputs, products. */
static size_t padding_bytes(const struct tare_conv *conv) {
    return (size_t)(conv->in_channels + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}
static size_t inputs_bytes(const struct tare_conv *conv) {
    return (size_t)(ELEMENTS * block_tiles(conv) * conv->in_channels) * sizeof(int16_t);
}
size_t tare_winograd_int_scratch(const struct tare_conv *conv) {
    if (conv->out[2] == 0) return 0;
    return padding_bytes(conv) + inputs_bytes(conv) + (size_t)(ELEMENTS * block_tiles(conv) * CHUNK) * sizeof(int32_t);
}

/* ---- weights ---- */

/* 2 G times a vector of three weights, which are `step` apart. */
TARE_ALWAYS_INLINE void transform_weights(int32_t to[4], const int32_t *from, int step) {
    const int32_t ends = from[0] + from[2 * step];
    to[0] = 2 * from[0];
    to[1] = ends + from[step];
    to[2] = ends - from[step];
    to[3] = 2 * from[2 * step];
}

/* The elements of 2 G g (2 G)', which are `step` apart, for weights `filter`, whose taps are `tap_step` apart. */
static void transform_filter(int32_t *to, int64_t step, const int8_t *filter, int64_t tap_step) {
    int32_t taps[9], lines[12];
    for (int i = 0; i < 9; i++)
        taps[i] = filter[i * tap_step];
    for (int w = 0; w < 3; w++)
        transform_weights(lines + 4 * w, taps + w, 3);
    for (int h = 0; h < 4; h++) {
        int32_t out[4];
        transform_weights(out, lines + h, 4);
        for (int w = 0; w < 4; w++)
            to[(4 * h + w) * step] = out[w];
    }
}

tare_status tare_winograd_int_pack(void *packed, const struct tare_conv *conv, const int8_t *filter) {
    const int64_t tap_step = conv->in_channels * conv->out_channels;
    int32_t *matrices = tare_calloc((size_t)conv->in_channels, ELEMENTS * CHUNK * sizeof *matrices);
    char *to = packed;
    if (!matrices) return TARE_NO_MEMORY;
    for (int64_t chunk = 0; chunk < chunk_count(conv); chunk++) {
        const int64_t columns = chunk_columns(conv, chunk), size = conv->in_channels * columns;
        for (int64_t i = 0; i < size; i++)
            transform_filter(matrices + i, size,
                             filter + i / columns * conv->out_channels + chunk * CHUNK + i % columns, tap_step);
        for (int element = 0; element < ELEMENTS; element++, to += matrix_bytes(conv, chunk))
            (void)tare_igemm_pack_int32(to, matrices + element * size, conv->in_channels, columns, columns,
                                        1); /* the values fit */
    }
    tare_free(matrices);
    return TARE_OK;
}

/* ---- inputs ---- */

typedef int16_t shorts __attribute__((vector_size(32)));
typedef int8_t bytes16 __attribute__((vector_size(16)));

/* Transforms LANES channels of a tile from channel `c` on: element e is stored `step` integers after element e - 1. */
TARE_ALWAYS_INLINE void transform_channels(int16_t *to, int64_t step, const int8_t *const positions[ELEMENTS],
                                           int64_t c) {
    shorts lines[4][4];
    for (int w = 0; w < 4; w++) {
        shorts d[4];
        TARE_UNROLL
        for (int h = 0; h < 4; h++) {
            bytes16 x;
            memcpy(&x, positions[4 * h + w] + c, sizeof x);
            d[h] = __builtin_convertvector(x, shorts);
        }
        lines[0][w] = d[0] - d[2];
        lines[1][w] = d[1] + d[2];
        lines[2][w] = d[2] - d[1];
        lines[3][w] = d[1] - d[3];
    }
    for (int h = 0; h < 4; h++, to += 4 * step) {
        const shorts *d = lines[h];
        const shorts out[4] = { d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3] };
        TARE_UNROLL
        for (int w = 0; w < 4; w++)
            memcpy(to + w * step, &out[w], sizeof out[w]);
    }
}

#define TRANSFORM_TILE(name, target)                                                                                   \
    static target void name(int16_t *to, int64_t step, const int8_t *const positions[ELEMENTS], int64_t channels) {    \
        for (int64_t c = 0; c < channels; c += LANES)                                                                  \
            transform_channels(to + c, step, positions, c);                                                            \
    }
TRANSFORM_TILE(transform_tile_plain, )
#if TARE_KERNELS_X86
TRANSFORM_TILE(transform_tile_avx2, TARE_TARGET_AVX2)
#endif
#undef TRANSFORM_TILE

struct run {
    enum tare_cpu_level level;
    const struct tare_conv *conv;
    const struct tare_requantize *requantize; /* NULL: sums are stored */
    int32_t *sums;                            /* of the block's first output line */
    int64_t element;                          /* with `requantize`: that of the block's first position */
    int8_t *padding;                          /* a position */
    int16_t *inputs;                          /* [element, tile, channel] */
    int32_t *products;                        /* [element, tile, column of the chunk] */
    int64_t line, lines, tiles;               /* of tiles: the first line, lines and tiles of the block */
    int64_t first_chunk, last_chunk;          /* of output channels; `last_chunk` is not computed */
};

static void transform_inputs(const struct run *r, const int8_t *image) {
    const struct tare_conv *conv = r->conv;
    const int64_t channels = conv->in_channels, width = tiles_of(conv->out[2]), step = r->tiles * channels;
    for (int64_t t = 0; t < r->tiles; t++) {
        const int8_t *positions[ELEMENTS];
        for (int i = 0; i < ELEMENTS; i++) {
            const int64_t h = 2 * (r->line + t / width) - conv->pad[1] + i / 4;
            const int64_t w = 2 * (t % width) - conv->pad[2] + i % 4;
            const bool is_inside = h >= 0 && h < conv->in[1] && w >= 0 && w < conv->in[2];
            positions[i] = is_inside ? image + (h * conv->in[2] + w) * channels : r->padding;
        }
#if TARE_KERNELS_X86
        if (r->level >= TARE_CPU_AVX2) {
            transform_tile_avx2(r->inputs + t * channels, step, positions, channels);
            continue;
        }
#endif
        transform_tile_plain(r->inputs + t * channels, step, positions, channels);
    }
}

/* ---- outputs ---- */

typedef uint32_t words __attribute__((vector_size(32)));
typedef int32_t integers __attribute__((vector_size(32)));

/* The sums of 8 channels of a tile's four positions; products of element e are `step` after those of e - 1. */
TARE_ALWAYS_INLINE void add_up(integers out[4], const int32_t *products, int64_t step) {
    words lines[2][4];
    TARE_UNROLL
    for (int w = 0; w < 4; w++) {
        words m[4];
        TARE_UNROLL
        for (int h = 0; h < 4; h++)
            memcpy(&m[h], products + (4 * h + w) * step, sizeof m[h]);
        lines[0][w] = m[0] + m[1] + m[2];
        lines[1][w] = m[1] - m[2] - m[3];
    }
    TARE_UNROLL
    for (int h = 0; h < 2; h++) {
        const words *m = lines[h];
        out[2 * h] = (integers)(m[0] + m[1] + m[2]) >> 2;
        out[2 * h + 1] = (integers)(m[1] - m[2] - m[3]) >> 2;
    }
}

/* Positions of tile t in the block's output: the first one, and which of the four exist. */
struct place {
    int64_t first;
    int lines, columns;
};
static struct place place_of(const struct run *r, int64_t t) {
    const int64_t width = tiles_of(r->conv->out[2]), h = t / width, w = t % width;
    return (struct place){ .first = 2 * h * r->conv->out[2] + 2 * w,
                           .lines = 2 * (r->line + h) + 1 < r->conv->out[1] ? 2 : 1,
                           .columns = 2 * w + 1 < r->conv->out[2] ? 2 : 1 };
}

TARE_ALWAYS_INLINE void store_tile_sums(const struct run *r, int64_t t, int64_t column, int64_t columns) {
    const struct place place = place_of(r, t);
    for (int64_t c = 0; c < columns; c += 8) {
        integers sums[4];
        add_up(sums, r->products + t * columns + c, r->tiles * columns);
        for (int i = 0; i < 4; i++) {
            const int64_t position = place.first + i / 2 * r->conv->out[2] + i % 2;
            if (i / 2 >= place.lines || i % 2 >= place.columns) continue;
            memcpy(r->sums + position * r->conv->out_channels + column + c, &sums[i], sizeof sums[i]);
        }
    }
}

static void store_sums_plain(const struct run *r, int64_t column, int64_t columns) {
    for (int64_t t = 0; t < r->tiles; t++)
        store_tile_sums(r, t, column, columns);
}

#if TARE_KERNELS_X86
static TARE_TARGET_AVX2 void store_sums_avx2(const struct run *r, int64_t column, int64_t columns) {
    for (int64_t t = 0; t < r->tiles; t++)
        store_tile_sums(r, t, column, columns);
}

static TARE_TARGET_AVX2 void requantize_avx2(const struct run *r, int64_t column, int64_t columns) {
    const struct tare_requantize copy = *r->requantize; /* see gemm_int_avx2.c */
    struct tare_range_avx2 seen = tare_requantize_range_avx2(&copy);
    for (int64_t t = 0; t < r->tiles; t++) {
        const struct place place = place_of(r, t);
        for (int64_t c = 0; c < columns; c += 8) {
            integers sums[4];
            add_up(sums, r->products + t * columns + c, r->tiles * columns);
            for (int i = 0; i < 4; i++) {
                const int64_t position = place.first + i / 2 * r->conv->out[2] + i % 2;
                if (i / 2 >= place.lines || i % 2 >= place.columns) continue;
                tare_requantize_avx2(&copy, (__m256i)sums[i],
                                     r->element + position * r->conv->out_channels + column + c, column + c, 8, &seen);
            }
        }
    }
    tare_requantize_store_range_avx2(&copy, &seen);
}
#endif

static void store_outputs(const struct run *r, int64_t column, int64_t columns) {
#if TARE_KERNELS_X86
    if (r->level >= TARE_CPU_AVX2) {
        (r->requantize ? requantize_avx2 : store_sums_avx2)(r, column, columns);
        return;
    }
#endif
    store_sums_plain(r, column, columns);
}

/* ---- running ---- */

static void run_block(const struct run *r, const int8_t *image, const void *packed) {
    const struct tare_conv *conv = r->conv;
    const int64_t channels = conv->in_channels;
    const struct tare_igemm_lines rows = { .count = 1, .rows = r->tiles };
    const struct tare_igemm_segments whole = { .count = 1, .groups = channels / 2 };
    const char *weights = (const char *)packed + (size_t)(r->first_chunk * ELEMENTS) * matrix_bytes(conv, 0);
    transform_inputs(r, image);
    for (int64_t chunk = r->first_chunk; chunk < r->last_chunk; chunk++) {
        const int64_t columns = chunk_columns(conv, chunk);
        for (int element = 0; element < ELEMENTS; element++, weights += matrix_bytes(conv, chunk)) {
            const struct tare_igemm_output to = { .sums = r->products + element * r->tiles * columns,
                                                  .stride = columns };
            tare_igemm_segments_at(r->level, &to, r->inputs + element * r->tiles * channels,
                                   channels * (int64_t)sizeof(int16_t), TARE_IGEMM_PAIRS, weights, &rows, columns, NULL,
                                   &whole);
        }
        store_outputs(r, chunk * CHUNK, columns);
    }
}

void tare_winograd_int_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                          const struct tare_conv *conv, const int8_t *input, const void *packed, int32_t *sums,
                          void *scratch) {
    const int64_t in = conv->in[1] * conv->in[2] * conv->in_channels, line_size = conv->out[2] * conv->out_channels;
    const int64_t most = line_size == 0 || conv->out[1] == 0 ? 0 : block_lines(conv), all = tiles_of(conv->out[1]);
    struct run r = { .level = level, .conv = conv, .sums = sums, .padding = scratch };
    if (most == 0) return;
    r.requantize = tare_igemm_requantizes(level) ? sink->requantize : NULL;
    r.first_chunk = sink->first_channel / CHUNK;
    r.last_chunk = sink->channels ? (sink->first_channel + sink->channels + CHUNK - 1) / CHUNK : chunk_count(conv);
    r.inputs = (int16_t *)(void *)((char *)scratch + padding_bytes(conv));
    r.products = (int32_t *)(void *)((char *)r.inputs + inputs_bytes(conv));
    memset(r.padding, conv->pad_value, (size_t)conv->in_channels);
    for (int64_t image = 0; image < conv->batch * conv->in[0]; image++) {
        for (r.line = 0; r.line < all; r.line += most) {
            const int64_t first = (image * conv->out[1] + 2 * r.line) * line_size;
            const int64_t left = conv->out[1] - 2 * r.line;
            r.lines = all - r.line < most ? all - r.line : most;
            r.tiles = r.lines * tiles_of(conv->out[2]);
            r.element = sink->element + first;
            run_block(&r, input + image * in, packed);
            if (!r.requantize) sink->take(sink->arg, sums, first, (left < 2 * most ? left : 2 * most) * line_size);
        }
    }
}
