/* Ops on elements: arithmetic, functions, comparisons, conversions. */
#include "convert/stablehlo/emit/emit.h"

#include <math.h>
#include <string.h>

#define B (&emit->build)

/* ---- one operand ---- */

static tare_status emit_unary(struct tare_emit *emit, const struct tare_node *node, const void *name) {
    return tare_emit_set(emit, node, 0, tare_build_unary(B, name, tare_emit_in(emit, node, 0)));
}

static tare_status emit_same(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_emit_in(emit, node, 0));
}

static tare_status emit_each_same(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    for (size_t i = 0; i < node->n_outputs; i++)
        TARE_TRY(tare_emit_set(emit, node, i, tare_emit_in(emit, node, i)));
    return TARE_OK;
}

/* The number in every element of the type of `like`. */
static tare_build_value number_like(struct tare_emit *emit, tare_build_value like, double number) {
    if (!like) return NULL;
    const struct tare_shape shape = tare_build_shape(like);
    return tare_build_splat(B, tare_build_dtype(like), &shape, number);
}

static tare_status emit_is_finite(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const struct tare_shape shape = tare_emit_in_shape(emit, node, 0);
    const struct tare_shlo_type *type = tare_build_type(B, TARE_DT_BOOL, &shape);
    (void)arg;
    return tare_emit_set(
        emit, node, 0,
        tare_build_value_of(
            B, &(struct tare_build_request){
                   .name = "is_finite", .operands = &x, .n_operands = 1, .results = &type, .n_results = 1 }));
}

static tare_status emit_is_nan(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_compare(B, "NE", x, x));
}

/* Functions that StableHLO does not have, as custom calls that XLA replaces. */
static tare_build_value custom_call(struct tare_emit *emit, const char *target, tare_build_value x) {
    if (!x) return NULL;
    const tare_build_attr empty = tare_build_array(B, NULL, 0);
    const struct tare_build_named attrs[] = {
        { "api_version", tare_build_enum(B, TARE_VHLO_API_VERSION, "API_VERSION_ORIGINAL") },
        { "backend_config", tare_build_text(B, "") },
        { "call_target_name", tare_build_text(B, target) },
        { "called_computations", empty },
        { "has_side_effect", tare_build_bool(B, false) },
        { "operand_layouts", empty },
        { "output_operand_aliases", empty },
        { "result_layouts", empty },
    };
    return tare_build_value_of(B, &(struct tare_build_request){ .name = "custom_call",
                                                                .operands = &x,
                                                                .n_operands = 1,
                                                                .attrs = attrs,
                                                                .n_attrs = sizeof attrs / sizeof *attrs,
                                                                .results = &x->type,
                                                                .n_results = 1 });
}

/* clamp(x, ±limit) * numerator(x²) / denominator(x²), the approximation of XLA for float32
 * (xla/hlo/builder/lib/math.cc). */
static tare_build_value polynomial(struct tare_emit *emit, tare_build_value x, const double *coefficients,
                                   size_t count) {
    tare_build_value sum = number_like(emit, x, coefficients[0]);
    for (size_t i = 1; i < count; i++) {
        const tare_build_value last = number_like(emit, x, coefficients[i]);
        sum = tare_build_binary(B, "add", tare_build_binary(B, "multiply", sum, x), last);
    }
    return sum;
}

static tare_build_value erf_of(struct tare_emit *emit, tare_build_value x) {
    static const double numerator[] = { 0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861,
                                        0.18520832239976145, 1.128379143519084 };
    static const double denominator[] = { -1.1791602954361697e-7,
                                          0.000023547966471313185,
                                          0.0010179625278914885,
                                          0.014070470171167667,
                                          0.11098505178285362,
                                          0.49746925110067538,
                                          1.0 };
    if (!x) return NULL;
    const int dtype = tare_build_dtype(x);
    if (dtype == TARE_DT_DOUBLE) return custom_call(emit, "mhlo.erf", x);
    const tare_build_value wide = tare_build_convert(B, x, TARE_DT_FLOAT);
    const tare_build_value limit = number_like(emit, wide, 3.832506856900711);
    const tare_build_value least = tare_build_unary(B, "negate", limit);
    const tare_build_value within =
        tare_build_binary(B, "maximum", tare_build_binary(B, "minimum", wide, limit), least);
    const tare_build_value square = tare_build_binary(B, "multiply", within, within);
    const tare_build_value product = tare_build_binary(B, "multiply", within, polynomial(emit, square, numerator, 5));
    const tare_build_value value = tare_build_binary(B, "divide", product, polynomial(emit, square, denominator, 7));
    return tare_build_convert(B, value, dtype);
}

static tare_status emit_erf(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    return tare_emit_set(emit, node, 0, erf_of(emit, tare_emit_in(emit, node, 0)));
}

/* erfc(x) = 1 - erf(x) for |x| < 1, and beyond it exp(-x²) / |x| * P(1 / x²), reflected for negative x (Cephes,
 * ndtr.c). */
static tare_status emit_erfc(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    static const double near_two[] = { 2.326819970068386e-2,  -1.387039388740657e-1, 3.687424674597105e-1,
                                       -5.824733027278666e-1, 6.210004621745983e-1,  -4.944515323274145e-1,
                                       3.404879937665872e-1,  -2.741127028184656e-1, 5.638259427386472e-1 };
    static const double beyond_two[] = { -1.047766399936249e+1, 1.297719955372516e+1,  -7.495518717768503e+0,
                                         2.921019019210786e+0,  -1.015265279202700e+0, 4.218463358204948e-1,
                                         -2.820767439740514e-1, 5.641895067754075e-1 };
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    if (!x) return TARE_OK;
    const int dtype = tare_build_dtype(x);
    if (dtype == TARE_DT_DOUBLE) return TARE_FAIL(TARE_UNSUPPORTED, "erfc of double");
    const tare_build_value wide = tare_build_convert(B, x, TARE_DT_FLOAT), one = number_like(emit, wide, 1);
    const tare_build_value size = tare_build_unary(B, "abs", wide),
                           square = tare_build_binary(B, "multiply", wide, wide);
    const tare_build_value reciprocal = tare_build_binary(B, "divide", one, size);
    const tare_build_value argument = tare_build_binary(B, "multiply", reciprocal, reciprocal);
    const tare_build_value is_near = tare_build_compare(B, "LT", size, number_like(emit, wide, 2));
    const tare_build_value far = polynomial(emit, argument, beyond_two, 8);
    const tare_build_value series = tare_build_select(B, is_near, polynomial(emit, argument, near_two, 9), far);
    const tare_build_value power = tare_build_unary(B, "exponential", tare_build_unary(B, "negate", square));
    const tare_build_value tail =
        tare_build_binary(B, "multiply", tare_build_binary(B, "multiply", power, reciprocal), series);
    const tare_build_value is_negative = tare_build_compare(B, "LT", wide, number_like(emit, wide, 0));
    const tare_build_value reflected =
        tare_build_select(B, is_negative, tare_build_binary(B, "subtract", number_like(emit, wide, 2), tail), tail);
    const tare_build_value middle = tare_build_binary(B, "subtract", one, erf_of(emit, wide));
    const tare_build_value value = tare_build_select(B, tare_build_compare(B, "LT", size, one), middle, reflected);
    return tare_emit_set(emit, node, 0, tare_build_convert(B, value, dtype));
}

static tare_status emit_call(struct tare_emit *emit, const struct tare_node *node, const void *target) {
    return tare_emit_set(emit, node, 0, custom_call(emit, target, tare_emit_in(emit, node, 0)));
}

static tare_status emit_square(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "multiply", x, x));
}

static tare_status emit_reciprocal(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "divide", number_like(emit, x, 1), x));
}

/* ---- activation functions ---- */

static tare_status emit_relu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "maximum", x, number_like(emit, x, 0)));
}

static tare_status emit_relu6(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value positive = tare_build_binary(B, "maximum", x, number_like(emit, x, 0));
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "minimum", positive, number_like(emit, x, 6)));
}

/* x > 0 ? scale * x : scale * negative(x) */
static tare_status emit_rectified(struct tare_emit *emit, const struct tare_node *node, tare_build_value x,
                                  tare_build_value negative, double scale) {
    const tare_build_value is_positive = tare_build_compare(B, "GT", x, number_like(emit, x, 0));
    tare_build_value positive = x;
    if (scale != 1) positive = tare_build_binary(B, "multiply", x, number_like(emit, x, scale));
    return tare_emit_set(emit, node, 0, tare_build_select(B, is_positive, positive, negative));
}

static tare_status emit_leaky_relu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const double alpha = (double)tare_node_float(node, "alpha", 0.2F);
    (void)arg;
    return emit_rectified(emit, node, x, tare_build_binary(B, "multiply", x, number_like(emit, x, alpha)), 1);
}

static tare_status emit_elu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return emit_rectified(emit, node, x, tare_build_unary(B, "exponential_minus_one", x), 1);
}

static tare_status emit_selu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value factor = number_like(emit, x, scale * alpha);
    const tare_build_value below =
        tare_build_binary(B, "multiply", tare_build_unary(B, "exponential_minus_one", x), factor);
    (void)arg;
    return emit_rectified(emit, node, x, below, scale);
}

/* max(x, 0) + log(1 + exp(-|x|)) */
static tare_status emit_softplus(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value tail = tare_build_unary(
        B, "log_plus_one",
        tare_build_unary(B, "exponential", tare_build_unary(B, "negate", tare_build_unary(B, "abs", x))));
    (void)arg;
    return tare_emit_set(
        emit, node, 0, tare_build_binary(B, "add", tare_build_binary(B, "maximum", x, number_like(emit, x, 0)), tail));
}

static tare_status emit_softsign(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value size = tare_build_unary(B, "abs", x);
    const tare_build_value below = tare_build_binary(B, "add", number_like(emit, x, 1), size);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "divide", x, below));
}

/* ---- two operands ---- */

static tare_build_value broadcast_in(struct tare_emit *emit, const struct tare_node *node, size_t k) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    return tare_build_broadcast(B, tare_emit_in(emit, node, k), &shape);
}

static tare_status emit_binary(struct tare_emit *emit, const struct tare_node *node, const void *name) {
    const tare_build_value b = broadcast_in(emit, node, 1), a = broadcast_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, tare_build_binary(B, name, a, b));
}

/* Amounts beyond the width shift by all bits but one. */
static tare_status emit_shift(struct tare_emit *emit, const struct tare_node *node, const void *left) {
    const tare_build_value b = broadcast_in(emit, node, 1), a = broadcast_in(emit, node, 0);
    const tare_build_value most = number_like(emit, b, (double)tare_dtype_size(tare_emit_out_dtype(node, 0)) * 8 - 1);
    const tare_build_value least = number_like(emit, b, 0);
    const tare_build_value by = tare_build_binary(B, "maximum", tare_build_binary(B, "minimum", b, most), least);
    const char *name = left                                                      ? "shift_left"
                       : a && tare_shlo_kind_is_unsigned(a->type->element->kind) ? "shift_right_logical"
                                                                                 : "shift_right_arithmetic";
    return tare_emit_set(emit, node, 0, tare_build_binary(B, name, a, by));
}

static tare_status emit_compare(struct tare_emit *emit, const struct tare_node *node, const void *direction) {
    const tare_build_value b = broadcast_in(emit, node, 1), a = broadcast_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, tare_build_compare(B, direction, a, b));
}

static tare_status emit_squared_difference(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value b = broadcast_in(emit, node, 1), a = broadcast_in(emit, node, 0);
    const tare_build_value difference = tare_build_binary(B, "subtract", a, b);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "multiply", difference, difference));
}

/* `guard` names which operand makes the result 0: the second of DivNoNan, the first of Xdivy. */
static tare_status emit_guarded_division(struct tare_emit *emit, const struct tare_node *node, const void *guard) {
    const tare_build_value a = broadcast_in(emit, node, 0), b = broadcast_in(emit, node, 1);
    const tare_build_value zero = number_like(emit, a, 0);
    const tare_build_value is_zero = tare_build_compare(B, "EQ", *(const char *)guard == '0' ? a : b, zero);
    return tare_emit_set(emit, node, 0, tare_build_select(B, is_zero, zero, tare_build_binary(B, "divide", a, b)));
}

static tare_status emit_floor_division(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value a = broadcast_in(emit, node, 0), b = broadcast_in(emit, node, 1);
    (void)arg;
    if (!a || !b) return TARE_OK;
    const enum tare_shlo_type_kind kind = a->type->element->kind;
    const tare_build_value quotient = tare_build_binary(B, "divide", a, b);
    if (tare_shlo_type_is_float(kind)) return tare_emit_set(emit, node, 0, tare_build_unary(B, "floor", quotient));
    if (tare_shlo_kind_is_unsigned(kind)) return tare_emit_set(emit, node, 0, quotient);
    /* the quotient is rounded towards zero: one too large where the signs differ and a remainder is left */
    const tare_build_value zero = number_like(emit, a, 0), remainder = tare_build_binary(B, "remainder", a, b);
    const tare_build_value sign = tare_build_unary(B, "sign", b);
    const tare_build_value differs = tare_build_compare(B, "NE", tare_build_unary(B, "sign", a), sign);
    const tare_build_value corrects =
        tare_build_binary(B, "and", differs, tare_build_compare(B, "NE", remainder, zero));
    return tare_emit_set(
        emit, node, 0,
        tare_build_select(B, corrects, tare_build_binary(B, "subtract", quotient, number_like(emit, a, 1)), quotient));
}

/* The remainder with the sign of the divisor. */
static tare_status emit_floor_modulus(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value a = broadcast_in(emit, node, 0), b = broadcast_in(emit, node, 1);
    const tare_build_value remainder = tare_build_binary(B, "remainder", a, b), zero = number_like(emit, a, 0);
    const tare_build_value is_negative = tare_build_compare(B, "LT", b, zero);
    const tare_build_value differs =
        tare_build_compare(B, "NE", tare_build_compare(B, "LT", remainder, zero), is_negative);
    const tare_build_value corrects =
        tare_build_binary(B, "and", differs, tare_build_compare(B, "NE", remainder, zero));
    (void)arg;
    return tare_emit_set(emit, node, 0,
                         tare_build_select(B, corrects, tare_build_binary(B, "add", remainder, b), remainder));
}

static tare_status emit_sum_of_all(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    tare_build_value sum = tare_emit_in(emit, node, 0);
    (void)arg;
    for (size_t i = 1; i < node->n_inputs; i++)
        sum = tare_build_binary(B, "add", sum, tare_emit_in(emit, node, i));
    return tare_emit_set(emit, node, 0, sum);
}

/* ---- three operands ---- */

static tare_status emit_clip(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value most = broadcast_in(emit, node, 2);
    const tare_build_value below = tare_build_binary(B, "minimum", broadcast_in(emit, node, 0), most);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "maximum", below, broadcast_in(emit, node, 1)));
}

/* The predicate of Select may be a vector that chooses rows. */
static tare_status emit_select(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0), own = tare_emit_in_shape(emit, node, 0);
    tare_build_value predicate = tare_emit_in(emit, node, 0);
    const int first = 0;
    (void)arg;
    if (strcmp(node->op, "Select") == 0 && own.rank == 1 && shape.rank > 1)
        predicate = tare_build_spread(B, predicate, &shape, &first);
    else
        predicate = tare_build_broadcast(B, predicate, &shape);
    const tare_build_value other = broadcast_in(emit, node, 2);
    return tare_emit_set(emit, node, 0, tare_build_select(B, predicate, broadcast_in(emit, node, 1), other));
}

static tare_status emit_cast(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const int to = tare_emit_out_dtype(node, 0);
    (void)arg;
    if (x && to == TARE_DT_BOOL && tare_build_dtype(x) != TARE_DT_BOOL)
        return tare_emit_set(emit, node, 0, tare_build_compare(B, "NE", x, number_like(emit, x, 0)));
    return tare_emit_set(emit, node, 0, tare_build_convert(B, x, to));
}

/* The bias of the channels: the last axis, or axis 1. */
static tare_status emit_bias(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_in_shape(emit, node, 0);
    const int axis = strncmp(tare_node_string(node, "data_format", "NHWC"), "NC", 2) == 0 ? 1 : shape.rank - 1;
    const tare_build_value bias = tare_build_spread(B, tare_emit_in(emit, node, 1), &shape, &axis);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "add", tare_emit_in(emit, node, 0), bias));
}

const struct tare_emit_row tare_emit_elementwise[] = {
    { "Abs", emit_unary, "abs" },
    { "Ceil", emit_unary, "ceil" },
    { "Cos", emit_unary, "cosine" },
    { "Exp", emit_unary, "exponential" },
    { "Expm1", emit_unary, "exponential_minus_one" },
    { "Floor", emit_unary, "floor" },
    { "Log", emit_unary, "log" },
    { "Log1p", emit_unary, "log_plus_one" },
    { "LogicalNot", emit_unary, "not" },
    { "Invert", emit_unary, "not" },
    { "Neg", emit_unary, "negate" },
    { "Rint", emit_unary, "round_nearest_even" },
    { "Round", emit_unary, "round_nearest_even" },
    { "Rsqrt", emit_unary, "rsqrt" },
    { "Sigmoid", emit_unary, "logistic" },
    { "Sign", emit_unary, "sign" },
    { "Sin", emit_unary, "sine" },
    { "Sqrt", emit_unary, "sqrt" },
    { "Tanh", emit_unary, "tanh" },
    { "Acos", emit_call, "mhlo.acos" },
    { "Acosh", emit_call, "mhlo.acosh" },
    { "Asin", emit_call, "mhlo.asin" },
    { "Asinh", emit_call, "mhlo.asinh" },
    { "Atanh", emit_call, "mhlo.atanh" },
    { "Cosh", emit_call, "mhlo.cosh" },
    { "Sinh", emit_call, "mhlo.sinh" },
    { "Tan", emit_call, "mhlo.tan" },
    { "Erf", emit_erf, NULL },
    { "Erfc", emit_erfc, NULL },
    { "IsFinite", emit_is_finite, NULL },
    { "IsNan", emit_is_nan, NULL },
    { "Square", emit_square, NULL },
    { "Reciprocal", emit_reciprocal, NULL },
    { "Inv", emit_reciprocal, NULL },
    { "Relu", emit_relu, NULL },
    { "Relu6", emit_relu6, NULL },
    { "LeakyRelu", emit_leaky_relu, NULL },
    { "Elu", emit_elu, NULL },
    { "Selu", emit_selu, NULL },
    { "Softplus", emit_softplus, NULL },
    { "Softsign", emit_softsign, NULL },
    { "Identity", emit_same, NULL },
    { "TPUReplicatedInput", emit_same, NULL }, /* of one replica */
    { "TPUReplicatedOutput", emit_same, NULL },
    { "IdentityN", emit_each_same, NULL },
    { "StopGradient", emit_same, NULL },
    { "PreventGradient", emit_same, NULL },
    { "Snapshot", emit_same, NULL },
    { "CheckNumerics", emit_same, NULL },
    { "EnsureShape", emit_same, NULL },
    { "Add", emit_binary, "add" },
    { "AddV2", emit_binary, "add" },
    { "Sub", emit_binary, "subtract" },
    { "Mul", emit_binary, "multiply" },
    { "RealDiv", emit_binary, "divide" },
    { "Div", emit_binary, "divide" },
    { "TruncateDiv", emit_binary, "divide" },
    { "TruncateMod", emit_binary, "remainder" },
    { "Mod", emit_binary, "remainder" },
    { "Maximum", emit_binary, "maximum" },
    { "Minimum", emit_binary, "minimum" },
    { "Pow", emit_binary, "power" },
    { "Atan2", emit_binary, "atan2" },
    { "LogicalAnd", emit_binary, "and" },
    { "LogicalOr", emit_binary, "or" },
    { "BitwiseAnd", emit_binary, "and" },
    { "BitwiseOr", emit_binary, "or" },
    { "BitwiseXor", emit_binary, "xor" },
    { "LeftShift", emit_shift, "left" },
    { "RightShift", emit_shift, NULL },
    { "Equal", emit_compare, "EQ" },
    { "NotEqual", emit_compare, "NE" },
    { "Less", emit_compare, "LT" },
    { "LessEqual", emit_compare, "LE" },
    { "Greater", emit_compare, "GT" },
    { "GreaterEqual", emit_compare, "GE" },
    { "SquaredDifference", emit_squared_difference, NULL },
    { "DivNoNan", emit_guarded_division, "1" },
    { "Xdivy", emit_guarded_division, "0" },
    { "FloorDiv", emit_floor_division, NULL },
    { "FloorMod", emit_floor_modulus, NULL },
    { "AddN", emit_sum_of_all, NULL },
    { "ClipByValue", emit_clip, NULL },
    { "Select", emit_select, NULL },
    { "SelectV2", emit_select, NULL },
    { "Cast", emit_cast, NULL },
    { "BiasAdd", emit_bias, NULL },
    { 0 },
};
