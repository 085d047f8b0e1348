/* SpaceToBatchND, BatchToSpaceND and their 2-D forms: moves blocks of the spatial dimensions to the batch dimension
 * and back. */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

/* The block shape and the paddings or crops, read from the operands or from the attribute block_size. */
struct blocks {
    int n;                                               /* spatial dimensions, 1 … n */
    int64_t size[TARE_MAX_RANK];                         /* -1: unknown */
    int64_t before[TARE_MAX_RANK], after[TARE_MAX_RANK]; /* paddings or crops */
    bool to_batch;
};

static tare_status read_edges(struct blocks *blocks, const struct tare_tensor *edges) {
    const char *what = blocks->to_batch ? "paddings" : "crops";
    for (int d = 0; d < blocks->n; d++)
        blocks->before[d] = blocks->after[d] = -1;
    if (!edges) return TARE_OK;
    if (edges->shape.rank != 2 || edges->shape.dims[0] != blocks->n || edges->shape.dims[1] != 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s should have shape [%d, 2]", what, blocks->n);
    for (int d = 0; d < blocks->n; d++) {
        blocks->before[d] = tare_tensor_get_i64(edges, 2 * d);
        blocks->after[d] = tare_tensor_get_i64(edges, 2 * d + 1);
        if (blocks->before[d] < 0 || blocks->after[d] < 0 || blocks->before[d] > INT32_MAX ||
            blocks->after[d] > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be non-negative (got %lld and %lld)", what,
                             (long long)blocks->before[d], (long long)blocks->after[d]);
    }
    return TARE_OK;
}

static tare_status read_blocks(struct blocks *blocks, const struct tare_infer *infer) {
    const struct tare_node *node = infer->node;
    bool by_operand = infer->n_inputs == 3;
    blocks->to_batch = node->op[0] == 'S';
    if (by_operand) {
        int64_t length;
        int count;
        TARE_TRY(tare_operand_vector(infer, 1, "block_shape", &length));
        TARE_TRY(tare_operand_list(infer, 1, "block_shape", blocks->size, &count));
        if (length > TARE_MAX_RANK - 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "block_shape has %lld entries", (long long)length);
        blocks->n = (int)length;
        for (int d = 0; d < blocks->n && count < 0; d++)
            blocks->size[d] = -1;
    } else {
        blocks->n = 2;
        blocks->size[0] = blocks->size[1] = tare_node_int(node, "block_size", 2);
        TARE_TRY(tare_operand_rank(infer, 0, "input", 4));
    }
    for (int d = 0; d < blocks->n; d++)
        if (blocks->size[d] != -1 && (blocks->size[d] < 1 || blocks->size[d] > INT32_MAX))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "block_shape must be positive (got %lld)",
                             (long long)blocks->size[d]);
    TARE_TRY(tare_operand_rank(infer, by_operand ? 2 : 1, blocks->to_batch ? "paddings" : "crops", 2));
    return blocks->n < 0 ? TARE_OK : read_edges(blocks, infer->input_values[by_operand ? 2 : 1]);
}

static tare_status spatial_dim(int64_t *out, const struct blocks *blocks, int d, int64_t dim) {
    int64_t size = blocks->size[d], edges = blocks->before[d] + blocks->after[d];
    *out = -1;
    if (dim < 0 || size < 0 || blocks->before[d] < 0) return TARE_OK;
    if (blocks->to_batch) {
        if (!tare_add_i64(out, dim, edges))
            return TARE_FAIL(TARE_SHAPE, "dimension %d of the result is too large", d + 1);
        if (*out % size)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld", d,
                             (long long)*out, d, (long long)size);
        *out /= size;
    } else {
        if (!tare_mul_i64(out, dim, size))
            return TARE_FAIL(TARE_SHAPE, "dimension %d of the result is too large", d + 1);
        if (*out < edges)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "cropped_shape[%d]=%lld must be non-negative", d,
                             (long long)(*out - edges));
        *out -= edges;
    }
    return TARE_OK;
}

static tare_status infer_blocks(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    struct blocks blocks;
    int64_t all = 1;
    TARE_TRY(read_blocks(&blocks, infer));
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (blocks.n < 0) {
        *out = tare_operand_unknown_dims(in->rank);
        return TARE_OK;
    }
    if (in->rank < blocks.n + 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "input rank should be >= %d instead of %d", blocks.n + 1, in->rank);
    *out = *in;
    for (int d = 0; d < blocks.n; d++) {
        TARE_TRY(spatial_dim(&out->dims[d + 1], &blocks, d, in->dims[d + 1]));
        if (blocks.size[d] < 0 || all < 0)
            all = -1;
        else if (!tare_mul_i64(&all, all, blocks.size[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the product of block_shape is too large");
    }
    if (in->dims[0] < 0) return TARE_OK;
    out->dims[0] = -1;
    if (all < 0) return TARE_OK;
    if (!blocks.to_batch && in->dims[0] % all)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Input batch dimension (%lld) is not divisible by product of block "
                         "sizes (%lld)",
                         (long long)in->dims[0], (long long)all);
    out->dims[0] = in->dims[0] / all;
    if (blocks.to_batch && !tare_mul_i64(&out->dims[0], in->dims[0], all))
        return TARE_FAIL(TARE_SHAPE, "the batch dimension of the result is too large");
    return TARE_OK;
}

/* Copies the elements at one offset within the blocks: entry p of the small side corresponds to entry p * size +
 * offset - before of the large side, if that exists. */
static tare_status move_offset(struct tare_kernel *kernel, const struct blocks *blocks, const int64_t *offsets,
                               int64_t number) {
    const struct tare_tensor *in = &kernel->inputs[0], *out = &kernel->outputs[0];
    const struct tare_tensor *large = blocks->to_batch ? in : out, *small = blocks->to_batch ? out : in;
    int64_t large_strides[TARE_MAX_RANK], small_strides[TARE_MAX_RANK], batch = large->shape.dims[0];
    int64_t large_at = 0, small_at, rest;
    struct tare_move move = { 0 };
    tare_move_strides(large_strides, &large->shape);
    tare_move_strides(small_strides, &small->shape);
    small_at = number * batch * small_strides[0];
    rest = tare_move_product(&large->shape, blocks->n + 1, large->shape.rank);
    tare_move_dim(&move, batch, large_strides[0], small_strides[0]);
    for (int d = 0; d < blocks->n; d++) {
        int64_t size = blocks->size[d], shift = blocks->before[d] - offsets[d];
        int64_t first = shift > 0 ? (shift + size - 1) / size : 0; /* p * size >= shift */
        int64_t last = large->shape.dims[d + 1] - 1 + shift;       /* p * size <= last */
        int64_t end = last < 0 ? 0 : last / size + 1;
        if (end > small->shape.dims[d + 1]) end = small->shape.dims[d + 1];
        if (end <= first) return TARE_OK;
        large_at += (first * size - shift) * large_strides[d + 1];
        small_at += first * small_strides[d + 1];
        tare_move_dim(&move, end - first, size * large_strides[d + 1], small_strides[d + 1]);
    }
    tare_move_dim(&move, rest, 1, 1);
    move.from_offset = large_at;
    move.to_offset = small_at;
    if (!blocks->to_batch) {
        for (int d = 0; d < move.rank; d++) {
            int64_t stride = move.from[d];
            move.from[d] = move.to[d];
            move.to[d] = stride;
        }
        move.from_offset = small_at;
        move.to_offset = large_at;
    }
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

static tare_status run_blocks(struct tare_kernel *kernel) {
    const struct tare_tensor *edges = &kernel->inputs[kernel->n_inputs - 1];
    struct blocks blocks = { .n = 2, .to_batch = kernel->node->op[0] == 'S' };
    int64_t all = 1;
    TARE_TRY(tare_operand_output(kernel, 0));
    if (kernel->n_inputs == 3) blocks.n = (int)kernel->inputs[1].elements;
    for (int d = 0; d < blocks.n; d++) {
        blocks.size[d] = kernel->n_inputs == 3 ? tare_tensor_get_i64(&kernel->inputs[1], d)
                                               : tare_node_int(kernel->node, "block_size", 2);
        all *= blocks.size[d];
    }
    TARE_TRY(read_edges(&blocks, edges));
    if (!kernel->outputs[0].elements) return TARE_OK;
    if (blocks.to_batch) tare_move_zero(&kernel->outputs[0], 0, kernel->outputs[0].elements);
    for (int64_t number = 0; number < all; number++) {
        int64_t offsets[TARE_MAX_RANK], left = number;
        for (int d = blocks.n - 1; d >= 0; d--) {
            offsets[d] = left % blocks.size[d];
            left /= blocks.size[d];
        }
        TARE_TRY(move_offset(kernel, &blocks, offsets, number));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_space_batch[] = {
    { .name = "BatchToSpace",
      .infer = infer_blocks,
      .run = run_blocks,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "BatchToSpaceND",
      .infer = infer_blocks,
      .run = run_blocks,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "SpaceToBatch",
      .infer = infer_blocks,
      .run = run_blocks,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "SpaceToBatchND",
      .infer = infer_blocks,
      .run = run_blocks,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
