/* Finding what an operand chooses from a stack: the ops between are followed back to a constant or a variable, then
 * forward with the origin of each axis. */
#include "quant/selection/selection.h"
#include "base/arena.h"
#include "graph/op.h"
#include "quant/layer.h"

#include <string.h>

enum { DEEPEST = 16 };

/* An operand while it is followed from the stack. */
struct trace {
    const struct tare_model_shapes *shapes;
    struct tare_quant_selection *selection;
    struct tare_shape shape; /* of the value; -1: an axis of unknown size */
    int from[TARE_MAX_RANK];
};

/* ---- axes ---- */

static void remove_axis(struct trace *t, int axis) {
    const size_t behind = (size_t)(t->shape.rank - axis - 1);
    memmove(&t->shape.dims[axis], &t->shape.dims[axis + 1], behind * sizeof *t->shape.dims);
    memmove(&t->from[axis], &t->from[axis + 1], behind * sizeof *t->from);
    t->shape.rank--;
}

static bool insert_axis(struct trace *t, int axis, int64_t size, int from) {
    if (t->shape.rank == TARE_MAX_RANK || axis < 0 || axis > t->shape.rank) return false;
    const size_t behind = (size_t)(t->shape.rank - axis);
    memmove(&t->shape.dims[axis + 1], &t->shape.dims[axis], behind * sizeof *t->shape.dims);
    memmove(&t->from[axis + 1], &t->from[axis], behind * sizeof *t->from);
    t->shape.dims[axis] = size;
    t->from[axis] = from;
    t->shape.rank++;
    return true;
}

/* One entry of an axis is chosen, which stays as an axis of one element. */
static bool choose(struct trace *t, int axis, struct tare_edge edge, int element, enum tare_quant_index_rule rule) {
    struct tare_quant_selection *s = t->selection;
    if (t->from[axis] < 0 || s->n_indices == TARE_MAX_RANK) return false;
    s->indices[s->n_indices++] = (struct tare_quant_index){
        .axis = t->from[axis], .size = t->shape.dims[axis], .edge = edge, .element = element, .rule = rule
    };
    t->from[axis] = TARE_FROM_NOTHING;
    t->shape.dims[axis] = 1;
    return true;
}

/* ---- ops ---- */

static const struct tare_tensor *constant(const struct tare_node *node, size_t input, int64_t most) {
    const struct tare_tensor *value = input < node->n_inputs ? tare_edge_constant(node->inputs[input]) : NULL;
    return value && value->elements <= most ? value : NULL;
}

static bool read_axis(int *out, const struct tare_tensor *value, int64_t rank) {
    if (!value || value->elements != 1) return false;
    const int64_t axis = tare_tensor_get_i64(value, 0) + (tare_tensor_get_i64(value, 0) < 0 ? rank : 0);
    *out = (int)axis;
    return axis >= 0 && axis < rank;
}

static bool step_gather(struct trace *t, const struct tare_node *node) {
    const struct tare_shape index = tare_model_shape(t->shapes, node->inputs[1]);
    int axis = 0;
    if (node->n_inputs > 2 && !read_axis(&axis, constant(node, 2, 1), t->shape.rank)) return false;
    if (tare_node_int(node, "batch_dims", 0) != 0 || index.rank < 0 || t->shape.rank < 1) return false;
    for (int i = 0; i < t->shape.rank && index.rank > 0; i++)
        if (t->from[i] <= TARE_FROM_INDEX) return false;
    if (!choose(t, axis, node->inputs[1], -1, TARE_INDEX_CHECKED)) return false;
    remove_axis(t, axis);
    for (int i = 0; i < index.rank; i++)
        if (!insert_axis(t, axis + i, index.dims[i], TARE_FROM_INDEX - i)) return false;
    t->selection->index_rank += index.rank;
    return true;
}

/* Slice and XlaDynamicSlice: each axis whole, or one element of it. */
static bool step_slice(struct trace *t, const struct tare_node *node, enum tare_quant_index_rule rule) {
    const struct tare_tensor *sizes = constant(node, 2, TARE_MAX_RANK);
    if (!sizes || sizes->elements != t->shape.rank) return false;
    for (int i = 0; i < t->shape.rank; i++) {
        const int64_t size = tare_tensor_get_i64(sizes, i), whole = t->shape.dims[i];
        if (size == whole && whole > 0) continue;
        if (size != 1 || whole < 1 || !choose(t, i, node->inputs[1], i, rule)) return false;
    }
    return true;
}

static bool bit(const struct tare_node *node, const char *mask, int i) {
    return tare_node_int(node, mask, 0) >> i & 1;
}

/* Whether a range of StridedSlice is the whole axis. */
static bool is_whole(const struct trace *t, const struct tare_node *node, int i) {
    const struct tare_tensor *begin = constant(node, 1, TARE_MAX_RANK), *end = constant(node, 2, TARE_MAX_RANK);
    const bool from_start = bit(node, "begin_mask", i) || (begin && tare_tensor_get_i64(begin, i) == 0);
    return from_start && (bit(node, "end_mask", i) || (end && tare_tensor_get_i64(end, i) >= t->shape.dims[i]));
}

/* A range of one element: its end is its begin plus 1. */
static bool is_one(const struct trace *t, const struct tare_node *node, int i) {
    const struct tare_shape out =
        tare_model_shape(t->shapes, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 });
    return i < out.rank && out.dims[i] == 1 && !bit(node, "begin_mask", i) && !bit(node, "end_mask", i);
}

static bool step_strided_slice(struct trace *t, const struct tare_node *node) {
    const struct tare_tensor *strides = constant(node, 3, TARE_MAX_RANK);
    if (!strides || strides->elements > t->shape.rank) return false;
    if (tare_node_int(node, "ellipsis_mask", 0) || tare_node_int(node, "new_axis_mask", 0)) return false;
    const int count = (int)strides->elements;
    const int64_t shrinks = tare_node_int(node, "shrink_axis_mask", 0);
    for (int i = 0; i < count; i++) {
        if (tare_tensor_get_i64(strides, i) != 1) return false;
        if (!(shrinks >> i & 1) && is_whole(t, node, i)) continue;
        if (!(shrinks >> i & 1) && (shrinks || !is_one(t, node, i))) return false;
        if (!choose(t, i, node->inputs[1], i, TARE_INDEX_FROM_BACK)) return false;
    }
    for (int i = count - 1; i >= 0; i--)
        if (shrinks >> i & 1) remove_axis(t, i);
    return true;
}

static bool step_squeeze(struct trace *t, const struct tare_node *node) {
    const struct tare_attr *axes = tare_node_list(node, "squeeze_dims");
    const int rank = t->shape.rank;
    unsigned removed = 0;
    for (size_t i = 0; axes && i < axes->count; i++) {
        const int64_t axis = axes->items[i].i + (axes->items[i].i < 0 ? rank : 0);
        if (axis < 0 || axis >= rank) return false;
        removed |= 1u << axis;
    }
    for (int i = rank - 1; i >= 0; i--) {
        if (removed ? !(removed >> i & 1) : t->shape.dims[i] != 1) continue;
        if (t->shape.dims[i] != 1 && t->from[i] > TARE_FROM_INDEX) return false;
        remove_axis(t, i);
    }
    return true;
}

static bool step_expand_dims(struct trace *t, const struct tare_node *node) {
    int axis;
    return read_axis(&axis, constant(node, 1, 1), t->shape.rank + 1) && insert_axis(t, axis, 1, TARE_FROM_NOTHING);
}

/* Axes of one element come and go, the others stay. */
static bool step_reshape(struct trace *t, const struct tare_node *node) {
    const struct tare_tensor *sizes = constant(node, 1, TARE_MAX_RANK);
    struct trace out = { .shapes = t->shapes, .selection = t->selection };
    int at = 0;
    if (!sizes) return false;
    for (int i = 0; i < (int)sizes->elements; i++) {
        const int64_t size = tare_tensor_get_i64(sizes, i);
        while (at < t->shape.rank && t->shape.dims[at] == 1 && size != 1)
            at++;
        if (size == 1 && (at == t->shape.rank || t->shape.dims[at] != 1)) {
            insert_axis(&out, out.shape.rank, 1, TARE_FROM_NOTHING);
            continue;
        }
        if (at == t->shape.rank || (size >= 0 && t->shape.dims[at] != size)) return false;
        insert_axis(&out, out.shape.rank, t->shape.dims[at], t->from[at]);
        at++;
    }
    for (; at < t->shape.rank; at++)
        if (t->shape.dims[at] != 1) return false;
    *t = out;
    return true;
}

static bool step_transpose(struct trace *t, const struct tare_node *node) {
    const struct tare_tensor *order = constant(node, 1, TARE_MAX_RANK);
    const struct trace old = *t;
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

static bool step_none(struct trace *t, const struct tare_node *node) {
    (void)t;
    return strcmp(node->op, "Cast") != 0 || tare_quant_keeps_numbers(node);
}

static bool step_plain_slice(struct trace *t, const struct tare_node *node) {
    return step_slice(t, node, TARE_INDEX_CHECKED);
}

static bool step_xla_slice(struct trace *t, const struct tare_node *node) {
    return step_slice(t, node, TARE_INDEX_CLAMPED);
}

static const struct step {
    const char *op;
    size_t inputs; /* at least */
    bool chooses;
    bool (*follow)(struct trace *t, const struct tare_node *node);
} steps[] = {
    { "Identity", 1, false, step_none },
    { "Cast", 1, false, step_none },
    { "Reshape", 2, false, step_reshape },
    { "Squeeze", 1, false, step_squeeze },
    { "ExpandDims", 2, false, step_expand_dims },
    { "Transpose", 2, false, step_transpose },
    { "Gather", 2, true, step_gather },
    { "GatherV2", 3, true, step_gather },
    { "Slice", 3, true, step_plain_slice },
    { "StridedSlice", 4, true, step_strided_slice },
    { "XlaDynamicSlice", 3, true, step_xla_slice },
};

static const struct step *step_of(const struct tare_node *node) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(node->op, steps[i].op) == 0 && node->n_inputs >= steps[i].inputs) return &steps[i];
    return NULL;
}

static bool is_known(const struct tare_shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 1) return false;
    return shape->rank > 0;
}

tare_status tare_quant_find_selection(struct tare_quant_selection **out, struct tare_arena *arena,
                                      struct tare_edge edge, const struct tare_model_shapes *shapes) {
    const struct tare_node *path[DEEPEST];
    struct trace t = { .shapes = shapes };
    int length = 0;
    *out = NULL;
    while (length < DEEPEST && edge.index == 0 && !tare_edge_constant(edge) && step_of(edge.node)) {
        path[length++] = edge.node;
        edge = edge.node->inputs[0];
    }
    const struct tare_tensor *value = tare_edge_constant(edge);
    if (!length || (!value && !tare_node_is(edge.node, "ReadVariableOp"))) return TARE_OK;
    t.shape = value ? value->shape : tare_model_shape(shapes, edge);
    t.selection = TARE_NEW(arena, struct tare_quant_selection);
    if (!t.selection) return TARE_NO_MEMORY;
    t.selection->stack = edge;
    for (int i = 0; i < t.shape.rank; i++)
        t.from[i] = i;
    if (!is_known(&t.shape)) return TARE_OK;
    while (length-- > 0) {
        const struct step *step = step_of(path[length]);
        if (!step->follow(&t, path[length])) return TARE_OK;
        if (step->chooses && !t.selection->chooser) t.selection->chooser = path[length];
    }
    if (!t.selection->n_indices) return TARE_OK;
    t.selection->operand = t.shape;
    memcpy(t.selection->from, t.from, sizeof t.from);
    *out = t.selection;
    return TARE_OK;
}

bool tare_quant_only_selects(const struct tare_node *chooser, bool (*accepts)(void *arg, const struct tare_use *use),
                             void *arg) {
    const struct tare_edge output = { (struct tare_node *)(uintptr_t)chooser, 0 };
    const size_t uses = tare_graph_count_uses(chooser->graph, output, NULL); /* makes the lists of uses */
    size_t explained = 0;
    for (const struct tare_use *use = tare_edge_first_use(output); use; use = tare_edge_next_use(use)) {
        if (use->user->dead) continue;
        if (!accepts(arg, use) &&
            (use->input != 0 || !step_of(use->user) || !tare_quant_only_selects(use->user, accepts, arg)))
            return false;
        explained++;
    }
    return explained > 0 && explained == uses;
}

/* ---- counters ---- */

/* A negative number counts from the end in JAX: Select(i < 0, i + n, i). */
static bool is_wrapped(struct tare_edge *index, const struct tare_node *node) {
    const bool selects = tare_node_is(node, "SelectV2") || tare_node_is(node, "Select");
    if (!selects || node->n_inputs != 3 || !tare_node_is(node->inputs[0].node, "Less")) return false;
    if (!tare_edge_equal(node->inputs[0].node->inputs[0], node->inputs[2])) return false;
    *index = node->inputs[2];
    return true;
}

static bool add_term(struct tare_observed_counter *out, const struct tare_node *arg, int64_t element, int64_t factor) {
    if (!tare_dtype_is_integer(arg->output_dtypes[0])) return false;
    for (size_t i = 0; i < out->n_terms; i++)
        if (out->terms[i].arg == arg && out->terms[i].element == element) {
            out->terms[i].factor += factor;
            return true;
        }
    if (out->n_terms == TARE_COUNTER_TERMS) return false;
    out->terms[out->n_terms++] = (struct tare_counter_term){ .arg = arg, .element = element, .factor = factor };
    return true;
}

/* Adds `factor` times a number, or an element (from 0) of a vector of them, to the counter. */
static bool add_number(struct tare_observed_counter *out, struct tare_edge edge, int element, int64_t factor,
                       int depth) {
    static const char *const copies[] = { "Identity", "Cast", "Reshape", "Squeeze", "ExpandDims", NULL };
    const struct tare_node *node = edge.node;
    const struct tare_tensor *value = tare_edge_constant(edge);
    if (tare_node_is_arg(node)) return add_term(out, node, element < 0 ? 0 : element, factor);
    if (value && value->elements > (element < 0 ? 0 : element)) {
        out->offset += factor * tare_tensor_get_i64(value, element < 0 ? 0 : element);
        return true;
    }
    if (edge.index != 0 || !node->n_inputs || depth == DEEPEST) return false;
    if (element >= 0 && tare_node_is(node, "Pack") && element < (int)node->n_inputs)
        return add_number(out, node->inputs[element], -1, factor, depth + 1);
    if (tare_op_is_one_of(node->op, copies)) return add_number(out, node->inputs[0], element, factor, depth + 1);
    if (tare_node_is(node, "GatherV2")) {
        const struct tare_tensor *index = constant(node, 1, 1);
        return element <= 0 && index &&
               add_number(out, node->inputs[0], (int)tare_tensor_get_i64(index, 0), factor, depth + 1);
    }
    const bool subtracts = tare_node_is(node, "Sub");
    if (subtracts || tare_node_is(node, "AddV2") || tare_node_is(node, "Add"))
        return add_number(out, node->inputs[0], element, factor, depth + 1) &&
               add_number(out, node->inputs[1], element, subtracts ? -factor : factor, depth + 1);
    return is_wrapped(&edge, node) && add_number(out, edge, element, factor, depth + 1);
}

bool tare_quant_find_counter(struct tare_observed_counter *counter, const struct tare_quant_selection *s) {
    enum { MOST_ENTRIES = 512 };
    int64_t factor = 1;
    *counter = (struct tare_observed_counter){ .count = s->count };
    if (s->index_rank != 0 || s->count < 2 || s->count > MOST_ENTRIES) return false;
    for (int i = s->n_indices; i-- > 0;) {
        const struct tare_quant_index *index = &s->indices[i];
        if (!add_number(counter, index->edge, index->element, factor, 0)) return false;
        factor *= index->size;
    }
    return counter->n_terms > 0;
}

/* ---- the product ---- */

static bool is_index(const struct tare_quant_selection *s, int operand_axis) {
    return s->from[operand_axis] <= TARE_FROM_INDEX;
}

/* Whether operand axis `axis` is among the axes that the product takes; otherwise it has one element. */
static int place_of(const struct tare_quant_product *p, int axis) {
    for (int i = 0; i < p->n_order; i++)
        if (p->order[i] == axis) return i;
    return -1;
}

/* Positions in the chosen weight by operand axis: the axes of the index, then those of an entry as they are arranged.
 */
static tare_status place_axes(int *positions, const struct tare_quant_product *p, struct tare_quant_selection *s) {
    int next = 0;
    for (int k = 0; k < s->index_rank; k++)
        for (int axis = 0; axis < s->operand.rank; axis++) {
            if (s->from[axis] != TARE_FROM_INDEX - k) continue;
            const int place = place_of(p, axis);
            if (place < 0) s->squeezed_index |= 1u << k;
            if (place >= p->n_batch && place < p->n_batch + p->n_contracted)
                return TARE_FAIL(TARE_UNSUPPORTED, "the product is a sum over the chosen entries");
            if (place >= 0) positions[axis] = next++;
        }
    for (int i = 0; i < p->n_order; i++)
        if (!is_index(s, p->order[i])) positions[p->order[i]] = next++;
    return TARE_OK;
}

/* The raw result has the free axes of the weight in the order of their positions. */
static void order_result(struct tare_quant_product *p, const int *positions) {
    const int first = p->n_batch + p->n_contracted, base = p->n_batch + p->n_free_left;
    const int rank = base + p->n_free_right;
    int places[TARE_MAX_RANK], sorted[TARE_MAX_RANK];
    for (int i = 0; i < p->n_free_right; i++)
        sorted[i] = p->order[first + i]; /* in the order of the operand's axes, as in the raw result */
    for (int i = 0; i < p->n_free_right; i++) {
        places[i] = 0;
        for (int j = 0; j < p->n_free_right; j++)
            places[i] += positions[sorted[j]] < positions[sorted[i]];
    }
    p->moves = false;
    for (int i = 0; i < rank; i++) {
        if (p->result_order[i] >= base) p->result_order[i] = base + places[p->result_order[i] - base];
        p->moves |= p->result_order[i] != i;
    }
}

/* One value per channel of the chosen weight must have the axes of the raw result in their order: those of the batch,
 * one element for each free axis of the activation, the free ones of the weight. */
static tare_status shape_channels(struct tare_quant_product *p, struct tare_quant_selection *s) {
    const int first_free = p->n_batch + p->n_contracted;
    int free_index = 0, batch_entry = 0;
    for (int i = 0; i < p->n_order; i++) {
        free_index += i >= first_free && is_index(s, p->order[i]);
        batch_entry += i < p->n_batch && !is_index(s, p->order[i]);
    }
    for (int i = 1; i < p->n_batch; i++)
        if (p->right_batch[i] < p->right_batch[i - 1])
            return TARE_FAIL(TARE_UNSUPPORTED, "the batch axes of its operands have different orders");
    if (free_index && (batch_entry || (p->n_batch && p->right_batch[p->n_batch - 1] >= p->n_batch)))
        return TARE_FAIL(TARE_UNSUPPORTED, "the axes of its index are in the result in another order");
    p->channel_shape.rank = 0;
    for (int i = 0; i < p->n_batch; i++)
        if (!is_index(s, p->order[i])) p->channel_shape.dims[p->channel_shape.rank++] = s->operand.dims[p->order[i]];
    if (free_index && p->n_batch) {
        s->spread_at = p->n_batch;
        s->n_spread = p->n_free_left;
    }
    for (int i = 0; i < p->n_free_left && p->n_batch && !free_index; i++)
        p->channel_shape.dims[p->channel_shape.rank++] = 1;
    for (int i = first_free; i < p->n_order; i++)
        if (!is_index(s, p->order[i])) p->channel_shape.dims[p->channel_shape.rank++] = s->operand.dims[p->order[i]];
    return TARE_OK;
}

/* Sizes of an entry as a stack of matrices: an entry is a matrix, not a vector as in a table. */
static tare_status count_elements(struct tare_quant_product *p, const struct tare_quant_selection *s) {
    p->batches = p->rows = p->columns = 1;
    for (int i = 0; i < p->n_order; i++) {
        if (is_index(s, p->order[i])) continue;
        int64_t *const count = i < p->n_batch ? &p->batches : i < p->n_batch + p->n_contracted ? &p->rows : &p->columns;
        *count *= s->operand.dims[p->order[i]];
    }
    return p->columns > 1 ? TARE_OK : TARE_FAIL(TARE_UNSUPPORTED, "the entries of its stack are vectors");
}

static tare_status select_array(struct tare_quant_product *p, struct tare_quant_selection *s) {
    int positions[TARE_MAX_RANK] = { 0 };
    if (p->spreads_right || p->squeezed_right)
        return TARE_FAIL(TARE_UNSUPPORTED, "the size of its index is not that of the activation");
    TARE_TRY(count_elements(p, s));
    TARE_TRY(place_axes(positions, p, s));
    s->entry.rank = 0;
    for (int i = 0; i < p->n_order; i++)
        if (!is_index(s, p->order[i])) s->entry.dims[s->entry.rank++] = s->operand.dims[p->order[i]];
    order_result(p, positions);
    for (int i = 0; i < p->n_batch; i++)
        p->right_batch[i] = positions[p->right_batch[i]];
    for (int i = 0; i < p->n_contracted; i++)
        p->right_contracted[i] = positions[p->right_contracted[i]];
    return shape_channels(p, s);
}

/* The axes that choose, then those of an entry that the stack has. */
static void arrange_stack(struct tare_quant_product *p, struct tare_quant_selection *s,
                          const struct tare_shape *stack) {
    int order[TARE_MAX_RANK], n = 0;
    unsigned reversed = 0;
    for (int i = 0; i < s->n_indices; i++)
        order[n++] = s->indices[i].axis;
    for (int i = 0; i < p->n_order; i++) {
        const int axis = s->from[p->order[i]];
        if (axis < 0) continue;
        if (p->reversed >> p->order[i] & 1) reversed |= 1u << axis;
        order[n++] = axis;
    }
    s->reshapes = n - s->n_indices != s->entry.rank;
    p->reversed = reversed;
    p->n_order = p->arranged.rank = n;
    for (int i = 0; i < n; i++) {
        p->order[i] = order[i];
        p->arranged.dims[i] = stack->dims[order[i]];
        s->reshapes |= i >= s->n_indices && !s->reshapes && p->arranged.dims[i] != s->entry.dims[i - s->n_indices];
    }
}

tare_status tare_quant_select_product(struct tare_quant_product *p, struct tare_quant_selection *s,
                                      const struct tare_shape *stack) {
    s->count = 1;
    for (int i = 0; i < s->n_indices; i++)
        s->count *= s->indices[i].size;
    if (p->spatial) {
        if (s->index_rank) return TARE_FAIL(TARE_UNSUPPORTED, "rows of a convolution have filters of their own");
        s->entry = p->arranged;
    } else {
        TARE_TRY(select_array(p, s));
    }
    arrange_stack(p, s, stack);
    p->batches *= s->count;
    return TARE_OK;
}
