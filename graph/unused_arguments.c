/* Removing arguments that no function uses.
 *
 * Freezing replaces reads of a variable by constants, innermost first; its handle is then still passed through the
 * calls, branches and loops around the reads, and would keep the variable in the checkpoint. Each round removes what
 * one level no longer uses: an argument removed from a function makes an argument of its callers unused in the next
 * round. A round takes time linear in the nodes of the model; the number of rounds is the nesting depth of functions.
 */
#include "graph/calls.h"

#include <stdint.h>
#include <string.h>

struct round {
    struct tare_graph_model *model;
    struct tare_arena arena;   /* of one round */
    struct tare_map n_callers; /* function name -> uintptr_t: nodes and branches that call it */
    size_t removed;
};

static struct tare_graph *graph_at(const struct tare_graph_model *model, size_t i) {
    return i < model->n_functions ? model->functions[i] : model->main;
}

static size_t callers_of(const struct round *round, const struct tare_graph *function) {
    return (size_t)(uintptr_t)tare_map_get(&round->n_callers, function->name);
}

static tare_status count_callers(struct round *round) {
    for (size_t g = 0; g <= round->model->n_functions; g++) {
        const struct tare_graph *graph = graph_at(round->model, g);
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_call_site site;
            if (graph->nodes[i]->dead) continue;
            TARE_TRY(tare_call_site(&site, &round->arena, graph->nodes[i]));
            for (size_t c = 0; c < site.n_callees; c++) {
                const uintptr_t count = callers_of(round, site.callees[c]) + 1;
                if (!tare_map_set(&round->n_callers, site.callees[c]->name, (void *)count)) return TARE_NO_MEMORY;
            }
        }
    }
    return TARE_OK;
}

/* ---- uses ---- */

static void count_use(size_t *uses, const struct tare_node *node) {
    if (node && strcmp(node->op, "_Arg") == 0) uses[node->position]++;
}

/* uses[i]: inputs, controls and returns that argument i has. */
static tare_status count_uses(size_t **out, struct tare_arena *arena, const struct tare_graph *function) {
    size_t *uses = TARE_NEW_ARRAY(arena, size_t, function->n_args + 1);
    if (!uses) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_nodes; i++) {
        const struct tare_node *node = function->nodes[i];
        for (size_t k = 0; k < node->n_inputs && !node->dead; k++)
            count_use(uses, node->inputs[k].node);
        for (size_t k = 0; k < node->n_controls && !node->dead; k++)
            count_use(uses, node->controls[k]);
    }
    for (size_t i = 0; i < function->n_returns; i++)
        count_use(uses, function->returns[i].edge.node);
    for (size_t i = 0; i < function->n_control_returns; i++)
        count_use(uses, function->control_returns[i].node);
    *out = uses;
    return TARE_OK;
}

/* ---- what a user of the model passes ---- */

/* The number of leading arguments that are part of the model's interface. */
static size_t n_public_args(const struct tare_graph_model *model, const struct tare_graph *function) {
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph == function && model->concretes[i].n_bound <= function->n_args)
            return function->n_args - model->concretes[i].n_bound;
    return tare_model_alias_of(model, function->name) ? function->n_args : 0;
}

/* ---- loops, branches, calls ---- */

static tare_status shrink_loop(struct round *round, struct tare_node *loop, const struct tare_call_site *site) {
    struct tare_graph *condition = site->callees[0], *body = site->n_callees == 2 ? site->callees[1] : NULL;
    size_t *in_condition, *in_body;
    if (!body || condition == body || condition->n_args != loop->n_inputs || body->n_args != loop->n_inputs ||
        body->n_returns != loop->n_inputs || loop->n_outputs != loop->n_inputs || callers_of(round, condition) != 1 ||
        callers_of(round, body) != 1 || n_public_args(round->model, condition) || n_public_args(round->model, body))
        return TARE_OK;
    TARE_TRY(count_uses(&in_condition, &round->arena, condition));
    TARE_TRY(count_uses(&in_body, &round->arena, body));
    for (size_t i = loop->n_inputs; i-- > 0;) {
        if (body->returns[i].edge.node != body->args[i] || in_condition[i] || in_body[i] != 1) continue;
        TARE_TRY(tare_loop_remove_variable(loop, condition, body, i));
        round->removed++;
    }
    return TARE_OK;
}

static tare_status shrink_branches(struct round *round, struct tare_node *node, const struct tare_call_site *site) {
    size_t **uses = TARE_NEW_ARRAY(&round->arena, size_t *, site->n_callees);
    if (!uses) return TARE_NO_MEMORY;
    for (size_t b = 0; b < site->n_callees; b++) {
        struct tare_graph *branch = site->callees[b];
        size_t here = 0;
        for (size_t k = 0; k < site->n_callees; k++)
            here += site->callees[k] == branch;
        if (branch->n_args != site->n_args || callers_of(round, branch) != here || n_public_args(round->model, branch))
            return TARE_OK;
        TARE_TRY(count_uses(&uses[b], &round->arena, branch));
    }
    for (size_t i = site->n_args; i-- > 0;) {
        bool used = false;
        for (size_t b = 0; b < site->n_callees; b++)
            used |= uses[b][i] != 0;
        if (used) continue;
        TARE_TRY(tare_branches_remove_arg(node, site->callees, site->n_callees, i));
        round->removed++;
    }
    return TARE_OK;
}

static tare_status shrink_nodes(struct round *round) {
    for (size_t g = 0; g <= round->model->n_functions; g++) {
        const struct tare_graph *graph = graph_at(round->model, g);
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_call_site site;
            if (graph->nodes[i]->dead) continue;
            TARE_TRY(tare_call_site(&site, &round->arena, graph->nodes[i]));
            if (site.kind == TARE_CALL_LOOP) TARE_TRY(shrink_loop(round, graph->nodes[i], &site));
            if (site.kind == TARE_CALL_BRANCH) TARE_TRY(shrink_branches(round, graph->nodes[i], &site));
        }
    }
    return TARE_OK;
}

/* A handle is never passed by a user, whatever the object graph lists. */
static tare_status shrink_functions(struct round *round) {
    for (size_t f = 0; f < round->model->n_functions; f++) {
        struct tare_graph *function = round->model->functions[f];
        const size_t n_public = n_public_args(round->model, function);
        size_t *uses;
        TARE_TRY(count_uses(&uses, &round->arena, function));
        for (size_t i = function->n_args; i-- > 0;) {
            tare_status status;
            if (uses[i] || (i < n_public && function->args[i]->output_dtypes[0] != TARE_DT_RESOURCE)) continue;
            status = tare_function_remove_arg(function, i);
            if (status != TARE_OK && status != TARE_UNSUPPORTED) return status;
            if (status == TARE_OK)
                round->removed++;
            else
                tare_error_clear(); /* a branch or loop that shares its functions keeps the argument unused */
        }
    }
    return TARE_OK;
}

tare_status tare_model_remove_unused_args(size_t *removed, struct tare_graph_model *model) {
    tare_status status = TARE_OK;
    for (bool changed = true; changed && status == TARE_OK;) {
        struct round round = { .model = model };
        status = count_callers(&round);
        if (status == TARE_OK) status = shrink_nodes(&round);
        if (status == TARE_OK) status = shrink_functions(&round);
        changed = round.removed > 0;
        *removed += round.removed;
        tare_arena_free(&round.arena);
        tare_map_free(&round.n_callers);
    }
    return status;
}
