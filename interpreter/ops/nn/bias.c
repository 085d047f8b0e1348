/* BiasAdd: adds a vector along the channel axis. */
#include "interpreter/kernels/rowwise.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"

#include "base/tensor/number.h"

#include <string.h>

struct bias_shape {
    int64_t outer, channels, inner; /* value is [outer, channels, inner] */
};

static tare_status split_shape(struct bias_shape *out, const struct tare_node *node, const struct tare_shape *value,
                               const struct tare_shape *bias) {
    if (value->rank < 2) return TARE_FAIL(TARE_SHAPE, "value has rank %d (expected at least 2)", value->rank);
    if (bias->rank != 1) return TARE_FAIL(TARE_SHAPE, "bias has rank %d (expected 1)", bias->rank);
    const bool first = strcmp(tare_node_string(node, "data_format", "NHWC"), "NCHW") == 0;
    const int axis = first ? 1 : value->rank - 1;
    if (value->dims[axis] >= 0 && bias->dims[0] >= 0 && value->dims[axis] != bias->dims[0])
        return TARE_FAIL(TARE_SHAPE, "bias has %lld elements (expected %lld)", (long long)bias->dims[0],
                         (long long)value->dims[axis]);
    *out = (struct bias_shape){ 1, value->dims[axis], 1 };
    for (int i = 0; i < value->rank; i++) {
        if (i < axis) out->outer *= value->dims[i];
        if (i > axis) out->inner *= value->dims[i];
    }
    return TARE_OK;
}

static tare_status infer_bias(struct tare_infer *infer) {
    struct bias_shape shape;
    if (infer->inputs[0].rank >= 0 && infer->inputs[1].rank >= 0)
        TARE_TRY(split_shape(&shape, infer->node, &infer->inputs[0], &infer->inputs[1]));
    return tare_infer_same(infer);
}

/* Both loops iterate innermost over contiguous elements. */
#define ADD(type, expression)                                                                                          \
    do {                                                                                                               \
        const type *x = from, *bias = added;                                                                           \
        type *y = to;                                                                                                  \
        for (int64_t o = 0; shape->inner == 1 && o < shape->outer; o++, x += shape->channels, y += shape->channels) {  \
            for (int64_t c = 0; c < shape->channels; c++) {                                                            \
                const type a = x[c], b = bias[c];                                                                      \
                y[c] = (type)(expression);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t o = 0; shape->inner != 1 && o < shape->outer * shape->channels; o++) {                            \
            const type b = bias[o % shape->channels];                                                                  \
            for (int64_t i = 0; i < shape->inner; i++) {                                                               \
                const type a = x[o * shape->inner + i];                                                                \
                y[o * shape->inner + i] = (type)(expression);                                                          \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

static tare_status add(void *to, const void *from, const void *added, int dtype, const struct bias_shape *shape) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        ADD(float, a + b);
        return TARE_OK;
    case TARE_DT_DOUBLE:
        ADD(double, a + b);
        return TARE_OK;
    case TARE_DT_HALF:
        ADD(uint16_t, tare_half_from_float(tare_float_from_half(a) + tare_float_from_half(b)));
        return TARE_OK;
    case TARE_DT_BFLOAT16:
        ADD(uint16_t, tare_bfloat16_from_float(tare_float_from_bfloat16(a) + tare_float_from_bfloat16(b)));
        return TARE_OK;
    case TARE_DT_COMPLEX64:
        ADD(_Complex float, a + b);
        return TARE_OK;
    case TARE_DT_COMPLEX128:
        ADD(_Complex double, a + b);
        return TARE_OK;
    default:
        break;
    }
    switch (tare_dtype_size(dtype)) { /* integers wrap */
    case 1:
        ADD(uint8_t, a + b);
        return TARE_OK;
    case 2:
        ADD(uint16_t, a + b);
        return TARE_OK;
    case 4:
        ADD(uint32_t, a + b);
        return TARE_OK;
    case 8:
        ADD(uint64_t, a + b);
        return TARE_OK;
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(dtype));
    }
    return TARE_OK;
}
#undef ADD

static tare_status run_any(struct tare_kernel *kernel, bool plain) {
    const struct tare_tensor *value = &kernel->inputs[0], *bias = &kernel->inputs[1];
    struct bias_shape shape;
    TARE_TRY(split_shape(&shape, kernel->node, &value->shape, &bias->shape));
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    if (value->elements == 0) return TARE_OK;
    if (value->dtype == TARE_DT_FLOAT && shape.inner == 1 && !plain) {
        tare_rowwise_add(kernel->outputs[0].data, value->data, bias->data, shape.outer, shape.channels);
        return TARE_OK;
    }
    return add(kernel->outputs[0].data, value->data, bias->data, value->dtype, &shape);
}

static tare_status run_bias(struct tare_kernel *kernel) {
    return run_any(kernel, false);
}
static tare_status reference_bias(struct tare_kernel *kernel) {
    return run_any(kernel, true);
}

const struct tare_op tare_ops_bias[] = {
    { .name = "BiasAdd",
      .infer = infer_bias,
      .run = run_bias,
      .reference = reference_bias,
      .flags = TARE_OP_IN_PLACE,
      .quant = TARE_QUANT_BIAS },
    { .name = "BiasAddV1",
      .infer = infer_bias,
      .run = run_bias,
      .reference = reference_bias,
      .flags = TARE_OP_IN_PLACE,
      .quant = TARE_QUANT_BIAS },
    { 0 },
};
