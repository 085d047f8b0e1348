/* The nests of Python values in which callers pass and get the tensors of a function. TensorFlow flattens them itself,
 * dictionaries by key, and takes the leaves for the arguments and results in their order. */
#include "base/alloc.h"
#include "convert/structured.h"
#include "convert/validation/internal.h"

#include <stdlib.h>
#include <string.h>

typedef Tensorflow__StructuredValue structured;
typedef Tensorflow__SavedConcreteFunction described_function;

struct leaf {
    const char *name;
    int dtype;
};

struct leaves {
    struct leaf *items;
    size_t count, capacity;
    bool composite; /* contains values that are several tensors each */
};

static bool add_leaf(void *arg, const structured *value) {
    struct leaves *leaves = arg;
    struct leaf leaf;
    if (value && value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE) leaves->composite = true;
    if (value && value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE)
        leaf = (struct leaf){ value->tensor_spec_value->name, (int)value->tensor_spec_value->dtype };
    else if (value && value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE)
        leaf = (struct leaf){ value->bounded_tensor_spec_value->name, (int)value->bounded_tensor_spec_value->dtype };
    else
        return true; /* a Python value */
    if (!TARE_GROW(leaves->items, leaves->count, leaves->capacity)) return false;
    leaves->items[leaves->count++] = leaf;
    return true;
}

static const struct leaf *find_leaf(const struct leaves *leaves, const char *name) {
    for (size_t i = 0; i < leaves->count; i++)
        if (leaves->items[i].name && strcmp(leaves->items[i].name, name) == 0) return &leaves->items[i];
    return NULL;
}

/* ---- arguments ---- */

/* TensorFlow makes names of arguments from those of the leaves, but not always the same: only if all are the same can
 * their order be judged. */
static void check_order(struct tare_file_validator *v, const struct tare_graph *function, const struct leaves *leaves) {
    for (size_t i = 0; i < leaves->count; i++)
        if (!find_leaf(leaves, function->args[i]->name)) return;
    for (size_t i = 0; i < leaves->count; i++) {
        const char *name = leaves->items[i].name;
        if (!name || strcmp(name, function->args[i]->name) == 0) continue;
        tare_file_fault(v, "object graph", "argument %zu of %s is %s, its structured signature has %s there", i,
                        function->name, function->args[i]->name, name);
        return;
    }
}

static void check_arguments(struct tare_file_validator *v, const struct tare_graph *function,
                            const described_function *described, const struct leaves *leaves) {
    const size_t n_bound = described->n_bound_inputs;
    if (leaves->composite || !leaves->count || n_bound > function->n_args) return; /* none: pruned by wrap_function */
    if (leaves->count != function->n_args - n_bound) {
        tare_file_fault(v, "object graph", "%s has %zu arguments, its structured signature %zu tensors", function->name,
                        function->n_args - n_bound, leaves->count);
        return;
    }
    for (size_t i = 0; i < leaves->count; i++)
        if (leaves->items[i].dtype != tare_dtype_base(function->args[i]->output_dtypes[0]))
            tare_file_fault(v, "object graph", "argument %s of %s is %s, its structured signature has %s",
                            function->args[i]->name, function->name,
                            tare_dtype_name(function->args[i]->output_dtypes[0]),
                            tare_dtype_name(leaves->items[i].dtype));
    check_order(v, function, leaves);
}

/* ---- results ---- */

static void check_results(struct tare_file_validator *v, const struct tare_graph *function,
                          const struct leaves *leaves) {
    if (leaves->composite) return;
    if (leaves->count != function->n_returns) {
        tare_file_fault(v, "object graph", "%s has %zu results, its structured outputs %zu tensors", function->name,
                        function->n_returns, leaves->count);
        return;
    }
    for (size_t i = 0; i < leaves->count; i++)
        if (leaves->items[i].dtype != tare_dtype_base(function->returns[i].dtype))
            tare_file_fault(v, "object graph", "result %s of %s is %s, its structured outputs have %s",
                            function->returns[i].name, function->name, tare_dtype_name(function->returns[i].dtype),
                            tare_dtype_name(leaves->items[i].dtype));
}

static bool is_before(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b) < 0;
}

/* The signature function of a SignatureDef returns a dictionary: what the name `key` is in it must be what the
 * SignatureDef's output is. */
static void check_signature(struct tare_file_validator *v, const struct tare_signature *signature,
                            const struct tare_graph *function, const described_function *described) {
    const structured *outputs = described->output_signature;
    const Tensorflow__DictValue *dict;
    if (!outputs || outputs->kind_case != TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE) return;
    dict = outputs->dict_value;
    if (dict->n_fields != function->n_returns) return;
    for (size_t i = 0; i < signature->n_outputs; i++) {
        const struct tare_binding *output = &signature->outputs[i];
        size_t place = 0;
        bool known = false;
        for (size_t k = 0; k < dict->n_fields; k++) {
            known |= strcmp(dict->fields[k]->key, output->key) == 0;
            place += is_before(&dict->fields[k]->key, &output->key);
        }
        if (!known || !output->edge.node || tare_node_function(output->edge.node, "f") != function ||
            (size_t)output->edge.index == place)
            continue;
        tare_file_fault(v, "object graph",
                        "output %s of signature %s is result %d of %s, its structured outputs have it at %zu",
                        output->key, signature->key, output->edge.index, function->name, place);
        return;
    }
}

/* ---- all ---- */

static bool check_function(struct tare_file_validator *v, const struct tare_graph *function,
                           const described_function *described) {
    struct leaves arguments = { 0 }, results = { 0 };
    const bool complete =
        (!described->canonicalized_input_signature ||
         tare_structured_each_leaf(described->canonicalized_input_signature, add_leaf, &arguments)) &&
        (!described->output_signature || tare_structured_each_leaf(described->output_signature, add_leaf, &results));
    if (complete && described->canonicalized_input_signature) check_arguments(v, function, described, &arguments);
    if (complete && described->output_signature) check_results(v, function, &results);
    tare_free(arguments.items);
    tare_free(results.items);
    return complete;
}

/* The concrete function of a signature: a child of the object that the root calls "signatures". */
static const char *signature_function(const Tensorflow__SavedObjectGraph *objects, const char *key) {
    const Tensorflow__SavedObject *at = objects->n_nodes ? objects->nodes[0] : NULL;
    const char *const path[] = { "signatures", key };
    for (size_t step = 0; step < 2 && at; step++) {
        const Tensorflow__SavedObject *next = NULL;
        for (size_t i = 0; i < at->n_children && !next; i++) {
            const int id = at->children[i]->node_id;
            if (strcmp(at->children[i]->local_name, path[step]) == 0 && id >= 0 && (size_t)id < objects->n_nodes)
                next = objects->nodes[id];
        }
        at = next;
    }
    if (!at || at->kind_case != TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION) return NULL;
    return at->bare_concrete_function->concrete_function_name;
}

/* Signatures by the name of their function; the first counts, others with the same function have the same outputs. */
static tare_status index_signatures(struct tare_map *out, const struct tare_file_validator *v) {
    for (size_t s = 0; s < v->model->n_signatures; s++) {
        struct tare_signature *signature = &v->model->signatures[s];
        const char *name = signature_function(v->source->meta->object_graph_def, signature->key);
        if (name && !tare_map_get(out, name) && !tare_map_set(out, name, signature)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

void tare_validate_structured(struct tare_file_validator *v) {
    const Tensorflow__SavedObjectGraph *objects = v->source->meta->object_graph_def;
    struct tare_map signatures = { 0 };
    if (!objects || !v->model) return;
    if (index_signatures(&signatures, v) != TARE_OK) v->out_of_memory = true;
    for (size_t i = 0; i < objects->n_concrete_functions; i++) {
        const char *name = objects->concrete_functions[i]->key;
        const struct tare_graph *function = tare_model_find_function(v->model, name);
        const struct tare_signature *signature = tare_map_get(&signatures, name);
        const described_function *described = objects->concrete_functions[i]->value;
        if (!function || !described) continue;
        if (!check_function(v, function, described)) v->out_of_memory = true;
        if (signature) check_signature(v, signature, function, described);
    }
    tare_map_free(&signatures);
}
