/* Properties of element types. */
#include "convert/stablehlo/module.h"

int tare_shlo_type_bits(const struct tare_shlo_type *type) {
    static const uint8_t bits[TARE_SHLO_N_TYPES] = {
        [TARE_SHLO_BOOL] = 1,       [TARE_SHLO_BF16] = 16,      [TARE_SHLO_F16] = 16,
        [TARE_SHLO_F32] = 32,       [TARE_SHLO_F64] = 64,       [TARE_SHLO_F8E4M3FN] = 8,
        [TARE_SHLO_F8E5M2] = 8,     [TARE_SHLO_INDEX] = 64,     [TARE_SHLO_SI4] = 4,
        [TARE_SHLO_SI8] = 8,        [TARE_SHLO_SI16] = 16,      [TARE_SHLO_SI32] = 32,
        [TARE_SHLO_SI64] = 64,      [TARE_SHLO_UI4] = 4,        [TARE_SHLO_UI8] = 8,
        [TARE_SHLO_UI16] = 16,      [TARE_SHLO_UI32] = 32,      [TARE_SHLO_UI64] = 64,
        [TARE_SHLO_F8E4M3FNUZ] = 8, [TARE_SHLO_F8E5M2FNUZ] = 8, [TARE_SHLO_F8E4M3B11FNUZ] = 8,
        [TARE_SHLO_SI2] = 2,        [TARE_SHLO_UI2] = 2,        [TARE_SHLO_TF32] = 19,
        [TARE_SHLO_F8E4M3] = 8,     [TARE_SHLO_F8E3M4] = 8,     [TARE_SHLO_F4E2M1FN] = 4,
        [TARE_SHLO_F6E2M3FN] = 6,   [TARE_SHLO_F6E3M2FN] = 6,   [TARE_SHLO_F8E8M0FNU] = 8,
    };
    return bits[type->kind];
}

bool tare_shlo_type_is_float(enum tare_shlo_type_kind kind) {
    return (kind >= TARE_SHLO_BF16 && kind <= TARE_SHLO_F8E5M2) ||
           (kind >= TARE_SHLO_F8E4M3FNUZ && kind <= TARE_SHLO_F8E4M3B11FNUZ) ||
           (kind >= TARE_SHLO_TF32 && kind <= TARE_SHLO_F8E8M0FNU);
}

const struct tare_shlo_quantized *tare_shlo_quantized_of(const struct tare_shlo_type *type) {
    return type->kind == TARE_SHLO_TENSOR ? type->element->quantized : NULL;
}

bool tare_shlo_is_centred(const struct tare_shlo_quantized *q) {
    for (size_t i = 0; i < q->count; i++)
        if (q->zero_points[i]) return false;
    return true;
}
