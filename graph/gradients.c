/* Custom gradients, and the values that they capture. */
#include "graph/gradients.h"

#include <stdlib.h>
#include <string.h>

static const char GRADIENT_TYPE[] = "_gradient_op_type";

/* ---- captured values ---- */

/* "node:1" in the function; node NULL: it does not exist. */
static struct tare_edge find_tensor(const struct tare_captured_tensor *captured, const struct tare_graph *function) {
    const char *colon = strrchr(captured->tensor, ':');
    char *name = colon
                     ? tare_arena_strndup(&function->model->arena, captured->tensor, (size_t)(colon - captured->tensor))
                     : NULL;
    struct tare_node *node = name ? tare_graph_find(function, name) : NULL;
    const size_t index = node ? (size_t)strtoul(colon + 1, NULL, 10) : 0;
    if (!node || node->dead || index >= node->n_outputs) return (struct tare_edge){ NULL, 0 };
    return (struct tare_edge){ node, (int)index };
}

/* The value may be replaced by another one later, so that the captured node is one that nothing replaces. */
static tare_status keep_value(struct tare_captured_tensor *captured, struct tare_graph *function) {
    const struct tare_edge edge = find_tensor(captured, function);
    const char *name;
    if (!edge.node) return TARE_OK;
    if (tare_node_is(edge.node, "Identity")) {
        captured->node = edge.node;
        return TARE_OK;
    }
    name = tare_arena_printf(&function->model->arena, "%s/captured", edge.node->name);
    captured->node = name ? tare_graph_add(function, "Identity", name) : NULL;
    if (!captured->node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(captured->node, edge));
    TARE_TRY(tare_node_set_type(captured->node, "T", tare_edge_dtype(edge)));
    return tare_node_resolve(captured->node);
}

tare_status tare_model_keep_captured(struct tare_graph_model *model) {
    for (size_t i = 0; i < model->n_captured && !model->captured_kept; i++) {
        struct tare_graph *function = tare_model_find_function(model, model->captured[i].function);
        if (function) TARE_TRY(keep_value(&model->captured[i], function));
    }
    model->captured_kept = true;
    return TARE_OK;
}

const struct tare_captured_tensor *tare_model_find_captured(const struct tare_graph_model *model, int object_id) {
    for (size_t i = 0; i < model->n_captured; i++)
        if (model->captured[i].object_id == object_id) {
            const struct tare_node *node = model->captured[i].node;
            return node && !node->dead && !node->graph->removed ? &model->captured[i] : NULL;
        }
    return NULL;
}

static bool is_captured_object(const struct tare_graph_model *model, int object_id) {
    for (size_t i = 0; i < model->n_captured; i++)
        if (model->captured[i].object_id == object_id) return true;
    return false;
}

bool tare_node_is_captured(const struct tare_node *node) {
    const struct tare_graph_model *model = node->graph->model;
    for (size_t i = 0; i < model->n_captured; i++)
        if (model->captured[i].node == node) return true;
    return false;
}

void tare_captured_moved(const struct tare_graph *from, const struct tare_graph *to) {
    struct tare_graph_model *model = from->model;
    for (size_t i = 0; i < model->n_captured; i++) {
        struct tare_captured_tensor *captured = &model->captured[i];
        if (captured->node && captured->node->graph == from) captured->node = tare_graph_find(to, captured->node->name);
    }
}

/* ---- gradients ---- */

static const struct tare_concrete *concrete_of(const struct tare_graph *function) {
    const struct tare_graph_model *model = function->model;
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph == function) return &model->concretes[i];
    return NULL;
}

/* Whether all values that a gradient captures inside functions exist. */
static bool has_captured(const struct tare_graph *gradient) {
    const struct tare_concrete *concrete = concrete_of(gradient);
    for (size_t i = 0; concrete && i < concrete->n_bound; i++)
        if (is_captured_object(gradient->model, concrete->bound[i]) &&
            !tare_model_find_captured(gradient->model, concrete->bound[i]))
            return false;
    return concrete;
}

static bool captures_of(const struct tare_graph *gradient, const struct tare_graph *function) {
    const struct tare_concrete *concrete = concrete_of(gradient);
    for (size_t i = 0; concrete && i < concrete->n_bound; i++) {
        const struct tare_captured_tensor *captured = tare_model_find_captured(gradient->model, concrete->bound[i]);
        if (captured && captured->node->graph == function) return true;
    }
    return false;
}

static const struct tare_custom_gradient *registered(const struct tare_node *node) {
    const struct tare_attr *type = tare_node_find_attr(node, GRADIENT_TYPE);
    const struct tare_graph_model *model = node->graph->model;
    if (!type || type->kind != TARE_ATTR_STRING || type->count != 1) return NULL;
    for (size_t i = 0; i < model->n_gradients; i++) {
        const char *name = model->gradients[i].op_type;
        const struct tare_str *text = &type->items[0].s;
        if (strlen(name) == text->size && memcmp(name, text->data, text->size) == 0) return &model->gradients[i];
    }
    return NULL;
}

/* The type of a call is that of its function's own gradient, which loaders make. */
static bool has_type(const struct tare_node *node) {
    static const char *const calls[] = { "PartitionedCall", "StatefulPartitionedCall", NULL };
    return tare_node_find_attr(node, GRADIENT_TYPE) && !tare_op_is_one_of(node->op, calls);
}

bool tare_node_keeps_gradient(const struct tare_node *node) {
    const struct tare_custom_gradient *gradient;
    if (!node->graph->model->keep_gradients || !has_type(node)) return false;
    gradient = registered(node);
    return !gradient || (!gradient->function->removed && has_captured(gradient->function));
}

struct tare_graph *tare_node_gradient(const struct tare_node *node) {
    const struct tare_custom_gradient *gradient = tare_node_keeps_gradient(node) ? registered(node) : NULL;
    return gradient ? gradient->function : NULL;
}

void tare_gradients_drop_copied(const struct tare_graph *copy, const struct tare_graph *from) {
    for (size_t i = 0; i < copy->n_nodes; i++) {
        const struct tare_graph *gradient = tare_node_gradient(copy->nodes[i]);
        if (gradient && captures_of(gradient, from)) tare_node_remove_attr(copy->nodes[i], GRADIENT_TYPE);
    }
}

bool tare_graph_keeps_gradients(const struct tare_graph *function) {
    if (!function->model->keep_gradients) return false;
    for (size_t i = 0; i < function->n_nodes; i++)
        if (!function->nodes[i]->dead && tare_node_keeps_gradient(function->nodes[i])) return true;
    return false;
}
