/* Forward data-flow analysis from the inputs, through calls and loops. Each node and argument has a mark: whether its
 * value depends on the values of the inputs, and whether it depends on their shapes, that is on the number of records
 * in a batch. Marks only grow, so the passes over all graphs reach a fixed point. A callee is visited as soon as a call
 * changes the marks of its arguments, before the rest of the caller: without recursion, one pass and one confirming
 * pass are enough, whatever the number of functions. */
#include "graph/data_dependence.h"
#include "base/alloc.h"
#include "graph/calls.h"
#include "graph/graph_table.h"

#include <string.h>

typedef unsigned char mark_bits;
enum { VALUES = 1, SHAPES = 2 };

/* One graph with the marks of its nodes. */
struct flow {
    struct tare_graph *graph;
    struct tare_node **order;
    mark_bits *nodes, *args; /* by position */
    bool dirty;              /* marks of arguments changed after the last pass over the graph began */
    bool active;             /* a pass over the graph is in progress */
    struct flow *next;
};

struct analysis {
    struct tare_arena arena;
    struct tare_graph_table by_graph; /* -> struct flow */
    struct flow *flows;
    bool changed, dependent;
    int depth; /* of passes in progress */
};

enum { DEEPEST = 200 }; /* calls that are followed at once; the others wait for the next pass: bounds the stack */

static bool sees_shapes_only(const struct tare_node *node) {
    static const char *const ops[] = {
        "Shape",         "ShapeN", "Size", "ZerosLike", "OnesLike", "TensorListLength", "TensorListElementShape",
        "VariableShape", NULL
    };
    return tare_op_is_one_of(node->op, ops);
}

/* The input whose value selects a branch or ends a loop; -1: none. */
static int predicate_of(const struct tare_node *node) {
    static const char *const first[] = { "If", "StatelessIf", "Case", "StatelessCase", "LoopCond", NULL };
    static const char *const second[] = { "Switch", "RefSwitch", "_SwitchN", NULL };
    if (tare_op_is_one_of(node->op, first)) return 0;
    return tare_op_is_one_of(node->op, second) ? 1 : -1;
}

static tare_status flow_of(struct flow **out, struct analysis *s, struct tare_graph *graph) {
    struct flow *flow = tare_graph_table_get(&s->by_graph, graph);
    if (!flow) {
        flow = TARE_NEW(&s->arena, struct flow);
        if (!flow) return TARE_NO_MEMORY;
        flow->graph = graph;
        flow->dirty = true;
        TARE_TRY(tare_graph_order(&flow->order, &s->arena, graph));
        flow->nodes = tare_arena_calloc(&s->arena, graph->n_nodes + graph->n_args + 1, sizeof *flow->nodes);
        if (!flow->nodes || !tare_graph_table_set(&s->by_graph, graph, flow)) return TARE_NO_MEMORY;
        flow->args = flow->nodes + graph->n_nodes;
        flow->next = s->flows;
        s->flows = flow;
    }
    *out = flow;
    return TARE_OK;
}

static mark_bits *mark_of(const struct flow *flow, const struct tare_node *node) {
    const bool is_arg = tare_node_is_arg(node);
    return is_arg ? &flow->args[node->position] : &flow->nodes[node->position];
}

static mark_bits bits_of(const struct flow *flow, struct tare_edge edge) {
    return edge.node ? *mark_of(flow, edge.node) : 0;
}

static void mark(struct analysis *s, mark_bits *place, mark_bits bits) {
    s->changed |= (bits & ~*place) != 0;
    *place |= bits;
}

static void mark_arg(struct analysis *s, struct flow *flow, size_t i, mark_bits bits) {
    flow->dirty |= (bits & ~flow->args[i]) != 0;
    mark(s, &flow->args[i], bits);
}

static mark_bits input_bits(const struct flow *flow, const struct tare_node *node) {
    mark_bits bits = 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        bits |= bits_of(flow, node->inputs[i]);
    return bits;
}

static mark_bits output_bits(const struct flow *flow, const struct tare_node *node) {
    const mark_bits bits = input_bits(flow, node);
    if (strcmp(node->op, "Rank") == 0) return 0;
    return sees_shapes_only(node) && bits ? SHAPES : bits;
}

/* A loop that runs once per record, or as often as a sequence is long, computes the same for each record in any batch;
 * a branch may compute a different result in a batch than for one record. */
static mark_bits deciding_bits(const struct tare_node *node, struct tare_edge predicate) {
    const bool loop =
        strcmp(node->op, "LoopCond") == 0 || (predicate.node && strcmp(predicate.node->op, "LoopCond") == 0);
    return loop ? VALUES : VALUES | SHAPES;
}

static tare_status pass_graph(struct analysis *s, struct flow *flow);

/* Copies marks to the callee's arguments and adds those of its results to *returns. */
static tare_status enter(struct analysis *s, const struct flow *flow, const struct tare_node *node,
                         const struct tare_call_site *site, struct tare_graph *callee, mark_bits *returns) {
    struct flow *inner;
    TARE_TRY(flow_of(&inner, s, callee));
    for (size_t i = 0; i < site->n_args && i < callee->n_args && site->first + i < node->n_inputs; i++)
        mark_arg(s, inner, i, bits_of(flow, node->inputs[site->first + i]));
    if (inner->dirty && !inner->active && s->depth < DEEPEST) TARE_TRY(pass_graph(s, inner));
    for (size_t i = 0; i < callee->n_returns; i++)
        *returns |= bits_of(inner, callee->returns[i].edge);
    return TARE_OK;
}

/* The results of the body are the arguments of condition and body in the next iteration. */
static tare_status go_round(struct analysis *s, const struct tare_call_site *site) {
    struct flow *condition, *body;
    TARE_TRY(flow_of(&condition, s, site->callees[0]));
    TARE_TRY(flow_of(&body, s, site->callees[1]));
    for (size_t i = 0; i < body->graph->n_returns; i++) {
        const mark_bits bits = bits_of(body, body->graph->returns[i].edge);
        if (i < condition->graph->n_args) mark_arg(s, condition, i, bits);
        if (i < body->graph->n_args) mark_arg(s, body, i, bits);
    }
    for (size_t i = 0; i < condition->graph->n_returns; i++)
        s->dependent |= (bits_of(condition, condition->graph->returns[i].edge) & VALUES) != 0;
    return TARE_OK;
}

static tare_status pass_node(struct analysis *s, const struct flow *flow, const struct tare_node *node) {
    const int predicate = predicate_of(node);
    struct tare_call_site site;
    mark_bits out = 0;
    if (node->dead) return TARE_OK;
    TARE_TRY(tare_call_site(&site, &s->arena, node));
    if (predicate >= 0 && (size_t)predicate < node->n_inputs) {
        const struct tare_edge edge = node->inputs[predicate];
        s->dependent |= (bits_of(flow, edge) & deciding_bits(node, edge)) != 0;
    }
    if (site.kind == TARE_CALL_NONE) {
        out = output_bits(flow, node);
    } else if (site.kind == TARE_CALL_OTHER) {
        out = input_bits(flow, node);
        s->dependent |= (out & VALUES) != 0;
    } else {
        for (size_t i = 0; i < site.n_callees; i++)
            TARE_TRY(enter(s, flow, node, &site, site.callees[i], &out));
        if (site.kind == TARE_CALL_LOOP && site.n_callees == 2) TARE_TRY(go_round(s, &site));
    }
    mark(s, &flow->nodes[node->position], out);
    return TARE_OK;
}

static tare_status pass_graph(struct analysis *s, struct flow *flow) {
    tare_status status = TARE_OK;
    flow->dirty = false;
    flow->active = true;
    s->depth++;
    for (size_t i = 0; i < flow->graph->n_nodes && !s->dependent && status == TARE_OK; i++)
        status = pass_node(s, flow, flow->order[i]);
    s->depth--;
    flow->active = false;
    return status;
}

static tare_status pass(struct analysis *s) {
    s->changed = false;
    for (struct flow *flow = s->flows; flow; flow = flow->next)
        TARE_TRY(pass_graph(s, flow));
    return TARE_OK;
}

static tare_status mark_binding(struct analysis *s, const struct tare_binding *binding) {
    struct flow *flow;
    if (!binding->edge.node) return TARE_OK;
    TARE_TRY(flow_of(&flow, s, binding->edge.node->graph));
    mark(s, mark_of(flow, binding->edge.node), VALUES | SHAPES);
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
    tare_graph_table_free(&s.by_graph);
    tare_arena_free(&s.arena);
    return status;
}

bool tare_signature_batches(const struct tare_signature *signature, bool unknown_rank) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        if (input->whole) return false;
        if (input->shape.rank == TARE_UNKNOWN_RANK ? !unknown_rank : input->shape.rank < 1 || input->shape.dims[0] >= 0)
            return false;
    }
    return signature->n_inputs > 0;
}
