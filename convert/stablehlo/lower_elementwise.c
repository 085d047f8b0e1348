/* Element-wise ops. Most have a TensorFlow op of equal semantics; where the two differ (NaN in maxima, conversions that
 * do not fit, shifts by more than the width), the difference is made up with further ops. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/dtype.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* An op by dtype class; NULL: the op of the first column. */
struct by_class {
    const char *op, *of_bool, *of_integer;
};

static bool is_integer(int dtype) {
    return dtype != TARE_DT_BOOL && !tare_dtype_is_floating(dtype) && !tare_dtype_is_complex(dtype);
}
static bool is_unsigned(int dtype) {
    return dtype == TARE_DT_UINT8 || dtype == TARE_DT_UINT16 || dtype == TARE_DT_UINT32 || dtype == TARE_DT_UINT64;
}
static int bits_of(int dtype) {
    return 8 * (int)tare_dtype_size(dtype);
}
static int with_sign(int dtype, bool is_signed) {
    static const int pairs[][2] = { { TARE_DT_UINT8, TARE_DT_INT8 },
                                    { TARE_DT_UINT16, TARE_DT_INT16 },
                                    { TARE_DT_UINT32, TARE_DT_INT32 },
                                    { TARE_DT_UINT64, TARE_DT_INT64 } };
    for (size_t i = 0; i < 4; i++)
        if (pairs[i][0] == dtype || pairs[i][1] == dtype) return pairs[i][is_signed];
    return dtype;
}

static const char *choose(const struct by_class *ops, int dtype) {
    if (dtype == TARE_DT_BOOL && ops->of_bool) return ops->of_bool;
    if (is_integer(dtype) && ops->of_integer) return ops->of_integer;
    return ops->op;
}

static void lower_unary(struct tare_lowering *l, const void *arg) {
    tare_lower_set(l, tare_lower_unary(l, choose(arg, tare_lower_in_dtype(l, 0)), tare_lower_in(l, 0)));
}

static void lower_binary(struct tare_lowering *l, const void *arg) {
    struct tare_edge x, y;
    tare_lower_pair(l, &x, &y);
    tare_lower_set(l, tare_lower_binary(l, choose(arg, tare_lower_in_dtype(l, 0)), x, y));
}

/* ---- unary ops with differences ---- */

static void lower_abs(struct tare_lowering *l, const void *arg) {
    const int dtype = tare_lower_in_dtype(l, 0);
    struct tare_node *node;
    const struct tare_edge x = tare_lower_in(l, 0);
    (void)arg;
    if (!tare_dtype_is_complex(dtype)) {
        tare_lower_set(l, is_unsigned(dtype) ? x : tare_lower_unary(l, "Abs", x));
        return;
    }
    node = tare_lower_begin(l, "ComplexAbs", &x, 1);
    tare_lower_attr_type(l, node, "Tout", tare_lower_out_dtype(l, 0));
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_negate(struct tare_lowering *l, const void *arg) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const struct tare_edge x = tare_lower_in(l, 0);
    (void)arg;
    tare_lower_set(l, is_unsigned(dtype) ? tare_lower_binary(l, "Sub", tare_lower_scalar(l, dtype, 0), x)
                                         : tare_lower_unary(l, "Neg", x));
}

static void lower_part(struct tare_lowering *l, const void *arg) {
    const struct tare_edge x = tare_lower_in(l, 0);
    const bool imaginary = strcmp(arg, "Imag") == 0;
    struct tare_node *node;
    if (!tare_dtype_is_complex(tare_lower_in_dtype(l, 0))) {
        tare_lower_set(l, imaginary ? tare_lower_unary(l, "ZerosLike", x) : x);
        return;
    }
    node = tare_lower_begin(l, arg, &x, 1);
    tare_lower_attr_type(l, node, "Tout", tare_lower_out_dtype(l, 0));
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_complex(struct tare_lowering *l, const void *arg) {
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    struct tare_node *node = tare_lower_begin(l, "Complex", inputs, 2);
    (void)arg;
    tare_lower_attr_type(l, node, "Tout", tare_lower_out_dtype(l, 0));
    tare_lower_set(l, tare_lower_end(l, node));
}

/* x where it is a zero, which keeps its sign. */
static struct tare_edge or_zero(struct tare_lowering *l, struct tare_edge x, int dtype, struct tare_edge otherwise) {
    return tare_lower_select(l, tare_lower_binary(l, "Equal", x, tare_lower_scalar(l, dtype, 0)), x, otherwise);
}

static struct tare_edge sign(struct tare_lowering *l, struct tare_edge x, int dtype) {
    const struct tare_edge result = tare_lower_unary(l, "Sign", x);
    return tare_dtype_is_floating(dtype) ? or_zero(l, x, dtype, result) : result;
}

static void lower_sign(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_set(l, sign(l, tare_lower_in(l, 0), tare_lower_in_dtype(l, 0)));
}

/* The cube root of x >= 0 in double from x^(1/3), whose exponent is not a third exactly: one step of Newton's method.
 * The step is not finite at 0 and infinity, and where the cube overflows. */
static struct tare_edge cube_root(struct tare_lowering *l, struct tare_edge x) {
    const struct tare_edge root = tare_lower_binary(l, "Pow", x, tare_lower_scalar(l, TARE_DT_DOUBLE, 1.0 / 3));
    const struct tare_edge square = tare_lower_binary(l, "Mul", root, root);
    const struct tare_edge error = tare_lower_binary(l, "Sub", tare_lower_binary(l, "Mul", square, root), x);
    const struct tare_edge slope = tare_lower_binary(l, "Mul", square, tare_lower_scalar(l, TARE_DT_DOUBLE, 3));
    const struct tare_edge step = tare_lower_binary(l, "RealDiv", error, slope);
    const struct tare_edge nearer = tare_lower_binary(l, "Sub", root, step);
    return tare_lower_select(l, tare_lower_unary(l, "IsFinite", step), nearer, root);
}

/* In double, so that floats are rounded once. */
static void lower_cbrt(struct tare_lowering *l, const void *arg) {
    const bool is_complex = tare_dtype_is_complex(tare_lower_in_dtype(l, 0));
    const int wide = is_complex ? TARE_DT_COMPLEX128 : TARE_DT_DOUBLE;
    const struct tare_edge x = tare_lower_cast(l, tare_lower_in(l, 0), wide);
    struct tare_edge result;
    (void)arg;
    if (is_complex) {
        result = tare_lower_binary(l, "Pow", x, tare_lower_scalar(l, wide, 1.0 / 3));
    } else {
        const struct tare_edge size = cube_root(l, tare_lower_unary(l, "Abs", x));
        result = tare_lower_binary(l, "Mul", sign(l, x, wide), size);
    }
    tare_lower_set(l, tare_lower_cast(l, result, tare_lower_out_dtype(l, 0)));
}

/* Halves away from zero: |x| - floor(|x|) is exact. */
static void lower_round_away(struct tare_lowering *l, const void *arg) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const struct tare_edge x = tare_lower_in(l, 0), size = tare_lower_unary(l, "Abs", x);
    const struct tare_edge whole = tare_lower_unary(l, "Floor", size);
    const struct tare_edge half = tare_lower_scalar(l, dtype, 0.5);
    const struct tare_edge up = tare_lower_binary(l, "GreaterEqual", tare_lower_binary(l, "Sub", size, whole), half);
    const struct tare_edge more = tare_lower_binary(l, "AddV2", whole, tare_lower_scalar(l, dtype, 1));
    const struct tare_edge rounded = tare_lower_select(l, up, more, whole);
    (void)arg;
    tare_lower_set(l, tare_lower_binary(l, "Mul", sign(l, x, dtype), rounded));
}

static void lower_popcount(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_set(
        l, tare_lower_cast(l, tare_lower_unary(l, "PopulationCount", tare_lower_in(l, 0)), tare_lower_out_dtype(l, 0)));
}

/* Leading zeros: the width less the ones of x with all bits below the highest one set. */
static void lower_leading_zeros(struct tare_lowering *l, const void *arg) {
    const int dtype = tare_lower_in_dtype(l, 0), plain = with_sign(dtype, false), bits = bits_of(dtype);
    struct tare_edge x = tare_lower_bitcast(l, tare_lower_in(l, 0), plain);
    (void)arg;
    for (int shift = 1; shift < bits; shift *= 2)
        x = tare_lower_binary(l, "BitwiseOr", x,
                              tare_lower_binary(l, "RightShift", x, tare_lower_scalar(l, plain, shift)));
    x = tare_lower_cast(l, tare_lower_unary(l, "PopulationCount", x), dtype);
    tare_lower_set(l, tare_lower_binary(l, "Sub", tare_lower_scalar(l, dtype, bits), x));
}

/* ---- binary ops with differences ---- */

static struct tare_edge part(struct tare_lowering *l, const char *op, struct tare_edge x) {
    struct tare_node *node = tare_lower_begin(l, op, &x, 1);
    const int dtype = l->status == TARE_OK ? tare_edge_dtype(x) : 0;
    tare_lower_attr_type(l, node, "Tout", dtype == TARE_DT_COMPLEX64 ? TARE_DT_FLOAT : TARE_DT_DOUBLE);
    return tare_lower_end(l, node);
}

/* Complex numbers are ordered by their real parts, and equal ones by their imaginary parts. */
static struct tare_edge complex_extreme(struct tare_lowering *l, bool is_max, struct tare_edge x, struct tare_edge y) {
    const char *order = is_max ? "Greater" : "Less";
    const struct tare_edge xr = part(l, "Real", x), yr = part(l, "Real", y);
    const struct tare_edge first = tare_lower_binary(l, order, xr, yr), same = tare_lower_binary(l, "Equal", xr, yr);
    const struct tare_edge yi = part(l, "Imag", y), xi = part(l, "Imag", x);
    const struct tare_edge second = tare_lower_binary(l, order, xi, yi);
    const struct tare_edge x_wins =
        tare_lower_binary(l, "LogicalOr", first, tare_lower_binary(l, "LogicalAnd", same, second));
    return tare_lower_select(l, x_wins, x, y);
}

/* atan2(y, x) of complex numbers: -i log((x + i y) / sqrt(x x + y y)). */
static void lower_atan2(struct tare_lowering *l, const void *arg) {
    const struct tare_edge y = tare_lower_in(l, 0), x = tare_lower_in(l, 1);
    const int dtype = tare_lower_in_dtype(l, 0);
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor unit;
    (void)arg;
    if (!tare_dtype_is_complex(dtype)) {
        tare_lower_set(l, tare_lower_binary(l, "Atan2", y, x));
        return;
    }
    if (l->status == TARE_OK) l->status = tare_tensor_new(&unit, TARE_DT_COMPLEX128, &scalar);
    if (l->status != TARE_OK) return;
    tare_tensor_set_c128(&unit, 0, I);
    const struct tare_edge i = tare_lower_tensor(l, &unit);
    tare_tensor_reset(&unit);
    const struct tare_edge wide_y = tare_lower_cast(l, y, TARE_DT_COMPLEX128);
    const struct tare_edge wide_x = tare_lower_cast(l, x, TARE_DT_COMPLEX128);
    const struct tare_edge square = tare_lower_binary(l, "Mul", wide_y, wide_y);
    const struct tare_edge squares = tare_lower_binary(l, "AddV2", tare_lower_binary(l, "Mul", wide_x, wide_x), square);
    const struct tare_edge sum = tare_lower_binary(l, "AddV2", wide_x, tare_lower_binary(l, "Mul", i, wide_y));
    const struct tare_edge quotient = tare_lower_binary(l, "RealDiv", sum, tare_lower_unary(l, "Sqrt", squares));
    const struct tare_edge log = tare_lower_unary(l, "Log", quotient);
    const struct tare_edge result = tare_lower_binary(l, "Mul", tare_lower_unary(l, "Neg", i), log);
    tare_lower_set(l, tare_lower_cast(l, result, dtype));
}

/* NaN in either operand is the result. Maximum and Minimum keep one in the first operand. */
static void lower_extreme(struct tare_lowering *l, const void *arg) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const bool is_max = strcmp(arg, "Maximum") == 0;
    struct tare_edge x, y, extreme;
    tare_lower_pair(l, &x, &y);
    if (tare_dtype_is_complex(dtype)) {
        tare_lower_set(l, complex_extreme(l, is_max, x, y));
    } else if (dtype == TARE_DT_BOOL) {
        tare_lower_set(l, tare_lower_binary(l, is_max ? "LogicalOr" : "LogicalAnd", x, y));
    } else if (is_max && tare_dtype_is_floating(dtype) && tare_lower_is_constant(l, 1, 0)) {
        tare_lower_set(l, tare_lower_unary(l, "Relu", tare_lower_in(l, 0)));
    } else if (is_max && tare_dtype_is_floating(dtype) && tare_lower_is_constant(l, 0, 0)) {
        tare_lower_set(l, tare_lower_unary(l, "Relu", tare_lower_in(l, 1)));
    } else {
        extreme = tare_lower_binary(l, arg, x, y);
        if (tare_dtype_is_floating(dtype)) extreme = tare_lower_select(l, tare_lower_unary(l, "IsNan", y), y, extreme);
        tare_lower_set(l, extreme);
    }
}

/* The bound (operand i) where it is NaN. */
static struct tare_edge or_nan_bound(struct tare_lowering *l, size_t i, struct tare_edge result) {
    const struct tare_edge bound = tare_lower_in(l, i);
    double number;
    if (!tare_dtype_is_floating(tare_lower_in_dtype(l, i))) return result;
    if (tare_lower_number_of(&number, l->op->operands[i]) && !isnan(number)) return result;
    return tare_lower_select(l, tare_lower_unary(l, "IsNan", bound), bound, result);
}

/* NaN in any operand is the result. */
static void lower_clamp(struct tare_lowering *l, const void *arg) {
    const struct tare_edge low = tare_lower_in(l, 0), x = tare_lower_in(l, 1), high = tare_lower_in(l, 2);
    const bool relu6 = tare_dtype_is_floating(tare_lower_in_dtype(l, 1)) && tare_lower_is_constant(l, 0, 0) &&
                       tare_lower_is_constant(l, 2, 6);
    (void)arg;
    if (relu6) {
        tare_lower_set(l, tare_lower_unary(l, "Relu6", x));
        return;
    }
    const struct tare_edge raised = or_nan_bound(l, 0, tare_lower_binary(l, "Maximum", x, low));
    tare_lower_set(l, or_nan_bound(l, 2, tare_lower_binary(l, "Minimum", raised, high)));
}

/* Division and remainder by zero, and of the least integer by -1, as XLA defines them: all ones and x; x and 0. */
static void lower_quotient(struct tare_lowering *l, const void *arg) {
    const bool remainder = strcmp(arg, "remainder") == 0;
    const int dtype = tare_lower_in_dtype(l, 0);
    struct tare_edge x, y, zero, one, by_zero, safe, result;
    tare_lower_pair(l, &x, &y);
    if (!is_integer(dtype)) {
        tare_lower_set(l, tare_lower_binary(l, remainder ? "Mod" : "RealDiv", x, y));
        return;
    }
    zero = tare_lower_scalar(l, dtype, 0);
    one = tare_lower_scalar(l, dtype, 1);
    by_zero = tare_lower_binary(l, "Equal", y, zero);
    safe = tare_lower_select(l, by_zero, one, y);
    result = tare_lower_binary(l, "TruncateDiv", x, safe);
    if (remainder) result = tare_lower_binary(l, "Sub", x, tare_lower_binary(l, "Mul", result, safe));
    tare_lower_set(l, tare_lower_select(l, by_zero, remainder ? x : tare_lower_unary(l, "Invert", zero), result));
}

/* Unsigned integers, of which there is no Pow: in int64, whose products have the same low bits. Powers of odd numbers
 * repeat after 2^62 exponents and those of even ones are 0 from 64, so bit 62 can stand for bit 63 of an exponent. */
static struct tare_edge unsigned_power(struct tare_lowering *l, struct tare_edge x, struct tare_edge y, int dtype) {
    if (dtype != TARE_DT_UINT64) {
        const struct tare_edge exponent = tare_lower_cast(l, y, TARE_DT_INT64);
        return tare_lower_cast(l, tare_lower_binary(l, "Pow", tare_lower_cast(l, x, TARE_DT_INT64), exponent), dtype);
    }
    const struct tare_edge half = tare_lower_binary(l, "RightShift", y, tare_lower_scalar(l, dtype, 1));
    const struct tare_edge bit = tare_lower_scalar(l, dtype, ldexp(1, 62));
    const struct tare_edge top = tare_lower_binary(l, "BitwiseAnd", half, bit);
    const struct tare_edge one = tare_lower_scalar(l, dtype, 1);
    const struct tare_edge ones = tare_lower_unary(l, "Invert", tare_lower_scalar(l, dtype, 0));
    const struct tare_edge low = tare_lower_binary(l, "BitwiseAnd", y, tare_lower_binary(l, "RightShift", ones, one));
    const struct tare_edge exponent = tare_lower_bitcast(l, tare_lower_binary(l, "BitwiseOr", low, top), TARE_DT_INT64);
    return tare_lower_bitcast(l, tare_lower_binary(l, "Pow", tare_lower_bitcast(l, x, TARE_DT_INT64), exponent), dtype);
}

/* x^0 is 1 for complex numbers, too, 0 included. */
static struct tare_edge floating_power(struct tare_lowering *l, struct tare_edge x, struct tare_edge y, int dtype) {
    const struct tare_edge power = tare_lower_binary(l, "Pow", x, y);
    if (!tare_dtype_is_complex(dtype)) return power;
    const struct tare_edge none = tare_lower_binary(l, "Equal", y, tare_lower_scalar(l, dtype, 0));
    return tare_lower_select(l, none, tare_lower_scalar(l, dtype, 1), power);
}

/* Integers: the result for a negative exponent is 0, or ±1 for the bases 1 and -1. */
static void lower_power(struct tare_lowering *l, const void *arg) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const struct tare_edge x = tare_lower_in(l, 0), y = tare_lower_in(l, 1);
    (void)arg;
    if (!is_integer(dtype) || is_unsigned(dtype)) {
        tare_lower_set(l, is_unsigned(dtype) ? unsigned_power(l, x, y, dtype) : floating_power(l, x, y, dtype));
        return;
    }
    const struct tare_edge zero = tare_lower_scalar(l, dtype, 0), one = tare_lower_scalar(l, dtype, 1);
    const struct tare_edge negative = tare_lower_binary(l, "Less", y, zero);
    const struct tare_edge unit = tare_lower_binary(l, "Equal", tare_lower_unary(l, "Abs", x), one);
    const struct tare_edge odd = tare_lower_binary(l, "BitwiseAnd", y, one);
    const struct tare_edge small = tare_lower_select(l, unit, tare_lower_binary(l, "Pow", x, odd), zero);
    const struct tare_edge power = tare_lower_binary(l, "Pow", x, tare_lower_select(l, negative, zero, y));
    tare_lower_set(l, tare_lower_select(l, negative, small, power));
}

/* Shifts by the width or more: 0, or the sign. */
static void lower_shift(struct tare_lowering *l, const void *arg) {
    const char *kind = arg;
    const int dtype = tare_lower_in_dtype(l, 0), plain = with_sign(dtype, false), bits = bits_of(dtype);
    const bool arithmetic = strcmp(kind, "arithmetic") == 0;
    const int work = with_sign(dtype, arithmetic);
    const struct tare_edge amount = tare_lower_bitcast(l, tare_lower_in(l, 1), plain);
    const struct tare_edge most = tare_lower_scalar(l, plain, bits - 1);
    const struct tare_edge too_far = tare_lower_binary(l, "Greater", amount, most);
    const struct tare_edge by = tare_lower_bitcast(l, tare_lower_binary(l, "Minimum", amount, most), work);
    struct tare_edge x = tare_lower_bitcast(l, tare_lower_in(l, 0), work);
    x = tare_lower_binary(l, strcmp(kind, "left") == 0 ? "LeftShift" : "RightShift", x, by);
    if (!arithmetic) x = tare_lower_select(l, too_far, tare_lower_scalar(l, work, 0), x);
    tare_lower_set(l, tare_lower_bitcast(l, x, dtype));
}

/* ---- comparison ---- */

/* Floats as integers of the same order: negative ones have all bits but the sign inverted. */
struct tare_edge tare_lower_total_order(struct tare_lowering *l, struct tare_edge x, int dtype) {
    if (!tare_dtype_is_floating(dtype)) return x;
    const int bits = bits_of(dtype);
    const int integer = bits == 64   ? TARE_DT_INT64
                        : bits == 32 ? TARE_DT_INT32
                        : bits == 16 ? TARE_DT_INT16
                                     : TARE_DT_INT8;
    const struct tare_edge word = tare_lower_bitcast(l, x, integer);
    const struct tare_edge sign = tare_lower_binary(l, "RightShift", word, tare_lower_scalar(l, integer, bits - 1));
    const struct tare_edge plain = tare_lower_bitcast(l, sign, with_sign(integer, false));
    const struct tare_edge mask =
        tare_lower_binary(l, "RightShift", plain, tare_lower_scalar(l, with_sign(integer, false), 1));
    return tare_lower_binary(l, "BitwiseXor", word, tare_lower_bitcast(l, mask, integer));
}

static void lower_compare(struct tare_lowering *l, const void *arg) {
    static const char *const ops[][2] = { { "EQ", "Equal" },   { "NE", "NotEqual" },  { "GE", "GreaterEqual" },
                                          { "GT", "Greater" }, { "LE", "LessEqual" }, { "LT", "Less" } };
    const char *direction = tare_lower_text(l, "comparison_direction"), *type = tare_lower_text(l, "compare_type");
    const int dtype = tare_lower_in_dtype(l, 0);
    struct tare_edge x, y;
    (void)arg;
    tare_lower_pair(l, &x, &y);
    if (strcmp(type, "TOTALORDER") == 0 && tare_dtype_is_floating(dtype)) {
        x = tare_lower_total_order(l, x, dtype);
        y = tare_lower_total_order(l, y, dtype);
    }
    if (dtype == TARE_DT_BOOL && strcmp(direction, "EQ") != 0 && strcmp(direction, "NE") != 0) {
        x = tare_lower_cast(l, x, TARE_DT_INT8);
        y = tare_lower_cast(l, y, TARE_DT_INT8);
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(direction, ops[i][0]) == 0) tare_lower_set(l, tare_lower_binary(l, ops[i][1], x, y));
}

static void lower_select_op(struct tare_lowering *l, const void *arg) {
    (void)arg;
    const struct tare_edge condition = tare_lower_condition_in(l), no = tare_lower_in(l, 2);
    const struct tare_edge yes = tare_lower_number_in(l, 1, no);
    tare_lower_set(l, tare_lower_select(l, condition, yes, tare_lower_number_in(l, 2, tare_lower_in(l, 1))));
}

/* ---- conversion ---- */

/* Truncation toward zero; what does not fit becomes the nearest end of the range, NaN becomes 0. */
static struct tare_edge saturate(struct tare_lowering *l, struct tare_edge x, int to) {
    const int bits = bits_of(to);
    const bool plain = is_unsigned(to);
    const double end = ldexp(1, plain ? bits : bits - 1), start = plain ? 0 : -end;
    const struct tare_edge wide = tare_lower_cast(l, x, TARE_DT_DOUBLE), zero = tare_lower_scalar(l, to, 0);
    const struct tare_edge ones = tare_lower_unary(l, "Invert", zero); /* all ones: the greatest unsigned, -1 */
    const struct tare_edge half = tare_lower_scalar(l, with_sign(to, false), 1);
    const struct tare_edge most =
        plain ? ones
              : tare_lower_bitcast(
                    l, tare_lower_binary(l, "RightShift", tare_lower_bitcast(l, ones, with_sign(to, false)), half), to);
    const struct tare_edge least = plain ? zero : tare_lower_unary(l, "Invert", most);
    const struct tare_edge limit = tare_lower_scalar(l, TARE_DT_DOUBLE, end);
    const struct tare_edge is_high = tare_lower_binary(l, "GreaterEqual", wide, limit);
    const struct tare_edge is_low =
        tare_lower_binary(l, "LessEqual", wide, tare_lower_scalar(l, TARE_DT_DOUBLE, start));
    const struct tare_edge is_nan = tare_lower_unary(l, "IsNan", wide);
    struct tare_edge result = tare_lower_cast(l, wide, to);
    result = tare_lower_select(l, is_high, most, result);
    result = tare_lower_select(l, is_low, least, result);
    return tare_lower_select(l, is_nan, zero, result);
}

/* double as float, of the two floats beside an inexact one that with an odd last bit: rounded to fewer bits, it is what
 * the double rounds to (Boldo and Melquiond, "When double rounding is odd"). TensorFlow's Cast rounds to the nearest
 * float. */
static struct tare_edge odd_float(struct tare_lowering *l, struct tare_edge x) {
    const struct tare_edge nearest = tare_lower_cast(l, x, TARE_DT_FLOAT);
    const struct tare_edge back = tare_lower_cast(l, nearest, TARE_DT_DOUBLE);
    const struct tare_edge word = tare_lower_bitcast(l, nearest, TARE_DT_INT32);
    const struct tare_edge one = tare_lower_scalar(l, TARE_DT_INT32, 1);
    const struct tare_edge odd = tare_lower_binary(l, "Equal", tare_lower_binary(l, "BitwiseAnd", word, one), one);
    const struct tare_edge is_nan = tare_lower_unary(l, "IsNan", x);
    const struct tare_edge exact = tare_lower_binary(l, "LogicalOr", tare_lower_binary(l, "Equal", back, x), is_nan);
    const struct tare_edge size = tare_lower_unary(l, "Abs", x);
    const struct tare_edge beyond = tare_lower_binary(l, "Greater", tare_lower_unary(l, "Abs", back), size);
    const struct tare_edge next = tare_lower_binary(l, "AddV2", word, one);
    const struct tare_edge other = tare_lower_select(l, beyond, tare_lower_binary(l, "Sub", word, one), next);
    return tare_lower_bitcast(l, tare_lower_select(l, tare_lower_binary(l, "LogicalOr", exact, odd), word, other),
                              TARE_DT_FLOAT);
}

static void lower_convert(struct tare_lowering *l, const void *arg) {
    const int from = tare_lower_in_dtype(l, 0), to = tare_lower_out_dtype(l, 0);
    struct tare_edge x = tare_lower_in(l, 0);
    (void)arg;
    if (tare_dtype_is_complex(from) && !tare_dtype_is_complex(to)) {
        struct tare_node *node = tare_lower_begin(l, "Real", &x, 1);
        tare_lower_attr_type(l, node, "Tout", from == TARE_DT_COMPLEX64 ? TARE_DT_FLOAT : TARE_DT_DOUBLE);
        x = tare_lower_end(l, node);
    }
    if ((from == TARE_DT_DOUBLE || from == TARE_DT_COMPLEX128) && (to == TARE_DT_HALF || to == TARE_DT_BFLOAT16))
        x = odd_float(l, x);
    if (to == TARE_DT_BOOL && from != TARE_DT_BOOL)
        tare_lower_set(l, tare_lower_binary(l, "NotEqual", x,
                                            tare_lower_scalar(l, l->status == TARE_OK ? tare_edge_dtype(x) : 0, 0)));
    else if ((tare_dtype_is_floating(from) || tare_dtype_is_complex(from)) && is_integer(to))
        tare_lower_set(l, saturate(l, x, to));
    else
        tare_lower_set(l, tare_lower_cast(l, x, to));
}

static void lower_bitcast(struct tare_lowering *l, const void *arg) {
    const int to = tare_lower_out_dtype(l, 0);
    const struct tare_edge x = tare_lower_in(l, 0);
    (void)arg;
    if (to == tare_lower_in_dtype(l, 0)) { /* also bool, of which there is no Bitcast */
        tare_lower_set(l, x);
        return;
    }
    struct tare_node *node = tare_lower_begin(l, "Bitcast", &x, 1);
    tare_lower_attr_type(l, node, "type", to);
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_reduce_precision(struct tare_lowering *l, const void *arg) {
    const struct tare_edge x = tare_lower_in(l, 0);
    struct tare_node *node = tare_lower_begin(l, "XlaReducePrecision", &x, 1);
    (void)arg;
    tare_lower_attr_int(l, node, "exponent_bits", tare_lower_int(l, "exponent_bits"));
    tare_lower_attr_int(l, node, "mantissa_bits", tare_lower_int(l, "mantissa_bits"));
    tare_lower_set(l, tare_lower_end(l, node));
}

#define UNARY(name, ...)                                                                                               \
    {                                                                                                                  \
        name, lower_unary, &(const struct by_class) {                                                                  \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define BINARY(name, ...)                                                                                              \
    {                                                                                                                  \
        name, lower_binary, &(const struct by_class) {                                                                 \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
const struct tare_lowering_row tare_lower_elementwise[] = {
    { "abs", lower_abs, NULL },
    { "negate", lower_negate, NULL },
    UNARY("exponential", .op = "Exp"),
    UNARY("exponential_minus_one", .op = "Expm1"),
    UNARY("log", .op = "Log"),
    UNARY("log_plus_one", .op = "Log1p"),
    UNARY("logistic", .op = "Sigmoid"),
    UNARY("sine", .op = "Sin"),
    UNARY("cosine", .op = "Cos"),
    UNARY("tan", .op = "Tan"),
    UNARY("tanh", .op = "Tanh"),
    UNARY("sqrt", .op = "Sqrt"),
    UNARY("rsqrt", .op = "Rsqrt"),
    { "cbrt", lower_cbrt, NULL },
    UNARY("ceil", .op = "Ceil"),
    UNARY("floor", .op = "Floor"),
    UNARY("round_nearest_even", .op = "Rint"),
    { "round_nearest_afz", lower_round_away, NULL },
    { "sign", lower_sign, NULL },
    UNARY("is_finite", .op = "IsFinite"),
    UNARY("not", .op = "LogicalNot", .of_integer = "Invert"),
    { "popcnt", lower_popcount, NULL },
    { "count_leading_zeros", lower_leading_zeros, NULL },
    { "real", lower_part, "Real" },
    { "imag", lower_part, "Imag" },
    { "complex", lower_complex, NULL },
    BINARY("add", .op = "AddV2", .of_bool = "LogicalOr"),
    BINARY("subtract", .op = "Sub"),
    BINARY("multiply", .op = "Mul", .of_bool = "LogicalAnd"),
    { "divide", lower_quotient, "divide" },
    { "remainder", lower_quotient, "remainder" },
    { "power", lower_power, NULL },
    { "maximum", lower_extreme, "Maximum" },
    { "minimum", lower_extreme, "Minimum" },
    { "clamp", lower_clamp, NULL },
    BINARY("and", .op = "BitwiseAnd", .of_bool = "LogicalAnd"),
    BINARY("or", .op = "BitwiseOr", .of_bool = "LogicalOr"),
    BINARY("xor", .op = "BitwiseXor", .of_bool = "NotEqual"),
    { "shift_left", lower_shift, "left" },
    { "shift_right_logical", lower_shift, "logical" },
    { "shift_right_arithmetic", lower_shift, "arithmetic" },
    { "atan2", lower_atan2, NULL },
    { "compare", lower_compare, NULL },
    { "select", lower_select_op, NULL },
    { "convert", lower_convert, NULL },
    { "bitcast_convert", lower_bitcast, NULL },
    { "reduce_precision", lower_reduce_precision, NULL },
    { 0 },
};
