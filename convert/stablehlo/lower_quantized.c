/* Ops on quantized types. StableHLO defines them as dequantize, op, quantize. Three kinds of ops keep the integers
 * instead: those that only move or choose elements of one scale; sums of int32 of one scale without zero point;
 * products and convolutions whose int32 result has the product of the scales (what quantizers emit), which are exact.
 */
#include "convert/stablehlo/lower.h"

#include <math.h>

bool tare_lower_has_quantized(const struct tare_shlo_op *op) {
    for (size_t i = 0; i < op->n_results; i++)
        if (tare_shlo_quantized_of(op->results[i].type)) return true;
    for (size_t i = 0; i < op->n_operands; i++)
        if (tare_shlo_quantized_of(op->operands[i]->type)) return true;
    return false;
}

/* ---- ops that keep the integers ---- */

static bool same_parameters(const struct tare_shlo_quantized *a, const struct tare_shlo_quantized *b) {
    if (!a || !b || a->count != b->count || a->axis != b->axis || a->storage->kind != b->storage->kind) return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->scales[i] != b->scales[i] || a->zero_points[i] != b->zero_points[i]) return false;
    return true;
}

/* All quantized operands and results have the parameters of the first one. */
static bool one_scale(const struct tare_shlo_op *op) {
    const struct tare_shlo_quantized *first = NULL;
    for (size_t i = 0; i < op->n_operands + op->n_results; i++) {
        const struct tare_shlo_quantized *q =
            tare_shlo_quantized_of(i < op->n_operands ? op->operands[i]->type : op->results[i - op->n_operands].type);
        if (!first) first = q;
        if (q && !same_parameters(first, q)) return false;
    }
    return true;
}

/* Ops of which the values are not used as numbers, or only compared. */
static bool keeps_integers(const struct tare_shlo_op *op) {
    static const char *const carriers[] = { "call",        "composite", "while",
                                            "if",          "case",      "optimization_barrier",
                                            "custom_call", "tuple",     "get_tuple_element",
                                            "return",      NULL };
    static const char *const sums[] = { "add", "subtract", NULL };
    if (tare_lower_is_one_of(op, carriers) || op->n_regions) return true;
    if (!one_scale(op)) return false;
    if (tare_lower_moves(op)) return true;
    const struct tare_shlo_quantized *q = op->n_results ? tare_shlo_quantized_of(op->results[0].type) : NULL;
    return q && tare_lower_is_one_of(op, sums) && tare_shlo_is_centred(q) && tare_shlo_type_bits(q->storage) == 32;
}

/* ---- products ---- */

/* The result's scales are those of the product of the operands, and it has no zero point. */
static bool is_exact_product(const struct tare_shlo_op *op) {
    if (!tare_shlo_op_is(op, "dot_general") && !tare_shlo_op_is(op, "convolution")) return false;
    const struct tare_shlo_quantized *x = tare_shlo_quantized_of(op->operands[0]->type),
                                     *y = tare_shlo_quantized_of(op->operands[1]->type);
    const struct tare_shlo_quantized *out = tare_shlo_quantized_of(op->results[0].type);
    if (!x || !y || !out || x->count != 1 || (out->count != y->count && y->count != 1)) return false;
    if (tare_shlo_type_bits(out->storage) != 32 || !tare_shlo_is_centred(out)) return false;
    for (size_t i = 0; i < out->count; i++) {
        const double expected = x->scales[0] * y->scales[y->count == 1 ? 0 : i];
        if (!(fabs(out->scales[i] - expected) <= 1e-5 * expected)) return false;
    }
    return true;
}

/* The stored integers less the zero point, as int32 where there is one. */
static struct tare_edge centred(struct tare_lowering *l, size_t i, int dtype) {
    const struct tare_shlo_type *type = tare_lower_in_type(l, i);
    const struct tare_edge x = tare_lower_cast(l, tare_lower_value(l, l->op->operands[i]), dtype);
    return tare_shlo_is_centred(tare_shlo_quantized_of(type))
               ? x
               : tare_lower_binary(l, "Sub", x, tare_lower_per_channel(l, type, false, dtype));
}

/* Lowers the op as one on int32 (int8, if there are no zero points) by operands of other types. */
static void lower_exact_product(struct tare_lowering *l, const struct tare_lowering_row *row) {
    struct tare_shlo_op op = *l->op;
    struct tare_shlo_type types[2], elements[2], result = *l->op->results[0].type;
    struct tare_shlo_value operands[2], *pointers[2], results = l->op->results[0];
    const struct tare_shlo_op *original = l->op;
    bool narrow = true;
    for (size_t i = 0; i < 2; i++)
        narrow = narrow && tare_shlo_is_centred(tare_shlo_quantized_of(tare_lower_in_type(l, i))) &&
                 tare_shlo_quantized_of(tare_lower_in_type(l, i))->storage->kind == TARE_SHLO_SI8;
    for (size_t i = 0; i < 2; i++) {
        operands[i] = *original->operands[i];
        types[i] = *original->operands[i]->type;
        elements[i] = (struct tare_shlo_type){ .kind = narrow ? TARE_SHLO_SI8 : TARE_SHLO_SI32 };
        types[i].element = &elements[i];
        operands[i].type = &types[i];
        pointers[i] = &operands[i];
        l->replaced[i] = centred(l, i, narrow ? TARE_DT_INT8 : TARE_DT_INT32);
    }
    const struct tare_shlo_type wide = { .kind = TARE_SHLO_SI32 };
    result.element = &wide;
    results.type = &result;
    op.operands = pointers;
    op.results = &results;
    l->op = &op;
    l->is_replaced = true;
    row->lower(l, row->arg);
    l->is_replaced = false;
    l->op = original;
}

void tare_lower_quantized(struct tare_lowering *l, const struct tare_lowering_row *row) {
    if (keeps_integers(l->op)) {
        row->lower(l, row->arg);
        return;
    }
    if (is_exact_product(l->op)) {
        lower_exact_product(l, row);
        return;
    }
    l->dequantized = true;
    row->lower(l, row->arg);
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        if (tare_shlo_quantized_of(tare_lower_out_type(l, i)))
            l->outputs[i] = tare_lower_quantize(l, l->outputs[i], tare_lower_out_type(l, i));
}

/* Both conversions: the change of representation is that of every op on quantized types. */
static void lower_conversion(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_set(l, tare_lower_cast(l, tare_lower_in(l, 0), tare_lower_out_dtype(l, 0)));
}

const struct tare_lowering_row tare_lower_quantization[] = {
    { "uniform_quantize", lower_conversion, NULL },
    { "uniform_dequantize", lower_conversion, NULL },
    { 0 },
};
