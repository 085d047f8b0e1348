/* Following restore operations.
 *
 * Starting at each assignment (or table import) that the saver's restore operation runs, the assigned value is followed
 * back to a RestoreV2 whose key names are constants, and the assigned handle to a node of the main graph. Both walks
 * pass through Identity and Reshape, out of functions by their arguments and into them by their returns; a stack of
 * frames records the calls entered. The work is bounded (the limits below), because functions of a damaged or hostile
 * model may call each other exponentially often. */
#include "convert/import/restores.h"
#include "convert/import/edges.h"

enum {
    LONGEST_WAY = 256,   /* steps from an assignment to its value; a damaged graph may have cycles */
    DEEPEST_CALL = 8,    /* nesting of calls */
    MOST_NODES = 1 << 18 /* visited in functions, which may call each other exponentially often */
};

struct text_place {
    const struct tare_tensor *texts;
    int64_t k;
};

struct walk {
    struct tare_graph_model *model;
    struct tare_arena *arena;
    struct tare_arena frames; /* for one node */
    struct tare_map texts;    /* struct text_place -> the string, stored once */
    struct tare_map known;    /* bytes of a struct tare_restore: already listed */
    struct tare_map plain;    /* functions that restore nothing themselves */
    struct tare_restores *out;
    size_t nodes_left;
    int depth_left;
    bool only_gaps; /* the restore operation itself has been followed */
};

/* A call that was entered; NULL: the main graph. */
struct frame {
    const struct tare_node *call;
    const struct frame *parent;
};

struct place {
    struct tare_edge edge;
    const struct frame *frame;
};

/* ---- one value ---- */

/* Into the function that computes the value. */
static tare_status step_into(struct place *at, struct tare_arena *arena, const struct tare_graph *function) {
    struct frame *frame = TARE_NEW(arena, struct frame);
    if (!frame) return TARE_NO_MEMORY;
    *frame = (struct frame){ at->edge.node, at->frame };
    at->edge = function->returns[at->edge.index].edge;
    at->frame = frame;
    return TARE_OK;
}

/* Follows a value to its producer: through nodes that forward it, out of functions by their arguments and into them by
 * their returns. node is NULL if the limit was reached. */
static tare_status origin_of(struct place *at, struct tare_arena *arena) {
    for (int steps = 0; at->edge.node && steps < LONGEST_WAY; steps++) {
        const struct tare_node *node = at->edge.node;
        const struct tare_graph *function;
        if (node->n_inputs && (tare_node_is(node, "Identity") || tare_node_is(node, "Reshape"))) {
            at->edge = node->inputs[0];
        } else if (tare_node_is(node, "_Arg") && at->frame && node->position < at->frame->call->n_inputs) {
            at->edge = at->frame->call->inputs[node->position];
            at->frame = at->frame->parent;
        } else {
            function = tare_node_function(node, "f");
            if (!function || at->edge.index < 0 || (size_t)at->edge.index >= function->n_returns) return TARE_OK;
            TARE_TRY(step_into(at, arena, function));
        }
    }
    at->edge.node = NULL;
    return TARE_OK;
}

static tare_status text_once(const char **out, struct walk *walk, const struct tare_str *text,
                             struct text_place place) {
    const struct text_place *key;
    *out = tare_map_get_n(&walk->texts, (const char *)&place, sizeof place);
    if (*out) return TARE_OK;
    *out = tare_arena_strndup(&walk->model->arena, text->data, text->size);
    key = tare_arena_extend(walk->arena, &place, 1, 0, sizeof place);
    if (!*out || !key || !tare_map_set_n(&walk->texts, (const char *)key, sizeof *key, (char *)(uintptr_t)*out))
        return TARE_NO_MEMORY;
    return TARE_OK;
}

/* The k-th string of a constant; *out is NULL if there is none. */
static tare_status constant_text(const char **out, struct walk *walk, struct place at, int k) {
    const struct tare_tensor *texts;
    const struct tare_str *text;
    *out = NULL;
    TARE_TRY(origin_of(&at, &walk->frames));
    texts = at.edge.node ? tare_edge_constant(at.edge) : NULL;
    if (!texts || texts->dtype != TARE_DT_STRING || k >= texts->elements) return TARE_OK;
    text = &TARE_CONST_DATA(struct tare_str, texts)[texts->splat ? 0 : k];
    *out = "";
    if (!text->size) return TARE_OK;
    return text_once(out, walk, text, (struct text_place){ texts, texts->splat ? 0 : k });
}

/* Output k of RestoreV2 is the tensor with the k-th of its constant names, or the slice of it given by its k-th slice
 * specification. out->key is NULL if the value comes from elsewhere. */
static tare_status restored_from(struct tare_restored *out, struct walk *walk, struct tare_edge edge,
                                 const struct frame *frame) {
    struct place at = { edge, frame };
    *out = (struct tare_restored){ NULL, NULL };
    TARE_TRY(origin_of(&at, &walk->frames));
    if (!tare_node_is(at.edge.node, "RestoreV2") || at.edge.node->n_inputs < 3) return TARE_OK;
    TARE_TRY(constant_text(&out->key, walk, (struct place){ at.edge.node->inputs[1], at.frame }, at.edge.index));
    if (!out->key) return TARE_OK;
    TARE_TRY(constant_text(&out->slice, walk, (struct place){ at.edge.node->inputs[2], at.frame }, at.edge.index));
    if (out->slice && !*out->slice) out->slice = NULL;
    return TARE_OK;
}

/* ---- what is restored ---- */

static bool assigns(const struct tare_node *node) {
    return (tare_node_is(node, "AssignVariableOp") || tare_node_is(node, "Assign")) && node->n_inputs >= 2;
}

static bool imports(const struct tare_node *node) {
    return (tare_node_is(node, "LookupTableImportV2") || tare_node_is(node, "LookupTableImport")) &&
           node->n_inputs >= 3;
}

static tare_status add(struct walk *walk, const struct tare_restore *item) {
    struct tare_restores *out = walk->out;
    const struct tare_restore *key;
    if (tare_map_get_n(&walk->known, (const char *)item, sizeof *item))
        return TARE_OK; /* equal strings have one address */
    key = tare_arena_extend(walk->arena, item, 1, 0, sizeof *item);
    if (!key || !tare_map_set_n(&walk->known, (const char *)key, sizeof *key, walk)) return TARE_NO_MEMORY;
    if (out->count == out->capacity) {
        size_t extra = out->count + 64;
        struct tare_restore *grown = tare_arena_extend(walk->arena, out->items, out->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        out->items = grown;
        out->capacity = out->count + extra;
    }
    out->items[out->count++] = *item;
    return TARE_OK;
}

static tare_status note(struct walk *walk, const struct tare_node *node, const struct frame *frame) {
    bool table = imports(node);
    struct tare_restore item = { 0 };
    struct place target = { node->inputs[0], frame };
    TARE_TRY(restored_from(&item.value, walk, node->inputs[table ? 2 : 1], frame));
    if (!item.value.key) return TARE_OK;
    if (table) {
        TARE_TRY(restored_from(&item.keys, walk, node->inputs[1], frame));
        if (!item.keys.key) return TARE_OK;
    }
    TARE_TRY(origin_of(&target, &walk->frames));
    item.target = target.edge.node;
    if (!item.target || item.target->graph != walk->model->main) return TARE_OK;
    return add(walk, &item);
}

/* Most functions have no assignment, and many are called often: each is scanned once. */
static bool restores_nothing(struct walk *walk, const struct tare_graph *function) {
    if (tare_map_get(&walk->plain, function->name)) return true;
    for (size_t i = 0; i < function->n_nodes; i++)
        if (assigns(function->nodes[i]) || imports(function->nodes[i])) return false;
    return tare_map_set(&walk->plain, function->name, walk);
}

static tare_status visit(struct walk *walk, const struct tare_node *node, const struct frame *frame) {
    const struct tare_graph *function = tare_node_function(node, "f");
    struct frame inside = { node, frame };
    tare_status status = TARE_OK;
    if (!function) {
        if (assigns(node) || imports(node)) status = note(walk, node, frame);
        tare_arena_reset(&walk->frames);
        return status;
    }
    if (walk->depth_left <= 0 || (walk->only_gaps && restores_nothing(walk, function))) return TARE_OK;
    walk->depth_left--;
    for (size_t i = 0; i < function->n_nodes && status == TARE_OK && walk->nodes_left; i++) {
        walk->nodes_left--;
        status = visit(walk, function->nodes[i], &inside);
    }
    walk->depth_left++;
    return status;
}

/* Every node that the restore operation depends on, once each. */
static tare_status visit_closure(struct walk *walk, struct tare_node *restore) {
    struct tare_arena arena = { 0 };
    size_t count = walk->model->main->n_nodes, depth = 0;
    bool *seen = TARE_NEW_ARRAY(&arena, bool, count + 1);
    struct tare_node **stack = TARE_NEW_ARRAY(&arena, struct tare_node *, count + 1);
    tare_status status = seen && stack ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) {
        stack[depth++] = restore;
        seen[restore->position] = true;
    }
    while (depth && status == TARE_OK) {
        struct tare_node *node = stack[--depth];
        status = visit(walk, node, NULL);
        for (size_t i = 0; i < node->n_inputs + node->n_controls; i++) {
            struct tare_node *before = i < node->n_inputs ? node->inputs[i].node : node->controls[i - node->n_inputs];
            if (seen[before->position]) continue;
            seen[before->position] = true;
            stack[depth++] = before;
        }
    }
    tare_arena_free(&arena);
    return status;
}

static tare_status find(struct walk *walk, const Tensorflow__SaverDef *saver) {
    struct tare_graph_model *model = walk->model;
    const char *name = saver ? saver->restore_op_name : "";
    struct tare_node *restore = *name ? tare_graph_find(model->main, name) : NULL;
    struct tare_edge edge;
    if (!restore && *name) {
        const tare_status status = tare_import_tensor_name(&edge, model, name);
        if (status == TARE_OK) restore = edge.node;
        TARE_TRY(tare_error_dismiss(status));
    }
    if (restore) TARE_TRY(visit_closure(walk, restore));
    walk->only_gaps = true;
    walk->depth_left = 1;
    for (size_t i = 0; i < model->main->n_nodes; i++)
        TARE_TRY(visit(walk, model->main->nodes[i], NULL));
    return TARE_OK;
}

tare_status tare_restores_find(struct tare_restores *out, struct tare_arena *arena, struct tare_graph_model *model,
                               const Tensorflow__SaverDef *saver) {
    struct walk walk = {
        .model = model, .arena = arena, .out = out, .nodes_left = MOST_NODES, .depth_left = DEEPEST_CALL
    };
    tare_status status = find(&walk, saver);
    tare_arena_free(&walk.frames);
    tare_map_free(&walk.texts);
    tare_map_free(&walk.known);
    tare_map_free(&walk.plain);
    return status;
}
