/* Arguments and results of functions that float32 arithmetic computes and float32 arithmetic reads: a TPU compiles a
 * call with what calls it, so that rounding between them costs accuracy and saves nothing. */
#include "tpu/exact/internal.h"

/* Whether the edge is read, and only by ops that stay float32 or as an argument that does. */
static tare_status is_read_exactly(bool *out, struct tare_exact_values *v, struct tare_edge edge) {
    bool any = false;
    *out = false;
    for (const struct tare_use *use = tare_node_first_use(edge.node); use; use = tare_node_next_use(use)) {
        struct tare_call_site site;
        if (use->user->dead || use->user->inputs[use->input].index != edge.index) continue;
        any = true;
        if (tare_exact_find(&v->by_node, use->user, 0)) continue;
        TARE_TRY(tare_call_site(&site, v->arena, use->user));
        if (site.kind != TARE_CALL_PLAIN || (size_t)use->input >= site.callees[0]->n_args ||
            !tare_exact_find(&v->by_edge, site.callees[0]->args[use->input], 0))
            return TARE_OK;
    }
    *out = any;
    return TARE_OK;
}

/* Called by converted graphs alone, as one function. */
static bool is_plain(const struct tare_exact_values *v, const struct tare_exact_view *view) {
    const struct tare_exact_caller *caller = view->callers;
    while (caller && caller->site.kind == TARE_CALL_PLAIN && tare_exact_view_of(v, caller->node->graph)->converted)
        caller = caller->next;
    return view->callers && !caller;
}

static tare_status keep_argument(bool *kept, struct tare_exact_values *v, const struct tare_exact_view *view,
                                 struct tare_node *arg) {
    const struct tare_exact_slot *found = NULL;
    bool exactly;
    if (!tare_exact_carries_floats(arg->output_dtypes[0]) || tare_exact_find(&v->by_edge, arg, 0)) return TARE_OK;
    for (const struct tare_exact_caller *caller = view->callers; caller && !found; caller = caller->next)
        if (arg->position < caller->site.n_args) found = tare_exact_operand(v, caller->node->inputs[arg->position]);
    TARE_TRY(is_read_exactly(&exactly, v, (struct tare_edge){ arg, 0 }));
    if (!found || !exactly) return TARE_OK;
    *kept = true;
    return tare_exact_mark(v, arg, 0, (struct tare_exact_why){ found->why.reason, TARE_EXACT_LOCAL });
}

static tare_status keep_result(bool *kept, struct tare_exact_values *v, const struct tare_exact_view *view, size_t i) {
    const struct tare_edge edge = view->graph->returns[i].edge;
    const struct tare_exact_slot *found = edge.node ? tare_exact_operand(v, edge) : NULL;
    if (!found || !tare_exact_carries_floats(view->graph->returns[i].dtype) || tare_exact_return(v, view->graph, i))
        return TARE_OK;
    for (const struct tare_exact_caller *caller = view->callers; caller; caller = caller->next) {
        bool exactly;
        TARE_TRY(is_read_exactly(&exactly, v, (struct tare_edge){ caller->node, (int)i }));
        if (!exactly) return TARE_OK;
    }
    *kept = true;
    for (const struct tare_exact_caller *caller = view->callers; caller; caller = caller->next)
        TARE_TRY(tare_exact_mark(v, caller->node, (int)i, found->why));
    return tare_exact_mark(v, view->graph, tare_exact_return_index(i), found->why);
}

tare_status tare_exact_boundaries(struct tare_exact_values *v) {
    enum { MOST_ROUNDS = 8 };
    bool kept = true;
    for (int round = 0; kept && round < MOST_ROUNDS; round++) {
        kept = false;
        for (size_t g = 0; g < v->n_views; g++) {
            const struct tare_exact_view *view = &v->views[g];
            if (!view->converted || !is_plain(v, view)) continue;
            for (size_t i = 0; i < view->graph->n_args; i++)
                TARE_TRY(keep_argument(&kept, v, view, view->graph->args[i]));
            for (size_t i = 0; i < view->graph->n_returns; i++)
                TARE_TRY(keep_result(&kept, v, view, i));
        }
    }
    return TARE_OK;
}
