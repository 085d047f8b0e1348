/* Elements of constants. Little-endian, row-major; one stored element for more than one is a splat. Integers and floats
 * of less than 8 bits take a byte each; bools are packed, eight to a byte, lowest bit first. */
#include "convert/stablehlo/module.h"

#include "base/alloc.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

const struct tare_shlo_attr *tare_shlo_find(const struct tare_shlo_attr *dictionary, const char *key) {
    if (!dictionary || dictionary->kind != TARE_SHLO_ATTR_DICTIONARY) return NULL;
    for (size_t i = 0; i + 1 < dictionary->n_items; i += 2)
        if (strcmp(dictionary->items[i]->text.data, key) == 0) return dictionary->items[i + 1];
    return NULL;
}

/* The type of what is stored: of quantized elements the integers. */
static const struct tare_shlo_type *stored_type(const struct tare_shlo_attr *tensor) {
    const struct tare_shlo_type *type = tensor->type->element;
    return type && type->quantized ? type->quantized->storage : type;
}

/* Bytes of an element; 0 for a type that constants cannot have. */
static size_t element_bytes(const struct tare_shlo_type *type) {
    if (type && type->kind == TARE_SHLO_COMPLEX) return 2 * element_bytes(type->element);
    return type ? (size_t)(tare_shlo_type_bits(type) + 7) / 8 : 0;
}

bool tare_shlo_tensor_count(size_t *count, const struct tare_shlo_attr *tensor) {
    *count = 1;
    if (tensor->type->kind != TARE_SHLO_TENSOR) return false;
    for (size_t i = 0; i < tensor->type->rank; i++)
        if (tensor->type->dims[i] < 0 || !tare_mul_size(count, *count, (size_t)tensor->type->dims[i])) return false;
    return true;
}

static bool is_packed(const struct tare_shlo_attr *tensor, size_t count) {
    return tensor->size == (count + 7) / 8 && tensor->size != count && !(tensor->size == 1 && tensor->data[0] == 0xff);
}

bool tare_shlo_tensor_is_splat(const struct tare_shlo_attr *tensor) {
    const struct tare_shlo_type *type = stored_type(tensor);
    size_t count;
    if (!tare_shlo_tensor_count(&count, tensor) || count <= 1) return false;
    if (type->kind != TARE_SHLO_BOOL) return tensor->size == element_bytes(type);
    return tensor->size == 1 && (tensor->data[0] == 0xff || (tensor->data[0] == 0 && count > 8));
}

bool tare_shlo_tensor_check(const struct tare_shlo_attr *tensor) {
    const struct tare_shlo_type *type = stored_type(tensor);
    const size_t bytes = element_bytes(type);
    size_t count, total;
    if (!bytes || !tare_shlo_tensor_count(&count, tensor) || !tare_mul_size(&total, count, bytes)) return false;
    if (tensor->size == total) return true;
    if (count > 1 && tensor->size == bytes)
        return type->kind != TARE_SHLO_BOOL || tare_shlo_tensor_is_splat(tensor) || is_packed(tensor, count);
    return type->kind == TARE_SHLO_BOOL && count && is_packed(tensor, count);
}

static uint64_t load(const uint8_t *data, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, data, bytes);
    return value;
}

static int64_t bool_at(const struct tare_shlo_attr *tensor, size_t i) {
    size_t count = 0;
    tare_shlo_tensor_count(&count, tensor);
    if (tare_shlo_tensor_is_splat(tensor)) return tensor->data[0] != 0;
    if (is_packed(tensor, count)) return tensor->data[i / 8] >> i % 8 & 1;
    return tensor->data[tensor->size == count ? i : 0] != 0;
}

int64_t tare_shlo_tensor_integer(const struct tare_shlo_attr *tensor, size_t i) {
    const struct tare_shlo_type *type = stored_type(tensor);
    const int bits = tare_shlo_type_bits(type);
    const size_t bytes = element_bytes(type);
    if (type->kind == TARE_SHLO_BOOL) return bool_at(tensor, i);
    uint64_t value = load(tensor->data + (tare_shlo_tensor_is_splat(tensor) ? 0 : i * bytes), bytes);
    if (bits == 64) return (int64_t)value;
    value &= (UINT64_C(1) << bits) - 1;
    const bool is_unsigned =
        type->kind == TARE_SHLO_UI2 || (type->kind >= TARE_SHLO_UI4 && type->kind <= TARE_SHLO_UI64);
    if (!is_unsigned && value >> (bits - 1)) value |= ~UINT64_C(0) << bits;
    return (int64_t)value;
}

const struct tare_shlo_small_float *tare_shlo_small_float(enum tare_shlo_type_kind kind) {
    static const struct tare_shlo_small_float formats[TARE_SHLO_N_TYPES] = {
        [TARE_SHLO_F8E4M3FN] = { 4, 3, 7, TARE_SMALL_NAN },
        [TARE_SHLO_F8E5M2] = { 5, 2, 15, TARE_SMALL_IEEE },
        [TARE_SHLO_F8E4M3FNUZ] = { 4, 3, 8, TARE_SMALL_NO_NEGATIVE_ZERO },
        [TARE_SHLO_F8E5M2FNUZ] = { 5, 2, 16, TARE_SMALL_NO_NEGATIVE_ZERO },
        [TARE_SHLO_F8E4M3B11FNUZ] = { 4, 3, 11, TARE_SMALL_NO_NEGATIVE_ZERO },
        [TARE_SHLO_F8E4M3] = { 4, 3, 7, TARE_SMALL_IEEE },
        [TARE_SHLO_F8E3M4] = { 3, 4, 3, TARE_SMALL_IEEE },
        [TARE_SHLO_F4E2M1FN] = { 2, 1, 1, TARE_SMALL_FINITE },
        [TARE_SHLO_F6E2M3FN] = { 2, 3, 1, TARE_SMALL_FINITE },
        [TARE_SHLO_F6E3M2FN] = { 3, 2, 3, TARE_SMALL_FINITE },
        [TARE_SHLO_F8E8M0FNU] = { 8, 0, 127, TARE_SMALL_POWERS },
    };
    return formats[kind].exponent_bits ? &formats[kind] : NULL;
}

static double small_value(const struct tare_shlo_small_float *f, uint64_t bits) {
    const int top = f->exponent_bits + f->mantissa_bits, most = (1 << f->exponent_bits) - 1;
    const bool negative = bits >> top & 1;
    const int exponent = (int)(bits >> f->mantissa_bits) & most, mantissa = (int)bits & ((1 << f->mantissa_bits) - 1);
    double value;
    if (f->special == TARE_SMALL_POWERS) return exponent == most ? (double)NAN : ldexp(1, exponent - f->bias);
    if (f->special == TARE_SMALL_NO_NEGATIVE_ZERO && negative && !exponent && !mantissa) return (double)NAN;
    if (f->special == TARE_SMALL_IEEE && exponent == most)
        return mantissa ? (double)NAN : negative ? -(double)INFINITY : (double)INFINITY;
    if (f->special == TARE_SMALL_NAN && exponent == most && mantissa == (1 << f->mantissa_bits) - 1) return (double)NAN;
    if (exponent)
        value = ldexp((1 << f->mantissa_bits) + mantissa, exponent - f->bias - f->mantissa_bits);
    else
        value = ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    return negative ? -value : value;
}

double tare_shlo_float_of_bits(enum tare_shlo_type_kind kind, uint64_t bits) {
    double wide;
    float single;
    const uint32_t low = kind == TARE_SHLO_BF16   ? (uint32_t)bits << 16
                         : kind == TARE_SHLO_TF32 ? (uint32_t)bits << 13
                                                  : (uint32_t)bits;
    switch (kind) {
    case TARE_SHLO_F64:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    case TARE_SHLO_F16:
        return (double)tare_float_from_half((uint16_t)bits);
    case TARE_SHLO_BF16:
    case TARE_SHLO_TF32:
    case TARE_SHLO_F32:
        memcpy(&single, &low, sizeof single);
        return (double)single;
    default:
        return tare_shlo_small_float(kind) ? small_value(tare_shlo_small_float(kind), bits) : (double)NAN;
    }
}

double tare_shlo_tensor_real(const struct tare_shlo_attr *tensor, size_t i) {
    const struct tare_shlo_type *type = stored_type(tensor);
    const bool is_complex = type->kind == TARE_SHLO_COMPLEX;
    if (is_complex) type = type->element;
    const size_t bytes = element_bytes(type);
    if (tare_shlo_tensor_is_splat(tensor)) i = is_complex ? i % 2 : 0;
    return tare_shlo_float_of_bits(type->kind, load(tensor->data + i * bytes, bytes));
}
