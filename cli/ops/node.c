/* A single op: infers its output shapes, or writes it as a model. */
#include "cli/ops/node.h"
#include "interpreter/inference/infer.h"
#include "convert/saved_model.h"
#include "graph/model.h"
#include "graph/definitions/opdef.h"
#include "graph/definitions/opspec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was given ---- */

/* "[2,?]", "[]", or "?" for an unknown shape; a dtype may precede it: "float[2,?]". *dtype: TARE_DT_INVALID without. */
static tare_status parse_shape(struct tare_shape *out, int *dtype, const char *text) {
    const size_t type = strcspn(text, "[?");
    const char *at = text + type;
    *out = tare_shape_unknown();
    *dtype = type ? tare_dtype_from_name(text, type) : TARE_DT_INVALID;
    if (type && *dtype == TARE_DT_INVALID)
        return TARE_FAIL(TARE_USAGE, "option '--shape': '%.*s' is not a dtype (expected, for example, float[2,?])",
                         (int)type, text);
    if (strcmp(at, "?") == 0) return TARE_OK;
    out->rank = 0;
    if (*at++ != '[') goto bad;
    while (*at != ']') {
        char *end = NULL;
        int64_t dim = TARE_UNKNOWN_DIM;
        if (out->rank == TARE_MAX_RANK) goto bad;
        errno = 0;
        if (*at == '?')
            at++;
        else if (*at < '0' || *at > '9' || (dim = strtoll(at, &end, 10), errno))
            goto bad;
        else
            at = end;
        out->dims[out->rank++] = dim;
        if (*at == ',' && at[1] != ']')
            at++;
        else if (*at != ']')
            goto bad;
    }
    if (!at[1]) return TARE_OK;
bad:
    return TARE_FAIL(TARE_USAGE, "option '--shape': '%s' is not a shape (expected [2,?], [], ? or float[2,?])", text);
}

static tare_status set_attr(struct tare_node *node, struct tare_opspec_memory *memory, const char *text) {
    const char *equals = strchr(text, '=');
    const struct tare_op_attr *def;
    struct tare_attr *value;
    struct tare_node from = { .n_attrs = 1 };
    if (!equals) return TARE_FAIL(TARE_USAGE, "option '--attr': '%s' is not NAME=VALUE", text);
    def = tare_op_def_find_attr(node->def, text, (size_t)(equals - text));
    if (!def)
        return TARE_FAIL(TARE_USAGE, "option '--attr': the op has no attribute '%.*s'", (int)(equals - text), text);
    equals++;
    if (def->kind == TARE_ATTR_STRING && !def->is_list && *equals != '\'' && *equals != '"')
        return tare_node_set_string(node, def->name, equals, strlen(equals));
    value = tare_opspec_parse_value(memory, def->kind, def->is_list, equals, strlen(equals));
    if (!value)
        return TARE_FAIL(TARE_USAGE, "option '--attr': '%s' is not a valid value of attribute '%s'", equals, def->name);
    value->name = def->name;
    from.attrs = value;
    return tare_node_copy_attrs(node, &from);
}

/* N of one list of inputs "N * T" follows from the number of shapes, whatever their dtypes. */
static tare_status infer_number(struct tare_node *node, size_t count) {
    const struct tare_op_def *def = node->def;
    const char *number = NULL;
    size_t lists = 0, single = 0;
    for (size_t i = 0; i < def->n_inputs; i++) {
        if (def->inputs[i].type_list_attr) return TARE_OK;
        if (number && def->inputs[i].number_attr && strcmp(number, def->inputs[i].number_attr) != 0) return TARE_OK;
        if (def->inputs[i].number_attr) number = def->inputs[i].number_attr, lists++;
        single += !def->inputs[i].number_attr;
    }
    if (!number || tare_node_find_attr(node, number) || count < single || (count - single) % lists) return TARE_OK;
    return tare_node_set_int(node, number, (int64_t)((count - single) / lists));
}

/* Attributes follow from the dtypes if all inputs state theirs; otherwise defaults and --attr decide. */
static tare_status infer_attrs(struct tare_node *node, const int *stated, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!stated[i]) return infer_number(node, count);
    return tare_opdef_set_attrs_for(node, stated, count);
}

static tare_status check_dtypes(const struct tare_ops_node *given, const int *dtypes, const int *stated) {
    for (size_t i = 0; i < given->shapes->count; i++)
        if (stated[i] && stated[i] != tare_dtype_base(dtypes[i]))
            return TARE_FAIL(TARE_USAGE, "option '--shape': input %zu is %s (expected %s)", i,
                             tare_dtype_name(stated[i]), tare_dtype_name(tare_dtype_base(dtypes[i])));
    return TARE_OK;
}

/* Creates the node with its attributes; inputs are connected later. */
static tare_status open_node(struct tare_node **out, struct tare_graph *graph, struct tare_opspec_memory *memory,
                             const struct tare_ops_node *given, int **dtypes, struct tare_shape **shapes) {
    struct tare_arena *arena = &graph->model->arena;
    struct tare_node *node = tare_graph_add(graph, given->op, given->op);
    int *stated = TARE_NEW_ARRAY(arena, int, given->shapes->count + 1);
    size_t count;
    *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, given->shapes->count + 1);
    if (!node || !*shapes || !stated) return TARE_NO_MEMORY;
    for (size_t i = 0; i < given->shapes->count; i++)
        TARE_TRY(parse_shape(&(*shapes)[i], &stated[i], given->shapes->items[i]));
    for (size_t i = 0; i < given->attrs->count; i++)
        TARE_TRY(set_attr(node, memory, given->attrs->items[i]));
    TARE_TRY(infer_attrs(node, stated, given->shapes->count));
    TARE_TRY(tare_opdef_check_attrs(node));
    TARE_TRY(tare_opdef_input_dtypes(arena, node, dtypes, &count));
    if (count != given->shapes->count)
        return TARE_FAIL(TARE_USAGE, "%zu input shapes (expected %zu, one --shape per input)", given->shapes->count,
                         count);
    TARE_TRY(check_dtypes(given, *dtypes, stated));
    *out = node;
    return TARE_OK;
}

/* Name of the flat input or output i: that of its argument, with an index for lists. */
static const char *tensor_name(const struct tare_node *node, size_t i, bool output) {
    const struct tare_op_arg *args = output ? node->def->outputs : node->def->inputs;
    size_t count = output ? node->def->n_outputs : node->def->n_inputs, first, size;
    for (size_t a = 0; a < count; a++) {
        if ((output ? tare_node_output_range : tare_node_input_range)(node, a, &first, &size) != TARE_OK) return NULL;
        if (i < first || i >= first + size) continue;
        if (!args[a].number_attr && !args[a].type_list_attr) return args[a].name;
        return tare_arena_printf(&node->graph->model->arena, "%s_%zu", args[a].name, i - first);
    }
    return NULL;
}

/* ---- shapes ---- */

static tare_status print_shapes(const struct tare_node *node, const struct tare_shape *shapes) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < node->n_outputs; i++) {
        const char *name = tensor_name(node, i, true);
        if (!name) return TARE_NO_MEMORY;
        printf("%s %s %s\n", name, tare_dtype_name(node->output_dtypes[i]), tare_shape_text(text, &shapes[i]));
    }
    return TARE_OK;
}

static tare_status infer(struct tare_graph_model *model, struct tare_opspec_memory *memory,
                         const struct tare_ops_node *given) {
    struct tare_graph *function = tare_model_add_function(model, "infer");
    struct tare_shape *shapes, **inferred;
    struct tare_node *node;
    int *dtypes;
    if (!function) return TARE_NO_MEMORY;
    TARE_TRY(open_node(&node, function, memory, given, &dtypes, &shapes));
    for (size_t i = 0; i < given->shapes->count; i++) {
        struct tare_node *arg = tare_graph_add_arg(function, "input", tare_dtype_base(dtypes[i]));
        if (!arg) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_input(node, (struct tare_edge){ arg, 0 }));
    }
    TARE_TRY(tare_node_resolve(node));
    TARE_TRY(tare_graph_infer_shapes(&inferred, &model->arena, function, shapes));
    return print_shapes(node, inferred[node->position]);
}

/* ---- a model ---- */

static tare_status add_placeholder(struct tare_binding *binding, struct tare_node *node, size_t i, int dtype,
                                   const struct tare_shape *shape) {
    struct tare_node *placeholder;
    *binding = (struct tare_binding){ .key = tensor_name(node, i, false), .dtype = dtype, .shape = *shape };
    placeholder = binding->key ? tare_graph_add(node->graph, "Placeholder", binding->key) : NULL;
    if (!placeholder) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(placeholder, "dtype", dtype));
    TARE_TRY(tare_node_set_shape(placeholder, "shape", shape));
    TARE_TRY(tare_node_resolve(placeholder));
    binding->edge = (struct tare_edge){ placeholder, 0 };
    return tare_node_add_input(node, binding->edge);
}

static tare_status add_outputs(struct tare_signature *signature, struct tare_node *node) {
    struct tare_arena *arena = &node->graph->model->arena;
    struct tare_shape **inferred;
    TARE_TRY(tare_graph_infer_shapes(&inferred, arena, node->graph, NULL));
    signature->outputs = TARE_NEW_ARRAY(arena, struct tare_binding, node->n_outputs + 1);
    if (!signature->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_outputs; i++) {
        signature->outputs[i] = (struct tare_binding){ .key = tensor_name(node, i, true),
                                                       .dtype = tare_dtype_base(node->output_dtypes[i]),
                                                       .shape = inferred[node->position][i],
                                                       .edge = { node, (int)i } };
        if (!signature->outputs[i].key) return TARE_NO_MEMORY;
        signature->n_outputs++;
    }
    return TARE_OK;
}

static tare_status build(struct tare_graph_model *model, struct tare_opspec_memory *memory,
                         const struct tare_ops_node *given) {
    struct tare_signature *signature = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_shape *shapes;
    struct tare_node *node;
    int *dtypes;
    if (!signature) return TARE_NO_MEMORY;
    TARE_TRY(open_node(&node, model->main, memory, given, &dtypes, &shapes));
    *signature = (struct tare_signature){ .key = "serving_default", .method_name = "tensorflow/serving/predict" };
    signature->inputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, given->shapes->count + 1);
    if (!signature->inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < given->shapes->count; i++) {
        if (tare_dtype_is_ref(dtypes[i]))
            return TARE_FAIL(TARE_UNSUPPORTED, "input %zu is a reference, which requires a variable", i);
        TARE_TRY(add_placeholder(&signature->inputs[i], node, i, dtypes[i], &shapes[i]));
        signature->n_inputs++;
    }
    TARE_TRY(tare_node_resolve(node));
    TARE_TRY(add_outputs(signature, node));
    if (!signature->n_outputs)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s has no output that a signature can return", given->op);
    model->signatures = signature;
    model->n_signatures = 1;
    return TARE_OK;
}

/* ---- both ---- */

/* path NULL: prints the shapes. */
static tare_status on_model(const char *path, const struct tare_op_registry *registry,
                            const struct tare_ops_node *given) {
    struct tare_graph_model *model = tare_model_new(registry);
    struct tare_opspec_memory memory = { 0 };
    tare_status status = TARE_NO_MEMORY;
    if (model) model->custom_ops = tare_ops_new(registry);
    if (model && model->custom_ops) status = path ? build(model, &memory, given) : infer(model, &memory, given);
    if (status == TARE_OK && path) status = tare_saved_model_export(model, path, NULL);
    tare_model_free(model);
    tare_opspec_memory_free(&memory);
    return status;
}

tare_status tare_ops_infer(const struct tare_op_registry *registry, const struct tare_ops_node *given) {
    return on_model(NULL, registry, given);
}

tare_status tare_ops_save_model(const char *path, const struct tare_op_registry *registry,
                                const struct tare_ops_node *given) {
    return on_model(path, registry, given);
}
