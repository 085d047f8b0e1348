/* Activation functions. All of them preserve NaN. */
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <float.h>
#include <tgmath.h>

struct activation {
    tare_loop1 loops[TARE_DT_COUNT];
};

static tare_status run_activation(struct tare_kernel *kernel) {
    const struct activation *activation = kernel->op->aux;
    const int dtype = kernel->inputs[0].dtype;
    return tare_elementwise_run1(kernel, activation->loops[dtype], dtype);
}

TARE_LOOP1_FLOATS(relu, x < 0 ? 0 : x)
TARE_LOOP1_SIGNED(relu, x < 0 ? 0 : x)
TARE_LOOP1_BITS(relu, x)
static const struct activation relu_op = {
    { TARE_BY_FLOATS(relu), TARE_BY_SIGNED(relu), TARE_BY_UNSIGNED(relu), [TARE_DT_QINT8] = relu_i8 },
};

TARE_LOOP1_FLOATS(relu6, x<0 ? 0 : x> 6 ? 6 : x)
TARE_LOOP1_SIGNED(relu6, x<0 ? 0 : x> 6 ? 6 : x)
TARE_LOOP1_BITS(relu6, x > 6 ? 6 : x)
static const struct activation relu6_op = {
    { TARE_BY_FLOATS(relu6), TARE_BY_SIGNED(relu6), TARE_BY_UNSIGNED(relu6) },
};

TARE_LOOP1_FLOATS(elu, x < 0 ? expm1(x) : x)
static const struct activation elu_op = { .loops = { TARE_BY_FLOATS(elu) } };

/* scale 1.0507009873554805, scale * alpha 1.7580993408473766 (Klambauer et al., 2017) */
#define SELU(type) x < 0 ? (type)1.7580993408473766 * expm1(x) : (type)1.0507009873554805 * x
TARE_LOOP1(selu_f32, float, float, TARE_SAME, TARE_SAME, SELU(float))
TARE_LOOP1(selu_f64, double, double, TARE_SAME, TARE_SAME, SELU(double))
TARE_LOOP1(selu_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, SELU(float))
TARE_LOOP1(selu_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float, SELU(float))
#undef SELU
static const struct activation selu_op = { .loops = { TARE_BY_FLOATS(selu) } };

/* log(1 + exp(x)), computed as in TensorFlow: where exp(-|x|) is below the working precision, x or exp(x). */
#define SOFTPLUS(epsilon) x > -(log(epsilon) + 2) ? x : x < log(epsilon) + 2 ? exp(x) : log1p(exp(x))
TARE_LOOP1(softplus_f32, float, float, TARE_SAME, TARE_SAME, SOFTPLUS(FLT_EPSILON))
TARE_LOOP1(softplus_f64, double, double, TARE_SAME, TARE_SAME, SOFTPLUS(DBL_EPSILON))
TARE_LOOP1(softplus_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, SOFTPLUS(FLT_EPSILON))
TARE_LOOP1(softplus_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float, SOFTPLUS(FLT_EPSILON))
#undef SOFTPLUS
static const struct activation softplus_op = { .loops = { TARE_BY_FLOATS(softplus) } };

TARE_LOOP1_FLOATS(softsign, x / (1 + fabs(x)))
static const struct activation softsign_op = { .loops = { TARE_BY_FLOATS(softsign) } };

/* ---- LeakyRelu: alpha is rounded to the tensor's dtype ---- */

#define LEAKY(type, working, load, store)                                                                              \
    do {                                                                                                               \
        type *to = kernel->outputs[0].data;                                                                            \
        const type *from = input->data;                                                                                \
        const working slope = load((type)store(alpha));                                                                \
        TARE_INDEPENDENT                                                                                               \
        for (int64_t i = 0; i < input->elements; i++) {                                                                \
            const working x = load(from[i]), low = x * slope;                                                          \
            to[i] = (type)store(x > 0 ? x : low);                                                                      \
        }                                                                                                              \
    } while (0)

static tare_status run_leaky_relu(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const float alpha = tare_node_float(kernel->node, "alpha", 0.2f);
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    switch (input->dtype) {
    case TARE_DT_FLOAT:
        LEAKY(float, float, TARE_SAME, TARE_SAME);
        break;
    case TARE_DT_DOUBLE:
        LEAKY(double, double, TARE_SAME, TARE_SAME);
        break;
    case TARE_DT_HALF:
        LEAKY(uint16_t, float, tare_float_from_half, tare_half_from_float);
        break;
    case TARE_DT_BFLOAT16:
        LEAKY(uint16_t, float, tare_float_from_bfloat16, tare_bfloat16_from_float);
        break;
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(input->dtype));
    }
    return TARE_OK;
}
#undef LEAKY

#define ROW(op_name, table, types, role)                                                                               \
    {                                                                                                                  \
        .name = op_name, .inputs = "features: T", .outputs = "activations: T", .attrs = "T: {" types "}",              \
        .infer = tare_infer_same, .run = run_activation, .aux = &table,                                                \
        .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE, .quant = role                                                 \
    }
#define REALS "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
#define FLOATS "half, bfloat16, float, double"

const struct tare_op tare_ops_activation[] = {
    ROW("Relu", relu_op, REALS ", qint8", TARE_QUANT_ACTIVATION),
    ROW("Relu6", relu6_op, REALS, TARE_QUANT_ACTIVATION),
    ROW("Elu", elu_op, FLOATS, TARE_QUANT_NONE),
    ROW("Selu", selu_op, FLOATS, TARE_QUANT_NONE),
    ROW("Softplus", softplus_op, FLOATS, TARE_QUANT_NONE),
    ROW("Softsign", softsign_op, FLOATS, TARE_QUANT_NONE),
    { .name = "LeakyRelu",
      .inputs = "features: T",
      .outputs = "activations: T",
      .attrs = "alpha: float = 0.2; T: {" FLOATS "} = DT_FLOAT",
      .infer = tare_infer_same,
      .run = run_leaky_relu,
      .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE },
    { 0 },
};
