/* Walking both object graphs from the root. */
#include "convert/import/object_twins.h"
#include "base/alloc.h"

#include <string.h>

static const char VARIABLE_VALUE[] = "VARIABLE_VALUE";

/* In most files the i-th child is the same in both graphs. */
static int child_of(const Tensorflow__TrackableObjectGraph__TrackableObject *object, size_t i, const char *name) {
    if (i < object->n_children && strcmp(object->children[i]->local_name, name) == 0)
        return object->children[i]->node_id;
    for (size_t k = 0; k < object->n_children; k++)
        if (strcmp(object->children[k]->local_name, name) == 0) return object->children[k]->node_id;
    return -1;
}

static tare_status walk(int *twins, int *stack, const Tensorflow__SavedObjectGraph *saved,
                        const Tensorflow__TrackableObjectGraph *trackable, bool tolerant) {
    const size_t count = saved->n_nodes;
    size_t depth = 0;
    stack[depth++] = 0;
    while (depth) {
        size_t id = (size_t)stack[--depth];
        const Tensorflow__SavedObject *object = saved->nodes[id];
        const Tensorflow__TrackableObjectGraph__TrackableObject *twin = trackable->nodes[twins[id]];
        for (size_t i = 0; i < object->n_children; i++) {
            int child = object->children[i]->node_id, match = child_of(twin, i, object->children[i]->local_name);
            if ((child < 0 || (size_t)child >= count) && tolerant) continue;
            if (child < 0 || (size_t)child >= count)
                return TARE_FAIL(TARE_CORRUPT, "object graph: node %zu has child %d of %zu", id, child, count);
            if (match < 0 || (size_t)match >= trackable->n_nodes || twins[child] >= 0) continue;
            twins[child] = match;
            stack[depth++] = child;
        }
    }
    return TARE_OK;
}

tare_status tare_object_twins(int **out, struct tare_arena *arena, const Tensorflow__SavedObjectGraph *saved,
                              const Tensorflow__TrackableObjectGraph *trackable, bool tolerant) {
    int *twins = *out = TARE_NEW_ARRAY(arena, int, saved->n_nodes + 1), *stack;
    tare_status status;
    if (!twins) return TARE_NO_MEMORY;
    for (size_t i = 0; i < saved->n_nodes; i++)
        twins[i] = -1;
    if (!saved->n_nodes || !trackable->n_nodes) return TARE_OK;
    twins[0] = 0;
    stack = tare_calloc(saved->n_nodes, sizeof *stack);
    status = stack ? walk(twins, stack, saved, trackable, tolerant) : TARE_NO_MEMORY;
    tare_free(stack);
    return status;
}

const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *
tare_object_value(const Tensorflow__TrackableObjectGraph__TrackableObject *object) {
    for (size_t i = 0; i < object->n_attributes; i++)
        if (strcmp(object->attributes[i]->name, VARIABLE_VALUE) == 0) return object->attributes[i];
    return NULL;
}

bool tare_object_stores(const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *attribute,
                        const char *key) {
    const size_t size = strlen(attribute->checkpoint_key);
    if (strcmp(attribute->checkpoint_key, key) == 0) return true;
    return strcmp(attribute->name, VARIABLE_VALUE) != 0 && size && strncmp(attribute->checkpoint_key, key, size) == 0;
}

size_t tare_object_functions(char *const **names, const Tensorflow__SavedObjectGraph *saved, int id) {
    const Tensorflow__SavedObject *object = id >= 0 && (size_t)id < saved->n_nodes ? saved->nodes[id] : NULL;
    if (!object) return 0;
    switch (object->kind_case) {
    case TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION:
        *names = object->function->concrete_functions;
        return object->function->n_concrete_functions;
    case TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION:
        *names = &object->bare_concrete_function->concrete_function_name;
        return 1;
    default:
        return 0;
    }
}
