/* Collecting the functions below the chosen ones, and parting them from everybody else's. */
#include "tpu/closure.h"
#include "graph/clone.h"

#include <string.h>

static struct tare_tpu_member *find(const struct tare_tpu_closure *closure, const struct tare_graph *graph) {
    for (size_t i = 0; i < closure->count; i++)
        if (closure->members[i].graph == graph) return &closure->members[i];
    return NULL;
}

/* ---- collecting ---- */

struct collector {
    struct tare_tpu_closure *closure;
    struct tare_arena *arena;
    struct tare_map known;
    size_t capacity;
};

static tare_status add(struct collector *c, struct tare_graph *graph, bool is_entry) {
    struct tare_tpu_closure *closure = c->closure;
    if (tare_map_get(&c->known, graph->name)) return TARE_OK;
    if (closure->count == c->capacity) {
        size_t extra = c->capacity ? c->capacity : 16;
        struct tare_tpu_member *grown =
            tare_arena_extend(c->arena, closure->members, closure->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        closure->members = grown;
        c->capacity += extra;
    }
    closure->members[closure->count++] = (struct tare_tpu_member){ graph, is_entry, false };
    return tare_map_set(&c->known, graph->name, graph) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    (void)node;
    return add(arg, callee, false);
}

tare_status tare_tpu_closure(struct tare_tpu_closure *out, struct tare_arena *arena, struct tare_graph *const *entries,
                             size_t n_entries) {
    struct collector c = { .closure = out, .arena = arena };
    tare_status status = TARE_OK;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n_entries; i++)
        TARE_CHECK(add(&c, entries[i], true));
    for (size_t m = 0; m < out->count; m++) {
        const struct tare_graph *graph = out->members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_CHECK(tare_node_each_function(graph->nodes[i], add_callee, &c));
    }
done:
    tare_map_free(&c.known);
    return status;
}

/* ---- who else calls them ---- */

struct sharing {
    struct tare_tpu_closure *closure;
    bool *shared;          /* by member */
    struct tare_map outer; /* names of functions that nodes outside of the closure call */
};

static tare_status note_outer(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct sharing *sharing = arg;
    (void)node;
    return tare_map_set(&sharing->outer, callee->name, callee) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status note_calls(struct sharing *sharing, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead) TARE_TRY(tare_node_each_function(graph->nodes[i], note_outer, sharing));
    return TARE_OK;
}

static bool is_promised(const struct tare_model *model, const struct tare_graph *graph) {
    if (tare_model_alias_of(model, graph->name)) return true;
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph == graph) return true;
    return false;
}

/* Shared is what somebody outside calls, and what a shared member calls: its original stays outside. */
static tare_status find_shared(struct sharing *sharing, struct tare_arena *arena, const struct tare_model *model) {
    struct tare_tpu_closure *closure = sharing->closure;
    struct tare_map inside = { 0 };
    tare_status status = TARE_OK;
    bool changed = true;
    sharing->shared = TARE_NEW_ARRAY(arena, bool, closure->count + 1);
    if (!sharing->shared) return TARE_NO_MEMORY;
    for (size_t m = 0; m < closure->count; m++) {
        struct tare_graph *graph = closure->members[m].graph;
        if (!tare_map_set(&inside, graph->name, graph)) TARE_CHECK(TARE_NO_MEMORY);
    }
    TARE_CHECK(note_calls(sharing, model->main));
    for (size_t f = 0; f < model->n_functions; f++)
        if (!tare_map_get(&inside, model->functions[f]->name)) TARE_CHECK(note_calls(sharing, model->functions[f]));
    while (changed) {
        changed = false;
        for (size_t m = 0; m < closure->count; m++) {
            const struct tare_tpu_member *member = &closure->members[m];
            if (member->is_entry || sharing->shared[m]) continue;
            if (!tare_map_get(&sharing->outer, member->graph->name) && !is_promised(model, member->graph)) continue;
            sharing->shared[m] = changed = true;
            TARE_CHECK(note_calls(sharing, member->graph));
        }
    }
done:
    tare_map_free(&inside);
    return status;
}

/* ---- copies ---- */

/* A caller of something that changes changes itself: it calls another function then. */
static tare_status note_change(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    const struct tare_tpu_member *member = find(arg, callee);
    struct tare_tpu_member *caller = find(arg, node->graph);
    if (member && member->changes && caller) caller->changes = true;
    return TARE_OK;
}

static tare_status spread_changes(struct tare_tpu_closure *closure) {
    size_t before, after = 0;
    do {
        before = after;
        after = 0;
        for (size_t m = closure->count; m-- > 0;) {
            const struct tare_graph *graph = closure->members[m].graph;
            for (size_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i]->dead) TARE_TRY(tare_node_each_function(graph->nodes[i], note_change, closure));
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

static tare_status redirect(const struct tare_tpu_closure *closure, const struct tare_map *renamed) {
    for (size_t m = 0; m < closure->count; m++) {
        const struct tare_graph *graph = closure->members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            struct tare_node *node = graph->nodes[i];
            const struct tare_graph *to = node->def ? NULL : tare_map_get(renamed, node->op);
            if (node->dead) continue;
            if (to) node->op = to->name;
            for (size_t a = 0; a < node->n_attrs; a++)
                TARE_TRY(rename_attr(node, &node->attrs[a], renamed));
        }
    }
    return TARE_OK;
}

static tare_status copy_member(struct tare_tpu_member *member, struct tare_map *renamed) {
    struct tare_model *model = member->graph->model;
    const char *stem = tare_arena_printf(&model->arena, "%s_on_tpu", member->graph->name);
    const char *name = stem ? tare_model_unused_name(model, stem) : NULL;
    const char *before = member->graph->name;
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(tare_function_clone(&member->graph, member->graph, name));
    return tare_map_set(renamed, before, member->graph) ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_tpu_closure_own(struct tare_tpu_closure *closure, struct tare_arena *arena, size_t *copies) {
    struct sharing sharing = { .closure = closure };
    struct tare_map renamed = { 0 };
    tare_status status;
    *copies = 0;
    if (!closure->count) return TARE_OK;
    TARE_CHECK(spread_changes(closure));
    TARE_CHECK(find_shared(&sharing, arena, closure->members[0].graph->model));
    for (size_t m = 0; m < closure->count; m++) {
        if (!sharing.shared[m] || !closure->members[m].changes) continue;
        TARE_CHECK(copy_member(&closure->members[m], &renamed));
        ++*copies;
    }
    if (*copies) status = redirect(closure, &renamed);
done:
    tare_map_free(&renamed);
    tare_map_free(&sharing.outer);
    return status;
}
