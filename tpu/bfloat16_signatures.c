/* The signatures of the functions that the bfloat16 pass converts. Those of entries stay. An inner function takes and
 * returns bfloat16, except where it only hands a value on between its callers and an entry: as bfloat16, the value
 * would be cast before the call, back to float32 for the entry, and to bfloat16 once more in it. */
#include "graph/calls.h"
#include "tpu/bfloat16_internal.h"

#include <string.h>

struct signature {
    struct tare_graph *graph;
    bool is_fixed;        /* an entry */
    bool is_shared;       /* a branch or a loop calls it, whose other functions have the same dtypes */
    bool *args, *returns; /* which stay float32 */
};

struct signatures {
    struct tare_arena *arena;
    struct signature *items;
    size_t count;
    struct tare_graph_table by_graph;
};

static struct signature *signature_of(const struct signatures *all, const struct tare_graph *graph) {
    return tare_graph_table_get(&all->by_graph, graph);
}

static bool is_float(int dtype) {
    return dtype == TARE_DT_FLOAT;
}

/* ---- before anything changes ---- */

static tare_status set_initial(struct signature *signature, struct tare_arena *arena,
                               const struct tare_exact_values *exact) {
    const struct tare_graph *graph = signature->graph;
    signature->args = TARE_NEW_ARRAY(arena, bool, graph->n_args + 1);
    signature->returns = TARE_NEW_ARRAY(arena, bool, graph->n_returns + 1);
    if (!signature->args || !signature->returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_args; i++)
        signature->args[i] = is_float(graph->args[i]->output_dtypes[0]) &&
                             (signature->is_fixed || tare_exact_edge(exact, (struct tare_edge){ graph->args[i], 0 }));
    for (size_t i = 0; i < graph->n_returns; i++)
        signature->returns[i] =
            is_float(graph->returns[i].dtype) && (signature->is_fixed || tare_exact_return(exact, graph, i));
    return tare_graph_index_uses(graph);
}

static tare_status mark_shared(const struct signatures *all, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_call_site site;
        if (graph->nodes[i]->dead) continue;
        TARE_TRY(tare_call_site(&site, all->arena, graph->nodes[i]));
        for (size_t c = 0; site.kind != TARE_CALL_PLAIN && c < site.n_callees; c++) {
            struct signature *callee = signature_of(all, site.callees[c]);
            if (callee) callee->is_shared = true;
        }
    }
    return TARE_OK;
}

/* ---- values that are handed on ---- */

/* The signature of the function that a plain call calls; NULL: it is another node, or another function. */
static tare_status called_by(struct signature **out, const struct signatures *all, const struct tare_node *node) {
    struct tare_call_site site;
    *out = NULL;
    TARE_TRY(tare_call_site(&site, all->arena, node));
    if (site.kind == TARE_CALL_PLAIN && site.n_callees == 1) *out = signature_of(all, site.callees[0]);
    return TARE_OK;
}

/* Whether all that uses the value are calls whose functions take float32. */
static tare_status is_handed_down(bool *out, const struct signatures *all, const struct tare_graph *graph,
                                  struct tare_edge value, int depth) {
    enum { DEEPEST = 64 };
    size_t users = 0;
    *out = false;
    for (const struct tare_use *use = tare_edge_first_use(value); use; use = tare_edge_next_use(use), users++) {
        bool is_float_call = false;
        struct signature *callee;
        TARE_TRY(called_by(&callee, all, use->user));
        if (callee) is_float_call = use->input < callee->graph->n_args && callee->args[use->input];
        if (tare_node_is(use->user, "Identity") && depth < DEEPEST)
            TARE_TRY(is_handed_down(&is_float_call, all, graph, tare_node_output0(use->user), depth + 1));
        if (!is_float_call) return TARE_OK;
    }
    *out = users && users == tare_graph_count_uses(graph, value, NULL); /* the others are returns */
    return TARE_OK;
}

/* Whether the value is the result of a call whose function returns float32. */
static tare_status is_handed_up(bool *out, const struct signatures *all, struct tare_edge value) {
    struct signature *callee = NULL;
    *out = false;
    while (tare_node_is(value.node, "Identity") && value.node->n_inputs)
        value = value.node->inputs[0];
    if (!tare_node_is_arg(value.node)) TARE_TRY(called_by(&callee, all, value.node));
    *out = callee && (size_t)value.index < callee->graph->n_returns && callee->returns[value.index];
    return TARE_OK;
}

static tare_status extend(bool *changed, const struct signatures *all, struct signature *signature) {
    const struct tare_graph *graph = signature->graph;
    if (signature->is_fixed || signature->is_shared) return TARE_OK;
    for (size_t i = 0; i < graph->n_args; i++) {
        if (signature->args[i] || !is_float(graph->args[i]->output_dtypes[0])) continue;
        TARE_TRY(is_handed_down(&signature->args[i], all, graph, (struct tare_edge){ graph->args[i], 0 }, 0));
        *changed |= signature->args[i];
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        if (signature->returns[i] || !is_float(graph->returns[i].dtype)) continue;
        TARE_TRY(is_handed_up(&signature->returns[i], all, graph->returns[i].edge));
        *changed |= signature->returns[i];
    }
    return TARE_OK;
}

static tare_status find(struct signatures *all, const struct tare_exact_values *exact) {
    bool changed = true;
    for (size_t i = 0; i < all->count; i++) {
        TARE_TRY(set_initial(&all->items[i], all->arena, exact));
        if (!tare_graph_table_set(&all->by_graph, all->items[i].graph, &all->items[i])) return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < all->count; i++)
        TARE_TRY(mark_shared(all, all->items[i].graph));
    while (changed) {
        changed = false;
        for (size_t i = 0; i < all->count; i++)
            TARE_TRY(extend(&changed, all, &all->items[i]));
    }
    return TARE_OK;
}

/* ---- changing ---- */

static tare_status change(const struct signature *signature) {
    struct tare_graph *graph = signature->graph;
    for (size_t i = 0; i < graph->n_args; i++) {
        if (!is_float(graph->args[i]->output_dtypes[0]) || signature->args[i]) continue;
        TARE_TRY(tare_node_set_type(graph->args[i], "T", TARE_DT_BFLOAT16));
        TARE_TRY(tare_node_resolve(graph->args[i]));
    }
    for (size_t i = 0; i < graph->n_returns; i++)
        if (is_float(graph->returns[i].dtype) && !signature->returns[i])
            tare_graph_set_return_type(graph, i, TARE_DT_BFLOAT16);
    return TARE_OK;
}

tare_status tare_bf16_change_signatures(struct tare_arena *arena, const struct tare_tpu_member *members, size_t count,
                                        const struct tare_exact_values *exact) {
    struct signatures all = { .arena = arena,
                              .items = TARE_NEW_ARRAY(arena, struct signature, count + 1),
                              .count = count };
    tare_status status;
    if (!all.items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        all.items[i] = (struct signature){ .graph = members[i].graph, .is_fixed = members[i].is_entry };
    status = find(&all, exact);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = change(&all.items[i]);
    tare_graph_table_free(&all.by_graph);
    return status;
}
