/* Numbers that chosen entries are multiplied by: gates, masks, and the fill of an index out of range. */
#include "graph/op.h"
#include "quant/layer.h"
#include "quant/selection/trace.h"

#include <math.h>

/* Finds the axes of the number: those of the index, all or the last ones of them, in their order. */
static bool find_axes(struct tare_quant_factor *factor, const struct tare_trace *t) {
    const struct tare_shape shape = tare_model_shape(t->shapes, factor->node->inputs[factor->input]);
    const int ahead = t->shape.rank - shape.rank;
    int last = -1;
    if (shape.rank < 0 || ahead < 0) return false;
    factor->rank = shape.rank;
    for (int i = 0; i < shape.rank; i++) {
        const int64_t size = shape.dims[i], whole = t->shape.dims[ahead + i];
        const int from = t->from[ahead + i], k = TARE_FROM_INDEX - from;
        factor->from[i] = from <= TARE_FROM_INDEX ? from : TARE_FROM_NOTHING;
        if (from > TARE_FROM_INDEX ? size != 1 : size >= 0 && size != 1 && size != whole) return false;
        if (from > TARE_FROM_INDEX) continue;
        if ((whole == 1 && size != 1) || (last >= 0 && k != last + 1)) return false;
        last = k;
    }
    return last < 0 || last == t->selection->index_rank - 1;
}

static bool add(struct tare_trace *t, struct tare_quant_factor *factor) {
    struct tare_quant_selection *s = t->selection;
    if (s->n_factors == TARE_MOST_FACTORS || !find_axes(factor, t)) return false;
    s->factors[s->n_factors++] = *factor;
    return true;
}

bool tare_trace_multiply(struct tare_trace *t, const struct tare_node *node, size_t operand) {
    struct tare_quant_factor factor = { .node = node, .input = 1 - operand };
    const bool divides = tare_node_is(node, "RealDiv") || tare_node_is(node, "Div");
    if (!tare_node_is(node, "Mul") && !(divides && operand == 0)) return false;
    return tare_quant_takes_dtype(tare_edge_dtype(node->inputs[factor.input])) && add(t, &factor);
}

/* Whether all elements are 0, or all NaN. */
static bool is_fill(float *fill, const struct tare_tensor *value) {
    if (!value || !value->elements || !tare_quant_takes_dtype(value->dtype)) return false;
    *fill = isnan(tare_tensor_get_f64(value, 0)) ? NAN : 0;
    for (int64_t i = 0; i < (value->splat ? 1 : value->elements); i++) {
        const double number = tare_tensor_get_f64(value, i);
        if (isnan(*fill) ? !isnan(number) : number != 0) return false;
    }
    return true;
}

size_t tare_trace_selected(const struct tare_node *node) {
    return tare_edge_constant(node->inputs[1]) ? 2 : 1;
}

bool tare_trace_select(struct tare_trace *t, const struct tare_node *node) {
    const size_t operand = tare_trace_selected(node);
    const struct tare_tensor *fill = tare_edge_constant(node->inputs[3 - operand]);
    struct tare_quant_factor factor = { .node = node, .selects = true, .inverted = operand == 2 };
    if (!is_fill(&factor.fill, fill) || fill->shape.rank > t->shape.rank) return false;
    for (int i = 0; i < fill->shape.rank; i++) {
        const int64_t size = fill->shape.dims[i];
        if (size != 1 && size != t->shape.dims[t->shape.rank - fill->shape.rank + i]) return false;
    }
    return add(t, &factor);
}
