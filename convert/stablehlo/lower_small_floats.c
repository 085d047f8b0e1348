/* Floating types of at most eight bits that TensorFlow has no dtype for (f8E4M3, f8E3M4, f8E8M0FNU, f6E2M3FN, f6E3M2FN,
 * f4E2M1FN). Their numbers are stored as float; whatever computes new ones is followed by a rounding to the format,
 * which consists of ordinary ops, so that TensorFlow and a TPU run it as well.
 *
 * Rounding is that of XLA and ml_dtypes: to nearest, ties to even, subnormal numbers included. f8E4M3 and f8E3M4
 * overflow to infinity. f6 and f4 saturate, and NaN becomes a zero with the opposite sign. f8E8M0FNU has powers of two
 * only: ties round up, everything from 1.5 * 2^127 on, zero and negative numbers become NaN. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/dtype.h"

#include <math.h>

static bool is_double(const struct tare_lowering *l, struct tare_edge x) {
    return l->status == TARE_OK && tare_edge_dtype(x) == TARE_DT_DOUBLE;
}

static struct tare_edge number(struct tare_lowering *l, struct tare_edge like, double value) {
    return tare_lower_scalar(l, is_double(l, like) ? TARE_DT_DOUBLE : TARE_DT_FLOAT, value);
}

static double greatest(const struct tare_shlo_small_float *f) {
    const int most = (1 << f->exponent_bits) - 1 - (f->special == TARE_SMALL_IEEE);
    return ldexp((2 << f->mantissa_bits) - 1, most - f->bias - f->mantissa_bits);
}

/* To the mantissa of the format, whatever the exponent. */
static struct tare_edge round_normal(struct tare_lowering *l, struct tare_edge x,
                                     const struct tare_shlo_small_float *f) {
    struct tare_node *node = tare_lower_begin(l, "XlaReducePrecision", &x, 1);
    tare_lower_attr_int(l, node, "exponent_bits", is_double(l, x) ? 11 : 8);
    tare_lower_attr_int(l, node, "mantissa_bits", f->mantissa_bits);
    return tare_lower_end(l, node);
}

/* Below the least exponent: to a multiple of the least number. Both products are exact. */
static struct tare_edge round_subnormal(struct tare_lowering *l, struct tare_edge x,
                                        const struct tare_shlo_small_float *f) {
    const int step = 1 - f->bias - f->mantissa_bits;
    x = tare_lower_unary(l, "Rint", tare_lower_binary(l, "Mul", x, number(l, x, ldexp(1, -step))));
    return tare_lower_binary(l, "Mul", x, number(l, x, ldexp(1, step)));
}

/* A zero with the sign that x does not have. */
static struct tare_edge opposite_zero(struct tare_lowering *l, struct tare_edge x) {
    const int integer = is_double(l, x) ? TARE_DT_INT64 : TARE_DT_INT32;
    const struct tare_edge none = tare_lower_scalar(l, integer, 0);
    const struct tare_edge is_negative = tare_lower_binary(l, "Less", tare_lower_bitcast(l, x, integer), none);
    const struct tare_edge negative = number(l, x, -0.0);
    return tare_lower_select(l, is_negative, number(l, x, 0), negative);
}

static struct tare_edge round_finite(struct tare_lowering *l, struct tare_edge x,
                                     const struct tare_shlo_small_float *f) {
    const struct tare_edge size = tare_lower_unary(l, "Abs", x);
    const struct tare_edge is_small = tare_lower_binary(l, "Less", size, number(l, x, ldexp(1, 1 - f->bias)));
    const struct tare_edge normal = round_normal(l, x, f);
    const struct tare_edge value = tare_lower_select(l, is_small, round_subnormal(l, x, f), normal);
    const struct tare_edge most = number(l, x, greatest(f));
    if (f->special == TARE_SMALL_IEEE) {
        const struct tare_edge is_over = tare_lower_binary(l, "Greater", tare_lower_unary(l, "Abs", value), most);
        const struct tare_edge infinite = tare_lower_binary(l, "Mul", value, number(l, x, (double)INFINITY));
        return tare_lower_select(l, is_over, infinite, value);
    }
    const struct tare_edge low = tare_lower_binary(l, "Maximum", value, number(l, x, -greatest(f)));
    const struct tare_edge within = tare_lower_binary(l, "Minimum", low, most);
    const struct tare_edge zero = opposite_zero(l, x);
    return tare_lower_select(l, tare_lower_unary(l, "IsNan", x), zero, within);
}

/* Half of the mantissa carries into the exponent; the mantissa is then dropped. As in XLA, numbers between the least
 * and the second power round up. */
static struct tare_edge round_to_power(struct tare_lowering *l, struct tare_edge x) {
    const bool wide = is_double(l, x);
    const int integer = wide ? TARE_DT_INT64 : TARE_DT_INT32, mantissa = wide ? 52 : 23;
    const double least = ldexp(1, -127), most = ldexp(1.5, 127);
    const struct tare_edge half = tare_lower_scalar(l, integer, ldexp(1, mantissa - 1));
    const struct tare_edge mask = tare_lower_scalar(l, integer, ldexp(wide ? 2047 : 255, mantissa));
    const struct tare_edge sum = tare_lower_binary(l, "AddV2", tare_lower_bitcast(l, x, integer), half);
    const struct tare_edge power =
        tare_lower_bitcast(l, tare_lower_binary(l, "BitwiseAnd", sum, mask), wide ? TARE_DT_DOUBLE : TARE_DT_FLOAT);
    struct tare_edge lowest = number(l, x, 2 * least);
    struct tare_edge value =
        tare_lower_select(l, tare_lower_binary(l, "Less", x, number(l, x, 2 * least)), lowest, power);
    lowest = number(l, x, least);
    value = tare_lower_select(l, tare_lower_binary(l, "LessEqual", x, number(l, x, least)), lowest, value);
    const struct tare_edge is_below = tare_lower_binary(l, "Less", x, number(l, x, most));
    const struct tare_edge in_range =
        tare_lower_binary(l, "LogicalAnd", tare_lower_binary(l, "Greater", x, number(l, x, 0)), is_below);
    return tare_lower_select(l, in_range, value, number(l, x, (double)NAN));
}

struct tare_edge tare_lower_round(struct tare_lowering *l, struct tare_edge x,
                                  const struct tare_shlo_small_float *format) {
    return tare_lower_cast(l, format->special == TARE_SMALL_POWERS ? round_to_power(l, x) : round_finite(l, x, format),
                           TARE_DT_FLOAT);
}

/* ---- codes ---- */

/* The number is exact, so its exponent and mantissa are bits of the float; a subnormal one counts the least number. */
struct tare_edge tare_lower_encode(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_small_float *f) {
    const int step = 1 - f->bias - f->mantissa_bits, bits = f->exponent_bits + f->mantissa_bits;
    const struct tare_edge word = tare_lower_bitcast(l, x, TARE_DT_INT32), size = tare_lower_unary(l, "Abs", x);
    const struct tare_edge shift = tare_lower_scalar(l, TARE_DT_INT32, 23 - f->mantissa_bits);
    const struct tare_edge magnitude = tare_lower_bitcast(l, size, TARE_DT_INT32);
    struct tare_edge code = tare_lower_binary(l, "RightShift", magnitude, shift);
    if (f->special == TARE_SMALL_POWERS) return tare_lower_cast(l, code, TARE_DT_UINT8);
    code =
        tare_lower_binary(l, "Sub", code, tare_lower_scalar(l, TARE_DT_INT32, ldexp(127 - f->bias, f->mantissa_bits)));
    const struct tare_edge top = tare_lower_scalar(l, TARE_DT_INT32, (1 << bits) - (1 << f->mantissa_bits));
    const struct tare_edge is_infinite = tare_lower_unary(l, "IsInf", x), is_nan = tare_lower_unary(l, "IsNan", x);
    const struct tare_edge quiet = tare_lower_scalar(l, TARE_DT_INT32, 1 << (f->mantissa_bits - 1));
    const struct tare_edge steps = tare_lower_binary(l, "Mul", size, number(l, x, ldexp(1, -step)));
    const struct tare_edge is_small = tare_lower_binary(l, "Less", size, number(l, x, ldexp(1, 1 - f->bias)));
    code = tare_lower_select(l, is_small, tare_lower_cast(l, steps, TARE_DT_INT32), code);
    code = tare_lower_select(l, is_infinite, top, code);
    code = tare_lower_select(l, is_nan, tare_lower_binary(l, "BitwiseOr", top, quiet), code);
    const struct tare_edge is_negative = tare_lower_binary(l, "Less", word, tare_lower_scalar(l, TARE_DT_INT32, 0));
    const struct tare_edge sign = tare_lower_scalar(l, TARE_DT_INT32, 1 << bits);
    const struct tare_edge negated = tare_lower_binary(l, "BitwiseOr", code, sign);
    const struct tare_edge is_number = tare_lower_unary(l, "LogicalNot", is_nan);
    code = tare_lower_select(l, tare_lower_binary(l, "LogicalAnd", is_negative, is_number), negated, code);
    return tare_lower_cast(l, code, TARE_DT_UINT8);
}

struct tare_edge tare_lower_decode(struct tare_lowering *l, struct tare_edge codes, enum tare_shlo_type_kind kind) {
    const struct tare_shlo_type type = { .kind = kind };
    const int64_t count = INT64_C(1) << tare_shlo_type_bits(&type);
    struct tare_shape shape;
    struct tare_tensor table;
    if (l->status == TARE_OK) l->status = tare_shape_from_dims(&shape, 1, &count);
    if (l->status == TARE_OK) l->status = tare_tensor_new(&table, TARE_DT_FLOAT, &shape);
    if (l->status != TARE_OK) return codes;
    for (int64_t i = 0; i < count; i++)
        TARE_DATA(float, &table)[i] = (float)tare_shlo_float_of_bits(kind, (uint64_t)i);
    const struct tare_edge inputs[] = { tare_lower_tensor(l, &table), tare_lower_cast(l, codes, TARE_DT_INT32),
                                        tare_lower_scalar(l, TARE_DT_INT32, 0) };
    tare_tensor_reset(&table);
    return tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
}
