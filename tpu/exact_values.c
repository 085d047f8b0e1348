/* Data-flow analysis over the whole model, in two steps.
 *
 * Forward: a value is `computed` if a product, a pooling or another op that is not plain arithmetic contributes to it.
 * Inputs and the results of arithmetic on them are not; they may be identifiers, counts or positions. One flag per
 * node; repeated over all graphs until nothing changes.
 *
 * Backward: from every use that needs exact values (the seeds), along edges, with a worklist. A slot is an edge, or the
 * return of a function, which is an edge whose index is negative: a return may have to stay exact for one of its
 * callers although nothing in the function needs it. Every slot enters the worklist once, so the cost is linear in
 * the number of edges and call sites. */
#include "tpu/exact_values.h"
#include "tpu/range_values.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "graph/op.h"

#include <string.h>

struct slot {
    struct tare_edge edge; /* its bytes are the key */
    const char *reason;
    struct slot *next; /* in the worklist */
};

/* A node that calls a function. */
struct caller {
    struct tare_node *node;
    struct tare_call_site site;
    struct caller *next;
};

/* The analysis of one graph. */
struct view {
    struct tare_graph *graph;
    bool *computed;      /* by position of nodes */
    bool *computed_args; /* by number */
    bool converted;
    bool *served; /* of the main graph; NULL: all nodes count */
    struct caller *callers;
};

struct tare_exact_values {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    const struct tare_exact_options *options;
    struct view *views; /* the main graph first */
    size_t n_views;
    struct tare_graph_table by_graph; /* -> struct view */
    struct tare_map by_edge, by_node, final;
    struct slot *worklist;
    bool has_lists;
};

static unsigned flags_of(const struct tare_node *node) {
    return node->def && node->def->row ? node->def->row->flags : 0;
}

static bool has_flag(const struct tare_node *node, unsigned flags) {
    return (flags_of(node) & flags) != 0;
}

/* Floats that the bfloat16 pass would round. */
static bool is_wide_float(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF;
}

/* Float values, and lists that may contain them. */
static bool carries_floats(int dtype) {
    return is_wide_float(dtype) || dtype == TARE_DT_VARIANT;
}

static bool has_float_output(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (carries_floats(tare_dtype_base(node->output_dtypes[i]))) return true;
    return false;
}

/* Plain arithmetic and moves: an exact result needs exact operands. */
static bool passes_values(const struct tare_node *node) {
    enum { PASSING = TARE_OP_ELEMENTWISE | TARE_OP_MOVE | TARE_OP_CREATE | TARE_OP_ARITHMETIC | TARE_OP_REDUCE };
    if (has_flag(node, PASSING)) return true;
    if (node->def && node->def->row && node->def->row->quant == TARE_QUANT_BIAS) return true;
    return has_flag(node, TARE_OP_CONTROL) || strstr(node->op, "TensorList");
}

/* ---- views ---- */

static struct view *view_of(const struct tare_exact_values *v, const struct tare_graph *graph) {
    return tare_graph_table_get(&v->by_graph, graph);
}

static tare_status add_view(struct tare_exact_values *v, struct tare_graph *graph) {
    struct view *view = &v->views[v->n_views++];
    view->graph = graph;
    view->computed = TARE_NEW_ARRAY(v->arena, bool, graph->n_nodes + 1);
    view->computed_args = TARE_NEW_ARRAY(v->arena, bool, graph->n_args + 1);
    if (!view->computed || !view->computed_args) return TARE_NO_MEMORY;
    if (graph == v->model->main) TARE_TRY(tare_model_served_nodes(&view->served, v->arena, v->model));
    return tare_graph_table_set(&v->by_graph, graph, view) ? TARE_OK : TARE_NO_MEMORY;
}

static bool counts(const struct view *view, size_t i) {
    return !view->graph->nodes[i]->dead && (!view->served || view->served[i]);
}

static tare_status note_call(struct tare_exact_values *v, struct tare_node *node) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    if (site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER) return TARE_OK;
    for (size_t c = 0; c < site.n_callees; c++) {
        struct view *callee = view_of(v, site.callees[c]);
        struct caller *caller = TARE_NEW(v->arena, struct caller);
        if (!caller) return TARE_NO_MEMORY;
        *caller = (struct caller){ node, site, callee->callers };
        callee->callers = caller;
    }
    return TARE_OK;
}

static tare_status build_views(struct tare_exact_values *v) {
    v->views = TARE_NEW_ARRAY(v->arena, struct view, v->model->n_functions + 1);
    if (!v->views) return TARE_NO_MEMORY;
    TARE_TRY(add_view(v, v->model->main));
    for (size_t i = 0; i < v->model->n_functions; i++)
        TARE_TRY(add_view(v, v->model->functions[i]));
    for (size_t i = 0; i < v->options->n_converted; i++) {
        struct view *view = view_of(v, v->options->converted[i]);
        if (view) view->converted = true;
    }
    for (size_t i = 0; i < v->n_views; i++)
        for (size_t k = 0; k < v->views[i].graph->n_nodes; k++)
            if (counts(&v->views[i], k)) TARE_TRY(note_call(v, v->views[i].graph->nodes[k]));
    return TARE_OK;
}

/* ---- forward: computed values ---- */

static bool is_computed(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct view *view = view_of(v, edge.node->graph);
    return tare_node_is_arg(edge.node) ? view->computed_args[edge.node->position] : view->computed[edge.node->position];
}

static bool takes_computed(const struct tare_exact_values *v, const struct tare_node *node, bool *takes_floats) {
    *takes_floats = false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (!carries_floats(tare_edge_dtype(node->inputs[i]))) continue;
        *takes_floats = true;
        if (is_computed(v, node->inputs[i])) return true;
    }
    return false;
}

/* A call's outputs are computed when a return of its functions is; arguments when a caller passes computed values. */
static tare_status compute_call(bool *out, const struct tare_exact_values *v, const struct tare_node *node,
                                const struct tare_call_site *site, bool *changed) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct view *view = view_of(v, callee);
        for (size_t i = 0; i < callee->n_returns; i++) {
            if (!callee->returns[i].edge.node || !is_computed(v, callee->returns[i].edge)) continue;
            *out = true;
            if (site->kind != TARE_CALL_LOOP || i >= callee->n_args || view->computed_args[i]) continue;
            view->computed_args[i] = *changed = true; /* used in the next round */
        }
        for (size_t i = 0; i < site->n_args && i < callee->n_args; i++) {
            if (view->computed_args[i] || !is_computed(v, node->inputs[site->first + i])) continue;
            view->computed_args[i] = *changed = true;
        }
    }
    return TARE_OK;
}

static tare_status compute_node(const struct tare_exact_values *v, struct view *view, size_t i, bool *changed) {
    const struct tare_node *node = view->graph->nodes[i];
    struct tare_call_site site;
    bool takes_floats, computed = false;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER) {
        TARE_TRY(compute_call(&computed, v, node, &site, changed));
    } else if (has_float_output(node)) {
        computed = takes_computed(v, node, &takes_floats);
        computed |= takes_floats && !passes_values(node);
    }
    if (computed && !view->computed[i]) view->computed[i] = *changed = true;
    return TARE_OK;
}

/* Results pass from callees to callers and arguments the other way, so that rounds alternate their direction: few
 * rounds for functions nested in either order. */
static tare_status find_computed(struct tare_exact_values *v) {
    bool changed = true;
    for (size_t round = 0; changed; round++) {
        changed = false;
        for (size_t k = 0; k < v->n_views; k++) {
            struct view *view = &v->views[round % 2 ? k : v->n_views - 1 - k];
            for (size_t i = 0; i < view->graph->n_nodes; i++)
                if (counts(view, i)) TARE_TRY(compute_node(v, view, i, &changed));
        }
    }
    return TARE_OK;
}

/* ---- slots ---- */

/* The key includes its padding. */
static void make_key(struct tare_edge *key, const void *node, int index) {
    memset(key, 0, sizeof *key);
    key->node = (struct tare_node *)(uintptr_t)node;
    key->index = index;
}

static struct slot *find_slot(const struct tare_exact_values *v, const void *node, int index) {
    struct tare_edge key;
    make_key(&key, node, index);
    return tare_map_get_n(&v->by_edge, (const char *)&key, sizeof key);
}

static tare_status push(struct tare_exact_values *v, const void *node, int index, const char *reason) {
    struct slot *slot;
    if (!reason) return TARE_NO_MEMORY;
    if (find_slot(v, node, index)) return TARE_OK;
    slot = TARE_NEW(v->arena, struct slot);
    if (!slot) return TARE_NO_MEMORY;
    make_key(&slot->edge, node, index);
    slot->reason = reason;
    slot->next = v->worklist;
    v->worklist = slot;
    return tare_map_set_n(&v->by_edge, (const char *)&slot->edge, sizeof slot->edge, slot) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status push_edge(struct tare_exact_values *v, struct tare_edge edge, const char *reason) {
    const int dtype = edge.node ? tare_edge_dtype(edge) : TARE_DT_INVALID;
    if (!carries_floats(dtype) || tare_node_is(edge.node, "Const")) return TARE_OK;
    v->has_lists |= dtype == TARE_DT_VARIANT;
    return push(v, edge.node, edge.index, reason);
}

static int return_index(size_t i) {
    return -1 - (int)i;
}

static tare_status push_return(struct tare_exact_values *v, const struct tare_graph *graph, size_t i,
                               const char *reason) {
    return i < graph->n_returns ? push(v, graph, return_index(i), reason) : TARE_OK;
}

static tare_status push_arg(struct tare_exact_values *v, const struct tare_graph *graph, size_t i, const char *reason) {
    return i < graph->n_args ? push_edge(v, (struct tare_edge){ graph->args[i], 0 }, reason) : TARE_OK;
}

/* A slot in a map, which is not in the worklist; *known: the slot already existed. */
static tare_status add_slot(struct tare_exact_values *v, struct tare_map *map, const struct tare_node *node, int index,
                            const char *reason, bool *known) {
    struct tare_edge key;
    struct slot *slot;
    make_key(&key, node, index);
    *known = tare_map_get_n(map, (const char *)&key, sizeof key) != NULL;
    if (*known) return TARE_OK;
    slot = TARE_NEW(v->arena, struct slot);
    if (!slot || !reason) return TARE_NO_MEMORY;
    make_key(&slot->edge, node, index);
    slot->reason = reason;
    return tare_map_set_n(map, (const char *)&slot->edge, sizeof slot->edge, slot) ? TARE_OK : TARE_NO_MEMORY;
}

/* The node keeps its dtype. */
static tare_status keep_node(struct tare_exact_values *v, const struct tare_node *node, const char *reason) {
    bool known;
    return add_slot(v, &v->by_node, node, 0, reason, &known);
}

/* ---- backward ---- */

/* All functions of a loop or branch agree in dtypes, and so do a loop's arguments and returns. */
static tare_status spread_argument(struct tare_exact_values *v, const struct caller *caller, size_t i,
                                   const char *reason) {
    const struct tare_call_site *site = &caller->site;
    if (i < site->n_args) TARE_TRY(push_edge(v, caller->node->inputs[site->first + i], reason));
    for (size_t c = 0; c < site->n_callees; c++)
        TARE_TRY(push_arg(v, site->callees[c], i, reason));
    if (site->kind == TARE_CALL_LOOP) TARE_TRY(push_return(v, site->callees[1], i, reason));
    return TARE_OK;
}

static tare_status spread_return(struct tare_exact_values *v, const struct tare_call_site *site, size_t i,
                                 const char *reason) {
    if (site->kind == TARE_CALL_LOOP) {
        TARE_TRY(push_return(v, site->callees[1], i, reason));
        return push_arg(v, site->callees[1], i, reason);
    }
    for (size_t c = 0; c < site->n_callees; c++)
        TARE_TRY(push_return(v, site->callees[c], i, reason));
    return TARE_OK;
}

static tare_status follow_return(struct tare_exact_values *v, const struct tare_graph *graph, size_t i,
                                 const char *reason) {
    for (const struct caller *caller = view_of(v, graph)->callers; caller; caller = caller->next)
        if (caller->site.kind != TARE_CALL_LOOP || caller->site.callees[1] == graph)
            TARE_TRY(spread_return(v, &caller->site, i, reason));
    return push_edge(v, graph->returns[i].edge, reason);
}

static tare_status follow_edge(struct tare_exact_values *v, struct tare_edge edge, const char *reason) {
    struct tare_call_site site;
    if (tare_node_is_arg(edge.node)) {
        for (const struct caller *caller = view_of(v, edge.node->graph)->callers; caller; caller = caller->next)
            TARE_TRY(spread_argument(v, caller, edge.node->position, reason));
        return TARE_OK;
    }
    TARE_TRY(tare_call_site(&site, v->arena, edge.node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER)
        return spread_return(v, &site, (size_t)edge.index, reason);
    TARE_TRY(keep_node(v, edge.node, reason));
    for (size_t i = 0; passes_values(edge.node) && i < edge.node->n_inputs; i++)
        TARE_TRY(push_edge(v, edge.node->inputs[i], reason));
    return TARE_OK;
}

static tare_status follow_all(struct tare_exact_values *v) {
    while (v->worklist) {
        struct slot *slot = v->worklist;
        v->worklist = slot->next;
        if (slot->edge.index < 0)
            TARE_TRY(follow_return(v, (const struct tare_graph *)(const void *)slot->edge.node,
                                   (size_t)(-1 - slot->edge.index), slot->reason));
        else
            TARE_TRY(follow_edge(v, slot->edge, slot->reason));
    }
    return TARE_OK;
}

/* ---- seeds: uses that need exact values ---- */

static const char *reason_of(struct tare_exact_values *v, const char *what, const struct tare_node *node) {
    return tare_arena_printf(v->arena, "%s (%s '%s' in %s)", what, node->op, node->name,
                             node->graph->name[0] ? node->graph->name : "the main graph");
}

static tare_status seed_inputs(struct tare_exact_values *v, const struct tare_node *node, const char *what) {
    const char *reason = reason_of(v, what, node);
    if (!reason) return TARE_NO_MEMORY;
    TARE_TRY(keep_node(v, node, reason));
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(push_edge(v, node->inputs[i], reason));
    return TARE_OK;
}

static bool is_narrow(int dtype) {
    static const int narrow[] = { TARE_DT_INT8, TARE_DT_UINT8, TARE_DT_INT4, TARE_DT_UINT4, TARE_DT_QINT8 };
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (dtype == narrow[i]) return true;
    return false;
}

/* Quantizing values to 8 bits loses more than bfloat16 does: tpu/bfloat16_exact.c keeps its arithmetic, and that of
 * zero points. Whole numbers of inputs up to 256 are exact in bfloat16. */
static bool becomes_integer(const struct tare_node *node) {
    int to;
    if (!tare_node_is(node, "Cast") || !is_wide_float(tare_edge_dtype(node->inputs[0]))) return false;
    to = tare_dtype_base(node->output_dtypes[0]);
    return tare_dtype_is_integer(to) && !is_narrow(to) && !tare_is_zero_point(node);
}

/* A constant of whole numbers that are not all zero: rounding keeps the sign, so 0 is a safe bound. */
static bool is_whole(const struct tare_tensor *value) {
    enum { MOST = 4096 };
    bool any = false;
    if (!value || value->elements > MOST) return false;
    for (int64_t i = 0; i < value->elements; i++) {
        const double x = tare_tensor_get_f64(value, value->splat ? 0 : i);
        if (!(x > -9.2e18 && x < 9.2e18) || x != (double)(int64_t)x) return false;
        any |= x != 0;
    }
    return any;
}

static bool rounds_to_integers(const struct tare_node *node) {
    return tare_op_is_one_of(node->op, (const char *const[]){ "Floor", "Ceil", "Rint", "Round", NULL });
}

static bool is_integer_edge(struct tare_edge edge) {
    enum { MOST_STEPS = 16 };
    for (int step = 0; step < MOST_STEPS && edge.node; step++) {
        if (tare_node_is(edge.node, "Const")) return is_whole(tare_edge_constant(edge));
        if (rounds_to_integers(edge.node)) return true;
        if (tare_node_is(edge.node, "Cast") && tare_dtype_is_integer(tare_edge_dtype(edge.node->inputs[0])))
            return true;
        if (!edge.node->n_inputs || !has_flag(edge.node, TARE_OP_MOVE)) return false;
        edge = edge.node->inputs[0];
    }
    return false;
}

static bool compares_integers(const struct tare_exact_values *v, const struct tare_node *node) {
    if (node->n_inputs != 2 || !is_wide_float(tare_edge_dtype(node->inputs[0]))) return false;
    for (int i = 0; i < 2; i++)
        if (is_integer_edge(node->inputs[i]) && !is_computed(v, node->inputs[1 - i])) return true;
    return false;
}

/* Quotients and remainders of inputs: hours of a time, buckets or the parity of an identifier. */
static bool divides_integers(const struct tare_exact_values *v, const struct tare_node *node) {
    static const char *const ops[] = { "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod", NULL };
    return tare_op_is_one_of(node->op, ops) && is_wide_float(tare_edge_dtype(node->inputs[0])) &&
           !is_computed(v, node->inputs[0]);
}

static bool returns_bool(const struct tare_node *node) {
    return node->n_outputs == 1 && tare_dtype_base(node->output_dtypes[0]) == TARE_DT_BOOL;
}

/* Outside of the conversion: values are compared, looked up, printed or made integers, and no float comes out. */
static bool uses_digits(const struct tare_node *node) {
    if (!node->def || !node->n_outputs || has_float_output(node)) return false;
    if (has_flag(node, TARE_OP_SHAPE_ONLY | TARE_OP_CONTROL)) return false;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (tare_dtype_base(node->output_dtypes[i]) == TARE_DT_RESOURCE) return false;
    return true;
}

static tare_status seed_node(struct tare_exact_values *v, const struct view *view, const struct tare_node *node) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    if (site.kind != TARE_CALL_NONE) return TARE_OK;
    if (becomes_integer(node)) return seed_inputs(v, node, "becomes an integer");
    if (has_flag(node, TARE_OP_RANK) && !v->options->rounds_outputs) return seed_inputs(v, node, "is ordered by value");
    if (has_flag(node, TARE_OP_DISCRETE) && !returns_bool(node)) return seed_inputs(v, node, "decides a step");
    if (has_flag(node, TARE_OP_DISCRETE) && compares_integers(v, node))
        return seed_inputs(v, node, "is compared with integers");
    if (divides_integers(v, node)) return seed_inputs(v, node, "is divided to a quotient or remainder");
    if (!view->converted && uses_digits(node)) return seed_inputs(v, node, "is used on the CPU");
    return TARE_OK;
}

/* ---- seeds: final results ---- */

static const char FINAL[] = "is a final probability";

/* exp(x) / sum(exp(x)), as softmax over an axis that is not the last is written. */
static bool is_written_softmax(const struct tare_node *node) {
    const struct tare_node *sum;
    if (!tare_node_is(node, "RealDiv") || !tare_node_is(node->inputs[0].node, "Exp")) return false;
    sum = node->inputs[1].node;
    return tare_node_is(sum, "Sum") && sum->inputs[0].node == node->inputs[0].node;
}

static tare_status seed_final(const char **reason, struct tare_exact_values *v, struct tare_edge edge, int depth);

/* Through the returns of a call's functions, or the inputs of a move. */
static tare_status seed_before(const char **reason, struct tare_exact_values *v, struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, v->arena, node));
    for (size_t c = 0; c < site.n_callees && site.kind != TARE_CALL_OTHER; c++)
        if ((size_t)edge.index < site.callees[c]->n_returns)
            TARE_TRY(seed_final(reason, v, site.callees[c]->returns[edge.index].edge, depth + 1));
    if (site.kind != TARE_CALL_NONE || !carries_floats(tare_edge_dtype(edge))) return TARE_OK;
    if (has_flag(node, TARE_OP_PROBABILITY) || is_written_softmax(node)) {
        *reason = reason_of(v, FINAL, node);
        return seed_inputs(v, node, FINAL);
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        if (has_flag(node, TARE_OP_MOVE) || tare_node_is(node, "Cast"))
            TARE_TRY(seed_final(reason, v, node->inputs[i], depth + 1));
    return TARE_OK;
}

/* Sets *reason when the value is a probability that is only moved afterwards; every edge on the way stays exact. */
static tare_status seed_final(const char **reason, struct tare_exact_values *v, struct tare_edge edge, int depth) {
    enum { DEEPEST = 256 };
    const char *found = NULL;
    bool known;
    if (!edge.node || tare_node_is_arg(edge.node) || depth > DEEPEST) return TARE_OK;
    TARE_TRY(add_slot(v, &v->final, edge.node, edge.index, "", &known));
    if (!known) {
        TARE_TRY(seed_before(&found, v, edge, depth));
        if (found) TARE_TRY(push_edge(v, edge, found));
    }
    if (!found) found = tare_exact_edge(v, edge); /* of an earlier visit */
    if (found) *reason = found;
    return TARE_OK;
}

static tare_status seed_returns(struct tare_exact_values *v, const struct tare_graph *graph) {
    const char *reason;
    for (size_t i = 0; i < graph->n_returns; i++)
        TARE_TRY(seed_final(&reason, v, graph->returns[i].edge, 0));
    return TARE_OK;
}

static tare_status seed_results(struct tare_exact_values *v) {
    const struct tare_graph_model *model = v->model;
    const char *reason;
    if (v->options->rounds_outputs) return TARE_OK;
    for (size_t s = 0; s < model->n_signatures; s++)
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++)
            TARE_TRY(seed_final(&reason, v, model->signatures[s].outputs[i].edge, 0));
    for (size_t i = 0; i < v->options->n_placed; i++)
        if (v->options->placed[i] != model->main) TARE_TRY(seed_returns(v, v->options->placed[i]));
    for (size_t i = 0; i < model->n_aliases; i++) {
        const struct tare_graph *graph = tare_model_find_function(model, model->aliases[i].function);
        if (graph) TARE_TRY(seed_returns(v, graph));
    }
    return TARE_OK;
}

/* ---- all of it ---- */

static tare_status analyse(struct tare_exact_values *v) {
    TARE_TRY(build_views(v));
    TARE_TRY(find_computed(v));
    for (size_t g = 0; g < v->n_views; g++)
        TARE_TRY(tare_graph_index_uses(v->views[g].graph)); /* tare_is_zero_point */
    for (size_t g = 0; g < v->n_views; g++)
        for (size_t i = 0; i < v->views[g].graph->n_nodes; i++)
            if (counts(&v->views[g], i)) TARE_TRY(seed_node(v, &v->views[g], v->views[g].graph->nodes[i]));
    TARE_TRY(seed_results(v));
    return follow_all(v);
}

tare_status tare_exact_values_find(struct tare_exact_values **out, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_exact_options *options) {
    struct tare_exact_values *v = TARE_NEW(arena, struct tare_exact_values);
    tare_status status;
    if (!v) return TARE_NO_MEMORY;
    v->arena = arena;
    v->model = model;
    v->options = options;
    status = analyse(v);
    tare_graph_table_free(&v->by_graph);
    tare_map_free(&v->final);
    if (status != TARE_OK) tare_exact_values_free(v);
    if (status == TARE_OK) *out = v;
    return status;
}

void tare_exact_values_free(struct tare_exact_values *v) {
    if (!v) return;
    tare_map_free(&v->by_edge);
    tare_map_free(&v->by_node);
}

const char *tare_exact_edge(const struct tare_exact_values *values, struct tare_edge edge) {
    const struct slot *slot = find_slot(values, edge.node, edge.index);
    return slot ? slot->reason : NULL;
}

const char *tare_exact_return(const struct tare_exact_values *values, const struct tare_graph *graph, size_t i) {
    const struct slot *slot = find_slot(values, graph, return_index(i));
    return slot ? slot->reason : NULL;
}

const char *tare_exact_node(const struct tare_exact_values *values, const struct tare_node *node) {
    const struct slot *slot;
    struct tare_edge key;
    make_key(&key, node, 0);
    slot = tare_map_get_n(&values->by_node, (const char *)&key, sizeof key);
    return slot ? slot->reason : NULL;
}

bool tare_exact_has_lists(const struct tare_exact_values *values) {
    return values->has_lists;
}
