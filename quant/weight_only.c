/* Weight-only quantization: weights are int8 with one scale an output channel, all arithmetic stays float32.
 *
 * y = XlaConvV2(x, w_q) * s_w[c], or XlaDotV2; bias and activation follow as they were. A convolution whose padding
 * depends on a size that is not known stays float32, with that reason. */
#include "base/alloc.h"
#include "graph/model_shapes.h"
#include "quant/rewrite.h"
#include "quant/weights.h"
#include "quant/xla.h"

#include <string.h>

static const int64_t DEFAULT_MIN_ELEMENTS = 1024; /* below, the scales and extra ops cost more than the bytes saved */

struct rewrite {
    struct tare_arena *arena;
    const struct tare_quant_options *options;
    const struct tare_model_shapes *shapes;
    struct tare_quant_report *report;
};

static bool is_matmul(const struct tare_quant_spot *spot) {
    return strcmp(spot->op->op, "MatMul") == 0;
}

/* The float op on arranged integers, without its scale. */
static struct tare_edge emit_product(struct tare_emit *emit, const struct tare_quant_spot *spot,
                                     const struct tare_spatial window[2], struct tare_edge weight) {
    bool depthwise = strcmp(spot->op->op, "DepthwiseConv2dNative") == 0;
    struct tare_edge x = spot->op->inputs[0]; /* not spot->input: an earlier rewrite may have moved it */
    if (is_matmul(spot))
        return tare_emit_xla_dot(emit, x, weight, tare_node_bool(spot->op, "transpose_a", false) ? 0 : 1,
                                 TARE_DT_FLOAT);
    return tare_emit_xla_conv(emit, x, weight, window, depthwise ? spot->weight->shape.dims[2] : 1, TARE_DT_FLOAT);
}

static tare_status rewrite_product(const struct tare_quant_spot *spot, const struct tare_spatial window[2],
                                   const struct tare_quantized_weight *weight) {
    struct tare_emit emit = { .graph = spot->op->graph, .prefix = spot->op->name };
    struct tare_tensor arranged;
    struct tare_edge y;
    TARE_TRY(tare_quant_arrange_weight(&arranged, spot, &weight->values));
    y = tare_emit_const(&emit, "weight", &arranged);
    tare_tensor_reset(&arranged);
    y = emit_product(&emit, spot, window, y);
    y = tare_emit_binary(&emit, "Mul", "dequantize/mul", y,
                         tare_emit_floats(&emit, "dequantize/scale", weight->scales, weight->channels));
    TARE_TRY(emit.status);
    tare_graph_replace_uses(spot->op->graph, (struct tare_edge){ spot->op, 0 }, y, NULL);
    return TARE_OK;
}

static tare_status rewrite_spot(struct rewrite *r, struct tare_quant_spot *spot, const struct tare_spatial window[2]) {
    struct tare_quant_outcome *outcome;
    struct tare_quantized_weight weight;
    tare_status status;
    TARE_TRY(tare_quant_add_outcome(&outcome, r->report, r->arena, spot));
    if (spot->refused) return TARE_OK;
    status = tare_quantize_spot_weight(&weight, r->arena, spot, r->options);
    if (status == TARE_OK) {
        tare_quant_describe_weight(outcome, spot, &weight);
        status = rewrite_product(spot, window, &weight);
        r->report->quantized++;
    }
    tare_tensor_reset(&weight.values);
    return tare_error_prefix(status, "%s (%s)", spot->op->name, spot->op->op);
}

/* Shapes are asked for before anything moves. */
static tare_status plan_spot(struct tare_spatial window[2], struct rewrite *r, struct tare_quant_spot *spot) {
    struct tare_shape input = tare_model_shape(r->shapes, spot->input);
    const struct tare_quant_options *options = r->options;
    if (spot->refused) return TARE_OK;
    if (options->wants && !options->wants(options->wants_arg, spot->op->graph, spot->op))
        spot->refused = "left in float on request";
    if (spot->refused || is_matmul(spot)) return TARE_OK;
    if (tare_quant_window(window, spot->op, &input, &spot->weight->shape) == TARE_OK) return TARE_OK;
    spot->refused = tare_arena_strdup(r->arena, tare_error_text());
    tare_error_clear();
    return spot->refused ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status rewrite_graph(struct rewrite *r, struct tare_graph *graph) {
    struct tare_spot_options options = { .depthwise = true, .min_elements = r->options->min_elements };
    struct tare_quant_spot *spots;
    struct tare_spatial(*windows)[2];
    size_t count;
    if (options.min_elements == 0) options.min_elements = DEFAULT_MIN_ELEMENTS;
    TARE_TRY(tare_quant_find_spots(&spots, &count, r->arena, graph, &options));
    windows = tare_arena_extend(r->arena, NULL, 0, count + 1, sizeof *windows);
    if (!windows) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(plan_spot(windows[i], r, &spots[i]));
    for (size_t i = 0; i < count; i++)
        TARE_TRY(rewrite_spot(r, &spots[i], windows[i]));
    if (count) tare_graph_remove_unreachable(graph);
    return TARE_OK;
}

tare_status tare_quantize_weight_only(struct tare_quant_report *report, struct tare_arena *arena,
                                      struct tare_model *model, const struct tare_quant_options *options) {
    struct tare_model_shapes *shapes = NULL;
    struct rewrite r = { .arena = arena, .options = options, .report = report };
    tare_status status;
    memset(report, 0, sizeof *report);
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    r.shapes = shapes;
    TARE_CHECK(rewrite_graph(&r, model->main));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_CHECK(tare_error_prefix(rewrite_graph(&r, model->functions[i]), "function %s", model->functions[i]->name));
done:
    tare_model_shapes_free(shapes);
    return status;
}
