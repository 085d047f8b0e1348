/* Rewrites the nodes of one graph to bfloat16, and inserts casts where neighbours differ. */
#include "graph/calls.h"
#include "graph/definitions/opdef.h"
#include "tpu/bfloat16_internal.h"

#include <string.h>

/* ---- dtypes of one node ---- */

static tare_status input_dtypes(int **out, struct tare_bf16_job *job, const struct tare_node *node) {
    const struct tare_graph *callee;
    size_t count;
    if (node->def) {
        TARE_TRY(tare_opdef_input_dtypes(job->arena, node, out, &count));
        return count == node->n_inputs
                   ? TARE_OK
                   : TARE_FAIL(TARE_INVALID_ARGUMENT, "node '%s' (%s) has %zu inputs (expected %zu)", node->name,
                               node->op, node->n_inputs, count);
    }
    callee = tare_model_find_function(node->graph->model, node->op);
    *out = TARE_NEW_ARRAY(job->arena, int, node->n_inputs + 1);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++)
        (*out)[i] = callee && i < callee->n_args ? callee->args[i]->output_dtypes[0] : tare_edge_dtype(node->inputs[i]);
    return TARE_OK;
}

/* Scale, offset, mean and variance stay float32: the usual precision of statistics. */
static bool is_statistics(const struct tare_node *node, const char *attr) {
    return strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) == 0 && strcmp(attr, "U") == 0;
}

static tare_status convert_list(struct tare_bf16_job *job, struct tare_node *node, const char *name) {
    const struct tare_attr *list = tare_node_list(node, name);
    int *dtypes = TARE_NEW_ARRAY(job->arena, int, (list ? list->count : 0) + 1);
    if (!dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; list && i < list->count; i++)
        dtypes[i] = list->items[i].type == TARE_DT_FLOAT ? TARE_DT_BFLOAT16 : list->items[i].type;
    return list ? tare_node_set_type_list(node, name, dtypes, list->count) : TARE_OK;
}

/* The source dtype of a Cast is that of its input: cast_neighbours sets it. */
static tare_status convert_node(struct tare_bf16_job *job, struct tare_node *node) {
    bool cast = tare_node_is(node, "Cast");
    for (size_t a = 0; a < node->def->n_attrs; a++) {
        const struct tare_op_attr *attr = &node->def->attrs[a];
        if (attr->kind != TARE_ATTR_TYPE || is_statistics(node, attr->name)) continue;
        if (cast && strcmp(attr->name, "SrcT") == 0) continue;
        if (attr->is_list)
            TARE_TRY(convert_list(job, node, attr->name));
        else if (tare_node_type(node, attr->name, 0) == TARE_DT_FLOAT)
            TARE_TRY(tare_node_set_type(node, attr->name, TARE_DT_BFLOAT16));
    }
    job->changes++;
    TARE_TRY(tare_node_resolve(node));
    return input_dtypes(&job->wanted_dtypes[node->position], job, node);
}

/* ---- calls ---- */

/* A loop has one list for arguments and returns. */
static tare_status set_loop_types(struct tare_bf16_job *job, struct tare_node *node, const struct tare_graph *body) {
    int *dtypes = TARE_NEW_ARRAY(job->arena, int, body->n_args + 1);
    if (!dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < body->n_args; i++)
        dtypes[i] = body->args[i]->output_dtypes[0];
    return tare_node_set_type_list(node, "T", dtypes, body->n_args);
}

static tare_status first_function(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    (void)node;
    if (!*(struct tare_graph **)arg) *(struct tare_graph **)arg = callee;
    return TARE_OK;
}

/* The call's types are those of its function, which have already been set. */
static tare_status convert_call(struct tare_bf16_job *job, struct tare_node *node) {
    struct tare_graph *callee = NULL;
    TARE_TRY(tare_node_each_function(node, first_function, &callee));
    if (!callee) return input_dtypes(&job->wanted_dtypes[node->position], job, node);
    if (node->def) {
        if (tare_node_is(node, "While") || tare_node_is(node, "StatelessWhile"))
            TARE_TRY(set_loop_types(job, node, callee));
        else
            TARE_TRY(tare_call_set_types(node, callee));
    }
    TARE_TRY(tare_node_resolve(node));
    return input_dtypes(&job->wanted_dtypes[node->position], job, node);
}

/* ---- flexible nodes ----
 *
 * A flexible node becomes bfloat16 when an input is bfloat16, or when it has users of which none expects float32. Nodes
 * that move values between float32 neighbours stay float32: a round trip would cost precision without a benefit. Both
 * conditions only ever become true, so that each node is converted at most once, in any order: the nodes that may be
 * converted are on a stack, and converting one updates the counts of its neighbours. */

struct flexible {
    size_t to_float; /* uses that expect float32 */
    bool used, from_bfloat16, stacked;
};

struct flexible_nodes {
    struct flexible *state; /* by node position */
    struct tare_node **stack;
    size_t depth;
};

static bool is_flexible(const struct tare_bf16_job *job, const struct tare_node *node) {
    return node && node->graph == job->graph && !node->dead && !tare_node_is_arg(node) &&
           job->choices[node->position] == TARE_BF16_FLEXIBLE;
}

static bool expects_float(const struct tare_bf16_job *job, const struct tare_node *user, size_t input) {
    return job->choices[user->position] != TARE_BF16_CONST &&
           job->wanted_dtypes[user->position][input] == TARE_DT_FLOAT;
}

/* Casts accept any dtype. */
static void count_uses(struct flexible *state, const struct tare_bf16_job *job, const struct tare_node *node) {
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        if (use->user->dead || tare_node_is(use->user, "Cast")) continue;
        state->used = true;
        state->to_float += expects_float(job, use->user, use->input);
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        state->from_bfloat16 |= tare_edge_dtype(node->inputs[i]) == TARE_DT_BFLOAT16;
}

static void stack_if_ready(struct flexible_nodes *nodes, struct tare_node *node) {
    struct flexible *state = &nodes->state[node->position];
    if (state->stacked || (!state->from_bfloat16 && (state->to_float || !state->used))) return;
    state->stacked = true;
    nodes->stack[nodes->depth++] = node;
}

/* The nodes whose value `node` no longer expects as float32, and those that now have a bfloat16 input. */
static void update_neighbours(struct flexible_nodes *nodes, const struct tare_bf16_job *job,
                              const struct tare_node *node, const int *before) {
    for (size_t k = 0; k < node->n_inputs && !tare_node_is(node, "Cast"); k++) {
        struct tare_node *producer = node->inputs[k].node;
        if (before[k] != TARE_DT_FLOAT || expects_float(job, node, k) || !is_flexible(job, producer)) continue;
        nodes->state[producer->position].to_float--;
        stack_if_ready(nodes, producer);
    }
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        struct tare_node *user = use->user;
        if (!is_flexible(job, user) || tare_edge_dtype(user->inputs[use->input]) != TARE_DT_BFLOAT16) continue;
        nodes->state[user->position].from_bfloat16 = true;
        stack_if_ready(nodes, user);
    }
}

static void find_ready(struct flexible_nodes *nodes, const struct tare_bf16_job *job) {
    const struct tare_graph *graph = job->graph;
    for (size_t i = 0; i < graph->n_returns; i++) {
        const struct tare_node *node = graph->returns[i].edge.node;
        if (is_flexible(job, node)) nodes->state[node->position].to_float += graph->returns[i].dtype == TARE_DT_FLOAT;
    }
    for (size_t i = 0; i < job->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (!is_flexible(job, node)) continue;
        count_uses(&nodes->state[i], job, node);
        stack_if_ready(nodes, node);
    }
}

static tare_status settle_flexible(struct tare_bf16_job *job) {
    struct flexible_nodes nodes = { .state = TARE_NEW_ARRAY(job->arena, struct flexible, job->n_nodes + 1),
                                    .stack = TARE_NEW_ARRAY(job->arena, struct tare_node *, job->n_nodes + 1) };
    if (!nodes.state || !nodes.stack) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_index_uses(job->graph));
    find_ready(&nodes, job);
    while (nodes.depth) {
        struct tare_node *node = nodes.stack[--nodes.depth];
        const int *before = job->wanted_dtypes[node->position];
        job->choices[node->position] = TARE_BF16_CONVERT;
        TARE_TRY(convert_node(job, node));
        update_neighbours(&nodes, job, node, before);
    }
    return TARE_OK;
}

/* ---- constants ---- */

/* Adds a bfloat16 copy of the constant; the constant itself is removed when it is unused. */
static tare_status round_const(struct tare_edge *out, struct tare_bf16_job *job, struct tare_node *node) {
    const struct tare_tensor *value = tare_node_tensor(node, "value");
    const char *name = tare_arena_printf(&job->graph->model->arena, "%s/bfloat16", node->name);
    struct tare_tensor rounded;
    struct tare_node *copy;
    if (!name) return TARE_NO_MEMORY;
    if (!value || value->dtype != TARE_DT_FLOAT)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "constant '%s' has no float32 value", node->name);
    TARE_TRY(tare_bf16_round(&rounded, value));
    copy = tare_graph_add_const(job->graph, name, &rounded);
    tare_tensor_reset(&rounded);
    if (!copy) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_controls; i++)
        TARE_TRY(tare_node_add_control(copy, node->controls[i]));
    job->changes++;
    *out = tare_node_output0(copy);
    return TARE_OK;
}

/* ---- casts ---- */

/* One Cast per edge and dtype, for any number of users. */
/* The casts of one graph, by the name of the node whose output is cast. */
struct cast {
    struct tare_edge from, to;
    int dtype;
    struct cast *next; /* of the same node */
};

static struct tare_edge *find_cast(const struct tare_map *casts, struct tare_edge from, int dtype) {
    for (struct cast *cast = tare_map_get(casts, from.node->name); cast; cast = cast->next)
        if (tare_edge_equal(cast->from, from) && cast->dtype == dtype) return &cast->to;
    return NULL;
}

static tare_status note_cast(struct tare_map *casts, struct tare_arena *arena, struct tare_edge from,
                             struct tare_edge to, int dtype) {
    struct cast *cast = TARE_NEW(arena, struct cast);
    if (!cast) return TARE_NO_MEMORY;
    *cast = (struct cast){ from, to, dtype, tare_map_get(casts, from.node->name) };
    return tare_map_set(casts, from.node->name, cast) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_cast(struct tare_edge *out, struct tare_bf16_job *job, struct tare_edge from, int dtype) {
    const char *name = from.index
                           ? tare_arena_printf(&job->graph->model->arena, "%s/%d/Cast", from.node->name, from.index)
                           : tare_arena_printf(&job->graph->model->arena, "%s/Cast", from.node->name);
    struct tare_node *cast = name ? tare_graph_add(job->graph, "Cast", name) : NULL;
    if (!cast) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(cast, "SrcT", tare_edge_dtype(from)));
    TARE_TRY(tare_node_set_type(cast, "DstT", dtype));
    TARE_TRY(tare_node_set_bool(cast, "Truncate", false));
    TARE_TRY(tare_node_add_input(cast, from));
    *out = tare_node_output0(cast);
    job->changes++;
    return tare_node_resolve(cast);
}

static tare_status add_bound(struct tare_edge *out, struct tare_bf16_job *job, const char *name, float bound) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor value;
    struct tare_node *node;
    TARE_TRY(tare_tensor_new(&value, TARE_DT_FLOAT, &scalar));
    *TARE_DATA(float, &value) = bound;
    node = tare_graph_add_const(job->graph, name, &value);
    tare_tensor_reset(&value);
    if (!node) return TARE_NO_MEMORY;
    *out = tare_node_output0(node);
    return TARE_OK;
}

/* Limits an input to the range of bfloat16, as constants are when they are rounded: a mask of the largest float32 would
 * become infinite, and a row of such NaN. */
static tare_status add_limits(struct tare_edge *edge, struct tare_bf16_job *job) {
    const float largest = 0x1.FEp127F;
    const char *name = tare_arena_printf(&job->graph->model->arena, "%s/bfloat16_range", edge->node->name);
    struct tare_node *clip = name ? tare_graph_add(job->graph, "ClipByValue", name) : NULL;
    struct tare_edge low, high;
    if (!clip) return TARE_NO_MEMORY;
    TARE_TRY(add_bound(&low, job, name, -largest));
    TARE_TRY(add_bound(&high, job, name, largest));
    TARE_TRY(tare_node_set_type(clip, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_add_input(clip, *edge));
    TARE_TRY(tare_node_add_input(clip, low));
    TARE_TRY(tare_node_add_input(clip, high));
    *edge = tare_node_output0(clip);
    return tare_node_resolve(clip);
}

static tare_status cast_edge(struct tare_edge *out, struct tare_bf16_job *job, struct tare_edge from, int dtype) {
    if (dtype == TARE_DT_BFLOAT16 && tare_exact_needs_limits(job->exact, from)) TARE_TRY(add_limits(&from, job));
    return add_cast(out, job, from, dtype);
}

/* Makes *edge a value of `dtype`, float32 or bfloat16. Other differences are reported by the check of the graph. */
static tare_status convert_edge(struct tare_edge *edge, struct tare_bf16_job *job, struct tare_map *casts, int dtype) {
    int got = tare_edge_dtype(*edge);
    struct tare_edge to, *known;
    if (got == dtype || (got != TARE_DT_FLOAT && got != TARE_DT_BFLOAT16) ||
        (dtype != TARE_DT_FLOAT && dtype != TARE_DT_BFLOAT16))
        return TARE_OK;
    known = find_cast(casts, *edge, dtype);
    if (known) {
        *edge = *known;
        return TARE_OK;
    }
    if (tare_node_is(edge->node, "Const") && dtype == TARE_DT_BFLOAT16)
        TARE_TRY(round_const(&to, job, edge->node));
    else if (tare_node_is(edge->node, "Cast") && dtype == TARE_DT_BFLOAT16 &&
             tare_edge_dtype(edge->node->inputs[0]) == TARE_DT_BFLOAT16)
        to = edge->node->inputs[0]; /* undoes that Cast */
    else
        TARE_TRY(cast_edge(&to, job, *edge, dtype));
    TARE_TRY(note_cast(casts, job->arena, *edge, to, dtype));
    *edge = to;
    return TARE_OK;
}

static tare_status cast_inputs(struct tare_bf16_job *job, struct tare_map *casts, struct tare_node *node) {
    for (size_t k = 0; k < node->n_inputs; k++) {
        int got = tare_edge_dtype(node->inputs[k]);
        if (!tare_node_is(node, "Cast")) {
            struct tare_edge input = node->inputs[k];
            TARE_TRY(convert_edge(&input, job, casts, tare_dtype_base(job->wanted_dtypes[node->position][k])));
            tare_node_set_input(node, k, input);
        } else if (got == TARE_DT_BFLOAT16 && tare_node_type(node, "SrcT", 0) == TARE_DT_FLOAT) {
            TARE_TRY(tare_node_set_type(node, "SrcT", got));
        }
    }
    return TARE_OK;
}

/* A signature's tensors keep their dtypes. */
static tare_status cast_signatures(struct tare_bf16_job *job, struct tare_map *casts) {
    struct tare_graph_model *model = job->graph->model;
    if (job->graph != model->main) return TARE_OK;
    for (size_t s = 0; s < model->n_signatures; s++) {
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++) {
            struct tare_binding *binding = &model->signatures[s].outputs[i];
            if (binding->edge.node) TARE_TRY(convert_edge(&binding->edge, job, casts, binding->dtype));
        }
    }
    return TARE_OK;
}

static tare_status cast_neighbours(struct tare_bf16_job *job) {
    struct tare_map casts = { 0 };
    struct tare_graph *graph = job->graph;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < job->n_nodes; i++)
        if (!graph->nodes[i]->dead) TARE_CHECK(cast_inputs(job, &casts, graph->nodes[i]));
    for (size_t i = 0; i < graph->n_returns; i++) {
        struct tare_edge edge = graph->returns[i].edge;
        TARE_CHECK(convert_edge(&edge, job, &casts, graph->returns[i].dtype));
        tare_graph_set_return(graph, i, edge);
    }
    status = cast_signatures(job, &casts);
done:
    tare_map_free(&casts);
    return status;
}

/* ---- leftovers ---- */

static bool is_idle_cast(const struct tare_node *node) {
    return tare_node_is(node, "Cast") && node->n_inputs == 1 && !node->n_controls &&
           tare_edge_dtype(node->inputs[0]) == TARE_DT_BFLOAT16 && node->output_dtypes[0] == TARE_DT_BFLOAT16;
}

static void mark_used(bool *used, const struct tare_node *node, const struct tare_graph *graph) {
    if (node && node->graph == graph && !tare_node_is_arg(node)) used[node->position] = true;
}

/* Removes constants whose users all use a copy now, and casts without effect. */
static tare_status sweep(struct tare_bf16_job *job) {
    struct tare_graph *graph = job->graph;
    bool *used;
    for (size_t i = 0; i < job->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || !is_idle_cast(node)) continue;
        tare_graph_replace_uses(graph, tare_node_output0(node), node->inputs[0], NULL);
    }
    used = TARE_NEW_ARRAY(job->arena, bool, graph->n_nodes + 1);
    if (!used) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        for (size_t k = 0; !node->dead && k < node->n_inputs; k++)
            mark_used(used, node->inputs[k].node, graph);
        for (size_t k = 0; !node->dead && k < node->n_controls; k++)
            mark_used(used, node->controls[k], graph);
    }
    for (size_t i = 0; i < graph->n_returns; i++)
        mark_used(used, graph->returns[i].edge.node, graph);
    for (size_t i = 0; i < graph->n_control_returns; i++)
        mark_used(used, graph->control_returns[i].node, graph);
    for (size_t i = 0; i < job->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        bool removable = job->choices[i] == TARE_BF16_CONST || is_idle_cast(node);
        if (removable && !used[i] && graph != graph->model->main) tare_node_remove(node);
    }
    tare_graph_sweep(graph);
    return TARE_OK;
}

tare_status tare_bf16_rewrite(struct tare_bf16_job *job) {
    job->wanted_dtypes = TARE_NEW_ARRAY(job->arena, int *, job->n_nodes + 1);
    if (!job->wanted_dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < job->n_nodes; i++) {
        struct tare_node *node = job->graph->nodes[i];
        if (node->dead) continue;
        if (job->choices[i] == TARE_BF16_CONVERT)
            TARE_TRY(convert_node(job, node));
        else if (job->choices[i] == TARE_BF16_CALL)
            TARE_TRY(convert_call(job, node));
        else
            TARE_TRY(input_dtypes(&job->wanted_dtypes[i], job, node));
    }
    TARE_TRY(settle_flexible(job));
    TARE_TRY(cast_neighbours(job));
    return sweep(job);
}
