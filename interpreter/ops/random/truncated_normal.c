/* StatelessParameterizedTruncatedNormal by TensorFlow's rejection samplers: from normal numbers if the bounds hold
 * enough of them, otherwise from uniform numbers or from an exponential distribution (Robert, 1995: "Simulation of
 * truncated normal variables"). The stream is that of TensorFlow on one thread, which divides the output between
 * several threads at places that depend on their number. */
#include "interpreter/kernels/elementary_double.h"
#include "base/tensor/number.h"
#include "interpreter/inference/infer.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/random/random_source.h"

#include <math.h>

enum { PARAMETERS = 4, FIRST_PARAMETER = 2, MOST_ITERATIONS = 1000, WORDS = 4 };

struct sampler {
    struct tare_kernel *kernel;
    struct tare_philox source;
    int dtype;
    int size; /* numbers of a group, which has the words of one block */
    struct tare_shape batch;
    int64_t batches, samples;
    double mean, deviation; /* below 0: mirrored */
    double low, high;       /* normalized; low > high where mirrored numbers are above their bounds */
    int rejected;           /* in a row */
};

/* The number in the op's dtype. Sums, products, quotients and roots of numbers of the dtype are exact enough in double
 * to be rounded once. */
static double round_to(const struct sampler *s, double x) {
    if (s->dtype == TARE_DT_DOUBLE) return x;
    return s->dtype == TARE_DT_FLOAT ? (double)(float)x : (double)tare_float_from_half(tare_half_from_double(x));
}

#define R(x) round_to(s, x)

/* ---- groups of numbers ---- */

static void draw_uniform(struct sampler *s, double out[WORDS]) {
    for (int i = 0; i < s->size; i++)
        out[i] = s->dtype == TARE_DT_DOUBLE  ? tare_philox_double(&s->source)
                 : s->dtype == TARE_DT_FLOAT ? (double)tare_philox_float(&s->source)
                                             : (tare_philox_next(&s->source) & 0x3ff) / 1024.0;
}

static void draw_normal(struct sampler *s, double out[WORDS]) {
    float pair[2];
    if (s->dtype == TARE_DT_DOUBLE) {
        tare_philox_normals(&s->source, out);
        return;
    }
    for (int i = 0; i < s->size; i += 2) {
        tare_philox_normals_f32(&s->source, pair);
        out[i] = R((double)pair[0]);
        out[i + 1] = R((double)pair[1]);
    }
}

/* ---- samplers: up to `size` accepted numbers of one group ---- */

struct accepted {
    double values[WORDS];
    int count, most; /* most: numbers that are still needed */
};

/* Counts a candidate; false: there are enough numbers. */
static bool consider(struct sampler *s, struct accepted *out, bool accept, double z) {
    s->rejected = accept ? 0 : s->rejected + 1;
    if (accept) out->values[out->count++] = R(R(z * s->deviation) + s->mean);
    return out->count < out->most && s->rejected < MOST_ITERATIONS;
}

static void from_normal(struct sampler *s, struct accepted *out) {
    double z[WORDS];
    draw_normal(s, z);
    for (int i = 0; i < s->size && consider(s, out, z[i] >= s->low && z[i] <= s->high, z[i]); i++) {
    }
}

static void from_uniform(struct sampler *s, struct accepted *out) {
    const double factor = s->low < 0 ? 0 : R(s->low * s->low), range = R(s->high - s->low);
    double z[WORDS], u[WORDS];
    bool more = true;
    draw_uniform(s, z);
    draw_uniform(s, u);
    for (int i = 0; i < s->size && more; i++) {
        z[i] = R(R(z[i] * range) + s->low);
        const double g = R(R(factor - R(z[i] * z[i])) / 2);
        more = consider(s, out, u[i] <= R(tare_exp(g)), z[i]);
    }
}

static void from_exponential(struct sampler *s, struct accepted *out) {
    const double alpha = R(R(s->low + R(sqrt(R(R(s->low * s->low) + 4)))) / 2);
    double u[WORDS];
    bool more = true;
    draw_uniform(s, u);
    for (int i = 0; i < s->size && more; i += 2) {
        const double z = R(R(-R(tare_log(u[i])) / alpha) + s->low);
        const double x = s->low < alpha ? R(alpha - z) : R(s->low - alpha);
        const double g = R(tare_exp(R(R(-x * x) / 2)));
        more = consider(s, out, u[i + 1] <= g && z < s->high, z);
    }
}

typedef void sampler_fn(struct sampler *s, struct accepted *out);

static sampler_fn *choose(const struct sampler *s) {
    const double enough = R(1.3), root = R(sqrt(R(R(s->low * s->low) + 4)));
    const double exponent = R(0.5 + R(R(s->low * R(s->low - root)) / 4));
    const double cutoff = R(R(2 * R(tare_exp(exponent))) / R(s->low + root));
    if ((s->low < -enough && s->high >= 0) || (s->high > enough && s->low <= 0)) return from_normal;
    return R(s->high - s->low) < cutoff ? from_uniform : from_exponential;
}

/* ---- parameters ---- */

/* Element of parameter k for batch i. */
static double parameter(const struct sampler *s, int k, int64_t i) {
    const struct tare_tensor *tensor = &s->kernel->inputs[FIRST_PARAMETER + k];
    int64_t at = 0, step = 1;
    for (int back = 1; back <= s->batch.rank; back++) {
        const int64_t dim = s->batch.dims[s->batch.rank - back], place = i % dim;
        i /= dim;
        if (back > tensor->shape.rank) continue;
        const int64_t own = tensor->shape.dims[tensor->shape.rank - back];
        at += own == 1 ? 0 : place * step;
        step *= own;
    }
    return tare_tensor_get_f64(tensor, at);
}

static tare_status set_batch(struct sampler *s, int64_t i) {
    double low = parameter(s, 2, i), high = parameter(s, 3, i);
    s->mean = parameter(s, 0, i);
    s->deviation = parameter(s, 1, i);
    s->rejected = 0;
    if (!(s->deviation > 0 && low < high && (isfinite(low) || isfinite(high))))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid parameters");
    if ((isinf(low) && low < 0) || high < s->mean) {
        const double moved = low;
        low = high;
        high = moved;
        s->deviation = -s->deviation;
    }
    s->low = R(R(low - s->mean) / s->deviation);
    s->high = R(R(high - s->mean) / s->deviation);
    return TARE_OK;
}

/* The samples of a batch are `batches` elements apart. */
static tare_status fill_batch(struct sampler *s, int64_t i) {
    TARE_TRY(set_batch(s, i));
    sampler_fn *draw = choose(s);
    for (int64_t k = 0; k < s->samples;) {
        struct accepted accepted = { .most = s->samples - k < WORDS ? (int)(s->samples - k) : WORDS };
        draw(s, &accepted);
        if (s->rejected >= MOST_ITERATIONS)
            return TARE_FAIL(TARE_INTERNAL, "TruncatedNormal rejection sampler failed to accept a sample.");
        for (int n = 0; n < accepted.count; n++, k++)
            tare_tensor_set_f64(&s->kernel->outputs[0], k * s->batches + i, accepted.values[n]);
    }
    return TARE_OK;
}

/* ---- the op ---- */

static tare_status infer_truncated(struct tare_infer *infer) {
    return tare_infer_shape_input(&infer->outputs[0], infer, 0);
}

/* The parameters, broadcast together, have the last dimensions of the output. */
static tare_status set_shapes(struct sampler *s, const struct tare_shape *shape) {
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    s->batch = tare_shape_scalar();
    for (int k = 0; k < PARAMETERS; k++) {
        const struct tare_shape before = s->batch;
        TARE_TRY(tare_shape_broadcast(&s->batch, &before, &s->kernel->inputs[FIRST_PARAMETER + k].shape));
    }
    const int first = shape->rank - s->batch.rank;
    bool ends = first >= 0;
    s->batches = s->samples = 1;
    for (int d = 0; d < shape->rank && ends; d++) {
        *(d < first ? &s->samples : &s->batches) *= shape->dims[d];
        ends = d < first || shape->dims[d] == s->batch.dims[d - first];
    }
    if (ends) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "Shape passed in must end with broadcasted shape. (%s, %s)",
                     tare_shape_text(got, shape), tare_shape_text(expected, &s->batch));
}

static tare_status run_truncated(struct tare_kernel *kernel) {
    struct sampler s = { .kernel = kernel, .dtype = kernel->node->output_dtypes[0] };
    struct tare_shape *shape;
    s.size = s.dtype == TARE_DT_DOUBLE ? WORDS / 2 : WORDS;
    TARE_TRY(tare_operand_shapes(kernel, &shape));
    if (!tare_shape_is_known(shape)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a dimension is negative");
    TARE_TRY(tare_random_from_seeds(&s.source, &kernel->inputs[1]));
    TARE_TRY(set_shapes(&s, shape));
    TARE_TRY(tare_kernel_output(kernel, 0, s.dtype, shape));
    for (int64_t i = 0; i < s.batches && kernel->outputs[0].elements; i++)
        TARE_TRY(fill_batch(&s, i));
    return TARE_OK;
}

const struct tare_op tare_ops_truncated_normal[] = {
    { .name = "StatelessParameterizedTruncatedNormal", .infer = infer_truncated, .run = run_truncated },
    { 0 },
};
