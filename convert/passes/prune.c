/* Drops functions that no signature or alias reaches, nodes without effect, and IdentityN in functions. */
#include "convert/pass.h"
#include "base/alloc.h"
#include "graph/calls.h"

static bool is_captured(const struct tare_graph_model *model, int object) {
    for (size_t c = 0; c < model->n_concretes && object >= 0; c++)
        for (size_t b = 0; b < model->concretes[c].n_bound; b++)
            if (model->concretes[c].bound[b] == object) return true;
    return false;
}

/* A variable that no signature, initialiser or kept function uses (for example an optimizer's) is removed with its
 * node. Only nodes that the signatures reach count: the saver holds every variable. */
static tare_status remove_unused_variables(struct tare_graph_model *model, size_t *changes) {
    bool *removed = tare_calloc(model->n_variables + 1, sizeof *removed);
    tare_status status;
    if (!removed) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_variables; i++) {
        removed[i] = model->variables[i].removed;
        if (!is_captured(model, model->variables[i].object_id)) model->variables[i].removed = true; /* not a root now */
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
 * IdentityN passes the results and all arguments of a computation. */
static void bypass_identities(struct tare_graph *graph, size_t *changes) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || node->n_controls || !tare_node_is(node, "IdentityN")) continue;
        for (size_t k = 0; k < node->n_inputs; k++)
            *changes += tare_graph_replace_uses(graph, (struct tare_edge){ node, (int)k }, node->inputs[k], NULL) > 0;
    }
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct tare_arena arena = { 0 };
    bool *live;
    size_t before = model->n_functions;
    tare_status status;
    TARE_CHECK(tare_model_reachable_functions(&live, &arena, model, true));
    tare_model_remove_functions(model, live);
    TARE_CHECK(remove_unused_variables(model, changes));
    *changes += before - model->n_functions;
    for (size_t i = 0; i < model->n_functions; i++) {
        bypass_identities(model->functions[i], changes);
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
