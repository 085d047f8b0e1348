/* Rewrites of composite functions by libraries: their registration, and the functions with which they read the
 * interface of a function and build its new body. Values are edges of the graph; a node is resolved when its first
 * output is asked for, after the library has set its attributes. */
#include "graph/definitions/opdef.h"
#include "base/format.h"
#include "interpreter/plugins/host.h"

#include <stdio.h>
#include <string.h>

struct tare_op_composite {
    struct tare_plugin_rewrite *rewrite;
};

/* ---- registration ---- */

static void add_composite(tare_op_library *library, const char *pattern, tare_op_composite_function rewrite) {
    struct tare_plugin_composite *composite = TARE_NEW(library->arena, struct tare_plugin_composite);
    const size_t size = pattern ? strlen(pattern) : 0;
    char *copy = tare_arena_strdup(library->arena, pattern ? pattern : "");
    if (!composite || !copy) {
        library->out_of_memory = true;
        return;
    }
    composite->is_prefix = size && copy[size - 1] == '*';
    if (composite->is_prefix) copy[size - 1] = '\0';
    composite->pattern = copy;
    composite->rewrite = rewrite;
    composite->library = library;
    *library->last_composite = composite;
    library->last_composite = &composite->next;
}

/* ---- values ---- */

static tare_op_value value_of(struct tare_edge edge) {
    return (tare_op_value){ edge.node, edge.index };
}

static struct tare_edge edge_of(tare_op_value value) {
    return (struct tare_edge){ (struct tare_node *)(uintptr_t)value.node, value.output };
}

static tare_status check_value(const struct tare_op_composite *c, tare_op_value value) {
    const struct tare_edge edge = edge_of(value);
    if (!edge.node || edge.node->graph != c->rewrite->graph)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a value that is not of this function");
    return TARE_OK;
}

static int value_dtype(tare_op_value value) {
    return value.node ? tare_dtype_base(tare_edge_dtype(edge_of(value))) : TARE_DT_INVALID;
}

/* ---- the interface ---- */

static const char *composite_name(const tare_op_composite *c) {
    return c->rewrite->name;
}

static size_t composite_arguments(const tare_op_composite *c) {
    return c->rewrite->graph->n_args;
}

static size_t composite_results(const tare_op_composite *c) {
    return c->rewrite->graph->n_returns;
}

static int composite_argument(const tare_op_composite *c, size_t i, tare_op_value *out) {
    const struct tare_graph *graph = c->rewrite->graph;
    if (i >= graph->n_args)
        return (int)TARE_FAIL(TARE_INVALID_ARGUMENT, "there is no argument %zu (the function has %zu)", i,
                              graph->n_args);
    *out = value_of((struct tare_edge){ graph->args[i], 0 });
    return TARE_OK;
}

static const tare_op_shape *composite_argument_shape(const tare_op_composite *c, size_t i) {
    return i < c->rewrite->graph->n_args ? tare_plugin_shape(&c->rewrite->shapes[i]) : NULL;
}

static int composite_result_dtype(const tare_op_composite *c, size_t i) {
    const struct tare_graph *graph = c->rewrite->graph;
    return i < graph->n_returns ? tare_dtype_base(graph->returns[i].dtype) : TARE_DT_INVALID;
}

static const struct tare_attr *find_attr(const tare_op_composite *c, const char *name) {
    for (size_t i = 0; i < c->rewrite->n_attrs; i++)
        if (strcmp(c->rewrite->attrs[i].name, name) == 0) return &c->rewrite->attrs[i];
    return NULL;
}

static int composite_has_attr(const tare_op_composite *c, const char *name) {
    return find_attr(c, name) != NULL;
}

static tare_status find_item(const tare_op_composite *c, const char *name, enum tare_attr_kind kind,
                             const union tare_attr_item **out) {
    const struct tare_attr *attr = find_attr(c, name);
    if (!attr) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the annotation has no attribute '%s'", name);
    if (attr->kind != kind || attr->is_list || !attr->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attribute '%s' of the annotation has another type", name);
    *out = attr->items;
    return TARE_OK;
}

static int composite_attr_int(const tare_op_composite *c, const char *name, int64_t *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_INT, &item));
    *out = item->i;
    return TARE_OK;
}

static int composite_attr_float(const tare_op_composite *c, const char *name, float *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_FLOAT, &item));
    *out = item->f;
    return TARE_OK;
}

static int composite_attr_bool(const tare_op_composite *c, const char *name, int *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_BOOL, &item));
    *out = item->b;
    return TARE_OK;
}

static int composite_attr_string(const tare_op_composite *c, const char *name, const char **data, size_t *size) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_STRING, &item));
    *data = item->s.data;
    *size = item->s.size;
    return TARE_OK;
}

static int composite_decline(tare_op_composite *c, const char *format, va_list args) {
    char text[512];
    tare_format_va(text, sizeof text, format, args);
    c->rewrite->reason = tare_arena_strdup(c->rewrite->arena, text);
    return c->rewrite->reason ? (int)TARE_OK : (int)TARE_NO_MEMORY;
}

/* ---- the body ---- */

static const struct tare_op_registry *ops_of(const struct tare_graph_model *model) {
    return model->custom_ops ? model->custom_ops : model->ops;
}

static struct tare_node *node_of(tare_op_node *node) {
    return (struct tare_node *)node;
}

static int composite_add_node(tare_op_composite *c, const char *op, const char *name, const tare_op_value *inputs,
                              size_t n_inputs, tare_op_node **out) {
    struct tare_node *node;
    if (!tare_ops_find(ops_of(c->rewrite->graph->model), op))
        return (int)TARE_FAIL(TARE_NOT_FOUND, "there is no op '%s'", op);
    node = tare_graph_add(c->rewrite->graph, op, name);
    if (!node) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs; i++) {
        TARE_TRY(check_value(c, inputs[i]));
        TARE_TRY(tare_node_add_input(node, edge_of(inputs[i])));
    }
    *out = (tare_op_node *)node;
    return (int)tare_opdef_set_input_attrs(node);
}

static int node_set_int(tare_op_node *node, const char *name, int64_t value) {
    return (int)tare_node_set_int(node_of(node), name, value);
}

static int node_set_float(tare_op_node *node, const char *name, float value) {
    return (int)tare_node_set_float(node_of(node), name, value);
}

static int node_set_bool(tare_op_node *node, const char *name, int value) {
    return (int)tare_node_set_bool(node_of(node), name, value != 0);
}

static int node_set_type(tare_op_node *node, const char *name, int dtype) {
    return (int)tare_node_set_type(node_of(node), name, dtype);
}

static int node_set_string(tare_op_node *node, const char *name, const char *data, size_t size) {
    return (int)tare_node_set_string(node_of(node), name, data, size);
}

static int node_set_ints(tare_op_node *node, const char *name, const int64_t *values, size_t count) {
    return (int)tare_node_set_int_list(node_of(node), name, values, count);
}

static int node_output(tare_op_node *node, int i, tare_op_value *out) {
    struct tare_node *at = node_of(node);
    if (!at->output_dtypes) TARE_TRY(tare_node_resolve(at));
    if (i < 0 || (size_t)i >= at->n_outputs)
        return (int)TARE_FAIL(TARE_INVALID_ARGUMENT, "node '%s' has no output %d (it has %zu)", at->name, i,
                              at->n_outputs);
    *out = value_of((struct tare_edge){ at, i });
    return TARE_OK;
}

static int composite_add_constant(tare_op_composite *c, const char *name, int dtype, int rank, const int64_t *dims,
                                  const void *data, tare_op_value *out) {
    struct tare_shape shape = { .rank = rank };
    struct tare_tensor value;
    struct tare_node *node;
    if (rank < 0 || rank > TARE_MAX_RANK || !tare_dtype_size(dtype) || dtype == TARE_DT_STRING)
        return (int)TARE_FAIL(TARE_INVALID_ARGUMENT, "a constant of rank %d and dtype %s", rank,
                              tare_dtype_name(dtype));
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    TARE_TRY(tare_tensor_from(&value, dtype, &shape, data));
    node = tare_graph_add_const(c->rewrite->graph, name, &value);
    tare_tensor_reset(&value);
    if (!node) return TARE_NO_MEMORY;
    *out = value_of((struct tare_edge){ node, 0 });
    return TARE_OK;
}

static int composite_set_result(tare_op_composite *c, size_t i, tare_op_value value) {
    const struct tare_graph *graph = c->rewrite->graph;
    TARE_TRY(check_value(c, value));
    if (i >= graph->n_returns)
        return (int)TARE_FAIL(TARE_INVALID_ARGUMENT, "there is no result %zu (the function has %zu)", i,
                              graph->n_returns);
    if (value_dtype(value) != tare_dtype_base(graph->returns[i].dtype))
        return (int)TARE_FAIL(TARE_TYPE, "result %zu is %s (expected %s)", i, tare_dtype_name(value_dtype(value)),
                              tare_dtype_name(graph->returns[i].dtype));
    c->rewrite->results[i] = edge_of(value);
    return TARE_OK;
}

/* ---- running ---- */

static tare_status run(const struct tare_plugin_composite *composite, struct tare_plugin_rewrite *rewrite) {
    struct tare_op_composite c = { .rewrite = rewrite };
    rewrite->reason = NULL;
    if (!composite->rewrite) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the rewrite has no function");
    tare_error_clear();
    TARE_TRY(tare_plugin_status(composite->rewrite(&c), "the rewrite"));
    for (size_t i = 0; i < rewrite->graph->n_returns && !rewrite->reason; i++)
        if (!rewrite->results[i].node) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the rewrite sets no result %zu", i);
    return TARE_OK;
}

tare_status tare_plugin_composite_run(const struct tare_plugin_composite *composite,
                                      struct tare_plugin_rewrite *rewrite) {
    return tare_error_prefix(run(composite, rewrite), "plugin %s: composite '%s'", composite->library->path,
                             rewrite->name);
}

void tare_plugin_host_composites(struct tare_op_host *host) {
    host->add_composite = add_composite;
    host->composite_name = composite_name;
    host->composite_arguments = composite_arguments;
    host->composite_results = composite_results;
    host->composite_argument = composite_argument;
    host->composite_argument_shape = composite_argument_shape;
    host->composite_result_dtype = composite_result_dtype;
    host->composite_has_attr = composite_has_attr;
    host->composite_attr_int = composite_attr_int;
    host->composite_attr_float = composite_attr_float;
    host->composite_attr_bool = composite_attr_bool;
    host->composite_attr_string = composite_attr_string;
    host->composite_decline = composite_decline;
    host->composite_add_node = composite_add_node;
    host->composite_add_constant = composite_add_constant;
    host->composite_set_result = composite_set_result;
    host->value_dtype = value_dtype;
    host->node_set_int = node_set_int;
    host->node_set_float = node_set_float;
    host->node_set_bool = node_set_bool;
    host->node_set_type = node_set_type;
    host->node_set_string = node_set_string;
    host->node_set_ints = node_set_ints;
    host->node_output = node_output;
}
