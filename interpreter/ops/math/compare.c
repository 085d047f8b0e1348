/* Comparisons and logical operations. A comparison with NaN is false, except that NotEqual is true. */
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <string.h>
#include <tgmath.h>

struct comparison {
    tare_loop2 loops[TARE_DT_COUNT];
    bool unequal; /* result for operands of incompatible shapes when incompatible_shape_error is false */
};

static bool same_string(const struct tare_str *a, const struct tare_str *b) {
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

#define TESTS(name, expression)                                                                                        \
    TARE_TEST2_FLOATS(name, expression)                                                                                \
    TARE_TEST2_SIGNED(name, expression)                                                                                \
    TARE_TEST2_UNSIGNED(name, expression)
#define EQUALITY(name, expression, sign, value)                                                                        \
    TESTS(name, expression)                                                                                            \
    TARE_TEST2_COMPLEX(name, expression)                                                                               \
    TARE_LOOP2(name##_string, struct tare_str, bool, TARE_SAME, TARE_SAME, sign same_string(&x, &y))                   \
    static const struct comparison name##_op = {                                                                       \
        .loops = { TARE_BY_FLOATS(name), TARE_BY_SIGNED(name), TARE_BY_UNSIGNED(name),                                 \
                   TARE_BY_COMPLEX(name), [TARE_DT_BOOL] = name##_u8, [TARE_DT_STRING] = name##_string,                \
                   [TARE_DT_QINT8] = name##_i8, [TARE_DT_QUINT8] = name##_u8, [TARE_DT_QINT16] = name##_i16,           \
                   [TARE_DT_QUINT16] = name##_u16, [TARE_DT_QINT32] = name##_i32 },                                    \
        .unequal = value,                                                                                              \
    };
#define ORDER(name, expression)                                                                                        \
    TESTS(name, expression)                                                                                            \
    static const struct comparison name##_op = {                                                                       \
        .loops = { TARE_BY_FLOATS(name), TARE_BY_SIGNED(name), TARE_BY_UNSIGNED(name) },                               \
    };
EQUALITY(equal, x == y, , false)
EQUALITY(not_equal, x != y, !, true)
ORDER(less, x < y)
ORDER(less_equal, x <= y)
ORDER(greater, x > y)
ORDER(greater_equal, x >= y)
#undef TESTS
#undef EQUALITY
#undef ORDER

TARE_LOOP2(and_bool, bool, bool, TARE_SAME, TARE_SAME, x &&y)
TARE_LOOP2(or_bool, bool, bool, TARE_SAME, TARE_SAME, x || y)
static const struct comparison and_op = { .loops = { [TARE_DT_BOOL] = and_bool } };
static const struct comparison or_op = { .loops = { [TARE_DT_BOOL] = or_bool } };

static tare_status run_comparison(struct tare_kernel *kernel) {
    const struct comparison *comparison = kernel->op->aux;
    return tare_elementwise_run2(kernel, comparison->loops[kernel->inputs[0].dtype], TARE_DT_BOOL);
}

/* ---- Equal and NotEqual of operands with incompatible shapes ---- */

static tare_status infer_equality(struct tare_infer *infer) {
    const struct tare_shape *a = &infer->inputs[0], *b = &infer->inputs[1];
    if (tare_node_bool(infer->node, "incompatible_shape_error", true)) return tare_infer_broadcast(infer);
    if (!tare_shape_is_known(a) || !tare_shape_is_known(b)) return TARE_OK;
    if (tare_shape_broadcast(&infer->outputs[0], a, b) == TARE_OK) return TARE_OK;
    tare_error_clear();
    infer->outputs[0] = tare_shape_scalar();
    return TARE_OK;
}

static tare_status run_equality(struct tare_kernel *kernel) {
    const struct comparison *comparison = kernel->op->aux;
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_shape shape;
    if (tare_node_bool(kernel->node, "incompatible_shape_error", true)) return run_comparison(kernel);
    if (tare_shape_broadcast(&shape, &kernel->inputs[0].shape, &kernel->inputs[1].shape) == TARE_OK)
        return run_comparison(kernel);
    tare_error_clear();
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &scalar));
    TARE_DATA(bool, &kernel->outputs[0])[0] = comparison->unequal;
    return TARE_OK;
}

/* ---- ApproximateEqual: |x - y| < tolerance, with tolerance rounded to the dtype first ---- */

#define DISTANCE(type, working, load, store)                                                                           \
    do {                                                                                                               \
        const type *left = x->data, *right = kernel->inputs[1].data;                                                   \
        const __typeof__(fabs((working)0)) limit = fabs((working)load((type)store(tolerance)));                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const working p = load(left[i]), q = load(right[i]);                                                       \
            to[i] = fabs(p - q) < limit;                                                                               \
        }                                                                                                              \
    } while (0)

static tare_status run_approximate(struct tare_kernel *kernel) {
    const float tolerance = tare_node_float(kernel->node, "tolerance", 1e-5f);
    const struct tare_tensor *x = &kernel->inputs[0];
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    if (!tare_shape_equal(&x->shape, &kernel->inputs[1].shape))
        return TARE_FAIL(TARE_SHAPE, "x and y must be of the same shape (got %s and %s)", tare_shape_text(a, &x->shape),
                         tare_shape_text(b, &kernel->inputs[1].shape));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &x->shape));
    bool *to = kernel->outputs[0].data;
    const int64_t count = x->elements;
    switch (x->dtype) {
    case TARE_DT_FLOAT:
        DISTANCE(float, float, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case TARE_DT_DOUBLE:
        DISTANCE(double, double, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case TARE_DT_HALF:
        DISTANCE(uint16_t, float, tare_float_from_half, tare_half_from_float);
        return TARE_OK;
    case TARE_DT_BFLOAT16:
        DISTANCE(uint16_t, float, tare_float_from_bfloat16, tare_bfloat16_from_float);
        return TARE_OK;
    case TARE_DT_COMPLEX64:
        DISTANCE(_Complex float, _Complex float, TARE_SAME, TARE_SAME);
        return TARE_OK;
    case TARE_DT_COMPLEX128:
        DISTANCE(_Complex double, _Complex double, TARE_SAME, TARE_SAME);
        return TARE_OK;
    default:
        break;
    }
    if (!tare_dtype_is_integer(x->dtype)) return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(x->dtype));
    const uint64_t limit = tolerance < 1 ? 0 : (uint64_t)tolerance;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t p = (uint64_t)tare_tensor_get_i64(x, i),
                       q = (uint64_t)tare_tensor_get_i64(&kernel->inputs[1], i);
        const bool above = x->dtype == TARE_DT_UINT64 ? p > q : (int64_t)p > (int64_t)q;
        to[i] = (above ? p - q : q - p) < limit;
    }
    return TARE_OK;
}
#undef DISTANCE

#define ORDER_ROW(op_name, table)                                                                                      \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_broadcast, .run = run_comparison, .aux = &table,                          \
        .flags = TARE_OP_ELEMENTWISE | TARE_OP_DISCRETE                                                                \
    }
#define EQUALITY_ROW(op_name, table)                                                                                   \
    {                                                                                                                  \
        .name = op_name, .infer = infer_equality, .run = run_equality, .aux = &table,                                  \
        .flags = TARE_OP_ELEMENTWISE | TARE_OP_DISCRETE                                                                \
    }
#define LOGIC_ROW(op_name, table)                                                                                      \
    {                                                                                                                  \
        .name = op_name, .infer = tare_infer_broadcast, .run = run_comparison, .aux = &table,                          \
        .flags = TARE_OP_ELEMENTWISE                                                                                   \
    }

const struct tare_op tare_ops_compare[] = {
    EQUALITY_ROW("Equal", equal_op),
    EQUALITY_ROW("NotEqual", not_equal_op),
    ORDER_ROW("Less", less_op),
    ORDER_ROW("LessEqual", less_equal_op),
    ORDER_ROW("Greater", greater_op),
    ORDER_ROW("GreaterEqual", greater_equal_op),
    LOGIC_ROW("LogicalAnd", and_op),
    LOGIC_ROW("LogicalOr", or_op),
    { .name = "ApproximateEqual",
      .infer = tare_infer_broadcast,
      .run = run_approximate,
      .flags = TARE_OP_ELEMENTWISE | TARE_OP_DISCRETE },
    { 0 },
};
