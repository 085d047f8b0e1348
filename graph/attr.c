/* Getting and setting attributes of nodes. Values live in the model's arena; tensors are kept by the model. */
#include "graph/definitions/attr_check.h"
#include "graph/definitions/opspec.h"
#include "graph/definitions/opspec.h"
#include "graph/graph.h"
#include "graph/model.h"
#include "graph/op.h"

#include <string.h>

static const struct tare_attr *find(const struct tare_attr *attrs, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(attrs[i].name, name) == 0) return &attrs[i];
    return NULL;
}

const struct tare_attr *tare_node_find_attr(const struct tare_node *node, const char *name) {
    return find(node->attrs, node->n_attrs, name);
}

const struct tare_attr *tare_graph_find_attr(const struct tare_graph *graph, const char *name) {
    return find(graph->attrs, graph->n_attrs, name);
}

static const struct tare_attr *default_of(const struct tare_node *node, const char *name) {
    if (!node->def) return NULL;
    for (size_t i = 0; i < node->def->n_attrs; i++)
        if (strcmp(node->def->attrs[i].name, name) == 0) return node->def->attrs[i].default_value;
    return NULL;
}

/* The item of a scalar attribute of the expected kind: the node's, else the default; NULL if neither has that kind. */
static const union tare_attr_item *item(const struct tare_node *node, const char *name, enum tare_attr_kind kind) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    if (!attr) attr = default_of(node, name);
    return attr && attr->kind == kind && !attr->is_list && attr->count ? attr->items : NULL;
}

int64_t tare_node_int(const struct tare_node *node, const char *name, int64_t fallback) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_INT);
    return value ? value->i : fallback;
}

float tare_node_float(const struct tare_node *node, const char *name, float fallback) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_FLOAT);
    return value ? value->f : fallback;
}

bool tare_node_bool(const struct tare_node *node, const char *name, bool fallback) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_BOOL);
    return value ? value->b : fallback;
}

int tare_node_type(const struct tare_node *node, const char *name, int fallback) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_TYPE);
    return value ? value->type : fallback;
}

const char *tare_node_string(const struct tare_node *node, const char *name, const char *fallback) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_STRING);
    return value ? value->s.data : fallback;
}

/* A model that is validated may have values of the wrong kind. */
const struct tare_attr *tare_node_list(const struct tare_node *node, const char *name) {
    const struct tare_op_attr *required = node->def ? tare_op_def_find_attr(node->def, name, strlen(name)) : NULL;
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    if (!attr && required) attr = required->default_value;
    if (!attr || !attr->is_list || (required && !tare_attr_has_kind(attr, required))) return NULL;
    return attr;
}

const struct tare_tensor *tare_node_tensor(const struct tare_node *node, const char *name) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_TENSOR);
    return value ? value->tensor : NULL;
}

bool tare_node_shape(const struct tare_node *node, const char *name, struct tare_shape *out) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_SHAPE);
    if (value) *out = *value->shape;
    return value;
}

struct tare_graph *tare_node_function(const struct tare_node *node, const char *name) {
    const union tare_attr_item *value = item(node, name, TARE_ATTR_FUNC);
    return value ? tare_model_function_of(node->graph->model, &value->func) : NULL;
}

static struct tare_arena *arena_of(const struct tare_node *node) {
    return &node->graph->model->arena;
}

/* The definition's, which all nodes of an op share, or a copy. */
static const char *name_of(const struct tare_node *node, const char *name) {
    const struct tare_op_attr *defined = node->def ? tare_op_def_find_attr(node->def, name, strlen(name)) : NULL;
    return defined ? defined->name : tare_arena_strdup(arena_of(node), name);
}

/* The attribute to write: the old one of that name, or a new one at the end. */
static struct tare_attr *slot(struct tare_node *node, const char *name) {
    struct tare_attr *attr = (struct tare_attr *)tare_node_find_attr(node, name);
    if (attr) return attr;
    if (node->n_attrs == node->attrs_capacity) {
        size_t extra = node->n_attrs + 4;
        struct tare_attr *grown = tare_arena_extend(arena_of(node), node->attrs, node->n_attrs, extra, sizeof *attr);
        if (!grown) return NULL;
        node->attrs = grown;
        node->attrs_capacity = node->n_attrs + extra;
    }
    attr = &node->attrs[node->n_attrs];
    attr->name = name_of(node, name);
    if (!attr->name) return NULL;
    node->n_attrs++;
    return attr;
}

/* Gives an attribute a value; its name remains. */
static void put(struct tare_node *node, struct tare_attr *attr, struct tare_attr value) {
    value.name = attr->name;
    *attr = value;
    node->has_no_functions &= value.kind != TARE_ATTR_FUNC;
}

static tare_status set(struct tare_node *node, const char *name, enum tare_attr_kind kind, bool is_list,
                       const union tare_attr_item *items, size_t count) {
    struct tare_attr *attr = slot(node, name);
    union tare_attr_item *copy = tare_arena_extend(arena_of(node), items, count, 0, sizeof *items);
    if (!attr || !copy) return TARE_NO_MEMORY;
    put(node, attr, (struct tare_attr){ .kind = kind, .is_list = is_list, .count = count, .items = copy });
    return TARE_OK;
}

tare_status tare_node_set_int(struct tare_node *node, const char *name, int64_t value) {
    return set(node, name, TARE_ATTR_INT, false, &(union tare_attr_item){ .i = value }, 1);
}

tare_status tare_node_set_float(struct tare_node *node, const char *name, float value) {
    return set(node, name, TARE_ATTR_FLOAT, false, &(union tare_attr_item){ .f = value }, 1);
}

tare_status tare_node_set_bool(struct tare_node *node, const char *name, bool value) {
    return set(node, name, TARE_ATTR_BOOL, false, &(union tare_attr_item){ .b = value }, 1);
}

tare_status tare_node_set_type(struct tare_node *node, const char *name, int dtype) {
    return set(node, name, TARE_ATTR_TYPE, false, &(union tare_attr_item){ .type = dtype }, 1);
}

tare_status tare_node_set_string(struct tare_node *node, const char *name, const void *data, size_t size) {
    const char *copy = tare_arena_strndup(arena_of(node), data, size);
    if (!copy) return TARE_NO_MEMORY;
    return set(node, name, TARE_ATTR_STRING, false, &(union tare_attr_item){ .s = { copy, size } }, 1);
}

tare_status tare_node_set_shape(struct tare_node *node, const char *name, const struct tare_shape *shape) {
    const struct tare_shape *copy = tare_arena_extend(arena_of(node), shape, 1, 0, sizeof *shape);
    if (!copy) return TARE_NO_MEMORY;
    return set(node, name, TARE_ATTR_SHAPE, false, &(union tare_attr_item){ .shape = copy }, 1);
}

tare_status tare_node_set_tensor(struct tare_node *node, const char *name, const struct tare_tensor *tensor) {
    struct tare_tensor *kept = tare_model_keep_tensor(node->graph->model, tensor);
    if (!kept) return TARE_NO_MEMORY;
    return set(node, name, TARE_ATTR_TENSOR, false, &(union tare_attr_item){ .tensor = kept }, 1);
}

tare_status tare_node_set_func(struct tare_node *node, const char *name, const char *function) {
    struct tare_graph *callee = tare_model_find_function(node->graph->model, function);
    const char *copy = callee ? callee->name : tare_arena_strdup(arena_of(node), function);
    if (!copy) return TARE_NO_MEMORY;
    return set(node, name, TARE_ATTR_FUNC, false, &(union tare_attr_item){ .func = { .name = copy, .graph = callee } },
               1);
}

static tare_status set_list(struct tare_node *node, const char *name, enum tare_attr_kind kind, size_t count,
                            union tare_attr_item **items) {
    struct tare_attr *attr = slot(node, name);
    *items = TARE_NEW_ARRAY(arena_of(node), union tare_attr_item, count ? count : 1);
    if (!attr || !*items) return TARE_NO_MEMORY;
    put(node, attr, (struct tare_attr){ .kind = kind, .is_list = true, .count = count, .items = *items });
    return TARE_OK;
}

tare_status tare_node_set_int_list(struct tare_node *node, const char *name, const int64_t *values, size_t count) {
    union tare_attr_item *items;
    TARE_TRY(set_list(node, name, TARE_ATTR_INT, count, &items));
    for (size_t i = 0; i < count; i++)
        items[i].i = values[i];
    return TARE_OK;
}

tare_status tare_node_set_type_list(struct tare_node *node, const char *name, const int *dtypes, size_t count) {
    union tare_attr_item *items;
    TARE_TRY(set_list(node, name, TARE_ATTR_TYPE, count, &items));
    for (size_t i = 0; i < count; i++)
        items[i].type = dtypes[i];
    return TARE_OK;
}

tare_status tare_node_set_shape_list(struct tare_node *node, const char *name, const struct tare_shape *shapes,
                                     size_t count) {
    const struct tare_shape *copies = tare_arena_extend(arena_of(node), shapes, count, 0, sizeof *shapes);
    union tare_attr_item *items;
    if (!copies) return TARE_NO_MEMORY;
    TARE_TRY(set_list(node, name, TARE_ATTR_SHAPE, count, &items));
    for (size_t i = 0; i < count; i++)
        items[i].shape = &copies[i];
    return TARE_OK;
}

tare_status tare_node_set_func_list(struct tare_node *node, const char *name, struct tare_graph *const *functions,
                                    size_t count) {
    union tare_attr_item *items;
    TARE_TRY(set_list(node, name, TARE_ATTR_FUNC, count, &items));
    for (size_t i = 0; i < count; i++)
        items[i].func = (struct tare_func){ .name = functions[i]->name, .graph = functions[i] };
    return TARE_OK;
}

void tare_node_remove_attr(struct tare_node *node, const char *name) {
    struct tare_attr *attr = (struct tare_attr *)tare_node_find_attr(node, name);
    if (!attr) return;
    memmove(attr, attr + 1, (size_t)(node->attrs + node->n_attrs - attr - 1) * sizeof *attr);
    node->n_attrs--;
}

/* The array may be shared with a function that this one was copied from: it is copied first. */
tare_status tare_graph_remove_attr(struct tare_graph *graph, const char *name) {
    const struct tare_attr *gone = tare_graph_find_attr(graph, name);
    struct tare_attr *kept;
    size_t count = 0;
    if (!gone) return TARE_OK;
    kept = TARE_NEW_ARRAY(&graph->model->arena, struct tare_attr, graph->n_attrs);
    if (!kept) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_attrs; i++)
        if (&graph->attrs[i] != gone) kept[count++] = graph->attrs[i];
    graph->attrs = kept;
    graph->n_attrs = count;
    graph->attrs_capacity = count + 1;
    return TARE_OK;
}

tare_status tare_node_copy_attrs(struct tare_node *node, const struct tare_node *from) {
    for (size_t i = 0; i < from->n_attrs; i++) {
        const struct tare_attr *source = &from->attrs[i];
        struct tare_attr *attr = slot(node, source->name);
        if (!attr) return TARE_NO_MEMORY;
        put(node, attr, *source); /* items are never changed in place, so both may point to them */
    }
    return TARE_OK;
}
