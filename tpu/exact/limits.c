/* Inputs that may be beyond the range of bfloat16: masks of −3.4e38 that are added to computed values. Each edge
 * between the input of the model and that use is limited where it is rounded, in whatever function that is. */
#include "tpu/exact/internal.h"

static bool takes_masks(const struct tare_node *node) {
    static const char *const ops[] = { "AddV2",  "Add", "AddN", "Sub",     "Maximum",    "Minimum", "SelectV2",
                                       "Select", "Max", "Min",  "Softmax", "LogSoftmax", NULL };
    return tare_op_is_one_of(node->op, ops);
}

static tare_status limit(struct tare_exact_values *v, struct tare_edge edge) {
    struct tare_exact_slot *slot;
    const struct tare_value_fact *fact;
    if (!edge.node || !tare_exact_carries_floats(tare_edge_dtype(edge))) return TARE_OK;
    fact = tare_value_fact(v->facts, edge);
    if (!tare_fact_is_input(fact) && !fact->wild) return TARE_OK;
    TARE_TRY(
        tare_exact_add(&slot, v, &v->limited, edge.node, edge.index, (struct tare_exact_why){ "", TARE_EXACT_LOCAL }));
    if (!slot) return TARE_OK;
    slot->next = v->worklist;
    v->worklist = slot;
    return TARE_OK;
}

static tare_status limit_passed(struct tare_exact_values *v, const struct tare_node *arg) {
    const struct tare_exact_caller *caller = tare_exact_view_of(v, arg->graph)->callers;
    for (; caller; caller = caller->next)
        if (arg->position < caller->site.n_args)
            TARE_TRY(limit(v, caller->node->inputs[caller->site.first + arg->position]));
    return TARE_OK;
}

/* What the value is made of. */
static tare_status limit_before(struct tare_exact_values *v, struct tare_edge edge) {
    struct tare_call_site site;
    if (tare_node_is_arg(edge.node)) return limit_passed(v, edge.node);
    TARE_TRY(tare_call_site(&site, v->arena, edge.node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER) {
        for (size_t c = site.kind == TARE_CALL_LOOP; c < site.n_callees; c++)
            if ((size_t)edge.index < site.callees[c]->n_returns)
                TARE_TRY(limit(v, site.callees[c]->returns[edge.index].edge));
        return TARE_OK;
    }
    for (size_t i = 0; tare_passes_values(edge.node) && i < edge.node->n_inputs; i++)
        TARE_TRY(limit(v, edge.node->inputs[i]));
    return TARE_OK;
}

tare_status tare_exact_limits(struct tare_exact_values *v) {
    for (size_t g = 0; g < v->n_views; g++)
        for (size_t i = 0; v->views[g].converted && i < v->views[g].graph->n_nodes; i++) {
            const struct tare_node *node = v->views[g].graph->nodes[i];
            for (size_t k = 0; tare_exact_counts(&v->views[g], i) && takes_masks(node) && k < node->n_inputs; k++)
                TARE_TRY(limit(v, node->inputs[k]));
        }
    while (v->worklist) {
        const struct tare_exact_slot *slot = v->worklist;
        v->worklist = slot->next;
        TARE_TRY(limit_before(v, slot->edge));
    }
    return TARE_OK;
}
