/* Aliases, assets, initialisers and concrete functions of a MetaGraphDef. */
#include "convert/import/edges.h"
#include "convert/import/import.h"
#include "convert/source.h"
#include "proto/message.h"
#include "proto/tensor_message.h"

#include <stdlib.h>
#include <string.h>

/* ---- TF1 collections ---- */

static const Tensorflow__CollectionDef *find_collection(const Tensorflow__MetaGraphDef *meta, const char *key) {
    for (size_t i = 0; i < meta->n_collection_def; i++)
        if (strcmp(meta->collection_def[i]->key, key) == 0) return meta->collection_def[i]->value;
    return NULL;
}

static tare_status import_main_op(struct tare_graph_model *model, const Tensorflow__MetaGraphDef *meta) {
    static const char *const keys[] = { "saved_model_main_op", "legacy_init_op" };
    for (size_t i = 0; i < 2 && !model->init_node; i++) {
        const Tensorflow__CollectionDef *collection = find_collection(meta, keys[i]);
        const Tensorflow__CollectionDef__NodeList *list =
            collection && collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST ? collection->node_list
                                                                                              : NULL;
        if (!list) continue;
        if (list->n_value != 1)
            return TARE_FAIL(TARE_CORRUPT, "Expected exactly one main op in : %s (got %zu)", model->path,
                             list->n_value);
        model->init_node = tare_graph_find(model->main, list->value[0]);
        if (!model->init_node)
            return TARE_FAIL(TARE_CORRUPT, "collection %s names '%s', which is not a node", keys[i], list->value[0]);
    }
    return TARE_OK;
}

static tare_status import_table_initializers(struct tare_graph_model *model, const Tensorflow__MetaGraphDef *meta) {
    const Tensorflow__CollectionDef *collection = find_collection(meta, "table_initializer");
    const Tensorflow__CollectionDef__NodeList *list =
        collection && collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST ? collection->node_list
                                                                                          : NULL;
    if (!list) return TARE_OK;
    model->table_inits = TARE_NEW_ARRAY(&model->arena, struct tare_node *, list->n_value + 1);
    if (!model->table_inits) return TARE_NO_MEMORY;
    for (size_t i = 0; i < list->n_value; i++) {
        struct tare_node *node = tare_graph_find(model->main, list->value[i]);
        struct tare_edge edge = { node, 0 }; /* a node, or one of its tensors */
        if (!node) TARE_TRY(tare_error_dismiss(tare_import_tensor_name(&edge, model, list->value[i])));
        if (edge.node) model->table_inits[model->n_table_inits++] = edge.node;
    }
    return TARE_OK;
}

/* ---- assets, aliases, concrete functions ---- */

static tare_status import_asset(struct tare_graph_model *model, const Tensorflow__AssetFileDef *def) {
    struct tare_asset *asset = &model->assets[model->n_assets++];
    asset->filename = def->filename;
    if (strstr(def->filename, "..") || *def->filename == '/')
        return TARE_FAIL(TARE_CORRUPT, "asset '%s' is outside the model's folder", def->filename);
    if (!def->tensor_info || def->tensor_info->encoding_case != TENSORFLOW__TENSOR_INFO__ENCODING_NAME ||
        !*def->tensor_info->name)
        return TARE_OK;
    return tare_error_prefix(tare_import_tensor_name(&asset->edge, model, def->tensor_info->name), "asset %s",
                             def->filename);
}

/* TF1 stores assets in a collection of packed messages; loaders read it when the field is empty. */
static tare_status import_asset_collection(struct tare_graph_model *model, const Tensorflow__MetaGraphDef *meta) {
    const Tensorflow__CollectionDef *collection = find_collection(meta, "saved_model_assets");
    const Tensorflow__CollectionDef__AnyList *list =
        collection && collection->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_ANY_LIST ? collection->any_list : NULL;
    if (!list) return TARE_OK;
    model->assets = TARE_NEW_ARRAY(&model->arena, struct tare_asset, list->n_value + 1);
    if (!model->assets) return TARE_NO_MEMORY;
    for (size_t i = 0; i < list->n_value; i++) {
        ProtobufCMessage *message;
        TARE_TRY(tare_message_unpack(&message, &tensorflow__asset_file_def__descriptor, &model->arena,
                                     list->value[i]->value.data, list->value[i]->value.len,
                                     "collection saved_model_assets"));
        TARE_TRY(import_asset(model, (const Tensorflow__AssetFileDef *)message));
    }
    return TARE_OK;
}

static tare_status import_assets(struct tare_graph_model *model, const Tensorflow__MetaGraphDef *meta) {
    if (!meta->n_asset_file_def) return import_asset_collection(model, meta);
    model->assets = TARE_NEW_ARRAY(&model->arena, struct tare_asset, meta->n_asset_file_def + 1);
    if (!model->assets) return TARE_NO_MEMORY;
    for (size_t i = 0; i < meta->n_asset_file_def; i++)
        TARE_TRY(import_asset(model, meta->asset_file_def[i]));
    return TARE_OK;
}

/* An entry may name a trace of the function that was not saved, because it was traced again while the model was:
 * loaders skip it. */
static tare_status import_aliases(struct tare_graph_model *model, const struct tare_saved_model *source) {
    const Tensorflow__MetaGraphDef__MetaInfoDef *info = source->meta->meta_info_def;
    size_t count = info ? info->n_function_aliases : 0;
    model->aliases = TARE_NEW_ARRAY(&model->arena, struct tare_alias, count + 1);
    if (!model->aliases) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const char *function = info->function_aliases[i]->key;
        if (tare_model_find_function(model, function))
            model->aliases[model->n_aliases++] = (struct tare_alias){ function, info->function_aliases[i]->value };
    }
    return TARE_OK;
}

/* Errors of bound inputs are reported by the validator of the object graph, not here. */
static bool is_bound(const struct tare_saved_model *source, const Tensorflow__SavedConcreteFunction *def,
                     size_t n_args) {
    bool sound = def->n_bound_inputs <= n_args;
    for (size_t k = 0; k < def->n_bound_inputs && sound; k++)
        sound = def->bound_inputs[k] >= 0 && (size_t)def->bound_inputs[k] < source->meta->object_graph_def->n_nodes;
    return sound;
}

static tare_status import_concretes(struct tare_graph_model *model, const struct tare_saved_model *source) {
    const Tensorflow__SavedObjectGraph *objects = source->meta->object_graph_def;
    size_t count = objects ? objects->n_concrete_functions : 0;
    model->concretes = TARE_NEW_ARRAY(&model->arena, struct tare_concrete, count + 1);
    if (!model->concretes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const Tensorflow__SavedConcreteFunction *def = objects->concrete_functions[i]->value;
        struct tare_graph *graph = tare_model_find_function(model, objects->concrete_functions[i]->key);
        struct tare_concrete *concrete = &model->concretes[model->n_concretes];
        if (!graph || !def) continue;
        if (source->faults && !is_bound(source, def, graph->n_args)) continue;
        if (def->n_bound_inputs > graph->n_args)
            return TARE_FAIL(TARE_CORRUPT, "%s has more bound inputs than arguments (%zu, %zu)", graph->name,
                             def->n_bound_inputs, graph->n_args);
        concrete->graph = graph;
        concrete->bound = TARE_NEW_ARRAY(&model->arena, int, def->n_bound_inputs + 1);
        if (!concrete->bound) return TARE_NO_MEMORY;
        for (size_t k = 0; k < def->n_bound_inputs; k++) {
            if (def->bound_inputs[k] < 0 || (size_t)def->bound_inputs[k] >= objects->n_nodes)
                return TARE_FAIL(TARE_CORRUPT, "%s is bound to node %d of %zu", graph->name, def->bound_inputs[k],
                                 objects->n_nodes);
            concrete->bound[k] = def->bound_inputs[k];
        }
        concrete->n_bound = def->n_bound_inputs;
        model->n_concretes++;
    }
    return TARE_OK;
}

tare_status tare_import_meta(struct tare_graph_model *model, const struct tare_saved_model *source) {
    const Tensorflow__MetaGraphDef *meta = source->meta;
    TARE_TRY(tare_import_signatures(model, source));
    TARE_TRY(import_main_op(model, meta));
    TARE_TRY(import_table_initializers(model, meta));
    TARE_TRY(import_assets(model, meta));
    TARE_TRY(import_aliases(model, source));
    return import_concretes(model, source);
}
