/* Operands and dtypes of an op as its rule sees them: stored as they are, converted to real numbers (quantized types),
 * widened (narrow types), or replaced by the caller. */
#include "convert/stablehlo/lower.h"

struct tare_edge tare_lower_in(struct tare_lowering *l, size_t i) {
    const struct tare_shlo_type *type = tare_lower_in_type(l, i);
    if (l->is_replaced && i < 2) return l->replaced[i];
    const struct tare_edge x = tare_lower_value(l, l->op->operands[i]);
    if (l->widened && l->status == TARE_OK) return tare_lower_cast(l, x, tare_shlo_wide_dtype(tare_edge_dtype(x)));
    return l->dequantized && tare_shlo_quantized_of(type) ? tare_lower_dequantize(l, x, type) : x;
}

static int dtype_of(const struct tare_lowering *l, const struct tare_shlo_type *type) {
    if (l->dequantized && tare_shlo_quantized_of(type)) return tare_shlo_dtype(type->element->quantized->expressed);
    return l->widened ? tare_shlo_wide_dtype(tare_shlo_dtype(type)) : tare_shlo_dtype(type);
}

int tare_lower_in_dtype(const struct tare_lowering *l, size_t i) {
    return dtype_of(l, tare_lower_in_type(l, i));
}

int tare_lower_out_dtype(const struct tare_lowering *l, size_t i) {
    return dtype_of(l, tare_lower_out_type(l, i));
}

/* What a broadcast broadcasts; NULL if the edge is not one. */
static const struct tare_edge *broadcast_of(struct tare_edge edge) {
    return tare_node_is(edge.node, "BroadcastTo") ? &edge.node->inputs[0] : NULL;
}

void tare_lower_pair(struct tare_lowering *l, struct tare_edge *x, struct tare_edge *y) {
    *x = tare_lower_in(l, 0);
    *y = tare_lower_in(l, 1);
    const struct tare_edge *of_x = broadcast_of(*x), *of_y = broadcast_of(*y);
    if (l->status != TARE_OK || (of_x && of_y)) return; /* one of them must have the shape of the result */
    if (of_x) *x = *of_x;
    if (of_y) *y = *of_y;
}
