/* Finds data-dependent control flow by forward propagation: a node depends on the values of the inputs when one of its
 * own inputs does, unless it reads only shapes. Marks are only ever added, so iterating over all graphs until nothing
 * changes terminates. */
#include "graph/data_dependence.h"
#include "base/alloc.h"
#include "graph/calls.h"

#include <string.h>

/* One graph, and which of its nodes carry values of the inputs. */
struct flow {
    struct tare_graph *graph;
    struct tare_node **order;
    bool *nodes, *args; /* by position */
    struct flow *next;
};

struct analysis {
    struct tare_arena arena;
    struct tare_map by_graph; /* function name -> flow */
    struct flow *flows;
    bool changed, dependent;
};

static bool is_one_of(const struct tare_node *node, const char *const *ops, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(node->op, ops[i]) == 0) return true;
    return false;
}

static bool sees_shapes_only(const struct tare_node *node) {
    static const char *const ops[] = {
        "Shape",        "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "TensorListLength", "TensorListElementShape",
        "VariableShape"
    };
    return is_one_of(node, ops, sizeof ops / sizeof *ops);
}

/* Index of the input that selects the branch; -1: none. */
static int predicate_of(const struct tare_node *node) {
    static const char *const first[] = { "If", "StatelessIf", "Case", "StatelessCase", "LoopCond" };
    static const char *const second[] = { "Switch", "RefSwitch", "_SwitchN" };
    if (is_one_of(node, first, sizeof first / sizeof *first)) return 0;
    return is_one_of(node, second, sizeof second / sizeof *second) ? 1 : -1;
}

static tare_status flow_of(struct flow **out, struct analysis *s, struct tare_graph *graph) {
    struct flow *flow = tare_map_get(&s->by_graph, graph->name);
    if (!flow) {
        flow = TARE_NEW(&s->arena, struct flow);
        if (!flow) return TARE_NO_MEMORY;
        flow->graph = graph;
        TARE_TRY(tare_graph_order(&flow->order, &s->arena, graph));
        flow->nodes = tare_arena_calloc(&s->arena, graph->n_nodes + graph->n_args + 1, sizeof *flow->nodes);
        if (!flow->nodes || !tare_map_set(&s->by_graph, graph->name, flow)) return TARE_NO_MEMORY;
        flow->args = flow->nodes + graph->n_nodes;
        flow->next = s->flows;
        s->flows = flow;
    }
    *out = flow;
    return TARE_OK;
}

static bool *mark_of(const struct flow *flow, const struct tare_node *node) {
    const bool is_arg = node->position < flow->graph->n_args && flow->graph->args[node->position] == node;
    return is_arg ? &flow->args[node->position] : &flow->nodes[node->position];
}

static bool carries(const struct flow *flow, struct tare_edge edge) {
    return edge.node && *mark_of(flow, edge.node);
}

static void mark(struct analysis *s, bool *place) {
    s->changed |= !*place;
    *place = true;
}

static bool any_input(const struct flow *flow, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (carries(flow, node->inputs[i])) return true;
    return false;
}

/* Propagates marks to the callee's arguments; *returns: one of its results depends on input values. */
static tare_status enter(struct analysis *s, const struct flow *flow, const struct tare_node *node,
                         const struct tare_call_site *site, struct tare_graph *callee, bool *returns) {
    struct flow *inner;
    TARE_TRY(flow_of(&inner, s, callee));
    for (size_t i = 0; i < site->n_args && i < callee->n_args && site->first + i < node->n_inputs; i++)
        if (carries(flow, node->inputs[site->first + i])) mark(s, &inner->args[i]);
    for (size_t i = 0; i < callee->n_returns; i++)
        *returns |= carries(inner, callee->returns[i].edge);
    return TARE_OK;
}

/* The results of the body are the arguments of condition and body in the next iteration. */
static tare_status go_round(struct analysis *s, const struct tare_call_site *site) {
    struct flow *condition, *body;
    TARE_TRY(flow_of(&condition, s, site->callees[0]));
    TARE_TRY(flow_of(&body, s, site->callees[1]));
    for (size_t i = 0; i < body->graph->n_returns; i++) {
        if (!carries(body, body->graph->returns[i].edge)) continue;
        if (i < condition->graph->n_args) mark(s, &condition->args[i]);
        if (i < body->graph->n_args) mark(s, &body->args[i]);
    }
    for (size_t i = 0; i < condition->graph->n_returns; i++)
        s->dependent |= carries(condition, condition->graph->returns[i].edge);
    return TARE_OK;
}

static tare_status pass_node(struct analysis *s, const struct flow *flow, const struct tare_node *node) {
    const int predicate = predicate_of(node);
    struct tare_call_site site;
    bool out = false;
    if (node->dead) return TARE_OK;
    TARE_TRY(tare_call_site(&site, &s->arena, node));
    if (predicate >= 0 && (size_t)predicate < node->n_inputs) s->dependent |= carries(flow, node->inputs[predicate]);
    if (site.kind == TARE_CALL_NONE) {
        out = !sees_shapes_only(node) && any_input(flow, node);
    } else if (site.kind == TARE_CALL_OTHER) {
        s->dependent |= out = any_input(flow, node);
    } else {
        for (size_t i = 0; i < site.n_callees; i++)
            TARE_TRY(enter(s, flow, node, &site, site.callees[i], &out));
        if (site.kind == TARE_CALL_LOOP && site.n_callees == 2) TARE_TRY(go_round(s, &site));
    }
    if (out) mark(s, &flow->nodes[node->position]);
    return TARE_OK;
}

static tare_status pass(struct analysis *s) {
    s->changed = false;
    for (const struct flow *flow = s->flows; flow; flow = flow->next)
        for (size_t i = 0; i < flow->graph->n_nodes && !s->dependent; i++)
            TARE_TRY(pass_node(s, flow, flow->order[i]));
    return TARE_OK;
}

static tare_status mark_binding(struct analysis *s, const struct tare_binding *binding) {
    const struct tare_edge edges[] = { binding->edge, binding->indices, binding->dense_shape };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        struct flow *flow;
        if (!edges[i].node) continue;
        TARE_TRY(flow_of(&flow, s, edges[i].node->graph));
        mark(s, mark_of(flow, edges[i].node));
    }
    return TARE_OK;
}

tare_status tare_signature_is_data_dependent(bool *dependent, const struct tare_signature *signature) {
    struct analysis s = { .changed = true };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < signature->n_inputs && status == TARE_OK; i++)
        status = mark_binding(&s, &signature->inputs[i]);
    while (s.changed && !s.dependent && status == TARE_OK)
        status = pass(&s);
    *dependent = s.dependent;
    tare_map_free(&s.by_graph);
    tare_arena_free(&s.arena);
    return status;
}

bool tare_signature_batches(const struct tare_signature *signature, bool unknown_rank) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        if (input->kind != TARE_BINDING_DENSE) return false;
        if (input->shape.rank == TARE_UNKNOWN_RANK ? !unknown_rank : input->shape.rank < 1 || input->shape.dims[0] >= 0)
            return false;
    }
    return signature->n_inputs > 0;
}
