/* Drops functions that no signature or alias reaches, nodes without effect, IdentityN in functions, and control edges
 * from nodes that only pass constants and arguments on. */
#include "convert/pass.h"
#include "base/alloc.h"
#include "graph/calls.h"
#include "graph/gradients.h"

static bool is_captured(const struct tare_graph_model *model, int object) {
    for (size_t c = 0; c < model->n_concretes && object >= 0; c++)
        for (size_t b = 0; b < model->concretes[c].n_bound; b++)
            if (model->concretes[c].bound[b] == object) return true;
    return false;
}

/* A variable that no signature, initialiser or kept function uses (for example an optimizer's) is removed with its
 * node, unless the model is trained and its users see it. Only nodes that the signatures reach count: the saver holds
 * every variable. */
static tare_status remove_unused_variables(struct tare_graph_model *model, size_t *changes) {
    bool *removed = tare_calloc(model->n_variables + 1, sizeof *removed);
    tare_status status;
    if (!removed) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_variables; i++) {
        removed[i] = model->variables[i].removed;
        const bool stays = model->keep_gradients && model->variables[i].exposed;
        if (!stays && !is_captured(model, model->variables[i].object_id))
            model->variables[i].removed = true; /* not a root now */
    }
    status = tare_graph_remove_unreachable(model->main, changes);
    for (size_t i = 0; i < model->n_variables; i++) {
        struct tare_variable *variable = &model->variables[i];
        variable->removed = removed[i] || !variable->node || variable->node->dead;
    }
    tare_free(removed);
    return status;
}

/* Users of an IdentityN use its inputs instead, so that inputs without a user are removed: around a custom gradient,
 * IdentityN passes the results and all arguments of a computation. That of a model to be trained stays. */
static void bypass_identities(struct tare_graph *graph, size_t *changes) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || node->n_controls || !tare_node_is(node, "IdentityN")) continue;
        if (tare_node_keeps_gradient(node)) continue;
        for (size_t k = 0; k < node->n_inputs; k++)
            *changes += tare_graph_replace_uses(graph, (struct tare_edge){ node, (int)k }, node->inputs[k], NULL) > 0;
    }
}

static bool waits_for(const struct tare_node *before, const bool *idle) {
    return tare_node_is_arg(before) || !idle[before->position];
}

/* A node that computes nothing and waits for nothing that does. */
static bool is_idle(const struct tare_node *node, const bool *idle) {
    static const char *const ops[] = { "Const", "Identity", "IdentityN", "NoOp", NULL };
    if (!tare_op_is_one_of(node->op, ops)) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!tare_node_is_arg(node->inputs[i].node) && !idle[node->inputs[i].node->position]) return false;
    for (size_t i = 0; i < node->n_controls; i++)
        if (waits_for(node->controls[i], idle)) return false;
    return true;
}

static tare_status keep_controls(struct tare_node *node, const bool *idle, size_t *changes) {
    struct tare_node **controls = node->controls;
    const size_t count = node->n_controls;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += waits_for(controls[i], idle);
    if (kept == count) return TARE_OK;
    node->controls = NULL;
    node->control_set = NULL;
    node->n_controls = node->controls_capacity = 0;
    for (size_t i = 0; i < count; i++)
        if (waits_for(controls[i], idle)) TARE_TRY(tare_node_add_control(node, controls[i]));
    *changes += count - kept;
    return TARE_OK;
}

/* A function that TensorFlow has frozen keeps the reads of its variables as identities of constants for which its
 * results wait: weights that are quantized later would stay for them. */
static tare_status drop_idle_controls(struct tare_graph *graph, struct tare_arena *arena, size_t *changes) {
    struct tare_node **order;
    bool any = false, *idle = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    if (!idle) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++)
        any |= !graph->nodes[i]->dead && graph->nodes[i]->n_controls;
    if (!any) return TARE_OK;
    const tare_status status = tare_graph_order(&order, arena, graph);
    if (status == TARE_INVALID_ARGUMENT) return tare_error_dismiss(status); /* a cycle: an error where it is run */
    TARE_TRY(status);
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++)
        idle[order[i]->position] = is_idle(order[i], idle);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && graph->nodes[i]->n_controls)
            TARE_TRY(keep_controls(graph->nodes[i], idle, changes));
    return TARE_OK;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct tare_arena arena = { 0 };
    bool *live;
    size_t before = model->n_functions;
    tare_status status = TARE_OK;
    if (model->keep_gradients) TARE_CHECK(tare_model_keep_captured(model));
    TARE_CHECK(tare_model_reachable_functions(&live, &arena, model, true));
    tare_model_remove_functions(model, live);
    TARE_CHECK(remove_unused_variables(model, changes));
    *changes += before - model->n_functions;
    for (size_t i = 0; i < model->n_functions; i++) {
        bypass_identities(model->functions[i], changes);
        TARE_CHECK(drop_idle_controls(model->functions[i], &arena, changes));
        TARE_CHECK(tare_graph_remove_unreachable(model->functions[i], changes));
    }
done:
    tare_arena_free(&arena);
    return status;
}

const struct tare_pass tare_pass_prune = {
    .name = "prune",
    .help = "drop functions that no signature or alias reaches, and nodes without effect",
    .run = run,
};
