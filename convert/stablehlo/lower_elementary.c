/* Elementary functions that StableHLO has no op for. JAX writes them as a composite with the name of the function in
 * CHLO, PyTorch/XLA and MHLO's legalization as a custom call with that in MHLO, or, in older modules and for erf, as
 * the rational approximation that CHLO expands to. TensorFlow has ops for them, which fusion knows, and which bfloat16
 * rounds once: an approximation of which every step is rounded to bfloat16 has few correct bits left. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/dtype.h"

#include <math.h>
#include <string.h>

/* ---- composites ---- */

static const char *op_of(const char *function) {
    static const char *const pairs[][2] = {
        { "chlo.acos", "Acos" },   { "chlo.acosh", "Acosh" },     { "chlo.asin", "Asin" },
        { "chlo.asinh", "Asinh" }, { "chlo.atan", "Atan" },       { "chlo.atanh", "Atanh" },
        { "chlo.cosh", "Cosh" },   { "chlo.digamma", "Digamma" }, { "chlo.erf", "Erf" },
        { "chlo.erfc", "Erfc" },   { "chlo.erf_inv", "Erfinv" },  { "chlo.lgamma", "Lgamma" },
        { "chlo.sinh", "Sinh" },   { "chlo.square", "Square" },   { "chlo.tan", "Tan" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(function, pairs[i][0]) == 0) return pairs[i][1];
    return NULL;
}

static bool lower_function(struct tare_lowering *l, const char *op) {
    if (!op || l->op->n_operands != 1 || l->op->n_results != 1) return false;
    const int dtype = tare_lower_in_dtype(l, 0);
    const bool is_plain =
        dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16;
    if (!is_plain || tare_lower_out_dtype(l, 0) != dtype || tare_shlo_stored_as_float(tare_lower_in_type(l, 0)))
        return false;
    tare_lower_set(l, tare_lower_unary(l, op, tare_lower_in(l, 0)));
    return true;
}

bool tare_lower_elementary(struct tare_lowering *l) {
    return lower_function(l, l->status == TARE_OK ? op_of(tare_lower_text(l, "name")) : NULL);
}

void tare_lower_elementary_call(struct tare_lowering *l, const void *op) {
    if (l->status == TARE_OK && !lower_function(l, op))
        tare_lower_fail(l, TARE_UNSUPPORTED, "operands and results other than one of the same floating-point type");
}

/* ---- the error function ---- */

enum { MOST_COEFFICIENTS = 16, POINTS = 256 };

struct polynomial {
    double coefficients[MOST_COEFFICIENTS]; /* of the lowest power first */
    size_t count;
};

static const struct tare_shlo_op *defined_by(const struct tare_shlo_value *value, const char *name) {
    return value->op && tare_shlo_op_is(value->op, name) ? value->op : NULL;
}

/* The product with x in a sum, whose other operand is the number `last`; NULL if the value is another one. */
static const struct tare_shlo_value *factor_of(double *last, const struct tare_shlo_value *value,
                                               const struct tare_shlo_value *x) {
    const struct tare_shlo_op *sum = defined_by(value, "add");
    for (size_t i = 0; sum && i < 2; i++) {
        const struct tare_shlo_op *product = defined_by(sum->operands[i], "multiply");
        if (!product || !tare_lower_number_of(last, sum->operands[1 - i])) continue;
        if (product->operands[0] == x) return product->operands[1];
        if (product->operands[1] == x) return product->operands[0];
    }
    return NULL;
}

/* Horner's scheme in x: ((c * x + b) * x + a) … */
static bool read_polynomial(struct polynomial *p, const struct tare_shlo_value *value,
                            const struct tare_shlo_value *x) {
    for (p->count = 0; p->count < MOST_COEFFICIENTS; p->count++) {
        double *last = &p->coefficients[p->count];
        if (tare_lower_number_of(last, value)) {
            p->count++;
            return true;
        }
        value = factor_of(last, value, x);
        if (!value) return false;
    }
    return false;
}

static double polynomial_at(const struct polynomial *p, double x) {
    double y = 0;
    for (size_t i = p->count; i-- > 0;)
        y = y * x + p->coefficients[i];
    return y;
}

/* x P(x x) / Q(x x) is erf(x) up to `end`, and 1 there: approximations of float32 have an error of some 1e-7. */
static bool is_erf(const struct polynomial *p, const struct polynomial *q, double end) {
    for (int i = 0; i <= POINTS; i++) {
        const double x = end * i / POINTS;
        if (!(fabs(x * polynomial_at(p, x * x) / polynomial_at(q, x * x) - erf(x)) <= 1e-6)) return false;
    }
    return 1 - erf(end) <= 1e-6;
}

/* The square of c that a polynomial in it multiplies by last; NULL if there is none. */
static const struct tare_shlo_value *square_in(const struct tare_shlo_value *value, const struct tare_shlo_value *c) {
    const struct tare_shlo_op *sum = defined_by(value, "add");
    for (size_t i = 0; sum && i < 4; i++) {
        const struct tare_shlo_op *product = defined_by(sum->operands[i / 2], "multiply");
        const struct tare_shlo_op *square = product ? defined_by(product->operands[i % 2], "multiply") : NULL;
        if (square && square->operands[0] == c && square->operands[1] == c) return product->operands[i % 2];
    }
    return NULL;
}

/* c P(c c) / Q(c c) with c = clamp(-end, x, end). */
bool tare_lower_erf(struct tare_lowering *l) {
    const struct tare_shlo_op *product = defined_by(l->op->operands[0], "multiply");
    struct polynomial p, q;
    double low, end;
    if (!product || tare_lower_out_dtype(l, 0) != TARE_DT_FLOAT) return false;
    for (size_t i = 0; i < 2; i++) {
        const struct tare_shlo_value *c = product->operands[i], *numerator = product->operands[1 - i];
        const struct tare_shlo_op *clamp = defined_by(c, "clamp");
        const struct tare_shlo_value *square = square_in(numerator, c);
        if (!clamp || !square || !tare_lower_number_of(&low, clamp->operands[0]) ||
            !tare_lower_number_of(&end, clamp->operands[2]) || low != -end)
            continue;
        if (!read_polynomial(&p, numerator, square) || !read_polynomial(&q, l->op->operands[1], square)) continue;
        if (!is_erf(&p, &q, end)) continue;
        tare_lower_set(l, tare_lower_unary(l, "Erf", tare_lower_value(l, clamp->operands[1])));
        return true;
    }
    return false;
}
