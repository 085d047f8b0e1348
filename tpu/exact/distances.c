/* Distances that are written as small differences of products: x² + c² − 2 x·c, and 1 − a·b of unit vectors. */
#include "tpu/exact/internal.h"

bool tare_exact_is_square(const struct tare_node *node) {
    return tare_node_is(node, "Square") || tare_node_is(node, "SquaredDifference") ||
           (tare_node_is(node, "Mul") && tare_edge_equal(node->inputs[0], node->inputs[1]));
}

/* The terms of a sum: a product of two values, or a sum of squares. */
struct terms {
    const struct tare_exact_values *values;
    const struct tare_node *product;
    struct tare_edge squared;
};

static void find_terms(struct terms *terms, struct tare_edge edge, int depth) {
    enum { DEEPEST = 8 };
    const struct tare_node *node = tare_exact_before_moves(edge).node;
    if (depth > DEEPEST || tare_node_is_arg(node)) return;
    if (tare_node_has_flag(node, TARE_OP_PRODUCT)) terms->product = node;
    if (tare_node_has_flag(node, TARE_OP_REDUCE) && tare_exact_is_square(tare_exact_before_moves(node->inputs[0]).node))
        terms->squared = tare_exact_before_moves(tare_exact_before_moves(node->inputs[0]).node->inputs[0]);
    if (!tare_op_is_one_of(node->op, (const char *const[]){ "AddV2", "Add", "Sub", "Mul", "Neg", "RealDiv", NULL }))
        return;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_value_fact(terms->values->facts, node->inputs[i])->varies)
            find_terms(terms, node->inputs[i], depth + 1);
}

/* Squared distances as x² + c² − 2 x·c: a sum of squares of x, and a product of x. */
bool tare_exact_is_expanded_distance(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                     const struct tare_node *node) {
    struct terms terms = { .values = v };
    (void)view;
    if (!tare_op_is_one_of(node->op, (const char *const[]){ "AddV2", "Add", "Sub", NULL })) return false;
    find_terms(&terms, node->inputs[0], 0);
    find_terms(&terms, node->inputs[1], 0);
    for (size_t i = 0; terms.product && terms.squared.node && i < terms.product->n_inputs; i++)
        if (tare_edge_equal(tare_exact_before_moves(terms.product->inputs[i]), terms.squared)) return true;
    return false;
}

/* ---- unit vectors ---- */

static bool varies(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_value_fact(v->facts, edge)->varies;
}

struct tare_edge tare_exact_before_constants(const struct tare_exact_values *v, struct tare_edge edge) {
    static const char *const ops[] = { "Maximum", "Minimum", "AddV2",       "Add", "Mul", "RealDiv",
                                       "Neg",     "Sub",     "ClipByValue", "Max", "Min", NULL };
    enum { MOST_STEPS = 16 };
    for (int step = 0; step < MOST_STEPS; step++) {
        size_t varying = 0, at = 0;
        edge = tare_exact_before_moves(edge);
        if (tare_node_is_arg(edge.node) || !tare_op_is_one_of(edge.node->op, ops)) return edge;
        for (size_t i = 0; i < edge.node->n_inputs; i++) {
            if (!varies(v, edge.node->inputs[i])) continue;
            varying++;
            at = i;
        }
        if (varying != 1) return edge;
        edge = edge.node->inputs[at];
    }
    return edge;
}

/* The norm of x, or what x is multiplied with to have norm 1. */
static bool is_norm(const struct tare_exact_values *v, struct tare_edge edge, const char *root, struct tare_edge x) {
    const struct tare_node *node = tare_exact_before_constants(v, edge).node;
    if (tare_node_is_arg(node) || !tare_node_is(node, root)) return false;
    node = tare_exact_before_constants(v, node->inputs[0]).node;
    if (tare_node_is_arg(node) || !tare_node_is(node, "Sum")) return false;
    node = tare_exact_before_moves(node->inputs[0]).node;
    return !tare_node_is_arg(node) && tare_exact_is_square(node) &&
           tare_edge_equal(tare_exact_before_moves(node->inputs[0]), tare_exact_before_moves(x));
}

bool tare_exact_is_unit(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_node *node = tare_exact_before_moves(edge).node;
    if (tare_node_is_arg(node) || node->n_inputs != 2) return false;
    if (tare_op_is_one_of(node->op, (const char *const[]){ "RealDiv", "DivNoNan", NULL }))
        return is_norm(v, node->inputs[1], "Sqrt", node->inputs[0]);
    return tare_node_is(node, "Mul") && (is_norm(v, node->inputs[0], "Rsqrt", node->inputs[1]) ||
                                         is_norm(v, node->inputs[1], "Rsqrt", node->inputs[0]));
}

static bool has_unit(const struct tare_exact_values *v, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_exact_is_unit(v, node->inputs[i])) return true;
    return false;
}

/* a·b, as a product or as the sum of a b. */
static bool is_product_of_units(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    if (tare_node_is_arg(node)) return false;
    if (tare_node_has_flag(node, TARE_OP_PRODUCT)) return has_unit(v, node);
    if (!tare_node_is(node, "Sum")) return false;
    node = tare_exact_before_moves(node->inputs[0]).node;
    return !tare_node_is_arg(node) && tare_node_is(node, "Mul") && !tare_exact_is_square(node) && has_unit(v, node);
}

bool tare_exact_is_cosine_distance(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                   const struct tare_node *node) {
    (void)view;
    if (tare_node_is(node, "Acos")) return is_product_of_units(v, tare_exact_before_constants(v, node->inputs[0]));
    if (!tare_node_is(node, "Sub") || varies(v, node->inputs[0]) == varies(v, node->inputs[1])) return false;
    return is_product_of_units(v, tare_exact_before_constants(v, node->inputs[varies(v, node->inputs[1])]));
}
