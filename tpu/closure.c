/* Collects the functions that the chosen ones call, and separates them from those that are also called from outside.
 *
 * A member is shared when a node outside of the closure calls it, when a member calls it in a way that the closure does
 * not follow, or when a shared member calls it: the original of that one stays outside and keeps its calls. Shared
 * members that change are replaced by copies; the fixed point does not depend on the order of the visits. */
#include "tpu/closure.h"
#include "graph/calls.h"
#include "graph/clone.h"
#include "graph/graph_table.h"

#include <string.h>

tare_status tare_tpu_promised(struct tare_graph_table *out, const struct tare_graph_model *model) {
    for (size_t i = 0; i < model->n_aliases; i++) {
        struct tare_graph *function = tare_model_find_function(model, model->aliases[i].function);
        if (function && !tare_graph_table_set(out, function, function)) return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < model->n_concretes; i++)
        if (!tare_graph_table_set(out, model->concretes[i].graph, model->concretes[i].graph)) return TARE_NO_MEMORY;
    return TARE_OK;
}

static bool follows(const struct tare_tpu_closure *closure, const struct tare_node *call) {
    return !closure->rules.follows || closure->rules.follows(call);
}

/* ---- collecting ---- */

struct collector {
    struct tare_tpu_closure *closure;
    struct tare_arena *arena;
    const struct tare_graph *main;
    struct tare_graph_table known; /* function -> its place among the members, from 1 */
};

static tare_status append(struct tare_tpu_closure *closure, struct tare_arena *arena, struct tare_graph *graph,
                          bool is_entry) {
    if (closure->count == closure->capacity) {
        const size_t extra = closure->capacity ? closure->capacity : 16;
        struct tare_tpu_member *grown =
            tare_arena_extend(arena, closure->members, closure->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        closure->members = grown;
        closure->capacity += extra;
    }
    closure->members[closure->count++] = (struct tare_tpu_member){ graph, is_entry, false };
    return TARE_OK;
}

static tare_status add(struct collector *c, struct tare_graph *graph, bool is_entry) {
    struct tare_tpu_closure *closure = c->closure;
    const size_t place = (size_t)(uintptr_t)tare_graph_table_get(&c->known, graph);
    if (place) {
        closure->members[place - 1].is_entry |= is_entry;
        return TARE_OK;
    }
    TARE_TRY(append(closure, c->arena, graph, is_entry));
    return tare_graph_table_set(&c->known, graph, (void *)(uintptr_t)closure->count) ? TARE_OK : TARE_NO_MEMORY;
}

/* A function that the main graph calls belongs to a signature, and keeps its dtypes. */
static tare_status add_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct collector *c = arg;
    struct tare_call_site site;
    if (follows(c->closure, node)) return add(c, callee, node->graph == c->main);
    TARE_TRY(tare_call_site(&site, c->arena, node));
    return site.kind == TARE_CALL_OTHER ? TARE_OK : add(c, callee, true);
}

static tare_status add_callees(struct collector *c, const struct tare_graph *graph, const bool *served) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && (!served || served[i]))
            TARE_TRY(tare_node_each_function(graph->nodes[i], add_callee, c));
    return TARE_OK;
}

tare_status tare_tpu_closure_by(struct tare_tpu_closure *out, struct tare_arena *arena,
                                struct tare_graph *const *entries, size_t n_entries,
                                const struct tare_tpu_closure_rules *rules) {
    struct collector c = { .closure = out, .arena = arena };
    tare_status status = TARE_OK;
    *out = (struct tare_tpu_closure){ .rules = *rules };
    for (size_t i = 0; i < n_entries; i++) {
        c.main = entries[i]->model->main;
        TARE_CHECK(add(&c, entries[i], true));
    }
    for (size_t m = 0; m < out->count; m++) {
        bool *served = NULL;
        if (out->members[m].graph == c.main) TARE_CHECK(tare_model_served_nodes(&served, arena, c.main->model));
        TARE_CHECK(add_callees(&c, out->members[m].graph, served));
    }
done:
    tare_graph_table_free(&c.known);
    return status;
}

tare_status tare_tpu_closure(struct tare_tpu_closure *out, struct tare_arena *arena, struct tare_graph *const *entries,
                             size_t n_entries) {
    const struct tare_tpu_closure_rules rules = { 0 };
    return tare_tpu_closure_by(out, arena, entries, n_entries, &rules);
}

tare_status tare_tpu_closure_add_entry(struct tare_tpu_closure *closure, struct tare_arena *arena,
                                       struct tare_graph *graph) {
    return append(closure, arena, graph, true);
}

/* ---- callers from outside ---- */

struct sharing {
    struct tare_tpu_closure *closure;
    struct tare_graph_table members; /* by function */
    bool *shared;                    /* by member */
    struct tare_graph_table live;    /* functions that signatures and aliases reach, and the main graph */
    /* Functions that are called from outside; of those, from functions that something reaches. */
    struct tare_graph_table outer, outer_live;
    struct tare_graph_table promised;
    bool noting_live; /* the node looked at now is in such a function */
};

static tare_status start_sharing(struct sharing *sharing, struct tare_arena *arena) {
    struct tare_tpu_closure *closure = sharing->closure;
    const struct tare_graph_model *model = closure->members[0].graph->model;
    bool *live;
    TARE_TRY(tare_model_reachable_functions(&live, arena, model, true));
    TARE_TRY(tare_tpu_promised(&sharing->promised, model));
    sharing->shared = TARE_NEW_ARRAY(arena, bool, closure->count + 1);
    if (!sharing->shared || !tare_graph_table_set(&sharing->live, model->main, model->main)) return TARE_NO_MEMORY;
    for (size_t f = 0; f < model->n_functions; f++)
        if (live[f] && !tare_graph_table_set(&sharing->live, model->functions[f], model->functions[f]))
            return TARE_NO_MEMORY;
    for (size_t m = 0; m < closure->count; m++)
        if (!tare_graph_table_set(&sharing->members, closure->members[m].graph, &closure->members[m]))
            return TARE_NO_MEMORY;
    return TARE_OK;
}

static struct tare_tpu_member *find_member(const struct sharing *sharing, const struct tare_graph *graph) {
    return tare_graph_table_get(&sharing->members, graph);
}

static bool is_live(const struct sharing *sharing, const struct tare_graph *graph) {
    return tare_graph_table_get(&sharing->live, graph);
}

static tare_status add_outer(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct sharing *sharing = arg;
    (void)node;
    if (!tare_graph_table_set(&sharing->outer, callee, callee)) return TARE_NO_MEMORY;
    if (!sharing->noting_live) return TARE_OK;
    return tare_graph_table_set(&sharing->outer_live, callee, callee) ? TARE_OK : TARE_NO_MEMORY;
}

/* With `inside`, only the calls that the closure does not follow. */
static tare_status add_calls(struct sharing *sharing, const struct tare_graph *graph, bool inside, bool live) {
    sharing->noting_live = live;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || (inside && follows(sharing->closure, node))) continue;
        TARE_TRY(tare_node_each_function(node, add_outer, sharing));
    }
    return TARE_OK;
}

static tare_status add_outside(struct sharing *sharing, const struct tare_graph_model *model) {
    TARE_TRY(add_calls(sharing, model->main, find_member(sharing, model->main), true));
    for (size_t f = 0; f < model->n_functions; f++) {
        const struct tare_graph *graph = model->functions[f];
        TARE_TRY(add_calls(sharing, graph, find_member(sharing, graph), is_live(sharing, graph)));
    }
    return TARE_OK;
}

static bool is_shared(const struct sharing *sharing, const struct tare_graph *graph) {
    const bool promised = tare_graph_table_get(&sharing->promised, graph) != NULL;
    if (promised && sharing->closure->rules.wraps_promised) return tare_graph_table_get(&sharing->outer_live, graph);
    return promised || tare_graph_table_get(&sharing->outer, graph);
}

static tare_status find_shared(struct sharing *sharing, const struct tare_graph_model *model) {
    struct tare_tpu_closure *closure = sharing->closure;
    bool changed = true;
    TARE_TRY(add_outside(sharing, model));
    while (changed) {
        changed = false;
        for (size_t m = 0; m < closure->count; m++) {
            const struct tare_tpu_member *member = &closure->members[m];
            if (member->is_entry || sharing->shared[m] || !is_shared(sharing, member->graph)) continue;
            sharing->shared[m] = changed = true;
            TARE_TRY(add_calls(sharing, member->graph, false, is_live(sharing, member->graph)));
        }
    }
    return TARE_OK;
}

/* ---- copies ---- */

/* The callers of a changed function also change, because they call a different function. */
static tare_status change_caller(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    const struct tare_tpu_member *member = find_member(arg, callee);
    struct tare_tpu_member *caller = find_member(arg, node->graph);
    if (member && member->changes && caller) caller->changes = true;
    return TARE_OK;
}

static tare_status spread_changes(struct sharing *sharing) {
    const struct tare_tpu_closure *closure = sharing->closure;
    size_t before, after = 0;
    do {
        before = after;
        after = 0;
        for (size_t m = closure->count; m-- > 0;) {
            const struct tare_graph *graph = closure->members[m].graph;
            for (size_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i]->dead) TARE_TRY(tare_node_each_function(graph->nodes[i], change_caller, sharing));
        }
        for (size_t m = 0; m < closure->count; m++)
            after += closure->members[m].changes;
    } while (after != before);
    return TARE_OK;
}

static tare_status rename_attr(struct tare_node *node, struct tare_attr *attr, const struct tare_map *renamed) {
    union tare_attr_item *items = NULL;
    if (attr->kind != TARE_ATTR_FUNC) return TARE_OK;
    for (size_t i = 0; i < attr->count; i++) {
        const struct tare_graph *to = attr->items[i].func.name ? tare_map_get(renamed, attr->items[i].func.name) : NULL;
        if (!to) continue;
        if (!items) { /* items may be shared with the node that this one was copied from */
            items = tare_arena_extend(&node->graph->model->arena, attr->items, attr->count, 0, sizeof *items);
            if (!items) return TARE_NO_MEMORY;
            attr->items = items;
            attr->origin = NULL;
        }
        items[i].func.name = to->name;
    }
    return TARE_OK;
}

tare_status tare_tpu_closure_redirect(const struct tare_tpu_closure *closure, const struct tare_map *renamed) {
    for (size_t m = 0; m < closure->count; m++) {
        const struct tare_graph *graph = closure->members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_node *node = graph->nodes[i];
            const struct tare_graph *to = node->def ? NULL : tare_map_get(renamed, node->op);
            if (node->dead || !follows(closure, node)) continue;
            if (to) node->op = to->name;
            for (size_t a = 0; a < node->n_attrs; a++)
                TARE_TRY(rename_attr(node, &node->attrs[a], renamed));
        }
    }
    return TARE_OK;
}

/* A method that only TPU functions called has no other caller than the loader then, and stays. */
static tare_status copy_member(struct tare_tpu_member *member, const char *suffix, struct tare_map *renamed) {
    struct tare_graph_model *model = member->graph->model;
    const char *stem = tare_arena_printf(&model->arena, "%s%s", member->graph->name, suffix ? suffix : "_on_tpu");
    const char *name = stem ? tare_model_unused_name(model, stem) : NULL;
    const char *before = member->graph->name;
    if (!name) return TARE_NO_MEMORY;
    tare_model_keep_method(model, member->graph);
    TARE_TRY(tare_function_clone(&member->graph, member->graph, name));
    return tare_map_set(renamed, before, member->graph) ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_tpu_closure_own(struct tare_tpu_closure *closure, struct tare_arena *arena, size_t *copies) {
    struct sharing sharing = { .closure = closure };
    struct tare_map renamed = { 0 };
    tare_status status;
    *copies = 0;
    if (!closure->count) return TARE_OK;
    TARE_CHECK(start_sharing(&sharing, arena));
    TARE_CHECK(spread_changes(&sharing));
    TARE_CHECK(find_shared(&sharing, closure->members[0].graph->model));
    for (size_t m = 0; m < closure->count; m++) {
        if (!sharing.shared[m] || !closure->members[m].changes) continue;
        TARE_CHECK(copy_member(&closure->members[m], closure->rules.suffix, &renamed));
        ++*copies;
    }
    if (*copies) status = tare_tpu_closure_redirect(closure, &renamed);
done:
    tare_map_free(&renamed);
    tare_graph_table_free(&sharing.members);
    tare_graph_table_free(&sharing.live);
    tare_graph_table_free(&sharing.outer);
    tare_graph_table_free(&sharing.outer_live);
    tare_graph_table_free(&sharing.promised);
    return status;
}
