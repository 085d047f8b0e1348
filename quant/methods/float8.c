/* Static and dynamic range with eight-bit floats: weights and activations are numbers of float8_e4m3fn or float8_e5m2
 * times a scale, and products are summed in float32.
 *
 *     x_q = Cast<float8>(Minimum(Maximum(x / s_x, -largest), largest))
 *     y = XlaDotV2(Cast<float>(x_q), Cast<float>(w_q)) * (s_x * s_w[c])
 *
 * XlaDotV2 and XlaConvV2 do not take float8 in TensorFlow, so that codes are converted to float32, which is exact, as
 * their products are. A StableHLO module has the codes themselves as operands (convert/stablehlo/emit/).
 * s_x is from calibration (static), or from the largest magnitude of the row or image (dynamic; quant/dynamic_range.h).
 * There are no zero points: padding is 0, and bias and activation function are unchanged. */
#include "quant/dynamic_range.h"
#include "quant/layer_index.h"
#include "quant/selection/entries.h"
#include "quant/table.h"
#include "quant/xla.h"

#include <string.h>

static const struct tare_float8 *format_of(const struct tare_quant_layer *layer) {
    return tare_number_format_float8(layer->setting.format);
}

/* float8-quantize, as float32 again. */
static struct tare_edge emit_codes(struct tare_emit *emit, const struct tare_float8 *format, struct tare_edge x,
                                   struct tare_edge scale) {
    const struct tare_edge highest = tare_emit_f32(emit, "quantize/highest", (float)format->largest);
    const struct tare_edge lowest = tare_emit_f32(emit, "quantize/lowest", (float)-format->largest);
    struct tare_edge y =
        tare_emit_binary(emit, "Div", "quantize/div", tare_emit_float(emit, "quantize/float", x), scale);
    y = tare_emit_binary(emit, "Maximum", "quantize/maximum", y, lowest);
    y = tare_emit_binary(emit, "Minimum", "quantize/minimum", y, highest);
    y = tare_emit_cast(emit, "quantize/cast", y, format->dtype);
    return tare_emit_cast(emit, "quantize/widen", y, TARE_DT_FLOAT);
}

static tare_status replace(struct tare_emit *emit, struct tare_quant_layer *layer, struct tare_edge raw,
                           struct tare_edge scale) {
    struct tare_edge y = tare_emit_binary(emit, "Mul", "output/mul", raw, scale);
    y = tare_emit_result(emit, &layer->product, tare_emit_shift(emit, layer, y));
    return tare_quant_replace(NULL, emit, (struct tare_edge){ layer->op, 0 }, y);
}

/* ---- static range ---- */

static tare_status plan_static(const char **reason, const struct tare_quant_work *work,
                               struct tare_quant_layer *layer) {
    if (layer->kind == TARE_KIND_GATHER) return TARE_OK;
    TARE_TRY(tare_quant_find_activations(reason, work, layer));
    return *reason || layer->input_scale ? TARE_OK : tare_quant_find_entries(work, layer);
}

/* All layers that read the activation with the same scale share its codes; `by_entry`: by iteration, NULL if there is
 * one range for all. */
static tare_status emit_static_codes(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                     const struct tare_quant_layer *layer, struct tare_edge x,
                                     struct tare_qparams *by_entry, const struct tare_qparams *params) {
    struct tare_quant_shared made = { .method = &tare_method_float8_static, .real = x, .params = params };
    struct tare_quant_entries *entries = by_entry ? TARE_NEW(work->arena, struct tare_quant_entries) : NULL;
    if (by_entry && !entries) return TARE_NO_MEMORY;
    if (entries) {
        *entries =
            (struct tare_quant_entries){ .by = layer->entries->by, .count = layer->entries->count, .left = by_entry };
        made.entries = entries;
        made.params = NULL;
    }
    const struct tare_quant_shared *shared = entries ? tare_quant_find_shared_entries(work, x, entries)
                                                     : tare_quant_find_shared(work, made.method, x, params);
    if (!shared) {
        const struct tare_edge scale = entries ? tare_emit_entry_scale(emit, "quantize/scales", entries, by_entry)
                                               : tare_emit_f32(emit, "quantize/scale", (float)params->scale);
        made.integer = emit_codes(emit, format_of(layer), x, scale);
        TARE_TRY(emit->status);
        TARE_TRY(tare_quant_add_shared(&shared, work, &made));
    }
    *out = shared->integer;
    return TARE_OK;
}

/* By iteration, then by channel; NULL: no memory. */
static double *find_factors(int64_t *count, struct tare_arena *arena, const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_quant_entries *entries = layer->entries;
    const int64_t n = entries ? entries->count : 1, all = layer->weight ? q->n_scales : 1;
    const int64_t each = entries && layer->weight && layer->selection && all > 1 ? all / n : all;
    double *factors = TARE_NEW_ARRAY(arena, double, (size_t)(n * each));
    *count = n * each;
    for (int64_t i = 0; factors && i < n * each; i++) {
        const struct tare_qparams *right = entries && !layer->weight ? &entries->right[i / each] : &layer->right_params;
        factors[i] = tare_quant_factor(entries ? &entries->left[i / each] : &layer->left_params,
                                       layer->weight ? q->scales[each < all ? i : i % each] : right->scale);
    }
    return factors;
}

static tare_status rewrite_static(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_quant_entries *entries = layer->entries;
    struct tare_edge x, w;
    int64_t count;
    if (layer->kind == TARE_KIND_GATHER) return tare_quant_rewrite_table(layer);
    const double *factors = find_factors(&count, work->arena, layer);
    if (!factors) return TARE_NO_MEMORY;
    TARE_TRY(emit_static_codes(&x, work, &emit, layer, layer->op->inputs[layer->left], entries ? entries->left : NULL,
                               &layer->left_params));
    if (layer->weight)
        w = tare_emit_operand(&emit, layer, TARE_DT_FLOAT);
    else
        TARE_TRY(emit_static_codes(&w, work, &emit, layer, layer->op->inputs[layer->right],
                                   entries ? entries->right : NULL, &layer->right_params));
    const struct tare_edge y = tare_emit_product(&emit, layer, x, w, TARE_DT_FLOAT);
    return replace(&emit, layer, y, tare_emit_channels(&emit, "output/scale", layer, factors, count));
}

/* ---- dynamic range ---- */

/* float8-row: the largest magnitude of each row is the largest number of the format; at least 1e-30. */
static tare_status emit_dynamic_codes(const struct tare_quant_shared **out, struct tare_quant_work *work,
                                      struct tare_emit *emit, const struct tare_quant_layer *layer,
                                      struct tare_edge x) {
    const struct tare_float8 *format = format_of(layer);
    struct tare_quant_shared made = { .method = &tare_method_float8_dynamic, .real = x };
    struct tare_qparams *params = TARE_NEW(work->arena, struct tare_qparams);
    if (!params) return TARE_NO_MEMORY;
    params->qmin = -(int32_t)format->largest; /* tells the formats apart */
    made.params = params;
    made.n_axes = tare_quant_row_axes(made.axes, &layer->product);
    *out = tare_quant_find_shared(work, made.method, x, params);
    while (*out && !((*out)->method == made.method && tare_quant_same_params((*out)->params, params) &&
                     (*out)->n_axes == made.n_axes &&
                     memcmp((*out)->axes, made.axes, (size_t)made.n_axes * sizeof *made.axes) == 0))
        *out = (*out)->next;
    if (*out) return TARE_OK;
    x = tare_emit_float(emit, "dynamic/float", x);
    const struct tare_edge size = tare_emit_unary(emit, "Abs", "dynamic/size", x);
    struct tare_edge scale = tare_emit_extreme(emit, "Max", "Maximum", "dynamic/largest", size, made.axes, made.n_axes);
    scale = tare_emit_binary(emit, "Maximum", "dynamic/largest", scale, tare_emit_f32(emit, "dynamic/least", 1e-30f));
    made.scale = tare_emit_binary(emit, "Div", "dynamic/scale", scale,
                                  tare_emit_f32(emit, "dynamic/codes", (float)format->largest));
    made.integer = emit_codes(emit, format, x, made.scale);
    TARE_TRY(emit->status);
    return tare_quant_add_shared(out, work, &made);
}

static tare_status rewrite_dynamic(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_quant_shared *shared;
    if (layer->kind == TARE_KIND_GATHER) return tare_quant_rewrite_table(layer);
    TARE_TRY(emit_dynamic_codes(&shared, work, &emit, layer, layer->op->inputs[layer->left]));
    const struct tare_edge codes = shared->integer, of_input = shared->scale;
    const struct tare_edge w = tare_emit_operand(&emit, layer, TARE_DT_FLOAT);
    const struct tare_edge y = tare_emit_product(&emit, layer, codes, w, TARE_DT_FLOAT);
    const struct tare_edge rows = tare_emit_of_rows(&emit, "rows/scale", &layer->product, of_input);
    const struct tare_edge channels = tare_emit_channels(&emit, "weight/scale", layer, q->scales, q->n_scales);
    return replace(&emit, layer, y, tare_emit_binary(&emit, "Mul", "output/scale", rows, channels));
}

const struct tare_quant_method tare_method_float8_static = {
    .name = "static",
    .help = "float8 weights and activations, with scales from samples",
    .needs_ranges = true,
    .integer_inputs = true,
    .takes_two_inputs = true,
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_BATCH_MATMUL |
             1 << TARE_KIND_EINSUM | 1 << TARE_KIND_XLA_DOT | 1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_GATHER |
             1 << TARE_KIND_TRANSPOSED_CONV,
    .kinds_on_request = 1 << TARE_KIND_DEPTHWISE, /* no gain on a TPU */
    .plan = plan_static,
    .rewrite = rewrite_static,
};

const struct tare_quant_method tare_method_float8_dynamic = {
    .name = "dynamic",
    .help = "float8 weights, activations quantized while the model runs; needs no samples",
    .integer_inputs = true,
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM |
             1 << TARE_KIND_GATHER | 1 << TARE_KIND_XLA_DOT | 1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_TRANSPOSED_CONV,
    .kinds_on_request = 1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_CONV3D,
    .min_elements = TARE_LEAST_WEIGHT,
    .rewrite = rewrite_dynamic,
};
