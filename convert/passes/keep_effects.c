/* In the main graph, only what an output depends on is run. A variable may be updated because the op of an output, or
 * one before it, waits for the assignment (tf.control_dependencies around a layer). Passes and quantization replace
 * such ops: from here on, the output itself waits for the assignment. In functions, ops with effects are run anyway. */
#include "convert/pass.h"
#include "base/alloc.h"
#include "graph/op.h"

#include <string.h>

/* The nodes that an output depends on, by position. */
struct reach {
    const struct tare_graph *graph;
    bool *seen;       /* at all */
    bool *controlled; /* by a path that may be lost: it has a control input, or begins at a loop */
    struct tare_node **stack;
    size_t depth;
};

static void reach(struct reach *r, struct tare_node *node, bool controlled) {
    if (node->dead || tare_node_is_arg(node)) return;
    if (r->seen[node->position] && (!controlled || r->controlled[node->position])) return;
    r->seen[node->position] = true;
    r->controlled[node->position] |= controlled;
    r->stack[r->depth++] = node; /* at most twice a node */
}

static void reach_all(struct reach *r, struct tare_node *output) {
    reach(r, output, false);
    while (r->depth) {
        const struct tare_node *node = r->stack[--r->depth];
        const bool controlled = r->controlled[node->position];
        for (size_t i = 0; i < node->n_inputs; i++) /* users of a loop's invariants get its inputs */
            reach(r, node->inputs[i].node, controlled || tare_node_is(node->inputs[i].node, "While"));
        for (size_t i = 0; i < node->n_controls; i++)
            reach(r, node->controls[i], true);
    }
}

/* Assertions change nothing. */
static bool changes_state(const struct tare_node *node) {
    static const char *const readers[] = { "ReadVariableOp", "VarHandleOp",        "ResourceGather", "VariableShape",
                                           "Placeholder",    "VarIsInitializedOp", "Assert",         NULL };
    if (!node->def || tare_op_is_one_of(node->op, readers)) return false;
    for (size_t i = 0; i < node->def->n_inputs; i++)
        if (node->def->inputs[i].is_ref) return true;
    return node->def->is_stateful && node->n_inputs;
}

static tare_status wait_for(struct tare_node *node, const struct reach *r) {
    for (size_t i = 0; i < r->graph->n_nodes; i++)
        if (r->controlled[i] && changes_state(r->graph->nodes[i]))
            TARE_TRY(tare_node_add_control(node, r->graph->nodes[i]));
    return TARE_OK;
}

static bool has_effects(const struct reach *r) {
    bool any = false;
    for (size_t i = 0; i < r->graph->n_nodes; i++)
        any |= r->controlled[i] && changes_state(r->graph->nodes[i]);
    return any;
}

static tare_status keep_effects(struct tare_edge *output, struct reach *r, size_t *changes) {
    struct tare_graph *graph = output->node->graph;
    const int dtype = tare_edge_dtype(*output);
    const size_t n = graph->n_nodes;
    struct tare_node *identity;
    memset(r->seen, 0, n * sizeof *r->seen);
    memset(r->controlled, 0, n * sizeof *r->controlled);
    reach_all(r, output->node);
    if (tare_dtype_is_ref(dtype) || !has_effects(r)) return TARE_OK;
    identity = tare_graph_add(graph, "Identity", "output");
    if (!identity) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(identity, "T", dtype));
    TARE_TRY(tare_node_add_input(identity, *output));
    TARE_TRY(wait_for(identity, r));
    *output = tare_node_output0(identity);
    ++*changes;
    return tare_node_resolve(identity);
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    size_t most = model->main->n_nodes + 1;
    struct reach r = { .graph = model->main };
    tare_status status = TARE_NO_MEMORY;
    for (size_t s = 0; s < model->n_signatures; s++)
        most += model->signatures[s].n_outputs; /* the nodes that are added */
    r.seen = tare_calloc(most, sizeof *r.seen);
    r.controlled = tare_calloc(most, sizeof *r.controlled);
    r.stack = tare_calloc(2 * most, sizeof(struct tare_node *));
    if (!r.seen || !r.controlled || !r.stack) goto done;
    status = TARE_OK;
    for (size_t s = 0; s < model->n_signatures; s++)
        for (size_t k = 0; k < model->signatures[s].n_outputs; k++)
            if (model->signatures[s].outputs[k].edge.node)
                TARE_CHECK(keep_effects(&model->signatures[s].outputs[k].edge, &r, changes));
    tare_model_forget_signature_uses(model);
done:
    tare_free(r.seen);
    tare_free(r.controlled);
    tare_free(r.stack);
    return status;
}

const struct tare_pass tare_pass_keep_effects = {
    .name = "keep_effects",
    .help = "let outputs wait for the assignments that their ops wait for",
    .run = run,
};
