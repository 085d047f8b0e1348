/* The int8 form of an ONNX file, for bench/onnx_writer.c: pairs of QuantizeLinear and DequantizeLinear (QDQ) at the
 * inputs of each quantized op. Activations are uint8 with one asymmetric grid per tensor, weights int8 with one
 * symmetric scale per output channel, biases int32 with the product of both scales, as ONNX Runtime's quantize_static
 * writes them. The clipping range of an activation is its minimum and maximum over `EXAMPLES` random examples: the
 * numbers of model_bench, with which tare's int8 model is calibrated as well. */
#ifndef TARE_BENCH_ONNX_QUANTIZE_H
#define TARE_BENCH_ONNX_QUANTIZE_H

#include "datasets/npy.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "onnx_message.h"

#include <math.h>

enum { EXAMPLES = 8 };

/* Minimum and maximum of each observed node's output 0. */
struct onnx_ranges {
    struct tare_arena *arena;
    struct onnx_range {
        const struct tare_node *node;
        float low, high; /* low <= 0 <= high */
        struct onnx_range *next;
    } * first;
};

/* ---- observation ---- */

static inline struct onnx_range *onnx_find_range(const struct onnx_ranges *ranges, const struct tare_node *node) {
    struct onnx_range *range = ranges->first;
    while (range && range->node != node)
        range = range->next;
    return range;
}

static inline tare_status onnx_observe(void *arg, const struct tare_node *node, size_t output,
                                       const struct tare_tensor *value) {
    struct onnx_ranges *ranges = arg;
    if (output || value->dtype != TARE_DT_FLOAT) return TARE_OK;
    struct onnx_range *range = onnx_find_range(ranges, node);
    if (!range) {
        range = TARE_NEW(ranges->arena, struct onnx_range);
        if (!range) return TARE_NO_MEMORY;
        range->node = node;
        range->next = ranges->first;
        ranges->first = range;
    }
    for (int64_t i = 0; i < value->elements; i++) {
        range->low = fminf(range->low, TARE_DATA(float, value)[i]);
        range->high = fmaxf(range->high, TARE_DATA(float, value)[i]);
    }
    return TARE_OK;
}

/* Runs the signature on `samples` and collects the ranges of all its float tensors. */
static inline tare_status onnx_collect_ranges(struct onnx_ranges *ranges, const struct tare_graph_model *model,
                                              const struct tare_signature *signature,
                                              const struct tare_tensor *samples) {
    struct tare_session *session;
    struct tare_tensor result = { 0 };
    TARE_TRY(tare_session_new(&session, model, NULL));
    tare_session_observe(session, onnx_observe, NULL, ranges);
    const tare_status status = tare_session_run(session, &signature->inputs[0].edge, samples, 1,
                                                &signature->outputs[0].edge, &result, 1, NULL, 0);
    tare_tensor_reset(&result);
    tare_session_free(session);
    return status;
}

/* The input that model_bench uses with a batch of EXAMPLES. The caller resets it. */
static inline tare_status onnx_random_samples(struct tare_tensor *out, struct tare_shape shape) {
    unsigned seed = 1;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = i ? 1 : EXAMPLES;
    TARE_TRY(tare_tensor_new(out, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < out->elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        TARE_DATA(float, out)[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    return TARE_OK;
}

/* ---- integers ---- */

struct onnx_grid {
    float scale;
    uint8_t zero_point;
};

static inline tare_status onnx_grid_of(struct onnx_grid *grid, const struct onnx_ranges *ranges,
                                       const struct tare_node *node) {
    const struct onnx_range *range = onnx_find_range(ranges, node);
    if (!range) return TARE_FAIL(TARE_INTERNAL, "%s was not observed", node->name);
    grid->scale = range->high > range->low ? (range->high - range->low) / 255 : 1;
    grid->zero_point = (uint8_t)fminf(255, rintf(-range->low / grid->scale));
    return TARE_OK;
}

/* The dequantized value of `x` on the grid. */
static inline const char *onnx_quantized(struct onnx_graph *graph, const char *x, const struct onnx_grid *grid) {
    const char *scale = onnx_floats(graph, &grid->scale, NULL, 0);
    const char *zero = onnx_tensor(graph, 2, &grid->zero_point, 1, NULL, 0);
    const char *integers = onnx_node(graph, "QuantizeLinear", (const char *[]){ x, scale, zero }, 3, NULL, 0);
    return onnx_node(graph, "DequantizeLinear", (const char *[]){ integers, scale, zero }, 3, NULL, 0);
}

/* The dequantized form of an int8 weight of shape `dims`, with one scale for each index of `axis`. scales:
 * dims[axis] floats, set here. NULL: out of memory. */
static inline const char *onnx_quantized_weight(struct onnx_graph *graph, const float *values, const int64_t *dims,
                                                int64_t rank, int64_t axis, float *scales) {
    int64_t inner = 1, count = 1;
    for (int64_t i = 0; i < rank; i++) {
        count *= dims[i];
        if (i > axis) inner *= dims[i];
    }
    int8_t *integers = tare_arena_alloc(graph->arena, (size_t)count);
    int8_t *zeros = TARE_NEW_ARRAY(graph->arena, int8_t, (size_t)dims[axis]);
    if (!integers || !zeros) return NULL;
    memset(scales, 0, (size_t)dims[axis] * sizeof *scales);
    for (int64_t i = 0; i < count; i++) {
        float *scale = &scales[i / inner % dims[axis]];
        *scale = fmaxf(*scale, fabsf(values[i]) / 127);
    }
    for (int64_t i = 0; i < dims[axis]; i++)
        if (scales[i] == 0) scales[i] = 1;
    for (int64_t i = 0; i < count; i++)
        integers[i] = (int8_t)rintf(values[i] / scales[i / inner % dims[axis]]);
    const struct onnx_attr attr = { .name = "axis", .i = axis };
    const char *inputs[3] = { onnx_tensor(graph, 3, integers, (size_t)count, dims, rank),
                              onnx_floats(graph, scales, &dims[axis], 1),
                              onnx_tensor(graph, 3, zeros, (size_t)dims[axis], &dims[axis], 1) };
    return onnx_node(graph, "DequantizeLinear", inputs, 3, &attr, 1);
}

/* The dequantized form of an int32 bias; its scales are `scale` times those of the weight. NULL: out of memory. */
static inline const char *onnx_quantized_bias(struct onnx_graph *graph, const float *values, int64_t count, float scale,
                                              const float *weight_scales) {
    int32_t *integers = TARE_NEW_ARRAY(graph->arena, int32_t, (size_t)count);
    float *scales = TARE_NEW_ARRAY(graph->arena, float, (size_t)count);
    if (!integers || !scales) return NULL;
    for (int64_t i = 0; i < count; i++) {
        scales[i] = scale * weight_scales[i];
        integers[i] = (int32_t)fmaxf(-0x7fffff80, fminf(0x7fffff80, rintf(values[i] / scales[i])));
    }
    const struct onnx_attr attr = { .name = "axis", .i = 0 };
    const char *inputs[2] = { onnx_tensor(graph, 6, integers, (size_t)count * sizeof *integers, &count, 1),
                              onnx_floats(graph, scales, &count, 1) };
    return onnx_node(graph, "DequantizeLinear", inputs, 2, &attr, 1);
}

#endif
