/* Data-flow analysis over the whole model.
 *
 * Forward: where values come from and how large their mean is (tpu/exact/facts.h).
 *
 * Backward: from every use that needs exact values (tpu/exact/kinds.c, tpu/exact/results.c), along edges, with a
 * worklist. A slot is an edge, or the return of a function, which is an edge whose index is negative: a return may have
 * to stay exact for one of its callers although nothing in the function needs it. Every slot enters the worklist once,
 * so the cost is linear in the number of edges and call sites. Kinds that reach further back come first.
 *
 * Forward again: tpu/exact/forward.c. */
#include "graph/graphs.h"
#include "tpu/exact/internal.h"
#include <string.h>

/* Float values that the bfloat16 pass would round, and lists that may contain them. */
bool tare_exact_carries_floats(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF || dtype == TARE_DT_VARIANT;
}

/* ---- views ---- */

struct tare_exact_view *tare_exact_view_of(const struct tare_exact_values *v, const struct tare_graph *graph) {
    return tare_graph_table_get(&v->by_graph, graph);
}

static tare_status add_view(struct tare_exact_values *v, struct tare_graph *graph) {
    struct tare_exact_view *view = &v->views[v->n_views++];
    view->graph = graph;
    if (graph == v->model->main) TARE_TRY(tare_model_served_nodes(&view->served, v->arena, v->model));
    return tare_graph_table_set(&v->by_graph, graph, view) ? TARE_OK : TARE_NO_MEMORY;
}

bool tare_exact_is_loop_variable(const struct tare_exact_view *view, struct tare_edge edge) {
    if (!tare_node_is_arg(edge.node)) return false;
    for (const struct tare_exact_caller *caller = view->callers; caller; caller = caller->next)
        if (caller->site.kind == TARE_CALL_LOOP && caller->site.callees[1] == view->graph) return true;
    return false;
}

bool tare_exact_counts(const struct tare_exact_view *view, size_t i) {
    return !view->graph->nodes[i]->dead && (!view->served || view->served[i]);
}

static tare_status add_call(struct tare_exact_values *v, struct tare_node *node) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    if (site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER) return TARE_OK;
    for (size_t c = 0; c < site.n_callees; c++) {
        struct tare_exact_view *callee = tare_exact_view_of(v, site.callees[c]);
        struct tare_exact_caller *caller = TARE_NEW(v->arena, struct tare_exact_caller);
        if (!caller) return TARE_NO_MEMORY;
        *caller = (struct tare_exact_caller){ node, site, callee->callers };
        callee->callers = caller;
    }
    return TARE_OK;
}

static tare_status build_views(struct tare_exact_values *v) {
    v->views = TARE_NEW_ARRAY(v->arena, struct tare_exact_view, v->model->n_functions + 1);
    if (!v->views) return TARE_NO_MEMORY;
    for (size_t i = 0; i <= v->model->n_functions; i++)
        TARE_TRY(add_view(v, tare_model_graph(v->model, i)));
    for (size_t i = 0; i < v->options->n_converted; i++) {
        struct tare_exact_view *view = tare_exact_view_of(v, v->options->converted[i]);
        if (view) view->converted = true;
    }
    for (size_t i = 0; i < v->n_views; i++)
        for (size_t k = 0; k < v->views[i].graph->n_nodes; k++)
            if (tare_exact_counts(&v->views[i], k)) TARE_TRY(add_call(v, v->views[i].graph->nodes[k]));
    return TARE_OK;
}

/* ---- slots ---- */

/* The key includes its padding. */
static void make_key(struct tare_edge *key, const void *node, int index) {
    memset(key, 0, sizeof *key);
    key->node = (struct tare_node *)(uintptr_t)node;
    key->index = index;
}

struct tare_exact_slot *tare_exact_find(const struct tare_map *map, const void *node, int index) {
    struct tare_edge key;
    make_key(&key, node, index);
    return tare_map_get_n(map, (const char *)&key, sizeof key);
}

tare_status tare_exact_add(struct tare_exact_slot **added, struct tare_exact_values *v, struct tare_map *map,
                           const void *node, int index, struct tare_exact_why why) {
    struct tare_exact_slot *slot;
    *added = NULL;
    if (!why.reason) return TARE_NO_MEMORY;
    if (tare_exact_find(map, node, index)) return TARE_OK;
    slot = TARE_NEW(v->arena, struct tare_exact_slot);
    if (!slot) return TARE_NO_MEMORY;
    make_key(&slot->edge, node, index);
    slot->why = why;
    *added = slot;
    return tare_map_set_n(map, (const char *)&slot->edge, sizeof slot->edge, slot) ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_exact_mark(struct tare_exact_values *v, const void *node, int index, struct tare_exact_why why) {
    struct tare_exact_slot *slot;
    return tare_exact_add(&slot, v, &v->by_edge, node, index, why);
}

static tare_status push(struct tare_exact_values *v, const void *node, int index, struct tare_exact_why why) {
    struct tare_exact_slot *slot;
    TARE_TRY(tare_exact_add(&slot, v, &v->by_edge, node, index, why));
    if (!slot) return TARE_OK;
    slot->next = v->worklist;
    v->worklist = slot;
    return TARE_OK;
}

tare_status tare_exact_keep(struct tare_exact_values *v, const struct tare_node *node, struct tare_exact_why why) {
    struct tare_exact_slot *slot;
    return tare_exact_add(&slot, v, &v->by_node, node, 0, why);
}

/* ---- where weaker levels stop ---- */

static size_t users_of(struct tare_edge edge) {
    size_t users = 0;
    for (const struct tare_use *use = tare_node_first_use(edge.node); use; use = tare_node_next_use(use))
        users += !use->user->dead && use->user->inputs[use->input].index == edge.index;
    return users;
}

/* Arithmetic with a constant (a bias, a scale), and moves: fused with the product before it. */
static bool continues_product(const struct tare_exact_values *v, const struct tare_node *node) {
    if (tare_node_has_flag(node, TARE_OP_MOVE)) return true;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!tare_value_fact(v->facts, node->inputs[i])->varies &&
            tare_exact_carries_floats(tare_edge_dtype(node->inputs[i])))
            return true;
    return false;
}

/* A sum of two computed values that others use as well. */
static bool is_residual(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    return (tare_node_is(node, "AddV2") || tare_node_is(node, "Add")) && users_of(edge) > 1 &&
           tare_value_fact(v->facts, node->inputs[0])->computed && tare_value_fact(v->facts, node->inputs[1])->computed;
}

static bool is_lookup(const struct tare_node *node) {
    return strncmp(node->op, "Gather", strlen("Gather")) == 0 || tare_node_is(node, "ResourceGather");
}

static bool stops(const struct tare_exact_values *v, struct tare_edge edge, enum tare_exact_level level) {
    const struct tare_value_fact *fact = tare_value_fact(v->facts, edge);
    if (level < TARE_EXACT_ARITHMETIC || tare_node_is_arg(edge.node)) return false;
    if (tare_node_has_flag(edge.node, TARE_OP_PRODUCT) && fact->varies) return true;
    if (fact->large && (!fact->varies || is_lookup(edge.node))) return true; /* weights and tables */
    if (!fact->computed || fact->heavy || fact->wild) return false;
    if (level == TARE_EXACT_OUTPUT) return is_residual(v, edge);
    return level == TARE_EXACT_LOCAL && !continues_product(v, edge.node);
}

tare_status tare_exact_push(struct tare_exact_values *v, struct tare_edge edge, struct tare_exact_why why) {
    const int dtype = edge.node ? tare_edge_dtype(edge) : TARE_DT_INVALID;
    if (!tare_exact_carries_floats(dtype) || tare_node_is(edge.node, "Const") || stops(v, edge, why.level))
        return TARE_OK;
    v->has_lists |= dtype == TARE_DT_VARIANT;
    return push(v, edge.node, edge.index, why);
}

static tare_status push_return(struct tare_exact_values *v, const struct tare_graph *graph, size_t i,
                               struct tare_exact_why why) {
    return i < graph->n_returns ? push(v, graph, tare_exact_return_index(i), why) : TARE_OK;
}

static tare_status push_arg(struct tare_exact_values *v, const struct tare_graph *graph, size_t i,
                            struct tare_exact_why why) {
    return i < graph->n_args ? tare_exact_push(v, (struct tare_edge){ graph->args[i], 0 }, why) : TARE_OK;
}

/* ---- backward ---- */

/* All functions of a loop or branch agree in dtypes, and so do a loop's arguments and returns. */
static tare_status spread_argument(struct tare_exact_values *v, const struct tare_exact_caller *caller, size_t i,
                                   struct tare_exact_why why) {
    const struct tare_call_site *site = &caller->site;
    if (i < site->n_args) TARE_TRY(tare_exact_push(v, caller->node->inputs[site->first + i], why));
    for (size_t c = 0; c < site->n_callees; c++)
        TARE_TRY(push_arg(v, site->callees[c], i, why));
    if (site->kind == TARE_CALL_LOOP) TARE_TRY(push_return(v, site->callees[1], i, why));
    return TARE_OK;
}

static tare_status spread_return(struct tare_exact_values *v, const struct tare_call_site *site, size_t i,
                                 struct tare_exact_why why) {
    if (site->kind == TARE_CALL_LOOP) {
        TARE_TRY(push_return(v, site->callees[1], i, why));
        return push_arg(v, site->callees[1], i, why);
    }
    for (size_t c = 0; c < site->n_callees; c++)
        TARE_TRY(push_return(v, site->callees[c], i, why));
    return TARE_OK;
}

static tare_status follow_return(struct tare_exact_values *v, const struct tare_graph *graph, size_t i,
                                 struct tare_exact_why why) {
    for (const struct tare_exact_caller *caller = tare_exact_view_of(v, graph)->callers; caller; caller = caller->next)
        if (caller->site.kind != TARE_CALL_LOOP || caller->site.callees[1] == graph)
            TARE_TRY(spread_return(v, &caller->site, i, why));
    return tare_exact_push(v, graph->returns[i].edge, why);
}

static bool is_softmax(const struct tare_node *node) {
    return tare_node_is(node, "Softmax") || tare_is_written_softmax(node);
}

/* Softmax whose logarithm is taken: log-probabilities. */
static bool is_log_softmax(const struct tare_node *node) {
    enum { MOST_STEPS = 3 };
    return is_softmax(node) && tare_exact_has_logarithm(node, MOST_STEPS);
}

/* Operands of the product before a value: those of inputs and constants, where rounding them would change it as much as
 * rounding the value itself, and the logits before probabilities, which have their order. Where its products are exact
 * as well, those of linear functions and unit vectors, too. */
static bool passes(const struct tare_exact_values *v, const struct tare_node *node, size_t i,
                   enum tare_exact_level level) {
    if (tare_passes_values(node) || level >= TARE_EXACT_ARITHMETIC) return true;
    if (level == TARE_EXACT_RESULT && tare_node_has_flag(node, TARE_OP_PROBABILITY)) return true;
    if (!tare_value_fact(v->facts, node->inputs[i])->computed) return true;
    return level == TARE_EXACT_PRODUCT &&
           (tare_node_is(node, "LogSoftmax") || is_log_softmax(node) || tare_exact_is_weighted_mean(v, node) ||
            tare_exact_is_small_matrix(v, node) || tare_fact_is_linear(tare_value_fact(v->facts, node->inputs[i])) ||
            tare_exact_is_unit(v, node->inputs[i]));
}

/* A product with a small matrix after one without: coordinates that a network computes. */
static bool starts_projection(const struct tare_exact_values *v, const struct tare_node *node) {
    if (!tare_exact_is_small_matrix(v, node)) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_value_fact *fact = tare_value_fact(v->facts, node->inputs[i]);
        if (fact->varies && fact->computed && fact->nonlinear)
            return !tare_exact_is_small_matrix(v, tare_exact_before_constants(v, node->inputs[i]).node);
    }
    return false;
}

/* A distance x² + c² − 2 x·c is exact for an x that was rounded before both terms, and so are a
 * mean by probabilities for logits that were, and a projection for coordinates that were. */
static enum tare_exact_level level_before(const struct tare_exact_values *v, const struct tare_node *node,
                                          enum tare_exact_level level) {
    if (level == TARE_EXACT_PRODUCT && tare_node_has_flag(node, TARE_OP_REDUCE) &&
        !tare_node_is_arg(node->inputs[0].node) && tare_exact_is_square(node->inputs[0].node))
        return TARE_EXACT_ARITHMETIC;
    if (level == TARE_EXACT_PRODUCT && ((is_softmax(node) && !is_log_softmax(node)) || starts_projection(v, node)))
        return TARE_EXACT_ARITHMETIC;
    return level;
}

static tare_status follow_edge(struct tare_exact_values *v, struct tare_edge edge, struct tare_exact_why why) {
    struct tare_call_site site;
    if (tare_node_is_arg(edge.node)) {
        for (const struct tare_exact_caller *caller = tare_exact_view_of(v, edge.node->graph)->callers; caller;
             caller = caller->next)
            TARE_TRY(spread_argument(v, caller, edge.node->position, why));
        return TARE_OK;
    }
    TARE_TRY(tare_call_site(&site, v->arena, edge.node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER)
        return spread_return(v, &site, (size_t)edge.index, why);
    TARE_TRY(tare_exact_keep(v, edge.node, why));
    why.level = level_before(v, edge.node, why.level);
    for (size_t i = 0; i < edge.node->n_inputs; i++)
        if (passes(v, edge.node, i, why.level)) TARE_TRY(tare_exact_push(v, edge.node->inputs[i], why));
    return TARE_OK;
}

static tare_status follow_all(struct tare_exact_values *v) {
    while (v->worklist) {
        struct tare_exact_slot *slot = v->worklist;
        v->worklist = slot->next;
        if (slot->edge.index < 0)
            TARE_TRY(follow_return(v, (const struct tare_graph *)(const void *)slot->edge.node,
                                   (size_t)(-1 - slot->edge.index), slot->why));
        else
            TARE_TRY(follow_edge(v, slot->edge, slot->why));
    }
    return TARE_OK;
}

/* ---- seeds ---- */

const char *tare_exact_reason(struct tare_exact_values *v, const char *what, const struct tare_node *node) {
    return tare_arena_printf(v->arena, "%s (%s '%s' in %s)", what, node->op, node->name,
                             node->graph->name[0] ? node->graph->name : "the main graph");
}

tare_status tare_exact_push_inputs(struct tare_exact_values *v, const struct tare_node *node, const char *what,
                                   enum tare_exact_level level) {
    const struct tare_exact_why why = { tare_exact_reason(v, what, node), level };
    TARE_TRY(tare_exact_keep(v, node, why));
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(tare_exact_push(v, node->inputs[i], why));
    return TARE_OK;
}

static tare_status seed_node(struct tare_exact_values *v, const struct tare_exact_view *view,
                             const struct tare_node *node, enum tare_exact_level level) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER) return TARE_OK;
    for (const struct tare_exact_kind *kind = tare_exact_kinds; kind->reason; kind++)
        if (kind->level == level && (kind->always || !v->options->rounds_magnitudes) && kind->applies(v, view, node))
            return tare_exact_push_inputs(v, node, kind->reason, level);
    return TARE_OK;
}

static tare_status seed_arguments(struct tare_exact_values *v, const struct tare_exact_view *view) {
    for (size_t i = 0; i < view->graph->n_args; i++) {
        struct tare_node *arg = view->graph->args[i];
        if (tare_exact_is_found(v, view, arg))
            TARE_TRY(push_arg(v, view->graph, i,
                              (struct tare_exact_why){ tare_exact_reason(v, "changes an output, by the check", arg),
                                                       TARE_EXACT_RESULT }));
    }
    return TARE_OK;
}

static tare_status seed_level(struct tare_exact_values *v, enum tare_exact_level level) {
    for (size_t g = 0; g < v->n_views && level == TARE_EXACT_RESULT; g++)
        TARE_TRY(seed_arguments(v, &v->views[g]));
    for (size_t g = 0; g < v->n_views; g++)
        for (size_t i = 0; i < v->views[g].graph->n_nodes; i++)
            if (tare_exact_counts(&v->views[g], i))
                TARE_TRY(seed_node(v, &v->views[g], v->views[g].graph->nodes[i], level));
    if (level == TARE_EXACT_PRODUCT && !v->options->rounds_magnitudes) TARE_TRY(tare_exact_linear_outputs(v));
    if (level == TARE_EXACT_RESULT && !v->options->rounds_outputs) TARE_TRY(tare_exact_probabilities(v));
    if (level == TARE_EXACT_RESULT && !v->options->rounds_magnitudes) TARE_TRY(tare_exact_large_outputs(v));
    if (level == TARE_EXACT_ARITHMETIC && !v->options->rounds_magnitudes) TARE_TRY(tare_exact_loop_states(v));
    if (level == TARE_EXACT_OUTPUT && !v->options->rounds_magnitudes) TARE_TRY(tare_exact_outputs(v));
    return follow_all(v);
}

/* ---- all of it ---- */

static tare_status analyse(struct tare_exact_values *v) {
    TARE_TRY(build_views(v));
    TARE_TRY(tare_value_facts_find(&v->facts, v->arena, v->model));
    for (size_t g = 0; g < v->n_views; g++)
        TARE_TRY(tare_graph_index_uses(v->views[g].graph)); /* tare_is_zero_point, users_of */
    for (int level = 0; level < TARE_EXACT_LEVELS; level++)
        TARE_TRY(seed_level(v, (enum tare_exact_level)level));
    if (v->options->rounds_magnitudes) return TARE_OK;
    TARE_TRY(tare_exact_limits(v));
    TARE_TRY(tare_exact_forward(v));
    return tare_exact_boundaries(v);
}

tare_status tare_exact_values_find(struct tare_exact_values **out, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_exact_options *options) {
    struct tare_exact_values *v = TARE_NEW(arena, struct tare_exact_values);
    tare_status status;
    if (!v) return TARE_NO_MEMORY;
    v->arena = arena;
    v->model = model;
    v->options = options;
    status = analyse(v);
    tare_graph_table_free(&v->by_graph);
    tare_map_free(&v->final);
    tare_map_free(&v->terms);
    tare_value_facts_free(v->facts);
    v->facts = NULL;
    if (status != TARE_OK) tare_exact_values_free(v);
    if (status == TARE_OK) *out = v;
    return status;
}

void tare_exact_values_free(struct tare_exact_values *v) {
    if (!v) return;
    tare_map_free(&v->by_edge);
    tare_map_free(&v->by_node);
    tare_map_free(&v->limited);
}

static const char *reason_in(const struct tare_map *map, const void *node, int index) {
    const struct tare_exact_slot *slot = tare_exact_find(map, node, index);
    return slot ? slot->why.reason : NULL;
}

const char *tare_exact_edge(const struct tare_exact_values *values, struct tare_edge edge) {
    return reason_in(&values->by_edge, edge.node, edge.index);
}

const char *tare_exact_return(const struct tare_exact_values *values, const struct tare_graph *graph, size_t i) {
    return reason_in(&values->by_edge, graph, tare_exact_return_index(i));
}

const char *tare_exact_node(const struct tare_exact_values *values, const struct tare_node *node) {
    return reason_in(&values->by_node, node, 0);
}

bool tare_exact_needs_limits(const struct tare_exact_values *values, struct tare_edge edge) {
    return tare_exact_find(&values->limited, edge.node, edge.index) != NULL;
}

bool tare_exact_has_lists(const struct tare_exact_values *values) {
    return values->has_lists;
}
