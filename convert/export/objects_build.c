/* Object graphs for a model that was built in memory, with the layout of TensorFlow's tf.saved_model.save: the children
 * of the root are the variables by path, the aliased functions by alias, and "signatures". */
#include "convert/export/objects.h"
#include "base/map.h"
#include "convert/export/function_spec.h"
#include "proto/field.h"
#include "proto/tensor_message.h"
#include "tpu/functions.h"

#include <string.h>

static const char VARIABLE_SUFFIX[] = "/.ATTRIBUTES/VARIABLE_VALUE";

struct builder {
    struct tare_arena *arena;
    struct tare_graph_model *model;
    Tensorflow__SavedObjectGraph *saved;
    Tensorflow__TrackableObjectGraph *trackable;
    size_t capacity;
    struct tare_map variables; /* by the address of their node */
    struct tare_map on_path;   /* children that are variables or contain some, by "PARENT/NAME" */
};

static void *new_message(struct builder *b, const ProtobufCMessageDescriptor *descriptor) {
    return tare_message_new(b->arena, descriptor);
}

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant;
}

/* ---- objects and children ---- */

static tare_status add_object(size_t *id, struct builder *b) {
    Tensorflow__SavedObject *object;
    Tensorflow__TrackableObjectGraph__TrackableObject *trackable;
    if (b->saved->n_nodes == b->capacity) return TARE_FAIL(TARE_INTERNAL, "object graph larger than planned");
    object = new_message(b, &tensorflow__saved_object__descriptor);
    if (!object) return TARE_NO_MEMORY;
    trackable = new_message(b, &tensorflow__trackable_object_graph__trackable_object__descriptor);
    if (!trackable) return TARE_NO_MEMORY;
    *id = b->saved->n_nodes;
    b->saved->nodes[b->saved->n_nodes++] = object;
    b->trackable->nodes[b->trackable->n_nodes++] = trackable;
    return TARE_OK;
}

static tare_status make_user_object(struct builder *b, size_t id, const char *identifier) {
    Tensorflow__SavedObject *object = b->saved->nodes[id];
    object->user_object = new_message(b, &tensorflow__saved_user_object__descriptor);
    if (!object->user_object) return TARE_NO_MEMORY;
    object->user_object->version = new_message(b, &tensorflow__version_def__descriptor);
    if (!object->user_object->version) return TARE_NO_MEMORY;
    object->kind_case = TENSORFLOW__SAVED_OBJECT__KIND_USER_OBJECT;
    object->user_object->identifier = text(identifier);
    object->user_object->version->producer = object->user_object->version->min_consumer = 1;
    return TARE_OK;
}

typedef Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference reference;

static tare_status push_child(struct builder *b, reference ***children, size_t *count, reference *child) {
    reference **grown = tare_arena_append(b->arena, *children, *count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[(*count)++] = child;
    *children = grown;
    return TARE_OK;
}

static tare_status add_child(struct builder *b, size_t parent, const char *name, size_t child) {
    reference *ref;
    Tensorflow__SavedObject *object = b->saved->nodes[parent];
    Tensorflow__TrackableObjectGraph__TrackableObject *trackable = b->trackable->nodes[parent];
    ref = new_message(b, &tensorflow__trackable_object_graph__trackable_object__object_reference__descriptor);
    if (!ref) return TARE_NO_MEMORY;
    ref->node_id = (int32_t)child;
    ref->local_name = text(name);
    TARE_TRY(push_child(b, &object->children, &object->n_children, ref));
    return push_child(b, &trackable->children, &trackable->n_children, ref);
}

/* ---- variables ---- */

/* One step of a checkpoint key: "a.Sb" is the local name "a/b", ".." is ".". */
static const char *unescape(struct tare_arena *arena, const char *part, size_t size) {
    char *out = tare_arena_alloc(arena, size + 1);
    size_t used = 0;
    for (size_t i = 0; out && i < size; i++) {
        bool escaped = part[i] == '.' && i + 1 < size && (part[i + 1] == '.' || part[i + 1] == 'S');
        out[used++] = escaped && part[i + 1] == 'S' ? '/' : part[i];
        i += escaped;
    }
    if (out) out[used] = '\0';
    return out;
}

/* The child `name` of *id, which becomes *id; it is added if it does not exist. */
static tare_status add_step(size_t *id, struct builder *b, const char *name) {
    const size_t parent = *id;
    const char *key = name ? tare_arena_printf(b->arena, "%zu/%s", parent, name) : NULL;
    const reference *known = key ? tare_map_get(&b->on_path, key) : NULL;
    if (!key) return TARE_NO_MEMORY;
    if (known) {
        *id = (size_t)known->node_id;
        return TARE_OK;
    }
    TARE_TRY(add_object(id, b));
    TARE_TRY(make_user_object(b, *id, "_generic_user_object"));
    TARE_TRY(add_child(b, parent, name, *id));
    const Tensorflow__SavedObject *object = b->saved->nodes[parent];
    return tare_map_set(&b->on_path, key, object->children[object->n_children - 1]) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_path(size_t *id, struct builder *b, const char *key, size_t size) {
    *id = 0;
    for (size_t at = 0, end; at < size; at = end + 1) {
        const char *slash = memchr(key + at, '/', size - at);
        end = slash ? (size_t)(slash - key) : size;
        TARE_TRY(add_step(id, b, unescape(b->arena, key + at, end - at)));
    }
    return TARE_OK;
}

static tare_status add_variable(struct builder *b, struct tare_variable *variable) {
    size_t size = strlen(variable->key), suffix = sizeof VARIABLE_SUFFIX - 1, id;
    Tensorflow__SavedVariable *saved;
    Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *attribute;
    Tensorflow__TrackableObjectGraph__TrackableObject *trackable;
    if (size <= suffix || strcmp(variable->key + size - suffix, VARIABLE_SUFFIX) != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "variable %s: key '%s' is not an object path", variable->shared_name,
                         variable->key);
    TARE_TRY(add_path(&id, b, variable->key, size - suffix));
    variable->object_id = (int)id;
    saved = new_message(b, &tensorflow__saved_variable__descriptor);
    if (!saved) return TARE_NO_MEMORY;
    saved->dtype = (Tensorflow__DataType)variable->dtype;
    saved->name = text(variable->shared_name);
    saved->trainable = tare_is_trainable_dtype(variable->dtype);
    saved->shape = tare_shape_to_message(b->arena, &variable->shape);
    if (!saved->shape) return TARE_NO_MEMORY;
    b->saved->nodes[id]->kind_case = TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE;
    b->saved->nodes[id]->variable = saved;
    attribute = new_message(b, &tensorflow__trackable_object_graph__trackable_object__serialized_tensor__descriptor);
    if (!attribute) return TARE_NO_MEMORY;
    attribute->name = text("VARIABLE_VALUE");
    attribute->full_name = text(variable->shared_name);
    attribute->checkpoint_key = text(variable->key);
    trackable = b->trackable->nodes[id];
    trackable->attributes = TARE_NEW(b->arena, Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *);
    if (!trackable->attributes) return TARE_NO_MEMORY;
    trackable->attributes[0] = attribute;
    trackable->n_attributes = 1;
    return TARE_OK;
}

/* ---- structured values ---- */

static tare_status make_spec(Tensorflow__StructuredValue **out, struct builder *b, const char *name, int dtype,
                             const struct tare_shape *shape) {
    Tensorflow__TensorSpecProto *spec;
    spec = new_message(b, &tensorflow__tensor_spec_proto__descriptor);
    if (!spec) return TARE_NO_MEMORY;
    spec->name = text(name);
    spec->dtype = (Tensorflow__DataType)dtype;
    spec->shape = tare_shape_to_message(b->arena, shape);
    if (!spec->shape) return TARE_NO_MEMORY;
    *out = new_message(b, &tensorflow__structured_value__descriptor);
    if (!*out) return TARE_NO_MEMORY;
    (*out)->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE;
    (*out)->tensor_spec_value = spec;
    return TARE_OK;
}

static tare_status make_tuple(Tensorflow__StructuredValue **out, struct builder *b,
                              Tensorflow__StructuredValue **values, size_t count) {
    *out = new_message(b, &tensorflow__structured_value__descriptor);
    if (!*out) return TARE_NO_MEMORY;
    (*out)->tuple_value = new_message(b, &tensorflow__tuple_value__descriptor);
    if (!(*out)->tuple_value) return TARE_NO_MEMORY;
    (*out)->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE;
    (*out)->tuple_value->values = values;
    (*out)->tuple_value->n_values = count;
    return TARE_OK;
}

static tare_status make_dict(Tensorflow__StructuredValue **out, struct builder *b, const char *const *keys,
                             Tensorflow__StructuredValue *const *values, size_t count) {
    Tensorflow__DictValue *dict;
    *out = new_message(b, &tensorflow__structured_value__descriptor);
    if (!*out) return TARE_NO_MEMORY;
    dict = new_message(b, &tensorflow__dict_value__descriptor);
    if (!dict) return TARE_NO_MEMORY;
    dict->fields = TARE_NEW_ARRAY(b->arena, Tensorflow__DictValue__FieldsEntry *, count + 1);
    if (!dict->fields) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        dict->fields[i] = new_message(b, &tensorflow__dict_value__fields_entry__descriptor);
        if (!dict->fields[i]) return TARE_NO_MEMORY;
        dict->fields[i]->key = text(keys[i]);
        dict->fields[i]->value = values[i];
    }
    dict->n_fields = count;
    (*out)->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE;
    (*out)->dict_value = dict;
    return TARE_OK;
}

/* ---- functions ---- */

static size_t count_captures(const struct tare_graph *graph) {
    size_t count = 0;
    while (count < graph->n_args && graph->args[graph->n_args - 1 - count]->output_dtypes[0] == TARE_DT_RESOURCE)
        count++;
    return count;
}

/* Which objects a function's captures are bound to: what the signature's call chain passes, by argument name order. The
 * functions of a built model all take the same captures in the same order as the call in the main graph. */
static tare_status bind_captures(struct builder *b, const struct tare_graph *graph, const struct tare_node *call) {
    size_t count = count_captures(graph);
    struct tare_concrete *grown = tare_arena_append(&b->model->arena, b->model->concretes, b->model->n_concretes,
                                                    sizeof *grown),
                         *concrete;
    if (!grown) return TARE_NO_MEMORY;
    concrete = &grown[b->model->n_concretes];
    concrete->graph = (struct tare_graph *)(uintptr_t)graph;
    concrete->bound = TARE_NEW_ARRAY(&b->model->arena, int, count + 1);
    if (!concrete->bound) return TARE_NO_MEMORY;
    if (count > call->n_inputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has captures that no call binds", graph->name);
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *handle = call->inputs[call->n_inputs - count + i].node;
        const struct tare_variable *variable = tare_map_get_n(&b->variables, (const char *)&handle, sizeof handle);
        concrete->bound[i] = variable ? variable->object_id : -1;
        if (concrete->bound[i] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: capture %zu is not a variable", graph->name, i);
    }
    concrete->n_bound = count;
    b->model->concretes = grown;
    b->model->n_concretes++;
    return TARE_OK;
}

static tare_status input_specs(Tensorflow__StructuredValue **values, struct builder *b,
                               const struct tare_signature *signature, const struct tare_graph *graph, size_t count) {
    struct tare_map inputs = { 0 };
    tare_status status = TARE_OK;
    for (size_t k = 0; k < signature->n_inputs && status == TARE_OK; k++)
        if (!tare_map_set(&inputs, signature->inputs[k].key, &signature->inputs[k])) status = TARE_NO_MEMORY;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        const char *name = graph->args[i]->name;
        const struct tare_binding *input = tare_map_get(&inputs, name);
        const struct tare_shape shape = input ? input->shape : tare_shape_unknown();
        status = make_spec(&values[i], b, name, graph->args[i]->output_dtypes[0], &shape);
    }
    tare_map_free(&inputs);
    return status;
}

/* The output of a signature that is result i of the call; NULL: none. */
static const struct tare_binding *output_of(const struct tare_signature *signature, size_t i) {
    for (size_t k = 0; k < signature->n_outputs; k++)
        if (signature->outputs[k].edge.node && signature->outputs[k].edge.index == (int)i)
            return &signature->outputs[k];
    return NULL;
}

/* Entry of the concrete function map. Signature functions take keywords and return a dict, others take and return
 * positional values. */
static tare_status add_concrete(struct builder *b, const struct tare_graph *graph,
                                const struct tare_signature *signature, bool keywords) {
    Tensorflow__SavedObjectGraph *saved = b->saved;
    Tensorflow__SavedObjectGraph__ConcreteFunctionsEntry *entry, **grown;
    Tensorflow__StructuredValue *args, *kwargs, **pair, **values, **results;
    const char **names;
    size_t n_inputs = graph->n_args - count_captures(graph);
    entry = new_message(b, &tensorflow__saved_object_graph__concrete_functions_entry__descriptor);
    if (!entry) return TARE_NO_MEMORY;
    entry->value = new_message(b, &tensorflow__saved_concrete_function__descriptor);
    if (!entry->value) return TARE_NO_MEMORY;
    entry->key = text(graph->name);
    values = TARE_NEW_ARRAY(b->arena, Tensorflow__StructuredValue *, n_inputs + 1);
    results = TARE_NEW_ARRAY(b->arena, Tensorflow__StructuredValue *, graph->n_returns + 1);
    names = TARE_NEW_ARRAY(b->arena, const char *, n_inputs + graph->n_returns + 1);
    pair = TARE_NEW_ARRAY(b->arena, Tensorflow__StructuredValue *, 2);
    if (!values || !results || !names || !pair) return TARE_NO_MEMORY;
    TARE_TRY(input_specs(values, b, signature, graph, n_inputs));
    for (size_t i = 0; i < n_inputs; i++)
        names[i] = graph->args[i]->name;
    TARE_TRY(make_tuple(&args, b, values, keywords ? 0 : n_inputs));
    TARE_TRY(make_dict(&kwargs, b, names, values, keywords ? n_inputs : 0));
    pair[0] = args;
    pair[1] = kwargs;
    TARE_TRY(make_tuple(&entry->value->canonicalized_input_signature, b, pair, 2));
    for (size_t i = 0; i < graph->n_returns; i++) {
        const struct tare_binding *output = output_of(signature, i);
        const struct tare_shape shape = output ? output->shape : tare_shape_unknown();
        names[i] = output ? output->key : graph->returns[i].name;
        TARE_TRY(make_spec(&results[i], b, names[i], graph->returns[i].dtype, &shape));
    }
    if (keywords)
        TARE_TRY(make_dict(&entry->value->output_signature, b, names, results, graph->n_returns));
    else if (graph->n_returns == 1)
        entry->value->output_signature = results[0];
    else
        TARE_TRY(make_tuple(&entry->value->output_signature, b, results, graph->n_returns));
    entry->value->bound_inputs = (int32_t *)b->model->concretes[b->model->n_concretes - 1].bound;
    entry->value->n_bound_inputs = b->model->concretes[b->model->n_concretes - 1].n_bound;
    grown = tare_arena_append(b->arena, saved->concrete_functions, saved->n_concrete_functions, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[saved->n_concrete_functions++] = entry;
    saved->concrete_functions = grown;
    return TARE_OK;
}

static tare_status add_signature(struct builder *b, size_t map, const struct tare_signature *signature) {
    const struct tare_graph *graph = tare_signature_function(signature);
    Tensorflow__SavedBareConcreteFunction *bare;
    size_t id, n_inputs;
    if (!graph) return TARE_OK; /* a signature over main-graph nodes has no function to name */
    TARE_TRY(add_object(&id, b));
    TARE_TRY(add_child(b, map, signature->key, id));
    TARE_TRY(bind_captures(b, graph, signature->outputs[0].edge.node));
    TARE_TRY(add_concrete(b, graph, signature, true));
    bare = new_message(b, &tensorflow__saved_bare_concrete_function__descriptor);
    if (!bare) return TARE_NO_MEMORY;
    n_inputs = graph->n_args - count_captures(graph);
    bare->concrete_function_name = text(graph->name);
    bare->argument_keywords = TARE_NEW_ARRAY(b->arena, char *, n_inputs + 1);
    if (!bare->argument_keywords) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs; i++)
        bare->argument_keywords[i] = text(graph->args[i]->name);
    bare->n_argument_keywords = n_inputs;
    b->saved->nodes[id]->kind_case = TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION;
    b->saved->nodes[id]->bare_concrete_function = bare;
    return TARE_OK;
}

static tare_status add_alias(struct builder *b, const struct tare_alias *alias) {
    const struct tare_graph *graph = tare_model_find_function(b->model, alias->function);
    const struct tare_signature *signature = b->model->n_signatures ? &b->model->signatures[0] : NULL;
    Tensorflow__SavedFunction *function;
    char **names;
    size_t id, n_inputs;
    if (!graph || !signature || !signature->outputs[0].edge.node) return TARE_OK;
    TARE_TRY(add_object(&id, b));
    TARE_TRY(add_child(b, 0, alias->alias, id));
    TARE_TRY(bind_captures(b, graph, signature->outputs[0].edge.node));
    TARE_TRY(add_concrete(b, graph, signature, false));
    function = new_message(b, &tensorflow__saved_function__descriptor);
    if (!function) return TARE_NO_MEMORY;
    function->concrete_functions = TARE_NEW(b->arena, char *);
    if (!function->concrete_functions) return TARE_NO_MEMORY;
    function->concrete_functions[0] = text(graph->name);
    function->n_concrete_functions = 1;
    n_inputs = graph->n_args - count_captures(graph);
    names = TARE_NEW_ARRAY(b->arena, char *, n_inputs + 1);
    if (!names) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs; i++)
        names[i] = text(graph->args[i]->name);
    TARE_TRY(tare_function_spec_new(&function->function_spec, b->arena, names, n_inputs));
    b->saved->nodes[id]->kind_case = TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION;
    b->saved->nodes[id]->function = function;
    return TARE_OK;
}

/* Every key adds at most as many objects as it has parts. */
static size_t most_objects(const struct tare_graph_model *model) {
    size_t count = 2 + model->n_signatures + model->n_aliases;
    for (size_t i = 0; i < model->n_variables; i++) {
        count++;
        for (const char *c = model->variables[i].key; c && *c; c++)
            count += *c == '/';
    }
    return count;
}

static tare_status begin(struct builder *b) {
    b->saved = new_message(b, &tensorflow__saved_object_graph__descriptor);
    if (!b->saved) return TARE_NO_MEMORY;
    b->trackable = new_message(b, &tensorflow__trackable_object_graph__descriptor);
    if (!b->trackable) return TARE_NO_MEMORY;
    b->saved->nodes = TARE_NEW_ARRAY(b->arena, Tensorflow__SavedObject *, b->capacity);
    b->trackable->nodes = TARE_NEW_ARRAY(b->arena, Tensorflow__TrackableObjectGraph__TrackableObject *, b->capacity);
    if (!b->saved->nodes || !b->trackable->nodes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->model->n_variables; i++) {
        struct tare_variable *variable = &b->model->variables[i];
        if (!tare_map_set_n(&b->variables, (const char *)&variable->node, sizeof variable->node, variable))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status add_all(struct builder *b) {
    const struct tare_graph_model *model = b->model;
    size_t root, map;
    TARE_TRY(begin(b));
    TARE_TRY(add_object(&root, b));
    TARE_TRY(make_user_object(b, root, "_generic_user_object"));
    for (size_t i = 0; i < model->n_variables; i++)
        if (model->variables[i].key && !model->variables[i].removed) TARE_TRY(add_variable(b, &model->variables[i]));
    for (size_t i = 0; i < model->n_aliases; i++)
        TARE_TRY(add_alias(b, &model->aliases[i]));
    TARE_TRY(add_object(&map, b));
    TARE_TRY(make_user_object(b, map, "signature_map"));
    TARE_TRY(add_child(b, root, "signatures", map));
    for (size_t i = 0; i < model->n_signatures; i++)
        TARE_TRY(add_signature(b, map, &model->signatures[i]));
    return TARE_OK;
}

tare_status tare_objects_build(struct tare_objects *out, struct tare_arena *arena, struct tare_graph_model *model) {
    struct builder b = { .arena = arena, .model = model, .capacity = most_objects(model) };
    model->n_concretes = 0;
    const tare_status status = add_all(&b);
    tare_map_free(&b.variables);
    tare_map_free(&b.on_path);
    if (status != TARE_OK) return status;
    out->saved = b.saved;
    out->trackable = b.trackable;
    return TARE_OK;
}
