/* What convolutions (conv.c) and their transposes (conv_transposed.c) have in common: the kinds of the rows, the state
 * of a node, the geometry, and arrays of channels-last layout. */
#ifndef TARE_INTERPRETER_OPS_NN_CONV_NODE_H
#define TARE_INTERPRETER_OPS_NN_CONV_NODE_H

#include "interpreter/kernel.h"
#include "interpreter/kernels/conv.h"
#include "interpreter/ops/support/weights.h"
#include "interpreter/ops/support/window.h"

/* The rows' aux. */
struct tare_conv_kind {
    int spatial;
    bool depthwise; /* filter dimensions: spatial…, channels, outputs per channel */
};
extern const struct tare_conv_kind tare_conv_2d, tare_conv_3d, tare_conv_depthwise_2d;

/* The first member of a kernel's state, or all of it. */
struct tare_conv_node {
    struct tare_window window;
    struct tare_weights weights;
};

/* Sets kernel->state to `state_size` zeroed bytes that begin with a struct tare_conv_node, and sets that. */
tare_status tare_conv_node_prepare(struct tare_kernel *kernel, size_t state_size);
void tare_conv_node_release(void *state);

tare_status tare_conv_parse_window(struct tare_window *window, const struct tare_node *node, int spatial);
/* Reads filter dimensions spatial…, in (channels that one output uses), out. Unknown dimensions are -1. */
tare_status tare_conv_filter_dims(struct tare_conv *conv, int64_t *in, int64_t *out, const struct tare_shape *filter,
                                  const struct tare_conv_kind *kind);
/* The convolution of an input by a filter, and the layout of its output. */
tare_status tare_conv_forward_geometry(struct tare_conv *conv, struct tare_layout *output,
                                       const struct tare_window *window, const struct tare_conv_kind *kind,
                                       const struct tare_shape *input_shape, const struct tare_shape *filter_shape);
/* Counts one multiplication for each element of `shape`, tap of the filter and channel that is summed over. */
void tare_conv_cost_of_taps(struct tare_cost *cost, const struct tare_infer *infer, const struct tare_shape *shape);

/* Arrays of channels-last layout; the element type follows from the dtype (half and bfloat16 as float). */
struct tare_conv_arrays {
    void *output;
    const void *input, *filter;
};

/* Prepares input and filter as floats (or unchanged; the filter only if `plain`), and an output buffer if the result is
 * written channels-last. */
tare_status tare_conv_open_arrays(struct tare_kernel *kernel, struct tare_conv_arrays *arrays,
                                  const struct tare_window *window, const struct tare_tensor *input,
                                  const struct tare_tensor *filter, const struct tare_layout *layout, bool plain);
/* Computes the output by the plain loops. */
void tare_conv_run_plain(const struct tare_conv *conv, int dtype, const struct tare_conv_arrays *arrays);
/* Converts the channels-last result to output 0. */
tare_status tare_conv_close_arrays(struct tare_kernel *kernel, const struct tare_conv_arrays *arrays,
                                   const struct tare_window *window, const struct tare_conv *conv);

#endif
