/* Functions that StableHLO does not have: expressions of its own functions, as XLA computes them
 * (xla/hlo/builder/lib/math.cc). Numbers of 16 bits are computed as float32. */
#include "convert/stablehlo/emit/emit.h"

#include <math.h>

#define B (&emit->build)

typedef tare_build_value value;

struct tare_shlo_op *tare_emit_call(struct tare_emit *emit, const char *target, const char *config,
                                    const struct tare_build_request *request) {
    struct tare_build_request call = *request;
    const tare_build_attr empty = tare_build_array(B, NULL, 0);
    const struct tare_build_named attrs[] = {
        { "api_version", tare_build_enum(B, TARE_VHLO_API_VERSION, "API_VERSION_ORIGINAL") },
        { "backend_config", tare_build_text(B, config) },
        { "call_target_name", tare_build_text(B, target) },
        { "called_computations", empty },
        { "has_side_effect", tare_build_bool(B, false) },
        { "operand_layouts", empty },
        { "output_operand_aliases", empty },
        { "result_layouts", empty },
    };
    call.name = "custom_call";
    call.attrs = attrs;
    call.n_attrs = sizeof attrs / sizeof *attrs;
    return tare_build_op(B, &call);
}

/* A function of XLA that StableHLO does not have. */
static value function_of_xla(struct tare_emit *emit, const char *target, value x) {
    if (!x) return NULL;
    struct tare_shlo_op *op = tare_emit_call(
        emit, target, "",
        &(struct tare_build_request){ .operands = &x, .n_operands = 1, .results = &x->type, .n_results = 1 });
    return op ? &op->results[0] : NULL;
}

/* clamp(x, ±limit) * numerator(x²) / denominator(x²), the approximation of XLA for float32
 * (xla/hlo/builder/lib/math.cc). */
static value polynomial(struct tare_emit *emit, value x, const double *coefficients, size_t count) {
    value sum = tare_build_number(B, x, coefficients[0]);
    for (size_t i = 1; i < count; i++) {
        const value last = tare_build_number(B, x, coefficients[i]);
        sum = tare_build_binary(B, "add", tare_build_binary(B, "multiply", sum, x), last);
    }
    return sum;
}

static value erf_of(struct tare_emit *emit, value x) {
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
    if (dtype == TARE_DT_DOUBLE) return function_of_xla(emit, "mhlo.erf", x);
    const value wide = tare_build_convert(B, x, TARE_DT_FLOAT);
    const value limit = tare_build_number(B, wide, 3.832506856900711);
    const value least = tare_build_unary(B, "negate", limit);
    const value within = tare_build_binary(B, "maximum", tare_build_binary(B, "minimum", wide, limit), least);
    const value square = tare_build_binary(B, "multiply", within, within);
    const value product = tare_build_binary(B, "multiply", within, polynomial(emit, square, numerator, 5));
    const value result = tare_build_binary(B, "divide", product, polynomial(emit, square, denominator, 7));
    return tare_build_convert(B, result, dtype);
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
    const value x = tare_emit_in(emit, node, 0);
    (void)arg;
    if (!x) return TARE_OK;
    const int dtype = tare_build_dtype(x);
    if (dtype == TARE_DT_DOUBLE) return TARE_FAIL(TARE_UNSUPPORTED, "erfc of double");
    const value wide = tare_build_convert(B, x, TARE_DT_FLOAT), one = tare_build_number(B, wide, 1);
    const value size = tare_build_unary(B, "abs", wide), square = tare_build_binary(B, "multiply", wide, wide);
    const value reciprocal = tare_build_binary(B, "divide", one, size);
    const value argument = tare_build_binary(B, "multiply", reciprocal, reciprocal);
    const value is_near = tare_build_compare(B, "LT", size, tare_build_number(B, wide, 2));
    const value far = polynomial(emit, argument, beyond_two, 8);
    const value series = tare_build_select(B, is_near, polynomial(emit, argument, near_two, 9), far);
    const value power = tare_build_unary(B, "exponential", tare_build_unary(B, "negate", square));
    const value tail = tare_build_binary(B, "multiply", tare_build_binary(B, "multiply", power, reciprocal), series);
    const value is_negative = tare_build_compare(B, "LT", wide, tare_build_number(B, wide, 0));
    const value reflected =
        tare_build_select(B, is_negative, tare_build_binary(B, "subtract", tare_build_number(B, wide, 2), tail), tail);
    const value middle = tare_build_binary(B, "subtract", one, erf_of(emit, wide));
    const value result = tare_build_select(B, tare_build_compare(B, "LT", size, one), middle, reflected);
    return tare_emit_set(emit, node, 0, tare_build_convert(B, result, dtype));
}

/* ---- short forms ---- */

static value unary(struct tare_emit *emit, const char *name, value x) {
    return tare_build_unary(B, name, x);
}

static value binary(struct tare_emit *emit, const char *name, value a, value b) {
    return tare_build_binary(B, name, a, b);
}

/* x op number */
static value with(struct tare_emit *emit, const char *name, value x, double number) {
    const value other = tare_build_number(B, x, number);
    return tare_build_binary(B, name, x, other);
}

/* number op x */
static value number_with(struct tare_emit *emit, const char *name, double number, value x) {
    const value other = tare_build_number(B, x, number);
    return tare_build_binary(B, name, other, x);
}

static value compares(struct tare_emit *emit, const char *direction, value x, double number) {
    const value other = tare_build_number(B, x, number);
    return tare_build_compare(B, direction, x, other);
}

static bool is_double(value x) {
    return x && tare_build_dtype(x) == TARE_DT_DOUBLE;
}

/* ---- trigonometric and hyperbolic functions ---- */

static value tangent(struct tare_emit *emit, value x) {
    if (emit->build.version >= TARE_VHLO_VERSION(1, 4, 0)) return unary(emit, "tan", x);
    const value sine = unary(emit, "sine", x);
    return binary(emit, "divide", sine, unary(emit, "cosine", x));
}

/* sqrt(1 - x²) without cancellation next to 1. */
static value opposite(struct tare_emit *emit, value x) {
    const value below = number_with(emit, "subtract", 1, x);
    return unary(emit, "sqrt", binary(emit, "multiply", below, with(emit, "add", x, 1)));
}

static value arc_sine(struct tare_emit *emit, value x) {
    const value side = opposite(emit, x);
    return with(emit, "multiply", binary(emit, "atan2", x, with(emit, "add", side, 1)), 2);
}

static value arc_cosine(struct tare_emit *emit, value x) {
    const value side = opposite(emit, x), is_least = compares(emit, "EQ", x, -1);
    const value angle = with(emit, "multiply", binary(emit, "atan2", side, with(emit, "add", x, 1)), 2);
    const value half_turn = tare_build_number(B, x, M_PI);
    return tare_build_select(B, is_least, half_turn, angle);
}

static value arc_tangent(struct tare_emit *emit, value x) {
    const value one = tare_build_number(B, x, 1);
    return binary(emit, "atan2", x, one);
}

/* exp(x) / 2 and exp(-x) / 2, which do not overflow before their sum does. */
static void half_powers(value out[2], struct tare_emit *emit, value x) {
    out[0] = unary(emit, "exponential", with(emit, "add", x, -M_LN2));
    out[1] = unary(emit, "exponential", with(emit, "add", unary(emit, "negate", x), -M_LN2));
}

static value hyperbolic_sine(struct tare_emit *emit, value x) {
    value powers[2];
    half_powers(powers, emit, x);
    const value far = binary(emit, "subtract", powers[0], powers[1]);
    const value less_one = unary(emit, "exponential_minus_one", x);
    const value ratio = binary(emit, "divide", less_one, with(emit, "add", less_one, 1));
    const value near = with(emit, "multiply", binary(emit, "add", less_one, ratio), 0.5);
    const value is_near = compares(emit, "LT", unary(emit, "abs", x), 1);
    return tare_build_select(B, is_near, near, far);
}

static value hyperbolic_cosine(struct tare_emit *emit, value x) {
    value powers[2];
    half_powers(powers, emit, x);
    return binary(emit, "add", powers[0], powers[1]);
}

/* From here on x² + 1 is x² and may overflow: log(2x). */
static double far_of(value x) {
    return is_double(x) ? 1e150 : 1e18;
}

static value area_sine(struct tare_emit *emit, value x) {
    const value size = unary(emit, "abs", x);
    const value square = binary(emit, "multiply", size, size);
    const value root = unary(emit, "sqrt", with(emit, "add", square, 1));
    const value rest = binary(emit, "divide", square, with(emit, "add", root, 1));
    const value near = unary(emit, "log_plus_one", binary(emit, "add", size, rest));
    const value far = with(emit, "add", unary(emit, "log", size), M_LN2);
    const value is_far = compares(emit, "GE", size, far_of(x));
    const value result = tare_build_select(B, is_far, far, near);
    return binary(emit, "multiply", unary(emit, "sign", x), result);
}

static value area_cosine(struct tare_emit *emit, value x) {
    const value above = with(emit, "add", x, 1);
    const value root = unary(emit, "sqrt", binary(emit, "multiply", above, with(emit, "add", x, -1)));
    const value near = unary(emit, "log", binary(emit, "add", x, root));
    const value far = with(emit, "add", unary(emit, "log", x), M_LN2);
    const value is_far = compares(emit, "GE", x, far_of(x)), is_undefined = compares(emit, "LT", x, -1);
    const value result = tare_build_select(B, is_far, far, near);
    return tare_build_select(B, is_undefined, tare_build_number(B, x, (double)NAN), result);
}

static value area_tangent(struct tare_emit *emit, value x) {
    const value above = unary(emit, "log_plus_one", x);
    const value below = unary(emit, "log_plus_one", unary(emit, "negate", x));
    return with(emit, "multiply", binary(emit, "subtract", above, below), 0.5);
}

/* ---- probability ---- */

/* The inverse of erf: one polynomial near 0 and one beyond (M. Giles, Approximating the erfinv function). */
static value inverse_erf(struct tare_emit *emit, value x) {
    static const double near[] = { 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                   -0.00125372503, -0.00417768164, 0.246640727,    1.50140941 };
    static const double far[] = { -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                  -0.0076224613,   0.00943887047,  1.00167406,    2.83297682 };
    if (is_double(x)) return tare_build_fail(B, TARE_FAIL(TARE_UNSUPPORTED, "the inverse of erf of double"));
    const value square = binary(emit, "multiply", x, x);
    const value w = unary(emit, "negate", unary(emit, "log_plus_one", unary(emit, "negate", square)));
    const value is_near = compares(emit, "LT", w, 5);
    const value inner = polynomial(emit, with(emit, "add", w, -2.5), near, 9);
    const value outer = polynomial(emit, with(emit, "add", unary(emit, "sqrt", w), -3), far, 9);
    const value result = binary(emit, "multiply", tare_build_select(B, is_near, inner, outer), x);
    const value is_end = compares(emit, "EQ", unary(emit, "abs", x), 1);
    return tare_build_select(B, is_end, with(emit, "multiply", x, (double)INFINITY), result);
}

/* ---- the gamma function, by Lanczos' approximation ---- */

enum { LANCZOS_TERMS = 8 };
static const double lanczos_base = 0.99999999999980993, lanczos_g = 7;
static const double lanczos[LANCZOS_TERMS] = { 676.520368121885098567,     -1259.13921672240287047,
                                               771.323428777653078849,     -176.615029162140599066,
                                               12.5073432786869048145,     -0.138571095265720116896,
                                               9.984369578019570859563e-6, 1.50563273514931155834e-7 };

/* Below 1/2 the functions are those of 1 - x, reflected: z is x - 1 or -x. */
static value reflected(value *is_reflected, struct tare_emit *emit, value x) {
    *is_reflected = compares(emit, "LT", x, 0.5);
    const value below = unary(emit, "negate", x);
    return tare_build_select(B, *is_reflected, below, with(emit, "add", x, -1));
}

/* log(z + g + 1/2) */
static value log_of_sum(struct tare_emit *emit, value z) {
    const value ratio = with(emit, "divide", z, lanczos_g + 0.5);
    return with(emit, "add", unary(emit, "log_plus_one", ratio), log(lanczos_g + 0.5));
}

static value log_gamma(struct tare_emit *emit, value x) {
    value is_reflected;
    const value z = reflected(&is_reflected, emit, x);
    value sum = tare_build_number(B, x, lanczos_base);
    for (int i = 0; i < LANCZOS_TERMS; i++) {
        const value term = number_with(emit, "divide", lanczos[i], with(emit, "add", z, i + 1));
        sum = binary(emit, "add", sum, term);
    }
    const value t = with(emit, "add", z, lanczos_g + 0.5), log_t = log_of_sum(emit, z);
    const value ratio = binary(emit, "divide", t, log_t);
    const value factor = binary(emit, "subtract", with(emit, "add", z, 0.5), ratio);
    const value main = with(emit, "add", binary(emit, "multiply", factor, log_t), log(2 * M_PI) / 2);
    const value direct = binary(emit, "add", main, unary(emit, "log", sum));
    /* log(π / sin(πx)) - direct, by the distance to the next integer */
    const value size = unary(emit, "abs", x);
    const value fraction = binary(emit, "subtract", size, unary(emit, "floor", size));
    const value distance = binary(emit, "minimum", fraction, number_with(emit, "subtract", 1, fraction));
    const value sine = unary(emit, "log", unary(emit, "sine", with(emit, "multiply", distance, M_PI)));
    const value mirrored = number_with(emit, "subtract", log(M_PI), binary(emit, "add", sine, direct));
    const value is_pole = compares(emit, "EQ", sine, -(double)INFINITY);
    const value infinity = tare_build_number(B, x, (double)INFINITY);
    const value below = tare_build_select(B, is_pole, infinity, mirrored);
    const value result = tare_build_select(B, is_reflected, below, direct);
    return tare_build_select(B, compares(emit, "EQ", size, (double)INFINITY), infinity, result);
}

static value digamma(struct tare_emit *emit, value x) {
    value is_reflected;
    const value z = reflected(&is_reflected, emit, x);
    value numerator = tare_build_number(B, x, 0), denominator = tare_build_number(B, x, lanczos_base);
    for (int i = 0; i < LANCZOS_TERMS; i++) {
        const value place = with(emit, "add", z, i + 1);
        const value term = number_with(emit, "divide", lanczos[i], place);
        numerator = binary(emit, "subtract", numerator, binary(emit, "divide", term, place));
        denominator = binary(emit, "add", denominator, term);
    }
    const value t = with(emit, "add", z, lanczos_g + 0.5), log_t = log_of_sum(emit, z);
    const value ratio = binary(emit, "divide", numerator, denominator);
    const value tail = number_with(emit, "divide", lanczos_g, t);
    const value direct = binary(emit, "subtract", binary(emit, "add", log_t, ratio), tail);
    /* direct - π cot(πx), with x in the period around 0 */
    const value nearest = unary(emit, "floor", with(emit, "add", x, 0.5));
    const value angle = with(emit, "multiply", binary(emit, "subtract", x, nearest), M_PI);
    const value sine = unary(emit, "sine", angle);
    const value cotangent = binary(emit, "divide", unary(emit, "cosine", angle), sine);
    const value mirrored = binary(emit, "subtract", direct, with(emit, "multiply", cotangent, M_PI));
    const value result = tare_build_select(B, is_reflected, mirrored, direct);
    const value is_whole = tare_build_compare(B, "EQ", x, unary(emit, "floor", x));
    const value is_pole = binary(emit, "and", is_whole, compares(emit, "LE", x, 0));
    return tare_build_select(B, is_pole, tare_build_number(B, x, (double)NAN), result);
}

/* ---- rows ---- */

/* A function of float32 or double. */
struct function {
    value (*of)(struct tare_emit *emit, value x);
};

static tare_status emit_function(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct function *function = arg;
    const value x = tare_emit_in(emit, node, 0);
    if (!x) return emit->build.status;
    const int dtype = tare_build_dtype(x);
    if (tare_dtype_is_complex(dtype)) return TARE_FAIL(TARE_UNSUPPORTED, "complex numbers");
    const value wide = tare_build_convert(B, x, dtype == TARE_DT_DOUBLE ? dtype : TARE_DT_FLOAT);
    return tare_emit_set(emit, node, 0, tare_build_convert(B, function->of(emit, wide), dtype));
}

static tare_status emit_is_infinite(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    const value size = unary(emit, "abs", tare_emit_in(emit, node, 0));
    return tare_emit_set(emit, node, 0, compares(emit, "EQ", size, (double)INFINITY));
}

#define FUNCTION(name)                                                                                                 \
    &(const struct function) {                                                                                         \
        name                                                                                                           \
    }
const struct tare_emit_row tare_emit_functions[] = {
    { "Acos", emit_function, FUNCTION(arc_cosine) },
    { "Acosh", emit_function, FUNCTION(area_cosine) },
    { "Asin", emit_function, FUNCTION(arc_sine) },
    { "Asinh", emit_function, FUNCTION(area_sine) },
    { "Atan", emit_function, FUNCTION(arc_tangent) },
    { "Atanh", emit_function, FUNCTION(area_tangent) },
    { "Cosh", emit_function, FUNCTION(hyperbolic_cosine) },
    { "Digamma", emit_function, FUNCTION(digamma) },
    { "Erf", emit_erf, NULL },
    { "Erfc", emit_erfc, NULL },
    { "Erfinv", emit_function, FUNCTION(inverse_erf) },
    { "IsInf", emit_is_infinite, NULL },
    { "Lgamma", emit_function, FUNCTION(log_gamma) },
    { "Sinh", emit_function, FUNCTION(hyperbolic_sine) },
    { "Tan", emit_function, FUNCTION(tangent) },
    { 0 },
};
#undef FUNCTION
