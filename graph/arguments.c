/* Removing an argument of a function, with the input at every call site that passes it. */
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

/* If, Case and While name several functions that share the arguments: only a function that is the sole callee goes
 * alone; branches and loop variables stay. */
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

/* Attributes of call nodes that hold input numbers are hints about resources and shapes: wrong once inputs moved. */
static void drop_input_hints(struct tare_node *node) {
    tare_node_remove_attr(node, "_read_only_resource_inputs");
    tare_node_remove_attr(node, "_input_shapes");
}

static tare_status drop_input(const struct site *site) {
    struct tare_node *node = site->node;
    TARE_TRY(shorten_type_list(node, site->input));
    drop_input_hints(node);
    tare_node_remove_input(node, site->input);
    return TARE_OK;
}

static void drop_capture(struct tare_model *model, const struct tare_graph *function, size_t index) {
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

tare_status tare_function_remove_arg(struct tare_graph *function, size_t index) {
    struct tare_model *model = function->model;
    struct site_list list = { .count = 0 };
    tare_status status;

    TARE_CHECK(collect(&list, model->main, function, index));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_CHECK(collect(&list, model->functions[i], function, index));
    TARE_CHECK(check_sites(&list, function));
    for (size_t i = 0; i < list.count; i++)
        TARE_CHECK(drop_input(&list.items[i]));
    drop_capture(model, function, index);
    memmove(&function->args[index], &function->args[index + 1],
            (function->n_args - index - 1) * sizeof *function->args);
    function->n_args--;
    for (size_t i = index; i < function->n_args; i++) {
        function->args[i]->position = i;
        TARE_CHECK(tare_node_set_int(function->args[i], "index", (int64_t)i));
    }
done:
    tare_arena_free(&list.arena);
    return status;
}
