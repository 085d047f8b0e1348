/* Determines the nodes that a run needs, and their topological order. Independent nodes keep the order of the file,
 * which is mostly the order in which the model was written and keeps lifetimes short. Ops that epilogues compute follow
 * the ops that they belong to. */
#include "base/alloc.h"
#include "interpreter/execution/plan.h"
#include "interpreter/inference/evaluate.h"

#include <string.h>

enum { UNSEEN, OPEN, CLOSED };
enum { PARTLY = 1, WHOLLY };

struct walk_frame {
    struct tare_node *node;
    size_t next; /* of its inputs, then its controls */
};

struct walk {
    const struct tare_plan_request *request;
    const struct tare_graph *graph;
    unsigned char *fed; /* by node position: PARTLY, WHOLLY, or 0 where no output is fed */
    unsigned char *needed, *state;
    struct walk_frame *stack;
};

static bool is_fed(const struct walk *walk, struct tare_edge edge) {
    const struct tare_plan_request *request = walk->request;
    if (walk->fed[edge.node->position] != PARTLY) return walk->fed[edge.node->position] == WHOLLY;
    for (size_t i = 0; i < request->n_feeds; i++)
        if (request->feeds[i].node == edge.node && request->feeds[i].index == edge.index) return true;
    return false;
}

/* A node whose outputs are all fed does not run, not even as a control input: the feeds replace it. */
static void mark_fed(struct walk *walk) {
    const struct tare_plan_request *request = walk->request;
    for (size_t i = 0; i < request->n_feeds; i++) {
        const struct tare_node *node = request->feeds[i].node;
        if (!tare_node_is_arg(node)) walk->fed[node->position] = PARTLY;
    }
    for (size_t i = 0; i < request->n_feeds; i++) {
        const struct tare_node *node = request->feeds[i].node;
        bool all = true;
        if (tare_node_is_arg(node) || walk->fed[node->position] == WHOLLY) continue;
        /* A single output is that of this feed: it need not be searched among all feeds. */
        for (size_t k = 0; node->n_outputs > 1 && k < node->n_outputs && all; k++)
            all = is_fed(walk, (struct tare_edge){ request->feeds[i].node, (int)k });
        if (all) walk->fed[node->position] = WHOLLY;
    }
}

/* The i-th node that must run before `node`; NULL if it needs no step (an argument, a feed). */
static struct tare_node *predecessor(const struct walk *walk, const struct tare_node *node, size_t i) {
    struct tare_node *before;
    if (i < node->n_inputs) {
        before = node->inputs[i].node;
        if (!before || tare_node_is_arg(before) || is_fed(walk, node->inputs[i])) return NULL;
    } else {
        before = node->controls[i - node->n_inputs];
        if (!before || tare_node_is_arg(before) || walk->fed[before->position] == WHOLLY) return NULL;
    }
    return before->dead ? NULL : before;
}

static void need(struct walk *walk, struct tare_node *root) {
    size_t depth = 0;
    if (!root || root->dead || tare_node_is_arg(root) || walk->needed[root->position]) return;
    walk->needed[root->position] = 1;
    walk->stack[depth++].node = root;
    while (depth) {
        const struct tare_node *node = walk->stack[--depth].node;
        for (size_t i = 0; i < node->n_inputs + node->n_controls; i++) {
            struct tare_node *before = predecessor(walk, node, i);
            if (!before || walk->needed[before->position]) continue;
            walk->needed[before->position] = 1;
            walk->stack[depth++].node = before;
        }
    }
}

/* True for nodes of a function body that run even if no result depends on them: those with side effects. */
static bool plan_is_root(const struct tare_node *node) {
    static const char *const silent[] = { "ReadVariableOp", "VarHandleOp",   "VarIsInitializedOp",
                                          "Placeholder",    "VariableShape", "ResourceGather" };
    const struct tare_graph *callee = node->def ? NULL : tare_model_find_function(node->graph->model, node->op);
    if (callee) return callee->is_stateful;
    if (!node->def || !node->def->is_stateful) return false;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(node->op, silent[i]) == 0) return false; /* without effect: no use, no run */
    return true;
}

static void need_roots(struct walk *walk) {
    const struct tare_plan_request *request = walk->request;
    const struct tare_graph *graph = walk->graph;
    if (graph != graph->model->main) {
        for (size_t i = 0; i < graph->n_returns; i++)
            need(walk, graph->returns[i].edge.node);
        for (size_t i = 0; i < graph->n_control_returns; i++)
            need(walk, graph->control_returns[i].node);
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (plan_is_root(graph->nodes[i])) need(walk, graph->nodes[i]);
    }
    for (size_t i = 0; i < request->n_fetches; i++)
        if (!is_fed(walk, request->fetches[i])) need(walk, request->fetches[i].node);
    for (size_t i = 0; i < request->n_targets; i++)
        need(walk, request->targets[i]);
}

static tare_status visit(struct walk *walk, struct tare_node *root, struct tare_node **order, size_t *count) {
    size_t depth = 0;
    walk->stack[depth++] = (struct walk_frame){ root, 0 };
    walk->state[root->position] = OPEN;
    while (depth) {
        struct walk_frame *top = &walk->stack[depth - 1];
        struct tare_node *before;
        if (top->next == top->node->n_inputs + top->node->n_controls) {
            walk->state[top->node->position] = CLOSED;
            order[(*count)++] = top->node;
            depth--;
            continue;
        }
        before = predecessor(walk, top->node, top->next++);
        if (!before || tare_node_is_back_edge(before) || walk->state[before->position] == CLOSED) continue;
        if (walk->state[before->position] == OPEN)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the graph has a cycle through node %s", before->name);
        walk->state[before->position] = OPEN;
        walk->stack[depth++] = (struct walk_frame){ before, 0 };
    }
    return TARE_OK;
}

tare_status tare_plan_order(struct tare_node ***out, size_t *count, struct tare_arena *arena,
                            const struct tare_plan_request *request) {
    const struct tare_graph *graph = request->graph;
    size_t n = graph->n_nodes + 1;
    struct walk walk = {
        .request = request, .graph = graph, .fed = tare_calloc(3, n), .stack = tare_calloc(n, sizeof *walk.stack)
    };
    struct tare_node **order = TARE_NEW_ARRAY(arena, struct tare_node *, n);
    tare_status status = walk.fed && walk.stack && order ? TARE_OK : TARE_NO_MEMORY;
    *count = 0;
    if (status == TARE_OK) {
        walk.needed = walk.fed + n;
        walk.state = walk.needed + n;
        mark_fed(&walk);
        need_roots(&walk);
    }
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++)
        if (walk.needed[i] && walk.state[i] == UNSEEN) status = visit(&walk, graph->nodes[i], order, count);
    tare_free(walk.fed);
    tare_free(walk.stack);
    *out = order;
    return status;
}

/* ---- parameters ---- */

/* True for a value that follows from variables and constants alone. `known`: by position, of the nodes before. */
static bool is_of_variables(const struct tare_node *node, const bool *known) {
    const bool reads = strcmp(node->op, "VarHandleOp") == 0 || strcmp(node->op, "ReadVariableOp") == 0;
    if (node->n_outputs != 1 || node->n_controls || (!reads && !tare_node_is_pure(node)) ||
        tare_dtype_is_ref(node->output_dtypes[0]))
        return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *input = node->inputs[i].node;
        const bool is_variable = input && tare_node_is_arg(input) && input->output_dtypes[0] == TARE_DT_RESOURCE;
        if (!input || (!is_variable && (tare_node_is_arg(input) || !known[input->position]))) return false;
    }
    return true;
}

/* The operand of an epilogue's product or addition that follows from variables, the other does not; NULL: none. */
static const struct tare_node *parameter_of(const struct tare_node *node, const bool *known) {
    static const char *const ops[] = { "BiasAdd", "Mul", "AddV2", "Add" };
    bool is_known[2] = { false }, is_listed = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        is_listed |= strcmp(node->op, ops[i]) == 0;
    for (size_t i = 0; is_listed && i < 2 && node->inputs[i].node; i++)
        is_known[i] = !tare_node_is_arg(node->inputs[i].node) && known[node->inputs[i].node->position];
    return is_known[0] == is_known[1] ? NULL : node->inputs[is_known[0] ? 0 : 1].node;
}

tare_status tare_plan_hoist_parameters(bool *parameter, struct tare_node **order, size_t count, size_t n_nodes,
                                       const bool *constant, struct tare_arena *scratch) {
    bool *known = TARE_NEW_ARRAY(scratch, bool, n_nodes + 1);
    struct tare_node **sorted = TARE_NEW_ARRAY(scratch, struct tare_node *, count + 1);
    size_t at = 0;
    if (!known || !sorted) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (plan_is_root(order[i])) return TARE_OK; /* it may change a variable */
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *operand = parameter_of(order[i], known);
        known[order[i]->position] = is_of_variables(order[i], known);
        if (operand) parameter[operand->position] = !constant[operand->position];
    }
    for (size_t i = count; i-- > 0;)
        for (size_t k = 0; parameter[order[i]->position] && k < order[i]->n_inputs; k++)
            if (!tare_node_is_arg(order[i]->inputs[k].node)) parameter[order[i]->inputs[k].node->position] = true;
    for (int rest = 0; rest < 2; rest++)
        for (size_t i = 0; i < count; i++)
            if (parameter[order[i]->position] != rest) sorted[at++] = order[i];
    memcpy(order, sorted, count * sizeof *order);
    return TARE_OK;
}

/* True for a pure op of an epilogue whose operands, except for the first input, are constants or parameters. */
static bool follows_its_input(const struct tare_node *node, const bool *constant, const bool *parameter) {
    static const char *const ops[] = { "BiasAdd",          "FusedBatchNorm", "FusedBatchNormV2",
                                       "FusedBatchNormV3", "Relu",           "Relu6" };
    bool is_listed = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        is_listed |= strcmp(node->op, ops[i]) == 0;
    if (!is_listed || !tare_node_is_pure(node) || node->n_controls || constant[node->position]) return false;
    for (size_t i = 1; i < node->n_inputs; i++) {
        const struct tare_node *operand = node->inputs[i].node;
        if (!operand || tare_dtype_is_ref(operand->output_dtypes[node->inputs[i].index])) return false;
        if (!tare_node_is_arg(operand) && !constant[operand->position] && !parameter[operand->position]) return false;
    }
    return true;
}

/* A step's group is that of its input if it follows it, otherwise its own. Groups keep the order of their first steps,
 * and steps of a group their order, so that the order remains topological. */
tare_status tare_plan_join_epilogues(struct tare_node **order, size_t count, const bool *constant,
                                     const bool *parameter, size_t n_nodes) {
    size_t *const places = tare_calloc(n_nodes + 1, sizeof *places); /* by node position: its place, plus 1 */
    size_t *const groups = tare_calloc(count + 1, sizeof *groups);   /* by place: the place of its group */
    size_t *const starts = tare_calloc(count + 2, sizeof *starts);
    struct tare_node **sorted = tare_calloc(count + 1, sizeof *sorted);
    const bool has_memory = places && groups && starts && sorted;
    for (size_t i = 0; i < count && has_memory; i++) {
        const struct tare_node *before = order[i]->n_inputs ? order[i]->inputs[0].node : NULL;
        const size_t place = before && !tare_node_is_arg(before) ? places[before->position] : 0;
        groups[i] = place && follows_its_input(order[i], constant, parameter) ? groups[place - 1] : i;
        places[order[i]->position] = i + 1;
        starts[groups[i] + 1]++;
    }
    for (size_t i = 0; i < count && has_memory; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < count && has_memory; i++)
        sorted[starts[groups[i]]++] = order[i];
    if (has_memory) memcpy(order, sorted, count * sizeof *order);
    tare_free(places), tare_free(groups), tare_free(starts), tare_free(sorted);
    return has_memory ? TARE_OK : TARE_NO_MEMORY;
}
