/* Depthwise int8 convolutions of some lines of output positions: what the AVX2, AVX-VNNI and VNNI variants share.
 *
 * The instructions sum adjacent products: vpdpbusd those of four bytes, vpmaddwd those of two 16-bit integers. So the
 * elements of four or two input rows must be adjacent. The rows that an output line needs are interleaved once, all
 * columns and channels: the elements of the rows become one 32-bit lane. A vector of lanes at any element then
 * contributes one horizontal tap of some rows of a kernel. Rows beyond the kernel have weights of zero; further output
 * lines that need no other rows use the same lanes with the weights shifted by some rows: two lines of a 3×3 kernel.
 *
 * vpdpbusd requires unsigned inputs: 128 is added to them, and the sums start at -128 times the sum of the channel's
 * weights. */
#include "interpreter/kernels/integer/depthwise_lines.h"

#include <string.h>

enum { LANE = TARE_DEPTHWISE_LANE, BYTE_ROWS = 4, SLACK = 256, ALIGNMENT = 64 };

/* ---- sizes ---- */

static int64_t vector_size(const struct tare_depthwise_form *form) {
    return (int64_t)form->lanes * LANE;
}
static int64_t row_groups(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    return (conv->kernel[1] + form->rows - 1) / form->rows;
}
static int64_t vector_count(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    return (conv->out_channels + form->lanes - 1) / form->lanes;
}
/* Rows by which the weights may be shifted: 0 … shifts - 1. */
static int64_t shifts(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    return form->rows * row_groups(form, conv) - conv->kernel[1] + 1;
}
/* Bytes of the weights of a vector of channels for one shift; of all of a vector: the starts of its sums, then those.
 */
static int64_t shift_bytes(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    return row_groups(form, conv) * conv->kernel[2] * vector_size(form);
}
static int64_t vector_bytes(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    return vector_size(form) + shifts(form, conv) * shift_bytes(form, conv);
}
/* Columns of the padded input that a line of output positions needs. */
static int64_t line_columns(const struct tare_conv *conv) {
    return (conv->out[2] - 1) * conv->stride[2] + (conv->kernel[2] - 1) * conv->dilation[2] + 1;
}
/* Bytes of the interleaved lanes of a group of rows. */
static int64_t group_bytes(const struct tare_conv *conv) {
    return (line_columns(conv) * conv->out_channels * LANE + SLACK + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_supported(const struct tare_conv *conv) {
    return conv->kernel[0] == 1 && conv->stride[0] == 1 && conv->pad[0] == 0 && conv->out[0] == conv->in[0] &&
           conv->out_channels == conv->in_channels && conv->out[2] > 0 && line_columns(conv) <= 1 << 16 &&
           conv->kernel[1] <= 64 && conv->kernel[2] <= 64;
}

static const struct tare_depthwise_form *tiles_at(enum tare_cpu_level level, const struct tare_conv *conv) {
#if TARE_KERNELS_X86
    const int64_t size = conv->kernel[2], stride = conv->stride[2], channels = conv->out_channels;
    if (!is_supported(conv) || conv->kernel[1] != size || conv->stride[1] != stride || stride > 2) return NULL;
    if (conv->dilation[1] != 1 || conv->dilation[2] != 1) return NULL;
    if (level >= TARE_CPU_VNNI) return size == 3 && channels >= 16 ? &tare_depthwise_tiles_int8_vnni : NULL;
    if (level == TARE_CPU_AVX2)
        return (size == 3 || size == 5) && channels >= 8 ? &tare_depthwise_tiles_int8_avx2 : NULL;
#endif
    (void)level, (void)conv, (void)is_supported;
    return NULL;
}

bool tare_depthwise_is_tiled(enum tare_cpu_level level, const struct tare_conv *conv) {
    return tiles_at(level, conv) != NULL;
}

const struct tare_depthwise_form *tare_depthwise_form_at(enum tare_cpu_level level, const struct tare_conv *conv) {
    const struct tare_depthwise_form *tiles = tiles_at(level, conv);
    if (tiles) return tiles;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_VNNI && is_supported(conv)) return &tare_depthwise_vnni;
    if (level == TARE_CPU_AVX_VNNI && is_supported(conv)) return &tare_depthwise_avx_vnni;
    if (level >= TARE_CPU_AVX2 && is_supported(conv)) return &tare_depthwise_avx2;
#endif
    return NULL;
}

size_t tare_depthwise_packed_bytes(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    if (form->run) return form->packed_bytes(conv);
    return (size_t)(vector_count(form, conv) * vector_bytes(form, conv));
}

size_t tare_depthwise_scratch_bytes(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    if (form->run) return form->scratch_bytes ? form->scratch_bytes(conv) : 0;
    return (size_t)(row_groups(form, conv) * group_bytes(conv));
}

int64_t tare_depthwise_lines(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    if (form->run) return form->most_lines(conv);
    return conv->dilation[1] == 1 ? (shifts(form, conv) - 1) / conv->stride[1] + 1 : 1;
}

/* ---- packing ---- */

/* Few channels are repeated until they fill a vector, if a whole number of positions does. */
static bool is_repeated(const struct tare_depthwise_form *form, const struct tare_conv *conv) {
    return conv->out_channels < form->lanes && form->lanes % conv->out_channels == 0;
}

static void put_weight(char *lane, const struct tare_depthwise_form *form, int64_t row, int8_t weight) {
    const int16_t wide = weight;
    if (form->rows == BYTE_ROWS)
        memcpy(lane + row, &weight, sizeof weight);
    else
        memcpy(lane + row * (int64_t)sizeof wide, &wide, sizeof wide);
}

/* The weights of one lane; returns their sum. */
static uint32_t pack_lane(char *vector, const struct tare_depthwise_form *form, const struct tare_conv *conv,
                          const int8_t *filter, int64_t lane, int64_t channel) {
    uint32_t sum = 0;
    for (int64_t h = 0; h < conv->kernel[1]; h++) {
        for (int64_t w = 0; w < conv->kernel[2]; w++) {
            const int8_t weight = filter[(h * conv->kernel[2] + w) * conv->out_channels + channel];
            sum += (uint32_t)weight;
            for (int64_t shift = 0; shift < shifts(form, conv); shift++) {
                const int64_t row = h + shift, tap = row / form->rows * conv->kernel[2] + w;
                put_weight(vector + vector_size(form) + shift * shift_bytes(form, conv) + tap * vector_size(form) +
                               lane * LANE,
                           form, row % form->rows, weight);
            }
        }
    }
    return sum;
}

void tare_depthwise_pack(void *packed, const struct tare_depthwise_form *form, const struct tare_conv *conv,
                         const int8_t *filter) {
    if (form->run) {
        form->pack(packed, conv, filter);
        return;
    }
    memset(packed, 0, tare_depthwise_packed_bytes(form, conv));
    for (int64_t lane = 0; lane < vector_count(form, conv) * form->lanes; lane++) {
        const int64_t channel = is_repeated(form, conv) ? lane % conv->out_channels : lane;
        if (channel >= conv->out_channels) break;
        char *vector = (char *)packed + lane / form->lanes * vector_bytes(form, conv);
        const uint32_t sum = pack_lane(vector, form, conv, filter, lane % form->lanes, channel);
        if (form->rows == BYTE_ROWS) ((int32_t *)(void *)vector)[lane % form->lanes] = (int32_t)(0u - 128u * sum);
    }
}

/* ---- running ---- */

/* The input row of row `r` of the window of output line `line`; NULL: padding. */
static const int8_t *input_row(const struct tare_conv *conv, const int8_t *image, int64_t line, int64_t r) {
    const int64_t h = line * conv->stride[1] - conv->pad[1] + r * conv->dilation[1];
    return h >= 0 && h < conv->in[1] ? image + h * conv->in[2] * conv->in_channels : NULL;
}

static void fill_padding(char *to, const struct tare_depthwise_form *form, int8_t value, int64_t lanes) {
    const int16_t pair[2] = { value, value };
    if (form->rows == BYTE_ROWS) {
        memset(to, (uint8_t)(value ^ -128), (size_t)(lanes * LANE));
        return;
    }
    for (int64_t i = 0; i < lanes; i++)
        memcpy(to + i * LANE, pair, sizeof pair);
}

/* Interleaves the rows of `count` output lines, with the padding of the lines. */
static void interleave_lines(char *scratch, const struct tare_depthwise_form *form, const struct tare_conv *conv,
                             const int8_t *image, int64_t line, int64_t count) {
    const int64_t columns = line_columns(conv), size = conv->in_channels, pad = conv->pad[2];
    const int64_t skipped = pad < 0 ? -pad : 0, left = pad < 0 ? 0 : pad < columns ? pad : columns;
    const int64_t rest = conv->in[2] - skipped < 0 ? 0 : conv->in[2] - skipped;
    const int64_t inside = columns - left < rest ? columns - left : rest, needed = (count - 1) * conv->stride[1];
    for (int64_t group = 0; group < row_groups(form, conv); group++, scratch += group_bytes(conv)) {
        const int8_t *rows[TARE_DEPTHWISE_MOST_ROWS];
        for (int r = 0; r < form->rows; r++) {
            const int64_t row = group * form->rows + r;
            const int8_t *from = row < needed + conv->kernel[1] ? input_row(conv, image, line, row) : NULL;
            rows[r] = from ? from + skipped * size : NULL;
        }
        fill_padding(scratch, form, conv->pad_value, left * size);
        form->interleave(scratch + left * size * LANE, rows, inside * size, conv->pad_value);
        fill_padding(scratch + (left + inside) * size * LANE, form, conv->pad_value, (columns - left - inside) * size);
    }
}

/* Vectors of one position, or of several that are adjacent. */
static void set_steps(struct tare_depthwise_walk *walk, const struct tare_depthwise_form *form,
                      const struct tare_conv *conv, int64_t vector) {
    const int64_t channels = conv->out_channels, left = channels - vector * form->lanes;
    walk->inside = walk->last = left >= form->lanes ? form->lanes : (int)left;
    walk->count = conv->out[2];
    walk->step = conv->stride[2] * channels * LANE;
    walk->out_step = channels;
    if (!is_repeated(form, conv) || conv->stride[2] != 1) return;
    const int64_t elements = conv->out[2] * channels;
    walk->inside = form->lanes;
    walk->count = (elements + form->lanes - 1) / form->lanes;
    walk->last = form->lanes - (int)(walk->count * form->lanes - elements);
    walk->step = vector_size(form);
    walk->out_step = form->lanes;
}

void tare_depthwise_run(const struct tare_depthwise_form *form, const struct tare_igemm_output *output,
                        const struct tare_conv *conv, const int8_t *image, int64_t line, int64_t count,
                        const void *packed, void *scratch) {
    if (form->run) {
        form->run(output, conv, image, line, count, packed, scratch);
        return;
    }
    interleave_lines(scratch, form, conv, image, line, count);
    for (int64_t vector = 0; vector < vector_count(form, conv); vector++) {
        const char *start = (const char *)packed + vector * vector_bytes(form, conv);
        struct tare_depthwise_walk walk = { .x = (const char *)scratch + vector * vector_size(form),
                                            .group_step = group_bytes(conv),
                                            .tap_step = conv->dilation[2] * conv->out_channels * LANE,
                                            .start = start,
                                            .groups = row_groups(form, conv),
                                            .taps = conv->kernel[2] };
        set_steps(&walk, form, conv, vector);
        for (int64_t i = 0; i < count; i++) {
            const struct tare_igemm_output to = tare_igemm_output_at(output, i * conv->out[2], vector * form->lanes);
            walk.weights = start + vector_size(form) + i * conv->stride[1] * shift_bytes(form, conv);
            form->walk(&to, &walk);
        }
    }
}
