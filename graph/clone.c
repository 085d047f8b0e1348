/* Copying functions and models. */
#include "graph/clone.h"
#include "base/alloc.h"
#include "graph/gradients.h"
#include "graph/op.h"

#include <string.h>

static struct tare_edge mapped(struct tare_edge edge, struct tare_node *const *nodes, const struct tare_graph *to) {
    if (!edge.node) return edge;
    if (tare_node_is_arg(edge.node)) return (struct tare_edge){ to->args[edge.node->position], 0 };
    return (struct tare_edge){ nodes[edge.node->position], edge.index };
}

static tare_status clone_node(struct tare_node **out, struct tare_graph *to, const struct tare_node *from) {
    struct tare_node *node = tare_graph_add_read(to, from->op, from->name); /* the names are unique already */
    if (!node) return TARE_NO_MEMORY;
    node->device = from->device;
    node->origin = from->origin;
    TARE_TRY(tare_node_resolve_like(node, from));
    *out = node;
    return tare_node_copy_attrs(node, from);
}

static tare_status clone_edges(struct tare_node *node, const struct tare_node *from, struct tare_node *const *nodes) {
    for (size_t i = 0; i < from->n_inputs; i++)
        TARE_TRY(tare_node_add_input(node, mapped(from->inputs[i], nodes, node->graph)));
    for (size_t i = 0; i < from->n_controls; i++) {
        struct tare_edge before = mapped((struct tare_edge){ from->controls[i], 0 }, nodes, node->graph);
        TARE_TRY(tare_node_add_control(node, before.node));
    }
    return TARE_OK;
}

static tare_status clone_returns(struct tare_graph *to, const struct tare_graph *from, struct tare_node *const *nodes) {
    for (size_t i = 0; i < from->n_returns; i++)
        TARE_TRY(tare_graph_add_return(to, from->returns[i].name, from->returns[i].dtype,
                                       mapped(from->returns[i].edge, nodes, to)));
    to->control_returns = TARE_NEW_ARRAY(&to->model->arena, struct tare_control_return, from->n_control_returns + 1);
    if (!to->control_returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < from->n_control_returns; i++) {
        const struct tare_control_return *ret = &from->control_returns[i];
        to->control_returns[to->n_control_returns++] =
            (struct tare_control_return){ ret->name, mapped((struct tare_edge){ ret->node, 0 }, nodes, to).node };
    }
    return TARE_OK;
}

static tare_status clone_body(struct tare_graph *to, const struct tare_graph *from, struct tare_node **nodes) {
    TARE_TRY(tare_graph_reserve(to, from->n_nodes));
    for (size_t i = 0; i < from->n_nodes; i++)
        if (!from->nodes[i]->dead) TARE_TRY(clone_node(&nodes[i], to, from->nodes[i]));
    for (size_t i = 0; i < from->n_nodes; i++)
        if (nodes[i]) TARE_TRY(clone_edges(nodes[i], from->nodes[i], nodes));
    return clone_returns(to, from, nodes);
}

/* Adds the nodes, edges and returns of `from` to a graph that has its arguments. */
static tare_status clone_contents(struct tare_graph *to, const struct tare_graph *from) {
    struct tare_node **nodes = tare_calloc(from->n_nodes + 1, sizeof *nodes);
    tare_status status = nodes ? clone_body(to, from, nodes) : TARE_NO_MEMORY;
    tare_free(nodes);
    return status;
}

static tare_status copy_function(struct tare_graph **out, const struct tare_graph *from, const char *name) {
    struct tare_graph *to = tare_model_add_function(from->model, name);
    if (!to) return TARE_NO_MEMORY;
    to->body_of = tare_graph_body_name(from);
    to->is_stateful = from->is_stateful;
    to->attrs = from->attrs;
    to->n_attrs = to->attrs_capacity = from->n_attrs;
    for (size_t i = 0; i < from->n_args; i++)
        if (!tare_graph_add_arg(to, from->args[i]->name, from->args[i]->output_dtypes[0])) return TARE_NO_MEMORY;
    *out = to;
    return clone_contents(to, from);
}

tare_status tare_function_clone(struct tare_graph **out, const struct tare_graph *from, const char *name) {
    TARE_TRY(copy_function(out, from, name));
    tare_gradients_drop_copied(*out, from);
    return TARE_OK;
}

tare_status tare_call_copy_function(struct tare_node *call) {
    const struct tare_graph *shared = tare_node_function(call, "f");
    const char *name = tare_model_unused_name(shared->model, shared->name);
    struct tare_graph *copy;
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(tare_function_clone(&copy, shared, name));
    copy->copied_from = shared->copied_from ? shared->copied_from : shared->name;
    return tare_node_set_func(call, "f", name);
}

tare_status tare_function_move_body(struct tare_graph **out, struct tare_graph *from, const char *name) {
    TARE_TRY(copy_function(out, from, name));
    tare_captured_moved(from, *out);
    for (size_t i = 0; i < from->n_nodes; i++)
        tare_node_remove(from->nodes[i]);
    tare_graph_sweep(from);
    for (size_t i = 0; i < from->n_returns; i++)
        tare_graph_set_return(from, i, (struct tare_edge){ NULL, 0 });
    from->n_control_returns = 0;
    return TARE_OK;
}

/* ---- models ---- */

/* A copy of a list, in the memory of the clone, with the room that tare_arena_append expects. */
static void *copy_list(struct tare_graph_model *to, const void *items, size_t count, size_t item_size) {
    size_t room = 1;
    while (room < count)
        room *= 2;
    return tare_arena_extend(&to->arena, items, count, room - count, item_size);
}
#define COPY(to, items, count) copy_list((to), (items), (count), sizeof *(items))

static struct tare_graph *twin_graph(const struct tare_graph_model *to, const struct tare_graph *graph) {
    return graph == graph->model->main ? to->main : tare_model_find_function(to, graph->name);
}

/* The clone of a node; NULL for a node that was removed. */
static struct tare_node *twin(const struct tare_graph_model *to, const struct tare_node *node) {
    struct tare_graph *graph = node && !node->dead ? twin_graph(to, node->graph) : NULL;
    if (!graph) return NULL;
    return tare_node_is_arg(node) ? graph->args[node->position] : tare_graph_find(graph, node->name);
}

static struct tare_edge twin_edge(const struct tare_graph_model *to, struct tare_edge edge) {
    return (struct tare_edge){ twin(to, edge.node), edge.index };
}

static tare_status clone_interface(struct tare_graph *to, const struct tare_graph *from) {
    to->is_stateful = from->is_stateful;
    to->must_not_jit = from->must_not_jit;
    to->arg_shapes_void = from->arg_shapes_void;
    to->origin = from->origin;
    to->copied_from = from->copied_from;
    to->attrs = COPY(to->model, from->attrs, from->n_attrs);
    if (!to->attrs) return TARE_NO_MEMORY;
    to->n_attrs = to->attrs_capacity = from->n_attrs;
    for (size_t i = 0; i < from->n_args; i++) {
        struct tare_node *arg = tare_graph_add_arg(to, from->args[i]->name, from->args[i]->output_dtypes[0]);
        if (!arg) return TARE_NO_MEMORY;
        arg->origin = from->args[i]->origin;
        arg->n_attrs = 0; /* that of an imported argument may lack the index */
        TARE_TRY(tare_node_copy_attrs(arg, from->args[i]));
    }
    return TARE_OK;
}

/* All functions are added before the first body, so that the nodes of bodies can refer to them. */
static tare_status clone_graphs(struct tare_graph_model *to, const struct tare_graph_model *from) {
    for (size_t i = 0; i < from->n_functions; i++) {
        struct tare_graph *function = tare_model_add_function(to, from->functions[i]->name);
        if (!function) return TARE_NO_MEMORY;
        TARE_TRY(clone_interface(function, from->functions[i]));
    }
    for (size_t i = 0; i < from->n_functions; i++)
        TARE_TRY(clone_contents(to->functions[i], from->functions[i]));
    return clone_contents(to->main, from->main);
}

static void clone_bindings(struct tare_graph_model *to, struct tare_binding *bindings, size_t count) {
    for (size_t i = 0; i < count; i++)
        bindings[i].edge = twin_edge(to, bindings[i].edge);
}

static tare_status clone_signatures(struct tare_graph_model *to, const struct tare_graph_model *from) {
    to->signatures = COPY(to, from->signatures, from->n_signatures);
    if (!to->signatures) return TARE_NO_MEMORY;
    to->n_signatures = from->n_signatures;
    for (size_t i = 0; i < to->n_signatures; i++) {
        struct tare_signature *signature = &to->signatures[i];
        signature->inputs = COPY(to, signature->inputs, signature->n_inputs);
        signature->outputs = COPY(to, signature->outputs, signature->n_outputs);
        if (!signature->inputs || !signature->outputs) return TARE_NO_MEMORY;
        clone_bindings(to, signature->inputs, signature->n_inputs);
        clone_bindings(to, signature->outputs, signature->n_outputs);
    }
    return TARE_OK;
}

/* Values become shares, which the clone releases. */
static tare_status clone_state(struct tare_graph_model *to, const struct tare_graph_model *from) {
    to->variables = COPY(to, from->variables, from->n_variables);
    to->tables = COPY(to, from->tables, from->n_tables);
    if (!to->variables || !to->tables) return TARE_NO_MEMORY;
    for (; to->n_variables < from->n_variables; to->n_variables++) {
        struct tare_variable *variable = &to->variables[to->n_variables];
        variable->node = twin(to, variable->node);
        tare_tensor_share(&variable->value, &from->variables[to->n_variables].value);
    }
    for (size_t i = 0; i < from->n_tables; i++) {
        const struct tare_table_content *table = &from->tables[i];
        struct tare_table_content *copy = &to->tables[to->n_tables];
        if (table->node->dead) continue;
        *copy = *table;
        copy->node = twin(to, table->node);
        tare_tensor_share(&copy->keys, &table->keys);
        tare_tensor_share(&copy->values, &table->values);
        to->n_tables++;
    }
    return TARE_OK;
}

static tare_status clone_initialisers(struct tare_graph_model *to, const struct tare_graph_model *from) {
    to->assets = COPY(to, from->assets, from->n_assets);
    to->table_inits = COPY(to, from->table_inits, from->n_table_inits);
    if (!to->assets || !to->table_inits) return TARE_NO_MEMORY;
    to->n_assets = from->n_assets;
    to->n_table_inits = from->n_table_inits;
    for (size_t i = 0; i < to->n_assets; i++)
        to->assets[i].edge = twin_edge(to, to->assets[i].edge);
    for (size_t i = 0; i < to->n_table_inits; i++)
        to->table_inits[i] = twin(to, to->table_inits[i]);
    to->init_node = twin(to, from->init_node);
    return TARE_OK;
}

static tare_status clone_gradients(struct tare_graph_model *to, const struct tare_graph_model *from) {
    to->gradients = COPY(to, from->gradients, from->n_gradients);
    to->captured = COPY(to, from->captured, from->n_captured);
    if (!to->gradients || !to->captured) return TARE_NO_MEMORY;
    for (size_t i = 0; i < from->n_gradients; i++) {
        struct tare_graph *function = twin_graph(to, from->gradients[i].function);
        if (function)
            to->gradients[to->n_gradients++] = (struct tare_custom_gradient){ from->gradients[i].op_type, function };
    }
    to->n_captured = from->n_captured;
    for (size_t i = 0; i < from->n_captured; i++)
        to->captured[i].node = twin(to, from->captured[i].node);
    to->keep_gradients = from->keep_gradients;
    to->captured_kept = from->captured_kept;
    return TARE_OK;
}

/* What refers to graphs and nodes from outside: the object graph, and values that passes have moved. */
static tare_status clone_references(struct tare_graph_model *to, const struct tare_graph_model *from) {
    to->concretes = COPY(to, from->concretes, from->n_concretes);
    to->object_constants = COPY(to, from->object_constants, from->n_object_constants);
    if (!to->concretes || !to->object_constants) return TARE_NO_MEMORY;
    for (size_t i = 0; i < from->n_concretes; i++) {
        struct tare_concrete concrete = from->concretes[i];
        concrete.graph = twin_graph(to, concrete.graph);
        concrete.bound = COPY(to, concrete.bound, concrete.n_bound);
        if (!concrete.bound) return TARE_NO_MEMORY;
        if (concrete.graph) to->concretes[to->n_concretes++] = concrete;
    }
    for (size_t i = 0; i < from->n_object_constants; i++) {
        struct tare_object_constant constant = from->object_constants[i];
        constant.node = twin(to, constant.node);
        if (constant.node) to->object_constants[to->n_object_constants++] = constant;
    }
    TARE_TRY(clone_gradients(to, from));
    to->composites = from->composites;
    to->composites.items = COPY(to, from->composites.items, from->composites.count);
    if (!to->composites.items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < from->n_stand_ins; i++) {
        struct tare_node *node = twin(to, from->stand_ins[i].node);
        if (node) TARE_TRY(tare_model_add_stand_in(to, node, from->stand_ins[i].original));
    }
    return TARE_OK;
}

static tare_status clone_model(struct tare_graph_model *to, const struct tare_graph_model *from) {
    to->path = from->path;
    to->tags = from->tags;
    to->retyped = from->retyped;
    to->keep_variables_from = from->keep_variables_from;
    to->module_error = from->module_error;
    to->module_note = from->module_note;
    to->n_modules = from->n_modules;
    to->has_other_platforms = from->has_other_platforms;
    if (from->custom_ops) to->custom_ops = tare_ops_new(from->custom_ops);
    to->aliases = COPY(to, from->aliases, from->n_aliases);
    if (!to->aliases || (from->custom_ops && !to->custom_ops)) return TARE_NO_MEMORY;
    if (!tare_map_copy(&to->unknown_outputs, &from->unknown_outputs)) return TARE_NO_MEMORY;
    to->n_aliases = from->n_aliases;
    TARE_TRY(clone_graphs(to, from));
    TARE_TRY(clone_signatures(to, from));
    TARE_TRY(clone_state(to, from));
    TARE_TRY(clone_initialisers(to, from));
    return clone_references(to, from);
}

tare_status tare_model_clone(struct tare_graph_model **out, const struct tare_graph_model *from) {
    struct tare_graph_model *to = tare_model_new(from->ops);
    tare_status status = to ? clone_model(to, from) : TARE_NO_MEMORY;
    if (status != TARE_OK) {
        tare_model_free(to);
        to = NULL;
    }
    *out = to;
    return status;
}
