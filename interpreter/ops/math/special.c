/* Special functions, element-wise: Bessel functions, incomplete gamma and beta functions, zeta, polygamma, Fresnel
 * integrals and others. half, bfloat16 and float are computed in double and rounded once. */
#include "interpreter/kernels/special/functions.h"
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <math.h>

/* A row's aux: the function of one or two operands. */
struct special {
    double (*one)(double x);
    double (*two)(double x, double y);
};

static tare_status run_one(struct tare_kernel *kernel) {
    double (*fn)(double) = ((const struct special *)kernel->op->aux)->one;
    const struct tare_tensor *x = &kernel->inputs[0];
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &x->shape));
    for (int64_t i = 0; i < x->elements; i++)
        tare_tensor_set_f64(&kernel->outputs[0], i, fn(tare_tensor_get_f64(x, i)));
    return TARE_OK;
}

static tare_status run_two(struct tare_kernel *kernel) {
    double (*fn)(double, double) = ((const struct special *)kernel->op->aux)->two;
    const struct tare_tensor *x = &kernel->inputs[0], *y = &kernel->inputs[1];
    struct tare_broadcast plan;
    struct tare_broadcast_walk walk = { 0 };
    TARE_TRY(tare_broadcast_plan(&plan, kernel->inputs, 2));
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &plan.shape));
    for (int64_t row = 0, at = 0; kernel->outputs[0].elements && row < plan.outer; row++) {
        for (int64_t i = 0; i < plan.inner; i++, at++)
            tare_tensor_set_f64(&kernel->outputs[0], at,
                                fn(tare_tensor_get_f64(x, walk.offsets[0] + (plan.is_one[0] ? 0 : i)),
                                   tare_tensor_get_f64(y, walk.offsets[1] + (plan.is_one[1] ? 0 : i))));
        tare_broadcast_next(&walk, &plan);
    }
    return TARE_OK;
}

/* The three operands have one shape; scalars broadcast. */
static tare_status infer_betainc(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    bool known = true, any = false;
    *out = tare_shape_unknown();
    for (size_t i = 0; i < 3; i++) {
        if (infer->inputs[i].rank < 0) known = false;
        if (infer->inputs[i].rank <= 0) continue;
        TARE_TRY(tare_shape_merge(out, out, &infer->inputs[i]));
        any = true;
    }
    if (known && !any) *out = tare_shape_scalar();
    return TARE_OK;
}

static tare_status run_betainc(struct tare_kernel *kernel) {
    double x[3];
    TARE_TRY(tare_operand_output(kernel, 0));
    for (int64_t i = 0; i < kernel->outputs[0].elements; i++) {
        for (int k = 0; k < 3; k++)
            x[k] = tare_tensor_get_f64(&kernel->inputs[k], kernel->inputs[k].shape.rank ? i : 0);
        tare_tensor_set_f64(&kernel->outputs[0], i, tare_betainc(x[0], x[1], x[2]));
    }
    return TARE_OK;
}

#define ONE(op_name, function)                                                                                         \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_same, .run = run_one, .flags = TARE_OP_ELEMENTWISE,                       \
        .aux = &(const struct special) {                                                                               \
            .one = function                                                                                            \
        }                                                                                                              \
    }
#define TWO(op_name, function)                                                                                         \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_broadcast, .run = run_two, .flags = TARE_OP_ELEMENTWISE,                  \
        .aux = &(const struct special) {                                                                               \
            .two = function                                                                                            \
        }                                                                                                              \
    }

const struct tare_op tare_ops_special[] = {
    ONE("BesselI0", tare_bessel_i0),
    ONE("BesselI1", tare_bessel_i1),
    ONE("BesselI0e", tare_bessel_i0_scaled),
    ONE("BesselI1e", tare_bessel_i1_scaled),
    ONE("Dawsn", tare_dawson),
    ONE("Expint", tare_expint),
    ONE("FresnelCos", tare_fresnel_cos),
    ONE("FresnelSin", tare_fresnel_sin),
    ONE("Spence", tare_spence),
    TWO("Igamma", tare_igamma),
    TWO("Igammac", tare_igammac),
    TWO("Polygamma", tare_polygamma),
    TWO("Zeta", tare_zeta),
    { .name = "Betainc", .infer = infer_betainc, .run = run_betainc, .flags = TARE_OP_ELEMENTWISE },
    { 0 },
};
