/* Ops that choose elements by numbers that are computed. */
#include "convert/stablehlo/emit/emit.h"

#define B (&emit->build)

/* Rows of `axis` by indices of any shape; the first `batch_dims` axes of both are the same. StableHLO clamps indices
 * that are out of range, as TensorFlow on a TPU does. */
static tare_status emit_gather(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), indices = tare_emit_in_shape(emit, node, 1),
                            out = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0), where = tare_emit_in(emit, node, 1);
    int64_t axis = 0, batch = tare_node_int(node, "batch_dims", 0), sizes[TARE_MAX_RANK], offsets[TARE_MAX_RANK],
            batching[TARE_MAX_RANK];
    size_t count, n_offsets = 0;
    (void)arg;
    if (node->n_inputs > 2) TARE_TRY(tare_emit_in_ints(&axis, &count, emit, node, 2));
    if (axis < 0) axis += in.rank;
    if (batch < 0) batch += indices.rank;
    for (int i = 0; i < in.rank; i++) {
        sizes[i] = i < batch || i == axis ? 1 : in.dims[i];
        if (i < batch) batching[i] = i;
        if (i < batch || i == axis) continue;
        offsets[n_offsets++] = i < axis ? i : i - 1 + indices.rank - batch; /* the axis of the result */
    }
    if (!x || !where) return TARE_OK;
    const struct tare_build_named attrs[] = {
        { "collapsed_slice_dims", tare_build_ints(B, &axis, 1, 0) },
        { "index_vector_dim", tare_build_int(B, indices.rank) },
        { "indices_are_sorted", tare_build_bool(B, false) },
        { "offset_dims", tare_build_ints(B, offsets, n_offsets, 0) },
        { "operand_batching_dims", tare_build_ints(B, batching, (size_t)batch, 0) },
        { "slice_sizes", tare_build_ints(B, sizes, (size_t)in.rank, 0) },
        { "start_index_map", tare_build_ints(B, &axis, 1, 0) },
        { "start_indices_batching_dims", tare_build_ints(B, batching, (size_t)batch, 0) },
    };
    const struct tare_shlo_type *type = tare_build_type(B, tare_build_dtype(x), &out);
    return tare_emit_set(
        emit, node, 0,
        tare_build_value_of(B, &(struct tare_build_request){ .name = "gather",
                                                             .operands = (tare_build_value[]){ x, where },
                                                             .n_operands = 2,
                                                             .attrs = attrs,
                                                             .n_attrs = sizeof attrs / sizeof *attrs,
                                                             .results = &type,
                                                             .n_results = 1 }));
}

/* on where the index equals the position along the new axis, off elsewhere. */
static tare_status emit_one_hot(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape out = tare_emit_out_shape(emit, node, 0);
    const tare_build_value indices = tare_emit_in(emit, node, 0);
    int64_t axis = tare_node_int(node, "axis", -1);
    int dims[TARE_MAX_RANK];
    (void)arg;
    if (axis < 0) axis += out.rank;
    for (int i = 0; i + 1 < out.rank; i++)
        dims[i] = i < axis ? i : i + 1;
    if (!indices) return TARE_OK;
    const tare_build_value positions = tare_build_iota(B, tare_build_dtype(indices), &out, (int)axis);
    const tare_build_value is_on = tare_build_compare(B, "EQ", tare_build_spread(B, indices, &out, dims), positions);
    const tare_build_value off = tare_build_broadcast(B, tare_emit_in(emit, node, 3), &out);
    const tare_build_value on = tare_build_broadcast(B, tare_emit_in(emit, node, 2), &out);
    return tare_emit_set(emit, node, 0, tare_build_select(B, is_on, on, off));
}

const struct tare_emit_row tare_emit_indexing[] = {
    { "Gather", emit_gather, NULL },
    { "GatherV2", emit_gather, NULL },
    { "OneHot", emit_one_hot, NULL },
    { 0 },
};
