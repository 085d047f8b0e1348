/* Outputs of signatures and of TPU functions: final probabilities, and all others. */
#include "tpu/exact/internal.h"
#include "graph/calls.h"

static const char PROBABILITY[] = "is a final probability";
static const char OUTPUT[] = "is an output";

typedef tare_status (*visit)(struct tare_exact_values *v, struct tare_edge edge, const char *name);

static tare_status each_return(struct tare_exact_values *v, const struct tare_graph *graph, visit seed) {
    for (size_t i = 0; i < graph->n_returns; i++)
        if (graph->returns[i].edge.node) TARE_TRY(seed(v, graph->returns[i].edge, graph->name));
    return TARE_OK;
}

static tare_status each_output(struct tare_exact_values *v, visit seed) {
    const struct tare_graph_model *model = v->model;
    for (size_t s = 0; s < model->n_signatures; s++)
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++)
            if (model->signatures[s].outputs[i].edge.node)
                TARE_TRY(seed(v, model->signatures[s].outputs[i].edge, model->signatures[s].key));
    for (size_t i = 0; i < v->options->n_placed; i++)
        if (v->options->placed[i] != model->main) TARE_TRY(each_return(v, v->options->placed[i], seed));
    for (size_t i = 0; i < model->n_aliases; i++) {
        const struct tare_graph *graph = tare_model_find_function(model, model->aliases[i].function);
        if (graph) TARE_TRY(each_return(v, graph, seed));
    }
    return TARE_OK;
}

enum { DEEPEST = 256 };

static bool ends(struct tare_edge edge, int depth) {
    return !edge.node || tare_node_is_arg(edge.node) || depth > DEEPEST;
}

/* *first: the edge is not in the table yet; it is afterwards. */
static tare_status enter(bool *first, struct tare_exact_values *v, struct tare_map *seen, struct tare_edge edge) {
    struct tare_edge *key = TARE_NEW(v->arena, struct tare_edge); /* zeroed: padding, too */
    if (!key) return TARE_NO_MEMORY;
    key->node = edge.node;
    key->index = edge.index;
    *first = !tare_map_get_n(seen, (const char *)key, sizeof *key);
    return !*first || tare_map_set_n(seen, (const char *)key, sizeof *key, v) ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- probabilities ---- */

static tare_status find_final(const char **reason, struct tare_exact_values *v, struct tare_edge edge, int depth);

/* Through the returns of a call's functions, or the inputs of a move. */
static tare_status find_before(const char **reason, struct tare_exact_values *v, struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    for (size_t c = 0; c < site.n_callees && site.kind != TARE_CALL_OTHER; c++)
        if ((size_t)edge.index < site.callees[c]->n_returns)
            TARE_TRY(find_final(reason, v, site.callees[c]->returns[edge.index].edge, depth + 1));
    if (site.kind != TARE_CALL_NONE || !tare_exact_carries_floats(tare_edge_dtype(edge))) return TARE_OK;
    if (tare_node_has_flag(node, TARE_OP_PROBABILITY) || tare_is_written_softmax(node)) {
        *reason = tare_exact_reason(v, PROBABILITY, node);
        return tare_exact_push_inputs(v, node, PROBABILITY, TARE_EXACT_RESULT);
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_node_has_flag(node, TARE_OP_MOVE) || tare_node_is(node, "Cast"))
            TARE_TRY(find_final(reason, v, node->inputs[i], depth + 1));
    return TARE_OK;
}

/* Sets *reason when the value is a probability that is only moved afterwards; every edge on the way stays exact. */
static tare_status find_final(const char **reason, struct tare_exact_values *v, struct tare_edge edge, int depth) {
    const char *found = NULL;
    bool first;
    if (ends(edge, depth)) return TARE_OK;
    TARE_TRY(enter(&first, v, &v->final, edge));
    if (first) {
        TARE_TRY(find_before(&found, v, edge, depth));
        if (found) TARE_TRY(tare_exact_push(v, edge, (struct tare_exact_why){ found, TARE_EXACT_RESULT }));
    }
    if (!found) found = tare_exact_edge(v, edge); /* of an earlier visit */
    if (found) *reason = found;
    return TARE_OK;
}

static tare_status seed_final(struct tare_exact_values *v, struct tare_edge edge, const char *name) {
    const char *reason;
    (void)name;
    return find_final(&reason, v, edge, 0);
}

tare_status tare_exact_probabilities(struct tare_exact_values *v) {
    return each_output(v, seed_final);
}

/* ---- other outputs ---- */

static tare_status push_output(struct tare_exact_values *v, struct tare_edge edge, const char *name,
                               enum tare_exact_level level) {
    const char *reason = tare_arena_printf(v->arena, "%s (of '%s')", OUTPUT, name);
    if (!reason) return TARE_NO_MEMORY;
    return tare_exact_push(v, edge, (struct tare_exact_why){ reason, level });
}

static tare_status seed_output(struct tare_exact_values *v, struct tare_edge edge, const char *name) {
    return push_output(v, edge, name, TARE_EXACT_OUTPUT);
}

/* A price: rounding the product would change the number by a quarter of its unit or more. */
static tare_status seed_large(struct tare_exact_values *v, struct tare_edge edge, const char *name) {
    const struct tare_value_fact *fact = tare_value_fact(v->facts, edge);
    const float most = 128;
    if (!fact->computed || fact->dev < most || tare_fact_weight(fact) < TARE_VERY_HEAVY) return TARE_OK;
    return push_output(v, edge, name, TARE_EXACT_RESULT);
}

/* A small matrix: a rotation of coordinates, the next state of a filter, a polynomial of measured values. */
static bool is_small_product(const struct tare_exact_values *v, struct tare_edge edge) {
    const float most = 16;
    bool of_inputs = true;
    if (!tare_node_has_flag(edge.node, TARE_OP_PRODUCT)) return false;
    for (size_t i = 0; i < edge.node->n_inputs; i++) {
        const struct tare_value_fact *fact = tare_value_fact(v->facts, edge.node->inputs[i]);
        if (!fact->varies && fact->elements > most) return false;
        of_inputs &= !fact->varies || tare_fact_is_input(fact);
    }
    return of_inputs || tare_fact_is_linear(tare_value_fact(v->facts, edge));
}

/* A product of inputs beside other terms of an output: a linear part of a forecast, of a regression. */
static bool is_linear_term(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_node_has_flag(edge.node, TARE_OP_PRODUCT) && tare_fact_is_linear(tare_value_fact(v->facts, edge));
}

static bool all_vary(const struct tare_exact_values *v, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!tare_value_fact(v->facts, node->inputs[i])->varies) return false;
    return true;
}

/* Products that are terms of an output, small ones or beside others: as little is known about their mean as about that
 * of the inputs. */
static tare_status find_terms(struct tare_exact_values *v, struct tare_edge edge, const char *name, bool several,
                              int depth) {
    static const char *const sums[] = { "AddV2", "Add", "Sub", NULL };
    struct tare_call_site site;
    size_t terms;
    bool first;
    if (ends(edge, depth)) return TARE_OK;
    TARE_TRY(enter(&first, v, &v->terms, edge));
    if (!first) return TARE_OK;
    if (is_small_product(v, edge) || (several && is_linear_term(v, edge)))
        return push_output(v, edge, name, TARE_EXACT_PRODUCT);

    TARE_TRY(tare_call_site(&site, v->arena, edge.node));
    for (size_t c = 0; c < site.n_callees && site.kind != TARE_CALL_OTHER; c++)
        if ((size_t)edge.index < site.callees[c]->n_returns)
            TARE_TRY(find_terms(v, site.callees[c]->returns[edge.index].edge, name, several, depth + 1));
    if (site.kind != TARE_CALL_NONE) return TARE_OK;
    terms = tare_op_is_one_of(edge.node->op, sums) ? 2 : tare_node_has_flag(edge.node, TARE_OP_MOVE);
    several |= terms == 2 && all_vary(v, edge.node);
    for (size_t i = 0; i < terms && i < edge.node->n_inputs; i++)
        TARE_TRY(find_terms(v, edge.node->inputs[i], name, several, depth + 1));
    return TARE_OK;
}

static tare_status seed_linear(struct tare_exact_values *v, struct tare_edge edge, const char *name) {
    return find_terms(v, edge, name, false, 0);
}

tare_status tare_exact_linear_outputs(struct tare_exact_values *v) {
    return each_output(v, seed_linear);
}

tare_status tare_exact_large_outputs(struct tare_exact_values *v) {
    return each_output(v, seed_large);
}

tare_status tare_exact_outputs(struct tare_exact_values *v) {
    return each_output(v, seed_output);
}
