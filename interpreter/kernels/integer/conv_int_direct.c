/* Dense int8 convolutions that read the input in place of gathered patches.
 *
 * A block of output lines needs some lines of the padded input. They are copied once, converted to what the product's
 * form requires: bytes with 128 added, or int16. A row of the product is then an output position: its patch consists of
 * one segment per kernel row, of kernel width times channels adjacent elements, and the next position's patch begins a
 * stride later. The packed filter has the same segments, each filled up with zeros to whole groups of k, so elements
 * that a group reads beyond a segment have no effect. A pointwise convolution is one long line. */
#include "interpreter/kernels/integer/conv_int_direct.h"

#include "base/alloc.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif
#include <string.h>

/* Gathered patches fill whole tiles where lines are short, which is faster for long sums. */
enum { SHORT_LINE = 8, LONG_PATCH = 2048 };
enum {
    BLOCK_SUMS = 1 << 16,
    LINE_ROWS = 144,
    TILE_ROWS = 12,
    SLACK = 64, /* zeros after the last line, which its last group may read */
};

bool tare_conv_int_is_direct(const struct tare_conv *conv) {
    if (conv->groups != 1 || conv->in_channels == 0 || conv->out_channels == 0) return false;
    if (conv->kernel[0] != 1 || conv->stride[0] != 1 || conv->pad[0] != 0 || conv->out[0] != conv->in[0]) return false;
    for (int i = 0; i < 3; i++) {
        if (conv->base_dilation[i] != 1 || conv->pad[i] < 0 || conv->kernel[i] < 1) return false;
    }
    if (conv->kernel[2] > 1 && conv->out[2] < SHORT_LINE && tare_conv_patch(conv) > LONG_PATCH) return false;
    return conv->dilation[2] == 1 || conv->kernel[2] == 1;
}

static int64_t element_size(enum tare_igemm_form form) {
    return form == TARE_IGEMM_PAIRS ? 2 : 1;
}
/* Elements of a segment: kernel width by channels; groups of four bytes that it fills. */
static int64_t segment_length(const struct tare_conv *conv) {
    return conv->kernel[2] * conv->in_channels;
}
static int64_t segment_groups(enum tare_igemm_form form, const struct tare_conv *conv) {
    return tare_igemm_filled_groups(form, (segment_length(conv) * element_size(form) + 3) / 4);
}
/* k of the packed filter. */
static int64_t packed_k(enum tare_igemm_form form, const struct tare_conv *conv) {
    return conv->kernel[1] * segment_groups(form, conv) * 4 / element_size(form);
}

size_t tare_conv_int_direct_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    return tare_igemm_packed_bytes(form, packed_k(form, conv), conv->out_channels);
}

tare_status tare_conv_int_direct_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv,
                                      const int8_t *filter) {
    const int64_t k = packed_k(form, conv), n = conv->out_channels, length = segment_length(conv);
    if (k == conv->kernel[1] * length) {
        tare_igemm_pack(packed, form, filter, k, n, n, 1);
        return TARE_OK;
    }
    int8_t *filled = tare_calloc((size_t)k, (size_t)n);
    if (!filled) return TARE_NO_MEMORY;
    for (int64_t h = 0; h < conv->kernel[1]; h++)
        memcpy(filled + h * (k / conv->kernel[1]) * n, filter + h * length * n, (size_t)(length * n));
    tare_igemm_pack(packed, form, filled, k, n, n, 1);
    tare_free(filled);
    return TARE_OK;
}

/* ---- blocks ---- */

static bool is_pointwise(const struct tare_conv *conv) {
    return conv->kernel[1] == 1 && conv->kernel[2] == 1 && conv->stride[1] == 1 && conv->stride[2] == 1 &&
           conv->pad[1] == 0 && conv->pad[2] == 0 && conv->out[1] == conv->in[1] && conv->out[2] == conv->in[2];
}

/* Lines and columns of the padded input that `lines` output lines depend on. */
static int64_t reach_h(const struct tare_conv *conv, int64_t lines) {
    return (lines - 1) * conv->stride[1] + (conv->kernel[1] - 1) * conv->dilation[1] + 1;
}
static int64_t reach_w(const struct tare_conv *conv) {
    return (conv->out[2] - 1) * conv->stride[2] + conv->kernel[2];
}

/* Positions of a pointwise block; output lines of another one. */
static int64_t block_positions(const struct tare_conv *conv) {
    const int64_t most = BLOCK_SUMS / conv->out_channels;
    return most >= LINE_ROWS ? LINE_ROWS : most > TILE_ROWS ? most / TILE_ROWS * TILE_ROWS : TILE_ROWS;
}
static int64_t block_lines(const struct tare_conv *conv) {
    const int64_t lines = LINE_ROWS / conv->out[2], fitting = BLOCK_SUMS / (conv->out[2] * conv->out_channels);
    const int64_t most = lines < fitting ? lines : fitting;
    return most < 1 ? 1 : most > conv->out[1] ? conv->out[1] : most;
}

int64_t tare_conv_int_direct_sums(const struct tare_conv *conv) {
    if (is_pointwise(conv)) return block_positions(conv) * conv->out_channels;
    return tare_conv_rows(conv) == 0 ? 0 : block_lines(conv) * conv->out[2] * conv->out_channels;
}

size_t tare_conv_int_direct_scratch(enum tare_igemm_form form, const struct tare_conv *conv) {
    const int64_t pixels = is_pointwise(conv)          ? block_positions(conv)
                           : tare_conv_rows(conv) == 0 ? 0
                                                       : reach_h(conv, block_lines(conv)) * reach_w(conv);
    return (size_t)(pixels * conv->in_channels * element_size(form)) + SLACK;
}

/* ---- copying ---- */

#if TARE_KERNELS_X86
/* Widens `count` elements, a multiple of 16. */
static TARE_TARGET_AVX2 void widen_avx2(int16_t *to, const int8_t *from, int64_t count) {
    for (int64_t i = 0; i < count; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_cvtepi8_epi16(bytes));
    }
}
#endif

static void widen(int16_t *to, const int8_t *from, int64_t count) {
    int64_t i = 0;
#if TARE_KERNELS_X86
    if (tare_cpu_level() >= TARE_CPU_AVX2) {
        i = count - count % 16;
        widen_avx2(to, from, i);
    }
#endif
    for (; i < count; i++)
        to[i] = from[i];
}

/* Writes `count` elements in the form's type. */
static void copy_elements(void *to, const int8_t *from, int64_t count, enum tare_igemm_form form) {
    typedef uint8_t bytes __attribute__((vector_size(16)));
    const bytes flip = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128 };
    int64_t i = 0;
    if (form == TARE_IGEMM_PAIRS) {
        widen(to, from, count);
        return;
    }
    if (form == TARE_IGEMM_TILES) {
        memcpy(to, from, (size_t)count);
        return;
    }
    for (; i + 16 <= count; i += 16) {
        bytes x;
        memcpy(&x, from + i, sizeof x);
        x ^= flip;
        memcpy((char *)to + i, &x, sizeof x);
    }
    for (; i < count; i++)
        ((uint8_t *)to)[i] = (uint8_t)(from[i] ^ -128);
}

static void fill_padding(void *to, const struct tare_conv *conv, int64_t count, enum tare_igemm_form form) {
    if (form != TARE_IGEMM_PAIRS) {
        memset(to, (uint8_t)(form == TARE_IGEMM_QUADS ? conv->pad_value ^ -128 : conv->pad_value), (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ((int16_t *)to)[i] = conv->pad_value;
}

/* Padded input lines from `first` on: line i of the copy is input line first + i. */
static void copy_lines(char *to, const struct tare_conv *conv, const int8_t *image, int64_t first, int64_t lines,
                       enum tare_igemm_form form) {
    const int64_t channels = conv->in_channels, width = reach_w(conv), size = element_size(form);
    const int64_t left = conv->pad[2] < width ? conv->pad[2] : width;
    const int64_t inside = width - left < conv->in[2] ? width - left : conv->in[2];
    for (int64_t i = 0; i < lines; i++, to += width * channels * size) {
        const int64_t line = first + i;
        if (line < 0 || line >= conv->in[1]) {
            fill_padding(to, conv, width * channels, form);
            continue;
        }
        fill_padding(to, conv, left * channels, form);
        copy_elements(to + left * channels * size, image + line * conv->in[2] * channels, inside * channels, form);
        fill_padding(to + (left + inside) * channels * size, conv, (width - left - inside) * channels, form);
    }
}

/* ---- running ---- */

struct direct {
    enum tare_cpu_level level;
    const struct tare_conv_int_sink *sink;
    const struct tare_conv *conv;
    enum tare_igemm_form form;
    const void *packed;
    int32_t *sums;
    char *scratch;
};

/* Lines of positions, `step` bytes apart, whose segments are `segment_step` bytes apart; `first`: the element of the
 * first position and channel in the result. */
static void multiply(const struct direct *d, const struct tare_igemm_lines *lines, int64_t step, int64_t segment_step,
                     int64_t first) {
    const struct tare_conv_int_sink *sink = d->sink;
    const bool requantizes = sink->requantize && tare_igemm_requantizes(d->level);
    const struct tare_igemm_output to = { .sums = d->sums,
                                          .stride = d->conv->out_channels,
                                          .requantize = requantizes ? sink->requantize : NULL,
                                          .element = sink->element + first };
    const struct tare_igemm_segments segments = { .count = d->conv->kernel[1],
                                                  .groups = segment_groups(d->form, d->conv),
                                                  .step = segment_step };
    tare_igemm_segments_at(d->level, &to, d->scratch, step, d->form, d->packed, lines, d->conv->out_channels,
                           &segments);
    if (!requantizes) sink->take(sink->arg, d->sums, first, lines->count * lines->rows * d->conv->out_channels);
}

static void run_pointwise(const struct direct *d, const int8_t *input) {
    const struct tare_conv *conv = d->conv;
    const int64_t positions = tare_conv_rows(conv), most = block_positions(conv), n = conv->out_channels;
    for (int64_t p = 0; p < positions; p += most) {
        const int64_t rows = positions - p < most ? positions - p : most;
        copy_elements(d->scratch, input + p * conv->in_channels, rows * conv->in_channels, d->form);
        memset(d->scratch + rows * conv->in_channels * element_size(d->form), 0, SLACK);
        const struct tare_igemm_lines line = { .count = 1, .rows = rows };
        multiply(d, &line, conv->in_channels * element_size(d->form), 0, p * n);
    }
}

/* One image, whose first sum is element `first`. */
static void run_image(const struct direct *d, const int8_t *image, int64_t first) {
    const struct tare_conv *conv = d->conv;
    const int64_t size = element_size(d->form), n = conv->out_channels, most = block_lines(conv);
    const int64_t line_size = reach_w(conv) * conv->in_channels * size;
    for (int64_t line = 0; line < conv->out[1]; line += most) {
        const int64_t lines = conv->out[1] - line < most ? conv->out[1] - line : most;
        copy_lines(d->scratch, conv, image, line * conv->stride[1] - conv->pad[1], reach_h(conv, lines), d->form);
        memset(d->scratch + reach_h(conv, lines) * line_size, 0, SLACK);
        const struct tare_igemm_lines block = { lines, conv->out[2], conv->stride[1] * line_size };
        multiply(d, &block, conv->stride[2] * conv->in_channels * size, conv->dilation[1] * line_size,
                 first + line * conv->out[2] * n);
    }
}

void tare_conv_int_direct_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                             const struct tare_conv *conv, const int8_t *input, enum tare_igemm_form form,
                             const void *packed, int32_t *sums, void *scratch) {
    const struct direct d = { level, sink, conv, form, packed, sums, scratch };
    const int64_t in = conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t out = conv->out[1] * conv->out[2] * conv->out_channels;
    if (is_pointwise(conv)) {
        run_pointwise(&d, input);
        return;
    }
    for (int64_t i = 0; out > 0 && i < conv->batch * conv->in[0]; i++)
        run_image(&d, input + i * in, i * out);
}
