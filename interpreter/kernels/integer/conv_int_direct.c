/* Dense int8 convolutions that read the input in place of gathered patches.
 *
 * A block of output lines needs some lines of the padded input. They are copied once, converted to what the product's
 * form requires: bytes with 128 added, or int16. A row of the product is then an output position: its patch consists of
 * one segment per kernel row, of kernel width times channels adjacent elements, and the next position's patch begins a
 * stride later. The packed filter has the same segments, each filled up with zeros to whole groups of k, so elements
 * that a group reads beyond a segment have no effect. A pointwise convolution is one long line.
 *
 * Tiles (AMX) and halves read the input itself where it has no padding. Where lines are short or segments narrow, which
 * would leave tiles partly empty, they multiply gathered patches: each is one segment. */
#include "interpreter/kernels/integer/conv_int_direct.h"

#include "base/alloc.h"
#include "interpreter/kernels/integer/winograd_int.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif
#include <string.h>

/* Gathered patches fill whole tiles where lines are short, which is faster for long sums than the direct kernel, but
 * not than Winograd's algorithm. */
enum { SHORT_LINE = 8, LONG_PATCH = 2048 };
enum {
    BLOCK_SUMS = 1 << 16,
    LINE_ROWS = 144,
    TILE_ROWS = 12,
    LINE_GROUPS = 16, /* gathered patches begin at cache lines, which tiles load in half the time */
    SLACK = 64,       /* zeros after the last line, which its last group may read */
};

/* Patches that fill at most half of a tile, and an eighth if they need not be gathered. */
enum { SMALL_PATCH = 32, SMALL_POSITION = 8 };

enum tare_igemm_form tare_conv_int_form_at(enum tare_cpu_level level, const struct tare_conv *conv) {
    const enum tare_igemm_form form = tare_igemm_form_at(level);
    const int64_t patch = tare_conv_patch(conv);
    const bool is_small = patch <= SMALL_POSITION || (patch <= SMALL_PATCH && patch > conv->in_channels);
    return form == TARE_IGEMM_TILES && is_small ? TARE_IGEMM_QUADS : form;
}

/* The product of this form and of the machine's level takes rows of several lines at once. */
static bool joins_lines(enum tare_igemm_form form) {
    return form == TARE_IGEMM_TILES || (form == TARE_IGEMM_QUADS && tare_cpu_level() >= TARE_CPU_VNNI);
}

bool tare_conv_int_is_direct(enum tare_igemm_form form, const struct tare_conv *conv) {
    if (conv->groups != 1 || conv->in_channels == 0 || conv->out_channels == 0) return false;
    if (conv->kernel[0] != 1 || conv->stride[0] != 1 || conv->pad[0] != 0 || conv->out[0] != conv->in[0]) return false;
    for (int i = 0; i < 3; i++) {
        if (conv->base_dilation[i] != 1 || conv->pad[i] < 0 || conv->kernel[i] < 1) return false;
    }
    if (!joins_lines(form) && !tare_winograd_int_is_for(form, conv) && conv->kernel[2] > 1 &&
        conv->out[2] < SHORT_LINE && tare_conv_patch(conv) > LONG_PATCH)
        return false;
    return conv->dilation[2] == 1 || conv->kernel[2] == 1;
}

static int64_t element_size(enum tare_igemm_form form) {
    return tare_igemm_is_pairs(form) ? 2 : 1;
}
/* Bytes of an element of the input. */
static int64_t input_size(enum tare_igemm_form form) {
    return form == TARE_IGEMM_HALVES ? 2 : 1;
}
static int64_t groups_of(enum tare_igemm_form form, int64_t elements) {
    return tare_igemm_filled_groups(form, (elements * element_size(form) + 3) / 4);
}

/* True if patches are gathered: lines are shorter than half a tile, or the gathered patches take at most half as many
 * steps. */
static bool is_gathered(enum tare_igemm_form form, const struct tare_conv *conv) {
    const int64_t length = conv->kernel[2] * conv->in_channels;
    if (form != TARE_IGEMM_TILES || conv->kernel[1] * conv->kernel[2] == 1) return false;
    return conv->out[2] < SHORT_LINE || 2 * tare_igemm_tile_steps(groups_of(form, conv->kernel[1] * length)) <=
                                            conv->kernel[1] * tare_igemm_tile_steps(groups_of(form, length));
}

int tare_conv_int_direct_packing(enum tare_igemm_form form, const struct tare_conv *conv) {
    return is_gathered(form, conv);
}

/* Segments of a patch; the elements of one: kernel width by channels; the groups of four bytes that it fills. */
static int64_t segment_count(enum tare_igemm_form form, const struct tare_conv *conv) {
    return is_gathered(form, conv) ? 1 : conv->kernel[1];
}
static int64_t segment_length(enum tare_igemm_form form, const struct tare_conv *conv) {
    return tare_conv_patch(conv) / segment_count(form, conv);
}
static int64_t segment_groups(enum tare_igemm_form form, const struct tare_conv *conv) {
    const int64_t groups = groups_of(form, segment_length(form, conv));
    return is_gathered(form, conv) ? (groups + LINE_GROUPS - 1) / LINE_GROUPS * LINE_GROUPS : groups;
}
/* k of the packed filter. */
static int64_t packed_k(enum tare_igemm_form form, const struct tare_conv *conv) {
    return segment_count(form, conv) * segment_groups(form, conv) * 4 / element_size(form);
}

size_t tare_conv_int_direct_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    return tare_igemm_packed_bytes(form, packed_k(form, conv), conv->out_channels);
}

tare_status tare_conv_int_direct_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv,
                                      const int8_t *filter) {
    const int64_t k = packed_k(form, conv), n = conv->out_channels, length = segment_length(form, conv);
    const int64_t count = segment_count(form, conv);
    if (k == count * length) {
        tare_igemm_pack(packed, form, filter, k, n, n, 1);
        return TARE_OK;
    }
    int8_t *filled = tare_calloc((size_t)k, (size_t)n);
    if (!filled) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < count; i++)
        memcpy(filled + i * (k / count) * n, filter + i * length * n, (size_t)(length * n));
    tare_igemm_pack(packed, form, filled, k, n, n, 1);
    tare_free(filled);
    return TARE_OK;
}

/* ---- blocks ---- */

static bool is_pointwise(const struct tare_conv *conv) {
    return conv->kernel[1] == 1 && conv->kernel[2] == 1 && conv->stride[1] == 1 && conv->stride[2] == 1 &&
           conv->pad[1] == 0 && conv->pad[2] == 0 && conv->out[1] == conv->in[1] && conv->out[2] == conv->in[2];
}

/* A strided convolution of the same kind, of which only the positions that it reads are copied. Tiles read them in
 * place. */
static bool is_strided_pointwise(enum tare_igemm_form form, const struct tare_conv *conv) {
    return form != TARE_IGEMM_TILES && conv->kernel[1] == 1 && conv->kernel[2] == 1 && conv->pad[1] == 0 &&
           conv->pad[2] == 0 && (conv->out[1] - 1) * conv->stride[1] < conv->in[1] &&
           (conv->out[2] - 1) * conv->stride[2] < conv->in[2];
}

/* Lines and columns of the padded input that `lines` output lines depend on. */
static int64_t reach_h(const struct tare_conv *conv, int64_t lines) {
    return (lines - 1) * conv->stride[1] + (conv->kernel[1] - 1) * conv->dilation[1] + 1;
}
static int64_t reach_w(const struct tare_conv *conv) {
    return (conv->out[2] - 1) * conv->stride[2] + conv->kernel[2];
}

/* Blocks whose sums are not stored: from `least` to `rows` rows, multiples of those of a tile, with up to `bytes` bytes
 * of input, which stay in the second-level cache with the weights. */
struct block_limits {
    int64_t least, rows, bytes, tile;
};
static struct block_limits limits_of(enum tare_igemm_form form) {
    if (form == TARE_IGEMM_TILES) return (struct block_limits){ 144, 1024, 256 * 1024, 32 };
    return (struct block_limits){ 140, 280, 128 * 1024, 14 };
}

/* Positions of a pointwise block; output lines of another one. `form` matters only if the kernel requantizes: sums that
 * are stored fill a quarter of the second-level cache at most. */
static int64_t most_positions(enum tare_igemm_form form, const struct tare_conv *conv, bool requantizes) {
    const int64_t most = BLOCK_SUMS / conv->out_channels;
    if (requantizes && joins_lines(form)) {
        const struct block_limits limits = limits_of(form);
        const int64_t fitting = limits.bytes / conv->in_channels;
        if (fitting < limits.least) return limits.least;
        return fitting > limits.rows ? limits.rows : fitting / limits.tile * limits.tile;
    }
    return most >= LINE_ROWS ? LINE_ROWS : most > TILE_ROWS ? most / TILE_ROWS * TILE_ROWS : TILE_ROWS;
}
static int64_t block_positions(enum tare_igemm_form form, const struct tare_conv *conv, bool requantizes) {
    const int64_t most = most_positions(form, conv, requantizes), all = tare_conv_rows(conv);
    return most < all ? most : all;
}
static int64_t block_lines(enum tare_igemm_form form, const struct tare_conv *conv, bool requantizes) {
    const bool is_large = requantizes && joins_lines(form);
    const struct block_limits limits = limits_of(form);
    const int64_t input = is_gathered(form, conv) ? conv->out[2] * packed_k(form, conv)
                                                  : reach_w(conv) * conv->stride[1] * conv->in_channels;
    const int64_t lines = (is_large ? limits.rows : LINE_ROWS) / conv->out[2];
    const int64_t fitting = is_large ? limits.bytes / input : BLOCK_SUMS / (conv->out[2] * conv->out_channels);
    const int64_t most = lines < fitting ? lines : fitting;
    return most < 1 ? 1 : most > conv->out[1] ? conv->out[1] : most;
}

int64_t tare_conv_int_direct_sums(const struct tare_conv *conv) {
    if (tare_conv_rows(conv) == 0) return 0;
    const int64_t positions = block_positions(TARE_IGEMM_PAIRS, conv, false);
    if (is_pointwise(conv)) return positions * conv->out_channels;
    const int64_t lines = block_lines(TARE_IGEMM_PAIRS, conv, false) * conv->out[2];
    return (conv->kernel[1] * conv->kernel[2] == 1 && positions > lines ? positions : lines) * conv->out_channels;
}

/* The bytes of a block's copied input, and of its gathered patches, with the slack after each, in multiples of it. */
static int64_t input_bytes(enum tare_igemm_form form, const struct tare_conv *conv, int64_t lines) {
    const int64_t bytes = reach_h(conv, lines) * reach_w(conv) * conv->in_channels * element_size(form);
    return (bytes + 2 * SLACK - 1) / SLACK * SLACK;
}
static int64_t patches_bytes(enum tare_igemm_form form, const struct tare_conv *conv, int64_t lines) {
    return is_gathered(form, conv) ? lines * conv->out[2] * packed_k(form, conv) + SLACK : 0;
}

static size_t block_bytes(enum tare_igemm_form form, const struct tare_conv *conv, bool requantizes) {
    if (is_pointwise(conv) || is_strided_pointwise(form, conv))
        return (size_t)(block_positions(form, conv, requantizes) * conv->in_channels * element_size(form) + SLACK);
    if (tare_conv_rows(conv) == 0) return SLACK;
    const int64_t lines = block_lines(form, conv, requantizes);
    return (size_t)(input_bytes(form, conv, lines) + patches_bytes(form, conv, lines));
}

size_t tare_conv_int_direct_scratch(enum tare_igemm_form form, const struct tare_conv *conv) {
    const size_t bytes = block_bytes(form, conv, false), requantized = block_bytes(form, conv, true);
    return bytes > requantized ? bytes : requantized;
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

/* Copies `count` bytes with 128 added. */
static TARE_TARGET_AVX512 void copy_flipped_avx512(uint8_t *to, const int8_t *from, int64_t count) {
    const __m512i flip = _mm512_set1_epi8(-128);
    int64_t i = 0;
    for (; i + 64 <= count; i += 64)
        _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flip));
    if (i == count) return;
    const __mmask64 mask = UINT64_MAX >> (64 - (count - i));
    _mm512_mask_storeu_epi8(to + i, mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, from + i), flip));
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

/* Copies `count` bytes with 128 added, which makes an int8 number unsigned. */
static void copy_flipped(uint8_t *to, const int8_t *from, int64_t count) {
    typedef uint8_t bytes __attribute__((vector_size(16)));
    const bytes flip = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128 };
    int64_t i = 0;
#if TARE_KERNELS_X86
    if (tare_cpu_level() >= TARE_CPU_AVX512) {
        copy_flipped_avx512(to, from, count);
        return;
    }
#endif
    for (; i + 16 <= count; i += 16) {
        bytes x;
        memcpy(&x, from + i, sizeof x);
        x ^= flip;
        memcpy(to + i, &x, sizeof x);
    }
    for (; i < count; i++)
        to[i] = (uint8_t)(from[i] ^ -128);
}

/* Writes `count` elements in the form's type. */
static void copy_elements(void *to, const char *from, int64_t count, enum tare_igemm_form form) {
    if (form == TARE_IGEMM_PAIRS)
        widen(to, (const int8_t *)from, count);
    else if (form == TARE_IGEMM_TILES || form == TARE_IGEMM_HALVES)
        memcpy(to, from, (size_t)(count * input_size(form)));
    else
        copy_flipped(to, (const int8_t *)from, count);
}

static void fill_padding(void *to, const struct tare_conv *conv, int64_t count, enum tare_igemm_form form) {
    if (!tare_igemm_is_pairs(form)) {
        memset(to, (uint8_t)(form == TARE_IGEMM_QUADS ? conv->pad_value ^ -128 : conv->pad_value), (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ((int16_t *)to)[i] = conv->pad_value;
}

/* Padded input lines from `first` on: line i of the copy is input line first + i. */
static void copy_lines(char *to, const struct tare_conv *conv, const char *image, int64_t first, int64_t lines,
                       enum tare_igemm_form form) {
    const int64_t channels = conv->in_channels, width = reach_w(conv), size = element_size(form);
    const int64_t left = conv->pad[2] < width ? conv->pad[2] : width;
    const int64_t inside = width - left < conv->in[2] ? width - left : conv->in[2];
    const int64_t line_bytes = conv->in[2] * channels * input_size(form);
    for (int64_t i = 0; i < lines; i++, to += width * channels * size) {
        const int64_t line = first + i;
        if (line < 0 || line >= conv->in[1]) {
            fill_padding(to, conv, width * channels, form);
            continue;
        }
        fill_padding(to, conv, left * channels, form);
        copy_elements(to + left * channels * size, image + line * line_bytes, inside * channels, form);
        fill_padding(to + (left + inside) * channels * size, conv, (width - left - inside) * channels, form);
    }
}

#if TARE_KERNELS_X86
/* Copies the segments of a patch as whole vectors; the next segment, the next patch or the slack overwrites the rest.
 */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void copy_patch(char *to, const char *from, int64_t segments, int64_t segment_step,
                                                    int64_t length) {
    for (int64_t s = 0; s < segments; s++, to += length, from += segment_step) {
        for (int64_t i = 0; i < length; i += 32) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
            _mm256_storeu_si256((__m256i *)(void *)(to + i), x);
        }
    }
}

/* Gathers the patches of `lines` output lines, `step` bytes apart, from copied input lines. */
static TARE_TARGET_AVX2 void gather_patches(char *to, const struct tare_conv *conv, const char *input, int64_t lines,
                                            int64_t step) {
    const int64_t line_size = reach_w(conv) * conv->in_channels, length = conv->kernel[2] * conv->in_channels;
    const int64_t segments = conv->kernel[1], segment_step = conv->dilation[1] * line_size;
    for (int64_t line = 0; line < lines; line++) {
        const char *from = input + line * conv->stride[1] * line_size;
        for (int64_t x = 0; x < conv->out[2]; x++, to += step, from += conv->stride[2] * conv->in_channels)
            copy_patch(to, from, segments, segment_step, length);
    }
}
#endif

/* ---- running ---- */

struct direct {
    enum tare_cpu_level level;
    const struct tare_conv_int_sink *sink;
    const struct tare_conv *conv;
    enum tare_igemm_form form;
    const void *packed;
    int32_t *sums;
    char *scratch;
    bool requantizes;
    bool passes; /* requantizes, and passes each block on */
};

/* Lines of positions, `step` bytes apart, whose segments are `segment_step` bytes apart; `first`: the element of the
 * first position and channel in the result. */
static void multiply(const struct direct *d, const char *a, const struct tare_igemm_lines *lines, int64_t step,
                     int64_t segment_step, int64_t first) {
    const struct tare_conv_int_sink *sink = d->sink;
    struct tare_requantize block;
    struct tare_igemm_output to = { .sums = d->sums,
                                    .stride = d->conv->out_channels,
                                    .requantize = d->requantizes || d->passes ? sink->requantize : NULL,
                                    .element = sink->element + first };
    if (d->passes && !sink->requantize->real.floats) { /* in the memory of the sums */
        block = *sink->requantize;
        block.real.floats = (float *)(void *)d->sums;
        if (block.real.addend) block.real.addend += to.element;
        to.requantize = &block;
        to.element = 0;
    }
    const struct tare_igemm_segments segments = { .count = segment_count(d->form, d->conv),
                                                  .groups = segment_groups(d->form, d->conv),
                                                  .step = segment_step };
    const struct tare_igemm_columns columns = { sink->first_channel, sink->channels };
    tare_igemm_segments_at(d->level, &to, a, step, d->form, d->packed, lines, d->conv->out_channels,
                           sink->channels ? &columns : NULL, &segments);
    const int64_t count = lines->count * lines->rows * d->conv->out_channels;
    if (d->passes)
        sink->take_floats(sink->arg, to.requantize->real.floats + to.element, first, count);
    else if (!d->requantizes)
        sink->take(sink->arg, d->sums, first, count);
}

/* True if the product may read the input itself, of which `is_last` is the end: groups that are not filled would read
 * beyond it. */
static bool reads_input(const struct direct *d, bool is_last) {
    const struct tare_conv *conv = d->conv;
    if (input_size(d->form) != element_size(d->form) || d->form == TARE_IGEMM_QUADS) return false;
    if (is_gathered(d->form, conv) || conv->pad[1] > 0 || conv->pad[2] > 0) return false;
    if (reach_h(conv, conv->out[1]) > conv->in[1] || reach_w(conv) > conv->in[2]) return false;
    return !is_last || segment_groups(d->form, conv) * 4 == segment_length(d->form, conv) * element_size(d->form);
}

#if TARE_KERNELS_X86
/* Copies 16 elements. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void copy_16(char *to, const int8_t *from, const bool is_pairs) {
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)from);
    if (is_pairs)
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_cvtepi8_epi16(x));
    else
        _mm_storeu_si128((__m128i *)(void *)to, _mm_xor_si128(x, _mm_set1_epi8(-128)));
}

/* Copies positions of at least 16 elements, `step` elements apart. The last elements of a position may be written
 * twice.
 */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void copy_positions_apart(char *to, const int8_t *from, int64_t count, int64_t step,
                                                              int64_t channels, const bool is_pairs) {
    const int64_t size = is_pairs ? 2 : 1, last = channels - 16;
    for (; count > 0; count--, from += step, to += channels * size) {
        for (int64_t c = 0; c < last; c += 16)
            copy_16(to + c * size, from + c, is_pairs);
        copy_16(to + last * size, from + last, is_pairs);
    }
}

static TARE_TARGET_AVX2 void copy_apart_avx2(char *to, const int8_t *from, int64_t count, int64_t step,
                                             int64_t channels, enum tare_igemm_form form) {
    if (form == TARE_IGEMM_PAIRS)
        copy_positions_apart(to, from, count, step, channels, true);
    else
        copy_positions_apart(to, from, count, step, channels, false);
}
#endif

static void copy_apart(char *to, const char *from, int64_t count, int64_t step, int64_t channels,
                       enum tare_igemm_form form) {
#if TARE_KERNELS_X86
    const bool converts = form == TARE_IGEMM_PAIRS || form == TARE_IGEMM_QUADS;
    if (tare_cpu_level() >= TARE_CPU_AVX2 && channels >= 16 && converts) {
        copy_apart_avx2(to, (const int8_t *)from, count, step, channels, form);
        return;
    }
#endif
    for (; count > 0; count--, from += step * input_size(form), to += channels * element_size(form))
        copy_elements(to, from, channels, form);
}

/* Copies `rows` positions of the input that a strided pointwise convolution reads, from output position `first` on. */
static void copy_positions(char *to, const struct tare_conv *conv, const char *input, int64_t first, int64_t rows,
                           enum tare_igemm_form form) {
    const int64_t channels = conv->in_channels, width = conv->out[2], end = first + rows;
    for (int64_t i = first, count; i < end; i += count, to += count * channels * element_size(form)) {
        const int64_t x = i % width, line = i / width % conv->out[1], image = i / width / conv->out[1];
        const int64_t row = image * conv->in[1] + line * conv->stride[1];
        const char *from = input + (row * conv->in[2] + x * conv->stride[2]) * channels * input_size(form);
        count = width - x < end - i ? width - x : end - i;
        copy_apart(to, from, count, conv->stride[2] * channels, channels, form);
    }
}

static void run_pointwise(const struct direct *d, const char *input) {
    const struct tare_conv *conv = d->conv;
    const int64_t positions = tare_conv_rows(conv), n = conv->out_channels;
    const int64_t most = block_positions(d->form, conv, d->requantizes);
    for (int64_t p = 0; p < positions; p += most) {
        const int64_t rows = positions - p < most ? positions - p : most;
        const struct tare_igemm_lines line = { .count = 1, .rows = rows };
        const void *a = input + p * conv->in_channels * input_size(d->form);
        if (!is_pointwise(conv) || !reads_input(d, p + rows == positions)) {
            if (is_pointwise(conv))
                copy_elements(d->scratch, a, rows * conv->in_channels, d->form);
            else
                copy_positions(d->scratch, conv, input, p, rows, d->form);
            memset(d->scratch + rows * conv->in_channels * element_size(d->form), 0, SLACK);
            a = d->scratch;
        }
        multiply(d, a, &line, conv->in_channels * element_size(d->form), 0, p * n);
    }
}

/* Output lines from line `line` on, whose first sum is element `first`, with a copy of their input. */
static void run_copied(const struct direct *d, const char *image, int64_t line, int64_t lines, int64_t first) {
    const struct tare_conv *conv = d->conv;
    const int64_t size = element_size(d->form), line_size = reach_w(conv) * conv->in_channels * size;
    copy_lines(d->scratch, conv, image, line * conv->stride[1] - conv->pad[1], reach_h(conv, lines), d->form);
    memset(d->scratch + reach_h(conv, lines) * line_size, 0, SLACK);
#if TARE_KERNELS_X86
    if (is_gathered(d->form, conv)) {
        const struct tare_igemm_lines block = { .count = 1, .rows = lines * conv->out[2] };
        const int64_t step = packed_k(d->form, conv);
        char *patches = d->scratch + input_bytes(d->form, conv, lines);
        gather_patches(patches, conv, d->scratch, lines, step);
        multiply(d, patches, &block, step, 0, first);
        return;
    }
#endif
    const struct tare_igemm_lines block = { lines, conv->out[2], conv->stride[1] * line_size };
    multiply(d, d->scratch, &block, conv->stride[2] * conv->in_channels * size, conv->dilation[1] * line_size, first);
}

/* One image, whose first sum is element `first`. */
static void run_image(const struct direct *d, const char *image, int64_t first, bool is_last) {
    const struct tare_conv *conv = d->conv;
    const int64_t most = block_lines(d->form, conv, d->requantizes), position = conv->in_channels * input_size(d->form);
    const int64_t line_size = conv->in[2] * position;
    for (int64_t line = 0; line < conv->out[1]; line += most) {
        const int64_t lines = conv->out[1] - line < most ? conv->out[1] - line : most;
        const int64_t element = first + line * conv->out[2] * conv->out_channels;
        if (!reads_input(d, is_last && line + lines == conv->out[1])) {
            run_copied(d, image, line, lines, element);
            continue;
        }
        const struct tare_igemm_lines block = { lines, conv->out[2], conv->stride[1] * line_size };
        multiply(d, image + line * block.a_step, &block, conv->stride[2] * position, conv->dilation[1] * line_size,
                 element);
    }
}

void tare_conv_int_direct_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                             const struct tare_conv *conv, const void *input, enum tare_igemm_form form,
                             const void *packed, int32_t *sums, void *scratch) {
    const bool requantizes = sink->requantize && tare_igemm_requantizes(level);
    const bool passes = requantizes && sink->requantize->real.is_passed;
    const struct direct d = { level, sink, conv, form, packed, sums, scratch, requantizes && !passes, passes };
    const int64_t in = conv->in[1] * conv->in[2] * conv->in_channels * input_size(form),
                  images = conv->batch * conv->in[0];
    const int64_t out = conv->out[1] * conv->out[2] * conv->out_channels;
    if (is_pointwise(conv) || is_strided_pointwise(form, conv)) {
        run_pointwise(&d, input);
        return;
    }
    for (int64_t i = 0; out > 0 && i < images; i++)
        run_image(&d, (const char *)input + i * in, i * out, i == images - 1);
}
