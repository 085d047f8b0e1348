/* The flat lists of a node's tensors, and the check of its attributes, from its definition. */
#include "graph/definitions/opdef.h"
#include "base/strbuf.h"
#include "graph/definitions/attr_check.h"
#include "graph/definitions/opspec.h"
#include "graph/attr_text.h"

#include <string.h>

enum { MOST_TENSORS = 1000000 };

/* The node's attribute, or the definition's default. */
static const struct tare_attr *value_of(const struct tare_node *node, const char *name) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    for (size_t i = 0; !attr && i < node->def->n_attrs; i++)
        if (strcmp(node->def->attrs[i].name, name) == 0) attr = node->def->attrs[i].default_value;
    return attr;
}

static tare_status expected(const struct tare_attr **out, const struct tare_node *node, const char *name,
                            enum tare_attr_kind kind, bool is_list) {
    const struct tare_attr *attr = value_of(node, name);
    if (!attr) return TARE_FAIL(TARE_INVALID_ARGUMENT, "NodeDef missing attr '%s' from Op %s", name, node->op);
    if (attr->is_list != is_list || (attr->kind != kind && !(is_list && attr->count == 0)) ||
        (!is_list && attr->count != 1))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "AttrValue had value with type '%s' when '%s' expected for attr '%s'",
                         tare_attr_kind_name(attr->kind, attr->is_list), tare_attr_kind_name(kind, is_list), name);
    *out = attr;
    return TARE_OK;
}

/* How many tensors an argument is. */
static tare_status count_of(size_t *out, const struct tare_node *node, const struct tare_op_arg *arg) {
    const struct tare_attr *attr;
    *out = 1;
    if (arg->number_attr) {
        TARE_TRY(expected(&attr, node, arg->number_attr, TARE_ATTR_INT, false));
        if (attr->items[0].i < 0 || attr->items[0].i > MOST_TENSORS)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' is a number of tensors (expected 0 to %d, got %lld)",
                             arg->number_attr, MOST_TENSORS, (long long)attr->items[0].i);
        *out = (size_t)attr->items[0].i;
    } else if (arg->type_list_attr) {
        TARE_TRY(expected(&attr, node, arg->type_list_attr, TARE_ATTR_TYPE, true));
        if (attr->count > MOST_TENSORS)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "attr '%s' has too many types (expected at most %d, got %zu)",
                             arg->type_list_attr, MOST_TENSORS, attr->count);
        *out = attr->count;
    }
    return TARE_OK;
}

static tare_status fill(int *dtypes, size_t count, const struct tare_node *node, const struct tare_op_arg *arg) {
    const struct tare_attr *attr = NULL;
    if (arg->type_list_attr) TARE_TRY(expected(&attr, node, arg->type_list_attr, TARE_ATTR_TYPE, true));
    if (arg->type_attr) TARE_TRY(expected(&attr, node, arg->type_attr, TARE_ATTR_TYPE, false));
    for (size_t i = 0; i < count; i++) {
        int dtype = !attr ? arg->dtype : attr->items[arg->type_list_attr ? i : 0].type;
        if (!tare_dtype_get(dtype))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid DataType %d for attr '%s'", dtype, attr ? attr->name : "");
        if (arg->is_ref && !tare_dtype_is_ref(dtype)) dtype += TARE_DT_REF_OFFSET;
        dtypes[i] = dtype;
    }
    return TARE_OK;
}

static tare_status list_dtypes(struct tare_arena *arena, const struct tare_node *node, const struct tare_op_arg *args,
                               size_t n_args, int **dtypes, size_t *count) {
    size_t total = 0, size;
    for (size_t i = 0; i < n_args; i++) {
        TARE_TRY(count_of(&size, node, &args[i]));
        total += size;
        if (total > MOST_TENSORS)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "too many tensors (expected at most %d)", MOST_TENSORS);
    }
    *dtypes = TARE_NEW_ARRAY(arena, int, total + 1);
    if (!*dtypes) return TARE_NO_MEMORY;
    *count = 0;
    for (size_t i = 0; i < n_args; i++) {
        TARE_TRY(count_of(&size, node, &args[i]));
        TARE_TRY(fill(*dtypes + *count, size, node, &args[i]));
        *count += size;
    }
    return TARE_OK;
}

static tare_status name_node(const struct tare_node *node, tare_status status) {
    return tare_error_prefix(status, "%s '%s'", node->op, node->name);
}

tare_status tare_opdef_output_dtypes(struct tare_arena *arena, const struct tare_node *node, int **dtypes,
                                     size_t *count) {
    return name_node(node, list_dtypes(arena, node, node->def->outputs, node->def->n_outputs, dtypes, count));
}

tare_status tare_opdef_input_dtypes(struct tare_arena *arena, const struct tare_node *node, int **dtypes,
                                    size_t *count) {
    return name_node(node, list_dtypes(arena, node, node->def->inputs, node->def->n_inputs, dtypes, count));
}

/* TARE_OK when input `i` is an output of a live node of the same graph. */
static tare_status check_edge(const struct tare_node *node, size_t i) {
    const struct tare_edge edge = node->inputs[i];
    if (!edge.node) return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is not connected", i);
    if (edge.node->dead || edge.node->graph != node->graph)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is %s, which is not in the graph", i, edge.node->name);
    if (edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is output %d of %s, which has %zu outputs", i, edge.index,
                         edge.node->name, edge.node->n_outputs);
    return TARE_OK;
}

static void print_dtypes(struct tare_strbuf *text, const int *dtypes, size_t count) {
    for (size_t i = 0; i < count && i < 32; i++)
        tare_strbuf_printf(text, "%s%s", i ? ", " : "", tare_dtype_name(dtypes[i]));
    if (count > 32) tare_strbuf_puts(text, ", ...");
}

static tare_status check_dtypes(const struct tare_node *node, const int *expected, size_t count) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    if (count != node->n_inputs) {
        print_dtypes(&text, expected, count);
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "NodeDef expected inputs '%s' do not match %zu inputs specified",
                           tare_strbuf_text(&text), node->n_inputs);
        tare_strbuf_free(&text);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        int got;
        TARE_TRY(check_edge(node, i));
        got = node->inputs[i].node->output_dtypes[node->inputs[i].index];
        if (got == TARE_DT_INVALID) continue; /* of an undefined op, which is reported separately */
        if (tare_dtype_base(got) != tare_dtype_base(expected[i]))
            return TARE_FAIL(TARE_TYPE, "input %zu is %s (expected %s)", i, tare_dtype_name(got),
                             tare_dtype_name(expected[i]));
        if (tare_dtype_is_ref(expected[i]) && !tare_dtype_is_ref(got))
            return TARE_FAIL(TARE_TYPE, "input %zu is a value (expected a reference to a variable)", i);
    }
    return TARE_OK;
}

tare_status tare_opdef_check_inputs(const struct tare_node *node) {
    struct tare_arena arena = { 0 };
    int *dtypes;
    size_t count;
    tare_status status = list_dtypes(&arena, node, node->def->inputs, node->def->n_inputs, &dtypes, &count);
    if (status == TARE_OK) status = check_dtypes(node, dtypes, count);
    tare_arena_free(&arena);
    return status;
}

static tare_status missing(const struct tare_node *node) {
    struct tare_strbuf names = { 0 };
    size_t count = 0;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < node->def->n_attrs; i++) {
        const struct tare_op_attr *attr = &node->def->attrs[i];
        if (attr->default_value || tare_node_find_attr(node, attr->name)) continue;
        tare_strbuf_printf(&names, "%s'%s'", count++ ? ", " : "", attr->name);
    }
    if (count)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "NodeDef missing attr%s %s from Op %s", count > 1 ? "s" : "",
                           tare_strbuf_text(&names), node->op);
    tare_strbuf_free(&names);
    return status;
}

tare_status tare_opdef_check_attrs(const struct tare_node *node) {
    TARE_TRY(name_node(node, missing(node)));
    for (size_t i = 0; i < node->def->n_attrs; i++) {
        const struct tare_attr *attr = tare_node_find_attr(node, node->def->attrs[i].name);
        if (attr) TARE_TRY(name_node(node, tare_attr_check(attr, &node->def->attrs[i])));
    }
    return TARE_OK;
}

tare_status tare_opdef_check_attr_kinds(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++) {
        const char *name = node->attrs[i].name;
        const struct tare_op_attr *attr = tare_op_def_find_attr(node->def, name, strlen(name));
        if (attr) TARE_TRY(tare_attr_check_kind(&node->attrs[i], attr));
    }
    return TARE_OK;
}

static tare_status range(const struct tare_node *node, const struct tare_op_arg *args, size_t n_args, size_t arg,
                         size_t *first, size_t *count) {
    *first = *count = 0;
    if (arg >= n_args)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s '%s' has no argument %zu (expected less than %zu)", node->op,
                         node->name, arg, n_args);
    for (size_t i = 0; i <= arg; i++) {
        *first += *count;
        TARE_TRY(name_node(node, count_of(count, node, &args[i])));
    }
    return TARE_OK;
}

/* A call of a function by its name has one tensor an argument. */
static tare_status call_range(const struct tare_node *node, size_t tensors, size_t arg, size_t *first, size_t *count) {
    if (arg >= tensors)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s '%s' has no argument %zu (expected less than %zu)", node->op,
                         node->name, arg, tensors);
    *first = arg;
    *count = 1;
    return TARE_OK;
}

tare_status tare_node_output_range(const struct tare_node *node, size_t arg, size_t *first, size_t *count) {
    if (!node->def) return call_range(node, node->n_outputs, arg, first, count);
    return range(node, node->def->outputs, node->def->n_outputs, arg, first, count);
}

tare_status tare_node_input_range(const struct tare_node *node, size_t arg, size_t *first, size_t *count) {
    if (!node->def) return call_range(node, node->n_inputs, arg, first, count);
    return range(node, node->def->inputs, node->def->n_inputs, arg, first, count);
}

/* ---- attributes from inputs ---- */

static bool is_list(const struct tare_node *node, const struct tare_op_arg *arg) {
    if (arg->number_attr) return !tare_node_find_attr(node, arg->number_attr);
    return arg->type_list_attr && !tare_node_find_attr(node, arg->type_list_attr);
}

/* Number of tensors of an argument that the node's attributes determine, 1 without any. */
static size_t known_size(const struct tare_node *node, const struct tare_op_arg *arg) {
    const struct tare_attr *list = arg->type_list_attr ? tare_node_find_attr(node, arg->type_list_attr) : NULL;
    if (arg->number_attr) return (size_t)tare_node_int(node, arg->number_attr, 1);
    return list ? list->count : 1;
}

static tare_status set_types(struct tare_node *node, const struct tare_op_arg *arg, const int *dtypes, size_t count) {
    if (arg->number_attr && !tare_node_find_attr(node, arg->number_attr))
        TARE_TRY(tare_node_set_int(node, arg->number_attr, (int64_t)count));
    if (arg->type_list_attr && !tare_node_find_attr(node, arg->type_list_attr))
        return tare_node_set_type_list(node, arg->type_list_attr, dtypes, count);
    if (arg->type_attr && count && !tare_node_find_attr(node, arg->type_attr))
        return tare_node_set_type(node, arg->type_attr, dtypes[0]);
    return TARE_OK;
}

tare_status tare_opdef_set_attrs_for(struct tare_node *node, const int *dtypes, size_t n) {
    const struct tare_op_def *def = node->def;
    size_t fixed = 0, lists = 0, at = 0;
    for (size_t a = 0; def && a < def->n_inputs; a++) {
        lists += is_list(node, &def->inputs[a]);
        if (!is_list(node, &def->inputs[a])) fixed += known_size(node, &def->inputs[a]);
    }
    if (!def || lists > 1 || fixed > n) return TARE_OK; /* tare_node_resolve reports what is missing */
    for (size_t a = 0; a < def->n_inputs; a++) {
        const struct tare_op_arg *arg = &def->inputs[a];
        const size_t count = is_list(node, arg) ? n - fixed : known_size(node, arg);
        if (at + count > n) return TARE_OK;
        TARE_TRY(set_types(node, arg, dtypes + at, count));
        at += count;
    }
    return TARE_OK;
}

tare_status tare_opdef_set_input_attrs(struct tare_node *node) {
    struct tare_arena scratch = { 0 };
    int *dtypes = TARE_NEW_ARRAY(&scratch, int, node->n_inputs + 1);
    tare_status status = dtypes ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; dtypes && i < node->n_inputs; i++)
        dtypes[i] = tare_dtype_base(tare_edge_dtype(node->inputs[i]));
    if (status == TARE_OK) status = tare_opdef_set_attrs_for(node, dtypes, node->n_inputs);
    tare_arena_free(&scratch);
    return status;
}
