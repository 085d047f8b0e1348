/* Checks of whole graphs. */
#include "support/graph_check.h"
#include "graph/calls.h"
#include "graph/definitions/opdef.h"
#include "support/mini_model.h"

#include <string.h>

static const char *dtype_text(int dtype) {
    return tare_dtype_name(dtype);
}

static void check_equal(const struct tare_graph *graph, const struct tare_node *node, const char *what, size_t i,
                        int got, int expected) {
    if (tare_dtype_base(got) == tare_dtype_base(expected)) return;
    fail_msg("graph '%s' node '%s' (%s): %s %zu is %s (expected %s)", graph->name, node ? node->name : "",
             node ? node->op : "", what, i, dtype_text(got), dtype_text(expected));
}

static void check_inputs(struct tare_arena *arena, const struct tare_node *node) {
    int *dtypes;
    size_t count;
    if (!node->def) return;
    mini_ok(tare_opdef_check_attrs(node));
    mini_ok(tare_opdef_input_dtypes(arena, node, &dtypes, &count));
    if (count != node->n_inputs)
        fail_msg("node '%s' (%s) has %zu inputs (expected %zu)", node->name, node->op, node->n_inputs, count);
    for (size_t i = 0; i < count; i++) {
        if (node->inputs[i].node->dead) fail_msg("node '%s': input %zu comes from a removed node", node->name, i);
        check_equal(node->graph, node, "input", i, tare_edge_dtype(node->inputs[i]), dtypes[i]);
    }
    mini_ok(tare_opdef_output_dtypes(arena, node, &dtypes, &count));
    for (size_t i = 0; i < count; i++)
        check_equal(node->graph, node, "output", i, node->output_dtypes[i], dtypes[i]);
}

static void check_call(struct tare_arena *arena, const struct tare_node *node) {
    struct tare_call_site site;
    mini_ok(tare_call_site(&site, arena, node));
    if (site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER) return;
    for (size_t c = 0; c < site.n_callees; c++) {
        const struct tare_graph *callee = site.callees[c];
        bool condition = site.kind == TARE_CALL_LOOP && c == 0;
        if (callee->n_args != site.n_args)
            fail_msg("node '%s' passes %zu arguments to %s (expected %zu)", node->name, site.n_args, callee->name,
                     callee->n_args);
        for (size_t i = 0; i < site.n_args; i++)
            check_equal(node->graph, node, "argument", i, tare_edge_dtype(node->inputs[site.first + i]),
                        callee->args[i]->output_dtypes[0]);
        for (size_t i = 0; !condition && i < callee->n_returns; i++)
            check_equal(node->graph, node, "result", i, node->output_dtypes[i], callee->returns[i].dtype);
    }
}

static void check_graph(struct tare_arena *arena, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead) continue;
        if (node->position != i) fail_msg("node '%s' is at %zu (says %zu)", node->name, i, node->position);
        if (tare_graph_find(graph, node->name) != node) fail_msg("node '%s' is not found by its name", node->name);
        check_inputs(arena, node);
        check_call(arena, node);
    }
    for (size_t i = 0; i < graph->n_returns; i++)
        check_equal(graph, graph->returns[i].edge.node, "return", i, tare_edge_dtype(graph->returns[i].edge),
                    graph->returns[i].dtype);
}

void graph_check_dtypes(const struct tare_graph_model *model) {
    struct tare_arena arena = { 0 };
    check_graph(&arena, model->main);
    for (size_t i = 0; i < model->n_functions; i++)
        check_graph(&arena, model->functions[i]);
    for (size_t s = 0; s < model->n_signatures; s++)
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++)
            if (model->signatures[s].outputs[i].edge.node)
                check_equal(model->main, model->signatures[s].outputs[i].edge.node, "signature output", i,
                            tare_edge_dtype(model->signatures[s].outputs[i].edge),
                            model->signatures[s].outputs[i].dtype);
    tare_arena_free(&arena);
}

size_t graph_count(const struct tare_graph *graph, const char *op) {
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        count += !graph->nodes[i]->dead && strcmp(graph->nodes[i]->op, op) == 0;
    return count;
}

struct tare_node *graph_only(const struct tare_graph *graph, const char *op) {
    struct tare_node *found = NULL;
    if (graph_count(graph, op) != 1)
        fail_msg("graph '%s' has %zu nodes of op %s (expected 1)", graph->name, graph_count(graph, op), op);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->op, op) == 0) found = graph->nodes[i];
    return found;
}

struct tare_node *graph_node(const struct tare_graph *graph, const char *name) {
    struct tare_node *node = tare_graph_find(graph, name);
    if (!node) fail_msg("graph '%s' has no node '%s'", graph->name, name);
    return node;
}
