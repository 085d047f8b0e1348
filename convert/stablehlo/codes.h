/* Numbers of the file format that the reader and the writer share. Source: mlir/docs/BytecodeFormat.md,
 * mlir/lib/IR/BuiltinDialectBytecode.cpp, stablehlo/dialect/VhloBytecode.cpp. Not for other modules. */
#ifndef TARE_CONVERT_STABLEHLO_CODES_H
#define TARE_CONVERT_STABLEHLO_CODES_H

#include "convert/stablehlo/module.h"

enum { TARE_MLIR_NEWEST_BYTECODE = 6 };
extern const uint8_t tare_mlir_magic[4];

enum tare_mlir_section {
    TARE_MLIR_SECTION_STRINGS = 0,
    TARE_MLIR_SECTION_DIALECTS = 1,
    TARE_MLIR_SECTION_DATA = 2,
    TARE_MLIR_SECTION_OFFSETS = 3,
    TARE_MLIR_SECTION_IR = 4,
    TARE_MLIR_SECTION_RESOURCES = 5,
    TARE_MLIR_SECTION_RESOURCE_OFFSETS = 6,
    TARE_MLIR_SECTION_PROPERTIES = 8,
};

/* Fields of an op that are present. */
enum {
    TARE_MLIR_HAS_ATTRS = 0x01,
    TARE_MLIR_HAS_RESULTS = 0x02,
    TARE_MLIR_HAS_OPERANDS = 0x04,
    TARE_MLIR_HAS_SUCCESSORS = 0x08,
    TARE_MLIR_HAS_REGIONS = 0x10,
    TARE_MLIR_HAS_USE_ORDERS = 0x20,
    TARE_MLIR_HAS_PROPERTIES = 0x40,
};

/* Builtin types. */
enum {
    TARE_MLIR_TYPE_INTEGER = 0,
    TARE_MLIR_TYPE_INDEX = 1,
    TARE_MLIR_TYPE_FUNCTION = 2,
    TARE_MLIR_TYPE_BF16 = 3,
    TARE_MLIR_TYPE_F16 = 4,
    TARE_MLIR_TYPE_F32 = 5,
    TARE_MLIR_TYPE_F64 = 6,
    TARE_MLIR_TYPE_COMPLEX = 9,
    TARE_MLIR_TYPE_NONE = 12,
    TARE_MLIR_TYPE_TENSOR = 13,
    TARE_MLIR_TYPE_TENSOR_ENCODED = 14,
    TARE_MLIR_TYPE_TUPLE = 15,
};

/* Builtin attributes. */
enum {
    TARE_MLIR_ATTR_ARRAY = 0,
    TARE_MLIR_ATTR_DICTIONARY = 1,
    TARE_MLIR_ATTR_STRING = 2,
    TARE_MLIR_ATTR_STRING_TYPED = 3,
    TARE_MLIR_ATTR_SYMBOL = 4,
    TARE_MLIR_ATTR_TYPE = 6,
    TARE_MLIR_ATTR_UNIT = 7,
    TARE_MLIR_ATTR_INTEGER = 8,
    TARE_MLIR_ATTR_FLOAT = 9,
    TARE_MLIR_ATTR_CALL_SITE = 10,
    TARE_MLIR_ATTR_FILE_LOCATION = 11,
    TARE_MLIR_ATTR_NAMED_LOCATION = 14,
    TARE_MLIR_ATTR_UNKNOWN_LOCATION = 15,
    TARE_MLIR_ATTR_DENSE_ARRAY = 17,
    TARE_MLIR_ATTR_DENSE = 18,
};

/* VHLO attributes. */
enum tare_vhlo_attr_code {
    TARE_VHLO_ARRAY = 1,
    TARE_VHLO_BOOL = 2,
    TARE_VHLO_DIRECTION = 3,
    TARE_VHLO_COMPARE_TYPE = 4,
    TARE_VHLO_API_VERSION = 5,
    TARE_VHLO_DICTIONARY = 6,
    TARE_VHLO_FFT_TYPE = 7,
    TARE_VHLO_FLOAT = 8,
    TARE_VHLO_INTEGER = 9,
    TARE_VHLO_ALIAS = 10,
    TARE_VHLO_PRECISION = 11,
    TARE_VHLO_RNG_ALGORITHM = 12,
    TARE_VHLO_RNG_DISTRIBUTION = 13,
    TARE_VHLO_STRING = 14,
    TARE_VHLO_TENSOR = 15,
    TARE_VHLO_TRANSPOSE = 16,
    TARE_VHLO_TYPE = 17,
    TARE_VHLO_EXTENSIONS = 18,
    TARE_VHLO_ACCURACY_MODE = 19,
    TARE_VHLO_ACCURACY = 20,
    TARE_VHLO_SUB_AXIS = 21,
    TARE_VHLO_AXIS_REF = 22,
    TARE_VHLO_MESH_AXES = 23,
    TARE_VHLO_MESH_AXIS = 24,
    TARE_VHLO_MESH = 25,
    TARE_VHLO_N_ATTRS,
};

enum { TARE_VHLO_MOST_ENUM_VALUES = 6 };
/* The names of an enumeration's values, by its attribute's code; no names for the codes of other attributes. */
extern const char *const tare_vhlo_enums[TARE_VHLO_N_ATTRS][TARE_VHLO_MOST_ENUM_VALUES];
/* The kind of an attribute (enum tare_shlo_attr_kind) by its code; not for enumerations. */
extern const uint8_t tare_vhlo_kinds[TARE_VHLO_N_ATTRS];
/* The code of a kind, not of enumerations; 0: VHLO does not have it. */
int tare_vhlo_code_of(enum tare_shlo_attr_kind kind);

bool tare_shlo_kind_is_unsigned(enum tare_shlo_type_kind kind);

#endif
