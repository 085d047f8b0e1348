/* Ops that move elements: shapes, slices, padding, concatenation, gathers and scatters; and iota. */
#include "convert/stablehlo/lower.h"

#include "base/alloc.h"
#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

/* An integer tensor as int64. */
static struct tare_edge as_longs(struct tare_lowering *l, struct tare_edge x) {
    return tare_lower_cast(l, x, TARE_DT_INT64);
}

/* ---- shapes ---- */

static void lower_reshape(struct tare_lowering *l, const void *arg) {
    const struct tare_edge shape = tare_lower_dims(l, tare_lower_out_type(l, 0));
    (void)arg;
    tare_lower_set(l, tare_lower_reshape(l, tare_lower_in(l, 0), shape));
}

/* With one dynamic dimension, its size follows from the number of elements. */
static bool infers_one(const struct tare_shlo_type *type, int64_t *dims) {
    size_t unknown = 0;
    for (size_t i = 0; i < type->rank; i++) {
        unknown += type->dims[i] < 0;
        dims[i] = type->dims[i] < 0 ? -1 : type->dims[i];
        if (!type->dims[i]) return false;
    }
    return unknown <= 1;
}

static void lower_dynamic_reshape(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_type *type = tare_lower_out_type(l, 0);
    int64_t dims[TARE_MAX_RANK];
    const bool is_inferred = type->rank <= TARE_MAX_RANK && infers_one(type, dims);
    const struct tare_edge shape =
        is_inferred ? tare_lower_longs(l, dims, type->rank) : as_longs(l, tare_lower_in(l, 1));
    (void)arg;
    tare_lower_set(l, tare_lower_reshape(l, tare_lower_in(l, 0), shape));
}

/* True if the operand has all elements of the result: no axis is longer. */
static bool only_reshapes(const struct tare_shlo_type *in, const struct tare_shlo_type *out) {
    int64_t elements = 1;
    for (size_t i = 0; i < in->rank; i++) {
        if (in->dims[i] < 0 || !tare_mul_i64(&elements, elements, in->dims[i])) return false;
    }
    for (size_t i = 0; i < out->rank; i++) {
        if (out->dims[i] < 1 || elements % out->dims[i]) return false;
        elements /= out->dims[i];
    }
    return elements == 1;
}

/* Operand axis i becomes axis dims[i] of the result; the others are broadcast. The dims need not increase. */
static struct tare_edge broadcast(struct tare_lowering *l, struct tare_edge shape) {
    const size_t rank = tare_lower_out_type(l, 0)->rank;
    int64_t dims[TARE_MAX_RANK], order[TARE_MAX_RANK], used[TARE_MAX_RANK] = { 0 };
    const size_t count = tare_lower_ints(l, dims, TARE_MAX_RANK, "broadcast_dimensions");
    struct tare_edge x = tare_lower_in(l, 0);
    size_t n = 0;
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        if (dims[i] < 0 || (size_t)dims[i] >= rank || used[dims[i]]) {
            tare_lower_fail(l, TARE_CORRUPT, "invalid broadcast_dimensions");
            return x;
        }
        used[dims[i]] = (int64_t)i + 1;
        sorted = sorted && (!i || dims[i] > dims[i - 1]);
    }
    for (size_t d = 0; d < rank; d++)
        if (used[d]) order[n++] = used[d] - 1;
    if (!sorted) x = tare_lower_binary(l, "Transpose", x, tare_lower_longs(l, order, n));
    if (only_reshapes(tare_lower_in_type(l, 0), tare_lower_out_type(l, 0))) return tare_lower_reshape(l, x, shape);
    for (size_t d = 0; d < rank; d++)
        if (!used[d]) x = tare_lower_binary(l, "ExpandDims", x, tare_lower_scalar(l, TARE_DT_INT32, (double)d));
    return tare_lower_binary(l, "BroadcastTo", x, shape);
}

static bool same_dims(const struct tare_shlo_type *a, const struct tare_shlo_type *b) {
    if (a->rank != b->rank) return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] || a->dims[i] < 0) return false;
    return true;
}

/* A rank-0 operand of element-wise ops is broadcast by them, but the value is the op's: it must have the shape. */
static void lower_broadcast_in_dim(struct tare_lowering *l, const void *arg) {
    int64_t dims[TARE_MAX_RANK];
    bool identity = same_dims(tare_lower_in_type(l, 0), tare_lower_out_type(l, 0));
    const size_t count = tare_lower_ints(l, dims, TARE_MAX_RANK, "broadcast_dimensions");
    (void)arg;
    for (size_t i = 0; i < count; i++)
        identity = identity && dims[i] == (int64_t)i;
    if (identity)
        tare_lower_set(l, tare_lower_in(l, 0));
    else
        tare_lower_set(l, broadcast(l, tare_lower_dims(l, tare_lower_out_type(l, 0))));
}

static void lower_dynamic_broadcast(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_set(l, broadcast(l, as_longs(l, tare_lower_in(l, 1))));
}

static void lower_broadcast(struct tare_lowering *l, const void *arg) {
    const struct tare_edge shape = tare_lower_dims(l, tare_lower_out_type(l, 0));
    (void)arg;
    tare_lower_set(l, tare_lower_binary(l, "BroadcastTo", tare_lower_in(l, 0), shape));
}

static void lower_with_list(struct tare_lowering *l, const void *arg) {
    const char *const *row = arg; /* the op and the attribute that is its second input */
    int64_t values[TARE_MAX_RANK];
    const size_t count = tare_lower_ints(l, values, TARE_MAX_RANK, row[1]);
    const struct tare_edge list = tare_lower_longs(l, values, count);
    tare_lower_set(l, tare_lower_binary(l, row[0], tare_lower_in(l, 0), list));
}

static void lower_concatenate(struct tare_lowering *l, const void *arg) {
    struct tare_edge inputs[256];
    const size_t count = l->op->n_operands;
    (void)arg;
    if (count + 1 > sizeof inputs / sizeof *inputs) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu operands (expected at most 255)", count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        inputs[i] = tare_lower_in(l, i);
    inputs[count] = tare_lower_scalar(l, TARE_DT_INT32, (double)tare_lower_int(l, "dimension"));
    tare_lower_set(l, count == 1 ? inputs[0] : tare_lower_end(l, tare_lower_begin(l, "ConcatV2", inputs, count + 1)));
}

static void lower_dimension_size(struct tare_lowering *l, const void *arg) {
    const struct tare_edge x = tare_lower_in(l, 0);
    struct tare_node *shape = tare_lower_begin(l, "Shape", &x, 1);
    (void)arg;
    tare_lower_attr_type(l, shape, "out_type", TARE_DT_INT32);
    const struct tare_edge inputs[] = { tare_lower_end(l, shape),
                                        tare_lower_scalar(l, TARE_DT_INT32, (double)tare_lower_int(l, "dimension")),
                                        tare_lower_scalar(l, TARE_DT_INT32, 0) };
    struct tare_node *gather = tare_lower_begin(l, "GatherV2", inputs, 3);
    tare_lower_set(l, tare_lower_cast(l, tare_lower_end(l, gather), tare_lower_out_dtype(l, 0)));
}

/* 0, 1, … along one dimension of the shape. */
static struct tare_edge iota(struct tare_lowering *l, struct tare_edge shape, size_t rank) {
    const int64_t axis = tare_lower_int(l, "iota_dimension");
    const struct tare_edge gather[] = { shape, tare_lower_scalar(l, TARE_DT_INT32, (double)axis),
                                        tare_lower_scalar(l, TARE_DT_INT32, 0) };
    const struct tare_edge size = tare_lower_end(l, tare_lower_begin(l, "GatherV2", gather, 3));
    const struct tare_edge range[] = { tare_lower_scalar(l, TARE_DT_INT64, 0), size,
                                       tare_lower_scalar(l, TARE_DT_INT64, 1) };
    struct tare_edge x = tare_lower_end(l, tare_lower_begin(l, "Range", range, 3));
    x = tare_lower_cast(l, x, tare_lower_out_dtype(l, 0));
    if (axis < 0 || (size_t)axis >= rank) tare_lower_fail(l, TARE_CORRUPT, "iota_dimension is out of range");
    for (size_t d = 0; d < rank; d++)
        if ((int64_t)d != axis)
            x = tare_lower_binary(l, "ExpandDims", x, tare_lower_scalar(l, TARE_DT_INT32, (double)d));
    return rank == 1 ? x : tare_lower_binary(l, "BroadcastTo", x, shape);
}

static bool is_empty(const struct tare_shlo_type *type) {
    for (size_t d = 0; d < type->rank; d++)
        if (type->dims[d] == 0) return true;
    return false;
}

static void lower_iota(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_type *type = tare_lower_out_type(l, 0);
    (void)arg;
    if (l->op->n_operands == 0 && is_empty(type)) { /* whose dimension may be too long for a list of numbers */
        const struct tare_edge zero = tare_lower_scalar(l, tare_lower_out_dtype(l, 0), 0);
        tare_lower_set(l, tare_lower_binary(l, "BroadcastTo", zero, tare_lower_dims(l, type)));
        return;
    }
    tare_lower_set(
        l, iota(l, l->op->n_operands ? as_longs(l, tare_lower_in(l, 0)) : tare_lower_dims(l, type), type->rank));
}

/* ---- slices and padding ---- */

static void lower_slice(struct tare_lowering *l, const void *arg) {
    int64_t start[TARE_MAX_RANK], limit[TARE_MAX_RANK], stride[TARE_MAX_RANK];
    const size_t n = tare_lower_ints(l, start, TARE_MAX_RANK, "start_indices");
    (void)arg;
    if (tare_lower_ints(l, limit, TARE_MAX_RANK, "limit_indices") != n ||
        tare_lower_ints(l, stride, TARE_MAX_RANK, "strides") != n)
        tare_lower_fail(l, TARE_CORRUPT, "slice bounds of different lengths");
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_longs(l, start, n),
                                        tare_lower_longs(l, limit, n), tare_lower_longs(l, stride, n) };
    tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "StridedSlice", inputs, 4)));
}

enum { DEEPEST_JOIN = 4 };

/* Constants are joined by nodes that are only folded later. */
static bool is_all_ones(struct tare_edge edge, int depth) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    const bool joins = tare_node_is(edge.node, "ConcatV2"); /* the last input is the axis */
    bool ones = value || joins || tare_node_is(edge.node, "Reshape") || tare_node_is(edge.node, "Cast");
    for (int64_t i = 0; value && i < value->elements; i++)
        ones &= tare_tensor_get_i64(value, i) == 1;
    ones &= depth < DEEPEST_JOIN;
    for (size_t i = 0; !value && ones && i < (joins ? edge.node->n_inputs - 1 : 1); i++)
        ones = is_all_ones(edge.node->inputs[i], depth + 1);
    return ones;
}

/* The sizes of a slice that ends at `limit`, start + sizes. */
static bool sizes_of(struct tare_edge *out, struct tare_edge start, struct tare_edge limit) {
    for (size_t i = 0; tare_node_is(limit.node, "AddV2") && i < 2; i++) {
        const struct tare_edge addend = limit.node->inputs[i];
        if (addend.node != start.node || addend.index != start.index) continue;
        *out = limit.node->inputs[1 - i];
        return true;
    }
    return false;
}

/* XLA needs to know the sizes when it compiles, of StridedSlice the start as well: a loop that takes one row after the
 * other is a Slice. */
static void lower_real_dynamic_slice(struct tare_lowering *l, const void *arg) {
    struct tare_edge inputs[4], sizes;
    (void)arg;
    for (size_t i = 0; i < 4; i++)
        inputs[i] = i ? as_longs(l, tare_lower_in(l, i)) : tare_lower_in(l, i);
    const struct tare_edge end = tare_lower_in(l, 2), begin = tare_lower_in(l, 1);
    if (is_all_ones(tare_lower_in(l, 3), 0) && sizes_of(&sizes, begin, end)) {
        inputs[2] = as_longs(l, sizes);
        tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "Slice", inputs, 3)));
    } else {
        tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "StridedSlice", inputs, 4)));
    }
}

/* Scalar start indices as one vector. Unsigned 64-bit ones beyond the signed range count as the greatest index. */
static struct tare_edge starts(struct tare_lowering *l, size_t first) {
    struct tare_edge inputs[TARE_MAX_RANK];
    const size_t count = l->op->n_operands - first;
    if (count > TARE_MAX_RANK) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu start indices", count);
        return (struct tare_edge){ 0 };
    }
    if (!count) return tare_lower_longs(l, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        inputs[i] = as_longs(l, tare_lower_in(l, first + i));
        if (tare_lower_in_dtype(l, first + i) != TARE_DT_UINT64) continue;
        const struct tare_edge most = tare_lower_scalar(l, TARE_DT_INT64, 4e18);
        const struct tare_edge zero = tare_lower_scalar(l, TARE_DT_INT64, 0);
        inputs[i] = tare_lower_select(l, tare_lower_binary(l, "Less", inputs[i], zero), most, inputs[i]);
    }
    return tare_lower_end(l, tare_lower_begin(l, "Pack", inputs, count));
}

static void lower_dynamic_slice(struct tare_lowering *l, const void *arg) {
    int64_t sizes[TARE_MAX_RANK];
    const size_t n = tare_lower_ints(l, sizes, TARE_MAX_RANK, "slice_sizes");
    (void)arg;
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), starts(l, 1), tare_lower_longs(l, sizes, n) };
    tare_lower_set(l, n ? tare_lower_end(l, tare_lower_begin(l, "XlaDynamicSlice", inputs, 3)) : inputs[0]);
}

static void lower_dynamic_update_slice(struct tare_lowering *l, const void *arg) {
    (void)arg;
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_in(l, 1), starts(l, 2) };
    tare_lower_set(l, l->op->n_operands > 2 ? tare_lower_end(l, tare_lower_begin(l, "XlaDynamicUpdateSlice", inputs, 3))
                                            : inputs[1]);
}

static void lower_pad(struct tare_lowering *l, const void *arg) {
    static const char *const names[] = { "edge_padding_low", "edge_padding_high", "interior_padding" };
    struct tare_edge inputs[5] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    int64_t values[TARE_MAX_RANK];
    (void)arg;
    for (size_t i = 0; i < 3; i++) {
        const size_t n = tare_lower_ints(l, values, TARE_MAX_RANK, names[i]);
        inputs[2 + i] = tare_lower_longs(l, values, n);
    }
    tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "XlaPad", inputs, 5)));
}

static void lower_dynamic_pad(struct tare_lowering *l, const void *arg) {
    struct tare_edge inputs[5] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    (void)arg;
    for (size_t i = 2; i < 5; i++)
        inputs[i] = as_longs(l, tare_lower_in(l, i));
    tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "XlaPad", inputs, 5)));
}

/* ---- gather and scatter ---- */

static void put_list(struct tare_lowering *l, struct tare_dims_wire *wire, int field, const char *name) {
    int64_t values[TARE_MAX_RANK];
    int narrow[TARE_MAX_RANK];
    const size_t count = tare_shlo_op_attr(l->op, name) ? tare_lower_ints(l, values, TARE_MAX_RANK, name) : 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i] < 0 || values[i] > TARE_MAX_RANK) {
            tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' is out of range", name);
            return;
        }
        narrow[i] = (int)values[i];
    }
    tare_dims_put_list(wire, field, narrow, (int)count);
}

static void put_vector_dim(struct tare_lowering *l, struct tare_dims_wire *wire, int field) {
    const int64_t dim = tare_lower_int(l, "index_vector_dim");
    if (dim < 0 || dim > TARE_MAX_RANK)
        tare_lower_fail(l, TARE_CORRUPT, "index_vector_dim is out of range");
    else
        tare_dims_put(wire, field, (int)dim);
}

/* Indices of XLA's ops are int32 or int64. */
static struct tare_edge indices(struct tare_lowering *l, size_t i) {
    const int dtype = tare_lower_in_dtype(l, i);
    const struct tare_edge x = tare_lower_in(l, i);
    return dtype == TARE_DT_INT32 ? x : as_longs(l, x);
}

/* Fields of xla.GatherDimensionNumbers and xla.ScatterDimensionNumbers. */
static void lower_gather(struct tare_lowering *l, const void *arg) {
    struct tare_dims_wire wire = { .size = 0 };
    int64_t sizes[TARE_MAX_RANK];
    const bool dynamic = l->op->n_operands == 3;
    const size_t n = dynamic ? 0 : tare_lower_ints(l, sizes, TARE_MAX_RANK, "slice_sizes");
    const struct tare_edge at = indices(l, 1);
    struct tare_edge size = dynamic ? as_longs(l, tare_lower_in(l, 2)) : tare_lower_longs(l, sizes, n);
    (void)arg;
    if (l->status == TARE_OK) size = tare_lower_cast(l, size, tare_edge_dtype(at));
    put_list(l, &wire, 1, "offset_dims");
    put_list(l, &wire, 2, "collapsed_slice_dims");
    put_list(l, &wire, 3, "start_index_map");
    put_vector_dim(l, &wire, 4);
    put_list(l, &wire, 5, "operand_batching_dims");
    put_list(l, &wire, 6, "start_indices_batching_dims");
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), at, size };
    struct tare_node *node = tare_lower_begin(l, "XlaGather", inputs, 3);
    tare_lower_attr_bytes(l, node, "dimension_numbers", wire.bytes, wire.size);
    tare_lower_attr_bool(l, node, "indices_are_sorted", tare_lower_flag(l, "indices_are_sorted"));
    tare_lower_set(l, tare_lower_end(l, node));
}

/* ---- scatter of several operands ---- */

static bool uses(const struct tare_shlo_op *op, const struct tare_shlo_value *value) {
    for (size_t i = 0; i < op->n_operands; i++)
        if (op->operands[i] == value) return true;
    return op->n_regions > 0; /* not looked into */
}

/* The part of the function of `count` operands that computes result i: a block with the two arguments of that operand.
 * False if the result depends on the arguments of another operand. Memory of the model. */
static bool part_of(struct tare_shlo_block *out, struct tare_lowering *l, size_t i, size_t count) {
    const struct tare_shlo_block *body = &l->op->regions[0];
    struct tare_arena *arena = &l->graph->model->arena;
    bool *needed = TARE_NEW_ARRAY(arena, bool, body->n_ops + 1);
    const struct tare_shlo_op *end = &body->ops[body->n_ops - 1];
    out->args = TARE_NEW_ARRAY(arena, struct tare_shlo_value, 2);
    out->ops = TARE_NEW_ARRAY(arena, struct tare_shlo_op, body->n_ops);
    if (!needed || !out->args || !out->ops) {
        l->status = TARE_NO_MEMORY;
        return false;
    }
    out->args[0] = body->args[i], out->args[1] = body->args[count + i];
    out->n_args = 2;
    for (size_t k = body->n_ops - 1; k-- > 0;) { /* backwards from the result */
        for (size_t r = 0; r < body->ops[k].n_results; r++) {
            needed[k] = needed[k] || end->operands[i] == &body->ops[k].results[r];
            for (size_t u = k + 1; u + 1 < body->n_ops; u++)
                needed[k] = needed[k] || (needed[u] && uses(&body->ops[u], &body->ops[k].results[r]));
        }
        for (size_t a = 0; a < body->n_args && needed[k]; a++)
            if (a % count != i && uses(&body->ops[k], &body->args[a])) return false;
    }
    for (size_t a = 0; a < body->n_args; a++)
        if (a % count != i && end->operands[i] == &body->args[a]) return false;
    for (size_t k = 0; k + 1 < body->n_ops; k++)
        if (needed[k]) out->ops[out->n_ops++] = body->ops[k];
    out->ops[out->n_ops] = *end;
    out->ops[out->n_ops].operands = end->operands + i;
    out->ops[out->n_ops++].n_operands = 1;
    return true;
}

static struct tare_graph *function_of_part(struct tare_lowering *l, size_t i, size_t count) {
    struct tare_shlo_block part = { 0 };
    if (count == 1) return tare_lower_region(l, &l->op->regions[0], NULL, false);
    if (l->op->regions[0].n_args != 2 * count || !l->op->regions[0].n_ops ||
        l->op->regions[0].ops[l->op->regions[0].n_ops - 1].n_operands != count) {
        tare_lower_fail(l, TARE_CORRUPT, "the function of a scatter has other arguments or results");
        return NULL;
    }
    if (!part_of(&part, l, i, count))
        tare_lower_fail(l, TARE_UNSUPPORTED, "a scatter of several operands whose results depend on each other");
    return l->status == TARE_OK ? tare_lower_region(l, &part, NULL, false) : NULL;
}

static void lower_scatter(struct tare_lowering *l, const void *arg) {
    const size_t count = l->op->n_results;
    struct tare_dims_wire wire = { .size = 0 };
    (void)arg;
    if (!count || l->op->n_operands != 2 * count + 1) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", l->op->n_operands, count);
        return;
    }
    put_list(l, &wire, 1, "update_window_dims");
    put_list(l, &wire, 2, "inserted_window_dims");
    put_list(l, &wire, 3, "scatter_dims_to_operand_dims");
    put_vector_dim(l, &wire, 4);
    put_list(l, &wire, 5, "input_batching_dims");
    put_list(l, &wire, 6, "scatter_indices_batching_dims");
    const struct tare_edge at = indices(l, count);
    for (size_t i = 0; i < count && l->status == TARE_OK; i++) {
        const struct tare_edge inputs[] = { tare_lower_in(l, i), at, tare_lower_in(l, count + 1 + i) };
        struct tare_node *node = tare_lower_begin(l, "XlaScatter", inputs, 3);
        tare_lower_attr_func(l, node, "update_computation", function_of_part(l, i, count));
        tare_lower_attr_bytes(l, node, "dimension_numbers", wire.bytes, wire.size);
        tare_lower_attr_bool(l, node, "indices_are_sorted", tare_lower_flag(l, "indices_are_sorted"));
        l->outputs[i] = tare_lower_end(l, node);
    }
}

const struct tare_lowering_row tare_lower_shapes[] = {
    { "reshape", lower_reshape, NULL },
    { "dynamic_reshape", lower_dynamic_reshape, NULL },
    { "broadcast_in_dim", lower_broadcast_in_dim, NULL },
    { "dynamic_broadcast_in_dim", lower_dynamic_broadcast, NULL },
    { "broadcast", lower_broadcast, NULL },
    { "transpose", lower_with_list, (const char *const[]){ "Transpose", "permutation" } },
    { "reverse", lower_with_list, (const char *const[]){ "ReverseV2", "dimensions" } },
    { "concatenate", lower_concatenate, NULL },
    { "get_dimension_size", lower_dimension_size, NULL },
    { "iota", lower_iota, NULL },
    { "dynamic_iota", lower_iota, NULL },
    { "slice", lower_slice, NULL },
    { "real_dynamic_slice", lower_real_dynamic_slice, NULL },
    { "dynamic_slice", lower_dynamic_slice, NULL },
    { "dynamic_update_slice", lower_dynamic_update_slice, NULL },
    { "pad", lower_pad, NULL },
    { "dynamic_pad", lower_dynamic_pad, NULL },
    { "gather", lower_gather, NULL },
    { "dynamic_gather", lower_gather, NULL },
    { "scatter", lower_scatter, NULL },
    { 0 },
};
