/* Outlining. */
#include "graph/outline.h"
#include "base/ascii.h"

#include <string.h>

struct outliner {
    struct tare_graph *graph, *function;
    struct tare_arena arena; /* scratch */
    const bool *chosen;
    size_t n_nodes;            /* of the graph, when it began */
    struct tare_node **copies; /* by position: in the function; of chosen nodes and of constants that went along */
    struct tare_edge *outside; /* the outside edge of each argument */
    struct tare_edge *results; /* the edge of the graph that each return replaces */
    struct tare_node *call;
};

static bool is_chosen(const struct outliner *o, const struct tare_node *node) {
    return node && !tare_node_is_arg(node) && node->position < o->n_nodes && o->chosen[node->position];
}

/* ---- the function ---- */

static tare_status copy_node(struct tare_node **out, struct outliner *o, const struct tare_node *from) {
    struct tare_node *node = tare_graph_add(o->function, from->op, from->name);
    if (!node) return TARE_NO_MEMORY;
    node->device = from->device;
    TARE_TRY(tare_node_resolve_like(node, from));
    *out = node;
    TARE_TRY(tare_node_copy_attrs(node, from));
    tare_node_remove_attr(node, "_class"); /* may name a node that stays */
    return TARE_OK;
}

/* Names of arguments are lower case, digits and underscores, and begin with a letter. */
static const char *arg_name(struct outliner *o, struct tare_edge edge) {
    char *name = tare_arena_printf(&o->function->model->arena, tare_is_letter(edge.node->name[0]) ? "%s" : "arg_%s",
                                   edge.node->name);
    for (char *at = name; at && *at; at++)
        *at = tare_is_letter_or_digit(*at) ? tare_lower(*at) : '_';
    return name;
}

/* The function's edge for an edge of the graph. */
static tare_status inner_edge(struct tare_edge *out, struct outliner *o, struct tare_edge edge) {
    struct tare_graph *f = o->function;
    const bool is_const = !tare_node_is_arg(edge.node) && strcmp(edge.node->op, "Const") == 0;
    if (is_chosen(o, edge.node) || is_const) {
        if (!o->copies[edge.node->position]) TARE_TRY(copy_node(&o->copies[edge.node->position], o, edge.node));
        *out = (struct tare_edge){ o->copies[edge.node->position], edge.index };
        return TARE_OK;
    }
    for (size_t i = 0; i < f->n_args; i++) {
        *out = (struct tare_edge){ f->args[i], 0 };
        if (o->outside[i].node == edge.node && o->outside[i].index == edge.index) return TARE_OK;
    }
    struct tare_edge *grown = tare_arena_append(&o->arena, o->outside, f->n_args, sizeof *grown);
    const char *name = arg_name(o, edge);
    if (!grown || !name) return TARE_NO_MEMORY;
    o->outside = grown;
    o->outside[f->n_args] = edge;
    out->node = tare_graph_add_arg(f, name, tare_edge_dtype(edge));
    out->index = 0;
    return out->node ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status fill_function(struct outliner *o) {
    for (size_t i = 0; i < o->n_nodes; i++)
        if (o->chosen[i]) TARE_TRY(copy_node(&o->copies[i], o, o->graph->nodes[i]));
    for (size_t i = 0; i < o->n_nodes; i++) {
        const struct tare_node *from = o->graph->nodes[i];
        for (size_t k = 0; o->chosen[i] && k < from->n_inputs; k++) {
            struct tare_edge edge;
            TARE_TRY(inner_edge(&edge, o, from->inputs[k]));
            TARE_TRY(tare_node_add_input(o->copies[i], edge));
        }
        for (size_t k = 0; o->chosen[i] && k < from->n_controls; k++)
            if (is_chosen(o, from->controls[k]))
                TARE_TRY(tare_node_add_control(o->copies[i], o->copies[from->controls[k]->position]));
    }
    return TARE_OK;
}

/* ---- what leaves it ---- */

static tare_status add_result(struct outliner *o, struct tare_edge edge) {
    struct tare_graph *f = o->function;
    if (!is_chosen(o, edge.node)) return TARE_OK;
    for (size_t i = 0; i < f->n_returns; i++)
        if (o->results[i].node == edge.node && o->results[i].index == edge.index) return TARE_OK;
    struct tare_edge *grown = tare_arena_append(&o->arena, o->results, f->n_returns, sizeof *grown);
    const char *name = tare_arena_printf(&f->model->arena, "output_%zu", f->n_returns);
    if (!grown || !name) return TARE_NO_MEMORY;
    o->results = grown;
    o->results[f->n_returns] = edge;
    return tare_graph_add_return(f, name, tare_edge_dtype(edge),
                                 (struct tare_edge){ o->copies[edge.node->position], edge.index });
}

static tare_status add_results(struct outliner *o) {
    for (size_t i = 0; i < o->n_nodes; i++)
        for (size_t k = 0; !o->chosen[i] && !o->graph->nodes[i]->dead && k < o->graph->nodes[i]->n_inputs; k++)
            TARE_TRY(add_result(o, o->graph->nodes[i]->inputs[k]));
    for (size_t i = 0; i < o->graph->n_returns; i++)
        TARE_TRY(add_result(o, o->graph->returns[i].edge));
    return TARE_OK;
}

/* Nodes that were control inputs of others, or ran for their side effect, become control returns of the function. */
static tare_status add_control_returns(struct outliner *o) {
    struct tare_graph *f = o->function;
    bool *expected = TARE_NEW_ARRAY(&o->arena, bool, o->n_nodes + 1);
    f->control_returns = TARE_NEW_ARRAY(&f->model->arena, struct tare_control_return, o->n_nodes + 1);
    if (!expected || !f->control_returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < o->n_nodes; i++)
        for (size_t k = 0; !o->chosen[i] && !o->graph->nodes[i]->dead && k < o->graph->nodes[i]->n_controls; k++)
            if (is_chosen(o, o->graph->nodes[i]->controls[k]))
                expected[o->graph->nodes[i]->controls[k]->position] = true;
    for (size_t i = 0; i < o->graph->n_control_returns; i++)
        if (is_chosen(o, o->graph->control_returns[i].node))
            expected[o->graph->control_returns[i].node->position] = true;
    for (size_t i = 0; i < o->n_nodes; i++)
        if (expected[i])
            f->control_returns[f->n_control_returns++] =
                (struct tare_control_return){ o->copies[i]->name, o->copies[i] };
    return TARE_OK;
}

/* ---- the call ---- */

static tare_status add_call(struct outliner *o) {
    struct tare_graph *f = o->function;
    int *in = TARE_NEW_ARRAY(&o->arena, int, f->n_args + 1),
        *results = TARE_NEW_ARRAY(&o->arena, int, f->n_returns + 1);
    o->call = tare_graph_add(o->graph, "StatefulPartitionedCall", f->name);
    if (!in || !results || !o->call) return TARE_NO_MEMORY;
    for (size_t i = 0; i < f->n_args; i++) {
        in[i] = f->args[i]->output_dtypes[0];
        TARE_TRY(tare_node_add_input(o->call, o->outside[i]));
    }
    for (size_t i = 0; i < f->n_returns; i++)
        results[i] = f->returns[i].dtype;
    for (size_t i = 0; i < o->n_nodes; i++)
        for (size_t k = 0; o->chosen[i] && k < o->graph->nodes[i]->n_controls; k++)
            if (!is_chosen(o, o->graph->nodes[i]->controls[k]))
                TARE_TRY(tare_node_add_control(o->call, o->graph->nodes[i]->controls[k]));
    TARE_TRY(tare_node_set_func(o->call, "f", f->name));
    TARE_TRY(tare_node_set_type_list(o->call, "Tin", in, f->n_args));
    TARE_TRY(tare_node_set_type_list(o->call, "Tout", results, f->n_returns));
    return tare_node_resolve(o->call);
}

/* Replaces all control inputs from outlined nodes by one control input from the call. */
static void wait_for_call(const struct outliner *o, struct tare_node *node) {
    bool waits = false;
    size_t kept = 0;
    for (size_t k = 0; k < node->n_controls; k++) {
        struct tare_node *before = node->controls[k];
        if (is_chosen(o, before)) {
            if (waits) continue;
            waits = true;
            before = o->call;
        }
        node->controls[kept++] = before;
    }
    node->n_controls = kept;
    node->control_set = NULL;
}

static void replace_uses(struct outliner *o) {
    struct tare_graph *graph = o->graph;
    size_t kept = 0;
    bool returns = false;
    for (size_t i = 0; i < o->function->n_returns; i++)
        tare_graph_replace_uses(graph, o->results[i], (struct tare_edge){ o->call, (int)i }, NULL);
    for (size_t i = 0; i < o->n_nodes; i++)
        if (!o->chosen[i]) wait_for_call(o, graph->nodes[i]);
    for (size_t i = 0; i < graph->n_control_returns; i++) {
        struct tare_control_return ret = graph->control_returns[i];
        if (is_chosen(o, ret.node)) {
            if (returns) continue;
            returns = true;
            ret = (struct tare_control_return){ o->call->name, o->call };
        }
        graph->control_returns[kept++] = ret;
    }
    graph->n_control_returns = kept;
    for (size_t i = 0; i < o->n_nodes; i++)
        if (o->chosen[i]) tare_node_remove(graph->nodes[i]);
    tare_graph_sweep(graph);
}

static tare_status outline(struct outliner *o) {
    TARE_TRY(fill_function(o));
    TARE_TRY(add_results(o));
    TARE_TRY(add_control_returns(o));
    TARE_TRY(add_call(o));
    replace_uses(o);
    return TARE_OK;
}

tare_status tare_graph_outline(struct tare_graph **out, struct tare_graph *graph, const bool *chosen,
                               const char *name) {
    struct outliner o = { .graph = graph, .chosen = chosen, .n_nodes = graph->n_nodes };
    tare_status status = TARE_NO_MEMORY;
    o.copies = TARE_NEW_ARRAY(&o.arena, struct tare_node *, graph->n_nodes + 1);
    o.function = o.copies ? tare_model_add_function(graph->model, name) : NULL;
    if (o.function) {
        o.function->is_stateful = true;
        o.function->body_of = tare_graph_body_name(graph);
        status = outline(&o);
    }
    tare_arena_free(&o.arena);
    *out = o.function;
    return status;
}
