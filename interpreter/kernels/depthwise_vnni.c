/* Depthwise int8 convolutions of some lines of output positions by VNNI instructions.
 *
 * vpdpbusd sums four adjacent bytes, so the bytes of four input rows must be adjacent. The rows that an output line
 * needs are interleaved once, all columns and channels: the bytes of rows r … r + 3 of an element become one 32-bit
 * lane. A vector of 16 lanes at any element then contributes one horizontal tap of one column of a kernel. Rows beyond
 * the kernel have weights of zero; further output lines that need no other rows use the same lanes with the weights
 * shifted by some rows: two lines of a 3×3 kernel, four of a 5×5 kernel.
 *
 * The instruction requires unsigned inputs: 128 is added to them, and the sums start at -128 times the sum of the
 * channel's weights. Padding may have any value (tare_conv.pad_value). */
#include "interpreter/kernels/depthwise_vnni.h"

#include <string.h>

enum { LANES = 16, VECTOR = 64, ROWS = 4, SLACK = 4 * VECTOR };

static int64_t row_groups(const struct tare_conv *conv) {
    return (conv->kernel[1] + ROWS - 1) / ROWS;
}
static int64_t vector_count(const struct tare_conv *conv) {
    return (conv->out_channels + LANES - 1) / LANES;
}
/* Rows by which the weights may be shifted: 0 … shifts - 1. */
static int64_t shifts(const struct tare_conv *conv) {
    return ROWS * row_groups(conv) - conv->kernel[1] + 1;
}
/* Bytes of the weights of a vector of channels for one shift; of all of a vector: the starts of its sums, then those.
 */
static int64_t shift_bytes(const struct tare_conv *conv) {
    return row_groups(conv) * conv->kernel[2] * VECTOR;
}
static int64_t vector_bytes(const struct tare_conv *conv) {
    return VECTOR + shifts(conv) * shift_bytes(conv);
}
/* Columns of the padded input that a line of output positions needs. */
static int64_t line_columns(const struct tare_conv *conv) {
    return (conv->out[2] - 1) * conv->stride[2] + (conv->kernel[2] - 1) * conv->dilation[2] + 1;
}
/* Bytes of the interleaved lanes of a group of rows. */
static int64_t group_bytes(const struct tare_conv *conv) {
    return (line_columns(conv) * conv->out_channels * ROWS + SLACK + VECTOR - 1) / VECTOR * VECTOR;
}

bool tare_depthwise_vnni_supports(const struct tare_conv *conv) {
    return conv->kernel[0] == 1 && conv->stride[0] == 1 && conv->pad[0] == 0 && conv->out[0] == conv->in[0] &&
           conv->out_channels == conv->in_channels && conv->out[2] > 0 && line_columns(conv) <= 1 << 16 &&
           conv->kernel[1] <= 64 && conv->kernel[2] <= 64;
}

size_t tare_depthwise_vnni_packed_bytes(const struct tare_conv *conv) {
    return (size_t)(vector_count(conv) * vector_bytes(conv));
}

size_t tare_depthwise_vnni_scratch_bytes(const struct tare_conv *conv) {
    return (size_t)(row_groups(conv) * group_bytes(conv));
}

int64_t tare_depthwise_vnni_lines(const struct tare_conv *conv) {
    return conv->dilation[1] == 1 ? (shifts(conv) - 1) / conv->stride[1] + 1 : 1;
}

/* Few channels are repeated until they fill a vector, if a whole number of positions does. */
static bool is_repeated(const struct tare_conv *conv) {
    return conv->out_channels < LANES && LANES % conv->out_channels == 0;
}

/* The weights of one lane; returns their sum. */
static uint32_t pack_lane(char *vector, const struct tare_conv *conv, const int8_t *filter, int64_t lane,
                          int64_t channel) {
    uint32_t sum = 0;
    for (int64_t h = 0; h < conv->kernel[1]; h++) {
        for (int64_t w = 0; w < conv->kernel[2]; w++) {
            const int8_t weight = filter[(h * conv->kernel[2] + w) * conv->out_channels + channel];
            sum += (uint32_t)weight;
            for (int64_t shift = 0; shift < shifts(conv); shift++) {
                const int64_t row = h + shift, tap = row / ROWS * conv->kernel[2] + w;
                vector[VECTOR + shift * shift_bytes(conv) + tap * VECTOR + lane * ROWS + row % ROWS] = (char)weight;
            }
        }
    }
    return sum;
}

void tare_depthwise_vnni_pack(void *packed, const struct tare_conv *conv, const int8_t *filter) {
    memset(packed, 0, tare_depthwise_vnni_packed_bytes(conv));
    for (int64_t lane = 0; lane < vector_count(conv) * LANES; lane++) {
        const int64_t channel = is_repeated(conv) ? lane % conv->out_channels : lane;
        if (channel >= conv->out_channels) break;
        char *vector = (char *)packed + lane / LANES * vector_bytes(conv);
        const uint32_t sum = pack_lane(vector, conv, filter, lane % LANES, channel);
        ((int32_t *)(void *)vector)[lane % LANES] = (int32_t)(0u - 128u * sum);
    }
}

#if TARE_KERNELS_X86
#include <immintrin.h>

/* Input rows that are interleaved together, at column 0; NULL: padding. */
struct rows {
    const int8_t *at[ROWS];
};

/* Bytes [at, at + 64) of a row as unsigned numbers, ordered so that unpacking yields consecutive elements. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i load_row(const int8_t *row, int64_t at, __mmask64 mask, __m512i padding) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    if (!row) return padding;
    const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, row + at), _mm512_set1_epi8(-128));
    return _mm512_permutexvar_epi32(order, x);
}

/* Interleaves `count` bytes of each row. Writes whole groups of 256 bytes. */
static TARE_TARGET_VNNI void interleave(char *to, const struct rows *rows, int64_t count, int8_t pad_value) {
    const __m512i padding = _mm512_set1_epi8((char)(pad_value ^ -128));
    for (int64_t at = 0; at < count; at += VECTOR, to += 4 * VECTOR) {
        const __mmask64 mask = count - at >= VECTOR ? ~(__mmask64)0 : ~(__mmask64)0 >> (VECTOR - (count - at));
        const __m512i a = load_row(rows->at[0], at, mask, padding), b = load_row(rows->at[1], at, mask, padding);
        const __m512i c = load_row(rows->at[2], at, mask, padding), d = load_row(rows->at[3], at, mask, padding);
        const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
        const __m512i ab_high = _mm512_unpackhi_epi8(a, b), cd_high = _mm512_unpackhi_epi8(c, d);
        _mm512_storeu_si512(to, _mm512_unpacklo_epi16(ab, cd));
        _mm512_storeu_si512(to + VECTOR, _mm512_unpackhi_epi16(ab, cd));
        _mm512_storeu_si512(to + 2 * VECTOR, _mm512_unpacklo_epi16(ab_high, cd_high));
        _mm512_storeu_si512(to + 3 * VECTOR, _mm512_unpackhi_epi16(ab_high, cd_high));
    }
}

/* The input row of row `r` of the window of output line `line`; NULL: padding. */
static const int8_t *input_row(const struct tare_conv *conv, const int8_t *image, int64_t line, int64_t r) {
    const int64_t h = line * conv->stride[1] - conv->pad[1] + r * conv->dilation[1];
    return h >= 0 && h < conv->in[1] ? image + h * conv->in[2] * conv->in_channels : NULL;
}

/* Interleaves the rows of `count` output lines, with the padding of the lines. */
static void interleave_lines(char *scratch, const struct tare_conv *conv, const int8_t *image, int64_t line,
                             int64_t count) {
    const int64_t columns = line_columns(conv), size = conv->in_channels, pad = conv->pad[2];
    const int64_t skipped = pad < 0 ? -pad : 0, left = pad < 0 ? 0 : pad < columns ? pad : columns;
    const int64_t rest = conv->in[2] - skipped < 0 ? 0 : conv->in[2] - skipped;
    const int64_t inside = columns - left < rest ? columns - left : rest, needed = (count - 1) * conv->stride[1];
    for (int64_t group = 0; group < row_groups(conv); group++, scratch += group_bytes(conv)) {
        const int byte = (uint8_t)(conv->pad_value ^ -128);
        struct rows rows;
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = group * ROWS + r;
            const int8_t *from = row < needed + conv->kernel[1] ? input_row(conv, image, line, row) : NULL;
            rows.at[r] = from ? from + skipped * size : NULL;
        }
        memset(scratch, byte, (size_t)(left * size * ROWS));
        interleave(scratch + left * size * ROWS, &rows, inside * size, conv->pad_value);
        memset(scratch + (left + inside) * size * ROWS, byte, (size_t)((columns - left - inside) * size * ROWS));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, const void *x, __m512i weights) {
    const __m512i bytes = _mm512_loadu_si512(x);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weights)); /* see gemm_int_avx512.c */
    return sum;
}

/* One vector of channels of one line: `count` vectors of sums, `step` bytes apart in the interleaved lanes and
 * `out_step` elements apart in the output. `last`: the lanes of the last vector, `mask` those of the others. */
struct walk {
    const char *x;
    int64_t group_step, tap_step, step;
    const char *start, *weights;
    int64_t groups, taps;
    int64_t count, out_step;
    __mmask16 mask, last;
};

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store_sums(const struct tare_igemm_output *output, int64_t at, __m512i sums,
                                                    __mmask16 mask) {
    if (output->requantize)
        tare_requantize_avx512(output->requantize, sums, output->element + at, output->column, mask);
    else
        _mm512_mask_storeu_epi32(output->sums + at, mask, sums);
}

/* The weights of kernels of known size stay in registers. */
#define WALK(name, GROUPS, TAPS)                                                                                       \
    static TARE_TARGET_VNNI void name(const struct tare_igemm_output *output, const struct walk *walk) {               \
        const __m512i start = _mm512_load_si512(walk->start);                                                          \
        const char *x = walk->x;                                                                                       \
        __m512i weights[GROUPS * TAPS];                                                                                \
        TARE_UNROLL                                                                                                    \
        for (int i = 0; i < GROUPS * TAPS; i++)                                                                        \
            weights[i] = _mm512_load_si512(walk->weights + i * VECTOR);                                                \
        for (int64_t p = 0; p < walk->count; p++, x += walk->step) {                                                   \
            __m512i sums = start;                                                                                      \
            TARE_UNROLL                                                                                                \
            for (int i = 0; i < GROUPS * TAPS; i++)                                                                    \
                sums = add_products(sums, x + i / TAPS * walk->group_step + i % TAPS * walk->tap_step, weights[i]);    \
            store_sums(output, p * walk->out_step, sums, p == walk->count - 1 ? walk->last : walk->mask);              \
        }                                                                                                              \
    }
WALK(walk_1_3, 1, 3)
WALK(walk_2_5, 2, 5)
#undef WALK

static TARE_TARGET_VNNI void walk_any(const struct tare_igemm_output *output, const struct walk *walk) {
    const char *x = walk->x;
    for (int64_t p = 0; p < walk->count; p++, x += walk->step) {
        __m512i sums = _mm512_load_si512(walk->start);
        const char *weights = walk->weights;
        for (int64_t group = 0; group < walk->groups; group++) {
            for (int64_t tap = 0; tap < walk->taps; tap++, weights += VECTOR)
                sums =
                    add_products(sums, x + group * walk->group_step + tap * walk->tap_step, _mm512_load_si512(weights));
        }
        store_sums(output, p * walk->out_step, sums, p == walk->count - 1 ? walk->last : walk->mask);
    }
}

/* Vectors of one position, or of several that are adjacent. */
static void set_steps(struct walk *walk, const struct tare_conv *conv, int64_t vector) {
    const int64_t channels = conv->out_channels, left = channels - vector * LANES;
    walk->mask = walk->last = (__mmask16)(left >= LANES ? 0xffff : (1u << left) - 1);
    walk->count = conv->out[2];
    walk->step = conv->stride[2] * channels * ROWS;
    walk->out_step = channels;
    if (!is_repeated(conv) || conv->stride[2] != 1) return;
    const int64_t elements = conv->out[2] * channels;
    walk->mask = 0xffff;
    walk->count = (elements + LANES - 1) / LANES;
    walk->last = (__mmask16)(0xffffu >> (walk->count * LANES - elements));
    walk->step = VECTOR;
    walk->out_step = LANES;
}

void tare_depthwise_vnni_run(const struct tare_igemm_output *output, const struct tare_conv *conv, const int8_t *image,
                             int64_t line, int64_t count, const void *packed, void *scratch) {
    interleave_lines(scratch, conv, image, line, count);
    for (int64_t vector = 0; vector < vector_count(conv); vector++) {
        const char *start = (const char *)packed + vector * vector_bytes(conv);
        struct walk walk = { .x = (const char *)scratch + vector * VECTOR,
                             .group_step = group_bytes(conv),
                             .tap_step = conv->dilation[2] * conv->out_channels * ROWS,
                             .start = start,
                             .groups = row_groups(conv),
                             .taps = conv->kernel[2] };
        set_steps(&walk, conv, vector);
        for (int64_t i = 0; i < count; i++) {
            const struct tare_igemm_output to = tare_igemm_output_at(output, i * conv->out[2], vector * LANES);
            walk.weights = start + VECTOR + i * conv->stride[1] * shift_bytes(conv);
            if (walk.groups == 1 && walk.taps == 3)
                walk_1_3(&to, &walk);
            else if (walk.groups == 2 && walk.taps == 5)
                walk_2_5(&to, &walk);
            else
                walk_any(&to, &walk);
        }
    }
}
#endif
