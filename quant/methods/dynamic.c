/* Dynamic range quantization: int8 weights as constants; activations are quantized at run time, from their current
 * minimum and maximum. No calibration.
 *
 *     rmax = max(0, max x), rmin = min(0, min x)
 *     scale = max(rmax / 255 - rmin / 255, 1e-30 / 255)
 *     zp = 127 - rmax / scale, rounded to a multiple of 2^-10, then truncated to an integer
 *     x_q = clip(floor(x / scale + zp + 0.5), -128, 127)
 *     y = float(XlaDotV2(x_q, w_q) - zp * sum(w_q)) * (scale * s_w[c])
 *
 * Bias and activation function are unchanged. TensorFlow's graph multiplies int32(x_q) - zp, which yields the same
 * integers.
 *
 * TensorFlow computes scale and zp in float64, which a TPU has no units for; here they are float32. With u = 2^-24, two
 * quotients and a difference of numbers of unlike signs have a relative error of at most 2 u + u^2, and float64 rounded
 * to float32 one of u: the scales differ by at most 3.01 u, and not at all if rmin or rmax is 0. The quotient
 * rmax / scale is at most 255, so its error is below 255 * 4 u < 2^-14, and zp is rounded to 2^-10 before it is
 * truncated: it is TensorFlow's integer unless 127 - rmax / scale is within 2^-10 of an integer, and otherwise
 * TensorFlow's or that integer, which is nearer. Dividing first avoids an overflow of rmax - rmin. */
#include "quant/layer_index.h"
#include "quant/xla.h"

static const float SMALLEST_SCALE = 1e-30f / 255; /* dynamic-degenerate: avoids division by 0 for all zeros */
enum { STEPS = 1024 };                            /* zp is rounded to 1 / STEPS before it is truncated */

static struct tare_edge emit_extreme(struct tare_emit *emit, const char *reduce, const char *limit, const char *name,
                                     struct tare_edge flat, struct tare_edge axis, struct tare_edge zero) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "keep_dims", TARE_EMIT_BOOL, true },
                                            { 0 } };
    const struct tare_edge inputs[] = { flat, axis };
    struct tare_edge y = tare_emit_node(emit, reduce, name, inputs, 2, attrs);
    return tare_emit_binary(emit, limit, name, zero, y);
}

void tare_emit_dynamic_parameters(struct tare_emit *emit, struct tare_edge x, struct tare_edge *scale,
                                  struct tare_edge *zero_point) {
    const struct tare_shape flat = { .rank = 1, .dims = { -1 } };
    const struct tare_edge axis = tare_emit_vector(emit, "dynamic/axis", 1, (const int32_t[]){ 0 });
    const struct tare_edge zero = tare_emit_f32(emit, "dynamic/zero", 0);
    const struct tare_edge all = tare_emit_reshape(emit, "dynamic/flat", x, &flat);
    const struct tare_edge high = emit_extreme(emit, "Max", "Maximum", "dynamic/high", all, axis, zero);
    const struct tare_edge low = emit_extreme(emit, "Min", "Minimum", "dynamic/low", all, axis, zero);
    const struct tare_edge codes = tare_emit_f32(emit, "dynamic/codes", 255);
    struct tare_edge z;
    *scale = tare_emit_binary(emit, "Sub", "dynamic/scale", tare_emit_binary(emit, "Div", "dynamic/above", high, codes),
                              tare_emit_binary(emit, "Div", "dynamic/below", low, codes));
    *scale = tare_emit_binary(emit, "Maximum", "dynamic/scale", *scale,
                              tare_emit_f32(emit, "dynamic/smallest", SMALLEST_SCALE));
    z = tare_emit_binary(emit, "Div", "dynamic/zero_point", high, *scale);
    z = tare_emit_binary(emit, "Sub", "dynamic/zero_point", tare_emit_f32(emit, "dynamic/qmax", 127), z);
    z = tare_emit_binary(emit, "Mul", "dynamic/steps", z, tare_emit_f32(emit, "dynamic/steps", STEPS));
    z = tare_emit_unary(emit, "Round", "dynamic/round", z);
    z = tare_emit_binary(emit, "Mul", "dynamic/step", z, tare_emit_f32(emit, "dynamic/step", 1.0f / STEPS));
    *zero_point = tare_emit_cast(emit, "dynamic/zero_point", z, TARE_DT_INT32);
}

struct tare_edge tare_emit_dynamic_codes(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                         struct tare_edge zero_point) {
    struct tare_edge q = tare_emit_binary(emit, "Div", "quantize/div", x, scale);
    q = tare_emit_binary(emit, "AddV2", "quantize/add", q,
                         tare_emit_cast(emit, "quantize/zero_point", zero_point, TARE_DT_FLOAT));
    q = tare_emit_binary(emit, "AddV2", "quantize/half", q, tare_emit_f32(emit, "quantize/one_half", 0.5f));
    q = tare_emit_unary(emit, "Floor", "quantize/floor", q);
    q = tare_emit_binary(emit, "Maximum", "quantize/maximum", q, tare_emit_f32(emit, "quantize/qmin", -128));
    q = tare_emit_binary(emit, "Minimum", "quantize/minimum", q, tare_emit_f32(emit, "quantize/qmax", 127));
    return tare_emit_cast(emit, "quantize/cast", q, TARE_DT_INT8);
}

struct tare_edge tare_emit_dynamic_centred(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                           struct tare_edge zero_point) {
    struct tare_edge q = tare_emit_dynamic_codes(emit, x, scale, zero_point);
    q = tare_emit_cast(emit, "quantize/widen", q, TARE_DT_INT32);
    return tare_emit_binary(emit, "Sub", "quantize/centre", q, zero_point);
}

/* All layers that read the activation share one quantization. */
static tare_status integer_input(const struct tare_quant_shared **out, struct tare_quant_work *work,
                                 struct tare_emit *emit, struct tare_edge x) {
    struct tare_quant_shared made = { .method = &tare_method_dynamic, .real = x };
    *out = tare_quant_find_shared(work, &tare_method_dynamic, x, NULL);
    if (*out) return TARE_OK;
    x = tare_emit_float(emit, "dynamic/float", x);
    tare_emit_dynamic_parameters(emit, x, &made.scale, &made.zero_point);
    made.integer = tare_emit_dynamic_codes(emit, x, made.scale, made.zero_point);
    TARE_TRY(emit->status);
    return tare_quant_add_shared(out, work, &made);
}

/* The sums of x_q - z, from an int8 product: a TPU multiplies int8, but not the int32 difference. Windows are padded
 * with z. */
static struct tare_edge emit_sums(struct tare_emit *emit, struct tare_quant_work *work, struct tare_quant_layer *layer,
                                  const struct tare_quant_shared *x) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_quant_layer padded = *layer;
    struct tare_edge q = x->integer, offset;
    if (tare_quant_pads(&layer->product)) {
        const struct tare_edge z = tare_emit_cast(emit, "pad/zero_point", x->zero_point, TARE_DT_INT8);
        q = tare_emit_pad(emit, q, &padded.product, tare_emit_reshape(emit, "pad/scalar", z, &scalar));
    }
    q = tare_emit_product(emit, &padded, q, tare_emit_weight(emit, layer), TARE_DT_INT32);
    offset = tare_emit_binary(emit, "Mul", "zero_point_offset",
                              tare_emit_weight_sums(emit, "weight/sums", work->arena, layer, 1), x->zero_point);
    return tare_emit_binary(emit, "Sub", "sub_offset", q, offset);
}

static tare_status rewrite(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_quant_shared *x;
    struct tare_edge y, scale;
    if (layer->kind == TARE_KIND_GATHER) {
        y = tare_emit_table_lookup(&emit, layer);
    } else {
        TARE_TRY(integer_input(&x, work, &emit, layer->op->inputs[layer->left]));
        y = tare_emit_cast(&emit, "output/cast", emit_sums(&emit, work, layer, x), TARE_DT_FLOAT);
        scale = tare_emit_binary(&emit, "Mul", "output/scale", x->scale,
                                 tare_emit_channels(&emit, "weight/scale", &layer->product, q->scales, q->n_scales));
        y = tare_emit_binary(&emit, "Mul", "output/mul", y, scale);
        y = tare_emit_result(&emit, &layer->product, tare_emit_shift(&emit, layer, y));
    }
    return tare_quant_replace(NULL, &emit, (struct tare_edge){ layer->op, 0 }, y);
}

const struct tare_quant_method tare_method_dynamic = {
    .name = "dynamic",
    .help = "int8 weights, activations quantized while the model runs; needs no samples",
    .integer_inputs = true,
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_GATHER | 1 << TARE_KIND_XLA_DOT |
             1 << TARE_KIND_XLA_CONV,
    /* TensorFlow excludes these from dynamic range quantization */
    .kinds_on_request =
        1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM,
    .min_elements = 1024,
    .rewrite = rewrite,
};
