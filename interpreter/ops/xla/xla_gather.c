/* XlaGather: copies slices of the operand at positions given by index vectors. */
#include "interpreter/ops/support/dims_wire.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <string.h>

enum { OFFSET, COLLAPSED, INDEX_MAP, VECTOR_DIM, BATCHING, INDEX_BATCHING, N_FIELDS };

/* xla.GatherDimensionNumbers and values derived from it. The result has batch dimensions, from the indices, and
 * offset dimensions, from the slice. */
struct gather {
    struct tare_dims_field fields[N_FIELDS];
    int64_t sizes[TARE_MAX_RANK]; /* slice sizes by operand dimension */
    int operand_rank, indices_rank;
    bool collapsed[TARE_MAX_RANK]; /* operand dimensions that the slice lacks in the result, batching ones included */
    bool is_offset[TARE_MAX_RANK]; /* result dimensions that come from the slice */
    int rank;                      /* of the result */
};

static bool holds(const struct tare_dims_field *field, int64_t value) {
    for (size_t i = 0; i < field->count; i++)
        if (field->values[i] == value) return true;
    return false;
}

static tare_status in_range(const struct tare_dims_field *field, int limit, const char *what) {
    for (size_t i = 0; i < field->count; i++)
        if (field->values[i] < 0 || field->values[i] >= limit)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s contains %lld (expected 0 to %d)", what,
                             (long long)field->values[i], limit - 1);
    return TARE_OK;
}

/* Each slice is taken from the operand at its own position along the batching dimensions. */
static tare_status check_batching(const struct gather *g, const struct tare_shape *operand,
                                  const struct tare_shape *indices) {
    const struct tare_dims_field *own = &g->fields[BATCHING], *theirs = &g->fields[INDEX_BATCHING];
    TARE_TRY(in_range(own, operand->rank, "operand_batching_dims"));
    TARE_TRY(in_range(theirs, indices->rank, "start_indices_batching_dims"));
    if (own->count != theirs->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu operand_batching_dims and %zu of the indices", own->count,
                         theirs->count);
    if (holds(theirs, tare_dims_single(&g->fields[VECTOR_DIM])))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "start_indices_batching_dims contains index_vector_dim");
    for (size_t k = 0; k < own->count; k++) {
        const int64_t a = operand->dims[own->values[k]], b = indices->dims[theirs->values[k]];
        if (a >= 0 && b >= 0 && a != b)
            return TARE_FAIL(TARE_SHAPE, "batching dimensions differ (%lld and %lld)", (long long)a, (long long)b);
    }
    return TARE_OK;
}

static tare_status open_gather(struct gather *g, const struct tare_node *node, const struct tare_shape *operand,
                               const struct tare_shape *indices) {
    static const char *const names[] = { "offset_dims", "collapsed_slice_dims", "start_index_map" };
    memset(g, 0, sizeof *g);
    for (int f = 0; f < N_FIELDS; f++)
        g->fields[f].number = f + 1;
    TARE_TRY(tare_dims_read(g->fields, N_FIELDS, node, "dimension_numbers"));
    g->operand_rank = operand->rank;
    g->indices_rank = indices->rank;
    const int64_t vector = tare_dims_single(&g->fields[VECTOR_DIM]);
    if (vector < 0 || vector > indices->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "index_vector_dim is %lld for indices of rank %d", (long long)vector,
                         indices->rank);
    const int batch = indices->rank - (vector < indices->rank ? 1 : 0);
    g->rank = batch + (int)g->fields[OFFSET].count;
    if (g->rank > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "the result has too many dims");
    TARE_TRY(in_range(&g->fields[OFFSET], g->rank, names[OFFSET]));
    TARE_TRY(in_range(&g->fields[COLLAPSED], operand->rank, names[COLLAPSED]));
    TARE_TRY(in_range(&g->fields[INDEX_MAP], operand->rank, names[INDEX_MAP]));
    TARE_TRY(check_batching(g, operand, indices));
    int kept = 0, offsets = 0;
    for (int d = 0; d < operand->rank; d++) {
        g->collapsed[d] = holds(&g->fields[COLLAPSED], d) || holds(&g->fields[BATCHING], d);
        kept += !g->collapsed[d];
    }
    for (int d = 0; d < g->rank; d++) {
        g->is_offset[d] = holds(&g->fields[OFFSET], d);
        offsets += g->is_offset[d];
    }
    if (kept != offsets || offsets != (int)g->fields[OFFSET].count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu offset_dims for slices of %d dims", g->fields[OFFSET].count, kept);
    const int64_t depth = vector < indices->rank ? indices->dims[vector] : 1;
    if (depth >= 0 && depth != (int64_t)g->fields[INDEX_MAP].count)
        return TARE_FAIL(TARE_SHAPE, "vectors of %lld indices (expected %zu)", (long long)depth,
                         g->fields[INDEX_MAP].count);
    return TARE_OK;
}

/* Sets the sizes, -1 where they are not known; *count -1: none is. */
static tare_status slice_sizes(struct gather *g, int *count, const struct tare_infer *infer) {
    const struct tare_shape *part = infer->input_parts ? infer->input_parts[2] : NULL;
    TARE_TRY(tare_operand_list(infer, 2, "slice_sizes", g->sizes, count));
    if (*count >= 0 || !part) return TARE_OK;
    *count = part->rank;
    for (int d = 0; d < part->rank; d++)
        g->sizes[d] = part->dims[d];
    return TARE_OK;
}

static tare_status infer_gather(struct tare_infer *infer) {
    const struct tare_shape *operand = &infer->inputs[0], *indices = &infer->inputs[1];
    struct gather g;
    int count, own = 0, slice = 0;
    if (operand->rank < 0 || indices->rank < 0) return TARE_OK;
    TARE_TRY(open_gather(&g, infer->node, operand, indices));
    TARE_TRY(slice_sizes(&g, &count, infer));
    if (count >= 0 && count != operand->rank)
        return TARE_FAIL(TARE_SHAPE, "slice_sizes has %d elements (expected %d)", count, operand->rank);
    infer->outputs[0] = tare_operand_unknown_dims(g.rank);
    const int64_t vector = tare_dims_single(&g.fields[VECTOR_DIM]);
    for (int d = 0; d < g.rank; d++) {
        if (g.is_offset[d]) {
            while (g.collapsed[slice])
                slice++;
            if (count >= 0) infer->outputs[0].dims[d] = g.sizes[slice];
            slice++;
        } else {
            own += own == vector;
            infer->outputs[0].dims[d] = indices->dims[own++];
        }
    }
    for (int d = 0; d < count; d++) {
        const bool fits = operand->dims[d] < 0 || g.sizes[d] <= operand->dims[d];
        if (g.sizes[d] < 0 && !infer->input_values[2]) continue;
        if (g.sizes[d] < 0 || !fits || (g.collapsed[d] && g.sizes[d] != 1))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "a slice of %lld elements along dimension %d",
                             (long long)g.sizes[d], d);
    }
    return TARE_OK;
}

/* The position of slice number `batch` along dimension `d` of the indices. */
static int64_t batch_position(const struct tare_shape *indices, int64_t vector, int64_t batch, int64_t d) {
    for (int after = indices->rank - 1; after > d; after--)
        if (after != vector) batch /= indices->dims[after];
    return batch % indices->dims[d];
}

/* Operand index at which slice number `batch` (in index order) starts. */
static int64_t slice_start(const struct gather *g, const struct tare_tensor *operand, const struct tare_tensor *indices,
                           int64_t batch) {
    const int64_t vector = tare_dims_single(&g->fields[VECTOR_DIM]);
    int64_t inner = 1, strides[TARE_MAX_RANK], start = 0;
    for (int d = (int)vector + 1; d < indices->shape.rank; d++)
        inner *= indices->shape.dims[d];
    const int64_t depth = (int64_t)g->fields[INDEX_MAP].count;
    tare_move_strides(strides, &operand->shape);
    for (int64_t k = 0; k < depth; k++) {
        const int64_t d = g->fields[INDEX_MAP].values[k];
        int64_t at = tare_tensor_get_i64(indices, (batch / inner * depth + k) * inner + batch % inner);
        const int64_t most = operand->shape.dims[d] - g->sizes[d];
        at = at < 0 ? 0 : at > most ? most : at;
        start += at * strides[d];
    }
    for (size_t k = 0; k < g->fields[BATCHING].count; k++)
        start += batch_position(&indices->shape, vector, batch, g->fields[INDEX_BATCHING].values[k]) *
                 strides[g->fields[BATCHING].values[k]];
    return start;
}

static tare_status run_gather(struct tare_kernel *kernel) {
    const struct tare_tensor *operand = &kernel->inputs[0], *indices = &kernel->inputs[1];
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t from[TARE_MAX_RANK], to[TARE_MAX_RANK], batches = 1;
    struct gather g;
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(open_gather(&g, kernel->node, &operand->shape, &indices->shape));
    if (kernel->inputs[2].elements != operand->shape.rank)
        return TARE_FAIL(TARE_SHAPE, "slice_sizes has %lld elements (expected %d)",
                         (long long)kernel->inputs[2].elements, operand->shape.rank);
    for (int d = 0; d < operand->shape.rank; d++)
        g.sizes[d] = tare_tensor_get_i64(&kernel->inputs[2], d);
    if (!out->elements) return TARE_OK;
    tare_move_strides(from, &operand->shape);
    tare_move_strides(to, &out->shape);
    for (int d = 0; d < g.rank; d++)
        batches *= g.is_offset[d] ? 1 : out->shape.dims[d];
    for (int64_t b = 0; b < batches; b++) {
        struct tare_move move = { 0 };
        int64_t left = b;
        int slice = 0;
        for (int d = g.rank - 1; d >= 0; d--) {
            if (g.is_offset[d]) continue;
            move.to_offset += left % out->shape.dims[d] * to[d];
            left /= out->shape.dims[d];
        }
        move.from_offset = slice_start(&g, operand, indices, b);
        for (int d = 0; d < g.rank; d++) {
            if (!g.is_offset[d]) continue;
            while (g.collapsed[slice])
                slice++;
            tare_move_dim(&move, g.sizes[slice], from[slice], to[d]);
            slice++;
        }
        TARE_TRY(tare_move_apply(out, operand, &move));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_xla_gather[] = {
    { .name = "XlaGather", .infer = infer_gather, .run = run_gather, .flags = TARE_OP_MOVE },
    { 0 },
};
