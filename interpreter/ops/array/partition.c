/* DynamicPartition, DynamicStitch and ParallelDynamicStitch: distributes rows to several tensors and merges them. */
#include "base/alloc.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

/* Requires that data.shape begins with prefix.shape. */
static tare_status check_prefix(const struct tare_shape *data, const struct tare_shape *prefix, const char *what) {
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape front = *data;
    if (data->rank < 0 || prefix->rank < 0) return TARE_OK;
    if (prefix->rank < data->rank) front.rank = prefix->rank;
    if (!tare_shape_compatible(&front, prefix))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "data.shape must start with %s.shape, got data.shape = %s, %s.shape = %s", what,
                         tare_shape_text(a, data), what, tare_shape_text(b, prefix));
    return TARE_OK;
}

static tare_status infer_partition(struct tare_infer *infer) {
    const struct tare_shape *data = &infer->inputs[0], *partitions = &infer->inputs[1];
    struct tare_shape part = tare_operand_vector_shape(-1);
    TARE_TRY(check_prefix(data, partitions, "partitions"));
    if (data->rank < 0 || partitions->rank < 0) return TARE_OK;
    TARE_TRY(tare_operand_append(&part, data, partitions->rank, data->rank));
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = part;
    return TARE_OK;
}

static tare_status run_partition(struct tare_kernel *kernel) {
    const struct tare_tensor *data = &kernel->inputs[0], *partitions = &kernel->inputs[1];
    int64_t parts = (int64_t)kernel->n_outputs, inner;
    int64_t *counts = TARE_NEW_ARRAY(kernel->scratch, int64_t, kernel->n_outputs);
    struct tare_shape *shapes;
    if (!counts) return TARE_NO_MEMORY;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    inner = tare_move_product(&data->shape, partitions->shape.rank, data->shape.rank);
    for (int64_t i = 0; i < partitions->elements; i++) {
        int64_t part = tare_index_at(partitions, i);
        if (part < 0 || part >= parts) return tare_index_fault("partitions", partitions, i, part, parts);
        counts[part]++;
    }
    for (int64_t p = 0; p < parts; p++) {
        shapes[p].dims[0] = counts[p];
        TARE_TRY(tare_kernel_output(kernel, (size_t)p, data->dtype, &shapes[p]));
        counts[p] = 0;
    }
    for (int64_t i = 0; i < partitions->elements; i++) {
        int64_t part = tare_index_at(partitions, i);
        TARE_TRY(tare_move_run(&kernel->outputs[part], counts[part]++ * inner, data, i * inner, inner));
    }
    return TARE_OK;
}

static tare_status infer_stitch(struct tare_infer *infer) {
    size_t n = infer->n_inputs / 2;
    struct tare_shape rest = tare_shape_unknown();
    int64_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tare_shape *indices = &infer->inputs[i], *data = &infer->inputs[n + i];
        struct tare_shape mine = { .rank = 0 }, merged;
        TARE_TRY(check_prefix(data, indices, "indices"));
        if (!infer->input_values[i]) rows = -1;
        for (int64_t k = 0; rows >= 0 && k < infer->input_values[i]->elements; k++) {
            int64_t index = tare_index_at(infer->input_values[i], k);
            if (index < 0) return tare_index_fault("indices", infer->input_values[i], k, index, INT32_MAX);
            if (index >= rows) rows = index + 1;
        }
        if (data->rank < 0 || indices->rank < 0) continue;
        TARE_TRY(tare_operand_append(&mine, data, indices->rank, data->rank));
        if (tare_shape_merge(&merged, &rest, &mine) != TARE_OK)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Need data[0].shape[indices[0].dims:] = data[%zu].shape[indices[%zu].dims:]", i, i);
        rest = merged;
    }
    infer->outputs[0] = tare_operand_vector_shape(rows);
    return tare_operand_append(&infer->outputs[0], &rest, 0, rest.rank);
}

/* Later tensors override earlier ones. Rows without an index are zero; TensorFlow leaves them uninitialized. */
static tare_status run_stitch(struct tare_kernel *kernel) {
    size_t n = kernel->n_inputs / 2;
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t inner;
    TARE_TRY(tare_operand_output(kernel, n));
    inner = tare_move_product(&out->shape, 1, out->shape.rank);
    tare_move_zero(out, 0, out->elements);
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < kernel->inputs[i].elements; k++)
            TARE_TRY(tare_move_run(out, tare_index_at(&kernel->inputs[i], k) * inner, &kernel->inputs[n + i], k * inner,
                                   inner));
    return TARE_OK;
}

#define STITCH(op_name)                                                                                                \
    { .name = op_name, .infer = infer_stitch, .run = run_stitch, .flags = TARE_OP_MOVE }

const struct tare_op tare_ops_partition[] = {
    { .name = "DynamicPartition", .infer = infer_partition, .run = run_partition, .flags = TARE_OP_MOVE },
    STITCH("DynamicStitch"),
    STITCH("ParallelDynamicStitch"),
    { 0 },
};
#undef STITCH
