/* Depthwise int8 convolutions of one line of output positions by VNNI instructions, 64 channels at a time.
 *
 * vpdpbusd sums four adjacent bytes, so the bytes of four kernel rows must be adjacent. Each input column that a line
 * of output positions needs is interleaved once: the bytes of rows r … r + 3 of a channel become one 32-bit lane. Every
 * horizontal tap of every output position then reads whole vectors. Rows beyond the kernel have weights of zero. The
 * instruction requires unsigned inputs: 128 is added to them, and the sums start at -128 times the sum of the channel's
 * weights. Padding may have any value (tare_conv.pad_value). */
#include "interpreter/kernels/depthwise_vnni.h"

#include <string.h>

enum { CHANNELS = 64, VECTOR = 64, VECTORS = 4, ROWS = 4, COLUMN = VECTORS * VECTOR };

static int64_t row_groups(const struct tare_conv *conv) {
    return (conv->kernel[1] + ROWS - 1) / ROWS;
}
static int64_t channel_blocks(const struct tare_conv *conv) {
    return (conv->out_channels + CHANNELS - 1) / CHANNELS;
}
/* Bytes of a block of channels: the starts of its sums, then its weights. */
static int64_t block_bytes(const struct tare_conv *conv) {
    return COLUMN + row_groups(conv) * conv->kernel[2] * COLUMN;
}
/* Columns of the padded input that a line of output positions needs. */
static int64_t line_columns(const struct tare_conv *conv) {
    return (conv->out[2] - 1) * conv->stride[2] + (conv->kernel[2] - 1) * conv->dilation[2] + 1;
}

bool tare_depthwise_vnni_supports(const struct tare_conv *conv) {
    return conv->kernel[0] == 1 && conv->stride[0] == 1 && conv->pad[0] == 0 && conv->out[0] == conv->in[0] &&
           conv->out_channels == conv->in_channels && conv->out[2] > 0 && line_columns(conv) <= 1 << 16 &&
           conv->kernel[1] <= 64 && conv->kernel[2] <= 64;
}

size_t tare_depthwise_vnni_packed_bytes(const struct tare_conv *conv) {
    return (size_t)(channel_blocks(conv) * block_bytes(conv));
}

size_t tare_depthwise_vnni_scratch_bytes(const struct tare_conv *conv) {
    return (size_t)(row_groups(conv) * line_columns(conv) * COLUMN);
}

/* A lane of vector j has channel 16 j + lane of the block. */
void tare_depthwise_vnni_pack(void *packed, const struct tare_conv *conv, const int8_t *filter) {
    memset(packed, 0, tare_depthwise_vnni_packed_bytes(conv));
    for (int64_t c = 0; c < conv->out_channels; c++) {
        char *block = (char *)packed + c / CHANNELS * block_bytes(conv);
        uint32_t sum = 0;
        for (int64_t h = 0; h < conv->kernel[1]; h++) {
            for (int64_t w = 0; w < conv->kernel[2]; w++) {
                const int8_t weight = filter[(h * conv->kernel[2] + w) * conv->out_channels + c];
                const int64_t tap = h / ROWS * conv->kernel[2] + w;
                ((int8_t *)block)[COLUMN + tap * COLUMN + c % CHANNELS * ROWS + h % ROWS] = weight;
                sum += (uint32_t)weight;
            }
        }
        ((int32_t *)(void *)block)[c % CHANNELS] = (int32_t)(0u - 128u * sum);
    }
}

#if TARE_KERNELS_X86
#include <immintrin.h>

/* What is the same for all columns of a line and a block of channels. */
struct columns {
    const struct tare_conv *conv;
    const int8_t *rows[64]; /* kernel row 0 … at the block's first channel of column 0; NULL: outside the image */
    __mmask64 mask;         /* of the block's channels */
    int64_t vectors;        /* that hold them */
};

/* The bytes of a row as unsigned numbers, ordered so that unpacking yields consecutive channels. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i load_row(const struct columns *columns, int64_t row, int64_t column) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i flip = _mm512_set1_epi8(-128);
    if (row >= columns->conv->kernel[1] || !columns->rows[row])
        return _mm512_set1_epi8((char)(columns->conv->pad_value ^ -128));
    const int8_t *from = columns->rows[row] + column * columns->conv->in_channels;
    return _mm512_permutexvar_epi32(order, _mm512_xor_si512(_mm512_maskz_loadu_epi8(columns->mask, from), flip));
}

/* Rows [row, row + 4) of a column, interleaved. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void interleave(uint8_t *to, const struct columns *columns, int64_t row,
                                                    int64_t column) {
    const __m512i a = load_row(columns, row, column), b = load_row(columns, row + 1, column);
    const __m512i c = load_row(columns, row + 2, column), d = load_row(columns, row + 3, column);
    const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
    _mm512_store_si512(to, _mm512_unpacklo_epi16(ab, cd));
    _mm512_store_si512(to + VECTOR, _mm512_unpackhi_epi16(ab, cd));
    if (columns->vectors <= 2) return;
    const __m512i ab_high = _mm512_unpackhi_epi8(a, b), cd_high = _mm512_unpackhi_epi8(c, d);
    _mm512_store_si512(to + 2 * VECTOR, _mm512_unpacklo_epi16(ab_high, cd_high));
    _mm512_store_si512(to + 3 * VECTOR, _mm512_unpackhi_epi16(ab_high, cd_high));
}

static TARE_TARGET_VNNI void interleave_line(uint8_t *scratch, const struct columns *columns) {
    const struct tare_conv *conv = columns->conv;
    const int64_t count = line_columns(conv);
    for (int64_t group = 0; group < row_groups(conv); group++) {
        uint8_t *to = scratch + group * count * COLUMN;
        for (int64_t i = 0; i < count; i++, to += COLUMN) {
            const int64_t column = i - conv->pad[2];
            if (column >= 0 && column < conv->in[2])
                interleave(to, columns, group * ROWS, column);
            else
                memset(to, (uint8_t)(conv->pad_value ^ -128), COLUMN);
        }
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, __m512i x, const void *weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "m"(*(const __m512i *)weights)); /* see gemm_int_avx512.c */
    return sum;
}

/* Sums of two output positions, whose columns begin at `at` and `at + step`. */
#define POSITIONS(name, VECTORS_USED)                                                                                  \
    static TARE_TARGET_VNNI void name(int32_t *output, const struct tare_conv *conv, const uint8_t *scratch,           \
                                      const char *block, int64_t channels) {                                           \
        const int64_t count = line_columns(conv), step = conv->stride[2] * COLUMN;                                     \
        const __mmask16 last = (__mmask16)(0xffffu >> (16 * VECTORS_USED - channels));                                 \
        for (int64_t w = 0; w < conv->out[2]; w += 2) {                                                                \
            const int64_t second = w + 1 < conv->out[2] ? step : 0;                                                    \
            __m512i sums[2][VECTORS_USED];                                                                             \
            TARE_UNROLL                                                                                                \
            for (int j = 0; j < VECTORS_USED; j++)                                                                     \
                sums[0][j] = sums[1][j] = _mm512_load_si512(block + j * VECTOR);                                       \
            const char *weights = block + COLUMN;                                                                      \
            for (int64_t group = 0; group < row_groups(conv); group++) {                                               \
                const uint8_t *x = scratch + group * count * COLUMN + w * step;                                        \
                for (int64_t tap = 0; tap < conv->kernel[2]; tap++, x += conv->dilation[2] * COLUMN) {                 \
                    TARE_UNROLL                                                                                        \
                    for (int j = 0; j < VECTORS_USED; j++) {                                                           \
                        sums[0][j] =                                                                                   \
                            add_products(sums[0][j], _mm512_load_si512(x + j * VECTOR), weights + j * VECTOR);         \
                        sums[1][j] = add_products(sums[1][j], _mm512_load_si512(x + second + j * VECTOR),              \
                                                  weights + j * VECTOR);                                               \
                    }                                                                                                  \
                    weights += COLUMN;                                                                                 \
                }                                                                                                      \
            }                                                                                                          \
            int32_t *to = output + w * conv->out_channels;                                                             \
            for (int i = 0; i < (second ? 2 : 1); i++, to += conv->out_channels) {                                     \
                TARE_UNROLL                                                                                            \
                for (int j = 0; j < VECTORS_USED; j++)                                                                 \
                    _mm512_mask_storeu_epi32(to + 16 * j, j == VECTORS_USED - 1 ? last : (__mmask16)0xffff,            \
                                             sums[i][j]);                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
POSITIONS(positions_1, 1)
POSITIONS(positions_2, 2)
POSITIONS(positions_3, 3)
POSITIONS(positions_4, 4)
#undef POSITIONS

/* Kernel rows of output line `line` at channel 0 of column 0. */
static void find_rows(const int8_t *rows[64], const struct tare_conv *conv, const int8_t *image, int64_t line) {
    for (int64_t r = 0; r < conv->kernel[1]; r++) {
        const int64_t h = line * conv->stride[1] - conv->pad[1] + r * conv->dilation[1];
        rows[r] = h >= 0 && h < conv->in[1] ? image + h * conv->in[2] * conv->in_channels : NULL;
    }
}

void tare_depthwise_vnni_line(int32_t *output, const struct tare_conv *conv, const int8_t *image, int64_t line,
                              const void *packed, void *scratch) {
    typedef void positions(int32_t *, const struct tare_conv *, const uint8_t *, const char *, int64_t);
    static positions *const by_vectors[] = { NULL, positions_1, positions_2, positions_3, positions_4 };
    struct columns columns = { .conv = conv };
    find_rows(columns.rows, conv, image, line);
    for (int64_t c = 0; c < conv->out_channels; c += CHANNELS) {
        const int64_t channels = conv->out_channels - c < CHANNELS ? conv->out_channels - c : CHANNELS;
        columns.mask = ~(__mmask64)0 >> (CHANNELS - channels);
        columns.vectors = (channels + 15) / 16;
        interleave_line(scratch, &columns);
        by_vectors[columns.vectors](output + c, conv, scratch, (const char *)packed + c / CHANNELS * block_bytes(conv),
                                    channels);
        for (int64_t r = 0; r < conv->kernel[1]; r++)
            if (columns.rows[r]) columns.rows[r] += CHANNELS;
    }
}
#endif
