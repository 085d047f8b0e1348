/* Recognises scales and zero points by their data flow; see the header. */
#include "tpu/exact/range_values.h"
#include "graph/flags.h"

enum {
    MOST_STEPS = 16,
    MOST_ADDITIONS = 6 /* zero point, one half, rounding, two limits */
};

static bool is_floating_cast(const struct tare_node *node) {
    return tare_node_is(node, "Cast") && tare_dtype_is_floating(tare_node_type(node, "SrcT", 0)) &&
           tare_dtype_is_floating(tare_node_type(node, "DstT", 0));
}

static bool is_arithmetic(const struct tare_node *node) {
    return tare_node_has_flag(node, TARE_OP_ARITHMETIC) || is_floating_cast(node);
}

/* *extremes: set when a Max or Min is among the operands. */
static bool is_of_extremes(struct tare_edge edge, int steps, bool *extremes) {
    const struct tare_node *node = edge.node;
    if (tare_edge_constant(edge)) return true;
    if (tare_node_is(node, "Max") || tare_node_is(node, "Min")) return *extremes = true;
    if (!steps || tare_node_is_arg(node) || !node->n_inputs || !is_arithmetic(node)) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!is_of_extremes(node->inputs[i], steps - 1, extremes)) return false;
    return true;
}

bool tare_is_range_value(struct tare_edge edge) {
    bool extremes = false;
    return is_of_extremes(edge, MOST_STEPS, &extremes) && extremes;
}

static bool is_narrow_cast(const struct tare_node *node) {
    const int to = tare_node_is(node, "Cast") ? tare_node_type(node, "DstT", 0) : 0;
    return to == TARE_DT_INT8 || to == TARE_DT_INT4 || to == TARE_DT_UINT8 || to == TARE_DT_QINT8;
}

/* Arithmetic on an output of the node ends in a cast to 8 bits or fewer. */
static bool ends_narrow(const struct tare_node *node, int steps) {
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        if (use->user->dead) continue;
        if (is_narrow_cast(use->user)) return true;
        if (steps && is_arithmetic(use->user) && ends_narrow(use->user, steps - 1)) return true;
    }
    return false;
}

bool tare_ends_narrow(const struct tare_node *node) {
    return ends_narrow(node, MOST_ADDITIONS);
}

bool tare_is_zero_point(const struct tare_node *node) {
    if (!tare_node_is(node, "Cast") || !tare_is_range_value(node->inputs[0])) return false;
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use))
        if (!use->user->dead && tare_node_is(use->user, "Cast") &&
            tare_dtype_is_floating(tare_node_type(use->user, "DstT", 0)) && ends_narrow(use->user, MOST_ADDITIONS))
            return true;
    return false;
}
