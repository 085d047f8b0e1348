#include "graph/shared_names.h"
#include "base/map.h"
#include "graph/calls.h"

#include <string.h>

static bool has_name(const struct tare_variable *variable, const bool *served) {
    const struct tare_node *node = variable->node;
    return !variable->removed && node && !node->dead && tare_node_is(node, "VarHandleOp") && served[node->position] &&
           variable->shared_name && *variable->shared_name &&
           strcmp(variable->shared_name, TARE_ANONYMOUS_VARIABLE) != 0;
}

tare_status tare_model_name_twins(struct tare_name_twins **out, size_t *count, struct tare_arena *arena,
                                  const struct tare_graph_model *model) {
    struct tare_map names = { 0 };
    tare_status status = TARE_OK;
    bool *served;
    *count = 0;
    *out = TARE_NEW_ARRAY(arena, struct tare_name_twins, model->n_variables + 1);
    if (!*out) return TARE_NO_MEMORY;
    TARE_TRY(tare_model_served_nodes(&served, arena, model));
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++) {
        const struct tare_variable *variable = &model->variables[i], *first;
        const char *name;
        if (!has_name(variable, served)) continue;
        name = tare_arena_printf(arena, "%s\n%s", tare_node_string(variable->node, "container", ""),
                                 variable->shared_name);
        first = name ? tare_map_get(&names, name) : NULL;
        if (first)
            (*out)[(*count)++] = (struct tare_name_twins){ first, variable };
        else if (!name || !tare_map_set(&names, name, (void *)(uintptr_t)variable))
            status = TARE_NO_MEMORY;
    }
    tare_map_free(&names);
    return status;
}
