/* Several VarHandleOps of the main graph with one container and name are handles of one resource: what is assigned
 * through one is read through the others. Their uses are moved to the first, so that the model has one
 * variable, with one value in the checkpoint of an export. Equal names with different checkpoint keys or objects
 * (two metrics called "total") remain variables of their own. */
#include "base/map.h"
#include "convert/import/import.h"
#include "graph/graph.h"

#include <string.h>

static bool is_shared(const struct tare_variable *variable) {
    return tare_node_is(variable->node, "VarHandleOp") && !variable->slice &&
           strcmp(variable->shared_name, TARE_ANONYMOUS_VARIABLE) != 0;
}

static bool one_object(const struct tare_variable *a, const struct tare_variable *b) {
    return a->object_id < 0 || b->object_id < 0 || a->object_id == b->object_id;
}

static const char *resource_text(struct tare_graph_model *model, const struct tare_variable *variable,
                                 const char *key) {
    return tare_arena_printf(&model->arena, "%s\n%s\n%d\n%s", tare_node_string(variable->node, "container", ""),
                             variable->shared_name, variable->dtype, key ? key : "");
}

/* The variable that `variable` is another handle of, or NULL. A handle without a key is one of the first variable of
 * its name. */
static tare_status first_handle(struct tare_variable **out, struct tare_map *resources, struct tare_graph_model *model,
                                struct tare_variable *variable) {
    const char *name, *keyed_name;
    struct tare_variable *named, *keyed;
    *out = NULL;
    if (!is_shared(variable)) return TARE_OK;
    name = resource_text(model, variable, NULL);
    keyed_name = resource_text(model, variable, variable->key);
    if (!name || !keyed_name) return TARE_NO_MEMORY;
    named = tare_map_get(resources, name);
    keyed = tare_map_get(resources, keyed_name);
    if (keyed && one_object(keyed, variable))
        *out = keyed;
    else if (named && !named->key && one_object(named, variable))
        *out = named;
    if (!named && !tare_map_set(resources, name, variable)) return TARE_NO_MEMORY;
    if (!keyed && !tare_map_set(resources, keyed_name, *out ? *out : variable)) return TARE_NO_MEMORY;
    return TARE_OK;
}

static void join(struct tare_graph *main, struct tare_variable *first, const struct tare_variable *second) {
    if (!first->key) first->key = second->key;
    if (first->object_id < 0) first->object_id = second->object_id;
    tare_graph_replace_uses(main, (struct tare_edge){ second->node, 0 }, (struct tare_edge){ first->node, 0 }, NULL);
}

tare_status tare_import_share_variables(struct tare_graph_model *model) {
    struct tare_map resources = { 0 };
    tare_status status = TARE_OK;
    size_t kept = 0;
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++) {
        struct tare_variable *place = &model->variables[kept], *first;
        if (kept < i) *place = model->variables[i];
        status = first_handle(&first, &resources, model, place);
        if (status == TARE_OK && first)
            join(model->main, first, place);
        else
            kept++;
    }
    if (status == TARE_OK) model->n_variables = kept;
    tare_map_free(&resources);
    return status;
}
