#include "quant/selection/trace.h"

#include <string.h>

/* ---- axes ---- */

void tare_trace_remove_axis(struct tare_trace *t, int axis) {
    const size_t behind = (size_t)(t->shape.rank - axis - 1);
    memmove(&t->shape.dims[axis], &t->shape.dims[axis + 1], behind * sizeof *t->shape.dims);
    memmove(&t->from[axis], &t->from[axis + 1], behind * sizeof *t->from);
    t->shape.rank--;
}

bool tare_trace_insert_axis(struct tare_trace *t, int axis, int64_t size, int from) {
    if (t->shape.rank == TARE_MAX_RANK || axis < 0 || axis > t->shape.rank) return false;
    const size_t behind = (size_t)(t->shape.rank - axis);
    memmove(&t->shape.dims[axis + 1], &t->shape.dims[axis], behind * sizeof *t->shape.dims);
    memmove(&t->from[axis + 1], &t->from[axis], behind * sizeof *t->from);
    t->shape.dims[axis] = size;
    t->from[axis] = from;
    t->shape.rank++;
    return true;
}

bool tare_trace_choose(struct tare_trace *t, int axis, struct tare_edge edge, int element,
                       enum tare_quant_index_rule rule) {
    struct tare_quant_selection *s = t->selection;
    if (t->from[axis] < 0 || s->n_indices == TARE_MAX_RANK) return false;
    s->indices[s->n_indices++] = (struct tare_quant_index){
        .axis = t->from[axis], .size = t->shape.dims[axis], .edge = edge, .element = element, .rule = rule
    };
    t->from[axis] = TARE_FROM_NOTHING;
    t->shape.dims[axis] = 1;
    return true;
}

/* ---- ops ---- */

const struct tare_tensor *tare_trace_constant(const struct tare_node *node, size_t input, int64_t most) {
    const struct tare_tensor *value = input < node->n_inputs ? tare_edge_constant(node->inputs[input]) : NULL;
    return value && value->elements <= most ? value : NULL;
}

bool tare_trace_read_axis(int *out, const struct tare_tensor *value, int64_t rank) {
    if (!value || value->elements != 1) return false;
    const int64_t axis = tare_tensor_get_i64(value, 0) + (tare_tensor_get_i64(value, 0) < 0 ? rank : 0);
    *out = (int)axis;
    return axis >= 0 && axis < rank;
}

bool tare_trace_add_scaling(struct tare_trace *t, const struct tare_node *node, size_t operand) {
    t->status = tare_quant_add_scaling(t->selection, t->arena, node, operand);
    return t->status == TARE_OK;
}
