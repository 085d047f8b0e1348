/* Definitions of plugin ops: they are written with the model so that it can be opened where the library is not
 * available. TensorFlow writes the definition of every op; built-in ops are omitted here. */
#include "convert/export/export.h"
#include "interpreter/ops/builtin.h"
#include "graph/attr_text.h"
#include "graph/graphs.h"
#include "graph/op.h"

#include <string.h>

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant;
}

static tare_status export_args(Tensorflow__OpDef__ArgDef ***out, size_t *count, struct tare_arena *arena,
                               const struct tare_op_arg *args, size_t n_args) {
    *out = TARE_NEW_ARRAY(arena, Tensorflow__OpDef__ArgDef *, n_args + 1);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_args; i++) {
        Tensorflow__OpDef__ArgDef *arg = TARE_NEW(arena, Tensorflow__OpDef__ArgDef);
        if (!arg) return TARE_NO_MEMORY;
        tensorflow__op_def__arg_def__init(arg);
        arg->name = text(args[i].name);
        arg->type = (Tensorflow__DataType)args[i].dtype;
        if (args[i].type_attr) arg->type_attr = text(args[i].type_attr);
        if (args[i].type_list_attr) arg->type_list_attr = text(args[i].type_list_attr);
        if (args[i].number_attr) arg->number_attr = text(args[i].number_attr);
        arg->is_ref = args[i].is_ref;
        (*out)[(*count)++] = arg;
    }
    return TARE_OK;
}

static tare_status export_attr_def(Tensorflow__OpDef__AttrDef **out, struct tare_arena *arena,
                                   const struct tare_op_attr *attr) {
    Tensorflow__OpDef__AttrDef *def = TARE_NEW(arena, Tensorflow__OpDef__AttrDef);
    if (!def) return TARE_NO_MEMORY;
    tensorflow__op_def__attr_def__init(def);
    def->name = text(attr->name);
    def->type = text(tare_attr_kind_name(attr->kind, attr->is_list));
    def->has_minimum = attr->has_minimum;
    def->minimum = attr->minimum;
    if (attr->default_value) TARE_TRY(tare_export_attr(&def->default_value, arena, attr->default_value));
    if (attr->allowed) TARE_TRY(tare_export_attr(&def->allowed_values, arena, attr->allowed));
    *out = def;
    return TARE_OK;
}

static tare_status export_def(Tensorflow__OpDef **out, struct tare_arena *arena, const struct tare_op_def *def) {
    Tensorflow__OpDef *op = TARE_NEW(arena, Tensorflow__OpDef);
    if (!op) return TARE_NO_MEMORY;
    tensorflow__op_def__init(op);
    op->name = text(def->name);
    op->is_stateful = def->is_stateful;
    TARE_TRY(export_args(&op->input_arg, &op->n_input_arg, arena, def->inputs, def->n_inputs));
    TARE_TRY(export_args(&op->output_arg, &op->n_output_arg, arena, def->outputs, def->n_outputs));
    op->attr = TARE_NEW_ARRAY(arena, Tensorflow__OpDef__AttrDef *, def->n_attrs + 1);
    if (!op->attr) return TARE_NO_MEMORY;
    for (size_t i = 0; i < def->n_attrs; i++)
        TARE_TRY(export_attr_def(&op->attr[op->n_attr++], arena, &def->attrs[i]));
    *out = op;
    return TARE_OK;
}

/* ---- which ---- */

struct found {
    struct tare_arena *arena;
    struct tare_map known; /* names that the list has */
    Tensorflow__OpList *list;
    const Tensorflow__OpList *origin;
};

static tare_status append(struct found *found, Tensorflow__OpDef *op) {
    Tensorflow__OpDef **grown = tare_arena_append(found->arena, found->list->op, found->list->n_op, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[found->list->n_op++] = op;
    found->list->op = grown;
    return TARE_OK;
}

/* A list of our own, from the first op that is added on. */
static tare_status own_list(struct found *found) {
    const size_t n = found->origin ? found->origin->n_op : 0;
    if (found->list) return TARE_OK;
    found->list = TARE_NEW(found->arena, Tensorflow__OpList);
    if (!found->list) return TARE_NO_MEMORY;
    tensorflow__op_list__init(found->list);
    for (size_t i = 0; i < n; i++)
        TARE_TRY(append(found, found->origin->op[i]));
    return TARE_OK;
}

static tare_status add(struct found *found, const struct tare_op_def *def) {
    Tensorflow__OpDef *op;
    TARE_TRY(own_list(found));
    if (!tare_map_set(&found->known, def->name, (void *)(uintptr_t)def)) return TARE_NO_MEMORY;
    TARE_TRY(export_def(&op, found->arena, def));
    return append(found, op);
}

static tare_status look_through(struct found *found, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || !node->def || tare_map_get(&found->known, node->op)) continue;
        if (tare_ops_find(tare_ops_builtin(), node->op) == node->def) continue;
        TARE_TRY(add(found, node->def));
    }
    return TARE_OK;
}

static tare_status look(struct found *found, const struct tare_graph_model *model) {
    for (size_t i = 0; found->origin && i < found->origin->n_op; i++)
        if (!tare_map_set(&found->known, found->origin->op[i]->name, found->origin->op[i])) return TARE_NO_MEMORY;
    for (size_t f = 0; f <= model->n_functions; f++)
        TARE_TRY(look_through(found, tare_model_graph(model, f)));
    return TARE_OK;
}

tare_status tare_export_op_list(Tensorflow__OpList **out, struct tare_arena *arena,
                                const struct tare_graph_model *model, Tensorflow__OpList *origin) {
    struct found found = { .arena = arena, .origin = origin };
    tare_status status = look(&found, model);
    *out = found.list ? found.list : origin;
    tare_map_free(&found.known);
    return status;
}
