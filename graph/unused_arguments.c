/* Removing arguments that no function uses.
 *
 * Freezing replaces reads of a variable by constants, innermost first; its handle is then still passed through the
 * calls, branches and loops around the reads, and would keep the variable in the checkpoint. A round visits the
 * functions callees first: an argument removed from a function makes an argument of its callers unused, which are
 * visited later. Rounds are repeated until one removes nothing, usually the second; each takes time linear in the nodes
 * of the model. */
#include "graph/calls.h"
#include "graph/graph_table.h"

#include <string.h>

/* One function of the model, or the main graph. */
struct body {
    struct tare_graph *graph;
    struct tare_node_list callers; /* once for each callee: a Case with two equal branches is there twice */
    size_t capacity;
    size_t calls;                         /* calls in it of functions that were not visited yet */
    const struct tare_concrete *concrete; /* the first of the function; NULL: none */
    bool is_aliased;
    struct body *next;
};

struct round {
    struct tare_graph_model *model;
    struct tare_arena arena;                /* of one round */
    struct tare_graph_table by_graph;       /* -> struct body */
    struct body main, *bodies;              /* of the main graph; of each function, by its number */
    struct body *first_ready, **last_ready; /* functions whose callees were visited, in the order of their visit */
    size_t removed;
};

static struct body *body_of(struct round *round, const struct tare_graph *graph) {
    return tare_graph_table_get(&round->by_graph, graph);
}

static tare_status add_caller(struct round *round, struct body *callee, struct tare_node *node) {
    if (callee->callers.count == callee->capacity) {
        const size_t extra = callee->capacity + 4;
        callee->callers.nodes = tare_arena_extend(&round->arena, callee->callers.nodes, callee->callers.count, extra,
                                                  sizeof *callee->callers.nodes);
        if (!callee->callers.nodes) return TARE_NO_MEMORY;
        callee->capacity += extra;
    }
    callee->callers.nodes[callee->callers.count++] = node;
    return TARE_OK;
}

static tare_status add_calls(struct round *round, struct body *body) {
    for (size_t i = 0; i < body->graph->n_nodes; i++) {
        struct tare_call_site site;
        if (body->graph->nodes[i]->dead) continue;
        TARE_TRY(tare_call_site(&site, &round->arena, body->graph->nodes[i]));
        for (size_t c = 0; c < site.n_callees; c++)
            TARE_TRY(add_caller(round, body_of(round, site.callees[c]), body->graph->nodes[i]));
        body->calls += site.n_callees;
    }
    return TARE_OK;
}

static void note_interface(struct round *round) {
    const struct tare_graph_model *model = round->model;
    for (size_t i = model->n_concretes; i-- > 0;) {
        const struct tare_concrete *concrete = &model->concretes[i];
        struct body *body = body_of(round, concrete->graph);
        if (body && concrete->n_bound <= concrete->graph->n_args) body->concrete = concrete;
    }
    for (size_t i = 0; i < model->n_aliases; i++) {
        const struct tare_graph *function = tare_model_find_function(model, model->aliases[i].function);
        if (function) body_of(round, function)->is_aliased = true;
    }
}

static tare_status open_round(struct round *round) {
    const size_t count = round->model->n_functions;
    round->main.graph = round->model->main;
    round->last_ready = &round->first_ready;
    round->bodies = TARE_NEW_ARRAY(&round->arena, struct body, count + 1);
    if (!round->bodies || !tare_graph_table_set(&round->by_graph, round->main.graph, &round->main))
        return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        round->bodies[i].graph = round->model->functions[i];
        if (!tare_graph_table_set(&round->by_graph, round->model->functions[i], &round->bodies[i]))
            return TARE_NO_MEMORY;
    }
    note_interface(round);
    for (size_t i = 0; i < count; i++)
        TARE_TRY(add_calls(round, &round->bodies[i]));
    return add_calls(round, &round->main);
}

static size_t callers_of(struct round *round, const struct tare_graph *function) {
    return body_of(round, function)->callers.count;
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

/* The number of leading arguments that are part of the model's interface: a user of the model passes them. */
static size_t n_public_args(struct round *round, const struct tare_graph *function) {
    const struct body *body = body_of(round, function);
    if (body->concrete) return function->n_args - body->concrete->n_bound;
    return body->is_aliased ? function->n_args : 0;
}

/* ---- loops, branches, calls ---- */

static tare_status shrink_loop(struct round *round, struct tare_node *loop, const struct tare_call_site *site) {
    struct tare_graph *condition = site->callees[0], *body = site->n_callees == 2 ? site->callees[1] : NULL;
    size_t *in_condition, *in_body, count = 0;
    if (!body || condition == body || condition->n_args != loop->n_inputs || body->n_args != loop->n_inputs ||
        body->n_returns != loop->n_inputs || loop->n_outputs != loop->n_inputs || callers_of(round, condition) != 1 ||
        callers_of(round, body) != 1 || n_public_args(round, condition) || n_public_args(round, body))
        return TARE_OK;
    bool *removed = TARE_NEW_ARRAY(&round->arena, bool, loop->n_inputs + 1);
    if (!removed) return TARE_NO_MEMORY;
    TARE_TRY(count_uses(&in_condition, &round->arena, condition));
    TARE_TRY(count_uses(&in_body, &round->arena, body));
    for (size_t i = 0; i < loop->n_inputs; i++) {
        removed[i] = body->returns[i].edge.node == body->args[i] && !in_condition[i] && in_body[i] == 1;
        count += removed[i];
    }
    round->removed += count;
    return count ? tare_loop_remove_variables(loop, condition, body, removed) : TARE_OK;
}

/* Marks in `removed` the arguments that no branch uses; false if a branch needs all of them. */
static tare_status find_unused(bool *removed, bool *possible, struct round *round, const struct tare_call_site *site) {
    *possible = false;
    for (size_t i = 0; i < site->n_args; i++)
        removed[i] = true;
    for (size_t b = 0; b < site->n_callees; b++) {
        const struct tare_graph *branch = site->callees[b];
        size_t here = 0, *uses;
        for (size_t k = 0; k < site->n_callees; k++)
            here += site->callees[k] == branch;
        if (branch->n_args != site->n_args || callers_of(round, branch) != here || n_public_args(round, branch))
            return TARE_OK;
        TARE_TRY(count_uses(&uses, &round->arena, branch));
        for (size_t i = 0; i < site->n_args; i++)
            removed[i] &= uses[i] == 0;
    }
    *possible = true;
    return TARE_OK;
}

static tare_status shrink_branches(struct round *round, struct tare_node *node, const struct tare_call_site *site) {
    bool *removed = TARE_NEW_ARRAY(&round->arena, bool, site->n_args + 1), possible;
    size_t count = 0;
    if (!removed) return TARE_NO_MEMORY;
    TARE_TRY(find_unused(removed, &possible, round, site));
    for (size_t i = 0; i < site->n_args && possible; i++)
        count += removed[i];
    round->removed += count;
    return count ? tare_branches_remove_args(node, site->callees, site->n_callees, removed) : TARE_OK;
}

static tare_status shrink_nodes(struct round *round, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_call_site site;
        if (graph->nodes[i]->dead) continue;
        TARE_TRY(tare_call_site(&site, &round->arena, graph->nodes[i]));
        /* TensorFlow's gradient of a loop takes argument 1 for the most iterations (while_v2.py). */
        if (site.kind == TARE_CALL_LOOP && !round->model->keep_gradients)
            TARE_TRY(shrink_loop(round, graph->nodes[i], &site));
        if (site.kind == TARE_CALL_BRANCH) TARE_TRY(shrink_branches(round, graph->nodes[i], &site));
    }
    return TARE_OK;
}

/* A handle is never passed by a user, whatever the object graph lists. */
static tare_status shrink_function(struct round *round, const struct body *body) {
    struct tare_graph *function = body->graph;
    const size_t n_public = n_public_args(round, function);
    bool *removed = TARE_NEW_ARRAY(&round->arena, bool, function->n_args + 1);
    size_t *uses, count = 0;
    if (!removed) return TARE_NO_MEMORY;
    TARE_TRY(count_uses(&uses, &round->arena, function));
    for (size_t i = 0; i < function->n_args; i++) {
        removed[i] = !uses[i] && (i >= n_public || function->args[i]->output_dtypes[0] == TARE_DT_RESOURCE);
        count += removed[i];
    }
    if (!count) return TARE_OK;
    const tare_status status = tare_function_remove_args(function, removed, &body->callers);
    if (status == TARE_OK) round->removed += count;
    if (status != TARE_UNSUPPORTED) return status;
    tare_error_clear(); /* a branch or loop that shares its functions keeps the arguments unused */
    return TARE_OK;
}

/* ---- rounds ---- */

static void add_ready(struct round *round, struct body *body) {
    *round->last_ready = body;
    round->last_ready = &body->next;
}

static tare_status visit(struct round *round, struct body *body) {
    TARE_TRY(shrink_nodes(round, body->graph));
    TARE_TRY(shrink_function(round, body));
    for (size_t i = 0; i < body->callers.count; i++) {
        struct body *caller = body_of(round, body->callers.nodes[i]->graph);
        if (--caller->calls == 0 && caller != &round->main) add_ready(round, caller);
    }
    return TARE_OK;
}

/* Functions that call themselves never become ready; they keep their arguments. */
static tare_status run_round(struct round *round) {
    TARE_TRY(open_round(round));
    for (size_t i = 0; i < round->model->n_functions; i++)
        if (!round->bodies[i].calls) add_ready(round, &round->bodies[i]);
    for (struct body *body = round->first_ready; body; body = body->next)
        TARE_TRY(visit(round, body));
    return shrink_nodes(round, round->model->main);
}

tare_status tare_model_remove_unused_args(size_t *removed, struct tare_graph_model *model) {
    tare_status status = TARE_OK;
    for (bool changed = true; changed && status == TARE_OK;) {
        struct round round = { .model = model };
        status = run_round(&round);
        changed = round.removed > 0;
        *removed += round.removed;
        tare_arena_free(&round.arena);
        tare_graph_table_free(&round.by_graph);
    }
    return status;
}
