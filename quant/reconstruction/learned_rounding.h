/* The integers and scales of a layer's weight while they are learned: each integer is one of two neighbours, with a
 * share of the upper one that training moves to 0 or 1. */
#ifndef TARE_QUANT_RECONSTRUCTION_LEARNED_ROUNDING_H
#define TARE_QUANT_RECONSTRUCTION_LEARNED_ROUNDING_H

#include "quant/layer.h"

struct tare_learned_rounding {
    struct tare_quant_layer *layer;
    int64_t elements, n_scales;
    float *memory;                /* of the arrays of elements */
    float *logit, *mean, *square; /* of the shares, and Adam's moments */
    int8_t *base;                 /* the lower neighbours */
    double *scale_memory;
    double *scale, *change, *change_mean, *change_square, *pull; /* scale * exp(change) is current */
    double push; /* largest running mean of the magnitudes of the derivatives */
    int64_t steps;
};

/* Begins at the layer's integers and scales; `real` and `quantized` of the layer exist. */
tare_status tare_learned_rounding_open(struct tare_learned_rounding *out,
                                       struct tare_quant_layer *layer) TARE_WARN_UNUSED;
void tare_learned_rounding_close(struct tare_learned_rounding *rounding);
/* The current weight, with shares between 0 and 1, arranged (quant/product.h): float32, in memory of `out`. */
void tare_learned_rounding_weight(struct tare_tensor *out, const struct tare_learned_rounding *rounding);
/* One step along the derivative of the loss with respect to the weight (arranged). `done` is the fraction of the
 * training that is complete, from 0 to 1, `rate` the step size of the shares. */
void tare_learned_rounding_step(struct tare_learned_rounding *rounding, const float *gradient, double done,
                                double rate);
/* Stores the nearer neighbours and the scales in the layer. */
void tare_learned_rounding_store(const struct tare_learned_rounding *rounding);

#endif
