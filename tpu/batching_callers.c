/* What the callers of a batched function pass to it: which of its arguments are the same for every request, and whether
 * the others have as many rows as each other. */
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graphs.h"
#include "graph/op.h"
#include "interpreter/inference/infer.h"
#include "tpu/batching_internal.h"
#include "tpu/compatibility.h"

#include <string.h>

/* ---- what depends on batched arguments ---- */

/* Follows batched arguments into the functions that a body calls. Past the limits everything counts as dependent. */
struct dependence {
    struct tare_arena *arena;
    size_t calls; /* so far */
    int depth;
};
enum { MAX_CALLS = 10000, MAX_CALL_DEPTH = 50 };

static tare_status dependent_returns(bool **out, struct dependence *d, const struct tare_graph *function,
                                     const bool *args);

static bool is_within(const struct dependence *d, const struct tare_call_site *site, const struct tare_node *node) {
    return (site->kind == TARE_CALL_PLAIN || site->kind == TARE_CALL_TPU) && d->calls < MAX_CALLS &&
           d->depth < MAX_CALL_DEPTH && site->callees[0]->n_returns == node->n_outputs;
}

/* outputs[i]: output i of the node depends on a batched argument. The input of a back edge counts as dependent. */
static tare_status dependent_outputs(bool **outputs, struct dependence *d, const struct tare_node *node,
                                     bool *const *nodes, const bool *args) {
    struct tare_call_site site;
    bool *inputs = TARE_NEW_ARRAY(d->arena, bool, node->n_inputs + 1), any = false;
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t k = 0; k < node->n_inputs; k++) {
        const struct tare_edge from = node->inputs[k];
        const bool *known = tare_node_is_arg(from.node) ? &args[from.node->position] : nodes[from.node->position];
        inputs[k] = !known || known[from.index];
        any = any || inputs[k];
    }
    TARE_TRY(tare_call_site(&site, d->arena, node));
    if (any && is_within(d, &site, node)) return dependent_returns(outputs, d, site.callees[0], inputs + site.first);
    *outputs = TARE_NEW_ARRAY(d->arena, bool, node->n_outputs + 1);
    if (!*outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_outputs; i++)
        (*outputs)[i] = any;
    return TARE_OK;
}

static tare_status dependent_nodes(bool ***out, struct dependence *d, const struct tare_graph *function,
                                   const bool *args) {
    struct tare_node **order;
    bool **nodes = *out = TARE_NEW_ARRAY(d->arena, bool *, function->n_nodes + 1);
    if (!nodes) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, d->arena, function));
    for (size_t i = 0; i < function->n_nodes && order[i]; i++)
        if (!order[i]->dead) TARE_TRY(dependent_outputs(&nodes[order[i]->position], d, order[i], nodes, args));
    return TARE_OK;
}

static tare_status dependent_returns(bool **out, struct dependence *d, const struct tare_graph *function,
                                     const bool *args) {
    bool **nodes;
    *out = TARE_NEW_ARRAY(d->arena, bool, function->n_returns + 1);
    if (!*out) return TARE_NO_MEMORY;
    d->calls++;
    d->depth++;
    TARE_TRY(dependent_nodes(&nodes, d, function, args));
    for (size_t i = 0; i < function->n_returns; i++) {
        const struct tare_edge edge = function->returns[i].edge;
        (*out)[i] = tare_node_is_arg(edge.node) ? args[edge.node->position] : nodes[edge.node->position][edge.index];
    }
    d->depth--;
    return TARE_OK;
}

tare_status tare_batch_find_dependent(bool ***out, struct tare_arena *arena, const struct tare_graph *function,
                                      const bool *args) {
    struct dependence d = { .arena = arena };
    return dependent_nodes(out, &d, function, args);
}

/* ---- arguments that are the same for every request ---- */

static void mark_bound(bool *captured, const struct tare_graph *function) {
    const struct tare_graph_model *model = function->model;
    for (size_t i = 0; i < function->n_args; i++)
        captured[i] = tare_dtype_base(function->args[i]->output_dtypes[0]) == TARE_DT_RESOURCE;
    for (size_t c = 0; c < model->n_concretes; c++) {
        size_t bound = model->concretes[c].n_bound;
        if (model->concretes[c].graph != function || bound > function->n_args) continue;
        for (size_t i = function->n_args - bound; i < function->n_args; i++)
            captured[i] = true;
    }
}

/* A caller of the function, or several. */
struct callers {
    struct tare_arena *arena;
    const struct tare_graph *function;
    tare_status (*visit)(struct callers *c, const struct tare_node *call);
    const bool *captured;
    const struct tare_model_shapes *shapes;
    const struct tare_bindings *bindings;
    bool *same; /* by argument: every caller passes a value that no request changes */
    size_t count;
    bool others; /* users of the model, the main graph or a branch call it as well */
};

static bool is_public(const struct tare_graph *function) {
    const struct tare_graph_model *model = function->model;
    for (size_t c = 0; c < model->n_concretes; c++)
        if (model->concretes[c].graph == function) return true;
    for (size_t a = 0; a < model->n_aliases; a++)
        if (strcmp(model->aliases[a].function, function->name) == 0) return true;
    return false;
}

static tare_status visit_callers(struct callers *c) {
    const struct tare_graph_model *model = c->function->model;
    c->others = is_public(c->function);
    for (size_t f = 0; f <= model->n_functions; f++) {
        const struct tare_graph *graph = tare_model_graph(model, f);
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_call_site site;
            bool calls = false;
            if (graph->nodes[i]->dead) continue;
            TARE_TRY(tare_call_site(&site, c->arena, graph->nodes[i]));
            for (size_t k = 0; k < site.n_callees; k++)
                calls |= site.callees[k] == c->function;
            if (!calls) continue;
            if (!f || site.kind != TARE_CALL_PLAIN || graph->nodes[i]->n_inputs != c->function->n_args) {
                c->others = true;
                continue;
            }
            c->count++;
            TARE_TRY(c->visit(c, graph->nodes[i]));
        }
    }
    return TARE_OK;
}

/* Whether a node has the same outputs again for the same inputs; it may read what it gets the handle of. */
static bool is_repeatable(const struct tare_node *node) {
    const unsigned flags = node->def && node->def->row ? node->def->row->flags : TARE_OP_WRITES;
    if (flags & TARE_OP_WRITES) return false;
    if (!node->def->is_stateful) return true;
    return node->n_inputs && tare_dtype_base(tare_edge_dtype(node->inputs[0])) == TARE_DT_RESOURCE;
}

enum { DEEPEST = 64 };

static bool is_same(bool *const *dependent, const bool *args, struct tare_edge edge, int depth) {
    if (depth == DEEPEST) return false;
    if (tare_node_is_arg(edge.node)) return !args[edge.node->position];
    if (dependent[edge.node->position][edge.index] || !is_repeatable(edge.node)) return false;
    for (size_t i = 0; i < edge.node->n_inputs; i++)
        if (!is_same(dependent, args, edge.node->inputs[i], depth + 1)) return false;
    return true;
}

static tare_status mark_same(struct callers *c, const struct tare_node *call) {
    const struct tare_graph *caller = call->graph;
    bool *args = TARE_NEW_ARRAY(c->arena, bool, caller->n_args + 1), **dependent;
    if (!args) return TARE_NO_MEMORY;
    mark_bound(args, caller);
    for (size_t i = 0; i < caller->n_args; i++)
        args[i] = !args[i];
    TARE_TRY(tare_batch_find_dependent(&dependent, c->arena, caller, args));
    for (size_t i = 0; i < call->n_inputs; i++)
        c->same[i] = c->same[i] && is_same(dependent, args, call->inputs[i], 0);
    return TARE_OK;
}

tare_status tare_batch_captured(bool **captured, struct tare_arena *arena, const struct tare_graph *function) {
    struct callers c = { .arena = arena, .function = function, .visit = mark_same };
    *captured = TARE_NEW_ARRAY(arena, bool, function->n_args + 1);
    c.same = TARE_NEW_ARRAY(arena, bool, function->n_args + 1);
    if (!*captured || !c.same) return TARE_NO_MEMORY;
    mark_bound(*captured, function);
    memset(c.same, true, function->n_args * sizeof *c.same);
    TARE_TRY(visit_callers(&c));
    for (size_t i = 0; i < function->n_args; i++)
        (*captured)[i] |= c.count && !c.others && c.same[i];
    return TARE_OK;
}

/* ---- numbers of rows ---- */

enum { ROWS = 13 }; /* of a request: a prime number, so that others differ from it */

/* What the number of rows of a value is: known, or that of a node whose output has as many as values decide. */
struct row_count {
    int64_t known; /* TARE_UNKNOWN_DIM: see node */
    const struct tare_node *node;
    int output;
};

struct counted {
    const struct tare_graph *graph;
    const struct tare_shape *args;
    struct tare_shape *const *shapes;
};

static const struct tare_shape *shape_of(const struct counted *c, struct tare_edge edge) {
    return tare_node_is_arg(edge.node) ? &c->args[edge.node->position] : &c->shapes[edge.node->position][edge.index];
}

static struct row_count rows_of(const struct counted *c, struct tare_edge edge, int depth);

/* Of the operand that has the rows of the node's output. */
static struct row_count rows_of_operand(const struct counted *c, struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    const struct tare_op *row = node->def ? node->def->row : NULL;
    const unsigned flags = row ? row->flags : 0;
    const int rank = shape_of(c, edge)->rank;
    struct row_count found = { TARE_UNKNOWN_DIM, NULL, 0 };
    static const char *const first[] = { "Identity", "MatMul", "BatchMatMulV2", "BiasAdd", "Softmax", NULL };
    static const char *const lookups[] = { "Gather",          "GatherV2",          "ResourceGather",
                                           "LookupTableFind", "LookupTableFindV2", NULL };
    if (node->n_inputs && row && row->infer == tare_infer_same) return rows_of(c, node->inputs[0], depth);
    if (tare_op_is_one_of(node->op, first) && !tare_node_bool(node, "transpose_a", false))
        return rows_of(c, node->inputs[0], depth);
    if (tare_op_is_one_of(node->op, lookups) && node->n_inputs > 1) return rows_of(c, node->inputs[1], depth);
    for (size_t i = 0; flags & TARE_OP_ELEMENTWISE && i < node->n_inputs && !found.node; i++)
        if (rank > 0 && shape_of(c, node->inputs[i])->rank == rank) found = rows_of(c, node->inputs[i], depth);
    return found;
}

static struct row_count rows_of(const struct counted *c, struct tare_edge edge, int depth) {
    const struct tare_shape *shape = shape_of(c, edge);
    struct row_count unknown = { TARE_UNKNOWN_DIM, NULL, 0 };
    if (shape->rank > 0 && shape->dims[0] >= 0) return (struct row_count){ shape->dims[0], NULL, 0 };
    if (shape->rank == 0 || tare_node_is_arg(edge.node) || depth == DEEPEST) return unknown;
    if (!tare_tpu_decides_rows(edge.node)) return rows_of_operand(c, edge, depth + 1);
    /* Each output of DynamicPartition has another number. */
    return (struct row_count){ TARE_UNKNOWN_DIM, edge.node,
                               tare_node_is(edge.node, "DynamicPartition") ? edge.index : 0 };
}

static bool is_definite(struct row_count rows) {
    return rows.node || rows.known != TARE_UNKNOWN_DIM;
}

static const char *describe(struct tare_arena *arena, struct row_count rows) {
    const char *text = rows.node ? tare_arena_printf(arena, "as many rows as node '%s' (%s) in function %s finds",
                                                     rows.node->name, rows.node->op, rows.node->graph->name)
                       : rows.known == ROWS
                           ? "as many rows as the request"
                           : tare_arena_printf(arena, "%lld rows for a request of %d", (long long)rows.known, ROWS);
    return text ? text : "";
}

static tare_status compare_rows(const struct callers *c, size_t a, struct row_count rows_a, size_t b,
                                struct row_count rows_b) {
    if (rows_a.known == rows_b.known && rows_a.node == rows_b.node && rows_a.output == rows_b.output) return TARE_OK;
    return TARE_FAIL(
        TARE_SHAPE,
        "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size: input '%s' has "
        "%s, input '%s' has %s (leave batch_options out, or name a function whose inputs have one row an example in "
        "tpu_functions)",
        c->function->args[a]->name, describe(c->arena, rows_a), c->function->args[b]->name, describe(c->arena, rows_b));
}

static tare_status compare_operands(struct callers *c, const struct counted *counted, const struct tare_node *call) {
    struct row_count first = { TARE_UNKNOWN_DIM, NULL, 0 };
    size_t at = 0;
    for (size_t i = 0; i < call->n_inputs; i++) {
        const struct row_count rows = rows_of(counted, call->inputs[i], 0);
        if (c->captured[i] || !is_definite(rows)) continue;
        if (is_definite(first)) TARE_TRY(compare_rows(c, at, first, i, rows));
        first = rows;
        at = i;
    }
    return TARE_OK;
}

static tare_status check_call(struct callers *c, const struct tare_node *call) {
    const struct tare_graph *caller = call->graph;
    struct counted counted = { .graph = caller };
    struct tare_shape *args = TARE_NEW_ARRAY(c->arena, struct tare_shape, caller->n_args + 1), **shapes;
    bool *bound = TARE_NEW_ARRAY(c->arena, bool, caller->n_args + 1);
    const struct tare_shape **handles;
    if (!args || !bound) return TARE_NO_MEMORY;
    mark_bound(bound, caller);
    for (size_t i = 0; i < caller->n_args; i++) {
        args[i] = tare_model_shape(c->shapes, (struct tare_edge){ caller->args[i], 0 });
        if (!bound[i] && args[i].rank > 0 && args[i].dims[0] == TARE_UNKNOWN_DIM) args[i].dims[0] = ROWS;
    }
    handles = tare_bindings_handles(c->bindings, c->arena, caller);
    if (!handles) return TARE_NO_MEMORY;
    const tare_status status = tare_graph_infer_shapes_of(&shapes, c->arena, caller, args, handles);
    if (status != TARE_OK) return tare_error_dismiss(status);
    counted.args = args;
    counted.shapes = shapes;
    return compare_operands(c, &counted, call);
}

tare_status tare_batch_check_callers(struct tare_arena *arena, const struct tare_graph *function, const bool *captured,
                                     const struct tare_model_shapes *shapes) {
    struct callers c = {
        .arena = arena, .function = function, .visit = check_call, .captured = captured, .shapes = shapes
    };
    struct tare_bindings *bindings;
    tare_status status;
    TARE_TRY(tare_bindings_new(&bindings, function->model));
    c.bindings = bindings;
    status = visit_callers(&c);
    tare_bindings_free(bindings);
    return status;
}
