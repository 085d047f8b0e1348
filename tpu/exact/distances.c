/* Distances that are written as small differences of products: x² + c² − 2 x·c, and 1 − a·b of unit vectors. */
#include "tpu/exact/internal.h"

bool tare_exact_is_square(const struct tare_node *node) {
    return tare_node_is(node, "Square") || tare_node_is(node, "SquaredDifference") ||
           (tare_node_is(node, "Mul") && tare_edge_equal(node->inputs[0], node->inputs[1]));
}

/* x · x: by Einsum('bi,bi->b'), by a product of a row and a column of x, on the diagonal of x · xᵀ. */
static struct tare_edge multiplied_by_itself(const struct tare_node *product) {
    struct tare_edge x;
    if (product->n_inputs != 2) return (struct tare_edge){ NULL, 0 };
    x = tare_exact_before_moves(product->inputs[0]);
    return tare_edge_equal(x, tare_exact_before_moves(product->inputs[1])) ? x : (struct tare_edge){ NULL, 0 };
}

enum { MOST_TERMS = 4 };

/* The terms of a sum: products, and the values whose squares are summed. */
struct terms {
    const struct tare_exact_values *values;
    const struct tare_node *products[MOST_TERMS];
    struct tare_edge squared[MOST_TERMS];
    int n_products, n_squared;
};

static void add_square(struct terms *terms, struct tare_edge x) {
    if (x.node && terms->n_squared < MOST_TERMS) terms->squared[terms->n_squared++] = x;
}

/* Whether the moves before the edge take the diagonal of matrices. */
static bool is_diagonal(struct tare_edge edge) {
    static const char *const diagonals[] = { "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", NULL };
    while (!tare_node_is_arg(edge.node) && tare_node_has_flag(edge.node, TARE_OP_MOVE) && edge.node->n_inputs) {
        if (tare_op_is_one_of(edge.node->op, diagonals)) return true;
        edge = edge.node->inputs[0];
    }
    return false;
}

static void find_terms(struct terms *terms, struct tare_edge edge, int depth) {
    static const char *const passing[] = { "AddV2", "Add", "Sub", "Mul", "Neg", "RealDiv", NULL };
    enum { DEEPEST = 8 };
    const struct tare_node *node = tare_exact_before_moves(edge).node, *square;
    if (depth > DEEPEST || tare_node_is_arg(node)) return;
    if (tare_node_has_flag(node, TARE_OP_PRODUCT) && terms->n_products < MOST_TERMS)
        terms->products[terms->n_products++] = node;
    if (tare_node_has_flag(node, TARE_OP_PRODUCT) && is_diagonal(edge)) add_square(terms, multiplied_by_itself(node));
    if (tare_node_has_flag(node, TARE_OP_REDUCE)) {
        square = tare_exact_before_moves(node->inputs[0]).node;
        if (tare_exact_is_square(square)) add_square(terms, tare_exact_before_moves(square->inputs[0]));
    }
    if (!tare_op_is_one_of(node->op, passing)) return;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_value_fact(terms->values->facts, node->inputs[i])->varies)
            find_terms(terms, node->inputs[i], depth + 1);
}

static bool has_operand(const struct tare_node *product, struct tare_edge x) {
    for (size_t i = 0; i < product->n_inputs; i++)
        if (tare_edge_equal(tare_exact_before_moves(product->inputs[i]), x)) return true;
    return false;
}

/* Squared distances as x² + c² − 2 x·c: a sum of squares of x, and another product of x. */
bool tare_exact_is_expanded_distance(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                     const struct tare_node *node) {
    struct terms terms = { .values = v };
    (void)view;
    if (!tare_op_is_one_of(node->op, (const char *const[]){ "AddV2", "Add", "Sub", NULL })) return false;
    find_terms(&terms, node->inputs[0], 0);
    find_terms(&terms, node->inputs[1], 0);
    for (int p = 0; p < terms.n_products; p++) {
        for (int s = 0; s < terms.n_squared; s++)
            if (has_operand(terms.products[p], terms.squared[s])) return true;
        for (int s = 0; s < terms.n_products; s++) {
            const struct tare_edge x = multiplied_by_itself(terms.products[s]);
            if (x.node && terms.products[s] != terms.products[p] && has_operand(terms.products[p], x) &&
                tare_value_fact(v->facts, x)->varies)
                return true;
        }
    }
    return false;
}

/* ---- covariances ---- */

/* m · mᵀ: as a product, or as the product of a row and a column element by element. */
static struct tare_edge outer_square(const struct tare_node *node) {
    if (tare_node_is_arg(node) || (!tare_node_is(node, "Mul") && !tare_node_has_flag(node, TARE_OP_PRODUCT)))
        return (struct tare_edge){ NULL, 0 };
    return multiplied_by_itself(node);
}

/* E[x · xᵀ] − m · mᵀ of a mean m of x. */
bool tare_exact_is_covariance(const struct tare_exact_values *v, const struct tare_exact_view *view,
                              const struct tare_node *node) {
    const struct tare_node *product;
    struct tare_edge x, m;
    (void)view;
    if (!tare_node_is(node, "Sub")) return false;
    product = tare_exact_before_constants(v, node->inputs[0]).node;
    if (tare_node_is_arg(product) || !tare_node_has_flag(product, TARE_OP_PRODUCT)) return false;
    x = multiplied_by_itself(product);
    m = outer_square(tare_exact_before_constants(v, node->inputs[1]).node);
    if (!x.node || !m.node || tare_node_is_arg(m.node)) return false;
    return tare_op_is_one_of(m.node->op, (const char *const[]){ "Mean", "Sum", NULL }) &&
           tare_edge_equal(tare_exact_before_moves(m.node->inputs[0]), x);
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
