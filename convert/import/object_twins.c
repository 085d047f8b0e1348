/* Walking both object graphs from the root. */
#include "convert/import/object_twins.h"
#include "base/alloc.h"

#include <string.h>

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
        if (strcmp(object->attributes[i]->name, "VARIABLE_VALUE") == 0) return object->attributes[i];
    return NULL;
}
