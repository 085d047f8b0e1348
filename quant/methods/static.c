/* Static range quantization: int8 activations with scales from calibration, int8 weights with scales from the weights,
 * exact int32 accumulators, and bias and activation function folded into the ops that follow.
 *
 * x_q = quantize(x); acc = XlaConvV2(pad(x_q, zero_point), w_q) - zero_point * sum(w_q) + bias_q
 * real y = float(acc) * (s_x * s_w[c]), clamped for Relu and Relu6.
 * If only static layers use y, y is requantized to int8 directly and never exists as float.
 * 16-bit activations are split into two bytes: their sums are 256 times the sums of the high bytes plus the sums of the
 * low bytes. */
#include "quant/emit.h"
#include "quant/layer_index.h"
#include "quant/range_cache.h"
#include "quant/same_scale.h"
#include "quant/selection/entries.h"
#include "quant/table.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

/* ---- planning ---- */

static const char *check_form(const struct tare_quant_layer *layer) {
    if (!layer->weight && layer->setting.activation_bits == 16)
        return "products of two activations have no form with 16 bits";
    return tare_quant_check_sums(layer);
}

static tare_status plan(const char **reason, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    if (layer->kind == TARE_KIND_GATHER) return TARE_OK;
    *reason = check_form(layer);
    if (!*reason) TARE_TRY(tare_quant_find_activations(reason, work, layer));
    if (*reason) return TARE_OK;
    /* XLA's ops take the range of an output from the layers that use it; a search costs milliseconds. */
    if (layer->setting.method == &tare_method_static)
        return layer->input_scale ? tare_quant_scale_entries(work, layer) : tare_quant_find_entries(work, layer);
    return tare_quant_find_params(&layer->has_output_params, &layer->output_params, work, layer->output,
                                  &layer->setting);
}

/* ---- integers ---- */

/* The products of the scales of input and weight: those of all channels, for each iteration if it has a range of its
 * own; one for each iteration if the weight has one scale. */
struct factors {
    double *exact, *rounded; /* rounded: see tare_quant_factor */
    int64_t count, each;     /* in all, of one iteration */
};

static int64_t iterations(const struct tare_quant_layer *layer) {
    return layer->entries ? layer->entries->count : 1;
}

static const struct tare_qparams *input_params(const struct tare_quant_layer *layer, int64_t iteration) {
    return layer->entries ? &layer->entries->left[iteration] : &layer->left_params;
}

/* Channels of the weight of one iteration. */
static int64_t channels_each(const struct tare_quant_layer *layer) {
    return tare_quant_channels(&layer->product) / (layer->entries && layer->selection ? layer->entries->count : 1);
}

/* Whether each iteration of a loop has a shift of its own. */
static bool has_own_shift(const struct tare_quant_layer *layer) {
    return layer->shift && layer->entries && layer->selection;
}

static struct tare_edge no_memory(struct tare_emit *emit) {
    emit->status = TARE_NO_MEMORY;
    return (struct tare_edge){ NULL, 0 };
}

/* The scale of a channel's sums in an iteration. */
static double factor_at(const struct factors *factors, int64_t iteration, int64_t channel) {
    return factors->exact[iteration * factors->each + (factors->each > 1 ? channel : 0)];
}

/* zero_point * sum of each output channel's integers, the zero-point correction term, less what a loop's layer adds to
 * its results, which this takes over. */
static struct tare_edge emit_offset(struct tare_emit *emit, struct tare_arena *arena, struct tare_quant_layer *layer,
                                    const struct factors *factors) {
    const int64_t each = channels_each(layer), n = iterations(layer);
    int32_t *sums, *offsets;
    if (!layer->entries)
        return tare_emit_weight_sums(emit, "zero_point_offset", arena, layer, layer->left_params.zero_point);
    sums = tare_quant_weight_sums(arena, layer);
    offsets = TARE_NEW_ARRAY(arena, int32_t, (size_t)(n * each));
    if (!sums || !offsets) return no_memory(emit);
    const bool takes_shift = has_own_shift(layer);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < each; c++) {
            const int64_t k = layer->selection ? i * each + c : c;
            const double added = takes_shift ? nearbyint(layer->shift[k] / factor_at(factors, i, c)) : 0;
            offsets[i * each + c] = (int32_t)((int64_t)layer->entries->left[i].zero_point * sums[k] -
                                              (int64_t)fmax(INT32_MIN, fmin(INT32_MAX, added)));
        }
    if (takes_shift) layer->shift = NULL;
    return tare_emit_channel_ints(emit, "zero_point_offset", layer, offsets);
}

static struct tare_edge emit_bias(struct tare_emit *emit, struct tare_arena *arena,
                                  const struct tare_quant_layer *layer, const struct factors *factors) {
    const int64_t columns = layer->product.columns, n = iterations(layer);
    int32_t *all = TARE_NEW_ARRAY(arena, int32_t, (size_t)(n * columns));
    for (int64_t i = 0; i < n && all; i++) {
        const int32_t *values = tare_quant_bias_integers(arena, layer, factors->exact + i * factors->each);
        if (!values) return no_memory(emit);
        memcpy(all + i * columns, values, (size_t)columns * sizeof *all);
    }
    return all ? tare_emit_channel_ints(emit, "bias", layer, all) : no_memory(emit);
}

/* A padded zero is the integer zero_point; XLA's own padding would insert 0. */
static struct tare_edge emit_integer_product(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                             struct tare_edge x, struct tare_edge w) {
    struct tare_quant_layer padded = *layer;
    const struct tare_quant_entries *entries = layer->entries;
    const int32_t zero_point = layer->left_params.zero_point;
    const bool shifts = entries ? tare_quant_has_zero_point(entries, entries->left) : zero_point != 0;
    if (shifts && tare_quant_pads(&layer->product)) {
        const struct tare_edge zero =
            entries ? tare_emit_cast(emit, "pad/zero_point",
                                     tare_emit_entry_zero_point(emit, "pad/zero_points", entries, entries->left),
                                     TARE_DT_INT8)
                    : tare_emit_i8(emit, "pad/zero_point", (int8_t)zero_point);
        x = tare_emit_pad(emit, x, &padded.product, zero);
    }
    return tare_emit_product(emit, &padded, x, w, TARE_DT_INT32);
}

/* bias - zero_point * sum in one constant, which a TPU adds in one step; modulo 2^32, as the two steps would. */
static struct tare_edge emit_bias_and_offset(struct tare_emit *emit, struct tare_arena *arena,
                                             const struct tare_quant_layer *layer, const struct factors *factors) {
    const int32_t *bias = tare_quant_bias_integers(arena, layer, factors->exact);
    int32_t *values = tare_quant_weight_sums(arena, layer);
    if (!bias || !values) return no_memory(emit);
    for (int64_t c = 0; c < layer->product.columns; c++)
        values[c] = (int32_t)(bias[c] - (int64_t)layer->left_params.zero_point * values[c]);
    return tare_emit_channel_ints(emit, "bias", layer, values);
}

/* The accumulators of a layer with constant weight, with zero-point correction and bias. */
static struct tare_edge emit_sums(struct tare_emit *emit, struct tare_quant_work *work, struct tare_quant_layer *layer,
                                  struct tare_edge x, const struct factors *factors) {
    struct tare_edge sums = emit_integer_product(emit, layer, x, tare_emit_weight(emit, layer));
    const bool has_bias = layer->bias || layer->bias_real;
    const bool shifts = layer->entries ? tare_quant_has_zero_point(layer->entries, layer->entries->left)
                                       : layer->left_params.zero_point != 0;
    if (has_bias && shifts && !layer->entries && tare_quant_channels(&layer->product) == layer->product.columns)
        return tare_emit_binary(emit, "AddV2", "add_bias", sums,
                                emit_bias_and_offset(emit, work->arena, layer, factors));
    if (shifts || has_own_shift(layer))
        sums = tare_emit_binary(emit, "Sub", "sub_offset", sums, emit_offset(emit, work->arena, layer, factors));
    if (has_bias)
        sums = tare_emit_binary(emit, "AddV2", "add_bias", sums, emit_bias(emit, work->arena, layer, factors));
    return sums;
}

/* ---- activations of 16 bits ---- */

/* Accumulator type for a 16-bit activation: int32 if no activation can overflow it, otherwise int64. */
static int wide_sums(const struct tare_quant_layer *layer, const struct factors *factors) {
    const struct tare_quant_product *p = &layer->product;
    const bool has_bias = layer->bias || layer->bias_real;
    const int8_t *q = TARE_CONST_DATA(int8_t, &layer->quantized.values);
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t n = 0; n < p->columns; n++) {
            double most = 0;
            for (int64_t i = 0; i < iterations(layer) && has_bias; i++)
                most = fmax(most, fabs(tare_quant_bias_code(layer, factors->exact + i * factors->each, n)));
            for (int64_t k = 0; k < p->rows; k++)
                most += fabs((double)q[(b * p->rows + k) * p->columns + n]) * layer->left_params.qmax;
            if (most > INT32_MAX) return TARE_DT_INT64;
        }
    return TARE_DT_INT32;
}

/* 128 * sum of each output channel's integers, and the bias. */
static struct tare_edge emit_wide_offset(struct tare_emit *emit, struct tare_arena *arena,
                                         const struct tare_quant_layer *layer, const struct factors *factors,
                                         int dtype) {
    const int64_t each = channels_each(layer), all = iterations(layer) * each;
    const int32_t *of_weight = tare_quant_weight_sums(arena, layer);
    int64_t *sums = TARE_NEW_ARRAY(arena, int64_t, (size_t)all);
    int32_t *narrow = TARE_NEW_ARRAY(arena, int32_t, (size_t)all);
    if (!of_weight || !sums || !narrow) return no_memory(emit);
    for (int64_t c = 0; c < all; c++) {
        sums[c] = (int64_t)of_weight[layer->selection ? c : c % each] * 128;
        if (layer->bias || layer->bias_real)
            sums[c] += (int64_t)tare_quant_bias_code(layer, factors->exact + c / each * factors->each, c % each);
        narrow[c] = (int32_t)sums[c];
    }
    return dtype == TARE_DT_INT32 ? tare_emit_channel_ints(emit, "offset", layer, narrow)
                                  : tare_emit_channel_longs(emit, "offset", layer, sums);
}

/* x = 256 h + l + 128 with h and l in int8: two int8 products, as a TPU has no wider integer products. In padding,
 * zero is h = 0 and l = -128. */
static struct tare_edge emit_wide_sums(struct tare_emit *emit, struct tare_arena *arena, struct tare_quant_layer *layer,
                                       struct tare_edge x, const struct factors *factors) {
    const int dtype = wide_sums(layer, factors);
    const struct tare_edge w = tare_emit_weight(emit, layer), wide = tare_emit_cast(emit, "wide", x, TARE_DT_INT32);
    struct tare_quant_layer padded = *layer;
    struct tare_edge h, l;
    h = tare_emit_binary(emit, "RightShift", "high", wide, tare_emit_i32(emit, "high/bits", 8));
    h = tare_emit_cast(emit, "high", h, TARE_DT_INT8);
    l = tare_emit_binary(emit, "BitwiseAnd", "low", wide, tare_emit_i32(emit, "low/mask", 255));
    l = tare_emit_binary(emit, "Sub", "low", l, tare_emit_i32(emit, "low/half", 128));
    l = tare_emit_cast(emit, "low", l, TARE_DT_INT8);
    if (tare_quant_pads(&layer->product))
        l = tare_emit_pad(emit, l, &padded.product, tare_emit_i8(emit, "low/zero", -128));
    h = tare_emit_product(emit, layer, h, w, TARE_DT_INT32);
    l = tare_emit_product(emit, &padded, l, w, TARE_DT_INT32);
    if (dtype == TARE_DT_INT64) {
        h = tare_emit_cast(emit, "high/sums", h, dtype);
        l = tare_emit_cast(emit, "low/sums", l, dtype);
    }
    h = tare_emit_binary(emit, "Mul", "high/scaled", h, tare_emit_number(emit, "high/step", dtype, 256));
    h = tare_emit_binary(emit, "AddV2", "sums", h, l);
    return tare_emit_binary(emit, "AddV2", "add_offset", h, emit_wide_offset(emit, arena, layer, factors, dtype));
}

/* ---- two activations ---- */

/* An int8 activation as int32 minus its zero point: the product then needs no zero-point correction. */
static struct tare_edge emit_centred(struct tare_emit *emit, const char *name, struct tare_edge q,
                                     struct tare_edge zero_point) {
    struct tare_edge wide = tare_emit_cast(emit, name, q, TARE_DT_INT32);
    return tare_emit_binary(emit, "Sub", name, wide, zero_point);
}

static struct tare_edge emit_zero(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                  const struct tare_qparams *by_entry, int32_t zero_point) {
    if (!layer->entries) return tare_emit_i32(emit, "zero_point", zero_point);
    return tare_emit_cast(emit, "zero_point", tare_emit_entry_zero_point(emit, "zero_points", layer->entries, by_entry),
                          TARE_DT_INT32);
}

/* The integers of an activation, by the range of the iteration if there is one; `by_entry` NULL: there is none. */
static tare_status emit_integers(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                 const struct tare_quant_layer *layer, struct tare_edge real,
                                 struct tare_qparams *by_entry, const struct tare_qparams *params) {
    const struct tare_quant_shared *shared;
    if (!by_entry) return tare_quant_integer_form(out, work, emit, real, params);
    struct tare_quant_entries *entries = TARE_NEW(work->arena, struct tare_quant_entries);
    if (!entries) return TARE_NO_MEMORY;
    *entries =
        (struct tare_quant_entries){ .by = layer->entries->by, .count = layer->entries->count, .left = by_entry };
    shared = tare_quant_find_shared_entries(work, real, entries);
    if (!shared) {
        const struct tare_edge zero_point = tare_emit_entry_zero_point(emit, "quantize/zero_points", entries, by_entry);
        const struct tare_edge scale = tare_emit_entry_scale(emit, "quantize/scales", entries, by_entry);
        const struct tare_quant_shared made = {
            .entries = entries,
            .method = &tare_method_static,
            .real = real,
            .integer = tare_emit_quantize_by(emit, real, scale, zero_point, params),
        };
        TARE_TRY(emit->status);
        TARE_TRY(tare_quant_add_shared(&shared, work, &made));
    }
    *out = shared->integer;
    return TARE_OK;
}

/* If both zero points are 0, this is an int8 product; otherwise zp_x and zp_w are subtracted before it, which yields
 * the same sums as subtracting the correction term zp_w * sum(x) + zp_x * sum(w) - zp_x * zp_w * K after it. */
static tare_status emit_pair(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                             const struct tare_quant_layer *layer) {
    const int32_t left_zero = layer->left_params.zero_point, right_zero = layer->right_params.zero_point;
    const struct tare_quant_entries *entries = layer->entries;
    struct tare_qparams *left = entries ? entries->left : NULL, *right = entries ? entries->right : NULL;
    const bool shifts = entries ? tare_quant_has_zero_point(entries, left) || tare_quant_has_zero_point(entries, right)
                                : left_zero || right_zero;
    struct tare_edge x, w;
    TARE_TRY(emit_integers(&x, work, emit, layer, layer->op->inputs[layer->left], left, &layer->left_params));
    TARE_TRY(emit_integers(&w, work, emit, layer, layer->op->inputs[layer->right], right, &layer->right_params));
    if (shifts) {
        x = emit_centred(emit, "left/centre", x, emit_zero(emit, layer, left, left_zero));
        w = emit_centred(emit, "right/centre", w, emit_zero(emit, layer, right, right_zero));
    }
    *out = tare_emit_product(emit, layer, x, w, TARE_DT_INT32);
    return emit->status;
}

/* ---- outputs ---- */

static struct tare_edge emit_real_output(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                         struct tare_edge sums, const double *factors, int64_t n_factors) {
    struct tare_edge y = tare_emit_cast(emit, "output/cast", sums, TARE_DT_FLOAT);
    y = tare_emit_binary(emit, "Mul", "output/mul", y,
                         tare_emit_channels(emit, "output/scale", layer, factors, n_factors));
    y = tare_emit_shift(emit, layer, y);
    if (layer->activation != TARE_ACTIVATION_NONE)
        y = tare_emit_binary(emit, "Maximum", "output/relu", y, tare_emit_f32(emit, "output/zero", 0));
    if (layer->activation == TARE_ACTIVATION_RELU6)
        y = tare_emit_binary(emit, "Minimum", "output/relu6", y, tare_emit_f32(emit, "output/six", 6));
    return tare_emit_result(emit, &layer->product, y);
}

static struct tare_edge emit_integer_output(struct tare_emit *emit, struct tare_arena *arena,
                                            const struct tare_quant_layer *layer, struct tare_edge sums,
                                            const double *scales, int64_t n_scales, const struct tare_qparams *out) {
    double *factors = TARE_NEW_ARRAY(arena, double, (size_t)n_scales);
    float low = (float)out->qmin, high = (float)out->qmax;
    struct tare_edge y = tare_emit_cast(emit, "requantize/cast", sums, TARE_DT_FLOAT);
    if (!factors) {
        emit->status = TARE_NO_MEMORY;
        return y;
    }
    for (int64_t i = 0; i < n_scales; i++)
        factors[i] = (double)((float)scales[i] / (float)out->scale);
    if (layer->activation != TARE_ACTIVATION_NONE) low = fmaxf(low, (float)out->zero_point);
    if (layer->activation == TARE_ACTIVATION_RELU6) high = fminf(high, tare_quantize_number(6, out));
    y = tare_emit_binary(emit, "Mul", "requantize/mul", y,
                         tare_emit_channels(emit, "requantize/factor", layer, factors, n_scales));
    y = tare_emit_binary(emit, "AddV2", "requantize/add", y,
                         tare_emit_f32(emit, "requantize/zero_point", (float)out->zero_point));
    y = tare_emit_binary(emit, "Maximum", "requantize/maximum", y, tare_emit_f32(emit, "requantize/low", low));
    y = tare_emit_binary(emit, "Minimum", "requantize/minimum", y, tare_emit_f32(emit, "requantize/high", high));
    y = tare_emit_unary(emit, "Round", "requantize/round", y);
    y = tare_emit_cast(emit, "requantize/narrow", y, tare_quant_integer_dtype(out));
    return tare_emit_result(emit, &layer->product, y);
}

static tare_status replace_output(struct tare_quant_work *work, struct tare_quant_layer *layer, struct tare_emit *emit,
                                  struct tare_edge sums, const double *scales, int64_t n_scales) {
    struct tare_edge y;
    const struct tare_qparams *expected;
    TARE_TRY(tare_quant_demanded(&expected, work, layer->output));
    if (expected && !layer->shift) {
        y = emit_integer_output(emit, work->arena, layer, sums, scales, n_scales, expected);
        TARE_TRY(emit->status);
        return tare_quant_share_integers(work, layer->output, y, expected); /* instead of quantizing themselves */
    }
    y = emit_real_output(emit, layer, sums, scales, n_scales);
    return tare_quant_replace(&layer->replaced, emit, layer->output, y);
}

/* By iteration, then by channel. */
static tare_status find_factors(struct factors *out, struct tare_arena *arena, const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const int64_t n = iterations(layer), stacked = layer->entries && layer->selection && q->n_scales > 1;
    out->each = stacked ? q->n_scales / n : q->n_scales;
    out->count = n * out->each;
    out->exact = TARE_NEW_ARRAY(arena, double, (size_t)out->count);
    out->rounded = TARE_NEW_ARRAY(arena, double, (size_t)out->count);
    if (!out->exact || !out->rounded) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < out->count; i++) {
        const double weight = q->scales[stacked ? i : i % out->each];
        const struct tare_qparams *input = input_params(layer, i / out->each);
        out->exact[i] = input->scale * weight;
        out->rounded[i] = tare_quant_factor(input, weight);
    }
    return TARE_OK;
}

static tare_status rewrite_weighted(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    struct factors factors;
    struct tare_edge x, sums;
    TARE_TRY(find_factors(&factors, work->arena, layer));
    TARE_TRY(emit_integers(&x, work, &emit, layer, layer->op->inputs[layer->left],
                           layer->entries ? layer->entries->left : NULL, &layer->left_params));
    sums = tare_quant_integer_dtype(&layer->left_params) == TARE_DT_INT16
               ? emit_wide_sums(&emit, work->arena, layer, x, &factors)
               : emit_sums(&emit, work, layer, x, &factors);
    TARE_TRY(emit.status);
    return replace_output(work, layer, &emit, sums, factors.rounded, factors.count);
}

/* A product of two activations. */
static tare_status rewrite_pair(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const int64_t n = iterations(layer);
    double *factors = TARE_NEW_ARRAY(work->arena, double, (size_t)n);
    struct tare_edge sums;
    if (!factors) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < n; i++)
        factors[i] = tare_quant_factor(input_params(layer, i),
                                       layer->entries ? layer->entries->right[i].scale : layer->right_params.scale);
    TARE_TRY(emit_pair(&sums, work, &emit, layer));
    return replace_output(work, layer, &emit, sums, factors, n);
}

static tare_status rewrite(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    if (layer->kind == TARE_KIND_GATHER) return tare_quant_rewrite_table(layer);
    return layer->weight ? rewrite_weighted(work, layer) : rewrite_pair(work, layer);
}

const struct tare_quant_method tare_method_static = {
    .name = "static",
    .help = "int8 weights and activations, with scales from samples",
    .needs_ranges = true,
    .integer_inputs = true,
    .takes_bias = true,
    .takes_two_inputs = true,
    .takes_wide = true,
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_BATCH_MATMUL |
             1 << TARE_KIND_EINSUM | 1 << TARE_KIND_XLA_DOT | 1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_GATHER |
             1 << TARE_KIND_TRANSPOSED_CONV,
    .kinds_on_request = 1 << TARE_KIND_DEPTHWISE, /* no gain on a TPU */
    .plan = plan,
    .rewrite = rewrite,
};
