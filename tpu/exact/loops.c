/* States of loops: what rounding adds to a state that is computed from itself adds up over the iterations. States that
 * are only moved, as a cache to which rows are written, are rounded once, and what passes through a product is rounded
 * there in any case. */
#include "tpu/exact/internal.h"

static const char STATE[] = "is a state that a loop adds to";

/* A value on the way back from the next state; `computes`: arithmetic is between the two. */
struct step {
    struct tare_edge edge; /* its bytes are the key */
    bool computes;
    struct step *next;
};

struct search {
    struct tare_exact_values *v;
    const struct tare_graph *body;
    size_t state;
    struct tare_map seen[2]; /* by `computes` */
    struct step *worklist;
    bool found;
};

static bool is_float(struct tare_edge edge) {
    const int dtype = edge.node ? tare_edge_dtype(edge) : TARE_DT_INVALID;
    return tare_exact_carries_floats(dtype) && dtype != TARE_DT_VARIANT;
}

static tare_status visit(struct search *s, struct tare_edge edge, bool computes) {
    struct step *step;
    if (!is_float(edge)) return TARE_OK;
    step = TARE_NEW(s->v->arena, struct step); /* zeroed: padding, too */
    if (!step) return TARE_NO_MEMORY;
    step->edge.node = edge.node;
    step->edge.index = edge.index;
    step->computes = computes;
    if (tare_map_get_n(&s->seen[computes], (const char *)&step->edge, sizeof step->edge)) return TARE_OK;
    step->next = s->worklist;
    s->worklist = step;
    return tare_map_set_n(&s->seen[computes], (const char *)&step->edge, sizeof step->edge, step) ? TARE_OK
                                                                                                  : TARE_NO_MEMORY;
}

static tare_status visit_return(struct search *s, const struct tare_graph *graph, size_t i, bool computes) {
    return i < graph->n_returns ? visit(s, graph->returns[i].edge, computes) : TARE_OK;
}

/* Arguments of the body are its returns one iteration before; others are what callers pass. */
static tare_status before_argument(struct search *s, const struct tare_node *arg, bool computes) {
    const struct tare_exact_caller *caller = tare_exact_view_of(s->v, arg->graph)->callers;
    if (arg->graph == s->body) {
        s->found |= computes && arg->position == s->state;
        return visit_return(s, s->body, arg->position, computes);
    }
    for (; caller; caller = caller->next) {
        if (arg->position < caller->site.n_args)
            TARE_TRY(visit(s, caller->node->inputs[caller->site.first + arg->position], computes));
        if (caller->site.kind == TARE_CALL_LOOP)
            TARE_TRY(visit_return(s, caller->site.callees[1], arg->position, computes));
    }
    return TARE_OK;
}

static bool computes(const struct tare_node *node) {
    static const char *const ops[] = { "AddV2", "Add", "AddN", "Sub", "Mul", "RealDiv", "Div", "BiasAdd", NULL };
    return tare_op_is_one_of(node->op, ops);
}

static tare_status before(struct search *s, const struct step *step) {
    const struct tare_node *node = step->edge.node;
    struct tare_call_site site;
    if (tare_node_is_arg(node)) return before_argument(s, node, step->computes);
    TARE_TRY(tare_call_site(&site, s->v->arena, node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER) {
        for (size_t c = site.kind == TARE_CALL_LOOP; c < site.n_callees; c++)
            TARE_TRY(visit_return(s, site.callees[c], (size_t)step->edge.index, step->computes));
        return TARE_OK;
    }
    for (size_t i = 0; tare_passes_values(node) && i < node->n_inputs; i++)
        TARE_TRY(visit(s, node->inputs[i], step->computes || computes(node)));
    return TARE_OK;
}

/* *out: whether state i of the loop whose body is given is computed from itself, by arithmetic alone. */
static tare_status accumulates(bool *out, struct tare_exact_values *v, const struct tare_graph *body, size_t i) {
    struct search s = { .v = v, .body = body, .state = i };
    tare_status status = visit_return(&s, body, i, false);
    while (status == TARE_OK && s.worklist && !s.found) {
        const struct step *step = s.worklist;
        s.worklist = step->next;
        status = before(&s, step);
    }
    tare_map_free(&s.seen[0]);
    tare_map_free(&s.seen[1]);
    *out = s.found;
    return status;
}

static tare_status keep_states(struct tare_exact_values *v, struct tare_node *loop, const struct tare_call_site *site) {
    const struct tare_graph *body = site->callees[1];
    for (size_t i = 0; i < body->n_args && i < body->n_returns; i++) {
        const struct tare_edge state = { body->args[i], 0 };
        struct tare_exact_why why = { NULL, TARE_EXACT_ARITHMETIC };
        bool adds = false;
        if (!is_float(state) || !tare_value_fact(v->facts, state)->varies) continue;
        TARE_TRY(accumulates(&adds, v, body, i));
        if (!adds) continue;
        why.reason = tare_exact_reason(v, STATE, loop);
        TARE_TRY(tare_exact_push(v, state, why));
        TARE_TRY(tare_exact_mark(v, loop, (int)i, why));
    }
    return TARE_OK;
}

tare_status tare_exact_loop_states(struct tare_exact_values *v) {
    for (size_t g = 0; g < v->n_views; g++)
        for (size_t i = 0; v->views[g].converted && i < v->views[g].graph->n_nodes; i++) {
            struct tare_node *node = v->views[g].graph->nodes[i];
            struct tare_call_site site;
            if (!tare_exact_counts(&v->views[g], i)) continue;
            TARE_TRY(tare_call_site(&site, v->arena, node));
            if (site.kind == TARE_CALL_LOOP) TARE_TRY(keep_states(v, node, &site));
        }
    return TARE_OK;
}
