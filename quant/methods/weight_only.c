/* Weight-only quantization: weights are integers with scales per output channel, per block of rows or per tensor;
 * all arithmetic stays float32.
 *
 * y = XlaConvV2(x, w_q) * s_w[c], or XlaDotV2; with blocks y = XlaConvV2(x, w_q * s_w). A table is read as integers and
 * then multiplied. Bias and activation function are unchanged. bfloat16 and half activations keep their dtype: int8
 * values are exact in both, sums are float32 and are rounded once, after the scale. */
#include "quant/table.h"
#include "quant/xla.h"

static tare_status rewrite(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_edge x =
        layer->op->inputs[layer->left]; /* not layer->input: an earlier rewrite may have moved it */
    struct tare_edge y, w;
    (void)work;
    if (layer->kind == TARE_KIND_GATHER) {
        y = tare_emit_table_lookup(&emit, layer);
    } else if (q->n_blocks > 1) {
        w = tare_emit_real_weight(&emit, layer);
        if (emit.status == TARE_OK && tare_edge_dtype(x) != TARE_DT_FLOAT)
            w = tare_emit_cast(&emit, "weight/narrowed", w, tare_edge_dtype(x));
        y = tare_emit_product(&emit, layer, x, w, TARE_DT_FLOAT);
        y = tare_emit_result(&emit, &layer->product, tare_emit_shift(&emit, layer, y));
    } else {
        w = tare_emit_operand(&emit, layer, tare_edge_dtype(x));
        y = tare_emit_product(&emit, layer, x, w, TARE_DT_FLOAT);
        y = tare_emit_binary(&emit, "Mul", "scaled", y,
                             tare_emit_channels(&emit, "scale", layer, q->scales, q->n_scales));
        y = tare_emit_result(&emit, &layer->product, tare_emit_shift(&emit, layer, y));
    }
    return tare_quant_replace(NULL, &emit, (struct tare_edge){ layer->op, 0 }, y);
}

const struct tare_quant_method tare_method_weight_only = {
    .name = "weight_only",
    .help = "integer weights, float arithmetic; needs no samples",
    .takes_blocks = true,
    .kinds = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_MATMUL |
             1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM | 1 << TARE_KIND_XLA_DOT | 1 << TARE_KIND_XLA_CONV |
             1 << TARE_KIND_GATHER | 1 << TARE_KIND_TRANSPOSED_CONV,
    .min_elements = TARE_LEAST_WEIGHT,
    .rewrite = rewrite,
};
