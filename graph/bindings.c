/* A fixed point over call sites: each argument is unbound, bound to one variable, or bound to several. */
#include "graph/bindings.h"
#include "base/alloc.h"
#include "graph/calls.h"

#include <string.h>

struct tare_bindings {
    struct tare_arena arena;
    struct tare_map state;   /* key: the bytes of an argument's node pointer -> struct binding */
    struct tare_map by_node; /* key: the bytes of a main-graph node pointer -> struct tare_variable */
};

struct binding {
    struct tare_node *arg;
    struct tare_variable *variable; /* NULL: unbound so far */
    bool several;
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

static tare_status pass_arguments(struct tare_bindings *bindings, const struct tare_node *node, bool *changed) {
    struct tare_arena scratch = { 0 };
    struct tare_call_site site;
    tare_status status = tare_call_site(&site, &scratch, node);
    for (size_t c = 0; c < site.n_callees && status == TARE_OK; c++) {
        const struct tare_graph *callee = site.callees[c];
        for (size_t i = 0; i < site.n_args && i < callee->n_args; i++) {
            bool several;
            struct binding *binding;
            struct tare_variable *variable = tare_bindings_variable(bindings, node->inputs[site.first + i], &several);
            if (!variable && !several) continue;
            binding = binding_of(bindings, callee->args[i]);
            if (!binding) {
                status = TARE_NO_MEMORY;
                break;
            }
            *changed |= meet(binding, variable, several);
        }
    }
    tare_arena_free(&scratch);
    return status;
}

static tare_status pass_graph(struct tare_bindings *bindings, const struct tare_graph *graph, bool *changed) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead) TARE_TRY(pass_arguments(bindings, graph->nodes[i], changed));
    return TARE_OK;
}

static struct tare_variable *by_object(const struct tare_graph_model *model, int object) {
    for (size_t i = 0; i < model->n_variables && object >= 0; i++)
        if (model->variables[i].object_id == object) return &model->variables[i];
    return NULL;
}

static tare_status bind_captures(struct tare_bindings *bindings, const struct tare_graph_model *model) {
    for (size_t c = 0; c < model->n_concretes; c++) {
        const struct tare_concrete *concrete = &model->concretes[c];
        size_t first = concrete->graph->n_args - concrete->n_bound;
        if (concrete->n_bound > concrete->graph->n_args) continue;
        for (size_t i = 0; i < concrete->n_bound; i++) {
            struct tare_variable *variable = by_object(model, concrete->bound[i]);
            struct binding *binding = variable ? binding_of(bindings, concrete->graph->args[first + i]) : NULL;
            if (variable && !binding) return TARE_NO_MEMORY;
            if (binding) meet(binding, variable, false);
        }
    }
    return TARE_OK;
}

tare_status tare_bindings_new(struct tare_bindings **out, const struct tare_graph_model *model) {
    struct tare_bindings *bindings = tare_calloc(1, sizeof *bindings);
    tare_status status = bindings ? TARE_OK : TARE_NO_MEMORY;
    bool changed = true;
    *out = NULL;
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++) {
        struct tare_variable *variable = &model->variables[i];
        if (variable->node &&
            !tare_map_set_n(&bindings->by_node, (const char *)&variable->node, sizeof variable->node, variable))
            status = TARE_NO_MEMORY;
    }
    if (status == TARE_OK) status = bind_captures(bindings, model);
    while (changed && status == TARE_OK) { /* each round settles one more level of calls */
        changed = false;
        status = pass_graph(bindings, model->main, &changed);
        for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
            status = pass_graph(bindings, model->functions[i], &changed);
    }
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
