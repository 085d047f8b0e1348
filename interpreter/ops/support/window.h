/* Sliding windows: the attributes of convolutions and pools, output sizes, padding and layouts. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_WINDOW_H
#define TARE_INTERPRETER_OPS_SUPPORT_WINDOW_H

#include "interpreter/kernel.h"

enum tare_padding { TARE_PAD_VALID, TARE_PAD_SAME, TARE_PAD_EXPLICIT };

/* Axis numbers are those of three spatial axes; with two, axis 0 is a depth of 1. */
struct tare_window {
    int spatial;         /* 2 or 3 */
    bool channels_first; /* NCHW, NCDHW */
    enum tare_padding padding;
    int64_t size[3]; /* ksize; 1 where the op has none */
    int64_t stride[3], dilation[3];
    int64_t explicit_pad[3][2];
    int64_t size_of_batch, size_of_channels; /* ksize and strides along batch and channels */
    int64_t stride_of_batch, stride_of_channels;
};

/* Reads data_format, strides, padding, explicit_paddings, dilations and ksize, as far as the node has them. */
tare_status tare_window_parse(struct tare_window *window, const struct tare_node *node, int spatial);
/* Reads a whole vector (ksize, strides or dilations in the order of the data format) into size, stride or dilation. */
tare_status tare_window_set_size(struct tare_window *window, const int64_t *values, size_t count);
tare_status tare_window_set_stride(struct tare_window *window, const int64_t *values, size_t count);

/* Output size and leading padding of axis 0 … 2, for an input of `in` and a window of `size` elements.
 * TARE_SHAPE when the output would be negative. */
tare_status tare_window_output(int64_t *out, int64_t *pad, const struct tare_window *window, int axis, int64_t in,
                               int64_t size);

/* Padding of axis 0 … 2 with which a transposed convolution (from `out` elements back to `in`) is a convolution: of the
 * elements, `stride` apart, with the reversed filter of `size` taps. Negative: elements are cut off.
 * TARE_SHAPE when a window over `in` elements has not `out` results. */
tare_status tare_window_transposed_padding(int64_t pad[2], const struct tare_window *window, int axis, int64_t in,
                                           int64_t size, int64_t out);

/* An array's dims by role: batch, spatial and channels, for any layout. Unknown dims are -1. */
struct tare_layout {
    int64_t batch, channels, spatial[3];
};
/* TARE_SHAPE unless the shape has rank spatial + 2; `what` names it in the text ("input"). */
tare_status tare_layout_of(struct tare_layout *layout, const struct tare_shape *shape, const struct tare_window *window,
                           const char *what);
struct tare_shape tare_layout_shape(const struct tare_layout *layout, const struct tare_window *window);

/* Moves the channels to the end ([batch, channels, pixels] to [batch, pixels, channels]), and back. */
void tare_layout_to_first(void *to, const void *from, int64_t batch, int64_t channels, int64_t pixels,
                          size_t element_size);

/* The window op's elements channels-last: the tensor's own, or a copy in scratch. NULL: no memory. */
const void *tare_window_input(struct tare_kernel *kernel, const struct tare_window *window,
                              const struct tare_layout *layout, const void *data, size_t element_size);

#endif
