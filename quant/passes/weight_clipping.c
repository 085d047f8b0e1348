/* Weight clipping: weight scales that minimize the mean squared error instead of covering the largest magnitude.
 *
 * For a symmetric grid of B bits that clips at s, the squared error is s²·4⁻ᴮ/3 on average for values inside and
 * (|x| - s)² for values beyond; the best s is the fixed point of s = Σ_{|x|>s} |x| / (4⁻ᴮ/3 · n_{|x|<=s} + n_{|x|>s})
 * (Sakr et al., "Optimal Clipping and Magnitude-aware Differentiation for Improved Quantization-aware Training", ICML
 * 2022: OCTAV). The error is then measured, and a scale that does not improve on the original one is rejected. */
#include "quant/layer.h"
#include "quant/pass.h"
#include "base/tensor/number.h"

#include <math.h>

enum { ITERATIONS = 30 };

/* Per scale: number of values beyond the clip, their sum, number of values within; errors of the original and of the
 * new scale. */
struct group {
    double beyond, sum, within, clip;
    double error[2];
};

struct clipping {
    const struct tare_quantized_weight *weight;
    const float *values;
    struct group *groups;
    double qmax;
};

static void each(struct clipping *c,
                 void (*visit)(struct clipping *c, struct group *group, int64_t scale, double value)) {
    const struct tare_weight_layout *layout = &c->weight->layout;
    int64_t i = 0;
    for (int64_t b = 0; b < layout->batches; b++)
        for (int64_t r = 0; r < layout->rows; r++)
            for (int64_t k = 0; k < layout->columns; k++, i++) {
                int64_t scale = tare_weight_scale_index(c->weight, b, r, k);
                visit(c, &c->groups[scale], scale, (double)c->values[i]);
            }
}

static void count(struct clipping *c, struct group *group, int64_t scale, double value) {
    (void)c;
    (void)scale;
    if (fabs(value) > group->clip) {
        group->beyond++;
        group->sum += fabs(value);
    } else if (value != 0) { /* a zero has no error on any grid */
        group->within++;
    }
}

static double squared_error(double value, double scale, double qmax) {
    double q = fmin(fmax(round(value / scale), -qmax), qmax);
    return (value - q * scale) * (value - q * scale);
}

static void measure(struct clipping *c, struct group *group, int64_t scale, double value) {
    group->error[0] += squared_error(value, c->weight->scales[scale], c->qmax);
    group->error[1] += squared_error(value, group->clip / c->qmax, c->qmax);
}

static void iterate(struct clipping *c, int bits) {
    const double inside = pow(4, -bits) / 3;
    for (int i = 0; i < ITERATIONS; i++) {
        for (int64_t g = 0; g < c->weight->n_scales; g++) {
            struct group *group = &c->groups[g];
            group->beyond = group->sum = group->within = 0;
        }
        each(c, count);
        for (int64_t g = 0; g < c->weight->n_scales; g++) {
            struct group *group = &c->groups[g];
            double denominator = inside * group->within + group->beyond;
            if (group->beyond > 0 && denominator > 0) group->clip = group->sum / denominator;
        }
    }
}

/* Starts the iteration at the mean magnitude. It must not start at the maximum, which no value exceeds and which
 * therefore never changes. */
static void begin(struct clipping *c) {
    for (int64_t g = 0; g < c->weight->n_scales; g++)
        c->groups[g] = (struct group){ .clip = -1 };
    each(c, count);
    for (int64_t g = 0; g < c->weight->n_scales; g++) {
        struct group *group = &c->groups[g];
        group->clip = group->beyond > 0 ? group->sum / group->beyond : 0;
    }
}

/* ---- float8 ---- */

enum { STEPS = 16 };

/* A float8 grid looks alike from one power of two to the next, so that all scales worth trying are within one octave
 * below that of the largest magnitude: the one of least squared error is taken. */
static tare_status clip_float8(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_quantized_weight *weight = &layer->quantized;
    const struct tare_weight_layout *layout = &weight->layout;
    const struct tare_qparams codes = { .format = layer->setting.format };
    const float *value = TARE_CONST_DATA(float, &layer->real);
    double *errors = TARE_NEW_ARRAY(work->arena, double, (size_t)weight->n_scales *STEPS), steps[STEPS];
    if (!errors) return TARE_NO_MEMORY;
    for (int i = 0; i < STEPS; i++)
        steps[i] = exp2(-(double)i / STEPS);
    for (int64_t b = 0; b < layout->batches; b++)
        for (int64_t r = 0; r < layout->rows; r++)
            for (int64_t k = 0; k < layout->columns; k++, value++) {
                const int64_t at = tare_weight_scale_index(weight, b, r, k);
                for (int i = 0; i < STEPS; i++) {
                    const double scale = weight->scales[at] * steps[i], real = (double)*value;
                    const double error =
                        real - scale * tare_weight_decode(codes.format, tare_weight_encode(&codes, real, scale));
                    errors[at * STEPS + i] += error * error;
                }
            }
    for (int64_t g = 0; g < weight->n_scales; g++) {
        int best = 0;
        for (int i = 1; i < STEPS; i++)
            if (errors[g * STEPS + i] < errors[g * STEPS + best]) best = i;
        weight->scales[g] *= steps[best];
        work->changes += best > 0;
    }
    return TARE_OK;
}

static tare_status clip(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_quantized_weight *weight = &layer->quantized;
    const int bits = tare_quant_weight_scheme(&layer->setting).bits;
    struct clipping c = { .weight = weight };
    TARE_TRY(tare_quant_make_scales(work->arena, layer));
    if (layer->setting.format) return clip_float8(work, layer);
    c.qmax = (double)((1 << (bits - 1)) - 1);
    c.values = TARE_CONST_DATA(float, &layer->real);
    c.groups = TARE_NEW_ARRAY(work->arena, struct group, (size_t)weight->n_scales);
    if (!c.groups) return TARE_NO_MEMORY;
    begin(&c);
    iterate(&c, bits);
    each(&c, measure);
    for (int64_t g = 0; g < weight->n_scales; g++) {
        double scale = c.groups[g].clip / c.qmax;
        if (!(scale > 0) || !isfinite(scale) || !(c.groups[g].error[1] < c.groups[g].error[0])) continue;
        weight->scales[g] = scale;
        work->changes++;
    }
    return TARE_OK;
}

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    (void)self;
    return tare_quant_each_weight(work, clip);
}

const struct tare_quant_pass tare_quant_pass_weight_clipping = {
    .name = "weight_clipping",
    .help = "scales of weights that make the mean square error least",
    .idle = "no smaller scale of a weight has a smaller error",
    .run = run,
};
