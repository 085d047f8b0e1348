/* A fixed point over call sites: each argument is unbound, bound to one variable, or bound to several. A function is
 * visited again only when one of its arguments changed, so that a chain of calls costs its length. */
#include "graph/bindings.h"
#include "base/alloc.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "graph/graphs.h"
#include "graph/object_index.h"

#include <string.h>

/* One call of functions. */
struct call {
    const struct tare_node *node;
    struct tare_call_site site;
    struct call *next; /* in the same graph */
};

/* A graph whose calls pass variables on. */
struct caller {
    struct call *calls, **last;
    struct caller *next; /* to be visited after this one */
    bool is_waiting;
};

struct tare_bindings {
    struct tare_arena arena;
    struct tare_graph_table callers; /* function -> struct caller, while the calls are traced */
    struct caller *first_waiting, **last_waiting;
    struct tare_map state;   /* key: the bytes of an argument's node pointer -> struct binding */
    struct tare_map by_node; /* key: the bytes of a main-graph node pointer -> struct tare_variable */
    struct tare_map mixed;   /* key: the bytes of a variable's pointer -> struct mixed */
    struct capture *captures;
};

struct binding {
    struct tare_node *arg;
    struct tare_variable *variable; /* NULL: unbound so far */
    bool several;
};

/* An argument that the object graph binds to a variable. */
struct capture {
    const struct binding *binding;
    struct tare_variable *variable;
    struct capture *next;
};

struct mixed {
    const struct tare_variable *variable;
};

static struct binding *binding_of(struct tare_bindings *bindings, struct tare_node *arg) {
    struct binding *binding = tare_map_get_n(&bindings->state, (const char *)&arg, sizeof arg);
    if (binding) return binding;
    binding = TARE_NEW(&bindings->arena, struct binding);
    if (!binding) return NULL;
    binding->arg = arg;
    /* the key's bytes must outlive the map: they are the entry's own first member */
    if (!tare_map_set_n(&bindings->state, (const char *)&binding->arg, sizeof binding->arg, binding)) return NULL;
    return binding;
}

static struct tare_edge through_identity(struct tare_edge edge) {
    while (edge.node && edge.node->n_inputs == 1 &&
           (strcmp(edge.node->op, "Identity") == 0 || strcmp(edge.node->op, "TPUReplicatedInput") == 0))
        edge = edge.node->inputs[0];
    return edge;
}

struct tare_variable *tare_bindings_variable(const struct tare_bindings *bindings, struct tare_edge edge,
                                             bool *several) {
    const struct binding *binding;
    if (several) *several = false;
    edge = through_identity(edge);
    if (!edge.node) return NULL;
    if (!tare_node_is_arg(edge.node))
        return tare_map_get_n(&bindings->by_node, (const char *)&edge.node, sizeof edge.node);
    binding = tare_map_get_n(&bindings->state, (const char *)&edge.node, sizeof edge.node);
    if (!binding) return NULL;
    if (several) *several = binding->several;
    return binding->several ? NULL : binding->variable;
}

/* Meets what is known of an argument with what one more call site passes; true when that changed it. */
static bool meet(struct binding *binding, struct tare_variable *variable, bool several) {
    if (binding->several) return false;
    if (several || (variable && binding->variable && binding->variable != variable)) return binding->several = true;
    if (!variable || binding->variable == variable) return false;
    binding->variable = variable;
    return true;
}

/* ---- calls ---- */

static tare_status add_calls(struct caller *caller, struct tare_arena *arena, const struct tare_graph *graph) {
    caller->last = &caller->calls;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_call_site site;
        if (graph->nodes[i]->dead) continue;
        TARE_TRY(tare_call_site(&site, arena, graph->nodes[i]));
        if (!site.n_callees || !site.n_args) continue;
        struct call *call = TARE_NEW(arena, struct call);
        if (!call) return TARE_NO_MEMORY;
        *call = (struct call){ graph->nodes[i], site, NULL };
        *caller->last = call;
        caller->last = &call->next;
    }
    return TARE_OK;
}

static tare_status add_caller(struct tare_bindings *bindings, const struct tare_graph *graph) {
    struct caller *caller = TARE_NEW(&bindings->arena, struct caller);
    if (!caller) return TARE_NO_MEMORY;
    TARE_TRY(add_calls(caller, &bindings->arena, graph));
    if (!tare_graph_table_set(&bindings->callers, graph, caller)) return TARE_NO_MEMORY;
    caller->is_waiting = true;
    *bindings->last_waiting = caller;
    bindings->last_waiting = &caller->next;
    return TARE_OK;
}

static void wait_again(struct tare_bindings *bindings, const struct tare_graph *callee) {
    struct caller *caller = tare_graph_table_get(&bindings->callers, callee);
    if (!caller || caller->is_waiting) return;
    caller->is_waiting = true;
    caller->next = NULL;
    *bindings->last_waiting = caller;
    bindings->last_waiting = &caller->next;
}

/* A handle that is none of an argument's and none of a variable's own: a result of a call or of a Switch, say. */
static bool is_unknown(struct tare_edge edge) {
    edge = through_identity(edge);
    return edge.node && !tare_node_is_arg(edge.node) && tare_edge_dtype(edge) == TARE_DT_RESOURCE;
}

/* Adds to *changed. */
static tare_status pass_to(bool *changed, struct tare_bindings *bindings, struct tare_edge edge,
                           struct tare_node *arg) {
    bool several;
    struct tare_variable *variable = tare_bindings_variable(bindings, edge, &several);
    struct binding *binding;
    several |= !variable && is_unknown(edge);
    if (!variable && !several) return TARE_OK;
    binding = binding_of(bindings, arg);
    if (!binding) return TARE_NO_MEMORY;
    *changed |= meet(binding, variable, several);
    return TARE_OK;
}

/* The body of a loop may pass its variables on in another order. */
static tare_status pass_returns(bool *changed, struct tare_bindings *bindings, const struct tare_call_site *site) {
    const struct tare_graph *body = site->callees[site->n_callees - 1];
    for (size_t c = 0; c < site->n_callees; c++)
        for (size_t i = 0; i < body->n_returns && i < site->callees[c]->n_args; i++)
            if (body->returns[i].dtype == TARE_DT_RESOURCE)
                TARE_TRY(pass_to(changed, bindings, body->returns[i].edge, site->callees[c]->args[i]));
    return TARE_OK;
}

static tare_status pass_around(struct tare_bindings *bindings, const struct tare_call_site *site) {
    bool changed, any = false;
    do {
        changed = false;
        TARE_TRY(pass_returns(&changed, bindings, site));
        any |= changed;
    } while (changed);
    for (size_t c = 0; c < site->n_callees && any; c++)
        wait_again(bindings, site->callees[c]);
    return TARE_OK;
}

static tare_status pass_arguments(struct tare_bindings *bindings, const struct call *call) {
    const struct tare_call_site *site = &call->site;
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        bool changed = false;
        for (size_t i = 0; i < site->n_args && i < callee->n_args; i++)
            TARE_TRY(pass_to(&changed, bindings, call->node->inputs[site->first + i], callee->args[i]));
        if (changed) wait_again(bindings, callee);
    }
    return site->kind == TARE_CALL_LOOP ? pass_around(bindings, site) : TARE_OK;
}

static tare_status trace_calls(struct tare_bindings *bindings, const struct tare_graph_model *model) {
    bindings->last_waiting = &bindings->first_waiting;
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(add_caller(bindings, tare_model_graph(model, i)));
    for (struct caller *caller; (caller = bindings->first_waiting) != NULL;) {
        bindings->first_waiting = caller->next;
        if (!caller->next) bindings->last_waiting = &bindings->first_waiting;
        caller->is_waiting = false;
        for (const struct call *call = caller->calls; call; call = call->next)
            TARE_TRY(pass_arguments(bindings, call));
    }
    return TARE_OK;
}

/* ---- captures ---- */

static tare_status bind_captures_of(struct tare_bindings *bindings, const struct tare_concrete *concrete,
                                    const struct tare_map *by_object) {
    if (concrete->n_bound > concrete->graph->n_args) return TARE_OK;
    const size_t first = concrete->graph->n_args - concrete->n_bound;
    for (size_t i = 0; i < concrete->n_bound; i++) {
        const struct tare_object_variable *object = tare_object_variables(by_object, concrete->bound[i]);
        if (!object) continue;
        struct binding *binding = binding_of(bindings, concrete->graph->args[first + i]);
        struct capture *capture = TARE_NEW(&bindings->arena, struct capture);
        if (!binding || !capture) return TARE_NO_MEMORY;
        meet(binding, object->variable, false);
        *capture = (struct capture){ binding, object->variable, bindings->captures };
        bindings->captures = capture;
    }
    return TARE_OK;
}

static tare_status bind_captures(struct tare_bindings *bindings, const struct tare_graph_model *model) {
    struct tare_map by_object = { 0 };
    tare_status status = tare_model_index_objects(&by_object, &bindings->arena, model);
    for (size_t c = 0; c < model->n_concretes && status == TARE_OK; c++)
        status = bind_captures_of(bindings, &model->concretes[c], &by_object);
    tare_map_free(&by_object);
    return status;
}

/* ---- variables that are not the only ones in some place ---- */

bool tare_bindings_is_mixed(const struct tare_bindings *bindings, const struct tare_variable *variable) {
    return tare_map_get_n(&bindings->mixed, (const char *)&variable, sizeof variable) != NULL;
}

static tare_status mix(struct tare_bindings *bindings, const struct tare_variable *variable) {
    struct mixed *mixed;
    if (!variable || tare_bindings_is_mixed(bindings, variable)) return TARE_OK;
    mixed = TARE_NEW(&bindings->arena, struct mixed);
    if (!mixed) return TARE_NO_MEMORY;
    mixed->variable = variable;
    return tare_map_set_n(&bindings->mixed, (const char *)&mixed->variable, sizeof mixed->variable, mixed)
               ? TARE_OK
               : TARE_NO_MEMORY;
}

static bool is_used(const struct tare_node *node, size_t output) {
    return tare_graph_count_uses_to(node->graph, (struct tare_edge){ (struct tare_node *)node, (int)output }, 1, NULL);
}

static bool is_ambiguous(const struct binding *binding) {
    return binding && binding->several && is_used(binding->arg, 0);
}

/* A handle that a call returns, or a loop carries to its end, and that is used there. */
static bool returns_handle(const struct tare_node *node, size_t output) {
    return output < node->n_outputs && node->output_dtypes[output] == TARE_DT_RESOURCE && is_used(node, output);
}

static tare_status mix_results(struct tare_bindings *bindings, const struct call *call) {
    const struct tare_node *node = call->node;
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (!returns_handle(node, i)) continue;
        if (call->site.kind == TARE_CALL_LOOP && i < node->n_inputs)
            TARE_TRY(mix(bindings, tare_bindings_variable(bindings, node->inputs[i], NULL)));
        for (size_t c = 0; c < call->site.n_callees; c++)
            if (i < call->site.callees[c]->n_returns)
                TARE_TRY(mix(bindings, tare_bindings_variable(bindings, call->site.callees[c]->returns[i].edge, NULL)));
    }
    return TARE_OK;
}

static tare_status mix_arguments(struct tare_bindings *bindings, const struct call *call) {
    const struct tare_call_site *site = &call->site;
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        for (size_t i = 0; i < site->n_args && i < callee->n_args; i++) {
            struct tare_node *arg = callee->args[i];
            if (!is_ambiguous(tare_map_get_n(&bindings->state, (const char *)&arg, sizeof arg))) continue;
            TARE_TRY(mix(bindings, tare_bindings_variable(bindings, call->node->inputs[site->first + i], NULL)));
        }
    }
    return TARE_OK;
}

static tare_status mix_calls_of(struct tare_bindings *bindings, const struct tare_graph *graph) {
    const struct caller *caller = tare_graph_table_get(&bindings->callers, graph);
    for (const struct call *call = caller ? caller->calls : NULL; call; call = call->next) {
        TARE_TRY(mix_arguments(bindings, call));
        TARE_TRY(mix_results(bindings, call));
    }
    return TARE_OK;
}

static tare_status find_mixed(struct tare_bindings *bindings, const struct tare_graph_model *model) {
    for (const struct capture *capture = bindings->captures; capture; capture = capture->next)
        if (is_ambiguous(capture->binding)) TARE_TRY(mix(bindings, capture->variable));
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(mix_calls_of(bindings, tare_model_graph(model, i)));
    return TARE_OK;
}

tare_status tare_bindings_new(struct tare_bindings **out, const struct tare_graph_model *model) {
    struct tare_bindings *bindings = tare_calloc(1, sizeof *bindings);
    tare_status status = bindings ? TARE_OK : TARE_NO_MEMORY;
    *out = NULL;
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++) {
        struct tare_variable *variable = &model->variables[i];
        if (variable->node &&
            !tare_map_set_n(&bindings->by_node, (const char *)&variable->node, sizeof variable->node, variable))
            status = TARE_NO_MEMORY;
    }
    if (status == TARE_OK) status = bind_captures(bindings, model);
    if (status == TARE_OK) status = trace_calls(bindings, model);
    if (status == TARE_OK) status = find_mixed(bindings, model);
    if (bindings) tare_graph_table_free(&bindings->callers);
    if (status == TARE_OK)
        *out = bindings;
    else
        tare_bindings_free(bindings);
    return status;
}

void tare_bindings_free(struct tare_bindings *bindings) {
    if (!bindings) return;
    tare_map_free(&bindings->state);
    tare_map_free(&bindings->by_node);
    tare_map_free(&bindings->mixed);
    tare_arena_free(&bindings->arena);
    tare_free(bindings);
}

const struct tare_shape **tare_bindings_handles(const struct tare_bindings *bindings, struct tare_arena *arena,
                                                const struct tare_graph *graph) {
    const struct tare_shape **handles = TARE_NEW_ARRAY(arena, const struct tare_shape *, graph->n_args + 1);
    for (size_t i = 0; handles && i < graph->n_args; i++) {
        const struct tare_variable *variable;
        if (tare_dtype_base(graph->args[i]->output_dtypes[0]) != TARE_DT_RESOURCE) continue;
        variable = tare_bindings_variable(bindings, (struct tare_edge){ graph->args[i], 0 }, NULL);
        if (variable) handles[i] = &variable->shape;
    }
    return handles;
}
