/* Generation of element loops: an op defines one expression of x (and y), and the macros generate a loop for each
 * dtype.
 *
 * The expression is type-generic (<tgmath.h> selects sqrtf for float, sqrt for double, csqrt for complex). half and
 * bfloat16 are computed in float and rounded once. Integer expressions see the value promoted to `wide` type where the
 * macro specifies it; signed arithmetic that may wrap is written on unsigned values. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_LOOPS_H
#define TARE_INTERPRETER_OPS_SUPPORT_LOOPS_H

#include "interpreter/kernels/cpu.h"
#include "base/tensor/dtype.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#define TARE_SAME(value) (value)
/* A function of a double for x of either type. */
#define TARE_REAL(function, x) ((__typeof__(x))function((double)(x)))

/* A complex number of two parts (C11's CMPLX, which not every compiler's library defines). */
#define TARE_COMPLEX64(re, im) __builtin_complex((float)(re), (float)(im))
#define TARE_COMPLEX128(re, im) __builtin_complex((double)(re), (double)(im))

/* ---- one operand ---- */

typedef void (*tare_loop1)(void *to, const void *from, int64_t count);

#define TARE_LOOP1(name, from_type, to_type, load, store, expression)                                                  \
    static void name(void *to_, const void *from_, int64_t count) {                                                    \
        to_type *to = to_;                                                                                             \
        const from_type *from = from_;                                                                                 \
        TARE_INDEPENDENT                                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const __typeof__(load(from[0])) x = load(from[i]);                                                         \
            to[i] = (to_type)store(expression);                                                                        \
        }                                                                                                              \
    }

#define TARE_LOOP1_FLOATS(name, expression)                                                                            \
    TARE_LOOP1(name##_f32, float, float, TARE_SAME, TARE_SAME, expression)                                             \
    TARE_LOOP1(name##_f64, double, double, TARE_SAME, TARE_SAME, expression)                                           \
    TARE_LOOP1(name##_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, expression)                 \
    TARE_LOOP1(name##_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float, expression)
#define TARE_LOOP1_COMPLEX(name, expression)                                                                           \
    TARE_LOOP1(name##_c64, _Complex float, _Complex float, TARE_SAME, TARE_SAME, expression)                           \
    TARE_LOOP1(name##_c128, _Complex double, _Complex double, TARE_SAME, TARE_SAME, expression)
#define TARE_LOOP1_SIGNED(name, expression)                                                                            \
    TARE_LOOP1(name##_i8, int8_t, int8_t, TARE_SAME, TARE_SAME, expression)                                            \
    TARE_LOOP1(name##_i16, int16_t, int16_t, TARE_SAME, TARE_SAME, expression)                                         \
    TARE_LOOP1(name##_i32, int32_t, int32_t, TARE_SAME, TARE_SAME, expression)                                         \
    TARE_LOOP1(name##_i64, int64_t, int64_t, TARE_SAME, TARE_SAME, expression)
/* x as an unsigned number of at least 32 bits: wrapping arithmetic for both signs. */
#define TARE_LOOP1_BITS(name, expression)                                                                              \
    TARE_LOOP1(name##_u8, uint8_t, uint8_t, (uint32_t), TARE_SAME, expression)                                         \
    TARE_LOOP1(name##_u16, uint16_t, uint16_t, (uint32_t), TARE_SAME, expression)                                      \
    TARE_LOOP1(name##_u32, uint32_t, uint32_t, TARE_SAME, TARE_SAME, expression)                                       \
    TARE_LOOP1(name##_u64, uint64_t, uint64_t, TARE_SAME, TARE_SAME, expression)

/* ---- two operands; one of them may be a single element, used for all ---- */

typedef void (*tare_loop2)(void *to, const void *a, const void *b, int64_t count, bool a_is_one, bool b_is_one);

#define TARE_LOOP2(name, from_type, to_type, load, store, expression)                                                  \
    static void name(void *to_, const void *a_, const void *b_, int64_t count, bool a_is_one, bool b_is_one) {         \
        to_type *to = to_;                                                                                             \
        const from_type *a = a_, *b = b_;                                                                              \
        if (a_is_one) {                                                                                                \
            const __typeof__(load(a[0])) x = load(a[0]);                                                               \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                const __typeof__(load(b[0])) y = load(b[i]);                                                           \
                to[i] = (to_type)store(expression);                                                                    \
            }                                                                                                          \
        } else if (b_is_one) {                                                                                         \
            const __typeof__(load(b[0])) y = load(b[0]);                                                               \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                const __typeof__(load(a[0])) x = load(a[i]);                                                           \
                to[i] = (to_type)store(expression);                                                                    \
            }                                                                                                          \
        } else {                                                                                                       \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                const __typeof__(load(a[0])) x = load(a[i]), y = load(b[i]);                                           \
                to[i] = (to_type)store(expression);                                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

#define TARE_LOOP2_FLOATS(name, expression)                                                                            \
    TARE_LOOP2(name##_f32, float, float, TARE_SAME, TARE_SAME, expression)                                             \
    TARE_LOOP2(name##_f64, double, double, TARE_SAME, TARE_SAME, expression)                                           \
    TARE_LOOP2(name##_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, expression)                 \
    TARE_LOOP2(name##_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float, expression)
#define TARE_LOOP2_COMPLEX(name, expression)                                                                           \
    TARE_LOOP2(name##_c64, _Complex float, _Complex float, TARE_SAME, TARE_SAME, expression)                           \
    TARE_LOOP2(name##_c128, _Complex double, _Complex double, TARE_SAME, TARE_SAME, expression)
#define TARE_LOOP2_SIGNED(name, expression)                                                                            \
    TARE_LOOP2(name##_i8, int8_t, int8_t, TARE_SAME, TARE_SAME, expression)                                            \
    TARE_LOOP2(name##_i16, int16_t, int16_t, TARE_SAME, TARE_SAME, expression)                                         \
    TARE_LOOP2(name##_i32, int32_t, int32_t, TARE_SAME, TARE_SAME, expression)                                         \
    TARE_LOOP2(name##_i64, int64_t, int64_t, TARE_SAME, TARE_SAME, expression)
#define TARE_LOOP2_BITS(name, expression)                                                                              \
    TARE_LOOP2(name##_u8, uint8_t, uint8_t, (uint32_t), TARE_SAME, expression)                                         \
    TARE_LOOP2(name##_u16, uint16_t, uint16_t, (uint32_t), TARE_SAME, expression)                                      \
    TARE_LOOP2(name##_u32, uint32_t, uint32_t, TARE_SAME, TARE_SAME, expression)                                       \
    TARE_LOOP2(name##_u64, uint64_t, uint64_t, TARE_SAME, TARE_SAME, expression)
/* The same with bool results. */
#define TARE_TEST2_FLOATS(name, expression)                                                                            \
    TARE_LOOP2(name##_f32, float, bool, TARE_SAME, TARE_SAME, expression)                                              \
    TARE_LOOP2(name##_f64, double, bool, TARE_SAME, TARE_SAME, expression)                                             \
    TARE_LOOP2(name##_f16, uint16_t, bool, tare_float_from_half, TARE_SAME, expression)                                \
    TARE_LOOP2(name##_bf16, uint16_t, bool, tare_float_from_bfloat16, TARE_SAME, expression)
#define TARE_TEST2_COMPLEX(name, expression)                                                                           \
    TARE_LOOP2(name##_c64, _Complex float, bool, TARE_SAME, TARE_SAME, expression)                                     \
    TARE_LOOP2(name##_c128, _Complex double, bool, TARE_SAME, TARE_SAME, expression)
#define TARE_TEST2_SIGNED(name, expression)                                                                            \
    TARE_LOOP2(name##_i8, int8_t, bool, TARE_SAME, TARE_SAME, expression)                                              \
    TARE_LOOP2(name##_i16, int16_t, bool, TARE_SAME, TARE_SAME, expression)                                            \
    TARE_LOOP2(name##_i32, int32_t, bool, TARE_SAME, TARE_SAME, expression)                                            \
    TARE_LOOP2(name##_i64, int64_t, bool, TARE_SAME, TARE_SAME, expression)
#define TARE_TEST2_UNSIGNED(name, expression)                                                                          \
    TARE_LOOP2(name##_u8, uint8_t, bool, TARE_SAME, TARE_SAME, expression)                                             \
    TARE_LOOP2(name##_u16, uint16_t, bool, TARE_SAME, TARE_SAME, expression)                                           \
    TARE_LOOP2(name##_u32, uint32_t, bool, TARE_SAME, TARE_SAME, expression)                                           \
    TARE_LOOP2(name##_u64, uint64_t, bool, TARE_SAME, TARE_SAME, expression)

/* ---- entries of a table by dtype ---- */

#define TARE_BY_FLOATS(name)                                                                                           \
    [TARE_DT_FLOAT] = name##_f32, [TARE_DT_DOUBLE] = name##_f64, [TARE_DT_HALF] = name##_f16,                          \
    [TARE_DT_BFLOAT16] = name##_bf16
#define TARE_BY_COMPLEX(name) [TARE_DT_COMPLEX64] = name##_c64, [TARE_DT_COMPLEX128] = name##_c128
#define TARE_BY_SIGNED(name)                                                                                           \
    [TARE_DT_INT8] = name##_i8, [TARE_DT_INT16] = name##_i16, [TARE_DT_INT32] = name##_i32, [TARE_DT_INT64] = name##_i64
#define TARE_BY_UNSIGNED(name)                                                                                         \
    [TARE_DT_UINT8] = name##_u8, [TARE_DT_UINT16] = name##_u16, [TARE_DT_UINT32] = name##_u32,                         \
    [TARE_DT_UINT64] = name##_u64
/* Loops over bits serve both signs. */
#define TARE_BY_BITS(name)                                                                                             \
    TARE_BY_UNSIGNED(name), [TARE_DT_INT8] = name##_u8, [TARE_DT_INT16] = name##_u16, [TARE_DT_INT32] = name##_u32,    \
                            [TARE_DT_INT64] = name##_u64

#endif
