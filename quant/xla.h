/* Integer convolutions and products as the XLA op set writes them: XlaConvV2 and XlaDotV2. */
#ifndef TARE_QUANT_XLA_H
#define TARE_QUANT_XLA_H

#include "quant/emit.h"
#include "quant/spot.h"

/* Explicit padding of one spatial dimension. */
struct tare_spatial {
    int64_t stride, dilation, low, high;
};

/* Strides, dilations and padding of a Conv2D or DepthwiseConv2dNative on an input of the given shape, as numbers.
 * TARE_UNSUPPORTED when SAME padding depends on a size that is not known. */
tare_status tare_quant_window(struct tare_spatial out[2], const struct tare_node *conv, const struct tare_shape *input,
                              const struct tare_shape *filter);

/* XlaConvV2 of an NHWC input with an HWIO filter; `groups` is 1, or the input channels for a depthwise filter
 * [H, W, 1, C * M]. accumulator: TARE_DT_INT32, or TARE_DT_FLOAT for weight-only. */
struct tare_edge tare_emit_xla_conv(struct tare_emit *emit, struct tare_edge lhs, struct tare_edge rhs,
                                    const struct tare_spatial window[2], int64_t groups, int accumulator);
/* XlaDotV2 contracting axis `lhs_axis` of a matrix with axis 0 of a matrix. */
struct tare_edge tare_emit_xla_dot(struct tare_emit *emit, struct tare_edge lhs, struct tare_edge rhs, int lhs_axis,
                                   int accumulator);
/* PadV2 of the two spatial dimensions with a constant; the window's padding becomes zero. */
struct tare_edge tare_emit_pad(struct tare_emit *emit, struct tare_edge x, struct tare_spatial window[2],
                               struct tare_edge value);

#endif
