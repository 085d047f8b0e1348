/* Gradients of activations and elementary functions, and BiasAddGrad. Training signatures and saliency maps contain
 * them. Computed in double and rounded once. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <math.h>

/* A row's aux: computes dy times the derivative from the op's two operands in their order. */
struct gradient {
    double (*real)(double first, double second, float alpha);
    double complex (*pair)(double complex first, double complex second);
};

static double relu(double dy, double x, float alpha) {
    (void)alpha;
    return x > 0 ? dy : 0;
}
static double relu6(double dy, double x, float alpha) {
    (void)alpha;
    return x > 0 && x < 6 ? dy : 0;
}
static double leaky_relu(double dy, double x, float alpha) {
    return x > 0 ? dy : dy * alpha;
}
static double elu(double dy, double y, float alpha) {
    (void)alpha;
    return y < 0 ? dy * (y + 1) : dy;
}
static double selu(double dy, double y, float alpha) {
    (void)alpha;
    const double scale = 1.0507009873554804934193349852946, scale_alpha = 1.7580993408473768599402175208123;
    return y < 0 ? dy * (y + scale_alpha) : dy * scale;
}
static double softplus(double dy, double x, float alpha) {
    (void)alpha;
    return dy / (tare_exp(-x) + 1);
}
static double softsign(double dy, double x, float alpha) {
    (void)alpha;
    return dy / ((1 + fabs(x)) * (1 + fabs(x)));
}

#define OF_RESULT(name, expression)                                                                                    \
    static double name(double y, double dy, float alpha) {                                                             \
        (void)alpha;                                                                                                   \
        return expression;                                                                                             \
    }                                                                                                                  \
    static double complex name##_pair(double complex y, double complex dy) {                                           \
        y = conj(y); /* the conjugate of the derivative, as defined for gradients of complex functions */              \
        return expression;                                                                                             \
    }
OF_RESULT(sigmoid, dy *y *(1 - y))
OF_RESULT(tanh_of, dy *(1 - y * y))
/* no gradient stays none where the derivative is infinite */
OF_RESULT(root, dy == 0 ? 0 : dy * 0.5 / y)
OF_RESULT(inverse_root, dy == 0 ? 0 : -0.5 * dy * y * y * y)
OF_RESULT(reciprocal, dy == 0 ? 0 : -dy * y * y)
#undef OF_RESULT

static tare_status infer_both(struct tare_infer *infer) {
    return tare_shape_merge(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1]);
}

static tare_status run_gradient(struct tare_kernel *kernel) {
    const struct gradient *gradient = kernel->op->aux;
    const struct tare_tensor *a = &kernel->inputs[0], *b = &kernel->inputs[1];
    const float alpha = tare_node_float(kernel->node, "alpha", 0);
    TARE_TRY(tare_operand_output(kernel, 0));
    const bool pairs = tare_dtype_get(a->dtype)->class == TARE_CLASS_COMPLEX;
    if (a->dtype == TARE_DT_FLOAT) {
        const float *first = TARE_CONST_DATA(float, a), *second = TARE_CONST_DATA(float, b);
        float *out = TARE_DATA(float, &kernel->outputs[0]);
        for (int64_t i = 0; i < a->elements; i++)
            out[i] = (float)gradient->real((double)first[i], (double)second[i], alpha);
        return TARE_OK;
    }
    for (int64_t i = 0; i < a->elements; i++) {
        if (pairs)
            tare_tensor_set_c128(&kernel->outputs[0], i,
                                 gradient->pair(tare_tensor_get_c128(a, i), tare_tensor_get_c128(b, i)));
        else
            tare_tensor_set_f64(&kernel->outputs[0], i,
                                gradient->real(tare_tensor_get_f64(a, i), tare_tensor_get_f64(b, i), alpha));
    }
    return TARE_OK;
}

/* ---- BiasAddGrad: the sum over all dimensions except the channels ---- */

static int channel_axis(const struct tare_node *node, int rank) {
    return tare_node_string(node, "data_format", "NHWC")[1] == 'C' ? 1 : rank - 1;
}

static tare_status infer_bias(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    infer->outputs[0] = tare_shape_make(1, -1);
    if (input->rank < 0) return TARE_OK;
    if (input->rank < 2) return TARE_FAIL(TARE_SHAPE, "Input tensor must be at least 2D: rank %d", input->rank);
    infer->outputs[0].dims[0] = input->dims[channel_axis(infer->node, input->rank)];
    return TARE_OK;
}

static tare_status run_bias(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_operand_output(kernel, 0));
    const int axis = channel_axis(kernel->node, input->shape.rank);
    const bool whole = tare_dtype_is_integer(input->dtype);
    int64_t inner = 1;
    for (int d = axis + 1; d < input->shape.rank; d++)
        inner *= input->shape.dims[d];
    double complex *sums = TARE_NEW_ARRAY(kernel->scratch, double complex, (size_t)out->elements + 1);
    uint64_t *bits = TARE_NEW_ARRAY(kernel->scratch, uint64_t, (size_t)out->elements + 1);
    if (!sums || !bits) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < input->elements; i++) {
        const int64_t channel = i / inner % out->elements;
        if (whole)
            bits[channel] += (uint64_t)tare_tensor_get_i64(input, i);
        else
            sums[channel] += tare_tensor_get_c128(input, i);
    }
    for (int64_t c = 0; c < out->elements; c++) {
        if (whole)
            tare_tensor_set_i64(out, c, (int64_t)bits[c]);
        else
            tare_tensor_set_c128(out, c, sums[c]);
    }
    return TARE_OK;
}

#define GRADIENT(name)                                                                                                 \
    &(const struct gradient) {                                                                                         \
        .real = name                                                                                                   \
    }
#define GRADIENT_OF_RESULT(name)                                                                                       \
    &(const struct gradient) {                                                                                         \
        .real = name, .pair = name##_pair                                                                              \
    }

#define ROW(op_name, how)                                                                                              \
    { .name = op_name, .infer = infer_both, .run = run_gradient, .aux = how, .flags = TARE_OP_ELEMENTWISE }

const struct tare_op tare_ops_gradient[] = {
    ROW("ReluGrad", GRADIENT(relu)),
    ROW("Relu6Grad", GRADIENT(relu6)),
    ROW("LeakyReluGrad", GRADIENT(leaky_relu)),
    ROW("EluGrad", GRADIENT(elu)),
    ROW("SeluGrad", GRADIENT(selu)),
    ROW("SoftplusGrad", GRADIENT(softplus)),
    ROW("SoftsignGrad", GRADIENT(softsign)),
    ROW("SigmoidGrad", GRADIENT_OF_RESULT(sigmoid)),
    ROW("TanhGrad", GRADIENT_OF_RESULT(tanh_of)),
    ROW("SqrtGrad", GRADIENT_OF_RESULT(root)),
    ROW("RsqrtGrad", GRADIENT_OF_RESULT(inverse_root)),
    ROW("InvGrad", GRADIENT_OF_RESULT(reciprocal)),
    ROW("ReciprocalGrad", GRADIENT_OF_RESULT(reciprocal)),
    { .name = "BiasAddGrad", .infer = infer_bias, .run = run_bias },
    { 0 },
};
