/* Ops that move elements without looking at them: shapes, slices, concatenations, padding. Sizes are constants. */
#include "convert/stablehlo/emit/emit.h"

#include <string.h>

#define B (&emit->build)

static tare_status emit_reshape(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_reshape(B, tare_emit_in(emit, node, 0), &shape));
}

static tare_status emit_broadcast(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_broadcast(B, tare_emit_in(emit, node, 0), &shape));
}

/* Fill has the value as its second input. */
static tare_status emit_fill(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_broadcast(B, tare_emit_in(emit, node, 1), &shape));
}

static tare_status emit_like(struct tare_emit *emit, const struct tare_node *node, const void *number) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    return tare_emit_set(emit, node, 0,
                         x ? tare_build_splat(B, tare_build_dtype(x), &shape, *(const char *)number - '0') : NULL);
}

static tare_status emit_transpose(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    int64_t axes[TARE_MAX_RANK];
    int permutation[TARE_MAX_RANK];
    size_t count;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(axes, &count, emit, node, 1));
    for (size_t i = 0; i < count; i++)
        permutation[i] = (int)(axes[i] < 0 ? axes[i] + (int64_t)count : axes[i]);
    return tare_emit_set(emit, node, 0, tare_build_transpose(B, tare_emit_in(emit, node, 0), permutation));
}

/* ---- parts ---- */

/* Elements first … limit - 1 along one axis. */
static tare_build_value part(struct tare_emit *emit, tare_build_value x, int axis, int64_t from, int64_t to) {
    int64_t first[TARE_MAX_RANK] = { 0 }, limit[TARE_MAX_RANK], stride[TARE_MAX_RANK];
    if (!x) return NULL;
    for (size_t i = 0; i < x->type->rank; i++) {
        limit[i] = x->type->dims[i];
        stride[i] = 1;
    }
    first[axis] = from;
    limit[axis] = to;
    return tare_build_slice(B, x, first, limit, stride);
}

static tare_status emit_slice(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape out = tare_emit_out_shape(emit, node, 0);
    int64_t first[TARE_MAX_RANK], limit[TARE_MAX_RANK], stride[TARE_MAX_RANK];
    size_t count;
    (void)arg;
    if (!tare_emit_in_constant(emit, node, 1)) {
        const tare_build_value x = tare_emit_in(emit, node, 0), begin = tare_emit_in(emit, node, 1);
        return tare_emit_set(emit, node, 0, tare_emit_dynamic_slice(emit, x, begin, &out));
    }
    TARE_TRY(tare_emit_in_ints(first, &count, emit, node, 1));
    for (size_t i = 0; i < count; i++) {
        limit[i] = first[i] + out.dims[i];
        stride[i] = 1;
    }
    return tare_emit_set(emit, node, 0, tare_build_slice(B, tare_emit_in(emit, node, 0), first, limit, stride));
}

/* The range of one axis of a strided slice, with a positive stride; `reverse`: of the axis in reverse order. */
static void strided_range(int64_t *first, int64_t *limit, int64_t *stride, bool *reverse, int64_t begin, int64_t end,
                          int64_t step, bool no_begin, bool no_end, int64_t size) {
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
    if (begin < 0) begin += size;
    if (end < 0) end += size;
    begin = no_begin ? (step > 0 ? lowest : highest) : begin < lowest ? lowest : begin > highest ? highest : begin;
    end = no_end ? (step > 0 ? highest : lowest) : end < lowest ? lowest : end > highest ? highest : end;
    *reverse = step < 0;
    if (*reverse) { /* element i of the reversed axis is size - 1 - i */
        begin = size - 1 - begin;
        end = size - 1 - end;
        step = -step;
    }
    *first = begin;
    *limit = end < begin ? begin : end;
    *stride = step;
}

static tare_build_value reverse(struct tare_emit *emit, tare_build_value x, const int64_t *axes, size_t count) {
    const struct tare_build_named attr = { "dimensions", tare_build_ints(B, axes, count, 0) };
    if (!x || !count) return x;
    return tare_build_value_of(B, &(struct tare_build_request){ .name = "reverse",
                                                                .operands = &x,
                                                                .n_operands = 1,
                                                                .attrs = &attr,
                                                                .n_attrs = 1,
                                                                .results = &x->type,
                                                                .n_results = 1 });
}

/* begin, end and strides may begin with entries of an ellipsis or a new axis; what is left is a slice and a reshape. */
static tare_status emit_strided_slice(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    const int64_t begin_mask = tare_node_int(node, "begin_mask", 0), end_mask = tare_node_int(node, "end_mask", 0);
    const int64_t ellipsis_mask = tare_node_int(node, "ellipsis_mask", 0),
                  new_axis_mask = tare_node_int(node, "new_axis_mask", 0);
    const int64_t shrink_mask = tare_node_int(node, "shrink_axis_mask", 0);
    int64_t begin[TARE_MAX_RANK], end[TARE_MAX_RANK], step[TARE_MAX_RANK], first[TARE_MAX_RANK], limit[TARE_MAX_RANK],
        stride[TARE_MAX_RANK], reversed[TARE_MAX_RANK];
    size_t count, n_reversed = 0;
    int axis = 0, left;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(begin, &count, emit, node, 1));
    TARE_TRY(tare_emit_in_ints(end, &count, emit, node, 2));
    TARE_TRY(tare_emit_in_ints(step, &count, emit, node, 3));
    for (int i = 0; i < in.rank; i++) {
        first[i] = 0;
        limit[i] = in.dims[i];
        stride[i] = 1;
    }
    for (size_t i = 0; i < count && axis < in.rank; i++) {
        bool is_reversed;
        if (ellipsis_mask >> i & 1) {
            left = 0; /* entries after the ellipsis that have an axis */
            for (size_t k = i + 1; k < count; k++)
                left += !(new_axis_mask >> k & 1);
            axis = in.rank - left;
            continue;
        }
        if (new_axis_mask >> i & 1) continue;
        if (shrink_mask >> i & 1) {
            first[axis] = begin[i] < 0 ? begin[i] + in.dims[axis] : begin[i];
            limit[axis] = first[axis] + 1;
        } else {
            strided_range(&first[axis], &limit[axis], &stride[axis], &is_reversed, begin[i], end[i], step[i],
                          begin_mask >> i & 1, end_mask >> i & 1, in.dims[axis]);
            if (is_reversed) reversed[n_reversed++] = axis;
        }
        axis++;
    }
    const tare_build_value x = reverse(emit, tare_emit_in(emit, node, 0), reversed, n_reversed);
    return tare_emit_set(emit, node, 0, tare_build_reshape(B, tare_build_slice(B, x, first, limit, stride), &out));
}

static tare_status emit_reverse(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0);
    int64_t axes[TARE_MAX_RANK];
    size_t count;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(axes, &count, emit, node, 1));
    for (size_t i = 0; i < count; i++)
        if (axes[i] < 0) axes[i] += in.rank;
    return tare_emit_set(emit, node, 0, reverse(emit, tare_emit_in(emit, node, 0), axes, count));
}

/* Split has its axis first, SplitV after the value and the sizes. */
static tare_status emit_split(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const size_t value = strcmp(node->op, "Split") == 0 ? 1 : 0, where = value ? 0 : 2;
    const struct tare_shape in = tare_emit_in_shape(emit, node, value);
    int64_t axis, from = 0;
    size_t count;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(&axis, &count, emit, node, where));
    if (axis < 0) axis += in.rank;
    for (size_t i = 0; i < node->n_outputs; i++) {
        const int64_t size = tare_emit_out_shape(emit, node, i).dims[axis];
        TARE_TRY(
            tare_emit_set(emit, node, i, part(emit, tare_emit_in(emit, node, value), (int)axis, from, from + size)));
        from += size;
    }
    return TARE_OK;
}

static tare_status emit_unpack(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0);
    int64_t axis = tare_node_int(node, "axis", 0);
    (void)arg;
    if (axis < 0) axis += in.rank;
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct tare_shape out = tare_emit_out_shape(emit, node, i);
        const tare_build_value one = part(emit, tare_emit_in(emit, node, 0), (int)axis, (int64_t)i, (int64_t)i + 1);
        TARE_TRY(tare_emit_set(emit, node, i, tare_build_reshape(B, one, &out)));
    }
    return TARE_OK;
}

/* ---- joining ---- */

static tare_build_value *values_array(struct tare_emit *emit, size_t count) {
    return TARE_NEW_ARRAY(&emit->arena, tare_build_value, count + 1);
}

static tare_status emit_concat(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const size_t count = node->n_inputs - 1, first = strcmp(node->op, "Concat") == 0;
    tare_build_value *values = values_array(emit, count);
    int64_t axis;
    size_t n;
    (void)arg;
    if (!values) return TARE_NO_MEMORY;
    TARE_TRY(tare_emit_in_ints(&axis, &n, emit, node, first ? 0 : count));
    if (axis < 0) axis += tare_emit_out_shape(emit, node, 0).rank;
    for (size_t i = 0; i < count; i++)
        values[i] = tare_emit_in(emit, node, i + first);
    return tare_emit_set(emit, node, 0, tare_build_concatenate(B, values, count, (int)axis));
}

static tare_status emit_pack(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    struct tare_shape one = tare_emit_out_shape(emit, node, 0);
    tare_build_value *values = values_array(emit, node->n_inputs);
    int64_t axis = tare_node_int(node, "axis", 0);
    (void)arg;
    if (!values) return TARE_NO_MEMORY;
    if (axis < 0) axis += one.rank;
    one.dims[axis] = 1;
    for (size_t i = 0; i < node->n_inputs; i++)
        values[i] = tare_build_reshape(B, tare_emit_in(emit, node, i), &one);
    return tare_emit_set(emit, node, 0, tare_build_concatenate(B, values, node->n_inputs, (int)axis));
}

/* Each axis becomes a pair, of the multiple and of the size, which a reshape joins. */
static tare_status emit_tile(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    struct tare_shape pairs = { 0 };
    int64_t multiples[TARE_MAX_RANK];
    int dims[TARE_MAX_RANK];
    size_t count;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(multiples, &count, emit, node, 1));
    for (int i = 0; i < in.rank; i++) {
        if (pairs.rank + 2 > TARE_MAX_RANK)
            return TARE_FAIL(TARE_UNSUPPORTED, "%d axes (expected at most %d)", in.rank, TARE_MAX_RANK / 2);
        if (multiples[i] != 1) pairs.dims[pairs.rank++] = multiples[i];
        dims[i] = pairs.rank;
        pairs.dims[pairs.rank++] = in.dims[i];
    }
    return tare_emit_set(emit, node, 0,
                         tare_build_reshape(B, tare_build_spread(B, tare_emit_in(emit, node, 0), &pairs, dims), &out));
}

/* ---- padding ---- */

static tare_status paddings(int64_t *low, int64_t *high, struct tare_emit *emit, const struct tare_node *node) {
    const struct tare_tensor *constant = tare_emit_in_constant(emit, node, 1);
    if (!constant) return TARE_FAIL(TARE_UNSUPPORTED, "the paddings are not constant");
    for (int64_t i = 0; i < constant->elements / 2; i++) {
        low[i] = tare_tensor_get_i64(constant, 2 * i);
        high[i] = tare_tensor_get_i64(constant, 2 * i + 1);
    }
    return TARE_OK;
}

static tare_status emit_pad(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t low[TARE_MAX_RANK], high[TARE_MAX_RANK];
    (void)arg;
    TARE_TRY(paddings(low, high, emit, node));
    if (!x) return TARE_OK;
    const tare_build_value value =
        node->n_inputs > 2 ? tare_emit_in(emit, node, 2) : tare_build_scalar(B, tare_build_dtype(x), 0);
    return tare_emit_set(emit, node, 0, tare_build_pad(B, x, value, low, high, NULL));
}

/* The elements next to each border, in reverse order; SYMMETRIC repeats the border itself. */
static tare_status emit_mirror_pad(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const int64_t skip = strcmp(tare_node_string(node, "mode", "REFLECT"), "SYMMETRIC") != 0;
    tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t low[TARE_MAX_RANK], high[TARE_MAX_RANK];
    (void)arg;
    TARE_TRY(paddings(low, high, emit, node));
    for (int64_t axis = 0; x && axis < (int64_t)x->type->rank; axis++) {
        const int64_t size = x->type->dims[axis];
        tare_build_value parts[3];
        size_t count = 0;
        if (low[axis]) parts[count++] = reverse(emit, part(emit, x, (int)axis, skip, skip + low[axis]), &axis, 1);
        parts[count++] = x;
        if (high[axis])
            parts[count++] = reverse(emit, part(emit, x, (int)axis, size - skip - high[axis], size - skip), &axis, 1);
        x = tare_build_concatenate(B, parts, count, (int)axis);
    }
    return tare_emit_set(emit, node, 0, x);
}

/* ---- space, depth and batch ---- */

/* NHWC: [b, h·s, w·s, c] is [b, h, s, w, s, c]; depth is [b, h, w, s, s, c] with the last three joined. */
static tare_status emit_space_and_depth(struct tare_emit *emit, const struct tare_node *node, const void *to_depth) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    const struct tare_shape *space = to_depth ? &in : &out;
    const int64_t size = tare_node_int(node, "block_size", 2), channels = space->dims[3];
    const int64_t height = space->dims[1] / size, width = space->dims[2] / size;
    const struct tare_shape pixels = { .rank = 6, .dims = { in.dims[0], height, size, width, size, channels } };
    const struct tare_shape blocks = { .rank = 6, .dims = { in.dims[0], height, width, size, size, channels } };
    static const int swap[] = { 0, 1, 3, 2, 4, 5 };
    if (strcmp(tare_node_string(node, "data_format", "NHWC"), "NHWC") != 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "data format %s", tare_node_string(node, "data_format", ""));
    const tare_build_value split = tare_build_reshape(B, tare_emit_in(emit, node, 0), to_depth ? &pixels : &blocks);
    return tare_emit_set(emit, node, 0, tare_build_reshape(B, tare_build_transpose(B, split, swap), &out));
}

const struct tare_emit_row tare_emit_shapes[] = {
    { "Reshape", emit_reshape, NULL },
    { "Squeeze", emit_reshape, NULL },
    { "ExpandDims", emit_reshape, NULL },
    { "BroadcastTo", emit_broadcast, NULL },
    { "Fill", emit_fill, NULL },
    { "ZerosLike", emit_like, "0" },
    { "OnesLike", emit_like, "1" },
    { "Transpose", emit_transpose, NULL },
    { "Slice", emit_slice, NULL },
    { "StridedSlice", emit_strided_slice, NULL },
    { "ReverseV2", emit_reverse, NULL },
    { "Split", emit_split, NULL },
    { "SplitV", emit_split, NULL },
    { "Unpack", emit_unpack, NULL },
    { "Concat", emit_concat, NULL },
    { "ConcatV2", emit_concat, NULL },
    { "Pack", emit_pack, NULL },
    { "Tile", emit_tile, NULL },
    { "Pad", emit_pad, NULL },
    { "PadV2", emit_pad, NULL },
    { "MirrorPad", emit_mirror_pad, NULL },
    { "SpaceToDepth", emit_space_and_depth, "depth" },
    { "DepthToSpace", emit_space_and_depth, NULL },
    { 0 },
};
