/* Differences of nearly equal values: of a value and a mean of it, of weighted means, of log-probabilities. */
#include "tpu/exact/internal.h"

#include <string.h>

enum { MOST_EDGES = 48 };

/* What lies between a value and a product, an argument or a constant before it. */
struct path {
    const struct tare_exact_values *values;
    struct tare_edge edges[MOST_EDGES];
    size_t count;
    bool reduces; /* a sum, mean, extreme or rounding is on the way */
    bool shifts;  /* a slice, roll or padding is */
    bool weighs;  /* in and out: weighted means are passed; one is on the way */
    bool means;
};

static bool is_on(const struct path *path, struct tare_edge edge) {
    for (size_t i = 0; i < path->count; i++)
        if (tare_edge_equal(path->edges[i], edge)) return true;
    return false;
}

static bool is_shift(const struct tare_node *node) {
    return tare_op_is_one_of(node->op, (const char *const[]){ "StridedSlice", "Slice", "Roll", "Pad", "PadV2", NULL });
}

/* Adds the varying values before an edge. */
static void trace(struct path *path, struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    bool means;
    if (path->count == MOST_EDGES || is_on(path, edge) || !tare_value_fact(path->values->facts, edge)->varies ||
        !tare_exact_carries_floats(tare_edge_dtype(edge)))
        return;
    path->edges[path->count++] = edge;
    if (tare_node_is_arg(node)) return;
    means = path->weighs && tare_exact_is_weighted_mean(path->values, node);
    if (!means && !tare_passes_values(node)) return;
    path->means |= means;
    path->reduces |= tare_node_has_flag(node, TARE_OP_REDUCE) || tare_exact_rounds_to_integers(node) ||
                     tare_node_is(node, "AvgPool");
    path->shifts |= is_shift(node);
    for (size_t i = 0; i < node->n_inputs; i++)
        trace(path, node->inputs[i]);
}

/* The two terms of a difference, also of a sum with a negative term. */
static bool is_difference(const struct tare_node *node) {
    if (tare_op_is_one_of(node->op, (const char *const[]){ "Sub", "SquaredDifference", NULL })) return true;
    if (!tare_op_is_one_of(node->op, (const char *const[]){ "AddV2", "Add", NULL })) return false;
    for (int i = 0; i < 2; i++) {
        const struct tare_node *term = node->inputs[i].node;
        if (tare_node_is(term, "Neg")) return true;
        for (int k = 0; tare_node_is(term, "Mul") && k < 2; k++) {
            const struct tare_tensor *factor = tare_edge_constant(term->inputs[k]);
            if (factor && factor->elements == 1 && tare_tensor_get_f64(factor, 0) < 0) return true;
        }
    }
    return false;
}

static bool share(const struct path *a, const struct path *b) {
    for (size_t i = 0; i < b->count; i++)
        if (is_on(a, b->edges[i])) return true;
    return false;
}

/* Traces both terms; whether they have a value in common. */
static bool are_related(struct path *a, struct path *b, const struct tare_node *node) {
    if (!is_difference(node)) return false;
    trace(a, node->inputs[0]);
    trace(b, node->inputs[1]);
    return share(a, b);
}

/* x − mean(x), E[x²] − E[x]², x − max(x), x − floor(x), x[1:] − x[:-1]. */
bool tare_exact_differs_from_itself(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                    const struct tare_node *node) {
    struct path a = { .values = v }, b = { .values = v };
    (void)view;
    return are_related(&a, &b, node) && (a.reduces || b.reduces || (a.shifts && b.shifts));
}

/* A sum over an axis, of products with something else that varies where by_weights; NULL: something else. */
static const struct tare_node *varying_sum(const struct tare_exact_values *v, struct tare_edge edge, bool by_weights) {
    const struct tare_node *sum = tare_exact_before_constants(v, edge).node, *terms;
    if (tare_node_is_arg(sum) || !tare_node_has_flag(sum, TARE_OP_REDUCE) || sum->n_inputs < 1) return NULL;
    terms = tare_exact_before_moves(sum->inputs[0]).node;
    if (!by_weights) return sum;
    if (!tare_node_is(terms, "Mul") || tare_edge_equal(terms->inputs[0], terms->inputs[1])) return NULL;
    for (int i = 0; i < 2; i++)
        if (!tare_value_fact(v->facts, terms->inputs[i])->varies) return NULL;
    return sum;
}

/* Σ w x² − (Σ w x)² (statistics pooling): weights that were rounded do not sum to 1, by which the mean appears in the
 * variance. */
bool tare_exact_is_weighted_variance(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                     const struct tare_node *node) {
    struct path a = { .values = v }, b = { .values = v };
    const struct tare_node *square;
    (void)view;
    if (!are_related(&a, &b, node) || !varying_sum(v, node->inputs[0], false)) return false;
    square = tare_exact_before_moves(node->inputs[1]).node;
    return !tare_node_is_arg(square) && tare_exact_is_square(square) && varying_sum(v, square->inputs[0], true);
}

/* Of weighted means: x − blur(x), the difference of two blurs, blur(x²) − blur(x)² in a measure of similarity. */
bool tare_exact_differs_by_weights(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                   const struct tare_node *node) {
    struct path a = { .values = v, .weighs = true }, b = { .values = v, .weighs = true };
    (void)view;
    return are_related(&a, &b, node) && (a.means || b.means);
}

/* ---- log-probabilities ---- */

static bool is_softmax(struct tare_edge edge) {
    return !tare_node_is_arg(edge.node) && (tare_node_is(edge.node, "Softmax") || tare_is_written_softmax(edge.node));
}

/* log p, log(p + ε), log(max(p, ε)) of probabilities p. */
bool tare_exact_has_logarithm(const struct tare_node *node, int steps) {
    static const char *const limits[] = { "AddV2", "Add", "Maximum", "Minimum", "ClipByValue", "RealDiv", NULL };
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        const struct tare_node *user = use->user;
        if (user->dead) continue;
        if (tare_node_is(user, "Log")) return true;
        if (steps && (tare_node_has_flag(user, TARE_OP_MOVE) || tare_op_is_one_of(user->op, limits)) &&
            tare_exact_has_logarithm(user, steps - 1))
            return true;
    }
    return false;
}

/* The value before moves, reductions, and arithmetic with constants. */
static bool is_log_probability(const struct tare_exact_values *v, struct tare_edge edge) {
    enum { MOST_STEPS = 16 };
    static const char *const ops[] = { "Sum", "Mean", "Neg", "Max", "Mul", "AddV2", "RealDiv", NULL };
    for (int step = 0; step < MOST_STEPS; step++) {
        size_t at = 0;
        edge = tare_exact_before_moves(edge);
        if (tare_node_is_arg(edge.node)) return false;
        if (tare_node_is(edge.node, "LogSoftmax")) return true;
        if (tare_node_is(edge.node, "Log")) return is_softmax(tare_exact_before_constants(v, edge.node->inputs[0]));
        if (!tare_op_is_one_of(edge.node->op, ops)) return false;
        while (at + 1 < edge.node->n_inputs && !tare_value_fact(v->facts, edge.node->inputs[at])->varies)
            at++;
        edge = edge.node->inputs[at];
    }
    return false;
}

/* log(p / q) of two probabilities. */
static bool is_log_ratio(const struct tare_exact_values *v, const struct tare_node *node) {
    const struct tare_node *ratio;
    if (!tare_node_is(node, "Log")) return false;
    ratio = tare_exact_before_moves(node->inputs[0]).node;
    if (tare_node_is_arg(ratio) || !tare_node_is(ratio, "RealDiv")) return false;
    return is_softmax(tare_exact_before_constants(v, ratio->inputs[0])) &&
           is_softmax(tare_exact_before_constants(v, ratio->inputs[1]));
}

/* log p − log q of one network or of two, log p − an input: ratios near 1, divergences near 0. */
bool tare_exact_compares_probabilities(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                       const struct tare_node *node) {
    (void)view;
    if (is_log_ratio(v, node)) return true;
    if (!is_difference(node)) return false;
    for (int i = 0; i < 2; i++)
        if (is_log_probability(v, node->inputs[i]) &&
            (tare_fact_is_input(tare_value_fact(v->facts, node->inputs[1 - i])) ||
             is_log_probability(v, node->inputs[1 - i])))
            return true;
    return false;
}
