/* Ops that are not built in: definitions from the file's stripped op list, and output names for ops without one. */
#include "convert/import/import.h"
#include "convert/source.h"
#include "graph/definitions/op_compat.h"
#include "interpreter/plugins/plugin.h"

#include <stdlib.h>
#include <string.h>

static tare_status import_arg(struct tare_op_arg *out, const Tensorflow__OpDef__ArgDef *arg) {
    *out = (struct tare_op_arg){ .name = arg->name, .dtype = (int)arg->type, .is_ref = arg->is_ref };
    if (*arg->type_attr) out->type_attr = arg->type_attr;
    if (*arg->type_list_attr) out->type_list_attr = arg->type_list_attr;
    if (*arg->number_attr) out->number_attr = arg->number_attr;
    return TARE_OK;
}

static tare_status import_args(struct tare_op_arg **out, size_t *count, struct tare_graph_model *model,
                               Tensorflow__OpDef__ArgDef *const *args, size_t n_args) {
    *out = TARE_NEW_ARRAY(&model->arena, struct tare_op_arg, n_args + 1);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_args; i++)
        TARE_TRY(import_arg(&(*out)[i], args[i]));
    *count = n_args;
    return TARE_OK;
}

/* "list(int)" -> kind INT, list. */
static bool parse_attr_type(struct tare_op_attr *attr, const char *type) {
    static const struct {
        const char *name;
        enum tare_attr_kind kind;
    } kinds[] = { { "string", TARE_ATTR_STRING }, { "int", TARE_ATTR_INT },   { "float", TARE_ATTR_FLOAT },
                  { "bool", TARE_ATTR_BOOL },     { "type", TARE_ATTR_TYPE }, { "shape", TARE_ATTR_SHAPE },
                  { "tensor", TARE_ATTR_TENSOR }, { "func", TARE_ATTR_FUNC } };
    size_t size = strlen(type);
    if (strncmp(type, "list(", 5) == 0 && type[size - 1] == ')') {
        attr->is_list = true;
        type += 5;
        size -= 6;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) != size || memcmp(kinds[i].name, type, size) != 0) continue;
        attr->kind = kinds[i].kind;
        return true;
    }
    return false;
}

static tare_status import_attr_def(struct tare_op_attr *out, struct tare_graph_model *model,
                                   const Tensorflow__OpDef__AttrDef *attr) {
    *out = (struct tare_op_attr){ .name = attr->name, .has_minimum = attr->has_minimum, .minimum = attr->minimum };
    if (!parse_attr_type(out, attr->type))
        return TARE_FAIL(TARE_CORRUPT, "Unrecognized type '%s' in attr '%s'", attr->type, attr->name);
    if (attr->default_value) {
        struct tare_attr *value = TARE_NEW(&model->arena, struct tare_attr);
        if (!value) return TARE_NO_MEMORY;
        TARE_TRY(tare_import_attr(value, model, attr->name, attr->default_value));
        value->is_list = out->is_list; /* an empty list has no kind of its own */
        out->default_value = value;
    }
    if (attr->allowed_values) {
        struct tare_attr *allowed = TARE_NEW(&model->arena, struct tare_attr);
        if (!allowed) return TARE_NO_MEMORY;
        TARE_TRY(tare_import_attr(allowed, model, attr->name, attr->allowed_values));
        out->allowed = allowed;
    }
    return TARE_OK;
}

static tare_status read_definition(struct tare_op_def **out, struct tare_graph_model *model,
                                   const Tensorflow__OpDef *op) {
    struct tare_op_def *def = TARE_NEW(&model->arena, struct tare_op_def);
    if (!def) return TARE_NO_MEMORY;
    def->name = op->name;
    def->is_stateful = op->is_stateful;
    def->is_fused = *op->name >= 'a' && *op->name <= 'z'; /* a converter made the node: TensorFlow defines no such op */
    TARE_TRY(import_args(&def->inputs, &def->n_inputs, model, op->input_arg, op->n_input_arg));
    TARE_TRY(import_args(&def->outputs, &def->n_outputs, model, op->output_arg, op->n_output_arg));
    def->attrs = TARE_NEW_ARRAY(&model->arena, struct tare_op_attr, op->n_attr + 1);
    if (!def->attrs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_attr; i++)
        TARE_TRY(import_attr_def(&def->attrs[i], model, op->attr[i]));
    def->n_attrs = op->n_attr;
    *out = def;
    return TARE_OK;
}

/* The definition of a plugin must be compatible with the one that the model was saved with: a changed default, for
 * example, would silently change results. */
static tare_status check_definition(const struct tare_op_def *saved, const struct tare_op_def *known) {
    struct tare_op_changes changes = { 0 };
    tare_status status = tare_op_compare(&changes, saved, known);
    if (status == TARE_OK && changes.count)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT,
                           "the definition in %s is not compatible with the one that the model was saved with: %s",
                           tare_plugin_path_of(known), changes.items[0]);
    tare_op_changes_free(&changes);
    return status;
}

static tare_status import_definition(struct tare_graph_model *model, const Tensorflow__OpDef *op) {
    const struct tare_op_def *known = tare_ops_find(model->custom_ops, op->name);
    struct tare_op_def *def;
    if (known && !tare_plugin_path_of(known)) return TARE_OK;
    TARE_TRY(read_definition(&def, model, op));
    return known ? check_definition(def, known) : tare_ops_add_def(model->custom_ops, def);
}

/* ---- ops without any definition ---- */

static tare_status add_output(struct tare_graph_model *model, const char *op, const char *name, size_t number) {
    struct tare_name_list *list = tare_map_get(&model->unknown_outputs, op);
    const char **grown;
    size_t expected = number < SIZE_MAX ? number + 1 : number;
    if (!list) {
        list = TARE_NEW(&model->arena, struct tare_name_list);
        if (!list || !tare_map_set(&model->unknown_outputs, op, list)) return TARE_NO_MEMORY;
    }
    for (size_t i = 0; name && i < list->count; i++)
        if (list->names[i] && strcmp(list->names[i], name) == 0) return TARE_OK;
    if (name) expected = list->count + 1;
    if (expected > 4096) return TARE_FAIL(TARE_CORRUPT, "op %s has too many outputs", op);
    if (expected <= list->count) return TARE_OK;
    if (expected > list->capacity) {
        grown = tare_arena_extend(&model->arena, list->names, list->count, 2 * expected - list->count, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        list->names = grown;
        list->capacity = 2 * expected;
    }
    list->count = expected;
    if (name) list->names[expected - 1] = name;
    return TARE_OK;
}

/* A reference to an output: "node:name:0" in a function, "node:2" in the main graph. */
static tare_status add_use(struct tare_graph_model *model, const struct tare_map *unknown_nodes, const char *text) {
    const char *colon = strchr(text, ':'), *end, *op, *name;
    op = tare_map_get_n(unknown_nodes, text, colon ? (size_t)(colon - text) : strlen(text));
    if (!op) return TARE_OK;
    if (!colon) return add_output(model, op, NULL, 0);
    end = strchr(colon + 1, ':');
    if (!end && colon[1] >= '0' && colon[1] <= '9') return add_output(model, op, NULL, strtoul(colon + 1, NULL, 10));
    name = tare_arena_strndup(&model->arena, colon + 1, end ? (size_t)(end - colon - 1) : strlen(colon + 1));
    return name ? add_output(model, op, name, 0) : TARE_NO_MEMORY;
}

/* An output may be used by a signature only. */
static tare_status add_signature_uses(struct tare_graph_model *model, const struct tare_map *unknown_nodes,
                                      const Tensorflow__MetaGraphDef *meta) {
    for (size_t s = 0; s < meta->n_signature_def; s++) {
        const Tensorflow__SignatureDef *signature = meta->signature_def[s]->value;
        for (size_t i = 0; signature && i < signature->n_outputs; i++) {
            const Tensorflow__TensorInfo *info = signature->outputs[i]->value;
            if (info && info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
                TARE_TRY(add_use(model, unknown_nodes, info->name));
        }
    }
    return TARE_OK;
}

/* Nodes whose op is not an op row, not defined in the file and not a function: node name -> op. */
static tare_status find_unknown_nodes(struct tare_map *unknown, struct tare_graph_model *model,
                                      const struct tare_map *library, const struct tare_node_defs *nodes) {
    struct tare_node_walk walk = { .all = nodes, .without_attrs = true };
    tare_status status;
    while ((status = tare_node_walk_next(&walk)) == TARE_OK && walk.def) {
        const char *op = walk.def->op, *name = walk.def->name;
        if (!*op || tare_ops_find(model->custom_ops, op) || tare_map_get(library, op)) continue;
        op = tare_arena_strdup(&model->arena, op);
        name = tare_arena_strdup(&model->arena, name);
        if (op && name && tare_map_set(unknown, name, (char *)(uintptr_t)op)) continue;
        status = TARE_NO_MEMORY;
        break;
    }
    tare_node_walk_end(&walk);
    return status;
}

static tare_status add_input_uses(struct tare_graph_model *model, const struct tare_map *unknown,
                                  const struct tare_node_defs *nodes) {
    struct tare_node_walk walk = { .all = nodes, .without_attrs = true };
    tare_status status;
    while ((status = tare_node_walk_next(&walk)) == TARE_OK && walk.def)
        for (size_t k = 0; k < walk.def->n_input; k++)
            if ((status = add_use(model, unknown, walk.def->input[k])) != TARE_OK) goto done;
done:
    tare_node_walk_end(&walk);
    return status;
}

/* Uses in a function, or in the main graph with its signatures (`meta`). */
static tare_status add_uses(struct tare_graph_model *model, const struct tare_map *library,
                            const struct tare_node_defs *nodes, const Tensorflow__FunctionDef *function,
                            const Tensorflow__MetaGraphDef *meta) {
    struct tare_map unknown = { 0 };
    tare_status status = find_unknown_nodes(&unknown, model, library, nodes);
    if (status == TARE_OK && unknown.count) status = add_input_uses(model, &unknown, nodes);
    for (size_t i = 0; function && unknown.count && i < function->n_ret && status == TARE_OK; i++)
        status = add_use(model, &unknown, function->ret[i]->value);
    if (meta && unknown.count && status == TARE_OK) status = add_signature_uses(model, &unknown, meta);
    tare_map_free(&unknown);
    return status;
}

static tare_status list_library(struct tare_map *library, struct tare_arena *names,
                                const struct tare_saved_model *source) {
    struct tare_arena scratch = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < tare_import_function_count(source) && status == TARE_OK; i++) {
        Tensorflow__FunctionDef *function;
        struct tare_node_defs nodes;
        const char *name;
        status = tare_import_function(&function, &nodes, &scratch, source, i);
        if (status != TARE_OK || !function->signature) continue;
        name = tare_arena_strdup(names, function->signature->name);
        if (!name || !tare_map_set(library, name, names)) status = TARE_NO_MEMORY;
    }
    tare_arena_free(&scratch);
    return status;
}

static tare_status add_all_uses(struct tare_graph_model *model, const struct tare_map *library,
                                const struct tare_saved_model *source) {
    struct tare_node_defs nodes = tare_node_defs_of_graph(source->meta->graph_def, source->wire);
    struct tare_arena scratch = { 0 };
    tare_status status = add_uses(model, library, &nodes, NULL, source->meta);
    for (size_t i = 0; i < tare_import_function_count(source) && status == TARE_OK; i++) {
        Tensorflow__FunctionDef *function;
        status = tare_import_function(&function, &nodes, &scratch, source, i);
        if (status == TARE_OK) status = add_uses(model, library, &nodes, function, NULL);
    }
    tare_arena_free(&scratch);
    return status;
}

tare_status tare_import_custom_ops(struct tare_graph_model *model, const struct tare_saved_model *source) {
    const Tensorflow__MetaGraphDef *meta = source->meta;
    const Tensorflow__OpList *list = meta->meta_info_def ? meta->meta_info_def->stripped_op_list : NULL;
    struct tare_arena names = { 0 };
    struct tare_map library = { 0 };
    tare_status status;
    for (size_t i = 0; list && i < list->n_op; i++)
        TARE_TRY(tare_error_prefix(import_definition(model, list->op[i]), "op %s", list->op[i]->name));
    status = list_library(&library, &names, source);
    if (status == TARE_OK) status = add_all_uses(model, &library, source);
    tare_map_free(&library);
    tare_arena_free(&names);
    return status;
}
