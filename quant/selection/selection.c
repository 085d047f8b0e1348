/* Finding what an operand chooses from a stack: the ops between are followed back to a constant or a variable, then
 * forward with the origin of each axis. */
#include "quant/selection/selection.h"
#include "base/arena.h"
#include "graph/op.h"
#include "quant/layer.h"
#include "quant/selection/trace.h"

#include <string.h>

enum { DEEPEST = 16 };

/* ---- ops ---- */

static bool step_gather(struct tare_trace *t, const struct tare_node *node) {
    const struct tare_shape index = tare_model_shape(t->shapes, node->inputs[1]);
    int axis = 0;
    if (node->n_inputs > 2 && !tare_trace_read_axis(&axis, tare_trace_constant(node, 2, 1), t->shape.rank))
        return false;
    if (tare_node_int(node, "batch_dims", 0) != 0 || index.rank < 0 || t->shape.rank < 1) return false;
    for (int i = 0; i < t->shape.rank && index.rank > 0; i++)
        if (t->from[i] <= TARE_FROM_INDEX) return false;
    if (!tare_trace_choose(t, axis, node->inputs[1], -1, TARE_INDEX_CHECKED)) return false;
    tare_trace_remove_axis(t, axis);
    for (int i = 0; i < index.rank; i++)
        if (!tare_trace_insert_axis(t, axis + i, index.dims[i], TARE_FROM_INDEX - i)) return false;
    t->selection->index_rank += index.rank;
    return true;
}

static bool step_squeeze(struct tare_trace *t, const struct tare_node *node) {
    const struct tare_attr *axes = tare_node_list(node, "squeeze_dims");
    const int rank = t->shape.rank;
    unsigned removed = 0;
    for (size_t i = 0; axes && i < axes->count; i++) {
        const int64_t axis = axes->items[i].i + (axes->items[i].i < 0 ? rank : 0);
        if (axis < 0 || axis >= rank) return false;
        removed |= 1u << axis;
    }
    for (int i = rank - 1; i >= 0; i--) {
        if (!removed && t->shape.dims[i] < 0) return false; /* it may have one element, or more */
        if (removed ? !(removed >> i & 1) : t->shape.dims[i] != 1) continue;
        if (t->shape.dims[i] != 1 && t->from[i] > TARE_FROM_INDEX) return false;
        tare_trace_remove_axis(t, i);
    }
    return true;
}

static bool step_expand_dims(struct tare_trace *t, const struct tare_node *node) {
    int axis;
    return tare_trace_read_axis(&axis, tare_trace_constant(node, 1, 1), t->shape.rank + 1) &&
           tare_trace_insert_axis(t, axis, 1, TARE_FROM_NOTHING);
}

static bool is_known(const struct tare_shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 1) return false;
    return shape->rank >= 0;
}

/* Axes of one element come and go, the others stay. */
static bool keep_axes(struct tare_trace *t, const struct tare_node *node) {
    const struct tare_tensor *sizes = tare_trace_constant(node, 1, TARE_MAX_RANK);
    struct tare_trace out = *t;
    int at = 0;
    if (!sizes) return false;
    out.shape.rank = 0;
    for (int i = 0; i < (int)sizes->elements; i++) {
        const int64_t size = tare_tensor_get_i64(sizes, i);
        while (at < t->shape.rank && t->shape.dims[at] == 1 && size != 1)
            at++;
        if (size == 1 && (at == t->shape.rank || t->shape.dims[at] != 1)) {
            tare_trace_insert_axis(&out, out.shape.rank, 1, TARE_FROM_NOTHING);
            continue;
        }
        if (at == t->shape.rank || (size >= 0 && t->shape.dims[at] != size)) return false;
        tare_trace_insert_axis(&out, out.shape.rank, t->shape.dims[at], t->from[at]);
        at++;
    }
    for (; at < t->shape.rank; at++)
        if (t->shape.dims[at] != 1) return false;
    *t = out;
    return true;
}

/* Whether the first axis of both is the index of unknown size; it has the size `size` while others are compared. */
static bool opens(struct tare_trace *t, struct tare_shape *to, int64_t size) {
    if (t->shape.rank < 1 || to->rank < 1 || t->from[0] > TARE_FROM_INDEX || t->shape.dims[0] >= 0 || to->dims[0] >= 0)
        return false;
    t->shape.dims[0] = to->dims[0] = size;
    return true;
}

static bool step_reshape(struct tare_trace *t, const struct tare_node *node) {
    enum { PRIME = 2147483647 }; /* no other size divides it */
    const struct tare_tensor *sizes = tare_trace_constant(node, 1, TARE_MAX_RANK);
    struct tare_shape to = tare_model_shape(t->shapes, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 });
    if (sizes && keep_axes(t, node)) return true;
    if (sizes) to.rank = (int)sizes->elements;
    for (int i = 0; i < to.rank && sizes; i++)
        to.dims[i] = tare_tensor_get_i64(sizes, i);
    const bool open = opens(t, &to, PRIME);
    if (!is_known(&to) || !is_known(&t->shape) ||
        !tare_quant_regroup(t->selection, &t->stack, &t->shape, t->from, &to) || !tare_trace_add_scaling(t, node, 0))
        return false;
    t->selection->scalings[t->selection->n_scalings - 1].shape = t->stack;
    t->selection->is_scaled = true;
    t->shape = to;
    if (open) t->shape.dims[0] = -1;
    return true;
}

static bool step_transpose(struct tare_trace *t, const struct tare_node *node) {
    const struct tare_tensor *order = tare_trace_constant(node, 1, TARE_MAX_RANK);
    const struct tare_trace old = *t;
    unsigned seen = 0;
    if (!order || order->elements != t->shape.rank) return false;
    for (int i = 0; i < t->shape.rank; i++) {
        const int64_t axis = tare_tensor_get_i64(order, i);
        if (axis < 0 || axis >= t->shape.rank || seen >> axis & 1) return false;
        seen |= 1u << axis;
        t->shape.dims[i] = old.shape.dims[axis];
        t->from[i] = old.from[axis];
    }
    return true;
}

static bool step_none(struct tare_trace *t, const struct tare_node *node) {
    (void)t, (void)node;
    return true;
}

static bool step_negate(struct tare_trace *t, const struct tare_node *node) {
    t->selection->is_scaled = true;
    return tare_trace_add_scaling(t, node, 0);
}

/* Conversions are listed, because scales may follow. */
static bool step_cast(struct tare_trace *t, const struct tare_node *node) {
    if (t->selection->n_factors && tare_quant_has_codes(node)) return false;
    t->selection->is_scaled |= tare_quant_has_codes(node);
    return (tare_quant_has_codes(node) || tare_quant_keeps_numbers(node)) && tare_trace_add_scaling(t, node, 0);
}

/* A copy of one element is like that element. */
static bool step_broadcast(struct tare_trace *t, const struct tare_node *node) {
    const struct tare_tensor *sizes = tare_trace_constant(node, 1, TARE_MAX_RANK);
    if (!sizes || sizes->elements < t->shape.rank) return false;
    while (t->shape.rank < (int)sizes->elements)
        if (!tare_trace_insert_axis(t, 0, 1, TARE_FROM_NOTHING)) return false;
    for (int i = 0; i < t->shape.rank; i++)
        if (t->shape.dims[i] == 1 && t->from[i] > TARE_FROM_INDEX) {
            t->shape.dims[i] = tare_tensor_get_i64(sizes, i);
            t->from[i] = TARE_FROM_NOTHING;
        }
    return true;
}

static const struct step *step_of(const struct tare_node *node);
static bool chooses(const struct tare_node *node);

/* The input of a step of one operand that comes from the stack. */
static size_t only_operand(const struct tare_node *node) {
    return tare_node_is(node, "SelectV2") ? tare_trace_selected(node) : tare_node_is(node, "Split");
}

/* Whether an op that chooses is among those that an edge is followed back to. */
static bool is_chosen(struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    if (depth == 0 || tare_edge_constant(edge) || !step_of(node)) return false;
    return chooses(node) || is_chosen(node->inputs[only_operand(node)], depth - 1) ||
           (tare_quant_scales(node) && is_chosen(node->inputs[1], depth - 1));
}

/* The elements of an operand of two: a factor for each axis of unknown size, which the smaller one seldom has. */
static double size_of(const struct tare_shape *shape) {
    const double UNKNOWN = 1.5;
    double size = 1;
    for (int i = 0; i < shape->rank; i++)
        size *= shape->dims[i] < 0 ? UNKNOWN : (double)shape->dims[i];
    return shape->rank < 0 ? 0 : size;
}

/* The input of a step that comes from the stack: of two, the larger one. */
static size_t operand_of(const struct tare_model_shapes *shapes, const struct tare_node *node) {
    enum { DEEPEST_OPERAND = 5 };
    double sizes[2];
    if (!tare_quant_scales(node)) return only_operand(node);
    for (size_t i = 0; i < 2; i++) {
        const struct tare_shape shape = tare_model_shape(shapes, node->inputs[i]);
        sizes[i] = size_of(&shape);
    }
    if (sizes[0] != sizes[1]) return sizes[1] > sizes[0];
    if (is_chosen(node->inputs[0], DEEPEST_OPERAND) != is_chosen(node->inputs[1], DEEPEST_OPERAND))
        return is_chosen(node->inputs[1], DEEPEST_OPERAND);
    return tare_node_is(node->inputs[0].node, "BroadcastTo");
}

static bool follow(struct tare_trace *t, struct tare_edge edge);

static void set_operand(struct tare_trace *t) {
    t->selection->operand = t->shape;
    memcpy(t->selection->from, t->from, sizeof t->from);
}

/* A scale, from another stack by the same index or the same for all entries. */
static bool scale_by_stack(struct tare_trace *t, const struct tare_node *node, size_t operand) {
    enum { MOST_NESTED = 2 };
    struct tare_trace other = { .arena = t->arena, .shapes = t->shapes, .depth = t->depth + 1 };
    if (other.depth > MOST_NESTED) return false;
    if (!follow(&other, node->inputs[1 - operand])) {
        t->status = other.status;
        return false;
    }
    set_operand(&other);
    set_operand(t);
    return !other.selection->n_factors && tare_trace_add_scaling(t, node, operand) &&
           tare_quant_set_scale(t->selection, other.selection);
}

static bool step_scale(struct tare_trace *t, const struct tare_node *node) {
    const size_t operand = operand_of(t->shapes, node), scalings = t->selection->n_scalings;
    const bool sums = tare_node_is(node, "Sub") || tare_node_is(node, "AddV2");
    if (t->selection->n_factors && (sums || operand != 0) && !tare_node_is(node, "Mul")) return false;
    if (scale_by_stack(t, node, operand)) return t->selection->is_scaled = true;
    t->selection->n_scalings = scalings;
    return t->status == TARE_OK && tare_trace_multiply(t, node, operand);
}

static const struct step {
    const char *op;
    size_t inputs; /* at least */
    bool chooses;
    bool (*follow)(struct tare_trace *t, const struct tare_node *node);
} steps[] = {
    { "Identity", 1, false, step_none },
    { "StopGradient", 1, false, step_none },
    { "PreventGradient", 1, false, step_none },
    { "EnsureShape", 1, false, step_none },
    { "Snapshot", 1, false, step_none },
    { "Neg", 1, false, step_negate },
    { "Split", 2, false, tare_trace_split },
    { "SplitV", 3, false, tare_trace_split_sizes },
    { "SelectV2", 3, false, tare_trace_select },
    { "Cast", 1, false, step_cast },
    { "Reshape", 2, false, step_reshape },
    { "Squeeze", 1, false, step_squeeze },
    { "ExpandDims", 2, false, step_expand_dims },
    { "Transpose", 2, false, step_transpose },
    { "BroadcastTo", 2, false, step_broadcast },
    { "Mul", 2, false, step_scale },
    { "RealDiv", 2, false, step_scale },
    { "Div", 2, false, step_scale },
    { "Sub", 2, false, step_scale },
    { "AddV2", 2, false, step_scale },
    { "Gather", 2, true, step_gather },
    { "GatherV2", 3, true, step_gather },
    { "Slice", 3, true, tare_trace_slice },
    { "StridedSlice", 4, true, tare_trace_strided_slice },
    { "XlaDynamicSlice", 3, true, tare_trace_xla_slice },
};

static const struct step *step_of(const struct tare_node *node) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(node->op, steps[i].op) == 0 && node->n_inputs >= steps[i].inputs) return &steps[i];
    return NULL;
}

static bool chooses(const struct tare_node *node) {
    return step_of(node)->chooses;
}

/* Follows an edge back to a constant or a variable and forward again. */
static bool follow(struct tare_trace *t, struct tare_edge edge) {
    struct tare_edge path[DEEPEST];
    int length = 0;
    while (length < DEEPEST && !tare_edge_constant(edge) && step_of(edge.node)) {
        path[length++] = edge;
        edge = edge.node->inputs[operand_of(t->shapes, edge.node)];
    }
    const struct tare_tensor *value = tare_edge_constant(edge);
    t->obstacle = edge.node;
    if (edge.index != 0 || (!value && !tare_node_is(edge.node, "ReadVariableOp"))) return false;
    t->shape = value ? value->shape : tare_model_shape(t->shapes, edge);
    t->selection = TARE_NEW(t->arena, struct tare_quant_selection);
    if (!t->selection) t->status = TARE_NO_MEMORY;
    if (!t->selection || !is_known(&t->shape)) return false;
    t->selection->stack = edge;
    t->stack = t->shape;
    for (int i = 0; i < t->shape.rank; i++)
        t->from[i] = i;
    while (length-- > 0) {
        const struct tare_node *node = path[length].node;
        const struct step *step = step_of(node);
        t->output = path[length].index;
        t->obstacle = node;
        if (!step->follow(t, node)) return false;
        if (step->chooses && !t->selection->chooser) t->selection->chooser = node;
    }
    t->obstacle = NULL;
    return true;
}

tare_status tare_quant_find_selection(struct tare_quant_selection **out, struct tare_arena *arena,
                                      struct tare_edge edge, const struct tare_model_shapes *shapes) {
    struct tare_trace t = { .arena = arena, .shapes = shapes };
    *out = NULL;
    if (!follow(&t, edge) || !t.selection->n_indices) return t.status;
    struct tare_quant_selection *s = t.selection;
    set_operand(&t);
    s->count = 1;
    for (int i = 0; i < s->n_indices; i++)
        s->count *= s->indices[i].size;
    for (int i = 0; i < t.shape.rank; i++)
        if (t.from[i] == TARE_FROM_NOTHING && t.shape.dims[i] != 1) return TARE_OK;
    if (!s->is_scaled) s->n_scalings = 0;
    *out = s;
    return TARE_OK;
}

const struct tare_node *tare_quant_obstacle(struct tare_arena *arena, struct tare_edge edge,
                                            const struct tare_model_shapes *shapes) {
    struct tare_trace t = { .arena = arena, .shapes = shapes };
    (void)follow(&t, edge);
    return t.obstacle;
}

/* Whether a step follows this input. */
static bool follows(const struct tare_use *use) {
    return step_of(use->user) && (use->input == only_operand(use->user) || tare_quant_scales(use->user));
}

static bool output_selects(const struct tare_node *node, int output,
                           bool (*accepts)(void *arg, const struct tare_use *use), void *arg) {
    const struct tare_edge edge = { (struct tare_node *)(uintptr_t)node, output };
    const size_t uses = tare_graph_count_uses(node->graph, edge, NULL); /* makes the lists of uses */
    size_t explained = 0;
    for (const struct tare_use *use = tare_edge_first_use(edge); use; use = tare_edge_next_use(use)) {
        if (use->user->dead) continue;
        if (!accepts(arg, use) && (!follows(use) || !tare_quant_only_selects(use->user, accepts, arg))) return false;
        explained++;
    }
    return explained == uses && (explained > 0 || node->n_outputs > 1);
}

bool tare_quant_only_selects(const struct tare_node *chooser, bool (*accepts)(void *arg, const struct tare_use *use),
                             void *arg) {
    for (size_t i = 0; i < chooser->n_outputs; i++)
        if (!output_selects(chooser, (int)i, accepts, arg)) return false;
    return true;
}
