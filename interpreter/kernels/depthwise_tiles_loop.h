/* Depthwise convolutions of whole images, for kernels 3, 5 and 7 wide with stride 1 or 2; included by the AVX2 and
 * AVX-512 variants, which define the vector types and the functions on them: `vec` holds LANES floats, `vec_mask`
 * selects lanes. Lanes hold channels. TOGETHER is a number of channels for channels_together, or 0: all.
 *
 * A tile is WIDE_LINES (1 or 2) adjacent output lines by COLUMNS columns, or two lines by NARROW columns, whose sums
 * are in registers. The input lines that it depends on follow one after another: each input value is loaded once and
 * used for all sums that need it, so that there is a load for every two to four products. One line takes fewer
 * instructions than two, so that the processor computes parts of two tiles at the same time. The chain of an output is
 * that of the other kernels, by lines, then columns. */

enum { LINES = 2, MOST_SIZE = 7 };

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
    vec_mask mask; /* channels that exist */
};

/* A pointer that is advanced instead of computed anew for each step. */
TARE_ALWAYS_INLINE const float *advance(const float *x, int64_t step) {
    x += step;
    __asm__("" : "+r"(x));
    return x;
}

/* Input line `line` of the tile, which contributes to output lines [from, to). */
TARE_ALWAYS_INLINE TARGET void add_line(vec sums[LINES][COLUMNS], const struct tile *tile, int64_t line, const int from,
                                        const int to, const int columns, const int size, const int stride,
                                        const bool inside, const bool whole) {
    const float *x = tile->x + line * tile->x_line;
    const int64_t step = tile->x_step;
    vec weights[LINES][MOST_SIZE];
    TARE_UNROLL
    for (int l = from; l < to; l++) {
        const float *at = tile->weights + (line - l * stride) * tile->weights_line;
        TARE_UNROLL
        for (int w = 0; w < size; w++)
            weights[l][w] = load(at + w * tile->weights_step, tile->mask, whole);
    }
    UNROLL_REACH
    for (int j = 0; j < (columns - 1) * stride + size; j++) {
        if (j > 0 && j % 3 == 0) x = advance(x, 3 * step); /* the addresses of three values have the form of operands */
        if (!inside && j < size - 1 && j < tile->low) continue;
        if (!inside && j >= tile->high) break;
        const vec value = load(x + j % 3 * step, tile->mask, whole);
        TARE_UNROLL
        for (int l = from; l < to; l++) {
            TARE_UNROLL
            for (int w = 0; w < size; w++) {
                const int at = j - w;
                if (at < 0 || at % stride != 0 || at / stride >= columns) continue;
                vec *sum = &sums[l][at / stride];
                *sum = add_product(*sum, value, weights[l][w]);
            }
        }
    }
}

/* Completes the sums of an output line with a bounded epilogue. */
TARE_ALWAYS_INLINE TARGET void finish_bounded(vec sums[COLUMNS], const struct tile *tile, int line,
                                              const struct tare_gemm_epilogue *epilogue, const bool whole);

/* Completes them with another general epilogue. */
TARE_ALWAYS_INLINE TARGET void finish_general(vec sums[COLUMNS], const struct tile *tile, int line,
                                              const struct tare_gemm_epilogue *epilogue, const bool whole);

/* Completes the sums of an output line, but for the activation of a simple epilogue. */
TARE_ALWAYS_INLINE TARGET void finish(vec sums[COLUMNS], const struct tile *tile, int line,
                                      const struct tare_gemm_epilogue *epilogue, const bool whole) {
    float *y = tile->y + line * tile->y_line;
    const int64_t at = tile->y_at + line * tile->y_line;
    if (epilogue && epilogue->is_bounded) {
        finish_bounded(sums, tile, line, epilogue, whole);
        return;
    }
    if (epilogue && !tare_epilogue_is_simple(epilogue)) {
        finish_general(sums, tile, line, epilogue, whole);
        return;
    }
    if (epilogue && epilogue->scale) {
        const vec scale = load(epilogue->scale + tile->channel, tile->mask, whole);
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = mul_vec(sums[i], scale);
    }
    if (epilogue && epilogue->bias) {
        const vec bias = load(epilogue->bias + tile->channel, tile->mask, whole);
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = add_vec(sums[i], bias);
    }
    if (epilogue && epilogue->addend) {
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++) {
            if (i >= tile->count) break;
            sums[i] = add_vec(sums[i], load(epilogue->addend + at + i * tile->y_step, tile->mask, whole));
        }
    }
    if (epilogue && epilogue->relu) { /* max and min: the second operand where they are equal or one is NaN */
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = max_vec(set_vec(0), sums[i]);
    }
    if (epilogue && epilogue->relu && epilogue->limit < INFINITY) {
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = min_vec(set_vec(epilogue->limit), sums[i]);
    }
    TARE_UNROLL
    for (int i = 0; i < COLUMNS; i++) {
        if (i >= tile->count) break;
        store(y + i * tile->y_step, sums[i], tile->mask, whole);
    }
}

TARE_ALWAYS_INLINE int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
TARE_ALWAYS_INLINE int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

TARE_ALWAYS_INLINE TARGET void run_tile(const struct tile *tile, const struct tare_gemm_epilogue *epilogue,
                                        const int lines, const int columns, const int size, const int stride,
                                        const bool inside, const bool whole) {
    vec sums[LINES][COLUMNS];
    TARE_UNROLL
    for (int l = 0; l < lines; l++) {
        TARE_UNROLL
        for (int i = 0; i < COLUMNS; i++)
            sums[l][i] = set_vec(0);
    }
    const int64_t both = lines > 1 ? stride : tile->height; /* from here on the second line too */
    for (int64_t h = tile->first; h < least(both, tile->end); h++)
        add_line(sums, tile, h, 0, 1, columns, size, stride, inside, whole);
    if (lines > 1) {
        for (int64_t h = most(both, tile->first); h < least(tile->height, tile->end); h++)
            add_line(sums, tile, h, 0, LINES, columns, size, stride, inside, whole);
        for (int64_t h = most(tile->height, tile->first); h < tile->end; h++)
            add_line(sums, tile, h, 1, LINES, columns, size, stride, inside, whole);
    }
    TARE_UNROLL
    for (int l = 0; l < lines; l++)
        finish(sums[l], tile, l, epilogue, whole);
}

/* `left` channels of a tile. */
TARE_ALWAYS_INLINE TARGET void run_channels(struct tile *tile, const struct tare_depthwise_image *image, int64_t left,
                                            const int lines, const int columns, const int size, const int stride,
                                            const bool inside) {
    for (; left >= LANES; left -= LANES) {
        __asm__("" : : "r"(tile) : "memory"); /* otherwise gcc keeps the addresses of all parts as loop variables */
        run_tile(tile, image->epilogue, lines, columns, size, stride, inside, true);
        tile->x += LANES, tile->y += LANES, tile->y_at += LANES, tile->weights += LANES, tile->channel += LANES;
    }
    tile->mask = mask_of(left);
    if (left > 0) run_tile(tile, image->epilogue, lines, columns, size, stride, false, false);
}

/* The tile at an output line and column: the vector of channels from `channel` on. */
TARE_ALWAYS_INLINE TARGET struct tile tile_at(const struct tare_depthwise_image *image, int64_t line, int64_t column,
                                              int64_t channel, const int lines, const int columns, const int size,
                                              const int stride) {
    const struct tare_conv *conv = image->conv;
    const int64_t channels = conv->out_channels, y_at = (line * conv->out[2] + column) * channels + channel;
    const int64_t top = line * stride - conv->pad[1], left = column * stride - conv->pad[2];
    return (struct tile){
        .x = image->input + (top * conv->in[2] + left) * channels + channel,
        .x_line = conv->in[2] * channels,
        .x_step = channels,
        .first = most(-top, 0),
        .end = least(conv->in[1] - top, conv->kernel[1] + (lines > 1 && line + 1 < conv->out[1] ? stride : 0)),
        .low = -left,
        .high = conv->in[2] - left,
        .weights = image->filter + channel,
        .weights_line = size * channels,
        .weights_step = channels,
        .y = image->output + y_at,
        .y_line = conv->out[2] * channels,
        .y_step = channels,
        .y_at = y_at,
        .height = conv->kernel[1],
        .channel = channel,
        .count = least(conv->out[2] - column, columns),
        .mask = mask_of(LANES),
    };
}

/* Channels that are computed in the whole image before others are: their weights, and the lines that one tile has in
 * common with the next, stay in the first-level cache. An input beyond the second-level cache is read in order. */
TARE_ALWAYS_INLINE int64_t channels_together(const struct tare_conv *conv) {
    enum { MOST_INPUT = 256 << 10 };
    const bool is_large = conv->in[1] * conv->in[2] * conv->in_channels > MOST_INPUT;
    return TOGETHER == 0 || is_large ? conv->out_channels : TOGETHER;
}

/* Channels [first, first + count) of the image. */
TARE_ALWAYS_INLINE TARGET void run_image(const struct tare_depthwise_image *image, int64_t first, int64_t count,
                                         const int lines, const int columns, const int size, const int stride) {
    const struct tare_conv *conv = image->conv;
    const bool is_simple = image->epilogue && tare_epilogue_is_simple(image->epilogue);
    const struct tare_pointwise *activation = is_simple ? image->epilogue->activation : NULL;
    for (int64_t line = 0; line < conv->out[1]; line += lines) {
        for (int64_t column = 0; column < conv->out[2]; column += columns) {
            struct tile tile = tile_at(image, line, column, first, lines, columns, size, stride);
            if (lines > 1 && line + 1 == conv->out[1])
                run_channels(&tile, image, count, 1, columns, size, stride, false);
            else if (tile.low <= 0 && tile.high >= (columns - 1) * stride + size)
                run_channels(&tile, image, count, lines, columns, size, stride, true);
            else
                run_channels(&tile, image, count, lines, columns, size, stride, false);
        }
        if (!activation) continue;
        const int64_t height = least(conv->out[1] - line, lines), width = conv->out[2];
        tare_pointwise_rows_at(LEVEL, activation, image->output + line * width * conv->out_channels + first,
                               conv->out_channels, height * width, count);
    }
}

TARE_ALWAYS_INLINE TARGET void run(const struct tare_depthwise_image *image, const int lines, const int columns,
                                   const int size, const int stride) {
    const int64_t channels = image->conv->out_channels, together = channels_together(image->conv);
    if (TOGETHER == 0) {
        run_image(image, 0, channels, lines, columns, size, stride);
        return;
    }
    for (int64_t first = 0; first < channels; first += together)
        run_image(image, first, least(channels - first, together), lines, columns, size, stride);
}

/* Whether narrow tiles take less time: a wide one takes one and a half as long for a line. */
static bool takes_narrow_tiles(int64_t width) {
    const int64_t wide = (width + COLUMNS - 1) / COLUMNS, narrow = (width + NARROW - 1) / NARROW;
    return 2 * narrow < 3 * wide;
}

#define TILES(size, stride)                                                                                            \
    static TARGET void tiles_##size##_##stride(const struct tare_depthwise_image *image) {                             \
        if (NARROW < COLUMNS && takes_narrow_tiles(image->conv->out[2]))                                               \
            run(image, LINES, NARROW, size, stride);                                                                   \
        else                                                                                                           \
            run(image, WIDE_LINES, COLUMNS, size, stride);                                                             \
    }
TILES(3, 1)
TILES(3, 2)
TILES(5, 1)
TILES(5, 2)
TILES(7, 1)
TILES(7, 2)
#undef TILES

/* NULL: no kernel for that convolution. */
static tare_depthwise_image_kernel *kernel_for(const struct tare_conv *conv) {
    static tare_depthwise_image_kernel *const kernels[3][2] = {
        { tiles_3_1, tiles_3_2 },
        { tiles_5_1, tiles_5_2 },
        { tiles_7_1, tiles_7_2 },
    };
    const int64_t size = conv->kernel[2], stride = conv->stride[2];
    if (conv->kernel[0] != 1 || conv->in[0] != 1 || conv->out[0] != 1 || conv->pad[0] != 0) return NULL;
    if (conv->dilation[1] != 1 || conv->dilation[2] != 1 || conv->stride[1] != stride) return NULL;
    if (size < 3 || size > 7 || size % 2 == 0 || stride > 2 || conv->kernel[1] < stride) return NULL;
    if (conv->pad[2] >= size) return NULL;
    return kernels[size / 2 - 1][stride - 1];
}
