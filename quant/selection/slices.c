/* Slices and parts of what is chosen from a stack, or before it is chosen. */
#include "quant/selection/trace.h"
#include "graph/op.h"

/* An element of a vector that is a constant, or of one that an op packs from constants and others. */
static bool number_at(int64_t *out, struct tare_edge vector, int element) {
    const struct tare_tensor *value = tare_edge_constant(vector);
    if (!value && tare_node_is(vector.node, "Pack") && element < (int)vector.node->n_inputs) {
        value = tare_edge_constant(vector.node->inputs[element]);
        element = 0;
    }
    if (!value || value->elements <= element) return false;
    *out = tare_tensor_get_i64(value, element);
    return true;
}

/* A part of an axis of the entries: the stack has only this part. */
static bool cut(struct tare_trace *t, const struct tare_node *node, int axis, int64_t begin, int64_t size) {
    const int from = t->from[axis];
    if (from < 0 || begin < 0 || size < 1 || begin > t->shape.dims[axis] - size) return false;
    if (size == t->shape.dims[axis]) return true;
    if (!tare_trace_add_scaling(t, node, 0)) return false;
    struct tare_quant_scaling *scaling = &t->selection->scalings[t->selection->n_scalings - 1];
    scaling->cuts = true;
    scaling->axis = from;
    scaling->begin = begin;
    scaling->shape = t->stack;
    scaling->shape.dims[from] = t->stack.dims[from] = t->shape.dims[axis] = size;
    t->selection->is_scaled = true;
    return true;
}

/* Slice and XlaDynamicSlice: each axis whole, a part of it, or one element of it. */
static bool slice(struct tare_trace *t, const struct tare_node *node, enum tare_quant_index_rule rule) {
    const struct tare_tensor *sizes = tare_trace_constant(node, 2, TARE_MAX_RANK);
    if (!sizes || sizes->elements != t->shape.rank) return false;
    for (int i = 0; i < t->shape.rank; i++) {
        int64_t size = tare_tensor_get_i64(sizes, i), begin;
        const int64_t whole = t->shape.dims[i];
        const bool is_known = number_at(&begin, node->inputs[1], i);
        if (size == -1 && is_known && begin == 0) continue;
        if (size == whole && whole > 0) continue;
        if (size == 1 && !is_known) {
            if (whole < 1 || !tare_trace_choose(t, i, node->inputs[1], i, rule)) return false;
            continue;
        }
        if (!is_known || whole < 1) return false;
        if (size == -1) size = whole - begin;
        if (rule == TARE_INDEX_CLAMPED) begin = begin < 0 ? 0 : begin > whole - size ? whole - size : begin;
        if (!cut(t, node, i, begin, size)) return false;
    }
    return true;
}

bool tare_trace_slice(struct tare_trace *t, const struct tare_node *node) {
    return slice(t, node, TARE_INDEX_CHECKED);
}

bool tare_trace_xla_slice(struct tare_trace *t, const struct tare_node *node) {
    return slice(t, node, TARE_INDEX_CLAMPED);
}

static bool bit(const struct tare_node *node, const char *mask, int i) {
    return tare_node_int(node, mask, 0) >> i & 1;
}

/* The elements of a range of StridedSlice that constants determine; the end of an axis of unknown size is -1. */
static bool read_range(int64_t *begin, int64_t *end, const struct tare_trace *t, const struct tare_node *node, int i,
                       int axis) {
    const int64_t size = t->shape.dims[axis];
    *begin = 0;
    *end = size;
    if (!bit(node, "begin_mask", i) && !number_at(begin, node->inputs[1], i)) return false;
    if (!bit(node, "end_mask", i) && !number_at(end, node->inputs[2], i)) return false;
    if (size < 0) return *begin == 0 && bit(node, "end_mask", i);
    *begin = *begin < 0 ? *begin + size : *begin;
    *end = *end < 0 ? *end + size : *end > size ? size : *end;
    return true;
}

/* Whether a range of StridedSlice is the whole axis, or an index the only element of one. */
static bool is_whole(const struct tare_trace *t, const struct tare_node *node, int i, int axis) {
    int64_t begin = 0, end;
    if (bit(node, "shrink_axis_mask", i))
        return number_at(&begin, node->inputs[1], i) && begin == 0 && t->shape.dims[axis] == 1;
    return read_range(&begin, &end, t, node, i, axis) && begin == 0 && end == t->shape.dims[axis];
}

/* An element of a vector as an edge of its own, where an op packs the vector from such. */
static struct tare_edge element_of(struct tare_edge vector, int element) {
    const bool packed = tare_node_is(vector.node, "Pack") && element < (int)vector.node->n_inputs;
    return packed ? vector.node->inputs[element] : vector;
}

/* Whether a number is another one plus 1. */
static bool is_next(struct tare_edge number, struct tare_edge before) {
    const struct tare_node *sum = number.node;
    if (!tare_node_is(sum, "AddV2") && !tare_node_is(sum, "Add")) return false;
    for (size_t i = 0; i < 2; i++) {
        const struct tare_tensor *one = tare_edge_constant(sum->inputs[i]);
        if (one && one->elements == 1 && tare_tensor_get_i64(one, 0) == 1)
            return tare_quant_same_number(sum->inputs[1 - i], before);
    }
    return false;
}

/* A range of one element: its end is its begin plus 1. */
static bool is_one(const struct tare_trace *t, const struct tare_node *node, int i) {
    const struct tare_shape out =
        tare_model_shape(t->shapes, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 });
    if (bit(node, "begin_mask", i) || bit(node, "end_mask", i)) return false;
    if (i < out.rank && out.dims[i] == 1) return true;
    return is_next(element_of(node->inputs[2], i), element_of(node->inputs[1], i));
}

/* Range i of StridedSlice, of an axis: whole, a part of it, or one element. */
static bool slice_axis(struct tare_trace *t, const struct tare_node *node, int i, int axis) {
    const bool shrinks = bit(node, "shrink_axis_mask", i);
    int64_t begin, end;
    if (is_whole(t, node, i, axis)) return true;
    if (!shrinks && read_range(&begin, &end, t, node, i, axis)) return cut(t, node, axis, begin, end - begin);
    if (!shrinks && (tare_node_int(node, "shrink_axis_mask", 0) || !is_one(t, node, i))) return false;
    return tare_trace_choose(t, axis, node->inputs[1], i, TARE_INDEX_FROM_BACK);
}

/* The axis of range i: behind an ellipsis, the ranges are those of the last axes. */
static int axis_of(const struct tare_node *node, int i, int count, int rank) {
    const int64_t ellipsis = tare_node_int(node, "ellipsis_mask", 0);
    return ellipsis && 1LL << i > ellipsis ? rank - count + i : i;
}

bool tare_trace_strided_slice(struct tare_trace *t, const struct tare_node *node) {
    const struct tare_tensor *strides = tare_trace_constant(node, 3, TARE_MAX_RANK);
    const int64_t ellipsis = tare_node_int(node, "ellipsis_mask", 0);
    const int count = strides ? (int)strides->elements : 0, rank = t->shape.rank;
    if (!strides || count > rank + (ellipsis != 0) || tare_node_int(node, "new_axis_mask", 0)) return false;
    for (int i = 0; i < count; i++) {
        if (ellipsis >> i & 1) continue;
        if (tare_tensor_get_i64(strides, i) != 1 || !slice_axis(t, node, i, axis_of(node, i, count, rank)))
            return false;
    }
    for (int i = count - 1; i >= 0; i--)
        if (!(ellipsis >> i & 1) && bit(node, "shrink_axis_mask", i))
            tare_trace_remove_axis(t, axis_of(node, i, count, rank));
    return true;
}

/* One of equal parts. */
bool tare_trace_split(struct tare_trace *t, const struct tare_node *node) {
    int axis;
    if (!tare_trace_read_axis(&axis, tare_trace_constant(node, 0, 1), t->shape.rank)) return false;
    const int64_t size = t->shape.dims[axis] / (int64_t)node->n_outputs;
    return size * (int64_t)node->n_outputs == t->shape.dims[axis] && cut(t, node, axis, t->output * size, size);
}

/* One of parts whose sizes are constants, at most one of them -1. */
bool tare_trace_split_sizes(struct tare_trace *t, const struct tare_node *node) {
    int64_t begin = 0, size = 0, rest;
    int axis;
    if (!tare_trace_read_axis(&axis, tare_trace_constant(node, 2, 1), t->shape.rank)) return false;
    rest = t->shape.dims[axis];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < (int)node->n_outputs; i++) {
            if (!number_at(&size, node->inputs[1], i)) return false;
            if (pass == 0 && size > 0) rest -= size;
            if (pass == 1 && size < 0) size = rest;
            if (pass == 1 && i == t->output) return cut(t, node, axis, begin, size);
            if (pass == 1) begin += size;
        }
    return false;
}
