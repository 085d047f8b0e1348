#include "interpreter/kernels/conv_geometry.h"

#include "base/alloc.h"

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
    const int64_t channels = conv->groups == 1 ? conv->in_channels : conv->in_channels / conv->groups;
    return conv->kernel[0] * conv->kernel[1] * conv->kernel[2] * channels;
}
