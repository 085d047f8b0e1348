/* Moves reads of variables that stay variables (--keep-variables, and large models) into the functions that receive
 * the values as arguments: JAX passes all weights to the main function of a module, and to its loops. The functions
 * get the handle and read the variable where it is used, so that quantization finds it there. A function that receives
 * the values of different variables from its callers is copied for each, in the order in which localize_constants
 * copies for different constants: a calibration of the frozen model then has the statistics of the same functions.
 *
 * A round visits every call; what a function passes on is a read in the function itself in the next round.
 */
#include "convert/pass.h"
#include "convert/passes/copies.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/clone.h"
#include "graph/gradients.h"
#include "graph/graph_table.h"
#include "graph/graphs.h"
#include "interpreter/ops/builtin.h"

#include <string.h>

/* The nodes that call a function. */
struct callee {
    struct tare_node **sites;
    size_t n_sites;
    bool is_fixed; /* called from outside the model or in an unknown way: its arguments stay */
};

struct round {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_bindings *bindings;
    struct tare_graph_table callees; /* function -> struct callee */
    size_t *copies;
    bool changed;
};

/* ---- call sites ---- */

static struct callee *callee_of(struct round *round, const struct tare_graph *function) {
    struct callee *callee = tare_graph_table_get(&round->callees, function);
    if (callee) return callee;
    callee = TARE_NEW(&round->arena, struct callee);
    return callee && tare_graph_table_set(&round->callees, function, callee) ? callee : NULL;
}

static tare_status add_calls(struct round *round, struct tare_node *node) {
    struct tare_call_site site;
    if (node->dead) return TARE_OK;
    TARE_TRY(tare_call_site(&site, &round->arena, node));
    for (size_t c = 0; c < site.n_callees; c++) {
        struct callee *callee = callee_of(round, site.callees[c]);
        struct tare_node **grown =
            callee ? tare_arena_append(&round->arena, callee->sites, callee->n_sites, sizeof(struct tare_node *))
                   : NULL;
        if (!grown) return TARE_NO_MEMORY;
        callee->sites = grown;
        callee->sites[callee->n_sites++] = node;
        callee->is_fixed |= !tare_is_plain_call(node) && site.kind != TARE_CALL_BRANCH && site.kind != TARE_CALL_LOOP;
    }
    return TARE_OK;
}

/* Functions that the object graph or an alias names are called with what a user passes. */
static tare_status add_interface(struct round *round) {
    const struct tare_graph_model *model = round->model;
    for (size_t i = 0; i < model->n_concretes + model->n_aliases; i++) {
        const struct tare_graph *function =
            i < model->n_concretes ? model->concretes[i].graph
                                   : tare_model_find_function(model, model->aliases[i - model->n_concretes].function);
        struct callee *callee = function ? callee_of(round, function) : NULL;
        if (function && !callee) return TARE_NO_MEMORY;
        if (callee) callee->is_fixed = true;
    }
    return TARE_OK;
}

static tare_status begin_round(struct round *round) {
    TARE_TRY(tare_bindings_new(&round->bindings, round->model));
    TARE_TRY(add_interface(round));
    for (size_t g = 0; g <= round->model->n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(round->model, g);
        for (size_t i = 0; i < graph->n_nodes; i++)
            TARE_TRY(add_calls(round, graph->nodes[i]));
    }
    return TARE_OK;
}

/* ---- values ---- */

/* The read of a kept variable that gives the edge's value; NULL: another value. */
static const struct tare_node *read_of(const struct round *round, struct tare_edge edge,
                                       const struct tare_variable **variable) {
    while (edge.node && tare_node_is(edge.node, "Identity") && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    if (!edge.node || !tare_node_is(edge.node, "ReadVariableOp") || !edge.node->n_inputs) return NULL;
    *variable = tare_bindings_variable(round->bindings, edge.node->inputs[0], NULL);
    return *variable && (*variable)->constant && (*variable)->dtype == tare_edge_dtype(edge) ? edge.node : NULL;
}

/* Whether the argument has a use other than being carried to the next iteration. */
static bool is_used(const struct tare_graph *function, size_t i) {
    const struct tare_edge arg = { function->args[i], 0 };
    const bool is_carried = i < function->n_returns && tare_edge_equal(function->returns[i].edge, arg);
    return tare_graph_count_uses(function, arg, NULL) > (size_t)is_carried;
}

/* Whether all sites pass the value of one variable to argument i. */
static bool same_variable(const struct round *round, const struct callee *callee, size_t i) {
    const struct tare_variable *first = NULL, *variable;
    for (size_t s = 0; s < callee->n_sites; s++) {
        if (i >= callee->sites[s]->n_inputs || !read_of(round, callee->sites[s]->inputs[i], &variable)) return false;
        if (s && variable != first) return false;
        first = variable;
    }
    return callee->n_sites > 0;
}

/* ---- handles into functions ---- */

/* The stateful form of a call, branch or loop has the same attributes. */
static void make_stateful(struct tare_node *node) {
    if (strncmp(node->op, "Stateless", strlen("Stateless")) == 0)
        node->op += strlen("Stateless");
    else if (tare_node_is(node, "PartitionedCall"))
        node->op = "StatefulPartitionedCall";
    node->def = tare_ops_find(tare_ops_builtin(), node->op);
}

/* Adds an argument for the handle; uses of argument i become those of a read. */
static tare_status add_handle(struct tare_graph *function, size_t i) {
    struct tare_node *arg = function->args[i];
    const struct tare_edge value = { arg, 0 };
    const bool is_carried = i < function->n_returns && tare_edge_equal(function->returns[i].edge, value);
    const bool needed = is_used(function, i);
    const char *name = tare_arena_printf(&function->model->arena, "%s_resource", arg->name);
    struct tare_node *handle = name ? tare_graph_add_arg(function, name, TARE_DT_RESOURCE) : NULL, *read;
    if (!handle) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_drop_arg_shapes(function));
    if (!needed) return TARE_OK;
    read = tare_graph_add(function, "ReadVariableOp", arg->name);
    if (!read) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(read, (struct tare_edge){ handle, 0 }));
    TARE_TRY(tare_node_set_type(read, "dtype", tare_edge_dtype(value)));
    TARE_TRY(tare_node_resolve(read));
    tare_graph_replace_uses(function, value, (struct tare_edge){ read, 0 }, NULL);
    if (is_carried) tare_graph_set_return(function, i, value);
    function->is_stateful = true;
    return TARE_OK;
}

/* Appends the dtype of a handle to a list of dtypes. */
static tare_status append_type(struct tare_node *node, const char *name) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    const size_t count = attr ? attr->count : 0;
    int *dtypes = TARE_NEW_ARRAY(&node->graph->model->arena, int, count + 1);
    if (!dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        dtypes[i] = attr->items[i].type;
    dtypes[count] = TARE_DT_RESOURCE;
    return tare_node_set_type_list(node, name, dtypes, count + 1);
}

static tare_status pass_handle(const struct round *round, struct tare_node *node, size_t input, const char *types) {
    const struct tare_variable *variable;
    const struct tare_node *read = read_of(round, node->inputs[input], &variable);
    TARE_TRY(tare_node_add_input(node, read->inputs[0]));
    TARE_TRY(append_type(node, types));
    tare_node_remove_attr(node, "_read_only_resource_inputs");
    tare_node_remove_attr(node, "_input_shapes");
    make_stateful(node);
    return tare_node_resolve(node);
}

static tare_status push_plain(struct round *round, struct tare_graph *function, const struct callee *callee) {
    const size_t n_args = function->n_args;
    for (size_t i = 0; i < n_args; i++) {
        if (!is_used(function, i) || !same_variable(round, callee, i)) continue;
        for (size_t s = 0; s < callee->n_sites; s++)
            TARE_TRY(pass_handle(round, callee->sites[s], i, "Tin"));
        TARE_TRY(add_handle(function, i));
        round->changed = true;
    }
    return TARE_OK;
}

/* The functions of a branch or loop share their arguments: no other node may call them. */
static bool is_only_caller(struct round *round, const struct tare_call_site *site) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct callee *callee = tare_graph_table_get(&round->callees, site->callees[c]);
        if (!callee || callee->is_fixed || callee->n_sites != 1) return false;
        if (site->callees[c]->n_args != site->n_args) return false;
    }
    return true;
}

/* A loop also returns what it carries. */
static tare_status carry_handle(struct tare_node *loop, struct tare_graph *body) {
    struct tare_node *handle = body->args[body->n_args - 1];
    tare_node_remove_attr(loop, "output_shapes"); /* of the variables without the handle */
    tare_node_remove_attr(loop, "_output_shapes");
    return tare_graph_add_return(body, handle->name, TARE_DT_RESOURCE, (struct tare_edge){ handle, 0 });
}

static bool is_carried_unchanged(const struct tare_graph *body, size_t i) {
    struct tare_edge edge = i < body->n_returns ? body->returns[i].edge : (struct tare_edge){ 0 };
    while (edge.node && tare_node_is(edge.node, "Identity") && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge.node == body->args[i];
}

static tare_status push_shared(struct round *round, struct tare_node *node, const struct tare_call_site *site) {
    const bool is_loop = site->kind == TARE_CALL_LOOP;
    const struct tare_variable *variable;
    if (is_loop && round->model->keep_gradients) return TARE_OK; /* TensorFlow has no gradient of a read inside */
    if (!is_only_caller(round, site)) return TARE_OK;
    for (size_t i = 0; i < site->n_args; i++) {
        bool used = false;
        for (size_t c = 0; c < site->n_callees; c++)
            used |= is_used(site->callees[c], i);
        if (!used || !read_of(round, node->inputs[site->first + i], &variable)) continue;
        if (is_loop && !is_carried_unchanged(site->callees[1], i)) continue;
        for (size_t c = 0; c < site->n_callees; c++)
            TARE_TRY(add_handle(site->callees[c], i));
        if (is_loop) TARE_TRY(carry_handle(node, site->callees[1]));
        TARE_TRY(pass_handle(round, node, site->first + i, is_loop ? "T" : "Tin"));
        round->changed = true;
    }
    return TARE_OK;
}

static tare_status push_all(struct round *round) {
    for (size_t f = 0; f < round->model->n_functions; f++) {
        struct tare_graph *function = round->model->functions[f];
        const struct callee *callee = tare_graph_table_get(&round->callees, function);
        bool is_plain = callee && !callee->is_fixed;
        for (size_t s = 0; is_plain && s < callee->n_sites; s++)
            is_plain = tare_is_plain_call(callee->sites[s]);
        if (is_plain) TARE_TRY(push_plain(round, function, callee));
    }
    for (size_t g = 0; g <= round->model->n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(round->model, g);
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_call_site site;
            if (graph->nodes[i]->dead) continue;
            TARE_TRY(tare_call_site(&site, &round->arena, graph->nodes[i]));
            if (site.kind == TARE_CALL_LOOP || site.kind == TARE_CALL_BRANCH)
                TARE_TRY(push_shared(round, graph->nodes[i], &site));
        }
    }
    return TARE_OK;
}

/* ---- a copy for each caller ---- */

/* A plain call that passes a weight to an argument for which another call passes another variable. */
static bool shares_callee(struct round *round, const struct tare_node *node) {
    const struct tare_graph *function = tare_is_plain_call(node) ? tare_node_function(node, "f") : NULL;
    const struct callee *callee = function ? tare_graph_table_get(&round->callees, function) : NULL;
    const struct tare_variable *variable;
    if (!callee || callee->is_fixed || callee->n_sites < 2 || tare_graph_keeps_gradients(function)) return false;
    for (size_t i = 0; i < node->n_inputs && i < function->n_args; i++)
        if (read_of(round, node->inputs[i], &variable) && !same_variable(round, callee, i) &&
            tare_is_worth_copying(&variable->value))
            return true;
    return false;
}

static tare_status copy_for_callers(struct round *round) {
    const size_t n_functions = round->model->n_functions;
    for (size_t g = 0; g <= n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(round->model, g);
        for (size_t i = 0; i < graph->n_nodes && *round->copies < TARE_MOST_COPIES; i++) {
            if (graph->nodes[i]->dead || !shares_callee(round, graph->nodes[i])) continue;
            TARE_TRY(tare_call_copy_function(graph->nodes[i]));
            ++*round->copies;
            round->changed = true;
        }
    }
    return TARE_OK;
}

static tare_status run_round(bool *changed, struct tare_graph_model *model, size_t *copies) {
    struct round round = { .model = model, .copies = copies };
    tare_status status = begin_round(&round);
    if (status == TARE_OK) status = push_all(&round);
    if (status == TARE_OK && !round.changed) status = copy_for_callers(&round); /* what is passed is known by now */
    *changed = round.changed;
    tare_bindings_free(round.bindings);
    tare_graph_table_free(&round.callees);
    tare_arena_free(&round.arena);
    return status;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    size_t copies = 0, removed = 0;
    bool changed = false;
    for (size_t v = 0; v < model->n_variables; v++)
        changed |= model->variables[v].constant;
    while (changed) {
        TARE_TRY(run_round(&changed, model, &copies));
        *changes += changed;
    }
    return *changes ? tare_model_remove_unused_args(&removed, model) : TARE_OK;
}

const struct tare_pass tare_pass_localize_variables = {
    .name = "localize_variables",
    .help = "move reads of variables that stay variables into functions, loops and branches",
    .run = run,
};
