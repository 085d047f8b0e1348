/* Static range quantization: int8 activations with scales from calibration, int8 weights with scales from the weights,
 * exact int32 sums, and bias and activation folded into what follows.
 *
 * x_q = quantize(x); acc = XlaConvV2(pad(x_q, zero_point), w_q) - zero_point * sum(w_q) + bias_q
 * real y = float(acc) * (s_x * s_w[c]), clamped for Relu and Relu6.
 * Where nothing but quantized ops use y, y is requantized to int8 at once and never exists as float. */
#include "base/alloc.h"
#include "graph/model_shapes.h"
#include "quant/rewrite.h"
#include "quant/spot.h"
#include "quant/weights.h"
#include "quant/xla.h"
#include "tensor/number.h"

#include <math.h>
#include <string.h>

/* An activation that exists as int8, and the float edge that it stands for. */
struct quantized_edge {
    struct tare_edge real, integer;
};

/* What is decided about a spot before anything moves: shapes and ranges go by the original edges. */
struct plan {
    struct tare_qparams input, output;
    bool has_output;
    struct tare_spatial window[2]; /* of convolutions */
};

struct rewrite {
    struct tare_arena *arena;
    struct tare_model *model;
    const struct tare_quant_ranges *ranges;
    const struct tare_quant_options *options;
    const struct tare_model_shapes *shapes;
    struct tare_quant_report *report;
    struct tare_quant_spot *spots; /* of the graph at hand */
    size_t n_spots;
    struct plan *plans; /* one a spot */
    struct quantized_edge *done; /* of the graph at hand */
    size_t n_done;
};

static bool same(struct tare_edge a, struct tare_edge b) { return a.node == b.node && a.index == b.index; }

/* ---- parameters ---- */

static struct tare_qscheme activation_scheme(const struct rewrite *r) {
    struct tare_qscheme scheme = tare_qscheme_activation;
    scheme.symmetric = r->options->symmetric_activations;
    return scheme;
}

static bool find_params(struct tare_qparams *out, const struct rewrite *r, struct tare_edge edge) {
    struct tare_qscheme scheme = activation_scheme(r);
    double low, high;
    if (!r->ranges->find(r->ranges->arg, edge, &low, &high)) return false;
    if (tare_qparams_from_range(out, low, high, &scheme) == TARE_OK) return true;
    tare_error_clear();
    return false;
}

/* ---- decisions ---- */

/* Every use of the spot's output is the activation input of a spot that will be quantized. */
static bool only_feeds_quantized(const struct rewrite *r, const struct tare_quant_spot *spot) {
    size_t uses = tare_graph_count_uses(spot->op->graph, spot->output, NULL), quantized = 0;
    for (size_t i = 0; i < r->n_spots; i++)
        quantized += !r->spots[i].refused && same(r->spots[i].input, spot->output);
    return uses > 0 && uses == quantized;
}

static const char *plan_ranges(struct plan *plan, const struct rewrite *r, const struct tare_quant_spot *spot) {
    if (r->options->wants && !r->options->wants(r->options->wants_arg, spot->op->graph, spot->op))
        return "left in float on request";
    if (!find_params(&plan->input, r, spot->input)) return "its input was not calibrated (did any sample reach it?)";
    plan->has_output = find_params(&plan->output, r, spot->output);
    return NULL;
}

static const char *plan_window(struct plan *plan, const struct rewrite *r, const struct tare_quant_spot *spot) {
    struct tare_shape input = tare_model_shape(r->shapes, spot->input);
    const char *reason = NULL;
    if (strcmp(spot->op->op, "MatMul") == 0) return NULL;
    if (tare_quant_window(plan->window, spot->op, &input, &spot->weight->shape) != TARE_OK) {
        reason = tare_arena_strdup(r->arena, tare_error_text());
        tare_error_clear();
    }
    return reason;
}

/* ---- integer sums ---- */

/* zero_point * sum of each output channel's integers: what the sums hold too much because inputs are not centred. */
static struct tare_edge emit_offset(struct tare_emit *emit, struct rewrite *r, const struct tare_quant_spot *spot,
                                    const struct tare_quantized_weight *weight, int32_t zero_point) {
    int32_t *sums = TARE_NEW_ARRAY(r->arena, int32_t, (size_t)spot->channels);
    if (!sums) {
        emit->status = TARE_NO_MEMORY;
        return (struct tare_edge){ NULL, 0 };
    }
    for (int64_t i = 0; i < weight->values.elements; i++)
        sums[(i / spot->inner) % spot->channels] += TARE_CONST_DATA(int8_t, &weight->values)[i];
    for (int64_t c = 0; c < spot->channels; c++) sums[c] = (int32_t)((int64_t)sums[c] * zero_point);
    return tare_emit_ints(emit, "zero_point_offset", 1, &spot->channels, sums);
}

/* bias-int32: round half away from zero of bias / (s_x * s_w), saturated. */
static struct tare_edge emit_bias(struct tare_emit *emit, struct rewrite *r, const struct tare_quant_spot *spot,
                                  const double *accumulator_scales, int64_t n_scales) {
    int32_t *values = TARE_NEW_ARRAY(r->arena, int32_t, (size_t)spot->channels);
    if (!values) {
        emit->status = TARE_NO_MEMORY;
        return (struct tare_edge){ NULL, 0 };
    }
    for (int64_t c = 0; c < spot->channels; c++) {
        double q = tare_round_half_away(tare_tensor_get_f64(spot->bias_value, c) /
                                        accumulator_scales[n_scales == 1 ? 0 : c]);
        values[c] = (int32_t)fmin(fmax(q, INT32_MIN), INT32_MAX);
    }
    return tare_emit_ints(emit, "bias", 1, &spot->channels, values);
}

static bool pads(const struct tare_spatial window[2]) {
    return window[0].low || window[0].high || window[1].low || window[1].high;
}

/* A padded zero is the integer zero_point; XLA's own padding would put 0 there. */
static struct tare_edge emit_zero_point_pad(struct tare_emit *emit, struct tare_edge x, struct tare_spatial window[2],
                                            int32_t zero_point) {
    struct tare_shape scalar = tare_shape_scalar();
    int8_t value = (int8_t)zero_point;
    struct tare_tensor zero;
    tare_status status = tare_tensor_from(&zero, TARE_DT_INT8, &scalar, &value);
    if (status != TARE_OK) emit->status = status;
    x = tare_emit_pad(emit, x, window, tare_emit_const(emit, "pad/zero_point", &zero));
    tare_tensor_reset(&zero);
    return x;
}

static struct tare_edge emit_integer_op(struct tare_emit *emit, const struct tare_quant_spot *spot,
                                        const struct plan *plan, struct tare_edge x, struct tare_edge w) {
    struct tare_spatial window[2] = { plan->window[0], plan->window[1] };
    bool depthwise = strcmp(spot->op->op, "DepthwiseConv2dNative") == 0;
    if (strcmp(spot->op->op, "MatMul") == 0)
        return tare_emit_xla_dot(emit, x, w, tare_node_bool(spot->op, "transpose_a", false) ? 0 : 1, TARE_DT_INT32);
    if (plan->input.zero_point && pads(window)) x = emit_zero_point_pad(emit, x, window, plan->input.zero_point);
    return tare_emit_xla_conv(emit, x, w, window, depthwise ? spot->weight->shape.dims[2] : 1, TARE_DT_INT32);
}

/* ---- outputs ---- */

static struct tare_edge emit_real_output(struct tare_emit *emit, const struct tare_quant_spot *spot,
                                         struct tare_edge sums, const double *scales, int64_t n_scales) {
    struct tare_edge y = tare_emit_cast(emit, "output/cast", sums, TARE_DT_FLOAT);
    y = tare_emit_binary(emit, "Mul", "output/mul", y, tare_emit_floats(emit, "output/scale", scales, n_scales));
    if (spot->activation != TARE_SPOT_LINEAR)
        y = tare_emit_binary(emit, "Maximum", "output/relu", y, tare_emit_f32(emit, "output/zero", 0));
    if (spot->activation == TARE_SPOT_RELU6)
        y = tare_emit_binary(emit, "Minimum", "output/relu6", y, tare_emit_f32(emit, "output/six", 6));
    return y;
}

/* quantize_i8 of one number: clamp, then round half to even, in float32 as the graph would. */
static float quantize_f32(float value, const struct tare_qparams *params) {
    float q = value / (float)params->scale + (float)params->zero_point;
    q = fminf(fmaxf(q, (float)params->qmin), (float)params->qmax);
    return tare_round_half_even_f(q);
}

static struct tare_edge emit_integer_output(struct tare_emit *emit, const struct tare_quant_spot *spot,
                                            struct tare_edge sums, const double *scales, int64_t n_scales,
                                            const struct tare_qparams *out, struct tare_arena *arena) {
    double *factors = TARE_NEW_ARRAY(arena, double, (size_t)n_scales);
    float low = (float)out->qmin, high = (float)out->qmax;
    struct tare_edge y = tare_emit_cast(emit, "requantize/cast", sums, TARE_DT_FLOAT);
    if (!factors) {
        emit->status = TARE_NO_MEMORY;
        return y;
    }
    for (int64_t i = 0; i < n_scales; i++) factors[i] = scales[i] / out->scale;
    if (spot->activation != TARE_SPOT_LINEAR) low = fmaxf(low, (float)out->zero_point);
    if (spot->activation == TARE_SPOT_RELU6) high = fminf(high, quantize_f32(6, out));
    y = tare_emit_binary(emit, "Mul", "requantize/mul", y, tare_emit_floats(emit, "requantize/factor", factors, n_scales));
    y = tare_emit_binary(emit, "AddV2", "requantize/add", y,
                         tare_emit_f32(emit, "requantize/zero_point", (float)out->zero_point));
    y = tare_emit_binary(emit, "Maximum", "requantize/maximum", y, tare_emit_f32(emit, "requantize/low", low));
    y = tare_emit_binary(emit, "Minimum", "requantize/minimum", y, tare_emit_f32(emit, "requantize/high", high));
    y = tare_emit_unary(emit, "Round", "requantize/round", y);
    return tare_emit_cast(emit, "requantize/narrow", y, TARE_DT_INT8);
}

/* ---- one op ---- */

static tare_status note_integer(struct rewrite *r, struct tare_edge real, struct tare_edge integer) {
    struct quantized_edge *grown = tare_arena_extend(r->arena, r->done, r->n_done, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[r->n_done++] = (struct quantized_edge){ real, integer };
    r->done = grown;
    return TARE_OK;
}

/* The int8 form of an activation: made once for all of its users. */
static tare_status integer_input(struct tare_edge *out, struct rewrite *r, struct tare_emit *emit,
                                 struct tare_edge real, const struct tare_qparams *params) {
    for (size_t i = 0; i < r->n_done; i++) {
        if (!same(r->done[i].real, real)) continue;
        *out = r->done[i].integer;
        return TARE_OK;
    }
    *out = tare_emit_quantize(emit, real, params);
    TARE_TRY(emit->status);
    return note_integer(r, real, *out);
}

static tare_status replace_output(struct rewrite *r, const struct tare_quant_spot *spot, const struct plan *plan,
                                  struct tare_emit *emit, struct tare_edge sums, const double *scales,
                                  int64_t n_scales) {
    struct tare_edge y;
    if (plan->has_output && only_feeds_quantized(r, spot)) {
        y = emit_integer_output(emit, spot, sums, scales, n_scales, &plan->output, r->arena);
        TARE_TRY(emit->status);
        return note_integer(r, spot->output, y); /* the users ask for it instead of quantizing themselves */
    }
    y = emit_real_output(emit, spot, sums, scales, n_scales);
    TARE_TRY(emit->status);
    tare_graph_replace_uses(spot->op->graph, spot->output, y, NULL);
    for (size_t i = 0; i < r->n_spots; i++) /* later spots know their input by the edge that is gone now */
        if (same(r->spots[i].input, spot->output)) r->spots[i].input = y;
    return TARE_OK;
}

static tare_status rewrite_weighted(struct rewrite *r, const struct tare_quant_spot *spot, const struct plan *plan,
                                    const struct tare_quantized_weight *weight) {
    struct tare_emit emit = { .graph = spot->op->graph, .prefix = spot->op->name };
    double *scales = TARE_NEW_ARRAY(r->arena, double, (size_t)weight->channels);
    struct tare_tensor arranged;
    struct tare_edge x, w, sums;
    int32_t zero_point = plan->input.zero_point;
    if (!scales) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < weight->channels; c++) scales[c] = plan->input.scale * weight->scales[c];
    TARE_TRY(integer_input(&x, r, &emit, spot->input, &plan->input));
    TARE_TRY(tare_quant_arrange_weight(&arranged, spot, &weight->values));
    w = tare_emit_const(&emit, "weight", &arranged);
    tare_tensor_reset(&arranged);
    sums = emit_integer_op(&emit, spot, plan, x, w);
    if (zero_point) sums = tare_emit_binary(&emit, "Sub", "sub_offset", sums, emit_offset(&emit, r, spot, weight, zero_point));
    if (spot->bias)
        sums = tare_emit_binary(&emit, "AddV2", "add_bias", sums, emit_bias(&emit, r, spot, scales, weight->channels));
    TARE_TRY(emit.status);
    return replace_output(r, spot, plan, &emit, sums, scales, weight->channels);
}

static tare_status rewrite_spot(struct rewrite *r, const struct tare_quant_spot *spot, const struct plan *plan,
                                struct tare_quant_outcome *outcome) {
    struct tare_quantized_weight weight;
    tare_status status = tare_quantize_spot_weight(&weight, r->arena, spot, r->options);
    if (status == TARE_OK) {
        outcome->input = plan->input;
        tare_quant_describe_weight(outcome, spot, &weight);
        status = rewrite_weighted(r, spot, plan, &weight);
        r->report->quantized++;
    }
    tare_tensor_reset(&weight.values);
    return status;
}

/* ---- one graph, the model ---- */

static tare_status find_spots(struct rewrite *r, const struct tare_graph *graph) {
    struct tare_spot_options spots = { .depthwise = r->options->depthwise, .min_elements = r->options->min_elements };
    TARE_TRY(tare_quant_find_spots(&r->spots, &r->n_spots, r->arena, graph, &spots));
    r->plans = TARE_NEW_ARRAY(r->arena, struct plan, r->n_spots + 1);
    if (!r->plans) return TARE_NO_MEMORY;
    for (size_t i = 0; i < r->n_spots; i++) {
        struct tare_quant_spot *spot = &r->spots[i];
        if (!spot->refused) spot->refused = plan_ranges(&r->plans[i], r, spot);
        if (!spot->refused) spot->refused = plan_window(&r->plans[i], r, spot);
    }
    r->done = NULL;
    r->n_done = 0;
    return TARE_OK;
}

static tare_status rewrite_graph(struct rewrite *r, struct tare_graph *graph) {
    TARE_TRY(find_spots(r, graph));
    for (size_t i = 0; i < r->n_spots; i++) {
        struct tare_quant_outcome *outcome;
        TARE_TRY(tare_quant_add_outcome(&outcome, r->report, r->arena, &r->spots[i]));
        if (!r->spots[i].refused)
            TARE_TRY(tare_error_prefix(rewrite_spot(r, &r->spots[i], &r->plans[i], outcome), "%s (%s)",
                                       r->spots[i].op->name, r->spots[i].op->op));
    }
    if (r->n_spots) tare_graph_remove_unreachable(graph);
    return TARE_OK;
}

tare_status tare_quantize_static(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                                 const struct tare_quant_ranges *ranges, const struct tare_quant_options *options) {
    struct tare_model_shapes *shapes = NULL;
    struct rewrite r = { .arena = arena, .model = model, .ranges = ranges, .options = options, .report = report };
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

/* ---- what to observe ---- */

static tare_status add_edge(struct tare_edge_list *list, struct tare_arena *arena, struct tare_edge edge) {
    struct tare_edge *grown;
    for (size_t i = 0; i < list->count; i++)
        if (same(list->edges[i], edge)) return TARE_OK;
    grown = tare_arena_extend(arena, list->edges, list->count, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[list->count++] = edge;
    list->edges = grown;
    return TARE_OK;
}

static tare_status observe_graph(struct tare_edge_list *list, struct tare_arena *arena, const struct tare_graph *graph,
                                 const struct tare_quant_options *options) {
    struct tare_spot_options spot_options = { .depthwise = true, .min_elements = options->min_elements };
    struct tare_quant_spot *spots;
    size_t count;
    TARE_TRY(tare_quant_find_spots(&spots, &count, arena, graph, &spot_options));
    for (size_t i = 0; i < count; i++) {
        if (spots[i].refused) continue;
        TARE_TRY(add_edge(list, arena, spots[i].input));
        TARE_TRY(add_edge(list, arena, spots[i].output));
    }
    return TARE_OK;
}

tare_status tare_quant_observed_edges(struct tare_edge_list *out, struct tare_arena *arena,
                                      const struct tare_model *model, const struct tare_quant_options *options) {
    memset(out, 0, sizeof *out);
    TARE_TRY(observe_graph(out, arena, model->main, options));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(observe_graph(out, arena, model->functions[i], options));
    return TARE_OK;
}
