/* bitcast_convert of types that TensorFlow's Bitcast does not have: integers of few bits, and floats that are stored as
 * float. The operand becomes units: uint8 with the bits of an element, or of one of its bytes, which are then a further
 * last axis. Of several units that are in one, the first has the lowest bits. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/dtype.h"

enum { BYTE = 8 };

/* 0 for other types than tensors of real numbers. */
static int bits_of(const struct tare_shlo_type *type) {
    return type->kind == TARE_SHLO_TENSOR ? tare_shlo_type_bits(type->element) : 0;
}

static int unit_of(const struct tare_shlo_type *type) {
    return bits_of(type) < BYTE ? bits_of(type) : BYTE;
}

/* ---- elements and their units ---- */

static struct tare_edge units_of(struct tare_lowering *l, const struct tare_shlo_type *type) {
    const struct tare_edge x = tare_lower_in(l, 0);
    if (tare_shlo_stored_as_float(type)) return tare_lower_encode(l, x, tare_shlo_stored_as_float(type));
    if (bits_of(type) >= BYTE) return tare_lower_bitcast(l, x, TARE_DT_UINT8);
    const struct tare_edge mask = tare_lower_scalar(l, TARE_DT_UINT8, (1 << bits_of(type)) - 1);
    return tare_lower_binary(l, "BitwiseAnd", tare_lower_cast(l, tare_lower_cast(l, x, TARE_DT_INT8), TARE_DT_UINT8),
                             mask);
}

/* The sign bit of a signed integer of few bits is the highest of them. */
static struct tare_edge elements_of(struct tare_lowering *l, struct tare_edge units,
                                    const struct tare_shlo_type *type) {
    const int dtype = tare_shlo_dtype(type);
    if (tare_shlo_stored_as_float(type)) return tare_lower_decode(l, units, type->element->kind);
    if (bits_of(type) >= BYTE) return tare_lower_bitcast(l, units, dtype);
    const bool has_sign = tare_shlo_wide_dtype(dtype) == TARE_DT_INT8;
    const struct tare_edge sign = tare_lower_scalar(l, TARE_DT_INT8, has_sign ? 1 << (bits_of(type) - 1) : 0);
    const struct tare_edge word = tare_lower_cast(l, units, TARE_DT_INT8);
    return tare_lower_cast(l, tare_lower_binary(l, "Sub", tare_lower_binary(l, "BitwiseXor", word, sign), sign), dtype);
}

/* ---- units of other sizes ---- */

/* The places of the smaller units in a larger one: 0, bits, 2 * bits … as uint8. */
static struct tare_edge places(struct tare_lowering *l, int bits, int count) {
    int64_t values[BYTE];
    for (int i = 0; i < count; i++)
        values[i] = (int64_t)i * bits;
    return tare_lower_cast(l, tare_lower_longs(l, values, (size_t)count), TARE_DT_UINT8);
}

/* Each unit becomes several of `bits` along a new last axis. */
static struct tare_edge split(struct tare_lowering *l, struct tare_edge units, int bits, int count) {
    const struct tare_edge inputs[] = { units, tare_lower_scalar(l, TARE_DT_INT32, -1) };
    const struct tare_edge column = tare_lower_end(l, tare_lower_begin(l, "ExpandDims", inputs, 2));
    const struct tare_edge mask = tare_lower_scalar(l, TARE_DT_UINT8, (1 << bits) - 1);
    return tare_lower_binary(l, "BitwiseAnd", tare_lower_binary(l, "RightShift", column, places(l, bits, count)), mask);
}

/* The units of `bits` along the last axis become one. */
static struct tare_edge join(struct tare_lowering *l, struct tare_edge units, int bits, int count) {
    const struct tare_edge last = tare_lower_scalar(l, TARE_DT_INT32, -1);
    return tare_lower_binary(l, "Sum", tare_lower_binary(l, "LeftShift", units, places(l, bits, count)), last);
}

/* In the shape of the type and the further axes. One dimension may be dynamic. */
static struct tare_edge shaped(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type,
                               const int64_t *further, size_t n_further) {
    int64_t dims[TARE_MAX_RANK + 2];
    size_t rank = 0, n_dynamic = 0;
    for (size_t i = 0; i < type->rank && i < TARE_MAX_RANK; i++) {
        const bool is_dynamic = type->dims[i] == TARE_SHLO_DYNAMIC;
        n_dynamic += is_dynamic;
        dims[rank++] = is_dynamic ? -1 : type->dims[i];
    }
    for (size_t i = 0; i < n_further; i++)
        dims[rank++] = further[i];
    if (n_dynamic > 1) tare_lower_fail(l, TARE_UNSUPPORTED, "the result has several dynamic dimensions");
    return tare_lower_reshape(l, x, tare_lower_longs(l, dims, rank));
}

void tare_lower_bitcast_op(struct tare_lowering *l) {
    const struct tare_shlo_type *from = tare_lower_in_type(l, 0), *to = tare_lower_out_type(l, 0);
    const int have = unit_of(from), want = unit_of(to);
    if (!have || !want || (have > want ? have % want : want % have)) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a conversion of %d bits to %d bits", bits_of(from), bits_of(to));
        return;
    }
    struct tare_edge units = units_of(l, from);
    if (have > want) units = split(l, units, want, have / want);
    if (have > want && bits_of(from) > BYTE) units = shaped(l, units, to, NULL, 0);
    if (have < want && bits_of(to) > BYTE)
        units = shaped(l, units, to, (const int64_t[]){ bits_of(to) / BYTE, want / have }, 2);
    if (have < want) units = join(l, units, have, want / have);
    tare_lower_set(l, elements_of(l, units, to));
}
