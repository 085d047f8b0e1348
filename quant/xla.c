/* XlaConvV2 and XlaDotV2 nodes. */
#include "quant/xla.h"
#include "quant/selection/emit_selection.h"
#include "quant/selection/entries.h"
#include "graph/model.h"
#include "interpreter/ops/support/dims_wire.h"
#include "quant/table.h"
#include "quant/variables.h"

#include <stdio.h>
#include <string.h>

/* ---- dimension numbers ---- */

/* DotDimensionNumbers; a weight was arranged as batch, contracted, free. */
static void dot_dimension_numbers(struct tare_dims_wire *wire, const struct tare_quant_product *p, bool is_arranged) {
    enum { LHS_CONTRACTING = 1, RHS_CONTRACTING = 2, LHS_BATCH = 3, RHS_BATCH = 4 };
    int contracted[TARE_MAX_RANK], batch[TARE_MAX_RANK];
    for (int i = 0; i < p->n_batch; i++)
        batch[i] = is_arranged ? i : p->right_batch[i];
    for (int i = 0; i < p->n_contracted; i++)
        contracted[i] = is_arranged ? p->n_batch + i : p->right_contracted[i];
    tare_dims_put_list(wire, LHS_CONTRACTING, p->left_contracted, p->n_contracted);
    tare_dims_put_list(wire, RHS_CONTRACTING, contracted, p->n_contracted);
    tare_dims_put_list(wire, LHS_BATCH, p->left_batch, p->n_batch);
    tare_dims_put_list(wire, RHS_BATCH, batch, p->n_batch);
}

/* ---- products ---- */

static struct tare_edge emit_xla(struct tare_emit *emit, const char *op, const struct tare_edge *inputs,
                                 size_t n_inputs, const struct tare_dims_wire *numbers, int accumulator) {
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/%s", emit->prefix, op);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, op, full) : NULL;
    tare_status status = node ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs && status == TARE_OK; i++)
        status = tare_node_add_input(node, inputs[i]);
    if (status == TARE_OK && n_inputs > 2) {
        status = tare_node_set_type(node, "Tindices", TARE_DT_INT32);
        if (status == TARE_OK) status = tare_node_set_int(node, "batch_group_count", 1);
    }
    if (status == TARE_OK) status = tare_node_set_type(node, "LhsT", tare_edge_dtype(inputs[0]));
    if (status == TARE_OK) status = tare_node_set_type(node, "RhsT", tare_edge_dtype(inputs[1]));
    if (status == TARE_OK) status = tare_node_set_string(node, "dimension_numbers", numbers->bytes, numbers->size);
    if (status == TARE_OK) status = tare_node_set_string(node, "precision_config", "", 0);
    if (status == TARE_OK) status = tare_node_set_type(node, "preferred_element_type", accumulator);
    if (status == TARE_OK) status = tare_node_resolve(node);
    if (status == TARE_OK) return (struct tare_edge){ node, 0 };
    if (emit->status == TARE_OK) emit->status = status;
    return (struct tare_edge){ NULL, 0 };
}

static struct tare_edge emit_conv(struct tare_emit *emit, const struct tare_quant_product *p, struct tare_edge lhs,
                                  struct tare_edge rhs, int accumulator) {
    const struct tare_shape square = { .rank = 2, .dims = { p->spatial, 2 } };
    int32_t strides[TARE_MOST_WINDOW], dilations[TARE_MOST_WINDOW], bases[TARE_MOST_WINDOW],
        padding[2 * TARE_MOST_WINDOW];
    struct tare_dims_wire numbers = { .size = 0 };
    for (int i = 0; i < p->spatial; i++) {
        strides[i] = (int32_t)p->window[i].stride;
        dilations[i] = (int32_t)p->window[i].dilation;
        bases[i] = (int32_t)p->window[i].base;
        padding[2 * i] = (int32_t)p->window[i].low;
        padding[2 * i + 1] = (int32_t)p->window[i].high;
    }
    const struct tare_edge inputs[] = {
        lhs,
        rhs,
        tare_emit_vector(emit, "window_strides", p->spatial, strides),
        tare_emit_ints(emit, "padding", &square, padding),
        tare_emit_vector(emit, "lhs_dilation", p->spatial, bases),
        tare_emit_vector(emit, "rhs_dilation", p->spatial, dilations),
        tare_emit_i32(emit, "feature_group_count", (int32_t)p->groups),
    };
    tare_conv_dims_write(&numbers, &p->dims, TARE_CONV_XLA);
    return emit_xla(emit, "XlaConvV2", inputs, 7, &numbers, accumulator);
}

/* [batch, 1…, channels] times [channels, outputs]: one element of an image has no convolution, which XLA computes
 * incorrectly for int8 on CPUs. */
static struct tare_edge emit_one_place(struct tare_emit *emit, const struct tare_quant_product *p, struct tare_edge lhs,
                                       struct tare_edge rhs, int accumulator) {
    const struct tare_quant_product channels = { .n_contracted = 1, .left_contracted = { p->spatial + 1 } };
    const struct tare_shape matrix = tare_shape_make(2, p->rows, p->columns);
    const struct tare_edge inputs[] = { lhs, tare_emit_reshape(emit, "weight/matrix", rhs, &matrix) };
    struct tare_dims_wire numbers = { .size = 0 };
    dot_dimension_numbers(&numbers, &channels, true);
    return emit_xla(emit, "XlaDotV2", inputs, 2, &numbers, accumulator);
}

/* Batch axes that may broadcast to the other operand's size. */
static struct tare_edge emit_spread(struct tare_emit *emit, const char *side, struct tare_edge x, const int64_t *sizes,
                                    int rank) {
    const int dtype = emit->status == TARE_OK ? tare_edge_dtype(x) : 0;
    const struct tare_emit_attr of_shape[] = { { "T", TARE_EMIT_TYPE, dtype },
                                               { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                               { 0 } };
    const struct tare_emit_attr of_spread[] = { { "T", TARE_EMIT_TYPE, dtype },
                                                { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { 0 } };
    int32_t least[TARE_MAX_RANK];
    char names[4][32];
    for (int i = 0; i < rank; i++)
        least[i] = sizes[i] ? (int32_t)sizes[i] : 1;
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "%s/%s", side, (const char *[]){ "shape", "least", "sizes", "spread" }[i]);
    const struct tare_edge shapes[] = { tare_emit_node(emit, "Shape", names[0], &x, 1, of_shape),
                                        tare_emit_vector(emit, names[1], rank, least) };
    const struct tare_edge inputs[] = { x, tare_emit_binary(emit, "BroadcastArgs", names[2], shapes[0], shapes[1]) };
    return tare_emit_node(emit, "BroadcastTo", names[3], inputs, 2, of_spread);
}

struct tare_edge tare_emit_squeezed(struct tare_emit *emit, const char *name, struct tare_edge x, unsigned squeezed) {
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/%s/squeezed", emit->prefix, name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, "Squeeze", full) : NULL;
    int64_t axes[TARE_MAX_RANK];
    size_t count = 0;
    for (int i = 0; i < TARE_MAX_RANK; i++)
        if (squeezed >> i & 1) axes[count++] = i;
    if (!node && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    if (emit->status == TARE_OK) emit->status = tare_node_add_input(node, x);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", tare_edge_dtype(x));
    if (emit->status == TARE_OK) emit->status = tare_node_set_int_list(node, "squeeze_dims", axes, count);
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(node);
    return (struct tare_edge){ node, 0 };
}

/* Rank of an operand of a product of arrays, including the axes to squeeze. */
static int rank_of(int kept, unsigned squeezed) {
    for (; squeezed; squeezed >>= 1)
        kept += (int)(squeezed & 1);
    return kept;
}

static struct tare_edge emit_left(struct tare_emit *emit, const struct tare_quant_product *p, struct tare_edge x) {
    const int rank = rank_of(p->n_batch + p->n_contracted + p->n_free_left, p->squeezed_left);
    if (p->spreads_left) x = emit_spread(emit, "left", x, p->spread_left, rank);
    return p->squeezed_left ? tare_emit_squeezed(emit, "left", x, p->squeezed_left) : x;
}

static struct tare_edge emit_right(struct tare_emit *emit, const struct tare_quant_product *p, struct tare_edge x) {
    const int rank = rank_of(p->n_batch + p->n_contracted + p->n_free_right, p->squeezed_right);
    if (p->spreads_right) x = emit_spread(emit, "right", x, p->spread_right, rank);
    return p->squeezed_right ? tare_emit_squeezed(emit, "right", x, p->squeezed_right) : x;
}

struct tare_edge tare_emit_product(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge left,
                                   struct tare_edge right, int accumulator) {
    struct tare_quant_product product = layer->product;
    struct tare_dims_wire numbers = { .size = 0 };
    if (product.pads_late)
        left =
            tare_emit_pad(emit, left, &product,
                          tare_emit_number(emit, "pad/zero", emit->status == TARE_OK ? tare_edge_dtype(left) : 0, 0));
    if (product.one_place) return emit_one_place(emit, &product, left, right, accumulator);
    if (product.spatial) return emit_conv(emit, &product, left, right, accumulator);
    const struct tare_edge inputs[] = { emit_left(emit, &product, left), emit_right(emit, &product, right) };
    dot_dimension_numbers(&numbers, &layer->product, layer->weight && !layer->selection && !layer->unarranged);
    return emit_xla(emit, "XlaDotV2", inputs, 2, &numbers, accumulator);
}

struct tare_edge tare_emit_result(struct tare_emit *emit, const struct tare_quant_product *product,
                                  struct tare_edge raw) {
    const int rank = product->n_batch + product->n_free_left + product->n_free_right;
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(raw) : 0 },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    int32_t order[TARE_MAX_RANK];
    struct tare_edge inputs[2] = { raw };
    if (!product->moves) return raw;
    for (int i = 0; i < rank; i++)
        order[i] = product->result_order[i];
    inputs[1] = tare_emit_vector(emit, "result/perm", rank, order);
    return tare_emit_node(emit, "Transpose", "result", inputs, 2, attrs);
}

/* A vector for the spatial dimensions with zeros for batch and channels, which are before or on both sides of them. */
static struct tare_edge emit_framed(struct tare_emit *emit, const char *name, struct tare_edge x,
                                    const struct tare_quant_product *product) {
    const int before = product->dims.input_spatial[0];
    const bool behind = before < 2;
    const struct tare_emit_attr attrs[] = { { "N", TARE_EMIT_INT, behind ? 3 : 2 },
                                            { "T", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const struct tare_edge zero = tare_emit_vector(emit, "pad/none", before, (const int32_t[]){ 0, 0 });
    const struct tare_edge axis = tare_emit_i32(emit, "pad/axis", 0);
    const struct tare_edge inputs[] = { zero, x, behind ? zero : axis, axis };
    return tare_emit_node(emit, "ConcatV2", name, inputs, behind ? 4 : 3, attrs);
}

/* same-padding for the size of x at run time. */
static struct tare_edge emit_late_paddings(struct tare_emit *emit, struct tare_edge x,
                                           const struct tare_quant_product *product) {
    const int n = product->spatial;
    int32_t strides[TARE_MOST_WINDOW], more[TARE_MOST_WINDOW], reaches[TARE_MOST_WINDOW], twos[] = { 2, 2, 2 };
    const struct tare_emit_attr of_shape[] = { { "T", TARE_EMIT_TYPE,
                                                 emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                               { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                               { 0 } };
    const struct tare_emit_attr of_slice[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                               { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                               { 0 } };
    const struct tare_emit_attr of_pack[] = {
        { "N", TARE_EMIT_INT, 2 }, { "T", TARE_EMIT_TYPE, TARE_DT_INT32 }, { "axis", TARE_EMIT_INT, 1 }, { 0 }
    };
    for (int i = 0; i < n; i++) {
        strides[i] = (int32_t)product->window[i].stride;
        more[i] = strides[i] - 1;
        reaches[i] = (int32_t)product->window[i].reach - strides[i];
    }
    const struct tare_edge cut[] = { tare_emit_node(emit, "Shape", "pad/shape", &x, 1, of_shape),
                                     tare_emit_vector(emit, "pad/begin", 1,
                                                      (const int32_t[]){ product->dims.input_spatial[0] }),
                                     tare_emit_vector(emit, "pad/count", 1, &(int32_t){ n }) };
    const struct tare_edge size = tare_emit_node(emit, "Slice", "pad/size", cut, 3, of_slice);
    const struct tare_edge stride = tare_emit_vector(emit, "pad/stride", n, strides);
    struct tare_edge total =
        tare_emit_binary(emit, "AddV2", "pad/up", size, tare_emit_vector(emit, "pad/more", n, more));
    total = tare_emit_binary(emit, "FloorDiv", "pad/outputs", total, stride);
    total = tare_emit_binary(emit, "Mul", "pad/stepped", total, stride);
    total = tare_emit_binary(emit, "AddV2", "pad/reached", total, tare_emit_vector(emit, "pad/reach", n, reaches));
    total = tare_emit_binary(emit, "Sub", "pad/missing", total, size);
    total = tare_emit_binary(emit, "Maximum", "pad/total", total, tare_emit_i32(emit, "pad/least", 0));
    const struct tare_edge low =
        tare_emit_binary(emit, "FloorDiv", "pad/low", total, tare_emit_vector(emit, "pad/two", n, twos));
    const struct tare_edge high = tare_emit_binary(emit, "Sub", "pad/high", total, low);
    const struct tare_edge sides[] = { emit_framed(emit, "pad/lows", low, product),
                                       emit_framed(emit, "pad/highs", high, product) };
    return tare_emit_node(emit, "Pack", "pad/paddings", sides, 2, of_pack);
}

static struct tare_edge emit_paddings(struct tare_emit *emit, const struct tare_quant_product *product) {
    const struct tare_shape shape = { .rank = 2, .dims = { product->spatial + 2, 2 } };
    int32_t paddings[2 * (TARE_MOST_WINDOW + 2)] = { 0 };
    for (int i = 0; i < product->spatial; i++) {
        const int axis = product->dims.input_spatial[i];
        paddings[2 * axis] = (int32_t)product->window[i].low;
        paddings[2 * axis + 1] = (int32_t)product->window[i].high;
    }
    return tare_emit_ints(emit, "pad/paddings", &shape, paddings);
}

/* XlaPad also cuts off elements and inserts the value between them. */
static bool needs_xla_pad(const struct tare_quant_product *product) {
    for (int i = 0; i < product->spatial; i++)
        if (product->window[i].low < 0 || product->window[i].high < 0 || product->window[i].base > 1) return true;
    return false;
}

static struct tare_edge emit_xla_pad(struct tare_emit *emit, struct tare_edge x,
                                     const struct tare_quant_product *product, struct tare_edge value) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "Tindices", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const int rank = product->spatial + 2;
    int32_t lows[TARE_MOST_WINDOW + 2] = { 0 }, highs[TARE_MOST_WINDOW + 2] = { 0 },
                                    between[TARE_MOST_WINDOW + 2] = { 0 };
    for (int i = 0; i < product->spatial; i++) {
        const int axis = product->dims.input_spatial[i];
        lows[axis] = (int32_t)product->window[i].low;
        highs[axis] = (int32_t)product->window[i].high;
        between[axis] = (int32_t)product->window[i].base - 1;
    }
    const struct tare_edge inputs[] = { x, value, tare_emit_vector(emit, "pad/low", rank, lows),
                                        tare_emit_vector(emit, "pad/high", rank, highs),
                                        tare_emit_vector(emit, "pad/between", rank, between) };
    return tare_emit_node(emit, "XlaPad", "pad", inputs, 5, attrs);
}

struct tare_edge tare_emit_pad(struct tare_emit *emit, struct tare_edge x, struct tare_quant_product *product,
                               struct tare_edge value) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "Tpaddings", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    struct tare_edge out;
    if (needs_xla_pad(product)) {
        out = emit_xla_pad(emit, x, product, value);
    } else {
        const struct tare_edge inputs[] = {
            x, product->pads_late ? emit_late_paddings(emit, x, product) : emit_paddings(emit, product), value
        };
        out = tare_emit_node(emit, "PadV2", "pad", inputs, 3, attrs);
    }
    for (int i = 0; i < product->spatial; i++) {
        product->window[i].low = product->window[i].high = 0;
        product->window[i].base = 1;
    }
    product->pads_late = false;
    return out;
}

struct tare_edge tare_emit_channels(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                    const double *values, int64_t count) {
    const struct tare_shape shape = tare_quant_channels_shape(layer);
    if (count == 1 && layer->selection && layer->selection->n_factors)
        return tare_emit_factored_float(emit, name, layer, values[0]);
    if (count == 1) return tare_emit_floats(emit, name, NULL, values);
    if (layer->entries && count == layer->entries->count)
        return tare_emit_entry_floats(emit, name, layer->entries, values);
    return tare_emit_chosen_channels(emit, name, layer, tare_emit_floats(emit, name, &shape, values));
}

struct tare_edge tare_emit_channel_ints(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                        const int32_t *values) {
    const struct tare_shape shape = tare_quant_channels_shape(layer);
    return tare_emit_chosen_channels(emit, name, layer, tare_emit_ints(emit, name, &shape, values));
}

struct tare_edge tare_emit_channel_longs(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                         const int64_t *values) {
    const struct tare_shape shape = tare_quant_channels_shape(layer);
    return tare_emit_chosen_channels(emit, name, layer, tare_emit_longs(emit, name, &shape, values));
}

/* ---- weights ---- */

/* Integers as a constant, or as the value of the variable that held the weight. */
static struct tare_edge emit_stored(struct tare_emit *emit, const char *name, struct tare_quant_layer *layer,
                                    const struct tare_tensor *value) {
    struct tare_edge out = { NULL, 0 };
    if (!layer->variable) return tare_emit_const(emit, name, value);
    if (emit->status == TARE_OK) emit->status = tare_quant_store(&out, layer, value);
    return out;
}

/* Matrices of one entry of a stack, or of the whole weight. */
static int64_t entry_batches(const struct tare_quant_layer *layer) {
    return layer->product.batches / (layer->selection ? layer->selection->count : 1);
}

/* The shape of stored integers: a stack has its entries along one axis, then the axes of an entry. */
static struct tare_shape stored_shape(const struct tare_quant_layer *layer, const struct tare_shape *values) {
    const bool packs = layer->quantized.bits == 4;
    const int skipped = packs ? values->rank - 2 : layer->selection ? layer->selection->n_indices : 0;
    struct tare_shape shape = { .rank = 1 };
    if (!layer->selection) return *values;
    shape.dims[0] = layer->selection->count;
    if (packs && entry_batches(layer) > 1) shape.dims[shape.rank++] = entry_batches(layer);
    for (int i = skipped; i < values->rank; i++)
        shape.dims[shape.rank++] = values->dims[i];
    return shape;
}

/* The halves of a weight's bytes as they are stored: [entries of a stack, batches, rows / 2, columns], without axes of
 * one element before the last two. */
static struct tare_edge emit_packed(struct tare_emit *emit, struct tare_quant_layer *layer) {
    struct tare_edge w = { NULL, 0 };
    struct tare_tensor packed, shaped;
    tare_status status = tare_weight_pack_nibbles(&packed, &layer->quantized);
    if (status == TARE_OK) {
        const struct tare_shape shape = stored_shape(layer, &packed.shape);
        status = tare_tensor_share_as(&shaped, &packed, &shape);
        if (status == TARE_OK) {
            w = emit_stored(emit, "weight/packed", layer, &shaped);
            tare_tensor_reset(&shaped);
        }
        tare_tensor_reset(&packed);
    }
    if (status != TARE_OK) emit->status = status;
    return w;
}

/* The signed halves of each byte, stacked along the rows, without the row that padded an odd number of rows. */
static struct tare_edge emit_unpacked(struct tare_emit *emit, struct tare_quant_layer *layer, struct tare_edge w) {
    const struct tare_weight_layout *layout = &layer->quantized.layout;
    const int64_t batches = entry_batches(layer);
    const int before = layer->selection ? tare_quant_index_axes(layer->selection) : 0,
              rank = before + 2 + (batches > 1);
    const struct tare_emit_attr concat[] = { { "N", TARE_EMIT_INT, 2 },
                                             { "T", TARE_EMIT_TYPE, TARE_DT_INT8 },
                                             { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                             { 0 } };
    const struct tare_emit_attr slice[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT8 },
                                            { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const int32_t begin[TARE_MAX_RANK] = { 0 };
    int32_t size[TARE_MAX_RANK];
    struct tare_edge four, halves[3];
    for (int i = 0; i < rank; i++)
        size[i] = i < before      ? -1
                  : i + 2 < rank  ? (int32_t)batches
                  : i + 2 == rank ? (int32_t)layout->rows
                                  : (int32_t)layout->columns;
    four = tare_emit_i8(emit, "weight/four", 4);
    halves[0] = tare_emit_binary(emit, "RightShift", "weight/low",
                                 tare_emit_binary(emit, "LeftShift", "weight/shifted", w, four), four);
    halves[1] = tare_emit_binary(emit, "RightShift", "weight/high", w, four);
    halves[2] = tare_emit_i32(emit, "weight/axis", rank - 2);
    w = tare_emit_node(emit, "ConcatV2", "weight/rows", halves, 3, concat);
    if (layout->rows % 2 == 0) return w;
    const struct tare_edge inputs[] = { w, tare_emit_vector(emit, "weight/begin", rank, begin),
                                        tare_emit_vector(emit, "weight/size", rank, size) };
    return tare_emit_node(emit, "Slice", "weight/even", inputs, 3, slice);
}

/* The chosen entries of a stack, with the axes that the product takes. */
static struct tare_edge emit_chosen_weight(struct tare_emit *emit, struct tare_quant_layer *layer) {
    struct tare_quant_selection *s = layer->selection;
    const bool packs = layer->quantized.bits == 4;
    struct tare_edge w;
    if (!layer->integers.node)
        layer->integers =
            packs ? emit_packed(emit, layer) : emit_stored(emit, "weight", layer, &layer->quantized.values);
    w = layer->integers;
    if (!packs && s->n_indices > 1) {
        const struct tare_shape shape = stored_shape(layer, &layer->quantized.values.shape);
        w = tare_emit_reshape(emit, "weight/stack", w, &shape);
    }
    w = tare_emit_chosen(emit, "weight/chosen", s, w);
    if (packs) w = emit_unpacked(emit, layer, w);
    return packs || s->reshapes ? tare_emit_entry(emit, "weight/entry", s, w) : w;
}

static struct tare_edge emit_arranged(struct tare_emit *emit, struct tare_quant_layer *layer) {
    return layer->quantized.bits != 4
               ? emit_stored(emit, "weight", layer, &layer->quantized.values)
               : tare_emit_reshape(emit, "weight", emit_unpacked(emit, layer, emit_packed(emit, layer)),
                                   &layer->product.arranged);
}

/* The integers as the look-up of the same table stores them: with the axes of the weight, one matrix an entry
 * (quant/tied_tables.h). */
static struct tare_edge emit_unarranged(struct tare_emit *emit, const struct tare_quant_layer *layer) {
    struct tare_quant_layer table = *layer;
    struct tare_quant_product *p = &table.product;
    struct tare_edge w = { NULL, 0 };
    const tare_status status =
        tare_quant_restore(&table.quantized.values, p, &layer->quantized.values, &layer->weight->shape);
    p->arranged = layer->weight->shape;
    p->batches = table.quantized.layout.batches = layer->product.columns;
    p->columns = table.quantized.layout.columns = 1;
    if (status == TARE_OK) {
        w = emit_arranged(emit, &table);
        tare_tensor_reset(&table.quantized.values);
    } else {
        emit->status = status;
    }
    return w;
}

struct tare_edge tare_emit_weight(struct tare_emit *emit, struct tare_quant_layer *layer) {
    if (layer->selection) return emit_chosen_weight(emit, layer);
    if (!layer->integers.node)
        layer->integers = layer->unarranged ? emit_unarranged(emit, layer) : emit_arranged(emit, layer);
    return layer->integers;
}

struct tare_edge tare_emit_operand(struct tare_emit *emit, struct tare_quant_layer *layer, int dtype) {
    const struct tare_edge w = tare_emit_weight(emit, layer);
    return layer->setting.format ? tare_emit_cast(emit, "weight/cast", w, dtype) : w;
}

/* The scales of the blocks of an entry: [batches * blocks, 1, columns]. */
static struct tare_edge emit_block_scales(struct tare_emit *emit, const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const int64_t batches = entry_batches(layer) * q->n_blocks, columns = q->layout.columns;
    const struct tare_shape whole = { .rank = 3, .dims = { batches, 1, columns } },
                            chosen = { .rank = 3, .dims = { -1, 1, columns } };
    if (!layer->selection) return tare_emit_floats(emit, "weight/scales", &whole, q->scales);
    const struct tare_shape stack = { .rank = 3, .dims = { layer->selection->count, batches, columns } };
    const struct tare_edge scales = tare_emit_chosen(emit, "weight/scales/chosen", layer->selection,
                                                     tare_emit_floats(emit, "weight/scales", &stack, q->scales));
    return tare_emit_reshape(emit, "weight/scales/rows", tare_emit_factors(emit, layer->selection, scales, 2), &chosen);
}

/* Rows padded to whole blocks: [batches * blocks, block, columns] times [batches * blocks, 1, columns]. The number of
 * entries that are chosen from a stack may be known only at run time. */
struct tare_edge tare_emit_real_weight(struct tare_emit *emit, struct tare_quant_layer *layer) {
    if (layer->unarranged) return tare_emit_real_table(emit, layer);
    const struct tare_quantized_weight *q = &layer->quantized;
    const struct tare_weight_layout *l = &q->layout;
    const int64_t padded = q->n_blocks * l->block, batches = layer->selection ? -1 : l->batches;
    const struct tare_shape plain = { .rank = 3, .dims = { batches, l->rows, l->columns } };
    const struct tare_shape whole = { .rank = 3, .dims = { batches, padded, l->columns } };
    const struct tare_shape blocks = {
        .rank = 3, .dims = { layer->selection ? -1 : l->batches * q->n_blocks, l->block, l->columns }
    };
    const struct tare_shape pairs = { .rank = 2, .dims = { 3, 2 } };
    const int32_t paddings[6] = { 0, 0, 0, (int32_t)(padded - l->rows), 0, 0 }, begin[3] = { 0 };
    const int32_t size[3] = { (int32_t)batches, (int32_t)l->rows, (int32_t)l->columns };
    struct tare_edge w =
        tare_emit_reshape(emit, "weight/matrices", tare_emit_operand(emit, layer, TARE_DT_FLOAT), &plain);
    if (padded != l->rows) {
        const struct tare_edge pad[] = { w, tare_emit_ints(emit, "weight/paddings", &pairs, paddings) };
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE,
                                                  emit->status == TARE_OK ? tare_edge_dtype(w) : 0 },
                                                { "Tpaddings", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { 0 } };
        w = tare_emit_node(emit, "Pad", "weight/padded", pad, 2, attrs);
    }
    w = tare_emit_float(emit, "weight/cast", tare_emit_reshape(emit, "weight/blocks", w, &blocks));
    w = tare_emit_binary(emit, "Mul", "weight/scaled", w, emit_block_scales(emit, layer));
    w = tare_emit_reshape(emit, "weight/whole", w, &whole);
    if (padded != l->rows) {
        const struct tare_edge cut[] = { w, tare_emit_vector(emit, "weight/cut/begin", 3, begin),
                                         tare_emit_vector(emit, "weight/cut/size", 3, size) };
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                                { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { 0 } };
        w = tare_emit_node(emit, "Slice", "weight/cut", cut, 3, attrs);
    }
    if (layer->selection) return tare_emit_entry(emit, "weight/real", layer->selection, w);
    return tare_emit_reshape(emit, "weight/real", w, &layer->product.arranged);
}

/* Adds a row of integers to the columns' sums. */
static void add_row(int32_t *restrict sums, const int8_t *restrict row, int64_t columns) {
    enum { TOGETHER = 16 }; /* a constant number, which the compiler computes in vectors */
    int64_t n = 0;
    for (; n + TOGETHER <= columns; n += TOGETHER)
        for (int j = 0; j < TOGETHER; j++)
            sums[n + j] += row[n + j];
    for (; n < columns; n++)
        sums[n] += row[n];
}

int32_t *tare_quant_weight_sums(struct tare_arena *arena, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const int8_t *q = TARE_CONST_DATA(int8_t, &layer->quantized.values);
    int32_t *sums = TARE_NEW_ARRAY(arena, int32_t, (size_t)tare_quant_channels(p));
    for (int64_t b = 0; b < p->batches && sums; b++)
        for (int64_t k = 0; k < p->rows; k++, q += p->columns)
            add_row(sums + b * p->columns, q, p->columns);
    return sums;
}

struct tare_edge tare_emit_weight_sums(struct tare_emit *emit, const char *name, struct tare_arena *arena,
                                       const struct tare_quant_layer *layer, int32_t factor) {
    const struct tare_quant_product *p = &layer->product;
    int32_t *sums = tare_quant_weight_sums(arena, layer);
    if (!sums) {
        emit->status = TARE_NO_MEMORY;
        return (struct tare_edge){ NULL, 0 };
    }
    for (int64_t c = 0; c < tare_quant_channels(p); c++)
        sums[c] = (int32_t)((int64_t)sums[c] * factor);
    return tare_emit_channel_ints(emit, name, layer, sums);
}

tare_status tare_quant_replace(struct tare_edge *out, struct tare_emit *emit, struct tare_edge edge,
                               struct tare_edge y) {
    TARE_TRY(emit->status);
    if (tare_edge_dtype(y) != tare_edge_dtype(edge)) y = tare_emit_cast(emit, "narrowed", y, tare_edge_dtype(edge));
    TARE_TRY(emit->status);
    tare_graph_replace_uses(edge.node->graph, edge, y, NULL);
    if (out) *out = y;
    return TARE_OK;
}

struct tare_edge tare_emit_shift(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge raw) {
    if (!layer->shift) return raw;
    return tare_emit_binary(
        emit, "AddV2", "shifted", raw,
        tare_emit_channels(emit, "shift", layer, layer->shift, tare_quant_channels(&layer->product)));
}
