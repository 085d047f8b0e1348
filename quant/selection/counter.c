/* The number of a chosen entry as a sum of counters. */
#include "graph/op.h"
#include "quant/selection/selection.h"

enum { DEEPEST = 16 };

/* A negative number counts from the end in JAX: Select(i < 0, i + n, i). */
static bool is_wrapped(struct tare_edge *index, const struct tare_node *node) {
    const bool selects = tare_node_is(node, "SelectV2") || tare_node_is(node, "Select");
    if (!selects || node->n_inputs != 3 || !tare_node_is(node->inputs[0].node, "Less")) return false;
    if (!tare_edge_equal(node->inputs[0].node->inputs[0], node->inputs[2])) return false;
    *index = node->inputs[2];
    return true;
}

/* The index of a GatherV2 that takes one element. */
static const struct tare_tensor *one_number(const struct tare_node *node) {
    const struct tare_tensor *value = node->n_inputs > 1 ? tare_edge_constant(node->inputs[1]) : NULL;
    return value && value->elements == 1 ? value : NULL;
}

static bool add_term(struct tare_observed_counter *out, const struct tare_node *arg, int64_t element, int64_t factor) {
    if (!tare_dtype_is_integer(arg->output_dtypes[0])) return false;
    for (size_t i = 0; i < out->n_terms; i++)
        if (out->terms[i].arg == arg && out->terms[i].element == element) {
            out->terms[i].factor += factor;
            return true;
        }
    if (out->n_terms == TARE_COUNTER_TERMS) return false;
    out->terms[out->n_terms++] = (struct tare_counter_term){ .arg = arg, .element = element, .factor = factor };
    return true;
}

/* Adds `factor` times a number, or an element (from 0) of a vector of them, to the counter. */
static bool add_number(struct tare_observed_counter *out, struct tare_edge edge, int element, int64_t factor,
                       int depth) {
    static const char *const copies[] = { "Identity", "Cast", "Reshape", "Squeeze", "ExpandDims", NULL };
    const struct tare_node *node = edge.node;
    const struct tare_tensor *value = tare_edge_constant(edge);
    if (tare_node_is_arg(node)) return add_term(out, node, element < 0 ? 0 : element, factor);
    if (value && value->elements > (element < 0 ? 0 : element)) {
        out->offset += factor * tare_tensor_get_i64(value, element < 0 ? 0 : element);
        return true;
    }
    if (edge.index != 0 || !node->n_inputs || depth == DEEPEST) return false;
    if (element >= 0 && tare_node_is(node, "Pack") && element < (int)node->n_inputs)
        return add_number(out, node->inputs[element], -1, factor, depth + 1);
    if (tare_op_is_one_of(node->op, copies)) return add_number(out, node->inputs[0], element, factor, depth + 1);
    if (tare_node_is(node, "GatherV2")) {
        const struct tare_tensor *index = one_number(node);
        return element <= 0 && index &&
               add_number(out, node->inputs[0], (int)tare_tensor_get_i64(index, 0), factor, depth + 1);
    }
    const bool subtracts = tare_node_is(node, "Sub");
    if (subtracts || tare_node_is(node, "AddV2") || tare_node_is(node, "Add"))
        return add_number(out, node->inputs[0], element, factor, depth + 1) &&
               add_number(out, node->inputs[1], element, subtracts ? -factor : factor, depth + 1);
    return is_wrapped(&edge, node) && add_number(out, edge, element, factor, depth + 1);
}

bool tare_quant_find_counter(struct tare_observed_counter *counter, const struct tare_quant_selection *s) {
    enum { MOST_ENTRIES = 512 };
    int64_t factor = 1;
    *counter = (struct tare_observed_counter){ .count = s->count };
    if (s->index_rank != 0 || s->n_factors || s->count < 2 || s->count > MOST_ENTRIES) return false;
    for (int i = s->n_indices; i-- > 0;) {
        const struct tare_quant_index *index = &s->indices[i];
        if (!add_number(counter, index->edge, index->element, factor, 0)) return false;
        factor *= index->size;
    }
    return counter->n_terms > 0;
}

bool tare_quant_same_counter(const struct tare_quant_selection *a, const struct tare_quant_selection *b) {
    struct tare_observed_counter x, y;
    if (!a || !b || a->count != b->count || !tare_quant_find_counter(&x, a) || !tare_quant_find_counter(&y, b))
        return false;
    for (size_t i = 0; i < x.n_terms && x.n_terms == y.n_terms; i++)
        if (x.terms[i].arg != y.terms[i].arg || x.terms[i].element != y.terms[i].element ||
            x.terms[i].factor != y.terms[i].factor)
            return false;
    return x.n_terms == y.n_terms && x.offset == y.offset;
}
