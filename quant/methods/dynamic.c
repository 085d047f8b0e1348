/* Dynamic range quantization: int8 weights as constants; activations are quantized at run time, from their current
 * minimum and maximum. No calibration.
 *
 *     rmax = max(0, max x), rmin = min(0, min x)
 *     scale = max(rmax / 255 - rmin / 255, 1e-30 / 255)
 *     zp = 127 - rmax / scale, rounded to a multiple of 2^-10, then truncated to an integer
 *     x_q = clip(floor(x / scale + zp + 0.5), -128, 127)
 *     y = float(XlaDotV2(x_q, w_q) - zp * sum(w_q)) * (scale * s_w[c])
 *
 * If x is the concatenation of up to four tensors along the contracted axis, as the input and the state of a recurrent
 * cell, each of them gets a scale of its own: one scale for all would round a state between -1 and 1 to the grid of
 * inputs that are many times larger. The product is then the sum of the products of the parts with their rows of w_q.
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

/* The product of an activation and the layer's weight, as float32 in its raw order of axes. */
static tare_status emit_real_product(struct tare_edge *out, struct tare_emit *emit, struct tare_quant_work *work,
                                     struct tare_quant_layer *layer, struct tare_edge x) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_quant_shared *shared;
    struct tare_edge y, scale;
    TARE_TRY(integer_input(&shared, work, emit, x));
    y = tare_emit_cast(emit, "output/cast", emit_sums(emit, work, layer, shared), TARE_DT_FLOAT);
    scale = tare_emit_binary(emit, "Mul", "output/scale", shared->scale,
                             tare_emit_channels(emit, "weight/scale", layer, q->scales, q->n_scales));
    *out = tare_emit_binary(emit, "Mul", "output/mul", y, scale);
    return TARE_OK;
}

/* ---- concatenated activations ---- */

/* Sizes of the operands along the last axis; that of one operand may follow from the others. */
static bool find_sizes(int64_t *sizes, const struct tare_quant_work *work, const struct tare_node *concat, size_t count,
                       int64_t rows) {
    size_t unknown = count;
    for (size_t i = 0; i < count; i++) {
        const struct tare_shape shape = tare_model_shape(work->shapes, concat->inputs[i]);
        sizes[i] = shape.rank > 0 ? shape.dims[shape.rank - 1] : TARE_UNKNOWN_DIM;
        if (sizes[i] > 0) {
            rows -= sizes[i];
            continue;
        }
        if (unknown < count) return false;
        unknown = i;
    }
    if (unknown == count) return rows == 0;
    sizes[unknown] = rows;
    return rows > 0;
}

/* The operands of a concatenation along the contracted axis, where the layer is a plain matrix product. */
static void find_parts(const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const struct tare_node *concat = layer->input.node;
    const size_t count = concat->n_inputs ? concat->n_inputs - 1 : 0;
    const int rank = p->n_free_left + 1;
    const struct tare_tensor *axis;
    int64_t at;
    if (!tare_node_is(concat, "ConcatV2") || count < 2 || count > TARE_MOST_PARTS || !layer->weight || layer->selection)
        return;
    if (p->spatial || p->n_batch || p->n_contracted != 1 || p->batches != 1 || p->squeezed_left || p->spreads_left)
        return;
    axis = tare_edge_constant(concat->inputs[count]);
    if (!axis || axis->elements != 1 || p->left_contracted[0] != rank - 1) return;
    at = tare_tensor_get_i64(axis, 0);
    if ((at == -1 || at == rank - 1) && find_sizes(layer->part_rows, work, concat, count, p->rows))
        layer->n_parts = count;
}

static tare_status plan(const char **reason, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    if (layer->kind == TARE_KIND_GATHER) return TARE_OK;
    find_parts(work, layer);
    *reason = tare_quant_check_sums(layer);
    return TARE_OK;
}

/* The rows of the integers that belong to a part. */
static struct tare_edge emit_rows(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge w,
                                  int64_t first, int64_t count) {
    const int rank = layer->product.arranged.rank;
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT8 },
                                            { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    int32_t begin[TARE_MAX_RANK] = { (int32_t)first }, size[TARE_MAX_RANK];
    for (int i = 0; i < rank; i++)
        size[i] = i ? -1 : (int32_t)count;
    const struct tare_edge inputs[] = { w, tare_emit_vector(emit, "weight/begin", rank, begin),
                                        tare_emit_vector(emit, "weight/size", rank, size) };
    return tare_emit_node(emit, "Slice", "weight/rows", inputs, 3, attrs);
}

/* The sum of the products of the parts. */
static tare_status emit_parts(struct tare_edge *out, struct tare_emit *emit, struct tare_quant_work *work,
                              struct tare_quant_layer *layer) {
    const struct tare_node *concat = layer->op->inputs[layer->left].node;
    const struct tare_edge w = tare_emit_weight(emit, layer);
    int64_t first = 0;
    for (size_t i = 0; i < layer->n_parts; i++) {
        struct tare_quant_layer part = *layer;
        struct tare_edge y;
        tare_status status;
        part.product.rows = part.product.arranged.dims[0] = layer->part_rows[i];
        part.integers = emit_rows(emit, layer, w, first, layer->part_rows[i]);
        TARE_TRY(tare_tensor_share_rows(&part.quantized.values, &layer->quantized.values, first, layer->part_rows[i]));
        status = emit_real_product(&y, emit, work, &part, concat->inputs[i]);
        tare_tensor_reset(&part.quantized.values);
        TARE_TRY(status);
        *out = i ? tare_emit_binary(emit, "AddV2", "output/add", *out, y) : y;
        first += layer->part_rows[i];
    }
    return TARE_OK;
}

/* A pass may have put ops between the concatenation and the layer. */
static bool has_parts(const struct tare_quant_layer *layer) {
    const struct tare_node *concat = layer->op->inputs[layer->left].node;
    return layer->n_parts && tare_node_is(concat, "ConcatV2") && concat->n_inputs == layer->n_parts + 1 &&
           layer->quantized.values.shape.dims[0] == layer->product.rows;
}

static tare_status rewrite(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    struct tare_edge y;
    if (layer->kind == TARE_KIND_GATHER) {
        y = tare_emit_table_lookup(&emit, layer);
    } else {
        TARE_TRY(has_parts(layer) ? emit_parts(&y, &emit, work, layer)
                                  : emit_real_product(&y, &emit, work, layer, layer->op->inputs[layer->left]));
        y = tare_emit_result(&emit, &layer->product, tare_emit_shift(&emit, layer, y));
    }
    return tare_quant_replace(NULL, &emit, (struct tare_edge){ layer->op, 0 }, y);
}

const struct tare_quant_method tare_method_dynamic = {
    .name = "dynamic",
    .help = "int8 weights, activations quantized while the model runs; needs no samples",
    .integer_inputs = true,
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_GATHER | 1 << TARE_KIND_XLA_DOT |
             1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_TRANSPOSED_CONV,
    /* TensorFlow excludes these from dynamic range quantization */
    .kinds_on_request =
        1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM,
    .min_elements = 1024,
    .plan = plan,
    .rewrite = rewrite,
};
