/* Rules that span nodes: shape hints that loaders take as facts, and the dtypes with which variables are accessed. */
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/devices.h"
#include "graph/graphs.h"
#include "graph/shared_names.h"
#include "interpreter/validation/validate_internal.h"

#include <string.h>

/* ---- shape hints ---- */

/* TensorFlow's importers refuse a list of another length (mlir/tf2xla/api/v2/graph_to_tf_executor.cc). */
void tare_validate_arg_shapes(struct tare_validator *validator, const struct tare_graph *function) {
    const struct tare_attr *shapes = tare_graph_find_attr(function, "_input_shapes");
    if (shapes && shapes->is_list && shapes->count && shapes->count != function->n_args)
        tare_fault(validator, tare_graph_label(function), "_input_shapes has %zu shapes, the function %zu arguments",
                   shapes->count, function->n_args);
}

/* Python's loader asserts it (python/eager/polymorphic_function/atomic_function.py). */
void tare_validate_implements(struct tare_validator *validator, const struct tare_graph *function) {
    if (tare_graph_find_attr(function, "_implements") && tare_graph_takes_resource(function))
        tare_fault(validator, tare_graph_label(function), "has the attribute _implements and takes a resource");
}

/* The text and the rule are TensorFlow's (core/common_runtime/graph_constructor.cc); a value without content is an
 * empty list there. */
void tare_validate_output_shapes(struct tare_validator *validator, const struct tare_node *node) {
    const struct tare_attr *shapes = tare_node_find_attr(node, "_output_shapes");
    if (!node->def || !shapes || (!shapes->is_list && shapes->kind != TARE_ATTR_NONE)) return;
    if (shapes->count < node->n_outputs)
        tare_fault_at(validator, node,
                      "has %zu outputs but the _output_shapes attribute specifies shapes for %zu outputs",
                      node->n_outputs, shapes->count);
}

/* ---- variables ---- */

static bool accesses_variable(const struct tare_node *node) {
    return strcmp(node->op, "ReadVariableOp") == 0 || strcmp(node->op, "AssignVariableOp") == 0 ||
           strcmp(node->op, "AssignAddVariableOp") == 0 || strcmp(node->op, "AssignSubVariableOp") == 0;
}

static void check_accesses(struct tare_validator *validator, const struct tare_bindings *bindings,
                           const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const struct tare_variable *variable;
        int dtype;
        if (node->dead || !node->n_inputs || !accesses_variable(node)) continue;
        variable = tare_bindings_variable(bindings, node->inputs[0], NULL);
        dtype = tare_node_type(node, "dtype", TARE_DT_INVALID);
        if (variable && dtype != TARE_DT_INVALID && tare_dtype_base(dtype) != tare_dtype_base(variable->dtype))
            tare_fault_at(validator, node, "has dtype %s, the variable %s is %s", tare_dtype_name(dtype),
                          variable->shared_name, tare_dtype_name(variable->dtype));
    }
}

void tare_validate_accesses(struct tare_validator *validator) {
    const struct tare_graph_model *model = validator->model;
    struct tare_bindings *bindings;
    if (!model->n_variables) return;
    if (tare_bindings_new(&bindings, model) != TARE_OK) { /* a graph that cannot be followed is reported elsewhere */
        tare_error_clear();
        return;
    }
    for (size_t i = 0; i <= model->n_functions; i++)
        check_accesses(validator, bindings, tare_model_graph(model, i));
    tare_bindings_free(bindings);
}

/* Whether anything that a user of the model runs can read the variable. */
static bool is_captured(const struct tare_graph_model *model, const struct tare_variable *variable) {
    for (size_t c = 0; c < model->n_concretes && variable->object_id >= 0; c++)
        for (size_t b = 0; b < model->concretes[c].n_bound; b++)
            if (model->concretes[c].bound[b] == variable->object_id) return true;
    return false;
}

bool tare_validate_is_reachable(struct tare_validator *validator, const struct tare_variable *variable) {
    if (!validator->served && !validator->out_of_memory &&
        tare_model_served_nodes(&validator->served, &validator->lasting, validator->model) != TARE_OK) {
        validator->out_of_memory = true;
        validator->served = NULL;
    }
    if (!validator->served) return true;
    return validator->served[variable->node->position] || is_captured(validator->model, variable);
}

bool tare_validate_is_initialized(struct tare_validator *validator, const struct tare_variable *variable) {
    if (!validator->initialized && !validator->out_of_memory &&
        tare_model_initialized_nodes(&validator->initialized, &validator->lasting, validator->model) != TARE_OK) {
        validator->out_of_memory = true;
        validator->initialized = NULL;
    }
    return validator->initialized && validator->initialized[variable->node->position];
}

void tare_validate_shared_names(struct tare_validator *validator) {
    struct tare_name_twins *twins;
    size_t count;
    tare_status status = tare_model_name_twins(&twins, &count, &validator->scratch, validator->model);
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        const struct tare_node *node = twins[i].second;
        const char *where =
            tare_arena_printf(&validator->scratch, "%s/%s (%s)", tare_graph_label(node->graph), node->name, node->op);
        const char *what =
            tare_arena_printf(&validator->scratch, "the shared_name '%s' is that of node '%s', too: a server %s",
                              twins[i].name, twins[i].first->name, twins[i].effect);
        status = where && what ? tare_faults_note(validator->faults, where, what) : TARE_NO_MEMORY;
    }
    if (status == TARE_NO_MEMORY) validator->out_of_memory = true;
    tare_error_clear(); /* a graph that cannot be followed is reported elsewhere */
}

static tare_status note_device(struct tare_validator *validator, const struct tare_node *node, size_t count) {
    const char *where =
        tare_arena_printf(&validator->scratch, "%s/%s (%s)", tare_graph_label(node->graph), node->name, node->op);
    const char *more =
        count > 1 ? tare_arena_printf(&validator->scratch, " (%zu nodes of this graph have such devices)", count) : "";
    const char *what = tare_arena_printf(&validator->scratch,
                                         "is assigned to the device '%s'%s: a server without it needs soft placement",
                                         node->device, more ? more : "");
    return where && what && more ? tare_faults_note(validator->faults, where, what) : TARE_NO_MEMORY;
}

void tare_validate_devices(struct tare_validator *validator, const struct tare_graph *graph) {
    const struct tare_node *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || !tare_device_is_foreign(node->device)) continue;
        if (!count++) first = node;
    }
    if (first && note_device(validator, first, count) != TARE_OK) validator->out_of_memory = true;
}
