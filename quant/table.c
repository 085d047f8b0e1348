/* The nodes of tables. */
#include "quant/table.h"
#include "base/alloc.h"
#include "graph/model.h"
#include "quant/xla.h"

static struct tare_edge emit_gather(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                    struct tare_edge table) {
    const struct tare_node *op = layer->op;
    const struct tare_edge indices = op->inputs[1];
    const struct tare_edge axis = op->n_inputs > 2 ? op->inputs[2] : tare_emit_i32(emit, "axis", 0);
    const struct tare_edge inputs[] = { table, indices, axis };
    if (emit->status != TARE_OK) return table;
    const struct tare_emit_attr attrs[] = { { "Tparams", TARE_EMIT_TYPE, tare_edge_dtype(table) },
                                            { "Tindices", TARE_EMIT_TYPE, tare_edge_dtype(indices) },
                                            { "Taxis", TARE_EMIT_TYPE, tare_edge_dtype(axis) },
                                            { "batch_dims", TARE_EMIT_INT, 0 },
                                            { 0 } };
    return tare_emit_node(emit, "GatherV2", name, inputs, 3, attrs);
}

/* The scales of the blocks of a table's entries, as a table with the same axis of entries. */
static struct tare_edge emit_entry_scales(struct tare_emit *emit, struct tare_quant_layer *layer,
                                          const struct tare_shape *shape) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const int64_t entries = layer->product.columns;
    double *scales = NULL;
    if (layer->block_scales.node) return layer->block_scales;
    if (layer->unarranged) {
        scales = tare_malloc((size_t)q->n_scales * sizeof *scales);
        if (!scales) emit->status = TARE_NO_MEMORY;
        for (int64_t i = 0; scales && i < q->n_scales; i++)
            scales[i] = q->scales[i % q->n_blocks * entries + i / q->n_blocks];
    }
    layer->block_scales = tare_emit_floats(emit, "scale", shape, scales ? scales : q->scales);
    tare_free(scales);
    return layer->block_scales;
}

/* The axes up to that of the entries, then the blocks; the blocks come first where entries are columns. */
static struct tare_shape scales_shape(const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const struct tare_tensor *axis = layer->op->n_inputs > 2 ? tare_edge_constant(layer->op->inputs[2]) : NULL;
    const int64_t at = axis ? tare_tensor_get_i64(axis, 0) : 0;
    struct tare_shape shape = p->columns > 1 ? p->channel_shape : p->arranged;
    if (p->columns > 1) {
        shape.dims[0] = layer->quantized.n_blocks;
        return shape;
    }
    shape.rank = (int)(at < 0 ? at + p->arranged.rank : at) + 1;
    shape.dims[shape.rank++] = layer->quantized.n_blocks;
    return shape;
}

/* Entries times the scales of their blocks: [entries, blocks, block] times [entries, blocks, 1], or [blocks, block,
 * entries] times [blocks, 1, entries]. */
static struct tare_edge emit_scaled_blocks(struct tare_emit *emit, struct tare_quant_layer *layer, struct tare_edge y) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const bool columns = layer->product.columns > 1;
    const struct tare_shape blocks =
                                tare_shape_make(3, columns ? q->n_blocks : -1, columns ? q->layout.block : q->n_blocks,
                                                columns ? -1 : q->layout.block),
                            scales = tare_shape_make(3, columns ? q->n_blocks : -1, columns ? 1 : q->n_blocks,
                                                     columns ? -1 : 1),
                            stored = scales_shape(layer);
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const struct tare_edge shape = tare_emit_node(emit, "Shape", "entries/shape", &y, 1, attrs);
    struct tare_edge scale = emit_entry_scales(emit, layer, &stored);
    scale = tare_emit_reshape(emit, "scales/blocks", emit_gather(emit, "scales", layer, scale), &scales);
    y = tare_emit_binary(emit, "Mul", "scaled", tare_emit_reshape(emit, "entries/blocks", y, &blocks), scale);
    return tare_emit_binary(emit, "Reshape", "scaled/entries", y, shape);
}

struct tare_edge tare_emit_table_lookup(struct tare_emit *emit, struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    struct tare_edge y = emit_gather(emit, "entries", layer, tare_emit_weight(emit, layer));
    y = tare_emit_cast(emit, "entries/cast", y, TARE_DT_FLOAT);
    if (q->n_blocks > 1) return emit_scaled_blocks(emit, layer, y);
    struct tare_edge scale = tare_emit_channels(emit, "scale", layer, q->scales, q->n_scales);
    if (q->n_scales > 1) scale = emit_gather(emit, "scales", layer, scale);
    return tare_emit_binary(emit, "Mul", "scaled", y, scale);
}

tare_status tare_quant_rewrite_table(struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_edge y = tare_emit_table_lookup(&emit, layer);
    return tare_quant_replace(NULL, &emit, layer->output, y);
}

struct tare_edge tare_emit_real_table(struct tare_emit *emit, struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const int64_t entries = layer->product.columns;
    const struct tare_shape blocks = { .rank = 3, .dims = { entries, q->n_blocks, q->layout.block } },
                            scales = { .rank = 3, .dims = { entries, q->n_blocks, 1 } },
                            stored = tare_shape_make(2, entries, q->n_blocks);
    struct tare_edge w =
        tare_emit_reshape(emit, "weight/blocks", tare_emit_operand(emit, layer, TARE_DT_FLOAT), &blocks);
    const struct tare_edge scale =
        tare_emit_reshape(emit, "weight/scales/blocks", emit_entry_scales(emit, layer, &stored), &scales);
    w = tare_emit_binary(emit, "Mul", "weight/scaled", tare_emit_float(emit, "weight/cast", w), scale);
    return tare_emit_reshape(emit, "weight/real", w, &layer->weight->shape);
}
