/* Assigns values to bins: Bucketize (sorted boundaries, binary search) and HistogramFixedWidth (bins of equal
 * width). */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <math.h>
#include <string.h>

/* The value as it is compared with the boundaries, which are floats: TensorFlow converts integers to float. */
static double comparable(const struct tare_tensor *input, int64_t i) {
    if (tare_dtype_is_floating(input->dtype)) return tare_tensor_get_f64(input, i);
    return (double)(float)tare_tensor_get_i64(input, i);
}

static tare_status run_bucketize(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_attr *boundaries = tare_node_list(kernel->node, "boundaries");
    const size_t n = boundaries ? boundaries->count : 0;
    for (size_t i = 1; i < n; i++) {
        if (boundaries->items[i].f < boundaries->items[i - 1].f)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected sorted boundaries");
    }
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const double x = comparable(input, i);
        size_t low = 0, high = n; /* boundaries[0 … low) <= x < boundaries[high … n) */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (x < (double)boundaries->items[middle].f)
                high = middle;
            else
                low = middle + 1;
        }
        TARE_DATA(int32_t, &kernel->outputs[0])[i] = (int32_t)low;
    }
    return TARE_OK;
}

/* ---- HistogramFixedWidth ---- */

static tare_status infer_histogram(struct tare_infer *infer) {
    int64_t bins = TARE_UNKNOWN_DIM;
    TARE_TRY(tare_operand_rank(infer, 1, "value_range", 1));
    if (tare_operand_scalar(infer, 2, &bins) && bins <= 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "nbins should be a positive number, but got '%lld'", (long long)bins);
    infer->outputs[0] = tare_operand_vector_shape(bins);
    return TARE_OK;
}

/* a[i] - b[j], rounded to the dtype before it becomes a double, as in TensorFlow; 0 if a[i] is less. */
static double distance(const struct tare_tensor *a, int64_t i, const struct tare_tensor *b, int64_t j) {
    if (a->dtype == TARE_DT_FLOAT) {
        const float x = TARE_CONST_DATA(float, a)[i], y = TARE_CONST_DATA(float, b)[j];
        return x > y ? (double)(x - y) : 0;
    }
    if (a->dtype == TARE_DT_DOUBLE) {
        const double x = TARE_CONST_DATA(double, a)[i], y = TARE_CONST_DATA(double, b)[j];
        return x > y ? x - y : 0;
    }
    const int64_t x = tare_tensor_get_i64(a, i), y = tare_tensor_get_i64(b, j);
    return x > y ? (double)((uint64_t)x - (uint64_t)y) : 0;
}

static tare_status check_values(const struct tare_tensor *values) {
    for (int64_t i = 0; tare_dtype_is_floating(values->dtype) && i < values->elements; i++)
        if (isnan(tare_tensor_get_f64(values, i)))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Histogram values must not contain NaN (element %lld)",
                             (long long)i);
    return TARE_OK;
}

/* Values outside the range are counted in the first or the last bin. */
static tare_status run_histogram(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[0], *range = &kernel->inputs[1];
    struct tare_tensor *out = &kernel->outputs[0];
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (range->elements != 2 || kernel->inputs[2].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "value_range has %lld elements and nbins %lld (expected 2 and 1)",
                         (long long)range->elements, (long long)kernel->inputs[2].elements);
    const double low = tare_tensor_get_f64(range, 0), high = tare_tensor_get_f64(range, 1);
    if (!(low < high))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "value_range should satisfy value_range[0] < value_range[1], but got '[%g, %g]'", low, high);
    TARE_TRY(check_values(values));
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->node->output_dtypes[0], &shapes[0]));
    memset(out->data, 0, tare_tensor_bytes(out));
    const double step = distance(range, 1, range, 0) / (double)out->elements;
    for (int64_t i = 0; i < values->elements; i++) {
        const double at = fmin(distance(values, i, range, 0) / step, (double)out->elements - 1);
        const int64_t bin = at > 0 ? (int64_t)at : 0;
        tare_tensor_set_i64(out, bin, tare_tensor_get_i64(out, bin) + 1);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_bins[] = {
    { .name = "HistogramFixedWidth", .infer = infer_histogram, .run = run_histogram, .flags = TARE_OP_DISCRETE },
    { .name = "Bucketize",
      .infer = tare_infer_same,
      .run = run_bucketize,
      .flags = TARE_OP_ELEMENTWISE | TARE_OP_DISCRETE },
    { 0 },
};
