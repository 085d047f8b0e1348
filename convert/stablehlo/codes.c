/* The magic number, the names of enums, and the kinds of types and attributes by code. */
#include "convert/stablehlo/codes.h"

const uint8_t tare_mlir_magic[4] = { 0x4d, 0x4c, 0xef, 0x52 };

const char *const tare_vhlo_enums[TARE_VHLO_N_ATTRS][TARE_VHLO_MOST_ENUM_VALUES] = {
    [TARE_VHLO_DIRECTION] = { "EQ", "NE", "GE", "GT", "LE", "LT" },
    [TARE_VHLO_COMPARE_TYPE] = { "NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED" },
    [TARE_VHLO_API_VERSION] = { "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI" },
    [TARE_VHLO_FFT_TYPE] = { "FFT", "IFFT", "RFFT", "IRFFT" },
    [TARE_VHLO_PRECISION] = { "DEFAULT", "HIGH", "HIGHEST" },
    [TARE_VHLO_RNG_ALGORITHM] = { "DEFAULT", "THREE_FRY", "PHILOX" },
    [TARE_VHLO_RNG_DISTRIBUTION] = { NULL, "UNIFORM", "NORMAL" },
    [TARE_VHLO_TRANSPOSE] = { "TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT" },
    [TARE_VHLO_ACCURACY_MODE] = { "DEFAULT", "HIGHEST", "TOLERANCE" },
};

const uint8_t tare_vhlo_kinds[TARE_VHLO_N_ATTRS] = {
    [TARE_VHLO_ARRAY] = TARE_SHLO_ATTR_ARRAY,
    [TARE_VHLO_BOOL] = TARE_SHLO_ATTR_BOOL,
    [TARE_VHLO_DICTIONARY] = TARE_SHLO_ATTR_DICTIONARY,
    [TARE_VHLO_FLOAT] = TARE_SHLO_ATTR_FLOAT,
    [TARE_VHLO_INTEGER] = TARE_SHLO_ATTR_INTEGER,
    [TARE_VHLO_ALIAS] = TARE_SHLO_ATTR_ALIAS,
    [TARE_VHLO_STRING] = TARE_SHLO_ATTR_STRING,
    [TARE_VHLO_TENSOR] = TARE_SHLO_ATTR_TENSOR,
    [TARE_VHLO_TYPE] = TARE_SHLO_ATTR_TYPE,
    [TARE_VHLO_EXTENSIONS] = TARE_SHLO_ATTR_EXTENSIONS,
    [TARE_VHLO_ACCURACY] = TARE_SHLO_ATTR_ACCURACY,
    [TARE_VHLO_SUB_AXIS] = TARE_SHLO_ATTR_SUB_AXIS,
    [TARE_VHLO_AXIS_REF] = TARE_SHLO_ATTR_AXIS_REF,
    [TARE_VHLO_MESH_AXES] = TARE_SHLO_ATTR_MESH_AXES,
    [TARE_VHLO_MESH_AXIS] = TARE_SHLO_ATTR_MESH_AXIS,
    [TARE_VHLO_MESH] = TARE_SHLO_ATTR_MESH,
};

int tare_vhlo_code_of(enum tare_shlo_attr_kind kind) {
    for (int code = 1; code < TARE_VHLO_N_ATTRS; code++)
        if (!tare_vhlo_enums[code][1] && tare_vhlo_kinds[code] == kind) return code;
    return 0;
}

bool tare_shlo_kind_is_unsigned(enum tare_shlo_type_kind kind) {
    return kind == TARE_SHLO_BOOL || kind == TARE_SHLO_UI2 || (kind >= TARE_SHLO_UI4 && kind <= TARE_SHLO_UI64);
}
