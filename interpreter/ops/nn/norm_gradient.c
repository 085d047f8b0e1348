/* Gradients of batch normalization and local response normalization. Computed in double and rounded once. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <math.h>
#include <string.h>

static tare_status infer_norm(struct tare_infer *infer) {
    TARE_TRY(tare_shape_merge(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1]));
    infer->outputs[1] = infer->outputs[2] = infer->inputs[2];
    infer->outputs[3] = infer->outputs[4] = tare_shape_make(1, 0);
    return TARE_OK;
}

struct norm {
    const struct tare_tensor *dy, *x, *scale, *mean, *variance;
    int64_t channels, inner; /* number of elements after the channel axis */
    double epsilon;
    bool training;
};

static tare_status open_norm(struct norm *n, const struct tare_kernel *kernel) {
    const char *format = tare_node_string(kernel->node, "data_format", "NHWC");
    *n = (struct norm){ .dy = &kernel->inputs[0],
                        .x = &kernel->inputs[1],
                        .scale = &kernel->inputs[2],
                        .mean = &kernel->inputs[3],
                        .variance = &kernel->inputs[4],
                        .epsilon = tare_node_float(kernel->node, "epsilon", 0.0001f),
                        .training = tare_node_bool(kernel->node, "is_training", true) };
    const struct tare_shape *shape = &n->x->shape;
    if (shape->rank < 2) return TARE_FAIL(TARE_SHAPE, "x has rank %d (expected 4 or 5)", shape->rank);
    const int axis = format[1] == 'C' ? 1 : shape->rank - 1;
    n->channels = shape->dims[axis];
    n->inner = 1;
    for (int d = axis + 1; d < shape->rank; d++)
        n->inner *= shape->dims[d];
    if (n->scale->elements != n->channels || n->mean->elements != n->channels || n->variance->elements != n->channels)
        return TARE_FAIL(TARE_SHAPE, "scale, mean and variance have %lld, %lld and %lld elements (expected %lld)",
                         (long long)n->scale->elements, (long long)n->mean->elements, (long long)n->variance->elements,
                         (long long)n->channels);
    return TARE_OK;
}

static tare_status run_norm(struct tare_kernel *kernel) {
    struct norm n;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(open_norm(&n, kernel));
    for (size_t i = 0; i < 5; i++)
        TARE_TRY(tare_kernel_output(kernel, i, kernel->node->output_dtypes[i], &shapes[i]));
    double *sums = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)n.channels * 2 + 1);
    double *rates = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)n.channels + 1);
    if (!sums || !rates) return TARE_NO_MEMORY;
    double *dots = sums + n.channels;
    for (int64_t c = 0; c < n.channels; c++)
        rates[c] = 1 / sqrt(tare_tensor_get_f64(n.variance, c) + n.epsilon);
    for (int64_t i = 0; i < n.x->elements; i++) {
        const int64_t c = i / n.inner % n.channels;
        const double dy = tare_tensor_get_f64(n.dy, i);
        sums[c] += dy;
        dots[c] += dy * (tare_tensor_get_f64(n.x, i) - tare_tensor_get_f64(n.mean, c)) * rates[c];
    }
    for (int64_t c = 0; c < n.channels; c++) {
        tare_tensor_set_f64(&kernel->outputs[1], c, dots[c]);
        tare_tensor_set_f64(&kernel->outputs[2], c, sums[c]);
    }
    const double count = n.channels ? (double)(n.x->elements / n.channels) : 1;
    for (int64_t i = 0; i < n.x->elements; i++) {
        const int64_t c = i / n.inner % n.channels;
        const double x = (tare_tensor_get_f64(n.x, i) - tare_tensor_get_f64(n.mean, c)) * rates[c];
        double dy = tare_tensor_get_f64(n.dy, i);
        if (n.training) dy -= sums[c] / count + x * dots[c] / count;
        tare_tensor_set_f64(&kernel->outputs[0], i, dy * rates[c] * tare_tensor_get_f64(n.scale, c));
    }
    return TARE_OK;
}

/* ---- local response normalisation ---- */

static tare_status infer_lrn(struct tare_infer *infer) {
    struct tare_shape all = tare_shape_make(4, (int64_t)-1, (int64_t)-1, (int64_t)-1, (int64_t)-1);
    for (size_t i = 0; i < 3; i++)
        TARE_TRY(tare_shape_merge(&all, &all, &infer->inputs[i]));
    infer->outputs[0] = all;
    return TARE_OK;
}

/* One pixel of y_j = x_j * (bias + alpha * sum of squares around j) ^ -beta; every neighbour contributes. */
static void lrn_pixel(double *to, const struct tare_tensor *const tensors[3], int64_t at, int64_t channels,
                      int64_t radius, const double factors[3]) {
    for (int64_t j = 0; j < channels; j++) {
        const int64_t first = radius > j ? 0 : j - radius, last = radius >= channels - j ? channels : j + radius + 1;
        const double dy = tare_tensor_get_f64(tensors[0], at + j), y = tare_tensor_get_f64(tensors[2], at + j);
        double sum = 0;
        for (int64_t k = first; k < last; k++) {
            const double x = tare_tensor_get_f64(tensors[1], at + k);
            sum += x * x;
        }
        const double norm = factors[0] + factors[1] * sum;
        for (int64_t k = first; k < last; k++)
            to[k] -= 2 * factors[1] * factors[2] * tare_tensor_get_f64(tensors[1], at + k) * y / norm * dy;
        to[j] += pow(norm, -factors[2]) * dy;
    }
}

static tare_status run_lrn(struct tare_kernel *kernel) {
    const struct tare_tensor *tensors[3] = { &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2] };
    const struct tare_shape *shape = &tensors[1]->shape;
    const struct tare_node *node = kernel->node;
    const double factors[3] = { (double)tare_node_float(node, "bias", 1), (double)tare_node_float(node, "alpha", 1),
                                (double)tare_node_float(node, "beta", 0.5f) };
    if (shape->rank != 4 || !tare_shape_equal(shape, &tensors[0]->shape) ||
        !tare_shape_equal(shape, &tensors[2]->shape))
        return TARE_FAIL(TARE_SHAPE, "input_grads, input_image and output_image must have one shape of rank 4");
    TARE_TRY(tare_kernel_output(kernel, 0, tensors[1]->dtype, shape));
    const int64_t channels = shape->dims[3], expected = tare_node_int(node, "depth_radius", 5);
    const int64_t radius = expected < 0 ? 0 : expected;
    double *sums = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)channels + 1);
    if (!sums) return TARE_NO_MEMORY;
    for (int64_t at = 0; at < tensors[1]->elements; at += channels) {
        memset(sums, 0, (size_t)channels * sizeof *sums);
        lrn_pixel(sums, tensors, at, channels, radius, factors);
        for (int64_t c = 0; c < channels; c++)
            tare_tensor_set_f64(&kernel->outputs[0], at + c, sums[c]);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_norm_gradient[] = {
    { .name = "FusedBatchNormGrad",
      .inputs = "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
      .outputs = "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
      .attrs = "T: {float}; epsilon: float = 9.999999747378752e-05; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
               "is_training: bool = true",
      .infer = infer_norm,
      .run = run_norm },
    { .name = "FusedBatchNormGradV2",
      .inputs = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U",
      .outputs = "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
      .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 9.999999747378752e-05; data_format: "
               "{'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
      .infer = infer_norm,
      .run = run_norm },
    { .name = "FusedBatchNormGradV3",
      .inputs = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
      .outputs = "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
      .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 9.999999747378752e-05; data_format: "
               "{'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'; is_training: bool = true",
      .infer = infer_norm,
      .run = run_norm },
    { .name = "LRNGrad",
      .inputs = "input_grads: T, input_image: T, output_image: T",
      .outputs = "output: T",
      .attrs =
          "depth_radius: int = 5; bias: float = 1; alpha: float = 1; beta: float = 0.5; T: {half, bfloat16, float} "
          "= DT_FLOAT",
      .infer = infer_lrn,
      .run = run_lrn },
    { 0 },
};
