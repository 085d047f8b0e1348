/* AddN: the sum of tensors of one shape. Inputs are added from left to right and the sum is rounded to the dtype
 * after each addition; half and bfloat16 accumulate in float and round once at the end. */
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <string.h>

static tare_status infer_addn(struct tare_infer *infer) {
    struct tare_shape shape = tare_shape_unknown();
    for (size_t i = 0; i < infer->n_inputs; i++)
        TARE_TRY(tare_shape_merge(&shape, &shape, &infer->inputs[i]));
    infer->outputs[0] = shape;
    return TARE_OK;
}

/* Elements summed before the loop moves on. The partial sums of a block stay in the cache, so each input is read
 * once. */
enum { BLOCK = 512 };

#define SUM(type, working, load, store)                                                                                \
    do {                                                                                                               \
        working sum[BLOCK];                                                                                            \
        for (int64_t first = 0; first < count; first += BLOCK) {                                                       \
            const int64_t n = count - first < BLOCK ? count - first : BLOCK;                                           \
            for (int64_t k = 0; k < n; k++)                                                                            \
                sum[k] = load(TARE_CONST_DATA(type, &kernel->inputs[0])[first + k]);                                   \
            for (size_t i = 1; i < kernel->n_inputs; i++) {                                                            \
                const type *from = TARE_CONST_DATA(type, &kernel->inputs[i]) + first;                                  \
                for (int64_t k = 0; k < n; k++)                                                                        \
                    sum[k] = (working)(sum[k] + load(from[k]));                                                        \
            }                                                                                                          \
            for (int64_t k = 0; k < n; k++)                                                                            \
                TARE_DATA(type, &kernel->outputs[0])[first + k] = (type)store(sum[k]);                                 \
        }                                                                                                              \
    } while (0)

static tare_status sum_all(struct tare_kernel *kernel, int64_t count) {
    const int dtype = kernel->inputs[0].dtype;
    switch (dtype) {
    case TARE_DT_FLOAT:
        SUM(float, float, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case TARE_DT_DOUBLE:
        SUM(double, double, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case TARE_DT_HALF:
        SUM(uint16_t, float, tare_float_from_half, tare_half_from_float);
        return TARE_OK;
    case TARE_DT_BFLOAT16:
        SUM(uint16_t, float, tare_float_from_bfloat16, tare_bfloat16_from_float);
        return TARE_OK;
    case TARE_DT_COMPLEX64:
        SUM(_Complex float, _Complex float, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case TARE_DT_COMPLEX128:
        SUM(_Complex double, _Complex double, TARE_SAME, TARE_SAME);
        return TARE_OK;
    default:
        break;
    }
    switch (tare_dtype_is_integer(dtype) ? tare_dtype_size(dtype) : 0) {
    case 1:
        SUM(uint8_t, uint8_t, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case 2:
        SUM(uint16_t, uint16_t, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case 4:
        SUM(uint32_t, uint32_t, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case 8:
        SUM(uint64_t, uint64_t, TARE_SAME, TARE_SAME);
        return TARE_OK;
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(dtype));
    }
}
#undef SUM

static tare_status run_addn(struct tare_kernel *kernel) {
    const struct tare_tensor *first = &kernel->inputs[0];
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 1; i < kernel->n_inputs; i++) {
        if (!tare_shape_equal(&first->shape, &kernel->inputs[i].shape))
            return TARE_FAIL(
                TARE_SHAPE, "Inputs to operation %s must have the same size and shape. Input 0: %s != input %zu: %s",
                kernel->node->name, tare_shape_text(a, &first->shape), i, tare_shape_text(b, &kernel->inputs[i].shape));
    }
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    return sum_all(kernel, first->elements);
}

const struct tare_op tare_ops_addn[] = {
    { .name = "AddN", .infer = infer_addn, .run = run_addn, .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE },
    { .name = "AccumulateNV2", .infer = infer_addn, .run = run_addn, .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE },
    { 0 },
};
