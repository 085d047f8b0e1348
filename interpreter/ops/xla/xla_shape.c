/* XlaReducePrecision, XlaSetBound, XlaBroadcastHelper, and XlaSplitND and XlaConcatND (with their resource
 * variants), which split tensors into a grid of parts for the cores of a chip and concatenate them. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <string.h>

/* ---- XlaReducePrecision ---- */

struct format {
    int exponent, mantissa; /* number of bits in the dtype */
};

static struct format format_of(int dtype) {
    switch (dtype) {
    case TARE_DT_DOUBLE:
        return (struct format){ 11, 52 };
    case TARE_DT_FLOAT:
        return (struct format){ 8, 23 };
    case TARE_DT_HALF:
        return (struct format){ 5, 10 };
    default:
        return (struct format){ 8, 7 };
    }
}

/* Rounds to nearest, ties to even; overflow yields infinity, underflow of the reduced exponent yields zero. */
static uint64_t reduced(uint64_t bits, struct format own, int exponent, int mantissa) {
    const uint64_t sign = bits >> (own.exponent + own.mantissa) << (own.exponent + own.mantissa);
    const uint64_t infinity = ((UINT64_C(1) << own.exponent) - 1) << own.mantissa;
    uint64_t x = bits ^ sign;
    if (x > infinity) return mantissa > 0 ? bits : sign | infinity; /* NaN */
    if (mantissa < own.mantissa) {
        const uint64_t last = UINT64_C(1) << (own.mantissa - mantissa);
        x = (x + (last >> 1) - 1 + ((x & last) != 0)) & ~(last - 1);
    }
    if (exponent < own.exponent) {
        const uint64_t bias = (UINT64_C(1) << (own.exponent - 1)) - 1, less = (UINT64_C(1) << (exponent - 1)) - 1;
        const uint64_t power = x & infinity;
        if (power > (bias + less) << own.mantissa) x = infinity;
        if (power <= (bias - less) << own.mantissa) x = 0;
    }
    return sign | x;
}

static tare_status run_reduce_precision(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const int64_t exponent = tare_node_int(kernel->node, "exponent_bits", 0);
    const int64_t mantissa = tare_node_int(kernel->node, "mantissa_bits", 0);
    const struct format own = format_of(input->dtype);
    const size_t size = tare_dtype_size(input->dtype);
    if (exponent < 1 || mantissa < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "exponent_bits is %lld and mantissa_bits %lld (expected at least 1 and 0)",
                         (long long)exponent, (long long)mantissa);
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)input->data + (size_t)i * size, size); /* little-endian */
        bits = reduced(bits, own, exponent < own.exponent ? (int)exponent : own.exponent,
                       mantissa < own.mantissa ? (int)mantissa : own.mantissa);
        memcpy((char *)kernel->outputs[0].data + (size_t)i * size, &bits, size);
    }
    return TARE_OK;
}

/* ---- no-ops in an interpreter ---- */

static tare_status run_set_bound(struct tare_kernel *kernel) {
    if (kernel->inputs[1].elements != 1) return TARE_FAIL(TARE_SHAPE, "bound is not a scalar");
    return tare_kernel_forward(kernel, 0, 0);
}

/* ---- XlaBroadcastHelper ---- */

/* Computes the shape of the lower-rank operand with a dimension of 1 for each dimension of the other that
 * broadcast_dims does not contain. */
static tare_status expanded_shape(struct tare_shape *out, const struct tare_shape *low, const struct tare_shape *high,
                                  const int64_t *dims, int count) {
    if (count != low->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "broadcast_dims has %d elements (expected %d)", count, low->rank);
    out->rank = high->rank;
    for (int d = 0; d < high->rank; d++)
        out->dims[d] = 1;
    for (int i = 0; i < count; i++) {
        if (dims[i] < 0 || dims[i] >= high->rank || (i > 0 && dims[i] <= dims[i - 1]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "broadcast_dims contains %lld at %d (expected increasing dimensions below %d)",
                             (long long)dims[i], i, high->rank);
        out->dims[dims[i]] = low->dims[i];
    }
    return TARE_OK;
}

static tare_status infer_helper(struct tare_infer *infer) {
    const struct tare_shape *lhs = &infer->inputs[0], *rhs = &infer->inputs[1];
    int64_t dims[TARE_MAX_RANK];
    int count;
    TARE_TRY(tare_operand_list(infer, 2, "broadcast_dims", dims, &count));
    if (count < 0 || lhs->rank < 0 || rhs->rank < 0) return TARE_OK;
    infer->outputs[0] = *lhs;
    infer->outputs[1] = *rhs;
    if (lhs->rank == rhs->rank || (count == 0 && (lhs->rank == 0 || rhs->rank == 0))) return TARE_OK;
    return lhs->rank < rhs->rank ? expanded_shape(&infer->outputs[0], lhs, rhs, dims, count)
                                 : expanded_shape(&infer->outputs[1], rhs, lhs, dims, count);
}

static tare_status run_helper(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_forward_as(kernel, 0, 0, &shapes[0]));
    return tare_kernel_forward_as(kernel, 1, 1, &shapes[1]);
}

/* ---- grids of parts ---- */

/* The whole, including padding, has counts[d] parts along dimension d. */
struct grid {
    int rank;
    int64_t counts[TARE_MAX_RANK], pads[TARE_MAX_RANK];
};

static tare_status grid_of(struct grid *grid, const struct tare_node *node, const char *counts, int rank,
                           size_t n_parts) {
    const struct tare_attr *list = tare_node_list(node, counts), *pads = tare_node_list(node, "paddings");
    int64_t parts = 1;
    *grid = (struct grid){ .rank = rank };
    if (!list || list->count != (size_t)rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has %zu elements (expected %d)", counts, list ? list->count : 0,
                         rank);
    if (pads && pads->count > 0 && pads->count != (size_t)rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "paddings has %zu elements (expected %d)", pads->count, rank);
    for (int d = 0; d < rank; d++) {
        grid->counts[d] = list->items[d].i;
        grid->pads[d] = pads && pads->count > 0 ? pads->items[d].i : 0;
        if (grid->counts[d] < 1 || grid->pads[d] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld parts and %lld of padding along dimension %d",
                             (long long)grid->counts[d], (long long)grid->pads[d], d);
        if (!tare_mul_i64(&parts, parts, grid->counts[d])) parts = -1;
        if (parts < 0) break;
    }
    if (parts == (int64_t)n_parts) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s specifies %lld parts (expected %zu)", counts, (long long)parts,
                     n_parts);
}

static tare_status part_shape(struct tare_shape *part, const struct tare_shape *whole, const struct grid *grid) {
    *part = *whole;
    for (int d = 0; d < grid->rank; d++) {
        int64_t padded;
        if (whole->dims[d] < 0) continue;
        if (!tare_add_i64(&padded, whole->dims[d], grid->pads[d]) || padded % grid->counts[d] != 0)
            return TARE_FAIL(TARE_SHAPE, "dimension %d of %lld and %lld of padding cannot be split into %lld parts", d,
                             (long long)whole->dims[d], (long long)grid->pads[d], (long long)grid->counts[d]);
        part->dims[d] = padded / grid->counts[d];
    }
    return TARE_OK;
}

static tare_status infer_split(struct tare_infer *infer) {
    struct grid grid;
    struct tare_shape part;
    if (infer->inputs[0].rank < 0) return TARE_OK;
    TARE_TRY(grid_of(&grid, infer->node, "num_splits", infer->inputs[0].rank, infer->n_outputs));
    TARE_TRY(part_shape(&part, &infer->inputs[0], &grid));
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = part;
    return TARE_OK;
}

/* Computes the elements that part `i` (in row-major order) and the whole have in common. Returns false if there are
 * none. */
static bool shared_box(struct tare_move *move, size_t i, const struct grid *grid, const struct tare_shape *whole,
                       const struct tare_shape *part, bool into_whole) {
    int64_t big[TARE_MAX_RANK], small[TARE_MAX_RANK], starts[TARE_MAX_RANK], offset = 0;
    *move = (struct tare_move){ 0 };
    tare_move_strides(big, whole);
    tare_move_strides(small, part);
    for (int d = grid->rank - 1; d >= 0; d--) {
        starts[d] = (int64_t)(i % (size_t)grid->counts[d]) * part->dims[d];
        i /= (size_t)grid->counts[d];
    }
    for (int d = 0; d < grid->rank; d++) {
        const int64_t left = whole->dims[d] - starts[d], dim = left < part->dims[d] ? left : part->dims[d];
        if (dim <= 0) return false;
        offset += starts[d] * big[d];
        tare_move_dim(move, dim, into_whole ? small[d] : big[d], into_whole ? big[d] : small[d]);
    }
    *(into_whole ? &move->to_offset : &move->from_offset) = offset;
    return true;
}

static tare_status run_split(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct grid grid;
    struct tare_shape part;
    struct tare_move move;
    TARE_TRY(grid_of(&grid, kernel->node, "num_splits", input->shape.rank, kernel->n_outputs));
    TARE_TRY(part_shape(&part, &input->shape, &grid));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        TARE_TRY(tare_kernel_output(kernel, i, input->dtype, &part));
        tare_move_zero(&kernel->outputs[i], 0, kernel->outputs[i].elements);
        if (shared_box(&move, i, &grid, &input->shape, &part, false))
            TARE_TRY(tare_move_apply(&kernel->outputs[i], input, &move));
    }
    return TARE_OK;
}

static tare_status whole_shape(struct tare_shape *whole, const struct tare_shape *part, const struct grid *grid) {
    *whole = *part;
    for (int d = 0; d < grid->rank; d++) {
        if (part->dims[d] < 0) continue;
        if (!tare_mul_i64(&whole->dims[d], part->dims[d], grid->counts[d]) || whole->dims[d] < grid->pads[d])
            return TARE_FAIL(TARE_SHAPE, "%lld parts of %lld elements along dimension %d, without %lld of padding",
                             (long long)grid->counts[d], (long long)part->dims[d], d, (long long)grid->pads[d]);
        whole->dims[d] -= grid->pads[d];
    }
    return TARE_OK;
}

static tare_status infer_concat(struct tare_infer *infer) {
    struct tare_shape part = infer->inputs[0];
    struct grid grid;
    for (size_t i = 1; i < infer->n_inputs; i++)
        TARE_TRY(tare_shape_merge(&part, &part, &infer->inputs[i]));
    if (part.rank < 0) return TARE_OK;
    TARE_TRY(grid_of(&grid, infer->node, "num_concats", part.rank, infer->n_inputs));
    return whole_shape(&infer->outputs[0], &part, &grid);
}

static tare_status run_concat(struct tare_kernel *kernel) {
    const struct tare_shape *part = &kernel->inputs[0].shape;
    struct tare_shape *shapes;
    struct grid grid;
    struct tare_move move;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(grid_of(&grid, kernel->node, "num_concats", part->rank, kernel->n_inputs));
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->inputs[0].dtype, &shapes[0]));
    for (size_t i = 0; i < kernel->n_inputs; i++)
        if (shared_box(&move, i, &grid, &shapes[0], part, true))
            TARE_TRY(tare_move_apply(&kernel->outputs[0], &kernel->inputs[i], &move));
    return TARE_OK;
}

const struct tare_op tare_ops_xla_shape[] = {
    { .name = "XlaReducePrecision",
      .infer = tare_infer_same,
      .run = run_reduce_precision,
      .flags = TARE_OP_ELEMENTWISE },
    { .name = "XlaSetBound", .infer = tare_infer_same, .run = run_set_bound },
    { .name = "XlaBroadcastHelper", .infer = infer_helper, .run = run_helper, .flags = TARE_OP_MOVE },
    { .name = "XlaSplitND", .infer = infer_split, .run = run_split, .flags = TARE_OP_MOVE },
    { .name = "XlaConcatND", .infer = infer_concat, .run = run_concat, .flags = TARE_OP_MOVE },
    { 0 },
};
