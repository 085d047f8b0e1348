/* What functions capture through the object graph: a loader binds their last arguments to these objects, so each must
 * be of a kind that can be bound, and have its value. */
#include "convert/import/import.h"
#include "convert/import/object_twins.h"
#include "convert/validation/internal.h"
#include "proto/tensor_message.h"

#include <stdlib.h>
#include <string.h>

struct captures {
    struct tare_file_validator *v;
    const Tensorflow__SavedObjectGraph *objects;
    const int *twins;     /* by object; only with v->trackable */
    const char *function; /* the one whose captures are checked */
    bool *seen;           /* by object: another function captured it */
};

/* ---- kinds ---- */

static bool is_tensor_of(const struct tare_node *node, const char *name, size_t size) {
    return strncmp(node->name, name, size) == 0 && !node->name[size] &&
           strtoul(name + size + 1, NULL, 10) < node->n_outputs;
}

/* "node:1": a tensor of a function as its loader names it. A model that is only read has no map of these nodes. */
static bool has_tensor(const struct tare_graph *function, const char *name) {
    const char *colon = strrchr(name, ':');
    bool found = false;
    for (size_t i = 0; colon && i < function->n_args && !found; i++)
        found = is_tensor_of(function->args[i], name, (size_t)(colon - name));
    for (size_t i = 0; colon && i < function->n_nodes && !found; i++)
        found = is_tensor_of(function->nodes[i], name, (size_t)(colon - name));
    return found;
}

static void check_tensor(const struct captures *c, size_t id) {
    const Tensorflow__CapturedTensor *tensor = c->objects->nodes[id]->captured_tensor;
    const struct tare_graph *function = tare_model_find_function(c->v->model, tensor->concrete_function);
    if (!function || !has_tensor(function, tensor->name))
        tare_file_fault(c->v, "object graph", "node %zu is tensor %s of %s, which does not exist", id, tensor->name,
                        tensor->concrete_function);
}

static void check_constant(const struct captures *c, size_t id) {
    const char *name = c->objects->nodes[id]->constant->operation;
    if (!tare_graph_find(c->v->model->main, name))
        tare_file_fault(c->v, "object graph", "node %zu is the constant %s, which is not in the graph", id, name);
}

static bool is_plain(const Tensorflow__SavedObject *object) {
    return object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_USER_OBJECT && !*object->registered_name &&
           strcmp(object->user_object->identifier, "_generic_user_object") == 0;
}

/* ---- values ---- */

/* The value that a loader of objects restores; where the graph's restore function reads it does not matter to it. */
static void check_value(const struct captures *c, size_t id) {
    const Tensorflow__SavedVariable *variable = c->objects->nodes[id]->variable;
    const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *value =
        c->twins[id] < 0 ? NULL : tare_object_value(c->v->trackable->nodes[c->twins[id]]);
    struct tare_shape declared = tare_shape_unknown();
    struct tare_bundle_entry entry;
    if (!value) {
        tare_file_fault(c->v, "checkpoint", "%s captures variable %s (node %zu), for which its object graph has no key",
                        c->function, variable->name, id);
        return;
    }
    if (!tare_bundle_has(c->v->source->bundle, value->checkpoint_key)) return; /* reported for the object graph */
    if (tare_bundle_check_slice(&entry, c->v->source->bundle, value->checkpoint_key, NULL) != TARE_OK ||
        (variable->shape && tare_shape_from_message(&declared, variable->shape) != TARE_OK)) {
        tare_error_clear(); /* reported where tensors are read */
        return;
    }
    if (entry.dtype == (int)variable->dtype && tare_shape_compatible(&declared, &entry.shape)) return;
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    tare_file_fault(c->v, "checkpoint", "%s is %s %s, the variable %s of the object graph (node %zu) %s %s",
                    value->checkpoint_key, tare_dtype_name(entry.dtype), tare_shape_text(got, &entry.shape),
                    variable->name, id, tare_dtype_name((int)variable->dtype), tare_shape_text(expected, &declared));
}

/* ---- all ---- */

static void check_object(const struct captures *c, size_t id) {
    const Tensorflow__SavedObject *object = c->objects->nodes[id];
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CAPTURED_TENSOR && c->v->model) check_tensor(c, id);
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT && c->v->model) check_constant(c, id);
}

static void check_captured(const struct captures *c, size_t id) {
    const Tensorflow__SavedObject *object = c->objects->nodes[id];
    if (is_plain(object))
        tare_file_fault(c->v, "object graph", "%s captures node %zu, which has no value", c->function, id);
    if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE && c->v->trackable) check_value(c, id);
}

static void check_function(struct captures *c, const Tensorflow__SavedConcreteFunction *concrete) {
    for (size_t k = 0; concrete && k < concrete->n_bound_inputs; k++) {
        const size_t id = (size_t)concrete->bound_inputs[k];
        if (concrete->bound_inputs[k] < 0 || id >= c->objects->n_nodes || c->seen[id]) continue;
        c->seen[id] = true;
        check_captured(c, id);
    }
}

static tare_status check_captures(struct captures *c, struct tare_arena *arena) {
    int *twins = NULL;
    c->seen = TARE_NEW_ARRAY(arena, bool, c->objects->n_nodes + 1);
    if (!c->seen) return TARE_NO_MEMORY;
    if (c->v->trackable) TARE_TRY(tare_object_twins(&twins, arena, c->objects, c->v->trackable, true));
    c->twins = twins;
    for (size_t i = 0; i < c->objects->n_nodes; i++)
        check_object(c, i);
    for (size_t i = 0; i < c->objects->n_concrete_functions; i++) {
        c->function = c->objects->concrete_functions[i]->key;
        check_function(c, c->objects->concrete_functions[i]->value);
    }
    return TARE_OK;
}

void tare_validate_captures(struct tare_file_validator *v) {
    struct captures c = { .v = v, .objects = v->source->meta->object_graph_def };
    struct tare_arena arena = { 0 };
    if (!c.objects) return;
    tare_file_check(v, "object graph", "", check_captures(&c, &arena));
    tare_arena_free(&arena);
}
