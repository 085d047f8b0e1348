/* The last part of the analysis, after all values that must stay exact are found.
 *
 * Arithmetic on exact values alone stays exact up to the next product, so that a second reader of an exact value does
 * not get a rounded one. And what one op computes and one op reads is never stored: a TPU computes both in one pass, in
 * float32, so that rounding between them costs accuracy and saves nothing. */
#include "tpu/exact/internal.h"

static enum tare_quant_role role_of(const struct tare_node *node) {
    return node->def && node->def->row ? node->def->row->quant : TARE_QUANT_NONE;
}

static bool is_arithmetic(const struct tare_node *node) {
    if (tare_node_has_flag(node, TARE_OP_MOVE | TARE_OP_CREATE | TARE_OP_DISCRETE)) return false;
    return tare_node_has_flag(node, TARE_OP_ELEMENTWISE | TARE_OP_ARITHMETIC | TARE_OP_REDUCE) ||
           role_of(node) == TARE_QUANT_BIAS;
}

const struct tare_exact_slot *tare_exact_operand(const struct tare_exact_values *v, struct tare_edge edge) {
    enum { MOST_MOVES = 16 };
    for (int i = 0; i < MOST_MOVES; i++) {
        const struct tare_exact_slot *slot = tare_exact_find(&v->by_edge, edge.node, edge.index);
        if (!slot && !tare_node_is_arg(edge.node)) slot = tare_exact_find(&v->by_node, edge.node, 0);
        if (slot) return slot;
        if (tare_node_is_arg(edge.node) || !tare_node_has_flag(edge.node, TARE_OP_MOVE) || !edge.node->n_inputs ||
            !tare_exact_carries_floats(tare_edge_dtype(edge.node->inputs[0])))
            return NULL;
        edge = edge.node->inputs[0];
    }
    return NULL;
}

static tare_status continue_node(struct tare_exact_values *v, const struct tare_node *node) {
    const struct tare_exact_slot *found = NULL;
    if (!is_arithmetic(node) || tare_exact_find(&v->by_node, node, 0)) return TARE_OK;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_exact_slot *slot;
        if (!tare_exact_carries_floats(tare_edge_dtype(node->inputs[i])) ||
            !tare_value_fact(v->facts, node->inputs[i])->varies)
            continue;
        slot = tare_exact_operand(v, node->inputs[i]);
        if (!slot) return TARE_OK;
        found = slot;
    }
    if (!found) return TARE_OK;
    return tare_exact_keep(v, node, (struct tare_exact_why){ found->why.reason, TARE_EXACT_LOCAL });
}

/* The op that alone reads the node's values; NULL: none, or several. */
static const struct tare_node *only_user(const struct tare_node *node) {
    const struct tare_node *found = NULL;
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        if (use->user->dead || use->user == found) continue;
        if (found) return NULL;
        found = use->user;
    }
    return found;
}

static bool is_float_arithmetic(const struct tare_node *node) {
    return is_arithmetic(node) && node->n_outputs && tare_exact_carries_floats(tare_dtype_base(node->output_dtypes[0]));
}

/* A bias or an activation belongs to the product before it, and an activation keeps rounded values as they are. */
static bool belongs_to_product(const struct tare_node *node) {
    return role_of(node) == TARE_QUANT_BIAS || role_of(node) == TARE_QUANT_ACTIVATION;
}

/* The sum of a residual network, to which every layer adds. */
static bool is_residual(const struct tare_exact_values *v, const struct tare_node *node) {
    if (!is_float_arithmetic(node) || (!tare_node_is(node, "AddV2") && !tare_node_is(node, "Add"))) return false;
    for (int i = 0; i < 2; i++)
        if (!tare_value_fact(v->facts, node->inputs[i])->computed) return false;
    return true;
}

static tare_status keep_residual(struct tare_exact_values *v, const struct tare_node *node) {
    if (!is_residual(v, node)) return TARE_OK;
    return tare_exact_keep(
        v, node, (struct tare_exact_why){ tare_exact_reason(v, "is a residual sum", node), TARE_EXACT_LOCAL });
}

static tare_status keep_passing(struct tare_exact_values *v, const struct tare_node *node) {
    const struct tare_node *user = only_user(node);
    struct tare_exact_why why = { NULL, TARE_EXACT_LOCAL };
    if (!user || !is_float_arithmetic(node) || !is_float_arithmetic(user) || belongs_to_product(node) ||
        belongs_to_product(user))
        return TARE_OK;
    why.reason = tare_exact_reason(v, "is read by one op only", user);
    TARE_TRY(tare_exact_keep(v, node, why));
    return tare_exact_keep(v, user, why);
}

/* Arithmetic that float32 alone reads: the cast is before it, at the product, rather than after it, where it would
 * round a second time. */
static tare_status keep_before(struct tare_exact_values *v, const struct tare_node *node) {
    const struct tare_exact_slot *found = NULL;
    if (!is_float_arithmetic(node) || tare_exact_find(&v->by_node, node, 0)) return TARE_OK;
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        if (use->user->dead) continue;
        found = tare_exact_find(&v->by_node, use->user, 0);
        if (!found) return TARE_OK;
    }
    return found ? tare_exact_keep(v, node, (struct tare_exact_why){ found->why.reason, TARE_EXACT_LOCAL }) : TARE_OK;
}

static tare_status follow_graph(struct tare_exact_values *v, const struct tare_exact_view *view) {
    struct tare_node **order;
    TARE_TRY(tare_graph_order(&order, v->arena, view->graph));
    for (size_t i = 0; i < view->graph->n_nodes; i++)
        if (order[i] && tare_exact_counts(view, order[i]->position)) TARE_TRY(keep_residual(v, order[i]));
    for (size_t i = 0; i < view->graph->n_nodes; i++)
        if (order[i] && tare_exact_counts(view, order[i]->position)) TARE_TRY(continue_node(v, order[i]));
    for (size_t i = 0; i < view->graph->n_nodes; i++)
        if (order[i] && tare_exact_counts(view, order[i]->position)) TARE_TRY(keep_passing(v, order[i]));
    for (size_t i = view->graph->n_nodes; i-- > 0;)
        if (order[i] && tare_exact_counts(view, order[i]->position)) TARE_TRY(keep_before(v, order[i]));
    return TARE_OK;
}

tare_status tare_exact_forward(struct tare_exact_values *v) {
    for (size_t g = 0; g < v->n_views; g++)
        if (v->views[g].converted) TARE_TRY(follow_graph(v, &v->views[g]));
    return TARE_OK;
}
