/* Access to a node for libraries: its arguments and attributes. */
#include "graph/attr_text.h"
#include "interpreter/kernel.h"
#include "interpreter/plugins/host.h"

#include <string.h>

static const char *node_name(const tare_op_context *c) {
    return c->node->name;
}

static size_t input_count(const tare_op_context *c) {
    return c->node->n_inputs;
}

static size_t output_count(const tare_op_context *c) {
    return c->node->n_outputs;
}

static int output_dtype(const tare_op_context *c, size_t i) {
    return i < c->node->n_outputs ? tare_dtype_base(c->node->output_dtypes[i]) : TARE_DT_INVALID;
}

static int find_arg(const struct tare_op_arg *args, size_t count, const char *name, const char *side, size_t *out) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(args[i].name, name) == 0) return *out = i, TARE_OK;
    return (int)TARE_FAIL(TARE_INVALID_ARGUMENT, "the op has no %s '%s'", side, name);
}

static int input_range(const tare_op_context *c, const char *name, size_t *first, size_t *count) {
    size_t arg;
    int code = find_arg(c->node->def->inputs, c->node->def->n_inputs, name, "input", &arg);
    return code ? code : (int)tare_node_input_range(c->node, arg, first, count);
}

static int output_range(const tare_op_context *c, const char *name, size_t *first, size_t *count) {
    size_t arg;
    int code = find_arg(c->node->def->outputs, c->node->def->n_outputs, name, "output", &arg);
    return code ? code : (int)tare_node_output_range(c->node, arg, first, count);
}

/* ---- attributes ---- */

/* The node's value, or the default; a name that is not registered is an error. */
static tare_status find_attr(const tare_op_context *c, const char *name, const struct tare_op_attr **def,
                             const struct tare_attr **out) {
    *def = tare_op_def_find_attr(c->node->def, name, strlen(name));
    if (!*def) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the op has no attribute '%s'", name);
    *out = tare_node_find_attr(c->node, name);
    if (!*out) *out = (*def)->default_value;
    if (!*out) return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' has no value", name);
    return TARE_OK;
}

/* Entry `index` of a list, or the value of a plain attribute (-1). */
static tare_status find_item(const tare_op_context *c, const char *name, enum tare_attr_kind kind, int64_t index,
                             const union tare_attr_item **out) {
    const struct tare_op_attr *def;
    const struct tare_attr *attr;
    TARE_TRY(find_attr(c, name, &def, &attr));
    if (def->kind != kind || def->is_list != (index >= 0))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' is of type %s (asked for %s)", name,
                         tare_attr_kind_name(def->kind, def->is_list), tare_attr_kind_name(kind, index >= 0));
    if (attr->is_list != def->is_list || (attr->kind != kind && attr->count))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' holds a value of type %s (expected %s)", name,
                         tare_attr_kind_name(attr->kind, attr->is_list), tare_attr_kind_name(kind, index >= 0));
    if (index < 0) index = 0;
    if ((size_t)index >= attr->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' has no entry %lld (it has %zu)", name, (long long)index,
                         attr->count);
    *out = &attr->items[index];
    return TARE_OK;
}

static int attr_length(const tare_op_context *c, const char *name, int64_t *out) {
    const struct tare_op_attr *def;
    const struct tare_attr *attr;
    TARE_TRY(find_attr(c, name, &def, &attr));
    if (!def->is_list || !attr->is_list)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' is of type %s (asked for the length of a list)", name,
                         tare_attr_kind_name(def->kind, def->is_list));
    *out = (int64_t)attr->count;
    return TARE_OK;
}

static int attr_int(const tare_op_context *c, const char *name, int64_t index, int64_t *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_INT, index, &item));
    *out = item->i;
    return TARE_OK;
}

static int attr_float(const tare_op_context *c, const char *name, int64_t index, float *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_FLOAT, index, &item));
    *out = item->f;
    return TARE_OK;
}

static int attr_bool(const tare_op_context *c, const char *name, int64_t index, int *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_BOOL, index, &item));
    *out = item->b;
    return TARE_OK;
}

static int attr_type(const tare_op_context *c, const char *name, int64_t index, int *out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_TYPE, index, &item));
    *out = tare_dtype_base(item->type);
    return TARE_OK;
}

static int attr_string(const tare_op_context *c, const char *name, int64_t index, const char **data, size_t *size) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_STRING, index, &item));
    *data = item->s.data ? item->s.data : "";
    *size = item->s.size;
    return TARE_OK;
}

static int attr_shape(const tare_op_context *c, const char *name, int64_t index, const tare_op_shape **out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_SHAPE, index, &item));
    *out = tare_plugin_shape(item->shape);
    return TARE_OK;
}

/* A compressed constant is expanded while the library's function runs. */
static int attr_tensor(tare_op_context *c, const char *name, int64_t index, const tare_op_tensor **out) {
    const union tare_attr_item *item;
    struct tare_plugin_read *read;
    TARE_TRY(find_item(c, name, TARE_ATTR_TENSOR, index, &item));
    *out = tare_plugin_tensor(item->tensor);
    if (!item->tensor->splat) return TARE_OK;
    read = TARE_NEW(c->kernel ? c->kernel->scratch : c->infer->arena, struct tare_plugin_read);
    if (!read) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_copy(&read->value, item->tensor));
    read->input = SIZE_MAX;
    read->next = c->reads;
    c->reads = read;
    *out = tare_plugin_tensor(&read->value);
    return TARE_OK;
}

int tare_plugin_attr_func(const tare_op_context *c, const char *name, int64_t index, const char **out) {
    const union tare_attr_item *item;
    TARE_TRY(find_item(c, name, TARE_ATTR_FUNC, index, &item));
    *out = item->func.name;
    return TARE_OK;
}

void tare_plugin_host_node(struct tare_op_host *host) {
    host->node_name = node_name;
    host->input_count = input_count;
    host->output_count = output_count;
    host->input_range = input_range;
    host->output_range = output_range;
    host->output_dtype = output_dtype;
    host->attr_length = attr_length;
    host->attr_int = attr_int;
    host->attr_float = attr_float;
    host->attr_bool = attr_bool;
    host->attr_type = attr_type;
    host->attr_string = attr_string;
    host->attr_shape = attr_shape;
    host->attr_tensor = attr_tensor;
    host->attr_func = tare_plugin_attr_func;
}
