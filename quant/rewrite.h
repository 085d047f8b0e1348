/* The quantizing rewrites of a whole model. */
#ifndef TARE_QUANT_REWRITE_H
#define TARE_QUANT_REWRITE_H

#include "graph/model.h"
#include "quant/params.h"

/* Where the range of an activation comes from: a calibration file and an algorithm, or a test. */
struct tare_quant_ranges {
    /* True and the range when the tensor was observed. Asked before anything is rewritten. */
    bool (*find)(void *arg, struct tare_edge edge, double *low, double *high);
    void *arg;
};

struct tare_quant_options {
    bool depthwise;         /* quantize DepthwiseConv2dNative, too */
    bool per_tensor;        /* one scale a weight instead of one a channel */
    bool symmetric_activations;
    int64_t min_elements;   /* smallest weight worth quantizing; 0: the method's default */
    /* Only functions for which it is true are rewritten; NULL: all. */
    bool (*wants)(void *arg, const struct tare_graph *graph, const struct tare_node *op);
    void *wants_arg;
};

/* What happened to one weighted op, for reports. */
struct tare_quant_outcome {
    const char *function, *node, *op;
    const char *refused; /* why it stays float; NULL: quantized */
    struct tare_qparams input; /* of the activation; scale 0 when there is none */
    double weight_scale_min, weight_scale_max;
    double weight_sqnr_db; /* of the dequantized weight against the original */
    int64_t weight_elements;
};

struct tare_quant_report {
    struct tare_quant_outcome *outcomes; /* arena memory */
    size_t count;
    size_t quantized;
};

/* Static range int8 in the form of the XLA op set (docs/formats.md, "Quantized graphs"). */
tare_status tare_quantize_static(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                                 const struct tare_quant_ranges *ranges, const struct tare_quant_options *options);

/* Weight-only int8: weights of at least min_elements (0: 1024) elements become int8, depthwise filters included; arithmetic,
 * bias and activation stay float32 (docs/formats.md, "Quantized graphs"). No calibration. */
tare_status tare_quantize_weight_only(struct tare_quant_report *report, struct tare_arena *arena,
                                      struct tare_model *model, const struct tare_quant_options *options);

/* Which edges calibration has to observe for tare_quantize_static: inputs and outputs of quantizable ops. */
struct tare_edge_list {
    struct tare_edge *edges;
    size_t count;
};
tare_status tare_quant_observed_edges(struct tare_edge_list *out, struct tare_arena *arena,
                                      const struct tare_model *model, const struct tare_quant_options *options);

#endif
