/* Savers in the two forms that TensorFlow writes. */
#include "convert/export/saver.h"
#include "base/alloc.h"
#include "graph/op.h"

#include <string.h>

static const char OBJECT_GRAPH_KEY[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

/* Order of the saved tensors: variables, keys and values of tables, the object graph. */
struct plan {
    struct tare_graph_model *model;
    struct tare_variable **variables;
    size_t count;
    struct tare_table_content **tables;
    size_t n_tables;
    const void *object_graph;
    size_t object_graph_size;
    bool references; /* some variable or table is a TF1 reference */
};

static tare_status collect_tables(struct plan *plan) {
    struct tare_graph_model *model = plan->model;
    plan->tables = TARE_NEW_ARRAY(&model->arena, struct tare_table_content *, model->n_tables + 1);
    if (!plan->tables) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_tables; i++) {
        struct tare_table_content *table = &model->tables[i];
        if (table->node->dead || table->values.dtype == TARE_DT_INVALID) continue;
        plan->tables[plan->n_tables++] = table;
        plan->references |= tare_dtype_is_ref(table->node->output_dtypes[0]);
    }
    return TARE_OK;
}

static tare_status collect(struct plan *plan, struct tare_graph_model *model) {
    plan->model = model;
    TARE_TRY(collect_tables(plan));
    plan->variables = TARE_NEW_ARRAY(&model->arena, struct tare_variable *, model->n_variables + 1);
    if (!plan->variables) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_variables; i++) {
        struct tare_variable *variable = &model->variables[i];
        if (variable->removed || !variable->node || variable->node->dead || !variable->key) continue;
        plan->variables[plan->count++] = variable;
        plan->references |= tare_dtype_is_ref(variable->node->output_dtypes[0]);
    }
    return TARE_OK;
}

static size_t object_count(const struct plan *plan) {
    return plan->count + plan->n_tables;
}
static size_t value_count(const struct plan *plan) {
    return plan->count + 2 * plan->n_tables;
}
static size_t tensor_count(const struct plan *plan) {
    return value_count(plan) + (plan->object_graph_size ? 1 : 0);
}

static struct tare_node *object_node(const struct plan *plan, size_t i) {
    return i < plan->count ? plan->variables[i]->node : plan->tables[i - plan->count]->node;
}

/* Key and dtype of the i-th of value_count values. */
static const char *value_key(const struct plan *plan, size_t i) {
    const struct tare_table_content *table = i < plan->count ? NULL : plan->tables[(i - plan->count) / 2];
    if (!table) return plan->variables[i]->key;
    return (i - plan->count) % 2 ? table->values_key : table->keys_key;
}

static int value_dtype(const struct plan *plan, size_t i) {
    const struct tare_table_content *table = i < plan->count ? NULL : plan->tables[(i - plan->count) / 2];
    if (!table) return plan->variables[i]->dtype;
    return (i - plan->count) % 2 ? table->values.dtype : table->keys.dtype;
}

/* ---- small builders ---- */

static struct tare_node *add_string_const(struct tare_graph *graph, const char *name, const char *const *values,
                                          const size_t *sizes, size_t count, bool scalar) {
    struct tare_shape shape = { .rank = scalar ? 0 : 1, .dims = { (int64_t)count } };
    struct tare_tensor tensor;
    struct tare_node *node = NULL;
    tare_status status = tare_tensor_new(&tensor, TARE_DT_STRING, &shape);
    if (status != TARE_OK) return NULL;
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = tare_tensor_set_string(&tensor, (int64_t)i, values[i], sizes ? sizes[i] : strlen(values[i]));
    if (status == TARE_OK) node = tare_graph_add_const(graph, name, &tensor);
    tare_tensor_reset(&tensor);
    return node;
}

static struct tare_node *add_names(const struct plan *plan, struct tare_graph *graph, const char *name) {
    const char **keys = TARE_NEW_ARRAY(&plan->model->arena, const char *, tensor_count(plan) + 1);
    if (!keys) return NULL;
    for (size_t i = 0; i < value_count(plan); i++)
        keys[i] = value_key(plan, i);
    keys[value_count(plan)] = OBJECT_GRAPH_KEY;
    return add_string_const(graph, name, keys, NULL, tensor_count(plan), false);
}

static struct tare_node *add_whole_slices(const struct plan *plan, struct tare_graph *graph, const char *name) {
    const char **slices = TARE_NEW_ARRAY(&plan->model->arena, const char *, tensor_count(plan) + 1);
    if (!slices) return NULL;
    for (size_t i = 0; i < tensor_count(plan); i++)
        slices[i] = "";
    return add_string_const(graph, name, slices, NULL, tensor_count(plan), false);
}

static tare_status set_dtypes(const struct plan *plan, struct tare_node *node, size_t count) {
    int *dtypes = TARE_NEW_ARRAY(&plan->model->arena, int, count + 1);
    if (!dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        dtypes[i] = i < value_count(plan) ? value_dtype(plan, i) : TARE_DT_STRING;
    return tare_node_set_type_list(node, "dtypes", dtypes, count);
}

/* SaveV2(prefix, names, slices, values…). `value_of(i)` returns the edge with the value of the i-th variable in this
 * graph. */
static tare_status add_save(struct tare_node **out, const struct plan *plan, struct tare_graph *graph,
                            struct tare_edge prefix, const struct tare_edge *values, const char *name) {
    struct tare_node *names = add_names(plan, graph, "SaveV2/tensor_names");
    struct tare_node *slices = add_whole_slices(plan, graph, "SaveV2/shape_and_slices");
    struct tare_node *save = tare_graph_add(graph, "SaveV2", name);
    if (!names || !slices || !save) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(save, prefix));
    TARE_TRY(tare_node_add_input(save, tare_node_output0(names)));
    TARE_TRY(tare_node_add_input(save, tare_node_output0(slices)));
    for (size_t i = 0; i < value_count(plan); i++)
        TARE_TRY(tare_node_add_input(save, values[i]));
    if (plan->object_graph_size) {
        const char *bytes = plan->object_graph;
        struct tare_node *objects =
            add_string_const(graph, "SaveV2/objects", &bytes, &plan->object_graph_size, 1, true);
        if (!objects) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_input(save, tare_node_output0(objects)));
    }
    TARE_TRY(set_dtypes(plan, save, tensor_count(plan)));
    *out = save;
    return tare_node_resolve(save);
}

static tare_status add_restore(struct tare_node **out, const struct plan *plan, struct tare_graph *graph,
                               struct tare_edge prefix, const char *name) {
    struct tare_node *names = add_names(plan, graph, "RestoreV2/tensor_names");
    struct tare_node *slices = add_whole_slices(plan, graph, "RestoreV2/shape_and_slices");
    struct tare_node *restore = tare_graph_add(graph, "RestoreV2", name);
    if (!names || !slices || !restore) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(restore, prefix));
    TARE_TRY(tare_node_add_input(restore, tare_node_output0(names)));
    TARE_TRY(tare_node_add_input(restore, tare_node_output0(slices)));
    TARE_TRY(set_dtypes(plan, restore, tensor_count(plan)));
    *out = restore;
    return tare_node_resolve(restore);
}

static tare_status add_unary(struct tare_node **out, struct tare_graph *graph, const char *op, const char *name,
                             struct tare_edge input, const char *type_attr, int dtype) {
    *out = tare_graph_add(graph, op, name);
    if (!*out) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(*out, input));
    TARE_TRY(tare_node_set_type(*out, type_attr, dtype));
    return tare_node_resolve(*out);
}

/* Keys and values exported from the table with this handle. */
static tare_status add_export(struct tare_edge *out, struct tare_graph *graph, const char *op, const char *name,
                              struct tare_edge handle, const struct tare_table_content *table) {
    struct tare_node *node = tare_graph_add(graph, op, name);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(node, handle));
    TARE_TRY(tare_node_set_type(node, "Tkeys", table->keys.dtype));
    TARE_TRY(tare_node_set_type(node, "Tvalues", table->values.dtype));
    out[0] = (struct tare_edge){ node, 0 };
    out[1] = (struct tare_edge){ node, 1 };
    return tare_node_resolve(node);
}

/* And into it, from two outputs of RestoreV2 that follow each other. */
static tare_status add_import(struct tare_node **out, struct tare_graph *graph, const char *op, const char *name,
                              struct tare_edge handle, const struct tare_table_content *table, struct tare_edge keys) {
    *out = tare_graph_add(graph, op, name);
    if (!*out) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(*out, handle));
    TARE_TRY(tare_node_add_input(*out, keys));
    TARE_TRY(tare_node_add_input(*out, (struct tare_edge){ keys.node, keys.index + 1 }));
    TARE_TRY(tare_node_set_type(*out, "Tin", table->keys.dtype));
    TARE_TRY(tare_node_set_type(*out, "Tout", table->values.dtype));
    return tare_node_resolve(*out);
}

/* ---- TF2: functions ---- */

static tare_status return_prefix(struct tare_graph *function, struct tare_node *after) {
    struct tare_node *identity;
    TARE_TRY(add_unary(&identity, function, "Identity", "Identity", tare_node_output0(function->args[0]), "T",
                       TARE_DT_STRING));
    if (after) TARE_TRY(tare_node_add_control(identity, after));
    TARE_TRY(tare_graph_add_return(function, "identity", TARE_DT_STRING, tare_node_output0(identity)));
    if (!after) return TARE_OK;
    function->control_returns = TARE_NEW(&function->model->arena, struct tare_control_return);
    if (!function->control_returns) return TARE_NO_MEMORY;
    function->control_returns[0] = (struct tare_control_return){ after->name, after };
    function->n_control_returns = 1;
    return TARE_OK;
}

static struct tare_graph *new_function(const struct plan *plan, const char *stem) {
    const char *name = tare_model_unused_name(plan->model, stem);
    struct tare_graph *function = name ? tare_model_add_function(plan->model, name) : NULL;
    if (!function || !tare_graph_add_arg(function, "file_prefix", TARE_DT_STRING)) return NULL;
    function->is_stateful = true;
    for (size_t i = 0; i < plan->count; i++)
        if (!tare_graph_add_arg(function, "variable", TARE_DT_RESOURCE)) return NULL;
    for (size_t i = 0; i < plan->n_tables; i++)
        if (!tare_graph_add_arg(function, "table", TARE_DT_RESOURCE)) return NULL;
    return function;
}

static tare_status build_save_function(struct tare_graph **out, const struct plan *plan) {
    struct tare_graph *function = new_function(plan, "__inference__traced_save");
    struct tare_edge *values = TARE_NEW_ARRAY(&plan->model->arena, struct tare_edge, value_count(plan) + 1);
    struct tare_node *save;
    if (!function || !values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < plan->count; i++) {
        struct tare_node *read;
        TARE_TRY(add_unary(&read, function, "ReadVariableOp", "Read/ReadVariableOp",
                           tare_node_output0(function->args[i + 1]), "dtype", plan->variables[i]->dtype));
        values[i] = tare_node_output0(read);
    }
    for (size_t i = 0; i < plan->n_tables; i++)
        TARE_TRY(add_export(&values[plan->count + 2 * i], function, "LookupTableExportV2", "LookupTableExportV2",
                            tare_node_output0(function->args[plan->count + i + 1]), plan->tables[i]));
    TARE_TRY(add_save(&save, plan, function, tare_node_output0(function->args[0]), values, "SaveV2"));
    *out = function;
    return return_prefix(function, save);
}

static tare_status build_restore_function(struct tare_graph **out, const struct plan *plan) {
    struct tare_graph *function = new_function(plan, "__inference__traced_restore");
    struct tare_node *restore, *all;
    if (!function) return TARE_NO_MEMORY;
    TARE_TRY(add_restore(&restore, plan, function, tare_node_output0(function->args[0]), "RestoreV2"));
    all = tare_graph_add(function, "NoOp", "NoOp");
    if (!all) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_resolve(all));
    TARE_TRY(tare_node_add_control(all, restore));
    for (size_t i = 0; i < plan->count; i++) {
        struct tare_node *value, *assign;
        TARE_TRY(add_unary(&value, function, "Identity", "Identity_value", (struct tare_edge){ restore, (int)i }, "T",
                           plan->variables[i]->dtype));
        TARE_TRY(add_unary(&assign, function, "AssignVariableOp", "AssignVariableOp",
                           tare_node_output0(function->args[i + 1]), "dtype", plan->variables[i]->dtype));
        TARE_TRY(tare_node_add_input(assign, tare_node_output0(value)));
        TARE_TRY(tare_node_add_control(all, assign));
    }
    for (size_t i = 0; i < plan->n_tables; i++) {
        struct tare_node *import;
        TARE_TRY(add_import(&import, function, "LookupTableImportV2", "LookupTableImportV2",
                            tare_node_output0(function->args[plan->count + i + 1]), plan->tables[i],
                            (struct tare_edge){ restore, (int)(plan->count + 2 * i) }));
        TARE_TRY(tare_node_add_control(all, import));
    }
    *out = function;
    return return_prefix(function, all);
}

static tare_status add_call(struct tare_node **out, const struct plan *plan, const struct tare_graph *function,
                            struct tare_node *filename) {
    struct tare_node *call = tare_graph_add(plan->model->main, "StatefulPartitionedCall", "StatefulPartitionedCall");
    int *dtypes = TARE_NEW_ARRAY(&plan->model->arena, int, object_count(plan) + 1), string = TARE_DT_STRING;
    if (!call || !dtypes) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(call, tare_node_output0(filename)));
    dtypes[0] = TARE_DT_STRING;
    for (size_t i = 0; i < object_count(plan); i++) {
        TARE_TRY(tare_node_add_input(call, tare_node_output0(object_node(plan, i))));
        dtypes[i + 1] = TARE_DT_RESOURCE;
    }
    TARE_TRY(tare_node_set_type_list(call, "Tin", dtypes, object_count(plan) + 1));
    TARE_TRY(tare_node_set_type_list(call, "Tout", &string, 1));
    TARE_TRY(tare_node_set_func(call, "f", function->name));
    *out = call;
    return tare_node_resolve(call);
}

static tare_status add_filename(struct tare_node **out, struct tare_graph_model *model) {
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_node *node = tare_graph_add(model->main, "Placeholder", "saver_filename");
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_STRING));
    TARE_TRY(tare_node_set_shape(node, "shape", &scalar));
    *out = node;
    return tare_node_resolve(node);
}

static tare_status build_with_functions(struct tare_saver *out, const struct plan *plan) {
    struct tare_arena *arena = &plan->model->arena;
    struct tare_graph *save, *restore;
    struct tare_node *filename, *save_call, *restore_call;
    TARE_TRY(build_save_function(&save, plan));
    TARE_TRY(build_restore_function(&restore, plan));
    TARE_TRY(add_filename(&filename, plan->model));
    TARE_TRY(add_call(&save_call, plan, save, filename));
    TARE_TRY(add_call(&restore_call, plan, restore, filename));
    out->filename_tensor = tare_arena_printf(arena, "%s:0", filename->name);
    out->save_tensor = tare_arena_printf(arena, "%s:0", save_call->name);
    out->restore_op = restore_call->name;
    return out->filename_tensor && out->save_tensor ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- TF1: nodes of the main graph ---- */

static tare_status read_value(struct tare_edge *out, const struct plan *plan, const struct tare_variable *variable) {
    struct tare_node *read;
    *out = tare_node_output0(variable->node);
    if (tare_dtype_is_ref(variable->node->output_dtypes[0])) return TARE_OK;
    TARE_TRY(
        add_unary(&read, plan->model->main, "ReadVariableOp", "save/ReadVariableOp", *out, "dtype", variable->dtype));
    *out = tare_node_output0(read);
    return TARE_OK;
}

static tare_status add_assign(struct tare_node **out, const struct plan *plan, const struct tare_variable *variable,
                              struct tare_edge value) {
    bool reference = tare_dtype_is_ref(variable->node->output_dtypes[0]);
    TARE_TRY(add_unary(out, plan->model->main, reference ? "Assign" : "AssignVariableOp", "save/Assign",
                       tare_node_output0(variable->node), reference ? "T" : "dtype", variable->dtype));
    TARE_TRY(tare_node_add_input(*out, value));
    return tare_node_resolve(*out);
}

static const char *table_op(const struct tare_table_content *table, bool import) {
    if (tare_dtype_is_ref(table->node->output_dtypes[0])) return import ? "LookupTableImport" : "LookupTableExport";
    return import ? "LookupTableImportV2" : "LookupTableExportV2";
}

static tare_status build_with_nodes(struct tare_saver *out, const struct plan *plan) {
    struct tare_graph *main = plan->model->main;
    struct tare_edge *values = TARE_NEW_ARRAY(&plan->model->arena, struct tare_edge, value_count(plan) + 1);
    struct tare_node *filename, *save, *saved, *restore, *all;
    if (!values) return TARE_NO_MEMORY;
    TARE_TRY(add_filename(&filename, plan->model));
    for (size_t i = 0; i < plan->count; i++)
        TARE_TRY(read_value(&values[i], plan, plan->variables[i]));
    for (size_t i = 0; i < plan->n_tables; i++)
        TARE_TRY(add_export(&values[plan->count + 2 * i], main, table_op(plan->tables[i], false),
                            "save/LookupTableExport", tare_node_output0(plan->tables[i]->node), plan->tables[i]));
    TARE_TRY(add_save(&save, plan, main, tare_node_output0(filename), values, "save/SaveV2"));
    TARE_TRY(add_unary(&saved, main, "Identity", "save/control_dependency", tare_node_output0(filename), "T",
                       TARE_DT_STRING));
    TARE_TRY(tare_node_add_control(saved, save));
    TARE_TRY(add_restore(&restore, plan, main, tare_node_output0(filename), "save/RestoreV2"));
    all = tare_graph_add(main, "NoOp", "save/restore_all");
    if (!all) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_resolve(all));
    for (size_t i = 0; i < plan->count; i++) {
        struct tare_node *assign;
        TARE_TRY(add_assign(&assign, plan, plan->variables[i], (struct tare_edge){ restore, (int)i }));
        TARE_TRY(tare_node_add_control(all, assign));
    }
    for (size_t i = 0; i < plan->n_tables; i++) {
        struct tare_node *import;
        TARE_TRY(add_import(&import, main, table_op(plan->tables[i], true), "save/LookupTableImport",
                            tare_node_output0(plan->tables[i]->node), plan->tables[i],
                            (struct tare_edge){ restore, (int)(plan->count + 2 * i) }));
        TARE_TRY(tare_node_add_control(all, import));
    }
    out->filename_tensor = tare_arena_printf(&plan->model->arena, "%s:0", filename->name);
    out->save_tensor = tare_arena_printf(&plan->model->arena, "%s:0", saved->name);
    out->restore_op = all->name;
    return out->filename_tensor && out->save_tensor ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_saver_build(struct tare_saver *out, struct tare_graph_model *model, const void *object_graph,
                             size_t size) {
    struct plan plan = { .object_graph = object_graph, .object_graph_size = size };
    memset(out, 0, sizeof *out);
    TARE_TRY(collect(&plan, model));
    if (tensor_count(&plan) == 0) return TARE_OK; /* without variables and tables there is no saver */
    return plan.references ? build_with_nodes(out, &plan) : build_with_functions(out, &plan);
}
