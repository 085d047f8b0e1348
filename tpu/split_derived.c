/* What constants, shapes and weights alone determine, at a cut. */
#include "tpu/split_derived.h"
#include "graph/flags.h"
#include "graph/op.h"

#include <string.h>

static bool is_derived(const bool *derived, const struct tare_node *node) {
    if (tare_node_is(node, "Const") || tare_node_has_flag(node, TARE_OP_SHAPE_ONLY)) return true;
    if (tare_node_is(node, "ReadVariableOp")) return tare_node_is_arg(node->inputs[0].node);
    if (!node->def || node->def->is_stateful || !node->n_inputs || !node->def->row) return false;
    if (tare_node_has_flag(node, TARE_OP_CONTROL)) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *input = node->inputs[i].node;
        if (tare_node_is(input, "_Arg") || !derived[input->position]) return false;
    }
    return true;
}

tare_status tare_split_find_derived(bool **out, struct tare_arena *arena, const struct tare_graph *graph) {
    struct tare_node **order;
    *out = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    if (!*out) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, arena, graph));
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (order[i] && !order[i]->dead) (*out)[order[i]->position] = is_derived(*out, order[i]);
    return TARE_OK;
}

/* ---- copies ---- */

struct copier {
    struct tare_graph *graph;
    const bool *chosen, *derived;
    size_t n_nodes;            /* before anything was copied: the arrays are of these */
    struct tare_node **copies; /* by position */
};

static bool is_chosen(const struct copier *c, const struct tare_node *node) {
    return !tare_node_is(node, "_Arg") && node->position < c->n_nodes && c->chosen[node->position];
}

/* Whether all inputs of a copy are available outside. */
static bool can_copy(const struct copier *c, const struct tare_node *node, int depth) {
    enum { DEEPEST = 64 };
    if (depth > DEEPEST) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *input = node->inputs[i].node;
        if (!is_chosen(c, input) || tare_node_is(input, "Const")) continue;
        if (!c->derived[input->position] || !can_copy(c, input, depth + 1)) return false;
    }
    return true;
}

static tare_status copy(struct tare_node **out, struct copier *c, struct tare_node *node) {
    struct tare_node *copied = c->copies[node->position];
    *out = copied ? copied : node;
    if (copied || !is_chosen(c, node) || tare_node_is(node, "Const")) return TARE_OK;
    copied = tare_graph_add(c->graph, node->op, node->name);
    if (!copied) return TARE_NO_MEMORY;
    *out = c->copies[node->position] = copied;
    copied->device = node->device;
    TARE_TRY(tare_node_copy_attrs(copied, node));
    for (size_t i = 0; i < node->n_inputs; i++) {
        struct tare_edge edge = node->inputs[i];
        if (!tare_node_is(edge.node, "_Arg")) TARE_TRY(copy(&edge.node, c, edge.node));
        TARE_TRY(tare_node_add_input(copied, edge));
    }
    return tare_node_resolve(copied);
}

/* The edge that replaces `edge` outside of the part; `edge` itself if there is no copy. */
static tare_status outside_edge(struct tare_edge *out, struct copier *c, struct tare_edge edge) {
    *out = edge;
    if (!edge.node || !is_chosen(c, edge.node) || !c->derived[edge.node->position] ||
        tare_node_is(edge.node, "Const") || !can_copy(c, edge.node, 0))
        return TARE_OK;
    return copy(&out->node, c, edge.node);
}

tare_status tare_split_copy_derived(struct tare_graph *graph, const bool *chosen, struct tare_arena *arena) {
    struct copier c = { .graph = graph, .chosen = chosen, .n_nodes = graph->n_nodes };
    bool *derived;
    c.copies = TARE_NEW_ARRAY(arena, struct tare_node *, graph->n_nodes + 1);
    if (!c.copies) return TARE_NO_MEMORY;
    TARE_TRY(tare_split_find_derived(&derived, arena, graph));
    c.derived = derived;
    for (size_t i = 0; i < c.n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        for (size_t k = 0; !node->dead && !chosen[i] && k < node->n_inputs; k++) {
            struct tare_edge edge;
            TARE_TRY(outside_edge(&edge, &c, node->inputs[k]));
            if (edge.node != node->inputs[k].node) tare_node_set_input(node, k, edge);
        }
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        struct tare_edge edge;
        TARE_TRY(outside_edge(&edge, &c, graph->returns[i].edge));
        tare_graph_set_return(graph, i, edge);
    }
    return TARE_OK;
}
