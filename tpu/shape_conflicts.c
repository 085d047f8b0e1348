/* Conflicting shapes, found by shape inference with several sizes in place of the open dimensions. */
#include "tpu/shape_conflicts.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "interpreter/inference/infer.h"
#include "interpreter/inference/model_shapes.h"

/* Sizes of dimension 0; the others are a little larger, so that no two dimensions of a tensor are equal by accident. */
static const int64_t sizes[] = { 5, 16, 96 };
enum { TRIALS = sizeof sizes / sizeof *sizes };

/* A node and the trials in which it had a conflict. */
struct candidate {
    struct tare_tpu_conflict conflict;
    bool in_trial[TRIALS];
    struct candidate *next;
};

struct trials {
    struct tare_arena *arena;
    const struct tare_graph *function;
    const struct tare_shape *args;
    const struct tare_shape **handles;
    struct tare_map candidates; /* by address of the node */
    struct candidate *first;
    int trial;
    bool succeeded[TRIALS];
    tare_status status; /* of `note` */
};

static void *get(const struct tare_map *map, const struct tare_node *node) {
    return tare_map_get_n(map, (const char *)&node, sizeof node);
}

static tare_status set(struct tare_map *map, const struct tare_tpu_conflict *conflict, void *value) {
    const bool is_set = tare_map_set_n(map, (const char *)&conflict->node, sizeof conflict->node, value);
    return is_set ? TARE_OK : TARE_NO_MEMORY;
}

static void note(void *arg, const struct tare_node *node, size_t index, const struct tare_shape *first,
                 const struct tare_shape *second) {
    struct trials *t = arg;
    struct candidate *candidate = get(&t->candidates, node);
    if (!candidate && t->status == TARE_OK) {
        candidate = TARE_NEW(t->arena, struct candidate);
        if (candidate) {
            *candidate = (struct candidate){ .conflict = { node, index, *first, *second }, .next = t->first };
            t->first = candidate;
        }
        t->status = candidate ? set(&t->candidates, &candidate->conflict, candidate) : TARE_NO_MEMORY;
    }
    if (candidate) candidate->in_trial[t->trial] = true;
}

static tare_status try_sizes(struct trials *t) {
    const struct tare_graph *function = t->function;
    struct tare_shape *args = TARE_NEW_ARRAY(t->arena, struct tare_shape, function->n_args + 1);
    tare_status status;
    if (!args) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        args[i] = t->args[i];
        for (int d = 0; d < args[i].rank; d++)
            if (args[i].dims[d] < 0) args[i].dims[d] = sizes[t->trial] + 2 * d;
    }
    status = tare_graph_infer_conflicts(note, t, function, args, t->handles);
    t->succeeded[t->trial] = status == TARE_OK;
    return t->status == TARE_OK ? tare_error_dismiss(status) : t->status; /* sizes that do not fit are no evidence */
}

static tare_status read_arguments(struct trials *t) {
    const struct tare_graph *function = t->function;
    struct tare_shape *args = TARE_NEW_ARRAY(t->arena, struct tare_shape, function->n_args + 1);
    struct tare_model_shapes *shapes;
    struct tare_bindings *bindings;
    if (!args) return TARE_NO_MEMORY;
    TARE_TRY(tare_model_shapes_new(&shapes, function->model));
    for (size_t i = 0; i < function->n_args; i++)
        args[i] = tare_model_shape(shapes, tare_node_output0(function->args[i]));
    tare_model_shapes_free(shapes);
    t->args = args;
    TARE_TRY(tare_bindings_new(&bindings, function->model));
    t->handles = tare_bindings_handles(bindings, t->arena, function);
    tare_bindings_free(bindings);
    return t->handles ? TARE_OK : TARE_NO_MEMORY;
}

static bool is_certain(const struct trials *t, const struct candidate *candidate) {
    bool any = false;
    for (int i = 0; i < TRIALS; i++) {
        if (t->succeeded[i] && !candidate->in_trial[i]) return false;
        any |= t->succeeded[i];
    }
    return any;
}

tare_status tare_tpu_conflicts_find(struct tare_tpu_conflicts *out, struct tare_arena *arena,
                                    const struct tare_graph *function) {
    struct trials t = { .arena = arena, .function = function };
    tare_status status = read_arguments(&t);
    *out = (struct tare_tpu_conflicts){ .is_known = true };
    for (t.trial = 0; t.trial < TRIALS && status == TARE_OK; t.trial++)
        status = try_sizes(&t);
    for (struct candidate *c = t.first; c && status == TARE_OK; c = c->next)
        if (is_certain(&t, c)) status = set(&out->by_node, &c->conflict, &c->conflict);
    tare_map_free(&t.candidates);
    return status;
}

const struct tare_tpu_conflict *tare_tpu_conflict_of(const struct tare_tpu_conflicts *conflicts,
                                                     const struct tare_node *node) {
    return get(&conflicts->by_node, node);
}

const char *tare_tpu_conflict_text(struct tare_arena *arena, const struct tare_tpu_conflict *conflict) {
    const struct tare_node *node = conflict->node;
    char first[TARE_SHAPE_TEXT_SIZE], second[TARE_SHAPE_TEXT_SIZE];
    struct tare_call_site site;
    tare_shape_text(first, &conflict->first);
    tare_shape_text(second, &conflict->second);
    if (tare_call_site(&site, arena, node) != TARE_OK) return NULL;
    if (site.kind == TARE_CALL_LOOP)
        return tare_arena_printf(arena,
                                 "loop '%s' (%s) in function %s changes the shape of '%s', for example from %s to %s, "
                                 "which a TPU does not support (write into a tensor of the final shape, or keep the "
                                 "loop on the CPU)",
                                 node->name, node->op, node->graph->name, site.callees[1]->args[conflict->index]->name,
                                 first, second);
    return tare_arena_printf(arena,
                             "the branches of '%s' (%s) in function %s return tensors of different ranks, for example "
                             "%s and %s, which a TPU does not support (reshape them to one rank, or keep the op on the "
                             "CPU)",
                             node->name, node->op, node->graph->name, first, second);
}

/* An element that is written at an index beyond the size is dropped by XLA; appending fails without a largest size. */
bool tare_tpu_is_growing_list(const struct tare_node *node) {
    const bool empty = tare_node_is(node, "EmptyTensorList");
    const struct tare_tensor *size;
    if (!empty && !tare_node_is(node, "TensorListReserve")) return false;
    size = node->n_inputs > 1 && tare_node_is(node->inputs[1].node, "Const")
               ? tare_node_tensor(node->inputs[1].node, "value")
               : NULL;
    if (!size || size->elements != 1 || size->dtype != TARE_DT_INT32) return false;
    return empty ? tare_tensor_get_i64(size, 0) < 0 : tare_tensor_get_i64(size, 0) == 0;
}

void tare_tpu_conflicts_free(struct tare_tpu_conflicts *conflicts) {
    tare_map_free(&conflicts->by_node);
    *conflicts = (struct tare_tpu_conflicts){ 0 };
}
