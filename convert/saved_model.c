/* Loading a SavedModel into the IR. */
#include "convert/saved_model.h"
#include "convert/stablehlo/artifact.h"
#include "convert/stablehlo/expand.h"
#include "interpreter/ops/builtin.h"
#include "base/alloc.h"
#include "base/log.h"
#include "convert/import/attr_pool.h"
#include "convert/import/import.h"
#include "convert/import/object_twins.h"
#include "convert/source.h"
#include "graph/calls.h"
#include "graph/object_index.h"
#include "graph/self_assignments.h"

#include <string.h>

static void release(void *arg) {
    tare_source_close(arg);
}

struct tare_saved_model *tare_source_of(const struct tare_graph_model *model) {
    return model->release == release ? model->release_arg : NULL;
}

/* Constants that functions capture, and functions that a loader calls for tables: both by object id. */
static tare_status import_objects(struct tare_graph_model *model, const Tensorflow__SavedObjectGraph *objects) {
    size_t count = objects ? objects->n_nodes : 0;
    model->object_constants = TARE_NEW_ARRAY(&model->arena, struct tare_object_constant, count + 1);
    if (!model->object_constants) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        struct tare_node *node;
        if (objects->nodes[i]->kind_case != TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT) continue;
        node = tare_graph_find(model->main, objects->nodes[i]->constant->operation);
        if (node) model->object_constants[model->n_object_constants++] = (struct tare_object_constant){ (int)i, node };
    }
    return TARE_OK;
}

/* Custom gradients, and the values inside functions that they capture. */
static tare_status import_gradients(struct tare_graph_model *model, const Tensorflow__MetaGraphDef *meta) {
    const Tensorflow__SavedObjectGraph *objects = meta->object_graph_def;
    const Tensorflow__FunctionDefLibrary *library = meta->graph_def->library;
    const size_t n_gradients = library ? library->n_registered_gradients : 0,
                 n_objects = objects ? objects->n_nodes : 0;
    model->gradients = TARE_NEW_ARRAY(&model->arena, struct tare_custom_gradient, n_gradients + 1);
    model->captured = TARE_NEW_ARRAY(&model->arena, struct tare_captured_tensor, n_objects + 1);
    if (!model->gradients || !model->captured) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_gradients; i++) {
        const Tensorflow__RegisteredGradient *gradient = library->registered_gradients[i];
        struct tare_graph *function = tare_model_find_function(model, gradient->gradient_func);
        if (function)
            model->gradients[model->n_gradients++] =
                (struct tare_custom_gradient){ gradient->registered_op_type, function };
    }
    for (size_t i = 0; i < n_objects; i++) {
        const Tensorflow__SavedObject *object = objects->nodes[i];
        if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CAPTURED_TENSOR)
            model->captured[model->n_captured++] =
                (struct tare_captured_tensor){ .object_id = (int)i,
                                               .function = object->captured_tensor->concrete_function,
                                               .tensor = object->captured_tensor->name };
    }
    return TARE_OK;
}

static void keep_function(const struct tare_map *concretes, const Tensorflow__SavedObjectGraph *objects, int id) {
    char *const *names;
    const size_t count = tare_object_functions(&names, objects, id);
    for (size_t f = 0; f < count; f++) {
        struct tare_concrete *concrete = tare_map_get(concretes, names[f]);
        if (concrete) concrete->keep = true;
    }
}

/* Functions with which a loader saves and restores the contents of a table. */
static void keep_saveable(const struct tare_map *concretes, const Tensorflow__SavedObjectGraph *objects,
                          const Tensorflow__SaveableObject *saveable) {
    if (!saveable) return;
    keep_function(concretes, objects, saveable->save_function);
    keep_function(concretes, objects, saveable->restore_function);
}

static tare_status keep_resource_functions(struct tare_graph_model *model,
                                           const Tensorflow__SavedObjectGraph *objects) {
    struct tare_map concretes = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < model->n_concretes && status == TARE_OK; i++)
        if (!tare_map_set(&concretes, model->concretes[i].graph->name, &model->concretes[i])) status = TARE_NO_MEMORY;
    for (size_t i = 0; objects && i < objects->n_nodes; i++) {
        const Tensorflow__SavedObject *object = objects->nodes[i];
        if (object->kind_case != TENSORFLOW__SAVED_OBJECT__KIND_RESOURCE) continue;
        for (size_t k = 0; k < object->n_children; k++)
            keep_function(&concretes, objects, object->children[k]->node_id);
        for (size_t k = 0; k < object->n_saveable_objects; k++)
            keep_saveable(&concretes, objects, object->saveable_objects[k]->value);
    }
    tare_map_free(&concretes);
    return status;
}

/* A Const without a value has no shape, and nodes that use it cannot be analysed: it is rejected immediately. */
static tare_status check_constants(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (strcmp(node->op, "Const") == 0 && !tare_node_tensor(node, "value"))
            return TARE_FAIL(TARE_CORRUPT, "%s%s%snode %s (Const): NodeDef missing attr 'value' from Op Const",
                             *graph->name ? "function " : "", graph->name, *graph->name ? ": " : "", node->name);
    }
    return TARE_OK;
}

static tare_status check_all_constants(const struct tare_graph_model *model) {
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(check_constants(model->functions[i]));
    return check_constants(model->main);
}

static tare_status import_pooled(struct tare_graph_model *model, const struct tare_saved_model *source) {
    struct tare_attr_pool pool = { .arena = &model->arena, .faults = source->faults };
    tare_status status;
    if (source->wire || source->faults) model->pool = &pool;
    status = tare_import_graphs(model, source);
    model->pool = NULL;
    tare_attr_pool_end(&pool);
    return status;
}

/* Optimizers have variables for training alone, which start anew with another one. */
static bool is_hidden(const char *name) {
    return *name == '_' || strcmp(name, "optimizer") == 0 || strcmp(name, "keras_api") == 0;
}

/* Marks the variables of objects that are attributes of the root, or of its attributes. */
static tare_status mark_exposed(struct tare_graph_model *model, const Tensorflow__SavedObjectGraph *objects) {
    const size_t count = objects ? objects->n_nodes : 0;
    struct tare_arena scratch = { 0 };
    bool *seen = TARE_NEW_ARRAY(&scratch, bool, count + 1);
    size_t *stack = TARE_NEW_ARRAY(&scratch, size_t, count + 1), depth = 0;
    struct tare_map index = { 0 };
    tare_status status = seen && stack ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_model_index_objects(&index, &scratch, model);
    if (status == TARE_OK && count) seen[stack[depth++] = 0] = true;
    while (depth) {
        const size_t id = stack[--depth];
        const Tensorflow__SavedObject *object = objects->nodes[id];
        for (const struct tare_object_variable *o = tare_object_variables(&index, (int)id); o; o = o->next)
            o->variable->exposed = true;
        for (size_t k = 0; k < object->n_children; k++) {
            const size_t child = (size_t)object->children[k]->node_id;
            if (child >= count || seen[child] || is_hidden(object->children[k]->local_name)) continue;
            seen[stack[depth++] = child] = true;
        }
    }
    tare_map_free(&index);
    tare_arena_free(&scratch);
    return status;
}

static tare_status import(struct tare_graph_model *model, struct tare_saved_model *source) {
    const Tensorflow__MetaGraphDef *meta = source->meta;
    model->path = source->path;
    TARE_TRY(tare_import_custom_ops(model, source));
    TARE_TRY(import_pooled(model, source));
    if (!source->faults) TARE_TRY(check_all_constants(model)); /* else its rules are checked with those of all nodes */
    TARE_TRY(tare_import_meta(model, source));
    TARE_TRY(import_objects(model, meta->object_graph_def));
    TARE_TRY(import_gradients(model, meta));
    TARE_TRY(keep_resource_functions(model, meta->object_graph_def));
    TARE_TRY(tare_import_variables(model, source));
    return mark_exposed(model, meta->object_graph_def);
}

tare_status tare_saved_model_import(struct tare_graph_model **out, struct tare_saved_model *source,
                                    const struct tare_saved_model_options *options) {
    const struct tare_op_registry *ops = options && options->ops ? options->ops : tare_ops_builtin();
    struct tare_graph_model *model = tare_model_new(ops);
    tare_status status;
    *out = NULL;
    if (!model) return TARE_NO_MEMORY;
    model->custom_ops = tare_ops_new(ops);
    status = model->custom_ops ? tare_ops_check(ops) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = import(model, source);
    if (status != TARE_OK) {
        tare_model_free(model);
        return status;
    }
    model->release = release;
    model->release_arg = source;
    *out = model;
    return TARE_OK;
}

static tare_status load_folder(struct tare_graph_model **out, const char *path,
                               const struct tare_saved_model_options *options) {
    struct tare_saved_model *source;
    tare_status status;
    TARE_TRY(tare_source_open(&source, path, options));
    status = tare_error_prefix(tare_saved_model_import(out, source, options), "%s", path);
    if (status != TARE_OK) tare_source_close(source);
    return status;
}

static tare_status load_artifact(struct tare_graph_model **out, const char *path,
                                 const struct tare_saved_model_options *options) {
    if (options && options->tags)
        return TARE_FAIL(TARE_NOT_FOUND, "%s: a StableHLO module has no tags (omit them)", path);
    return tare_shlo_artifact_load(out, path, options && options->ops ? options->ops : tare_ops_builtin());
}

tare_status tare_saved_model_load(struct tare_graph_model **out, const char *path,
                                  const struct tare_saved_model_options *options) {
    tare_status status;
    *out = NULL;
    TARE_TRY(tare_shlo_is_artifact(path) ? load_artifact(out, path, options) : load_folder(out, path, options));
    if (options && (options->read_only || options->keep_modules)) return TARE_OK;
    status = tare_shlo_expand(*out, options ? options->platform : TARE_MODULES_FOR_TPU);
    if (status == TARE_OK) status = tare_model_remove_self_assignments(*out, NULL);
    if (status != TARE_OK) {
        tare_model_free(*out);
        *out = NULL;
    }
    return status;
}

/* Variables whose values are in no file: an initializer sets the others, as the local ones of TensorFlow 1. */
static tare_status count_without_value(size_t *out, const struct tare_graph_model *model) {
    struct tare_arena scratch = { 0 };
    bool *initialized;
    const tare_status status = tare_model_initialized_nodes(&initialized, &scratch, model);
    *out = 0;
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++)
        *out += !model->variables[i].node || !initialized[model->variables[i].node->position];
    tare_arena_free(&scratch);
    return status;
}

tare_status tare_saved_model_check_values(const struct tare_graph_model *model, bool allow,
                                          const struct tare_log *log) {
    struct tare_saved_model_info info;
    tare_saved_model_info(&info, model);
    if (model->n_variables == 0 || info.checkpoint_tensors > 0) return TARE_OK;
    size_t missing;
    TARE_TRY(count_without_value(&missing, model));
    if (!missing) return TARE_OK;
    if (!allow)
        return TARE_FAIL(
            TARE_NOT_FOUND,
            "%s has %zu variables but no checkpoint: variables/variables.index is missing (copy the folder "
            "variables/ as well, or give --allow-missing-variables)",
            model->path, missing);
    tare_warn(log, "%s has %zu variables but no checkpoint (variables/variables.index is missing)", model->path,
              missing);
    return TARE_OK;
}

bool tare_saved_model_is_tf1(const struct tare_graph_model *model) {
    struct tare_saved_model_info info;
    tare_saved_model_info(&info, model);
    return info.is_tf1;
}

void tare_saved_model_info(struct tare_saved_model_info *out, const struct tare_graph_model *model) {
    const struct tare_saved_model *source = tare_source_of(model);
    const struct tare_shlo_artifact *artifact = tare_shlo_artifact_of(model);
    memset(out, 0, sizeof *out);
    if (artifact) {
        out->format = "mlirbc";
        out->file_size = artifact->file.size;
    }
    if (!source) return;
    out->tensorflow_version = source->meta->meta_info_def ? source->meta->meta_info_def->tensorflow_version : "";
    out->tags = source->tags;
    out->all_tags = source->all_tags;
    out->format = source->format;
    out->file_size = source->file_size;
    out->is_tf1 = !source->meta->object_graph_def || !source->meta->object_graph_def->n_nodes;
    if (!source->bundle) return;
    out->checkpoint_tensors = tare_bundle_count(source->bundle);
    out->checkpoint_bytes = tare_bundle_bytes(source->bundle);
}
