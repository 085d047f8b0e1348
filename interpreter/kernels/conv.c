#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/conv_direct.h"

#include "base/alloc.h"
#include "base/clamp.h"

#include <string.h>

/* Input index of a tap on axis `axis`, -1 where there is only padding or a dilation's zero. */
static int64_t input_index(const struct tare_conv *conv, int axis, int64_t out, int64_t tap) {
    const int64_t at = out * conv->stride[axis] + tap * conv->dilation[axis] - conv->pad[axis];
    const int64_t step = conv->base_dilation[axis];
    if (step == 1) return at >= 0 && at < conv->in[axis] ? at : -1; /* a division costs more than the copy it finds */
    if (at < 0 || at % step != 0 || at / step >= conv->in[axis]) return -1;
    return at / step;
}

/* ---- patches ---- */

/* memcpy for pieces that are mostly short: moves of a fixed size, of which the last overlaps the one before it. */
static void copy(char *to, const char *from, int64_t size) {
    if (size > 256) {
        memcpy(to, from, (size_t)size);
    } else if (size >= 16) {
        for (int64_t i = 0; i < size - 16; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, from, 4);
        memcpy(to + size - 4, from + size - 4, 4);
    } else {
        for (int64_t i = 0; i < size; i++)
            to[i] = from[i];
    }
}

/* What stays the same over the rows of one gathering. */
struct gathering {
    const struct tare_conv *conv;
    int64_t size, channels; /* bytes an element; channels of the group */
    int64_t pixel;          /* bytes from one position of a line to the next */
    bool side_by_side;      /* the taps of a line are adjacent in the input */
};

/* Elements [first, last) of the part of a patch that is in one input line: taps of kernel width by channels. `line`
 * is the input line at the group's first channel. */
static void gather_line(const struct gathering *g, char *to, const char *line, int64_t out_w, int64_t first,
                        int64_t last) {
    const struct tare_conv *conv = g->conv;
    if (g->side_by_side) {
        const int64_t start = (out_w * conv->stride[2] - conv->pad[2]) * g->channels;
        const int64_t low = tare_clamp(-start, first, last);
        const int64_t high = tare_clamp(conv->in[2] * g->channels - start, low, last);
        if (low > first) memset(to, 0, (size_t)((low - first) * g->size));
        if (high > low) copy(to + (low - first) * g->size, line + (start + low) * g->size, (high - low) * g->size);
        if (last > high) memset(to + (high - first) * g->size, 0, (size_t)((last - high) * g->size));
        return;
    }
    int64_t tap = first / g->channels, c = first % g->channels;
    for (int64_t at = first; at < last; tap++, c = 0) {
        const int64_t count = g->channels - c < last - at ? g->channels - c : last - at;
        const int64_t w = input_index(conv, 2, out_w, tap);
        if (w < 0)
            memset(to, 0, (size_t)(count * g->size));
        else
            copy(to, line + w * g->pixel + c * g->size, count * g->size);
        to += count * g->size;
        at += count;
    }
}

/* One row of the block: the patch at out[] of an image, from tap line (kd, kh) and element `first` in it on. */
static void gather_row(const struct gathering *g, char *to, const char *image, const int64_t out[3], int64_t kd,
                       int64_t kh, int64_t first, int64_t count) {
    const struct tare_conv *conv = g->conv;
    const int64_t line_length = conv->kernel[2] * g->channels, line_size = conv->in[2] * g->pixel;
    int64_t d = input_index(conv, 0, out[0], kd);
    while (count > 0) {
        const int64_t last = line_length - first < count ? line_length : first + count;
        const int64_t h = d < 0 ? -1 : input_index(conv, 1, out[1], kh);
        if (h < 0)
            memset(to, 0, (size_t)((last - first) * g->size));
        else
            gather_line(g, to, image + (d * conv->in[1] + h) * line_size, out[2], first, last);
        to += (last - first) * g->size;
        count -= last - first;
        first = 0;
        if (++kh == conv->kernel[1]) {
            kh = 0;
            d = input_index(conv, 0, out[0], ++kd);
        }
    }
}

void tare_conv_gather(const struct tare_conv_patches *patches, void *block, int64_t stride, int64_t first_row,
                      int64_t rows, int64_t first_k, int64_t count_k) {
    const struct tare_conv *conv = patches->conv;
    const int64_t channels = conv->in_channels / conv->groups, size = (int64_t)patches->element_size;
    const struct gathering g = { .conv = conv,
                                 .size = size,
                                 .channels = channels,
                                 .pixel = conv->in_channels * size,
                                 .side_by_side =
                                     conv->groups == 1 && conv->dilation[2] == 1 && conv->base_dilation[2] == 1 };
    const int64_t image_size = conv->in[0] * conv->in[1] * conv->in[2] * g.pixel;
    const int64_t line_length = conv->kernel[2] * channels, tap_line = first_k / line_length;
    const int64_t line = first_row / conv->out[2], slice = line / conv->out[1];
    int64_t out[3] = { slice % conv->out[0], line % conv->out[1], first_row % conv->out[2] };
    const char *image =
        (const char *)patches->input + slice / conv->out[0] * image_size + patches->group * channels * size;
    for (int64_t i = 0; i < rows; i++) {
        gather_row(&g, (char *)block + i * stride * size, image, out, tap_line / conv->kernel[1],
                   tap_line % conv->kernel[1], first_k % line_length, count_k);
        if (++out[2] < conv->out[2]) continue;
        out[2] = 0;
        if (++out[1] < conv->out[1]) continue;
        out[1] = 0;
        if (++out[0] < conv->out[0]) continue;
        out[0] = 0;
        image += image_size;
    }
}

static void gather_floats(const void *source, float *block, int64_t stride, int64_t first_row, int64_t rows,
                          int64_t first_k, int64_t count_k) {
    tare_conv_gather(source, block, stride, first_row, rows, first_k, count_k);
}

/* ---- dilated inputs: one convolution of the input itself for each phase of the output ---- */

/* The panels of each phase, one after another. Either `floats` or `bytes` is the filter. */
static void pack_phases(float *packed, const struct tare_conv *conv, const float *floats, const int8_t *bytes) {
    const int64_t n = conv->out_channels, channels = conv->in_channels;
    struct tare_conv_phase phase;
    for (int64_t p = 0; tare_conv_take_phase(&phase, conv, p); p++) {
        const int64_t *taps = phase.conv.kernel, count = taps[0] * taps[1] * taps[2];
        for (int64_t i = 0; i < (n + TARE_GEMM_PANEL - 1) / TARE_GEMM_PANEL * count; i++) {
            const int64_t column = i / count * TARE_GEMM_PANEL, t = i % count;
            const int64_t columns = n - column < TARE_GEMM_PANEL ? n - column : TARE_GEMM_PANEL;
            const int64_t at = tare_conv_phase_tap(&phase, conv, t) * channels * n + column;
            if (bytes)
                tare_gemm_pack_int8(packed, bytes + at, channels, columns, n, 1);
            else
                tare_gemm_pack(packed, floats + at, channels, columns, n, 1);
            packed += channels * TARE_GEMM_PANEL;
        }
    }
}

struct phase_rows {
    struct tare_conv_patches patches;
    int64_t first; /* row of the phase */
};

static void gather_phase(const void *source, float *block, int64_t stride, int64_t first_row, int64_t rows,
                         int64_t first_k, int64_t count_k) {
    const struct phase_rows *from = source;
    tare_conv_gather(&from->patches, block, stride, from->first + first_row, rows, first_k, count_k);
}

/* One output line after another: its positions of a phase are rows of the result, some positions apart. */
static void run_phases(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                       const float *packed, const struct tare_gemm_epilogue *epilogue, float *scratch) {
    const int64_t n = conv->out_channels;
    struct tare_conv_phase phase;
    for (int64_t p = 0; tare_conv_take_phase(&phase, conv, p); p++) {
        const struct tare_conv *part = &phase.conv;
        const int64_t k = tare_conv_patch(part), lines = part->batch * part->out[0] * part->out[1];
        for (int64_t line = 0; line < lines; line++) {
            const struct phase_rows source = { { part, input, 0, sizeof(float) }, line * part->out[2] };
            const struct tare_gemm_rows rows = { .gather = gather_phase, .source = &source };
            const int64_t at = tare_conv_phase_line(&phase, conv, line) * n;
            struct tare_gemm_epilogue shifted;
            if (epilogue) shifted = tare_epilogue_shifted(epilogue, at, 0);
            tare_gemm_at(level, output + at, conv->base_dilation[2] * n, &rows, packed, part->out[2], n, k,
                         epilogue ? &shifted : NULL, scratch);
        }
        packed += tare_gemm_packed_floats(k, n);
    }
}

/* ---- dense ---- */

size_t tare_conv_packed_floats(const struct tare_conv *conv) {
    return (size_t)conv->groups * tare_gemm_packed_floats(tare_conv_patch(conv), conv->out_channels / conv->groups);
}

void tare_conv_pack(float *packed, const struct tare_conv *conv, const float *filter) {
    const int64_t k = tare_conv_patch(conv), n = conv->out_channels / conv->groups;
    if (tare_conv_has_phases(conv)) {
        pack_phases(packed, conv, filter, NULL);
        return;
    }
    for (int64_t g = 0; g < conv->groups; g++)
        tare_gemm_pack(packed + (size_t)g * tare_gemm_packed_floats(k, n), filter + g * n, k, n, conv->out_channels, 1);
}

void tare_conv_pack_int8(float *packed, const struct tare_conv *conv, const int8_t *filter) {
    const int64_t k = tare_conv_patch(conv), n = conv->out_channels / conv->groups;
    if (tare_conv_has_phases(conv)) {
        pack_phases(packed, conv, NULL, filter);
        return;
    }
    for (int64_t g = 0; g < conv->groups; g++)
        tare_gemm_pack_int8(packed + (size_t)g * tare_gemm_packed_floats(k, n), filter + g * n, k, n,
                            conv->out_channels, 1);
}

/* One tap, no stride, no padding: the input is the matrix. */
static bool is_pointwise(const struct tare_conv *conv) {
    for (int i = 0; i < 3; i++) {
        if (conv->kernel[i] != 1 || conv->stride[i] != 1 || conv->base_dilation[i] != 1 || conv->pad[i] != 0 ||
            conv->out[i] != conv->in[i])
            return false;
    }
    return true;
}

size_t tare_conv_dense_scratch(const struct tare_conv *conv) {
    const bool has_one_tap = conv->kernel[1] == 1 && conv->kernel[2] == 1; /* some of its lines may be pointwise */
    const size_t direct = tare_conv_direct_scratch(conv), product = tare_gemm_scratch_floats();
    if (is_pointwise(conv) || !tare_conv_is_direct(conv)) return product;
    return has_one_tap && product > direct ? product : direct;
}

static bool is_direct(const struct tare_conv *conv) {
    return !is_pointwise(conv) && tare_conv_is_direct(conv);
}

bool tare_conv_adds_in_place(const struct tare_conv *conv) {
    const int64_t most = is_pointwise(conv) ? TARE_GEMM_BLOCK_K : TARE_CONV_DIRECT_BLOCK_K;
    return !tare_conv_is_depthwise(conv) && tare_conv_patch(conv) <= most;
}

/* Output channels [first, first + count) of group `g`. */
static void run_group(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                      const float *packed, const struct tare_gemm_epilogue *epilogue, float *scratch, int64_t g,
                      int64_t first, int64_t count) {
    const int64_t k = tare_conv_patch(conv), n = conv->out_channels / conv->groups, column = g * n + first;
    const struct tare_conv_patches patches = { conv, input, g, sizeof(float) };
    struct tare_gemm_rows rows = { .gather = gather_floats, .source = &patches };
    struct tare_gemm_epilogue columns;
    if (epilogue) columns = tare_epilogue_shifted(epilogue, column, column);
    if (is_pointwise(conv))
        rows = (struct tare_gemm_rows){ .data = input + g * (conv->in_channels / conv->groups),
                                        .stride = conv->in_channels };
    tare_gemm_at(level, output + column, conv->out_channels, &rows,
                 packed + (size_t)g * tare_gemm_packed_floats(k, n) + first * k, tare_conv_rows(conv), count, k,
                 !epilogue ? NULL : &columns, scratch);
}

void tare_conv_dense_at(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                        const float *packed, const struct tare_gemm_epilogue *epilogue, float *scratch) {
    if (tare_conv_has_phases(conv)) {
        run_phases(level, output, conv, input, packed, epilogue, scratch);
        return;
    }
    if (is_direct(conv)) {
        tare_conv_direct_at(level, output, conv, input, packed, epilogue, scratch);
        return;
    }
    for (int64_t g = 0; g < conv->groups; g++)
        run_group(level, output, conv, input, packed, epilogue, scratch, g, 0, conv->out_channels / conv->groups);
}

void tare_conv_dense(float *output, const struct tare_conv *conv, const float *input, const float *packed,
                     const struct tare_gemm_epilogue *epilogue, float *scratch) {
    tare_conv_dense_at(tare_cpu_level(), output, conv, input, packed, epilogue, scratch);
}

/* ---- parts ---- */

bool tare_conv_has_columns(const struct tare_conv *conv) {
    return conv->groups == 1 && !is_direct(conv) && !tare_conv_has_phases(conv);
}

void tare_conv_dense_columns(float *output, const struct tare_conv *conv, const float *input, const float *packed,
                             const struct tare_gemm_epilogue *epilogue, float *scratch, int64_t first, int64_t count) {
    run_group(tare_cpu_level(), output, conv, input, packed, epilogue, scratch, 0, first, count);
}

bool tare_conv_has_lines(const struct tare_conv *conv) {
    return conv->kernel[0] == 1 && conv->stride[0] == 1 && conv->pad[0] == 0 && conv->in[0] == conv->out[0] &&
           conv->base_dilation[0] == 1 && conv->base_dilation[1] == 1 && conv->base_dilation[2] == 1;
}

int64_t tare_conv_take_lines(struct tare_conv *part, const struct tare_conv *conv, int64_t at, int64_t count) {
    const int64_t line = at % conv->out[1], image = at / conv->out[1];
    const int64_t first = line * conv->stride[1] - conv->pad[1];
    const int64_t reach = (count - 1) * conv->stride[1] + (conv->kernel[1] - 1) * conv->dilation[1] + 1;
    const int64_t skipped = first < 0 ? 0 : first > conv->in[1] ? conv->in[1] : first;
    *part = *conv;
    part->batch = part->in[0] = part->out[0] = 1;
    part->in[1] = tare_clamp(first + reach - skipped, 0, conv->in[1] - skipped);
    part->out[1] = count;
    part->pad[1] = skipped > first ? skipped - first : 0;
    return (image * conv->in[1] + skipped) * conv->in[2] * conv->in_channels;
}
