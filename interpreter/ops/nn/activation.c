/* Activation functions. All of them preserve NaN. */
#include "interpreter/kernels/elementary.h"
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <tgmath.h>

struct activation {
    tare_loop1 loops[TARE_DT_COUNT];
    tare_loop1 plain; /* the reference for float, of rows that have one */
};

static tare_status run_activation(struct tare_kernel *kernel) {
    const struct activation *activation = kernel->op->aux;
    const int dtype = kernel->inputs[0].dtype;
    return tare_elementwise_run1(kernel, activation->loops[dtype], dtype);
}

static tare_status run_plain(struct tare_kernel *kernel) {
    const struct activation *activation = kernel->op->aux;
    const int dtype = kernel->inputs[0].dtype;
    return tare_elementwise_run1(kernel, dtype == TARE_DT_FLOAT ? activation->plain : activation->loops[dtype], dtype);
}

TARE_LOOP1_FLOATS(relu, x < 0 ? 0 : x)
TARE_LOOP1_SIGNED(relu, x < 0 ? 0 : x)
TARE_LOOP1_BITS(relu, x)
static const struct activation relu_op = {
    .loops = { TARE_BY_FLOATS(relu), TARE_BY_SIGNED(relu), TARE_BY_UNSIGNED(relu), [TARE_DT_QINT8] = relu_i8 },
};

TARE_LOOP1_FLOATS(relu6, x<0 ? 0 : x> 6 ? 6 : x)
TARE_LOOP1_SIGNED(relu6, x<0 ? 0 : x> 6 ? 6 : x)
TARE_LOOP1_BITS(relu6, x > 6 ? 6 : x)
static const struct activation relu6_op = {
    .loops = { TARE_BY_FLOATS(relu6), TARE_BY_SIGNED(relu6), TARE_BY_UNSIGNED(relu6) },
};

/* ---- exponentials: float by the vector kernels, a chunk at a time; `e` is the function's value ---- */

enum { CHUNK = 256 };

#define EXPONENTIAL(name, of, expression)                                                                              \
    static void name##_f32(void *to_, const void *from_, int64_t count) {                                              \
        float values[CHUNK], *to = to_;                                                                                \
        const float *from = from_;                                                                                     \
        for (int64_t first = 0; first < count; first += CHUNK) {                                                       \
            const int64_t n = count - first < CHUNK ? count - first : CHUNK;                                           \
            of##_floats(values, from + first, n);                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const float x = from[first + i], e = values[i];                                                        \
                to[first + i] = expression;                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static double name(double x) {                                                                                     \
        const double e = of(x);                                                                                        \
        return expression;                                                                                             \
    }                                                                                                                  \
    TARE_LOOP1(name##_plain, float, float, TARE_SAME, TARE_SAME, name((double)x))                                      \
    TARE_LOOP1(name##_f64, double, double, TARE_SAME, TARE_SAME, name(x))                                              \
    TARE_LOOP1(name##_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, (float)name((double)x))     \
    TARE_LOOP1(name##_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float,                    \
               (float)name((double)x))                                                                                 \
    static const struct activation name##_op = { .loops = { TARE_BY_FLOATS(name) }, .plain = name##_plain };

static double log1p_exp(double x) {
    return tare_log1p(tare_exp(x));
}
static void log1p_exp_floats(float *to, const float *from, int64_t count) {
    tare_exp_floats(to, from, count);
    tare_log1p_floats(to, to, count);
}

EXPONENTIAL(elu, tare_expm1, x < 0 ? e : x)

/* scale * alpha and scale, 1.0507009873554805 (Klambauer et al., 2017) */
EXPONENTIAL(selu, tare_expm1, x < 0 ? (__typeof__(x))1.7580993408473766 * e : (__typeof__(x))1.0507009873554805 * x)

/* Where exp(-x) is below the working precision (2^-23 or 2^-52), x. */
EXPONENTIAL(softplus, log1p_exp, x > (sizeof x == sizeof(float) ? 14 : 34) ? x : e)
#undef EXPONENTIAL

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

#define ROW(op_name, table, role, plain_run)                                                                           \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_same, .run = run_activation, .reference = plain_run, .aux = &table,       \
        .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE, .quant = role                                                 \
    }

const struct tare_op tare_ops_activation[] = {
    ROW("Relu", relu_op, TARE_QUANT_ACTIVATION, NULL),
    ROW("Relu6", relu6_op, TARE_QUANT_ACTIVATION, NULL),
    ROW("Elu", elu_op, TARE_QUANT_NONE, run_plain),
    ROW("Selu", selu_op, TARE_QUANT_NONE, run_plain),
    ROW("Softplus", softplus_op, TARE_QUANT_NONE, run_plain),
    ROW("Softsign", softsign_op, TARE_QUANT_NONE, NULL),
    { .name = "LeakyRelu",
      .infer = tare_infer_same,
      .run = run_leaky_relu,
      .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE },
    { 0 },
};
