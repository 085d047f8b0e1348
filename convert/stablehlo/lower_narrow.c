/* Ops on element types that TensorFlow stores but hardly computes with, or does not have: floats of at most eight bits
 * and integers of 2 and 4 bits. They are computed in float (int8, uint8) and converted back, floats rounded once,
 * integers wrapped. Conversions to the floats start from the exact value. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/dtype.h"

#include <math.h>

/* A tensor of such a type: damaged modules have values of the type itself. */
static bool is_narrow(const struct tare_shlo_type *type) {
    if (type->kind != TARE_SHLO_TENSOR) return false;
    return tare_shlo_wide_dtype(tare_shlo_dtype(type)) != tare_shlo_dtype(type) || tare_shlo_stored_as_float(type);
}

bool tare_lower_has_narrow(const struct tare_shlo_op *op) {
    for (size_t i = 0; i < op->n_operands; i++)
        if (is_narrow(op->operands[i]->type)) return true;
    for (size_t i = 0; i < op->n_results; i++)
        if (is_narrow(op->results[i].type)) return true;
    return false;
}

/* Ops that pass values on, or whose functions take the narrow type. */
static bool keeps_type(const struct tare_shlo_op *op) {
    static const char *const names[] = { "call",  "composite",         "optimization_barrier", "custom_call",
                                         "tuple", "get_tuple_element", "bitcast_convert",      NULL };
    return tare_lower_is_one_of(op, names) || op->n_regions > 0;
}

/* Limits a number to the range of an integer type of few bits, before its conversion wraps it. */
static struct tare_edge clamp(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type) {
    const int dtype = tare_shlo_wide_dtype(tare_shlo_dtype(type)), bits = tare_shlo_type_bits(type->element);
    const bool has_sign = dtype == TARE_DT_INT8;
    const double most = ldexp(1, bits - has_sign) - 1;
    x = tare_lower_binary(l, "Minimum", x, tare_lower_scalar(l, dtype, most));
    return has_sign ? tare_lower_binary(l, "Maximum", x, tare_lower_scalar(l, dtype, -most - 1)) : x;
}

static bool is_real_float(int dtype) {
    return tare_dtype_is_floating(dtype) || tare_dtype_is_complex(dtype);
}

/* From the exact number: integers of more than 16 bits and doubles are rounded from double. */
static void convert_to_stored(struct tare_lowering *l, const struct tare_shlo_small_float *format) {
    const int from = tare_lower_in_dtype(l, 0);
    struct tare_edge x = tare_lower_in(l, 0);
    if (tare_dtype_is_complex(from)) {
        struct tare_node *node = tare_lower_begin(l, "Real", &x, 1);
        tare_lower_attr_type(l, node, "Tout", from == TARE_DT_COMPLEX64 ? TARE_DT_FLOAT : TARE_DT_DOUBLE);
        x = tare_lower_end(l, node);
    } else {
        const bool fits = from == TARE_DT_FLOAT || tare_shlo_wide_dtype(from) == TARE_DT_FLOAT ||
                          (tare_dtype_is_floating(from) && from != TARE_DT_DOUBLE);
        x = tare_lower_cast(l, x, fits ? TARE_DT_FLOAT : TARE_DT_DOUBLE);
    }
    tare_lower_set(l, tare_lower_round(l, x, format));
}

/* TensorFlow's Bitcast does not have the type. */
static bool is_uncastable(const struct tare_shlo_type *type) {
    return is_narrow(type) && (tare_shlo_type_bits(type->element) < 8 || tare_shlo_stored_as_float(type));
}

/* True if the op was one that starts from the exact value or the bits of its operand. */
static bool lower_exactly(struct tare_lowering *l) {
    const struct tare_shlo_type *out = l->op->n_results ? tare_lower_out_type(l, 0) : NULL;
    if (tare_shlo_op_is(l->op, "bitcast_convert") && (is_uncastable(out) || is_uncastable(tare_lower_in_type(l, 0)))) {
        tare_lower_bitcast_op(l);
        return true;
    }
    if (!tare_shlo_op_is(l->op, "convert")) return false;
    const int to = tare_shlo_dtype(out);
    if (tare_shlo_stored_as_float(out)) {
        convert_to_stored(l, tare_shlo_stored_as_float(out));
        return true;
    }
    if (tare_shlo_wide_dtype(to) != TARE_DT_FLOAT || to == TARE_DT_FLOAT ||
        tare_dtype_is_complex(tare_shlo_dtype(tare_lower_in_type(l, 0))))
        return false;
    tare_lower_set(l, tare_lower_cast(l, tare_lower_in(l, 0), to));
    return true;
}

void tare_lower_narrow(struct tare_lowering *l, const struct tare_lowering_row *row) {
    const bool is_convert = tare_shlo_op_is(l->op, "convert");
    if (lower_exactly(l)) return;
    if (keeps_type(l->op)) {
        row->lower(l, row->arg);
        return;
    }
    l->widened = true;
    if (!tare_lower_moves(l->op) || !tare_lower_pattern(l)) row->lower(l, row->arg);
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++) {
        const struct tare_shlo_type *type = tare_lower_out_type(l, i);
        const int dtype = tare_shlo_dtype(type);
        if (!is_narrow(type)) continue;
        if (tare_shlo_stored_as_float(type)) {
            if (!tare_lower_moves(l->op))
                l->outputs[i] = tare_lower_round(l, l->outputs[i], tare_shlo_stored_as_float(type));
            continue;
        }
        if (is_convert && is_real_float(tare_lower_in_dtype(l, 0)) && tare_shlo_wide_dtype(dtype) != TARE_DT_FLOAT)
            l->outputs[i] = clamp(l, l->outputs[i], type);
        l->outputs[i] = tare_lower_cast(l, l->outputs[i], dtype);
    }
}
