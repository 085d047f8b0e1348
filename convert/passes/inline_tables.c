/* Inlines functions that hold one table, into the innermost function that calls them all: a look-up in one function
 * and a product with the same table in another. The frozen model then has the table once, and quantization finds both
 * layers in one graph (quant/tied_tables.h).
 *
 * A function is inlined if a plain call in a function is its only call site; one that an alias or the object graph
 * names, that XLA compiles on its own or that is a composite stays. */
#include "convert/pass.h"
#include "convert/passes/copies.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "graph/graphs.h"
#include "graph/inline.h"

/* How a function is called. */
struct caller {
    struct tare_graph *graph;
    size_t n_sites;
    bool is_fixed;
};

/* A constant of a graph, or a read of a variable that stays one. */
struct holder {
    const struct tare_tensor *value;
    struct tare_graph *graph;
    bool is_table; /* a look-up reads it */
};

struct tables {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_bindings *bindings;
    struct tare_graph_table callers; /* function -> struct caller */
    struct holder *holders;
    size_t n_holders;
    struct tare_graph **inlined; /* a list; the tops are the functions that they go into */
    struct tare_graph **tops;
    size_t n_inlined, n_tops;
};

/* ---- what the model has ---- */

static struct caller *caller_of(struct tables *t, const struct tare_graph *function) {
    struct caller *caller = tare_graph_table_get(&t->callers, function);
    if (caller) return caller;
    caller = TARE_NEW(&t->arena, struct caller);
    return caller && tare_graph_table_set(&t->callers, function, caller) ? caller : NULL;
}

static tare_status add_call(struct tables *t, const struct tare_node *node) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, &t->arena, node));
    for (size_t c = 0; c < site.n_callees; c++) {
        struct caller *caller = caller_of(t, site.callees[c]);
        if (!caller) return TARE_NO_MEMORY;
        caller->graph = node->graph;
        caller->n_sites++;
        caller->is_fixed |= !tare_is_plain_call(node) || node->graph == t->model->main;
    }
    return TARE_OK;
}

static bool is_looked_up(struct tare_edge edge) {
    for (const struct tare_use *use = tare_edge_first_use(edge); use; use = tare_edge_next_use(use)) {
        const struct tare_node *user = use->user;
        if (user->dead || use->input != 0) continue;
        if (tare_node_is(user, "GatherV2") || tare_node_is(user, "Gather")) return true;
        if (tare_node_is(user, "Identity") && is_looked_up((struct tare_edge){ use->user, 0 })) return true;
    }
    return false;
}

static const struct tare_tensor *value_of(const struct tables *t, struct tare_node *node) {
    if (tare_node_is(node, "Const")) return tare_edge_constant((struct tare_edge){ node, 0 });
    if (!tare_node_is(node, "ReadVariableOp") || !node->n_inputs) return NULL;
    const struct tare_variable *variable = tare_bindings_variable(t->bindings, node->inputs[0], NULL);
    return variable && variable->constant ? &variable->value : NULL;
}

static tare_status add_holder(struct tables *t, struct tare_node *node) {
    const struct tare_tensor *value = value_of(t, node);
    if (!value || value->shape.rank != 2 || value->splat || !tare_is_worth_copying(value)) return TARE_OK;
    struct holder *grown = tare_arena_append(&t->arena, t->holders, t->n_holders, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    t->holders = grown;
    t->holders[t->n_holders++] = (struct holder){ value, node->graph, is_looked_up((struct tare_edge){ node, 0 }) };
    return TARE_OK;
}

static tare_status survey(struct tables *t) {
    for (size_t g = 0; g <= t->model->n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(t->model, g);
        TARE_TRY(tare_graph_index_uses(graph));
        for (size_t i = 0; i < graph->n_nodes; i++) {
            if (graph->nodes[i]->dead) continue;
            TARE_TRY(add_call(t, graph->nodes[i]));
            if (g) TARE_TRY(add_holder(t, graph->nodes[i]));
        }
    }
    return TARE_OK;
}

static tare_status fix_interface(struct tables *t) {
    const struct tare_graph_model *model = t->model;
    for (size_t i = 0; i < model->n_concretes + model->n_aliases; i++) {
        const struct tare_graph *function =
            i < model->n_concretes ? model->concretes[i].graph
                                   : tare_model_find_function(model, model->aliases[i - model->n_concretes].function);
        struct caller *caller = function ? caller_of(t, function) : NULL;
        if (function && !caller) return TARE_NO_MEMORY;
        if (caller) caller->is_fixed = true;
    }
    return TARE_OK;
}

/* ---- what is inlined ---- */

/* The function that `function` can be inlined into; NULL: none. */
static struct tare_graph *parent_of(const struct tables *t, const struct tare_graph *function) {
    const struct caller *caller = tare_graph_table_get(&t->callers, function);
    const bool is_composite =
        tare_graph_find_attr(function, "_implements") || tare_graph_find_attr(function, "api_implements");
    if (!caller || caller->n_sites != 1 || caller->is_fixed || is_composite || tare_function_must_compile(function))
        return NULL;
    return caller->graph;
}

static struct tare_graph *common_caller(const struct tables *t, struct tare_graph *a, struct tare_graph *b) {
    for (struct tare_graph *x = a; x; x = parent_of(t, x))
        for (struct tare_graph *y = b; y; y = parent_of(t, y))
            if (x == y) return x;
    return NULL;
}

static bool is_in(struct tare_graph *const *list, size_t count, const struct tare_graph *graph) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == graph) return true;
    return false;
}

static tare_status add_once(struct tables *t, struct tare_graph ***list, size_t *count, struct tare_graph *graph) {
    if (is_in(*list, *count, graph)) return TARE_OK;
    struct tare_graph **grown = tare_arena_append(&t->arena, *list, *count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    *list = grown;
    (*list)[(*count)++] = graph;
    return TARE_OK;
}

static tare_status add_pair(struct tables *t, struct tare_graph *a, struct tare_graph *b) {
    struct tare_graph *top = common_caller(t, a, b);
    if (!top) return TARE_OK;
    TARE_TRY(add_once(t, &t->tops, &t->n_tops, top));
    for (struct tare_graph *x = a; x != top; x = parent_of(t, x))
        TARE_TRY(add_once(t, &t->inlined, &t->n_inlined, x));
    for (struct tare_graph *x = b; x != top; x = parent_of(t, x))
        TARE_TRY(add_once(t, &t->inlined, &t->n_inlined, x));
    return TARE_OK;
}

static bool same_value(const struct holder *a, const struct holder *b) {
    const struct tare_tensor *x = a->value, *y = b->value;
    return x->dtype == y->dtype && tare_shape_equal(&x->shape, &y->shape) &&
           (x->data == y->data || tare_tensor_same_bits(x, y));
}

static tare_status find_pairs(struct tables *t) {
    for (size_t i = 0; i < t->n_holders; i++)
        for (size_t k = 0; k < t->n_holders && t->holders[i].is_table; k++)
            if (t->holders[k].graph != t->holders[i].graph && same_value(&t->holders[k], &t->holders[i]))
                TARE_TRY(add_pair(t, t->holders[i].graph, t->holders[k].graph));
    return TARE_OK;
}

static bool is_inlined(void *arg, const struct tare_graph *callee) {
    const struct tables *t = arg;
    return is_in(t->inlined, t->n_inlined, callee);
}

static tare_status inline_all(struct tables *t, size_t *changes) {
    for (size_t i = 0; i < t->n_tops; i++) {
        size_t count;
        TARE_TRY(tare_function_inline_calls(&count, t->tops[i], is_inlined, t));
        *changes += count;
    }
    return TARE_OK;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct tables t = { .model = model };
    tare_status status = tare_model_check_recursion(model);
    if (status != TARE_OK) return tare_error_dismiss(status);
    status = tare_bindings_new(&t.bindings, model);
    if (status == TARE_OK) status = survey(&t);
    if (status == TARE_OK) status = fix_interface(&t);
    if (status == TARE_OK) status = find_pairs(&t);
    if (status == TARE_OK) status = inline_all(&t, changes);
    tare_bindings_free(t.bindings);
    tare_graph_table_free(&t.callers);
    tare_arena_free(&t.arena);
    return status;
}

const struct tare_pass tare_pass_inline_tables = {
    .name = "inline_tables",
    .help = "functions that hold a table of a look-up in another function are inlined",
    .run = run,
};
