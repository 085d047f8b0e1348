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

bool tare_conv_has_phases(const struct tare_conv *conv) {
    enum { MOST = 64 }; /* of more, most phases would be empty */
    bool is_dilated = false;
    for (int i = 0; i < 3; i++) {
        if (conv->base_dilation[i] > MOST || (conv->base_dilation[i] != 1 && conv->stride[i] != 1)) return false;
        is_dilated |= conv->base_dilation[i] != 1;
    }
    return is_dilated && conv->groups == 1;
}

/* Sets an axis of the phase: tap t meets input element (offset + t * dilation - pad) / base_dilation, if that is an
 * integer. */
static void take_axis(struct tare_conv_phase *phase, const struct tare_conv *conv, int axis, int64_t offset) {
    const int64_t every = conv->base_dilation[axis], taps = conv->kernel[axis];
    int64_t tap = 0, step = 1;
    while (tap < taps && (offset + tap * conv->dilation[axis] - conv->pad[axis]) % every != 0)
        tap++;
    while (step * conv->dilation[axis] % every != 0)
        step++;
    phase->offset[axis] = offset;
    phase->tap[axis] = tap;
    phase->step[axis] = step;
    phase->conv.kernel[axis] = (taps - tap + step - 1) / step;
    phase->conv.out[axis] = offset < conv->out[axis] ? (conv->out[axis] - offset + every - 1) / every : 0;
    phase->conv.pad[axis] = (conv->pad[axis] - offset - tap * conv->dilation[axis]) / every;
    phase->conv.dilation[axis] = step * conv->dilation[axis] / every;
    phase->conv.base_dilation[axis] = 1;
}

bool tare_conv_take_phase(struct tare_conv_phase *phase, const struct tare_conv *conv, int64_t at) {
    phase->conv = *conv;
    for (int i = 0; i < 3; i++) {
        take_axis(phase, conv, i, at % conv->base_dilation[i]);
        at /= conv->base_dilation[i];
    }
    return at == 0;
}

int64_t tare_conv_phase_tap(const struct tare_conv_phase *phase, const struct tare_conv *conv, int64_t at) {
    const int64_t *count = phase->conv.kernel;
    const int64_t w = phase->tap[2] + at % count[2] * phase->step[2];
    const int64_t h = phase->tap[1] + at / count[2] % count[1] * phase->step[1];
    const int64_t d = phase->tap[0] + at / count[2] / count[1] * phase->step[0];
    return (d * conv->kernel[1] + h) * conv->kernel[2] + w;
}

int64_t tare_conv_phase_line(const struct tare_conv_phase *phase, const struct tare_conv *conv, int64_t at) {
    const int64_t h = phase->offset[1] + at % phase->conv.out[1] * conv->base_dilation[1];
    const int64_t slice = at / phase->conv.out[1];
    const int64_t d = phase->offset[0] + slice % phase->conv.out[0] * conv->base_dilation[0];
    return ((slice / phase->conv.out[0] * conv->out[0] + d) * conv->out[1] + h) * conv->out[2] + phase->offset[2];
}
