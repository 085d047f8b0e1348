/* Element-wise ops with one operand. Elementary functions of real numbers are those of
 * interpreter/kernels/elementary_double.h; float Exp, Expm1, Log, Log1p, Tanh, Sigmoid, Erf and Erfc have vectorized
 * kernels (interpreter/kernels/elementary.h), to which the others are the reference. Those of complex numbers, Erf and
 * Erfc of double and Lgamma are the C library's. */
#include "interpreter/kernels/elementary.h"
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/kernels/special/special.h"
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <tgmath.h>

/* A row's aux: one loop per input dtype, and the vectorized loop for float. */
struct unary {
    tare_loop1 loops[TARE_DT_COUNT];
    void (*fast)(float *to, const float *from, int64_t count);
    int dtype; /* dtype of the output; TARE_DT_INVALID: that of the input */
};

static tare_status run_plain(struct tare_kernel *kernel) {
    const struct unary *unary = kernel->op->aux;
    const int dtype = kernel->inputs[0].dtype;
    return tare_elementwise_run1(kernel, unary->loops[dtype], unary->dtype ? unary->dtype : dtype);
}

static tare_status run_fast(struct tare_kernel *kernel) {
    const struct unary *unary = kernel->op->aux;
    const struct tare_tensor *input = &kernel->inputs[0];
    if (input->dtype != TARE_DT_FLOAT) return run_plain(kernel);
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    unary->fast(kernel->outputs[0].data, input->data, input->elements);
    return TARE_OK;
}

/* ---- arithmetic ---- */

TARE_LOOP1_FLOATS(abs, fabs(x))
TARE_LOOP1_SIGNED(abs, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
static const struct unary abs_op = { .loops = { TARE_BY_FLOATS(abs), TARE_BY_SIGNED(abs) } };

TARE_LOOP1_FLOATS(neg, -x)
TARE_LOOP1_COMPLEX(neg, -x)
TARE_LOOP1_BITS(neg, 0 - x)
static const struct unary neg_op = { .loops = { TARE_BY_FLOATS(neg), TARE_BY_COMPLEX(neg), TARE_BY_BITS(neg) } };

/* Sign(NaN) is NaN. */
TARE_LOOP1_FLOATS(sign, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x)
TARE_LOOP1_COMPLEX(sign, x == 0 ? 0 : x / fabs(x))
TARE_LOOP1_SIGNED(sign, (x > 0) - (x < 0))
static const struct unary sign_op = { .loops = { TARE_BY_FLOATS(sign), TARE_BY_COMPLEX(sign), TARE_BY_SIGNED(sign) } };

TARE_LOOP1_FLOATS(square, x *x)
TARE_LOOP1_COMPLEX(square, x *x)
TARE_LOOP1_BITS(square, x *x)
static const struct unary square_op = { .loops = { TARE_BY_FLOATS(square), TARE_BY_COMPLEX(square),
                                                   TARE_BY_BITS(square) } };

TARE_LOOP1_FLOATS(sqrt, sqrt(x))
TARE_LOOP1_COMPLEX(sqrt, sqrt(x))
static const struct unary sqrt_op = { .loops = { TARE_BY_FLOATS(sqrt), TARE_BY_COMPLEX(sqrt) } };

TARE_LOOP1_FLOATS(rsqrt, 1 / sqrt(x))
TARE_LOOP1_COMPLEX(rsqrt, 1 / sqrt(x))
static const struct unary rsqrt_op = { .loops = { TARE_BY_FLOATS(rsqrt), TARE_BY_COMPLEX(rsqrt) } };

TARE_LOOP1_FLOATS(reciprocal, 1 / x)
TARE_LOOP1_COMPLEX(reciprocal, 1 / x)
static const struct unary reciprocal_op = { .loops = { TARE_BY_FLOATS(reciprocal), TARE_BY_COMPLEX(reciprocal) } };

TARE_LOOP1_BITS(invert, ~x)
static const struct unary invert_op = { .loops = { TARE_BY_BITS(invert) } };

TARE_LOOP1(count_u8, uint8_t, uint8_t, TARE_SAME, TARE_SAME, __builtin_popcount(x))
TARE_LOOP1(count_u16, uint16_t, uint8_t, TARE_SAME, TARE_SAME, __builtin_popcount(x))
TARE_LOOP1(count_u32, uint32_t, uint8_t, TARE_SAME, TARE_SAME, __builtin_popcount(x))
TARE_LOOP1(count_u64, uint64_t, uint8_t, TARE_SAME, TARE_SAME, __builtin_popcountll(x))
static const struct unary count_op = { .loops = { TARE_BY_BITS(count) }, .dtype = TARE_DT_UINT8 };

TARE_LOOP1(not_bool, bool, bool, TARE_SAME, TARE_SAME, !x)
static const struct unary not_op = { .loops = { [TARE_DT_BOOL] = not_bool } };

/* ---- rounding: half to even; integers are returned unchanged ---- */

/* Adding 2^23 to a smaller magnitude removes its fraction, rounded half to even. The baseline instruction set has no
 * rounding instruction. */
static inline float rint_float(float x) {
    const float size = fabsf(x);
    const float whole = size + 0x1p23f - 0x1p23f;
    return copysignf(size < 0x1p23f ? whole : size, x);
}
static inline float floor_float(float x) {
    const float whole = rint_float(x);
    return whole > x ? whole - 1 : whole;
}
static inline float ceil_float(float x) {
    const float whole = rint_float(x);
    return whole < x ? copysignf(whole + 1, x) : whole;
}

#define ROUNDING(name)                                                                                                 \
    TARE_LOOP1(name##_f32, float, float, TARE_SAME, TARE_SAME, name##_float(x))                                        \
    TARE_LOOP1(name##_f64, double, double, TARE_SAME, TARE_SAME, name(x))                                              \
    TARE_LOOP1(name##_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, name##_float(x))            \
    TARE_LOOP1(name##_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float, name##_float(x))
ROUNDING(floor)
ROUNDING(ceil)
ROUNDING(rint)
#undef ROUNDING
static const struct unary floor_op = { .loops = { TARE_BY_FLOATS(floor) } };
static const struct unary ceil_op = { .loops = { TARE_BY_FLOATS(ceil) } };
TARE_LOOP1_BITS(rint, x)
static const struct unary rint_op = { .loops = { TARE_BY_FLOATS(rint) } };
static const struct unary round_op = { .loops = { TARE_BY_FLOATS(rint), TARE_BY_BITS(rint) } };

/* ---- classification ---- */

#define TESTS(name, expression)                                                                                        \
    TARE_LOOP1(name##_f32, float, bool, TARE_SAME, TARE_SAME, expression)                                              \
    TARE_LOOP1(name##_f64, double, bool, TARE_SAME, TARE_SAME, expression)                                             \
    TARE_LOOP1(name##_f16, uint16_t, bool, tare_float_from_half, TARE_SAME, expression)                                \
    TARE_LOOP1(name##_bf16, uint16_t, bool, tare_float_from_bfloat16, TARE_SAME, expression)                           \
    static const struct unary name##_op = { .loops = { TARE_BY_FLOATS(name) }, .dtype = TARE_DT_BOOL };
TESTS(is_nan, isnan(x))
TESTS(is_inf, isinf(x))
TESTS(is_finite, isfinite(x))
#undef TESTS

/* ---- elementary functions ---- */

#define FUNCTION(name, expression)                                                                                     \
    TARE_LOOP1_FLOATS(name, TARE_REAL(tare_##name, x))                                                                 \
    TARE_LOOP1_COMPLEX(name, expression)                                                                               \
    static const struct unary name##_op = { .loops = { TARE_BY_FLOATS(name), TARE_BY_COMPLEX(name) } };
FUNCTION(sin, sin(x))
FUNCTION(cos, cos(x))
FUNCTION(tan, tan(x))
FUNCTION(asin, asin(x))
FUNCTION(acos, acos(x))
FUNCTION(atan, atan(x))
FUNCTION(sinh, sinh(x))
FUNCTION(cosh, cosh(x))
FUNCTION(asinh, asinh(x))
FUNCTION(acosh, acosh(x))
FUNCTION(atanh, atanh(x))

#undef FUNCTION

/* log(1 + z) and exp(z) - 1 without cancellation for small z. */
static _Complex double log1p_complex(_Complex double z) {
    const double re = creal(z), im = cimag(z);
    return TARE_COMPLEX128(0.5 * tare_log1p(re * (2 + re) + im * im), tare_atan2(im, 1 + re));
}
static _Complex double expm1_complex(_Complex double z) {
    const double re = creal(z), im = cimag(z), half = tare_sin(im / 2);
    return TARE_COMPLEX128(tare_expm1(re) * tare_cos(im) - 2 * half * half, tare_exp(re) * tare_sin(im));
}

#define FUNCTION(name, expression)                                                                                     \
    TARE_LOOP1_FLOATS(name, TARE_REAL(tare_##name, x))                                                                 \
    TARE_LOOP1_COMPLEX(name, expression)                                                                               \
    static const struct unary name##_op = { .loops = { TARE_BY_FLOATS(name), TARE_BY_COMPLEX(name) },                  \
                                            .fast = tare_##name##_floats };
FUNCTION(log, log(x))
FUNCTION(log1p, log1p_complex(x))
FUNCTION(expm1, expm1_complex(x))
FUNCTION(exp, exp(x))
FUNCTION(tanh, tanh(x))
FUNCTION(sigmoid, 1 / (1 + exp(-x)))
#undef FUNCTION

/* half and bfloat16 by the kernel of float: the C library's differ between CPUs. */
#define BY_FLOATS(name)                                                                                                \
    static float name##_of_float(float x) {                                                                            \
        tare_##name##_floats(&x, &x, 1);                                                                               \
        return x;                                                                                                      \
    }                                                                                                                  \
    TARE_LOOP1(name##_f32, float, float, TARE_SAME, TARE_SAME, (float)name((double)x))                                 \
    TARE_LOOP1(name##_f64, double, double, TARE_SAME, TARE_SAME, name(x))                                              \
    TARE_LOOP1(name##_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, name##_of_float(x))         \
    TARE_LOOP1(name##_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float,                    \
               name##_of_float(x))                                                                                     \
    static const struct unary name##_op = { .loops = { TARE_BY_FLOATS(name) }, .fast = tare_##name##_floats };
BY_FLOATS(erf)
BY_FLOATS(erfc)
#undef BY_FLOATS

#define IN_DOUBLE(name, function)                                                                                      \
    TARE_LOOP1(name##_f32, float, float, TARE_SAME, TARE_SAME, function((double)x))                                    \
    TARE_LOOP1(name##_f64, double, double, TARE_SAME, TARE_SAME, function(x))                                          \
    TARE_LOOP1(name##_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, (float)function((double)x)) \
    TARE_LOOP1(name##_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float,                    \
               (float)function((double)x))                                                                             \
    static const struct unary name##_op = { .loops = { TARE_BY_FLOATS(name) } };
IN_DOUBLE(erfinv, tare_erfinv)
IN_DOUBLE(ndtri, tare_ndtri)
IN_DOUBLE(lgamma, tare_lgamma)
IN_DOUBLE(digamma, tare_digamma)
#undef IN_DOUBLE

/* ---- rows ---- */

#define FLAGS TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE
#define ROW_WITH(op_name, table, more)                                                                                 \
    { .name = op_name, .infer = tare_infer_same, .run = run_plain, .aux = &table, .flags = FLAGS | (more) }
#define ROW(op_name, table) ROW_WITH(op_name, table, 0)
#define ARITHMETIC_ROW(op_name, table) ROW_WITH(op_name, table, TARE_OP_ARITHMETIC)
#define FAST_ROW_WITH(op_name, table, more)                                                                            \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_same, .run = run_fast, .reference = run_plain, .aux = &table,             \
        .flags = FLAGS | (more)                                                                                        \
    }
#define FAST_ROW(op_name, table) FAST_ROW_WITH(op_name, table, 0)
#define TEST_ROW(op_name, table)                                                                                       \
    { .name = op_name, .infer = tare_infer_same, .run = run_plain, .aux = &table, .flags = TARE_OP_ELEMENTWISE }

const struct tare_op tare_ops_unary[] = {
    ARITHMETIC_ROW("Abs", abs_op),
    ARITHMETIC_ROW("Neg", neg_op),
    ARITHMETIC_ROW("Sign", sign_op),
    ROW("Square", square_op),
    ROW("Sqrt", sqrt_op),
    ROW("Rsqrt", rsqrt_op),
    ROW("Reciprocal", reciprocal_op),
    ROW("Inv", reciprocal_op),
    ROW("Invert", invert_op),
    { .name = "PopulationCount",
      .infer = tare_infer_same,
      .run = run_plain,
      .aux = &count_op,
      .flags = TARE_OP_ELEMENTWISE },
    { .name = "LogicalNot", .infer = tare_infer_same, .run = run_plain, .aux = &not_op, .flags = FLAGS },
    ARITHMETIC_ROW("Floor", floor_op),
    ARITHMETIC_ROW("Ceil", ceil_op),
    ARITHMETIC_ROW("Rint", rint_op),
    ARITHMETIC_ROW("Round", round_op),
    TEST_ROW("IsNan", is_nan_op),
    TEST_ROW("IsInf", is_inf_op),
    TEST_ROW("IsFinite", is_finite_op),
    FAST_ROW("Exp", exp_op),
    FAST_ROW("Expm1", expm1_op),
    FAST_ROW("Log", log_op),
    FAST_ROW("Log1p", log1p_op),
    ROW("Sin", sin_op),
    ROW("Cos", cos_op),
    ROW("Tan", tan_op),
    ROW("Asin", asin_op),
    ROW("Acos", acos_op),
    ROW("Atan", atan_op),
    ROW("Sinh", sinh_op),
    ROW("Cosh", cosh_op),
    FAST_ROW("Tanh", tanh_op),
    ROW("Asinh", asinh_op),
    ROW("Acosh", acosh_op),
    ROW("Atanh", atanh_op),
    FAST_ROW_WITH("Sigmoid", sigmoid_op, TARE_OP_PROBABILITY),
    FAST_ROW("Erf", erf_op),
    FAST_ROW("Erfc", erfc_op),
    ROW("Erfinv", erfinv_op),
    ROW("Ndtri", ndtri_op),
    ROW("Lgamma", lgamma_op),
    ROW("Digamma", digamma_op),
    { 0 },
};
