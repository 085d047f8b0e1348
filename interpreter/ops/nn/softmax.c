/* Softmax and LogSoftmax along the last axis: exp(x - max), sums in double (docs/numerics.md: softmax-max-shift). */
#include "base/tensor/number.h"
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/kernels/elementary.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"

#include <math.h>

static tare_status infer_softmax(struct tare_infer *infer) {
    if (infer->inputs[0].rank == 0) return TARE_FAIL(TARE_SHAPE, "logits must have >= 1 dimension, got []");
    return tare_infer_same(infer);
}

struct softmax {
    bool logarithm;
};
static const struct softmax softmax_op = { false }, log_softmax_op = { true };

/* Ignores NaN, which propagates through the sum. */
static float greatest_float(const float *x, int64_t n) {
    float lanes[8];
    int64_t i = 0;
    if (n < 8) {
        float most = -INFINITY;
        for (; i < n; i++)
            most = x[i] > most ? x[i] : most;
        return most;
    }
    for (int k = 0; k < 8; k++)
        lanes[k] = -INFINITY;
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; k++)
            lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    }
    for (; i < n; i++)
        lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
    for (int k = 1; k < 8; k++)
        lanes[0] = lanes[k] > lanes[0] ? lanes[k] : lanes[0];
    return lanes[0];
}

/* Lanes as in reductions: element i is added in lane i mod 8, then the lanes in order. */
static double sum_floats(const float *x, int64_t n) {
    double lanes[8] = { 0 };
    int64_t i = 0;
    for (; n < 8 && i < n; i++) /* a lane each */
        lanes[0] += (double)x[i];
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; k++)
            lanes[k] += (double)x[i + k];
    }
    for (; i < n; i++)
        lanes[i % 8] += (double)x[i];
    for (int k = 1; k < 8; k++)
        lanes[0] += lanes[k];
    return lanes[0];
}

static void exp_plain(float *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)tare_exp((double)from[i]);
}

typedef void (*exp_fn)(float *to, const float *from, int64_t count);

/* y * scale + offset; `is_narrow`: so that half and bfloat16, to which y is rounded next, are rounded once. */
static void scale_row(float *y, int64_t n, double scale, double offset, bool is_narrow) {
    for (int64_t i = 0; i < n && is_narrow; i++)
        y[i] = tare_float_to_odd((double)y[i] * scale + offset);
    for (int64_t i = 0; i < n && !is_narrow; i++)
        y[i] = (float)((double)y[i] * scale + offset);
}

/* Several rows, since those of a few classes are shorter than the vectors of the function. */
static void softmax_rows(float *y, const float *x, int64_t rows, int64_t n, exp_fn function, bool is_narrow) {
    for (int64_t at = 0; at < rows * n; at += n) {
        const float shift = greatest_float(x + at, n);
        for (int64_t i = 0; i < n; i++)
            y[at + i] = x[at + i] - shift;
    }
    function(y, y, rows * n);
    for (int64_t at = 0; at < rows * n; at += n)
        scale_row(y + at, n, 1 / sum_floats(y + at, n), 0, is_narrow);
}

static void log_softmax_row(float *y, const float *x, int64_t n, exp_fn function, float *scratch, bool is_narrow) {
    const float shift = greatest_float(x, n);
    for (int64_t i = 0; i < n; i++)
        scratch[i] = x[i] - shift;
    function(scratch, scratch, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - shift;
    scale_row(y, n, 1, -tare_log(sum_floats(scratch, n)), is_narrow);
}

static void softmax_row_of_doubles(double *y, const double *x, int64_t n, bool logarithm) {
    double shift = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        shift = x[i] > shift || isnan(x[i]) ? x[i] : shift;
    for (int64_t i = 0; i < n; i++)
        sum += tare_exp(x[i] - shift);
    for (int64_t i = 0; i < n; i++)
        y[i] = logarithm ? x[i] - shift - tare_log(sum) : tare_exp(x[i] - shift) / sum;
}

static tare_status run_doubles(struct tare_kernel *kernel, int64_t n, bool logarithm) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const double *x = input->data;
    double *row = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)n), *y = kernel->outputs[0].data;
    if (!row) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < input->elements; i += n) {
        softmax_row_of_doubles(row, x + i, n, logarithm); /* y may alias x */
        for (int64_t k = 0; k < n; k++)
            y[i + k] = row[k];
    }
    return TARE_OK;
}

static tare_status run_any(struct tare_kernel *kernel, exp_fn function) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const bool logarithm = ((const struct softmax *)kernel->op->aux)->logarithm;
    if (input->shape.rank == 0) return TARE_FAIL(TARE_SHAPE, "logits must have >= 1 dimension, got []");
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    if (input->elements == 0) return TARE_OK;
    const int64_t n = input->shape.dims[input->shape.rank - 1];
    if (input->dtype == TARE_DT_DOUBLE) return run_doubles(kernel, n, logarithm);
    const bool is_narrow = input->dtype != TARE_DT_FLOAT;
    const float *x = tare_floats_in(kernel, input);
    float *y = tare_floats_out(kernel, 0), *scratch = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)n);
    if (!x || !y || !scratch) return TARE_NO_MEMORY;
    enum { BLOCK = 1024 }; /* elements that stay in the first-level cache */
    const int64_t rows = n < BLOCK && !logarithm ? BLOCK / n : 1;
    for (int64_t i = 0; i < input->elements; i += rows * n) {
        if (logarithm)
            log_softmax_row(y + i, x + i, n, function, scratch, is_narrow);
        else
            softmax_rows(y + i, x + i, input->elements - i < rows * n ? (input->elements - i) / n : rows, n, function,
                         is_narrow);
    }
    tare_floats_round(kernel, 0, y);
    return TARE_OK;
}

static tare_status run_softmax(struct tare_kernel *kernel) {
    return run_any(kernel, tare_exp_floats);
}
static tare_status reference_softmax(struct tare_kernel *kernel) {
    return run_any(kernel, exp_plain);
}

const struct tare_op tare_ops_softmax[] = {
    { .name = "Softmax",
      .infer = infer_softmax,
      .run = run_softmax,
      .reference = reference_softmax,
      .aux = &softmax_op,
      .flags = TARE_OP_IN_PLACE | TARE_OP_PROBABILITY },
    { .name = "LogSoftmax",
      .infer = infer_softmax,
      .run = run_softmax,
      .reference = reference_softmax,
      .aux = &log_softmax_op,
      .flags = TARE_OP_IN_PLACE | TARE_OP_PROBABILITY },
    { 0 },
};
