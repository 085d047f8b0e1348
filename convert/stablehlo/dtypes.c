/* TensorFlow dtypes of element types, and the dtypes in which ops compute. */
#include "convert/stablehlo/module.h"
#include "base/tensor/dtype.h"

int tare_shlo_dtype(const struct tare_shlo_type *type) {
    static const int dtypes[TARE_SHLO_N_TYPES] = {
        [TARE_SHLO_BOOL] = TARE_DT_BOOL,
        [TARE_SHLO_BF16] = TARE_DT_BFLOAT16,
        [TARE_SHLO_F16] = TARE_DT_HALF,
        [TARE_SHLO_F32] = TARE_DT_FLOAT,
        [TARE_SHLO_F64] = TARE_DT_DOUBLE,
        [TARE_SHLO_SI8] = TARE_DT_INT8,
        [TARE_SHLO_SI16] = TARE_DT_INT16,
        [TARE_SHLO_SI32] = TARE_DT_INT32,
        [TARE_SHLO_SI64] = TARE_DT_INT64,
        [TARE_SHLO_UI8] = TARE_DT_UINT8,
        [TARE_SHLO_UI16] = TARE_DT_UINT16,
        [TARE_SHLO_UI32] = TARE_DT_UINT32,
        [TARE_SHLO_UI64] = TARE_DT_UINT64,
        [TARE_SHLO_INDEX] = TARE_DT_INT64,
        [TARE_SHLO_F8E4M3FN] = TARE_DT_FLOAT8_E4M3FN,
        [TARE_SHLO_F8E5M2] = TARE_DT_FLOAT8_E5M2,
        [TARE_SHLO_F8E4M3FNUZ] = TARE_DT_FLOAT8_E4M3FNUZ,
        [TARE_SHLO_F8E5M2FNUZ] = TARE_DT_FLOAT8_E5M2FNUZ,
        [TARE_SHLO_F8E4M3B11FNUZ] = TARE_DT_FLOAT8_E4M3B11FNUZ,
        [TARE_SHLO_SI4] = TARE_DT_INT4,
        [TARE_SHLO_UI4] = TARE_DT_UINT4,
        [TARE_SHLO_SI2] = TARE_DT_INT2,
        [TARE_SHLO_UI2] = TARE_DT_UINT2,
        [TARE_SHLO_TOKEN] = TARE_DT_BOOL, /* carries nothing */
    };
    if (type->kind == TARE_SHLO_TENSOR) type = type->element;
    if (type->quantized) type = type->quantized->storage;
    if (tare_shlo_stored_as_float(type)) return TARE_DT_FLOAT;
    if (type->kind == TARE_SHLO_COMPLEX)
        return type->element->kind == TARE_SHLO_F32   ? TARE_DT_COMPLEX64
               : type->element->kind == TARE_SHLO_F64 ? TARE_DT_COMPLEX128
                                                      : TARE_DT_INVALID;
    return dtypes[type->kind];
}

const struct tare_shlo_small_float *tare_shlo_stored_as_float(const struct tare_shlo_type *type) {
    if (type->kind == TARE_SHLO_TENSOR) type = type->element;
    const bool is_stored = type->kind >= TARE_SHLO_F8E4M3 && type->kind <= TARE_SHLO_F8E8M0FNU;
    return is_stored ? tare_shlo_small_float(type->kind) : NULL;
}

int tare_shlo_wide_dtype(int dtype) {
    switch (dtype) {
    case TARE_DT_FLOAT8_E5M2:
    case TARE_DT_FLOAT8_E4M3FN:
    case TARE_DT_FLOAT8_E4M3FNUZ:
    case TARE_DT_FLOAT8_E4M3B11FNUZ:
    case TARE_DT_FLOAT8_E5M2FNUZ:
        return TARE_DT_FLOAT;
    case TARE_DT_INT4:
    case TARE_DT_INT2:
        return TARE_DT_INT8;
    case TARE_DT_UINT4:
    case TARE_DT_UINT2:
        return TARE_DT_UINT8;
    default:
        return dtype;
    }
}
