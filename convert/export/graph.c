/* IR graphs -> NodeDef, FunctionDef, GraphDef. */
#include "convert/export/export.h"
#include "base/control.h"
#include "base/map.h"
#include "convert/import/import.h"
#include "graph/op.h"

#include <string.h>

/* ---- edges ---- */

/* The output argument that flat output `index` of a node belongs to, and its place in it. */
static tare_status output_name(const char **name, size_t *place, const struct tare_node *node, size_t index) {
    const struct tare_graph *callee = node->def ? NULL : tare_model_find_function(node->graph->model, node->op);
    const char *const *names;
    size_t count;
    *place = 0;
    for (size_t a = 0; node->def && a < node->def->n_outputs; a++) {
        size_t first;
        TARE_TRY(tare_node_output_range(node, a, &first, &count));
        if (index < first || index >= first + count) continue;
        *name = node->def->outputs[a].name;
        *place = index - first;
        return TARE_OK;
    }
    if (callee && index < callee->n_returns) return *name = callee->returns[index].name, TARE_OK;
    names = node->def ? NULL : tare_unknown_outputs(node->graph->model, node->op, &count);
    if (names && index < count && names[index]) return *name = names[index], TARE_OK;
    return TARE_FAIL(TARE_INTERNAL, "output %zu of node %s (%s) has no name", index, node->name, node->op);
}

/* The name of an edge in the notation of its kind of graph: "node", "node:1", or "node:output:0" in a function. */
static tare_status export_edge(const char **out, struct tare_arena *arena, const struct tare_graph *graph,
                               struct tare_edge edge) {
    const char *name = "";
    size_t place;
    if (graph == graph->model->main) {
        *out = edge.index ? tare_arena_printf(arena, "%s:%d", edge.node->name, edge.index) : edge.node->name;
        return *out ? TARE_OK : TARE_NO_MEMORY;
    }
    if (tare_node_is_arg(edge.node)) {
        *out = edge.node->name;
        return TARE_OK;
    }
    TARE_TRY(output_name(&name, &place, edge.node, (size_t)edge.index));
    *out = tare_arena_printf(arena, "%s:%s:%zu", edge.node->name, name, place);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* Whether the file's spelling of an input means the same edge: both "node:0" and "node" occur in real files. */
static bool says_the_same(const char *original, const char *canonical) {
    size_t size = strlen(canonical);
    if (strcmp(original, canonical) == 0) return true;
    return strncmp(original, canonical, size) == 0 && strcmp(original + size, ":0") == 0;
}

/* ---- nodes ---- */

static tare_status export_inputs(Tensorflow__NodeDef *def, struct tare_arena *arena, const struct tare_node *node) {
    const Tensorflow__NodeDef *origin = node->origin;
    def->input = TARE_NEW_ARRAY(arena, char *, node->n_inputs + node->n_controls + 1);
    def->n_input = 0;
    if (!def->input) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const char *text;
        TARE_TRY(tare_error_prefix(export_edge(&text, arena, node->graph, node->inputs[i]), "node %s", node->name));
        if (origin && i < origin->n_input && says_the_same(origin->input[i], text)) text = origin->input[i];
        def->input[def->n_input++] = (char *)(uintptr_t)text;
    }
    for (size_t i = 0; i < node->n_controls; i++) {
        char *text = tare_arena_printf(arena, "^%s", node->controls[i]->name);
        if (!text) return TARE_NO_MEMORY;
        def->input[def->n_input++] = text;
    }
    return TARE_OK;
}

static tare_status export_node_attrs(Tensorflow__NodeDef *def, struct tare_arena *arena, const struct tare_node *node) {
    def->attr = TARE_NEW_ARRAY(arena, Tensorflow__AttrEntry *, node->n_attrs + 1);
    def->n_attr = 0;
    if (!def->attr) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_attrs; i++) {
        Tensorflow__AttrEntry *entry = TARE_NEW(arena, Tensorflow__AttrEntry);
        if (!entry) return TARE_NO_MEMORY;
        tensorflow__attr_entry__init(entry);
        entry->key = (char *)(uintptr_t)node->attrs[i].name;
        TARE_TRY(tare_export_attr(&entry->value, arena, &node->attrs[i]));
        def->attr[def->n_attr++] = entry;
    }
    return TARE_OK;
}

static tare_status export_node(Tensorflow__NodeDef **out, struct tare_arena *arena, const struct tare_node *node) {
    TARE_TRY(tare_control_check());
    Tensorflow__NodeDef *def = TARE_NEW(arena, Tensorflow__NodeDef);
    if (!def) return TARE_NO_MEMORY;
    tensorflow__node_def__init(def);
    if (node->origin) *def = *(const Tensorflow__NodeDef *)node->origin; /* unknown fields and debug info stay */
    def->name = (char *)(uintptr_t)node->name;
    def->op = (char *)(uintptr_t)node->op;
    def->device = (char *)(uintptr_t)node->device;
    TARE_TRY(export_inputs(def, arena, node));
    *out = def;
    return export_node_attrs(def, arena, node);
}

static tare_status export_nodes(Tensorflow__NodeDef ***out, size_t *count, struct tare_arena *arena,
                                const struct tare_graph *graph) {
    *out = TARE_NEW_ARRAY(arena, Tensorflow__NodeDef *, graph->n_nodes + 1);
    *count = 0;
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead) TARE_TRY(export_node(&(*out)[(*count)++], arena, graph->nodes[i]));
    return TARE_OK;
}

/* ---- functions ---- */

/* Definitions of a function's arguments or returns in its file. They are looked up in their own order, except those
 * that were removed, so that each search begins after the last one that was found. */
struct arg_defs {
    Tensorflow__OpDef__ArgDef *const *args;
    size_t count, next;
};

static Tensorflow__OpDef__ArgDef *find_arg(struct arg_defs *defs, const char *name) {
    for (size_t i = 0; i < defs->count; i++) {
        const size_t at = (defs->next + i) % defs->count;
        if (strcmp(defs->args[at]->name, name) != 0) continue;
        defs->next = at + 1;
        return defs->args[at];
    }
    return NULL;
}

/* An argument's definition: the file's when it has one of that name and dtype (it may hold handle data). */
static tare_status export_arg(Tensorflow__OpDef__ArgDef **out, struct tare_arena *arena, struct arg_defs *origins,
                              const char *name, int dtype, bool retyped) {
    Tensorflow__OpDef__ArgDef *arg = find_arg(origins, name);
    *out = arg;
    if (arg && arg->n_handle_data && retyped) arg = NULL;
    if (arg && (arg->is_ref ? (int)arg->type + TARE_DT_REF_OFFSET : (int)arg->type) == dtype) return TARE_OK;
    *out = arg = TARE_NEW(arena, Tensorflow__OpDef__ArgDef);
    if (!arg) return TARE_NO_MEMORY;
    tensorflow__op_def__arg_def__init(arg);
    arg->name = (char *)(uintptr_t)name;
    arg->type = (Tensorflow__DataType)dtype;
    return TARE_OK;
}

/* The signature lists control outputs in an order of its own (the map of control returns has none): the file's first.
 */
static tare_status order_control_outputs(Tensorflow__OpDef *def, const struct tare_graph *graph,
                                         const Tensorflow__OpDef *old) {
    const size_t n_old = old ? old->n_control_output : 0;
    struct tare_map returned = { 0 }, listed = { 0 };
    size_t count = 0;
    tare_status status = TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_control_returns && n_old; i++)
        if (!tare_map_set(&returned, graph->control_returns[i].name, graph->control_returns[i].node)) goto done;
    for (size_t i = 0; i < n_old; i++) {
        if (tare_map_get(&returned, old->control_output[i])) def->control_output[count++] = old->control_output[i];
        if (!tare_map_set(&listed, old->control_output[i], old->control_output[i])) goto done;
    }
    for (size_t i = 0; i < graph->n_control_returns; i++)
        if (!tare_map_get(&listed, graph->control_returns[i].name))
            def->control_output[count++] = (char *)(uintptr_t)graph->control_returns[i].name;
    def->n_control_output = count;
    status = TARE_OK;
done:
    tare_map_free(&returned);
    tare_map_free(&listed);
    return status;
}

static tare_status export_signature(Tensorflow__OpDef **out, struct tare_arena *arena, const struct tare_graph *graph) {
    const Tensorflow__FunctionDef *origin = graph->origin;
    const Tensorflow__OpDef *old = origin ? origin->signature : NULL;
    Tensorflow__OpDef *def = TARE_NEW(arena, Tensorflow__OpDef);
    if (!def) return TARE_NO_MEMORY;
    tensorflow__op_def__init(def);
    if (old) *def = *old;
    def->name = (char *)(uintptr_t)graph->name;
    def->is_stateful = graph->is_stateful;
    def->input_arg = TARE_NEW_ARRAY(arena, Tensorflow__OpDef__ArgDef *, graph->n_args + 1);
    def->output_arg = TARE_NEW_ARRAY(arena, Tensorflow__OpDef__ArgDef *, graph->n_returns + 1);
    def->control_output = TARE_NEW_ARRAY(arena, char *, graph->n_control_returns + 1);
    if (!def->input_arg || !def->output_arg || !def->control_output) return TARE_NO_MEMORY;
    def->n_input_arg = graph->n_args;
    def->n_output_arg = graph->n_returns;
    def->n_control_output = graph->n_control_returns;
    struct arg_defs inputs = { old ? old->input_arg : NULL, old ? old->n_input_arg : 0, 0 };
    struct arg_defs outputs = { old ? old->output_arg : NULL, old ? old->n_output_arg : 0, 0 };
    for (size_t i = 0; i < graph->n_args; i++)
        TARE_TRY(export_arg(&def->input_arg[i], arena, &inputs, graph->args[i]->name, graph->args[i]->output_dtypes[0],
                            graph->model->retyped));
    for (size_t i = 0; i < graph->n_returns; i++)
        TARE_TRY(export_arg(&def->output_arg[i], arena, &outputs, graph->returns[i].name, graph->returns[i].dtype,
                            graph->model->retyped));
    *out = def;
    return order_control_outputs(def, graph, old);
}

static tare_status export_return(Tensorflow__FunctionDef *def, struct tare_arena *arena, const struct tare_graph *graph,
                                 const struct tare_return *ret, const char *original) {
    Tensorflow__StringEntry *entry = TARE_NEW(arena, Tensorflow__StringEntry);
    const char *text;
    if (!entry) return TARE_NO_MEMORY;
    tensorflow__string_entry__init(entry);
    TARE_TRY(export_edge(&text, arena, graph, ret->edge));
    entry->key = (char *)(uintptr_t)ret->name;
    entry->value = (char *)(uintptr_t)(original && says_the_same(original, text) ? original : text);
    def->ret[def->n_ret++] = entry;
    return TARE_OK;
}

/* A value that the file returns although its signature declares no output of that name, from a node that still exists:
 * it cannot be used, but unchanged functions are written back unchanged. */
static bool is_undeclared(const struct tare_graph *graph, const Tensorflow__FunctionDef *origin,
                          const Tensorflow__StringEntry *entry) {
    for (size_t i = 0; i < origin->signature->n_output_arg; i++)
        if (strcmp(origin->signature->output_arg[i]->name, entry->key) == 0) return false;
    return tare_map_get_n(&graph->by_name, entry->value, strcspn(entry->value, ":"));
}

/* The position of a return, searched from `first` on, since the file's returns are usually in the same order;
 * n_returns: the function has no return of that name. */
static size_t find_return(const struct tare_graph *graph, size_t first, const char *name) {
    for (size_t i = 0; i < graph->n_returns; i++)
        if (strcmp(graph->returns[(first + i) % graph->n_returns].name, name) == 0)
            return (first + i) % graph->n_returns;
    return graph->n_returns;
}

/* Returns that the file has come in its order, so that an unchanged function comes back unchanged; then the others. */
static tare_status export_returns(Tensorflow__FunctionDef *def, struct tare_arena *arena,
                                  const struct tare_graph *graph) {
    const Tensorflow__FunctionDef *origin = graph->origin;
    bool *done = TARE_NEW_ARRAY(arena, bool, graph->n_returns + 1);
    def->ret = TARE_NEW_ARRAY(arena, Tensorflow__StringEntry *, graph->n_returns + (origin ? origin->n_ret : 0) + 1);
    def->n_ret = 0;
    if (!done || !def->ret) return TARE_NO_MEMORY;
    for (size_t o = 0, next = 0; origin && o < origin->n_ret; o++) {
        const size_t r = find_return(graph, next, origin->ret[o]->key);
        next = r + 1;
        if (r == graph->n_returns && is_undeclared(graph, origin, origin->ret[o]))
            def->ret[def->n_ret++] = origin->ret[o];
        if (r == graph->n_returns || done[r]) continue;
        done[r] = true;
        TARE_TRY(export_return(def, arena, graph, &graph->returns[r], origin->ret[o]->value));
    }
    for (size_t r = 0; r < graph->n_returns; r++)
        if (!done[r]) TARE_TRY(export_return(def, arena, graph, &graph->returns[r], NULL));
    return TARE_OK;
}

static tare_status export_control_returns(Tensorflow__FunctionDef *def, struct tare_arena *arena,
                                          const struct tare_graph *graph) {
    def->control_ret = TARE_NEW_ARRAY(arena, Tensorflow__StringEntry *, graph->n_control_returns + 1);
    def->n_control_ret = graph->n_control_returns;
    if (!def->control_ret) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_control_returns; i++) {
        Tensorflow__StringEntry *entry = TARE_NEW(arena, Tensorflow__StringEntry);
        if (!entry) return TARE_NO_MEMORY;
        tensorflow__string_entry__init(entry);
        entry->key = (char *)(uintptr_t)graph->control_returns[i].name;
        entry->value = (char *)(uintptr_t)graph->control_returns[i].node->name;
        def->control_ret[i] = entry;
    }
    return TARE_OK;
}

static tare_status export_function_attrs(Tensorflow__FunctionDef *def, struct tare_arena *arena,
                                         const struct tare_graph *graph) {
    def->attr = TARE_NEW_ARRAY(arena, Tensorflow__AttrEntry *, graph->n_attrs + 1);
    def->n_attr = graph->n_attrs;
    if (!def->attr) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_attrs; i++) {
        def->attr[i] = TARE_NEW(arena, Tensorflow__AttrEntry);
        if (!def->attr[i]) return TARE_NO_MEMORY;
        tensorflow__attr_entry__init(def->attr[i]);
        def->attr[i]->key = (char *)(uintptr_t)graph->attrs[i].name;
        TARE_TRY(tare_export_attr(&def->attr[i]->value, arena, &graph->attrs[i]));
    }
    return TARE_OK;
}

/* The position of the file's argument `index` in the function as it is now; SIZE_MAX: removed, or of another dtype. */
static size_t moved_to(const struct tare_graph *graph, uint32_t index) {
    const Tensorflow__OpDef *old = ((const Tensorflow__FunctionDef *)graph->origin)->signature;
    const Tensorflow__OpDef__ArgDef *arg = old && index < old->n_input_arg ? old->input_arg[index] : NULL;
    const struct tare_node *node = arg ? tare_graph_find(graph, arg->name) : NULL;
    if (!node || !tare_node_is_arg(node)) return SIZE_MAX;
    return tare_dtype_base(node->output_dtypes[0]) == (int)arg->type ? node->position : SIZE_MAX;
}

/* Attributes of arguments contain shapes and, for resource handles, shapes and dtypes of variables. */
static tare_status export_arg_attrs(Tensorflow__FunctionDef *def, struct tare_arena *arena,
                                    const struct tare_graph *graph) {
    const Tensorflow__FunctionDef *origin = graph->origin;
    const bool keep = origin && !graph->arg_shapes_void && !graph->model->retyped;
    def->arg_attr = TARE_NEW_ARRAY(arena, Tensorflow__FunctionDef__ArgAttrEntry *, keep ? origin->n_arg_attr + 1 : 1);
    def->n_arg_attr = 0;
    if (!def->arg_attr) return TARE_NO_MEMORY;
    for (size_t i = 0; keep && i < origin->n_arg_attr; i++) {
        Tensorflow__FunctionDef__ArgAttrEntry *entry = TARE_NEW(arena, Tensorflow__FunctionDef__ArgAttrEntry);
        const size_t position = moved_to(graph, origin->arg_attr[i]->key);
        if (!entry) return TARE_NO_MEMORY;
        if (position == SIZE_MAX) continue;
        *entry = *origin->arg_attr[i];
        entry->key = (uint32_t)position;
        def->arg_attr[def->n_arg_attr++] = entry;
    }
    return TARE_OK;
}

/* Arguments with the same id are the same resource. */
static tare_status export_resource_ids(Tensorflow__FunctionDef *def, struct tare_arena *arena,
                                       const struct tare_graph *graph) {
    typedef Tensorflow__FunctionDef__ResourceArgUniqueIdEntry id_entry;
    const Tensorflow__FunctionDef *origin = graph->origin;
    def->resource_arg_unique_id = TARE_NEW_ARRAY(arena, id_entry *, origin ? origin->n_resource_arg_unique_id + 1 : 1);
    def->n_resource_arg_unique_id = 0;
    if (!def->resource_arg_unique_id) return TARE_NO_MEMORY;
    for (size_t i = 0; origin && i < origin->n_resource_arg_unique_id; i++) {
        id_entry *entry = TARE_NEW(arena, id_entry);
        const size_t position = moved_to(graph, origin->resource_arg_unique_id[i]->key);
        if (!entry) return TARE_NO_MEMORY;
        if (position == SIZE_MAX) continue;
        *entry = *origin->resource_arg_unique_id[i];
        entry->key = (uint32_t)position;
        def->resource_arg_unique_id[def->n_resource_arg_unique_id++] = entry;
    }
    return TARE_OK;
}

static tare_status export_function(Tensorflow__FunctionDef **out, struct tare_arena *arena,
                                   const struct tare_graph *graph) {
    Tensorflow__FunctionDef *def = TARE_NEW(arena, Tensorflow__FunctionDef);
    if (!def) return TARE_NO_MEMORY;
    tensorflow__function_def__init(def);
    if (graph->origin) *def = *(const Tensorflow__FunctionDef *)graph->origin;
    TARE_TRY(export_arg_attrs(def, arena, graph));
    TARE_TRY(export_resource_ids(def, arena, graph));
    TARE_TRY(export_signature(&def->signature, arena, graph));
    TARE_TRY(export_nodes(&def->node_def, &def->n_node_def, arena, graph));
    TARE_TRY(export_returns(def, arena, graph));
    TARE_TRY(export_control_returns(def, arena, graph));
    *out = def;
    return export_function_attrs(def, arena, graph);
}

/* ---- all of it ---- */

/* A gradient entry is kept while both its functions are. */
static tare_status export_gradients(Tensorflow__FunctionDefLibrary *library, struct tare_arena *arena,
                                    const struct tare_graph_model *model,
                                    const Tensorflow__FunctionDefLibrary *origin) {
    library->gradient = TARE_NEW_ARRAY(arena, Tensorflow__GradientDef *, origin->n_gradient + 1);
    library->n_gradient = 0;
    if (!library->gradient) return TARE_NO_MEMORY;
    for (size_t i = 0; i < origin->n_gradient; i++)
        if (tare_model_find_function(model, origin->gradient[i]->function_name) &&
            tare_model_find_function(model, origin->gradient[i]->gradient_func))
            library->gradient[library->n_gradient++] = origin->gradient[i];
    return TARE_OK;
}

/* Those of nodes that keep them (references.c). */
static tare_status export_custom_gradients(Tensorflow__FunctionDefLibrary *library, struct tare_arena *arena,
                                           const struct tare_graph_model *model,
                                           const Tensorflow__FunctionDefLibrary *origin) {
    library->registered_gradients =
        TARE_NEW_ARRAY(arena, Tensorflow__RegisteredGradient *, origin->n_registered_gradients + 1);
    library->n_registered_gradients = 0;
    if (!library->registered_gradients) return TARE_NO_MEMORY;
    for (size_t i = 0; i < origin->n_registered_gradients && model->keep_gradients; i++)
        if (tare_model_find_function(model, origin->registered_gradients[i]->gradient_func))
            library->registered_gradients[library->n_registered_gradients++] = origin->registered_gradients[i];
    return TARE_OK;
}

tare_status tare_export_graph_def(Tensorflow__GraphDef **out, struct tare_arena *arena,
                                  const struct tare_graph_model *model, const Tensorflow__GraphDef *origin) {
    Tensorflow__GraphDef *def = TARE_NEW(arena, Tensorflow__GraphDef);
    Tensorflow__FunctionDefLibrary *library = TARE_NEW(arena, Tensorflow__FunctionDefLibrary);
    if (!def || !library) return TARE_NO_MEMORY;
    tensorflow__graph_def__init(def);
    tensorflow__function_def_library__init(library);
    if (origin) *def = *origin;
    if (origin && origin->library) {
        *library = *origin->library;
        TARE_TRY(export_custom_gradients(library, arena, model, origin->library));
        TARE_TRY(export_gradients(library, arena, model, origin->library));
    }
    if (model->n_functions || def->library) def->library = library;
    TARE_TRY(export_nodes(&def->node, &def->n_node, arena, model->main));
    library->function = TARE_NEW_ARRAY(arena, Tensorflow__FunctionDef *, model->n_functions + 1);
    if (!library->function) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(tare_error_prefix(export_function(&library->function[i], arena, model->functions[i]), "function %s",
                                   model->functions[i]->name));
    library->n_function = model->n_functions;
    *out = def;
    return tare_export_handles(library, arena, model);
}
