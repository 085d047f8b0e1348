/* Dynamic range quantization: int8 weights as constants; activations are quantized at run time, each row from its
 * current minimum and maximum (quant/dynamic_range.h). No calibration.
 *
 *     y = float(XlaDotV2(x_q, w_q) - zp[row] * sum(w_q)[c]) * (scale[row] * s_w[c])
 *
 * A convolution that pads does so before its input is quantized: a padded zero has the zero point of its image.
 *
 * If x is the concatenation of up to four tensors along the contracted axis, as the input and the state of a recurrent
 * cell, each of them gets scales of its own: one scale for all would round a state between -1 and 1 to the grid of
 * inputs that are many times larger. The product is then the sum of the products of the parts with their rows of w_q.
 *
 * Bias and activation function are unchanged. */
#include "quant/dynamic_range.h"
#include "quant/layer_index.h"
#include "quant/table.h"
#include "quant/xla.h"

#include <string.h>

static bool has_axes(const struct tare_quant_shared *shared, const int32_t *axes, int count) {
    return shared->n_axes == count && memcmp(shared->axes, axes, (size_t)count * sizeof *axes) == 0;
}

/* All layers that read the activation with the same rows share the parameters, and those that do not pad it the
 * integers. */
static tare_status share_input(const struct tare_quant_shared **out, struct tare_quant_work *work,
                               struct tare_emit *emit, const struct tare_quant_product *product, struct tare_edge x) {
    struct tare_quant_shared made = { .method = &tare_method_dynamic, .real = x };
    made.n_axes = tare_quant_row_axes(made.axes, product);
    *out = tare_quant_find_shared(work, &tare_method_dynamic, x, NULL);
    while (*out && !((*out)->method == &tare_method_dynamic && has_axes(*out, made.axes, made.n_axes)))
        *out = (*out)->next;
    if (*out) return TARE_OK;
    x = tare_emit_float(emit, "dynamic/float", x);
    tare_emit_dynamic_parameters(emit, x, made.axes, made.n_axes, TARE_ZERO_POINT_ROUNDED, &made.scale,
                                 &made.zero_point);
    made.integer = tare_emit_dynamic_codes(emit, x, made.scale, made.zero_point);
    TARE_TRY(emit->status);
    return tare_quant_add_shared(out, work, &made);
}

/* The integers of the padded activation; `product` no longer pads. */
static struct tare_edge emit_padded(struct tare_emit *emit, struct tare_quant_product *product,
                                    const struct tare_quant_shared *shared) {
    struct tare_edge x = tare_emit_float(emit, "pad/float", shared->real);
    x = tare_emit_pad(emit, x, product, tare_emit_f32(emit, "pad/zero", 0));
    return tare_emit_dynamic_codes(emit, x, shared->scale, shared->zero_point);
}

/* The product of an activation and the layer's weight, as float32 in its raw order of axes. The sums are of x_q - z,
 * from an int8 product: a TPU multiplies int8, but not the int32 difference. */
static tare_status emit_real_product(struct tare_edge *out, struct tare_emit *emit, struct tare_quant_work *work,
                                     struct tare_quant_layer *layer, struct tare_edge x) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_quant_product *product = &layer->product;
    struct tare_quant_layer padded = *layer;
    const struct tare_quant_shared *shared;
    struct tare_edge y, offset, scale;
    TARE_TRY(share_input(&shared, work, emit, product, x));
    x = tare_quant_pads(product) ? emit_padded(emit, &padded.product, shared) : shared->integer;
    y = tare_emit_product(emit, &padded, x, tare_emit_weight(emit, layer), TARE_DT_INT32);
    offset = tare_emit_of_rows(emit, "rows/zero_point", product, shared->zero_point);
    offset = tare_emit_binary(emit, "Mul", "zero_point_offset",
                              tare_emit_weight_sums(emit, "weight/sums", work->arena, layer, 1), offset);
    y = tare_emit_binary(emit, "Sub", "sub_offset", y, offset);
    scale = tare_emit_channels(emit, "weight/scale", layer, q->scales, q->n_scales);
    scale = tare_emit_binary(emit, "Mul", "output/scale", tare_emit_of_rows(emit, "rows/scale", product, shared->scale),
                             scale);
    *out = tare_emit_binary(emit, "Mul", "output/mul", tare_emit_cast(emit, "output/cast", y, TARE_DT_FLOAT), scale);
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
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM |
             1 << TARE_KIND_GATHER | 1 << TARE_KIND_XLA_DOT | 1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_TRANSPOSED_CONV,
    .kinds_on_request = 1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_CONV3D,
    .min_elements = TARE_LEAST_WEIGHT,
    .plan = plan,
    .rewrite = rewrite,
};
