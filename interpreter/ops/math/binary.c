/* Element-wise arithmetic of two operands with broadcasting. Integer sums, differences and products wrap; integer
 * division by zero and negative integer powers of integers are errors. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include "base/alloc.h"

#include <string.h>
#include <tgmath.h>

struct binary {
    tare_loop2 loops[TARE_DT_COUNT];
    tare_status (*check)(const struct tare_tensor *y); /* checks integer operands; NULL: all values are valid */
};

static tare_status run_binary(struct tare_kernel *kernel) {
    const struct binary *binary = kernel->op->aux;
    const struct tare_tensor *y = &kernel->inputs[1];
    if (binary->check && tare_dtype_is_integer(y->dtype) && kernel->inputs[0].elements > 0) TARE_TRY(binary->check(y));
    return tare_elementwise_run2(kernel, binary->loops[y->dtype], y->dtype);
}

static tare_status check_divisor(const struct tare_tensor *y) {
    for (int64_t i = 0; i < y->elements; i++) {
        if (tare_tensor_get_i64(y, i) == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Integer division by zero");
    }
    return TARE_OK;
}

static tare_status check_exponent(const struct tare_tensor *y) {
    if (tare_dtype_get(y->dtype)->class != TARE_CLASS_SIGNED) return TARE_OK;
    for (int64_t i = 0; i < y->elements; i++) {
        if (tare_tensor_get_i64(y, i) < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Integers to negative integer powers are not allowed");
    }
    return TARE_OK;
}

/* ---- sums, differences, products ---- */

#define WRAPPING(name, expression)                                                                                     \
    TARE_LOOP2_FLOATS(name, expression)                                                                                \
    TARE_LOOP2_COMPLEX(name, expression)                                                                               \
    TARE_LOOP2_BITS(name, expression)                                                                                  \
    static const struct binary name##_op = {                                                                           \
        .loops = { TARE_BY_FLOATS(name), TARE_BY_COMPLEX(name), TARE_BY_BITS(name) },                                  \
    };
WRAPPING(add, x + y)
WRAPPING(sub, x - y)
WRAPPING(mul, x *y)
#undef WRAPPING

TARE_LOOP2_FLOATS(squared_difference, (x - y) * (x - y))
TARE_LOOP2_COMPLEX(squared_difference, (x - y) * conj(x - y))
TARE_LOOP2_BITS(squared_difference, (x - y) * (x - y))
static const struct binary squared_difference_op = {
    .loops = { TARE_BY_FLOATS(squared_difference), TARE_BY_COMPLEX(squared_difference),
               TARE_BY_BITS(squared_difference) },
};

TARE_LOOP2_FLOATS(mul_no_nan, y == 0 ? 0 : x * y)
TARE_LOOP2_COMPLEX(mul_no_nan, y == 0 ? 0 : x * y)
static const struct binary mul_no_nan_op = { .loops = { TARE_BY_FLOATS(mul_no_nan), TARE_BY_COMPLEX(mul_no_nan) } };

/* ---- quotients and remainders ---- */

/* INT_MIN / -1 wraps to INT_MIN. */
static inline int64_t quotient(int64_t x, int64_t y) {
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
static inline int64_t remainder_of(int64_t x, int64_t y) {
    return y == -1 ? 0 : x % y;
}
static inline int64_t floor_quotient(int64_t x, int64_t y) {
    const int64_t q = quotient(x, y), r = remainder_of(x, y);
    return q - (r != 0 && (r < 0) != (y < 0));
}
static inline int64_t floor_remainder(int64_t x, int64_t y) {
    const int64_t r = remainder_of(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline double floor_fmod(double x, double y) {
    const double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline float floor_fmodf(float x, float y) {
    const float r = fmodf(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

TARE_LOOP2_FLOATS(div, x / y)
TARE_LOOP2_COMPLEX(div, x / y)
TARE_LOOP2_SIGNED(div, quotient(x, y))
TARE_LOOP2_BITS(div, x / y)
static const struct binary div_op = {
    .loops = { TARE_BY_FLOATS(div), TARE_BY_COMPLEX(div), TARE_BY_SIGNED(div), TARE_BY_UNSIGNED(div) },
    .check = check_divisor,
};
static const struct binary real_div_op = { .loops = { TARE_BY_FLOATS(div), TARE_BY_COMPLEX(div) } };
static const struct binary truncate_div_op = {
    .loops = { TARE_BY_SIGNED(div), TARE_BY_UNSIGNED(div) },
    .check = check_divisor,
};

TARE_LOOP2_FLOATS(div_no_nan, y == 0 ? 0 : x / y)
TARE_LOOP2_COMPLEX(div_no_nan, y == 0 ? 0 : x / y)
static const struct binary div_no_nan_op = { .loops = { TARE_BY_FLOATS(div_no_nan), TARE_BY_COMPLEX(div_no_nan) } };

TARE_LOOP2_FLOATS(floor_div, floor(x / y))
TARE_LOOP2_SIGNED(floor_div, floor_quotient(x, y))
static const struct binary floor_div_op = {
    .loops = { TARE_BY_FLOATS(floor_div), TARE_BY_SIGNED(floor_div), TARE_BY_UNSIGNED(div) },
    .check = check_divisor,
};

TARE_LOOP2_BITS(mod, x % y)
TARE_LOOP2_SIGNED(mod, remainder_of(x, y))
TARE_LOOP2_FLOATS(mod, fmod(x, y))
static const struct binary truncate_mod_op = {
    .loops = { TARE_BY_FLOATS(mod), TARE_BY_SIGNED(mod), TARE_BY_UNSIGNED(mod) },
    .check = check_divisor,
};

TARE_LOOP2(floor_mod_f32, float, float, TARE_SAME, TARE_SAME, floor_fmodf(x, y))
TARE_LOOP2(floor_mod_f64, double, double, TARE_SAME, TARE_SAME, floor_fmod(x, y))
TARE_LOOP2(floor_mod_f16, uint16_t, uint16_t, tare_float_from_half, tare_half_from_float, floor_fmodf(x, y))
TARE_LOOP2(floor_mod_bf16, uint16_t, uint16_t, tare_float_from_bfloat16, tare_bfloat16_from_float, floor_fmodf(x, y))
TARE_LOOP2_SIGNED(floor_mod, floor_remainder(x, y))
static const struct binary floor_mod_op = {
    .loops = { TARE_BY_FLOATS(floor_mod), TARE_BY_SIGNED(floor_mod), TARE_BY_UNSIGNED(mod) },
    .check = check_divisor,
};

/* ---- Maximum, Minimum: maximum-keeps-nan (docs/numerics.md): x unless y compares beyond it or is NaN ---- */

TARE_LOOP2_FLOATS(maximum, x < y || isnan(y) ? y : x)
TARE_LOOP2_SIGNED(maximum, x < y ? y : x)
TARE_LOOP2_BITS(maximum, x < y ? y : x)
static const struct binary maximum_op = {
    .loops = { TARE_BY_FLOATS(maximum), TARE_BY_SIGNED(maximum), TARE_BY_UNSIGNED(maximum) },
};
TARE_LOOP2_FLOATS(minimum, y < x || isnan(y) ? y : x)
TARE_LOOP2_SIGNED(minimum, y < x ? y : x)
TARE_LOOP2_BITS(minimum, y < x ? y : x)
static const struct binary minimum_op = {
    .loops = { TARE_BY_FLOATS(minimum), TARE_BY_SIGNED(minimum), TARE_BY_UNSIGNED(minimum) },
};

/* ---- powers and functions of two operands ---- */

/* Wraps like repeated multiplication; y >= 0 for signed types. */
static inline uint64_t power(uint64_t x, uint64_t y) {
    uint64_t result = 1;
    for (; y != 0; y >>= 1, x *= x) {
        if (y & 1) result *= x;
    }
    return result;
}
#define POWER(x, y) _Generic((x), double : tare_pow, default : tare_pow_float)(x, y)
TARE_LOOP2_FLOATS(pow, POWER(x, y))
#undef POWER
TARE_LOOP2_COMPLEX(pow, pow(x, y))
TARE_LOOP2_BITS(pow, power(x, y))
static const struct binary pow_op = {
    .loops = { TARE_BY_FLOATS(pow), TARE_BY_COMPLEX(pow), TARE_BY_BITS(pow) },
    .check = check_exponent,
};

TARE_LOOP2_FLOATS(atan2, (__typeof__(x))tare_atan2((double)x, (double)y))
static const struct binary atan2_op = { .loops = { TARE_BY_FLOATS(atan2) } };

TARE_LOOP2_FLOATS(xdivy, x == 0 ? 0 : x / y)
TARE_LOOP2_COMPLEX(xdivy, x == 0 ? 0 : x / y)
static const struct binary xdivy_op = { .loops = { TARE_BY_FLOATS(xdivy), TARE_BY_COMPLEX(xdivy) } };

TARE_LOOP2_FLOATS(xlogy, x == 0 ? 0 : x * TARE_REAL(tare_log, y))
TARE_LOOP2_COMPLEX(xlogy, x == 0 ? 0 : x * log(y))
static const struct binary xlogy_op = { .loops = { TARE_BY_FLOATS(xlogy), TARE_BY_COMPLEX(xlogy) } };

TARE_LOOP2_FLOATS(xlog1py, x == 0 ? 0 : x * TARE_REAL(tare_log1p, y))
TARE_LOOP2_COMPLEX(xlog1py, x == 0 ? 0 : x * log(1 + y))
static const struct binary xlog1py_op = { .loops = { TARE_BY_FLOATS(xlog1py), TARE_BY_COMPLEX(xlog1py) } };

TARE_LOOP2(nextafter_f32, float, float, TARE_SAME, TARE_SAME, nextafterf(x, y))
TARE_LOOP2(nextafter_f64, double, double, TARE_SAME, TARE_SAME, nextafter(x, y))
static const struct binary nextafter_op = {
    .loops = { [TARE_DT_FLOAT] = nextafter_f32, [TARE_DT_DOUBLE] = nextafter_f64 },
};

/* ---- bits ---- */

TARE_LOOP2_BITS(and, x &y)
static const struct binary and_op = { .loops = { TARE_BY_BITS(and) } };
TARE_LOOP2_BITS(or, x | y)
static const struct binary or_op = { .loops = { TARE_BY_BITS(or) } };
TARE_LOOP2_BITS(xor, x ^ y)
static const struct binary xor_op = { .loops = { TARE_BY_BITS(xor) } };

/* A shift distance outside 0 … bits - 1 is clamped to that range, as in TensorFlow. */
#define DISTANCE(type, y) ((y) < 0 ? 0 : (y) > (int)sizeof(type) * 8 - 1 ? (int)sizeof(type) * 8 - 1 : (int)(y))
#define SHIFTS(suffix, type)                                                                                           \
    TARE_LOOP2(left_##suffix, type, type, TARE_SAME, TARE_SAME, (uint64_t)x << DISTANCE(type, y))                      \
    TARE_LOOP2(right_##suffix, type, type, TARE_SAME, TARE_SAME, x >> DISTANCE(type, y))
#define UNSIGNED_DISTANCE(type, y) ((y) > sizeof(type) * 8 - 1 ? (int)sizeof(type) * 8 - 1 : (int)(y))
#define UNSIGNED_SHIFTS(suffix, type)                                                                                  \
    TARE_LOOP2(left_##suffix, type, type, TARE_SAME, TARE_SAME, (uint64_t)x << UNSIGNED_DISTANCE(type, y))             \
    TARE_LOOP2(right_##suffix, type, type, TARE_SAME, TARE_SAME, x >> UNSIGNED_DISTANCE(type, y))
SHIFTS(i8, int8_t)
SHIFTS(i16, int16_t)
SHIFTS(i32, int32_t)
SHIFTS(i64, int64_t)
UNSIGNED_SHIFTS(u8, uint8_t)
UNSIGNED_SHIFTS(u16, uint16_t)
UNSIGNED_SHIFTS(u32, uint32_t)
UNSIGNED_SHIFTS(u64, uint64_t)
#undef SHIFTS
#undef UNSIGNED_SHIFTS
#undef DISTANCE
#undef UNSIGNED_DISTANCE
static const struct binary left_op = { .loops = { TARE_BY_SIGNED(left), TARE_BY_UNSIGNED(left) } };
static const struct binary right_op = { .loops = { TARE_BY_SIGNED(right), TARE_BY_UNSIGNED(right) } };

/* ---- Add: concatenation of strings ---- */

static tare_status join(struct tare_kernel *kernel, int64_t at, const struct tare_str *a, const struct tare_str *b) {
    size_t size;
    if (!tare_add_size(&size, a->size, b->size))
        return TARE_FAIL(TARE_NO_MEMORY, "the joined string exceeds 2^64 bytes");
    char *both = tare_arena_alloc(kernel->scratch, size);
    if (!both) return TARE_NO_MEMORY;
    if (a->size > 0) memcpy(both, a->data, a->size);
    if (b->size > 0) memcpy(both + a->size, b->data, b->size);
    return tare_tensor_set_string(&kernel->outputs[0], at, both, size);
}

static tare_status run_add(struct tare_kernel *kernel) {
    struct tare_broadcast plan;
    struct tare_broadcast_walk walk = { .offsets = { 0 } };
    if (kernel->inputs[0].dtype != TARE_DT_STRING) return run_binary(kernel);
    TARE_TRY(tare_broadcast_plan(&plan, kernel->inputs, 2));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &plan.shape));
    const struct tare_str *a = kernel->inputs[0].data, *b = kernel->inputs[1].data;
    for (int64_t row = 0, at = 0; at < kernel->outputs[0].elements; row++) {
        for (int64_t i = 0; i < plan.inner; i++, at++)
            TARE_TRY(join(kernel, at, &a[walk.offsets[0] + (plan.is_one[0] ? 0 : i)],
                          &b[walk.offsets[1] + (plan.is_one[1] ? 0 : i)]));
        tare_broadcast_next(&walk, &plan);
    }
    return TARE_OK;
}

/* ---- rows ---- */

#define ROW_OF(op_name, function, table, more)                                                                         \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_broadcast, .run = function, .aux = &table,                                \
        .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE | (more)                                                       \
    }
#define ROW(op_name, table) ROW_OF(op_name, run_binary, table, 0)
#define ARITHMETIC_ROW(op_name, table) ROW_OF(op_name, run_binary, table, TARE_OP_ARITHMETIC)

const struct tare_op tare_ops_binary[] = {
    ROW_OF("Add", run_add, add_op, TARE_OP_ARITHMETIC),
    ARITHMETIC_ROW("AddV2", add_op),
    ARITHMETIC_ROW("Sub", sub_op),
    ARITHMETIC_ROW("Mul", mul_op),
    ARITHMETIC_ROW("MulNoNan", mul_no_nan_op),
    ROW("SquaredDifference", squared_difference_op),
    ARITHMETIC_ROW("Div", div_op),
    ARITHMETIC_ROW("RealDiv", real_div_op),
    ARITHMETIC_ROW("DivNoNan", div_no_nan_op),
    ARITHMETIC_ROW("TruncateDiv", truncate_div_op),
    ARITHMETIC_ROW("FloorDiv", floor_div_op),
    ARITHMETIC_ROW("FloorMod", floor_mod_op),
    ARITHMETIC_ROW("Mod", truncate_mod_op),
    ARITHMETIC_ROW("TruncateMod", truncate_mod_op),
    ARITHMETIC_ROW("Maximum", maximum_op),
    ARITHMETIC_ROW("Minimum", minimum_op),
    ROW("Pow", pow_op),
    ROW_OF("Atan2", run_binary, atan2_op, 0),
    ROW("Xdivy", xdivy_op),
    ROW("Xlogy", xlogy_op),
    ROW("Xlog1py", xlog1py_op),
    ROW_OF("NextAfter", run_binary, nextafter_op, 0),
    ROW("BitwiseAnd", and_op),
    ROW("BitwiseOr", or_op),
    ROW("BitwiseXor", xor_op),
    ROW("LeftShift", left_op),
    ROW("RightShift", right_op),
    { 0 },
};
