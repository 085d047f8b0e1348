/* Cumsum, Cumprod and CumulativeLogsumexp along one axis. Real numbers accumulate in double and each element is
 * rounded to the dtype; integers wrap. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/support/axes.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum cumulative { CUMSUM, CUMPROD, CUMLOGSUMEXP };
struct cumulative_op {
    enum cumulative kind;
};
static const struct cumulative_op cumsum_op = { CUMSUM }, cumprod_op = { CUMPROD }, cumlogsumexp_op = { CUMLOGSUMEXP };

typedef _Complex double complex128;

static tare_status infer_cumulative(struct tare_infer *infer) {
    if (infer->inputs[1].rank > 0) return TARE_FAIL(TARE_SHAPE, "axis has rank %d (expected 0)", infer->inputs[1].rank);
    if (infer->inputs[0].rank >= 0 && infer->input_values[1]) {
        int axis;
        TARE_TRY(tare_axis_resolve(&axis, tare_tensor_get_i64(infer->input_values[1], 0), infer->inputs[0].rank));
    }
    return tare_infer_same(infer);
}

/* One line of `size` elements at a distance of `step`, in accumulation order. */
struct line {
    int64_t first, size, step;
    bool exclusive;
};

/* log(exp(a) + exp(b)) without overflow. */
static double log_add(double a, double b) {
    const double high = a > b ? a : b, low = a > b ? b : a;
    if (isnan(a) || isnan(b)) return NAN;
    if (isinf(high)) return high;
    return high + tare_log1p(tare_exp(low - high));
}

static double combine_reals(double a, double x, enum cumulative kind) {
    return kind == CUMSUM ? a + x : kind == CUMPROD ? a * x : log_add(a, x);
}

/* Log-sum-exp starts from the lowest finite number instead of -inf, as TensorFlow does; the exclusive variant
 * returns it. */
static double lowest(int dtype) {
    return dtype == TARE_DT_HALF       ? -65504.0
           : dtype == TARE_DT_BFLOAT16 ? -0x1.fep127
           : dtype == TARE_DT_FLOAT    ? (double)-FLT_MAX
                                       : -DBL_MAX;
}

static void run_reals(struct tare_tensor *to, const struct tare_tensor *from, const struct line *line,
                      enum cumulative kind) {
    double sum = kind == CUMSUM ? 0 : kind == CUMPROD ? 1 : lowest(to->dtype);
    for (int64_t i = 0, at = line->first; i < line->size; i++, at += line->step) {
        const double next = combine_reals(sum, tare_tensor_get_f64(from, at), kind);
        tare_tensor_set_f64(to, at, line->exclusive ? sum : next);
        sum = next;
    }
}

static void run_integers(struct tare_tensor *to, const struct tare_tensor *from, const struct line *line,
                         enum cumulative kind) {
    const size_t size = tare_dtype_size(to->dtype);
    uint64_t sum = kind == CUMPROD;
    for (int64_t i = 0, at = line->first; i < line->size; i++, at += line->step) {
        const uint64_t x = (uint64_t)tare_tensor_get_i64(from, at);
        const uint64_t next = kind == CUMPROD ? sum * x : sum + x;
        memcpy((char *)to->data + (size_t)at * size, line->exclusive ? &sum : &next,
               size); /* little-endian: the low bytes */
        sum = next;
    }
}

static void run_complex(struct tare_tensor *to, const struct tare_tensor *from, const struct line *line,
                        enum cumulative kind) {
    const bool narrow = to->dtype == TARE_DT_COMPLEX64;
    complex128 sum = kind == CUMPROD;
    for (int64_t i = 0, at = line->first; i < line->size; i++, at += line->step) {
        const complex128 x =
            narrow ? (complex128)TARE_CONST_DATA(_Complex float, from)[at] : TARE_CONST_DATA(complex128, from)[at];
        const complex128 next = kind == CUMPROD ? sum * x : sum + x, value = line->exclusive ? sum : next;
        if (narrow)
            TARE_DATA(_Complex float, to)[at] = (_Complex float)value;
        else
            TARE_DATA(complex128, to)[at] = value;
        sum = next;
    }
}

static tare_status run_cumulative(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0], *operand = &kernel->inputs[1];
    const enum cumulative kind = ((const struct cumulative_op *)kernel->op->aux)->kind;
    const bool reverse = tare_node_bool(kernel->node, "reverse", false);
    const enum tare_dtype_class class = tare_dtype_get(input->dtype)->class;
    int axis = 0;
    if (operand->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis must be a scalar (got %lld elements)",
                         (long long)operand->elements);
    TARE_TRY(tare_axis_resolve(&axis, tare_tensor_get_i64(operand, 0), input->shape.rank));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    if (input->elements == 0) return TARE_OK;
    const struct tare_axis_split split = tare_axis_split(&input->shape, axis);
    struct line line = { .size = split.size,
                         .step = reverse ? -split.inner : split.inner,
                         .exclusive = tare_node_bool(kernel->node, "exclusive", false) };
    for (int64_t o = 0; o < split.outer; o++) {
        for (int64_t i = 0; i < split.inner; i++) {
            line.first = (o * split.size + (reverse ? split.size - 1 : 0)) * split.inner + i;
            if (class == TARE_CLASS_COMPLEX)
                run_complex(&kernel->outputs[0], input, &line, kind);
            else if (class == TARE_CLASS_FLOAT)
                run_reals(&kernel->outputs[0], input, &line, kind);
            else
                run_integers(&kernel->outputs[0], input, &line, kind);
        }
    }
    return TARE_OK;
}

#define ROW(op_name, table)                                                                                            \
    { .name = op_name, .infer = infer_cumulative, .run = run_cumulative, .aux = &table, .flags = TARE_OP_REDUCE }

const struct tare_op tare_ops_cumulative[] = {
    ROW("Cumsum", cumsum_op),
    ROW("Cumprod", cumprod_op),
    ROW("CumulativeLogsumexp", cumlogsumexp_op),
    { 0 },
};
