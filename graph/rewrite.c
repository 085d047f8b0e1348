/* Changing graphs: removing nodes, reachability, topological order. */
#include "graph/emit.h"
#include "graph/graph.h"
#include "base/alloc.h"
#include "base/control.h"
#include "graph/model.h"
#include "graph/signature_uses.h"
#include "graph/uses.h"
#include "graph/op.h"

void tare_node_remove(struct tare_node *node) {
    node->dead = true;
}

static void drop_dead_controls(struct tare_node *node) {
    size_t kept = 0;
    for (size_t i = 0; i < node->n_controls; i++)
        if (!node->controls[i]->dead) node->controls[kept++] = node->controls[i];
    if (kept < node->n_controls) node->control_set = NULL;
    node->n_controls = kept;
}

/* A control return names a side effect; a removed node has none (such as a read that became a constant). */
static void drop_dead_control_returns(struct tare_graph *graph) {
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_control_returns; i++)
        if (!graph->control_returns[i].node->dead) graph->control_returns[kept++] = graph->control_returns[i];
    graph->n_control_returns = kept;
}

void tare_graph_sweep(struct tare_graph *graph) {
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead) {
            tare_node_drop_uses(node);
            continue;
        }
        drop_dead_controls(node);
        node->position = kept;
        graph->nodes[kept++] = node;
    }
    graph->n_nodes = kept;
    drop_dead_control_returns(graph);
}

/* ---- reachability ---- */

struct marks {
    bool *seen; /* by node position */
    struct tare_node **stack;
    size_t depth;
};

static void mark(struct marks *marks, struct tare_node *node) {
    if (!node || node->dead || tare_node_is_arg(node) || marks->seen[node->position]) return;
    marks->seen[node->position] = true;
    marks->stack[marks->depth++] = node;
}

static void mark_signature_edge(void *arg, struct tare_edge *edge) {
    mark(arg, edge->node);
}

/* Constants captured by concrete functions are passed to them when the model is loaded. */
static tare_status mark_captured_constants(struct marks *marks, const struct tare_graph_model *model) {
    struct tare_map captured = { 0 }; /* ids of objects */
    bool has_memory = true;
    for (size_t c = 0; c < model->n_concretes && model->n_object_constants; c++)
        for (size_t b = 0; b < model->concretes[c].n_bound && has_memory; b++) {
            int *id = &model->concretes[c].bound[b];
            has_memory = tare_map_set_n(&captured, (const char *)id, sizeof *id, id);
        }
    for (size_t i = 0; i < model->n_object_constants && has_memory; i++) {
        const struct tare_object_constant *constant = &model->object_constants[i];
        if (tare_map_get_n(&captured, (const char *)&constant->object_id, sizeof constant->object_id))
            mark(marks, constant->node);
    }
    tare_map_free(&captured);
    return has_memory ? TARE_OK : TARE_NO_MEMORY;
}

/* A call by the name of a function has the effects of that function. */
static bool has_effects(const struct tare_node *node) {
    const struct tare_graph *callee = node->def ? NULL : tare_model_find_function(node->graph->model, node->op);
    return node->def ? node->def->is_stateful : callee && callee->is_stateful;
}

static tare_status mark_roots(struct marks *marks, const struct tare_graph *graph) {
    struct tare_graph_model *model = graph->model;
    for (size_t i = 0; i < graph->n_returns; i++)
        mark(marks, graph->returns[i].edge.node);
    for (size_t i = 0; i < graph->n_control_returns; i++)
        mark(marks, graph->control_returns[i].node);
    for (size_t i = 0; i < model->n_captured; i++)
        if (model->captured[i].node && model->captured[i].node->graph == graph) mark(marks, model->captured[i].node);
    if (graph != model->main) {
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (has_effects(graph->nodes[i])) mark(marks, graph->nodes[i]);
        return TARE_OK;
    }
    tare_model_each_signature_edge(model, mark_signature_edge, marks);
    mark(marks, model->init_node);
    for (size_t i = 0; i < model->n_table_inits; i++)
        mark(marks, model->table_inits[i]);
    for (size_t i = 0; i < model->n_assets; i++)
        mark(marks, model->assets[i].edge.node);
    for (size_t i = 0; i < model->n_variables; i++)
        if (!model->variables[i].removed) mark(marks, model->variables[i].node);
    for (size_t i = 0; i < model->n_tables; i++)
        mark(marks, model->tables[i].node);
    return mark_captured_constants(marks, model);
}

static tare_status mark_reachable(struct marks *marks, const struct tare_graph *graph) {
    TARE_TRY(mark_roots(marks, graph));
    while (marks->depth) {
        struct tare_node *node = marks->stack[--marks->depth];
        for (size_t k = 0; k < node->n_inputs; k++)
            mark(marks, node->inputs[k].node);
        for (size_t k = 0; k < node->n_controls; k++)
            mark(marks, node->controls[k]);
    }
    return TARE_OK;
}

tare_status tare_graph_remove_unreachable(struct tare_graph *graph, size_t *removed) {
    struct marks marks = { .seen = tare_calloc(graph->n_nodes + 1, sizeof(bool)),
                           .stack = tare_calloc(graph->n_nodes + 1, sizeof(struct tare_node *)) };
    tare_status status = marks.seen && marks.stack ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = mark_reachable(&marks, graph);
    if (status == TARE_OK) {
        for (size_t i = 0; i < graph->n_nodes; i++) {
            if (marks.seen[i]) continue;
            if (removed) *removed += !graph->nodes[i]->dead;
            graph->nodes[i]->dead = true;
        }
        tare_graph_sweep(graph);
    }
    tare_free(marks.seen);
    tare_free(marks.stack);
    return status;
}

/* ---- order ---- */

enum { UNSEEN, OPEN, CLOSED };

struct frame {
    struct tare_node *node;
    size_t next; /* of its inputs, then its controls */
};

static struct tare_node *predecessor(const struct tare_node *node, size_t i) {
    return i < node->n_inputs ? node->inputs[i].node : node->controls[i - node->n_inputs];
}

static tare_status visit(struct frame *stack, char *state, struct tare_node *root, struct tare_node **order,
                         size_t *count) {
    size_t depth = 0;
    stack[depth++] = (struct frame){ root, 0 };
    state[root->position] = OPEN;
    while (depth) {
        struct frame *top = &stack[depth - 1];
        struct tare_node *before;
        if (top->next == top->node->n_inputs + top->node->n_controls) {
            state[top->node->position] = CLOSED;
            order[(*count)++] = top->node;
            depth--;
            continue;
        }
        before = predecessor(top->node, top->next++);
        if (!before || before->dead || tare_node_is_arg(before) || tare_node_is_back_edge(before)) continue;
        if (state[before->position] == OPEN)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the graph has a cycle through node %s", before->name);
        if (state[before->position] == CLOSED) continue;
        state[before->position] = OPEN;
        stack[depth++] = (struct frame){ before, 0 };
    }
    return TARE_OK;
}

tare_status tare_graph_order(struct tare_node ***out, struct tare_arena *arena, const struct tare_graph *graph) {
    struct tare_node **order = TARE_NEW_ARRAY(arena, struct tare_node *, graph->n_nodes + 1);
    struct frame *stack = tare_calloc(graph->n_nodes + 1, sizeof *stack);
    char *state = tare_calloc(graph->n_nodes + 1, 1);
    tare_status status = order && stack && state ? TARE_OK : TARE_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++) {
        struct tare_node *node = graph->nodes[i];
        status = tare_control_check();
        if (status == TARE_OK && !node->dead && state[node->position] == UNSEEN)
            status = visit(stack, state, node, order, &count);
    }
    tare_free(stack);
    tare_free(state);
    *out = order;
    return status;
}

void tare_graph_replace_controls(struct tare_node *from, struct tare_node *to) {
    struct tare_graph *graph = from->graph;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_controls; k++)
            if (graph->nodes[i]->controls[k] == from) graph->nodes[i]->controls[k] = to;
    for (size_t i = 0; i < graph->n_control_returns; i++)
        if (graph->control_returns[i].node == from) graph->control_returns[i].node = to;
}
