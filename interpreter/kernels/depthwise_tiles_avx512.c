/* The AVX-512 variant of depthwise convolutions of whole images, for kernels 3, 5 and 7 wide with stride 1 or 2. Lanes
 * hold channels.
 *
 * A tile is two adjacent output lines by seven columns, whose sums are in registers. The input lines that it depends on
 * follow one after another: each input value is loaded once and used for all sums that need it, so that there is a load
 * for every two to four products. The chain of an output is that of the other kernels, by lines, then columns. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue.h"

#if TARE_KERNELS_X86

enum { LANES = 16, LINES = 2, COLUMNS = 7, MOST_SIZE = 7 };

#if defined(__clang__)
#define UNROLL_REACH _Pragma("clang loop unroll(full)")
#else
#define UNROLL_REACH _Pragma("GCC unroll 32")
#endif

/* One vector of channels of a tile. Strides in floats. */
struct tile {
    const float *x; /* of the first tap of the first position; may be outside of the input */
    int64_t x_line, x_step;
    int64_t first, end; /* input lines that are inside, counted from x */
    int64_t low, high;  /* input columns that are inside, counted from x */
    const float *weights;
    int64_t weights_line, weights_step;
    float *y;
    int64_t y_line, y_step, y_at; /* y_at: index of *y in the output */
    int64_t height, count;        /* kernel lines; columns that are stored */
    int64_t channel;
    __mmask16 mask; /* channels that exist */
};

/* gcc keeps the sums in registers only with an instruction that overwrites its operand. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 add_product(__m512 sum, __m512 x, __m512 weight) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(weight));
    return sum;
}

/* Masked loads take a slot of the multiplications; `whole`: all channels of the vector exist. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 load(const float *from, __mmask16 mask, const bool whole) {
    return whole ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(mask, from);
}

/* A pointer that is advanced instead of computed anew for each step. */
TARE_ALWAYS_INLINE const float *advance(const float *x, int64_t step) {
    x += step;
    __asm__("" : "+r"(x));
    return x;
}

/* Input line `line` of the tile, which contributes to output lines [from, to). */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void add_line(__m512 sums[LINES][COLUMNS], const struct tile *tile, int64_t line,
                                                    const int from, const int to, const int size, const int stride,
                                                    const bool inside, const bool whole) {
    const float *x = tile->x + line * tile->x_line;
    __m512 weights[LINES][MOST_SIZE];
    TARE_UNROLL
    for (int l = from; l < to; l++) {
        const float *at = tile->weights + (line - l * stride) * tile->weights_line;
        TARE_UNROLL
        for (int w = 0; w < size; w++)
            weights[l][w] = load(at + w * tile->weights_step, tile->mask, whole);
    }
    UNROLL_REACH
    for (int j = 0; j < (COLUMNS - 1) * stride + size; j++, x = advance(x, tile->x_step)) {
        if (!inside && (j < tile->low || j >= tile->high)) continue;
        const __m512 value = load(x, tile->mask, whole);
        TARE_UNROLL
        for (int l = from; l < to; l++) {
            TARE_UNROLL
            for (int w = 0; w < size; w++) {
                const int at = j - w;
                if (at < 0 || at % stride != 0 || at / stride >= COLUMNS) continue;
                __m512 *sum = &sums[l][at / stride];
                *sum = add_product(*sum, value, weights[l][w]);
            }
        }
    }
}

/* The sums of an output line, which are arguments in registers. A bounded epilogue has much code, so it is a function
 * of its own instead of a part of every kernel. */
#define SUMS __m512 s0, __m512 s1, __m512 s2, __m512 s3, __m512 s4, __m512 s5, __m512 s6
#define SUMS_OF(x) x[0], x[1], x[2], x[3], x[4], x[5], x[6]

static __attribute__((noinline)) TARE_TARGET_AVX512 void finish_bounded(SUMS, const struct tile *tile, int64_t line,
                                                                        const struct tare_gemm_epilogue *epilogue) {
    __m512 sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };
    tare_epilogue_bounded_avx512(epilogue, sums, COLUMNS, 1, tile->count, tile->y + line * tile->y_line, tile->y_step,
                                 tile->y_at + line * tile->y_line, tile->channel, 0xffff, false);
}

/* Of fewer than 16 channels. Two positions of eight channels fill a vector. */
static __attribute__((noinline)) TARE_TARGET_AVX512 void
finish_bounded_part(SUMS, const struct tile *tile, int64_t line, const struct tare_gemm_epilogue *epilogue) {
    __m512 sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };
    float *y = tile->y + line * tile->y_line;
    const int64_t at = tile->y_at + line * tile->y_line, count = tile->count;
    if (!epilogue->is_repeated || tile->y_step != 8) {
        tare_epilogue_bounded_avx512(epilogue, sums, COLUMNS, 1, count, y, tile->y_step, at, tile->channel, tile->mask,
                                     false);
        return;
    }
    __m512 pairs[COLUMNS / 2];
    TARE_UNROLL
    for (int i = 0; i < COLUMNS / 2; i++)
        pairs[i] = _mm512_insertf32x8(sums[2 * i], _mm512_castps512_ps256(sums[2 * i + 1]), 1);
    tare_epilogue_bounded_avx512(epilogue, pairs, COLUMNS / 2, 1, count / 2, y, 16, at, 0, 0xffff, false);
    if (count % 2 == 0) return;
    __m512 last = sums[0];
    TARE_UNROLL
    for (int i = 2; i < COLUMNS; i += 2)
        if (i == count - 1) last = sums[i];
    tare_epilogue_bounded_avx512(epilogue, &last, 1, 1, 1, y + (count - 1) * 8, 8, at + (count - 1) * 8, 0, 0xff,
                                 false);
}

/* Completes the sums of an output line. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void finish(__m512 sums[COLUMNS], const struct tile *tile, int line,
                                                  const struct tare_gemm_epilogue *epilogue, const bool whole) {
    float *y = tile->y + line * tile->y_line;
    const int64_t at = tile->y_at + line * tile->y_line;
    if (epilogue && epilogue->is_bounded) {
        if (whole)
            finish_bounded(SUMS_OF(sums), tile, line, epilogue);
        else
            finish_bounded_part(SUMS_OF(sums), tile, line, epilogue);
        return;
    }
    if (epilogue && epilogue->scale) {
        const __m512 scale = load(epilogue->scale + tile->channel, tile->mask, whole);
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = _mm512_mul_ps(sums[i], scale);
    }
    if (epilogue && epilogue->bias) {
        const __m512 bias = load(epilogue->bias + tile->channel, tile->mask, whole);
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = _mm512_add_ps(sums[i], bias);
    }
    if (epilogue && epilogue->addend) {
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++) {
            if (i >= tile->count) break;
            sums[i] = _mm512_add_ps(sums[i], load(epilogue->addend + at + i * tile->y_step, tile->mask, whole));
        }
    }
    if (epilogue && epilogue->relu) { /* max and min: the second operand where they are equal or one is NaN */
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = _mm512_max_ps(_mm512_setzero_ps(), sums[i]);
    }
    if (epilogue && epilogue->relu && epilogue->limit < INFINITY) {
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = _mm512_min_ps(_mm512_set1_ps(epilogue->limit), sums[i]);
    }
    TARE_UNROLL
    for (int i = 0; i < COLUMNS; i++) {
        if (i >= tile->count) break;
        if (whole)
            _mm512_storeu_ps(y + i * tile->y_step, sums[i]);
        else
            _mm512_mask_storeu_ps(y + i * tile->y_step, tile->mask, sums[i]);
    }
}

TARE_ALWAYS_INLINE int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
TARE_ALWAYS_INLINE int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void run_tile(const struct tile *tile, const struct tare_gemm_epilogue *epilogue,
                                                    const int lines, const int size, const int stride,
                                                    const bool inside, const bool whole) {
    __m512 sums[LINES][COLUMNS];
    TARE_UNROLL
    for (int l = 0; l < lines; l++) {
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[l][i] = _mm512_setzero_ps();
    }
    const int64_t both = lines == LINES ? stride : tile->height; /* from here on the second line too */
    for (int64_t h = tile->first; h < least(both, tile->end); h++)
        add_line(sums, tile, h, 0, 1, size, stride, inside, whole);
    if (lines == LINES) {
        for (int64_t h = most(both, tile->first); h < least(tile->height, tile->end); h++)
            add_line(sums, tile, h, 0, LINES, size, stride, inside, whole);
        for (int64_t h = most(tile->height, tile->first); h < tile->end; h++)
            add_line(sums, tile, h, 1, LINES, size, stride, inside, whole);
    }
    TARE_UNROLL
    for (int l = 0; l < lines; l++)
        finish(sums[l], tile, l, epilogue, whole);
}

/* All channels of a tile. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void run_channels(struct tile *tile, const struct tare_depthwise_image *image,
                                                        const int lines, const int size, const int stride,
                                                        const bool inside) {
    int64_t left = image->conv->out_channels;
    for (; left >= LANES; left -= LANES) {
        __asm__("" : : "r"(tile) : "memory"); /* otherwise gcc keeps the addresses of all parts as loop variables */
        run_tile(tile, image->epilogue, lines, size, stride, inside, true);
        tile->x += LANES, tile->y += LANES, tile->y_at += LANES, tile->weights += LANES, tile->channel += LANES;
    }
    tile->mask = (__mmask16)(0xffffu >> (LANES - left));
    if (left > 0) run_tile(tile, image->epilogue, lines, size, stride, false, false);
}

/* The tile at an output line and column: its first vector of channels. */
TARE_ALWAYS_INLINE struct tile tile_at(const struct tare_depthwise_image *image, int64_t line, int64_t column,
                                       const int size, const int stride) {
    const struct tare_conv *conv = image->conv;
    const int64_t channels = conv->out_channels, y_at = (line * conv->out[2] + column) * channels;
    const int64_t top = line * stride - conv->pad[1], left = column * stride - conv->pad[2];
    return (struct tile){
        .x = image->input + (top * conv->in[2] + left) * channels,
        .x_line = conv->in[2] * channels,
        .x_step = channels,
        .first = most(-top, 0),
        .end = least(conv->in[1] - top, conv->kernel[1] + (line + 1 < conv->out[1] ? stride : 0)),
        .low = -left,
        .high = conv->in[2] - left,
        .weights = image->filter,
        .weights_line = size * channels,
        .weights_step = channels,
        .y = image->output + y_at,
        .y_line = conv->out[2] * channels,
        .y_step = channels,
        .y_at = y_at,
        .height = conv->kernel[1],
        .count = least(conv->out[2] - column, COLUMNS),
        .mask = 0xffff,
    };
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void run(const struct tare_depthwise_image *image, const int size,
                                               const int stride) {
    const struct tare_conv *conv = image->conv;
    for (int64_t line = 0; line < conv->out[1]; line += LINES) {
        for (int64_t column = 0; column < conv->out[2]; column += COLUMNS) {
            struct tile tile = tile_at(image, line, column, size, stride);
            if (line + 1 == conv->out[1])
                run_channels(&tile, image, 1, size, stride, false);
            else if (tile.low <= 0 && tile.high >= (COLUMNS - 1) * stride + size)
                run_channels(&tile, image, LINES, size, stride, true);
            else
                run_channels(&tile, image, LINES, size, stride, false);
        }
    }
}

#define TILES(size, stride)                                                                                            \
    static TARE_TARGET_AVX512 void tiles_##size##_##stride(const struct tare_depthwise_image *image) {                 \
        run(image, size, stride);                                                                                      \
    }
TILES(3, 1)
TILES(3, 2)
TILES(5, 1)
TILES(5, 2)
TILES(7, 1)
TILES(7, 2)
#undef TILES

tare_depthwise_image_kernel *tare_depthwise_tiles_avx512(const struct tare_conv *conv) {
    static tare_depthwise_image_kernel *const kernels[3][2] = {
        { tiles_3_1, tiles_3_2 },
        { tiles_5_1, tiles_5_2 },
        { tiles_7_1, tiles_7_2 },
    };
    const int64_t size = conv->kernel[2], stride = conv->stride[2];
    if (conv->kernel[0] != 1 || conv->in[0] != 1 || conv->out[0] != 1 || conv->pad[0] != 0) return NULL;
    if (conv->dilation[1] != 1 || conv->dilation[2] != 1 || conv->stride[1] != stride) return NULL;
    if (size < 3 || size > 7 || size % 2 == 0 || stride > 2 || conv->kernel[1] < stride) return NULL;
    return kernels[size / 2 - 1][stride - 1];
}
#endif
