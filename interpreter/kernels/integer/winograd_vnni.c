/* Int8 convolutions of 3×3 taps by Winograd's algorithm F(4×4, 3×3) (see winograd_int.c), which needs 36 instead of 144
 * multiplications for 16 output positions, with 16-bit VNNI products, which have half the rate of 8-bit ones.
 *
 * A tile is 4×4 output positions and the 6×6 input positions d that they depend on. With the 3×3 weights g of an input
 * and an output channel, 576 times the sums are A' [(G g G') ∘ (B' d B)] A, where
 *
 *   B' = 4  0 -5  0  1  0    G =  6  0  0    A' = 1 -1 -1  1  1  0
 *        0 -4 -4  1  1  0         4  4  4         0 -1  1  2 -2  0
 *        0  4 -4 -1  1  0         4 -4  4         0 -1 -1  4  4  0
 *        0 -2 -1  2  1  0         1  2  4         0 -1  1  8 -8  2
 *        0  2 -1 -2  1  0         1 -2  4
 *        0  4  0 -5  0  1         0  0 12
 *
 * The sums over input channels are matrix products, one for each of the 36 elements: rows are tiles.
 *
 * All of it is exact in integers: weights are at most 144 · 128 and inputs 100 · 128, so both fit 16 bits. Everything
 * after them is computed modulo 2^32. The product of 576 = 64 · 9 times a sum and the inverse of 9 is 64 times the sum,
 * which int32 holds for up to PASS_CHANNELS input channels (9 · 128 · 128 · PASS_CHANNELS < 2^25). More channels are
 * computed in several passes, whose sums are added. */
#include "interpreter/kernels/integer/winograd_vnni.h"

#include "base/alloc.h"
#include "interpreter/kernels/integer/winograd_vnni_tiles.h"

#include <string.h>

enum {
    SIDE = TARE_WINOGRAD_SIDE,
    REACH = TARE_WINOGRAD_REACH,
    ELEMENTS = TARE_WINOGRAD_ELEMENTS,
    CHUNK = TARE_WINOGRAD_CHUNK,
    BLOCK = 32, /* input channels of a vector of 16-bit integers */
    LINE = 64,  /* bytes of a vector */
    PASS_BLOCKS = 7,
    LEAST_CHANNELS = 64,
    MOST_CHANNELS = 256,
    MAX_ROWS = 14,
    LEAST_WIDTH = 14,
    CACHE_BYTES = 512 * 1024, /* of transformed inputs and products, half of the second-level cache */
};

/* Images with enough tiles for the registers of a product, whose lines have at most a seventh of superfluous columns,
 * and channels whose transformed weights, of eight times the size, take less time to read than they save. */
bool tare_winograd_vnni_is_for(enum tare_cpu_level level, enum tare_igemm_form form, const struct tare_conv *conv) {
    return TARE_KERNELS_X86 && level >= TARE_CPU_VNNI && form == TARE_IGEMM_QUADS && conv->groups == 1 &&
           conv->kernel[0] == 1 && conv->kernel[1] == 3 && conv->kernel[2] == 3 && conv->stride[1] == 1 &&
           conv->stride[2] == 1 && conv->dilation[1] == 1 && conv->dilation[2] == 1 &&
           conv->in_channels >= LEAST_CHANNELS && conv->in_channels <= MOST_CHANNELS &&
           conv->in_channels % BLOCK == 0 && conv->out_channels >= LEAST_CHANNELS &&
           conv->out_channels <= MOST_CHANNELS && conv->out_channels % CHUNK == 0 && conv->out[2] >= LEAST_WIDTH &&
           7 * SIDE * tare_winograd_tiles_of(conv->out[2]) <= 8 * conv->out[2];
}

/* ---- sizes ---- */

static int64_t blocks_of(const struct tare_conv *conv) {
    return conv->in_channels / BLOCK;
}
static int64_t pass_count(const struct tare_conv *conv) {
    return (blocks_of(conv) + PASS_BLOCKS - 1) / PASS_BLOCKS;
}
/* The first block of a pass. */
static int64_t pass_first(const struct tare_conv *conv, int64_t pass) {
    return pass * blocks_of(conv) / pass_count(conv);
}
/* Lines of tiles of all images. */
static int64_t all_lines(const struct tare_conv *conv) {
    return conv->batch * conv->in[0] * tare_winograd_tiles_of(conv->out[1]);
}
/* Those that are computed together: blocks are equally large. */
static int64_t block_lines(const struct tare_conv *conv) {
    const int64_t tile = ELEMENTS * (conv->in_channels * 2 + CHUNK * 4), all = all_lines(conv);
    const int64_t fitting = CACHE_BYTES / tile / tare_winograd_tiles_of(conv->out[2]), most = fitting < 1 ? 1 : fitting;
    const int64_t blocks = (all + most - 1) / most;
    return (all + blocks - 1) / blocks;
}
static bool is_empty(const struct tare_conv *conv) {
    return all_lines(conv) == 0 || conv->out[2] == 0;
}
/* Vectors from element to element of transformed inputs; see tare_winograd_product_step. */
static int64_t input_step(const struct tare_conv *conv, int64_t tiles) {
    return blocks_of(conv) * tiles + 1;
}
static int64_t chunk_bytes(const struct tare_conv *conv) {
    return ELEMENTS * conv->in_channels * CHUNK * (int64_t)sizeof(int16_t);
}

size_t tare_winograd_vnni_packed_bytes(const struct tare_conv *conv) {
    return (size_t)(conv->out_channels / CHUNK * chunk_bytes(conv));
}

int64_t tare_winograd_vnni_sums(const struct tare_conv *conv) {
    return is_empty(conv) ? 0 : SIDE * block_lines(conv) * conv->out[2] * conv->out_channels;
}

/* The parts of the scratch memory: a position of padding, transformed inputs, products, sums of the passes before. */
size_t tare_winograd_vnni_scratch(const struct tare_conv *conv) {
    if (is_empty(conv)) return 0;
    const int64_t tiles = block_lines(conv) * tare_winograd_tiles_of(conv->out[2]);
    const int64_t partial = pass_count(conv) > 1 ? 2 * TARE_WINOGRAD_POSITIONS * tiles : 0;
    return (size_t)(MOST_CHANNELS +
                    LINE * (ELEMENTS * (input_step(conv, tiles) + tare_winograd_product_step(tiles)) + partial));
}

/* ---- weights ---- */

/* The weights of a pair of input channels and the output channels of a chunk, in the order of the packed weights. */
typedef int16_t pair_weights[2 * CHUNK];

/* G times vectors of three weights. */
static void transform_weights(pair_weights to[REACH], const pair_weights a, const pair_weights b,
                              const pair_weights c) {
    for (int i = 0; i < 2 * CHUNK; i++) {
        to[0][i] = (int16_t)(6 * a[i]);
        to[1][i] = (int16_t)(4 * (a[i] + b[i] + c[i]));
        to[2][i] = (int16_t)(4 * (a[i] - b[i] + c[i]));
        to[3][i] = (int16_t)(a[i] + 2 * b[i] + 4 * c[i]);
        to[4][i] = (int16_t)(a[i] - 2 * b[i] + 4 * c[i]);
        to[5][i] = (int16_t)(12 * c[i]);
    }
}

/* The elements of G g G', which are `step` apart. `filter`: of the first tap, channel and column; taps are `tap_step`
 * apart, input channels `channel_step`. */
static void pack_pair(int16_t *to, int64_t step, const int8_t *filter, int64_t tap_step, int64_t channel_step) {
    pair_weights taps[9], lines[3][REACH], out[REACH];
    for (int tap = 0; tap < 9; tap++) {
        for (int i = 0; i < 2 * CHUNK; i++)
            taps[tap][i] = filter[tap * tap_step + i % 2 * channel_step + i / 2];
    }
    for (int w = 0; w < 3; w++)
        transform_weights(lines[w], taps[w], taps[3 + w], taps[6 + w]);
    for (int h = 0; h < REACH; h++) {
        transform_weights(out, lines[0][h], lines[1][h], lines[2][h]);
        for (int w = 0; w < REACH; w++, to += step)
            memcpy(to, out[w], sizeof out[w]);
    }
}

/* [chunk, pass, element, pair of input channels, output channel, input channel] */
void tare_winograd_vnni_pack(void *packed, const struct tare_conv *conv, const int8_t *filter) {
    const int64_t n = conv->out_channels;
    for (int64_t column = 0; column < n; column += CHUNK) {
        int16_t *chunk = (int16_t *)(void *)((char *)packed + column / CHUNK * chunk_bytes(conv));
        for (int64_t pass = 0; pass < pass_count(conv); pass++) {
            const int64_t first = BLOCK * pass_first(conv, pass), end = BLOCK * pass_first(conv, pass + 1);
            for (int64_t c = first; c < end; c += 2)
                pack_pair(chunk + (ELEMENTS * first + c - first) * CHUNK, (end - first) * CHUNK,
                          filter + c * n + column, conv->in_channels * n, n);
        }
    }
}

#if TARE_KERNELS_X86
/* ---- inputs ---- */

/* B' d. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void transform_six(__m512i to[REACH], const __m512i d[REACH]) {
    const __m512i s = _mm512_sub_epi16(d[4], d[2]), t = _mm512_sub_epi16(d[3], d[1]), t2 = _mm512_add_epi16(t, t);
    const __m512i sum = _mm512_add_epi16(d[3], d[4]), difference = _mm512_sub_epi16(d[4], d[3]);
    to[0] = _mm512_add_epi16(_mm512_slli_epi16(_mm512_sub_epi16(d[0], d[2]), 2), s);
    to[1] = _mm512_sub_epi16(sum, _mm512_slli_epi16(_mm512_add_epi16(d[1], d[2]), 2));
    to[2] = _mm512_add_epi16(difference, _mm512_slli_epi16(_mm512_sub_epi16(d[1], d[2]), 2));
    to[3] = _mm512_add_epi16(s, t2);
    to[4] = _mm512_sub_epi16(s, t2);
    to[5] = _mm512_sub_epi16(_mm512_sub_epi16(d[5], d[3]), _mm512_slli_epi16(t, 2));
}

/* Transforms a block of channels of a tile from channel `c` on: element e is stored `step` vectors after e - 1. */
static TARE_TARGET_AVX512 void transform_block(__m512i *to, int64_t step, const int8_t *const positions[ELEMENTS],
                                               int64_t c) {
    __m512i lines[REACH][REACH], out[REACH];
    TARE_UNROLL
    for (int w = 0; w < REACH; w++) {
        __m512i d[REACH];
        TARE_UNROLL
        for (int h = 0; h < REACH; h++)
            d[h] =
                _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(positions[REACH * h + w] + c)));
        transform_six(lines[w], d);
    }
    TARE_UNROLL
    for (int h = 0; h < REACH; h++) {
        __m512i d[REACH];
        TARE_UNROLL
        for (int w = 0; w < REACH; w++)
            d[w] = lines[w][h];
        transform_six(out, d);
        TARE_UNROLL
        for (int w = 0; w < REACH; w++, to += step)
            _mm512_store_si512(to, out[w]);
    }
}

static void transform_inputs(const struct tare_winograd_run *r, const int8_t *input) {
    const struct tare_conv *conv = r->conv;
    const int64_t channels = conv->in_channels, width = tare_winograd_tiles_of(conv->out[2]),
                  height = tare_winograd_tiles_of(conv->out[1]);
    for (int64_t t = 0; t < r->tiles; t++) {
        const int64_t line = r->line + t / width;
        const int64_t top = SIDE * (line % height) - conv->pad[1], left = SIDE * (t % width) - conv->pad[2];
        const int8_t *positions[ELEMENTS], *image = input + line / height * conv->in[1] * conv->in[2] * channels;
        for (int i = 0; i < ELEMENTS; i++) {
            const int64_t h = top + i / REACH, w = left + i % REACH;
            const bool is_inside = h >= 0 && h < conv->in[1] && w >= 0 && w < conv->in[2];
            positions[i] = is_inside ? image + (h * conv->in[2] + w) * channels : r->padding;
        }
        for (int64_t block = 0; block < blocks_of(conv); block++)
            transform_block(r->inputs + block * r->tiles + t, input_step(conv, r->tiles), positions, block * BLOCK);
    }
}

/* ---- products ---- */

/* As assembly: with the intrinsic, gcc 12 copies the sums between registers and memory. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, __m512i x, __m512i weights) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(weights));
    return sum;
}

/* The sums of `rows` tiles over `blocks` blocks of channels, which are `block_step` bytes apart. `ahead`: weights to
 * prefetch, by `ahead_step` bytes for each pair of channels. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void multiply_tiles(__m512i *to, const char *a, int64_t blocks, int64_t block_step,
                                                        const char *weights, const char *ahead, int64_t ahead_step,
                                                        const int rows) {
    __m512i sum[MAX_ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm512_setzero_si512();
    for (int64_t block = 0; block < blocks; block++, a += block_step) {
        for (int64_t pair = 0; pair < BLOCK / 2; pair++, weights += 2 * LINE, ahead += ahead_step) {
            const __m512i first = _mm512_loadu_si512(weights), second = _mm512_loadu_si512(weights + LINE);
            __builtin_prefetch(ahead, 0, 2);
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                int32_t channels;
                memcpy(&channels, a + i * LINE + 4 * pair, sizeof channels);
                const __m512i x = _mm512_set1_epi32(channels);
                sum[i][0] = add_products(sum[i][0], x, first);
                sum[i][1] = add_products(sum[i][1], x, second);
            }
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        _mm512_store_si512(to + 2 * i, sum[i][0]);
        _mm512_store_si512(to + 2 * i + 1, sum[i][1]);
    }
}

typedef void rows_function(__m512i *to, const char *a, int64_t blocks, int64_t block_step, const char *weights,
                           const char *ahead, int64_t ahead_step);
#define ROWS(r)                                                                                                        \
    static TARE_TARGET_VNNI void rows_##r(__m512i *to, const char *a, int64_t blocks, int64_t block_step,              \
                                          const char *weights, const char *ahead, int64_t ahead_step) {                \
        multiply_tiles(to, a, blocks, block_step, weights, ahead, ahead_step, r);                                      \
    }
/* clang-format off */
ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7)
ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13) ROWS(14)
/* clang-format on */
#undef ROWS
        static rows_function *const rows_functions[MAX_ROWS] = { rows_1,  rows_2,  rows_3,  rows_4, rows_5,
                                                                 rows_6,  rows_7,  rows_8,  rows_9, rows_10,
                                                                 rows_11, rows_12, rows_13, rows_14 };

/* The products of all elements, over the blocks [first, end) of channels. While an element is multiplied, the weights
 * of the next are prefetched: those of many channels do not stay in the second-level cache. */
static void multiply(const struct tare_winograd_run *r, const char *weights, int64_t first, int64_t end) {
    const int64_t groups = (r->tiles + MAX_ROWS - 1) / MAX_ROWS, matrix = (end - first) * BLOCK * LINE;
    const int64_t ahead_step = 2 * LINE / groups < LINE ? 2 * LINE / groups : LINE;
    for (int element = 0; element < ELEMENTS; element++, weights += matrix) {
        const __m512i *a = r->inputs + element * input_step(r->conv, r->tiles) + first * r->tiles;
        __m512i *to = r->products + element * tare_winograd_product_step(r->tiles);
        const char *ahead = weights + matrix;
        for (int64_t group = 0; group < groups; group++) {
            const int64_t row = group * r->tiles / groups, rows = (group + 1) * r->tiles / groups - row;
            rows_functions[rows - 1](to + 2 * row, (const char *)(a + row), end - first, r->tiles * LINE, weights,
                                     ahead, ahead_step);
            ahead += (end - first) * BLOCK / 2 * ahead_step;
        }
    }
}

/* ---- running ---- */

static void run_chunk(const struct tare_winograd_run *r, const char *weights, int64_t column) {
    const int64_t passes = pass_count(r->conv);
    for (int64_t pass = 0; pass < passes; pass++) {
        const int64_t first = pass_first(r->conv, pass), end = pass_first(r->conv, pass + 1);
        multiply(r, weights, first, end);
        weights += ELEMENTS * (end - first) * BLOCK * LINE;
        tare_winograd_vnni_store(r, column, pass > 0, pass + 1 == passes);
    }
}

static struct tare_winograd_run run_of(const struct tare_conv_int_sink *sink, const struct tare_conv *conv,
                                       int32_t *sums, char *scratch) {
    const int64_t tiles = block_lines(conv) * tare_winograd_tiles_of(conv->out[2]);
    const struct tare_requantize *requantize = sink->requantize;
    struct tare_winograd_run r = { .conv = conv, .requantize = requantize, .sums = sums, .padding = (int8_t *)scratch };
    if (requantize && !requantize->is_real && !requantize->addend)
        r.bounds = tare_byte_bounds_of(requantize, 0, conv->out_channels);
    r.inputs = (__m512i *)(void *)(scratch + MOST_CHANNELS);
    r.products = r.inputs + ELEMENTS * input_step(conv, tiles);
    r.partial = r.products + ELEMENTS * tare_winograd_product_step(tiles);
    memset(r.padding, conv->pad_value, (size_t)conv->in_channels);
    return r;
}

/* Output lines before a line of tiles, of all images. */
static int64_t output_line(const struct tare_conv *conv, int64_t line) {
    const int64_t height = tare_winograd_tiles_of(conv->out[1]), h = SIDE * (line % height);
    return line / height * conv->out[1] + h;
}

void tare_winograd_vnni_run(const struct tare_conv_int_sink *sink, const struct tare_conv *conv, const int8_t *input,
                            const void *packed, int32_t *sums, void *scratch) {
    if (is_empty(conv)) return;
    struct tare_winograd_run r = run_of(sink, conv, sums, scratch);
    const int64_t all = all_lines(conv), most = block_lines(conv), line_size = conv->out[2] * conv->out_channels;
    const int64_t end = sink->channels ? sink->first_channel + sink->channels : conv->out_channels;
    for (r.line = 0; r.line < all; r.line += most) {
        const int64_t lines = all - r.line < most ? all - r.line : most, first = output_line(conv, r.line) * line_size;
        r.tiles = lines * tare_winograd_tiles_of(conv->out[2]);
        r.element = sink->element + first;
        transform_inputs(&r, input);
        for (int64_t column = sink->first_channel; column < end; column += CHUNK)
            run_chunk(&r, (const char *)packed + column / CHUNK * chunk_bytes(conv), column);
        if (!r.requantize) sink->take(sink->arg, sums, first, output_line(conv, r.line + lines) * line_size - first);
    }
}
#else
void tare_winograd_vnni_run(const struct tare_conv_int_sink *sink, const struct tare_conv *conv, const int8_t *input,
                            const void *packed, int32_t *sums, void *scratch) {
    (void)sink, (void)conv, (void)input, (void)packed, (void)sums, (void)scratch;
}
#endif
