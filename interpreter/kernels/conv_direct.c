/* Dense convolutions without a gathered copy of every patch: where the taps of a line are adjacent in the input, a
 * line of output positions is a matrix in place, whose rows are a stride apart and whose k comes in one segment a line
 * of taps. Padding is made by copying a few input lines between zeros. It pays where the output has few channels, that
 * is where each gathered element would be used a few times only, and where neighbouring patches overlap, if the lines
 * are long enough for the highest tile. */
#include "interpreter/kernels/conv_direct.h"
#include "base/clamp.h"
#include "base/control.h"
#include "interpreter/kernels/conv.h"

#include <string.h>

enum { MOST_COLUMNS = 128, MOST_COLUMNS_OF_LINES = 512, BLOCK_ROWS = 384, BLOCK_K = TARE_CONV_DIRECT_BLOCK_K };

bool tare_conv_is_direct(const struct tare_conv *conv) {
    const bool repeats = conv->kernel[2] > 1 && conv->out[2] >= TARE_GEMM_TILE_ROWS;
    const int64_t most = repeats ? MOST_COLUMNS_OF_LINES : MOST_COLUMNS;
    if (conv->groups != 1 || conv->out_channels > most || conv->in_channels == 0) return false;
    if (conv->kernel[0] != 1 || conv->stride[0] != 1 || conv->pad[0] != 0 || conv->out[0] != conv->in[0]) return false;
    for (int i = 0; i < 3; i++) {
        if (conv->base_dilation[i] != 1 || conv->pad[i] < 0 || conv->kernel[i] < 1) return false;
    }
    return conv->dilation[2] == 1 || conv->kernel[2] == 1;
}

/* Lines and columns of the input that `lines` lines of the output depend on, including padding. */
static int64_t reach_h(const struct tare_conv *conv, int64_t lines) {
    return (lines - 1) * conv->stride[1] + (conv->kernel[1] - 1) * conv->dilation[1] + 1;
}
static int64_t reach_w(const struct tare_conv *conv) {
    return (conv->out[2] - 1) * conv->stride[2] + conv->kernel[2];
}

static bool is_padded(const struct tare_conv *conv) {
    return conv->pad[1] > 0 || conv->pad[2] > 0 || reach_h(conv, conv->out[1]) > conv->in[1] ||
           reach_w(conv) > conv->in[2];
}

static int64_t most_lines(const struct tare_conv *conv) {
    return conv->out[2] < BLOCK_ROWS ? BLOCK_ROWS / conv->out[2] : 1;
}
static int64_t lines_of_block(const struct tare_conv *conv) {
    return tare_gemm_even_piece(conv->out[1], most_lines(conv), 1);
}

/* For the blocks of fewer lines as well, which may be larger. */
size_t tare_conv_direct_scratch(const struct tare_conv *conv) {
    if (!is_padded(conv) || tare_conv_rows(conv) == 0) return 0;
    const int64_t lines = most_lines(conv) < conv->out[1] ? most_lines(conv) : conv->out[1];
    return (size_t)(reach_h(conv, lines) * reach_w(conv) * conv->in_channels);
}

/* Padded input lines from `first` on: line i of the copy is input line first + i. */
static void copy_lines(float *to, const struct tare_conv *conv, const float *image, int64_t first, int64_t lines) {
    const int64_t channels = conv->in_channels, width = reach_w(conv);
    const int64_t left = conv->pad[2] < width ? conv->pad[2] : width;
    const int64_t inside = width - left < conv->in[2] ? width - left : conv->in[2];
    for (int64_t i = 0; i < lines; i++, to += width * channels) {
        const int64_t line = first + i;
        if (line < 0 || line >= conv->in[1]) {
            memset(to, 0, (size_t)(width * channels) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)(left * channels) * sizeof *to);
        memcpy(to + left * channels, image + line * conv->in[2] * channels, (size_t)(inside * channels) * sizeof *to);
        memset(to + (left + inside) * channels, 0, (size_t)((width - left - inside) * channels) * sizeof *to);
    }
}

/* The block's lines, over all of k in pieces that stay in the first-level cache. */
static void run_block(tare_gemm_block_function *run, struct tare_gemm_block *block, const struct tare_conv *conv,
                      const float *packed, const struct tare_gemm_epilogue *epilogue) {
    const float *a = block->a;
    const struct tare_gemm_ahead ahead = block->ahead;
    const int64_t lines = conv->kernel[1], length = conv->kernel[2] * conv->in_channels;
    const int64_t together = tare_gemm_even_piece(lines, length < BLOCK_K ? BLOCK_K / length : 1, 1);
    const int64_t piece = tare_gemm_even_piece(length, BLOCK_K, 4);
    for (int64_t line = 0; line < lines; line += together) {
        block->segments = lines - line < together ? lines - line : together;
        for (int64_t k = 0; k < length; k += piece) {
            block->length = length - k < piece ? length - k : piece;
            block->a = a + line * block->step + k;
            block->panels = packed + (line * length + k) * TARE_GEMM_PANEL;
            const bool is_last = line + block->segments == lines && k + block->length == length;
            block->next_panels = is_last ? packed : block->panels + block->segments * block->length * TARE_GEMM_PANEL;
            block->accumulate = line > 0 || k > 0;
            block->epilogue = is_last ? epilogue : NULL;
            block->ahead = is_last ? ahead : (struct tare_gemm_ahead){ 0 };
            run(block);
        }
    }
}

/* The input lines that the block of output lines from `line` on needs and the one before it does not: after the last
 * line those of the next image, if there is one. */
static struct tare_gemm_ahead lines_ahead(const struct tare_conv *conv, const float *image, int64_t line,
                                          bool is_last_image) {
    const int64_t most = lines_of_block(conv), line_size = conv->in[2] * conv->in_channels;
    int64_t first = (line - 1) * conv->stride[1] - conv->pad[1] + reach_h(conv, 1), count = most * conv->stride[1];
    if (line >= conv->out[1]) {
        if (is_last_image) return (struct tare_gemm_ahead){ 0 };
        first = conv->in[1], count = reach_h(conv, most) - conv->pad[1];
    } else if (first >= conv->in[1]) {
        return (struct tare_gemm_ahead){ 0 };
    } else {
        first = first < 0 ? 0 : first;
        count = conv->in[1] - first < count ? conv->in[1] - first : count;
    }
    return tare_gemm_rows_ahead(image + first * line_size, count, line_size, line_size,
                                conv->batch * conv->in[0] * conv->in[1] * line_size);
}

static void run_image(tare_gemm_block_function *run, struct tare_gemm_block *block, const struct tare_conv *conv,
                      const float *image, const float *packed, const struct tare_gemm_epilogue *epilogue,
                      float *scratch, bool is_last_image) {
    const bool padded = is_padded(conv);
    const int64_t line_size = (padded ? reach_w(conv) : conv->in[2]) * conv->in_channels;
    const int64_t most = lines_of_block(conv);
    struct tare_gemm_epilogue lines_epilogue;
    float *output = block->c;
    block->a_line = conv->stride[1] * line_size;
    block->step = conv->dilation[1] * line_size;
    for (int64_t line = 0; line < conv->out[1]; line += most) {
        if (tare_control_is_stopped()) return;
        const int64_t first = line * conv->stride[1] - conv->pad[1];
        block->lines = conv->out[1] - line < most ? conv->out[1] - line : most;
        if (padded) copy_lines(scratch, conv, image, first, reach_h(conv, block->lines));
        block->a = padded ? scratch : image + first * line_size;
        block->c = output + line * block->c_line;
        block->panels_are_cached = line > 0 && tare_gemm_panels_stay_cached(block->n, tare_conv_patch(conv));
        block->ahead = lines_ahead(conv, image, line + block->lines, is_last_image);
        if (epilogue) lines_epilogue = tare_epilogue_shifted(epilogue, line * block->c_line, 0);
        run_block(run, block, conv, packed, !epilogue ? NULL : &lines_epilogue);
    }
}

void tare_conv_direct_at(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                         const float *packed, const struct tare_gemm_epilogue *epilogue, float *scratch) {
    const int64_t image_in = conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t image_out = conv->out[1] * conv->out[2] * conv->out_channels;
    struct tare_gemm_block block = {
        .ldc = conv->out_channels,
        .c_line = conv->out[2] * conv->out_channels,
        .lda = conv->stride[2] * conv->in_channels,
        .rows = conv->out[2],
        .n = conv->out_channels,
        .panel_stride = tare_conv_patch(conv) * TARE_GEMM_PANEL,
        .output_is_cached = tare_gemm_output_stays_cached(image_out),
    };
    struct tare_gemm_epilogue image_epilogue;
    if (image_out == 0) return;
    for (int64_t i = 0; i < conv->batch * conv->in[0]; i++) {
        block.c = output + i * image_out;
        if (epilogue) image_epilogue = tare_epilogue_shifted(epilogue, i * image_out, 0);
        run_image(tare_gemm_block_at(level), &block, conv, input + i * image_in, packed,
                  !epilogue ? NULL : &image_epilogue, scratch, i + 1 == conv->batch * conv->in[0]);
    }
}
