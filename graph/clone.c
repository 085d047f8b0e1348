/* Copying a function's body. */
#include "graph/clone.h"
#include "base/alloc.h"

static struct tare_edge mapped(struct tare_edge edge, struct tare_node *const *nodes, const struct tare_graph *to) {
    if (!edge.node) return edge;
    if (tare_node_is_arg(edge.node)) return (struct tare_edge){ to->args[edge.node->position], 0 };
    return (struct tare_edge){ nodes[edge.node->position], edge.index };
}

static tare_status clone_node(struct tare_node **out, struct tare_graph *to, const struct tare_node *from) {
    struct tare_node *node = tare_graph_add(to, from->op, from->name);
    if (!node) return TARE_NO_MEMORY;
    node->device = from->device;
    node->def = from->def;
    node->origin = from->origin;
    node->output_dtypes = from->output_dtypes; /* never changed in place */
    node->n_outputs = from->n_outputs;
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
    for (size_t i = 0; i < from->n_nodes; i++)
        if (!from->nodes[i]->dead) TARE_TRY(clone_node(&nodes[i], to, from->nodes[i]));
    for (size_t i = 0; i < from->n_nodes; i++)
        if (nodes[i]) TARE_TRY(clone_edges(nodes[i], from->nodes[i], nodes));
    return clone_returns(to, from, nodes);
}

tare_status tare_function_clone(struct tare_graph **out, const struct tare_graph *from, const char *name) {
    struct tare_graph *to = tare_model_add_function(from->model, name);
    struct tare_node **nodes;
    tare_status status;
    if (!to) return TARE_NO_MEMORY;
    to->is_stateful = from->is_stateful;
    to->attrs = from->attrs;
    to->n_attrs = to->attrs_capacity = from->n_attrs;
    for (size_t i = 0; i < from->n_args; i++)
        if (!tare_graph_add_arg(to, from->args[i]->name, from->args[i]->output_dtypes[0])) return TARE_NO_MEMORY;
    nodes = tare_calloc(from->n_nodes + 1, sizeof *nodes);
    if (!nodes) return TARE_NO_MEMORY;
    status = clone_body(to, from, nodes);
    tare_free(nodes);
    *out = to;
    return status;
}

tare_status tare_function_move_body(struct tare_graph **out, struct tare_graph *from, const char *name) {
    TARE_TRY(tare_function_clone(out, from, name));
    for (size_t i = 0; i < from->n_nodes; i++)
        tare_node_remove(from->nodes[i]);
    tare_graph_sweep(from);
    for (size_t i = 0; i < from->n_returns; i++)
        from->returns[i].edge = (struct tare_edge){ NULL, 0 };
    from->n_control_returns = 0;
    return TARE_OK;
}
