/* Building graphs: nodes, edges, arguments, returns, constants. */
#include "graph/graph.h"
#include "base/alloc.h"
#include "graph/model.h"
#include "graph/uses.h"
#include "graph/op.h"
#include "graph/definitions/opdef.h"

#include <string.h>

static struct tare_arena *arena_of(const struct tare_graph *graph) {
    return &graph->model->arena;
}

/* Reserves space for one more item in an arena array. */
static bool reserve(struct tare_arena *arena, void **items, size_t count, size_t *capacity, size_t item_size) {
    void *grown;
    if (count < *capacity) return true;
    grown = tare_arena_extend(arena, *items, count, count + 4, item_size);
    if (!grown) return false;
    *items = grown;
    *capacity = count + count + 4;
    return true;
}

/* The last suffix tried for a stem. Names are never released, so all smaller suffixes are in use as well. */
struct tare_name_suffix {
    int last;
};

static struct tare_name_suffix *suffix_of(struct tare_graph *graph, const char *stem) {
    struct tare_name_suffix *suffix = tare_map_get(&graph->suffixes, stem);
    if (suffix) return suffix;
    suffix = TARE_NEW(arena_of(graph), struct tare_name_suffix);
    return suffix && tare_map_set(&graph->suffixes, stem, suffix) ? suffix : NULL;
}

/* The stem, or the stem with the first suffix _1, _2 … that makes it unique. */
static const char *unused_node_name(struct tare_graph *graph, const char *stem) {
    struct tare_name_suffix *suffix;
    struct tare_arena *names = &graph->model->names;
    const char *name = tare_arena_strdup(names, stem);
    if (!name || !tare_map_get(&graph->by_name, name)) return name;
    suffix = suffix_of(graph, name);
    if (!suffix) return NULL;
    do
        name = tare_arena_printf(names, "%s_%d", stem, ++suffix->last);
    while (name && tare_map_get(&graph->by_name, name));
    return name;
}

static const struct tare_op_registry *registry_of(const struct tare_graph_model *model) {
    return model->custom_ops ? model->custom_ops : model->ops;
}

static struct tare_node *new_node(struct tare_graph *graph, const char *op, const char *name) {
    struct tare_node *node = TARE_NEW(&graph->model->nodes, struct tare_node);
    const struct tare_graph *callee = tare_model_find_function(graph->model, op);
    if (!node) return NULL;
    node->graph = graph;
    node->name = unused_node_name(graph, name);
    /* A function of the model hides a built-in op of that name, as in TensorFlow. */
    if (!callee) node->def = tare_ops_find(registry_of(graph->model), op);
    if (callee)
        node->op = callee->name;
    else
        node->op =
            node->def && strcmp(node->def->name, op) == 0 ? node->def->name : tare_arena_strdup(arena_of(graph), op);
    node->device = "";
    node->has_no_functions = true;
    if (!node->name || !node->op || !tare_map_set(&graph->by_name, node->name, node)) return NULL;
    return graph->has_uses && tare_node_start_uses(node) != TARE_OK ? NULL : node;
}

struct tare_node *tare_graph_add_read(struct tare_graph *graph, const char *op, const char *name) {
    struct tare_node *node = new_node(graph, op, name);
    if (!node || !reserve(arena_of(graph), (void **)&graph->nodes, graph->n_nodes, &graph->nodes_capacity, sizeof node))
        return NULL;
    node->position = graph->n_nodes;
    graph->nodes[graph->n_nodes++] = node;
    return node;
}

struct tare_node *tare_graph_add(struct tare_graph *graph, const char *op, const char *name) {
    const char *valid = tare_node_name_is_valid(name) ? name : tare_node_name_from(&graph->model->names, name);
    return valid ? tare_graph_add_read(graph, op, valid) : NULL;
}

tare_status tare_graph_reserve(struct tare_graph *graph, size_t n_nodes) {
    size_t expected;
    struct tare_node **grown;
    if (!tare_add_size(&expected, graph->n_nodes, n_nodes)) return TARE_NO_MEMORY;
    if (!tare_map_reserve(&graph->by_name, graph->by_name.count + n_nodes)) return TARE_NO_MEMORY;
    if (expected <= graph->nodes_capacity) return TARE_OK;
    grown = tare_arena_extend(arena_of(graph), graph->nodes, graph->n_nodes, n_nodes, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    graph->nodes = grown;
    graph->nodes_capacity = expected;
    return TARE_OK;
}

/* Attributes and dtype of an argument, allocated together. */
struct arg_parts {
    struct tare_attr attrs[2];
    union tare_attr_item items[2];
    int dtype;
};

static struct tare_node *place_arg(struct tare_graph *graph, const char *name) {
    struct tare_node *node = new_node(graph, "_Arg", name);
    if (!node || !reserve(arena_of(graph), (void **)&graph->args, graph->n_args, &graph->args_capacity, sizeof node))
        return NULL;
    node->position = graph->n_args;
    graph->args[graph->n_args++] = node;
    return node;
}

struct tare_node *tare_graph_add_arg_like(struct tare_graph *graph, const char *name, const struct tare_node *like) {
    struct tare_node *node = place_arg(graph, name);
    if (!node) return NULL;
    node->attrs = like->attrs;
    node->has_no_functions = like->has_no_functions;
    node->n_attrs = node->attrs_capacity = 2;
    node->output_dtypes = like->output_dtypes;
    node->n_outputs = 1;
    return node;
}

struct tare_node *tare_graph_add_arg(struct tare_graph *graph, const char *name, int dtype) {
    struct tare_node *node = place_arg(graph, name);
    struct arg_parts *parts;
    if (!node) return NULL;
    parts = TARE_NEW(arena_of(graph), struct arg_parts);
    if (!parts) return NULL;
    parts->dtype = parts->items[0].type = dtype;
    parts->items[1].i = (int64_t)node->position;
    parts->attrs[0] = (struct tare_attr){ .name = "T", .kind = TARE_ATTR_TYPE, .count = 1, .items = &parts->items[0] };
    parts->attrs[1] =
        (struct tare_attr){ .name = "index", .kind = TARE_ATTR_INT, .count = 1, .items = &parts->items[1] };
    node->attrs = parts->attrs;
    node->n_attrs = node->attrs_capacity = 2;
    node->output_dtypes = &parts->dtype;
    node->n_outputs = 1;
    return node;
}

bool tare_op_is_one_of(const char *op, const char *const *ops) {
    for (; *ops; ops++)
        if (strcmp(op, *ops) == 0) return true;
    return false;
}

struct tare_node *tare_graph_find(const struct tare_graph *graph, const char *name) {
    struct tare_node *node = tare_map_get(&graph->by_name, name);
    return node && !node->dead ? node : NULL;
}

tare_status tare_graph_add_return(struct tare_graph *graph, const char *name, int dtype, struct tare_edge edge) {
    const char *copy = tare_arena_strdup(arena_of(graph), name);
    struct tare_return *returns = (struct tare_return *)(uintptr_t)graph->returns;
    if (!copy ||
        !reserve(arena_of(graph), (void **)&returns, graph->n_returns, &graph->returns_capacity, sizeof *returns))
        return TARE_NO_MEMORY;
    returns[graph->n_returns++] = (struct tare_return){ .name = copy, .dtype = dtype };
    graph->returns = returns;
    tare_graph_set_return(graph, graph->n_returns - 1, edge);
    return TARE_OK;
}

tare_status tare_graph_add_control_return(struct tare_graph *graph, const char *name, struct tare_node *node) {
    if (graph->n_control_returns >= graph->control_returns_capacity) {
        const size_t extra = graph->n_control_returns + 4;
        struct tare_control_return *grown =
            tare_arena_extend(arena_of(graph), graph->control_returns, graph->n_control_returns, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        graph->control_returns = grown;
        graph->control_returns_capacity = graph->n_control_returns + extra;
    }
    graph->control_returns[graph->n_control_returns++] = (struct tare_control_return){ name, node };
    return TARE_OK;
}

/* The control inputs of a node with many of them, so that adding one takes constant time: open addressing, at most half
 * full. */
struct tare_control_set {
    size_t capacity; /* a power of two */
    const struct tare_node *slots[];
};

enum { LISTED_CONTROLS = 16 }; /* longer lists have a set */

static const struct tare_node **control_slot(struct tare_control_set *set, const struct tare_node *before) {
    size_t i = (size_t)((uintptr_t)before / 16 * 0x9e3779b97f4a7c15u >> 20) & (set->capacity - 1);
    while (set->slots[i] && set->slots[i] != before)
        i = (i + 1) & (set->capacity - 1);
    return &set->slots[i];
}

/* Builds a set of the listed controls, with room for as many again. */
static tare_status build_control_set(struct tare_node *node) {
    size_t capacity = 4 * LISTED_CONTROLS;
    while (capacity < 4 * node->n_controls)
        capacity *= 2;
    struct tare_control_set *set =
        tare_arena_calloc(arena_of(node->graph), 1, sizeof *set + capacity * sizeof set->slots[0]);
    if (!set) return TARE_NO_MEMORY;
    set->capacity = capacity;
    for (size_t i = 0; i < node->n_controls; i++)
        *control_slot(set, node->controls[i]) = node->controls[i];
    node->control_set = set;
    return TARE_OK;
}

/* *slot: where the set is to contain `before` (NULL: the list has no set). */
static tare_status find_control(bool *found, const struct tare_node ***slot, struct tare_node *node,
                                const struct tare_node *before) {
    *found = false;
    *slot = NULL;
    if (node->n_controls < LISTED_CONTROLS) {
        for (size_t i = 0; i < node->n_controls; i++)
            *found |= node->controls[i] == before;
        return TARE_OK;
    }
    if (!node->control_set || 2 * node->n_controls >= node->control_set->capacity) TARE_TRY(build_control_set(node));
    *slot = control_slot(node->control_set, before);
    *found = **slot == before;
    return TARE_OK;
}

tare_status tare_node_add_control(struct tare_node *node, struct tare_node *before) {
    const struct tare_node **slot;
    bool found;
    TARE_TRY(find_control(&found, &slot, node, before));
    if (found) return TARE_OK;
    if (!reserve(&node->graph->model->nodes, (void **)&node->controls, node->n_controls, &node->controls_capacity,
                 sizeof before))
        return TARE_NO_MEMORY;
    node->controls[node->n_controls++] = before;
    if (slot) *slot = before;
    return TARE_OK;
}

static tare_status resolve_call(struct tare_node *node, const struct tare_graph *callee) {
    node->output_dtypes = TARE_NEW_ARRAY(&node->graph->model->outputs, int, callee->n_returns + 1);
    if (!node->output_dtypes) return TARE_NO_MEMORY;
    node->n_outputs = callee->n_returns;
    for (size_t i = 0; i < callee->n_returns; i++)
        node->output_dtypes[i] = callee->returns[i].dtype;
    return TARE_OK;
}

static tare_status resolve_outputs(struct tare_node *node) {
    const struct tare_graph *callee;
    if (node->def)
        return tare_opdef_output_dtypes(&node->graph->model->outputs, node, &node->output_dtypes, &node->n_outputs);
    callee = tare_model_find_function(node->graph->model, node->op);
    if (callee) return resolve_call(node, callee);
    TARE_TRY(tare_ops_check(registry_of(node->graph->model)));
    return TARE_FAIL(TARE_NOT_FOUND,
                     "Op type not registered '%s' (node %s); an op of your own comes in with --plugin LIB.so", node->op,
                     node->name);
}

tare_status tare_node_resolve(struct tare_node *node) {
    TARE_TRY(resolve_outputs(node));
    return tare_node_index_outputs(node);
}

/* Outputs are never changed in place, so nodes share them. */
tare_status tare_node_resolve_like(struct tare_node *node, const struct tare_node *like) {
    node->def = like->def;
    node->output_dtypes = like->output_dtypes;
    node->n_outputs = like->n_outputs;
    return tare_node_index_outputs(node);
}

struct tare_node *tare_graph_add_const(struct tare_graph *graph, const char *name, const struct tare_tensor *value) {
    struct tare_node *node = tare_graph_add(graph, "Const", name);
    if (!node || tare_node_set_type(node, "dtype", value->dtype) != TARE_OK ||
        tare_node_set_tensor(node, "value", value) != TARE_OK || tare_node_resolve(node) != TARE_OK)
        return NULL;
    return node;
}
