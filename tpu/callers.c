/* Which functions reach a TPU call or a batcher is a fixed point over the call graph; bodies of TPU computations are
 * not visited, because they are compiled separately. */
#include "tpu/callers.h"
#include "graph/graph_table.h"
#include "interpreter/ops/builtin.h"
#include "graph/op.h"

#include <string.h>

static const char MUST_COMPILE[] = "_XlaMustCompile";

/* What a function reaches through its calls. */
enum reach { NOTHING, BATCHER, TPU };

struct adapter {
    struct tare_graph_model *model;
    struct tare_graph_table reaches; /* function -> enum reach; NOTHING is not stored */
    size_t *changes;
};

static enum reach reach_of(const struct adapter *a, const struct tare_graph *graph) {
    return (enum reach)(uintptr_t)tare_graph_table_get(&a->reaches, graph);
}

/* ---- reachability ---- */

struct widest {
    const struct adapter *adapter;
    enum reach reach;
};

static tare_status widen(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct widest *widest = arg;
    enum reach reach = reach_of(widest->adapter, callee);
    (void)node;
    if (reach > widest->reach) widest->reach = reach;
    return TARE_OK;
}

/* The widest reach among the functions that a node calls. */
static tare_status reach_of_callees(enum reach *out, const struct adapter *a, const struct tare_node *node) {
    struct widest widest = { a, NOTHING };
    *out = NOTHING;
    if (node->dead || tare_node_is(node, "TPUPartitionedCall")) return TARE_OK;
    TARE_TRY(tare_node_each_function(node, widen, &widest));
    *out = widest.reach;
    return TARE_OK;
}

static tare_status reach_of_body(enum reach *out, const struct adapter *a, const struct tare_graph *graph) {
    *out = NOTHING;
    for (size_t i = 0; i < graph->n_nodes && *out != TPU; i++) {
        const struct tare_node *node = graph->nodes[i];
        enum reach reach;
        TARE_TRY(reach_of_callees(&reach, a, node));
        if (!node->dead && tare_node_is(node, "BatchFunction") && reach < BATCHER) reach = BATCHER;
        if (!node->dead && tare_node_is(node, "TPUPartitionedCall")) reach = TPU;
        if (reach > *out) *out = reach;
    }
    return TARE_OK;
}

static tare_status find_reach(struct adapter *a) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < a->model->n_functions; i++) {
            const struct tare_graph *graph = a->model->functions[i];
            enum reach reach;
            TARE_TRY(reach_of_body(&reach, a, graph));
            if (reach <= reach_of(a, graph)) continue;
            if (!tare_graph_table_set(&a->reaches, graph, (void *)(uintptr_t)reach)) return TARE_NO_MEMORY;
            changed = true;
        }
    }
    return TARE_OK;
}

/* ---- changing ---- */

/* The stateful form of a call, branch or loop has the same attributes. */
static bool make_call_stateful(struct tare_node *node) {
    static const char *const forms[][2] = {
        { "PartitionedCall", "StatefulPartitionedCall" },
        { "StatelessIf", "If" },
        { "StatelessCase", "Case" },
        { "StatelessWhile", "While" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!tare_node_is(node, forms[i][0])) continue;
        node->op = forms[i][1];
        node->def = tare_ops_find(tare_ops_builtin(), node->op);
        return true;
    }
    return false;
}

static tare_status adapt_calls(struct adapter *a, struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        bool changed = false;
        enum reach reach;
        TARE_TRY(reach_of_callees(&reach, a, node));
        if (reach == NOTHING && (node->dead || !tare_node_is(node, "BatchFunction"))) continue;
        if (tare_node_find_attr(node, MUST_COMPILE)) changed = true;
        tare_node_remove_attr(node, MUST_COMPILE);
        if (reach == TPU) changed |= make_call_stateful(node);
        *a->changes += changed;
    }
    return TARE_OK;
}

static tare_status adapt_function(struct adapter *a, struct tare_graph *graph) {
    const enum reach reach = reach_of(a, graph);
    bool changed = tare_graph_find_attr(graph, MUST_COMPILE) != NULL;
    if (reach == NOTHING) return TARE_OK;
    TARE_TRY(tare_graph_remove_attr(graph, MUST_COMPILE));
    graph->must_not_jit = true;
    changed |= reach == TPU && !graph->is_stateful;
    graph->is_stateful |= reach == TPU;
    *a->changes += changed;
    return TARE_OK;
}

tare_status tare_tpu_adapt_callers(struct tare_graph_model *model, size_t *changes) {
    struct adapter a = { .model = model, .changes = changes };
    tare_status status;
    TARE_CHECK(find_reach(&a));
    TARE_CHECK(adapt_calls(&a, model->main));
    for (size_t i = 0; i < model->n_functions; i++) {
        TARE_CHECK(adapt_calls(&a, model->functions[i]));
        TARE_CHECK(adapt_function(&a, model->functions[i]));
    }
done:
    tare_graph_table_free(&a.reaches);
    return status;
}
