/* Element types, numbered like TensorFlow's DataType (types.proto). */
#ifndef TARE_BASE_TENSOR_DTYPE_H
#define TARE_BASE_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_dtype_class {
    TARE_CLASS_NONE,
    TARE_CLASS_FLOAT,
    TARE_CLASS_SIGNED,
    TARE_CLASS_UNSIGNED,
    TARE_CLASS_BOOL,
    TARE_CLASS_COMPLEX,
    TARE_CLASS_QUANTIZED, /* qint8 …: integers whose scale and zero point are stored elsewhere */
    TARE_CLASS_STRING,
    TARE_CLASS_OBJECT, /* resource, variant: pointers to reference-counted objects */
};

/* identifier, number, bytes per element in memory, class, name in op specifications, name in NumPy files and messages.
 * int4, uint4, int2, uint2 are stored as one element per byte, as in TensorFlow's host memory. */
#define TARE_DTYPE_LIST(X)                                                                                             \
    X(FLOAT, 1, 4, FLOAT, "float", "float32")                                                                          \
    X(DOUBLE, 2, 8, FLOAT, "double", "float64")                                                                        \
    X(INT32, 3, 4, SIGNED, "int32", "int32")                                                                           \
    X(UINT8, 4, 1, UNSIGNED, "uint8", "uint8")                                                                         \
    X(INT16, 5, 2, SIGNED, "int16", "int16")                                                                           \
    X(INT8, 6, 1, SIGNED, "int8", "int8")                                                                              \
    X(STRING, 7, 16, STRING, "string", "string")                                                                       \
    X(COMPLEX64, 8, 8, COMPLEX, "complex64", "complex64")                                                              \
    X(INT64, 9, 8, SIGNED, "int64", "int64")                                                                           \
    X(BOOL, 10, 1, BOOL, "bool", "bool")                                                                               \
    X(QINT8, 11, 1, QUANTIZED, "qint8", "qint8")                                                                       \
    X(QUINT8, 12, 1, QUANTIZED, "quint8", "quint8")                                                                    \
    X(QINT32, 13, 4, QUANTIZED, "qint32", "qint32")                                                                    \
    X(BFLOAT16, 14, 2, FLOAT, "bfloat16", "bfloat16")                                                                  \
    X(QINT16, 15, 2, QUANTIZED, "qint16", "qint16")                                                                    \
    X(QUINT16, 16, 2, QUANTIZED, "quint16", "quint16")                                                                 \
    X(UINT16, 17, 2, UNSIGNED, "uint16", "uint16")                                                                     \
    X(COMPLEX128, 18, 16, COMPLEX, "complex128", "complex128")                                                         \
    X(HALF, 19, 2, FLOAT, "half", "float16")                                                                           \
    X(RESOURCE, 20, 8, OBJECT, "resource", "resource")                                                                 \
    X(VARIANT, 21, 8, OBJECT, "variant", "variant")                                                                    \
    X(UINT32, 22, 4, UNSIGNED, "uint32", "uint32")                                                                     \
    X(UINT64, 23, 8, UNSIGNED, "uint64", "uint64")                                                                     \
    X(FLOAT8_E5M2, 24, 1, FLOAT, "float8_e5m2", "float8_e5m2")                                                         \
    X(FLOAT8_E4M3FN, 25, 1, FLOAT, "float8_e4m3fn", "float8_e4m3fn")                                                   \
    X(FLOAT8_E4M3FNUZ, 26, 1, FLOAT, "float8_e4m3fnuz", "float8_e4m3fnuz")                                             \
    X(FLOAT8_E4M3B11FNUZ, 27, 1, FLOAT, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz")                                    \
    X(FLOAT8_E5M2FNUZ, 28, 1, FLOAT, "float8_e5m2fnuz", "float8_e5m2fnuz")                                             \
    X(INT4, 29, 1, SIGNED, "int4", "int4")                                                                             \
    X(UINT4, 30, 1, UNSIGNED, "uint4", "uint4")                                                                        \
    X(INT2, 31, 1, SIGNED, "int2", "int2")                                                                             \
    X(UINT2, 32, 1, UNSIGNED, "uint2", "uint2")

typedef enum tare_dtype {
    TARE_DT_INVALID = 0,
#define X(id, number, size, class, spec, name) TARE_DT_##id = number,
    TARE_DTYPE_LIST(X)
#undef X
        TARE_DT_COUNT = 33,
    TARE_DT_REF_OFFSET = 100, /* a reference dtype (TF1 variables) is the base dtype + 100 */
} tare_dtype;

struct tare_dtype_info {
    tare_dtype dtype;
    size_t size; /* bytes per element in memory */
    enum tare_dtype_class class;
    const char *spec_name; /* "float", "half" */
    const char *name;      /* "float32", "float16" */
};

/* The row of a dtype (of the base dtype for a reference dtype); NULL if `dtype` is not a dtype. */
const struct tare_dtype_info *tare_dtype_get(int dtype);
/* "float32", "int32_ref", "dtype 77": for messages; never NULL. */
const char *tare_dtype_name(int dtype);
/* The dtype of either name, with or without "_ref"; TARE_DT_INVALID if there is none. */
int tare_dtype_from_name(const char *name, size_t size);
/* Bytes per element in memory; 0 if `dtype` is not a dtype. */
size_t tare_dtype_size(int dtype);
static inline bool tare_dtype_is_ref(int dtype) {
    return dtype > TARE_DT_REF_OFFSET;
}
static inline int tare_dtype_base(int dtype) {
    return dtype > TARE_DT_REF_OFFSET ? dtype - TARE_DT_REF_OFFSET : dtype;
}
/* float, half, bfloat16, double (and float8): arithmetic on real numbers. */
bool tare_dtype_is_floating(int dtype);
/* int8 … uint64; not quantized types, not bool. */
bool tare_dtype_is_integer(int dtype);
/* complex64, complex128. */
bool tare_dtype_is_complex(int dtype);

#endif
