/* Variables that only bfloat16 computation reads are stored as bfloat16: half the checkpoint, half the memory of the
 * TPU, and no cast after the read. Runs after the rewriting, which produces reads all of whose users are casts.
 *
 * Handles are passed through captures, calls, branches and loops. Every resource edge is a slot; slots that may refer
 * to the same variable form one class (union-find), and a class changes as a whole or not at all. */
#include "base/map.h"
#include "graph/calls.h"
#include "graph/object_index.h"
#include "base/tensor/spill.h"
#include "graph/graphs.h"
#include "tpu/bfloat16_internal.h"

#include <string.h>

struct slot {
    struct tare_edge edge; /* its bytes are the slot's key */
    struct slot *parent;   /* itself: the representative of its class */
    bool refused;          /* of the class: some node needs float32, or writes */
    bool narrowed;         /* of the class: some node reads it, and casts */
    bool holds;            /* of the class: it contains a variable */
    struct slot *next;
};

struct sorter {
    struct tare_arena *arena;
    struct tare_graph_model *model;
    struct tare_map by_edge;
    struct tare_map by_name; /* shared name -> slot of the first variable called so */
    const struct tare_bfloat16_options *options;
    struct tare_map jobs; /* the graphs that are converted, by the bytes of their address */
    struct slot *slots;
};

/* ---- classes ---- */

static bool is_handle(struct tare_edge edge) {
    return edge.node && edge.index >= 0 && (size_t)edge.index < edge.node->n_outputs &&
           edge.node->output_dtypes[edge.index] == TARE_DT_RESOURCE;
}

static struct slot *class_of(struct slot *slot) {
    while (slot->parent != slot) {
        slot->parent = slot->parent->parent;
        slot = slot->parent;
    }
    return slot;
}

/* The slot of an edge; NULL if out of memory. */
static struct slot *slot_of(struct sorter *s, struct tare_edge edge) {
    struct tare_edge key;
    struct slot *slot;
    memset(&key, 0, sizeof key); /* padding, too */
    key.node = edge.node;
    key.index = edge.index;
    slot = tare_map_get_n(&s->by_edge, (const char *)&key, sizeof key);
    if (slot) return slot;
    slot = TARE_NEW(s->arena, struct slot);
    if (!slot) return NULL;
    memcpy(&slot->edge, &key, sizeof key);
    slot->parent = slot;
    slot->next = s->slots;
    s->slots = slot;
    return tare_map_set_n(&s->by_edge, (const char *)&slot->edge, sizeof slot->edge, slot) ? slot : NULL;
}

static void join_slots(struct slot *a, struct slot *b) {
    a = class_of(a);
    b = class_of(b);
    if (a == b) return;
    b->parent = a;
    a->refused |= b->refused;
    a->narrowed |= b->narrowed;
    a->holds |= b->holds;
}

/* Both may refer to the same variable. Edges that are not handles are ignored. */
static tare_status join(struct sorter *s, struct tare_edge a, struct tare_edge b) {
    struct slot *x, *y;
    if (!is_handle(a) || !is_handle(b)) return TARE_OK;
    x = slot_of(s, a);
    y = slot_of(s, b);
    if (!x || !y) return TARE_NO_MEMORY;
    join_slots(x, y);
    return TARE_OK;
}

static tare_status refuse(struct sorter *s, struct tare_edge edge) {
    struct slot *slot = slot_of(s, edge);
    if (!slot) return TARE_NO_MEMORY;
    class_of(slot)->refused = true;
    return TARE_OK;
}

/* ---- calls ---- */

static struct tare_edge arg_of(const struct tare_graph *graph, size_t i) {
    return (struct tare_edge){ i < graph->n_args ? graph->args[i] : NULL, 0 };
}

static tare_status join_call(struct sorter *s, struct tare_node *node, const struct tare_call_site *site) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        for (size_t i = 0; i < site->n_args; i++)
            TARE_TRY(join(s, node->inputs[site->first + i], arg_of(callee, i)));
        for (size_t i = 0; i < callee->n_returns; i++)
            TARE_TRY(join(s, callee->returns[i].edge, (struct tare_edge){ node, (int)i }));
    }
    for (size_t i = 0; site->kind == TARE_CALL_LOOP && i < node->n_inputs; i++)
        TARE_TRY(join(s, node->inputs[i], (struct tare_edge){ node, (int)i }));
    return TARE_OK;
}

/* ---- reads ---- */

static bool is_read(const struct tare_node *node) {
    static const char *const ops[] = { "ReadVariableOp", "ResourceGather", "ResourceGatherNd" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tare_node_is(node, ops[i])) return node->n_inputs > 0 && node->n_outputs == 1;
    return false;
}

static bool uses_no_value(const struct tare_node *node) {
    static const char *const ops[] = { "VariableShape", "VarIsInitializedOp", "DisableCopyOnRead", "NoOp" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tare_node_is(node, ops[i])) return true;
    return false;
}

static bool narrows(const struct tare_node *node) {
    return tare_node_is(node, "Cast") && node->n_inputs == 1 && node->output_dtypes[0] == TARE_DT_BFLOAT16;
}

/* How the reads of one graph are used, by position: NARROWED where every user casts to bfloat16. */
enum use { UNUSED, NARROWED, KEPT };

static void note_use(enum use *uses, struct tare_edge edge, const struct tare_graph *graph, bool casts) {
    if (!edge.node || edge.node->graph != graph || tare_node_is(edge.node, "_Arg") || !is_read(edge.node)) return;
    if (uses[edge.node->position] != KEPT) uses[edge.node->position] = casts ? NARROWED : KEPT;
}

static enum use *uses_of_reads(const struct sorter *s, const struct tare_graph *graph) {
    const struct tare_graph_model *model = s->model;
    enum use *uses = TARE_NEW_ARRAY(s->arena, enum use, graph->n_nodes + 1);
    if (!uses) return NULL;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; !graph->nodes[i]->dead && k < graph->nodes[i]->n_inputs; k++)
            note_use(uses, graph->nodes[i]->inputs[k], graph, narrows(graph->nodes[i]));
    for (size_t i = 0; i < graph->n_returns; i++)
        note_use(uses, graph->returns[i].edge, graph, false);
    for (size_t i = 0; graph == model->main && i < model->n_signatures; i++)
        for (size_t k = 0; k < model->signatures[i].n_outputs; k++)
            note_use(uses, model->signatures[i].outputs[k].edge, graph, false);
    return uses;
}

/* ---- sorting ---- */

/* The handles that an op such as Switch or IdentityN passes on are those of its operands, which are refused. */
static tare_status refuse_results(struct sorter *s, struct tare_node *node) {
    bool passes_on = false;
    for (size_t k = 0; k < node->n_inputs; k++)
        passes_on |= is_handle(node->inputs[k]);
    for (size_t i = 0; passes_on && !tare_node_is(node, "Identity") && i < node->n_outputs; i++) {
        const struct tare_edge result = { node, (int)i };
        if (is_handle(result)) TARE_TRY(refuse(s, result));
    }
    return TARE_OK;
}

static tare_status sort_node(struct sorter *s, struct tare_node *node, const enum use *uses) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, s->arena, node));
    if (site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER) return join_call(s, node, &site);
    for (size_t k = 0; k < node->n_inputs; k++) {
        struct slot *slot;
        if (!is_handle(node->inputs[k]) || uses_no_value(node)) continue;
        if (tare_node_is(node, "Identity")) {
            TARE_TRY(join(s, node->inputs[k], (struct tare_edge){ node, 0 }));
            continue;
        }
        slot = slot_of(s, node->inputs[k]);
        if (!slot) return TARE_NO_MEMORY;
        slot = class_of(slot);
        if (!is_read(node) || k != 0 || uses[node->position] == KEPT || tare_bf16_is_filtered(s->options, node->op))
            slot->refused = true;
        else
            slot->narrowed |= uses[node->position] == NARROWED;
    }
    return is_read(node) ? TARE_OK : refuse_results(s, node);
}

/* Outside of the converted graphs, every read is a float32 read: casts there belong to the model. */
static tare_status sort_graph(struct sorter *s, const struct tare_graph *graph, const bool *served, bool converted) {
    enum use *uses = uses_of_reads(s, graph);
    if (!uses) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!converted) uses[i] = KEPT;
        if (!graph->nodes[i]->dead && (!served || served[i])) TARE_TRY(sort_node(s, graph->nodes[i], uses));
    }
    return TARE_OK;
}

static tare_status sort_variables(struct sorter *s) {
    for (size_t i = 0; i < s->model->n_variables; i++) {
        const struct tare_variable *variable = &s->model->variables[i];
        struct slot *slot, *other;
        if (variable->removed || !variable->node || !tare_node_is(variable->node, "VarHandleOp")) continue;
        slot = slot_of(s, (struct tare_edge){ variable->node, 0 });
        if (!slot) return TARE_NO_MEMORY;
        other = tare_map_get(&s->by_name, variable->shared_name);
        if (other) join_slots(other, slot);
        if (!other && !tare_map_set(&s->by_name, variable->shared_name, slot)) return TARE_NO_MEMORY;
        slot = class_of(slot);
        slot->holds = true;
        slot->refused |= variable->dtype != TARE_DT_FLOAT || variable->value.dtype != TARE_DT_FLOAT;
    }
    return TARE_OK;
}

static tare_status sort_captures_of(struct sorter *s, const struct tare_concrete *concrete,
                                    const struct tare_map *by_object) {
    if (concrete->n_bound > concrete->graph->n_args) return TARE_OK;
    const size_t first = concrete->graph->n_args - concrete->n_bound;
    for (size_t b = 0; b < concrete->n_bound; b++)
        for (const struct tare_object_variable *object = tare_object_variables(by_object, concrete->bound[b]); object;
             object = object->next)
            if (object->variable->node)
                TARE_TRY(join(s, (struct tare_edge){ object->variable->node, 0 }, arg_of(concrete->graph, first + b)));
    return TARE_OK;
}

/* A loader binds the captures of promised functions by object ids. */
static tare_status sort_captures(struct sorter *s) {
    struct tare_map by_object = { 0 };
    tare_status status = tare_model_index_objects(&by_object, s->arena, s->model);
    for (size_t c = 0; c < s->model->n_concretes && status == TARE_OK; c++)
        status = sort_captures_of(s, &s->model->concretes[c], &by_object);
    tare_map_free(&by_object);
    return status;
}

/* A handle that a signature returns may have readers outside of the model. */
static tare_status sort_signatures(struct sorter *s) {
    for (size_t i = 0; i < s->model->n_signatures; i++)
        for (size_t k = 0; k < s->model->signatures[i].n_outputs; k++)
            if (is_handle(s->model->signatures[i].outputs[k].edge))
                TARE_TRY(refuse(s, s->model->signatures[i].outputs[k].edge));
    return TARE_OK;
}

static tare_status sort(struct sorter *s, const struct tare_bf16_job *jobs, size_t n_jobs) {
    struct tare_graph_model *model = s->model;
    bool *live, *served;
    for (size_t j = 0; j < n_jobs; j++)
        if (!tare_map_set_n(&s->jobs, (const char *)&jobs[j].graph, sizeof jobs[j].graph, jobs[j].graph))
            return TARE_NO_MEMORY;
    TARE_TRY(tare_model_reachable_functions(&live, s->arena, model, true));
    TARE_TRY(tare_model_served_nodes(&served, s->arena, model));
    for (size_t f = 0; f <= model->n_functions; f++) {
        const struct tare_graph *graph = tare_model_graph(model, f);
        const bool converted = tare_map_get_n(&s->jobs, (const char *)&graph, sizeof graph);
        if (f && !live[f - 1] && !converted) continue;
        TARE_TRY(sort_graph(s, graph, f ? NULL : served, converted));
    }
    TARE_TRY(sort_variables(s));
    TARE_TRY(sort_captures(s));
    return sort_signatures(s);
}

/* ---- changing ---- */

static bool changes(struct sorter *s, struct tare_edge handle) {
    struct slot *slot = slot_of(s, handle);
    if (slot) slot = class_of(slot);
    return slot && slot->holds && slot->narrowed && !slot->refused;
}

/* Rounded values stay in memory up to a bound; beyond it, unnamed files store them until they are written. */
static tare_status round_value(struct tare_variable *variable, const struct tare_bfloat16_options *options,
                               size_t *in_memory) {
    enum { MOST_IN_MEMORY = 64 << 20, SMALL = 1 << 12 };
    struct tare_tensor rounded;
    size_t bytes;
    TARE_TRY(tare_bf16_round(&rounded, &variable->value));
    if (options->forget) options->forget(&variable->value);
    tare_tensor_reset(&variable->value);
    bytes = tare_tensor_bytes(&rounded);
    if (*in_memory + bytes > MOST_IN_MEMORY && bytes > SMALL && !rounded.splat)
        tare_tensor_spill(&rounded);
    else
        *in_memory += bytes;
    variable->value = rounded;
    return TARE_OK;
}

static tare_status change_variable(struct tare_variable *variable, const struct tare_bfloat16_options *options,
                                   size_t *in_memory) {
    TARE_TRY(tare_error_prefix(round_value(variable, options, in_memory), "variable %s", variable->shared_name));
    variable->dtype = TARE_DT_BFLOAT16;
    variable->node->graph->model->retyped = true;
    TARE_TRY(tare_node_set_type(variable->node, "dtype", TARE_DT_BFLOAT16));
    return TARE_OK;
}

/* The read returns bfloat16, and its casts are removed. */
static tare_status change_reads(struct sorter *s, const struct tare_bf16_job *job, size_t *count) {
    struct tare_graph *graph = job->graph;
    bool *served = NULL; /* of the main graph: its saver and the initial values of variables are written anew */
    if (graph == s->model->main) TARE_TRY(tare_model_served_nodes(&served, s->arena, s->model));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || (served && !served[i])) continue;
        if (!is_read(node) || node->output_dtypes[0] != TARE_DT_FLOAT || !changes(s, node->inputs[0])) continue;
        TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_BFLOAT16));
        tare_node_remove_attr(node, "_output_shapes");
        TARE_TRY(tare_node_resolve(node));
        ++*count;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        struct tare_edge from = node->n_inputs ? node->inputs[0] : (struct tare_edge){ NULL, 0 };
        if (node->dead || !narrows(node) || !is_read(from.node) || tare_edge_dtype(from) != TARE_DT_BFLOAT16) continue;
        tare_graph_replace_uses(graph, (struct tare_edge){ node, 0 }, from, NULL);
        tare_node_remove(node);
    }
    tare_graph_sweep(graph);
    return TARE_OK;
}

static tare_status change(struct sorter *s, const struct tare_bf16_job *jobs, size_t n_jobs,
                          const struct tare_bfloat16_options *options, size_t *count) {
    size_t in_memory = 0;
    for (size_t j = 0; j < n_jobs; j++)
        TARE_TRY(change_reads(s, &jobs[j], count));
    for (size_t i = 0; i < s->model->n_variables; i++) {
        struct tare_variable *variable = &s->model->variables[i];
        if (variable->removed || !variable->node || !tare_node_is(variable->node, "VarHandleOp") ||
            !changes(s, (struct tare_edge){ variable->node, 0 }))
            continue;
        TARE_TRY(change_variable(variable, options, &in_memory));
        ++*count;
    }
    return TARE_OK;
}

tare_status tare_bf16_variables(const struct tare_bf16_job *jobs, size_t n_jobs, struct tare_graph_model *model,
                                const struct tare_bfloat16_options *options, size_t *count) {
    struct tare_arena arena = { 0 };
    struct sorter s = { .arena = &arena, .model = model, .options = options };
    tare_status status = TARE_OK;
    if (tare_bf16_is_filtered(options, "VarHandleOp")) return TARE_OK;
    status = sort(&s, jobs, n_jobs);
    if (status == TARE_OK) status = change(&s, jobs, n_jobs, options, count);
    tare_map_free(&s.by_edge);
    tare_map_free(&s.by_name);
    tare_map_free(&s.jobs);
    tare_arena_free(&arena);
    return status;
}
