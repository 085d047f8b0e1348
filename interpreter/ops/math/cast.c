/* Dtype conversions: Cast between any two numeric dtypes, and Bitcast.
 *
 * cast-float-to-int (docs/numerics.md): conversion truncates toward zero. Out-of-range values and NaN produce what
 * x86-64 instructions produce for the wider type that TensorFlow's CPU kernels convert through: the minimum for
 * signed 32-bit and 64-bit results, the low bits of the 32-bit conversion for narrower ones. */
#include "interpreter/ops/families.h"
#include "base/tensor/float8.h"
#include "base/tensor/narrow.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/loops.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- float to integer, defined for all inputs ---- */

static inline int32_t int32_of(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static inline int64_t int64_of(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
/* The low half of the 64-bit conversion, as compilers generate for uint32 on x86-64. */
static inline uint32_t uint32_of(double x) {
    return (uint32_t)int64_of(x);
}
/* From 2^63 on: converts the value minus 2^63 and sets the top bit again. */
static inline uint64_t uint64_of(double x) {
    if (x < 0x1p63) return (uint64_t)int64_of(x);
    return (uint64_t)int64_of(x - 0x1p63) ^ (UINT64_C(1) << 63);
}

/* ---- one loop per pair of storage types ---- */

typedef void (*cast_loop)(void *to, const void *from, int64_t count);

/* Readers return the stored value as `type`, without rounding. */
#define READ_AS_IS(v) (v)
#define CAST_LOOP(name, from_type, to_type, read, write)                                                               \
    static void name(void *to_, const void *from_, int64_t count) {                                                    \
        to_type *to = to_;                                                                                             \
        const from_type *from = from_;                                                                                 \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (to_type)write(read(from[i]));                                                                     \
    }

/* Writers from a real number (float or double), one per target dtype. */
#define TO_F32(v) ((float)(v))
#define TO_F64(v) ((double)(v))
#define TO_F16(v) tare_half_from_float((float)(v))
#define TO_BF16(v) tare_bfloat16_from_float((float)(v))
#define TO_I8(v) int32_of((double)(v))
#define TO_I16(v) int32_of((double)(v))
#define TO_I32(v) int32_of((double)(v))
#define TO_I64(v) int64_of((double)(v))
#define TO_U8(v) int32_of((double)(v))
#define TO_U16(v) int32_of((double)(v))
#define TO_U32(v) uint32_of((double)(v))
#define TO_U64(v) uint64_of((double)(v))
#define TO_BOOL(v) ((v) != 0)
/* Integers convert modulo 2^n. */
#define WRAP(v) (v)

/* Loops from one real source type to every target type. */
#define FROM_REAL(s, type, read)                                                                                       \
    CAST_LOOP(s##_f32, type, float, read, TO_F32)                                                                      \
    CAST_LOOP(s##_f64, type, double, read, TO_F64)                                                                     \
    CAST_LOOP(s##_f16, type, uint16_t, read, TO_F16)                                                                   \
    CAST_LOOP(s##_bf16, type, uint16_t, read, TO_BF16)                                                                 \
    CAST_LOOP(s##_i8, type, int8_t, read, TO_I8)                                                                       \
    CAST_LOOP(s##_i16, type, int16_t, read, TO_I16)                                                                    \
    CAST_LOOP(s##_i32, type, int32_t, read, TO_I32)                                                                    \
    CAST_LOOP(s##_i64, type, int64_t, read, TO_I64)                                                                    \
    CAST_LOOP(s##_u8, type, uint8_t, read, TO_U8)                                                                      \
    CAST_LOOP(s##_u16, type, uint16_t, read, TO_U16)                                                                   \
    CAST_LOOP(s##_u32, type, uint32_t, read, TO_U32)                                                                   \
    CAST_LOOP(s##_u64, type, uint64_t, read, TO_U64)                                                                   \
    CAST_LOOP(s##_bool, type, bool, read, TO_BOOL)                                                                     \
    CAST_LOOP(s##_c64, type, _Complex float, read, TO_F32)                                                             \
    CAST_LOOP(s##_c128, type, _Complex double, read, TO_F64)
/* Loops from one integer source type to every target type. */
#define FROM_INT(s, type)                                                                                              \
    CAST_LOOP(s##_f32, type, float, READ_AS_IS, TO_F32)                                                                \
    CAST_LOOP(s##_f64, type, double, READ_AS_IS, TO_F64)                                                               \
    CAST_LOOP(s##_f16, type, uint16_t, READ_AS_IS, TO_F16)                                                             \
    CAST_LOOP(s##_bf16, type, uint16_t, READ_AS_IS, TO_BF16)                                                           \
    CAST_LOOP(s##_i8, type, int8_t, READ_AS_IS, WRAP)                                                                  \
    CAST_LOOP(s##_i16, type, int16_t, READ_AS_IS, WRAP)                                                                \
    CAST_LOOP(s##_i32, type, int32_t, READ_AS_IS, WRAP)                                                                \
    CAST_LOOP(s##_i64, type, int64_t, READ_AS_IS, WRAP)                                                                \
    CAST_LOOP(s##_u8, type, uint8_t, READ_AS_IS, WRAP)                                                                 \
    CAST_LOOP(s##_u16, type, uint16_t, READ_AS_IS, WRAP)                                                               \
    CAST_LOOP(s##_u32, type, uint32_t, READ_AS_IS, WRAP)                                                               \
    CAST_LOOP(s##_u64, type, uint64_t, READ_AS_IS, WRAP)                                                               \
    CAST_LOOP(s##_bool, type, bool, READ_AS_IS, TO_BOOL)                                                               \
    CAST_LOOP(s##_c64, type, _Complex float, READ_AS_IS, TO_F32)                                                       \
    CAST_LOOP(s##_c128, type, _Complex double, READ_AS_IS, TO_F64)

FROM_REAL(f32, float, READ_AS_IS)
FROM_REAL(f64, double, READ_AS_IS)
FROM_REAL(f16, uint16_t, tare_float_from_half)
FROM_REAL(bf16, uint16_t, tare_float_from_bfloat16)
FROM_INT(i8, int8_t)
FROM_INT(i16, int16_t)
FROM_INT(i32, int32_t)
FROM_INT(i64, int64_t)
FROM_INT(u8, uint8_t)
FROM_INT(u16, uint16_t)
FROM_INT(u32, uint32_t)
FROM_INT(u64, uint64_t)
FROM_INT(bool, bool)

/* The imaginary part is discarded; a cast to bool is true if either part is non-zero. */
FROM_REAL(c64real, _Complex float, crealf)
FROM_REAL(c128real, _Complex double, creal)
CAST_LOOP(c64_bool, _Complex float, bool, READ_AS_IS, TO_BOOL)
CAST_LOOP(c128_bool, _Complex double, bool, READ_AS_IS, TO_BOOL)
CAST_LOOP(c64_c128, _Complex float, _Complex double, READ_AS_IS, WRAP)
CAST_LOOP(c128_c64, _Complex double, _Complex float, READ_AS_IS, WRAP)

/* ---- the table: source dtype, target dtype ---- */

/* Quantized dtypes and the 4-bit and 2-bit integers use the loops of their storage type; the latter are wrapped to
 * their width afterwards. */
#define ROW(s)                                                                                                         \
    {                                                                                                                  \
        [TARE_DT_FLOAT] = s##_f32, [TARE_DT_DOUBLE] = s##_f64, [TARE_DT_HALF] = s##_f16,                               \
        [TARE_DT_BFLOAT16] = s##_bf16, [TARE_DT_INT8] = s##_i8, [TARE_DT_INT16] = s##_i16, [TARE_DT_INT32] = s##_i32,  \
        [TARE_DT_INT64] = s##_i64, [TARE_DT_UINT8] = s##_u8, [TARE_DT_UINT16] = s##_u16, [TARE_DT_UINT32] = s##_u32,   \
        [TARE_DT_UINT64] = s##_u64, [TARE_DT_BOOL] = s##_bool, [TARE_DT_COMPLEX64] = s##_c64,                          \
        [TARE_DT_COMPLEX128] = s##_c128, [TARE_DT_QINT8] = s##_i8, [TARE_DT_QUINT8] = s##_u8,                          \
        [TARE_DT_QINT16] = s##_i16, [TARE_DT_QUINT16] = s##_u16, [TARE_DT_QINT32] = s##_i32, [TARE_DT_INT4] = s##_i8,  \
        [TARE_DT_UINT4] = s##_u8, [TARE_DT_INT2] = s##_i8, [TARE_DT_UINT2] = s##_u8                                    \
    }

static const cast_loop loops[TARE_DT_COUNT][TARE_DT_COUNT] = {
    [TARE_DT_FLOAT] = ROW(f32),     [TARE_DT_DOUBLE] = ROW(f64),        [TARE_DT_HALF] = ROW(f16),
    [TARE_DT_BFLOAT16] = ROW(bf16), [TARE_DT_INT8] = ROW(i8),           [TARE_DT_INT16] = ROW(i16),
    [TARE_DT_INT32] = ROW(i32),     [TARE_DT_INT64] = ROW(i64),         [TARE_DT_UINT8] = ROW(u8),
    [TARE_DT_UINT16] = ROW(u16),    [TARE_DT_UINT32] = ROW(u32),        [TARE_DT_UINT64] = ROW(u64),
    [TARE_DT_BOOL] = ROW(bool),     [TARE_DT_COMPLEX64] = ROW(c64real), [TARE_DT_COMPLEX128] = ROW(c128real),
    [TARE_DT_QINT8] = ROW(i8),      [TARE_DT_QUINT8] = ROW(u8),         [TARE_DT_QINT16] = ROW(i16),
    [TARE_DT_QUINT16] = ROW(u16),   [TARE_DT_QINT32] = ROW(i32),        [TARE_DT_INT4] = ROW(i8),
    [TARE_DT_UINT4] = ROW(u8),      [TARE_DT_INT2] = ROW(i8),           [TARE_DT_UINT2] = ROW(u8),
};
#undef ROW

static cast_loop find_loop(int from, int to) {
    const bool c64 = from == TARE_DT_COMPLEX64, c128 = from == TARE_DT_COMPLEX128;
    if (c64 && to == TARE_DT_BOOL) return c64_bool;
    if (c128 && to == TARE_DT_BOOL) return c128_bool;
    if (c64 && to == TARE_DT_COMPLEX128) return c64_c128;
    if (c128 && to == TARE_DT_COMPLEX64) return c128_c64;
    return loops[from][to];
}

/* ---- Truncate: clears the fraction bits that the target cannot represent before the conversion ---- */

static int fraction_bits(int dtype) {
    switch (dtype) {
    case TARE_DT_DOUBLE:
        return 52;
    case TARE_DT_FLOAT:
        return 23;
    case TARE_DT_HALF:
        return 10;
    case TARE_DT_BFLOAT16:
        return 7;
    default:
        return -1;
    }
}

/* Returns a copy of the input with the low `cut` fraction bits cleared and NaN preserved, or NULL without memory. */
static const void *cut_fraction(struct tare_kernel *kernel, int cut) {
    const struct tare_tensor *input = &kernel->inputs[0];
    char *copy = tare_arena_alloc(kernel->scratch, tare_tensor_bytes(input));
    if (!copy) return NULL;
    memcpy(copy, input->data, tare_tensor_bytes(input));
    for (int64_t i = 0; i < input->elements; i++) {
        if (isnan(tare_tensor_get_f64(input, i))) continue;
        if (input->dtype == TARE_DT_DOUBLE)
            ((uint64_t *)copy)[i] &= ~((UINT64_C(1) << cut) - 1);
        else if (input->dtype == TARE_DT_FLOAT)
            ((uint32_t *)copy)[i] &= ~((UINT32_C(1) << cut) - 1);
        else
            ((uint16_t *)copy)[i] &= (uint16_t) ~((1u << cut) - 1);
    }
    return copy;
}

/* Converts from and to 8-bit floats. Every 8-bit float is exact in float, so casts from them go through float; casts
 * to them go through double, which represents every source value closely enough to round once. */
static tare_status cast_float8(struct tare_kernel *kernel, int to) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_float8 *source = tare_float8_format(input->dtype), *target = tare_float8_format(to);
    const cast_loop loop =
        source ? find_loop(TARE_DT_FLOAT, target ? TARE_DT_DOUBLE : to) : find_loop(input->dtype, TARE_DT_DOUBLE);
    const size_t n = (size_t)input->elements;
    if (target && input->dtype == TARE_DT_FLOAT) {
        TARE_TRY(tare_kernel_output(kernel, 0, to, &input->shape));
        tare_float8_encode_all(TARE_DATA(uint8_t, &kernel->outputs[0]), target, TARE_CONST_DATA(float, input), n);
        tare_tensor_narrow(&kernel->outputs[0]);
        return TARE_OK;
    }
    if (source && to == TARE_DT_FLOAT) {
        TARE_TRY(tare_kernel_output(kernel, 0, to, &input->shape));
        tare_float8_decode_all(TARE_DATA(float, &kernel->outputs[0]), source, TARE_CONST_DATA(uint8_t, input), n);
        return TARE_OK;
    }
    float *floats = source ? TARE_NEW_ARRAY(kernel->scratch, float, n + 1) : NULL;
    double *doubles = target ? TARE_NEW_ARRAY(kernel->scratch, double, n + 1) : NULL;
    if (!loop)
        return TARE_FAIL(TARE_UNSUPPORTED, "Cast %s to %s is not supported", tare_dtype_name(input->dtype),
                         tare_dtype_name(to));
    if ((source && !floats) || (target && !doubles)) return TARE_NO_MEMORY;
    TARE_TRY(tare_kernel_output(kernel, 0, to, &input->shape));
    if (source) tare_float8_decode_all(floats, source, TARE_CONST_DATA(uint8_t, input), n);
    if (n)
        loop(target ? (void *)doubles : kernel->outputs[0].data, source ? (const void *)floats : input->data,
             (int64_t)n);
    for (size_t i = 0; target && i < n; i++)
        TARE_DATA(uint8_t, &kernel->outputs[0])[i] = tare_float8_encode(target, doubles[i]);
    tare_tensor_narrow(&kernel->outputs[0]);
    return TARE_OK;
}

static tare_status run_cast(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const int to = tare_dtype_base(kernel->node->output_dtypes[0]);
    if (input->dtype == to) return tare_kernel_forward(kernel, 0, 0);
    if (tare_float8_format(input->dtype) || tare_float8_format(to)) return cast_float8(kernel, to);
    const cast_loop loop = find_loop(input->dtype, to);
    if (!loop)
        return TARE_FAIL(TARE_UNSUPPORTED, "Cast %s to %s is not supported", tare_dtype_name(input->dtype),
                         tare_dtype_name(to));
    TARE_TRY(tare_kernel_output(kernel, 0, to, &input->shape));
    const void *from = input->data;
    const int cut = fraction_bits(input->dtype) - fraction_bits(to);
    if (input->elements > 0 && fraction_bits(to) >= 0 && cut > 0 && tare_node_bool(kernel->node, "Truncate", false))
        from = cut_fraction(kernel, cut);
    if (input->elements > 0 && !from) return TARE_NO_MEMORY;
    loop(kernel->outputs[0].data, from, input->elements);
    tare_tensor_narrow(&kernel->outputs[0]);
    return TARE_OK;
}

/* ---- Bitcast ---- */

/* A smaller element type adds an innermost dimension; a larger one consumes it. */
static tare_status bitcast_shape(struct tare_shape *out, const struct tare_shape *in, int from, int to) {
    const int64_t from_size = (int64_t)tare_dtype_size(from), to_size = (int64_t)tare_dtype_size(to);
    *out = *in;
    if (in->rank < 0 || from_size == to_size) return TARE_OK;
    if (from_size > to_size) {
        if (in->rank == TARE_MAX_RANK)
            return TARE_FAIL(TARE_SHAPE, "the result has rank %d, which exceeds the maximum", in->rank + 1);
        out->dims[out->rank++] = from_size / to_size;
        return TARE_OK;
    }
    const int64_t last = in->rank == 0 ? 0 : in->dims[in->rank - 1];
    if (last >= 0 && last != to_size / from_size)
        return TARE_FAIL(TARE_SHAPE, "Cannot bitcast from %s to %s: the last dimension is %lld (expected %lld)",
                         tare_dtype_name(from), tare_dtype_name(to), (long long)last, (long long)(to_size / from_size));
    out->rank--;
    return TARE_OK;
}

static tare_status infer_bitcast(struct tare_infer *infer) {
    return bitcast_shape(&infer->outputs[0], &infer->inputs[0], infer->input_dtypes[0],
                         tare_dtype_base(infer->node->output_dtypes[0]));
}

static tare_status run_bitcast(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const int to = tare_dtype_base(kernel->node->output_dtypes[0]);
    struct tare_shape shape;
    TARE_TRY(bitcast_shape(&shape, &input->shape, input->dtype, to));
    TARE_TRY(tare_kernel_output(kernel, 0, to, &shape));
    if (input->elements > 0) memcpy(kernel->outputs[0].data, input->data, tare_tensor_bytes(input));
    return TARE_OK;
}

const struct tare_op tare_ops_cast[] = {
    { .name = "Cast", .infer = tare_infer_same, .run = run_cast, .flags = TARE_OP_ELEMENTWISE },
    { .name = "Bitcast",
      .infer = infer_bitcast,
      .run = run_bitcast,
      .flags = TARE_OP_MOVE | TARE_OP_FLOAT32 | TARE_OP_DISCRETE },
    { 0 },
};
