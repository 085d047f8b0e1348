/* Batch normalization for inference and training, local response normalization, and L2Loss. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/inference/infer.h"
#include "interpreter/kernels/rowwise.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/axes.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/window.h"

#include <math.h>
#include <string.h>

/* ---- batch normalisation ---- */

/* x as [outer, channels, inner]; inner is 1 for channels-last layout. */
struct batch_norm {
    bool channels_first, training;
    float epsilon, average_factor;
    int64_t outer, channels, inner;
    const float *scale, *offset, *mean, *variance;
};

static bool is_channels_first(const struct tare_node *node) {
    const char *format = tare_node_string(node, "data_format", "NHWC");
    return strcmp(format, "NCHW") == 0 || strcmp(format, "NCDHW") == 0;
}

static tare_status check_vectors(const struct tare_shape *shapes, int64_t channels, bool training) {
    static const char *const names[] = { "x", "scale", "offset", "mean", "variance" };
    for (int i = 1; i < 5; i++) {
        const struct tare_shape *shape = &shapes[i];
        if (shape->rank < 0 || channels < 0) continue;
        if (shape->rank != 1) return TARE_FAIL(TARE_SHAPE, "%s has rank %d (expected 1)", names[i], shape->rank);
        if (training && i >= 3 && shape->dims[0] == 0) continue; /* the running statistics may be empty */
        if (shape->dims[0] >= 0 && shape->dims[0] != channels)
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %lld)", names[i], (long long)shape->dims[0],
                             (long long)channels);
    }
    return TARE_OK;
}

static tare_status infer_batch_norm(struct tare_infer *infer) {
    const struct tare_shape *x = &infer->inputs[0];
    int64_t channels = -1;
    infer->outputs[0] = *x;
    if (x->rank >= 0) {
        if (x->rank != 4 && x->rank != 5) return TARE_FAIL(TARE_SHAPE, "x has rank %d (expected 4 or 5)", x->rank);
        channels = x->dims[is_channels_first(infer->node) ? 1 : x->rank - 1];
        TARE_TRY(check_vectors(infer->inputs, channels, tare_node_bool(infer->node, "is_training", true)));
    }
    if (channels < 0 && infer->inputs[1].rank == 1) channels = infer->inputs[1].dims[0];
    for (size_t i = 1; i < infer->n_outputs && i < 5; i++)
        infer->outputs[i] = (struct tare_shape){ .rank = 1, .dims = { channels } };
    if (infer->n_outputs > 5) infer->outputs[5] = tare_shape_scalar();
    return TARE_OK;
}

static tare_status open_batch_norm(struct batch_norm *norm, struct tare_kernel *kernel) {
    struct tare_shape shapes[5];
    const struct tare_shape *x = &kernel->inputs[0].shape;
    if (x->rank != 4 && x->rank != 5) return TARE_FAIL(TARE_SHAPE, "x has rank %d (expected 4 or 5)", x->rank);
    const struct tare_node *node = kernel->node;
    norm->channels_first = is_channels_first(node);
    norm->training = tare_node_bool(node, "is_training", true);
    norm->epsilon = tare_node_float(node, "epsilon", 1e-4f);
    norm->average_factor = tare_node_float(node, "exponential_avg_factor", 1);
    const int axis = norm->channels_first ? 1 : x->rank - 1;
    norm->channels = x->dims[axis];
    const struct tare_axis_split split = tare_axis_split(x, axis);
    norm->outer = split.outer;
    norm->inner = split.inner;
    for (int i = 0; i < 5; i++)
        shapes[i] = kernel->inputs[i].shape;
    TARE_TRY(check_vectors(shapes, norm->channels, norm->training));
    norm->scale = tare_floats_in(kernel, &kernel->inputs[1]);
    norm->offset = tare_floats_in(kernel, &kernel->inputs[2]);
    norm->mean = tare_floats_in(kernel, &kernel->inputs[3]);
    norm->variance = tare_floats_in(kernel, &kernel->inputs[4]);
    if (!norm->scale || !norm->offset || !norm->mean || !norm->variance) return TARE_NO_MEMORY;
    return TARE_OK;
}

static int64_t element(const struct batch_norm *norm, int64_t outer, int64_t channel, int64_t inner) {
    return (outer * norm->channels + channel) * norm->inner + inner;
}

/* Mean and population variance of each channel, summed in double in element order. */
static void batch_moments(const struct batch_norm *norm, const float *x, float *mean, float *variance) {
    const double count = (double)(norm->outer * norm->inner);
    for (int64_t c = 0; c < norm->channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t o = 0; o < norm->outer; o++) {
            for (int64_t i = 0; i < norm->inner; i++)
                sum += (double)x[element(norm, o, c, i)];
        }
        const double centre = sum / count;
        for (int64_t o = 0; o < norm->outer; o++) {
            for (int64_t i = 0; i < norm->inner; i++) {
                const double away = (double)x[element(norm, o, c, i)] - centre;
                squares += away * away;
            }
        }
        mean[c] = (float)centre;
        variance[c] = (float)(squares / count);
    }
}

static void apply(const struct batch_norm *norm, float *y, const float *x, const float *mean, const float *factor,
                  bool plain) {
    if (norm->inner == 1 && !plain) {
        tare_rowwise_normalize(y, x, mean, factor, norm->offset, norm->outer, norm->channels);
        return;
    }
    for (int64_t o = 0; o < norm->outer; o++) {
        for (int64_t c = 0; c < norm->channels; c++) {
            for (int64_t i = 0; i < norm->inner; i++) {
                const int64_t at = element(norm, o, c, i);
                y[at] = (x[at] - mean[c]) * factor[c] + norm->offset[c];
            }
        }
    }
}

/* Stores the four vector outputs: running mean and variance, and the moments that the gradient uses. */
static tare_status store_moments(struct tare_kernel *kernel, const struct batch_norm *norm, const float *mean,
                                 const float *variance) {
    const int dtype = tare_node_type(kernel->node, "U", TARE_DT_FLOAT);
    const struct tare_shape vector = { .rank = 1, .dims = { norm->channels } };
    const int64_t count = norm->outer * norm->inner;
    const float unbiased = count > 1 ? (float)((double)count / (double)(count - 1)) : 1;
    const float f = norm->average_factor;
    for (size_t i = 1; i < 5; i++) {
        TARE_TRY(tare_kernel_output(kernel, i, dtype, &vector));
        float *to = tare_floats_out(kernel, i);
        if (norm->channels == 0) continue;
        if (!to) return TARE_NO_MEMORY;
        for (int64_t c = 0; c < norm->channels; c++) {
            float value = i % 2 == 1 ? mean[c] : variance[c];
            if (norm->training && i == 2) value *= unbiased;
            if (norm->training && i < 3 && f != 1.0f) {
                const float old = i == 1 ? norm->mean[c] : norm->variance[c];
                value = (1 - f) * old + f * value;
            }
            to[c] = value;
        }
        tare_floats_round(kernel, i, to);
    }
    if (kernel->n_outputs < 6) return TARE_OK;
    const struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, 5, dtype, &scalar));
    memset(kernel->outputs[5].data, 0, tare_tensor_bytes(&kernel->outputs[5]));
    return TARE_OK;
}

static tare_status run_batch_norm_any(struct tare_kernel *kernel, bool plain) {
    struct batch_norm norm = { 0 };
    TARE_TRY(open_batch_norm(&norm, kernel));
    if (norm.training && norm.average_factor != 1.0f &&
        (kernel->inputs[3].elements != norm.channels || kernel->inputs[4].elements != norm.channels))
        return TARE_FAIL(TARE_SHAPE, "mean and variance are empty, but exponential_avg_factor is not 1");
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    float *mean = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)norm.channels);
    float *variance = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)norm.channels);
    float *factor = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)norm.channels);
    const float *x = tare_floats_in(kernel, &kernel->inputs[0]);
    if (!mean || !variance || !factor || !x) return TARE_NO_MEMORY;
    if (norm.training && kernel->inputs[0].elements > 0) {
        batch_moments(&norm, x, mean, variance);
    } else if (!norm.training) {
        memcpy(mean, norm.mean, (size_t)norm.channels * sizeof *mean);
        memcpy(variance, norm.variance, (size_t)norm.channels * sizeof *variance);
    }
    for (int64_t c = 0; c < norm.channels; c++)
        factor[c] = 1.0f / sqrtf(variance[c] + norm.epsilon) * norm.scale[c];
    TARE_TRY(store_moments(kernel, &norm, mean, variance));
    if (kernel->inputs[0].elements == 0) return TARE_OK;
    float *y = tare_floats_out(kernel, 0);
    if (!y) return TARE_NO_MEMORY;
    apply(&norm, y, x, mean, factor, plain);
    tare_floats_round(kernel, 0, y);
    return TARE_OK;
}

static tare_status run_batch_norm(struct tare_kernel *kernel) {
    return run_batch_norm_any(kernel, false);
}
static tare_status reference_batch_norm(struct tare_kernel *kernel) {
    return run_batch_norm_any(kernel, true);
}

/* ---- local response normalisation ---- */

static tare_status infer_lrn(struct tare_infer *infer) {
    if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank != 4)
        return TARE_FAIL(TARE_SHAPE, "input has rank %d (expected 4)", infer->inputs[0].rank);
    return tare_infer_same(infer);
}

static tare_status run_lrn(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    if (input->shape.rank != 4) return TARE_FAIL(TARE_SHAPE, "input has rank %d (expected 4)", input->shape.rank);
    const int64_t expected = tare_node_int(kernel->node, "depth_radius", 5), channels = input->shape.dims[3];
    const int64_t radius = expected < 0 ? 0 : expected;
    const float bias = tare_node_float(kernel->node, "bias", 1), alpha = tare_node_float(kernel->node, "alpha", 1);
    const float beta = tare_node_float(kernel->node, "beta", 0.5f);
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    if (input->elements == 0) return TARE_OK;
    const float *x = tare_floats_in(kernel, input);
    float *to = tare_floats_out(kernel, 0), *y = to;
    if (!x || !y) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < input->elements / channels; i++, x += channels, y += channels) {
        for (int64_t c = 0; c < channels; c++) {
            const int64_t first = radius > c ? 0 : c - radius;
            const int64_t last = radius >= channels - c ? channels : c + radius + 1;
            float sum = 0;
            for (int64_t j = first; j < last; j++)
                sum += x[j] * x[j];
            y[c] = x[c] * tare_pow_float(bias + alpha * sum, -beta);
        }
    }
    tare_floats_round(kernel, 0, to);
    return TARE_OK;
}

/* ---- L2 loss: half the sum of squares, summed in double ---- */

static tare_status run_l2_loss(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_shape scalar = tare_shape_scalar();
    double sum = 0;
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &scalar));
    for (int64_t i = 0; i < input->elements; i++) {
        const double x = tare_tensor_get_f64(input, i);
        sum += x * x;
    }
    tare_tensor_set_f64(&kernel->outputs[0], 0, sum / 2);
    return TARE_OK;
}

/* ---- BatchNormWithGlobalNormalization: the op of old graphs, channels-last, inference only ---- */

static tare_status infer_global_norm(struct tare_infer *infer) {
    TARE_TRY(tare_infer_want_rank(infer, 0, 4));
    for (size_t i = 1; i < 5; i++)
        TARE_TRY(tare_infer_want_rank(infer, i, 1));
    return tare_infer_same(infer);
}

static tare_status run_global_norm(struct tare_kernel *kernel) {
    const struct tare_tensor *x = &kernel->inputs[0];
    const double epsilon = tare_node_float(kernel->node, "variance_epsilon", 0);
    const bool scaled = tare_node_bool(kernel->node, "scale_after_normalization", true);
    if (x->shape.rank != 4 || !tare_dtype_is_floating(x->dtype))
        return TARE_FAIL(TARE_UNSUPPORTED, "%s of rank %d (expected floats of rank 4)", tare_dtype_name(x->dtype),
                         x->shape.rank);
    const int64_t channels = x->shape.dims[3];
    for (size_t i = 1; i < 5; i++)
        if (kernel->inputs[i].elements != channels)
            return TARE_FAIL(TARE_SHAPE, "input %zu has %lld elements (expected %lld)", i,
                             (long long)kernel->inputs[i].elements, (long long)channels);
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &x->shape));
    for (int64_t i = 0; i < x->elements; i++) {
        const int64_t c = i % channels;
        double y = (tare_tensor_get_f64(x, i) - tare_tensor_get_f64(&kernel->inputs[1], c)) /
                   sqrt(tare_tensor_get_f64(&kernel->inputs[2], c) + epsilon);
        if (scaled) y *= tare_tensor_get_f64(&kernel->inputs[4], c);
        tare_tensor_set_f64(&kernel->outputs[0], i, y + tare_tensor_get_f64(&kernel->inputs[3], c));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_norm[] = {
    { .name = "FusedBatchNorm", .infer = infer_batch_norm, .run = run_batch_norm, .reference = reference_batch_norm },
    { .name = "FusedBatchNormV2", .infer = infer_batch_norm, .run = run_batch_norm, .reference = reference_batch_norm },
    { .name = "FusedBatchNormV3", .infer = infer_batch_norm, .run = run_batch_norm, .reference = reference_batch_norm },
    { .name = "LRN", .infer = infer_lrn, .run = run_lrn },
    { .name = "L2Loss", .infer = tare_infer_scalar, .run = run_l2_loss },
    { .name = "BatchNormWithGlobalNormalization", .infer = infer_global_norm, .run = run_global_norm },
    { 0 },
};
