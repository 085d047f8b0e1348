/* Inlining calls. */
#include "graph/inline.h"
#include "graph/calls.h"

#include <string.h>

enum { MOST_NODES = 200000 };

/* A call that was replaced by a body. Found by the call's `edit` until every use is changed. */
struct inlined {
    const struct tare_node *call;
    const struct tare_graph *callee;
    struct tare_graph *graph;
    struct tare_node **copies; /* by position in the callee */
};

/* The caller's edge for an edge of the body. */
static struct tare_edge mapped(const struct inlined *in, struct tare_edge edge) {
    if (!edge.node) return edge;
    if (tare_node_is_arg(edge.node)) return in->call->inputs[edge.node->position];
    return (struct tare_edge){ in->copies[edge.node->position], edge.index };
}

static const struct inlined *inlined_at(const struct tare_node *node) {
    return node && node->dead ? node->edit : NULL;
}

/* ---- bodies ---- */

static tare_status copy_node(struct tare_node **out, const struct inlined *in, const struct tare_node *from) {
    const char *name = tare_arena_printf(&in->graph->model->arena, "%s/%s", in->call->name, from->name);
    struct tare_node *node = name ? tare_graph_add(in->graph, from->op, name) : NULL;
    if (!node) return TARE_NO_MEMORY;
    node->device = from->device;
    TARE_TRY(tare_node_resolve_like(node, from));
    *out = node;
    return tare_node_copy_attrs(node, from);
}

/* The control inputs of the call become control inputs of every node of the body. */
static tare_status copy_edges(const struct inlined *in, struct tare_node *node, const struct tare_node *from) {
    for (size_t i = 0; i < from->n_inputs; i++)
        TARE_TRY(tare_node_add_input(node, mapped(in, from->inputs[i])));
    for (size_t i = 0; i < from->n_controls; i++) {
        struct tare_edge before = mapped(in, (struct tare_edge){ from->controls[i], 0 });
        if (before.node) TARE_TRY(tare_node_add_control(node, before.node));
    }
    for (size_t i = 0; i < in->call->n_controls; i++)
        TARE_TRY(tare_node_add_control(node, in->call->controls[i]));
    return TARE_OK;
}

static tare_status put_body(struct tare_node *call, const struct tare_graph *callee) {
    struct tare_graph *graph = call->graph;
    struct inlined *in = TARE_NEW(&graph->model->arena, struct inlined);
    if (graph->n_nodes + callee->n_nodes > MOST_NODES)
        return TARE_FAIL(TARE_UNSUPPORTED, "with its functions inlined the graph has more than %d nodes",
                         (int)MOST_NODES);
    if (!in) return TARE_NO_MEMORY;
    *in = (struct inlined){ call, callee, graph,
                            TARE_NEW_ARRAY(&graph->model->arena, struct tare_node *, callee->n_nodes + 1) };
    if (!in->copies) return TARE_NO_MEMORY;
    for (size_t i = 0; i < callee->n_nodes; i++)
        if (!callee->nodes[i]->dead) TARE_TRY(copy_node(&in->copies[i], in, callee->nodes[i]));
    for (size_t i = 0; i < callee->n_nodes; i++)
        if (in->copies[i]) TARE_TRY(copy_edges(in, in->copies[i], callee->nodes[i]));
    tare_node_remove(call);
    call->edit = in;
    return TARE_OK;
}

/* ---- uses of the calls ---- */

/* A body may return the result of another inlined call, or an argument computed by one. */
static void follow(struct tare_edge *edge) {
    for (const struct inlined *in; (in = inlined_at(edge->node));)
        *edge = mapped(in, in->callee->returns[edge->index].edge);
}

/* Nodes with a control input from a call depend on the results and effects of its body. */
static tare_status wait_for(struct tare_node *user, struct tare_node *before) {
    const struct inlined *in = inlined_at(before);
    if (!in) return tare_node_add_control(user, before);
    for (size_t i = 0; i < in->callee->n_returns; i++) {
        struct tare_edge edge = mapped(in, in->callee->returns[i].edge);
        follow(&edge);
        if (edge.node) TARE_TRY(tare_node_add_control(user, edge.node));
    }
    for (size_t i = 0; i < in->callee->n_control_returns; i++)
        TARE_TRY(wait_for(user, in->copies[in->callee->control_returns[i].node->position]));
    return TARE_OK;
}

static tare_status change_controls(struct tare_node *user) {
    struct tare_node **controls = user->controls;
    const size_t count = user->n_controls;
    bool calls = false;
    for (size_t i = 0; i < count; i++)
        calls |= inlined_at(controls[i]) != NULL;
    if (!calls) return TARE_OK;
    user->controls = NULL;
    user->control_set = NULL;
    user->n_controls = user->controls_capacity = 0;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(wait_for(user, controls[i]));
    return TARE_OK;
}

static void change_binding(struct tare_binding *binding) {
    follow(&binding->edge);
}

static size_t count_control_returns(const struct tare_node *node) {
    const struct inlined *in = inlined_at(node);
    size_t count = 0;
    if (!in) return 1;
    for (size_t i = 0; i < in->callee->n_control_returns; i++)
        count += count_control_returns(in->copies[in->callee->control_returns[i].node->position]);
    return count;
}

static void add_control_returns(struct tare_graph *graph, struct tare_node *node, const char *name) {
    const struct inlined *in = inlined_at(node);
    if (!in) graph->control_returns[graph->n_control_returns++] = (struct tare_control_return){ name, node };
    for (size_t i = 0; in && i < in->callee->n_control_returns; i++) {
        struct tare_node *inner = in->copies[in->callee->control_returns[i].node->position];
        add_control_returns(graph, inner, inner->name);
    }
}

/* Control returns of a call are replaced by those of its body. */
static tare_status change_control_returns(struct tare_graph *graph) {
    const struct tare_control_return *before = graph->control_returns;
    const size_t n_before = graph->n_control_returns;
    size_t count = 0;
    for (size_t i = 0; i < n_before; i++)
        count += count_control_returns(before[i].node);
    graph->control_returns = TARE_NEW_ARRAY(&graph->model->arena, struct tare_control_return, count + 1);
    graph->n_control_returns = graph->control_returns_capacity = 0;
    if (!graph->control_returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_before; i++)
        add_control_returns(graph, before[i].node, before[i].name);
    return TARE_OK;
}

static void follow_input(struct tare_node *node, size_t k) {
    struct tare_edge edge = node->inputs[k];
    follow(&edge);
    if (!tare_edge_equal(edge, node->inputs[k])) tare_node_set_input(node, k, edge);
}

static tare_status change_uses(struct tare_graph *graph) {
    const struct tare_graph_model *model = graph->model;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead) continue;
        for (size_t k = 0; k < node->n_inputs; k++)
            follow_input(node, k);
        TARE_TRY(change_controls(node));
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        struct tare_edge edge = graph->returns[i].edge;
        follow(&edge);
        tare_graph_set_return(graph, i, edge);
    }
    if (graph != model->main) return change_control_returns(graph);
    for (size_t s = 0; s < model->n_signatures; s++)
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++)
            change_binding(&model->signatures[s].outputs[i]);
    return TARE_OK;
}

/* ---- calls ---- */

static bool is_initialiser(const struct tare_node *node) {
    const struct tare_graph_model *model = node->graph->model;
    bool found = model->init_node == node;
    for (size_t i = 0; i < model->n_table_inits; i++)
        found |= model->table_inits[i] == node;
    return found;
}

/* The function that the node calls, if it can be inlined; NULL: none. */
static const struct tare_graph *callee_of(const struct tare_node *node, tare_status *status) {
    struct tare_arena arena = { 0 };
    struct tare_call_site site = { 0 };
    const struct tare_graph *callee = NULL;
    *status = node->dead || is_initialiser(node) ? TARE_OK : tare_call_site(&site, &arena, node);
    if (*status == TARE_OK && site.kind == TARE_CALL_PLAIN && strcmp(node->op, "BatchFunction") != 0)
        callee = site.callees[0];
    if (callee && (callee->n_args != node->n_inputs || callee->n_returns != node->n_outputs)) callee = NULL;
    tare_arena_free(&arena);
    return callee;
}

tare_status tare_function_inline_calls(size_t *count, struct tare_graph *function,
                                       bool (*accepts)(void *arg, const struct tare_graph *callee), void *arg) {
    tare_status status = TARE_OK;
    *count = 0;
    tare_graph_sweep(function);
    for (size_t i = 0; i < function->n_nodes; i++)
        function->nodes[i]->edit = NULL;
    for (size_t i = 0; i < function->n_nodes && status == TARE_OK;
         i++) { /* bodies are put at the end, and looked at in turn */
        const struct tare_graph *callee = callee_of(function->nodes[i], &status);
        if (status != TARE_OK || !callee || (accepts && !accepts(arg, callee))) continue;
        status = put_body(function->nodes[i], callee);
        ++*count;
    }
    if (status == TARE_OK) status = change_uses(function);
    if (status == TARE_OK) tare_graph_sweep(function);
    return status;
}

tare_status tare_model_inline_calls(struct tare_graph_model *model) {
    size_t count;
    TARE_TRY(tare_model_check_recursion(model));
    return tare_function_inline_calls(&count, model->main, NULL, NULL);
}

/* ---- what was placed on the TPU ---- */

/* The function that a node runs on the TPU or for a batch; NULL: it does neither. The inputs but the last `extra` are
 * its arguments. */
static struct tare_graph *placed(size_t *extra, const struct tare_node *node) {
    *extra = tare_node_is(node, "TPUPartitionedCall");
    if (node->dead || (!*extra && !tare_node_is(node, "BatchFunction"))) return NULL;
    return tare_node_function(node, "f");
}

/* Replaces a node by a call of the function with the node's first inputs. */
static tare_status replace_by_call(struct tare_node *node, struct tare_graph *function, size_t extra) {
    struct tare_node *call = tare_graph_add(node->graph, "PartitionedCall",
                                            tare_arena_printf(&node->graph->model->arena, "%s/call", node->name));
    if (!call) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_func(call, "f", function->name));
    TARE_TRY(tare_call_set_types(call, function));
    for (size_t i = 0; i + extra < node->n_inputs; i++)
        TARE_TRY(tare_node_add_input(call, node->inputs[i]));
    TARE_TRY(tare_node_resolve(call));
    for (size_t i = 0; i < call->n_outputs; i++)
        tare_graph_replace_uses(node->graph, (struct tare_edge){ node, (int)i }, (struct tare_edge){ call, (int)i },
                                NULL);
    tare_node_remove(node);
    return TARE_OK;
}

/* Batchers are around TPU calls, which their functions contain: they go first. */
tare_status tare_model_inline_placed(struct tare_graph_model *model, bool tpu) {
    for (bool found = true; found;) {
        const size_t count = model->main->n_nodes;
        found = false;
        for (size_t i = 0; i < count; i++) {
            struct tare_node *node = model->main->nodes[i];
            size_t extra;
            struct tare_graph *function = placed(&extra, node);
            if (!function || (extra && !tpu)) continue;
            TARE_TRY(replace_by_call(node, function, extra));
            found = true;
        }
        tare_graph_sweep(model->main);
        if (found) TARE_TRY(tare_model_inline_calls(model));
    }
    return TARE_OK;
}

const char *tare_inlined_name(const char *name) {
    static const char *const calls[] = { "StatefulPartitionedCall", "PartitionedCall", "TPUPartitionedCall", "batch",
                                         "call" };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const size_t size = strlen(calls[i]);
        const char *end = name + size;
        if (strncmp(name, calls[i], size) != 0) continue;
        end += strspn(end, "_0123456789");
        if (*end == '/') return tare_inlined_name(end + 1);
    }
    return name;
}
