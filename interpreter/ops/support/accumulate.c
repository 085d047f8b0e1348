#include "interpreter/ops/support/accumulate.h"

#include "base/tensor/dtype.h"
#include "base/tensor/number.h"

#include <complex.h>

#define LOOP(expression)                                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        a = to[i], b = from[scalar ? 0 : i];                                                                           \
        to[i] = (expression);                                                                                          \
    }                                                                                                                  \
    return TARE_OK;

/* `wide` is the type of the computation: unsigned where overflow must wrap. */
#define NUMBERS(name, type, wide, division)                                                                            \
    static tare_status accumulate_##name(enum tare_accumulate how, type *to, const type *from, int64_t n,              \
                                         bool scalar) {                                                                \
        type a, b;                                                                                                     \
        switch (how) {                                                                                                 \
        case TARE_ACCUMULATE_ADD:                                                                                      \
            LOOP((type)((wide)a + (wide)b))                                                                            \
        case TARE_ACCUMULATE_SUB:                                                                                      \
            LOOP((type)((wide)a - (wide)b))                                                                            \
        case TARE_ACCUMULATE_MUL:                                                                                      \
            LOOP((type)((wide)a * (wide)b))                                                                            \
        case TARE_ACCUMULATE_MIN:                                                                                      \
            LOOP(b < a ? b : a)                                                                                        \
        case TARE_ACCUMULATE_MAX:                                                                                      \
            LOOP(a < b ? b : a)                                                                                        \
        default:                                                                                                       \
            division                                                                                                   \
        }                                                                                                              \
    }
#define REAL_DIVISION LOOP(a / b)
#define WHOLE_DIVISION                                                                                                 \
    for (int64_t i = 0; i < (scalar ? 1 : n); i++)                                                                     \
        if (from[i] == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "division by zero");                                 \
    LOOP((int)a / (int)b)
#define NATURAL_DIVISION                                                                                               \
    for (int64_t i = 0; i < (scalar ? 1 : n); i++)                                                                     \
        if (from[i] == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "division by zero");                                 \
    LOOP(a / b)
NUMBERS(float, float, float, REAL_DIVISION)
NUMBERS(double, double, double, REAL_DIVISION)
NUMBERS(i8, int8_t, uint32_t, WHOLE_DIVISION)
NUMBERS(i16, int16_t, uint32_t, WHOLE_DIVISION)
NUMBERS(u8, uint8_t, uint32_t, NATURAL_DIVISION)
NUMBERS(u16, uint16_t, uint32_t, NATURAL_DIVISION)
NUMBERS(u32, uint32_t, uint32_t, NATURAL_DIVISION)
NUMBERS(u64, uint64_t, uint64_t, NATURAL_DIVISION)
#undef WHOLE_DIVISION
#define WHOLE_DIVISION                                                                                                 \
    for (int64_t i = 0; i < (scalar ? 1 : n); i++)                                                                     \
        if (from[i] == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "division by zero");                                 \
    LOOP(b == -1 ? wrap_negate(a) : a / b)
#define wrap_negate(x) (int32_t)(0 - (uint32_t)(x))
NUMBERS(i32, int32_t, uint32_t, WHOLE_DIVISION)
#undef wrap_negate
#define wrap_negate(x) (int64_t)(0 - (uint64_t)(x))
NUMBERS(i64, int64_t, uint64_t, WHOLE_DIVISION)
#undef wrap_negate
#undef NUMBERS

#define COMPLEX(name, type)                                                                                            \
    static tare_status accumulate_##name(enum tare_accumulate how, type *to, const type *from, int64_t n,              \
                                         bool scalar) {                                                                \
        type a, b;                                                                                                     \
        switch (how) {                                                                                                 \
        case TARE_ACCUMULATE_ADD:                                                                                      \
            LOOP(a + b)                                                                                                \
        case TARE_ACCUMULATE_SUB:                                                                                      \
            LOOP(a - b)                                                                                                \
        case TARE_ACCUMULATE_MUL:                                                                                      \
            LOOP(a *b)                                                                                                 \
        case TARE_ACCUMULATE_DIV:                                                                                      \
            LOOP(a / b)                                                                                                \
        default:                                                                                                       \
            return TARE_FAIL(TARE_UNSUPPORTED, "complex numbers have no order");                                       \
        }                                                                                                              \
    }
COMPLEX(c64, float complex)
COMPLEX(c128, double complex)
#undef COMPLEX
#undef LOOP

static tare_status accumulate_small(enum tare_accumulate how, uint16_t *to, const uint16_t *from, int64_t n,
                                    bool scalar, bool half) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t other = from[scalar ? 0 : i];
        float a = half ? tare_float_from_half(to[i]) : tare_float_from_bfloat16(to[i]);
        float b = half ? tare_float_from_half(other) : tare_float_from_bfloat16(other);
        TARE_TRY(accumulate_float(how, &a, &b, 1, false));
        to[i] = half ? tare_half_from_float(a) : tare_bfloat16_from_float(a);
    }
    return TARE_OK;
}

tare_status tare_accumulate(enum tare_accumulate how, int dtype, void *to, const void *from, int64_t n, bool scalar) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        return accumulate_float(how, to, from, n, scalar);
    case TARE_DT_DOUBLE:
        return accumulate_double(how, to, from, n, scalar);
    case TARE_DT_INT8:
        return accumulate_i8(how, to, from, n, scalar);
    case TARE_DT_INT16:
        return accumulate_i16(how, to, from, n, scalar);
    case TARE_DT_INT32:
        return accumulate_i32(how, to, from, n, scalar);
    case TARE_DT_INT64:
        return accumulate_i64(how, to, from, n, scalar);
    case TARE_DT_UINT8:
        return accumulate_u8(how, to, from, n, scalar);
    case TARE_DT_UINT16:
        return accumulate_u16(how, to, from, n, scalar);
    case TARE_DT_UINT32:
        return accumulate_u32(how, to, from, n, scalar);
    case TARE_DT_UINT64:
        return accumulate_u64(how, to, from, n, scalar);
    case TARE_DT_COMPLEX64:
        return accumulate_c64(how, to, from, n, scalar);
    case TARE_DT_COMPLEX128:
        return accumulate_c128(how, to, from, n, scalar);
    case TARE_DT_HALF:
        return accumulate_small(how, to, from, n, scalar, true);
    case TARE_DT_BFLOAT16:
        return accumulate_small(how, to, from, n, scalar, false);
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "arithmetic on %s", tare_dtype_name(dtype));
    }
}
