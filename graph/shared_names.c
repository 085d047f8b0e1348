#include "graph/shared_names.h"
#include "base/map.h"
#include "graph/calls.h"
#include "graph/graphs.h"

#include <string.h>

struct finder {
    const struct tare_graph_model *model;
    struct tare_arena *arena;
    struct tare_map names; /* container, shared_name -> the first node */
    struct tare_name_twins *out;
    size_t count;
};

/* Notes the node, or that another one of a different kind or function has its name. */
static tare_status add(struct finder *f, const struct tare_node *node, const char *shared_name, const char *effect) {
    const char *key =
        tare_arena_printf(f->arena, "%s\n%s\n%s", node->op, tare_node_string(node, "container", ""), shared_name);
    const struct tare_node *first = key ? tare_map_get(&f->names, key) : NULL;
    struct tare_name_twins *grown;
    if (!key) return TARE_NO_MEMORY;
    if (!first) return tare_map_set(&f->names, key, (void *)(uintptr_t)node) ? TARE_OK : TARE_NO_MEMORY;
    grown = tare_arena_append(f->arena, f->out, f->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    f->out = grown;
    grown[f->count++] = (struct tare_name_twins){ first, node, shared_name, effect };
    return TARE_OK;
}

static bool has_name(const struct tare_variable *variable, const bool *served) {
    const struct tare_node *node = variable->node;
    return !variable->removed && node && !node->dead && tare_node_is(node, "VarHandleOp") && served[node->position] &&
           variable->shared_name && *variable->shared_name &&
           strcmp(variable->shared_name, TARE_ANONYMOUS_VARIABLE) != 0;
}

static tare_status find_variables(struct finder *f) {
    bool *served;
    TARE_TRY(tare_model_served_nodes(&served, f->arena, f->model));
    for (size_t i = 0; i < f->model->n_variables; i++)
        if (has_name(&f->model->variables[i], served))
            TARE_TRY(add(f, f->model->variables[i].node, f->model->variables[i].shared_name,
                         "gives both variables the value that is restored last"));
    return TARE_OK;
}

/* The queue belongs to the function of the node that is run first. */
static tare_status find_batchers_in(struct finder *f, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i], *first;
        const char *name = tare_node_string(node, "shared_name", "");
        if (node->dead || !*name || !tare_node_is(node, "BatchFunction")) continue;
        const size_t before = f->count;
        TARE_TRY(add(f, node, name, "runs the function of one of them for the requests of both"));
        if (f->count == before) continue;
        first = f->out[before].first;
        if (tare_node_function(first, "f") == tare_node_function(node, "f")) f->count = before;
    }
    return TARE_OK;
}

static tare_status find_batchers(struct finder *f) {
    bool *live;
    TARE_TRY(tare_model_reachable_functions(&live, f->arena, f->model, true));
    TARE_TRY(find_batchers_in(f, f->model->main));
    for (size_t i = 0; i < f->model->n_functions; i++)
        if (live[i]) TARE_TRY(find_batchers_in(f, f->model->functions[i]));
    return TARE_OK;
}

tare_status tare_model_name_twins(struct tare_name_twins **out, size_t *count, struct tare_arena *arena,
                                  const struct tare_graph_model *model) {
    struct finder f = { .model = model, .arena = arena };
    tare_status status = find_variables(&f);
    if (status == TARE_OK) status = find_batchers(&f);
    tare_map_free(&f.names);
    *out = f.out;
    *count = status == TARE_OK ? f.count : 0;
    return status;
}
