/* Plans which values are shared between models. Every edge of an inlined model has a key of what it computes
 * (eval/prefix_cache/edge_keys.h). From the outputs of a model the plan walks towards the inputs and stops at edges
 * whose key an earlier model has: these are fed, and their first owner keeps them until the last model that uses them.
 */
#include "eval/prefix_cache/prefix_cache_plan.h"
#include "base/alloc.h"
#include "graph/calls.h"
#include "graph/op.h"

#include <string.h>

/* ---- walking back from the outputs ---- */

struct walk {
    struct tare_prefix_cache_plan *plan;
    const struct tare_graph *graph;
    const struct tare_record_edges *edges;
    struct tare_edge_keys keys;
    struct tare_arena *arena;
    size_t number;
    enum {
        PLANNING,
        RUNNING,
        WHOLE
    } purpose;    /* which values may be fed: those that will be kept, those that are kept, or none */
    bool *input;  /* by position: a fed node */
    bool *seen;   /* by position */
    bool *costly; /* by position: a costly op computes it; NULL: not distinguished */
    struct tare_node **stack;
    size_t depth;
    struct tare_prefix_cache_route *route; /* NULL while planning */
    struct tare_map listed;                /* edges and values in the lists of the route */
};

/* A value can be kept when it depends on the record and any model may be fed with it. */
static bool is_keepable(const struct walk *w, struct tare_edge edge) {
    const int dtype = edge.node->output_dtypes[edge.index];
    return w->keys.shared[edge.node->position] && w->keys.fed[edge.node->position] && !tare_dtype_is_ref(dtype) &&
           dtype != TARE_DT_STRING && dtype != TARE_DT_RESOURCE && dtype != TARE_DT_VARIANT &&
           (!w->costly || w->costly[edge.node->position]);
}

static struct tare_prefix_cache_value *value_of(const struct walk *w, struct tare_edge edge) {
    struct tare_edge_key key = tare_edge_key_of(&w->keys, edge);
    return is_keepable(w, edge) ? tare_map_get_n(&w->plan->by_key, (const char *)&key, sizeof key) : NULL;
}

static bool is_input(const struct walk *w, const struct tare_node *node) {
    return w->input[node->position];
}

/* True, once for each key: it was not in the set. A failed allocation is a status. */
static tare_status note(bool *is_new, struct tare_map *set, struct tare_arena *arena, const void *key, size_t size) {
    char *copy;
    *is_new = !tare_map_get_n(set, key, size);
    if (!*is_new) return TARE_OK;
    copy = tare_arena_extend(arena, key, size, 0, 1);
    return copy && tare_map_set_n(set, copy, size, copy) ? TARE_OK : TARE_NO_MEMORY;
}

/* Appends to the list of fed edges, or of those whose values are kept. */
static tare_status list_edge(struct walk *w, struct tare_edge **edges, struct tare_prefix_cache_value ***values,
                             size_t *count, struct tare_edge edge, struct tare_prefix_cache_value *value) {
    struct tare_edge *grown_edges = tare_arena_append(w->arena, *edges, *count, sizeof **edges);
    struct tare_prefix_cache_value **grown_values = tare_arena_append(w->arena, *values, *count, sizeof **values);
    if (!grown_edges || !grown_values) return TARE_NO_MEMORY;
    grown_edges[*count] = edge;
    grown_values[(*count)++] = value;
    *edges = grown_edges;
    *values = grown_values;
    return TARE_OK;
}

static tare_status feed(struct walk *w, struct tare_edge edge, struct tare_prefix_cache_value *value) {
    struct tare_prefix_cache_route *route = w->route;
    const struct {
        const struct tare_node *node;
        int64_t index;
    } key = { edge.node, edge.index };
    bool is_new;
    if (w->purpose == PLANNING) {
        value->last_user = w->number;
        if (w->plan->shares) w->plan->shares[value->owner] = w->plan->shares[w->number] = true;
        return TARE_OK;
    }
    TARE_TRY(note(&is_new, &w->listed, w->arena, &key, sizeof key));
    return is_new ? list_edge(w, &route->fed, &route->fed_values, &route->n_fed, edge, value) : TARE_OK;
}

static void push(struct walk *w, struct tare_node *node) {
    if (!node || node->dead || w->seen[node->position]) return;
    w->seen[node->position] = true;
    w->stack[w->depth++] = node;
}

/* Stops at a kept value, otherwise continues with the inputs of the edge's node. */
static tare_status visit(struct walk *w, struct tare_edge edge) {
    struct tare_prefix_cache_value *value;
    if (!edge.node || edge.node->dead) return TARE_OK;
    value = w->purpose == WHOLE || is_input(w, edge.node) ? NULL : value_of(w, edge);
    if (value && (w->purpose == PLANNING ? value->owner < w->number : value->tensors != NULL))
        return feed(w, edge, value);
    push(w, edge.node);
    return TARE_OK;
}

static tare_status walk_back(struct walk *w) {
    for (size_t i = 0; i < w->edges->n_outputs; i++)
        TARE_TRY(visit(w, w->edges->fetches[i]));
    while (w->depth) {
        struct tare_node *node = w->stack[--w->depth];
        if (is_input(w, node)) continue;
        for (size_t i = 0; i < node->n_inputs; i++)
            TARE_TRY(visit(w, node->inputs[i]));
        for (size_t i = 0; i < node->n_controls; i++)
            push(w, node->controls[i]);
    }
    return TARE_OK;
}

/* A rough measure of the time of an op: 0 for ops that take about as long as copying the value; 10 for loops, calls and
 * the decoding of strings; 1 for products and all others. */
static double cost_of(const struct tare_node *node) {
    static const unsigned CHEAP = TARE_OP_ELEMENTWISE | TARE_OP_MOVE | TARE_OP_CREATE | TARE_OP_ARITHMETIC |
                                  TARE_OP_REDUCE | TARE_OP_DISCRETE | TARE_OP_SHAPE_ONLY;
    const struct tare_op *row = node->def ? node->def->row : NULL;
    if (!row || row->flags & TARE_OP_CONTROL) return 10;
    if (row->flags & CHEAP) return 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_edge_dtype(node->inputs[i]) == TARE_DT_STRING) return 10;
    return 1;
}

static tare_status find_costly(struct walk *w) {
    struct tare_node **order;
    bool *costly = TARE_NEW_ARRAY(w->arena, bool, w->graph->n_nodes + 1);
    if (!costly) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, w->arena, w->graph));
    for (size_t i = 0; i < w->graph->n_nodes && order[i]; i++) {
        const struct tare_node *node = order[i];
        if (!w->keys.fed[node->position] || is_input(w, node)) continue;
        costly[node->position] = cost_of(node) > 0;
        for (size_t k = 0; k < node->n_inputs && !costly[node->position]; k++)
            costly[node->position] = node->inputs[k].node && costly[node->inputs[k].node->position];
    }
    w->costly = costly;
    return TARE_OK;
}

static tare_status begin(struct walk *w, const struct tare_graph_model *model) {
    w->graph = model->main;
    w->seen = TARE_NEW_ARRAY(w->arena, bool, w->graph->n_nodes + 1);
    w->stack = TARE_NEW_ARRAY(w->arena, struct tare_node *, w->graph->n_nodes + 1);
    w->input = TARE_NEW_ARRAY(w->arena, bool, w->graph->n_nodes + 1);
    if (!w->seen || !w->stack || !w->input) return TARE_NO_MEMORY;
    for (size_t i = 0; i < w->edges->n_feeds; i++)
        if (w->edges->feeds[i].node) w->input[w->edges->feeds[i].node->position] = true;
    TARE_TRY(tare_edge_keys_of(&w->keys, w->arena, model, w->edges->feeds, w->edges->n_feeds, w->number + 1));
    return w->plan->costly_only ? find_costly(w) : TARE_OK;
}

/* ---- planning ---- */

static tare_status own(struct walk *w, struct tare_edge edge) {
    struct tare_prefix_cache_plan *plan = w->plan;
    struct tare_prefix_cache_value *value;
    if (!is_keepable(w, edge) || value_of(w, edge)) return TARE_OK;
    value = TARE_NEW(&plan->arena, struct tare_prefix_cache_value);
    if (!value || !TARE_GROW(plan->values, plan->n_values, plan->capacity)) return TARE_NO_MEMORY;
    *value = (struct tare_prefix_cache_value){ .key = tare_edge_key_of(&w->keys, edge),
                                               .owner = w->number,
                                               .last_user = w->number };
    plan->values[plan->n_values++] = value;
    return tare_map_set_n(&plan->by_key, (const char *)&value->key, sizeof value->key, value) ? TARE_OK
                                                                                              : TARE_NO_MEMORY;
}

static double cost_of_seen(const struct walk *w) {
    double cost = 0;
    for (size_t i = 0; i < w->graph->n_nodes; i++)
        if (w->seen[i] && w->keys.fed[i] && !is_input(w, w->graph->nodes[i])) cost += cost_of(w->graph->nodes[i]);
    return cost;
}

/* After the walk that stops at values of earlier models. */
static tare_status measure_costs(struct walk *w) {
    const double rest = cost_of_seen(w);
    memset(w->seen, 0, w->graph->n_nodes * sizeof *w->seen);
    w->purpose = WHOLE;
    TARE_TRY(walk_back(w));
    w->plan->cost[w->number] = cost_of_seen(w);
    w->plan->saved[w->number] = w->plan->cost[w->number] - rest;
    return TARE_OK;
}

tare_status tare_prefix_cache_plan_add(struct tare_prefix_cache_plan *plan, const struct tare_graph_model *model,
                                       const struct tare_record_edges *edges, size_t number) {
    struct tare_arena scratch = { 0 };
    struct walk w = { .plan = plan, .edges = edges, .arena = &scratch, .number = number };
    tare_status status;
    TARE_CHECK(begin(&w, model));
    TARE_CHECK(walk_back(&w));
    for (size_t i = 0; i < w.graph->n_nodes; i++) {
        struct tare_node *node = w.graph->nodes[i];
        for (size_t k = 0; k < node->n_outputs && w.seen[i]; k++)
            TARE_CHECK(own(&w, (struct tare_edge){ node, (int)k }));
    }
    if (plan->shares) status = measure_costs(&w);
done:
    tare_arena_free(&scratch);
    return status;
}

/* ---- running ---- */

static tare_status leave(struct walk *w, struct tare_edge edge) {
    struct tare_prefix_cache_route *route = w->route;
    struct tare_prefix_cache_value *value = value_of(w, edge);
    bool is_new; /* no other node of the graph computes the same */
    if (!value || value->owner != w->number || value->last_user == w->number || value->refused) return TARE_OK;
    TARE_TRY(note(&is_new, &w->listed, w->arena, &value, sizeof(void *)));
    return is_new ? list_edge(w, &route->left, &route->left_values, &route->n_left, edge, value) : TARE_OK;
}

static int64_t count_nodes(const struct walk *w) {
    int64_t count = 0;
    for (size_t i = 0; i < w->graph->n_nodes; i++)
        count += w->seen[i] && w->keys.fed[i] && !is_input(w, w->graph->nodes[i]);
    return count;
}

static tare_status find_route(struct walk *w, const struct tare_graph_model *model) {
    struct tare_prefix_cache_route *out = w->route;
    TARE_TRY(begin(w, model));
    w->purpose = WHOLE;
    TARE_TRY(walk_back(w));
    out->whole = count_nodes(w);
    memset(w->seen, 0, w->graph->n_nodes * sizeof *w->seen);
    w->purpose = RUNNING;
    TARE_TRY(walk_back(w));
    out->nodes = count_nodes(w);
    for (size_t i = 0; i < w->graph->n_nodes; i++) {
        struct tare_node *node = w->graph->nodes[i];
        if (!w->seen[i]) continue;
        out->needs_inputs = out->needs_inputs || is_input(w, node);
        for (size_t k = 0; k < node->n_outputs && !is_input(w, node); k++)
            TARE_TRY(leave(w, (struct tare_edge){ node, (int)k }));
    }
    return TARE_OK;
}

tare_status tare_prefix_cache_route_of(struct tare_prefix_cache_route *out, struct tare_prefix_cache_plan *plan,
                                       const struct tare_graph_model *model, const struct tare_record_edges *edges,
                                       size_t number) {
    struct walk w = { .plan = plan, .edges = edges, .arena = &out->arena, .number = number, .route = out };
    *out = (struct tare_prefix_cache_route){ 0 };
    const tare_status status = find_route(&w, model);
    tare_map_free(&w.listed);
    return status;
}

void tare_prefix_cache_route_free(struct tare_prefix_cache_route *route) {
    tare_arena_free(&route->arena);
}

void tare_prefix_cache_value_drop(struct tare_prefix_cache_value *value) {
    tare_tensors_reset(value->tensors, value->n_tensors);
    tare_free(value->tensors);
    value->tensors = NULL;
    value->n_tensors = 0;
    value->bytes = 0;
}

void tare_prefix_cache_plan_free(struct tare_prefix_cache_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++)
        tare_prefix_cache_value_drop(plan->values[i]);
    tare_free(plan->values);
    tare_map_free(&plan->by_key);
    tare_arena_free(&plan->arena);
    memset(plan, 0, sizeof *plan);
}
