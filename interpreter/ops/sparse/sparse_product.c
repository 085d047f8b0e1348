/* SparseTensorDenseMatMul: the product of a sparse and a dense matrix. */
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "base/tensor/number.h"

static tare_status infer_matmul(struct tare_infer *infer) {
    bool adjoint_a = tare_node_bool(infer->node, "adjoint_a", false);
    bool adjoint_b = tare_node_bool(infer->node, "adjoint_b", false);
    int64_t count, rank, dims[TARE_MAX_RANK];
    const struct tare_shape *b = &infer->inputs[3];
    int known;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    TARE_TRY(tare_operand_rank(infer, 3, "b", 2));
    if (rank >= 0 && rank != 2) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Tensor 'a_shape' must have 2 elements");
    TARE_TRY(tare_operand_list(infer, 2, "a_shape", dims, &known));
    infer->outputs[0] = tare_operand_unknown_dims(2);
    if (known == 2) {
        int64_t inner = dims[adjoint_a ? 0 : 1];
        infer->outputs[0].dims[0] = dims[adjoint_a ? 1 : 0];
        if (dims[0] < 0 || dims[1] < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a_shape is negative");
        if (b->rank == 2 && b->dims[adjoint_b ? 1 : 0] >= 0 && b->dims[adjoint_b ? 1 : 0] != inner)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Cannot multiply A and B because inner dimension does not match: %lld vs. %lld. Did you "
                             "forget a transpose?",
                             (long long)inner, (long long)b->dims[adjoint_b ? 1 : 0]);
    }
    if (b->rank == 2) infer->outputs[0].dims[1] = b->dims[adjoint_b ? 0 : 1];
    return TARE_OK;
}

#define MULTIPLY(type)                                                                                                 \
    do {                                                                                                               \
        type value = TARE_CONST_DATA(type, values)[entry];                                                             \
        const type *from = TARE_CONST_DATA(type, b) + k * k_step;                                                      \
        type *to = TARE_DATA(type, out) + m * n;                                                                       \
        for (int64_t j = 0; j < n; j++)                                                                                \
            to[j] += value * from[j * n_step];                                                                         \
    } while (0)

/* Of short floats: TensorFlow rounds each product and each sum to the type. */
#define MULTIPLY_SHORT(type)                                                                                           \
    do {                                                                                                               \
        const float value = tare_float_from_##type(TARE_CONST_DATA(uint16_t, values)[entry]);                          \
        const uint16_t *from = TARE_CONST_DATA(uint16_t, b) + k * k_step;                                              \
        uint16_t *to = TARE_DATA(uint16_t, out) + m * n;                                                               \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const uint16_t product = tare_##type##_from_float(value * tare_float_from_##type(from[j * n_step]));       \
            to[j] = tare_##type##_from_float(tare_float_from_##type(to[j]) + tare_float_from_##type(product));         \
        }                                                                                                              \
    } while (0)

/* Processes the entries in order, so the sum of each output element is accumulated in the same order. */
static tare_status run_matmul(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[1], *b = &kernel->inputs[3];
    bool adjoint_a = tare_node_bool(kernel->node, "adjoint_a", false);
    bool adjoint_b = tare_node_bool(kernel->node, "adjoint_b", false);
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t n, k_step, n_step;
    struct tare_sparse a;
    TARE_TRY(tare_sparse_make(&a, &kernel->inputs[0], values, &kernel->inputs[2]));
    TARE_TRY(tare_operand_output(kernel, 1));
    n = out->shape.dims[1];
    k_step = adjoint_b ? 1 : b->shape.dims[1];
    n_step = adjoint_b ? b->shape.dims[1] : 1;
    tare_move_zero(out, 0, out->elements);
    for (int64_t entry = 0; entry < a.count; entry++) {
        int64_t m = tare_sparse_index(&a, entry, adjoint_a ? 1 : 0),
                k = tare_sparse_index(&a, entry, adjoint_a ? 0 : 1);
        if (k < 0 || k >= a.dims[adjoint_a ? 0 : 1])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "k (%lld) from index[%lld,%d] out of bounds (>=%lld)", (long long)k,
                             (long long)entry, adjoint_a ? 0 : 1, (long long)a.dims[adjoint_a ? 0 : 1]);
        if (m < 0 || m >= out->shape.dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "m (%lld) from index[%lld,%d] out of bounds (>=%lld)", (long long)m,
                             (long long)entry, adjoint_a ? 1 : 0, (long long)out->shape.dims[0]);
        switch (values->dtype) {
        case TARE_DT_FLOAT:
            MULTIPLY(float);
            break;
        case TARE_DT_DOUBLE:
            MULTIPLY(double);
            break;
        case TARE_DT_INT32:
            MULTIPLY(uint32_t);
            break;
        case TARE_DT_BFLOAT16:
            MULTIPLY_SHORT(bfloat16);
            break;
        case TARE_DT_HALF:
            MULTIPLY_SHORT(half);
            break;
        default:
            return TARE_FAIL(TARE_TYPE, "no sparse product of %s", tare_dtype_name(values->dtype));
        }
    }
    return TARE_OK;
}
#undef MULTIPLY
#undef MULTIPLY_SHORT

const struct tare_op tare_ops_sparse_product[] = {
    { .name = "SparseTensorDenseMatMul", .infer = infer_matmul, .run = run_matmul },
    { 0 },
};
