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

/* The axis of the operand of broadcast_in_dim that becomes this axis of its result, with its size; -1: none. */
static int64_t axis_before(const struct tare_shlo_op *op, int64_t axis) {
    const struct tare_shlo_attr *dims = tare_shlo_op_attr(op, "broadcast_dimensions");
    const struct tare_shlo_type *from = op->operands[0]->type, *to = op->results[0].type;
    size_t count;
    if (!dims || !tare_shlo_tensor_count(&count, dims) || count != from->rank) return -1;
    for (size_t i = 0; i < count; i++)
        if (tare_shlo_tensor_integer(dims, i) == axis) return from->dims[i] == to->dims[axis] ? (int64_t)i : -1;
    return -1;
}

static bool is_broadcast(const struct tare_shlo_value *value) {
    return value->op && tare_shlo_op_is(value->op, "broadcast_in_dim");
}

/* Whether a value has its elements along an axis from before all broadcasts. */
static bool has_axis(const struct tare_shlo_value *value, int64_t axis) {
    if (value->type->dims[axis] < 0) return false;
    for (; axis >= 0 && is_broadcast(value); value = value->op->operands[0])
        axis = axis_before(value->op, axis);
    return axis >= 0;
}

/* Whether all broadcasts of a value are ops of the module: others belong to the form of an op (iota). */
static bool is_broadcast_here(struct tare_lowering *l, const struct tare_shlo_value *value) {
    while (is_broadcast(value))
        value = value->op->operands[0];
    return !broadcast_of(tare_lower_value(l, value));
}

/* Whether what the two operands are broadcasts of has their shape, broadcast against each other. */
static bool make_the_shape(struct tare_lowering *l) {
    const struct tare_shlo_value *x = l->op->operands[0], *y = l->op->operands[1];
    if (l->is_replaced || !is_broadcast_here(l, x) || !is_broadcast_here(l, y)) return false;
    for (size_t d = 0; d < x->type->rank; d++)
        if (!has_axis(x, (int64_t)d) && !has_axis(y, (int64_t)d)) return false;
    return x->type->rank == y->type->rank;
}

void tare_lower_pair(struct tare_lowering *l, struct tare_edge *x, struct tare_edge *y) {
    *x = tare_lower_in(l, 0);
    *y = tare_lower_in(l, 1);
    const struct tare_edge *of_x = broadcast_of(*x), *of_y = broadcast_of(*y);
    if (l->status != TARE_OK) return;
    if (of_x && (!of_y || make_the_shape(l))) *x = *of_x;
    if (of_y) *y = *of_y;
}

struct tare_edge tare_lower_number_in(struct tare_lowering *l, size_t i, struct tare_edge other) {
    const struct tare_shlo_value *value = l->op->operands[i];
    struct tare_edge x = tare_lower_in(l, i);
    const bool is_one = l->status == TARE_OK && is_broadcast(value) && value->op->operands[0]->type->rank == 0;
    return is_one && broadcast_of(x) && !broadcast_of(other) ? *broadcast_of(x) : x;
}

struct tare_edge tare_lower_condition_in(struct tare_lowering *l) {
    const struct tare_edge condition = tare_lower_in(l, 0), yes = tare_lower_in(l, 1), no = tare_lower_in(l, 2);
    const struct tare_edge *of = l->status == TARE_OK ? broadcast_of(condition) : NULL;
    return of && !(broadcast_of(yes) && broadcast_of(no)) ? *of : condition;
}
