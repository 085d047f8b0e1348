/* Pruning the object graphs of a file. */
#include "convert/export/objects.h"
#include "convert/import/object_twins.h"

#include "base/tensor/float8.h"
#include "graph/gradients.h"
#include "graph/object_index.h"
#include "proto/tensor_message.h"

#include <string.h>

/* What a file's objects are compared with. */
struct remaining {
    const struct tare_graph_model *model;
    struct tare_map concretes; /* name of a function -> the first struct tare_concrete of it */
    struct tare_map objects;   /* graph/object_index.h */
    struct tare_map keys;      /* checkpoint keys of variables and tables */
    bool *bound;               /* by id: a function that remains captures the object */
};

static tare_status add_name(struct tare_map *map, const char *name, const void *value) {
    if (!name || tare_map_get(map, name)) return TARE_OK;
    return tare_map_set(map, name, (void *)(uintptr_t)value) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status index_model(struct remaining *r, struct tare_arena *arena, const struct tare_graph_model *model,
                               size_t n_objects) {
    *r = (struct remaining){ .model = model, .bound = TARE_NEW_ARRAY(arena, bool, n_objects + 1) };
    if (!r->bound) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_concretes; i++) {
        const struct tare_concrete *concrete = &model->concretes[i];
        TARE_TRY(add_name(&r->concretes, concrete->graph->name, concrete));
        for (size_t k = 0; k < concrete->n_bound; k++)
            if ((size_t)concrete->bound[k] < n_objects) r->bound[concrete->bound[k]] = true;
    }
    for (size_t i = 0; i < model->n_variables; i++)
        if (!model->variables[i].removed) TARE_TRY(add_name(&r->keys, model->variables[i].key, model));
    for (size_t i = 0; i < model->n_tables; i++) {
        if (model->tables[i].node->dead) continue;
        TARE_TRY(add_name(&r->keys, model->tables[i].keys_key, model));
        TARE_TRY(add_name(&r->keys, model->tables[i].values_key, model));
    }
    return tare_model_index_objects(&r->objects, arena, model);
}

static const struct tare_concrete *find_concrete(const struct remaining *r, const char *name) {
    return tare_map_get(&r->concretes, name);
}

static bool variable_is_gone(const struct remaining *r, size_t object) {
    const struct tare_object_variable *first = tare_object_variables(&r->objects, (int)object);
    return !first || first->variable->removed; /* a variable that the graph does not have either */
}

static bool constant_is_gone(const struct remaining *r, const char *operation) {
    return !tare_graph_find(r->model->main, operation);
}

/* Turns a removed object into a plain one that keeps only its children. */
static tare_status make_plain(Tensorflow__SavedObject *object, struct tare_arena *arena) {
    Tensorflow__SavedUserObject *user = TARE_NEW(arena, Tensorflow__SavedUserObject);
    Tensorflow__VersionDef *version = TARE_NEW(arena, Tensorflow__VersionDef);
    if (!user || !version) return TARE_NO_MEMORY;
    tensorflow__saved_user_object__init(user);
    tensorflow__version_def__init(version);
    version->producer = version->min_consumer = 1;
    user->identifier = (char *)(uintptr_t) "_generic_user_object";
    user->version = version;
    object->kind_case = TENSORFLOW__SAVED_OBJECT__KIND_USER_OBJECT;
    object->user_object = user;
    object->registered_name = (char *)(uintptr_t) "";
    return TARE_OK;
}

/* Python decides by the function spec whether to compile a function, not by the attributes of its graphs. */
static tare_status withdraw_jit(Tensorflow__FunctionSpec **spec, struct tare_arena *arena,
                                const struct tare_concrete *concrete) {
    Tensorflow__FunctionSpec *own;
    if (!*spec || (*spec)->jit_compile != TENSORFLOW__FUNCTION_SPEC__JIT_COMPILE__ON || !concrete ||
        !concrete->graph->must_not_jit)
        return TARE_OK;
    own = TARE_NEW(arena, Tensorflow__FunctionSpec);
    if (!own) return TARE_NO_MEMORY;
    *own = **spec;
    own->jit_compile = TENSORFLOW__FUNCTION_SPEC__JIT_COMPILE__DEFAULT;
    *spec = own;
    return TARE_OK;
}

static tare_status prune_bare_function(Tensorflow__SavedObject *object, struct tare_arena *arena,
                                       const struct tare_concrete *concrete) {
    Tensorflow__SavedBareConcreteFunction *function = TARE_NEW(arena, Tensorflow__SavedBareConcreteFunction);
    if (!function) return TARE_NO_MEMORY;
    *function = *object->bare_concrete_function;
    object->bare_concrete_function = function;
    return withdraw_jit(&function->function_spec, arena, concrete);
}

static tare_status prune_function(Tensorflow__SavedObject *object, struct tare_arena *arena,
                                  const struct remaining *r) {
    Tensorflow__SavedFunction *function = TARE_NEW(arena, Tensorflow__SavedFunction);
    size_t kept = 0;
    if (!function) return TARE_NO_MEMORY;
    *function = *object->function;
    function->concrete_functions = TARE_NEW_ARRAY(arena, char *, function->n_concrete_functions + 1);
    if (!function->concrete_functions) return TARE_NO_MEMORY;
    for (size_t i = 0; i < object->function->n_concrete_functions; i++) {
        const struct tare_concrete *concrete = find_concrete(r, object->function->concrete_functions[i]);
        if (concrete) function->concrete_functions[kept++] = object->function->concrete_functions[i];
        TARE_TRY(withdraw_jit(&function->function_spec, arena, concrete));
    }
    function->n_concrete_functions = kept;
    object->function = function;
    return kept ? TARE_OK : make_plain(object, arena);
}

static bool save_functions_are_gone(const Tensorflow__SavedObject *object, const Tensorflow__SavedObjectGraph *graph,
                                    const struct remaining *r) {
    for (size_t i = 0; i < object->n_saveable_objects; i++) {
        const Tensorflow__SaveableObject *saveable = object->saveable_objects[i]->value;
        const int ids[] = { saveable ? saveable->save_function : -1, saveable ? saveable->restore_function : -1 };
        for (int k = 0; k < 2; k++) {
            char *const *names;
            if (!tare_object_functions(&names, graph, ids[k]) || !find_concrete(r, names[0])) return true;
        }
    }
    return false;
}

bool tare_is_trainable_dtype(int dtype) {
    return (tare_dtype_is_floating(dtype) && !tare_float8_format(dtype)) || tare_dtype_is_complex(dtype);
}

/* A variable may have been given another dtype and shape. */
static tare_status describe_variable(Tensorflow__SavedObject *object, struct tare_arena *arena,
                                     const struct remaining *r, size_t id) {
    for (const struct tare_object_variable *o = tare_object_variables(&r->objects, (int)id); o; o = o->next) {
        const struct tare_variable *variable = o->variable;
        if (variable->removed || (int)object->variable->dtype == variable->dtype) continue;
        Tensorflow__SavedVariable *changed = TARE_NEW(arena, Tensorflow__SavedVariable);
        if (!changed) return TARE_NO_MEMORY;
        *changed = *object->variable;
        changed->dtype = (Tensorflow__DataType)variable->dtype;
        changed->shape = tare_shape_to_message(arena, &variable->shape);
        changed->trainable &= tare_is_trainable_dtype(variable->dtype);
        if (!changed->shape) return TARE_NO_MEMORY;
        object->variable = changed;
    }
    return TARE_OK;
}

/* A value inside a function: the function may be another one, and the value that of another node. */
static tare_status name_captured(Tensorflow__SavedObject *object, struct tare_arena *arena, const struct remaining *r,
                                 size_t id) {
    const struct tare_captured_tensor *captured = tare_model_find_captured(r->model, (int)id);
    Tensorflow__CapturedTensor *changed;
    if (!captured) return TARE_OK;
    changed = TARE_NEW(arena, Tensorflow__CapturedTensor);
    if (!changed) return TARE_NO_MEMORY;
    *changed = *object->captured_tensor;
    changed->name = tare_arena_printf(arena, "%s:0", captured->node->name);
    changed->concrete_function = (char *)(uintptr_t)captured->node->graph->name;
    object->captured_tensor = changed;
    return changed->name ? TARE_OK : TARE_NO_MEMORY;
}

static bool is_signature_map(const Tensorflow__SavedObject *object) {
    return object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_USER_OBJECT && object->user_object->identifier &&
           strcmp(object->user_object->identifier, "signature_map") == 0;
}

/* The map of signatures has those whose functions remain. */
static tare_status prune_signatures(Tensorflow__SavedObject *object, struct tare_arena *arena,
                                    const struct remaining *r, const Tensorflow__SavedObjectGraph *graph) {
    Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference *const *children = object->children;
    size_t kept = 0;
    object->children = TARE_NEW_ARRAY(arena, Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference *,
                                      object->n_children + 1);
    if (!object->children) return TARE_NO_MEMORY;
    for (size_t i = 0; i < object->n_children; i++) {
        const size_t id = (size_t)children[i]->node_id;
        const Tensorflow__SavedObject *child = id < graph->n_nodes ? graph->nodes[id] : NULL;
        if (child && child->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION &&
            !find_concrete(r, child->bare_concrete_function->concrete_function_name))
            continue;
        object->children[kept++] = children[i];
    }
    object->n_children = kept;
    return TARE_OK;
}

static tare_status prune_object(Tensorflow__SavedObject **out, struct tare_arena *arena, const struct remaining *r,
                                const Tensorflow__SavedObjectGraph *graph, size_t id) {
    Tensorflow__SavedObject *object = TARE_NEW(arena, Tensorflow__SavedObject);
    bool gone = false;
    if (!object) return TARE_NO_MEMORY;
    *object = *graph->nodes[id];
    object->n_slot_variables = 0; /* of optimizers; not used in serving */
    if (save_functions_are_gone(object, graph, r)) object->n_saveable_objects = 0;
    *out = object;
    switch (object->kind_case) {
    case TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION:
        return prune_function(object, arena, r);
    case TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE:
        gone = variable_is_gone(r, id);
        if (!gone) TARE_TRY(describe_variable(object, arena, r, id));
        break;
    case TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT:
        gone = constant_is_gone(r, object->constant->operation);
        break;
    case TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION:
        gone = !find_concrete(r, object->bare_concrete_function->concrete_function_name);
        if (!gone)
            TARE_TRY(prune_bare_function(object, arena,
                                         find_concrete(r, object->bare_concrete_function->concrete_function_name)));
        break;
    case TENSORFLOW__SAVED_OBJECT__KIND_CAPTURED_TENSOR: /* a value inside a function; custom gradients capture them */
        gone = !r->bound[id];
        if (!gone) TARE_TRY(name_captured(object, arena, r, id));
        break;
    default:
        if (is_signature_map(object)) TARE_TRY(prune_signatures(object, arena, r, graph));
        break;
    }
    return gone ? make_plain(object, arena) : TARE_OK;
}

static tare_status prune_concretes(Tensorflow__SavedObjectGraph *graph, struct tare_arena *arena,
                                   const struct remaining *r, const Tensorflow__SavedObjectGraph *origin) {
    graph->concrete_functions =
        TARE_NEW_ARRAY(arena, Tensorflow__SavedObjectGraph__ConcreteFunctionsEntry *, origin->n_concrete_functions + 1);
    graph->n_concrete_functions = 0;
    if (!graph->concrete_functions) return TARE_NO_MEMORY;
    for (size_t i = 0; i < origin->n_concrete_functions; i++) {
        const struct tare_concrete *concrete = find_concrete(r, origin->concrete_functions[i]->key);
        Tensorflow__SavedObjectGraph__ConcreteFunctionsEntry *entry;
        if (!concrete || !origin->concrete_functions[i]->value) continue;
        entry = TARE_NEW(arena, Tensorflow__SavedObjectGraph__ConcreteFunctionsEntry);
        if (!entry) return TARE_NO_MEMORY;
        *entry = *origin->concrete_functions[i];
        entry->value = TARE_NEW(arena, Tensorflow__SavedConcreteFunction);
        if (!entry->value) return TARE_NO_MEMORY;
        *entry->value = *origin->concrete_functions[i]->value;
        entry->value->bound_inputs = (int32_t *)concrete->bound;
        entry->value->n_bound_inputs = concrete->n_bound;
        graph->concrete_functions[graph->n_concrete_functions++] = entry;
    }
    return TARE_OK;
}

static tare_status prune_saved(Tensorflow__SavedObjectGraph **out, struct tare_arena *arena, const struct remaining *r,
                               const Tensorflow__SavedObjectGraph *origin) {
    Tensorflow__SavedObjectGraph *graph = TARE_NEW(arena, Tensorflow__SavedObjectGraph);
    if (!graph) return TARE_NO_MEMORY;
    *graph = *origin;
    graph->nodes = TARE_NEW_ARRAY(arena, Tensorflow__SavedObject *, origin->n_nodes + 1);
    if (!graph->nodes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < origin->n_nodes; i++)
        TARE_TRY(prune_object(&graph->nodes[i], arena, r, origin, i));
    *out = graph;
    return prune_concretes(graph, arena, r, origin);
}

/* ---- the checkpoint's graph ---- */

typedef Tensorflow__TrackableObjectGraph__TrackableObject trackable_object;
typedef Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor stored_tensor;

/* The value of a variable is stored under the variable's key, whichever key the file had for the object: the graph and
 * the objects of a file may each have a copy of the same variable (Keras exports do), of which one is kept. */
static tare_status describe_value(stored_tensor **out, struct tare_arena *arena, const trackable_object *object,
                                  const struct tare_variable *variable) {
    const stored_tensor *value = tare_object_value(object);
    stored_tensor *stored = *out = TARE_NEW(arena, stored_tensor);
    if (!stored) return TARE_NO_MEMORY;
    tensorflow__trackable_object_graph__trackable_object__serialized_tensor__init(stored);
    if (value) *stored = *value;
    stored->name = (char *)(uintptr_t) "VARIABLE_VALUE";
    if (!value) stored->full_name = (char *)(uintptr_t)variable->shared_name;
    stored->checkpoint_key = (char *)(uintptr_t)variable->key;
    return TARE_OK;
}

/* Variables by the object that stores their value, and the keys of these. */
struct stored_values {
    const struct tare_variable **of; /* by number of the checkpoint's graph; NULL: none */
    struct tare_map keys;
};

static tare_status index_values(struct stored_values *out, struct tare_arena *arena, const struct remaining *r,
                                const Tensorflow__SavedObjectGraph *saved,
                                const Tensorflow__TrackableObjectGraph *trackable) {
    int *twins;
    *out = (struct stored_values){ .of = TARE_NEW_ARRAY(arena, const struct tare_variable *, trackable->n_nodes + 1) };
    if (!out->of) return TARE_NO_MEMORY;
    if (!saved) return TARE_OK;
    TARE_TRY(tare_object_twins(&twins, arena, saved, trackable, false));
    for (size_t i = 0; i < r->model->n_variables; i++) {
        const struct tare_variable *variable = &r->model->variables[i];
        const size_t id = (size_t)variable->object_id;
        if (variable->removed || !variable->key || variable->object_id < 0 || id >= saved->n_nodes) continue;
        if (twins[id] < 0 || out->of[twins[id]]) continue;
        out->of[twins[id]] = variable;
        TARE_TRY(add_name(&out->keys, variable->key, variable));
    }
    return TARE_OK;
}

/* Whether the checkpoint has a part of what the object saves by functions of its own. */
static bool has_part(const struct remaining *r, const stored_tensor *attribute) {
    for (size_t i = 0; i < r->model->n_tables; i++) {
        const struct tare_table_content *table = &r->model->tables[i];
        if (!table->node->dead && tare_object_stores(attribute, table->keys_key)) return true;
    }
    return false;
}

static tare_status prune_stored(trackable_object **out, struct tare_arena *arena, const struct remaining *r,
                                const struct stored_values *values, const trackable_object *old, size_t id) {
    trackable_object *object = *out = TARE_NEW(arena, trackable_object);
    const struct tare_variable *variable = values->of[id];
    if (!object) return TARE_NO_MEMORY;
    *object = *old;
    object->n_slot_variables = 0;
    object->has_checkpoint_values = NULL; /* true only where attributes or children have some: not worth keeping up */
    object->attributes = TARE_NEW_ARRAY(arena, stored_tensor *, old->n_attributes + 2);
    object->n_attributes = 0;
    if (!object->attributes) return TARE_NO_MEMORY;
    if (variable) TARE_TRY(describe_value(&object->attributes[object->n_attributes++], arena, old, variable));
    for (size_t a = 0; a < old->n_attributes; a++) {
        const char *key = old->attributes[a]->checkpoint_key;
        if (variable && strcmp(old->attributes[a]->name, "VARIABLE_VALUE") == 0) continue;
        if ((tare_map_get(&r->keys, key) && !tare_map_get(&values->keys, key)) || has_part(r, old->attributes[a]))
            object->attributes[object->n_attributes++] = old->attributes[a];
    }
    return TARE_OK;
}

static tare_status prune_trackable(Tensorflow__TrackableObjectGraph **out, struct tare_arena *arena,
                                   const struct remaining *r, const Tensorflow__SavedObjectGraph *saved,
                                   const Tensorflow__TrackableObjectGraph *origin) {
    Tensorflow__TrackableObjectGraph *graph = TARE_NEW(arena, Tensorflow__TrackableObjectGraph);
    struct stored_values values;
    tare_status status;
    if (!graph) return TARE_NO_MEMORY;
    *graph = *origin;
    graph->nodes = TARE_NEW_ARRAY(arena, trackable_object *, origin->n_nodes + 1);
    status = graph->nodes ? index_values(&values, arena, r, saved, origin) : TARE_NO_MEMORY;
    for (size_t i = 0; i < origin->n_nodes && status == TARE_OK; i++)
        status = prune_stored(&graph->nodes[i], arena, r, &values, origin->nodes[i], i);
    if (graph->nodes) tare_map_free(&values.keys);
    *out = graph;
    return status;
}

tare_status tare_objects_prune(struct tare_objects *out, struct tare_arena *arena, const struct tare_graph_model *model,
                               const Tensorflow__SavedObjectGraph *saved,
                               const Tensorflow__TrackableObjectGraph *trackable) {
    struct remaining remaining;
    memset(out, 0, sizeof *out);
    tare_status status = index_model(&remaining, arena, model, saved ? saved->n_nodes : 0);
    if (status == TARE_OK && saved && saved->n_nodes) status = prune_saved(&out->saved, arena, &remaining, saved);
    if (status == TARE_OK && trackable) status = prune_trackable(&out->trackable, arena, &remaining, saved, trackable);
    tare_map_free(&remaining.concretes);
    tare_map_free(&remaining.objects);
    tare_map_free(&remaining.keys);
    return status;
}
