/* The factors of chosen entries, as nodes. */
#include "quant/selection/emit_selection.h"
#include "quant/xla.h"

/* The number without axes of one element, and with `rank` of them at the end. */
static struct tare_edge emit_number(struct tare_emit *emit, const struct tare_quant_selection *s,
                                    const struct tare_quant_factor *factor, int rank) {
    struct tare_edge x = factor->node->inputs[factor->input];
    unsigned removed = 0;
    int kept = 0;
    for (int i = 0; i < factor->rank; i++) {
        const bool is_index = factor->from[i] <= TARE_FROM_INDEX;
        if (is_index && !(s->squeezed_index >> (TARE_FROM_INDEX - factor->from[i]) & 1))
            kept++;
        else
            removed |= 1u << i;
    }
    if (removed) x = tare_emit_squeezed(emit, "stack/factor", x, removed);
    for (int i = 0; i < rank && kept && emit->status == TARE_OK; i++) {
        const struct tare_edge inputs[] = { x, tare_emit_i32(emit, "stack/factor/last", -1) };
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(x) },
                                                { "Tdim", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { 0 } };
        x = tare_emit_node(emit, "ExpandDims", "stack/factor/channels", inputs, 2, attrs);
    }
    return x;
}

static struct tare_edge emit_selected(struct tare_emit *emit, const struct tare_quant_factor *factor,
                                      struct tare_edge condition, struct tare_edge floats) {
    const struct tare_edge fill = tare_emit_f32(emit, "stack/fill", factor->fill);
    const struct tare_edge inputs[] = { condition, factor->inverted ? fill : floats, factor->inverted ? floats : fill };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT }, { 0 } };
    return tare_emit_node(emit, "SelectV2", "stack/filled", inputs, 3, attrs);
}

struct tare_edge tare_emit_factors(struct tare_emit *emit, const struct tare_quant_selection *s,
                                   struct tare_edge floats, int rank) {
    for (int i = 0; i < s->n_factors && emit->status == TARE_OK; i++) {
        const struct tare_quant_factor *factor = &s->factors[i];
        const char *op = tare_node_is(factor->node, "Mul") ? "Mul" : "RealDiv";
        const struct tare_edge number = emit_number(emit, s, factor, rank);
        if (emit->status != TARE_OK) break;
        floats = factor->selects ? emit_selected(emit, factor, number, floats)
                                 : tare_emit_binary(emit, op, "stack/factored", floats,
                                                    tare_emit_float(emit, "stack/factor/float", number));
    }
    return floats;
}

struct tare_edge tare_emit_factored_float(struct tare_emit *emit, const char *name,
                                          const struct tare_quant_layer *layer, double value) {
    const int channels = layer->product.channel_shape.rank;
    struct tare_shape ones = { .rank = tare_quant_index_axes(layer->selection) + channels };
    for (int i = 0; i < ones.rank; i++)
        ones.dims[i] = 1;
    const struct tare_edge floats = tare_emit_floats(emit, name, &ones, &value);
    return tare_emit_spread(emit, name, layer->selection, tare_emit_factors(emit, layer->selection, floats, channels));
}
