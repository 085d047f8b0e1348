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

static tare_status emit_square(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "multiply", x, x));
}

static tare_status emit_reciprocal(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "divide", tare_build_number(B, x, 1), x));
}

/* ---- activation functions ---- */

static tare_status emit_relu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "maximum", x, tare_build_number(B, x, 0)));
}

static tare_status emit_relu6(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value positive = tare_build_binary(B, "maximum", x, tare_build_number(B, x, 0));
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_build_binary(B, "minimum", positive, tare_build_number(B, x, 6)));
}

/* x > 0 ? scale * x : scale * negative(x) */
static tare_status emit_rectified(struct tare_emit *emit, const struct tare_node *node, tare_build_value x,
                                  tare_build_value negative, double scale) {
    const tare_build_value is_positive = tare_build_compare(B, "GT", x, tare_build_number(B, x, 0));
    tare_build_value positive = x;
    if (scale != 1) positive = tare_build_binary(B, "multiply", x, tare_build_number(B, x, scale));
    return tare_emit_set(emit, node, 0, tare_build_select(B, is_positive, positive, negative));
}

static tare_status emit_leaky_relu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const double alpha = (double)tare_node_float(node, "alpha", 0.2F);
    (void)arg;
    return emit_rectified(emit, node, x, tare_build_binary(B, "multiply", x, tare_build_number(B, x, alpha)), 1);
}

static tare_status emit_elu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    return emit_rectified(emit, node, x, tare_build_unary(B, "exponential_minus_one", x), 1);
}

static tare_status emit_selu(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value factor = tare_build_number(B, x, scale * alpha);
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
        emit, node, 0,
        tare_build_binary(B, "add", tare_build_binary(B, "maximum", x, tare_build_number(B, x, 0)), tail));
}

static tare_status emit_softsign(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const tare_build_value size = tare_build_unary(B, "abs", x);
    const tare_build_value below = tare_build_binary(B, "add", tare_build_number(B, x, 1), size);
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
    const tare_build_value most =
        tare_build_number(B, b, (double)tare_dtype_size(tare_emit_out_dtype(node, 0)) * 8 - 1);
    const tare_build_value least = tare_build_number(B, b, 0);
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
    const tare_build_value zero = tare_build_number(B, a, 0);
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
    const tare_build_value zero = tare_build_number(B, a, 0), remainder = tare_build_binary(B, "remainder", a, b);
    const tare_build_value sign = tare_build_unary(B, "sign", b);
    const tare_build_value differs = tare_build_compare(B, "NE", tare_build_unary(B, "sign", a), sign);
    const tare_build_value corrects =
        tare_build_binary(B, "and", differs, tare_build_compare(B, "NE", remainder, zero));
    return tare_emit_set(emit, node, 0,
                         tare_build_select(B, corrects,
                                           tare_build_binary(B, "subtract", quotient, tare_build_number(B, a, 1)),
                                           quotient));
}

/* The remainder with the sign of the divisor. */
static tare_status emit_floor_modulus(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value a = broadcast_in(emit, node, 0), b = broadcast_in(emit, node, 1);
    const tare_build_value remainder = tare_build_binary(B, "remainder", a, b), zero = tare_build_number(B, a, 0);
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
        return tare_emit_set(emit, node, 0, tare_build_compare(B, "NE", x, tare_build_number(B, x, 0)));
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
    { "PlaceholderWithDefault", emit_same, NULL }, /* not an argument */
    { "TPUReplicatedInput", emit_same, NULL },     /* of one replica */
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
