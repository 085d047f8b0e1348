#include "interpreter/ops/support/accumulate.h"

#include "base/tensor/dtype.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <string.h>

/* One function per number type: to[i] = to[i] op from[i], or op from[0] for a scalar. Integers wrap: `wide` is the
 * unsigned type of their sums and products, and `quotient` avoids the one quotient that overflows. Divisors were
 * checked. */
#define LOOP(expression)                                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const number a = to[i], b = from[scalar ? 0 : i];                                                              \
        to[i] = (number)(expression);                                                                                  \
    }                                                                                                                  \
    break

#define NUMBERS(name, type, wide, quotient)                                                                            \
    static void accumulate_##name(enum tare_accumulate how, type *to, const type *from, int64_t n, bool scalar) {      \
        typedef type number;                                                                                           \
        switch (how) {                                                                                                 \
        case TARE_ACCUMULATE_ADD:                                                                                      \
            LOOP((wide)a + (wide)b);                                                                                   \
        case TARE_ACCUMULATE_SUB:                                                                                      \
            LOOP((wide)a - (wide)b);                                                                                   \
        case TARE_ACCUMULATE_MUL:                                                                                      \
            LOOP((wide)a *(wide)b);                                                                                    \
        case TARE_ACCUMULATE_MIN:                                                                                      \
            LOOP(b < a ? b : a);                                                                                       \
        case TARE_ACCUMULATE_MAX:                                                                                      \
            LOOP(a < b ? b : a);                                                                                       \
        case TARE_ACCUMULATE_DIV:                                                                                      \
            LOOP(quotient);                                                                                            \
        }                                                                                                              \
    }
NUMBERS(float, float, float, a / b)
NUMBERS(double, double, double, a / b)
NUMBERS(i8, int8_t, uint32_t, a / b)
NUMBERS(i16, int16_t, uint32_t, a / b)
NUMBERS(u8, uint8_t, uint32_t, a / b)
NUMBERS(u16, uint16_t, uint32_t, a / b)
NUMBERS(u32, uint32_t, uint32_t, a / b)
NUMBERS(u64, uint64_t, uint64_t, a / b)
NUMBERS(i32, int32_t, uint32_t, b == -1 ? (int32_t)(0 - (uint32_t)a) : a / b)
NUMBERS(i64, int64_t, uint64_t, b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
#undef NUMBERS

/* Complex numbers are not ordered: the caller refuses minimum and maximum. */
#define COMPLEX(name, type)                                                                                            \
    static void accumulate_##name(enum tare_accumulate how, type *to, const type *from, int64_t n, bool scalar) {      \
        typedef type number;                                                                                           \
        switch (how) {                                                                                                 \
        case TARE_ACCUMULATE_ADD:                                                                                      \
            LOOP(a + b);                                                                                               \
        case TARE_ACCUMULATE_SUB:                                                                                      \
            LOOP(a - b);                                                                                               \
        case TARE_ACCUMULATE_MUL:                                                                                      \
            LOOP(a *b);                                                                                                \
        case TARE_ACCUMULATE_DIV:                                                                                      \
            LOOP(a / b);                                                                                               \
        default:                                                                                                       \
            break;                                                                                                     \
        }                                                                                                              \
    }
COMPLEX(c64, float complex)
COMPLEX(c128, double complex)
#undef COMPLEX
#undef LOOP

static void accumulate_small(enum tare_accumulate how, uint16_t *to, const uint16_t *from, int64_t n, bool scalar,
                             bool half) {
    for (int64_t i = 0; i < n; i++) {
        const uint16_t other = from[scalar ? 0 : i];
        float a = half ? tare_float_from_half(to[i]) : tare_float_from_bfloat16(to[i]);
        const float b = half ? tare_float_from_half(other) : tare_float_from_bfloat16(other);
        accumulate_float(how, &a, &b, 1, false);
        to[i] = half ? tare_half_from_float(a) : tare_bfloat16_from_float(a);
    }
}

static bool has_zero(const void *values, size_t size, int64_t n) {
    static const uint64_t zero;
    for (int64_t i = 0; i < n; i++)
        if (memcmp((const char *)values + (size_t)i * size, &zero, size) == 0) return true;
    return false;
}

static tare_status check_operands(enum tare_accumulate how, int dtype, const void *from, int64_t n) {
    if (how == TARE_ACCUMULATE_DIV && tare_dtype_is_integer(dtype) && has_zero(from, tare_dtype_size(dtype), n))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "division by zero");
    if ((how == TARE_ACCUMULATE_MIN || how == TARE_ACCUMULATE_MAX) && tare_dtype_is_complex(dtype))
        return TARE_FAIL(TARE_UNSUPPORTED, "complex numbers have no order");
    return TARE_OK;
}

tare_status tare_accumulate(enum tare_accumulate how, int dtype, void *to, const void *from, int64_t n, bool scalar) {
    TARE_TRY(check_operands(how, dtype, from, scalar ? 1 : n));
    switch (dtype) {
    case TARE_DT_FLOAT:
        accumulate_float(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_DOUBLE:
        accumulate_double(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_INT8:
        accumulate_i8(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_INT16:
        accumulate_i16(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_INT32:
        accumulate_i32(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_INT64:
        accumulate_i64(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_UINT8:
        accumulate_u8(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_UINT16:
        accumulate_u16(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_UINT32:
        accumulate_u32(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_UINT64:
        accumulate_u64(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_COMPLEX64:
        accumulate_c64(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_COMPLEX128:
        accumulate_c128(how, to, from, n, scalar);
        return TARE_OK;
    case TARE_DT_HALF:
        accumulate_small(how, to, from, n, scalar, true);
        return TARE_OK;
    case TARE_DT_BFLOAT16:
        accumulate_small(how, to, from, n, scalar, false);
        return TARE_OK;
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "arithmetic on %s", tare_dtype_name(dtype));
    }
}
