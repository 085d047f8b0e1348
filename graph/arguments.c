/* Removing arguments of functions, with the inputs of the nodes that pass them and the attributes that follow them. All
 * arguments of a function are removed together, which takes time in the size of its call sites, not in its product with
 * the number of arguments. */
#include "graph/calls.h"
#include "base/alloc.h"
#include "graph/graphs.h"

#include <string.h>

/* One call site of the function. */
struct site {
    struct tare_node *node;
    size_t first; /* the input that passes argument 0 */
    enum tare_call_kind kind;
};

struct site_list {
    struct tare_arena arena;
    struct site *items;
    size_t count, capacity;
};

static tare_status add_site(struct site_list *list, const struct site *site) {
    if (list->count == list->capacity) {
        const size_t extra = list->capacity + 4;
        struct site *grown = tare_arena_extend(&list->arena, list->items, list->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        list->items = grown;
        list->capacity += extra;
    }
    list->items[list->count++] = *site;
    return TARE_OK;
}

/* Adds the node if it calls the function. Arguments with numbers below `end` are to be removed. */
static tare_status collect_node(struct site_list *list, struct tare_node *node, const struct tare_graph *function,
                                size_t end) {
    struct tare_call_site site;
    bool calls = false;
    if (node->dead) return TARE_OK;
    TARE_TRY(tare_call_site(&site, &list->arena, node));
    for (size_t c = 0; c < site.n_callees; c++)
        calls |= site.callees[c] == function;
    if (!calls) return TARE_OK;
    if (site.kind == TARE_CALL_OTHER || end > site.n_args)
        return TARE_FAIL(TARE_UNSUPPORTED, "node %s (%s) calls %s in a way that fixes its arguments", node->name,
                         node->op, function->name);
    return add_site(list, &(struct site){ node, site.first, site.kind });
}

static tare_status collect_graph(struct site_list *list, const struct tare_graph *graph,
                                 const struct tare_graph *function, size_t end) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        TARE_TRY(collect_node(list, graph->nodes[i], function, end));
    return TARE_OK;
}

/* If, Case and While have several callees that share the arguments. Arguments can be removed only from a function that
 * is the sole callee of its call sites; arguments of branches and loop variables are kept. */
static tare_status check_sites(const struct site_list *list, const struct tare_graph *function) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind != TARE_CALL_PLAIN && list->items[i].kind != TARE_CALL_TPU)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s shares its arguments with other branches of node %s", function->name,
                             list->items[i].node->name);
    return TARE_OK;
}

/* Removes the dtypes of the inputs first + i for each i with removed[i]. BatchFunction splits its inputs over two
 * attributes. A call by op name has no type list. */
static tare_status shorten_type_lists(struct tare_node *node, size_t first, const bool *removed, size_t end) {
    static const char *const lists[] = { "Tin", "in_types", "Tcaptured" };
    size_t before = 0;
    for (size_t a = 0; a < sizeof lists / sizeof *lists; a++) {
        const struct tare_attr *attr = tare_node_find_attr(node, lists[a]);
        tare_status status = TARE_OK;
        size_t count = 0;
        if (!attr) continue;
        const size_t old_count = attr->count;
        int *dtypes = tare_calloc(old_count + 1, sizeof *dtypes);
        if (!dtypes) return TARE_NO_MEMORY;
        for (size_t i = 0; i < old_count; i++) {
            const size_t input = before + i;
            if (input < first || input >= first + end || !removed[input - first]) dtypes[count++] = attr->items[i].type;
        }
        if (count < old_count) status = tare_node_set_type_list(node, lists[a], dtypes, count);
        tare_free(dtypes);
        TARE_TRY(status);
        before += old_count;
    }
    return TARE_OK;
}

/* ---- attributes that follow arguments ---- */

/* Attributes are shared between clones and with the file's message: the list is replaced, never changed. */
static tare_status set_attrs(struct tare_graph *function, const struct tare_attr *without,
                             const struct tare_attr *changed) {
    struct tare_attr *attrs = TARE_NEW_ARRAY(&function->model->arena, struct tare_attr, function->n_attrs + 1);
    size_t count = 0;
    if (!attrs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_attrs; i++) {
        if (&function->attrs[i] != without)
            attrs[count++] = function->attrs[i];
        else if (changed)
            attrs[count++] = *changed;
    }
    function->attrs = attrs;
    function->n_attrs = function->attrs_capacity = count;
    return TARE_OK;
}

/* A list without an item for some argument is already invalid: the whole list is removed. */
static tare_status drop_shape_items(struct tare_graph *function, const bool *removed) {
    const struct tare_attr *shapes = tare_graph_find_attr(function, "_input_shapes");
    struct tare_attr changed;
    if (!shapes) return TARE_OK;
    if (!shapes->is_list || shapes->count != function->n_args) return set_attrs(function, shapes, NULL);
    changed = *shapes;
    changed.origin = NULL;
    changed.items = TARE_NEW_ARRAY(&function->model->arena, union tare_attr_item, shapes->count);
    changed.count = 0;
    if (!changed.items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < shapes->count; i++)
        if (!removed[i]) changed.items[changed.count++] = shapes->items[i];
    return set_attrs(function, shapes, changed.count ? &changed : NULL);
}

tare_status tare_graph_drop_arg_shapes(struct tare_graph *function) {
    const struct tare_attr *shapes = tare_graph_find_attr(function, "_input_shapes");
    function->arg_shapes_void = true;
    for (size_t i = 0; i < function->n_args; i++)
        tare_node_remove_attr(function->args[i], "_output_shapes");
    return shapes ? set_attrs(function, shapes, NULL) : TARE_OK;
}

/* Attributes of call nodes that hold input numbers are hints about resources and shapes, which are invalid after inputs
 * move. */
static void drop_input_hints(struct tare_node *node) {
    tare_node_remove_attr(node, "_read_only_resource_inputs");
    tare_node_remove_attr(node, "_input_shapes");
}

static tare_status drop_inputs(const struct site *site, const bool *removed, size_t end) {
    TARE_TRY(shorten_type_lists(site->node, site->first, removed, end));
    drop_input_hints(site->node);
    tare_node_remove_inputs(site->node, site->first, removed, end);
    return TARE_OK;
}

static void drop_captures(struct tare_graph_model *model, const struct tare_graph *function, const bool *removed) {
    for (size_t i = 0; i < model->n_concretes; i++) {
        struct tare_concrete *concrete = &model->concretes[i];
        size_t kept = 0;
        if (concrete->graph != function || concrete->n_bound > function->n_args) continue;
        const size_t first = function->n_args - concrete->n_bound;
        for (size_t k = 0; k < concrete->n_bound; k++)
            if (!removed[first + k]) concrete->bound[kept++] = concrete->bound[k];
        concrete->n_bound = kept;
    }
}

/* Removes the arguments from the function only. */
static tare_status drop_args(struct tare_graph *function, const bool *removed) {
    size_t kept = 0;
    TARE_TRY(drop_shape_items(function, removed));
    for (size_t i = 0; i < function->n_args; i++) {
        struct tare_node *arg = function->args[i];
        if (removed[i]) continue;
        function->args[kept] = arg;
        if (kept != i) TARE_TRY(tare_node_set_int(arg, "index", (int64_t)kept));
        arg->position = kept++;
    }
    function->n_args = kept;
    return TARE_OK;
}

static tare_status collect(struct site_list *list, const struct tare_graph *function, size_t end,
                           const struct tare_node_list *callers) {
    const struct tare_graph_model *model = function->model;
    for (size_t i = 0; callers && i < callers->count; i++)
        if (i == 0 || callers->nodes[i] != callers->nodes[i - 1])
            TARE_TRY(collect_node(list, callers->nodes[i], function, end));
    if (callers) return TARE_OK;
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(collect_graph(list, tare_model_graph(model, i), function, end));
    return TARE_OK;
}

tare_status tare_function_remove_args(struct tare_graph *function, const bool *removed,
                                      const struct tare_node_list *callers) {
    struct site_list list = { .count = 0 };
    size_t end = function->n_args;
    tare_status status;

    while (end > 0 && !removed[end - 1])
        end--;
    if (end == 0) return TARE_OK;
    TARE_CHECK(collect(&list, function, end, callers));
    TARE_CHECK(check_sites(&list, function));
    for (size_t i = 0; i < list.count; i++)
        TARE_CHECK(drop_inputs(&list.items[i], removed, end));
    drop_captures(function->model, function, removed);
    TARE_CHECK(drop_args(function, removed));
done:
    tare_arena_free(&list.arena);
    return status;
}

/* ---- branches and loops ---- */

static tare_status drop_list_items(struct tare_node *node, const char *name, const bool *removed, size_t count) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    struct tare_arena *arena = &node->graph->model->arena;
    size_t kept = 0;
    if (!attr || !attr->is_list) return TARE_OK;
    if (attr->kind == TARE_ATTR_TYPE) {
        int *dtypes = TARE_NEW_ARRAY(arena, int, attr->count + 1);
        for (size_t i = 0; dtypes && i < attr->count; i++)
            if (i >= count || !removed[i]) dtypes[kept++] = attr->items[i].type;
        return dtypes ? tare_node_set_type_list(node, name, dtypes, kept) : TARE_NO_MEMORY;
    }
    if (attr->kind != TARE_ATTR_SHAPE) return TARE_OK;
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, attr->count + 1);
    for (size_t i = 0; shapes && i < attr->count; i++)
        if (i >= count || !removed[i]) shapes[kept++] = *attr->items[i].shape;
    return shapes ? tare_node_set_shape_list(node, name, shapes, kept) : TARE_NO_MEMORY;
}

tare_status tare_branches_remove_args(struct tare_node *node, struct tare_graph *const *branches, size_t n_branches,
                                      const bool *removed) {
    const size_t count = branches[0]->n_args;
    TARE_TRY(drop_list_items(node, "Tin", removed, count));
    drop_input_hints(node);
    tare_node_remove_inputs(node, 1, removed, count);
    for (size_t b = 0; b < n_branches; b++) {
        bool again = false; /* several branches may be one function */
        for (size_t k = 0; k < b; k++)
            again |= branches[k] == branches[b];
        if (!again) TARE_TRY(drop_args(branches[b], removed));
    }
    return TARE_OK;
}

/* The loop's outputs without those of the removed variables, whose users get the loop's inputs. */
static tare_status drop_outputs(struct tare_node *loop, const bool *removed) {
    struct tare_edge *to = tare_calloc(loop->n_outputs + 1, sizeof *to);
    int kept = 0;
    if (!to) return TARE_NO_MEMORY;
    for (size_t i = 0; i < loop->n_outputs; i++)
        to[i] = removed[i] ? loop->inputs[i] : (struct tare_edge){ loop, kept++ };
    tare_node_replace_outputs(loop, to);
    tare_free(to);
    return TARE_OK;
}

tare_status tare_loop_remove_variables(struct tare_node *loop, struct tare_graph *condition, struct tare_graph *body,
                                       const bool *removed) {
    static const char *const lists[] = { "T", "output_shapes", "_output_shapes" };
    const size_t count = loop->n_inputs;
    TARE_TRY(drop_outputs(loop, removed));
    tare_graph_remove_returns(body, removed);
    for (size_t a = 0; a < sizeof lists / sizeof *lists; a++)
        TARE_TRY(drop_list_items(loop, lists[a], removed, count));
    drop_input_hints(loop);
    tare_node_remove_inputs(loop, 0, removed, count);
    TARE_TRY(drop_args(condition, removed));
    TARE_TRY(drop_args(body, removed));
    return tare_node_resolve(loop);
}
