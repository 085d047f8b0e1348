/* Layers of image networks, int8 as the quantizer writes them and float, for tests that run them in several ways. */
#ifndef TARE_TESTS_SUPPORT_QUANTIZED_LAYERS_H
#define TARE_TESTS_SUPPORT_QUANTIZED_LAYERS_H

#include "support/mini_model.h"

extern uint32_t layers_seed; /* of the random values */

struct tare_tensor layers_random(int dtype, struct tare_shape shape);
/* "prefix_what", in a buffer that the eighth call after it uses again. */
const char *layers_name(const char *prefix, const char *what);
/* A constant of random values. */
struct tare_edge layers_constant(struct tare_graph *g, const char *name, int dtype, struct tare_shape shape);
struct tare_edge layers_cast(struct tare_graph *g, const char *name, struct tare_edge x, int dtype);

/* Of a convolution over two dimensions, the same in both; `pad` zeros on each side. */
struct layers_window {
    int64_t stride, dilation, groups, pad;
};
/* XlaConvV2 of images (batch, height, width, channels) and a filter (height, width, inputs of a group, outputs). The
 * result is int32 for int8 images, and has the dtype of the images otherwise. */
struct tare_edge layers_conv(struct tare_graph *g, const char *name, struct tare_edge x, struct tare_edge filter,
                             struct layers_window window);
/* `pad` values on each side of images. */
struct tare_edge layers_padded(struct tare_graph *g, const char *name, struct tare_edge x, int64_t pad,
                               struct tare_edge value);

/* A layer of `outputs` channels; depthwise for 0. */
struct layers_layer {
    const char *name;
    int64_t inputs, outputs, kernel, stride;
};

/* An int8 convolution, padded by 1 unless it is pointwise, with a float result, and with an int8 result. */
struct tare_edge layers_real(struct tare_graph *g, const struct layers_layer *layer, struct tare_edge x);
struct tare_edge layers_int8(struct tare_graph *g, const struct layers_layer *layer, struct tare_edge x);
/* Adds a zero point, clamps and rounds floats. */
struct tare_edge layers_requantized(struct tare_graph *g, const char *name, struct tare_edge y);
/* A float convolution with padding SAME, bias and Relu6; depthwise where `out` is 0. */
struct tare_edge layers_float(struct tare_graph *g, const char *name, struct tare_edge x, int64_t kernel, int64_t in,
                              int64_t out, int64_t stride);

/* A session that runs the steps one by one, since every value is observed. */
struct tare_session *layers_plain_session(const struct tare_graph_model *model);
/* Asserts that the tensors have the same bits, and frees both. */
void layers_assert_same(struct tare_tensor got, struct tare_tensor expected);
/* Calls of the kernels of one op that a profile of the session counts. */
int64_t layers_calls_of(const struct tare_session *session, const char *op);

#endif
