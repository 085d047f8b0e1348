/* The bfloat16 pass over a set of functions: which graphs, what their signatures become, in which order. */
#include "tpu/bfloat16.h"
#include "interpreter/ops/builtin.h"
#include "base/option.h"
#include "graph/calls.h"
#include "graph/clone.h"
#include "tpu/bfloat16_internal.h"

#include <string.h>

/* A graph of the set; entries keep their signature. */
struct member {
    struct tare_graph *graph;
    bool is_entry;
};

struct set {
    struct tare_arena *arena;
    struct tare_model *model;
    const struct tare_bfloat16_options *options;
    struct member *members;
    size_t count;
    bool *live; /* functions that signatures and aliases lead to, by their place in the model: the first n_live */
    size_t n_live;
};

static struct member *find_member(const struct set *set, const struct tare_graph *graph) {
    for (size_t i = 0; i < set->count; i++)
        if (set->members[i].graph == graph) return &set->members[i];
    return NULL;
}

static tare_status add_member(struct set *set, struct tare_graph *graph, bool is_entry) {
    struct member *member = find_member(set, graph), *grown;
    if (member) {
        member->is_entry |= is_entry;
        return TARE_OK;
    }
    grown = tare_arena_extend(set->arena, set->members, set->count, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[set->count++] = (struct member){ graph, is_entry };
    set->members = grown;
    return TARE_OK;
}

/* ---- who belongs to it ---- */

/* Whoever loads the model calls these with the dtypes that the object graph or the alias promises. */
static bool is_promised(const struct tare_model *model, const struct tare_graph *graph) {
    if (tare_model_alias_of(model, graph->name)) return true;
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph == graph) return true;
    return false;
}

static tare_status add_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct set *set = arg;
    /* A batcher or an op of another kind passes float32 on: what it calls keeps its signature. So does the function
     * behind a signature, which is found by the call in the main graph. */
    bool is_entry = !tare_bf16_follows(node) || node->graph == set->model->main;
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, set->arena, node));
    if (site.kind == TARE_CALL_OTHER)
        return TARE_OK; /* a reducer or the like: computes as its caller does, in float32 */
    return add_member(set, callee, is_entry);
}

/* Of the main graph, what signatures and initialisers need: savers are made anew. */
static tare_status collect(struct set *set, struct tare_graph *const *graphs, size_t n_graphs) {
    bool *served;
    TARE_TRY(tare_model_served_nodes(&served, set->arena, set->model));
    for (size_t i = 0; i < n_graphs; i++)
        TARE_TRY(add_member(set, graphs[i], true));
    for (size_t m = 0; m < set->count; m++) {
        const struct tare_graph *graph = set->members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead && (graph != set->model->main || served[i]))
                TARE_TRY(tare_node_each_function(graph->nodes[i], add_callee, set));
    }
    return TARE_OK;
}

/* ---- functions shared with the outside ---- */

struct outside {
    const struct set *set;
    const struct tare_graph *expected;
    bool calls;
};

static tare_status note_call(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct outside *outside = arg;
    bool converted = find_member(outside->set, node->graph) && tare_bf16_follows(node);
    if (callee == outside->expected && !converted) outside->calls = true;
    return TARE_OK;
}

/* By functions that nobody reaches, too, unless `live` ones alone count. */
static tare_status is_called_outside(bool *out, const struct set *set, const struct tare_graph *graph, bool live) {
    struct outside outside = { set, graph, false };
    const struct tare_model *model = set->model;
    for (size_t i = 0; i < model->main->n_nodes; i++)
        TARE_TRY(tare_node_each_function(model->main->nodes[i], note_call, &outside));
    for (size_t f = 0; f < model->n_functions; f++)
        for (size_t i = 0; i < model->functions[f]->n_nodes && (!live || f >= set->n_live || set->live[f]); i++)
            TARE_TRY(tare_node_each_function(model->functions[f]->nodes[i], note_call, &outside));
    *out = outside.calls;
    return TARE_OK;
}

static tare_status redirect_attr(struct tare_node *node, const struct tare_attr *attr, const struct tare_graph *from,
                                 const struct tare_graph *to) {
    union tare_attr_item *items;
    struct tare_attr *own;
    if (attr->kind != TARE_ATTR_FUNC) return TARE_OK;
    for (size_t i = 0; i < attr->count; i++) {
        if (!attr->items[i].func.name || strcmp(attr->items[i].func.name, from->name) != 0) continue;
        items = tare_arena_extend(&node->graph->model->arena, attr->items, attr->count, 0, sizeof *items);
        if (!items) return TARE_NO_MEMORY;
        items[i].func.name = to->name;
        own = (struct tare_attr *)attr; /* an attribute of this node: its items may be shared, it is not */
        own->items = items;
        own->origin = NULL;
    }
    return TARE_OK;
}

static tare_status redirect(const struct set *set, const struct tare_graph *from, const struct tare_graph *to) {
    for (size_t m = 0; m < set->count; m++) {
        const struct tare_graph *graph = set->members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_node *node = graph->nodes[i];
            if (node->dead || !tare_bf16_follows(node)) continue;
            if (!node->def && strcmp(node->op, from->name) == 0) node->op = to->name;
            for (size_t a = 0; a < node->n_attrs; a++)
                TARE_TRY(redirect_attr(node, &node->attrs[a], from, to));
        }
    }
    return TARE_OK;
}

static bool calls(const struct tare_graph *graph, const struct tare_graph *expected) {
    struct outside search = { .set = &(struct set){ 0 }, .expected = expected };
    for (size_t i = 0; i < graph->n_nodes && !search.calls; i++)
        if (tare_node_each_function(graph->nodes[i], note_call, &search) != TARE_OK) return true;
    return search.calls;
}

/* A shared caller is copied first: its original must go on calling this one. */
static tare_status has_shared_caller(bool *out, const struct set *set, const struct tare_graph *graph) {
    *out = false;
    for (size_t m = 0; m < set->count && !*out; m++)
        if (!set->members[m].is_entry && calls(set->members[m].graph, graph))
            TARE_TRY(is_called_outside(out, set, set->members[m].graph, false));
    return TARE_OK;
}

/* Inner functions that others call, too, leave the set: a copy takes their place in it. */
static tare_status part_shared(struct set *set) {
    for (size_t m = 0; m < set->count; m++) {
        struct tare_graph *graph = set->members[m].graph, *copy;
        const char *stem, *name;
        bool shared;
        if (set->members[m].is_entry) continue;
        TARE_TRY(is_called_outside(&shared, set, graph, is_promised(set->model, graph)));
        if (!shared) continue;
        TARE_TRY(has_shared_caller(&shared, set, graph));
        if (shared) continue; /* its turn comes when the caller has its copy */
        stem = tare_arena_printf(&set->model->arena, "%s_bfloat16", graph->name);
        name = stem ? tare_model_unused_name(set->model, stem) : NULL;
        if (!name) return TARE_NO_MEMORY;
        TARE_TRY(tare_function_clone(&copy, graph, name));
        set->members[m].graph = copy;
        TARE_TRY(redirect(set, graph, copy));
        m = (size_t)-1; /* the original calls others now from outside */
    }
    return TARE_OK;
}

/* ---- functions that are promised ---- */

static tare_status type_call(struct tare_node *call, const struct tare_graph *callee, struct tare_arena *arena) {
    int *in = TARE_NEW_ARRAY(arena, int, callee->n_args + 1), *out = TARE_NEW_ARRAY(arena, int, callee->n_returns + 1);
    if (!in || !out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < callee->n_args; i++)
        in[i] = callee->args[i]->output_dtypes[0];
    for (size_t i = 0; i < callee->n_returns; i++)
        out[i] = callee->returns[i].dtype;
    TARE_TRY(tare_node_set_type_list(call, "Tin", in, callee->n_args));
    TARE_TRY(tare_node_set_type_list(call, "Tout", out, callee->n_returns));
    TARE_TRY(tare_node_set_func(call, "f", callee->name));
    return tare_node_resolve(call);
}

/* `shell`, which has lost its body, calls `body` instead. */
static tare_status call_body(struct tare_graph *shell, const struct tare_graph *body, struct tare_arena *arena) {
    const char *op = body->is_stateful ? "StatefulPartitionedCall" : "PartitionedCall";
    struct tare_node *call = tare_graph_add(shell, op, op);
    if (!call) return TARE_NO_MEMORY;
    for (size_t i = 0; i < shell->n_args; i++)
        TARE_TRY(tare_node_add_input(call, (struct tare_edge){ shell->args[i], 0 }));
    TARE_TRY(type_call(call, body, arena));
    for (size_t i = 0; i < shell->n_returns; i++)
        shell->returns[i].edge = (struct tare_edge){ call, (int)i };
    return TARE_OK;
}

/* An inner function that a loader may call by name keeps its dtypes as a shell around its body, and the callers in the
 * set call the body: float32 would stand between the two, and be cast twice, otherwise. */
static tare_status part_promised(struct set *set) {
    const size_t count = set->count;
    for (size_t m = 0; m < count; m++) {
        struct tare_graph *shell = set->members[m].graph, *body;
        const char *stem, *name;
        if (set->members[m].is_entry || !is_promised(set->model, shell)) continue;
        stem = tare_arena_printf(&set->model->arena, "%s_bfloat16", shell->name);
        name = stem ? tare_model_unused_name(set->model, stem) : NULL;
        if (!name) return TARE_NO_MEMORY;
        TARE_TRY(tare_function_move_body(&body, shell, name));
        set->members[m].graph = body;
        TARE_TRY(redirect(set, shell, body));
        TARE_TRY(call_body(shell, body, set->arena));
        TARE_TRY(add_member(set, shell, true));
    }
    return TARE_OK;
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
        if (strncmp(name, "tf.", 3) == 0) name += 3;
        if (tare_ops_find(tare_ops_builtin(), name) ||
            (set->model->custom_ops && tare_ops_find(set->model->custom_ops, name)))
            continue;
        nearest = nearest_op(set->arena, name);
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "bfloat16_optimization_options: filterlist names \"%s\", which is no op%s%s%s",
                         set->options->float_ops[i], nearest ? " (did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?)" : "");
    }
    return TARE_OK;
}

static tare_status check_graph(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_args + graph->n_nodes; i++) {
        const struct tare_node *node = i < graph->n_args ? graph->args[i] : graph->nodes[i - graph->n_args];
        for (size_t k = 0; !node->dead && k < node->n_outputs; k++) {
            if (tare_dtype_base(node->output_dtypes[k]) != TARE_DT_BFLOAT16) continue;
            return TARE_FAIL(
                TARE_INVALID_ARGUMENT,
                "%s%s%snode '%s' (%s) is bfloat16 already: the bfloat16 optimization expects a float32 model "
                "(bfloat16_optimization: DISABLED leaves the model as it is, skip_safety_checks: true in "
                "bfloat16_optimization_options converts the rest)",
                graph->name[0] ? "function " : "", graph->name, graph->name[0] ? ": " : "", node->name, node->op);
        }
    }
    return TARE_OK;
}

/* ---- TensorLists ---- */

static bool crosses(int dtype) {
    return tare_dtype_base(dtype) == TARE_DT_VARIANT;
}

/* Elements of lists may change their dtype when every op on every list does: no list comes from or goes to the outside.
 */
static bool lists_may_change(const struct set *set) {
    for (size_t m = 0; m < set->count; m++) {
        const struct tare_graph *graph = set->members[m].graph;
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
        if (!set->members[m].is_entry) continue;
        if (is_main) continue;
        for (size_t i = 0; i < graph->n_args; i++)
            if (crosses(graph->args[i]->output_dtypes[0])) return false;
        for (size_t i = 0; i < graph->n_returns; i++)
            if (crosses(graph->returns[i].dtype)) return false;
    }
    return true;
}

/* ---- all of it ---- */

static tare_status convert_signature(const struct member *member) {
    struct tare_graph *graph = member->graph;
    if (member->is_entry) return TARE_OK;
    for (size_t i = 0; i < graph->n_args; i++) {
        if (graph->args[i]->output_dtypes[0] != TARE_DT_FLOAT) continue;
        TARE_TRY(tare_node_set_type(graph->args[i], "T", TARE_DT_BFLOAT16));
        TARE_TRY(tare_node_resolve(graph->args[i]));
    }
    for (size_t i = 0; i < graph->n_returns; i++)
        if (graph->returns[i].dtype == TARE_DT_FLOAT) graph->returns[i].dtype = TARE_DT_BFLOAT16;
    return TARE_OK;
}

static tare_status convert_set(struct set *set, size_t *changes) {
    struct tare_bf16_job *jobs = TARE_NEW_ARRAY(set->arena, struct tare_bf16_job, set->count + 1);
    bool lists = lists_may_change(set);
    if (!jobs) return TARE_NO_MEMORY;
    for (size_t m = 0; m < set->count; m++) {
        jobs[m] = (struct tare_bf16_job){
            .arena = set->arena, .graph = set->members[m].graph, .options = set->options, .lists = lists
        };
        tare_graph_sweep(jobs[m].graph);
        TARE_TRY(tare_bf16_choose(&jobs[m])); /* on the dtypes as they were */
    }
    for (size_t m = 0; m < set->count; m++)
        TARE_TRY(convert_signature(&set->members[m]));
    for (size_t m = 0; m < set->count; m++) {
        const char *name = jobs[m].graph->name;
        TARE_TRY(tare_error_prefix(tare_bf16_rewrite(&jobs[m]), "%s", name[0] ? name : "main graph"));
        *changes += jobs[m].changes;
    }
    return tare_bf16_variables(jobs, set->count, set->model, set->options, changes);
}

tare_status tare_tpu_bfloat16(struct tare_model *model, struct tare_graph *const *graphs, size_t n_graphs,
                              const struct tare_bfloat16_options *options, size_t *changes) {
    struct tare_arena arena = { 0 };
    struct set set = { .arena = &arena, .model = model, .options = options };
    tare_status status;
    TARE_CHECK(check_options(&set));
    TARE_CHECK(collect(&set, graphs, n_graphs));
    for (size_t m = 0; m < set.count && !options->skip_safety_checks; m++)
        TARE_CHECK(check_graph(set.members[m].graph));
    TARE_CHECK(tare_model_reachable_functions(&set.live, &arena, model, true));
    set.n_live = model->n_functions;
    TARE_CHECK(part_shared(&set));
    TARE_CHECK(part_promised(&set));
    status = convert_set(&set, changes);
done:
    tare_arena_free(&arena);
    return status;
}
