/* TensorFlow 1's batching across callers: Batch concatenates the inputs of several callers, Unbatch returns each
 * caller its rows. Here every call is a batch of its own. Padding to an allowed batch size is done as in TensorFlow,
 * because the ops between Batch and Unbatch observe it. */
#include "interpreter/ops/families.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/move.h"

#include "base/alloc.h"

#include <string.h>

enum { ID = 1 }; /* of the single caller */

/* Computes the number of rows that a batch of `size` rows is padded to. */
static tare_status padded_size(int64_t *out, const struct tare_node *node, int64_t size) {
    const struct tare_attr *allowed = tare_node_list(node, "allowed_batch_sizes");
    const int64_t most = tare_node_int(node, "max_batch_size", 0);
    *out = size;
    if (size > most)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Task size %lld is larger than maximum batch size %lld",
                         (long long)size, (long long)most);
    for (size_t i = 0; allowed && i < allowed->count; i++) {
        if (allowed->items[i].i < size || allowed->items[i].i > most) continue;
        *out = allowed->items[i].i;
        return TARE_OK;
    }
    return TARE_OK;
}

static tare_status infer_batch(struct tare_infer *infer) {
    for (size_t i = 0; i + 2 < infer->n_outputs; i++) {
        infer->outputs[i] = infer->inputs[i];
        if (infer->inputs[i].rank == 0)
            return TARE_FAIL(TARE_SHAPE, "Batching input tensors must have at least one dimension");
        if (infer->inputs[i].rank > 0) infer->outputs[i].dims[0] = TARE_UNKNOWN_DIM;
    }
    infer->outputs[infer->n_outputs - 2] = tare_shape_make(2, (int64_t)-1, (int64_t)3);
    infer->outputs[infer->n_outputs - 1] = tare_shape_scalar();
    return TARE_OK;
}

/* Copies all rows, then repeats the first one up to `rows`. */
static tare_status pad_rows(struct tare_kernel *kernel, size_t i, int64_t rows) {
    const struct tare_tensor *input = &kernel->inputs[i];
    struct tare_shape shape = input->shape;
    const int64_t own = shape.dims[0], row = own ? input->elements / own : 0;
    if (own == rows) return tare_kernel_forward(kernel, i, i);
    shape.dims[0] = rows;
    TARE_TRY(tare_kernel_output(kernel, i, input->dtype, &shape));
    TARE_TRY(tare_move_run(&kernel->outputs[i], 0, input, 0, input->elements));
    for (int64_t k = own; k < rows; k++)
        TARE_TRY(tare_move_run(&kernel->outputs[i], k * row, input, 0, row));
    return TARE_OK;
}

static tare_status run_batch(struct tare_kernel *kernel) {
    const size_t n = kernel->n_inputs;
    const struct tare_shape index = tare_shape_make(2, (int64_t)1, (int64_t)3), scalar = tare_shape_scalar();
    int64_t rows;
    for (size_t i = 0; i < n; i++) {
        const struct tare_shape *shape = &kernel->inputs[i].shape;
        if (shape->rank < 1) return TARE_FAIL(TARE_SHAPE, "Batching input tensors must have at least one dimension");
        if (shape->dims[0] != kernel->inputs[0].shape.dims[0])
            return TARE_FAIL(TARE_SHAPE, "inputs 0 and %zu have %lld and %lld rows", i,
                             (long long)kernel->inputs[0].shape.dims[0], (long long)shape->dims[0]);
    }
    const int64_t size = kernel->inputs[0].shape.dims[0];
    if (size == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a batch of no rows");
    TARE_TRY(padded_size(&rows, kernel->node, size));
    for (size_t i = 0; i < n; i++)
        TARE_TRY(pad_rows(kernel, i, rows));
    TARE_TRY(tare_kernel_output(kernel, n, TARE_DT_INT64, &index));
    TARE_TRY(tare_kernel_output(kernel, n + 1, TARE_DT_INT64, &scalar));
    memcpy(kernel->outputs[n].data, (const int64_t[]){ ID, 0, size }, 3 * sizeof(int64_t));
    TARE_DATA(int64_t, &kernel->outputs[n + 1])[0] = ID;
    return TARE_OK;
}

static tare_status infer_unbatch(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[0];
    if (infer->inputs[0].rank == 0) return TARE_FAIL(TARE_SHAPE, "batched_tensor is a scalar");
    if (infer->inputs[0].rank > 0) infer->outputs[0].dims[0] = TARE_UNKNOWN_DIM;
    return TARE_OK;
}

static tare_status run_unbatch(struct tare_kernel *kernel) {
    const struct tare_tensor *batch = &kernel->inputs[0], *index = &kernel->inputs[1];
    const int64_t *rows = index->data;
    if (batch->shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "batched_tensor is a scalar");
    if (index->shape.rank != 2 || index->shape.dims[1] != 3)
        return TARE_FAIL(TARE_SHAPE, "batch_index has rank %d (expected rows of 3)", index->shape.rank);
    if (kernel->inputs[2].elements != 1) return TARE_FAIL(TARE_SHAPE, "id is not a scalar");
    const int64_t id = TARE_CONST_DATA(int64_t, &kernel->inputs[2])[0], size = batch->shape.dims[0];
    for (int64_t i = 0; i < index->shape.dims[0]; i++) {
        const int64_t *entry = rows + 3 * i;
        if (entry[0] != id) continue;
        if (entry[1] < 0 || entry[1] > entry[2] || entry[2] > size)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "rows %lld to %lld of a batch of %lld", (long long)entry[1],
                             (long long)entry[2], (long long)size);
        return tare_tensor_share_rows(&kernel->outputs[0], batch, entry[1], entry[2] - entry[1]);
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_index has no row for id %lld", (long long)id);
}

const struct tare_op tare_ops_batching[] = {
    { .name = "Batch", .infer = infer_batch, .run = run_batch, .flags = TARE_OP_NO_FOLD },
    { .name = "Unbatch", .infer = infer_unbatch, .run = run_unbatch, .flags = TARE_OP_NO_FOLD },
    { 0 },
};
