/* Finding what can be quantized: a weighted op with its bias and activation. */
#ifndef TARE_QUANT_SPOT_H
#define TARE_QUANT_SPOT_H

#include "graph/model.h"

enum tare_spot_activation { TARE_SPOT_LINEAR, TARE_SPOT_RELU, TARE_SPOT_RELU6 };

/* One weighted op. Edges are those of the graph before any rewrite; the same names identify calibration statistics. */
struct tare_quant_spot {
    struct tare_node *op;    /* Conv2D, DepthwiseConv2dNative, MatMul … */
    struct tare_node *bias;  /* BiasAdd behind it, NULL: none */
    struct tare_node *clamp; /* Relu or Relu6 behind that, NULL: none */
    enum tare_spot_activation activation;
    const struct tare_tensor *weight; /* the constant at input 1 */
    const struct tare_tensor *bias_value;
    int64_t channels, inner; /* of the weight's output channels: element i belongs to (i / inner) % channels */
    struct tare_edge input;  /* activation input */
    struct tare_edge output; /* last of op, bias, clamp */
    const char *refused;     /* why it stays as it is ("DepthwiseConv2D doesn't get any benefit …"); NULL: quantizable */
};

struct tare_spot_options {
    bool depthwise;                     /* quantize DepthwiseConv2dNative, too */
    int64_t min_elements;               /* weights with fewer elements are left alone; 0: none */
};

/* All weighted ops of a graph in execution order, refused ones included; arena memory. */
tare_status tare_quant_find_spots(struct tare_quant_spot **out, size_t *count, struct tare_arena *arena,
                                  const struct tare_graph *graph, const struct tare_spot_options *options);

#endif
