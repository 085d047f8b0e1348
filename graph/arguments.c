/* Removing an argument of functions, with the inputs of the nodes that pass it and the attributes that follow it. */
#include "graph/calls.h"
#include "base/alloc.h"

#include <string.h>

/* One call site of the function, and which input passes the argument. */
struct site {
    struct tare_node *node;
    size_t input;
    enum tare_call_kind kind;
};

struct site_list {
    struct tare_arena arena;
    struct site *items;
    size_t count;
};

static tare_status collect(struct site_list *list, const struct tare_graph *graph, const struct tare_graph *function,
                           size_t index) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        struct tare_call_site site;
        bool calls = false;
        struct site *grown;
        if (node->dead) continue;
        TARE_TRY(tare_call_site(&site, &list->arena, node));
        for (size_t c = 0; c < site.n_callees; c++)
            calls |= site.callees[c] == function;
        if (!calls) continue;
        if (site.kind == TARE_CALL_OTHER || index >= site.n_args)
            return TARE_FAIL(TARE_UNSUPPORTED, "node %s (%s) calls %s in a way that fixes its arguments", node->name,
                             node->op, function->name);
        grown = tare_arena_extend(&list->arena, list->items, list->count, 1, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        grown[list->count++] = (struct site){ node, site.first + index, site.kind };
        list->items = grown;
    }
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

/* BatchFunction splits its inputs over two attributes. */
static tare_status shorten_type_list(struct tare_node *node, size_t input) {
    static const char *const lists[] = { "Tin", "in_types", "Tcaptured" };
    size_t before = 0;
    for (size_t a = 0; a < sizeof lists / sizeof *lists; a++) {
        const struct tare_attr *attr = tare_node_find_attr(node, lists[a]);
        int *dtypes;
        tare_status status;
        size_t count = 0;
        if (!attr) continue;
        if (input < before || input >= before + attr->count) {
            before += attr->count;
            continue;
        }
        dtypes = tare_calloc(attr->count, sizeof *dtypes);
        if (!dtypes) return TARE_NO_MEMORY;
        for (size_t i = 0; i < attr->count; i++)
            if (i != input - before) dtypes[count++] = attr->items[i].type;
        status = tare_node_set_type_list(node, lists[a], dtypes, count);
        tare_free(dtypes);
        return status;
    }
    return TARE_OK; /* a call by op name has no type list */
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
static tare_status drop_shape_item(struct tare_graph *function, size_t index) {
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
        if (i != index) changed.items[changed.count++] = shapes->items[i];
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

static void shift_inputs(struct tare_node *node, size_t input) {
    drop_input_hints(node);
    tare_node_remove_input(node, input);
}

static tare_status drop_input(const struct site *site) {
    TARE_TRY(shorten_type_list(site->node, site->input));
    shift_inputs(site->node, site->input);
    return TARE_OK;
}

static void drop_capture(struct tare_graph_model *model, const struct tare_graph *function, size_t index) {
    for (size_t i = 0; i < model->n_concretes; i++) {
        struct tare_concrete *concrete = &model->concretes[i];
        size_t first;
        if (concrete->graph != function || concrete->n_bound > function->n_args) continue;
        first = function->n_args - concrete->n_bound;
        if (index < first) continue;
        memmove(&concrete->bound[index - first], &concrete->bound[index - first + 1],
                (concrete->n_bound - (index - first) - 1) * sizeof *concrete->bound);
        concrete->n_bound--;
    }
}

/* Removes the argument from the function only. */
static tare_status drop_arg(struct tare_graph *function, size_t index) {
    TARE_TRY(drop_shape_item(function, index));
    memmove(&function->args[index], &function->args[index + 1],
            (function->n_args - index - 1) * sizeof *function->args);
    function->n_args--;
    for (size_t i = index; i < function->n_args; i++) {
        function->args[i]->position = i;
        TARE_TRY(tare_node_set_int(function->args[i], "index", (int64_t)i));
    }
    return TARE_OK;
}

tare_status tare_function_remove_arg(struct tare_graph *function, size_t index) {
    struct tare_graph_model *model = function->model;
    struct site_list list = { .count = 0 };
    tare_status status;

    TARE_CHECK(collect(&list, model->main, function, index));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_CHECK(collect(&list, model->functions[i], function, index));
    TARE_CHECK(check_sites(&list, function));
    for (size_t i = 0; i < list.count; i++)
        TARE_CHECK(drop_input(&list.items[i]));
    drop_capture(model, function, index);
    TARE_CHECK(drop_arg(function, index));
done:
    tare_arena_free(&list.arena);
    return status;
}

/* ---- branches and loops ---- */

static tare_status drop_list_item(struct tare_node *node, const char *name, size_t index) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    struct tare_shape *shapes;
    if (!attr || !attr->is_list || attr->count <= index) return TARE_OK;
    if (attr->kind == TARE_ATTR_TYPE) {
        int *dtypes = TARE_NEW_ARRAY(&node->graph->model->arena, int, attr->count);
        for (size_t i = 0, at = 0; dtypes && i < attr->count; i++)
            if (i != index) dtypes[at++] = attr->items[i].type;
        return dtypes ? tare_node_set_type_list(node, name, dtypes, attr->count - 1) : TARE_NO_MEMORY;
    }
    if (attr->kind != TARE_ATTR_SHAPE) return TARE_OK;
    shapes = TARE_NEW_ARRAY(&node->graph->model->arena, struct tare_shape, attr->count);
    for (size_t i = 0, at = 0; shapes && i < attr->count; i++)
        if (i != index) shapes[at++] = *attr->items[i].shape;
    return shapes ? tare_node_set_shape_list(node, name, shapes, attr->count - 1) : TARE_NO_MEMORY;
}

tare_status tare_branches_remove_arg(struct tare_node *node, struct tare_graph *const *branches, size_t n_branches,
                                     size_t index) {
    TARE_TRY(drop_list_item(node, "Tin", index));
    shift_inputs(node, index + 1);
    for (size_t b = 0; b < n_branches; b++) {
        bool again = false; /* several branches may be one function */
        for (size_t k = 0; k < b; k++)
            again |= branches[k] == branches[b];
        if (!again) TARE_TRY(drop_arg(branches[b], index));
    }
    return TARE_OK;
}

tare_status tare_loop_remove_variable(struct tare_node *loop, struct tare_graph *condition, struct tare_graph *body,
                                      size_t index) {
    struct tare_graph *graph = loop->graph;
    const size_t outputs = loop->n_outputs;
    tare_graph_replace_uses(graph, (struct tare_edge){ loop, (int)index }, loop->inputs[index], NULL);
    for (size_t i = index + 1; i < outputs; i++)
        tare_graph_replace_uses(graph, (struct tare_edge){ loop, (int)i }, (struct tare_edge){ loop, (int)i - 1 },
                                NULL);
    memmove(&body->returns[index], &body->returns[index + 1], (body->n_returns - index - 1) * sizeof *body->returns);
    body->n_returns--;
    TARE_TRY(drop_list_item(loop, "T", index));
    TARE_TRY(drop_list_item(loop, "output_shapes", index));
    TARE_TRY(drop_list_item(loop, "_output_shapes", index));
    shift_inputs(loop, index);
    TARE_TRY(drop_arg(condition, index));
    TARE_TRY(drop_arg(body, index));
    return tare_node_resolve(loop);
}
