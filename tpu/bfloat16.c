/* The bfloat16 pass over a set of functions.
 *
 * Order: collect the functions below the chosen ones; copy those that are also called from outside; keep the signatures
 * of those that a branch or loop calls beside a chosen one; wrap those that are part of the model's interface; find the
 * values that must stay exact, on the resulting graphs; choose the dtype of each node while all dtypes are still the
 * original ones; convert the signatures of inner functions; rewrite the bodies; convert the variables that only
 * bfloat16 nodes read. */
#include "tpu/bfloat16.h"
#include "interpreter/ops/builtin.h"
#include "base/option.h"
#include "graph/calls.h"
#include "graph/clone.h"
#include "tpu/bfloat16_internal.h"
#include "tpu/closure.h"

#include <string.h>

struct set {
    struct tare_arena *arena;
    struct tare_graph_model *model;
    const struct tare_bfloat16_options *options;
    struct tare_tpu_closure closure; /* entries keep their signatures */
};

/* ---- functions shared with the outside ---- */

/* A batcher or an op of another kind passes float32 on: the function that it calls keeps its signature. */
static tare_status collect(struct set *set, struct tare_graph *const *graphs, size_t n_graphs) {
    const struct tare_tpu_closure_rules rules = { .follows = tare_bf16_follows,
                                                  .suffix = "_bfloat16",
                                                  .wraps_promised = true };
    return tare_tpu_closure_by(&set->closure, set->arena, graphs, n_graphs, &rules);
}

/* Inner functions that are also called from outside are replaced by copies. */
static tare_status part_shared(struct set *set) {
    size_t copies;
    for (size_t m = 0; m < set->closure.count; m++)
        set->closure.members[m].changes = true;
    return tare_tpu_closure_own(&set->closure, set->arena, &copies);
}

/* ---- branches and loops ---- */

/* The functions of one If, Case or While agree in their dtypes: if one keeps its signature, all do. */
struct siblings {
    struct tare_graph_table members; /* by function */
    bool has_entry, changed;
};

static tare_status keep_sibling(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct siblings *siblings = arg;
    struct tare_tpu_member *member = tare_graph_table_get(&siblings->members, callee);
    (void)node;
    if (!member) return TARE_OK;
    if (siblings->has_entry && !member->is_entry) member->is_entry = siblings->changed = true;
    siblings->has_entry |= member->is_entry;
    return TARE_OK;
}

/* The first visit of a node's functions finds an entry, the second also reaches those before it. */
static tare_status keep_siblings_in(struct siblings *siblings, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || !tare_bf16_follows(node)) continue;
        siblings->has_entry = false;
        TARE_TRY(tare_node_each_function(node, keep_sibling, siblings));
        if (siblings->has_entry) TARE_TRY(tare_node_each_function(node, keep_sibling, siblings));
    }
    return TARE_OK;
}

static tare_status keep_siblings(struct set *set) {
    struct siblings siblings = { .changed = true };
    tare_status status = TARE_OK;
    for (size_t m = 0; m < set->closure.count; m++) {
        struct tare_tpu_member *member = &set->closure.members[m];
        if (!tare_graph_table_set(&siblings.members, member->graph, member)) status = TARE_NO_MEMORY;
    }
    while (status == TARE_OK && siblings.changed) {
        siblings.changed = false;
        for (size_t m = 0; m < set->closure.count && status == TARE_OK; m++)
            status = keep_siblings_in(&siblings, set->closure.members[m].graph);
    }
    tare_graph_table_free(&siblings.members);
    return status;
}

/* ---- functions that are promised ---- */

/* `wrapper`, whose body was moved, calls `body` instead. */
static tare_status call_body(struct tare_graph *wrapper, const struct tare_graph *body) {
    const char *op = body->is_stateful ? "StatefulPartitionedCall" : "PartitionedCall";
    struct tare_node *call = tare_graph_add(wrapper, op, op);
    if (!call) return TARE_NO_MEMORY;
    for (size_t i = 0; i < wrapper->n_args; i++)
        TARE_TRY(tare_node_add_input(call, (struct tare_edge){ wrapper->args[i], 0 }));
    TARE_TRY(tare_node_set_func(call, "f", body->name));
    TARE_TRY(tare_call_set_types(call, body));
    TARE_TRY(tare_node_resolve(call));
    for (size_t i = 0; i < wrapper->n_returns; i++)
        tare_graph_set_return(wrapper, i, (struct tare_edge){ call, (int)i });
    return TARE_OK;
}

/* Moves the body of member m to a function of its own. */
static tare_status part(struct set *set, size_t m, struct tare_map *bodies) {
    struct tare_graph *wrapper = set->closure.members[m].graph, *body;
    const char *stem = tare_arena_printf(&set->model->arena, "%s_bfloat16", wrapper->name);
    const char *name = stem ? tare_model_unused_name(set->model, stem) : NULL;
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(tare_function_move_body(&body, wrapper, name));
    set->closure.members[m].graph = body;
    if (!tare_map_set(bodies, wrapper->name, body)) return TARE_NO_MEMORY;
    TARE_TRY(call_body(wrapper, body));
    tare_model_keep_method(set->model, wrapper); /* nothing else calls it */
    return tare_tpu_closure_add_entry(&set->closure, set->arena, wrapper);
}

/* An inner function that a loader may call by name keeps its dtypes as a wrapper of its body, and the callers in the
 * set call the body: otherwise values would be cast to float32 and back between the two. */
static tare_status part_all(struct set *set, const struct tare_graph_table *promised, struct tare_map *bodies) {
    const size_t count = set->closure.count;
    for (size_t m = 0; m < count; m++) {
        const struct tare_tpu_member *member = &set->closure.members[m];
        if (!member->is_entry && tare_graph_table_get(promised, member->graph)) TARE_TRY(part(set, m, bodies));
    }
    return bodies->count ? tare_tpu_closure_redirect(&set->closure, bodies) : TARE_OK;
}

static tare_status part_promised(struct set *set) {
    struct tare_graph_table promised = { 0 };
    struct tare_map bodies = { 0 }; /* name of a promised function -> its body */
    tare_status status = tare_tpu_promised(&promised, set->model);
    if (status == TARE_OK) status = part_all(set, &promised, &bodies);
    tare_graph_table_free(&promised);
    tare_map_free(&bodies);
    return status;
}

/* ---- checks ---- */

static const char *nearest_op(struct tare_arena *arena, const char *name) {
    const struct tare_op_def *const *defs;
    const char **names;
    size_t count;
    if (tare_ops_list_all(&defs, &count, arena, tare_ops_builtin()) != TARE_OK) return NULL;
    names = TARE_NEW_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; names && i < count; i++)
        names[i] = defs[i]->name;
    return names ? tare_nearest_name(name, names) : NULL;
}

static tare_status check_options(const struct set *set) {
    for (size_t i = 0; i < set->options->n_float_ops; i++) {
        const char *name = set->options->float_ops[i], *nearest;
        if (tare_ops_find(tare_ops_builtin(), name) ||
            (set->model->custom_ops && tare_ops_find(set->model->custom_ops, name)))
            continue;
        nearest = nearest_op(set->arena, name);
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "bfloat16_optimization_options: filterlist names \"%s\", which is not an op%s%s%s", name,
                         nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
    }
    return TARE_OK;
}

/* A cast to bfloat16 and back is no computation in it. */
static const struct tare_node *find_bfloat16(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_args + graph->n_nodes; i++) {
        const struct tare_node *node = i < graph->n_args ? graph->args[i] : graph->nodes[i - graph->n_args];
        for (size_t k = 0; !node->dead && !tare_node_is(node, "Cast") && k < node->n_outputs; k++)
            if (tare_dtype_base(node->output_dtypes[k]) == TARE_DT_BFLOAT16) return node;
    }
    return NULL;
}

/* Whether the graphs compute in bfloat16 already, which is an error unless the caller leaves them unchanged then. */
static tare_status check_graphs(bool *is_bfloat16, const struct set *set) {
    const struct tare_bfloat16_options *options = set->options;
    const struct tare_node *node = NULL;
    for (size_t m = 0; m < set->closure.count && !options->skip_safety_checks && !node; m++)
        node = find_bfloat16(set->closure.members[m].graph);
    *is_bfloat16 = node;
    if (!node) return TARE_OK;
    const char *name = node->graph->name;
    const char *text = tare_arena_printf(&set->model->arena, "%s%s%snode '%s' (%s)", name[0] ? "function " : "", name,
                                         name[0] ? ": " : "", node->name, node->op);
    if (!text) return TARE_NO_MEMORY;
    if (options->found) return *options->found = text, TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "%s is bfloat16 already: the bfloat16 optimization expects a float32 model "
                     "(bfloat16_optimization: DISABLED leaves the model as it is, skip_safety_checks: true in "
                     "bfloat16_optimization_options converts the rest). Found bfloat16 ops in the model. The model may "
                     "have been converted before. It should not be converted again.",
                     text);
}

/* ---- TensorLists ---- */

static bool crosses(int dtype) {
    return tare_dtype_base(dtype) == TARE_DT_VARIANT;
}

/* Elements of lists may change their dtype when every op on every list changes: no list is passed from or to the
 * outside.
 */
static bool lists_may_change(const struct set *set) {
    for (size_t m = 0; m < set->closure.count; m++) {
        const struct tare_graph *graph = set->closure.members[m].graph;
        bool is_main = graph == set->model->main;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const struct tare_node *node = graph->nodes[i];
            if (node->dead) continue;
            if (strstr(node->op, "TensorList") && tare_bf16_is_filtered(set->options, node->op)) return false;
            for (size_t k = 0;
                 node->def && !tare_bf16_follows(node) && !strstr(node->op, "TensorList") && k < node->n_inputs; k++)
                if (crosses(tare_edge_dtype(node->inputs[k])) && strcmp(node->op, "Identity") != 0 &&
                    strcmp(node->op, "ZerosLike") != 0)
                    return false;
        }
        if (!set->closure.members[m].is_entry) continue;
        if (is_main) continue;
        for (size_t i = 0; i < graph->n_args; i++)
            if (crosses(graph->args[i]->output_dtypes[0])) return false;
        for (size_t i = 0; i < graph->n_returns; i++)
            if (crosses(graph->returns[i].dtype)) return false;
    }
    return true;
}

/* ---- all of it ---- */

static tare_status convert_members(struct set *set, const struct tare_exact_values *exact, size_t *changes) {
    const size_t count = set->closure.count;
    struct tare_bf16_job *jobs = TARE_NEW_ARRAY(set->arena, struct tare_bf16_job, count + 1);
    const bool lists = lists_may_change(set) && !tare_exact_has_lists(exact);
    if (!jobs) return TARE_NO_MEMORY;
    for (size_t m = 0; m < count; m++) {
        jobs[m] = (struct tare_bf16_job){ .arena = set->arena,
                                          .graph = set->closure.members[m].graph,
                                          .options = set->options,
                                          .exact = exact,
                                          .lists = lists };
        TARE_TRY(tare_bf16_choose(&jobs[m])); /* on the dtypes as they were */
    }
    TARE_TRY(tare_bf16_change_signatures(set->arena, set->closure.members, count, exact));
    for (size_t m = 0; m < count; m++) {
        const char *name = jobs[m].graph->name;
        TARE_TRY(tare_error_prefix(tare_bf16_rewrite(&jobs[m]), "%s", name[0] ? name : "main graph"));
        *changes += jobs[m].changes;
    }
    return tare_bf16_variables(jobs, count, set->model, set->options, changes);
}

static tare_status convert_set(struct set *set, struct tare_graph *const *graphs, size_t n_graphs, size_t *changes) {
    struct tare_graph **converted = TARE_NEW_ARRAY(set->arena, struct tare_graph *, set->closure.count + 1);
    const struct tare_exact_options options = { .converted = converted,
                                                .n_converted = set->closure.count,
                                                .placed = graphs,
                                                .n_placed = n_graphs,
                                                .rounds_outputs = set->options->rounds_outputs,
                                                .nodes = set->options->nodes,
                                                .n_nodes = set->options->n_nodes,
                                                .rounds_magnitudes = set->options->rounds_magnitudes };
    struct tare_exact_values *exact = NULL;
    tare_status status;
    if (!converted) return TARE_NO_MEMORY;
    for (size_t m = 0; m < set->closure.count; m++) {
        converted[m] = set->closure.members[m].graph;
        tare_graph_sweep(converted[m]);
    }
    TARE_TRY(tare_exact_values_find(&exact, set->arena, set->model, &options));
    status = convert_members(set, exact, changes);
    tare_exact_values_free(exact);
    return status;
}

tare_status tare_tpu_bfloat16(struct tare_graph_model *model, struct tare_graph *const *graphs, size_t n_graphs,
                              const struct tare_bfloat16_options *options, size_t *changes) {
    struct tare_arena arena = { 0 };
    struct set set = { .arena = &arena, .model = model, .options = options };
    bool is_bfloat16;
    tare_status status;
    TARE_CHECK(check_options(&set));
    TARE_CHECK(collect(&set, graphs, n_graphs));
    TARE_CHECK(check_graphs(&is_bfloat16, &set));
    if (is_bfloat16) goto done;
    TARE_CHECK(part_shared(&set));
    TARE_CHECK(keep_siblings(&set));
    TARE_CHECK(part_promised(&set));
    status = convert_set(&set, graphs, n_graphs, changes);
done:
    tare_arena_free(&arena);
    return status;
}
