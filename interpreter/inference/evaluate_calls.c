/* Running a node that calls functions of stateless nodes, and formulas of such nodes, on given values. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/control.h"
#include "graph/calls.h"
#include "interpreter/inference/evaluate.h"
#include "interpreter/ops/xla/combiner.h"

#include <string.h>

enum { DEEPEST = 16, MOST_NODES = 1 << 14, MOST_STEPS = 1 << 16, MOST_NESTED = 256 };

/* ---- which calls ---- */

static bool is_pure_call(struct tare_arena *arena, const struct tare_node *node, int *nodes, int depth);

static bool is_pure_function(struct tare_arena *arena, const struct tare_graph *function, int *nodes, int depth) {
    for (size_t i = 0; i < function->n_nodes; i++) {
        const struct tare_node *node = function->nodes[i];
        if (node->dead) continue;
        if ((*nodes)-- <= 0 || node->n_controls) return false;
        if (!tare_node_is_pure(node) && !tare_combiner_is_direct(node) && !is_pure_call(arena, node, nodes, depth))
            return false;
    }
    return true;
}

static bool is_pure_call(struct tare_arena *arena, const struct tare_node *node, int *nodes, int depth) {
    struct tare_call_site site;
    if (depth == DEEPEST || tare_node_is(node, "BatchFunction") || node->n_controls) return false;
    if (tare_call_site(&site, arena, node) != TARE_OK) {
        tare_error_clear();
        return false;
    }
    if (site.kind != TARE_CALL_PLAIN && site.kind != TARE_CALL_BRANCH && site.kind != TARE_CALL_LOOP) return false;
    for (size_t i = 0; i < site.n_callees; i++)
        if (!is_pure_function(arena, site.callees[i], nodes, depth + 1)) return false;
    return true;
}

bool tare_call_is_pure(const struct tare_node *node) {
    struct tare_arena arena = { 0 };
    int nodes = MOST_NODES;
    const bool pure = is_pure_call(&arena, node, &nodes, 0);
    tare_arena_free(&arena);
    return pure;
}

/* ---- values ---- */

struct evaluation {
    int steps;    /* that are left */
    bool stopped; /* there were none, or the values are not those that a loop or a branch takes */
};

static tare_status run_call(struct evaluation *e, const struct tare_node *node, const struct tare_tensor *inputs,
                            struct tare_tensor *outputs);

static void reset(struct tare_tensor *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i].dtype) tare_tensor_reset(&values[i]);
}

static tare_status share(struct tare_tensor *out, const struct tare_tensor *value) {
    if (value->splat) return tare_tensor_copy(out, value);
    tare_tensor_share(out, value);
    return TARE_OK;
}

/* The values of one function: arguments, which are borrowed, and the outputs of nodes, both by position. */
struct values {
    const struct tare_tensor *args;
    struct tare_tensor **outputs;
};

static const struct tare_tensor *value_of(const struct values *values, struct tare_edge edge) {
    const size_t position = edge.node->position;
    return tare_node_is_arg(edge.node) ? &values->args[position] : &values->outputs[position][edge.index];
}

static tare_status run_node(struct evaluation *e, struct tare_arena *arena, const struct tare_node *node,
                            const struct values *values) {
    struct tare_tensor *inputs = TARE_NEW_ARRAY(arena, struct tare_tensor, node->n_inputs + 1);
    struct tare_tensor *outputs = TARE_NEW_ARRAY(arena, struct tare_tensor, node->n_outputs + 1);
    const struct tare_tensor *constant = tare_node_is(node, "Const") ? tare_node_tensor(node, "value") : NULL;
    if (!inputs || !outputs) return TARE_NO_MEMORY;
    values->outputs[node->position] = outputs;
    if (constant) return share(&outputs[0], constant);
    for (size_t i = 0; i < node->n_inputs; i++)
        inputs[i] = *value_of(values, node->inputs[i]); /* borrowed */
    e->stopped |= e->steps-- <= 0;
    if (e->stopped) return TARE_OK;
    if (tare_node_is_pure(node) || tare_combiner_is_direct(node)) return tare_node_evaluate(node, inputs, outputs);
    return run_call(e, node, inputs, outputs);
}

/* Arguments are borrowed, results the caller's. */
static tare_status run_function(struct evaluation *e, const struct tare_graph *function, const struct tare_tensor *args,
                                size_t n_args, struct tare_tensor *results, size_t n_results) {
    struct tare_arena arena = { 0 };
    struct values values = { args, TARE_NEW_ARRAY(&arena, struct tare_tensor *, function->n_nodes + 1) };
    struct tare_node **order = NULL;
    tare_status status = values.outputs ? TARE_OK : TARE_NO_MEMORY;
    e->stopped |= function->n_args != n_args || function->n_returns != n_results;
    if (status == TARE_OK) status = tare_graph_order(&order, &arena, function);
    for (size_t i = 0; i < function->n_nodes && status == TARE_OK && !e->stopped && order[i]; i++) {
        status = tare_control_check();
        if (status == TARE_OK) status = run_node(e, &arena, order[i], &values);
    }
    for (size_t i = 0; i < n_results && status == TARE_OK && !e->stopped; i++)
        status = share(&results[i], value_of(&values, function->returns[i].edge));
    for (size_t i = 0; i < function->n_nodes && values.outputs; i++)
        if (values.outputs[i]) reset(values.outputs[i], function->nodes[i]->n_outputs);
    tare_arena_free(&arena);
    return status;
}

static bool is_scalar(const struct tare_tensor *value, int dtype) {
    return value->dtype == dtype && value->elements == 1;
}

/* The function that a branch takes; NULL: its condition is of another kind. */
static const struct tare_graph *chosen(const struct tare_node *node, const struct tare_call_site *site,
                                       const struct tare_tensor *by) {
    const bool is_if = tare_node_is(node, "If") || tare_node_is(node, "StatelessIf");
    if (!is_scalar(by, is_if ? TARE_DT_BOOL : TARE_DT_INT32)) return NULL;
    const int64_t number = tare_tensor_get_i64(by, 0), last = (int64_t)site->n_callees - 1;
    if (is_if) return tare_node_function(node, number ? "then_branch" : "else_branch");
    return site->callees[number < 0 || number > last ? last : number];
}

static tare_status run_loop(struct evaluation *e, const struct tare_call_site *site, const struct tare_tensor *inputs,
                            struct tare_tensor *outputs, size_t count) {
    struct tare_tensor *next = tare_calloc(count + 1, sizeof *next);
    tare_status status = next ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = share(&outputs[i], &inputs[i]);
    while (status == TARE_OK) {
        struct tare_tensor again = { 0 };
        status = run_function(e, site->callees[0], outputs, count, &again, 1);
        e->stopped |= status == TARE_OK && !is_scalar(&again, TARE_DT_BOOL);
        const bool done = status != TARE_OK || e->stopped || !tare_tensor_get_i64(&again, 0);
        reset(&again, 1);
        if (done) break;
        status = run_function(e, site->callees[1], outputs, count, next, count);
        if (status != TARE_OK || e->stopped) break;
        reset(outputs, count);
        memcpy(outputs, next, count * sizeof *next);
        memset(next, 0, count * sizeof *next);
    }
    if (next) reset(next, count);
    tare_free(next);
    return status;
}

static tare_status run_call(struct evaluation *e, const struct tare_node *node, const struct tare_tensor *inputs,
                            struct tare_tensor *outputs) {
    struct tare_arena arena = { 0 };
    struct tare_call_site site;
    tare_status status = tare_call_site(&site, &arena, node);
    const struct tare_graph *callee = NULL;
    if (status == TARE_OK && site.kind == TARE_CALL_LOOP && node->n_inputs == node->n_outputs)
        status = run_loop(e, &site, inputs, outputs, node->n_inputs);
    else if (status == TARE_OK) {
        callee = site.kind == TARE_CALL_BRANCH  ? chosen(node, &site, &inputs[0])
                 : site.kind == TARE_CALL_PLAIN ? site.callees[0]
                                                : NULL;
        e->stopped |= !callee;
        if (callee) status = run_function(e, callee, inputs + site.first, site.n_args, outputs, node->n_outputs);
    }
    tare_arena_free(&arena);
    return status;
}

tare_status tare_call_evaluate(bool *done, const struct tare_node *node, const struct tare_tensor *inputs,
                               struct tare_tensor *outputs) {
    struct evaluation e = { .steps = MOST_STEPS };
    const tare_status status = run_call(&e, node, inputs, outputs);
    *done = status == TARE_OK && !e.stopped;
    if (!*done) reset(outputs, node->n_outputs);
    return status;
}

/* ---- formulas ---- */

bool tare_node_is_computable(const struct tare_node *node) {
    return tare_node_is_pure(node) || tare_combiner_is_direct(node) || tare_call_is_pure(node);
}

/* Computes the node of an edge after those that it depends on. */
static tare_status compute(struct evaluation *e, struct tare_arena *arena, struct tare_edge edge,
                           const struct values *values, int depth) {
    const struct tare_node *node = edge.node;
    e->stopped |= depth == MOST_NESTED;
    if (tare_node_is_arg(node)) e->stopped |= values->args[node->position].dtype == TARE_DT_INVALID;
    if (e->stopped || tare_node_is_arg(node) || values->outputs[node->position]) return TARE_OK;
    for (size_t i = 0; i < node->n_inputs && !e->stopped; i++)
        TARE_TRY(compute(e, arena, node->inputs[i], values, depth + 1));
    return e->stopped ? TARE_OK : run_node(e, arena, node, values);
}

static tare_status give(struct tare_arena *arena, struct tare_tensor *args, const struct values *values,
                        struct tare_edge edge, const struct tare_tensor *value) {
    const size_t position = edge.node->position;
    if (tare_node_is_arg(edge.node)) {
        args[position] = *value;
        return TARE_OK;
    }
    if (!values->outputs[position])
        values->outputs[position] = TARE_NEW_ARRAY(arena, struct tare_tensor, edge.node->n_outputs + 1);
    return values->outputs[position] ? share(&values->outputs[position][edge.index], value) : TARE_NO_MEMORY;
}

tare_status tare_edge_evaluate(bool *done, struct tare_tensor *out, struct tare_edge edge,
                               const struct tare_edge *given, const struct tare_tensor *given_values, size_t n_given) {
    const struct tare_graph *graph = edge.node->graph;
    struct evaluation e = { .steps = MOST_STEPS };
    struct tare_arena arena = { 0 };
    struct tare_tensor *args = TARE_NEW_ARRAY(&arena, struct tare_tensor, graph->n_args + 1);
    struct values values = { args, TARE_NEW_ARRAY(&arena, struct tare_tensor *, graph->n_nodes + 1) };
    tare_status status = args && values.outputs ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_given && status == TARE_OK; i++)
        status = give(&arena, args, &values, given[i], &given_values[i]);
    if (status == TARE_OK) status = compute(&e, &arena, edge, &values, 0);
    *done = status == TARE_OK && !e.stopped;
    if (*done) status = share(out, value_of(&values, edge));
    for (size_t i = 0; i < graph->n_nodes && values.outputs; i++)
        if (values.outputs[i]) reset(values.outputs[i], graph->nodes[i]->n_outputs);
    tare_arena_free(&arena);
    return status;
}
