/* Walks a signature in the order of execution and collapses it: every value has at most one unit that it comes from,
 * because an op that reads values of several units is a unit itself. */
#include "eval/network.h"
#include "base/alloc.h"
#include "graph/calls.h"

#include <string.h>

enum { NOWHERE = -1, DEEPEST = 200, MOST_FOLLOWED = 12 };

struct walk {
    struct tare_network *network;
    struct tare_arena *arena;
    struct tare_map by_function; /* name of a function -> struct tare_map: name of a node -> its explanation */
    const struct tare_signature *signature;
    int calls, depth;
};

/* The units that the values of one graph come from, during one visit. */
struct visit {
    const struct tare_graph *graph;
    long *args;     /* one an argument */
    long **outputs; /* by node: one an output; NULL: not visited */
};

/* ---- units ---- */

static tare_status add_unit(long *index, struct walk *w, const struct tare_network_unit *unit) {
    struct tare_network *network = w->network;
    struct tare_network_unit *units;
    *index = NOWHERE;
    if (network->count == TARE_NETWORK_MOST) {
        network->cut = true;
        return TARE_OK;
    }
    units = tare_arena_append(w->arena, network->units, network->count, sizeof *units);
    if (!units) return TARE_NO_MEMORY;
    network->units = units;
    units = &units[network->count];
    *units = *unit;
    units->depth = w->depth;
    units->function = tare_arena_strdup(w->arena, unit->function);
    units->node = tare_arena_strdup(w->arena, unit->node);
    units->op = tare_arena_strdup(w->arena, unit->op);
    if (!units->function || !units->node || !units->op) return TARE_NO_MEMORY;
    *index = (long)network->count++;
    return TARE_OK;
}

static tare_status add_source(struct tare_network_unit *unit, struct tare_arena *arena, long source) {
    size_t at = 0;
    if (source == NOWHERE) return TARE_OK;
    while (at < unit->n_sources && unit->sources[at] < (size_t)source)
        at++;
    if (at < unit->n_sources && unit->sources[at] == (size_t)source) return TARE_OK;
    unit->sources = tare_arena_append(arena, unit->sources, unit->n_sources, sizeof *unit->sources);
    if (!unit->sources) return TARE_NO_MEMORY;
    memmove(unit->sources + at + 1, unit->sources + at, (unit->n_sources - at) * sizeof *unit->sources);
    unit->sources[at] = (size_t)source;
    unit->n_sources++;
    return TARE_OK;
}

/* Ops that a reader does not look for. */
static bool is_plain(const char *op) {
    static const char *const ops[] = { "Identity",        "IdentityN", "Reshape", "Squeeze",  "ExpandDims",
                                       "StopGradient",    "Cast",      "NoOp",    "Snapshot", "Pack",
                                       "PreventGradient", NULL };
    return tare_op_is_one_of(op, ops);
}

static tare_status follow(struct walk *w, long source, const char *op) {
    struct tare_network_unit *unit = &w->network->units[source];
    const char **followed;
    if (is_plain(op) || unit->n_followed == MOST_FOLLOWED) return TARE_OK;
    if (unit->n_followed && strcmp(unit->followed[unit->n_followed - 1], op) == 0) return TARE_OK;
    followed = tare_arena_append(w->arena, unit->followed, unit->n_followed, sizeof *followed);
    if (!followed) return TARE_NO_MEMORY;
    unit->followed = followed;
    unit->followed[unit->n_followed] = tare_arena_strdup(w->arena, op);
    return unit->followed[unit->n_followed++] ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- nodes ---- */

static bool sees_no_values(const char *op) {
    static const char *const ops[] = { "Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", NULL };
    return tare_op_is_one_of(op, ops);
}

static long source_of(const struct visit *v, struct tare_edge edge) {
    const long *outputs;
    if (!edge.node) return NOWHERE;
    if (tare_node_is_arg(edge.node)) return v->args[edge.node->position];
    outputs = v->outputs[edge.node->position];
    return outputs && edge.index >= 0 && (size_t)edge.index < edge.node->n_outputs ? outputs[edge.index] : NOWHERE;
}

/* The unit that the inputs come from; *several if there is more than one. */
static long source_of_inputs(bool *several, const struct visit *v, const struct tare_node *node) {
    long found = NOWHERE;
    *several = false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const long source = source_of(v, node->inputs[i]);
        *several |= source != NOWHERE && found != NOWHERE && source != found;
        if (found == NOWHERE) found = source;
    }
    return found;
}

static const struct tare_explanation *explanation_of(const struct walk *w, const struct tare_node *node) {
    const struct tare_map *nodes = tare_map_get(&w->by_function, node->graph->name);
    return nodes ? tare_map_get(nodes, node->name) : NULL;
}

static void set_outputs(const struct tare_node *node, long *outputs, long source) {
    for (size_t i = 0; i < node->n_outputs; i++)
        outputs[i] = source;
}

/* A unit of the node, after those that it reads. */
static tare_status add_node(long *index, struct walk *w, const struct visit *v, const struct tare_node *node,
                            enum tare_network_kind kind) {
    struct tare_network_unit unit = { .kind = kind,
                                      .function = node->graph->name,
                                      .node = node->name,
                                      .op = node->op,
                                      .layer = explanation_of(w, node) };
    if (unit.layer) unit.kind = TARE_NETWORK_LAYER;
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(add_source(&unit, w->arena, source_of(v, node->inputs[i])));
    return add_unit(index, w, &unit);
}

static tare_status visit_function(long *returns, struct walk *w, const struct visit *caller,
                                  const struct tare_node *call, const struct tare_call_site *site,
                                  const struct tare_graph *callee, long around);

/* A plain call is replaced by its function; a loop or branches are a unit that their layers follow. */
static tare_status visit_call(long *outputs, struct walk *w, const struct visit *v, const struct tare_node *node,
                              const struct tare_call_site *site) {
    long unit = NOWHERE;
    if (site->kind == TARE_CALL_PLAIN || site->kind == TARE_CALL_TPU)
        return visit_function(outputs, w, v, node, site, site->callees[0], NOWHERE);
    TARE_TRY(add_node(&unit, w, v, node, TARE_NETWORK_CALL));
    set_outputs(node, outputs, unit);
    if (site->kind == TARE_CALL_OTHER) return TARE_OK;
    w->depth++;
    for (size_t i = site->kind == TARE_CALL_LOOP; i < site->n_callees; i++)
        TARE_TRY(visit_function(NULL, w, v, node, site, site->callees[i], unit));
    w->depth--;
    return TARE_OK;
}

static tare_status visit_node(struct walk *w, const struct visit *v, const struct tare_node *node) {
    struct tare_call_site site;
    bool several;
    const long source = source_of_inputs(&several, v, node);
    long *outputs = v->outputs[node->position] = TARE_NEW_ARRAY(w->arena, long, node->n_outputs + 1);
    long unit = source;
    if (!outputs) return TARE_NO_MEMORY;
    TARE_TRY(tare_call_site(&site, w->arena, node));
    if (site.kind != TARE_CALL_NONE) return visit_call(outputs, w, v, node, &site);
    if (sees_no_values(node->op))
        unit = NOWHERE;
    else if (explanation_of(w, node) || several)
        TARE_TRY(add_node(&unit, w, v, node, TARE_NETWORK_MERGE));
    else if (source != NOWHERE && node->n_outputs)
        TARE_TRY(follow(w, source, node->op));
    set_outputs(node, outputs, unit);
    return TARE_OK;
}

/* Only nodes that a result depends on: `needed` marks them by position. */
static tare_status visit_nodes(struct walk *w, struct visit *v, const bool *needed) {
    struct tare_node **order;
    TARE_TRY(tare_graph_order(&order, w->arena, v->graph));
    for (size_t i = 0; i < v->graph->n_nodes; i++) {
        if (w->network->cut) return TARE_OK;
        if (needed[order[i]->position]) TARE_TRY(visit_node(w, v, order[i]));
    }
    return TARE_OK;
}

static bool visit_begin(struct visit *v, bool **needed, struct walk *w, const struct tare_graph *graph) {
    *v = (struct visit){ graph, TARE_NEW_ARRAY(w->arena, long, graph->n_args + 1),
                         TARE_NEW_ARRAY(w->arena, long *, graph->n_nodes + 1) };
    *needed = TARE_NEW_ARRAY(w->arena, bool, graph->n_nodes + 1);
    for (size_t i = 0; v->args && i < graph->n_args; i++)
        v->args[i] = NOWHERE;
    return v->args && v->outputs && *needed;
}

static tare_status need(bool *needed, struct tare_arena *arena, const struct tare_edge *edges, size_t count,
                        const struct tare_graph *graph) {
    const struct tare_node **stack = TARE_NEW_ARRAY(arena, const struct tare_node *, graph->n_nodes + count + 1);
    size_t top = 0;
    if (!stack) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *node = edges[i].node;
        if (!node || tare_node_is_arg(node) || needed[node->position]) continue;
        needed[node->position] = true;
        stack[top++] = node;
    }
    while (top) {
        const struct tare_node *node = stack[--top];
        for (size_t i = 0; i < node->n_inputs; i++) {
            const struct tare_node *input = node->inputs[i].node;
            if (!input || tare_node_is_arg(input) || needed[input->position]) continue;
            needed[input->position] = true;
            stack[top++] = input;
        }
    }
    return TARE_OK;
}

static tare_status visit_function(long *returns, struct walk *w, const struct visit *caller,
                                  const struct tare_node *call, const struct tare_call_site *site,
                                  const struct tare_graph *callee, long around) {
    struct tare_edge *edges = TARE_NEW_ARRAY(w->arena, struct tare_edge, callee->n_returns + 1);
    struct visit v;
    bool *needed;
    if (!edges || !visit_begin(&v, &needed, w, callee)) return TARE_NO_MEMORY;
    for (size_t i = 0; returns && i < call->n_outputs; i++)
        returns[i] = NOWHERE;
    if (w->calls == DEEPEST) {
        w->network->cut = true;
        return TARE_OK;
    }
    for (size_t i = 0; i < callee->n_returns; i++)
        edges[i] = callee->returns[i].edge;
    for (size_t i = 0; i < site->n_args && i < callee->n_args && site->first + i < call->n_inputs; i++) {
        const long source = source_of(caller, call->inputs[site->first + i]);
        v.args[i] = source == NOWHERE ? NOWHERE : around == NOWHERE ? source : around;
    }
    TARE_TRY(need(needed, w->arena, edges, callee->n_returns, callee));
    w->calls++;
    TARE_TRY(visit_nodes(w, &v, needed));
    w->calls--;
    for (size_t i = 0; returns && i < callee->n_returns && i < call->n_outputs; i++)
        returns[i] = source_of(&v, edges[i]);
    return TARE_OK;
}

/* ---- the signature ---- */

static tare_status index_layers(struct walk *w, const struct tare_explanation_list *layers) {
    for (size_t i = 0; i < layers->count; i++) {
        struct tare_explanation *layer = &layers->items[i];
        struct tare_map *nodes = tare_map_get(&w->by_function, layer->function);
        if (!nodes) {
            nodes = TARE_NEW(w->arena, struct tare_map);
            if (!nodes || !tare_map_set(&w->by_function, layer->function, nodes)) return TARE_NO_MEMORY;
        }
        if (!tare_map_set(nodes, layer->node, layer)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static void free_index(struct walk *w, const struct tare_explanation_list *layers) {
    for (size_t i = 0; i < layers->count; i++) {
        struct tare_map *nodes = tare_map_get(&w->by_function, layers->items[i].function);
        if (nodes) tare_map_free(nodes);
    }
    tare_map_free(&w->by_function);
}

static tare_status walk_signature(struct walk *w, const struct tare_graph *graph) {
    const struct tare_signature *signature = w->signature;
    struct tare_edge *edges = TARE_NEW_ARRAY(w->arena, struct tare_edge, signature->n_outputs + 1);
    struct visit v;
    bool *needed;
    if (!edges || !visit_begin(&v, &needed, w, graph)) return TARE_NO_MEMORY;
    for (size_t i = 0; i < signature->n_outputs; i++)
        edges[i] = signature->outputs[i].edge;
    TARE_TRY(need(needed, w->arena, edges, signature->n_outputs, graph));
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_node *node = signature->inputs[i].edge.node;
        const struct tare_network_unit unit = {
            .kind = TARE_NETWORK_INPUT, .function = graph->name, .node = signature->inputs[i].key, .op = ""
        };
        long index;
        if (!node || v.outputs[node->position]) continue;
        TARE_TRY(add_unit(&index, w, &unit));
        v.outputs[node->position] = TARE_NEW_ARRAY(w->arena, long, node->n_outputs + 1);
        if (!v.outputs[node->position]) return TARE_NO_MEMORY;
        set_outputs(node, v.outputs[node->position], index);
        needed[node->position] = false; /* has its unit */
    }
    TARE_TRY(visit_nodes(w, &v, needed));
    for (size_t i = 0; i < signature->n_outputs; i++) {
        struct tare_network_unit unit = {
            .kind = TARE_NETWORK_OUTPUT, .function = graph->name, .node = signature->outputs[i].key, .op = ""
        };
        long index;
        TARE_TRY(add_source(&unit, w->arena, source_of(&v, edges[i])));
        TARE_TRY(add_unit(&index, w, &unit));
    }
    return TARE_OK;
}

tare_status tare_network_make(struct tare_network *out, struct tare_arena *arena, const struct tare_graph_model *model,
                              const struct tare_signature *signature, const struct tare_explanation_list *layers) {
    struct walk walk = { .network = out, .arena = arena, .signature = signature };
    tare_status status = index_layers(&walk, layers);
    *out = (struct tare_network){ 0 };
    if (status == TARE_OK) status = walk_signature(&walk, model->main);
    free_index(&walk, layers);
    return status;
}

void tare_network_add_cost(struct tare_network *network, const char *node, double seconds) {
    struct tare_network_unit *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < network->count; i++) {
        struct tare_network_unit *unit = &network->units[i];
        const size_t size = strlen(unit->node);
        if (!*unit->op || size < longest || strncmp(node, unit->node, size) != 0) continue;
        if (node[size] && node[size] != '/') continue;
        if (best && size == longest) continue; /* the first call of a function has the time of all */
        best = unit;
        longest = size;
    }
    if (best) best->seconds += seconds;
}
