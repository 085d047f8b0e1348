/* What an op's shape function makes of given input shapes: a function of that one node, inferred. */
#include "cli/ops_infer.h"
#include "graph/model.h"
#include "graph/opdef.h"
#include "graph/opspec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "[2,?]", "[]"; "?" for nothing known. */
static tare_status parse_shape(struct tare_shape *out, const char *text) {
    const char *at = text;
    *out = tare_shape_unknown();
    if (strcmp(text, "?") == 0) return TARE_OK;
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
    return TARE_FAIL(TARE_USAGE, "'%s' is no shape (wanted [2,?], [] or ?)", text);
}

static tare_status set_attr(struct tare_node *node, struct tare_opspec_memory *memory, const char *text) {
    const char *equals = strchr(text, '=');
    const struct tare_op_attr *def;
    struct tare_attr *value;
    struct tare_node from = { .n_attrs = 1 };
    if (!equals) return TARE_FAIL(TARE_USAGE, "option '--attr': '%s' is not NAME=VALUE", text);
    def = tare_op_def_find_attr(node->def, text, (size_t)(equals - text));
    if (!def) return TARE_FAIL(TARE_USAGE, "option '--attr': the op has no attr '%.*s'", (int)(equals - text), text);
    equals++;
    if (def->kind == TARE_ATTR_STRING && !def->is_list && *equals != '\'' && *equals != '"')
        return tare_node_set_string(node, def->name, equals, strlen(equals));
    value = tare_opspec_parse_value(memory, def->kind, def->is_list, equals, strlen(equals));
    if (!value) return TARE_FAIL(TARE_USAGE, "option '--attr': '%s' is no value of attr '%s'", equals, def->name);
    value->name = def->name;
    from.attrs = value;
    return tare_node_copy_attrs(node, &from);
}

static tare_status add_args(struct tare_node *node, const struct tare_option_list *given, struct tare_shape *shapes) {
    int *dtypes;
    size_t count;
    TARE_TRY(tare_opdef_input_dtypes(&node->graph->model->arena, node, &dtypes, &count));
    if (count != given->count)
        return TARE_FAIL(TARE_USAGE, "%zu input shapes (wanted %zu, one --infer an input)", given->count, count);
    for (size_t i = 0; i < count; i++) {
        const char *name = tare_arena_printf(&node->graph->model->arena, "input_%zu", i);
        struct tare_node *arg = name ? tare_graph_add_arg(node->graph, name, tare_dtype_base(dtypes[i])) : NULL;
        if (!arg) return TARE_NO_MEMORY;
        TARE_TRY(parse_shape(&shapes[i], given->items[i]));
        TARE_TRY(tare_node_add_input(node, (struct tare_edge){ arg, 0 }));
    }
    return TARE_OK;
}

static void print(const struct tare_node *node, const struct tare_shape *shapes) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t a = 0; a < node->def->n_outputs; a++) {
        size_t first, count;
        if (tare_node_output_range(node, a, &first, &count) != TARE_OK) continue;
        for (size_t i = first; i < first + count; i++)
            printf("%s %s %s\n", node->def->outputs[a].name, tare_dtype_name(node->output_dtypes[i]),
                   tare_shape_text(text, &shapes[i]));
    }
}

static tare_status infer(struct tare_model *model, struct tare_opspec_memory *memory, const char *op,
                         const struct tare_option_list *given, const struct tare_option_list *attrs) {
    struct tare_graph *function = tare_model_add_function(model, "infer");
    struct tare_node *node = function ? tare_graph_add(function, op, op) : NULL;
    struct tare_shape *shapes = TARE_NEW_ARRAY(&model->arena, struct tare_shape, given->count + 1), **inferred;
    if (!node || !shapes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < attrs->count; i++)
        TARE_TRY(set_attr(node, memory, attrs->items[i]));
    TARE_TRY(tare_opdef_check_attrs(node));
    TARE_TRY(add_args(node, given, shapes));
    TARE_TRY(tare_node_resolve(node));
    TARE_TRY(tare_graph_infer_shapes(&inferred, &model->arena, function, shapes));
    print(node, inferred[node->position]);
    return TARE_OK;
}

tare_status tare_ops_infer(const struct tare_op_registry *registry, const char *op,
                           const struct tare_option_list *shapes, const struct tare_option_list *attrs) {
    struct tare_model *model = tare_model_new();
    struct tare_opspec_memory memory = { 0 };
    tare_status status = TARE_NO_MEMORY;
    if (model) model->custom_ops = tare_ops_new(registry);
    if (model && model->custom_ops) status = infer(model, &memory, op, shapes, attrs);
    tare_model_free(model);
    tare_opspec_memory_free(&memory);
    return status;
}
