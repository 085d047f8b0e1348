/* Random numbers from parameterized distributions: gamma, Poisson, binomial, truncated normal (stateful). The numbers
 * differ from TensorFlow's, whose algorithms are not reproduced. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/inference/infer.h"
#include "interpreter/kernels/special/special.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/random/random_source.h"

#include <math.h>

/* Numbers to reserve in a generator: past the most that one op draws. */
enum { MOST_NUMBERS = 1 << 24 };

enum source { SESSION, SEEDS, KEYED, STATE };
/* How the parameters relate to the shape: broadcast to it, appended after it, or one value per position of its first
 * dimension. */
enum meeting { BROADCAST, APPENDED, BATCHED };

/* A row's aux. */
struct form {
    double (*draw)(struct tare_philox *source, const double *parameters);
    enum source source;
    int shape;        /* input that contains the shape */
    int first, count; /* range of the parameter inputs */
    enum meeting meeting;
};

static tare_status infer_draws(struct tare_infer *infer) {
    const struct form *form = infer->node->def->row->aux;
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_infer_shape_input(out, infer, (size_t)form->shape));
    if (form->meeting != APPENDED) return TARE_OK;
    const struct tare_shape *parameter = &infer->inputs[form->first];
    if (parameter->rank < 0 || out->rank < 0) {
        *out = tare_shape_unknown();
        return TARE_OK;
    }
    return tare_operand_append(out, parameter, 0, parameter->rank);
}

/* Index of the element of `parameter` for output element i; -1 if the shapes are incompatible. */
static int64_t broadcast_index(const struct tare_shape *parameter, const struct tare_shape *out, int64_t i) {
    int64_t at = 0, step = 1;
    if (parameter->rank > out->rank) return -1;
    for (int back = 1; back <= out->rank; back++) {
        const int64_t dim = out->dims[out->rank - back], k = i % dim;
        i /= dim;
        if (back > parameter->rank) continue;
        const int64_t own = parameter->dims[parameter->rank - back];
        if (own != 1 && own != dim) return -1;
        at += own == 1 ? 0 : k * step;
        step *= own;
    }
    return at;
}

static tare_status find_source(struct tare_philox *out, struct tare_kernel *kernel, const struct form *form) {
    switch (form->source) {
    case SEEDS:
        return tare_random_from_seeds(out, &kernel->inputs[1]);
    case KEYED:
        return tare_random_from_key(out, kernel, 1);
    case STATE:
        return tare_random_from_state(out, kernel, &kernel->inputs[1], MOST_NUMBERS);
    default:
        return tare_random_from_session(out, kernel);
    }
}

/* Index of a parameter's element for output element i; -1: the shapes are incompatible. */
static int64_t parameter_at(const struct form *form, const struct tare_tensor *parameter,
                            const struct tare_shape *shape, int64_t i, int64_t elements) {
    if (form->meeting == APPENDED) return i % (parameter->elements ? parameter->elements : 1);
    if (form->meeting == BROADCAST) return broadcast_index(&parameter->shape, shape, i);
    if (parameter->elements == 1) return 0;
    if (shape->rank < 1 || parameter->shape.rank != 1 || parameter->elements != shape->dims[0]) return -1;
    return i / (elements / shape->dims[0]);
}

static tare_status run_draws(struct tare_kernel *kernel) {
    const struct form *form = kernel->op->aux;
    struct tare_philox source;
    struct tare_shape *shape;
    double parameters[4];
    TARE_TRY(tare_operand_shapes(kernel, &shape));
    if (!tare_shape_is_known(shape)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a dimension is negative");
    TARE_TRY(find_source(&source, kernel, form));
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->node->output_dtypes[0], shape));
    for (int64_t i = 0; i < kernel->outputs[0].elements; i++) {
        for (int k = 0; k < form->count; k++) {
            const struct tare_tensor *parameter = &kernel->inputs[form->first + k];
            const int64_t at = parameter_at(form, parameter, shape, i, kernel->outputs[0].elements);
            char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
            if (at < 0 || at >= parameter->elements)
                return TARE_FAIL(TARE_SHAPE, "a parameter of shape %s cannot be broadcast to %s",
                                 tare_shape_text(got, &parameter->shape), tare_shape_text(expected, shape));
            parameters[k] = tare_tensor_get_f64(parameter, at);
        }
        tare_tensor_set_f64(&kernel->outputs[0], i, form->draw(&source, parameters));
    }
    return TARE_OK;
}

/* ---- distributions ---- */

/* A uniform number in (0, 1). */
static double inside(struct tare_philox *source) {
    double x;
    do
        x = tare_philox_double(source);
    while (x == 0);
    return x;
}

/* Marsaglia and Tsang's method (2000); for alpha below 1 multiplied by a power of a uniform number. */
static double draw_gamma(struct tare_philox *source, const double *parameters) {
    const double alpha = parameters[0], shape = alpha < 1 ? alpha + 1 : alpha, d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    if (!(alpha > 0) || isinf(alpha)) return NAN;
    for (;;) {
        double pair[2];
        tare_philox_normals(source, pair);
        const double v = tare_pow(1 + c * pair[0], 3);
        if (!(v > 0) || tare_log(inside(source)) >= pair[0] * pair[0] / 2 + d - d * v + d * tare_log(v)) continue;
        return alpha < 1 ? d * v * tare_pow(inside(source), 1 / alpha) : d * v;
    }
}

/* Knuth's product method for small rates; otherwise reduced by a gamma number (Ahrens and Dieter, 1974). */
static double draw_poisson(struct tare_philox *source, const double *parameters) {
    double rate = parameters[0], count = 0;
    if (!(rate >= 0) || isinf(rate)) return NAN;
    while (rate > 30) {
        const double m = floor(rate * 7 / 8), x = draw_gamma(source, &m);
        if (x > rate) { /* the m-th event is after the end: the preceding ones are uniform before it */
            for (double k = 1; k < m; k++)
                count += inside(source) * x < rate;
            return count;
        }
        count += m;
        rate -= x;
    }
    const double limit = tare_exp(-rate);
    for (double product = inside(source); product > limit; product *= inside(source))
        count++;
    return count;
}

/* Counts geometric gaps between successes. */
static double draw_binomial(struct tare_philox *source, const double *parameters) {
    const double n = floor(parameters[0]);
    double p = parameters[1], at = 0, count = 0;
    if (!(n >= 0) || isinf(n) || !(p >= 0 && p <= 1)) return NAN;
    const bool flipped = p > 0.5;
    if (flipped) p = 1 - p;
    const double log_rest = tare_log1p(-p);
    while (p > 0) {
        at += floor(tare_log(inside(source)) / log_rest) + 1;
        if (at > n) break;
        count++;
    }
    return flipped ? n - count : count;
}

/* Inverts the CDF at a uniform number between its values at the bounds, using the tail in which both are small. */
static double draw_truncated(struct tare_philox *source, const double *parameters) {
    const double mean = parameters[0], deviation = parameters[1];
    double low = (parameters[2] - mean) / deviation, high = (parameters[3] - mean) / deviation;
    if (!(deviation > 0) || !(low < high)) return NAN;
    const bool flipped = low > 0;
    if (flipped) {
        const double moved = low;
        low = -high;
        high = -moved;
    }
    const double from = erfc(-low / sqrt(2)) / 2, to = erfc(-high / sqrt(2)) / 2;
    double x = tare_ndtri(from + (to - from) * inside(source));
    if (!(x >= low)) x = low;
    if (!(x <= high)) x = high;
    return mean + deviation * (flipped ? -x : x);
}

static const struct form gamma_form = { draw_gamma, SESSION, 0, 1, 1, APPENDED },
                         seeded_gamma = { draw_gamma, SEEDS, 0, 2, 1, BROADCAST },
                         keyed_gamma = { draw_gamma, KEYED, 0, 4, 1, BROADCAST },
                         poisson = { draw_poisson, SESSION, 0, 1, 1, APPENDED },
                         seeded_poisson = { draw_poisson, SEEDS, 0, 2, 1, BROADCAST },
                         seeded_binomial = { draw_binomial, SEEDS, 0, 2, 2, BROADCAST },
                         generator_binomial = { draw_binomial, STATE, 2, 3, 2, BROADCAST },
                         truncated = { draw_truncated, SESSION, 0, 1, 4, BATCHED };

const struct tare_op tare_ops_distribution[] = {
    { .name = "RandomGamma", .infer = infer_draws, .run = run_draws, .aux = &gamma_form, .flags = TARE_OP_STATEFUL },
    { .name = "StatelessRandomGammaV2", .infer = infer_draws, .run = run_draws, .aux = &seeded_gamma },
    { .name = "StatelessRandomGammaV3", .infer = infer_draws, .run = run_draws, .aux = &keyed_gamma },
    { .name = "RandomPoissonV2", .infer = infer_draws, .run = run_draws, .aux = &poisson, .flags = TARE_OP_STATEFUL },
    { .name = "StatelessRandomPoisson", .infer = infer_draws, .run = run_draws, .aux = &seeded_poisson },
    { .name = "StatelessRandomBinomial", .infer = infer_draws, .run = run_draws, .aux = &seeded_binomial },
    { .name = "StatefulRandomBinomial",
      .infer = infer_draws,
      .run = run_draws,
      .aux = &generator_binomial,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ParameterizedTruncatedNormal",
      .infer = infer_draws,
      .run = run_draws,
      .aux = &truncated,
      .flags = TARE_OP_STATEFUL },
    { .name = "RandomPoisson", .infer = infer_draws, .run = run_draws, .aux = &poisson, .flags = TARE_OP_STATEFUL },
    { 0 },
};
