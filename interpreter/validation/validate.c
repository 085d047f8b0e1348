/* The walk over a model, and the rules of single nodes. */
#include "base/alloc.h"
#include "base/control.h"
#include "graph/definitions/attr_check.h"
#include "graph/definitions/opdef.h"
#include "graph/graphs.h"
#include "interpreter/validation/validate_internal.h"

#include <string.h>

/* Records a failed check as a violation. */
static void fault_of(struct tare_validator *validator, const struct tare_node *node, tare_status status) {
    if (status == TARE_OK) return;
    if (status == TARE_NO_MEMORY)
        validator->out_of_memory = true;
    else
        tare_fault_at(validator, node, "%s", tare_error_text());
    tare_error_clear();
}

/* Names of attributes are mostly few; a damaged file may have any number. */
static void check_attr_names(struct tare_validator *validator, const struct tare_node *node) {
    enum { FEW = 32 };
    struct tare_map seen = { 0 };
    for (size_t i = 0; i < node->n_attrs; i++) {
        const char *name = node->attrs[i].name;
        bool twice = node->n_attrs > FEW && tare_map_get(&seen, name);
        for (size_t k = 0; k < i && node->n_attrs <= FEW && !twice; k++)
            twice = strcmp(node->attrs[k].name, name) == 0;
        if (twice) tare_fault_at(validator, node, "two attrs named %s", name);
        if (node->n_attrs > FEW && !tare_map_set(&seen, name, &node->attrs[i])) validator->out_of_memory = true;
    }
    tare_map_free(&seen);
}

static void check_attrs(struct tare_validator *validator, const struct tare_node *node) {
    const struct tare_op_def *def = node->def;
    for (size_t i = 0; i < def->n_attrs; i++) {
        const struct tare_attr *value = tare_node_find_attr(node, def->attrs[i].name);
        if (value)
            fault_of(validator, node, tare_attr_check(value, &def->attrs[i]));
        else if (!def->attrs[i].default_value)
            tare_fault_at(validator, node, "NodeDef missing attr '%s' from Op %s", def->attrs[i].name, node->op);
    }
    for (size_t i = 0; i < node->n_attrs; i++) {
        const char *name = node->attrs[i].name;
        bool known = *name == '_';
        for (size_t k = 0; k < def->n_attrs && !known; k++)
            known = strcmp(def->attrs[k].name, name) == 0;
        if (!known)
            tare_fault_at(validator, node, "NodeDef mentions attribute %s which is not in the op definition", name);
    }
    check_attr_names(validator, node);
}

/* The outputs that users of the node refer to are those of its definition. */
static void check_outputs(struct tare_validator *validator, const struct tare_node *node) {
    int *dtypes;
    size_t count;
    tare_status status = tare_opdef_output_dtypes(&validator->scratch, node, &dtypes, &count);
    if (status != TARE_OK) {
        fault_of(validator, node, status);
        return;
    }
    if (count != node->n_outputs) {
        tare_fault_at(validator, node, "has %zu outputs, its attrs say %zu", node->n_outputs, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (tare_dtype_base(dtypes[i]) != tare_dtype_base(node->output_dtypes[i]))
            tare_fault_at(validator, node, "output %zu is %s, its attrs say %s", i,
                          tare_dtype_name(node->output_dtypes[i]), tare_dtype_name(dtypes[i]));
}

/* Attributes first: inputs and outputs are not judged by attributes that are no good themselves. */
static void check_definition(struct tare_validator *validator, const struct tare_node *node) {
    size_t before = validator->faults->count;
    int *dtypes;
    size_t count;
    check_attrs(validator, node);
    if (validator->faults->count == before) {
        check_outputs(validator, node);
        fault_of(validator, node, tare_opdef_check_inputs(node));
        return;
    }
    if (tare_opdef_input_dtypes(&validator->scratch, node, &dtypes, &count) == TARE_OK)
        fault_of(validator, node, tare_opdef_check_inputs(node));
    tare_error_clear();
}

static void check_controls(struct tare_validator *validator, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_controls; i++) {
        const struct tare_node *before = node->controls[i];
        if (!before || before->dead || before->graph != node->graph)
            tare_fault_at(validator, node, "control input %s names no node", before ? before->name : "");
    }
}

/* Of the main graph; those in functions are not checked, and refer to what the function captured where it was made. The
 * text is TensorFlow's (core/common_runtime/graph_constructor.cc). */
static void check_colocation(struct tare_validator *validator, const struct tare_node *node) {
    static const char prefix[] = "loc:@";
    const struct tare_attr *classes = tare_node_find_attr(node, "_class");
    if (node->graph != validator->model->main) return;
    for (size_t i = 0; classes && classes->kind == TARE_ATTR_STRING && i < classes->count; i++) {
        const char *text = classes->items[i].s.data;
        if (classes->items[i].s.size < sizeof prefix - 1 || strncmp(text, prefix, sizeof prefix - 1) != 0) continue;
        if (!tare_graph_find(node->graph, text + sizeof prefix - 1))
            tare_fault_at(validator, node, "expects to be colocated with unknown node '%s'", text + sizeof prefix - 1);
    }
}

static void check_node(struct tare_validator *validator, const struct tare_node *node) {
    const struct tare_node *named = tare_map_get(&node->graph->by_name, node->name);
    if (!tare_node_is_loadable(node)) tare_fault_at(validator, node, "Node name contains invalid characters");
    if (named && named != node && !named->dead) tare_fault_at(validator, node, "two nodes named %s", node->name);
    if (!*node->op) {
        tare_fault_at(validator, node, "a node without an op");
        return;
    }
    check_controls(validator, node);
    check_colocation(validator, node);
    if (node->def && validator->options->ops && !tare_ops_find(validator->options->ops, node->op)) {
        tare_fault_at(validator, node, "unknown op");
    } else if (node->def) {
        check_definition(validator, node);
    } else if (!tare_model_find_function(validator->model, node->op)) {
        tare_fault_at(validator, node, "unknown op");
        return;
    }
    tare_validate_output_shapes(validator, node);
    tare_validate_calls(validator, node);
    tare_validate_batching(validator, node);
    tare_validate_tpu(validator, node);
}

/* ---- whole graphs ---- */

static const char *edge_fault(struct tare_validator *validator, const struct tare_graph *graph, struct tare_edge edge,
                              int dtype) {
    const struct tare_node *node = edge.node;
    const char *text = NULL;
    if (!node || node->dead || node->graph != graph)
        text = tare_arena_printf(&validator->scratch, "names no node%s%s", node ? ": " : "", node ? node->name : "");
    else if (edge.index < 0 || (size_t)edge.index >= node->n_outputs)
        text = tare_arena_printf(&validator->scratch, "is output %d of %s, which has %zu", edge.index, node->name,
                                 node->n_outputs);
    else if (!node->output_dtypes[edge.index]) /* of an unknown op, which is reported separately */
        text = NULL;
    else if (dtype != TARE_DT_INVALID && tare_dtype_base(node->output_dtypes[edge.index]) != tare_dtype_base(dtype))
        text = tare_arena_printf(&validator->scratch, "has %s, declared %s",
                                 tare_dtype_name(node->output_dtypes[edge.index]), tare_dtype_name(dtype));
    return text;
}

static void check_graph(struct tare_validator *validator, const struct tare_graph *graph) {
    struct tare_node **order;
    tare_status status;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->dead) continue;
        check_node(validator, graph->nodes[i]);
        tare_arena_reset(&validator->scratch);
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        const struct tare_return *value = &graph->returns[i];
        const char *fault = edge_fault(validator, graph, value->edge, value->dtype);
        if (fault) tare_fault(validator, tare_graph_label(graph), "output %s %s", value->name, fault);
    }
    for (size_t i = 0; i < graph->n_control_returns; i++) {
        const struct tare_node *node = graph->control_returns[i].node;
        if (!node || node->dead || node->graph != graph)
            tare_fault(validator, tare_graph_label(graph), "control_ret %s names no node",
                       graph->control_returns[i].name);
    }
    tare_validate_implements(validator, graph);
    tare_validate_arg_shapes(validator, graph);
    status = tare_graph_order(&order, &validator->scratch, graph);
    if (status == TARE_NO_MEMORY) validator->out_of_memory = true;
    if (status != TARE_OK) tare_fault(validator, tare_graph_label(graph), "%s", tare_error_text());
    tare_error_clear();
    tare_arena_reset(&validator->scratch);
}

/* ---- signatures, variables ---- */

static void check_binding(struct tare_validator *validator, const struct tare_signature *signature,
                          const struct tare_binding *binding) {
    const char *fault = edge_fault(validator, validator->model->main, binding->edge, binding->dtype);
    const char *where =
        fault ? tare_arena_printf(&validator->scratch, "signature %s/%s", signature->key, binding->key) : NULL;
    if (where) tare_fault(validator, where, "tensor %s", fault);
}

/* A variable that needs no value in the file: an optimizer's slot or step counter that nothing which is served can
 * read, which a loader leaves uninitialised, or one that the model's initializer sets. */
static void note_without_value(struct tare_validator *validator, const struct tare_variable *variable,
                               const char *reason) {
    const struct tare_node *node = variable->node;
    const char *where =
        tare_arena_printf(&validator->scratch, "%s/%s (%s)", tare_graph_label(node->graph), node->name, node->op);
    const char *what = tare_arena_printf(&validator->scratch, "variable %s has no value in the checkpoint, and %s",
                                         variable->shared_name, reason);
    if (!where || !what || tare_faults_note(validator->faults, where, what) != TARE_OK) validator->out_of_memory = true;
}

static void check_variable(struct tare_validator *validator, const struct tare_variable *variable) {
    const struct tare_node *node = variable->node;
    char declared[TARE_SHAPE_TEXT_SIZE], stored[TARE_SHAPE_TEXT_SIZE];
    if (variable->removed || !node || node->dead) return;
    if (validator->options->values_in_file && variable->key) return; /* dtype and shape were checked by the importer */
    if (validator->options->values_optional && !variable->key) return;
    if (variable->value.dtype == TARE_DT_INVALID) {
        if (variable->dtype != TARE_DT_STRING && variable->key)
            tare_fault_at(validator, node, "checkpoint key %s is not stored", variable->key);
        else if (variable->dtype != TARE_DT_STRING && !tare_validate_is_reachable(validator, variable))
            note_without_value(validator, variable, "nothing reads it");
        else if (variable->dtype != TARE_DT_STRING && tare_validate_is_initialized(validator, variable))
            note_without_value(validator, variable, "an initializer sets it");
        else if (variable->dtype != TARE_DT_STRING)
            tare_fault_at(validator, node, "variable %s has no value in the checkpoint", variable->shared_name);
        return;
    }
    if (variable->value.dtype != variable->dtype)
        tare_fault_at(validator, node, "dtype %s, the checkpoint has %s", tare_dtype_name(variable->dtype),
                      tare_dtype_name(variable->value.dtype));
    if (!tare_shape_compatible(&variable->shape, &variable->value.shape))
        tare_fault_at(validator, node, "shape %s, the checkpoint has %s", tare_shape_text(declared, &variable->shape),
                      tare_shape_text(stored, &variable->value.shape));
}

static void check_aliases(struct tare_validator *validator) {
    const struct tare_graph_model *model = validator->model;
    for (size_t i = 0; i < model->n_aliases; i++)
        if (!tare_model_find_function(model, model->aliases[i].function))
            tare_fault(validator, "function_aliases", "%s -> %s: no such function", model->aliases[i].alias,
                       model->aliases[i].function);
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph && model->concretes[i].n_bound > model->concretes[i].graph->n_args)
            tare_fault(validator, "object graph", "%s has more bound inputs than arguments",
                       model->concretes[i].graph->name);
}

tare_status tare_model_validate(struct tare_faults *faults, const struct tare_graph_model *model,
                                const struct tare_validate_options *options) {
    const struct tare_validate_options defaults = { 0 };
    struct tare_validator validator = { .faults = faults, .model = model, .options = options ? options : &defaults };
    for (size_t i = 0; i <= model->n_functions; i++)
        check_graph(&validator, tare_model_graph(model, i));
    for (size_t s = 0; s < model->n_signatures; s++) {
        const struct tare_signature *signature = &model->signatures[s];
        for (size_t i = 0; i < signature->n_inputs; i++)
            check_binding(&validator, signature, &signature->inputs[i]);
        for (size_t i = 0; i < signature->n_outputs; i++)
            check_binding(&validator, signature, &signature->outputs[i]);
    }
    check_aliases(&validator);
    for (size_t i = 0; i < model->n_variables; i++)
        check_variable(&validator, &model->variables[i]);
    tare_validate_accesses(&validator);
    tare_validate_shared_names(&validator);
    for (size_t i = 0; i <= model->n_functions; i++)
        tare_validate_devices(&validator, tare_model_graph(model, i));
    tare_arena_free(&validator.lasting);
    tare_map_free(&validator.tpu_functions);
    tare_arena_free(&validator.scratch);
    tare_error_clear();
    TARE_TRY(tare_control_check()); /* checks that it stopped count as faults or as lack of memory above */
    if (validator.out_of_memory) return TARE_FAIL(TARE_NO_MEMORY, "out of memory while the model was checked");
    return TARE_OK;
}
