/* The plain convolution: one loop a dimension, nothing clever. The fast kernels are tested against it for equal bits.
 */
#include "interpreter/kernels/conv.h"
#include "base/control.h"

#include <math.h>

static int64_t input_index(const struct tare_conv *conv, int axis, int64_t out, int64_t tap) {
    const int64_t at = out * conv->stride[axis] + tap * conv->dilation[axis] - conv->pad[axis];
    const int64_t step = conv->base_dilation[axis];
    if (at < 0 || at % step != 0 || at / step >= conv->in[axis]) return -1;
    return at / step;
}

static float step_f32(float x, float w, float sum) {
    return fmaf(x, w, sum);
}
static double step_f64(double x, double w, double sum) {
    return fma(x, w, sum);
}
static int32_t step_i32(int32_t x, int32_t w, int32_t sum) {
    return (int32_t)((uint32_t)sum + (uint32_t)x * (uint32_t)w);
}
static int64_t step_i64(int64_t x, int64_t w, int64_t sum) {
    return (int64_t)((uint64_t)sum + (uint64_t)x * (uint64_t)w);
}
static _Complex float step_c64(_Complex float x, _Complex float w, _Complex float sum) {
    return sum + x * w;
}
static _Complex double step_c128(_Complex double x, _Complex double w, _Complex double sum) {
    return sum + x * w;
}

/* The chain of one output element: position `out`, output channel `oc`. */
#define ELEMENT(type, suffix)                                                                                          \
    static type element_##suffix(const struct tare_conv *conv, const type *image, const type *filter,                  \
                                 const int64_t out[3], int64_t oc) {                                                   \
        const int64_t channels = conv->in_channels / conv->groups;                                                     \
        const int64_t first_channel = oc / (conv->out_channels / conv->groups) * channels;                             \
        type sum = 0;                                                                                                  \
        for (int64_t kd = 0; kd < conv->kernel[0]; kd++) {                                                             \
            for (int64_t kh = 0; kh < conv->kernel[1]; kh++) {                                                         \
                for (int64_t kw = 0; kw < conv->kernel[2]; kw++) {                                                     \
                    const int64_t d = input_index(conv, 0, out[0], kd), h = input_index(conv, 1, out[1], kh);          \
                    const int64_t w = input_index(conv, 2, out[2], kw);                                                \
                    if (d < 0 || h < 0 || w < 0) continue;                                                             \
                    const type *x = image + ((d * conv->in[1] + h) * conv->in[2] + w) * conv->in_channels;             \
                    const int64_t tap = (kd * conv->kernel[1] + kh) * conv->kernel[2] + kw;                            \
                    const type *weight = filter + tap * channels * conv->out_channels + oc;                            \
                    for (int64_t c = 0; c < channels; c++)                                                             \
                        sum = step_##suffix(x[first_channel + c], weight[c * conv->out_channels], sum);                \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }

#define PLAIN(type, suffix)                                                                                            \
    ELEMENT(type, suffix)                                                                                              \
    void tare_conv_plain_##suffix(type *output, const struct tare_conv *conv, const type *input, const type *filter) { \
        const int64_t image_size = conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;                        \
        for (int64_t b = 0; b < conv->batch; b++) {                                                                    \
            for (int64_t d = 0; d < conv->out[0]; d++) {                                                               \
                for (int64_t h = 0; h < conv->out[1]; h++) {                                                           \
                    if (tare_control_is_stopped()) return;                                                             \
                    for (int64_t w = 0; w < conv->out[2]; w++) {                                                       \
                        const int64_t at[3] = { d, h, w };                                                             \
                        for (int64_t oc = 0; oc < conv->out_channels; oc++)                                            \
                            *output++ = element_##suffix(conv, input + b * image_size, filter, at, oc);                \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
PLAIN(float, f32)
PLAIN(double, f64)
PLAIN(int32_t, i32)
PLAIN(int64_t, i64)
PLAIN(_Complex float, c64)
PLAIN(_Complex double, c128)
#undef ELEMENT
#undef PLAIN
