#include "interpreter/kernels/integer/conv_int.h"

#include "base/alloc.h"
#include "interpreter/kernels/integer/depthwise_lines.h"

#include <string.h>

/* ---- dense ---- */

static size_t group_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    return tare_igemm_packed_bytes(form, tare_conv_patch(conv), conv->out_channels / conv->groups);
}

size_t tare_conv_int_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    return group_bytes(form, conv) * (size_t)conv->groups;
}

void tare_conv_int_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv, const int8_t *filter) {
    const int64_t n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++)
        tare_igemm_pack((char *)packed + (size_t)g * group_bytes(form, conv), form, filter + g * n,
                        tare_conv_patch(conv), n, conv->out_channels, 1);
}

bool tare_conv_int_pack_int32(void *packed, const struct tare_conv *conv, const int32_t *filter) {
    const int64_t n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++) {
        if (!tare_igemm_pack_int32((char *)packed + (size_t)g * group_bytes(TARE_IGEMM_PAIRS, conv), filter + g * n,
                                   tare_conv_patch(conv), n, conv->out_channels, 1))
            return false;
    }
    return true;
}

static void gather(const void *source, void *block, int64_t stride, int64_t first_row, int64_t rows, int64_t first_k,
                   int64_t count_k) {
    tare_conv_gather(source, block, stride, first_row, rows, first_k, count_k);
}

void tare_conv_int_dense(int32_t *output, const struct tare_conv *conv, const void *input, enum tare_igemm_form form,
                         const void *packed, void *scratch) {
    const int64_t n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++) {
        const struct tare_conv_patches patches = { conv, input, g, tare_igemm_is_pairs(form) ? 2 : 1 };
        const struct tare_igemm_rows rows = { .gather = gather, .source = &patches };
        tare_igemm(output + g * n, conv->out_channels, &rows, form,
                   (const char *)packed + (size_t)g * group_bytes(form, conv), tare_conv_rows(conv), n,
                   tare_conv_patch(conv), scratch);
    }
}

/* Rows whose sums fill a quarter of the second-level cache at most, in whole tiles. */
enum { BLOCK_SUMS = 1 << 16, BLOCK_ROWS = 144, TILE_ROWS = 12 };

static int64_t block_rows(const struct tare_conv *conv) {
    const int64_t most = conv->out_channels > 0 ? BLOCK_SUMS / conv->out_channels : BLOCK_ROWS;
    return most >= BLOCK_ROWS ? BLOCK_ROWS : most > TILE_ROWS ? most / TILE_ROWS * TILE_ROWS : TILE_ROWS;
}

int64_t tare_conv_int_block_sums(const struct tare_conv *conv) {
    return block_rows(conv) * conv->out_channels;
}

void tare_conv_int_dense_to(const struct tare_conv_int_sink *sink, const struct tare_conv *conv, const void *input,
                            enum tare_igemm_form form, const void *packed, int32_t *sums, void *scratch) {
    const int64_t n = conv->out_channels / conv->groups, rows = tare_conv_rows(conv);
    for (int64_t row = 0; row < rows; row += block_rows(conv)) {
        const int64_t count = rows - row < block_rows(conv) ? rows - row : block_rows(conv);
        for (int64_t g = 0; g < conv->groups; g++) {
            const struct tare_conv_patches patches = { conv, input, g, tare_igemm_is_pairs(form) ? 2 : 1 };
            const struct tare_igemm_rows a = { .gather = gather, .source = &patches, .first = row };
            tare_igemm(sums + g * n, conv->out_channels, &a, form,
                       (const char *)packed + (size_t)g * group_bytes(form, conv), count, n, tare_conv_patch(conv),
                       scratch);
        }
        sink->take(sink->arg, sums, row * conv->out_channels, count * conv->out_channels);
    }
}

/* ---- depthwise ---- */

/* Of levels that do not have the form for lines. */
static tare_depthwise_kernel *kernel_of(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_depthwise_row_int8_avx512;
    if (level >= TARE_CPU_AVX2) return tare_depthwise_row_int8_avx2;
#endif
    (void)level;
    return tare_depthwise_row_int8_plain;
}

bool tare_conv_int_depthwise_pads(enum tare_cpu_level level, const struct tare_conv *conv) {
    return tare_depthwise_form_at(level, conv) != NULL;
}

int tare_conv_int_depthwise_packing(enum tare_cpu_level level, const struct tare_conv *conv) {
    return tare_depthwise_is_tiled(level, conv);
}

size_t tare_conv_int_depthwise_packed_bytes(enum tare_cpu_level level, const struct tare_conv *conv) {
    const struct tare_depthwise_form *form = tare_depthwise_form_at(level, conv);
    return form ? tare_depthwise_packed_bytes(form, conv) : (size_t)(tare_conv_patch(conv) * conv->out_channels);
}

void tare_conv_int_depthwise_pack(enum tare_cpu_level level, void *packed, const struct tare_conv *conv,
                                  const int8_t *filter) {
    const struct tare_depthwise_form *form = tare_depthwise_form_at(level, conv);
    if (form)
        tare_depthwise_pack(packed, form, conv, filter);
    else
        memcpy(packed, filter, (size_t)(tare_conv_patch(conv) * conv->out_channels));
}

size_t tare_conv_int_depthwise_scratch_bytes(enum tare_cpu_level level, const struct tare_conv *conv) {
    const struct tare_depthwise_form *form = tare_depthwise_form_at(level, conv);
    return form ? tare_depthwise_scratch_bytes(form, conv) : 0;
}

/* Consecutive output lines that are computed together; those of an image only. */
static int64_t lines_together(enum tare_cpu_level level, const struct tare_conv *conv) {
    const struct tare_depthwise_form *form = tare_depthwise_form_at(level, conv);
    return form ? tare_depthwise_lines(form, conv) : 1;
}

/* `count` lines from line `line` of all images' output lines on. */
static void depthwise_lines(enum tare_cpu_level level, const struct tare_igemm_output *output,
                            const struct tare_conv *conv, const int8_t *input, int64_t line, int64_t count,
                            const void *packed, void *scratch) {
    const int64_t slice = conv->in[1] * conv->in[2] * conv->in_channels, lines = conv->out[0] * conv->out[1];
    const struct tare_depthwise_form *form = tare_depthwise_form_at(level, conv);
    if (form) {
        tare_depthwise_run(form, output, conv, input + line / conv->out[1] * slice, line % conv->out[1], count, packed,
                           scratch);
        return;
    }
    tare_depthwise_one_line(kernel_of(level), conv, output->sums, input + line / lines * conv->in[0] * slice, packed,
                            sizeof(int8_t), line % lines);
}

static int64_t line_count(enum tare_cpu_level level, const struct tare_conv *conv, int64_t line) {
    const int64_t most = lines_together(level, conv), left = conv->out[1] - line % conv->out[1];
    return left < most ? left : most;
}

void tare_conv_int_depthwise_at(enum tare_cpu_level level, int32_t *output, const struct tare_conv *conv,
                                const int8_t *input, const void *packed, void *scratch) {
    const int64_t lines = conv->batch * conv->out[0] * conv->out[1], size = conv->out[2] * conv->out_channels;
    for (int64_t i = 0, count; i < lines; i += count) {
        const struct tare_igemm_output to = { .sums = output + i * size, .stride = conv->out_channels };
        count = line_count(level, conv, i);
        depthwise_lines(level, &to, conv, input, i, count, packed, scratch);
    }
}

int64_t tare_conv_int_depthwise_sums(enum tare_cpu_level level, const struct tare_conv *conv) {
    return lines_together(level, conv) * conv->out[2] * conv->out_channels;
}

void tare_conv_int_depthwise_to(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                                const struct tare_conv *conv, const int8_t *input, const void *packed, int32_t *sums,
                                void *scratch) {
    const int64_t lines = conv->batch * conv->out[0] * conv->out[1], size = conv->out[2] * conv->out_channels;
    const struct tare_requantize *requantize = tare_depthwise_form_at(level, conv) ? sink->requantize : NULL;
    for (int64_t i = 0, count; i < lines; i += count) {
        const struct tare_igemm_output to = {
            .sums = sums, .stride = conv->out_channels, .requantize = requantize, .element = sink->element + i * size
        };
        count = line_count(level, conv, i);
        depthwise_lines(level, &to, conv, input, i, count, packed, scratch);
        if (!requantize) sink->take(sink->arg, sums, i * size, count * size);
    }
}
