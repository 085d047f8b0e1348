/* Cross entropy of softmax(features) with labels, and its gradient. Sums are computed in double and rounded once. */
#include "interpreter/kernels/elementary_double.h"
#include "base/alloc.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "base/tensor/number.h"

#include <math.h>

static tare_status infer_sparse(struct tare_infer *infer) {
    struct tare_shape rows = tare_shape_unknown();
    const struct tare_shape *features = &infer->inputs[0];
    if (features->rank >= 0 && features->rank != 2)
        return TARE_FAIL(TARE_SHAPE, "logits must be 2-dimensional (got rank %d)", features->rank);
    if (features->rank == 2) rows = (struct tare_shape){ .rank = 1, .dims = { features->dims[0] } };
    TARE_TRY(tare_shape_merge(&rows, &rows, &infer->inputs[1]));
    infer->outputs[0] = rows;
    infer->outputs[1] = *features;
    return TARE_OK;
}

static tare_status infer_dense(struct tare_infer *infer) {
    struct tare_shape shape;
    TARE_TRY(tare_shape_broadcast(&shape, &infer->inputs[0], &infer->inputs[1]));
    if (shape.rank < 0) return TARE_OK;
    if (shape.rank != 2) return TARE_FAIL(TARE_SHAPE, "logits must be 2-dimensional (got rank %d)", shape.rank);
    infer->outputs[0] = (struct tare_shape){ .rank = 1, .dims = { shape.dims[0] } };
    infer->outputs[1] = shape;
    return TARE_OK;
}

/* Replaces x with x - max; returns the logarithm of the sum of exponentials. */
static double shift_row(double *x, int64_t n) {
    double greatest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        greatest = x[i] > greatest ? x[i] : greatest;
    for (int64_t i = 0; i < n; i++) {
        x[i] -= greatest;
        sum += tare_exp(x[i]);
    }
    return tare_log(sum);
}

/* ---- labels are class indices ---- */

static tare_status run_sparse(struct tare_kernel *kernel) {
    const struct tare_tensor *features = &kernel->inputs[0], *labels = &kernel->inputs[1];
    if (features->shape.rank != 2 || labels->shape.rank != 1 || labels->elements != features->shape.dims[0])
        return TARE_FAIL(TARE_SHAPE, "logits must be [rows, classes] and labels [rows] (got rank %d, and %lld labels)",
                         features->shape.rank, (long long)labels->elements);
    const int64_t classes = features->shape.dims[1];
    if (features->elements == 0 && labels->elements > 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Must have at least one class, but got 0");
    TARE_TRY(tare_kernel_output(kernel, 0, features->dtype, &labels->shape));
    TARE_TRY(tare_kernel_output(kernel, 1, features->dtype, &features->shape));
    double *x = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)classes);
    if (!x) return TARE_NO_MEMORY;
    for (int64_t row = 0; row < labels->elements; row++) {
        const int64_t label = tare_tensor_get_i64(labels, row);
        if (label < 0 || label >= classes)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Received a label value of %lld which is outside the valid range of [0, %lld).",
                             (long long)label, (long long)classes);
        for (int64_t i = 0; i < classes; i++)
            x[i] = tare_tensor_get_f64(features, row * classes + i);
        const double logarithm = shift_row(x, classes);
        tare_tensor_set_f64(&kernel->outputs[0], row, logarithm - x[label]);
        for (int64_t i = 0; i < classes; i++)
            tare_tensor_set_f64(&kernel->outputs[1], row * classes + i, tare_exp(x[i] - logarithm) - (i == label));
    }
    return TARE_OK;
}

/* ---- labels are distributions ---- */

/* Element of an operand in which dimensions of size 1 are broadcast. */
static double broadcast_at(const struct tare_tensor *tensor, int64_t row, int64_t column) {
    const int64_t rows = tensor->shape.rank == 2 ? tensor->shape.dims[0] : 1;
    const int64_t columns = tensor->shape.rank > 0 ? tensor->shape.dims[tensor->shape.rank - 1] : 1;
    return tare_tensor_get_f64(tensor, (rows == 1 ? 0 : row) * columns + (columns == 1 ? 0 : column));
}

static tare_status run_dense(struct tare_kernel *kernel) {
    const struct tare_tensor *features = &kernel->inputs[0], *labels = &kernel->inputs[1];
    struct tare_shape shape;
    TARE_TRY(tare_shape_broadcast(&shape, &features->shape, &labels->shape));
    if (shape.rank != 2) return TARE_FAIL(TARE_SHAPE, "logits must be 2-dimensional (got rank %d)", shape.rank);
    const struct tare_shape rows = { .rank = 1, .dims = { shape.dims[0] } };
    const int64_t classes = shape.dims[1];
    TARE_TRY(tare_kernel_output(kernel, 0, features->dtype, &rows));
    TARE_TRY(tare_kernel_output(kernel, 1, features->dtype, &shape));
    double *x = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)classes);
    if (!x) return TARE_NO_MEMORY;
    for (int64_t row = 0; row < shape.dims[0]; row++) {
        double loss = 0;
        for (int64_t i = 0; i < classes; i++)
            x[i] = broadcast_at(features, row, i);
        const double logarithm = shift_row(x, classes);
        for (int64_t i = 0; i < classes; i++) {
            const double label = broadcast_at(labels, row, i);
            if (label != 0) loss += label * (logarithm - x[i]);
            tare_tensor_set_f64(&kernel->outputs[1], row * classes + i, tare_exp(x[i] - logarithm) - label);
        }
        tare_tensor_set_f64(&kernel->outputs[0], row, loss);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_cross_entropy[] = {
    { .name = "SparseSoftmaxCrossEntropyWithLogits", .infer = infer_sparse, .run = run_sparse },
    { .name = "SoftmaxCrossEntropyWithLogits", .infer = infer_dense, .run = run_dense },
    { 0 },
};
