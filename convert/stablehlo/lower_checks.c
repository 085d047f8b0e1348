/* The checks of StableHLO's own tests: custom calls that compare a computed tensor with the expected one
 * (stablehlo/tests/CheckOps.td; the test modules of StableHLO and JAX contain them). A check becomes an Assert whose
 * text has the name of the check, the first differing element in row-major order and both values. */
#include "convert/stablehlo/lower.h"

#include <stdio.h>
#include <string.h>

/* How numbers are compared. Two NaNs are equal, and infinities equal only themselves. Parts of complex numbers are
 * compared separately. */
struct rule {
    const char *target;
    enum { EXACT, ABSOLUTE, ULPS } kind; /* of floating-point numbers; all other dtypes are compared exactly */
};

static const struct rule rules[] = {
    { "check.eq", ABSOLUTE },
    { "check.expect_eq", EXACT },
    { "check.expect_eq_const", EXACT },
    { "check.eq_const", EXACT },
    { "check.almost_eq", ABSOLUTE },
    { "check.expect_almost_eq", ABSOLUTE },
    { "check.expect_almost_eq_const", ABSOLUTE },
    { "check.expect_close", ULPS },
};

static const double DEFAULT_TOLERANCE = 1e-4;

static const struct rule *find_rule(const char *target) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].target, target) == 0) return &rules[i];
    return NULL;
}

bool tare_lower_is_check(const char *target) {
    return find_rule(target) != NULL;
}

/* ---- comparisons ---- */

struct limits {
    double tolerance;
    int64_t min_ulps, max_ulps;
};

static bool is_float(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16;
}

static struct tare_edge either(struct tare_lowering *l, struct tare_edge x, struct tare_edge y) {
    return tare_lower_binary(l, "LogicalOr", x, y);
}

static struct tare_edge both(struct tare_lowering *l, struct tare_edge x, struct tare_edge y) {
    return tare_lower_binary(l, "LogicalAnd", x, y);
}

/* |x - y| <= tolerance, both in double. */
static struct tare_edge is_near(struct tare_lowering *l, struct tare_edge x, struct tare_edge y, double tolerance) {
    const struct tare_edge wide = tare_lower_cast(l, y, TARE_DT_DOUBLE);
    const struct tare_edge difference = tare_lower_binary(l, "Sub", tare_lower_cast(l, x, TARE_DT_DOUBLE), wide);
    const struct tare_edge limit = tare_lower_scalar(l, TARE_DT_DOUBLE, tolerance);
    return tare_lower_binary(l, "LessEqual", tare_lower_unary(l, "Abs", difference), limit);
}

/* The position of a number in the order of all numbers of its dtype, as int64; both zeros are 0. */
static struct tare_edge position(struct tare_lowering *l, struct tare_edge x) {
    const int dtype = tare_edge_dtype(x);
    const int bits = dtype == TARE_DT_DOUBLE ? TARE_DT_INT64 : dtype == TARE_DT_FLOAT ? TARE_DT_INT32 : TARE_DT_INT16;
    const double lowest = dtype == TARE_DT_DOUBLE ? -0x1p63 : dtype == TARE_DT_FLOAT ? -0x1p31 : -0x1p15;
    const struct tare_edge code = tare_lower_cast(l, tare_lower_bitcast(l, x, bits), TARE_DT_INT64);
    const struct tare_edge zero = tare_lower_scalar(l, TARE_DT_INT64, 0);
    const struct tare_edge negative = tare_lower_binary(l, "Sub", tare_lower_scalar(l, TARE_DT_INT64, lowest), code);
    return tare_lower_select(l, tare_lower_binary(l, "Less", code, zero), negative, code);
}

/* The distance in units in the last place lies within the limits. A distance that overflows int64 is large in double.
 */
static struct tare_edge is_close(struct tare_lowering *l, struct tare_edge x, struct tare_edge y,
                                 const struct limits *limits) {
    const struct tare_edge a = position(l, x), b = position(l, y);
    const struct tare_edge distance = tare_lower_unary(l, "Abs", tare_lower_binary(l, "Sub", a, b));
    const struct tare_edge least = tare_lower_scalar(l, TARE_DT_INT64, (double)limits->min_ulps);
    const struct tare_edge most = tare_lower_scalar(l, TARE_DT_INT64, (double)limits->max_ulps);
    const struct tare_edge is_below = tare_lower_binary(l, "LessEqual", distance, most);
    const struct tare_edge within = both(l, tare_lower_binary(l, "GreaterEqual", distance, least), is_below);
    return both(l, within, is_near(l, a, b, 0x1p62));
}

static struct tare_edge real_equal(struct tare_lowering *l, const struct rule *rule, struct tare_edge x,
                                   struct tare_edge y, const struct limits *limits) {
    const struct tare_edge same = tare_lower_binary(l, "Equal", x, y);
    const struct tare_edge is_nan = tare_lower_unary(l, "IsNan", y);
    const struct tare_edge nan = both(l, tare_lower_unary(l, "IsNan", x), is_nan);
    if (rule->kind == EXACT) return either(l, same, nan);
    if (rule->kind == ULPS) return either(l, is_close(l, x, y, limits), nan);
    return either(l, either(l, is_near(l, x, y, limits->tolerance), same), nan);
}

static struct tare_edge part(struct tare_lowering *l, const char *op, struct tare_edge x, int dtype) {
    struct tare_node *node = tare_lower_begin(l, op, &x, 1);
    tare_lower_attr_type(l, node, "Tout", dtype);
    return tare_lower_end(l, node);
}

/* Where the parts that `op` takes from complex numbers are equal. */
static struct tare_edge part_equal(struct tare_lowering *l, const struct rule *rule, const char *op, struct tare_edge x,
                                   struct tare_edge y, const struct limits *limits) {
    const int dtype = tare_edge_dtype(x) == TARE_DT_COMPLEX64 ? TARE_DT_FLOAT : TARE_DT_DOUBLE;
    const struct tare_edge of_y = part(l, op, y, dtype);
    return real_equal(l, rule, part(l, op, x, dtype), of_y, limits);
}

/* Which elements are equal, with the shape of the operands. */
static struct tare_edge elements_equal(struct tare_lowering *l, const struct rule *rule, struct tare_edge x,
                                       struct tare_edge y, const struct limits *limits) {
    const int dtype = tare_edge_dtype(x);
    if (is_float(dtype)) return real_equal(l, rule, x, y, limits);
    if (dtype != TARE_DT_COMPLEX64 && dtype != TARE_DT_COMPLEX128) return tare_lower_binary(l, "Equal", x, y);
    const struct tare_edge imaginary = part_equal(l, rule, "Imag", x, y, limits);
    return both(l, part_equal(l, rule, "Real", x, y, limits), imaginary);
}

/* ---- the text ---- */

static struct tare_edge text(struct tare_lowering *l, const char *words) {
    return tare_lower_string(l, words, strlen(words));
}

/* x and one more row on axis 0. */
static struct tare_edge with_row(struct tare_lowering *l, struct tare_edge x, struct tare_edge row) {
    const struct tare_edge inputs[] = { x, row, tare_lower_scalar(l, TARE_DT_INT32, 0) };
    return tare_lower_end(l, tare_lower_begin(l, "ConcatV2", inputs, 3));
}

static struct tare_edge row_at(struct tare_lowering *l, struct tare_edge x, struct tare_edge index) {
    const struct tare_edge inputs[] = { x, index, tare_lower_scalar(l, TARE_DT_INT32, 0) };
    return tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
}

static struct tare_edge flat(struct tare_lowering *l, struct tare_edge x) {
    const int64_t all = -1;
    return tare_lower_reshape(l, x, tare_lower_longs(l, &all, 1));
}

static struct tare_edge as_text(struct tare_lowering *l, struct tare_edge x) {
    const int dtype = tare_edge_dtype(x);
    const bool wide = dtype == TARE_DT_DOUBLE || dtype == TARE_DT_COMPLEX128;
    const bool whole = !wide && !is_float(dtype) && dtype != TARE_DT_COMPLEX64;
    struct tare_node *node;
    if (dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16) x = tare_lower_cast(l, x, TARE_DT_FLOAT);
    node = tare_lower_begin(l, "AsString", &x, 1);
    if (!whole) tare_lower_attr_bool(l, node, "shortest", true);
    if (!whole) tare_lower_attr_int(l, node, "precision", wide ? 17 : 9);
    return tare_lower_end(l, node);
}

/* Element `index` of x as text. An element is appended, to which the index points if there is no difference. */
static struct tare_edge element_text(struct tare_lowering *l, struct tare_edge x, struct tare_edge index) {
    const struct tare_edge zero = flat(l, tare_lower_scalar(l, tare_edge_dtype(x), 0));
    return as_text(l, row_at(l, with_row(l, flat(l, x), zero), index));
}

/* The coordinates of the first true element, "1, 0, 2". */
static struct tare_edge coordinates_text(struct tare_lowering *l, struct tare_edge different, size_t rank) {
    static const int64_t zeros[TARE_MAX_RANK];
    const int64_t row[] = { 1, (int64_t)rank };
    const struct tare_edge last = tare_lower_longs_of(l, zeros, row, 2);
    const struct tare_edge all = with_row(l, tare_lower_unary(l, "Where", different), last);
    const struct tare_edge first = row_at(l, all, tare_lower_scalar(l, TARE_DT_INT32, 0));
    const struct tare_edge inputs[] = { as_text(l, first), tare_lower_scalar(l, TARE_DT_INT32, 0) };
    struct tare_node *node = tare_lower_begin(l, "ReduceJoin", inputs, 2);
    tare_lower_attr_bytes(l, node, "separator", ", ", 2);
    return tare_lower_end(l, node);
}

static struct tare_edge message(struct tare_lowering *l, const char *target, struct tare_edge equal, struct tare_edge x,
                                struct tare_edge y) {
    const struct tare_edge different = tare_lower_unary(l, "LogicalNot", equal);
    const struct tare_edge yes = flat(l, tare_lower_scalar(l, TARE_DT_INT32, 1));
    const struct tare_edge codes = with_row(l, flat(l, tare_lower_cast(l, different, TARE_DT_INT32)), yes);
    const struct tare_edge first = tare_lower_binary(l, "ArgMax", codes, tare_lower_scalar(l, TARE_DT_INT32, 0));
    char head[160];
    snprintf(head, sizeof head, "%s at byte %zu: element [", target, l->op->offset);
    const struct tare_edge parts[] = {
        text(l, head),          coordinates_text(l, different, tare_lower_in_type(l, 0)->rank),
        text(l, "] is "),       element_text(l, x, first),
        text(l, ", expected "), element_text(l, y, first)
    };
    return tare_lower_end(l, tare_lower_begin(l, "StringJoin", parts, sizeof parts / sizeof *parts));
}

/* ---- the check ---- */

static struct limits limits_of(const struct tare_shlo_op *op) {
    const struct tare_shlo_attr *tolerance = tare_shlo_find(op->extra, "tolerance"),
                                *least = tare_shlo_find(op->extra, "min_ulp_difference"),
                                *most = tare_shlo_find(op->extra, "max_ulp_difference");
    struct limits limits = { DEFAULT_TOLERANCE, 0, 1 };
    if (tolerance && tolerance->kind == TARE_SHLO_ATTR_FLOAT)
        limits.tolerance = tare_shlo_float_of_bits(tolerance->type->kind, tolerance->bits);
    if (least && least->kind == TARE_SHLO_ATTR_INTEGER) limits.min_ulps = (int64_t)least->bits;
    if (most && most->kind == TARE_SHLO_ATTR_INTEGER) limits.max_ulps = (int64_t)most->bits;
    return limits;
}

static struct tare_edge all(struct tare_lowering *l, struct tare_edge x, size_t rank) {
    int64_t axes[TARE_MAX_RANK];
    for (size_t i = 0; i < rank && i < TARE_MAX_RANK; i++)
        axes[i] = (int64_t)i;
    return tare_lower_binary(l, "All", x, tare_lower_longs(l, axes, rank));
}

/* The expected tensor is the second operand, or, of the forms with a constant, the attribute `value`. */
static struct tare_edge expected_value(struct tare_lowering *l) {
    const struct tare_shlo_attr *value = tare_shlo_find(l->op->extra, "value");
    if (l->op->n_operands == 2) return tare_lower_in(l, 1);
    if (l->op->n_operands != 1 || !value || value->kind != TARE_SHLO_ATTR_TENSOR)
        tare_lower_fail(l, TARE_CORRUPT, "a check without an expected value");
    return l->status == TARE_OK ? tare_lower_constant(l, value) : (struct tare_edge){ 0 };
}

void tare_lower_check(struct tare_lowering *l, const char *target) {
    const struct limits limits = limits_of(l->op);
    const struct tare_edge y = expected_value(l);
    if (l->status != TARE_OK) return;
    const struct tare_edge x = tare_lower_in(l, 0);
    const struct tare_edge equal = elements_equal(l, find_rule(target), x, y, &limits);
    const struct tare_edge holds = all(l, equal, tare_lower_in_type(l, 0)->rank);
    const struct tare_edge inputs[] = { holds, message(l, target, equal, x, y) };
    struct tare_node *assertion = tare_lower_begin(l, "Assert", inputs, 2);
    tare_lower_end(l, assertion);
    tare_lower_effect(l, assertion);
    if (l->op->n_results) tare_lower_set(l, holds);
}
