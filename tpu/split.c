/* Splits functions around the ops that a TPU does not support; the parts are chosen by their amount of computation. */
#include "tpu/split.h"
#include "graph/calls.h"
#include "graph/inline.h"
#include "interpreter/inference/model_shapes.h"
#include "graph/outline.h"
#include "tpu/closure.h"
#include "tpu/compatibility.h"
#include "tpu/cost/rows.h"
#include "tpu/cost/served.h"
#include "tpu/partition.h"
#include "tpu/split_derived.h"

#include <string.h>

/* The minimum share of a function's work that justifies a call, and a second call. */
#define LEAST_SHARE 0.1
#define LEAST_SECOND_SHARE 0.25

struct splitter {
    struct tare_tpu_split *out;
    struct tare_arena *arena;
    struct tare_graph_model *model;
    struct tare_map seen;    /* functions visited */
    const char *first_error; /* why something stays off the TPU */
    bool is_soft;            /* of the choices */
};

/* One function being split. */
struct task {
    struct splitter *s;
    struct tare_graph *graph;
    const char *what; /* signature '…' or function '…' */
    double *work;     /* by position */
    bool *derived;    /* by position: from constants, shapes and variables alone */
    double all;       /* the sum */
};

/* A part: its nodes, and their amount of computation. */
struct part {
    bool *nodes; /* by position */
    double work;
};

/* ---- how much nodes compute ---- */

static void close_shape(struct tare_shape *shape) {
    if (shape->rank < 0) shape->rank = 0;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) shape->dims[i] = 1;
}

static double bytes_of(const struct tare_shape *shape, int dtype) {
    double bytes = (double)tare_dtype_size(tare_dtype_base(dtype));
    for (int i = 0; i < shape->rank; i++)
        bytes *= (double)shape->dims[i];
    return bytes;
}

/* Multiply-accumulates of one row, or one operation per float32 that is moved. */
static tare_status node_work(double *work, const struct splitter *s, const struct tare_node *node,
                             const struct tare_model_shapes *shapes) {
    struct tare_shape *all = TARE_NEW_ARRAY(s->arena, struct tare_shape, node->n_inputs + node->n_outputs + 1);
    int *dtypes = TARE_NEW_ARRAY(s->arena, int, node->n_inputs + 1);
    struct tare_infer infer = {
        .node = node, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs, .arena = s->arena
    };
    struct tare_cost cost = { 0, 0 };
    if (!all || !dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs + node->n_outputs; i++) {
        const bool in = i < node->n_inputs;
        const struct tare_edge edge =
            in ? node->inputs[i] : (struct tare_edge){ (struct tare_node *)(uintptr_t)node, (int)(i - node->n_inputs) };
        all[i] = tare_model_shape(shapes, edge);
        close_shape(&all[i]);
        if (in) dtypes[i] = tare_edge_dtype(edge);
        cost.bytes += bytes_of(&all[i], tare_edge_dtype(edge));
    }
    infer.inputs = all;
    infer.outputs = all + node->n_inputs;
    infer.input_dtypes = dtypes;
    if (node->def && !tare_tpu_op_is_free(node->op)) {
        tare_tpu_op_cost(&infer, &cost);
        *work += cost.macs > 0 ? cost.macs : cost.bytes / 4;
    }
    return TARE_OK;
}

/* The work of a node includes that of the functions it calls. */
static tare_status calls_work(double *work, const struct splitter *s, const struct tare_node *node,
                              const struct tare_model_shapes *shapes) {
    struct tare_tpu_closure closure;
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, s->arena, node));
    TARE_TRY(tare_tpu_closure(&closure, s->arena, site.callees, site.n_callees));
    for (size_t m = 0; m < closure.count; m++) {
        const struct tare_graph *graph = closure.members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_TRY(node_work(work, s, graph->nodes[i], shapes));
    }
    return TARE_OK;
}

static tare_status count_work(struct task *task) {
    const struct tare_graph *graph = task->graph;
    struct tare_model_shapes *shapes = NULL;
    tare_status status;
    task->all = 0;
    task->work = TARE_NEW_ARRAY(task->s->arena, double, graph->n_nodes + 1);
    if (!task->work) return TARE_NO_MEMORY;
    TARE_CHECK(tare_model_shapes_new(&shapes, task->s->model));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        TARE_CHECK(calls_work(&task->work[i], task->s, graph->nodes[i], shapes));
        if (task->work[i] == 0) TARE_CHECK(node_work(&task->work[i], task->s, graph->nodes[i], shapes));
        task->all += task->work[i];
    }
done:
    tare_model_shapes_free(shapes);
    return status;
}

/* ---- nodes that must stay off the TPU ---- */

/* Values that may cross between host and TPU: dense numbers; as arguments, handles of the function's variables as well.
 */
static bool may_cross(struct tare_edge edge) {
    const int dtype = tare_edge_dtype(edge);
    if (dtype == TARE_DT_RESOURCE) return tare_node_is_arg(edge.node);
    return dtype != TARE_DT_VARIANT && tare_tpu_has_dtype(dtype) && tare_dtype_get(dtype) && !tare_dtype_is_ref(dtype);
}

/* Frames of loops cannot be cut. */
static bool is_frame(const struct tare_node *node) {
    static const char *const ops[] = { "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tare_node_is(node, ops[i])) return true;
    return false;
}

/* The first node of the functions, or of those below them, whose number of rows depends on values; NULL: none. */
static tare_status find_row_decider(const struct tare_node **out, struct tare_arena *arena,
                                    struct tare_graph *const *functions, size_t count) {
    struct tare_tpu_closure closure;
    *out = NULL;
    TARE_TRY(tare_tpu_closure(&closure, arena, functions, count));
    for (size_t m = 0; m < closure.count && !*out; m++) {
        const struct tare_graph *graph = closure.members[m].graph;
        for (size_t i = 0; i < graph->n_nodes && !*out; i++)
            if (!graph->nodes[i]->dead && tare_tpu_decides_rows(graph->nodes[i])) *out = graph->nodes[i];
    }
    return TARE_OK;
}

static tare_status mark_row_deciders(bool *bad, const struct task *task) {
    for (size_t i = 0; i < task->graph->n_nodes; i++) {
        struct tare_node *node = task->graph->nodes[i];
        const struct tare_node *below = NULL;
        struct tare_call_site site;
        TARE_TRY(tare_call_site(&site, task->s->arena, node));
        if (site.n_callees) TARE_TRY(find_row_decider(&below, task->s->arena, site.callees, site.n_callees));
        bad[i] |= below || tare_tpu_decides_rows(node);
    }
    return TARE_OK;
}

static tare_status find_refused(bool **out, const struct task *task) {
    const struct tare_graph *graph = task->graph;
    bool *all = TARE_NEW_ARRAY(task->s->arena, bool, graph->n_nodes + 1);
    bool *bad = *out = TARE_NEW_ARRAY(task->s->arena, bool, graph->n_nodes + 1);
    if (!all || !bad) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        all[i] = true;
        bad[i] = is_frame(node);
        for (size_t k = 0; k < node->n_inputs && !tare_node_is(node, "Assert"); k++)
            bad[i] |= tare_edge_dtype(node->inputs[k]) == TARE_DT_STRING;
    }
    TARE_TRY(mark_row_deciders(bad, task));
    return tare_tpu_check_part(bad, task->s->arena, graph, all);
}

/* ---- inlining functions that are not supported ---- */

static bool is_refused(void *arg, const struct tare_graph *callee) {
    return tare_map_get(arg, callee->name);
}

static tare_status inline_once(size_t *count, struct task *task) {
    struct tare_map refused = { 0 };
    bool *bad;
    tare_status status;
    *count = 0;
    TARE_TRY(find_refused(&bad, task));
    for (size_t i = 0; i < task->graph->n_nodes; i++) {
        struct tare_call_site site;
        TARE_CHECK(tare_call_site(&site, task->s->arena, task->graph->nodes[i]));
        if (!bad[i] || site.kind != TARE_CALL_PLAIN) continue;
        if (!tare_map_set(&refused, site.callees[0]->name, site.callees[0])) TARE_CHECK(TARE_NO_MEMORY);
    }
    status = tare_function_inline_calls(count, task->graph, is_refused, &refused);
done:
    tare_map_free(&refused);
    return status;
}

static tare_status inline_refused(struct task *task) {
    size_t count;
    do
        TARE_TRY(inline_once(&count, task));
    while (count);
    return TARE_OK;
}

/* ---- parts ---- */

/* Trivial nodes, which are not worth placing at the end of a part: the host can run them on their inputs. */
static bool is_trivial(const struct tare_node *node) {
    static const char *const ops[] = { "Shape",   "ShapeN",     "Size", "Rank",  "Cast",
                                       "Squeeze", "ExpandDims", "Pack", "Unpack" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tare_node_is(node, ops[i])) return true;
    return tare_tpu_op_is_free(node->op);
}

static void mark_users(bool *used, const struct task *task, const struct part *part) {
    memset(used, 0, task->graph->n_nodes * sizeof *used);
    for (size_t i = 0; i < task->graph->n_nodes; i++) {
        const struct tare_node *node = task->graph->nodes[i];
        for (size_t k = 0; part->nodes[i] && k < node->n_inputs; k++)
            if (!tare_node_is_arg(node->inputs[k].node)) used[node->inputs[k].node->position] = true;
        for (size_t k = 0; part->nodes[i] && k < node->n_controls; k++)
            used[node->controls[k]->position] = true;
    }
}

/* Leaves trivial and derived nodes that the part itself does not use to the host, repeatedly. */
static tare_status trim(struct part *part, const struct task *task) {
    bool *used = TARE_NEW_ARRAY(task->s->arena, bool, task->graph->n_nodes + 1);
    bool again = true;
    if (!used) return TARE_NO_MEMORY;
    while (again) {
        again = false;
        mark_users(used, task, part);
        for (size_t i = 0; i < task->graph->n_nodes; i++) {
            if (!part->nodes[i] || used[i]) continue;
            if (!is_trivial(task->graph->nodes[i]) && !task->derived[i]) continue;
            part->nodes[i] = false;
            again = true;
        }
    }
    return TARE_OK;
}

/* Marks nodes of the part with an input or output that must not cross the boundary. */
static void mark_borders(bool *bad, const struct task *task, const struct part *part) {
    for (size_t i = 0; i < task->graph->n_nodes; i++) {
        const struct tare_node *node = task->graph->nodes[i];
        for (size_t k = 0; !node->dead && k < node->n_inputs; k++) {
            const struct tare_edge edge = node->inputs[k];
            const bool from = !tare_node_is_arg(edge.node) && part->nodes[edge.node->position];
            if (from == part->nodes[i] || tare_node_is(edge.node, "Const") || may_cross(edge)) continue;
            bad[from ? edge.node->position : i] = true;
        }
    }
}

static void choose_side(struct part *part, const struct task *task, const struct tare_tpu_partition *parts,
                        enum tare_tpu_place place, bool with_free) {
    for (size_t i = 0; i < task->graph->n_nodes; i++) {
        const struct tare_node *node = task->graph->nodes[i];
        part->nodes[i] = !node->dead && !parts->bad[i] && !tare_node_is(node, "Const") &&
                         !tare_node_is(node, "Placeholder") && !parts->reached[!place][i] &&
                         (with_free || parts->reached[place][i]);
    }
}

/* The part on that side of the refused nodes (with_free: including nodes unrelated to any), reduced until the TPU
 * supports it. Adds to `bad`. */
static tare_status find_part(struct part *part, const struct task *task, bool *bad, enum tare_tpu_place place,
                             bool with_free) {
    const size_t n = task->graph->n_nodes;
    struct tare_tpu_partition parts = { .graph = task->graph, .bad = bad };
    bool *before = TARE_NEW_ARRAY(task->s->arena, bool, n + 1);
    part->nodes = TARE_NEW_ARRAY(task->s->arena, bool, n + 1);
    if (!before || !part->nodes) return TARE_NO_MEMORY;
    do {
        memcpy(before, bad, n * sizeof *bad);
        TARE_TRY(tare_tpu_partition_find(&parts, task->s->arena));
        choose_side(part, task, &parts, place, with_free);
        TARE_TRY(trim(part, task));
        mark_borders(bad, task, part);
        TARE_TRY(tare_tpu_check_part(bad, task->s->arena, task->graph, part->nodes));
    } while (memcmp(before, bad, n * sizeof *bad) != 0);
    part->work = 0;
    for (size_t i = 0; i < n; i++)
        if (part->nodes[i]) part->work += task->work[i];
    return TARE_OK;
}

/* ---- parts between refused nodes ---- */

/* The number of refused nodes on the path to each node that has most of them. Nodes of one depth that are not refused
 * form a part: no path leaves it and comes back, as depths never decrease. */
static tare_status find_depths(size_t *depth, const struct task *task, const bool *bad) {
    struct tare_node **order;
    TARE_TRY(tare_graph_order(&order, task->s->arena, task->graph));
    for (size_t i = 0; i < task->graph->n_nodes && order[i]; i++) {
        const struct tare_node *node = order[i];
        size_t most = 0;
        for (size_t k = 0; k < node->n_inputs; k++)
            if (!tare_node_is_arg(node->inputs[k].node) && depth[node->inputs[k].node->position] > most)
                most = depth[node->inputs[k].node->position];
        for (size_t k = 0; k < node->n_controls; k++)
            if (depth[node->controls[k]->position] > most) most = depth[node->controls[k]->position];
        depth[node->position] = most + bad[node->position];
    }
    return TARE_OK;
}

static bool may_be_placed(const struct task *task, const bool *bad, size_t i) {
    const struct tare_node *node = task->graph->nodes[i];
    return !node->dead && !bad[i] && !tare_node_is(node, "Const") && !tare_node_is(node, "Placeholder");
}

/* The depth at which most is computed. */
static tare_status deepest_work(size_t *out, const struct task *task, const size_t *depth, const bool *bad) {
    const size_t n = task->graph->n_nodes;
    double *work = TARE_NEW_ARRAY(task->s->arena, double, n + 2);
    if (!work) return TARE_NO_MEMORY;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        if (may_be_placed(task, bad, i)) work[depth[i]] += task->work[i];
    for (size_t d = 1; d <= n; d++)
        if (work[d] > work[*out]) *out = d;
    return TARE_OK;
}

/* Adds nodes that only the part uses, such as reads of its variables. */
static tare_status add_feeders(struct part *part, const struct task *task, const size_t *depth, const bool *bad,
                               size_t chosen) {
    const size_t n = task->graph->n_nodes;
    bool *outside = TARE_NEW_ARRAY(task->s->arena, bool, n + 1), again = true;
    if (!outside) return TARE_NO_MEMORY;
    while (again) {
        again = false;
        memset(outside, 0, n * sizeof *outside);
        for (size_t i = 0; i < n; i++) {
            const struct tare_node *node = task->graph->nodes[i];
            for (size_t k = 0; !node->dead && !part->nodes[i] && k < node->n_inputs; k++)
                if (!tare_node_is_arg(node->inputs[k].node)) outside[node->inputs[k].node->position] = true;
            for (size_t k = 0; !node->dead && !part->nodes[i] && k < node->n_controls; k++)
                outside[node->controls[k]->position] = true;
        }
        for (size_t i = 0; i < task->graph->n_returns; i++)
            if (!tare_node_is_arg(task->graph->returns[i].edge.node))
                outside[task->graph->returns[i].edge.node->position] = true;
        for (size_t i = 0; i < n; i++) {
            if (part->nodes[i] || outside[i] || depth[i] >= chosen || !may_be_placed(task, bad, i)) continue;
            part->nodes[i] = again = true;
        }
    }
    return TARE_OK;
}

/* The part of one depth that computes most, reduced until the TPU supports it: a network between the decoding of images
 * and the names of classes, for example. Adds to `bad`. */
static tare_status find_middle(struct part *part, const struct task *task, bool *bad) {
    const size_t n = task->graph->n_nodes;
    bool *before = TARE_NEW_ARRAY(task->s->arena, bool, n + 1);
    size_t *depth = TARE_NEW_ARRAY(task->s->arena, size_t, n + 1), chosen;
    part->nodes = TARE_NEW_ARRAY(task->s->arena, bool, n + 1);
    if (!before || !depth || !part->nodes) return TARE_NO_MEMORY;
    do {
        memcpy(before, bad, n * sizeof *bad);
        TARE_TRY(find_depths(depth, task, bad));
        TARE_TRY(deepest_work(&chosen, task, depth, bad));
        for (size_t i = 0; i < n; i++)
            part->nodes[i] = may_be_placed(task, bad, i) && depth[i] == chosen;
        TARE_TRY(add_feeders(part, task, depth, bad, chosen));
        TARE_TRY(trim(part, task));
        mark_borders(bad, task, part);
        TARE_TRY(tare_tpu_check_part(bad, task->s->arena, task->graph, part->nodes));
    } while (memcmp(before, bad, n * sizeof *bad) != 0);
    part->work = 0;
    for (size_t i = 0; i < n; i++)
        if (part->nodes[i]) part->work += task->work[i];
    return TARE_OK;
}

/* ---- outlining ---- */

static tare_status add_choice(struct splitter *s, enum tare_tpu_choice_kind kind, const char *name) {
    struct tare_tpu_choice *grown = tare_arena_append(s->arena, s->out->choices, s->out->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    s->out->choices = grown;
    grown[s->out->count++] = (struct tare_tpu_choice){ kind, name, s->is_soft };
    return TARE_OK;
}

static tare_status add_note(struct splitter *s, const char *text) {
    const char **grown = tare_arena_append(s->arena, s->out->notes, s->out->n_notes, sizeof *grown);
    if (!text || !grown) return TARE_NO_MEMORY;
    s->out->notes = grown;
    grown[s->out->n_notes++] = text;
    return TARE_OK;
}

/* The nodes of a part; their addresses stay valid while other parts are outlined. */
static tare_status list_nodes(struct tare_node ***out, size_t *count, const struct task *task,
                              const struct part *part) {
    *count = 0;
    *out = TARE_NEW_ARRAY(task->s->arena, struct tare_node *, task->graph->n_nodes + 1);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < task->graph->n_nodes; i++)
        if (part->nodes[i]) (*out)[(*count)++] = task->graph->nodes[i];
    return TARE_OK;
}

static bool *mark_nodes(const struct task *task, struct tare_node *const *nodes, size_t count) {
    bool *chosen = TARE_NEW_ARRAY(task->s->arena, bool, task->graph->n_nodes + 1);
    for (size_t i = 0; chosen && i < count; i++)
        chosen[nodes[i]->position] = true;
    return chosen;
}

/* The part of an earlier signature that computes the same; NULL: none. */
static struct tare_graph *find_same(const struct splitter *s, const struct tare_graph *function) {
    for (size_t i = 0; i < s->out->count; i++) {
        struct tare_graph *earlier = s->out->choices[i].kind == TARE_TPU_BY_CONCRETE
                                         ? tare_model_find_function(s->model, s->out->choices[i].name)
                                         : NULL;
        if (earlier && tare_functions_are_alike(earlier, function)) return earlier;
    }
    return NULL;
}

/* Two signatures of one network share its part, and so its weights. */
static tare_status call_same(struct task *task, const struct tare_graph *part, const struct tare_graph *equal) {
    struct tare_graph_model *model = task->s->model;
    struct tare_node *call = NULL;
    bool *live = TARE_NEW_ARRAY(task->s->arena, bool, model->n_functions + 1);
    if (!live) return TARE_NO_MEMORY;
    for (size_t i = 0; i < task->graph->n_nodes; i++)
        if (tare_node_function(task->graph->nodes[i], "f") == part) call = task->graph->nodes[i];
    for (size_t i = 0; i < model->n_functions; i++)
        live[i] = model->functions[i] != part;
    TARE_TRY(tare_node_set_func(call, "f", equal->name));
    tare_model_remove_functions(model, live);
    return TARE_OK;
}

static tare_status outline(const char **name, struct task *task, struct tare_node *const *nodes, size_t count) {
    bool *chosen = mark_nodes(task, nodes, count);
    const char *stem = tare_arena_printf(&task->s->model->arena, "%s_tpu", task->graph->name);
    struct tare_graph *function, *equal;
    *name = stem ? tare_model_unused_name(task->s->model, stem) : NULL;
    if (!chosen || !*name) return TARE_NO_MEMORY;
    TARE_TRY(tare_split_copy_derived(task->graph, chosen, task->s->arena));
    chosen = mark_nodes(task, nodes, count); /* the graph may have grown */
    if (!chosen) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_outline(&function, task->graph, chosen, *name));
    equal = find_same(task->s, function);
    if (equal) {
        *name = equal->name;
        return call_same(task, function, equal);
    }
    return add_choice(task->s, TARE_TPU_BY_CONCRETE, *name);
}

static tare_status outline_parts(struct task *task, const struct part *first, const struct part *second) {
    struct splitter *s = task->s;
    struct tare_node **nodes[2];
    const char *names[2];
    size_t counts[2];
    TARE_TRY(list_nodes(&nodes[0], &counts[0], task, first));
    if (second) TARE_TRY(list_nodes(&nodes[1], &counts[1], task, second));
    for (int i = 0; i < (second ? 2 : 1); i++)
        TARE_TRY(outline(&names[i], task, nodes[i], counts[i]));
    const char *where = second ? tare_arena_printf(s->arena, "in two parts, as functions %s and %s", names[0], names[1])
                               : tare_arena_printf(s->arena, "in part, as function %s", names[0]);
    if (!where) return TARE_NO_MEMORY;
    return add_note(s, tare_arena_printf(s->arena, "%s is placed on the TPU %s; the rest stays on the CPU: %s",
                                         task->what, where, s->first_error));
}

static tare_status split(struct task *task) {
    struct splitter *s = task->s;
    bool *bad[TARE_TPU_PLACES], *between;
    struct part sides[TARE_TPU_PLACES], other, middle;
    TARE_TRY(count_work(task));
    TARE_TRY(tare_split_find_derived(&task->derived, s->arena, task->graph));
    for (int place = 0; place < TARE_TPU_PLACES; place++) {
        TARE_TRY(find_refused(&bad[place], task));
        TARE_TRY(find_part(&sides[place], task, bad[place], place, true));
    }
    const enum tare_tpu_place larger =
        sides[TARE_TPU_AFTER].work >= sides[TARE_TPU_BEFORE].work ? TARE_TPU_AFTER : TARE_TPU_BEFORE;
    TARE_TRY(find_refused(&between, task));
    TARE_TRY(find_middle(&middle, task, between));
    if (middle.work > sides[larger].work && middle.work >= LEAST_SHARE * task->all)
        return outline_parts(task, &middle, NULL);
    if (sides[larger].work <= 0 || sides[larger].work < LEAST_SHARE * task->all)
        return add_note(s, tare_arena_printf(s->arena,
                                             "%s stays on the CPU: no part that the TPU supports is worth a call (%s)",
                                             task->what, s->first_error));
    TARE_TRY(find_part(&other, task, bad[larger], !larger, false));
    return outline_parts(task, &sides[larger], other.work >= LEAST_SECOND_SHARE * task->all ? &other : NULL);
}

/* ---- signatures ---- */

/* A finding without its remedy: this split is the remedy. */
static const char *without_advice(const struct splitter *s, const char *text) {
    const char *advice = strstr(text, "; keep it on the CPU");
    if (!advice) advice = strstr(text, "; call tf.sparse");
    return advice ? tare_arena_printf(s->arena, "%.*s)", (int)(advice - text), text) : text;
}

/* *whole: the TPU supports the function unchanged. Otherwise the first reason is stored. */
static tare_status check(bool *whole, struct splitter *s, struct tare_graph *function) {
    struct tare_tpu_finding *findings;
    size_t count;
    *whole = true;
    s->first_error = NULL;
    TARE_TRY(tare_tpu_check(&findings, &count, s->arena, s->model, &function, 1));
    for (size_t i = 0; i < count; i++) {
        if (findings[i].kind == TARE_TPU_SLOW_TYPE || (s->is_soft && !tare_tpu_finding_is_error(findings[i].kind)))
            continue;
        *whole = false;
        if (!s->first_error || findings[i].kind == TARE_TPU_NOT_COMPILABLE) s->first_error = findings[i].text;
        if (findings[i].kind == TARE_TPU_NOT_COMPILABLE) break;
    }
    if (s->first_error) s->first_error = without_advice(s, s->first_error);
    if (*whole) {
        const struct tare_node *node;
        TARE_TRY(find_row_decider(&node, s->arena, &function, 1));
        *whole = !node;
        if (node)
            s->first_error =
                tare_arena_printf(s->arena, "'tf.%s' has as many rows as values decide. (node '%s' in function %s)",
                                  node->op, node->name, node->graph->name);
    }
    return *whole || s->first_error ? TARE_OK : TARE_NO_MEMORY;
}

/* The function that does the work of a wrapper, which does nothing but call it, with constants and handles that the
 * function captured: methods of the object graph are such functions, and stay what the wrapper calls. */
static struct tare_graph *inside_wrapper(struct tare_graph *function) {
    struct tare_graph *callee = NULL;
    for (size_t i = 0; i < function->n_nodes; i++) {
        const struct tare_node *node = function->nodes[i];
        if (node->dead || !node->n_inputs || tare_node_is(node, "Identity")) continue;
        if (callee || (!tare_node_is(node, "PartitionedCall") && !tare_node_is(node, "StatefulPartitionedCall")))
            return function;
        callee = tare_node_function(node, "f");
        if (!callee) return function;
    }
    return callee ? inside_wrapper(callee) : function;
}

/* *whole: the TPU supports the function; otherwise its parts are choices. */
static tare_status split_unless_whole(bool *whole, struct task *task) {
    struct tare_graph *inner = inside_wrapper(task->graph);
    TARE_TRY(check(whole, task->s, task->graph));
    if (*whole) return TARE_OK;
    if (inner != task->graph) {
        if (tare_map_get(&task->s->seen, inner->name)) return TARE_OK;
        if (!tare_map_set(&task->s->seen, inner->name, inner)) return TARE_NO_MEMORY;
        task->graph = inner;
    }
    TARE_TRY(inline_refused(task));
    return split(task);
}

static tare_status split_signature(struct splitter *s, const struct tare_signature *signature) {
    struct tare_graph *function = tare_signature_function(signature);
    struct task task = { .s = s,
                         .graph = function,
                         .what = tare_arena_printf(s->arena, "signature '%s'", signature->key) };
    bool whole;
    if (!task.what) return TARE_NO_MEMORY;
    if (!function)
        return add_note(s, tare_arena_printf(s->arena,
                                             "%s stays on the CPU: its outputs do not come from one function call "
                                             "(wrap what it computes in a tf.function)",
                                             task.what));
    if (tare_map_get(&s->seen, function->name)) return TARE_OK;
    if (!tare_map_set(&s->seen, function->name, function)) return TARE_NO_MEMORY;
    TARE_TRY(split_unless_whole(&whole, &task));
    if (!whole) return TARE_OK;
    TARE_TRY(count_work(&task));
    if (task.all <= 0)
        return add_note(s, tare_arena_printf(s->arena, "%s stays on the CPU: its function %s computes nothing",
                                             task.what, function->name));
    TARE_TRY(add_choice(s, TARE_TPU_BY_SIGNATURE, signature->key));
    return add_note(s, tare_arena_printf(s->arena, "%s is placed on the TPU whole", task.what));
}

tare_status tare_tpu_split(struct tare_tpu_split *out, struct tare_arena *arena, struct tare_graph_model *model) {
    struct splitter s = { .out = out, .arena = arena, .model = model };
    tare_status status = tare_model_check_recursion(model);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < model->n_signatures && status == TARE_OK; i++)
        status =
            tare_error_prefix(split_signature(&s, &model->signatures[i]), "signature '%s'", model->signatures[i].key);
    tare_map_free(&s.seen);
    if (status != TARE_OK || out->count) return status;
    return TARE_FAIL(TARE_UNSUPPORTED, "nothing can be placed on the TPU: %s",
                     out->n_notes
                         ? out->notes[0]
                         : "the model has no signatures (name functions in tpu_functions, by function_alias or "
                           "concrete_function_name)");
}

/* ---- functions that the user named ---- */

static tare_status split_named(struct splitter *s, const struct tare_tpu_function *function) {
    struct task task = { .s = s,
                         .graph = function->graph,
                         .what = tare_arena_printf(s->arena, "function '%s'", function->label) };
    bool whole = true;
    if (!task.what) return TARE_NO_MEMORY;
    s->is_soft = function->choice->is_soft;
    if (s->is_soft) TARE_TRY(split_unless_whole(&whole, &task));
    return whole ? add_choice(s, TARE_TPU_BY_CONCRETE, function->graph->name) : TARE_OK;
}

tare_status tare_tpu_split_soft(struct tare_tpu_split *out, struct tare_arena *arena, struct tare_graph_model *model,
                                const struct tare_tpu_function *functions, size_t count) {
    struct splitter s = { .out = out, .arena = arena, .model = model };
    tare_status status = tare_model_check_recursion(model);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = tare_error_prefix(split_named(&s, &functions[i]), "function '%s'", functions[i].label);
    if (status != TARE_OK || out->count) return status;
    return TARE_FAIL(TARE_UNSUPPORTED, "nothing can be placed on the TPU: %s", out->notes[0]);
}
