/* The largest elements, running sums, and elements chosen by vectors of indices. */
#include "convert/stablehlo/emit/emit.h"

#include <string.h>

#define B (&emit->build)

/* The first `size` elements of the last axis. */
static tare_build_value first_of_last(struct tare_emit *emit, tare_build_value x, int64_t size) {
    int64_t first[TARE_MAX_RANK] = { 0 }, limit[TARE_MAX_RANK], stride[TARE_MAX_RANK];
    if (!x) return NULL;
    for (size_t i = 0; i < x->type->rank; i++) {
        limit[i] = i + 1 == x->type->rank ? size : x->type->dims[i];
        stride[i] = 1;
    }
    return tare_build_slice(B, x, first, limit, stride);
}

/* Values and positions, sorted from the greatest on; of equal values the first is first. */
static tare_status emit_top(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), scalar = tare_shape_scalar();
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const int position = tare_emit_out_dtype(node, 1);
    const int64_t size = tare_emit_out_shape(emit, node, 0).dims[in.rank - 1];
    struct tare_shlo_block body = { 0 };
    struct tare_build_block block;
    (void)arg;
    if (!x) return emit->build.status;
    const tare_build_value positions = tare_build_iota(B, position, &in, in.rank - 1);
    const struct tare_shlo_type *value_type = tare_build_type(B, tare_build_dtype(x), &scalar),
                                *position_type = tare_build_type(B, position, &scalar);
    const struct tare_shlo_type *const types[] = { value_type, value_type, position_type, position_type };
    const tare_build_value args = tare_build_arguments(B, &body, types, 4);
    if (!args || !positions) return emit->build.status;
    tare_build_begin(B, &block);
    const tare_build_value is_greater = tare_build_compare(B, "GT", &args[0], &args[1]);
    tare_build_end(B, &body, &is_greater, 1);
    const struct tare_build_named attrs[] = { { "dimension", tare_build_int(B, in.rank - 1) },
                                              { "is_stable", tare_build_bool(B, true) } };
    const struct tare_shlo_op *op = tare_build_op(
        B, &(struct tare_build_request){ .name = "sort",
                                         .operands = (tare_build_value[]){ x, positions },
                                         .n_operands = 2,
                                         .attrs = attrs,
                                         .n_attrs = 2,
                                         .results = (const struct tare_shlo_type *[]){ x->type, positions->type },
                                         .n_results = 2,
                                         .regions = &body,
                                         .n_regions = 1 });
    if (!op) return emit->build.status;
    const tare_build_value sorted = &op->results[0], order = &op->results[1];
    TARE_TRY(tare_emit_set(emit, node, 0, first_of_last(emit, sorted, size)));
    return tare_emit_set(emit, node, 1, first_of_last(emit, order, size));
}

/* A window over all elements up to each one; `exclusive`: without itself. */
static tare_status emit_running(struct tare_emit *emit, const struct tare_node *node, const void *name) {
    const struct tare_shape shape = tare_emit_in_shape(emit, node, 0);
    const bool exclusive = tare_node_bool(node, "exclusive", false), reverse = tare_node_bool(node, "reverse", false);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t axis, ones[TARE_MAX_RANK], sizes[TARE_MAX_RANK], pad[TARE_MAX_RANK][2] = { { 0 } };
    size_t count;
    TARE_TRY(tare_emit_in_ints(&axis, &count, emit, node, 1));
    if (axis < 0) axis += shape.rank;
    if (!x) return emit->build.status;
    if (!shape.rank || !shape.dims[axis]) return tare_emit_set(emit, node, 0, x);
    for (int i = 0; i < shape.rank; i++)
        ones[i] = sizes[i] = 1;
    sizes[axis] = shape.dims[axis];
    pad[axis][reverse] = shape.dims[axis] - !exclusive;
    pad[axis][!reverse] = exclusive ? -1 : 0;
    const tare_build_value initial = tare_build_scalar(B, tare_build_dtype(x), strcmp(name, "multiply") == 0);
    const struct tare_shlo_type *const types[] = { initial ? initial->type : NULL, initial ? initial->type : NULL };
    struct tare_shlo_block body = { 0 };
    struct tare_build_block block;
    const tare_build_value args = tare_build_arguments(B, &body, types, 2);
    if (!args) return emit->build.status;
    tare_build_begin(B, &block);
    const tare_build_value sum = tare_build_binary(B, name, &args[0], &args[1]);
    tare_build_end(B, &body, &sum, 1);
    const size_t rank = (size_t)shape.rank;
    const struct tare_build_named attrs[] = {
        { "base_dilations", tare_build_ints(B, ones, rank, 0) },
        { "padding", tare_build_ints(B, pad[0], 2 * rank, 2) },
        { "window_dilations", tare_build_ints(B, ones, rank, 0) },
        { "window_dimensions", tare_build_ints(B, sizes, rank, 0) },
        { "window_strides", tare_build_ints(B, ones, rank, 0) },
    };
    return tare_emit_set(
        emit, node, 0,
        tare_build_value_of(B, &(struct tare_build_request){ .name = "reduce_window",
                                                             .operands = (tare_build_value[]){ x, initial },
                                                             .n_operands = 2,
                                                             .attrs = attrs,
                                                             .n_attrs = 5,
                                                             .results = &x->type,
                                                             .n_results = 1,
                                                             .regions = &body,
                                                             .n_regions = 1 }));
}

/* The last axis of the indices is an index of the first axes. */
static tare_status emit_gather_nd(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), where = tare_emit_in_shape(emit, node, 1),
                            out = tare_emit_out_shape(emit, node, 0);
    const tare_build_value operands[] = { tare_emit_in(emit, node, 0), tare_emit_in(emit, node, 1) };
    int64_t axes[TARE_MAX_RANK], offsets[TARE_MAX_RANK], sizes[TARE_MAX_RANK];
    (void)arg;
    if (tare_node_int(node, "batch_dims", 0)) return TARE_FAIL(TARE_UNSUPPORTED, "batch axes");
    const size_t depth = (size_t)where.dims[where.rank - 1], n_offsets = (size_t)in.rank - depth;
    for (int i = 0; i < in.rank; i++) {
        axes[i] = i;
        sizes[i] = (size_t)i < depth ? 1 : in.dims[i];
    }
    for (size_t i = 0; i < n_offsets; i++)
        offsets[i] = where.rank - 1 + (int64_t)i;
    const struct tare_build_named attrs[] = {
        { "collapsed_slice_dims", tare_build_ints(B, axes, depth, 0) },
        { "index_vector_dim", tare_build_int(B, where.rank - 1) },
        { "indices_are_sorted", tare_build_bool(B, false) },
        { "offset_dims", tare_build_ints(B, offsets, n_offsets, 0) },
        { "operand_batching_dims", tare_build_ints(B, axes, 0, 0) },
        { "slice_sizes", tare_build_ints(B, sizes, (size_t)in.rank, 0) },
        { "start_index_map", tare_build_ints(B, axes, depth, 0) },
        { "start_indices_batching_dims", tare_build_ints(B, axes, 0, 0) },
    };
    const struct tare_shlo_type *type = tare_build_type(B, tare_emit_out_dtype(node, 0), &out);
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = "gather",
                                                                              .operands = operands,
                                                                              .n_operands = 2,
                                                                              .attrs = attrs,
                                                                              .n_attrs = sizeof attrs / sizeof *attrs,
                                                                              .results = &type,
                                                                              .n_results = 1 }));
}

const struct tare_emit_row tare_emit_order[] = {
    { "TopKV2", emit_top, NULL },
    { "Cumsum", emit_running, "add" },
    { "Cumprod", emit_running, "multiply" },
    { "GatherNd", emit_gather_nd, NULL },
    { 0 },
};
