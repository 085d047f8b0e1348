/* Learned rounding: AdaRound's relaxation (Nagel et al., "Up or Down? Adaptive Rounding for Post-Training
 * Quantization", ICML 2020) with learned scales.
 *
 *     ŵ = s e^t (b + h(v)),  h(v) = clip(1.2 σ(v) - 0.1, 0, 1)
 *
 * b is the lower neighbour. Of the two neighbours one is the integer at the beginning, the other the one in the
 * direction of w / s, so that training begins at what error-compensated rounding found. A penalty on shares h that are
 * neither 0 nor 1, 1 - |2h - 1|^β, decides them one after another: β falls from 20, where only shares near 0 and 1 are
 * pushed, to 2. Its weight is a multiple of the largest mean magnitude that the loss's derivatives have had, so that it
 * depends on no unit. The steps are Adam's. */
#include "quant/reconstruction/learned_rounding.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

static const double STRETCH = 1.2, BELOW = 0.1;
static const double FREE = 0.2, DECIDED = 0.8; /* of the training: β falls from the one to the other */
static const double STEEP = 20, FLAT = 2;      /* β at the beginning and at the end */
static const double PENALTY = 30;              /* relative to the derivatives of the loss */
static const double SCALE_RATE = 0.05;         /* step of t, relative to that of v */
/* Distance of a share from its integer at the beginning: OUTER + NEAR * |w / s - q|, at most INNER. */
static const double OUTER = 0.02, NEAR = 0.6, INNER = 0.45;
static const double MOMENT = 0.9, SECOND_MOMENT = 0.999;

static double share_of(double logit, double *slope) {
    const double sigmoid = 1 / (1 + exp(-logit)), share = STRETCH * sigmoid - BELOW;
    *slope = share > 0 && share < 1 ? STRETCH * sigmoid * (1 - sigmoid) : 0;
    return fmin(fmax(share, 0), 1);
}

static int64_t scale_index(const struct tare_learned_rounding *r, int64_t i) {
    const int64_t columns = r->layer->quantized.layout.columns;
    return tare_weight_scale_index(&r->layer->quantized, 0, i / columns, i % columns);
}

/* The neighbours of the integer q, and the share with which training begins. */
static void begin_element(struct tare_learned_rounding *r, int64_t i, double w, int q,
                          const struct tare_qparams *codes) {
    const double exact = w / r->scale[scale_index(r, i)];
    const bool up = (exact >= q && q < codes->qmax) || q <= codes->qmin;
    const double distance = fmin(OUTER + NEAR * fabs(exact - q), INNER);
    const double share = ((up ? distance : 1 - distance) + BELOW) / STRETCH; /* it rounds to q */
    r->base[i] = (int8_t)(up ? q : q - 1);
    r->logit[i] = (float)log(share / (1 - share));
}

tare_status tare_learned_rounding_open(struct tare_learned_rounding *out, struct tare_quant_layer *layer) {
    const struct tare_qscheme scheme = tare_quant_weight_scheme(&layer->setting);
    const struct tare_quantized_weight *q = &layer->quantized;
    const size_t elements = (size_t)q->values.elements, scales = (size_t)q->n_scales;
    struct tare_qparams codes;
    *out = (struct tare_learned_rounding){ .layer = layer, .elements = q->values.elements, .n_scales = q->n_scales };
    TARE_TRY(tare_qparams_from_range(&codes, 0, 1, &scheme)); /* for qmin and qmax */
    out->memory = tare_calloc(elements + 1, 3 * sizeof(float));
    out->base = tare_calloc(elements + 1, sizeof *out->base);
    out->scale_memory = tare_calloc(scales, 5 * sizeof(double));
    if (!out->memory || !out->base || !out->scale_memory) return TARE_NO_MEMORY;
    out->logit = out->memory;
    out->mean = out->memory + elements;
    out->square = out->memory + 2 * elements;
    out->scale = out->scale_memory;
    out->change = out->scale + scales;
    out->change_mean = out->scale + 2 * scales;
    out->change_square = out->scale + 3 * scales;
    out->pull = out->scale + 4 * scales;
    memcpy(out->scale, q->scales, scales * sizeof *out->scale);
    for (int64_t i = 0; i < out->elements; i++)
        begin_element(out, i, (double)TARE_CONST_DATA(float, &layer->real)[i], TARE_CONST_DATA(int8_t, &q->values)[i],
                      &codes);
    return TARE_OK;
}

void tare_learned_rounding_close(struct tare_learned_rounding *r) {
    tare_free(r->memory);
    tare_free(r->base);
    tare_free(r->scale_memory);
    *r = (struct tare_learned_rounding){ 0 };
}

static double current_scale(const struct tare_learned_rounding *r, int64_t index) {
    return r->scale[index] * exp(r->change[index]);
}

void tare_learned_rounding_weight(struct tare_tensor *out, const struct tare_learned_rounding *r) {
    float *w = TARE_DATA(float, out);
    double slope;
    for (int64_t k = 0; k < r->n_scales; k++)
        r->pull[k] = current_scale(r, k);
    for (int64_t i = 0; i < r->elements; i++)
        w[i] = (float)(r->pull[scale_index(r, i)] * (r->base[i] + share_of((double)r->logit[i], &slope)));
}

/* Adam's step, without the rate. */
static double adam(float *mean, float *square, double gradient, double first, double second) {
    *mean = (float)(MOMENT * (double)*mean + (1 - MOMENT) * gradient);
    *square = (float)(SECOND_MOMENT * (double)*square + (1 - SECOND_MOMENT) * gradient * gradient);
    if (!(*square > 0)) return 0;
    return (double)*mean / first / sqrt((double)*square / second);
}

static double penalty_slope(double share, double exponent) {
    const double offset = 2 * share - 1;
    return -2 * exponent * pow(fabs(offset), exponent - 1) * (offset < 0 ? -1 : 1);
}

/* Moves the shares; the derivatives with respect to t are summed in `pull`. */
static void step_shares(struct tare_learned_rounding *r, const float *gradient, double done, double rate,
                        const double moments[2]) {
    const double exponent = FLAT + (STEEP - FLAT) * fmax(0, fmin(1, (DECIDED - done) / (DECIDED - FREE)));
    const double penalty = done < FREE ? 0 : PENALTY * r->push;
    for (int64_t i = 0; i < r->elements; i++) {
        const int64_t k = scale_index(r, i);
        const double scale = current_scale(r, k), g = (double)gradient[i];
        double slope, along;
        const double share = share_of((double)r->logit[i], &slope);
        r->pull[k] += g * scale * (r->base[i] + share);
        along = g * scale * slope;
        if (penalty > 0 && slope > 0) along += penalty * penalty_slope(share, exponent) * slope;
        r->logit[i] -= (float)(rate * adam(&r->mean[i], &r->square[i], along, moments[0], moments[1]));
    }
}

static void step_scales(struct tare_learned_rounding *r, double rate, const double moments[2]) {
    for (int64_t k = 0; k < r->n_scales; k++) {
        float mean = (float)r->change_mean[k], square = (float)r->change_square[k];
        r->change[k] -= rate * SCALE_RATE * adam(&mean, &square, r->pull[k], moments[0], moments[1]);
        r->change_mean[k] = (double)mean;
        r->change_square[k] = (double)square;
    }
}

void tare_learned_rounding_step(struct tare_learned_rounding *r, const float *gradient, double done, double rate) {
    double moments[2], magnitude = 0;
    r->steps++;
    moments[0] = 1 - pow(MOMENT, (double)r->steps);
    moments[1] = 1 - pow(SECOND_MOMENT, (double)r->steps);
    memset(r->pull, 0, (size_t)r->n_scales * sizeof *r->pull);
    for (int64_t i = 0; i < r->elements; i++)
        magnitude += fabs((double)gradient[i]) * current_scale(r, scale_index(r, i)) / (double)r->elements;
    r->push = fmax(r->push, r->steps == 1 ? magnitude : 0.95 * r->push + 0.05 * magnitude);
    step_shares(r, gradient, done, rate, moments);
    step_scales(r, rate, moments);
}

void tare_learned_rounding_store(const struct tare_learned_rounding *r) {
    int8_t *q = TARE_DATA(int8_t, &r->layer->quantized.values);
    double slope;
    for (int64_t i = 0; i < r->elements; i++)
        q[i] = (int8_t)(r->base[i] + (share_of((double)r->logit[i], &slope) >= 0.5));
    for (int64_t k = 0; k < r->n_scales; k++)
        r->layer->quantized.scales[k] = current_scale(r, k);
}
