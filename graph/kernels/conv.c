#include "graph/kernels/conv.h"

#include "base/alloc.h"

#include <string.h>

tare_status tare_conv_check(const struct tare_conv *conv) {
    int64_t in = conv->in_channels, out = conv->out_channels, taps = 1;
    if (conv->batch < 0 || in < 0 || out < 0) return TARE_FAIL(TARE_SHAPE, "negative dimension");
    if (conv->groups < 1 || in % conv->groups != 0 || out % conv->groups != 0)
        return TARE_FAIL(TARE_SHAPE, "%lld groups do not divide %lld input and %lld output channels",
                         (long long)conv->groups, (long long)in, (long long)out);
    int64_t in_size = conv->batch, out_size = conv->batch;
    for (int i = 0; i < 3; i++) {
        if (conv->stride[i] < 1 || conv->dilation[i] < 1 || conv->base_dilation[i] < 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "stride and dilation must be positive (got %lld and %lld)",
                             (long long)conv->stride[i],
                             (long long)(conv->dilation[i] < 1 ? conv->dilation[i] : conv->base_dilation[i]));
        if (conv->in[i] < 0 || conv->kernel[i] < 0 || conv->out[i] < 0)
            return TARE_FAIL(TARE_SHAPE, "negative dimension");
        int64_t reach, step;
        if (!tare_mul_i64(&reach, conv->out[i], conv->stride[i]) ||
            !tare_mul_i64(&step, conv->kernel[i], conv->dilation[i]) || !tare_add_i64(&reach, reach, step) ||
            reach > INT64_MAX / 4 || conv->pad[i] > INT64_MAX / 4 || conv->pad[i] < INT64_MIN / 4 ||
            !tare_mul_i64(&taps, taps, conv->kernel[i]) || !tare_mul_i64(&in_size, in_size, conv->in[i]) ||
            !tare_mul_i64(&step, conv->in[i], conv->base_dilation[i]) ||
            !tare_mul_i64(&out_size, out_size, conv->out[i]))
            return TARE_FAIL(TARE_SHAPE, "window reaches too far");
    }
    int64_t bytes;
    if (!tare_mul_i64(&taps, taps, in / conv->groups + 1) || !tare_mul_i64(&bytes, taps, (out + 16) * 16) ||
        !tare_mul_i64(&bytes, in_size, in * 16) || !tare_mul_i64(&bytes, out_size, out * 16))
        return TARE_FAIL(TARE_SHAPE, "convolution too large");
    return TARE_OK;
}

bool tare_conv_is_depthwise(const struct tare_conv *conv) {
    return conv->groups > 1 && conv->groups == conv->in_channels && conv->base_dilation[0] == 1 &&
           conv->base_dilation[1] == 1 && conv->base_dilation[2] == 1;
}
int64_t tare_conv_rows(const struct tare_conv *conv) {
    return conv->batch * conv->out[0] * conv->out[1] * conv->out[2];
}
int64_t tare_conv_patch(const struct tare_conv *conv) {
    return conv->kernel[0] * conv->kernel[1] * conv->kernel[2] * (conv->in_channels / conv->groups);
}

/* Input index of a tap on axis `axis`, -1 where there is only padding or a dilation's zero. */
static int64_t input_index(const struct tare_conv *conv, int axis, int64_t out, int64_t tap) {
    const int64_t at = out * conv->stride[axis] + tap * conv->dilation[axis] - conv->pad[axis];
    const int64_t step = conv->base_dilation[axis];
    if (at < 0 || at % step != 0 || at / step >= conv->in[axis]) return -1;
    return at / step;
}

/* ---- patches ---- */

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

/* Elements [first, last) of the part of a patch that lies in one input line: taps of kernel width by channels. `line`
 * is the input line at the group's first channel, NULL for a line of padding. */
static void gather_line(const struct tare_conv_patches *patches, char *to, const char *line, int64_t out_w,
                        int64_t first, int64_t last) {
    const struct tare_conv *conv = patches->conv;
    const int64_t size = (int64_t)patches->element_size, channels = conv->in_channels / conv->groups;
    if (line == NULL) {
        memset(to, 0, (size_t)((last - first) * size));
        return;
    }
    if (conv->groups == 1 && conv->dilation[2] == 1 && conv->base_dilation[2] == 1) {
        /* The taps of the line lie side by side in the input. */
        const int64_t at = out_w * conv->stride[2] - conv->pad[2];
        const int64_t low = clamp(-at * channels, first, last), high = clamp((conv->in[2] - at) * channels, low, last);
        memset(to, 0, (size_t)((low - first) * size));
        if (high > low)
            memcpy(to + (low - first) * size, line + (at * channels + low) * size, (size_t)((high - low) * size));
        memset(to + (high - first) * size, 0, (size_t)((last - high) * size));
        return;
    }
    for (int64_t at = first; at < last;) {
        const int64_t tap = at / channels, c = at % channels;
        const int64_t count = channels - c < last - at ? channels - c : last - at;
        const int64_t w = input_index(conv, 2, out_w, tap);
        if (w < 0)
            memset(to, 0, (size_t)(count * size));
        else
            memcpy(to, line + (w * conv->in_channels + c) * size, (size_t)(count * size));
        to += count * size;
        at += count;
    }
}

void tare_conv_gather(const struct tare_conv_patches *patches, void *block, int64_t stride, int64_t first_row,
                      int64_t rows, int64_t first_k, int64_t count_k) {
    const struct tare_conv *conv = patches->conv;
    const int64_t size = (int64_t)patches->element_size, channels = conv->in_channels / conv->groups;
    const int64_t line_length = conv->kernel[2] * channels; /* of a patch in one input line */
    const int64_t line_size = conv->in[2] * conv->in_channels * size;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = first_row + i;
        const int64_t out_w = at % conv->out[2];
        at /= conv->out[2];
        const int64_t out_h = at % conv->out[1];
        at /= conv->out[1];
        const int64_t out_d = at % conv->out[0], image = at / conv->out[0];
        char *to = (char *)block + i * stride * size;
        for (int64_t k = first_k; k < first_k + count_k;) {
            const int64_t tap_line = k / line_length, first = k % line_length;
            const int64_t left = first_k + count_k - k;
            const int64_t last = line_length - first < left ? line_length : first + left;
            const int64_t d = input_index(conv, 0, out_d, tap_line / conv->kernel[1]);
            const int64_t h = input_index(conv, 1, out_h, tap_line % conv->kernel[1]);
            const char *line = NULL;
            if (d >= 0 && h >= 0)
                line = (const char *)patches->input + ((image * conv->in[0] + d) * conv->in[1] + h) * line_size +
                       patches->group * channels * size;
            gather_line(patches, to, line, out_w, first, last);
            to += (last - first) * size;
            k += last - first;
        }
    }
}

static void gather_floats(const void *source, float *block, int64_t stride, int64_t first_row, int64_t rows,
                          int64_t first_k, int64_t count_k) {
    tare_conv_gather(source, block, stride, first_row, rows, first_k, count_k);
}

/* ---- dense ---- */

size_t tare_conv_packed_floats(const struct tare_conv *conv) {
    return (size_t)conv->groups * tare_gemm_packed_floats(tare_conv_patch(conv), conv->out_channels / conv->groups);
}

void tare_conv_pack(float *packed, const struct tare_conv *conv, const float *filter) {
    const int64_t k = tare_conv_patch(conv), n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++, packed += tare_gemm_packed_floats(k, n))
        tare_gemm_pack(packed, filter + g * n, k, n, conv->out_channels, 1);
}

void tare_conv_pack_int8(float *packed, const struct tare_conv *conv, const int8_t *filter) {
    const int64_t k = tare_conv_patch(conv), n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++, packed += tare_gemm_packed_floats(k, n))
        tare_gemm_pack_int8(packed, filter + g * n, k, n, conv->out_channels, 1);
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

void tare_conv_dense(float *output, const struct tare_conv *conv, const float *input, const float *packed,
                     float *scratch) {
    const int64_t k = tare_conv_patch(conv), n = conv->out_channels / conv->groups;
    const int64_t m = tare_conv_rows(conv);
    for (int64_t g = 0; g < conv->groups; g++) {
        const struct tare_conv_patches patches = { conv, input, g, sizeof(float) };
        struct tare_gemm_rows rows = { .gather = gather_floats, .source = &patches };
        if (is_pointwise(conv))
            rows = (struct tare_gemm_rows){ .data = input + g * (conv->in_channels / conv->groups),
                                            .stride = conv->in_channels };
        tare_gemm(output + g * n, conv->out_channels, &rows, packed, m, n, k, scratch);
        packed += tare_gemm_packed_floats(k, n);
    }
}
