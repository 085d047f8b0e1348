/* Object graphs: node numbers, function names, bound inputs, and the keys that the checkpoint's graph lists. */
#include "convert/import/import.h"
#include "convert/import/object_twins.h"
#include "convert/validation/internal.h"

#include <string.h>

static bool is_listed(const struct tare_map *concretes, const char *function) {
    return tare_map_get(concretes, function);
}

/* ---- functions ---- */

static void check_bound(struct tare_file_validator *v, const char *name,
                        const Tensorflow__SavedConcreteFunction *concrete, const Tensorflow__FunctionDef *function) {
    const Tensorflow__SavedObjectGraph *objects = v->source->meta->object_graph_def;
    const Tensorflow__OpDef *signature = function->signature;
    size_t n_args = signature->n_input_arg, n_bound = concrete->n_bound_inputs;
    for (size_t i = 0; i < n_bound; i++) {
        int id = concrete->bound_inputs[i];
        if (id < 0 || (size_t)id >= objects->n_nodes)
            tare_file_fault(v, "object graph", "%s is bound to node %d of %zu", name, id, objects->n_nodes);
    }
    if (n_bound > n_args) {
        tare_file_fault(v, "object graph", "%s has more bound inputs than arguments (%zu, %zu)", name, n_bound, n_args);
        return;
    }
    for (size_t i = 0; i < n_bound; i++) {
        int id = concrete->bound_inputs[i];
        const Tensorflow__OpDef__ArgDef *arg = signature->input_arg[n_args - n_bound + i];
        if (id < 0 || (size_t)id >= objects->n_nodes || (int)arg->type == TARE_DT_RESOURCE ||
            objects->nodes[id]->kind_case != TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE)
            continue;
        tare_file_fault(v, "object graph", "%s binds a variable to argument %s of %s", name, arg->name,
                        tare_dtype_name((int)arg->type));
    }
}

struct listed {
    const Tensorflow__SavedConcreteFunction *concrete;
    bool found; /* in the library */
};

/* One function of the library after the other: only one of them need be in memory. */
static tare_status check_library(struct tare_file_validator *v, const struct tare_map *by_name) {
    size_t count = tare_import_function_count(v->source);
    struct tare_arena scratch = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        Tensorflow__FunctionDef *function;
        struct tare_node_defs nodes;
        struct listed *listed;
        status = tare_import_function(&function, &nodes, &scratch, v->source, i);
        listed = status == TARE_OK && function->signature ? tare_map_get(by_name, function->signature->name) : NULL;
        if (!listed || listed->found) continue;
        listed->found = true;
        if (listed->concrete) check_bound(v, function->signature->name, listed->concrete, function);
    }
    tare_arena_free(&scratch);
    return status;
}

static tare_status list_concretes(struct listed **out, struct tare_map *by_name, struct tare_arena *arena,
                                  const Tensorflow__SavedObjectGraph *objects) {
    struct listed *all = TARE_NEW_ARRAY(arena, struct listed, objects->n_concrete_functions + 1);
    if (!all) return TARE_NO_MEMORY;
    for (size_t i = 0; i < objects->n_concrete_functions; i++) {
        all[i].concrete = objects->concrete_functions[i]->value;
        if (!tare_map_set(by_name, objects->concrete_functions[i]->key, &all[i])) return TARE_NO_MEMORY;
    }
    *out = all;
    return TARE_OK;
}

static void check_concretes(struct tare_file_validator *v) {
    const Tensorflow__SavedObjectGraph *objects = v->source->meta->object_graph_def;
    struct tare_arena arena = { 0 };
    struct tare_map by_name = { 0 };
    struct listed *all = NULL;
    tare_status status = list_concretes(&all, &by_name, &arena, objects);
    if (status == TARE_OK) status = check_library(v, &by_name);
    if (status != TARE_OK) v->out_of_memory = true; /* a function that cannot be read did not open */
    for (size_t i = 0; i < objects->n_concrete_functions && status == TARE_OK; i++) {
        const struct listed *listed = tare_map_get(&by_name, objects->concrete_functions[i]->key);
        if (!listed->found)
            tare_file_fault(v, "object graph", "concrete function %s is not in the library",
                            objects->concrete_functions[i]->key);
    }
    tare_map_free(&by_name);
    tare_arena_free(&arena);
}

static void check_object(struct tare_file_validator *v, size_t id, const struct tare_map *concretes) {
    const Tensorflow__SavedObjectGraph *objects = v->source->meta->object_graph_def;
    const Tensorflow__SavedObject *object = objects->nodes[id];
    for (size_t i = 0; i < object->n_children; i++) {
        int child = object->children[i]->node_id;
        if (child < 0 || (size_t)child >= objects->n_nodes)
            tare_file_fault(v, "object graph", "node %zu has child %d of %zu", id, child, objects->n_nodes);
    }
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION)
        for (size_t i = 0; i < object->function->n_concrete_functions; i++)
            if (!is_listed(concretes, object->function->concrete_functions[i]))
                tare_file_fault(v, "object graph", "function %s has no concrete function entry",
                                object->function->concrete_functions[i]);
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION && object->function->n_concrete_functions &&
        (!object->function->function_spec || !object->function->function_spec->fullargspec))
        tare_file_fault(v, "object graph", "node %zu is function %s without a function_spec", id,
                        object->function->concrete_functions[0]);
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION &&
        !is_listed(concretes, object->bare_concrete_function->concrete_function_name))
        tare_file_fault(v, "object graph", "bare function %s has no entry",
                        object->bare_concrete_function->concrete_function_name);
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_ASSET &&
        (object->asset->asset_file_def_index < 0 ||
         (size_t)object->asset->asset_file_def_index >= v->source->meta->n_asset_file_def))
        tare_file_fault(v, "object graph", "node %zu is asset %d of %zu", id, object->asset->asset_file_def_index,
                        v->source->meta->n_asset_file_def);
}

void tare_validate_objects(struct tare_file_validator *v) {
    const Tensorflow__SavedObjectGraph *objects = v->source->meta->object_graph_def;
    struct tare_map concretes = { 0 };
    if (!objects) return;
    for (size_t i = 0; i < objects->n_concrete_functions; i++)
        if (!tare_map_set(&concretes, objects->concrete_functions[i]->key, objects->concrete_functions[i]))
            v->out_of_memory = true;
    for (size_t i = 0; i < objects->n_nodes; i++)
        check_object(v, i, &concretes);
    check_concretes(v);
    tare_map_free(&concretes);
}

/* ---- the checkpoint's graph ---- */

static bool is_stored(const struct tare_bundle *bundle,
                      const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *attribute) {
    const char *key = bundle ? tare_bundle_first(bundle, attribute->checkpoint_key) : NULL;
    return key && tare_object_stores(attribute, key);
}

static bool names_table(const Tensorflow__TrackableObjectGraph *trackable, const struct tare_table_content *table) {
    for (size_t i = 0; i < trackable->n_nodes; i++)
        for (size_t k = 0; k < trackable->nodes[i]->n_attributes; k++)
            if (tare_object_stores(trackable->nodes[i]->attributes[k], table->keys_key)) return true;
    return false;
}

/* A loader of objects fills the tables that the object graph names; the graph's restore function does not matter to
 * it. */
static void check_tables(struct tare_file_validator *v, const Tensorflow__TrackableObjectGraph *trackable) {
    for (size_t i = 0; v->model && i < v->model->n_tables; i++)
        if (!names_table(trackable, &v->model->tables[i]))
            tare_file_fault(v, "checkpoint", "has the content of table %s, for which its object graph has no key (%s)",
                            v->model->tables[i].node->name, v->model->tables[i].keys_key);
}

void tare_validate_trackable(struct tare_file_validator *v) {
    const Tensorflow__SavedObjectGraph *objects = v->source->meta->object_graph_def;
    Tensorflow__TrackableObjectGraph *trackable;
    size_t variables = 0;
    const tare_status status = tare_source_trackable(&trackable, v->source);
    tare_file_check(v, "checkpoint", "", status);
    if (status != TARE_OK || !trackable) return;
    v->trackable = trackable;
    for (size_t i = 0; i < trackable->n_nodes; i++) {
        const Tensorflow__TrackableObjectGraph__TrackableObject *node = trackable->nodes[i];
        for (size_t k = 0; k < node->n_attributes; k++)
            if (!is_stored(v->source->bundle, node->attributes[k]))
                tare_file_fault(v, "checkpoint", "object graph names %s, which is not stored",
                                node->attributes[k]->checkpoint_key);
        for (size_t k = 0; k < node->n_children; k++)
            if (node->children[k]->node_id < 0 || (size_t)node->children[k]->node_id >= trackable->n_nodes)
                tare_file_fault(v, "checkpoint", "object graph: node %zu has child %d of %zu", i,
                                node->children[k]->node_id, trackable->n_nodes);
    }
    if (objects) check_tables(v, trackable);
    for (size_t i = 0; objects && i < objects->n_nodes; i++)
        variables += objects->nodes[i]->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE;
    if (trackable->n_nodes < variables)
        tare_file_fault(v, "checkpoint", "its object graph has %zu nodes for %zu variables", trackable->n_nodes,
                        variables);
}
