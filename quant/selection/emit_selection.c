/* Choosing from a quantized stack: one index, computed from those of all axes that choose. */
#include "quant/selection/emit_selection.h"
#include "graph/model.h"
#include "quant/selection/entries.h"

static struct tare_edge emit_gather(struct tare_emit *emit, const char *name, struct tare_edge x,
                                    struct tare_edge index) {
    const struct tare_edge inputs[] = { x, index, tare_emit_i32(emit, "stack/axis", 0) };
    if (emit->status != TARE_OK) return x;
    const struct tare_emit_attr attrs[] = { { "Tparams", TARE_EMIT_TYPE, tare_edge_dtype(x) },
                                            { "Tindices", TARE_EMIT_TYPE, tare_edge_dtype(index) },
                                            { "Taxis", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "batch_dims", TARE_EMIT_INT, 0 },
                                            { 0 } };
    return tare_emit_node(emit, "GatherV2", name, inputs, 3, attrs);
}

/* An element of a vector of indices, from the op that packs them where there is one. */
static struct tare_edge element_of(struct tare_emit *emit, struct tare_edge vector, int element) {
    if (tare_node_is(vector.node, "Pack") && element < (int)vector.node->n_inputs) return vector.node->inputs[element];
    return emit_gather(emit, "stack/element", vector, tare_emit_i32(emit, "stack/number", element));
}

static struct tare_edge emit_index(struct tare_emit *emit, const struct tare_quant_index *index) {
    struct tare_edge i = index->element < 0 ? index->edge : element_of(emit, index->edge, index->element);
    if (emit->status != TARE_OK) return i;
    const int dtype = tare_edge_dtype(i);
    if (index->rule == TARE_INDEX_CLAMPED) {
        i = tare_emit_binary(emit, "Maximum", "stack/not_below", i, tare_emit_number(emit, "stack/first", dtype, 0));
        i = tare_emit_binary(emit, "Minimum", "stack/not_above", i,
                             tare_emit_number(emit, "stack/last", dtype, index->size - 1));
    } else if (index->rule == TARE_INDEX_FROM_BACK) {
        const struct tare_edge zero = tare_emit_number(emit, "stack/first", dtype, 0),
                               size = tare_emit_number(emit, "stack/size", dtype, index->size),
                               below = tare_emit_binary(emit, "Less", "stack/below", i, zero);
        const struct tare_edge inputs[] = { below, tare_emit_binary(emit, "AddV2", "stack/from_back", i, size), i };
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, dtype }, { 0 } };
        i = tare_emit_node(emit, "SelectV2", "stack/index", inputs, 3, attrs);
    }
    return emit->status == TARE_OK && dtype != TARE_DT_INT32 ? tare_emit_cast(emit, "stack/narrow", i, TARE_DT_INT32)
                                                             : i;
}

static struct tare_edge emit_squeezed(struct tare_emit *emit, struct tare_edge x, unsigned axes) {
    const char *name = tare_arena_printf(&emit->graph->model->arena, "%s/stack/squeezed", emit->prefix);
    struct tare_node *node = name && emit->status == TARE_OK ? tare_graph_add(emit->graph, "Squeeze", name) : NULL;
    int64_t list[TARE_MAX_RANK];
    size_t count = 0;
    for (int i = 0; i < TARE_MAX_RANK; i++)
        if (axes >> i & 1) list[count++] = i;
    if (!node && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    if (emit->status == TARE_OK) emit->status = tare_node_add_input(node, x);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", tare_edge_dtype(x));
    if (emit->status == TARE_OK) emit->status = tare_node_set_int_list(node, "squeeze_dims", list, count);
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge emit_position(struct tare_emit *emit, struct tare_quant_selection *s) {
    struct tare_edge at = { NULL, 0 };
    if (s->position.node) return s->position;
    for (int i = 0; i < s->n_indices; i++) {
        const struct tare_edge index = emit_index(emit, &s->indices[i]);
        if (at.node && emit->status == TARE_OK)
            at = tare_emit_binary(emit, "Mul", "stack/rows", at,
                                  tare_emit_i32(emit, "stack/size", (int32_t)s->indices[i].size));
        at = at.node ? tare_emit_binary(emit, "AddV2", "stack/position", at, index) : index;
    }
    if (s->squeezed_index) at = emit_squeezed(emit, at, s->squeezed_index);
    return s->position = at;
}

struct tare_edge tare_emit_chosen(struct tare_emit *emit, const char *name, struct tare_quant_selection *selection,
                                  struct tare_edge stack) {
    const struct tare_edge position = emit_position(emit, selection);
    return emit->status == TARE_OK ? emit_gather(emit, name, stack, position) : stack;
}

/* ---- shapes ---- */

/* Sizes of the index's axes that are kept; -1 where they are unknown. */
static int index_sizes(int64_t *sizes, const struct tare_quant_selection *s) {
    int count = 0;
    for (int k = 0; k < s->index_rank; k++)
        for (int axis = 0; axis < s->operand.rank; axis++)
            if (s->from[axis] == TARE_FROM_INDEX - k && !(s->squeezed_index >> k & 1))
                sizes[count++] = s->operand.dims[axis];
    return count;
}

int tare_quant_index_axes(const struct tare_quant_selection *selection) {
    int64_t sizes[TARE_MAX_RANK];
    return index_sizes(sizes, selection);
}

bool tare_quant_has_entry_shape(const struct tare_quant_selection *selection) {
    int64_t sizes[TARE_MAX_RANK];
    const int count = index_sizes(sizes, selection);
    int unknown = 0;
    for (int i = 0; i < count; i++)
        unknown += sizes[i] < 0;
    return unknown <= 1 && count + selection->entry.rank <= TARE_MAX_RANK;
}

struct tare_edge tare_emit_entry(struct tare_emit *emit, const char *name, const struct tare_quant_selection *selection,
                                 struct tare_edge chosen) {
    struct tare_shape shape;
    shape.rank = index_sizes(shape.dims, selection);
    for (int i = 0; i < selection->entry.rank; i++)
        shape.dims[shape.rank++] = selection->entry.dims[i];
    return tare_emit_reshape(emit, name, chosen, &shape);
}

/* ---- channels ---- */

struct tare_shape tare_quant_channels_shape(const struct tare_quant_layer *layer) {
    const struct tare_shape *entry = &layer->product.channel_shape;
    struct tare_shape shape = { .rank = 1 };
    const struct tare_quant_selection *chooser = tare_quant_chooser(layer);
    if (!chooser) return *entry;
    shape.dims[0] = chooser->count;
    for (int i = 0; i < entry->rank; i++)
        shape.dims[shape.rank++] = entry->dims[i];
    return shape;
}

struct tare_edge tare_emit_spread(struct tare_emit *emit, const char *name, const struct tare_quant_selection *s,
                                  struct tare_edge channels) {
    for (int i = 0; i < s->n_spread && emit->status == TARE_OK; i++) {
        const struct tare_edge inputs[] = { channels, tare_emit_i32(emit, "stack/spread_at", s->spread_at) };
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(channels) },
                                                { "Tdim", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { 0 } };
        channels = tare_emit_node(emit, "ExpandDims", name, inputs, 2, attrs);
    }
    return channels;
}

struct tare_edge tare_emit_chosen_channels(struct tare_emit *emit, const char *name,
                                           const struct tare_quant_layer *layer, struct tare_edge channels) {
    struct tare_quant_selection *s = tare_quant_chooser(layer);
    const char *chosen;
    if (!s || emit->status != TARE_OK) return channels;
    chosen = tare_arena_printf(&emit->graph->model->arena, "%s/chosen", name);
    if (!chosen) {
        emit->status = TARE_NO_MEMORY;
        return channels;
    }
    channels = tare_emit_chosen(emit, chosen, s, channels);
    if (emit->status == TARE_OK && tare_edge_dtype(channels) == TARE_DT_FLOAT)
        channels = tare_emit_factors(emit, s, channels, layer->product.channel_shape.rank);
    return tare_emit_spread(emit, chosen, s, channels);
}
