/* Element types of tensors: the numbers of TensorFlow's DataType, and the C type of an element in memory. */
#ifndef TARE_DTYPE_H
#define TARE_DTYPE_H

enum tare_element_type {
    TARE_DTYPE_FLOAT = 1,       /* float */
    TARE_DTYPE_DOUBLE = 2,      /* double */
    TARE_DTYPE_INT32 = 3,       /* int32_t */
    TARE_DTYPE_UINT8 = 4,       /* uint8_t */
    TARE_DTYPE_INT16 = 5,       /* int16_t */
    TARE_DTYPE_INT8 = 6,        /* int8_t */
    TARE_DTYPE_STRING = 7,      /* bytes of any length: struct tare_text (array.h) */
    TARE_DTYPE_COMPLEX64 = 8,   /* two floats: real, imaginary */
    TARE_DTYPE_INT64 = 9,       /* int64_t */
    TARE_DTYPE_BOOL = 10,       /* one byte, 0 or 1 */
    TARE_DTYPE_QINT8 = 11,      /* int8_t */
    TARE_DTYPE_QUINT8 = 12,     /* uint8_t */
    TARE_DTYPE_QINT32 = 13,     /* int32_t */
    TARE_DTYPE_BFLOAT16 = 14,   /* uint16_t: the upper half of a float */
    TARE_DTYPE_QINT16 = 15,     /* int16_t */
    TARE_DTYPE_QUINT16 = 16,    /* uint16_t */
    TARE_DTYPE_UINT16 = 17,     /* uint16_t */
    TARE_DTYPE_COMPLEX128 = 18, /* two doubles: real, imaginary */
    TARE_DTYPE_HALF = 19,       /* uint16_t: IEEE 754 binary16 */
    TARE_DTYPE_RESOURCE = 20,   /* a handle; never in a tare_array */
    TARE_DTYPE_VARIANT = 21,    /* an object; never in a tare_array */
    TARE_DTYPE_UINT32 = 22,     /* uint32_t */
    TARE_DTYPE_UINT64 = 23,     /* uint64_t */
    TARE_DTYPE_INT4 = 29,       /* int8_t: -8 to 7; inputs of this type and the next three also take int8 and uint8 */
    TARE_DTYPE_UINT4 = 30,      /* uint8_t: 0 to 15 */
    TARE_DTYPE_INT2 = 31,       /* int8_t: -2 to 1 */
    TARE_DTYPE_UINT2 = 32       /* uint8_t: 0 to 3 */
};

#endif
