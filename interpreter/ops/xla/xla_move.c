/* XLA ops that move elements (XlaDynamicSlice, XlaDynamicUpdateSlice, XlaPad, XlaSort, XlaKeyValueSort), and ops
 * that only matter to a compiler. Models exported from JAX use them. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Reads one integer for each of `rank` dimensions; TARE_SHAPE otherwise. */
static tare_status read_vector(int64_t out[TARE_MAX_RANK], const struct tare_tensor *tensor, int rank,
                               const char *what) {
    if (tensor->shape.rank != 1 || tensor->elements != rank)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %d)", what, (long long)tensor->elements, rank);
    for (int d = 0; d < rank; d++)
        out[d] = tare_tensor_get_i64(tensor, d);
    return TARE_OK;
}

/* ---- slices: start indices are clamped so that the slice fits ---- */

static tare_status infer_slice(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    int64_t dims[TARE_MAX_RANK], length;
    int count;
    TARE_TRY(tare_operand_vector(infer, 2, "size_indices", &length));
    TARE_TRY(tare_operand_list(infer, 2, "size_indices", dims, &count));
    if (count < 0) {
        if (length >= 0 && length <= TARE_MAX_RANK) infer->outputs[0] = tare_operand_unknown_dims((int)length);
        return TARE_OK;
    }
    if (input->rank >= 0 && input->rank != count)
        return TARE_FAIL(TARE_SHAPE, "%d sizes for an input of rank %d", count, input->rank);
    for (int d = 0; d < count; d++)
        if (dims[d] < 0 || (input->rank >= 0 && input->dims[d] >= 0 && dims[d] > input->dims[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "a slice of %lld elements along dimension %d", (long long)dims[d],
                             d);
    return tare_shape_from_dims(&infer->outputs[0], count, dims);
}

static void clamp_start(int64_t start[TARE_MAX_RANK], const struct tare_shape *whole, const struct tare_shape *part) {
    for (int d = 0; d < whole->rank; d++) {
        const int64_t most = whole->dims[d] - part->dims[d];
        start[d] = start[d] < 0 ? 0 : start[d] > most ? most : start[d];
    }
}

/* Describes the copy between the part and the whole at `start`, in either direction. */
static struct tare_move window_of(const struct tare_shape *whole, const struct tare_shape *part, const int64_t *start,
                                  bool into_whole) {
    int64_t big[TARE_MAX_RANK], small[TARE_MAX_RANK], offset = 0;
    struct tare_move move = { 0 };
    tare_move_strides(big, whole);
    tare_move_strides(small, part);
    for (int d = 0; d < whole->rank; d++) {
        offset += start[d] * big[d];
        tare_move_dim(&move, part->dims[d], into_whole ? small[d] : big[d], into_whole ? big[d] : small[d]);
    }
    *(into_whole ? &move.to_offset : &move.from_offset) = offset;
    return move;
}

static tare_status run_slice(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    int64_t start[TARE_MAX_RANK];
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(read_vector(start, &kernel->inputs[1], input->shape.rank, "start_indices"));
    clamp_start(start, &input->shape, &kernel->outputs[0].shape);
    const struct tare_move move = window_of(&input->shape, &kernel->outputs[0].shape, start, false);
    return tare_move_apply(&kernel->outputs[0], input, &move);
}

static tare_status run_update(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0], *update = &kernel->inputs[1];
    int64_t start[TARE_MAX_RANK];
    if (update->shape.rank != input->shape.rank)
        return TARE_FAIL(TARE_SHAPE, "update has rank %d (expected %d)", update->shape.rank, input->shape.rank);
    for (int d = 0; d < input->shape.rank; d++)
        if (update->shape.dims[d] > input->shape.dims[d])
            return TARE_FAIL(TARE_SHAPE, "update has %lld elements along dimension %d (expected at most %lld)",
                             (long long)update->shape.dims[d], d, (long long)input->shape.dims[d]);
    TARE_TRY(read_vector(start, &kernel->inputs[2], input->shape.rank, "indices"));
    clamp_start(start, &input->shape, &update->shape);
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    TARE_TRY(tare_move_run(&kernel->outputs[0], 0, input, 0, input->elements));
    const struct tare_move move = window_of(&input->shape, &update->shape, start, true);
    return tare_move_apply(&kernel->outputs[0], update, &move);
}

/* ---- padding before, after (negative: cropping) and between elements ---- */

static tare_status padded_dim(int64_t *out, int64_t dim, int64_t low, int64_t high, int64_t interior) {
    int64_t inner = 0;
    const int64_t most = INT64_MAX / 8;
    if (interior < 0 || interior > most || low > most || high > most || low < -most || high < -most ||
        __builtin_mul_overflow(dim > 0 ? dim - 1 : 0, interior, &inner) || inner > most || dim > most)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding of %lld, %lld and %lld between", (long long)low,
                         (long long)high, (long long)interior);
    *out = dim + inner + low + high;
    if (*out < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding leaves %lld elements", (long long)*out);
    return TARE_OK;
}

static tare_status infer_pad(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    int64_t pads[3][TARE_MAX_RANK];
    int count = 0;
    TARE_TRY(tare_operand_rank(infer, 1, "padding_value", 0));
    if (input->rank < 0) return TARE_OK;
    infer->outputs[0] = tare_operand_unknown_dims(input->rank);
    for (size_t k = 0; k < 3; k++) {
        TARE_TRY(tare_operand_list(infer, 2 + k, "padding", pads[k], &count));
        if (count < 0) return TARE_OK;
        if (count != input->rank) return TARE_FAIL(TARE_SHAPE, "%d pads for an input of rank %d", count, input->rank);
    }
    for (int d = 0; d < input->rank; d++)
        if (input->dims[d] >= 0)
            TARE_TRY(padded_dim(&infer->outputs[0].dims[d], input->dims[d], pads[0][d], pads[1][d], pads[2][d]));
    return TARE_OK;
}

static tare_status run_pad(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t low[TARE_MAX_RANK], between[TARE_MAX_RANK], from[TARE_MAX_RANK], to[TARE_MAX_RANK];
    struct tare_move move = { 0 };
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(read_vector(low, &kernel->inputs[2], input->shape.rank, "padding_low"));
    TARE_TRY(read_vector(between, &kernel->inputs[4], input->shape.rank, "padding_interior"));
    TARE_TRY(tare_move_fill(out, 0, out->elements, &kernel->inputs[1], 0));
    if (!out->elements || !input->elements) return TARE_OK;
    tare_move_strides(from, &input->shape);
    tare_move_strides(to, &out->shape);
    for (int d = 0; d < input->shape.rank; d++) { /* elements first … last - 1 are inside the output */
        const int64_t step = between[d] + 1, size = out->shape.dims[d];
        int64_t first = low[d] < 0 ? (-low[d] + step - 1) / step : 0;
        int64_t last = size - low[d] <= 0 ? 0 : (size - low[d] - 1) / step + 1;
        if (last > input->shape.dims[d]) last = input->shape.dims[d];
        if (first >= last) return TARE_OK;
        move.from_offset += first * from[d];
        move.to_offset += (low[d] + first * step) * to[d];
        tare_move_dim(&move, last - first, from[d], step * to[d]);
    }
    return tare_move_apply(out, input, &move);
}

/* ---- sorting along the last dimension, in the total order of XLA: -NaN, -inf … -0, 0 … inf, NaN ---- */

struct entry {
    int64_t key, at;
};

/* Integers in the order of the elements: a float's sign and magnitude as two's complement. */
static int64_t key_of(const struct tare_tensor *keys, int64_t i) {
    const size_t size = tare_dtype_size(keys->dtype);
    const uint64_t sign = UINT64_C(1) << (8 * size - 1);
    uint64_t bits = 0;
    if (keys->dtype == TARE_DT_UINT64) return (int64_t)((uint64_t)tare_tensor_get_i64(keys, i) ^ sign);
    if (tare_dtype_get(keys->dtype)->class != TARE_CLASS_FLOAT) return tare_tensor_get_i64(keys, i);
    memcpy(&bits, (const char *)keys->data + (keys->splat ? 0 : (size_t)i * size), size); /* little-endian */
    return bits & sign ? -(int64_t)(bits ^ sign) - 1 : (int64_t)bits;
}

static int by_key(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static tare_status infer_sort(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        TARE_TRY(tare_shape_merge(&infer->outputs[i], &infer->inputs[0], &infer->inputs[infer->n_inputs - 1]));
    return TARE_OK;
}

static tare_status run_sort(struct tare_kernel *kernel) {
    const struct tare_tensor *keys = &kernel->inputs[0];
    const enum tare_dtype_class class = tare_dtype_get(keys->dtype)->class;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (class != TARE_CLASS_FLOAT && class != TARE_CLASS_SIGNED && class != TARE_CLASS_UNSIGNED &&
        class != TARE_CLASS_BOOL)
        return TARE_FAIL(TARE_UNSUPPORTED, "sorting %s", tare_dtype_name(keys->dtype));
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[i].dtype, &kernel->inputs[i].shape));
    if (!keys->elements) return TARE_OK;
    const int64_t width = keys->shape.rank ? keys->shape.dims[keys->shape.rank - 1] : 1;
    struct entry *row = TARE_NEW_ARRAY(kernel->scratch, struct entry, (size_t)width);
    if (!row) return TARE_NO_MEMORY;
    for (int64_t first = 0; first < keys->elements; first += width) {
        for (int64_t i = 0; i < width; i++)
            row[i] = (struct entry){ key_of(keys, first + i), i };
        qsort(row, (size_t)width, sizeof *row, by_key);
        for (size_t k = 0; k < kernel->n_outputs; k++)
            for (int64_t i = 0; i < width; i++)
                TARE_TRY(tare_move_run(&kernel->outputs[k], first + i, &kernel->inputs[k], first + row[i].at, 1));
    }
    return TARE_OK;
}

/* ---- no-ops on a single device ---- */

static tare_status infer_forward(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = infer->inputs[i];
    return TARE_OK;
}

static tare_status run_forward(struct tare_kernel *kernel) {
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_forward(kernel, i, i));
    return TARE_OK;
}

static tare_status run_replica(struct tare_kernel *kernel) {
    return tare_tensor_scalar_i32(&kernel->outputs[0], 0);
}

const struct tare_op tare_ops_xla_move[] = {
    { .name = "XlaDynamicSlice", .infer = infer_slice, .run = run_slice, .flags = TARE_OP_MOVE },
    { .name = "XlaDynamicUpdateSlice", .infer = tare_infer_same, .run = run_update, .flags = TARE_OP_MOVE },
    { .name = "XlaPad", .infer = infer_pad, .run = run_pad, .flags = TARE_OP_MOVE },
    { .name = "XlaSort", .infer = infer_sort, .run = run_sort, .flags = TARE_OP_RANK },
    { .name = "XlaKeyValueSort", .infer = infer_sort, .run = run_sort, .flags = TARE_OP_RANK },
    { .name = "XlaOptimizationBarrier", .infer = infer_forward, .run = run_forward },
    { .name = "XlaSpmdFullToShardShape", .infer = infer_forward, .run = run_forward },
    { .name = "XlaSpmdShardToFullShape", .infer = infer_forward, .run = run_forward },
    { .name = "XlaReplicaId", .infer = tare_infer_scalar, .run = run_replica },
    { 0 },
};
